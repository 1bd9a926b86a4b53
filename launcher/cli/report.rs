//! All printing of the program: errors with their causes and hints, lines of a
//! run, tables. Nothing else in the launcher writes to a terminal.

use std::error::Error;
use std::io::{self, Write};
use std::process::ExitCode;

use outgate_launcher::run::RunError;
use outgate_launcher::standard::Lines;
use outgate_launcher::supervisor::Counters;
use outgate_launcher::voice::Voice;

/// A usage error or a help text, as clap words it, and what to do.
pub(crate) fn usage(error: &clap::Error, advice: Option<&str>) -> ExitCode {
    // A closed stream leaves nobody to tell.
    drop(error.print());
    if let Some(advice) = advice {
        tell(&format!("\n{advice}\n"));
    }
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
}

/// One error with its causes, and what to do.
pub(crate) fn failure(failed: &RunError) -> ExitCode {
    error(failed, failed.hint().as_deref());
    ExitCode::from(failed.status())
}

/// An error and its causes.
pub(crate) fn chain(failed: &dyn Error) -> String {
    let mut text = failed.to_string();
    let mut cause = failed.source();
    // Variants that show their cause themselves are transparent.
    while let Some(source) = cause {
        let next = source.to_string();
        if !text.ends_with(&next) {
            text.push_str(": ");
            text.push_str(&next);
        }
        cause = source.source();
    }
    text
}

/// The same for any error.
pub(crate) fn error(failed: &dyn Error, hint: Option<&str>) {
    let mut text = String::new();
    for (index, line) in chain(failed).lines().enumerate() {
        if !(line.starts_with(' ') || (index > 0 && line.is_empty())) {
            text.push_str("outgate: ");
        }
        text.push_str(line);
        text.push('\n');
    }
    if let Some(hint) = hint {
        text.push_str("  hint: ");
        text.push_str(hint);
        text.push('\n');
    }
    tell(&text);
}

/// A plain message for a wrong option.
pub(crate) fn wrong(message: &str) -> ExitCode {
    tell(&format!("outgate: {message}\n"));
    ExitCode::from(2)
}

/// A plain message for a wrong option, and what to write instead.
pub(crate) fn wrong_with_hint(message: &str, hint: &str) -> ExitCode {
    tell(&format!("outgate: {message}\n  hint: {hint}\n"));
    ExitCode::from(2)
}

/// A warning about a policy.
pub(crate) fn warning(warning: &str) {
    tell(&format!("outgate: warning: {warning}\n"));
}

/// A plain word to who starts something.
pub(crate) fn note(note: &str) {
    tell(&format!("outgate: note: {note}\n"));
}

/// A line that goes on with it.
pub(crate) fn note_line(line: &str) {
    tell(&format!("{line}\n"));
}

/// Whole lines in one write(2): the gateway and the command have the same standard
/// error, and what they say would stand in the middle of a line written in parts.
fn tell(lines: &str) {
    // A closed stream leaves nobody to tell.
    drop(io::stderr().write_all(lines.as_bytes()));
}

/// Lines of a run, on standard error.
#[derive(Default)]
pub(crate) struct Terminal(Lines);

impl Voice for Terminal {
    fn say(&mut self, line: &str) {
        self.0.say(line);
    }
}

/// How many calls were held.
pub(crate) fn counters(counters: Counters) {
    tell(&format!(
        "outgate: held calls: connect {}, listen {}, socket {}, open {}, attribute {}, other {}\n",
        counters.connects,
        counters.listens,
        counters.sockets,
        counters.opens,
        counters.attributes,
        counters.others
    ));
}

/// One line of a table on standard output.
pub(crate) fn line(text: &str) {
    drop(writeln!(io::stdout(), "{text}"));
}

/// A whole text on standard output.
pub(crate) fn text(text: &str) {
    drop(io::stdout().write_all(text.as_bytes()));
}
