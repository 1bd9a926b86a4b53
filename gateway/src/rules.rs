//! What a session is judged by: the run's own policy, and in a shared gateway
//! the gateway's as well, its ceiling. An event is allowed only if both allow
//! it. Compiles and compares policies; no I/O, no event is described here.

use std::net::SocketAddr;
use std::sync::Arc;

use outgate_policy::{
    Context, Effect, Enforcement, Facts, HostName, Inspect, Intercept, Naming, Peer, Permit,
    Policy, Process, Route, Settings, Source, SourceKind, Verdict, Widenings, compile,
};

/// What denials say once the gateway takes nothing new.
const ENDING: &str = "The gateway is ending and takes nothing new; try again once it is back";

/// The policy of a shared gateway, and the texts it was made from.
#[derive(Debug)]
pub(crate) struct Ceiling {
    policy: Arc<Policy>,
    sources: Vec<Source>,
    user: u32,
    /// The port of the live page, which no command reaches.
    page: Option<u16>,
}

impl Ceiling {
    /// Compiles it for a gateway of the account `user`.
    pub(crate) fn new(
        sources: Vec<Source>,
        context: &Context,
        user: u32,
    ) -> Result<Self, outgate_policy::PolicyErrors> {
        let policy = Arc::new(compile(&sources, context)?);
        Ok(Self {
            policy,
            sources,
            user,
            page: None,
        })
    }

    /// The same for a gateway with a live page at this port.
    #[must_use]
    pub(crate) fn closing(self, page: Option<u16>) -> Self {
        Self { page, ..self }
    }

    /// It by itself, above no run.
    pub(crate) fn alone(&self) -> SessionPolicies {
        SessionPolicies {
            own: Arc::clone(&self.policy),
            ceiling: None,
        }
    }

    /// Whether it allows what these rules grant.
    ///
    /// # Errors
    /// A sentence for the user: an event that they allow and it denies.
    pub(crate) fn covers(&self, granted: &[Source], context: &Context) -> Result<(), String> {
        let granted = compile(granted, context).map_err(|errors| errors.to_string())?;
        let wider = Widenings::between(&self.policy, &granted);
        let mut rules = wider.rules.iter();
        let shown = rules.find_map(|own| Some((own.rule.text.clone(), own.shown.as_ref()?)));
        match shown {
            None => Ok(()),
            Some((rule, shown)) => Err(format!(
                "`{rule}` is more than the gateway's policy allows, which bounds every run: for one {} ({})",
                shown.event, shown.because
            )),
        }
    }

    /// Its switches.
    pub(crate) fn settings(&self) -> &Settings {
        self.policy.settings()
    }
}

/// Whether the launcher's word about executables counts for the ceiling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ExecutableTrust {
    Counts,
    Unknown,
}

/// The policies of one session.
#[derive(Debug)]
pub(crate) struct SessionPolicies {
    own: Arc<Policy>,
    ceiling: Option<(Arc<Ceiling>, ExecutableTrust)>,
}

impl SessionPolicies {
    /// Of a run with a gateway of its own.
    pub(crate) fn private(own: Policy) -> Self {
        Self {
            own: Arc::new(own),
            ceiling: None,
        }
    }

    /// Those of a session that may do nothing any more.
    pub(crate) fn none() -> Self {
        Self::private(Policy::default())
    }

    /// Those of a session whose gateway finishes what runs: nothing new passes, and denials
    /// say why.
    pub(crate) fn ending() -> Self {
        let source = Source {
            kind: SourceKind::Document,
            place: "gateway".to_owned(),
            text: format!("denial_note = \"{ENDING}\""),
        };
        compile(&[source], &Context::default()).map_or_else(|_| Self::none(), Self::private)
    }

    /// These rules below another ceiling, until they are compiled with it:
    /// nothing passes that it denies.
    pub(crate) fn narrowed(&self, ceiling: &Arc<Ceiling>) -> Self {
        let word = self
            .ceiling
            .as_ref()
            .map_or(ExecutableTrust::Unknown, |(_, word)| *word);
        Self {
            own: Arc::clone(&self.own),
            ceiling: Some((Arc::clone(ceiling), word)),
        }
    }

