//! Chromium, headless: a page with what it loads, and a WebSocket. It trusts
//! nothing that a variable names, only its built-in roots and the NSS database
//! of its user. With its shipped policy a run gives it one of its own; else the
//! script puts the authority there before it starts one.

use std::fs;
use std::os::unix::fs::chown;

use outgate_harness::{Sandbox, lab_tests};

use crate::scenario::{Run, Scenario, assert_requests, check_all};
use crate::stage::{MARK, Stage, is_opened, spelt};

/// A page that is complete when its script was loaded and has run.
const PAGE: &str =
    "<!doctype html><link rel=icon href=data:,><body><script src=script.js></script>";

/// What the script of the page writes.
const SCRIPT: &str = "document.body.append('from-the-' + 'real-origin');";

/// A page that is complete when its WebSocket has echoed: an open frame keeps it
/// loading until then.
const TALK: &str = "<!doctype html><link rel=icon href=data:,><body><script>
const frame = document.createElement('iframe');
document.body.append(frame);
frame.contentDocument.open();
const end = (text) => { document.body.append(text); frame.contentDocument.close(); };
const socket = new WebSocket('ws://live.example/socket');
socket.onopen = () => socket.send('from-the-' + 'real-origin');
socket.onmessage = (message) => end('echo ' + message.data);
socket.onerror = () => end('no WebSocket');
</script>";

/// Opens ADDRESS and prints the page as it is then. Chromium asks its maker for
/// this and that, all of which is denied; here it does not even try.
const OPEN: &str =
    "base=$HOME/.pki/nssdb; mkdir -p $base && certutil -d sql:$base -N --empty-password
TRUST
chromium --headless --no-sandbox --disable-gpu --user-data-dir=$HOME/profile \\
  --host-resolver-rules='MAP * ~NOTFOUND, EXCLUDE *.example' --dump-dom ADDRESS";

/// How the authority of a run comes into the database of its user.
const TRUST: &str = "certutil -d sql:$base -A -t C,, -n outgate -i $TMPDIR/authority.pem";

/// How it trusts the run without a store, as gateway/README.md says it.
const BY_KEY: &str = "rm -rf $HOME/.pki
SPKI=$(openssl x509 -in \"$TMPDIR/authority.pem\" -pubkey -noout |
  openssl pkey -pubin -outform der | openssl dgst -sha256 -binary | base64)
chromium --headless --no-sandbox --disable-gpu --user-data-dir=$TMPDIR/by-key \\
  --ignore-certificate-errors-spki-list=$SPKI \\
  --host-resolver-rules='MAP * ~NOTFOUND, EXCLUDE *.example' --dump-dom https://site.example/page.html";

/// How it is started with its shipped policy: nothing in it is about trust.
const SHIPPED: &str = "export HOME=$OWN_HOME; chromium --headless --no-sandbox --disable-gpu --user-data-dir=$TMPDIR/profile \\
  --host-resolver-rules='MAP * ~NOTFOUND, EXCLUDE *.example' --dump-dom https://site.example/page.html";

/// What a command tries at the user's own store, and what it finds there.
const ATTACK: &str = "export HOME=$OWN_HOME; cd ~/.pki/nssdb; cat cert9.db key4.db pkcs11.txt logins $PWD/cert9.db $PWD/key4.db $PWD/pkcs11.txt;
for file in $PWD/cert9.db $PWD/key4.db cert9.db planted; do echo planted >> $file; echo planted > $file; done
mv $PWD/cert9.db moved; ln -s /etc/passwd $PWD/linked; rm -f $PWD/cert9.db $PWD/key4.db";

/// What stands in each file of the user's own.
const OWN: &str = "of-the-users-own-2b71";

fn allowing<'lab>(stage: &Stage<'lab>, preset: &str) -> Sandbox<'lab> {
    let home = stage.home().to_string_lossy().into_owned();
    let sandbox = stage.with_preset(preset).allow("GET https://site.example");
    sandbox
        .option("--intercept", "always")
        .environment("OWN_HOME", &home)
}

