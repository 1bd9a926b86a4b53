//! `outgate approve` on a terminal, in tmux, whose screen is what a person sees.

use std::fs;
use std::time::Duration;

use outgate_harness::origin::Origin;
use outgate_harness::servers::is_there;
use outgate_harness::{Identity, Lab, Outcome, Running, Sandbox, eventually, lab_tests};

use crate::gate::shell;

/// Longest time until a screen shows something.
const SHOWN: Duration = Duration::from_secs(20);

/// `outgate approve` in a terminal of this size.
struct Screen<'lab> {
    lab: &'lab Lab,
    socket: String,
}

impl<'lab> Screen<'lab> {
    fn start(lab: &'lab Lab, (width, height): (&str, &str), variable: &str, words: &str) -> Self {
        let socket = lab
            .folder("tmux", Identity::Own)
            .join(format!("{width}{variable}"));
        let screen = Self {
            lab,
            socket: socket.to_string_lossy().into_owned(),
        };
        let program = lab.tools.programs.join("outgate");
        let state = lab.folder("state", Identity::Own);
        let command = format!(
            "env -u NO_COLOR XDG_STATE_HOME={} {variable} {} approve {words}; echo ENDED $?; sleep 30",
            state.display(),
            program.display()
        );
        let outcome = screen.call(&[
            "new-session",
            "-d",
            "-x",
            width,
            "-y",
            height,
            "sh",
            "-c",
            &command,
        ]);
        assert_eq!(outcome.code, Some(0), "{outcome}");
        screen
    }

    fn call(&self, words: &[&str]) -> Outcome {
        let mut line = vec!["tmux", "-f", "/dev/null", "-S", &self.socket];
        line.extend(words);
        let line: Vec<String> = line.into_iter().map(str::to_owned).collect();
        self.lab.start_bare(Identity::Own, &line).finish()
    }

    fn text(&self) -> String {
        self.call(&["capture-pane", "-p"]).stdout
    }

    fn shows(&self, text: &str) -> String {
        let mut seen = String::new();
        let shown = eventually(SHOWN, || {
            seen = self.text();
            seen.contains(text)
        });
        assert!(shown, "no `{text}`:\n{seen}");
        seen
    }

    fn press(&self, key: &str) {
        // A question that has just come to its place is looked at first.
        std::thread::park_timeout(Duration::from_millis(900));
        self.call(&["send-keys", key]);
    }
}

impl Drop for Screen<'_> {
    fn drop(&mut self) {
        self.call(&["kill-server"]);
    }
}

fn asking(lab: &Lab) -> Sandbox<'_> {
    lab.sandbox(Identity::Own)
        .flag("--ask=50s")
        .option("--name", "agent")
        .allow("http://a.example:8080")
        .pin("a.example=192.0.2.1")
        .pin("b.example=192.0.2.2")
        .with_input()
        .limit(Duration::from_mins(2))
}

/// Asks for each URL it reads, beside one another, and says the status.
const ASKER: &str = "echo here; while read url; do { curl -sS -m 60 -o /dev/null -w \"$url %{http_code}.\\n\" \"$url\" 2>&1; } & done; wait; echo over";

fn started(lab: &Lab) -> Running {
    let run = asking(lab).start(&shell(ASKER));
    run.wait_for("here");
    run
}

