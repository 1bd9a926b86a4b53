//! AWS Signature Version 4: what is signed, and with which key. Texts in,
//! signatures out; knows neither requests nor where keys come from.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use data_encoding::HEXLOWER;
use ring::hmac;
use sha2::{Digest, Sha256};

use super::forms;

/// The name of the algorithm.
pub(super) const ALGORITHM: &str = "AWS4-HMAC-SHA256";

/// What stands for content that is not signed.
pub(super) const UNSIGNED: &str = "UNSIGNED-PAYLOAD";

/// How a client spells a request before it signs it: services differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Spelling {
    path: Path,
    query: Query,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Path {
    /// Escaped once, as object stores have it.
    Once,
    /// Escaped again.
    Twice,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Query {
    /// Escaped anew.
    Anew,
    /// As it is.
    Written,
}

impl Spelling {
    /// All there are.
    pub(super) const ALL: [Self; 4] = [
        Self {
            path: Path::Once,
            query: Query::Anew,
        },
        Self {
            path: Path::Once,
            query: Query::Written,
        },
        Self {
            path: Path::Twice,
            query: Query::Anew,
        },
        Self {
            path: Path::Twice,
            query: Query::Written,
        },
    ];
}

/// A request as far as it is signed.
#[derive(Debug, Clone)]
pub(super) struct Signed<'a> {
    pub(super) method: &'a str,
    pub(super) path: &'a str,
    /// Without the signature itself.
    pub(super) query: &'a str,
    /// Names in lower case and values, in the order of the names.
    pub(super) fields: &'a [(String, String)],
    /// The hash of the content, or what stands for it.
    pub(super) content: &'a str,
}

impl Signed<'_> {
    /// The signature under a key.
    pub(super) fn signature(&self, spelling: Spelling, date: &str, key: &SigningKey) -> String {
        let scope = &key.scope;
        let hash = HEXLOWER.encode(&Sha256::digest(self.canonical(spelling)));
        let text = format!("{ALGORITHM}\n{date}\n{scope}\n{hash}");
        let tag = hmac::sign(&key.key, text.as_bytes());
        HEXLOWER.encode(tag.as_ref())
    }

    fn canonical(&self, spelling: Spelling) -> String {
        let mut text = format!("{}\n", self.method);
        let path = match spelling.path {
            Path::Once => escaped(&unescaped(self.path), Slash::Kept),
            Path::Twice => escaped(self.path.as_bytes(), Slash::Kept),
        };
        text.push_str(&path);
        text.push('\n');
        text.push_str(&self.query(spelling.query));
        text.push('\n');
        for (name, value) in self.fields {
            let _ = writeln!(text, "{name}:{value}");
        }
        text.push('\n');
        let names: Vec<&str> = self.fields.iter().map(|(name, _)| name.as_str()).collect();
        text.push_str(&names.join(";"));
        text.push('\n');
        text.push_str(self.content);
        text
    }

    fn query(&self, how: Query) -> String {
        let mut pairs: Vec<(String, String)> = self
            .query
            .split('&')
            .filter(|pair| !pair.is_empty())
            .map(|pair| {
                let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
                match how {
                    Query::Written => (name.to_owned(), value.to_owned()),
                    Query::Anew => {
                        let anew = |text| escaped(&unescaped(text), Slash::Escaped);
                        (anew(name), anew(value))
                    }
                }
            })
            .collect();
        pairs.sort();
        let pairs: Vec<String> = pairs
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        pairs.join("&")
    }
}

/// A key for one day, region and service.
#[derive(Debug)]
pub(super) struct SigningKey {
    key: hmac::Key,
    scope: String,
}

impl SigningKey {
    /// From the secret half of a pair; `scope` is `DATE/REGION/SERVICE/aws4_request`.
    pub(super) fn new(secret: &[u8], scope: &str) -> Self {
        let first = zeroize::Zeroizing::new([b"AWS4", secret].concat());
        let mut key = hmac::Key::new(hmac::HMAC_SHA256, &first);
        for part in scope.split('/') {
            let next = hmac::sign(&key, part.as_bytes());
            key = hmac::Key::new(hmac::HMAC_SHA256, next.as_ref());
        }
        Self {
            key,
            scope: scope.to_owned(),
        }
    }
}

/// The hash of content.
pub(super) fn content_hash(content: &[u8]) -> String {
    HEXLOWER.encode(&Sha256::digest(content))
}

/// A field's values as they are signed.
pub(super) fn field_value<'a>(values: impl Iterator<Item = &'a str>) -> String {
    let one = |value: &str| value.split_ascii_whitespace().collect::<Vec<_>>().join(" ");
    let values: Vec<String> = values.map(one).collect();
    values.join(",")
}

/// Whether a scope is one: four parts, the last of them the usual.
pub(super) fn is_scope(scope: &str) -> bool {
    let parts: Vec<&str> = scope.split('/').collect();
    let plain = |part: &&str| {
        let graphic = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        !part.is_empty() && part.bytes().all(graphic)
    };
    let named = parts.iter().take(3).all(plain);
    parts.len() == 4 && named && parts.last() == Some(&"aws4_request")
}

