//! Who wrote a source of a policy, and what a path in it is for.

/// Which list of the file system a path belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write,
    Deny,
}

/// Who wrote a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Author {
    /// The user: what it names must exist.
    User,
    /// We: it holds for many machines, so what is absent is left out.
    Preset,
    /// A project: it may narrow what the user grants, and nothing else.
    Project,
    /// `outgate lock`: it says what may be reached, and nothing else.
    Lock,
}
