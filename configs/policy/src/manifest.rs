//! Manifests: a project's policy with the commands that it is for, `outgate.toml`. What stands
//! in it beside commands is read by [`crate::document`]. Values only: nothing here trusts one,
//! reads a file or runs anything.

use toml::de::{DeTable, DeValue};

use crate::author::Author;
use crate::document::{self, COMMAND, DocumentReader, Item, MANIFEST_KEYS, POLICY_KEYS, RUN, Text};
use crate::draft::Draft;
use crate::error::PolicyErrors;
use crate::host::shown;
use crate::limits::{
    COMMAND_NAME_BYTES_MAX, COMMAND_WORD_BYTES_MAX, COMMAND_WORDS_MAX, COMMANDS_MAX, NOTE_BYTES_MAX,
};
use crate::location::Location;
use crate::source::{Context, Source, SourceKind};

/// What a manifest says beside policies.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Manifest {
    /// What the policy of every command builds on; `None` where it does not say, and an empty
    /// list where it builds on nothing.
    pub extends: Option<Vec<String>>,
    /// Its commands, by their names.
    pub commands: Vec<ManifestCommand>,
}

/// A command of a manifest: `[run.NAME]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManifestCommand {
    /// Letters, digits, `-` and `_`.
    pub name: String,
    /// Program and arguments: at least the program.
    pub command: Vec<String>,
    /// What it is for; may be empty.
    pub about: String,
    /// What its own policy builds on, as in [`Manifest`].
    pub extends: Option<Vec<String>>,
}

impl Manifest {
    /// The command of this name; without one `default`, or the only one.
    pub fn command(&self, name: Option<&str>) -> Option<&ManifestCommand> {
        let named = |name: &str| self.commands.iter().find(|own| own.name == name);
        match (name, self.commands.as_slice()) {
            (Some(name), _) => named(name),
            (None, [only]) => Some(only),
            (None, _) => named("default"),
        }
    }
}

/// The policy of a manifest for one of its commands.
pub fn of_command(kind: SourceKind, place: &str, (name, text): (&str, &str)) -> Source {
    Source {
        kind,
        place: place.to_owned(),
        text: format!("{name}\n{text}"),
    }
}

/// Reads the commands of a manifest, and on what each builds. Of all else, its keys are judged.
///
/// # Errors
/// Every fault, with its place; the author is to blame.
pub fn manifest(place: &str, text: &str) -> Result<Manifest, PolicyErrors> {
    let mut found = Manifest::default();
    let context = Context::default();
    let mut draft = Draft::new(&context);
    let source = of_command(SourceKind::Manifest, place, ("", text));
    let location = Location::of(&source);
    if !draft.is_too_long(&location) {
        let (table, syntax) = document::parse(&mut draft, &location);
        let mut reader = DocumentReader {
            draft: &mut draft,
            location: &location,
            author: Author::User,
            broken: syntax == document::DocumentSyntax::Broken,
        };
        let known = [POLICY_KEYS, MANIFEST_KEYS].concat();
        reader.each(
            table.get_ref(),
            "",
            &known,
            |reader, key, value| match key {
                "extends" => found.extends = Some(texts(reader, key, value)),
                RUN => found.commands = commands(reader, value),
                _ => {}
            },
        );
    }
    draft.order_faults(0);
    draft.finish().map(|_| found)
}

fn texts(reader: &mut DocumentReader<'_, '_, '_>, key: &str, value: Item<'_>) -> Vec<String> {
    let texts = reader.strings(key, value).into_iter();
    texts.map(|(_, text)| text.to_owned()).collect()
}

fn commands(reader: &mut DocumentReader<'_, '_, '_>, value: Item<'_>) -> Vec<ManifestCommand> {
    let Some(table) = reader.expect_table(RUN, value) else {
        return Vec::new();
    };
    if table.len() > COMMANDS_MAX {
        let message = format!("the manifest has more than {COMMANDS_MAX} commands");
        reader.fault(value, &message, "take some out");
        return Vec::new();
    }
    // `command = …` right below `[run]`.
    if table.values().any(|own| !own.get_ref().is_table()) {
        let hint = "write `[run.test]`, and below it `command = [\"make\", \"test\"]`";
        reader.fault(value, "a command has a name", hint);
        return Vec::new();
    }
    let mut found = Vec::new();
    for (name, item) in table {
        let at = reader.at(name.span().start);
        let name: &str = name.get_ref();
        if !is_name(name) {
            let message = format!("`{}` is no name of a command", shown(name));
            let hint = format!(
                "a name has letters, digits, `-` and `_`, {COMMAND_NAME_BYTES_MAX} at most, and \
                 begins with a letter"
            );
            reader.draft.fault(at.error(0, message, Some(hint)));
        }
        if let Some(own) = item.get_ref().as_table() {
            found.extend(command(reader, (name, item), own));
        }
    }
    found
}

