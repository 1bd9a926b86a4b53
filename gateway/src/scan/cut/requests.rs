//! The requests in which a secret leaves that was cut up: what each says, and how its place
//! writes it.

use std::fmt::Write as _;

use super::{CutDice, CutPlace, CutSpread, CutTransform, Draw, cut};

/// What one request says: names and values, in order.
type Said = Vec<(String, String)>;

const WORDS: [&str; 8] = [
    "open", "list", "next", "state", "page", "query", "sort", "title",
];

/// What the requests say in which a secret leaves.
fn messages(dice: &mut CutDice, draw: Draw, secret: &str) -> Vec<Said> {
    let mut pieces = cut(dice, secret, draw.pieces);
    if draw.transform == CutTransform::Reversed {
        pieces.reverse();
    }
    let wrapped = |number: usize, piece: &str| match (draw.transform, draw.way) {
        (CutTransform::Around, 0 | 6) => format!("x-{piece}-y"),
        (CutTransform::Around, 1 | 7) => format!("part={};data={piece}", number + 1),
        (CutTransform::Around, 2 | 8) => format!("img_{piece}.png"),
        (CutTransform::Around, 3 | 9) => format!("chunk-{number}-{piece}"),
        (CutTransform::Around, 4 | 10) => format!("v1:{piece}"),
        (CutTransform::Around, _) => format!("{{\"seq\":{number},\"part\":\"{piece}\"}}"),
        (CutTransform::Coded, 0) => base64(piece, "="),
        (CutTransform::Coded, 1) => base64(piece, ""),
        (CutTransform::Coded, 2) => hex(piece.as_bytes(), ""),
        (CutTransform::Coded, 3) => hex(piece.as_bytes(), "%"),
        (CutTransform::Coded, 4) => format!("0x{}", hex(piece.as_bytes(), "")),
        (CutTransform::Coded, 5) => format!("p{number}.{}", base64(piece, "")),
        (CutTransform::Coded, 6) => base64(&base64(piece, "="), "="),
        (CutTransform::Coded, 7) => base32(piece),
        (CutTransform::Coded, 8) => hex(piece.as_bytes(), "\\x"),
        (CutTransform::Coded, 9) => piece.chars().rev().collect(),
        (CutTransform::Coded, 10) => {
            format!("Basic {}", base64(&format!("u:{}", base32(piece)), "="))
        }
        (CutTransform::Coded, _) => format!("Bearer {}", base64(piece, "=")),
        _ => piece.to_owned(),
    };
    if draw.transform == CutTransform::Within {
        pieces = within(dice, draw, secret, &pieces);
    }
    let mut said = vec![Said::new()];
    for (number, piece) in pieces.iter().enumerate() {
        if draw.spread != CutSpread::Together && number > 0 {
            said.push(Said::new());
        }
        let key = |letter: &str| match draw.spread {
            CutSpread::SameKey => letter.to_owned(),
            CutSpread::Together | CutSpread::OtherKeys => format!("{letter}{}", number + 1),
        };
        let between = number > 0;
        let length = piece.len();
        let last = said.last_mut().unwrap();
        match draw.transform {
            CutTransform::Words => {
                let word = if draw.way.is_multiple_of(2) {
                    "v1"
                } else {
                    dice.pick(&WORDS)
                };
                last.push((key("w"), word.to_owned()));
            }
            CutTransform::Value if between => last.push((key("n"), dice.text(length))),
            CutTransform::Long if between => {
                for count in 0..40 {
                    let words: Vec<&str> = (0..8).map(|_| dice.pick(&WORDS)).collect();
                    last.push((format!("t{count}"), words.join(" ")));
                }
            }
            _ => {}
        }
        let piece = wrapped(number, piece);
        if draw.transform == CutTransform::Twice {
            last.push((format!("{}x", key("d")), piece.clone()));
        }
        last.push((key("d"), piece));
    }
    said
}

