//! Numbers as programs print bytes: dumps line by line, with the place of each line and
//! the same as text beside it (xxd, od, hexdump), and lists in whatever language. What
//! digits stand for is not known before: each reading that fits gets a layer.

mod lane;
mod number;
mod reader;

use crate::budget::wide;
use crate::coding::Coding;
use crate::decode::layer::{FREE, LayerExtent, View};
use crate::decode::runs::Alphabet;
use crate::limits;
use crate::scan::Scan;
use crate::trail::Trail;

use lane::NumberLane;
use number::READINGS;
use reader::{DumpColumn, NumberEvent, NumberReader};

/// The numbers of one layer.
#[derive(Default)]
pub(crate) struct Dumps {
    /// What stands before this offset was read, or looked at elsewhere.
    done: u64,
    /// What is read, and in which ways.
    reading: Option<Box<NumberReading>>,
    stage: NumbersStage,
}

/// Where the numbers of a layer stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum NumbersStage {
    /// Nobody asked for any.
    #[default]
    Unasked,
    /// None are read.
    Between,
    /// Some are.
    Active,
}

/// Numbers that are read.
struct NumberReading {
    reader: NumberReader,
    lanes: Vec<NumberLane>,
    trail: Trail,
    /// The offset at which this ends unless more numbers come.
    until: u64,
}

impl Dumps {
    /// Whether something has begun that more numbers could complete.
    pub(crate) fn is_open(&self) -> bool {
        let reading = self
            .reading
            .as_ref()
            .filter(|_| self.stage == NumbersStage::Active);
        reading.is_some_and(|reading| reading.lanes.iter().any(NumberLane::is_waiting))
    }

    /// Whether numbers are read that may go on: where lines are long, the next begins far
    /// behind the last.
    pub(crate) fn goes_on(&self) -> bool {
        let reading = self.reading.as_ref();
        let reading = reading.filter(|_| self.stage == NumbersStage::Active);
        reading.is_some_and(|reading| reading.lanes.iter().any(NumberLane::is_open))
    }

    /// The offset before which everything was read.
    pub(crate) fn uncertain(&self) -> u64 {
        match self.stage {
            NumbersStage::Unasked => FREE,
            NumbersStage::Between | NumbersStage::Active => self.done,
        }
    }

    /// What must stay, in offsets of the outermost stream.
    pub(crate) fn held(&self, until: LayerExtent) -> u64 {
        let reading = self
            .reading
            .as_ref()
            .filter(|_| self.stage == NumbersStage::Active);
        reading.map_or(FREE, |reading| reading.held(until))
    }

    /// What stands before `offset` was looked at elsewhere.
    pub(crate) fn skip(&mut self, offset: u64) {
        self.done = offset;
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self, scan: &mut Scan<'_>) {
        self.done = 0;
        self.stop(scan);
    }

    fn stop(&mut self, scan: &mut Scan<'_>) {
        self.stage = NumbersStage::Unasked;
        if let Some(reading) = &mut self.reading {
            for lane in &mut reading.lanes {
                lane.stop(scan);
            }
        }
    }

    /// Looks for numbers in what is new, and goes on with those that are read.
    pub(crate) fn work(&mut self, scan: &mut Scan<'_>, view: &View<'_>) {
        let end = view.end();
        if self.stage == NumbersStage::Unasked {
            self.stage = NumbersStage::Between;
        }
        self.done = self.done.max(view.base);
        while self.done < end && !scan.is_over() {
            if self.stage != NumbersStage::Active && !self.find(view) {
                break;
            }
            self.go_on(scan, view);
        }
        let Some(reading) = self
            .reading
            .as_mut()
            .filter(|_| self.stage == NumbersStage::Active)
        else {
            return;
        };
        if view.until == LayerExtent::End {
            reading.end(scan);
            self.stage = NumbersStage::Between;
        } else {
            for lane in &mut reading.lanes {
                lane.work(scan, &reading.trail, view.until);
            }
        }
    }

