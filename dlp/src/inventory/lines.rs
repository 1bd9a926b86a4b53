//! Lines of settings: comments, sections in brackets, keys and values.

/// One setting of a text.
pub(super) struct LineSetting<'a> {
    /// The section before it, without brackets; empty above the first.
    pub(super) section: &'a str,
    /// Its key, trimmed.
    pub(super) key: &'a str,
    /// Its value, trimmed and without quotation marks around it.
    pub(super) value: &'a str,
}

/// Every setting of a text, `key = value` or `key: value` where a separator is
/// one of `separators`. Other lines are left out.
pub(super) fn settings<'a>(
    text: &'a str,
    separators: &'a [char],
) -> impl Iterator<Item = LineSetting<'a>> {
    let mut section = "";
    text.lines().filter_map(move |line| {
        let line = line.trim();
        if line.starts_with(['#', ';']) {
            return None;
        }
        if let Some(inner) = line
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'))
        {
            section = inner.trim();
            return None;
        }
        let (key, value) = line.split_once(separators)?;
        Some(LineSetting {
            section,
            key: key.trim(),
            value: unquoted(value.trim()),
        })
    })
}

/// A value without the quotation marks around it.
pub(super) fn unquoted(value: &str) -> &str {
    for mark in ['"', '\''] {
        if let Some(inner) = value.strip_prefix(mark) {
            return inner.split(mark).next().unwrap_or(inner);
        }
    }
    value
}
