//! The stage of a test, inside its laboratory: every name leads to models that follow a
//! script, over TLS that the machine trusts; the agents appear where programs of the
//! machine are; a repository, and a home directory.

use std::fmt::Write as _;
use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Command;

use outgate_harness::names::Names;
use outgate_harness::servers::{is_there, serve};
use outgate_harness::{Identity, Lab, Outcome, Sandbox, skip};
use serde_json::Value;

/// Where every name leads.
const ADDRESS: Ipv4Addr = Ipv4Addr::new(93, 184, 216, 34);

/// Where the agents appear: a directory of programs, as `base` knows them.
const PROGRAMS: &str = "/opt/agents";

/// The machine's roots, to which those of the stage are added.
pub(crate) const BUNDLE: &str = "/etc/ssl/certs/ca-certificates.crt";

/// Hosts that the certificate of the models is for.
const SECURE: [&str; 19] = [
    "api.anthropic.com",
    "platform.claude.com",
    "api.openai.com",
    "chatgpt.com",
    "auth.openai.com",
    "ab.chatgpt.com",
    "generativelanguage.googleapis.com",
    "play.googleapis.com",
    "dashscope.aliyuncs.com",
    "api.githubcopilot.com",
    "api.individual.githubcopilot.com",
    "api.github.com",
    "github.com",
    "models.opencode.ai",
    "models.dev",
    "opencode.ai",
    "raw.githubusercontent.com",
    "denied.example.test",
    "other.example.test",
];

/// What is in the home directory before the agent's first start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Home {
    /// Nothing.
    Empty,
    /// What people have, and a state of the agent's from before.
    Ordinary,
}

/// A request that a model got.
#[derive(Debug)]
pub(crate) struct Request {
    pub host: String,
    pub method: String,
    pub path: String,
    /// Values of the fields that carry keys.
    pub keys: Vec<String>,
    /// Results of tools, as the agent tells them.
    pub results: Vec<String>,
}

/// The models and the agents. They end with the laboratory.
#[derive(Debug)]
pub(crate) struct Stage<'lab> {
    pub(crate) lab: &'lab Lab,
    pub(crate) identity: Identity,
    folder: PathBuf,
    _names: Names,
}

/// The folder that `tools/install` installed the agents into.
fn installed() -> Option<PathBuf> {
    let said = std::env::var_os("OUTGATE_AGENT_TOOLS").map(PathBuf::from);
    let above = Path::new(env!("CARGO_TARGET_TMPDIR")).ancestors();
    let mut all = said
        .into_iter()
        .chain(above.map(|folder| folder.join("agent-tools")));
    all.find(|folder| folder.join(".installed").exists())
}

impl<'lab> Stage<'lab> {
    /// Starts the models. `None`, with a word why, when something is missing.
    ///
    /// # Panics
    /// When they do not start.
    pub(crate) fn start(lab: &'lab Lab) -> Option<Self> {
        let Some(tools) = installed() else {
            skip("the agents are not there: run tests/agents/tools/install");
            return None;
        };
        let all = ["python3", "git", "curl", "openssl", "node", "tmux"];
        if !all.iter().all(|program| is_there(program)) {
            return None;
        }
        let stage = Self {
            lab,
            identity: Identity::all().into_iter().last()?,
            folder: lab.folder("models", Identity::Own),
            _names: Names::start(vec![ADDRESS]),
        };
        stage.roots();
        let resolver = stage.folder.join("resolv.conf");
        fs::write(&resolver, "nameserver 127.0.0.1\n").expect("a file");
        mount(&["--bind", &resolver.to_string_lossy(), "/etc/resolv.conf"]);
        mount(&["-t", "tmpfs", "-o", "mode=755", "none", "/opt"]);
        fs::create_dir_all(PROGRAMS).expect("a folder");
        mount(&["--bind", &tools.to_string_lossy(), PROGRAMS]);
        stage.models();
        Some(stage)
    }

    /// Makes an authority that the machine trusts, and a certificate for the models.
    fn roots(&self) {
        let names: Vec<String> = SECURE.iter().map(|name| format!("DNS:{name}")).collect();
        let script = format!(
            "set -e; make='openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 3'
$make -keyout ca.key -out ca.pem -subj /CN=origins -addext basicConstraints=critical,CA:TRUE
$make -keyout models.key -out models.pem -CA ca.pem -CAkey ca.key -subj /CN=models \\
  -addext basicConstraints=critical,CA:FALSE -addext extendedKeyUsage=serverAuth -addext subjectAltName={}
cat {BUNDLE} ca.pem > bundle.pem; chmod 0644 bundle.pem",
            names.join(",")
        );
        let mut shell = Command::new("sh");
        let made = shell
            .args(["-c", &script])
            .current_dir(&self.folder)
            .output();
        let made = made.expect("a shell");
        let said = String::from_utf8_lossy(&made.stderr);
        assert!(made.status.success(), "no certificate: {said}");
        let bundle = self.folder.join("bundle.pem");
        mount(&["--bind", &bundle.to_string_lossy(), BUNDLE]);
    }

    fn models(&self) {
        let path = |name: &str| self.folder.join(name).to_string_lossy().into_owned();
        fs::write(path("models.py"), include_str!("origins/models.py")).expect("the models");
        let line = [
            "/usr/bin/python3".to_owned(),
            path("models.py"),
            "443".to_owned(),
            path("models.pem"),
            path("models.key"),
            path("models.log"),
        ];
        let line: Vec<&str> = line.iter().map(String::as_str).collect();
        serve(&line, &self.folder, &[&format!("{ADDRESS}:443")]);
    }

