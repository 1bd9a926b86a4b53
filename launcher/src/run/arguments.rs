//! Arguments that a policy has a program started with besides those of its user.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use outgate_policy::{Arguments, Policy};

/// The command as it is started, and what its user is told about that.
pub(super) fn started<'p>(
    policy: &'p Policy,
    command: &[OsString],
) -> (Vec<OsString>, impl Iterator<Item = &'p str> + use<'p>) {
    let Some((program, said)) = command.split_first() else {
        return (Vec::new(), notes(Vec::new()));
    };
    let name = Path::new(program).file_name().unwrap_or_default();
    let tables = policy.arguments().iter();
    let tables: Vec<&Arguments> = tables
        .filter(|table| is_called(table, name, said))
        .collect();
    let first = tables
        .iter()
        .flat_map(|table| table.first.iter().map(OsString::from));
    let all = std::iter::once(program.clone()).chain(first);
    let command = all.chain(said.iter().cloned()).collect();
    (command, notes(tables))
}

fn notes(tables: Vec<&Arguments>) -> impl Iterator<Item = &str> {
    let texts = tables.into_iter().map(|table| &*table.text);
    texts.filter(|text| !text.is_empty())
}

/// Whether a program is started so, unless its user said something about it.
fn is_called(table: &Arguments, name: &OsStr, said: &[OsString]) -> bool {
    let is_said = |argument: &OsString, word: &String| {
        let rest = argument.as_encoded_bytes().strip_prefix(word.as_bytes());
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"="))
    };
    let any = |word: &String| said.iter().any(|argument| is_said(argument, word));
    table.program.as_str() == name && !table.unless.iter().any(any)
}

#[cfg(test)]
mod tests {
    use outgate_policy::{Context, Source, SourceKind, compile};

    use super::*;

    #[test]
    fn a_program_gets_them_unless_its_user_said_so() {
        let text = "[[arguments]]\nprogram = \"it\"\nfirst = [\"-c\", \"mode=off\"]\nunless = [\"--mode\", \"mode\"]\ntext = \"off\"\n\
            [[arguments]]\nprogram = \"it\"\nfirst = [\"-q\"]\n";
        let source = Source {
            kind: SourceKind::Document,
            place: "a.toml".to_owned(),
            text: text.to_owned(),
        };
        let context = Context {
            working_directory: "/w".to_owned(),
            ..Context::default()
        };
        let policy = compile(&[source], &context).unwrap();
        for (said, wanted, lines) in [
            ("it", "it -c mode=off -q", 1),
            (
                "/usr/bin/it go --modest",
                "/usr/bin/it -c mode=off -q go --modest",
                1,
            ),
            ("it --mode on", "it -q --mode on", 0),
            ("it --mode=on", "it -q --mode=on", 0),
            ("it -c mode=on", "it -q -c mode=on", 0),
            ("its", "its", 0),
            ("env it", "env it", 0),
        ] {
            let words: Vec<OsString> = said.split(' ').map(OsString::from).collect();
            let (command, told) = started(&policy, &words);
            assert_eq!(command.join(OsStr::new(" ")), wanted, "{said}");
            assert_eq!(told.count(), lines, "{said}");
        }
    }
}
