//! bzip2, xz, lzip and LZ4, in every form that their programs write: looked into wherever they
//! stand, whatever the pieces, and what cannot be read of them is told.

use lzma_rust2::filter::FilterType;
use lzma_rust2::{CheckType, LzmaOptions, XzOptions};
use outgate_dlp::{ScanPolicy, Stop, UnscannableAction, UnscannedReason};
use proptest::prelude::*;

use crate::archives::{zip_of_method, zip_stored};
use crate::encode::{gzip, plain_base64, zstd};
use crate::packers::{
    LZ4, Lz4Frame, bzip2, lz4, lz4_legacy, lzip, lzma, lzma_with, xz, xz_filtered, xz_of,
};
use crate::stage::{Dice, rules, sample_of, send, strict};

type Pack = fn(&[u8]) -> Vec<u8>;

/// xz with blocks of its own for so many bytes, and a checksum of this kind.
fn xz_blocks(bytes: &[u8], check: CheckType) -> Vec<u8> {
    let mut options = XzOptions::with_preset(3);
    options.check_type = check;
    options.block_size = std::num::NonZeroU64::new(20_000);
    xz(bytes, options)
}

const PACKS: &[(&str, Pack)] = &[
    ("bzip2 -1", |bytes| bzip2(bytes, 1)),
    ("bzip2 -9", |bytes| bzip2(bytes, 9)),
    ("xz -0", |bytes| xz_of(bytes, 0)),
    ("xz", |bytes| xz_of(bytes, 6)),
    ("xz -5", |bytes| xz_of(bytes, 5)),
    ("xz without a checksum", |bytes| {
        xz_blocks(bytes, CheckType::None)
    }),
    ("xz with SHA-256", |bytes| {
        xz_blocks(bytes, CheckType::Sha256)
    }),
    ("xz for x86", |bytes| xz_filtered(bytes, FilterType::BcjX86)),
    ("xz for ARM64", |bytes| {
        xz_filtered(bytes, FilterType::BcjArm64)
    }),
    ("xz of differences", |bytes| {
        xz_filtered(bytes, FilterType::Delta)
    }),
    ("lzip", lzip),
    ("lzma", |bytes| lzma(bytes, None)),
    ("lzma of a size", |bytes| {
        lzma(bytes, Some(bytes.len() as u64))
    }),
    ("lz4", |bytes| lz4(bytes, LZ4)),
    ("lz4 with all that it may have", |bytes| {
        lz4(
            bytes,
            Lz4Frame {
                flags: 0x7c,
                block: 7,
                bytes: 4 << 20,
            },
        )
    }),
    ("lz4 linked", |bytes| {
        lz4(
            bytes,
            Lz4Frame {
                flags: 0x40,
                block: 4,
                bytes: 700,
            },
        )
    }),
    ("lz4 -l", lz4_legacy),
    ("zip with bzip2", |bytes| {
        zip_of_method(12, &bzip2(bytes, 6))
    }),
    ("zip with xz", |bytes| zip_of_method(95, &xz_of(bytes, 6))),
];

/// Whether its beginning is looked for where values and files begin alone.
fn is_unmarked(name: &str) -> bool {
    name == "lzma of a size"
}

/// Words with a token among them, more than any window here.
fn text(seed: u64, bytes: usize) -> Vec<u8> {
    let mut dice = Dice(seed);
    let mut text = dice.words(bytes);
    let at = dice.roll(bytes);
    let token = [b" ", sample_of("github-token", seed).as_slice(), b" "].concat();
    text.splice(at..at, token);
    text
}

#[test]
fn no_secret_leaves_in_a_compressed_file() {
    let rules = strict();
    for (name, pack) in PACKS {
        for (seed, bytes) in [(1, 40), (2, 900), (3, 30_000), (4, 200_000)] {
            let file = pack(&text(seed, bytes));
            let places: [(&str, Vec<u8>); 5] = [
                ("alone", file.clone()),
                (
                    "behind words",
                    [b"words first, and then\n", file.as_slice()].concat(),
                ),
                ("in base64", plain_base64(&file)),
                ("in gzip", gzip(&file)),
                ("in zip", zip_stored(&file)),
            ];
            // Of an entry whose length is said behind it the first 4 KiB are looked at as one.
            let is_long = file.len() > 4000;
            for (place, content) in places {
                if is_long && place == "in zip" || is_unmarked(name) && place == "behind words" {
                    continue;
                }
                let outcome = send(&rules, None, &content, &Dice(seed).lengths(4000));
                let place = format!("{name} of {bytes} {place}: {:?}", outcome.stop);
                assert!(
                    outcome.found().is_some(),
                    "{place}, {:?}",
                    outcome.unscanned
                );
                assert!(outcome.released < content.len() as u64, "{place}");
            }
        }
    }
}

