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

/// Longest value that can be a placeholder, in bytes.
const BYTES_MAX: usize = 128;

/// Whether a value stands for another.
pub(crate) fn is(value: &[u8]) -> bool {
    if value.is_empty() {
        return true;
    }
    if value.len() > BYTES_MAX {
        return false;
    }
    let value = value.to_ascii_lowercase();
    let text = String::from_utf8_lossy(&value);
    let bare = text.trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == '!');
    is_reference(&text)
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
        || wrapped("{", "}")
        || wrapped("[", "]")
        || wrapped("%", "%")
        || text.contains("...")
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
    use super::is;

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
        ] {
            assert!(is(word.as_bytes()), "{word}");
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
