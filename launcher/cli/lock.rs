//! `outgate lock`: what a step of a pipeline reaches, in a file beside the code.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueHint};
use outgate_policy::{Learner, Learnt, Lock};
use outgate_record::{Outcome, Record};

use crate::failure::{Failure, ended};
use crate::learn::{Lesson, known, learnt, taught};
use crate::lock_file::FILE;
use crate::report;
use crate::targets::{Target, read};

pub(crate) const EXAMPLES: &str = "\
Examples:
  outgate lock -- make deps                        run it, and write what it reached
  outgate lock --step test -- make test            another step, into the same file
  outgate lock --from last                         the same from a record
  outgate run --locked -- make deps                deny everything that is not in it
  outgate run --locked --step test -- make test    and what other steps reached

The command runs as with `outgate learn`: everything public is let through and looked into, and
what rules deny, credentials and private addresses stay refused. What was refused is not locked.
The file is a policy that says hosts, methods, paths and keys of queries, sorted, without times
and counts: it changes when what is reached does. The lines of the step are replaced, those of
others stay.

Exit status: the command's own; with --from, 0 the file was written; 2 bad usage or a bad file.";

/// The step that is meant where none is named.
pub(crate) const STEP: &str = "main";

/// Write what a command reaches into a file that holds it to that
#[derive(Debug, Args)]
pub(crate) struct LockCommand {
    #[command(flatten)]
    pub(crate) lesson: Lesson,
    /// The step that this is
    #[arg(long, value_name = "NAME", default_value = STEP)]
    pub(crate) step: String,
    /// The file
    #[arg(short = 'o', long = "output", value_name = "FILE", default_value = FILE)]
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) output: PathBuf,
}

/// Locks a command, or what records say.
pub(crate) fn lock(options: LockCommand) -> ExitCode {
    let policy = match known(&options.lesson.policy, None) {
        Ok(policy) => policy,
        Err(error) => return report::failure(&error),
    };
    // As they are before the command runs, which may write both.
    let before = Target::of(&options.output).and_then(|target| {
        let lock = held(&options.output)?;
        // A name that no step can have is told before the command runs.
        let mut named = lock.clone();
        let put = named.put(&options.step, &Learnt::default());
        put.map_err(|error| wrong(&options.output, &error.to_string()))?;
        Ok((target, lock))
    });
    let (target, mut lock) = match before {
        Ok(before) => before,
        Err(failure) => return ended(Err(failure)),
    };
    let step = options.step;
    let taught = match taught(options.lesson, &policy) {
        Ok(taught) => taught,
        Err(failed) => return failed,
    };
    taught.end(|records, is_meant| {
        let is_let_by = |record: &Record<'_>| is_meant(record) && is_allowed(record);
        let learnt = if records.is_empty() {
            Learnt::default()
        } else {
            learnt(Learner::default(), records, &is_let_by)?
        };
        let put = lock.put(&step, &learnt);
        put.map_err(|error| wrong(&target.shown, &error.to_string()))?;
        target.put(&lock.text())?;
        report::note(&format!(
            "{}: what `{step}` reaches is locked; read it, and hold the command to it with \
             `outgate run --locked`",
            target.shown.display()
        ));
        Ok(ExitCode::SUCCESS)
    })
}

/// Whether it is about what was let by.
fn is_allowed(record: &Record<'_>) -> bool {
    record.verdict == Outcome::Allow && !record.is_monitored()
}

/// The lock that is there; an empty one where none is.
fn held(path: &Path) -> Result<Lock, Failure> {
    let text = read(path)?;
    if text.is_empty() {
        return Ok(Lock::default());
    }
    Lock::parse(&text).map_err(|error| wrong(path, &error.to_string()))
}

fn wrong(path: &Path, what: &str) -> Failure {
    Failure::Words(
        format!("`{}`: {what}", path.display()),
        "name a file that `outgate lock` wrote, or a new one",
    )
}
