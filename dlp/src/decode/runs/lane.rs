//! One phase of a run under decoding, and how much of a run is here.

use crate::decode::layer::Layer;
use crate::scan::Scan;

/// How much of a run is here when it begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RunExtent {
    /// All of it.
    Whole,
    /// More may come.
    Part,
}

/// One phase.
#[derive(Default)]
pub(super) struct PhaseLane {
    pub(super) layer: Option<Box<Layer>>,
    pub(super) is_active: bool,
    /// Symbols before this number went in.
    pub(super) fed: u64,
    /// So many bytes of the group behind them did as well.
    pub(super) ahead: usize,
    /// The number at which it ends unless something is open.
    pub(super) until: u64,
}

impl PhaseLane {
    /// Ends it, and keeps its space.
    pub(super) fn stop(&mut self, scan: &mut Scan<'_>) {
        if self.is_active {
            self.is_active = false;
            if let Some(layer) = &mut self.layer {
                layer.clear(scan);
            }
            scan.state.budget.close();
        }
        self.fed = 0;
        self.ahead = 0;
        self.until = 0;
    }
}
