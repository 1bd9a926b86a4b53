//! Clients of the explicit proxy that want more than they may, or that nobody else gets any.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, TcpStream};
use std::os::fd::AsRawFd as _;
use std::time::{Duration, Instant};

use nix::sys::socket::{AddressFamily, SockFlag, SockType, SockaddrIn, bind, connect, socket};
use outgate_harness::{Identity, eventually, lab_tests};

use crate::proxied::{PROXY, Stage, authorization, dial, rest};

/// The answer to CONNECT, or to a SOCKS command.
fn asked(stage: &Stage<'_>, token: &str, target: &str, fields: &str) -> String {
    let field = authorization("ci", token);
    let head = format!("CONNECT {target} HTTP/1.1\r\n{fields}{field}Connection: close\r\n\r\n");
    let mut stream = dial();
    stream.write_all(head.as_bytes()).expect("the proxy reads");
    stream.shutdown(Shutdown::Write).ok();
    let answer = rest(stream);
    assert!(!answer.is_empty(), "{target}: {}", stage.gate.errors());
    answer
}

/// A tunnel to this target.
fn tunnel(token: &str, target: &str) -> TcpStream {
    let mut stream = dial();
    let field = authorization("ci", token);
    let head = format!("CONNECT {target} HTTP/1.1\r\n{field}\r\n");
    stream.write_all(head.as_bytes()).expect("the proxy reads");
    let mut answer = [0; 39];
    stream.read_exact(&mut answer).expect("an answer");
    assert!(answer.starts_with(b"HTTP/1.1 200"), "{answer:?}");
    stream
}

/// A connection from another address of this machine.
fn dial_from(source: Ipv4Addr) -> TcpStream {
    let flags = SockFlag::SOCK_CLOEXEC;
    let own = socket(AddressFamily::Inet, SockType::Stream, flags, None).expect("a socket");
    let [a, b, c, d] = source.octets();
    bind(own.as_raw_fd(), &SockaddrIn::new(a, b, c, d, 0)).expect("a source");
    connect(own.as_raw_fd(), &SockaddrIn::new(127, 0, 0, 1, 3128)).expect("the proxy accepts");
    TcpStream::from(own)
}

