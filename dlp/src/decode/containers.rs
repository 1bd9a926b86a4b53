//! Compressed data and archives in a layer: declared, or recognised by how they
//! begin. What comes out of one is a layer of its own; the compressed bytes
//! stay until what they say is cleared.

mod brotli;
mod bzip2;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
mod guess;
mod inflate;
mod lz4;
mod lzma;
mod marks;
mod members;
mod meta_block;
mod open;
mod pack;
mod prefix;
mod recognise;
mod sealed;
mod seek;
mod stored;
mod uncoded;
mod unpack;
mod unread;
mod zstd;

use std::collections::VecDeque;

use crate::budget::wide;
use crate::coding::Coding;
use crate::decode::layer::{FREE, LayerExtent, View};
use crate::finding::UnscannedReason;
use crate::limits;
use crate::magic::{MAGICS, Magic, OpaqueFormat};
use crate::scan::Scan;
use crate::trail::Trail;

use guess::{DeflateLooks, looks};
pub(crate) use guess::{is_begun_zlib, is_unmarked, may_be_unmarked};
use open::{Became, Container};
pub(crate) use recognise::is_zlib;
use recognise::{CompressedBegin, Recognition, UNMARKED, Wait};
use seek::LayerSeek;
pub use uncoded::{Uncoded, UncodedFault};

/// What is decoded in one layer.
#[derive(Default)]
pub(crate) struct Containers {
    open: Vec<Container>,
    /// Beginnings that were not looked at closely.
    spotted: Vec<Spotted>,
    /// Beginnings that were, not to be taken twice.
    known: Vec<(Magic, u64)>,
    declared: Declared,
    seek: LayerSeek,
    /// Where something may begin behind other bytes, and was not looked at closely.
    behind: Vec<(Magic, u64)>,
    /// What of the bytes that are here went into something that looks into all of it.
    covered: Vec<(u64, u64)>,
    /// What of the layer belonged to what ended lately and was something.
    ended: VecDeque<(u64, u64)>,
    /// Where streams begin that one before them goes on with.
    joined: VecDeque<u64>,
}

/// Codings that somebody says are there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Declared {
    /// Outermost first.
    pub(crate) codings: Vec<Coding>,
    /// Behind them is one that nobody here reads.
    pub(crate) has_more: bool,
}

#[derive(Clone, Copy)]
struct Spotted {
    magic: Magic,
    at: u64,
    /// Where it ends at the latest.
    until: u64,
}

/// How certain it is that this is what it looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Certainty {
    /// Somebody said so, or the beginning is long: damage is told.
    Known,
    /// It has a mark that chance does not make, and stands in what may be no text: what it asks
    /// for is told, and damage may be that of the text.
    Marked,
    /// A few bits look like it: damage means that they only looked so.
    Guessed,
}

impl Containers {
    /// The content codings of the outermost layer.
    pub(crate) fn declare(&mut self, declared: Declared) {
        self.declared = declared;
    }

    /// Something may begin at `at`.
    pub(crate) fn spot(&mut self, magic: Magic, at: u64) {
        // This mark stands behind the first bytes.
        let before = match magic {
            Magic::Sealed(OpaqueFormat::LzmaUnsized) => sealed::LZMA_SIZE_AT,
            _ => 0,
        };
        if let Some(at) = at.checked_sub(before) {
            self.spot_until(magic, at, FREE);
        }
    }

    /// What nobody here opens and has no mark could begin at `at`.
    pub(crate) fn expect_sealed(&mut self, at: u64) {
        for format in sealed::UNMARKED {
            self.spot(Magic::Sealed(format), at);
        }
    }

    fn spot_until(&mut self, magic: Magic, at: u64, until: u64) {
        if !self.known.contains(&(magic, at)) {
            self.known.push((magic, at));
            self.spotted.push(Spotted { magic, at, until });
        }
    }

    /// zlib could begin at `at`: two bytes are too few to look for everywhere.
    pub(crate) fn expect_zlib(&mut self, at: u64) {
        self.spot(Magic::Zlib, at);
    }

    /// Compressed data without a mark could begin at `at`: it is looked for in few places
    /// only.
    pub(crate) fn expect(&mut self, at: u64) {
        self.expect_until(at, FREE);
    }

    /// The same where it ends before `until`.
    pub(crate) fn expect_until(&mut self, at: u64, until: u64) {
        for magic in UNMARKED {
            self.spot_until(magic, at, until);
        }
    }

