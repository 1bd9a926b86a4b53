//! A shared gateway as a service: it finishes what runs and takes nothing new, tells its
//! manager how it is, takes sockets that were made before, and writes lines for programs.

use std::io::{Read, Write};
use std::net::{Ipv6Addr, TcpListener};
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use outgate_harness::{Identity, Lab, Running, eventually, lab_tests};
use serde_json::Value;

use crate::admin::{admin, asked};
use crate::gate::{Gate, Plan, curl, program, python, shell, start};

/// Longest wait for what comes soon.
const SOON: Duration = Duration::from_secs(20);

/// An origin that answers in two halves, the second after `time`; how many asked.
fn slow(port: u16, time: Duration) -> Arc<AtomicUsize> {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let listener = TcpListener::bind((Ipv6Addr::UNSPECIFIED, port)).expect("a port");
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let count = Arc::clone(&count);
            thread::spawn(move || {
                let mut bytes = [0; 4096];
                while let Ok(1..) = stream.read(&mut bytes) {
                    count.fetch_add(1, Ordering::SeqCst);
                    let head = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nfirst";
                    if stream.write_all(head).is_err() {
                        return;
                    }
                    thread::park_timeout(time);
                    if stream.write_all(b"other").is_err() {
                        return;
                    }
                }
            });
        }
    });
    asked
}

const ALLOWED: [&str; 4] = [
    "-a",
    "http://a.example:8080",
    "--resolve",
    "a.example=192.0.2.1",
];

fn plan(more: &[&str]) -> Plan {
    Plan::new(&[&ALLOWED, more].concat())
}

/// Asks once, says when it is under way; then asks for something new, and says what came of
/// both.
const ASKER: &str = r"
import http.client, sys, time
def get(path):
    c = http.client.HTTPConnection('a.example', 8080, timeout=20)
    c.request('GET', path)
    return c
first = get('/slow').getresponse()
print('under way', flush=True)
sys.stdin.readline()
try:
    second = get('/new').getresponse()
    print('new', second.status, second.read()[:400])
except OSError as error: print('new refused', error.errno)
try: print('slow', first.read().decode(), flush=True)
except Exception as error: print('slow cut', type(error).__name__, flush=True)
";

/// A run with a request under way.
fn under_way(lab: &Lab, gate: &Gate, origin: &AtomicUsize) -> Running {
    let run = gate
        .sandbox(lab, Identity::Own)
        .with_input()
        .start(&python(ASKER));
    run.wait_for("under way");
    assert_eq!(origin.load(Ordering::SeqCst), 1);
    run
}

fn is_ending(gate: &Gate) -> bool {
    asked(&admin(gate), "/readyz").is_some_and(|answer| answer.contains("503"))
}

/// A manager of services, and what starts a gateway under it.
fn manager(folder: &Path, more: &[&str]) -> (UnixDatagram, Vec<String>) {
    let path = folder.join("notify");
    let manager = UnixDatagram::bind(&path).expect("a socket");
    manager.set_read_timeout(Some(SOON)).expect("a time");
    let mut before = vec![
        "env".to_owned(),
        format!("NOTIFY_SOCKET={}", path.display()),
    ];
    before.extend(more.iter().map(|&word| word.to_owned()));
    (manager, before)
}

fn heard(manager: &UnixDatagram) -> Option<String> {
    let mut bytes = [0; 4096];
    let count = manager.recv(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes[..count]).into_owned())
}

/// What is heard next that is no sign of life.
fn news(manager: &UnixDatagram) -> String {
    loop {
        let heard = heard(manager).expect("nothing is heard");
        if heard != "WATCHDOG=1" {
            return heard;
        }
    }
}

