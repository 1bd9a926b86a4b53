//! Bundles of certificates in the place of those that programs bring or find at
//! fixed paths, and databases of NSS in the place of the user's own: which paths
//! those are, and sealed files with the system's authorities and a run's. By name
//! alone: no file of the command is opened on its behalf. Convenience, no boundary.

use std::ffi::{CString, OsStr};
use std::io::{self, Seek, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use nix::fcntl::{FcntlArg, OFlag, SealFlag, fcntl, open};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::stat::Mode;

use super::nss::{self, NssFile};
use super::{TrustMeans, pem, pkcs12, read, system};

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
    bundles: Option<BundleStores>,
    nss: NssStores,
}

/// The system's authorities and a run's.
#[derive(Debug)]
struct BundleStores {
    bundle: OwnedFd,
    java: OwnedFd,
}

/// A run's authority for NSS, and where that is given.
#[derive(Debug)]
struct NssStores {
    directories: Vec<PathBuf>,
    certificates: OwnedFd,
    keys: OwnedFd,
    modules: OwnedFd,
}

impl Stores {
    /// Makes what these means take; the databases of NSS are given in these directories.
    ///
    /// # Errors
    /// No memory for them.
    pub(crate) fn make(
        authority: &str,
        means: TrustMeans,
        directories: &[PathBuf],
    ) -> io::Result<Self> {
        let bundles = match means {
            TrustMeans::Splice => BundleStores::make(authority)?,
            TrustMeans::Variables | TrustMeans::Nss => None,
        };
        let nss = NssStores::make(authority, directories)?;
        Ok(Self { bundles, nss })
    }

    /// Whether bundles are given; not where the system has none that can be read.
    pub(crate) fn has_bundles(&self) -> bool {
        self.bundles.is_some()
    }

    /// What stands at this path, opened anew in this way; nothing for any other, or any other
    /// way.
    pub(crate) fn at(&self, path: &[u8], flags: OFlag) -> Option<nix::Result<OwnedFd>> {
        let (file, way) = match self.nss.at(path) {
            // SQLite opens to write what it only reads. Their seals answer whoever does write.
            Some(file) if !flags.intersects(OFlag::O_DIRECTORY | OFlag::O_PATH) => {
                (file, flags & OFlag::O_ACCMODE)
            }
            Some(_) => return None,
            None if flags.intersects(NOT_TO_READ) => return None,
            None => (self.bundles.as_ref()?.at(path)?, OFlag::O_RDONLY),
        };
        // A description of its own: each reader begins at the beginning.
        let own = format!("/proc/self/fd/{}", file.as_raw_fd());
        Some(open(own.as_str(), way | OFlag::O_CLOEXEC, Mode::empty()))
    }
}

impl BundleStores {
    /// `None` where the system has no authorities that can be read: this one alone would take
    /// away more than it gives.
    fn make(authority: &str) -> io::Result<Option<Self>> {
        let text = pem::certificates(&read(&system()).unwrap_or_default());
        if text.is_empty() {
            return Ok(None);
        }
        let all = [&text, authority.as_bytes()].concat();
        Ok(Some(Self {
            java: sealed(&pkcs12::store(&pem::ders(&all)))?,
            bundle: sealed(&all)?,
        }))
    }

    fn at(&self, path: &[u8]) -> Option<&OwnedFd> {
        match kind(path)? {
            StoreFormat::Bundle => Some(&self.bundle),
            StoreFormat::Java => Some(&self.java),
        }
    }
}

impl NssStores {
    fn make(authority: &str, directories: &[PathBuf]) -> io::Result<Self> {
        let ders = pem::ders(authority.as_bytes());
        // SQLite follows the links on the way before it opens.
        let real = directories.iter().filter_map(|own| own.canonicalize().ok());
        Ok(Self {
            directories: directories.iter().cloned().chain(real).collect(),
            certificates: sealed(&nss::certificates(ders.first().map(Vec::as_slice)))?,
            keys: sealed(&nss::keys())?,
            modules: sealed(&[])?,
        })
    }

    fn at(&self, path: &[u8]) -> Option<&OwnedFd> {
        let path = Path::new(OsStr::from_bytes(path));
        let file = NssFile::named(path.file_name()?.as_bytes())?;
        let parent = path.parent()?;
        if !self.directories.iter().any(|own| own == parent) {
            return None;
        }
        Some(match file {
            NssFile::Certificates => &self.certificates,
            NssFile::Keys => &self.keys,
            NssFile::Modules => &self.modules,
        })
    }
}

/// What opens otherwise than to read: the command's own file then.
const NOT_TO_READ: OFlag = OFlag::O_WRONLY
    .union(OFlag::O_RDWR)
    .union(OFlag::O_CREAT)
    .union(OFlag::O_TRUNC)
    .union(OFlag::O_DIRECTORY)
    .union(OFlag::O_PATH);

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

    fn stores(directory: &Path) -> Stores {
        Stores {
            bundles: Some(BundleStores {
                bundle: sealed(b"bundle").unwrap(),
                java: sealed(b"java").unwrap(),
            }),
            nss: NssStores {
                directories: vec![directory.to_owned()],
                certificates: sealed(b"certificates").unwrap(),
                keys: sealed(b"keys").unwrap(),
                modules: sealed(b"").unwrap(),
            },
        }
    }

    #[test]
    fn every_reader_begins_at_the_beginning_and_none_writes() {
        let stores = stores(Path::new("/home/u/.pki/nssdb"));
        let read = |path: &str, flags| {
            let file = stores.at(path.as_bytes(), flags).unwrap().unwrap();
            let mut text = String::new();
            let mut file = std::fs::File::from(file);
            file.read_to_string(&mut text).unwrap();
            assert!(
                file.write_all(b"y").is_err() && file.set_len(0).is_err(),
                "{path}"
            );
            text
        };
        let database = OFlag::O_RDWR | OFlag::O_CREAT | OFlag::O_NOFOLLOW;
        for _ in 0..2 {
            assert_eq!(read("/etc/ssl/cert.pem", OFlag::O_RDONLY), "bundle");
            assert_eq!(read("/etc/pki/java/cacerts", OFlag::O_RDONLY), "java");
            assert_eq!(
                read("/home/u/.pki/nssdb/cert9.db", database),
                "certificates"
            );
            assert_eq!(read("/home/u/.pki/nssdb/key4.db", database), "keys");
            assert_eq!(read("/home/u/.pki/nssdb/pkcs11.txt", OFlag::O_RDONLY), "");
        }
    }

    #[test]
    fn what_is_opened_otherwise_or_lies_beside_is_the_commands_own() {
        let stores = stores(Path::new("/home/u/.pki/nssdb"));
        for (path, flags) in [
            ("/etc/ssl/cert.pem", OFlag::O_RDWR),
            ("/etc/ssl/cert.pem", OFlag::O_CREAT),
            ("/home/u/.pki/nssdb", OFlag::O_RDONLY),
            ("/home/u/.pki/nssdb/cert9.db", OFlag::O_PATH),
            ("/home/u/.pki/nssdb/cert9.db-journal", OFlag::O_RDWR),
            ("/home/u/.pki/nssdb/more/cert9.db", OFlag::O_RDWR),
            ("/home/u/.pki/cert9.db", OFlag::O_RDWR),
            ("/home/v/.pki/nssdb/cert9.db", OFlag::O_RDWR),
            (".pki/nssdb/cert9.db", OFlag::O_RDWR),
        ] {
            assert!(stores.at(path.as_bytes(), flags).is_none(), "{path}");
        }
    }
}