    /// Whether anything goes on, or something with a mark waits for what tells it: a name may
    /// be long. What has none begins in few places, and is told by a few bytes.
    pub(crate) fn is_open(&self) -> bool {
        let waits = |spotted: &Spotted| {
            !matches!(
                spotted.magic,
                Magic::Zlib | Magic::Deflate | Magic::Brotli | Magic::Unread
            )
        };
        !self.open.is_empty() || self.spotted.iter().any(waits)
    }

    /// What must stay, in offsets of the outermost stream.
    pub(crate) fn held(&self) -> u64 {
        self.open.iter().map(Container::held).min().unwrap_or(FREE)
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self, scan: &mut Scan<'_>) {
        for container in self.open.drain(..) {
            container.drop(scan);
        }
        self.spotted.clear();
        self.known.clear();
        self.declared = Declared::default();
        self.seek = LayerSeek::default();
        self.behind.clear();
        self.covered.clear();
        self.ended.clear();
        self.joined.clear();
    }

    /// Looks at what began, and goes on with what is open.
    pub(crate) fn work(&mut self, scan: &mut Scan<'_>, view: &View<'_>) {
        if view.base == 0 && !view.bytes.is_empty() {
            self.begin_declared(scan, view);
        }
        let spotted = std::mem::take(&mut self.spotted);
        for one in spotted {
            self.make_room(scan, view);
            if !self.is_joined(scan, view, one) {
                self.look(scan, view, one);
            }
        }
        self.go_on(scan, view);
        self.look_behind(scan, view);
        self.covered.clear();
        if self.known.len() > limits::REPORTED_MAX {
            // Only the last bytes of a step are looked at twice.
            let old = view.end().saturating_sub(wide(limits::CONTEXT_BYTES));
            self.known.retain(|(_, at)| *at >= old);
        }
    }

    /// Whether what begins there is gone on with by the stream before it.
    fn is_joined(&mut self, scan: &mut Scan<'_>, view: &View<'_>, one: Spotted) -> bool {
        let goes_on = |open: &Container| open.joins(one.magic, one.at) && open.fed < view.end();
        if self.open.iter().any(goes_on) {
            self.go_on(scan, view);
        }
        let old = self.joined.len().saturating_sub(limits::REPORTED_MAX);
        self.joined.drain(..old);
        self.joined.contains(&one.at)
    }

    /// Goes on with what is open where that may make room: many small entries are over before
    /// the next ones begin.
    fn make_room(&mut self, scan: &mut Scan<'_>, view: &View<'_>) {
        let kinds = [Certainty::Known, Certainty::Marked, Certainty::Guessed];
        let is_full = kinds.iter().any(|kind| !self.has_room(scan, *kind));
        if is_full && self.open.iter().any(|open| open.fed < view.end()) {
            self.go_on(scan, view);
        }
    }

    /// Looks at what may begin behind other bytes, and behind what ended, until nothing does.
    fn look_behind(&mut self, scan: &mut Scan<'_>, view: &View<'_>) {
        let (behind, covered) = (&mut self.behind, &self.covered);
        let mut sealed = Vec::new();
        self.seek.find(view, &mut |magic, at| {
            if covered.iter().any(|(from, to)| (*from..*to).contains(&at)) {
                return;
            }
            match magic {
                Magic::Sealed(_) | Magic::Unread => sealed.push((magic, at)),
                _ => behind.push((magic, at)),
            }
        });
        for (magic, at) in sealed {
            let until = FREE;
            self.look(scan, view, Spotted { magic, at, until });
        }
        let mut later = Vec::new();
        while !self.behind.is_empty() && !scan.is_over() {
            for (magic, at) in std::mem::take(&mut self.behind) {
                match looks(magic, view, at) {
                    DeflateLooks::Short => later.push((magic, at)),
                    DeflateLooks::Wrong => {}
                    DeflateLooks::Right => {
                        self.begin_behind(scan, view, (magic, at));
                        // Chance is mostly over at once, and leaves its space to the next.
                        if self.open.iter().any(|open| open.fed < view.end()) {
                            self.go_on(scan, view);
                        }
                    }
                }
            }
            self.go_on(scan, view);
        }
        self.behind = later;
    }

    /// Opens what begins behind other bytes.
    fn begin_behind(&mut self, scan: &mut Scan<'_>, view: &View<'_>, (magic, at): (Magic, u64)) {
        let is_bare = magic != Magic::Zlib;
        let is_deep = is_bare && view.trail.unmarked() >= limits::UNMARKED_DEPTH_MAX;
        if is_deep || self.known.contains(&(magic, at)) {
            return;
        }
        if !scan.state.budget.open_behind() {
            scan.miss(UnscannedReason::Work, 1);
            return;
        }
        self.make_room(scan, view);
        let coding = match magic {
            Magic::Zlib => Coding::Zlib,
            Magic::Brotli => Coding::Brotli,
            _ => Coding::Deflate,
        };
        if let Some(unpack) = recognise::unpack(coding) {
            let trail = view.trail.with(coding, None);
            let begin = CompressedBegin {
                unpack,
                trail,
                data: at,
            };
            self.add(scan, view, begin, (Certainty::Guessed, FREE));
        }
    }

