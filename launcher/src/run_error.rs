//! Why a run did not start: in words, as an exit status, and what to do about
//! it. Prints nothing.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::unistd::{AccessFlags, access};
use outgate_policy::{
    PolicyErrors, PresetKind, Source, SourceKind, preset, preset_kind, preset_names, printable,
};
use outgate_sys::spawn::{ChildStep, StartError};

use crate::options::RunOptions;
use crate::plan::PlanError;
use crate::ruleset::LandlockError;
use crate::secrets::SecretError;
use crate::source_text::PolicyTextError;
use crate::standard::StandardError;
use crate::text::shell_word;

/// Why a run did not start. The exit status is in [`RunError::status`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// A policy text cannot be had.
    #[error(transparent)]
    Source(#[from] PolicyTextError),
    /// The policy has faults.
    #[error(transparent)]
    Policy(#[from] PolicyErrors),
    /// The policy asks for what only the one who starts a run can say.
    #[error("the policy sets `{key}`, which only who starts a run can say")]
    NotEnforced {
        /// The key.
        key: &'static str,
    },
    /// Nobody said that the command may write the home directory.
    #[error(
        "the working directory `{directory}` is or holds the home directory `{home}`: the command \
         could read and write all of it, keys and settings included"
    )]
    Home {
        /// The working directory.
        directory: String,
        /// The home directory.
        home: String,
    },
    /// Nobody said that the command may write a place of secrets or of programs.
    #[error(
        "the working directory `{directory}` is, holds or is in `{place}`, where credentials or \
         what other programs run lies: the command could read and write all of it"
    )]
    Guarded {
        /// The working directory.
        directory: String,
        /// The place.
        place: String,
    },
    /// A link in the home directory leads where no shipped policy may grant anything.
    #[error("{place}: `{path}` is a link that leads {why}: `{target}`")]
    Link {
        /// Where the policy grants it.
        place: String,
        /// What it grants.
        path: String,
        /// Where that leads.
        target: String,
        /// What is wrong there.
        why: &'static str,
    },
    /// A variable moves what a shipped policy grants to where no program keeps its files.
    #[error(
        "the variable {variable} has the command write `{path}` ({place}), which is, holds or is in a place of secrets or of programs"
    )]
    Moved {
        /// Name of the variable.
        variable: String,
        /// Where the policy says so.
        place: String,
        /// What it would write.
        path: String,
    },
    /// The command could alter the record of its own decisions.
    #[error("the record `{record}` lies where the command may write (`{grant}`)")]
    Record {
        /// Where records go.
        record: String,
        /// The grant that covers it.
        grant: String,
    },
    /// The command could say itself what the next run allows.
    #[error(
        "`{file}`, by which a preset allows hosts, lies where the command may write (`{grant}`)"
    )]
    Consulted {
        /// The user's configuration.
        file: String,
        /// The grant that covers it.
        grant: String,
    },
    /// The command could write what is run outside of its confinement.
    #[error("{what}, `{file}`, lies where the command may write (`{grant}`)")]
    RunsOutside {
        /// What it is for.
        what: String,
        /// The program, or a file that its command line names.
        file: String,
        /// The grant that covers it.
        grant: String,
    },
    /// Standard output cannot hold the record.
    #[error("the record cannot go to `{record}`: standard output is the command's own")]
    RecordOutput {
        /// Where records were to go.
        record: String,
    },
    /// Nobody can tell what the record will be.
    #[error("the record `{record}` leads nowhere: a link on its way is broken")]
    RecordLost {
        /// Where records were to go.
        record: String,
    },
    /// The command may have the record under another name.
    #[error(
        "the record `{record}` has {names} names (hard links): the command may write it by another"
    )]
    RecordNames {
        /// Where records were to go.
        record: String,
        /// How many names the file has.
        names: u64,
    },
    /// The command could put a gateway of its own in the place of the shared one.
    #[error("the gateway's socket `{socket}` lies where the command may write (`{grant}`)")]
    Socket {
        /// The socket.
        socket: String,
        /// The grant that covers it.
        grant: String,
    },
    /// A shared gateway keeps one record for all.
    #[error("with a shared gateway the run has no record of its own (`{record}`)")]
    Recorded {
        /// The record that was asked for.
        record: String,
    },
    /// The shared gateway does not serve this run.
    #[error("the gateway at `{socket}`: {reason}")]
    Gateway {
        /// Its socket.
        socket: String,
        /// Why not.
        reason: String,
    },
    /// A file with a key cannot be used, or the command could have it.
    #[error(transparent)]
    Secret(SecretError),
    /// Keys are read by the gateway, and this one is not ours.
    #[error(
        "with a shared gateway, its operator names the authority, certificates for hosts and secrets to look for"
    )]
    NotOurs,
    /// The gateway does not serve this run, and said why.
    #[error("{reason}")]
    Unready {
        /// Its words.
        reason: String,
    },
    /// A standard stream must not be inherited.
    #[error(transparent)]
    Standard(#[from] StandardError),
    /// The plan cannot be made.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// There is no place for the private directory: the operator.
    #[error("no private directory can be made in `{parent}`")]
    Private {
        /// Where it was to be.
        parent: String,
        /// Why not.
        #[source]
        source: std::io::Error,
    },
    /// The machine lacks something: the operator.
    #[error("{what}")]
    Machine {
        /// What was tried.
        what: &'static str,
        /// Why it did not work.
        #[source]
        source: std::io::Error,
    },
    /// The machine lacks what every run needs: the operator.
    #[error("{reason}")]
    Lacking {
        /// What, and what follows.
        reason: String,
    },
    /// The command cannot be confined.
    #[error("{}", describe_step(*.step))]
    Confine {
        /// Where it stopped.
        step: ChildStep,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// Another supervisor holds the calls of this process.
    #[error(
        "another supervisor already holds the calls of this process, and the kernel allows one"
    )]
    Nested,
    /// The program does not exist.
    #[error("`{program}` is not found")]
    NotFound {
        /// As it was given.
        program: String,
    },
    /// The program cannot be executed.
    #[error("`{program}` cannot be executed")]
    NotExecutable {
        /// As it was given.
        program: String,
        /// What may hide it.
        files: Files,
        /// The directory that would have to be readable, where the program is one that its
        /// user may execute.
        hidden: Option<PathBuf>,
        /// Why.
        #[source]
        source: std::io::Error,
    },
}

