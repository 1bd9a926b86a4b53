//! Characters that look like a letter of ASCII, and characters that do not
//! show at all. The table holds what fonts draw alike; it errs towards folding,
//! since what was folded is only looked at, never sent.

use crate::span;
use std::sync::OnceLock;

use super::decode::EscapeToken;

/// Where the next character may begin that folds to something else: of the others every
/// byte stays as it is.
pub(crate) fn next(bytes: &[u8]) -> Option<usize> {
    let seconds = seconds();
    let mut place = 0_usize;
    loop {
        let rest = bytes.get(place..)?;
        match rest {
            // The rest of a character that was passed over, or of none.
            [0x80..0xc0, ..] => place = place.saturating_add(1),
            // Begins one that stays.
            [lead @ 0xc0..=0xff, second @ 0x80..0xc0, ..] if !folds(seconds, *lead, *second) => {
                place = place.saturating_add(2);
            }
            // May fold, or is cut off or broken: [`token`] tells.
            [0xc0..=0xff, ..] => return Some(place),
            _ => place = place.saturating_add(first_high(rest)?),
        }
    }
}

/// The first byte above 0x7f.
fn first_high(bytes: &[u8]) -> Option<usize> {
    let (eights, rest) = bytes.as_chunks::<8>();
    for (number, eight) in eights.iter().enumerate() {
        let high = u64::from_le_bytes(*eight) & 0x8080_8080_8080_8080;
        if high != 0 {
            let within = usize::try_from(high.trailing_zeros() / u8::BITS).unwrap_or_default();
            return Some(number.saturating_mul(8).saturating_add(within));
        }
    }
    let place = rest.iter().position(|byte| *byte >= 0x80)?;
    Some(eights.len().saturating_mul(8).saturating_add(place))
}

/// What stands at a byte above 0x7f.
pub(crate) fn token(bytes: &[u8]) -> EscapeToken {
    let (letter, used) = match first(bytes) {
        Ok(found) => found,
        Err(other) => return other,
    };
    match fold(letter) {
        Folded::Nothing => EscapeToken::Nothing(used),
        Folded::Byte(byte) => EscapeToken::Byte(used, byte),
        Folded::Same => EscapeToken::Character(used, u32::from(letter)),
    }
}

/// The first character, and its length in bytes.
fn first(bytes: &[u8]) -> Result<(char, usize), EscapeToken> {
    let length = match bytes.first() {
        Some(0xc2..=0xdf) => 2,
        Some(0xe0..=0xef) => 3,
        Some(0xf0..=0xf4) => 4,
        _ => return Err(EscapeToken::Plain),
    };
    let character = bytes.get(..length).unwrap_or(bytes);
    match std::str::from_utf8(character) {
        Ok(text) => text
            .chars()
            .next()
            .map(|letter| (letter, length))
            .ok_or(EscapeToken::Plain),
        Err(error) if error.error_len().is_none() => Err(EscapeToken::More),
        Err(_) => Err(EscapeToken::Plain),
    }
}

/// Bytes that must be text where a character begins that folds.
pub(crate) const NEAR_BYTES: usize = 8;

/// Whether a character that folds to something else begins here, in the middle
/// of text.
pub(crate) fn begins(bytes: &[u8]) -> bool {
    // Most of what is no text ends here.
    let [lead, second, ..] = bytes else {
        return false;
    };
    if !may_begin([*lead, *second]) {
        return false;
    }
    // Of two bytes all was said.
    let is_told = *lead < 0xe0;
    if !is_told && !first(bytes).is_ok_and(|(letter, _)| !matches!(fold(letter), Folded::Same)) {
        return false;
    }
    let near = bytes.get(..NEAR_BYTES).unwrap_or(bytes);
    match std::str::from_utf8(near) {
        Ok(_) => true,
        Err(error) => error.error_len().is_none(),
    }
}

/// Whether these bytes, cut anywhere, are UTF-8.
pub(crate) fn is_utf8(bytes: &[u8]) -> bool {
    if bytes.is_ascii() {
        return true;
    }
    // A character may have begun before them, and another may end behind.
    let cut = bytes
        .iter()
        .take(3)
        .take_while(|byte| **byte & 0xc0 == 0x80);
    let whole = span::from(bytes, cut.count());
    match std::str::from_utf8(whole) {
        Ok(_) => true,
        Err(error) => error.error_len().is_none(),
    }
}

