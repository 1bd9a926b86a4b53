//! The programs a test runs as clients: those of the machine as they are, and
//! small ones in `clients/` for each runtime and C library, built once and
//! kept in the target directory.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use outgate_harness::Lab;

use crate::servers::is_there;
use crate::words;

/// A program that fetches URLs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Client {
    /// The system's curl.
    Curl,
    /// The system's wget.
    Wget,
    /// Python's urllib.
    PythonUrllib,
    /// Python's asyncio streams.
    PythonAsyncio,
    /// The built-in fetch() of node.
    NodeFetch,
    /// A static Go program, with Go's own resolver.
    Go,
    /// A static C program with musl's resolver.
    Musl,
    /// Java's HttpClient.
    Java,
}

const FILES: [(&str, &str); 6] = [
    ("fetch.py", include_str!("clients/fetch.py")),
    ("fetch_asyncio.py", include_str!("clients/fetch_asyncio.py")),
    ("fetch.mjs", include_str!("clients/fetch.mjs")),
    ("fetch.go", include_str!("clients/fetch.go")),
    ("fetch.c", include_str!("clients/fetch.c")),
    ("Fetch.java", include_str!("clients/Fetch.java")),
];

impl Client {
    /// Programs without which it cannot be tried.
    fn needs(self) -> &'static [&'static str] {
        match self {
            Self::Curl => &["curl"],
            Self::Wget => &["wget"],
            Self::PythonUrllib | Self::PythonAsyncio => &["python3"],
            Self::NodeFetch => &["node"],
            Self::Go => &["go"],
            Self::Musl => &["musl-gcc"],
            Self::Java => &["java", "javac"],
        }
    }

    /// Whether it can be tried here; skips the test otherwise. Builds it.
    pub(crate) fn is_ready(self, lab: &Lab) -> bool {
        if !self.needs().iter().all(|program| is_there(program)) {
            return false;
        }
        let folder = folder(lab);
        match self {
            Self::Go => build(&folder, "fetch.go", "fetch-go", |draft| {
                let mut go = Command::new("go");
                go.args(["build", "-o", draft, "fetch.go"])
                    .env("CGO_ENABLED", "0")
                    .env("GOFLAGS", "-mod=mod")
                    .env("GOPROXY", "off")
                    .env("GO111MODULE", "off")
                    .env("GOCACHE", folder.join("go-cache"))
                    .env("GOPATH", folder.join("go-path"));
                go
            }),
            Self::Musl => build(&folder, "fetch.c", "fetch-musl", |draft| {
                let mut musl = Command::new("musl-gcc");
                musl.args(["-static", "-O1", "-Wall", "-o", draft, "fetch.c"]);
                musl
            }),
            Self::Java => build(&folder, "Fetch.java", "java-classes", |draft| {
                let mut javac = Command::new("javac");
                javac.args(["-d", draft, "Fetch.java"]);
                javac
            }),
            _ => write(&folder),
        }
        true
    }

    /// The command line that fetches `url`; `ca` is the file of the only
    /// certificate to trust.
    pub(crate) fn command(self, lab: &Lab, url: &str, ca: Option<&str>) -> Vec<String> {
        let file = |name: &str| folder(lab).join(name).to_string_lossy().into_owned();
        let mut line = match self {
            Self::Curl => {
                let mut line = words(&["curl", "-sS", "-w", "%{http_code}", url]);
                line.extend(ca.into_iter().flat_map(|ca| words(&["--cacert", ca])));
                return line;
            }
            Self::Wget => {
                let mut line = words(&["wget", "-nv", "-O", "-", "--tries=2", url]);
                line.extend(ca.map(|ca| format!("--ca-certificate={ca}")));
                return line;
            }
            Self::Musl => return musl(&file("fetch-musl"), url),
            Self::Java => return words(&["java", "-cp", &file("java-classes"), "Fetch", url]),
            Self::PythonUrllib => words(&["python3", &file("fetch.py"), url]),
            Self::PythonAsyncio => words(&["python3", &file("fetch_asyncio.py"), url]),
            Self::NodeFetch => words(&["node", &file("fetch.mjs"), url]),
            Self::Go => words(&[&file("fetch-go"), url]),
        };
        line.extend(ca.map(str::to_owned));
        line
    }
}

/// The musl client knows no URLs.
fn musl(program: &str, url: &str) -> Vec<String> {
    let rest = url.strip_prefix("http://").expect("a plain URL");
    let (authority, path) = rest.split_once('/').expect("a path");
    let (host, port) = authority.split_once(':').unwrap_or((authority, "80"));
    words(&[program, host, port, &format!("/{path}")])
}

/// Where the clients lie: beside the probes, where every account reaches them.
pub(crate) fn folder(lab: &Lab) -> PathBuf {
    let folder = lab.tools.probes.with_file_name("clients");
    fs::create_dir_all(&folder).expect("a folder for the clients");
    folder
}

/// Writes the sources where they are missing or differ.
fn write(folder: &Path) {
    for (name, text) in FILES {
        let target = folder.join(name);
        if fs::read_to_string(&target).is_ok_and(|there| there == text) {
            continue;
        }
        // Other tests may read it right now: put the whole file there at once.
        let draft = folder.join(format!(".{name}.{}", std::process::id()));
        fs::write(&draft, text).expect("a client's source");
        fs::rename(&draft, &target).expect("a client's source in place");
    }
}

/// Builds `target` from `source` unless it is newer. Laboratories run at the
/// same time: one builds, the others wait.
fn build(folder: &Path, source: &str, target: &str, command: impl FnOnce(&str) -> Command) {
    let lock = fs::File::create(folder.join(format!(".{target}.lock"))).expect("a lock file");
    lock.lock().expect("the lock");
    write(folder);
    let modified = |name: &str| fs::metadata(folder.join(name)).and_then(|meta| meta.modified());
    if let (Ok(made), Ok(written)) = (modified(target), modified(source))
        && made >= written
    {
        return;
    }
    let draft = format!(".{target}.draft");
    let made = command(&draft).current_dir(folder).output();
    let made = made.expect("the compiler starts");
    let said = String::from_utf8_lossy(&made.stderr);
    assert!(made.status.success(), "{target} cannot be built: {said}");
    fs::remove_dir_all(folder.join(target)).ok();
    fs::rename(folder.join(draft), folder.join(target)).expect("the client in place");
}
