//! Servers of files, asked over one connection each: what they serve is the file
//! that they opened, and each file holds its own path.

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::judge::unescaped;
use crate::readers::{Found, Pair};

/// How long a server may take until it listens, and until it answers.
const PATIENCE: Duration = Duration::from_secs(30);

/// Files below every root: each is named by what it holds.
const FILES: &[&str] = &[
    "index.html",
    "k",
    "f",
    "admin/index.html",
    "admin/k",
    "admin/a/k",
    "admin/f",
    "pub/index.html",
    "pub/f",
    "pub/k",
    "x/k",
    "x/admin/k",
    "pub/admin/k",
];

/// A folder that is there as long as this value.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Self {
        let name = std::env::temp_dir().join("outgate-differential-XXXXXX");
        Self(nix::unistd::mkdtemp(&name).expect("a temporary folder"))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

/// A server that runs, and ends with this value.
struct Server {
    name: &'static str,
    port: u16,
    child: Child,
    connection: Option<BufReader<TcpStream>>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

impl Server {
    /// Starts a program, which is to listen on a port that was free.
    fn start(name: &'static str, folder: &Path, command: impl Fn(u16) -> Command) -> Self {
        let port = {
            let free = TcpListener::bind("127.0.0.1:0").expect("a free port");
            free.local_addr().expect("its address").port()
        };
        let child = command(port)
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("{name}: {error}; .ci/run installs it"));
        let begun = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(begun.elapsed() < PATIENCE, "{name} listens nowhere");
            std::thread::yield_now();
        }
        Self {
            name,
            port,
            child,
            connection: None,
        }
    }

    /// The path of the file that is served; `None` where none is.
    fn ask(&mut self, target: &str) -> Option<Vec<u8>> {
        // A server closes a kept connection when it likes: then once more on a new one.
        for _ in 0..2 {
            let mut connection = self.connection.take().or_else(|| self.connect())?;
            let request = format!("GET {target} HTTP/1.1\r\nHost: a.test\r\n\r\n");
            if connection.get_mut().write_all(request.as_bytes()).is_err() {
                continue;
            }
            let Some(answer) = Answer::read(&mut connection) else {
                continue;
            };
            if answer.is_kept {
                self.connection = Some(connection);
            }
            return (answer.status == "200").then_some(answer.content);
        }
        None
    }

    fn connect(&self) -> Option<BufReader<TcpStream>> {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).ok()?;
        stream.set_nodelay(true).ok()?;
        stream.set_read_timeout(Some(PATIENCE)).ok()?;
        Some(BufReader::new(stream))
    }
}

/// What of an answer counts.
struct Answer {
    status: String,
    /// Whether the connection may be asked again.
    is_kept: bool,
    content: Vec<u8>,
}

impl Answer {
    fn read(connection: &mut BufReader<TcpStream>) -> Option<Self> {
        let mut head: Vec<String> = Vec::new();
        loop {
            let mut line = Vec::new();
            if connection.read_until(b'\n', &mut line).ok()? == 0 {
                return None;
            }
            let line = String::from_utf8_lossy(line.trim_ascii()).into_owned();
            if line.is_empty() {
                break;
            }
            head.push(line);
        }
        let field = |name: &str| {
            head.iter().find_map(|line| {
                let (own, value) = line.split_once(':')?;
                own.eq_ignore_ascii_case(name)
                    .then(|| value.trim().to_owned())
            })
        };
        let length: Option<u64> = field("content-length").and_then(|length| length.parse().ok());
        let mut content = Vec::new();
        let is_kept = length.is_some()
            && !field("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"));
        if let Some(length) = length {
            connection.take(length).read_to_end(&mut content).ok()?;
        }
        if !is_kept && length.is_none() {
            connection.read_to_end(&mut content).ok()?;
        }
        let status = head.first()?.split(' ').nth(1)?.to_owned();
        Some(Self {
            status,
            is_kept,
            content,
        })
    }
}

fn command(program: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments);
    command
}

