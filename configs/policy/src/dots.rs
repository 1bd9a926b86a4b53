//! What of a decoded segment some server takes for a step through the path: dots, also
//! with parameters or blanks behind them. Bytes only; resolves nothing.

/// Whether a segment, or a part of it between slashes, is one of dots.
pub(crate) fn has_dots(segment: &[u8]) -> bool {
    let mut parts = segment.split(|byte| matches!(byte, b'/' | b'\\'));
    parts.any(|part| {
        let head = part.split(|byte| *byte == b';').next().unwrap_or(part);
        matches!(head, b"." | b"..")
    })
}

/// Whether a part of a segment is one of dots but for blanks behind them.
pub(crate) fn has_blank_dots(segment: &[u8]) -> bool {
    let mut parts = segment.split(|byte| matches!(byte, b'/' | b'\\' | b'?' | b'#'));
    parts.any(|part| {
        let dots = without_blanks(part);
        dots.len() < part.len() && matches!(dots, b"." | b"..")
    })
}

/// Without the blanks at its end.
pub(crate) fn without_blanks(mut part: &[u8]) -> &[u8] {
    while let [head @ .., b' '] = part {
        part = head;
    }
    part
}
