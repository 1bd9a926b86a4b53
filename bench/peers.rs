//! Who is measured side by side: the bare client, outgate, and whichever peers
//! are installed. Starts and ends them, says how each is told to allow the
//! origin, and adds up their processor time and memory. Knows nothing of rows.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::lab::{Lab, ROOTS};
use crate::{Outcome, secure};

mod opening;

/// Longest time until a peer accepts connections.
const START_SECONDS_MAX: u64 = 30;

/// Names of the client's process: its own time and memory count for nobody.
const CLIENTS: [&str; 2] = ["load", secure::CLIENT];

/// KiB of a MiB.
const KIBIBYTES: u64 = 1024;

/// Nanoseconds of a clock tick of `/proc/PID/stat` (proc_pid_stat(5)).
const TICK_NS: u64 = 10_000_000;

/// outgate with everything but the scan.
pub(crate) const UNSCANNED: &str = "outgate --inspect off";

/// One that the client runs bare, inside, or through.
#[derive(Debug)]
pub(crate) struct Contender {
    /// Its name in the table.
    pub(crate) name: &'static str,
    kind: Kind,
    /// Inside TLS, the file with whom its client trusts.
    roots: Option<PathBuf>,
}

#[derive(Debug)]
enum Kind {
    Bare,
    /// With these options.
    Outgate(Vec<String>),
    /// With these options.
    Sandlock(PathBuf, Vec<String>),
    Proxy(Daemon),
}

/// A forward proxy on loopback; ends when dropped.
#[derive(Debug)]
struct Daemon {
    port: u16,
    child: Child,
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // None of them has helpers here, or anything to put in order.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Processor time and memory of a contender at one moment.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Usage {
    /// Nanoseconds of processor time so far.
    pub(crate) cpu_ns: u64,
    /// Resident KiB.
    pub(crate) resident: u64,
}

/// Writes a proxy's configuration for a port and an origin's port; its command.
type Configure = fn(&Lab, &Path, u16, &str) -> Outcome<Vec<OsString>>;

impl Contender {
    fn new(name: &'static str, kind: Kind) -> Self {
        Self {
            name,
            kind,
            roots: None,
        }
    }

    /// Inside TLS with the scan and without it; a rule of requests opens it in both.
    pub(crate) fn scanning(lab: &Lab, origin_port: &str) -> Vec<Self> {
        let origin = lab.directory.join(ROOTS);
        let options = opening::options(&origin, origin_port);
        let unscanned = [options.clone(), vec!["--inspect".into(), "off".into()]].concat();
        let contenders = [
            Self::new("bare", Kind::Bare),
            Self::new("outgate", Kind::Outgate(options)),
            Self::new(UNSCANNED, Kind::Outgate(unscanned)),
        ];
        contenders
            .into_iter()
            .map(|contender| Self {
                roots: Some(origin.clone()),
                ..contender
            })
            .collect()
    }

