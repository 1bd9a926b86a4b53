//! What `outgate audit` says: lines on standard output without controls, errors
//! on standard error. Nothing that a record holds reaches a terminal as it is.

use std::io::{self, IsTerminal, Write};

use outgate_policy::printable;

/// One line on standard output, made printable.
pub(crate) fn line(text: &str) {
    // Nobody may read any more.
    drop(writeln!(io::stdout().lock(), "{}", printable(text)));
}

/// An error.
pub(crate) fn error(message: &str) {
    drop(writeln!(
        io::stderr().lock(),
        "outgate: {}",
        printable(message)
    ));
}

/// A remark beside the output.
pub(crate) fn note(message: &str) {
    drop(writeln!(
        io::stderr().lock(),
        "outgate: {}",
        printable(message)
    ));
}

/// Whether people see standard output, in colour.
pub(crate) fn is_coloured() -> bool {
    let colours = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    colours && io::stdout().is_terminal()
}
