//! The number space of one architecture cut into spans, without gap or overlap.
//! The step between the table and the assembler; the compiler runs it too.

#![expect(
    clippy::indexing_slicing,
    reason = "runs in the compiler, where a wrong index stops the build"
)]

use super::errno::ENOSYS;
use super::limits::SPANS_MAX;
use super::rule::{ALLOW, FilterAction, FilterRule};
use super::table::{self, RowGroup};
use super::{Arch, FilterError, FilterOptions};

/// Call numbers `first` to `last`, both included, and what becomes of them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    pub(super) first: u32,
    pub(super) last: u32,
    pub(super) rule: &'static FilterRule,
    pub(super) name: &'static str,
}

/// Spans in a list of fixed size.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spans {
    list: [Span; SPANS_MAX],
    count: usize,
}

const UNKNOWN: &FilterRule = &FilterRule::Do(FilterAction::Refuse(ENOSYS));
const FOREIGN: &FilterRule = &FilterRule::Do(FilterAction::Kill);

impl Spans {
    pub(super) const fn new() -> Self {
        Self {
            list: [span(0, 0, FOREIGN, ""); SPANS_MAX],
            count: 0,
        }
    }

    pub(super) const fn as_slice(&self) -> &[Span] {
        self.list.split_at(self.count).0
    }

    pub(super) const fn add(&mut self, span: Span) {
        self.list[self.count] = span;
        self.count += 1;
    }

    const fn sort(&mut self) {
        let mut sorted = 1;
        while sorted < self.count {
            let mut at = sorted;
            while at > 0 && self.list[at].first < self.list[at - 1].first {
                (self.list[at], self.list[at - 1]) = (self.list[at - 1], self.list[at]);
                at -= 1;
            }
            sorted += 1;
        }
    }

    /// Orders the spans and allows what lies between them.
    ///
    /// # Errors
    /// [`FilterError::Overlap`] when two claim a number.
    pub(super) const fn fill(mut self) -> Result<Self, FilterError> {
        self.sort();
        let mut filled = Self::new();
        let mut next = 0_u32;
        let mut rest = self.as_slice();
        while let [claimed, others @ ..] = rest {
            rest = others;
            if claimed.first < next {
                return Err(FilterError::Overlap {
                    name: claimed.name,
                    number: claimed.first,
                });
            }
            if claimed.first > next {
                filled.add(span(next, claimed.first - 1, ALLOW, "allowed"));
            }
            filled.add(*claimed);
            // The last claim ends with the number space: nothing follows it.
            next = claimed.last.saturating_add(1);
        }
        Ok(filled)
    }
}

const fn span(first: u32, last: u32, rule: &'static FilterRule, name: &'static str) -> Span {
    Span {
        first,
        last,
        rule,
        name,
    }
}

/// All numbers from 0 to `u32::MAX`, in order.
///
/// # Errors
/// [`FilterError::Overlap`] when two rows claim a number.
pub(super) const fn spans(arch: Arch, options: FilterOptions) -> Result<Spans, FilterError> {
    let mut claimed = Spans::new();
    let mut parts: &[&[RowGroup]] = &table::groups(options);
    while let [part, others @ ..] = parts {
        parts = others;
        claim_rows(&mut claimed, arch, part);
    }
    let mut unassigned = table::unassigned(arch);
    while let [range, others @ ..] = unassigned {
        unassigned = others;
        claimed.add(span(*range.start(), *range.end(), UNKNOWN, "unassigned"));
    }
    let newer = table::NEWEST + 1;
    match arch {
        Arch::X86_64 => {
            let (first, last) = (*table::X32.start(), *table::X32.end());
            claimed.add(span(newer, first - 1, UNKNOWN, "newer"));
            claimed.add(span(first, last, FOREIGN, "x32"));
            claimed.add(span(last + 1, u32::MAX, UNKNOWN, "newer"));
        }
        Arch::Aarch64 => claimed.add(span(newer, u32::MAX, UNKNOWN, "newer")),
    }
    claimed.fill()
}

const fn claim_rows(claimed: &mut Spans, arch: Arch, mut groups: &[RowGroup]) {
    while let [group, others @ ..] = groups {
        groups = others;
        let mut rows = group.rows;
        while let [row, others @ ..] = rows {
            rows = others;
            if let Some(number) = row.numbers.on(arch) {
                claimed.add(span(number, number, row.rule, row.name));
            }
        }
    }
}
