//! The first minute of the README as it stands there: its lines are taken from the
//! document, and run by an account with an empty home directory in a new repository.

use std::fs;
use std::path::Path;

use outgate_harness::lab_tests;

use crate::agents::{ANSWER, CLAUDE, CODEX, RAN, WORK, key};
use crate::screens::Screen;
use crate::stage::{Home, Stage};

/// A file of the repository that this test belongs to.
fn text(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    fs::read_to_string(path).expect("a file of the repository")
}

/// The one command of the README's that begins so, without its comment.
fn line(beginning: &str) -> String {
    let readme = text("README.md");
    let blocks = readme.split("```sh\n").skip(1);
    let blocks = blocks.filter_map(|rest| rest.split_once("```").map(|(block, _)| block));
    let lines = blocks.flat_map(str::lines);
    let mut found: Vec<&str> = lines.filter(|line| line.starts_with(beginning)).collect();
    assert_eq!(found.len(), 1, "`{beginning}` in README.md: {found:?}");
    let line = found.remove(0);
    line.split(" #").next().unwrap_or(line).trim().to_owned()
}

/// Puts the programs where `cargo install` does.
fn install(stage: &Stage<'_>) {
    assert_eq!(line("cargo install"), "cargo install --path . --locked");
    let into = stage.home().join(".cargo/bin");
    fs::create_dir_all(&into).expect("a folder");
    let manifest = text("Cargo.toml");
    let tables = manifest.split("[[bin]]\n").skip(1);
    let names = tables.filter_map(|table| table.split('"').nth(1));
    let names: Vec<&str> = names.collect();
    assert_eq!(names, ["outgate", "outgate-gateway", "outgate-report"]);
    for name in names {
        fs::copy(stage.lab.tools.programs.join(name), into.join(name)).expect("a copy");
    }
}

/// Goes through an agent's first start: where the screen shows a text, keys are sent.
fn through(screen: &Screen<'_>, steps: &[(&str, &[&str])]) {
    for (shown, keys) in steps {
        screen.shows(shown);
        for key in *keys {
            std::thread::park_timeout(std::time::Duration::from_millis(500));
            screen.call(&["send-keys", key]);
        }
    }
}

/// An agent without a terminal: it works, commits, and its model reads the denial.
#[track_caller]
fn works(stage: &Stage<'_>, variable: (&str, &str), line: &str) {
    let outcome = stage.shell(&[variable], line);
    let seen = stage.seen();
    let place = format!("{line}\n{outcome}\n{seen:?}");
    assert_eq!(outcome.code, Some(0), "{place}");
    assert!(outcome.stdout.contains(RAN), "{place}");
    assert_eq!(stage.commits(), ["by-the-agent", "first"], "{place}");
    let told = [
        "outgate denied GET http://denied.example.test/x: no rule allows it",
        "to allow it: -a 'GET http://denied.example.test/x'",
    ];
    let mut results = seen.iter().flat_map(|request| &request.results);
    let is_told = |result: &String| told.iter().all(|part| result.contains(part));
    assert!(results.any(is_told), "{place}");
    let denied = outcome.stderr.lines();
    let others = denied.filter(|line| {
        line.starts_with("outgate: denied ") && !line.contains("denied.example.test")
    });
    assert_eq!(others.count(), 0, "{place}");
    assert!(!outcome.stderr.contains("outgate: warning"), "{place}");
}