#[test]
fn a_file_behind_another_is_looked_into() {
    let rules = strict();
    for (name, pack) in PACKS.iter().filter(|(name, _)| !is_unmarked(name)) {
        let content = [
            pack(b"nothing in here"),
            pack(&text(5, 500)),
            pack(b"nor here"),
        ]
        .concat();
        let outcome = send(&rules, None, &content, &[1000]);
        assert!(outcome.found().is_some(), "{name}: {:?}", outcome.stop);
    }
}

#[test]
fn what_holds_nothing_leaves_and_is_no_gap() {
    let rules = strict();
    for (name, pack) in PACKS {
        for bytes in [0, 1, 4000, 300_000] {
            let content = pack(&Dice(9).words(bytes));
            let outcome = send(&rules, None, &content, &Dice(10).lengths(9000));
            assert!(
                outcome.stop.is_none(),
                "{name} of {bytes}: {:?}",
                outcome.stop
            );
            assert!(
                outcome.unscanned.is_none(),
                "{name} of {bytes}: {:?}",
                outcome.unscanned
            );
        }
    }
}

/// What cannot be compressed again is stored in blocks of less than 64 KiB.
#[test]
fn compressed_files_in_others_are_no_gap() {
    let files: [(&str, Vec<u8>); 3] = [
        ("xz", xz_of(&Dice(14).bytes(100_000), 0)),
        ("bzip2", bzip2(&Dice(15).bytes(100_000), 1)),
        ("gzip", gzip(&Dice(16).bytes(100_000))),
    ];
    for (name, file) in files {
        let outer = gzip(&file);
        let outcome = send(&strict(), None, &outer, &[3000]);
        assert!(outcome.stop.is_none(), "{name}: {:?}", outcome.stop);
        let mut damaged = file.clone();
        damaged.truncate(file.len() / 2);
        let outcome = send(&strict(), None, &gzip(&damaged), &[3000]);
        let is_told = matches!(&outcome.stop, Some(Stop::Unscannable(_)));
        assert!(is_told, "{name}: {:?}", outcome.stop);
    }
}

#[test]
fn what_is_damaged_or_ends_early_is_told() {
    for (name, pack) in PACKS {
        let whole = pack(&Dice(11).words(50_000));
        let cut = &whole[..whole.len() / 2];
        let mut damaged = whole.clone();
        for byte in damaged.iter_mut().skip(whole.len() / 2).take(30) {
            *byte ^= 0x5a;
        }
        for (what, content) in [("cut", cut), ("damaged", &damaged)] {
            let outcome = send(&strict(), None, content, &[700]);
            let is_told = matches!(&outcome.stop, Some(Stop::Unscannable(_)));
            // A flipped literal of LZ4 is another literal, and its checksum is not compared.
            let is_text = what == "damaged" && name.starts_with("lz4");
            assert!(is_told || is_text, "{name} {what}: {:?}", outcome.stop);
        }
    }
}

#[test]
fn a_secret_before_the_damage_is_found() {
    for (name, pack) in PACKS {
        let mut text = text(6, 20);
        text.extend(Dice(12).words(300_000));
        let mut content = pack(&text);
        let last = content.len() - content.len() / 8;
        content[last..].fill(0x55);
        let outcome = send(&strict(), None, &content, &[700]);
        // Of one block nothing comes out before all of it is there.
        let is_one_block = name.contains("bzip2") || name.starts_with("lz4 ");
        assert!(
            outcome.found().is_some() || is_one_block,
            "{name}: {:?}",
            outcome.stop
        );
        assert!(outcome.stop.is_some(), "{name}");
    }
}

