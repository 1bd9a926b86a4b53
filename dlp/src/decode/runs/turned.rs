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

use super::alphabet::Alphabet;
use super::radix::Phase;

/// Looks at a run that ends before `stop`, if what is compressed, or a text, begins at its end.
pub(super) fn look(scan: &mut Scan<'_>, view: &View<'_>, (stop, alphabet): (u64, Alphabet)) {
    let tail = stop.saturating_sub(wide(limits::TURNED_LOOK_BYTES));
    let tail = view.slice(tail.max(view.base), stop);
    let length = tail.iter().rev();
    let length = length.take_while(|byte| alphabet.has(**byte)).count();
    let tail = tail.get(tail.len().saturating_sub(length)..);
    let Some(begin) = begin(&plain(tail.unwrap_or_default(), alphabet)) else {
        return;
    };
    let here = view.slice(view.base, stop);
    let run = here.iter().rev();
    let run = run.take_while(|byte| alphabet.has(**byte)).count();
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
