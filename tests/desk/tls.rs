//! Denials over TLS are words in every run, whether or not a rule is about https; and
//! the bundles by which clients trust the run are whole whenever they are read.

use std::fs;
use std::time::{Duration, Instant};

use outgate_harness::{Identity, Sandbox, lab_tests};

use crate::{prints, project, run, write};

/// How long a package manager may take to be told no: it would try again for more than a
/// minute where the connection fails.
const TOLD_WITHIN: Duration = Duration::from_secs(20);

lab_tests! {
    fn without_any_rule_a_denial_over_tls_is_words(lab) {
        for identity in Identity::all() {
            let work = project(lab, identity, "p");
            write(&work.join("get.mjs"), "const r = await fetch(process.argv[2]); console.log(await r.text())\n", identity);
            write(&work.join("get.py"), "import sys, urllib.request, urllib.error\ntry:\n  urllib.request.urlopen(sys.argv[1])\nexcept urllib.error.HTTPError as e:\n  print(e.read().decode())\n", identity);
            for client in [
                "curl -sS",
                "wget -qO- --content-on-error",
                "node get.mjs",
                "python3 get.py",
            ] {
                let script = format!("{client} https://denied.example/x");
                let outcome = run(lab, identity, &work, &script);
                assert!(outcome.stdout.contains("outgate denied GET https://denied.example/x: no rule allows it"), "{client}\n{outcome}");
            }
            let outcome = run(lab, identity, &work, "git ls-remote https://denied.example/r.git");
            assert!(outcome.stderr.contains("403"), "{outcome}");
        }
    }

    fn package_managers_are_told_no_at_once(lab) {
        for identity in Identity::all() {
            let work = project(lab, identity, "p");
            write(&work.join("package.json"), "{\"name\":\"p\",\"version\":\"1.0.0\"}\n", identity);
            for script in [
                "npm install --cache $TMPDIR/npm toy --registry https://denied.example/",
                "pip --cache-dir $TMPDIR/pip install --disable-pip-version-check --target $TMPDIR/x --index-url https://denied.example/simple toy",
            ] {
                let begun = Instant::now();
                let outcome = run(lab, identity, &work, script);
                let taken = begun.elapsed();
                assert_ne!(outcome.code, Some(0), "{outcome}");
                assert!(outcome.stderr.contains("to allow: -a"), "{outcome}");
                assert!(taken < TOLD_WITHIN, "{taken:?}\n{outcome}");
            }
        }
    }

    fn who_reads_a_bundle_reads_it_whole(lab) {
        for identity in Identity::all() {
            let work = project(lab, identity, "p");
            // The first thing it does, many at once; opened without waiting it waits all the same.
            let script = "for n in 1 2 3 4 5 6 7 8; do (tail -1 $SSL_CERT_FILE; tail -1 $TMPDIR/authority.pem) & done; wait";
            let ends = prints(lab, identity, &work, script);
            assert_eq!(ends, "-----END CERTIFICATE-----\n".repeat(16), "{ends}");
            let script = "test -s $SSL_CERT_FILE && grep -c BEGIN $TMPDIR/authority.pem && tr -d -c '\\0' <$SSL_CERT_FILE | wc -c";
            assert_eq!(prints(lab, identity, &work, script), "1\n0\n");
            // One that is opened to be written, or cut, is the command's to spoil; nothing hangs.
            let script = ": >$SSL_CERT_FILE; rm -f $REQUESTS_CA_BUNDLE; echo done";
            assert_eq!(prints(lab, identity, &work, script), "done\n");
            let script = "python3 -c \"import os; os.open(os.environ['SSL_CERT_FILE'], os.O_RDONLY | os.O_NONBLOCK)\"; curl -sS https://denied.example/";
            let outcome = run(lab, identity, &work, script);
            assert!(outcome.stdout.contains("outgate denied"), "{outcome}");
        }
    }

    fn nobody_waits_for_a_bundle_when_the_gateway_cannot_serve(lab) {
        for identity in Identity::all() {
            let work = project(lab, identity, "p");
            // Only the launcher: there is no gateway beside it.
            let alone = lab.folder("alone", Identity::Own);
            fs::copy(lab.tools.programs.join("outgate"), alone.join("outgate")).expect("a copy");
            let begun = Instant::now();
            let sandbox = Sandbox::plain(lab, identity).within(work.clone()).programs(alone);
            let outcome = sandbox.run(&["sh", "-c", "cat $SSL_CERT_FILE | tail -1"].map(str::to_owned));
            assert!(begun.elapsed() < TOLD_WITHIN, "{outcome}");
            assert_eq!(outcome.code, Some(0), "{outcome}");
            assert_eq!(outcome.stdout, "-----END CERTIFICATE-----\n", "{outcome}");
            assert!(outcome.stderr.contains("the gateway is gone"), "{outcome}");
        }
    }

    fn a_run_that_waits_for_a_bundle_ends_at_its_time(lab) {
        for identity in Identity::all() {
            let work = project(lab, identity, "p");
            let policy = work.join("t.toml");
            write(&policy, "[limits]\nwall_time = \"1s\"\n", identity);
            let begun = Instant::now();
            let sandbox = Sandbox::plain(lab, identity).within(work.clone());
            let sandbox = sandbox.option("-p", &policy.to_string_lossy());
            let script = "while :; do cat $SSL_CERT_FILE $TMPDIR/authority.pem >/dev/null; done";
            let outcome = sandbox.run(&["sh", "-c", script].map(str::to_owned));
            assert!(begun.elapsed() < Duration::from_secs(30), "{outcome}");
            assert_ne!(outcome.code, Some(0), "{outcome}");
        }
    }
}
