//! TLS of a client: let through unopened where the rules need no look inside,
//! opened with the run's own authority where they do or where a denial is to
//! be explained, and answered with an alert where neither can be. What was
//! once to be opened is never let through unopened.

use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::task::Poll;

use outgate_policy::{Carries, Host, Permit, Verdict};
use outgate_record::Reason;
use rustls::AlertDescription;
use tokio::io::AsyncReadExt as _;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::admit::{self, Interception};
use crate::audit::Kind;
use crate::carrier::{Alpn, Carrier, OriginIdentity};
use crate::client_hello::ClientHello;
use crate::decide;
use crate::destination::{Endpoint, Party};
use crate::detect::{self, Classified, Detected};
use crate::flow::Flow;
use crate::linger::close_lingering;
use crate::origin::{self, LinkRoute, OriginLink, ReachedOrigin, Streams};
use crate::refusal::Refusal;
use crate::replay::Replay;
use crate::tls::{ClientStream, Offer, Tls};
use crate::{http1, http2, limits, tunnel, uri_authority};

/// TLS alert descriptions (RFC 8446 6, RFC 6066 3).
#[derive(Debug, Clone, Copy)]
enum Alert {
    AccessDenied,
    InternalError,
    UnrecognizedName,
}

/// Serves a connection that began with a whole ClientHello.
pub(crate) async fn serve(
    flow: &Arc<Flow>,
    hello: &ClientHello,
    stream: Replay,
    denied: Option<Refusal>,
) {
    let host = match server_host(flow, hello) {
        Ok(host) => host,
        Err(refused) => {
            let (alert, refusal) = *refused;
            let (alert, refusal) = match denied {
                Some(denied) => (Alert::AccessDenied, denied),
                None => (alert, refusal),
            };
            return refuse(flow, &refusal, stream, alert).await;
        }
    };
    let (session, process) = (flow.session(), flow.process());
    let port = flow.destination().port;
    let inside = match denied {
        Some(refusal) => Interception::Deny(refusal),
        None => admit::inside(
            session.recorder(),
            process,
            Endpoint { host: &host, port },
            hello.encrypted,
        ),
    };
    match (inside, session.tls()) {
        (Interception::Pass(permit), _) => pass(flow, &host, permit, stream).await,
        (Interception::Open(_), Some(tls)) => open(flow, tls, (hello, &host), stream, None).await,
        (Interception::Deny(refusal), Some(tls)) => {
            open(flow, tls, (hello, &host), stream, Some(refusal)).await;
        }
        (Interception::Hidden(refusal), _)
        | (Interception::Open(refusal) | Interception::Deny(refusal), None) => {
            refuse(flow, &refusal, stream, Alert::AccessDenied).await;
        }
    }
}

/// Records, tells, and says no in TLS itself.
async fn refuse(flow: &Flow, refusal: &Refusal, stream: Replay, alert: Alert) {
    flow.caller().refuse(Kind::Tunnel, refusal);
    close_lingering(stream.into_parts().1, &alert_record(alert)).await;
}

/// Bytes both ways, unopened.
async fn pass(flow: &Arc<Flow>, host: &Host, permit: Permit, stream: Replay) {
    let port = flow.destination().port;
    let subject = format!("{host}:{port}");
    let budgets = flow.session().budgets();
    let quota = match budgets.quota(flow.caller(), &permit, (host, &subject)) {
        Ok(quota) => quota,
        Err(refusal) => return refuse(flow, &refusal, stream, Alert::AccessDenied).await,
    };
    let used = flow.session().used_grants();
    let _one = match used.one(flow.session().control(), (&permit, &subject)) {
        Ok(one) => one,
        Err(refusal) => return refuse(flow, &refusal, stream, Alert::AccessDenied).await,
    };
    let (to, by) = (Endpoint { host, port }, (Carries::Tls, permit));
    match origin::connect(flow.session().origins(), flow.process(), to, by).await {
        Ok(ReachedOrigin {
            stream: origin,
            pin,
        }) => {
            flow.session().passed_unopened(host);
            let (read, client) = stream.into_parts();
            let sides = (client, origin);
            let (session, process) = (flow.session(), flow.process());
            let counted = (&**flow.traffic(), quota.as_ref());
            let still =
                || decide::still_unopened(&session.rules(), process, Endpoint { host, port }, pin);
            tokio::select! {
                () = tunnel::relay_tcp(sides, &read, counted, session.ended()) => {}
                refusal = session.current().revoked(still) => flow.caller().refuse(Kind::Tunnel, &refusal),
            }
        }
        Err(error) => {
            let alert = match error {
                origin::OriginError::Denied(_) => Alert::AccessDenied,
                _ => Alert::InternalError,
            };
            let subject = format!("https://{}", flow.destination());
            refuse(flow, &error.into_refusal(&subject), stream, alert).await;
        }
    }
}

