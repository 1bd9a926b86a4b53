//! Whether bytes may begin with a meta-block of Brotli (RFC 7932 9): its header has
//! prefix codes that are whole only where somebody made them, and a decompressor takes too
//! long to begin to be asked each time. Reads a few KiB at most, and keeps a few.

use std::ops::Range;

use super::prefix::{BitReader, Code, LENGTH_MAX, PrefixEnd, Read, SYMBOLS_MAX};

/// Lengths and bits of the code for the lengths of the code of lengths, by the next four
/// bits (RFC 7932 3.5).
const LENGTHS: [(u8, u32); 16] = [
    (0, 2),
    (4, 2),
    (3, 2),
    (2, 3),
    (0, 2),
    (4, 2),
    (3, 2),
    (1, 4),
    (0, 2),
    (4, 2),
    (3, 2),
    (2, 3),
    (0, 2),
    (4, 2),
    (3, 2),
    (5, 4),
];

/// The order in which they stand there.
const ORDER: [usize; 18] = [1, 2, 3, 4, 0, 5, 17, 6, 16, 7, 8, 9, 10, 11, 12, 13, 14, 15];

/// Bits of the numbers behind the codes of lengths of blocks (RFC 7932 6).
const BLOCK_BITS: [u32; 26] = [
    2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 6, 6, 7, 8, 9, 10, 11, 12, 13, 24,
];

/// A prefix code for so many symbols (RFC 7932 3.4, 3.5).
fn code(bits: &mut BitReader<'_>, alphabet: u32) -> Read<Code> {
    match bits.take(2)? {
        1 => simple(bits, alphabet),
        skipped => complex(bits, alphabet, skipped),
    }
}

fn simple(bits: &mut BitReader<'_>, alphabet: u32) -> Read<Code> {
    let count = usize::try_from(bits.take(2)?.saturating_add(1)).unwrap_or_default();
    let width = 32_u32.saturating_sub(alphabet.saturating_sub(1).leading_zeros());
    let (mut symbols, mut lengths) = ([0_u32; 4], [0_u8; SYMBOLS_MAX]);
    let symbols = symbols.get_mut(..count).unwrap_or_default();
    for place in symbols.iter_mut() {
        *place = bits.take(width)?;
    }
    let own: &[u8] = match count {
        1 => &[0],
        2 => &[1, 1],
        3 => &[1, 2, 2],
        _ if bits.bit()? == 0 => &[2, 2, 2, 2],
        _ => &[1, 2, 3, 3],
    };
    for (symbol, own) in symbols.iter().zip(own) {
        let known = usize::try_from(*symbol).unwrap_or(usize::MAX);
        let known = lengths.get_mut(known).ok_or(PrefixEnd::Wrong)?;
        // None twice.
        (*symbol < alphabet && *known == 0)
            .then_some(())
            .ok_or(PrefixEnd::Wrong)?;
        *known = *own;
    }
    match symbols {
        [symbol] => Ok(Code::single(*symbol)),
        _ => Ok(Code::of(&lengths)),
    }
}

