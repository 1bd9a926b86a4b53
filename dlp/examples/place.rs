//! Says which three bytes of each shipped literal are looked for, and in which group,
//! so that as few places as possible of ordinary content look like one: tried for some
//! minutes on a sample of places of texts, of base64 and of random bytes.
//!
//! `cargo run --release -p outgate-dlp --example place -- TEXTS… > places.new`, where each
//! of `TEXTS` is a file or a folder (of which the first 32 MiB that are UTF-8 are read, in
//! order of names) and counts as much as the others. Then `mv places.new dlp/places.txt`:
//! not written there at once, since the build needs the old one.
//! Literals that the file does not have are placed by the build script, so it needs
//! to be made anew only when there are many of them. Two runs do not find the same:
//! the better one is kept, by what `cargo bench -- --only scan` says. The texts of the file that is
//! there were crates of Rust, the library of Python, packages of Node.js, documents in
//! JSON and in Markdown.

#![expect(
    clippy::indexing_slicing,
    clippy::expect_used,
    clippy::print_stderr,
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a fault ends it, and whoever started it looks at what it wrote"
)]
#![forbid(unsafe_code)]

use std::collections::HashMap;
use std::error::Error;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use outgate_dlp::Detectors;

#[path = "../src/groups.rs"]
#[expect(dead_code, reason = "the crate uses what this does not")]
mod groups;
#[path = "../src/transforms.rs"]
#[expect(dead_code, reason = "the crate uses what this does not")]
mod transforms;

/// What the files of the crate call their own.
mod detector {
    pub(crate) use outgate_dlp::{Anchor, Detector, Text, Tier};
}

use groups::{GROUPS, Placed, WINDOW_BYTES};

/// How long every thread tries.
const TIME: Duration = Duration::from_mins(6);

/// Bytes of each text that are read.
const TEXT_BYTES_MAX: usize = 32 << 20;

/// Places of all texts together that groups are tried on.
const PLACES: usize = 1 << 16;

/// Places of content in base64 beside them, and of random content: what each counts is its
/// share of [`PLACES`].
const BASE64: usize = PLACES / 8;
/// See [`BASE64`].
const RANDOM: usize = PLACES / 8;

/// What it costs that the window of a literal does stand somewhere, beside the one for
/// looking like some window: it is compared.
const MET: f64 = 8.0;

/// A place that is so much worse is taken one time in three at first.
const HEAT: f64 = 0.0001;

type Window = [u8; WINDOW_BYTES];

/// Places in ordinary content, a bit for each.
struct Content {
    /// For each byte of a window, for its lower and its upper half: where it has which.
    having: [[[Vec<u64>; 16]; 2]; WINDOW_BYTES],
    /// How often each window stands in texts.
    shares: HashMap<Window, f64>,
}

