//! The scan of what leaves a sandbox: credentials on their way to somebody who
//! did not issue them. Makes the rules of the scan from the policies, shows it
//! every part of a request before it is sent, and turns what it finds into
//! records and refusals. Knows no way to send anything, and keeps no value.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use http::{HeaderMap, request};
use outgate_dlp::{
    Action, Destination, Finding, HostPattern, Part, Piece, Place, Report, Ruleset, Unscanned,
};
use outgate_policy::{Host, HostName, Inspect, Naming};

use crate::audit::Outcome;
use crate::broker::Secrets;
use crate::caller::Caller;
use crate::known::Possessions;
use crate::limits;
use crate::refusal::Refusal;
use crate::rules::Rules;
use crate::target::{Shown, Target};

mod about;
mod apart;
mod body;
mod clean;
#[cfg(test)]
mod cut;
#[cfg(any(test, fuzzing))]
pub mod fuzz;
mod gist;
mod grpc;
mod guard;
#[cfg(any(test, fuzzing))]
mod heard;
mod input;
mod labels;
mod mask;
mod messages;
mod parts;
mod passing;
mod returns;
mod said;
mod scans;
mod setup;
mod talk;
mod values;
mod watched;
mod websocket;
mod windows;

pub(crate) use apart::{count_processors, start_first};
pub(crate) use body::Screened;
pub(crate) use guard::Guard;
pub(crate) use returns::Returns;
pub(crate) use said::Told;
pub(crate) use scans::Scans;
pub(crate) use watched::Watched;

use clean::Clean;
use labels::Labels;
use messages::Messages;
use said::Asked;
use values::{Seen, Value};
use windows::Windows;

/// The scan of what a sandbox lets out under one mode.
#[derive(Debug)]
pub(crate) struct Scan {
    rules: Arc<Ruleset>,
    /// The one that records what this one refuses, where there is one beside.
    laxer: Option<Arc<Self>>,
    clean: Mutex<Clean>,
    // What counts on under other rules.
    windows: Arc<Mutex<Windows>>,
    labels: Arc<Mutex<Labels>>,
    /// Marks of what was said of names.
    named: Arc<Mutex<HashSet<String>>>,
    /// Bytes that left without a look inside, by estimate of the scan.
    unscanned: Arc<AtomicU64>,
}

impl Scan {
    /// The scan by one of the modes that the policies ask for.
    ///
    /// # Errors
    /// As [`Scans::of`].
    fn of(
        (rules, mode): (&Rules, Inspect),
        secrets: Option<&Secrets>,
        possessions: &Possessions,
    ) -> Result<Self, String> {
        let mut setup = setup::setup(rules, mode)?;
        let registries = &mut setup.settings.registries;
        registries.clone_from(&possessions.registries);
        let homes = homes(rules)?;
        let rules = Ruleset::new(&setup.detectors, &setup.settings);
        let rules = rules.map_err(|error| error.to_string())?;
        let placeholders = secrets.into_iter().flat_map(Secrets::placeholders);
        let mut rules = rules.with_placeholders(placeholders);
        if let Some(known) = &possessions.known {
            rules = rules.with_known(Arc::clone(known), homes);
        }
        Ok(Self {
            rules: Arc::new(rules),
            laxer: None,
            clean: Mutex::default(),
            windows: Arc::default(),
            labels: Arc::default(),
            named: Arc::default(),
            unscanned: Arc::default(),
        })
    }

    /// The same behind another of this sandbox, with all that one counted.
    fn after(&self, before: &Self) -> Self {
        Self {
            rules: Arc::clone(&self.rules),
            windows: Arc::clone(&before.windows),
            laxer: None,
            clean: Mutex::default(),
            labels: Arc::default(),
            named: Arc::default(),
            unscanned: Arc::default(),
        }
        .counting_with(before)
    }

    /// The same with what another counts of the sandbox.
    fn counting_with(self, other: &Self) -> Self {
        Self {
            labels: Arc::clone(&other.labels),
            named: Arc::clone(&other.named),
            unscanned: Arc::clone(&other.unscanned),
            ..self
        }
    }

    /// The same beside one that records what this one refuses.
    fn beside(self, laxer: &Arc<Self>) -> Self {
        Self {
            laxer: Some(Arc::clone(laxer)),
            ..self
        }
    }

