//! The frames themselves, in both directions. Values only: what is asked, what
//! is answered, what is handed over. No policy and no I/O.

use std::net::SocketAddr;

use crate::wire::FrameError;

/// What a piece of policy text is. Mirrors the kinds the policy crate compiles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceKind {
    /// A TOML document.
    Document,
    /// One allow rule.
    Allow,
    /// One deny rule.
    Deny,
    /// One `HOST[:PORT]=ADDR[:PORT]`.
    Pin,
    /// One readable path.
    Read,
    /// One writable path.
    Write,
    /// One address to listen on.
    Listen,
    /// A TOML document that only narrows.
    Project,
    /// Where one secret comes from and goes to, without its value.
    Secret,
}

impl SourceKind {
    const ALL: [(u8, Self); 9] = [
        (1, Self::Document),
        (2, Self::Allow),
        (3, Self::Deny),
        (4, Self::Pin),
        (5, Self::Read),
        (6, Self::Write),
        (7, Self::Listen),
        (8, Self::Project),
        (9, Self::Secret),
    ];

    pub(crate) fn number(self) -> u8 {
        Self::ALL
            .iter()
            .find(|(_, kind)| *kind == self)
            .map_or(0, |(number, _)| *number)
    }

    pub(crate) fn from_number(number: u8) -> Result<Self, FrameError> {
        Self::ALL
            .iter()
            .find(|(known, _)| *known == number)
            .map(|(_, kind)| *kind)
            .ok_or(FrameError::Value { field: "kind" })
    }
}

/// Opens a session. The first frame, once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hello {
    /// [`crate::PROTOCOL`] of the sender.
    pub protocol: u16,
    /// Version of the sender's build; must be the receiver's own.
    pub build: String,
    /// Name of the sandbox, for records.
    pub sandbox: String,
    /// Process id of the launcher.
    pub pid: u32,
}

/// A chunk of one piece of policy text. Chunks of a piece come in order;
/// the first chunk of the next index ends the piece before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// Position of the piece in merge order, from 0 without gaps.
    pub index: u32,
    /// What the text is.
    pub kind: SourceKind,
    /// How the user names the piece: `agent.toml`, `-a`, preset `base`.
    pub place: String,
    /// Text, at most [`crate::SOURCE_CHUNK_BYTES_MAX`] bytes, cut anywhere.
    pub chunk: Vec<u8>,
}

/// Ends the policy and starts the session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Begin {
    /// The user's home directory, for `~` in policies; may be empty.
    pub home: String,
    /// The working directory of the run, absolute.
    pub working_directory: String,
    /// The private temporary directory of the run, absolute; may be empty.
    pub private_directory: String,
    /// The program as it was named, for records; cut to the limit. Without its
    /// arguments, which may hold secrets.
    pub command: String,
}

/// An ancestor of the process that asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parent {
    /// Process id.
    pub pid: u32,
    /// Executable, as the kernel names it (proc_pid_exe(5)).
    pub executable: String,
}

/// Who asks: kernel facts, never claims.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Process {
    /// Process id, as the notification gave it.
    pub pid: u32,
    /// Executable, as the kernel names it (proc_pid_exe(5)); empty if unknown.
    pub executable: String,
    /// Nearest first; empty where a frame does not carry them.
    pub parents: Vec<Parent>,
}

/// What a held call wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Question {
    /// A TCP connection to an address (which may stand for a name).
    Connect {
        /// The address as the command gave it, IPv4-mapped forms unwrapped.
        destination: SocketAddr,
    },
    /// A connection to a pathname Unix socket.
    Unix {
        /// Canonical path of the socket's inode.
        path: Vec<u8>,
    },
    /// Accepting TCP connections on a bound address.
    Listen {
        /// The bound address.
        address: SocketAddr,
    },
}

/// A question; its frame id names the answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    /// What is wanted.
    pub question: Question,
    /// Who wants it.
    pub process: Process,
}

/// A connected socket handed over. Carries one descriptor: the accepted side.
/// For Unix flows a second one: the `O_PATH` descriptor of the target inode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flow {
    /// Where the command thinks it is connected.
    pub question: Question,
    /// Who connected.
    pub process: Process,
}

/// What the gateway decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// Refuse with `ECONNREFUSED`.
    Deny,
    /// Connect it to the launcher's private listener and hand it over.
    Redirect,
    /// Connect it straight to the first address of its family that answers.
    /// For [`Question::Listen`]: listen. Empty there.
    Direct(Vec<SocketAddr>),
}

/// The answer to the [`Ask`] of the same id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The decision.
    pub decision: Decision,
    /// Policy generation it was made under.
    pub generation: u64,
    /// How long it may be reused for the same question and generation, in
    /// milliseconds; 0 = never.
    pub reuse_ms: u32,
}

/// From the launcher.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToGateway {
    /// Opens the session.
    Hello(Hello),
    /// A chunk of policy text. After the opening, of the text that is to take
    /// its place: only whoever opens a shared gateway sends that.
    Source(Source),
    /// Ends the policy.
    Begin(Begin),
    /// A question with its id.
    Ask(u64, Ask),
    /// A connection handed over, with descriptors.
    Flow(Flow),
    /// A datagram socket bound to port 53 inside the sandbox's sealed network.
    /// Carries one descriptor.
    Stub,
    /// Something that the command wrote and that runs later, before [`Self::Finish`].
    Leftover {
        /// Its kind, by the launcher's table; empty where not everything was looked at.
        kind: String,
        /// Where it lies; cut to the limit.
        path: String,
        /// What happened, for people.
        detail: String,
    },
    /// The sandbox is empty; the command's exit status as a shell shows it.
    Finish {
        /// 0..=255.
        status: u8,
    },
}

/// From the gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToLauncher {
    /// The session runs; where its records go (empty: nowhere).
    Ready {
        /// Policy generation.
        generation: u64,
        /// Version of the sender's build; must be the receiver's own.
        build: String,
        /// Path of the audit file, for people.
        audit: String,
        /// Lines for a substituted hosts(5): the stand-in address of each name
        /// that a rule names in full. Used where no datagram socket can exist.
        hosts: String,
        /// The certificate of the authority that the command must trust, in
        /// PEM (empty: TLS is never opened).
        authority: String,
    },
    /// The session is refused; a sentence for the user.
    Refused {
        /// What, why, and what to do.
        message: String,
    },
    /// The answer to the question of this id.
    Answer(u64, Answer),
    /// A line for the user's standard error: printable, no line end.
    Notice {
        /// The line.
        line: String,
    },
    /// The policy changed: answers of earlier generations are void.
    Generation {
        /// The new generation.
        generation: u64,
    },
    /// Policy text that came after the opening is refused: what was in force
    /// stays in force.
    Kept {
        /// What is wrong with the text.
        message: String,
    },
    /// Where the policy has secrets, comes before `Ready`: what the command's environment
    /// holds of them.
    Variables {
        /// Lines, ended by `\n`: `NAME=VALUE` is set, `NAME` alone is taken out.
        lines: String,
    },
    /// Answers `Finish`: lines for the user, or none.
    Summary {
        /// At most five lines, separated by `\n`.
        lines: String,
    },
}