fn is_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    name.len() <= COMMAND_NAME_BYTES_MAX
        && name.starts_with(|first: char| first.is_ascii_alphabetic())
        && name.bytes().all(plain)
}

fn command<'t>(
    reader: &mut DocumentReader<'_, '_, '_>,
    (name, item): (&str, Item<'t>),
    table: &'t DeTable<'t>,
) -> Option<ManifestCommand> {
    let mut own = ManifestCommand {
        name: name.to_owned(),
        command: Vec::new(),
        about: String::new(),
        extends: None,
    };
    let known = [POLICY_KEYS, COMMAND].concat();
    let before = reader.draft.faults();
    let mut has_command = false;
    reader.each(table, "", &known, |reader, key, value| match key {
        "command" => {
            has_command = true;
            let words = reader.strings(key, value);
            judge(reader, value, &words);
            own.command = words.iter().map(|(_, text)| (*text).to_owned()).collect();
        }
        "about" => {
            let about = reader.string(key, value).map_or("", |(_, text)| text);
            if about.len() > NOTE_BYTES_MAX || about.chars().any(char::is_control) {
                let message = format!("`about` is one line of at most {NOTE_BYTES_MAX} bytes");
                reader.fault(value, &message, "write `about = \"…\"`");
            }
            about.clone_into(&mut own.about);
        }
        "extends" => own.extends = Some(texts(reader, key, value)),
        _ => {}
    });
    if !has_command {
        reader.missing(item, "command", "command = [\"make\", \"test\"]");
    }
    (reader.draft.faults() == before).then_some(own)
}

