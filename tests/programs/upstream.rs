//! An upstream proxy of the operator's: what it is asked for is an address that
//! was vetted before, and nothing else of the command reaches it.

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use outgate_harness::origin::Origin;
use outgate_harness::servers::{dial, is_there, serve};
use outgate_harness::{Identity, Lab, Sandbox, audit, lab_tests};

use crate::servers::{ADDRESS, MARK, Servers};
use crate::{bash, confined, words};

/// Where proxies of these tests listen.
const AT: &str = "203.0.113.9:3128";

/// What no record and no word may hold.
const SECRET: &str = "s3cret-of-the-proxy";

/// A proxy that makes tunnels and keeps all it is told before them.
struct Proxy {
    told: Arc<Mutex<Vec<String>>>,
}

impl Proxy {
    /// Starts one that answers every question with `answer`, and makes a
    /// tunnel if that begins with a success.
    fn start(answer: &'static str) -> Self {
        let at: SocketAddr = AT.parse().expect("an address");
        let listener = TcpListener::bind(at).expect("a port");
        let told: Arc<Mutex<Vec<String>>> = Arc::default();
        let kept = Arc::clone(&told);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let kept = Arc::clone(&kept);
                thread::spawn(move || tunnel(stream, answer, &kept));
            }
        });
        Self { told }
    }

    /// The heads since this was called last.
    fn told(&self) -> Vec<String> {
        std::mem::take(&mut *self.told.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn tunnel(mut client: TcpStream, answer: &str, told: &Mutex<Vec<String>>) {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        if !matches!(client.read(&mut byte), Ok(1)) {
            break;
        }
        head.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let target = head.split(' ').nth(1).map(str::parse::<SocketAddr>);
    told.lock()
        .unwrap_or_else(PoisonError::into_inner)
        .push(head);
    let Some(Ok(target)) = target else { return };
    client.write_all(answer.as_bytes()).ok();
    if !answer.starts_with("HTTP/1.1 200") {
        return;
    }
    let Ok(origin) = dial(target) else { return };
    let (mut from, mut to) = (
        client.try_clone().expect("a socket"),
        origin.try_clone().expect("a socket"),
    );
    let up = thread::spawn(move || {
        std::io::copy(&mut from, &mut to).ok();
        to.shutdown(std::net::Shutdown::Write).ok();
    });
    let (mut from, mut to) = (origin, client);
    std::io::copy(&mut from, &mut to).ok();
    to.shutdown(std::net::Shutdown::Write).ok();
    up.join().ok();
}

fn head(address: &str) -> String {
    format!("CONNECT {address} HTTP/1.1\r\nHost: {address}\r\n\r\n")
}

/// A server that speaks first.
fn greeter(port: u16) {
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).expect("a port");
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            stream.write_all(b"welcome\n").ok();
            std::io::copy(&mut stream, &mut std::io::sink()).ok();
        }
    });
}

fn sandbox(lab: &Lab, identity: Identity) -> Sandbox<'_> {
    confined(lab, identity)
        .allow("http://a.example:8080")
        .allow("http://near.example:8080")
        .allow("http://localhost:8080")
        .allow("tcp://raw.example:9000")
        .pin("a.example=93.184.216.1")
        .pin("near.example=93.184.216.2")
        .pin("raw.example=93.184.216.3")
        .pin("denied.example=93.184.216.4")
}

fn code(url: &str) -> String {
    format!("curl -s -m 20 -o /dev/null -w '%{{http_code}} ' {url}")
}

