//! What a person reads who wrote something wrongly, or met what no command can do here: each
//! hint is followed as it is written.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use outgate_harness::origin::Origin;
use outgate_harness::{Identity, Lab, Outcome, Sandbox, lab_tests};

use crate::{home, project, run, write};

/// `outgate WORDS…`, as the account.
fn outgate(lab: &Lab, identity: Identity, words: &[&str]) -> Outcome {
    let home = format!("HOME={}", home(lab, identity).display());
    let program = lab.tools.programs.join("outgate");
    let mut line = vec![
        "env".to_owned(),
        home,
        program.to_string_lossy().into_owned(),
    ];
    line.extend(words.iter().map(|&word| word.to_owned()));
    lab.start_bare(identity, &line).finish()
}

/// A server of the user's that echoes what it gets, and speaks no HTTP.
fn echo(port: u16) {
    let listener = TcpListener::bind(("127.0.0.1", port)).expect("a listener");
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut bytes = [0; 64];
            while let Ok(count @ 1..) = stream.read(&mut bytes) {
                if stream
                    .write_all(bytes.get(..count).unwrap_or_default())
                    .is_err()
                {
                    break;
                }
            }
        }
    });
}

lab_tests! {
    fn who_leaves_out_a_word_is_told_it(lab) {
        for identity in Identity::all() {
            for (words, status, said) in [
                (&["true"][..], 2, "To run a program: outgate run -- true"),
                (&["-P", "github", "--", "git", "a b"], 2, "To run a program: outgate run -P github -- git 'a b'"),
                (&["run"], 2, "outgate run -- make test"),
                (&["run", "-P", "claude", "--", "true"], 2, "there is no shipped policy `claude`; did you mean `claude-code`?"),
                (&["run", "-P", "gihtub", "--", "true"], 2, "did you mean `github`?"),
                (&["run", "-P", "something", "--", "true"], 2, "there are: aider, "),
                (&["run", "--", "echo hi"], 127, "(`outgate run -- echo hi`)"),
                (&["run", "-w", "~/absent", "--", "true"], 2, "made where its path ends in `/`"),
                (&["run", "--", "nowhere"], 127, "`nowhere` is not found"),
                (&["run", "--alow", "x", "--", "true"], 2, "'--allow'"),
                (&["help", "run"], 0, ""),
            ] {
                let outcome = outgate(lab, identity, words);
                assert_eq!(outcome.code, Some(status), "{words:?}: {outcome}");
                assert!(outcome.stderr.contains(said), "{words:?}: {outcome}");
            }
            assert!(outgate(lab, identity, &["help", "run"]).stdout.contains("Usage: outgate run"));
            assert_eq!(outgate(lab, identity, &["run", "-w", "~/absent/", "--", "true"]).code, Some(0));
        }
    }

    fn a_hidden_program_names_what_shows_it(lab) {
        for identity in Identity::all() {
            let work = project(lab, identity, "p");
            let packages = home(lab, identity).join("packages");
            write(&packages.join("tool/main"), "#!/bin/sh\n. \"$(dirname \"$0\")/../tool/part\"\n", identity);
            write(&packages.join("tool/part"), "echo ran\n", identity);
            fs::set_permissions(packages.join("tool/main"), fs::Permissions::from_mode(0o755)).expect("a mode");
            write(&packages.join("bin/keep"), "", identity);
            symlink("../tool/main", packages.join("bin/tool")).expect("a link");
            let path = format!("/usr/bin:/bin:{}/bin", packages.display());
            let sandbox = || Sandbox::plain(lab, identity).within(work.clone()).environment("PATH", &path);
            let outcome = sandbox().run(&["tool".to_owned()]);
            assert_eq!(outcome.code, Some(126), "{outcome}");
            let shown = packages.to_string_lossy();
            assert!(outcome.stderr.contains(&format!("`-r {shown}` grants its directory")), "{outcome}");
            let outcome = sandbox().option("-r", &shown).run(&["tool".to_owned()]);
            assert_eq!(outcome.stdout, "ran\n", "{outcome}");
        }
    }

    fn a_server_of_the_users_is_reached_by_following_the_hints(lab) {
        let origin = Origin::start(9999);
        echo(9998);
        for identity in Identity::all() {
            let work = project(lab, identity, "p");
            let outcome = run(lab, identity, &work, "curl -sS http://localhost:9999/x");
            let hint = "to allow: -a 'http://localhost:9999'";
            assert!(outcome.stderr.contains(hint), "{outcome}");
            let sandbox = |rule: &str| Sandbox::plain(lab, identity).within(work.clone()).allow(rule);
            let curl = ["curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}", "http://localhost:9999/x"];
            let outcome = sandbox("http://localhost:9999").run(&curl.map(str::to_owned));
            assert_eq!(outcome.stdout, "200", "{outcome}");
            // One that turns out to speak something else says so.
            let talk = "import socket; s = socket.create_connection(('127.0.0.1', 9998)); s.sendall(b'\\x01ping\\n'); print(s.recv(9))";
            let talk = ["/usr/bin/python3", "-c", talk].map(str::to_owned);
            let outcome = Sandbox::plain(lab, identity).within(work.clone()).run(&talk);
            assert!(outcome.stderr.contains("to allow: -a 'http://localhost:9998'"), "{outcome}");
            let outcome = sandbox("http://localhost:9998").run(&talk);
            assert!(outcome.stderr.contains("(not HTTP); to allow: -a 'tcp://localhost:9998'"), "{outcome}");
            let outcome = sandbox("tcp://localhost:9998").run(&talk);
            assert_eq!(outcome.stdout, "b'\\x01ping\\n'\n", "{outcome}");
            // A port that is known for something else says so at once.
            let outcome = run(lab, identity, &work, "curl -sS http://localhost:5432/");
            assert!(outcome.stderr.contains("to allow: -a 'tcp://localhost:5432'"), "{outcome}");
        }
        assert!(origin.connections() > 0);
    }

    fn what_starts_programs_for_others_is_warned_of(lab) {
        for identity in Identity::all() {
            let starts = ["can be root on this machine", "has programs run outside the sandbox"];
            for (socket, expected) in [("/run/docker.sock", Some(starts[0])), ("/tmp/tmux-1000/default", Some(starts[1])), ("/tmp/ssh-x/agent.1", None)] {
                let work = project(lab, identity, "p");
                let outcome = Sandbox::plain(lab, identity).within(work).allow(&format!("unix://{socket}")).run(&["true".to_owned()]);
                let found = starts.into_iter().find(|words| outcome.stderr.contains(words));
                assert_eq!(found, expected, "{socket}: {outcome}");
            }
        }
    }

    fn the_first_namespace_that_is_refused_is_told_with_what_to_do(lab) {
        for identity in Identity::all() {
            let work = project(lab, identity, "p");
            let script = "unshare -U true; unshare -n true; unshare -m true; cat $OUTGATE_DENIALS; echo end";
            let sandbox = || Sandbox::plain(lab, identity).within(work.clone());
            let script = ["sh", "-c", script].map(str::to_owned);
            let outcome = sandbox().run(&script);
            assert!(outcome.stdout.ends_with("end\n"), "{outcome}");
            assert_eq!(outcome.stderr.matches("unshare failed: Operation not permitted").count(), 3, "{outcome}");
            let line = "outgate: denied a namespace to `unshare`: ";
            for text in [&outcome.stderr, &outcome.stdout] {
                assert_eq!(text.matches(line).count(), 1, "{outcome}");
            }
            assert!(outcome.stderr.contains("--no-sandbox"), "{outcome}");
            // A policy that knows the program says how.
            let outcome = sandbox().option("-P", "claude-code").run(&script);
            assert_eq!(outcome.stderr.matches(line).count(), 1, "{outcome}");
            assert!(outcome.stderr.contains("leave `sandbox.enabled` false"), "{outcome}");
            // Who makes processes and threads is told nothing.
            let outcome = sandbox().run(&["sh", "-c", "sh -c true & wait; python3 -c 'import threading as t; t.Thread().start()'"].map(str::to_owned));
            assert!(!outcome.stderr.contains("namespace"), "{outcome}");
        }
    }

    fn datagrams_that_go_nowhere_are_an_error_and_are_told(lab) {
        for identity in Identity::all() {
            let work = project(lab, identity, "p");
            let said = |script: &str| {
                let command = ["/usr/bin/python3", "-c", script].map(str::to_owned);
                Sandbox::plain(lab, identity).within(work.clone()).run(&command)
            };
            let begin = "import socket, time\ns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\ns.settimeout(3)\n";
            let sends = format!("{begin}try: s.sendto(b'x', ('192.0.2.7', 8125))\nexcept OSError as error: print(error.errno)");
            let outcome = said(&sends);
            assert_eq!(outcome.stdout, "101\n", "{outcome}");
            assert!(outcome.stderr.contains("outgate: denied 1 datagram (UDP"), "{outcome}");
            let connects = format!("{begin}s.connect(('192.0.2.7', 443))\ntry:\n  s.send(b'x')\n  s.recv(9)\nexcept OSError as error: print(error.errno)");
            let outcome = said(&connects);
            assert_eq!(outcome.stdout, "111\n", "{outcome}");
            assert!(outcome.stderr.contains("outgate: denied 1 datagram (UDP"), "{outcome}");
            // Who asks for an own address, or talks to itself, sends nothing away.
            let quiet = format!("{begin}s.connect(('192.0.2.7', 443))\nprint(s.getsockname()[1] > 0)\n\
                a = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\na.bind(('127.0.0.1', 0))\nb = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n\
                b.sendto(b'x', a.getsockname())\nprint(a.recv(9))\nsocket.getaddrinfo('a.example', 443)");
            let outcome = said(&quiet);
            assert!(outcome.stdout.contains("b'x'"), "{outcome}");
            assert!(!outcome.stderr.contains("datagram"), "{outcome}");
        }
    }

    fn a_terminals_server_is_not_in_the_way(lab) {
        for identity in Identity::all() {
            let work = project(lab, identity, "p");
            let sandbox = || Sandbox::plain(lab, identity).within(work.clone()).environment("TMUX", "/tmp/tmux-1/default,1,0");
            let ask = ["sh", "-c", "echo ${TMUX:-none}"].map(str::to_owned);
            assert_eq!(sandbox().run(&ask).stdout, "none\n");
            assert_eq!(sandbox().option("--pass-env", "TMUX").run(&ask).stdout, "/tmp/tmux-1/default,1,0\n");
        }
    }
}
