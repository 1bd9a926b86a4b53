//! What wants to exhaust the scan, and what it takes to say no: memory and time,
//! alone in its process so that both can be measured.

#![expect(clippy::expect_used, reason = "what is missing is a failed test")]
#![expect(clippy::print_stderr, reason = "says what each attack costs")]

use std::fs;
use std::sync::Arc;

use miniz_oxide::deflate::{compress_to_vec, compress_to_vec_zlib};

use outgate_dlp::{Description, Destination, Detectors, Place, Ruleset, Settings, Unscannable};

/// Memory beyond what was there before, in KiB.
const MEMORY_KIB_MAX: u64 = 64 << 10;

/// Processor time of one attack with optimisation, in milliseconds.
const TIME_MAX: u128 = 1000;

/// How much slower a build without it may be, on a machine that others use.
const SLOWER: u128 = if cfg!(debug_assertions) { 30 } else { 4 };

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut made = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3];
    made.extend(compress_to_vec(bytes, 6));
    made.extend_from_slice(&[0; 8]);
    made
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest)
}

/// Bits, the lowest of a number first (RFC 1951 3.1.1, RFC 7932 1.5.1).
#[derive(Default)]
struct Bits {
    bytes: Vec<u8>,
    filled: usize,
}

impl Bits {
    fn put(&mut self, value: u32, count: u32) {
        for place in 0..count {
            if self.filled.is_multiple_of(8) {
                self.bytes.push(0);
            }
            if let Some(last) = self.bytes.last_mut() {
                *last |= u8::from(value >> place & 1 == 1) << (self.filled % 8);
            }
            self.filled += 1;
        }
    }
}

/// So many meta-blocks of brotli (RFC 7932 9.2), each 16 MiB of one letter in 14
/// bytes: every prefix code has one symbol, which takes no bits.
fn brotli(blocks: usize) -> Vec<u8> {
    const BLOCK_BYTES: u32 = 1 << 24;
    // The longest insertion: code 23 with its 24 bits, beside the shortest copy.
    const INSERT: u32 = 448 + 7 * 8;
    const INSERT_BYTES: u32 = 22594;
    let mut bits = Bits::default();
    bits.put(0, 1);
    for _ in 0..blocks {
        // Not the last, six nibbles of length, compressed.
        bits.put(0, 1);
        bits.put(2, 2);
        bits.put(BLOCK_BYTES - 1, 24);
        bits.put(0, 1);
        // One kind of blocks each, no direct distances, one tree each.
        bits.put(0, 3 + 6 + 2 + 2);
        for (symbol, width) in [(0, 8), (INSERT, 10), (0, 6)] {
            bits.put(1, 2);
            bits.put(0, 2);
            bits.put(symbol, width);
        }
        bits.put(BLOCK_BYTES - INSERT_BYTES, 24);
    }
    bits.put(3, 2);
    bits.bytes
}

/// An entry of a zip archive (APPNOTE 4.3.7) that says it is so long.
fn entry(method: u16, length: u32, data: &[u8]) -> Vec<u8> {
    let mut made = b"PK\x03\x04\x14\0\0\0".to_vec();
    made.extend_from_slice(&method.to_le_bytes());
    made.extend_from_slice(&[0; 8]);
    made.extend_from_slice(&length.to_le_bytes());
    made.extend_from_slice(&length.to_le_bytes());
    made.extend_from_slice(&[1, 0, 0, 0, b'a']);
    made.extend_from_slice(data);
    made
}

fn stored(data: &[u8]) -> Vec<u8> {
    entry(0, u32::try_from(data.len()).expect("below 4 GiB"), data)
}

fn deflated(data: &[u8]) -> Vec<u8> {
    let data = compress_to_vec(data, 6);
    entry(8, u32::try_from(data.len()).expect("below 4 GiB"), &data)
}

