//! The same attacks by the other ways into the explicit proxy: places inside by SOCKS5 and in
//! absolute form, tunnels that say nothing, and tokens in the hands of somebody else.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, Shutdown, TcpStream};
use std::time::{Duration, Instant};

use outgate_harness::{Identity, eventually, lab_tests};

use crate::proxied::{ORIGIN, PROXY, Stage, authorization, dial, rest};

/// Longest wait for what comes in time.
const SOON: Duration = Duration::from_secs(40);

/// Hosts that lead inside, in as many spellings as there are readers.
const INSIDE: [&str; 24] = [
    "127.0.0.1",
    "localhost",
    "localhost.",
    "a.localhost",
    "0.0.0.0",
    "127.1",
    "2130706433",
    "0x7f000001",
    "0177.0.0.1",
    "169.254.169.254",
    "10.0.0.1",
    "198.18.0.1",
    "::1",
    "::",
    "::ffff:127.0.0.1",
    "::ffff:169.254.169.254",
    "::127.0.0.1",
    "64:ff9b::7f00:1",
    "64:ff9b:1::7f00:1",
    "2002:7f00:1::",
    "2001:0:7f00:1::",
    "fe80::1",
    "fd00:ec2::254",
    "ff02::1",
];
/// Ports of HTTP, of name servers, and of neither.
const PORTS: [u16; 3] = [80, 53, 7000];

/// A connection that has shown the token, by SOCKS5.
fn greeted(token: &str) -> TcpStream {
    let mut stream = dial();
    let count = u8::try_from(token.len()).expect("a short token");
    let words = [&[5, 1, 2, 1, 2][..], b"ci", &[count], token.as_bytes()].concat();
    stream.write_all(&words).expect("the proxy reads");
    let mut answer = [0; 4];
    stream.read_exact(&mut answer).expect("an answer");
    assert_eq!(answer, [5, 2, 1, 0]);
    stream
}

/// What a request comes to that is made by SOCKS5: of the proxy's reply, or in its tunnel.
fn by_socks(token: &str, command: u8, to: &[u8], port: u16) -> String {
    let mut stream = greeted(token);
    let words = [&[5, command, 0][..], to, &port.to_be_bytes()].concat();
    stream.write_all(&words).expect("the proxy reads");
    let mut reply = [0; 10];
    if stream.read_exact(&mut reply).is_err() {
        return "closed".to_owned();
    }
    if reply[1] != 0 {
        return format!("reply {}", reply[1]);
    }
    let request = b"GET /inside HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    stream.write_all(request).ok();
    stream.shutdown(Shutdown::Write).ok();
    rest(stream)
}

/// A tunnel, once it stands.
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

/// Whether a request inside is answered with 200; the connection stays.
fn is_answered(stream: &mut TcpStream) -> bool {
    let request = b"GET /kept HTTP/1.1\r\nHost: host.example\r\n\r\n";
    let mut answer = [0; 12];
    let is_good = stream.write_all(request).is_ok()
        && stream.read_exact(&mut answer).is_ok()
        && answer.starts_with(b"HTTP/1.1 200");
    let mut seen = Vec::new();
    while is_good && !seen.ends_with(b"arrived") {
        let mut byte = [0];
        if stream.read_exact(&mut byte).is_err() {
            return false;
        }
        seen.extend(byte);
    }
    is_good
}

