//! The seccomp filter of a sandbox: which system calls the command may make,
//! which are refused with an errno, which are held for the supervisor.
//!
//! Pure: a program is a value made from a table; nothing here installs it,
//! reads a file or knows what a held call will be answered. seccomp(2), and
//! Documentation/userspace-api/seccomp_filter.rst of the kernel.

mod arguments;
mod assembler;
mod errno;
mod files;
pub mod interpreter;
mod limits;
mod listing;
mod rule;
mod schedule;
mod socket_options;
mod spans;
mod table;
#[cfg(test)]
mod tests;

pub use errno::Errno;
pub use interpreter::Data;
pub use listing::listing;
pub use rule::{FilterAction, evaluate};

use assembler::Program;
use limits::INSTRUCTIONS_MAX;

/// One classic BPF instruction, field by field what `struct sock_filter` is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Instruction {
    /// Operation.
    pub code: u16,
    /// Instructions to skip when a comparison holds.
    pub jt: u8,
    /// Instructions to skip when it does not.
    pub jf: u8,
    /// Operand.
    pub k: u32,
}

/// A processor architecture the filter can be written for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arch {
    /// 64-bit x86. Its calls with the x32 bit are foreign.
    X86_64,
    /// 64-bit ARM, little endian. 32-bit ARM calls are foreign.
    Aarch64,
}

impl Arch {
    /// The architecture this program was built for.
    #[cfg(target_arch = "x86_64")]
    pub const fn native() -> Self {
        Self::X86_64
    }

    /// The architecture this program was built for.
    #[cfg(target_arch = "aarch64")]
    pub const fn native() -> Self {
        Self::Aarch64
    }

    /// `AUDIT_ARCH_*`: what the kernel puts into `seccomp_data.arch`.
    pub const fn audit(self) -> u32 {
        match self {
            Self::X86_64 => 0xc000_003e,
            Self::Aarch64 => 0xc000_00b7,
        }
    }

    /// The name `uname -m` prints.
    pub const fn name(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64",
            Self::Aarch64 => "aarch64",
        }
    }
}

/// Whether `open(2)` and its relatives are held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Opens {
    /// They are performed by the kernel, limited by Landlock alone.
    #[default]
    Pass,
    /// They are held, so that `resolv.conf` and `hosts` can be substituted
    /// where no sealed network namespace can be made.
    Trap,
}

/// What differs from one sandbox to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FilterOptions {
    /// Whether files are opened by the kernel or through the supervisor.
    pub opens: Opens,
}

/// Numbers of the calls that a filter can hold, for the supervisor to dispatch on.
///
/// `connect`, `bind`, `listen`, `shutdown`, `socket`, `socketpair` and `ioctl` are held by
/// every filter, all opens only with [`Opens::Trap`]; else those alone that may be of a
/// terminal made inside. Of `socket`, only Internet datagram sockets are held, of
/// `socketpair` those of Unix datagrams, and of `ioctl` the other end of such a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeldCalls {
    /// `connect(2)`.
    pub connect: i32,
    /// `bind(2)`, but of netlink.
    pub bind: i32,
    /// `listen(2)`.
    pub listen: i32,
    /// `shutdown(2)`, unless of sending alone.
    pub shutdown: i32,
    /// `socket(2)`.
    pub socket: i32,
    /// `socketpair(2)`.
    pub socketpair: i32,
    /// `ioctl(2)`.
    pub ioctl: i32,
    /// `open(2)`, which newer architectures lack.
    pub open: Option<i32>,
    /// `openat(2)`.
    pub openat: i32,
}

/// The numbers of the calls that can be held on `arch`.
pub const fn held(arch: Arch) -> HeldCalls {
    match arch {
        Arch::X86_64 => HeldCalls {
            connect: 42,
            bind: 49,
            listen: 50,
            shutdown: 48,
            socket: 41,
            socketpair: 53,
            ioctl: 16,
            open: Some(2),
            openat: 257,
        },
        Arch::Aarch64 => HeldCalls {
            connect: 203,
            bind: 200,
            listen: 201,
            shutdown: 210,
            socket: 198,
            socketpair: 199,
            ioctl: 29,
            open: None,
            openat: 56,
        },
    }
}

/// Name of the call with this number, if it is about attributes of a file or a link and
/// is held.
pub fn attribute(arch: Arch, number: i32) -> Option<&'static str> {
    table::attribute(arch, u32::try_from(number).ok()?)
}

/// Name of the call with this number, if it changes how threads are scheduled and is
/// held where they are not the caller.
pub fn scheduling(arch: Arch, number: i32) -> Option<&'static str> {
    table::scheduling(arch, u32::try_from(number).ok()?)
}

/// Whether the call with this number would make namespaces, and is held.
pub fn is_namespace(arch: Arch, number: i32) -> bool {
    u32::try_from(number).is_ok_and(|number| table::is_namespace(arch, number))
}

/// Why no program could be made of the table. Always our own fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FilterError {
    /// Two rows speak of one call, so that one of them would be ignored.
    #[error("system call {number} has two rows in the filter table, the second is `{name}`")]
    Overlap {
        /// Name in the later row.
        name: &'static str,
        /// The number both have.
        number: u32,
    },
    /// The program costs more at every start than we accept.
    #[error("filter has {instructions} instructions, at most {max} are accepted")]
    TooLong {
        /// How many the table needs.
        instructions: usize,
        /// How many are accepted.
        max: usize,
    },
}

/// The program for `arch`: agrees with [`evaluate`] on every call.
///
/// # Errors
/// [`FilterError`] when the table contradicts itself or grew too large.
pub fn program(arch: Arch, options: &FilterOptions) -> Result<Vec<Instruction>, FilterError> {
    let made = match (arch, options.opens) {
        (Arch::X86_64, Opens::Pass) => &X86_64_PASS,
        (Arch::X86_64, Opens::Trap) => &X86_64_TRAP,
        (Arch::Aarch64, Opens::Pass) => &AARCH64_PASS,
        (Arch::Aarch64, Opens::Trap) => &AARCH64_TRAP,
    };
    match made {
        Ok(program) => Ok(program.instructions().to_vec()),
        Err(error) => Err(*error),
    }
}

/// Made by the compiler: making a program at each start would cost about as
/// much as the kernel takes to install it.
type Made = Result<Program<INSTRUCTIONS_MAX>, FilterError>;

static X86_64_PASS: Made = make(Arch::X86_64, Opens::Pass);
static X86_64_TRAP: Made = make(Arch::X86_64, Opens::Trap);
static AARCH64_PASS: Made = make(Arch::Aarch64, Opens::Pass);
static AARCH64_TRAP: Made = make(Arch::Aarch64, Opens::Trap);

const fn make(arch: Arch, opens: Opens) -> Made {
    match spans::spans(arch, FilterOptions { opens }) {
        Ok(spans) => assembler::assemble(arch, &spans),
        Err(error) => Err(error),
    }
}
