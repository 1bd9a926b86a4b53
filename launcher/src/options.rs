//! What a run is asked for.

use std::ffi::OsString;
use std::path::PathBuf;

use outgate_policy::Source;

use crate::door::Door;
use crate::environment::Variables;
use crate::git::Settings;
use crate::leftovers::Mode;
use crate::placeholders::Planter;
use crate::trust::Way;
use crate::withheld::Credentials;

/// What to run and how.
#[derive(Debug)]
pub struct Options {
    /// Policy texts in merge order.
    pub sources: Vec<Source>,
    /// The options about files as its user wrote them, for a question about the same run.
    pub about_files: Vec<String>,
    /// Files of the user that say what is allowed, beside policies.
    pub consulted: Vec<PathBuf>,
    /// Program and arguments; at least the program.
    pub command: Vec<OsString>,
    /// The caller's environment, as far as the command may inherit it.
    pub variables: Variables,
    /// Variables the command gets whatever the policy passes.
    pub set: Variables,
    /// What holds credentials among the caller's variables.
    pub credentials: Credentials,
    /// Name of the sandbox, for records.
    pub name: Option<String>,
    /// Where records go; `None`: the state directory.
    pub audit: Option<PathBuf>,
    /// The shared gateway to use; `None`: one of its own.
    pub gateway: Option<Door>,
    /// Files with certificates that origins may be verified with, beside the
    /// system's.
    pub upstream_ca: Vec<PathBuf>,
    /// The upstream proxy, as the command line names it; a URL or `none`.
    pub upstream_proxy: Option<String>,
    /// The user's settings of git, for a command that may not read them.
    pub git: Option<Settings>,
    /// What makes false credentials.
    pub planter: Planter,
    /// Whether the summary is said at the end.
    pub summary: Summary,
    /// What is done about files that run later.
    pub leftovers: Mode,
    /// How the command is made to trust what the gateway opens.
    pub trust: Way,
    /// Where the user's own authority is, if there is one: no command has its key.
    pub authority: Option<PathBuf>,
}

/// Whether the summary is said at the end of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Summary {
    /// It is.
    Say,
    /// It is not.
    Omit,
}
