//! What the policy says of a target, and what a path that a parser found names.

use std::collections::BTreeSet;

use outgate_policy::{
    Context, Facts, HostName, Peer, Policy, Process, RequestTarget, Scheme, Source, SourceKind,
    Verdict, compile,
};

/// A policy, asked about requests to one host.
pub(crate) struct Judge {
    policy: Policy,
    host: HostName,
}

impl Judge {
    pub(crate) fn new(allow: &[&str], deny: &[&str]) -> Self {
        let context = Context {
            home: "/home/me".to_owned(),
            working_directory: "/here".to_owned(),
            private_directory: "/tmp/private".to_owned(),
            ..Context::default()
        };
        let source = |kind: SourceKind, text: &str| Source {
            kind,
            place: "-a".to_owned(),
            text: text.to_owned(),
        };
        let mut sources: Vec<Source> = Vec::new();
        sources.extend(allow.iter().map(|text| source(SourceKind::Allow, text)));
        sources.extend(deny.iter().map(|text| source(SourceKind::Deny, text)));
        Self {
            policy: compile(&sources, &context).unwrap_or_else(|errors| panic!("{errors}")),
            host: HostName::parse("a.test").expect("a name"),
        }
    }

    pub(crate) fn allows(&self, target: &str) -> bool {
        let Ok(target) = RequestTarget::parse(target) else {
            return false;
        };
        let verdict = self.policy.evaluate(&Facts::Request {
            process: Process { executable: "" },
            peer: Peer::Name(&self.host),
            port: 443,
            scheme: Scheme::Https,
            method: "GET",
            target: &target,
        });
        matches!(verdict, Verdict::Allow(_))
    }
}

/// The target as it would be sent; `None` where it is refused.
pub(crate) fn sent(target: &str) -> Option<String> {
    let target = RequestTarget::parse(target).ok()?;
    Some(target.as_str().to_owned())
}

/// What may be served for a path that a parser found: it, decoded once more,
/// and both as a file system or a router that joins slashes reads them.
pub(crate) fn forms(path: &[u8]) -> BTreeSet<Vec<u8>> {
    let decoded = unescaped(path);
    let mut out = BTreeSet::new();
    for form in [path, &decoded] {
        out.insert(form.to_vec());
        let mut kept: Vec<&[u8]> = Vec::new();
        for segment in form.split(|byte| *byte == b'/') {
            match segment {
                b"" | b"." => {}
                b".." => {
                    kept.pop();
                }
                other => kept.push(other),
            }
        }
        let mut joined = b"/".to_vec();
        joined.extend(kept.join(&b'/'));
        out.insert(joined);
    }
    out
}

/// The first segment of a path, which may lack its slash.
pub(crate) fn first_segment(path: &[u8]) -> &[u8] {
    let path = path.strip_prefix(b"/").unwrap_or(path);
    path.split(|byte| *byte == b'/').next().unwrap_or(path)
}

/// Decodes valid escapes once.
pub(crate) fn unescaped(text: &[u8]) -> Vec<u8> {
    let digit = |byte: u8| {
        char::from(byte)
            .to_digit(16)
            .and_then(|d| u8::try_from(d).ok())
    };
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, tail)) = rest.split_first() {
        rest = tail;
        if byte == b'%'
            && let [high, low, after @ ..] = tail
            && let (Some(high), Some(low)) = (digit(*high), digit(*low))
        {
            out.push(high << 4 | low);
            rest = after;
        } else {
            out.push(byte);
        }
    }
    out
}
