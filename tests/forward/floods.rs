//! Too much of everything, inside a sandbox whose TLS is opened: names,
//! ClientHellos that lead nowhere, frames that cost the sender nothing. What the
//! gateway holds of it stays bounded, and others are served meanwhile.
//!
//! The client is this program again, as in `client.rs`, and goes on when it is
//! told to, so that the gateway is looked at while it has its hands full.

use std::fs;
use std::io::{BufRead, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use outgate_harness::{Identity, Lab, Running, eventually, is_quick, lab_tests};

use crate::case::HelloPace;
use crate::client_hellos;
use crate::frames;
use crate::origin::{Answer, Origin, Part};
use crate::wire::{self, Wire};

/// The variable that says what to do too much of.
const FLOOD: &str = "OUTGATE_FORWARD_FLOOD";

/// The name of the test that is the client.
const TEST: &str = "floods::flooder";

/// Registered domains of the allowed names: below each of them only so much may be
/// named, and a flood that one of them stops would be none.
const DOMAINS: usize = 64;

/// Connections at once where they follow each other.
const THREADS: usize = 8;

/// Longest time of one flood.
const FLOOD_TIME: Duration = Duration::from_secs(200);

/// ClientHellos that stand still at once: nearly all that one sandbox may have.
const STANDING: usize = 1000;

/// How long somebody else may wait for an answer meanwhile.
const ANSWER_TIME: Duration = Duration::from_secs(5);

/// The time after which the gateway gives up a ClientHello, and some.
const PATIENCE: Duration = Duration::from_secs(25);

/// What the gateway may grow by, in KiB, for a ClientHello that stands still.
const STANDING_KIB_MAX: usize = 24;

/// Kept connections at once that wait for their next request.
const WAITING: usize = 600;

/// The time after which such a connection holds no buffers, and memory that is
/// free went back to the system.
const TIDY: Duration = Duration::from_secs(4);

/// What the gateway may hold, in KiB, for an opened connection that waits: TLS
/// on one side and no engine, whose buffers alone would take 16 more.
const WAITING_KIB_MAX: usize = 28;

/// What may be left of it, in KiB, when the connection is gone.
const LEFT_KIB_MAX: usize = 10;

/// What the second half of a flood may add to what the first half took, in KiB.
const MORE_KIB_MAX: usize = 3 * 1024;

/// What the gateway may grow by, in KiB, for all connections that flood it.
const FLOODED_KIB_MAX: usize = 16 * 1024;

const GOOD: &str = "GET /public/a HTTP/1.1\r\nHost: c0.case.example:8080\r\n\r\n";

fn names() -> usize {
    if is_quick() { 2000 } else { 10_000 }
}

/// Connects and begins TLS; `server` is what the ClientHello names.
fn connect(host: &str, port: u16, server: &str, versions: &[&str]) -> Wire {
    #[expect(clippy::disallowed_methods, reason = "this is the client")]
    let stream = TcpStream::connect((host, port)).unwrap_or_else(|error| panic!("{host}: {error}"));
    stream.set_nodelay(true).expect("TCP_NODELAY");
    stream
        .set_read_timeout(Some(Duration::from_secs(20)))
        .expect("a timeout");
    let versions: Vec<String> = versions.iter().map(|name| (*name).to_owned()).collect();
    wire::client(stream, server, &versions, HelloPace::AtOnce).expect("a name")
}

/// What is answered to a request on a connection of its own; its end counts as
/// an answer.
fn answer(host: &str, port: u16, request: &str) -> String {
    let mut wire = connect(host, port, host, &["http/1.1"]);
    wire.write_all(request.as_bytes()).ok();
    let mut heard = [0; 4096];
    let count = wire.read(&mut heard).unwrap_or(0);
    String::from_utf8_lossy(&heard[..count]).into_owned()
}

/// Somebody else is served, soon.
fn somebody_else_is_served() {
    let asked = Instant::now();
    let heard = answer("c0.case.example", 8080, GOOD);
    assert!(heard.starts_with("HTTP/1.1 200"), "{heard}");
    assert!(asked.elapsed() < ANSWER_TIME, "after {:?}", asked.elapsed());
}

/// Says where it is and waits to be told to go on.
fn phase(number: u32) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "phase {number}.").expect("somebody listens");
    drop(out);
    let mut line = String::new();
    std::io::stdin()
        .lock()
        .read_line(&mut line)
        .expect("a word");
}

