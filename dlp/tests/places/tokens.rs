//! Tokens that anybody may issue (RFC 7519): they go to the hosts that they name, and in the
//! field for tokens to hosts that the operator spelt out; to nobody else.

use outgate_dlp::{ScanPolicy, sample};

use crate::request::{FORM, JSON, Request, base64, policies, rules};

/// A token with such a header and claims, of any length.
fn token(header: &str, claims: &str) -> String {
    let part = |text: &str| {
        let text = base64(text.as_bytes());
        text.replace('+', "-").replace('/', "_").replace('=', "")
    };
    let signature = "k3Jd8sQpL0vXz7Rt2BnYw5HgMc9FaE0yoVNxTq6UbIi1ZlPe4Wm";
    format!("{}.{}.{signature}", part(header), part(claims))
}

fn text(template: &str) -> String {
    String::from_utf8(sample(template, 7)).expect("text")
}

const HEADER: &str = r#"{"alg":"RS256","typ":"JWT"}"#;
const CLAIMS: &str =
    r#"{"iss":"https://login.corp.example/realm","aud":"account","sub":"f81d4fae"}"#;

#[test]
fn a_token_goes_where_it_says_and_as_a_bearer_where_the_operator_says() {
    let token = token(HEADER, CLAIMS);
    let bearer = format!("Bearer {token}");
    let named = ["api.corp.example".to_owned(), "api.github.com".to_owned()];
    for policy in policies() {
        let rules = rules(policy, &named);
        for (host, place, value, passes) in [
            ("login.corp.example", "x-any", &token, true),
            ("api.corp.example", "authorization", &bearer, true),
            ("api.github.com", "authorization", &bearer, true),
            ("api.corp.example", "x-any", &token, false),
            ("api.corp.example", "cookie", &format!("a={token}"), false),
            ("other.corp.example", "authorization", &bearer, false),
            ("stranger.example", "authorization", &bearer, false),
        ] {
            let found = Request::to(host, "/").field(place, value).found(&rules);
            assert_eq!(
                found.is_empty(),
                passes,
                "{policy:?} {host} {place}: {found:?}"
            );
        }
        for target in [format!("/?t={token}"), format!("/{token}")] {
            let found = Request::to("api.corp.example", &target).found(&rules);
            assert!(!found.is_empty(), "{target}");
        }
        let content = format!("{{\"note\":\"{token}\"}}");
        for host in ["api.corp.example", "stranger.example"] {
            let found = Request::to(host, "/").content(JSON, &content).found(&rules);
            assert!(!found.is_empty(), "{host}");
        }
    }
}

