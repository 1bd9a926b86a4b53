//! What a policy is made from: texts, where each came from, and the
//! directories that placeholders in paths and variables stand for.
//!
//! Values only. This file must not know how any text is parsed.

use std::collections::BTreeMap;

use crate::effect::RuleRef;

/// What the text of a [`Source`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SourceKind {
    /// A policy document in TOML.
    Document,
    /// One rule that allows.
    Allow,
    /// One rule that denies.
    Deny,
    /// One pin, `HOST[:PORT]=ADDR[:PORT]`.
    Pin,
    /// One path the command may read and execute.
    Read,
    /// One path the command may also write.
    Write,
    /// One `[ADDR:]PORTS` the command may listen on.
    Listen,
    /// A document of a project's own: it narrows what the others grant.
    Project,
    /// A manifest that its user accepted, for one of its commands: the command's name on a line
    /// of its own, and the manifest. See [`of_command`](crate::of_command).
    Manifest,
    /// A manifest that nobody accepted: it narrows, as a project's document does.
    UntrustedManifest,
    /// One secret, `NAME=SOURCE@HOST[:PORT][/PATH][;in=PLACES]`.
    Secret,
    /// A document that marks a run as one that learns: see [`LEARNING`].
    Learning,
    /// A lock: of all texts it alone allows anything over the network and to Unix sockets.
    Lock,
    /// What an option of the command line says that is none of these, as it was typed.
    Option(PolicyOption),
}

/// An option that says what a key of a policy document says, and what its text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PolicyOption {
    /// `tls.intercept`: its word.
    Intercept,
    /// `tls.authority`: a directory.
    Authority,
    /// One of `tls.client`: `HOST=CERT[:KEY]`.
    ClientCertificate,
    /// `inspect.mode`: its word.
    Inspect,
    /// One of `inspect.detector`: `ID=MODE`.
    Detector,
    /// One of `inspect.value`, `NAME@HOST`; or the word of `inspect.known`.
    Known,
    /// `inspect.known_file`: a file.
    KnownFile,
    /// `inspect.canaries`: its word.
    Canaries,
    /// `strict`, which is switched on: nothing.
    Strict,
    /// What no key says, that what rules deny passes: how far, `public` or `all`.
    Monitor,
}

/// What lets everything public through in a run that learns, and has all of it looked at.
/// Nothing is let out that nobody looks into.
pub const LEARNING: &str = "\
allow = [\"http://*:*\", \"https://*:*\", \"ws://*:*\", \"wss://*:*\"]
[tls]
intercept = \"always\"
[inspect]
mode = \"block\"
";

/// One text that takes part in a policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// What `text` is.
    pub kind: SourceKind,
    /// Where it came from, as the user knows it: ``agent.toml``, ``preset `base` ``, ``-a``,
    /// ``--detector iban=warn``.
    pub place: String,
    /// The text itself.
    pub text: String,
}

impl Source {
    /// Whether it is a rule that was granted while a run goes on.
    pub fn is_grant(&self) -> bool {
        self.kind == SourceKind::Allow && RuleRef::is_grant(&self.place)
    }
}

impl SourceKind {
    /// Whether a text of this kind narrows what others grant, and does nothing else.
    pub fn is_narrowing(self) -> bool {
        matches!(self, Self::Project | Self::UntrustedManifest)
    }
}

impl Context {
    /// That of a policy of which only rules are asked: there is no directory for its paths.
    pub fn nowhere() -> Self {
        let nowhere = || "/nonexistent".to_owned();
        Self {
            home: nowhere(),
            working_directory: nowhere(),
            private_directory: nowhere(),
            ..Self::default()
        }
    }
}

/// The directories that `~`, `.` and `$TMPDIR` in paths stand for.
///
/// Each is absolute, or empty when unknown; `working_directory` is never empty.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Context {
    /// The user's home directory: `~`.
    pub home: String,
    /// The directory the command starts in: `.` and every relative path.
    pub working_directory: String,
    /// The private temporary directory of the run: `$TMPDIR`.
    pub private_directory: String,
    /// Variables of the user's that name an absolute path: a document may say that a program
    /// keeps its files there.
    pub variables: BTreeMap<String, String>,
}
