//! How much happened when: counts in slices of time that grow with the record,
//! so that a minute and a year cost the same.

use std::collections::BTreeMap;

/// Slices that are kept at most.
const SLICES_MAX: usize = 2048;
/// Bars that are drawn at most.
pub(super) const BARS_MAX: u64 = 72;

/// What happened in one slice.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Slice {
    pub(super) allowed: u64,
    pub(super) denied: u64,
    pub(super) findings: u64,
    pub(super) alarms: u64,
}

impl Slice {
    fn add(&mut self, other: Self) {
        self.allowed = self.allowed.saturating_add(other.allowed);
        self.denied = self.denied.saturating_add(other.denied);
        self.findings = self.findings.saturating_add(other.findings);
        self.alarms = self.alarms.saturating_add(other.alarms);
    }
}

/// Counts over time.
#[derive(Debug)]
pub(super) struct Timeline {
    /// Milliseconds of a slice.
    width: u64,
    slices: BTreeMap<u64, Slice>,
}

impl Default for Timeline {
    fn default() -> Self {
        Self {
            width: 1,
            slices: BTreeMap::new(),
        }
    }
}

/// Counts as they are drawn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Bars {
    /// The time at which the first begins, in milliseconds from 1970 on.
    pub(super) from: u64,
    /// Milliseconds of each.
    pub(super) width: u64,
    pub(super) slices: Vec<Slice>,
}

impl Timeline {
    /// Adds what happened at a time; times that cannot be read are no times.
    pub(super) fn add(&mut self, at: u64, what: Slice) {
        if at == 0 {
            return;
        }
        self.slices.entry(at / self.width).or_default().add(what);
        while self.slices.len() > SLICES_MAX {
            self.width = self.width.saturating_mul(2);
            let before = std::mem::take(&mut self.slices);
            for (place, slice) in before {
                self.slices.entry(place / 2).or_default().add(slice);
            }
        }
    }

    /// At most [`BARS_MAX`] bars of one width, a width that people know.
    pub(super) fn bars(&self) -> Option<Bars> {
        const WIDTHS: [u64; 20] = [
            100,
            200,
            500,
            1000,
            2000,
            5000,
            10_000,
            30_000,
            60_000,
            120_000,
            300_000,
            600_000,
            1_800_000,
            3_600_000,
            10_800_000,
            21_600_000,
            43_200_000,
            86_400_000,
            604_800_000,
            2_592_000_000,
        ];
        let (first, _) = self.slices.first_key_value()?;
        let (last, _) = self.slices.last_key_value()?;
        let from = first.saturating_mul(self.width);
        let span = last.saturating_mul(self.width).saturating_sub(from);
        let fits = |width: &&u64| span / **width < BARS_MAX - 1 && **width >= self.width;
        let width = WIDTHS.iter().find(fits).copied();
        let width = width.unwrap_or((span / (BARS_MAX - 1)).max(self.width).max(1));
        let from = from - from % width;
        let mut slices: Vec<Slice> = Vec::new();
        for (place, slice) in &self.slices {
            let at = place.saturating_mul(self.width).saturating_sub(from) / width;
            let index = usize::try_from(at.min(BARS_MAX)).unwrap_or(0);
            while slices.len() <= index {
                slices.push(Slice::default());
            }
            if let Some(bar) = slices.get_mut(index) {
                bar.add(*slice);
            }
        }
        Some(Bars {
            from,
            width,
            slices,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Slice = Slice {
        allowed: 1,
        denied: 2,
        findings: 0,
        alarms: 0,
    };

    #[test]
    fn nothing_is_lost_however_long_a_record_is() {
        for step in [0, 1, 7, 1000, 86_400_000, 1_000_000_000_000] {
            let mut timeline = Timeline::default();
            for number in 0..5000_u64 {
                timeline.add(1_700_000_000_000 + number * step, ONE);
            }
            let bars = timeline.bars().unwrap();
            let count = u64::try_from(bars.slices.len()).unwrap();
            assert!((1..=BARS_MAX + 1).contains(&count), "{step}: {count}");
            let all: u64 = bars.slices.iter().map(|bar| bar.allowed).sum();
            assert_eq!(all, 5000, "{step}");
            assert!(bars.from <= 1_700_000_000_000, "{step}");
        }
        assert_eq!(Timeline::default().bars(), None);
    }
}
