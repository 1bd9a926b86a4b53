//! What makes the command trust the authority of its run: bundles of root
//! certificates in the private directory, and the variables by which programs
//! find them. Roots are always added to those that would hold anyway, never
//! put in their place. Changes no file of the system or of the user, and copies
//! nothing but certificates: what else a file holds the command may not read.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Component, Path, PathBuf};

use nix::fcntl::OFlag;

use crate::environment::Variables;
use crate::private::HeldDirectory;

mod der;
pub(crate) mod java;
mod late;
mod nss;
mod pem;
mod pkcs12;
mod sha1;
pub mod splice;
mod sqlite;

pub use java::{JavaPresence, presence};
pub use late::Late;

/// Where systems keep their bundle of root certificates.
const BUNDLES: [&str; 5] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// Bytes of one bundle at most; systems' own have 250 KiB.
const BUNDLE_BYTES_MAX: u64 = 8 * 1024 * 1024;

/// Variables that name a file with the certificates to trust, and who reads
/// them.
const VARIABLES: [&str; 14] = [
    // OpenSSL, Go, Ruby, Perl, httpx, aiohttp, uv, .NET
    "SSL_CERT_FILE",
    // curl, and requests after its own
    "CURL_CA_BUNDLE",
    // requests, gcloud
    "REQUESTS_CA_BUNDLE",
    "PIP_CERT",
    "GIT_SSL_CAINFO",
    "CARGO_HTTP_CAINFO",
    "AWS_CA_BUNDLE",
    "CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE",
    "HTTPLIB2_CA_CERTS",
    "NIX_SSL_CERT_FILE",
    "npm_config_cafile",
    "BUNDLE_SSL_CA_CERT",
    "PERL_LWP_SSL_CA_FILE",
    "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH",
];

/// Variables of programs that add what the file holds to roots of their own: Node, bun,
/// Yarn of every version; Deno. Yarn from 2 on stops at a variable `YARN_*` that its version
/// does not know, so there is none of these. Node reads the file at every start, and takes
/// longer for a system's 150 roots than for all else.
const ADDITIONS: [&str; 2] = ["NODE_EXTRA_CA_CERTS", "DENO_CERT"];

/// The authority alone, for programs that keep a store of their own.
const AUTHORITY: &str = "authority.pem";

/// The store for Java.
const JAVA: &str = "java.p12";

/// The names of all variables that make programs trust.
pub fn names() -> impl Iterator<Item = &'static str> {
    let files = ["WGETRC", "APT_CONFIG", "PHP_INI_SCAN_DIR", java::OPTIONS];
    VARIABLES.into_iter().chain(ADDITIONS).chain(files)
}

/// How a command is made to trust.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TrustMeans {
    /// By variables that name bundles.
    #[default]
    Variables,
    /// By them, and by a database in the place of the user's own of NSS, which hides that of
    /// the run from programs that look for one.
    Nss,
    /// By them, and by bundles and databases in the place of those that programs open.
    Splice,
}

/// The bundles of one run: which file holds what which file held, and ours.
#[derive(Debug)]
pub struct Trust {
    directory: HeldDirectory,
    /// The bundle that is extended, and the one that takes its place.
    bundles: BTreeMap<PathBuf, Bundle>,
    settings: Vec<ClientSettings>,
    java: Option<Java>,
    /// Where NSS finds its database, if that is in the directory.
    nss: Option<String>,
    /// Where it looks before that or instead.
    elsewhere: Vec<PathBuf>,
}

/// A bundle of the run.
#[derive(Debug)]
struct Bundle {
    /// Its name in the directory.
    name: String,
    /// The bundle that it begins with, opened before a command could put another in its place.
    begins: Option<File>,
}

/// A store for Java.
#[derive(Debug)]
struct Java {
    begins: JavaStoreKind,
}

/// What a store for Java holds beside our authority.
#[derive(Debug)]
enum JavaStoreKind {
    /// The system's roots.
    System(PathBuf),
    /// Those of the store that the user's options name, in DER.
    Named(Vec<Vec<u8>>),
}

/// A file of settings, with nothing from the user's: settings hold passwords.
#[derive(Debug)]
struct ClientSettings {
    name: &'static str,
    text: String,
}