#[test]
fn a_token_carries_no_other_credential() {
    let secret = text("ghp_{b62:30}{crc62}");
    let reversed: String = secret.chars().rev().collect();
    let key = format!(
        "-----BEGIN RSA PRIVATE KEY-----\\n{}\\n-----END RSA PRIVATE KEY-----",
        text("{b64:64}\\n{b64:64}\\n{b64:64}\\n{b64:64}")
    );
    let plain = token(HEADER, CLAIMS);
    let [header, claims, _] = [0, 1, 2].map(|at| plain.split('.').nth(at).unwrap_or_default());
    let claims_of = |held: &str| token(HEADER, &format!(r#"{{"sub":"f81d4fae","d":"{held}"}}"#));
    let named = ["api.corp.example".to_owned()];
    for policy in policies() {
        let rules = rules(policy, &named);
        for (what, token, passes) in [
            ("nothing", plain.clone(), true),
            ("claims", claims_of(&secret), false),
            (
                "claims in base64",
                claims_of(&base64(secret.as_bytes())),
                false,
            ),
            ("claims reversed", claims_of(&reversed), false),
            ("a key", claims_of(&key), false),
            (
                "header",
                token(&format!(r#"{{"alg":"RS256","kid":"{secret}"}}"#), CLAIMS),
                false,
            ),
            ("signature", format!("{header}.{claims}.{secret}"), false),
            (
                "coded signature",
                format!(
                    "{header}.{claims}.{}",
                    base64(secret.as_bytes()).replace('=', "")
                ),
                false,
            ),
        ] {
            for (field, value) in [
                ("authorization", format!("Bearer {token}")),
                (
                    "authorization",
                    format!("Basic {}", base64(format!("x:{token}").as_bytes())),
                ),
            ] {
                let found = Request::to("api.corp.example", "/")
                    .field(field, &value)
                    .found(&rules);
                assert_eq!(
                    found.is_empty(),
                    passes,
                    "{policy:?} {what} {value}: {found:?}"
                );
            }
        }
    }
}

#[test]
fn a_credential_of_any_length_carries_no_other_one() {
    let secret = text("ghp_{b62:30}{crc62}");
    for policy in policies() {
        let rules = rules(policy, &[]);
        for (host, begin) in [
            ("storage.googleapis.com", "ya29.a0"),
            ("api.openai.com", "sk-proj-"),
        ] {
            for (held, passes) in [(text("{b64u:40}"), true), (secret.clone(), false)] {
                let token = format!("{begin}{}{held}{}", text("{b64u:90}"), text("{b64u:70}"));
                let shown =
                    Request::to(host, "/").field("authorization", &format!("Bearer {token}"));
                let found = shown.found(&rules);
                assert_eq!(
                    found.is_empty(),
                    passes,
                    "{policy:?} {host} {token}: {found:?}"
                );
            }
        }
    }
}

#[test]
fn tokens_are_exchanged_where_their_issuers_ask_for_them() {
    let rules = rules(ScanPolicy::Strict, &[]);
    let token = token(HEADER, CLAIMS);
    for (host, path, kind, content) in [
        (
            "sts.amazonaws.com",
            "/",
            FORM,
            format!("Action=AssumeRoleWithWebIdentity&WebIdentityToken={token}"),
        ),
        (
            "sts.eu-central-1.amazonaws.com",
            "/",
            FORM,
            format!("WebIdentityToken={token}&Version=2011-06-15"),
        ),
        (
            "pypi.org",
            "/_/oidc/mint-token",
            JSON,
            format!("{{\"token\":\"{token}\"}}"),
        ),
        (
            "crates.io",
            "/api/v1/trusted_publishing/tokens",
            JSON,
            format!("{{\"jwt\":\"{token}\"}}"),
        ),
    ] {
        let request = Request::to(host, path).content(kind, &content);
        assert_eq!(request.found(&rules), Vec::<String>::new(), "{host}");
        assert!(
            !request.instead("stranger.example").found(&rules).is_empty(),
            "{host}"
        );
    }
    let note = format!("RoleArn=x&note={token}");
    let request = Request::to("sts.amazonaws.com", "/").content(FORM, &note);
    assert!(!request.found(&rules).is_empty(), "another key");
}

#[test]
fn a_token_goes_to_the_very_host_that_it_names() {
    let claims =
        r#"{"iss":"https://login.corp.example/realm","aud":["corp.example"],"sub":"f81d"}"#;
    let token = token(HEADER, claims);
    let bearer = format!("Bearer {token}");
    for policy in policies() {
        let rules = rules(policy, &[]);
        for (host, passes) in [
            ("login.corp.example", true),
            ("corp.example", true),
            ("evil.corp.example", false),
            ("evil.login.corp.example", false),
            ("corp.example.evil.test", false),
            ("graph.microsoft.com", true),
            ("management.azure.com", true),
            ("acme.vault.azure.net", true),
            ("registry-1.docker.io", true),
            ("evil.graph.microsoft.com", false),
            ("a.b.vault.azure.net", false),
        ] {
            let shown = Request::to(host, "/").field("authorization", &bearer);
            let found = shown.found(&rules);
            assert_eq!(found.is_empty(), passes, "{policy:?} {host}: {found:?}");
        }
        for host in ["graph.microsoft.com", "acme.vault.azure.net"] {
            let content = format!("{{\"note\":\"{token}\"}}");
            for sent in [
                Request::to(host, "/").content(JSON, &content),
                Request::to(host, &format!("/?t={token}")),
                Request::to(host, "/").field("x-any", &token),
            ] {
                assert!(!sent.found(&rules).is_empty(), "{sent:?}");
            }
        }
        let exchanged =
            format!("grant_type=access_token&service=acme.azurecr.io&access_token={token}");
        let exchange = Request::to("acme.azurecr.io", "/oauth2/exchange").content(FORM, &exchanged);
        assert_eq!(exchange.found(&rules), Vec::<String>::new());
        let elsewhere =
            Request::to("acme.azurecr.io", "/v2/x/blobs/uploads/").content(FORM, &exchanged);
        assert!(!elsewhere.found(&rules).is_empty());
    }
}

#[test]
fn tokens_of_workloads_are_exchanged_by_their_own_form() {
    let audience = |aud: &str| {
        token(
            HEADER,
            &format!(r#"{{"iss":"https://ci.corp.example","aud":"{aud}","sub":"f81d"}}"#),
        )
    };
    let azure = audience("api://AzureADTokenExchange");
    let google = audience("https://oauth2.googleapis.com/token");
    for policy in policies() {
        let rules = rules(policy, &[]);
        for (host, path, content) in [
            (
                "login.microsoftonline.com",
                "/f81d4fae/oauth2/v2.0/token",
                format!("grant_type=client_credentials&client_assertion={azure}&scope=x"),
            ),
            (
                "oauth2.googleapis.com",
                "/token",
                format!(
                    "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion={google}"
                ),
            ),
        ] {
            let request = Request::to(host, path).content(FORM, &content);
            assert_eq!(request.found(&rules), Vec::<String>::new(), "{host}");
            for other in ["stranger.example", &format!("evil.{host}")] {
                assert!(!request.instead(other).found(&rules).is_empty(), "{other}");
            }
        }
    }
}

#[test]
fn however_long_its_parts_are_a_token_is_found() {
    let rules = rules(ScanPolicy::Tiered, &[]);
    for (header, claims) in [
        (10, 10),
        (2000, 10),
        (2900, 100),
        (10, 5000),
        (10, 8000),
        (1500, 6000),
    ] {
        let header = format!(
            r#"{{"alg":"RS256","x5c":["{}"]}}"#,
            "MIIC".repeat(header / 4)
        );
        let claims = format!(
            r#"{{"sub":"f81d4fae","groups":["{}"]}}"#,
            "ab12".repeat(claims / 4)
        );
        let token = token(&header, &claims);
        let found = Request::to("stranger.example", "/")
            .field("x-any", &token)
            .found(&rules);
        assert!(!found.is_empty(), "{} bytes in a field", token.len());
        let content = format!("{{\"a\":\"{token}\"}}");
        let found = Request::to("stranger.example", "/")
            .content(JSON, &content)
            .found(&rules);
        assert!(!found.is_empty(), "{} bytes in content", token.len());
    }
}
