//! Chromium, headless: a page with what it loads, and a WebSocket. It trusts
//! nothing that a variable names, only its built-in roots and the NSS database
//! of its user, into which the run puts its authority before it starts one.

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