    /// May this request be sent, as far as its head says, and how much of it may
    /// be shown? What is found is recorded either way.
    ///
    /// # Errors
    /// What the head holds may not go there.
    pub(crate) fn head(
        &self,
        (caller, target): (&Caller, &Target),
        head: &request::Parts,
    ) -> Result<Shown, Refusal> {
        let host = host(&target.host);
        let to = destination(&host, target.port);
        let (whole, is_clean) = self.whole(&to, head, target);
        if is_clean && self.is_again(&to, (whole, || parts::pieces(head, target))) {
            return Ok(self.shown_clean(&to, target));
        }
        let parts = if is_clean {
            Vec::new()
        } else {
            parts::parts(head, target)
        };
        let (parts, shown) = self.unseen((&to, target), parts);
        let report = if parts.is_empty() {
            Report::default()
        } else {
            self.rules.head(&to, &parts)
        };
        // What does not leave is no part of anything that comes later.
        let split = if self.leaves(&report) {
            self.joined(&to, &parts::pieces(head, target))
        } else {
            Vec::new()
        };
        let holds = report.holds || (!parts.is_empty() && self.names_value(&to, target));
        let shown = if holds { Shown::Origin } else { shown };
        if report.findings.is_empty() && report.unscanned.is_none() && split.is_empty() {
            if !is_clean {
                self.remember((&to, target), (&parts, whole), shown);
            }
            if let Ok(mut windows) = self.windows.lock() {
                windows.remember(&to, whole);
            }
            return Ok(shown);
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
        let shown = if findings().any(shows) {
            Shown::Origin
        } else {
            shown
        };
        let clean = Asked::clean(caller, target);
        let path = clean.path.filter(|_| shown == Shown::Path);
        let asked = Asked { path, ..clean };
        let refusal = asked.refuses(findings());
        let unscanned = report.unscanned.as_ref();
        let passed = unscanned.map_or(Ok(()), |unscanned| self.pass_unscanned(&asked, unscanned));
        refusal.map_or(passed, Err).map(|()| shown)
    }

    /// Whether nothing that was seen in a message keeps it here.
    fn leaves(&self, report: &Report) -> bool {
        let refuses = |missed: &Unscanned| self.rules.unscannable().refuses(missed.reason);
        report.block().is_none() && !report.unscanned.as_ref().is_some_and(refuses)
    }

    /// How much of a target may be shown, whatever else is said of it.
    pub(crate) fn shown(&self, target: &Target) -> Shown {
        let host = host(&target.host);
        let to = destination(&host, target.port);
        let holds = self.rules.head(&to, &[parts::target(target)]).holds;
        if holds || self.names_value(&to, target) {
            Shown::Origin
        } else {
            Shown::Path
        }
    }

    /// Whether host and path together are a value, which neither is alone: of a webhook the
    /// path is the secret, and it is known by its host.
    fn names_value(&self, to: &Destination<'_>, target: &Target) -> bool {
        let url = format!("{}{}", target.host, target.resource);
        let part = Part {
            place: Place::Target,
            bytes: url.as_bytes(),
        };
        self.rules.head(to, &[part]).holds
    }

    /// What stands for a head, and whether nothing was found in it before.
    fn whole(&self, to: &Destination<'_>, head: &request::Parts, target: &Target) -> (u64, bool) {
        self.clean.lock().map_or((0, false), |clean| {
            let whole = clean.whole(to, head, target);
            (whole, clean.knows(whole))
        })
    }

    /// Whether the last request to the host had this very head, and its pieces make nothing
    /// once more.
    fn is_again<'a>(
        &self,
        to: &Destination<'_>,
        head: (u64, impl FnOnce() -> Vec<Piece<'a>>),
    ) -> bool {
        let windows = self.windows.lock();
        let is_again = windows.is_ok_and(|mut windows| windows.is_again(to, head));
        if let (true, Some(laxer)) = (is_again, &self.laxer)
            && let Ok(mut windows) = laxer.windows.lock()
        {
            windows.again(to);
        }
        is_again
    }

    /// How much of a target may be shown in which nothing was found before.
    fn shown_clean(&self, to: &Destination<'_>, target: &Target) -> Shown {
        let clean = self.clean.lock();
        clean.map_or(Shown::Origin, |clean| clean.shown(to, target))
    }

    /// Whether these texts are known to hold no value.
    fn is_clean_text<'a>(&self, texts: impl Iterator<Item = &'a str>) -> bool {
        let clean = self.clean.lock();
        clean.is_ok_and(|clean| clean.knows_texts(texts))
    }

