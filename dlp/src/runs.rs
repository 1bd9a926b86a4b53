//! Codings that stand as runs of an alphabet: base64, hexadecimal, base32. A
//! run is decoded at every phase, since nobody says where it begins. Runs that
//! end within a step are decoded together into one layer; a run that goes on
//! gets a layer for each phase.

mod alphabet;
mod radix;

use crate::budget::wide;
use crate::containers::is_zlib;
use crate::finding::UnscannedReason;
use crate::layer::{FREE, Layer, Until, View};
use crate::limits;
use crate::scan::Scan;

use alphabet::Alphabet;
use radix::Phase;

/// The runs of one layer, alphabet by alphabet.
#[derive(Default)]
pub(crate) struct Runs {
    list: Vec<Finder>,
}

/// The runs of one alphabet.
struct Finder {
    alphabet: Alphabet,
    /// Runs that end before this offset are done with.
    done: u64,
    open: Option<Open>,
    /// Layer of what runs within a step decode to, kept for its space.
    batch: Option<Box<Layer>>,
    symbols: Vec<u8>,
    made: Vec<u8>,
}

/// A run whose end has not come.
struct Open {
    reader: alphabet::Reader,
    phases: Vec<(Phase, Box<Layer>)>,
}

/// Between what two runs, or two phases, decode to: in no alphabet.
const BORDER: [u8; 1] = [0xff];

impl Runs {
    /// Whether a run goes on.
    pub(crate) fn is_open(&self) -> bool {
        self.list.iter().any(|finder| finder.open.is_some())
    }

    /// The offset before which every run is done with.
    pub(crate) fn uncertain(&self) -> u64 {
        let waiting = self.list.iter().filter(|finder| finder.open.is_none());
        waiting.map(|finder| finder.done).min().unwrap_or(FREE)
    }

    /// What must stay, in offsets of the outermost stream.
    pub(crate) fn held(&self) -> u64 {
        let open = self.list.iter().filter_map(|finder| finder.open.as_ref());
        let layers = open.flat_map(|open| open.phases.iter());
        layers.map(|(_, layer)| layer.held()).min().unwrap_or(FREE)
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self, scan: &mut Scan<'_>) {
        for finder in &mut self.list {
            finder.done = 0;
            if let Some(open) = finder.open.take() {
                open.drop(scan);
            }
        }
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
            finder.work(scan, view);
        }
    }
}

impl Open {
    /// The end of the run.
    fn finish(&mut self, scan: &mut Scan<'_>, outer: u64) {
        let mut symbols = Vec::new();
        self.reader.finish(&mut symbols);
        for (phase, layer) in &mut self.phases {
            let mut made = Vec::new();
            phase.push(&symbols, &mut made);
            layer.push(scan, &made, Some(outer));
            layer.work(scan, Until::End);
        }
    }

    fn drop(self, scan: &mut Scan<'_>) {
        for (_, mut layer) in self.phases {
            layer.clear(scan);
            scan.state.budget.close();
        }
    }
}

impl Finder {
    fn new(alphabet: Alphabet) -> Self {
        Self {
            alphabet,
            done: 0,
            open: None,
            batch: None,
            symbols: Vec::new(),
            made: Vec::new(),
        }
    }

    fn work(&mut self, scan: &mut Scan<'_>, view: &View<'_>) {
        self.done = self.done.max(view.base);
        self.go_on(scan, view);
        if self.open.is_none() {
            self.find(scan, view);
        }
        if let Some(batch) = &mut self.batch
            && batch.end() > 0
        {
            batch.work(scan, Until::End);
            batch.clear(scan);
        }
        let Some(open) = &mut self.open else {
            return;
        };
        if view.until == Until::End {
            open.finish(scan, view.origin(self.done.saturating_sub(radix::LAG)));
        }
        for (_, layer) in &mut open.phases {
            layer.work(scan, view.until);
        }
        if view.until == Until::End
            && let Some(open) = self.open.take()
        {
            open.drop(scan);
        }
    }

    /// Goes on with an open run to its end or that of the bytes.
    fn go_on(&mut self, scan: &mut Scan<'_>, view: &View<'_>) {
        if self.open.is_none() {
            return;
        }
        let rest = view.slice(self.done, view.end());
        let length = self.alphabet.extent(rest);
        self.feed(scan, view, self.done.saturating_add(wide(length)));
        if length < rest.len()
            && let Some(mut open) = self.open.take()
        {
            open.finish(scan, view.origin(self.done.saturating_sub(radix::LAG)));
            open.drop(scan);
        }
    }

