//! The stage of a test, inside its laboratory: nginx that serves a folder per
//! host, a server for what moves, dnsmasq that knows every name, and the
//! clients no distribution packages. What the servers saw is asked with
//! [`Stage::seen`], which counts connections too: "nothing arrived" means not
//! even a handshake.

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use outgate_harness::servers::{client_tools, dial, is_there, serve};
use outgate_harness::{Identity, Lab, Sandbox};

/// Where every name leads that nothing else is said of: nginx.
pub(crate) const FILES: &str = "93.184.216.34";

/// Where the names in [`MOVING`] lead: uploads, streams, repositories.
pub(crate) const DYNAMIC: &str = "93.184.216.35";

/// What an origin answers with.
pub(crate) const MARK: &str = "from-the-real-origin";

/// The one name that leads to [`DYNAMIC`].
pub(crate) const MOVING: &str = "live.example";

/// Where dnsmasq listens.
const DNS: &str = "127.0.0.1:5353";

/// Where nginx tells how many connections it accepted.
const STATUS: &str = "127.0.0.1:8099";

/// Where the clients of `tools/install` and the toolchain appear.
const TOOLS: &str = "/run/clients";

/// Variables of every scenario: the clients of `tools/install` come last.
const VARIABLES: [(&str, &str); 9] = [
    ("PYTHONPATH", "/run/clients/tools/python"),
    ("PYTHONDONTWRITEBYTECODE", "1"),
    ("PIP_CONFIG_FILE", "/dev/null"),
    ("PIP_DISABLE_PIP_VERSION_CHECK", "1"),
    ("NODE_PATH", "/run/clients/tools/node/node_modules"),
    ("JAVA_HOME", "/usr/lib/jvm/default-java"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("NO_COLOR", "1"),
    ("LC_ALL", "C.UTF-8"),
];

/// Hosts that the certificate of the servers is for.
pub(crate) const SERVED: &str = "DNS:site.example,DNS:live.example,DNS:pypi.example,DNS:npm.example,\
    DNS:crates.example,DNS:goproxy.example,DNS:gems.example,DNS:maven.example,DNS:apt.example,\
    DNS:objects.example,DNS:rpc.example,DNS:other.example,DNS:denied.example,DNS:api.anthropic.com,\
    DNS:mine.s3.eu-central-1.amazonaws.com,DNS:cloudresourcemanager.googleapis.com,DNS:registry.terraform.io,\
    IP:93.184.216.34";

/// How scenarios are written, and how they are said over TLS. The index that
/// pip is told to trust without TLS is trusted like every other then.
const SPELLINGS: [(&str, &str); 9] = [
    ("http://", "https://"),
    ("ws://", "wss://"),
    ("site.example:8080", "site.example:8443"),
    ("rpc.example:80'", "rpc.example:443'"),
    (" --trusted-host pypi.example", ""),
    (
        "grpc.credentials.createInsecure()",
        "grpc.credentials.createSsl()",
    ),
    ("require('http')", "require('https')"),
    ("go-client call ", "go-client call-tls "),
    (
        "grpc.insecure_channel(ADDRESS)",
        "grpc.secure_channel(ADDRESS, grpc.ssl_channel_credentials())",
    ),
];

/// Where programs of a scenario are found.
fn path() -> String {
    format!(
        "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin:{TOOLS}/rust/bin:{TOOLS}/tools/node/node_modules/.bin:{TOOLS}/tools/python/bin:{TOOLS}/tools/go"
    )
}

/// Whether this process's test speaks over TLS.
static OPENED: OnceLock<()> = OnceLock::new();

/// Has this test speak over TLS that the gateway opens.
pub(crate) fn open_tls() {
    OPENED.set(()).expect("once");
}

/// Whether this test does.
pub(crate) fn is_opened() -> bool {
    OPENED.get().is_some()
}

/// A text of a scenario as this test says it.
pub(crate) fn spelt(text: &str) -> String {
    if !is_opened() {
        return text.to_owned();
    }
    SPELLINGS
        .iter()
        .fold(text.to_owned(), |text, (plain, opened)| {
            text.replace(plain, opened)
        })
}

/// What the servers saw since they were asked last.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    /// Connections they accepted.
    pub connections: usize,
    /// `HOST METHOD TARGET` of each request, in order per server.
    pub requests: Vec<String>,
    /// Names dnsmasq was asked for.
    pub asked: Vec<String>,
}