/// Pairs of pieces in one value each, with a separator or words between; in the last, what
/// is left.
fn within(dice: &mut CutDice, draw: Draw, secret: &str, pieces: &[String]) -> Vec<String> {
    const SEPARATORS: [&str; 12] = [
        ", ", "|", ";", " ", "\t", ":", " / ", ". ", "\", \"", ") (", "</p><p>", "&",
    ];
    const SIGNS: [&str; 3] = [".", "~", "--"];
    let mut words = |count: usize| {
        let words: Vec<&str> = (0..count).map(|_| dice.pick(&WORDS)).collect();
        words.join(" ")
    };
    let is_pair = matches!(draw.spread, CutSpread::OtherKeys | CutSpread::SameKey);
    let size = if is_pair { 2 } else { pieces.len() };
    let mut values = Vec::new();
    for some in pieces.chunks(size) {
        let between = match draw.way % 4 {
            0 => format!(" {} ", words(1 + draw.way)),
            1 => format!(" and {}: ", words(1)),
            2 if !secret.contains('-') && !secret.contains('.') && !secret.contains('~') => {
                SIGNS[draw.way % SIGNS.len()].to_owned()
            }
            _ => SEPARATORS[draw.way % SEPARATORS.len()].to_owned(),
        };
        let (before, behind) = (words(draw.way % 3), words(draw.way % 2));
        values.push(
            format!("{before} {} {behind}", some.join(&between))
                .trim()
                .to_owned(),
        );
    }
    values
}

fn base64(text: &str, padding: &str) -> String {
    use ::base64::Engine as _;
    let text = ::base64::engine::general_purpose::STANDARD.encode(text);
    if padding.is_empty() {
        text.trim_end_matches('=').to_owned()
    } else {
        text
    }
}

fn base32(text: &str) -> String {
    const LETTERS: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    let bits = text
        .bytes()
        .flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1));
    let bits: Vec<u8> = bits.collect();
    let letter = |bits: &[u8]| {
        let number = (0..5).fold(0, |sum, bit| sum << 1 | bits.get(bit).unwrap_or(&0));
        char::from(LETTERS[usize::from(number)])
    };
    bits.chunks(5).map(letter).collect()
}

fn hex(bytes: &[u8], before: &str) -> String {
    let mut text = String::new();
    for byte in bytes {
        write!(text, "{before}{byte:02x}").unwrap();
    }
    text
}

/// As a URL writes it, and cookies do.
fn escaped(text: &str) -> String {
    let mut made = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            made.push(char::from(byte));
        } else {
            write!(made, "%{byte:02X}").unwrap();
        }
    }
    made
}

/// A request as it goes through the scan.
#[derive(Debug, Default, Clone)]
pub(super) struct CutRequest {
    pub(super) host: String,
    pub(super) method: String,
    pub(super) path: String,
    pub(super) fields: Vec<(String, String)>,
    pub(super) content: String,
    pub(super) trailers: Vec<(String, String)>,
}

impl CutRequest {
    fn new(host: &str) -> Self {
        let fields = [
            ("user-agent", "agent/1.0"),
            ("accept", "*/*"),
            ("x-client", "v1"),
            ("x-session", "a8K3pQz71LmW"),
        ];
        let fields = fields.map(|(name, value)| (name.to_owned(), value.to_owned()));
        Self {
            host: host.to_owned(),
            method: "POST".to_owned(),
            path: "/api/v1/items".to_owned(),
            fields: fields.to_vec(),
            ..Self::default()
        }
    }

