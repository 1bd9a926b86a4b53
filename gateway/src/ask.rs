//! Questions of the launcher about held calls, and their answers. Every answer
//! is recorded before it is sent. Resolves a name only after it was allowed;
//! dials nothing itself.

pub(crate) mod held;

use std::net::SocketAddr;

use outgate_handoff::{ADDRESSES_MAX, Answer, Ask, CallQuestion, Decision, ProcessFacts};
use outgate_policy::{Carries, Facts, Host, Permit, Route, RuleRef, Verdict, Vetted};
use outgate_record::Reason;

use crate::audit::{Event, Kind, Outcome};
use crate::decide;
use crate::destination::DNS_PORT;
use crate::destination::Destination;
use crate::limits;
use crate::refusal::Refusal;
use crate::session::{Asked, Session};
use crate::tenant::PeerStanding;

/// What a connection is to become.
pub(crate) enum ConnectionCourse {
    /// Straight to its addresses.
    Direct(Host, Permit),
    /// To the gateway, which looks inside.
    Inspect(Permit),
    /// To the gateway, which is the origin itself.
    Own,
    /// To the DNS stub.
    Stub,
    /// To the gateway, which says no in the client's language.
    Explain(Refusal),
    /// Nowhere.
    Deny(Refusal),
}

/// Decides the course of a connection. Used for the question and again for
/// the connection that is handed over, so that both have one answer.
pub(crate) fn course(
    session: &Session,
    process: &ProcessFacts,
    destination: &Destination,
) -> ConnectionCourse {
    if destination.is_own() {
        return ConnectionCourse::Own;
    }
    match decide::connect(&session.rules(), process, destination) {
        Ok((host, permit)) => match permit.route() {
            Route::Direct => ConnectionCourse::Direct(host, permit),
            Route::Gateway | Route::Tunnel | Route::Forward if destination.port == DNS_PORT => {
                ConnectionCourse::Stub
            }
            Route::Gateway | Route::Tunnel | Route::Forward => ConnectionCourse::Inspect(permit),
        },
        Err(_) if destination.port == DNS_PORT => ConnectionCourse::Stub,
        Err(refusal @ Refusal::Policy(_)) if session.rules().speaks_http(destination.port) => {
            ConnectionCourse::Explain(refusal)
        }
        Err(refusal) => ConnectionCourse::Deny(refusal),
    }
}

/// A connection whose caller does not wait is made at once, and waits in its place.
pub(crate) fn waiting(session: &Session) -> Answer {
    Answer {
        decision: Decision::Redirect,
        generation: session.generation(),
        reuse_ms: 0,
    }
}

/// Answers one question; `asked` is how it went where a person was asked before.
pub(crate) async fn answer(session: &Session, ask: &Ask, asked: Option<Asked>) -> Answer {
    let call = AskedCall {
        session,
        process: &ask.process,
        asked,
    };
    let decision = match &ask.question {
        CallQuestion::Connect { destination } => {
            connect(call, session.destination(*destination)).await
        }
        CallQuestion::Unix { path } => unix(call, path),
        CallQuestion::Listen { address } => listen(call, *address),
    };
    let reuse_ms = match decision {
        // What is redirected is recorded again as a flow; the others only here.
        Decision::Redirect => limits::REUSE_MS,
        Decision::Deny | Decision::Direct(_) => 0,
    };
    Answer {
        decision,
        generation: session.generation(),
        reuse_ms,
    }
}

/// Who asks, and how it went where a person was asked.
#[derive(Debug, Clone, Copy)]
struct AskedCall<'a> {
    session: &'a Session,
    process: &'a ProcessFacts,
    asked: Option<Asked>,
}

impl AskedCall<'_> {
    fn deny(self, kind: Kind, target: &str, refusal: Refusal) -> Decision {
        let refusal = match self.asked {
            Some(asked) => refusal.asked(asked.words()),
            None => refusal,
        };
        let recorder = self.session.recorder();
        recorder.refused(kind, self.process, target, &refusal);
        recorder.tell_of(&self.process.executable, &refusal);
        Decision::Deny
    }
}

