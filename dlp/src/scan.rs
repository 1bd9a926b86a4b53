//! One scan while it runs: rules, destination, cost and findings. Handed down through all layers.

mod spot;

use std::cell::Cell;
use std::collections::HashSet;

use crate::budget::{ScanBudget, wide};
use crate::chance;
use crate::coding::Coding;
use crate::confirm::{Borders, Confirmed, DetectorRule, JudgedMatch, Match, MatchJudgement};
use crate::destination::ScanDestination;
use crate::detector::{Scope, Tenants, Text, Tier};
use crate::finding::{
    Action, CANARY, Checked, Finding, KNOWN_KEY, KNOWN_VALUE, Unscanned, UnscannedReason,
};
use crate::index::Transform;
use crate::known::KnownNature;
use crate::known_forms::KnownForm;
use crate::limits;
use crate::made::MadeTexts;
use crate::mark::mark;
use crate::pieces::{self, PieceSource};
use crate::place::{ContentSyntax, Place, PlaceKind};
use crate::position::{self, ContentPosition, Spread};
use crate::repeats::Repeats;
use crate::ruleset::Ruleset;
use crate::settings::{Depth, ScanPolicy};
use crate::span::{self, Misplaced};
use crate::trail::Trail;

pub(crate) use spot::Spot;

const KNOWN: usize = 1 << 16; // Where numbers of known values begin among those of rules.

/// What a scan has cost and found so far.
#[derive(Default)]
pub(crate) struct ScanState {
    pub(crate) budget: ScanBudget,
    pub(crate) block: Option<Finding>,
    pub(crate) warnings: Vec<Finding>,
    unscanned: Option<Unscanned>,
    /// The first limit that ended a look.
    limit: Option<UnscannedReason>,
    reported: HashSet<(usize, Vec<u8>)>,
    /// How often a value was seen that may go where it is going.
    pub(crate) settled: usize,
    /// How often one of them only because it stands in a form.
    pub(crate) granted: usize,
    /// What that was: of which detector, how long, and its mark.
    shown: Vec<(Text, usize, String)>,
    /// Whether to go on behind what must not leave, to find all there is.
    pub(crate) gathers: bool,
    /// How far it looks.
    pub(crate) depth: Depth,
    /// Where in the outermost stream, if that is pieces put together, one ends and the next
    /// begins.
    pub(crate) borders: Vec<u64>,
    /// Short runs that hold nothing.
    pub(crate) repeats: Repeats,
    /// Texts that codings stand for.
    pub(crate) made: MadeTexts,
    /// What stands where in the outermost stream.
    pub(crate) position: ContentPosition,
    /// How many names were looked at to say so.
    names: usize,
    asked: Vec<u64>, // For each rule the place it was last asked about.
}

impl ScanState {
    /// A value was seen that may go where it is going.
    fn settle(&mut self) {
        self.settled = self.settled.saturating_add(1);
    }

    /// The same of a value to which all other content is closed.
    fn settle_closed(&mut self, kind: PlaceKind<'_>) {
        self.settle();
        if matches!(kind, PlaceKind::Form(_)) {
            self.granted = self.granted.saturating_add(1);
        }
    }

    /// A number that grows with all that is told: findings, values that may go where they go,
    /// and what was not looked into.
    pub(crate) fn told(&self) -> u64 {
        let missed = self.unscanned.as_ref().map_or(0, |missed| missed.bytes);
        let found = self.reported.len().saturating_add(self.warnings.len());
        wide(found.saturating_add(self.settled)).saturating_add(missed)
    }

    /// What was not looked into, the budgets' end included.
    pub(crate) fn unscanned(&self) -> Option<Unscanned> {
        let spent = self.budget.spent().map(|reason| Unscanned {
            reason,
            bytes: self.budget.input(),
        });
        // What a limit ended is the worse of it.
        let missed = self.unscanned.as_ref().map(|missed| Unscanned {
            reason: self.limit.unwrap_or(missed.reason),
            bytes: missed.bytes,
        });
        spent.or(missed)
    }
}

/// One scan while it runs.
pub(crate) struct Scan<'a> {
    pub(crate) rules: &'a Ruleset,
    pub(crate) host: &'a str,
    /// What the place is for at which the outermost bytes stand.
    pub(crate) kind: PlaceKind<'a>,
    pub(crate) state: &'a mut ScanState,
}

impl<'a> Scan<'a> {
    /// Whether there is any sense in going on.
    pub(crate) fn is_over(&self) -> bool {
        let state = &self.state;
        let missed = state.unscanned.as_ref().map(|missed| missed.reason);
        let refuses = |reason| self.rules.unscannable().refuses(reason);
        state.block.is_some()
            || state.budget.spent().is_some()
            || state.limit.or(missed).is_some_and(refuses)
    }