lab_tests! {
    fn what_runs_is_finished_and_nothing_new_is_taken(lab) {
        let origin = slow(8080, Duration::from_secs(12));
        let gate = Gate::start(lab, Identity::Own, &plan(&["--drain", "60s"]));
        let mut run = under_way(lab, &gate, &origin);
        let began = Instant::now();
        kill(gate.front(), Signal::SIGTERM).expect("it is there");
        assert!(eventually(SOON, || is_ending(&gate)), "{}", gate.errors());
        run.say("go\n");
        let refused = gate.sandbox(lab, Identity::Own).run(&shell("true"));
        assert_eq!(refused.code, Some(125), "{refused}");
        assert!(refused.stderr.contains("the gateway is ending"), "{refused}");
        let outcome = run.finish();
        assert!(outcome.stdout.contains("slow firstother"), "{outcome}");
        assert!(outcome.stdout.contains("new 403") || outcome.stdout.contains("new refused"), "{outcome}");
        let said = [outcome.stdout.as_str(), &outcome.stderr].concat();
        assert!(said.contains("The gateway is ending"), "{outcome}");
        assert_eq!(origin.load(Ordering::SeqCst), 1, "the new request left");
        let gate = gate.finish();
        assert_eq!(gate.code, Some(0), "{gate}");
        assert!(gate.stderr.contains("takes nothing new"), "{gate}");
        assert!(began.elapsed() < Duration::from_secs(50), "{gate}");
    }

    fn what_does_not_finish_has_the_time_that_the_option_says(lab) {
        let origin = slow(8080, Duration::from_mins(2));
        let gate = Gate::start(lab, Identity::Own, &plan(&["--drain", "2s"]));
        let mut run = under_way(lab, &gate, &origin);
        let began = Instant::now();
        kill(gate.front(), Signal::SIGTERM).expect("it is there");
        let gate = gate.finish();
        let time = began.elapsed();
        assert_eq!(gate.code, Some(0), "{gate}");
        assert!(time > Duration::from_millis(1900) && time < Duration::from_secs(15), "{time:?} {gate}");
        run.say("go\n");
        let outcome = run.finish();
        assert!(outcome.stdout.contains("slow cut"), "{outcome}");
    }

    fn a_second_signal_and_no_time_end_it_at_once(lab) {
        let origin = slow(8080, Duration::from_mins(2));
        for (options, signals) in [(["--drain", "60s"], 2), (["--drain", "0s"], 1)] {
            origin.store(0, Ordering::SeqCst);
            let gate = Gate::start(lab, Identity::Own, &plan(&options));
            let mut run = under_way(lab, &gate, &origin);
            let began = Instant::now();
            for number in 0..signals {
                kill(gate.front(), Signal::SIGTERM).expect("it is there");
                if number + 1 < signals {
                    assert!(eventually(SOON, || is_ending(&gate)), "{}", gate.errors());
                }
            }
            let gate = gate.finish();
            assert_eq!(gate.code, Some(0), "{gate}");
            assert!(began.elapsed() < Duration::from_secs(20), "{gate}");
            run.say("go\n");
            run.finish();
        }
    }

    fn a_gateway_that_ends_under_load_lets_nothing_undecided_leave(lab) {
        let origin = outgate_harness::origin::Origin::start(8080);
        let gate = Gate::start(lab, Identity::Own, &plan(&[]));
        let runs: Vec<Running> = (0..8)
            .map(|number| {
                let line = format!(
                    "for i in $(seq 200); do curl -s -m 10 -o /dev/null -w '%{{http_code}}\\n' \
                     http://a.example:8080/{number}-$i; done; echo over"
                );
                gate.sandbox(lab, Identity::Own).flag("--no-summary").start(&shell(&line))
            })
            .collect();
        for run in &runs {
            run.wait_for("200");
        }
        let record = gate.record.clone();
        let outcome = gate.end();
        assert_eq!(outcome.code, Some(0), "{outcome}");
        let mut answered = 0;
        for run in runs {
            let outcome = run.finish();
            answered += outcome.stdout.matches("200").count();
        }
        let records = outgate_harness::audit::records_so_far(&record);
        crate::gate::assert_chained(&records);
        let requests = outgate_harness::audit::of_kind(&records, "request");
        let allowed = requests.iter().filter(|own| own["verdict"] == "allow").count();
        let arrived = origin.arrivals().len();
        assert!(arrived <= allowed, "{arrived} arrived, {allowed} were allowed");
        // What was allowed was answered: nothing was cut off in the middle.
        assert_eq!(answered, arrived);
    }

    fn a_manager_hears_of_start_reload_end_and_life(lab) {
        let folder = lab.folder("manager", Identity::Own);
        let (manager, before) = manager(&folder, &["WATCHDOG_USEC=900000"]);
        let policy = folder.join("site.toml");
        std::fs::write(&policy, "allow = [\"http://a.example\"]\n").expect("a file");
        let plan = Plan { before, ..Plan::new(&["-p", &policy.to_string_lossy()]) };
        let gate = Gate::start(lab, Identity::Own, &plan);
        let ready = news(&manager);
        assert!(ready.starts_with("READY=1\nSTATUS=serving under"), "{ready}");
        assert_eq!(heard(&manager).as_deref(), Some("WATCHDOG=1"));
        assert_eq!(heard(&manager).as_deref(), Some("WATCHDOG=1"));
        std::fs::write(&policy, "allow = [\"http://a.example\", \"http://b.example\"]\n").expect("a file");
        kill(gate.front(), Signal::SIGHUP).expect("it is there");
        assert!(news(&manager).starts_with("RELOADING=1\nMONOTONIC_USEC="));
        assert!(news(&manager).starts_with("READY=1"));
        let widened = eventually(SOON, || gate.errors().contains("allows more: allow `http://b.example"));
        assert!(widened, "{}", gate.errors());
        // A gateway that does not serve gives no sign of life, though its front does run.
        kill(gate.server(), Signal::SIGSTOP).expect("it serves");
        let silent = eventually(Duration::from_secs(30), || {
            manager.set_read_timeout(Some(Duration::from_secs(3))).expect("a time");
            heard(&manager).is_none()
        });
        assert!(silent, "it is said to be alive");
        kill(gate.server(), Signal::SIGCONT).expect("it serves");
        manager.set_read_timeout(Some(SOON)).expect("a time");
        assert_eq!(heard(&manager).as_deref(), Some("WATCHDOG=1"));
        kill(gate.front(), Signal::SIGTERM).expect("it is there");
        assert!(news(&manager).starts_with("STOPPING=1"));
        let outcome = gate.finish();
        assert_eq!(outcome.code, Some(0), "{outcome}");
    }

    fn a_gateway_takes_sockets_that_were_made_before(lab) {
        let _origin = outgate_harness::origin::Origin::start(8080);
        let folder = lab.folder("activated", Identity::Own);
        let (socket, admin) = (folder.join("gate"), folder.join("say"));
        let mut words = python(ACTIVATE);
        words.extend([&socket, &admin].map(|path| path.to_string_lossy().into_owned()));
        words.push(program(lab));
        words.extend(["gateway", "--log-format", "json"].map(str::to_owned));
        words.extend(ALLOWED.map(str::to_owned));
        let running = start(lab, Identity::Own, &words, 100);
        assert!(eventually(SOON, || running.errors().contains("listens at")), "{}", running.errors());
        let outcome = lab
            .sandbox(Identity::Own)
            .option("--gateway", &socket.to_string_lossy())
            .run(&curl("http://a.example:8080/", 20));
        assert!(outcome.stdout.starts_with("200"), "{outcome}");
        let ready = asked(&admin, "/readyz").expect("an answer");
        assert!(ready.contains("200 OK"), "{ready}");
        running.signal(Signal::SIGTERM);
        let outcome = running.finish();
        assert_eq!(outcome.code, Some(0), "{outcome}");
        // Whoever made them removes them.
        assert!(socket.exists() && admin.exists());
        for line in outcome.stderr.lines() {
            let object: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
            for member in ["time", "level", "message"] {
                assert!(object[member].is_string(), "{line}");
            }
        }
    }

    fn open_files_are_raised_to_the_hard_limit(lab) {
        let plan = Plan {
            before: ["prlimit", "--nofile=256:3000"].map(str::to_owned).to_vec(),
            ..plan(&[])
        };
        let gate = Gate::start(lab, Identity::Own, &plan);
        let metrics = asked(&admin(&gate), "/metrics").expect("an answer");
        assert!(metrics.contains("outgate_open_files_limit 3000"), "{metrics}");
        gate.end();
    }
}

/// Makes sockets, the admin's first, and becomes what is named behind them.
const ACTIVATE: &str = r"
import os, socket, sys
path, admin, words = sys.argv[1], sys.argv[2], sys.argv[3:]
def made(path, kind):
    s = socket.socket(socket.AF_UNIX, kind)
    s.bind(path)
    os.chmod(path, 0o600)
    s.listen(16)
    return s
say, runs = made(admin, socket.SOCK_STREAM), made(path, socket.SOCK_SEQPACKET)
a, b = os.dup(say.fileno()), os.dup(runs.fileno())
say.close(); runs.close()
high = [os.dup2(a, 20), os.dup2(b, 21)]
os.dup2(20, 3); os.dup2(21, 4)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS='2', LISTEN_FDNAMES='admin:runs')
os.execv(words[0], words)
";
