//! The requests in which a secret leaves that was cut up: what each says, and how its place
//! writes it.

use std::fmt::Write as _;

use super::{Dice, Draw, Spread, Twist, Where, cut};

/// What one request says: names and values, in order.
type Said = Vec<(String, String)>;

const WORDS: [&str; 8] = [
    "open", "list", "next", "state", "page", "query", "sort", "title",
];

/// What the requests say in which a secret leaves.
fn messages(dice: &mut Dice, draw: Draw, secret: &str) -> Vec<Said> {
    let mut pieces = cut(dice, secret, draw.pieces);
    if draw.twist == Twist::Reversed {
        pieces.reverse();
    }
    let wrapped = |number: usize, piece: &str| match (draw.twist, draw.way % 6) {
        (Twist::Around, 0) => format!("x-{piece}-y"),
        (Twist::Around, 1) => format!("part={};data={piece}", number + 1),
        (Twist::Around, 2) => format!("img_{piece}.png"),
        (Twist::Around, 3) => format!("chunk-{number}-{piece}"),
        (Twist::Around, 4) => format!("v1:{piece}"),
        (Twist::Around, _) => format!("{{\"seq\":{number},\"part\":\"{piece}\"}}"),
        (Twist::Coded, 0) => base64(piece, "="),
        (Twist::Coded, 1) => base64(piece, ""),
        (Twist::Coded, 2) => hex(piece.as_bytes(), ""),
        (Twist::Coded, 3) => hex(piece.as_bytes(), "%"),
        (Twist::Coded, 4) => format!("0x{}", hex(piece.as_bytes(), "")),
        (Twist::Coded, _) => format!("p{number}.{}", base64(piece, "")),
        _ => piece.to_owned(),
    };
    if draw.twist == Twist::Within {
        pieces = within(dice, draw, secret, &pieces);
    }
    let mut said = vec![Said::new()];
    for (number, piece) in pieces.iter().enumerate() {
        if draw.spread != Spread::Together && number > 0 {
            said.push(Said::new());
        }
        let key = |letter: &str| match draw.spread {
            Spread::SameKey => letter.to_owned(),
            Spread::Together | Spread::OtherKeys => format!("{letter}{}", number + 1),
        };
        let between = number > 0;
        let length = piece.len();
        let last = said.last_mut().unwrap();
        match draw.twist {
            Twist::Words => {
                let word = if draw.way.is_multiple_of(2) {
                    "v1"
                } else {
                    dice.pick(&WORDS)
                };
                last.push((key("w"), word.to_owned()));
            }
            Twist::Value if between => last.push((key("n"), dice.text(length))),
            Twist::Long if between => {
                for count in 0..40 {
                    let words: Vec<&str> = (0..8).map(|_| dice.pick(&WORDS)).collect();
                    last.push((format!("t{count}"), words.join(" ")));
                }
            }
            _ => {}
        }
        let piece = wrapped(number, piece);
        if draw.twist == Twist::Twice {
            last.push((format!("{}x", key("d")), piece.clone()));
        }
        last.push((key("d"), piece));
    }
    said
}

