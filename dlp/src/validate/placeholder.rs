//! Values that stand for a value: words of documentation, names of variables,
//! one character over and over.

/// Words that make a value one of documentation wherever they stand in it.
const WITHIN: [&str; 13] = [
    "example",
    "changeme",
    "change-me",
    "change_me",
    "placeholder",
    "redacted",
    "dummy",
    "your_",
    "your-",
    "yourpass",
    "insert",
    "xxxx",
    "****",
];

/// Values that are themselves such words.
const WHOLE: [&str; 32] = [
    "password",
    "passwd",
    "passw0rd",
    "pass",
    "pw",
    "pwd",
    "secret",
    "token",
    "user",
    "username",
    "admin",
    "root",
    "guest",
    "test",
    "tests",
    "testing",
    "demo",
    "default",
    "none",
    "null",
    "true",
    "false",
    "undefined",
    "postgres",
    "mysql",
    "mongodb",
    "redis",
    "rabbitmq",
    "letmein",
    "hunter2",
    "correcthorsebatterystaple",
    "string",
];

/// Credentials that standards print as examples.
const PUBLISHED: [&str; 9] = [
    "opensesame",
    "open sesame",
    "2yotnfzfejr1zcsicmwpaa",
    "tgzv3jokf0xg5qx2tlkwia",
    "gx1fbat3bv",
    "splxlobezqqybys6wxsbia",
    "mf_9.b5f-4.1jqm",
    "v3ry_s3nsit1ve",
    "s3nsit1ve",
];

/// Longest value that can be a placeholder, in bytes.
const BYTES_MAX: usize = 128;

/// Letters and digits of a text that are of no word, so many that the text is none of words.
const WILD_BYTES_MIN: usize = 8;
/// Most digits behind a word that belong to it.
const NUMBER_BYTES_MAX: usize = 4;

/// Whether a value stands for another.
pub(crate) fn is(value: &[u8]) -> bool {
    is_reference_of(value, |_| true) || is_sample(value)
}

/// Whether a value that was read where values stand is none: what has the signs of a
/// reference is one when it consists of words, too.
pub(crate) fn is_no_value(value: &[u8]) -> bool {
    is_reference_of(value, is_of_words) || is_sample(value)
}

fn is_reference_of(value: &[u8], also: fn(&[u8]) -> bool) -> bool {
    let text = value.to_ascii_lowercase();
    value.len() <= BYTES_MAX && is_reference(&String::from_utf8_lossy(&text)) && also(value)
}

fn is_sample(value: &[u8]) -> bool {
    if value.is_empty() {
        return true;
    }
    if value.len() > BYTES_MAX {
        return false;
    }
    let value = value.to_ascii_lowercase();
    let text = String::from_utf8_lossy(&value);
    let bare = text.trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == '!');
    PUBLISHED.contains(&text.as_ref())
        || WHOLE.contains(&bare)
        || WITHIN.iter().any(|word| text.contains(word))
        || is_monotone(&value)
}

/// Variables of shells and templates, and what stands in brackets.
fn is_reference(text: &str) -> bool {
    let wrapped = |open: &str, close: &str| text.starts_with(open) && text.ends_with(close);
    text.starts_with('$')
        || text.starts_with("%s")
        || text.starts_with("%(")
        || text.contains("${")
        || text.contains("{{")
        || text.contains("#{")
        || wrapped("<", ">")
        || (text.contains('{') && text.contains('}'))
        || wrapped("[", "]")
        || wrapped("%", "%")
        || text.contains("...")
}

/// Words of a language or of a program: letters and what joins words, few of
/// them capitals. What is made by chance has digits or many capitals.
pub(crate) fn is_words(value: &[u8]) -> bool {
    let joins = |byte: &u8| matches!(byte, b'-' | b'_' | b'.');
    let capitals = value
        .iter()
        .filter(|byte| byte.is_ascii_uppercase())
        .count();
    let letters = value
        .iter()
        .filter(|byte| byte.is_ascii_alphabetic())
        .count();
    let plain = value
        .iter()
        .all(|byte| byte.is_ascii_alphabetic() || joins(byte));
    plain && (capitals.saturating_mul(4) <= letters || capitals == letters) || is_identifier(value)
}

