//! JSON as people's settings have it, with comments and commas at the end (JSONC), to a flat
//! list of members. Pure, bounded in depth; what is no such document is none.

use crate::leftovers::limits::JSON_DEPTH_MAX;

/// One value and the names that lead to it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Member {
    /// Names of objects' members and numbers in arrays.
    pub(super) path: Vec<String>,
    /// A string without its quotes and escapes, or another value as it is written.
    pub(super) value: String,
}

impl Member {
    pub(super) fn text(&self) -> String {
        format!("{} = {}", self.path.join("."), self.value)
    }
}

/// The members of a document; nothing where it is none.
pub(super) fn members(text: &str) -> Option<Vec<Member>> {
    let mut reader = JsonReader {
        text: text.strip_prefix('\u{feff}').unwrap_or(text),
        path: Vec::new(),
        members: Vec::new(),
    };
    reader.value()?;
    reader.blank()?;
    reader.text.is_empty().then_some(reader.members)
}

struct JsonReader<'t> {
    text: &'t str,
    path: Vec<String>,
    members: Vec<Member>,
}

impl JsonReader<'_> {
    /// Skips blanks and comments.
    fn blank(&mut self) -> Option<()> {
        loop {
            self.text = self.text.trim_start();
            if let Some(rest) = self.text.strip_prefix("//") {
                let end = rest.find('\n').unwrap_or(rest.len());
                self.text = rest.get(end..)?;
            } else if let Some(rest) = self.text.strip_prefix("/*") {
                self.text = rest.split_once("*/")?.1;
            } else {
                return Some(());
            }
        }
    }

    fn take(&mut self, wanted: char) -> Option<()> {
        self.text = self.text.strip_prefix(wanted)?;
        Some(())
    }

    fn value(&mut self) -> Option<()> {
        if self.path.len() > JSON_DEPTH_MAX {
            return None;
        }
        self.blank()?;
        match self.text.chars().next()? {
            '{' => self.list('{', '}'),
            '[' => self.list('[', ']'),
            '"' => {
                let value = self.string()?;
                self.member(value);
                Some(())
            }
            _ => {
                let is_plain = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
                let end = self.text.find(|c| !is_plain(c)).unwrap_or(self.text.len());
                let (value, rest) = self.text.split_at_checked(end.max(1))?;
                let value = value.to_owned();
                self.text = rest;
                let is_value = value.chars().all(is_plain);
                self.member(value);
                is_value.then_some(())
            }
        }
    }

    fn member(&mut self, value: String) {
        let path = self.path.clone();
        self.members.push(Member { path, value });
    }

    fn list(&mut self, begin: char, end: char) -> Option<()> {
        self.take(begin)?;
        let mut number: u64 = 0;
        loop {
            self.blank()?;
            if self.take(end).is_some() {
                return Some(());
            }
            let name = if begin == '{' {
                let name = self.string()?;
                self.blank()?;
                self.take(':')?;
                name
            } else {
                number.to_string()
            };
            number = number.saturating_add(1);
            self.path.push(name);
            self.value()?;
            self.path.pop();
            self.blank()?;
            if self.take(',').is_none() {
                self.take(end)?;
                return Some(());
            }
        }
    }

    fn string(&mut self) -> Option<String> {
        self.take('"')?;
        let mut out = String::new();
        loop {
            let mut rest = self.text.chars();
            let letter = rest.next()?;
            self.text = rest.as_str();
            match letter {
                '"' => return Some(out),
                '\\' => out.push(self.escape()?),
                letter => out.push(letter),
            }
        }
    }

    fn escape(&mut self) -> Option<char> {
        let mut rest = self.text.chars();
        let letter = rest.next()?;
        self.text = rest.as_str();
        Some(match letter {
            'n' => '\n',
            't' => '\t',
            'r' => '\r',
            'b' => '\u{8}',
            'f' => '\u{c}',
            'u' => {
                let (digits, rest) = self.text.split_at_checked(4)?;
                let number = u32::from_str_radix(digits, 16).ok()?;
                self.text = rest;
                // Halves of pairs stand for letters that no name here has.
                char::from_u32(number).unwrap_or('\u{fffd}')
            }
            other => other,
        })
    }
}
