//! One layer of bytes: what came in, or what came out of a coding. Finds the
//! credentials in it, and the codings in it, whose insides are layers again.
//!
//! A layer looks at its bytes in steps. Literals that begin in a step are
//! confirmed when all bytes a match could have are there; until then, and while
//! a literal could still be incomplete, the bytes are held.

mod view;

use std::collections::VecDeque;

use outgate_lanes::BLOCK_BYTES;

use crate::budget::{narrow, wide};
use crate::decode::classes::Classes;
use crate::decode::containers::Containers;
use crate::decode::dumps::Dumps;
use crate::decode::filters::Filters;
use crate::decode::runs::Runs;
use crate::escapes::EscapeKind;
use crate::index::{LiteralMeaning, Transform};
use crate::limits;
use crate::made::MadeMark;
use crate::origins::LayerOrigins;
use crate::prefilter::OVERLAP;
use crate::scan::{Scan, Spot};
use crate::settings::Depth;
use crate::span::{self, Lost, Misplaced, Offset, Span};
use crate::trail::Trail;

pub(crate) use view::View;

/// How far a layer goes with what it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LayerExtent {
    /// More will come: what is uncertain waits.
    Step,
    /// More may come, but what is here should go: only what could still become a
    /// credential waits.
    Flush,
    /// Nothing will come.
    End,
}

/// Nothing is held.
pub(crate) const FREE: u64 = u64::MAX;

/// One layer of bytes.
#[derive(Default)]
pub(crate) struct Layer {
    buffer: Vec<u8>,
    /// Offset of the buffer's first byte in this layer.
    base: u64,
    classes: Classes,
    origins: LayerOrigins,
    /// Literals that begin before this offset were looked for.
    seen: u64,
    /// Bytes that came since the last step.
    fresh: usize,
    pending: VecDeque<Pending>,
    trail: Trail,
    made: MadeMark,
    filters: Filters,
    runs: Runs,
    dumps: Dumps,
    containers: Containers,
    /// For rules without literals: matches that begin before were looked for.
    searched: u64,
    /// Known values that end before were found.
    recalled: u64,
    /// What must stay, in offsets of the outermost stream.
    held: u64,
    /// The end, as of the last step.
    worked: u64,
}

/// A literal whose surroundings are not complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Pending {
    rule: usize,
    at: u64,
    transform: Transform,
}

impl Layer {
    /// An empty layer.
    pub(crate) fn new(trail: Trail) -> Self {
        Self {
            trail,
            held: FREE,
            ..Self::default()
        }
    }

    /// Reads the values of a form together as well.
    pub(crate) fn join_form(&mut self, scan: &mut Scan<'_>) {
        self.filters.join_form(scan, &self.trail);
    }

    /// An escape of this kind was removed there to make the layer.
    pub(crate) fn change(&mut self, kind: EscapeKind, place: u64) {
        self.filters.change(kind, place);
    }

    /// What is decoded here, beside what the bytes say themselves.
    pub(crate) fn containers(&mut self) -> &mut Containers {
        &mut self.containers
    }

    /// The offset behind the last byte.
    pub(crate) fn end(&self) -> u64 {
        self.base.saturating_add(wide(self.buffer.len()))
    }

    /// The next bytes, of which there are so many, end before `outer`.
    pub(crate) fn limit(&mut self, bytes: usize, outer: u64) {
        let end = self.end().saturating_add(wide(bytes));
        self.origins.limit(end, outer);
    }

    /// What must stay, as of the last step, in offsets of the outermost stream.
    pub(crate) fn held(&self) -> u64 {
        self.held
    }

    /// What may go as of the last step: all before what must stay, but nothing
    /// that no step has seen.
    pub(crate) fn stepped(&self) -> u64 {
        self.held.min(self.worked)
    }

    /// Whether something has begun that more bytes could complete.
    pub(crate) fn is_open(&self) -> bool {
        !self.pending.is_empty()
            || self.filters.is_open()
            || self.runs.is_open()
            || self.dumps.is_open()
            || self.trail.is_run() && self.dumps.goes_on()
            || self.containers.is_open()
    }

