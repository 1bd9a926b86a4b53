//! What the scan of content costs: bytes a second of one core through the whole
//! of it, beside the fastest look at a byte there is and the two sets of
//! expressions that somebody would take instead; how long its start takes;
//! and what a long stream keeps. Runs in this process, in processor time.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};
use outgate_dlp::{Description, Detectors, Place, Ruleset, ScanDestination, ScanSettings, Stream};
use regex::bytes::{RegexSet, RegexSetBuilder};

use crate::Outcome;
use crate::hyperscan::Hyperscan;
use crate::lab::{Amount, Lab};
use crate::report::{Report, Verdict};

/// Bytes a second below which ordinary content must not fall.
const ORDINARY_MIN: f64 = 0.6e9;

/// Bytes a second below which no content must fall.
const WORST_MIN: f64 = 0.2e9;

/// Seconds that the start may take.
const START_MAX: f64 = 0.003;

/// Memory that a long stream may take beyond a short one, in KiB.
const MEMORY_KIB_MAX: u64 = 4096;

/// Bytes of content that the scan, and a set of expressions, get at once.
pub(crate) const PIECE_BYTES: usize = 64 * 1024;

/// Where ordinary JavaScript lies.
const JAVASCRIPT: &str = "/usr/lib/node_modules";

/// Rows of this part.
pub(crate) fn measure(lab: &Lab, report: &mut Report) -> Outcome<()> {
    let quick = matches!(lab.amount, Amount::Quick);
    let (bytes, turns, rounds, long) = if quick {
        (1 << 20, 1, 1, 8)
    } else {
        (16 << 20, 5, 4, 10 * 1024)
    };
    let rules = start(report)?;
    let set = set()?;
    let hyperscan = Hyperscan::prepare(lab)?;
    let mut about = "hyperscan: neither libhyperscan-dev nor libvectorscan-dev is here".to_owned();
    let contents = [
        ("random bytes", random(bytes), WORST_MIN),
        ("JSON of words", json(bytes), ORDINARY_MIN),
        ("base64 in JSON", base64(bytes), WORST_MIN),
        ("JavaScript", javascript(bytes), ORDINARY_MIN),
    ];
    // As many bytes of each: a short disturbance must not be all turns of the shorter. And
    // in rounds: one of a second must not be all turns of any.
    let turns_of = |content: &[u8]| bytes.saturating_mul(turns).div_ceil(content.len().max(1));
    let mut scans = contents.each_ref().map(|_| 0.0_f64);
    for _ in 0..rounds {
        let there = contents.iter().zip(&mut scans);
        for ((_, content, _), rate) in there.filter(|((_, content, _), _)| !content.is_empty()) {
            let scan = best(turns_of(content), content.len(), || send(&rules, content))?;
            *rate = rate.max(scan);
        }
    }
    for ((name, content, least), scan) in contents.iter().zip(scans) {
        if content.is_empty() {
            report.note(format!("no {name} on this machine"));
            continue;
        }
        let turns = turns_of(content);
        let look = best(turns, content.len(), || {
            std::hint::black_box(memchr::memchr_iter(0xf8, content).count());
            Ok(())
        })?;
        let (sets, told) = sets(&set, hyperscan.as_ref(), content, turns)?;
        about = told.unwrap_or(about);
        let beside = format!("memchr {:.1}, {sets}", look / 1e9);
        let verdict = if scan >= *least {
            Verdict::Met
        } else {
            Verdict::Missed
        };
        report.facts(
            &format!("scan of {name}, GB/s of one core"),
            [beside, format!("{:.2}", scan / 1e9)],
            &format!("{:.1}", least / 1e9),
            verdict,
        );
    }
    report.note(about);
    memory(&rules, long, report)
}

/// What sets of expressions make of content: their rates, and what is to be told of
/// the library. They know no coding, no boundary and no checksum.
fn sets(
    set: &RegexSet,
    hyperscan: Option<&Hyperscan<'_>>,
    content: &[u8],
    turns: usize,
) -> Outcome<(String, Option<String>)> {
    // The first is so slow that a little says enough.
    let pieces = || {
        let all = content.chunks(PIECE_BYTES);
        all.take((content.len() / PIECE_BYTES / 16).max(1))
    };
    let few = pieces().map(<[u8]>::len).sum();
    let mut found = BTreeSet::new();
    let plain = best(1, few, || {
        found.extend(pieces().flat_map(|piece| set.matches(piece)));
        Ok(())
    })?;
    let plain = format!("RegexSet {:.3}", plain / 1e9);
    let Some(hyperscan) = hyperscan else {
        return Ok((format!("{plain}, hyperscan not here"), None));
    };
    let figure = hyperscan.look(content, few, turns)?;
    figure.agrees(&found)?;
    let rates = format!("{plain}, hyperscan {:.2}", figure.rate / 1e9);
    Ok((rates, Some(figure.about)))
}

/// All detectors as one set of expressions, as somebody would begin who had only
/// those.
fn set() -> Outcome<RegexSet> {
    let detectors = Detectors::shipped();
    let patterns = detectors
        .iter()
        .map(|detector| detector.pattern.to_string());
    Ok(RegexSetBuilder::new(patterns)
        .unicode(false)
        .size_limit(256 << 20)
        .dfa_size_limit(64 << 20)
        .build()?)
}

