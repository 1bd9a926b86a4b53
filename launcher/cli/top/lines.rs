//! What a gateway says of itself as lines, all printable ASCII: what matters most first.

use outgate_policy::printable;
use serde_json::Value;

/// How a line stands out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TopLineKind {
    Title,
    Alarm,
    Warning,
    Plain,
}

/// A line, and how it stands out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TopLine {
    pub(super) kind: TopLineKind,
    pub(super) text: String,
}

use TopLineKind::{Alarm, Plain, Title, Warning};

fn line(kind: TopLineKind, text: String) -> TopLine {
    TopLine { kind, text }
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or(0)
}

fn text(value: &Value) -> String {
    printable(value.as_str().unwrap_or_default())
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// Bytes in words.
pub(super) fn size(bytes: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let (mut left, mut unit) = (bytes, 0_usize);
    while left >= 10 * 1024 && unit + 1 < units.len() {
        left /= 1024;
        unit += 1;
    }
    format!("{left} {}", units.get(unit).unwrap_or(&"TiB"))
}

/// The name of a sandbox.
fn name(own: &Value) -> String {
    format!("{} #{}", text(&own["name"]), number(&own["number"]))
}

/// The last part of a path.
fn program(path: &Value) -> String {
    let path = text(path);
    path.rsplit('/').next().unwrap_or_default().to_owned()
}

/// Lines of one kind of thing below a title, where there is any.
fn section(title: &str, kind: TopLineKind, lines: Vec<String>) -> Vec<TopLine> {
    if lines.is_empty() {
        return Vec::new();
    }
    let title = [line(Plain, String::new()), line(Title, title.to_owned())];
    let lines = lines.into_iter().map(|text| line(kind, text));
    title.into_iter().chain(lines).collect()
}

/// All of it.
pub(super) fn all(overview: &Value) -> Vec<TopLine> {
    let sandboxes = list(&overview["sandboxes"]);
    let each = |key: &str, shown: &dyn Fn(&Value, &Value) -> String| -> Vec<String> {
        let pairs = sandboxes
            .iter()
            .flat_map(|own| list(&own[key]).iter().map(move |item| (own, item)));
        pairs.map(|(own, item)| shown(own, item)).collect()
    };
    let mut lines = head(overview);
    lines.extend(section("ALARMS", Alarm, groups(sandboxes, Urgent::Alarms)));
    lines.extend(section(
        "QUESTIONS (`outgate approve` answers)",
        Warning,
        each("questions", &|own, asked| {
            let (subject, left) = (text(&asked["subject"]), number(&asked["left"]));
            let asker = program(&asked["program"]);
            format!("  {subject}  by {asker} in {}, {left} s left", name(own))
        }),
    ));
    lines.extend(section("CREDENTIALS FOUND", Alarm, found(sandboxes)));
    lines.extend(section("DENIED", Plain, groups(sandboxes, Urgent::Others)));
    let mut rows: Vec<String> = sandboxes.iter().map(sandbox).collect();
    if let more @ 1.. = number(&overview["not_listed"]) {
        rows.push(format!("  and {more} other sandboxes"));
    }
    let title = format!(
        "{:<26} {:>8} {:>8} {:>7} {:>10} {:>10} {:>9}",
        "SANDBOXES", "allowed", "denied", "found", "sent", "received", "conns"
    );
    lines.extend(section(&title, Plain, rows));
    lines.extend(section(
        "GRANTED WHILE RUNNING",
        Plain,
        each("grants", &|own, grant| {
            format!("  {}  to {}", text(&grant["rule"]), name(own))
        }),
    ));
    lines.extend(section(
        "QUOTAS",
        Plain,
        each("quotas", &|own, quota| {
            let (spent, bytes) = (number(&quota["spent"]), number(&quota["bytes"]));
            let (to, rule) = (text(&quota["to"]), text(&quota["rule"]));
            let (spent, bytes) = (size(spent), size(bytes));
            format!("  {to}: {spent} of {bytes}  {rule}  {}", name(own))
        }),
    ));
    lines
}

fn head(overview: &Value) -> Vec<TopLine> {
    let own = &overview["gateway"];
    let (policy, record) = (&own["policy"], &own["record"]);
    let state = text(&own["state"]);
    let kind = if state == "ready" { Title } else { Alarm };
    let share = |key: &str| {
        let share = &own[key];
        format!("{} of {}", number(&share["used"]), number(&share["limit"]))
    };
    let (decisions, seconds) = (&own["decisions"], number(&own["uptime_seconds"]));
    let record = text(&record["state"]);
    vec![
        line(
            kind,
            format!(
                "outgate top: {state} for {seconds} s, policy {} with {} rules, record {record}",
                number(&policy["generation"]),
                number(&policy["rules"]),
            ),
        ),
        line(
            Plain,
            format!(
                "{} sandboxes, {} connections; {} allowed, {} denied; {} sent, {} received",
                share("sandboxes"),
                share("connections"),
                number(&decisions["allowed"]),
                number(&decisions["denied"]),
                size(number(&decisions["bytes_up"])),
                size(number(&decisions["bytes_down"])),
            ),
        ),
    ]
}

/// Which groups of denials.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Urgent {
    Alarms,
    Others,
}