    /// Goes on with what is open.
    fn go_on(&mut self, scan: &mut Scan<'_>, view: &View<'_>) {
        let mut place = 0;
        while let Some(container) = self.open.get_mut(place) {
            if scan.is_over() {
                return;
            }
            let before = container.fed;
            let became = container.work(scan, view);
            self.joined.extend(container.begun());
            if container.covers() {
                self.covered.push((before, container.fed));
            }
            match became {
                Became::Open => place = place.saturating_add(1),
                Became::Done => {
                    let container = self.open.swap_remove(place);
                    self.behind.push((Magic::Deflate, container.fed));
                    if container.certainty == Certainty::Known {
                        self.ended.truncate(limits::ENDED_MAX.saturating_sub(1));
                        self.ended.push_front(container.taken());
                    }
                    container.drop(scan);
                }
                Became::Failed(reason) => {
                    let container = self.open.swap_remove(place);
                    if self.is_told(&container, reason) {
                        scan.miss(reason, view.end().saturating_sub(container.fed).max(1));
                    }
                    container.drop(scan);
                }
            }
        }
    }

    /// Whether it is told that a container failed so.
    fn is_told(&self, container: &Container, reason: UnscannedReason) -> bool {
        use UnscannedReason::{Damaged, Expansion, Memory, Shared, UnknownCoding};
        match (container.certainty, reason) {
            (Certainty::Known, Damaged) => !self.is_of_another(container),
            (_, Expansion)
            | (Certainty::Known, _)
            | (Certainty::Marked, Memory | Shared | UnknownCoding) => true,
            (_, Memory | Shared) => container.made > 0,
            _ => false,
        }
    }

    /// Whether a container begins within the data of another, which has it undone for itself:
    /// what is stored in compressed data has the lengths of their blocks between.
    fn is_of_another(&self, container: &Container) -> bool {
        let (at, _) = container.taken();
        let known = self.open.iter();
        let known = known.filter(|other| other.certainty == Certainty::Known);
        let mut others = known
            .map(Container::taken)
            .chain(self.ended.iter().copied());
        others.any(|(from, to)| from < at && at < to)
    }

    fn begin_declared(&mut self, scan: &mut Scan<'_>, view: &View<'_>) {
        if self.declared.codings.is_empty() {
            if std::mem::take(&mut self.declared.has_more) {
                scan.miss(UnscannedReason::UnknownCoding, wide(view.bytes.len()));
            }
            return;
        }
        if view.bytes.len() < 2 && view.until == LayerExtent::Step {
            return;
        }
        let mut inner = std::mem::take(&mut self.declared);
        let outer = inner.codings.remove(0);
        // It need not be recognised as well.
        let magic = recognise::magic(outer).filter(|magic| !self.known.contains(&(*magic, 0)));
        self.known.extend(magic.map(|magic| (magic, 0)));
        self.known.push((Magic::Zlib, 0));
        self.spotted.retain(|one| one.at != 0);
        for (coding, certainty) in recognise::declared(outer, view.bytes) {
            let Some(mut unpack) = recognise::unpack(coding) else {
                scan.miss(UnscannedReason::UnknownCoding, wide(view.bytes.len()));
                continue;
            };
            unpack.reset();
            let trail = view.trail.with(coding, None);
            let begin = CompressedBegin {
                unpack,
                trail,
                data: 0,
            };
            if let Some(container) = self.add(scan, view, begin, (certainty, FREE)) {
                let containers = container.layer.containers();
                containers.declare(inner.clone());
            }
        }
    }

