//! The policies we ship. Data; whoever collects sources adds them by name.

/// Names and texts, in the order of the names.
const PRESETS: [(&str, &str); 3] = [
    ("base", include_str!("../../presets/base.toml")),
    ("dev-tools", include_str!("../../presets/dev-tools.toml")),
    ("none", include_str!("../../presets/none.toml")),
];

/// The text of a shipped policy.
pub fn preset(name: &str) -> Option<&'static str> {
    PRESETS
        .iter()
        .find(|(own, _)| *own == name)
        .map(|(_, text)| *text)
}

/// The names of the shipped policies, in order.
pub fn preset_names() -> &'static [&'static str] {
    const { &[PRESETS[0].0, PRESETS[1].0, PRESETS[2].0] }
}

/// Whether we ship this text.
pub(crate) fn is_shipped(text: &str) -> bool {
    PRESETS.iter().any(|(_, own)| *own == text)
}
