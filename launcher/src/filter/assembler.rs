//! Turns spans of call numbers and their rules into a program: a balanced tree
//! of comparisons, with every decision and every question written once.
//!
//! Programs are written back to front. Jumps only go forward, so whatever an
//! instruction jumps to already has its place, and its distance is known.
//! The compiler runs all of this, so that no start of a sandbox has to: hence
//! `const fn` and plain loops. Knows nothing of what calls mean.

#![expect(
    clippy::indexing_slicing,
    reason = "runs in the compiler, where a wrong index stops the build"
)]

use super::interpreter::{AND, JUMP, JUMP_ANY_BIT, JUMP_AT_LEAST, JUMP_EQUAL, LOAD, RETURN};
use super::limits::SPANS_MAX;
use super::rule::{ArgumentQuestion, FilterAction, FilterRule, KernelConstant, Test, union};
use super::spans::Spans;
use super::{Arch, FilterError, Instruction, table};

const NUMBER_OFFSET: u32 = 0;
const ARCH_OFFSET: u32 = 4;
const ARGUMENTS_OFFSET: u32 = 16;
const ARGUMENT_BYTES: u32 = 8;

/// Numbers from here on weigh nothing: the kernel never tries them.
const ASSIGNED_END: u32 = table::NEWEST + 1;

/// A finished program of at most `MAX` instructions.
#[derive(Debug)]
pub(super) struct Program<const MAX: usize> {
    instructions: [Instruction; MAX],
    length: usize,
}

impl<const MAX: usize> Program<MAX> {
    pub(super) fn instructions(&self) -> &[Instruction] {
        // INVARIANT: `assemble` makes no program longer than its array.
        self.instructions.get(..self.length).unwrap_or_default()
    }
}

/// The place of an instruction, counted from the end of the program.
#[derive(Debug, Clone, Copy)]
struct Label(usize);

/// An instruction and what it leads to, before distances are known.
#[derive(Debug, Clone, Copy)]
struct AssemblyStep {
    code: u16,
    k: u32,
    yes: Label,
    no: Label,
}

/// A span whose rule already has a place.
#[derive(Debug, Clone, Copy)]
struct PlacedSpan {
    first: u32,
    last: u32,
    label: Label,
}

/// A program being written, last instruction first.
#[derive(Debug)]
struct Assembler<const MAX: usize> {
    reversed: [Instruction; MAX],
    /// What each instruction was asked to be: nothing is written twice.
    steps: [AssemblyStep; MAX],
    /// How many were written. More than `MAX` when there was no room.
    length: usize,
}

/// The whole program.
///
/// # Errors
/// [`FilterError::TooLong`] when it needs more than `MAX` instructions.
pub(super) const fn assemble<const MAX: usize>(
    arch: Arch,
    spans: &Spans,
) -> Result<Program<MAX>, FilterError> {
    let mut assembler = Assembler::<MAX>::new();
    let kill = assembler.give_back(FilterAction::Kill);
    let (placed, count) = assembler.place(spans);
    let tree = assembler.tree(placed.split_at(count).0, kill);
    let number = assembler.then(LOAD, NUMBER_OFFSET, tree);
    let native = assembler.branch(JUMP_EQUAL, arch.audit(), number, kill);
    let start = assembler.then(LOAD, ARCH_OFFSET, native);
    assembler.adjacent(start);
    assembler.finish()
}

impl<const MAX: usize> Assembler<MAX> {
    const fn new() -> Self {
        let nothing = Instruction {
            code: RETURN,
            jt: 0,
            jf: 0,
            k: FilterAction::Kill.returned(),
        };
        let step = AssemblyStep {
            code: RETURN,
            k: 0,
            yes: Label(0),
            no: Label(0),
        };
        Self {
            reversed: [nothing; MAX],
            steps: [step; MAX],
            length: 0,
        }
    }

    const fn finish(self) -> Result<Program<MAX>, FilterError> {
        if self.length > MAX {
            return Err(FilterError::TooLong {
                instructions: self.length,
                max: MAX,
            });
        }
        let mut instructions = self.reversed;
        let mut index = 0;
        while index < self.length {
            instructions[index] = self.reversed[self.length - 1 - index];
            index += 1;
        }
        Ok(Program {
            instructions,
            length: self.length,
        })
    }

    /// Writes all rules and joins neighbours that are treated alike.
    const fn place(&mut self, spans: &Spans) -> ([PlacedSpan; SPANS_MAX], usize) {
        let nothing = PlacedSpan {
            first: 0,
            last: 0,
            label: Label(0),
        };
        let mut placed = [nothing; SPANS_MAX];
        let mut count = 0;
        let mut rest = spans.as_slice();
        while let [span, others @ ..] = rest {
            rest = others;
            let label = self.rule(span.rule);
            if count > 0 && placed[count - 1].label.0 == label.0 {
                placed[count - 1].last = span.last;
            } else {
                let (first, last) = (span.first, span.last);
                placed[count] = PlacedSpan { first, last, label };
                count += 1;
            }
        }
        (placed, count)
    }

    /// Decides between spans by the call number in the accumulator.
    const fn tree(&mut self, spans: &[PlacedSpan], otherwise: Label) -> Label {
        match spans {
            [] => otherwise,
            [all] => all.label,
            // One number among others that are treated alike.
            [before, one, after] if before.label.0 == after.label.0 && one.first == one.last => {
                self.branch(JUMP_EQUAL, one.first, one.label, before.label)
            }
            _ => {
                let middle = middle(spans);
                let (low, high) = spans.split_at(middle);
                let high = self.tree(high, otherwise);
                let low = self.tree(low, otherwise);
                self.branch(JUMP_AT_LEAST, spans[middle].first, high, low)
            }
        }
    }

