//! `outgate audit`: options are read here for their help, and obeyed by the
//! gateway's program, which makes the records. This one becomes that one.

#[path = "../../gateway/cli/audit/arguments.rs"]
pub(crate) mod arguments;

use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use outgate_launcher::record::records_directory;
use outgate_launcher::run::gateway_program;

use crate::report;

/// Outgate itself could not start something.
const NOT_STARTED: u8 = 125;

/// Becomes the gateway's program with the same words.
pub(crate) fn audit() -> ExitCode {
    let program = gateway_program();
    let mut command = Command::new(&program);
    command.args(["audit", "--build", env!("CARGO_PKG_VERSION")]);
    let variable = |name: &str| std::env::var_os(name);
    let records = records_directory(variable("XDG_STATE_HOME"), variable("HOME"));
    if let Some(records) = records {
        command.arg("--records").arg(records);
    }
    let error = command.args(std::env::args_os().skip(2)).exec();
    report::wrong(&format!("`{}`: {error}", program.display()));
    ExitCode::from(NOT_STARTED)
}
