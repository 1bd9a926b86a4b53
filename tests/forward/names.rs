//! Names and addresses: every spelling of a place that `*` does not mean, and
//! names that only look like the allowed one.

use crate::case::{Case, Want};
use crate::stage::{reached, run_under};

/// What somebody takes for the loopback, a neighbour, the metadata service, or
/// nobody: as the client asks for it, and as it names it in `Host`.
const SPECIAL: &[(&str, &str)] = &[
    ("127.0.0.1", "127.0.0.1"),
    ("127.0.0.1", "localhost"),
    ("127.1", "127.0.0.1"),
    ("127.1", "127.1"),
    ("2130706433", "127.0.0.1"),
    ("2130706433", "2130706433"),
    ("0x7f.1", "127.0.0.1"),
    ("0x7f000001", "0x7f000001"),
    ("0177.0.0.1", "127.0.0.1"),
    ("017700000001", "017700000001"),
    ("127.9.9.9", "127.9.9.9"),
    ("0.0.0.0", "0.0.0.0"),
    ("0", "0"),
    ("0.1.2.3", "0.1.2.3"),
    ("localhost", "localhost"),
    ("localhost.", "localhost."),
    ("sub.localhost", "sub.localhost"),
    ("::1", "[::1]"),
    ("::", "[::]"),
    ("::ffff:127.0.0.1", "[::ffff:127.0.0.1]"),
    ("::ffff:127.0.0.1", "127.0.0.1"),
    ("::ffff:7f00:1", "[::ffff:7f00:1]"),
    ("::7f00:1", "[::7f00:1]"),
    ("::ffff:0:7f00:1", "[::ffff:0:7f00:1]"),
    ("::ffff:10.0.0.1", "[::ffff:10.0.0.1]"),
    ("64:ff9b::7f00:1", "[64:ff9b::7f00:1]"),
    ("64:ff9b::a9fe:a9fe", "[64:ff9b::a9fe:a9fe]"),
    ("64:ff9b:1::7f00:1", "[64:ff9b:1::7f00:1]"),
    ("2002:7f00:1::", "[2002:7f00:1::]"),
    ("2002:a00:1::1", "[2002:a00:1::1]"),
    ("2001:0:7f00:1::", "[2001:0:7f00:1::]"),
    ("2001:db8::1", "[2001:db8::1]"),
    ("fc00::1", "[fc00::1]"),
    ("fd00:ec2::254", "[fd00:ec2::254]"),
    ("fec0::1", "[fec0::1]"),
    ("ff02::1", "[ff02::1]"),
    ("10.0.0.1", "10.0.0.1"),
    ("172.16.0.1", "172.16.0.1"),
    ("172.31.255.254", "172.31.255.254"),
    ("192.168.0.1", "192.168.0.1"),
    ("169.254.169.254", "169.254.169.254"),
    ("169.254.170.2", "169.254.170.2"),
    ("100.64.0.1", "100.64.0.1"),
    ("100.100.100.200", "100.100.100.200"),
    ("192.0.0.192", "192.0.0.192"),
    ("192.0.2.1", "192.0.2.1"),
    ("198.51.100.1", "198.51.100.1"),
    ("203.0.113.1", "203.0.113.1"),
    ("198.19.255.254", "198.19.255.254"),
    ("240.0.0.1", "240.0.0.1"),
    ("255.255.255.255", "255.255.255.255"),
    ("168.63.129.16", "168.63.129.16"),
];

/// Addresses that `*` does mean, next to some that it does not.
const PUBLIC: &[(&str, &str)] = &[
    ("93.184.216.34", "93.184.216.34:8080"),
    ("172.32.0.1", "172.32.0.1:8080"),
    ("100.128.0.1", "100.128.0.1:8080"),
    ("11.0.0.1", "11.0.0.1:8080"),
    ("2606:2800:220:1::1", "[2606:2800:220:1::1]:8080"),
];

/// Names that somebody takes for one below `case.example`.
const ALIKE: &[&str] = &[
    "evilcase.example",
    "case.example",
    "c0.case.example.other.example",
    "c0-case.example",
    "C0.CASE.EXAMPLE.OTHER.EXAMPLE",
    "c0.xcase.example",
    "c0.case.examples",
    "c0.case.exampl",
    "case.example.case",
];

fn get(connect: &'static str, host: &str, want: Want) -> Case {
    let text = format!("GET /public/a HTTP/1.1\r\nHost: {host}\r\n\r\n");
    Case::new(&format!("{connect} as {host}"), text, want).connect(connect)
}

carried_tests! {
    fn everywhere_means_public_addresses_only(lab) {
        // Inside TLS, what needs no look inside would pass unopened.
        let rules = "allow = [\"GET <scheme>://*:8080/public/**\"]\n";
        let special = SPECIAL.iter().flat_map(|(connect, host)| {
            let with_port = format!("{host}:8080");
            [get(connect, host, Want::closed()), get(connect, &with_port, Want::closed())]
        });
        let before = reached().len();
        let seen = run_under(lab, rules, special.collect());
        assert_eq!(reached().len(), before, "{:?}", reached());
        for seen in &seen {
            let heard = String::from_utf8_lossy(&seen.heard.bytes);
            assert!(!heard.contains("HTTP/1.1 200"), "{}: {heard}", seen.case.name);
            // Refused, or said no to; never left waiting.
            let refused = seen.heard.end.contains("refused") || seen.heard.end.contains("unreachable");
            let invalid = seen.heard.end.contains("Invalid argument") || seen.heard.end.contains("lookup") || seen.heard.end.contains("denied");
            // By a word of TLS, or by a certificate of the run for whom the kernel
            // takes it for (unspecified addresses are the loopback).
            let alert = seen.heard.end.contains("alert") || seen.heard.end.contains("certificate not valid for name");
            let told = seen.replies.0.first().is_some_and(|reply| matches!(reply.status, 400 | 403));
            assert!(refused || invalid || alert || told, "{}: {} {heard}", seen.case.name, seen.heard.end);
        }
        // The neighbours of these ranges do arrive.
        let public = PUBLIC.iter().map(|(connect, host)| get(connect, host, Want::sent(1)));
        for (seen, (connect, _)) in run_under(lab, rules, public.collect()).iter().zip(PUBLIC) {
            assert_eq!(seen.reply().status, 200, "{}: {:?}", seen.case.name, seen.heard);
            let address = connect.parse().expect("an address");
            assert!(reached().contains(&address), "{address} in {:?}", reached());
        }
    }

    fn a_name_that_looks_alike_is_another(lab) {
        let rules = "allow = [\"GET <scheme>://*.case.example:8080/public/**\"]\n";
        let cases = ALIKE.iter().flat_map(|name| {
            let own = get(name, &format!("{name}:8080"), Want::refused(403));
            [own, get(name, "c0.case.example:8080", Want::refused(403))]
        });
        let seen = run_under(lab, rules, cases.collect());
        assert!(reached().is_empty(), "{:?}", reached());
        for seen in &seen {
            assert_eq!(seen.reply().status, 403, "{}: {:?}", seen.case.name, seen.heard);
        }
    }
}
