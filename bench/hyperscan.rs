//! All detectors as one database of Hyperscan, or of Vectorscan, which took its
//! place on other processors: each expression spelt anew for it, byte by byte,
//! and looked for by a C program of its own. May build and run that program; the
//! library is for the bench alone, and a machine without it has no such figure.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use outgate_dlp::Detectors;
use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Class, Hir, HirKind, Look};

use crate::Outcome;
use crate::lab::{Cores, Lab, run};
use crate::scan::PIECE_BYTES;

/// The program and what it reads, in the working directory.
const PROGRAM: &str = "hyperscan";
const EXPRESSIONS: &str = "hyperscan.expressions";
const CONTENT: &str = "hyperscan.content";

/// The program with the expressions; without, the library is not here.
pub(crate) struct Hyperscan<'lab> {
    lab: &'lab Lab,
    /// Which detector each line is, in order.
    spelt: Vec<usize>,
    /// How many detectors there are.
    all: usize,
}

/// What it did with some content.
pub(crate) struct Figure {
    /// Bytes a second of the fastest round.
    pub(crate) rate: f64,
    /// Which detectors were found in the first bytes, by their place among all.
    found: BTreeSet<usize>,
    /// How many detectors it does not know.
    left_out: usize,
    /// Which library, and what became of the expressions.
    pub(crate) about: String,
}

impl<'lab> Hyperscan<'lab> {
    /// Builds the program and writes the expressions.
    pub(crate) fn prepare(lab: &'lab Lab) -> Outcome<Option<Self>> {
        let mut probe = Command::new("cc");
        probe.args([
            "-fsyntax-only",
            "-include",
            "hs/hs.h",
            "-x",
            "c",
            "/dev/null",
        ]);
        if run(&mut probe).is_err() {
            return Ok(None);
        }
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("bench/workloads/hyperscan.c");
        let mut compiler = Command::new("cc");
        compiler
            .args(["-O2", "-o"])
            .arg(lab.directory.join(PROGRAM));
        run(compiler.arg(source).arg("-lhs"))?;
        let detectors = Detectors::shipped();
        let mut hyperscan = Self {
            lab,
            spelt: Vec::new(),
            all: 0,
        };
        let mut lines = String::new();
        for (index, detector) in detectors.iter().enumerate() {
            hyperscan.all = index + 1;
            if let Some(line) = translate(&detector.pattern)? {
                lines.push_str(&line);
                lines.push('\n');
                hyperscan.spelt.push(index);
            }
        }
        fs::write(hyperscan.path(EXPRESSIONS), lines)?;
        Ok(Some(hyperscan))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.lab.directory.join(name)
    }

    /// Content in blocks, so many times; `first` bytes of it are compared.
    pub(crate) fn look(&self, content: &[u8], first: usize, turns: usize) -> Outcome<Figure> {
        fs::write(self.path(CONTENT), content)?;
        let mut words = self.lab.workload(&[PROGRAM, EXPRESSIONS, CONTENT]);
        words.extend([turns, PIECE_BYTES, first].map(|number| OsString::from(number.to_string())));
        let output = self.lab.output(&words, Cores::All)?.output;
        let mut lines = output.lines();
        let mut words = || -> Vec<&str> {
            let line = lines.next().unwrap_or_default();
            line.split_whitespace().collect()
        };
        let (version, made, took, found) = (words(), words(), words(), words());
        let [used, compiled, size] = made[..] else {
            return Err(output.into());
        };
        let [bytes, seconds] = took[..] else {
            return Err(output.into());
        };
        let left_out = self.all.saturating_sub(used.parse()?);
        let kib: f64 = size.parse::<f64>()? / 1024.0;
        let found = found.iter().map(|id| {
            let place = id.parse::<usize>()?;
            Ok(*self.spelt.get(place).ok_or("an expression that is none")?)
        });
        Ok(Figure {
            rate: bytes.parse::<f64>()? / seconds.parse::<f64>()?.max(1e-9),
            found: found.collect::<Outcome<_>>()?,
            about: format!(
                "hyperscan {}: {used} of {} expressions, {left_out} left out that it cannot say; \
                 compiled in {compiled} s to {kib:.0} KiB; blocks of {} KiB",
                version.first().unwrap_or(&"?"),
                self.all,
                PIECE_BYTES / 1024,
            ),
            left_out,
        })
    }
}

impl Figure {
    /// Whether it found what another found that knows all detectors.
    ///
    /// # Errors
    /// It did not: its expressions are others, and its figure means nothing.
    pub(crate) fn agrees(&self, other: &BTreeSet<usize>) -> Outcome<()> {
        let beside: Vec<_> = self.found.difference(other).collect();
        let missing: Vec<_> = other.difference(&self.found).collect();
        if beside.is_empty() && missing.len() <= self.left_out {
            return Ok(());
        }
        Err(format!("hyperscan found detectors {beside:?} alone, and not {missing:?}").into())
    }
}

/// An expression in words of PCRE, as the library reads them; `None` where it has
/// none for it.
fn translate(pattern: &str) -> Outcome<Option<String>> {
    let mut parser = ParserBuilder::new().unicode(false).utf8(false).build();
    let mut line = String::new();
    Ok(spell(&parser.parse(pattern)?, &mut line).map(|()| line))
}

/// Nothing is left to either side's reading: bytes are numbers, groups capture
/// nothing, and no flag is set.
fn spell(part: &Hir, line: &mut String) -> Option<()> {
    match part.kind() {
        HirKind::Empty => line.push_str("(?:)"),
        HirKind::Literal(literal) => literal.0.iter().try_for_each(|byte| byte_of(*byte, line))?,
        HirKind::Class(class) => {
            let bytes = match class {
                Class::Bytes(bytes) => bytes.clone(),
                Class::Unicode(signs) => signs.to_byte_class()?,
            };
            if bytes.ranges().is_empty() {
                return None;
            }
            line.push('[');
            for range in bytes.ranges() {
                byte_of(range.start(), line)?;
                line.push('-');
                byte_of(range.end(), line)?;
            }
            line.push(']');
        }
        HirKind::Look(look) => line.push_str(match look {
            Look::Start => r"\A",
            Look::End => r"\z",
            Look::StartLF => "(?m:^)",
            Look::EndLF => "(?m:$)",
            Look::WordAscii => r"\b",
            Look::WordAsciiNegate => r"\B",
            _ => return None,
        }),
        HirKind::Repetition(repetition) => {
            grouped(&repetition.sub, line)?;
            let max = repetition.max.map(|max| max.to_string());
            let max = max.unwrap_or_default();
            write!(line, "{{{},{max}}}", repetition.min).ok()?;
        }
        HirKind::Capture(capture) => grouped(&capture.sub, line)?,
        HirKind::Concat(parts) => parts.iter().try_for_each(|part| grouped(part, line))?,
        HirKind::Alternation(parts) => {
            line.push_str("(?:");
            for (index, part) in parts.iter().enumerate() {
                if index > 0 {
                    line.push('|');
                }
                spell(part, line)?;
            }
            line.push(')');
        }
    }
    Some(())
}

fn grouped(part: &Hir, line: &mut String) -> Option<()> {
    line.push_str("(?:");
    spell(part, line)?;
    line.push(')');
    Some(())
}

fn byte_of(byte: u8, line: &mut String) -> Option<()> {
    write!(line, r"\x{byte:02x}").ok()
}
