//! `outgate lock` and `outgate run --locked`: a step reaches what it reached, whatever policies
//! allow besides, and says by its status where it asked for more.

use std::fs;
use std::path::Path;

use outgate_harness::origin::Origin;
use outgate_harness::{Identity, Lab, Outcome, Sandbox, lab_tests};

fn shell(script: &str) -> [String; 3] {
    ["sh", "-c", script].map(str::to_owned)
}

fn at<'lab>(lab: &'lab Lab, identity: Identity, lock: &Path) -> Sandbox<'lab> {
    let mut sandbox = Sandbox::new(lab, identity).deny("denied.example");
    for host in ["one", "two", "denied"] {
        sandbox = sandbox.pin(&format!("{host}.example=127.0.0.1"));
    }
    sandbox.option("-w", &lock.parent().expect("a directory").to_string_lossy())
}

fn lock(lab: &Lab, identity: Identity, file: &Path, step: &str, script: &str) -> Outcome {
    at(lab, identity, file)
        .subcommand("lock")
        .option("--step", step)
        .option("-o", &file.to_string_lossy())
        .run(&shell(script))
}

fn locked(
    lab: &Lab,
    identity: Identity,
    file: &Path,
    options: &[(&str, &str)],
    script: &str,
) -> Outcome {
    let mut sandbox = at(lab, identity, file);
    for (option, value) in options {
        sandbox = sandbox.option(option, value);
    }
    sandbox
        .flag(&format!("--locked={}", file.display()))
        .run(&shell(script))
}

fn reached(origin: &Origin) -> Vec<String> {
    origin
        .arrivals()
        .iter()
        .map(|one| one.line().to_owned())
        .collect()
}

const GET: &str = "curl -sS -o /dev/null -w '%{http_code} ' http://one.example:8099/a?key=1 ; \
                   curl -sS -o /dev/null http://denied.example:8099/x; true";

