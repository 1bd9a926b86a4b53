//! Places of a request at which clients show a credential, as detector files write them:
//! a field and what its value begins with, a key of the query, a segment of the path, or a
//! key of content for one path of a host.
//!
//! Pure, and built into the build script as well.

use crate::destination;

/// Stands for the credential in a path, and for any text in what a value begins with.
const STAR: char = '*';
/// Stands in what a value begins with for a URL up to its query, whose host is an issuer's.
pub(crate) const ISSUER: &str = "{issuer}";
/// Between a place and the signature that stands beside what is shown there.
const BESIDE: &str = " + ";

/// A place, and what has to stand beside the credential in the same field or query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Opened<'a> {
    pub(crate) shown: ShownPlace<'a>,
    pub(crate) signature: Option<Signature<'a>>,
}

/// The signature that the half of a pair makes which is never sent: in a field what it
/// stands behind, in a query its key, and its form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Signature<'a> {
    pub(crate) name: &'a str,
    pub(crate) form: SignatureForm,
}

/// How a signature is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SignatureForm {
    /// `{sha1}`, `{sha256}`: so many characters of base 16.
    Hex(usize),
    /// `{hmac}`: base 64 of an HMAC with SHA-1 or SHA-256.
    Hmac,
    /// `{ecdsa}`: base 16 of a signature of P-256 in DER (RFC 3279 2.2.3).
    Ecdsa,
}

/// How detector files write these.
const SIGNATURES: [(&str, SignatureForm); 4] = [
    ("{sha1}", SignatureForm::Hex(40)),
    ("{sha256}", SignatureForm::Hex(64)),
    ("{hmac}", SignatureForm::Hmac),
    ("{ecdsa}", SignatureForm::Ecdsa),
];

impl<'a> Opened<'a> {
    /// Reads a place with what stands beside it.
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        let (place, beside) = match text.split_once(BESIDE) {
            Some((place, beside)) => (place, Some(beside)),
            None => (text, None),
        };
        let shown = ShownPlace::parse(place)?;
        let Some(beside) = beside else {
            let signature = None;
            return Some(Self { shown, signature });
        };
        let ends = |(word, form): &(&str, SignatureForm)| {
            let name = beside.strip_suffix(word)?;
            Some(Signature { name, form: *form })
        };
        let signature = SIGNATURES.iter().find_map(ends)?;
        let is_one = match shown {
            ShownPlace::Field { .. } => !signature.name.is_empty(),
            ShownPlace::Key { .. } => signature.name.strip_suffix('=').is_some_and(is_name),
            ShownPlace::Query | ShownPlace::Path { .. } => false,
        };
        let signature = Some(signature);
        is_one.then_some(Self { shown, signature })
    }
}

/// Where in the head of a request a credential is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ShownPlace<'a> {
    /// The value of a field, behind what it begins with.
    Field { name: &'a str, prefix: &'a str },
    /// The value of a key of the query, for one path of a host if one is named.
    Key {
        route: Option<PathRoute<'a>>,
        key: &'a str,
    },
    /// The query from the beginning of one of its pairs on.
    Query,
    /// What stands in a path behind this beginning, up to the end of the segment.
    Path { before: &'a str },
}

/// A path of a host: `*` is one segment, `**` at the end all that follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PathRoute<'a> {
    pub(crate) host: &'a str,
    path: &'a str,
}

impl<'a> ShownPlace<'a> {
    /// Reads a place.
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        if text == "?*" {
            return Some(Self::Query);
        }
        if let Some(key) = text.strip_prefix('?') {
            return is_name(key).then_some(Self::Key { route: None, key });
        }
        if text.starts_with('/') {
            let before = text.strip_suffix(STAR)?;
            return is_path(before).then_some(Self::Path { before });
        }
        let (name, prefix) = text.split_once(": ").unwrap_or((text, ""));
        if is_name(name) {
            let is_lower = !name.bytes().any(|byte| byte.is_ascii_uppercase());
            let is_said = !text.ends_with(": ") || !prefix.is_empty();
            return (is_lower && is_said).then_some(Self::Field { name, prefix });
        }
        let (route, key) = PathRoute::parse(text)?;
        Some(Self::Key {
            route: Some(route),
            key: key?,
        })
    }
}

