//! Expectations about a policy: the `[[test]]` tables beside its rules, or in a
//! file of their own that names the policy it is about.
//!
//! Read here, compared with [`Policy::answer`] by whoever runs them. A run
//! ignores them, so a wrong one never changes what is enforced.
//!
//! [`Policy::answer`]: crate::Policy::answer

use crate::author::Author;
use crate::document;
use crate::document::{DocumentReader, Item, RUN, TEST, TESTS};
use crate::draft::Draft;
use crate::error::PolicyErrors;
use crate::expected::{EXPECTED, Expected};
use crate::location::{At, Location};
use crate::question::Question;
use crate::source::{Context, Source, SourceKind};

/// One `[[test]]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expectation {
    /// Its place: document, line and column of the request.
    pub place: String,
    /// What is asked.
    pub question: Question,
    /// What the answer must be.
    pub expected: Expected,
    /// The text of the rule that must decide, if that matters.
    pub rule: Option<String>,
    /// The executable that asks; empty for one that no rule names.
    pub process: String,
}

/// The expectations of a document.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Expectations {
    /// The presets and files they are about; none means the document itself.
    pub policies: Vec<String>,
    /// In order.
    pub list: Vec<Expectation>,
}

/// Reads the expectations of a document, or those of a manifest for its command. Its other
/// parts are not judged, but a document that names the policy it is about has no others.
///
/// # Errors
/// Every fault, with its place; the author is to blame.
pub fn expectations(source: &Source) -> Result<Expectations, PolicyErrors> {
    let mut found = Expectations::default();
    let command = match source.kind {
        SourceKind::Document => None,
        SourceKind::Manifest => source.text.split_once('\n').map(|(name, _)| name),
        _ => return Ok(found),
    };
    let context = Context::default();
    let mut draft = Draft::new(&context);
    let location = Location::of(source);
    let (table, syntax) = document::parse(&mut draft, &location);
    let mut reader = DocumentReader {
        draft: &mut draft,
        location: &location,
        author: Author::User,
        broken: syntax == document::DocumentSyntax::Broken,
    };
    let top = table.get_ref();
    if source.kind == SourceKind::Document && top.get("policy").is_some() {
        reader.each(top, "", TESTS, |reader, key, value| {
            if key == "policy" {
                found.policies = policies(reader, value);
            }
        });
    }
    let own = command.and_then(|name| top.get(RUN)?.get_ref().get(name)?.get_ref().as_table());
    for tests in [Some(top), own].into_iter().flatten() {
        let Some(tests) = tests.get("test") else {
            continue;
        };
        for item in reader.array("test", tests) {
            found.list.extend(expectation(&mut reader, item));
        }
    }
    draft.order_faults(0);
    draft.finish().map(|_| found)
}

/// One text, or a list of texts.
fn policies(reader: &mut DocumentReader<'_, '_, '_>, value: Item<'_>) -> Vec<String> {
    if let Some(text) = value.get_ref().as_str() {
        return vec![text.to_owned()];
    }
    let names = reader.strings("policy", value);
    names.into_iter().map(|(_, name)| name.to_owned()).collect()
}

fn expectation(reader: &mut DocumentReader<'_, '_, '_>, item: Item<'_>) -> Option<Expectation> {
    let mut request = None;
    let mut expected = None;
    let mut has_word = false;
    let mut rule = None;
    let mut process = String::new();
    reader.table("test", item, TEST, |reader, key, value| match key {
        "request" => request = reader.string(key, value),
        "expect" => {
            has_word = true;
            expected = reader.word(key, value, &EXPECTED);
        }
        "rule" => rule = reader.string(key, value).map(|(_, text)| text.to_owned()),
        "process" => {
            let text = reader.string(key, value);
            text.map_or("", |(_, text)| text).clone_into(&mut process);
        }
        _ => drop(reader.string(key, value)),
    });
    if !has_word {
        reader.missing(item, "expect", "expect = \"deny\"");
    }
    let Some((at, text)) = request else {
        reader.missing(
            item,
            "request",
            "request = \"GET https://api.example.org/\"",
        );
        return None;
    };
    let question = question(reader, at, text)?;
    Some(Expectation {
        place: at.place().to_string(),
        question,
        expected: expected?,
        rule,
        process,
    })
}

