//! The policy language of outgate, an allowlist, and its one decision function.
//!
//! Texts become a [`Policy`] in [`compile`], which reports every fault at once
//! with its place; [`Policy::evaluate`] turns [`Facts`] into a [`Verdict`] and
//! is the only maker of a [`Permit`]. Pure: no I/O, no clock, no randomness.
//! It must not know how a command is confined or how bytes are forwarded.

#![forbid(unsafe_code)]

mod author;
mod clients;
mod compare;
mod compile;
mod denial;
mod digest;
mod document;
mod dots;
mod draft;
mod dropped;
mod edits;
mod effect;
mod error;
mod evaluate;
mod expand;
mod expectation;
mod expected;
mod facts;
mod flag;
mod fold;
mod glob;
mod grammar;
mod grant;
mod host;
mod inside;
mod inspection;
mod intent;
mod learn;
mod limits;
mod location;
mod manifest;
mod matching;
mod monitor;
mod narrowing;
mod nearest;
mod net;
mod options;
mod other_method;
mod path;
mod pattern;
mod pin_text;
mod policy;
mod preset;
mod preset_paths;
mod printable;
mod proposal;
mod quantity;
mod query;
mod query_key;
mod question;
mod recall;
mod rule;
mod rule_error;
mod rule_host;
mod secret;
mod servers;
mod settings;
mod shape;
mod source;
mod special;
mod survey;
mod unnamed;
mod upstream;
mod verdict;

pub use clients::{
    Client, ClientError, Configuration, ConfiguredRegistry, HandedConfiguration, Variable,
};
pub use compare::{OtherWidening, Shown, Widening, WideningKind, Widenings};
pub use compile::{compile, extends};
pub use digest::{DenialGroup, Denied, Digest, Urgency};
pub use document::{Key, KeyNeed, KeyValue, MANIFEST_KEYS, POLICY_KEYS};
pub use effect::{Effect, RuleRef};
pub use error::{PolicyError, PolicyErrors};
pub use expectation::{Expectation, Expectations, expectations};
pub use expected::Expected;
pub use facts::{AddressSource, Facts, Peer, Process, Scheme};
pub use flag::rule_of;
pub use grant::{
    Arguments, Environment, Filesystem, Limits, ListenGrant, MadeContent, MadePath, Movable, Moved,
    Note, PathGrant,
};
pub use host::{Host, HostError, HostName};
pub use intent::INSTALL;
pub use learn::{
    Evidence, Learner, Learnt, LearntLine, LineKind, Lock, LockError, Risk, Sighted, Sighting,
    with_rule,
};
pub use limits::{COMMANDS_MAX, NOTE_BYTES_MAX};
pub use manifest::{Manifest, ManifestCommand, manifest, of_command};
pub use nearest::{Difference, NearestRule, RulePart};
pub use other_method::{
    AskedFor, ByMethod, METHOD_KEY, MethodKeys, OtherMethod, Standing, check_method, check_query,
    is_known_method, is_method_name,
};
pub use path::{RequestTarget, TargetError};
pub use policy::{Naming, Policy};
pub use preset::{
    PresetKind, preset, preset_clients, preset_for, preset_kind, preset_meant, preset_names,
    preset_title,
};
pub use printable::{legible, printable};
pub use proposal::{ProposalFault, ProposedRule, is_proposable};
pub use query::QueryKey;
pub use question::{Question, QuestionError};
pub use recall::{MaskedValues, PastEvent, PastVerdict, Recall, has_plain_values, without_values};
pub use rule::{ShownKey, ShownValue};
pub use secret::{Misplaced, NamedSecret, Secret, SecretKind, SecretPosition, SecretSource};
pub use settings::{
    AuditFull, ClientCertificate, DetectorForm, DnsPin, DnsServer, Enforcement, HostTenancy,
    Inspect, InspectDetector, InspectScope, Intercept, KnownHosts, Precaution, Settings, Switch,
    Unscannable,
};
pub use shape::{shape, shape_merged};
pub use source::{Context, LEARNING, PolicyOption, Source, SourceKind};
pub use special::OWN_HOST;
pub use upstream::{Carries, Proxies, Proxy, ProxyError, UPSTREAM_PROXY, Unusable};
pub use verdict::{Budget, BudgetSpan, Denial, DenialReason, Permit, Route, Verdict, Vetted};