/// Leads of characters of three and four bytes that fold, and the second bytes of
/// those that do.
const LEADS: [(u8, &[u8]); 6] = [
    (0xe1, &[0x85, 0x9e, 0xa0, 0xaa, 0xab, 0xb7]),
    (0xe2, &[0x80, 0x81, 0x83, 0x84, 0x88, 0x92, 0x93]),
    (0xe3, &[0x85]),
    (0xef, &[0xb8, 0xbb, 0xbc, 0xbd, 0xbe]),
    (0xf0, &[0x9d]),
    (0xf3, &[0xa0]),
];

/// The first two bytes of every character that folds.
pub(crate) fn openings() -> impl Iterator<Item = [Vec<u8>; 2]> {
    let short = (0xc2..=0xdf_u8).filter_map(|lead| {
        let folds = |second: &u8| {
            let text = [lead, *second];
            let letter = first(&text).map(|(letter, _)| fold(letter));
            matches!(letter, Ok(Folded::Nothing | Folded::Byte(_)))
        };
        let seconds: Vec<u8> = (0x80..=0xbf).filter(folds).collect();
        (!seconds.is_empty()).then(|| [vec![lead], seconds])
    });
    let long = LEADS
        .iter()
        .map(|(lead, seconds)| [vec![*lead], seconds.to_vec()]);
    short.chain(long)
}

/// Whether a character that folds may begin with these bytes.
pub(crate) fn may_begin([lead, second]: [u8; 2]) -> bool {
    lead >= 0xc0 && second & 0xc0 == 0x80 && folds(seconds(), lead, second)
}

/// For each byte that begins a character a bit for each byte behind it.
type Seconds = [u64; 64];

/// Those with which a character begins that may fold.
fn seconds() -> &'static Seconds {
    static SECONDS: OnceLock<Seconds> = OnceLock::new();
    SECONDS.get_or_init(|| {
        let mut all = [0; 64];
        for [leads, seconds] in openings() {
            for lead in leads.into_iter().filter(|lead| is_lead(*lead)) {
                if let Some(bits) = all.get_mut(usize::from(lead & 0x3f)) {
                    *bits = seconds
                        .iter()
                        .fold(0, |bits, second| bits | 1 << (second & 0x3f));
                }
            }
        }
        all
    })
}

/// Whether a character that may fold begins with these two.
fn folds(seconds: &Seconds, lead: u8, second: u8) -> bool {
    let bits = seconds.get(usize::from(lead & 0x3f)).copied();
    bits.unwrap_or_default() >> (second & 0x3f) & 1 != 0
}

/// What a character is taken for.
enum Folded {
    Nothing,
    Byte(u8),
    Same,
}

fn fold(letter: char) -> Folded {
    let value = u32::from(letter);
    match letter {
        // Invisible: joiners, marks of direction, selectors, tags.
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
        | '\u{ffa0}' | '\u{e0000}'..='\u{e001f}' | '\u{e007f}'..='\u{e01ef}'
        // Combining: they change the letter before.
        | '\u{300}'..='\u{36f}' | '\u{483}'..='\u{489}' | '\u{1ab0}'..='\u{1aff}'
        | '\u{1dc0}'..='\u{1dff}' | '\u{20d0}'..='\u{20ff}' | '\u{fe20}'..='\u{fe2f}' => Folded::Nothing,
        // Wide forms, and tags that spell ASCII.
        '\u{ff01}'..='\u{ff5e}' => byte(value.wrapping_sub(0xfee0)),
        '\u{e0020}'..='\u{e007e}' => byte(value.wrapping_sub(0xe0000)),
        '\u{1d400}'..='\u{1d6a3}' => letters(value.wrapping_sub(0x1d400)),
        '\u{1d7ce}'..='\u{1d7ff}' => byte(u32::from(b'0').wrapping_add(value.wrapping_sub(0x1d7ce) % 10)),
        '\u{24b6}'..='\u{24cf}' => byte(u32::from(b'A').wrapping_add(value.wrapping_sub(0x24b6))),
        '\u{24d0}'..='\u{24e9}' => byte(u32::from(b'a').wrapping_add(value.wrapping_sub(0x24d0))),
        _ => match alike(letter) {
            Some(byte) => Folded::Byte(byte),
            None => Folded::Same,
        },
    }
}

