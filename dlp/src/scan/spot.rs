//! Where something was found, and what is known of the bytes around it.

use crate::budget::wide;
use crate::index::Transform;
use crate::origins::LayerOrigins;
use crate::position::Spread;
use crate::trail::Trail;

/// Where something was found.
pub(crate) struct Spot<'a> {
    /// Offset in the outermost stream.
    pub(crate) offset: u64,
    /// Where the bytes that were looked at come from, and the offset of the first of them
    /// in their layer, if that is known.
    pub(crate) around: Option<(&'a LayerOrigins, u64)>,
    /// How the layer came about.
    pub(crate) trail: &'a Trail,
    /// What was done to the bytes before they were looked at.
    pub(crate) transform: Transform,
    /// What stands before it, as far as that is there.
    pub(crate) before: &'a [u8],
    /// What it stands in, as it is there, and where a place of it is.
    pub(crate) within: (&'a [u8], usize),
}

impl Spot<'_> {
    /// Where in the outermost stream that begins which stands at `start` of the bytes that
    /// were looked at.
    pub(super) fn spread(&self, start: usize) -> Spread {
        let reach = match (self.transform, self.around) {
            (Transform::None, Some((origins, base))) => {
                origins.reach(base.saturating_add(wide(start)))
            }
            (Transform::None | Transform::Reversed(_) | Transform::Rot13, _) => (self.offset, None),
        };
        Spread::of(self.trail, self.offset, reach)
    }
}
