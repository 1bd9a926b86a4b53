//! What a program has besides the network, compared with the same program run
//! bare: exit codes, signals, streams, arguments, descriptors, and what it
//! inherits from the shell that started it.

use std::time::Duration;

use outgate_harness::leftovers::{self, Before};
use outgate_harness::{Identity, Lab, Outcome, Sandbox, eventually, lab_tests};

use crate::terminal::{SIGNALS, send};
use crate::{bash, confined, words};

/// Bytes sent through a pipe.
const PIPE_BYTES: usize = 16 << 20;

/// Runs `SCRIPT`, in which `"$@"` stands for `outgate run ... -- COMMAND`.
fn around<'lab>(sandbox: Sandbox<'lab>, script: &str) -> Sandbox<'lab> {
    sandbox.wrap(&["bash", "-c", script, "bash"])
}

/// The same script around the bare command.
fn bare(lab: &Lab, identity: Identity, script: &str, command: &[String]) -> Outcome {
    let mut line = words(&["bash", "-c", script, "bash"]);
    line.extend_from_slice(command);
    lab.start_bare(identity, &line).finish()
}

/// Asserts that a script says the same with the command confined and bare.
fn assert_same(lab: &Lab, script: &str, command: &[String]) {
    for identity in Identity::all() {
        let bare = bare(lab, identity, script, command);
        let run = around(confined(lab, identity), script).run(command);
        let place = format!("{identity:?} {script}\nbare {bare}\nconfined {run}");
        assert_eq!(
            (&run.stdout, run.code),
            (&bare.stdout, bare.code),
            "{place}"
        );
        assert!(
            run.stderr.is_empty() || !bare.stderr.is_empty(),
            "quiet: {place}"
        );
        assert!(!run.held, "{place}");
        assert!(!run.stdout.is_empty(), "it says something: {place}");
    }
}

