//! Codings that stand as runs of an alphabet: base64, hexadecimal, base32. A
//! run is looked at in every phase, since nobody says where it begins; what
//! something begins in goes through a layer. Short runs share one layer; a long
//! run gets a layer for each phase.

mod alphabet;
mod lane;
mod name;
mod open;
mod probe;
mod radix;
mod turned;

use std::ops::ControlFlow;

use crate::budget::{narrow, wide};
use crate::coding::Coding;
use crate::decode::containers::{is_unmarked, is_zlib};
use crate::decode::filters;
use crate::decode::layer::{FREE, Layer, LayerExtent, View};
use crate::finding::UnscannedReason;
use crate::limits;
use crate::scan::Scan;
use crate::span;
use crate::trail::Trail;

pub(crate) use alphabet::Alphabet;
use alphabet::Starts;
use lane::RunExtent;
use open::OpenRun;
use probe::{PhaseBegin, Probe};
use radix::Phase;

/// The runs of one layer, alphabet by alphabet.
#[derive(Default)]
pub(crate) struct Runs {
    list: Vec<Finder>,
    /// What stands before this offset was looked at elsewhere.
    begin: u64,
}

/// The runs of one alphabet.
struct Finder {
    alphabet: Alphabet,
    /// Runs that end before this offset are done with.
    done: u64,
    /// The run that goes on, or the space of the last that did.
    run: Option<Box<OpenRun>>,
    stage: RunsStage,
    /// Layer of what short runs decode to, kept for its space.
    batch: Option<Box<Layer>>,
    /// Short runs that were taken, to be looked at together.
    probe: Probe,
    trail: Option<Trail>,
    symbols: Vec<u8>,
    made: Vec<u8>,
}

/// Where the runs of an alphabet stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RunsStage {
    /// None goes on.
    Between,
    /// What may become one goes on: it is long, and has too few symbols yet.
    Waiting,
    /// One goes on.
    Open,
}

/// Between what two runs, or two phases, decode to: in no alphabet, and as many as
/// have to be UTF-8 behind a character that folds.
const BORDER: [u8; filters::FOLD_NEAR_BYTES] = [1; filters::FOLD_NEAR_BYTES];

/// Length of a run that shares a layer with others, in bytes: of longer ones only
/// pieces go through one where that is possible.
const BATCH_BYTES_MAX: usize = 1024;

impl Runs {
    /// Whether a run goes on, or what may become one.
    pub(crate) fn is_open(&self) -> bool {
        let mut finders = self.list.iter();
        finders.any(|finder| finder.stage != RunsStage::Between)
    }

    /// The offset before which every run is done with.
    pub(crate) fn uncertain(&self) -> u64 {
        let waiting = self
            .list
            .iter()
            .filter(|finder| finder.stage != RunsStage::Open);
        waiting.map(|finder| finder.done).min().unwrap_or(FREE)
    }

    /// What must stay, in offsets of the outermost stream.
    pub(crate) fn held(&self) -> u64 {
        let open = self
            .list
            .iter()
            .filter(|finder| finder.stage == RunsStage::Open);
        let runs = open.filter_map(|finder| finder.run.as_ref());
        runs.map(|run| run.held()).min().unwrap_or(FREE)
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self, scan: &mut Scan<'_>) {
        self.begin = 0;
        for finder in &mut self.list {
            finder.done = 0;
            finder.close(scan);
        }
    }

    /// What stands before `offset` was looked at elsewhere.
    pub(crate) fn skip(&mut self, offset: u64) {
        self.begin = offset;
    }

    /// Looks for runs in what is new, and goes on with those that are open.
    pub(crate) fn work(&mut self, scan: &mut Scan<'_>, view: &View<'_>) {
        if self.list.is_empty() {
            if view.bytes.len() < limits::BASE64_SYMBOLS_MIN {
                return;
            }
            self.list = Alphabet::ALL.map(Finder::new).into_iter().collect();
        }
        for finder in &mut self.list {
            finder.done = finder.done.max(self.begin);
            finder.work(scan, view);
        }
    }
}

impl Finder {
    fn new(alphabet: Alphabet) -> Self {
        Self {
            alphabet,
            done: 0,
            run: None,
            stage: RunsStage::Between,
            batch: None,
            probe: Probe::default(),
            trail: None,
            symbols: Vec::new(),
            made: Vec::new(),
        }
    }

    fn close(&mut self, scan: &mut Scan<'_>) {
        self.stage = RunsStage::Between;
        if let Some(run) = &mut self.run {
            run.clear(scan);
        }
    }

