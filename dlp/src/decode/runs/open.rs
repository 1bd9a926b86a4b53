//! A run under decoding. Of an alphabet in which a look tells places, only what
//! surrounds something that begins goes through a layer, at the phase at which it
//! does; of others all of it, at every phase. Holds symbols, not bytes: what begins
//! may reach back.

use std::collections::VecDeque;

use crate::budget::{narrow, wide};
use crate::decode::containers::{Containers, is_zlib, may_be_unmarked};
use crate::decode::layer::{FREE, Layer, LayerExtent, View, unbroken};
use crate::finding::UnscannedReason;
use crate::known::KnownValues;
use crate::limits;
use crate::prefilter::OVERLAP;
use crate::scan::Scan;
use crate::span::{self, Span};
use crate::trail::Trail;

use super::alphabet::{Alphabet, Starts, SymbolReader};
use super::is_dense;
use super::lane::{PhaseLane, RunExtent};
use super::probe::{Cover, MARGIN_SYMBOLS, Probe};
use super::radix::{self, Phase};

/// Symbols decoded behind a place where something begins: the longest literal and more.
const AFTER_SYMBOLS: u64 = 256;

/// How far before the end of what is decoded something must begin to be seen whole.
const WITHIN_SYMBOLS: u64 = 184;

/// Bytes before what begins that are decoded with it, at least: an escape's.
const CONTEXT_BYTES: usize = 256;

/// A run, or what is left of the last one for the next.
pub(super) struct OpenRun {
    alphabet: Alphabet,
    reader: SymbolReader,
    symbols: Vec<u8>,
    /// The number of the first of them in the run.
    base: u64,
    /// Numbers of symbols, and where in the outermost stream they stand.
    marks: VecDeque<(u64, u64)>,
    /// Symbols before this number were looked at.
    looked: u64,
    /// Known values that end before this number were found.
    recalled: u64,
    trail: Trail,
    phases: Vec<PhaseLane>,
    /// Whether all of it goes through layers.
    is_dense: bool,
    /// What must stay of what is not decoded, in offsets of the outermost stream.
    floor: u64,
    spots: Vec<u64>,
    made: Vec<u8>,
    probe: Probe,
}

impl OpenRun {
    /// No run yet.
    pub(super) fn new(alphabet: Alphabet, trail: &Trail) -> Self {
        Self {
            alphabet,
            reader: alphabet.reader(),
            symbols: Vec::new(),
            base: 0,
            marks: VecDeque::new(),
            looked: 0,
            recalled: 0,
            trail: trail.with(alphabet.coding(), None),
            phases: (0..alphabet.phases())
                .map(|_| PhaseLane::default())
                .collect(),
            is_dense: true,
            floor: FREE,
            spots: Vec::new(),
            made: Vec::new(),
            probe: Probe::default(),
        }
    }

    /// Forgets the run.
    pub(super) fn clear(&mut self, scan: &mut Scan<'_>) {
        for lane in &mut self.phases {
            lane.stop(scan);
        }
        self.reader = self.alphabet.reader();
        self.symbols.clear();
        self.base = 0;
        self.marks.clear();
        self.looked = 0;
        self.recalled = 0;
        self.floor = FREE;
    }

    /// What must stay, in offsets of the outermost stream.
    pub(super) fn held(&self) -> u64 {
        let active = self.phases.iter().filter(|lane| lane.is_active);
        let layers = active.filter_map(|lane| lane.layer.as_ref());
        let held = layers.map(|layer| layer.held()).min();
        held.unwrap_or(FREE).min(self.floor)
    }

    /// Takes the bytes of the run from `from` to `to`.
    pub(super) fn read(&mut self, view: &View<'_>, from: u64, to: u64) {
        let mut next = from;
        while next < to {
            let end = next.saturating_add(wide(limits::PIECE_BYTES)).min(to);
            // What of the last symbols made no whole byte came shortly before.
            let outer = view.origin(next.saturating_sub(radix::LAG));
            let number = self.end();
            if self.marks.back().is_none_or(|(_, known)| *known != outer) {
                self.marks.push_back((number, outer));
            }
            self.reader.read(view.slice(next, end), &mut self.symbols);
            next = end;
        }
    }

    /// The number behind the last symbol.
    fn end(&self) -> u64 {
        self.base.saturating_add(wide(self.symbols.len()))
    }

    fn group(&self) -> u64 {
        wide(self.alphabet.phases())
    }

    /// How many symbols stand for so many bytes, at most.
    fn symbols_of(&self, bytes: usize) -> u64 {
        let bits = wide(bytes).saturating_mul(8);
        bits.div_ceil(u64::from(self.alphabet.bits()))
    }

