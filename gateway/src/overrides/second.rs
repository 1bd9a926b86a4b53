//! Fields that name a second target: where a copy goes to or comes from (RFC 4918
//! 10.3), and paths that some origins take in the place of the one that was judged.
//! The first are judged as a request to what they name; the others are refused
//! where rules look at paths. Reads; changes nothing.

use http::Method;
use http::header::{HeaderMap, HeaderName, HeaderValue};
use outgate_policy::{DenialReason, RequestTarget, Scheme, Standing, Verdict};
use outgate_record::Reason;

use crate::caller::Caller;
use crate::decide;
use crate::destination::peer;
use crate::refusal::Refusal;
use crate::target::Target;
use crate::uri_authority::named_authority;

use super::{folded, shown};

/// What a field may do to a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FieldRole {
    /// Something is written there, by the method of the request.
    Written,
    /// Something is taken away there and written to the path of the request.
    Renamed,
    /// Something is read from there.
    Read,
    /// It is taken for the path of the request.
    Path,
}

/// Of `X-Forwarded-…` and `X-Original-…`, what never is a path.
const NO_PATH: [&str; 11] = [
    "access-token",
    "by",
    "client-cert",
    "content-type",
    "email",
    "filename",
    "for",
    "groups",
    "preferred-username",
    "server",
    "user",
];

/// Names that end like the name of a path, of fields that programs send about others.
const OTHERS: [&str; 12] = [
    "hx-",
    "next-url",
    "sec-",
    "x-amz-",
    "x-callback-",
    "x-datadog-",
    "x-github-",
    "x-gitlab-",
    "x-goog-",
    "x-ms-",
    "x-sentry-",
    "x-webhook-",
];

/// Ends of names of fields that hold a path or a query and nothing else, so that a value
/// without a slash is one as well.
const PATHS: [&str; 12] = [
    "-prefix",
    "-pathname",
    "-context",
    "-basepath",
    "-base",
    "-root",
    "script-name",
    "path-info",
    "query-string",
    "x-invoke-query",
    "x-accel-mapping",
    "x-sendfile-type",
];

/// Whether no field names a second target that the rules do not allow.
///
/// # Errors
/// The refusal, which was recorded.
pub(super) fn check_fields(
    caller: &Caller,
    target: &Target,
    fields: &HeaderMap,
) -> Result<(), Refusal> {
    match fault(caller, target, fields) {
        Some(because) => Err(refusal(caller, target, &because)),
        None => Ok(()),
    }
}

/// What a field names that the rules do not allow.
pub(super) fn fault(caller: &Caller, target: &Target, fields: &HeaderMap) -> Option<String> {
    if target.method.as_str() == "MOVE" && fields.contains_key("destination") {
        // The source is deleted (RFC 4918 9.9).
        let own = Second {
            target: Target {
                method: Method::DELETE,
                ..target.clone()
            },
            needs_rule: false,
        };
        let standing = worst(caller, target, &[own]);
        if standing != Standing::Allowed {
            return Some(format!("MOVE asks for DELETE, {}", standing.why()));
        }
    }
    for (name, value) in fields {
        let Some(role) = role(name) else {
            continue;
        };
        let rules = caller.rules();
        let looks = || rules.looks_at_paths(peer(&target.host));
        let because = match role {
            FieldRole::Path if holds_path(name, value, target) && looks() => {
                "may ask for another path than the one judged"
            }
            FieldRole::Path => continue,
            FieldRole::Written | FieldRole::Renamed | FieldRole::Read => match seconds(
                caller,
                target,
                value,
                (role, &methods(role, target, fields)),
            ) {
                None if looks() => "names a second target that cannot be read",
                None => continue,
                Some(seconds) => match worst(caller, target, &seconds) {
                    Standing::Allowed => continue,
                    standing => {
                        let (name, why) = (shown(name.as_str()), standing.why());
                        return Some(format!("{name} names a second target, {why}"));
                    }
                },
            },
        };
        return Some(format!("{} {because}", shown(name.as_str())));
    }
    None
}

