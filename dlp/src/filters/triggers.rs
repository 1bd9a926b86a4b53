//! Where in a layer escapes stand. A quick look at every byte, so that text
//! without escapes costs nothing beside it.

use super::Kind;
use super::decode::{self, Token, digit};
use super::{fold, references};
use crate::budget::{narrow, wide};
use crate::layer::View;

/// Bytes looked at together for those that are no text.
const BLOCK_BYTES: usize = 64;

/// Bytes on one side of an escape that must be text: the longer part of the
/// shortest credential that it could stand in.
const TEXT_BYTES: usize = 6;

/// Every escape that begins in `from..to`, in offsets of the layer, kind by kind.
pub(super) fn find(view: &View<'_>, from: u64, to: u64, found: &mut impl FnMut(Kind, u64)) {
    let start = narrow(from.saturating_sub(view.base));
    let length = narrow(to.saturating_sub(from));
    let rest = view.bytes.get(start..).unwrap_or_default();
    let region = rest.get(..length).unwrap_or(rest);
    let mut look = |place: usize| {
        let (before, here) = view
            .bytes
            .split_at_checked(start.saturating_add(place))
            .unwrap_or_default();
        if let Some(kind) = kind(before, here) {
            // The letter before the zero is part of it.
            let back = u64::from(kind == Kind::Wide);
            let at = from.saturating_add(wide(place));
            found(kind, at.saturating_sub(back));
        }
    };
    for place in memchr::memchr3_iter(b'%', b'\\', b'&', region) {
        look(place);
    }
    for place in memchr::memchr_iter(b'=', region) {
        look(place);
    }
    uncommon(region, &mut look);
}

/// Whether an escape begins with the first of `here`.
pub(crate) fn begins(before: &[u8], here: &[u8]) -> bool {
    kind(before, here).is_some()
}

/// Whether an escape may begin with these bytes, which are not all of it.
pub(crate) fn may_begin(bytes: [u8; 4]) -> bool {
    match bytes {
        [0, _, two, _] => two == 0,
        [first, ..] if first >= 0xc2 => fold::is_text(&bytes),
        _ => true,
    }
}

/// The kind of escape that begins with the first of `here`. Among bytes that are
/// no text, none does: it could stand in no credential.
fn kind(before: &[u8], here: &[u8]) -> Option<Kind> {
    let kind = match here.first()? {
        b'%' | b'\\' | b'&' => escape(here)?,
        b'=' if is_quoted(here) => Kind::Quoted,
        0 if is_wide(here) => Kind::Wide,
        0xc2.. if fold::begins(here) => Kind::Fold,
        _ => return None,
    };
    let last = before.len().saturating_sub(TEXT_BYTES);
    let behind = match kind {
        // What was looked at counts for nothing, nor does the escape itself.
        Kind::Fold => 2 * fold::NEAR_BYTES,
        _ => TEXT_BYTES + 2,
    };
    let is_among_text = fold::is_text(here.get(..behind).unwrap_or(here))
        || fold::is_text(before.get(last..).unwrap_or_default());
    is_among_text.then_some(kind)
}

/// The first three bytes of everything that can be found here, as sets: more of
/// them may be given than are found, never less.
pub(crate) fn openings() -> Vec<[Vec<u8>; 3]> {
    let all = |test: fn(&u8) -> bool| (0..=255).filter(test).collect::<Vec<u8>>();
    let (any, digits) = (all(|_| true), all(u8::is_ascii_hexdigit));
    let (graphic, letters) = (all(u8::is_ascii_graphic), all(u8::is_ascii_alphanumeric));
    let capitals = all(|byte| byte.is_ascii_digit() || (b'A'..=b'F').contains(byte));
    let mut openings = vec![
        [b"%".to_vec(), digits.clone(), digits.clone()],
        [
            b"\\".to_vec(),
            b"uUx".to_vec(),
            [digits.as_slice(), b"{"].concat(),
        ],
        [b"\\".to_vec(), b"01234567/".to_vec(), any.clone()],
        [b"&".to_vec(), b"#".to_vec(), b"0123456789xX".to_vec()],
        [b"&".to_vec(), references::initials(), letters],
        [b"=".to_vec(), b"234567".to_vec(), capitals],
        [b"=".to_vec(), b"\n".to_vec(), any.clone()],
        (*b"=\r\n").map(|byte| vec![byte]),
        [vec![0], graphic, vec![0]],
        [vec![0], vec![0], vec![0]],
    ];
    openings.extend(fold::openings().map(|[lead, second]| [lead, second, any.clone()]));
    openings
}