/// Opens the connection as its host, and serves what is inside.
async fn open(
    flow: &Arc<Flow>,
    tls: &Arc<Tls>,
    (hello, host): (&ClientHello, &Host),
    stream: Replay,
    denied: Option<Refusal>,
) {
    let subject = format!("https://{}", flow.destination());
    let streams = Arc::new(Streams::default());
    let called = OriginIdentity::by(hello.server_name.as_deref(), host);
    // Certificates and signatures take as long as judging: by turns as well.
    let turn = flow.session().turn().await;
    let leaf = tls.leaf(host, called);
    turn.end().await;
    let config = match leaf {
        Ok(leaf) => {
            let protocols = if hello.protocols.is_empty() {
                Vec::new()
            } else {
                let version = version(flow, tls, (hello, host), &streams, denied.as_ref()).await;
                version.names()
            };
            let config = tls.server(leaf, protocols);
            config.map_err(|error| error.to_string())
        }
        Err(error) => Err(error.to_string()),
    };
    let config = match config {
        Ok(config) => config,
        Err(why) => {
            let refusal = denied.unwrap_or_else(|| Refusal::own(Reason::Tls, &subject, &why));
            return refuse(flow, &refusal, stream, Alert::InternalError).await;
        }
    };
    let turn = flow.session().turn().await;
    let mut accepting = std::pin::pin!(TlsAcceptor::from(config).accept(stream));
    // Its ClientHello is here already: the first step is the one that signs.
    let begun = poll_fn(|context| Poll::Ready(accepting.as_mut().poll(context))).await;
    turn.end().await;
    let accepted = match begun {
        Poll::Ready(accepted) => Ok(accepted),
        Poll::Pending => timeout(limits::TLS_HANDSHAKE_TIME, accepting).await,
    };
    let why = match accepted {
        Ok(Ok(stream)) => return inside(flow, (tls, host), stream, streams, denied).await,
        Ok(Err(error)) => not_accepted(&error, host),
        Err(_) => "no end of the TLS handshake in time".to_owned(),
    };
    // A denial that could not be explained is still the answer.
    let refusal = denied.unwrap_or_else(|| Refusal::own(Reason::Tls, &subject, &why));
    flow.caller().refuse(Kind::Tunnel, &refusal);
}

/// The version of HTTP that client and origin agree on, so that nothing is
/// translated from one to the other. Asks the origin only if it has to.
async fn version(
    flow: &Arc<Flow>,
    tls: &Tls,
    (hello, host): (&ClientHello, &Host),
    streams: &Arc<Streams>,
    denied: Option<&Refusal>,
) -> Alpn {
    let offers = |version: Alpn| hello.protocols.iter().any(|name| name == version.name());
    if !offers(Alpn::Http2) {
        return Alpn::Http1;
    }
    if !offers(Alpn::Http1) {
        return Alpn::Http2;
    }
    // A denial is said in the older version: every client shows it.
    if denied.is_some() {
        return Alpn::Http1;
    }
    let port = flow.destination().port;
    let called = OriginIdentity::by(hello.server_name.as_deref(), host);
    if let Some(version) = tls.known(Endpoint { host, port }, called) {
        return version;
    }
    // Asked again: what dials is evidence of its own.
    let rules = flow.session().rules();
    let Verdict::Allow(permit) =
        decide::connect_to(&rules, flow.process(), Endpoint { host, port })
    else {
        return Alpn::Http1;
    };
    if admit::opening(flow.session().recorder(), flow.process(), host, port).is_err() {
        return Alpn::Http1;
    }
    let way = LinkRoute {
        origins: flow.session().origins(),
        process: flow.process(),
        host,
        port,
        carrier: Carrier::Tls(called),
    };
    // What is wrong with an origin is told to the request that needs it.
    let Ok(link) = OriginLink::open(way, Offer::Both, &permit).await else {
        return Alpn::Http1;
    };
    let version = link.alpn();
    tls.learn(Endpoint { host, port }, called, version);
    match version {
        Alpn::Http1 => origin::keep(flow.session().origins(), way, link).await,
        Alpn::Http2 => streams.keep(flow.session().origins(), host, link).await,
    }
    version
}

