//! What a line must have, as bytes, so that it can be what somebody asked for. Lines that
//! our gateway wrote have one form, and those without these bytes need not be read; any
//! other line is read. Pure.

use memchr::memmem::Finder;
use outgate_record::BlockHead;
use outgate_record::BlockTerm;

/// How every line begins that a gateway writes.
const BEGINNING: &[u8] = b"{\"v\":1,\"seq\":";
/// What stands before the time, not far from the beginning.
const TIME: &[u8] = b",\"time\":\"";
/// Bytes of the beginning in which the time stands: two numbers of 20 digits, a hash.
const TIME_WITHIN: usize = 160;
/// Bytes of a time.
const TIME_BYTES: usize = 24;

/// A term in its two forms: as a line has it, and as the summary of a block knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Term {
    Host(String),
    Below(String),
    Kind(String),
    Verdict(&'static str),
    Sandbox(String),
    Program(String),
    Monitored,
    /// A text somewhere in a rule.
    Rule(String),
}

impl Term {
    /// The bytes that a line has.
    fn bytes(&self) -> Vec<u8> {
        let quoted = |text: &str| serde_json::to_string(text).unwrap_or_default();
        let inside = |text: &str| {
            let text = quoted(text);
            let text = text
                .strip_prefix('"')
                .and_then(|text| text.strip_suffix('"'));
            text.unwrap_or_default().to_owned()
        };
        let text = match self {
            Self::Host(text) | Self::Program(text) | Self::Rule(text) => inside(text),
            Self::Below(text) => inside(&format!(".{text}")),
            Self::Kind(text) => format!("\"kind\":{}", quoted(text)),
            Self::Verdict(text) => format!("\"verdict\":{}", quoted(text)),
            Self::Sandbox(text) => format!("\"sandbox\":{}", quoted(text)),
            Self::Monitored => "\"monitor\":".to_owned(),
        };
        text.into_bytes()
    }

    /// What a summary knows of it; nothing where it knows nothing.
    fn of_block(&self) -> Option<BlockTerm<'_>> {
        Some(match self {
            Self::Host(text) => BlockTerm::Host(text),
            Self::Below(text) => BlockTerm::Below(text),
            Self::Kind(text) => BlockTerm::Kind(text),
            Self::Verdict(text) => BlockTerm::Verdict(text),
            Self::Sandbox(text) => BlockTerm::Sandbox(text),
            // A path is known by its last part.
            Self::Program(text) => BlockTerm::Program(outgate_record::short(text)),
            Self::Monitored => BlockTerm::Monitored,
            Self::Rule(_) => return None,
        })
    }
}

/// One of them must be there.
#[derive(Debug)]
struct OneOf {
    terms: Vec<Term>,
    finders: Vec<Finder<'static>>,
}

/// All of these must be met.
#[derive(Debug, Default)]
pub(super) struct Prefilter(Vec<OneOf>);

impl Prefilter {
    /// Of these one must be there, besides what was said before; of none, nothing.
    pub(super) fn one_of(&mut self, terms: Vec<Term>) {
        if !terms.is_empty() {
            let finder = |term: &Term| Finder::new(&term.bytes()).into_owned();
            let finders = terms.iter().map(finder).collect();
            self.0.push(OneOf { terms, finders });
        }
    }

    /// Whether a line has to be read.
    pub(super) fn may_be(&self, line: &[u8]) -> bool {
        if !line.starts_with(BEGINNING) {
            return true;
        }
        let has = |one: &OneOf| one.finders.iter().any(|finder| finder.find(line).is_some());
        self.0.iter().all(has)
    }

    /// Whether a block has to be opened.
    pub(super) fn may_be_in(&self, head: &BlockHead) -> bool {
        let may = |term: &Term| term.of_block().is_none_or(|term| head.may_have(term));
        self.0.iter().all(|one| one.terms.iter().any(may))
    }
}

/// The time of a line that a gateway wrote.
pub(super) fn time(line: &[u8]) -> Option<&str> {
    let beginning = line.get(..TIME_WITHIN).unwrap_or(line);
    let at = memchr::memmem::find(beginning, TIME).filter(|_| line.starts_with(BEGINNING))?;
    let from = at.checked_add(TIME.len())?;
    let time = line.get(from..from.checked_add(TIME_BYTES)?)?;
    std::str::from_utf8(time).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_another_form_are_read_whatever_is_asked_for() {
        let mut asked = Prefilter::default();
        asked.one_of(vec![
            Term::Host("a.test".to_owned()),
            Term::Below("b.test".to_owned()),
        ]);
        asked.one_of(vec![Term::Verdict("deny")]);
        for (line, may_be) in [
            (
                r#"{"v":1,"seq":1,"verdict":"deny","target":"a.test:1"}"#,
                true,
            ),
            (
                r#"{"v":1,"seq":1,"verdict":"deny","target":"x.b.test:1"}"#,
                true,
            ),
            (
                r#"{"v":1,"seq":1,"verdict":"deny","target":"b.test:1"}"#,
                false,
            ),
            (
                r#"{"v":1,"seq":1,"verdict":"allow","target":"a.test:1"}"#,
                false,
            ),
            (r#"{"v": 1, "seq": 1, "verdict": "allow"}"#, true),
            ("", true),
        ] {
            assert_eq!(asked.may_be(line.as_bytes()), may_be, "{line}");
        }
        assert!(Prefilter::default().may_be(b"{\"v\":1,\"seq\":1}"));
        let line = br#"{"v":1,"seq":1,"prev":"0","time":"2026-11-21T13:17:34.957Z","run":"r"}"#;
        assert_eq!(time(line), Some("2026-11-21T13:17:34.957Z"));
        assert_eq!(time(&line[..40]), None);
    }

    #[test]
    fn texts_are_sought_as_they_are_written() {
        let text = |term: Term| String::from_utf8(term.bytes()).unwrap();
        assert_eq!(text(Term::Rule("a\"b\\c".to_owned())), r#"a\"b\\c"#);
        assert_eq!(text(Term::Sandbox("n\n".to_owned())), r#""sandbox":"n\n""#);
        assert_eq!(text(Term::Below("x.test".to_owned())), ".x.test");
    }
}