impl<'a> PathRoute<'a> {
    /// Reads a route, and behind `?` the key that is open there.
    pub(crate) fn parse(text: &'a str) -> Option<(Self, Option<&'a str>)> {
        let (route, key) = match text.split_once('?') {
            Some((route, key)) => (route, Some(key)),
            None => (text, None),
        };
        let (host, path) = route.split_at(route.find('/')?);
        let is_one = !host.is_empty() && path.split('/').all(is_segment) && key.is_none_or(is_name);
        is_one.then_some((Self { host, path }, key))
    }

    /// Whether a path of a host is this one, as it is sent.
    pub(crate) fn covers(&self, host: &str, path: &str) -> bool {
        destination::covers(self.host, host) && covers(self.path, path)
    }
}

/// The key in front of a value in a document in JSON; `None` where what stands there is
/// no key, or not all of it is there.
pub(crate) fn member_before(before: &[u8]) -> Option<&[u8]> {
    let rest = before.strip_suffix(b"\"")?.trim_ascii_end();
    let rest = rest.strip_suffix(b":")?.trim_ascii_end();
    let rest = rest.strip_suffix(b"\"")?;
    let quote = rest.iter().rposition(|byte| *byte == b'"')?;
    let (front, key) = rest.split_at(quote);
    // An escaped quote is part of a text.
    let is_key = matches!(front.trim_ascii_end().last(), Some(b'{' | b','));
    key.get(1..).filter(|_| is_key)
}

/// The key in front of a value in a form, as [`member_before`].
pub(crate) fn name_before(before: &[u8]) -> Option<&[u8]> {
    let rest = before.strip_suffix(b"=")?;
    match rest.iter().rposition(|byte| *byte == b'&') {
        Some(and) => rest.get(and.saturating_add(1)..),
        None => Some(rest),
    }
}

/// Whether a byte is a letter of an alphabet.
pub(crate) type IsLetter = fn(u8) -> bool;

/// The letters of a template of one word, and how many of them.
pub(crate) fn letters(template: &str) -> Option<(IsLetter, usize)> {
    let inner = template.strip_prefix('{')?.strip_suffix('}')?;
    let (word, length) = inner.split_once(':')?;
    let is_letter: IsLetter = match word {
        "b64" => |byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/'),
        "b62" => |byte| byte.is_ascii_alphanumeric(),
        _ => return None,
    };
    length.parse().ok().map(|length| (is_letter, length))
}

/// Whether a pattern of a path stands for a path.
fn covers(pattern: &str, path: &str) -> bool {
    let mut own = path.split('/');
    for wanted in pattern.split('/') {
        if wanted == "**" {
            return own.all(is_plain);
        }
        let is_here = |segment| segment == wanted || (wanted == "*" && is_plain(segment));
        if !own.next().is_some_and(is_here) {
            return false;
        }
    }
    own.next().is_none()
}

/// Whether a segment leads nowhere else than it says.
fn is_plain(segment: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~:@,".contains(&byte);
    !segment.is_empty() && !segment.starts_with('.') && segment.bytes().all(is_part)
}

fn is_name(name: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    !name.is_empty() && name.bytes().all(is_part)
}

/// Whether a segment of a pattern is one: plain text, or a star alone.
fn is_segment(segment: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !b"?#*%\\".contains(&byte);
    matches!(segment, "*" | "**") || segment.bytes().all(is_plain)
}