impl Trust {
    /// Points the variables at bundles in the private directory. What the user
    /// pointed them at is what those bundles begin with.
    pub fn prepare(private: &HeldDirectory, java: JavaPresence, variables: &mut Variables) -> Self {
        let mut trust = Self {
            directory: private.clone(),
            bundles: BTreeMap::new(),
            settings: Vec::new(),
            java: None,
            nss: private_data(private.path(), variables),
            elsewhere: nss_directories(private.path(), variables),
        };
        let system = system();
        for name in VARIABLES {
            let own = variables
                .get(OsStr::new(name))
                .filter(|own| !own.is_empty());
            let begins = own.map_or_else(|| system.clone(), PathBuf::from);
            let bundle = trust.bundle(begins);
            variables.insert(name.into(), bundle.into_os_string());
        }
        for name in ADDITIONS {
            let own = variables
                .get(OsStr::new(name))
                .filter(|own| !own.is_empty());
            let file = match own {
                Some(own) => trust.bundle(own.into()),
                None => private.path().join(AUTHORITY),
            };
            variables.insert(name.into(), file.into_os_string());
        }
        trust.files(variables, &system);
        if java == JavaPresence::Here {
            trust.java(variables, &system);
        }
        trust
    }

    /// How the command comes to trust, where it is to do so by this: its database hides
    /// behind one of the user's own.
    pub fn means(&self, asked: TrustMeans) -> TrustMeans {
        let is_hidden = || self.elsewhere.first().is_some_and(|own| own.is_dir());
        match asked {
            TrustMeans::Variables if self.nss.is_some() && is_hidden() => TrustMeans::Nss,
            TrustMeans::Variables | TrustMeans::Nss | TrustMeans::Splice => asked,
        }
    }

    /// The user's own directory of NSS, where it holds no database: NSS would make one there,
    /// and takes none that is given.
    pub(crate) fn unmade(&self) -> Option<&Path> {
        let own = self.elsewhere.first()?;
        nss::is_unmade(own).then_some(own.as_path())
    }

    /// Where a database of NSS is given instead of the one that lies there.
    pub(crate) fn nss_elsewhere(&self) -> &[PathBuf] {
        &self.elsewhere
    }

    /// Java, where there is one.
    fn java(&mut self, variables: &mut Variables, system: &Path) {
        // In the place of nothing that is known, our authority alone would
        // take away more than it gives.
        let begins = match java::named(variables) {
            // Read where somebody wants it: there are more than a hundred in it.
            None if system.as_os_str().is_empty() => return,
            None => JavaStoreKind::System(system.to_owned()),
            Some(own) => {
                let own = read(&own).unwrap_or_default();
                let own = java::certificates(&own).or_else(|| pkcs12::certificates(&own));
                match own.filter(|own| !own.is_empty()) {
                    Some(own) => JavaStoreKind::Named(own),
                    None => return,
                }
            }
        };
        java::name(variables, &self.place(JAVA));
        self.java = Some(Java { begins });
    }

    /// Programs that read a file of settings instead of a variable.
    fn files(&mut self, variables: &mut Variables, system: &Path) {
        let bundle = self.bundle(system.to_owned()).display().to_string();
        let own = |variables: &Variables, name: &str| {
            let own = variables.get(OsStr::new(name)).map(PathBuf::from);
            own.filter(|own| !own.as_os_str().is_empty())
        };
        // wget(1): in place of the one in the home directory, which has no word
        // for reading another.
        self.settings.push(ClientSettings {
            name: "wgetrc",
            text: format!("ca_certificate = {bundle}\n"),
        });
        // apt.conf(5): read before its own. It reads the user's itself.
        let include = own(variables, "APT_CONFIG")
            .filter(|path| path.is_file())
            .and_then(|path| path.to_str().map(str::to_owned))
            .filter(|path| !path.contains(['"', '\\', '\n']))
            .map(|path| format!("#include \"{path}\";\n"));
        self.settings.push(ClientSettings {
            name: "apt.conf",
            text: format!(
                "{}Acquire::https::CAInfo \"{bundle}\";\n",
                include.unwrap_or_default()
            ),
        });
        // PHP: a directory beside those it has anyway.
        let scanned = own(variables, "PHP_INI_SCAN_DIR").unwrap_or_default();
        self.settings.push(ClientSettings {
            name: "php/outgate.ini",
            text: format!("openssl.cafile = \"{bundle}\"\ncurl.cainfo = \"{bundle}\"\n"),
        });
        let mut directories = scanned.into_os_string();
        directories.push(":");
        directories.push(self.place("php"));
        variables.insert("PHP_INI_SCAN_DIR".into(), directories);
        variables.insert("WGETRC".into(), self.place("wgetrc").into());
        variables.insert("APT_CONFIG".into(), self.place("apt.conf").into());
    }

