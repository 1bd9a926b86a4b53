//! One connection of the command, handed over by the launcher with its one
//! destination. Reads until it is certain what is spoken, then hands it to
//! whoever speaks that. What is not certain in time is closed: there is no
//! raw fallback.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use outgate_handoff::{Flow as Handed, Process, Question};
use outgate_policy::{Carries, Host, Permit};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout, timeout_at};

use crate::ask::{self, Course};
use crate::audit::{Event, Kind, Outcome};
use crate::body::Traffic;
use crate::caller::Caller;
use crate::control::ControlError;
use crate::decide;
use crate::destination::Destination;
use crate::detect::{Detected, detect};
use crate::http1;
use crate::http2;
use crate::limits;
use crate::memory;
use crate::origin::{self, Reached};
use crate::refusal::Refusal;
use crate::replay::Replay;
use crate::session::Session;
use crate::stub;
use crate::tls::{self, Client};
use crate::tunnel;
use crate::unix;

/// A connection, its destination and its owner.
#[derive(Debug)]
pub(crate) struct Flow {
    session: Arc<Session>,
    caller: Arc<Caller>,
    traffic: Arc<Traffic>,
    started: Instant,
    /// The generation of the policy it was judged by as a whole.
    generation: u64,
    /// Set where nothing leaves: each name is recorded, the asking is not.
    quiet: AtomicBool,
}

impl Flow {
    pub(crate) fn session(&self) -> &Arc<Session> {
        &self.session
    }

    /// Who opened it, and where it leads.
    pub(crate) fn caller(&self) -> &Arc<Caller> {
        &self.caller
    }

    pub(crate) fn process(&self) -> &Process {
        self.caller.process()
    }

    pub(crate) fn destination(&self) -> &Destination {
        self.caller.destination()
    }

    /// Whether other rules are in force than those it was judged by.
    pub(crate) fn is_judged_by_others(&self) -> bool {
        self.generation != self.session.generation()
    }

    pub(crate) fn traffic(&self) -> &Arc<Traffic> {
        &self.traffic
    }

    /// Returns once no content moved in either direction for too long: a
    /// request or a response that will never be complete.
    pub(crate) async fn stands_still(&self) {
        loop {
            let before = self.traffic.total();
            sleep(limits::TUNNEL_IDLE).await;
            if self.traffic.total() == before {
                return;
            }
        }
    }
}

impl Drop for Flow {
    /// The closing record: how much went each way, and how long it took.
    /// Written however the connection ends.
    fn drop(&mut self) {
        if self.quiet.load(Ordering::Relaxed) {
            return;
        }
        let target = self.destination().to_string();
        let up = self.traffic.up.load(Ordering::Relaxed);
        let down = self.traffic.down.load(Ordering::Relaxed);
        let millis = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let event = Event::new(Kind::Flow, Outcome::Note, &target)
            .process(self.process())
            .traffic(up, down, millis);
        self.session.recorder().record(&event).ok();
    }
}

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
    let Some(slot) = session.flow_slot() else {
        let because = "too many connections at once";
        session
            .recorder()
            .tell(&Refusal::own("limit", "a connection", because));
        return Ok(());
    };
    match handed.question {
        Question::Connect { destination } => {
            let stream = std::net::TcpStream::from(first);
            stream.set_nonblocking(true)?;
            let stream = TcpStream::from_std(stream)?;
            stream.set_nodelay(true).ok();
            let flow = Arc::new(Flow {
                session: Arc::clone(session),
                caller: Arc::new(Caller::new(
                    session.recorder(),
                    handed.process,
                    session.destination(destination),
                )),
                traffic: Arc::default(),
                started: Instant::now(),
                generation: session.generation(),
                quiet: AtomicBool::new(false),
            });
            session.tasks().spawn(async move {
                Box::pin(serve(&flow, stream)).await;
                memory::done(flow.session().tasks());
                drop((flow, slot));
            });
        }
        Question::Unix { path } => {
            let Some(target) = descriptors.next() else {
                return Err(ControlError::Descriptors {
                    expected: 2,
                    actual: 1,
                });
            };
            let session_of_task = Arc::clone(session);
            session.tasks().spawn(async move {
                let sockets = unix::Handed {
                    client: first,
                    target,
                };
                unix::serve(&session_of_task, &handed.process, &path, sockets).await;
                drop(slot);
            });
        }
        Question::Listen { .. } => {
            return Err(ControlError::Order {
                what: "a connection that is none",
            });
        }
    }
    Ok(())
}

