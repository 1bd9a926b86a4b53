//! The program `outgate-report`: arguments in, exit codes out. Everything else is in the
//! library beside it.

#![forbid(unsafe_code)]

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Parser;
use outgate_report::{Audit, Scan, audit, scan};

/// Wrong use of the command line.
const USAGE_ERROR: u8 = 2;

const USAGE: &str = "\
usage: outgate-report audit ARGUMENT...
       outgate-report scan ARGUMENT...
       outgate-report --version
`outgate audit` and `outgate scan` start it.";

#[expect(clippy::print_stdout, reason = "this is the program's voice")]
fn main() -> ExitCode {
    let word = std::env::args_os().nth(1);
    match word.as_deref().and_then(|word| word.to_str()) {
        Some("audit") => obey(|AuditWords { options }| audit(&options)),
        Some("scan") => obey(|ScanWords { options }| scan(&options)),
        Some("--version") => {
            println!("outgate-report {}", env!("CARGO_PKG_VERSION"));
            ExitCode::SUCCESS
        }
        Some("--help") => {
            println!("{USAGE}");
            ExitCode::SUCCESS
        }
        Some(_) | None => {
            // A closed stream leaves nobody to tell.
            drop(io::stderr().write_all(format!("{USAGE}\n").as_bytes()));
            ExitCode::from(USAGE_ERROR)
        }
    }
}

/// The options of `outgate scan`, under the name that people type.
#[derive(Debug, Parser)]
#[command(name = "outgate scan")]
struct ScanWords {
    #[command(flatten)]
    options: Scan,
}

/// The options of `outgate audit`.
#[derive(Debug, Parser)]
#[command(name = "outgate audit")]
struct AuditWords {
    #[command(flatten)]
    options: Audit,
}

/// Reads options under the name that people type, and obeys them.
fn obey<P: Parser>(act: impl FnOnce(P) -> ExitCode) -> ExitCode {
    match P::try_parse_from(std::env::args_os().skip(1)) {
        Ok(options) => act(options),
        Err(error) => {
            // A closed stream leaves nobody to tell.
            drop(error.print());
            ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(USAGE_ERROR))
        }
    }
}