/// What a letter of another script looks like.
fn alike(letter: char) -> Option<u8> {
    /// Letters of two bytes: whole texts are made of them.
    const NEAR: usize = 0x800;
    static TABLE: OnceLock<Box<[u8; NEAR]>> = OnceLock::new();
    let near = usize::try_from(u32::from(letter)).unwrap_or(NEAR);
    if near >= NEAR {
        let place = ALIKE.binary_search_by_key(&letter, |(known, _)| *known);
        return ALIKE.get(place.ok()?).map(|(_, byte)| *byte);
    }
    let table = TABLE.get_or_init(|| {
        let mut table = Box::new([0; NEAR]);
        for (letter, byte) in ALIKE {
            let place = usize::try_from(u32::from(*letter)).unwrap_or(NEAR);
            if let Some(alike) = table.get_mut(place) {
                *alike = *byte;
            }
        }
        table
    });
    table.get(near).copied().filter(|byte| *byte != 0)
}

/// Alphabets of mathematics: capitals, then small letters, over and over.
fn letters(place: u32) -> Folded {
    let within = place % 52;
    if within < 26 {
        byte(u32::from(b'A').wrapping_add(within))
    } else {
        byte(u32::from(b'a').wrapping_add(within.wrapping_sub(26)))
    }
}

fn byte(value: u32) -> Folded {
    u8::try_from(value).map_or(Folded::Same, Folded::Byte)
}

/// Look-alikes of other scripts, in order.
const ALIKE: &[(char, u8)] = &[
    ('\u{131}', b'i'),
    ('\u{17f}', b's'),
    ('\u{1c3}', b'!'),
    ('\u{237}', b'j'),
    ('\u{251}', b'a'),
    ('\u{261}', b'g'),
    ('\u{269}', b'i'),
    ('\u{26f}', b'w'),
    ('\u{28b}', b'u'),
    ('\u{28f}', b'Y'),
    ('\u{2d0}', b':'),
    ('\u{37f}', b'J'),
    ('\u{391}', b'A'),
    ('\u{392}', b'B'),
    ('\u{395}', b'E'),
    ('\u{396}', b'Z'),
    ('\u{397}', b'H'),
    ('\u{399}', b'I'),
    ('\u{39a}', b'K'),
    ('\u{39c}', b'M'),
    ('\u{39d}', b'N'),
    ('\u{39f}', b'O'),
    ('\u{3a1}', b'P'),
    ('\u{3a4}', b'T'),
    ('\u{3a5}', b'Y'),
    ('\u{3a7}', b'X'),
    ('\u{3b1}', b'a'),
    ('\u{3b3}', b'y'),
    ('\u{3b9}', b'i'),
    ('\u{3ba}', b'k'),
    ('\u{3bd}', b'v'),
    ('\u{3bf}', b'o'),
    ('\u{3c1}', b'p'),
    ('\u{3c3}', b'o'),
    ('\u{3c5}', b'u'),
    ('\u{3f2}', b'c'),
    ('\u{3f3}', b'j'),
    ('\u{3f9}', b'C'),
    ('\u{405}', b'S'),
    ('\u{406}', b'I'),
    ('\u{408}', b'J'),
    ('\u{410}', b'A'),
    ('\u{412}', b'B'),
    ('\u{415}', b'E'),
    ('\u{417}', b'3'),
    ('\u{41a}', b'K'),
    ('\u{41c}', b'M'),
    ('\u{41d}', b'H'),
    ('\u{41e}', b'O'),
    ('\u{420}', b'P'),
    ('\u{421}', b'C'),
    ('\u{422}', b'T'),
    ('\u{423}', b'Y'),
    ('\u{425}', b'X'),
    ('\u{42c}', b'b'),
    ('\u{430}', b'a'),
    ('\u{433}', b'r'),
    ('\u{435}', b'e'),
    ('\u{43a}', b'k'),
    ('\u{43e}', b'o'),
    ('\u{440}', b'p'),
    ('\u{441}', b'c'),
    ('\u{443}', b'y'),
    ('\u{445}', b'x'),
    ('\u{455}', b's'),
    ('\u{456}', b'i'),
    ('\u{458}', b'j'),
    ('\u{461}', b'w'),
    ('\u{475}', b'v'),
    ('\u{4ae}', b'Y'),
    ('\u{4bb}', b'h'),
    ('\u{4c0}', b'I'),
    ('\u{4cf}', b'l'),
    ('\u{501}', b'd'),
    ('\u{51a}', b'Q'),
    ('\u{51b}', b'q'),
    ('\u{51c}', b'W'),
    ('\u{51d}', b'w'),
    ('\u{54d}', b'U'),
    ('\u{54f}', b'S'),
    ('\u{555}', b'O'),
    ('\u{561}', b'w'),
    ('\u{563}', b'q'),
    ('\u{566}', b'q'),
    ('\u{570}', b'h'),
    ('\u{578}', b'n'),
    ('\u{57c}', b'n'),
    ('\u{57d}', b'u'),
    ('\u{581}', b'g'),
    ('\u{584}', b'f'),
    ('\u{585}', b'o'),
    ('\u{5c0}', b'l'),
    ('\u{2010}', b'-'),
    ('\u{2011}', b'-'),
    ('\u{2012}', b'-'),
    ('\u{2013}', b'-'),
    ('\u{2014}', b'-'),
    ('\u{2024}', b'.'),
    ('\u{203f}', b'_'),
    ('\u{2044}', b'/'),
    ('\u{2102}', b'C'),
    ('\u{210a}', b'g'),
    ('\u{210b}', b'H'),
    ('\u{2113}', b'l'),
    ('\u{2115}', b'N'),
    ('\u{2119}', b'P'),
    ('\u{211a}', b'Q'),
    ('\u{211b}', b'R'),
    ('\u{211d}', b'R'),
    ('\u{2124}', b'Z'),
    ('\u{212a}', b'K'),
    ('\u{212c}', b'B'),
    ('\u{2130}', b'E'),
    ('\u{2131}', b'F'),
    ('\u{2212}', b'-'),
];

