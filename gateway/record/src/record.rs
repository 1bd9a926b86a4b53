//! One record: what is written and what is read is this one type, member by member as in
//! `schema.json`. Members that say nothing are left out.

use std::borrow::Cow;
use std::fmt::Display;

use serde::{Deserialize, Serialize, Serializer};

use crate::members;
use crate::words::{Alarm, Kind, Outcome, Reason, Word};

/// Version of the schema: the member `v`. It rises when a member changes its meaning or
/// goes; a reader of one version can read what only adds members and words.
pub const VERSION: u32 = 1;

/// One record. `P` is what an ancestor of the asking process is written from; read, it is a
/// text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    default,
    bound(
        serialize = "P: Clone + Display",
        deserialize = "P: Clone + From<String>"
    )
)]
pub struct Record<'a, P: Clone = String> {
    /// See [`VERSION`].
    #[serde(deserialize_with = "members::narrow")]
    pub v: u32,
    /// Its number in its chain, from 1.
    #[serde(deserialize_with = "members::number")]
    pub seq: u64,
    /// SHA-256 of the line before it in its chain, in hexadecimal; zeros in the first.
    #[serde(deserialize_with = "members::text")]
    pub prev: Cow<'a, str>,
    /// When it was made: RFC 3339 in UTC, with milliseconds.
    #[serde(deserialize_with = "members::text")]
    pub time: Cow<'a, str>,
    /// Which chain it belongs to: the run, or the shared gateway.
    #[serde(deserialize_with = "members::text")]
    pub run: Cow<'a, str>,
    /// The name of the run.
    #[serde(deserialize_with = "members::text")]
    pub sandbox: Cow<'a, str>,
    /// In a shared gateway: the session, from 1; 0 is the gateway itself.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "members::number_if"
    )]
    pub session: Option<u64>,
    /// In a shared gateway: the account of the session.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "members::narrow_if"
    )]
    pub uid: Option<u32>,
    /// The number of the policy, counted from the run's start.
    #[serde(deserialize_with = "members::number")]
    pub generation: u64,
    /// Records right before this one that could not be written.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "members::number_if"
    )]
    pub lost: Option<u64>,
    /// Records that retention removes from here on, each `RUN:NUMBER` with the number of the
    /// first one that stays: see [`crate::RemovedRecords`].
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "members::text_if"
    )]
    pub removed: Option<Cow<'a, str>>,
    /// In the first record: the public key (Ed25519) by which the last one is signed, in
    /// hexadecimal.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "members::text_if"
    )]
    pub key: Option<Cow<'a, str>>,
    /// What it is about.
    #[serde(deserialize_with = "members::word")]
    pub kind: Word<'a, Kind>,
    /// What was decided.
    #[serde(deserialize_with = "members::outcome")]
    pub verdict: Outcome,
    /// The host, address, path or name that it is about.
    #[serde(deserialize_with = "members::text")]
    pub target: Cow<'a, str>,
    /// Whether somebody should look now.
    #[serde(
        skip_serializing_if = "is_default",
        deserialize_with = "members::alarm"
    )]
    pub alarm: Alarm,
    /// The method of a request.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "members::text_if"
    )]
    pub method: Option<Cow<'a, str>>,
    /// The path and query of a request, each value of the query as `*`.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "members::text_if"
    )]
    pub path: Option<Cow<'a, str>>,
    /// What is known of the values that `path` has as `*`: `plain` where none of them may be
    /// read as a further pair, a path or a method.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "members::text_if"
    )]
    pub values: Option<Cow<'a, str>>,
    /// Why, as one word.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "members::word_if"
    )]
    pub reason: Option<Word<'a, Reason>>,
    /// Why, for people; in the first record of a run, its command.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "members::text_if"
    )]
    pub detail: Option<Cow<'a, str>>,
    /// Of what a run that monitors let through: the verdict of the rules, `deny`. Reason, rule
    /// and flag are those of that denial then.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "members::text_if"
    )]
    pub monitor: Option<Cow<'a, str>>,
    /// The rule that decided.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "members::nested"
    )]
    pub rule: Option<RuleCited<'a>>,
    /// The option of `outgate run` that would allow it.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "members::text_if"
    )]
    pub flag: Option<Cow<'a, str>>,
    /// The addresses that the name was pinned to, with spaces between.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "members::text_if"
    )]
    pub pin: Option<Cow<'a, str>>,
    /// The process that asked.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "members::narrow_if"
    )]
    pub pid: Option<u32>,
    /// Its executable, as the kernel names it; empty where it is unknown.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "members::text_if"
    )]
    pub executable: Option<Cow<'a, str>>,
    /// Its ancestors in the run, each `PID EXECUTABLE`, the nearest first.
    #[serde(
        skip_serializing_if = "is_empty",
        serialize_with = "texts",
        deserialize_with = "members::ancestors"
    )]
    pub parents: Cow<'a, [P]>,
    /// Bytes that left.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "members::number_if"
    )]
    pub bytes_up: Option<u64>,
    /// Bytes that came back.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "members::number_if"
    )]
    pub bytes_down: Option<u64>,
    /// Milliseconds that it took.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "members::number_if"
    )]
    pub duration_ms: Option<u64>,
    /// Whether what leaves is looked through, as the start of a run says: `on` or `off`.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "members::text_if"
    )]
    pub scan: Option<Cow<'a, str>>,
    /// How the run is meant, as its start says: `learning` where everything public was let
    /// through, `monitor` or `monitor-all` where what rules deny was; nothing where rules were
    /// enforced.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "members::text_if"
    )]
    pub mode: Option<Cow<'a, str>>,
    /// What the scan found.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "members::nested"
    )]
    pub finding: Option<Found<'a>>,
    /// What nobody could look into.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "members::nested"
    )]
    pub unscanned: Option<Unseen<'a>>,
}