impl Content {
    /// Of these texts, each as much as the others.
    fn read(texts: &[PathBuf]) -> Result<Self, Box<dyn Error>> {
        let none = || std::array::from_fn(|_| Vec::new());
        let mut made = Self {
            having: std::array::from_fn(|_| [none(), none()]),
            shares: HashMap::new(),
        };
        let mut places: Vec<Window> = Vec::new();
        for text in texts {
            let mut bytes = Vec::new();
            gather(text, &mut bytes)?;
            let all = bytes.windows(WINDOW_BYTES);
            let share = 1.0 / (all.len().max(1) as f64 * texts.len() as f64);
            let all = all.filter_map(<[u8]>::first_chunk).copied();
            for window in all {
                *made.shares.entry(window).or_default() += share;
            }
            let each = PLACES / texts.len();
            let sample = (0..each).filter_map(|number| bytes.get(number * bytes.len() / each..));
            places.extend(sample.filter_map(<[u8]>::first_chunk).copied());
        }
        let mut chance = Chance(1);
        let symbols: Vec<u8> = (0..=u8::MAX)
            .filter(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/'))
            .collect();
        places.extend((0..BASE64).map(|_| [0; WINDOW_BYTES].map(|_| symbols[chance.below(64)])));
        places.extend((0..RANDOM).map(|_| [0; WINDOW_BYTES].map(|_| chance.below(256) as u8)));
        for list in made.having.as_flattened_mut().as_flattened_mut() {
            list.resize(places.len().div_ceil(64), 0);
        }
        for (number, window) in places.iter().enumerate() {
            for (byte, having) in window.iter().zip(&mut made.having) {
                having[0][usize::from(byte % 16)][number / 64] |= 1 << (number % 64);
                having[1][usize::from(byte / 16)][number / 64] |= 1 << (number % 64);
            }
        }
        Ok(made)
    }

    /// What it costs that the window of a literal stands there.
    fn met(&self, literal: &[u8], at: usize) -> f64 {
        let window: Option<&Window> = literal.get(at..).and_then(<[u8]>::first_chunk);
        let share = window.and_then(|window| self.shares.get(window));
        MET * share.unwrap_or(&0.0)
    }

    /// How often a group seems to stand there.
    fn often(&self, group: &Group) -> f64 {
        let mut all = vec![u64::MAX; self.having[0][0][0].len()];
        let mut some = all.clone();
        for (having, halves) in self.having.iter().zip(&group.0) {
            for (having, counts) in having.iter().zip([&halves.low, &halves.high]) {
                some.fill(0);
                for (having, _) in having.iter().zip(counts).filter(|own| *own.1 > 0) {
                    for (some, having) in some.iter_mut().zip(having) {
                        *some |= having;
                    }
                }
                for (all, some) in all.iter_mut().zip(&some) {
                    *all &= some;
                }
            }
        }
        let count: u32 = all.iter().map(|places| places.count_ones()).sum();
        f64::from(count) / PLACES as f64
    }
}

/// The bytes of a file, or of the files in a folder that are text.
fn gather(path: &Path, bytes: &mut Vec<u8>) -> Result<(), Box<dyn Error>> {
    if bytes.len() >= TEXT_BYTES_MAX || path.is_symlink() {
        return Ok(());
    }
    if path.is_dir() {
        let mut entries: Vec<PathBuf> = fs::read_dir(path)?
            .map(|entry| entry.map(|entry| entry.path()))
            .collect::<Result<_, _>>()?;
        entries.sort();
        return entries.iter().try_for_each(|entry| gather(entry, bytes));
    }
    let content = fs::read(path)?;
    if std::str::from_utf8(&content).is_ok() {
        bytes.extend_from_slice(&content);
    }
    bytes.truncate(TEXT_BYTES_MAX);
    Ok(())
}

/// How many windows have each half of each of their bytes.
#[derive(Clone, Default, PartialEq, Eq)]
struct Group([Halves; WINDOW_BYTES]);

#[derive(Clone, Default, PartialEq, Eq)]
struct Halves {
    low: [u16; 16],
    high: [u16; 16],
}

impl Group {
    /// The halves that some window has.
    fn halves(&self) -> [[[bool; 16]; 2]; WINDOW_BYTES] {
        let has = |counts: &[u16; 16]| counts.map(|count| count > 0);
        self.0
            .each_ref()
            .map(|halves| [has(&halves.low), has(&halves.high)])
    }

