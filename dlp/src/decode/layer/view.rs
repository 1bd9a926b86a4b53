//! What the codings in a layer see of it.

use super::Until;
use crate::budget::{narrow, wide};
use crate::decode::classes::Classes;
use crate::origins::Origins;
use crate::trail::Trail;

/// What of a layer can be looked at from its codings.
#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) base: u64,
    pub(crate) origins: &'a Origins,
    pub(crate) trail: &'a Trail,
    pub(crate) classes: &'a Classes,
    pub(crate) until: Until,
}

impl<'a> View<'a> {
    /// The offset behind the last byte.
    pub(crate) fn end(&self) -> u64 {
        self.base.saturating_add(wide(self.bytes.len()))
    }

    /// The bytes of a range of offsets, as far as they are there.
    pub(crate) fn slice(&self, from: u64, to: u64) -> &'a [u8] {
        let from = narrow(from.saturating_sub(self.base)).min(self.bytes.len());
        let to = narrow(to.saturating_sub(self.base)).min(self.bytes.len());
        self.bytes.get(from..to).unwrap_or_default()
    }

    /// The offset in the outermost stream.
    pub(crate) fn origin(&self, offset: u64) -> u64 {
        self.origins.of(offset)
    }
}
