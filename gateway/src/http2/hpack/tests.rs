//! The reader beside the engine: they read the same bytes, of a client that codes
//! its fields in every way there is, and have to come to the same.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::future::poll_fn;
use std::task::Poll;

use bytes::Bytes;
use proptest::prelude::{Strategy, any};
use tokio::io::AsyncWriteExt;

use super::super::frames::Metered;
use super::*;

/// Names and values of the static table that the client uses.
const STATIC: [(u8, &str, &str); 9] = [
    (1, ":authority", ""),
    (2, ":method", "GET"),
    (4, ":path", "/"),
    (5, ":path", "/index.html"),
    (7, ":scheme", "https"),
    (16, "accept-encoding", "gzip, deflate"),
    (31, "content-type", ""),
    (32, "cookie", ""),
    (58, "user-agent", ""),
];

/// Choices, made beforehand.
struct Choices(std::vec::IntoIter<u8>);

impl Choices {
    fn one_of(&mut self, count: usize) -> usize {
        usize::from(self.0.next().unwrap_or_default()) % count
    }
}

fn number(out: &mut Vec<u8>, pattern: u8, mask: u8, value: usize) {
    let limit = usize::from(mask);
    if value < limit {
        out.push(pattern | u8::try_from(value).unwrap());
        return;
    }
    out.push(pattern | mask);
    let mut rest = value - limit;
    while rest >= 0x80 {
        out.push(u8::try_from(rest % 0x80).unwrap() | 0x80);
        rest /= 0x80;
    }
    out.push(u8::try_from(rest).unwrap());
}

fn huffman(text: &[u8]) -> Vec<u8> {
    let mut bits = String::new();
    for byte in text {
        let length = usize::from(CODE_BITS[usize::from(*byte)]);
        let shorter = usize::try_from(CODES[length].before).unwrap();
        let place = SYMBOLS.iter().position(|symbol| symbol == byte).unwrap() - shorter;
        let code = CODES[length].first + u64::try_from(place).unwrap();
        write!(bits, "{code:0length$b}").unwrap();
    }
    while !bits.len().is_multiple_of(8) {
        bits.push('1');
    }
    let octet = |bits: &[u8]| u8::from_str_radix(std::str::from_utf8(bits).unwrap(), 2).unwrap();
    bits.as_bytes().chunks(8).map(octet).collect()
}

/// A client's encoder with the table as the standard has it, spelt out.
#[derive(Default)]
struct Encoder {
    table: VecDeque<(String, String)>,
    size_max: Option<usize>,
}

impl Encoder {
    fn text(choices: &mut Choices, out: &mut Vec<u8>, text: &str) {
        if choices.one_of(2) == 0 {
            number(out, 0, 0x7f, text.len());
            out.extend(text.as_bytes());
        } else {
            let coded = huffman(text.as_bytes());
            number(out, 0x80, 0x7f, coded.len());
            out.extend(coded);
        }
    }

    fn index(&self, choices: &mut Choices, is_it: impl Fn(&str, &str) -> bool) -> Option<usize> {
        let fixed = STATIC
            .iter()
            .filter(|(_, name, value)| is_it(name, value))
            .map(|(index, ..)| usize::from(*index));
        let own = (62..)
            .zip(&self.table)
            .filter(|(_, (name, value))| is_it(name, value))
            .map(|(index, _)| index);
        let all: Vec<usize> = fixed.chain(own).collect();
        match choices.one_of(all.len() + 1) {
            0 => None,
            place => all.get(place - 1).copied(),
        }
    }

    fn shrink(&mut self) {
        let size_max = self.size_max.unwrap_or(TABLE_BYTES_MAX);
        let size = |table: &VecDeque<(String, String)>| {
            let sizes = table
                .iter()
                .map(|(name, value)| name.len() + value.len() + 32);
            sizes.sum::<usize>()
        };
        while size(&self.table) > size_max {
            self.table.pop_back();
        }
    }

    fn field(&mut self, choices: &mut Choices, out: &mut Vec<u8>, name: &str, value: &str) {
        let whole = |at: &str, of: &str| at == name && of == value;
        if let Some(index) = self.index(choices, whole) {
            return number(out, 0x80, 0x7f, index);
        }
        let kind = choices.one_of(3);
        let (pattern, mask) = [(0x40, 0x3f), (0x10, 0x0f), (0, 0x0f)][kind];
        let named = self.index(choices, |at, _| at == name);
        number(out, pattern, mask, named.unwrap_or(0));
        if named.is_none() {
            Self::text(choices, out, name);
        }
        Self::text(choices, out, value);
        if kind == 0 {
            self.table.push_front((name.to_owned(), value.to_owned()));
            self.shrink();
        }
    }

