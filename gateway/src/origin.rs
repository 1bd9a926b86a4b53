//! Connections to origins: the only file that dials. An address is dialled
//! only after the policy vetted it for this very host and port. Unused
//! connections are kept per session, host and port, and shared with nobody.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use outgate_handoff::Process;
use outgate_policy::{Carries, Host, HostName, Proxies, Proxy};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::body::Outbound;
use crate::carrier::{Alpn, Carrier};
use crate::decide;
use crate::in_force::Current;
use crate::limits;
use crate::recorder::{Governs as _, Recorder};
use crate::refusal::Refusal;
use crate::resolve::{Pin, ResolveError};
use crate::tasks::Tasks;
use crate::tls::{Offer, Tls};

mod dial;
mod link;
mod proxied;
mod streams;

pub(crate) use link::{Link, Way};
pub(crate) use streams::{Counted, Streams, failed};

/// Why nothing came back from an origin.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OriginError {
    #[error("{}", .0.sentence())]
    Denied(Refusal),
    #[error(transparent)]
    Resolve(#[from] ResolveError),
    #[error("connecting to {0}: {1}")]
    Connect(String, io::Error),
    #[error("{0} did not answer within {secs} s", secs = limits::DIAL_TIME.as_secs())]
    Timeout(String),
    #[error("{0}: the upstream proxy: {1}")]
    Proxy(String, String),
    #[error("{0}: {1}")]
    Tls(String, String),
    #[error("{0} broke the protocol: {1}")]
    Protocol(String, String),
    #[error("{}", .0.sentence())]
    Misused(Refusal),
    #[error("the request ended before it was whole: {0}")]
    Content(String),
    #[error("{0} reset the stream: {1}")]
    Reset(String, h2::Reason),
}

impl OriginError {
    /// The same as a refusal, for who has no other way to say it.
    pub(crate) fn into_refusal(self, subject: &str) -> Refusal {
        match self {
            Self::Denied(refusal) | Self::Misused(refusal) => refusal,
            Self::Resolve(error) => Refusal::own("dns", subject, &error.to_string()),
            error @ (Self::Connect(..)
            | Self::Timeout(_)
            | Self::Proxy(..)
            | Self::Tls(..)
            | Self::Protocol(..)
            | Self::Content(_)
            | Self::Reset(..)) => Refusal::own("origin", subject, &error.to_string()),
        }
    }
}

/// What a sandbox reaches its origins by.
#[derive(Debug)]
pub(crate) struct Origins {
    parts: Parts,
    pool: Pool,
}

/// What they are made of.
#[derive(Debug)]
pub(crate) struct Parts {
    /// Where names lead, and which addresses may be dialled.
    pub(crate) current: Arc<Current>,
    pub(crate) recorder: Arc<Recorder>,
    /// The operator's proxies.
    pub(crate) proxies: Arc<Proxies>,
    /// What verifies origins; nothing where the policy never opens TLS.
    pub(crate) tls: Option<Arc<Tls>>,
    pub(crate) tasks: Arc<Tasks>,
}

impl Origins {
    pub(crate) fn new(parts: Parts) -> Self {
        Self {
            parts,
            pool: Pool::default(),
        }
    }

    /// The operator's proxies.
    pub(crate) fn proxies(&self) -> &Proxies {
        &self.parts.proxies
    }

    pub(crate) fn recorder(&self) -> &Recorder {
        &self.parts.recorder
    }

    pub(crate) fn generation(&self) -> u64 {
        self.parts.current.generation()
    }

    /// What opens TLS, where the rules in force let it.
    pub(crate) fn tls(&self) -> Option<&Arc<Tls>> {
        let tls = self.parts.tls.as_ref()?;
        self.parts.current.opens_tls().then_some(tls)
    }

    /// Runs a task that ends with the sandbox at the latest.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.parts.tasks.spawn(task);
    }

    /// Drops every unused connection.
    pub(crate) fn clear(&self) {
        self.pool.clear();
    }

    /// The addresses of an allowed name.
    async fn resolve(&self, name: &HostName, port: u16) -> Result<Vec<Pin>, ResolveError> {
        let in_force = self.parts.current.now();
        let policy = in_force.rules.naming();
        in_force.resolver.resolve(policy, name, port).await
    }
}

/// What connections belong to, and under which generation of the policy they
/// were made.
type Key = (Host, u16, Carrier, u64);

/// The vetted addresses of a host.
pub(crate) async fn addresses(
    origins: &Origins,
    process: &Process,
    host: &Host,
    port: u16,
) -> Result<Vec<Pin>, OriginError> {
    let pins = match host {
        Host::Name(name) => origins.resolve(name, port).await?,
        Host::Address(address) => vec![Pin {
            address: SocketAddr::new(*address, port),
            source: outgate_policy::AddressSource::Pinned,
        }],
    };
    decide::dial(&origins.parts.current.rules(), process, host, port, &pins)
        .map_err(OriginError::Denied)
}

