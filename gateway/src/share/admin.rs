//! How a shared gateway is, for who runs it: `/metrics`, `/healthz`, `/readyz`, `/status` and
//! `/overview` with `/events?from=N` on a Unix socket of its own. Hears its own account and root
//! alone, few at once, each for a short time and one request. Changes nothing of what is allowed;
//! `POST /page` lets one browser see the live page.

use std::convert::Infallible;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rustix::net::sockopt;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

use super::{SharedGateway, page};
use crate::limits;

mod metrics;
mod process;
mod status;

pub(crate) use process::OwnProcess;

/// Bytes of a request: the least that the engine takes.
const HEAD_BYTES_MAX: usize = 8 * 1024;
/// Fields of one.
const FIELDS_MAX: usize = 32;

/// Whether it takes work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Readiness {
    Ready,
    /// It finishes what runs and takes nothing new.
    Ending,
    /// Records cannot be written, so nothing may pass.
    Unrecorded,
}

impl Readiness {
    fn of(shared: &SharedGateway) -> Self {
        if *shared.ending.borrow() {
            return Self::Ending;
        }
        if shared.audit.state().is_failing {
            return Self::Unrecorded;
        }
        Self::Ready
    }

    fn word(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Ending => "ending",
            Self::Unrecorded => "record-cannot-be-written",
        }
    }
}

/// Makes a listener of one that was inherited.
///
/// # Errors
/// It is none.
pub(super) fn listener(socket: OwnedFd) -> io::Result<UnixListener> {
    let listener = std::os::unix::net::UnixListener::from(socket);
    listener.set_nonblocking(true)?;
    UnixListener::from_std(listener)
}

/// Answers for ever. Whoever is too many waits in the kernel's queue, which is short.
pub(super) async fn serve(shared: Arc<SharedGateway>, listener: UnixListener) {
    let places = Arc::new(Semaphore::new(limits::ADMIN_CONNECTIONS_MAX));
    while let Ok(place) = Arc::clone(&places).acquire_owned().await {
        let Ok((stream, _)) = listener.accept().await else {
            sleep(limits::ACCEPT_PAUSE).await;
            continue;
        };
        if !is_heard(&stream, shared.uid) {
            continue;
        }
        let shared = Arc::clone(&shared);
        tokio::spawn(async move {
            let answering = connection(&shared, stream);
            timeout(limits::ADMIN_TIME, answering).await.ok();
            drop(place);
        });
    }
}

/// Whether the other end is who runs the gateway, or root: the mode of the socket's file
/// says the same, which its owner may change. A command that got itself relayed would look
/// like us.
fn is_heard(stream: &UnixStream, own: u32) -> bool {
    let Ok(peer) = sockopt::socket_peercred(stream.as_fd()) else {
        return false;
    };
    let (uid, pid) = (peer.uid.as_raw(), peer.pid.as_raw_nonzero().get());
    (uid == own || uid == 0) && u32::try_from(pid) != Ok(std::process::id())
}

async fn connection(shared: &Arc<SharedGateway>, stream: UnixStream) {
    let service = service_fn(async |request: Request<Incoming>| {
        Ok::<_, Infallible>(answer(shared, &request).await)
    });
    let served = http1::Builder::new()
        .keep_alive(false)
        .header_read_timeout(None)
        .max_buf_size(HEAD_BYTES_MAX)
        .max_headers(FIELDS_MAX)
        .serve_connection(TokioIo::new(stream), service)
        .await;
    // Who asked is gone, or asked for nothing that there is.
    drop(served);
}

async fn answer(shared: &Arc<SharedGateway>, request: &Request<Incoming>) -> Response<Full<Bytes>> {
    if (request.method(), request.uri().path()) == (&Method::POST, "/page") {
        return page_address(shared);
    }
    if request.method() != Method::GET {
        return said(
            StatusCode::METHOD_NOT_ALLOWED,
            TEXT,
            "GET alone\n".to_owned(),
        );
    }
    let readiness = Readiness::of(shared);
    match request.uri().path() {
        "/metrics" => said(StatusCode::OK, METRICS, metrics::text(shared)),
        "/status" => said(StatusCode::OK, JSON, status::json(shared, readiness)),
        "/overview" => said(StatusCode::OK, JSON, page::built(shared).await),
        "/events" => said(StatusCode::OK, JSON, events(shared, request.uri().query())),
        "/healthz" => said(StatusCode::OK, TEXT, "alive\n".to_owned()),
        "/readyz" => {
            let code = match readiness {
                Readiness::Ready => StatusCode::OK,
                Readiness::Ending | Readiness::Unrecorded => StatusCode::SERVICE_UNAVAILABLE,
            };
            said(code, TEXT, format!("{}\n", readiness.word()))
        }
        _ => {
            let known =
                "/metrics /healthz /readyz /status /overview /events?from=N, and POST /page\n"
                    .to_owned();
            said(StatusCode::NOT_FOUND, TEXT, known)
        }
    }
}

/// An address of the live page that lets one browser in.
fn page_address(shared: &SharedGateway) -> Response<Full<Bytes>> {
    let Some(page) = &shared.page else {
        let because = "this gateway has no live page; start it with --admin-listen\n".to_owned();
        return said(StatusCode::NOT_FOUND, TEXT, because);
    };
    match page.address() {
        Ok(address) => said(StatusCode::OK, TEXT, format!("{address}\n")),
        Err(fault) => said(
            StatusCode::INTERNAL_SERVER_ERROR,
            TEXT,
            format!("{fault}\n"),
        ),
    }
}

/// What happened from a number on, for who asks again and again; without one, from now on.
fn events(shared: &SharedGateway, query: Option<&str>) -> String {
    let feed = shared.audit.feed();
    feed.poll();
    let from = query.and_then(|query| query.strip_prefix("from="));
    let from = from.and_then(|from| from.parse().ok());
    format!(
        "{}\n",
        feed.since(from.unwrap_or_else(|| feed.next())).json()
    )
}

/// The state as a value.
pub(super) fn status_value(shared: &SharedGateway) -> serde_json::Value {
    status::value(shared, Readiness::of(shared))
}

const TEXT: &str = "text/plain; charset=utf-8";
const JSON: &str = "application/json";
/// The text format of Prometheus.
const METRICS: &str = "text/plain; version=0.0.4; charset=utf-8";

fn said(code: StatusCode, kind: &'static str, text: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = code;
    let kind = header::HeaderValue::from_static(kind);
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}