lab_tests! {
    fn what_the_readme_installs_confines_a_build(lab) {
        let Some(stage) = Stage::start(lab) else { return };
        stage.begin(Home::Empty, &[]);
        install(&stage);
        let found = stage.shell(&[], "command -v outgate");
        let home = stage.home();
        assert_eq!(found.stdout, format!("{}/.cargo/bin/outgate\n", home.display()));
        let outcome = stage.shell(&[], &line("outgate check"));
        assert_eq!(outcome.code, Some(0), "{outcome}");
        assert!(outcome.stdout.ends_with("\noutgate can confine commands here.\n"), "{outcome}");
        fs::write(stage.repository().join("Makefile"), "test:\n\t@echo tested; ls ~ >~/all || echo closed; curl -sS http://denied.example.test/ || true\n").expect("a file");
        let outcome = stage.shell(&[], &line("outgate run -- make"));
        assert_eq!(outcome.code, Some(0), "{outcome}");
        assert!(outcome.stdout.starts_with("tested\nclosed\noutgate denied GET"), "{outcome}");
        assert!(outcome.stderr.contains("outgate: 1 denial; to allow:\n  -a 'GET http://denied.example.test/'"), "{outcome}");
    }

    fn claude_code_starts_as_the_readme_has_it(lab) {
        let Some(stage) = Stage::start(lab) else { return };
        let line = line("outgate run -P claude-code");
        let key = key(CLAUDE.key.1);
        let variable = (CLAUDE.key.0, key.as_str());
        stage.begin(Home::Empty, &[]);
        install(&stage);
        works(&stage, variable, &format!("{line} --allowedTools Bash -p '{WORK}'"));

        stage.begin(Home::Empty, &[]);
        install(&stage);
        let screen = Screen::start(&stage, &[variable], &line);
        through(&screen, &[
            ("Choose the text style", &["Enter"]),
            ("Do you want to use this API key?", &["Up", "Enter"]),
            ("Press Enter to continue", &["Enter"]),
            ("I trust this folder", &["Enter"]),
            ("? for shortcuts", &[]),
        ]);
        screen.type_line("say hello");
        screen.shows(ANSWER);
        screen.type_line("/exit");
        screen.shows("ENDED");
        let shown = screen.text();
        assert!(!shown.contains("outgate: denied"), "{shown}");
    }

    fn codex_starts_as_the_readme_has_it(lab) {
        let Some(stage) = Stage::start(lab) else { return };
        let line = line("outgate run -P codex");
        assert!(!line.contains("--sandbox") && !line.contains("--no-daemon"), "{line}");
        let key = key("openai-key");
        let variable = ("OPENAI_API_KEY", key.as_str());
        stage.begin(Home::Empty, &[]);
        install(&stage);
        // Its log-in with a key; what it writes is there for the next start.
        let logged = stage.shell(&[variable], &format!("printenv OPENAI_API_KEY | {line} login --with-api-key"));
        assert_eq!(logged.code, Some(0), "{logged}");
        assert!(stage.home().join(".codex/auth.json").exists(), "{logged}");
        works(&stage, variable, &format!("{line} exec '{WORK}' </dev/null"));

        let screen = Screen::start(&stage, &[], &line);
        screen.shows("codex is started without its own sandbox");
        through(&screen, &[("Trust and continue", &["Enter"]), ("OpenAI Codex", &[])]);
        screen.type_line("say hello");
        screen.shows(ANSWER);
        screen.type_line("/quit");
        screen.shows("ENDED");
        let shown = screen.text();
        assert!(!shown.contains("outgate: denied"), "{shown}");
    }

    fn codex_signs_in_by_a_browser_outside(lab) {
        let Some(stage) = Stage::start(lab) else { return };
        let line = line("outgate run -P codex");
        stage.begin(Home::Empty, &[]);
        install(&stage);
        let screen = Screen::start(&stage, &[], &line);
        through(&screen, &[("1. Sign in with ChatGPT", &["Enter"]), ("Finish signing in", &[])]);
        // Where the browser is sent: a server of Codex's, inside, reached from outside. It
        // knows its own state from that of others.
        let callback = "curl -sS -o /dev/null -w '%{http_code}' 'http://127.0.0.1:1455/auth/callback?code=x&state=other'";
        let outcome = stage.shell(&[], callback);
        assert_eq!(outcome.stdout, "400", "{outcome}\n{}", screen.text());
    }

    fn an_agent_whose_files_were_moved_keeps_them_there(lab) {
        let Some(stage) = Stage::start(lab) else { return };
        for (variable, preset, command, kept, usual) in [
            ("CODEX_HOME", "codex", format!("printenv KEY | outgate run -P codex -- {} login --with-api-key", CODEX.command[0]), "auth.json", ".codex"),
            ("CLAUDE_CONFIG_DIR", "claude-code", "ANTHROPIC_API_KEY=$KEY outgate run -P claude-code -- claude -p 'say hello'".to_owned(), ".claude.json", ".claude"),
        ] {
            stage.begin(Home::Ordinary, &[]);
            let moved = stage.home().join("elsewhere/state");
            let value = moved.to_string_lossy();
            let key = key(if preset == "codex" { "openai-key" } else { CLAUDE.key.1 });
            let outcome = stage.shell(&[(variable, &value), ("KEY", &key)], &command);
            assert_eq!(outcome.code, Some(0), "{command}: {outcome}");
            let state = fs::read_to_string(moved.join(kept)).expect("its state");
            assert!(state.len() > 20, "{state}: {outcome}");
            assert!(!stage.home().join(usual).exists(), "{usual}: {outcome}");
            // A variable may not move them to keys.
            let keys = stage.home().join(".ssh").to_string_lossy().into_owned();
            let refused = stage.shell(&[(variable, &keys), ("KEY", &key)], &command);
            assert_eq!(refused.code, Some(2), "{refused}");
            assert!(refused.stderr.contains(&format!("the variable {variable} has the command write `{keys}")), "{refused}");
        }
    }
}
