//! Lines of the record, shortened for a terminal. Finds members by text: for
//! showing lines that outgate wrote itself, not for reading foreign JSON.

/// The members that are shown.
const SHOWN: [&str; 6] = [
    "verdict",
    "reason",
    "method",
    "target",
    "path",
    "executable",
];

/// Whether the line is about a request, or what one held.
pub(crate) fn is_request(line: &str) -> bool {
    matches!(member(line, "kind"), Some("request" | "finding"))
}

/// What was decided.
pub(crate) fn verdict(line: &str) -> &str {
    member(line, "verdict").unwrap_or_default()
}

/// The line with its most telling members only.
pub(crate) fn short(line: &str) -> String {
    let members: Vec<String> = SHOWN
        .iter()
        .filter_map(|name| Some(format!("\"{name}\":\"{}\"", member(line, name)?)))
        .collect();
    format!("{{…,{},…}}", members.join(","))
}

fn member<'line>(line: &'line str, name: &str) -> Option<&'line str> {
    let (_, rest) = line.split_once(&format!("\"{name}\":\""))?;
    rest.split_once('"').map(|(value, _)| value)
}
