//! `outgate audit tail`: the last records, and those that follow, also where the
//! record goes on in another file or is begun anew.

use std::fs::File;
use std::io::{self, BufReader, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::mpsc;
use std::time::{Duration, SystemTime};

use super::Record;
use super::arguments::Tail;
use super::filter::Wanted;
use super::kept::Kept;
use super::query::Shown;
use super::verify::is_written;
use super::voice;
use crate::records::packed::plain_name;
use crate::records::{self, Go, Line, Shape};

/// Time between two looks at a file that is followed.
const LOOK_TIME: Duration = Duration::from_millis(200);
/// Records that are shown of the past at most.
const COUNT_MAX: usize = 100_000;

/// What is followed: a file, and how far it was read.
struct Followed<'a> {
    file: PathBuf,
    offset: u64,
    /// The file itself, whatever its name leads to by now.
    inode: u64,
    /// Where runs leave their records, if the next file is to be found.
    records: Option<&'a Path>,
}

/// Shows the last records, and follows.
pub(crate) fn tail(options: &Tail, records: Option<&Path>) -> Result<ExitCode, String> {
    let wanted = Wanted::of(&options.filter, SystemTime::now())?;
    let shown = Shown::of(&options.filter);
    let named = options
        .file
        .clone()
        .unwrap_or_else(|| PathBuf::from("last"));
    // In the next file goes on the run that is the last one there.
    let records = match &named {
        named if named.as_os_str() == "last" => records,
        named if named.is_dir() => Some(named.as_path()),
        _ => None,
    };
    let files = records::files(std::slice::from_ref(&named), records)?;
    let mut kept = Kept::new(options.count.min(COUNT_MAX));
    let mut offset = 0_u64;
    let mut current = PathBuf::new();
    records::each(&files, |line: Line<'_>| {
        if current != line.file {
            line.file.clone_into(&mut current);
            offset = 0;
        }
        if line.shape == Shape::Cut {
            // Somebody writes it right now.
            return Ok(Go::On);
        }
        offset = offset.saturating_add(line.length);
        if let Some(text) = shown_line(&line, &wanted, shown) {
            kept.push(text);
        }
        Ok(Go::On)
    })?;
    if let Some(note) = kept.note() {
        voice::note(&note);
    }
    for text in kept.into_lines() {
        if say(&text) == Go::Stop {
            return Ok(ExitCode::SUCCESS);
        }
    }
    let file = files.last().cloned().unwrap_or_default();
    if options.follow && file.as_os_str() != "-" {
        let mut followed = Followed {
            inode: inode(&file),
            offset: if current == file { offset } else { 0 },
            file,
            records,
        };
        follow(&mut followed, &wanted, shown)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn follow(followed: &mut Followed<'_>, wanted: &Wanted, shown: Shown) -> Result<(), String> {
    // A wait that only its end ends.
    let (_kept, never) = mpsc::channel::<()>();
    loop {
        if followed.read(wanted, shown)? == Go::Stop {
            return Ok(());
        }
        if never.recv_timeout(LOOK_TIME) == Err(mpsc::RecvTimeoutError::Disconnected) {
            return Ok(());
        }
    }
}

impl Followed<'_> {
    /// Shows what is new.
    fn read(&mut self, wanted: &Wanted, shown: Shown) -> Result<Go, String> {
        let wrong = |error: io::Error| format!("the record `{}`: {error}", self.file.display());
        let Ok(mut file) = File::open(&self.file) else {
            // Moved away, and not made anew yet.
            return Ok(Go::On);
        };
        let about = file.metadata().map_err(wrong)?;
        if about.ino() != self.inode || about.len() < self.offset {
            self.inode = about.ino();
            self.offset = 0;
        }
        file.seek(SeekFrom::Start(self.offset)).map_err(wrong)?;
        let mut reader = BufReader::new(file);
        let mut buffer = Vec::new();
        let mut number = 0;
        let mut read = 0_u64;
        while let Some((shape, length)) = records::next(&mut reader, &mut buffer).map_err(wrong)? {
            if shape == Shape::Cut {
                break;
            }
            number += 1;
            read = read.saturating_add(length);
            let line = Line {
                file: &self.file,
                number,
                bytes: &buffer,
                shape,
                length,
            };
            if let Some(text) = shown_line(&line, wanted, shown)
                && say(&text) == Go::Stop
            {
                return Ok(Go::Stop);
            }
        }
        self.offset = self.offset.saturating_add(read);
        if read == 0 {
            self.go_on();
        }
        Ok(Go::On)
    }

    /// Goes on in the next file of the record, if there is one.
    fn go_on(&mut self) {
        let Ok(files) = records::latest(self.records) else {
            return;
        };
        let is_own = |file: &PathBuf| plain_name(file) == plain_name(&self.file);
        let mut after = files.iter().skip_while(|file| !is_own(file)).skip(1);
        // Once this run has ended, the next one becomes the latest.
        let ended = !files.iter().any(is_own) && !is_written(&self.file);
        let next = after.next().or(files.first().filter(|_| ended));
        if let Some(next) = next.cloned() {
            self.inode = inode(&next);
            self.file = next;
            self.offset = 0;
        }
    }
}

fn shown_line(line: &Line<'_>, wanted: &Wanted, shown: Shown) -> Option<String> {
    let record = Record::parse(line.bytes)?;
    wanted
        .takes(&record)
        .then(|| shown.text(line.bytes, &record))
}

fn say(text: &str) -> Go {
    let mut out = io::stdout().lock();
    match writeln!(out, "{text}").and_then(|()| out.flush()) {
        Ok(()) => Go::On,
        Err(_) => Go::Stop,
    }
}

fn inode(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |about| about.ino())
}
