//! One container under decompression: what goes into it, what comes out, and from where
//! on the outermost stream has to stay for it.

use std::collections::VecDeque;

use super::Certainty;
use super::recognise::CompressedBegin;
use super::unpack::{Unpack, UnpackFault, UnpackProgress, Unpacked};
use crate::budget::{Growth, Taken, wide};
use crate::decode::layer::{FREE, Layer, LayerExtent, View};
use crate::finding::UnscannedReason;
use crate::limits;
use crate::magic::Magic;
use crate::scan::Scan;

/// Something under decompression.
pub(super) struct Container {
    unpack: Box<dyn Unpack>,
    pub(super) layer: Box<Layer>,
    pub(super) certainty: Certainty,
    /// Where its data begin.
    begin: u64,
    /// Bytes of the layer around it before this offset went in.
    pub(super) fed: u64,
    /// Those from this offset on do not belong to it.
    until: u64,
    /// Bytes of the outermost stream from here on may not have come out: after a pause, only
    /// those that go in then.
    pub(super) quiet: u64,
    /// Where in the outermost stream it begins.
    origin: u64,
    /// How many codings are around what comes out.
    depth: usize,
    /// Bytes that came out.
    pub(super) made: u64,
    /// Whether it took more than its share.
    is_closed: bool,
    /// Bytes that the decompressor keeps.
    kept: u64,
    /// What went in before this offset, when some last did.
    spoke: u64,
    /// How many have to before all of a piece has, and where in the outermost
    /// stream that piece stands.
    behind: VecDeque<(u64, u64)>,
}

/// What became of a container with some more bytes.
pub(super) enum Became {
    Open,
    Done,
    Failed(UnscannedReason),
}

impl Container {
    /// What begins, its data from this offset of the outermost stream on.
    pub(super) fn new(
        begin: CompressedBegin,
        origin: u64,
        (certainty, until): (Certainty, u64),
    ) -> Self {
        let depth = begin.trail.depth();
        let mut layer = Box::new(Layer::new(begin.trail));
        layer.containers().expect(0);
        Self {
            unpack: begin.unpack,
            layer,
            certainty,
            begin: begin.data,
            fed: begin.data,
            until,
            quiet: origin,
            origin,
            depth,
            made: 0,
            is_closed: false,
            kept: 0,
            spoke: begin.data,
            behind: VecDeque::new(),
        }
    }

    /// Whether it goes on with what begins so, and has not come there.
    pub(super) fn joins(&self, magic: Magic, at: u64) -> bool {
        self.unpack.joins() == Some(magic) && self.begin < at
    }

    /// Where streams began that it went on with, in offsets of the layer around it.
    pub(super) fn begun(&mut self) -> impl Iterator<Item = u64> + use<> {
        let begin = self.begin;
        let begun = self.unpack.begun().into_iter();
        begun.map(move |taken| begin.saturating_add(taken))
    }

    /// Which bytes of the layer around it it has taken.
    pub(super) fn taken(&self) -> (u64, u64) {
        (self.begin, self.fed)
    }

    pub(super) fn drop(mut self, scan: &mut Scan<'_>) {
        self.layer.clear(scan);
        scan.state.budget.close();
        scan.state.budget.keep(self.kept, 0);
        if self.certainty == Certainty::Guessed {
            scan.state.budget.decide();
        }
    }

    pub(super) fn work(&mut self, scan: &mut Scan<'_>, view: &View<'_>) -> Became {
        let end = view.end().min(self.until);
        let until = self.goes_on(view);
        while self.fed < end {
            if scan.is_over() {
                return Became::Open;
            }
            let next = self.fed.saturating_add(wide(limits::PIECE_BYTES)).min(end);
            let here = view.origin(self.fed);
            let before = self.made;
            let progress = self.feed(scan, view, next);
            self.note(here);
            if let Some(reason) = self.keep(scan) {
                return Became::Failed(reason);
            }
            if self.made > before {
                self.spoke = self.fed;
            }
            self.settle(here);
            match progress {
                Ok(progress) if progress.is_done => {
                    self.layer.work(scan, LayerExtent::End);
                    self.fed = self.fed.saturating_add(wide(progress.used));
                    return Became::Done;
                }
                Ok(_) => self.fed = next,
                Err(fault) => return self.fail(scan, fault),
            }
        }
        if until == LayerExtent::End {
            let layer = &mut self.layer;
            let quiet = self.quiet.min(view.origin(view.end()));
            self.unpack.finish(&mut |made| {
                if let Unpacked::Bytes(bytes) = made {
                    layer.push(scan, bytes, Some(quiet));
                }
                !scan.is_over()
            });
        }
        self.layer.work(scan, until);
        match until {
            LayerExtent::End if self.unpack.may_end() => Became::Done,
            LayerExtent::End => self.fail(scan, UnpackFault::Damaged),
            LayerExtent::Flush if !self.unpack.is_pending() => {
                self.quiet = FREE;
                Became::Open
            }
            LayerExtent::Flush | LayerExtent::Step => {
                let last = end.saturating_sub(wide(limits::PIECE_BYTES));
                self.quiet = self.quiet.min(view.origin(last.max(view.base)));
                Became::Open
            }
        }
    }

