//! What other threads of a process do while one of its calls is held: they
//! execute another program, or take away what keeps a call from waiting.

use std::process::Command;
use std::time::{Duration, Instant};

use outgate_harness::audit::{records, text};
use outgate_harness::{Identity, Lab, Witness, is_quick, lab_tests};

lab_tests! {
    fn a_connection_is_never_another_programs(lab) {
        // Nothing can be loaded into a program that is linked statically, and the
        // command may not write to it.
        let named = lab.tool("stdio");
        let witness = Witness::start(&lab.directory);
        let policy = lab.directory.join("policy.toml");
        let text_of = format!(
            "[[allow]]\nrule = \"tcp://{}\"\nprocess = [\"{named}\"]\n",
            witness.address()
        );
        std::fs::write(&policy, text_of).expect("a policy");
        let tries = if is_quick() { "500" } else { "4000" };
        for identity in Identity::all() {
            let audit = lab.folder("audit", identity).join("audit.jsonl");
            let outcome = lab
                .sandbox(identity)
                .option("-p", &policy.to_string_lossy())
                .option("--audit", &audit.to_string_lossy())
                .probe(&["execrace", &witness.address(), &named, tries]);
            let what = format!("{identity:?} {outcome}");
            witness.assert_untouched(&what);
            assert_eq!(outcome.number("won="), 0, "{what}");
            let (tries, answered) = (outcome.number("tries="), outcome.number("answered="));
            assert!(answered > tries / 10 && answered < tries, "the race was run: {what}");
            // The record says what was run, which is the probe and nothing else.
            let all = records(&audit);
            let other = all.iter().find(|record| {
                !text(record, "executable").is_empty() && text(record, "executable") == named
            });
            assert!(other.is_none(), "{other:?} {what}");
            assert!(all.len() > 10, "{what}");
        }
    }

    fn a_full_queue_does_not_hold_the_supervisor(lab) {
        others_go_on(lab, "tcp");
    }

    fn a_full_unix_queue_does_not_hold_the_supervisor(lab) {
        others_go_on(lab, "unix");
    }

    fn a_lingering_close_does_not_hold_the_supervisor(lab) {
        others_go_on(lab, "linger");
    }

    fn a_terminal_that_the_command_stops_does_not_hold_the_supervisor(lab) {
        let driver = lab.folder("given", Identity::Own).join("terminal.py");
        std::fs::write(&driver, include_str!("../programs/clients/terminal.py")).expect("the driver");
        for identity in Identity::all() {
            let words = ["python3", "-c", STOPPED].map(str::to_owned);
            let run = lab
                .sandbox(identity)
                .wrap(&["/usr/bin/python3", &driver.to_string_lossy()])
                .limit(Duration::from_secs(30))
                .with_input()
                .start(&words);
            // The line about the denial is said as soon as the terminal takes it.
            let output = run.wait_for("own 0");
            assert!(output.contains("denied 111"), "{identity:?} {output}");
            run.wait_for("outgate: denied connection");
            run.finish();
        }
    }

    fn a_run_that_holds_its_supervisor_ends_at_its_time(lab) {
        for (identity, way) in Identity::all().into_iter().zip(["tcp", "unix"]) {
            let policy = lab.directory.join("time.toml");
            std::fs::write(&policy, "[limits]\nwall_time = \"2s\"\n").expect("a policy");
            let began = Instant::now();
            let outcome = lab
                .sandbox(identity)
                .option("-p", &policy.to_string_lossy())
                .limit(Duration::from_mins(1))
                .run(&freeze(lab, identity, way, "120000"));
            let took = began.elapsed();
            assert!(outcome.code.is_some_and(|code| code != 0), "{identity:?} {outcome}");
            assert!(took < ENDED_MAX, "{identity:?} {took:?} {outcome}");
        }
    }

    fn a_run_that_holds_its_supervisor_is_killed_by_name(lab) {
        for (identity, way) in Identity::all().into_iter().zip(["unix", "tcp"]) {
            let run = lab
                .sandbox(identity)
                .option("--name", "frozen")
                .limit(Duration::from_mins(1))
                .start(&freeze(lab, identity, way, "120000"));
            run.wait_for("round=12\n");
            let began = Instant::now();
            let mut kill = identity.prefix();
            kill.push(lab.tools.programs.join("outgate").to_string_lossy().into_owned());
            kill.extend(["kill", "frozen"].map(str::to_owned));
            let (program, arguments) = kill.split_first().expect("a command");
            let killed = Command::new(program)
                .args(arguments)
                .env("XDG_RUNTIME_DIR", lab.folder("run", identity))
                .output()
                .expect("outgate kill");
            assert!(killed.status.success(), "{identity:?} {killed:?}");
            let outcome = run.finish();
            let took = began.elapsed();
            assert!(took < ENDED_MAX, "{identity:?} {took:?} {outcome}");
        }
    }
}

/// Stops the terminal, has the launcher say something there, and connects.
const STOPPED: &str = "
import socket, termios
server = socket.socket(); server.bind(('127.0.0.1', 0)); server.listen(9)
def to(address):
    with socket.socket() as client: return client.connect_ex(address)
termios.tcflow(2, termios.TCOOFF)
denied, own = to(('127.0.0.1', 9)), to(server.getsockname())
termios.tcflow(2, termios.TCOON)
print('denied', denied, 'own', own)
";

/// How soon a run ends whose time is over, or that is killed: that it may say
/// goodbye takes five seconds of it.
const ENDED_MAX: Duration = Duration::from_secs(12);
/// The longest time another process of a run waits while one attacks: a thousand
/// times what a connection of its own takes, because machines that test are busy.
const OTHERS_US_MAX: i64 = 1_000_000;

/// The attack, and another process of the run beside it.
fn freeze(lab: &Lab, identity: Identity, way: &str, time: &str) -> Vec<String> {
    let scratch = lab.folder("work", identity);
    std::fs::remove_file(scratch.join("full")).ok();
    lab.probe(&["freeze", way, time, &scratch.to_string_lossy()])
}

fn others_go_on(lab: &Lab, way: &str) {
    let time = if is_quick() { "1500" } else { "5000" };
    for identity in Identity::all() {
        let outcome = lab
            .sandbox(identity)
            .limit(Duration::from_mins(1))
            .run(&freeze(lab, identity, way, time));
        let longest = outcome.number("longest_us=");
        assert!(longest < OTHERS_US_MAX, "{way} {identity:?} {outcome}");
        assert!(
            outcome.number("connects=") > 100,
            "{way} {identity:?} {outcome}"
        );
    }
}