/// The rule that decided.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RuleCited<'a> {
    /// Its number in the policy.
    #[serde(deserialize_with = "members::narrow")]
    pub id: u32,
    /// As it is written.
    #[serde(deserialize_with = "members::text")]
    pub text: Cow<'a, str>,
    /// Where it is written.
    #[serde(deserialize_with = "members::text")]
    pub place: Cow<'a, str>,
}

/// What the scan found: where and of what kind, never what.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(default)]
pub struct Found<'a> {
    /// The id of the detector that matched.
    #[serde(deserialize_with = "members::text")]
    pub detector: Cow<'a, str>,
    /// What it detects, for people.
    #[serde(deserialize_with = "members::text")]
    pub name: Cow<'a, str>,
    /// In which part of the request.
    #[serde(deserialize_with = "members::text")]
    pub place: Cow<'a, str>,
    /// Bytes before it in that part.
    #[serde(deserialize_with = "members::number")]
    pub offset: u64,
    /// The codings that it was found in, the outermost first.
    #[serde(deserialize_with = "members::texts")]
    pub chain: Cow<'a, [String]>,
    /// The name of the file or member that it was found in.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "members::text_if"
    )]
    pub inside: Option<Cow<'a, str>>,
    /// How sure its form is: `strong`, `structured` or `context`.
    #[serde(deserialize_with = "members::text")]
    pub tier: Cow<'a, str>,
    /// Whether its own check was right: `passed`, `failed` or `none`.
    #[serde(deserialize_with = "members::text")]
    pub checked: Cow<'a, str>,
    /// What follows: `block` or `warn`.
    #[serde(deserialize_with = "members::text")]
    pub action: Cow<'a, str>,
    /// The hosts of who issued it, where it may go.
    #[serde(deserialize_with = "members::texts")]
    pub issuers: Cow<'a, [String]>,
    /// What tells two of them apart, under a key that no record holds.
    #[serde(deserialize_with = "members::text")]
    pub mark: Cow<'a, str>,
}

/// What nobody could look into.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Unseen<'a> {
    /// How many bytes of the body.
    #[serde(deserialize_with = "members::number")]
    pub bytes: u64,
    /// Why they could not be looked into.
    #[serde(deserialize_with = "members::text")]
    pub reason: Cow<'a, str>,
}

/// How much went each way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Bytes that left.
    pub up: u64,
    /// Bytes that came back.
    pub down: u64,
    /// Milliseconds that it took.
    pub millis: u64,
}

impl<P: Clone> Default for Record<'_, P> {
    fn default() -> Self {
        let none = || Cow::Borrowed("");
        Self {
            v: 0,
            seq: 0,
            prev: none(),
            time: none(),
            run: none(),
            sandbox: none(),
            session: None,
            uid: None,
            generation: 0,
            lost: None,
            removed: None,
            key: None,
            kind: Word::default(),
            verdict: Outcome::Note,
            target: none(),
            alarm: Alarm::None,
            method: None,
            path: None,
            values: None,
            reason: None,
            detail: None,
            monitor: None,
            rule: None,
            flag: None,
            pin: None,
            pid: None,
            executable: None,
            parents: Cow::Borrowed(&[]),
            bytes_up: None,
            bytes_down: None,
            duration_ms: None,
            scan: None,
            mode: None,
            finding: None,
            unscanned: None,
        }
    }
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

fn is_empty<P>(list: &[P]) -> bool {
    list.is_empty()
}

/// Each as one text, written without making it first.
fn texts<P: Display, S: Serializer>(list: &[P], serializer: S) -> Result<S::Ok, S::Error> {
    struct Shown<'p, P>(&'p P);
    impl<P: Display> Serialize for Shown<'_, P> {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.collect_str(self.0)
        }
    }
    serializer.collect_seq(list.iter().map(Shown))
}
