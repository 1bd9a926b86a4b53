//! The gateway taken over: system calls are made from within the real process, as
//! code of an intruder's would make them, while it serves a run.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

use outgate_harness::origin::Origin;
use outgate_harness::run::{Outcome, Running};
use outgate_harness::{Identity, Lab, lab_tests};

/// An abstract name outside, which nobody may connect to.
const OUTSIDE: &str = "outgate-test-outside";

/// Longest time for all calls of an intruder.
const CALLS_TIME_MAX: Duration = Duration::from_mins(1);

/// Fewer attempts than this were not all.
const CALLS_MIN: i64 = 15_000;

lab_tests! {
    fn an_intruder_in_the_gateway_makes_no_call_that_is_not_listed(lab) {
        let outside = SocketAddr::from_abstract_name(OUTSIDE).expect("a name");
        let _outside = UnixListener::bind_addr(&outside).expect("a listener");
        // Without confinement the same calls do what they are for.
        let mut idle = Running::start(Command::new("sleep").arg("infinity").process_group(0), CALLS_TIME_MAX);
        let bare = intrude(lab, idle.pid(), "BARE");
        for call in ["memfd_create", "pidfd_open", "listen-unbound", "mmap-7", "mprotect-4", "socket-16-3-0",
            "read-passwd", "list-root", "connect-abstract", "kill"] {
            assert!(bare.stdout.contains(&format!("open {call} 0\n")), "{call}: {bare}");
        }
        assert!(bare.stdout.matches("open ").count() > 10_000, "{bare}");
        idle.end_input();
        idle.signal(nix::sys::signal::Signal::SIGKILL);

        let origin = Origin::start(0);
        let at = format!("127.0.0.1:{}", origin.port());
        let fetch = format!("{} fetch 127.0.0.1 {} 'GET /ok HTTP/1.1\r\nHost: {at}\r\nConnection: close\r\n\r\n'", lab.tool("probe"), origin.port());
        for identity in Identity::all() {
            let script = format!("{fetch}; echo first; read line; {fetch}; echo second");
            let sandbox = lab.sandbox(identity).allow(&format!("GET http://{at}/ok")).with_input();
            let mut run = sandbox.start(&crate::shell(&script));
            run.wait_for("first");
            let outcome = intrude(lab, run.gateway(), "ALL");
            assert_eq!(outcome.code, Some(0), "{identity:?} {outcome}");
            assert!(!outcome.stdout.contains("open "), "{identity:?} {outcome}");
            assert!(outcome.number("tried ") > CALLS_MIN, "{identity:?} {outcome}");
            // It was the gateway, and still is.
            run.say("on\n");
            run.wait_for("second");
            let outcome = run.finish();
            assert_eq!(outcome.stdout.matches("from-here").count(), 2, "{identity:?} {outcome}");
        }
    }
}

/// Makes the calls of an intruder in the process `pid`.
fn intrude(lab: &Lab, pid: i32, which: &str) -> Outcome {
    let mut intruder = Command::new(lab.tool("intruder"));
    intruder.args([&pid.to_string(), which, OUTSIDE]);
    Running::start(&mut intruder, CALLS_TIME_MAX).finish()
}