    /// A request that says this in a place.
    fn saying(place: CutPlace, number: usize, said: &Said, host: &str) -> Self {
        let mut asked = Self::new(host);
        let pair = |(key, value): &(String, String)| format!("{}={}", escaped(key), escaped(value));
        let json = |value: &str| serde_json::to_string(value).unwrap();
        let list = |made: Vec<String>| made.join(",");
        match place {
            CutPlace::Path => {
                for (_, value) in said {
                    write!(asked.path, "/{}", escaped(value)).unwrap();
                }
            }
            CutPlace::QueryValue => {
                let pairs: Vec<String> = said.iter().map(pair).collect();
                write!(asked.path, "?{}", pairs.join("&")).unwrap();
            }
            CutPlace::QueryKey => {
                let keys = said
                    .iter()
                    .map(|(_, value)| format!("{}=1", escaped(value)));
                let keys: Vec<String> = keys.collect();
                write!(asked.path, "?{}", keys.join("&")).unwrap();
            }
            CutPlace::Cookie => {
                let pairs: Vec<String> = said.iter().map(pair).collect();
                asked.fields.push(("cookie".to_owned(), pairs.join("; ")));
            }
            CutPlace::FieldValue => {
                let fields = said
                    .iter()
                    .map(|(key, value)| (format!("x-{key}"), value.clone()));
                asked.fields.extend(fields);
            }
            CutPlace::FieldName => {
                // Names have no capitals.
                let name = |key: &str, value: &str| match key {
                    _ if !key.starts_with('d') => format!("x-{}", value.replace(' ', "-")),
                    _ => format!("x{}", hex(value.as_bytes(), "")),
                };
                let fields = said
                    .iter()
                    .map(|(key, value)| (name(key, value), "1".to_owned()));
                asked.fields.extend(fields);
            }
            CutPlace::JsonValue => {
                let members = said
                    .iter()
                    .map(|(key, value)| format!("{}:{}", json(key), json(value)));
                let members = list(members.collect());
                asked.content = format!("{{\"model\":\"m-4\",{members}}}");
            }
            CutPlace::JsonKey => {
                let members = said
                    .iter()
                    .map(|(_, value)| format!("{}:true", json(value)));
                asked.content = format!("{{{}}}", list(members.collect()));
            }
            CutPlace::Form => {
                let pairs: Vec<String> = said.iter().map(pair).collect();
                asked.content = pairs.join("&");
            }
            CutPlace::Array => {
                let items = said.iter().map(|(_, value)| json(value));
                asked.content = format!("{{\"items\":[{}]}}", list(items.collect()));
            }
            CutPlace::Trailers => {
                let fields = said
                    .iter()
                    .map(|(key, value)| (format!("x-{key}"), value.clone()));
                asked.trailers = fields.collect();
            }
            CutPlace::Client => {
                const NAMES: [&str; 6] = [
                    "user-agent",
                    "referer",
                    "accept",
                    "accept-language",
                    "cache-control",
                    "content-type",
                ];
                for (count, (key, value)) in said.iter().enumerate() {
                    // Under one key one field, and else the next.
                    let at = if key.len() == 1 { 1 } else { number + count };
                    let name = NAMES[at % NAMES.len()];
                    asked.fields.retain(|(other, _)| other != name);
                    let value = value.replace(['\n', '\t'], " ");
                    asked.fields.push((name.to_owned(), value));
                }
            }
            CutPlace::Method => {
                if let Some((_, value)) = said.first() {
                    asked.method.clone_from(value);
                }
            }
            CutPlace::Lines => {
                let line = |(key, value): &(String, String)| {
                    format!("{{\"id\":1,{}:{}}}\n", json(key), json(value))
                };
                asked.content = said.iter().map(line).collect();
            }
            CutPlace::Markup => {
                let node = |(key, value): &(String, String)| {
                    let text = value.replace('<', "&lt;");
                    format!("<{key} class=\"v1\">{text}</{key}>\n")
                };
                let nodes: String = said.iter().map(node).collect();
                asked.content = format!("<!DOCTYPE html><html>{nodes}</html>");
            }
            CutPlace::FileName => {
                for (key, value) in said {
                    let value = value.replace(['"', '\n', ';'], " ");
                    write!(
                        asked.content,
                        "--x9\r\nContent-Disposition: form-data; name=\"{key}\"; \
                         filename=\"{value}\"\r\n\r\nx\r\n"
                    )
                    .unwrap();
                }
                asked.content.push_str("--x9--\r\n");
            }
            CutPlace::PartField | CutPlace::Preamble | CutPlace::Epilogue => {
                asked.content = multipart(place, said);
            }
            CutPlace::Mixed => {
                let members = said
                    .iter()
                    .map(|(key, value)| format!("{}:{}", json(key), json(value)));
                asked.content = format!("{{\"number\":{number},{}}}", list(members.collect()));
            }
        }
        asked
    }
}