    /// Begins to read where so many bytes stand of which numbers and what is between them
    /// consist, if they do anywhere.
    fn find(&mut self, view: &View<'_>) -> bool {
        let end = view.end();
        let Some((at, stop)) = self.stretch(view) else {
            // What may be the beginning of some waits.
            let least = wide(limits::DIGITS_MIN.saturating_sub(1));
            let few = view.slice(end.saturating_sub(least).max(self.done), end);
            let waiting = wide(Alphabet::Hex.tail(few));
            self.done = match view.until {
                LayerExtent::End => end,
                LayerExtent::Step | LayerExtent::Flush => end.saturating_sub(waiting),
            };
            return false;
        };
        let last = view.around(at.saturating_sub(1), at).last().copied();
        let reader = NumberReader::new(last.filter(|_| at > 0).unwrap_or(b'\n'));
        match &mut self.reading {
            Some(reading) => {
                reading.reader = reader;
                reading.until = stop;
            }
            none => {
                *none = Some(Box::new(NumberReading {
                    reader,
                    lanes: READINGS.map(NumberLane::new).into_iter().collect(),
                    trail: view.trail.with(Coding::Numbers, None),
                    until: stop,
                }));
            }
        }
        self.done = at;
        self.stage = NumbersStage::Active;
        true
    }

    /// The next stretch of so many of these bytes; words too long for a number, which digests
    /// are, begin none.
    fn stretch(&mut self, view: &View<'_>) -> Option<(u64, u64)> {
        loop {
            let range = (self.done, view.end());
            let (at, stop) = view.classes.run(Alphabet::Hex, range)?;
            let digits = view.slice(at, stop).iter();
            let word = digits.take_while(|byte| byte.is_ascii_hexdigit()).count();
            if word <= number::CHARACTERS_MAX {
                return Some((at, stop));
            }
            self.done = at.saturating_add(wide(word));
        }
    }

    /// Reads what is here, or up to where no numbers are any more.
    fn go_on(&mut self, scan: &mut Scan<'_>, view: &View<'_>) {
        let end = view.end();
        let Some(reading) = &mut self.reading else {
            return;
        };
        let stretch = view.classes.stop(Alphabet::Hex, (self.done, end));
        reading.until = reading.until.max(stretch);
        while self.done < end && !scan.is_over() {
            if self.done >= reading.until {
                reading.end(scan);
                self.stage = NumbersStage::Between;
                return;
            }
            let piece = self.done.saturating_add(wide(limits::PIECE_BYTES));
            let to = piece.min(reading.until).min(end);
            reading.read(scan, view, (self.done, to));
            self.done = to;
        }
    }
}

impl NumberReading {
    fn held(&self, until: LayerExtent) -> u64 {
        let waits = self.reader.waits().filter(|_| until == LayerExtent::Step);
        let lanes = self.lanes.iter().map(|lane| lane.held(until));
        lanes.chain(waits).min().unwrap_or(FREE)
    }

    fn read(&mut self, scan: &mut Scan<'_>, view: &View<'_>, (from, to): (u64, u64)) {
        let bytes = view.slice(from, to);
        let (lanes, trail) = (&mut self.lanes, &self.trail);
        let mut is_read = false;
        let outer = |place: usize| view.origin(from.saturating_add(wide(place)));
        self.reader.read(bytes, outer, &mut |event| {
            is_read |= tell(lanes, scan, trail, &event);
        });
        if is_read || self.reader.is_dump() {
            let more = to.saturating_add(limits::NUMBERS_GAP_BYTES);
            self.until = self.until.max(more);
        }
    }

    /// No more numbers come.
    fn end(&mut self, scan: &mut Scan<'_>) {
        let (lanes, trail) = (&mut self.lanes, &self.trail);
        self.reader.finish(&mut |event| {
            tell(lanes, scan, trail, &event);
        });
        for lane in &mut self.lanes {
            lane.work(scan, &self.trail, LayerExtent::End);
            lane.stop(scan);
        }
    }
}

/// Tells the lanes what was read; says whether one goes on with it.
fn tell(
    lanes: &mut [NumberLane],
    scan: &mut Scan<'_>,
    trail: &Trail,
    event: &NumberEvent<'_>,
) -> bool {
    let mut is_read = false;
    match event {
        NumberEvent::Apart => lanes.iter_mut().for_each(NumberLane::interrupt),
        NumberEvent::Number(number, column) => {
            let ways = number.ways();
            for (place, lane) in lanes.iter_mut().enumerate() {
                let may_be = ways & 1 << place != 0;
                if *column == DumpColumn::Perhaps && lane.is_hex() || !may_be && !lane.is_open() {
                    continue;
                }
                is_read |= lane.take(scan, trail, number);
            }
        }
    }
    is_read
}