/// A pack of git of so many objects.
fn pack(objects: &[&[u8]]) -> Vec<u8> {
    let mut made = b"PACK\0\0\0\x02".to_vec();
    made.extend_from_slice(&u32::try_from(objects.len()).expect("a few").to_be_bytes());
    for object in objects {
        made.push(0x30);
        made.extend(compress_to_vec_zlib(object, 6));
    }
    made
}

/// Files that are all in one stream of deflate: each quotes the head of the next one
/// and goes on in it, and the last is a bomb.
fn quoted(files: usize, kernel: &[u8]) -> Vec<u8> {
    let head = entry(8, 1 << 30, b"");
    let length = u16::try_from(head.len()).expect("a short head");
    let [low, high] = length.to_le_bytes();
    let quote = [head.as_slice(), &[0, low, high, !low, !high]].concat();
    [quote.repeat(files), head, compress_to_vec(kernel, 6)].concat()
}

/// Archives that want to be read again and again.
fn archives(zeros: &[u8]) -> Vec<Attack> {
    type Pack = fn(&[u8]) -> Vec<u8>;
    let (small, large) = ([0; 64], zeros.get(..1 << 20).unwrap_or_default());
    let nested = |pack: Pack| (0..40).fold(large.to_vec(), |all, _| pack(&all));
    let tree = |pack: Pack, seed: &[u8], levels: usize| {
        (0..levels).fold(seed.to_vec(), |all, _| pack(&all).repeat(8))
    };
    let overlapping: Vec<Vec<u8>> = (0..20_000)
        .rev()
        .map(|rest| entry(0, rest * 31, b""))
        .collect();
    vec![
        ("zip, deflated", None, deflated(zeros)),
        (
            "zip, stored",
            None,
            stored(zeros.get(..16 << 20).unwrap_or_default()),
        ),
        ("zip in zip, stored", None, nested(stored)),
        ("zip in zip, deflated", None, nested(deflated)),
        ("zips in zips, stored", None, tree(stored, &small, 5)),
        ("zips in zips, deflated", None, tree(deflated, large, 6)),
        ("zip of many entries", None, deflated(large).repeat(2000)),
        (
            "zip of many empty entries",
            None,
            stored(b"").repeat(30_000),
        ),
        ("zip of entries over each other", None, overlapping.concat()),
        (
            "zip of entries without a length",
            None,
            entry(0, 0, b"").repeat(30_000),
        ),
        ("zip of one stream for all", None, quoted(20_000, large)),
        ("zip of one stream for a few", None, quoted(7, zeros)),
    ]
}

/// Name, content codings and content.
type Attack = (&'static str, Option<&'static str>, Vec<u8>);

