//! Sockets on which a destination is named at send time, and families beside
//! the Internet's.

use outgate_harness::attack::{check, is_refused, leaks_bare, leaks_only_bare};
use outgate_harness::{Identity, Witness, lab_tests};

use crate::NO_SUCH_SOCKET;

/// Asks for pairs at an address that holds nothing, from six threads, while another call
/// is held now and then.
const CROWD: &str = r"
import ctypes, os, sys, threading, time
libc, end = ctypes.CDLL(None), time.time() + float(sys.argv[1])
def ask():
    while time.time() < end: libc.socketpair(1, 2, 9, ctypes.c_void_p(8))
threads = [threading.Thread(target=ask) for _ in range(6)]
for thread in threads: thread.start()
while time.time() < end: os.readlink('/proc/self/exe')
for thread in threads: thread.join()
print('all of it')
";

lab_tests! {
    fn row_12_udp_reaches_nobody(lab) {
        let witness = Witness::start(&lab.directory);
        for host in ["127.0.0.1", "[::1]", "93.184.216.34", "[2606:2800:220:1::1]", "255.255.255.255"] {
            let to = witness.at(host);
            if host != "255.255.255.255" {
                leaks_bare(lab, &witness, &["datagram", &to]);
            }
            is_refused(lab, &witness, &["datagram", &to], &[]);
        }
    }

    fn row_13_and_14_ping_raw_and_packet_sockets_are_refused(lab) {
        let witness = Witness::start(&lab.directory);
        let names = ["ping", "raw-icmp", "raw-tcp", "raw-ip", "packet-raw", "packet-dgram", "packet-old"];
        for host in ["127.0.0.1", "[::1]"] {
            let probe = ["raw", &witness.at(host)];
            let bare = lab.bare(Identity::Own, &probe);
            assert_eq!(bare.errno("raw-icmp"), "0", "root may, bare: {bare}");
            assert_eq!(bare.errno("ping"), "0", "everybody may, bare: {bare}");
            is_refused(lab, &witness, &probe, &names.map(|name| (name, NO_SUCH_SOCKET)));
        }
    }

    fn row_15_vsock_is_refused(lab) {
        let witness = Witness::start(&lab.directory);
        let names = ["vsock-1", "vsock-2", "vsock-5"];
        is_refused(lab, &witness, &["vsock"], &names.map(|name| (name, NO_SUCH_SOCKET)));
    }

    fn row_16_no_other_family_opens(lab) {
        // Unix streams and packets, TCP, sealed UDP, and the routing table.
        let known = [
            "family-1-1", "family-1-5", "family-2-1", "family-2-2", "family-10-1",
            "family-10-2", "family-16-2", "family-16-3",
        ];
        let bare = lab.bare(Identity::Own, &["families"]);
        assert!(bare.reports().iter().any(|report| !known.contains(&report.name.as_str())), "{bare}");
        for identity in Identity::all() {
            let outcome = lab.sandbox(identity).probe(&["families"]);
            let opened: Vec<String> = outcome.reports().into_iter().map(|report| report.name).collect();
            assert!(opened.contains(&"family-2-1".to_owned()), "{outcome}");
            for name in opened {
                assert!(known.contains(&name.as_str()), "{identity:?}: {name} opened");
            }
        }
    }

    fn row_17_only_the_routing_netlink_opens(lab) {
        for identity in Identity::all() {
            let outcome = lab.sandbox(identity).probe(&["netlink"]);
            assert_eq!(outcome.errno("netlink-0"), "0", "{outcome}");
            assert!(outcome.reports().len() > 5, "{outcome}");
            for report in outcome.reports() {
                let expected = report.name == "netlink-0";
                assert_eq!(report.errno == "0", expected, "{identity:?}: {report:?}");
            }
        }
    }

    fn row_18_unix_datagrams_are_refused(lab) {
        let witness = Witness::start(&lab.directory);
        let to = format!("unix:{}", witness.datagram_path());
        let expected = [("unix-dgram", NO_SUCH_SOCKET), ("unix-raw", NO_SUCH_SOCKET)];
        leaks_only_bare(lab, &witness, &["unix-datagram", &to], &expected);
    }

    fn row_19_a_datagram_pair_reaches_only_its_peer(lab) {
        let witness = Witness::start(&lab.directory);
        let to = format!("unix:{}", witness.datagram_path());
        let refused = &["EOPNOTSUPP", "EAFNOSUPPORT", "ESOCKTNOSUPPORT", "EPROTONOSUPPORT"][..];
        leaks_only_bare(lab, &witness, &["pair-named", &to], &[("pair-dgram", &["0"]), ("pair-raw", refused)]);
        for identity in Identity::all() {
            let outcome = lab.sandbox(identity).probe(&["pair-named", &to]);
            assert!(outcome.stdout.contains("peer pair-dgram got=15"), "{identity:?} {outcome}");
        }
    }

    fn row_19_a_pair_is_given_to_its_maker_and_to_nobody_else(lab) {
        for identity in Identity::all() {
            let outcome = lab.sandbox(identity).probe(&["pairs"]);
            let expected = [
                ("pair-nowhere", "EFAULT"), ("pair-edge", "EFAULT"), ("pair-flags", "EINVAL"), ("pair-protocol", "EPROTONOSUPPORT"),
                ("pair", "0"), ("pair-listen", "EACCES"), ("pair-kept", "0"), ("pair-limit", "EMFILE"), ("pair-limit-again", "EMFILE"),
            ];
            for (name, errno) in expected {
                assert_eq!(outcome.errno(name), errno, "{identity:?} {name} {outcome}");
            }
            for (what, count) in [("left=", 0), ("after=", 0), ("close-on-exec=", 1), ("non-blocking=", 1), ("kept-on-exec=", 1), ("limit=", 1)] {
                assert_eq!(outcome.number(what), count, "{identity:?} {what} {outcome}");
            }
        }
    }

    fn a_datagram_without_a_way_is_told_so_at_once(lab) {
        for identity in Identity::all() {
            let sent = lab.sandbox(identity).probe(&["datagram", "93.184.216.34:443"]);
            for name in ["sendto", "sendmsg", "sendmmsg"] {
                assert_eq!(sent.errno(name), "ENETUNREACH", "{identity:?} {sent}");
            }
            // To be connected is to ask for an address, which many do; to send is refused.
            assert_eq!(sent.errno("connect"), "0", "{identity:?} {sent}");
            let script = "import socket, time\n\
                          for family, to in ((2, '93.184.216.34'), (10, '2606:2800:220:1::1'), (10, '::ffff:93.184.216.34')):\n    \
                          s = socket.socket(family, 2); s.settimeout(9); s.connect((to, 443)); s.send(b'x'); began = time.time()\n    \
                          try: s.recv(9)\n    \
                          except OSError as e: print(e.errno, time.time() - began < 1)";
            let command = ["python3".to_owned(), "-c".to_owned(), script.to_owned()];
            let outcome = lab.sandbox(identity).run(&command);
            assert_eq!(outcome.stdout, "111 True\n111 True\n111 True\n", "{identity:?} {outcome}");
        }
    }

    /// Threads that keep the launcher's own threads at the listener's lock have its poll
    /// interrupted there: that is no end of the run.
    fn a_crowd_at_the_listener_ends_no_run(lab) {
        for identity in Identity::all() {
            let time = outgate_harness::race_time().as_secs().max(8).to_string();
            let words = ["python3", "-c", CROWD, &time].map(str::to_owned);
            let outcome = lab.sandbox(identity).run(&words);
            assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(0), "all of it\n"), "{identity:?} {outcome}");
        }
    }

    fn row_20_a_packet_pair_reaches_only_its_peer(lab) {
        let witness = Witness::start(&lab.directory);
        let to = format!("unix:{}", witness.path());
        for identity in Identity::all() {
            let outcome = lab.sandbox(identity).probe(&["pair-named", &to]);
            witness.assert_untouched("a packet pair");
            assert_eq!(outcome.errno("pair-seqpacket"), "0", "{outcome}");
            assert!(outcome.stdout.contains("peer pair-seqpacket got=15"), "{outcome}");
        }
    }

    fn row_49_the_sealed_network_is_not_the_commands_to_change(lab) {
        // Whoever made a user namespace owns its network, from outside as well.
        for identity in Identity::all() {
            let outcome = lab.sandbox(identity).probe(&["administer"]);
            let absent = ["filter4", "xfrm4", "ipsec4", "arp4", "bridge-filter4", "filter6", "xfrm6", "ipsec6"];
            let expected = absent.map(|name| (name, &["ENOPROTOOPT"][..]));
            check(&outcome, &expected, &format!("{identity:?}"));
            let devices = ["add-bridge4", "add-tunnel4", "add-bridge6", "add-tunnel6"];
            check(&outcome, &devices.map(|name| (name, &["EPERM"][..])), &format!("{identity:?}"));
        }
    }

    fn row_49_nobody_is_the_sealed_networks_administrator(lab) {
        // What takes a privilege outside takes one inside: whatever is refused to an account
        // without any is refused to the command, before the kernel looks at it.
        let without = *Identity::all().last().expect("an account");
        let bare = lab.bare(without, &["sweep"]);
        let privileged: Vec<String> = bare
            .reports()
            .into_iter()
            .filter(|report| report.errno == "EPERM")
            .map(|report| report.name)
            .collect();
        for some in ["ioctl-2-8914", "ioctl-10-8916", "option-2-0-19-one", "option-2-1-36-one", "option-10-41-59-zeros"] {
            assert!(privileged.iter().any(|name| name == some), "{some} takes a privilege: {bare}");
        }
        for identity in Identity::all() {
            let inside = lab.sandbox(identity).probe(&["sweep"]);
            assert_eq!(inside.errno("ioctl-2-8912"), "0", "{identity:?} {inside}");
            let reached: Vec<String> = inside
                .reports()
                .into_iter()
                .filter(|report| privileged.contains(&report.name))
                .filter(|report| !["EPERM", "EOPNOTSUPP"].contains(&report.errno.as_str()))
                .map(|report| format!("{} {}", report.name, report.errno))
                .collect();
            assert_eq!(reached, [""; 0], "{identity:?}");
        }
    }

    fn row_49_a_sealed_socket_stays_sealed(lab) {
        let witness = Witness::start(&lab.directory);
        for host in ["127.0.0.1", "[::1]", "8.8.8.8", "[2606:2800:220:1::1]"] {
            let probe = ["sealed", &witness.at(host)];
            leaks_bare(lab, &witness, &probe);
            is_refused(lab, &witness, &probe, &[]);
            for identity in Identity::all() {
                let outcome = lab.sandbox(identity).probe(&probe);
                for report in outcome.reports() {
                    if ["siocgskns", "bindtodevice", "setns"].contains(&report.name.as_str()) {
                        assert_ne!(report.errno, "0", "{identity:?}: {report:?}");
                    }
                }
            }
        }
    }
}

lab_tests! {
    fn row_49_two_sandboxes_share_no_sealed_network(lab) {
        // What one binds, the other cannot reach: each has a network of its own.
        let place = "127.0.0.1:5300";
        for identity in Identity::all() {
            let mut bare = lab.start_bare(identity, &lab.probe(&["mailbox", place]));
            bare.wait_for("ready own=1");
            lab.bare(identity, &["sealed", place]);
            bare.say("\n");
            let bare = bare.finish();
            assert!(bare.number("received=") > 0, "bare it arrives: {bare}");

            let mut first = lab.sandbox(identity).with_input().start_probe(&["mailbox", place]);
            first.wait_for("ready own=1");
            let second = lab.sandbox(identity).probe(&["sealed", place]);
            assert_eq!(second.errno("socket"), "0", "{identity:?} {second}");
            first.say("\n");
            let first = first.finish();
            assert_eq!(first.number("received="), 0, "{identity:?} {first} {second}");
        }
    }
}
