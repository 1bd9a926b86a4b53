//! The name that a part of multipart content has by its content-disposition (RFC 6266 4,
//! RFC 7578 4.2): whether every program reads the same one. Text only.

/// Why it cannot be read.
const UNCLEAR: &str = "a part's name that some read otherwise";

/// Whether the value of a content-disposition has at most one name, which is what it looks
/// like.
///
/// # Errors
/// What it is otherwise.
pub(super) fn check(value: &[u8]) -> Result<(), &'static str> {
    let kind = |byte: &u8| !is_of_token(*byte);
    let value = value.trim_ascii();
    let end = value.iter().position(kind).unwrap_or(value.len());
    let (_, mut rest) = value.split_at_checked(end).unwrap_or_default();
    let mut names = 0_u32;
    loop {
        rest = rest.trim_ascii_start();
        let Some(parameter) = rest.strip_prefix(b";") else {
            break;
        };
        rest = parameter.trim_ascii_start();
        if rest.is_empty() {
            break;
        }
        let (name, value) = pair(rest).ok_or(UNCLEAR)?;
        let (text, after) = value_of(value).ok_or(UNCLEAR)?;
        rest = after;
        let name = name.to_ascii_lowercase();
        let is_known = match name.as_slice() {
            b"name" => text.is_name(),
            b"filename" => text.is_file_name(),
            // Names in a character set, and in sections (RFC 2231 3 and 4): of files alone.
            other if other.contains(&b'*') => other.starts_with(b"filename*") && text.is_coded(),
            _ => text.is_name(),
        };
        names += u32::from(name == b"name");
        if !is_known || names > 1 {
            return Err(UNCLEAR);
        }
    }
    if rest.is_empty() {
        Ok(())
    } else {
        Err(UNCLEAR)
    }
}

/// Whether a byte may stand in a token (RFC 9110 5.6.2).
pub(super) fn is_of_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// The value of a parameter, as it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Text<'t> {
    Quoted(&'t [u8]),
    Bare(&'t [u8]),
}

impl Text<'_> {
    /// Whether it is a name to everybody: no word in a coding of its own (RFC 2047), and
    /// no escapes but those that a quoted string needs.
    fn is_name(self) -> bool {
        let (Text::Quoted(text) | Text::Bare(text)) = self;
        let has_blank = matches!(self, Text::Bare(_)) && text.contains(&b' ');
        !has_blank && !holds_word(text) && escapes_only_quotes(text)
    }

    /// Whether it is the name of a file: the same, or a list of such words.
    fn is_file_name(self) -> bool {
        let (Text::Quoted(text) | Text::Bare(text)) = self;
        let is_word = |byte: &u8| !b"\\;\"".contains(byte);
        let is_coded = text.starts_with(b"=?") && text.ends_with(b"?=") && text.iter().all(is_word);
        is_coded || (!holds_word(text) && escapes_only_quotes(text))
    }

    /// Whether it is a value with its character set (RFC 8187 3.2).
    fn is_coded(self) -> bool {
        let (Text::Quoted(text) | Text::Bare(text)) = self;
        text.iter()
            .all(|byte| is_of_token(*byte) || !byte.is_ascii())
    }
}

fn holds_word(text: &[u8]) -> bool {
    memchr::memmem::find(text, b"=?").is_some()
}

/// Whether a backslash stands only before a quote or another one.
fn escapes_only_quotes(text: &[u8]) -> bool {
    let mut bytes = text.iter();
    while let Some(byte) = bytes.next() {
        if *byte == b'\\' && !matches!(bytes.next(), Some(b'"' | b'\\')) {
            return false;
        }
    }
    true
}

/// The name of a parameter, and what stands behind its sign of equality.
fn pair(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let (name, value) = text.split_at_checked(memchr::memchr(b'=', text)?)?;
    let is_token = !name.is_empty() && name.iter().all(|byte| is_of_token(*byte));
    is_token.then(|| (name, value.get(1..).unwrap_or_default()))
}

/// A value, and what stands behind it.
fn value_of(text: &[u8]) -> Option<(Text<'_>, &[u8])> {
    let Some(quoted) = text.strip_prefix(b"\"") else {
        let end = memchr::memchr(b';', text).unwrap_or(text.len());
        let (value, rest) = text.split_at_checked(end)?;
        let is_bare = memchr::memchr2(b'"', b'\\', value).is_none();
        return is_bare.then(|| (Text::Bare(value.trim_ascii_end()), rest));
    };
    let mut at = 0;
    loop {
        match quoted.get(at)? {
            b'"' => break,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    let (value, rest) = quoted.split_at_checked(at)?;
    Some((Text::Quoted(value), rest.get(1..)?))
}
