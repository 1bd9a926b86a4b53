//! `outgate grant`, `revoke` and `reload`: a running command may more, and then less, by the
//! word of its user alone; what is over ends what lived by it.

use std::path::{Path, PathBuf};

use outgate_harness::origin::Origin;
use outgate_harness::{Identity, Lab, Outcome, Running, Sandbox, audit, eventually, lab_tests};
use serde_json::Value;

use crate::gate::{Gate, Plan, outgate, python, shell};
use crate::revise::{Origin as Talker, SOON};

/// Asks for each URL it reads a line of, and says the status.
const ASKER: &str = "echo here; while read url; do curl -sS -m 20 -o /dev/null -w \"$url %{http_code}\\n\" \"$url\" 2>&1; done";

/// A run that asks for what it is told.
pub(crate) struct Asker {
    pub(crate) run: Running,
    asked: usize,
}

impl Asker {
    pub(crate) fn start(sandbox: Sandbox<'_>, name: &str) -> Self {
        let run = sandbox
            .option("--name", name)
            .with_input()
            .start(&shell(ASKER));
        run.wait_for("here");
        Self { run, asked: 0 }
    }

    /// The status that it gets.
    pub(crate) fn get(&mut self, url: &str) -> String {
        let line = format!("{url} ");
        self.asked = self.run.output().matches(&line).count();
        self.run.say(&format!("{url}\n"));
        let said = self.run.wait_for_count(&line, self.asked + 1);
        let rest = said.rsplit(&line).next().expect("it said so");
        rest.lines().next().unwrap_or_default().to_owned()
    }

    pub(crate) fn end(mut self) -> Outcome {
        self.run.end_input();
        self.run.finish()
    }
}

pub(crate) fn own(lab: &Lab, words: &[&str]) -> Outcome {
    outgate(lab, Identity::Own, words)
}

pub(crate) fn done(outcome: &Outcome) {
    assert_eq!(outcome.code, Some(0), "{outcome}");
}

fn refused(outcome: &Outcome, word: &str) {
    assert_eq!(outcome.code, Some(1), "{outcome}");
    assert!(outcome.stderr.contains(word), "{word}: {outcome}");
}

/// A run with a gateway of its own, its names pinned, and its record.
pub(crate) fn private(lab: &Lab, identity: Identity) -> (Sandbox<'_>, PathBuf) {
    let record = lab.folder("records", identity).join("record.jsonl");
    let sandbox = lab
        .sandbox(identity)
        .option("--audit", &record.to_string_lossy());
    let pins = [
        "a.example=192.0.2.1",
        "b.example=192.0.2.2",
        "t.example=192.0.2.3",
    ];
    (
        pins.iter().fold(sandbox, |sandbox, pin| sandbox.pin(pin)),
        record,
    )
}

pub(crate) fn policies(record: &Path) -> Vec<Value> {
    let records = audit::records(record).into_iter();
    records
        .filter(|record| record["kind"] == "policy")
        .collect()
}

const A: &str = "http://a.example:8080/x";
pub(crate) const B: &str = "http://b.example:8080/x";