fn attacks() -> Vec<Attack> {
    let zeros = vec![0; 100 << 20];
    let bomb = gzip(&zeros);
    let small = gzip(&vec![0; 1 << 20]);
    let digits = |bytes: &[u8]| {
        let pairs = bytes.iter().map(|byte| format!("{byte:02x}"));
        pairs.collect::<Vec<_>>().concat()
    };
    let mut gzips = b"nothing".to_vec();
    for _ in 0..40 {
        gzips = gzip(&gzips);
    }
    let full = |piece: &str| piece.repeat((1 << 20) / piece.len()).into_bytes();
    let mut attacks = archives(&zeros);
    attacks.extend([
        ("gzip", Some("gzip"), bomb.clone()),
        ("gzip, not declared", None, bomb.clone()),
        ("gzip twice", Some("gzip, gzip"), gzip(&bomb)),
        ("gzip forty times", None, gzips),
        ("zlib", None, compress_to_vec_zlib(&zeros, 6)),
        ("deflate", Some("deflate"), compress_to_vec(&zeros, 6)),
        ("zstd", Some("zstd"), zstd(&zeros)),
        ("zstd, not declared", None, zstd(&zeros)),
        ("zstd in gzip", Some("zstd, gzip"), gzip(&zstd(&zeros))),
        ("brotli", Some("br"), brotli(640)),
        ("brotli in gzip", Some("br, gzip"), gzip(&brotli(640))),
        ("gzip of many members", Some("gzip"), small.repeat(2000)),
        ("zip in gzip", None, gzip(&deflated(&zeros))),
        ("pack of one object", None, pack(&[&zeros])),
        (
            "pack of many objects",
            None,
            pack(&vec![zeros.get(..1 << 20).unwrap_or_default(); 400]),
        ),
        ("beginnings of a web token", None, full("eyJ")),
        ("beginnings of a token", None, full("glpat-")),
        ("an end without a beginning", None, full("AZDO")),
        ("addresses without an end", None, full("postgres://a")),
        (
            "percent of percent",
            None,
            [b"%".as_slice(), &full("25")].concat(),
        ),
        ("backslashes", None, full("\\")),
        ("references of references", None, full("&#38;")),
        ("escapes of all kinds", None, full("%41\\u0041&#65;=41")),
        (
            "base64 of base64",
            None,
            full("Vm0wd2QyUXlVWGxWV0d4V1YwZDRWMVl3WkRSV01WbDNX"),
        ),
        ("short runs", None, full("QUJDREVGR0hJSktMTU5PUFFS ")),
        ("hexadecimal", None, full("67687067 ")),
        ("base32", None, full("GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ ")),
        ("hexadecimal of bombs", None, full(&digits(&small))),
        (
            "a thin dump without end behind escapes",
            None,
            [
                b"%41\\u0041=41&#65;".as_slice(),
                &format!("1{:70}", "").repeat((16 << 20) / 71).into_bytes(),
            ]
            .concat(),
        ),
    ]);
    attacks
}

#[test]
fn what_wants_to_exhaust_the_scan_ends_soon_and_small() {
    // What is only recorded goes on where the other is refused.
    let kinds = [Unscannable::Refuse, Unscannable::Record];
    let turns = if cfg!(debug_assertions) {
        1
    } else {
        kinds.len()
    };
    let attacks = attacks();
    for unscannable in kinds.into_iter().take(turns) {
        let settings = Settings {
            unscannable,
            ..Settings::default()
        };
        let rules = Ruleset::new(&Detectors::shipped(), &settings);
        let rules = Arc::new(rules.expect("the shipped detectors"));
        for attack in &attacks {
            check(&rules, attack);
        }
    }
}

fn check(rules: &Arc<Ruleset>, (name, codings, content): &Attack) {
    let before = resident();
    let begin = processor_milliseconds();
    let mut stream = rules.stream(
        &Destination {
            host: "elsewhere.test",
            port: 443,
        },
        &Description {
            place: Place::Content,
            media_type: None,
            content_codings: codings.map(str::as_bytes),
            length: None,
        },
    );
    let sent = content
        .chunks(16 << 10)
        .try_for_each(|piece| stream.push(piece).map(drop));
    let end = sent.and_then(|()| stream.finish().map(drop));
    let took = processor_milliseconds() - begin;
    let more = resident().saturating_sub(before);
    let length = content.len();
    eprintln!("{name}: {length} bytes, {took} ms, {more} KiB, {end:?}");
    assert!(took < TIME_MAX * SLOWER, "{name}: {took} ms");
    assert!(more < MEMORY_KIB_MAX, "{name}: {more} KiB");
}

/// Processor time of this thread.
fn processor_milliseconds() -> u128 {
    let text = fs::read_to_string("/proc/thread-self/schedstat").expect("times");
    let nanoseconds = text
        .split(' ')
        .next()
        .and_then(|text| text.parse::<u128>().ok());
    nanoseconds.expect("a number") / 1_000_000
}

/// Resident memory of this process, in KiB.
fn resident() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("a status");
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().nth(1));
    number.and_then(|text| text.parse().ok()).expect("a number")
}
