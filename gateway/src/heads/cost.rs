//! What two readings of a head cost beside one: a measurement, run by hand with
//! `cargo test --release --package outgate-gateway heads::cost -- --ignored --nocapture`.

use std::hint::black_box;
use std::io::Write as _;
use std::time::Instant;

use super::RequestHeads;

/// Heads that are read for one figure, and figures of which the best counts.
const HEADS: u32 = 200_000;
const ROUNDS: u32 = 9;

const SHORT: &str = "GET /repos/a/b HTTP/1.1\r\nHost: api.example.org\r\nUser-Agent: curl/8.14.1\r\n\
    Accept: */*\r\nAccept-Encoding: gzip, deflate\r\nX-Request: 0123456789abcdef01\r\n\r\n";

/// What a browser sends, with cookies.
fn long() -> String {
    let cookies: Vec<String> = (0..8)
        .map(|number| format!("name_{number}=value-{number:040}"))
        .collect();
    let fields: Vec<String> = (0..12)
        .map(|number| format!("X-Field-{number:02}: some words {number:016x}\r\n"))
        .collect();
    format!(
        "POST /v1/messages?beta=true HTTP/1.1\r\nHost: api.example.org\r\nContent-Length: 0\r\n\
         Cookie: {}\r\n{}\r\n",
        cookies.join("; "),
        fields.concat()
    )
}

/// A codec that reads a head once: its length, or why it has two readings.
fn strict(bytes: &[u8]) -> Result<usize, &'static str> {
    let mut fields = [httparse::EMPTY_HEADER; 100];
    let mut request = httparse::Request::new(&mut fields);
    let Ok(httparse::Status::Complete(end)) = request.parse(bytes) else {
        return Err("no head");
    };
    if request.path.is_none_or(|path| path.contains('#')) {
        return Err("the request target has a fragment");
    }
    let head = bytes.get(..end).unwrap_or_default();
    for at in memchr::memchr_iter(b'\n', head) {
        if at.checked_sub(1).and_then(|before| head.get(before)) != Some(&b'\r') {
            return Err("a line ends without a carriage return");
        }
    }
    let (mut lengths, mut codings) = (0_u32, 0_u32);
    for field in request.headers.iter() {
        if field.name.eq_ignore_ascii_case("content-length") {
            let value = std::str::from_utf8(field.value).ok();
            let number: Option<u64> = value.and_then(|value| value.trim().parse().ok());
            number.ok_or("Content-Length is not one canonical number")?;
            lengths += 1;
        } else if field.name.eq_ignore_ascii_case("transfer-encoding") {
            codings += 1;
        }
    }
    if lengths + codings > 1 {
        return Err("the length is given twice");
    }
    Ok(end)
}

fn parsed(bytes: &[u8]) -> usize {
    let mut fields = [httparse::EMPTY_HEADER; 100];
    let mut request = httparse::Request::new(&mut fields);
    match request.parse(bytes) {
        Ok(httparse::Status::Complete(end)) => end,
        Ok(httparse::Status::Partial) | Err(_) => 0,
    }
}

fn followed(heads: &mut RequestHeads, bytes: &[u8]) -> u64 {
    heads.follow(bytes);
    heads.number
}

/// Nanoseconds for one head, of the best round.
fn nanoseconds<R>(mut read: impl FnMut() -> R) -> f64 {
    let rounds = (0..ROUNDS).map(|_| {
        let begun = Instant::now();
        for _ in 0..HEADS {
            black_box(read());
        }
        begun.elapsed().as_secs_f64() * 1e9 / f64::from(HEADS)
    });
    rounds.fold(f64::INFINITY, f64::min)
}

#[test]
#[ignore = "a measurement, not a test"]
fn a_second_reading_costs_little() {
    for head in [SHORT.to_owned(), long()] {
        let bytes = head.as_bytes();
        assert_eq!(strict(bytes), Ok(bytes.len()));
        assert_eq!(parsed(bytes), bytes.len());
        let mut heads = RequestHeads::default();
        assert_eq!(followed(&mut heads, bytes), 1);
        assert_eq!(heads.fault(1), None);
        let parser = nanoseconds(|| parsed(black_box(bytes)));
        let second = nanoseconds(|| followed(&mut heads, black_box(bytes)));
        let codec = nanoseconds(|| strict(black_box(bytes)));
        let line = format!(
            "{} bytes: the engine's parser {parser:.0} ns, beside it {second:.0} ns, together \
             {:.0} ns; one strict codec {codec:.0} ns",
            bytes.len(),
            parser + second
        );
        writeln!(std::io::stdout(), "{line}").unwrap();
    }
}

#[test]
fn what_the_second_reading_finds_the_codec_would_find_too() {
    for (text, because) in [
        ("GET /a#b HTTP/1.1\r\nHost: a\r\n\r\n", "fragment"),
        ("GET /a HTTP/1.1\nHost: a\r\n\r\n", "carriage return"),
        (
            "GET / HTTP/1.1\r\nContent-Length: 1, 1\r\n\r\n",
            "canonical",
        ),
        (
            "GET / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n",
            "twice",
        ),
    ] {
        let mut heads = RequestHeads::default();
        heads.follow(text.as_bytes());
        let codec = strict(text.as_bytes());
        assert!(heads.fault(1).is_some(), "{text:?}");
        assert!(
            codec.is_err_and(|fault| fault.contains(because)),
            "{text:?}"
        );
    }
}
