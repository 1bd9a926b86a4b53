//! Whom the client inside TLS trusts.

use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

use crate::Outcome;

/// Whoever is trusted with `roots`, or with what the environment says.
pub(super) fn trusting(roots: Option<&str>) -> Outcome<Arc<ClientConfig>> {
    let file = match (std::env::var("SSL_CERT_FILE"), roots) {
        (Ok(file), _) => file,
        (Err(_), Some(file)) => file.to_owned(),
        (Err(_), None) => return Err("nobody is trusted".into()),
    };
    trusted(&file)
}

/// Whoever is trusted with the certificates in a file.
pub(super) fn trusted(file: &str) -> Outcome<Arc<ClientConfig>> {
    let mut store = RootCertStore::empty();
    let certificates = CertificateDer::pem_file_iter(file)?;
    store.add_parsable_certificates(certificates.flatten());
    let config = ClientConfig::builder_with_provider(super::provider())
        .with_safe_default_protocol_versions()?
        .with_root_certificates(store)
        .with_no_client_auth();
    Ok(Arc::new(config))
}