/// Everything of [`Seen`], counted from the start.
#[derive(Debug, Default)]
struct Counts {
    nginx: usize,
    moving: usize,
    requests: [usize; 2],
    asked: usize,
}

/// The servers and clients. They end with the laboratory.
#[derive(Debug)]
pub(crate) struct Stage<'lab> {
    pub(crate) lab: &'lab Lab,
    /// Whose folders the scenarios work in.
    pub(crate) identity: Identity,
    folder: PathBuf,
    counts: Counts,
}

impl<'lab> Stage<'lab> {
    /// Starts the servers. `None`, with a word why, when something is missing
    /// that every scenario needs, or one of `programs`.
    ///
    /// # Panics
    /// When they do not start.
    pub(crate) fn start(lab: &'lab Lab, programs: &[&str]) -> Option<Self> {
        let all = ["nginx", "dnsmasq", "python3", "git", "curl", "openssl"];
        if !all.iter().chain(programs).all(|program| is_there(program)) {
            return None;
        }
        let folder = lab.folder("servers", Identity::Own);
        let identity = Identity::all().into_iter().last()?;
        let stage = Self {
            lab,
            identity,
            folder,
            counts: Counts::default(),
        };
        fs::create_dir_all(stage.host("site.example")).expect("a folder");
        stage.certificate();
        stage.nginx();
        stage.dnsmasq();
        stage.moving();
        stage.toolchain();
        let mut policy = format!("[dns]\nservers = [\"{DNS}\"]\n");
        if is_opened() {
            policy.push_str("[tls]\nintercept = \"always\"\n");
        }
        fs::write(lab.directory.join("dns.toml"), policy).expect("a policy");
        let mut stage = stage;
        stage.seen();
        Some(stage)
    }

    /// The same, with the clients that `tools/install` installed.
    pub(crate) fn with_tools(lab: &'lab Lab, programs: &[&str]) -> Option<Self> {
        let Some(tools) = client_tools(env!("CARGO_TARGET_TMPDIR")) else {
            outgate_harness::skip("the clients are not there: run tests/clients/tools/install");
            return None;
        };
        let stage = Self::start(lab, programs)?;
        mount(&tools, "tools");
        Some(stage)
    }

    /// The folder of what nginx serves for a host.
    pub(crate) fn host(&self, host: &str) -> PathBuf {
        self.folder.join("www").join(host)
    }

    /// Puts a file there for nginx to serve.
    pub(crate) fn publish(&self, host: &str, path: &str, content: impl AsRef<[u8]>) {
        let file = self.host(host).join(path);
        fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
        fs::write(file, content).expect("a file");
    }

    /// The folder of the repositories.
    pub(crate) fn repositories(&self) -> PathBuf {
        self.folder.join("repositories")
    }

    /// The working directory and home of the scenarios.
    pub(crate) fn work(&self) -> PathBuf {
        self.lab.folder("work", self.identity)
    }

    /// Removes what an earlier scenario left there.
    ///
    /// # Panics
    /// When something cannot be removed.
    pub(crate) fn empty_work(&self) {
        for entry in fs::read_dir(self.work()).expect("a folder").flatten() {
            let path = entry.path();
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            let removed = if is_folder {
                fs::remove_dir_all(path)
            } else {
                fs::remove_file(path)
            };
            removed.expect("what an earlier scenario left");
        }
    }

    /// The home directory of the scenarios.
    pub(crate) fn home(&self) -> PathBuf {
        self.lab.folder("home", self.identity)
    }

    /// Makes it a new one.
    ///
    /// # Panics
    /// When something cannot be removed.
    pub(crate) fn empty_home(&self) {
        for entry in fs::read_dir(self.home()).expect("a folder").flatten() {
            let path = entry.path();
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            // Caches of some programs are read-only.
            let writable = Command::new("chmod")
                .args(["-R", "u+w"])
                .arg(&path)
                .status();
            let removed = if is_folder {
                fs::remove_dir_all(path)
            } else {
                fs::remove_file(path)
            };
            removed.unwrap_or_else(|error| panic!("{error}, {writable:?}"));
        }
    }