    /// Where in the outermost stream a symbol stands, never too large.
    fn outer(&self, number: u64) -> u64 {
        let after = self.marks.partition_point(|(own, _)| *own <= number);
        let mark = self.marks.get(after.saturating_sub(1));
        mark.map_or(0, |(_, outer)| *outer)
    }

    /// The run begins: its first symbols are here, or all of it, and these are where words
    /// begin.
    pub(super) fn begin(&mut self, scan: &mut Scan<'_>, starts: Starts, extent: RunExtent) {
        let is_dense = is_dense(self.alphabet, scan);
        self.is_dense = is_dense;
        for start in 0..self.group() {
            if is_dense || is_zlib(&self.first(start)) {
                self.wake(scan, start, start);
                self.expect(start, Containers::expect_zlib);
            }
            if let Some(lane) = self.lane(start).filter(|_| is_dense) {
                lane.until = u64::MAX;
            }
        }
        let bits = u64::from(self.alphabet.bits());
        for start in starts.all().map(wide) {
            let symbols = self.end().saturating_sub(start);
            let all = narrow(symbols.saturating_mul(bits) / 8);
            let all = (extent == RunExtent::Whole).then_some(all);
            if is_dense || may_be_unmarked(&self.first(start), all) {
                // What stands before it in its phase is not looked at otherwise.
                self.wake(scan, start, start % self.group().max(1));
                self.expect(start, Containers::expect);
            }
        }
    }

    /// The phase of a symbol.
    fn lane(&mut self, number: u64) -> Option<&mut PhaseLane> {
        let phase = number.checked_rem(self.group()).map(narrow);
        self.phases.get_mut(phase.unwrap_or_default())
    }

    /// Compressed data may begin with this symbol.
    fn expect(&mut self, start: u64, tell: fn(&mut Containers, u64)) {
        let bits = u64::from(self.alphabet.bits());
        if let Some(lane) = self.lane(start)
            && let Some(layer) = lane.layer.as_mut().filter(|_| lane.is_active)
        {
            let ahead = start.saturating_sub(lane.fed).saturating_mul(bits) / 8;
            let at = layer.end().saturating_add(ahead);
            tell(layer.containers(), at);
        }
    }

    /// The first bytes of a phase.
    fn first(&self, skip: u64) -> Vec<u8> {
        let mut made = Vec::new();
        let symbols = span::from(&self.symbols, narrow(skip));
        let few = symbols.get(..limits::FIRST_SYMBOLS).unwrap_or(symbols);
        Phase::new(self.alphabet.bits()).push(few, &mut made);
        made
    }

    /// Goes on with what came.
    pub(super) fn work(&mut self, scan: &mut Scan<'_>, until: LayerExtent) {
        if until == LayerExtent::End {
            self.reader.finish(&mut self.symbols);
        }
        self.look(scan, until);
        self.find_known(scan);
        let end = self.end();
        for phase in 0..self.phases.len() {
            self.advance(scan, phase, end);
            self.settle(scan, phase, until);
        }
        self.floor = match until {
            LayerExtent::Step if self.is_dense => FREE,
            LayerExtent::Step => {
                let known = scan.rules.known().map_or(0, KnownValues::longest);
                let back = scan.rules.before().max(OVERLAP).max(known);
                let back = back.saturating_add(3);
                let first = self.looked.saturating_sub(self.symbols_of(back));
                self.outer(first)
            }
            LayerExtent::Flush => self.flushed(scan),
            LayerExtent::End => FREE,
        };
        self.trim(scan);
    }

    /// Looks for places where something begins in what was not looked at.
    fn look(&mut self, scan: &mut Scan<'_>, until: LayerExtent) {
        if self.is_dense {
            return;
        }
        let end = self.end();
        let certain = end.saturating_sub(wide(MARGIN_SYMBOLS)).max(self.looked);
        let to = if until == LayerExtent::Step {
            certain
        } else {
            end
        };
        let mut cover = Cover {
            until: [0; 4],
            after: AFTER_SYMBOLS,
            within: WITHIN_SYMBOLS,
            spots: std::mem::take(&mut self.spots),
        };
        for (known, lane) in cover.until.iter_mut().zip(&self.phases) {
            *known = if lane.is_active { lane.until } else { 0 };
        }
        cover.spots.clear();
        let range = Span::new(self.looked, to).places(self.base, self.symbols.len());
        let Ok(range) = range else {
            return scan.state.budget.lost().set();
        };
        let text = (self.symbols.as_slice(), self.base);
        let prefilter = scan.rules.prefilter();
        let probe = &mut self.probe;
        let looked = probe.find(prefilter, text, range, &mut cover);
        scan.state.budget.lost().found(looked);
        for spot in &cover.spots {
            // Of what began before, and goes on behind the end, nothing is told yet:
            // a phase that begins here has to see it when the rest comes.
            let phase = spot.checked_rem(self.group()).unwrap_or_default();
            let least = certain.saturating_sub(self.group()).min(*spot);
            self.wake(scan, *spot, self.aligned(least, phase).min(*spot));
        }
        self.spots = cover.spots;
        self.looked = if until == LayerExtent::End {
            end
        } else {
            certain
        };
    }

