//! Numbers of payment cards: the length and range of an issuer (ISO/IEC 7812)
//! and the check digit of Luhn.

/// Digits of a range, the least and greatest value of them, and the lengths of
/// the numbers that begin so.
type Range = (u32, u32, u32, &'static [usize]);

/// What the networks assign.
const RANGES: [Range; 16] = [
    // Visa.
    (1, 4, 4, &[13, 16, 19]),
    // Mastercard.
    (2, 51, 55, &[16]),
    (4, 2221, 2720, &[16]),
    // American Express.
    (2, 34, 34, &[15]),
    (2, 37, 37, &[15]),
    // Discover.
    (4, 6011, 6011, &[16, 17, 18, 19]),
    (3, 644, 649, &[16, 17, 18, 19]),
    (2, 65, 65, &[16, 17, 18, 19]),
    // Diners Club.
    (3, 300, 305, &[14]),
    (4, 3095, 3095, &[14]),
    (2, 36, 36, &[14]),
    (2, 38, 39, &[14]),
    // JCB.
    (4, 3528, 3589, &[16, 17, 18, 19]),
    // UnionPay.
    (2, 62, 62, &[16, 17, 18, 19]),
    // Maestro.
    (2, 50, 50, &[16]),
    (4, 6304, 6304, &[16, 18, 19]),
];

/// Most digits of a number.
const DIGITS_MAX: usize = 19;

/// Whether a text of digits with spaces or hyphens between them is the number of
/// a card. One digit all the way is none.
pub(crate) fn is(text: &[u8]) -> bool {
    let mut digits: Vec<u32> = Vec::with_capacity(DIGITS_MAX);
    for byte in text {
        match byte {
            b'0'..=b'9' if digits.len() < DIGITS_MAX => {
                digits.push(u32::from(byte.wrapping_sub(b'0')));
            }
            b' ' | b'-' => {}
            _ => return false,
        }
    }
    let varied = digits.iter().any(|digit| Some(digit) != digits.get(1));
    varied && is_assigned(&digits) && luhn(&digits)
}

fn is_assigned(digits: &[u32]) -> bool {
    let begins = |count: u32| -> u32 {
        let count = usize::try_from(count).unwrap_or_default();
        let leading = digits.iter().take(count);
        leading.fold(0, |sum: u32, digit| {
            sum.wrapping_mul(10).wrapping_add(*digit)
        })
    };
    let assigned = |(count, least, greatest, lengths): &Range| {
        let number = begins(*count);
        number >= *least && number <= *greatest && lengths.contains(&digits.len())
    };
    RANGES.iter().any(assigned)
}

fn luhn(digits: &[u32]) -> bool {
    let mut sum = 0u32;
    for (position, digit) in digits.iter().rev().enumerate() {
        let doubled = digit.wrapping_mul(2);
        let value = match (position % 2, doubled) {
            (0, _) => *digit,
            (_, 0..=9) => doubled,
            _ => doubled.wrapping_sub(9),
        };
        sum = sum.wrapping_add(value);
    }
    sum.is_multiple_of(10)
}

/// The digit that makes a number whole.
pub(crate) fn check_digit(digits: &[u8]) -> u8 {
    let mut number: Vec<u32> = digits
        .iter()
        .map(|digit| u32::from(digit.wrapping_sub(b'0')))
        .collect();
    for digit in 0..10u8 {
        number.push(u32::from(digit));
        if luhn(&number) {
            return digit.wrapping_add(b'0');
        }
        number.pop();
    }
    b'0'
}

#[cfg(test)]
mod tests {
    use super::is;

    #[test]
    fn numbers_for_tests_of_each_network_are_known() {
        for good in [
            "4111 1111 1111 1111",
            "4222222222222",
            "5555555555554444",
            "2223003122003222",
            "378282246310005",
            "371449635398431",
            "6011111111111117",
            "30569309025904",
            "38520000023237",
            "3530111333300000",
            "6200000000000005",
            "4111-1111-1111-1111",
        ] {
            assert!(is(good.as_bytes()), "{good}");
        }
        for bad in [
            "4111 1111 1111 1112",
            "411111111111111",
            "9111111111111111",
            "0000000000000000",
            "1234567890123452",
            "4111x111111111111",
            "",
            "55555555555544440",
        ] {
            assert!(!is(bad.as_bytes()), "{bad}");
        }
    }

    #[test]
    fn one_wrong_digit_is_noticed() {
        let number = *b"5555555555554444";
        for position in 2..number.len() {
            let mut changed = number;
            changed[position] = if changed[position] == b'9' {
                b'0'
            } else {
                changed[position] + 1
            };
            assert!(!is(&changed), "{position}");
        }
    }
}
