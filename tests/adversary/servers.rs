//! Being reached from outside, and taking ports that belong to others.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use outgate_harness::attack::check;
use outgate_harness::origin::Origin;
use outgate_harness::{Identity, Running, lab_tests, race_time};

lab_tests! {
    fn row_26_nothing_listens_beyond_loopback(lab) {
        let outside = "93.184.216.34";
        let places = [
            "unbound", "unbound6", "0.0.0.0:0", "[::]:0", "[V6ONLY::]:0", "[::ffff:0.0.0.0]:0", "10.9.8.7:0",
            "93.184.216.34:0", "0.0.0.0:4321", "127.0.0.1:4322", "[::]:4323", "[V6ONLY::]:4324",
            "[::ffff:0.0.0.0]:4325", "93.184.216.34:4326", "[::1]:4327",
        ];
        let mut probe = vec!["listen-all"];
        probe.extend(places);
        let before = listeners();
        let bare = lab.start_bare(Identity::Own, &lab.probe(&probe));
        bare.wait_for("ready");
        for place in ["unbound", "unbound6", "0.0.0.0:0", "[::]:0", "93.184.216.34:4326"] {
            assert!(is_met(&bare, place, outside), "bare {place} is met: {}", bare.output());
        }
        assert!(beyond(&before).len() > 8, "bare it listens beyond loopback");
        drop(bare.finish());
        for identity in Identity::all() {
            let before = listeners();
            let run = lab.sandbox(identity).with_input().start_probe(&probe);
            run.wait_for("ready");
            assert_eq!(beyond(&before), [""; 0], "{identity:?} {}", run.output());
            for place in places {
                assert!(!is_met(&run, place, outside), "{identity:?} {place} {}", run.output());
            }
            let outcome = run.finish();
            for place in places {
                // Where a fixed port was refused, the socket has no address yet.
                let refused = ["10.9.8.7:0", "93.184.216.34:0"].contains(&place);
                let listened = outcome.errno(&format!("listen-{place}")) == "0";
                assert_eq!(listened, !refused, "{identity:?} {place} {outcome}");
            }
            assert_eq!(outcome.errno("bind-93.184.216.34:4326"), "EACCES", "{identity:?} {outcome}");
            for place in ["93.184.216.34:0", "93.184.216.34:4326"] {
                let (address, port) = place.rsplit_once(':').expect("a port");
                let port = if port == "0" { "" } else { port };
                let told = format!("--listen '{address}:{port}");
                assert!(outcome.stderr.contains(&told), "{identity:?} {place} {outcome}");
            }
            assert!(!outcome.stderr.contains("--listen '0.0.0.0"), "{identity:?} in silence: {outcome}");
            assert!(!outcome.stderr.contains("--listen '[::"), "{identity:?} in silence: {outcome}");
        }
    }

    fn row_26_an_address_or_a_socket_that_changes_is_bound_beyond_loopback_never(lab) {
        let time = race_time().as_millis().to_string();
        for (way, place) in [("address", "93.184.216.34:4701"), ("descriptor", "0.0.0.0:4702"), ("descriptor", "93.184.216.34:4703")] {
            let bare = lab.bare(Identity::Own, &["bind-race", "1000", way, place]);
            assert!(bare.number("beyond=") > 0 && bare.number("everywhere=") > 0, "bare it does: {bare}");
            for identity in Identity::all() {
                let outcome = lab.sandbox(identity).probe(&["bind-race", &time, way, place]);
                assert_eq!(outcome.number("beyond="), 0, "{identity:?} {way} {outcome}");
                assert_eq!(outcome.number("everywhere="), 0, "{identity:?} {way} {outcome}");
                assert!(outcome.number("bound=") > 0, "some are bound to loopback: {outcome}");
            }
        }
    }

    fn a_port_that_takes_a_privilege_takes_one(lab) {
        for identity in Identity::all() {
            let sandbox = lab.sandbox(identity).with_input();
            let outcome = sandbox.start_probe(&["listen-all", "127.0.0.1:1023", "0.0.0.0:81", "127.0.0.1:1024"]).finish();
            assert_eq!(outcome.errno("bind-127.0.0.1:1023"), "EACCES", "{identity:?} {outcome}");
            assert_eq!(outcome.errno("bind-0.0.0.0:81"), "EACCES", "{identity:?} {outcome}");
            assert_eq!(outcome.errno("bind-127.0.0.1:1024"), "0", "{identity:?} {outcome}");
        }
    }

    fn row_26_an_own_server_on_loopback_works(lab) {
        for identity in Identity::all() {
            let outcome = lab.sandbox(identity).probe(&["own-server"]);
            let names = ["bind4", "listen4", "connect4", "bind6", "listen6", "connect6"];
            check(&outcome, &names.map(|name| (name, &["0"][..])), &format!("{identity:?}"));
            assert!(outcome.stdout.contains("own 0 got=15") && outcome.stdout.contains("own 1 got=15"));
        }
    }

    fn row_26_a_granted_port_is_served(lab) {
        for identity in Identity::all() {
            let sandbox = lab.sandbox(identity).option("--listen", "0.0.0.0:4400");
            let run = sandbox.start_probe(&["listen", "0.0.0.0:4400", "0.0.0.0:4401"]);
            assert!(is_served(&run, "0.0.0.0:4400", "93.184.216.34"), "{} {}", run.output(), run.errors());
            run.wait_for("port 0.0.0.0:4401 4401");
            assert!(!is_served(&run, "0.0.0.0:4401", "93.184.216.34"), "{} {}", run.output(), run.errors());
            drop(run.finish());
        }
    }

    fn row_27_private_ports_cannot_be_shared(lab) {
        let origin = Origin::start(0);
        let to = format!("127.0.0.1:{}", origin.port());
        for identity in Identity::all() {
            let sandbox = lab.sandbox(identity).allow(&format!("GET http://{to}/ok")).with_input();
            let run = sandbox.start_probe(&["squat", &to]);
            run.wait_for("ready");
            // An outsider of the same user tries as well.
            let outsider = lab.start_bare(identity, &lab.probe(&["squat", &to]));
            outsider.wait_for("ready");
            let (inside, outside) = (run.finish(), outsider.finish());
            assert!(inside.number("squat seen=") > 0, "{inside}");
            // `squat-0` is the exact address that somebody listens on; inside, every
            // address is one of loopback, which is another.
            for report in inside.reports().iter().filter(|report| report.name.starts_with("squat-0")) {
                assert_ne!(report.errno, "0", "{identity:?} inside: {report:?}");
            }
            for report in outside.reports().iter().filter(|report| report.name.starts_with("squat-0")) {
                assert_ne!(report.errno, "0", "{identity:?} outside: {report:?}");
            }
        }
    }

    fn row_28_strangers_at_the_private_listener_get_nothing(lab) {
        let origin = Origin::start(0);
        let to = format!("127.0.0.1:{}", origin.port());
        for identity in Identity::all() {
            let stop = Arc::new(AtomicBool::new(false));
            let stranger = stranger(Arc::clone(&stop), origin.port());
            let mut probe = vec!["fetch".to_owned(), "127.0.0.1".to_owned(), origin.port().to_string()];
            let request = format!("GET /ok HTTP/1.1\r\nHost: {to}\r\n\r\n");
            probe.extend(std::iter::repeat_n(request, 50));
            let script = format!("for i in 1 2 3 4 5 6 7 8 9 10; do {} \"$@\"; done", lab.tool("probe"));
            let mut command = vec!["sh".to_owned(), "-c".to_owned(), script, "sh".to_owned()];
            command.extend(probe);
            let outcome = lab.sandbox(identity).allow(&format!("GET http://{to}/ok")).run(&command);
            stop.store(true, Ordering::SeqCst);
            let met = stranger.join().expect("the stranger");
            let arrivals = origin.arrivals();
            let strange = arrivals.iter().filter(|arrival| arrival.bytes.contains("stranger")).count();
            assert_eq!(strange, 0, "{identity:?}: a stranger's request was forwarded");
            assert!(arrivals.iter().any(|arrival| arrival.line().starts_with("GET /ok")), "{outcome}");
            assert_eq!(met.answered, 0, "{identity:?}: a stranger was answered");
            assert!(met.tried > 0, "the stranger found a listener to try");
        }
    }
}

