//! Many at once: clients inside one sandbox, and sandboxes beside each other.
//! Every request arrives exactly once, nothing is mixed up, and afterwards
//! nothing is left.

use std::collections::BTreeSet;
use std::time::Duration;

use outgate_harness::leftovers::Before;
use outgate_harness::{Identity, Lab, Outcome, lab_tests};

use crate::http::assert_untouched;
use crate::servers::{MARK, Servers, is_there};
use crate::{bash, confined, words};

/// Longest time for a crowd, on two cores that do other things too.
const CROWD_SECONDS_MAX: u64 = 120;

/// Sandboxes beside each other.
const RUNS: usize = 100;

/// Requests of the clients inside one sandbox.
const REQUESTS: usize = 200;

/// The requests that must have arrived, in any order.
fn expected(count: usize) -> BTreeSet<String> {
    (1..=count)
        .map(|number| format!("site.example GET /item/{number}"))
        .collect()
}

/// Asserts that exactly those arrived, each once.
fn assert_all_arrived(servers: &mut Servers, count: usize, outcome: &str) {
    let seen = servers.seen();
    let set: BTreeSet<String> = seen.requests.iter().cloned().collect();
    assert_eq!(seen.requests.len(), count, "each once: {outcome}");
    assert_eq!(set, expected(count), "{outcome}");
    let asked: BTreeSet<&str> = seen.asked.iter().map(String::as_str).collect();
    assert_eq!(asked, BTreeSet::from(["site.example"]));
}

fn watched(lab: &Lab) -> Before {
    let folders = ["tmp", "run", "home"].map(|name| lab.folder(name, Identity::Own));
    Before::new(folders.to_vec())
}

lab_tests! {
    fn xargs_runs_many_curls_at_once(lab) {
        let Some(mut servers) = Servers::start(lab) else { return };
        if !is_there("xargs") || !is_there("curl") {
            return;
        }
        for identity in Identity::all() {
            let before = watched(lab);
            let script = |host: &str| format!("seq {REQUESTS} | xargs -P 32 -I N curl -sS -f http://{host}/item/N | sort | uniq -c");
            let rules = |servers: &Servers| servers.names(confined(lab, identity)).allow("GET http://site.example/item/*").limit(Duration::from_secs(CROWD_SECONDS_MAX));
            let outcome = rules(&servers).run(&bash(&script("site.example")));
            assert_eq!(outcome.stdout.trim(), format!("{REQUESTS} {MARK}"), "{identity:?} {outcome}");
            assert_all_arrived(&mut servers, REQUESTS, &outcome.to_string());
            let outcome = rules(&servers).run(&bash(&script("denied.example")));
            assert_eq!(outcome.stdout, "", "{identity:?} {outcome}");
            assert_untouched(&mut servers, "xargs");
            before.assert_all_gone();
        }
    }

    fn make_runs_many_jobs_at_once(lab) {
        let Some(mut servers) = Servers::start(lab) else { return };
        if !is_there("make") || !is_there("curl") {
            return;
        }
        for identity in Identity::all() {
            let folder = lab.folder("work", identity);
            let jobs: Vec<String> = (1..=60).map(|number| format!("item{number}")).collect();
            let rule = "all: $(JOBS)\nitem%:\n\t@curl -sS -f -o $@ http://site.example/item/$* && test -s $@ && rm $@\n";
            std::fs::write(folder.join("Makefile"), format!("JOBS = {}\n{rule}", jobs.join(" "))).expect("a makefile");
            let sandbox = servers.names(confined(lab, identity)).allow("GET http://site.example/item/*");
            let outcome = sandbox.limit(Duration::from_secs(CROWD_SECONDS_MAX)).run(&words(&["make", "-s", "-j", "16"]));
            assert_eq!(outcome.code, Some(0), "{identity:?} {outcome}");
            assert_all_arrived(&mut servers, 60, &outcome.to_string());
            // One job that may not fails the build as bare: with make's 2.
            let sandbox = servers.names(confined(lab, identity)).allow("GET http://site.example/item/*").deny("http://site.example/item/7");
            let outcome = sandbox.limit(Duration::from_secs(CROWD_SECONDS_MAX)).run(&words(&["make", "-s", "-k", "-j", "16"]));
            assert_eq!(outcome.code, Some(2), "{identity:?} {outcome}");
            let seen = servers.seen();
            assert_eq!(seen.requests.len(), 59, "{identity:?} {outcome}");
            assert!(!seen.requests.contains(&"site.example GET /item/7".to_owned()));
        }
    }

    fn a_hundred_runs_at_once_do_not_meet(lab) {
        let Some(mut servers) = Servers::start(lab) else { return };
        if !is_there("curl") {
            return;
        }
        let before = watched(lab);
        let all = Identity::all();
        // Each may fetch its own item only, and tries its neighbour's too.
        let running: Vec<_> = (1..=RUNS).map(|number| {
            let identity = all[number % all.len()];
            let rule = format!("GET http://site.example/item/{number}");
            let sandbox = servers.names(confined(lab, identity)).allow(&rule).limit(Duration::from_secs(CROWD_SECONDS_MAX));
            let neighbour = number + 1;
            sandbox.start(&bash(&format!("curl -sS http://site.example/item/{number}; curl -sS -o /dev/null -w '%{{http_code}}\\n' http://site.example/item/{neighbour}; exit {}", number % 100)))
        }).collect();
        let outcomes: Vec<Outcome> = running.into_iter().map(outgate_harness::Running::finish).collect();
        for (index, outcome) in outcomes.iter().enumerate() {
            let number = i32::try_from(index + 1).expect("a small number");
            assert_eq!(outcome.stdout, format!("{MARK}\n403\n"), "run {number}: {outcome}");
            assert_eq!(outcome.code, Some(number % 100), "run {number}: {outcome}");
            assert!(!outcome.held, "{outcome}");
        }
        assert_all_arrived(&mut servers, RUNS, "a hundred runs");
        before.assert_all_gone();
    }

    fn a_thousand_processes_and_connections_in_a_row_are_held(lab) {
        let Some(mut servers) = Servers::start(lab) else { return };
        let script = "for i in $(seq 1000); do /bin/true; done; python3 - <<'E'\nimport socket\nfor i in range(1000):\n    s = socket.create_connection(('site.example', 8080), 20)\n    s.close()\nprint('done')\nE";
        let sandbox = servers.names(confined(lab, Identity::Own)).allow("http://site.example:8080");
        let outcome = sandbox.limit(Duration::from_secs(CROWD_SECONDS_MAX)).run(&bash(script));
        assert_eq!(outcome.stdout, "done\n", "{outcome}");
        assert_eq!(servers.seen().requests, Vec::<String>::new());
    }
}
