//! TLS towards origins: who they are is always verified, against the name or
//! address that was judged. One configuration per session, so that what is
//! resumed belongs to it alone.

use std::io;
use std::net::IpAddr;
use std::sync::{Arc, OnceLock};

use outgate_policy::Host;
use rustls::pki_types::ServerName;
use rustls::{CertificateError, ClientConfig};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::carrier::Alpn;
use super::roots::Roots;
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
    config: OnceLock<Result<Arc<ClientConfig>, String>>,
}

impl Upstream {
    pub(crate) fn new(roots: Arc<Roots>) -> Self {
        Self {
            roots,
            config: OnceLock::new(),
        }
    }

    /// Makes a TLS connection of a TCP connection; what is wrong, if it does
    /// not come to one, in words for people.
    pub(crate) async fn connect(
        &self,
        stream: TcpStream,
        host: &Host,
        offer: Offer,
    ) -> Result<TlsStream<TcpStream>, String> {
        let config = self.config.get_or_init(|| self.configure());
        let config = config.as_ref().map_err(Clone::clone)?;
        let mut config = ClientConfig::clone(config);
        config.alpn_protocols = match offer {
            Offer::Only(version) => vec![version.name().to_vec()],
            Offer::Both => vec![Alpn::Http2.name().to_vec(), Alpn::Http1.name().to_vec()],
        };
        let name = server_name(host).ok_or("its name cannot stand in a certificate")?;
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

    fn configure(&self) -> Result<Arc<ClientConfig>, String> {
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
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Arc::new(config))
    }
}

fn server_name(host: &Host) -> Option<ServerName<'static>> {
    match host {
        Host::Name(name) => ServerName::try_from(name.as_str().to_owned()).ok(),
        Host::Address(address) => Some(ServerName::IpAddress(IpAddr::into(*address))),
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