/// Does `what` for every number below `count`, several at once.
fn each(from: usize, count: usize, what: impl Fn(usize) + Sync) {
    let next = AtomicUsize::new(from);
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= from + count {
                        return;
                    }
                    what(number);
                }
            });
        }
    });
}

/// Each name is one that nobody met before: denied ones and allowed ones that
/// have no address, told so inside TLS.
fn flood_of_names() {
    let half = names() / 2;
    for turn in 0..2 {
        each(turn * half, half, |number| {
            let host = if number % 2 == 0 {
                format!("n{number}.denied.example")
            } else {
                format!("n{number}.flood{}.example", number / 2 % DOMAINS)
            };
            let heard = answer(
                &host,
                443,
                &format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n"),
            );
            assert!(
                heard.starts_with("HTTP/1.1 403") || heard.starts_with("HTTP/1.1 502"),
                "{host}: {heard}"
            );
        });
        phase(u32::try_from(turn).expect("a turn") + 1);
    }
    somebody_else_is_served();
}

/// Every ClientHello on connections to one host names another.
fn flood_of_server_names() {
    let half = names() / 2;
    for turn in 0..2 {
        each(turn * half, half, |number| {
            let server = format!("n{number}.other.example");
            let mut wire = connect("c0.case.example", 8080, &server, &[]);
            let error = wire
                .write_all(b"GET / HTTP/1.1\r\n\r\n")
                .expect_err("an alert");
            assert!(wire::why(&error).contains("alert"), "{error}");
        });
        phase(u32::try_from(turn).expect("a turn") + 1);
    }
    somebody_else_is_served();
}

/// ClientHellos that stop half-way, and whole ones behind which nothing comes.
fn flood_of_half_client_hellos() {
    let whole = client_hellos::hello(Some("c0.case.example"));
    let mut all = Vec::new();
    phase(1);
    for number in 0..STANDING {
        #[expect(clippy::disallowed_methods, reason = "this is the client")]
        let mut stream = TcpStream::connect(("c0.case.example", 8080)).expect("a connection");
        if number % 2 == 0 {
            stream
                .write_all(&whole[..number % 64])
                .expect("it is taken");
            all.push(Wire::Plain(stream));
        } else {
            // What the server says is never answered.
            let mut wire =
                wire::client(stream, "c0.case.example", &[], HelloPace::AtOnce).expect("a name");
            wire.greet();
            all.push(wire);
        }
    }
    somebody_else_is_served();
    phase(2);
    let end = Instant::now() + PATIENCE;
    for wire in &mut all {
        let tcp = wire.tcp();
        let left = end.saturating_duration_since(Instant::now());
        tcp.set_read_timeout(Some(left.max(Duration::from_millis(1))))
            .expect("a timeout");
        let mut rest = Vec::new();
        // Its own end or a reset: no longer held, whatever it said before.
        let mut tcp = wire.tcp();
        if let Err(error) = tcp.read_to_end(&mut rest) {
            assert!(
                !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut),
                "it is held for ever"
            );
        }
    }
    somebody_else_is_served();
    phase(3);
}

/// The head of a request, as fields that are not indexed.
fn block() -> Vec<u8> {
    let fields = [
        (":method", "GET"),
        (":scheme", "https"),
        (":authority", "c1.case.example:8080"),
        (":path", "/public/a"),
    ];
    let fields = fields
        .iter()
        .map(|(name, value)| (*name, value.as_bytes().to_vec()));
    frames::request(1, fields)[9..].to_vec()
}

