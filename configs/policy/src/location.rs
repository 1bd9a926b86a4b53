//! Where in a source something stands.
//!
//! Offsets in bytes become lines and columns; nothing here knows what the
//! text means.

use std::sync::Arc;

use crate::error::PolicyError;
use crate::source::{Source, SourceKind};

/// A source whose offsets can be turned into places.
#[derive(Debug)]
pub(crate) struct Location<'a> {
    place: &'a str,
    text: &'a str,
    nature: SourceNature,
    /// Offsets at which lines begin.
    lines: Vec<usize>,
}

/// What the text of a source is to who wrote it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SourceNature {
    Document,
    /// One argument: its place needs no line.
    Argument,
    /// An option whose place has its value too: where in it needs no saying.
    Option,
}

impl SourceNature {
    fn of(source: &Source) -> Self {
        match source.kind {
            SourceKind::Option(_) => Self::Option,
            SourceKind::Document
            | SourceKind::Project
            | SourceKind::Manifest
            | SourceKind::UntrustedManifest
            | SourceKind::Learning
            | SourceKind::Lock => Self::Document,
            SourceKind::Allow
            | SourceKind::Deny
            | SourceKind::Pin
            | SourceKind::Read
            | SourceKind::Write
            | SourceKind::Listen
            | SourceKind::Secret => Self::Argument,
        }
    }
}

/// A value inside a source: where it begins, and whether its own offsets can
/// be added to that.
#[derive(Debug, Clone, Copy)]
pub(crate) struct At<'a> {
    pub(crate) location: &'a Location<'a>,
    pub(crate) offset: usize,
    pub(crate) verbatim: bool,
}

impl<'a> Location<'a> {
    pub(crate) fn of(source: &'a Source) -> Self {
        let text = match source.kind {
            // Below the name of the command.
            SourceKind::Manifest | SourceKind::UntrustedManifest => {
                source.text.split_once('\n').map_or("", |(_, text)| text)
            }
            _ => &source.text,
        };
        let newlines = text.match_indices('\n').map(|(at, _)| at + 1);
        Self {
            place: &source.place,
            text,
            nature: SourceNature::of(source),
            lines: std::iter::once(0).chain(newlines).collect(),
        }
    }

    pub(crate) fn text(&self) -> &'a str {
        self.text
    }

    /// The beginning of the source.
    pub(crate) fn start(&'a self) -> At<'a> {
        At {
            location: self,
            offset: 0,
            verbatim: true,
        }
    }

    fn line_and_column(&self, offset: usize) -> (u32, u32) {
        let line = self.lines.partition_point(|start| *start <= offset);
        let start = self.lines.get(line.saturating_sub(1)).copied().unwrap_or(0);
        let before = self.text.get(start..offset).unwrap_or("");
        let column = before.chars().count() + 1;
        (
            u32::try_from(line).unwrap_or(u32::MAX),
            u32::try_from(column).unwrap_or(u32::MAX),
        )
    }
}

impl At<'_> {
    /// The fault at `inner` bytes into the value.
    pub(crate) fn error(&self, inner: usize, message: String, hint: Option<String>) -> PolicyError {
        let offset = if self.verbatim {
            self.offset + inner
        } else {
            self.offset
        };
        let (line, column) = match self.location.nature {
            SourceNature::Option => (0, 0),
            SourceNature::Document | SourceNature::Argument => {
                self.location.line_and_column(offset)
            }
        };
        PolicyError {
            place: self.location.place.to_owned(),
            line,
            column,
            message,
            hint,
        }
    }

    /// The place as text: `agent.toml:14:9`, or `-a` for an argument, or an option
    /// as the user wrote it.
    pub(crate) fn place(&self) -> Arc<str> {
        match self.location.nature {
            SourceNature::Argument | SourceNature::Option => Arc::from(self.location.place),
            SourceNature::Document => {
                let (line, column) = self.location.line_and_column(self.offset);
                Arc::from(format!("{}:{line}:{column}", self.location.place))
            }
        }
    }
}
