//! What stands beside a credential in its place, and keys that are none: looked through.

use outgate_dlp::sample;

use crate::request::{FORM, JSON, Request, base64, rules};

fn text(template: &str) -> String {
    String::from_utf8(sample(template, 7)).expect("letters")
}

fn basic(name: &str, password: &str) -> String {
    format!("Basic {}", base64(format!("{name}:{password}").as_bytes()))
}

/// A request with one field.
fn with(host: &str, target: &str, field: &str, value: &str) -> Request {
    Request::to(host, target).field(field, value)
}

#[test]
fn what_stands_beside_a_credential_in_its_place_is_looked_through() {
    let rules = rules(outgate_dlp::ScanPolicy::Tiered, &[]);
    let token = text("ghp_{b62:30}{crc62}");
    let other = text("sk-ant-api03-{b64u:93}AA");
    let id = text("AKIA{akid}");
    for value in [
        basic(&other, &token),
        basic(&id, &token),
        basic(&token, &other),
        format!("Bearer {token} {other}"),
        format!("Bearer {token}{id}"),
        format!("token {token},{token}"),
        basic("me", &format!("{token}{token}")),
    ] {
        let request = with("api.github.com", "/user", "authorization", &value);
        assert!(!request.found(&rules).is_empty(), "{value}");
    }
    // In a text of a message, which others read, no key opens anything.
    let slack = text("xoxb-123456789012-123456789012-{b62:24}");
    for content in [
        format!("channel=C&text={slack}"),
        format!("channel=C&text=a token={slack}"),
        format!("channel=C&text=a%26token%3D{slack}"),
        format!("channel=C&text=a;token={slack}"),
        format!("xtoken={slack}&channel=C"),
    ] {
        let request = Request::to("slack.com", "/api/chat.postMessage").content(FORM, &content);
        assert!(!request.found(&rules).is_empty(), "{content}");
    }
    let plaid = text("access-production-{hex:8}-{hex:4}-{hex:4}-{hex:4}-{hex:12}");
    for content in [
        format!("{{\"note\":\"{plaid}\"}}"),
        format!("{{\"note\":\"\\\"access_token\\\":\\\"{plaid}\"}}"),
        format!("[\"{plaid}\"]"),
    ] {
        let request = Request::to("production.plaid.com", "/item/get").content(JSON, &content);
        assert!(!request.found(&rules).is_empty(), "{content}");
    }
}