/// What costs its sender nothing: its name, what it begins with, and what is
/// then said over and over, with the number of the turn.
type Costless = (&'static str, fn() -> Vec<u8>, fn(u32) -> Vec<u8>);

const COSTLESS: &[Costless] = &[
    ("streams that are reset at once", Vec::new, |turn| {
        let stream = 2 * turn + 1;
        [
            frames::frame(1, 5, stream, &block()),
            frames::frame(3, 0, stream, &[0, 0, 0, 8]),
        ]
        .concat()
    }),
    (
        "a head without an end",
        || frames::frame(1, 1, 1, &block()),
        |_| {
            let field = [&[0x10, 1, b'x', 100][..], &[b'y'; 100]].concat();
            frames::frame(9, 0, 1, &field)
        },
    ),
    (
        "a head of empty pieces",
        || frames::frame(1, 1, 1, &block()),
        |_| frames::frame(9, 0, 1, &[]),
    ),
    ("settings", Vec::new, |_| {
        frames::frame(4, 0, 0, &[0, 1, 0, 0, 0x10, 0])
    }),
    ("pings", Vec::new, |_| frames::frame(6, 0, 0, &[7; 8])),
    (
        "content of nothing",
        || frames::frame(1, 4, 1, &block()),
        |_| frames::frame(0, 0, 1, &[]),
    ),
    (
        "content of nothing but padding",
        || frames::frame(1, 4, 1, &block()),
        |_| frames::frame(0, 8, 1, &[3, 0, 0, 0]),
    ),
    ("priorities", Vec::new, |_| {
        frames::frame(2, 0, 1, &[0, 0, 0, 0, 9])
    }),
    ("room that nobody needs", Vec::new, |_| {
        frames::frame(8, 0, 0, &[0, 0, 0, 1])
    }),
    ("frames of no kind", Vec::new, |_| {
        frames::frame(0xbb, 0, 0, &[7; 100])
    }),
    ("streams that are never answered", Vec::new, |turn| {
        frames::frame(1, 4, 2 * turn + 1, &block())
    }),
    ("goodbyes", Vec::new, |_| frames::frame(7, 0, 0, &[0; 8])),
];

/// Each of them, until it is stopped, is no longer read, or had its time.
fn flood_of_frames() {
    const EACH: Duration = Duration::from_secs(3);
    phase(1);
    let mut open = Vec::new();
    for (name, begin, again) in COSTLESS {
        let mut wire = connect("c1.case.example", 8080, "c1.case.example", &["h2"]);
        wire.write_all(&[frames::beginning(), begin()].concat())
            .expect("it begins");
        let limit = Some(Duration::from_millis(500));
        wire.tcp().set_write_timeout(limit).expect("a limit");
        let (started, mut sent, mut turn) = (Instant::now(), 0, 0);
        while started.elapsed() < EACH {
            let many: Vec<u8> = (turn..turn + 200).flat_map(again).collect();
            turn += 200;
            if wire.write_all(&many).is_err() {
                break;
            }
            sent += many.len();
        }
        let took = started.elapsed();
        eprintln!("{name}: {sent} bytes in {took:?}");
        assert!(took < EACH, "{name} goes on and on");
        somebody_else_is_served();
        open.push(wire);
    }
    phase(2);
    drop(open);
    somebody_else_is_served();
    phase(3);
}

/// Connections that are answered once and kept, then closed all together.
fn flood_of_waiting() {
    somebody_else_is_served();
    phase(1);
    let mut all = Vec::new();
    for _ in 0..WAITING {
        let mut wire = connect("c0.case.example", 8080, "c0.case.example", &["http/1.1"]);
        wire.write_all(GOOD.as_bytes()).expect("it is taken");
        let mut heard = [0; 4096];
        let count = wire.read(&mut heard).expect("an answer");
        assert!(heard[..count].starts_with(b"HTTP/1.1 200"));
        all.push(wire);
    }
    thread::park_timeout(TIDY);
    phase(2);
    // Every one of them is served on.
    for wire in &mut all {
        wire.write_all(GOOD.as_bytes()).expect("it is taken");
        let mut heard = [0; 4096];
        let count = wire.read(&mut heard).expect("an answer");
        assert!(heard[..count].starts_with(b"HTTP/1.1 200"));
    }
    drop(all);
    thread::park_timeout(TIDY);
    phase(3);
}

#[test]
#[ignore = "the client inside the sandbox: the other tests run it there"]
fn flooder() {
    match std::env::var(FLOOD).expect("what to do").as_str() {
        "names" => flood_of_names(),
        "server names" => flood_of_server_names(),
        "half ClientHellos" => flood_of_half_client_hellos(),
        "frames" => flood_of_frames(),
        "waiting" => flood_of_waiting(),
        other => panic!("no flood: {other}"),
    }
}

/// Kibibytes that a process holds in memory of its own.
fn held_kib(pid: i32) -> usize {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).expect("the gateway lives");
    let line = text.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    let count = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    count.expect("what it holds")
}

