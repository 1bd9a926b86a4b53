//! The character set that a request asks for. Some origins read its query in it too,
//! and in one that writes ASCII otherwise keys and values are not what they look
//! like. Reads fields only.

use http::header::HeaderMap;

use super::folded;

/// Character sets that write ASCII as ASCII does, or what their names begin with.
const NAMES: [&str; 17] = [
    "utf-8",
    "utf8",
    "us-ascii",
    "ascii",
    "latin1",
    "latin-1",
    "gbk",
    "gb2312",
    "gb18030",
    "big5",
    "big5-hkscs",
    "shift_jis",
    "shift-jis",
    "sjis",
    "tis-620",
    "macintosh",
    "windows-874",
];
const FAMILIES: [&str; 7] = [
    "iso-8859-",
    "iso_8859-",
    "iso8859-",
    "windows-125",
    "cp125",
    "euc-",
    "koi8-",
];

/// Whether a query cannot be read as it stands, since its character set is unknown or
/// writes ASCII otherwise.
pub(crate) fn hides_query(fields: &HeaderMap) -> bool {
    let kinds = fields
        .iter()
        .filter(|(name, _)| folded(name.as_str()) == "content-type");
    kinds
        .into_iter()
        .any(|(_, value)| !is_readable(value.as_bytes()))
}

/// Whether each character set that a media type names, to whatever parser, is known.
fn is_readable(kind: &[u8]) -> bool {
    let kind = String::from_utf8_lossy(kind).to_ascii_lowercase();
    kind.split("charset").skip(1).all(|rest| {
        // Another spelling of the parameter, such as `charset*=`, is none we know.
        let Some(value) = rest.trim_start().strip_prefix('=') else {
            return false;
        };
        let value = value.trim_start();
        let value = match value.strip_prefix('"') {
            Some(quoted) => quoted.split('"').next(),
            None => value.split([';', ',']).next(),
        };
        let value = value.unwrap_or_default().trim();
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
        NAMES.contains(&value)
            || (value.bytes().all(is_plain)
                && FAMILIES.iter().any(|family| value.starts_with(family)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_writes_ascii_as_ascii_is_readable() {
        for (kind, readable) in [
            ("text/plain", true),
            ("application/json; charset=utf-8", true),
            ("text/plain;charset=\"UTF-8\"", true),
            ("text/plain; charset=UTF-8; boundary=x", true),
            ("text/plain; charset = iso-8859-15", true),
            ("text/plain; Charset=Shift_JIS", true),
            ("text/plain; charset=windows-1252", true),
            ("text/plain; charset=EUC-KR", true),
            ("text/plain; charset=utf-7", false),
            ("text/plain; charset=utf-16le", false),
            ("text/plain; CHARSET=\"utf-7\"", false),
            ("text/plain; charset=utf-8; charset=utf-7", false),
            (
                "text/plain; charset=utf-8, text/plain; charset=utf-7",
                false,
            ),
            ("text/plain; charset*=utf-8''utf-7", false),
            ("text/plain; charset*0=utf; charset*1=-7", false),
            ("text/plain; charset=iso-2022-jp", false),
            ("text/plain; charset=ibm037", false),
            ("text/plain; charset=unicode_escape", false),
            ("text/plain; charset=\"utf\\-7\"", false),
            ("text/plain; charset=", false),
            ("text/plain; charset", false),
            ("text/plain; charset=euc-kr/7", false),
        ] {
            assert_eq!(is_readable(kind.as_bytes()), readable, "{kind}");
        }
    }
}