    /// The bundle that begins with what a file holds.
    fn bundle(&mut self, begins: PathBuf) -> PathBuf {
        let number = self.bundles.len();
        let bundle = match self.bundles.entry(begins) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => {
                let name = match number {
                    0 => "ca-bundle.pem".to_owned(),
                    _ => format!("ca-bundle-{number}.pem"),
                };
                let begins = opened(new.key()).ok();
                new.insert(Bundle { name, begins })
            }
        };
        self.directory.path().join(&bundle.name)
    }

    fn place(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Writes everything, now that the authority's certificate is known.
    ///
    /// # Errors
    /// The private directory cannot be written: the operator's.
    pub fn write(&self, authority: &str) -> io::Result<()> {
        for file in self.waiting() {
            let content = file.content(self, authority);
            self.directory.put(Path::new(file.name(self)), &content)?;
        }
        self.write_settings()
    }

    /// What a bundle held that was opened before.
    fn roots(&self, begins: &Path) -> Vec<u8> {
        let opened = self.bundles.get(begins).and_then(|own| own.begins.as_ref());
        opened.map_or_else(Vec::new, |file| content(file).unwrap_or_default())
    }

    /// The files whose content the authority belongs to, those first that take least time.
    fn waiting(&self) -> Vec<PendingStore> {
        let bundles = self.bundles.keys().cloned().map(PendingStore::Bundle);
        let java = self.java.as_ref().map(|_| PendingStore::Java);
        let nss = self.nss.as_ref().map(|_| PendingStore::Nss);
        let authority = [PendingStore::Authority].into_iter();
        authority.chain(nss).chain(bundles).chain(java).collect()
    }

    /// Writes what does not depend on the authority.
    fn write_settings(&self) -> io::Result<()> {
        for settings in &self.settings {
            let content = settings.text.as_bytes();
            self.directory.put(Path::new(settings.name), content)?;
        }
        Ok(())
    }
}

/// A file whose content the authority belongs to.
#[derive(Debug)]
enum PendingStore {
    /// The bundle that begins with what this file holds.
    Bundle(PathBuf),
    /// The store for Java.
    Java,
    /// The authority alone.
    Authority,
    /// The database of NSS.
    Nss,
}

impl PendingStore {
    /// Its name in the directory.
    fn name<'t>(&self, trust: &'t Trust) -> &'t str {
        match self {
            Self::Bundle(begins) => trust.bundles.get(begins).map_or("", |own| &own.name),
            Self::Java => JAVA,
            Self::Authority => AUTHORITY,
            Self::Nss => trust.nss.as_deref().unwrap_or_default(),
        }
    }

    fn content(&self, trust: &Trust, authority: &str) -> Vec<u8> {
        let authority = authority.as_bytes();
        match self {
            // What the user named and cannot be read never worked either.
            Self::Bundle(begins) => [&pem::certificates(&trust.roots(begins)), authority].concat(),
            Self::Java => {
                let mut all = match trust.java.as_ref().map(|java| &java.begins) {
                    Some(JavaStoreKind::System(bundle)) => pem::ders(&trust.roots(bundle)),
                    Some(JavaStoreKind::Named(own)) => own.clone(),
                    None => Vec::new(),
                };
                all.extend(pem::ders(authority));
                pkcs12::store(&all)
            }
            Self::Authority => authority.to_vec(),
            Self::Nss => nss::certificates(pem::ders(authority).first().map(Vec::as_slice)),
        }
    }
}

