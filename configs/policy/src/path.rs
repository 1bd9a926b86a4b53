//! Request targets: one canonical form and every reading of it.

use std::fmt;

/// A request target that may be judged and, unchanged, sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestTarget {
    text: String,
}

/// Why a text is not a request target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetError(String);

impl fmt::Display for TargetError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for TargetError {}

impl RequestTarget {
    /// Makes a target from the path and query of a request, or from `*`.
    ///
    /// # Errors
    /// The text is not a path, or no two servers would agree on what it means.
    pub fn parse(_path_and_query: &str) -> Result<Self, TargetError> {
        todo!()
    }

    /// The canonical form: the bytes that were judged and that are to be sent.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The canonical path, without query.
    pub fn path(&self) -> &str {
        self.text
            .split_once('?')
            .map_or(&self.text, |(path, _)| path)
    }
}

impl fmt::Display for RequestTarget {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.text)
    }
}
