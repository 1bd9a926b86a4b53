//! As whom this gateway presents itself: a certificate for each host that the
//! operator named one for, and none to anybody else. Files are read before the
//! process confines itself; a key that others can have is refused.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use outgate_policy::Host;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;

use crate::config::ClientFiles;
use crate::limits;

/// See the head of this file.
#[derive(Default)]
pub(crate) struct Identities(HashMap<String, Arc<CertifiedKey>>);

impl fmt::Debug for Identities {
    /// Without keys.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_set().entries(self.0.keys()).finish()
    }
}

impl Identities {
    /// Reads the files.
    ///
    /// # Errors
    /// In words: which file, and what is wrong with it.
    pub(crate) fn read(clients: &[ClientFiles]) -> Result<Self, String> {
        let mut identities = HashMap::new();
        for client in clients {
            let host = Host::parse(&client.host)
                .map_err(|error| format!("host `{}`: {error}", client.host))?;
            identities.insert(host.to_string(), Arc::new(identity(client)?));
        }
        Ok(Self(identities))
    }

    /// Each host, as it is spelled in words, and what is presented to it.
    pub(crate) fn each(&self) -> impl Iterator<Item = (&String, &Arc<CertifiedKey>)> {
        self.0.iter()
    }
}

fn identity(client: &ClientFiles) -> Result<CertifiedKey, String> {
    let (certificate, key) = (&client.certificate, &client.key);
    let shown = certificate.display();
    // A file that holds both is a key file.
    let pem = if certificate == key {
        outgate_ca::read_key(key)
    } else {
        outgate_ca::read_public(certificate)
    };
    let pem = pem.map_err(|error| error.to_string())?;
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(pem.as_bytes())
        .take(limits::IDENTITY_CHAIN_MAX + 1)
        .collect::<Result<_, _>>()
        .map_err(|error| format!("{shown}: is no PEM: {error}"))?;
    if chain.is_empty() {
        return Err(format!("{shown}: holds no certificate in PEM"));
    }
    if chain.len() > limits::IDENTITY_CHAIN_MAX {
        let max = limits::IDENTITY_CHAIN_MAX;
        return Err(format!("{shown}: holds more than {max} certificates"));
    }
    let text = outgate_ca::read_key(key).map_err(|error| error.to_string())?;
    let shown_key = key.display();
    let der = PrivateKeyDer::from_pem_slice(text.as_bytes())
        .map_err(|_| format!("{shown_key}: holds no private key in PEM, or a locked one"))?;
    let signer = rustls::crypto::ring::sign::any_supported_type(&der)
        .map_err(|error| format!("{shown_key}: {error}"))?;
    let identity = CertifiedKey::new(chain, signer);
    match identity.keys_match() {
        // Some kinds of key do not tell: the handshake will.
        Ok(()) | Err(rustls::Error::InconsistentKeys(rustls::InconsistentKeys::Unknown)) => {
            Ok(identity)
        }
        Err(_) => Err(format!("{shown}: is not the certificate of {shown_key}")),
    }
}
