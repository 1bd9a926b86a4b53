//! What stands where in the blocks of a layer, row by row, and what their marks come to
//! for the searches: told of many blocks at once with the widest registers there are.

use std::ops::Range;
use std::sync::LazyLock;

use outgate_lanes::{BLOCK_BYTES, Marks, PLACES, Pairs, Sets, Work, widest};

use crate::budget::wide;
use crate::decode::filters::{self, is_lead};
use crate::decode::runs::Alphabet;
use crate::limits;

/// Sets of bytes below 128 that are told of every block.
pub(super) const ASCII: usize = 4;

/// Sets of bytes above.
pub(super) const HIGH: usize = 2;

/// Whether a byte is one of text.
pub(super) fn is_text(byte: u8) -> bool {
    matches!(byte, b' '..=b'~' | b'\t' | b'\n' | b'\r')
}

pub(super) static SETS: LazyLock<Sets<ASCII, HIGH>> = LazyLock::new(|| {
    Sets::new(
        [
            |byte| Alphabet::Base64.has(byte),
            |byte| Alphabet::Hex.has(byte),
            is_text,
            |byte| byte == 0,
        ],
        [is_lead, |byte| byte & 0xc0 == 0x80],
    )
});

/// What escapes begin with.
pub(super) static ESCAPES: LazyLock<Pairs> = LazyLock::new(|| Pairs::new(&filters::PAIRS));

/// What a search can skip a block for: a bit for what it has.
pub(super) mod flag {
    /// A run of base64 begins here.
    pub(in crate::decode::classes) const BASE64: u8 = 1;
    /// One of base32, whose bytes are all bytes of base64; or, until that is known, one
    /// of base64 that is long enough.
    pub(in crate::decode::classes) const BASE32: u8 = 2;
    /// A run of hexadecimal digits begins here.
    pub(in crate::decode::classes) const HEX: u8 = 4;
    /// An escape may begin here.
    pub(in crate::decode::classes) const ESCAPE: u8 = 8;
    /// A wide character, or one of several bytes, may begin here.
    pub(in crate::decode::classes) const UNCOMMON: u8 = 16;
}

// What a block has is certain once the next one is whole.
const _: () = assert!(limits::DIGITS_MIN <= BLOCK_BYTES);
const _: () = assert!(limits::BASE64_SYMBOLS_MIN <= limits::DIGITS_MIN);

/// What stands where in blocks of 64 bytes: of each block a bit for each byte, the first
/// one's lowest. What there are no blocks for stands nowhere.
#[derive(Default)]
pub(super) struct ClassBits {
    pub(super) base64: Vec<u64>,
    /// Bytes from which on so many are of base64 that they may be a run.
    pub(super) starts: Vec<u64>,
    pub(super) hex: Vec<u64>,
    /// Bytes that may begin an escape with the next.
    pub(super) escape: Vec<u64>,
    /// Zeros between letters, and bytes that begin a character that may fold.
    pub(super) uncommon: Vec<u64>,
}

impl ClassBits {
    /// All there is of them, in the order of [`BlockMarks::rows`].
    pub(super) fn rows(&mut self) -> [&mut Vec<u64>; 5] {
        [
            &mut self.base64,
            &mut self.starts,
            &mut self.hex,
            &mut self.escape,
            &mut self.uncommon,
        ]
    }
}

/// What the marks of some blocks come to, place by place.
pub(super) struct BlockMarks {
    /// Known before.
    pub(super) escape: [u64; PLACES],
    starts: [u64; PLACES],
    uncommon: [u64; PLACES],
    flags: [u64; PLACES],
}

impl BlockMarks {
    pub(super) const NONE: Self = Self {
        escape: [0; PLACES],
        starts: [0; PLACES],
        uncommon: [0; PLACES],
        flags: [0; PLACES],
    };

    /// Tells of the blocks up to a place of a stride, each before the next. Behind the
    /// block at this place nothing is known, and as much is missing in it as makes
    /// `bytes` no whole blocks.
    pub(super) fn tell(&mut self, marks: &Marks<ASCII, HIGH>, last: usize, bytes: usize) {
        let [.., zero] = &marks.ascii;
        let rare = zero.iter().zip(&marks.high).take(last.saturating_add(1));
        let is_plain = rare.fold(0, |all, (zero, high)| all | zero | high) == 0;
        let may_go_on = (!is_plain).then(|| may_go_on(marks, last, bytes));
        widest(Telling {
            told: self,
            may_go_on: may_go_on.as_ref(),
            marks,
            last,
        });
    }

