//! The gateway's program: arguments in, errors out, exit codes. Everything
//! else is in the library.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use outgate_gateway::config::{self, Request};

mod authority;

/// Wrong use of the command line.
const USAGE_ERROR: u8 = 2;
/// The gateway could not serve.
const FAILED: u8 = 125;

#[expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "this is the program's voice"
)]
fn main() -> ExitCode {
    match config::parse(std::env::args_os().skip(1)) {
        Ok(Request::Version) => {
            println!("outgate-gateway {}", env!("CARGO_PKG_VERSION"));
            ExitCode::SUCCESS
        }
        Ok(Request::Help) => {
            println!("{}", config::USAGE);
            ExitCode::SUCCESS
        }
        Ok(Request::Authority(request)) => authority::run(&request),
        Ok(Request::Trial) => match outgate_gateway::trial(std::io::stdout()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("outgate-gateway: {error}");
                ExitCode::from(FAILED)
            }
        },
        Ok(Request::Serve(private)) => ended(outgate_gateway::serve_private(&private)),
        Ok(Request::Share(shared)) => ended(outgate_gateway::serve_shared(&shared)),
        Err(message) => {
            eprintln!("outgate-gateway: {message}\n{}", config::USAGE);
            ExitCode::from(USAGE_ERROR)
        }
    }
}

#[expect(clippy::print_stderr, reason = "this is the program's voice")]
fn ended(result: Result<(), outgate_gateway::ServeError>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("outgate-gateway: {}", outgate_gateway::chain(&error));
            ExitCode::from(FAILED)
        }
    }
}
