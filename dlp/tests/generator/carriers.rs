//! The places that are drawn: how each writes some values, and which values and names of it a
//! receiver reads, as the gateway cuts them.

use std::fmt::Write as _;

use outgate_dlp::{PieceSource, Place};

use crate::codings::{is_line, is_text};
use crate::dice::Dice;
use crate::packed::{tar, zip};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Carrier {
    Whole,
    Json,
    JsonArray,
    Form,
    Query,
    Path,
    Field,
    Cookie,
    Multipart,
    Xml,
    Settings,
    Csv,
    Packed,
    Protobuf,
    Message,
    Archive,
    Markup,
}

pub(crate) const CARRIERS: [Carrier; 17] = [
    Carrier::Whole,
    Carrier::Json,
    Carrier::JsonArray,
    Carrier::Form,
    Carrier::Query,
    Carrier::Path,
    Carrier::Field,
    Carrier::Cookie,
    Carrier::Multipart,
    Carrier::Xml,
    Carrier::Settings,
    Carrier::Csv,
    Carrier::Packed,
    Carrier::Protobuf,
    Carrier::Message,
    Carrier::Archive,
    Carrier::Markup,
];

/// Values of a head together, in bytes: servers take no more.
const HEAD_BYTES_MAX: usize = 6000;

impl Carrier {
    /// Whether it can hold a value as it is.
    pub(crate) fn holds(self, value: &[u8]) -> bool {
        match self {
            Self::Whole
            | Self::Form
            | Self::Multipart
            | Self::Packed
            | Self::Protobuf
            | Self::Archive => true,
            Self::Query | Self::Path | Self::Cookie => value.len() <= HEAD_BYTES_MAX,
            Self::Field => {
                is_line(value) && value.len() <= HEAD_BYTES_MAX && value.trim_ascii() == value
            }
            Self::Json
            | Self::JsonArray
            | Self::Xml
            | Self::Settings
            | Self::Message
            | Self::Markup
            | Self::Csv => is_text(value),
        }
    }

    /// Whether it is part of a head.
    pub(crate) fn is_head(self) -> bool {
        matches!(self, Self::Query | Self::Path | Self::Field | Self::Cookie)
    }
}

/// A piece, owned.
#[derive(Debug, Clone)]
pub(crate) struct OwnPiece {
    pub(crate) source: PieceSource,
    pub(crate) slot: Vec<u8>,
    pub(crate) bytes: Vec<u8>,
}

/// One request, or one message.
#[derive(Clone, Default)]
pub(crate) struct Request {
    pub(crate) parts: Vec<(Place, Vec<u8>)>,
    pub(crate) head: Vec<OwnPiece>,
    pub(crate) media_type: Option<&'static str>,
    pub(crate) content: Vec<u8>,
    pub(crate) values: Vec<OwnPiece>,
}

impl std::fmt::Debug for Request {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (place, part) in &self.parts {
            writeln!(formatter, "{place}: {}", part.escape_ascii())?;
        }
        write!(formatter, "{}", self.content.escape_ascii())
    }
}

/// A name and its value.
pub(crate) type Item = (String, Vec<u8>);

/// A request that says these in a place.
pub(crate) fn request(dice: &mut Dice, carrier: Carrier, items: &[Item]) -> Request {
    let mut made = Request::default();
    let mut target = "/api/v1/items".to_owned();
    let method = if carrier.is_head() { "GET" } else { "POST" };
    made.parts.push((Place::Method, method.into()));
    made.head
        .push(piece(PieceSource::Method, b"", method.as_bytes()));
    if carrier.is_head() {
        head(carrier, items, &mut target, &mut made);
    } else {
        content(dice, carrier, items, &mut made);
    }
    let path = target.split('?').next().unwrap_or_default();
    for (place, segment) in (0_u8..).zip(path.split('/')) {
        let place = place.min(8);
        made.head
            .push(piece(PieceSource::Path, &[place], segment.as_bytes()));
    }
    made.parts.insert(1, (Place::Target, target.into_bytes()));
    made
}

fn piece(source: PieceSource, slot: &[u8], bytes: &[u8]) -> OwnPiece {
    OwnPiece {
        source,
        slot: slot.to_vec(),
        bytes: bytes.to_vec(),
    }
}

