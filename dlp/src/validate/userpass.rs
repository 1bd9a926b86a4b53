//! Base 64 of a name, a colon and a password (RFC 7617).

use crate::validate::{base64, placeholder};

/// Whether a text stands for that, printable and with a password that is more
/// than a word of documentation.
pub(crate) fn is(text: &[u8]) -> bool {
    let Some(bytes) = base64::decode(text) else {
        return false;
    };
    let Ok(pair) = std::str::from_utf8(&bytes) else {
        return false;
    };
    let Some((name, password)) = pair.split_once(':') else {
        return false;
    };
    let printable = !pair.chars().any(char::is_control);
    let named = !name.is_empty() || password.len() >= 16;
    printable && named && password.len() >= 3 && !placeholder::is(password.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::is;
    use crate::validate::base64;

    #[test]
    fn only_a_name_and_a_password_count() {
        let check = |pair: &str, expected: bool| {
            let text = base64::encode(pair.as_bytes(), base64::STANDARD);
            assert_eq!(is(&text), expected, "{pair}");
        };
        check("Aladdin:open sesame", false);
        check("Aladdin:0pen-sesame-42", true);
        check("oauth2accesstoken:kV8pq2LmzzR41x", true);
        check(":kV8pq2LmzzR41xQw7", true);
        check("user:password", false);
        check("no colon in here", false);
        check("bell\u{7}:kV8pq2Lm", false);
        assert!(!is(b"authentication"));
        assert!(!is(&base64::encode(
            &[0xff, 0xfe, b':', 1, 2, 3, 4],
            base64::STANDARD
        )));
    }
}
