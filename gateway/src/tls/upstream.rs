//! TLS towards origins: who they are is always verified, against the name or
//! address that was judged. Configurations are a session's own, so that what is
//! resumed belongs to it alone, and one host's where a certificate is presented.

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, OnceLock};

use outgate_policy::Host;
use rustls::pki_types::ServerName;
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{CertificateError, ClientConfig};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::keys::TlsKeys;
use super::roots::Roots;
use crate::carrier::{Alpn, OriginIdentity};
use crate::limits;

/// Which versions of HTTP an origin is offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Offer {
    Only(Alpn),
    Both,
}

/// See the head of this file.
#[derive(Debug)]
pub(crate) struct Upstream {
    roots: Arc<Roots>,
    /// For hosts to which nothing is presented.
    config: Config,
    /// For the others, by their names.
    presenting: HashMap<String, (Arc<CertifiedKey>, Config)>,
}

/// Made when it is first needed: the roots are read then.
type Config = OnceLock<Result<Arc<ClientConfig>, String>>;

impl Upstream {
    pub(crate) fn new(keys: &TlsKeys) -> Self {
        let each = keys.identities().each();
        let presenting = each.map(|(host, identity)| {
            let config = (Arc::clone(identity), OnceLock::new());
            (host.clone(), config)
        });
        Self {
            roots: Arc::clone(keys.roots()),
            config: OnceLock::new(),
            presenting: presenting.collect(),
        }
    }

    /// Whether a certificate is presented to a host, should it ask for one.
    pub(crate) fn presents(&self, host: &Host, called: OriginIdentity) -> bool {
        self.presenting.contains_key(&called.spell(host))
    }

    /// Makes a TLS connection of a TCP connection; what is wrong, if it does
    /// not come to one, in words for people.
    pub(crate) async fn connect(
        &self,
        stream: TcpStream,
        (host, called): (&Host, OriginIdentity),
        offer: Offer,
    ) -> Result<TlsStream<TcpStream>, String> {
        let config = match self.presenting.get(&called.spell(host)) {
            None => self.config.get_or_init(|| self.configure(None)),
            Some((identity, config)) => config.get_or_init(|| self.configure(Some(identity))),
        };
        let config = config.as_ref().map_err(Clone::clone)?;
        let mut config = ClientConfig::clone(config);
        config.alpn_protocols = match offer {
            Offer::Only(version) => vec![version.name().to_vec()],
            Offer::Both => vec![Alpn::Http2.name().to_vec(), Alpn::Http1.name().to_vec()],
        };
        let name = server_name(host, called).ok_or("its name cannot stand in a certificate")?;
        let connecting = TlsConnector::from(Arc::new(config)).connect(name, stream);
        match timeout(limits::TLS_HANDSHAKE_TIME, connecting).await {
            Ok(Ok(stream)) => Ok(stream),
            Ok(Err(error)) => Err(fault(&error)),
            Err(_) => Err(format!(
                "no end of the TLS handshake within {} s",
                limits::TLS_HANDSHAKE_TIME.as_secs()
            )),
        }
    }

    fn configure(&self, identity: Option<&Arc<CertifiedKey>>) -> Result<Arc<ClientConfig>, String> {
        let roots = self.roots.store();
        if roots.is_empty() {
            return Err(
                "no root certificates can be read here; install ca-certificates, or name a \
                 file with SSL_CERT_FILE or --upstream-ca"
                    .to_owned(),
            );
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .with_root_certificates(roots);
        Ok(Arc::new(match identity {
            None => config.with_no_client_auth(),
            Some(identity) => {
                let identity = SingleCertAndKey::from(Arc::clone(identity));
                config.with_client_cert_resolver(Arc::new(identity))
            }
        }))
    }
}

fn server_name(host: &Host, called: OriginIdentity) -> Option<ServerName<'static>> {
    match (host, called) {
        (Host::Address(address), OriginIdentity::Itself) => {
            Some(ServerName::IpAddress(IpAddr::into(*address)))
        }
        (Host::Name(_), _) | (_, OriginIdentity::Localhost) => {
            ServerName::try_from(called.spell(host)).ok()
        }
    }
}

/// What is wrong with an origin's certificate or handshake.
fn fault(error: &io::Error) -> String {
    let cause = error.get_ref().and_then(|inner| inner.downcast_ref());
    let Some(cause) = cause else {
        return format!("TLS handshake: {error}");
    };
    let rustls::Error::InvalidCertificate(certificate) = cause else {
        return format!("TLS handshake: {cause}");
    };
    let words = match certificate {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => "has expired",
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "is not valid yet"
        }
        CertificateError::Revoked => "was revoked",
        CertificateError::UnknownIssuer => {
            "comes from an issuer that this machine does not trust; if you do, name its \
             certificate with --upstream-ca FILE"
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "is for another name"
        }
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            "is not for servers"
        }
        CertificateError::BadSignature => "has a wrong signature",
        // The verifier's own kind of error has no name here.
        other if format!("{other:?}").contains("CaUsedAsEndEntity") => {
            "is one of an authority, not of a server (it says CA:TRUE)"
        }
        other => return format!("its certificate cannot be accepted: {other:?}"),
    };
    format!("its certificate {words}")
}