/// Connects to the port the probe says for `place`, at `host`, and reads.
#[expect(
    clippy::disallowed_methods,
    reason = "the outsider who must not get in"
)]
fn is_served(run: &Running, place: &str, host: &str) -> bool {
    let mut port = 0_u16;
    outgate_harness::eventually(Duration::from_secs(5), || {
        let output = run.output();
        let line = output
            .split_once(&format!("port {place} "))
            .map(|(_, rest)| rest.to_owned());
        port = line
            .and_then(|rest| {
                rest.split_whitespace()
                    .next()
                    .and_then(|port| port.parse().ok())
            })
            .unwrap_or(0);
        port != 0
    });
    let mut text = String::new();
    TcpStream::connect((host, port))
        .is_ok_and(|mut stream| stream.read_to_string(&mut text).is_ok())
        && text.starts_with("LEAK")
}

/// Whether somebody accepts at `host` on the port that the probe says for `place`.
#[expect(
    clippy::disallowed_methods,
    reason = "the outsider who must not get in"
)]
fn is_met(run: &Running, place: &str, host: &str) -> bool {
    let output = run.output();
    let said = output.split_once(&format!("port {place} "));
    let port = said.and_then(|(_, rest)| rest.split_whitespace().next()?.parse().ok());
    let port: u16 = port.expect("a port");
    port != 0 && TcpStream::connect((host, port)).is_ok()
}