/// Which files of the machine a policy starts from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Files {
    /// Those of a shipped policy.
    Shipped,
    /// None but those that the user named.
    Named,
}

impl Files {
    fn of(sources: &[Source]) -> Self {
        let shipped = |source: &Source| {
            let about_files = |name: &&&str| {
                let kind = preset_kind(name);
                **name != "none" && matches!(kind, Some(PresetKind::Files | PresetKind::Agent))
            };
            let names = preset_names().iter().filter(about_files);
            let mut texts = names.filter_map(|name| preset(name));
            source.kind == SourceKind::Document && texts.any(|text| text == source.text)
        };
        if sources.iter().any(shipped) {
            Self::Shipped
        } else {
            Self::Named
        }
    }
}

impl From<SecretError> for RunError {
    fn from(error: SecretError) -> Self {
        match error {
            SecretError::Policy(errors) => Self::Policy(errors),
            other => Self::Secret(other),
        }
    }
}

impl RunError {
    /// The exit status of outgate for this error.
    pub fn status(&self) -> u8 {
        match self {
            Self::Source(_)
            | Self::Policy(_)
            | Self::NotEnforced { .. }
            | Self::Home { .. }
            | Self::Guarded { .. }
            | Self::Link { .. }
            | Self::Moved { .. }
            | Self::Record { .. }
            | Self::Consulted { .. }
            | Self::RunsOutside { .. }
            | Self::RecordOutput { .. }
            | Self::RecordLost { .. }
            | Self::RecordNames { .. }
            | Self::Socket { .. }
            | Self::Recorded { .. }
            | Self::Secret(_)
            | Self::NotOurs
            | Self::Plan(
                PlanError::Nul { .. }
                | PlanError::Ruleset(
                    LandlockError::Path { .. }
                    | LandlockError::Wide { .. }
                    | LandlockError::Laid { .. },
                ),
            ) => 2,
            Self::NotFound { .. } => 127,
            Self::NotExecutable { .. } => 126,
            Self::Plan(
                PlanError::Filter(_)
                | PlanError::Ruleset(
                    LandlockError::Abi { .. }
                    | LandlockError::Kernel(_)
                    | LandlockError::Rule { .. },
                ),
            )
            | Self::Standard(_)
            | Self::Private { .. }
            | Self::Machine { .. }
            | Self::Lacking { .. }
            | Self::Confine { .. }
            | Self::Gateway { .. }
            | Self::Unready { .. }
            | Self::Nested => 125,
        }
    }

