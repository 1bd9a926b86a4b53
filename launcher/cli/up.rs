//! `outgate up`: a command of the project's manifest, by the same road as `outgate run`.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use clap::{Args, Parser};
use outgate_launcher::manifest::{ManifestFiles, ManifestTrust};
use outgate_launcher::text::shell_word;
use outgate_policy::{Context, ManifestCommand, SourceKind, compile, of_command, printable};

use crate::report;
use crate::run;
use crate::run_options::Run;
use crate::trusted::{Refusal, Standing, enter, manifest, standing, told};

pub(crate) const EXAMPLES: &str = "\
Examples:
  outgate up                                     the only command of outgate.toml, or `default`
  outgate up test                                the one of this name
  outgate up test --ask -a https://example.org   with options of `outgate run`
  outgate up test -- -k one                      with arguments for the command

outgate.toml, in the working directory or above it, is a policy with commands:

  extends = [\"dev-tools\", \"./ci/registry.toml\"]   # for each of them
  deny = [\"* */admin/**\"]

  [run.test]
  command = [\"make\", \"test\"]

  [run.deps]                                     # with keys of a policy of its own
  command = [\"npm\", \"ci\"]
  allow = [\"GET https://registry.example.org/**\"]

It is looked for up to the root, and to the first directory that is another user's or that
anybody may write. The command runs in the directory of the manifest, and paths begin there.
Until you have accepted it (`outgate trust`), it may only narrow what `outgate run` gives: `deny`,
`only`, `[filesystem] deny`, `[limits]`. Whatever changes in it or in a file it extends, has to
be accepted anew; what was accepted is what runs.

Exit status: as of `outgate run`; 2 there is no manifest, or it is wrong or not accepted.";

/// Run a command of the project's manifest
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Up {
    /// Name of the command in outgate.toml, options of `outgate run`, and behind `--` further
    /// arguments of the command
    #[arg(
        value_name = "NAME | OPTION",
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    words: Vec<OsString>,
    /// Print the names of the commands, one a line
    #[arg(long)]
    names: bool,
}

/// A command line of `outgate run`.
#[derive(Debug, Parser)]
#[command(
    name = "outgate up NAME",
    about = "Run a command of the project's manifest"
)]
struct RunLine {
    #[command(flatten)]
    run: Run,
}

/// What a command line says.
#[derive(Debug, PartialEq, Eq)]
struct UpLine {
    name: Option<OsString>,
    options: Vec<OsString>,
    arguments: Vec<OsString>,
}

impl UpLine {
    fn of(words: &[OsString]) -> Self {
        let is_name = |word: &&OsString| !word.as_encoded_bytes().starts_with(b"-");
        let name = words.first().filter(is_name).cloned();
        let rest = words.iter().skip(usize::from(name.is_some()));
        let (mut options, mut arguments) = (Vec::new(), None);
        for word in rest {
            match &mut arguments {
                None if word == "--" => arguments = Some(Vec::new()),
                None => options.push(word.clone()),
                Some(arguments) => arguments.push(word.clone()),
            }
        }
        Self {
            name,
            options,
            arguments: arguments.unwrap_or_default(),
        }
    }
}

/// Runs the command and ends with its status.
pub(crate) fn up(arguments: &Up) -> ExitCode {
    let own = match manifest(Path::new(".")) {
        Ok(own) => own,
        Err(refusal) => return refused(&refusal),
    };
    if arguments.names {
        for command in &own.manifest.commands {
            report::line(&command.name);
        }
        return ExitCode::SUCCESS;
    }
    // As they were typed: a `--` at the beginning is not among what the parser leaves.
    let words: Vec<OsString> = std::env::args_os().skip(2).collect();
    let line = UpLine::of(&words);
    let ready = chosen(&own, line.name.as_ref())
        .and_then(|command| Ok((command, trust(&own, command)?)))
        .and_then(|ready| enter(&own).map(|()| ready));
    let (command, trust) = match ready {
        Ok(ready) => ready,
        Err(refusal) => return refused(&refusal),
    };
    let words = [OsString::from("outgate up")].into_iter();
    let words = words.chain(line.options).chain([OsString::from("--")]);
    let own_words = command.command.iter().map(OsString::from);
    let own_words: Vec<OsString> = own_words.chain(line.arguments).collect();
    let mut run = match RunLine::try_parse_from(words.chain(own_words.iter().cloned())) {
        Ok(line) => line.run,
        Err(error) => return report::usage(&error, None),
    };
    // A word before `--` that is no option would be a command of its own.
    if run.command != own_words {
        let refusal = (
            format!(
                "`outgate up` runs the command of the manifest alone: {}",
                words_of(command)
            ),
            Some("what its program is to get stands behind `--`".to_owned()),
        );
        return refused(&refusal);
    }
    report::note(&format!(
        "`{}` of {}: {}",
        command.name,
        printable(&own.path().display().to_string()),
        words_of(command)
    ));
    run.policy.manifest = Some(own.policy(&command.name, trust));
    run::run(run)
}

fn refused(refusal: &Refusal) -> ExitCode {
    told(refusal);
    ExitCode::from(2)
}

/// The command that is meant.
fn chosen<'m>(
    own: &'m ManifestFiles,
    name: Option<&OsString>,
) -> Result<&'m ManifestCommand, Refusal> {
    let text = name.map(|name| name.to_string_lossy());
    if let Some(command) = own.manifest.command(text.as_deref()) {
        return Ok(command);
    }
    let path = printable(&own.path().display().to_string());
    let commands = own.manifest.commands.iter();
    let names: Vec<&str> = commands.map(|command| command.name.as_str()).collect();
    let message = match text {
        _ if names.is_empty() => format!("`{path}` has no commands"),
        Some(name) => format!("`{path}` has no command `{}`", printable(&name)),
        None => format!("`{path}` has several commands, and none is called `default`"),
    };
    let hint = if names.is_empty() {
        "write `[run.test]`, and below it `command = [\"make\", \"test\"]`".to_owned()
    } else {
        format!("name one: {}", names.join(", "))
    };
    Err((message, Some(hint)))
}

/// How far the manifest is trusted: not at all where it would grant and nobody accepted it, or
/// is another than was accepted.
fn trust(own: &ManifestFiles, command: &ManifestCommand) -> Result<ManifestTrust, Refusal> {
    let path = printable(&own.path().display().to_string());
    let (message, hint) = match standing(own)? {
        Standing::Accepted => return Ok(ManifestTrust::Accepted),
        Standing::Unread if narrows(own, command) => return Ok(ManifestTrust::Unread),
        Standing::Unread => (
            format!(
                "`{path}` grants `{}` more than a plain `outgate run` does, and you have not \
                 accepted it",
                command.name
            ),
            "`outgate trust` shows what it grants, and asks whether you accept it",
        ),
        Standing::Changed(_) => (
            format!("`{path}` is not as you accepted it"),
            "`outgate trust` shows what changed, and asks whether you accept it",
        ),
    };
    Err((message, Some(hint.to_owned())))
}

/// Whether a manifest says nothing for a command that could grant anything, as its reader has it.
fn narrows(own: &ManifestFiles, command: &ManifestCommand) -> bool {
    let source = of_command(
        SourceKind::UntrustedManifest,
        "outgate.toml",
        (&command.name, own.text()),
    );
    compile(&[source], &Context::nowhere()).is_ok()
}

/// A command as somebody would type it.
pub(crate) fn words_of(command: &ManifestCommand) -> String {
    let words = command.command.iter();
    let words: Vec<String> = words.map(|word| shell_word(&printable(word))).collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_a_name_options_and_arguments() {
        let line = |words: &[&str]| {
            let words: Vec<OsString> = words.iter().map(OsString::from).collect();
            let line = UpLine::of(&words);
            let shown = |words: Vec<OsString>| {
                words
                    .join(OsString::from(" ").as_os_str())
                    .into_string()
                    .unwrap()
            };
            (
                line.name.map(|name| name.into_string().unwrap()),
                shown(line.options),
                shown(line.arguments),
            )
        };
        let own = |name: Option<&str>, options: &str, arguments: &str| {
            (
                name.map(str::to_owned),
                options.to_owned(),
                arguments.to_owned(),
            )
        };
        assert_eq!(line(&[]), own(None, "", ""));
        assert_eq!(line(&["test"]), own(Some("test"), "", ""));
        assert_eq!(line(&["test", "-a", "x"]), own(Some("test"), "-a x", ""));
        assert_eq!(line(&["-a", "x"]), own(None, "-a x", ""));
        assert_eq!(line(&["--", "-a"]), own(None, "", "-a"));
        assert_eq!(
            line(&["test", "--ask", "--", "-k", "--", "one"]),
            own(Some("test"), "--ask", "-k -- one")
        );
    }
}
