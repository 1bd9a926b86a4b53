//! Content that asks for another method than its request, or for further requests: keys
//! of queries and forms, members of JSON, the requests of a batch. Where rules tell methods
//! apart, it is judged as the request it asks for. A form that was read whole before it is
//! sent is judged by its values; one that goes on as it comes ends with the first `_method`.
//! Reads; changes nothing.

use std::fmt;
use std::sync::Arc;

use http::header::HeaderMap;
use http::request;

use super::asks::{Asks, InnerDepth, Refused, Sent};
use super::judged::{self, AskedOverride, judge, looks_at_paths, tells_methods_apart};
use super::media;
use super::readers::{MediaKind, OverrideLooks, Readers, untyped};
use outgate_record::Reason;

use crate::body::Stopped;
use crate::caller::Caller;
use crate::refusal::Refusal;
use crate::target::Target;

/// Why a request asks for another method than the one that was judged.
///
/// # Errors
/// The refusal, which was recorded.
pub(super) fn check_query(caller: &Caller, target: &Target) -> Result<(), Refusal> {
    judged::query(caller, target).map_err(|asked| refusal(caller, target, &asked.told("query")))
}

/// Why a field asks for another method.
///
/// # Errors
/// The refusal, which was recorded.
pub(super) fn check_methods(
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
pub(super) fn check_media(
    caller: &Caller,
    target: &Target,
    fields: &HeaderMap,
) -> Result<(), Refusal> {
    let Some(what) = media::hides(fields, untyped(target.method.as_str())) else {
        return Ok(());
    };
    let because = if tells_methods_apart(caller, target) {
        format!("content in {what} could ask for another method, and the rules tell methods apart")
    } else if media::may_hold_requests(fields) && looks_at_paths(caller, target) {
        format!("content in {what} could hold requests, and the rules look at their paths")
    } else {
        return Ok(());
    };
    Err(refusal(caller, target, &because))
}

/// Records and tells why.
fn refusal(caller: &Caller, target: &Target, because: &str) -> Refusal {
    let subject = format!("{} {}", target.method, target.origin());
    let refusal = Refusal::own(Reason::Override, &subject, because);
    caller.refused_request(target, &refusal);
    refusal
}

/// Content that is looked at on its way.
pub(super) struct WatchedForm {
    caller: Arc<Caller>,
    target: Target,
    kind: MediaKind,
    readers: Readers,
}

impl fmt::Debug for WatchedForm {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // What it holds may be a credential.
        formatter.debug_struct("Form").finish_non_exhaustive()
    }
}

impl WatchedForm {
    /// The content of this request, if a method could change by it, or if it may hold
    /// further requests, and if that matters.
    pub(super) fn of(caller: &Arc<Caller>, target: &Target, head: &request::Parts) -> Option<Self> {
        let looks = if tells_methods_apart(caller, target) {
            OverrideLooks::Methods
        } else if looks_at_paths(caller, target) {
            OverrideLooks::Paths
        } else {
            return None;
        };
        let kind = MediaKind::of(
            &head.headers,
            target.resource.as_str(),
            untyped(target.method.as_str()),
            (looks, InnerDepth::default()),
        );
        Some(Self {
            caller: Arc::clone(caller),
            target: target.clone(),
            readers: Readers::new(&kind, Sent::AsItComes),
            kind,
        })
    }

    pub(super) fn is_form(&self) -> bool {
        self.kind.is_form()
    }

    /// It is read whole before anything is sent.
    pub(super) fn read_whole(&mut self) {
        self.readers = Readers::new(&self.kind, Sent::AtTheEnd);
    }

    /// Looks at the next bytes, which may only go on then.
    ///
    /// # Errors
    /// They ask for another method.
    pub(super) fn read(&mut self, bytes: &[u8]) -> Result<(), Stopped> {
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
    pub(super) fn finish(&mut self) -> Result<(), Stopped> {
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

    fn said(&self, read: Result<(), Refused>, asked: Option<AskedOverride>) -> Result<(), Stopped> {
        let (Err(Refused), Some(asked)) = (read, asked) else {
            return Ok(());
        };
        let place = if self.is_form() { "form" } else { "content" };
        let refusal = refusal(&self.caller, &self.target, &asked.told(place));
        self.caller.tell(&refusal);
        Err(Stopped::refused(refusal))
    }
}
