//! Runs a filter program the way the kernel does, on one described call. Used
//! to test programs and to explain one without making the call. Bounded: jumps
//! go forward only, so a run takes no more steps than the program is long.

use super::Instruction;
use super::limits::INTERPRETED_MAX;

/// `BPF_LD | BPF_W | BPF_ABS`.
pub(super) const LOAD: u16 = 0x20;
/// `BPF_ALU | BPF_AND | BPF_K`.
pub(super) const AND: u16 = 0x54;
/// `BPF_JMP | BPF_JA`.
pub(super) const JUMP: u16 = 0x05;
/// `BPF_JMP | BPF_JEQ | BPF_K`.
pub(super) const JUMP_EQUAL: u16 = 0x15;
/// `BPF_JMP | BPF_JGT | BPF_K`.
pub(super) const JUMP_GREATER: u16 = 0x25;
/// `BPF_JMP | BPF_JGE | BPF_K`.
pub(super) const JUMP_AT_LEAST: u16 = 0x35;
/// `BPF_JMP | BPF_JSET | BPF_K`.
pub(super) const JUMP_ANY_BIT: u16 = 0x45;
/// `BPF_RET | BPF_K`.
pub(super) const RETURN: u16 = 0x06;

/// A system call as a filter sees it (`struct seccomp_data`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Data {
    /// System call number, with its sign bit as the filter compares it.
    pub nr: u32,
    /// `AUDIT_ARCH_*`.
    pub arch: u32,
    /// Address of the calling instruction.
    pub instruction_pointer: u64,
    /// The six argument registers, whole.
    pub args: [u64; 6],
}

impl Data {
    /// Low half of an argument, 0 beyond the sixth.
    pub(super) fn argument(&self, index: u32) -> u32 {
        self.word(index.saturating_mul(8).saturating_add(16))
            .unwrap_or(0)
    }

    /// The aligned 32-bit word at `offset` bytes, as on a little-endian machine.
    fn word(&self, offset: u32) -> Option<u32> {
        match offset {
            0 => Some(self.nr),
            4 => Some(self.arch),
            8 | 12 => half(self.instruction_pointer, offset),
            16..64 => {
                let index = usize::try_from((offset - 16) / 8).ok()?;
                half(*self.args.get(index)?, offset)
            }
            _ => None,
        }
    }
}

/// The half of `value` that an aligned `offset` names.
fn half(value: u64, offset: u32) -> Option<u32> {
    let shift = match offset % 8 {
        0 => 0,
        4 => 32,
        _ => return None,
    };
    u32::try_from((value >> shift) & u64::from(u32::MAX)).ok()
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProgramOutcome {
    /// What the program returned, `SECCOMP_RET_*` and data.
    pub returned: u32,
    /// Instructions executed.
    pub steps: usize,
}

/// Why a program is none the kernel would accept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ProgramFault {
    /// Too many instructions.
    #[error("program has {0} instructions, the kernel accepts 4096")]
    Length(usize),
    /// An operation filters do not need; the kernel knows a few more.
    #[error("instruction {at} has unknown operation {code:#06x}")]
    Operation {
        /// Index of the instruction.
        at: usize,
        /// Its operation.
        code: u16,
    },
    /// A load outside the description of the call, or not aligned.
    #[error("instruction {at} loads offset {offset}, outside the call's description")]
    Offset {
        /// Index of the instruction.
        at: usize,
        /// What it loads.
        offset: u32,
    },
    /// Execution runs past the last instruction.
    #[error("program ends at instruction {at} without a return")]
    End {
        /// Index where an instruction was expected.
        at: usize,
    },
}

/// Runs `program` on `data`.
///
/// # Errors
/// [`ProgramFault`] when the program is malformed on the path taken.
pub fn run(program: &[Instruction], data: &Data) -> Result<ProgramOutcome, ProgramFault> {
    if program.len() > INTERPRETED_MAX {
        return Err(ProgramFault::Length(program.len()));
    }
    let mut accumulator = 0_u32;
    let mut at = 0_usize;
    for steps in 1..=program.len() {
        let instruction = program.get(at).ok_or(ProgramFault::End { at })?;
        let k = instruction.k;
        let (yes, no) = (usize::from(instruction.jt), usize::from(instruction.jf));
        let skip = match instruction.code {
            RETURN => return Ok(ProgramOutcome { returned: k, steps }),
            LOAD => {
                accumulator = data.word(k).ok_or(ProgramFault::Offset { at, offset: k })?;
                0
            }
            AND => {
                accumulator &= k;
                0
            }
            JUMP => usize::try_from(k).map_err(|_| ProgramFault::End { at: usize::MAX })?,
            JUMP_EQUAL => {
                if accumulator == k {
                    yes
                } else {
                    no
                }
            }
            JUMP_GREATER => {
                if accumulator > k {
                    yes
                } else {
                    no
                }
            }
            JUMP_AT_LEAST => {
                if accumulator >= k {
                    yes
                } else {
                    no
                }
            }
            JUMP_ANY_BIT => {
                if accumulator & k != 0 {
                    yes
                } else {
                    no
                }
            }
            code => return Err(ProgramFault::Operation { at, code }),
        };
        at = at.saturating_add(1).saturating_add(skip);
    }
    Err(ProgramFault::End { at })
}
