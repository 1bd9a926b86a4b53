//! Points in time as texts (RFC 3339), in UTC, and back. Knows no clock of its own.

use std::time::{SystemTime, UNIX_EPOCH};

/// Year, month, day, hour, minute, second, millisecond in UTC.
fn civil(time: SystemTime) -> [u64; 7] {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let seconds = since.as_secs();
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    // Days since 0000-03-01, in eras of 400 years, so that leap days come last.
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 {
        shifted + 3
    } else {
        shifted - 9
    };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let millis = u64::from(since.subsec_millis());
    [
        year,
        month,
        day,
        rest / 3600,
        rest / 60 % 60,
        rest % 60,
        millis,
    ]
}

/// A point in time as the record writes it: RFC 3339 in UTC with milliseconds.
pub fn timestamp(time: SystemTime) -> String {
    let [year, month, day, hour, minute, second, millis] = civil(time);
    let mut text = String::with_capacity(24);
    // Once per record: digit by digit costs a tenth of what formatting does.
    for (number, digits, end) in [
        (year, 4, '-'),
        (month, 2, '-'),
        (day, 2, 'T'),
        (hour, 2, ':'),
        (minute, 2, ':'),
        (second, 2, '.'),
        (millis, 3, 'Z'),
    ] {
        for place in (0..digits).rev() {
            let digit = number / 10_u64.pow(place) % 10;
            text.push(u8::try_from(digit).map_or('0', |digit| char::from(b'0' + digit)));
        }
        text.push(end);
    }
    text
}

/// A point in time as a name of a file: the digits of RFC 3339 without what separates them.
pub fn file_stamp(time: SystemTime) -> String {
    let [year, month, day, hour, minute, second, millis] = civil(time);
    format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}.{millis:03}Z")
}

/// Milliseconds from 1970 on to a time as the record writes it; `None` where it is
/// written in another way.
pub fn milliseconds(text: &str) -> Option<u64> {
    const FORM: &[u8; 24] = b"0000-00-00T00:00:00.000Z";
    let bytes: &[u8; 24] = text.as_bytes().try_into().ok()?;
    let mut parts = [0_u64; 7];
    let mut part = 0;
    for (byte, form) in bytes.iter().zip(FORM) {
        if *form != b'0' {
            part += 1;
            (byte == form).then_some(())?;
            continue;
        }
        let digit = char::from(*byte).to_digit(10)?;
        let slot = parts.get_mut(part)?;
        *slot = *slot * 10 + u64::from(digit);
    }
    let [year, month, day, hour, minute, second, millis] = parts;
    let sound = (1970..=9999).contains(&year)
        && (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && hour < 24
        && minute < 60
        && second < 61;
    sound.then_some(())?;
    // The same way as above, back.
    let year = if month <= 2 { year - 1 } else { year };
    let shifted = (month + 9) % 12;
    let day_of_year = (153 * shifted + 2) / 5 + day - 1;
    let (era, year_of_era) = (year / 400, year % 400);
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    let days = (era * 146_097 + day_of_era).checked_sub(719_468)?;
    Some((((days * 24 + hour) * 60 + minute) * 60 + second) * 1000 + millis)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn times_are_written_as_rfc_3339() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00.007Z"),
            (951_782_400, "2000-02-29T00:00:00.007Z"),
            (4_107_542_399, "2100-02-28T23:59:59.007Z"),
            (1_767_225_599, "2025-12-31T23:59:59.007Z"),
        ] {
            let time = UNIX_EPOCH + Duration::from_secs(seconds) + Duration::from_millis(7);
            assert_eq!(timestamp(time), text);
            assert_eq!(milliseconds(text), Some(seconds * 1000 + 7));
        }
    }

    #[test]
    fn what_is_no_time_is_none() {
        for text in [
            "",
            "2026",
            "2026-11-21T12:00:00Z",
            "2026-11-21 12:00:00.000Z",
            "2026-13-21T12:00:00.000Z",
            "2026-11-21T24:00:00.000Z",
            "1969-12-31T23:59:59.999Z",
            "2026-11-21T12:00:00.00xZ",
            "20261-1-21T12:00:00.000Z",
        ] {
            assert_eq!(milliseconds(text), None, "{text}");
        }
    }
}