lab_tests! {
    fn exit_codes_and_signals_are_those_of_the_bare_command(lab) {
        for code in [0, 1, 2, 42, 125, 126, 127, 128, 137, 255] {
            assert_same(lab, "\"$@\"; echo code $?", &bash(&format!("exit {code}")));
        }
        for signal in ["HUP", "INT", "QUIT", "ABRT", "KILL", "USR1", "SEGV", "PIPE", "ALRM", "TERM"] {
            assert_same(lab, "\"$@\" 2>/dev/null; echo code $?", &bash(&format!("kill -{signal} $$; sleep 5")));
        }
        assert_same(lab, "\"$@\" 2>/dev/null; echo code $?", &words(&["no-such-command-at-all"]));
        assert_same(lab, "\"$@\" 2>/dev/null; echo code $?", &words(&["/etc/passwd"]));
    }

    fn signals_reach_the_command_once(lab) {
        // The shell counts what arrives; a sleep that a trap interrupts ends.
        for identity in Identity::all() {
            for (name, number) in SIGNALS {
                let script = format!("count=0; trap 'count=$((count+1)); echo got $count' {name}; trap 'echo end $count; exit 3' ALRM; echo pid $$ ready; while :; do sleep 0.05 & wait $!; done");
                let run = confined(lab, identity).start(&bash(&script));
                let shown = run.wait_for("ready\n");
                let shell: i32 = shown.split(' ').nth(1).and_then(|pid| pid.parse().ok()).expect("the shell's number");
                send(run.pid(), name);
                run.wait_for("got 1\n");
                send(run.pid(), name);
                run.wait_for("got 2\n");
                send(shell, "ALRM");
                run.wait_for("end 2\n");
                let outcome = run.finish();
                assert_eq!(outcome.code, Some(3), "{identity:?} {name} {outcome}");

                // bash ignores SIGQUIT until it has executed another program.
                let run = confined(lab, identity).start(&words(&["sh", "-c", "echo ready; exec sleep 60"]));
                run.wait_for("ready\n");
                send(run.pid(), name);
                let outcome = run.finish();
                assert_eq!(outcome.code, Some(128 + number), "{identity:?} {name} {outcome}");
                assert!(outcome.elapsed < Duration::from_secs(10), "{outcome}");
            }
        }
    }

    fn sixteen_mebibytes_pass_through_standard_input_and_output(lab) {
        let script = format!("seq 4000000 | head -c {PIPE_BYTES} | \"$@\" | cksum");
        assert_same(lab, &script, &words(&["cat"]));
        let script = format!("seq 4000000 | head -c {PIPE_BYTES} | \"$@\"");
        assert_same(lab, &script, &words(&["sha256sum"]));
        // Into and out of files of the caller: they need no grant.
        assert_same(lab, "seq 100000 > in; \"$@\" < in > out; cmp in out && echo same; rm in out", &words(&["cat"]));
    }

    fn a_reader_that_leaves_ends_the_writer(lab) {
        assert_same(lab, "\"$@\" | head -n 3; echo ${PIPESTATUS[0]}", &words(&["yes"]));
        assert_same(lab, "\"$@\" 2>&1 | head -n 1; echo ${PIPESTATUS[0]}", &words(&["python3", "-c", "import os\ntry:\n    while True: os.write(1, b'line\\n')\nexcept BrokenPipeError: os._exit(9)"]));
    }

    fn standard_error_is_separate_and_quiet(lab) {
        for identity in Identity::all() {
            let outcome = Sandbox::plain(lab, identity).run(&bash("echo out; echo err >&2"));
            assert_eq!((outcome.stdout.as_str(), outcome.stderr.as_str()), ("out\n", "err\n"), "{identity:?}");
        }
    }

    fn arguments_arrive_byte_for_byte(lab) {
        let show = words(&["python3", "-c", "import os, sys; print([os.fsencode(word) for word in sys.argv[1:]])"]);
        let odd = r#""$@" '' ' ' -x --help -- '$HOME' '*' 'a"b' "it's" $'tab\t' $'line\nbreak' $'\xff\xfe' 'ü' --allow=x -a"#;
        assert_same(lab, odd, &show);
        let long = "\"$@\" \"$(printf 'x%.0s' $(seq 100000))\" | cksum";
        assert_same(lab, long, &show);
        assert_same(lab, "\"$@\" {1..20000} | cksum", &show);
    }

    fn what_the_shell_set_is_inherited(lab) {
        let show = bash("umask; nice; pwd; ulimit -S -s; echo $VARIABLE; trap");
        assert_same(lab, "umask 027; mkdir -p below; cd below; ulimit -S -s 4096; export VARIABLE='a b'; exec nice -n 5 \"$@\"", &show);
        // Signals ignored by the caller stay ignored: nohup works.
        assert_same(lab, "trap '' HUP USR1 PIPE; \"$@\"", &bash("grep SigIgn /proc/self/status; grep SigBlk /proc/self/status"));
        assert_same(lab, "umask 077; \"$@\"; stat -c %a made; rm made", &bash("touch made; echo done"));
    }

    fn no_descriptor_but_the_three_is_open(lab) {
        for identity in Identity::all() {
            let script = "exec 9</etc/passwd 11>kept 200<.; exec \"$@\"";
            let run = around(confined(lab, identity), script).run(&words(&["python3", "-c", "import os; print(sorted(int(fd) for fd in os.listdir('/proc/self/fd')))"]));
            // The fourth is the directory that is being listed.
            assert_eq!(run.stdout, "[0, 1, 2, 3]\n", "{identity:?} {run}");
        }
    }

    fn a_run_lasts_as_long_as_what_the_command_left(lab) {
        for identity in Identity::all() {
            let folders = ["tmp", "run", "home"].map(|name| lab.folder(name, identity));
            let before = Before::new(folders.to_vec());
            let left = |seconds: u32| bash(&format!("(setsid sh -c 'sleep {seconds}' > /dev/null 2>&1 < /dev/null &); echo started; exit 4"));
            let outcome = confined(lab, identity).run(&left(1));
            assert_eq!((outcome.stdout.as_str(), outcome.code), ("started\n", Some(4)), "{identity:?} {outcome}");
            assert!(outcome.elapsed >= Duration::from_millis(900), "{identity:?} {outcome}");
            before.assert_all_gone();
            // And a signal that ends the run ends that too.
            let run = confined(lab, identity).start(&left(300));
            run.wait_for("started\n");
            let command = || leftovers::processes().iter().any(|process| process.name == "bash");
            assert!(eventually(Duration::from_secs(5), || !command()), "{identity:?}");
            send(run.pid(), "TERM");
            let outcome = run.finish();
            assert_eq!(outcome.code, Some(4), "{identity:?} {outcome}");
            assert!(outcome.elapsed < Duration::from_secs(10), "{identity:?} {outcome}");
            before.assert_all_gone();
        }
    }

    fn a_program_serves_itself_over_loopback_and_unix_sockets(lab) {
        let script = r"
import os, socket, tempfile, threading
def serve(family, address):
    server = socket.socket(family); server.bind(address); server.listen()
    def answer():
        peer, _ = server.accept(); peer.sendall(b'own'); peer.close()
    threading.Thread(target=answer).start()
    client = socket.socket(family); client.connect(server.getsockname())
    data = client.recv(10); client.close(); server.close()
    return data
print(serve(socket.AF_INET, ('127.0.0.1', 0)), serve(socket.AF_INET6, ('::1', 0)))
folder = tempfile.mkdtemp(dir='.')
print(serve(socket.AF_UNIX, folder + '/absolute'))
os.chdir(folder)
print(serve(socket.AF_UNIX, 'relative'))
";
        assert_same(lab, "\"$@\"", &words(&["python3", "-c", script]));
    }
}