/// What a field of this name does, if anything.
pub(super) fn role(name: &HeaderName) -> Option<FieldRole> {
    let name = folded(name.as_str());
    let ends = |list: &[&str]| list.iter().any(|end| name.ends_with(end));
    if name == "destination" {
        return Some(FieldRole::Written);
    }
    if ends(&["-rename-source"]) {
        return Some(FieldRole::Renamed);
    }
    if ends(&["-copy-source", "-copy-from"]) {
        return Some(FieldRole::Read);
    }
    let family = name.strip_prefix("x-forwarded-");
    if let Some(rest) = family.or_else(|| name.strip_prefix("x-original-")) {
        return (!NO_PATH.contains(&rest)).then_some(FieldRole::Path);
    }
    let is_path = ends(&[
        "script-name",
        "path-info",
        "-path",
        "-uri",
        "-url",
        "-rewrite",
        "query-string",
        "x-invoke-query",
    ]);
    // `x-ms-original-url` of Azure, and whoever else puts the path there that a proxy got.
    let is_original = is_path && name.contains("-original-");
    let is_others = OTHERS.iter().any(|begin| name.starts_with(begin));
    let is_mapping = ["x-accel-mapping", "x-sendfile-type"].contains(&&*name);
    (is_mapping || is_original || is_path && !is_others).then_some(FieldRole::Path)
}

/// Whether a value may be taken for a path: not the whole address of something
/// elsewhere.
fn holds_path(name: &HeaderName, value: &HeaderValue, target: &Target) -> bool {
    let text = String::from_utf8_lossy(value.as_bytes()).to_ascii_lowercase();
    let name = folded(name.as_str());
    if PATHS.iter().any(|end| name.ends_with(end)) {
        return !text.trim().is_empty();
    }
    let is_link = !name.starts_with("x-forwarded") && !name.starts_with("x-original");
    let elsewhere = absolute(text.trim())
        .and_then(|(_, authority, _)| named_authority(authority))
        .is_some_and(|(host, _)| host != target.host);
    (text.contains(['/', '\\']) || text.contains("%2f")) && !(is_link && elsewhere)
}

/// A target that is judged beside the first.
struct Second {
    target: Target,
    /// Whether it must be allowed, and not only be denied by nothing.
    needs_rule: bool,
}

impl Second {
    /// What the rules say of it beside their verdict on the request that names it.
    fn standing(&self, caller: &Caller, own: &Verdict) -> Standing {
        let verdict = decide::judged(&caller.rules(), caller.process(), &self.target);
        let verdict = verdict.beside(own);
        match &verdict {
            Verdict::Deny(denial)
                if !self.needs_rule && denial.reason() != DenialReason::DenyRule =>
            {
                Standing::Allowed
            }
            Verdict::Allow(_) | Verdict::Deny(_) => Standing::of(own, &verdict),
        }
    }
}

/// The worst of what the rules say of the targets that one field names.
fn worst(caller: &Caller, target: &Target, seconds: &[Second]) -> Standing {
    let own = decide::judged(&caller.rules(), caller.process(), target);
    let mut found = Standing::Allowed;
    for second in seconds {
        match second.standing(caller, &own) {
            Standing::Denied => return Standing::Denied,
            Standing::Stricter => found = Standing::Stricter,
            Standing::Allowed => {}
        }
    }
    found
}

