//! Denials where they are read: by an agent in a file, by a person on a terminal, and
//! never in the middle of a program's screen.

use std::fs;

use outgate_harness::{Identity, Sandbox, lab_tests};

use crate::{home, project, run, write};

/// Draws a screen in raw mode, is denied something meanwhile, and leaves.
const DRAWS: &str = r#"
import os, subprocess, sys, termios, tty
before = termios.tcgetattr(0)
tty.setraw(0)
os.write(1, b"SCREEN-BEGINS\r\n")
subprocess.run(["curl", "-s", "-o", os.devnull, "http://denied.example/drawn"])
os.write(1, b"SCREEN-ENDS\r\n")
termios.tcsetattr(0, termios.TCSANOW, before)
"#;

/// Runs a command in a terminal of its own and copies what it shows.
const TERMINAL: &str = "import pty, sys; sys.exit(pty.spawn(sys.argv[1:]) >> 8)";

lab_tests! {
    fn an_agent_reads_what_its_client_hides(lab) {
        for identity in Identity::all() {
            let work = project(lab, identity, "p");
            let script = "test ! -e $OUTGATE_DENIALS || exit 9; \
                          curl -s -o /dev/null http://denied.example/a; \
                          curl -s -o /dev/null https://denied.example/b; \
                          curl -s telnet://denied.example:5432; cat $OUTGATE_DENIALS";
            let outcome = run(lab, identity, &work, script);
            for part in ["GET http://denied.example/a", "GET https://denied.example/b", "denied.example:5432", "to allow: -a"] {
                assert!(outcome.stdout.contains(part), "{part}\n{outcome}");
            }
        }
    }

    fn nothing_of_the_commands_is_written_through(lab) {
        for identity in Identity::all() {
            let work = project(lab, identity, "p");
            let victim = home(lab, identity).join("victim");
            write(&victim, "as it was\n", identity);
            for plant in ["ln -s", "ln"] {
                let script = format!("{plant} {} $OUTGATE_DENIALS; curl -s http://denied.example/", victim.display());
                run(lab, identity, &work, &script);
                assert_eq!(fs::read_to_string(&victim).expect("a file"), "as it was\n", "{plant}");
            }
            let script = "mkfifo $OUTGATE_DENIALS; curl -s http://denied.example/; echo on";
            let outcome = run(lab, identity, &work, script);
            assert!(outcome.stdout.ends_with("on\n"), "{outcome}");
        }
    }

    fn nothing_is_written_over_a_programs_screen(lab) {
        for identity in Identity::all() {
            let work = project(lab, identity, "p");
            write(&work.join("draws.py"), DRAWS, identity);
            let sandbox = Sandbox::plain(lab, identity).within(work.clone());
            let sandbox = sandbox.wrap(&["/usr/bin/python3", "-c", TERMINAL]).inherit_input();
            let outcome = sandbox.run(&["/usr/bin/python3", "draws.py"].map(str::to_owned));
            let (_, shown) = outcome.stdout.split_once("SCREEN-BEGINS").expect("a screen");
            let (screen, after) = shown.split_once("SCREEN-ENDS").expect("its end");
            assert!(!screen.contains("outgate"), "{outcome}");
            assert!(after.contains("denied GET http://denied.example/drawn"), "{outcome}");
        }
    }
}