    fn work(&mut self, scan: &mut Scan<'_>, view: &View<'_>) {
        self.done = self.done.max(view.base);
        let told = scan.state.told();
        if self.stage == RunsStage::Open {
            self.go_on(scan, view);
        }
        if self.stage != RunsStage::Open {
            self.find(scan, view);
        }
        if self.probe.len() > 0 {
            self.probe(scan, view);
        }
        if let Some(batch) = &mut self.batch
            && batch.end() > 0
        {
            batch.work(scan, LayerExtent::End);
            batch.clear(scan);
        }
        if scan.state.told() != told {
            scan.state.repeats.forget();
        }
        if self.stage == RunsStage::Open
            && let Some(run) = &mut self.run
        {
            run.work(scan, view.until);
            if view.until == LayerExtent::End {
                self.close(scan);
                self.turn(scan, view, view.end());
            }
        }
    }

    /// Looks at a run that ends there from its end.
    fn turn(&self, scan: &mut Scan<'_>, view: &View<'_>, stop: u64) {
        turned::look(scan, view, (stop, self.alphabet));
    }

    /// Goes on with an open run to its end or that of the bytes.
    fn go_on(&mut self, scan: &mut Scan<'_>, view: &View<'_>) {
        let Some(run) = &mut self.run else {
            return;
        };
        let end = view.end();
        let to = view.classes.stop(self.alphabet, (self.done, end));
        run.read(view, self.done, to);
        self.done = to;
        if to < end {
            run.work(scan, LayerExtent::End);
            self.close(scan);
            self.turn(scan, view, to);
        }
    }

    /// Finds the runs in what is new.
    fn find(&mut self, scan: &mut Scan<'_>, view: &View<'_>) {
        let end = view.end();
        let least = self.alphabet.symbols_min();
        let mut from = self.done;
        self.stage = RunsStage::Between;
        while let Some((at, stop)) = view.classes.run(self.alphabet, (from, end)) {
            from = stop;
            let touches = stop == end && view.until != LayerExtent::End;
            let run = view.slice(at, stop);
            // What came before and held nothing is not even counted. What touches the end
            // may be longer, and where all goes through a layer nothing is remembered.
            let is_remembered = !touches && !is_dense(self.alphabet, scan);
            if is_remembered && !scan.state.repeats.is_new(run) {
                continue;
            }
            if self.alphabet.count(run) < least {
                if touches {
                    // Nothing waits for what goes on without end and becomes none.
                    if run.len() < limits::RUN_START_BYTES_MAX {
                        self.stage = RunsStage::Waiting;
                    }
                    // It may still become one.
                    let most = wide(limits::RUN_START_BYTES_MAX);
                    self.done = at.max(end.saturating_sub(most));
                    return;
                }
                continue;
            }
            if touches || run.len() > BATCH_BYTES_MAX {
                let extent = if touches {
                    RunExtent::Part
                } else {
                    RunExtent::Whole
                };
                self.begin(scan, view, (at, stop), extent);
                if touches {
                    self.done = end;
                    return;
                }
                if let Some(run) = &mut self.run {
                    run.work(scan, LayerExtent::End);
                }
                self.close(scan);
            } else {
                self.take_run(scan, view, run, at);
            }
            self.turn(scan, view, stop);
            if scan.is_over() {
                return;
            }
        }
        // What may be the beginning of a run waits.
        let waiting = self.alphabet.tail(view.slice(from, end));
        let waiting = waiting.min(limits::RUN_START_BYTES_MAX);
        self.done = if view.until == LayerExtent::End {
            end
        } else {
            end.saturating_sub(wide(waiting))
        };
    }

    /// Begins a run that goes on, or is too long to be decoded with others.
    fn begin(
        &mut self,
        scan: &mut Scan<'_>,
        view: &View<'_>,
        (from, to): (u64, u64),
        extent: RunExtent,
    ) {
        let alphabet = self.alphabet;
        let run = self
            .run
            .get_or_insert_with(|| Box::new(OpenRun::new(alphabet, view.trail)));
        run.read(view, from, to);
        let here = view.slice(from, to);
        run.begin(scan, alphabet.starts(here, extent), extent);
        self.stage = RunsStage::Open;
    }

