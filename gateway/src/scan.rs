//! The scan of what leaves a sandbox: credentials on their way to somebody who
//! did not issue them. Makes the rules of the scan from the policies, shows it
//! every part of a request before it is sent, and turns what it finds into
//! records and refusals. Knows no way to send anything, and keeps no value.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use http::{HeaderMap, request};
use outgate_dlp::{
    Action, Allowance, Destination, Detectors, Finding, HostPattern, Part, Place, Policy, Ruleset,
    Settings, Unscannable, Unscanned,
};
use outgate_policy as policy;
use outgate_policy::Host;

use crate::audit::Outcome;
use crate::broker::Secrets;
use crate::flow::Flow;
use crate::known::Possessions;
use crate::refusal::Refusal;
use crate::rules::Rules;
use crate::target::Target;

mod body;
mod clean;
mod grpc;
mod guard;
mod messages;
mod parts;
mod returns;
mod said;
mod values;
mod watched;
mod websocket;
mod windows;

pub(crate) use body::Screened;
pub(crate) use guard::Guard;
pub(crate) use messages::Stopped;
pub(crate) use returns::{Returns, Sought};
pub(crate) use said::Told;
pub(crate) use watched::Watched;

use clean::Clean;
use messages::Messages;
use said::Asked;
use values::Seen;
use windows::Windows;

/// The scan of one sandbox.
#[derive(Debug)]
pub(crate) struct Scan {
    rules: Arc<Ruleset>,
    windows: Mutex<Windows>,
    clean: Mutex<Clean>,
    /// Bytes that left without a look inside, by estimate of the scan.
    unscanned: AtomicU64,
}

impl Scan {
    /// The scan that the policies ask for; nothing where they turn it off.
    ///
    /// # Errors
    /// A sentence for the user: the policy names detectors that do not exist,
    /// or allows what nobody can allow.
    pub(crate) fn of(
        rules: &Rules,
        secrets: Option<&Secrets>,
        possessions: &Possessions,
    ) -> Result<Option<Self>, String> {
        let Some(mut settings) = settings(rules)? else {
            return Ok(None);
        };
        settings.registries.clone_from(&possessions.registries);
        let homes = homes(rules)?;
        let detectors = Detectors::shipped();
        let rules = Ruleset::new(&detectors, &settings).map_err(|error| error.to_string())?;
        let placeholders = secrets.into_iter().flat_map(Secrets::placeholders);
        let mut rules = rules.with_placeholders(placeholders);
        if let Some(known) = &possessions.known {
            rules = rules.with_known(Arc::clone(known), homes);
        }
        Ok(Some(Self {
            rules: Arc::new(rules),
            windows: Mutex::default(),
            clean: Mutex::default(),
            unscanned: AtomicU64::new(0),
        }))
    }

