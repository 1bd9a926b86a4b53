//! JSON Web Tokens (RFC 7519, RFC 7515): whether a text is one, and which hosts
//! it names as its issuer and its audience.
//!
//! Signatures are not checked: there is no key. A token that names a host may go
//! there; somebody who can write a token needs no leak of it.

use serde_json::{Map, Value};

use crate::validate::json;

/// Most hosts that one token is asked for.
const HOSTS_MAX: usize = 16;

/// Issuers whose tokens are used at hosts that the token does not name.
const ELSEWHERE: [(&str, &[&str]); 4] = [
    ("auth.openai.com", &["chatgpt.com", "api.openai.com"]),
    ("accounts.google.com", &["oauth2.googleapis.com"]),
    ("sts.windows.net", &["login.microsoftonline.com"]),
    (
        "token.actions.githubusercontent.com",
        &["sts.amazonaws.com", "sts.googleapis.com"],
    ),
];

/// An audience that is no host: who exchanges tokens of others for those of Entra
/// ("Workload identity federation").
const EXCHANGE: (&str, &str) = ("api://azureadtokenexchange", "login.microsoftonline.com");

/// Whether a text is a token: a header that names an algorithm, claims that say
/// something, and not the token of every introduction.
pub(crate) fn is(token: &[u8]) -> bool {
    let mut parts = token.split(|byte| *byte == b'.');
    let header = parts.next().and_then(json::object);
    let claims = parts.next().and_then(json::object);
    let (Some(header), Some(claims)) = (header, claims) else {
        return false;
    };
    let signed = header.get("alg").and_then(Value::as_str);
    let is_signed = signed.is_some_and(|algorithm| !algorithm.eq_ignore_ascii_case("none"));
    let subject = claims.get("sub").and_then(Value::as_str);
    is_signed && !claims.is_empty() && subject != Some("1234567890")
}

/// The hosts that a token names as issuer or audience, and those at which its issuer's are
/// used. Whoever has a name below one of them need not be who is named.
pub(crate) fn hosts(token: &[u8]) -> Vec<String> {
    let claims = token
        .split(|byte| *byte == b'.')
        .nth(1)
        .and_then(json::object);
    let mut hosts = Vec::new();
    for name in claims.iter().flat_map(named) {
        let elsewhere = ELSEWHERE.iter().find(|(issuer, _)| *issuer == name);
        let elsewhere = elsewhere.map(|(_, hosts)| *hosts).unwrap_or_default();
        hosts.push(name);
        hosts.extend(elsewhere.iter().map(|host| (*host).to_owned()));
    }
    hosts
}

fn named(claims: &Map<String, Value>) -> Vec<String> {
    let mut hosts = Vec::new();
    for claim in ["iss", "aud", "azp", "htu"] {
        match claims.get(claim) {
            Some(Value::String(text)) => hosts.extend(host(text)),
            Some(Value::Array(items)) => {
                let texts = items.iter().take(HOSTS_MAX).filter_map(Value::as_str);
                hosts.extend(texts.filter_map(host));
            }
            _ => {}
        }
    }
    hosts.truncate(HOSTS_MAX);
    // Projects of Supabase name themselves instead of their host.
    if claims.get("iss").and_then(Value::as_str) == Some("supabase")
        && let Some(project) = claims.get("ref").and_then(Value::as_str)
        && project.bytes().all(|byte| byte.is_ascii_alphanumeric())
    {
        hosts.push(format!("{project}.supabase.co"));
    }
    hosts
}