/// Whether a character that folds can begin with this byte. Ranges only, and
/// without those of Latin letters and of most of East Asia.
pub(crate) fn is_lead(byte: u8) -> bool {
    matches!(byte, 0xc2 | 0xc4..=0xd8 | 0xe1..=0xe3 | 0xef | 0xf0 | 0xf3)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_table_is_in_order() {
        assert!(ALIKE.windows(2).all(|pair| pair[0].0 < pair[1].0));
    }

    #[test]
    fn every_character_that_folds_has_a_lead_that_is_known() {
        let mut leads = vec![Vec::new(); 256];
        for [lead, seconds] in openings() {
            leads[usize::from(lead[0])].clone_from(&seconds);
        }
        for letter in '\u{80}'..='\u{10ffff}' {
            let mut space = [0; 4];
            let bytes = letter.encode_utf8(&mut space).as_bytes();
            let folds = !matches!(fold(letter), Folded::Same);
            assert!(!folds || begins(bytes), "{letter:?}");
            let opens = leads[usize::from(bytes[0])].contains(&bytes[1]);
            assert!(!folds || opens, "{letter:?}");
            assert_eq!(may_begin([bytes[0], bytes[1]]), opens, "{letter:?}");
            assert_eq!(next(bytes), opens.then_some(0), "{letter:?}");
        }
    }

    proptest! {
        #[test]
        fn what_is_passed_over_stays_as_it_is(
            pieces in proptest::collection::vec(
                prop_oneof![
                    any::<char>().prop_map(|letter| letter.to_string().into_bytes()),
                    "[a-z]{0,20}".prop_map(String::into_bytes),
                    "[à-ÿа-яあ-ん]{1,9}".prop_map(String::into_bytes),
                    proptest::collection::vec(any::<u8>(), 0..3),
                ],
                0..12,
            ),
        ) {
            let bytes = pieces.concat();
            let passed = next(&bytes).unwrap_or(bytes.len());
            let mut place = 0;
            while place < passed {
                place += match token(&bytes[place..]) {
                    _ if bytes[place].is_ascii() => 1,
                    EscapeToken::Character(used, _) => used,
                    EscapeToken::Plain | EscapeToken::More => 1,
                    EscapeToken::Byte(..) | EscapeToken::Nothing(_) => {
                        return Err(TestCaseError::fail(format!("{place} of {bytes:?}")));
                    }
                };
            }
        }
    }

    #[test]
    fn only_text_begins_what_folds() {
        assert!(begins("\u{200b}ghp".as_bytes()));
        assert!(begins("\u{440}".as_bytes()));
        assert!(!begins("é and so on".as_bytes()));
        assert!(!begins(b"\xd0\xb0\xff\xff\xff\xff\xff\xff"));
    }
}