fn complex(bits: &mut BitReader<'_>, alphabet: u32, skipped: u32) -> Read<Code> {
    let of_lengths = code_of_lengths(bits, skipped)?;
    let mut lengths = [0_u8; SYMBOLS_MAX];
    let (mut symbol, mut space, mut before) = (0_u32, 1_u32 << LENGTH_MAX, 8_u8);
    let (mut repeat, mut repeated) = (0_u32, 0_u32);
    while symbol < alphabet && space > 0 {
        let next = of_lengths.next(bits)?;
        let length = u8::try_from(next).unwrap_or_default();
        let (length, count) = if next < 16 {
            repeat = 0;
            if next > 0 {
                before = length;
            }
            (length, 1)
        } else {
            let (extra, length) = if next == 16 { (2, before) } else { (3, 0) };
            if repeated != next {
                repeat = 0;
            }
            repeated = next;
            let known = repeat;
            repeat = repeat.saturating_sub(2) << if known > 0 { extra } else { 0 };
            repeat = repeat.saturating_add(bits.take(extra)?).saturating_add(3);
            (repeat <= alphabet).then_some(()).ok_or(PrefixEnd::Wrong)?;
            (length, repeat.saturating_sub(known))
        };
        (count <= alphabet.saturating_sub(symbol))
            .then_some(())
            .ok_or(PrefixEnd::Wrong)?;
        let behind = symbol.saturating_add(count);
        if length > 0 {
            let taken = count << LENGTH_MAX.saturating_sub(usize::from(length));
            space = space.checked_sub(taken).ok_or(PrefixEnd::Wrong)?;
            let all = places(symbol, behind);
            lengths.get_mut(all).ok_or(PrefixEnd::Wrong)?.fill(length);
        }
        symbol = behind;
    }
    (space == 0).then_some(()).ok_or(PrefixEnd::Wrong)?;
    Ok(Code::of(&lengths))
}

/// These symbols as places.
fn places(from: u32, to: u32) -> Range<usize> {
    let place = |symbol| usize::try_from(symbol).unwrap_or(usize::MAX);
    place(from)..place(to)
}

fn code_of_lengths(bits: &mut BitReader<'_>, skipped: u32) -> Read<Code> {
    let mut lengths = [0_u8; ORDER.len()];
    let (mut space, mut used, mut last) = (32_u32, 0_usize, 0_usize);
    let skipped = usize::try_from(skipped).unwrap_or_default();
    for symbol in ORDER.into_iter().skip(skipped) {
        // Of a code that ends before four bits the others do not matter.
        let four = usize::try_from(bits.peek() & 15).unwrap_or_default();
        let (length, width) = LENGTHS.get(four).copied().ok_or(PrefixEnd::Wrong)?;
        bits.skip(width)?;
        if length > 0 {
            *lengths.get_mut(symbol).ok_or(PrefixEnd::Wrong)? = length;
            (used, last) = (used.saturating_add(1), symbol);
            space = space.checked_sub(32 >> length).ok_or(PrefixEnd::Wrong)?;
            if space == 0 {
                break;
            }
        }
    }
    if used == 1 {
        return Ok(Code::single(u32::try_from(last).unwrap_or_default()));
    }
    (space == 0).then_some(()).ok_or(PrefixEnd::Wrong)?;
    Ok(Code::of(&lengths))
}

/// A number of kinds or of codes, from 1 to 256.
fn count(bits: &mut BitReader<'_>) -> Read<u32> {
    if bits.bit()? == 0 {
        return Ok(1);
    }
    let extra = bits.take(3)?;
    let base = 1_u32 << extra;
    Ok(base.saturating_add(1).saturating_add(bits.take(extra)?))
}

/// A map of `size` contexts to so many codes (RFC 7932 7.3).
fn context_map(bits: &mut BitReader<'_>, size: u32, trees: u32) -> Read<()> {
    let zeros = if bits.bit()? == 1 {
        bits.take(4)?.saturating_add(1)
    } else {
        0
    };
    let code = code(bits, trees.saturating_add(zeros))?;
    let mut at = 0_u32;
    while at < size {
        let symbol = code.next(bits)?;
        let run = if symbol > 0 && symbol <= zeros {
            (1_u32 << symbol).saturating_add(bits.take(symbol)?)
        } else {
            1
        };
        (run <= size.saturating_sub(at))
            .then_some(())
            .ok_or(PrefixEnd::Wrong)?;
        at = at.saturating_add(run);
    }
    bits.bit()?;
    Ok(())
}

/// What a stream begins with.
pub(super) enum Header {
    /// Bytes to be skipped, up to there.
    Skip(usize),
    /// Bytes that stand there as they are.
    Plain(Plain),
    /// Codes.
    Codes,
}

/// Where they stand, in bytes from the beginning of the stream: up to behind what is here.
pub(super) struct Plain {
    pub(super) begin: usize,
    pub(super) end: usize,
}

