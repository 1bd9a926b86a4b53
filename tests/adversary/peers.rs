//! Ways around that were found in comparable tools, where they differ from the
//! rows of the other files.

use outgate_harness::attack::{check, leaks_bare};
use outgate_harness::origin::Origin;
use outgate_harness::{Identity, Witness, lab_tests};

use crate::{NO_SUCH_SOCKET, REFUSED};

lab_tests! {
    fn sandlock_n1_fastopen_to_an_allowed_http_host_is_refused(lab) {
        // Raw bytes to a host that only HTTP rules allow: neither requests nor
        // anything else may go around the gateway.
        let witness = Witness::start_on(&lab.directory, 8080);
        let to = witness.address();
        for name in ["fastopen-sendto", "fastopen-sendmsg", "fastopen-sendmmsg"] {
            leaks_bare(lab, &witness, &[name, &to]);
            for identity in Identity::all() {
                let outcome = lab.sandbox(identity).allow(&format!("GET http://{to}/public/*")).probe(&[name, &to]);
                witness.assert_untouched(name);
                check(&outcome, &[(name, &["EOPNOTSUPP"])], &format!("{identity:?}"));
            }
        }
    }

    fn sandlock_n1_raw_bytes_to_an_allowed_http_host_are_not_passed_on(lab) {
        let witness = Witness::start_on(&lab.directory, 8080);
        let to = witness.address();
        leaks_bare(lab, &witness, &["connect", &to]);
        for identity in Identity::all() {
            let outcome = lab.sandbox(identity).allow(&format!("GET http://{to}/public/*")).probe(&["connect", &to]);
            witness.assert_untouched("raw bytes on an HTTP grant");
            assert_eq!(outcome.errno(&to), "0", "the gateway took it: {outcome}");
        }
    }

    fn sandlock_n3_fastopen_by_option_falls_back(lab) {
        let origin = Origin::start(8080);
        let to = "127.0.0.1:8080";
        for identity in Identity::all() {
            let outcome = lab.sandbox(identity).allow(&format!("tcp://{to}")).probe(&["fastopen-connect", to]);
            let expected = [("fastopen-option", &["ENOPROTOOPT"][..]), ("fastopen-connect", &["0"][..])];
            check(&outcome, &expected, &format!("{identity:?}"));
        }
        assert!(origin.connections() > 0);
    }

    fn sandlock_n5_an_unspecified_address_is_loopback(lab) {
        // A deny for loopback holds for every spelling of "here".
        let witness = Witness::start(&lab.directory);
        for host in ["0.0.0.0", "[::]", "[::ffff:0.0.0.0]", "[::ffff:127.0.0.1]", "127.0.0.1", "127.1.2.3", "[::1]"] {
            let to = witness.at(host);
            leaks_bare(lab, &witness, &["connect", &to]);
            for identity in Identity::all() {
                let sandbox = lab.sandbox(identity).allow(&format!("tcp://*:{}", witness.port())).deny("127.0.0.0/8");
                let outcome = sandbox.probe(&["connect", &to]);
                witness.assert_untouched(host);
                check(&outcome, &[(&to, REFUSED)], &format!("{identity:?} {host}"));
            }
        }
    }

    fn sandlock_n6_mptcp_to_an_allowed_host_is_refused(lab) {
        let witness = Witness::start(&lab.directory);
        let to = witness.address();
        for identity in Identity::all() {
            let outcome = lab.sandbox(identity).allow(&format!("tcp://{to}")).probe(&["protocol", &to, "262", "6"]);
            check(&outcome, &[("protocol-262", NO_SUCH_SOCKET), ("protocol-6", &["0"])], &format!("{identity:?}"));
            witness.assert_leaked("its neighbour, TCP");
        }
    }

    fn sandlock_n15_datagrams_to_an_allowed_host_stay_here(lab) {
        let witness = Witness::start_on(&lab.directory, 443);
        let to = witness.at("93.184.216.34");
        leaks_bare(lab, &witness, &["datagram", &to]);
        for identity in Identity::all() {
            for rule in ["93.184.216.34", "https://93.184.216.34", "tcp://93.184.216.34:443"] {
                lab.sandbox(identity).allow(rule).probe(&["datagram", &to]);
                witness.assert_untouched(rule);
            }
        }
    }

    fn sandlock_n17_no_port_beyond_loopback_is_bound_without_a_grant(lab) {
        let places = ["93.184.216.34:4501", "[2606:2800:220:1::1]:4502", "[::ffff:93.184.216.34]:4503"];
        for identity in Identity::all() {
            let sandbox = lab.sandbox(identity).allow("tcp://127.0.0.1:9").option("--listen", "93.184.216.34:4504-4505");
            let outcome = sandbox.probe(&[&["listen", "127.0.0.1:4500"], &places[..], &["93.184.216.34:4505"]].concat());
            for place in places {
                assert_eq!(outcome.errno(&format!("bind-{place}")), "EACCES", "{identity:?} {outcome}");
                let shown = place.replace("[::ffff:93.184.216.34]", "93.184.216.34");
                let told = format!("outgate: denied listening on {shown} (no rule allows it); to allow: --listen '{shown}'");
                assert!(outcome.stderr.contains(&told), "{identity:?} {outcome}");
            }
            for place in ["127.0.0.1:4500", "93.184.216.34:4505"] {
                assert_eq!(outcome.errno(&format!("listen-{place}")), "0", "{identity:?} its neighbour: {outcome}");
            }
        }
    }

    fn sandlock_c3_another_sandbox_cannot_use_this_ones_way_out(lab) {
        // Two sandboxes of one user: what one may, the other may not.
        let origin = Origin::start(8080);
        for identity in Identity::all() {
            let sandbox = lab.sandbox(identity).allow("GET http://127.0.0.1:8080/ok").with_input();
            let mut may = sandbox.start_probe(&["on-demand", "127.0.0.1:8080"]);
            may.say("\n");
            may.wait_for("done");
            let text = "GET /ok HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n";
            let outcome = lab.sandbox(identity).probe(&["fetch", "127.0.0.1", "8080", text]);
            may.finish();
            assert_eq!(origin.arrivals(), [], "{identity:?} {outcome}");
            assert!(!outcome.stdout.contains("from-here"), "{outcome}");
        }
    }
}
