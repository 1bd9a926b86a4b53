//! Why a command of `outgate` about policies could not do what it is for.

use std::process::ExitCode;

use outgate_launcher::run::RunError;

use crate::report;

/// What went wrong, and what to do.
pub(crate) enum Failure {
    Policy(RunError),
    Words(String, &'static str),
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Self {
        Self::Policy(error)
    }
}

/// The status to end with, told if it is a failure.
pub(crate) fn ended(done: Result<ExitCode, Failure>) -> ExitCode {
    match done {
        Ok(status) => status,
        Err(Failure::Policy(error)) => report::failure(&error),
        Err(Failure::Words(message, hint)) => report::wrong_with_hint(&message, hint),
    }
}
