//! The syntax of git's configuration files (git-config(1), "Syntax"): a text to
//! its entries, and entries to a text that git reads alike. Pure; opens nothing
//! and knows no key.

use crate::git::limits::{ENTRIES_MAX, VALUE_BYTES_MAX};

/// One setting, as git reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ConfigEntry {
    /// The section's name, in small letters: `http`. Empty before the first header, where
    /// git reads keys that mean nothing.
    pub(crate) section: String,
    /// The subsection, as it is written: `https://example.org/`.
    pub(crate) subsection: Option<String>,
    /// The key, in small letters: `extraheader`.
    pub(crate) key: String,
    /// The value, without quotes and escapes; `None` for a key alone, which is true.
    pub(crate) value: Option<String>,
}

impl ConfigEntry {
    /// Section and key, without the subsection: `http.extraheader`.
    pub(crate) fn name(&self) -> String {
        format!("{}.{}", self.section, self.key)
    }
}

/// The text is none of git's, or has more than is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct UnreadableConfig;

/// Reads a file's entries, in order.
///
/// # Errors
/// [`UnreadableConfig`] where git would refuse the text as well, or it is over a limit.
pub(crate) fn parse(text: &str) -> Result<Vec<ConfigEntry>, UnreadableConfig> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    // git takes a line's end of DOS for one of its own.
    let text = text.replace("\r\n", "\n");
    let mut rest = ConfigCursor { text: &text };
    let mut entries = Vec::new();
    let mut header: Header = (String::new(), None);
    loop {
        rest.skip(|letter| letter.is_ascii_whitespace());
        match rest.peek() {
            None => return Ok(entries),
            Some('#' | ';') => rest.skip(|letter| letter != '\n'),
            Some('[') => header = rest.header()?,
            Some(letter) if letter.is_ascii_alphabetic() => {
                let (section, subsection) = header.clone();
                let key = rest.take(|letter| letter.is_ascii_alphanumeric() || letter == '-');
                let value = rest.value()?;
                if entries.len() == ENTRIES_MAX {
                    return Err(UnreadableConfig);
                }
                entries.push(ConfigEntry {
                    section,
                    subsection,
                    key: key.to_ascii_lowercase(),
                    value,
                });
            }
            Some(_) => return Err(UnreadableConfig),
        }
    }
}

/// Section and subsection.
type Header = (String, Option<String>);

/// What has not been read yet.
struct ConfigCursor<'t> {
    text: &'t str,
}

impl<'t> ConfigCursor<'t> {
    fn peek(&self) -> Option<char> {
        self.text.chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let mut letters = self.text.chars();
        let letter = letters.next();
        self.text = letters.as_str();
        letter
    }

