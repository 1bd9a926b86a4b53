//! How the values of JSON stand in each other (RFC 8259 2): what a byte outside of strings,
//! numbers and words is, and what may come behind it. The one grammar for whoever follows
//! JSON as its bytes come. What is in strings, which numbers and words are some, whether
//! values may follow each other, and what a fault means, its users say: one tells where a
//! finding stands and leaves what it cannot follow, the other denies it.

/// What other values stand in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JsonContainer {
    /// Members, each with a name.
    Object,
    /// Elements.
    Array,
}

/// What a byte outside of strings, numbers and words is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JsonPart {
    /// An object or an array begins.
    Opens(JsonContainer),
    /// The innermost ends.
    Closes,
    /// The quote before the name of a member.
    Name,
    /// The quote before a string that is a value.
    Text,
    /// The first byte of what can only be a number or a word.
    Bare,
    /// Stands between a name and its value.
    Colon,
    /// Stands between two values.
    Comma,
}

/// Follows the structure of one value after the other, no deeper than so many levels.
#[derive(Debug, Default)]
pub struct JsonGrammar<const DEPTH_MAX: usize> {
    /// What is open, outermost first.
    open: Vec<JsonContainer>,
    expects: JsonExpects,
}

/// What may come next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum JsonExpects {
    #[default]
    Value,
    ValueOrEnd,
    Name,
    NameOrEnd,
    Colon,
    CommaOrEnd,
}

impl<const DEPTH_MAX: usize> JsonGrammar<DEPTH_MAX> {
    /// Whether the next value stands in no other.
    pub fn is_outermost(&self) -> bool {
        self.open.is_empty()
    }

    /// Begins again.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// Takes a byte that is no blank and stands in no string, number or word; `None` where
    /// it may not stand.
    pub fn take(&mut self, byte: u8) -> Option<JsonPart> {
        let is_value = matches!(self.expects, JsonExpects::Value | JsonExpects::ValueOrEnd);
        match byte {
            b'{' if is_value => self.opens(JsonContainer::Object, JsonExpects::NameOrEnd),
            b'[' if is_value => self.opens(JsonContainer::Array, JsonExpects::ValueOrEnd),
            b'}' => self.closes(JsonContainer::Object, JsonExpects::NameOrEnd),
            b']' => self.closes(JsonContainer::Array, JsonExpects::ValueOrEnd),
            b'"' if is_value => {
                self.value();
                Some(JsonPart::Text)
            }
            b'"' if matches!(self.expects, JsonExpects::Name | JsonExpects::NameOrEnd) => {
                self.expects = JsonExpects::Colon;
                Some(JsonPart::Name)
            }
            b':' if self.expects == JsonExpects::Colon => {
                self.expects = JsonExpects::Value;
                Some(JsonPart::Colon)
            }
            b',' if self.expects == JsonExpects::CommaOrEnd => {
                self.expects = match self.open.last() {
                    Some(JsonContainer::Object) => JsonExpects::Name,
                    Some(JsonContainer::Array) | None => JsonExpects::Value,
                };
                Some(JsonPart::Comma)
            }
            b',' | b':' => None,
            _ if is_value => {
                self.value();
                Some(JsonPart::Bare)
            }
            _ => None,
        }
    }

    fn opens(&mut self, what: JsonContainer, expects: JsonExpects) -> Option<JsonPart> {
        if self.open.len() >= DEPTH_MAX {
            return None;
        }
        self.open.push(what);
        self.expects = expects;
        Some(JsonPart::Opens(what))
    }

    fn closes(&mut self, what: JsonContainer, empty: JsonExpects) -> Option<JsonPart> {
        let ends = self.expects == empty || self.expects == JsonExpects::CommaOrEnd;
        if !ends || self.open.pop() != Some(what) {
            return None;
        }
        self.value();
        Some(JsonPart::Closes)
    }

    /// A value is there: what comes behind it may come next.
    fn value(&mut self) {
        self.expects = if self.open.is_empty() {
            JsonExpects::Value
        } else {
            JsonExpects::CommaOrEnd
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a text of structure alone may stand so; `0` is a number.
    fn stands(text: &str) -> bool {
        let mut grammar = JsonGrammar::<3>::default();
        let mut bytes = text.bytes();
        bytes.all(|byte| grammar.take(byte).is_some())
    }

    #[test]
    fn values_stand_in_each_other_as_json_has_it() {
        for text in ["", "0", "[]", "{}", "[0,[{}]]", "[[[", "[]{}", "[0,0]"] {
            assert!(stands(text), "{text}");
        }
        for text in [
            "]", "}", "[}", "{]", "[,", "[0 0", ",", ":", "[0,]", "{0", "{,", "{:", "[0:", "[[[[",
            "[]]", "{}}", "[[0]]]",
        ] {
            assert!(!stands(&text.replace(' ', "")), "{text}");
        }
    }

    #[test]
    fn a_name_is_told_from_a_text() {
        let mut grammar = JsonGrammar::<8>::default();
        let parts: Vec<_> = "{\":\",\":[\""
            .bytes()
            .map(|byte| grammar.take(byte))
            .collect();
        let expected = [
            JsonPart::Opens(JsonContainer::Object),
            JsonPart::Name,
            JsonPart::Colon,
            JsonPart::Text,
            JsonPart::Comma,
            JsonPart::Name,
            JsonPart::Colon,
            JsonPart::Opens(JsonContainer::Array),
            JsonPart::Text,
        ];
        assert_eq!(parts, expected.map(Some));
        assert!(!grammar.is_outermost());
        grammar.clear();
        assert!(grammar.is_outermost());
        assert_eq!(grammar.take(b'"'), Some(JsonPart::Text));
        assert_eq!(
            grammar.take(b','),
            None,
            "no comma stands between outermost values"
        );
    }
}
