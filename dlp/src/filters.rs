//! Codings that stand in the middle of text: escapes of several kinds, wide
//! characters and look-alikes. Each becomes a layer of its own around the
//! places where it occurs, from a little before to where nothing is open.

mod decode;
mod fold;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
mod references;
mod triggers;

use crate::budget::wide;
use crate::coding::Coding;
use crate::finding::UnscannedReason;
use crate::layer::{FREE, Layer, Until, View};
use crate::limits;
use crate::scan::Scan;
use crate::trail::Trail;

use decode::Decoder;
pub(crate) use triggers::{begins, may_begin, openings};

/// The kinds, each decoded on its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `%41`.
    Percent,
    /// `\u0041`, `\x41`, `\101`, `\/`.
    Escape,
    /// `&#65;`, `&lowbar;`.
    Reference,
    /// `=41`, and lines that go on.
    Quoted,
    /// Characters two or four bytes wide.
    Wide,
    /// Look-alikes and what cannot be seen.
    Fold,
    /// The values of a form, without their names.
    Form,
}

impl Kind {
    fn coding(self) -> Coding {
        match self {
            Self::Percent => Coding::Percent,
            Self::Escape => Coding::Json,
            Self::Reference => Coding::Html,
            Self::Quoted => Coding::QuotedPrintable,
            Self::Wide => Coding::Utf16,
            Self::Fold => Coding::Folded,
            Self::Form => Coding::Joined,
        }
    }
}

/// The filters of one layer.
#[derive(Default)]
pub(crate) struct Filters {
    list: Vec<Filter>,
    /// Escapes before this offset were looked for.
    seen: u64,
}

struct Filter {
    kind: Kind,
    layer: Box<Layer>,
    decoder: Decoder,
    is_active: bool,
    /// Bytes before this offset went in.
    fed: u64,
    /// Where it ends unless something is open.
    until: u64,
}

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
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self, scan: &mut Scan<'_>) {
        self.seen = 0;
        for filter in &mut self.list {
            filter.stop(scan);
        }
    }

    /// All of the layer is a form: its values are read together as well.
    pub(crate) fn join_form(&mut self, scan: &mut Scan<'_>, trail: &Trail) {
        if scan.state.budget.open() {
            self.list.push(Filter {
                is_active: true,
                until: u64::MAX,
                ..Filter::new(Kind::Form, trail)
            });
        }
    }

    /// Looks for escapes in what is new, and goes on with those that are open.
    pub(crate) fn work(&mut self, scan: &mut Scan<'_>, view: &View<'_>) {
        let end = view.end();
        let to = match view.until {
            Until::Step => end.saturating_sub(TAIL).max(self.seen),
            Until::Flush | Until::End => end,
        };
        let from = self.seen.max(view.base);
        triggers::find(view, from, to, &mut |kind, at| {
            self.wake(scan, view, kind, at);
        });
        self.seen = if view.until == Until::End {
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
                Until::End => filter.end(scan),
                other => filter.layer.work(scan, other),
            }
        }
    }

    fn wake(&mut self, scan: &mut Scan<'_>, view: &View<'_>, kind: Kind, at: u64) {
        if let Some(filter) = self.list.iter_mut().find(|filter| filter.kind == kind) {
            filter.wake(scan, view, at);
        } else if view.trail.depth() >= limits::DEPTH_MAX {
            scan.miss(UnscannedReason::Depth, 1);
        } else {
            let mut filter = Filter::new(kind, view.trail);
            filter.wake(scan, view, at);
            self.list.push(filter);
        }
    }
}

impl Filter {
    fn new(kind: Kind, trail: &Trail) -> Self {
        Self {
            kind,
            layer: Box::new(Layer::new(trail.with(kind.coding(), None))),
            decoder: Decoder::new(kind),
            is_active: false,
            fed: 0,
            until: 0,
        }
    }

    fn wake(&mut self, scan: &mut Scan<'_>, view: &View<'_>, at: u64) {
        if self.is_active && at >= self.until {
            self.advance(scan, view, at);
        }
        if !self.is_active {
            if !scan.state.budget.open() {
                return;
            }
            self.is_active = true;
            self.fed = lookback(view, at);
        }
        self.until = at.saturating_add(limits::AFTER_ESCAPE_BYTES);
    }

    /// Takes the bytes up to `to`, or up to where this ends.
    fn advance(&mut self, scan: &mut Scan<'_>, view: &View<'_>, to: u64) {
        while self.is_active && !scan.is_over() {
            let stop = self.until.min(to);
            self.feed(scan, view, stop);
            if self.until > to {
                return;
            }
            self.layer.work(scan, Until::Step);
            if self.layer.is_open() || self.decoder.is_open() {
                self.until = self.until.saturating_add(limits::AFTER_ESCAPE_BYTES);
            } else {
                self.end(scan);
            }
        }
    }

    fn feed(&mut self, scan: &mut Scan<'_>, view: &View<'_>, to: u64) {
        let mut made = Vec::new();
        while self.fed < to && !scan.is_over() {
            let next = self.fed.saturating_add(wide(limits::PIECE_BYTES)).min(to);
            // What waits in the decoder came before.
            let outer = view.origin(self.fed.saturating_sub(self.decoder.waiting()));
            made.clear();
            self.decoder.push(view.slice(self.fed, next), &mut made);
            if !scan.state.budget.derive(made.len()) {
                return;
            }
            self.layer.push(scan, &made, Some(outer));
            self.fed = next;
        }
    }

    fn end(&mut self, scan: &mut Scan<'_>) {
        let mut made = Vec::new();
        self.decoder.finish(&mut made);
        self.layer.push(scan, &made, None);
        self.layer.work(scan, Until::End);
        self.stop(scan);
    }

    fn stop(&mut self, scan: &mut Scan<'_>) {
        if self.is_active {
            self.is_active = false;
            self.layer.clear(scan);
            scan.state.budget.close();
        }
        self.decoder = Decoder::new(self.kind);
        self.fed = 0;
    }
}

/// Where to begin for an escape at `at`: behind the last byte that no credential
/// has in it, but some bytes before in any case.
fn lookback(view: &View<'_>, at: u64) -> u64 {
    let reach = wide(limits::CONTEXT_BYTES);
    let near = at.saturating_sub(wide(limits::BEFORE_ESCAPE_BYTES));
    let far = at.saturating_sub(reach).max(view.base);
    let before = view.slice(far, near);
    let ends =
        |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b'"' | b'\'' | b'<' | b'>' | 0);
    let start = before.iter().rposition(ends);
    let start = start.map_or(far, |place| {
        far.saturating_add(wide(place)).saturating_add(1)
    });
    start.min(near).max(view.base)
}
