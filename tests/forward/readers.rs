//! Readers of requests as origins have them, each with a mind of its own. What
//! the gateway sends must be the same requests to all of them.

use crate::replies::chunked;

/// A request as a reader takes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Taken {
    pub(crate) method: String,
    /// The request target.
    pub(crate) target: String,
    /// Host as the reader takes it.
    pub(crate) host: String,
    pub(crate) content: Vec<u8>,
}

/// What a reader makes of a connection: requests, until it stops.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reading {
    pub(crate) requests: Vec<Taken>,
    /// Why it stopped before the end of the bytes, if it did.
    pub(crate) fault: Option<&'static str>,
}

/// A reader: its name and how it reads.
pub(crate) type Reader = (&'static str, fn(&[u8]) -> Reading);

/// All readers.
pub(crate) const READERS: [Reader; 4] = [
    ("strict", strict),
    ("lenient", lenient),
    ("first length", first_length),
    ("httparse", with_httparse),
];

/// How much of a request is there, for the origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    Nothing,
    Head,
    Whole(usize),
}

impl Progress {
    pub(crate) fn is_whole(self) -> bool {
        matches!(self, Self::Whole(_))
    }
}

/// How much of the first request of `bytes` is there.
pub(crate) fn progress(bytes: &[u8]) -> Progress {
    let Some(end) = bytes.windows(4).position(|part| part == b"\r\n\r\n") else {
        return Progress::Nothing;
    };
    match strict_one(bytes) {
        Ok(Some((_, length))) => Progress::Whole(length),
        Ok(None) => Progress::Head,
        // Whatever it is, it gets an answer.
        Err(_) => Progress::Whole(end + 4),
    }
}

type One = Result<Option<(Taken, usize)>, &'static str>;

fn all(bytes: &[u8], one: fn(&[u8]) -> One) -> Reading {
    let (mut at, mut requests) = (0, Vec::new());
    let fault = loop {
        if at == bytes.len() {
            break None;
        }
        match one(&bytes[at..]) {
            Ok(Some((taken, length))) => {
                requests.push(taken);
                at += length;
            }
            Ok(None) => break Some("incomplete"),
            Err(fault) => break Some(fault),
        }
    };
    Reading { requests, fault }
}

fn text(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| char::from(*byte)).collect()
}

