//! Compressed content that expands, asks for memory, or begins again and again.

use miniz_oxide::deflate::{compress_to_vec, compress_to_vec_zlib};

use crate::Attack;
use crate::pack::{
    LAST, WINDOW_8_MIB, WINDOW_16_MIB, WINDOW_64_KIB, brotli, deflated, frame, gzip, pack, raw,
    repeated, zstd,
};

/// The largest window that a decoder may have.
const WINDOW: u64 = 8 << 20;

/// Bytes of a block of zstd.
const BLOCK: usize = 128 << 10;

pub(crate) fn all() -> Vec<Attack> {
    let zeros = vec![0; 100 << 20];
    let mut attacks = expanding(&zeros);
    attacks.extend(windows());
    attacks.extend(beginnings());
    attacks.extend(behind());
    attacks
}

fn expanding(zeros: &[u8]) -> Vec<Attack> {
    let bomb = gzip(zeros);
    let nested = |times: usize| (0..times).fold(b"nothing".to_vec(), |all, _| gzip(&all));
    let mebibyte = vec![0; 1 << 20];
    let br = |blocks| brotli(WINDOW_64_KIB, blocks);
    let coded = Attack::coded;
    vec![
        coded("gzip", "gzip", bomb.clone()),
        Attack::bare("gzip, not declared", bomb.clone()),
        coded("gzip twice", "gzip, gzip", gzip(&bomb)),
        Attack::bare("gzip forty times", nested(40)),
        Attack::bare("gzip a hundred times", nested(100)),
        coded("gzip, declared nine times", NINE, nested(100)),
        Attack::bare("zlib", compress_to_vec_zlib(zeros, 6)),
        coded("deflate", "deflate", compress_to_vec(zeros, 6)),
        coded("zstd", "zstd", zstd(zeros)),
        Attack::bare("zstd, not declared", zstd(zeros)),
        coded("zstd in gzip", "zstd, gzip", gzip(&zstd(zeros))),
        coded("brotli", "br", br(640)),
        coded("brotli in gzip", "br, gzip", gzip(&br(640))),
        coded("gzip of many members", "gzip", gzip(&mebibyte).repeat(2000)),
        Attack::bare("zip in gzip", gzip(&deflated(zeros))),
        Attack::bare("pack of one object", pack(&[zeros])),
        Attack::bare(
            "pack of many objects",
            pack(&vec![mebibyte.as_slice(); 400]),
        ),
    ]
}

const NINE: &str = "gzip, gzip, gzip, gzip, gzip, gzip, gzip, gzip, gzip";
const EIGHT: &str = "zstd, zstd, zstd, zstd, zstd, zstd, zstd, zstd";

/// Windows that are as large as they may be, or larger, and many of them.
fn windows() -> Vec<Attack> {
    // So many bytes of zeros in a few.
    let zeros = |bytes: usize| repeated(0, BLOCK).repeat(bytes / BLOCK);
    let run = |window: u64, bytes: usize| [frame(window), zeros(bytes), LAST.to_vec()].concat();
    // Each level fills its window, with what the next one skips.
    let skipped = 7 << 20;
    let skip = [b"\x50\x2a\x4d\x18".as_slice(), &u32::to_le_bytes(skipped)].concat();
    let filled = zeros(usize::try_from(skipped).expect("a few MiB"));
    let levels = (0..8).fold(b"nothing".to_vec(), |inner, _| {
        let last = LAST.to_vec();
        [frame(WINDOW), raw(&skip), filled.clone(), raw(&inner), last].concat()
    });
    // Each stands in a block of the one before, fills its window and does not end.
    let open = (0..8).fold(Vec::new(), |inner, _| {
        [frame(WINDOW), zeros(8 << 20), raw(&inner)].concat()
    });
    let noise: Vec<u8> = (0..2_u32 << 20)
        .map(|number| (number.wrapping_mul(0x9e37_79b1) >> 24).to_le_bytes()[0])
        .collect();
    let short = [frame(WINDOW), raw(b"a"), LAST.to_vec()].concat();
    vec![
        Attack::coded("brotli of 8 MiB", "br", brotli(WINDOW_8_MIB, 40)),
        Attack::coded("brotli of 16 MiB", "br", brotli(WINDOW_16_MIB, 40)),
        Attack::coded("zstd of 8 MiB", "zstd", run(WINDOW, 400 << 20)),
        Attack::coded("zstd of 128 MiB", "zstd", run(128 << 20, 400 << 20)),
        Attack::bare("zstd of 2 GiB, not declared", run(2 << 30, 400 << 20)),
        Attack::coded("zstd eight times, of 8 MiB each", EIGHT, levels),
        Attack::bare("zstd in blocks of zstd", open.clone()),
        Attack::bare("zstd in blocks of zstd, later", [noise, open].concat()),
        Attack::coded("zstd of many frames of 8 MiB", "zstd", short.repeat(50_000)),
        Attack::bare("zstd of many frames, not declared", short.repeat(50_000)),
    ]
}

