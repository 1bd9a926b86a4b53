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
    Action, Finding, IssuerPattern, MessagePart, PairHalf, Piece, Place, Ruleset, ScanDestination,
    ScanReport, Stream, Unscanned,
};
use outgate_policy::{Host, HostName, Inspect, Naming};

use crate::audit::Outcome;
use crate::broker::SessionSecrets;
use crate::caller::Caller;
use crate::known::CredentialInventory;
use crate::limits;
use crate::lock::{self, Poisoned};
use crate::refusal::Refusal;
use crate::rules::SessionPolicies;
use crate::target::{Target, TargetVisibility};

mod about;
mod apart;
mod body;
mod clean;
#[cfg(test)]
mod cut;
mod filter;
mod guard;
mod input;
mod json_values;
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
mod windows;

pub(crate) use apart::{count_processors, start_first};
pub(crate) use filter::filter;
pub(crate) use returns::canaries;
pub(crate) use said::ToldFinding;
pub(crate) use scans::Scans;

use clean::Clean;
use guard::Guard;
use labels::Labels;
use messages::Messages;
use said::ShownRequest;
use values::{ContentValue, SeenEnd};
use watched::WatchedClient;
use windows::DomainWindows;

/// The scan of what a sandbox lets out under one mode.
#[derive(Debug)]
pub(crate) struct SandboxScan {
    rules: Arc<Ruleset>,
    /// The one that records what this one refuses, where there is one beside.
    report_only: Option<Arc<Self>>,
    clean: Mutex<Clean>,
    // What counts on under other rules.
    windows: Arc<Mutex<DomainWindows>>,
    labels: Arc<Mutex<Labels>>,
    /// Marks of what was said of names.
    named: Arc<Mutex<HashSet<String>>>,
    /// Bytes that left without a look inside, by estimate of the scan.
    unscanned: Arc<AtomicU64>,
}

