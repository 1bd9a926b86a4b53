//! The value of a secret in memory: cannot be printed, compared by accident or
//! written, and is overwritten when it is dropped. Knows nothing of where it
//! came from or goes to.

use std::fmt;

use zeroize::Zeroizing;

/// The bytes of a secret. `Debug` says nothing of them, and there is no
/// `Display`.
#[derive(Clone)]
pub(crate) struct SecretValue(Zeroizing<Vec<u8>>);

impl SecretValue {
    pub(crate) fn new(bytes: Zeroizing<Vec<u8>>) -> Self {
        Self(bytes)
    }

    /// The bytes, for who inserts them or looks for them.
    pub(crate) fn reveal(&self) -> &[u8] {
        &self.0
    }

    /// Whether two are the same, without saying what they are.
    fn is(&self, other: &Self) -> bool {
        *self.0 == *other.0
    }
}

impl fmt::Debug for SecretValue {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Value(…)")
    }
}

/// What a secret consists of.
#[derive(Debug, Clone)]
pub(crate) enum Material {
    /// A text that is sent as it is.
    Text(SecretValue),
    /// A pair of keys, with the token of a session where they are temporary.
    Keys(SigningKeys),
}

/// Keys that sign requests.
#[derive(Debug, Clone)]
pub(crate) struct SigningKeys {
    pub(crate) id: SecretValue,
    pub(crate) secret: SecretValue,
    pub(crate) session: Option<SecretValue>,
}

impl Material {
    /// Whether two are the same.
    pub(crate) fn is(&self, other: &Self) -> bool {
        let (own, theirs) = (self.values(), other.values());
        let pairs = own.iter().zip(&theirs);
        own.len() == theirs.len() && pairs.into_iter().all(|(own, other)| own.is(other))
    }

    /// Every text in it that nobody may see.
    pub(crate) fn values(&self) -> Vec<&SecretValue> {
        match self {
            Self::Text(value) => vec![value],
            Self::Keys(keys) => {
                let mut values = vec![&keys.id, &keys.secret];
                values.extend(&keys.session);
                values
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_not_printed() {
        let value = SecretValue::new(Zeroizing::new(b"hunter2-hunter2".to_vec()));
        let keys = SigningKeys {
            id: value.clone(),
            secret: value.clone(),
            session: None,
        };
        let shown = format!("{value:?} {:?}", Material::Keys(keys));
        assert!(!shown.contains("hunter2"), "{shown}");
        assert!(!shown.contains("104"), "{shown}");
    }
}
