//! What of a policy does not hold on this machine, or does less than its author may think: in
//! words, for who checks it.

use outgate_policy::{Effect, Policy};

use crate::show;

/// Paths that must be there and are not, in words.
pub(crate) fn missing(policy: &Policy) -> Vec<String> {
    let files = policy.filesystem();
    let grants = files.read.iter().chain(&files.write);
    grants
        .filter(|grant| !grant.optional && show::is_absent(grant))
        .map(|grant| {
            let (place, path) = (&grant.place, &grant.path);
            format!("{place}: `{path}` is not on this machine, so a run here is refused")
        })
        .collect()
}

/// Rules that do less, or more, than their authors may think where TLS stays
/// closed, in words.
pub(crate) fn unseen(policy: &Policy) -> Vec<String> {
    policy
        .unseen()
        .map(|rule| {
            let (place, text) = (&rule.place, &rule.text);
            let (effect, repair) = match rule.effect {
                Effect::Allow | Effect::Only => (
                    "it allows nothing over TLS",
                    if policy.inspect_of(rule).is_some() {
                        "take `inspect` out, and allow the whole host with `https://HOST`"
                    } else {
                        "allow the whole host with `https://HOST`"
                    },
                ),
                Effect::Deny => (
                    "TLS to every host it covers is denied",
                    if text.contains("://") {
                        "deny the whole host"
                    } else {
                        "write `http://` before the host, or deny the whole host"
                    },
                ),
            };
            format!(
                "{place}: `{text}`: `[tls] intercept = \"never\"` forbids to look inside TLS, so \
                 {effect}\n  hint: {repair}, or write `intercept = \"when-needed\"`"
            )
        })
        .collect()
}