lab_tests! {
    fn a_run_may_more_while_a_grant_holds_and_no_longer(lab) {
        let _origin = Origin::start(8080);
        for identity in Identity::all() {
            let (sandbox, record) = private(lab, identity);
            let mut run = Asker::start(sandbox.allow("http://a.example:8080"), "agent");
            assert_eq!((run.get(A), run.get(B)), ("200".to_owned(), "403".to_owned()));
            let granted = outgate(lab, identity, &["grant", "agent", "GET http://b.example:8080/x"]);
            done(&granted);
            assert!(granted.stdout.contains("policy 2: granted `GET http://b.example:8080/x`"), "{granted}");
            assert_eq!(run.get(B), "200");
            assert_eq!(run.get("http://b.example:8080/y"), "403");
            let shown = outgate(lab, identity, &["policy", "show", "--of", "agent"]);
            assert!(shown.stdout.contains("GET http://b.example:8080/x") && shown.stdout.contains("outgate grant 1"), "{shown}");
            let inspected = outgate(lab, identity, &["inspect", "agent"]);
            assert!(inspected.stdout.contains("granted    1 rule"), "{inspected}");
            done(&outgate(lab, identity, &["revoke", "agent", "GET http://b.example:8080/x"]));
            assert_eq!((run.get(A), run.get(B)), ("200".to_owned(), "403".to_owned()));
            refused(&outgate(lab, identity, &["revoke", "agent", "GET http://b.example:8080/x"]), "was not granted");
            // With a time, it ends by itself.
            done(&outgate(lab, identity, &["grant", "agent", "http://b.example:8080", "--for", "2s"]));
            assert_eq!(run.get(B), "200");
            assert!(eventually(SOON, || run.get(B) == "403"));
            // A deny rule beats a grant, and what is wrong is said and changes nothing.
            let wrong = outgate(lab, identity, &["grant", "agent", "http://*.com"]);
            assert_eq!(wrong.code, Some(2), "{wrong}");
            let outcome = run.end();
            for line in [
                "policy 2: granted `GET http://b.example:8080/x` (user ",
                "policy 3: revoked `GET http://b.example:8080/x` (user ",
                "policy 4: granted `http://b.example:8080` for 2s (user ",
                "policy 5: the time of `http://b.example:8080` is over",
            ] {
                assert_eq!(outcome.stderr.matches(line).count(), 1, "{line}: {outcome}");
            }
            let policies = policies(&record);
            let generations: Vec<_> = policies.iter().map(|record| record["generation"].as_u64()).collect();
            assert_eq!(generations, [Some(2), Some(3), Some(4), Some(5)], "{policies:?}");
            assert!(policies[0]["detail"].as_str().is_some_and(|detail| detail.starts_with("granted ")), "{policies:?}");
            std::fs::remove_file(record).expect("a record");
        }
    }

    fn a_grant_for_one_request_is_had_by_one_of_many(lab) {
        let origin = Origin::start(8080);
        let (sandbox, _) = private(lab, Identity::Own);
        let race = "echo here; read go; for i in $(seq 20); do curl -s -m 20 -o /dev/null -w '%{http_code}\\n' http://b.example:8080/x & done; wait; echo over; read go; curl -s -m 20 -o /dev/null -w 'then %{http_code}\\n' http://b.example:8080/x; read go; curl -s -m 20 -o /dev/null -w 'again %{http_code}\\n' http://b.example:8080/x; echo end";
        let mut run = sandbox.option("--name", "agent").with_input().start(&shell(race));
        run.wait_for("here");
        for rule in ["tcp://b.example:8080", "tls://b.example", "unix:///run/x"] {
            refused(&own(lab, &["grant", "agent", rule, "--once"]), "--once takes rules about");
        }
        done(&own(lab, &["grant", "agent", "http://b.example:8080", "--once"]));
        run.say("go\n");
        let said = run.wait_for("over");
        assert_eq!((said.matches("200\n").count(), said.matches("403\n").count()), (1, 19), "{said}");
        assert_eq!(origin.arrivals().len(), 1);
        assert!(eventually(SOON, || run.errors().contains("used up `http://b.example:8080`")), "{}", run.errors());
        run.say("go\n");
        run.wait_for("then 403");
        // Another is another's.
        done(&own(lab, &["grant", "agent", "http://b.example:8080", "--once"]));
        run.say("go\n");
        run.wait_for("again 200");
        run.finish();
    }

    fn a_grant_for_one_request_is_one_connection_where_nobody_looks_inside(lab) {
        let _origin = Talker::start(8443);
        // The origin sends back what it gets, a ClientHello. One asks again while the first
        // connection is open, and once it is closed.
        let asker = "import socket, ssl, sys\n\
             def tunnel():\n\
             \x20 out = ssl.MemoryBIO()\n\
             \x20 client = ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), out, server_hostname='t.example')\n\
             \x20 try: client.do_handshake()\n\
             \x20 except ssl.SSLWantReadError: pass\n\
             \x20 s = socket.create_connection(('t.example', 8443)); s.settimeout(10)\n\
             \x20 try:\n\
             \x20  s.sendall(out.read()); back = s.recv(6)\n\
             \x20 except OSError: back = b''\n\
             \x20 return s, 'open' if back[5:] == b'\\x01' else 'refused'\n\
             print('here', flush=True); sys.stdin.readline()\n\
             first, word = tunnel(); print('first', word)\n\
             print('second', tunnel()[1], flush=True); sys.stdin.readline()\n\
             first.close(); print('third', tunnel()[1], flush=True); sys.stdin.readline()\n\
             print('fourth', tunnel()[1], flush=True)\n";
        for option in [["--inspect", "off"], ["--intercept", "never"]] {
            let (sandbox, record) = private(lab, Identity::Own);
            let mut run = sandbox
                .option(option[0], option[1])
                .option("--name", "agent")
                .with_input()
                .start(&python(asker));
            run.wait_for("here");
            done(&own(lab, &["grant", "agent", "https://t.example:8443", "--once"]));
            run.say("go\n");
            let said = run.wait_for("second");
            assert!(said.contains("first open"), "{said} {}", run.errors());
            run.wait_for("second refused");
            // It lives on while other rules change.
            done(&own(lab, &["grant", "agent", "http://a.example:8080"]));
            run.say("go\n");
            run.wait_for("third refused");
            assert!(eventually(SOON, || run.errors().contains("used up `https://t.example:8443`")), "{}", run.errors());
            done(&own(lab, &["grant", "agent", "https://t.example:8443", "--once"]));
            run.say("go\n");
            run.wait_for("fourth open");
            run.finish();
            std::fs::remove_file(record).expect("a record");
        }
    }

    fn what_lived_by_a_grant_ends_with_it(lab) {
        let (_origin, _tls) = (Talker::start(8080), Talker::start(8443));
        let (sandbox, _) = private(lab, Identity::Own);
        let mut run = sandbox
            .allow("http://a.example:8080")
            .option("--name", "agent")
            .with_input()
            .start(&python(&format!("import sys\nprint('here', flush=True)\nsys.stdin.readline()\n{}", crate::revise::HOLDER)));
        run.wait_for("here");
        for rule in ["ws://a.example:8080", "tls://t.example:8443"] {
            done(&own(lab, &["grant", "agent", rule]));
        }
        run.say("go\n");
        let said = run.wait_for("slow begun");
        assert!(said.contains("ws 101 open") && said.contains("tls True"), "{said}");
        done(&own(lab, &["revoke", "agent", "--all"]));
        run.say("go\n");
        let said = run.wait_for("half");
        for line in ["then kept 200", "then ws closed", "then tls closed"] {
            assert!(said.contains(line), "{line}: {said} {}", run.errors());
        }
        run.finish();
    }

    fn a_raw_connection_ends_with_its_grant_whoever_holds_it(lab) {
        let _origin = Talker::start(5000);
        let (sandbox, _) = private(lab, Identity::Own);
        // One is kept by a rule of the run's own. One is handed over and lies in the queue of a
        // socket while the grant goes, in nobody's hands.
        let holder = "import socket,sys,array\n\
             def word(s):\n\
             \x20 s.settimeout(5)\n\
             \x20 try:\n\
             \x20  s.sendall(b'echo')\n\
             \x20  return 'open' if s.recv(100) == b'echo' else 'closed'\n\
             \x20 except OSError: return 'closed'\n\
             print('here', flush=True); sys.stdin.readline()\n\
             kept=socket.create_connection(('a.example',5000)); held=socket.create_connection(('b.example',5000)); sent=socket.create_connection(('b.example',5000))\n\
             print('first', word(kept), word(held), word(sent))\n\
             one,two=socket.socketpair(socket.AF_UNIX,socket.SOCK_STREAM)\n\
             socket.send_fds(one,[b'x'],[sent.fileno()]); sent.close()\n\
             print('ready', flush=True); sys.stdin.readline()\n\
             sent=socket.socket(fileno=socket.recv_fds(two,1,1)[1][0])\n\
             print('then', word(kept), word(held), word(sent))\n\
             try: socket.create_connection(('b.example',5000)); print('again')\n\
             except ConnectionRefusedError: print('refused', flush=True)\n";
        let mut run = sandbox
            .allow("tcp://a.example:5000")
            .option("--name", "agent")
            .with_input()
            .start(&python(holder));
        run.wait_for("here");
        done(&own(lab, &["grant", "agent", "tcp://b.example:5000"]));
        run.say("go\n");
        let said = run.wait_for("ready");
        assert!(said.contains("first open open open"), "{said}");
        done(&own(lab, &["revoke", "agent", "tcp://b.example:5000"]));
        run.say("go\n");
        run.wait_for("then open closed closed");
        run.wait_for("refused");
        run.finish();
    }

    fn a_sealed_run_is_changed_by_nobody(lab) {
        let _origin = Origin::start(8080);
        let (sandbox, _) = private(lab, Identity::Own);
        let mut run = Asker::start(sandbox.flag("--sealed").allow("http://a.example:8080"), "agent");
        for words in [
            &["grant", "agent", "http://b.example:8080"][..],
            &["revoke", "agent", "--all"],
            &["reload", "agent"],
        ] {
            refused(&own(lab, words), "--sealed");
        }
        let inspected = own(lab, &["inspect", "agent"]);
        assert!(inspected.stdout.contains("granted    nothing: sealed"), "{inspected}");
        assert_eq!((run.get(A), run.get(B)), ("200".to_owned(), "403".to_owned()));
        run.end();
    }

    fn no_command_changes_a_policy_by_any_way(lab) {
        let _origin = Origin::start(8080);
        for identity in Identity::all() {
            let (other, record) = private(lab, identity);
            let mut other = Asker::start(other, "other");
            let program = lab.tools.programs.join("outgate");
            let attack = python(&format!(
                "import socket,subprocess,os,struct,glob\n\
                 rule=b'http://b.example:8080'\n\
                 body=struct.pack('<I',len(rule))+rule+struct.pack('<IB',0,0)\n\
                 frame=struct.pack('<HHIQ',203,0,len(body),0)+body\n\
                 names=[line.split('@')[1].strip() for line in open('/proc/net/unix') if '@outgate-run-' in line]\n\
                 print('seen', len(names))\n\
                 for name in names:\n\
                 \x20 for kind in (socket.SOCK_SEQPACKET, socket.SOCK_STREAM, socket.SOCK_DGRAM):\n\
                 \x20  try:\n\
                 \x20   s=socket.socket(socket.AF_UNIX,kind); s.connect('\\0'+name); print('entered')\n\
                 \x20   s.send(frame)\n\
                 \x20  except OSError as e: pass\n\
                 for words in (['grant','other',rule],['grant','attacker',rule],['grant','attacker',rule,'--once'],['revoke','other','--all'],['reload','other'],['reload','attacker'],['policy','show','--of','other']):\n\
                 \x20 for before in ([],['setsid']):\n\
                 \x20  p=subprocess.run(before+[{program:?}]+words,capture_output=True)\n\
                 \x20  print('status', p.returncode)\n\
                 for path in glob.glob('/proc/[0-9]*/fd/*'):\n\
                 \x20 try:\n\
                 \x20  if os.readlink(path).startswith('socket:'): open(path,'wb').write(frame); print('written')\n\
                 \x20 except OSError: pass\n\
                 print('ready', flush=True)\n\
                 for line in iter(input,''):\n\
                 \x20 p=subprocess.run(['curl','-s','-m','20','-o','/dev/null','-w','%{{http_code}}','http://b.example:8080/'],capture_output=True)\n\
                 \x20 print('got', p.stdout.decode(), flush=True)\n"
            ));
            let (attacker, own_record) = (lab.sandbox(identity), lab.folder("attacker", identity).join("record.jsonl"));
            let mut run = attacker
                .option("--name", "attacker")
                .option("--audit", &own_record.to_string_lossy())
                .pin("b.example=192.0.2.2")
                .with_input()
                .start(&attack);
            let said = run.wait_for("ready");
            assert!(!said.contains("entered") && !said.contains("written"), "{said}");
            assert_eq!(said.matches("status ").count(), 14, "{said}");
            assert_eq!(said.matches("status 1\n").count(), 14, "{said}");
            run.say("go\n");
            run.wait_for("got 403");
            assert_eq!(other.get(B), "403");
            for record in [&record, &own_record] {
                assert!(policies(record).is_empty(), "{:?}", policies(record));
            }
            run.end_input();
            assert!(!run.finish().stderr.contains("outgate: policy"));
            other.end();
            std::fs::remove_file(record).expect("a record");
        }
    }

    fn another_user_changes_nothing(lab) {
        if Identity::all().len() < 2 {
            return outgate_harness::skip("one account");
        }
        let _origin = Origin::start(8080);
        let (sandbox, _) = private(lab, Identity::Own);
        let mut run = Asker::start(sandbox, "agent");
        let pid = run.run.pid().to_string();
        for name in ["agent", &pid] {
            let outcome = outgate(lab, Identity::Nobody, &["grant", name, "http://b.example:8080"]);
            refused(&outcome, "no run of yours");
        }
        // Nor by speaking to the launcher itself.
        let ask = python(
            "import socket,struct\n\
             rule=b'http://b.example:8080'\n\
             body=struct.pack('<I',len(rule))+rule+struct.pack('<IB',0,0)\n\
             for line in open('/proc/net/unix'):\n\
             \x20 if '@outgate-run-0-' in line:\n\
             \x20  s=socket.socket(socket.AF_UNIX,socket.SOCK_SEQPACKET)\n\
             \x20  s.connect('\\0'+line.split('@')[1].strip())\n\
             \x20  s.settimeout(5)\n\
             \x20  try: s.send(struct.pack('<HHIQ',203,0,len(body),0)+body); print('answer', s.recv(9999))\n\
             \x20  except OSError as e: print('closed')\n\
             print('asked')",
        );
        let outcome = lab.start_bare(Identity::Nobody, &ask).finish();
        assert!(outcome.stdout.contains("asked"), "{outcome}");
        assert!(outcome.stdout.contains("answer b''\n") || outcome.stdout.contains("closed"), "{outcome}");
        assert_eq!(run.get(B), "403");
        // Root may, whose run it is not.
        let (theirs, _) = private(lab, Identity::Nobody);
        let mut theirs = Asker::start(theirs, "theirs");
        done(&own(lab, &["grant", "theirs", "http://b.example:8080"]));
        assert_eq!(theirs.get(B), "200");
        assert!(theirs.end().stderr.contains("(user 0)"));
        run.end();
    }

    fn a_flood_of_grants_is_bounded_and_stops_nothing(lab) {
        let _origin = Origin::start(8080);
        let (sandbox, record) = private(lab, Identity::Own);
        let mut run = Asker::start(sandbox.allow("http://a.example:8080"), "agent");
        let flood = python(
            "import socket,struct,threading\n\
             name=[line.split('@')[1].strip() for line in open('/proc/net/unix') if '@outgate-run-' in line][0]\n\
             answers={212:0,213:0}\n\
             def one(number):\n\
             \x20 rule=b'http://h%d.example:8080' % number\n\
             \x20 body=struct.pack('<I',len(rule))+rule+struct.pack('<IB',0,0)\n\
             \x20 s=socket.socket(socket.AF_UNIX,socket.SOCK_SEQPACKET); s.settimeout(30)\n\
             \x20 s.connect('\\0'+name)\n\
             \x20 s.send(struct.pack('<HHIQ',203,0,len(body),0)+body)\n\
             \x20 answers[struct.unpack('<H',s.recv(9999)[:2])[0]]+=1\n\
             def many(first):\n\
             \x20 for number in range(first,first+1250): one(number)\n\
             all=[threading.Thread(target=many,args=(first,)) for first in range(0,10000,1250)]\n\
             for one_thread in all: one_thread.start()\n\
             for one_thread in all: one_thread.join()\n\
             print('granted', answers[212], 'refused', answers[213])",
        );
        let flood = lab.start_bare(Identity::Own, &flood);
        assert_eq!(run.get(A), "200");
        let outcome = flood.finish();
        assert!(outcome.stdout.contains("granted 64 refused 9936"), "{outcome}");
        assert_eq!(run.get(A), "200");
        refused(&own(lab, &["grant", "agent", "http://b.example:8080"]), "64 rules are granted already");
        done(&own(lab, &["revoke", "agent", "--all"]));
        done(&own(lab, &["grant", "agent", "http://b.example:8080"]));
        assert_eq!(run.get(B), "200");
        assert_eq!(policies(&record).len(), 66);
        run.end();
    }

    fn a_grant_lets_nobody_to_what_it_does_not_name(lab) {
        let _origin = Origin::start(8080);
        let (sandbox, _) = private(lab, Identity::Own);
        let sandbox = sandbox.pin("c.example=192.0.2.7").deny("http://b.example:8080");
        let mut run = Asker::start(sandbox, "agent");
        done(&own(lab, &["grant", "agent", "http://*:*"]));
        // Nor to what a deny rule names.
        for url in ["http://169.254.169.254/latest", "http://127.0.0.1:8080/", "http://10.0.0.1:8080/", "http://localhost:8080/", B] {
            assert_eq!(run.get(url), "403", "{url}");
        }
        done(&own(lab, &["grant", "agent", "http://127.0.0.1:8080"]));
        assert_eq!(run.get("http://127.0.0.1:8080/"), "200");
        assert_eq!(run.get("http://169.254.169.254/latest"), "403");
        run.end();
    }

    fn a_shared_gateway_bounds_what_is_granted_below_it(lab) {
        let _origin = Origin::start(8080);
        let gate = Gate::start(lab, Identity::Own, &Plan::new(&[
            "-a", "http://a.example:8080", "-a", "http://b.example:8080/x",
            "--resolve", "a.example=192.0.2.1", "--resolve", "b.example=192.0.2.2",
        ]));
        for identity in Identity::all() {
            let mut run = Asker::start(gate.sandbox(lab, identity).allow("http://a.example:8080/x"), "agent");
            assert_eq!((run.get(A), run.get(B)), ("200".to_owned(), "403".to_owned()));
            refused(&outgate(lab, identity, &["grant", "agent", "http://b.example:8080"]), "more than the gateway's policy allows");
            refused(&outgate(lab, identity, &["grant", "agent", "*"]), "more than the gateway's policy allows");
            assert_eq!(run.get(B), "403");
            done(&outgate(lab, identity, &["grant", "agent", "http://b.example:8080/x"]));
            assert_eq!(run.get(B), "200");
            assert_eq!(run.get("http://b.example:8080/y"), "403");
            done(&outgate(lab, identity, &["revoke", "agent", "--all"]));
            assert_eq!((run.get(A), run.get(B)), ("200".to_owned(), "403".to_owned()));
            run.end();
            // One that names no rules has all of it already.
            let mut run = Asker::start(gate.sandbox(lab, identity), "agent");
            assert_eq!(run.get(A), "200");
            refused(&outgate(lab, identity, &["grant", "agent", "http://a.example:8080"]), "nothing is left to grant");
            assert_eq!(run.get(A), "200");
            run.end();
        }
        let granted = gate.records().into_iter().filter(|record| record["kind"] == "policy");
        assert_eq!(granted.count(), 2 * Identity::all().len());
    }

    fn policy_files_are_read_again_whole_or_not_at_all(lab) {
        let _origin = Origin::start(8080);
        let (sandbox, record) = private(lab, Identity::Own);
        let file = lab.folder("policy", Identity::Own).join("agent.toml");
        let write = |text: &str| std::fs::write(&file, text).expect("a file");
        write("allow = [\"http://a.example:8080\"]\n");
        let mut run = Asker::start(sandbox.option("-p", &file.to_string_lossy()), "agent");
        assert_eq!((run.get(A), run.get(B)), ("200".to_owned(), "403".to_owned()));
        done(&own(lab, &["grant", "agent", "http://b.example:8080/y"]));
        write("allow = [\"http://b.example:8080/x\"]\n");
        let reloaded = own(lab, &["reload", "agent"]);
        done(&reloaded);
        for part in ["policy 3: the policy files were read again: ", "allowed now, and not before:", "allow `http://b.example:8080/x`", "allowed before, and not now:", "allow `http://a.example:8080`"] {
            assert!(reloaded.stdout.contains(part), "{part}: {reloaded}");
        }
        assert_eq!((run.get(A), run.get(B)), ("403".to_owned(), "200".to_owned()));
        // What was granted holds on.
        assert_eq!(run.get("http://b.example:8080/y"), "200");
        for (text, word) in [
            ("allow = [\"http://*.com\"]\n", "agent.toml:1"),
            ("allow = [\"http://a.example", "agent.toml:1"),
            ("allow = [\"http://a.example:8080\"]\n[filesystem]\nwrite = [\"/opt\"]\n", "`filesystem.write` is laid down when a run starts"),
            ("allow = [\"http://a.example:8080\"]\n[limits]\nprocesses = 100000\n", "`limits.processes` is laid down"),
            ("allow = [\"http://a.example:8080\"]\n[audit]\nfile = \"/tmp/other\"\n", "`audit.file` is laid down"),
        ] {
            write(text);
            refused(&own(lab, &["reload", "agent"]), word);
            assert_eq!((run.get(A), run.get(B)), ("403".to_owned(), "200".to_owned()), "{text}");
        }
        std::fs::remove_file(&file).expect("a file");
        refused(&own(lab, &["reload", "agent"]), "agent.toml");
        assert_eq!(run.get(B), "200");
        assert_eq!(policies(&record).len(), 2);
        run.end();
    }
}
