//! Versions of HTTP inside TLS: client and origin speak the same one or do not
//! speak. No stream becomes a request of HTTP/1, and no request a stream.

use std::hash::{BuildHasher, RandomState};

use outgate_harness::{is_quick, lab_tests};
use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop_oneof};
use proptest::sample::select;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use crate::case::{CASE, Carrier, Case, Ending, Fields, OPEN, Pace, Step, Versions, Want};
use crate::frames;
use crate::origin::Answer;
use crate::readers::READERS;
use crate::stage::{carry, run};
use crate::suite::Seen;

const GOOD: &str = "GET /public/a HTTP/1.1\r\nHost: <host>\r\n\r\n";

/// What a client offers and an origin knows, in their order.
const ALL: [Versions; 5] = [
    &["h2", "http/1.1"],
    &["http/1.1", "h2"],
    &["h2"],
    &["http/1.1"],
    &[],
];

/// What the two come to; for both of them nothing is HTTP/1.1.
fn agreed(client: Versions, origin: Versions) -> Option<&'static str> {
    let known = |all: Versions, name: &str| all.contains(&name);
    let old = |all: Versions| all.is_empty() || known(all, "http/1.1");
    match (known(client, "h2"), known(origin, "h2")) {
        // The origin chooses, as it would without a gateway.
        (true, true) if known(client, "http/1.1") => origin.first().copied(),
        (true, true) => Some("h2"),
        _ if old(client) && old(origin) => Some("http/1.1"),
        _ => None,
    }
}

