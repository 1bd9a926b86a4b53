//! Records as lines for people: time, verdict, program, what, why. Whatever
//! comes from a record is made printable here; as JSON a record stays as it is.

use std::fmt::Write as _;

use outgate_policy::printable;

use super::Record;
use outgate_record::{Alarm, Outcome};

/// Whether lines are coloured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Paint {
    Colours,
    Plain,
}

impl Paint {
    fn with(self, code: &str, text: &str) -> String {
        match self {
            Self::Colours => format!("\x1b[{code}m{text}\x1b[0m"),
            Self::Plain => text.to_owned(),
        }
    }
}

/// One record in one line.
pub(crate) fn line(record: &Record, paint: Paint) -> String {
    let time = paint.with("2", &printable(clock(&record.time)));
    let (word, code) = match (record.alarm, record.verdict) {
        (Alarm::Raised, _) => ("ALARM", "1;97;41"),
        (Alarm::None, _) if record.is_monitored() => ("monit", "1;33"),
        (Alarm::None, Outcome::Deny) => ("deny ", "1;31"),
        (Alarm::None, Outcome::Allow) => ("allow", "32"),
        (Alarm::None, Outcome::Note) => ("note ", "2"),
    };
    let mut text = format!("{time}  {}  ", paint.with(code, word));
    let program = printable(record.program());
    let what = printable(&record.subject());
    if program.is_empty() {
        text.push_str(&what);
    } else {
        text.push_str(&paint.with("1", &program));
        text.push_str(": ");
        text.push_str(&what);
    }
    let why = why(record);
    if !why.is_empty() {
        text.push_str(&paint.with("2", &format!("  ({})", printable(&why))));
    }
    text
}

/// Why, or how much: what stands behind a record in brackets.
fn why(record: &Record) -> String {
    let mut parts = Vec::new();
    if !record.detail().is_empty() {
        parts.push(record.detail().to_owned());
    }
    if let Some(rule) = &record.rule {
        parts.push(format!("`{}` {}", rule.text, rule.place));
    }
    if !record.pin().is_empty() {
        parts.push(record.pin().to_owned());
    }
    if let Some(traffic) = record.traffic() {
        parts.push(format!(
            "sent {}, received {}, {} ms",
            size(traffic.up),
            size(traffic.down),
            traffic.millis
        ));
    }
    if record.lost() > 0 {
        parts.push(format!("{} records before it are lost", record.lost()));
    }
    parts.join("; ")
}

/// The time of day; the day is that of the record.
fn clock(time: &str) -> &str {
    let day_and_time = time.strip_suffix('Z').unwrap_or(time);
    day_and_time
        .split_once('T')
        .map_or(day_and_time, |(_, time)| time)
}

/// A record as it is, for a terminal: JSON may write every character as ASCII.
pub(crate) fn json(line: &str) -> String {
    let mut text = String::with_capacity(line.len());
    for character in line.chars() {
        if character.is_ascii() && !character.is_ascii_control() {
            text.push(character);
            continue;
        }
        let mut units = [0; 2];
        for unit in character.encode_utf16(&mut units) {
            // Writing into a text cannot fail.
            write!(text, "\\u{unit:04x}").ok();
        }
    }
    text
}

/// Bytes as people write them.
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["kB", "MB", "GB", "TB", "PB", "EB"];
    if bytes < 1000 {
        return format!("{bytes} B");
    }
    // In tenths, so that no digit is lost before the last.
    let mut tenths = bytes.saturating_add(50) / 100;
    let mut unit = 0;
    while tenths >= 10_000 && unit + 1 < UNITS.len() {
        tenths = tenths.saturating_add(500) / 1000;
        unit += 1;
    }
    let name = UNITS.get(unit).copied().unwrap_or("B");
    if tenths >= 1000 {
        format!("{} {name}", tenths / 10)
    } else {
        format!("{}.{} {name}", tenths / 10, tenths % 10)
    }
}

#[cfg(test)]
mod tests {
    use outgate_record::Kind;

    use super::*;

    #[test]
    fn sizes_are_short_and_right() {
        for (bytes, text) in [
            (0, "0 B"),
            (999, "999 B"),
            (1000, "1.0 kB"),
            (12_345, "12.3 kB"),
            (999_999, "1.0 MB"),
            (1_000_000, "1.0 MB"),
            (123_456_789, "123 MB"),
            (u64::MAX, "18.4 EB"),
        ] {
            assert_eq!(size(bytes), text);
        }
    }

    #[test]
    fn nothing_of_a_record_reaches_a_terminal_as_it_is() {
        let record = Record {
            kind: Kind::Request.into(),
            method: Some("GET\u{1b}[2J".into()),
            target: "http://a\u{202e}b".into(),
            detail: Some("x\ny\u{9b}".into()),
            executable: Some("/tmp/\u{7}evil".into()),
            time: "\u{1b}T\u{1b}".into(),
            ..Record::default()
        };
        let text = line(&record, Paint::Plain);
        let plain = |c: char| c == ' ' || c.is_ascii_graphic();
        assert!(text.chars().all(plain), "{text:?}");
        assert_eq!(
            json("{\"a\":\"ä\u{1f600}\u{9b}\"}"),
            r#"{"a":"\u00e4\ud83d\ude00\u009b"}"#
        );
    }
}
