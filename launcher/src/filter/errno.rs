//! The error numbers with which the filter refuses. They are the same on both
//! architectures. Names and numbers only.

/// An error number and its name (errno(3)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Errno {
    /// Its name, `EPERM`.
    pub name: &'static str,
    /// Its positive number.
    pub number: u32,
}

const fn errno(name: &'static str, number: u32) -> Errno {
    Errno { name, number }
}

pub(super) const EPERM: Errno = errno("EPERM", 1);
pub(super) const EACCES: Errno = errno("EACCES", 13);
pub(super) const ENOSYS: Errno = errno("ENOSYS", 38);
pub(super) const ENOPROTOOPT: Errno = errno("ENOPROTOOPT", 92);
pub(super) const EPROTONOSUPPORT: Errno = errno("EPROTONOSUPPORT", 93);
pub(super) const EOPNOTSUPP: Errno = errno("EOPNOTSUPP", 95);
pub(super) const EAFNOSUPPORT: Errno = errno("EAFNOSUPPORT", 97);
