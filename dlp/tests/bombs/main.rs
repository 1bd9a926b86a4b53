//! What wants to exhaust the scan, and what it takes to say no: the most memory it
//! ever has, and processor time. Each attack gets a process of its own, which reads
//! it from a pipe, so that neither the making of it nor another attack counts.

#![expect(clippy::expect_used, reason = "what is missing is a failed test")]
#![expect(clippy::print_stderr, reason = "says what each attack costs")]

mod archives;
mod codings;
mod pack;
mod texts;

use std::fs;
use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::sync::Arc;

use outgate_dlp::{
    Description, Detectors, Place, Ruleset, ScanDestination, ScanSettings, UnscannableAction,
};

/// Memory beyond what was there before, at its most, in KiB.
const MEMORY_KIB_MAX: u64 = 64 << 10;

/// Processor time of one attack with optimisation, in milliseconds.
const TIME_MAX: u64 = 1000;

/// How much slower a build without it may be, on a machine that others use.
const SLOWER: u64 = if cfg!(debug_assertions) { 30 } else { 4 };

/// What a process of this program is to do instead of the tests: what happens to
/// what cannot be scanned, the content codings and the media type.
const ERRAND: &str = "OUTGATE_BOMB";

/// What begins the line of that process that says what it cost.
const COST: &str = "cost: ";

/// Content that wants to exhaust the scan, and what is said of it.
#[derive(Debug)]
struct Attack {
    name: String,
    codings: &'static str,
    media: &'static str,
    content: Vec<u8>,
}

impl Attack {
    /// Of which nothing is said.
    fn bare(name: &str, content: Vec<u8>) -> Self {
        Self::coded(name, "", content)
    }

    fn coded(name: &str, codings: &'static str, content: Vec<u8>) -> Self {
        Self {
            name: name.to_owned(),
            codings,
            media: "",
            content,
        }
    }

    /// In a process of its own.
    fn check(&self, errand: &str) {
        let words = [errand, self.codings, self.media].join("|");
        let mut child = Command::new(std::env::current_exe().expect("this program"))
            .args(["--exact", "one_attack", "--nocapture", "--test-threads=1"])
            .env(ERRAND, words)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("this program again");
        let mut to = child.stdin.take().expect("a pipe");
        // It may end before it read everything.
        drop(to.write_all(&self.content));
        drop(to);
        let said = child.wait_with_output().expect("it ends");
        let text = String::from_utf8_lossy(&said.stderr);
        let (name, length) = (&self.name, self.content.len());
        assert!(said.status.success(), "{name}: {}: {text}", said.status);
        let line = text.lines().find_map(|line| line.strip_prefix(COST));
        let line = line.expect("what it cost");
        eprintln!("{name}, {errand}: {length} bytes, {line}");
        let mut numbers = line.split(' ').filter_map(|word| word.parse::<u64>().ok());
        let took = numbers.next().expect("milliseconds");
        let more = numbers.next().expect("KiB");
        assert!(took < TIME_MAX * SLOWER, "{name}: {took} ms");
        assert!(more < MEMORY_KIB_MAX, "{name}: {more} KiB");
    }
}

/// Makes all of them. What is only recorded goes on where the other is refused.
fn check_all(attacks: &[Attack]) {
    let errands = ["refuse", "record"];
    let turns = if cfg!(debug_assertions) {
        1
    } else {
        errands.len()
    };
    for errand in errands.into_iter().take(turns) {
        for attack in attacks {
            attack.check(errand);
        }
    }
}

#[test]
fn archives_end_soon_and_small() {
    check_all(&archives::all());
}

#[test]
fn compressed_content_ends_soon_and_small() {
    check_all(&codings::all());
}

#[test]
fn texts_end_soon_and_small() {
    check_all(&texts::all());
}

#[test]
fn no_detector_reads_the_same_bytes_again_and_again() {
    check_all(&texts::of_detectors());
}

/// The process of one attack; nothing where none is asked for.
#[test]
fn one_attack() {
    let Ok(words) = std::env::var(ERRAND) else {
        return;
    };
    let words: Vec<&str> = words.split('|').collect();
    let [errand, codings, media] = words.as_slice() else {
        return;
    };
    let settings = ScanSettings {
        unscannable: if *errand == "record" {
            UnscannableAction::Record
        } else {
            UnscannableAction::Refuse
        },
        ..ScanSettings::default()
    };
    let rules = Ruleset::new(&Detectors::shipped(), &settings).expect("the shipped detectors");
    let mut stream = Arc::new(rules).stream(
        &ScanDestination {
            host: "elsewhere.test",
            port: 443,
        },
        &Description {
            place: Place::Content,
            media_type: said(media),
            content_codings: said(codings),
            length: None,
        },
    );
    let (mut piece, mut input) = (Vec::with_capacity(16 << 10), std::io::stdin().lock());
    // From here on the most memory is counted anew (proc_pid_clear_refs(5)).
    fs::write("/proc/self/clear_refs", "5").expect("the peak begins again");
    let before = memory("VmRSS:");
    let begin = processor_milliseconds();
    let end = loop {
        piece.clear();
        let mut some = input.by_ref().take(16 << 10);
        if some.read_to_end(&mut piece).expect("the attack") == 0 {
            break stream.finish().map(drop);
        }
        if let Err(stop) = stream.push(&piece) {
            break Err(stop);
        }
    };
    let took = processor_milliseconds() - begin;
    let more = memory("VmHWM:").saturating_sub(before);
    eprintln!("{COST}{took} ms, {more} KiB, {end:?}");
}

/// What is said, if anything is.
fn said(text: &str) -> Option<&[u8]> {
    (!text.is_empty()).then_some(text.as_bytes())
}

/// Processor time of this thread.
fn processor_milliseconds() -> u64 {
    let text = fs::read_to_string("/proc/thread-self/schedstat").expect("times");
    let nanoseconds = text
        .split(' ')
        .next()
        .and_then(|text| text.parse::<u64>().ok());
    nanoseconds.expect("a number") / 1_000_000
}

/// A line of what memory this process has, in KiB.
fn memory(name: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("a status");
    let line = status.lines().find(|line| line.starts_with(name));
    let number = line.and_then(|line| line.split_whitespace().nth(1));
    number.and_then(|text| text.parse().ok()).expect("a number")
}
