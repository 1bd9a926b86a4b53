//! Compressed data and archives in a layer: declared, or recognised by how they
//! begin. What comes out of one is a layer of its own; the compressed bytes
//! stay until what they say is cleared.

mod beginnings;
mod brotli;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
mod guess;
mod inflate;
mod meta_block;
mod open;
mod pack;
mod prefix;
mod recognise;
mod sealed;
mod seek;
mod stored;
mod unpack;
mod zstd;

use crate::budget::wide;
use crate::coding::Coding;
use crate::decode::layer::{FREE, Until, View};
use crate::finding::UnscannedReason;
use crate::limits;
use crate::scan::Scan;
use crate::trail::Trail;

use guess::Looks;
pub(crate) use guess::{is_unmarked, may_be_unmarked};
use open::{Became, Container};
use recognise::{Begin, Recognised, UNMARKED, Wait};
pub(crate) use recognise::{MAGICS, Magic, is_zlib, sealed};
use seek::Seek;

/// What is decoded in one layer.
#[derive(Default)]
pub(crate) struct Containers {
    open: Vec<Container>,
    /// Beginnings that were not looked at closely.
    spotted: Vec<Spotted>,
    /// Beginnings that were, not to be taken twice.
    known: Vec<(Magic, u64)>,
    declared: Declared,
    seek: Seek,
    /// Where something may begin behind other bytes, and was not looked at closely.
    behind: Vec<(Magic, u64)>,
    /// What of the bytes that are here went into something that looks into all of it.
    covered: Vec<(u64, u64)>,
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
        self.spot_until(magic, at, FREE);
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

    /// Whether anything goes on, or waits for what tells whether nobody here opens it.
    pub(crate) fn is_open(&self) -> bool {
        let waits = |spotted: &Spotted| matches!(spotted.magic, Magic::Sealed(_));
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
        self.seek = Seek::default();
        self.behind.clear();
        self.covered.clear();
    }

    /// Looks at what began, and goes on with what is open.
    pub(crate) fn work(&mut self, scan: &mut Scan<'_>, view: &View<'_>) {
        if view.base == 0 && !view.bytes.is_empty() {
            self.begin_declared(scan, view);
        }
        let spotted = std::mem::take(&mut self.spotted);
        for one in spotted {
            self.make_room(scan, view);
            self.look(scan, view, one);
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

    /// Goes on with what is open where that may make room: many small entries are over before
    /// the next ones begin.
    fn make_room(&mut self, scan: &mut Scan<'_>, view: &View<'_>) {
        let kinds = [Certainty::Known, Certainty::Guessed];
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
                Magic::Sealed(_) => sealed.push((magic, at)),
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
                    Looks::Short => later.push((magic, at)),
                    Looks::Wrong => {}
                    Looks::Right => {
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
            let begin = Begin {
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
            if container.covers() {
                self.covered.push((before, container.fed));
            }
            match became {
                Became::Open => place = place.saturating_add(1),
                Became::Done => {
                    let container = self.open.swap_remove(place);
                    self.behind.push((Magic::Deflate, container.fed));
                    container.drop(scan);
                }
                Became::Failed(reason) => {
                    let container = self.open.swap_remove(place);
                    let is_told = match reason {
                        UnscannedReason::Expansion => true,
                        UnscannedReason::Memory => container.made > 0,
                        _ => false,
                    };
                    if is_told || container.certainty == Certainty::Known {
                        scan.miss(reason, view.end().saturating_sub(container.fed).max(1));
                    }
                    container.drop(scan);
                }
            }
        }
    }

    fn begin_declared(&mut self, scan: &mut Scan<'_>, view: &View<'_>) {
        if self.declared.codings.is_empty() {
            if std::mem::take(&mut self.declared.has_more) {
                scan.miss(UnscannedReason::UnknownCoding, wide(view.bytes.len()));
            }
            return;
        }
        if view.bytes.len() < 2 && view.until == Until::Step {
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
            let begin = Begin {
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
        let here = view.slice(spotted.at, view.end().min(spotted.until));
        let may_come = view.until != Until::End;
        // Chance makes many beginnings out of a few symbols, and out of each other.
        let is_outer = !view.trail.is_run() && view.trail.unmarked() == 0;
        let wait = match view.until {
            _ if spotted.until <= view.end() => Wait::Over,
            Until::Flush if is_outer => Wait::Short,
            Until::Step | Until::Flush => Wait::Long,
            Until::End => Wait::Over,
        };
        match recognise::recognise(spotted.magic, here, view.trail, wait) {
            Recognised::More if may_come => self.spotted.push(spotted),
            Recognised::More | Recognised::Other => {}
            Recognised::Unreadable(reason) => scan.miss(reason, 1),
            Recognised::Begin(begin) => {
                // Text decoded out of compressed bytes begins like them too.
                let is_guess = UNMARKED.contains(&spotted.magic) || view.trail.is_text();
                let certainty = if is_guess {
                    Certainty::Guessed
                } else {
                    Certainty::Known
                };
                self.begin(scan, view, begin, (certainty, spotted));
            }
            Recognised::Perhaps(begin) => {
                self.begin(scan, view, begin, (Certainty::Guessed, spotted));
            }
            Recognised::Behind(bytes) => {
                let at = spotted.at.saturating_add(bytes);
                for magic in UNMARKED {
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
        mut begin: Begin,
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
        begin: Begin,
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

/// What a close look says of what may begin behind other bytes.
fn looks(magic: Magic, view: &View<'_>, at: u64) -> Looks {
    let here = view.slice(at, view.end());
    let wait = match view.until {
        Until::Step => Wait::Long,
        // Of a header alone nothing can be said; what follows it is seen with it.
        Until::Flush if here.len() < limits::FLUSHED_LOOK_BYTES => return Looks::Short,
        Until::Flush => Wait::Short,
        Until::End => Wait::Over,
    };
    match magic {
        Magic::Zlib => guess::looks_deflated(here.get(2..).unwrap_or_default(), wait),
        Magic::Brotli => guess::looks_like_brotli(here, wait),
        _ => guess::looks_deflated(here, wait),
    }
}

/// The trail of an entry.
fn entry(trail: &Trail, coding: Coding, name: &[u8]) -> Trail {
    trail.with(coding, Some(crate::trail::shown(name)))
}