/// As a URL writes it, and cookies do.
fn escaped(text: &[u8]) -> String {
    let mut made = String::new();
    for byte in text {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(byte) {
            made.push(char::from(*byte));
        } else {
            write!(made, "%{byte:02X}").expect("memory");
        }
    }
    made
}

fn head(carrier: Carrier, items: &[Item], target: &mut String, made: &mut Request) {
    let pairs: Vec<String> = items
        .iter()
        .map(|(name, value)| format!("{name}={}", escaped(value)))
        .collect();
    let mut say = |(source, of_name): (PieceSource, PieceSource)| {
        for (name, value) in items {
            made.head
                .push(piece(of_name, name.as_bytes(), name.as_bytes()));
            let value = escaped(value);
            made.head
                .push(piece(source, name.as_bytes(), value.as_bytes()));
        }
    };
    match carrier {
        Carrier::Query => {
            say((PieceSource::Query, PieceSource::QueryName));
            write!(target, "?{}", pairs.join("&")).expect("memory");
        }
        Carrier::Cookie => {
            say((PieceSource::Cookie, PieceSource::CookieName));
            let place = Place::Field("cookie".to_owned());
            made.parts.push((Place::FieldName, b"cookie".to_vec()));
            made.parts.push((place, pairs.join("; ").into_bytes()));
        }
        Carrier::Field => {
            for (name, value) in items {
                let name = format!("x-{name}");
                let own = name.as_bytes();
                made.head.push(piece(PieceSource::FieldName, own, own));
                made.head.push(piece(PieceSource::Field, own, value));
                made.parts.push((Place::FieldName, own.to_vec()));
                made.parts.push((Place::Field(name), value.clone()));
            }
        }
        _ => {
            for (_, value) in items {
                write!(target, "/{}", escaped(value)).expect("memory");
            }
        }
    }
}

fn json(value: &[u8]) -> String {
    let text = std::str::from_utf8(value).expect("text");
    serde_json::to_string(text).expect("a text")
}

fn marked_up(value: &[u8]) -> String {
    let text = std::str::from_utf8(value).expect("text");
    let text = text.replace('&', "&amp;");
    text.replace('<', "&lt;").replace('>', "&gt;")
}

fn content(dice: &mut Dice, carrier: Carrier, items: &[Item], made: &mut Request) {
    let values = items
        .iter()
        .map(|(name, value)| piece(PieceSource::Content, name.as_bytes(), value));
    made.values = values.collect();
    let (media_type, content) = match carrier {
        Carrier::Multipart => (Some("multipart/form-data; boundary=b7Xq"), multipart(items)),
        Carrier::Packed => (None, packed(dice, items)),
        Carrier::Protobuf => (Some("application/grpc-web+proto"), protobuf(items)),
        Carrier::Archive => {
            let members: Vec<Vec<u8>> = items.iter().map(|(_, value)| value.clone()).collect();
            let content = match dice.roll(3) {
                0 if items.len() == 1 => zip(&items[0].1, 0),
                1 if items.len() == 1 => zip(&items[0].1, 1),
                _ => tar(&members),
            };
            (None, content)
        }
        // What is whole is one value.
        Carrier::Whole | Carrier::Message => {
            let values = items.iter().flat_map(|(_, value)| value.clone());
            (None, values.collect())
        }
        _ => document(dice, carrier, items),
    };
    made.media_type = media_type;
    made.content = content;
}

