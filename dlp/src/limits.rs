//! Every bound of the scan, with its unit and its reason.

/// Longest host, in bytes (RFC 1035 2.3.4).
pub(crate) const HOST_BYTES_MAX: usize = 253;

/// Most detectors of one ruleset.
pub(crate) const DETECTORS_MAX: usize = 4096;

/// Longest match a detector may have, in bytes: so much may have to be held.
pub(crate) const MATCH_BYTES_MAX: usize = 8192;

/// Longest literal of a detector, in bytes: so much of every step is read twice.
pub(crate) const LITERAL_BYTES_MAX: usize = 64;

/// Shortest literal, in bytes: shorter ones are everywhere.
pub(crate) const LITERAL_BYTES_MIN: usize = 2;

/// Largest compiled pattern, in bytes.
pub(crate) const PATTERN_BYTES_MAX: usize = 4 << 20;