/// How long it takes until a first byte can be scanned.
fn start(report: &mut Report) -> Outcome<Arc<Ruleset>> {
    let begin = Instant::now();
    let detectors = Detectors::shipped();
    let rules = Arc::new(Ruleset::new(&detectors, &ScanSettings::default())?);
    let took = begin.elapsed().as_secs_f64();
    let verdict = if took <= START_MAX {
        Verdict::Met
    } else {
        Verdict::Missed
    };
    report.facts(
        "start of the detectors",
        [String::new(), format!("{:.2} ms", took * 1e3)],
        "3 ms",
        verdict,
    );
    Ok(rules)
}

/// The most bytes a second of some turns.
fn best(turns: usize, bytes: usize, mut act: impl FnMut() -> Outcome<()>) -> Outcome<f64> {
    let mut least = f64::INFINITY;
    for _ in 0..turns {
        let begin = processor_seconds()?;
        act()?;
        least = least.min(processor_seconds()? - begin);
    }
    let bytes = f64::from(u32::try_from(bytes)?);
    Ok(bytes / least.max(1e-9))
}

/// Processor time of this thread.
fn processor_seconds() -> Outcome<f64> {
    let time = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID)?;
    Ok(Duration::from(time).as_secs_f64())
}

fn stream(rules: &Arc<Ruleset>) -> Stream {
    let destination = ScanDestination {
        host: "origin.test",
        port: 443,
    };
    rules.stream(
        &destination,
        &Description {
            place: Place::Content,
            media_type: None,
            content_codings: None,
            length: None,
        },
    )
}

fn send(rules: &Arc<Ruleset>, content: &[u8]) -> Outcome<()> {
    let mut stream = stream(rules);
    for piece in content.chunks(PIECE_BYTES) {
        stream.push(piece)?;
    }
    stream.finish()?;
    Ok(())
}

/// What a stream of so many MiB keeps.
fn memory(rules: &Arc<Ruleset>, long: usize, report: &mut Report) -> Outcome<()> {
    let piece = json(1 << 20);
    let mut stream = stream(rules);
    stream.push(&piece)?;
    let before = resident_kib()?;
    for _ in 0..long {
        stream.push(&piece)?;
    }
    let more = resident_kib()?.saturating_sub(before);
    let verdict = if more <= MEMORY_KIB_MAX {
        Verdict::Met
    } else {
        Verdict::Missed
    };
    report.facts(
        &format!("memory of a stream of {long} MiB"),
        [String::new(), format!("{more} KiB more")],
        "4096 KiB",
        verdict,
    );
    Ok(())
}

fn resident_kib() -> Outcome<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    Ok(number.ok_or("no VmRSS in /proc/self/status")?.parse()?)
}

/// Numbers that look random and are the same every time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, most: usize) -> usize {
        let low = u32::try_from(self.roll() >> 33).unwrap_or_default();
        usize::try_from(low).unwrap_or_default() % most.max(1)
    }
}

fn random(bytes: usize) -> Vec<u8> {
    let mut dice = Dice(88_172_645_463_325_252);
    (0..bytes / 8)
        .flat_map(|_| dice.roll().to_le_bytes())
        .collect()
}

/// Messages as programs send them to language models, of words of our documents.
fn json(bytes: usize) -> Vec<u8> {
    let words: Vec<&str> = include_str!("../ARCHITECTURE.md")
        .split_whitespace()
        .collect();
    let mut dice = Dice(3);
    let mut text = Vec::with_capacity(bytes);
    while text.len() < bytes {
        text.extend_from_slice(br#"{"role":"user","content":[{"type":"text","text":""#);
        for _ in 0..60 {
            let word = words.get(dice.below(words.len())).unwrap_or(&"");
            text.extend(word.bytes().filter(|byte| !b"\"\\".contains(byte)));
            text.push(b' ');
        }
        text.extend_from_slice(br#"\n"}]},"#);
    }
    text
}

fn base64(bytes: usize) -> Vec<u8> {
    let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut dice = Dice(5);
    let mut text = Vec::with_capacity(bytes);
    while text.len() < bytes {
        text.extend_from_slice(br#"{"data":""#);
        let length = 2000 + dice.below(20_000);
        text.extend((0..length).filter_map(|_| alphabet.get(dice.below(64))));
        text.extend_from_slice(b"==\"}\n");
    }
    text
}

/// Source texts of packages that are installed, in order of their paths.
fn javascript(bytes: usize) -> Vec<u8> {
    let mut text = Vec::new();
    gather(Path::new(JAVASCRIPT), bytes, &mut text);
    text.truncate(bytes);
    text
}

fn gather(folder: &Path, bytes: usize, text: &mut Vec<u8>) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        if text.len() >= bytes {
            return;
        }
        if path.is_dir() && !path.is_symlink() {
            gather(&path, bytes, text);
        } else if path.extension().is_some_and(|ending| ending == "js")
            && let Ok(source) = fs::read(&path)
        {
            text.extend(source);
        }
    }
}