/// Multipart content that says this around its parts, or in their fields.
fn multipart(place: CutPlace, said: &Said) -> String {
    let own = "Content-Disposition: form-data; name=\"f\"\r\n";
    let part = |fields: &str| format!("--x9\r\n{own}{fields}\r\nx\r\n");
    let lines = |end: &str| -> String {
        let line = |(_, value): &(String, String)| format!("{}{end}", value.replace('\n', " "));
        said.iter().map(line).collect()
    };
    if place == CutPlace::PartField {
        let field = |(key, value): &(String, String)| {
            part(&format!("X-{key}: {}\r\n", value.replace('\n', " ")))
        };
        let parts: String = said.iter().map(field).collect();
        return format!("{parts}--x9--\r\n");
    }
    if place == CutPlace::Preamble {
        return format!("{}{}--x9--\r\n", lines("\r\n"), part(""));
    }
    format!("{}--x9--\r\n{}", part(""), lines("\r\n"))
}

/// All requests in which a secret leaves.
pub(super) fn requests(dice: &mut CutDice, draw: Draw, secret: &str) -> Vec<CutRequest> {
    let mut said = messages(dice, draw, secret);
    let host = |number: usize| match draw.transform {
        CutTransform::Hosts => format!("n{number}.drop.test"),
        _ => "www.drop.test".to_owned(),
    };
    let mut first = None;
    let count: usize = said.iter().map(Vec::len).sum();
    if draw.place == CutPlace::Mixed && count > 1 {
        first = Some(said[0].remove(0).1);
        said.retain(|said| !said.is_empty());
    }
    let mut asked = Vec::new();
    for (number, said) in said.iter().enumerate() {
        let mut own = CutRequest::saying(draw.place, number, said, &host(number));
        if let Some(first) = &first
            && (number == 0 || draw.way.is_multiple_of(2))
        {
            match draw.way % 3 {
                0 => write!(own.path, "?q={}", escaped(first)).unwrap(),
                1 => write!(own.path, "/{}", escaped(first)).unwrap(),
                _ => own.fields.push(("x-q".to_owned(), first.clone())),
            }
        }
        if number > 0 && draw.transform == CutTransform::Requests {
            for page in 0..3 {
                let mut other = CutRequest::new(&host(number));
                let id = dice.roll(10_000);
                other.path = format!("/api/v1/items/{id}?page={page}");
                other.content = format!("{{\"title\":\"words of {page}\",\"done\":false}}");
                asked.push(other);
            }
        }
        let times = match draw.transform {
            CutTransform::Repeated => 1 + draw.way % 4,
            _ => 1,
        };
        asked.extend(std::iter::repeat_n(own, times));
    }
    asked
}

/// One of many ordinary requests to a host.
pub(super) fn ordinary(number: usize, mut value: impl FnMut() -> String) -> CutRequest {
    let mut asked = CutRequest::new("www.drop.test");
    let method = ["GET", "POST", "PUT", "DELETE"].get(number % 4);
    method
        .copied()
        .unwrap_or("GET")
        .clone_into(&mut asked.method);
    asked.path = format!(
        "/v{}/{}?q={}",
        number % 3,
        escaped(&value()),
        escaped(&value())
    );
    for name in [
        "user-agent",
        "referer",
        "accept",
        "cookie",
        "x-request-id",
        "authorization",
    ] {
        asked.fields.retain(|(other, _)| other != name);
        asked.fields.push((name.to_owned(), value()));
    }
    let json = |value: &str| serde_json::to_string(value).unwrap();
    let [one, other] = [value(), value()];
    asked.content = match number % 4 {
        0 => format!("{{\"id\":{},\"text\":{}}}", json(&one), json(&other)),
        1 => format!("<p id=\"{one}\">{other}</p><p>{one}</p>"),
        2 => format!("{{\"a\":{}}}\n{{\"a\":{}}}\n", json(&one), json(&other)),
        _ => format!("a={}&b={}", escaped(&one), escaped(&other)),
    };
    asked
}
