//! Lines of base64 and the like with something around each: an indent, the mark of a
//! quotation or a comment, quotes of a literal. What stands between two lines is dropped,
//! so that their symbols are one run.

use crate::span;
/// Symbols in front of what is dropped: shorter words are words.
const BEFORE_LINE: usize = 16;

/// The same where no line ends: a list of digests has as many.
const BEFORE_BLANK: usize = 32;

/// Symbols behind what is dropped that make it worth a look.
const BEHIND: usize = 4;

/// The same where quotes are closed and opened, or no line ends.
const BEHIND_QUOTES: usize = 16;

/// Longest text between two lines, in bytes.
const BETWEEN_BYTES_MAX: usize = 128;

/// Bytes of a line that are looked at before what may be dropped.
const LOOK_BYTES: usize = 64;

/// Drops what stands between lines.
#[derive(Default)]
pub(crate) struct Joiner {
    /// Symbols since the last byte that is none, as far as it matters.
    streak: usize,
    /// Whether a line ends in what waits.
    is_line: bool,
}

impl Joiner {
    /// Takes the next byte; `waiting` may be what stands between two lines.
    pub(crate) fn push(
        &mut self,
        byte: u8,
        waiting: &mut Vec<u8>,
        made: &mut Vec<u8>,
        places: &mut Vec<usize>,
    ) {
        if waiting.is_empty() {
            let may_begin = matches!(
                byte,
                b'\r' | b'\n' | b' ' | b'\t' | b'"' | b'\'' | b'`' | b'\\'
            );
            if may_begin && self.streak >= BEFORE_LINE {
                self.is_line = matches!(byte, b'\r' | b'\n');
                waiting.push(byte);
            } else {
                self.take(byte, made);
            }
            return;
        }
        let is_escaped = waiting.last() == Some(&b'\\');
        match byte {
            b'n' | b'r' if is_escaped => self.is_line = true,
            b't' if is_escaped => {}
            b'\r' | b'\n' => self.is_line = true,
            _ if byte.is_ascii_alphanumeric() => {
                self.resolve(waiting, made, places);
                self.take(byte, made);
                return;
            }
            // A slash that is escaped is a symbol.
            b'/' if is_escaped && waiting.iter().all(|byte| *byte == b'\\') => {
                made.append(waiting);
                self.take(byte, made);
                return;
            }
            b' ' | b'\t' | b'"' | b'\'' | b'`' | b'\\' => {}
            _ if b"+&.,>#*;|%!-/:()_".contains(&byte) => {}
            _ => {
                made.append(waiting);
                self.take(byte, made);
                return;
            }
        }
        waiting.push(byte);
        if waiting.len() > BETWEEN_BYTES_MAX {
            made.append(waiting);
            self.streak = 0;
        }
    }

    fn take(&mut self, byte: u8, made: &mut Vec<u8>) {
        made.push(byte);
        self.streak = if is_symbol(byte) {
            self.streak.saturating_add(1)
        } else {
            0
        };
    }

    /// The next symbol came: drops what waits where lines are joined by it, but for the
    /// signs among the symbols right before it.
    fn resolve(&mut self, waiting: &mut Vec<u8>, made: &mut Vec<u8>, places: &mut Vec<usize>) {
        let signs = waiting.iter().rev().take_while(|byte| is_symbol(**byte));
        let first = waiting.len().saturating_sub(signs.take(3).count());
        if self.is_line || self.streak >= BEFORE_BLANK {
            places.push(made.len());
            made.extend_from_slice(span::from(waiting, first));
            waiting.clear();
        } else {
            made.append(waiting);
        }
        self.streak = 0;
    }
}

fn is_symbol(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_')
}

/// Whether the last symbols of a line, of which the end may be here as well, are enough, and
/// some of them digits: words and rulers have none.
fn is_coded(line: &[u8]) -> bool {
    // Most lines end with a word, which is too short. These letters may be of an escaped end.
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() && !matches!(byte, b'n' | b'r' | b't');
    let near = span::from(line, line.len().saturating_sub(BEFORE_LINE));
    if line.last().is_some_and(is_word) && !near.iter().all(|byte| is_symbol(*byte)) {
        return false;
    }
    // The mark of a comment behind it may be of symbols.
    let is_mark = |byte: &u8| matches!(byte, b'/' | b'-' | b'+');
    let is_end = |byte: &u8| matches!(byte, b'\r' | b'\n' | b'\\');
    let marks = line.iter().rev().take_while(|byte| is_mark(byte)).count();
    let rest = line.iter().rev().skip(marks);
    let ends = rest.take_while(|byte| is_end(byte)).count();
    let skipped = if ends > 0 {
        marks.saturating_add(ends)
    } else {
        0
    };
    let symbols = line.iter().rev().skip(skipped);
    let (mut count, mut has_digit) = (0_usize, false);
    for byte in symbols.take_while(|byte| is_symbol(**byte)) {
        count = count.saturating_add(1);
        has_digit |= byte.is_ascii_digit();
    }
    // An end that is escaped stands between.
    let last = line
        .rsplit(|byte| *byte == b'\\')
        .next()
        .unwrap_or_default();
    let is_escaped = match last {
        [] => true,
        [b'n' | b'r' | b't', marks @ ..] => last.len() < line.len() && marks.iter().all(is_mark),
        _ => false,
    };
    is_escaped || has_digit && count >= BEFORE_LINE
}

/// Whether lines are joined at the end of a run of symbols: in these bytes, of which so many
/// belong to the run, which may have the end of its last line.
pub(crate) fn is_joined(bytes: &[u8], stop: usize) -> bool {
    // Most runs end with another sign.
    let is_line =
        |place: usize| matches!(bytes.get(place), Some(b'\r' | b'\n' | b'\\' | b'n' | b'r'));
    match bytes.get(stop) {
        Some(b' ' | b'\t' | b'"' | b'\'' | b'`') => {}
        Some(b'>' | b'#' | b'*' | b';' | b'|') if is_line(stop.saturating_sub(1)) => {}
        _ => return false,
    }
    let from = stop.saturating_sub(LOOK_BYTES);
    let line = span::within(bytes, from..stop);
    if !is_coded(line) {
        return false;
    }
    let reach = stop.saturating_add(BETWEEN_BYTES_MAX);
    let here = span::within(bytes, from..reach.min(bytes.len()));
    let (mut joiner, mut waiting) = (Joiner::default(), Vec::new());
    let (mut made, mut places) = (Vec::new(), Vec::new());
    for (place, byte) in here.iter().enumerate() {
        if from.saturating_add(place) == stop {
            places.clear();
        }
        joiner.push(*byte, &mut waiting, &mut made, &mut places);
        let is_behind = from.saturating_add(place) >= stop;
        if is_behind && waiting.is_empty() {
            let gap = here
                .get(stop.saturating_sub(from)..place)
                .unwrap_or_default();
            let behind = span::from(here, place);
            let behind = behind.iter().take_while(|byte| is_symbol(**byte)).count();
            let is_quoted = gap.iter().any(|byte| matches!(byte, b'"' | b'\'' | b'`'));
            let least = if is_quoted || !joiner.is_line {
                BEHIND_QUOTES
            } else {
                BEHIND
            };
            return !places.is_empty() && behind >= least;
        }
    }
    false
}
