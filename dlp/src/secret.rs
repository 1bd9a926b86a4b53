//! A value that must not be shown: it has no `Debug` that tells, no `Display`,
//! no comparison that answers early, and is overwritten when it goes.

use std::fmt;

/// A value that must not be shown.
#[derive(Clone)]
pub struct SecretBytes {
    bytes: Vec<u8>,
}

impl SecretBytes {
    /// Takes a value.
    pub fn new(bytes: Vec<u8>) -> Self {
        Self { bytes }
    }

    /// The value itself, for whoever matches it.
    pub fn expose(&self) -> &[u8] {
        &self.bytes
    }
}

impl fmt::Debug for SecretBytes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("SecretBytes(…)")
    }
}

impl Drop for SecretBytes {
    fn drop(&mut self) {
        self.bytes.fill(0);
        // Without a look at it the compiler may leave the filling out.
        std::hint::black_box(&self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_does_not_show_itself() {
        let secret = SecretBytes::new(b"hunter2".to_vec());
        assert_eq!(format!("{secret:?}"), "SecretBytes(…)");
        assert_eq!(secret.expose(), b"hunter2");
    }
}
