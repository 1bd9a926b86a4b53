//! The servers of a test, inside its laboratory: nginx at a public address
//! with an access log, and dnsmasq with a log of questions. What they saw is
//! asked with [`Servers::seen`], which counts connections too, so that "nothing
//! arrived" means not even a handshake.

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use outgate_harness::servers::dial;
pub(crate) use outgate_harness::servers::{is_there, serve};
use outgate_harness::{Identity, Lab, Sandbox};

/// Where all names of the test lead.
pub(crate) const ADDRESS: &str = "93.184.216.34";

/// What the origin answers everything with.
pub(crate) const MARK: &str = "from-the-real-origin";

/// Where dnsmasq listens.
const DNS: &str = "127.0.0.1:5353";

/// Where nginx tells how many connections it accepted.
const STATUS: &str = "127.0.0.1:8099";

/// Names dnsmasq knows. All of them have an address, also those no rule
/// allows: only the policy stands between a program and them.
const NAMES: [&str; 6] = [
    "site.example",
    "secure.example",
    "denied.example",
    "cache.example",
    "shell.example",
    "other.example",
];

/// What the servers saw since they were asked last.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    /// Connections nginx accepted.
    pub connections: usize,
    /// `HOST METHOD TARGET` of each request nginx answered.
    pub requests: Vec<String>,
    /// Names dnsmasq was asked for.
    pub asked: Vec<String>,
}

/// The servers. They end with the laboratory.
#[derive(Debug)]
pub(crate) struct Servers {
    folder: PathBuf,
    given: PathBuf,
    policy: PathBuf,
    accepted: usize,
    requests: usize,
    asked: usize,
}

impl Servers {
    /// Starts nginx on ports 80 and 8080, with TLS on 443 when `openssl` is
    /// there, and dnsmasq. `None`, with a word why, when they are not installed.
    ///
    /// # Panics
    /// When they do not start.
    pub(crate) fn start(lab: &Lab) -> Option<Self> {
        if !is_there("nginx") || !is_there("dnsmasq") || !is_there("openssl") {
            return None;
        }
        let folder = lab.folder("servers", Identity::Own);
        let given = lab.folder("given", Identity::Own);
        certificate(&folder, &given);
        fs::write(folder.join("nginx.conf"), nginx(&folder, &given)).expect("a configuration");
        let configuration = folder.join("nginx.conf");
        let nginx = ["nginx", "-c", &configuration.to_string_lossy()];
        serve(&nginx, &folder, &["127.0.0.1:80", STATUS]);
        dnsmasq(&folder);
        let policy = lab.directory.join("dns.toml");
        fs::write(&policy, format!("[dns]\nservers = [\"{DNS}\"]\n")).expect("a policy");
        let mut servers = Self {
            folder,
            given,
            policy,
            accepted: 0,
            requests: 0,
            asked: 0,
        };
        servers.seen();
        Some(servers)
    }

    /// Lets the gateway ask dnsmasq.
    pub(crate) fn names<'lab>(&self, sandbox: Sandbox<'lab>) -> Sandbox<'lab> {
        sandbox.option("-p", &self.policy.to_string_lossy())
    }

    /// The certificate of the origin, which signed itself.
    pub(crate) fn certificate(&self) -> String {
        let file = self.given.join("certificate.pem");
        file.to_string_lossy().into_owned()
    }

    /// What came since this was called last.
    ///
    /// # Panics
    /// When nginx does not answer.
    pub(crate) fn seen(&mut self) -> Seen {
        // nginx is one thread: what it logs after an answer is written before
        // it looks at the next connection.
        let accepted = accepted();
        let requests = lines(&self.folder.join("access.log"), |line| {
            Some(line.to_owned())
        });
        let asked = lines(&self.folder.join("dnsmasq.log"), |line| {
            let (_, question) = line.split_once(" query[")?;
            question.split(' ').nth(1).map(str::to_owned)
        });
        let seen = Seen {
            // One of them is the question itself.
            connections: accepted - self.accepted - 1,
            requests: requests[self.requests..].to_vec(),
            asked: asked[self.asked..].to_vec(),
        };
        (self.accepted, self.requests, self.asked) = (accepted, requests.len(), asked.len());
        seen
    }
}

fn lines(file: &Path, read: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let text = fs::read_to_string(file).unwrap_or_default();
    text.lines().filter_map(read).collect()
}

fn accepted() -> usize {
    let mut stream = dial(STATUS.parse().expect("an address")).expect("nginx accepts");
    stream
        .write_all(b"GET / HTTP/1.0\r\n\r\n")
        .expect("nginx reads");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("nginx answers");
    let after = text.split("handled requests").nth(1).unwrap_or_default();
    let number = after.split_whitespace().next().unwrap_or_default();
    number
        .parse()
        .unwrap_or_else(|_| panic!("no count: {text}"))
}

fn nginx(folder: &Path, given: &Path) -> String {
    let (folder, given) = (folder.to_string_lossy(), given.to_string_lossy());
    format!(
        r#"user root root;
daemon off;
master_process off;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{ worker_connections 1024; }}
http {{
  log_format plain '$http_host $request_method $request_uri';
  access_log {folder}/access.log plain;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  server {{
    listen 80 backlog=1024; listen [::]:80; listen 8080; listen 9999;
    listen 443 ssl;
    ssl_certificate {given}/certificate.pem;
    ssl_certificate_key {folder}/key.pem;
    location / {{ default_type text/plain; return 200 "{MARK}\n"; }}
  }}
  server {{ listen {STATUS}; access_log off; location / {{ stub_status; }} }}
}}
"#
    )
}

fn dnsmasq(folder: &Path) {
    let (host, port) = DNS.split_once(':').expect("an address and a port");
    let log = folder.join("dnsmasq.log");
    let mut options = vec![
        "dnsmasq".to_owned(),
        // It stays who it is: a user namespace has only one account.
        "--no-daemon".to_owned(),
        "--conf-file=/dev/null".to_owned(),
        "--no-resolv".to_owned(),
        "--no-hosts".to_owned(),
        "--log-queries".to_owned(),
        "--bind-interfaces".to_owned(),
        "--local=/example/".to_owned(),
        format!("--pid-file={}", folder.join("dnsmasq.pid").display()),
        format!("--log-facility={}", log.display()),
        format!("--listen-address={host}"),
        format!("--port={port}"),
    ];
    options.extend(
        NAMES
            .iter()
            .map(|name| format!("--host-record={name},{ADDRESS}")),
    );
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    serve(&options, folder, &[DNS]);
}

fn certificate(folder: &Path, given: &Path) {
    // Without the system's settings, which would make it an authority's.
    let settings = "[req]\ndistinguished_name = name\n[name]\n";
    fs::write(folder.join("req.cnf"), settings).expect("a file");
    let made = Command::new("openssl")
        .args([
            "req", "-config", "req.cnf", "-x509", "-newkey", "ec", "-nodes", "-days", "30",
        ])
        .args(["-pkeyopt", "ec_paramgen_curve:prime256v1"])
        .args(["-subj", "/CN=secure.example"])
        .args([
            "-addext",
            "subjectAltName=DNS:secure.example,DNS:denied.example",
        ])
        .args(["-keyout", "key.pem", "-out"])
        .arg(given.join("certificate.pem"))
        .current_dir(folder)
        .output()
        .expect("openssl runs");
    assert!(
        made.status.success(),
        "{}",
        String::from_utf8_lossy(&made.stderr)
    );
}