lab_tests! {
    fn a_person_answers_on_a_screen(lab) {
        if !is_there("tmux") {
            return;
        }
        let _origin = Origin::start(8080);
        let mut run = started(lab);
        let file = lab.folder("policy", Identity::Own).join("kept.toml");
        let screen = Screen::start(lab, ("100", "30"), "", &format!("agent --always {}", file.display()));
        screen.shows("watching agent");
        let said = screen.shows("nothing is asked");
        for key in ["d deny", "o once", "r run", "t time", "a always", "h host", "q quit"] {
            assert!(said.contains(key), "{key}: {said}");
        }
        run.say("http://b.example:8080/one\n");
        let said = screen.shows("asks    GET http://b.example:8080/one");
        for part in ["1 open, 1 watched", ">   1 agent  GET http://b.example:8080/one", "by      /usr/bin/curl (process ", "below ", "run     agent (sh in ", "narrow  (*) GET http://b.example:8080/one", "broad   ( ) http://b.example:8080"] {
            assert!(said.contains(part), "{part}: {said}");
        }
        eprintln!("{said}");
        screen.press("o");
        run.wait_for("/one 200.");
        screen.shows("for one request (asked, user ");
        // Each key, and the rule for the host.
        run.say("http://b.example:8080/two\n");
        screen.shows("asks    GET http://b.example:8080/two");
        screen.press("a");
        run.wait_for("/two 200.");
        assert_eq!(fs::read_to_string(&file).expect("a policy"), "[[allow]]\nrule = \"GET http://b.example:8080/two\"\n");
        run.say("http://b.example:8080/three\n");
        screen.shows("asks    GET http://b.example:8080/three");
        screen.press("d");
        run.wait_for("/three 403.");
        run.say("http://b.example:8080/four\n");
        screen.shows("asks    GET http://b.example:8080/four");
        screen.press("h");
        screen.shows("broad   (*) http://b.example:8080");
        screen.press("t");
        screen.shows("for how long? 10m_");
        screen.press("Enter");
        run.wait_for("/four 200.");
        screen.shows("granted `http://b.example:8080` for 10m");
        // A record of the host is there by now, and a person who comes later sees it.
        screen.press("q");
        screen.shows("ENDED 0");
        run.end_input();
        run.finish();
        let mut run = started(lab);
        let screen = Screen::start(lab, ("100", "24"), "LANG=C", "");
        screen.shows("1 watched");
        run.say("http://b.example:8080/five\n");
        let said = screen.shows("in your records: allowed ");
        eprintln!("{said}");
        screen.press("C-c");
        screen.shows("ENDED 0");
        run.end_input();
        run.finish();
    }

    fn a_narrow_screen_a_changing_one_and_one_without_colour_show_the_question(lab) {
        if !is_there("tmux") {
            return;
        }
        let _origin = Origin::start(8080);
        // A program whose name would write over the screen, and move what is there.
        let named = "cp /usr/bin/curl \"$(printf 'c\\033[2J\\033]0;title\\007\\n  narrow')\"; curl() { ./c*narrow \"$@\"; }; ";
        let mut run = asking(lab).start(&shell(&format!("{named}{ASKER}")));
        run.wait_for("here");
        let screen = Screen::start(lab, ("34", "14"), "NO_COLOR=1", "agent");
        screen.shows("watching agent");
        run.say("http://b.example:8080/first\n");
        let said = screen.shows("http://b.example:8080/first");
        eprintln!("{said}");
        assert!(said.contains("d deny") && said.contains("1 open"), "{said}");
        assert!(said.contains("narrow  (*)") && said.lines().count() <= 14, "{said}");
        for (width, height) in [("120", "40"), ("20", "6"), ("60", "20"), ("3", "2"), ("100", "30")] {
            screen.call(&["resize-window", "-x", width, "-y", height]);
            std::thread::park_timeout(Duration::from_millis(400));
        }
        let said = screen.shows("asks    GET http://b.example:8080/first");
        eprintln!("{said}");
        assert!(said.contains("\\x1b[2J") || said.contains("\\u{1b}[2J"), "{said}");
        assert_eq!(said.lines().filter(|line| line.trim_start().starts_with("narrow")).count(), 1, "{said}");
        let colours = screen.call(&["capture-pane", "-p", "-e"]).stdout;
        // 39 and 49 are the terminal's own.
        let is_colour = |rest: &&str| rest.starts_with(['3', '4', '9', '1']) && !["39", "49", "1m"].iter().any(|own| rest.starts_with(own));
        assert_eq!(colours.split("\u{1b}[").skip(1).find(is_colour), None, "{colours:?}");
        screen.press("r");
        run.wait_for("/first 200.");
        // The run ends, and with it what was asked of it.
        run.end_input();
        run.signal(nix::sys::signal::Signal::SIGTERM);
        run.finish();
        screen.shows("is over");
        screen.shows("ENDED ");
    }

    fn a_signal_gives_the_terminal_back_as_it_was(lab) {
        if !is_there("tmux") {
            return;
        }
        let run = started(lab);
        for signal in ["TERM", "HUP", "INT"] {
            // The shell tells the program's number, becomes it, and another one says how it ended.
            let screen = Screen::start(lab, ("90", "20"), &format!("SIGNAL={signal}"), "agent; stty -a | grep -o ' -\\?icanon' | tr -d ' '");
            screen.shows("watching agent");
            let pane = screen.call(&["list-panes", "-F", "#{pane_pid}"]).stdout;
            let words = format!("pkill -{signal} -P {} outgate", pane.trim());
            let sent = lab.start_bare(Identity::Own, &shell(&words)).finish();
            assert_eq!(sent.code, Some(0), "{sent}");
            let said = screen.shows("ENDED 0");
            assert!(said.contains("\nicanon") || said.starts_with("icanon"), "{signal}: {said}");
        }
        run.signal(nix::sys::signal::Signal::SIGTERM);
        run.finish();
    }

    fn without_a_terminal_or_by_wish_there_are_lines(lab) {
        if !is_there("tmux") {
            return;
        }
        let run = started(lab);
        let screen = Screen::start(lab, ("80", "20"), "", "agent --plain");
        let said = screen.shows("watching agent");
        assert!(!said.contains("quit"), "{said}");
        let piped = Screen::start(lab, ("81", "20"), "", "agent | cat");
        let said = piped.shows("watching agent");
        assert!(!said.contains("quit"), "{said}");
        let dumb = Screen::start(lab, ("82", "20"), "TERM=dumb", "agent");
        let said = dumb.shows("watching agent");
        assert!(!said.contains("quit"), "{said}");
        run.signal(nix::sys::signal::Signal::SIGTERM);
        run.finish();
    }
}