fn fields(path: &str) -> Fields {
    [
        (":method", "GET"),
        (":scheme", "<scheme>"),
        (":authority", "<host>"),
        (":path", path),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .to_vec()
}

/// Asks in `version` for what is allowed, then for what is not.
fn asks(version: &str, client: Versions, origin: Versions) -> Case {
    let name = format!("{client:?} to {origin:?}");
    let case = Case::new(
        &name,
        format!("{GOOD}{}", GOOD.replace("public", "secret")),
        Want::replies(1, &[200, 403]),
    );
    let case = if version == "h2" {
        let steps = [Step::Streams(
            vec![fields("/public/a"), fields("/secret/a")],
            Pace::AtOnce,
        )];
        let settings = Answer::Early(frames::frame(4, 0, 0, &[]));
        case.steps(&steps)
            .ending(Ending::Open(300))
            .answer(settings)
    } else {
        case
    };
    case.versions(client, origin)
}

/// The kinds of frames that arrived behind the preface of HTTP/2, per
/// connection; `None` where something else arrived.
fn arrived(seen: &Seen) -> Option<Vec<Vec<usize>>> {
    let preface = &frames::beginning()[..24];
    let behind = |bytes: &Vec<u8>| {
        let rest = bytes.strip_prefix(preface)?;
        Some(
            frames::read(rest)
                .iter()
                .map(|frame| usize::from(frame.0))
                .collect(),
        )
    };
    let used = seen.arrivals.iter().filter(|bytes| !bytes.is_empty());
    used.map(behind).collect()
}

fn seed() -> String {
    std::env::var("OUTGATE_SEED")
        .unwrap_or_else(|_| format!("{:016x}", RandomState::new().hash_one(std::process::id())))
}

const VALUES: &[(&str, &[&str])] = &[
    (
        ":method",
        &[
            "GET",
            "POST",
            "CONNECT",
            "DELETE",
            "GET /secret HTTP/1.1\r\n",
            "",
        ],
    ),
    (":scheme", &["<scheme>", "<other>", "ftp", ""]),
    (
        ":authority",
        &["<host>", "other.example", "<host>\r\nx: y", "a@<host>", ""],
    ),
    (
        ":path",
        &[
            "/public/a",
            "/secret",
            "/public/a HTTP/1.1\r\nHost: x\r\n\r\nGET /secret",
            "*",
            "",
            "/public/a\0",
        ],
    ),
    ("host", &["<host>", "other.example"]),
    ("transfer-encoding", &["chunked", "gzip, chunked"]),
    ("content-length", &["0", "5", "x"]),
    ("connection", &["close", "host", "upgrade"]),
    ("upgrade", &["h2c", "websocket"]),
    ("x", &["y", "y\r\nhost: other.example", "y\0", "y\n", "\r"]),
    ("X", &["y"]),
    ("x\r\nhost", &["other.example"]),
    ("cookie", &["a=b"]),
    ("te", &["trailers", "gzip"]),
    (":protocol", &["websocket"]),
    (":status", &["200"]),
    ("http2-settings", &["AAMAAABkAAQAAP__"]),
];

/// The fields of a stream: mostly right, then something wrong.
fn stream() -> impl Strategy<Value = Fields> {
    let strange = select(VALUES).prop_flat_map(|(name, values)| {
        select(values).prop_map(move |value| (name.to_owned(), value.to_owned()))
    });
    let places = vec(
        (any::<proptest::sample::Index>(), strange, any::<bool>()),
        0..3,
    );
    (prop_oneof![Just("/public/a"), Just("/secret/a")], places).prop_map(|(path, places)| {
        let mut all = fields(path);
        for (place, field, instead) in places {
            let at = place.index(all.len());
            all.splice(at..at + usize::from(instead), [field]);
        }
        all
    })
}

fn random(seed: &str, count: usize) -> Vec<Case> {
    let mut bytes = [0; 32];
    for (into, from) in bytes.iter_mut().zip(seed.bytes().cycle()) {
        *into = from;
    }
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let strategy = (
        vec(stream(), 1..4),
        select(&ALL[..]),
        select(&[CASE, OPEN][..]),
    );
    (0..count)
        .map(|number| {
            let tree = strategy.new_tree(&mut runner).expect("streams");
            let (streams, origin, zone) = tree.current();
            let steps = [Step::Streams(streams, Pace::AtOnce)];
            Case::new(
                &format!("number {number}, origin {origin:?}"),
                "",
                Want::cut(),
            )
            .steps(&steps)
            .zone(zone)
            .ending(Ending::Open(300))
            .answer(Answer::Early(frames::frame(4, 0, 0, &[])))
            .versions(&["h2"], origin)
        })
        .collect()
}

/// Values of pseudo-fields that an engine may cut, trim, complete or take for
/// another, and why they are refused: empty where the engine itself does, nothing
/// where they are sent as they are.
const ROWS: &[(&str, &str, Option<&str>)] = &[
    (":path", "/public/a#", Some("malformed")),
    (":path", "/public/a#b", Some("malformed")),
    (":path", "/public/a?b=c#d", Some("malformed")),
    (":path", "/public/a#/../../secret", Some("malformed")),
    (":path", "#", Some("malformed")),
    (":path", "#/public/a", Some("malformed")),
    (":path", "?b", Some("malformed")),
    (":path", "", Some("")),
    (":path", "public/a", Some("")),
    (":path", " /public/a", Some("")),
    (":path", "/public/a ", Some("")),
    (":path", "/public/a\t", Some("")),
    (":path", "*", Some("malformed")),
    (":path", "https://<host>/public/a", Some("")),
    (":path", "/public/a%23b", None),
    (":path", "/public/a?", None),
    (":authority", "a@<host>", Some("")),
    (":authority", "a:b@<host>", Some("")),
    (":authority", "@<host>", Some("")),
    (":authority", " <host>", Some("")),
    (":authority", "<host> ", Some("")),
    (":authority", "<host>/", Some("")),
    (":authority", "<host>#", Some("")),
    (":authority", "<host>?", Some("")),
    (":authority", "<host>,<host>", Some("")),
    (":authority", "", Some("")),
    (":method", "get", Some("malformed")),
    (":method", " GET", Some("")),
    (":method", "GET ", Some("")),
    (":method", "", Some("")),
    (":scheme", "https ", Some("")),
    (":scheme", "", Some("")),
    (":scheme", "https://<host>/secret?", Some("")),
];

lab_tests! {
    fn client_and_origin_speak_the_same_version_or_nothing(lab) {
        carry(Carrier::Tls);
        let pairs = ALL.iter().flat_map(|client| ALL.iter().map(move |origin| (*client, *origin)));
        let pairs: Vec<_> = pairs.collect();
        let cases = pairs.iter().map(|(client, origin)| {
            // Where they come to nothing, the client speaks what it knows.
            let speaks = agreed(client, origin).or(client.first().copied());
            asks(speaks.unwrap_or("http/1.1"), client, origin)
        });
        for (seen, (client, origin)) in run(lab, cases.collect()).iter().zip(&pairs) {
            let place = format!("{client:?} to {origin:?}: {:?}", seen.faults());
            let heads = arrived(seen).map(|all| all.concat().iter().filter(|kind| **kind == 1).count());
            match agreed(client, origin) {
                Some("h2") => {
                    assert_eq!(seen.heard.version.as_deref(), Some("h2"), "{place}");
                    assert_eq!((heads, seen.allowed.len()), (Some(1), 1), "{place}");
                }
                Some(_) => {
                    assert_ne!(seen.heard.version.as_deref(), Some("h2"), "{place}");
                    assert_eq!(seen.faults(), None, "{place}");
                }
                None => {
                    let used = seen.arrivals.iter().any(|bytes| !bytes.is_empty());
                    assert!(!used, "{place}");
                }
            }
        }
    }

    fn what_a_stream_says_is_sent_as_it_is_said_or_not_at_all(lab) {
        carry(Carrier::Tls);
        let rows = ROWS.iter().map(|(name, value, want)| (*name, *value, want));
        let cases = rows.map(|(name, value, want)| {
            let mut all = fields("/public/a");
            let at = all.iter().position(|(one, _)| one == name).expect("a pseudo-field");
            all[at].1 = value.to_owned();
            // A stream beside it is served whatever becomes of this one.
            let steps = [Step::Streams(vec![all, fields("/public/b")], Pace::AtOnce)];
            let sent = usize::from(want.is_none());
            let want = Want::replies(sent + 1, &[]);
            Case::new(&format!("{name}: {value}"), "", want)
                .steps(&steps)
                .ending(Ending::Open(300))
                .answer(Answer::Early(frames::frame(4, 0, 0, &[])))
                .versions(&["h2"], &["h2"])
        });
        for (seen, (_, value, want)) in run(lab, cases.collect()).iter().zip(ROWS) {
            let place = format!("{}: {:?}", seen.case.name, seen.faults());
            let arrived = arrived(seen).unwrap_or_else(|| panic!("not HTTP/2: {place}"));
            let heads = arrived.concat().iter().filter(|kind| **kind == 1).count();
            let paths: Vec<&str> = seen.allowed.iter().map(|one| one.path.as_str()).collect();
            assert_eq!(heads, paths.len(), "{place}");
            match want {
                None => assert_eq!(heads, 2, "{value}: {place}"),
                // Some faults are those of the connection.
                Some("") => assert!(paths.iter().all(|path| *path == "/public/b"), "{paths:?}: {place}"),
                Some(reason) => {
                    assert_eq!(paths, ["/public/b"], "{place}");
                    assert!(seen.denied.iter().any(|one| one == reason), "{:?}: {place}", seen.denied);
                }
            }
        }
    }

    fn no_stream_becomes_a_request(lab) {
        carry(Carrier::Tls);
        let seed = seed();
        eprintln!("OUTGATE_SEED={seed}");
        let count = if is_quick() { 150 } else { 500 };
        let seen = run(lab, random(&seed, count));
        let mut passed = 0;
        for seen in &seen {
            let place = format!("OUTGATE_SEED={seed}: {:?}", seen.faults());
            let Some(arrived) = arrived(seen) else { panic!("not HTTP/2: {place}") };
            let heads = arrived.concat().iter().filter(|kind| **kind == 1).count();
            assert!(heads <= seen.allowed.len(), "{place}");
            passed += heads;
            for judged in &seen.allowed {
                assert!(judged.target == format!("https://{}", seen.host), "{place}");
                assert!(seen.case.zone == OPEN || judged.path.starts_with("/public/"), "{place}");
            }
            // A reader of HTTP/1 makes nothing of it but a fault.
            for (reader, read) in READERS {
                let taken = seen.arrivals.iter().flat_map(|bytes| read(bytes).requests);
                assert_eq!(taken.filter(|one| one.method != "PRI").count(), 0, "{reader}: {place}");
            }
        }
        let stopped = seen.iter().filter(|seen| seen.allowed.is_empty()).count();
        assert!(passed * 20 > count && stopped * 10 > count, "{passed} passed, {stopped} stopped of {count}");
    }
}
