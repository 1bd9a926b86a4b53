//! Records as lines: which files, in which order, plain or compressed, and each line within
//! a bound.
//! Opens files for reading; knows nothing of what a line says.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

pub(crate) mod packed;

use packed::{Gunzip, is_packed, packed_name, plain_name};

/// Bytes of one line at most. Records have some hundred, and a few thousand where
/// many texts are at their limits.
const LINE_BYTES_MAX: usize = 1024 * 1024;
/// Files that are read at most.
const FILES_MAX: usize = 10_000;
/// What the name of a record ends with.
const ENDING: &str = "jsonl";
/// What stands before the number of a further file of a record.
const PART: &str = ".part";

/// Whether a line was whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// With its line break.
    Whole,
    /// The file ends in it.
    Cut,
    /// It is longer than any record; what is given is its beginning.
    TooLong,
}

/// One line and where it stands.
#[derive(Debug, Clone, Copy)]
pub struct Line<'a> {
    /// Its file.
    pub file: &'a Path,
    /// From 1.
    pub number: u64,
    /// The line without its line break.
    pub bytes: &'a [u8],
    /// Whether it was whole.
    pub shape: Shape,
    /// Bytes in the file, with the line break.
    pub length: u64,
}

/// The files that arguments name, in the order of their lines. `records` is where
/// runs leave theirs.
///
/// # Errors
/// A sentence: there is no record, or a directory cannot be read.
pub fn files(paths: &[PathBuf], records: Option<&Path>) -> Result<Vec<PathBuf>, String> {
    let last = [PathBuf::from("last")];
    let paths = if paths.is_empty() { &last } else { paths };
    let mut files = Vec::new();
    for path in paths {
        if path.as_os_str() == "last" {
            files.extend(latest(records)?);
        } else if path.is_dir() {
            let found = listed(path)?;
            if found.is_empty() {
                return Err(format!("no record in the directory `{}`", path.display()));
            }
            files.extend(found);
        } else {
            files.push(path.clone());
        }
    }
    if files.len() > FILES_MAX {
        return Err(format!("{} files; {FILES_MAX} at most", files.len()));
    }
    Ok(files)
}

/// The files of the latest run, the first one first.
pub(crate) fn latest(records: Option<&Path>) -> Result<Vec<PathBuf>, String> {
    let records = records.ok_or("there is no state directory, and no FILE was named")?;
    let missing = || {
        let place = records.display();
        format!("there is no record in `{place}`: a run leaves one once something was decided")
    };
    let mut files = listed(records).map_err(|_| missing())?;
    // Names begin with the time.
    let newest = files.last().map(|path| run_of(path)).ok_or_else(missing)?;
    files.retain(|path| run_of(path) == newest);
    Ok(files)
}

/// The run whose record a file is, by its name.
fn run_of(path: &Path) -> String {
    let plain = plain_name(path);
    let name = plain.file_stem().unwrap_or_default().to_string_lossy();
    let run = name.split_once(PART).map_or(&*name, |(run, _)| run);
    run.to_owned()
}

/// Records of a directory, by name. Of one that is just being compressed, the plain file.
fn listed(directory: &Path) -> Result<Vec<PathBuf>, String> {
    let wrong = |error: io::Error| format!("`{}`: {error}", directory.display());
    let mut files = BTreeMap::new();
    for entry in std::fs::read_dir(directory).map_err(wrong)? {
        let path = entry.map_err(wrong)?.path();
        let plain = plain_name(&path);
        let is_record = plain.extension().is_some_and(|ending| ending == ENDING);
        if is_record && (plain == path || !files.contains_key(&plain)) {
            files.insert(plain, path);
        }
    }
    Ok(files.into_values().collect())
}

/// Opens a record; `-` is standard input.
pub(crate) fn open(path: &Path) -> Result<Box<dyn Read>, String> {
    if path.as_os_str() == "-" {
        return Ok(Box::new(io::stdin()));
    }
    let wrong = |error: io::Error| format!("the record `{}`: {error}", path.display());
    match File::open(path) {
        Ok(file) if is_packed(path) => Ok(Box::new(Gunzip::new(file))),
        Ok(file) => Ok(Box::new(file)),
        // Compressed since somebody looked.
        Err(error) if error.kind() == io::ErrorKind::NotFound && !is_packed(path) => {
            match File::open(packed_name(path)) {
                Ok(file) => Ok(Box::new(Gunzip::new(file))),
                Err(_) => Err(wrong(error)),
            }
        }
        Err(error) => Err(wrong(error)),
    }
}

