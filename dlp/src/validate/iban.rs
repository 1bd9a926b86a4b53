//! International bank account numbers: the length of the country (ISO 13616)
//! and the two check digits (ISO 7064 MOD 97-10).

/// Countries and the length of their numbers, in characters.
const LENGTHS: [(&[u8; 2], usize); 78] = [
    (b"AD", 24),
    (b"AE", 23),
    (b"AL", 28),
    (b"AT", 20),
    (b"AZ", 28),
    (b"BA", 20),
    (b"BE", 16),
    (b"BG", 22),
    (b"BH", 22),
    (b"BR", 29),
    (b"BY", 28),
    (b"CH", 21),
    (b"CR", 22),
    (b"CY", 28),
    (b"CZ", 24),
    (b"DE", 22),
    (b"DJ", 27),
    (b"DK", 18),
    (b"DO", 28),
    (b"EE", 20),
    (b"EG", 29),
    (b"ES", 24),
    (b"FI", 18),
    (b"FK", 18),
    (b"FO", 18),
    (b"FR", 27),
    (b"GB", 22),
    (b"GE", 22),
    (b"GI", 23),
    (b"GL", 18),
    (b"GR", 27),
    (b"GT", 28),
    (b"HR", 21),
    (b"HU", 28),
    (b"IE", 22),
    (b"IL", 23),
    (b"IQ", 23),
    (b"IS", 26),
    (b"IT", 27),
    (b"JO", 30),
    (b"KW", 30),
    (b"KZ", 20),
    (b"LB", 28),
    (b"LC", 32),
    (b"LI", 21),
    (b"LT", 20),
    (b"LU", 20),
    (b"LV", 21),
    (b"LY", 25),
    (b"MC", 27),
    (b"MD", 24),
    (b"ME", 22),
    (b"MK", 19),
    (b"MN", 20),
    (b"MR", 27),
    (b"MT", 31),
    (b"MU", 30),
    (b"NI", 28),
    (b"NL", 18),
    (b"NO", 15),
    (b"OM", 23),
    (b"PK", 24),
    (b"PL", 28),
    (b"PS", 29),
    (b"PT", 25),
    (b"QA", 29),
    (b"RO", 24),
    (b"RS", 22),
    (b"SA", 24),
    (b"SE", 24),
    (b"SI", 19),
    (b"SK", 24),
    (b"SM", 27),
    (b"TN", 24),
    (b"TR", 26),
    (b"UA", 29),
    (b"VA", 22),
    (b"XK", 20),
];

/// Longest number, in characters.
const CHARACTERS_MAX: usize = 34;

/// Whether a text, with spaces or without, begins with such a number that ends
/// where the text or a group of it ends.
pub(crate) fn is(text: &[u8]) -> bool {
    let Some(country) = text.first_chunk::<2>() else {
        return false;
    };
    let Some((_, length)) = LENGTHS.iter().find(|(known, _)| *known == country) else {
        return false;
    };
    let mut number = Vec::with_capacity(CHARACTERS_MAX);
    let mut rest = text.iter();
    while number.len() < *length {
        match rest.next() {
            Some(b' ') => {}
            Some(byte) => number.push(*byte),
            None => return false,
        }
    }
    let ends = matches!(rest.next(), None | Some(b' '));
    let digits = number.iter().skip(2).take(2).all(u8::is_ascii_digit);
    ends && digits && remainder(&number) == Some(1)
}

/// The remainder of the number by 97, its first four characters moved to the end.
fn remainder(number: &[u8]) -> Option<u32> {
    let (head, body) = number.split_first_chunk::<4>()?;
    let mut remainder = 0u32;
    for byte in body.iter().chain(head) {
        let (factor, value) = match byte {
            b'0'..=b'9' => (10, byte.wrapping_sub(b'0')),
            b'A'..=b'Z' => (100, byte.wrapping_sub(b'A').wrapping_add(10)),
            _ => return None,
        };
        remainder = remainder
            .wrapping_mul(factor)
            .wrapping_add(u32::from(value))
            % 97;
    }
    Some(remainder)
}

#[cfg(test)]
mod tests {
    use super::is;

    #[test]
    fn examples_of_the_register_are_known() {
        for good in [
            "GB29NWBK60161331926819",
            "GB29 NWBK 6016 1331 9268 19",
            "DE89370400440532013000",
            "FR1420041010050500013M02606",
            "NO9386011117947",
            "CH9300762011623852957",
            "NL91ABNA0417164300",
            "NL91 ABNA 0417 1643 00 AND",
            "MT84MALT011000012345MTLCAST001S",
            "BE68539007547034",
            "ES9121000418450200051332",
            "IT60X0542811101000000123456",
            "SE4550000000058398257466",
        ] {
            assert!(is(good.as_bytes()), "{good}");
        }
        for bad in [
            "GB29NWBK60161331926818",
            "GB29NWBK6016133192681",
            "XX29NWBK60161331926819",
            "GB2ANWBK60161331926819",
            "",
            "GB29nwbk60161331926819",
            "DE893704004405320130000",
        ] {
            assert!(!is(bad.as_bytes()), "{bad}");
        }
    }

    #[test]
    fn two_exchanged_digits_are_noticed() {
        let number = *b"DE89370400440532013000";
        for position in 4..number.len() - 1 {
            let mut changed = number;
            changed.swap(position, position + 1);
            assert_eq!(is(&changed), changed == number, "{position}");
        }
    }
}