    fn look(&mut self, scan: &mut Scan<'_>, view: &View<'_>, spotted: Spotted) {
        let here = view.so_far(spotted.at, spotted.until);
        // Behind its own end nothing of it comes.
        let may_come = view.until != LayerExtent::End && spotted.until > view.end();
        // Chance makes many beginnings out of a few symbols, and out of each other.
        let is_outer = !view.trail.is_run() && view.trail.unmarked() == 0;
        let wait = match view.until {
            _ if spotted.until <= view.end() => Wait::Over,
            LayerExtent::Flush if is_outer => Wait::Short,
            LayerExtent::Step | LayerExtent::Flush => Wait::Long,
            LayerExtent::End => Wait::Over,
        };
        let is_sealed = matches!(spotted.magic, Magic::Sealed(_));
        match recognise::recognise(spotted.magic, here, view.trail, wait) {
            Recognition::More if may_come => self.spotted.push(spotted),
            Recognition::More | Recognition::Other => {}
            Recognition::Unreadable(reason) => {
                if !(UNMARKED.contains(&spotted.magic) && is_of_digits(view, spotted.at)) {
                    scan.miss(reason, 1);
                }
            }
            Recognition::Begin(_) if is_sealed && is_of_digits(view, spotted.at) => {}
            Recognition::Begin(begin) => {
                // Text decoded out of compressed bytes begins like them too.
                let certainty = if is_sealed {
                    Certainty::Known
                } else if view.trail.is_text() && spotted.magic.is_marked() {
                    Certainty::Marked
                } else if UNMARKED.contains(&spotted.magic) || view.trail.is_text() {
                    Certainty::Guessed
                } else {
                    Certainty::Known
                };
                self.begin(scan, view, begin, (certainty, spotted));
            }
            Recognition::Perhaps(begin) => {
                self.begin(scan, view, begin, (Certainty::Guessed, spotted));
            }
            Recognition::Behind(bytes) => {
                let at = spotted.at.saturating_add(bytes);
                // What has a mark needs no guess, and many files of one kind no crowd of them.
                let here = view.slice(at, view.end().min(spotted.until));
                let has_mark = MAGICS.iter().any(|(mark, _)| here.starts_with(mark));
                for magic in UNMARKED.into_iter().filter(|_| !has_mark) {
                    let until = spotted.until;
                    self.look(scan, view, Spotted { magic, at, until });
                }
            }
        }
    }

    /// Opens what was spotted.
    fn begin(
        &mut self,
        scan: &mut Scan<'_>,
        view: &View<'_>,
        mut begin: CompressedBegin,
        (certainty, spotted): (Certainty, Spotted),
    ) {
        begin.data = begin.data.saturating_add(spotted.at);
        // Chance makes these out of each other.
        let is_bare = matches!(spotted.magic, Magic::Deflate | Magic::Brotli);
        if !is_bare || view.trail.unmarked() < limits::UNMARKED_DEPTH_MAX {
            self.add(scan, view, begin, (certainty, spotted.until));
        }
    }

    /// Whether one more may be open. What only looks like something takes no room from what
    /// is something, and what comes out of it may look like more.
    fn has_room(&self, scan: &Scan<'_>, certainty: Certainty) -> bool {
        let alike = self.open.iter().filter(|open| open.certainty == certainty);
        let is_crowded = scan.state.budget.guesses() >= limits::GUESSES_MAX;
        let is_guess = certainty == Certainty::Guessed;
        alike.count() < limits::CONTAINERS_MAX && !(is_guess && is_crowded)
    }

    fn add(
        &mut self,
        scan: &mut Scan<'_>,
        view: &View<'_>,
        begin: CompressedBegin,
        (certainty, until): (Certainty, u64),
    ) -> Option<&mut Container> {
        // Nothing is worked at any more, so that nothing makes room either.
        if scan.is_over() || !scan.state.budget.work(limits::CONTAINER_WORK) {
            return None;
        }
        if view.trail.depth() >= limits::DEPTH_MAX {
            scan.miss(UnscannedReason::Depth, 1);
            return None;
        }
        if !self.has_room(scan, certainty) || !scan.state.budget.open() {
            scan.miss(UnscannedReason::Crowded, 1);
            return None;
        }
        if certainty == Certainty::Guessed {
            scan.state.budget.guess();
        }
        let origin = view.origin(begin.data);
        self.open
            .push(Container::new(begin, origin, (certainty, until)));
        self.open.last_mut()
    }
}

/// Whether these bytes are read out of digits that are all decimal: tables of small numbers
/// look like what has no mark, and of so many bytes of what is compressed or encrypted some
/// have others.
fn is_of_digits(view: &View<'_>, at: u64) -> bool {
    let end = at.saturating_add(wide(limits::DIGITS_LOOK_BYTES));
    let mut here = view.so_far(at, end).iter();
    view.trail.is_digits() && here.all(|byte| byte >> 4 <= 9 && byte & 0x0f <= 9)
}

/// The trail of an entry.
fn entry(trail: &Trail, coding: Coding, name: &[u8]) -> Trail {
    trail.with(coding, Some(crate::trail::shown(name)))
}