    fn block(&mut self, choices: &mut Choices, fields: &[(&str, &str)]) -> Vec<u8> {
        let mut out = Vec::new();
        if choices.one_of(8) == 0 {
            let size = [0, 100, 300, TABLE_BYTES_MAX][choices.one_of(4)];
            number(&mut out, 0x20, 0x1f, size);
            self.size_max = Some(size);
            self.shrink();
        }
        for (name, value) in fields {
            self.field(choices, &mut out, name, value);
        }
        out
    }
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut bytes = length[1..].to_vec();
    bytes.extend([kind, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

/// The block as HEADERS and CONTINUATION, with padding and a priority or without.
fn head(choices: &mut Choices, stream: u32, block: &[u8]) -> Vec<u8> {
    let cuts = choices.one_of(3).min(block.len());
    let mut pieces: Vec<&[u8]> = block.chunks(block.len().div_ceil(cuts + 1)).collect();
    let first = pieces.remove(0);
    let (mut payload, mut flags) = (Vec::new(), 1);
    let padding = choices.one_of(4) * choices.one_of(2);
    if padding > 0 {
        flags |= 8;
        payload.push(u8::try_from(padding).unwrap());
    }
    if choices.one_of(3) == 0 {
        flags |= 32;
        payload.extend([0, 0, 0, 0, 16]);
    }
    payload.extend(first);
    payload.extend(vec![0; padding]);
    if pieces.is_empty() {
        flags |= 4;
    }
    let mut bytes = frame(1, flags, stream, &payload);
    for (number, piece) in pieces.iter().enumerate() {
        let last = u8::from(number + 1 == pieces.len()) * 4;
        bytes.extend(frame(9, last, stream, piece));
    }
    bytes
}

/// What the engine takes of each stream, and what the reader says of it; and
/// whether the connection ended for what it could not read.
async fn both(bytes: Vec<u8>) -> (Vec<(u32, String, bool)>, bool) {
    let (mut client, server) = tokio::io::duplex(1 << 20);
    client
        .write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        .await
        .unwrap();
    client.write_all(&frame(4, 0, 0, &[])).await.unwrap();
    client.write_all(&bytes).await.unwrap();
    let metered = Metered::new(server);
    let faults = metered.faults();
    let mut connection = h2::server::handshake(metered).await.unwrap();
    let (mut taken, mut kept) = (Vec::new(), Vec::new());
    let mut idle = 0;
    let ended = loop {
        let polled = poll_fn(|context| Poll::Ready(connection.poll_accept(context))).await;
        match polled {
            // All bytes are there: who waits has read them, or gives way.
            Poll::Pending if idle < 100 => {
                idle += 1;
                tokio::task::yield_now().await;
            }
            Poll::Ready(Some(Ok((request, respond)))) => {
                let stream: u32 = request.body().stream_id().into();
                let path = request.uri().path_and_query().unwrap().as_str().to_owned();
                taken.push((stream, path, faults.take(stream).is_some()));
                kept.push((request, respond));
            }
            Poll::Ready(Some(Err(error))) => break error.is_io() || error.is_go_away(),
            Poll::Pending | Poll::Ready(None) => break false,
        }
    };
    (taken, ended)
}

fn wait<T>(task: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap()
        .block_on(task)
}

const PATHS: [&str; 8] = [
    "/",
    "/index.html",
    "/public/a",
    "/public/a#b",
    "/#",
    "/a?b=c#",
    "/a?%23=\\^`|~\u{e9}",
    "/abcdefghijklmnopqrstuvwxyz0123456789?ABCDEFGHIJKLMNOPQRSTUVWXYZ&$!'()*+,;=:@-._",
];

const FIELDS: [(&str, &str); 7] = [
    ("user-agent", "curl/8.0.0"),
    ("accept-encoding", "gzip, deflate"),
    ("x-path", "/a#b"),
    ("cookie", "a=#; path=/#"),
    ("content-type", ""),
    (
        "x",
        "0123456789012345678901234567890123456789012345678901234567890123456789",
    ),
    ("x-opaque", "\u{fe}\u{ff}"),
];

fn check(choices: Vec<u8>) {
    let mut choices = Choices(choices.into_iter());
    let mut encoder = Encoder::default();
    let (mut bytes, mut wanted) = (Vec::new(), Vec::new());
    for stream in (1..=63).step_by(2) {
        let path = PATHS[choices.one_of(PATHS.len())];
        let mut fields = vec![
            (":method", "GET"),
            (":scheme", "https"),
            (":authority", "a.example"),
            (":path", path),
        ];
        let turn = choices.one_of(fields.len());
        fields.rotate_left(turn);
        for _ in 0..choices.one_of(4) {
            fields.push(FIELDS[choices.one_of(FIELDS.len())]);
        }
        let block = encoder.block(&mut choices, &fields);
        bytes.extend(head(&mut choices, stream, &block));
        let sent = path.split('#').next().unwrap().to_owned();
        wanted.push((stream, sent, path.contains('#')));
    }
    let (taken, ended) = wait(both(bytes));
    assert_eq!(taken, wanted);
    assert!(!ended, "a connection in order");
}

proptest::proptest! {
    #![proptest_config(proptest::test_runner::Config::with_cases(200))]
    #[test]
    fn engine_and_reader_read_the_same(
        choices in proptest::collection::vec(any::<u8>(), 2000),
    ) {
        check(choices);
    }

    #[test]
    fn any_block_is_answered(blocks in proptest::collection::vec(
        proptest::collection::vec(any::<u8>(), 0..60).prop_map(Bytes::from), 0..8,
    )) {
        let mut reader = HeaderBlocks::new();
        for block in &blocks {
            if reader.read(block).is_err() {
                break;
            }
            let sizes: usize = reader.entries.iter().map(|entry| entry.size).sum();
            assert_eq!(sizes, reader.size);
            assert!(sizes <= TABLE_BYTES_MAX);
        }
    }
}

/// The examples of RFC 7541 C.4: three requests with Huffman codes and a table.
#[test]
fn the_examples_of_the_standard_are_read() {
    let hex = |text: &str| -> Vec<u8> {
        let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
        let octet =
            |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
        digits.chunks(2).map(octet).collect()
    };
    let mut reader = HeaderBlocks::new();
    for (block, size) in [
        ("828684418cf1e3c2e5f23a6ba0ab90f4ff", 57),
        ("828684be5886a8eb10649cbf", 110),
        ("828785bf408825a849e95ba97d7f8925a849e95bb8e8b4bf", 164),
    ] {
        assert_eq!(reader.read(&hex(block)), Ok(None), "{block}");
        assert_eq!(reader.size, size, "{block}");
    }
}

#[test]
fn what_is_no_block_is_unreadable() {
    let repeated = "a pseudo-field that comes twice or late";
    let fragment = "the request target has a fragment";
    for (block, wanted) in [
        (&b"\x82\x87\x84"[..], Ok(None)),
        (b"\x3f\xe1\x1f\x82", Ok(None)),
        (b"\x04\x02/#", Ok(Some(fragment))),
        (b"\x00\x05:path\x02/#", Ok(Some(fragment))),
        (b"\x84\x84", Ok(Some(repeated))),
        (b"\x84\x04\x02/a", Ok(Some(repeated))),
        (b"\x90\x84", Ok(Some(repeated))),
        // A table too large, or changed too late.
        (b"\x3f\xe2\x1f", Err(UnreadableBlock)),
        (b"\x82\x20", Err(UnreadableBlock)),
        // No such field.
        (b"\x80", Err(UnreadableBlock)),
        (b"\xbe", Err(UnreadableBlock)),
        (b"\x7e\x01a", Err(UnreadableBlock)),
        // Numbers and texts without an end.
        (b"\xff", Err(UnreadableBlock)),
        (b"\xff\xff\xff\xff\xff\xff\x00", Err(UnreadableBlock)),
        (b"\x04", Err(UnreadableBlock)),
        (b"\x04\x03/a", Err(UnreadableBlock)),
        // Padding that is too long, of zeros, or the code of the end.
        (b"\x04\x82\x63\xff", Err(UnreadableBlock)),
        (b"\x04\x81\x60", Err(UnreadableBlock)),
        (b"\x04\x84\xff\xff\xff\xff", Err(UnreadableBlock)),
    ] {
        assert_eq!(HeaderBlocks::new().read(block), wanted, "{block:?}");
    }
}

/// The engine skips the block of a stream that depends on itself, and takes the
/// first of two paths where the block goes on in another frame.
#[test]
fn where_the_engine_loses_count_the_reader_does_not() {
    let itself = frame(1, 0x25, 1, b"\0\0\0\x01\x10\x82\x87\x41\x01a\x84");
    let other = frame(1, 0x25, 1, b"\0\0\0\x03\x10\x82\x87\x41\x01a\x84");
    let twice = [
        frame(1, 1, 1, b"\x82\x87\x41\x01a\x84\x85\x00\x01x\x02"),
        frame(9, 4, 1, b"yz"),
    ]
    .concat();
    assert_eq!(wait(both(itself)), (vec![], true));
    let (taken, _) = wait(both(other));
    assert_eq!(taken, [(1, "/".to_owned(), false)]);
    let (taken, _) = wait(both(twice));
    assert!(taken.iter().all(|(.., is_faulty)| *is_faulty), "{taken:?}");
}
