//! What a stream keeps, alone in its process so that it can be measured. Ten GiB are
//! sent by the bench (`cargo bench --bench bench -- --only scan`); here it is less of
//! more kinds.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "what is missing is a failed test"
)]

use std::io::Write as _;
use std::sync::Arc;

use miniz_oxide::MZFlush;
use miniz_oxide::deflate::core::{CompressorOxide, create_comp_flags_from_zip_params};
use miniz_oxide::deflate::stream::deflate;

use outgate_dlp::{Description, Detectors, Place, Ruleset, ScanDestination, ScanSettings};

/// Bytes of one upload.
const BYTES: u64 = if cfg!(debug_assertions) {
    8 << 20
} else {
    96 << 20
};

/// Memory beyond what was there before, in KiB.
const MEMORY_KIB_MAX: u64 = 16 << 10;

/// An upload without an end: what it is, its codings, how it begins, and what it goes
/// on with over and over.
type Upload = (&'static str, Option<&'static str>, Vec<u8>, Vec<u8>);

fn words() -> Vec<u8> {
    b"words and words, base64 Zm9vYmFyYmF6cXV4Zm9vYmFy, %41 and \\u0041; ".repeat(200)
}

/// One member of gzip: every piece is whole, and none is the last.
fn gzip() -> Upload {
    let mut state = CompressorOxide::new(create_comp_flags_from_zip_params(6, 0, 0));
    let mut space = vec![0; 64 << 10];
    let letters = letters(40_000);
    let count = deflate(&mut state, &letters, &mut space, MZFlush::Sync).bytes_written;
    let head = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3];
    ("gzip", Some("gzip"), head, space[..count].to_vec())
}

/// One frame of zstd: every block is whole, and none is the last.
fn zstd() -> Upload {
    let letters = letters(100_000);
    let level = ruzstd::encoding::CompressionLevel::Fastest;
    let frame = ruzstd::encoding::compress_to_vec(letters.as_slice(), level);
    assert_eq!(frame[4] & 0xe7, 0, "a window, and nothing else");
    let (head, blocks) = frame.split_at(6);
    let mut blocks = blocks.to_vec();
    assert_eq!(blocks[0] & 1, 1, "one block");
    blocks[0] &= 0xfe;
    ("zstd", Some("zstd"), head.to_vec(), blocks)
}

/// Streams of xz, one behind the other, each with a dictionary of its own.
fn xz() -> Upload {
    let options = lzma_rust2::XzOptions::with_preset(6);
    let mut writer = lzma_rust2::XzWriter::new(Vec::new(), options).expect("options");
    writer.write_all(&letters(50_000)).expect("memory");
    let stream = writer.finish().expect("memory");
    ("xz", None, stream.clone(), stream)
}

/// The same of bzip2.
fn bzip2() -> Upload {
    let level = bzip2::Compression::new(9);
    let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), level);
    encoder.write_all(&letters(50_000)).expect("memory");
    let stream = encoder.finish().expect("memory");
    ("bzip2", None, stream.clone(), stream)
}

/// A frame of LZ4 whose blocks copy from those before, and have no end.
fn lz4() -> Upload {
    let head = vec![0x04, 0x22, 0x4d, 0x18, 0x40, 0x70, 0xdf];
    let block = lz4_flex::block::compress(&letters(15_000));
    let size = u32::try_from(block.len()).expect("a short block");
    let block = [size.to_le_bytes().as_slice(), &block].concat();
    ("lz4", None, head, block)
}

/// Letters by chance: compression makes them shorter, but not by much.
fn letters(count: usize) -> Vec<u8> {
    let mut state = 1_u32;
    let mut next = || {
        state = state.wrapping_mul(0x41c6_4e6d).wrapping_add(0x3039);
        b'a' + state.to_be_bytes()[0] % 26
    };
    (0..count).map(|_| next()).collect()
}

#[test]
fn a_long_stream_takes_no_more_memory_than_a_short_one() {
    let rules = Ruleset::new(&Detectors::shipped(), &ScanSettings::default());
    let rules = Arc::new(rules.expect("the shipped detectors"));
    let uploads: [Upload; 9] = [
        ("words", None, Vec::new(), words()),
        ("zeros", None, Vec::new(), vec![0; 16 << 10]),
        (
            "a run",
            None,
            Vec::new(),
            b"Zm9vYmFyYmF6cXV4Zm9vYmFy".repeat(600),
        ),
        ("digits", None, Vec::new(), b"67687067".repeat(2000)),
        gzip(),
        zstd(),
        xz(),
        bzip2(),
        lz4(),
    ];
    for (name, codings, head, piece) in uploads {
        let mut stream = rules.stream(
            &ScanDestination {
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
        stream.push(&head).expect("nothing to find");
        let before = resident();
        let mut sent = u64::try_from(head.len()).expect("a length");
        let mut held = 0;
        while sent < BYTES {
            sent += u64::try_from(piece.len()).expect("a length");
            let released = stream.push(&piece).expect("nothing to find");
            held = held.max(sent - released);
        }
        let more = resident().saturating_sub(before);
        eprintln!("{name}: {sent} bytes, {more} KiB more, {held} bytes held at most");
        // What is held lies with whoever sends it.
        assert!(held < 1 << 20, "{name}: {held} held");
        assert!(codings.is_some() || held < 64 << 10, "{name}: {held} held");
        assert!(more < MEMORY_KIB_MAX, "{name}: {more} KiB more than before");
    }
}

/// Resident memory of this process, in KiB.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("a status");
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .expect("a line");
    line.split_whitespace()
        .nth(1)
        .and_then(|text| text.parse().ok())
        .expect("a number")
}