/// Denials by groups, the largest first, each with what would allow it.
fn groups(sandboxes: &[Value], wanted: Urgent) -> Vec<String> {
    let is_wanted = |group: &&Value| (group["urgency"] == "alarm") == (wanted == Urgent::Alarms);
    let pairs = sandboxes.iter().flat_map(|own| {
        let groups = list(&own["groups"]).iter().filter(is_wanted);
        groups.map(move |group| (own, group))
    });
    let mut pairs: Vec<(&Value, &Value)> = pairs.collect();
    pairs.sort_by_key(|(_, group)| std::cmp::Reverse(number(&group["count"])));
    let mut lines = Vec::new();
    for (own, group) in pairs {
        let mark = match group["urgency"].as_str() {
            Some("alarm") => "ALARM ",
            Some("credential") => "CREDENTIAL ",
            Some("passed") => "let through: ",
            _ => "",
        };
        let (count, subject) = (number(&group["count"]), text(&group["subject"]));
        let (asker, because) = (text(&group["program"]), text(&group["because"]));
        let asker = if asker.is_empty() { "somebody" } else { &asker };
        lines.push(format!(
            "{count:>6} x {mark}{subject}  by {asker} in {}: {because}",
            name(own)
        ));
        let flags = list(&group["flags"]).iter().map(text);
        lines.extend(flags.map(|flag| format!("         {flag}")));
    }
    if wanted == Urgent::Others {
        let more = sandboxes.iter().filter(|own| number(&own["beyond"]) > 0);
        lines.extend(more.map(|own| {
            let beyond = number(&own["beyond"]);
            format!("{beyond:>6} more of {} in the record", name(own))
        }));
    }
    lines
}

fn found(sandboxes: &[Value]) -> Vec<String> {
    let pairs = sandboxes.iter().flat_map(|own| {
        let counts = &own["counts"];
        let found = list(&counts["found"]).iter();
        found.map(move |found| (own, found))
    });
    let shown = pairs.map(|(own, found)| {
        let (kind, action) = (text(&found["name"]), text(&found["action"]));
        let (place, target) = (text(&found["place"]), text(&found["target"]));
        format!(
            "  {kind} ({action}) in {place}, to {target}, by {}",
            name(own)
        )
    });
    shown.collect()
}