/// Reports words that no program is started with.
fn judge(reader: &mut DocumentReader<'_, '_, '_>, value: Item<'_>, words: &[Text<'_, '_>]) {
    let is_word =
        |(_, word): &Text<'_, '_>| word.len() <= COMMAND_WORD_BYTES_MAX && !word.contains('\0');
    let first = words.first().is_some_and(|(_, word)| !word.is_empty());
    let is_list = matches!(value.get_ref(), DeValue::Array(_));
    if is_list && !first {
        let hint = "write `command = [\"make\", \"test\"]`";
        reader.fault(value, "`command` names no program", hint);
    } else if words.len() > COMMAND_WORDS_MAX || !words.iter().all(is_word) {
        let message = format!(
            "`command` has at most {COMMAND_WORDS_MAX} words of at most \
             {COMMAND_WORD_BYTES_MAX} bytes, without NUL"
        );
        reader.fault(value, &message, "write a script, and name that");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::Process;
    use crate::{Verdict, compile, question::Question};

    const TEXT: &str = "\
extends = [\"dev-tools\"]
deny = [\"* */admin/**\"]

[run.test]
command = [\"make\", \"test\"]
about = \"unit tests\"

[run.deps]
command = [\"npm\", \"ci\"]
extends = [\"./ci/npm.toml\"]
allow = [\"http://a.test\"]
[run.deps.limits]
processes = 7
";

    #[test]
    fn commands_are_read_with_what_they_build_on() {
        let found = manifest("outgate.toml", TEXT).unwrap();
        assert_eq!(found.extends, Some(vec!["dev-tools".to_owned()]));
        let names: Vec<&str> = found.commands.iter().map(|own| &*own.name).collect();
        assert_eq!(names.len(), 2);
        let test = found.command(Some("test")).unwrap();
        assert_eq!(
            (&test.command[..], &*test.about),
            (&["make".to_owned(), "test".to_owned()][..], "unit tests")
        );
        assert_eq!(test.extends, None);
        let deps = found.command(Some("deps")).unwrap();
        assert_eq!(deps.extends, Some(vec!["./ci/npm.toml".to_owned()]));
        // Of several none is meant by no name, but `default`.
        assert_eq!(found.command(None), None);
        let only = manifest("m", "[run.x]\ncommand = [\"true\"]").unwrap();
        assert_eq!(only.command(None).map(|own| &*own.name), Some("x"));
        let two = "[run.x]\ncommand = [\"a\"]\n[run.default]\ncommand = [\"b\"]";
        let two = manifest("m", two).unwrap();
        assert_eq!(two.command(None).map(|own| &*own.name), Some("default"));
    }

    #[test]
    fn a_policy_is_that_of_one_command_and_narrows_where_nobody_accepted_it() {
        let judged = |kind, name: &str, text: &str, url: &str| {
            let source = of_command(kind, "outgate.toml", (name, text));
            let policy =
                compile(&[source], &Context::nowhere()).map_err(|errors| errors.to_string())?;
            let question = Question::parse(url).unwrap();
            let verdict = policy.answer(&question, Process { executable: "" });
            Ok::<_, String>(matches!(verdict, Verdict::Allow(_)))
        };
        let accepted = |name: &str, url: &str| judged(SourceKind::Manifest, name, TEXT, url);
        assert_eq!(accepted("deps", "http://a.test/x"), Ok(true));
        assert_eq!(accepted("deps", "http://a.test/admin/x"), Ok(false));
        assert_eq!(accepted("test", "http://a.test/x"), Ok(false));
        let unread =
            |text: &str| judged(SourceKind::UntrustedManifest, "x", text, "http://a.test/x");
        for text in [
            "allow = [\"a.test\"]\n[run.x]\ncommand = [\"true\"]",
            "extends = []\n[run.x]\ncommand = [\"true\"]",
            "[run.x]\ncommand = [\"true\"]\nallow = [\"a.test\"]",
            "[run.x]\ncommand = [\"true\"]\n[run.x.filesystem]\nwrite = [\"/\"]",
            "[run.x]\ncommand = [\"true\"]\n[run.x.environment.set]\nA = \"b\"",
        ] {
            let message = unread(text).unwrap_err();
            assert!(message.contains("only narrows"), "{text}: {message}");
        }
        // What another command is granted is not this one's.
        let other =
            "[run.y]\ncommand = [\"true\"]\nallow = [\"a.test\"]\n[run.x]\ncommand = [\"true\"]";
        assert_eq!(unread(other), Ok(false));
        let fault = accepted("deps", "http://a.test/x").and(judged(
            SourceKind::Manifest,
            "x",
            "\n[run.x]\ncommand = [\"a\"]\nallow = [\"*.\"]",
            "http://a.test/",
        ));
        assert!(fault.unwrap_err().contains("outgate.toml:4:11"));
    }

    #[test]
    fn what_names_no_command_is_told_with_its_place() {
        for (text, told) in [
            ("run = 1", "outgate.toml:1:7"),
            ("[run]\ncommand = [\"x\"]", "a command has a name"),
            ("[run.\"a b\"]\ncommand = [\"x\"]", "no name of a command"),
            ("[run.\"a\\nb\"]\ncommand = [\"x\"]", "no name of a command"),
            ("[run.-x]\ncommand = [\"x\"]", "no name of a command"),
            ("[run.x]", "`command` is missing"),
            ("[run.x]\ncommand = []", "names no program"),
            ("[run.x]\ncommand = [\"\"]", "names no program"),
            (
                "[run.x]\ncommand = \"make test\"",
                "must be a list of texts",
            ),
            ("[run.x]\ncommand = [\"a\\u0000b\"]", "without NUL"),
            ("[run.x]\ncommand = [\"a\"]\nabout = \"a\\nb\"", "one line"),
            ("[run.x]\ncomand = [\"a\"]", "did you mean `command`?"),
            ("comand = 1", "unknown key"),
            ("[run.x\n", "outgate.toml:1:"),
        ] {
            let errors = manifest("outgate.toml", text).unwrap_err().to_string();
            assert!(errors.contains(told), "{text}: {errors}");
        }
        let many = (0..=COMMANDS_MAX).map(|number| format!("[run.x{number}]\ncommand = [\"a\"]\n"));
        let many = many.collect::<Vec<_>>().concat();
        assert!(manifest("m", &many).is_err());
    }
}
