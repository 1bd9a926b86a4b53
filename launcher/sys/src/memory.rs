//! Memory: a bounded copy from another thread's (process_vm_readv(2)), and our own
//! given back to the system.

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
