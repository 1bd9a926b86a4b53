//! What a decision is: a permit that can be spent, or a denial that explains.
//!
//! A [`Permit`] is evidence. It cannot be built, copied or cloned outside this
//! crate, so holding one proves that the decision function said yes.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use crate::effect::RuleRef;
use crate::facts::{AddressSource, Facts};
use crate::flag::rule_of;
use crate::host::Host;
use crate::printable::printable;
use crate::settings::Inspect;

mod terms;

pub(crate) use terms::Terms;
pub use terms::{Budget, BudgetSpan};

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

impl Verdict {
    /// The verdict on what a request carries within, beside that on the request itself: what
    /// passes in spite of the rules passes only in one that does so too, and is marked.
    pub fn beside(self, own: &Self) -> Self {
        let is_marked = matches!(own, Self::Allow(permit) if permit.denied.is_some());
        match self {
            Self::Allow(Permit {
                denied: Some(denial),
                ..
            }) if !is_marked => Self::Deny(*denial),
            verdict => verdict,
        }
    }
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
/// fn forge(rule: outgate_policy::RuleRef) -> Permit {
///     Permit {
///         route: Route::Direct, rule, terms: todo!(), subject: todo!(), dials: None, denied: None,
///     }
/// }
/// ```
#[derive(Debug)]
pub struct Permit {
    route: Route,
    rule: RuleRef,
    terms: Terms,
    subject: Subject,
    /// The address that may be dialled, and who says that it is the peer's.
    dials: Option<(IpAddr, AddressSource)>,
    /// What the rules say, where a run monitors.
    denied: Option<Box<Denial>>,
}

/// What was allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Subject {
    /// Something of a host and a TCP port.
    Tcp(Host, u16),
    /// The Unix socket of a path.
    Unix(Box<str>),
    /// A socket that listens.
    Listen,
}

impl Subject {
    fn of(facts: &Facts<'_>) -> Self {
        match *facts {
            Facts::Connect { peer, port, .. }
            | Facts::Dial { peer, port, .. }
            | Facts::Tunnel { peer, port, .. }
            | Facts::Request { peer, port, .. } => Self::Tcp(peer.into(), port),
            Facts::Unix { path, .. } => Self::Unix(path.into()),
            Facts::Listen { .. } => Self::Listen,
        }
    }
}

/// Evidence that an address may be dialled, to be spent on one dial: the decision said
/// yes to this very address, or the operator named it as a proxy.
///
/// ```compile_fail,E0451
/// use outgate_policy::{AddressSource, Vetted};
/// fn forge(address: std::net::SocketAddr) -> Vetted {
///     Vetted { address, source: AddressSource::Pinned }
/// }
/// ```
///
/// ```compile_fail,E0599
/// fn twice(vetted: outgate_policy::Vetted) {
///     let copy = vetted.clone();
/// }
/// ```
///
/// Nor is a name enough for an upstream proxy, whose addresses need no rule: only the proxy
/// that the operator named says which are its own.
///
/// ```compile_fail,E0624
/// fn forge(address: std::net::SocketAddr) -> outgate_policy::Vetted {
///     outgate_policy::Vetted::of_operator(address)
/// }
/// ```
///
/// A permit for a request or a tunnel dials nothing by itself, and one for a dial is spent
/// by it:
///
/// ```compile_fail,E0382
/// fn again(permit: outgate_policy::Permit) {
///     let first = permit.vetted(443);
///     let second = permit.vetted(443);
/// }
/// ```
#[derive(Debug)]
pub struct Vetted {
    address: SocketAddr,
    source: AddressSource,
}

impl Vetted {
    /// For an address of the operator's own.
    pub(crate) fn of_operator(address: SocketAddr) -> Self {
        Self {
            address,
            source: AddressSource::Pinned,
        }
    }

    /// What may be dialled.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Who says that it is the peer's.
    pub fn source(&self) -> AddressSource {
        self.source
    }
}

impl Permit {
    /// The same permit, in spite of what the rules say.
    pub(crate) fn in_spite_of(self, denial: Denial) -> Self {
        Self {
            denied: Some(Box::new(denial)),
            ..self
        }
    }

    /// The denial that the rules would have made, where a run monitors and it passes all the
    /// same.
    pub fn denied(&self) -> Option<&Denial> {
        self.denied.as_deref()
    }

