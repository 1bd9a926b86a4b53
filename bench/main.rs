//! Measures what outgate costs: every row is a run inside beside the same run
//! bare, taken in turns. Drives the real programs, as a person would start them,
//! with the C programs of `workloads`; knows nothing of how outgate works inside.
//! How to read the table: README.md.

mod comparison;
mod counters;
mod hyperscan;
mod lab;
mod latency;
mod load;
mod local;
mod machine;
mod opened;
mod peers;
mod report;
mod scan;
mod secure;
mod startup;
mod statistics;

use std::error::Error;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use lab::{Amount, Lab, Priority};
use report::Report;

/// What every step here answers: any fault ends the run with its message.
type Outcome<T> = Result<T, Box<dyn Error>>;

/// A part of the bench: its name for `--only`, its heading, and what it does.
type Part = (
    &'static str,
    &'static str,
    fn(&Lab, &mut Report) -> Outcome<()>,
);

const PARTS: [Part; 7] = [
    ("startup", "Starting a command", startup::measure),
    ("counters", "Held calls, counted", counters::measure),
    ("latency", "Connections on loopback", latency::measure),
    ("local", "Local work", local::measure),
    ("scan", "The scan of content", scan::measure),
    ("load", "Side by side under load", load::measure),
    ("opened", "Side by side inside TLS", opened::measure),
];

const HELP: &str = "\
cargo bench -- [--quick] [--only PART] [--json FILE] [--gate]

  --quick      few samples, under 20 s: does it still work, not how fast it is
  --only PART  startup, counters, latency, local, scan, load or opened
  --polite     ordinary priority, also as root: other work goes on, and shows
  --json FILE  write every figure to FILE
  --gate       end with status 1 when a target is missed beyond doubt

OUTGATE_BIN_DIR    take outgate and outgate-gateway from this directory
OUTGATE_MUSL_DIR   also measure the start-up of a musl build in this directory
";

/// What was asked for.
struct Options {
    amount: Amount,
    priority: Priority,
    only: Option<String>,
    json: Option<PathBuf>,
    gate: Gate,
}

/// Whether a missed target is a failure.
#[derive(PartialEq, Eq)]
enum Gate {
    Open,
    Shut,
}

/// What to do.
enum Errand {
    Measure(Options),
    Explain(&'static str),
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().collect();
    if let Some(done) = secure::errand(&words) {
        return done.map_or_else(failed, |()| ExitCode::SUCCESS);
    }
    let outcome = match errand(std::env::args().skip(1)) {
        Ok(Errand::Measure(options)) => measure(&options),
        Ok(Errand::Explain(text)) => say(text).map(|()| ExitCode::SUCCESS),
        Err(error) => Err(error),
    };
    outcome.unwrap_or_else(failed)
}

#[expect(clippy::needless_pass_by_value, reason = "what a failure gives away")]
fn failed(error: Box<dyn Error>) -> ExitCode {
    // Nothing is left to tell it to when standard error is gone.
    drop(writeln!(std::io::stderr(), "bench: {error}"));
    ExitCode::FAILURE
}

/// Reads the command line. Cargo adds `--bench` to what `cargo bench` runs.
fn errand(mut arguments: impl Iterator<Item = String>) -> Outcome<Errand> {
    let mut options = Options {
        amount: Amount::Full,
        priority: Priority::Real,
        only: None,
        json: None,
        gate: Gate::Open,
    };
    let mut is_bench = false;
    while let Some(argument) = arguments.next() {
        let mut value = || {
            arguments
                .next()
                .ok_or(format!("`{argument}` needs a value"))
        };
        match argument.as_str() {
            "--bench" => is_bench = true,
            "--quick" => options.amount = Amount::Quick,
            "--polite" => options.priority = Priority::Ordinary,
            "--gate" => options.gate = Gate::Shut,
            "--only" => options.only = Some(value()?),
            "--json" => options.json = Some(value()?.into()),
            "--help" | "-h" => return Ok(Errand::Explain(HELP)),
            other if is_bench => return Err(format!("unknown option `{other}`\n{HELP}").into()),
            _ => {}
        }
    }
    if let Some(only) = &options.only
        && !PARTS.iter().any(|(name, ..)| name == only)
    {
        return Err(format!("unknown part `{only}`\n{HELP}").into());
    }
    if !is_bench {
        return Ok(Errand::Explain(
            "nothing is measured by tests: cargo bench\n",
        ));
    }
    Ok(Errand::Measure(options))
}

fn measure(options: &Options) -> Outcome<ExitCode> {
    let lab = Lab::prepare(options.amount, options.priority)?;
    let mut report = Report::new(machine::Machine::look(&lab));
    say(&report.head())?;
    for (name, heading, part) in PARTS {
        if options.only.as_ref().is_some_and(|only| only != name) {
            continue;
        }
        report.begin(heading);
        part(&lab, &mut report)?;
        say(&report.section())?;
    }
    say(&report.foot())?;
    if let Some(file) = &options.json {
        std::fs::write(file, report.json())
            .map_err(|error| format!("{}: {error}", file.display()))?;
    }
    Ok(if report.holds() || options.gate == Gate::Open {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn say(text: &str) -> Outcome<()> {
    let mut output = std::io::stdout().lock();
    output.write_all(text.as_bytes())?;
    output.flush()?;
    Ok(())
}
