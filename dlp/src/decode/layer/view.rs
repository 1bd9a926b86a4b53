//! What the codings in a layer see of it.

use super::LayerExtent;
use crate::budget::wide;
use crate::decode::classes::Classes;
use crate::origins::LayerOrigins;
use crate::span::{Lost, Offset, Span};
use crate::trail::Trail;

/// What of a layer can be looked at from its codings.
#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) base: u64,
    pub(crate) origins: &'a LayerOrigins,
    pub(crate) trail: &'a Trail,
    pub(crate) classes: &'a Classes,
    pub(crate) until: LayerExtent,
    /// Where what is not there ends the scan.
    pub(crate) lost: &'a Lost,
}

impl<'a> View<'a> {
    /// The offset behind the last byte.
    pub(crate) fn end(&self) -> u64 {
        self.base.saturating_add(wide(self.bytes.len()))
    }

    /// The bytes of a range of offsets, all of which have to be there.
    #[track_caller]
    pub(crate) fn slice(&self, from: u64, to: u64) -> &'a [u8] {
        self.lost
            .found(Span::new(from, to).of(self.bytes, self.base))
    }

    /// The bytes of a range of offsets as far as they came; none that came was forgotten.
    #[track_caller]
    pub(crate) fn so_far(&self, from: u64, to: u64) -> &'a [u8] {
        let to = to.min(self.end());
        if from > to {
            return &[];
        }
        self.slice(from, to)
    }

    /// Where an offset lies among the bytes.
    #[track_caller]
    pub(crate) fn place(&self, offset: u64) -> usize {
        self.lost
            .found(Offset(offset).within(self.base, self.bytes.len()))
    }

    /// The bytes of a range of offsets, as far as they are there.
    pub(crate) fn around(&self, from: u64, to: u64) -> &'a [u8] {
        Span::new(from, to).around(self.bytes, self.base)
    }

    /// The offset in the outermost stream.
    pub(crate) fn origin(&self, offset: u64) -> u64 {
        self.origins.of(offset)
    }
}