async fn connect(call: AskedCall<'_>, destination: Destination) -> Decision {
    let AskedCall {
        session, process, ..
    } = call;
    let target = destination.to_string();
    let event = |outcome| Event::new(Kind::Connect, outcome, &target).process(process);
    match course(session, process, &destination) {
        ConnectionCourse::Direct(host, permit) => {
            match direct(session, process, &host, &destination).await {
                Ok(addresses) => {
                    let event = event(Outcome::Allow).rule(permit.rule()).pins(&addresses);
                    let to = (&host, destination.port);
                    let proxies = session.origins().proxies();
                    let proxied = |to_address: &SocketAddr| {
                        proxies.choose(Carries::Raw, to, to_address.ip()).is_some()
                    };
                    if addresses.iter().any(proxied) {
                        return redirect(session, &event.detail("upstream proxy"));
                    }
                    // What is to end with its grant goes by here, where it can be ended:
                    // nobody takes a socket back from whoever holds it.
                    if RuleRef::is_grant(&permit.rule().place) {
                        return redirect(session, &event.detail("granted"));
                    }
                    match session.recorder().record(&event.detail("direct")) {
                        Ok(()) => Decision::Direct(addresses),
                        Err(_) => Decision::Deny,
                    }
                }
                Err(refusal) => call.deny(Kind::Connect, &target, refusal),
            }
        }
        ConnectionCourse::Inspect(permit) => {
            let event = match permit.denied() {
                Some(_) => event(Outcome::Allow).permit(&permit),
                None => event(Outcome::Allow),
            };
            redirect(session, &event.detail("gateway"))
        }
        // Nothing leaves: the names asked for are recorded, not the asking.
        ConnectionCourse::Own | ConnectionCourse::Stub => Decision::Redirect,
        ConnectionCourse::Explain(refusal) => {
            session
                .recorder()
                .refused(Kind::Connect, process, &target, &refusal);
            Decision::Redirect
        }
        ConnectionCourse::Deny(refusal) => call.deny(Kind::Connect, &target, refusal),
    }
}

fn redirect(session: &Session, event: &Event<'_>) -> Decision {
    match session.recorder().record(event) {
        Ok(()) => Decision::Redirect,
        Err(_) => Decision::Deny,
    }
}

/// The vetted addresses of a host, in the order they should be tried.
async fn direct(
    session: &Session,
    process: &ProcessFacts,
    host: &Host,
    destination: &Destination,
) -> Result<Vec<SocketAddr>, Refusal> {
    let vetted = crate::origin::addresses(session.origins(), process, host, destination.port)
        .await
        .map_err(|error| error.into_refusal(&destination.to_string()))?;
    let addresses = vetted.iter().map(Vetted::address);
    Ok(addresses.take(ADDRESSES_MAX).collect())
}

fn unix(call: AskedCall<'_>, path: &[u8]) -> Decision {
    let AskedCall {
        session, process, ..
    } = call;
    let target = String::from_utf8_lossy(path).into_owned();
    match admit_unix(session, process, path) {
        Ok(permit) => {
            let event = Event::new(Kind::Unix, Outcome::Allow, &target)
                .process(process)
                .rule(permit.rule());
            redirect(session, &event)
        }
        Err(refusal) => call.deny(Kind::Unix, &target, refusal),
    }
}

/// May this Unix socket be connected to? Records nothing.
pub(crate) fn admit_unix(
    session: &Session,
    process: &ProcessFacts,
    path: &[u8],
) -> Result<Permit, Refusal> {
    let Ok(text) = std::str::from_utf8(path) else {
        let subject = format!("unix://{}", String::from_utf8_lossy(path));
        return Err(Refusal::own(
            Reason::Malformed,
            &subject,
            "the path is not UTF-8",
        ));
    };
    // The descriptor shows that the launcher found the socket, not that its
    // account may connect to it.
    if session.standing() == PeerStanding::Other {
        return Err(Refusal::own(
            Reason::Shared,
            &format!("unix://{text}"),
            "a shared gateway connects no Unix sockets for other users",
        ));
    }
    // An abstract name belongs to nobody and can be taken by anybody.
    if !text.starts_with('/') {
        let subject = format!("unix:{text}");
        return Err(Refusal::own(
            Reason::Abstract,
            &subject,
            "sockets with abstract names outside the sandbox are out of reach",
        ));
    }
    let facts = Facts::Unix {
        process: decide::asking(process),
        path: text,
    };
    match session.rules().evaluate(&facts) {
        Verdict::Allow(permit) => Ok(permit),
        Verdict::Deny(denial) => Err(Refusal::Policy(denial)),
    }
}

fn listen(call: AskedCall<'_>, address: SocketAddr) -> Decision {
    let AskedCall {
        session, process, ..
    } = call;
    let target = address.to_string();
    let facts = Facts::Listen {
        process: decide::asking(process),
        address,
    };
    match session.rules().evaluate(&facts) {
        Verdict::Allow(permit) => {
            let event = Event::new(Kind::Listen, Outcome::Allow, &target)
                .process(process)
                .rule(permit.rule());
            match session.recorder().record(&event) {
                Ok(()) => Decision::Direct(Vec::new()),
                Err(_) => Decision::Deny,
            }
        }
        Verdict::Deny(denial) => call.deny(Kind::Listen, &target, Refusal::Policy(denial)),
    }
}
