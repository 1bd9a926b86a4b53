//! Flags of the command line as denials name them. Text only.

/// The rule in a flag `-a 'RULE'`; `None` for any other text.
pub fn rule_of(flag: &str) -> Option<String> {
    let quoted = flag.strip_prefix("-a '")?.strip_suffix('\'')?;
    let rule = quoted.replace(r"'\''", "\0");
    (!rule.contains('\'')).then(|| rule.replace('\0', "'"))
}
