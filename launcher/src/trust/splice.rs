//! Bundles of certificates in the place of those that programs bring or find at
//! fixed paths: which paths those are, and sealed files with the system's
//! authorities and a run's. By name alone: no file of the command is opened on
//! its behalf. Convenience, no boundary.

use std::ffi::CString;
use std::io::{self, Seek, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use nix::fcntl::{FcntlArg, OFlag, SealFlag, fcntl, open};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::stat::Mode;

use super::{pem, pkcs12, read, system};

/// Where systems keep their bundle, under all its names.
const BUNDLES: [&[u8]; 15] = [
    b"/etc/ssl/certs/ca-certificates.crt",
    b"/etc/ssl/certs/ca-bundle.crt",
    b"/etc/ssl/ca-bundle.pem",
    b"/etc/ssl/cert.pem",
    b"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    b"/etc/pki/tls/certs/ca-bundle.crt",
    b"/etc/pki/tls/cert.pem",
    b"/etc/ca-certificates/extracted/tls-ca-bundle.pem",
    b"/usr/lib/ssl/cert.pem",
    b"/usr/lib/ssl/certs/ca-certificates.crt",
    b"/usr/local/ssl/cert.pem",
    b"/usr/local/etc/openssl/cert.pem",
    b"/usr/local/share/certs/ca-root-nss.crt",
    b"/usr/share/ssl/certs/ca-bundle.crt",
    b"/var/lib/ca-certificates/ca-bundle.pem",
];

/// How the paths of copies end that programs bring with them: those of Python,
/// of the AWS and PHP libraries, of gRPC, of conda.
const COPIES: [&[u8]; 6] = [
    b"/certifi/cacert.pem",
    b"/botocore/cacert.pem",
    b"/ca-bundle/res/cacert.pem",
    b"/_credentials/roots.pem",
    b"/ssl/cacert.pem",
    b"/envs/default/ssl/cert.pem",
];

/// The same for Java, whose store has a format of its own.
const JAVA: [&[u8]; 3] = [
    b"/lib/security/cacerts",
    b"/etc/ssl/certs/java/cacerts",
    b"/etc/pki/java/cacerts",
];

/// Longest path that is looked at, in bytes.
pub(crate) const PATH_BYTES: usize = 512;

/// What stands at these paths for a run.
#[derive(Debug)]
pub struct Stores {
    bundle: OwnedFd,
    java: OwnedFd,
}

impl Stores {
    /// The system's authorities and this one. `None` where the system has none
    /// that can be read: this one alone would take away more than it gives.
    ///
    /// # Errors
    /// No memory for them.
    pub fn make(authority: &str) -> io::Result<Option<Self>> {
        let text = pem::certificates(&read(&system()).unwrap_or_default());
        if text.is_empty() || authority.is_empty() {
            return Ok(None);
        }
        let all = [&text, authority.as_bytes()].concat();
        Ok(Some(Self {
            java: sealed(&pkcs12::store(&pem::ders(&all)))?,
            bundle: sealed(&all)?,
        }))
    }

    /// What stands at this path, opened anew; nothing for any other.
    pub(crate) fn at(&self, path: &[u8]) -> Option<nix::Result<OwnedFd>> {
        let file = match kind(path)? {
            StoreFormat::Bundle => &self.bundle,
            StoreFormat::Java => &self.java,
        };
        // A description of its own: each reader begins at the beginning.
        let own = format!("/proc/self/fd/{}", file.as_raw_fd());
        let flags = OFlag::O_RDONLY | OFlag::O_CLOEXEC;
        Some(open(own.as_str(), flags, Mode::empty()))
    }
}

/// Which format stands at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StoreFormat {
    Bundle,
    Java,
}

fn kind(path: &[u8]) -> Option<StoreFormat> {
    let ends = |ending: &&[u8]| path.ends_with(ending);
    if BUNDLES.contains(&path) || COPIES.iter().any(ends) {
        Some(StoreFormat::Bundle)
    } else if JAVA.iter().any(ends) {
        Some(StoreFormat::Java)
    } else {
        None
    }
}

/// A file in memory that nobody can alter any more.
pub(crate) fn sealed(content: &[u8]) -> io::Result<OwnedFd> {
    let name = CString::from(c"outgate");
    let flags = MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING;
    let mut file = std::fs::File::from(memfd_create(name.as_c_str(), flags)?);
    file.write_all(content)?;
    file.rewind()?;
    let seals = SealFlag::F_SEAL_WRITE | SealFlag::F_SEAL_GROW | SealFlag::F_SEAL_SHRINK;
    let seals = FcntlArg::F_ADD_SEALS(seals | SealFlag::F_SEAL_SEAL);
    fcntl(file.as_fd(), seals)?;
    Ok(file.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn only_known_places_are_bundles() {
        for (path, expected) in [
            (
                "/etc/ssl/certs/ca-certificates.crt",
                Some(StoreFormat::Bundle),
            ),
            ("/etc/ssl/certs/ca-certificates.crt.bak", None),
            ("/home/u/etc/ssl/certs/ca-certificates.crt", None),
            (
                "/opt/v/lib/python3/site-packages/certifi/cacert.pem",
                Some(StoreFormat::Bundle),
            ),
            (
                "site-packages/pip/_vendor/certifi/cacert.pem",
                Some(StoreFormat::Bundle),
            ),
            ("/home/u/cacert.pem", None),
            ("/home/u/notcertifi/cacert.pem", None),
            (
                "/usr/lib/jvm/java-17/lib/security/cacerts",
                Some(StoreFormat::Java),
            ),
            ("/home/u/cacerts", None),
            ("", None),
        ] {
            assert_eq!(kind(path.as_bytes()), expected, "{path}");
        }
    }

    #[test]
    fn every_reader_begins_at_the_beginning_and_none_writes() {
        let stores = Stores {
            bundle: sealed(b"bundle").unwrap(),
            java: sealed(b"java").unwrap(),
        };
        let read = |path: &str| {
            let file = stores.at(path.as_bytes()).unwrap().unwrap();
            let mut text = String::new();
            std::fs::File::from(file).read_to_string(&mut text).unwrap();
            text
        };
        for _ in 0..2 {
            assert_eq!(read("/etc/ssl/cert.pem"), "bundle");
            assert_eq!(read("/etc/pki/java/cacerts"), "java");
        }
        let mut file = std::fs::File::from(sealed(b"x").unwrap());
        assert!(file.write_all(b"y").is_err());
    }
}
