//! Points in time as texts (RFC 3339), in UTC, and back. Knows no clock of its own.

use std::time::{SystemTime, UNIX_EPOCH};

use time::{Date, Month, OffsetDateTime};

/// Year, month, day, hour, minute, second, millisecond in UTC.
fn civil(time: SystemTime) -> [u64; 7] {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let seconds = i64::try_from(since.as_secs()).unwrap_or_default();
    let at = OffsetDateTime::from_unix_timestamp(seconds);
    let at = at.unwrap_or(OffsetDateTime::UNIX_EPOCH);
    [
        u64::try_from(at.year()).unwrap_or_default(),
        u8::from(at.month()).into(),
        at.day().into(),
        at.hour().into(),
        at.minute().into(),
        at.second().into(),
        since.subsec_millis().into(),
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
    // A second that was inserted has the number 60.
    (hour < 24 && minute < 60 && second < 61).then_some(())?;
    let month = Month::try_from(u8::try_from(month).ok()?).ok()?;
    let date = Date::from_calendar_date(i32::try_from(year).ok()?, month, u8::try_from(day).ok()?);
    let midnight = date.ok()?.midnight().assume_utc().unix_timestamp();
    let midnight = u64::try_from(midnight).ok()?;
    Some((midnight + (hour * 60 + minute) * 60 + second) * 1000 + millis)
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
    fn an_inserted_second_is_a_time() {
        let (last, inserted) = ("2016-12-31T23:59:59.000Z", "2016-12-31T23:59:60.000Z");
        let millis = milliseconds(last).map(|millis| millis + 1000);
        assert_eq!(milliseconds(inserted), millis);
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
            "2026-02-29T12:00:00.000Z",
            "2026-02-28T12:00:61.000Z",
            "2026-11-21T12:00:00.00xZ",
            "20261-1-21T12:00:00.000Z",
        ] {
            assert_eq!(milliseconds(text), None, "{text}");
        }
    }
}
