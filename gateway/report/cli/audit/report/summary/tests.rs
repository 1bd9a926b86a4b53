//! No text of a record is a command to who runs pipelines.

use super::*;

#[test]
fn no_runner_finds_a_command_in_a_text() {
    for (text, expected) in [
        ("a#b", "a#b"),
        ("##[error]", "#\\u0023[error]"),
        ("####vso[x]", "#\\u0023#\\u0023vso[x]"),
        ("# #", "# #"),
    ] {
        assert_eq!(without_commands(text), expected);
        assert!(!without_commands(text).contains("##"));
    }
}
