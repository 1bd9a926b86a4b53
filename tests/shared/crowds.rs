//! Many runs at once: each is served, counted and recorded as itself, and one
//! that floods takes only its share.

use std::time::Duration;

use outgate_harness::origin::Origin;
use outgate_harness::{Identity, Running, audit, eventually, lab_tests};

use crate::gate::{Gate, Plan, assert_chained, curl, python, shell};

/// Longest time of one small run beside a flood, on a busy machine.
const BESIDE_A_FLOOD: Duration = Duration::from_secs(10);

/// Requests of a flood that may be judged during one small run. It takes about
/// a dozen steps; behind everything that is ready it would wait for many hundred.
const IN_BETWEEN_MAX: usize = 300;

/// Runs at once.
const CROWD: usize = 50;

/// The accounts in turn.
fn in_turn(number: usize) -> Identity {
    let all = Identity::all();
    all[number % all.len()]
}

lab_tests! {
    fn fifty_runs_of_two_users_are_served_at_once(lab) {
        let origin = Origin::start(8080);
        let gate = Gate::start(lab, Identity::Own, &Plan::new(&[
            "-a", "http://a.example:8080", "--resolve", "a.example=192.0.2.1",
        ]));
        // All of them are there before the first one asks.
        let go = lab.directory.join("go");
        let wait = format!("while [ ! -e {} ]; do sleep 0.1; done", go.display());
        let runs: Vec<(String, Running)> = (0..CROWD)
            .map(|number| {
                let name = format!("run-{number}");
                let line = curl(&format!("http://a.example:8080/{name}"), 60).join(" ");
                let line = line.replace("%{http_code}\n", "%{http_code}");
                let run = gate.sandbox(lab, in_turn(number)).option("--name", &name);
                (name, run.limit(Duration::from_mins(3)).start(&shell(&format!("{wait}; {line}"))))
            })
            .collect();
        let all_there = eventually(Duration::from_secs(90), || {
            audit::of_kind(&gate.records(), "start").len() > CROWD
        });
        assert!(all_there, "{} started", audit::of_kind(&gate.records(), "start").len());
        std::fs::write(&go, "").expect("a file");
        for (name, run) in runs {
            let outcome = run.finish();
            assert_eq!(outcome.stdout, "200", "{name}: {outcome}");
            assert_eq!(outcome.code, Some(0), "{name}: {outcome}");
        }
        assert_eq!(origin.arrivals().len(), CROWD);
        let records = gate.records();
        assert_chained(&records);
        let mut sessions = std::collections::HashSet::new();
        for number in 0..CROWD {
            let name = format!("run-{number}");
            let own: Vec<_> = records.iter().filter(|record| audit::text(record, "sandbox") == name).collect();
            assert!(own.iter().all(|record| record["uid"] == in_turn(number).uid()), "{name}");
            let session = own[0]["session"].as_u64().expect("a number");
            assert!(own.iter().all(|record| record["session"] == session), "{name}");
            assert!(sessions.insert(session), "{name}");
            let asked: Vec<_> = own.iter().filter(|record| audit::text(record, "kind") == "request").collect();
            assert_eq!(asked.len(), 1, "{name}");
            assert_eq!(audit::text(asked[0], "path"), format!("/{name}"));
        }
    }

    fn a_flood_leaves_the_others_their_turn(lab) {
        let origin = Origin::start(8080);
        let gate = Gate::start(lab, Identity::Own, &Plan::new(&[
            "-a", "http://a.example:8080", "--resolve", "a.example=192.0.2.1",
        ]));
        let flooder = *Identity::all().last().expect("an account");
        let flood = gate
            .sandbox(lab, flooder)
            .option("--name", "flood")
            .flag("--no-summary")
            .start(&python(FLOOD));
        flood.wait_for("flooding");
        for number in 0..10 {
            let outcome = gate
                .sandbox(lab, Identity::Own)
                .run(&curl(&format!("http://a.example:8080/quiet-{number}"), 30));
            assert!(outcome.stdout.starts_with("200"), "{outcome}");
            assert!(outcome.elapsed < BESIDE_A_FLOOD, "{outcome}");
        }
        flood.signal(nix::sys::signal::Signal::SIGTERM);
        flood.finish();
        let records = gate.records();
        let flooded = records.iter().filter(|record| audit::text(record, "sandbox") == "flood").count();
        assert!(flooded > 100, "the flood was none: {flooded} records");
        let quiet = origin.arrivals().iter().filter(|arrival| arrival.line().contains("/quiet-")).count();
        assert_eq!(quiet, 10);
    }

    fn a_policy_that_is_hard_to_judge_costs_its_own_user(lab) {
        let origin = Origin::start(8080);
        let gate = Gate::start(lab, Identity::Own, &Plan::new(&[
            "-a", "http://a.example:8080", "--resolve", "a.example=192.0.2.1",
        ]));
        let other = *Identity::all().last().expect("an account");
        if other == Identity::Own {
            return outgate_harness::skip("one account");
        }
        let rules: Vec<String> = (0..200)
            .map(|number| format!("[[deny]]\nrule = \"* */**/a*a*a*a*a*b{number}/**/**/c\"\n"))
            .collect();
        let policy = lab.directory.join("hard.toml");
        std::fs::write(&policy, rules.concat()).expect("a policy");
        let hard = gate
            .sandbox(lab, other)
            .option("--name", "hard")
            .option("-p", &policy.to_string_lossy())
            .start(&python(HARD));
        hard.wait_for("asking");
        let judged = || {
            let records = gate.records();
            let hard = records.iter().filter(|record| audit::text(record, "sandbox") == "hard");
            hard.filter(|record| audit::text(record, "kind") == "request").count()
        };
        for number in 0..3 {
            let before = judged();
            let outcome = gate
                .sandbox(lab, Identity::Own)
                .run(&curl(&format!("http://a.example:8080/quiet-{number}"), 50));
            assert!(outcome.stdout.starts_with("200"), "{outcome}");
            // In turn: one of theirs, one of ours. Not all of theirs first.
            let between = judged() - before;
            assert!(between < IN_BETWEEN_MAX, "{between} were judged before: {outcome}");
        }
        hard.signal(nix::sys::signal::Signal::SIGTERM);
        hard.finish();
        let quiet = origin.arrivals().iter().filter(|arrival| arrival.line().contains("/quiet-")).count();
        assert_eq!(quiet, 3);
    }

    fn what_one_may_take_is_bounded_and_the_others_keep_theirs(lab) {
        let _origin = Origin::start(8080);
        let plan = Plan {
            // Room for 8 sandboxes, 4 of one user, and 8 connections of one.
            before: ["prlimit", "--nofile=1024:1024"].map(str::to_owned).to_vec(),
            ..Plan::new(&["-a", "http://a.example:8080", "--resolve", "a.example=192.0.2.1"])
        };
        let gate = Gate::start(lab, Identity::Own, &plan);
        let outcome = gate.sandbox(lab, Identity::Own).run(&python(MANY));
        let served = outcome.number("served ");
        assert!((1..=8).contains(&served), "{outcome}");
        let holders: Vec<Running> = (0..4)
            .map(|_| gate.sandbox(lab, Identity::Own).start(&shell("echo here; sleep 60")))
            .collect();
        for holder in &holders {
            holder.wait_for("here");
        }
        let truth = ["true".to_owned()];
        let outcome = gate.sandbox(lab, Identity::Own).run(&truth);
        assert_eq!(outcome.code, Some(125), "{outcome}");
        assert!(outcome.stderr.contains("4 sandboxes of this user"), "{outcome}");
        if Identity::all().len() > 1 {
            let outcome = gate.sandbox(lab, Identity::Nobody).run(&truth);
            assert_eq!(outcome.code, Some(0), "{outcome}");
        }
        for holder in holders {
            holder.signal(nix::sys::signal::Signal::SIGTERM);
            holder.finish();
        }
        let again = eventually(Duration::from_secs(10), || {
            gate.sandbox(lab, Identity::Own).run(&truth).code == Some(0)
        });
        assert!(again, "places are not given back");
    }

    fn sandboxes_do_not_share_names_or_addresses(lab) {
        let origin = Origin::start(8080);
        let gate = Gate::start(lab, Identity::Own, &Plan::new(&[
            "-a", "http://*.example:8080",
            "--resolve", "x.a.example=192.0.2.1",
            "--resolve", "x.b.example=192.0.2.2",
        ]));
        let resolver = gate
            .sandbox(lab, Identity::Own)
            .option("--name", "first")
            .start(&python("import socket,time\nprint('at', socket.gethostbyname('x.a.example'), 'end', flush=True)\ntime.sleep(50)"));
        let said = resolver.wait_for("end");
        let address = said.split_whitespace().nth(1).expect("an address").to_owned();
        assert!(address.starts_with("198.1"), "{said}");
        let other = *Identity::all().last().expect("an account");
        let target = format!("http://{address}:8080/");
        let mut line = curl(&target, 20);
        line.extend(["-H", "Host: x.a.example:8080"].map(str::to_owned));
        let outcome = gate.sandbox(lab, other).option("--name", "second").run(&line);
        assert_ne!(outcome.code, Some(0), "{outcome}");
        assert!(outcome.stderr.contains("stands for no name"), "{outcome}");
        assert_eq!(origin.connections(), 0);
        resolver.signal(nix::sys::signal::Signal::SIGTERM);
        resolver.finish();
    }
}