    /// The same permit, said of the policy of a shared gateway.
    #[must_use]
    pub fn of_gateway(mut self) -> Self {
        self.denied = self.denied.map(|denial| Box::new(denial.of_gateway()));
        self
    }

    /// The same permit, its denial in other words.
    #[must_use]
    pub fn told(mut self, tell: impl FnOnce(Denial) -> Denial) -> Self {
        self.denied = self.denied.map(|denial| Box::new(tell(*denial)));
        self
    }

    /// For what was asked about.
    pub(crate) fn new((route, rule): (Route, RuleRef), terms: Terms, facts: &Facts<'_>) -> Self {
        let dials = match *facts {
            Facts::Dial {
                address, source, ..
            } => Some((address, source)),
            _ => None,
        };
        Self {
            route,
            rule,
            terms,
            subject: Subject::of(facts),
            dials,
            denied: None,
        }
    }

    /// Whether it was given for what goes to this host and TCP port: whoever connects or
    /// sends under it asks, so that no permit serves for another host.
    pub fn is_for(&self, host: &Host, port: u16) -> bool {
        matches!(&self.subject, Subject::Tcp(own, at) if own == host && *at == port)
    }

    /// Whether it was given for the Unix socket of this path.
    pub fn is_for_socket(&self, path: &str) -> bool {
        matches!(&self.subject, Subject::Unix(own) if **own == *path)
    }

    /// Spends it on dialling the address that it is for. The port is the one that the
    /// address is pinned with, or the one that the command named. `None` where it permits
    /// something else than dialling.
    pub fn vetted(self, port: u16) -> Option<Vetted> {
        let (address, source) = self.dials?;
        let address = SocketAddr::new(address, port);
        Some(Vetted { address, source })
    }

    /// The same permit, with the budgets of both and the stricter of their modes.
    #[must_use]
    pub fn with_limits_of(mut self, other: &Self) -> Self {
        self.terms.add(&other.terms);
        self.denied = self.denied.or_else(|| other.denied.clone());
        self
    }

    /// By which mode the scan inspects what it lets out; for what is no request,
    /// and so is not scanned, the strictest.
    pub fn inspect(&self) -> Inspect {
        self.terms.inspect
    }

    /// What may leave under it, at most.
    pub fn budgets(&self) -> &[Budget] {
        &self.terms.budgets
    }

    /// Whether what leaves under this permit is scanned no less strictly than the other
    /// wants, and counts against each of its budgets.
    pub fn inspects_for(&self, other: &Self) -> bool {
        self.terms.cover(&other.terms)
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
pub enum DenialReason {
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

impl DenialReason {
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
    pub(crate) reason: DenialReason,
    pub(crate) rule: Option<RuleRef>,
    pub(crate) subject: String,
    pub(crate) because: String,
    pub(crate) flag: Option<Box<str>>,
    pub(crate) note: Option<Box<Arc<str>>>,
}

impl Denial {
    /// Why.
    pub fn reason(&self) -> DenialReason {
        self.reason
    }

    /// The rule that decided, or that came nearest for [`DenialReason::Process`].
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
            .map(|flag| format!("ask the gateway's operator for {flag}").into());
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
            note: self.note.clone(),
        }
    }

    /// The same denial of what a person was asked about, and how that went.
    #[must_use]
    pub fn asked(mut self, how: &str) -> Self {
        self.because = format!("{}; {how}", self.because);
        self
    }

    /// The same with a sentence of the operator's, which every denial has then.
    #[must_use]
    pub fn with_note(mut self, note: Option<Arc<str>>) -> Self {
        self.note = note.map(Box::new);
        self
    }

    /// The sentence of the operator's.
    pub fn note(&self) -> Option<&str> {
        self.note.as_deref().map(|note| &**note)
    }

    /// The narrowest rule that would allow this; `None` where no rule would.
    pub fn narrowest(&self) -> Option<String> {
        self.flag.as_deref().and_then(rule_of)
    }

    /// Where it would listen, as `--listen` takes it; `None` where it is about anything else.
    pub fn listened(&self) -> Option<&str> {
        let quoted = self.flag.as_ref()?.strip_prefix("--listen '")?;
        quoted.strip_suffix('\'')
    }

    /// The flag that would allow exactly this, quoted for a shell; `None` where no flag would.
    pub fn hint(&self) -> Option<String> {
        self.flag.as_deref().map(str::to_owned)
    }
}