    /// The same inside TLS: those who can open it, and who is not there.
    pub(crate) fn opening(lab: &Lab, origin_port: &str) -> Outcome<(Vec<Self>, Vec<&'static str>)> {
        let origin = lab.directory.join(ROOTS);
        let options = opening::options(&origin, origin_port);
        let mut contenders = vec![
            Self::new("bare", Kind::Bare),
            Self::new("outgate", Kind::Outgate(options)),
        ];
        let mut missing = Vec::new();
        let proxies: [(&'static str, Option<PathBuf>, Configure, PathBuf); 2] = [
            (
                "squid",
                find("squid").filter(|program| opening::bumps(program)),
                opening::squid,
                lab.directory.join("squid.pem"),
            ),
            (
                "mitmdump",
                find("mitmdump"),
                opening::mitmdump,
                lab.directory.join("mitm-tls/mitmproxy-ca-cert.pem"),
            ),
        ];
        for (name, program, words, roots) in proxies {
            let Some(program) = program else {
                missing.push(if name == "squid" {
                    "squid with OpenSSL"
                } else {
                    name
                });
                continue;
            };
            let port = free_port()?;
            let words = words(lab, &program, port, origin_port)?;
            let daemon = start(lab, name, port, &words)?;
            contenders.push(Self {
                roots: Some(roots),
                ..Self::new(name, Kind::Proxy(daemon))
            });
        }
        for contender in &mut contenders {
            contender.roots.get_or_insert_with(|| origin.clone());
        }
        Ok((contenders, missing))
    }

    /// Bare, outgate, and the peers that are installed; and which are not.
    pub(crate) fn all(lab: &Lab, origin_port: &str) -> Outcome<(Vec<Self>, Vec<&'static str>)> {
        let rule = format!("GET,POST http://127.0.0.1:{origin_port}/**");
        let mut contenders = vec![
            Self::new("bare", Kind::Bare),
            Self::new("outgate", Kind::Outgate(vec!["-a".to_owned(), rule])),
        ];
        let mut missing = Vec::new();
        match find("sandlock") {
            Some(program) => {
                contenders.push(Self::new("sandlock", Kind::Sandlock(program, Vec::new())));
            }
            None => missing.push("sandlock"),
        }
        let proxies: [(&'static str, Configure); 3] = [
            ("squid", squid),
            ("tinyproxy", tinyproxy),
            ("mitmdump", mitmdump),
        ];
        for (name, words) in proxies {
            let Some(program) = find(name) else {
                missing.push(name);
                continue;
            };
            let port = free_port()?;
            let words = words(lab, &program, port, origin_port)?;
            let daemon = start(lab, name, port, &words)?;
            contenders.push(Self::new(name, Kind::Proxy(daemon)));
        }
        Ok((contenders, missing))
    }

    /// The command that runs `client` (a `load` command whose third word, the
    /// proxy, is still 0) with this contender.
    pub(crate) fn words(&self, lab: &Lab, origin_port: &str, client: &[OsString]) -> Vec<OsString> {
        let mut words = client.to_vec();
        words.extend(self.roots.iter().map(|file| file.clone().into_os_string()));
        match &self.kind {
            Kind::Bare => words,
            Kind::Outgate(options) => {
                let options: Vec<&str> = options.iter().map(String::as_str).collect();
                lab.inside(&options, &words)
            }
            Kind::Sandlock(program, options) => {
                let mut run = sandlock(program, origin_port, &words);
                // Its own options, in front of the others.
                run.splice(2..2, options.iter().map(Into::into));
                run
            }
            Kind::Proxy(daemon) => {
                if let Some(proxy) = words.get_mut(2) {
                    *proxy = daemon.port.to_string().into();
                }
                words
            }
        }
    }

    /// Whether a failure is a fault of the project.
    pub(crate) fn is_ours(&self) -> bool {
        matches!(self.kind, Kind::Bare | Kind::Outgate(_))
    }

    /// How many times fewer requests suffice: the slowest peers take long.
    pub(crate) fn slowness(&self) -> u32 {
        match self.name {
            "mitmdump" => 25,
            "squid" | "tinyproxy" => 2,
            _ => 1,
        }
    }

    /// What its processes have used: of the run that `child` started, or of the
    /// daemon. The client itself is not counted, and of outgate only the gateway
    /// counts as memory.
    pub(crate) fn usage(&self, child: u32) -> Usage {
        let (root, memory_of) = match &self.kind {
            Kind::Bare => return Usage::default(),
            Kind::Outgate(_) => (child, Some("outgate-gateway")),
            Kind::Sandlock(..) => (child, None),
            Kind::Proxy(daemon) => (daemon.child.id(), None),
        };
        let counts_exited_threads = self.name == "tinyproxy";
        let mut usage = Usage::default();
        for process in processes() {
            if CLIENTS.contains(&process.name.as_str()) || !descends(process.pid, root) {
                continue;
            }
            usage.cpu_ns += if counts_exited_threads {
                ticks(process.pid)
            } else {
                scheduled(process.pid)
            };
            // The kernel cuts names after 15 bytes.
            if memory_of.is_none_or(|name| name.starts_with(&process.name)) {
                usage.resident += process.resident;
            }
        }
        usage
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a daemon of somebody else says only by accepting that it serves"
)]
fn start(lab: &Lab, name: &str, port: u16, words: &[OsString]) -> Outcome<Daemon> {
    let errors = fs::File::create(lab.directory.join(format!("{name}.errors")))?;
    let mut child = lab
        .unlimited(words)
        .stdout(Stdio::null())
        .stderr(errors)
        .spawn()
        .map_err(|error| format!("{name}: {error}"))?;
    let begun = Instant::now();
    while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
        let ended = child.try_wait()?;
        if ended.is_some() || begun.elapsed() > Duration::from_secs(START_SECONDS_MAX) {
            drop(child.kill());
            drop(child.wait());
            let errors = fs::read_to_string(lab.directory.join(format!("{name}.errors")));
            return Err(format!("{name} does not serve: {}", errors.unwrap_or_default()).into());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(Daemon { port, child })
}

/// One rule on the request's path, no cache, no log, one worker.
fn squid(lab: &Lab, program: &Path, port: u16, origin_port: &str) -> Outcome<Vec<OsString>> {
    let file = lab.directory.join("squid.conf");
    let mut text = String::new();
    writeln!(text, "http_port 127.0.0.1:{port}")?;
    writeln!(text, "acl origin port {origin_port}")?;
    writeln!(text, "acl here dst 127.0.0.1/32")?;
    writeln!(text, "acl paths urlpath_regex ^/(bytes|events)/")?;
    text.push_str("http_access allow here origin paths\nhttp_access deny all\n");
    text.push_str("cache deny all\naccess_log none\ncache_log /dev/null\npid_filename none\n");
    text.push_str("pinger_enable off\nshutdown_lifetime 0 seconds\nmax_filedescriptors 8192\n");
    fs::write(&file, text)?;
    Ok(vec![program.into(), "-N".into(), "-f".into(), file.into()])
}

fn tinyproxy(lab: &Lab, program: &Path, port: u16, _origin: &str) -> Outcome<Vec<OsString>> {
    let file = lab.directory.join("tinyproxy.conf");
    let mut text = String::new();
    writeln!(text, "Port {port}\nListen 127.0.0.1\nTimeout 600")?;
    text.push_str("MaxClients 4000\nLogLevel Critical\nAllow 127.0.0.1\n");
    fs::write(&file, text)?;
    Ok(vec![program.into(), "-d".into(), "-c".into(), file.into()])
}

/// Bodies streamed from the first byte; otherwise it would hold each one whole.
fn mitmdump(lab: &Lab, program: &Path, port: u16, _origin: &str) -> Outcome<Vec<OsString>> {
    let directory = lab.directory.join("mitm");
    fs::create_dir_all(&directory)?;
    let mut words: Vec<OsString> = vec![program.into()];
    let options = [
        "-q",
        "--listen-host",
        "127.0.0.1",
        "--set",
        "stream_large_bodies=1",
        "-p",
    ];
    words.extend(options.iter().map(Into::into));
    words.push(port.to_string().into());
    words.push("--set".into());
    let mut directory_option = OsString::from("confdir=");
    directory_option.push(&directory);
    words.push(directory_option);
    Ok(words)
}

/// The same rules: both methods on every path of the origin.
pub(crate) fn sandlock(program: &Path, origin_port: &str, client: &[OsString]) -> Vec<OsString> {
    let mut words: Vec<OsString> = vec![program.into(), "run".into()];
    let rule = |method: &str| format!("{method} 127.0.0.1/*");
    for option in [
        "-r",
        "/",
        "--net-allow",
        &format!("127.0.0.1:{origin_port}"),
        "--http-allow",
        &rule("GET"),
        "--http-allow",
        &rule("POST"),
        "--http-port",
        origin_port,
        "--",
    ] {
        words.push(option.into());
    }
    words.extend_from_slice(client);
    words
}

/// A program on the search path, or where `bench/install-peers` puts it.
pub(crate) fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let own = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .with_file_name("peers")
        .join("bin");
    std::env::split_paths(&path)
        .chain([own, PathBuf::from("/usr/sbin")])
        .map(|directory| directory.join(name))
        .find(|file| file.is_file())
}

fn free_port() -> Outcome<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?
        .local_addr()?
        .port())
}

