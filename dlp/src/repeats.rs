//! Short runs that were looked at and of which nothing was told, or that had too few symbols:
//! sources and documents spell the same names again and again. Keeps runs as they stand, so
//! that none is taken for another, and forgets one for the next.

use crate::limits;

/// The length of a run, and the run.
type Slot = [u8; limits::REPEAT_BYTES];

/// See the head of this file.
#[derive(Default)]
pub(crate) struct Repeats {
    slots: Vec<Slot>,
}

impl Repeats {
    /// Whether a run did not come before; it has from now on, though it may still have to
    /// be looked at: see [`Repeats::forget`].
    pub(crate) fn is_new(&mut self, run: &[u8]) -> bool {
        let Some(own) = slot(run) else {
            return true;
        };
        if self.slots.is_empty() {
            self.slots
                .resize(limits::REPEATS_MAX, [0; limits::REPEAT_BYTES]);
        }
        let known = self.slots.get_mut(place(&own));
        known.is_none_or(|known| std::mem::replace(known, own) != own)
    }

    /// Forgets all of them: of some something was told, and nobody knows which.
    pub(crate) fn forget(&mut self) {
        self.slots.clear();
    }
}

/// What is kept of a run; nothing of one that is too long.
fn slot(run: &[u8]) -> Option<Slot> {
    let mut slot = [0; limits::REPEAT_BYTES];
    let [length, rest @ ..] = &mut slot;
    rest.get_mut(..run.len())?.copy_from_slice(run);
    *length = u8::try_from(run.len()).ok()?;
    Some(slot)
}

/// Where a run is kept.
fn place(slot: &Slot) -> usize {
    let (words, _) = slot.as_chunks();
    let mixed = words.iter().fold(0_u64, |mixed, word| {
        (mixed.rotate_left(5) ^ u64::from_le_bytes(*word)).wrapping_mul(0x517c_c1b7_2722_0a95)
    });
    usize::try_from(mixed >> 32).unwrap_or_default() % limits::REPEATS_MAX
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn only_what_came_before_is_not_new(
            runs in proptest::collection::vec("[ab]{22}|[a-z]{22,40}", 1..400),
        ) {
            let mut repeats = Repeats::default();
            let mut before = std::collections::HashSet::new();
            for run in runs {
                let is_new = repeats.is_new(run.as_bytes());
                prop_assert!(is_new || before.contains(&run));
                if run.len() < limits::REPEAT_BYTES {
                    prop_assert!(!repeats.is_new(run.as_bytes()));
                } else {
                    prop_assert!(is_new);
                }
                before.insert(run);
            }
            repeats.forget();
            let held = before.iter().find(|run| !repeats.is_new(run.as_bytes()));
            prop_assert!(held.is_none(), "{:?}", held);
        }
    }
}