/// Reads the header of a stream and of its first meta-block.
///
/// # Errors
/// Says why it was not read to its end.
pub(super) fn read(bytes: &[u8]) -> Read<Header> {
    let mut bits = BitReader::of(bytes);
    if bits.bit()? == 1 && bits.take(3)? == 0 {
        // A large window, which few read.
        (bits.take(3)? != 1).then_some(()).ok_or(PrefixEnd::Wrong)?;
    }
    block(&mut bits, WindowKind::Usual)
}

/// Reads the same of a stream with a large window (RFC 9841), but for its codes of distances.
///
/// # Errors
/// Says why it was not read to its end.
pub(super) fn read_large(bytes: &[u8]) -> Read<Header> {
    let mut bits = BitReader::of(bytes);
    bits.take(14)?;
    block(&mut bits, WindowKind::Large)
}

/// How far back a stream may copy from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WindowKind {
    Usual,
    Large,
}

/// Reads the header of a meta-block.
fn block(bits: &mut BitReader<'_>, window: WindowKind) -> Read<Header> {
    let is_last = bits.bit()? == 1;
    // An empty one is of no interest.
    (!is_last || bits.bit()? == 0)
        .then_some(())
        .ok_or(PrefixEnd::Wrong)?;
    let nibbles = bits.take(2)?.saturating_add(4);
    if nibbles == 7 {
        // Something to be skipped.
        (!is_last && bits.bit()? == 0)
            .then_some(())
            .ok_or(PrefixEnd::Wrong)?;
        let bytes = bits.take(2)?;
        let length = bits.take(bytes.saturating_mul(8))?;
        (bytes <= 1 || length >> bytes.saturating_sub(1).saturating_mul(8) != 0)
            .then_some(())
            .ok_or(PrefixEnd::Wrong)?;
        bits.align()?;
        return Ok(Header::Skip(bits.plain(length)));
    }
    let length = bits.take(nibbles.saturating_mul(4))?;
    (nibbles == 4 || length >> nibbles.saturating_sub(1).saturating_mul(4) != 0)
        .then_some(())
        .ok_or(PrefixEnd::Wrong)?;
    if !is_last && bits.bit()? == 1 {
        bits.align()?;
        return Ok(Header::Plain(Plain {
            begin: bits.place(),
            end: bits.plain(length),
        }));
    }
    codes(bits, window)?;
    Ok(Header::Codes)
}

/// Reads the codes of a compressed meta-block (RFC 7932 9.2).
fn codes(bits: &mut BitReader<'_>, window: WindowKind) -> Read<()> {
    let mut kinds = [1_u32; 3];
    for kind in &mut kinds {
        *kind = count(bits)?;
        if *kind > 1 {
            code(bits, kind.saturating_add(2))?;
            let first = code(bits, 26)?.next(bits)?;
            let first = usize::try_from(first).unwrap_or(usize::MAX);
            bits.take(*BLOCK_BITS.get(first).ok_or(PrefixEnd::Wrong)?)?;
        }
    }
    let [literals, commands, distances] = kinds;
    let postfix = bits.take(2)?;
    let direct = bits.take(4)? << postfix;
    for _ in 0..literals {
        bits.take(2)?;
    }
    let trees = count(bits)?;
    if trees > 1 {
        context_map(bits, literals.saturating_mul(64), trees)?;
    }
    let far = count(bits)?;
    if far > 1 {
        context_map(bits, distances.saturating_mul(4), far)?;
    }
    let places = (48_u32 << postfix)
        .saturating_add(direct)
        .saturating_add(16);
    // Of a large window there are more places than codes have room for here, and the others
    // tell enough.
    let far = match window {
        WindowKind::Usual => far,
        WindowKind::Large => 0,
    };
    for (count, alphabet) in [(trees, 256), (commands, 704), (far, places)] {
        for _ in 0..count {
            code(bits, alphabet)?;
        }
    }
    Ok(())
}
