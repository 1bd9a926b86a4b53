//! The list of detectors: for people, or as JSON.

use outgate_dlp::{Detector, Detectors, Scope, Tenants};
use serde_json::{Value, json};

use super::arguments::Scan;
use super::setup::is_on;

/// Characters of a line at most, where words allow.
const WIDTH: usize = 96;

/// The whole list.
pub(crate) fn text(detectors: &Detectors, options: &Scan) -> String {
    if options.json {
        let list: Vec<Value> = detectors.iter().map(entry).collect();
        return format!("{:#}\n", json!({ "version": 1, "detectors": list }));
    }
    let mut lines = Vec::new();
    let ids = detectors.iter().map(|detector| detector.id.len());
    let width = ids.max().unwrap_or_default();
    for detector in detectors.iter() {
        let off = if is_on(detector) {
            ""
        } else {
            "; off unless --enable"
        };
        let tier = detector.tier.word();
        lines.push(format!(
            "{:width$}  {tier:10}  {}{off}",
            detector.id, detector.name
        ));
        lines.push(format!("{:width$}  {}", "", detector.cost));
        let hosts = wrapped(&destinations(detector), WIDTH.saturating_sub(width + 12));
        for (position, hosts) in hosts.iter().enumerate() {
            let lead = if position == 0 { "goes to" } else { "" };
            lines.push(format!("{:width$}  {lead:7} {hosts}", ""));
        }
    }
    lines.push(format!("{} detectors\n", detectors.len()));
    lines.join("\n")
}

fn entry(detector: &Detector) -> Value {
    json!({
        "id": detector.id,
        "name": detector.name,
        "tier": detector.tier.word(),
        "cost": detector.cost,
        "reference": detector.reference,
        "confirmed": detector.confirmed,
        "enabled": is_on(detector),
        "issuers": detector.issuers,
        "except": detector.except,
        "tenant_hosts": detector.tenant_hosts,
        "routed": detector.routed,
        "harmless": detector.harmless,
        "tenants": detector.tenants.word(),
        "places": detector.places,
        "secret": detector.secret,
        "unplaced": detector.unplaced,
        "forms": detector.forms,
        "documents": detector.documents,
        "destinations": destinations(detector),
    })
}

/// Where its credentials may go, in words.
fn destinations(detector: &Detector) -> String {
    let hosts = hosts(detector);
    let is_closed = detector.is_placed() || detector.tenants == Tenants::Many;
    if is_closed {
        format!("{hosts}; not in content")
    } else {
        hosts
    }
}

fn hosts(detector: &Detector) -> String {
    let tenants = detector.tenant_hosts.iter();
    let tenants = tenants.map(|host| format!("{host} (if a rule spells it out)"));
    let all = detector.issuers.iter().map(ToString::to_string);
    let hosts: Vec<String> = all.chain(tenants).collect();
    let hosts = hosts.join(" ");
    match detector.scope {
        Scope::Issuers => hosts,
        Scope::Never => "nowhere, and nobody can allow it".to_owned(),
        Scope::User => "where you allow it".to_owned(),
        Scope::Claims => "the hosts that it names itself".to_owned(),
        Scope::Registry(registry) => {
            format!(
                "the registry that your configuration of {} names",
                registry.word()
            )
        }
    }
}

fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.len() + 1 + word.len() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::wrapped;

    #[test]
    fn words_stay_whole() {
        assert_eq!(wrapped("aa bb cc", 5), ["aa bb", "cc"]);
        assert_eq!(wrapped("longer-than-that x", 5), ["longer-than-that", "x"]);
    }
}
