//! How a run speaks to the person who started it.

/// What the supervisor tells the person who started it.
pub trait Voice: Send {
    /// One line for standard error.
    fn say(&mut self, line: &str);
}
