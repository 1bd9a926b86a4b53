//! What a record says of older ones before retention removes them: of which run, and up to
//! where. So whoever verifies tells a file that was to go from one that is missing.

use std::fmt;

use crate::limits::TEXT_BYTES_MAX;

/// Records of a run that are to be removed, as the next record says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemovedRecords {
    /// The run: [`crate::Record::run`].
    pub run: String,
    /// The number of the first record that stays.
    pub before: u64,
}

impl fmt::Display for RemovedRecords {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.run, self.before)
    }
}

impl RemovedRecords {
    /// The member `removed` of a record; those that there is no room for are left out, and
    /// stay.
    pub fn member(all: &[Self]) -> Option<String> {
        let mut text = String::new();
        for own in all {
            let own = own.to_string();
            let is_word = !own.contains(char::is_whitespace);
            if is_word && text.len().saturating_add(own.len()) < TEXT_BYTES_MAX {
                if !text.is_empty() {
                    text.push(' ');
                }
                text.push_str(&own);
            }
        }
        (!text.is_empty()).then_some(text)
    }

    /// Reads the member.
    pub fn parse(member: &str) -> impl Iterator<Item = Self> {
        member.split(' ').filter_map(|own| {
            let (run, before) = own.rsplit_once(':')?;
            let (run, before) = (run.to_owned(), before.parse().ok()?);
            Some(Self { run, before })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_removed_is_read_as_it_was_written() {
        let of = |run: &str, before| RemovedRecords {
            run: run.to_owned(),
            before,
        };
        let all = [of("20261121T131734.957Z-1", 7), of("b", u64::MAX)];
        let text = RemovedRecords::member(&all).unwrap();
        assert_eq!(RemovedRecords::parse(&text).collect::<Vec<_>>(), all);
        assert_eq!(RemovedRecords::member(&[]), None);
        assert_eq!(RemovedRecords::member(&[of("a b", 1)]), None);
        let many: Vec<_> = (0..1000).map(|number| of("abcdefgh", number)).collect();
        let text = RemovedRecords::member(&many).unwrap();
        assert!(text.len() <= TEXT_BYTES_MAX);
        let read: Vec<_> = RemovedRecords::parse(&text).collect();
        assert_eq!(read, many[..read.len()]);
        assert_eq!(RemovedRecords::parse("x a: :b").count(), 0);
    }
}
