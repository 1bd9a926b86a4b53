//! Stream sockets: destinations given to connect, to a send, by an option, and
//! protocols that are TCP in all but name.

use outgate_harness::attack::{check, is_refused, leaks_bare, leaks_only_bare};
use outgate_harness::{Identity, Witness, lab_tests};

use crate::{NO_SUCH_SOCKET, REFUSED};

lab_tests! {
    fn row_01_connect_to_a_denied_address_is_refused(lab) {
        let witness = Witness::start(&lab.directory);
        for host in [
            "127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0", "[::]", "[::ffff:0.0.0.0]",
            "127.8.9.10", "93.184.216.34", "[2606:2800:220:1::1]", "169.254.169.254",
        ] {
            let to = witness.at(host);
            leaks_only_bare(lab, &witness, &["connect", &to], &[(&to, REFUSED)]);
        }
    }

    fn row_01_connect_on_an_http_port_never_reaches_a_denied_host(lab) {
        // There it is accepted, by the gateway, so that a person can read why.
        for port in [80, 443, 8080] {
            let witness = Witness::start_on(&lab.directory, port);
            let to = witness.at("93.184.216.34");
            leaks_bare(lab, &witness, &["connect", &to]);
            is_refused(lab, &witness, &["connect", &to], &[]);
        }
    }

    fn row_02_sendto_fastopen_is_refused(lab) {
        fastopen(lab, "fastopen-sendto");
    }

    fn row_03_sendmsg_fastopen_is_refused(lab) {
        fastopen(lab, "fastopen-sendmsg");
    }

    fn row_04_sendmmsg_fastopen_is_refused(lab) {
        fastopen(lab, "fastopen-sendmmsg");
    }

    fn row_05_fastopen_inside_a_message_header_does_nothing(lab) {
        let witness = Witness::start(&lab.directory);
        let probe = ["fastopen-inside", &witness.address()];
        // The kernel looks at the call's flags only; so bare it sends nothing either.
        let bare = lab.bare(Identity::Own, &probe);
        assert_eq!(bare.errno("fastopen-inside"), "EPIPE");
        is_refused(lab, &witness, &probe, &[("fastopen-inside", &["EPIPE", "EOPNOTSUPP"])]);
    }

    fn row_06_fastopen_connect_is_refused(lab) {
        let witness = Witness::start(&lab.directory);
        let expected = [("fastopen-option", &["ENOPROTOOPT"][..]), ("fastopen-connect", REFUSED)];
        leaks_only_bare(lab, &witness, &["fastopen-connect", &witness.address()], &expected);
    }

    fn row_07_a_name_on_an_unconnected_stream_does_nothing(lab) {
        let witness = Witness::start(&lab.directory);
        let probe = ["named-send", &witness.address()];
        let kernel = ["EPIPE", "ENOTCONN"];
        let expected = [("named-sendto", &kernel[..]), ("named-sendmsg", &kernel[..])];
        check(&lab.bare(Identity::Own, &probe), &expected, "bare");
        is_refused(lab, &witness, &probe, &expected);
    }

    fn row_08_tcp_repair_is_refused(lab) {
        let witness = Witness::start(&lab.directory);
        let probe = ["repair", &witness.address()];
        assert_eq!(lab.bare(Identity::Own, &probe).errno("repair-on"), "0", "root may, bare");
        is_refused(lab, &witness, &probe, &[("repair-on", &["EPERM", "ENOPROTOOPT"])]);
    }

    fn row_09_high_bits_of_arguments_hide_nothing(lab) {
        let witness = Witness::start(&lab.directory);
        let expected = [
            ("high-mptcp", NO_SUCH_SOCKET),
            ("high-unix-dgram", NO_SUCH_SOCKET),
            ("high-netlink-diag", NO_SUCH_SOCKET),
            ("high-fastopen", &["EOPNOTSUPP"][..]),
            ("high-fastopen-option", &["ENOPROTOOPT"][..]),
            ("high-socketpair", &["EOPNOTSUPP", "EAFNOSUPPORT", "ESOCKTNOSUPPORT", "EPROTONOSUPPORT"][..]),
            ("high-ioctl", &["EPERM"][..]),
            ("high-connect", REFUSED),
        ];
        leaks_only_bare(lab, &witness, &["high-bits", &witness.address()], &expected);
    }

    fn row_10_mptcp_is_refused(lab) {
        let witness = Witness::start(&lab.directory);
        for host in ["127.0.0.1", "[::1]"] {
            let to = witness.at(host);
            let expected = [("protocol-262", NO_SUCH_SOCKET)];
            leaks_only_bare(lab, &witness, &["protocol", &to, "262"], &expected);
        }
    }

    fn row_11_other_transports_are_refused(lab) {
        let witness = Witness::start(&lab.directory);
        let names = ["sctp-stream", "sctp-seqpacket", "smc", "dccp", "udp-lite", "smc-as-tcp"];
        let expected = names.map(|name| (name, NO_SUCH_SOCKET));
        is_refused(lab, &witness, &["others", &witness.address()], &expected);
    }

    fn row_25_disconnecting_a_socket_does_not_free_it(lab) {
        let witness = Witness::start(&lab.directory);
        let expected = [("unspec", &["0"][..]), ("unspec-reuse", REFUSED)];
        leaks_only_bare(lab, &witness, &["disconnect", &witness.address()], &expected);
    }

    fn row_25_a_socket_of_an_allowed_connection_is_judged_again(lab) {
        let (allowed, denied) = (Witness::start(&lab.directory), Witness::start(&lab.directory));
        let probe = ["reuse", &allowed.address(), &denied.address()];
        leaks_bare(lab, &denied, &probe);
        for identity in Identity::all() {
            let rule = format!("tcp://{}", allowed.address());
            let outcome = lab.sandbox(identity).allow(&rule).probe(&probe);
            denied.assert_untouched("the same socket, connected again");
            let expected = [
                ("first", &["0"][..]), ("again", &["EISCONN"][..]),
                ("unspec", &["0"][..]), ("second", REFUSED),
            ];
            check(&outcome, &expected, &format!("{identity:?}"));
        }
    }

    fn allowed_connections_arrive(lab) {
        // The neighbour of every refusal above: the same calls, allowed.
        let witness = Witness::start(&lab.directory);
        for identity in Identity::all() {
            for host in ["127.0.0.1", "[::1]", "93.184.216.34"] {
                let to = witness.at(host);
                let outcome = lab.sandbox(identity).allow(&format!("tcp://{to}")).probe(&["connect", &to]);
                assert_eq!(outcome.errno(&to), "0", "{identity:?} {outcome}");
                witness.assert_leaked(&to);
            }
        }
    }
}

fn fastopen(lab: &outgate_harness::Lab, name: &str) {
    let witness = Witness::start(&lab.directory);
    for host in ["127.0.0.1", "[::1]", "93.184.216.34"] {
        let expected = [(name, &["EOPNOTSUPP"][..])];
        leaks_only_bare(lab, &witness, &[name, &witness.at(host)], &expected);
    }
}
