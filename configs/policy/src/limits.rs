//! Every bound of the policy language, with its unit and its reason.

/// Greatest length of one source, in bytes: far above any policy a person reads.
pub(crate) const SOURCE_BYTES_MAX: usize = 1 << 20;

/// Greatest length of one rule, in bytes: a target of this length is already unusual.
pub(crate) const RULE_BYTES_MAX: usize = 4096;

/// Greatest number of rules of one policy: evaluation reads them all.
pub(crate) const RULES_MAX: usize = 4096;

/// Greatest number of faults reported at once, so that a wrong file stays readable.
pub(crate) const ERRORS_MAX: usize = 50;

/// Greatest number of secrets of one policy: each is searched for in everything.
pub(crate) const SECRETS_MAX: usize = 32;

/// Greatest length of the text that says where a secret comes from, in bytes.
pub(crate) const SECRET_BYTES_MAX: usize = 1024;

/// Greatest length of a host name, in bytes, without trailing dot (RFC 1035 2.3.4).
pub(crate) const NAME_BYTES_MAX: usize = 253;

/// Greatest length of one label of a host name, in bytes (RFC 1035 2.3.4).
pub(crate) const LABEL_BYTES_MAX: usize = 63;

/// Greatest length of a request target, in bytes: the usual limit of servers is a quarter.
pub(crate) const TARGET_BYTES_MAX: usize = 64 * 1024;

/// Greatest length of a path, in bytes: all its readings are kept at once.
pub(crate) const PATH_BYTES_MAX: usize = 16 * 1024;

/// Greatest length of all structural readings of one path together, in bytes: each
/// is kept, and compared with every rule. Hundreds of readings of a usual path fit.
pub(crate) const READINGS_BYTES_MAX: usize = 256 * 1024;

/// How often a path may be decoded beyond the first time before it counts as
/// hostile: no server is known to decode more than twice.
pub(crate) const DECODE_ROUNDS_MAX: usize = 3;

/// Greatest number of `**` segments of a pattern: each multiplies the work of a match.
pub(crate) const ANY_DEPTH_MAX: usize = 4;

/// Greatest number of pairs of a query that rules are matched against; a query
/// with more is denied by every rule with a query pattern. PHP, `qs` and Node
/// leave away what stands behind the thousandth.
pub(crate) const QUERY_PAIRS_MAX: usize = 1000;

/// Greatest length of the path shown in a denial, in bytes: it goes into a field and a line.
pub(crate) const SHOWN_PATH_BYTES_MAX: usize = 256;

/// Most hosts that a certificate is presented to: each is a pair of files that
/// the gateway keeps.
pub(crate) const CLIENTS_MAX: usize = 64;

/// Bytes of one file of a record at least: below, there would be more files than
/// are kept of one run.
pub(crate) const AUDIT_FILE_BYTES_MIN: u64 = 64 * 1024;

/// Greatest number of known values that hosts are named for: each is looked at
/// where one was found.
pub(crate) const KNOWN_HOSTS_MAX: usize = 256;

/// Most detectors that a policy may speak of: all that are shipped, and as many more.
pub(crate) const DETECTORS_MAX: usize = 256;

/// Most allowances of a policy: each is one host for one detector.
pub(crate) const ALLOWANCES_MAX: usize = 1024;

/// Longest pattern of a user's own detector, in bytes: every start pays for it.
pub(crate) const PATTERN_BYTES_MAX: usize = 1024;

/// Longest description of a user's own detector, in bytes: it stands in denials.
pub(crate) const DESCRIPTION_BYTES_MAX: usize = 80;

/// Most literals and issuers of a user's own detector.
pub(crate) const DETECTOR_LIST_MAX: usize = 16;

/// Most tables of a policy about arguments, most words of one, and the longest, in bytes.
pub(crate) const ARGUMENTS_MAX: usize = 16;
pub(crate) const ARGUMENT_WORDS_MAX: usize = 32;
pub(crate) const ARGUMENT_BYTES_MAX: usize = 256;

/// Most notes of a policy: they stand on a terminal.
pub(crate) const NOTES_MAX: usize = 64;
/// The longest sentence of an operator with every denial, in bytes: it stands in one line
/// with what was denied and why.
pub(crate) const DENIAL_NOTE_BYTES_MAX: usize = 200;

/// The longest note, in bytes.
pub const NOTE_BYTES_MAX: usize = 400;

/// Longest text of a file that is made where it is absent, in bytes: an empty
/// document of its format is shorter.
pub(crate) const MADE_BYTES_MAX: usize = 4096;

/// Most groups of a digest of denials, and all their texts together, in bytes: a command
/// asks for as many paths as it likes, and a person reads a screen of them.
pub(crate) const DIGEST_GROUPS_MAX: usize = 1000;
pub(crate) const DIGEST_BYTES_MAX: usize = 384 * 1024;

/// Longest text of a group, in bytes: a denial with its shown path is shorter.
pub(crate) const DIGEST_TEXT_BYTES_MAX: usize = 768;

/// Most flags of a group: they differ in the keys of a query only.
pub(crate) const DIGEST_RULES_MAX: usize = 8;

/// Most different sightings that a policy is learnt from: a command asks for as many paths as
/// it likes, and a person reads what comes of them.
pub(crate) const SIGHTINGS_MAX: usize = 20_000;

/// Longest text of a sighting, in bytes: it stands in a comment.
pub(crate) const SIGHTING_TEXT_BYTES_MAX: usize = 256;

/// Greatest number of steps of a lock: pipelines have some tens.
pub(crate) const LOCK_STEPS_MAX: usize = 256;

/// Greatest length of the name of a step, in bytes: it stands in one line.
pub(crate) const STEP_BYTES_MAX: usize = 64;

/// Greatest number of commands of one manifest: a person reads what each is granted.
pub const COMMANDS_MAX: usize = 64;

/// Greatest length of a command's name in a manifest, in bytes: it is typed.
pub(crate) const COMMAND_NAME_BYTES_MAX: usize = 64;

/// Greatest number of words of a manifest's command, and of bytes of each.
pub(crate) const COMMAND_WORDS_MAX: usize = 256;
/// See above.
pub(crate) const COMMAND_WORD_BYTES_MAX: usize = 16 * 1024;
