//! What a test of a policy expects.

/// What a test expects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// It is allowed.
    Allow,
    /// It is denied.
    Deny,
}

/// The words of the document.
pub(crate) const EXPECTED: [(&str, Expected); 2] =
    [("allow", Expected::Allow), ("deny", Expected::Deny)];

impl Expected {
    /// The word of the document.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Deny => "deny",
        }
    }
}
