//! Records as events of the Open Cybersecurity Schema Framework 1.3, one a line.
//! Each class, activity and disposition is one that the framework names; what it
//! has no place for stands in `unmapped`.

use serde_json::{Map, Value, json};

use super::Record;
use outgate_record::{Alarm, Outcome};

/// The version of the framework.
const VERSION: &str = "1.3.0";

/// Classes of the framework.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    DetectionFinding,
    NetworkActivity,
    HttpActivity,
    DnsActivity,
    ApplicationLifecycle,
}

impl Class {
    fn uid(self) -> u64 {
        match self {
            Self::DetectionFinding => 2004,
            Self::NetworkActivity => 4001,
            Self::HttpActivity => 4002,
            Self::DnsActivity => 4003,
            Self::ApplicationLifecycle => 6002,
        }
    }

    fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::DetectionFinding => ("Findings", "Detection Finding"),
            Self::NetworkActivity => ("Network Activity", "Network Activity"),
            Self::HttpActivity => ("Network Activity", "HTTP Activity"),
            Self::DnsActivity => ("Network Activity", "DNS Activity"),
            Self::ApplicationLifecycle => ("Application Activity", "Application Lifecycle"),
        }
    }
}

/// An activity that the framework does not name.
const OTHER: u64 = 99;

/// One record as an event.
pub(crate) fn event(record: &Record) -> Value {
    let class = class(record);
    let (activity, activity_name) = activity(record, class);
    let uid = class.uid();
    let (category_name, class_name) = class.names();
    let (severity, severity_name) = severity(record);
    let mut event = json!({
        "time": record.at(),
        "class_uid": uid,
        "class_name": class_name,
        "category_uid": uid / 1000,
        "category_name": category_name,
        "activity_id": activity,
        "activity_name": activity_name,
        "type_uid": uid * 100 + activity,
        "type_name": format!("{class_name}: {activity_name}"),
        "severity_id": severity,
        "severity": severity_name,
        "message": format!("{} {}", word(record), record.subject()),
        "metadata": {
            "version": VERSION,
            "uid": format!("{}/{}", record.run, record.seq),
            "sequence": record.seq,
            "profiles": ["security_control"],
            "product": product(),
        },
        "unmapped": unmapped(record),
    });
    let Some(members) = event.as_object_mut() else {
        return event;
    };
    control(members, record);
    if !record.executable().is_empty() {
        members.insert("actor".to_owned(), json!({ "process": process(record) }));
    }
    match class {
        Class::ApplicationLifecycle => {
            members.insert("app".to_owned(), product());
        }
        Class::DetectionFinding => finding(members, record),
        Class::NetworkActivity | Class::HttpActivity | Class::DnsActivity => {
            network(members, record, class);
        }
    }
    event
}

fn product() -> Value {
    json!({ "name": "outgate", "vendor_name": "outgate", "version": env!("CARGO_PKG_VERSION") })
}

fn class(record: &Record) -> Class {
    match record.kind.as_str() {
        "start" | "finish" | "policy" | "proposal" => Class::ApplicationLifecycle,
        "finding" | "canary" | "budget" | "leftover" => Class::DetectionFinding,
        "request" => Class::HttpActivity,
        "dns" => Class::DnsActivity,
        _ => Class::NetworkActivity,
    }
}

fn activity(record: &Record, class: Class) -> (u64, String) {
    let known = |uid: u64, name: &str| (uid, name.to_owned());
    match class {
        Class::ApplicationLifecycle => match record.kind.as_str() {
            "start" => known(3, "Start"),
            "finish" => known(4, "Stop"),
            "proposal" => known(OTHER, "Rule proposed"),
            _ => known(OTHER, "Policy changed"),
        },
        Class::DetectionFinding => known(1, "Create"),
        Class::DnsActivity => known(1, "Query"),
        Class::HttpActivity => match record.method.as_deref().unwrap_or_default() {
            "CONNECT" => known(1, "Connect"),
            "DELETE" => known(2, "Delete"),
            "GET" => known(3, "Get"),
            "HEAD" => known(4, "Head"),
            "OPTIONS" => known(5, "Options"),
            "POST" => known(6, "Post"),
            "PUT" => known(7, "Put"),
            "TRACE" => known(8, "Trace"),
            other => known(OTHER, other),
        },
        Class::NetworkActivity => match (record.kind.as_str(), record.verdict) {
            ("listen", _) => known(7, "Listen"),
            ("flow", _) => known(2, "Close"),
            (_, Outcome::Deny) => known(5, "Refuse"),
            (_, Outcome::Allow | Outcome::Note) => known(1, "Open"),
        },
    }
}

/// What was decided, for people.
fn word(record: &Record) -> &'static str {
    if record.is_monitored() {
        "monitor"
    } else {
        record.verdict.token()
    }
}

