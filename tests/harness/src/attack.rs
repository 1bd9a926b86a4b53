//! One attack, made bare and in sandboxes. Bare it must leak, otherwise the
//! attack is broken and proves nothing; inside it must be refused with the errno
//! a kernel without the feature gives, and nothing may arrive.

use crate::{Identity, Lab, Outcome, Sandbox, Witness};

/// What a report may say: its name, and the errnos that are right.
pub type Expected<'a> = (&'a str, &'a [&'a str]);

/// Policies an attack is made under: each must refuse it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grants {
    /// No network rule at all.
    Nothing,
    /// Rules for other destinations: another port of the same address, another
    /// name over HTTP.
    Elsewhere,
}

impl Grants {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Nothing, Self::Elsewhere];

    /// Adds its rules.
    pub fn apply(self, sandbox: Sandbox<'_>) -> Sandbox<'_> {
        match self {
            Self::Nothing => sandbox,
            Self::Elsewhere => sandbox
                .allow("tcp://127.0.0.1:9")
                .allow("GET http://elsewhere.example:8080/ok")
                .pin("elsewhere.example:8080=127.0.0.1:9"),
        }
    }
}

/// Runs `probe` bare, and asserts that its bytes arrive.
///
/// # Panics
/// When they do not.
pub fn leaks_bare(lab: &Lab, witness: &Witness, probe: &[&str]) {
    lab.bare(Identity::Own, probe);
    witness.assert_leaked(&probe.join(" "));
}

/// Runs `probe` in sandboxes of every account and policy, and asserts that
/// nothing arrives and that the reports are as `expected`.
///
/// # Panics
/// When something arrives, or a report differs.
pub fn is_refused(lab: &Lab, witness: &Witness, probe: &[&str], expected: &[Expected<'_>]) {
    for identity in Identity::all() {
        for grants in Grants::ALL {
            let outcome = grants.apply(lab.sandbox(identity)).probe(probe);
            witness.assert_untouched(&format!("{identity:?} {grants:?} {}", probe.join(" ")));
            check(&outcome, expected, &format!("{identity:?} {grants:?}"));
        }
    }
}

/// Both: bare it leaks, inside it is refused.
///
/// # Panics
/// When either does not hold.
pub fn leaks_only_bare(lab: &Lab, witness: &Witness, probe: &[&str], expected: &[Expected<'_>]) {
    leaks_bare(lab, witness, probe);
    is_refused(lab, witness, probe, expected);
}

/// Asserts that each report in `expected` came, with one of its errnos.
///
/// # Panics
/// When one is missing or differs.
pub fn check(outcome: &Outcome, expected: &[Expected<'_>], place: &str) {
    for (name, errnos) in expected {
        let errno = outcome.errno(name);
        assert!(
            errnos.contains(&errno.as_str()),
            "{place}: {name} answered {errno}, not {errnos:?}\n{outcome}"
        );
    }
}
