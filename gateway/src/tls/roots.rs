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
        let named = std::env::var_os(BUNDLE_VARIABLE).filter(|named| !named.is_empty());
        let system = system(named.as_deref().map(Path::new));
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

/// The system's bundle, or the one that is named in its place: whoever names
/// one does not trust the others, also where it cannot be read.
fn system(named: Option<&Path>) -> Option<File> {
    let open = |path: &Path| {
        // Opening a pipe would wait for its writer.
        path.is_file().then(|| File::open(path).ok()).flatten()
    };
    match named {
        Some(named) => open(named),
        None => BUNDLES.iter().find_map(|path| open(Path::new(path))),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bundle_that_is_named_is_the_only_one() {
        assert!(system(Some(Path::new("/nowhere/roots.pem"))).is_none());
        assert!(system(Some(Path::new("/"))).is_none());
        assert!(system(Some(Path::new("/etc/hosts"))).is_some());
        let pipe = std::env::temp_dir().join(format!("outgate-roots-{}", std::process::id()));
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRUSR).unwrap();
        assert!(system(Some(&pipe)).is_none());
        std::fs::remove_file(&pipe).unwrap();
    }
}