    fn take(&mut self, belongs: impl Fn(char) -> bool) -> &'t str {
        let end = self.text.find(|letter| !belongs(letter));
        let (taken, rest) = self.text.split_at(end.unwrap_or(self.text.len()));
        self.text = rest;
        taken
    }

    fn skip(&mut self, belongs: impl Fn(char) -> bool) {
        self.take(belongs);
    }

    /// `[section]`, `[section "subsection"]`, or `[section.subsection]`.
    fn header(&mut self) -> Result<Header, UnreadableConfig> {
        self.next();
        let name = self.take(|letter| letter.is_ascii_alphanumeric() || "-.".contains(letter));
        let name = name.to_ascii_lowercase();
        // git reads keys of a section without a name, and nobody asks for them.
        if name.is_empty() {
            return Err(UnreadableConfig);
        }
        match self.next() {
            Some(']') => Ok(match name.split_once('.') {
                // The old form, in which the subsection has small letters, too.
                Some((section, subsection)) => (section.to_owned(), Some(subsection.to_owned())),
                None => (name, None),
            }),
            Some(' ' | '\t') => {
                self.skip(|letter| letter == ' ' || letter == '\t');
                let subsection = self.quoted()?;
                match self.next() {
                    Some(']') => Ok((name, Some(subsection))),
                    _ => Err(UnreadableConfig),
                }
            }
            _ => Err(UnreadableConfig),
        }
    }

    /// A subsection in quotes: a backslash makes any letter itself.
    fn quoted(&mut self) -> Result<String, UnreadableConfig> {
        let mut out = String::new();
        if self.next() != Some('"') {
            return Err(UnreadableConfig);
        }
        loop {
            match self.next().ok_or(UnreadableConfig)? {
                '"' => return Ok(out),
                '\n' | '\0' => return Err(UnreadableConfig),
                '\\' => match self.next() {
                    None | Some('\n' | '\0') => return Err(UnreadableConfig),
                    Some(letter) => out.push(letter),
                },
                letter => out.push(letter),
            }
            if out.len() > VALUE_BYTES_MAX {
                return Err(UnreadableConfig);
            }
        }
    }

    /// What stands behind a key: nothing, or `=` and a value up to the end of the line.
    fn value(&mut self) -> Result<Option<String>, UnreadableConfig> {
        self.skip(|letter| letter == ' ' || letter == '\t');
        match self.peek() {
            None | Some('\n') => return Ok(None),
            Some('=') => self.next(),
            Some(_) => return Err(UnreadableConfig),
        };
        let mut out = String::new();
        // Blanks at the end count only where something follows them.
        let mut kept = 0;
        let mut is_quoted = false;
        while let Some(letter) = self.next() {
            match letter {
                '\n' if is_quoted => return Err(UnreadableConfig),
                '\n' => break,
                '\0' => return Err(UnreadableConfig),
                '"' => {
                    is_quoted = !is_quoted;
                    kept = out.len();
                    continue;
                }
                '#' | ';' if !is_quoted => {
                    self.skip(|letter| letter != '\n');
                    continue;
                }
                '\\' => match self.next() {
                    // The value goes on in the next line, if there is one; blanks before
                    // stay.
                    Some('\n') | None => {
                        kept = out.len();
                        continue;
                    }
                    Some('t') => out.push('\t'),
                    Some('n') => out.push('\n'),
                    Some('b') => out.push('\u{8}'),
                    Some(letter @ ('\\' | '"')) => out.push(letter),
                    _ => return Err(UnreadableConfig),
                },
                blank if blank.is_ascii_whitespace() && !is_quoted => {
                    if !out.is_empty() {
                        out.push(blank);
                    }
                    continue;
                }
                letter => out.push(letter),
            }
            kept = out.len();
            if kept > VALUE_BYTES_MAX {
                return Err(UnreadableConfig);
            }
        }
        if is_quoted {
            return Err(UnreadableConfig);
        }
        out.truncate(kept);
        Ok(Some(out))
    }
}

