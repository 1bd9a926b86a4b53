//! Long runs of base64: random symbols make the forms with a short literal now and then.

use crate::limits;

/// Whether a place stands in a long run of base64 (RFC 4648 4, 5), which has symbols and
/// signs of one of the alphabets, and ends of lines, also as they are escaped.
pub(crate) fn is_in_run(bytes: &[u8], place: usize) -> bool {
    let (before, behind) = bytes.split_at_checked(place).unwrap_or((bytes, &[]));
    [*b"+/", *b"-_"].into_iter().any(|signs| {
        let mut around = (0_usize, 0_usize);
        count(before.iter().rev(), signs, &mut around);
        count(behind.iter(), signs, &mut around);
        let (symbols, found) = around;
        symbols >= limits::CHANCE_SYMBOLS_MIN && found >= limits::CHANCE_SIGNS_MIN
    })
}

/// Counts the bytes of a run and the signs among them, as far as it matters.
fn count<'a>(
    bytes: impl Iterator<Item = &'a u8>,
    signs: [u8; 2],
    (symbols, found): &mut (usize, usize),
) {
    for byte in bytes.take(2 * limits::CHANCE_SYMBOLS_MIN) {
        let is_sign = signs.contains(byte);
        if !is_sign && !byte.is_ascii_alphanumeric() && !matches!(byte, b'\r' | b'\n' | b'\\') {
            return;
        }
        *symbols = symbols.saturating_add(1);
        *found = found.saturating_add(usize::from(is_sign));
    }
}
