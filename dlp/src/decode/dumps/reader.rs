//! From bytes to numbers: what of a line of a dump says where it stands, what is data, and
//! what shows the same as text (xxd(1), od(1), hexdump(1)); which numbers belong to one
//! list, whatever a language writes between them. Keeps a few numbers of state, and reads
//! every byte once.

use super::number::{Number, NumberWord, Radix, Sign};

/// What is said of the numbers that come.
pub(super) enum NumberEvent<'a> {
    /// One more; and whether it is one of hexadecimal digits at most by chance.
    Number(&'a Number, DumpColumn),
    /// What follows belongs to nothing before.
    Apart,
}

/// In which part of a line something stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum DumpColumn {
    #[default]
    Data,
    /// Where some programs show data as text.
    Perhaps,
    /// Where data is shown as text.
    Text,
}

/// Reads numbers.
pub(super) struct NumberReader {
    word: NumberWord,
    /// A number that may turn out to be a label.
    held: Option<Number>,
    behind: Behind,
    line: DumpLine,
    before: Before,
    /// What the words between two numbers come to, and between the two before.
    between: u32,
    known: u32,
    /// A bracket was closed, and nothing joins what is behind it.
    is_closed: bool,
    /// The last two bytes.
    last: [u8; 2],
}

/// What stood behind the number that is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Behind {
    Nothing,
    Quote,
    Colon,
}

/// The line that is read.
#[derive(Clone, Copy, Default)]
struct DumpLine {
    /// The first number, until the next tells what it is.
    first: Option<Number>,
    /// The same when that was no offset.
    head: Option<Number>,
    offset: Option<Offset>,
    /// Numbers that were data.
    count: u64,
    /// Bytes that they stood for.
    bytes: u64,
    /// Digits of the last.
    width: usize,
    /// Blanks since the last character, and fewest between two numbers.
    gap: usize,
    usual: usize,
    column: DumpColumn,
}

impl DumpLine {
    /// Whether a wide gap stands behind the data of a line that begins with its place and a
    /// colon: no program writes another before more data there.
    fn is_behind_data(&self) -> bool {
        let is_colon = self.offset.is_some_and(|offset| offset.is_colon);
        is_colon && self.count > 0 && self.gap > self.usual.max(1)
    }
}

/// How a line says where it stands.
#[derive(Clone, Copy)]
struct Offset {
    number: Number,
    is_colon: bool,
}

/// The last line with numbers.
#[derive(Clone, Copy, Default)]
struct Before {
    first: Option<Number>,
    bytes: u64,
    is_dump: bool,
}

impl NumberReader {
    /// At the beginning of something, behind this byte.
    pub(super) fn new(last: u8) -> Self {
        Self {
            word: NumberWord::NONE,
            held: None,
            behind: Behind::Nothing,
            line: DumpLine::default(),
            before: Before::default(),
            between: 0,
            known: 0,
            is_closed: false,
            last: [b' ', last],
        }
    }

    /// Where in the outermost stream that begins which waits for what comes.
    pub(super) fn waits(&self) -> Option<u64> {
        let word = (!self.word.is_empty()).then(|| self.word.outer());
        let held = self.held.iter().chain(&self.line.first);
        held.map(Number::outer).chain(word).min()
    }

    /// Whether the line says where it stands: it is one of a dump.
    pub(super) fn is_dump(&self) -> bool {
        self.line.offset.is_some()
    }

