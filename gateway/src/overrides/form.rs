//! Content that asks for another method than its request, or for further requests: keys
//! of queries and forms, members of JSON, the requests of a batch. Where rules tell methods
//! apart, it is judged as the request it asks for. A form that was read whole before it is
//! sent is judged by its values; one that goes on as it comes ends with the first `_method`.
//! Reads; changes nothing.

use std::fmt;
use std::sync::{Arc, Mutex};

use http::header::HeaderMap;
use http::{Method, request};
use outgate_policy::RequestTarget;

use super::asks::{Asks, KEY, Keys, Refused, Sent, is_method};
use super::media::{self, Untyped};
use super::readers::{Kind, Readers};
use super::{folded, shown};
use crate::budget::Slot;
use crate::caller::Caller;
use crate::decide;
use crate::refusal::Refusal;
use crate::target::Target;

/// Methods that rules may tell from each other, and one that no rule names.
const METHODS: [&str; 7] = ["PUT", "PATCH", "DELETE", "GET", "HEAD", "OPTIONS", "OTHER"];

/// Why a request asks for another method than the one that was judged.
///
/// # Errors
/// The refusal, which was recorded.
pub(crate) fn check_query(caller: &Caller, target: &Target) -> Result<(), Refusal> {
    let Some((_, query)) = target.resource.as_str().split_once('?') else {
        return Ok(());
    };
    // All spellings of the keys have a sign of these.
    let is_coded = query
        .bytes()
        .any(|byte| matches!(byte, b'%' | b'#') || !byte.is_ascii());
    let lower = query.to_ascii_lowercase();
    if !is_coded && !lower.contains("method") && !lower.contains("verb") {
        return Ok(());
    }
    let keys = Keys::new();
    let own = keys.own.values(query);
    let own = own.iter().map(|value| Asks::Method { key: KEY, value });
    let others = keys.others.values(query);
    let others = others.iter().filter(|value| is_method(value));
    let key = "a key for the method";
    for asks in own.chain(others.map(|value| Asks::Method { key, value })) {
        judge(caller, target, asks)
            .map_err(|asked| refusal(caller, target, &in_place(&asked, "query")))?;
    }
    Ok(())
}

/// Why a field asks for another method: any whose name holds the word and whose value is
/// one, since each framework has a name of its own for it.
///
/// # Errors
/// The refusal, which was recorded.
pub(crate) fn check_methods(
    caller: &Caller,
    target: &Target,
    fields: &HeaderMap,
) -> Result<(), Refusal> {
    for (name, value) in fields {
        if !asks_for_method(name.as_str()) {
            continue;
        }
        let text = String::from_utf8_lossy(value.as_bytes());
        let words = text.split(|sign: char| !sign.is_ascii_alphabetic());
        for value in words.filter(|word| is_method(word)) {
            let key = name.as_str();
            judge(caller, target, Asks::Method { key, value }).map_err(|asked| {
                let what = match &asked {
                    Asked::For { what, .. } => what.as_str(),
                    Asked::Unread(what) => what,
                };
                let name = shown(key);
                let because = format!("{name} asks for {what}, which the rules do not allow");
                refusal(caller, target, &because)
            })?;
        }
    }
    Ok(())
}

/// Whether a field of this name may be taken for the method of its request. The one that
/// asks beforehand about a request that comes later (Fetch 4.8) is none.
fn asks_for_method(name: &str) -> bool {
    let holds = |word: &str| name.contains(word);
    (holds("method") || holds("verb")) && folded(name) != "access-control-request-method"
}

/// Why nobody can tell whether the content of a request asks for another method.
///
/// # Errors
/// The refusal, which was recorded.
pub(crate) fn check_media(
    caller: &Caller,
    target: &Target,
    fields: &HeaderMap,
) -> Result<(), Refusal> {
    match media::hides(fields, untyped(target)) {
        Some(what) if tells_methods_apart(caller, target) => {
            let because = format!(
                "content in {what} could ask for another method, and the rules tell methods apart"
            );
            Err(refusal(caller, target, &because))
        }
        Some(_) | None => Ok(()),
    }
}

/// What is told where it asks for something in the query or the content.
fn in_place(asked: &Asked, place: &str) -> String {
    match asked {
        Asked::For { by, what } => {
            format!("{by} in the {place} asks for {what}, which the rules do not allow")
        }
        Asked::Unread(what) => format!(
            "{what} in the {place} cannot be read and could ask for another method, and the rules tell methods apart"
        ),
    }
}

