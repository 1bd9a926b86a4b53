//! Many denials as a few groups: at the end of a run, in `outgate why last`, and as a policy
//! that allows the same requests and nothing that was refused for a credential.

use std::fs;
use std::path::Path;

use outgate_harness::origin::Origin;
use outgate_harness::{Identity, Lab, Outcome, Sandbox, lab_tests};

use crate::{home, project, write};

/// Requests of one shape and one by itself, each with what came of it.
const REQUESTS: &str = "for id in 1 22 333 4 5 6 7; do curl -s -o /dev/null -w '%{http_code} ' http://a.test/users/$id; done; \
    curl -s -o /dev/null -w '%{http_code} ' -X PUT http://a.test/once; \
    curl -s -o /dev/null -w '%{http_code}' http://b.test/";

/// The same in many more shapes than a screen has lines.
const FLOOD: &str = "for a in a b c d e f g h; do for b in a b c d e f g h i j; do \
    for c in x y; do curl -s -o /dev/null http://a.test/$a$b$c; done; done; done";

fn sandbox<'lab>(lab: &'lab Lab, identity: Identity, work: &Path) -> Sandbox<'lab> {
    let sandbox = Sandbox::plain(lab, identity).within(work.to_owned());
    sandbox
        .pin("a.test=127.0.0.1:80")
        .pin("b.test=127.0.0.1:80")
}

fn shell(sandbox: Sandbox<'_>, script: &str) -> Outcome {
    sandbox.run(&["sh", "-c", script].map(str::to_owned))
}

/// What `outgate why WORDS…` says to the account.
fn why(lab: &Lab, identity: Identity, words: &[&str]) -> String {
    let directory = project(lab, identity, "elsewhere");
    let mut all = identity.prefix();
    all.push(
        lab.tools
            .programs
            .join("outgate")
            .to_string_lossy()
            .into_owned(),
    );
    all.push("why".to_owned());
    all.extend(words.iter().map(|&word| word.to_owned()));
    let (program, arguments) = all.split_first().expect("a command");
    let output = std::process::Command::new(program)
        .args(arguments)
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("HOME", home(lab, identity))
        .env("XDG_STATE_HOME", lab.folder("state", identity))
        .current_dir(directory)
        .output()
        .expect("outgate");
    String::from_utf8(output.stdout).expect("text")
}

/// What outgate said itself.
fn told(outcome: &Outcome) -> Vec<&str> {
    let lines = outcome.stderr.lines();
    lines
        .filter(|line| line.starts_with("outgate:") || line.starts_with("  "))
        .collect()
}