fn sandbox(own: &Value) -> String {
    let (counts, flows) = (&own["counts"], &own["connections"]);
    let mut name = name(own);
    name.truncate(24);
    let of = |key: &str| number(&counts[key]);
    let flows = format!("{}/{}", number(&flows["used"]), number(&flows["limit"]));
    let (up, down) = (size(of("up")), size(of("down")));
    let (allowed, denied, findings) = (of("allowed"), of("denied"), of("findings"));
    format!("  {name:<24} {allowed:>8} {denied:>8} {findings:>7} {up:>10} {down:>10} {flows:>9}")
}

/// What happened, in a line.
pub(super) fn event(event: &Value) -> TopLine {
    let is = |key: &str| event[key].as_bool() == Some(true);
    let verdict = text(&event["verdict"]);
    let (kind, word) = match (is("alarm"), is("monitor"), verdict.as_str()) {
        (true, _, _) => (Alarm, "ALARM"),
        (false, true, _) => (Warning, "passed"),
        (false, false, "deny") => (Warning, "deny"),
        (false, false, word) => (Plain, word),
    };
    let (method, target, path) = (
        &event["method"],
        text(&event["target"]),
        text(&event["path"]),
    );
    let what = match method.as_str() {
        Some(method) => format!("{} {target}{path}", printable(method)),
        None => format!("{} {target}", text(&event["kind"])),
    };
    let sandbox = text(&event["sandbox"]);
    let more = [
        sandbox,
        program(&event["program"]),
        text(&event["finding"]),
        text(&event["reason"]),
    ];
    let more: Vec<String> = more.into_iter().filter(|part| !part.is_empty()).collect();
    line(kind, format!("{word:<6} {what}  {}", more.join(", ")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_matters_comes_first_and_hostile_texts_are_plain_signs() {
        let bad = "a\u{1b}[2J\r\n\u{202e}";
        let group = |urgency: &str, count: u64| {
            json!({ "urgency": urgency, "count": count, "subject": format!("GET http://{bad}"),
                "program": bad, "because": bad, "flags": [format!("-a '{bad}'")] })
        };
        let overview = json!({
            "gateway": { "state": "ready", "uptime_seconds": 5, "policy": { "rules": 2 } },
            "not_listed": 7,
            "sandboxes": [{
                "name": "b\u{e9}".repeat(80), "number": 3, "beyond": 9,
                "counts": { "allowed": 1, "up": 99_999_999, "found": [{ "name": bad, "action": "block" }] },
                "groups": [group("denied", 1), group("alarm", 2), group("denied", 400)],
                "questions": [{ "subject": bad, "left": 4 }],
                "grants": [{ "rule": bad }], "quotas": [{ "rule": bad, "to": bad, "bytes": 1 }],
            }],
        });
        let page: Vec<String> = all(&overview).into_iter().map(|own| own.text).collect();
        let page = page.join("\n");
        let is_sign = |sign: char| (' '..='~').contains(&sign) || sign == '\n';
        assert!(page.chars().all(is_sign), "{page}");
        let at = |part: &str| page.find(part).unwrap_or_else(|| panic!("{part}: {page}"));
        for pair in [
            ["ready for 5 s", "ALARMS"],
            ["ALARMS", "QUESTIONS"],
            ["QUESTIONS", "CREDENTIALS FOUND"],
            ["CREDENTIALS FOUND", "DENIED"],
            ["400 x", "  1 x"],
            ["9 more of", "SANDBOXES"],
            ["95 MiB", "and 7 other sandboxes"],
            ["other sandboxes", "GRANTED"],
            ["GRANTED", "QUOTAS"],
        ] {
            assert!(at(pair[0]) < at(pair[1]), "{pair:?}: {page}");
        }
        let happened = event(&json!({ "alarm": true, "kind": bad, "target": bad }));
        assert_eq!(happened.kind, Alarm);
        assert!(happened.text.chars().all(is_sign), "{happened:?}");
        // Whatever else answers is no reason to fail.
        assert!(
            !all(&json!([])).is_empty() && !all(&json!({ "sandboxes": [1, [], {}] })).is_empty()
        );
    }
}
