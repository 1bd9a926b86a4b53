//! The front matter of a Markdown file (YAML between two lines of `---`), as far as it says
//! what an agent may do. Whoever reads it has a YAML parser and this has none: what is not one
//! of a few plain forms is taken to say everything. Pure.

/// Whether all of the front matter is of these keys.
pub(super) fn is_harmless(text: &str, harmless: &[&str]) -> bool {
    let text = text.trim_start_matches(|sign: char| sign == '\u{feff}' || sign.is_whitespace());
    let mut lines = text.lines();
    match lines.next().map(str::trim_end) {
        Some("---") => {}
        Some(first) if first.starts_with("---") => return false,
        Some(_) | None => return true,
    }
    // Whether indented lines are text of the key before.
    let mut in_block = false;
    for line in lines {
        // Ends of lines to readers of YAML, and not here.
        if line.contains(['\r', '\u{85}', '\u{2028}', '\u{2029}']) {
            return false;
        }
        if line.trim_end() == "---" {
            return true;
        }
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        if line.starts_with([' ', '\t']) {
            if in_block || is_words(line) {
                continue;
            }
            return false;
        }
        let Some((key, value)) = line.split_once(':') else {
            return false;
        };
        let value = value.trim();
        in_block = value.starts_with(['|', '>']);
        // Tags, anchors, and what closes and goes on are beyond a look.
        let is_odd = value.starts_with(['!', '&', '*', '{', '%', '@', '`', '?']);
        if !harmless.contains(&key) || is_odd {
            return false;
        }
    }
    // Nobody closed it: some readers take all of it.
    false
}

/// Whether an indented line is an item of a list, or goes on with a text.
fn is_words(line: &str) -> bool {
    !line.contains(':') && !line.contains(['{', '}', '&', '*', '!', '?'])
}
