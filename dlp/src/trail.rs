//! How a layer came about: the codings around it and the entry it lies in.

use std::sync::Arc;

use crate::coding::Coding;
use crate::limits;

/// The way from the outermost bytes to a layer.
#[derive(Debug, Clone, Default)]
pub(crate) struct Trail {
    steps: Option<Arc<TrailStep>>,
}

#[derive(Debug)]
struct TrailStep {
    coding: Coding,
    inside: Option<String>,
    depth: usize,
    before: Trail,
}

impl TrailStep {
    fn is_text(&self) -> bool {
        match self.coding {
            Coding::Percent
            | Coding::Json
            | Coding::Html
            | Coding::QuotedPrintable
            | Coding::Terminal
            | Coding::Utf16
            | Coding::Latin1
            | Coding::Lines
            | Coding::Folded
            | Coding::Joined => true,
            Coding::Gzip
            | Coding::Zlib
            | Coding::Deflate
            | Coding::Brotli
            | Coding::Zstd
            | Coding::Bzip2
            | Coding::Xz
            | Coding::Lzip
            | Coding::Lzma
            | Coding::Lz4
            | Coding::Base64
            | Coding::Hex
            | Coding::Base32
            | Coding::Numbers
            | Coding::Multipart
            | Coding::Zip
            | Coding::Tar
            | Coding::GitPack
            | Coding::Reversed
            | Coding::Rot13
            | Coding::Swapped => false,
        }
    }
}

impl Trail {
    /// One coding further in.
    pub(crate) fn with(&self, coding: Coding, inside: Option<String>) -> Self {
        let depth = self.depth().saturating_add(1);
        let before = self.clone();
        let step = TrailStep {
            coding,
            inside,
            depth,
            before,
        };
        let steps = Some(Arc::new(step));
        Self { steps }
    }

    /// Whether what stood between lines was dropped, and nothing but text read since: what the
    /// lines stand for is looked at, and words of several make no form.
    pub(crate) fn is_lines(&self) -> bool {
        let first = self.steps.as_deref();
        let steps = std::iter::successors(first, |step| step.before.steps.as_deref());
        let mut text = steps.take_while(|step| step.is_text());
        text.any(|step| step.coding == Coding::Lines)
    }

    /// Whether the innermost coding is one of text.
    pub(crate) fn is_text(&self) -> bool {
        self.steps.as_deref().is_some_and(TrailStep::is_text)
    }

    /// Whether nothing but codings of text is around it.
    pub(crate) fn is_plain(&self) -> bool {
        let mut trail = self;
        while let Some(step) = &trail.steps {
            if !step.is_text() {
                return false;
            }
            trail = &step.before;
        }
        true
    }

    /// Whether what stands here one after the other was apart before.
    pub(crate) fn is_joined(&self) -> bool {
        let Some(step) = &self.steps else {
            return false;
        };
        step.coding == Coding::Joined || step.before.is_joined()
    }

    /// Whether the innermost coding is one of bytes: compression, a run, an archive.
    pub(crate) fn is_coded(&self) -> bool {
        let turned = [Coding::Reversed, Coding::Rot13, Coding::Swapped];
        let step = self.steps.as_deref();
        step.is_some_and(|step| !step.is_text() && !turned.contains(&step.coding))
    }

    /// Whether the innermost coding is that of a run.
    pub(crate) fn is_run(&self) -> bool {
        let coding = self.steps.as_ref().map(|step| step.coding);
        matches!(coding, Some(Coding::Base64 | Coding::Hex | Coding::Base32))
    }

    /// Whether the innermost coding is that of digits.
    pub(crate) fn is_digits(&self) -> bool {
        let coding = self.steps.as_ref().map(|step| step.coding);
        matches!(coding, Some(Coding::Hex | Coding::Numbers))
    }

    /// How many of the codings have nothing that they begin with.
    pub(crate) fn unmarked(&self) -> usize {
        let codings = self.chain();
        let is_unmarked = |coding: &&Coding| matches!(coding, Coding::Deflate | Coding::Brotli);
        codings.iter().filter(is_unmarked).count()
    }

    /// How many of the innermost codings are this one.
    pub(crate) fn last(&self, coding: Coding) -> usize {
        let steps =
            std::iter::successors(self.steps.as_deref(), |step| step.before.steps.as_deref());
        steps.take_while(|step| step.coding == coding).count()
    }

    /// How many codings deep.
    pub(crate) fn depth(&self) -> usize {
        self.steps.as_ref().map_or(0, |step| step.depth)
    }

    /// The codings, outermost first.
    pub(crate) fn chain(&self) -> Vec<Coding> {
        let mut chain = Vec::new();
        let mut trail = self;
        while let Some(step) = &trail.steps {
            chain.push(step.coding);
            trail = &step.before;
        }
        chain.reverse();
        chain
    }

    /// The outermost coding.
    pub(crate) fn first(&self) -> Option<Coding> {
        let mut first = self.steps.as_ref()?;
        while let Some(step) = &first.before.steps {
            first = step;
        }
        Some(first.coding)
    }

    /// The innermost entry, with the names of those around it.
    pub(crate) fn inside(&self) -> Option<String> {
        let mut names = Vec::new();
        let mut trail = self;
        while let Some(step) = &trail.steps {
            names.extend(step.inside.as_deref());
            trail = &step.before;
        }
        names.reverse();
        (!names.is_empty()).then(|| names.join("!"))
    }
}

/// A name from foreign bytes as it may be shown: printable, and not long.
pub(crate) fn shown(name: &[u8]) -> String {
    let name = name.get(..limits::INSIDE_BYTES_SHOWN).unwrap_or(name);
    let text = String::from_utf8_lossy(name);
    let plain = |letter: char| if letter.is_control() { '?' } else { letter };
    text.chars().map(plain).collect()
}
