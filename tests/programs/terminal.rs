//! Interactive use under a pseudo-terminal: the sandbox in the foreground of a
//! terminal, as a job of an interactive shell, and a shell inside it with jobs
//! of its own. As if the command ran unwrapped.

use std::process::Command;
use std::time::Duration;

use outgate_harness::leftovers::{Before, processes};
use outgate_harness::{Identity, Lab, Running, lab_tests};

use crate::servers::is_there;
use crate::{bash, confined, words};

/// Signals a person or a service manager sends to a program, with numbers.
pub(crate) const SIGNALS: [(&str, i32); 6] = [
    ("TERM", 15),
    ("HUP", 1),
    ("INT", 2),
    ("QUIT", 3),
    ("USR1", 10),
    ("USR2", 12),
];

/// An interactive shell that reads no file and shows a prompt nobody else shows.
const SHELL: [&str; 4] = ["bash", "--norc", "--noprofile", "-i"];

/// Longest time of a session in a terminal, far more than any takes.
const INSIDE_SECONDS_MAX: u64 = 30;

/// Sends a signal by its name.
pub(crate) fn send(pid: i32, signal: &str) {
    let sent = Command::new("kill")
        .args([&format!("-{signal}"), &pid.to_string()])
        .status();
    assert!(
        sent.is_ok_and(|status| status.success()),
        "{signal} to {pid}"
    );
}

/// The driver of the terminal, where every account can read it.
fn driver(lab: &Lab) -> String {
    let file = lab.folder("given", Identity::Own).join("terminal.py");
    std::fs::write(&file, include_str!("clients/terminal.py")).expect("the driver");
    file.to_string_lossy().into_owned()
}

/// Starts `command` confined, in a terminal.
fn inside(lab: &Lab, identity: Identity, command: &[&str]) -> Running {
    let sandbox = confined(lab, identity).environment("TERM", "dumb");
    let sandbox = sandbox.environment("PS1", "in> ");
    let driven = sandbox.wrap(&["/usr/bin/python3", &driver(lab)]);
    let limit = Duration::from_secs(INSIDE_SECONDS_MAX);
    driven.with_input().limit(limit).start(&words(command))
}

/// Starts an interactive shell in a terminal, bare, in which `og` stands for
/// `outgate run -w . --`.
fn outside(lab: &Lab, identity: Identity) -> Running {
    let mut line = words(&[
        "env",
        "TERM=dumb",
        "PS1=out> ",
        "/usr/bin/python3",
        &driver(lab),
    ]);
    line.extend(words(&SHELL));
    let mut run = lab.start_bare(identity, &line);
    run.wait_for("out> ");
    let outgate = lab.tools.programs.join("outgate");
    run.say(&format!(
        "og() {{ {} run -- \"$@\"; }}\n",
        outgate.display()
    ));
    run.wait_for_count("out> ", 2);
    run
}

/// Processes called `name`, with their states.
fn states(name: &str) -> Vec<char> {
    let all = processes().into_iter();
    all.filter(|process| process.name == name)
        .map(|process| process.state)
        .collect()
}

/// Waits until every process called `name` is in one of `states`.
fn assert_becomes(name: &str, wanted: &[char], place: &str) {
    let limit = Duration::from_secs(5);
    let is = || {
        let now = states(name);
        !now.is_empty() && now.iter().all(|state| wanted.contains(state))
    };
    let became = outgate_harness::eventually(limit, is);
    assert!(
        became,
        "{place}: {name} is {:?}, not {wanted:?}",
        states(name)
    );
}

/// Waits until a process called `name` runs in the foreground of its terminal:
/// only then a key for it reaches it, and not the shell.
fn assert_in_front(name: &str, place: &str) {
    let is_in_front = |pid: i32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let after = stat.rsplit_once(')').map_or("", |(_, after)| after);
        // State, parent, group, session, terminal, the terminal's foreground group.
        let fields: Vec<&str> = after.split_whitespace().collect();
        fields.first() == Some(&"S") && fields.len() > 5 && fields[2] == fields[5]
    };
    let is = || {
        let all = processes().into_iter();
        all.filter(|process| process.name == name)
            .any(|process| is_in_front(process.pid))
    };
    let became = outgate_harness::eventually(Duration::from_secs(5), is);
    assert!(
        became,
        "{place}: {name} is {:?}, not in front",
        states(name)
    );
}

/// Waits until no process is called `name`.
fn assert_gone(name: &str, place: &str) {
    let gone = outgate_harness::eventually(Duration::from_secs(5), || states(name).is_empty());
    assert!(gone, "{place}: {name} is {:?}", states(name));
}

