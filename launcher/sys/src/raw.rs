//! System calls without the C library: for code that shares its memory, and so
//! its `errno`, with another process.

/// One system call with up to six arguments; the kernel's raw result.
///
/// # Safety
/// The arguments must be what the call with this number takes: pointers among
/// them live and of the right shape.
#[cfg(target_arch = "x86_64")]
pub(crate) unsafe fn call(number: libc::c_long, arguments: [usize; 6]) -> isize {
    let mut result = isize::try_from(number).unwrap_or(-1);
    let [first, second, third, fourth, fifth, sixth] = arguments;
    // SAFETY: the system call convention of x86-64: syscall(2), "Architecture
    // calling conventions"; rcx and r11 are clobbered.
    unsafe {
        std::arch::asm!(
            "syscall",
            inlateout("rax") result,
            in("rdi") first,
            in("rsi") second,
            in("rdx") third,
            in("r10") fourth,
            in("r8") fifth,
            in("r9") sixth,
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
    result
}

/// One system call with up to six arguments; the kernel's raw result.
///
/// # Safety
/// The arguments must be what the call with this number takes: pointers among
/// them live and of the right shape.
#[cfg(target_arch = "aarch64")]
pub(crate) unsafe fn call(number: libc::c_long, arguments: [usize; 6]) -> isize {
    let [first, second, third, fourth, fifth, sixth] = arguments;
    let mut result = first.cast_signed();
    // SAFETY: the system call convention of aarch64: syscall(2), "Architecture
    // calling conventions".
    unsafe {
        std::arch::asm!(
            "svc 0",
            in("x8") number,
            inlateout("x0") result,
            in("x1") second,
            in("x2") third,
            in("x3") fourth,
            in("x4") fifth,
            in("x5") sixth,
            options(nostack),
        );
    }
    result
}

/// An integer argument as the kernel takes it: sign-extended to a register.
pub(crate) fn int(value: i32) -> usize {
    isize::try_from(value).unwrap_or(-1).cast_unsigned()
}
