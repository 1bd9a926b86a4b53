//! Ordinary programs in a run without options: what they do without asking anybody, and
//! what they are told where they cannot have it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use outgate_harness::servers::is_there;
use outgate_harness::{Identity, Sandbox, lab_tests};

use crate::{bare, home, project, run, write};

/// A server for the tests of a project, as Node's are written, and its client.
const IN_NODE: &str = "const s = require('http').createServer((q, r) => r.end('served')).listen(0, () => \
    fetch('http://localhost:' + s.address().port).then(async (r) => { console.log(await r.text()); s.close(); }))";

/// The same in Java, which takes no notice of TMPDIR either.
const IN_JAVA: &str = r#"
import java.io.*;
import java.net.*;

public class Own {
    public static void main(String[] words) throws Exception {
        File file = File.createTempFile("own", ".tmp");
        System.out.println(file.getParent().equals(System.getenv("TMPDIR")));
        ServerSocket server = new ServerSocket(0);
        Socket client = new Socket("localhost", server.getLocalPort());
        server.accept().getOutputStream().write("served\n".getBytes());
        System.out.println(new BufferedReader(new InputStreamReader(client.getInputStream())).readLine());
    }
}
"#;

lab_tests! {
    fn a_server_at_any_port_of_every_address_is_had_without_a_word(lab) {
        if !is_there("node") || !is_there("javac") {
            return outgate_harness::skip("no node or no java");
        }
        for identity in Identity::all() {
            let work = project(lab, identity, "p");
            write(&work.join("own.js"), IN_NODE, identity);
            write(&work.join("Own.java"), IN_JAVA, identity);
            for (script, shown) in [("node own.js", "served\n"), ("java Own.java", "true\nserved\n")] {
                let outcome = run(lab, identity, &work, script);
                assert_eq!(outcome.code, Some(0), "{script}: {outcome}");
                assert_eq!(outcome.stdout, shown, "{script}: {outcome}");
                assert!(!outcome.stderr.contains("outgate:"), "{script}: {outcome}");
            }
        }
    }

    fn terminals_are_made_and_shared_memory_is_named_with_what_grants_it(lab) {
        for identity in Identity::all() {
            let work = project(lab, identity, "p");
            let terminal = "python3 -c \"import pty; pty.spawn(['tty'])\"";
            let outcome = run(lab, identity, &work, terminal);
            assert!(outcome.stdout.starts_with("/dev/pts/"), "{outcome}");
            let pool = ["python3", "-c", "import multiprocessing as m; print(m.Pool(2).map(abs, [-7]))"].map(str::to_owned);
            let sandbox = || Sandbox::plain(lab, identity).within(work.clone());
            let outcome = sandbox().flag("--watch-files").run(&pool);
            let lines = outcome.stderr.lines().filter(|line| line.contains("/dev/shm"));
            let lines: Vec<&str> = lines.collect();
            assert_eq!(lines, ["  -w /dev/shm"], "{outcome}");
            let outcome = sandbox().option("-w", "/dev/shm").run(&pool);
            assert_eq!(outcome.stdout, "[7]\n", "{outcome}");
        }
    }

    fn what_stays_with_the_shell_outside_is_told_with_what_to_do(lab) {
        for identity in Identity::all() {
            let work = project(lab, identity, "p");
            write(&work.join("Makefile"), "all:\n\t+@\"$$@\"\n", identity);
            let run = |around: &str, command: &[&str]| {
                let sandbox = Sandbox::plain(lab, identity).within(work.clone());
                let command: Vec<String> = command.iter().map(|&word| word.to_owned()).collect();
                sandbox.wrap(&["bash", "-c", around, "bash"]).run(&command)
            };
            let outcome = run("exec \"$@\" <(echo hi)", &["cat"]);
            let note = "is a descriptor of your shell, and no command gets one above 2";
            assert!(outcome.stderr.contains(note), "{outcome}");
            // Followed as it is said.
            let outcome = run("exec \"$@\"", &["bash", "-c", "cat <(echo hi)"]);
            assert_eq!((outcome.stdout.as_str(), outcome.stderr.as_str()), ("hi\n", ""), "{outcome}");
            let around = "export MAKEFLAGS=' -j4 --jobserver-auth=3,4'; exec \"$@\"";
            write(&work.join("Makefile"), "all: a b\na b:\n\t@echo $@\n", identity);
            let counted = "the jobs of the `make` around this run are counted outside it";
            let outcome = run(around, &["make"]);
            assert!(outcome.stderr.contains(counted) && outcome.code == Some(0), "{outcome}");
            let outcome = run(around, &["make", "-j2"]);
            assert!(!outcome.stderr.contains(counted) && outcome.code == Some(0), "{outcome}");
        }
    }

    fn what_a_command_leaves_running_is_named_once(lab) {
        for identity in Identity::all() {
            let work = project(lab, identity, "p");
            let note = "outgate: note: the command has ended and left `sleep` running: the run ends with that";
            let outcome = run(lab, identity, &work, "sleep 3 & echo started");
            assert_eq!(outcome.stdout, "started\n", "{outcome}");
            assert_eq!(outcome.stderr.matches(note).count(), 1, "{outcome}");
            assert_eq!(outcome.stderr.lines().count(), 1, "{outcome}");
            // One that ends soon is nobody's concern, and nor is one that the command waits for.
            for script in ["sleep 0.2 & echo started", "sleep 2 & wait; echo started"] {
                let outcome = run(lab, identity, &work, script);
                assert_eq!(outcome.stderr, "", "{script}: {outcome}");
            }
        }
    }

    fn a_grant_around_programs_that_only_root_replaces_warns_of_nothing(lab) {
        let Some(identity) = Identity::all().into_iter().find(|one| *one == Identity::Nobody) else {
            return outgate_harness::skip_here("one account cannot be kept from its own programs");
        };
        let work = project(lab, identity, "p");
        let shared = lab.directory.join("shared");
        let programs = shared.join("programs");
        fs::create_dir_all(&programs).expect("directories");
        // As /tmp is.
        fs::set_permissions(&shared, fs::Permissions::from_mode(0o1777)).expect("a mode");
        for name in ["outgate", "outgate-gateway", "outgate-report"] {
            fs::copy(lab.tools.programs.join(name), programs.join(name)).expect("a copy");
        }
        let grant = shared.to_string_lossy().into_owned();
        let started = || Sandbox::plain(lab, identity).within(work.clone()).option("-w", &grant);
        let outcome = started().programs(programs.clone()).run(&["true".to_owned()]);
        assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""), "{outcome}");
        // The near twin: the directory is the user's.
        bare(lab, Identity::Own, &shared, &format!("chown {0}:{0} programs", identity.uid()));
        let outcome = started().programs(programs).run(&["true".to_owned()]);
        assert!(outcome.stderr.contains("outgate-gateway"), "{outcome}");
    }

    fn who_reaches_nobody_waits_for_no_gateway(lab) {
        for identity in Identity::all() {
            let work = project(lab, identity, "p");
            let slow = lab.folder("slow", Identity::Own);
            for name in ["outgate", "outgate-report"] {
                fs::copy(lab.tools.programs.join(name), slow.join(name)).expect("a copy");
            }
            let gateway = lab.tools.programs.join("outgate-gateway");
            let script = format!("#!/bin/sh\nsleep 6 <&- >&- 2>&-\nexec {} \"$@\"\n", gateway.display());
            fs::write(slow.join("outgate-gateway"), script).expect("a file");
            let everybody = fs::Permissions::from_mode(0o755);
            fs::set_permissions(slow.join("outgate-gateway"), everybody).expect("a mode");
            for rule in ["http://a.example", "https://a.example"] {
                let sandbox = Sandbox::plain(lab, identity).within(work.clone()).programs(slow.clone());
                let outcome = sandbox.allow(rule).run(&["sh", "-c", "cat README"].map(str::to_owned));
                assert_eq!(outcome.stdout, "a project\n", "{rule}: {outcome}");
                assert!(outcome.elapsed < Duration::from_secs(5), "{rule}: {outcome}");
            }
            assert!(!home(lab, identity).join(".cache/outgate").exists());
        }
    }
}