    /// Known values at every phase: they have no beginning that could be told.
    fn find_known(&mut self, scan: &mut Scan<'_>) {
        let Some(known) = scan.rules.known().filter(|_| !self.is_dense) else {
            return;
        };
        let back = self.symbols_of(known.longest().saturating_add(3));
        let mut made = std::mem::take(&mut self.made);
        for phase in 0..self.group() {
            let first = self.aligned(self.recalled.saturating_sub(back), phase);
            let symbols = radix::part(scan, (&self.symbols, self.base), (first, self.end()));
            made.clear();
            Phase::new(self.alphabet.bits()).push(symbols, &mut made);
            let bits = u64::from(self.alphabet.bits());
            let old = self.recalled.saturating_sub(first).saturating_mul(bits) / 8;
            scan.recall(&made, narrow(old), &self.trail, |place| {
                let bits_before = wide(place).saturating_mul(8);
                let symbols = bits_before.checked_div(bits).unwrap_or_default();
                self.outer(first.saturating_add(symbols))
            });
        }
        self.made = made;
        self.recalled = self.end();
    }

    /// The first symbol from `number` on that is there and begins a group.
    fn aligned(&self, number: u64, phase: u64) -> u64 {
        let (first, group) = (number.max(self.base), self.group());
        let at = first.checked_rem(group).unwrap_or_default();
        let ahead = phase.saturating_add(group).saturating_sub(at);
        first.saturating_add(ahead.checked_rem(group).unwrap_or_default())
    }

    /// Something may begin in the group of this symbol: a phase that is not decoded
    /// is from `from` on.
    fn wake(&mut self, scan: &mut Scan<'_>, at: u64, from: u64) {
        let phase = narrow(at.checked_rem(self.group()).unwrap_or_default());
        let is_over = |lane: &PhaseLane| lane.is_active && at >= lane.until;
        if self.phases.get(phase).is_some_and(is_over) {
            self.advance(scan, phase, at);
        }
        let is_active = self.phases.get(phase).is_none_or(|lane| lane.is_active);
        if !is_active && !self.start(scan, phase, from) {
            return;
        }
        if let Some(lane) = self.phases.get_mut(phase) {
            lane.until = lane.until.max(at.saturating_add(AFTER_SYMBOLS));
        }
    }

    /// Begins to decode a phase, with some of what stands before.
    fn start(&mut self, scan: &mut Scan<'_>, phase: usize, at: u64) -> bool {
        if self.trail.depth() > limits::DEPTH_MAX {
            scan.miss(UnscannedReason::Depth, 1);
            return false;
        }
        if !scan.state.budget.open() {
            return false;
        }
        // Two more for what stands before a match.
        let back = scan.rules.reach().max(CONTEXT_BYTES).saturating_add(2);
        let back = self.symbols_of(back);
        let first = self.aligned(at.saturating_sub(back), wide(phase));
        self.made.clear();
        let symbols = radix::part(scan, (&self.symbols, self.base), (first, at));
        Phase::new(self.alphabet.bits()).push(symbols, &mut self.made);
        let outer = self.outer(first);
        let Some(lane) = self.phases.get_mut(phase) else {
            return false;
        };
        let trail = &self.trail;
        let layer = lane
            .layer
            .get_or_insert_with(|| Box::new(Layer::new(trail.clone())));
        layer.recall(&self.made, outer);
        lane.is_active = true;
        lane.fed = at;
        lane.ahead = 0;
        lane.until = at;
        true
    }

    /// Decodes a phase up to `to`, or to where it ends.
    fn advance(&mut self, scan: &mut Scan<'_>, phase: usize, to: u64) {
        while let Some(lane) = self.phases.get(phase).filter(|lane| lane.is_active) {
            if scan.is_over() {
                return;
            }
            let until = lane.until;
            self.feed(scan, phase, until.min(to));
            if until > to {
                return;
            }
            let Some(lane) = self.phases.get_mut(phase) else {
                return;
            };
            let Some(layer) = &mut lane.layer else {
                return;
            };
            layer.work(scan, LayerExtent::Step);
            if layer.is_open() {
                lane.until = lane.until.saturating_add(AFTER_SYMBOLS);
            } else {
                layer.work(scan, LayerExtent::End);
                lane.stop(scan);
            }
        }
    }

