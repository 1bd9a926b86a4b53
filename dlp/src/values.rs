//! The values of a document as it passes: texts of JSON without their names, and
//! without their escapes, so that a credential which was cut into several is read
//! in one. Of a long value only its ends count, since a piece lies at one of them.
//! Follows the text as it comes; a document that is none gives odd values, and
//! never a fault.

/// Bytes of either end of a long value.
const END_BYTES: usize = 128;
/// Length from which the middle of a value is forgotten, in bytes.
const VALUE_BYTES_MAX: usize = 1024;
/// Between the ends of a long value: in no credential.
const GAP: u8 = 1;

/// Follows one document.
#[derive(Default)]
pub struct Values {
    state: ValueState,
    value: Vec<u8>,
    /// Digits of an escape, as far as they came.
    code: u32,
}

impl std::fmt::Debug for Values {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // What it holds may be a credential.
        formatter.debug_struct("Values").finish_non_exhaustive()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum ValueState {
    #[default]
    Between,
    Within,
    Escape,
    /// So many digits of an escape are missing.
    Digits(u8),
    /// A text is over; a colon makes it a name.
    Over,
}

impl Values {
    /// Takes the next bytes and adds the values that ended in them.
    pub fn push(&mut self, bytes: &[u8], values: &mut Vec<Vec<u8>>) {
        for byte in bytes {
            self.state = match self.state {
                ValueState::Between => between(*byte),
                ValueState::Over if byte.is_ascii_whitespace() => ValueState::Over,
                ValueState::Over => {
                    let value = std::mem::take(&mut self.value);
                    if *byte != b':' && !value.is_empty() {
                        values.push(ends(value));
                    }
                    between(*byte)
                }
                ValueState::Within => match byte {
                    b'"' => ValueState::Over,
                    b'\\' => ValueState::Escape,
                    _ => self.add(*byte),
                },
                ValueState::Escape => match byte {
                    b'u' => {
                        self.code = 0;
                        ValueState::Digits(4)
                    }
                    b'n' => self.add(b'\n'),
                    b'r' => self.add(b'\r'),
                    b't' => self.add(b'\t'),
                    b'b' | b'f' => self.add(b' '),
                    _ => self.add(*byte),
                },
                ValueState::Digits(missing) => self.digit(*byte, missing),
            };
        }
    }

    /// The document is over: a value at its very end counts too.
    pub fn finish(&mut self, values: &mut Vec<Vec<u8>>) {
        let value = std::mem::take(&mut self.value);
        if self.state == ValueState::Over && !value.is_empty() {
            values.push(ends(value));
        }
        self.state = ValueState::Between;
    }

    fn digit(&mut self, byte: u8, missing: u8) -> ValueState {
        let Some(digit) = char::from(byte).to_digit(16) else {
            return self.add(byte);
        };
        self.code = self.code << 4 | digit;
        match missing.saturating_sub(1) {
            // What is not ASCII is in no credential.
            0 => self.add(
                u8::try_from(self.code)
                    .ok()
                    .filter(u8::is_ascii)
                    .unwrap_or(GAP),
            ),
            missing => ValueState::Digits(missing),
        }
    }

    fn add(&mut self, byte: u8) -> ValueState {
        self.value.push(byte);
        if self.value.len() >= VALUE_BYTES_MAX {
            // Long enough afterwards that it still counts as long.
            self.value.drain(END_BYTES..VALUE_BYTES_MAX / 2);
        }
        ValueState::Within
    }
}

fn between(byte: u8) -> ValueState {
    if byte == b'"' {
        ValueState::Within
    } else {
        ValueState::Between
    }
}

/// A value, or of a long one its ends.
fn ends(value: Vec<u8>) -> Vec<u8> {
    let length = value.len();
    if length <= 2 * END_BYTES {
        return value;
    }
    let (first, _) = value.split_at(END_BYTES);
    let (_, last) = value.split_at(length.saturating_sub(END_BYTES));
    [first, &[GAP], last].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(pieces: &[&str]) -> Vec<String> {
        let (mut document, mut values) = (Values::default(), Vec::new());
        for piece in pieces {
            document.push(piece.as_bytes(), &mut values);
        }
        document.finish(&mut values);
        let text = |value: Vec<u8>| String::from_utf8_lossy(&value).into_owned();
        values.into_iter().map(text).collect()
    }

    #[test]
    fn values_come_without_names_and_escapes() {
        for (document, expected) in [
            (r#"{"a":"one","b" : "two"}"#, &["one", "two"][..]),
            (r#"["one", "two",["three"]]"#, &["one", "two", "three"]),
            (r#"{"a\"b":"x\u0041\/y\\z"}"#, &["xA/y\\z"]),
            (r#""alone""#, &["alone"]),
            (r#"{"a":1,"b":true,"c":""}"#, &[]),
            (r#"{"a":{"b":"in"},"c":"out"}"#, &["in", "out"]),
        ] {
            assert_eq!(values(&[document]), expected, "{document}");
            let bytes: Vec<&str> = document.split_inclusive(|_: char| true).collect();
            assert_eq!(values(&bytes), expected, "{document} byte by byte");
        }
    }

    #[test]
    fn of_a_long_value_the_ends_are_kept() {
        let long = format!("first{}last", "x".repeat(100_000));
        let found = values(&[&format!("[\"{long}\"]")]);
        assert_eq!(found.len(), 1);
        assert!(found[0].starts_with("first") && found[0].ends_with("last"));
        assert_eq!(found[0].len(), 2 * END_BYTES + 1);
    }
}