fn is_token(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

/// RFC 9112 to the letter, and nothing else.
fn strict(bytes: &[u8]) -> Reading {
    all(bytes, strict_one)
}

fn strict_one(bytes: &[u8]) -> One {
    let Some(end) = bytes.windows(4).position(|part| part == b"\r\n\r\n") else {
        return Ok(None);
    };
    let head = &bytes[..end];
    let visible = |byte: &u8| matches!(byte, b'\r' | b'\n' | b'\t' | b' '..=b'~' | 0x80..);
    if !head.iter().all(visible) {
        return Err("an octet that no field has");
    }
    let head = text(head);
    let mut lines = head.split("\r\n");
    let line: Vec<&str> = lines.next().unwrap_or_default().split(' ').collect();
    let [method, target, "HTTP/1.1"] = line[..] else {
        return Err("no request line");
    };
    if !is_token(method)
        || !target.is_ascii()
        || !(target.starts_with('/') || target == "*" && method == "OPTIONS")
    {
        return Err("no method or target");
    }
    let (mut hosts, mut lengths, mut codings) = (Vec::new(), Vec::new(), Vec::new());
    for line in lines {
        let (name, value) = line.split_once(':').ok_or("no field")?;
        if !is_token(name) || line.contains(['\r', '\n']) {
            return Err("no field line");
        }
        let value = value.trim_matches([' ', '\t']).to_owned();
        match name.to_ascii_lowercase().as_str() {
            "host" => hosts.push(value),
            "content-length" => lengths.push(value),
            "transfer-encoding" => codings.push(value),
            _ => {}
        }
    }
    let [host] = &hosts[..] else {
        return Err("not one Host");
    };
    let rest = &bytes[end + 4..];
    let body = match (&lengths[..], &codings[..]) {
        ([], []) => Some((Vec::new(), 0)),
        ([length], []) => {
            let length: usize = length.parse().map_err(|_| "no length")?;
            rest.get(..length).map(|content| (content.to_vec(), length))
        }
        ([], [coding]) if coding == "chunked" => strict_chunks(rest)?,
        _ => return Err("more than one length"),
    };
    Ok(body.map(|(content, length)| {
        let taken = Taken {
            method: method.to_owned(),
            target: target.to_owned(),
            host: host.clone(),
            content,
        };
        (taken, end + 4 + length)
    }))
}

/// Content of a chunked message: `None` while bytes are missing.
fn strict_chunks(bytes: &[u8]) -> Result<Option<(Vec<u8>, usize)>, &'static str> {
    if let Some((content, trailers, length)) = chunked(bytes) {
        let routes = [
            "host",
            "content-length",
            "transfer-encoding",
            "authorization",
            "content_type",
            "destination",
            "script-name",
            "x-copy-from",
            "x-http-method-override",
            "x-method",
            "x-original-uri",
            "x-original-url",
            "x_forwarded_host",
            "x_http_method",
        ];
        let bad = trailers.lines().any(|line| {
            let name = line.split(':').next().unwrap_or_default();
            !line.contains(':') || routes.contains(&name.to_ascii_lowercase().as_str())
        });
        return if bad {
            Err("a trailer that routes")
        } else {
            Ok(Some((content, length)))
        };
    }
    let line = bytes
        .split(|byte| *byte == b'\n')
        .next()
        .unwrap_or_default();
    let digits = line
        .iter()
        .all(|byte| byte.is_ascii_hexdigit() || *byte == b'\r');
    if digits {
        Ok(None)
    } else {
        Err("no chunk size")
    }
}

/// Everything that some server was seen to forgive: lone line feeds, empty
/// lines before, blanks before a colon, folded lines, `_` for `-`; the last
/// length wins, and anything that mentions `chunked` is.
fn lenient(bytes: &[u8]) -> Reading {
    all(bytes, lenient_one)
}

/// Lines up to the empty one, without their ends, folded ones joined.
fn lenient_lines(bytes: &[u8]) -> Option<(Vec<String>, usize)> {
    let (mut at, mut lines) = (0, Vec::<String>::new());
    loop {
        let end = bytes[at..].iter().position(|byte| *byte == b'\n')? + at;
        let line = text(&bytes[at..end]);
        let line = line.trim_end_matches('\r');
        at = end + 1;
        match lines.last_mut() {
            None if line.is_empty() => {}
            Some(_) if line.is_empty() => return Some((lines, at)),
            Some(last) if line.starts_with([' ', '\t']) => last.push_str(line),
            _ => lines.push(line.to_owned()),
        }
    }
}

fn lenient_one(bytes: &[u8]) -> One {
    let Some((lines, end)) = lenient_lines(bytes) else {
        return Ok(None);
    };
    let words: Vec<&str> = lines[0].split_ascii_whitespace().collect();
    let [method, target, ..] = words[..] else {
        return Err("no request line");
    };
    let (mut host, mut length, mut is_chunked) = (String::new(), 0, false);
    for line in &lines[1..] {
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.trim();
        // Programs behind an interface with variables see no difference.
        let name = name.trim().to_ascii_lowercase().replace('_', "-");
        match name.as_str() {
            "host" => value.clone_into(&mut host),
            "content-length" => length = value.parse().unwrap_or(length),
            "transfer-encoding" => is_chunked |= value.to_ascii_lowercase().contains("chunked"),
            _ => {}
        }
    }
    let rest = &bytes[end..];
    let body = if is_chunked {
        lenient_chunks(rest)
    } else {
        rest.get(..length).map(|content| (content.to_vec(), length))
    };
    Ok(body.map(|(content, length)| {
        let taken = Taken {
            method: method.to_ascii_uppercase(),
            target: target.to_owned(),
            host,
            content,
        };
        (taken, end + length)
    }))
}