fn question(reader: &mut DocumentReader<'_, '_, '_>, at: At<'_>, text: &str) -> Option<Question> {
    match Question::parse(text) {
        Ok(question) => Some(question),
        Err(error) => {
            let hint = Some(error.hint().to_owned());
            reader.draft.fault(at.error(0, error.to_string(), hint));
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Expectations, String> {
        let source = Source {
            kind: SourceKind::Document,
            place: "t.toml".to_owned(),
            text: text.to_owned(),
        };
        expectations(&source).map_err(|errors| errors.to_string())
    }

    #[test]
    fn tests_stand_beside_rules_or_name_their_policy() {
        let found = read(
            "allow = [\"a.test\"]\n[[test]]\nrequest = \"http://a.test/x\"\nexpect = \"allow\"\nrule = \"a.test\"\nprocess = \"/usr/bin/git\"\nnote = \"n\"",
        )
        .expect("sound");
        assert_eq!(found.policies, Vec::<String>::new());
        let [one] = found.list.as_slice() else {
            panic!("{found:?}");
        };
        assert_eq!(one.place, "t.toml:3:12");
        assert_eq!(one.question.to_string(), "GET http://a.test/x");
        assert_eq!(one.expected, Expected::Allow);
        assert_eq!(one.rule.as_deref(), Some("a.test"));
        assert_eq!(one.process, "/usr/bin/git");
        for (text, policies) in [
            ("policy = \"agent.toml\"", &["agent.toml"][..]),
            ("policy = [\"base\", \"./a.toml\"]", &["base", "./a.toml"]),
        ] {
            assert_eq!(read(text).expect(text).policies, policies);
        }
    }

    #[test]
    fn tests_of_a_manifest_are_those_of_all_commands_and_of_one() {
        let text = "[[test]]\nrequest = \"http://a.test\"\nexpect = \"deny\"\n\
            [run.x]\ncommand = [\"x\"]\n[[run.x.test]]\nrequest = \"http://x.test\"\nexpect = \"allow\"\n\
            [run.y]\ncommand = [\"y\"]\n[[run.y.test]]\nrequest = \"http://y.test\"\nexpect = \"no\"\n";
        let read = |kind, name: &str| {
            let found = expectations(&crate::of_command(kind, "m.toml", (name, text)));
            let found = found.map_err(|errors| errors.to_string())?;
            let texts = found.list.iter();
            Ok(texts.map(|own| own.place.clone()).collect::<Vec<String>>())
        };
        let kind = SourceKind::Manifest;
        assert_eq!(read(kind, ""), Ok(vec!["m.toml:2:12".to_owned()]));
        let both = ["m.toml:2:12", "m.toml:7:12"].map(str::to_owned);
        assert_eq!(read(kind, "x"), Ok(both.to_vec()));
        let fault: Result<_, String> = read(kind, "y");
        assert!(
            fault.is_err_and(|said| said.contains("m.toml:13:11: `no` is no value of `expect`"))
        );
        // Nobody judges by what nobody accepted.
        assert_eq!(read(SourceKind::UntrustedManifest, "x"), Ok(Vec::new()));
    }

    #[test]
    fn every_fault_of_a_test_is_reported() {
        for (text, want) in [
            (
                "[[test]]\nexpect = \"deny\"",
                "t.toml:1:1: `request` is missing\n  hint: add `request = \"GET https://api.example.org/\"`",
            ),
            (
                "[[test]]\nrequest = \"a.test\"\nexpect = \"no\"",
                "t.toml:2:12: `a.test` has no scheme\n  hint: write `https://a.test` or `http://a.test`\n\
                 t.toml:3:11: `no` is no value of `expect`\n  hint: known are `allow` and `deny`",
            ),
            (
                "[[test]]\nrequest = \"http://a.test\"\nexpected = \"deny\"",
                "t.toml:1:1: `expect` is missing\n  hint: add `expect = \"deny\"`\n\
                 t.toml:3:1: unknown key `expected` in `test`\n  hint: did you mean `expect`?",
            ),
            (
                "policy = \"a.toml\"\nallow = [\"a.test\"]",
                "t.toml:2:1: unknown key `allow`\n  hint: known are `policy` and `test`",
            ),
            (
                "test = 1",
                "t.toml:1:8: `test` must be a list, not a number\n  hint: write `[[test]]`",
            ),
        ] {
            assert_eq!(read(text), Err(want.to_owned()), "{text}");
        }
    }
}