/// What something asks for that is not allowed.
enum Asked {
    For {
        by: String,
        what: String,
    },
    /// Nobody can tell.
    Unread(&'static str),
}

/// Whether the rules allow what is asked for as well.
fn judge(caller: &Caller, target: &Target, asks: Asks<'_>) -> Result<(), Asked> {
    let asked = match asks {
        Asks::Method { key, value } => {
            let by = if key == KEY {
                format!("`{key}`")
            } else {
                key.to_owned()
            };
            let method = value.trim().to_ascii_uppercase();
            let is_token =
                method.len() <= 16 && method.bytes().all(|byte| byte.is_ascii_uppercase());
            if !is_token {
                let what = "something that is no method".to_owned();
                Asked::For { by, what }
            } else if method == target.method.as_str() || allows(caller, target, &method) {
                return Ok(());
            } else {
                return Err(Asked::For { by, what: method });
            }
        }
        Asks::Request { method, target: of } => {
            let method = method.to_ascii_uppercase();
            let by = "a request".to_owned();
            return match inner(target, of) {
                Some(inner) if allows(caller, &inner, &method) => Ok(()),
                Some(inner) => Err(Asked::For {
                    by,
                    what: format!("{method} {}", inner.origin()),
                }),
                None => Err(Asked::For {
                    by,
                    what: "something that is no request to the same host".to_owned(),
                }),
            };
        }
        Asks::Unread(what) => Asked::Unread(what),
    };
    if tells_methods_apart(caller, target) {
        Err(asked)
    } else {
        Ok(())
    }
}

fn allows(caller: &Caller, target: &Target, method: &str) -> bool {
    decide::would_allow(&caller.rules(), caller.process(), target, method)
}

/// What a request in a batch is about: a path, one relative to that of the batch, or a
/// whole URL, of which the path counts.
fn inner(target: &Target, text: &str) -> Option<Target> {
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
        resource: RequestTarget::parse(&path).ok()?,
        ..target.clone()
    })
}

/// Whether it matters by which method the request is made.
fn tells_methods_apart(caller: &Caller, target: &Target) -> bool {
    let mut methods = METHODS.iter();
    methods.any(|method| !allows(caller, target, method))
}

/// What content of no type may be: programs read a form in that of a POST, while that of
/// others is mostly a file.
fn untyped(target: &Target) -> Untyped {
    if target.method == Method::POST {
        Untyped::Form
    } else {
        Untyped::Opaque
    }
}

/// Records and tells why.
fn refusal(caller: &Caller, target: &Target, because: &str) -> Refusal {
    let subject = format!("{} {}", target.method, target.origin());
    let refusal = Refusal::own("override", &subject, because);
    caller.refused_request(target, &refusal);
    refusal
}

/// Content that is looked at on its way.
pub(crate) struct Form {
    caller: Arc<Caller>,
    target: Target,
    kind: Kind,
    readers: Readers,
    slot: Slot,
}

impl fmt::Debug for Form {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // What it holds may be a credential.
        formatter.debug_struct("Form").finish_non_exhaustive()
    }
}

/// Content asks for another method.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the content asks for another method than the request")]
pub(crate) struct Overridden;

impl Form {
    /// The content of this request, if a method could change by it and if that matters.
    pub(crate) fn of(caller: &Arc<Caller>, target: &Target, head: &request::Parts) -> Option<Self> {
        let kind = Kind::of(&head.headers, &target.resource, untyped(target))?;
        tells_methods_apart(caller, target).then(|| Self {
            caller: Arc::clone(caller),
            target: target.clone(),
            readers: Readers::new(&kind, Sent::AsItComes),
            kind,
            slot: Arc::new(Mutex::default()),
        })
    }

    /// Whether it is read whole where it can be: some programs act on a form that did not
    /// come to its end. JSON that did not is none.
    pub(crate) fn is_held(&self) -> bool {
        self.kind.is_form()
    }

    /// The same of one that is read whole before anything is sent.
    pub(crate) fn hold(&mut self) {
        self.readers = Readers::new(&self.kind, Sent::AtTheEnd);
    }

    /// Where it will be said why it ended.
    pub(crate) fn slot(&self) -> Slot {
        Arc::clone(&self.slot)
    }

    /// Looks at the next bytes, which may only go on then.
    ///
    /// # Errors
    /// They ask for another method.
    pub(crate) fn read(&mut self, bytes: &[u8]) -> Result<(), Overridden> {
        let (caller, target) = (&self.caller, &self.target);
        let mut asked = None;
        let mut judge = |asks: Asks<'_>| {
            judge(caller, target, asks).map_err(|found| {
                asked.get_or_insert(found);
                Refused
            })
        };
        let read = self.readers.read(bytes, &mut judge);
        self.said(read, asked)
    }

    /// The end.
    ///
    /// # Errors
    /// What was left asks for another method.
    pub(crate) fn finish(&mut self) -> Result<(), Overridden> {
        let (caller, target) = (&self.caller, &self.target);
        let mut asked = None;
        let mut judge = |asks: Asks<'_>| {
            judge(caller, target, asks).map_err(|found| {
                asked.get_or_insert(found);
                Refused
            })
        };
        let read = self.readers.finish(&mut judge);
        self.said(read, asked)
    }

    fn said(&self, read: Result<(), Refused>, asked: Option<Asked>) -> Result<(), Overridden> {
        let (Err(Refused), Some(asked)) = (read, asked) else {
            return Ok(());
        };
        let place = if self.is_held() { "form" } else { "content" };
        let refusal = refusal(&self.caller, &self.target, &in_place(&asked, place));
        self.caller.tell(&refusal);
        if let Ok(mut slot) = self.slot.lock() {
            slot.get_or_insert(refusal);
        }
        Err(Overridden)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_for_the_method_is_known_by_its_name() {
        for (name, asks) in [
            ("x-method", true),
            ("method", true),
            ("_method", true),
            ("method-override", true),
            ("x_http_verb", true),
            ("x-rest-method", true),
            ("x-http-requestmethod", true),
            ("verb-override", true),
            ("access-control-request-method", false),
            ("accept", false),
            ("x-request-id", false),
        ] {
            assert_eq!(asks_for_method(name), asks, "{name}");
        }
    }
}
