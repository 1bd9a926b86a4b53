//! Whom this gateway trusts to vouch for origins: the system's root
//! certificates and what the operator adds. Files are opened before the
//! process confines itself and read when the first origin needs them.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

use crate::limits;

/// Where systems keep their bundle of root certificates.
const BUNDLES: [&str; 5] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// The variable by which an operator names another bundle, as for OpenSSL.
const BUNDLE_VARIABLE: &str = "SSL_CERT_FILE";

/// See the head of this file.
#[derive(Debug, Default)]
pub(crate) struct Roots {
    system: Mutex<Option<File>>,
    added: Vec<CertificateDer<'static>>,
    store: OnceLock<Arc<RootCertStore>>,
}

impl Roots {
    /// Opens the system's bundle, and reads what the operator adds.
    ///
    /// # Errors
    /// A file the operator named cannot be read, or holds no certificate.
    pub(crate) fn locate(added: &[PathBuf]) -> Result<Self, (PathBuf, String)> {
        let named = std::env::var_os(BUNDLE_VARIABLE).map(PathBuf::from);
        let system = named
            .iter()
            .map(PathBuf::as_path)
            .chain(BUNDLES.iter().map(Path::new))
            .find_map(|path| File::open(path).ok());
        let mut certificates = Vec::new();
        for path in added {
            let failed = |why: String| (path.clone(), why);
            let file = File::open(path).map_err(|error| failed(error.to_string()))?;
            let found = read(file).map_err(failed)?;
            if found.is_empty() {
                return Err(failed("holds no certificate in PEM".to_owned()));
            }
            certificates.extend(found);
        }
        Ok(Self {
            system: Mutex::new(system),
            added: certificates,
            store: OnceLock::new(),
        })
    }

    /// All of them. What cannot be read or understood is left out: fewer
    /// origins are trusted then, never more.
    pub(crate) fn store(&self) -> Arc<RootCertStore> {
        let store = self.store.get_or_init(|| {
            let file = self.system.lock().ok().and_then(|mut file| file.take());
            let system = file.and_then(|file| read(file).ok()).unwrap_or_default();
            let mut store = RootCertStore::empty();
            store.add_parsable_certificates(system);
            store.add_parsable_certificates(self.added.iter().cloned());
            Arc::new(store)
        });
        Arc::clone(store)
    }
}

fn read(file: File) -> Result<Vec<CertificateDer<'static>>, String> {
    let mut text = Vec::new();
    let mut limited = file.take(limits::ROOTS_BYTES_MAX + 1);
    let count = limited.read_to_end(&mut text);
    let count = count.map_err(|error| error.to_string())?;
    if u64::try_from(count).unwrap_or(u64::MAX) > limits::ROOTS_BYTES_MAX {
        return Err(format!("is over {} bytes", limits::ROOTS_BYTES_MAX));
    }
    CertificateDer::pem_slice_iter(&text)
        .collect::<Result<_, _>>()
        .map_err(|error| format!("is no PEM: {error}"))
}