    /// The requests that arrived since this was called last.
    pub(crate) fn seen(&self) -> Vec<Request> {
        let log = self.folder.join("models.log");
        let lines = fs::read_to_string(&log).unwrap_or_default();
        fs::remove_file(log).ok();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let request = |line: &str| {
            let line: Value = serde_json::from_str(line).expect("a line of the log");
            let field = |name: &str| line.get(name).cloned().unwrap_or_default();
            let keys = field("keys");
            let keys = keys.as_object().into_iter().flatten();
            Request {
                host: text(&field("host")),
                method: text(&field("method")),
                path: text(&field("path")),
                keys: keys.map(|(_, value)| text(value)).collect(),
                results: field("results")
                    .as_array()
                    .into_iter()
                    .flatten()
                    .map(text)
                    .collect(),
            }
        };
        lines.lines().map(request).collect()
    }

    /// The home directory.
    pub(crate) fn home(&self) -> PathBuf {
        self.lab.folder("home", self.identity)
    }

    /// The repository.
    pub(crate) fn repository(&self) -> PathBuf {
        self.lab.folder("work", self.identity)
    }

    /// Empties home and repository, and puts there what a test begins with.
    ///
    /// # Panics
    /// When a step fails.
    pub(crate) fn begin(&self, home: Home, files: &[(&str, String)]) {
        for folder in [self.home(), self.repository()] {
            fs::remove_dir_all(&folder).expect("an old folder");
        }
        let (home_folder, _) = (self.home(), self.repository());
        let mut script = "set -e; git init -q -b main .; echo hello > notes.txt; git add .\n\
                          git config user.name me; git config user.email me@example.test\n\
                          git commit -qm first\n"
            .to_owned();
        if home == Home::Ordinary {
            script.push_str(
                "mkdir -p ~/.ssh ~/.config/git; echo key > ~/.ssh/id; chmod 700 ~/.ssh\n\
                 printf '[user]\\nname = me\\nemail = me@example.test\\n' > ~/.gitconfig\n",
            );
            for (path, text) in files {
                let _ = writeln!(
                    script,
                    "mkdir -p \"$(dirname ~/'{path}')\"; cat > ~/'{path}' <<'END'\n{text}\nEND"
                );
            }
        }
        let home = format!("HOME={}", home_folder.display());
        let line = ["env", &home, "bash", "-c", &script].map(str::to_owned);
        let outcome = self.lab.start_bare(self.identity, &line).finish();
        assert_eq!(outcome.code, Some(0), "{outcome}");
    }

    /// `outgate run -P PRESET`, as this account at home has it.
    pub(crate) fn sandbox(&self, preset: &str) -> Sandbox<'lab> {
        self.bare().option("-P", preset)
    }

    /// `outgate run` without a policy.
    pub(crate) fn bare(&self) -> Sandbox<'lab> {
        let state = self.home().join(".local/state");
        Sandbox::plain(self.lab, self.identity)
            .environment("PATH", &path())
            .environment("XDG_STATE_HOME", &state.to_string_lossy())
            .environment("TERM", "xterm-256color")
            .environment("COLORTERM", "truecolor")
    }

    /// `env` with what an account at home has, and these variables; a command follows.
    pub(crate) fn environment(&self, variables: &[(&str, &str)]) -> Vec<String> {
        let home = self.home();
        let programs = self.lab.tools.programs.display();
        let own = [
            ("LC_ALL", "C.UTF-8".to_owned()),
            ("HOME", home.display().to_string()),
            (
                "TMPDIR",
                self.lab.folder("tmp", self.identity).display().to_string(),
            ),
            (
                "PATH",
                format!("{}/.cargo/bin:{programs}:{}", home.display(), path()),
            ),
        ];
        let own = own.iter().map(|(name, value)| format!("{name}={value}"));
        let others = variables
            .iter()
            .map(|(name, value)| format!("{name}={value}"));
        let env = ["env", "-i"].map(str::to_owned);
        env.into_iter().chain(own).chain(others).collect()
    }

    /// Runs a line of a shell in the repository, as the account.
    pub(crate) fn shell(&self, variables: &[(&str, &str)], line: &str) -> Outcome {
        let mut words = self.environment(variables);
        words.extend(["bash", "--norc", "-c", line].map(str::to_owned));
        self.lab.start_bare(self.identity, &words).finish()
    }

    /// The subjects of the repository's commits, newest first.
    pub(crate) fn commits(&self) -> Vec<String> {
        let line = ["git", "log", "--format=%s"].map(str::to_owned);
        let outcome = self.lab.start_bare(self.identity, &line).finish();
        outcome.stdout.lines().map(str::to_owned).collect()
    }
}

/// Where programs are found.
pub(crate) fn path() -> String {
    format!("/usr/local/bin:/usr/bin:/bin:{PROGRAMS}/node_modules/.bin:{PROGRAMS}/python/bin")
}

fn mount(arguments: &[&str]) {
    let done = Command::new("mount").args(arguments).status();
    let is_done = done.is_ok_and(|status| status.success());
    assert!(is_done, "mount {arguments:?}");
}
