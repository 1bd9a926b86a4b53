//! HTTP/1.1 on one connection: requests one after the other, each answered by
//! its exchange. A refusal keeps the connection, so that the next request may
//! be an allowed one. A connection that waits for its next request holds no
//! engine and none of its buffers. Decides nothing.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::Poll;

use http::{Response, StatusCode, header};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

use outgate_record::Reason;

use crate::audit::Kind;
use crate::body::Inner;
use crate::content::MessageContent;
use crate::exchange::{EngineRequest, Exchange};
use crate::flow::Flow;
use crate::followed::{ConnectionState, FollowedStream, Outlives};
use crate::forward::{Upgradable, Wire};
use crate::limits;
use crate::linger::close_lingering;
use crate::malformed::Malformed;
use crate::memory;
use crate::refusal::Refusal;
use crate::tls::ClientStream;

/// What holds for a connection.
#[derive(Debug)]
struct Connection {
    exchange: Exchange,
    state: Arc<ConnectionState>,
    /// Requests that were read.
    requests: AtomicU64,
    /// Whether a response said that it is the last one.
    last: AtomicBool,
    /// One more for each exchange that is not over.
    during: Arc<()>,
    /// Whether a request may follow another.
    carries: RequestsCarried,
}

/// How many requests a connection carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequestsCarried {
    Many,
    /// What follows may be for elsewhere.
    One,
}

impl Connection {
    /// A fault of the next head that the parser does not show.
    fn next_fault(&self) -> Option<Malformed> {
        let number = self.requests.fetch_add(1, Ordering::Relaxed);
        let because = match self.state.heads.lock() {
            Ok(heads) => heads.fault(number.saturating_add(1)),
            Err(_) => Some("the connection cannot be followed"),
        };
        because.map(Malformed::bad)
    }

    /// Behind a switch of protocols stand no heads.
    fn answered(&self, response: &Response<MessageContent>) {
        if response.headers().contains_key(header::CONNECTION) {
            self.last.store(true, Ordering::Relaxed);
        }
        if response.status() == StatusCode::SWITCHING_PROTOCOLS
            && let Ok(mut heads) = self.state.heads.lock()
        {
            heads.stop();
        }
    }

    /// Returns once a request beyond so many was answered, and followed by none
    /// for a while.
    async fn quiet(&self, begun: u64) {
        let mut before = begun;
        loop {
            sleep(limits::PARK_TIME).await;
            let now = self.requests.load(Ordering::Relaxed);
            if now > begun && now == before && self.is_idle(now) {
                return;
            }
            before = now;
        }
    }

    /// Whether nothing is under way: no part of a request, no exchange, no byte
    /// of a response. An engine that still runs then waits for a request.
    fn is_idle(&self, requests: u64) -> bool {
        Arc::strong_count(&self.during) == 1
            && !self.last.load(Ordering::Relaxed)
            && self.state.is_between(requests)
    }
}

/// What became of a connection in the hands of an engine.
#[derive(Debug)]
enum EngineOutcome {
    /// It waits for its next request.
    Idle(FollowedStream),
    Ended,
}

/// Serves a connection until either side ends it.
pub(crate) async fn serve(flow: &Arc<Flow>, stream: ClientStream, denied: Option<Refusal>) {
    serve_requests(flow, stream, denied, RequestsCarried::Many).await;
}

/// The same of one that carries no more than this.
pub(crate) async fn serve_requests(
    flow: &Arc<Flow>,
    stream: ClientStream,
    denied: Option<Refusal>,
    carries: RequestsCarried,
) {
    let (ended, carrier) = (stream.ended(), stream.carrier());
    let (mut stream, mut owner) = FollowedStream::new(stream);
    let state = Arc::clone(&owner.state);
    let connection = Arc::new(Connection {
        exchange: Exchange {
            flow: Arc::clone(flow),
            denied,
            wire: Wire::Http1(Arc::clone(&state)),
            carrier,
        },
        state,
        requests: AtomicU64::new(0),
        last: AtomicBool::new(false),
        during: Arc::default(),
        carries,
    });
    loop {
        let engine = Box::pin(run(&connection, stream));
        let served = tokio::select! {
            served = engine => served,
            () = abandoned(flow, &ended) => return,
            () = flow.stands_still() => return,
        };
        let EngineOutcome::Idle(idle) = served else {
            break;
        };
        memory::done(flow.session().tasks());
        if !matches!(timeout(limits::HEAD_TIME, idle.wait()).await, Ok(Ok(()))) {
            break;
        }
        stream = idle;
    }
    // After an upgrade somebody else has it.
    if let Ok(stream) = owner.back.try_recv() {
        close_lingering(stream.into_tcp().await, &[]).await;
    }
}

/// Runs an engine on a connection until it ends, or waits for a request.
async fn run(connection: &Arc<Connection>, stream: FollowedStream) -> EngineOutcome {
    let service = service_fn(|mut request| {
        let connection = Arc::clone(connection);
        Box::pin(async move {
            let during = Arc::clone(&connection.during);
            let fault = connection.next_fault();
            let upgrade = hyper::upgrade::on(&mut request);
            let asked = EngineRequest {
                fault,
                request: request.map(Inner::Http1),
                upgrade: Upgradable::Http1(upgrade),
                replies: None,
            };
            let response = connection.exchange.answer(asked).await?;
            connection.answered(&response);
            Ok::<_, h2::Error>(response.map(|content| content.during(during)))
        })
    });
    let mut serving = http1::Builder::new()
        .max_buf_size(limits::BUFFER_BYTES_MAX)
        .max_header_size(limits::HEAD_BYTES_MAX)
        .timer(TokioTimer::new())
        .header_read_timeout(limits::HEAD_TIME)
        .half_close(true)
        .keep_alive(connection.carries == RequestsCarried::Many)
        .auto_date_header(false)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    // Counted before the engine reads: its first request may be there already.
    let begun = connection.requests.load(Ordering::Relaxed);
    let served = tokio::select! {
        served = &mut serving => Some(served),
        () = connection.quiet(begun) => None,
    };
    let served = if let Some(served) = served {
        served
    } else {
        // An engine that waits for a request ends at once and has nothing left;
        // any other ends the connection as soon as it can.
        connection.state.outlive(Outlives::Engine);
        Pin::new(&mut serving).graceful_shutdown();
        let polled = poll_fn(|context| Poll::Ready(Pin::new(&mut serving).poll(context)));
        let polled = polled.await;
        connection.state.outlive(Outlives::Nothing);
        match polled {
            Poll::Ready(Ok(())) => {
                let parts = serving.into_parts();
                let idle = parts.filter(|parts| parts.read_buf.is_empty());
                return idle.map_or(EngineOutcome::Ended, |parts| {
                    EngineOutcome::Idle(parts.io.into_inner())
                });
            }
            Poll::Ready(Err(error)) => Err(error),
            Poll::Pending => serving.await,
        }
    };
    if let Err(error) = served
        && error.is_parse()
    {
        let flow = &connection.exchange.flow;
        let subject = flow.destination().to_string();
        let because = format!("request head: {error}");
        flow.caller().refuse(
            Kind::Request,
            &Refusal::own(Reason::Malformed, &subject, &because),
        );
    }
    EngineOutcome::Ended
}

/// Returns once the client ended its side and nothing moved for a while.
async fn abandoned(flow: &Flow, ended: &Notify) {
    ended.notified().await;
    loop {
        let before = flow.traffic().total();
        sleep(limits::HALF_CLOSED_TIME).await;
        if flow.traffic().total() == before {
            return;
        }
    }
}
