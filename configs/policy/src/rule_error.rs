//! What is wrong with a rule, and where in its text.

/// A fault or a warning of a rule: where in its text (in bytes), what, and the repair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RuleError {
    pub(crate) offset: usize,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
}

impl RuleError {
    pub(crate) fn new(offset: usize, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            offset,
            message: message.into(),
            hint: Some(hint.into()),
        }
    }

    pub(crate) fn shifted(self, by: usize) -> Self {
        Self {
            offset: self.offset + by,
            ..self
        }
    }
}