    fn change(&mut self, window: &[u8], act: fn(u16) -> u16) {
        for (halves, byte) in self.0.iter_mut().zip(window) {
            let (low, high) = (usize::from(byte & 15), usize::from(byte >> 4));
            halves.low[low] = act(halves.low[low]);
            halves.high[high] = act(halves.high[high]);
        }
    }
}

/// xorshift64*, of which any spread will do; begins with anything but zero.
struct Chance(u64);

impl Chance {
    /// At least 0, and less than 1.
    fn next(&mut self) -> f64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() * end as f64) as usize
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let texts: Vec<PathBuf> = std::env::args_os().skip(1).map(Into::into).collect();
    if texts.is_empty() {
        return Err("no texts were named".into());
    }
    let content = Content::read(&texts)?;
    let mut literals: Vec<Vec<u8>> = Vec::new();
    for detector in Detectors::shipped().iter() {
        for literal in detector.literals.iter() {
            let forms = transforms::forms(detector, literal.as_bytes());
            literals.extend(forms.into_iter().map(|(form, _)| form));
        }
    }
    literals.sort();
    literals.dedup();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let tried: Vec<(f64, Vec<Placed>)> = std::thread::scope(|scope| {
        let one = |number: usize| {
            let (content, literals) = (&content, &literals);
            scope.spawn(move || anneal(content, literals, Chance(1 + number as u64)))
        };
        let all: Vec<_> = (0..threads).map(one).collect();
        let all = all.into_iter().map(|one| one.join().expect("no panic"));
        all.collect()
    });
    let best = tried
        .into_iter()
        .min_by(|one, other| one.0.total_cmp(&other.0));
    let (cost, placed) = best.ok_or("nothing was tried")?;
    eprintln!("at a cost of {cost:.3} for 64 bytes of text");
    let mut out = std::io::stdout().lock();
    for (literal, Placed { at, group }) in literals.iter().zip(placed) {
        writeln!(out, "{at} {group} '{}'", literal.escape_ascii())?;
    }
    Ok(())
}

/// Places for all literals, and what they cost: tries one after the other by chance, and
/// takes what is better; while it is warm also what is worse.
fn anneal(content: &Content, literals: &[Vec<u8>], mut chance: Chance) -> (f64, Vec<Placed>) {
    let mut first = groups::Groups::default();
    let mut placed: Vec<Placed> = literals
        .iter()
        .map(|literal| first.place(literal).expect("literals are long enough"))
        .collect();
    let mut all = vec![Group::default(); GROUPS];
    for (literal, own) in literals.iter().zip(&placed) {
        all[own.group].change(&literal[own.at..], |count| count + 1);
    }
    let mut often: Vec<f64> = all.iter().map(|group| content.often(group)).collect();
    let begin = Instant::now();
    loop {
        let gone = begin.elapsed().as_secs_f64() / TIME.as_secs_f64();
        if gone >= 1.0 {
            break;
        }
        let heat = HEAT * (1.0 - gone).powi(2);
        for _ in 0..64 {
            let which = chance.below(literals.len());
            let (literal, old) = (&literals[which], placed[which]);
            let new = Placed {
                at: chance.below(literal.len() - WINDOW_BYTES + 1),
                group: chance.below(GROUPS),
            };
            // What it leaves and what it enters, which may be the same.
            let mut changed = vec![(old.group, all[old.group].clone())];
            changed[0].1.change(&literal[old.at..], |count| count - 1);
            if new.group != old.group {
                changed.push((new.group, all[new.group].clone()));
            }
            let last = changed.len() - 1;
            changed[last]
                .1
                .change(&literal[new.at..], |count| count + 1);
            let costs: Vec<f64> = changed
                .iter()
                .map(|(number, group)| {
                    if group.halves() == all[*number].halves() {
                        often[*number]
                    } else {
                        content.often(group)
                    }
                })
                .collect();
            let before: f64 = changed.iter().map(|(number, _)| often[*number]).sum();
            let met = content.met(literal, new.at) - content.met(literal, old.at);
            let worse = costs.iter().sum::<f64>() - before + met;
            if worse <= 0.0 || chance.next() < (-worse / heat).exp() {
                for ((number, group), cost) in changed.into_iter().zip(costs) {
                    all[number] = group;
                    often[number] = cost;
                }
                placed[which] = new;
            }
        }
    }
    let met = literals.iter().zip(&placed);
    let met: f64 = met.map(|(literal, own)| content.met(literal, own.at)).sum();
    ((often.iter().sum::<f64>() + met) * 64.0, placed)
}