    /// A sandbox as people use it, with the clients readable.
    pub(crate) fn sandbox(&self) -> Sandbox<'lab> {
        let work = self.work().to_string_lossy().into_owned();
        let mut sandbox = self.with_preset("base").option("-w", &work);
        for (name, value) in VARIABLES {
            sandbox = sandbox.environment(name, value);
        }
        sandbox
    }

    /// A sandbox with a shipped policy, the names of the stage and its clients.
    pub(crate) fn with_preset(&self, preset: &str) -> Sandbox<'lab> {
        let policy = self.lab.directory.join("dns.toml");
        Sandbox::plain(self.lab, self.identity)
            .option("-p", &policy.to_string_lossy())
            .option("-P", preset)
            .option("-r", TOOLS)
            .option("--upstream-ca", &self.authority())
            // The scripts write their clients' settings themselves.
            .option("--leftovers", "off")
            .environment("PATH", &path())
    }

    /// The beginning of a line that starts a client without outgate, with the variables of
    /// [`Stage::sandbox`].
    pub(crate) fn environment(&self) -> Vec<String> {
        let temporary = self.lab.folder("tmp", self.identity);
        let variables = VARIABLES
            .iter()
            .map(|(name, value)| format!("{name}={value}"));
        ["env", "-i"]
            .map(str::to_owned)
            .into_iter()
            .chain([
                format!("PATH={}", path()),
                format!("TMPDIR={}", temporary.display()),
            ])
            .chain(variables)
            .collect()
    }

    /// The same with rules that allow.
    pub(crate) fn allowing(&self, rules: &[&str]) -> Sandbox<'lab> {
        let sandbox = self.sandbox();
        rules
            .iter()
            .fold(sandbox, |sandbox, rule| sandbox.allow(&spelt(rule)))
    }

    /// What came since this was called last.
    ///
    /// # Panics
    /// When a server does not answer.
    pub(crate) fn seen(&mut self) -> Seen {
        // Each server accepts in order: what it logged after it answered this
        // is all that came before.
        let asked = ask(STATUS, "status");
        let after = asked.split("handled requests").nth(1).unwrap_or_default();
        let nginx = after.split_whitespace().next().unwrap_or_default();
        let nginx: usize = nginx.parse().expect("a count of connections");
        ask(&format!("{DYNAMIC}:80"), "settle");
        let served = lines(&self.folder.join("access.log"));
        let (accepted, moved): (Vec<String>, Vec<String>) = lines(&self.folder.join("moving.log"))
            .into_iter()
            .filter(|line| !line.starts_with("settle "))
            .partition(|line| line == "+");
        let mut names = lines(&self.folder.join("dnsmasq.log"));
        names.retain(|line| line.contains(" query["));
        let asked = names.iter().skip(self.counts.asked);
        let asked = asked.filter_map(|line| line.split(" query[").nth(1)?.split(' ').nth(1));
        let seen = Seen {
            // One of each is the question itself.
            connections: nginx - self.counts.nginx - 1 + accepted.len() - self.counts.moving - 1,
            requests: [&served, &moved]
                .iter()
                .zip(self.counts.requests)
                .flat_map(|(lines, before)| lines[before..].to_vec())
                .collect(),
            asked: asked.map(str::to_owned).collect(),
        };
        self.counts = Counts {
            nginx,
            moving: accepted.len(),
            requests: [served.len(), moved.len()],
            asked: names.len(),
        };
        seen
    }

    /// What verifies the servers.
    fn authority(&self) -> String {
        self.lab
            .directory
            .join("origins.pem")
            .to_string_lossy()
            .into_owned()
    }

    /// The certificate of the servers and its key.
    pub(crate) fn secrets(&self) -> [String; 2] {
        let path = |name: &str| self.folder.join(name).to_string_lossy().into_owned();
        [path("server.pem"), path("server.key")]
    }

    /// Makes an authority and a certificate for the servers.
    fn certificate(&self) {
        let [certificate, key] = self.secrets();
        let authority = self.authority();
        let script = format!(
            "set -e; make='openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 3'
$make -keyout ca.key -out {authority} -subj /CN=origins -addext basicConstraints=critical,CA:TRUE
$make -keyout {key} -out {certificate} -CA {authority} -CAkey ca.key -subj /CN=site.example \\
  -addext basicConstraints=critical,CA:FALSE -addext extendedKeyUsage=serverAuth -addext subjectAltName={SERVED}"
        );
        let mut shell = Command::new("sh");
        let made = shell
            .args(["-c", &script])
            .current_dir(&self.folder)
            .output();
        let made = made.expect("a shell");
        let said = String::from_utf8_lossy(&made.stderr);
        assert!(made.status.success(), "no certificate: {said}");
    }

    fn nginx(&self) {
        let configuration = self.folder.join("nginx.conf");
        let text = include_str!("origins/nginx.conf")
            .replace("FOLDER", &self.folder.to_string_lossy())
            .replace("ADDRESS", FILES)
            .replace("STATUS", STATUS)
            .replace("MARK", MARK);
        fs::write(&configuration, text).expect("a configuration");
        let line = ["nginx", "-c", &configuration.to_string_lossy()];
        serve(&line, &self.folder, &[&format!("{FILES}:80"), STATUS]);
    }

    fn dnsmasq(&self) {
        let (host, port) = DNS.split_once(':').expect("an address and a port");
        let log = self.folder.join("dnsmasq.log");
        let options = [
            "dnsmasq".to_owned(),
            // It stays who it is: a user namespace has only one account.
            "--no-daemon".to_owned(),
            "--conf-file=/dev/null".to_owned(),
            "--no-resolv".to_owned(),
            "--no-hosts".to_owned(),
            "--log-queries".to_owned(),
            "--local=/example/".to_owned(),
            "--bind-interfaces".to_owned(),
            // Every name has an address, also those no rule allows: only the
            // policy stands between a program and them.
            format!("--address=/example/{FILES}"),
            format!("--address=/{MOVING}/{DYNAMIC}"),
            format!("--pid-file={}", self.folder.join("dnsmasq.pid").display()),
            format!("--log-facility={}", log.display()),
            format!("--listen-address={host}"),
            format!("--port={port}"),
        ];
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        serve(&options, &self.folder, &[DNS]);
    }

    fn moving(&self) {
        let file = self.folder.join("origin.py");
        fs::write(&file, include_str!("origins/origin.py")).expect("the origin");
        fs::create_dir_all(self.repositories()).expect("a folder");
        let log = self.folder.join("moving.log");
        let repositories = self.repositories();
        let [certificate, key] = self.secrets();
        let line = [
            "python3",
            &file.to_string_lossy(),
            DYNAMIC,
            "80",
            &log.to_string_lossy(),
            &repositories.to_string_lossy(),
            &certificate,
            &key,
        ];
        serve(&line, &self.folder, &[&format!("{DYNAMIC}:80")]);
    }

    /// Puts cargo and rustc where every account reaches them.
    fn toolchain(&self) {
        fs::create_dir_all(TOOLS).expect("a folder");
        let mut rustc = Command::new("rustc");
        let found = rustc.args(["--print", "sysroot"]).current_dir(&self.folder);
        if let Ok(output) = found.output() {
            let sysroot = String::from_utf8_lossy(&output.stdout);
            mount(Path::new(sysroot.trim()), "rust");
        }
    }
}

/// Makes a folder appear below [`TOOLS`], in the laboratory's own mounts: where
/// it lies, other accounts may not look.
fn mount(folder: &Path, name: &str) {
    let at = Path::new(TOOLS).join(name);
    fs::create_dir_all(&at).expect("a folder");
    let mut mount = Command::new("mount");
    let done = mount.arg("--rbind").arg(folder).arg(&at).status();
    assert!(
        done.is_ok_and(|status| status.success()),
        "{} at {}",
        folder.display(),
        at.display()
    );
}

/// Makes a request of the test's own.
fn ask(address: &str, host: &str) -> String {
    let mut stream = dial(address.parse().expect("an address")).expect("it accepts");
    let limit = Some(Duration::from_secs(20));
    stream.set_read_timeout(limit).expect("a limit");
    let text = format!("GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(text.as_bytes()).expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    answer
}

fn lines(file: &Path) -> Vec<String> {
    let text = fs::read_to_string(file).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}
