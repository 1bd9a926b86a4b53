//! `--audit-rotate` and what goes with it: when a record goes on in another file, and which
//! files stay. Options in, values out.

use std::path::Path;

use clap::Args;
use outgate_launcher::RecordRotation;

use crate::duration;

/// Bytes of a file at least: less is not worth one.
const BYTES_MIN: u64 = 64 * 1024;
/// Files that stay at least: the one that is written, and the one before.
const FILES_MIN: u64 = 2;
/// Seconds of a day.
const DAY_SECONDS: u64 = 86_400;
/// Days that files stay at most, when days are given.
const DAYS_MAX: u64 = 36_500;

/// How the files of a record follow one another.
#[derive(Debug, Default, Clone, Args)]
pub(crate) struct RotationOptions {
    /// --audit names a directory: go on in the next file after this size or time (100M, 1d), and
    /// compress the one before
    #[arg(
        long = "audit-rotate",
        value_name = "SIZE|TIME",
        requires = "audit",
        value_parser = when
    )]
    pub(crate) rotate: Vec<When>,
    /// Keep that many files of records in the directory, and remove the oldest
    #[arg(
        long = "audit-keep",
        value_name = "COUNT",
        requires = "rotate",
        value_parser = clap::value_parser!(u64).range(FILES_MIN..)
    )]
    pub(crate) keep: Option<u64>,
    /// Remove files of records after that many days
    #[arg(
        long = "audit-keep-days",
        value_name = "DAYS",
        requires = "rotate",
        value_parser = clap::value_parser!(u64).range(1..=DAYS_MAX)
    )]
    pub(crate) keep_days: Option<u64>,
}

/// When a file is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum When {
    Bytes(u64),
    Seconds(u32),
}

/// A size in large letters, or a time in small ones.
fn when(text: &str) -> Result<When, String> {
    let wrong =
        || "write a size as 64M or 1G, 64K at least, or a time as 90m, 12h or 1d".to_owned();
    let shift = match text.chars().next_back() {
        Some('K') => 10,
        Some('M') => 20,
        Some('G') => 30,
        Some(_) => {
            return duration::seconds(text)
                .map(When::Seconds)
                .map_err(|_| wrong());
        }
        None => return Err(wrong()),
    };
    let digits = text.trim_end_matches(['K', 'M', 'G']);
    let is_plain = digits.len().saturating_add(1) == text.len();
    let number: Option<u64> = digits.parse().ok().filter(|_| is_plain);
    let bytes = number.and_then(|number| number.checked_mul(1 << shift));
    let bytes = bytes.filter(|bytes| *bytes >= BYTES_MIN);
    bytes.map(When::Bytes).ok_or_else(wrong)
}

impl RotationOptions {
    /// As the gateway is told; nothing where records are not rotated.
    ///
    /// # Errors
    /// A sentence: the place is a file.
    pub(crate) fn rotation(&self, audit: Option<&Path>) -> Result<Option<RecordRotation>, String> {
        if self.rotate.is_empty() {
            return Ok(None);
        }
        if let Some(place) = audit.filter(|place| place.exists() && !place.is_dir()) {
            return Err(format!(
                "`{}` is a file, and records that are rotated have a directory of their own: name \
                 one, it is made where there is none",
                place.display()
            ));
        }
        let mut rotation = RecordRotation::NEVER;
        for when in &self.rotate {
            match when {
                When::Bytes(bytes) => rotation.bytes = rotation.bytes.min(*bytes),
                When::Seconds(seconds) => {
                    rotation.seconds = rotation.seconds.min(u64::from(*seconds));
                }
            }
        }
        rotation.files = self.keep.unwrap_or(u64::MAX);
        let stay = self.keep_days.map(|days| days.saturating_mul(DAY_SECONDS));
        rotation.stay_seconds = stay.unwrap_or(u64::MAX);
        Ok(Some(rotation))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_large_letters_and_times_small_ones() {
        for (text, read) in [
            ("64K", Some(When::Bytes(64 << 10))),
            ("100M", Some(When::Bytes(100 << 20))),
            ("1G", Some(When::Bytes(1 << 30))),
            ("90m", Some(When::Seconds(5400))),
            ("1d", Some(When::Seconds(86_400))),
            ("63K", None),
            ("1MM", None),
            ("M", None),
            ("100", None),
            ("-1M", None),
            ("99999999999999G", None),
            ("0d", None),
            ("", None),
        ] {
            assert_eq!(when(text).ok(), read, "{text}");
        }
    }
}
