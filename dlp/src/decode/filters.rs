//! Codings that stand in the middle of text: escapes of several kinds, wide
//! characters and look-alikes. Each becomes a layer of its own around the
//! places where it occurs, from a little before to where nothing is open.
//!
//! Several kinds may stand side by side. They are removed in one order, that of
//! [`EscapeKind`]: in what an escape was removed from, an earlier kind is looked for
//! only where that changed something. The layer of an earlier kind reaches over
//! the later ones that stand close to it, so that every set of kinds is removed
//! together somewhere, and no set twice.

#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
mod triggers;

use std::collections::VecDeque;

use crate::budget::wide;
use crate::coding::Coding;
use crate::decode::layer::{FREE, Layer, LayerExtent, View};
use crate::decode::runs::Alphabet;
use crate::escapes::{EscapeDecoder, EscapeKind, lines};
use crate::finding::UnscannedReason;
use crate::limits;
use crate::scan::Scan;
use crate::trail::Trail;

pub(crate) use crate::escapes::fold::{NEAR_BYTES as FOLD_NEAR_BYTES, is_lead};
pub(crate) use triggers::{PAIRS, Seeker, find};

/// The filters of one layer.
#[derive(Default)]
pub(crate) struct Filters {
    list: Vec<EscapeFilter>,
    /// Escapes before this offset were looked for.
    seen: u64,
    /// Runs that end before this offset were asked whether lines go on behind them.
    asked: u64,
    /// What made the layer, if an escape was removed from it.
    made_by: Option<EscapeKind>,
    /// Where one was, in order.
    changed: VecDeque<u64>,
}

struct EscapeFilter {
    kind: EscapeKind,
    layer: Box<Layer>,
    decoder: EscapeDecoder,
    is_active: bool,
    /// Where it began.
    since: u64,
    /// Bytes before this offset went in.
    fed: u64,
    /// Where it ends unless something is open.
    until: u64,
    /// The last escape of this kind, if there was one.
    last: Option<u64>,
    /// Space for what is decoded, and for where in it escapes stood.
    made: Vec<u8>,
    places: Vec<usize>,
}

/// Layers of wide characters in each other of which a zero may be one, in count: characters
/// of four bytes are wide twice.
const WIDE_MAX: usize = 2;

/// Bytes on both sides of a change in which an escape may be new: the longest
/// escape, and the text it has to stand in.
const NEAR_BYTES: u64 = 32;

/// The same in which what stands between two lines may be.
const LINES_TAIL: u64 = 160;

/// Bytes at the end of a step in which an escape may be incomplete.
const TAIL: u64 = 16;

impl Filters {
    /// What must stay, in offsets of the outermost stream.
    pub(crate) fn held(&self) -> u64 {
        let active = self.list.iter().filter(|filter| filter.is_active);
        active
            .map(|filter| filter.layer.held())
            .min()
            .unwrap_or(FREE)
    }

    /// Whether something goes on.
    pub(crate) fn is_open(&self) -> bool {
        self.list.iter().any(|filter| filter.is_active)
    }

    /// What stands before `offset` was looked at elsewhere.
    pub(crate) fn skip(&mut self, offset: u64) {
        self.seen = offset;
        self.asked = offset;
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self, scan: &mut Scan<'_>) {
        self.seen = 0;
        self.asked = 0;
        self.changed.clear();
        for filter in &mut self.list {
            filter.stop(scan);
            filter.last = None;
        }
    }

    /// All of the layer is a form: its values are read together as well.
    pub(crate) fn join_form(&mut self, scan: &mut Scan<'_>, trail: &Trail) {
        if scan.state.budget.open() {
            self.list.push(EscapeFilter {
                is_active: true,
                until: u64::MAX,
                ..EscapeFilter::new(EscapeKind::Form, trail)
            });
        }
    }

    /// Looks for escapes in what is new, and goes on with those that are open.
    pub(crate) fn work(&mut self, scan: &mut Scan<'_>, view: &View<'_>) {
        let end = view.end();
        let to = match view.until {
            LayerExtent::Step => end.saturating_sub(TAIL).max(self.seen),
            LayerExtent::Flush | LayerExtent::End => end,
        };
        let from = self.seen.max(view.base);
        let range = (from, to);
        let mut seeking = Seeking {
            filters: self,
            scan,
            view,
        };
        find(view.bytes, view.classes, view.base, range, &mut seeking);
        self.find_lines(scan, view);
        let old = from.saturating_sub(NEAR_BYTES);
        while self.changed.front().is_some_and(|place| *place < old) {
            self.changed.pop_front();
        }
        self.seen = if view.until == LayerExtent::End {
            end
        } else {
            end.saturating_sub(TAIL).max(self.seen)
        };
        for filter in &mut self.list {
            filter.advance(scan, view, end);
            if !filter.is_active {
                continue;
            }
            match view.until {
                LayerExtent::End => filter.end(scan),
                other => filter.layer.work(scan, other),
            }
        }
    }

