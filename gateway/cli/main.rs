//! The gateway's program: arguments in, errors out, exit codes. Everything
//! else is in the library.

#![forbid(unsafe_code)]

use std::io::{self, Write};
use std::process::ExitCode;

use outgate_gateway::config::{self, GatewayCommand};

mod authority;
mod detectors;

/// Wrong use of the command line.
const USAGE_ERROR: u8 = 2;
/// The gateway could not serve.
const FAILED: u8 = 125;

#[expect(clippy::print_stdout, reason = "this is the program's voice")]
fn main() -> ExitCode {
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
        Ok(GatewayCommand::Detectors(judged)) => detectors::check(&judged),
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

fn ended(result: Result<(), outgate_gateway::ServeError>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(outgate_gateway::ServeError::Reported) => ExitCode::from(FAILED),
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