/// The names of signed fields: each once, `host` among them.
pub(super) fn names(list: &str) -> Option<Vec<String>> {
    let names: BTreeSet<String> = list.split(';').map(str::to_owned).collect();
    let sorted = names
        .iter()
        .map(String::as_str)
        .collect::<Vec<_>>()
        .join(";")
        == list;
    (sorted && names.contains("host")).then(|| names.into_iter().collect())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Slash {
    Kept,
    Escaped,
}

fn escaped(text: &[u8], slash: Slash) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text {
        let unreserved = byte.is_ascii_alphanumeric() || b"-._~".contains(byte);
        if unreserved || (*byte == b'/' && slash == Slash::Kept) {
            out.push(char::from(*byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

fn unescaped(text: &str) -> Vec<u8> {
    forms::unescaped(text.as_bytes())
        .iter()
        .map(|one| one.byte)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &[u8] = b"wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
    const STORE: &[u8] = b"wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
    const EMPTY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    fn fields(list: &[(&str, &str)]) -> Vec<(String, String)> {
        list.iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    }

    /// The vendor's test suite for requests in general.
    #[test]
    fn signatures_are_those_of_the_vendors_suite() {
        let plain = fields(&[
            ("host", "example.amazonaws.com"),
            ("x-amz-date", "20150830T123600Z"),
        ]);
        let key = SigningKey::new(SECRET, "20150830/us-east-1/service/aws4_request");
        for (method, query, signature) in [
            (
                "GET",
                "",
                "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
            ),
            (
                "POST",
                "",
                "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b",
            ),
            (
                "GET",
                "Param2=value2&Param1=value1",
                "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
            ),
        ] {
            let signed = Signed {
                method,
                path: "/",
                query,
                fields: &plain,
                content: EMPTY,
            };
            for spelling in Spelling::ALL {
                let made = signed.signature(spelling, "20150830T123600Z", &key);
                assert_eq!(made, signature, "{method} {query} {spelling:?}");
            }
        }
    }

    /// The examples in the vendor's documentation of its object store.
    #[test]
    #[expect(clippy::too_many_lines, reason = "a table of examples")]
    fn signatures_are_those_of_the_object_stores_examples() {
        let host = "examplebucket.s3.amazonaws.com";
        let date = "20130524T000000Z";
        let key = SigningKey::new(STORE, "20130524/us-east-1/s3/aws4_request");
        let get = |more: &[(&str, &str)]| {
            let mut all = vec![("host", host)];
            all.extend(more);
            all.extend([("x-amz-content-sha256", EMPTY), ("x-amz-date", date)]);
            fields(&all)
        };
        let put_hash = "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072";
        let put = fields(&[
            ("date", "Fri, 24 May 2013 00:00:00 GMT"),
            ("host", host),
            ("x-amz-content-sha256", put_hash),
            ("x-amz-date", date),
            ("x-amz-storage-class", "REDUCED_REDUNDANCY"),
        ]);
        let presigned = "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2Faws4_request&X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host";
        let only_host = fields(&[("host", host)]);
        for (method, path, query, fields, content, signature) in [
            (
                "GET",
                "/test.txt",
                "",
                &get(&[("range", "bytes=0-9")]),
                EMPTY,
                "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
            ),
            (
                "PUT",
                "/test%24file.text",
                "",
                &put,
                put_hash,
                "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd",
            ),
            (
                "GET",
                "/",
                "lifecycle",
                &get(&[]),
                EMPTY,
                "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543",
            ),
            (
                "GET",
                "/",
                "max-keys=2&prefix=J",
                &get(&[]),
                EMPTY,
                "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7",
            ),
            (
                "GET",
                "/test.txt",
                presigned,
                &only_host,
                UNSIGNED,
                "aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404",
            ),
        ] {
            let signed = Signed {
                method,
                path,
                query,
                fields,
                content,
            };
            let made = signed.signature(Spelling::ALL[0], date, &key);
            assert_eq!(made, signature, "{method} {path} {query}");
        }
    }

    #[test]
    fn lists_and_scopes_are_what_they_should_be() {
        assert!(names("host;x-amz-date").is_some());
        for list in ["", "x-amz-date", "x-amz-date;host", "host;host", "host;"] {
            assert!(names(list).is_none(), "{list}");
        }
        assert!(is_scope("20150830/us-east-1/s3/aws4_request"));
        for scope in [
            "",
            "a/b/c/d",
            "a/b/aws4_request",
            "a//c/aws4_request",
            "a/b/c/aws4_request/",
            "a/b c/d/aws4_request",
        ] {
            assert!(!is_scope(scope), "{scope}");
        }
        assert_eq!(field_value(["  a   b ", "c"].into_iter()), "a b,c");
    }
}