lab_tests! {
    fn denials_of_one_shape_are_one_line_and_one_rule(lab) {
        for identity in Identity::all() {
            let work = project(lab, identity, "p");
            let outcome = shell(sandbox(lab, identity, &work), REQUESTS);
            let lines = told(&outcome);
            let live = lines.iter().filter(|line| line.contains("denied GET http://a.test/users/"));
            assert_eq!(live.count(), 1, "{outcome}");
            for line in [
                "outgate: 9 denials; to allow:",
                "  -a 'GET http://a.test/users/*'  # 7 times, by curl",
                "  -a 'PUT http://a.test/once'  # once, by curl",
                "  -a 'GET http://b.test/'  # once, by curl",
            ] {
                assert!(lines.contains(&line), "{line}\n{outcome}");
            }
        }
    }

    fn the_suggested_policy_allows_the_same_and_no_credential(lab) {
        let origin = Origin::start(80);
        for identity in Identity::all() {
            let work = project(lab, identity, "p");
            let body = work.join("body");
            let token = outgate_dlp::planted([7; 32], &|_| false).into_iter().find_map(|canary| {
                let text = String::from_utf8(canary.content.expose().to_vec()).ok()?;
                text.lines().find(|line| line.starts_with("ghp_")).map(str::to_owned)
            });
            write(&body, &token.expect("a credential"), identity);
            let send = format!("curl -s -o /dev/null --data-binary @{} http://c.test/u/1", body.display());
            let allowing = || {
                sandbox(lab, identity, &work)
                    .allow("POST http://c.test/u/*")
                    .pin("c.test=127.0.0.1:80")
            };
            let outcome = shell(allowing(), &format!("{REQUESTS}; {send}"));
            assert!(outcome.stdout.contains("403 403 403 403 403 403 403 403 403"), "{outcome}");
            let before = origin.arrivals().len();
            let document = why(lab, identity, &["last", "--as-policy"]);
            assert!(!document.contains("\"POST"), "{document}");
            let file = home(lab, identity).join("suggested.toml");
            write(&file, &document, identity);
            let run = allowing().option("-p", &file.to_string_lossy());
            let outcome = shell(run, &format!("{REQUESTS}; {send}"));
            assert!(outcome.stdout.starts_with("200 200 200 200 200 200 200 200 200"), "{document}\n{outcome}");
            let arrivals = origin.arrivals();
            let (_, since) = arrivals.split_at(before);
            assert_eq!(since.len(), 9, "{since:?}");
            assert!(since.iter().all(|arrival| !arrival.bytes.contains("ghp_")));
            assert!(outcome.stderr.contains("# a credential: POST http://c.test: "), "{outcome}");
        }
    }

    fn a_flood_of_denials_is_a_screen(lab) {
        let identity = Identity::Own;
        let work = project(lab, identity, "p");
        let outcome = shell(Sandbox::plain(lab, identity).within(work), FLOOD);
        let lines = told(&outcome);
        let from = lines.iter().position(|line| line.starts_with("outgate: 160 denials")).expect("a summary");
        let (_, summary) = lines.split_at(from);
        assert!(summary.len() <= 20, "{}: {outcome}", summary.len());
        let left = summary.iter().filter(|line| line.contains("more groups: outgate why last --all"));
        assert_eq!(left.count(), 1, "{outcome}");
        let all = why(lab, identity, &["last", "--all"]);
        assert_eq!(all.lines().filter(|line| line.starts_with("denied ")).count(), 160, "{all}");
    }

    fn a_run_that_missed_a_file_says_how_to_ask(lab) {
        for identity in Identity::all() {
            let work = project(lab, identity, "p");
            let closed = home(lab, identity).join("other/closed");
            write(&closed, "text", identity);
            let closed = closed.to_string_lossy();
            let outcome = shell(Sandbox::plain(lab, identity).within(work.clone()), "false");
            assert!(!outcome.stderr.contains("outgate why"), "{outcome}");
            let cat = ["cat", &*closed].map(str::to_owned);
            let outcome = Sandbox::plain(lab, identity).within(work).run(&cat);
            let line = format!("outgate: the command may not read `{closed}`, if that is what it missed: outgate why {closed}\n");
            assert!(outcome.stderr.ends_with(&line), "{outcome}");
            let said = why(lab, identity, &[&*closed]);
            assert!(said.contains("\nread      denied: no grant is at it or above it\n"), "{said}");
            let judged = "\njudged    as `outgate run -- ...` in this directory; a run with other options may differ\n";
            assert!(said.ends_with(judged), "{said}");
            let run = || Sandbox::plain(lab, identity).within(project(lab, identity, "p"));
            assert_eq!(run().option("-r", &closed).run(&cat).stdout, "text");
            // The question is about a run with the same options.
            let outcome = run().option("-P", "dev-tools").option("-r", "/usr/lib").run(&cat);
            let line = format!("outgate why -P dev-tools -r /usr/lib {closed}\n");
            assert!(outcome.stderr.ends_with(&line), "{outcome}");
            let said = why(lab, identity, &["-P", "dev-tools", "-r", "/usr/lib", &*closed]);
            assert!(said.contains("\njudged    as `outgate run -P dev-tools -r /usr/lib -- ...`"), "{said}");
            fs::remove_file(&*closed).expect("a file");
        }
    }

    fn a_port_that_takes_a_privilege_is_told_once(lab) {
        for identity in Identity::all() {
            let work = project(lab, identity, "p");
            let script = "import socket\nfor port in 81, 82:\n try: socket.socket().bind(('127.0.0.1', port))\n except PermissionError: print(port)";
            let outcome = Sandbox::plain(lab, identity).within(work).run(&["/usr/bin/python3", "-c", script].map(str::to_owned));
            assert_eq!(outcome.stdout, "81\n82\n", "{outcome}");
            let line = "outgate: denied binding port 81 (ports below 1024 take a privilege, and no command has one)\n";
            assert_eq!(outcome.stderr, line, "{outcome}");
        }
    }
}
