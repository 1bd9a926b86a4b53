//! The live page of a shared gateway, on a loopback port of its own: for who runs it, whose
//! browser has a cookie. Whoever else connects, and whatever other page a browser shows, gets
//! a sentence. What it says comes from `overview.rs`, as server-sent events.

use std::convert::Infallible;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use http_body_util::{Either, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Mutex, Semaphore};
use tokio::time::{sleep, timeout};

use super::{SharedGateway, overview};
use crate::limits;

mod entrance;
mod guard;
mod stream;

use entrance::PageEntrance;
use stream::EventStream;

/// Connections that are served at once; whoever is more waits in the kernel's queue.
const CONNECTIONS_MAX: usize = 32;
/// Pages that are open at once, of those connections.
const PAGES_MAX: usize = 8;
/// Bytes of a request: the least that the engine takes.
const HEAD_BYTES_MAX: usize = 8 * 1024;
/// Fields of one: browsers send some twenty.
const FIELDS_MAX: usize = 64;
/// How old what is shown may be: so one building serves all pages.
const STATE_TIME: std::time::Duration = std::time::Duration::from_secs(1);

const HTML: &str = include_str!("page/live.html");
const SCRIPT: &str = include_str!("page/live.js");
const STYLE: &str = include_str!("page/live.css");

/// What a browser may do with any of it: nothing of another origin, nothing inline, no frame
/// around it, and no text that becomes markup.
const FIELDS: [(HeaderName, &str); 7] = [
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
         require-trusted-types-for 'script'; trusted-types 'none'",
    ),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::CACHE_CONTROL, "no-store"),
    (
        HeaderName::from_static("cross-origin-opener-policy"),
        "same-origin",
    ),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        "same-origin",
    ),
];

type PageBody = Either<Full<Bytes>, EventStream>;

/// Where the page is and who may see it.
#[derive(Debug)]
pub(super) struct LivePage {
    /// Its name and port, as a browser says them: a name that nobody can guess, so that what
    /// else listens on this machine is another site, with other cookies.
    authority: String,
    /// At which commands must not arrive.
    port: u16,
    entrance: PageEntrance,
    pages: Arc<Semaphore>,
    state: Mutex<Option<(Instant, Bytes)>>,
}

/// Where the page is served.
#[derive(Debug)]
pub(super) struct PageListener {
    listener: TcpListener,
    page: Arc<LivePage>,
}

impl LivePage {
    /// That of a listener.
    ///
    /// # Errors
    /// A sentence: it is none of this machine, or there are no random numbers.
    fn of(listener: &TcpListener) -> Result<Self, String> {
        let address = listener.local_addr();
        let address = address.map_err(|error| format!("the admin listener: {error}"))?;
        if !address.ip().is_loopback() {
            return Err(format!(
                "the admin listener: {address} is no loopback address"
            ));
        }
        let name = entrance::random_name()?;
        Ok(Self {
            authority: format!("{name}.localhost:{}", address.port()),
            port: address.port(),
            entrance: PageEntrance::default(),
            pages: Arc::new(Semaphore::new(PAGES_MAX)),
            state: Mutex::default(),
        })
    }

    /// The port at which commands must not arrive.
    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// An address that lets one browser in, once.
    ///
    /// # Errors
    /// There are no random numbers.
    pub(super) fn address(&self) -> Result<String, String> {
        let code = self.entrance.code(Instant::now())?;
        Ok(format!("http://{}/enter?code={code}", self.authority))
    }

    /// What there is to show, as JSON, not older than a second.
    async fn state(&self, shared: &Arc<SharedGateway>) -> Bytes {
        let mut state = self.state.lock().await;
        if let Some((made, text)) = &*state
            && made.elapsed() < STATE_TIME
        {
            return text.clone();
        }
        let text = Bytes::from(built(shared).await);
        *state = Some((Instant::now(), text.clone()));
        text
    }
}

/// The overview as JSON, made beside the thread that serves.
pub(super) async fn built(shared: &Arc<SharedGateway>) -> String {
    let shared = Arc::clone(shared);
    let building = tokio::task::spawn_blocking(move || overview::json(&shared).to_string());
    building.await.unwrap_or_default()
}

impl PageListener {
    /// Makes one of a socket that was inherited.
    ///
    /// # Errors
    /// It is none of loopback, or there are no random numbers.
    pub(super) fn of(socket: OwnedFd) -> io::Result<Self> {
        let listener = std::net::TcpListener::from(socket);
        listener.set_nonblocking(true)?;
        let listener = TcpListener::from_std(listener)?;
        let page = LivePage::of(&listener).map_err(io::Error::other)?;
        Ok(Self {
            listener,
            page: Arc::new(page),
        })
    }

    /// The page that is served there.
    pub(super) fn page(&self) -> Arc<LivePage> {
        Arc::clone(&self.page)
    }

    /// Answers for ever.
    pub(super) async fn serve(self, shared: Arc<SharedGateway>) {
        let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        while let Ok(place) = Arc::clone(&places).acquire_owned().await {
            let Ok((stream, _)) = self.listener.accept().await else {
                sleep(limits::ACCEPT_PAUSE).await;
                continue;
            };
            let (shared, page) = (Arc::clone(&shared), Arc::clone(&self.page));
            tokio::spawn(async move {
                connection(&shared, &page, stream).await;
                drop(place);
            });
        }
    }
}

