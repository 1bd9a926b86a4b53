//! One reading of numbers under decoding: what they stand for goes through a layer of its
//! own as soon as there are so many that they may be a credential.

use crate::budget::wide;
use crate::decode::layer::{FREE, Layer, LayerExtent};
use crate::finding::UnscannedReason;
use crate::limits;
use crate::scan::Scan;
use crate::trail::Trail;

use super::number::{Number, NumberFormat, Since};

/// Between what numbers stand for that stand apart: in no credential and in no run.
const BORDER: u8 = 1;

/// What came last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LastSymbol {
    Number,
    /// A border, or nothing at all.
    Border,
}

/// One reading.
pub(super) struct NumberLane {
    reading: NumberFormat,
    /// What numbers stand for that no layer has.
    made: Vec<u8>,
    /// Where in the outermost stream the first of them begins.
    outer: u64,
    is_awake: bool,
    /// Where that begins which its layer has and did not look at, and how much it is.
    unseen: Option<u64>,
    fresh: usize,
    last: LastSymbol,
    /// Kept for its space.
    layer: Option<Box<Layer>>,
}

impl NumberLane {
    pub(super) fn new(reading: NumberFormat) -> Self {
        Self {
            reading,
            made: Vec::new(),
            outer: 0,
            is_awake: false,
            unseen: None,
            fresh: 0,
            last: LastSymbol::Border,
            layer: None,
        }
    }

    /// Whether it reads hexadecimal digits, which are what texts beside them look like.
    pub(super) fn is_hex(&self) -> bool {
        self.reading.radix == super::number::Radix::Hex
    }

    /// Whether numbers were read that nothing interrupted.
    pub(super) fn is_open(&self) -> bool {
        self.is_awake || !self.made.is_empty()
    }

    /// Whether something has begun that more bytes could complete.
    pub(super) fn is_waiting(&self) -> bool {
        let layer = self.layer.as_ref().filter(|_| self.is_awake);
        layer.is_some_and(|layer| layer.is_open())
    }

    /// What must stay, in offsets of the outermost stream.
    pub(super) fn held(&self, until: LayerExtent) -> u64 {
        let layer = self.layer.as_ref().filter(|_| self.is_awake);
        let own = layer.map_or(FREE, |layer| layer.held());
        if until != LayerExtent::Step {
            return own;
        }
        let made = if self.made.is_empty() {
            FREE
        } else {
            self.outer
        };
        own.min(made).min(self.unseen.unwrap_or(FREE))
    }

    /// Takes a number, and says whether a layer has it.
    pub(super) fn take(&mut self, scan: &mut Scan<'_>, trail: &Trail, number: &Number) -> bool {
        let since = if self.is_open() {
            Since::Before
        } else {
            Since::Here
        };
        let is_first = self.made.is_empty();
        if !self.reading.read(number, since, &mut self.made) {
            self.interrupt();
            return false;
        }
        if is_first {
            self.outer = number.outer();
        }
        self.last = LastSymbol::Number;
        if self.is_awake {
            if self.made.len() >= limits::NUMBERS_PIECE_BYTES {
                self.give(scan);
            }
        } else if self.made.len() >= limits::NUMBERS_BYTES_MIN {
            self.wake(scan, trail);
        }
        self.is_awake
    }

    /// What comes belongs to nothing that came.
    pub(super) fn interrupt(&mut self) {
        if !self.is_awake {
            self.made.clear();
        } else if self.last == LastSymbol::Number {
            self.made.push(BORDER);
            self.last = LastSymbol::Border;
        }
    }

    fn wake(&mut self, scan: &mut Scan<'_>, trail: &Trail) {
        if trail.depth() > limits::DEPTH_MAX {
            scan.miss(UnscannedReason::Depth, 1);
            self.made.clear();
            return;
        }
        if scan.is_over() || !scan.state.budget.open() {
            return;
        }
        self.is_awake = true;
        let layer = self
            .layer
            .get_or_insert_with(|| Box::new(Layer::new(trail.clone())));
        layer.containers().expect_sealed(0);
        self.give(scan);
    }

    /// Gives its layer what was made.
    fn give(&mut self, scan: &mut Scan<'_>) {
        let Some(layer) = self.layer.as_mut().filter(|_| !self.made.is_empty()) else {
            return;
        };
        if !scan.is_over() && scan.state.budget.derive(self.made.len()) {
            layer.push(scan, &self.made, Some(self.outer));
            self.unseen.get_or_insert(self.outer);
            self.fresh = self.fresh.saturating_add(self.made.len());
        }
        self.made.clear();
    }

    /// Looks at what came.
    pub(super) fn work(&mut self, scan: &mut Scan<'_>, trail: &Trail, until: LayerExtent) {
        // What is here should go, and may begin a credential.
        let is_some = wide(self.made.len()) >= wide(limits::LITERAL_BYTES_MIN);
        if !self.is_awake && until == LayerExtent::Flush && is_some {
            self.wake(scan, trail);
        }
        if !self.is_awake {
            return;
        }
        // Steps of what is around may be short.
        let all = self.fresh.saturating_add(self.made.len());
        if until == LayerExtent::Step && all < limits::NUMBERS_STEP_BYTES {
            return;
        }
        self.give(scan);
        self.unseen = None;
        self.fresh = 0;
        if let Some(layer) = &mut self.layer {
            layer.work(scan, until);
        }
        if until == LayerExtent::End {
            self.stop(scan);
        }
    }

    /// Forgets everything but the space it took.
    pub(super) fn stop(&mut self, scan: &mut Scan<'_>) {
        if self.is_awake {
            self.is_awake = false;
            scan.state.budget.close();
            if let Some(layer) = &mut self.layer {
                layer.clear(scan);
            }
        }
        self.made.clear();
        self.unseen = None;
        self.fresh = 0;
        self.last = LastSymbol::Border;
    }
}
