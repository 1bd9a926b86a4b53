//! What a held call asks for: its arguments copied once, with a bound, into
//! values. Only the copies are judged and used.

use std::ffi::{CStr, CString};
use std::os::fd::AsRawFd;

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, AtFlags};
use nix::sys::time::TimeSpec;

use super::limits::{NAME_BYTES, PATH_BYTES, VALUE_BYTES_MAX};
use crate::notification::Notification;

/// Nanoseconds that stand for the present time (utimensat(2)).
const NOW: i64 = 0x3fff_ffff;
/// Microseconds in a second.
const MICROSECONDS: i64 = 1_000_000;

/// Whether a symbolic link at the end of a path is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FollowLast {
    Followed,
    Itself,
}

/// What the caller names.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NamedFile {
    /// A path, from a directory of the caller's.
    Path(i32, Vec<u8>, FollowLast),
    /// What a directory argument stands for, as a whole (`AT_EMPTY_PATH`).
    Directory(i32),
    /// A descriptor of the caller's.
    Descriptor(i32),
}

/// What a call is for.
#[derive(Debug)]
pub(super) enum AttributeRequest {
    Change(AttributeChange),
    /// To read something, into memory of the caller's.
    Read(Read, Buffer),
}

/// What it wants to read.
#[derive(Debug)]
pub(super) enum Read {
    Link,
    Attribute(CString),
    AttributeNames,
}

/// Where it wants that: an address, and the bytes there are room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Buffer {
    pub(super) address: u64,
    pub(super) size: usize,
}

/// What it wants changed.
#[derive(Debug)]
pub(super) enum AttributeChange {
    Mode(u32),
    Owner(Option<u32>, Option<u32>),
    Times(TimeSpec, TimeSpec),
    Attribute(CString, Vec<u8>, i32),
    NoAttribute(CString),
}

/// Where a call names its file.
#[derive(Debug, Clone, Copy)]
enum FileArgument {
    /// A path, argument 0.
    Path(FollowLast),
    /// A directory and a path, arguments 0 and 1; flags, where the call has them.
    Below(Option<usize>),
    /// The same; without a path it is argument 0, a descriptor.
    BelowOrDescriptor(Option<usize>),
    /// A directory and a path, where an empty path stands for the directory.
    BelowOrEmpty,
    /// A descriptor, argument 0.
    Descriptor,
}

/// What a call changes, and at which argument that begins.
#[derive(Debug, Clone, Copy)]
enum What {
    Mode(usize),
    Owner(usize),
    Times(usize, Unit),
    Attribute,
    NoAttribute,
    /// What a link says, into the buffer from this argument on.
    Link(usize),
    AttributeValue,
    AttributeNames,
}

/// In which unit a call states the fraction of its times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    Second,
    Microsecond,
    Nanosecond,
}

/// The arguments of each call, by its name in the filter's table.
fn shape(name: &str) -> Option<(FileArgument, What)> {
    let (followed, itself) = (
        FileArgument::Path(FollowLast::Followed),
        FileArgument::Path(FollowLast::Itself),
    );
    Some(match name {
        "chmod" => (followed, What::Mode(1)),
        "fchmod" => (FileArgument::Descriptor, What::Mode(1)),
        "fchmodat" => (FileArgument::Below(None), What::Mode(2)),
        "fchmodat2" => (FileArgument::Below(Some(3)), What::Mode(2)),
        "chown" => (followed, What::Owner(1)),
        "lchown" => (itself, What::Owner(1)),
        "fchown" => (FileArgument::Descriptor, What::Owner(1)),
        "fchownat" => (FileArgument::Below(Some(4)), What::Owner(2)),
        "utime" => (followed, What::Times(1, Unit::Second)),
        "utimes" => (followed, What::Times(1, Unit::Microsecond)),
        "futimesat" => (
            FileArgument::BelowOrDescriptor(None),
            What::Times(2, Unit::Microsecond),
        ),
        "utimensat" => (
            FileArgument::BelowOrDescriptor(Some(3)),
            What::Times(2, Unit::Nanosecond),
        ),
        "setxattr" => (followed, What::Attribute),
        "lsetxattr" => (itself, What::Attribute),
        "fsetxattr" => (FileArgument::Descriptor, What::Attribute),
        "removexattr" => (followed, What::NoAttribute),
        "lremovexattr" => (itself, What::NoAttribute),
        "fremovexattr" => (FileArgument::Descriptor, What::NoAttribute),
        "readlink" => (itself, What::Link(1)),
        "readlinkat" => (FileArgument::BelowOrEmpty, What::Link(2)),
        "getxattr" => (followed, What::AttributeValue),
        "lgetxattr" => (itself, What::AttributeValue),
        "listxattr" => (followed, What::AttributeNames),
        "llistxattr" => (itself, What::AttributeNames),
        _ => return None,
    })
}

