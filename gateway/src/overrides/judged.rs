//! What stands in queries, fields and content, judged as the request it asks for.

use http::Method;
use http::header::{HeaderMap, HeaderName, HeaderValue};
use outgate_policy::{ByMethod, Reason, RequestTarget, Verdict};

use super::asks::{Asks, KEY, is_known, is_method};
use super::{asks_for_method, second, shown};
use crate::caller::Caller;
use crate::decide;
use crate::destination::peer;
use crate::target::Target;
use crate::uri_authority::named_authority;

/// What something asks for that is not allowed.
pub(super) enum Asked {
    For {
        by: String,
        what: String,
    },
    /// Nobody can tell.
    Unread(&'static str),
    /// A field of a request within, and what is wrong with it.
    Field(String),
}

impl Asked {
    /// The same for people, where it stands in the query or the content.
    pub(super) fn told(&self, place: &str) -> String {
        match self {
            Self::For { by, what } => {
                format!("{by} in the {place} asks for {what}, which the rules do not allow")
            }
            Self::Unread(what) => format!(
                "{what} in the {place} cannot be read and could ask for what the rules do not allow"
            ),
            Self::Field(what) => format!("of a request in the {place} {what}"),
        }
    }
}

/// Whether the rules allow what is asked for as well.
pub(super) fn judge(caller: &Caller, target: &Target, asks: Asks<'_>) -> Result<(), Asked> {
    match asks {
        Asks::Method { key, value } => by_method(caller, target, key, value),
        Asks::Tunnelled { key, value } => {
            let value = value.trim();
            if is_known(value) || caller.rules().names_method(value) {
                by_method(caller, target, key, value)
            } else {
                Ok(())
            }
        }
        Asks::Request { method, target: of } => {
            let to = inner(target, method, of).ok_or_else(nowhere)?;
            request(caller, &to)
        }
        Asks::Item { method, target: of } => item(caller, target, method, of),
        Asks::Field {
            method,
            target: of,
            name,
            value,
        } => {
            let to = inner(target, method, of).ok_or_else(nowhere)?;
            field(caller, &to, name, value)
        }
        Asks::Unread(what) => {
            if tells_methods_apart(caller, target) || looks_at_paths(caller, target) {
                Err(Asked::Unread(what))
            } else {
                Ok(())
            }
        }
    }
}

fn by_method(caller: &Caller, target: &Target, key: &str, value: &str) -> Result<(), Asked> {
    let by = if key == KEY {
        format!("`{key}`")
    } else {
        key.to_owned()
    };
    let checked = by_rules(caller, target, |rules| {
        outgate_policy::check_method(value, target.method.as_str(), rules)
    });
    checked.map_err(|what| Asked::For {
        by,
        what: what.to_string(),
    })
}

/// Asks what the rules say of the methods of a request.
fn by_rules<T>(caller: &Caller, target: &Target, ask: impl FnOnce(ByMethod<'_>) -> T) -> T {
    let rules = caller.rules();
    ask(ByMethod {
        allows: &|method| allows(caller, target, method),
        named: &|| rules.named_methods().collect(),
    })
}

/// A method for people: what is none may be a value of the user's.
fn told(caller: &Caller, method: &str) -> String {
    if is_known(method) || caller.rules().names_method(method) {
        method.to_owned()
    } else {
        "another method".to_owned()
    }
}

/// Whether a request that stands within another one is allowed by itself.
fn request(caller: &Caller, to: &Target) -> Result<(), Asked> {
    let method = to.method.as_str();
    if !allows(caller, to, method) {
        let by = "a request".to_owned();
        let what = format!("{} {}", told(caller, method), to.origin());
        return Err(Asked::For { by, what });
    }
    query(caller, to)
}

/// Whether the rules allow what the query of a request asks for.
pub(super) fn query(caller: &Caller, target: &Target) -> Result<(), Asked> {
    let checked = by_rules(caller, target, |rules| {
        outgate_policy::check_query(&target.resource, target.method.as_str(), rules)
    });
    checked.map_err(|asked| Asked::For {
        by: asked.by.to_owned(),
        what: asked.what.to_string(),
    })
}

/// A request of a batch in JSON. Its address is one below the batch's own place to some
/// and one below the root to others: some reading of it is allowed, and none is denied.
/// One of another host is about something else, as in hooks and crawls.
fn item(caller: &Caller, target: &Target, method: &str, of: &str) -> Result<(), Asked> {
    let method = method.trim();
    if !is_known(method) && !caller.rules().names_method(method) {
        return Ok(());
    }
    let of = of.trim();
    if let Some((_, rest)) = of.split_once("://") {
        let end = rest.find(['/', '?', '#', '\\']).unwrap_or(rest.len());
        let authority = rest.get(..end).and_then(named_authority);
        let is_other =
            authority.is_some_and(|(host, _)| caller.destination().matching(&host).is_none());
        if is_other {
            return Ok(());
        }
    }
    let readings = readings(target, method, of).ok_or_else(nowhere)?;
    let verdicts: Vec<Verdict> = readings
        .iter()
        .map(|to| decide::judged(&caller.rules(), caller.process(), to))
        .collect();
    let is_denied = |verdict: &Verdict| matches!(verdict, Verdict::Deny(denial) if denial.reason() == Reason::DenyRule);
    let is_allowed = |verdict: &Verdict| matches!(verdict, Verdict::Allow(_));
    if !verdicts.iter().any(is_allowed) || verdicts.iter().any(is_denied) {
        let by = "a request".to_owned();
        let method = told(caller, &method.to_ascii_uppercase());
        let what = format!("{method} {}", target.origin());
        return Err(Asked::For { by, what });
    }
    let allowed = readings.iter().zip(&verdicts);
    let mut allowed = allowed.filter(|(_, verdict)| is_allowed(verdict));
    allowed.try_for_each(|(to, _)| query(caller, to))
}

/// All that an address in a batch may be, below the batch's own place and the root.
fn readings(target: &Target, method: &str, of: &str) -> Option<Vec<Target>> {
    let first = inner(target, method, of)?;
    let mut found = vec![first];
    if !of.contains("://") {
        let path = match of.strip_prefix('/') {
            Some(below) => inner(target, method, below)?,
            None => inner(target, method, &format!("/{of}"))?,
        };
        found.push(path);
    }
    Some(found)
}

/// Whether a field of a request within may stand there.
fn field(caller: &Caller, to: &Target, name: &str, value: &str) -> Result<(), Asked> {
    let name = HeaderName::try_from(name);
    let value = HeaderValue::try_from(value);
    let (Ok(name), Ok(value)) = (name, value) else {
        return Ok(());
    };
    let fields = HeaderMap::from_iter([(name, value)]);
    let checked = super::check(&fields, caller.destination());
    checked.map_err(|malformed| Asked::Field(malformed.because))?;
    let fault = methods_fault(caller, to, &fields).or_else(|| second::fault(caller, to, &fields));
    fault.map_or(Ok(()), |because| Err(Asked::Field(because)))
}

/// Why a field asks for another method: any whose name holds the word and whose value is
/// one, since each framework has a name of its own for it.
pub(super) fn methods_fault(
    caller: &Caller,
    target: &Target,
    fields: &HeaderMap,
) -> Option<String> {
    let asking = fields
        .iter()
        .filter(|(name, _)| asks_for_method(name.as_str()));
    for (name, value) in asking {
        let key = shown(name.as_str());
        // What is called by nothing but such words has no other meaning.
        let is_plain = super::is_plain(name.as_str());
        let text = String::from_utf8_lossy(value.as_bytes());
        let words = text.split(|sign: char| !sign.is_ascii_alphabetic());
        // Of `VERSION-CONTROL` and its like all is one word.
        let whole = text.split(|sign: char| !sign.is_ascii_alphabetic() && sign != '-');
        for value in words.chain(whole) {
            let key = key.as_str();
            let asks = if is_plain {
                Asks::Tunnelled { key, value }
            } else if is_method(value) {
                Asks::Method { key, value }
            } else {
                continue;
            };
            if let Err(Asked::For { what, .. }) = judge(caller, target, asks) {
                return Some(format!(
                    "{key} asks for {what}, which the rules do not allow"
                ));
            }
        }
    }
    None
}

fn nowhere() -> Asked {
    Asked::For {
        by: "a request".to_owned(),
        what: "something that is no request to the same host".to_owned(),
    }
}

fn allows(caller: &Caller, target: &Target, method: &str) -> bool {
    decide::would_allow(&caller.rules(), caller.process(), target, method)
}

/// What a request in a batch is about: a path, one relative to that of the batch, or a
/// whole URL, of which the path counts.
fn inner(target: &Target, method: &str, text: &str) -> Option<Target> {
    let path = match text.split_once("://") {
        Some((_, rest)) => match rest.find('/') {
            Some(at) => rest.get(at..)?.to_owned(),
            None => "/".to_owned(),
        },
        None if text.starts_with('/') => text.to_owned(),
        None => {
            let own = target.resource.as_str();
            let own = own.split('?').next().unwrap_or_default();
            let end = own.rfind('/')?;
            format!("{}/{text}", own.get(..end)?)
        }
    };
    Some(Target {
        method: Method::from_bytes(method.trim().to_ascii_uppercase().as_bytes()).ok()?,
        resource: RequestTarget::parse(&path).ok()?,
        ..target.clone()
    })
}

/// Whether it matters by which method the request is made.
pub(super) fn tells_methods_apart(caller: &Caller, target: &Target) -> bool {
    by_rules(caller, target, |rules| rules.tells_apart())
}

/// Whether it matters where it goes.
pub(super) fn looks_at_paths(caller: &Caller, target: &Target) -> bool {
    caller.rules().looks_at_paths(peer(&target.host))
}
