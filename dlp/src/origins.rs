//! Where the bytes of a layer come from in the outermost stream: marks for each piece
//! that was decoded, and no more than they tell.

use std::collections::VecDeque;

/// Where the bytes of a layer come from in the outermost stream.
#[derive(Default)]
pub(crate) struct LayerOrigins {
    /// Offsets of the layer and of the outermost stream; none for that itself.
    marks: VecDeque<(u64, u64)>,
    /// Where the last piece ends, in both, if somebody said so.
    end: Option<(u64, u64)>,
    is_derived: bool,
}

impl LayerOrigins {
    /// The offset in the outermost stream, never too large.
    pub(crate) fn of(&self, offset: u64) -> u64 {
        if !self.is_derived {
            return offset;
        }
        let before = self.behind(offset).saturating_sub(1);
        self.marks.get(before).map_or(0, |(_, outer)| *outer)
    }

    /// The first and the last offset in the outermost stream at which a place of a layer
    /// may stand that an escape was removed from: a byte in it stands for one or several.
    /// The last one is nothing where it cannot be told.
    pub(crate) fn reach(&self, offset: u64) -> (u64, Option<u64>) {
        if !self.is_derived {
            return (offset, Some(offset));
        }
        let behind = self.behind(offset);
        let mark = self.marks.get(behind.saturating_sub(1));
        let first = mark.map_or(0, |(own, outer)| {
            outer.saturating_add(offset.saturating_sub(*own))
        });
        let next = self.marks.get(behind).copied().or(self.end);
        let last = next.and_then(|(own, outer)| outer.checked_sub(own.checked_sub(offset)?));
        (first, last.filter(|last| *last >= first))
    }

    /// The first mark behind this offset, by its number.
    fn behind(&self, offset: u64) -> usize {
        self.marks.partition_point(|(own, _)| *own <= offset)
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

    /// What comes before this offset of the layer comes from before there.
    pub(crate) fn limit(&mut self, own: u64, outer: u64) {
        self.end = Some((own, outer));
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
        self.end = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_lies_between_what_was_shortened_before_and_behind_it() {
        let mut origins = LayerOrigins::default();
        assert_eq!(origins.reach(7), (7, Some(7)));
        origins.note(0, 100);
        assert_eq!(origins.reach(7), (107, None));
        // Ten bytes became eight.
        origins.limit(8, 110);
        assert_eq!((origins.of(5), origins.reach(5)), (100, (105, Some(107))));
        origins.note(8, 110);
        origins.limit(12, 114);
        assert_eq!(origins.reach(5), (105, Some(107)));
        assert_eq!(origins.reach(9), (111, Some(111)));
        origins.clear();
        assert_eq!(origins.reach(5), (0, None));
    }
}
