//! A search through many records on all processors: files in pieces, plain ones by their
//! bytes and compressed ones by their blocks, of which those are left out whose summary
//! rules them out. What is found comes in the order of the files, and no more than some
//! pieces are in memory.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use super::Record;
use super::filter::Wanted;
use super::query::Shown;
use crate::records::Go;
use crate::records::packed::{Blocks, is_packed, lines_at};

/// Bytes of a plain file that are read at once: enough that starting is nothing beside it.
const PIECE_BYTES: u64 = 4 * 1024 * 1024;
/// Bytes that are read further where the last line of a piece goes on.
const FURTHER_BYTES: usize = 64 * 1024;
/// Bytes of one line at most: longer ones are no records.
const LINE_BYTES_MAX: usize = 1024 * 1024;
/// Threads at most: beyond these the disk or the memory is what is waited for.
const THREADS_MAX: usize = 16;
/// Pieces of each thread whose finds wait to be printed.
const AHEAD_MAX: usize = 2;

/// A part of a file.
enum Piece<'a> {
    /// Lines that begin in these bytes.
    Lines { path: &'a Path, from: u64, to: u64 },
    /// A compressed block.
    Block {
        path: &'a Path,
        offset: u64,
        member_bytes: u32,
    },
}

/// One record that was asked for.
pub(super) struct Hit {
    /// Its day, as it says.
    pub(super) day: String,
    /// As it is printed.
    pub(super) text: String,
}

/// What was found in a piece.
#[derive(Default)]
pub(super) struct Hits {
    pub(super) found: Vec<Hit>,
    /// Lines that are no records, of those that were read.
    pub(super) unread: u64,
}

/// What is sought, and how it is shown.
#[derive(Clone, Copy)]
pub(super) struct Sought<'a> {
    pub(super) wanted: &'a Wanted,
    pub(super) shown: Shown,
}

/// Searches these files; nothing where one of them can only be read from its beginning to
/// its end: a pipe, or compressed by somebody else.
///
/// # Errors
/// A file cannot be read.
pub(super) fn search(
    files: &[PathBuf],
    sought: Sought<'_>,
    mut take: impl FnMut(Hits) -> Go,
) -> Result<Option<()>, String> {
    let Some(pieces) = pieces(files, sought.wanted)? else {
        return Ok(None);
    };
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let count = processors.min(THREADS_MAX).min(pieces.len()).max(1);
    std::thread::scope(|scope| {
        let mut finds: Vec<Receiver<Result<Hits, String>>> = Vec::new();
        for number in 0..count {
            let (sender, receiver) = sync_channel(AHEAD_MAX);
            let own = pieces.iter().skip(number).step_by(count);
            scope.spawn(move || work(own, sought, &sender));
            finds.push(receiver);
        }
        let mut of_each = finds.iter().cycle();
        for _ in &pieces {
            let Some(Ok(hits)) = of_each.next().map(Receiver::recv) else {
                return Err("a part of the search ended early".to_owned());
            };
            if take(hits?) == Go::Stop {
                break;
            }
        }
        // The threads end where nobody hears them.
        drop(finds);
        Ok(Some(()))
    })
}

/// The parts of all files that have to be read.
fn pieces<'a>(files: &'a [PathBuf], wanted: &Wanted) -> Result<Option<Vec<Piece<'a>>>, String> {
    let mut pieces = Vec::new();
    for path in files {
        let wrong = |error: io::Error| format!("the record `{}`: {error}", path.display());
        if is_packed(path) {
            let Some(mut blocks) = Blocks::open(path) else {
                return Ok(None);
            };
            while let Some(block) = blocks.next().map_err(wrong)? {
                if wanted.may_be_in(&block.head) {
                    pieces.push(Piece::Block {
                        path,
                        offset: block.offset,
                        member_bytes: block.head.member_bytes,
                    });
                }
            }
            continue;
        }
        let about = path.metadata();
        let Some(length) = about
            .ok()
            .filter(std::fs::Metadata::is_file)
            .map(|it| it.len())
        else {
            return Ok(None);
        };
        let mut from = 0_u64;
        while from < length {
            let to = from.saturating_add(PIECE_BYTES).min(length);
            pieces.push(Piece::Lines { path, from, to });
            from = to;
        }
    }
    Ok(Some(pieces))
}