    fn add_clean_text<'a>(&self, texts: impl Iterator<Item = &'a str>) {
        if let Ok(mut clean) = self.clean.lock() {
            clean.add_texts(texts);
        }
    }

    /// The parts in which something may still be found, and how much of the
    /// target may be shown as far as the others say.
    fn unseen<'a>(
        &self,
        (to, target): (&Destination<'_>, &Target),
        parts: Vec<Part<'a>>,
    ) -> (Vec<Part<'a>>, Shown) {
        match self.clean.lock() {
            Ok(clean) => (clean.unseen(to, parts), clean.shown(to, target)),
            Err(_) => (parts, Shown::Path),
        }
    }

    /// Nothing was found in a head, of which these parts are new.
    fn remember(&self, to: (&Destination<'_>, &Target), head: (&[Part<'_>], u64), shown: Shown) {
        if let Ok(mut clean) = self.clean.lock() {
            clean.add(to, head, shown);
        }
    }

    /// Trailers, before they go on.
    ///
    /// # Errors
    /// They hold what may not leave.
    fn trailers(&self, asked: &Asked<'_>, trailers: &HeaderMap) -> Result<(), Refusal> {
        let host = host(&asked.target.host);
        let to = destination(&host, asked.target.port);
        let mut report = self.rules.head(&to, &parts::trailers(trailers));
        if report.block().is_none() {
            let split = self.joined(&to, &parts::pieces_of_trailers(trailers));
            report.findings.extend(split);
        }
        let mut refusal = None;
        for finding in &report.findings {
            let said = asked.found(finding);
            if finding.action == Action::Block {
                refusal.get_or_insert(said);
            }
        }
        refusal.map_or(Ok(()), Err)
    }

    /// What the values of content that is not over make together with those
    /// before them.
    fn so_far(&self, to: &Destination<'_>, seen: &Seen) -> Vec<Finding> {
        let values = seen.values();
        let pieces: Vec<Piece<'_>> = values.iter().map(Value::piece).collect();
        match self.windows.lock() {
            Ok(mut windows) => windows.look(to, &pieces),
            Err(_) => Vec::new(),
        }
    }

    /// What the values of content make together with those before them.
    fn split(&self, to: &Destination<'_>, seen: &mut Seen) -> Vec<Finding> {
        let values = seen.take();
        let pieces: Vec<Piece<'_>> = values.iter().map(Value::piece).collect();
        self.joined(to, &pieces)
    }

    /// What pieces make together with those before them. Of what went under a
    /// laxer rule nothing is refused here, and what it makes together with these
    /// is recorded as it would be there.
    fn joined(&self, to: &Destination<'_>, pieces: &[Piece<'_>]) -> Vec<Finding> {
        if pieces.iter().all(|piece| piece.bytes.is_empty()) {
            return Vec::new();
        }
        let mut found = match self.windows.lock() {
            Ok(mut windows) => windows.push(&self.rules, to, pieces),
            Err(_) => Vec::new(),
        };
        let Some(laxer) = &self.laxer else {
            return found;
        };
        if found.iter().all(|finding| finding.action != Action::Block)
            && let Ok(mut windows) = laxer.windows.lock()
        {
            let mut both = windows.push_news(&laxer.rules, to, pieces);
            both.retain(|one| found.iter().all(|other| other.mark != one.mark));
            found.append(&mut both);
        }
        found
    }

    /// What is found in a name that is asked for, `text` as it was spelt: its
    /// labels would leave with the question. Each warning is given once.
    pub(crate) fn name(&self, rules: &Rules, name: &HostName, text: &str) -> Vec<Finding> {
        let to = destination(name.as_str(), crate::destination::DNS_PORT);
        let joined: String = text.split('.').collect();
        let mut found = self.rules.head(&to, &parts::labels(text, &joined)).findings;
        if rules.named(name) == Naming::ByPattern {
            let (below, _) = name.registered();
            found.extend(self.rules.labels(&to, below));
        }
        let Ok(mut named) = self.named.lock() else {
            return found;
        };
        let has_room = named.len() < limits::LABEL_FINDINGS_MAX;
        found.retain(|finding| {
            finding.action == Action::Block || has_room && named.insert(finding.mark.clone())
        });
        // Of several words about one name the person hears the one that helps most.
        found.sort_by_key(|finding| Reverse(said::rank(finding)));
        found
    }

    /// May this name be asked for, as far as the number of new labels says?
    ///
    /// # Errors
    /// The domain below which nothing more may be named, in words.
    pub(crate) fn labels(&self, rules: &Rules, name: &HostName) -> Result<(), String> {
        if rules.named(name) != Naming::ByPattern {
            return Ok(());
        }
        let (below, domain) = name.registered();
        let taken = self.labels.lock().map(|mut own| own.take(domain, below));
        match taken {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(format!(
                "new labels below {domain} are over {} bytes, and labels can carry secrets; a \
                 rule that spells the name out allows it",
                limits::LABEL_BYTES_MAX
            )),
        }
    }

    /// What stands for the sandbox, under whatever mode.
    fn owner(&self) -> usize {
        Arc::as_ptr(&self.labels).addr()
    }

    /// What holds content back until it is cleared.
    pub(crate) fn guard(
        self: &Arc<Self>,
        (caller, target): (&Arc<Caller>, &Target),
        head: &request::Parts,
    ) -> Guard {
        Guard::new(self, (caller, target), head)
    }

    /// The client's side of a WebSocket, so that its messages go through the scan.
    pub(crate) fn watched<C>(
        self: &Arc<Self>,
        client: C,
        asked: (&Arc<Caller>, &Target),
    ) -> Watched<C> {
        Watched::new(client, Messages::new(self, asked, None))
    }

    /// Bytes that nobody could look into.
    ///
    /// # Errors
    /// They may not leave.
    fn pass_unscanned(&self, asked: &Asked<'_>, unscanned: &Unscanned) -> Result<(), Refusal> {
        if self.rules.unscannable().refuses(unscanned.reason) {
            return Err(asked.unscanned(unscanned, Outcome::Deny));
        }
        self.unscanned.fetch_add(unscanned.bytes, Ordering::Relaxed);
        asked.unscanned(unscanned, Outcome::Note);
        Ok(())
    }

    /// How many bytes left without a look inside.
    pub(crate) fn unscanned_bytes(&self) -> u64 {
        self.unscanned.load(Ordering::Relaxed)
    }
}

