//! Where in a text a window of a known value may stand: every so many bytes four of
//! them are looked up. Wherever a window stands, one of the successive runs of four
//! bytes in its middle is at such a place: they are its anchors. Knows neither values
//! nor forms.

use super::hash::{AnchorFilter, Mix, quick};
use crate::span;

/// Bytes of an anchor.
const ANCHOR_BYTES: usize = 4;

/// Every so many bytes one is looked for: the longest of these steps that the shortest
/// window allows.
const STEPS: [usize; 3] = [16, 8, 4];

/// Bits of the beginning of a hash, at most.
const HEADS_LOG_MAX: u32 = 16;

/// So many places are looked at together.
const TOGETHER: usize = 8;

/// Collects the anchors of windows.
pub(super) struct AnchorsBuilder {
    key: [u8; 32],
    mix: Mix,
    list: Vec<PlacedAnchor>,
    step: usize,
}

/// An anchor, and how many of its window come before it.
struct PlacedAnchor {
    anchor: WindowAnchor,
    place: u32,
    before: usize,
}

/// The anchors of all windows.
pub(super) struct Anchors {
    /// Sorted by hash.
    list: Vec<WindowAnchor>,
    /// For each beginning of a hash where in the list the first anchor with it, or with a
    /// greater one, stands.
    heads: Vec<u32>,
    /// By how much a hash is shifted to be its beginning.
    shift: u32,
    filter: AnchorFilter,
    step: usize,
    key: [u8; 32],
}

#[derive(Clone, Copy)]
pub(super) struct WindowAnchor {
    hash: u32,
    pub(super) window: usize,
    /// Where in the window it stands.
    pub(super) offset: usize,
}

impl AnchorsBuilder {
    pub(super) fn new(key: [u8; 32]) -> Self {
        let [step, ..] = STEPS;
        Self {
            key,
            mix: Mix::new(&key),
            list: Vec::new(),
            step,
        }
    }

    /// Adds the window of that number. It has seven bytes or more.
    pub(super) fn add(&mut self, window: usize, text: &[u8]) {
        let [.., least] = STEPS;
        let fits = |step: &usize| step.saturating_add(ANCHOR_BYTES - 1) <= text.len();
        let step = STEPS.into_iter().find(fits).unwrap_or(least);
        self.step = self.step.min(step);
        let first = text
            .len()
            .saturating_sub(step.saturating_add(ANCHOR_BYTES - 1))
            / 2;
        let fours = span::from(text, first).windows(ANCHOR_BYTES);
        for (before, four) in fours.take(step).enumerate() {
            let Some(four) = four.first_chunk() else {
                continue;
            };
            let bytes = u32::from_le_bytes(*four);
            self.list.push(PlacedAnchor {
                anchor: WindowAnchor {
                    hash: quick(&self.key, bytes),
                    window,
                    offset: first.saturating_add(before),
                },
                place: self.mix.place(bytes),
                before,
            });
        }
    }

    pub(super) fn build(mut self) -> Anchors {
        let [longest, ..] = STEPS;
        self.list.retain(|made| made.before < self.step);
        let places: Vec<u32> = self.list.iter().map(|made| made.place).collect();
        let mut list: Vec<WindowAnchor> = self.list.into_iter().map(|made| made.anchor).collect();
        list.sort_by_key(|anchor| anchor.hash);
        // Where fewer places are looked at more of them may be met by chance.
        let share = if self.step == longest { 32 } else { 64 };
        let bits = list
            .len()
            .next_power_of_two()
            .trailing_zeros()
            .clamp(1, HEADS_LOG_MAX);
        let shift = u32::BITS.saturating_sub(bits);
        let head = |head: u32| {
            let first = list.partition_point(|anchor| anchor.hash >> shift < head);
            u32::try_from(first).unwrap_or(u32::MAX)
        };
        Anchors {
            heads: (0..=1 << bits).map(head).collect(),
            shift,
            list,
            filter: AnchorFilter::new(self.mix, &places, share),
            step: self.step,
            key: self.key,
        }
    }
}