/// Reads the arguments of the call `name`: the only copies of the caller's memory.
pub(super) fn asked(
    name: &str,
    call: &Notification,
) -> Result<(NamedFile, AttributeRequest), Errno> {
    let (place, what) = shape(name).ok_or(Errno::ENOSYS)?;
    let named = match place {
        FileArgument::Path(last) => NamedFile::Path(AT_FDCWD.as_raw_fd(), path(call, 0)?, last),
        FileArgument::BelowOrEmpty => match path(call, 1)? {
            text if text.is_empty() => NamedFile::Directory(call.int(0)),
            text => NamedFile::Path(call.int(0), text, FollowLast::Itself),
        },
        FileArgument::BelowOrDescriptor(_) if call.word(1) == 0 => {
            NamedFile::Descriptor(call.int(0))
        }
        FileArgument::Below(flags) | FileArgument::BelowOrDescriptor(flags) => {
            below(call, flags.map_or(0, |flags| call.int(flags)))?
        }
        FileArgument::Descriptor => NamedFile::Descriptor(call.int(0)),
    };
    Ok((named, request(what, call)?))
}

fn request(what: What, call: &Notification) -> Result<AttributeRequest, Errno> {
    let change = match what {
        What::Mode(index) => AttributeChange::Mode(call.int(index).cast_unsigned()),
        What::Owner(index) => {
            let id = |index| Some(call.int(index).cast_unsigned()).filter(|id| *id != u32::MAX);
            AttributeChange::Owner(id(index), id(index.saturating_add(1)))
        }
        What::Times(index, unit) => times(call, index, unit)?,
        What::Attribute => {
            AttributeChange::Attribute(attribute_name(call)?, value(call)?, call.int(4))
        }
        What::NoAttribute => AttributeChange::NoAttribute(attribute_name(call)?),
        What::Link(index) => {
            // A size of nothing is none (readlink(2)).
            let size = usize::try_from(call.int(index.saturating_add(1))).unwrap_or(0);
            if size == 0 {
                return Err(Errno::EINVAL);
            }
            let address = call.word(index);
            return Ok(AttributeRequest::Read(Read::Link, Buffer { address, size }));
        }
        What::AttributeValue => {
            let read = Read::Attribute(attribute_name(call)?);
            return Ok(AttributeRequest::Read(read, buffer(call, 2)));
        }
        What::AttributeNames => {
            return Ok(AttributeRequest::Read(
                Read::AttributeNames,
                buffer(call, 1),
            ));
        }
    };
    Ok(AttributeRequest::Change(change))
}

/// The address at argument `index` and the size behind it; a size beyond all that
/// can be said is as good as that.
fn buffer(call: &Notification, index: usize) -> Buffer {
    let size = usize::try_from(call.word(index.saturating_add(1))).unwrap_or(VALUE_BYTES_MAX);
    Buffer {
        address: call.word(index),
        size: size.min(VALUE_BYTES_MAX),
    }
}

/// What a call with a directory, a path and flags names.
fn below(call: &Notification, flags: i32) -> Result<NamedFile, Errno> {
    let flags = AtFlags::from_bits(flags).ok_or(Errno::EINVAL)?;
    if !(AtFlags::AT_EMPTY_PATH | AtFlags::AT_SYMLINK_NOFOLLOW).contains(flags) {
        return Err(Errno::EINVAL);
    }
    let directory = call.int(0);
    let empty = flags.contains(AtFlags::AT_EMPTY_PATH);
    if empty && call.word(1) == 0 {
        return Ok(NamedFile::Directory(directory));
    }
    let text = path(call, 1)?;
    if empty && text.is_empty() {
        return Ok(NamedFile::Directory(directory));
    }
    let last = if flags.contains(AtFlags::AT_SYMLINK_NOFOLLOW) {
        FollowLast::Itself
    } else {
        FollowLast::Followed
    };
    Ok(NamedFile::Path(directory, text, last))
}

fn path(call: &Notification, index: usize) -> Result<Vec<u8>, Errno> {
    string::<PATH_BYTES>(call, index, Errno::ENAMETOOLONG).map(CString::into_bytes)
}

/// Copies a string; one without an end in `BYTES` is `long`.
fn string<const BYTES: usize>(
    call: &Notification,
    index: usize,
    long: Errno,
) -> Result<CString, Errno> {
    let mut bytes = [0_u8; BYTES];
    let count = outgate_sys::memory::copy(call.held().thread, call.word(index), &mut bytes);
    let bytes = bytes
        .get(..count.map_err(|error| unreadable(&error))?)
        .unwrap_or_default();
    let text = CStr::from_bytes_until_nul(bytes);
    // What ends before its NUL and before the bound ends at unmapped memory.
    let fault = if bytes.len() == BYTES {
        long
    } else {
        Errno::EFAULT
    };
    text.map(CStr::to_owned).map_err(|_| fault)
}

