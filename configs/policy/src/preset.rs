//! The policies we ship.

/// The text of a shipped policy.
pub fn preset(_name: &str) -> Option<&'static str> {
    todo!()
}

/// The names of the shipped policies.
pub fn preset_names() -> &'static [&'static str] {
    &["base", "dev-tools", "none"]
}