/// Starts the flood; what the gateway holds at each of its phases.
fn flood(lab: &Lab, what: &str, phases: u32) -> Vec<usize> {
    let origin = Origin::start(&[8080]);
    let part = |answer: Answer, versions| Part { answer, versions };
    origin.plays(
        "127.7.1.1".parse().expect("an address"),
        part(Answer::Ok, &["http/1.1"]),
    );
    let settings = Answer::Early(frames::frame(4, 0, 0, &[]));
    origin.plays(
        "127.7.1.2".parse().expect("an address"),
        part(settings, &["h2"]),
    );
    let authority = lab.directory.join("origins.pem");
    fs::write(&authority, origin.authority()).expect("a certificate");
    let document = lab.directory.join("flood.toml");
    let allowed: Vec<String> = (0..DOMAINS)
        .map(|number| format!("  \"GET https://*.flood{number}.example/public/**\",\n"))
        .collect();
    let policy = r#"
allow = [
  "* https://*.case.example:8080/public/**",
ALLOWED]
[limits]
open_files = 4096
[[pin]]
host = "c0.case.example:8080"
address = "127.7.1.1:8080"
[[pin]]
host = "c1.case.example:8080"
address = "127.7.1.2:8080"
"#
    .replace("ALLOWED", &allowed.concat());
    fs::write(&document, policy).expect("the policy");
    let program = std::env::current_exe().expect("this program");
    let command: Vec<String> = [&*program.to_string_lossy(), "--exact", TEST]
        .iter()
        .chain(&["--nocapture", "--include-ignored", "--test-threads=1"])
        .map(|word| (*word).to_owned())
        .collect();
    let mut run: Running = lab
        .sandbox(Identity::Own)
        .option("-p", &document.to_string_lossy())
        .option("--upstream-ca", &authority.to_string_lossy())
        .flag("--no-summary")
        .environment(FLOOD, what)
        .with_input()
        .limit(FLOOD_TIME)
        .start(&command);
    let mut held = Vec::new();
    for number in 1..=phases {
        let needle = format!("phase {number}.");
        let there = eventually(FLOOD_TIME, || {
            run.output().contains(&needle) || run.output().contains("FAILED")
        });
        if !there || run.output().contains("FAILED") {
            break;
        }
        // A run that never connected has no gateway yet.
        held.push(run.child("outgate-gateway").map_or(0, held_kib));
        run.say("on\n");
    }
    let outcome = run.finish();
    eprintln!("{what}: {held:?} KiB\n{}", outcome.stderr);
    assert_eq!(outcome.code, Some(0), "{outcome}");
    held
}

lab_tests! {
    fn ten_thousand_names_cost_bounded_memory(lab) {
        let held = flood(lab, "names", 2);
        assert!(held[1] < held[0] + MORE_KIB_MAX, "{held:?} KiB");
    }

    fn ten_thousand_server_names_cost_bounded_memory(lab) {
        let held = flood(lab, "server names", 2);
        assert!(held[1] < held[0] + MORE_KIB_MAX, "{held:?} KiB");
    }

    fn a_thousand_half_client_hellos_cost_bounded_memory_and_time(lab) {
        let held = flood(lab, "half ClientHellos", 3);
        let grown = held[1].saturating_sub(held[0]);
        assert!(grown < STANDING * STANDING_KIB_MAX, "{held:?} KiB");
    }

    fn connections_that_wait_hold_no_buffers_and_leave_no_memory_behind(lab) {
        let held = flood(lab, "waiting", 3);
        let grown = held[1].saturating_sub(held[0]);
        assert!(grown < WAITING * WAITING_KIB_MAX, "{held:?} KiB");
        let left = held[2].saturating_sub(held[0]);
        assert!(left < WAITING * LEFT_KIB_MAX, "{held:?} KiB");
    }

    fn frames_that_cost_nothing_are_bounded(lab) {
        let held = flood(lab, "frames", 3);
        let grown = held[1].saturating_sub(held[0]);
        assert!(grown < FLOODED_KIB_MAX, "{held:?} KiB");
    }
}