    /// Reads the next bytes; `outer` tells where in the outermost stream one of them stands.
    pub(super) fn read(
        &mut self,
        bytes: &[u8],
        outer: impl Fn(usize) -> u64,
        found: &mut impl FnMut(NumberEvent<'_>),
    ) {
        for (place, byte) in bytes.iter().enumerate() {
            let [before, last] = self.last;
            self.last = [last, *byte];
            if last == b'\\' && matches!(byte, b'n' | b'r' | b't') {
                self.last = [b' '; 2];
                match byte {
                    b'n' => self.end_line(found),
                    _ => self.separate(b' ', found),
                }
            } else if byte.is_ascii_alphanumeric() || *byte == b'_' {
                if self.word.is_empty() {
                    self.release(found);
                    let is_negative = last == b'-' && !before.is_ascii_alphanumeric();
                    let sign = if is_negative { Sign::Minus } else { Sign::None };
                    self.word.begin(outer(place), sign);
                }
                self.word.push(*byte);
            } else {
                self.separate(*byte, found);
            }
        }
    }

    /// The end of all: what waits is what it is.
    pub(super) fn finish(&mut self, found: &mut impl FnMut(NumberEvent<'_>)) {
        self.end_line(found);
    }

    /// A byte that is no letter and no digit.
    fn separate(&mut self, byte: u8, found: &mut impl FnMut(NumberEvent<'_>)) {
        if !self.word.is_empty() {
            self.end_word(found);
        }
        if self.held.is_some() {
            self.settle(byte, found);
        }
        match byte {
            b'\n' => return self.end_line(found),
            b' ' | b'\t' => {
                self.line.gap = self.line.gap.saturating_add(1);
                return;
            }
            b'|' | b'>' => {
                let gap = self.line.gap;
                let is_column = self.is_dump() && gap > 0 || self.line.count > 0 && gap > 1;
                if is_column {
                    self.line.column = DumpColumn::Text;
                }
                self.is_closed = false;
            }
            b']' | b'}' | b')' => self.is_closed = true,
            b',' | b'[' | b'{' | b'(' | b'.' | b'+' | b';' | b'&' => self.is_closed = false,
            _ => {}
        }
        if self.line.is_behind_data() {
            self.line.column = DumpColumn::Text;
        }
        // What is held stands behind the gap.
        if self.held.is_none() {
            self.line.gap = 0;
        }
    }

    /// A word is whole.
    fn end_word(&mut self, found: &mut impl FnMut(NumberEvent<'_>)) {
        if let Some(number) = self.word.number() {
            self.held = Some(number);
            self.behind = Behind::Nothing;
        } else {
            self.release_first(found);
            if self.line.offset.is_some() {
                self.line.column = DumpColumn::Text;
            } else if self.line.column != DumpColumn::Text {
                self.between = self.between.rotate_left(7) ^ self.word.mixed();
            }
            self.line.gap = 0;
        }
        self.word.clear();
    }

    /// Whether the number that is held is a label, as the next byte tells.
    fn settle(&mut self, byte: u8, found: &mut impl FnMut(NumberEvent<'_>)) {
        let is_blank = matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | b'\\');
        match (self.behind, byte) {
            (Behind::Nothing, b'"' | b'\'') => self.behind = Behind::Quote,
            (Behind::Nothing, b':') => self.behind = Behind::Colon,
            (Behind::Quote, b':') => self.label(),
            (Behind::Colon, _) if is_blank => self.label(),
            _ => self.release(found),
        }
    }

    /// The number that is held says where others stand.
    fn label(&mut self) {
        let Some(number) = self.held.take() else {
            return;
        };
        let line = &mut self.line;
        if line.count == 0 && line.first.is_none() && number.may_be_offset() {
            line.offset = Some(Offset {
                number,
                is_colon: true,
            });
            self.between = 0;
        }
        line.gap = 0;
    }

    /// The number that is held is none.
    fn release(&mut self, found: &mut impl FnMut(NumberEvent<'_>)) {
        let Some(number) = self.held.take() else {
            return;
        };
        if self.line.column == DumpColumn::Text {
            return;
        }
        let is_first = self.line.count == 0 && self.line.offset.is_none();
        if is_first && self.line.first.is_none() && number.may_be_offset() {
            self.line.first = Some(number);
            self.line.gap = 0;
            return;
        }
        if let Some(first) = self.line.first.take() {
            if self.is_offset(&first, &number) {
                self.line.offset = Some(Offset {
                    number: first,
                    is_colon: false,
                });
                self.between = 0;
            } else {
                self.line.head = Some(first);
                self.data(&first, found);
            }
        }
        self.data(&number, found);
    }

    /// The first number of a line is no offset.
    fn release_first(&mut self, found: &mut impl FnMut(NumberEvent<'_>)) {
        self.release(found);
        if let Some(first) = self.line.first.take() {
            self.data(&first, found);
        }
    }

    /// Whether the first number of a line says where it stands, as the next one and the
    /// line before tell.
    fn is_offset(&self, first: &Number, second: &Number) -> bool {
        let before = self.before.first.as_ref();
        let same = before.filter(|before| before.length() == first.length());
        let grows = same.is_some_and(|before| before.digits() < first.digits());
        let other = first.length() != second.length();
        let follows = |radix| {
            let begin = before.and_then(|before| before.value(radix));
            let next = begin.map(|begin| begin.saturating_add(self.before.bytes));
            next.is_some() && next == first.value(radix) && self.before.bytes > 0
        };
        self.before.is_dump && grows
            || other && first.digits().starts_with(b"0")
            || [Radix::Hex, Radix::Decimal, Radix::Octal]
                .into_iter()
                .any(follows)
    }

    /// A number that stands for something.
    fn data(&mut self, number: &Number, found: &mut impl FnMut(NumberEvent<'_>)) {
        let line = &mut self.line;
        if let Some(offset) = line.offset {
            // Some programs leave a wider gap in the middle.
            let is_full = self.before.is_dump && self.before.bytes == line.bytes;
            let is_middle = line.bytes == 8 || !offset.is_colon && line.bytes == 4;
            let goes_on = is_middle && !is_full && number.length() == line.width;
            let is_wide = line.count > 0 && line.gap > line.usual.max(1);
            if is_wide && !goes_on {
                line.column = if offset.is_colon {
                    DumpColumn::Text
                } else {
                    DumpColumn::Perhaps
                };
            }
            if line.column == DumpColumn::Text {
                return;
            }
            line.usual = match line.usual {
                0 => line.gap,
                usual => usual.min(line.gap),
            };
        } else {
            let is_behind = self.before.is_dump && line.count == 0;
            let is_other = match self.between {
                0 => self.is_closed,
                // What is written before each number joins them (`(byte)103`).
                between => between != self.known,
            };
            if is_behind || is_other {
                found(NumberEvent::Apart);
            }
            self.known = self.between;
        }
        self.between = 0;
        self.is_closed = false;
        line.count = line.count.saturating_add(1);
        line.bytes = line.bytes.saturating_add(number.width());
        line.width = number.length();
        line.gap = 0;
        let column = line.column;
        found(NumberEvent::Number(number, column));
    }

    fn end_line(&mut self, found: &mut impl FnMut(NumberEvent<'_>)) {
        if !self.word.is_empty() {
            self.end_word(found);
        }
        self.release(found);
        // Behind its last line a dump says how long it is.
        let first = self.line.first.take().filter(|_| !self.before.is_dump);
        if let Some(first) = first {
            self.data(&first, found);
        }
        let line = self.line;
        if line.count > 0 {
            let head = line.head.map_or(0, |head| head.width());
            self.before = Before {
                first: line.offset.map(|offset| offset.number).or(line.head),
                bytes: line.bytes.saturating_sub(head),
                is_dump: line.offset.is_some(),
            };
        }
        self.line = DumpLine::default();
    }
}
