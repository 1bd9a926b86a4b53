//! A value that must not be shown: it has no `Debug` that tells, no `Display`,
//! no comparison that answers early, and is overwritten when it goes.

use std::fmt;

/// A value that must not be shown.
#[derive(Clone)]
pub struct Secret {
    bytes: Vec<u8>,
}

impl Secret {
    /// Takes a value.
    pub fn new(bytes: Vec<u8>) -> Self {
        Self { bytes }
    }

    /// The value itself, for whoever matches it.
    pub fn expose(&self) -> &[u8] {
        &self.bytes
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Secret(…)")
    }
}

impl Drop for Secret {
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
        let secret = Secret::new(b"hunter2".to_vec());
        assert_eq!(format!("{secret:?}"), "Secret(…)");
        assert_eq!(secret.expose(), b"hunter2");
    }
}
