//! Faults of a policy: what is wrong, which value, where, and how to repair it.
//!
//! Messages are sentences without capital and full stop. Nothing is printed
//! here, and nothing in this file knows the grammar.

use std::fmt;

use crate::limits::ERRORS_MAX;

/// One fault, or one warning, with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyError {
    pub(crate) place: String,
    pub(crate) line: u32,
    pub(crate) column: u32,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
}

impl PolicyError {
    /// The source the fault is in.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// Line of the source, from 1.
    pub fn line(&self) -> u32 {
        self.line
    }

    /// Column of the line, in characters, from 1.
    pub fn column(&self) -> u32 {
        self.column
    }

    /// What is wrong.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// How to repair it, where that can be said.
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }
}

impl fmt::Display for PolicyError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            place,
            line,
            column,
            message,
            hint,
        } = self;
        match line {
            0 => write!(out, "{place}: {message}")?,
            _ => write!(out, "{place}:{line}:{column}: {message}")?,
        }
        if let Some(hint) = hint {
            write!(out, "\n  hint: {hint}")?;
        }
        Ok(())
    }
}

impl std::error::Error for PolicyError {}

/// Every fault of a policy, in the order of its sources. Never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyErrors(pub(crate) Vec<PolicyError>);

impl PolicyErrors {
    /// These, and others behind them.
    pub(crate) fn and(mut self, others: Self) -> Self {
        self.0.extend(others.0);
        self.0.truncate(ERRORS_MAX);
        self
    }

    /// The faults, in the order of the sources.
    pub fn iter(&self) -> std::slice::Iter<'_, PolicyError> {
        self.0.iter()
    }
}

impl<'a> IntoIterator for &'a PolicyErrors {
    type Item = &'a PolicyError;
    type IntoIter = std::slice::Iter<'a, PolicyError>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl fmt::Display for PolicyErrors {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, error) in self.0.iter().enumerate() {
            if index > 0 {
                out.write_str("\n")?;
            }
            error.fmt(out)?;
        }
        Ok(())
    }
}

impl std::error::Error for PolicyErrors {}
