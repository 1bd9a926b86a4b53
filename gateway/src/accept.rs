//! A connection of the command, handed over by the launcher with its one
//! destination. Reads until it is certain what is spoken, then hands it to
//! whoever speaks that. What is not certain in time is closed: there is no
//! raw fallback.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use outgate_handoff::{CallQuestion, FlowFrame as Handed};
use outgate_policy::{Carries, Host, Permit};
use outgate_record::Reason;
use tokio::net::TcpStream;

use crate::ask::{self, ConnectionCourse, held};
use crate::audit::Kind;
use crate::caller::Caller;
use crate::control::ControlError;
use crate::decide;
use crate::destination::Endpoint;
use crate::detect::{self, Classified, Detected};
use crate::flow::Flow;
use crate::http1::{self, RequestsCarried};
use crate::http2;
use crate::intercept;
use crate::linger::close_lingering;
use crate::memory;
use crate::origin::{self, ReachedOrigin};
use crate::refusal::Refusal;
use crate::replay::Replay;
use crate::session::{FlowSlot, Session};
use crate::stub;
use crate::tls::ClientStream;
use crate::tunnel;
use crate::unix;

/// Takes over a connection. It is served beside the others and ends with the
/// session; over the limit it is closed.
pub(crate) fn accept(
    session: &Arc<Session>,
    handed: Handed,
    descriptors: Vec<OwnedFd>,
) -> Result<(), ControlError> {
    let mut descriptors = descriptors.into_iter();
    let missing = ControlError::Descriptors {
        expected: 1,
        actual: 0,
    };
    let first = descriptors.next().ok_or(missing)?;
    match handed.question {
        CallQuestion::Connect { destination } => {
            let stream = std::net::TcpStream::from(first);
            stream.set_nonblocking(true)?;
            let stream = TcpStream::from_std(stream)?;
            stream.set_nodelay(true).ok();
            let to = session.destination(destination);
            let caller = Caller::new(session.recorder(), handed.process, to);
            connection(session, caller, stream);
        }
        CallQuestion::Unix { path } => {
            let Some(target) = descriptors.next() else {
                return Err(ControlError::Descriptors {
                    expected: 2,
                    actual: 1,
                });
            };
            let Some(slot) = slot(session) else {
                return Ok(());
            };
            let session_of_task = Arc::clone(session);
            session.tasks().spawn(async move {
                let sockets = unix::UnixDescriptors {
                    client: first,
                    target,
                };
                unix::serve(&session_of_task, &handed.process, &path, sockets).await;
                drop(slot);
            });
        }
        CallQuestion::Listen { .. } => {
            return Err(ControlError::Order {
                what: "a connection that is none",
            });
        }
    }
    Ok(())
}

/// Serves a connection to one destination, if there is a place for it.
pub(crate) fn connection(session: &Arc<Session>, caller: Caller, stream: TcpStream) {
    if let Some(slot) = slot(session) {
        connected(session, caller, stream, slot);
    }
}

/// Serves a connection to one destination, whoever brought it: the entry of every front.
pub(crate) fn connected(session: &Arc<Session>, caller: Caller, stream: TcpStream, slot: FlowSlot) {
    let flow = Arc::new(Flow::new(session, caller));
    session.tasks().spawn(async move {
        Box::pin(serve(&flow, stream)).await;
        memory::done(flow.session().tasks());
        drop((flow, slot));
    });
}

/// Serves the one request that a client of the explicit proxy sent, whose head was read: to
/// the destination that it names, and by what the rules say of requests.
pub(crate) fn requested(
    session: &Arc<Session>,
    caller: Caller,
    (head, stream): (Vec<u8>, TcpStream),
    (slot, carries): (FlowSlot, RequestsCarried),
) {
    let flow = Arc::new(Flow::new(session, caller));
    session.tasks().spawn(async move {
        let denied = match ask::course(flow.session(), flow.process(), flow.destination()) {
            // A request is judged as one: bytes of any kind are for tunnels.
            ConnectionCourse::Inspect(_) | ConnectionCourse::Direct(..) => None,
            ConnectionCourse::Own => {
                flow.hush();
                None
            }
            ConnectionCourse::Stub => {
                let because = "no HTTP is spoken on the port of the DNS";
                let name = flow.destination().to_string();
                Some(Refusal::own(Reason::Protocol, &name, because))
            }
            ConnectionCourse::Explain(refusal) | ConnectionCourse::Deny(refusal) => Some(refusal),
        };
        let client = ClientStream::plain(Replay::new(head, stream));
        Box::pin(http1::serve_requests(&flow, client, denied, carries)).await;
        memory::done(flow.session().tasks());
        drop((flow, slot));
    });
}