#[test]
fn what_asks_for_more_than_there_is_is_told() {
    // A dictionary that readers have, and one of 1.5 GiB.
    let mut with_dictionary = vec![0x04, 0x22, 0x4d, 0x18, 0x61, 0x40, 1, 2, 3, 4];
    with_dictionary.push(0x74);
    let tolerant = rules(ScanPolicy::Tiered, UnscannableAction::RefuseBombs);
    let mut large = XzOptions::with_preset(0);
    large.lzma_options.dict_size = 128 << 20;
    for (content, reasons) in [
        (
            xz(&Dice(13).words(1000), large),
            [UnscannedReason::Memory, UnscannedReason::Memory],
        ),
        (
            with_dictionary,
            [UnscannedReason::UnknownCoding, UnscannedReason::Damaged],
        ),
    ] {
        let outcome = send(&tolerant, None, &content, &[content.len()]);
        assert!(outcome.stop.is_none(), "{:?}", outcome.stop);
        let told = outcome.unscanned.map(|unscanned| unscanned.reason);
        let is_header = told.is_none() && content.len() < 20;
        assert!(
            is_header || told.is_some_and(|told| reasons.contains(&told)),
            "{told:?}"
        );
    }
}

/// In what text the bytes of a file may stand.
fn in_texts(file: &[u8]) -> Vec<(&'static str, Vec<u8>)> {
    let each = |form: &dyn Fn(u8) -> String| -> String {
        file.iter()
            .map(|byte| form(*byte))
            .collect::<Vec<_>>()
            .concat()
    };
    let extra = u16::try_from(file.len())
        .expect("a short file")
        .to_le_bytes();
    let gzip_head = [&[0x1f, 0x8b, 8, 4, 0, 0, 0, 0, 0, 3][..], &extra, file].concat();
    vec![
        (
            "a form",
            format!("a=1&b={}", each(&|byte| format!("%{byte:02x}"))).into_bytes(),
        ),
        (
            "JSON",
            format!("{{\"a\": \"{}\"}}", each(&|byte| format!("\\u{byte:04x}"))).into_bytes(),
        ),
        (
            "quoted-printable",
            format!("x: {}", each(&|byte| format!("={byte:02X}"))).into_bytes(),
        ),
        (
            "the head of gzip",
            [
                gzip_head,
                miniz_oxide::deflate::compress_to_vec(b"words", 6),
                vec![0; 8],
            ]
            .concat(),
        ),
    ]
}

#[test]
fn what_is_not_opened_is_told_in_any_text() {
    let mut large = XzOptions::with_preset(0);
    large.lzma_options.dict_size = 128 << 20;
    let mut filtered = XzOptions::with_preset(0);
    filtered.prepend_pre_filter(FilterType::BcjX86, 0);
    filtered.prepend_pre_filter(FilterType::Delta, 1);
    let words = Dice(21).words(300);
    for (name, file) in [
        ("a large dictionary", xz(&words, large)),
        ("two filters", xz(&words, filtered)),
        (
            "lzip of the first version",
            [b"LZIP\0\x14".as_slice(), &lzip(&words)[6..]].concat(),
        ),
    ] {
        for (place, content) in in_texts(&file) {
            let outcome = send(&strict(), None, &content, &[300]);
            let is_told = matches!(&outcome.stop, Some(Stop::Unscannable(_)));
            // In the head of gzip what makes no sense is taken for a part of its data.
            let is_cut = name == "two filters" && place == "the head of gzip";
            assert!(is_told || is_cut, "{name} in {place}: {:?}", outcome.stop);
        }
    }
}

#[test]
fn lzma_of_any_properties_is_looked_into() {
    for (seed, (lc, lp, pb)) in [(3, 0, 2), (0, 0, 0), (4, 0, 4), (1, 3, 1), (0, 4, 0)]
        .into_iter()
        .enumerate()
    {
        for dict_size in [4096, 5000, 1 << 20, (1 << 20) + 1] {
            for zeros in [0, 6, 400] {
                let mut options = LzmaOptions::with_preset(1);
                (options.lc, options.lp, options.pb) = (lc, lp, pb);
                options.dict_size = dict_size;
                let text = [vec![0; zeros], text(seed as u64, 700)].concat();
                for size in [None, Some(text.len() as u64)] {
                    let file = lzma_with(&text, &options, size);
                    for (place, content) in
                        [("alone", file.clone()), ("in base64", plain_base64(&file))]
                    {
                        let outcome = send(&strict(), None, &content, &[500]);
                        let place = format!("{lc} {lp} {pb} {dict_size} {zeros} {size:?} {place}");
                        assert!(outcome.found().is_some(), "{place}: {:?}", outcome.stop);
                    }
                }
            }
        }
    }
}

/// Streams one behind the other, cut every so many bytes.
fn members(pack: Pack, text: &[u8], every: usize) -> Vec<u8> {
    text.chunks(every).flat_map(pack).collect()
}