/// nginx: files with and without slashes joined, by alias, and behind a proxy
/// that sends the path as it read it, as it came, and as a variable.
fn nginx(folder: &Path) -> Server {
    let root = folder.join("root").display().to_string();
    Server::start("nginx", folder, |port| {
        let [second, third, fourth] = ["merge", "alias", "proxy"]
            .map(|name| folder.join(format!("{name}.sock")).display().to_string());
        let text = format!(
            "daemon off; master_process off; pid {folder}/nginx.pid; error_log /dev/null;\n\
             events {{}}\nhttp {{ access_log off; keepalive_requests 1000000; default_type text/plain;\n\
             client_body_temp_path {folder}/b; proxy_temp_path {folder}/p; fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;\n\
             server {{ listen unix:{second}; merge_slashes off; root {root}; index index.html; }}\n\
             server {{ listen unix:{third}; location / {{ alias {root}/; }} }}\n\
             server {{ listen unix:{fourth}; location / {{ proxy_pass http://unix:{second}:/; }} }}\n\
             server {{ listen 127.0.0.1:{port}; root {root}; index index.html;\n\
             location /via-merge/ {{ proxy_pass http://unix:{second}:/; }}\n\
             location /via-alias/ {{ proxy_pass http://unix:{third}:/; }}\n\
             location /via-proxy/ {{ proxy_pass http://unix:{fourth}:/; }} }} }}\n",
            folder = folder.display(),
        );
        fs::write(folder.join("nginx.conf"), text).expect("its settings");
        let settings = folder.join("nginx.conf").display().to_string();
        command(
            "nginx",
            &["-p", &folder.display().to_string(), "-c", &settings],
        )
    })
}

/// Apache httpd, with escaped slashes decoded.
fn apache(folder: &Path) -> Server {
    let modules = "/usr/lib/apache2/modules";
    Server::start("apache", folder, |port| {
        let mut text = format!(
            "ServerRoot {0}\nPidFile {0}/apache.pid\nListen 127.0.0.1:{port}\nServerName a.test\nErrorLog /dev/null\n\
             DefaultRuntimeDir {0}\nMaxKeepAliveRequests 0\nKeepAliveTimeout 60\nAllowEncodedSlashes On\n\
             DocumentRoot {0}/root\nDirectoryIndex index.html\n",
            folder.display(),
        );
        for name in ["mpm_event", "authz_core", "dir", "alias"] {
            text.insert_str(
                0,
                &format!("LoadModule {name}_module {modules}/mod_{name}.so\n"),
            );
        }
        let granted = format!(
            "{text}<Directory {}/root>\nRequire all granted\n</Directory>\n",
            folder.display()
        );
        let text = granted;
        fs::write(folder.join("apache.conf"), text).expect("its settings");
        let settings = folder.join("apache.conf").display().to_string();
        command("apache2", &["-X", "-f", &settings])
    })
}

fn lighttpd(folder: &Path) -> Server {
    Server::start("lighttpd", folder, |port| {
        let text = format!(
            "server.document-root = \"{0}/root\"\nserver.port = {port}\nserver.bind = \"127.0.0.1\"\n\
             server.max-keep-alive-requests = 65535\nindex-file.names = (\"index.html\")\n",
            folder.display(),
        );
        fs::write(folder.join("lighttpd.conf"), text).expect("its settings");
        let settings = folder.join("lighttpd.conf").display().to_string();
        command("lighttpd", &["-D", "-f", &settings])
    })
}

fn php(folder: &Path) -> Server {
    let root = folder.join("root").display().to_string();
    Server::start("php -S", folder, |port| {
        command(
            "php",
            &["-n", "-S", &format!("127.0.0.1:{port}"), "-t", &root],
        )
    })
}

fn busybox(folder: &Path) -> Server {
    let root = folder.join("root").display().to_string();
    Server::start("busybox httpd", folder, |port| {
        command(
            "busybox",
            &[
                "httpd",
                "-f",
                "-p",
                &format!("127.0.0.1:{port}"),
                "-h",
                &root,
            ],
        )
    })
}

/// PHP, which tells what it finds in a query.
fn telling(folder: &Path) -> Server {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/differential/readers/query.php");
    Server::start("php", folder, |port| {
        let mut command = command("php", &["-n", "-S", &format!("127.0.0.1:{port}")]);
        command.arg(&script);
        command
    })
}

/// nginx, which hands a decoded path on as text.
fn nginx_by_text(folder: &Path, to: u16) -> Server {
    Server::start("nginx $uri", folder, |port| {
        let text = format!(
            "daemon off; master_process off; pid {folder}/text.pid; error_log /dev/null;\n\
             events {{}}\nhttp {{ access_log off; keepalive_requests 1000000;\n\
             client_body_temp_path {folder}/b; proxy_temp_path {folder}/p; fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;\n\
             server {{ listen 127.0.0.1:{port};\n\
             location / {{ proxy_pass http://127.0.0.1:{to}$uri$is_args$args; }} }} }}\n",
            folder = folder.display(),
        );
        fs::write(folder.join("text.conf"), text).expect("its settings");
        let settings = folder.join("text.conf").display().to_string();
        command(
            "nginx",
            &["-p", &folder.display().to_string(), "-c", &settings],
        )
    })
}

