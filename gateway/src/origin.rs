//! Connections to origins: with `origin/dial.rs`, the only place that dials. An address is dialled
//! only after the policy vetted it for this very host and port. The connection pool: unused
//! connections are kept per session, host and port, and shared with nobody.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use outgate_handoff::ProcessFacts;
use outgate_policy::{Carries, Host, HostName, Permit, Proxies, Proxy, Vetted};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::admit;
use crate::body::{Outbound, Stopped};
use crate::carrier::{Alpn, Carrier};
use crate::decide;
use crate::destination::Endpoint;
use crate::limits;
use crate::recorder::{Governs, Recorder};
use crate::refusal::Refusal;
use crate::resolve::{ResolveError, ResolvedPin, Resolver};
use crate::rules::SessionPolicies;
use crate::tasks::Tasks;
use crate::tls::{Offer, Tls};

mod dial;
mod error;
mod link;
mod proxied;
mod streams;

pub(crate) use error::OriginError;
pub(crate) use link::{LinkRoute, OriginLink};
pub(crate) use streams::{Counted, Streams, failed};

/// The policy in force, as far as dialling asks it.
pub(crate) trait DialPolicy: Governs {
    /// Whether TLS is opened under the rules.
    fn opens_tls(&self) -> bool;

    /// The rules, and names as they were resolved under these.
    fn names(&self) -> (Arc<SessionPolicies>, Arc<Resolver>);
}

/// What a sandbox reaches its origins by.
#[derive(Debug)]
pub(crate) struct OriginPool {
    parts: OriginParts,
    pool: ConnectionPool,
}

/// What they are made of.
#[derive(Debug)]
pub(crate) struct OriginParts {
    /// Where names lead, and which addresses may be dialled.
    pub(crate) policy: Arc<dyn DialPolicy>,
    pub(crate) recorder: Arc<Recorder>,
    /// The operator's proxies.
    pub(crate) proxies: Arc<Proxies>,
    /// What verifies origins; nothing where the policy never opens TLS.
    pub(crate) tls: Option<Arc<Tls>>,
    pub(crate) tasks: Arc<Tasks>,
    /// Unused connections that are kept.
    pub(crate) idle_max: usize,
}