    /// Looks for lines that are joined behind the runs of base64 in what is new.
    fn find_lines(&mut self, scan: &mut Scan<'_>, view: &View<'_>) {
        // What joined some joined all.
        if self.made_by == Some(EscapeKind::Lines) {
            return;
        }
        let end = view.end();
        // What may stand between two lines is not whole.
        let to = match view.until {
            LayerExtent::Step => end.saturating_sub(LINES_TAIL),
            LayerExtent::Flush | LayerExtent::End => end,
        };
        let mut from = self.asked.max(view.base);
        while let Some((at, stop)) = view.classes.run(Alphabet::Base64, (from, end)) {
            if stop >= to {
                // Enough of it for a run.
                from = at.max(to.saturating_sub(LINES_TAIL)).max(from);
                break;
            }
            from = stop;
            let place = view.place(stop);
            if lines::is_joined(view.bytes, place) {
                self.wake(scan, view, EscapeKind::Lines, stop);
            }
        }
        self.asked = from;
    }

    /// An escape of this kind was removed there to make the layer.
    pub(crate) fn change(&mut self, kind: EscapeKind, place: u64) {
        // Nowhere else are the values of a form joined.
        if kind == EscapeKind::Form {
            return;
        }
        self.made_by = Some(kind);
        let last = self.changed.back();
        // One place tells of those close to it.
        if last.is_none_or(|last| last.saturating_add(NEAR_BYTES / 4) <= place) {
            self.changed.push_back(place);
        }
    }

    /// Whether an escape is not removed together with what made the layer elsewhere.
    fn is_new(&self, kind: EscapeKind, at: u64) -> bool {
        if self.made_by.is_none_or(|made_by| kind >= made_by) {
            return true;
        }
        let from = at.saturating_sub(NEAR_BYTES);
        let next = self.changed.partition_point(|place| *place < from);
        let next = self.changed.get(next);
        next.is_some_and(|place| *place <= at.saturating_add(NEAR_BYTES))
    }

    /// Where those filters begin that an escape of this kind wakes; `at` where none does.
    /// The filter of the kind itself has to be among them.
    fn start(&self, view: &View<'_>, kind: EscapeKind, at: u64) -> u64 {
        let mut asked = self.list.iter().filter(|filter| !filter.is_active);
        let may_begin = asked
            .any(|filter| filter.kind == kind || (filter.kind < kind && filter.last.is_some()));
        // Mostly all of them have begun where there are many escapes.
        if !may_begin {
            return at;
        }
        // What a later kind has begun is removed in the layer of this one.
        let later = self.list.iter().filter(|filter| filter.is_active);
        let later = later.filter(|other| other.kind > kind && other.kind != EscapeKind::Form);
        let since = later.map(|other| other.since).min().unwrap_or(FREE);
        lookback(view, kind, at).min(since).max(view.base)
    }

    fn wake(&mut self, scan: &mut Scan<'_>, view: &View<'_>, kind: EscapeKind, at: u64) {
        if view.trail.depth() >= limits::DEPTH_MAX {
            scan.miss(UnscannedReason::Depth, 1);
            return;
        }
        for other in &mut self.list {
            if other.is_active && other.until <= at {
                other.advance(scan, view, at);
            }
        }
        if !self.list.iter().any(|filter| filter.kind == kind) {
            self.list.push(EscapeFilter::new(kind, view.trail));
        }
        let start = self.start(view, kind, at);
        for filter in &mut self.list {
            let is_near = filter.is_active || filter.last.is_some_and(|last| last >= start);
            if filter.kind == kind || (filter.kind < kind && is_near) {
                filter.wake(scan, start, at);
            }
            if filter.kind == kind {
                filter.last = Some(at);
            }
        }
    }
}

/// A look for escapes, and what is done about them.
struct Seeking<'a, 'b, 's> {
    filters: &'a mut Filters,
    scan: &'a mut Scan<'s>,
    view: &'a View<'b>,
}

impl Seeker for Seeking<'_, '_, '_> {
    fn wants(&mut self, kind: EscapeKind, at: u64) -> bool {
        self.filters.is_new(kind, at)
    }

    fn found(&mut self, kind: EscapeKind, at: u64) {
        self.filters.wake(self.scan, self.view, kind, at);
    }

    fn lose(&mut self) {
        self.view.lost.set();
    }
}

impl EscapeFilter {
    fn new(kind: EscapeKind, trail: &Trail) -> Self {
        let mut decoder = EscapeDecoder::new(kind);
        // Zeros alone would be half as many in each layer.
        if kind == EscapeKind::Wide && trail.last(Coding::Utf16) >= WIDE_MAX {
            decoder = decoder.without_zeros();
        }
        Self {
            kind,
            layer: Box::new(Layer::new(trail.with(kind.coding(), None))),
            decoder,
            is_active: false,
            since: 0,
            fed: 0,
            until: 0,
            last: None,
            made: Vec::new(),
            places: Vec::new(),
        }
    }