    /// Takes a run that is whole: to be looked at with others, or, where no look tells
    /// places, to the layer at once.
    fn take_run(&mut self, scan: &mut Scan<'_>, view: &View<'_>, run: &[u8], at: u64) {
        let is_dense = is_dense(self.alphabet, scan);
        self.symbols.clear();
        let mut reader = self.alphabet.reader();
        reader.read(run, &mut self.symbols);
        reader.finish(&mut self.symbols);
        let outer = view.origin(at);
        let starts = self.starts(run);
        if !is_dense {
            self.probe.take(&mut self.symbols, (outer, starts));
            if self.probe.len() >= limits::STEP_BYTES {
                self.probe(scan, view);
            }
            return;
        }
        for skip in 0..self.alphabet.phases() {
            let symbols = span::from(&self.symbols, skip);
            let mut made = std::mem::take(&mut self.made);
            made.clear();
            Phase::new(self.alphabet.bits()).push(symbols, &mut made);
            let gave = self.give(
                scan,
                view,
                (&made, outer),
                starts.offsets(skip, self.alphabet),
            );
            self.made = made;
            if gave.is_break() {
                return;
            }
        }
    }

    /// Where in a run that is whole compressed data without a mark may begin.
    fn starts(&self, run: &[u8]) -> Starts {
        let bits = usize::try_from(self.alphabet.bits()).unwrap_or_default();
        if run.len().saturating_mul(bits) / 8 < limits::UNMARKED_BYTES_MIN {
            return Starts::NONE;
        }
        let is_base32 = matches!(self.alphabet, Alphabet::Base32 | Alphabet::Base32Small);
        if is_base32 && !run.iter().any(u8::is_ascii_digit) {
            return Starts::NONE;
        }
        self.alphabet.starts(run, RunExtent::Whole)
    }

    /// Looks at what the runs that were taken stand for.
    fn probe(&mut self, scan: &mut Scan<'_>, view: &View<'_>) {
        let mut probe = std::mem::take(&mut self.probe);
        let mut left = None;
        let mut is_any = false;
        // What may be compressed is not looked at as far as elsewhere.
        let is_limited = view.trail.unmarked() > 0 || view.trail.is_joined();
        for (part, made, begins) in probe.found(scan.rules.prefilter()) {
            is_any |= begins == PhaseBegin::Surely || is_limited;
            let outer = part.outer();
            let starts = part.starts();
            if left != Some(outer) && self.give(scan, view, (made, outer), starts).is_break() {
                left = Some(outer);
            }
        }
        // Known values have no beginning that could be told. Those in what was given are
        // met once more in its layer: they are reported once.
        let coding = self.alphabet.coding();
        let trail = self
            .trail
            .get_or_insert_with(|| view.trail.with(coding, None));
        let (made, origin) = probe.made();
        is_any |= scan.recall(made, 0, trail, origin) > 0;
        if is_any {
            scan.state.repeats.forget();
        }
        probe.clear();
        self.probe = probe;
    }

    /// Gives what a phase stands for to the layer of short runs, unless nothing more of
    /// its run can be looked at. `starts` are where in it something may begin.
    fn give(
        &mut self,
        scan: &mut Scan<'_>,
        view: &View<'_>,
        (made, outer): (&[u8], u64),
        starts: impl Iterator<Item = usize>,
    ) -> ControlFlow<()> {
        if view.trail.depth() >= limits::DEPTH_MAX {
            scan.miss(UnscannedReason::Depth, 1);
            return ControlFlow::Break(());
        }
        if scan.is_over() || !scan.state.budget.derive(made.len()) {
            return ControlFlow::Break(());
        }
        let (coding, trail) = (self.alphabet.coding(), view.trail);
        let batch = self
            .batch
            .get_or_insert_with(|| Box::new(Layer::new(trail.with(coding, None))));
        let end = batch.end();
        let until = end.saturating_add(wide(made.len()));
        let first = is_zlib(made).then_some(0);
        let is_unmarked = |start: &usize| {
            let here = span::from(made, *start);
            is_zlib(here) || is_unmarked(here)
        };
        for start in starts.filter(is_unmarked).chain(first) {
            let at = end.saturating_add(wide(start));
            batch.containers().expect_until(at, until);
        }
        batch.push(scan, made, Some(outer));
        batch.push(scan, &BORDER, Some(outer));
        ControlFlow::Continue(())
    }
}

/// Whether all of a run goes through layers: where no look tells places, or something
/// is looked for that has no fixed beginning.
fn is_dense(alphabet: Alphabet, scan: &Scan<'_>) -> bool {
    let is_told = alphabet.coding() == Coding::Base64;
    !is_told || !scan.rules.searches().is_empty()
}

/// How many bytes of a run wait at most before it counts as none.
const _: () = assert!(limits::RUN_START_BYTES_MAX < limits::CONTEXT_BYTES);