    /// May this request be sent, as far as its head says? What is found is
    /// recorded either way.
    ///
    /// # Errors
    /// What the head holds may not go there.
    pub(crate) fn head(
        &self,
        (flow, target): (&Flow, &Target),
        head: &request::Parts,
    ) -> Result<(), Refusal> {
        let host = host(&target.host);
        let to = destination(&host, target.port);
        let Some(whole) = self.unknown(&to, head, target) else {
            return Ok(());
        };
        let parts = self.unseen(&to, parts::parts(head, target));
        if parts.is_empty() {
            if let Ok(mut clean) = self.clean.lock() {
                clean.add_whole(whole);
            }
            return Ok(());
        }
        let values = parts::values(&parts);
        let report = self.rules.head(&to, &parts);
        let split = match self.windows.lock() {
            // What does not leave is no part of anything that comes later.
            Ok(mut windows) if report.block().is_none() => {
                windows.push(&self.rules, (&to, windows::Place::Head), &values)
            }
            _ => Vec::new(),
        };
        if report.findings.is_empty()
            && report.unscanned.is_none()
            && split.is_empty()
            && let Ok(mut clean) = self.clean.lock()
        {
            clean.add(&to, &parts);
            clean.add_whole(whole);
            return Ok(());
        }
        let is_new =
            |found: &Finding| !report.findings.iter().any(|other| other.mark == found.mark);
        let split: Vec<Finding> = split.into_iter().filter(is_new).collect();
        let findings = || report.findings.iter().chain(&split);
        let shows = |finding: &Finding| {
            matches!(
                finding.place,
                Place::Target | Place::Joined(_) | Place::Method
            )
        };
        let clean = Asked::clean(flow, target);
        let path = clean.path.filter(|_| !findings().any(shows));
        let asked = Asked { path, ..clean };
        let mut refusal: Option<(u8, Refusal)> = None;
        for finding in findings() {
            let said = asked.found(finding);
            // Of two words about one value, those about the user's own help more.
            let rank = said::rank(finding);
            let helps = refusal.as_ref().is_none_or(|(other, _)| *other < rank);
            if finding.action == Action::Block && helps {
                refusal = Some((rank, said));
            }
        }
        let refusal = refusal.map(|(_, said)| said);
        let unscanned = report.unscanned.as_ref();
        let passed = unscanned.map_or(Ok(()), |unscanned| self.pass_unscanned(&asked, unscanned));
        refusal.map_or(passed, Err)
    }

    /// What stands for a head in which something may still be found; nothing
    /// where all of it was clean before.
    fn unknown(&self, to: &Destination<'_>, head: &request::Parts, target: &Target) -> Option<u64> {
        let Ok(clean) = self.clean.lock() else {
            return Some(0);
        };
        let whole = clean.whole(to, head, target);
        (!clean.knows(whole)).then_some(whole)
    }

    /// The parts in which something may still be found.
    fn unseen<'a>(&self, to: &Destination<'_>, parts: Vec<Part<'a>>) -> Vec<Part<'a>> {
        match self.clean.lock() {
            Ok(clean) => clean.unseen(to, parts),
            Err(_) => parts,
        }
    }

    /// Trailers, before they go on.
    ///
    /// # Errors
    /// They hold what may not leave.
    fn trailers(&self, asked: &Asked<'_>, trailers: &HeaderMap) -> Result<(), Refusal> {
        let host = host(&asked.target.host);
        let to = destination(&host, asked.target.port);
        let report = self.rules.head(&to, &parts::trailers(trailers));
        let mut refusal = None;
        for finding in &report.findings {
            let said = asked.found(finding);
            if finding.action == Action::Block {
                refusal.get_or_insert(said);
            }
        }
        refusal.map_or(Ok(()), Err)
    }

    /// What the values of content make together with those before them.
    fn split(&self, to: &Destination<'_>, seen: &mut Seen) -> Vec<Finding> {
        let values = seen.take();
        let values: Vec<&[u8]> = values.iter().map(Vec::as_slice).collect();
        match self.windows.lock() {
            Ok(mut windows) => windows.push(&self.rules, (to, windows::Place::Content), &values),
            Err(_) => Vec::new(),
        }
    }

    /// What of a name may not be asked for: its labels would leave with the
    /// question.
    pub(crate) fn name(&self, name: &str) -> Option<Finding> {
        let to = destination(name, crate::ask::DNS_PORT);
        let joined: String = name.split('.').collect();
        let report = self.rules.head(&to, &parts::labels(name, &joined));
        let blocks = report.findings.into_iter();
        let blocks = blocks.filter(|finding| finding.action == Action::Block);
        blocks.max_by_key(said::rank)
    }

    /// What holds content back until it is cleared.
    pub(crate) fn guard(
        self: &Arc<Self>,
        (flow, target): (&Arc<Flow>, &Target),
        head: &request::Parts,
    ) -> Guard {
        Guard::new(self, (flow, target), head)
    }