impl OriginPool {
    pub(crate) fn new(parts: OriginParts) -> Self {
        Self {
            parts,
            pool: ConnectionPool::default(),
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
        self.parts.policy.generation()
    }

    /// What opens TLS, where the rules in force let it.
    pub(crate) fn tls(&self) -> Option<&Arc<Tls>> {
        let tls = self.parts.tls.as_ref()?;
        self.parts.policy.opens_tls().then_some(tls)
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
    async fn resolve(&self, name: &HostName, port: u16) -> Result<Vec<ResolvedPin>, ResolveError> {
        let (rules, resolver) = self.parts.policy.names();
        resolver.resolve(rules.naming(), name, port).await
    }
}

/// What connections belong to, and under which generation of the policy they
/// were made.
type Key = (Host, u16, Carrier, u64);

/// The vetted addresses of a host.
pub(crate) async fn addresses(
    origins: &OriginPool,
    process: &ProcessFacts,
    host: &Host,
    port: u16,
) -> Result<Vec<Vetted>, OriginError> {
    let pins = match host {
        Host::Name(name) => origins.resolve(name, port).await?,
        Host::Address(address) => vec![ResolvedPin {
            address: SocketAddr::new(*address, port),
            source: outgate_policy::AddressSource::Pinned,
        }],
    };
    let found = decide::dial(&origins.parts.policy.rules(), process, host, port, &pins)
        .map_err(OriginError::Denied)?;
    if let Some(denial) = &found.denied {
        let target = format!("{host}:{port}");
        admit::passed(origins.recorder(), process, &target, denial)
            .map_err(|_| OriginError::Denied(Refusal::unrecorded(&target)))?;
    }
    Ok(found.vetted)
}

/// A connection to a host, and which of its addresses it leads to.
#[derive(Debug)]
pub(crate) struct ReachedOrigin {
    pub(crate) stream: TcpStream,
    pub(crate) pin: ResolvedPin,
}

/// Connects to a host whose use was permitted: straight, or through the
/// operator's proxy for what the connection carries.
/// The permit is spent on this one connection.
pub(crate) async fn connect(
    origins: &OriginPool,
    process: &ProcessFacts,
    Endpoint { host, port }: Endpoint<'_>,
    (carries, permit): (Carries, Permit),
) -> Result<ReachedOrigin, OriginError> {
    let to = Endpoint { host, port };
    let reached = reach(origins, process, to, (carries, &permit)).await;
    // INVARIANT: a permit of a connection is spent here.
    drop(permit);
    reached
}

/// The same for what is sent under a permit that is spent when it is.
async fn reach(
    origins: &OriginPool,
    process: &ProcessFacts,
    Endpoint { host, port }: Endpoint<'_>,
    (carries, permit): (Carries, &Permit),
) -> Result<ReachedOrigin, OriginError> {
    given_for(permit, Endpoint { host, port })?;
    let vetted = addresses(origins, process, host, port).await?;
    let authority = format!("{host}:{port}");
    let proxies = origins.proxies();
    let proxied = |to: &Vetted| proxies.choose(carries, (host, port), to.address().ip());
    let dialling = async {
        // Each address by its own way: one may be of this machine.
        let mut straight = Vec::with_capacity(vetted.len());
        for to in vetted {
            if let Some(proxy) = proxied(&to) {
                return through(origins, proxy, to, &authority).await;
            }
            straight.push(to);
        }
        let dialled = dial::dial(straight).await;
        dialled.map_err(|error| OriginError::Connect(authority.clone(), error))
    };
    let (stream, pin) = match timeout(limits::DIAL_TIME, dialling).await {
        Err(_) => return Err(OriginError::Timeout(authority)),
        Ok(reached) => reached?,
    };
    stream
        .set_nodelay(true)
        .map_err(|error| OriginError::Connect(authority, error))?;
    Ok(ReachedOrigin { stream, pin })
}

/// Whether a permit is the one of this host.
///
/// # Errors
/// It was given for something else: a fault of this program, and nothing is sent.
fn given_for(permit: &Permit, Endpoint { host, port }: Endpoint<'_>) -> Result<(), OriginError> {
    if permit.is_for(host, port) {
        return Ok(());
    }
    Err(OriginError::OtherPermit(format!("{host}:{port}")))
}

/// A tunnel to a vetted address through a proxy. The proxy is the operator's:
/// its own address needs no rule, and is resolved here like any other.
async fn through(
    origins: &OriginPool,
    proxy: &Proxy,
    to: Vetted,
    authority: &str,
) -> Result<(TcpStream, ResolvedPin), OriginError> {
    let failed = |why| OriginError::Proxy(authority.to_owned(), why);
    let at = match proxy.host() {
        Host::Name(name) => {
            let resolved = origins.resolve(name, proxy.port()).await;
            resolved.map_err(|error| failed(error.to_string()))?
        }
        Host::Address(address) => vec![ResolvedPin {
            address: SocketAddr::new(*address, proxy.port()),
            source: outgate_policy::AddressSource::Pinned,
        }],
    };
    let own = at.iter().filter_map(|pin| proxy.vetted(pin.address));
    let dialled = dial::dial(own.collect()).await;
    let (stream, _) = dialled.map_err(|error| failed(format!("connecting to it: {error}")))?;
    let pin = ResolvedPin::of(&to);
    let tunnel = proxied::tunnel(stream, proxy, to).await;
    tunnel.map(|stream| (stream, pin)).map_err(failed)
}

/// Unused connections of one session.
#[derive(Debug, Default)]
pub(crate) struct ConnectionPool {
    idle: Mutex<HashMap<Key, Vec<Idle>>>,
    reaping: AtomicBool,
}

#[derive(Debug)]
struct Idle {
    sender: SendRequest<Outbound>,
    since: Instant,
}

impl ConnectionPool {
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

    fn put(&self, key: Key, sender: SendRequest<Outbound>, idle_max: usize) {
        let Ok(mut idle) = self.idle.lock() else {
            return;
        };
        let total: usize = idle.values().map(Vec::len).sum();
        if total < idle_max && !sender.is_closed() {
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
    origins: Arc<OriginPool>,
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
        pool.put(self.key, self.sender, self.origins.parts.idle_max);
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
    pub(crate) origins: &'a Arc<OriginPool>,
    pub(crate) process: &'a ProcessFacts,
    pub(crate) host: &'a Host,
    pub(crate) port: u16,
    pub(crate) carrier: Carrier,
    pub(crate) request: Request<Outbound>,
    pub(crate) request_complete: Arc<AtomicBool>,
    /// What allowed it, spent where it is sent.
    pub(crate) permit: Permit,
}

impl Outgoing<'_> {
    /// Where it goes, for people.
    fn authority(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    /// Whether what allowed it is for where it goes.
    fn admitted(&self) -> Result<(), OriginError> {
        let (host, port) = (self.host, self.port);
        given_for(&self.permit, Endpoint { host, port })
    }

    /// How it gets there.
    fn way(&self) -> LinkRoute<'_> {
        LinkRoute {
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
/// the request was not sent or may be sent again. Spends the permit: once it is sent,
/// nothing more can be.
pub(crate) async fn send(
    outgoing: Outgoing<'_>,
) -> Result<(Response<Incoming>, Lease), OriginError> {
    outgoing.admitted()?;
    let Outgoing {
        origins,
        process,
        host,
        port,
        carrier,
        mut request,
        request_complete,
        permit,
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
    let way = LinkRoute {
        origins,
        process,
        host,
        port,
        carrier,
    };
    let link = OriginLink::open(way, Offer::Only(Alpn::Http1), &permit).await?;
    let mut sender = speak(origins, link)
        .await
        .map_err(|error| protocol(authority(), &error))?;
    match sender.send_request(request).await {
        Ok(response) => Ok((response, lease(sender))),
        Err(error) => Err(not_sent(authority(), &error)),
    }
}

/// Begins HTTP/1.1 on a connection.
async fn speak(
    origins: &Arc<OriginPool>,
    link: OriginLink,
) -> hyper::Result<SendRequest<Outbound>> {
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
pub(crate) async fn keep(origins: &Arc<OriginPool>, way: LinkRoute<'_>, link: OriginLink) {
    let key = (way.host.clone(), way.port, way.carrier, link.generation());
    if let Ok(sender) = speak(origins, link).await {
        origins.pool.put(key, sender, origins.parts.idle_max);
    }
}

/// Whose fault it is that a request did not arrive: where its content ended in an
/// error, that is the client's.
fn not_sent(authority: String, error: &hyper::Error) -> OriginError {
    if let Some(stopped) = Stopped::cause(error) {
        return stopped.clone().into();
    }
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