struct Process {
    pid: u32,
    name: String,
    resident: u64,
}

fn processes() -> Vec<Process> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| {
            let pid = entry.file_name().to_string_lossy().parse().ok()?;
            let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
            let resident =
                field(&status, "VmRSS:").and_then(|text| text.split(' ').next()?.parse().ok());
            Some(Process {
                pid,
                name: field(&status, "Name:")?.to_owned(),
                resident: resident.unwrap_or(0),
            })
        })
        .collect()
}

fn descends(mut pid: u32, ancestor: u32) -> bool {
    while pid > 1 {
        if pid == ancestor {
            return true;
        }
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        pid = field(&status, "PPid:")
            .and_then(|text| text.parse().ok())
            .unwrap_or(0);
    }
    false
}

fn field<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    status
        .lines()
        .find_map(|line| line.strip_prefix(name))
        .map(str::trim)
}

/// Processor time of the threads a process has now, to the nanosecond.
fn scheduled(pid: u32) -> u64 {
    let tasks = fs::read_dir(format!("/proc/{pid}/task"))
        .into_iter()
        .flatten()
        .flatten();
    tasks
        .filter_map(|task| {
            let text = fs::read_to_string(task.path().join("schedstat")).ok()?;
            text.split(' ').next()?.parse::<u64>().ok()
        })
        .sum()
}

/// Processor time of a process with its threads that have ended, to the tick.
fn ticks(pid: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields = text.rsplit(") ").next().unwrap_or_default();
    // The fields after the name start with the third; 14 and 15 are wanted.
    fields
        .split(' ')
        .skip(11)
        .take(2)
        .filter_map(|word| word.parse::<u64>().ok())
        .sum::<u64>()
        * TICK_NS
}

/// KiB as the table shows them.
pub(crate) fn mebibytes(kibibytes: u64) -> String {
    format!(
        "{}.{} MiB",
        kibibytes / KIBIBYTES,
        kibibytes % KIBIBYTES * 10 / KIBIBYTES
    )
}
