//! The gateway's program: arguments in, errors out, exit codes. Everything
//! else is in the library.

#![forbid(unsafe_code)]

mod audit;
mod scan;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Parser;
use outgate_gateway::config::{self, GatewayCommand};

mod authority;
mod detectors;

/// Wrong use of the command line.
const USAGE_ERROR: u8 = 2;
/// The gateway could not serve.
const FAILED: u8 = 125;

#[expect(clippy::print_stdout, reason = "this is the program's voice")]
fn main() -> ExitCode {
    match std::env::args_os().nth(1) {
        Some(word) if word == "scan" => return offline(|Offline { scan }| scan::scan(&scan)),
        Some(word) if word == "audit" => return offline(|Records { audit }| audit::audit(&audit)),
        _ => {}
    }
    match config::parse(std::env::args_os().skip(1)) {
        Ok(GatewayCommand::Version) => {
            println!("outgate-gateway {}", env!("CARGO_PKG_VERSION"));
            ExitCode::SUCCESS
        }
        Ok(GatewayCommand::Help) => {
            println!("{}", config::USAGE);
            ExitCode::SUCCESS
        }
        Ok(GatewayCommand::Authority(request)) => authority::run(&request),
        Ok(GatewayCommand::Detectors(files)) => detectors::check(&files),
        Ok(GatewayCommand::Trial) => match outgate_gateway::trial(io::stdout()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                tell(&error.to_string());
                ExitCode::from(FAILED)
            }
        },
        Ok(GatewayCommand::Serve(private)) => ended(outgate_gateway::serve_private(&private)),
        Ok(GatewayCommand::Keep(kept)) => ended(outgate_gateway::keep_secrets(&kept)),
        Ok(GatewayCommand::Share(shared)) => ended(outgate_gateway::serve_shared(&shared)),
        Err(message) => {
            tell(&format!("{message}\n{}", config::USAGE));
            ExitCode::from(USAGE_ERROR)
        }
    }
}

/// The options of `outgate scan`, under the name that people type.
#[derive(Debug, Parser)]
#[command(name = "outgate scan")]
struct Offline {
    #[command(flatten)]
    scan: scan::arguments::Scan,
}

/// The options of `outgate audit`.
#[derive(Debug, Parser)]
#[command(name = "outgate audit")]
struct Records {
    #[command(flatten)]
    audit: audit::arguments::Audit,
}

/// Reads options under the name that people type, and obeys them.
fn offline<P: Parser>(obey: impl FnOnce(P) -> ExitCode) -> ExitCode {
    match P::try_parse_from(std::env::args_os().skip(1)) {
        Ok(options) => obey(options),
        Err(error) => {
            // A closed stream leaves nobody to tell.
            drop(error.print());
            ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(USAGE_ERROR))
        }
    }
}

fn ended(result: Result<(), outgate_gateway::ServeError>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(outgate_gateway::ServeError::Told) => ExitCode::from(FAILED),
        Err(error) => {
            tell(&outgate_gateway::chain(&error));
            ExitCode::from(FAILED)
        }
    }
}

/// Says it on standard error in one write(2): the launcher and the command have the
/// same one, and what they say would stand in the middle of a line written in parts.
fn tell(message: &str) {
    // A closed stream leaves nobody to tell.
    drop(io::stderr().write_all(format!("outgate-gateway: {message}\n").as_bytes()));
}
