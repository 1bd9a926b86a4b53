//! Character sets that a media type names (RFC 9110 8.3.2): in some of them text is not the
//! bytes it would be in ASCII, so that whoever reads content as it stands reads another one
//! than its receiver. Bytes only.

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

/// Character sets of two or four bytes a character, in which text is found all the same.
const WIDE: [&str; 9] = [
    "utf-16", "utf-16le", "utf-16be", "utf16", "ucs-2", "ucs2", "utf-32", "utf-32le", "utf-32be",
];

/// Whether text in each character set that a media type names, to whatever parser, has the
/// bytes that it would have in ASCII.
pub fn writes_ascii(media_type: &[u8]) -> bool {
    each(media_type, |_| false)
}

/// Whether text in them is found: also where each character has two or four bytes.
pub(crate) fn is_scanned(media_type: &[u8]) -> bool {
    each(media_type, |name| WIDE.contains(&name))
}

/// Whether each of them is known, or one of others.
fn each(media_type: &[u8], is_other: impl Fn(&str) -> bool) -> bool {
    let kind = String::from_utf8_lossy(media_type).to_ascii_lowercase();
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
            || is_other(value)
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
            assert_eq!(writes_ascii(kind.as_bytes()), readable, "{kind}");
        }
    }

    #[test]
    fn wide_text_is_scanned_and_no_other_coded_one() {
        for (kind, scanned) in [
            ("application/json", true),
            ("application/json; charset=utf-16", true),
            ("application/json; charset=UTF-32BE", true),
            ("application/json; charset=utf-7", false),
            ("application/json; charset=utf-7-imap", false),
            ("text/plain; charset=ibm037", false),
            ("text/plain; charset=utf-16; charset=utf-7", false),
        ] {
            assert_eq!(is_scanned(kind.as_bytes()), scanned, "{kind}");
        }
    }
}