    /// Of a run below a ceiling; `user` is the account of its launcher.
    ///
    /// A run that grants nothing over the network by itself gets what the
    /// ceiling grants, less what it denies: compiled as one policy, so that
    /// its denies weigh on the ceiling's rules as on its own.
    ///
    /// # Errors
    /// A sentence for the user: the policy has faults, or reaches for what the
    /// ceiling cannot judge.
    pub(crate) fn below(
        ceiling: &Arc<Ceiling>,
        sources: Vec<Source>,
        context: &Context,
        user: u32,
    ) -> Result<Self, String> {
        let own = compile(&sources, context).map_err(|errors| errors.to_string())?;
        if own.settings().enforcement == Enforcement::Learning {
            return Err("a run that learns has a gateway of its own".to_owned());
        }
        // A name leads where the ceiling's operator lets it lead: a pin would
        // send what the ceiling allows for one host to another.
        if let Some((host, port)) = own.pin_beyond(&ceiling.policy) {
            let port = port.map(|port| format!(":{port}")).unwrap_or_default();
            return Err(format!(
                "the run's address for {host}{port} is not in the gateway's policy, and where \
                 names lead is the gateway's to say; ask its operator for the same --resolve"
            ));
        }
        let base: Vec<Source> = sources
            .iter()
            .filter(|own| !own.is_grant())
            .cloned()
            .collect();
        let own = if base.len() < sources.len() {
            let base = compile(&base, context).map_err(|errors| errors.to_string())?;
            if !base.has_network_rules() {
                return Err(
                    "the run may do what the gateway's policy allows and names no rules of its own: \
                     nothing is left to grant"
                        .to_owned(),
                );
            }
            own
        } else if own.has_network_rules() {
            own
        } else {
            compile(&ceiling.with(sources), context).map_err(|errors| errors.to_string())?
        };
        // Executables are the launcher's word. Its own user's launcher could
        // do without a gateway; another's may not be believed.
        let word = if user == ceiling.user || user == 0 {
            ExecutableTrust::Counts
        } else {
            ExecutableTrust::Unknown
        };
        Ok(Self {
            own: Arc::new(own),
            ceiling: Some((Arc::clone(ceiling), word)),
        })
    }

    /// The run's own policy.
    pub(crate) fn own(&self) -> &Policy {
        &self.own
    }

    /// Whether this is where the gateway shows itself to who runs it, by whatever address of
    /// this machine: out of reach of every command, whatever rules say and monitors let through.
    pub(crate) fn is_page(&self, to: SocketAddr) -> bool {
        let port = self.ceiling.as_ref().and_then(|(own, _)| own.page);
        let address = to.ip().to_canonical();
        port == Some(to.port()) && (address.is_loopback() || address.is_unspecified())
    }

    /// The policy of the gateway, where it serves many.
    pub(crate) fn above(&self) -> Option<&Policy> {
        self.ceiling.as_ref().map(|(ceiling, _)| &*ceiling.policy)
    }

    /// How the rules name a host: the closest of what the policies say, since
    /// whoever spelt it knows it.
    pub(crate) fn named(&self, name: &HostName) -> Naming {
        let above = self.above().map(|above| above.naming(name));
        match (self.own.naming(name), above) {
            (Naming::InFull, _) | (_, Some(Naming::InFull)) => Naming::InFull,
            (Naming::Not, _) | (_, Some(Naming::Not)) => Naming::Not,
            (Naming::ByPattern, _) => Naming::ByPattern,
        }
    }

    /// The policy that says how names are resolved and where they lead.
    pub(crate) fn naming(&self) -> &Policy {
        match &self.ceiling {
            Some((ceiling, _)) => &ceiling.policy,
            None => &self.own,
        }
    }

    /// How they hold: as the run says, or else as its gateway was started.
    pub(crate) fn enforcement(&self) -> Enforcement {
        let of = |policy: &Policy| policy.settings().enforcement;
        match (of(&self.own), self.above().map(of)) {
            (Enforcement::Enforced, Some(above)) => above,
            (own, _) => own,
        }
    }

