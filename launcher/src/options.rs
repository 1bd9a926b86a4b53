//! What a run is asked for.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use outgate_handoff::{AskTimes, RecordRotation};
use outgate_policy::Source;

use crate::door::Door;
use crate::environment::Variables;
use crate::git::GitSettings;
use crate::leftovers::LeftoversMode;
use crate::placeholders::Planter;
use crate::reload::Reader;
use crate::trust::TrustMeans;
use crate::withheld::Credentials;

/// What to run and how.
#[derive(Debug)]
pub struct RunOptions {
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
    /// `audit` is a directory then, for files that follow one another.
    pub rotation: Option<RecordRotation>,
    /// The shared gateway to use; `None`: one of its own.
    pub gateway: Option<Door>,
    /// Files with certificates that origins may be verified with, beside the
    /// system's.
    pub upstream_ca: Vec<PathBuf>,
    /// The upstream proxy, as the command line names it; a URL or `none`.
    pub upstream_proxy: Option<String>,
    /// The user's settings of git, for a command that may not read them.
    pub git: Option<GitSettings>,
    /// One line about the repository of a linked work tree, which is granted with it.
    pub repository: Option<String>,
    /// What makes false credentials.
    pub planter: Planter,
    /// Whether the policy may change while the run goes on.
    pub sealing: Sealing,
    /// How long a person is asked about what no rule decides.
    pub ask: AskTimes,
    /// A program of the user's that answers in a person's place, for a shell.
    pub ask_with: Option<String>,
    /// How its texts are read again.
    pub reader: Reader,
    /// Whether the summary is said at the end.
    pub summary: Summary,
    /// Whether files that were opened in vain are said at the end.
    pub files: FileReport,
    /// What is done about files that run later.
    pub leftovers: LeftoversMode,
    /// How the command is made to trust what the gateway opens.
    pub trust: TrustMeans,
    /// Where the user's own authority is, if there is one: no command has its key.
    pub authority: Option<PathBuf>,
    /// Where what the user accepted of manifests is kept: no command writes there.
    pub accepted: Option<PathBuf>,
}

/// Whether a run's policy may be changed while it goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sealing {
    /// Its user may change it.
    Open,
    /// Nobody may.
    Sealed,
}

/// Whether files that were opened in vain are said at the end of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileReport {
    /// They are; each open is held for that.
    Say,
    /// They are not.
    Omit,
}

/// Whether the summary is said at the end of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Summary {
    /// It is.
    Say,
    /// It is not.
    Omit,
}

impl RunOptions {
    /// The home directory of who runs it.
    pub(crate) fn home(&self) -> Option<&OsStr> {
        let home = self.variables.get(OsStr::new("HOME"));
        home.map(OsString::as_os_str)
    }
}
