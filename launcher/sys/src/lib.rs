//! The system calls outgate needs and no crate offers, one safe function each:
//! owned descriptors out, every return value checked, no policy inside.
//!
//! The only crate of the project that may write `unsafe`. Each block holds one
//! operation and says why it is sound.

#![allow(unsafe_code, reason = "the one place for raw system calls")]
#![warn(clippy::arithmetic_side_effects)]

pub mod alarm;
pub mod attributes;
pub mod descriptor;
pub mod landlock;
pub mod lease;
pub mod memory;
pub mod pidfd;
pub mod process;
mod raw;
pub mod schedule;
pub mod seccomp;
pub mod socket;
pub mod spawn;
pub mod terminal;

pub use std::io::Error as SysError;

/// The calling thread's last error, as the system call left it.
fn last_error() -> SysError {
    SysError::last_os_error()
}

/// Turns a `-1` return into the thread's error.
fn check(result: libc::c_long) -> Result<libc::c_long, SysError> {
    if result < 0 {
        Err(last_error())
    } else {
        Ok(result)
    }
}