    /// The decision: both policies', the ceiling's denial first, since nothing
    /// that the run could add would lift it. Of two permits the one with the
    /// closer look counts.
    pub(crate) fn evaluate(&self, facts: &Facts<'_>) -> Verdict {
        match self.decided(facts) {
            Verdict::Deny(denial) => Verdict::Deny(denial.with_note(self.denial_note())),
            verdict @ Verdict::Allow(_) => verdict,
        }
    }

    /// What an operator says with every denial: the gateway's before that of the run.
    fn denial_note(&self) -> Option<Arc<str>> {
        let above = self
            .above()
            .and_then(|above| above.settings().denial_note.clone());
        above.or_else(|| self.own.settings().denial_note.clone())
    }

    fn decided(&self, facts: &Facts<'_>) -> Verdict {
        let Some((ceiling, word)) = &self.ceiling else {
            return self.own.evaluate(facts);
        };
        let seen = match word {
            ExecutableTrust::Counts => *facts,
            ExecutableTrust::Unknown => without_process(facts),
        };
        let above = match ceiling.policy.evaluate(&seen) {
            Verdict::Allow(permit) => permit.of_gateway(),
            Verdict::Deny(denial) => return Verdict::Deny(denial.of_gateway()),
        };
        match self.own.evaluate(facts) {
            Verdict::Allow(permit) => Verdict::Allow(closer(permit, above)),
            Verdict::Deny(denial) => Verdict::Deny(denial),
        }
    }

    /// Whether some rule names this method, in whatever case.
    pub(crate) fn names_method(&self, method: &str) -> bool {
        self.named_methods()
            .any(|own| own.eq_ignore_ascii_case(method))
    }

    /// The methods that rules name.
    pub(crate) fn named_methods(&self) -> impl Iterator<Item = &str> {
        let policies = self.above().into_iter().chain([self.own()]);
        policies.flat_map(Policy::named_methods)
    }

    /// Whether some rule denies what it matches.
    pub(crate) fn denies(&self) -> bool {
        let mut policies = self.above().into_iter().chain([self.own()]);
        policies.any(|own| {
            own.rules()
                .any(|rule| rule.id > 0 && rule.effect == Effect::Deny)
        })
    }

    /// Whether some rule tells requests to this host by their paths or queries.
    pub(crate) fn looks_at_paths(&self, peer: Peer<'_>) -> bool {
        let policies = self.above().into_iter().chain([self.own()]);
        policies.into_iter().any(|own| own.looks_at_paths(peer))
    }

    /// The modes by which something that leaves may be inspected: of what both
    /// policies say of one request, the stricter.
    pub(crate) fn modes(&self) -> Vec<Inspect> {
        let mut modes: Vec<Inspect> = Vec::new();
        for own in self.own.modes() {
            let mut add = |mode| {
                if !modes.contains(&mode) {
                    modes.push(mode);
                }
            };
            match self.above() {
                None => add(own),
                Some(above) => above.modes().for_each(|other| add(own.stricter(other))),
            }
        }
        modes
    }

    /// The mode for what no rule allows: nothing of it leaves, and what it holds
    /// is told as everywhere.
    pub(crate) fn mode_of_others(&self) -> Inspect {
        let above = self.above().map(|above| above.settings().inspect);
        let own = self.own.settings().inspect;
        above.map_or(own, |above| above.stricter(own))
    }

    /// The mode for a name that is asked for.
    pub(crate) fn mode_of_name(&self, name: &HostName) -> Inspect {
        let above = self.above().map(|above| above.mode_of_name(name));
        let own = self.own.mode_of_name(name);
        above.map_or(own, |above| above.stricter(own))
    }

    /// Whether TLS may be opened: the run's policy lets it, and the ceiling
    /// does not forbid it, whatever the run says.
    pub(crate) fn opens_tls(&self) -> bool {
        let forbids = |ceiling: &Ceiling| ceiling.policy.settings().intercept == Intercept::Never;
        let above = self.ceiling.as_ref();
        self.own.opens_tls() && !above.is_some_and(|(ceiling, _)| forbids(ceiling))
    }