impl SandboxScan {
    /// The scan by one of the modes that the policies ask for.
    ///
    /// # Errors
    /// As [`Scans::of`].
    fn of(
        (rules, mode): (&SessionPolicies, Inspect),
        secrets: Option<&SessionSecrets>,
        inventory: &CredentialInventory,
    ) -> Result<Self, String> {
        let mut setup = setup::setup(rules, mode)?;
        let registries = &mut setup.settings.registries;
        registries.clone_from(&inventory.registries);
        let homes = homes(rules)?;
        let rules = Ruleset::new(&setup.detectors, &setup.settings);
        let rules = rules.map_err(|error| error.to_string())?;
        let placeholders = secrets.into_iter().flat_map(SessionSecrets::placeholders);
        let mut rules = rules.with_placeholders(placeholders);
        if let Some(known) = &inventory.known {
            rules = rules.with_known(Arc::clone(known), homes);
        }
        Ok(Self {
            rules: Arc::new(rules),
            report_only: None,
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
            report_only: None,
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
    fn beside(self, report_only: &Arc<Self>) -> Self {
        Self {
            report_only: Some(Arc::clone(report_only)),
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
    ) -> Result<TargetVisibility, Refusal> {
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
        let (fresh, shown) = self.unseen((&to, target), &parts);
        let mut report = if fresh.is_empty() {
            ScanReport::default()
        } else {
            self.rules.head(&to, &fresh)
        };
        // What was clean before was so without the other half beside it.
        if report.half == PairHalf::Shown && fresh.len() < parts.len() {
            report = self.rules.head(&to, &parts);
        }
        let parts = fresh;
        // What does not leave is no part of anything that comes later.
        let split = if self.leaves(&report) {
            self.joined_head(&to, &parts::pieces(head, target))
        } else {
            Ok(ScanReport::default())
        };
        let clean = ShownRequest::clean(caller, target);
        let split = split.map_err(|poisoned| clean.refusal_of(poisoned))?;
        let holds = report.holds || (!parts.is_empty() && self.names_value(&to, target));
        let shown = if holds {
            TargetVisibility::Origin
        } else {
            shown
        };
        if report.findings.is_empty() && report.unscanned.is_none() && is_empty(&split) {
            if !is_clean {
                // A half is looked for again beside all that is new.
                let is_half = report.half == PairHalf::Shown;
                let parts = if is_half { &[][..] } else { &parts };
                self.remember((&to, target), (parts, whole), shown);
            }
            // A head that is not remembered is scanned again.
            if let Ok(mut windows) = lock::held(&self.windows) {
                windows.remember(&to, whole);
            }
            return Ok(shown);
        }
        let is_new =
            |found: &Finding| !report.findings.iter().any(|other| other.mark == found.mark);
        let beyond = split.unscanned;
        let split: Vec<Finding> = split.findings.into_iter().filter(is_new).collect();
        let findings = || report.findings.iter().chain(&split);
        let shows = |finding: &Finding| {
            matches!(
                finding.place,
                Place::Target | Place::Joined(_) | Place::Method
            )
        };
        let shown = if findings().any(shows) {
            TargetVisibility::Origin
        } else {
            shown
        };
        let path = clean.path.filter(|_| shown == TargetVisibility::Path);
        let asked = ShownRequest { path, ..clean };
        let refusal = asked.refuses(findings());
        let unscanned = report.unscanned.as_ref().or(beyond.as_ref());
        let passed = unscanned.map_or(Ok(()), |unscanned| self.pass_unscanned(&asked, unscanned));
        refusal.map_or(passed, Err).map(|()| shown)
    }

    /// Whether nothing that was seen in a message keeps it here.
    fn leaves(&self, report: &ScanReport) -> bool {
        let refuses = |missed: &Unscanned| self.rules.unscannable().refuses(missed.reason);
        report.block().is_none() && !report.unscanned.as_ref().is_some_and(refuses)
    }

    /// How much of a target may be shown, whatever else is said of it.
    pub(crate) fn shown(&self, target: &Target) -> TargetVisibility {
        let host = host(&target.host);
        let to = destination(&host, target.port);
        let holds = self.rules.head(&to, &[parts::target(target)]).holds;
        if holds || self.names_value(&to, target) {
            TargetVisibility::Origin
        } else {
            TargetVisibility::Path
        }
    }

    /// Whether host and path together are a value, which neither is alone: of a webhook the
    /// path is the secret, and it is known by its host.
    fn names_value(&self, to: &ScanDestination<'_>, target: &Target) -> bool {
        let url = format!("{}{}", target.host, target.resource);
        let part = MessagePart {
            place: Place::Target,
            bytes: url.as_bytes(),
        };
        self.rules.head(to, &[part]).holds
    }

    /// What stands for a head, and whether nothing was found in it before.
    fn whole(
        &self,
        to: &ScanDestination<'_>,
        head: &request::Parts,
        target: &Target,
    ) -> (u64, bool) {
        self.clean.lock().map_or((0, false), |clean| {
            let whole = clean.whole(to, head, target);
            (whole, clean.knows(whole))
        })
    }

    /// Whether the last request to the host had this very head, and its pieces make nothing
    /// once more.
    fn is_again<'a>(
        &self,
        to: &ScanDestination<'_>,
        head: (u64, impl FnOnce() -> Vec<Piece<'a>>),
    ) -> bool {
        let windows = self.windows.lock();
        let is_again = windows.is_ok_and(|mut windows| windows.is_again(to, head));
        let Some(report_only) = self.report_only.as_ref().filter(|_| is_again) else {
            return is_again;
        };
        // Where it cannot count there, the head is scanned, and refused by that.
        let windows = lock::held(&report_only.windows);
        windows.map(|mut windows| windows.again(to)).is_ok()
    }

    /// How much of a target may be shown in which nothing was found before.
    fn shown_clean(&self, to: &ScanDestination<'_>, target: &Target) -> TargetVisibility {
        let clean = self.clean.lock();
        clean.map_or(TargetVisibility::Origin, |clean| clean.shown(to, target))
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
        (to, target): (&ScanDestination<'_>, &Target),
        parts: &[MessagePart<'a>],
    ) -> (Vec<MessagePart<'a>>, TargetVisibility) {
        match self.clean.lock() {
            Ok(clean) => (clean.unseen(to, parts), clean.shown(to, target)),
            Err(_) => (parts.to_vec(), TargetVisibility::Origin),
        }
    }

    /// Nothing was found in a head, of which these parts are new.
    fn remember(
        &self,
        to: (&ScanDestination<'_>, &Target),
        head: (&[MessagePart<'_>], u64),
        shown: TargetVisibility,
    ) {
        if let Ok(mut clean) = self.clean.lock() {
            clean.add(to, head, shown);
        }
    }

    /// Trailers, before they go on.
    ///
    /// # Errors
    /// They hold what may not leave.
    fn trailers(&self, asked: &ShownRequest<'_>, trailers: &HeaderMap) -> Result<(), Refusal> {
        let host = host(&asked.target.host);
        let to = destination(&host, asked.target.port);
        let mut report = self.rules.head(&to, &parts::trailers(trailers));
        // What does not leave is no part of anything that comes later.
        if self.leaves(&report) {
            let split = self.joined(&to, &parts::pieces_of_trailers(trailers));
            let split = split.map_err(|poisoned| asked.refusal_of(poisoned))?;
            report.add(split);
        }
        self.judged(asked, &report)
    }

    /// Records what a report of small parts says, what was not looked into included.
    ///
    /// # Errors
    /// They may not leave.
    fn judged(&self, asked: &ShownRequest<'_>, report: &ScanReport) -> Result<(), Refusal> {
        let mut refusal = None;
        for finding in &report.findings {
            let said = asked.found(finding);
            if finding.action == Action::Block {
                refusal.get_or_insert(said);
            }
        }
        let missed = report.unscanned.as_ref();
        let passed = missed.map_or(Ok(()), |missed| self.pass_unscanned(asked, missed));
        refusal.map_or(passed, Err)
    }

    /// What the values of content that is not over make together with those
    /// before them.
    ///
    /// # Errors
    /// Nobody knows what was before them.
    fn so_far(
        &self,
        to: &ScanDestination<'_>,
        (seen, stream): (&SeenEnd, Option<&Stream>),
    ) -> Result<ScanReport, Poisoned> {
        let values = seen.values(stream.into_iter().flat_map(Stream::made));
        let pieces: Vec<Piece<'_>> = values.iter().map(ContentValue::piece).collect();
        let mut windows = lock::held(&self.windows)?;
        let findings = windows.look(to, &pieces);
        Ok(ScanReport {
            findings,
            unscanned: windows.missed(to),
            ..ScanReport::default()
        })
    }

    /// What the values of content make together with those before them.
    ///
    /// # Errors
    /// As [`SandboxScan::joined`].
    fn split(
        &self,
        to: &ScanDestination<'_>,
        (seen, stream): (&mut SeenEnd, Option<&Stream>),
    ) -> Result<ScanReport, Poisoned> {
        let values = seen.take(stream.into_iter().flat_map(Stream::made));
        let pieces: Vec<Piece<'_>> = values.iter().map(ContentValue::piece).collect();
        self.joined(to, &pieces)
    }

    /// The same of the pieces of a head, with the texts of documents in them.
    fn joined_head(
        &self,
        to: &ScanDestination<'_>,
        pieces: &[Piece<'_>],
    ) -> Result<ScanReport, Poisoned> {
        let documents = values::documents(pieces);
        if documents.is_empty() {
            return self.joined(to, pieces);
        }
        let within = documents.iter().map(ContentValue::piece);
        let all: Vec<Piece<'_>> = pieces.iter().copied().chain(within).collect();
        self.joined(to, &all)
    }

    /// What pieces make together with those before them. Of what went under a
    /// report-only rule nothing is refused here, and what it makes together with these
    /// is recorded as it would be there.
    ///
    /// # Errors
    /// Nobody knows what was before them.
    fn joined(
        &self,
        to: &ScanDestination<'_>,
        pieces: &[Piece<'_>],
    ) -> Result<ScanReport, Poisoned> {
        if pieces.iter().all(|piece| piece.bytes.is_empty()) {
            return Ok(ScanReport::default());
        }
        let (mut found, unscanned) = {
            let mut windows = lock::held(&self.windows)?;
            let found = windows.push(&self.rules, to, pieces);
            (found, windows.missed(to))
        };
        let report = |findings| ScanReport {
            findings,
            unscanned,
            ..ScanReport::default()
        };
        let Some(report_only) = &self.report_only else {
            return Ok(report(found));
        };
        if found.iter().all(|finding| finding.action != Action::Block) {
            let mut windows = lock::held(&report_only.windows)?;
            let mut both = windows.push_news(&report_only.rules, to, pieces);
            both.retain(|one| found.iter().all(|other| other.mark != one.mark));
            found.append(&mut both);
        }
        Ok(report(found))
    }

    /// What is found in a name that is asked for, `text` as it was spelt: its
    /// labels would leave with the question. Each warning is given once.
    pub(crate) fn name(
        &self,
        rules: &SessionPolicies,
        name: &HostName,
        text: &str,
    ) -> Vec<Finding> {
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
    pub(crate) fn labels(&self, rules: &SessionPolicies, name: &HostName) -> Result<(), String> {
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
    fn guard(
        self: &Arc<Self>,
        (caller, target): (&Arc<Caller>, &Target),
        head: &request::Parts,
    ) -> Guard {
        Guard::new(self, (caller, target), head)
    }

    /// The client's side of a WebSocket, so that its messages go through the scan.
    fn watched<C>(self: &Arc<Self>, client: C, asked: (&Arc<Caller>, &Target)) -> WatchedClient<C> {
        WatchedClient::new(client, Messages::new(self, asked, None))
    }

    /// Bytes that nobody could look into.
    ///
    /// # Errors
    /// They may not leave.
    fn pass_unscanned(
        &self,
        asked: &ShownRequest<'_>,
        unscanned: &Unscanned,
    ) -> Result<(), Refusal> {
        if self.rules.unscannable().refuses(unscanned.reason) {
            return Err(asked.unscanned(unscanned, Outcome::Deny));
        }
        self.unscanned.fetch_add(unscanned.bytes, Ordering::Relaxed);
        // Ordinary requests say so all the time: a record of each would hide the others.
        if unscanned.reason != outgate_dlp::UnscannedReason::Parted {
            asked.unscanned(unscanned, Outcome::Note);
        }
        Ok(())
    }

    /// How many bytes left without a look inside.
    pub(crate) fn unscanned_bytes(&self) -> u64 {
        self.unscanned.load(Ordering::Relaxed)
    }
}

/// Whether a report says nothing.
fn is_empty(report: &ScanReport) -> bool {
    report.findings.is_empty() && report.unscanned.is_none()
}

/// Judges what the policies say about detectors.
///
/// # Errors
/// As [`SandboxScan::of`].
pub(crate) fn judge(rules: &SessionPolicies) -> Result<(), String> {
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
fn homes(rules: &SessionPolicies) -> Result<Vec<(String, IssuerPattern)>, String> {
    let settings = rules.above().unwrap_or(rules.own()).settings();
    let mut homes = Vec::new();
    for known in &settings.known_hosts {
        for home in &known.hosts {
            let pattern = IssuerPattern::parse(&host(home)).map_err(|error| error.to_string())?;
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

fn destination(host: &str, port: u16) -> ScanDestination<'_> {
    ScanDestination { host, port }
}

#[cfg(test)]
mod tests {
    use super::*;
    use outgate_policy::{Context, Source, SourceKind, compile};

    fn rules() -> SessionPolicies {
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
        SessionPolicies::private(compile(&[source], &context).unwrap())
    }

    fn scan() -> SandboxScan {
        SandboxScan::of(
            (&rules(), Inspect::Block),
            None,
            &CredentialInventory::default(),
        )
        .unwrap()
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
        let push = |scan: &SandboxScan, piece: &str| {
            let mut windows = scan.windows.lock().unwrap();
            windows.push(&scan.rules, &to, &[Piece::of_content(piece.as_bytes())])
        };
        let first = scan();
        let (one, other) = "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".split_at(20);
        assert!(push(&first, one).is_empty());
        let second = scan().after(&first);
        assert_eq!(push(&second, other).len(), 1);
    }

    #[test]
    fn nothing_is_sent_once_nobody_knows_what_was_sent_before() {
        let to = destination("a.test", 80);
        let piece = [Piece::of_content(b"a=1")];
        let broken = scan();
        lock::poison(&broken.windows);
        assert_eq!(broken.joined(&to, &piece).unwrap_err(), Poisoned);
        let mut seen = SeenEnd::default();
        seen.push(b"a=1");
        assert_eq!(broken.so_far(&to, (&seen, None)).unwrap_err(), Poisoned);
        assert_eq!(broken.split(&to, (&mut seen, None)).unwrap_err(), Poisoned);
        assert!(!broken.is_again(&to, (0, Vec::new)));
        // Nor where only the record of a report-only rule is lost.
        let report_only = Arc::new(scan());
        let strict = scan().beside(&report_only);
        assert!(strict.joined(&to, &piece).is_ok());
        let windows = || strict.windows.lock().unwrap();
        windows().remember(&to, 7);
        assert!(strict.is_again(&to, (7, Vec::new)));
        lock::poison(&report_only.windows);
        assert_eq!(strict.joined(&to, &piece).unwrap_err(), Poisoned);
        assert!(!strict.is_again(&to, (7, Vec::new)));
    }
}