/// Judges what the policies say about detectors.
///
/// # Errors
/// As [`Scan::of`].
pub(crate) fn judge(rules: &Rules) -> Result<(), String> {
    let modes = rules.modes().into_iter();
    let strictest = modes.fold(Inspect::Off, Inspect::stricter);
    if strictest == Inspect::Off {
        return Ok(());
    }
    let setup = setup::setup(rules, strictest)?;
    homes(rules)?;
    let rules = Ruleset::new(&setup.detectors, &setup.settings);
    rules.map(drop).map_err(|error| error.to_string())
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

fn host(host: &Host) -> String {
    match host {
        Host::Name(name) => name.as_str().to_owned(),
        Host::Address(address) => address.to_string(),
    }
}

fn destination(host: &str, port: u16) -> Destination<'_> {
    Destination { host, port }
}

#[cfg(test)]
mod tests {
    use super::*;
    use outgate_policy::{Context, Source, SourceKind, compile};

    fn rules() -> Rules {
        let source = Source {
            kind: SourceKind::Allow,
            place: "-a".to_owned(),
            text: "http://*.a.test".to_owned(),
        };
        let context = Context {
            home: "/".to_owned(),
            working_directory: "/".to_owned(),
            private_directory: String::new(),
            ..Context::default()
        };
        Rules::private(compile(&[source], &context).unwrap())
    }

    fn scan() -> Scan {
        Scan::of((&rules(), Inspect::Block), None, &Possessions::default()).unwrap()
    }

    #[test]
    fn what_left_counts_on_under_other_rules() {
        let first = scan();
        let name = |number: usize| HostName::parse(&format!("{number:060}.a.test")).unwrap();
        let spent = (0..1000).find(|number| first.labels(&rules(), &name(*number)).is_err());
        assert!(spent.is_some());
        first.unscanned.store(7, Ordering::Relaxed);
        let second = scan().after(&first);
        assert!(second.labels(&rules(), &name(1001)).is_err());
        assert!(scan().labels(&rules(), &name(1001)).is_ok());
        assert_eq!(second.unscanned_bytes(), 7);
    }

    #[test]
    fn pieces_are_put_together_over_a_change_of_rules() {
        let to = destination("a.test", 80);
        let push = |scan: &Scan, piece: &str| {
            let mut windows = scan.windows.lock().unwrap();
            windows.push(&scan.rules, &to, &[Piece::of_content(piece.as_bytes())])
        };
        let first = scan();
        let (one, other) = "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".split_at(20);
        assert!(push(&first, one).is_empty());
        let second = scan().after(&first);
        assert_eq!(push(&second, other).len(), 1);
    }
}