/// What begins again and again, and comes to nothing.
fn beginnings() -> Vec<Attack> {
    // A dictionary of this number, which nobody has.
    let asks = |number: u32| {
        let number = number.to_le_bytes();
        [&[0x28, 0xb5, 0x2f, 0xfd, 3, 0x68][..], &number, &LAST].concat()
    };
    let dictionaries: Vec<Vec<u8>> = (1..50_000).map(asks).collect();
    let trained = b"\x37\xa4\x30\xec\x01\0\0\0".repeat(100_000);
    let member = gzip(b"");
    let empty = b"\x50\x2a\x4d\x18\0\0\0\0";
    vec![
        Attack::coded("zstd with a dictionary each", "zstd", dictionaries.concat()),
        Attack::bare(
            "zstd with a dictionary each, not declared",
            dictionaries.concat(),
        ),
        Attack::bare("zstd of one dictionary again and again", trained),
        Attack::coded("zstd of nothing to skip", "zstd", empty.repeat(100_000)),
        Attack::coded("gzip of empty members", "gzip", member.repeat(50_000)),
        Attack::bare("gzip of empty members, not declared", member.repeat(50_000)),
        Attack::bare(
            "beginnings of gzip",
            b"\x1f\x8b\x08\0\0\0\0\0\0\x03".repeat(100_000),
        ),
        Attack::bare("beginnings of zlib", b"\x78\x9c".repeat(500_000)),
        Attack::bare("beginnings of zip", b"PK\x03\x04".repeat(250_000)),
        Attack::bare("beginnings of zstd", b"\x28\xb5\x2f\xfd".repeat(250_000)),
        Attack::bare("beginnings of packs", b"PACK\0\0\0\x02".repeat(125_000)),
    ]
}

/// What begins behind other bytes, again and again.
fn behind() -> Vec<Attack> {
    // Every valid header, each followed by the next.
    let headers: Vec<u8> = (0..8_u8)
        .flat_map(|window| (0..=255).map(move |flags| [window << 4 | 8, flags]))
        .filter(|pair| {
            u16::from_be_bytes(*pair) % 31 == 0
                && pair.last().is_some_and(|flags| flags & 0x20 == 0)
        })
        .flatten()
        .collect();
    let fixed = b"\x78\x9c\x4b\x4c".as_slice();
    // A block with codes of its own, and one with the fixed ones, of which each goes on.
    let words: Vec<u8> = (0..40_000_u32)
        .flat_map(|number| {
            (number.wrapping_mul(0x9e37_79b1) >> 12)
                .to_string()
                .into_bytes()
        })
        .collect();
    let own = compress_to_vec_zlib(&words, 9);
    let first = |bytes: usize| own.get(..bytes).expect("a long stream");
    let stored = [b"\x78\x9c\0\xff\xff\0\0".as_slice(), &[b'.'; 9]].concat();
    let small = compress_to_vec_zlib(b"twenty-one bytes, and some more", 9);
    let bare = compress_to_vec(b"twenty-one bytes, and some more", 9);
    let zeros = compress_to_vec_zlib(&vec![0; 1 << 20], 9);
    let nested = (0..40).fold(words.clone(), |all, _| compress_to_vec_zlib(&all, 0));
    let bombs = |rounds: usize| {
        (0..rounds).fold(zeros.clone(), |all, _| {
            compress_to_vec_zlib(&all.repeat(200), 9)
        })
    };
    let parts = |content: &[u8], count: usize| {
        [b"--b\r\n\r\n".as_slice(), content, b"\r\n"]
            .concat()
            .repeat(count)
    };
    vec![
        Attack::bare("headers of zlib", headers.repeat(20_000)),
        Attack::bare("headers of zlib and fixed codes", fixed.repeat(250_000)),
        Attack::bare("headers and codes of zlib", first(120).repeat(8_000)),
        Attack::bare(
            "headers and blocks of zlib that go on",
            first(1_000).repeat(1_000),
        ),
        Attack::bare("stored blocks of zlib that go on", stored.repeat(60_000)),
        Attack::bare("small streams of zlib", small.repeat(25_000)),
        Attack::bare(
            "small streams of deflate",
            [&small[..], &bare.repeat(25_000)].concat(),
        ),
        Attack::bare("zlib in zlib, stored", nested),
        Attack::bare("zlib of many MiB", zeros.repeat(1_000)),
        Attack::bare("zlib of many MiB in zlib", bombs(1)),
        Attack::bare("zlib of many MiB in zlib in zlib", bombs(3)),
        Attack::bare("1,000,000 parts", parts(b"", 1_000_000)),
        Attack::bare("parts of zlib", parts(&small, 20_000)),
        Attack::bare("parts of deflate", parts(&bare, 20_000)),
        Attack::bare("parts of brotli", parts(&brotli(WINDOW_64_KIB, 1), 20_000)),
        Attack::bare("fields that end again and again", b"\r\n".repeat(1_000_000)),
    ]
}