    /// What to do about it, where that is known.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Source(PolicyTextError::Client { error, .. }) => Some(error.hint()),
            Self::NotExecutable {
                program,
                files,
                hidden,
                source,
            } if source.raw_os_error() == Some(Errno::EACCES as i32) => Some(match files {
                Files::Named => "with `-p`, `-r` or `-w` alone the directories of the system are \
                                 hidden: add them with `-P base`"
                    .to_owned(),
                Files::Shipped => match hidden {
                    Some(directory) => format!(
                        "the policy hides it or what it needs: `-r {}` grants its directory",
                        shell_word(&printable(&directory.to_string_lossy()))
                    ),
                    None => format!(
                        "if the file is executable, the policy hides it or its interpreter: grant \
                         its directory with `-r DIR` or see `which {program}`"
                    ),
                },
            }),
            Self::NotFound { program } if program.contains(char::is_whitespace) => Some(format!(
                "it is one word: leave the quotes away (`outgate run -- {}`), or have a shell \
                     read it: `sh -c '...'`",
                printable(program)
            )),
            _ => self.advice().map(str::to_owned),
        }
    }

    /// What to do, where that does not depend on names and values.
    fn advice(&self) -> Option<&'static str> {
        Some(match self {
            Self::Nested => {
                "outgate cannot run inside outgate or inside a container manager that holds \
                 calls; run it outside"
            }
            Self::Home { .. } | Self::Guarded { .. } => {
                "run in a directory of its own, such as that of a project, or say that it is \
                 meant: `-P base -w .`"
            }
            Self::Link { .. } => {
                "make it a directory of its own, or leave the preset out and name with `-w` what is meant"
            }
            Self::Moved { .. } => "have it name a directory of the program's own, or unset it",
            Self::Record { .. } => {
                "name a file elsewhere with `--audit FILE`, or run in a directory below"
            }
            Self::Consulted { .. } => {
                "run in a directory below, or grant less with `-w`; or leave the preset out and \
                 name the host with `-a`"
            }
            Self::RunsOutside { .. } => {
                "it is run outside: keep it elsewhere, as in `~/bin`, and name its whole path"
            }
            Self::Private { .. } => "set `TMPDIR` to a directory where you may write",
            Self::Secret(SecretError::Reachable { right: "write", .. }) => {
                "keep it elsewhere, run in a directory below, or deny it: \
                 `[filesystem] deny = [PATH]`"
            }
            Self::Secret(SecretError::Reachable { .. }) => "keep it elsewhere, or grant less",
            Self::NotOurs => {
                "leave out `--ca`, `--client-cert` and `--known-values`, or leave out `--gateway`; \
                 `outgate gateway` takes them"
            }
            Self::RecordLost { .. } => "name a file without links",
            Self::RecordNames { .. } => {
                "name a new file, or give this one a copy of its own: `cp FILE NEW && mv NEW FILE`"
            }
            Self::RecordOutput { .. } => "name a file, or `/dev/stderr`",
            Self::Socket { .. } => {
                "keep the socket in a directory of its own, or run in a directory below"
            }
            Self::Recorded { .. } => {
                "the gateway's record holds every decision: ask its operator, or leave out \
                 `--gateway`"
            }
            Self::Gateway { .. } => {
                "`outgate gateway --listen SOCKET` starts one; without `--gateway` the run has \
                 its own"
            }
            Self::NotEnforced { .. } => {
                "take it out: `outgate run --monitor` says it, where a run starts"
            }
            Self::Lacking { .. } | Self::Plan(PlanError::Ruleset(LandlockError::Abi { .. })) => {
                "`outgate check` shows what this kernel supports"
            }
            Self::Plan(PlanError::Ruleset(LandlockError::Path { .. })) => {
                "create it or take it out of the policy; what the command may write is made where \
                 its path ends in `/`"
            }
            Self::Plan(PlanError::Ruleset(LandlockError::Laid { .. })) => {
                "if you mean what it leads to, name that itself in its place (`-r`, `-w`); \
                 otherwise remove the link"
            }
            _ => return None,
        })
    }
}