/// A text with these values.
fn document(dice: &mut Dice, carrier: Carrier, items: &[Item]) -> (Option<&'static str>, Vec<u8>) {
    let all = |form: &dyn Fn(&Item) -> String| -> Vec<String> { items.iter().map(form).collect() };
    let words = dice.words(5);
    let (media_type, text) = match carrier {
        Carrier::Json => {
            let members = all(&|(name, value)| format!("\"{name}\": {}", json(value)));
            let text = format!("{{\"title\": \"{words}\", {}}}", members.join(", "));
            ("application/json", text)
        }
        Carrier::JsonArray => {
            let members = all(&|(_, value)| json(value)).join(", ");
            let text = format!("{{\"title\":\"{words}\",\"items\":[{members}]}}");
            ("application/json", text)
        }
        Carrier::Form => {
            let pairs = all(&|(name, value)| format!("{name}={}", escaped(value)));
            ("application/x-www-form-urlencoded", pairs.join("&"))
        }
        Carrier::Xml => {
            let nodes = all(&|(name, value)| format!("<{name}>{}</{name}>\n", marked_up(value)));
            let nodes = nodes.concat();
            let text = format!("<?xml version=\"1.0\"?>\n<list>\n{nodes}</list>\n");
            ("application/xml", text)
        }
        Carrier::Settings => {
            let sign = dice.pick(&[": ", " = ", "="]);
            let lines = all(&|(name, value)| format!("{name}{sign}{}\n", json(value)));
            return (
                None,
                format!("title{sign}\"{words}\"\n{}", lines.concat()).into_bytes(),
            );
        }
        Carrier::Csv => {
            let cell = |(_, value): &Item| {
                let text = String::from_utf8_lossy(value);
                format!("\"{}\"", text.replace('"', "\"\""))
            };
            let between = dice.pick(&[",", "\n", ",7,"]);
            let text = format!("id,{words}\n1,{}\n", all(&cell).join(between));
            ("text/csv", text)
        }
        _ if dice.is_one_in(2) => {
            let nodes = all(&|(_, value)| format!("<p>{}</p>\n", marked_up(value)));
            let nodes = nodes.concat();
            let text = format!("<!DOCTYPE html>\n<html><h1>{words}</h1>\n{nodes}</html>\n");
            ("text/html", text)
        }
        _ => {
            let block =
                |(_, value): &Item| format!("```\n{}\n```\n", String::from_utf8_lossy(value));
            let text = format!("# {words}\n\n{}\n{words}\n", all(&block).join("\n"));
            ("text/markdown", text)
        }
    };
    (Some(media_type), text.into_bytes())
}

fn multipart(items: &[Item]) -> Vec<u8> {
    let mut made = Vec::new();
    for (name, value) in items {
        let head = format!("--b7Xq\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n");
        made.extend_from_slice(head.as_bytes());
        made.extend_from_slice(value);
        made.extend_from_slice(b"\r\n");
    }
    made.extend_from_slice(b"--b7Xq--\r\n");
    made
}

/// A map of names and bytes in MessagePack, CBOR or BSON.
fn packed(dice: &mut Dice, items: &[Item]) -> Vec<u8> {
    let small = u8::try_from(items.len()).expect("a few");
    let size = |value: &[u8]| u32::try_from(value.len()).expect("a length");
    let mut made = Vec::new();
    match dice.roll(3) {
        0 => {
            made.push(0x80 | small);
            for (name, value) in items {
                made.push(0xa0 | u8::try_from(name.len()).expect("a name"));
                made.extend_from_slice(name.as_bytes());
                made.push(0xdb);
                made.extend_from_slice(&size(value).to_be_bytes());
                made.extend_from_slice(value);
            }
        }
        1 => {
            made.push(0xa0 | small);
            for (name, value) in items {
                made.push(0x60 | u8::try_from(name.len()).expect("a name"));
                made.extend_from_slice(name.as_bytes());
                made.push(0x7a);
                made.extend_from_slice(&size(value).to_be_bytes());
                made.extend_from_slice(value);
            }
        }
        _ => {
            for (name, value) in items {
                made.push(2);
                made.extend_from_slice(name.as_bytes());
                made.push(0);
                made.extend_from_slice(&(size(value) + 1).to_le_bytes());
                made.extend_from_slice(value);
                made.push(0);
            }
            made.push(0);
            let all = size(&made) + 4;
            made.splice(0..0, all.to_le_bytes());
        }
    }
    made
}

/// Fields of a message (Encoding guide), in the frame of gRPC-Web.
fn protobuf(items: &[Item]) -> Vec<u8> {
    let mut message = Vec::new();
    for (number, (_, value)) in (1_u8..).zip(items) {
        message.push(number << 3 | 2);
        let mut rest = value.len();
        while rest >= 0x80 {
            message.push(u8::try_from(rest & 0x7f).expect("seven bits") | 0x80);
            rest >>= 7;
        }
        message.push(u8::try_from(rest).expect("seven bits"));
        message.extend_from_slice(value);
    }
    let size = u32::try_from(message.len()).expect("a length");
    [&[0][..], &size.to_be_bytes(), &message].concat()
}