/// A place for one more connection; over the limit that is told.
pub(crate) fn slot(session: &Session) -> Option<FlowSlot> {
    let limit = match session.flow_slot() {
        Ok(slot) => return Some(slot),
        Err(limit) => limit,
    };
    let refusal = Refusal::own(Reason::Limit, "a connection", &session.full(limit));
    session.recorder().tell(&refusal);
    None
}

async fn serve(flow: &Arc<Flow>, stream: TcpStream) {
    let (session, process, to) = (flow.session(), flow.process(), flow.destination());
    // Its caller waited for no call, so it waits here, and nothing of it is read.
    let asked = match held::question_of(session, process, to) {
        Some(question) => Some(held::briefly(session, question).await),
        None => None,
    };
    match ask::course(session, process, to) {
        ConnectionCourse::Direct(host, permit) => Box::pin(raw(flow, &host, permit, stream)).await,
        ConnectionCourse::Stub => {
            flow.hush();
            Box::pin(stub::connection(flow.session(), flow.process(), stream)).await;
        }
        // What is proposed there is recorded, and nothing else happens.
        ConnectionCourse::Own => {
            flow.hush();
            let name = flow.destination().to_string();
            let because = "it is answered by outgate itself, which speaks HTTP";
            let refusal = Refusal::own(Reason::Protocol, &name, because);
            inspect(flow, stream, Some(refusal)).await;
        }
        ConnectionCourse::Inspect(_) => inspect(flow, stream, None).await,
        ConnectionCourse::Explain(refusal) => inspect(flow, stream, Some(refusal)).await,
        ConnectionCourse::Deny(refusal) => {
            let refusal = match asked {
                Some(asked) => refusal.asked(asked.words()),
                None => refusal,
            };
            flow.caller().refuse(Kind::Flow, &refusal);
            if asked.is_some() {
                // What it sent meanwhile is not read: closed at once, it would see a reset.
                close_lingering(stream, &[]).await;
            }
        }
    }
}

/// Bytes both ways under a `tcp://` rule.
async fn raw(flow: &Flow, host: &Host, permit: Permit, stream: TcpStream) {
    let port = flow.destination().port;
    match origin::connect(
        flow.session().origins(),
        flow.process(),
        Endpoint { host, port },
        (Carries::Raw, permit),
    )
    .await
    {
        Ok(ReachedOrigin {
            stream: origin,
            pin,
        }) => {
            let still = || {
                decide::still_direct(
                    &flow.session().rules(),
                    flow.process(),
                    flow.destination(),
                    (host, pin),
                )
            };
            let sides = (stream, origin);
            tokio::select! {
                () = tunnel::relay_tcp(sides, &[], (&**flow.traffic(), None), flow.session().ended()) => {}
                refusal = flow.session().current().revoked(still) => flow.caller().refuse(Kind::Flow, &refusal),
            }
        }
        Err(error) => {
            let subject = flow.destination().to_string();
            flow.caller()
                .refuse(Kind::Flow, &error.into_refusal(&subject));
        }
    }
}

async fn inspect(flow: &Arc<Flow>, mut stream: TcpStream, denied: Option<Refusal>) {
    let (detected, bytes) = match detect::classify(&mut stream).await {
        Classified::Certain(detected, bytes) => (detected, bytes),
        Classified::Silent => return,
        Classified::Unknown(why) => {
            let refusal = denied.unwrap_or_else(|| {
                let destination = flow.destination();
                let refusal = Refusal::own(Reason::Protocol, &destination.to_string(), why);
                refusal.advise(destination.by_any_protocol())
            });
            flow.caller().refuse(Kind::Flow, &refusal);
            // It may still be sending: closed at once, it would see a reset.
            close_lingering(stream, &[]).await;
            return;
        }
    };
    match detected {
        Detected::Http1 => {
            let client = ClientStream::plain(Replay::new(bytes, stream));
            http1::serve(flow, client, denied).await;
        }
        // On the heap, so that no kind of connection pays for the others.
        Detected::Tls(hello) => {
            Box::pin(intercept::serve(
                flow,
                &hello,
                Replay::new(bytes, stream),
                denied,
            ))
            .await;
        }
        Detected::Http2 => {
            let client = ClientStream::plain(Replay::new(bytes, stream));
            Box::pin(http2::serve(flow, client, Arc::default(), denied)).await;
        }
        Detected::More | Detected::Unknown(_) => {}
    }
}