/// A connection to a host, and which of its addresses it leads to.
#[derive(Debug)]
pub(crate) struct Reached {
    pub(crate) stream: TcpStream,
    pub(crate) pin: Pin,
}

/// Connects to a host whose use was permitted: straight, or through the
/// operator's proxy for what the connection carries.
pub(crate) async fn connect(
    origins: &Origins,
    process: &Process,
    (host, port): (&Host, u16),
    carries: Carries,
) -> Result<Reached, OriginError> {
    let pins = addresses(origins, process, host, port).await?;
    let authority = format!("{host}:{port}");
    let proxies = origins.proxies();
    let proxied = |pin: &Pin| proxies.choose(carries, (host, port), pin.address.ip());
    let dialling = async {
        // Each address by its own way: one may be of this machine.
        if let Some((pin, proxy)) = pins.iter().find_map(|pin| Some((*pin, proxied(pin)?))) {
            return through(origins, proxy, pin, &authority).await;
        }
        let dialled = dial::dial(&pins).await;
        dialled.map_err(|error| OriginError::Connect(authority.clone(), error))
    };
    let (stream, pin) = match timeout(limits::DIAL_TIME, dialling).await {
        Err(_) => return Err(OriginError::Timeout(authority)),
        Ok(reached) => reached?,
    };
    stream
        .set_nodelay(true)
        .map_err(|error| OriginError::Connect(authority, error))?;
    Ok(Reached { stream, pin })
}

/// A tunnel to a vetted address through a proxy. The proxy is the operator's:
/// its own address needs no rule, and is resolved here like any other.
async fn through(
    origins: &Origins,
    proxy: &Proxy,
    pin: Pin,
    authority: &str,
) -> Result<(TcpStream, Pin), OriginError> {
    let failed = |why| OriginError::Proxy(authority.to_owned(), why);
    let at = match proxy.host() {
        Host::Name(name) => {
            let resolved = origins.resolve(name, proxy.port()).await;
            resolved.map_err(|error| failed(error.to_string()))?
        }
        Host::Address(address) => vec![Pin {
            address: SocketAddr::new(*address, proxy.port()),
            source: outgate_policy::AddressSource::Pinned,
        }],
    };
    let dialled = dial::dial(&at).await;
    let (stream, _) = dialled.map_err(|error| failed(format!("connecting to it: {error}")))?;
    let tunnel = proxied::tunnel(stream, proxy, pin.address).await;
    tunnel.map(|stream| (stream, pin)).map_err(failed)
}

/// Unused connections of one session.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    idle: Mutex<HashMap<Key, Vec<Idle>>>,
    reaping: AtomicBool,
}

#[derive(Debug)]
struct Idle {
    sender: SendRequest<Outbound>,
    since: Instant,
}

impl Pool {
    /// Drops every unused connection.
    pub(crate) fn clear(&self) {
        if let Ok(mut idle) = self.idle.lock() {
            idle.clear();
        }
    }

    fn take(&self, key: &Key) -> Option<SendRequest<Outbound>> {
        let mut idle = self.idle.lock().ok()?;
        let list = idle.get_mut(key)?;
        while let Some(entry) = list.pop() {
            if !entry.sender.is_closed() && entry.since.elapsed() < limits::ORIGIN_IDLE {
                return Some(entry.sender);
            }
        }
        idle.remove(key);
        None
    }

    fn put(&self, key: Key, sender: SendRequest<Outbound>) {
        let Ok(mut idle) = self.idle.lock() else {
            return;
        };
        let total: usize = idle.values().map(Vec::len).sum();
        if total < limits::ORIGIN_IDLE_MAX && !sender.is_closed() {
            idle.entry(key).or_default().push(Idle {
                sender,
                since: Instant::now(),
            });
        }
    }

    /// Drops what was unused for too long; whether anything is left.
    fn reap(&self) -> bool {
        let Ok(mut idle) = self.idle.lock() else {
            return false;
        };
        idle.retain(|_, list| {
            list.retain(|entry| {
                !entry.sender.is_closed() && entry.since.elapsed() < limits::ORIGIN_IDLE
            });
            !list.is_empty()
        });
        !idle.is_empty()
    }
}

/// A connection in use, to be given back when its response was read.
#[derive(Debug)]
pub(crate) struct Lease {
    origins: Arc<Origins>,
    key: Key,
    sender: SendRequest<Outbound>,
    /// Whether the request was sent whole; nothing else may follow before.
    request_complete: Arc<AtomicBool>,
}

