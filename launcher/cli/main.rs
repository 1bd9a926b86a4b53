//! The program `outgate`: reads the command line and the environment, runs a
//! command confined, prints what a person needs, and ends with its status.

#![forbid(unsafe_code)]

mod accounts;
mod added;
mod approve;
mod args;
mod ca;
mod check;
mod clients;
mod doubts;
mod duration;
mod failure;
mod gateway;
mod gateway_check;
mod gateway_limits;
mod gateway_page;
mod gateway_status;
mod given_files;
mod grants;
mod last;
mod learn;
mod leftovers;
mod lock;
mod lock_file;
mod log_format;
mod manual;
mod offline;
mod own_words;
mod past;
mod path;
mod policy;
mod policy_check;
mod policy_diff;
mod policy_options;
mod record;
mod replay;
mod report;
mod rotation;
mod run;
mod run_options;
mod runs;
mod schema;
mod show;
mod suggested;
mod targets;
mod token;
mod top;
mod trust;
mod trusted;
mod up;
mod upstream;
mod usage;
mod why;
mod why_options;

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser};

fn main() -> ExitCode {
    if let Some(status) = sweep() {
        return status;
    }
    let words = usage::words(std::env::args_os());
    let arguments = match args::Arguments::try_parse_from(&words) {
        Ok(arguments) => arguments,
        Err(error) => {
            let advice = usage::advice(&error, &words, is_program);
            return report::usage(&error, advice.as_deref());
        }
    };
    match arguments.command {
        args::Command::Run(options) => run::run(*options),
        args::Command::Up(options) => up::up(&options),
        args::Command::Trust(options) => trust::trust(&options),
        args::Command::Learn(options) => learn::learn(*options),
        args::Command::Lock(options) => lock::lock(*options),
        args::Command::Why(options) => why::why(&options),
        args::Command::Ps => runs::ps(&token::of_ps()),
        args::Command::Top(options) => top::top(&options),
        args::Command::Kill(named) => runs::kill(&named),
        args::Command::Inspect(named) => runs::inspect(&named),
        args::Command::Approve(options) => approve::approve(options),
        args::Command::Grant(options) => grants::grant(&options),
        args::Command::Revoke(options) => grants::revoke(&options),
        args::Command::Reload(named) => grants::reload(&named),
        args::Command::Gateway(options) => gateway::gateway(&options),
        args::Command::Token(options) => token::token(&options),
        args::Command::Leftovers(options) => leftovers::leftovers(&options),
        args::Command::Ca(options) => ca::ca(&options.command),
        args::Command::Policy(options) => policy::policy(&options),
        args::Command::Scan(_) => offline::scan(),
        args::Command::Audit(_) => offline::audit(),
        args::Command::Check(options) => check::check(&options),
        args::Command::Completions(options) => {
            manual::completions(&options, args::Arguments::command())
        }
        args::Command::Man(options) => manual::manual(&options, args::Arguments::command()),
    }
}

/// Whether a word names a program, by a path or on `PATH`.
fn is_program(word: &str) -> bool {
    let on = std::env::var_os("PATH").unwrap_or_default();
    let mut all = std::env::split_paths(&on).map(|directory| directory.join(word));
    all.any(|path| path.is_file())
}

/// The cleaner's errand: see `outgate_launcher::private`.
fn sweep() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next()? != outgate_launcher::private::SWEEP {
        return None;
    }
    if let (Some(directory), Some(meant)) = (arguments.next(), arguments.next()) {
        outgate_launcher::private::sweep(directory.as_ref(), &meant);
    }
    Some(ExitCode::SUCCESS)
}
