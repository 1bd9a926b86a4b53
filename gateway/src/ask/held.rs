//! Calls and connections that no rule decides, put to a person as requests are: what is
//! asked, and for how long its caller waits. The question outlasts who waited for it in vain, so
//! that who tries again finds its answer.

use std::sync::Arc;
use std::time::Duration;

use outgate_handoff::{
    Ask, CallQuestion, GRANT_BYTES_MAX, HoldForm, LINE_BYTES_MAX, LISTEN_RULE, OpenQuestion,
    ProcessFacts,
};
use outgate_policy::{DenialReason, Facts, Host, Verdict, printable};

use super::{ConnectionCourse, admit_unix, course};
use crate::decide;
use crate::destination::Destination;
use crate::limits;
use crate::refusal::Refusal;
use crate::session::{Asked, Session};
use crate::text::shortened;

/// What becomes of a call that no rule decides.
pub(crate) enum HeldCall {
    /// Rules decide it, or nobody is asked about it.
    Decided,
    /// A person is asked while the call waits.
    Waits(OpenQuestion),
    /// The connection is made, and waits in the place of the call.
    Redirected,
    /// It is denied at once, and how the asking went.
    Denied(Asked),
}

/// What becomes of a call before anybody decides it. Asks and records nothing.
pub(crate) fn held(session: &Session, ask: &Ask) -> HeldCall {
    let Some(question) = question(session, &ask.process, &ask.question) else {
        return HeldCall::Decided;
    };
    match ask.hold {
        HoldForm::Refuse => HeldCall::Denied(Asked::Nobody),
        HoldForm::Crowded => HeldCall::Denied(Asked::Crowded),
        HoldForm::Call => HeldCall::Waits(question),
        HoldForm::Connection => match session.open_questions().refuses(&question) {
            None => HeldCall::Redirected,
            Some(asked) => HeldCall::Denied(asked),
        },
    }
}

/// What a person is asked about this, where no rule decides it and somebody is asked.
pub(crate) fn question(
    session: &Session,
    process: &ProcessFacts,
    call: &CallQuestion,
) -> Option<OpenQuestion> {
    if !session.open_questions().are_asked() {
        return None;
    }
    let refusal = match call {
        CallQuestion::Connect { destination } => {
            connection(session, process, &session.destination(*destination))?
        }
        CallQuestion::Unix { path } => admit_unix(session, process, path).err()?,
        CallQuestion::Listen { address } => {
            let facts = Facts::Listen {
                process: decide::asking(process),
                address: *address,
            };
            match session.rules().evaluate(&facts) {
                Verdict::Allow(_) => return None,
                Verdict::Deny(denial) => Refusal::Policy(denial),
            }
        }
    };
    asked_about(session, process, &refusal)
}

/// The same of a connection that was made already.
pub(crate) fn question_of(
    session: &Session,
    process: &ProcessFacts,
    to: &Destination,
) -> Option<OpenQuestion> {
    if !session.open_questions().are_asked() {
        return None;
    }
    let refusal = connection(session, process, to)?;
    asked_about(session, process, &refusal)
}

/// The same of a Unix socket, from what denied it.
pub(crate) fn question_about(
    session: &Session,
    process: &ProcessFacts,
    refusal: &Refusal,
) -> Option<OpenQuestion> {
    let are_asked = session.open_questions().are_asked();
    are_asked.then(|| asked_about(session, process, refusal))?
}

/// Why a connection is denied as a whole. What is inside, by its address or by its name, is
/// for whoever grants it to name, and not for the command.
fn connection(session: &Session, process: &ProcessFacts, to: &Destination) -> Option<Refusal> {
    if to.hosts().iter().any(Host::is_special) {
        return None;
    }
    match course(session, process, to) {
        ConnectionCourse::Deny(refusal) => Some(refusal),
        ConnectionCourse::Direct(..)
        | ConnectionCourse::Inspect(_)
        | ConnectionCourse::Stub
        | ConnectionCourse::Own
        | ConnectionCourse::Explain(_) => None,
    }
}

fn asked_about(
    session: &Session,
    process: &ProcessFacts,
    refusal: &Refusal,
) -> Option<OpenQuestion> {
    let Refusal::Policy(denial) = session.recorder().shown(refusal) else {
        return None;
    };
    if denial.reason() != DenialReason::NoRule {
        return None;
    }
    let listens = || Some(format!("{LISTEN_RULE}{}", denial.listened()?));
    let narrow = denial.narrowest().or_else(listens)?;
    if narrow.len() > GRANT_BYTES_MAX {
        return None;
    }
    Some(OpenQuestion {
        subject: shortened(&printable(denial.subject()), LINE_BYTES_MAX),
        narrow,
        // All ports of a host would be open to bytes that nobody looks at.
        broad: String::new(),
        process: process.clone(),
        words: String::new(),
    })
}

/// Asks about a call or a connection, and waits no longer than clients do to connect.
pub(crate) async fn briefly(session: &Arc<Session>, question: OpenQuestion) -> Asked {
    let held = session.open_questions().held();
    asked(session, question, limits::ASK_CALL_TIME_MAX.min(held)).await
}

/// Asks about a request, and waits for as long as the run says.
pub(crate) async fn patiently(session: &Arc<Session>, question: OpenQuestion) -> Asked {
    let held = session.open_questions().held();
    asked(session, question, held).await
}

/// Asks, and waits so long; the question stays for its own time.
pub(crate) async fn asked(session: &Arc<Session>, question: OpenQuestion, time: Duration) -> Asked {
    let (asked, kept) = session.open_questions().hold(question, time).await;
    if let Some(kept) = kept {
        let own = Arc::clone(session);
        session.tasks().spawn(async move {
            own.open_questions().keep(kept).await;
        });
    }
    asked
}