    /// Whether a denial can be said to clients of this port.
    pub(crate) fn speaks_http(&self, port: u16) -> bool {
        let above = self.ceiling.as_ref();
        self.own.speaks_http(port)
            || above.is_some_and(|(ceiling, _)| ceiling.policy.speaks_http(port))
    }
}

impl Ceiling {
    /// How many rules it has.
    pub(crate) fn rules(&self) -> usize {
        self.policy.rules().count()
    }

    /// The ceiling's texts and then these, in merge order.
    fn with(&self, sources: Vec<Source>) -> Vec<Source> {
        let network = |source: &&Source| match source.kind {
            SourceKind::Document
            | SourceKind::Allow
            | SourceKind::Deny
            | SourceKind::Pin
            | SourceKind::Manifest
            | SourceKind::Option(_) => true,
            SourceKind::Read
            | SourceKind::Write
            | SourceKind::Listen
            | SourceKind::Project
            | SourceKind::UntrustedManifest
            | SourceKind::Secret
            | SourceKind::Learning
            | SourceKind::Lock => false,
        };
        let own = self.sources.iter().filter(network).cloned();
        own.chain(sources).collect()
    }
}

fn closer(own: Permit, above: Permit) -> Permit {
    match (own.route(), above.route()) {
        (Route::Direct, Route::Gateway | Route::Tunnel | Route::Forward) => {
            above.with_limits_of(&own)
        }
        (Route::Direct, Route::Direct) | (Route::Gateway | Route::Tunnel | Route::Forward, _) => {
            own.with_limits_of(&above)
        }
    }
}

/// The same event, by a process nobody knows: it gets no grant for certain
/// executables, and every denial for some.
fn without_process<'a>(facts: &Facts<'a>) -> Facts<'a> {
    let mut facts = *facts;
    match &mut facts {
        Facts::Connect { process, .. }
        | Facts::Dial { process, .. }
        | Facts::Tunnel { process, .. }
        | Facts::Request { process, .. }
        | Facts::Unix { process, .. }
        | Facts::Listen { process, .. } => *process = Process { executable: "" },
    }
    facts
}

#[cfg(test)]
mod tests {
    use super::*;
    use outgate_policy::{AddressSource, Peer, RequestTarget, Scheme};

    const OPERATOR: u32 = 1000;

    fn sources(lines: &[&str]) -> Vec<Source> {
        let source = |line: &&str| {
            let (kind, text) = match line.split_once(' ') {
                Some(("allow", rule)) => (SourceKind::Allow, rule),
                Some(("deny", rule)) => (SourceKind::Deny, rule),
                Some(("pin", pin)) => (SourceKind::Pin, pin),
                _ => (SourceKind::Document, *line),
            };
            Source {
                kind,
                place: "-a".to_owned(),
                text: text.to_owned(),
            }
        };
        lines.iter().map(source).collect()
    }

    fn context() -> Context {
        Context {
            home: "/home/u".to_owned(),
            working_directory: "/w".to_owned(),
            private_directory: String::new(),
            ..Context::default()
        }
    }

    fn rules(above: &[&str], own: &[&str], user: u32) -> Result<SessionPolicies, String> {
        let ceiling = Ceiling::new(sources(above), &context(), OPERATOR).unwrap();
        SessionPolicies::below(&Arc::new(ceiling), sources(own), &context(), user)
    }

    #[test]
    fn a_shared_gateway_has_no_run_that_learns() {
        let ceiling = Ceiling::new(sources(&["allow *"]), &context(), OPERATOR).unwrap();
        let learning = Source {
            kind: SourceKind::Learning,
            place: "learning".to_owned(),
            text: outgate_policy::LEARNING.to_owned(),
        };
        let found =
            SessionPolicies::below(&Arc::new(ceiling), vec![learning], &context(), OPERATOR);
        assert!(found.unwrap_err().contains("a gateway of its own"));
    }

