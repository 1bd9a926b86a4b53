//! `outgate audit` and `outgate scan`: options are read here for their help, and obeyed by
//! `outgate-report`, which reads what anybody may have written. This program becomes that one.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use outgate_launcher::record::records_directory;
use outgate_launcher::run::report_program;

use crate::report;

/// Outgate itself could not start something.
const NOT_STARTED: u8 = 125;

/// Becomes it with the same words, and where runs leave their records.
pub(crate) fn audit() -> ExitCode {
    let variable = |name: &str| std::env::var_os(name);
    let records = records_directory(variable("XDG_STATE_HOME"), variable("HOME"));
    let records = records.map(|records| ["--records".into(), records.into_os_string()]);
    become_report("audit", records.into_iter().flatten())
}

/// Becomes it with the same words.
pub(crate) fn scan() -> ExitCode {
    become_report("scan", std::iter::empty())
}

fn become_report(subcommand: &str, own: impl Iterator<Item = OsString>) -> ExitCode {
    let program = report_program();
    let error = Command::new(&program)
        .args([subcommand, "--build", env!("CARGO_PKG_VERSION")])
        .args(own)
        .args(std::env::args_os().skip(2))
        .exec();
    let message = format!("`{}`: {error}", program.display());
    if error.kind() == ErrorKind::NotFound {
        report::wrong_with_hint(
            &message,
            "outgate, outgate-gateway and outgate-report belong into one directory; install \
             all three from one release",
        );
    } else {
        report::wrong(&message);
    }
    ExitCode::from(NOT_STARTED)
}