    /// Gives a phase the whole groups before `to`.
    fn feed(&mut self, scan: &mut Scan<'_>, phase: usize, to: u64) {
        let group = self.group();
        let Some(fed) = self.phases.get(phase).map(|lane| lane.fed) else {
            return;
        };
        let rest = to
            .saturating_sub(fed)
            .checked_rem(group)
            .unwrap_or_default();
        let to = to.saturating_sub(rest);
        let mut fed = fed;
        while fed < to && !scan.is_over() {
            let piece = wide(limits::PIECE_BYTES);
            let next = fed.saturating_add(piece).min(to);
            self.give(scan, phase, (fed, next));
            fed = next;
        }
        if let Some(lane) = self.phases.get_mut(phase) {
            lane.fed = lane.fed.max(to);
        }
    }

    fn give(&mut self, scan: &mut Scan<'_>, phase: usize, range: (u64, u64)) {
        self.made.clear();
        let symbols = radix::part(scan, (&self.symbols, self.base), range);
        Phase::new(self.alphabet.bits()).push(symbols, &mut self.made);
        let outer = self.outer(range.0);
        let Some(lane) = self.phases.get_mut(phase) else {
            return;
        };
        let ahead = std::mem::take(&mut lane.ahead);
        let new = span::from(&self.made, ahead);
        if let Some(layer) = &mut lane.layer
            && scan.state.budget.derive(new.len())
        {
            layer.push(scan, new, Some(outer));
        }
    }

    /// The end of what is here, for a phase.
    fn settle(&mut self, scan: &mut Scan<'_>, phase: usize, until: LayerExtent) {
        let Some(lane) = self.phases.get(phase).filter(|lane| lane.is_active) else {
            return;
        };
        if until != LayerExtent::Step {
            // The last symbols make no whole group, but may end a credential.
            self.give(scan, phase, (lane.fed, self.end()));
        }
        if let Some(lane) = self.phases.get_mut(phase)
            && let Some(layer) = lane.layer.as_mut()
        {
            layer.work(scan, until);
            match until {
                LayerExtent::Step => {}
                LayerExtent::Flush => lane.ahead = self.made.len(),
                LayerExtent::End => lane.stop(scan),
            }
        }
    }

    /// What must stay of phases that are not decoded although all should go: the
    /// literal of some forms comes last.
    fn flushed(&mut self, scan: &mut Scan<'_>) -> u64 {
        let before = scan.rules.before();
        let end = self.end();
        let mut floor = FREE;
        if before == 0 {
            return floor;
        }
        for phase in 0..self.phases.len() {
            if self.phases.get(phase).is_none_or(|lane| lane.is_active) {
                continue;
            }
            let first = end.saturating_sub(self.symbols_of(before));
            let first = self.aligned(first, wide(phase));
            self.made.clear();
            let symbols = radix::part(scan, (&self.symbols, self.base), (first, end));
            Phase::new(self.alphabet.bits()).push(symbols, &mut self.made);
            let tail = unbroken(&self.made, before);
            if tail >= limits::UNBROKEN_BYTES_MIN {
                let back = self.symbols_of(tail.saturating_add(3));
                floor = floor.min(self.outer(end.saturating_sub(back)));
            }
        }
        floor
    }

    /// Lets go of symbols that nothing will look at again.
    fn trim(&mut self, scan: &Scan<'_>) {
        let active = self.phases.iter().filter(|lane| lane.is_active);
        let fed = active.map(|lane| lane.fed).min().unwrap_or(FREE);
        let known = scan.rules.known().map_or(0, KnownValues::longest);
        let reach = scan.rules.reach().max(CONTEXT_BYTES).max(known);
        let reach = reach.saturating_add(64);
        let context = self.looked.saturating_sub(self.symbols_of(reach));
        let keep = if self.is_dense { fed } else { fed.min(context) };
        let drop = narrow(keep.saturating_sub(self.base)).min(self.symbols.len());
        // Moving what stays costs as much as a look at it: not for a few.
        if drop >= limits::CONTEXT_BYTES {
            self.symbols.drain(..drop);
            self.base = self.base.saturating_add(wide(drop));
            let base = self.base;
            while self.marks.get(1).is_some_and(|(own, _)| *own <= base) {
                self.marks.pop_front();
            }
        }
    }
}
