//! A value that changes while the command runs: the next request has the new
//! one, without anything started anew.

use outgate_harness::{Identity, eventually, lab_tests};

use crate::origin::field;
use crate::stage::{Stage, assert_hidden, bash};

const FIRST: &str = "first-value-of-the-secret";
const SECOND: &str = "second-value-of-the-secret";

lab_tests! {
    fn a_file_that_is_replaced_gives_the_new_value(lab) {
        let stage = Stage::new(lab);
        let home = lab.folder("home", Identity::Own);
        let file = home.join("token");
        std::fs::write(&file, FIRST).expect("a file");
        let secret = format!("KEY=file:{}@api.test", file.display());
        let script = r#"while read line; do curl -sS -H "Authorization: $KEY" https://api.test/echo/$line; echo " answered"; cat ~/token; done"#;
        let mut running = stage.sandbox(&[&secret]).with_input().start(&bash(script));
        running.say("1\n");
        running.wait_for("answered");
        let draft = home.join("draft");
        std::fs::write(&draft, SECOND).expect("a file");
        std::fs::rename(&draft, &file).expect("a file in place");
        let mut turn = 1;
        let changed = eventually(std::time::Duration::from_secs(20), || {
            turn += 1;
            running.say(&format!("{turn}\n"));
            running.wait_for_count("answered", turn);
            std::thread::park_timeout(std::time::Duration::from_millis(200));
            stage.seen().iter().any(|request| field(request, "authorization") == Some(SECOND))
        });
        running.end_input();
        let outcome = running.finish();
        assert!(changed, "{outcome}");
        for value in [FIRST, SECOND] {
            assert!(!outcome.stdout.contains(value), "{outcome}");
            assert!(!outcome.stderr.contains(value), "{outcome}");
        }
    }

    fn an_origin_that_minds_a_value_makes_it_be_read_again(lab) {
        let stage = Stage::new(lab);
        let home = lab.folder("home", Identity::Own);
        let file = home.join("issued");
        std::fs::write(&file, FIRST).expect("a file");
        let count = home.join("count");
        let secret = format!(
            "KEY=cmd:echo x >>{}; cat {}@api.test",
            count.display(),
            file.display()
        );
        let script = r#"while read line; do curl -sS -o /dev/null -w '%{http_code} answered\n' -H "Authorization: $KEY" https://api.test/unauthorized; done"#;
        let began = std::time::Instant::now();
        let mut running = stage.sandbox(&[&secret]).with_input().start(&bash(script));
        running.say("first\n");
        running.wait_for("401 answered");
        std::fs::write(&file, SECOND).expect("a file");
        let mut turn = 1;
        let changed = eventually(std::time::Duration::from_secs(20), || {
            turn += 1;
            running.say("again\n");
            running.wait_for_count("answered", turn).contains("200 answered")
        });
        // However often the origin minds it, the command is not run at will.
        for _ in 0..20 {
            turn += 1;
            running.say("again\n");
            running.wait_for_count("answered", turn);
        }
        running.end_input();
        let outcome = running.finish();
        assert!(changed, "{outcome}");
        let runs = std::fs::read_to_string(&count).unwrap_or_default().lines().count();
        // Once at the start, once more for each 20 s that it takes here.
        let most = began.elapsed().as_secs().div_ceil(20).saturating_add(2);
        assert!(runs >= 2 && u64::try_from(runs).is_ok_and(|runs| runs <= most), "{runs} {outcome}");
        assert_hidden(&outcome.stdout, "answers");
    }

    fn the_keeper_ends_with_the_run(lab) {
        let stage = Stage::new(lab);
        let file = lab.folder("home", Identity::Own).join("token");
        std::fs::write(&file, FIRST).expect("a file");
        let secret = format!("KEY=file:{}@api.test", file.display());
        let outcome = stage.run(&[&secret], "true");
        assert_eq!(outcome.code, Some(0), "{outcome}");
        let kept = || {
            let found = std::process::Command::new("pgrep").args(["-f", "outgate-gateway|keep --handoff"]).output();
            found.is_ok_and(|found| !found.stdout.is_empty())
        };
        assert!(eventually(std::time::Duration::from_secs(5), || !kept()));
    }
}
