//! Numbers that look random and are the same for the same seed.

/// SplitMix64.
#[derive(Clone)]
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn roll(&mut self, below: usize) -> usize {
        let below = u64::try_from(below).expect("a count");
        usize::try_from(self.next() % below).expect("below a count")
    }

    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.roll(from.len())]
    }

    /// Whether one in so many times.
    pub(crate) fn is_one_in(&mut self, times: usize) -> bool {
        self.roll(times) == 0
    }

    /// Letters and digits.
    pub(crate) fn text(&mut self, length: usize) -> String {
        const LETTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
        (0..length)
            .map(|_| char::from(self.pick(LETTERS)))
            .collect()
    }

    /// Words of prose.
    pub(crate) fn words(&mut self, count: usize) -> String {
        const WORDS: [&str; 16] = [
            "the", "request", "of", "a", "client", "is", "answered", "by", "one", "server", "in",
            "time", "open", "list", "next", "state",
        ];
        let words: Vec<&str> = (0..count).map(|_| self.pick(&WORDS)).collect();
        words.join(" ")
    }
}