lab_tests! {
    fn a_proxy_of_the_environment_is_told_addresses_and_nothing_else(lab) {
        let origin = Origin::start(8080);
        greeter(9000);
        let proxy = Proxy::start("HTTP/1.1 200 OK\r\n\r\n");
        for identity in Identity::all() {
            let record = lab.folder("records", identity).join("record.jsonl");
            let url = format!("http://me:{SECRET}@{AT}/");
            let script = [
                code("http://a.example:8080/through"),
                code("http://near.example:8080/near"),
                code("http://localhost:8080/here"),
                code("http://denied.example:8080/denied"),
                "timeout 20 bash -c 'read -r line < /dev/tcp/raw.example/9000; echo $line'".to_owned(),
                "env | grep -i proxy; cat /proc/$PPID/environ 2>/dev/null; echo over".to_owned(),
            ];
            let outcome = sandbox(lab, identity)
                .environment("http_proxy", &url)
                .environment("HTTPS_PROXY", &url)
                .environment("no_proxy", "near.example")
                .option("--audit", &record.to_string_lossy())
                .run(&bash(&script.join("; ")));
            assert_eq!(outcome.stdout, "200 200 200 403 welcome\nover\n", "{outcome}");
            let told = proxy.told();
            let basic = "Proxy-Authorization: Basic ";
            let targets: Vec<&str> = told.iter().filter_map(|head| head.split(' ').nth(1)).collect();
            assert_eq!(targets, ["93.184.216.1:8080", "93.184.216.3:9000"], "{told:?}");
            for head in &told {
                assert!(head.contains(basic) && !head.contains("example"), "{head}");
                assert_eq!(head.lines().count(), 4, "{head}");
            }
            // The origin gets neither them nor a word of the proxy.
            for arrival in origin.arrivals() {
                assert!(!arrival.bytes.to_ascii_lowercase().contains("proxy-auth"), "{arrival:?}");
            }
            let text = fs::read_to_string(&record).expect("a record");
            let credentials = told[0].split(basic).nth(1).and_then(|rest| rest.lines().next()).expect("credentials");
            for secret in [SECRET, credentials] {
                assert!(!text.contains(secret) && !outcome.stderr.contains(secret), "{outcome}");
            }
            let records = audit::records(&record);
            let raw = records.iter().find(|record| record["target"] == "raw.example:9000" && record["kind"] == "connect");
            assert_eq!(raw.expect("a record")["detail"], "upstream proxy");
        }
    }

    fn no_proxy_is_used_where_the_command_line_says_so(lab) {
        let _origin = Origin::start(8080);
        let proxy = Proxy::start("HTTP/1.1 200 OK\r\n\r\n");
        let url = format!("http://{AT}");
        let run = |option: &str, variable: &str| {
            let sandbox = sandbox(lab, Identity::Own).environment("all_proxy", variable);
            sandbox.option("--upstream-proxy", option).run(&bash(&code("http://a.example:8080/")))
        };
        assert_eq!(run("none", &url).stdout, "200 ");
        assert_eq!(proxy.told(), Vec::<String>::new());
        assert_eq!(run(&url, "").stdout, "200 ");
        assert_eq!(proxy.told(), [head("93.184.216.1:8080")]);
        for wrong in ["socks5://me:s3cret-of-the-proxy@203.0.113.9:1080", "http://me:s3cret-of-the-proxy@203.0.113.9/x", "http://"] {
            let outcome = run(wrong, "");
            assert_eq!(outcome.code, Some(2), "{outcome}");
            assert!(outcome.stderr.contains("--upstream-proxy") && !outcome.stderr.contains(SECRET), "{outcome}");
        }
        // A variable that cannot be used is named, and the run goes on.
        let outcome = sandbox(lab, Identity::Own)
            .environment("ALL_PROXY", &format!("socks5://me:{SECRET}@{AT}"))
            .run(&bash(&code("http://a.example:8080/")));
        assert_eq!(outcome.stdout, "200 ", "{outcome}");
        assert!(outcome.stderr.contains("ALL_PROXY") && !outcome.stderr.contains(SECRET), "{outcome}");
    }

    fn what_may_not_be_dialled_is_asked_of_no_proxy(lab) {
        let origin = Origin::start(8080);
        let proxy = Proxy::start("HTTP/1.1 200 OK\r\n\r\n");
        // `*` grants no address that is not public, and the name no rule.
        let urls = ["http://10.0.0.1:8080/", "http://169.254.169.254:8080/", "http://[fd00::1]:8080/", "http://denied.example:8080/"];
        let script = urls.map(code).join("; ");
        let outcome = confined(lab, Identity::Own)
            .option("--upstream-proxy", &format!("http://{AT}"))
            .allow("http://*:8080")
            .deny("denied.example")
            .pin("denied.example=93.184.216.4")
            .run(&bash(&script));
        assert_eq!(outcome.stdout, "403 403 403 403 ", "{outcome}");
        assert_eq!(proxy.told(), Vec::<String>::new(), "{outcome}");
        assert_eq!(origin.connections(), 0, "{outcome}");
    }

    fn a_proxy_that_refuses_or_is_not_there_is_named_in_the_answer(lab) {
        let origin = Origin::start(8080);
        let run = |at: &str| {
            let sandbox = sandbox(lab, Identity::Own).option("--upstream-proxy", &format!("http://me:{SECRET}@{at}"));
            sandbox.run(&words(&["curl", "-s", "-m", "20", "-w", "%{http_code}", "http://a.example:8080/"]))
        };
        let nobody = run("203.0.113.10:3128");
        assert!(nobody.stdout.contains("the upstream proxy") && nobody.stdout.ends_with("502"), "{nobody}");
        let _proxy = Proxy::start("HTTP/1.1 407 Proxy Authentication Required\r\n\r\n");
        let refused = run(AT);
        assert!(refused.stdout.contains("does not take these credentials") && refused.stdout.ends_with("502"), "{refused}");
        for outcome in [nobody, refused] {
            let said = format!("{outcome}");
            assert!(!said.contains(SECRET) && !said.contains("93.184.216.1"), "{said}");
        }
        assert_eq!(origin.connections(), 0);
    }

    fn squid_and_tinyproxy_carry_http_and_tls_without_learning_a_name(lab) {
        if !is_there("squid") || !is_there("tinyproxy") {
            return;
        }
        let Some(mut servers) = Servers::start(lab) else {
            return;
        };
        let ca = servers.certificate();
        // squid needs an account that is not root.
        let proxies = if Identity::all().len() > 1 {
            &["tinyproxy", "squid"][..]
        } else {
            &["tinyproxy"]
        };
        for (number, &proxy) in proxies.iter().enumerate() {
            let at = format!("203.0.113.{}:3128", 20 + number);
            let log = start(lab, proxy, &at);
            for identity in Identity::all() {
                let run = |rule: &str, more: &[&str], url: &str| {
                    let mut line = vec!["curl", "-s", "-m", "20"];
                    line.extend_from_slice(more);
                    line.push(url);
                    servers.names(confined(lab, identity))
                        .environment("http_proxy", &format!("http://{at}"))
                        .environment("https_proxy", &format!("http://{at}"))
                        .option("--upstream-ca", &ca)
                        .allow(rule)
                        .run(&words(&line))
                };
                for (rule, more, url) in [
                    ("http://site.example", &[][..], "http://site.example/plain"),
                    ("tls://secure.example", &["--cacert", &ca], "https://secure.example/unopened"),
                    ("GET https://secure.example/opened", &[], "https://secure.example/opened"),
                ] {
                    let outcome = run(rule, more, url);
                    assert!(outcome.stdout.contains(MARK), "{proxy} {url}: {outcome}");
                }
            }
            let said = fs::read_to_string(&log).expect("a log");
            assert!(said.contains(&format!("{ADDRESS}:443")) || said.contains(ADDRESS), "{said}");
            assert!(!said.contains("example"), "{proxy} learnt a name: {said}");
        }
        let requests = servers.seen().requests;
        assert!(requests.contains(&"secure.example GET /opened".to_owned()), "{requests:?}");
    }
}

