//! How a shared gateway says how it is, attacked: by commands, by path and by link, by other
//! users, by those who are slow and by those who are many; and the limits it shows.

use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use outgate_harness::origin::Origin;
use outgate_harness::{Identity, Lab, Running, eventually, lab_tests};
use serde_json::Value;

use crate::gate::{Gate, Plan, curl, outgate, python, shell};
use crate::hostile::{enter, registered};

/// Sandboxes that one user registers at once.
const THOUSAND: usize = 1000;

/// Bytes that each of them may take of the gateway's memory.
const SANDBOX_BYTES_MAX: u64 = 512 << 10;

/// Time that one connection has there, and some.
const ADMIN_SECONDS: Duration = Duration::from_secs(12);

/// Where a gateway says how it is.
pub(crate) fn admin(gate: &Gate) -> PathBuf {
    let mut path = gate.socket.clone().into_os_string();
    path.push(".admin");
    path.into()
}

/// One question; nothing where there is no answer.
pub(crate) fn asked(socket: &Path, path: &str) -> Option<String> {
    let mut stream = UnixStream::connect(socket).ok()?;
    stream.set_read_timeout(Some(ADMIN_SECONDS)).ok()?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: gateway\r\n\r\n");
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer).filter(|answer| !answer.is_empty())
}

/// `outgate gateway status --json` of its own user.
pub(crate) fn status(lab: &Lab, gate: &Gate) -> Value {
    let socket = gate.socket.to_string_lossy().into_owned();
    let outcome = outgate(
        lab,
        Identity::Own,
        &["gateway", "status", &socket, "--json"],
    );
    serde_json::from_str(&outcome.stdout).unwrap_or_else(|error| panic!("{error}: {outcome}"))
}

/// Connects to each path, asks, and says what came.
const ASKER: &str = r"
import socket, sys
for path in sys.argv[1:]:
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(10)
    try:
        s.connect(path)
        s.sendall(b'GET /metrics HTTP/1.0\r\n\r\n')
        got = b''
        while True:
            more = s.recv(65536)
            if not more: break
            got += more
        print('outgate_' in got.decode() and 'REACHED' or 'nothing', len(got))
    except OSError as error: print('refused', error.errno)
print('asked')
";

fn asker(paths: &[&Path]) -> Vec<String> {
    let mut words = python(ASKER);
    words.extend(paths.iter().map(|path| path.to_string_lossy().into_owned()));
    words
}