    /// Begins with bytes that were looked at elsewhere: what follows may reach back
    /// to them, but nothing that begins in them is looked for.
    pub(crate) fn recall(&mut self, bytes: &[u8], outer: u64) {
        self.origins.note(0, outer);
        self.buffer.extend_from_slice(bytes);
        let end = self.end();
        self.seen = end;
        self.searched = end;
        self.recalled = end;
        self.filters.skip(end);
        self.runs.skip(end);
        self.dumps.skip(end);
    }

    /// Takes bytes that come from `outer` of the outermost stream, or that are
    /// the outermost stream.
    pub(crate) fn push(&mut self, scan: &mut Scan<'_>, mut bytes: &[u8], outer: Option<u64>) {
        scan.state.made.keep(&mut self.made, &self.trail, bytes);
        while !bytes.is_empty() && !scan.is_over() {
            if let Some(outer) = outer {
                let end = self.end();
                self.origins.note(end, outer);
            }
            let room = limits::STEP_BYTES.saturating_sub(self.fresh);
            let (now, later) = bytes.split_at_checked(room).unwrap_or((bytes, &[]));
            self.buffer.extend_from_slice(now);
            self.fresh = self.fresh.saturating_add(now.len());
            bytes = later;
            if self.fresh >= limits::STEP_BYTES {
                self.work(scan, LayerExtent::Step);
            }
        }
    }

    /// Forgets everything but the space it took.
    pub(crate) fn clear(&mut self, scan: &mut Scan<'_>) {
        self.buffer.clear();
        self.base = 0;
        self.classes.clear();
        self.origins.clear();
        self.seen = 0;
        self.fresh = 0;
        self.searched = 0;
        self.recalled = 0;
        self.pending.clear();
        self.made = MadeMark::Unknown;
        self.filters.clear(scan);
        self.runs.clear(scan);
        self.dumps.clear(scan);
        self.containers.clear(scan);
        self.held = FREE;
        self.worked = 0;
    }

    /// Looks at what came.
    pub(crate) fn work(&mut self, scan: &mut Scan<'_>, until: LayerExtent) {
        self.fresh = 0;
        if scan.is_over() {
            self.held = 0;
            return;
        }
        self.classes.read(&self.buffer);
        self.match_literals(scan, until);
        self.confirm(scan, until);
        self.search(scan, until);
        self.find_known(scan);
        let lost = Lost::default();
        let view = View {
            bytes: &self.buffer,
            base: self.base,
            origins: &self.origins,
            trail: &self.trail,
            classes: &self.classes,
            until,
            lost: &lost,
        };
        if scan.state.depth == Depth::Codings {
            self.containers.work(scan, &view);
            self.filters.work(scan, &view);
            self.runs.work(scan, &view);
            self.dumps.work(scan, &view);
        }
        // Nothing leaves behind a place that was lost.
        if scan.state.budget.lost().join(&lost) {
            self.held = 0;
            return;
        }
        self.held = self.hold(scan, until);
        self.worked = self.end();
        self.trim(scan);
    }

    fn match_literals(&mut self, scan: &mut Scan<'_>, until: LayerExtent) {
        let end = self.end();
        let to = match until {
            LayerExtent::Step => end.saturating_sub(wide(OVERLAP)).max(self.seen),
            LayerExtent::Flush | LayerExtent::End => end,
        };
        let (pending, buffer, base) = (&mut self.pending, &self.buffer, self.base);
        let containers = &mut self.containers;
        let rules = scan.rules;
        let borders = scan.borders(&self.trail, base);
        let mut hit = |literal: usize, place: usize| {
            let at = base.saturating_add(wide(place));
            for hit in rules.hits(literal) {
                match hit {
                    LiteralMeaning::Rule { rule, transform } => {
                        let (rule, transform) = (*rule, *transform);
                        // What is transformed does not stand there as the pattern has it.
                        let known = rules.rule(rule).filter(|_| transform == Transform::None);
                        if known.is_some_and(|known| known.is_hopeless(buffer, place, borders)) {
                            continue;
                        }
                        let new = Pending {
                            rule,
                            at,
                            transform,
                        };
                        if !pending.contains(&new) {
                            pending.push_back(new);
                        }
                    }
                    LiteralMeaning::Container(kind) => containers.spot(*kind, at),
                }
            }
        };
        let region = Span::new(self.seen, to).places(base, buffer.len());
        let looked = region.and_then(|region| rules.prefilter().scan(buffer, region, &mut hit));
        scan.state.budget.lost().found(looked);
        let certain = end.saturating_sub(wide(OVERLAP));
        self.seen = if until == LayerExtent::End {
            end
        } else {
            certain.max(self.seen)
        };
    }

