//! The options of `outgate audit`, as clap reads them: in `outgate` for its help and
//! completions, in `outgate-report` to obey them.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum, ValueHint};

const EXAMPLES: &str = "\
Examples:
  outgate audit tail -f                          decisions of the latest run, as they are made
  outgate audit query --verdict deny             what was denied in it
  outgate audit report -o report.html            where data went, on one page
  outgate audit verify last                      was the record altered?
  outgate audit export --format har last         for programs that read requests

A FILE is a record, compressed with gzip or not, a directory of them, or `last`: the record of
the latest run.";

/// Read, search, verify, show and export records of what was decided
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Audit {
    /// Which build starts this one
    #[arg(long, value_name = "VERSION", hide = true)]
    pub(crate) build: Option<String>,
    /// Where runs leave their records
    #[arg(long, value_name = "DIR", hide = true)]
    pub(crate) records: Option<PathBuf>,
    #[command(subcommand)]
    pub(crate) command: AuditCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AuditCommand {
    /// Show the last decisions, and those that follow
    Tail(Tail),
    /// Find decisions by verdict, host, program, kind, time or rule
    Query(Query),
    /// Make one HTML page of a record: where data went, what was denied, what was found
    Report(Report),
    /// Summarise records for a pipeline: what was reached, denied and found, as Markdown, JSON or
    /// SARIF
    Summary(Summary),
    /// Say whether a record is as it was written
    Verify(Verify),
    /// Write a record in a form that other programs read
    Export(Export),
}

const TAIL_EXAMPLES: &str = "\
Examples:
  outgate audit tail                             the last ten decisions of the latest run
  outgate audit tail -f                          and those that follow
  outgate audit tail -f --verdict deny ~/outgate.jsonl

Begun with `last`, it goes on in the next file where a record has several.";

/// Show the last decisions, and those that follow
#[derive(Debug, Args)]
#[command(after_help = TAIL_EXAMPLES)]
pub(crate) struct Tail {
    /// The record; without it, that of the latest run
    #[arg(value_name = "FILE|last", value_hint = ValueHint::FilePath)]
    pub(crate) file: Option<PathBuf>,
    /// Go on with decisions as they are made
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// How many of the last ones
    #[arg(
        short = 'n',
        long = "count",
        value_name = "COUNT",
        default_value_t = 10
    )]
    pub(crate) count: usize,
    #[command(flatten)]
    pub(crate) filter: Filter,
}

const QUERY_EXAMPLES: &str = "\
Examples:
  outgate audit query --verdict deny             what the latest run was denied
  outgate audit query --host '*.example.org' --kind request ~/outgate.jsonl
  outgate audit query --program curl --since 1h --json all.jsonl | jq .path
  outgate audit query --kind finding --kind canary ~/.local/state/outgate/runs
  outgate audit query --since 1d --host a.example.org /var/log/outgate   rotated and compressed

Exit status: 0 something was found, 1 nothing was, 2 bad usage or something could not be read.";

/// Find decisions by verdict, host, program, kind, time or rule
#[derive(Debug, Args)]
#[command(after_help = QUERY_EXAMPLES)]
pub(crate) struct Query {
    #[command(flatten)]
    pub(crate) files: Files,
    /// At most that many, the last ones
    #[arg(short = 'n', long = "count", value_name = "COUNT")]
    pub(crate) count: Option<usize>,
    #[command(flatten)]
    pub(crate) filter: Filter,
}

/// Which decisions, and how they are written.
#[derive(Debug, Args)]
pub(crate) struct Filter {
    /// Only those with this verdict
    #[arg(long, value_name = "VERDICT")]
    pub(crate) verdict: Option<Verdict>,
    /// Only those about this host: a name, an address, or `*.` and a name
    #[arg(long, value_name = "HOST")]
    pub(crate) host: Vec<String>,
    /// Only those of this program: its path, or the last part of it
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) program: Vec<String>,
    /// Only those of this kind: request, connect, tunnel, dns, finding, canary, flow
    #[arg(long, value_name = "KIND")]
    pub(crate) kind: Vec<String>,
    /// Only those made by a rule with this text in it, or from this place
    #[arg(long, value_name = "TEXT")]
    pub(crate) rule: Option<String>,
    /// Only those of the run with this name
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Only those from this time on: 2026-11-21T12:00 (UTC), or 30s, 10m, 2h, 7d ago
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<String>,
    /// Only those up to this time
    #[arg(long, value_name = "TIME")]
    pub(crate) until: Option<String>,
    /// Print records as they are: one JSON object a line
    #[arg(long)]
    pub(crate) json: bool,
}

/// What was decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Verdict {
    /// It was allowed
    Allow,
    /// It was denied
    Deny,
    /// Nothing was decided: what was, is stated
    Note,
    /// Rules deny it, and a run with --monitor let it through; it is among what was allowed too
    Monitor,
}

