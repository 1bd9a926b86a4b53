//! Where the bytes of a layer come from in the outermost stream: marks for each piece
//! that was decoded, and no more than they tell.

use std::collections::VecDeque;

/// Where the bytes of a layer come from in the outermost stream.
#[derive(Default)]
pub(crate) struct Origins {
    /// Offsets of the layer and of the outermost stream; none for that itself.
    marks: VecDeque<(u64, u64)>,
    is_derived: bool,
}

impl Origins {
    /// The offset in the outermost stream, never too large.
    pub(crate) fn of(&self, offset: u64) -> u64 {
        if !self.is_derived {
            return offset;
        }
        let after = self.marks.partition_point(|(own, _)| *own <= offset);
        let before = after.saturating_sub(1);
        self.marks.get(before).map_or(0, |(_, outer)| *outer)
    }

    /// From this offset of the layer on its bytes come from there.
    pub(crate) fn note(&mut self, own: u64, outer: u64) {
        self.is_derived = true;
        let last = self.marks.back();
        let is_new = last.is_none_or(|(known, origin)| *known != own && *origin != outer);
        if is_new {
            self.marks.push_back((own, outer));
        }
    }

    /// Forgets what no offset from here on needs.
    pub(crate) fn forget(&mut self, before: u64) {
        while self.marks.get(1).is_some_and(|(own, _)| *own <= before) {
            self.marks.pop_front();
        }
    }

    /// Forgets all of it but that it is derived.
    pub(crate) fn clear(&mut self) {
        self.marks.clear();
    }
}