/// One request. Only who was let in and reads events stays longer than a moment.
async fn connection(shared: &Arc<SharedGateway>, page: &Arc<LivePage>, stream: TcpStream) {
    let stays = AtomicBool::new(false);
    let service = service_fn(async |request: Request<Incoming>| {
        let mut response = answer(shared, page, &request).await;
        if matches!(response.body(), Either::Right(_)) {
            stays.store(true, Ordering::Relaxed);
        }
        for (name, value) in FIELDS {
            let value = HeaderValue::from_static(value);
            response.headers_mut().insert(name, value);
        }
        Ok::<_, Infallible>(response)
    });
    let mut served = std::pin::pin!(
        http1::Builder::new()
            .keep_alive(false)
            .header_read_timeout(None)
            .max_buf_size(HEAD_BYTES_MAX)
            .max_headers(FIELDS_MAX)
            .serve_connection(TokioIo::new(stream), service)
    );
    // Who asked is gone, or asked for nothing that there is.
    if timeout(limits::ADMIN_TIME, &mut served).await.is_err() && stays.load(Ordering::Relaxed) {
        timeout(stream::PAGE_TIME, served).await.ok();
    }
}

async fn answer(
    shared: &Arc<SharedGateway>,
    page: &Arc<LivePage>,
    request: &Request<Incoming>,
) -> Response<PageBody> {
    if let Err(refused) = guard::is_of_page(request, &page.authority) {
        return said(refused.status, TEXT, refused.because);
    }
    let path = request.uri().path();
    if request.method() != Method::GET {
        return said(StatusCode::METHOD_NOT_ALLOWED, TEXT, "GET alone\n");
    }
    if path == "/enter" {
        return enter(page, request.uri().query());
    }
    if !is_known(page, request.headers()) {
        let because = "This page is for who runs the gateway. `outgate gateway page SOCKET` gives \
                       an address that lets one browser in.\n";
        return said(StatusCode::UNAUTHORIZED, TEXT, because);
    }
    match path {
        "/" => said(StatusCode::OK, "text/html; charset=utf-8", HTML),
        "/live.js" => said(StatusCode::OK, "text/javascript; charset=utf-8", SCRIPT),
        "/live.css" => said(StatusCode::OK, "text/css; charset=utf-8", STYLE),
        "/overview" => said(StatusCode::OK, JSON, page.state(shared).await),
        "/events" => events(shared, page),
        _ => said(StatusCode::NOT_FOUND, TEXT, "There is / here.\n"),
    }
}

/// What happens, for as long as who asked reads.
fn events(shared: &Arc<SharedGateway>, page: &Arc<LivePage>) -> Response<PageBody> {
    let Ok(place) = Arc::clone(&page.pages).try_acquire_owned() else {
        let because = "Too many pages are open; close one.\n";
        return said(StatusCode::SERVICE_UNAVAILABLE, TEXT, because);
    };
    let events = stream::begin(Arc::clone(shared), Arc::clone(page), place);
    with_kind(StatusCode::OK, "text/event-stream", Either::Right(events))
}

/// Lets a browser in that brings a code, and gives it a cookie in its place.
fn enter(page: &LivePage, query: Option<&str>) -> Response<PageBody> {
    let code = query.and_then(|query| query.strip_prefix("code="));
    let cookie = code.and_then(|code| page.entrance.enter(code, Instant::now()));
    let Some(cookie) = cookie else {
        let because = "This address was used, or is too old. `outgate gateway page SOCKET` gives \
                       another.\n";
        return said(StatusCode::UNAUTHORIZED, TEXT, because);
    };
    let mut response = said(StatusCode::SEE_OTHER, TEXT, "");
    let fields = response.headers_mut();
    fields.insert(header::LOCATION, HeaderValue::from_static("/"));
    let cookie = format!(
        "{}={cookie}; HttpOnly; SameSite=Strict; Path=/; Max-Age={}",
        entrance::COOKIE,
        entrance::COOKIE_TIME.as_secs()
    );
    if let Ok(cookie) = HeaderValue::try_from(cookie) {
        fields.insert(header::SET_COOKIE, cookie);
    }
    response
}

fn is_known(page: &LivePage, fields: &HeaderMap) -> bool {
    let cookies = fields.get_all(header::COOKIE).into_iter();
    let cookies = cookies.filter_map(|field| field.to_str().ok());
    let mut pairs = cookies.flat_map(|field| field.split(';'));
    let now = Instant::now();
    pairs.any(|pair| match pair.trim().split_once('=') {
        Some((entrance::COOKIE, value)) => page.entrance.knows(value, now),
        _ => false,
    })
}

const TEXT: &str = "text/plain; charset=utf-8";
const JSON: &str = "application/json";

fn said(status: StatusCode, kind: &'static str, text: impl Into<Bytes>) -> Response<PageBody> {
    with_kind(status, kind, Either::Left(Full::new(text.into())))
}

fn with_kind(status: StatusCode, kind: &'static str, body: PageBody) -> Response<PageBody> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let kind = HeaderValue::from_static(kind);
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}