    /// Feeds the bytes before `next` to the decompressor, and what comes out to the layer.
    fn feed(
        &mut self,
        scan: &mut Scan<'_>,
        view: &View<'_>,
        next: u64,
    ) -> Result<UnpackProgress, UnpackFault> {
        let piece = view.slice(self.fed, next);
        let (layer, quiet) = (&mut self.layer, self.quiet.min(view.origin(self.fed)));
        let (all, is_closed) = (&mut self.made, &mut self.is_closed);
        let (depth, origin) = (self.depth, self.origin);
        // The outermost bytes that are in this piece stand before those of the next.
        let input = view.origin(next).saturating_sub(origin);
        self.unpack.push(piece, &mut |made| match made {
            Unpacked::Bytes(bytes) => {
                *all = all.saturating_add(wide(bytes.len()));
                let made = *all;
                let growth = scan
                    .state
                    .budget
                    .inflate(bytes.len(), Taken { input, made, depth });
                if growth == Growth::Over {
                    return false;
                }
                layer.push(scan, bytes, Some(quiet));
                *is_closed = growth == Growth::Closes;
                !*is_closed && !scan.is_over()
            }
            Unpacked::Border => {
                layer.work(scan, LayerExtent::End);
                layer.clear(scan);
                !scan.is_over()
            }
        })
    }

    /// What must stay, in offsets of the outermost stream.
    pub(super) fn held(&self) -> u64 {
        // A layer that nothing came into stands nowhere yet.
        let inside = if self.made > 0 {
            self.layer.held()
        } else {
            FREE
        };
        inside.min(self.quiet)
    }

    /// Whether it looks into all that is compressed in what goes into it.
    pub(super) fn covers(&self) -> bool {
        self.unpack.covers()
    }

    /// How far the bytes go that may belong to it.
    fn goes_on(&self, view: &View<'_>) -> LayerExtent {
        if self.until <= view.end() {
            LayerExtent::End
        } else {
            view.until
        }
    }

    /// Counts what the decompressor keeps; answers why all of them together may not.
    fn keep(&mut self, scan: &mut Scan<'_>) -> Option<UnscannedReason> {
        let before = std::mem::replace(&mut self.kept, self.unpack.kept(self.made));
        scan.state.budget.keep(before, self.kept)
    }

    /// From where on the outermost stream has to stay now that all pieces before that at
    /// `here` went in.
    fn settle(&mut self, here: u64) {
        // So much goes in and nothing comes out only of what is to be skipped.
        let idle = self.fed.saturating_sub(self.spoke);
        let is_idle = self.behind.is_empty() && idle > limits::IDLE_BYTES_MAX;
        if idle == 0 || is_idle || self.unpack.is_ahead() {
            // The last bytes of a piece may not have come out.
            self.quiet = self.behind.front().map_or(here, |(_, origin)| *origin);
        }
    }

    /// Notes what the piece at `here` may have made that has not come out.
    fn note(&mut self, here: u64) {
        let upto = self.made.saturating_add(self.unpack.behind());
        if self.behind.back().is_none_or(|(last, _)| *last < upto) {
            self.behind.push_back((upto, here));
        }
        while self
            .behind
            .front()
            .is_some_and(|(upto, _)| *upto <= self.made)
        {
            self.behind.pop_front();
        }
    }

    fn fail(&mut self, scan: &mut Scan<'_>, fault: UnpackFault) -> Became {
        self.layer.work(scan, LayerExtent::End);
        match fault {
            UnpackFault::Stopped if self.is_closed => Became::Failed(UnscannedReason::Expansion),
            // Over, for a reason that is known elsewhere.
            UnpackFault::Stopped => Became::Open,
            UnpackFault::Damaged => Became::Failed(UnscannedReason::Damaged),
            UnpackFault::Unknown => Became::Failed(UnscannedReason::UnknownCoding),
            UnpackFault::Memory => Became::Failed(UnscannedReason::Memory),
        }
    }
}