lab_tests! {
    fn no_way_in_leads_to_a_place_inside(lab) {
        let Some(stage) = Stage::start(lab, Identity::Own, &[]) else {
            return;
        };
        let token = stage.make("ci", &[]);
        stage.arrived();
        let field = authorization("ci", &token);
        let is_no = |said: &str| {
            said.starts_with("reply ") || said.starts_with("HTTP/1.1 40") || said == "closed" || said.is_empty()
        };
        for host in INSIDE {
            for port in PORTS {
                let count = u8::try_from(host.len()).expect("a short name");
                let mut ways = vec![[&[3, count][..], host.as_bytes()].concat()];
                match host.parse() {
                    Ok(IpAddr::V4(four)) => {
                        ways.push([&[1][..], &four.octets()].concat());
                        ways.push([&[4][..], &four.to_ipv6_mapped().octets()].concat());
                    }
                    Ok(IpAddr::V6(six)) => ways.push([&[4][..], &six.octets()].concat()),
                    Err(_) => {}
                }
                for to in ways {
                    let said = by_socks(&token, 1, &to, port);
                    assert!(is_no(&said), "{host} {port} {to:?}: {said}");
                }
                for host in [host.to_owned(), format!("[{host}]")] {
                    let head = format!("GET http://{host}:{port}/inside HTTP/1.1\r\nHost: {host}:{port}\r\n{field}\r\n");
                    let said = stage.says(head.as_bytes());
                    assert!(said.starts_with("HTTP/1.1 40"), "{head}: {said}");
                }
            }
        }
        // Nobody listens for a client, or sends datagrams for one.
        let octets = "93.184.216.34".parse::<std::net::Ipv4Addr>().expect("an address").octets();
        for command in [0, 2, 3, 255] {
            let said = by_socks(&token, command, &[&[1][..], &octets].concat(), 80);
            assert_eq!(said, "reply 7", "{command}");
        }
        // Nor asks a name server that it chose.
        for port in [53, 853] {
            let said = by_socks(&token, 1, &[&[1][..], &octets].concat(), port);
            assert!(is_no(&said), "{port}: {said}");
        }
        assert_eq!(stage.arrived(), "");
        let said = by_socks(&token, 1, &[&[1][..], &octets].concat(), 5432);
        assert!(said.contains("tcp-banner"), "{ORIGIN}: {said}");
    }

    fn a_tunnel_in_which_nothing_is_said_ends_and_keeps_nobody_out(lab) {
        let Some(stage) = Stage::start(lab, Identity::Own, &[]) else {
            return;
        };
        let token = stage.make("ci", &[]);
        let other = stage.make("other", &[]);
        stage.arrived();
        let begun = Instant::now();
        let mut slow: Vec<TcpStream> = Vec::new();
        for number in 0..60 {
            let target = ["host.example:80", "opened.example:443"][number % 2];
            let mut stream = tunnel(&token, target);
            let bytes = [&b""[..], b"G", b"\x16\x03\x01\x00", b"\x16\x03\x01\x02\x00\x01"][number % 4];
            stream.write_all(bytes).ok();
            if number % 3 == 0 {
                stream.shutdown(Shutdown::Write).ok();
            }
            slow.push(stream);
        }
        let asked = Instant::now();
        assert!(stage.is_good("other", &other));
        assert!(asked.elapsed() < Duration::from_secs(5), "{:?}", asked.elapsed());
        for stream in slow {
            let said = rest(stream);
            assert!(!said.contains("200"), "{said}");
        }
        assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
        assert!(!stage.arrived().contains("HTTP/1.1"), "nothing was asked for");
    }

    fn what_a_stolen_token_began_ends_with_it_whatever_it_is(lab) {
        let Some(stage) = Stage::start(lab, Identity::Own, &[]) else {
            return;
        };
        let token = stage.make("ci", &[]);
        // From elsewhere it is the same sandbox, and recorded with where it came from.
        let elsewhere = ["--interface", "127.0.0.9", "-x"];
        let proxy = format!("http://ci:{token}@{PROXY}");
        let ask = |url: &str| stage.curl(&[&elsewhere[..], &[&proxy, url]].concat());
        assert_eq!(ask("http://host.example/x").0, "000/200");
        assert_eq!(ask("http://denied.example/x").0, "000/403");
        let is_told = || stage.records().iter().any(|line| line.to_string().contains("GET from 127.0.0.9"));
        assert!(eventually(SOON, is_told), "{}", stage.gate.errors());
        // A connection that is kept, one that has asked nothing yet, and one within SOCKS5.
        let mut kept = tunnel(&token, "host.example:80");
        assert!(is_answered(&mut kept) && is_answered(&mut kept));
        let mut early = tunnel(&token, "host.example:80");
        let mut socks = greeted(&token);
        let ended = stage.token(&["revoke", "ci"]);
        assert_eq!(ended.code, Some(0), "{ended}");
        assert!(eventually(SOON, || !stage.is_good("ci", &token)), "{}", stage.gate.errors());
        stage.arrived();
        assert!(!is_answered(&mut kept) && !is_answered(&mut early));
        let host = b"host.example";
        socks.write_all(&[&[5, 1, 0, 3, 12][..], host, &[0, 80]].concat()).ok();
        let mut reply = [0; 10];
        if socks.read_exact(&mut reply).is_ok() && reply[1] == 0 {
            assert!(!is_answered(&mut socks), "{}", stage.gate.errors());
        }
        assert_eq!(ask("http://host.example/x").0, "000/407");
        assert!(!stage.arrived().contains("GET /"), "{}", stage.gate.errors());
    }
}
