//! The control connection against a launcher that is not one.

use std::os::fd::AsRawFd;

use outgate_handoff::{
    Ask, CallQuestion, Decision, FRAME_BYTES_MAX, FlowFrame, HelloFrame, PROTOCOL, SourceFrame,
    ToGateway, ToLauncher,
};
use outgate_policy::SourceKind;

use crate::harness::{bare, begin, hello, process, start};

fn source(index: u32, chunk: &[u8]) -> ToGateway {
    ToGateway::Source(SourceFrame {
        index,
        kind: SourceKind::Allow,
        place: "-a".to_owned(),
        chunk: chunk.to_vec(),
    })
}

fn ask() -> ToGateway {
    let question = CallQuestion::Connect {
        destination: "192.0.2.1:80".parse().unwrap(),
    };
    ToGateway::Ask(
        1,
        Ask {
            question,
            process: process(),
            hold: outgate_handoff::HoldForm::Refuse,
        },
    )
}

fn change() -> ToGateway {
    ToGateway::Change(1, "granted".to_owned())
}

fn until(place: &str) -> ToGateway {
    ToGateway::Until {
        place: place.to_owned(),
        left_ms: 1000,
    }
}

fn flow() -> ToGateway {
    ToGateway::Flow(FlowFrame {
        question: CallQuestion::Connect {
            destination: "192.0.2.1:80".parse().unwrap(),
        },
        process: process(),
    })
}

#[test]
fn frames_out_of_order_end_the_session() {
    let rows: Vec<Vec<ToGateway>> = vec![
        vec![begin()],
        vec![ask()],
        vec![hello(), hello()],
        vec![hello(), ask()],
        vec![hello(), ToGateway::Finish { status: 0 }],
        vec![hello(), source(1, b"a.test")],
        vec![hello(), source(0, b"a.test"), source(2, b"b.test")],
        vec![hello(), source(0, b"\xff"), begin()],
        vec![hello(), begin(), hello()],
        vec![hello(), begin(), begin()],
        vec![hello(), begin(), source(1, b"*")],
        vec![hello(), begin(), source(0, b"\xff"), change()],
        vec![
            hello(),
            begin(),
            until("-a"),
            source(0, b"a.test"),
            change(),
        ],
    ];
    for frames in rows {
        let mut launcher = bare();
        for frame in &frames {
            launcher.send_bytes(&frame.encode().unwrap(), &[]).ok();
        }
        while launcher.receive().is_some() {}
        assert!(launcher.result().is_err(), "{frames:?}");
    }
}

#[test]
fn bytes_that_are_no_frames_end_the_session() {
    let mut oversized = hello().encode().unwrap();
    oversized.resize(FRAME_BYTES_MAX + 1, 0);
    let whole = begin().encode().unwrap();
    let mut long = whole.clone();
    long.push(0);
    let mut rows = vec![vec![0], vec![0xff; 64], oversized, long];
    rows.extend((1..whole.len()).map(|cut| whole[..cut].to_vec()));
    for bytes in rows {
        let mut launcher = bare();
        launcher.send(&hello(), &[]);
        launcher.send_bytes(&bytes, &[]).unwrap();
        assert_eq!(launcher.receive(), None, "{} bytes", bytes.len());
        assert!(launcher.result().is_err(), "{} bytes", bytes.len());
    }
}

#[test]
fn wrong_descriptors_end_the_session_and_are_closed() {
    for (frame, count) in [
        (flow(), 0),
        (flow(), 2),
        (flow(), 3),
        (flow(), 200),
        (ask(), 1),
        (ToGateway::Stub, 0),
        (ToGateway::Finish { status: 0 }, 1),
    ] {
        let mut launcher = start(&[]);
        let (reader, writer) = nix::unistd::pipe().unwrap();
        let descriptors = vec![writer.as_raw_fd(); count];
        launcher
            .send_bytes(&frame.encode().unwrap(), &descriptors)
            .unwrap();
        assert_eq!(launcher.receive(), None, "{frame:?} with {count}");
        assert!(launcher.result().is_err(), "{frame:?} with {count}");
        drop(writer);
        // End of file: no copy of the other end is left anywhere.
        assert_eq!(
            nix::unistd::read(&reader, &mut [0]),
            Ok(0),
            "{frame:?} with {count}"
        );
    }
}

