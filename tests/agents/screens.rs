//! Agents in a terminal, as people use them: in tmux, whose screen is what they see.

use std::fs;
use std::time::Duration;

use outgate_harness::{Lab, Outcome, eventually, lab_tests};

use crate::agents::{AIDER, ANSWER, Agent, CLAUDE, CODEX, COPILOT, GEMINI, OPENCODE, QWEN, key};
use crate::stage::{Home, Stage};

/// Longest time until a screen shows something.
const SHOWN_SECONDS_MAX: u64 = 40;

/// A terminal with an agent in it.
pub(crate) struct Screen<'stage> {
    stage: &'stage Stage<'stage>,
    socket: String,
}

impl<'stage> Screen<'stage> {
    /// Starts a command in a new terminal.
    pub(crate) fn start(
        stage: &'stage Stage<'_>,
        variables: &[(&str, &str)],
        command: &str,
    ) -> Self {
        let socket = stage.lab.folder("tmux", stage.identity).join("socket");
        let screen = Self {
            stage,
            socket: socket.to_string_lossy().into_owned(),
        };
        let mut line = stage.environment(variables);
        let new = [
            "new-session",
            "-d",
            "-x",
            "110",
            "-y",
            "36",
            "bash",
            "--norc",
            "-c",
        ];
        line.extend(screen.tmux(&new));
        line.push(format!("{command}; echo ENDED; sleep 60"));
        let outcome = stage.lab.start_bare(stage.identity, &line).finish();
        assert_eq!(outcome.code, Some(0), "{outcome}");
        screen
    }

    fn tmux(&self, words: &[&str]) -> Vec<String> {
        let mut line = vec!["tmux", "-f", "/dev/null", "-S", &self.socket];
        line.extend(words);
        line.into_iter().map(str::to_owned).collect()
    }

    pub(crate) fn call(&self, words: &[&str]) -> Outcome {
        let line = self.tmux(words);
        self.stage
            .lab
            .start_bare(self.stage.identity, &line)
            .finish()
    }

    pub(crate) fn text(&self) -> String {
        self.call(&["capture-pane", "-p"]).stdout
    }

    pub(crate) fn shows(&self, text: &str) {
        let limit = Duration::from_secs(SHOWN_SECONDS_MAX);
        let mut columns = 110;
        let shown = eventually(limit, || {
            std::thread::park_timeout(Duration::from_millis(300));
            if self.text().contains(text) {
                return true;
            }
            // What others wrote into the screen goes when it is drawn anew.
            columns = 221 - columns;
            self.call(&["resize-window", "-x", &columns.to_string(), "-y", "36"]);
            false
        });
        let seen = || self.stage.seen();
        assert!(shown, "no `{text}`:\n{}\n{:?}", self.text(), seen());
    }

    pub(crate) fn type_line(&self, text: &str) {
        self.call(&["send-keys", "-l", text]);
        self.shows(text);
        // A line that comes at once with its end is pasted, for some.
        std::thread::park_timeout(Duration::from_millis(500));
        self.call(&["send-keys", "Enter"]);
    }
}

/// Asks an agent in a terminal.
fn ask(lab: &Lab, agent: &Agent, state: &[(&str, String)], command: &str, ready: &str) {
    let Some(stage) = Stage::start(lab) else {
        return;
    };
    stage.begin(Home::Ordinary, state);
    let key = key(agent.key.1);
    let mut variables = vec![(agent.key.0, key.as_str())];
    variables.extend(agent.variables);
    let screen = Screen::start(&stage, &variables, command);
    screen.shows(ready);
    screen.type_line("say hello");
    screen.shows(ANSWER);
    let text = screen.text();
    let lines = text
        .lines()
        .filter(|line| line.contains("outgate: "))
        .count();
    eprintln!(
        "{}: {lines} lines of outgate's on its screen\n{text}",
        agent.preset
    );
    let repository = stage.repository();
    assert!(fs::metadata(repository.join("notes.txt")).is_ok());
}

lab_tests! {
    fn claude_code_answers_in_a_terminal(lab) {
        let key = key(CLAUDE.key.1);
        let (_, end) = key.split_at(key.len() - 20);
        let work = lab.folder("work", outgate_harness::Identity::all().pop().expect("one"));
        let state = format!(
            r#"{{"hasCompletedOnboarding": true, "theme": "dark", "numStartups": 3,
"customApiKeyResponses": {{"approved": ["{end}"], "rejected": []}},
"projects": {{"{}": {{"hasTrustDialogAccepted": true, "hasCompletedProjectOnboarding": true}}}}}}"#,
            work.display()
        );
        let command = "outgate run -P claude-code -- claude";
        ask(lab, &CLAUDE, &[(".claude.json", state)], command, "? for shortcuts");
    }

    fn codex_answers_in_a_terminal(lab) {
        let codex = Agent { key: ("OPENAI_API_KEY", "openai-key"), ..CODEX };
        let auth = format!(r#"{{"OPENAI_API_KEY": "{}"}}"#, key("openai-key"));
        let work = lab.folder("work", outgate_harness::Identity::all().pop().expect("one"));
        let config = format!("[projects.\"{}\"]\ntrust_level = \"trusted\"", work.display());
        let state = [(".codex/auth.json", auth), (".codex/config.toml", config)];
        let command = "outgate run -P codex -- codex";
        ask(lab, &codex, &state, command, "OpenAI Codex");
    }

    fn gemini_cli_answers_in_a_terminal(lab) {
        let state = r#"{"security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": false}}}"#;
        let state = [(".gemini/settings.json", state.to_owned())];
        let command = "outgate run -P gemini-cli -- gemini";
        ask(lab, &GEMINI, &state, command, "Type your message");
    }

    fn qwen_code_answers_in_a_terminal(lab) {
        let state = r#"{"security": {"auth": {"selectedType": "openai"}, "folderTrust": {"enabled": false}}}"#;
        let state = [(".qwen/settings.json", state.to_owned())];
        let command = "outgate run -P qwen-code -- qwen";
        ask(lab, &QWEN, &state, command, "Type your message");
    }

    fn opencode_answers_in_a_terminal(lab) {
        let state = r#"{"model": "anthropic/claude-sonnet-4-5"}"#;
        let state = [(".config/opencode/opencode.json", state.to_owned())];
        let command = "outgate run -P opencode -- opencode";
        ask(lab, &OPENCODE, &state, command, "Ask anything");
    }

    fn copilot_cli_answers_in_a_terminal(lab) {
        let work = lab.folder("work", outgate_harness::Identity::all().pop().expect("one"));
        let state = format!(r#"{{"trusted_folders": ["{}"], "banner": "never"}}"#, work.display());
        let state = [(".copilot/config.json", state)];
        let command = "outgate run -P copilot-cli -- copilot";
        ask(lab, &COPILOT, &state, command, "? help");
    }

    fn aider_answers_in_a_terminal(lab) {
        let command = "outgate run -P aider -- aider --no-show-release-notes --no-gitignore --model anthropic/claude-sonnet-4-5";
        ask(lab, &AIDER, &[], command, ">");
    }
}