    /// What is known before of the block at one place is that of another as well.
    pub(super) fn copy(&mut self, from: usize, to: usize) {
        let block = self.escape.get(from).copied().unwrap_or_default();
        if let Some(escape) = self.escape.get_mut(to) {
            *escape = block;
        }
    }

    /// What stands where, in the order of [`ClassBits::rows`].
    pub(super) fn rows<'a>(&'a self, marks: &'a Marks<ASCII, HIGH>) -> [&'a [u64; PLACES]; 5] {
        let [base64, hex, ..] = &marks.ascii;
        [base64, &self.starts, hex, &self.escape, &self.uncommon]
    }

    /// What is flagged in the blocks at some places.
    pub(super) fn flags(&self, places: Range<usize>) -> impl Iterator<Item = u8> {
        let flags = self.flags.get(places).unwrap_or_default();
        flags.iter().map(|flags| {
            let [flags, ..] = flags.to_le_bytes();
            flags
        })
    }
}

/// See [`BlockMarks::tell`]. Behind the end some byte may go on with a character.
struct Telling<'a> {
    told: &'a mut BlockMarks,
    marks: &'a Marks<ASCII, HIGH>,
    /// None where neither zeros nor bytes above 127 stand in any block.
    may_go_on: Option<&'a [u64; PLACES]>,
    last: usize,
}

impl Work for Telling<'_> {
    #[expect(
        clippy::inline_always,
        reason = "compiled for the registers of whoever calls"
    )]
    #[inline(always)]
    fn act(self) {
        let marks = self.marks;
        match self.may_go_on {
            Some(may_go_on) => self.each(|here| uncommon(marks, may_go_on, here)),
            None => self.each(|_| 0),
        }
    }
}

impl Telling<'_> {
    /// Tells of one block after the other, given what is uncommon in each: compiled apart
    /// for blocks in which nothing can be.
    #[expect(
        clippy::inline_always,
        reason = "compiled for the registers of whoever calls"
    )]
    #[expect(clippy::indexing_slicing, reason = "a place of a stride has a next")]
    #[inline(always)]
    fn each(self, uncommon: impl Fn(usize) -> u64) {
        let (told, last) = (self.told, self.last);
        let [base64, hex, ..] = &self.marks.ascii;
        // Whole registers: what is behind the last costs nothing.
        for here in 0..(last + 1).next_multiple_of(4).min(PLACES - 1) {
            let next = here + 1;
            let uncommon = uncommon(here);
            told.uncommon[here] = uncommon;
            let mut flags = 0;
            let base64 = stretches((base64[here], base64[next]), limits::BASE64_SYMBOLS_MIN);
            told.starts[here] = base64.0;
            let base32 = stretches(base64, limits::DIGITS_MIN - limits::BASE64_SYMBOLS_MIN + 1);
            let hex = stretches((hex[here], hex[next]), limits::DIGITS_MIN);
            for (is_so, flag) in [
                (base64.0, flag::BASE64),
                (base32.0, flag::BASE32),
                (hex.0, flag::HEX),
                (told.escape[here], flag::ESCAPE),
                (uncommon, flag::UNCOMMON),
            ] {
                // The highest bit of a number or of what is missing to zero.
                flags |= ((is_so | is_so.wrapping_neg()) >> 63) * u64::from(flag);
            }
            told.flags[here] = flags;
        }
    }
}