/// Whether no directory of `PATH` has a file of this name.
fn is_nowhere(program: &str, options: &RunOptions) -> bool {
    let on = options.variables.get(OsStr::new("PATH"));
    let mut all = on.into_iter().flat_map(std::env::split_paths);
    !program.contains('/')
        && !all.any(|directory| directory.join(program).symlink_metadata().is_ok())
}

/// The directory of a program that its user may execute, from the way to it down to what it
/// is a link to; none where that would be the home directory, or around it.
fn hidden(program: &str, options: &RunOptions) -> Option<PathBuf> {
    let variable = |name: &str| options.variables.get(OsStr::new(name));
    let executable = |path: &Path| access(path, AccessFlags::X_OK).is_ok() && path.is_file();
    let named = if program.contains('/') {
        std::path::absolute(program).ok()?
    } else {
        let mut all = std::env::split_paths(variable("PATH")?).map(|on| on.join(program));
        all.find(|path| executable(path))?
    };
    let real = named.canonicalize().ok()?;
    if !executable(&real) {
        return None;
    }
    let home = variable("HOME").map_or(Path::new("/"), Path::new);
    let is_narrow =
        |directory: &&Path| !home.starts_with(directory) && directory.parent().is_some();
    let mut around = named.ancestors().skip(1);
    let common = around
        .find(|directory| real.starts_with(directory))
        .filter(is_narrow);
    common
        .or_else(|| real.parent().filter(is_narrow))
        .map(Path::to_owned)
}

fn describe_step(step: ChildStep) -> &'static str {
    match step {
        ChildStep::None | ChildStep::Clone => "a process cannot be started",
        ChildStep::ParentDeath | ChildStep::Group => "the command cannot be tied to its guardian",
        ChildStep::Limit => "a resource limit cannot be set",
        ChildStep::Capabilities => "capabilities cannot be dropped",
        ChildStep::NoNewPrivileges => "no_new_privs cannot be set",
        ChildStep::Landlock => "the Landlock ruleset cannot be enforced",
        ChildStep::Filter => "the seccomp filter cannot be installed",
        ChildStep::Execute => "the command cannot be executed",
    }
}

pub(crate) fn start_error(error: StartError, options: &RunOptions) -> RunError {
    let StartError {
        step,
        error: source,
    } = error;
    let program = options
        .command
        .first()
        .map(|program| program.to_string_lossy().into_owned())
        .unwrap_or_default();
    let errno = source.raw_os_error().map(Errno::from_raw);
    match (step, errno) {
        (ChildStep::Filter, Some(Errno::EBUSY)) => RunError::Nested,
        (ChildStep::Execute, Some(Errno::ENOENT)) => RunError::NotFound { program },
        // With a directory of `PATH` that is hidden the kernel says no more than that.
        (ChildStep::Execute, Some(Errno::EACCES)) if is_nowhere(&program, options) => {
            RunError::NotFound { program }
        }
        (ChildStep::Execute, _) => RunError::NotExecutable {
            hidden: hidden(&program, options),
            program,
            files: Files::of(&options.sources),
            source,
        },
        _ => RunError::Confine { step, source },
    }
}