/// The kind of escape that begins here.
fn escape(here: &[u8]) -> Option<Kind> {
    let is_digit = |place: usize| here.get(place).is_some_and(|byte| digit(*byte).is_some());
    match here {
        [b'%', ..] if is_digit(1) && is_digit(2) => Some(Kind::Percent),
        // Ends of lines and quotes are escaped everywhere, and split nothing.
        [b'\\', b'u' | b'U' | b'x' | b'0'..=b'7' | b'/', ..] if is_escape(here) => {
            Some(Kind::Escape)
        }
        [b'&', ..] if references::begins(here) => Some(Kind::Reference),
        _ => None,
    }
}

/// Whether decoding takes it for an escape too: otherwise it would stand in the
/// next layer as it stands here, and so on without end.
fn is_escape(here: &[u8]) -> bool {
    !matches!(decode::escape(here), Token::Plain | Token::More)
}

/// Whether quoted-printable stands here: a character of text, or a line that
/// goes on.
fn is_quoted(here: &[u8]) -> bool {
    match here {
        [_, b'\n', ..] | [_, b'\r', b'\n', ..] => true,
        [_, high @ b'2'..=b'7', low, ..] => {
            (low.is_ascii_digit() || (b'A'..=b'F').contains(low)) && (*high, *low) != (b'7', b'F')
        }
        _ => false,
    }
}

/// Whether text with a zero after (or before) each letter begins with this zero.
fn is_wide(here: &[u8]) -> bool {
    match here {
        [_, one, 0, two, ..] if *one != 0 => one.is_ascii_graphic() && two.is_ascii_graphic(),
        [_, 0, 0, one, 0, ..] => one.is_ascii_graphic(),
        _ => false,
    }
}

/// Every zero, and every byte that begins a character that may fold.
///
/// Written without branches for each byte, so that the compiler takes many at
/// once: compressed bytes have something of this kind in every line.
fn uncommon(region: &[u8], found: &mut impl FnMut(usize)) {
    let mut start = 0_usize;
    while let Some(rest) = region.get(start..).filter(|rest| !rest.is_empty()) {
        let mut block = [b' '; BLOCK_BYTES];
        let mut next = [0x80_u8; BLOCK_BYTES];
        if let Some(all) = rest.first_chunk::<BLOCK_BYTES>()
            && is_plain(all)
        {
            start = start.saturating_add(BLOCK_BYTES);
            continue;
        }
        // Behind the region anything may stand: it is looked at closely later.
        let length = rest.len().min(BLOCK_BYTES);
        copy(&mut block, rest);
        copy(&mut next, rest.get(1..).unwrap_or_default());
        let mut marks = [0_u8; BLOCK_BYTES];
        for ((mark, byte), next) in marks.iter_mut().zip(block).zip(next) {
            let goes_on = u8::from(next & 0xc0 == 0x80);
            *mark = u8::from(byte == 0) | (u8::from(is_lead(byte)) & goes_on);
        }
        for (count, eight) in marks.as_chunks::<8>().0.iter().enumerate() {
            // Nor is there text among zeros alone.
            let zeros = u64::from_le_bytes([1; 8]);
            let bytes = block.as_chunks::<8>().0.get(count);
            if u64::from_le_bytes(*eight) == 0
                || (u64::from_le_bytes(*eight) == zeros && bytes == Some(&[0; 8]))
            {
                continue;
            }
            for (place, _) in eight.iter().enumerate().filter(|(_, mark)| **mark != 0) {
                let place = start.saturating_add(count * 8).saturating_add(place);
                // Most characters fold to nothing else.
                let pair = region.get(place..).and_then(<[u8]>::first_chunk);
                if pair
                    .is_none_or(|pair: &[u8; 2]| pair.starts_with(&[0]) || fold::may_begin(*pair))
                {
                    found(place);
                }
            }
        }
        start = start.saturating_add(length);
    }
}

/// Whether these bytes are letters of ASCII, as most are.
fn is_plain(block: &[u8; BLOCK_BYTES]) -> bool {
    let most = |most: u8, byte: &u8| most.max(byte.wrapping_sub(1));
    block.iter().fold(0, most) < 0x7f
}

/// As many bytes as there are.
fn copy(block: &mut [u8; BLOCK_BYTES], bytes: &[u8]) {
    if let Some(all) = bytes.first_chunk::<BLOCK_BYTES>() {
        *block = *all;
    } else if let Some(space) = block.get_mut(..bytes.len()) {
        space.copy_from_slice(bytes);
    }
}

/// Whether a character that folds can begin with this byte. Ranges only, and
/// without those of Latin letters and of most of East Asia.
#[expect(
    clippy::needless_bitwise_bool,
    reason = "branches would keep the compiler from taking many bytes at once"
)]
pub(super) fn is_lead(byte: u8) -> bool {
    (byte == 0xc2)
        | (0xc4..=0xd8).contains(&byte)
        | (0xe1..=0xe3).contains(&byte)
        | (byte == 0xef)
        | (byte == 0xf0)
        | (byte == 0xf3)
}