    fn confirm(&mut self, scan: &mut Scan<'_>, until: LayerExtent) {
        let end = self.end();
        for _ in 0..self.pending.len() {
            let Some(pending) = self.pending.pop_front() else {
                return;
            };
            let Some(rule) = scan.rules.rule(pending.rule) else {
                return scan.state.budget.lost().set();
            };
            let max = wide(rule.detector.max);
            let reach = match pending.transform {
                Transform::Reversed(length) if rule.before() == 0 => wide(length),
                Transform::Reversed(length) => max.saturating_add(wide(length)).saturating_add(1),
                Transform::None | Transform::Rot13 => max.saturating_add(wide(rule.behind())),
            };
            let reach = pending.at.saturating_add(reach);
            let is_whole = until == LayerExtent::End || reach <= end;
            if !is_whole && until == LayerExtent::Step {
                self.pending.push_back(pending);
                continue;
            }
            let starts = if rule.before() > 0 {
                limits::INSIDE_STARTS_MAX
            } else {
                1
            };
            let Ok(at) = self.place(pending.at) else {
                return scan.state.budget.lost().set();
            };
            let extent = extent(span::from(&self.buffer, at), rule.detector.max);
            let extent = wide(extent.saturating_mul(starts));
            if !scan.charge(pending.rule, pending.at, extent) {
                return;
            }
            let spot = Spot {
                within: (&self.buffer, at),
                offset: self.origins.of(pending.at),
                around: Some((&self.origins, self.base)),
                trail: &self.trail,
                transform: pending.transform,
                before: &[],
            };
            let about = (rule.detector.max, rule.before());
            let is_match = match pending.transform.apply(&self.buffer, at, about) {
                Some(made) => made
                    .iter()
                    .any(|(text, at)| scan.confirm(pending.rule, text, *at, &spot)),
                None => scan.confirm(pending.rule, &self.buffer, at, &spot),
            };
            if !is_match && !is_whole {
                self.pending.push_back(pending);
            }
        }
    }

    /// Rules without literals: the whole of what is new is searched.
    fn search(&mut self, scan: &mut Scan<'_>, until: LayerExtent) {
        let end = self.end();
        let mut next = end;
        for place in 0..scan.rules.searches().len() {
            let Some(id) = scan.rules.searches().get(place).copied() else {
                return;
            };
            let Some(rule) = scan.rules.rule(id) else {
                return scan.state.budget.lost().set();
            };
            if !scan.state.budget.work(wide(self.buffer.len())) {
                return;
            }
            let Ok(mut from) = self.place(self.searched) else {
                return scan.state.budget.lost().set();
            };
            let reach = wide(rule.detector.max);
            while let Some(found) =
                rule.search(&self.buffer, from, scan.borders(&self.trail, self.base))
            {
                let starts = self.base.saturating_add(wide(found.whole.start));
                if until != LayerExtent::End && found.whole.end == self.buffer.len() {
                    next = next.min(starts);
                    break;
                }
                let spot = Spot {
                    within: (&self.buffer, found.whole.start),
                    offset: self.origins.of(starts),
                    around: Some((&self.origins, self.base)),
                    trail: &self.trail,
                    transform: Transform::None,
                    before: &[],
                };
                scan.found(id, &self.buffer, &found, &spot);
                from = found.whole.end.max(from.saturating_add(1));
            }
            next = next.min(end.saturating_sub(reach));
        }
        self.searched = next.max(self.searched);
    }

    /// Known values: each is found as soon as all of it is there.
    fn find_known(&mut self, scan: &mut Scan<'_>) {
        let Ok(from) = self.place(self.recalled) else {
            return scan.state.budget.lost().set();
        };
        let (origins, base) = (&self.origins, self.base);
        scan.recall(&self.buffer, from, &self.trail, |place| {
            origins.of(base.saturating_add(wide(place)))
        });
        self.recalled = self.end();
    }