    /// The client's side of a WebSocket, so that its messages go through the scan.
    pub(crate) fn watched<C>(
        self: &Arc<Self>,
        client: C,
        asked: (&Arc<Flow>, &Target),
    ) -> Watched<C> {
        Watched::new(client, Messages::new(self, asked, None))
    }

    /// Bytes that nobody could look into.
    ///
    /// # Errors
    /// They may not leave.
    fn pass_unscanned(&self, asked: &Asked<'_>, unscanned: &Unscanned) -> Result<(), Refusal> {
        match self.rules.unscannable() {
            Unscannable::Refuse => Err(asked.unscanned(unscanned, Outcome::Deny)),
            Unscannable::Record => {
                self.unscanned.fetch_add(unscanned.bytes, Ordering::Relaxed);
                asked.unscanned(unscanned, Outcome::Note);
                Ok(())
            }
        }
    }

    /// How many bytes left without a look inside.
    pub(crate) fn unscanned_bytes(&self) -> u64 {
        self.unscanned.load(Ordering::Relaxed)
    }
}

/// What the policies say about the scan; nothing where it is off. Of a run's
/// policy and a gateway's the stricter holds, and only the gateway's operator
/// says where credentials may go besides.
fn settings(rules: &Rules) -> Result<Option<Settings>, String> {
    let own = rules.own().settings();
    let above = rules.above().map(policy::Policy::settings);
    let all = || [Some(own), above].into_iter().flatten();
    let Some(mode) = all()
        .map(|settings| settings.inspect)
        .min_by_key(|mode| weight(*mode))
    else {
        return Ok(None);
    };
    let strict = all().any(|settings| settings.strict == policy::Switch::On);
    if mode == policy::Inspect::Off {
        return Ok(None);
    }
    let refuses = |settings: &policy::Settings| settings.unscannable == policy::Unscannable::Refuse;
    let mut allowances = Vec::new();
    for scope in &above.unwrap_or(own).inspect_scopes {
        for name in &scope.hosts {
            allowances.push(Allowance {
                detector: scope.detector.clone(),
                hosts: HostPattern::parse(name.as_str()).map_err(|error| error.to_string())?,
            });
        }
    }
    Ok(Some(Settings {
        modes: Vec::new(),
        policy: match mode {
            policy::Inspect::Warn => Policy::Monitor,
            _ if strict => Policy::Strict,
            policy::Inspect::Block | policy::Inspect::Off => Policy::Tiered,
        },
        unscannable: if strict || all().any(refuses) {
            Unscannable::Refuse
        } else {
            Unscannable::Record
        },
        allowances,
        registries: Vec::new(),
        key: key()?,
    }))
}

/// Where known values may go besides, as the operator says.
fn homes(rules: &Rules) -> Result<Vec<(String, HostPattern)>, String> {
    let settings = rules.above().unwrap_or(rules.own()).settings();
    let mut homes = Vec::new();
    for known in &settings.known_hosts {
        for home in &known.hosts {
            let pattern = HostPattern::parse(&host(home)).map_err(|error| error.to_string())?;
            homes.push((known.name.clone(), pattern));
        }
    }
    Ok(homes)
}

/// The stricter, the less.
fn weight(inspect: policy::Inspect) -> u8 {
    match inspect {
        policy::Inspect::Block => 0,
        policy::Inspect::Warn => 1,
        policy::Inspect::Off => 2,
    }
}

/// The key of marks: nobody who reads records can try values against them.
pub(crate) fn key() -> Result<[u8; 32], String> {
    let mut key = [0; 32];
    let provider = rustls::crypto::ring::default_provider();
    let filled = provider.secure_random.fill(&mut key);
    filled.map_err(|_| "no random numbers from the system".to_owned())?;
    Ok(key)
}

fn host(host: &Host) -> String {
    match host {
        Host::Name(name) => name.as_str().to_owned(),
        Host::Address(address) => address.to_string(),
    }
}

fn destination(host: &str, port: u16) -> Destination<'_> {
    Destination { host, port }
}