/// Where NSS finds its database in a private directory, by the directory for data that the
/// command is told (basedir-spec): nowhere, where that is another.
fn private_data(private: &Path, variables: &Variables) -> Option<String> {
    let data = Path::new(variables.get(OsStr::new("XDG_DATA_HOME"))?);
    let below = data.strip_prefix(private).ok()?;
    let is_plain = |part| matches!(part, Component::Normal(_));
    let below = below.components().all(is_plain).then_some(below)?;
    let file = below.join(nss::BELOW_DATA).join(nss::CERTIFICATES);
    file.to_str().map(str::to_owned)
}

/// The directories of the user's own databases of NSS, in the order in which they are looked
/// for. That of the run itself is none of them: there NSS makes what it misses.
fn nss_directories(private: &Path, variables: &Variables) -> Vec<PathBuf> {
    let path = |name: &str| variables.get(OsStr::new(name)).map(PathBuf::from);
    let Some(home) = path("HOME") else {
        return Vec::new();
    };
    let data = path("XDG_DATA_HOME").unwrap_or_else(|| home.join(".local/share"));
    let all = [home.join(nss::BELOW_HOME), data.join(nss::BELOW_DATA)];
    let users = |own: &PathBuf| !own.starts_with(private);
    all.into_iter().filter(users).collect()
}

/// The system's bundle of root certificates; an empty path where there is none.
fn system() -> PathBuf {
    let mut known = BUNDLES.iter().map(PathBuf::from);
    known.find(|path| path.is_file()).unwrap_or_default()
}

/// Takes out of the variables what leads into a directory: what this file had
/// put there before.
pub fn forget(directory: &Path, variables: &mut Variables) {
    let inside = |value: &OsStr| Path::new(value).starts_with(directory);
    variables.retain(|_, value| !inside(value));
    let scanned = OsStr::new("PHP_INI_SCAN_DIR");
    if let Some(value) = variables.get(scanned) {
        let kept = std::env::split_paths(value).filter(|path| !inside(path.as_os_str()));
        match std::env::join_paths(kept) {
            Ok(value) if !value.is_empty() => drop(variables.insert(scanned.into(), value)),
            _ => drop(variables.remove(scanned)),
        }
    }
    java::forget(directory, variables);
}

/// The system's root certificates and these, as one bundle.
pub fn bundle(authority: &[u8]) -> Vec<u8> {
    let roots = read(&system()).unwrap_or_default();
    [pem::certificates(&roots), pem::certificates(authority)].concat()
}

/// Opens a regular file; a pipe that somebody left there holds up nobody.
fn opened(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new()
        .read(true)
        .custom_flags((OFlag::O_NONBLOCK | OFlag::O_NOCTTY).bits())
        .open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    Ok(file)
}

/// What a file holds, from its beginning, whoever read of it before.
fn content(mut file: &File) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    file.rewind()?;
    file.take(BUNDLE_BYTES_MAX).read_to_end(&mut text)?;
    Ok(text)
}

