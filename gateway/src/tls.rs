//! TLS on both sides: the leaves that clients of a run are shown, what origins are offered,
//! and what either agreed on. Reads no ClientHello and decides nothing.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};

use outgate_ca::{CaError, LeafSubject, Leaves};
use outgate_policy::Host;
use rustls::ServerConfig;
use rustls::crypto::CryptoProvider;
use rustls::server::{NoServerSessionStorage, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use crate::carrier::{Alpn, OriginIdentity};
use crate::destination::Endpoint;
use crate::limits;

mod client;
mod identities;
mod keys;
mod roots;
mod upstream;

pub(crate) use client::ClientStream;
pub(crate) use keys::TlsKeys;
pub(crate) use upstream::{Offer, Upstream};

/// What a session needs to open TLS.
#[derive(Debug)]
pub(crate) struct Tls {
    leaves: Arc<Leaves>,
    upstream: Upstream,
    provider: Arc<CryptoProvider>,
    /// What origins agreed on, so that clients can be answered before an
    /// origin is asked again.
    agreed: Mutex<HashMap<(Host, u16, OriginIdentity), Alpn>>,
    /// Hosts as which this run was trusted by some client.
    trusted: Mutex<HashSet<Host>>,
    /// How many connections of clients to a host are opened now.
    opened: Mutex<HashMap<Host, usize>>,
}

/// A connection of a client that is opened, as long as it is.
#[derive(Debug)]
pub(crate) struct OpenedOne<'t>(&'t Tls, Host);

impl Drop for OpenedOne<'_> {
    fn drop(&mut self) {
        let Ok(mut opened) = self.0.opened.lock() else {
            return;
        };
        let left = opened
            .get(&self.1)
            .map_or(0, |count| count.saturating_sub(1));
        if left == 0 {
            opened.remove(&self.1);
        } else {
            opened.insert(self.1.clone(), left);
        }
    }
}

impl Tls {
    pub(crate) fn new(leaves: Arc<Leaves>, keys: &TlsKeys) -> Self {
        Self {
            leaves,
            upstream: Upstream::new(keys),
            provider: Arc::new(rustls::crypto::ring::default_provider()),
            agreed: Mutex::default(),
            trusted: Mutex::default(),
            opened: Mutex::default(),
        }
    }

    /// The certificate that clients must trust, in PEM.
    pub(crate) fn pem(&self) -> &str {
        self.leaves.authority().pem()
    }

    pub(crate) fn upstream(&self) -> &Upstream {
        &self.upstream
    }

    /// The certificate for a host, as the client called it.
    pub(crate) fn leaf(
        &self,
        host: &Host,
        called: OriginIdentity,
    ) -> Result<Arc<CertifiedKey>, CaError> {
        self.leaves.get(&match (called, host) {
            (OriginIdentity::Itself, Host::Address(address)) => LeafSubject::Address(*address),
            (OriginIdentity::Itself | OriginIdentity::Localhost, _) => {
                LeafSubject::Name(called.spell(host))
            }
        })
    }

    /// How a client is answered: with one leaf, in one version of HTTP, and
    /// nothing to resume, since every connection is judged by itself.
    pub(crate) fn server(
        &self,
        leaf: Arc<CertifiedKey>,
        protocols: Vec<Vec<u8>>,
    ) -> Result<Arc<ServerConfig>, rustls::Error> {
        let mut config = ServerConfig::builder_with_provider(Arc::clone(&self.provider))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(Always(leaf)));
        config.alpn_protocols = protocols;
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(Arc::new(config))
    }

    pub(crate) fn known(
        &self,
        Endpoint { host, port }: Endpoint<'_>,
        called: OriginIdentity,
    ) -> Option<Alpn> {
        let agreed = self.agreed.lock().ok()?;
        agreed.get(&(host.clone(), port, called)).copied()
    }

    /// Notes that a client went on after it saw the certificate for a host.
    pub(crate) fn trust(&self, host: &Host) {
        if let Ok(mut trusted) = self.trusted.lock()
            && trusted.len() < limits::RESOLVED_MAX
        {
            trusted.insert(host.clone());
        }
    }

    /// Counts a connection of a client.
    pub(crate) fn open_one(&self, host: &Host) -> OpenedOne<'_> {
        if let Ok(mut opened) = self.opened.lock() {
            let count = opened.entry(host.clone()).or_default();
            *count = count.saturating_add(1);
        }
        OpenedOne(self, host.clone())
    }

    /// Whether one connection of a client at most is opened to a host.
    pub(crate) fn is_alone(&self, host: &Host) -> bool {
        let opened = self.opened.lock();
        opened.is_ok_and(|opened| opened.get(host).is_none_or(|count| *count <= 1))
    }

    pub(crate) fn is_trusted(&self, host: &Host) -> bool {
        self.trusted
            .lock()
            .is_ok_and(|trusted| trusted.contains(host))
    }

    /// Has an origin asked again what it speaks: it does not keep to it.
    pub(crate) fn forget(&self, Endpoint { host, port }: Endpoint<'_>, called: OriginIdentity) {
        if let Ok(mut agreed) = self.agreed.lock() {
            agreed.remove(&(host.clone(), port, called));
        }
    }

    pub(crate) fn learn(
        &self,
        Endpoint { host, port }: Endpoint<'_>,
        called: OriginIdentity,
        version: Alpn,
    ) {
        if let Ok(mut agreed) = self.agreed.lock() {
            if agreed.len() >= limits::RESOLVED_MAX {
                agreed.clear();
            }
            agreed.insert((host.clone(), port, called), version);
        }
    }
}

/// The leaf of the one host a connection is for; the name was compared before.
#[derive(Debug)]
struct Always(Arc<CertifiedKey>);

impl ResolvesServerCert for Always {
    fn resolve(&self, _: rustls::server::ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0))
    }
}