    /// What must stay, in offsets of the outermost stream.
    fn hold(&self, scan: &Scan<'_>, until: LayerExtent) -> u64 {
        let mut own = FREE;
        if until != LayerExtent::End {
            for pending in &self.pending {
                // What nobody knows any more stays.
                let Some(rule) = scan.rules.rule(pending.rule) else {
                    return 0;
                };
                let is_alive = until == LayerExtent::Step || self.is_alive(pending);
                let (can_block, before) = match pending.transform {
                    Transform::None => (scan.rules.can_block(pending.rule), rule.before()),
                    Transform::Rot13 => (scan.rules.can_block_transformed(pending.rule), 0),
                    Transform::Reversed(_) => {
                        let longest = rule.detector.max.min(limits::INSIDE_BYTES_MAX);
                        (scan.rules.can_block_transformed(pending.rule), longest)
                    }
                };
                if is_alive && can_block {
                    own = own.min(pending.at.saturating_sub(wide(before)));
                }
            }
        }
        if until == LayerExtent::Step {
            let back = scan.rules.before().max(OVERLAP);
            own = own.min(self.seen.saturating_sub(wide(back)));
            own = own.min(self.runs.uncertain()).min(self.dumps.uncertain());
            if let Some(known) = scan.rules.known() {
                own = own.min(self.end().saturating_sub(wide(known.longest())));
            }
        }
        if until == LayerExtent::Flush && scan.rules.before() > 0 {
            // The literal of some forms comes last: what could stand before it stays.
            let tail = unbroken(&self.buffer, scan.rules.before());
            if tail >= limits::UNBROKEN_BYTES_MIN {
                own = own.min(self.end().saturating_sub(wide(tail)));
            }
        }
        let own = if own == FREE {
            FREE
        } else {
            self.origins.of(own)
        };
        own.min(self.filters.held())
            .min(self.runs.held())
            .min(self.dumps.held(until))
            .min(self.containers.held())
    }

    /// Whether nothing has ended what a literal began.
    fn is_alive(&self, pending: &Pending) -> bool {
        // Where it is not there, nothing of it has ended.
        let rest = self
            .place(pending.at)
            .map_or(&[][..], |at| span::from(&self.buffer, at));
        rest.iter()
            .all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\'' | b'<' | b'>'))
    }

    /// Where an offset lies in the buffer.
    fn place(&self, offset: u64) -> Result<usize, Misplaced> {
        Offset(offset).within(self.base, self.buffer.len())
    }

    /// Lets go of bytes that nothing will look at again.
    fn trim(&mut self, scan: &Scan<'_>) {
        let mut keep = self.end().saturating_sub(wide(limits::CONTEXT_BYTES));
        for pending in &self.pending {
            let before = scan
                .rules
                .rule(pending.rule)
                .map_or(0, crate::confirm::DetectorRule::before);
            // And what stands before a match, with the key of a value.
            let first = pending.at.saturating_sub(wide(before));
            let first = first.saturating_sub(wide(limits::KEY_BYTES_MAX));
            keep = keep.min(first);
        }
        keep = keep.min(self.runs.uncertain()).min(self.dumps.uncertain());
        if !scan.rules.searches().is_empty() {
            keep = keep.min(self.searched.saturating_sub(2));
        }
        let drop = narrow(keep.saturating_sub(self.base));
        // Moving what stays costs as much as a look at it: not for a few bytes.
        if drop >= limits::CONTEXT_BYTES {
            // The first byte that stays is that of a block.
            let drop = drop.min(self.buffer.len());
            let drop = drop.saturating_sub(drop % BLOCK_BYTES);
            self.buffer.drain(..drop);
            self.classes.forget(drop);
            self.base = self.base.saturating_add(wide(drop));
            self.origins.forget(self.base);
        }
    }
}

/// How many bytes a pattern is likely to read of those from its literal on: hardly any reads
/// beyond a space or a quote.
fn extent(rest: &[u8], max: usize) -> usize {
    let rest = rest.get(..max).unwrap_or(rest);
    let ends = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b'"' | b'\'');
    rest.iter().position(ends).unwrap_or(rest.len())
}

/// How many bytes at the end, of so many, stand as those of a credential do.
pub(crate) fn unbroken(bytes: &[u8], most: usize) -> usize {
    let bytes = bytes.iter().rev().take(most);
    let is_part = |byte: &&u8| byte.is_ascii_alphanumeric() || b"_-~.+/".contains(byte);
    bytes.take_while(is_part).count()
}
