//! Sizes and durations as people write them: `4G`, `512M`, `1h30m`.
//!
//! Texts in, numbers out. Must not know which setting they belong to.

use std::time::Duration;

use crate::host::shown;

/// Message and hint of a fault.
pub(crate) type QuantityError = (String, &'static str);

const SIZE_HINT: &str =
    "sizes are written as `512M`, `4G` or `1T`; each letter is 1024 times the one before";
const DURATION_HINT: &str = "durations are written as `90s`, `30m`, `2h`, `1h30m` or `1d`";

/// A size, in bytes; never 0.
///
/// # Errors
/// No number, an unknown unit, 0, or more than 2^64 - 1 bytes.
pub(crate) fn parse_size(text: &str) -> Result<u64, QuantityError> {
    let fault = |message: String| (message, SIZE_HINT);
    let (number, unit) = split_number(text);
    let shift = match unit {
        "" | "B" => 0,
        "K" | "KiB" => 10,
        "M" | "MiB" => 20,
        "G" | "GiB" => 30,
        "T" | "TiB" => 40,
        _ if number.is_empty() => return Err(fault(format!("`{}` is not a size", shown(text)))),
        _ => {
            return Err(fault(format!(
                "`{}` in `{}` is not a unit of size",
                shown(unit),
                shown(text)
            )));
        }
    };
    if number.is_empty() {
        return Err(fault(format!("`{}` is not a size", shown(text))));
    }
    let bytes = number
        .parse::<u64>()
        .ok()
        .and_then(|number| number.checked_mul(1 << shift))
        .ok_or_else(|| fault(format!("the size `{}` is too large", shown(text))))?;
    if bytes == 0 {
        return Err(fault("a size of 0 leaves nothing to work with".to_owned()));
    }
    Ok(bytes)
}

/// A duration of at least one second, of one or more parts in descending units.
///
/// # Errors
/// A part without number or unit, an unknown or repeated unit, 0, or more
/// than 2^64 - 1 seconds.
pub(crate) fn parse_duration(text: &str) -> Result<Duration, QuantityError> {
    let fault = |message: String| (message, DURATION_HINT);
    let mut seconds = 0_u64;
    let mut greater = u64::MAX;
    let mut rest = text;
    if rest.is_empty() {
        return Err(fault("the duration is empty".to_owned()));
    }
    while !rest.is_empty() {
        let (number, after) = split_number(rest);
        let unit_end = after
            .find(|c: char| c.is_ascii_digit())
            .unwrap_or(after.len());
        let (unit, tail) = after.split_at_checked(unit_end).unwrap_or((after, ""));
        let unit_seconds = match unit {
            _ if number.is_empty() => {
                return Err(fault(format!("`{}` is not a duration", shown(text))));
            }
            "s" => 1,
            "m" => 60,
            "h" => 3600,
            "d" => 86_400,
            "" => return Err(fault(format!("the duration `{}` has no unit", shown(text)))),
            _ => {
                return Err(fault(format!(
                    "`{}` in `{}` is not a unit of time",
                    shown(unit),
                    shown(text)
                )));
            }
        };
        if unit_seconds >= greater {
            return Err(fault(format!(
                "the parts of `{}` do not go from long to short",
                shown(text)
            )));
        }
        greater = unit_seconds;
        seconds = number
            .parse::<u64>()
            .ok()
            .and_then(|number| number.checked_mul(unit_seconds))
            .and_then(|part| seconds.checked_add(part))
            .ok_or_else(|| fault(format!("the duration `{}` is too long", shown(text))))?;
        rest = tail;
    }
    if seconds == 0 {
        return Err(fault(
            "a duration of 0 ends the command before it begins".to_owned(),
        ));
    }
    Ok(Duration::from_secs(seconds))
}

fn split_number(text: &str) -> (&str, &str) {
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    text.split_at_checked(end).unwrap_or((text, ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_counted_in_bytes() {
        for (text, bytes) in [
            ("1", 1),
            ("512B", 512),
            ("4K", 4096),
            ("4KiB", 4096),
            ("4G", 4 << 30),
            ("1T", 1 << 40),
            ("16777215T", 16_777_215 << 40),
        ] {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
        for (text, message) in [
            ("", "`` is not a size"),
            ("G", "`G` is not a size"),
            ("0G", "a size of 0 leaves nothing to work with"),
            ("4g", "`g` in `4g` is not a unit of size"),
            ("4 G", "` G` in `4 G` is not a unit of size"),
            ("1.5G", "`.5G` in `1.5G` is not a unit of size"),
            ("-1", "`-1` is not a size"),
            ("16777216T", "the size `16777216T` is too large"),
        ] {
            assert_eq!(parse_size(text).expect_err(text).0, message, "{text}");
        }
    }

    #[test]
    fn durations_are_counted_in_seconds() {
        for (text, seconds) in [
            ("90s", 90),
            ("30m", 1800),
            ("1h30m", 5400),
            ("1d2h3m4s", 93_784),
        ] {
            assert_eq!(
                parse_duration(text),
                Ok(Duration::from_secs(seconds)),
                "{text}"
            );
        }
        for (text, message) in [
            ("", "the duration is empty"),
            ("30", "the duration `30` has no unit"),
            ("m", "`m` is not a duration"),
            ("0s", "a duration of 0 ends the command before it begins"),
            ("30min", "`min` in `30min` is not a unit of time"),
            ("1m1h", "the parts of `1m1h` do not go from long to short"),
            ("1m1m", "the parts of `1m1m` do not go from long to short"),
            ("1h30", "the duration `1h30` has no unit"),
            (
                "99999999999999999999d",
                "the duration `99999999999999999999d` is too long",
            ),
        ] {
            assert_eq!(parse_duration(text).expect_err(text).0, message, "{text}");
        }
    }
}