/// The host of a URL, or of a text that is a host with two labels or more. Names
/// of whole registries are not hosts.
fn host(text: &str) -> Option<String> {
    let (exchange, of_exchange) = EXCHANGE;
    if text.eq_ignore_ascii_case(exchange) {
        return Some(of_exchange.to_owned());
    }
    let rest = text.split_once("://").map_or(text, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next()?;
    let authority = authority.rsplit('@').next()?;
    let name = authority
        .split(':')
        .next()?
        .trim_end_matches('.')
        .to_ascii_lowercase();
    let labels = name.split('.').count();
    let good = name.split('.').all(|label| {
        !label.is_empty()
            && label
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    });
    (labels >= 2 && good && name.len() <= 253 && !is_shared(&name)).then_some(name)
}

/// Names below which strangers have hosts: public suffixes, and names of clouds that give
/// each customer one below.
fn is_shared(name: &str) -> bool {
    const CLOUDS: [&str; 6] = [
        "amazonaws.com",
        "amazonaws.com.cn",
        "azure.com",
        "windows.net",
        "googleapis.com",
        "googleusercontent.com",
    ];
    let is_public = psl::suffix_str(name).is_some_and(|suffix| suffix == name);
    is_public || CLOUDS.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::{hosts, is};
    use crate::validate::base64;

    fn token(header: &str, claims: &str) -> Vec<u8> {
        let part = |text: &str| base64::encode(text.as_bytes(), base64::URL);
        [
            part(header),
            part(claims),
            b"c2lnbmF0dXJlc2lnbmF0dXJl".to_vec(),
        ]
        .join(&b'.')
    }

    #[test]
    fn a_token_is_signed_and_says_something() {
        let header = r#"{"alg":"HS256","typ":"JWT"}"#;
        assert!(is(&token(header, r#"{"sub":"4711"}"#)));
        // The example of RFC 7519 3.1.
        assert!(is(b"eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ.dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"));
        assert!(!is(&token(header, "{}")));
        assert!(!is(&token(
            header,
            r#"{"sub":"1234567890","name":"John Doe"}"#
        )));
        assert!(!is(&token(r#"{"alg":"none"}"#, r#"{"sub":"4711"}"#)));
        assert!(!is(&token(r#"{"typ":"JWT"}"#, r#"{"sub":"4711"}"#)));
        assert!(!is(&token("[1]", r#"{"sub":"4711"}"#)));
        assert!(!is(b"eyJ.eyJ.x"));
    }

    #[test]
    #[expect(clippy::too_many_lines, reason = "one table")]
    fn a_token_may_go_where_it_says() {
        let check = |claims: &str, host: &str, expected: bool| {
            let token = token(r#"{"alg":"RS256"}"#, claims);
            let found = hosts(&token).iter().any(|own| own == host);
            assert_eq!(found, expected, "{claims} to {host}");
        };
        check(
            r#"{"iss":"https://login.example.org/realm"}"#,
            "login.example.org",
            true,
        );
        check(
            r#"{"iss":"https://login.example.org/realm"}"#,
            "evil.test",
            false,
        );
        check(
            r#"{"iss":"https://login.example.org/realm"}"#,
            "example.org",
            false,
        );
        check(r#"{"iss":"https://example.org"}"#, "example.org", true);
        check(r#"{"iss":"https://example.org"}"#, "api.example.org", false);
        check(r#"{"aud":"example.org"}"#, "evil.example.org", false);
        check(
            r#"{"iss":"https://sts.windows.net/f81d4fae/"}"#,
            "login.microsoftonline.com",
            true,
        );
        check(
            r#"{"aud":"api://AzureADTokenExchange"}"#,
            "login.microsoftonline.com",
            true,
        );
        check(r#"{"iss":"https://example.org"}"#, "evilexample.org", false);
        check(
            r#"{"aud":["api.example.org","b.example.net:443"]}"#,
            "b.example.net",
            true,
        );
        check(
            r#"{"aud":"https://evil.test@api.example.org/"}"#,
            "evil.test",
            false,
        );
        check(r#"{"iss":"joe","aud":"account"}"#, "joe", false);
        check(r#"{"aud":"com"}"#, "example.com", false);
        check(r#"{"aud":"co.uk"}"#, "evil.co.uk", false);
        check(r#"{"aud":"github.io"}"#, "evil.github.io", false);
        check(r#"{"aud":"a.github.io"}"#, "a.github.io", true);
        check(
            r#"{"iss":"https://netlify.app"}"#,
            "evil.netlify.app",
            false,
        );
        check(
            r#"{"iss":"https://amazonaws.com"}"#,
            "evil.s3.amazonaws.com",
            false,
        );
        check(r#"{"iss":"https://fly.dev"}"#, "evil.fly.dev", false);
        check(r#"{"aud":"https://run.app"}"#, "evil.a.run.app", false);
        check(r#"{"aud":"https://web.app"}"#, "evil.web.app", false);
        check(
            r#"{"aud":"https://s3.amazonaws.com"}"#,
            "evil.s3.amazonaws.com",
            false,
        );
        check(
            r#"{"aud":"https://management.core.windows.net/"}"#,
            "management.core.windows.net",
            true,
        );
        check(
            r#"{"aud":"https://vault.azure.com"}"#,
            "evil.azure.com",
            false,
        );
        check(
            r#"{"iss":"supabase","ref":"abcdefghijklmnopqrst"}"#,
            "abcdefghijklmnopqrst.supabase.co",
            true,
        );
        check(r#"{"iss":"https://auth.openai.com"}"#, "chatgpt.com", true);
        check("{}", "", false);
    }
}
