//! A connection to an origin: TCP, or TLS with the origin verified.

use outgate_handoff::ProcessFacts;
use outgate_policy::{Carries, Host, Permit};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

use super::{OriginError, OriginPool, ReachedOrigin, reach};
use crate::admit;
use crate::carrier::{Alpn, Carrier};
use crate::destination::Endpoint;
use crate::either::Either;
use crate::resolve::ResolvedPin;
use crate::tls::Offer;

/// The connection, and which of the host's addresses it leads to.
#[derive(Debug)]
pub(crate) struct OriginLink {
    stream: Either<TcpStream, Box<TlsStream<TcpStream>>>,
    pin: ResolvedPin,
    generation: u64,
}

/// Where a link leads, and on whose behalf.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LinkRoute<'a> {
    pub(crate) origins: &'a OriginPool,
    pub(crate) process: &'a ProcessFacts,
    pub(crate) host: &'a Host,
    pub(crate) port: u16,
    pub(crate) carrier: Carrier,
}

impl OriginLink {
    /// Connects for what a permit allows; for TLS, the version of HTTP is one of those
    /// offered.
    pub(crate) async fn open(
        way: LinkRoute<'_>,
        offer: Offer,
        permit: &Permit,
    ) -> Result<Self, OriginError> {
        let LinkRoute {
            origins,
            process,
            host,
            port,
            carrier,
        } = way;
        let carries = match carrier {
            Carrier::Plain => Carries::Plain,
            Carrier::Tls(_) => Carries::Tls,
        };
        let generation = origins.generation();
        let ReachedOrigin { stream, pin } =
            reach(origins, process, Endpoint { host, port }, (carries, permit)).await?;
        let failed = |why| OriginError::Tls(format!("{host}:{port}"), why);
        match (carrier, origins.tls()) {
            (Carrier::Plain, _) => Ok(Self {
                stream: Either::One(stream),
                pin,
                generation,
            }),
            (Carrier::Tls(called), Some(tls)) => {
                if tls.upstream().presents(host, called)
                    && admit::presenting(origins.recorder(), process, host, port).is_err()
                {
                    return Err(failed(
                        "that it is presented a certificate cannot be recorded".to_owned(),
                    ));
                }
                let opened = tls.upstream().connect(stream, (host, called), offer).await;
                let link = Self {
                    stream: Either::Other(Box::new(opened.map_err(failed)?)),
                    pin,
                    generation,
                };
                // An origin may leave open what it speaks; what was not agreed
                // on would be read as something else.
                if offer == Offer::Only(Alpn::Http2) && link.alpn() != Alpn::Http2 {
                    tls.forget(Endpoint { host, port }, called);
                    return Err(failed("it does not speak HTTP/2".to_owned()));
                }
                Ok(link)
            }
            (Carrier::Tls(_), None) => {
                Err(failed("TLS is not opened under this policy".to_owned()))
            }
        }
    }

    /// The version of HTTP that TLS agreed on.
    pub(crate) fn alpn(&self) -> Alpn {
        match &self.stream {
            Either::One(_) => Alpn::Http1,
            Either::Other(stream) => Alpn::of(stream.get_ref().1.alpn_protocol()),
        }
    }

    /// The generation of the policy under which it was made.
    pub(crate) fn generation(&self) -> u64 {
        self.generation
    }

    /// The address it leads to.
    pub(crate) fn pin(&self) -> ResolvedPin {
        self.pin
    }
}

crate::either::through!(OriginLink, stream);