    /// Where pieces were put together in a layer that came about like this, of which the
    /// bytes from `base` on are looked at.
    pub(crate) fn borders(&self, trail: &Trail, base: u64) -> Borders<'_> {
        if trail.is_plain() {
            Borders::new(&self.state.borders, base)
        } else {
            Borders::default()
        }
    }

    /// What the place is for at which something was found. A form shows what stands
    /// in it as it is; what has to be decoded is content like any other.
    pub(crate) fn kind<'s>(
        &self,
        trail: &Trail,
        transform: Option<Coding>,
        before: &'s [u8],
    ) -> PlaceKind<'s>
    where
        'a: 's,
    {
        match self.kind {
            PlaceKind::Form(_) if transform.is_some() || !trail.is_plain() => PlaceKind::Content,
            // What an escape stood for is no sign of a form.
            PlaceKind::Form(form) if trail.depth() > 0 => PlaceKind::Form(form),
            PlaceKind::Form(form) => PlaceKind::Form(ContentSyntax { before, ..form }),
            kind => kind,
        }
    }

    /// Counts the work of asking a rule about `at`: little, unless it was asked
    /// about a place so near that patterns may read the same `extent` of bytes
    /// again and again.
    pub(crate) fn charge(&mut self, rule: usize, at: u64, extent: u64) -> bool {
        let asked = &mut self.state.asked;
        if asked.len() <= rule {
            asked.resize(rule.saturating_add(1), u64::MAX);
        }
        let last = asked.get_mut(rule).map(|last| std::mem::replace(last, at));
        let is_dense = last.is_some_and(|last| last.abs_diff(at) < extent);
        let cost = if is_dense { extent } else { 0 };
        self.state.budget.work(cost.max(limits::CONFIRM_BYTES_MIN))
    }

    /// Asks a rule about the literal at `at`, and takes what it says.
    /// Answers whether the literal belongs to a match.
    pub(crate) fn confirm(
        &mut self,
        rule: usize,
        window: &[u8],
        at: usize,
        spot: &Spot<'_>,
    ) -> bool {
        let Some(known) = self.rules.rule(rule) else {
            self.state.budget.lost().set();
            return false;
        };
        let borders = match (spot.transform, spot.around) {
            (Transform::None, Some((_, base))) => self.borders(spot.trail, base),
            _ => Borders::default(),
        };
        match known.confirm(window, at, borders) {
            Confirmed::Match(found) => {
                self.found(rule, window, &found, spot);
                true
            }
            Confirmed::Nothing => false,
            Confirmed::Unknown => {
                self.miss(UnscannedReason::Work, 1);
                false
            }
        }
    }

    /// Takes a match.
    pub(crate) fn found(&mut self, rule: usize, window: &[u8], found: &Match, spot: &Spot<'_>) {
        let lost = self.state.budget.lost();
        let Some(known) = self.rules.rule(rule) else {
            return lost.set();
        };
        let secret = lost.found(window.get(found.secret.clone()).ok_or(Misplaced));
        let before = span::upto(window, found.secret.start);
        let spot = &Spot { before, ..*spot };
        let Some(judged) = self.judge(known, secret, spot) else {
            return;
        };
        if self.is_cleared(rule, secret, spot) {
            return;
        }
        let detector = &known.detector;
        // Of what was apart chance makes weaker forms.
        let is_apart = spot.trail.is_joined() || spot.trail.is_lines();
        if is_apart && detector.tier != Tier::Strong {
            return;
        }
        let mark = mark(self.rules.key(), secret);
        if self.rules.is_placeholder(&mark) {
            return;
        }
        let mut chain = spot.trail.chain();
        chain.extend(spot.transform.coding());
        let mut action = match spot.transform {
            Transform::None => judged.action,
            Transform::Reversed(_) | Transform::Rot13 => {
                known.transformed((judged.checked, spot.transform), self.rules.policy())
            }
        };
        let (bytes, place) = spot.within;
        if action == Action::Block
            && known.may_be_chance(judged.checked)
            && chance::is_in_run(bytes, place)
        {
            action = Action::Warn;
        }
        let spread = spot.spread(found.secret.start);
        self.report(
            rule,
            (secret, spread),
            Finding {
                detector: detector.id.clone(),
                name: detector.name.clone(),
                place: Place::Content,
                offset: spot.offset,
                chain,
                inside: spot.trail.inside(),
                tier: detector.tier,
                checked: judged.checked,
                action,
                issuers: judged.issuers,
                mark,
            },
        );
    }

    /// Whether what a rule recognises may go where it is going, or is no credential.
    pub(crate) fn lets(&mut self, known: &DetectorRule, secret: &[u8], spot: &Spot<'_>) -> bool {
        self.judge(known, secret, spot).is_none()
    }

    /// What a match means here; nothing where it is no credential or may go on.
    fn judge(
        &mut self,
        known: &DetectorRule,
        secret: &[u8],
        spot: &Spot<'_>,
    ) -> Option<JudgedMatch> {
        let kind = self.kind(spot.trail, spot.transform.coding(), spot.before);
        // The user's own value goes where the user's configuration has it go, and
        // about a canary is said that it is one.
        let own = self.rules.known().and_then(|known| known.identify(secret));
        let own = own.filter(|own| match own.nature {
            KnownNature::Canary => spot.transform != Transform::Rot13,
            KnownNature::Sent | KnownNature::Kept => {
                known.detector.scope != Scope::Never && self.rules.lets(own, self.host)
            }
        });
        // That a host is its home does not say that others read nothing there.
        let is_settled = own.is_some_and(|own| {
            let is_named = self.rules.names(own, self.host);
            own.nature == KnownNature::Canary || is_named || known.takes_own(self.host, kind)
        });
        let judgement = if is_settled {
            MatchJudgement::Settled
        } else {
            known.judge(secret, (self.host, kind), self.rules.policy())
        };
        match judgement {
            MatchJudgement::Nothing => None,
            MatchJudgement::Settled => {
                let is_closed = known.detector.is_placed();
                let is_closed = is_closed || known.detector.tenants == Tenants::Many;
                if is_closed {
                    self.state.settle_closed(kind);
                } else {
                    self.state.settle();
                }
                self.remember(known, secret, kind);
                None
            }
            MatchJudgement::Found(_) if self.was_shown(known, secret, spot) => None,
            MatchJudgement::Found(mut judged) => {
                for home in own.iter().flat_map(|own| self.rules.homes(own)) {
                    if !judged.issuers.contains(&home) {
                        judged.issuers.push(home);
                    }
                }
                Some(judged)
            }
        }
    }

    /// Takes note of what a form shows under its key.
    fn remember(&mut self, known: &DetectorRule, secret: &[u8], kind: PlaceKind<'_>) {
        let shown = &mut self.state.shown;
        if matches!(kind, PlaceKind::Form(_)) && shown.len() < limits::SHOWN_MAX {
            let mark = mark(self.rules.key(), secret);
            shown.push((known.detector.id.clone(), secret.len(), mark));
        }
    }

    /// Whether values of a form that were put together begin with one that it shows under its
    /// key, or one stands in what the form would be if it were a mail (RFC 2045 6.7), where
    /// `=20` of `version=2011` is a sign: there it was let go as a whole.
    fn was_shown(&self, known: &DetectorRule, secret: &[u8], spot: &Spot<'_>) -> bool {
        let is_same = |(id, length, own): &(Text, usize, String)| {
            let begins = secret.get(..*length);
            *id == known.detector.id
                && begins.is_some_and(|begins| mark(self.rules.key(), begins) == *own)
        };
        let is_mail = || spot.trail.chain() == [Coding::QuotedPrintable];
        let may_be = spot.transform == Transform::None && (spot.trail.is_joined() || is_mail());
        may_be && self.state.shown.iter().any(is_same)
    }

    /// Takes the known values in `bytes` that end behind `from`; `origin` is where in
    /// the outermost stream a place of them comes from. The result is how many there are.
    pub(crate) fn recall(
        &mut self,
        bytes: &[u8],
        from: usize,
        trail: &Trail,
        origin: impl Fn(usize) -> u64,
    ) -> usize {
        let rules = self.rules;
        let Some(known) = rules.known() else {
            return 0;
        };
        let mut from = from;
        let mut count = 0_usize;
        while let Some(found) = known.find(bytes, from) {
            let spot = Spot {
                offset: origin(found.range.start),
                around: None,
                trail,
                transform: Transform::None,
                before: span::upto(bytes, found.range.start),
                within: (bytes, found.range.start),
            };
            let text = bytes.get(found.range.clone()).ok_or(Misplaced);
            let text = self.state.budget.lost().found(text);
            self.known(found.value, text, found.form, &spot);
            count = count.saturating_add(1);
            if !self.state.budget.work(limits::CONFIRM_BYTES_MIN) {
                return count;
            }
            from = found.range.end.max(from.saturating_add(1));
        }
        count
    }

    /// Takes a known value, unless it may go where it is going.
    pub(crate) fn known(&mut self, number: usize, text: &[u8], form: KnownForm, spot: &Spot<'_>) {
        let Some(value) = self.rules.known().and_then(|known| known.value(number)) else {
            return self.state.budget.lost().set();
        };
        let coded = match form {
            KnownForm::Raw => None,
            KnownForm::Reversed => Some(Coding::Reversed),
            KnownForm::Base64 => Some(Coding::Base64),
            KnownForm::Hex => Some(Coding::Hex),
            KnownForm::Base32 => Some(Coding::Base32),
            KnownForm::Swapped => Some(Coding::Swapped),
            KnownForm::Escaped => Some(Coding::Json),
        };
        let kind = self.kind(spot.trail, coded, spot.before);
        if self.rules.lets(value, self.host) && self.rules.takes(value, self.host, kind) {
            let is_closed = self.rules.tenants(self.host) == Tenants::Many;
            if is_closed {
                self.state.settle_closed(kind);
            } else {
                self.state.settle();
            }
            return;
        }
        let mut chain = spot.trail.chain();
        chain.extend(coded);
        let detector = match value.nature {
            KnownNature::Sent => KNOWN_VALUE,
            KnownNature::Kept => KNOWN_KEY,
            KnownNature::Canary => CANARY,
        };
        let action = match (self.rules.policy(), value.tier) {
            _ if value.nature == KnownNature::Canary => Action::Block,
            (ScanPolicy::Monitor, _) | (ScanPolicy::Tiered, Tier::Context) => Action::Warn,
            (ScanPolicy::Strict | ScanPolicy::MonitorForms, _)
            | (ScanPolicy::Tiered, Tier::Structured | Tier::Strong) => Action::Block,
        };
        let place = KNOWN.saturating_add(number);
        let spread = spot.spread(0);
        self.report(
            place,
            (text, spread),
            Finding {
                detector: Text::Borrowed(detector),
                name: Text::Owned(value.label.clone()),
                place: Place::Content,
                offset: spot.offset,
                chain,
                inside: spot.trail.inside(),
                tier: value.tier,
                checked: Checked::Passed,
                action,
                issuers: self.rules.homes(value),
                mark: mark(self.rules.key(), text),
            },
        );
    }

    /// Takes a finding, unless the same value was reported for the same rule.
    fn report(&mut self, rule: usize, (secret, spread): (&[u8], Spread), finding: Finding) {
        let key = (rule, mark(self.rules.key(), secret).into_bytes());
        let state = &mut *self.state;
        if state.reported.len() < limits::REPORTED_MAX && !state.reported.insert(key) {
            return;
        }
        let is_last = finding.action == Action::Block && !state.gathers;
        let is_kept = is_last && state.block.is_none()
            || !is_last && state.warnings.len() < limits::FINDINGS_MAX;
        if !is_kept {
            return;
        }
        let around = self.inside(secret, spread);
        let inside = match (around, &finding.inside) {
            (Some(around), Some(entry)) => Some(format!("{around}: {entry}")),
            (around, entry) => around.or_else(|| entry.clone()),
        };
        let finding = Finding { inside, ..finding };
        if is_last {
            self.state.block = Some(finding);
        } else {
            self.state.warnings.push(finding);
        }
    }

    /// What a place of the outermost stream lies in. A name that holds a credential, or is
    /// a part of this one, is not shown.
    fn inside(&mut self, secret: &[u8], spread: Spread) -> Option<String> {
        if self.state.names >= limits::NAMES_MAX {
            return None;
        }
        let names = Cell::new(self.state.names);
        let to = ScanDestination {
            host: self.host,
            port: 0,
        };
        let is_clean = |name: &[u8]| {
            names.set(names.get().saturating_add(1));
            let mut pieces = name.windows(limits::NAME_OF_SECRET_BYTES_MIN);
            let is_part = pieces.any(|piece| memchr::memmem::find(secret, piece).is_some());
            !is_part && !self.rules.holds(&to, name)
        };
        let inside = self.state.position.inside(spread, &is_clean);
        // What no name holds, several may one after the other, as they are or escaped.
        let inside = inside.filter(|text| {
            let joined = position::names(text);
            let plain = pieces::plain(PieceSource::Path, &joined);
            is_clean(&joined) && (*plain == *joined || is_clean(&plain))
        });
        self.state.names = names.get();
        inside
    }

    /// Bytes were not looked into.
    pub(crate) fn miss(&mut self, reason: UnscannedReason, bytes: u64) {
        if reason.is_limit() {
            self.state.limit.get_or_insert(reason);
        }
        match &mut self.state.unscanned {
            Some(unscanned) => unscanned.bytes = unscanned.bytes.saturating_add(bytes),
            none => *none = Some(Unscanned { reason, bytes }),
        }
    }
}
