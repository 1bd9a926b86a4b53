//! `outgate scan`: options are read here for their help, and obeyed by the
//! gateway's program, which has the engine. This one becomes that one.

#[path = "../../gateway/cli/scan/arguments.rs"]
pub(crate) mod arguments;

use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use outgate_launcher::run::gateway_program;

use crate::report;

/// Outgate itself could not start something.
const NOT_STARTED: u8 = 125;

/// Becomes the gateway's program with the same words.
pub(crate) fn scan() -> ExitCode {
    let program = gateway_program();
    let words = std::env::args_os().skip(2);
    let error = Command::new(&program)
        .args(["scan", "--build", env!("CARGO_PKG_VERSION")])
        .args(words)
        .exec();
    report::wrong(&format!("`{}`: {error}", program.display()));
    ExitCode::from(NOT_STARTED)
}