/// Whether what stands between the signs of a text are words, perhaps with numbers, but for
/// a few letters.
pub(crate) fn is_of_words(text: &[u8]) -> bool {
    let segments = text.split(|byte| !byte.is_ascii_alphanumeric());
    let wild = segments.filter(|segment| {
        let digits = segment
            .iter()
            .rev()
            .take_while(|byte| byte.is_ascii_digit());
        let number = digits.count();
        let word = segment.len().saturating_sub(number);
        let is_number = word == 0 || number <= NUMBER_BYTES_MAX;
        !is_number || !is_words(segment.get(..word).unwrap_or_default())
    });
    wild.map(<[u8]>::len).sum::<usize>() < WILD_BYTES_MIN
}

/// Three capitalised words or more, run together, and next to nothing else.
fn is_identifier(value: &[u8]) -> bool {
    let mut words: usize = 0;
    let mut covered: usize = 0;
    let mut run: usize = 0;
    for byte in value.iter().chain(b"A") {
        if byte.is_ascii_lowercase() && run > 0 {
            run = run.saturating_add(1);
            continue;
        }
        if run >= 4 {
            words = words.saturating_add(1);
            covered = covered.saturating_add(run);
        }
        run = usize::from(byte.is_ascii_uppercase());
    }
    words >= 3 && covered.saturating_mul(4) >= value.len().saturating_mul(3)
}

/// At most two different characters, or an alphabet in its order.
fn is_monotone(value: &[u8]) -> bool {
    let mut seen = value.to_vec();
    seen.sort_unstable();
    seen.dedup();
    let pairs = value.iter().zip(value.iter().skip(1));
    let steps = pairs
        .filter(|(left, right)| left.wrapping_add(1) == **right)
        .count();
    seen.len() <= 2 || steps.saturating_mul(4) >= value.len().saturating_mul(3)
}

#[cfg(test)]
mod tests {
    use super::{is, is_no_value, is_of_words, is_words};

    #[test]
    fn texts_of_words_are_told_from_values_with_signs() {
        for text in [
            "/etc/keys/service-account-7.json",
            "correct horse battery staple",
            "$DB_PASSWORD2",
            "{self.password}",
            "../lib64/x86_64-linux-gnu",
            "2026-01-01 12:00:00",
            "Arch Linux 6.12",
        ] {
            assert!(is_of_words(text.as_bytes()), "{text}");
        }
        for text in [
            "/kVpq2LmzR41xQw7Tz9uYb3/nB5tW9rLx2Kd7QvZ",
            "$k7Pq8Zw9xTv2mLr4eNb6",
            "k7Pq8Zw{9xTv2mLr4}eNb6",
            "k7Pq8Zw...9xTv2mLr4eNb6",
        ] {
            assert!(!is_of_words(text.as_bytes()), "{text}");
            assert!(!is_no_value(text.as_bytes()), "{text}");
        }
        for text in ["${DB_PASSWORD}", "<password>", "changeme!", "pass...word"] {
            assert!(is_no_value(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn what_documentation_writes_is_no_password() {
        for word in [
            "",
            "password",
            "Password123",
            "changeme!",
            "${DB_PASSWORD}",
            "$PASS",
            "<password>",
            "{password}",
            "xxxxxxxx",
            "********",
            "my-example-key",
            "your_password",
            "aaaaaaa",
            "abababab",
            "abcdefghijkl",
            "123456789",
            "secret",
            "%s",
            "%(password)s",
            "pass...word",
            "{{ password }}",
            "REDACTED",
            "{self.password}'",
            "2YotnFZFEjr1zCsicMWpAA",
        ] {
            assert!(is(word.as_bytes()), "{word}");
        }
    }

    #[test]
    fn words_are_told_from_chance() {
        for word in [
            "bare-quoted-string",
            "challengePassword",
            "DB_PASSWORD",
            "access.token",
            "V1LocalObjectReference",
        ] {
            assert!(is_words(word.as_bytes()), "{word}");
        }
        for word in ["kVpqLmzRxQwTzBn", "bare-quoted-string7", "kV8pq2Lm"] {
            assert!(!is_words(word.as_bytes()), "{word}");
        }
    }

    #[test]
    fn what_people_choose_is_one() {
        for word in [
            "kV8#pq2Lm",
            "Tr0ub4dor&3",
            "passwort-Zug-7",
            "s3cr3tKey9",
            "qwerty-Uiop-42",
            "a$b7Kq!x",
        ] {
            assert!(!is(word.as_bytes()), "{word}");
        }
    }
}