impl Anchors {
    /// The first answer to a place behind `from`, or shortly before, at which an anchor
    /// seems to stand.
    pub(super) fn find<T>(
        &self,
        text: &[u8],
        from: usize,
        ask: impl Fn(usize, &[WindowAnchor]) -> Option<T>,
    ) -> Option<T> {
        match self.step {
            16 => self.find_by::<16, T>(text, from, ask),
            8 => self.find_by::<8, T>(text, from, ask),
            _ => self.find_by::<4, T>(text, from, ask),
        }
    }

    fn find_by<const STEP: usize, T>(
        &self,
        text: &[u8],
        from: usize,
        ask: impl Fn(usize, &[WindowAnchor]) -> Option<T>,
    ) -> Option<T> {
        let begin = from.saturating_sub(from % STEP);
        let (blocks, rest) = span::from(text, begin).as_chunks::<STEP>();
        let here = |block: &[u8]| block.first_chunk().map(|four| u32::from_le_bytes(*four));
        let holds = |block: &[u8]| here(block).filter(|bytes| self.filter.holds(*bytes));
        let ask = |bytes: u32, at: usize| ask(at.saturating_add(begin), self.same(bytes));
        for (number, group) in blocks.chunks(TOGETHER).enumerate() {
            // Most hold none: one branch for all of them.
            let held = |held: bool, block: &[u8; STEP]| held | holds(block).is_some();
            if !group.iter().fold(false, held) {
                continue;
            }
            let first = number.saturating_mul(TOGETHER);
            for (place, block) in group.iter().enumerate() {
                let at = first.saturating_add(place).saturating_mul(STEP);
                let found = holds(block).and_then(|bytes| ask(bytes, at));
                if found.is_some() {
                    return found;
                }
            }
        }
        let at = blocks.len().saturating_mul(STEP);
        holds(rest).and_then(|bytes| ask(bytes, at))
    }

    /// The anchors that have these bytes, or others of the same hash.
    fn same(&self, bytes: u32) -> &[WindowAnchor] {
        let hash = quick(&self.key, bytes);
        let head = usize::try_from(hash >> self.shift).unwrap_or_default();
        let place =
            |head: usize| usize::try_from(span::entry(&self.heads, head)).unwrap_or(usize::MAX);
        let near = place(head)..place(head.saturating_add(1));
        let near = span::within(&self.list, near);
        let first = near.iter().take_while(|anchor| anchor.hash < hash).count();
        let same = span::from(near, first);
        let count = same.iter().take_while(|anchor| anchor.hash == hash).count();
        span::upto(same, count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_anchor_is_met_wherever_a_window_stands() {
        let window = b"kQ3xW9-mmB27_TlRz0Vhd";
        for length in 7..=window.len() {
            let window = &window[..length];
            let mut builder = AnchorsBuilder::new([7; 32]);
            builder.add(3, window);
            let anchors = builder.build();
            for skip in 0..40 {
                let text = [&vec![b'.'; skip], window].concat();
                let found = anchors.find(&text, 0, |at, same| {
                    let mut starts = same.iter().map(|anchor| at.checked_sub(anchor.offset));
                    starts.any(|start| start == Some(skip)).then_some(at)
                });
                assert!(found.is_some(), "{length} bytes behind {skip}");
            }
        }
    }

    #[test]
    fn the_shortest_window_says_how_far_apart_places_are() {
        let step = |lengths: &[usize]| {
            let mut builder = AnchorsBuilder::new([7; 32]);
            for (number, length) in lengths.iter().enumerate() {
                builder.add(number, &b"kQ3xW9-mmB27_TlRz0Vhd"[..*length]);
            }
            let anchors = builder.build();
            assert_eq!(anchors.list.len(), anchors.step * lengths.len());
            anchors.step
        };
        assert_eq!(step(&[19, 21]), 16);
        assert_eq!(step(&[21, 18]), 8);
        assert_eq!(step(&[11, 21]), 8);
        assert_eq!(step(&[21, 10, 11]), 4);
    }
}