impl Lease {
    pub(crate) fn release(self) {
        if !self.request_complete.load(Ordering::Relaxed) {
            return;
        }
        // Whether it would be dialled under other rules nobody asked.
        if self.key.3 != self.origins.generation() {
            return;
        }
        let pool = &self.origins.pool;
        pool.put(self.key, self.sender);
        if !pool.reaping.swap(true, Ordering::Relaxed) {
            let origins = Arc::clone(&self.origins);
            self.origins.spawn(async move {
                while origins.pool.reap() {
                    tokio::time::sleep(limits::ORIGIN_IDLE / 2).await;
                }
                origins.pool.reaping.store(false, Ordering::Relaxed);
            });
        }
    }
}

/// A request on its way, with what sending it needs beside.
pub(crate) struct Outgoing<'a> {
    pub(crate) origins: &'a Arc<Origins>,
    pub(crate) process: &'a Process,
    pub(crate) host: &'a Host,
    pub(crate) port: u16,
    pub(crate) carrier: Carrier,
    pub(crate) request: Request<Outbound>,
    pub(crate) request_complete: Arc<AtomicBool>,
}

impl Outgoing<'_> {
    /// Where it goes, for people.
    fn authority(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    /// How it gets there.
    fn way(&self) -> Way<'_> {
        Way {
            origins: self.origins,
            process: self.process,
            host: self.host,
            port: self.port,
            carrier: self.carrier,
        }
    }
}

/// Sends a request over a kept or a new connection and waits for the response
/// head. A kept connection that turns out to be closed is replaced once, if
/// the request was not sent or may be sent again.
pub(crate) async fn send(
    outgoing: Outgoing<'_>,
) -> Result<(Response<Incoming>, Lease), OriginError> {
    let Outgoing {
        origins,
        process,
        host,
        port,
        carrier,
        mut request,
        request_complete,
    } = outgoing;
    let key = (host.clone(), port, carrier, origins.generation());
    let authority = || format!("{host}:{port}");
    let lease = |sender| Lease {
        origins: Arc::clone(origins),
        key: key.clone(),
        sender,
        request_complete: Arc::clone(&request_complete),
    };
    if let Some(mut sender) = origins.pool.take(&key)
        && sender.ready().await.is_ok()
    {
        let again = repeatable(&request);
        match sender.try_send_request(request).await {
            Ok(response) => return Ok((response, lease(sender))),
            Err(mut failure) => match failure.take_message().or(again) {
                Some(unsent) => request = unsent,
                None => return Err(not_sent(authority(), failure.error())),
            },
        }
    }
    let way = Way {
        origins,
        process,
        host,
        port,
        carrier,
    };
    let link = Link::open(way, Offer::Only(Alpn::Http1)).await?;
    let mut sender = speak(origins, link)
        .await
        .map_err(|error| protocol(authority(), &error))?;
    match sender.send_request(request).await {
        Ok(response) => Ok((response, lease(sender))),
        Err(error) => Err(not_sent(authority(), &error)),
    }
}

/// Begins HTTP/1.1 on a connection.
async fn speak(origins: &Arc<Origins>, link: Link) -> hyper::Result<SendRequest<Outbound>> {
    let (sender, connection) = http1::Builder::new()
        .max_buf_size(limits::BUFFER_BYTES_MAX)
        .max_header_size(limits::HEAD_BYTES_MAX)
        .handshake::<_, Outbound>(TokioIo::new(link))
        .await?;
    origins.spawn(async move {
        connection.with_upgrades().await.ok();
    });
    Ok(sender)
}

/// Keeps a connection that nobody used yet, for the first who needs it.
pub(crate) async fn keep(origins: &Arc<Origins>, way: Way<'_>, link: Link) {
    let key = (way.host.clone(), way.port, way.carrier, link.generation());
    if let Ok(sender) = speak(origins, link).await {
        origins.pool.put(key, sender);
    }
}

/// Whose fault it is that a request did not arrive: where its content ended in an
/// error, that is the client's.
fn not_sent(authority: String, error: &hyper::Error) -> OriginError {
    if error.is_user() {
        return OriginError::Content(error.to_string());
    }
    protocol(authority, error)
}

fn protocol(authority: String, error: &dyn std::error::Error) -> OriginError {
    OriginError::Protocol(authority, error.to_string())
}

/// A copy of a request that may be sent twice: safe or idempotent, and without
/// content (RFC 9110 9.2.2).
fn repeatable(request: &Request<Outbound>) -> Option<Request<Outbound>> {
    if !request.method().is_idempotent() || !matches!(request.body(), Outbound::None) {
        return None;
    }
    let mut copy = Request::new(Outbound::None);
    copy.method_mut().clone_from(request.method());
    copy.uri_mut().clone_from(request.uri());
    copy.headers_mut().clone_from(request.headers());
    Some(copy)
}