async fn serve(flow: &Arc<Flow>, stream: TcpStream) {
    match ask::course(&flow.session, flow.process(), flow.destination()) {
        Course::Direct(host, permit) => Box::pin(raw(flow, &host, permit, stream)).await,
        Course::Stub => {
            flow.quiet.store(true, Ordering::Relaxed);
            Box::pin(stub::connection(&flow.session, flow.process(), stream)).await;
        }
        Course::Inspect => inspect(flow, stream, None).await,
        Course::Explain(refusal) => inspect(flow, stream, Some(refusal)).await,
        Course::Deny(refusal) => flow.caller().refuse(Kind::Flow, &refusal),
    }
}

/// Bytes both ways under a `tcp://` rule.
async fn raw(flow: &Flow, host: &Host, permit: Permit, stream: TcpStream) {
    let port = flow.destination().port;
    match origin::connect(
        flow.session.origins(),
        flow.process(),
        (host, port),
        Carries::Raw,
    )
    .await
    {
        Ok(Reached {
            stream: origin,
            pin,
        }) => {
            drop(permit);
            let still = || {
                decide::still_direct(
                    &flow.session.rules(),
                    flow.process(),
                    flow.destination(),
                    (host, pin),
                )
            };
            let sides = (stream, origin);
            tokio::select! {
                () = tunnel::relay_tcp(sides, &[], (&flow.traffic, None), flow.session.ended()) => {}
                refusal = flow.session.current().revoked(still) => flow.caller().refuse(Kind::Flow, &refusal),
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
    let (detected, bytes) = match classify(&mut stream).await {
        Classified::Certain(detected, bytes) => (detected, bytes),
        Classified::Silent => return,
        Classified::Unknown(why) => {
            let refusal = denied.unwrap_or_else(|| {
                let destination = flow.destination();
                let refusal = Refusal::own("protocol", &destination.to_string(), why);
                refusal.advise(destination.by_any_protocol())
            });
            flow.caller().refuse(Kind::Flow, &refusal);
            // It may still be sending: closed at once, it would see a reset.
            farewell(stream, &[]).await;
            return;
        }
    };
    match detected {
        Detected::Http1 => {
            let client = Client::plain(Replay::new(bytes, stream));
            http1::serve(flow, client, denied).await;
        }
        // On the heap, so that no kind of connection pays for the others.
        Detected::Tls(hello) => {
            Box::pin(tls::serve(flow, &hello, Replay::new(bytes, stream), denied)).await;
        }
        Detected::Http2 => {
            let client = Client::plain(Replay::new(bytes, stream));
            Box::pin(http2::serve(flow, client, Arc::default(), denied)).await;
        }
        Detected::More | Detected::Unknown(_) => {}
    }
}

/// What a connection turned out to be.
pub(crate) enum Classified {
    Certain(Detected, Vec<u8>),
    /// Closed without a byte.
    Silent,
    Unknown(&'static str),
}

/// Reads until it is certain what is spoken, within time and bytes.
pub(crate) async fn classify(stream: &mut (impl AsyncRead + Unpin)) -> Classified {
    let deadline = tokio::time::Instant::now() + limits::CLASSIFY_TIME;
    let mut bytes = Vec::with_capacity(2048);
    loop {
        match timeout_at(deadline, stream.read_buf(&mut bytes)).await {
            Err(_) => {
                return Classified::Unknown("nothing that HTTP or TLS begins with came in time");
            }
            Ok(Err(_)) => return Classified::Silent,
            Ok(Ok(0)) if bytes.is_empty() => return Classified::Silent,
            Ok(Ok(0)) => {
                return Classified::Unknown("the connection ended before it was clear what it is");
            }
            Ok(Ok(_)) => {}
        }
        match detect(&bytes) {
            Detected::More if bytes.len() >= limits::CLASSIFY_BYTES_MAX => {
                // An endless head: the parser has its own answer to that.
                return match bytes.first() {
                    Some(22) => Classified::Unknown("the TLS greeting is too long"),
                    _ => Classified::Certain(Detected::Http1, bytes),
                };
            }
            Detected::More => {}
            Detected::Unknown(why) => return Classified::Unknown(why),
            certain => return Classified::Certain(certain, bytes),
        }
    }
}

/// Sends last words and waits until they were heard, so that what the client
/// still sends does not turn them into a reset.
pub(crate) async fn farewell(mut stream: TcpStream, words: &[u8]) {
    const SIP: usize = 4096;
    let heard = async {
        stream.write_all(words).await?;
        stream.shutdown().await?;
        // On the heap: what lives in this future costs every connection.
        let mut sip = vec![0; SIP];
        while stream.read(&mut sip).await? > 0 {}
        std::io::Result::Ok(())
    };
    let patience: Duration = limits::LINGER_TIME;
    timeout(patience, heard).await.ok();
}