/// Says a line and waits for what it prints, which must not stand in the line.
fn ask(run: &mut Running, line: &str, answer: &str) {
    run.say(&format!("{line}\n"));
    run.wait_for(answer);
}

lab_tests! {
    fn a_command_sees_its_terminal(lab) {
        for identity in Identity::all() {
            let run = inside(lab, identity, &["bash", "-c", "test -t 0 && test -t 1 && test -t 2 && echo all-three; stty size; tty; : < /dev/tty && echo opened; exit 7"]);
            run.wait_for("all-three");
            run.wait_for("24 80");
            run.wait_for("/dev/pts/");
            run.wait_for("opened");
            let run = wait(run);
            assert_eq!(run.code, Some(7), "{identity:?} {run}");
        }
    }

    fn a_resize_arrives(lab) {
        for identity in Identity::all() {
            let mut run = inside(lab, identity, &["bash", "-c", "trap 'stty size; exit' WINCH; echo ready; while :; do sleep 0.05; done"]);
            run.wait_for("ready");
            run.say("\u{0}33x101\n");
            run.wait_for("33 101");
            let outcome = wait(run);
            assert_eq!(outcome.code, Some(0), "{identity:?} {outcome}");
        }
    }

    fn control_c_ends_the_command(lab) {
        for identity in Identity::all() {
            let mut run = inside(lab, identity, &["bash", "-c", "echo ready; exec sleep 100"]);
            run.wait_for("ready");
            assert_in_front("sleep", "it runs");
            run.say("\u{3}");
            let outcome = wait(run);
            assert_eq!(outcome.code, Some(130), "{identity:?} {outcome}");
        }
    }

    fn control_c_arrives_once(lab) {
        for identity in Identity::all() {
            let script = "import os, signal, time\ncount = 0\ndef got(*_):\n    global count; count += 1; os.write(1, b'got %d\\n' % count)\nsignal.signal(signal.SIGINT, got)\nos.write(1, b'ready\\n')\nend = time.monotonic() + 1.5\nwhile time.monotonic() < end: time.sleep(0.1)\nprint('total', count)\n";
            let mut run = inside(lab, identity, &["python3", "-c", script]);
            run.wait_for("ready");
            run.say("\u{3}");
            run.wait_for("got 1");
            run.wait_for("total 1");
            assert_eq!(wait(run).code, Some(0), "{identity:?}");
        }
    }

    fn a_shell_inside_has_jobs(lab) {
        for identity in Identity::all() {
            let mut run = inside(lab, identity, &SHELL);
            run.wait_for("in> ");
            ask(&mut run, "sleep 321 & jobs -l | sed s/321/=job=/", "sleep =job=");
            run.say("fg\n");
            assert_in_front("sleep", "fg inside");
            run.say("\u{1a}");
            run.wait_for("Stopped");
            assert_becomes("sleep", &['T'], "Ctrl-Z inside");
            run.say("bg\n");
            assert_becomes("sleep", &['S'], "bg inside");
            run.say("fg\n");
            assert_in_front("sleep", "fg again inside");
            run.say("\u{3}");
            assert_gone("sleep", "Ctrl-C inside");
            ask(&mut run, "echo still-$((40 + 2))", "still-42");
            ask(&mut run, "sleep 322 & kill %1; wait %1; echo ended-$?", "ended-143");
            // Nothing of that left the shell inside: no complaint, no warning.
            assert!(!run.output().contains("no job control"), "{}", run.output());
            run.say("exit 5\n");
            let outcome = wait(run);
            assert_eq!(outcome.code, Some(5), "{identity:?} {outcome}");
        }
    }

    fn control_z_stops_the_whole_run_and_fg_continues_it(lab) {
        for identity in Identity::all() {
            let mut run = outside(lab, identity);
            run.say("og sleep 100\n");
            assert_in_front("sleep", "it runs");
            run.say("\u{1a}");
            run.wait_for("Stopped");
            assert_becomes("sleep", &['T'], "Ctrl-Z");
            assert_becomes("outgate", &['T'], "Ctrl-Z");
            ask(&mut run, "echo prompt-$((1 + 1))", "prompt-2");
            run.say("fg\n");
            assert_in_front("sleep", "fg");
            run.say("\u{1a}");
            run.wait_for_count("Stopped", 2);
            run.say("bg\n");
            assert_becomes("sleep", &['S'], "bg");
            run.say("fg\n");
            assert_in_front("sleep", "fg after bg");
            run.say("\u{3}");
            assert_gone("sleep", "Ctrl-C");
            ask(&mut run, "echo code-$?", "code-130");
            assert_gone("outgate", "it is over");
            run.say("exit\n");
            wait(run);
        }
    }

    fn a_stopped_run_keeps_its_pipeline_stopped(lab) {
        for identity in Identity::all() {
            let mut run = outside(lab, identity);
            run.say("og bash -c 'sleep 100; true' | cat\n");
            assert_in_front("sleep", "it runs");
            run.say("\u{1a}");
            run.wait_for("Stopped");
            assert_becomes("sleep", &['T'], "Ctrl-Z");
            assert_becomes("cat", &['T'], "Ctrl-Z");
            run.say("fg\n");
            assert_in_front("sleep", "fg");
            run.say("\u{3}");
            assert_gone("sleep", "Ctrl-C");
            assert_gone("cat", "Ctrl-C");
            run.say("exit\n");
            wait(run);
        }
    }

    fn the_terminal_is_given_back_after_a_shell_inside(lab) {
        for identity in Identity::all() {
            let mut run = outside(lab, identity);
            run.say("og env PS1='in> ' bash --norc --noprofile -i\n");
            run.wait_for("\nin> ");
            ask(&mut run, "echo inside-$((3 + 4))", "inside-7");
            run.say("exit 9\n");
            ask(&mut run, "echo code-$?", "code-9");
            ask(&mut run, "stty -a | grep -o ' icanon'; echo sane-$((2 + 3))", "sane-5");
            run.say("exit\n");
            wait(run);
        }
    }

    fn a_background_run_does_not_take_the_terminal(lab) {
        for identity in Identity::all() {
            let mut run = outside(lab, identity);
            ask(&mut run, "og bash -c 'echo from-$((5 + 5)); sleep 100' &", "from-10");
            ask(&mut run, "echo mine-$((6 + 6))", "mine-12");
            run.say("kill %1; wait %1; echo code-$?\n");
            run.wait_for("code-143");
            assert_gone("sleep", "TERM to a background job");
            // Reading from the terminal in the background stops it, as bare.
            run.say("og cat &\n");
            assert_becomes("cat", &['T'], "a background reader");
            assert_becomes("outgate", &['T'], "a background reader");
            run.say("kill %1; fg\n");
            assert_gone("cat", "ended");
            run.say("exit\n");
            wait(run);
        }
    }

    fn a_terminal_that_goes_away_takes_the_run_with_it(lab) {
        for identity in Identity::all() {
            let folders = ["tmp", "run", "home"].map(|name| lab.folder(name, identity));
            let before = Before::new(folders.to_vec());
            let mut run = inside(lab, identity, &["bash", "-c", "echo ready; sleep 100; true"]);
            run.wait_for("ready");
            assert_in_front("sleep", "it runs");
            run.end_input();
            let outcome = wait(run);
            assert_eq!(outcome.code, Some(129), "{identity:?} {outcome}");
            before.assert_all_gone();
        }
    }

    fn a_terminal_multiplexer_works_inside(lab) {
        if !is_there("tmux") {
            return;
        }
        for identity in Identity::all() {
            // Some accounts have a login shell that refuses to be one.
            let script = "echo 'set -g default-shell /bin/bash' > tmux.conf; t() { tmux -S ./multiplexer -f ./tmux.conf \"$@\"; }; t new-session -d -x 90 -y 20 'bash --norc --noprofile'; t send-keys 'stty size; echo pane-$((4 + 4))' Enter; for i in $(seq 200); do t capture-pane -p | grep -q ^pane-8 && break; sleep 0.05; done; t capture-pane -p; t kill-server";
            let outcome = confined(lab, identity)
                .environment("TERM", "screen")
                .run(&bash(script));
            assert!(outcome.stdout.contains("pane-8"), "{identity:?} {outcome}");
            assert!(outcome.stdout.contains(" 90\n"), "{identity:?} {outcome}");
        }
    }

    fn a_recording_of_a_session_works_around_and_inside(lab) {
        if !is_there("script") {
            return;
        }
        for identity in Identity::all() {
            let command = words(&["script", "-q", "-e", "-c", "tty; exit 6", "./typescript"]);
            let outcome = confined(lab, identity).run(&command);
            assert!(outcome.stdout.contains("/dev/pts/"), "{identity:?} {outcome}");
            assert_eq!(outcome.code, Some(6), "{identity:?} {outcome}");
        }
    }
}

/// Waits for the end without closing its input, which would hang it up.
fn wait(run: Running) -> outgate_harness::Outcome {
    let pid = run.pid();
    outgate_harness::eventually(Duration::from_secs(15), || {
        !processes().iter().any(|process| process.pid == pid)
    });
    run.finish()
}