/// Pairs of pieces in one value each, with a separator or words between; in the last, what
/// is left.
fn within(dice: &mut Dice, draw: Draw, secret: &str, pieces: &[String]) -> Vec<String> {
    const SEPARATORS: [&str; 12] = [
        ", ", "|", ";", " ", "\t", ":", " / ", ". ", "\", \"", ") (", "</p><p>", "&",
    ];
    const SIGNS: [&str; 3] = [".", "~", "--"];
    let mut words = |count: usize| {
        let words: Vec<&str> = (0..count).map(|_| dice.pick(&WORDS)).collect();
        words.join(" ")
    };
    let is_pair = matches!(draw.spread, Spread::OtherKeys | Spread::SameKey);
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
pub(super) struct Asked {
    pub(super) host: String,
    pub(super) method: String,
    pub(super) path: String,
    pub(super) fields: Vec<(String, String)>,
    pub(super) content: String,
    pub(super) trailers: Vec<(String, String)>,
}

impl Asked {
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
    fn saying(place: Where, number: usize, said: &Said, host: &str) -> Self {
        let mut asked = Self::new(host);
        let pair = |(key, value): &(String, String)| format!("{}={}", escaped(key), escaped(value));
        let json = |value: &str| serde_json::to_string(value).unwrap();
        let list = |made: Vec<String>| made.join(",");
        match place {
            Where::Path => {
                for (_, value) in said {
                    write!(asked.path, "/{}", escaped(value)).unwrap();
                }
            }
            Where::QueryValue => {
                let pairs: Vec<String> = said.iter().map(pair).collect();
                write!(asked.path, "?{}", pairs.join("&")).unwrap();
            }
            Where::QueryKey => {
                let keys = said
                    .iter()
                    .map(|(_, value)| format!("{}=1", escaped(value)));
                let keys: Vec<String> = keys.collect();
                write!(asked.path, "?{}", keys.join("&")).unwrap();
            }
            Where::Cookie => {
                let pairs: Vec<String> = said.iter().map(pair).collect();
                asked.fields.push(("cookie".to_owned(), pairs.join("; ")));
            }
            Where::FieldValue => {
                let fields = said
                    .iter()
                    .map(|(key, value)| (format!("x-{key}"), value.clone()));
                asked.fields.extend(fields);
            }
            Where::FieldName => {
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
            Where::JsonValue => {
                let members = said
                    .iter()
                    .map(|(key, value)| format!("{}:{}", json(key), json(value)));
                let members = list(members.collect());
                asked.content = format!("{{\"model\":\"m-4\",{members}}}");
            }
            Where::JsonKey => {
                let members = said
                    .iter()
                    .map(|(_, value)| format!("{}:true", json(value)));
                asked.content = format!("{{{}}}", list(members.collect()));
            }
            Where::Form => {
                let pairs: Vec<String> = said.iter().map(pair).collect();
                asked.content = pairs.join("&");
            }
            Where::Array => {
                let items = said.iter().map(|(_, value)| json(value));
                asked.content = format!("{{\"items\":[{}]}}", list(items.collect()));
            }
            Where::Trailers => {
                let fields = said
                    .iter()
                    .map(|(key, value)| (format!("x-{key}"), value.clone()));
                asked.trailers = fields.collect();
            }
            Where::Client => {
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
            Where::Method => {
                if let Some((_, value)) = said.first() {
                    asked.method.clone_from(value);
                }
            }
            Where::Lines => {
                let line = |(key, value): &(String, String)| {
                    format!("{{\"id\":1,{}:{}}}\n", json(key), json(value))
                };
                asked.content = said.iter().map(line).collect();
            }
            Where::Markup => {
                let node = |(key, value): &(String, String)| {
                    let text = value.replace('<', "&lt;");
                    format!("<{key} class=\"v1\">{text}</{key}>\n")
                };
                let nodes: String = said.iter().map(node).collect();
                asked.content = format!("<!DOCTYPE html><html>{nodes}</html>");
            }
            Where::FileName => {
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
            Where::Mixed => {
                let members = said
                    .iter()
                    .map(|(key, value)| format!("{}:{}", json(key), json(value)));
                asked.content = format!("{{\"number\":{number},{}}}", list(members.collect()));
            }
        }
        asked
    }
}

/// All requests in which a secret leaves.
pub(super) fn requests(dice: &mut Dice, draw: Draw, secret: &str) -> Vec<Asked> {
    let mut said = messages(dice, draw, secret);
    let host = |number: usize| match draw.twist {
        Twist::Hosts => format!("n{number}.drop.test"),
        _ => "www.drop.test".to_owned(),
    };
    let mut first = None;
    let count: usize = said.iter().map(Vec::len).sum();
    if draw.place == Where::Mixed && count > 1 {
        first = Some(said[0].remove(0).1);
        said.retain(|said| !said.is_empty());
    }
    let mut asked = Vec::new();
    for (number, said) in said.iter().enumerate() {
        let mut own = Asked::saying(draw.place, number, said, &host(number));
        if let Some(first) = &first
            && (number == 0 || draw.way.is_multiple_of(2))
        {
            match draw.way % 3 {
                0 => write!(own.path, "?q={}", escaped(first)).unwrap(),
                1 => write!(own.path, "/{}", escaped(first)).unwrap(),
                _ => own.fields.push(("x-q".to_owned(), first.clone())),
            }
        }
        if number > 0 && draw.twist == Twist::Requests {
            for page in 0..3 {
                let mut other = Asked::new(&host(number));
                let id = dice.roll(10_000);
                other.path = format!("/api/v1/items/{id}?page={page}");
                other.content = format!("{{\"title\":\"words of {page}\",\"done\":false}}");
                asked.push(other);
            }
        }
        let times = match draw.twist {
            Twist::Repeated => 1 + draw.way % 4,
            _ => 1,
        };
        asked.extend(std::iter::repeat_n(own, times));
    }
    asked
}

/// One of many ordinary requests to a host.
pub(super) fn ordinary(number: usize, mut value: impl FnMut() -> String) -> Asked {
    let mut asked = Asked::new("www.drop.test");
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
