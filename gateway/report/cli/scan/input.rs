//! Files, directories and standard input, read in pieces and given to the
//! engine. Follows no link and opens nothing that is no file.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use outgate_dlp::{Description, Finding, Place, Ruleset, ScanDestination};

use super::arguments::Scan;
use super::lines::Lines;
use super::progress::Progress;
use super::{FINDINGS_MAX, Located, Outcome, har};

/// Bytes of one read.
const PIECE_BYTES: usize = 128 << 10;
/// Most files of one scan.
const FILES_MAX: usize = 4_000_000;
/// Deepest directory below an argument.
const DEPTH_MAX: usize = 128;
/// Largest HTTP archive, in bytes: it is read whole.
const HAR_BYTES_MAX: u64 = 512 << 20;

/// Something to read.
pub(crate) struct Input {
    /// The file; nothing for standard input.
    path: Option<PathBuf>,
    /// Its size when it was listed, in bytes.
    pub(crate) size: u64,
    is_har: bool,
}

impl Input {
    /// Standard input.
    pub(crate) fn standard(options: &Scan) -> Self {
        Self {
            path: None,
            size: 0,
            is_har: options.har,
        }
    }

    /// As it is named in reports.
    pub(crate) fn name(&self) -> String {
        match &self.path {
            Some(path) => path.display().to_string(),
            None => "-".to_owned(),
        }
    }
}

/// Adds a file, or every file below a directory, in the order of names.
pub(crate) fn collect(path: &Path, options: &Scan, inputs: &mut Vec<Input>) -> Result<(), String> {
    let failed = |error: io::Error| format!("{}: {error}", path.display());
    let about = fs::metadata(path).map_err(failed)?;
    if !about.is_dir() {
        inputs.push(file(path, about.len(), options));
        return Ok(());
    }
    walk(path, options, inputs, 0)
}

fn file(path: &Path, size: u64, options: &Scan) -> Input {
    let named = path.extension().is_some_and(|extension| extension == "har");
    Input {
        path: Some(path.to_owned()),
        size,
        is_har: options.har || named,
    }
}

fn walk(
    directory: &Path,
    options: &Scan,
    inputs: &mut Vec<Input>,
    depth: usize,
) -> Result<(), String> {
    let failed = |error: io::Error| format!("{}: {error}", directory.display());
    let mut entries = Vec::new();
    for entry in fs::read_dir(directory).map_err(failed)? {
        entries.push(entry.map_err(failed)?);
    }
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let name = entry.file_name();
        if options.skip.iter().any(|skipped| name == skipped.as_str()) {
            continue;
        }
        let kind = entry.file_type().map_err(failed)?;
        let path = entry.path();
        if kind.is_dir() && depth < DEPTH_MAX {
            walk(&path, options, inputs, depth.saturating_add(1))?;
        } else if kind.is_file() && inputs.len() < FILES_MAX {
            let size = entry.metadata().map_or(0, |about| about.len());
            inputs.push(file(&path, size, options));
        } else if kind.is_dir() || kind.is_file() {
            let most = format!("{FILES_MAX} files and {DEPTH_MAX} directories deep");
            return Err(format!("{}: beyond {most}", path.display()));
        }
    }
    Ok(())
}

/// The rules, and where the bytes would go.
pub(crate) struct Source<'a> {
    pub(crate) rules: &'a Arc<Ruleset>,
    pub(crate) host: &'a str,
}

impl Source<'_> {
    /// Scans one input. What cannot be read is told with the outcome.
    pub(crate) fn scan(&self, input: &Input, outcome: &mut Outcome, progress: &mut Progress) {
        let name = input.name();
        let result = match &input.path {
            Some(path) => {
                File::open(path).and_then(|file| self.read(input, file, outcome, progress))
            }
            None => self.read(input, io::stdin().lock(), outcome, progress),
        };
        if let Err(error) = result {
            outcome.unread.push(format!("{name}: {error}"));
        }
        outcome.files = outcome.files.saturating_add(1);
    }

    fn read(
        &self,
        input: &Input,
        mut reader: impl Read,
        outcome: &mut Outcome,
        progress: &mut Progress,
    ) -> io::Result<()> {
        let name = input.name();
        if input.is_har {
            let mut bytes = Vec::new();
            reader.take(HAR_BYTES_MAX).read_to_end(&mut bytes)?;
            let count = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
            outcome.bytes = outcome.bytes.saturating_add(count);
            progress.add(count);
            return har::scan(self.rules, &name, &bytes, outcome).map_err(io::Error::other);
        }
        let destination = ScanDestination {
            host: self.host,
            port: 443,
        };
        let description = Description {
            place: Place::Content,
            media_type: None,
            content_codings: None,
            length: None,
        };
        let mut stream = self.rules.stream(&destination, &description);
        let mut lines = Lines::default();
        let mut piece = vec![0; PIECE_BYTES];
        loop {
            let count = reader.read(&mut piece)?;
            let bytes = piece.get(..count).unwrap_or_default();
            // Nothing stops a scan that only reports; what was found follows below.
            let ended = if bytes.is_empty() {
                stream.finish()
            } else {
                stream.push(bytes)
            };
            lines.push(bytes);
            for finding in stream.warnings() {
                let line = lines.place(finding.offset);
                keep(outcome, located(&name, line, finding));
            }
            let passed = u64::try_from(count).unwrap_or(u64::MAX);
            outcome.bytes = outcome.bytes.saturating_add(passed);
            progress.add(passed);
            if bytes.is_empty() || ended.is_err() {
                break;
            }
        }
        if let Some(unscanned) = stream.unscanned() {
            outcome.unscanned.push((name, unscanned));
        }
        Ok(())
    }
}

fn located(path: &str, line: Option<(u64, u64)>, finding: Finding) -> Located {
    Located {
        path: path.to_owned(),
        part: None,
        line,
        action: finding.action,
        finding,
    }
}

/// Keeps a finding, within the bound.
pub(crate) fn keep(outcome: &mut Outcome, located: Located) {
    if outcome.findings.len() < FINDINGS_MAX {
        outcome.findings.push(located);
    }
}