/// Serves the requests inside.
async fn inside(
    flow: &Arc<Flow>,
    (tls, host): (&Tls, &Host),
    mut stream: TlsStream<Replay>,
    streams: Arc<Streams>,
    denied: Option<Refusal>,
) {
    let called = OriginIdentity::by(stream.get_ref().1.server_name(), host);
    let _one = tls.open_one(host);
    if Alpn::of(stream.get_ref().1.alpn_protocol()) == Alpn::Http2 {
        let Some(bytes) = first_bytes(&mut stream).await else {
            return silent(flow, (tls, host), denied);
        };
        tls.trust(host);
        let client = ClientStream::opened(bytes, stream, called);
        return http2::serve(flow, client, streams, denied).await;
    }
    let why = match detect::classify(&mut stream).await {
        Classified::Certain(Detected::Http1, bytes) => {
            tls.trust(host);
            let client = ClientStream::opened(bytes, stream, called);
            return http1::serve(flow, client, denied).await;
        }
        Classified::Silent => return silent(flow, (tls, host), denied),
        Classified::Unknown(why) => why,
        Classified::Certain(Detected::Tls(_), _) => "TLS inside TLS is not carried",
        Classified::Certain(..) => "HTTP/2 that TLS did not agree on is not carried",
    };
    let subject = format!("https://{}", flow.destination());
    let refusal = denied.unwrap_or_else(|| Refusal::own(Reason::Protocol, &subject, why));
    flow.caller().refuse(Kind::Tunnel, &refusal);
    let client = ClientStream::opened(Vec::new(), stream, called);
    close_lingering(client.into_tcp().await, &[]).await;
}

/// What a client of HTTP/2 says first; `None` where it ends without a word.
async fn first_bytes(stream: &mut TlsStream<Replay>) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(1024);
    match timeout(limits::CLASSIFY_TIME, stream.read_buf(&mut bytes)).await {
        Ok(Ok(0) | Err(_)) => None,
        Ok(Ok(_)) | Err(_) => Some(bytes),
    }
}

/// A client that ended once the handshake was over: some look at certificates only then. One
/// of several to a host tells nothing: clients begin two and need one.
fn silent(flow: &Flow, (tls, host): (&Tls, &Host), denied: Option<Refusal>) {
    let refusal = denied.or_else(|| {
        let why = format!(
            "the client said nothing once it saw the certificate of this run; {}",
            way_out(host)
        );
        let subject = format!("https://{}", flow.destination());
        let is_told = !tls.is_trusted(host) && tls.is_alone(host);
        is_told.then(|| Refusal::own(Reason::Tls, &subject, &why))
    });
    if let Some(refusal) = refusal {
        flow.caller().refuse(Kind::Tunnel, &refusal);
    }
}

/// What helps a client that no variable makes trust a run.
fn way_out(host: &Host) -> String {
    format!(
        "a client that finds its roots at a fixed place trusts a run with `--trust splice`, one \
         that brings its own needs -a 'tls://{host}'"
    )
}

/// Why a client did not go on with a handshake.
fn not_accepted(error: &io::Error, host: &Host) -> String {
    let cause: Option<&rustls::Error> = error.get_ref().and_then(|inner| inner.downcast_ref());
    let way_out = way_out(host);
    match cause {
        Some(rustls::Error::AlertReceived(
            alert @ (AlertDescription::UnknownCA
            | AlertDescription::BadCertificate
            | AlertDescription::CertificateUnknown
            | AlertDescription::UnsupportedCertificate),
        )) => format!(
            "the client does not trust the certificate of this run, it says {alert:?}; {way_out}"
        ),
        Some(cause) => format!("TLS handshake: {cause}"),
        None if error.kind() == io::ErrorKind::UnexpectedEof => {
            format!("the client ended the TLS handshake; {way_out}")
        }
        None => format!("TLS handshake: {error}; {way_out}"),
    }
}

/// The host that a ClientHello names in the open: it must be this destination's.
fn server_host(flow: &Flow, hello: &ClientHello) -> Result<Host, Box<(Alert, Refusal)>> {
    let to = flow.destination();
    let subject = format!("https://{to}");
    match &hello.server_name {
        Some(text) => uri_authority::server_name(text)
            .and_then(|named| to.matching(&named))
            .ok_or_else(|| {
                let because = format!("the TLS ClientHello names `{text}`");
                let refusal = Refusal::own(Reason::ServerName, &subject, &because);
                Box::new((Alert::UnrecognizedName, refusal))
            }),
        // Only an address needs no name, and only where it was connected to
        // as an address.
        None => match &to.party {
            Party::Address(address) | Party::Listed(address, _) => Ok(Host::Address(*address)),
            Party::Name(_) | Party::Unassigned(_) => {
                let because = "the TLS ClientHello names no server";
                let refusal = Refusal::own(Reason::ServerName, &subject, because);
                Err(Box::new((Alert::UnrecognizedName, refusal)))
            }
        },
    }
}

/// A fatal alert as a plaintext record (RFC 8446 5.1, 6.2).
fn alert_record(alert: Alert) -> [u8; 7] {
    let description = match alert {
        Alert::AccessDenied => 49,
        Alert::InternalError => 80,
        Alert::UnrecognizedName => 112,
    };
    [21, 3, 3, 0, 2, 2, description]
}
