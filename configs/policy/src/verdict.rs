//! What a decision is: a permit that can be spent, or a denial that explains.
//!
//! A [`Permit`] is evidence. It cannot be built, copied or cloned outside this
//! crate, so holding one proves that the decision function said yes.

use crate::effect::RuleRef;
use crate::printable::printable;
use crate::settings::Inspect;

/// How a permitted connection is to be carried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Route {
    /// Straight to the destination: there is nothing to look at.
    Direct,
    /// Through the gateway, which asks again for what it finds inside.
    Gateway,
    /// As TLS that stays closed.
    Tunnel,
    /// As this one request.
    Forward,
}

/// The decision on one event.
#[derive(Debug)]
#[must_use]
pub enum Verdict {
    /// It may happen.
    Allow(Permit),
    /// It may not.
    Deny(Denial),
}

/// Evidence that an event was allowed.
///
/// ```compile_fail,E0599
/// fn twice(permit: outgate_policy::Permit) {
///     let copy = permit.clone();
/// }
/// ```
///
/// ```compile_fail,E0451
/// use outgate_policy::{Permit, Route};
/// # use outgate_policy::Inspect;
/// fn forge(rule: outgate_policy::RuleRef) -> Permit {
///     Permit { route: Route::Direct, rule, budgets: Vec::new(), inspect: Inspect::Off }
/// }
/// ```
#[derive(Debug)]
pub struct Permit {
    route: Route,
    rule: RuleRef,
    budgets: Vec<Budget>,
    inspect: Inspect,
}

/// How many bytes may leave under a rule, to one host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Budget {
    /// The rule.
    pub rule: RuleRef,
    /// The bytes.
    pub bytes: u64,
}

impl Permit {
    pub(crate) fn new(route: Route, rule: RuleRef, bytes: Option<u64>) -> Self {
        let budget = bytes.map(|bytes| Budget {
            rule: rule.clone(),
            bytes,
        });
        Self {
            route,
            rule,
            budgets: budget.into_iter().collect(),
            inspect: Inspect::Block,
        }
    }

    /// The same permit, for what is scanned by this mode and counts against these
    /// budgets too.
    pub(crate) fn weighed(self, inspect: Inspect, budgets: Vec<Budget>) -> Self {
        let budgets = self.budgets.into_iter().chain(budgets).collect();
        Self {
            budgets,
            inspect,
            ..self
        }
    }

    /// The same permit, with the budgets of both and the stricter of their modes.
    #[must_use]
    pub fn with_limits_of(mut self, other: &Self) -> Self {
        self.budgets.extend_from_slice(&other.budgets);
        self.inspect = self.inspect.stricter(other.inspect);
        self
    }

    /// By which mode the scan weighs what it lets out; for what is no request,
    /// and so is not scanned, the strictest.
    pub fn inspect(&self) -> Inspect {
        self.inspect
    }

    /// What may leave under it, at most.
    pub fn budgets(&self) -> &[Budget] {
        &self.budgets
    }

    /// The same permit, by the closer look of both.
    pub(crate) fn at_least_as_close(self, other: &Self) -> Self {
        match (self.route, other.route) {
            (Route::Direct, Route::Gateway) => Self {
                route: Route::Gateway,
                ..self
            },
            _ => self,
        }
    }

    /// How the connection is to be carried.
    pub fn route(&self) -> Route {
        self.route
    }

    /// The rule that allowed it.
    pub fn rule(&self) -> &RuleRef {
        &self.rule
    }
}

/// Why an event was denied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reason {
    /// No rule allows it.
    NoRule,
    /// A rule denies it.
    DenyRule,
    /// An `only` rule covers the host, and none of them allows it.
    OnlyRule,
    /// The address is not a public one.
    SpecialUse,
    /// A rule would allow it, for other executables.
    Process,
    /// It would have to be looked into, which is not possible.
    NeedsInspection,
    /// Its query asks for a method that no rule allows.
    OtherMethod,
    /// The event itself makes no sense, such as port 0.
    Malformed,
}

impl Reason {
    const ALL: [Self; 8] = [
        Self::NoRule,
        Self::DenyRule,
        Self::OnlyRule,
        Self::SpecialUse,
        Self::Process,
        Self::NeedsInspection,
        Self::OtherMethod,
        Self::Malformed,
    ];

    /// The reason of a record; `None` for what the gateway refuses by itself.
    pub fn of(token: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.token() == token)
    }

    /// The word for fields, records and metrics.
    pub fn token(self) -> &'static str {
        match self {
            Self::NoRule => "no-rule",
            Self::DenyRule => "deny-rule",
            Self::OnlyRule => "only-rule",
            Self::SpecialUse => "special-use",
            Self::Process => "process",
            Self::NeedsInspection => "needs-inspection",
            Self::OtherMethod => "override",
            Self::Malformed => "malformed",
        }
    }
}

/// Evidence that an event was denied, and the words to say so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denial {
    pub(crate) reason: Reason,
    pub(crate) rule: Option<RuleRef>,
    pub(crate) subject: String,
    pub(crate) because: String,
    pub(crate) flag: Option<String>,
}

impl Denial {
    /// Why.
    pub fn reason(&self) -> Reason {
        self.reason
    }

    /// The rule that decided, or that came nearest for [`Reason::Process`].
    pub fn rule(&self) -> Option<&RuleRef> {
        self.rule.as_ref()
    }

    /// What was denied, such as `GET http://api.example.org/admin`. ASCII, no controls, no query.
    pub fn subject(&self) -> &str {
        &self.subject
    }

    /// Why it was denied, such as `no rule allows it`.
    pub fn because(&self) -> &str {
        &self.because
    }

    /// One sentence for people and agents: `outgate denied SUBJECT: BECAUSE`.
    pub fn sentence(&self) -> String {
        format!("outgate denied {}: {}", self.subject, self.because)
    }

    /// The same denial, said of the policy of a shared gateway: no flag of the
    /// run would allow it, only its operator.
    #[must_use]
    pub fn of_gateway(mut self) -> Self {
        self.because = format!("the gateway's policy: {}", self.because);
        self.flag = self
            .flag
            .map(|flag| format!("ask the gateway's operator for {flag}"));
        self
    }

    /// The same denial, said of `subject` where the path is not to be shown: no
    /// flag that names the path either.
    #[must_use]
    pub fn of_whole(mut self, subject: &str) -> Self {
        self.subject = printable(subject);
        self.flag = None;
        self
    }

    /// The same denial with other words where `mask` gives some: what is denied may
    /// name what nobody should read. No flag that names it either.
    #[must_use]
    pub fn masked(&self, mask: &dyn Fn(&str) -> Option<String>) -> Self {
        let cover =
            |text: &String| mask(text).map_or_else(|| text.clone(), |text| printable(&text));
        Self {
            reason: self.reason,
            rule: self.rule.clone(),
            subject: cover(&self.subject),
            because: cover(&self.because),
            flag: self.flag.clone().filter(|flag| mask(flag).is_none()),
        }
    }

    /// The flag that would allow exactly this, quoted for a shell; `None` where no flag would.
    pub fn hint(&self) -> Option<String> {
        self.flag.clone()
    }
}