/// What the file at a path holds.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    if path.as_os_str().is_empty() {
        return Ok(Vec::new());
    }
    content(&opened(path)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(path: &Path) -> HeldDirectory {
        HeldDirectory::open(path).unwrap()
    }

    #[test]
    fn a_database_is_given_where_the_users_own_hides_that_of_the_run() {
        let root = std::env::temp_dir().join(format!("outgate-nss-{}", std::process::id()));
        let (private, home) = (root.join("private"), root.join("home"));
        std::fs::create_dir_all(&private).unwrap();
        let of = |data: Option<PathBuf>| {
            let mut variables = Variables::from([("HOME".into(), home.clone().into_os_string())]);
            variables.extend(data.map(|data| ("XDG_DATA_HOME".into(), data.into_os_string())));
            Trust::prepare(&held(&private), presence(&variables), &mut variables)
        };
        let below_home = home.join(".pki/nssdb");
        for own in [private.join("data"), private.clone()] {
            let trust = of(Some(own));
            assert_eq!(trust.nss_elsewhere(), std::slice::from_ref(&below_home));
            assert_eq!(trust.means(TrustMeans::Variables), TrustMeans::Variables);
            assert_eq!(trust.means(TrustMeans::Splice), TrustMeans::Splice);
        }
        // What leads out of the directory again is none of the run's.
        for others in [None, Some(home.join("data")), Some(private.join("../home"))] {
            assert_eq!(of(others).nss, None);
        }
        std::fs::create_dir_all(&below_home).unwrap();
        let trust = of(Some(private.join("data")));
        assert_eq!(trust.means(TrustMeans::Variables), TrustMeans::Nss);
        assert_eq!(trust.unmade(), Some(&*below_home));
        for name in ["cert9.db", "key4.db"] {
            std::fs::write(below_home.join(name), "").unwrap();
        }
        assert_eq!(trust.unmade(), None);
        assert_eq!(of(None).means(TrustMeans::Variables), TrustMeans::Variables);
        std::fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn what_the_user_named_stays_trusted() {
        let directory = std::env::temp_dir().join(format!("outgate-trust-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let own = directory.join("own.pem");
        let certificate = "-----BEGIN CERTIFICATE-----\nOWN\n-----END CERTIFICATE-----\n";
        std::fs::write(&own, certificate).unwrap();
        let mut variables = Variables::from([
            ("CURL_CA_BUNDLE".into(), own.into_os_string()),
            ("PIP_CERT".into(), "".into()),
        ]);
        let trust = Trust::prepare(&held(&directory), presence(&variables), &mut variables);
        trust.write("OURS\n").unwrap();
        let text = |name: &str| std::fs::read_to_string(&variables[OsStr::new(name)]).unwrap();
        assert_eq!(text("CURL_CA_BUNDLE"), format!("{certificate}OURS\n"));
        assert!(text("SSL_CERT_FILE").ends_with("OURS\n"));
        assert!(!text("SSL_CERT_FILE").contains("OWN"));
        assert_eq!(text("PIP_CERT"), text("SSL_CERT_FILE"));
        assert!(
            VARIABLES
                .iter()
                .all(|name| variables.contains_key(OsStr::new(name)))
        );
        assert!(text("WGETRC").contains("ca_certificate = /"));
        assert!(text("APT_CONFIG").contains("ca-bundle"));
        std::fs::remove_dir_all(&directory).unwrap();
    }

    /// Settings of users hold passwords, in files that the command may not read,
    /// or lead to such files.
    #[test]
    fn no_settings_of_the_user_are_copied() {
        let name = format!("outgate-trust-settings-{}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        let home = directory.join("home");
        std::fs::create_dir_all(&home).unwrap();
        std::fs::write(home.join(".wgetrc"), "http_password = SECRET\n").unwrap();
        let apt = home.join("apt.conf");
        std::fs::write(&apt, "Acquire::http::Proxy \"http://u:SECRET@p.test\";\n").unwrap();
        let pipe = home.join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRUSR).unwrap();
        for own in [None, Some(home.join(".wgetrc"))] {
            let private = directory.join(format!("private-{}", own.is_some()));
            std::fs::create_dir(&private).unwrap();
            let mut variables = Variables::from([
                ("HOME".into(), home.clone().into_os_string()),
                ("APT_CONFIG".into(), apt.clone().into_os_string()),
                // Held up nothing, and is no bundle.
                ("PIP_CERT".into(), pipe.clone().into_os_string()),
            ]);
            if let Some(own) = own {
                variables.insert("WGETRC".into(), own.into_os_string());
            }
            Trust::prepare(&held(&private), presence(&variables), &mut variables)
                .write("OURS\n")
                .unwrap();
            for entry in std::fs::read_dir(&private).unwrap().flatten() {
                let text = std::fs::read_to_string(entry.path()).unwrap_or_default();
                assert!(
                    !text.contains("SECRET"),
                    "{}: {text}",
                    entry.path().display()
                );
            }
            let text = |name: &str| std::fs::read_to_string(&variables[OsStr::new(name)]).unwrap();
            assert_eq!(text("PIP_CERT"), "OURS\n");
            let include = format!("#include \"{}\";\n", apt.display());
            assert!(text("APT_CONFIG").starts_with(&include));
        }
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
