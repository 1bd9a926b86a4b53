//! Content that asks for another method than its request, or for further requests: keys
//! of queries and forms, members of JSON, the requests of a batch. Where rules tell methods
//! apart, it is judged as the request it asks for. A form that was read whole before it is
//! sent is judged by its values; one that goes on as it comes ends with the first `_method`.
//! Reads; changes nothing.

use std::fmt;
use std::sync::{Arc, Mutex};

use http::header::HeaderMap;
use http::{Method, request};

use super::asks::{Asks, Refused, Sent};
use super::judged::{self, Asked, judge, looks_at_paths, tells_methods_apart};
use super::media::{self, Untyped};
use super::readers::{Kind, Looks, Readers};
use crate::budget::Slot;
use crate::caller::Caller;
use crate::refusal::Refusal;
use crate::target::Target;

/// Why a request asks for another method than the one that was judged.
///
/// # Errors
/// The refusal, which was recorded.
pub(crate) fn check_query(caller: &Caller, target: &Target) -> Result<(), Refusal> {
    judged::query(caller, target).map_err(|asked| refusal(caller, target, &asked.told("query")))
}

/// Why a field asks for another method.
///
/// # Errors
/// The refusal, which was recorded.
pub(crate) fn check_methods(
    caller: &Caller,
    target: &Target,
    fields: &HeaderMap,
) -> Result<(), Refusal> {
    match judged::methods_fault(caller, target, fields) {
        Some(because) => Err(refusal(caller, target, &because)),
        None => Ok(()),
    }
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
    let Some(what) = media::hides(fields, untyped(target)) else {
        return Ok(());
    };
    let because = if tells_methods_apart(caller, target) {
        format!("content in {what} could ask for another method, and the rules tell methods apart")
    } else if media::holds_requests(fields) && looks_at_paths(caller, target) {
        format!("content in {what} could hold requests, and the rules look at their paths")
    } else {
        return Ok(());
    };
    Err(refusal(caller, target, &because))
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
    /// The content of this request, if a method could change by it, or if it may hold
    /// further requests, and if that matters.
    pub(crate) fn of(caller: &Arc<Caller>, target: &Target, head: &request::Parts) -> Option<Self> {
        let looks = if tells_methods_apart(caller, target) {
            Looks::Methods
        } else if looks_at_paths(caller, target) {
            Looks::Paths
        } else {
            return None;
        };
        let kind = Kind::of(&head.headers, &target.resource, untyped(target), looks)?;
        Some(Self {
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
        let refusal = refusal(&self.caller, &self.target, &asked.told(place));
        self.caller.tell(&refusal);
        if let Ok(mut slot) = self.slot.lock() {
            slot.get_or_insert(refusal);
        }
        Err(Overridden)
    }
}