/// Connections, requests and names without pause, from several threads.
const FLOOD: &str = r"
import socket, threading, time
def connect():
    while True:
        try:
            s = socket.create_connection(('a.example', 8080), 5)
            s.sendall(b'GET /flood HTTP/1.1\r\nHost: a.example:8080\r\n\r\n' * 4)
        except OSError:
            pass
def deny():
    while True:
        try:
            s = socket.create_connection(('b.example', 8080), 5)
            s.sendall(b'GET /denied HTTP/1.1\r\nHost: b.example:8080\r\n\r\n')
            s.recv(100)
        except OSError:
            pass
def ask(n):
    i = 0
    while True:
        i += 1
        try:
            socket.gethostbyname('n%d-%d.names.example' % (n, i))
        except OSError:
            pass
for f, a in [(connect, ())] * 3 + [(deny, ())] * 2 + [(ask, (1,)), (ask, (2,))]:
    threading.Thread(target=f, args=a, daemon=True).start()
time.sleep(1)
print('flooding', flush=True)
time.sleep(100)
";

/// Long paths that nearly match everywhere, over many connections.
const HARD: &str = r"
import socket, threading, time
path = b'/' + b'/'.join([b'a' * 30] * 450)
def ask():
    while True:
        try:
            s = socket.create_connection(('a.example', 8080), 60)
            s.sendall((b'GET ' + path + b' HTTP/1.1\r\nHost: a.example:8080\r\n\r\n') * 3)
            s.recv(1)
        except OSError:
            pass
for _ in range(60):
    threading.Thread(target=ask, daemon=True).start()
time.sleep(3)
print('asking', flush=True)
time.sleep(150)
";

/// Twelve connections at once; how many were answered.
const MANY: &str = r"
import socket
all, served = [], 0
for i in range(12):
    try:
        s = socket.create_connection(('a.example', 8080), 10)
        s.settimeout(10)
        s.sendall(b'GET /%d HTTP/1.1\r\nHost: a.example:8080\r\n\r\n' % i)
        if s.recv(100).startswith(b'HTTP/1.1 200'):
            served += 1
        all.append(s)
    except OSError:
        pass
print('served', served)
";
