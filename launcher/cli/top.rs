//! `outgate top`: what a shared gateway does now, as its live page shows it, on a terminal:
//! alarms, questions, findings, denials by groups, sandboxes, grants, quotas, and what happens.
//! Asks the gateway's admin socket and changes nothing.

mod lines;
mod screen;

use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueHint};
use serde_json::Value;

use crate::gateway_status::{asked, beside, unasked};
use crate::report;

const EXAMPLES: &str = "\
Examples:
  outgate top /run/user/1000/gate
  outgate top /run/user/1000/gate --plain | grep ALARM

On a terminal it goes on until `q`; j and k, Page Up and Page Down scroll. Elsewhere, and with
--plain, it says once how things are, as lines. The gateway's own user and root may ask.
Exit status: 0, or 1 where no gateway answers.";

/// Watch what a shared gateway does: sandboxes, denials, alarms, questions
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Top {
    /// The socket of the gateway, as in `outgate run --gateway`
    #[arg(value_name = "SOCKET", value_hint = ValueHint::FilePath, required_unless_present = "admin")]
    socket: Option<PathBuf>,
    /// Its admin socket, where that lies elsewhere
    #[arg(long, value_name = "SOCKET", value_hint = ValueHint::FilePath)]
    admin: Option<PathBuf>,
    /// Say it once, as lines, in the place of a screen; so it is where there is no terminal
    #[arg(long)]
    plain: bool,
}

/// Shows it.
pub(crate) fn top(options: &Top) -> ExitCode {
    let socket = options.socket.as_deref().map(beside);
    let Some(path) = options.admin.clone().or(socket) else {
        return report::wrong("name the socket of the gateway");
    };
    // What is wrong from the beginning is said before anything is drawn over it.
    let overview = match overview(&path) {
        Ok(overview) => overview,
        Err(error) => return unasked(&path, &error),
    };
    if options.plain || !has_screen() {
        for line in lines::all(&overview) {
            report::line(&line.text);
        }
        return ExitCode::SUCCESS;
    }
    match screen::serve(&path, &overview) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => unasked(&path, &error),
    }
}

fn has_screen() -> bool {
    let is_dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
    !is_dumb && io::stdin().is_terminal() && io::stdout().is_terminal()
}

fn overview(path: &Path) -> io::Result<Value> {
    json(path, "GET /overview")
}

/// What happened from a number on, or from now on.
fn events(path: &Path, from: Option<u64>) -> io::Result<Value> {
    let from = from.map(|from| format!("?from={from}")).unwrap_or_default();
    json(path, &format!("GET /events{from}"))
}

fn json(path: &Path, question: &str) -> io::Result<Value> {
    let answer = asked(path, question)?;
    let invalid = |_| io::Error::new(io::ErrorKind::InvalidData, "its answer is no JSON");
    serde_json::from_str(&answer).map_err(invalid)
}
