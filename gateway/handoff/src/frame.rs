//! The frames themselves, in both directions. Values only: what is asked, what
//! is answered, what is handed over. No policy and no I/O.

use std::fmt;
use std::net::SocketAddr;

use outgate_policy::{PolicyOption, SourceKind};

use crate::settings::GatewaySetting;
use crate::wire::FrameError;

/// Numbers of the kinds of policy text.
const SOURCE_KINDS: [(u8, SourceKind); 23] = [
    (1, SourceKind::Document),
    (2, SourceKind::Allow),
    (3, SourceKind::Deny),
    (4, SourceKind::Pin),
    (5, SourceKind::Read),
    (6, SourceKind::Write),
    (7, SourceKind::Listen),
    (8, SourceKind::Project),
    (9, SourceKind::Secret),
    (10, SourceKind::Learning),
    (11, SourceKind::Option(PolicyOption::Intercept)),
    (12, SourceKind::Option(PolicyOption::Authority)),
    (13, SourceKind::Option(PolicyOption::ClientCertificate)),
    (14, SourceKind::Option(PolicyOption::Inspect)),
    (15, SourceKind::Option(PolicyOption::Detector)),
    (16, SourceKind::Option(PolicyOption::Known)),
    (17, SourceKind::Option(PolicyOption::KnownFile)),
    (18, SourceKind::Option(PolicyOption::Canaries)),
    (19, SourceKind::Option(PolicyOption::Strict)),
    (20, SourceKind::Lock),
    (21, SourceKind::Manifest),
    (22, SourceKind::UntrustedManifest),
    (23, SourceKind::Option(PolicyOption::Monitor)),
];

/// The number of a kind of policy text; 0, which none has, for one without.
pub(crate) fn number_of(kind: SourceKind) -> u8 {
    let known = SOURCE_KINDS.iter().find(|(_, known)| *known == kind);
    known.map_or(0, |(number, _)| *number)
}

pub(crate) fn source_kind(number: u8) -> Result<SourceKind, FrameError> {
    let known = SOURCE_KINDS.iter().find(|(known, _)| *known == number);
    let kind = known.map(|(_, kind)| *kind);
    kind.ok_or(FrameError::Value { field: "kind" })
}

/// Opens a session, once: the first frame, but for the settings of a gateway that its
/// launcher started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HelloFrame {
    /// [`crate::PROTOCOL`] of the sender.
    pub protocol: u16,
    /// Version of the sender's build; must be the receiver's own.
    pub build: String,
    /// Name of the sandbox, for records.
    pub sandbox: String,
    /// Process id of the launcher.
    pub pid: u32,
}

/// By what a client of the explicit proxy shows which sandbox it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenFrame {
    /// The name of the sandbox: user of the credentials.
    pub name: String,
    /// SHA-256 of the token, which is kept nowhere.
    pub digest: [u8; TOKEN_DIGEST_BYTES],
    /// Milliseconds that it is good for from now on; `None`: until it is revoked.
    pub left_ms: Option<u64>,
}

/// Bytes of the hash of a token (SHA-256).
pub const TOKEN_DIGEST_BYTES: usize = 32;

/// A chunk of one piece of policy text. Chunks of a piece come in order;
/// the first chunk of the next index ends the piece before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceFrame {
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
pub struct BeginFrame {
    /// The user's home directory, for `~` in policies; may be empty.
    pub home: String,
    /// The working directory of the run, absolute.
    pub working_directory: String,
    /// The private temporary directory of the run, absolute; may be empty.
    pub private_directory: String,
    /// The program as it was named, for records; cut to the limit. Without its
    /// arguments, which may hold secrets.
    pub command: String,
    /// How long a person is asked about what no rule decides.
    pub ask: AskTimes,
}

/// How long a person is asked about what no rule decides; by default nobody is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AskTimes {
    /// How long a request waits for an answer, in seconds; 0: nobody is asked.
    pub held_seconds: u32,
    /// How long its question stays for who tries again, in seconds, from when it was put.
    pub open_seconds: u32,
}

impl AskTimes {
    /// Whether anybody is asked.
    pub fn are_any(self) -> bool {
        self.held_seconds > 0
    }
}