fn severity(record: &Record) -> (u64, &'static str) {
    match (record.alarm, record.kind.as_str(), record.verdict) {
        (Alarm::Raised, _, _) => (5, "Critical"),
        (Alarm::None, "finding", Outcome::Deny) => (4, "High"),
        (Alarm::None, "finding" | "budget" | "leftover", _) => (3, "Medium"),
        (Alarm::None, _, Outcome::Deny) => (2, "Low"),
        (Alarm::None, _, _) if record.is_monitored() => (2, "Low"),
        (Alarm::None, _, Outcome::Allow | Outcome::Note) => (1, "Informational"),
    }
}

/// What was decided, and by which rule.
fn control(members: &mut Map<String, Value>, record: &Record) {
    let (action, action_name, disposition, disposition_name) = match record.verdict {
        Outcome::Allow if record.is_monitored() => (1, "Allowed", 17, "Logged"),
        Outcome::Allow => (1, "Allowed", 1, "Allowed"),
        Outcome::Deny => (2, "Denied", 2, "Blocked"),
        Outcome::Note => (0, "Unknown", 17, "Logged"),
    };
    members.insert("action_id".to_owned(), json!(action));
    members.insert("action".to_owned(), json!(action_name));
    members.insert("disposition_id".to_owned(), json!(disposition));
    members.insert("disposition".to_owned(), json!(disposition_name));
    if record.alarm == Alarm::Raised {
        members.insert("is_alert".to_owned(), json!(true));
    }
    if !record.detail().is_empty() {
        members.insert("status_detail".to_owned(), json!(record.detail()));
    }
    if let Some(rule) = &record.rule {
        let rule = json!({ "uid": rule.id.to_string(), "name": rule.text, "desc": rule.place });
        members.insert("firewall_rule".to_owned(), rule);
    }
}

fn process(record: &Record) -> Value {
    let mut process = json!({
        "name": record.program(),
        "file": { "name": record.program(), "path": record.executable(), "type_id": 1 },
    });
    let parent = record.parents.first().and_then(|parent| {
        let (pid, path) = parent.split_once(' ')?;
        let pid: u64 = pid.parse().ok()?;
        let name = outgate_record::short(path);
        Some(json!({ "pid": pid, "name": name, "file": { "name": name, "path": path, "type_id": 1 } }))
    });
    if let Some(process) = process.as_object_mut() {
        process.extend(record.pid.map(|pid| ("pid".to_owned(), json!(pid))));
        process.extend(parent.map(|parent| ("parent_process".to_owned(), parent)));
        let user = record.uid.map(|uid| json!({ "uid": uid.to_string() }));
        process.extend(user.map(|user| ("user".to_owned(), user)));
    }
    process
}

fn network(members: &mut Map<String, Value>, record: &Record, class: Class) {
    let host = record.host();
    let port = port(record);
    let mut endpoint = Map::new();
    if host.parse::<std::net::IpAddr>().is_ok() {
        endpoint.insert("ip".to_owned(), json!(host));
    } else if !host.is_empty() {
        endpoint.insert("hostname".to_owned(), json!(host));
    } else {
        endpoint.insert("name".to_owned(), json!(record.target));
    }
    endpoint.extend(port.map(|port| ("port".to_owned(), json!(port))));
    let side = match record.kind.as_str() {
        "listen" => "src_endpoint",
        _ => "dst_endpoint",
    };
    members.insert(side.to_owned(), Value::Object(endpoint));
    if let Some(traffic) = record.traffic() {
        let all = traffic.up.saturating_add(traffic.down);
        let counted = json!({ "bytes_out": traffic.up, "bytes_in": traffic.down, "bytes": all });
        members.insert("traffic".to_owned(), counted);
        members.insert("duration".to_owned(), json!(traffic.millis));
    }
    match class {
        Class::HttpActivity => {
            members.insert("http_request".to_owned(), request(record, host, port));
        }
        Class::DnsActivity => {
            members.insert("query".to_owned(), json!({ "hostname": host }));
        }
        Class::DetectionFinding | Class::NetworkActivity | Class::ApplicationLifecycle => {}
    }
}

fn request(record: &Record, host: &str, port: Option<u16>) -> Value {
    let path = record.path.as_deref().unwrap_or_default();
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let scheme = record
        .target
        .split_once("://")
        .map_or("", |(scheme, _)| scheme);
    json!({
        "http_method": record.method,
        "url": {
            "url_string": format!("{}{}", record.target, record.path.as_deref().unwrap_or_default()),
            "scheme": scheme,
            "hostname": host,
            "port": port,
            "path": path,
            "query_string": query,
        },
    })
}

/// The port that a target names, or that of its scheme.
fn port(record: &Record) -> Option<u16> {
    let (scheme, authority) = match record.target.split_once("://") {
        Some((scheme, authority)) => (scheme, authority),
        None => ("", &*record.target),
    };
    let named = authority.rsplit_once(':').and_then(|(host, port)| {
        let port = port.parse().ok()?;
        (!host.contains(':') || host.ends_with(']')).then_some(port)
    });
    named.or(match scheme {
        "http" | "ws" => Some(80),
        "https" | "wss" => Some(443),
        _ => None,
    })
}