lab_tests! {
    fn a_browser_with_its_policy_trusts_the_run_and_the_users_store_stays_closed(lab) {
        crate::stage::open_tls();
        let Some(mut stage) = Stage::start(lab, &["chromium"]) else { return };
        stage.publish("site.example", "page.html", PAGE);
        stage.publish("site.example", "script.js", SCRIPT);
        let own = stage.home().join(".pki/nssdb");
        for names in [None, Some(&[][..]), Some(&["cert9.db", "key4.db", "logins", "pkcs11.txt"])] {
            stage.empty_home();
            stage.empty_work();
            stage.seen();
            if let Some(names) = names {
                fs::create_dir_all(&own).expect("a folder");
                for name in names {
                    fs::write(own.join(name), OWN).expect("a file");
                    chown(own.join(name), Some(stage.identity.uid()), None).expect("an owner");
                }
                for folder in [&own, &stage.home().join(".pki")] {
                    chown(folder, Some(stage.identity.uid()), None).expect("an owner");
                }
            }
            let run = Run::make(&stage, allowing(&stage, "chromium"), SHIPPED);
            // A directory without a database is the one thing that takes a hand.
            let is_trusted = names != Some(&[]);
            assert_eq!(run.outcome.stdout.contains(MARK), is_trusted, "{names:?}: {run}");
            let said = format!("certutil -N --empty-password -d sql:{}", own.display());
            assert_eq!(run.outcome.stderr.contains(&said), !is_trusted, "{names:?}: {run}");
            let asked: &[&str] = if is_trusted { &["site.example GET /page.html", "site.example GET /script.js"] } else { &[] };
            assert_requests(&stage.seen(), asked, &run.to_string());
            // The near twin, and what is not allowed.
            let run = Run::make(&stage, allowing(&stage, "dev-tools"), SHIPPED);
            assert!(!run.outcome.stdout.contains(MARK), "{names:?}: {run}");
            let run = Run::make(&stage, allowing(&stage, "chromium").option("-d", "GET https://site.example"), SHIPPED);
            assert!(!run.outcome.stdout.contains(MARK), "{names:?}: {run}");
            assert!(stage.seen().requests.is_empty(), "{names:?}: {run}");
            if let Some(names) = names {
                let run = Run::make(&stage, allowing(&stage, "chromium"), ATTACK);
                assert!(!run.words().contains(OWN), "{names:?}: {run}");
                let mut left: Vec<_> = fs::read_dir(&own).expect("a folder").flatten().map(|entry| entry.file_name()).collect();
                left.sort();
                let mut expected = names.to_vec();
                expected.sort_unstable();
                assert_eq!(left, expected, "{run}");
                for name in names {
                    assert_eq!(fs::read_to_string(own.join(name)).expect("a file"), OWN, "{run}");
                }
            } else {
                assert!(!own.exists(), "{run}");
            }
        }
    }
}

carried_tests! {
    fn a_browser_loads_a_page_and_talks_over_a_websocket(lab) {
        let Some(mut stage) = Stage::start(lab, &["chromium", "certutil"]) else { return };
        stage.publish("site.example", "page.html", PAGE);
        stage.publish("site.example", "script.js", SCRIPT);
        stage.publish("site.example", "talk.html", spelt(TALK));
        let trust = if is_opened() { TRUST } else { "" };
        let open = |address| OPEN.replace("TRUST", trust).replace("ADDRESS", address);
        let page = open("http://site.example/page.html");
        let talk = open("http://site.example/talk.html");
        check_all(&mut stage, &[
            Scenario {
                name: "a page in Chromium",
                allow: &["GET http://site.example"],
                script: &page,
                requests: &["site.example GET /page.html", "site.example GET /script.js"],
                told: "outgate denied",
                ..Scenario::PLAIN
            },
            Scenario {
                name: "a WebSocket in Chromium",
                allow: &["GET http://site.example", "ws://live.example/socket"],
                script: &talk,
                shows: MARK,
                requests: &["site.example GET /talk.html", "live.example GET /socket"],
                told: "outgate denied",
                ..Scenario::PLAIN
            },
        ]);
        if is_opened() {
            for (script, is_trusted) in [(BY_KEY.to_owned(), true), (BY_KEY.replace("=$SPKI", "="), false)] {
                let run = Run::make(&stage, stage.allowing(&["GET http://site.example"]), &script);
                assert_eq!(run.outcome.stdout.contains(MARK), is_trusted, "{run}");
                assert_eq!(stage.seen().requests.is_empty(), !is_trusted, "{run}");
            }
        }
        // The right to GET is no right to a WebSocket, and the page hears of it.
        let run = Run::make(&stage, stage.allowing(&["GET http://site.example", "GET http://live.example"]), &talk);
        assert!(run.outcome.stdout.contains("no WebSocket"), "{run}");
        assert!(!run.lines_about("live.example").is_empty(), "{run}");
        assert_requests(&stage.seen(), &["site.example GET /talk.html"], &run.to_string());
    }
}