lab_tests! {
    fn no_spelling_of_a_place_inside_is_a_way_there(lab) {
        let Some(stage) = Stage::start(lab, Identity::Own, &[]) else {
            return;
        };
        let token = stage.make("ci", &[]);
        stage.arrived();
        for target in [
            "127.0.0.1:80", "127.0.0.1:3128", "localhost:80", "localhost.:80", "a.localhost:80",
            "0.0.0.0:80", "127.1:80", "2130706433:80", "0x7f000001:80", "0177.0.0.1:80",
            "169.254.169.254:80", "10.0.0.1:80", "198.18.0.1:80", "192.168.0.1:443",
            "[::1]:80", "[::]:80", "[::ffff:127.0.0.1]:80", "[::ffff:7f00:1]:80",
            "[::7f00:1]:80", "[64:ff9b::7f00:1]:80", "[2002:7f00:1::]:80", "[fe80::1]:80",
            "[fe80::1%25lo]:80", "[fd00::1]:80", "[fd00:ec2::254]:80", "[2001:0:7f00:1::]:80",
            "nowhere.example:80", "outgate.invalid:22",
            "93.184.216.35:80", "93.184.216.34:22", "host.example:22", "HOST.example.:81",
        ] {
            let answer = asked(&stage, &token, target, "");
            let code = answer.get(9..12).unwrap_or_default();
            let is_no = ["400", "403"].contains(&code);
            // What speaks HTTP may be told inside; a name is looked up then, and not before.
            let is_later = target.starts_with("nowhere") && code == "200";
            assert!(is_no || is_later, "{target}: {answer}");
        }
        assert_eq!(stage.arrived(), "");
        let denied = asked(&stage, &token, "denied.example:443", "");
        assert!(denied.starts_with("HTTP/1.1 403 outgate denied"), "{denied}");
        assert!(denied.contains("outgate-denied: no-rule; rule=-"), "{denied}");
        assert!(denied.contains("ask the gateway's operator for -a"), "{denied}");
    }

    fn what_a_tunnel_is_for_is_what_goes_through_it(lab) {
        let Some(stage) = Stage::start(lab, Identity::Own, &[]) else {
            return;
        };
        let token = stage.make("ci", &[]);
        stage.arrived();
        let proxy = format!("http://ci:{token}@{PROXY}");
        // Another server name, another Host, and both, in TLS that is opened and that passes.
        for words in [
            ["--connect-to", "passed.example:443:opened.example:443", "https://passed.example/a"],
            ["--connect-to", "opened.example:443:passed.example:443", "https://opened.example/a"],
            ["-H", "Host: passed.example", "https://opened.example/a"],
            ["-H", "Host: opened.example:444", "https://opened.example/a"],
        ] {
            let (status, said) = stage.curl(&[&["-x", &proxy][..], &words[..]].concat());
            assert!(!status.ends_with("/200"), "{words:?}: {status} {said}");
        }
        for (head, code) in [
            ("GET http://host.example/x HTTP/1.1\r\nHost: denied.example\r\n", "400"),
            ("GET http://host.example:81/x HTTP/1.1\r\nHost: host.example\r\n", "40"),
            ("GET http://host.example/x HTTP/1.1\r\nHost: host.example:81\r\n", "400"),
            ("GET http://host.example/x HTTP/1.1\r\nHost: host.example\r\nHost: a\r\n", "400"),
            ("GET http://ci@host.example/x HTTP/1.1\r\nHost: host.example\r\n", "400"),
            ("GET http://host.example/x HTTP/1.1\r\n", "400"),
            ("GET https://opened.example/a HTTP/1.1\r\nHost: opened.example\r\n", "400"),
            ("CONNECT host.example:80 HTTP/1.1\r\nHost: denied.example:80\r\n", "400"),
            ("POST http://method.example/ HTTP/1.1\r\nHost: method.example\r\nContent-Length: 1\r\n\
              Transfer-Encoding: chunked\r\n", "400"),
        ] {
            let field = authorization("ci", &token);
            let answer = stage.says(format!("{head}{field}\r\n").as_bytes());
            assert!(answer.starts_with(&format!("HTTP/1.1 {code}")), "{head}: {answer}");
        }
        assert!(!stage.arrived().contains("HTTP/1.1"));
        // One request is one request: what follows it goes nowhere.
        let field = authorization("ci", &token);
        let one = format!("GET http://host.example/1 HTTP/1.1\r\nHost: host.example\r\n{field}\r\n");
        let two = "GET http://host.example/2 HTTP/1.1\r\nHost: host.example\r\n\r\n";
        let answer = stage.says(format!("{one}{two}").as_bytes());
        assert_eq!(answer.matches("HTTP/1.1 200").count(), 1, "{answer}");
        let arrived = stage.arrived();
        assert!(arrived.contains("GET /1 ") && !arrived.contains("GET /2 "), "{arrived}");
    }

    fn no_tunnel_leads_through_a_tunnel_and_no_credential_beyond_one(lab) {
        let Some(stage) = Stage::start(lab, Identity::Own, &[]) else {
            return;
        };
        let token = stage.make("ci", &[]);
        stage.arrived();
        let field = authorization("ci", &token);
        let mut nested = tunnel(&token, "host.example:80");
        let head = format!("CONNECT denied.example:443 HTTP/1.1\r\nHost: denied.example\r\n{field}\r\n");
        nested.write_all(head.as_bytes()).expect("the proxy reads");
        let answer = rest(nested);
        assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
        let proxy = format!("http://ci:{token}@{PROXY}");
        let other = "Proxy-Authorization: Basic dXNlcjp3b3Jk";
        for (method, field, code) in [
            ("CONNECT", field.trim_end(), "4"),
            ("GET", field.trim_end(), "403"),
            ("GET", other, "200"),
        ] {
            let url = "https://opened.example/a";
            let words = ["-x", &proxy, "-X", method, "-H", field, url];
            let (status, said) = stage.curl(&words);
            let is_so = status.starts_with(&format!("200/{code}"));
            assert!(is_so, "{method}: {status} {said}");
        }
        let mut plain = tunnel(&token, "host.example:80");
        let other = "Proxy-Authorization: Basic dXNlcjp3b3Jk\r\n";
        let head = format!("GET /x HTTP/1.1\r\nHost: host.example\r\nConnection: close\r\n{other}\r\n");
        plain.write_all(head.as_bytes()).expect("the proxy reads");
        let answer = rest(plain);
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        let arrived = stage.arrived();
        assert!(arrived.contains("GET /x") && arrived.contains("GET /a"), "{arrived}");
        assert!(!arrived.to_ascii_lowercase().contains("proxy-"), "{arrived}");
        assert!(!arrived.contains("CONNECT"), "{arrived}");
    }

    fn who_takes_the_proxy_for_something_else_is_told_what_it_is(lab) {
        let Some(stage) = Stage::start(lab, Identity::Own, &[]) else {
            return;
        };
        let token = stage.make("ci", &[]);
        let field = authorization("ci", &token);
        for head in [
            format!("GET / HTTP/1.1\r\nHost: {PROXY}\r\n\r\n"),
            format!("GET /metrics HTTP/1.1\r\nHost: {PROXY}\r\n{field}\r\n"),
            format!("OPTIONS * HTTP/1.1\r\nHost: {PROXY}\r\n\r\n"),
            "GET / HTTP/1.0\r\n\r\n".to_owned(),
        ] {
            let answer = stage.says(head.as_bytes());
            assert!(answer.starts_with("HTTP/1.1 400 outgate: this is the proxy"), "{answer}");
        }
        for bytes in [
            &b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..],
            b"GET http://host.example/ HTTP/1.1\nHost: host.example\n\n",
            b"\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00\n\n",
            b"SSH-2.0-x\r\n\r\n",
            "A".repeat(100_000).as_bytes(),
        ] {
            let answer = stage.says(bytes);
            assert!(answer.starts_with("HTTP/1.1 4"), "{answer}");
        }
        // Its own listener is a place inside like any other.
        let answer = asked(&stage, &token, PROXY, "");
        assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
    }

    fn a_tunnel_of_which_one_side_has_ended_goes_on(lab) {
        let Some(stage) = Stage::start(lab, Identity::Own, &[]) else {
            return;
        };
        let token = stage.make("ci", &[]);
        let mut stream = tunnel(&token, "raw.example:7000");
        stream.write_all(b"all").expect("a tunnel");
        stream.shutdown(Shutdown::Write).expect("a half");
        assert_eq!(rest(stream), "allhalf-closed");
        // Bytes right behind the head are the tunnel's.
        let mut stream = dial();
        let head = format!("CONNECT raw.example:7000 HTTP/1.1\r\n{}\r\nearly", authorization("ci", &token));
        stream.write_all(head.as_bytes()).expect("the proxy reads");
        stream.shutdown(Shutdown::Write).expect("a half");
        assert!(rest(stream).ends_with("earlyhalf-closed"));
    }

    fn who_says_nothing_is_not_heard_for_long_and_keeps_nobody_out(lab) {
        let Some(stage) = Stage::start(lab, Identity::Own, &[]) else {
            return;
        };
        let token = stage.make("ci", &[]);
        let begun = Instant::now();
        let mut slow: Vec<TcpStream> = Vec::new();
        for source in [[127, 0, 0, 1], [127, 0, 0, 2], [127, 0, 0, 3], [127, 0, 0, 4], [127, 0, 0, 5]] {
            for number in 0..100 {
                let mut stream = dial_from(source.into());
                let bytes = [&b""[..], b"G", b"\x05", b"\x05\x01\x02"][number % 4];
                stream.write_all(bytes).ok();
                slow.push(stream);
            }
        }
        let descriptors = || {
            let all = std::fs::read_dir(format!("/proc/{}/fd", stage.gate.server()));
            all.map_or(0, Iterator::count)
        };
        assert!(descriptors() < 160, "{}", descriptors());
        // Meanwhile others are served, within what is usual.
        let asked = Instant::now();
        assert!(stage.is_good("ci", &token));
        assert!(asked.elapsed() < Duration::from_secs(5), "{:?}", asked.elapsed());
        // Whoever comes after them, and they come again.
        for number in 0..50 {
            let source = Ipv4Addr::new(127, 0, 0, 1 + number % 6);
            slow.extend((0..40).map(|_| dial_from(source)));
            assert!(stage.is_good("ci", &token), "{number}");
        }
        // Each is let go in time, whether it says a byte now and then or nothing.
        let limit = Duration::from_secs(30);
        for stream in &mut slow {
            stream.set_read_timeout(Some(limit)).expect("a limit");
            let mut all = Vec::new();
            if let Err(error) = stream.read_to_end(&mut all) {
                assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "{error}");
            }
        }
        assert!(begun.elapsed() < limit, "{:?}", begun.elapsed());
        drop(slow);
        assert!(eventually(limit, || descriptors() < 40), "{}", descriptors());
        let mut from_there = dial_from(Ipv4Addr::new(127, 0, 0, 2));
        from_there.write_all(b"GET / HTTP/1.1\r\n\r\n").expect("the proxy reads");
        assert!(rest(from_there).starts_with("HTTP/1.1 400"));
    }

    fn a_name_carries_no_credential_and_few_bytes(lab) {
        let more = ["-a", "http://**.any.example", "-a", "tls://**.any.example", "-a", "tcp://**.any.example:7000"];
        let Some(stage) = Stage::start(lab, Identity::Own, &more) else {
            return;
        };
        let token = stage.make("ci", &[]);
        let field = authorization("ci", &token);
        let ask = |name: &str, port: u16| {
            let head = format!("CONNECT {name}:{port} HTTP/1.1\r\n{field}Connection: close\r\n\r\n");
            let mut stream = dial();
            stream.write_all(head.as_bytes()).expect("the proxy reads");
            let mut answer = vec![0; 4096];
            let count = stream.read(&mut answer).expect("an answer");
            answer.truncate(count);
            String::from_utf8_lossy(&answer).into_owned()
        };
        let plain = |name: &str| {
            let head = format!("GET http://{name}/ HTTP/1.1\r\nHost: {name}\r\n{field}Connection: close\r\n\r\n");
            stage.says(head.as_bytes())
        };
        let name = format!("{token}.any.example");
        for answer in [ask(&name, 443), ask(&name, 7000), ask(&name, 80), plain(&name)] {
            assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
            assert!(!answer.contains(&token), "{answer}");
        }
        let with_python = format!("{name}:7000");
        let (status, said) = stage.curl(&["-x", &format!("socks5h://ci:{token}@{PROXY}"), &format!("gopher://{with_python}/1x")]);
        assert!(said.contains("(2)") || said.contains("not allowed"), "{status} {said}");
        // Labels below one domain: each is new, and not one is a secret.
        let label = |number: u32| format!("{:0>60}", format!("{:x}", number.wrapping_mul(2_654_435_761)));
        let answers: Vec<String> = (1..90).map(|number| ask(&format!("{}.any.example", label(number)), 80)).collect();
        let refused = |answer: &&String| answer.contains("labels below any.example");
        assert!(answers.iter().filter(refused).count() > 10, "{answers:?}");
        assert!(answers.first().is_some_and(|first| !refused(&first)), "{answers:?}");
        let records = stage.records();
        assert!(records.iter().all(|line| !line.to_string().contains(&token)), "{records:?}");
    }
}
