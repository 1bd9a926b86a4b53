//! The texts of a document in HTML or XML: text nodes, the values of attributes,
//! comments and CDATA, each under the name of its tag or attribute. Reads only, and
//! decides nothing: what is no markup is text.

use super::{ContentValue, find, is_chosen, unquoted};

/// The texts of content that begins as markup does; nothing of other content.
pub(super) fn values(content: &[u8]) -> Option<Vec<ContentValue>> {
    let content = content.trim_ascii_start();
    let [b'<', second, ..] = content else {
        return None;
    };
    if !second.is_ascii_alphabetic() && !b"!?/".contains(second) {
        return None;
    }
    let mut values = Vec::new();
    let mut name: &[u8] = b"";
    let mut rest = content;
    while !rest.is_empty() {
        let at = rest.iter().position(|byte| *byte == b'<');
        let (text, tag) = rest.split_at(at.unwrap_or(rest.len()));
        add(&mut values, name, text);
        rest = match (tag.strip_prefix(b"<!--"), tag.strip_prefix(b"<![CDATA[")) {
            (Some(comment), _) => until(&mut values, (name, comment), b"-->"),
            (_, Some(text)) => until(&mut values, (name, text), b"]]>"),
            (None, None) => {
                let (inner, behind) = tag.split_at(end(tag));
                if let Some(own) = tag_of(&mut values, inner) {
                    name = own;
                }
                behind.get(1..).unwrap_or_default()
            }
        };
    }
    Some(values)
}

fn add(values: &mut Vec<ContentValue>, name: &[u8], text: &[u8]) {
    let text = text.trim_ascii();
    if !text.is_empty() {
        values.push(ContentValue::new(name, text));
    }
}

/// Adds the text up to a mark, and says what is behind it.
fn until<'a>(
    values: &mut Vec<ContentValue>,
    (name, text): (&[u8], &'a [u8]),
    mark: &[u8],
) -> &'a [u8] {
    let at = find(text, mark).unwrap_or(text.len());
    let (text, behind) = text.split_at(at);
    add(values, name, text);
    behind.get(mark.len()..).unwrap_or_default()
}

/// Where a tag ends: not within the quotes of an attribute.
fn end(tag: &[u8]) -> usize {
    let mut quote = None;
    for (place, byte) in tag.iter().enumerate() {
        match (quote, byte) {
            (None, b'>') => return place,
            (None, b'"' | b'\'') => quote = Some(*byte),
            (Some(open), _) if open == *byte => quote = None,
            _ => {}
        }
    }
    tag.len()
}

/// Adds a tag's name and its attributes, and says the name.
fn tag_of<'a>(values: &mut Vec<ContentValue>, tag: &'a [u8]) -> Option<&'a [u8]> {
    let tag = tag.strip_prefix(b"<")?;
    let named = tag.iter().position(u8::is_ascii_whitespace);
    let (name, all) = tag.split_at(named.unwrap_or(tag.len()));
    let own = (!name.starts_with(b"/")).then_some(name);
    let plain = name.strip_suffix(b"/").unwrap_or(name);
    let is_named = own.is_some() && !name.starts_with(b"?") && !name.starts_with(b"!");
    add_names(values, if is_named { plain } else { b"" });
    let end = [&b"?"[..], b"/"];
    let rest = end.iter().find_map(|end| all.strip_suffix(*end));
    attributes(values, rest.unwrap_or(all));
    own
}

/// Adds those of some names that are no words.
fn add_names(values: &mut Vec<ContentValue>, names: &[u8]) {
    let names = names.split(u8::is_ascii_whitespace);
    values.extend(names.filter(|name| is_chosen(name)).map(ContentValue::name));
}

/// Adds the names of attributes and their values.
fn attributes(values: &mut Vec<ContentValue>, mut rest: &[u8]) {
    while let Some(at) = rest.iter().position(|byte| *byte == b'=') {
        let (before, behind) = rest.split_at(at);
        let behind = behind.get(1..).unwrap_or_default().trim_ascii_start();
        let key = before.trim_ascii_end();
        add_names(values, key);
        let key = key.rsplit(u8::is_ascii_whitespace).next();
        let length = if let Some((quote @ (b'"' | b'\''), inner)) = behind.split_first() {
            let close = inner.iter().position(|byte| byte == quote);
            close.map_or(behind.len(), |close| close.saturating_add(2))
        } else {
            let blank = behind.iter().position(u8::is_ascii_whitespace);
            blank.unwrap_or(behind.len())
        };
        let (value, after) = behind.split_at(length);
        add(values, key.unwrap_or_default(), unquoted(value));
        rest = after;
    }
    add_names(values, rest);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(content: &str) -> Vec<String> {
        let values = values(content.as_bytes()).unwrap_or_default();
        let values = values.into_iter().map(|value| {
            let [slot, bytes] = [value.slot, value.bytes].map(String::from_utf8);
            format!("{}:{}", slot.unwrap(), bytes.unwrap())
        });
        values.collect()
    }

    #[test]
    fn texts_of_markup_are_text_nodes_attributes_and_comments() {
        for (content, expected) in [
            ("<p>one</p><p>two</p>", &["p:one", "p:two"][..]),
            (
                "<?xml version=\"1.0\"?>\n<a href='x>y' b = \"z\" c=d e>in</a> out",
                &["version:1.0", "href:x>y", "b:z", "c:d", "a:in", "a:out"],
            ),
            (
                "<a><!-- one > --><![CDATA[two<]]>three",
                &["a:one >", "a:two<", "a:three"],
            ),
            (
                "<k8 A1 B2='x' C3><d-e/></k8>",
                &["k8:k8", "A1:A1", "B2:B2", "B2:x", "C3:C3", "d-e:d-e"],
            ),
            ("<a b=\"open", &["b:\"open"]),
            ("<a b", &[]),
            ("<", &[]),
            ("< 5 and > 3", &[]),
            ("no <b>markup</b>", &[]),
        ] {
            assert_eq!(texts(content), expected, "{content}");
        }
    }
}
