//! Runs that stand back to front and hold compressed data or text: the mark with which these
//! begin comes last, and chance makes no text. What of such a run is here is undone as a whole.

use crate::budget::wide;
use crate::coding::Coding;
use crate::decode::containers::{is_begun_zlib, is_zlib};
use crate::decode::layer::{Layer, LayerExtent, View};
use crate::finding::UnscannedReason;
use crate::limits;
use crate::magic::{MAGICS, Magic};
use crate::scan::Scan;
use crate::span;

use super::alphabet::Alphabet;
use super::radix::Phase;

/// Looks at a run that ends before `stop`, if what is compressed, or a text, begins at its end.
pub(super) fn look(scan: &mut Scan<'_>, view: &View<'_>, (stop, alphabet): (u64, Alphabet)) {
    let end = |bytes: usize| {
        let from = stop.saturating_sub(wide(bytes)).max(view.base);
        let end = view.slice(from, stop);
        span::from(end, end.len().saturating_sub(alphabet.tail(end)))
    };
    if !may_begin(end(limits::TURNED_GLANCE_BYTES), alphabet) {
        return;
    }
    let Some(begin) = begin(&plain(end(limits::TURNED_LOOK_BYTES), alphabet)) else {
        return;
    };
    let here = view.slice(view.base, stop);
    let run = alphabet.tail(here);
    if run == here.len() && view.base > 0 {
        // Its first bytes are gone, and they are the last of what is compressed.
        if begin == TurnedBegin::Sure {
            scan.miss(UnscannedReason::Unopened, wide(run));
        }
        return;
    }
    if view.trail.depth().saturating_add(1) >= limits::DEPTH_MAX {
        scan.miss(UnscannedReason::Depth, 1);
        return;
    }
    let start = stop.saturating_sub(wide(run));
    let made = plain(view.slice(start, stop), alphabet);
    if scan.is_over() || !scan.state.budget.derive(made.len().saturating_mul(2)) {
        return;
    }
    let trail = view.trail.with(Coding::Reversed, None);
    let mut layer = Layer::new(trail.with(alphabet.coding(), None));
    if is_zlib(&made) {
        layer.containers().expect_until(0, wide(made.len()));
    }
    layer.push(scan, &made, Some(view.origin(start)));
    layer.work(scan, LayerExtent::End);
    layer.clear(scan);
}

/// What bytes of a run stand for when they are read from the last to the first.
fn plain(run: &[u8], alphabet: Alphabet) -> Vec<u8> {
    let turned: Vec<u8> = run.iter().rev().copied().collect();
    let (mut symbols, mut made) = (Vec::new(), Vec::new());
    let mut reader = alphabet.reader();
    reader.read(&turned, &mut symbols);
    reader.finish(&mut symbols);
    Phase::new(alphabet.bits()).push(&symbols, &mut made);
    made
}

/// How sure it is that what is compressed begins so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TurnedBegin {
    Sure,
    /// Undoing it tells.
    Perhaps,
}

/// Whether [`begin`] may find something, by the last few symbols alone: most runs are words,
/// and need no more than this. What is not told by symbols is left to it.
fn may_begin(end: &[u8], alphabet: Alphabet) -> bool {
    let symbols = end.iter().rev().map(|byte| alphabet.symbol(*byte));
    let all = symbols.map(|symbol| symbol.map(u64::from));
    let all = all.reduce(|all, one| Some(all? << alphabet.bits() | one?));
    let Some(Some(all)) = all else {
        return true;
    };
    let bits = wide(end.len()).saturating_mul(alphabet.bits().into());
    let bytes = (all << 64_u64.saturating_sub(bits)).to_be_bytes();
    // What comes behind may still change the last of them.
    let sure = usize::try_from(bits / 8)
        .unwrap_or_default()
        .saturating_sub(1);
    let few = bytes.get(..sure).unwrap_or_default();
    let is_sign = |byte: &u8| byte.is_ascii_graphic() || byte.is_ascii_whitespace();
    let is_begun = |mark: &[u8]| {
        let begun = mark.get(..sure).unwrap_or(mark);
        mark.first() == few.first() && few.starts_with(begun)
    };
    few.len() < 2
        || is_zlib(few)
        || few.iter().all(is_sign)
        || MAGICS.iter().any(|(mark, _)| is_begun(mark))
}

fn begin(bytes: &[u8]) -> Option<TurnedBegin> {
    let is_marked = |(mark, magic): &(&[u8], Magic)| {
        let is_long = mark.len() >= limits::TURNED_MARK_BYTES_MIN && *magic != Magic::Tar;
        is_long && bytes.starts_with(mark)
    };
    if MAGICS.iter().any(is_marked) || is_begun_zlib(bytes) || is_text(bytes) {
        return Some(TurnedBegin::Sure);
    }
    is_zlib(bytes).then_some(TurnedBegin::Perhaps)
}

/// Whether a text begins so.
fn is_text(bytes: &[u8]) -> bool {
    let begin = bytes.get(..limits::TURNED_TEXT_BYTES);
    let is_sign = |byte: &u8| byte.is_ascii_graphic() || byte.is_ascii_whitespace();
    begin.is_some_and(|begin| begin.iter().all(is_sign))
}

#[cfg(test)]
mod tests {
    use data_encoding::{BASE64_NOPAD, HEXLOWER};
    use proptest::prelude::*;

    use super::*;

    /// What is compressed or a text, or neither.
    fn contents() -> impl Strategy<Value = Vec<u8>> {
        let beginnings = MAGICS.iter().map(|(mark, _)| mark.to_vec());
        let zlib = [b"x\x9c".to_vec(), b"x\x01".to_vec(), Vec::new()];
        let beginnings: Vec<Vec<u8>> = beginnings.chain(zlib).collect();
        let marked = (prop::sample::select(beginnings), any::<Vec<u8>>());
        let marked = marked.prop_map(|(mark, rest)| [mark, rest].concat());
        prop_oneof![marked, "[ -~]{0,60}".prop_map(String::into_bytes)]
    }

    proptest! {
        #[test]
        fn a_glance_turns_away_nothing_that_a_look_finds(
            content in contents(),
            lines in any::<bool>(),
            before in "[A-Za-z0-9]{0,9}",
        ) {
            let hex = HEXLOWER.encode(&content);
            let base64 = BASE64_NOPAD.encode(&content);
            for (coded, alphabet) in [(base64, Alphabet::Base64), (hex, Alphabet::Hex)] {
                let mut run: Vec<u8> = before.bytes().chain(coded.bytes().rev()).collect();
                if lines && run.len() > 7 {
                    run.splice(run.len() - 5..run.len() - 5, *b"\\n");
                    run.splice(run.len() - 2..run.len() - 2, *b"\r\n");
                }
                let end = |bytes: usize| {
                    let end = span::from(&run, run.len().saturating_sub(bytes));
                    span::from(end, end.len() - alphabet.tail(end))
                };
                if begin(&plain(end(limits::TURNED_LOOK_BYTES), alphabet)).is_some() {
                    let few = end(limits::TURNED_GLANCE_BYTES);
                    prop_assert!(may_begin(few, alphabet), "{run:?}");
                }
            }
        }
    }
}