/// Starts a proxy; its log.
fn start(lab: &Lab, proxy: &str, at: &str) -> std::path::PathBuf {
    let folder = lab.folder(proxy, Identity::Own);
    // squid does not run as root, and so writes as nobody.
    let open = fs::Permissions::from_mode(0o777);
    fs::set_permissions(&folder, open).expect("a mode");
    let log = folder.join("log");
    let configuration = folder.join("configuration");
    let (address, port) = at.split_once(':').expect("a port");
    let text = match proxy {
        "squid" => format!(
            "http_port {at}\nhttp_access allow all\ncache deny all\nshutdown_lifetime 0 seconds\n\
             access_log stdio:{log}\ncache_log {folder}/cache.log\npid_filename none\n\
             coredump_dir {folder}\ncache_effective_user nobody\nnetdb_filename none\n",
            log = log.display(),
            folder = folder.display(),
        ),
        _ => format!(
            "Port {port}\nListen {address}\nTimeout 60\nMaxClients 50\nLogLevel Connect\nLogFile \"{}\"\n",
            log.display()
        ),
    };
    fs::write(&configuration, text).expect("a configuration");
    let file = configuration.to_string_lossy().into_owned();
    let line: &[&str] = match proxy {
        "squid" => &[
            "sh",
            "-c",
            "mount -t tmpfs none /dev/shm && exec squid -N -f $0",
            &file,
        ],
        _ => &["tinyproxy", "-d", "-c", &file],
    };
    serve(line, Path::new(&folder), &[at]);
    log
}