fn work<'a>(
    pieces: impl Iterator<Item = &'a Piece<'a>>,
    sought: Sought<'_>,
    finds: &SyncSender<Result<Hits, String>>,
) {
    let mut open: Option<(&Path, File)> = None;
    for piece in pieces {
        let (Piece::Lines { path, .. } | Piece::Block { path, .. }) = piece;
        let wrong = |error: io::Error| format!("the record `{}`: {error}", path.display());
        let file = match open.take() {
            Some((own, file)) if own == *path => Ok(file),
            Some(_) | None => File::open(path),
        };
        let lines = file.and_then(|file| {
            let lines = lines_of(piece, &file);
            open = Some((path, file));
            lines
        });
        let hits = lines.map(|lines| hits(&lines, sought)).map_err(wrong);
        if finds.send(hits).is_err() {
            return;
        }
    }
}

/// The whole lines of a piece.
fn lines_of(piece: &Piece<'_>, file: &File) -> io::Result<Vec<u8>> {
    let (from, to) = match piece {
        Piece::Block {
            offset,
            member_bytes,
            ..
        } => return lines_at(file, *offset, *member_bytes),
        Piece::Lines { from, to, .. } => (*from, *to),
    };
    // The byte before tells whether a line begins with the first one.
    let start = from.saturating_sub(1);
    let length = usize::try_from(to.saturating_sub(start)).map_err(io::Error::other)?;
    let mut bytes = vec![0; length];
    let count = read_upto(file, &mut bytes, start)?;
    bytes.truncate(count);
    if from > 0 {
        let begins = memchr::memchr(b'\n', &bytes).map_or(bytes.len(), |at| at.saturating_add(1));
        bytes.drain(..begins);
        if bytes.is_empty() {
            return Ok(bytes);
        }
    }
    let mut at = to;
    let most = bytes.len().saturating_add(LINE_BYTES_MAX);
    while bytes.last() != Some(&b'\n') && bytes.len() < most {
        let mut further = vec![0; FURTHER_BYTES];
        let count = read_upto(file, &mut further, at)?;
        further.truncate(count);
        if further.is_empty() {
            break;
        }
        let end = memchr::memchr(b'\n', &further).map_or(count, |at| at.saturating_add(1));
        further.truncate(end);
        at = at.saturating_add(u64::try_from(end).unwrap_or(u64::MAX));
        bytes.append(&mut further);
    }
    Ok(bytes)
}

/// Fills the buffer, as far as the file goes.
fn read_upto(file: &File, buffer: &mut [u8], from: u64) -> io::Result<usize> {
    let mut count = 0;
    while let Some(rest) = buffer.get_mut(count..).filter(|rest| !rest.is_empty()) {
        let at = from.saturating_add(u64::try_from(count).unwrap_or(u64::MAX));
        match file.read_at(rest, at) {
            Ok(0) => break,
            Ok(more) => count = count.saturating_add(more),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(count)
}

pub(super) fn hits(mut lines: &[u8], sought: Sought<'_>) -> Hits {
    let mut hits = Hits::default();
    while !lines.is_empty() {
        let end = memchr::memchr(b'\n', lines).unwrap_or(lines.len());
        let (line, rest) = lines.split_at_checked(end).unwrap_or_default();
        lines = rest.get(1..).unwrap_or_default();
        if !sought.wanted.may_be(line) {
            continue;
        }
        let Some(record) = Record::parse(line) else {
            hits.unread = hits.unread.saturating_add(1);
            continue;
        };
        if sought.wanted.takes(&record) {
            let day = record.time.split('T').next().unwrap_or_default().to_owned();
            let text = sought.shown.text(line, &record);
            hits.found.push(Hit { day, text });
        }
    }
    hits
}
