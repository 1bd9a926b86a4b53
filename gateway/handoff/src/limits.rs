//! How large anything in a frame may be, and how much of it there is. What is larger is the
//! sender's fault, and ends the session.

/// Largest frame, header included, in bytes. Below the smallest default
/// `net.core.wmem_default`, so that one frame always fits the socket.
pub const FRAME_BYTES_MAX: usize = 60 * 1024;

/// Bytes of policy text one source frame carries at most.
pub const SOURCE_CHUNK_BYTES_MAX: usize = 48 * 1024;

/// Bytes of an authority's certificate in PEM. One has about 700.
pub const AUTHORITY_BYTES_MAX: usize = 4 * 1024;

/// Bytes of policy text one session sends at most, all sources together.
pub const POLICY_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Settings that a gateway is told at most: a few, and each file of certificates.
pub const SETTINGS_MAX: usize = 1024;

/// Pieces of policy text one session sends at most.
pub const SOURCES_MAX: usize = 4096;

/// Descriptors one frame carries at most.
pub const DESCRIPTORS_MAX: usize = 2;

/// Bytes of a path (`PATH_MAX`, limits.h).
pub const PATH_BYTES_MAX: usize = 4096;

/// Bytes of a short text: sandbox name, build version, place of a source.
pub const NAME_BYTES_MAX: usize = 512;

/// Bytes of a line meant for a person.
pub const LINE_BYTES_MAX: usize = 2048;

/// Lines of the summary of a run: what fits a screen beside what the command said.
pub const SUMMARY_LINES_MAX: usize = 20;

/// Bytes of the summary: half of what its lines might be long, of which few are.
pub const SUMMARY_BYTES_MAX: usize = SUMMARY_LINES_MAX / 2 * LINE_BYTES_MAX;

/// Addresses a direct answer lists at most.
pub const ADDRESSES_MAX: usize = 8;

/// Ancestors a question lists at most.
pub const PARENTS_MAX: usize = 6;

/// Places of a policy that a status lists at most.
pub const PLACES_MAX: usize = 32;

/// Bytes of the text of a rule that is granted while a run goes on.
pub const GRANT_BYTES_MAX: usize = 2048;

/// Bytes of what a command says with a rule that it proposes: some lines of a terminal.
pub const WORDS_BYTES_MAX: usize = 640;
/// Bytes of the largest frame to a launcher that `outgate` asks.
pub const TO_RUN_BYTES_MAX: usize = crate::HEADER_BYTES + GRANT_BYTES_MAX + 16;
