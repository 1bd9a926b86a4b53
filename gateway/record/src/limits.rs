//! How much of records is read: whoever wrote a record that is not ours had no bounds, and
//! a report holds many texts.

/// Runs whose chains are followed at once when a record is verified.
pub(crate) const CHAINS_MAX: usize = 100_000;

/// Bytes of a text.
pub(crate) const TEXT_BYTES_MAX: usize = 2048;
/// Items of a list.
pub(crate) const ITEMS_MAX: usize = 64;
/// Bytes of the items of a list together.
pub(crate) const LIST_BYTES_MAX: usize = 8 * 1024;
/// Bytes of the name of a host or of a program; real ones have no more.
pub(crate) const NAME_BYTES_MAX: usize = 255;

/// Bytes of lines that one compressed block should have: enough to compress well, few enough
/// that a search which opens one opens little.
pub(crate) const BLOCK_BYTES_WANTED: usize = 1024 * 1024;
/// Bytes of lines that it may have: its last line is whole.
pub(crate) const BLOCK_BYTES_MAX: usize = 2 * 1024 * 1024;