/// Scheme, authority and the rest of the URL of a request.
pub(super) fn absolute(text: &str) -> Option<(Scheme, &str, &str)> {
    let (scheme, rest) = text.split_once("://")?;
    let scheme = match scheme.to_ascii_lowercase().as_str() {
        "http" => Scheme::Http,
        "https" => Scheme::Https,
        _ => return None,
    };
    let end = rest.find(['/', '?', '#', '\\']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at_checked(end)?;
    Some((scheme, authority, path))
}

/// By which methods a second target is asked for, and whether each must be allowed.
fn methods(role: FieldRole, target: &Target, fields: &HeaderMap) -> Vec<(Method, bool)> {
    // What is there already is deleted first, unless this says otherwise (RFC 4918 10.6).
    let says_so = |value: &HeaderValue| value.as_bytes().trim_ascii().eq_ignore_ascii_case(b"f");
    let mut said = fields.get_all("overwrite").iter();
    let keeps = fields.contains_key("overwrite") && said.all(says_so);
    let written = vec![(target.method.clone(), true), (Method::PUT, false)];
    match role {
        FieldRole::Read => vec![(Method::GET, true)],
        FieldRole::Written if keeps => written,
        FieldRole::Written | FieldRole::Renamed | FieldRole::Path => {
            [written, vec![(Method::DELETE, false)]].concat()
        }
    }
}

/// What a field names, as requests; `None` where nobody can tell.
fn seconds(
    caller: &Caller,
    target: &Target,
    value: &HeaderValue,
    (role, methods): (FieldRole, &[(Method, bool)]),
) -> Option<Vec<Second>> {
    let text = value.to_str().ok()?.trim();
    let whole = absolute(text);
    let path = match (whole, role) {
        (Some((_, _, "")), _) => "/".to_owned(),
        (Some((_, _, path)), _) => path.to_owned(),
        // A name relative to nothing in particular is one below the root to stores.
        (None, FieldRole::Read) if !text.starts_with('/') && !text.contains("://") => {
            format!("/{text}")
        }
        (None, _) => text.to_owned(),
    };
    // A reference with an authority and without a scheme.
    if whole.is_none() && path.starts_with("//") {
        return None;
    }
    let resource = RequestTarget::parse(&path).ok()?;
    let mut found = Vec::new();
    for (method, needs_rule) in methods {
        let needs_rule = *needs_rule;
        let own = Target {
            method: method.clone(),
            resource: resource.clone(),
            ..target.clone()
        };
        if let Some((scheme, authority, _)) = whole {
            let (host, port) = named_authority(authority)?;
            let is_own = caller.destination().matching(&host).is_some()
                && port.is_none_or(|port| port == target.port);
            if !is_own {
                let port = port.unwrap_or(scheme.default_port());
                let target = Target {
                    host,
                    port,
                    scheme,
                    ..own.clone()
                };
                found.push(Second { target, needs_rule });
            }
        }
        // Stores name the bucket in the host, and in front of the path of a source.
        let inner = path.get(1..).and_then(|rest| rest.find('/'));
        let inner = inner.and_then(|at| path.get(at + 1..));
        if let Some(inner) = inner.filter(|_| role == FieldRole::Read) {
            let target = Target {
                resource: RequestTarget::parse(inner).ok()?,
                ..own.clone()
            };
            let needs_rule = false;
            found.push(Second { target, needs_rule });
        }
        // Some take the path of any URL for one of their own.
        found.push(Second {
            target: own,
            needs_rule,
        });
    }
    Some(found)
}

/// Records and tells why.
fn refusal(caller: &Caller, target: &Target, because: &str) -> Refusal {
    let subject = format!("{} {}", target.method, target.origin());
    let refusal = Refusal::own(Reason::Override, &subject, because);
    caller.refused_request(target, &refusal);
    refusal
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_known_by_its_name() {
        for (name, expected) in [
            ("destination", Some(FieldRole::Written)),
            ("x-ms-rename-source", Some(FieldRole::Renamed)),
            ("x-amz-copy-source", Some(FieldRole::Read)),
            ("x-oss-copy-source", Some(FieldRole::Read)),
            ("x-copy-from", Some(FieldRole::Read)),
            ("script_name", Some(FieldRole::Path)),
            ("x-copy.from", Some(FieldRole::Read)),
            ("path~info", Some(FieldRole::Path)),
            ("x-script-name", Some(FieldRole::Path)),
            ("x_script_name", Some(FieldRole::Path)),
            ("path_info", Some(FieldRole::Path)),
            ("request-uri", Some(FieldRole::Path)),
            ("x-matched-path", Some(FieldRole::Path)),
            ("x-invoke-path", Some(FieldRole::Path)),
            ("x-invoke-query", Some(FieldRole::Path)),
            ("query_string", Some(FieldRole::Path)),
            ("x-envoy-original-path", Some(FieldRole::Path)),
            ("x-middleware-rewrite", Some(FieldRole::Path)),
            ("x-forwarded-prefix", Some(FieldRole::Path)),
            ("x_forwarded_prefix", Some(FieldRole::Path)),
            ("x-original-pathname", Some(FieldRole::Path)),
            ("x-forwarded-for", None),
            ("x-forwarded-client-cert", None),
            ("x-forwarded-access-token", None),
            ("x-original-content-type", None),
            ("x-amz-copy-source-range", None),
            ("x-amz-object-path", None),
            ("x-github-api-version", None),
            ("x-goog-upload-url", None),
            ("hx-current-url", None),
            ("next-url", None),
            ("referer", None),
            ("origin", None),
            ("sourcemap", None),
            ("accept", None),
            ("cookie", None),
            ("user-agent", None),
        ] {
            assert_eq!(role(&HeaderName::from_static(name)), expected, "{name}");
        }
    }
}