/// Zeros between letters in the block at a place, and bytes that begin a character that
/// may fold.
#[expect(
    clippy::inline_always,
    reason = "compiled for the registers of whoever calls"
)]
#[expect(clippy::indexing_slicing, reason = "a place of a stride has a next")]
#[inline(always)]
fn uncommon(marks: &Marks<ASCII, HIGH>, may_go_on: &[u64; PLACES], here: usize) -> u64 {
    let next = here + 1;
    let [.., text, zero] = &marks.ascii;
    let [lead, goes_on] = &marks.others;
    let [text_1, text_3, text_5] = [1, 3, 5].map(|by| after(text[here], text[next], by));
    let zeros = [1, 2, 4].map(|by| after(zero[here], zero[next], by));
    let [zero_1, zero_2, zero_4] = zeros;
    let two = zero[here] & text_1 & zero_2 & text_3 & zero_4 & text_5;
    let four = zero[here] & zero_1 & zero_2 & text_3 & zero_4;
    let lead = lead[here] & after(goes_on[here], goes_on[next], 1);
    let near = broken(
        (marks.high[here], marks.high[next]),
        (goes_on[here], goes_on[next]),
        (may_go_on[here], may_go_on[next]),
    );
    two | four | (lead & !near)
}

/// Which bytes may go on with a character of several bytes: behind the last byte, in the
/// block at this place when so many bytes are there, any may.
fn may_go_on(marks: &Marks<ASCII, HIGH>, place: usize, bytes: usize) -> [u64; PLACES] {
    let [_, goes_on] = &marks.others;
    let mut may = *goes_on;
    let last = bytes.checked_rem(BLOCK_BYTES).unwrap_or_default();
    let missing = if last == 0 { 0 } else { behind(wide(last)) };
    let places = may.iter_mut().skip(place);
    for (may, missing) in places.zip([missing, u64::MAX]) {
        *may |= missing;
    }
    may
}

/// Places of a block behind which something is no UTF-8, as far as that shows in
/// the next bytes: of this block and the next, which bytes are above 127, which go on
/// with a character of several bytes, and which may do so.
#[expect(
    clippy::inline_always,
    reason = "compiled for the registers of whoever calls"
)]
#[inline(always)]
fn broken(
    (high, next_high): (u64, u64),
    (goes_on, next_goes_on): (u64, u64),
    (may, next_may): (u64, u64),
) -> u64 {
    let alone = goes_on & !(high << 1 | 1);
    let cut = high & !goes_on & !after(may, next_may, 1);
    let next_alone = next_goes_on & !after(high, next_high, 63);
    let next_cut = next_high & !next_goes_on & !after(next_may, u64::MAX, 1);
    let (mut near, mut next_near) = (alone | cut, next_alone | next_cut);
    for by in [1, 2, 3] {
        near |= after(near, next_near, by);
        next_near |= next_near >> by;
    }
    near
}

/// The bits of a block and the next that stand so many places on.
#[expect(
    clippy::inline_always,
    reason = "compiled for the registers of whoever calls"
)]
#[inline(always)]
fn after(here: u64, next: u64, by: u32) -> u64 {
    here >> by | next << (u64::BITS - by)
}

/// The bits of so many bytes at the beginning of a block.
pub(super) fn before(bytes: u64) -> u64 {
    let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
    1_u64.checked_shl(bytes).map_or(u64::MAX, |bit| bit - 1)
}

/// The bits of the others.
pub(super) fn behind(bytes: u64) -> u64 {
    !before(bytes)
}

/// A bit for each place of a block and the next from which on so many bits are set, as
/// far as these two tell.
#[expect(
    clippy::inline_always,
    reason = "compiled for the registers of whoever calls"
)]
#[inline(always)]
fn stretches((here, next): (u64, u64), least: usize) -> (u64, u64) {
    let (mut here, mut next, mut have) = (here, next, 1);
    while have < least {
        let more = have.min(least.saturating_sub(have));
        here &= here >> more | next << BLOCK_BYTES.saturating_sub(more);
        next &= next >> more;
        have = have.saturating_add(more);
    }
    (here, next)
}

/// Whether there is a place of a block from which on so many bits are set, of these 64
/// and the next.
pub(super) fn begins(bits: (u64, u64), least: usize) -> bool {
    let (all, _) = stretches(bits, least);
    all != 0
}

/// The first place of a block from which on so many bits are set, of these 64 and
/// the next.
pub(super) fn begin(here: u64, next: u64, least: usize) -> Option<u32> {
    let (all, _) = stretches((here, next), least);
    (all != 0).then(|| all.trailing_zeros())
}