/// A request, a connection or a call that no rule decides, as a person is asked about it. All
/// texts are printable.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OpenQuestion {
    /// What is asked for, as a denial names it.
    pub subject: String,
    /// The narrowest rule that allows it; empty where that may not be shown.
    pub narrow: String,
    /// The rule for all of its host; empty where there is none to give.
    pub broad: String,
    /// Who asks.
    pub process: ProcessFacts,
    /// What a command says that proposes the rule, in its own words; empty where it asks for
    /// something itself.
    pub words: String,
}

/// How the text of a rule begins that grants a port to listen on: `[ADDR:]PORT` follows.
pub const LISTEN_RULE: &str = "listen ";

/// What became of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settlement {
    /// A rule was granted, which is in force.
    Granted,
    /// A person said no.
    Denied,
    /// Nobody is there to ask.
    Nobody,
}

/// An ancestor of the process that asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parent {
    /// Process id.
    pub pid: u32,
    /// Executable, as the kernel names it (proc_pid_exe(5)).
    pub executable: String,
}

impl fmt::Display for Parent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.pid, self.executable)
    }
}

/// Who asks: kernel facts, never claims.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProcessFacts {
    /// Process id, as the notification gave it.
    pub pid: u32,
    /// Executable, as the kernel names it (proc_pid_exe(5)); empty if unknown.
    pub executable: String,
    /// Nearest first; empty where a frame does not carry them.
    pub parents: Vec<Parent>,
}

/// What a held call wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallQuestion {
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

/// How a call may wait for a person's word, where no rule decides it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HoldForm {
    /// Not at all: nobody is there to say one.
    Refuse,
    /// Not at all: as many wait as may.
    Crowded,
    /// It is held.
    Call,
    /// Its caller waits for no call (`O_NONBLOCK`): the connection is made, and waits.
    Connection,
}

/// A question; its frame id names the answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    /// What is wanted.
    pub question: CallQuestion,
    /// Who wants it.
    pub process: ProcessFacts,
    /// How it may wait.
    pub hold: HoldForm,
}

/// A connected socket handed over. Carries one descriptor: the accepted side.
/// For Unix flows a second one: the `O_PATH` descriptor of the target inode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowFrame {
    /// Where the command thinks it is connected.
    pub question: CallQuestion,
    /// Who connected.
    pub process: ProcessFacts,
}

/// What the gateway decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// Refuse with `ECONNREFUSED`.
    Deny,
    /// Connect it to the launcher's private listener and hand it over.
    Redirect,
    /// Connect it straight to the first address of its family that answers.
    /// For [`CallQuestion::Listen`]: listen. Empty there.
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
    /// One of the settings, before the session opens: only to a gateway of one's own.
    Setting(GatewaySetting),
    /// Opens the session.
    Hello(HelloFrame),
    /// A chunk of policy text. After the opening, of the text that is to take
    /// its place: only whoever opens a shared gateway sends that.
    Source(SourceFrame),
    /// Ends the policy.
    Begin(BeginFrame),
    /// A question with its id.
    Ask(u64, Ask),
    /// A connection handed over, with descriptors.
    Flow(FlowFrame),
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
    /// Ends policy text of a run that is to take the place of what is in force, with the id
    /// of the answer.
    Change(u64, String),
    /// What became of the question of this id.
    Settled(u64, Settlement),
    /// The credentials of a sandbox at the explicit proxy, with one descriptor: the socket on
    /// which its session is opened. Only whoever opens a shared gateway sends that.
    Token(TokenFrame),
    /// After the text of a granted rule: how long it holds from now on. The gateway ends it
    /// by itself.
    Until {
        /// The place of the rule.
        place: String,
        /// Milliseconds that are left.
        left_ms: u64,
    },
    /// Whether whoever is asked still serves: only the front of a shared gateway asks.
    Ping(u64),
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
        /// Lines for a substituted hosts(5): the synthetic address of each name
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
    /// The answer to the change of this id: empty where it is in force, or what is wrong with
    /// it.
    Changed(u64, String),
    /// A question for a person, with its id.
    Question(u64, OpenQuestion),
    /// The question of this id is no more.
    Withdrawn(u64),
    /// A rule that was granted for one request has had it.
    Spent {
        /// The place of the rule.
        place: String,
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
    /// Answers the `Ping` of this id.
    Pong(u64),
}