/// Writes entries as a file that git reads as them.
pub(crate) fn write(entries: &[ConfigEntry]) -> String {
    let mut out = String::new();
    let mut last: (&str, Option<&str>) = ("", None);
    for entry in entries {
        let here = (entry.section.as_str(), entry.subsection.as_deref());
        if last != here {
            out.push('[');
            out.push_str(&entry.section);
            if let Some(subsection) = &entry.subsection {
                out.push_str(" \"");
                out.push_str(&subsection.replace('\\', "\\\\").replace('"', "\\\""));
                out.push('"');
            }
            out.push_str("]\n");
            last = here;
        }
        out.push('\t');
        out.push_str(&entry.key);
        if let Some(value) = &entry.value {
            out.push_str(" = \"");
            for letter in value.chars() {
                match letter {
                    '\\' => out.push_str("\\\\"),
                    '"' => out.push_str("\\\""),
                    '\n' => out.push_str("\\n"),
                    '\t' => out.push_str("\\t"),
                    '\u{8}' => out.push_str("\\b"),
                    letter => out.push(letter),
                }
            }
            out.push('"');
        }
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::process::{Command, Stdio};

    use proptest::prelude::*;

    use super::*;

    /// What git itself reads: `name NEWLINE value NUL`, or `name NUL`.
    fn git(text: &str) -> Option<String> {
        let mut git = Command::new("git")
            .args(["config", "--list", "-z", "--file", "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("git is needed");
        let mut input = git.stdin.take().expect("a pipe");
        // git may have read enough before.
        input.write_all(text.as_bytes()).ok();
        drop(input);
        let output = git.wait_with_output().expect("git ends");
        output
            .status
            .success()
            .then(|| String::from_utf8(output.stdout).expect("text"))
    }

    fn as_git_shows(entries: &[ConfigEntry]) -> String {
        let one = |entry: &ConfigEntry| {
            let between = match &entry.subsection {
                Some(subsection) => format!(".{subsection}"),
                None => String::new(),
            };
            let value = match &entry.value {
                Some(value) => format!("\n{value}"),
                None => String::new(),
            };
            let section = &entry.section;
            let dot = if section.is_empty() { "" } else { "." };
            format!("{section}{between}{dot}{}{value}\0", entry.key)
        };
        entries.iter().map(one).collect()
    }

    #[track_caller]
    fn agrees(text: &str) {
        match (git(text), parse(text)) {
            (Some(shown), Ok(entries)) => {
                assert_eq!(as_git_shows(&entries), shown, "{text:?}");
                let again = write(&entries);
                assert_eq!(git(&again), Some(shown), "{text:?} -> {again:?}");
                assert_eq!(parse(&again), Ok(entries), "{text:?} -> {again:?}");
            }
            // With what git refuses it does not work outside either.
            (None, _) => {}
            (Some(_), Err(UnreadableConfig)) if text.contains("[]") || text.contains("[ ") => {}
            (shown, read) => panic!("{text:?}: git {shown:?}, here {read:?}"),
        }
    }

    #[test]
    fn every_form_is_read_as_git_reads_it() {
        for text in [
            "",
            "[user]\n\tname = A B\n\temail = a@b.test # mine\n",
            "[user] name = x\n[core]\nbare\n",
            "[http \"https://a.test/\"]\nextraHeader = \"Authorization: Basic x\"\n",
            "[url \"https://u:p@h.test/\"]\n\tinsteadOf = git@h.test:\n",
            "[alias]\n  co = \"!f() { echo \\\"$1\\\"; }; f\"\n",
            "[a]\nb = one \\\n  two\n",
            "[a]\nb = one \\\n",
            "[a]\nb = \"x ; y\" ; z\n",
            "[a]\nb = x   \"  y\"  \n",
            "[a \"q\\\"\\\\r\"]\nb=1\n",
            "[A.Sub]\nKey=V\n",
            "\u{feff}[a]\r\nb = 1\r\n",
            "[a]\nb = \\n\\t\\\\\\\"\n",
            "[a]\nb =\n[a]\nb = \"\"\n",
            "[a]\nb = 1\\q\n",
            "[a]\nb = \"x\n",
            "b = 1\n",
            "[a\nb = 1\n",
            "[a]\n= 1\n",
            "[a]\nb c\n",
            "; only\n# comments",
        ] {
            agrees(text);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        #[test]
        fn what_git_reads_is_what_is_read(
            parts in prop::collection::vec(
                prop::sample::select(vec![
                    "[", "]", "a", "B", "-", ".", " ", "\t", "\n", "=", "\"", "\\", "#", ";",
                    "[s]\n", "[s \"t\"]\n", "k = ", "k", "\\\n", "\\n", "x y", "é", "\r\n",
                ]),
                0..24,
            ),
        ) {
            agrees(&parts.concat());
        }

        #[test]
        fn what_is_written_is_read_again(
            values in prop::collection::vec((".{0,12}", "[ -~]{0,12}"), 1..5),
        ) {
            let entries: Vec<ConfigEntry> = values
                .into_iter()
                .filter(|(value, subsection)| !(value.clone() + subsection).contains(['\0', '\r', '\n']))
                .map(|(value, subsection)| ConfigEntry {
                    section: "s".to_owned(),
                    subsection: Some(subsection),
                    key: "k".to_owned(),
                    value: Some(value),
                })
                .collect();
            let text = write(&entries);
            prop_assert_eq!(parse(&text), Ok(entries.clone()));
            prop_assert_eq!(git(&text), Some(as_git_shows(&entries)));
        }
    }
}