lab_tests! {
    fn a_step_reaches_what_it_reached_and_says_where_it_asks_for_more(lab) {
        let origin = Origin::start(8099);
        for identity in Identity::all() {
            let file = lab.folder("lock", identity).join("outgate.lock");
            let outcome = lock(lab, identity, &file, "main", GET);
            assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(0), "200 "), "{outcome}");
            let text = fs::read_to_string(&file).expect("a lock");
            assert!(text.contains("rule = \"GET http://one.example:8099/a?key=*\"\n"), "{text}");
            assert!(text.contains("# by curl\n") && !text.contains("denied.example"), "{text}");
            // The same step writes the same bytes, whenever and wherever its programs lie.
            let outcome = lock(lab, identity, &file, "main", GET);
            assert_eq!(outcome.code, Some(0), "{outcome}");
            assert_eq!(fs::read_to_string(&file).expect("a lock"), text);
            // Another step stands beside it.
            let other = "curl -sS -o /dev/null --data x http://two.example:8099/b";
            let outcome = lock(lab, identity, &file, "other", other);
            assert_eq!(outcome.code, Some(0), "{outcome}");
            let both = fs::read_to_string(&file).expect("a lock");
            assert!(both.starts_with(&text) && both.contains("# step: other\n"), "{both}");

            let before = reached(&origin).len();
            let get = "curl -sS -o /dev/null -w '%{http_code}' 'http://one.example:8099/a?key=2'";
            let outcome = locked(lab, identity, &file, &[("--step", "main")], get);
            assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(0), "200"), "{outcome}");
            // What a policy allows besides is no more than the lock has.
            for (options, script) in [
                (vec![("-a", "two.example:8099"), ("--step", "main")], other),
                (vec![("-a", "http://*:*")], "curl -sS -o /dev/null http://one.example:8099/b; true"),
                (vec![], "curl -sS -o /dev/null -X DELETE 'http://one.example:8099/a?key=1'; true"),
                (vec![], "curl -sS -o /dev/null http://denied.example:8099/x; true"),
            ] {
                let outcome = locked(lab, identity, &file, &options, script);
                assert_eq!(outcome.code, Some(3), "{options:?} {script} {outcome}");
                let said = "what was denied is not in";
                assert!(outcome.stderr.contains(said), "{options:?} {outcome}");
                assert!(outcome.stderr.contains("denied"), "{options:?} {outcome}");
            }
            // A status of the command's own is not hidden.
            let outcome = locked(lab, identity, &file, &[], "curl -sS http://two.example:8099/c; exit 7");
            assert_eq!(outcome.code, Some(7), "{outcome}");
            assert_eq!(reached(&origin).len(), before + 1, "{:?}", reached(&origin));
            fs::remove_file(&file).expect("the lock goes");
        }
    }

    fn a_lock_says_what_may_be_reached_and_nothing_else(lab) {
        let identity = Identity::Own;
        let file = lab.folder("lock", identity).join("outgate.lock");
        let script = "echo ran; curl -sS http://one.example:8099/; true";
        let outcome = lock(lab, identity, &file, "main", "true");
        assert_eq!(outcome.code, Some(0), "{outcome}");
        let empty = fs::read_to_string(&file).expect("a lock");
        // Nothing was reached, so nothing may be.
        let outcome = locked(lab, identity, &file, &[("-a", "one.example:8099")], script);
        assert_eq!(outcome.code, Some(3), "{outcome}");
        for (lines, said) in [
            ("[filesystem]\nread = [\"/\"]\n", "`filesystem` is not for it"),
            ("extends = [\"dev-tools\"]\n", "`extends` is not for it"),
            ("[tls]\nintercept = \"never\"\n", "`tls` is not for it"),
            ("[[secret]]\nname = \"X\"\n", "`secret` is not for it"),
            ("only = [\"one.example\"]\n", "`only` is not for it"),
            ("allow = [\"*.com\"]\n", "*.com"),
            ("# step: a b\n", "no name of a step"),
        ] {
            fs::write(&file, format!("{empty}{lines}")).expect("a file");
            let outcome = locked(lab, identity, &file, &[], script);
            assert_eq!(outcome.code, Some(2), "{lines} {outcome}");
            assert!(outcome.stderr.contains(said), "{lines} {outcome}");
            assert!(!outcome.stdout.contains("ran"), "{lines} {outcome}");
        }
        fs::write(&file, &empty).expect("a file");
        for (options, said) in [
            (vec![("--step", "none")], "no step is called `none`; there are `main`"),
            (vec![("-p", "only.toml")], "`only` grants by itself"),
        ] {
            fs::write(file.with_file_name("only.toml"), "only = [\"GET one.example\"]\n").expect("a file");
            let only = file.with_file_name("only.toml").to_string_lossy().into_owned();
            let options: Vec<(&str, &str)> = options
                .into_iter()
                .map(|(option, value)| (option, if value == "only.toml" { only.as_str() } else { value }))
                .collect();
            let outcome = locked(lab, identity, &file, &options, script);
            assert_eq!(outcome.code, Some(2), "{options:?} {outcome}");
            assert!(outcome.stderr.contains(said), "{options:?} {outcome}");
        }
        fs::remove_file(&file).expect("the lock goes");
        let outcome = locked(lab, identity, &file, &[], script);
        assert_eq!(outcome.code, Some(2), "{outcome}");
        assert!(outcome.stderr.contains("`outgate lock -- COMMAND` writes it"), "{outcome}");
        // Nor is what is no file waited for, or read without end.
        nix::unistd::mkfifo(&file, nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
        for _ in 0..2 {
            let outcome = locked(lab, identity, &file, &[], script);
            assert_eq!(outcome.code, Some(2), "{outcome}");
            assert!(outcome.stderr.contains("no regular file"), "{outcome}");
            fs::remove_file(&file).expect("it goes");
            std::os::unix::fs::symlink("/dev/zero", &file).expect("a link");
        }
        fs::remove_file(&file).expect("it goes");
        // What is no lock is not written over.
        fs::write(&file, "allow = [\"one.example\"]\n").expect("a file");
        let outcome = lock(lab, identity, &file, "main", "echo ran");
        assert_eq!(outcome.code, Some(2), "{outcome}");
        assert!(!outcome.stdout.contains("ran"), "{outcome}");
        assert_eq!(fs::read_to_string(&file).expect("a file"), "allow = [\"one.example\"]\n");
    }

    fn a_lock_that_is_another_at_the_end_ends_with_a_status_of_its_own(lab) {
        for identity in Identity::all() {
            for (number, (script, code)) in [
                ("printf '[[allow]]\\nrule = \"two.example\"\\n' >> outgate.lock", 3),
                ("echo >> outgate.lock; exit 7", 3),
                ("rm outgate.lock", 3),
                ("rm outgate.lock; mkfifo outgate.lock", 3),
                ("rm outgate.lock; ln -s /dev/zero outgate.lock", 3),
                ("cp outgate.lock x; rm outgate.lock; cp x outgate.lock; touch outgate.lock", 0),
                ("exit 7", 7),
            ].into_iter().enumerate() {
                let file = lab.folder(&format!("changed{number}"), identity).join("outgate.lock");
                assert_eq!(lock(lab, identity, &file, "main", "true").code, Some(0));
                let folder = file.parent().expect("a directory").display();
                let script = format!("cd {folder} || exit 9; {script}");
                let outcome = locked(lab, identity, &file, &[("--leftovers", "off")], &script);
                assert_eq!(outcome.code, Some(code), "{script} {outcome}");
                let is_said = outcome.stderr.contains("is another than when this run began");
                assert_eq!(is_said, code == 3, "{script} {outcome}");
            }
        }
    }

    fn nobody_widens_a_locked_run(lab) {
        let identity = Identity::Own;
        let file = lab.folder("lock", identity).join("outgate.lock");
        assert_eq!(lock(lab, identity, &file, "main", "true").code, Some(0));
        let run = at(lab, identity, &file)
            .option("--name", "held-to-it")
            .flag(&format!("--locked={}", file.display()))
            .with_input()
            .start(&shell("echo ready; read end"));
        run.wait_for("ready");
        let mut grant = std::process::Command::new(lab.tools.programs.join("outgate"));
        let output = grant.args(["grant", "held-to-it", "one.example"]).output().expect("outgate starts");
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains("sealed"), "{said}");
        run.finish();
    }
}
