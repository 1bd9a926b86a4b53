//! The shape of a target: what stays of it when numbers, hashes and ids in the segments of
//! its path are left open as `*`, as patterns of paths have it. Text to text; the words of
//! denials and the rules of their flags have shapes alike.

/// Hexadecimal digits from which on a run of them is taken for a hash or an id, if a
/// decimal digit is among them.
const HEX_MIN: usize = 8;
/// Letters and digits from which on a mixture of both is taken for an id.
const MIXED_MIN: usize = 16;

/// The text with every segment of its path left open where an id stands in it.
pub fn shape(text: &str) -> String {
    map(text, segment_shape)
}

/// Two texts of one shape as one: what they have in common stays, the rest is left open.
pub fn shape_merged(one: &str, other: &str) -> String {
    let Some((_, rest)) = split(other) else {
        return one.to_owned();
    };
    let path = rest.split_once('?').map_or(rest, |(path, _)| path);
    let mut others = path.split('/');
    map(one, |segment| {
        if others.next() == Some(segment) {
            segment.to_owned()
        } else {
            segment_shape(segment)
        }
    })
}

/// Goes over the segments of the path; what stands before it and behind it stays.
fn map(text: &str, mut open: impl FnMut(&str) -> String) -> String {
    let Some((head, rest)) = split(text) else {
        return text.to_owned();
    };
    let (path, query) = match rest.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (rest, None),
    };
    let segments: Vec<String> = path.split('/').map(&mut open).collect();
    let query = query.map_or(String::new(), |query| format!("?{query}"));
    format!("{head}/{}{query}", segments.join("/"))
}

/// What stands before the path of a URL, and the path without its first slash. Nothing
/// of a Unix socket's: its name is one thing.
fn split(text: &str) -> Option<(&str, &str)> {
    let at = text.find("://").filter(|_| !text.contains("unix://"))?;
    let authority = text.get(at.checked_add(3)?..)?;
    let slash = authority.find('/')?.checked_add(at)?.checked_add(3)?;
    let (head, rest) = text.split_at_checked(slash)?;
    Some((head, rest.strip_prefix('/')?))
}

/// A segment with `*` for each id in it. One with anything but letters, digits and
/// `-_.` stays as it is: servers differ about what it is, and a pattern has to match
/// whatever they take it for.
pub(crate) fn segment_shape(segment: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.*".contains(&byte);
    let is_plain = segment.bytes().all(plain) && !segment.ends_with('.');
    if !is_plain || segment.starts_with('.') || segment.contains("**") {
        return segment.to_owned();
    }
    if is_uuid(segment) {
        return "*".to_owned();
    }
    let mut shape = String::new();
    let mut gap = String::new();
    for part in segment.split_inclusive(['-', '_', '.']) {
        let word = part.trim_end_matches(['-', '_', '.']);
        let end = part.get(word.len()..).unwrap_or_default();
        if is_id(word) {
            // Ids beside one another are one, with what separates them.
            if !shape.ends_with('*') {
                shape.push_str(&gap);
                shape.push('*');
            }
        } else {
            shape.push_str(&gap);
            shape.push_str(word);
        }
        end.clone_into(&mut gap);
    }
    shape.push_str(&gap);
    shape
}

fn is_uuid(text: &str) -> bool {
    let lengths = text.split('-').map(str::len);
    let hex = |byte: u8| byte.is_ascii_hexdigit() || byte == b'-';
    lengths.eq([8, 4, 4, 4, 12]) && text.bytes().all(hex)
}

fn is_id(word: &str) -> bool {
    let has_digit = word.bytes().any(|byte| byte.is_ascii_digit());
    let has_letter = word.bytes().any(|byte| byte.is_ascii_alphabetic());
    let is_hex = word.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_number = word.bytes().all(|byte| byte.is_ascii_digit());
    let is_mixed = word.bytes().all(|byte| byte.is_ascii_alphanumeric()) && has_letter;
    word == "*"
        || has_digit
            && (is_number || is_hex && word.len() >= HEX_MIN || is_mixed && word.len() >= MIXED_MIN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ids_are_left_open_and_words_stay() {
        for (text, expected) in [
            ("GET http://a.test/users/17", "GET http://a.test/users/*"),
            ("GET http://a.test/users/me", "GET http://a.test/users/me"),
            ("https://a.test/v1/x?n=*", "https://a.test/v1/x?n=*"),
            (
                "PUT https://a.test/o/6f1ed002ab5595859014ebf0951522d9/raw",
                "PUT https://a.test/o/*/raw",
            ),
            (
                "GET https://a.test/123e4567-e89b-12d3-a456-426614174000",
                "GET https://a.test/*",
            ),
            (
                "GET https://a.test/toy-1.10.3.tgz",
                "GET https://a.test/toy-*.tgz",
            ),
            (
                "GET https://a.test/app.3f2a9c1b.js",
                "GET https://a.test/app.*.js",
            ),
            (
                "GET https://a.test/deadbeefcafe",
                "GET https://a.test/deadbeefcafe",
            ),
            (
                "GET https://a.test/a%2F12/34",
                "GET https://a.test/a%2F12/*",
            ),
            ("GET https://10.0.0.1:8080", "GET https://10.0.0.1:8080"),
            ("GET https://a.test/x/**", "GET https://a.test/x/**"),
            (
                "connection to unix:///run/user/1000/bus",
                "connection to unix:///run/user/1000/bus",
            ),
            ("connection to a.test:5432", "connection to a.test:5432"),
        ] {
            assert_eq!(shape(text), expected, "{text}");
        }
    }

    #[test]
    fn what_is_common_stays() {
        let one = "GET http://a.test/7/runs/1";
        assert_eq!(shape_merged(one, one), one);
        let both = shape_merged(one, "GET http://a.test/7/runs/22");
        assert_eq!(both, "GET http://a.test/7/runs/*");
    }

    proptest! {
        #[test]
        fn a_shape_is_its_own_shape(path in "[a-z0-9%*?;./_-]{0,40}") {
            let once = shape(&format!("GET http://a.test/{path}"));
            prop_assert_eq!(shape(&once), once);
        }

        #[test]
        fn no_text_breaks_it(one in "\\PC{0,60}", other in "\\PC{0,60}") {
            drop(shape_merged(&shape(&one), &other));
        }
    }
}