fn is_path(text: &str) -> bool {
    text.split('/').all(is_segment) && !text.contains(STAR)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_read_as_it_is_written() {
        let field = |name, prefix| Some(ShownPlace::Field { name, prefix });
        let key = |key| Some(ShownPlace::Key { route: None, key });
        for (text, expected) in [
            ("x-key", field("x-key", "")),
            ("authorization: Bearer ", field("authorization", "Bearer ")),
            ("cookie: d=", field("cookie", "d=")),
            ("?key", key("key")),
            ("?*", Some(ShownPlace::Query)),
            ("/bot*", Some(ShownPlace::Path { before: "/bot" })),
            ("X-Key", None),
            ("x-key: ", None),
            ("?a b", None),
            ("/bot", None),
            ("/*/a*", None),
            ("a b", None),
            ("", None),
            ("a.example/b", None),
        ] {
            assert_eq!(ShownPlace::parse(text), expected, "{text}");
        }
        let routed = ShownPlace::parse("a.example/b?key");
        let is_routed = matches!(
            routed,
            Some(ShownPlace::Key {
                route: Some(_),
                key: "key"
            })
        );
        assert!(is_routed, "{routed:?}");
    }

    #[test]
    fn a_signature_is_read_behind_its_place() {
        let of = |text| Opened::parse(text).and_then(|own| own.signature);
        for (text, name, form) in [
            ("x-auth: A + ,b={sha256}", ",b=", SignatureForm::Hex(64)),
            ("x-auth: A  + :{hmac}", ":", SignatureForm::Hmac),
            ("?id + sig={sha1}", "sig=", SignatureForm::Hex(40)),
            ("?id + sig={ecdsa}", "sig=", SignatureForm::Ecdsa),
        ] {
            assert_eq!(of(text), Some(Signature { name, form }), "{text}");
        }
        for text in [
            "?id + sig",
            "?id + sig={other}",
            "?id + {hmac}",
            "?* + sig={hmac}",
            "/a* + sig={hmac}",
            "x-auth: A + {hmac}",
        ] {
            assert_eq!(Opened::parse(text), None, "{text}");
        }
        assert_eq!(of("?id"), None);
    }

    #[test]
    fn a_route_covers_its_paths_and_no_way_around_them() {
        for (route, host, path, expected) in [
            ("a.example/t", "a.example", "/t", true),
            ("a.example/t", "a.example", "/t/", false),
            ("a.example/t", "b.example", "/t", false),
            ("a.example/", "a.example", "/", true),
            ("a.example/*/t", "a.example", "/x-1/t", true),
            ("a.example/*/t", "a.example", "/x/y/t", false),
            ("a.example/*/t", "a.example", "//t", false),
            ("a.example/*/t", "a.example", "/../t", false),
            ("a.example/*/t", "a.example", "/x%2fy/t", false),
            ("a.example/*/t", "a.example", "/x:y,z@b/t", true),
            ("a.example/*/t", "a.example", "/x;y/t", false),
            ("a.example/a/**", "a.example", "/a/b/c", true),
            ("a.example/a/**", "a.example", "/a/../c", false),
            ("a.example/a/**", "a.example", "/b", false),
            ("*.a.example/t", "x.a.example", "/t", true),
        ] {
            let (route, _) = PathRoute::parse(route).expect(route);
            assert_eq!(route.covers(host, path), expected, "{route:?} {host}{path}");
        }
    }

    #[test]
    fn a_key_is_read_in_front_of_its_value_and_nothing_else_is_one() {
        for (before, is_json, expected) in [
            ("a=b&token=", false, Some("token")),
            ("token=", false, Some("token")),
            ("a=x token=", false, Some("a=x token")),
            ("a=b&", false, None),
            (r#"{"token":""#, true, Some("token")),
            (r#"{"a":1, "token" : ""#, true, Some("token")),
            (r#"{"a":"\"token\":\""#, true, None),
            (r#"{"a":"x,"token":""#, true, Some("token")),
            (r#""token":""#, true, None),
            ("[", true, None),
        ] {
            let own = if is_json {
                member_before(before.as_bytes())
            } else {
                name_before(before.as_bytes())
            };
            assert_eq!(own, expected.map(str::as_bytes), "{before}");
        }
    }
}
