//! JSON that asks for another method in a content coding that servers undo by themselves, or
//! by a type that does not say JSON: it is judged as what it becomes.

use outgate_harness::lab_tests;
use outgate_harness::origin::Origin;

use crate::readings::{ANY, Rules, sent};

const JSON: &str = "Content-Type: application/json\r\n";

/// A request with content that is no text.
fn coded(target: &str, fields: &str, content: &[u8]) -> Vec<u8> {
    let length = content.len();
    let head = format!(
        "POST {target} HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n{fields}Content-Length: {length}\r\n\r\n"
    );
    [head.as_bytes(), content].concat()
}

/// Content in gzip (RFC 1952), of whose checksum no server waits for the end.
fn gzip(text: &str) -> Vec<u8> {
    let mut crc = !0_u32;
    for byte in text.bytes() {
        crc ^= u32::from(byte);
        for _ in 0..8 {
            crc = (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg());
        }
    }
    let length = u32::try_from(text.len()).expect("a length");
    let head = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3];
    let content = miniz_oxide::deflate::compress_to_vec(text.as_bytes(), 6);
    [
        &head[..],
        &content,
        &(!crc).to_le_bytes(),
        &length.to_le_bytes(),
    ]
    .concat()
}

/// Content in Zstandard (RFC 8878): a frame with one block that stands as it is.
fn zstd(text: &str) -> Vec<u8> {
    let length = u8::try_from(text.len()).expect("a short text");
    let block = (u32::from(length) << 3 | 1).to_le_bytes();
    let head = [0x28, 0xb5, 0x2f, 0xfd, 0x20, length];
    [&head[..], &block[..3], text.as_bytes()].concat()
}

/// A frame whose block is not said to be the last one (RFC 8878 3.1.1.2.1).
fn unended(mut frame: Vec<u8>) -> Vec<u8> {
    frame[6] &= !1;
    frame
}

/// Content in Brotli (RFC 7932): a block that stands as it is, and an empty last one.
fn brotli(text: &str) -> Vec<u8> {
    let length = u32::try_from(text.len()).expect("a length");
    let head = ((length - 1) << 4 | 1 << 20).to_le_bytes();
    [&head[..3], text.as_bytes(), &[3]].concat()
}

lab_tests! {
    fn no_coding_or_type_hides_json_that_asks_for_another_method(lab) {
        use miniz_oxide::deflate::{compress_to_vec, compress_to_vec_zlib};
        const BATCH: &str = "{\"requests\":[{\"id\":\"1\",\"method\":\"DELETE\",\"url\":\"/admin/x\"}]}";
        const MEMBER: &str = "{\"a\":1,\"_method\":\"DELETE\"}";
        const FINE: &str = "{\"a\":[1],\"_method\":\"PUT\",\"method\":\"DELETE\"}";
        let origin = Origin::start(8080);
        let json = |coding: &str| format!("{JSON}Content-Encoding: {coding}\r\n");
        let arrive = |rules: Rules<'_>, good: &[Vec<u8>], bad: &[Vec<u8>]| {
            let requests: Vec<Vec<u8>> = good.iter().chain(bad).cloned().collect();
            let (arrived, outcome) = sent(lab, &origin, rules, &requests);
            assert_eq!(arrived.len(), good.len(), "{rules:?} {arrived:?} {outcome}");
        };
        let long = |member: &str| format!("{{\"text\":\"{}\",{}", "no secret ".repeat(9000), member.trim_start_matches('{'));
        let bad = [
            coded("/public/a", &json("gzip"), &gzip(MEMBER)),
            coded("/public/a", &json("X-GZip"), &gzip(MEMBER)),
            coded("/public/a", &json("identity, gzip"), &gzip(&long(MEMBER))),
            coded("/public/a", &json("gzip"), &[gzip("{\"a\":1,"), gzip("\"_method\":\"DELETE\"}")].concat()),
            coded("/public/a", &json("deflate"), &compress_to_vec_zlib(MEMBER.as_bytes(), 9)),
            coded("/public/a", &json("deflate"), &compress_to_vec(MEMBER.as_bytes(), 9)),
            coded("/public/a", &json("gzip, gzip"), &gzip(FINE)),
            coded("/public/a", &json("zstd"), &zstd(MEMBER)),
            coded("/public/a", &json("zstd"), &[zstd("{\"a\":1,"), zstd("\"_method\":\"DELETE\"}")].concat()),
            // A frame that lacks its end, of which some readers take what is there.
            coded("/public/a", &json("zstd"), &unended(zstd(MEMBER))),
            coded("/public/a", &json("zstd"), &{
                let text = long(MEMBER);
                let (begin, end) = text.split_at(text.len() - 12);
                let frames = begin.as_bytes().chunks(200).map(|part| zstd(std::str::from_utf8(part).expect("ASCII")));
                [frames.collect::<Vec<_>>().concat(), unended(zstd(end))].concat()
            }),
            // A frame that some skip, before one that all read.
            coded("/public/a", &json("zstd"), &[b"\x50\x2a\x4d\x18\x04\0\0\0abcd", &zstd(MEMBER)[..]].concat()),
            coded("/public/a", &json("br"), &brotli(MEMBER)),
            coded("/public/a", &json("compress"), &gzip(FINE)),
            coded("/public/a", "Content-Type: text/plain\r\nContent-Encoding: gzip\r\n", &gzip(MEMBER)),
            coded("/public/a", "Content-Type: application/octet-stream\r\n", MEMBER.as_bytes()),
            coded("/public/$batch", &json("gzip"), &gzip(BATCH)),
            // A server that leaves the coding where it is.
            coded("/public/a", "Content-Type: text/plain\r\nContent-Encoding: gzip\r\n", MEMBER.as_bytes()),
        ];
        arrive(&[("-a", "POST,PUT http://127.0.0.1:8080/public/**")], &[
            coded("/public/1", &json("gzip"), &gzip(FINE)),
            coded("/public/2", &json("gzip"), &gzip(&long(FINE))),
            coded("/public/3", &json("deflate"), &compress_to_vec_zlib(FINE.as_bytes(), 9)),
            coded("/public/4", &json("deflate"), &compress_to_vec(FINE.as_bytes(), 9)),
            coded("/public/9", &json("zstd"), &zstd(FINE)),
            coded("/public/10", &json("br"), &brotli(FINE)),
            coded("/public/5", "Content-Type: application/x-protobuf\r\nContent-Encoding: gzip\r\n", &gzip("\n\u{1}x")),
            coded("/public/6", "Content-Type: application/x-protobuf\r\nContent-Encoding: zstd\r\n", b"no matter"),
            coded("/public/7", "Content-Type: application/octet-stream\r\n", &gzip(MEMBER)),
            coded("/public/8", "Content-Type: text/plain\r\n", b"The key _method says DELETE: {\"_method\":\"DELETE\"}"),
        ], &bad);
        arrive(&[ANY, ("-d", "* */admin/**")], &[
            coded("/v1/1", &json("gzip"), &gzip(MEMBER)),
            coded("/batch", &json("gzip"), &gzip(&BATCH.replace("/admin", ""))),
        ], &[
            coded("/batch", &json("gzip"), &gzip(BATCH)),
            coded("/v1/all", &json("deflate"), &compress_to_vec(BATCH.as_bytes(), 9)),
            coded("/v1/all", &json("zstd"), &zstd(BATCH)),
            coded("/v1/all", "Content-Type: text/plain\r\n", BATCH.as_bytes()),
        ]);
        arrive(&[ANY], &bad, &[]);
    }
}