#[test]
fn another_build_and_a_faulty_policy_are_refused_in_words() {
    let mut launcher = bare();
    let other = ToGateway::Hello(HelloFrame {
        protocol: PROTOCOL,
        build: "0.0.0".to_owned(),
        sandbox: "test".to_owned(),
        pid: 1,
    });
    launcher.send(&other, &[]);
    launcher.send(&begin(), &[]);
    match launcher.receive() {
        Some(ToLauncher::Refused { message }) => assert!(message.contains("0.0.0"), "{message}"),
        other => panic!("{other:?}"),
    }
    let mut launcher = bare();
    launcher.open(&[(SourceKind::Allow, "*.com")]);
    match launcher.receive() {
        Some(ToLauncher::Refused { message }) => assert!(message.contains("-a:1:"), "{message}"),
        other => panic!("{other:?}"),
    }
    assert_eq!(launcher.receive(), None);
    assert_eq!(launcher.result(), Ok(()));
}

#[test]
fn names_of_rules_and_pins_are_announced_wherever_they_stand() {
    let mut launcher = bare();
    let document = "[[pin]]\nhost = \"in-document.test\"\naddress = \"192.0.2.7\"\n";
    launcher.open(&[
        (SourceKind::Allow, "GET http://in-rule.test/a"),
        (SourceKind::Allow, "http://*.wide.test"),
        (SourceKind::Pin, "in-option.test:80=192.0.2.8:80"),
        (SourceKind::Document, document),
    ]);
    let Some(ToLauncher::Ready { hosts, .. }) = launcher.receive() else {
        panic!()
    };
    let mut names: Vec<&str> = hosts
        .lines()
        .filter_map(|line| line.split_whitespace().nth(1))
        .collect();
    names.sort_unstable();
    assert_eq!(
        names,
        ["in-document.test", "in-option.test", "in-rule.test"]
    );
}

#[test]
fn a_policy_comes_in_chunks_and_a_lost_launcher_ends_everything() {
    let mut launcher = bare();
    launcher.send(&hello(), &[]);
    launcher.send(&source(0, b"http://"), &[]);
    launcher.send(&source(0, b"a.test"), &[]);
    launcher.send(&begin(), &[]);
    let Some(ToLauncher::Ready { hosts, .. }) = launcher.receive() else {
        panic!()
    };
    assert!(hosts.ends_with(" a.test\n"), "{hosts}");
    let mut client = launcher.connect("a.test", 80);
    assert_eq!(
        launcher.decide(launcher.address("a.test", 80)),
        Decision::Redirect
    );
    let records = launcher.records().len();
    assert!(records >= 3);
    nix::sys::socket::shutdown(
        launcher.socket.as_raw_fd(),
        nix::sys::socket::Shutdown::Both,
    )
    .unwrap();
    assert_eq!(launcher.result(), Ok(()));
    assert_eq!(crate::harness::rest(&mut client), b"");
}

#[test]
fn questions_without_rules_are_denied() {
    let mut launcher = start(&[(SourceKind::Allow, "unix:///run/ok.sock")]);
    let mut decide = |question| launcher.ask(question).decision;
    let connect = |text: &str| CallQuestion::Connect {
        destination: text.parse().unwrap(),
    };
    assert_eq!(decide(connect("192.0.2.1:22")), Decision::Deny);
    assert_eq!(decide(connect("192.0.2.1:80")), Decision::Redirect);
    assert_eq!(decide(connect("192.0.2.1:53")), Decision::Redirect);
    let unix = |path: &str| CallQuestion::Unix { path: path.into() };
    assert_eq!(decide(unix("/run/ok.sock")), Decision::Redirect);
    assert_eq!(decide(unix("/run/other.sock")), Decision::Deny);
    assert_eq!(decide(unix("@/run/ok.sock")), Decision::Deny);
    assert_eq!(decide(unix("")), Decision::Deny);
    let listen = CallQuestion::Listen {
        address: "0.0.0.0:8000".parse().unwrap(),
    };
    assert_eq!(decide(listen), Decision::Deny);
}