    /// Goes on behind `at`, or begins at `start`.
    fn wake(&mut self, scan: &mut Scan<'_>, start: u64, at: u64) {
        if !self.is_active {
            if !scan.state.budget.open() {
                return;
            }
            self.is_active = true;
            self.since = start;
            self.fed = start;
        }
        let until = at.saturating_add(limits::AFTER_ESCAPE_BYTES);
        self.until = self.until.max(until);
    }

    /// Takes the bytes up to `to`, or up to where this ends.
    fn advance(&mut self, scan: &mut Scan<'_>, view: &View<'_>, to: u64) {
        while self.is_active && !scan.is_over() {
            let stop = self.until.min(to);
            self.feed(scan, view, stop);
            if self.until > to {
                return;
            }
            self.layer.work(scan, LayerExtent::Step);
            if self.layer.is_open() || self.decoder.is_open() {
                self.until = self.until.saturating_add(limits::AFTER_ESCAPE_BYTES);
            } else {
                self.end(scan);
            }
        }
    }

    fn feed(&mut self, scan: &mut Scan<'_>, view: &View<'_>, to: u64) {
        while self.fed < to && !scan.is_over() {
            let next = self.fed.saturating_add(wide(limits::PIECE_BYTES)).min(to);
            // What waits in the decoder came before.
            let outer = view.origin(self.fed.saturating_sub(self.decoder.waiting()));
            let (made, places) = (&mut self.made, &mut self.places);
            made.clear();
            places.clear();
            let piece = view.slice(self.fed, next);
            self.decoder.push(piece, made, places);
            if !scan.state.budget.derive(made.len()) {
                return;
            }
            let end = self.layer.end();
            for place in places {
                let is_first = begins_value(made, *place);
                let place = end.saturating_add(wide(*place));
                self.layer.change(self.kind, place);
                if is_first {
                    self.layer.containers().expect_sealed(place);
                }
            }
            self.layer.limit(made.len(), view.origin(next));
            self.layer.push(scan, made, Some(outer));
            self.fed = next;
        }
    }

    fn end(&mut self, scan: &mut Scan<'_>) {
        let mut made = Vec::new();
        self.decoder.finish(&mut made);
        self.layer.push(scan, &made, None);
        self.layer.work(scan, LayerExtent::End);
        self.stop(scan);
    }

    fn stop(&mut self, scan: &mut Scan<'_>) {
        if self.is_active {
            self.is_active = false;
            self.layer.clear(scan);
            scan.state.budget.close();
        }
        self.decoder.restart();
        self.fed = 0;
        self.until = 0;
    }
}

/// Whether what was escaped there is the first byte of a value that nobody here may open, as
/// fields and texts have them.
fn begins_value(made: &[u8], place: usize) -> bool {
    // Where this piece of it begins more may stand before.
    let before = place.checked_sub(1).and_then(|before| made.get(before));
    let is_sign = |byte: &u8| byte.is_ascii_whitespace() || b"=\"':,;[({<>&|`".contains(byte);
    made.get(place).is_some_and(|byte| *byte >= 0x80) && before.is_none_or(is_sign)
}

/// Where to begin for an escape at `at`: behind the last byte that no credential
/// has in it, but some bytes before in any case.
fn lookback(view: &View<'_>, kind: EscapeKind, at: u64) -> u64 {
    let reach = wide(limits::CONTEXT_BYTES);
    let near = at.saturating_sub(wide(limits::BEFORE_ESCAPE_BYTES));
    let far = at.saturating_sub(reach).max(view.base);
    // The head of a file that was made text may have no such character in it, and zeros.
    if kind == EscapeKind::Latin {
        return far;
    }
    let before = view.around(far, near);
    let ends =
        |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b'"' | b'\'' | b'<' | b'>' | 0);
    let start = before.iter().rposition(ends);
    let start = start.map_or(far, |place| {
        far.saturating_add(wide(place)).saturating_add(1)
    });
    let start = start.min(near).max(view.base);
    if kind != EscapeKind::Wide {
        return start;
    }
    // Of compressed data few characters are text, but all of them are wide.
    let before = view.around(at.saturating_sub(reach), at.saturating_add(2));
    let (_, pairs) = before.as_rchunks::<2>();
    let count = pairs.iter().rev().take_while(|[_, zero]| *zero == 0);
    let wide_from = at.saturating_add(2);
    let wide_from = wide_from.saturating_sub(2_u64.saturating_mul(wide(count.count())));
    start.min(wide_from).max(view.base)
}