/// Chunks whose sizes end where digits end, and whose lines end at a line feed.
fn lenient_chunks(bytes: &[u8]) -> Option<(Vec<u8>, usize)> {
    let (mut at, mut content) = (0, Vec::new());
    loop {
        let end = bytes[at..].iter().position(|byte| *byte == b'\n')? + at;
        let line = text(&bytes[at..end]);
        let line = line.trim().trim_start_matches("0x");
        let digits = line.split(|c: char| !c.is_ascii_hexdigit()).next()?;
        at = end + 1;
        let size = usize::from_str_radix(digits, 16).unwrap_or(0);
        if size == 0 {
            let (_, length) = lenient_lines(&[b"x\n", &bytes[at..]].concat())?;
            return Some((content, at + length - 2));
        }
        content.extend(bytes.get(at..at.checked_add(size)?)?);
        at += size;
        if bytes.get(at) == Some(&b'\r') {
            at += 1;
        }
        if bytes.get(at)? == &b'\n' {
            at += 1;
        }
    }
}

/// A server of the old kind: the first length and the first Host win, and a
/// transfer coding is a field like any other.
fn first_length(bytes: &[u8]) -> Reading {
    all(bytes, |bytes| {
        let Some(end) = bytes.windows(4).position(|part| part == b"\r\n\r\n") else {
            return Ok(None);
        };
        let head = text(&bytes[..end]);
        let mut lines = head.split("\r\n");
        let line: Vec<&str> = lines.next().unwrap_or_default().split(' ').collect();
        let [method, target, version] = line[..] else {
            return Err("no request line");
        };
        if !version.starts_with("HTTP/1.") {
            return Err("no version");
        }
        let fields: Vec<(&str, &str)> = lines.filter_map(|line| line.split_once(':')).collect();
        let first = |wanted: &str| {
            let mut same = fields
                .iter()
                .filter(|(name, _)| name.eq_ignore_ascii_case(wanted));
            same.next().map_or("", |(_, value)| value.trim())
        };
        let length: usize = first("content-length").parse().unwrap_or(0);
        let rest = &bytes[end + 4..];
        Ok(rest.get(..length).map(|content| {
            let taken = Taken {
                method: method.to_owned(),
                target: target.to_owned(),
                host: first("host").to_owned(),
                content: content.to_vec(),
            };
            (taken, end + 4 + length)
        }))
    })
}

/// The parser of a library many servers use; framed as RFC 9112 6.3 says.
fn with_httparse(bytes: &[u8]) -> Reading {
    all(bytes, |bytes| {
        let mut fields = [httparse::EMPTY_HEADER; 256];
        let mut request = httparse::Request::new(&mut fields);
        let end = match request.parse(bytes) {
            Ok(httparse::Status::Complete(end)) => end,
            Ok(httparse::Status::Partial) => return Ok(None),
            Err(_) => return Err("no request"),
        };
        let value = |wanted: &str| {
            let mut same = request.headers.iter();
            same.find(|field| field.name.eq_ignore_ascii_case(wanted))
                .map(|field| text(field.value))
        };
        let rest = &bytes[end..];
        let body = match (value("transfer-encoding"), value("content-length")) {
            (Some(_), _) => strict_chunks(rest)?,
            (None, None) => Some((Vec::new(), 0)),
            (None, Some(length)) => {
                let length: usize = length.parse().map_err(|_| "no length")?;
                rest.get(..length).map(|content| (content.to_vec(), length))
            }
        };
        Ok(body.map(|(content, length)| {
            let taken = Taken {
                method: request.method.unwrap_or_default().to_owned(),
                target: request.path.unwrap_or_default().to_owned(),
                host: value("host").unwrap_or_default(),
                content,
            };
            (taken, end + length)
        }))
    })
}
