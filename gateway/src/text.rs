//! Text for frames and fields whose length is bounded. Values only.

/// At most this many bytes, cut at a character.
pub(crate) fn shortened(text: &str, bytes_max: usize) -> String {
    beginning(text, bytes_max).to_owned()
}

/// The same where it stands.
pub(crate) fn beginning(text: &str, bytes_max: usize) -> &str {
    let mut end = text.len().min(bytes_max);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}
