//! What stands beside the text of a rule: its keys, the targets on which each says something,
//! whether it counts what leaves, and how people read it. A new key is a field here: whoever
//! matches, compares and shows rules asks by what a key does, not by its name.

use super::RuleTarget;
use crate::settings::Inspect;

/// What stands beside the text of a rule, of whatever target.
#[derive(Debug, Clone, Default)]
pub(crate) struct RuleKeys {
    /// Executables it is limited to; empty for all.
    pub(crate) process: Vec<Box<str>>,
    /// Bytes that may leave under it to one host.
    pub(crate) budget: Option<u64>,
    /// Bytes that one request may have, head and content; under `tls` one connection.
    pub(crate) budget_each: Option<u64>,
    /// The inspection mode of what it lets out; `None` leaves that to the policy.
    pub(crate) inspect: Option<Inspect>,
}

/// How much of what goes to a destination a rule is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    All,
    Some,
}

/// A key of a rule as people and programs read it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownKey {
    /// As it is written.
    pub name: &'static str,
    /// What the rule says; nothing where it says nothing.
    pub value: Option<ShownValue>,
}

/// What a rule says by one key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShownValue {
    /// So many bytes, and how that is read: `at most 10 bytes out`.
    Bytes(u64, &'static str),
    /// One of the words of the key.
    Word(&'static str),
}

impl ShownKey {
    /// What it says, for people; nothing where it says nothing.
    pub fn sentence(&self) -> Option<String> {
        Some(match self.value? {
            ShownValue::Bytes(bytes, what) => format!("at most {bytes} bytes {what}"),
            ShownValue::Word(word) => format!("{} = {word}", self.name),
        })
    }
}

impl RuleKeys {
    /// Keys that say nothing about this target: why not, and what they are for.
    pub(crate) fn idle(&self, target: &RuleTarget) -> Vec<(&'static str, &'static str)> {
        let mut idle = Vec::new();
        if self.counts() && !target.is_seen() {
            idle.push((
                "nobody counts the bytes of this rule, so it has no budget",
                "only what passes the gateway is counted: http, https, ws, wss and tls",
            ));
        }
        if self.inspect.is_some() && !target.is_looked_into() {
            idle.push((
                "nobody looks into what this rule lets go, so it has no inspection mode",
                "only requests are scanned: http, https, ws and wss",
            ));
        }
        idle
    }

    /// Whether it counts what leaves: such a rule counts wherever it grants, and whatever may
    /// be for it, whichever rule grants besides.
    pub(crate) fn counts(&self) -> bool {
        self.budget.is_some() || self.budget_each.is_some()
    }

    /// Whether requests have to be told apart for it, so that TLS to them is opened, where
    /// the rule is about so much of a destination.
    pub(crate) fn tells_requests_apart(&self, extent: Extent) -> bool {
        self.budget_each.is_some() || self.budget.is_some() && extent == Extent::Some
    }

    /// Whether what it may be for has to be known, beside what it surely lets pass: it
    /// counts, or has an inspection mode. Every key is named here and in what follows, so that
    /// no new one is forgotten where policies are compared.
    pub(crate) fn look_beyond(&self) -> bool {
        let Self {
            process: _,
            budget: _,
            budget_each: _,
            inspect,
        } = self;
        self.counts() || inspect.is_some()
    }

    /// Whether whatever these keys let pass is counted and looked into as by others at least.
    pub(crate) fn look_as(&self, other: &Self) -> bool {
        let Self {
            process: _,
            budget,
            budget_each,
            inspect,
        } = self;
        let within = |own: Option<u64>, other: Option<u64>| {
            other.is_none_or(|other| own.is_some_and(|own| own <= other))
        };
        within(*budget, other.budget)
            && within(*budget_each, other.budget_each)
            && *inspect == other.inspect
    }

    /// The keys but `process`, in the order in which they are shown.
    pub(crate) fn shown(&self) -> Vec<ShownKey> {
        let Self {
            process: _,
            budget,
            budget_each,
            inspect,
        } = self;
        vec![
            ShownKey {
                name: "budget",
                value: budget.map(|bytes| ShownValue::Bytes(bytes, "out")),
            },
            ShownKey {
                name: "budget_each",
                value: budget_each.map(|bytes| ShownValue::Bytes(bytes, "in one request")),
            },
            ShownKey {
                name: "inspect",
                value: inspect.map(|mode| ShownValue::Word(mode.word())),
            },
        ]
    }
}