fn unreadable(error: &std::io::Error) -> Errno {
    error.raw_os_error().map_or(Errno::EFAULT, Errno::from_raw)
}

fn attribute_name(call: &Notification) -> Result<CString, Errno> {
    let name = string::<NAME_BYTES>(call, 1, Errno::ERANGE)?;
    if name.is_empty() {
        return Err(Errno::ERANGE);
    }
    Ok(name)
}

fn value(call: &Notification) -> Result<Vec<u8>, Errno> {
    let size = usize::try_from(call.word(3)).map_err(|_| Errno::E2BIG)?;
    if size > VALUE_BYTES_MAX {
        return Err(Errno::E2BIG);
    }
    let mut value = vec![0; size];
    copy_all(call, call.word(2), &mut value)?;
    Ok(value)
}

fn copy_all(call: &Notification, address: u64, buffer: &mut [u8]) -> Result<(), Errno> {
    let count = outgate_sys::memory::copy(call.held().thread, address, buffer);
    if count.map_err(|error| unreadable(&error))? < buffer.len() {
        return Err(Errno::EFAULT);
    }
    Ok(())
}

/// The times at argument `index`; without any, the present.
fn times(call: &Notification, index: usize, unit: Unit) -> Result<AttributeChange, Errno> {
    let address = call.word(index);
    if address == 0 {
        let now = TimeSpec::new(0, NOW);
        return Ok(AttributeChange::Times(now, now));
    }
    let mut bytes = [0_u8; 32];
    let wanted = match unit {
        Unit::Second => bytes.split_at_mut(16).0,
        Unit::Microsecond | Unit::Nanosecond => &mut bytes[..],
    };
    copy_all(call, address, wanted)?;
    timed(&bytes, unit)
}

/// Times as they lie in memory: two numbers, or two pairs of them.
fn timed(bytes: &[u8; 32], unit: Unit) -> Result<AttributeChange, Errno> {
    let mut numbers = bytes.chunks_exact(8).map(|word| {
        let word = <[u8; 8]>::try_from(word).unwrap_or_default();
        i64::from_ne_bytes(word)
    });
    let mut next = || numbers.next().unwrap_or_default();
    let (first, second, third, fourth) = (next(), next(), next(), next());
    let exact = |seconds, fraction: i64| {
        if !(0..MICROSECONDS).contains(&fraction) {
            return Err(Errno::EINVAL);
        }
        Ok(TimeSpec::new(seconds, fraction.saturating_mul(1000)))
    };
    Ok(match unit {
        Unit::Second => AttributeChange::Times(TimeSpec::new(first, 0), TimeSpec::new(second, 0)),
        Unit::Microsecond => AttributeChange::Times(exact(first, second)?, exact(third, fourth)?),
        Unit::Nanosecond => {
            AttributeChange::Times(TimeSpec::new(first, second), TimeSpec::new(third, fourth))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::{Arch, attribute};

    #[test]
    fn every_call_that_is_held_has_a_shape() {
        for arch in [Arch::X86_64, Arch::Aarch64] {
            let names: Vec<_> = (0..1024).filter_map(|nr| attribute(arch, nr)).collect();
            assert!(names.len() >= 12, "{names:?}");
            for name in names {
                assert!(shape(name).is_some(), "{name} on {}", arch.name());
            }
        }
    }

    #[test]
    fn times_are_read_as_each_call_states_them() {
        let mut bytes = [0_u8; 32];
        for (place, number) in bytes.chunks_exact_mut(8).zip([7_i64, 8, 9, 999_999]) {
            place.copy_from_slice(&number.to_ne_bytes());
        }
        let check = |unit, access, modification| {
            let Ok(AttributeChange::Times(first, second)) = timed(&bytes, unit) else {
                panic!("{unit:?}");
            };
            assert_eq!((first, second), (access, modification), "{unit:?}");
        };
        let at = TimeSpec::new;
        check(Unit::Second, at(7, 0), at(8, 0));
        check(Unit::Microsecond, at(7, 8000), at(9, 999_999_000));
        check(Unit::Nanosecond, at(7, 8), at(9, 999_999));
        for wrong in [-1, MICROSECONDS] {
            bytes[24..].copy_from_slice(&wrong.to_ne_bytes());
            assert_eq!(
                timed(&bytes, Unit::Microsecond).err(),
                Some(Errno::EINVAL),
                "{wrong}"
            );
        }
    }
}