fn finding(members: &mut Map<String, Value>, record: &Record) {
    let found = record.finding.clone().unwrap_or_default();
    let title = match &*found.name {
        "" => record.reason(),
        name => name,
    };
    members.insert(
        "finding_info".to_owned(),
        json!({
            "uid": format!("{}/{}", record.run, record.seq),
            "title": title,
            "desc": record.detail(),
            "created_time": record.at(),
            "types": [record.kind],
            "analytic": { "name": found.detector, "uid": found.detector, "type_id": 1, "type": "Rule" },
        }),
    );
    let url = format!(
        "{}{}",
        record.target,
        record.path.as_deref().unwrap_or_default()
    );
    let evidence = json!({
        "url": { "url_string": url, "hostname": record.host() },
        "process": process(record),
        "data": {
            "chain": found.chain,
            "place": found.place,
            "offset": found.offset,
            "inside": found.inside,
            "mark": found.mark,
            "may_go_to": found.issuers,
        },
    });
    members.insert("evidences".to_owned(), json!([evidence]));
    members.insert("status_id".to_owned(), json!(1));
    members.insert("status".to_owned(), json!("New"));
}

fn unmapped(record: &Record) -> Value {
    let mut rest = Map::new();
    let texts = [
        ("sandbox", Some(&*record.sandbox)),
        ("run", Some(&*record.run)),
        ("kind", Some(record.kind.as_str())),
        ("reason", Some(record.reason())),
        ("mode", record.mode.as_deref()),
        ("monitor", record.monitor.as_deref()),
        ("to_allow", record.flag.as_deref()),
        ("pin", Some(record.pin())),
    ];
    for (name, text) in texts {
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            rest.insert(name.to_owned(), json!(text));
        }
    }
    rest.insert("generation".to_owned(), json!(record.generation));
    rest.extend(
        record
            .session
            .map(|session| ("session".to_owned(), json!(session))),
    );
    if record.lost() > 0 {
        rest.insert("lost".to_owned(), json!(record.lost()));
    }
    if let Some(unscanned) = &record.unscanned {
        let unscanned = json!({ "bytes": unscanned.bytes, "reason": unscanned.reason });
        rest.insert("unscanned".to_owned(), unscanned);
    }
    Value::Object(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Members, class, activity, disposition, and what the class requires.
    const ROWS: [(&str, u64, u64, u64, &str); 9] = [
        (
            r#""kind":"request","verdict":"deny","target":"https://a.test","method":"PUT","path":"/x?k=*""#,
            4002,
            7,
            2,
            "http_request",
        ),
        (
            r#""kind":"request","verdict":"allow","target":"https://a.test","method":"PATCH""#,
            4002,
            99,
            1,
            "http_request",
        ),
        (
            r#""kind":"connect","verdict":"deny","target":"[2001:db8::1]:443""#,
            4001,
            5,
            2,
            "dst_endpoint",
        ),
        (
            r#""kind":"flow","verdict":"note","target":"a.test:443","bytes_up":1,"bytes_down":2"#,
            4001,
            2,
            17,
            "traffic",
        ),
        (
            r#""kind":"listen","verdict":"allow","target":"127.0.0.1:80""#,
            4001,
            7,
            1,
            "src_endpoint",
        ),
        (
            r#""kind":"unix","verdict":"allow","target":"/run/x""#,
            4001,
            1,
            1,
            "dst_endpoint",
        ),
        (
            r#""kind":"dns","verdict":"note","target":"a.test""#,
            4003,
            1,
            17,
            "query",
        ),
        (
            r#""kind":"canary","verdict":"deny","alarm":true,"target":"a.test","finding":{"detector":"d"}"#,
            2004,
            1,
            2,
            "finding_info",
        ),
        (
            r#""kind":"start","verdict":"note","target":"""#,
            6002,
            3,
            17,
            "app",
        ),
    ];

    #[test]
    fn every_kind_has_its_class_and_what_the_class_requires() {
        for (members, class, activity, disposition, needed) in ROWS {
            let line =
                format!(r#"{{"run":"r","seq":7,"time":"2026-11-21T12:00:00.000Z",{members}}}"#);
            let event = event(&Record::parse(line.as_bytes()).unwrap());
            let number = |name: &str| event[name].as_u64().unwrap();
            assert_eq!(number("class_uid"), class, "{members}");
            assert_eq!(number("category_uid"), class / 1000);
            assert_eq!(number("activity_id"), activity, "{members}");
            assert_eq!(number("type_uid"), class * 100 + activity);
            assert_eq!(number("disposition_id"), disposition, "{members}");
            assert!(event.get(needed).is_some(), "{members}: {event}");
            assert!(number("time") > 0 && number("severity_id") > 0);
            assert_eq!(event["metadata"]["version"], VERSION);
        }
    }

    #[test]
    fn ports_are_those_of_the_target() {
        for (target, expected) in [
            ("https://a.test", Some(443)),
            ("http://a.test:8080", Some(8080)),
            ("[2001:db8::1]:443", Some(443)),
            ("2001:db8::1", None),
            ("a.test:x", None),
            ("a.test:99999", None),
        ] {
            let record = Record {
                target: target.into(),
                ..Record::default()
            };
            assert_eq!(port(&record), expected, "{target}");
        }
    }
}
