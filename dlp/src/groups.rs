//! Which three bytes of a literal are looked for, and in which group: windows
//! of one group are told from text only by the halves of bytes that any of them
//! has, so those that are alike belong together.
//!
//! Pure, and built into the build script as well. Where the literals that are shipped
//! belong was found out at length, and stands in `places.txt`; others are placed beside
//! them.
//!
//! What the search for places gives, beside placing all as here: 12 % of the speed on JSON, 8 %
//! on Python and 6 to 8 % on JavaScript, 0 to 6 % on Rust, Markdown, lock files, base64 and
//! random bytes.

/// Bytes of a window.
pub(crate) const WINDOW_BYTES: usize = 3;

/// Groups of windows.
pub(crate) const GROUPS: usize = 16;

/// Windows of one literal that are tried, those with the rarest bytes.
const TRIED: usize = 6;

/// Where in a literal its window begins, and the group it belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Placed {
    pub(crate) at: usize,
    pub(crate) group: usize,
}

/// All groups.
#[derive(Default)]
pub(crate) struct Groups {
    list: [WindowGroup; GROUPS],
}

/// One group: what its windows have first, second and third.
#[derive(Default)]
struct WindowGroup {
    bytes: [Halves; WINDOW_BYTES],
}

/// How many windows have each lower and each upper half of a byte, and how often
/// a byte of such halves stands in text.
#[derive(Default)]
struct Halves {
    low: [u16; 16],
    high: [u16; 16],
    often: f64,
}

impl Groups {
    /// Places a literal where it makes least of a difference; none if it is too
    /// short.
    pub(crate) fn place(&mut self, literal: &[u8]) -> Option<Placed> {
        let mut best: Option<(f64, Placed)> = None;
        for (at, window) in rarest(literal) {
            for (group, there) in self.list.iter().enumerate() {
                let cost = there.with(window) - there.often();
                if best.is_none_or(|(least, _)| cost < least) {
                    best = Some((cost, Placed { at, group }));
                }
            }
        }
        let (_, placed) = best?;
        self.change(literal, placed, |halves, byte| {
            halves.count(byte);
            halves.measure();
        });
        Some(placed)
    }

    /// Takes literals that were placed before.
    pub(crate) fn add<'l>(&mut self, literals: impl IntoIterator<Item = (&'l [u8], Placed)>) {
        for (literal, placed) in literals {
            self.change(literal, placed, Halves::count);
        }
        let bytes = self.list.iter_mut().flat_map(|group| &mut group.bytes);
        bytes.for_each(Halves::measure);
    }

    fn change(&mut self, literal: &[u8], placed: Placed, act: impl Fn(&mut Halves, u8)) {
        let window = literal.get(placed.at..).unwrap_or_default();
        if let Some(group) = self.list.get_mut(placed.group) {
            for (halves, byte) in group.bytes.iter_mut().zip(window) {
                act(halves, *byte);
            }
        }
    }
}

impl WindowGroup {
    /// How often a window of the group seems to stand in text.
    fn often(&self) -> f64 {
        self.bytes.iter().map(|halves| halves.often).product()
    }

    /// The same with one more window.
    fn with(&self, window: &[u8]) -> f64 {
        let bytes = self.bytes.iter().zip(window);
        bytes.map(|(halves, byte)| halves.with(*byte)).product()
    }
}

impl Halves {
    fn count(&mut self, byte: u8) {
        for (counts, half) in [(&mut self.low, byte & 0x0f), (&mut self.high, byte >> 4)] {
            if let Some(count) = counts.get_mut(usize::from(half)) {
                *count = count.saturating_add(1);
            }
        }
    }

    /// Says anew how often its bytes stand in text.
    fn measure(&mut self) {
        let highs = present(&self.high);
        self.often = highs.map(|high| self.row(high)).sum();
    }

    /// How often bytes with this upper half and any lower half stand in text.
    fn row(&self, high: u8) -> f64 {
        present(&self.low).map(|low| share(high << 4 | low)).sum()
    }

    /// How often any byte stands in text, with one more.
    fn with(&self, byte: u8) -> f64 {
        let (low, high) = (byte & 0x0f, byte >> 4);
        let has = |counts: &[u16; 16], half: u8| counts.get(usize::from(half)) != Some(&0);
        let (has_low, has_high) = (has(&self.low, low), has(&self.high, high));
        let mut often = self.often;
        if !has_low {
            often += present(&self.high)
                .map(|high| share(high << 4 | low))
                .sum::<f64>();
        }
        if !has_high {
            often += self.row(high);
        }
        if !has_low && !has_high {
            often += share(byte);
        }
        often
    }
}

/// The halves that some window has.
fn present(counts: &[u16; 16]) -> impl Iterator<Item = u8> {
    let halves = (0..16).zip(counts);
    halves
        .filter(|(_, count)| **count > 0)
        .map(|(half, _)| half)
}

/// The windows of a literal that are met least often in text, each with its place.
fn rarest(literal: &[u8]) -> Vec<(usize, &[u8])> {
    let often = |window: &[u8]| window.iter().map(|byte| share(*byte)).product::<f64>();
    let mut windows: Vec<(usize, &[u8])> = literal.windows(WINDOW_BYTES).enumerate().collect();
    windows.sort_by(|(_, one), (_, other)| often(one).total_cmp(&often(other)));
    windows.truncate(TRIED);
    windows
}

/// Of a thousand bytes of text, sources and coded data mixed, how many are this
/// one, roughly.
fn share(byte: u8) -> f64 {
    let share = match byte {
        b' ' => 90,
        b'e' => 60,
        b't' | b'a' | b'o' | b'i' | b'n' | b's' | b'r' => 40,
        b'c' | b'd' | b'l' | b'm' | b'u' | b'p' | b'h' => 25,
        b'a'..=b'z' => 12,
        b'0'..=b'9' | b'\n' | b'"' | b'.' | b',' | b'/' | b'-' | b'_' | b':' | b'=' | b';' => 9,
        b'A'..=b'Z' => 8,
        b'!'..=b'~' => 3,
        _ => 1,
    };
    f64::from(share) / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_that_are_not_alike_are_not_together() {
        let mut groups = Groups::default();
        let first = groups.place(b"ghp_").expect("long enough");
        let second = groups.place(b"AKIA").expect("long enough");
        assert_ne!(first.group, second.group);
        assert_eq!(groups.place(b"gh"), None);
    }

    #[test]
    fn the_cost_of_one_more_is_what_it_costs() {
        let mut groups = Groups::default();
        for literal in [
            &b"ghp_"[..],
            b"sk-ant-",
            b"xoxb-",
            b"AIza",
            b"glpat-",
            b"hf_",
        ] {
            let window = &literal[..WINDOW_BYTES];
            let expected = groups.list[3].with(window);
            groups.add([(literal, Placed { at: 0, group: 3 })]);
            let often = groups.list[3].often();
            assert!((often - expected).abs() < 1e-12, "{often} {expected}");
        }
    }
}
