//! The values of multipart content (RFC 2046 5.1): the fields of its parts and their
//! parameters, what the parts say, and the text before the first part and behind the last.
//! Reads only, and decides nothing: what is no multipart content is text.

use super::{ContentValue, find, is_chosen, lines, texts, unquoted};
use crate::limits;

/// Lines that could be the first delimiter, of which it is asked whether they are.
const DELIMITERS_MAX: usize = 8;

/// Fields that say what a part is, with parameters.
const FORMAL: [&[u8]; 4] = [
    b"content-disposition",
    b"content-length",
    b"content-transfer-encoding",
    b"content-type",
];

/// The values of content with parts; nothing of other content.
pub(super) fn values(content: &[u8]) -> Option<Vec<ContentValue>> {
    let mut values = Vec::new();
    add(&mut values, content, limits::SCAN_MESSAGE_DEPTH_MAX).then_some(values)
}

/// Adds the values of content with parts, and says whether it has some.
fn add(values: &mut Vec<ContentValue>, content: &[u8], depth: usize) -> bool {
    let Some((preamble, delimiter, mut rest)) = first(content) else {
        return false;
    };
    values.extend(lines(preamble).into_iter().filter(is_some));
    let mut number = 0_u64;
    loop {
        let at = find(rest, delimiter).unwrap_or(rest.len());
        let (part, behind) = rest.split_at(at);
        // Behind the last delimiter there is no part.
        if let Some(epilogue) = part.strip_prefix(b"--") {
            values.extend(lines(epilogue).into_iter().filter(is_some));
        } else {
            add_part(values, part, number, depth);
        }
        number = number.saturating_add(1);
        let Some(behind) = behind.get(delimiter.len()..).filter(|_| at < rest.len()) else {
            return true;
        };
        rest = behind;
    }
}

fn is_some(value: &ContentValue) -> bool {
    !value.bytes.is_empty()
}

/// What stands before the first delimiter, the delimiter, and what is behind it. Whoever
/// reads it is told the boundary; here it is the first line that could be one and ends parts.
fn first(content: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let mut from = 0_usize;
    let mut asked = 0_usize;
    for line in content.split_inclusive(|byte| *byte == b'\n') {
        let (preamble, begun) = content.split_at(from);
        from = from.saturating_add(line.len());
        let delimiter = line.trim_ascii_end();
        if delimiter.len() < 3 || !delimiter.starts_with(b"--") {
            continue;
        }
        let behind = begun.get(delimiter.len()..)?;
        let ends = || find(behind, &[b"\n", delimiter, b"--"].concat()).is_some();
        // Of content that is not at its end the first part says it.
        let begins = || {
            let next = content.get(from..).unwrap_or_default();
            let next = next.split(|byte| *byte == b'\n').next();
            next.is_some_and(|next| next.trim_ascii_end().is_empty() || next.contains(&b':'))
        };
        if (preamble.is_empty() && begins()) || ends() {
            return Some((preamble, delimiter, behind));
        }
        asked = asked.saturating_add(1);
        if asked == DELIMITERS_MAX {
            break;
        }
    }
    None
}

/// Adds the values of one part: of its fields, and what it says.
fn add_part(values: &mut Vec<ContentValue>, part: &[u8], number: u64, depth: usize) {
    let part = part.strip_prefix(b"\r").unwrap_or(part);
    let part = part.strip_prefix(b"\n").unwrap_or(part);
    let blank = [&b"\r\n\r\n"[..], b"\n\n"];
    let blank = blank
        .iter()
        .filter_map(|blank| Some((find(part, blank)?, blank.len())));
    let without_fields = [&b"\r\n"[..], b"\n"];
    let without_fields = without_fields.iter().find(|end| part.starts_with(end));
    let (place, length) = match without_fields {
        Some(end) => (0, end.len()),
        // Of a part that is not at its end the fields may be all that came.
        None => blank.min().unwrap_or((part.len(), 0)),
    };
    let (head, body) = part.split_at(place);
    for field in head.split(|byte| *byte == b'\n') {
        add_field(values, field.trim_ascii());
    }
    let body = body.get(length..).unwrap_or_default().trim_ascii_end();
    if body.is_empty() {
        return;
    }
    let deeper = depth.checked_sub(1);
    if body.starts_with(b"--") && deeper.is_some_and(|depth| add(values, body, depth)) {
        return;
    }
    if let [b'{' | b'[', ..] = body
        && let Some(mut texts) = texts(body)
    {
        values.append(&mut texts);
        return;
    }
    // Parts of one place follow each other from message to message, whatever their fields say.
    values.push(ContentValue::new(&number.to_be_bytes(), body));
}