#[test]
fn what_is_cut_over_streams_of_one_file_is_whole() {
    let packs: [(&str, Pack); 8] = [
        ("gzip", gzip),
        ("zstd", zstd),
        ("bzip2", |bytes| bzip2(bytes, 9)),
        ("xz", |bytes| xz_of(bytes, 0)),
        ("xz with padding", |bytes| {
            [xz_of(bytes, 0), vec![0; 8]].concat()
        }),
        ("lzip", lzip),
        ("lz4", |bytes| lz4(bytes, LZ4)),
        ("lz4 with what is skipped between", |bytes| {
            let skipped = b"\x52\x2a\x4d\x18\x03\0\0\0abc";
            [lz4(bytes, LZ4), skipped.to_vec()].concat()
        }),
    ];
    let legacy = |bytes: &[u8]| lz4_legacy(bytes);
    let packs = packs.into_iter().chain([("lz4 -l", legacy as Pack)]);
    for (name, pack) in packs {
        for every in [1, 4, 7, 12, 300] {
            let file = members(pack, &text(31, 60), every);
            for (place, content) in [
                ("alone", file.clone()),
                ("in base64", plain_base64(&file)),
                ("in gzip", gzip(&file)),
            ] {
                let outcome = send(&strict(), None, &content, &[37, 900]);
                let place = format!("{name} cut every {every} {place}: {:?}", outcome.stop);
                assert!(outcome.found().is_some(), "{place}");
            }
        }
        let harmless = members(pack, &Dice(32).words(9000), 30);
        let outcome = send(&strict(), None, &harmless, &[1000]);
        assert!(outcome.stop.is_none(), "{name}: {:?}", outcome.stop);
    }
}

/// A file in a tar archive.
fn tar(files: &[Vec<u8>]) -> Vec<u8> {
    let one = |file: &Vec<u8>| {
        let mut head = vec![0; 512];
        head.splice(0..5, *b"x.bin");
        head.splice(124..135, format!("{:011o}", file.len()).into_bytes());
        head.splice(257..265, *b"ustar\x0000");
        let rest = 512 - file.len() % 512;
        [head, file.clone(), vec![0; rest]].concat()
    };
    [files.iter().flat_map(one).collect(), vec![0; 1024]].concat()
}

#[test]
fn many_files_in_an_archive_are_no_crowd() {
    let by_default = rules(ScanPolicy::Tiered, UnscannableAction::RefuseBombs);
    for (name, pack) in PACKS {
        for bytes in [500, 2000, 8000] {
            let files: Vec<Vec<u8>> = (0..60).map(|seed| pack(&Dice(seed).words(bytes))).collect();
            let outcome = send(&by_default, None, &tar(&files), &[4000]);
            assert!(
                outcome.stop.is_none(),
                "{name} of {bytes}: {:?}",
                outcome.stop
            );
            assert!(
                outcome.unscanned.is_none(),
                "{name} of {bytes}: {:?}",
                outcome.unscanned
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn splits_and_places_change_nothing(
        seed in any::<u64>(),
        pack in 0..PACKS.len(),
        bytes in 30_usize..60_000,
        lengths in proptest::collection::vec(1_usize..3000, 1..20),
    ) {
        let (name, pack) = PACKS[pack];
        let before = if is_unmarked(name) { 0 } else { usize::try_from(seed % 700).expect("few") };
        let content = [Dice(seed).words(before), pack(&text(seed, bytes))].concat();
        let outcome = send(&strict(), None, &content, &lengths);
        prop_assert!(outcome.found().is_some(), "{name}: {:?}", outcome.stop);
    }

    #[test]
    fn chance_behind_a_mark_ends(
        mark in 0_usize..6,
        bytes in proptest::collection::vec(any::<u8>(), 0..4000),
    ) {
        let marks: [&[u8]; 6] = [
            b"BZh91AY&SY",
            b"\xfd7zXZ\0\0\x04\xe6\xd6\xb4\x46",
            b"LZIP\x01\x14",
            b"\x04\x22\x4d\x18\x64\x40\xa7",
            b"\x02\x21\x4c\x18\x40\0\0\0",
            b"PK\x03\x04\x14\0\0\0\x5f\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\0\0\0x",
        ];
        let content = [marks[mark], &bytes].concat();
        let tolerant = rules(ScanPolicy::Tiered, UnscannableAction::RefuseBombs);
        send(&tolerant, None, &content, &[100]);
    }
}
