//! `outgate approve`: what runs started with `--ask` ask, and what a person, or a program of
//! theirs, says to it. What a rule may be, the run's launcher says.

mod answer;
mod decider;
mod desk;
mod kept;
mod known;
mod plain;
mod screen;

use std::io::{self, BufRead as _, BufReader, IsTerminal as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;
use std::time::Duration;

use clap::{Args, ValueHint};

use crate::report;
use crate::runs::FAILED;
use desk::Desk;
use kept::KeptRules;

pub(crate) const EXAMPLES: &str = "\
Examples:
  outgate run --name agent --ask -- agent        in one terminal
  outgate approve                                in another: questions of all your runs
  outgate approve agent --always agent.toml      `always` adds a rule to this file
  outgate approve agent --with ./decide          a program answers
  outgate run --ask-with ~/bin/decide -- agent      the same, started by the run itself

On a terminal the questions are a list with keys, which it names; elsewhere, and with --plain,
they are lines, and so are the answers, each with the number of its question:
  1 once        this one request
  1 run         what the narrow rule allows, as long as the run
  1 10m         the same for a time
  1 host run    the rule for all of the host, in the place of the narrow one
  1 always      as `run`, and a line in the file of --always
  1 deny        no, and it is not asked again in this run
A connection, a socket or a port is no request: `once` and `host` are not for them.

A program gets one JSON object on a line for each question, and answers with one on a line:
  {\"id\":1,\"run\":\"agent\",\"asks\":\"GET https://api.example.org/x\",\"narrow\":\"GET https://api.example.org/x\",
   \"host\":\"https://api.example.org\",\"program\":\"/usr/bin/curl\",\"pid\":7,\"parents\":[\"/bin/sh\"]}
  {\"id\":1,\"answer\":\"deny\"}      or \"once\", \"run\", a time as \"10m\"; \"rule\":\"host\" for that of the host

What a command proposes (http://outgate.invalid/ inside of its run) has \"says\" besides: its own words, and no more.
It may say yes only to what no rule decides: what a rule denies is never asked.";

/// Longest line of a person or a program.
const LINE_BYTES_MAX: u64 = 16 * 1024;
/// Lines that wait to be taken, at most: who writes faster waits.
const LINES_MAX: usize = 16;
/// How often runs are heard.
const HEAR: Duration = Duration::from_millis(50);

/// Answer what runs with --ask ask
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Approve {
    /// The run, as `outgate ps` shows it [default: all of yours]
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// Where `always` adds rules: a policy file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "with")]
    always: Option<PathBuf>,
    /// Have a program answer: run by `sh -c`, with questions on its standard input
    #[arg(long, value_name = "CMD")]
    with: Option<String>,
    /// Lines in the place of a screen; so it is where there is no terminal
    #[arg(long)]
    plain: bool,
    /// The name of the run that started this
    #[arg(long, value_name = "NAME", hide = true, requires = "with")]
    run: Option<String>,
    /// And its socket, as a descriptor
    #[arg(long, value_name = "NUMBER", hide = true, requires = "run")]
    handoff_fd: Option<i32>,
}

/// Watches and answers until nobody is there to answer.
pub(crate) fn approve(options: Approve) -> ExitCode {
    match served(options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            report::wrong(&message);
            ExitCode::from(FAILED)
        }
    }
}

fn served(options: Approve) -> Result<(), String> {
    let Approve {
        name,
        always,
        with,
        plain,
        run,
        handoff_fd,
    } = options;
    let always = always.map(KeptRules::open).transpose()?;
    match (with, handoff_fd) {
        (Some(command), Some(number)) => decider::of_run(&command, number, run),
        (Some(command), None) => decider::of_user(&command, Desk::new(name, always)),
        (None, _) if plain || !has_screen() => plain::serve(Desk::new(name, always)),
        (None, _) => screen::serve(Desk::new(name, always)),
    }
}

/// Whether there is a terminal that can show more than lines.
fn has_screen() -> bool {
    let is_dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
    !is_dumb && io::stdin().is_terminal() && io::stdout().is_terminal()
}

/// The lines of somebody, as they come; each whole and not too long.
fn lines(from: impl io::Read + Send + 'static) -> Receiver<String> {
    let (sender, lines) = sync_channel(LINES_MAX);
    thread::spawn(move || {
        let mut from = BufReader::new(from);
        loop {
            let mut line = Vec::new();
            let read = io::Read::take(&mut from, LINE_BYTES_MAX).read_until(b'\n', &mut line);
            if !matches!(read, Ok(1..)) || line.last() != Some(&b'\n') {
                return;
            }
            if sender
                .send(String::from_utf8_lossy(&line).into_owned())
                .is_err()
            {
                return;
            }
        }
    });
    lines
}