    const fn rule(&mut self, rule: &FilterRule) -> Label {
        match rule {
            FilterRule::Do(action) => self.give_back(*action),
            FilterRule::Ask { question, yes, no } => {
                let no = self.rule(no);
                let yes = self.rule(yes);
                self.ask(question, yes, no)
            }
        }
    }

    const fn ask(&mut self, question: &ArgumentQuestion, yes: Label, no: Label) -> Label {
        let compared = match &question.test {
            Test::Has(flags) => self.branch(JUMP_ANY_BIT, union(flags), yes, no),
            Test::Is { mask, any_of } => {
                let first = self.one_of(any_of, yes, no);
                if *mask == u32::MAX {
                    first
                } else {
                    self.then(AND, *mask, first)
                }
            }
        };
        let offset = ARGUMENTS_OFFSET + ARGUMENT_BYTES * question.argument;
        self.then(LOAD, offset, compared)
    }

    const fn one_of(&mut self, values: &[KernelConstant], yes: Label, no: Label) -> Label {
        match values {
            [] => no,
            [value, others @ ..] => {
                let others = self.one_of(others, yes, no);
                self.branch(JUMP_EQUAL, value.bits, yes, others)
            }
        }
    }

    const fn give_back(&mut self, action: FilterAction) -> Label {
        let step = AssemblyStep {
            code: RETURN,
            k: action.returned(),
            yes: Label(0),
            no: Label(0),
        };
        match self.written(step) {
            Some(label) => label,
            None => self.write(step, 0, 0),
        }
    }

    /// A comparison of the accumulator with `k`.
    const fn branch(&mut self, code: u16, k: u32, yes: Label, no: Label) -> Label {
        if yes.0 == no.0 {
            return yes;
        }
        let step = AssemblyStep { code, k, yes, no };
        if let Some(label) = self.written(step) {
            return label;
        }
        // A stepping stone for `no` moves `yes` one further away.
        let yes = self.reachable(yes, 1);
        let no = self.reachable(no, 0);
        let (jt, jf) = (self.skip(yes), self.skip(no));
        self.write(step, jt, jf)
    }

    /// An instruction that is followed by `next`.
    const fn then(&mut self, code: u16, k: u32, next: Label) -> Label {
        let (yes, no) = (next, next);
        let step = AssemblyStep { code, k, yes, no };
        if let Some(label) = self.written(step) {
            return label;
        }
        self.adjacent(next);
        self.write(step, 0, 0)
    }

    /// Where the same instruction, leading to the same places, already is.
    const fn written(&self, step: AssemblyStep) -> Option<Label> {
        let mut index = 0;
        while index < self.length && index < MAX {
            let known = self.steps[index];
            if known.code == step.code
                && known.k == step.k
                && known.yes.0 == step.yes.0
                && known.no.0 == step.no.0
            {
                return Some(Label(index));
            }
            index += 1;
        }
        None
    }

    const fn write(&mut self, step: AssemblyStep, jt: u8, jf: u8) -> Label {
        let label = Label(self.length);
        if self.length < MAX {
            let (code, k) = (step.code, step.k);
            self.reversed[self.length] = Instruction { code, jt, jf, k };
            self.steps[self.length] = step;
        }
        self.length += 1;
        label
    }

    /// Instructions that the next one to be written has to skip to get there.
    const fn distance(&self, to: Label) -> usize {
        self.length - 1 - to.0
    }

    /// A comparison skips at most 255 instructions; a target further away than
    /// that, less `spare`, gets a jump of its own in between.
    const fn reachable(&mut self, to: Label, spare: usize) -> Label {
        if self.distance(to) + spare <= u8::MAX as usize {
            to
        } else {
            self.jump(to)
        }
    }

    /// Makes `next` what follows the next instruction to be written.
    const fn adjacent(&mut self, next: Label) {
        if self.distance(next) > 0 {
            self.jump(next);
        }
    }

    const fn jump(&mut self, to: Label) -> Label {
        let [a, b, c, d, ..] = self.distance(to).to_le_bytes();
        let step = AssemblyStep {
            code: JUMP,
            k: u32::from_le_bytes([a, b, c, d]),
            yes: to,
            no: to,
        };
        self.write(step, 0, 0)
    }

    const fn skip(&self, to: Label) -> u8 {
        // INVARIANT: `reachable` was asked, so only the lowest byte is used.
        let [skip, ..] = self.distance(to).to_le_bytes();
        skip
    }
}

/// Where to cut so that both sides weigh about the same: between the first and
/// the last, so that both sides get smaller.
const fn middle(spans: &[PlacedSpan]) -> usize {
    let mut total = 0;
    let mut index = 0;
    while index < spans.len() {
        total += weight(spans[index]);
        index += 1;
    }
    let (mut best, mut best_difference) = (1, u32::MAX);
    let mut left = 0_u32;
    index = 1;
    while index < spans.len() {
        left += weight(spans[index - 1]);
        let difference = left.abs_diff(total - left);
        if difference < best_difference {
            (best, best_difference) = (index, difference);
        }
        index += 1;
    }
    best
}

/// What a span costs: the kernel tries each number in it when it looks for
/// calls that are always allowed; and its own leaf.
const fn weight(span: PlacedSpan) -> u32 {
    const LEAF: u32 = 4;
    let end = if span.last < ASSIGNED_END {
        span.last + 1
    } else {
        ASSIGNED_END
    };
    LEAF + end.saturating_sub(span.first)
}