    #[test]
    fn a_ceiling_that_forbids_to_open_tls_is_obeyed() {
        const NEVER: &str = "[tls]\nintercept = \"never\"";
        const ALWAYS: &str = "[tls]\nintercept = \"always\"";
        let allow = "allow https://a.test/x";
        for (above, own, opens) in [
            (&[allow][..], &[allow][..], true),
            (&[allow], &[], true),
            (&[allow], &[allow, NEVER], false),
            (&[allow], &[NEVER], false),
            (&[allow, NEVER], &[allow], false),
            (&[allow, NEVER], &[], false),
            (&[allow, NEVER], &[allow, ALWAYS], false),
            (&[allow, NEVER], &[ALWAYS], false),
        ] {
            let rules = rules(above, own, OPERATOR).unwrap();
            assert_eq!(rules.opens_tls(), opens, "{above:?} {own:?}");
        }
    }

    /// `METHOD SCHEME HOST PORT PATH`, by /usr/bin/client.
    fn verdict(rules: &SessionPolicies, request: &str) -> Verdict {
        let words: Vec<&str> = request.split(' ').collect();
        let name = HostName::parse(words[2]).unwrap();
        let target = RequestTarget::parse(words[4]).unwrap();
        rules.evaluate(&Facts::Request {
            process: Process {
                executable: "/usr/bin/client",
            },
            peer: Peer::Name(&name),
            port: words[3].parse().unwrap(),
            scheme: match words[1] {
                "http" => Scheme::Http,
                "ws" => Scheme::Ws,
                _ => Scheme::Https,
            },
            method: words[0],
            target: &target,
        })
    }

    #[test]
    fn a_request_is_allowed_only_if_both_policies_allow_it() {
        const A: &str = "GET http a.example 80 /x";
        for (above, own, request, by) in [
            (&["allow a.example"][..], &["allow a.example"][..], A, None),
            (&["allow a.example"], &["allow b.example"], A, Some("own")),
            (&["allow b.example"], &["allow a.example"], A, Some("above")),
            (&["allow b.example"], &["allow b.example"], A, Some("above")),
            (&["allow GET a.example"], &["allow a.example"], A, None),
            (
                &["allow POST a.example"],
                &["allow a.example"],
                A,
                Some("above"),
            ),
            (&["allow a.example"], &["allow a.example/y"], A, Some("own")),
            // Nothing of its own: the ceiling decides.
            (&["allow a.example"], &[], A, None),
            (&["allow b.example"], &[], A, Some("above")),
            // Only denies of its own: the ceiling less these.
            (&["allow a.example"], &["deny a.example/x"], A, Some("own")),
            (&["allow a.example"], &["deny a.example/y"], A, None),
            // A ceiling's deny cannot be allowed again.
            (
                &["allow a.example", "deny a.example/x"],
                &["allow a.example/x"],
                A,
                Some("above"),
            ),
        ] {
            let rules = rules(above, own, 7).unwrap();
            let denied = match verdict(&rules, request) {
                Verdict::Allow(_) => None,
                Verdict::Deny(denial) if denial.because().starts_with("the gateway's policy: ") => {
                    assert!(denial.hint().is_none_or(|hint| hint.contains("operator")));
                    Some("above")
                }
                Verdict::Deny(_) => Some("own"),
            };
            assert_eq!(denied, by, "{above:?} {own:?}");
        }
    }

    #[test]
    fn of_two_modes_the_stricter_counts() {
        use Inspect::{Block, Off, Warn};
        const OFF: &str = "[[allow]]\nrule = \"a.example\"\ninspect = \"off\"";
        const WARN: &str = "[[allow]]\nrule = \"a.example\"\ninspect = \"warn\"";
        const FEW: &str = "[[allow]]\nrule = \"a.example/x\"\ninspect = \"warn\"";
        const ALLOW: &str = "allow a.example";
        const LAX: &str = "[inspect]\nmode = \"off\"";
        for (above, own, mode, modes) in [
            (&[ALLOW][..], &[OFF][..], Block, &[Block][..]),
            (&[OFF], &[ALLOW], Block, &[Block]),
            (&[OFF], &[WARN], Warn, &[Block, Warn]),
            (&[OFF], &[OFF], Off, &[Block, Off]),
            (&[ALLOW, LAX], &[OFF], Off, &[Block, Off]),
            (&[ALLOW, FEW, LAX], &[ALLOW, LAX], Warn, &[Off, Warn]),
            // Nothing of its own: the ceiling decides, and strict is strict.
            (&[WARN], &[], Warn, &[Block, Warn]),
            (&[WARN], &["strict = true"], Block, &[Block]),
            (&[WARN, "strict = true"], &[OFF], Block, &[Block]),
        ] {
            let rules = rules(above, own, 7).unwrap();
            let Verdict::Allow(permit) = verdict(&rules, "GET http a.example 80 /x") else {
                panic!("{above:?} and {own:?} deny");
            };
            assert_eq!(permit.inspect(), mode, "{above:?} {own:?}");
            let found = rules.modes();
            assert!(found.contains(&mode), "{above:?} {own:?}: {found:?}");
            for mode in modes {
                assert!(found.contains(mode), "{above:?} {own:?}: {found:?}");
            }
        }
    }