/// Adds what a field says, and the values of its parameters (RFC 2045 5.1), such as the name
/// of a file. A line without a name goes on with what the one before it says.
fn add_field(values: &mut Vec<ContentValue>, field: &[u8]) {
    let colon = field.iter().position(|byte| *byte == b':');
    let (name, said) = field.split_at(colon.map_or(0, |colon| colon.saturating_add(1)));
    let own = name.strip_suffix(b":").unwrap_or(name);
    let name = own.to_ascii_lowercase();
    if !FORMAL.contains(&name.as_slice()) && is_chosen(own) {
        values.push(ContentValue::name(own));
    }
    let mut all = said.split(|byte| *byte == b';');
    let is_pair = |pair: &[u8]| pair.contains(&b'=');
    let has_parameters = FORMAL.contains(&name.as_slice()) || all.clone().skip(1).all(is_pair);
    let first = all.next().unwrap_or_default();
    let own = if has_parameters { first } else { said }.trim_ascii();
    if !own.is_empty() {
        values.push(ContentValue::new(&name, unquoted(own)));
    }
    for pair in all.filter(|pair| has_parameters && is_pair(pair)) {
        let at = pair.iter().position(|byte| *byte == b'=');
        let (name, value) = pair.split_at(at.unwrap_or(pair.len()));
        let value = unquoted(value.get(1..).unwrap_or_default().trim_ascii());
        values.push(match name.trim_ascii() {
            b"name" => ContentValue::name(value),
            name => ContentValue::new(name, value),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(content: &str) -> Vec<String> {
        let values = values(content.as_bytes()).unwrap_or_default();
        let values = values.into_iter().map(|value| {
            let slot = match value.slot.as_slice() {
                [0, .., number] => number.to_string(),
                name => String::from_utf8(name.to_vec()).unwrap(),
            };
            format!("{slot}={}", String::from_utf8(value.bytes).unwrap())
        });
        values.collect()
    }

    #[test]
    fn fields_preamble_and_epilogue_are_values_as_parts_are() {
        for (content, expected) in [
            (
                "before\r\n--x\r\nContent-Disposition: form-data; name=\"k\"; filename=f\r\n\
                 X-Y: one; a=b\r\nX-Z: c;d\r\n\r\ntwo\r\n--x--\r\nbehind",
                &[
                    "=before",
                    "content-disposition=form-data",
                    "k=k",
                    "filename=f",
                    "X-Y=X-Y",
                    "x-y=one",
                    "a=b",
                    "X-Z=X-Z",
                    "x-z=c;d",
                    "0=two",
                    "=behind",
                ][..],
            ),
            (
                "--x\n\none\n--x\nA: two\n\nthree\n--x--",
                &["0=one", "A=A", "a=two", "1=three"],
            ),
            ("--x\r\nA: one", &["A=A", "a=one"]),
            ("--x\r\nA: one\r\n two\r\n\r\n", &["A=A", "a=one", "=two"]),
            (
                "--x\r\n\r\n{\"k\":\"one\"}\r\n--x\r\n\r\n--y\r\n\r\ntwo\r\n--y--\r\n--x--",
                &["k=k", "k=one", "0=two"],
            ),
            ("-- \nno parts\n--", &[]),
            ("words\n--x\nand more", &[]),
        ] {
            assert_eq!(texts(content), expected, "{content}");
        }
    }
}
