//! What was granted ends when it is to, also where the launcher cannot take it back.

use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use outgate_harness::origin::Origin;
use outgate_harness::{Identity, eventually, lab_tests};
use serde_json::Value;

use crate::gate::{Gate, Plan, python};
use crate::grants::{Asker, B, done, own, policies, private};
use crate::revise::Origin as Talker;

lab_tests! {
    fn a_grant_ends_in_time_while_its_launcher_stands_still(lab) {
        let _origin = Talker::start(5000);
        let _http = Origin::start(8080);
        // It asks by a kept connection and by a raw one, ten times a second, and says how long
        // each went on.
        let holder = "import socket, sys, time\n\
             print('here', flush=True); sys.stdin.readline()\n\
             began = time.monotonic()\n\
             raw = socket.create_connection(('a.example', 5000)); raw.settimeout(5)\n\
             kept = socket.create_connection(('b.example', 8080)); kept.settimeout(5)\n\
             went = {'raw': None, 'kept': None}\n\
             def echo():\n\
             \x20 raw.sendall(b'echo'); return raw.recv(100) == b'echo'\n\
             def ask():\n\
             \x20 kept.sendall(b'GET /x HTTP/1.1\\r\\nHost: b.example:8080\\r\\n\\r\\n')\n\
             \x20 return b' 200 ' in kept.recv(4096)\n\
             def tried(call):\n\
             \x20 try: return call()\n\
             \x20 except OSError: return False\n\
             print('begun', tried(echo), tried(ask), flush=True)\n\
             while time.monotonic() - began < 12:\n\
             \x20 for name, call in (('raw', echo), ('kept', ask)):\n\
             \x20  if went[name] is None and not tried(call): went[name] = time.monotonic() - began\n\
             \x20 time.sleep(0.1)\n\
             for name, time in went.items(): print(name, 'ended' if time and time < 8 else time, flush=True)\n\
             print('over', flush=True)\n\
             sys.stdin.readline()\n";
        let gate = Gate::start(lab, Identity::Own, &Plan::new(&[
            "-a", "tcp://a.example:5000", "-a", "http://b.example:8080",
            "--resolve", "a.example=192.0.2.1", "--resolve", "b.example=192.0.2.2",
        ]));
        let (sandbox, record) = private(lab, Identity::Own);
        for sandbox in [sandbox, gate.sandbox(lab, Identity::Own).allow("http://b.example:8080/other")] {
            let mut run = sandbox.option("--name", "agent").with_input().start(&python(holder));
            run.wait_for("here");
            for rule in ["tcp://a.example:5000", "http://b.example:8080"] {
                done(&own(lab, &["grant", "agent", rule, "--for", "4s"]));
            }
            run.say("go\n");
            run.wait_for("begun True True");
            let launcher = Pid::from_raw(run.pid());
            kill(launcher, Signal::SIGSTOP).expect("it is there");
            let said = run.wait_for("over");
            for line in ["raw ended", "kept ended"] {
                assert!(said.contains(line), "{line}: {said} {}", run.errors());
            }
            kill(launcher, Signal::SIGCONT).expect("it is there");
            let told = eventually(Duration::from_secs(10), || run.errors().contains("is over"));
            let outcome = run.finish();
            assert!(told, "{outcome}");
        }
        let over = |record: &&Value| record["detail"].as_str().is_some_and(|detail| detail.starts_with("the time of"));
        let policies = policies(&record);
        assert!(policies.iter().any(|record| over(&record)), "{policies:?}");
    }

    fn a_stopped_launcher_is_continued_to_revoke(lab) {
        let _origin = Origin::start(8080);
        let (sandbox, _) = private(lab, Identity::Own);
        let mut run = Asker::start(sandbox, "agent");
        done(&own(lab, &["grant", "agent", "http://b.example:8080"]));
        assert_eq!(run.get(B), "200");
        let launcher = Pid::from_raw(run.run.pid());
        kill(launcher, Signal::SIGSTOP).expect("it is there");
        done(&own(lab, &["revoke", "agent", "--all"]));
        assert_eq!(run.get(B), "403");
        run.end();
    }
}