    #[test]
    fn the_closer_look_of_two_counts() {
        let name = HostName::parse("a.example").unwrap();
        let facts = Facts::Connect {
            process: Process { executable: "" },
            peer: Peer::Name(&name),
            port: 8080,
        };
        for (above, own, route) in [
            (
                "tcp://a.example:8080",
                "tcp://a.example:8080",
                Route::Direct,
            ),
            (
                "http://a.example:8080",
                "tcp://a.example:8080",
                Route::Gateway,
            ),
            (
                "tcp://a.example:8080",
                "http://a.example:8080",
                Route::Gateway,
            ),
        ] {
            let (above, own) = (format!("allow {above}"), format!("allow {own}"));
            let rules = rules(&[&above], &[&own], 7).unwrap();
            let Verdict::Allow(permit) = rules.evaluate(&facts) else {
                panic!("{above} and {own} deny");
            };
            assert_eq!(permit.route(), route, "{above} and {own}");
        }
    }

    #[test]
    fn a_pin_holds_only_where_the_ceiling_has_the_same() {
        let above = &["allow a.example", "pin a.example=127.0.0.1:3000"][..];
        assert!(rules(above, &["pin a.example=127.0.0.1:3000"], 7).is_ok());
        for own in [
            "pin a.example=127.0.0.1:3001",
            "pin a.example=192.0.2.1",
            "pin a.example:80=127.0.0.1:3000",
            "pin b.example=127.0.0.1:3000",
            "[[pin]]\nhost = \"b.example\"\naddress = \"192.0.2.1\"",
        ] {
            let refused = rules(above, &[own], 7).unwrap_err();
            assert!(refused.contains("operator"), "{own}: {refused}");
        }
    }

    #[test]
    fn an_address_that_is_not_public_needs_the_ceiling_too() {
        let name = HostName::parse("a.example").unwrap();
        let dial = |rules: &SessionPolicies, address: &str| {
            let facts = Facts::Dial {
                process: Process { executable: "" },
                peer: Peer::Name(&name),
                port: 80,
                address: address.parse().unwrap(),
                source: AddressSource::Resolved,
            };
            matches!(rules.evaluate(&facts), Verdict::Allow(_))
        };
        let narrow = rules(
            &["allow a.example"],
            &["allow a.example", "allow 10.0.0.1"],
            7,
        );
        assert!(!dial(&narrow.unwrap(), "10.0.0.1"));
        let open = rules(&["allow a.example"], &["allow a.example"], 7);
        assert!(dial(&open.unwrap(), "8.8.8.8"));
    }

    #[test]
    fn the_word_of_another_users_launcher_about_executables_grants_nothing() {
        let allow = "[[allow]]\nrule = \"a.example\"\nprocess = [\"/usr/bin/client\"]";
        let deny = "[[deny]]\nrule = \"a.example\"\nprocess = [\"/usr/bin/other\"]";
        let request = "GET http a.example 80 /x";
        let allowed = |above: &[&str], user| {
            let rules = rules(above, &["allow a.example"], user).unwrap();
            matches!(verdict(&rules, request), Verdict::Allow(_))
        };
        for (user, believed) in [(OPERATOR, true), (0, true), (7, false)] {
            assert_eq!(allowed(&[allow], user), believed, "{user}");
            assert_eq!(
                allowed(&["allow a.example", deny], user),
                believed,
                "{user}"
            );
        }
    }
}
