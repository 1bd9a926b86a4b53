//! What a scan may cost: bytes made by decoding, and work done in confirming,
//! each in proportion to the bytes that came in. Counts no layers: a limit on
//! their number is what decoys exhaust.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::finding::UnscannedReason;
use crate::limits;
use crate::memory::MemoryShare;
use crate::span::Lost;

pub(crate) use crate::span::{narrow, wide};

/// What one container took so far.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Taken {
    /// Bytes of the outermost stream that went in.
    pub(crate) input: u64,
    /// Bytes that came out.
    pub(crate) made: u64,
    /// How many codings are around what comes out.
    pub(crate) depth: usize,
}

/// What follows for a container that made more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Growth {
    /// It goes on.
    Fits,
    /// It took its share: the scan goes on behind it.
    Closes,
    /// All took all there is.
    Over,
}

/// What one scan has cost.
#[derive(Debug, Default)]
pub(crate) struct ScanBudget {
    input: u64,
    derived: u64,
    inflated: u64,
    work: u64,
    layers: usize,
    guesses: usize,
    behind: u64,
    kept: u64,
    share: MemoryShare,
    spent: Option<UnscannedReason>,
    lost: Lost,
    /// What it may cost before the scan is broken off, where somebody bounds that.
    bound: Option<u64>,
    is_broken_off: bool,
    /// Set by whoever does not want the scan any more.
    halt: Option<Arc<AtomicBool>>,
}

impl ScanBudget {
    /// Bytes came in from outside.
    pub(crate) fn take(&mut self, bytes: usize) {
        self.input = self.input.saturating_add(wide(bytes));
    }

    /// Breaks the scan off where it costs more than this, as [`ScanBudget::cost`] counts.
    pub(crate) fn bind(&mut self, bound: Option<u64>) {
        self.bound = bound;
    }

    /// Breaks the scan off as soon as this is set.
    pub(crate) fn halt_by(&mut self, halt: Arc<AtomicBool>) {
        self.halt = Some(halt);
    }

    /// What the scan has cost beyond reading what came in, in bytes that were made.
    pub(crate) fn cost(&self) -> u64 {
        let made = self.derived.saturating_add(self.inflated);
        made.saturating_add(self.work / limits::WORK_BYTES_PER_MADE)
    }

    /// Whether the scan was broken off: what it says is worth nothing but what it found.
    pub(crate) fn is_broken_off(&self) -> bool {
        self.is_broken_off
    }

    /// Something was spent.
    fn spend(&mut self) {
        let is_halted = self
            .halt
            .as_ref()
            .is_some_and(|halt| halt.load(Ordering::Relaxed));
        if is_halted || self.bound.is_some_and(|bound| self.cost() > bound) {
            self.is_broken_off = true;
            self.spent.get_or_insert(UnscannedReason::Exhausted);
        }
    }

    /// Bytes were made by decoding.
    pub(crate) fn derive(&mut self, bytes: usize) -> bool {
        self.derived = self.derived.saturating_add(wide(bytes));
        // What was decompressed may be decoded as if it had come in.
        let input = self.input.saturating_add(self.inflated);
        let allowed = input.saturating_mul(limits::DERIVED_RATIO_MAX);
        let allowed = allowed.saturating_add(limits::DERIVED_BYTES_FREE);
        if self.derived > allowed {
            self.spent.get_or_insert(UnscannedReason::Exhausted);
        }
        self.spend();
        self.spent().is_none()
    }

    /// Bytes were made by decompression, in a container that took so much with them.
    pub(crate) fn inflate(&mut self, bytes: usize, own: Taken) -> Growth {
        self.inflated = self.inflated.saturating_add(wide(bytes));
        let input = self.input;
        let of_input = |ratio: u64, least: u64| input.saturating_mul(ratio).max(least);
        let all = of_input(
            limits::ALL_INFLATED_RATIO_MAX,
            limits::ALL_INFLATED_BYTES_FREE,
        );
        if self.inflated > all {
            self.spent.get_or_insert(UnscannedReason::Exhausted);
        }
        self.spend();
        if self.spent().is_some() {
            return Growth::Over;
        }
        let shared = of_input(limits::INFLATED_RATIO_MAX, limits::INFLATED_BYTES_FREE);
        let left = shared.saturating_sub(self.inflated);
        let ratio = if own.depth <= 1 {
            limits::OUTER_RATIO_MIN
        } else {
            limits::INNER_RATIO_MIN
        };
        if own.made > left.max(own.input.saturating_mul(ratio)) {
            return Growth::Closes;
        }
        Growth::Fits
    }

    /// A pattern may have read so many bytes.
    pub(crate) fn work(&mut self, bytes: u64) -> bool {
        self.work = self.work.saturating_add(bytes);
        let input = self.input.saturating_add(self.inflated);
        let allowed = input.saturating_mul(limits::WORK_RATIO_MAX);
        let allowed = allowed.saturating_add(limits::WORK_BYTES_FREE);
        if self.work > allowed {
            self.spent.get_or_insert(UnscannedReason::Work);
        }
        self.spend();
        self.spent().is_none()
    }

    /// A layer begins.
    pub(crate) fn open(&mut self) -> bool {
        self.layers = self.layers.saturating_add(1);
        if self.layers > limits::LAYERS_MAX {
            self.spent.get_or_insert(UnscannedReason::Crowded);
        }
        self.spent().is_none()
    }

    /// A layer is gone.
    pub(crate) fn close(&mut self) {
        self.layers = self.layers.saturating_sub(1);
    }

    /// A decompressor keeps so many bytes instead of so many before: why all of them together
    /// may not, if they may not. Taking them takes time, too.
    pub(crate) fn keep(&mut self, before: u64, now: u64) -> Option<UnscannedReason> {
        self.kept = self.kept.saturating_sub(before).saturating_add(now);
        let is_there = self.share.take(self.kept);
        let has_worked = self.work(now.saturating_sub(before) / limits::KEPT_BYTES_PER_WORK);
        if !has_worked || self.kept > limits::KEPT_BYTES_MAX {
            return Some(UnscannedReason::Memory);
        }
        (!is_there).then_some(UnscannedReason::Shared)
    }

    /// Something is decompressed that may be none.
    pub(crate) fn guess(&mut self) {
        self.guesses = self.guesses.saturating_add(1);
    }

    /// One of them is over.
    pub(crate) fn decide(&mut self) {
        self.guesses = self.guesses.saturating_sub(1);
    }

    /// Something is opened behind other bytes: whether one more may be.
    pub(crate) fn open_behind(&mut self) -> bool {
        self.behind = self.behind.saturating_add(1);
        let bytes = self.input.saturating_add(self.inflated);
        let allowed = limits::BEHIND_FREE.saturating_add(bytes / limits::BYTES_PER_BEHIND);
        self.behind <= allowed
    }

    /// How many of them there are.
    pub(crate) fn guesses(&self) -> usize {
        self.guesses
    }

    /// Where a place that cannot be found ends the scan.
    pub(crate) fn lost(&self) -> &Lost {
        &self.lost
    }

    /// What ran out, if anything did. Nothing is decoded or confirmed any more.
    pub(crate) fn spent(&self) -> Option<UnscannedReason> {
        let lost = self.lost.is_set().then_some(UnscannedReason::Misplaced);
        lost.or(self.spent)
    }

    /// Bytes that came in so far.
    pub(crate) fn input(&self) -> u64 {
        self.input
    }
}
