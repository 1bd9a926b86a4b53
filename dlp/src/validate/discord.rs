//! Tokens of Discord's bots: the first of three parts is base 64 of a snowflake,
//! a decimal number whose upper bits are milliseconds since 2015.

use crate::validate::base64;

/// Milliseconds from 2015 to 2045, to which the upper 42 bits of a snowflake are held.
const MILLISECONDS_MAX: u64 = 30 * 366 * 86_400_000;

/// Whether the first part is one.
pub(crate) fn is(token: &[u8]) -> bool {
    let first = token.split(|byte| *byte == b'.').next().unwrap_or_default();
    let digits = base64::decode(first).and_then(|bytes| String::from_utf8(bytes).ok());
    let snowflake = digits.filter(|digits| (17..=20).contains(&digits.len()));
    let number = snowflake.and_then(|digits| digits.parse::<u64>().ok());
    number.is_some_and(|number| (1..MILLISECONDS_MAX).contains(&(number >> 22)))
}

#[cfg(test)]
mod tests {
    use super::is;
    use crate::validate::base64;

    #[test]
    fn only_a_plausible_snowflake_counts() {
        let check = |digits: &str, expected: bool| {
            let first = base64::encode(digits.as_bytes(), base64::STANDARD);
            let token = [&first[..], b".Cl2FMQ.x"].concat();
            assert_eq!(is(&token), expected, "{digits}");
        };
        // The identifier that the vendor's documentation takes apart.
        check("175928847299117063", true);
        check("123456789012345678", true);
        check("99999999999999999999", false);
        check("18446744073709551615", false);
        check("17592884729911706x", false);
        check("1759288472", false);
        assert!(!is(b""));
    }
}
