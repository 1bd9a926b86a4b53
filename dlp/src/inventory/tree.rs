//! Files of indented keys: the part of YAML that gh, glab and kubectl write.

use super::{HeldValues, host_of};
use crate::validate::base64;

/// Deepest nesting that is followed.
const DEPTH_MAX: usize = 32;

/// A key with its value and the keys above it.
struct KeyNode<'a> {
    above: Vec<&'a str>,
    key: &'a str,
    value: &'a str,
}

/// Calls `visit` for every `key: value` with a value.
fn each<'a>(text: &'a str, visit: &mut dyn FnMut(&KeyNode<'a>)) {
    let mut above: Vec<(usize, &str)> = Vec::new();
    for line in text.lines() {
        let mut body = line.trim_start();
        let mut indent = line.len().saturating_sub(body.len());
        while let Some(rest) = body.strip_prefix("- ") {
            body = rest.trim_start();
            indent = line.len().saturating_sub(body.len());
        }
        if body.starts_with('#') {
            continue;
        }
        let Some((key, value)) = body.split_once(':') else {
            continue;
        };
        let (key, value) = (
            super::lines::unquoted(key.trim()),
            super::lines::unquoted(value.trim()),
        );
        above.retain(|(other, _)| *other < indent);
        if value.is_empty() {
            if above.len() < DEPTH_MAX {
                above.push((indent, key));
            }
            continue;
        }
        let above = above.iter().map(|(_, key)| *key).collect();
        visit(&KeyNode { above, key, value });
    }
}

/// A host, and below it a token.
pub(super) fn hosts(text: &str, into: &mut HeldValues<'_>) {
    each(text, &mut |node| {
        if matches!(
            node.key,
            "oauth_token" | "token" | "job_token" | "client_secret"
        ) {
            let named = node.above.iter().rev().find(|key| key.contains('.'));
            let host = named.copied().and_then(host_of).unwrap_or_default();
            let below = format!("*.{host}");
            let mut places = vec![host.as_str(), below.as_str()];
            if host == "github.com" {
                places.extend(["*.githubcopilot.com", "ghcr.io", "*.pkg.github.com"]);
            }
            into.add(node.value, &places);
        }
    });
}

/// Tokens, passwords and keys of users, for the servers of all clusters.
pub(super) fn kubeconfig(text: &str, into: &mut HeldValues<'_>) {
    let mut servers = Vec::new();
    each(text, &mut |node| {
        if node.key == "server" {
            servers.push(node.value);
        }
    });
    each(text, &mut |node| match node.key {
        "token" | "password" | "id-token" | "refresh-token" | "access-token" => {
            into.add(node.value, &servers);
        }
        // The key of a client signs and is never sent.
        "client-key-data" => {
            into.kept(node.value.as_bytes());
            let decoded = base64::decode(node.value.as_bytes());
            if let Some(pem) = decoded.and_then(|bytes| String::from_utf8(bytes).ok()) {
                super::private_key::read(&pem, into);
            }
        }
        _ => {}
    });
}
