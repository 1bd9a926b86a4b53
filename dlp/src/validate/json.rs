//! Base 64 of a JSON object, perhaps behind a prefix that ends with an
//! underscore.

use crate::validate::base64;

/// Whether a token is that.
pub(crate) fn is(token: &[u8]) -> bool {
    let body = match token.iter().position(|byte| *byte == b'_') {
        Some(underscore) => token
            .get(underscore.saturating_add(1)..)
            .unwrap_or_default(),
        None => token,
    };
    object(body).is_some()
}

/// The object that a text in base 64 stands for.
pub(crate) fn object(text: &[u8]) -> Option<serde_json::Map<String, serde_json::Value>> {
    let bytes = base64::decode(text)?;
    match serde_json::from_slice(&bytes) {
        Ok(serde_json::Value::Object(object)) => Some(object),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::is;

    #[test]
    fn only_whole_objects_count() {
        for good in ["ops_eyJhIjoxfQ", "glc_eyJhIjoxfQ==", "eyJhIjp7ImIiOltdfX0"] {
            assert!(is(good.as_bytes()), "{good}");
        }
        for bad in ["ops_eyJhIjox", "ops_", "ops_WzFd", "ops_eyJhIjoxfXg"] {
            assert!(!is(bad.as_bytes()), "{bad}");
        }
    }
}