/// Records to read.
#[derive(Debug, Args)]
pub(crate) struct Files {
    /// Records, or directories of them; without any, the record of the latest run
    ///
    /// Files of one record come in the order in which they were written.
    #[arg(value_name = "FILE|DIR|last", value_hint = ValueHint::AnyPath)]
    pub(crate) paths: Vec<PathBuf>,
}

const REPORT_EXAMPLES: &str = "\
Examples:
  outgate audit report -o report.html            of the latest run
  outgate audit report -o week.html ~/.local/state/outgate/runs
  outgate audit report ~/outgate.jsonl > report.html

The page needs nothing beside itself: no script, no font, no network.";

/// Make one HTML page of a record: where data went, what was denied, what was found
#[derive(Debug, Args)]
#[command(after_help = REPORT_EXAMPLES)]
pub(crate) struct Report {
    #[command(flatten)]
    pub(crate) files: Files,
    /// Write it to FILE instead of standard output, in the place of what is there
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
}

const SUMMARY_EXAMPLES: &str = "\
Examples:
  outgate audit summary >> \"$GITHUB_STEP_SUMMARY\"     of the latest run, as Markdown
  outgate audit summary --format sarif -o outgate.sarif job-*.jsonl
  outgate audit summary --format json --fail-on denied --fail-on finding last

What was denied is grouped: what differs in ids only is one entry, with the smallest rules that
would allow it. Names and paths are the command's own words; they are written so that neither
Markdown, HTML nor commands of pipelines (`::error::`, `##[...]`) come of them.

Exit status: 0, or 1 when something was there that --fail-on names; 2 bad usage or a record
could not be read.";

/// Summarise records for a pipeline
#[derive(Debug, Args)]
#[command(after_help = SUMMARY_EXAMPLES)]
pub(crate) struct Summary {
    #[command(flatten)]
    pub(crate) files: Files,
    /// The form
    #[arg(long, value_name = "FORM", default_value = "markdown")]
    pub(crate) format: SummaryFormat,
    /// End with status 1 when there is any of these, or when the record was altered
    #[arg(long = "fail-on", value_name = "WHAT")]
    pub(crate) fail_on: Vec<FailOn>,
    /// Write it to FILE instead of standard output, in the place of what is there
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
}

/// Forms of a summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SummaryFormat {
    /// Markdown, as code hosts show it
    Markdown,
    /// One JSON document
    Json,
    /// SARIF 2.1.0
    Sarif,
}

/// What a pipeline is to fail on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FailOn {
    /// Something was denied, or rules deny it and a run with --monitor let it through
    Denied,
    /// A credential was on its way out, held back or not, or a canary left its place
    Finding,
}

const VERIFY_EXAMPLES: &str = "\
Examples:
  outgate audit verify last
  outgate audit verify outgate.jsonl.1 outgate.jsonl   files of one record, the oldest first
  outgate audit verify /var/log/outgate          all files of a directory, compressed or not
  outgate audit verify --head 5b1c0d... outgate.jsonl      is what I saw earlier still in it?

Each line holds the hash of the one before it. Whoever can write the whole file can make a new
chain; keep the head that is printed somewhere else, and --head finds out.

Exit status: 0 it is as it was written, 1 it is not, 2 bad usage or it could not be read.";

/// Say whether a record is as it was written
#[derive(Debug, Args)]
#[command(after_help = VERIFY_EXAMPLES)]
pub(crate) struct Verify {
    #[command(flatten)]
    pub(crate) files: Files,
    /// The hash of a line that must be in it, as an earlier verification printed it
    #[arg(long, value_name = "HASH")]
    pub(crate) head: Vec<String>,
    /// The key of a run that must be in it, as its first record and the end of the run named it
    #[arg(long, value_name = "KEY")]
    pub(crate) key: Vec<String>,
    /// A run whose end is not in the record is no fault: it was killed, or goes on
    #[arg(long)]
    pub(crate) open_end: bool,
}

const EXPORT_EXAMPLES: &str = "\
Examples:
  outgate audit export --format har last > requests.har
  outgate audit export --format ocsf ~/outgate.jsonl > events.jsonl

har   HTTP Archive 1.2: every request, the denied ones with the answer they got
ocsf  Open Cybersecurity Schema Framework 1.3: one event a line";

/// Write a record in a form that other programs read
#[derive(Debug, Args)]
#[command(after_help = EXPORT_EXAMPLES)]
pub(crate) struct Export {
    /// The form
    #[arg(long, value_name = "FORM")]
    pub(crate) format: Format,
    #[command(flatten)]
    pub(crate) files: Files,
    /// Write it to FILE instead of standard output, in the place of what is there
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
}

/// Forms that other programs read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// HTTP Archive 1.2
    Har,
    /// Open Cybersecurity Schema Framework 1.3
    Ocsf,
}