/// Every place on which somebody listens, as the kernel's tables write it.
fn listeners() -> BTreeSet<String> {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"];
    let text = tables.map(|table| std::fs::read_to_string(table).unwrap_or_default());
    let lines = text.iter().flat_map(|text| text.lines());
    let words = lines.map(|line| line.split_whitespace().collect::<Vec<_>>());
    words
        .filter(|words| words.get(3) == Some(&"0A"))
        .filter_map(|words| words.get(1).map(|&place| place.to_owned()))
        .collect()
}

/// Those of the listeners that were not there before and are not on loopback.
fn beyond(before: &BTreeSet<String>) -> Vec<String> {
    let near = |place: &String| {
        let address = place.split(':').next().unwrap_or_default();
        let v4 = address
            .strip_prefix("0000000000000000FFFF0000")
            .unwrap_or(address);
        (v4.len() == 8 && v4.ends_with("7F")) || address == "00000000000000000000000001000000"
    };
    let new = listeners()
        .into_iter()
        .filter(|place| !before.contains(place));
    new.filter(|place| !near(place)).collect()
}

/// What a stranger met.
struct Met {
    tried: usize,
    answered: usize,
}

/// Ports that somebody listens on at 127/8 but 127.0.0.1, from the table.
fn private_listeners(except: u16) -> Vec<(std::net::Ipv4Addr, u16)> {
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap_or_default();
    table
        .lines()
        .filter(|line| line.split_whitespace().nth(3) == Some("0A"))
        .filter_map(|line| line.split_whitespace().nth(1)?.split_once(':'))
        .filter_map(|(address, port)| {
            let address = u32::from_str_radix(address, 16).ok()?.swap_bytes();
            Some((address.into(), u16::from_str_radix(port, 16).ok()?))
        })
        .filter(|&(address, port): &(std::net::Ipv4Addr, u16)| {
            address.is_loopback() && address != std::net::Ipv4Addr::LOCALHOST && port != except
        })
        .collect()
}

/// Connects to every private listener for as long as the run lasts.
#[expect(clippy::disallowed_methods, reason = "the stranger")]
fn stranger(stop: Arc<AtomicBool>, except: u16) -> thread::JoinHandle<Met> {
    thread::spawn(move || {
        let mut met = Met {
            tried: 0,
            answered: 0,
        };
        while !stop.load(Ordering::SeqCst) {
            for place in private_listeners(except) {
                let Ok(mut stream) =
                    TcpStream::connect_timeout(&place.into(), Duration::from_secs(1))
                else {
                    continue;
                };
                met.tried += 1;
                stream
                    .set_read_timeout(Some(Duration::from_millis(20)))
                    .ok();
                stream
                    .write_all(b"GET /stranger HTTP/1.1\r\nHost: x\r\n\r\n")
                    .ok();
                let mut answer = [0; 64];
                if matches!(stream.read(&mut answer), Ok(1..)) {
                    met.answered += 1;
                }
            }
        }
        met
    })
}
