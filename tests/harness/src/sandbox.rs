//! A run of `outgate run`, built step by step. Environment, directories and
//! account are fixed here, so that two machines run the same thing.

use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::identity::Identity;
use crate::lab::Lab;
use crate::run::{Outcome, Running};

/// Longest time of a run, unless the test says otherwise.
const RUN_SECONDS_MAX: u64 = 60;

/// A run that is being described.
#[derive(Debug)]
pub struct Sandbox<'lab> {
    lab: &'lab Lab,
    identity: Identity,
    programs: PathBuf,
    before: Vec<String>,
    options: Vec<String>,
    environment: Vec<(String, String)>,
    input: Input,
    limit: Duration,
    directory: Option<PathBuf>,
    subcommand: &'static str,
}

#[derive(Debug)]
enum Input {
    Nothing,
    Pipe,
    Inherit,
}

impl Lab {
    /// A sandbox for `identity`.
    pub fn sandbox(&self, identity: Identity) -> Sandbox<'_> {
        Sandbox::new(self, identity)
    }
}

impl<'lab> Sandbox<'lab> {
    /// Everything readable, the working directory writable, no network.
    pub fn new(lab: &'lab Lab, identity: Identity) -> Self {
        let sandbox = Self::plain(lab, identity);
        let work = sandbox.work().to_string_lossy().into_owned();
        sandbox.option("-r", "/").option("-w", &work)
    }

    /// No option at all: what a user gets who gives none.
    pub fn plain(lab: &'lab Lab, identity: Identity) -> Self {
        Self {
            lab,
            identity,
            programs: lab.tools.programs.clone(),
            before: identity.prefix(),
            options: Vec::new(),
            environment: Vec::new(),
            input: Input::Nothing,
            limit: Duration::from_secs(RUN_SECONDS_MAX),
            directory: None,
            subcommand: "run",
        }
    }

    /// Runs `outgate SUBCOMMAND` in the place of `outgate run`.
    #[must_use]
    pub fn subcommand(mut self, name: &'static str) -> Self {
        self.subcommand = name;
        self
    }

    /// Starts in this directory, not in [`Sandbox::work`].
    #[must_use]
    pub fn within(mut self, directory: PathBuf) -> Self {
        self.directory = Some(directory);
        self
    }

    /// The working directory.
    pub fn work(&self) -> PathBuf {
        self.lab.folder("work", self.identity)
    }

    /// Where the run keeps temporary files.
    pub fn temporary(&self) -> PathBuf {
        self.lab.folder("tmp", self.identity)
    }

    /// Adds an option with a value.
    #[must_use]
    pub fn option(mut self, name: &str, value: &str) -> Self {
        self.options.extend([name.to_owned(), value.to_owned()]);
        self
    }

    /// Adds an option without a value.
    #[must_use]
    pub fn flag(mut self, name: &str) -> Self {
        self.options.push(name.to_owned());
        self
    }

    /// Allows by a rule.
    #[must_use]
    pub fn allow(self, rule: &str) -> Self {
        self.option("-a", rule)
    }

    /// Denies by a rule.
    #[must_use]
    pub fn deny(self, rule: &str) -> Self {
        self.option("-d", rule)
    }

    /// Pins a name: `HOST[:PORT]=ADDR[:PORT]`.
    #[must_use]
    pub fn pin(self, pin: &str) -> Self {
        self.option("--resolve", pin)
    }

    /// Sets a variable of the launcher's environment.
    #[must_use]
    pub fn environment(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Runs the programs of another folder.
    #[must_use]
    pub fn programs(mut self, folder: PathBuf) -> Self {
        self.programs = folder;
        self
    }

    /// Puts words before `outgate`, after the change of account.
    #[must_use]
    pub fn wrap(mut self, words: &[&str]) -> Self {
        self.before
            .extend(words.iter().map(|&word| word.to_owned()));
        self
    }

    /// Gives it a pipe as standard input.
    #[must_use]
    pub fn with_input(mut self) -> Self {
        self.input = Input::Pipe;
        self
    }

    /// Leaves standard input as the wrapper or the test has it.
    #[must_use]
    pub fn inherit_input(mut self) -> Self {
        self.input = Input::Inherit;
        self
    }

    /// The longest time it may run.
    #[must_use]
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Starts `command` in it.
    ///
    /// # Panics
    /// When it cannot be started.
    pub fn start(self, command: &[String]) -> Running {
        let outgate = self.programs.join("outgate");
        let mut words = self.before.clone();
        words.push(outgate.to_string_lossy().into_owned());
        words.push(self.subcommand.to_owned());
        words.extend(self.options.iter().cloned());
        words.push("--".to_owned());
        words.extend_from_slice(command);
        let (program, arguments) = words.split_first().expect("a command");
        let mut run = Command::new(program);
        run.args(arguments)
            .env_clear()
            .env(
                "PATH",
                "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            )
            .env("LANG", "C.UTF-8")
            .env("HOME", self.lab.folder("home", self.identity))
            .env("TMPDIR", self.temporary())
            .env("XDG_RUNTIME_DIR", self.lab.folder("run", self.identity))
            .env("XDG_STATE_HOME", self.lab.folder("state", self.identity))
            .envs(self.environment.iter().cloned())
            .current_dir(self.directory.clone().unwrap_or_else(|| self.work()))
            .process_group(0);
        match self.input {
            Input::Nothing => run.stdin(Stdio::null()),
            Input::Pipe => run.stdin(Stdio::piped()),
            Input::Inherit => run.stdin(Stdio::inherit()),
        };
        Running::start(&mut run, self.limit)
    }

    /// Runs `command` in it.
    pub fn run(self, command: &[String]) -> Outcome {
        self.start(command).finish()
    }

    /// Runs a probe in it.
    pub fn probe(self, arguments: &[&str]) -> Outcome {
        let command = self.lab.probe(arguments);
        self.run(&command)
    }

    /// Starts a probe in it.
    pub fn start_probe(self, arguments: &[&str]) -> Running {
        let command = self.lab.probe(arguments);
        self.start(&command)
    }
}