/// Shows every line of every file to `take`, in order, until it says that it has
/// enough.
///
/// # Errors
/// A file cannot be read, or `take` says so.
pub fn each(
    files: &[PathBuf],
    mut take: impl FnMut(Line<'_>) -> Result<Go, String>,
) -> Result<(), String> {
    let mut buffer = Vec::new();
    for path in files {
        let mut reader = BufReader::with_capacity(256 * 1024, open(path)?);
        let wrong = |error: io::Error| format!("the record `{}`: {error}", path.display());
        let mut number = 0_u64;
        while let Some((shape, length)) = next(&mut reader, &mut buffer).map_err(wrong)? {
            number = number.saturating_add(1);
            let line = Line {
                file: path,
                number,
                bytes: &buffer,
                shape,
                length,
            };
            if take(line)? == Go::Stop {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// Whether more lines are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Go {
    /// They are.
    On,
    /// They are not.
    Stop,
}

/// Reads the next line, without its line break, and says how many bytes it took;
/// nothing at the end.
pub(crate) fn next(
    reader: &mut impl BufRead,
    line: &mut Vec<u8>,
) -> io::Result<Option<(Shape, u64)>> {
    line.clear();
    let most = u64::try_from(LINE_BYTES_MAX).unwrap_or(u64::MAX);
    let mut bounded = reader.by_ref().take(most);
    let count = u64::try_from(bounded.read_until(b'\n', line)?).unwrap_or(u64::MAX);
    if line.last() == Some(&b'\n') {
        line.pop();
        return Ok(Some((Shape::Whole, count)));
    }
    if line.is_empty() {
        return Ok(None);
    }
    if count < most {
        return Ok(Some((Shape::Cut, count)));
    }
    let rest = skip_line(reader)?;
    Ok(Some((Shape::TooLong, count.saturating_add(rest))))
}

/// Leaves out the rest of a line; how long it was.
fn skip_line(reader: &mut impl BufRead) -> io::Result<u64> {
    let mut skipped = 0_u64;
    loop {
        let buffer = reader.fill_buf()?;
        if buffer.is_empty() {
            return Ok(skipped);
        }
        let end = buffer.iter().position(|byte| *byte == b'\n');
        let count = end.map_or(buffer.len(), |end| end.saturating_add(1));
        reader.consume(count);
        skipped = skipped.saturating_add(u64::try_from(count).unwrap_or(u64::MAX));
        if end.is_some() {
            return Ok(skipped);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_bounded_and_a_cut_one_is_told_from_a_whole_one() {
        let long = "x".repeat(3 * 1024 * 1024);
        let text = format!("a\n\n{long}\nb\nc");
        let mut reader = BufReader::new(text.as_bytes());
        let mut line = Vec::new();
        let mut seen = Vec::new();
        while let Some((shape, length)) = next(&mut reader, &mut line).unwrap() {
            seen.push((shape, line.len(), length));
        }
        let bound = 1024 * 1024;
        let all = 3 * bound + 1;
        assert_eq!(
            seen,
            [
                (Shape::Whole, 1, 2),
                (Shape::Whole, 0, 1),
                (Shape::TooLong, bound, u64::try_from(all).unwrap()),
                (Shape::Whole, 1, 2),
                (Shape::Cut, 1, 1),
            ]
        );
    }

    #[test]
    fn files_of_one_record_belong_together_in_order() {
        for (name, run) in [
            ("20261121T131734.957Z-1.jsonl", "20261121T131734.957Z-1"),
            (
                "20261121T131734.957Z-1.part0002.jsonl",
                "20261121T131734.957Z-1",
            ),
            (
                "20261121T131734.957Z-1.part000002.jsonl.gz",
                "20261121T131734.957Z-1",
            ),
        ] {
            assert_eq!(run_of(Path::new(name)), run);
        }
        assert!("20261121T131734.957Z-1.jsonl" < "20261121T131734.957Z-1.part0002.jsonl");
    }
}