lab_tests! {
    fn a_gateway_says_how_it_is_in_words_and_numbers(lab) {
        let _origin = Origin::start(8080);
        let gate = Gate::start(lab, Identity::Own, &Plan::new(&[
            "-a", "http://a.example:8080", "--resolve", "a.example=192.0.2.1",
            "--resolve", "b.example=192.0.2.2",
        ]));
        let holder = gate.sandbox(lab, Identity::Own).start(&shell("echo here; sleep 60"));
        holder.wait_for("here");
        for (host, code) in [("a", "200"), ("b", "403")] {
            let url = format!("http://{host}.example:8080/");
            let outcome = gate.sandbox(lab, Identity::Own).run(&curl(&url, 20));
            assert!(outcome.stdout.starts_with(code), "{outcome}");
        }
        let said = status(lab, &gate);
        assert_eq!(said["state"], "ready", "{said}");
        assert_eq!(said["sandboxes"]["used"], 1, "{said}");
        assert_eq!(said["sandboxes"]["option"], "--sandboxes", "{said}");
        assert_eq!(said["users"][0]["uid"], Identity::Own.uid(), "{said}");
        assert_eq!(said["policy"]["generation"], 1, "{said}");
        assert_eq!(said["record"]["state"], "written", "{said}");
        assert!(said["decisions"]["denied"].as_u64() >= Some(1), "{said}");
        assert!(said["open_files"]["used"].as_u64() >= Some(5), "{said}");
        let socket = gate.socket.to_string_lossy().into_owned();
        let outcome = outgate(lab, Identity::Own, &["gateway", "status", &socket]);
        assert_eq!(outcome.code, Some(0), "{outcome}");
        for part in ["ready for", "sandboxes of a user", "--sandboxes-per-user", "record: written"] {
            assert!(outcome.stdout.contains(part), "{part}: {outcome}");
        }
        let metrics = asked(&admin(&gate), "/metrics").expect("an answer");
        for line in [
            "outgate_sandboxes 1",
            "outgate_events_total{kind=\"request\",verdict=\"allow\"} 1",
            "outgate_denials_total{reason=\"no-rule\"} ",
            "outgate_record_writable 1",
            "outgate_bytes_total{direction=\"down\"} ",
        ] {
            assert!(metrics.contains(line), "{line}: {metrics}");
        }
        assert!(asked(&admin(&gate), "/healthz").expect("an answer").contains("200 OK"));
        assert!(asked(&admin(&gate), "/readyz").expect("an answer").contains("ready"));
        assert!(asked(&admin(&gate), "/else").expect("an answer").contains("404"));
        holder.signal(nix::sys::signal::Signal::SIGTERM);
        holder.finish();
        gate.end();
    }

    fn no_command_reaches_the_admin_socket_by_any_path(lab) {
        let rule = format!("unix://{}/**", lab.folder("gate", Identity::Own).display());
        let plan = Plan::new(&["-a", &rule, "-a", "http://a.example:8080"]);
        let gate = Gate::start(lab, Identity::Own, &plan);
        let socket = admin(&gate);
        let folder = socket.parent().expect("a folder");
        let (hard, link) = (folder.join("other"), folder.join("link"));
        std::fs::hard_link(&socket, &hard).expect("a link");
        std::os::unix::fs::symlink(&socket, &link).expect("a link");
        let paths = [&*socket, &*hard, &*link, &*gate.socket];
        // Granted in so many words, beside a gateway of its own and through the shared one.
        for shared in [gate.sandbox(lab, Identity::Own), lab.sandbox(Identity::Own)] {
            let outcome = shared.allow(&rule).run(&asker(&paths));
            assert!(outcome.stdout.contains("asked"), "{outcome}");
            assert!(!outcome.stdout.contains("REACHED"), "{outcome}");
            assert!(outcome.stderr.contains("admin socket of a gateway"), "{outcome}");
        }
        // And not granted.
        let outcome = lab.sandbox(Identity::Own).run(&asker(&paths));
        assert!(!outcome.stdout.contains("REACHED"), "{outcome}");
        assert!(!outcome.stdout.contains("nothing"), "{outcome}");
        // Outside of a sandbox the same program is answered.
        let bare = lab.start_bare(Identity::Own, &asker(&[&socket])).finish();
        assert!(bare.stdout.contains("REACHED"), "{bare}");
        gate.end();
    }

    fn another_user_is_not_answered_whatever_the_mode(lab) {
        if Identity::all().len() < 2 {
            return outgate_harness::skip("one account");
        }
        let gate = Gate::start(lab, Identity::Own, &Plan::new(&["-a", "http://a.example:8080"]));
        let socket = admin(&gate);
        let mode = std::fs::metadata(&socket).expect("it is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let ask = || lab.start_bare(Identity::Nobody, &asker(&[&socket])).finish();
        let outcome = ask();
        assert!(outcome.stdout.contains("refused"), "{outcome}");
        std::fs::set_permissions(&socket, std::fs::Permissions::from_mode(0o666)).expect("ours");
        let outcome = ask();
        assert!(outcome.stdout.contains("asked") && !outcome.stdout.contains("REACHED"), "{outcome}");
        assert!(asked(&socket, "/healthz").is_some(), "its own user still is");
        gate.end();
    }

    fn the_slow_and_the_many_hold_up_nobody(lab) {
        let _origin = Origin::start(8080);
        let gate = Gate::start(lab, Identity::Own, &Plan::new(&[
            "-a", "http://a.example:8080", "--resolve", "a.example=192.0.2.1",
        ]));
        let flood = lab.start_bare(Identity::Own, &{
            let mut words = python(FLOOD);
            words.push(admin(&gate).to_string_lossy().into_owned());
            words
        });
        flood.wait_for("flooding");
        for _ in 0..3 {
            let outcome = gate.sandbox(lab, Identity::Own).run(&curl("http://a.example:8080/", 20));
            assert!(outcome.stdout.starts_with("200"), "{outcome}");
            assert!(outcome.elapsed < Duration::from_secs(10), "{outcome}");
        }
        let held = flood.finish();
        assert!(held.number("most ") < 200, "{held}");
        assert!(held.number("tried ") >= 10_000, "{held}");
        let began = Instant::now();
        let answers = eventually(ADMIN_SECONDS, || asked(&admin(&gate), "/healthz").is_some());
        assert!(answers, "{:?}", began.elapsed());
        gate.end();
    }

    fn heads_without_end_are_bounded(lab) {
        let gate = Gate::start(lab, Identity::Own, &Plan::new(&["-a", "http://a.example:8080"]));
        let socket = admin(&gate);
        let long = "x".repeat(1 << 20);
        let fields = "a: b\r\n".repeat(10_000);
        for bytes in [
            format!("GET /{long} HTTP/1.1\r\n\r\n"),
            format!("GET /status HTTP/1.1\r\n{fields}\r\n"),
            format!("POST /status HTTP/1.1\r\nContent-Length: 1000000000\r\n\r\n{long}"),
            "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(),
            "\0\0\0\0\r\n\r\n".to_owned(),
        ] {
            let mut stream = UnixStream::connect(&socket).expect("it listens");
            stream.set_read_timeout(Some(ADMIN_SECONDS)).expect("a time");
            // It may hang up in the middle.
            stream.write_all(bytes.as_bytes()).ok();
            let mut answer = Vec::new();
            stream.read_to_end(&mut answer).ok();
            let answer = String::from_utf8_lossy(&answer).into_owned();
            assert!(!answer.contains("\"sandboxes\""), "{answer}");
        }
        assert!(asked(&socket, "/healthz").is_some());
        gate.end();
    }

    fn nothing_that_a_command_chose_stands_in_the_metrics(lab) {
        let gate = Gate::start(lab, Identity::Own, &Plan::new(&["-a", "http://a.example:8080"]));
        let lines = || asked(&admin(&gate), "/metrics").expect("an answer").lines().count();
        let before = lines();
        let program = "import socket\n\
             for number in range(200):\n\
             \x20 try: socket.create_connection((f'chosen-{number}.example', 8000 + number), 5).close()\n\
             \x20 except OSError: pass\n\
             print('over')\n";
        let run = gate.sandbox(lab, Identity::Own).option("--name", "chosen");
        let outcome = run.limit(Duration::from_secs(90)).run(&python(program));
        assert!(outcome.stdout.contains("over"), "{outcome}");
        assert_eq!(lines(), before);
        let metrics = asked(&admin(&gate), "/metrics").expect("an answer");
        assert!(!metrics.contains("chosen"), "{metrics}");
        gate.end();
    }

    fn a_limit_is_shown_and_refused_by_the_option_that_raises_it(lab) {
        let plan = ["--sandboxes-per-user", "2", "--connections-per-sandbox", "1"];
        let gate = Gate::start(lab, Identity::Own, &Plan::new(&plan));
        let holders: Vec<Running> = (0..2)
            .map(|_| gate.sandbox(lab, Identity::Own).start(&shell("echo here; sleep 60")))
            .collect();
        for holder in &holders {
            holder.wait_for("here");
        }
        let outcome = gate.sandbox(lab, Identity::Own).run(&shell("true"));
        assert_eq!(outcome.code, Some(125), "{outcome}");
        assert!(outcome.stderr.contains("2 sandboxes of this user"), "{outcome}");
        assert!(outcome.stderr.contains("--sandboxes-per-user N"), "{outcome}");
        let said = status(lab, &gate);
        assert_eq!(said["users"][0]["sandboxes"]["used"], 2, "{said}");
        assert_eq!(said["users"][0]["sandboxes"]["limit"], 2, "{said}");
        assert_eq!(said["connections_per_sandbox"]["limit"], 1, "{said}");
        let metrics = asked(&admin(&gate), "/metrics").expect("an answer");
        assert!(metrics.contains("sandboxes_refused_total{limit=\"user\"} 1"), "{metrics}");
        for holder in holders {
            holder.signal(nix::sys::signal::Signal::SIGTERM);
            holder.finish();
        }
        gate.end();
    }

    fn a_thousand_sandboxes_of_one_user_register_and_are_small(lab) {
        let _origin = Origin::start(8080);
        let gate = Gate::start(lab, Identity::Own, &Plan::new(&[
            "-a", "http://a.example:8080", "--resolve", "a.example=192.0.2.1",
            "--sandboxes-per-user", "1001",
        ]));
        let resident = || {
            let said = status(lab, &gate);
            said["resident_bytes"].as_u64().expect("a number")
        };
        let before = resident();
        let held: Vec<_> = (0..THOUSAND)
            .map(|number| {
                let socket = enter(&gate.socket).expect("it listens");
                let answer = registered(&socket);
                assert_eq!(answer.first(), Some(&101), "{number}: {}", String::from_utf8_lossy(&answer));
                socket
            })
            .collect();
        let said = status(lab, &gate);
        assert_eq!(said["sandboxes"]["used"], THOUSAND, "{said}");
        let each = resident().saturating_sub(before) / 1000;
        eprintln!("a registered sandbox takes {each} bytes; {said}");
        assert!(each < SANDBOX_BYTES_MAX, "{each} bytes for each");
        let outcome = gate.sandbox(lab, Identity::Own).run(&curl("http://a.example:8080/", 30));
        assert!(outcome.stdout.starts_with("200"), "{outcome}");
        drop(held);
        let left = || status(lab, &gate)["sandboxes"]["used"] == 0;
        assert!(eventually(Duration::from_secs(20), left), "{}", status(lab, &gate));
        gate.end();
    }

    fn limits_beyond_the_open_files_are_refused_in_words(lab) {
        let gate = lab.folder("few", Identity::Own);
        let mut line = ["prlimit", "--nofile=1024:1024"].map(str::to_owned).to_vec();
        line.push(lab.tools.programs.join("outgate").to_string_lossy().into_owned());
        line.extend(["gateway", "--sandboxes", "500", "--listen"].map(str::to_owned));
        line.push(gate.join("gate").to_string_lossy().into_owned());
        let outcome = lab.start_bare(Identity::Own, &line).finish();
        assert_eq!(outcome.code, Some(125), "{outcome}");
        assert!(outcome.stderr.contains("`--sandboxes 500` needs"), "{outcome}");
        assert!(outcome.stderr.contains("LimitNOFILE="), "{outcome}");
    }

    fn a_gateway_whose_record_cannot_be_written_is_not_ready(lab) {
        let plan = Plan {
            before: ["prlimit", "--fsize=6000:6000"].map(str::to_owned).to_vec(),
            ..Plan::new(&["-a", "http://a.example:8080", "--resolve", "a.example=192.0.2.1"])
        };
        let gate = Gate::start(lab, Identity::Own, &plan);
        assert!(asked(&admin(&gate), "/readyz").expect("an answer").contains("200 OK"));
        let ask = || gate.sandbox(lab, Identity::Own).run(&curl("http://a.example:8080/", 10));
        let fails = eventually(Duration::from_mins(1), || {
            ask();
            asked(&admin(&gate), "/readyz").expect("an answer").contains("503")
        });
        assert!(fails, "{}", gate.errors());
        let said = status(lab, &gate);
        assert_eq!(said["record"]["state"], "failing", "{said}");
        assert!(asked(&admin(&gate), "/healthz").expect("an answer").contains("200 OK"));
    }
}

/// Holds whatever connections it gets, half of them with half a head, and tries again and
/// again.
const FLOOD: &str = r"
import socket, sys, time
held, tried, most, end = [], 0, 0, time.monotonic() + 25
print('flooding', flush=True)
while tried < 10000 or len(held) < 5:
    s = socket.socket(socket.AF_UNIX)
    s.setblocking(False)
    tried += 1
    try:
        s.connect(sys.argv[1])
        s.send(b'GET /met')
        held.append(s)
    except OSError: s.close()
    most = max(most, len(held))
    if time.monotonic() > end: break
    if tried % 100 == 0: time.sleep(0.01)
print('most', most, flush=True)
print('tried', tried, flush=True)
";
