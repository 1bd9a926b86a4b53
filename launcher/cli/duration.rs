//! Times as people write them.

/// Longest time, in seconds: a month.
const SECONDS_MAX: u32 = 30 * 86400;

/// A time as people write it.
pub(crate) fn seconds(text: &str) -> Result<u32, String> {
    let wrong = || "write a number and s, m, h or d, as 10m; at most 30d".to_owned();
    let unit = text.chars().next_back().ok_or_else(wrong)?;
    let factor = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3600,
        'd' => 86400,
        _ => return Err(wrong()),
    };
    let number = text.strip_suffix(unit).unwrap_or_default();
    let number: u32 = number.parse().map_err(|_| wrong())?;
    let seconds = number.checked_mul(factor);
    let seconds = seconds.filter(|seconds| (1..=SECONDS_MAX).contains(seconds));
    seconds.ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_in_units_and_within_bounds() {
        for (text, read) in [
            ("90s", Some(90)),
            ("10m", Some(600)),
            ("2h", Some(7200)),
            ("30d", Some(SECONDS_MAX)),
            ("31d", None),
            ("0m", None),
            ("10", None),
            ("m", None),
            ("-1m", None),
            ("99999999999d", None),
            ("1\u{fc}", None),
            ("", None),
        ] {
            assert_eq!(seconds(text).ok(), read, "{text}");
        }
    }
}