    /// Gives an open run the bytes up to `to`.
    fn feed(&mut self, scan: &mut Scan<'_>, view: &View<'_>, to: u64) {
        let Some(open) = &mut self.open else {
            return;
        };
        while self.done < to && !scan.is_over() {
            let next = self.done.saturating_add(wide(limits::PIECE_BYTES)).min(to);
            self.symbols.clear();
            open.reader
                .read(view.slice(self.done, next), &mut self.symbols);
            // What of the last symbols made no whole byte came shortly before.
            let outer = view.origin(self.done.saturating_sub(radix::LAG));
            for (phase, layer) in &mut open.phases {
                self.made.clear();
                phase.push(&self.symbols, &mut self.made);
                if !scan.state.budget.derive(self.made.len()) {
                    return;
                }
                layer.push(scan, &self.made, Some(outer));
            }
            self.done = next;
        }
    }

    /// Finds the runs in what is new.
    fn find(&mut self, scan: &mut Scan<'_>, view: &View<'_>) {
        let end = view.end();
        let bytes = view.slice(self.done, end);
        let base = self.done;
        let mut from = 0;
        while let Some((start, stop)) = self.alphabet.next(bytes, from) {
            from = stop;
            let touches = stop == bytes.len() && view.until != Until::End;
            let run = bytes.get(start..stop).unwrap_or_default();
            let at = base.saturating_add(wide(start));
            if self.alphabet.count(run) < self.alphabet.symbols_min() {
                if touches {
                    // It may still become one.
                    let most = wide(limits::RUN_START_BYTES_MAX);
                    self.done = at.max(end.saturating_sub(most));
                    return;
                }
                continue;
            }
            if touches {
                self.done = at;
                self.begin(scan, view);
                self.feed(scan, view, end);
                return;
            }
            self.decode(scan, view, run, at);
            if scan.is_over() {
                return;
            }
        }
        // What may be the beginning of a run waits.
        let tail = bytes.get(from..).unwrap_or_default();
        let waiting = self.alphabet.tail(tail).min(limits::RUN_START_BYTES_MAX);
        self.done = if view.until == Until::End {
            end
        } else {
            end.saturating_sub(wide(waiting))
        };
    }

    /// Begins a run that goes on.
    fn begin(&mut self, scan: &mut Scan<'_>, view: &View<'_>) {
        if view.trail.depth() >= limits::DEPTH_MAX {
            scan.miss(UnscannedReason::Depth, 1);
            return;
        }
        let trail = view.trail.with(self.alphabet.coding(), None);
        let mut phases = Vec::new();
        for skip in 0..self.alphabet.phases() {
            if !scan.state.budget.open() {
                return;
            }
            let mut layer = Box::new(Layer::new(trail.clone()));
            layer.containers().expect_zlib(0);
            phases.push((Phase::new(self.alphabet.bits(), skip), layer));
        }
        let reader = self.alphabet.reader();
        self.open = Some(Open { reader, phases });
    }

    /// Decodes a run that is whole.
    fn decode(&mut self, scan: &mut Scan<'_>, view: &View<'_>, run: &[u8], at: u64) {
        if view.trail.depth() >= limits::DEPTH_MAX {
            scan.miss(UnscannedReason::Depth, 1);
            return;
        }
        let (coding, trail) = (self.alphabet.coding(), view.trail);
        let batch = self
            .batch
            .get_or_insert_with(|| Box::new(Layer::new(trail.with(coding, None))));
        self.symbols.clear();
        let mut reader = self.alphabet.reader();
        reader.read(run, &mut self.symbols);
        reader.finish(&mut self.symbols);
        let outer = view.origin(at);
        for skip in 0..self.alphabet.phases() {
            self.made.clear();
            let mut phase = Phase::new(self.alphabet.bits(), skip);
            phase.push(&self.symbols, &mut self.made);
            if !scan.state.budget.derive(self.made.len()) {
                return;
            }
            if is_zlib(&self.made) {
                let end = batch.end();
                batch.containers().expect_zlib(end);
            }
            batch.push(scan, &self.made, Some(outer));
            batch.push(scan, &BORDER, Some(outer));
        }
    }
}

/// How many bytes of a run wait at most before it counts as none.
const _: () = assert!(limits::RUN_START_BYTES_MAX < limits::CONTEXT_BYTES);
