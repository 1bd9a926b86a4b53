//! Memory: a bounded copy from another thread's (process_vm_readv(2)), a process's
//! taken in hand to write to (proc_pid_mem(5)), and our own given back to the system.

use std::ffi::{c_int, c_void};
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;

use crate::SysError;

/// Copies from `address` of the thread's memory into `buffer` and returns how
/// many bytes were there to copy. One call, one copy: what is judged later is
/// `buffer` and never the memory.
///
/// # Errors
/// `EFAULT`: nothing mapped at `address`; `EPERM`: we may not trace the thread;
/// `ESRCH`: it is gone.
pub fn copy(thread: u32, address: u64, buffer: &mut [u8]) -> Result<usize, SysError> {
    if buffer.is_empty() {
        return Ok(0);
    }
    let thread = i32::try_from(thread).map_err(|_| SysError::from_raw_os_error(libc::ESRCH))?;
    let start = usize::try_from(address).map_err(|_| SysError::from_raw_os_error(libc::EFAULT))?;
    let local = libc::iovec {
        iov_base: buffer.as_mut_ptr().cast(),
        iov_len: buffer.len(),
    };
    let remote = libc::iovec {
        iov_base: std::ptr::without_provenance_mut(start),
        iov_len: buffer.len(),
    };
    // SAFETY: `local` names `buffer`, which is live and writable for its whole
    // length; `remote` is only an address in another process.
    let copied =
        unsafe { libc::process_vm_readv(thread, &raw const local, 1, &raw const remote, 1, 0) };
    usize::try_from(copied).map_err(|_| crate::last_error())
}

/// The memory of a thread's process, to write to (proc_pid_mem(5)). It stays the
/// memory that it was, also when the process executes another program or its number
/// becomes somebody else's.
#[derive(Debug)]
pub struct Memory(File);

impl Memory {
    /// Takes the memory that the thread has now.
    ///
    /// # Errors
    /// `EACCES`: we may not trace the thread; `ENOENT`, `ESRCH`: it is gone.
    pub fn of(thread: u32) -> Result<Self, SysError> {
        let path = format!("/proc/{thread}/mem");
        OpenOptions::new().write(true).open(path).map(Self)
    }

    /// Writes all of `bytes` at `address`.
    ///
    /// # Errors
    /// `EFAULT` where there is no memory for all of them.
    pub fn write(&self, address: u64, bytes: &[u8]) -> Result<(), SysError> {
        let fault = || SysError::from_raw_os_error(libc::EFAULT);
        let written = self.0.write_at(bytes, address).map_err(|_| fault())?;
        if written < bytes.len() {
            return Err(fault());
        }
        Ok(())
    }
}

/// Gives memory that is free back to the system, wherever in the heap it lies
/// (malloc_trim(3)). Nothing where the C library is not GNU's: others do so
/// themselves, or have no means to.
pub fn give_back() {
    #[cfg(target_env = "gnu")]
    {
        // SAFETY: takes no pointer, and may be called at any time by any thread.
        unsafe { libc::malloc_trim(0) };
    }
}

/// Lets go of the program's own pages, code and constants: what is needed again is
/// mapped again, mostly from memory, and what only the start needed stays away
/// (madvise(2)). Pages that were ever written to are left alone.
pub fn let_program_go() {
    // SAFETY: `leave` is a function of the type that is asked for, and needs no
    // data.
    unsafe { libc::dl_iterate_phdr(Some(leave), std::ptr::null_mut()) };
}

/// Leaves the segments of the first object, which is the program
/// (dl_iterate_phdr(3)).
unsafe extern "C" fn leave(
    object: *mut libc::dl_phdr_info,
    _: libc::size_t,
    _: *mut c_void,
) -> c_int {
    // SAFETY: the C library passes an object that lives as long as this call.
    let object = unsafe { &*object };
    // SAFETY: its headers are so many, mapped as long as the object is, and
    // nobody writes to them.
    let headers =
        unsafe { std::slice::from_raw_parts(object.dlpi_phdr, usize::from(object.dlpi_phnum)) };
    // SAFETY: takes a number and returns one.
    let page = u64::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(0);
    for header in headers {
        // What may be written to, or could once, holds what its file does not.
        if header.p_type != libc::PT_LOAD || header.p_flags & libc::PF_W != 0 {
            continue;
        }
        let begin = object.dlpi_addr.checked_add(header.p_vaddr);
        let end = begin.and_then(|begin| begin.checked_add(header.p_memsz));
        // Whole pages alone: the first and the last may be shared.
        let first = begin.and_then(|begin| begin.checked_next_multiple_of(page));
        let last = end.and_then(|end| end.checked_sub(end.checked_rem(page)?));
        if let (Some(first), Some(last)) = (first, last)
            && let (Ok(start), Ok(length)) = (
                usize::try_from(first),
                usize::try_from(last.saturating_sub(first)),
            )
        {
            let start = std::ptr::without_provenance_mut(start);
            // SAFETY: these pages are private, never writable, and the program's
            // file cannot be written to while it runs (execve(2), ETXTBSY): they
            // come back as they are. A refusal leaves them where they are.
            unsafe { libc::madvise(start, length, libc::MADV_DONTNEED) };
        }
    }
    1
}

#[cfg(test)]
mod tests {
    use super::*;

    /// KiB of the program's code that are mapped.
    fn mapped() -> u64 {
        let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let program = std::env::current_exe().unwrap();
        let program = program.to_str().unwrap();
        let mut lines = maps.lines();
        lines.find(|line| line.contains(" r-xp ") && line.ends_with(program));
        let size = lines.find_map(|line| line.strip_prefix("Rss:")).unwrap();
        size.trim().trim_end_matches(" kB").parse().unwrap()
    }

    #[test]
    fn memory_is_written_whole_or_not() {
        let mut own = [1_u8; 4];
        let memory = Memory::of(std::process::id()).unwrap();
        let address = own.as_mut_ptr().expose_provenance() as u64;
        memory.write(address, &[2, 3]).unwrap();
        let mut copy = [0_u8; 4];
        assert_eq!(
            self::copy(std::process::id(), address, &mut copy).unwrap(),
            4
        );
        assert_eq!(copy, [2, 3, 1, 1]);
        for nowhere in [0, u64::MAX, u64::MAX - 1, 1 << 63] {
            let error = memory.write(nowhere, &[2, 3]).unwrap_err();
            assert_eq!(error.raw_os_error(), Some(libc::EFAULT), "{nowhere:#x}");
        }
    }

    #[test]
    fn a_program_goes_on_without_the_pages_it_let_go() {
        let before = mapped();
        let_program_go();
        let after = mapped();
        assert!(after < before, "{before} KiB, then {after} KiB");
        assert!(after > 0);
        // Constants, code and what was relocated at the start are as they were.
        assert_eq!(
            format!("{:?}", SysError::from_raw_os_error(2).kind()),
            "NotFound"
        );
    }
}