/// Apache httpd, which puts a part of a path into a query.
fn apache_by_rule(folder: &Path, to: u16) -> Server {
    let modules = "/usr/lib/apache2/modules";
    Server::start("apache RewriteRule", folder, |port| {
        let mut text = String::new();
        for name in ["mpm_event", "authz_core", "rewrite", "proxy", "proxy_http"] {
            let _ = writeln!(text, "LoadModule {name}_module {modules}/mod_{name}.so");
        }
        let _ = write!(
            text,
            "ServerRoot {0}\nPidFile {0}/rule.pid\nListen 127.0.0.1:{port}\nServerName a.test\nErrorLog /dev/null\n\
             DefaultRuntimeDir {0}\nMaxKeepAliveRequests 0\nKeepAliveTimeout 60\nAllowEncodedSlashes On\n\
             RewriteEngine On\n\
             RewriteRule ^/u/(.*)$ http://127.0.0.1:{to}/index.php?q=$1 [P,QSA,UnsafeAllow3F]\n\
             RewriteRule ^/s/([^/]*) http://127.0.0.1:{to}/index.php?q=$1 [P,UnsafeAllow3F]\n",
            folder.display(),
        );
        fs::write(folder.join("rule.conf"), text).expect("its settings");
        let settings = folder.join("rule.conf").display().to_string();
        command("apache2", &["-X", "-f", &settings])
    })
}

/// Asks servers that make a query of a path what a program behind them finds in it.
pub(crate) fn ask_queries(targets: &[String]) -> Vec<(String, Found<Pair>)> {
    let scratch = Scratch::new();
    let folder = scratch.0.as_path();
    let behind = telling(folder);
    let mut out: Vec<(String, Found<Pair>)> = targets
        .iter()
        .map(|target| (target.clone(), Vec::new()))
        .collect();
    let servers = [
        nginx_by_text(folder, behind.port),
        apache_by_rule(folder, behind.port),
    ];
    for (mut server, proof) in servers.into_iter().zip(["/x%3Fa=1", "/u/x%26a=1"]) {
        let found = server.ask(proof).expect("an answer");
        let found = String::from_utf8_lossy(&found).into_owned();
        assert!(
            found.split('\t').any(|pair| pair == "a 1"),
            "{}: {found}",
            server.name
        );
        for (target, found) in &mut out {
            let answer = server.ask(target).unwrap_or_default();
            for pair in answer.split(|byte| *byte == b'\t') {
                let mut halves = pair.split(|byte| *byte == b' ').map(unescaped);
                if let (Some(key), Some(value)) = (halves.next(), halves.next()) {
                    found.push((server.name.to_owned(), (key, value)));
                }
            }
        }
    }
    out
}

/// A program that tells its name, and the rest of the path that it is given.
const TELLS: &str = "<?php echo $_SERVER['SCRIPT_NAME'], ' ', $_SERVER['PATH_INFO'] ?? '';";

/// Programs below the root of a server that runs them.
const PROGRAMS: [&str; 3] = ["index.php", "secret/index.php", "admin/page.php"];

/// The program that `php -S` runs for a target, and what it is given of the path.
pub(crate) fn run_by_php(targets: &[String]) -> Vec<(&String, String, String)> {
    let scratch = Scratch::new();
    let folder = scratch.0.as_path();
    for program in PROGRAMS {
        let path = folder.join("root").join(program);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(&path, TELLS).expect("a program");
    }
    fs::create_dir_all(folder.join("root/pub")).expect("a folder");
    let mut server = php(folder);
    let proof = server.ask("/index.php/a").expect("an answer");
    assert_eq!(proof, b"/index.php /a");
    let ran = targets.iter().filter_map(|target| {
        let answer = String::from_utf8(server.ask(target)?).ok()?;
        let (program, rest) = answer.split_once(' ')?;
        Some((target, program.to_owned(), rest.to_owned()))
    });
    ran.collect()
}

/// Asks every server about every target.
pub(crate) fn ask(targets: &[String]) -> Vec<(String, Found<Vec<u8>>)> {
    let scratch = Scratch::new();
    let folder = scratch.0.as_path();
    for file in FILES {
        let path = folder.join("root").join(file);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        let shown = file.strip_suffix("index.html").unwrap_or(file);
        fs::write(&path, format!("/{shown}")).expect("a file");
    }
    let mut out: Vec<(String, Found<Vec<u8>>)> = targets
        .iter()
        .map(|target| (target.clone(), Vec::new()))
        .collect();
    for start in [nginx, apache, lighttpd, php, busybox] {
        let mut server = start(folder);
        let found = server.ask("/admin/k");
        assert_eq!(
            found.as_deref(),
            Some(b"/admin/k".as_slice()),
            "{}",
            server.name
        );
        let ways: &[&str] = match server.name {
            "nginx" => &["", "/via-merge", "/via-alias", "/via-proxy"],
            _ => &[""],
        };
        for (target, found) in &mut out {
            for way in ways {
                if let Some(path) = server.ask(&format!("{way}{target}")) {
                    found.push((format!("{}{way}", server.name), path));
                }
            }
        }
    }
    out
}
