//! Text of others, for terminals.

/// Text of others as ASCII without controls, so that it may reach a terminal.
pub fn printable(text: &str) -> String {
    text.chars()
        .flat_map(|c| {
            let plain = c.is_ascii_graphic() || c == ' ';
            let escape = (!plain).then(|| c.escape_default());
            plain
                .then_some(c)
                .into_iter()
                .chain(escape.into_iter().flatten())
        })
        .collect()
}
