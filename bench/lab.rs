//! Where the bench works: a directory of its own with the built C programs,
//! environment and home of its own, and commands at raised priority with a time
//! limit. May build, start and end programs; does not judge what they measure.

use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};

use crate::{Outcome, secure};

/// Longest time of one command, in seconds.
const COMMAND_SECONDS_MAX: &str = "120";

/// Where the origin inside TLS says what verifies it, in the working directory.
pub(crate) const ROOTS: &str = "origin.pem";

const PROGRAMS: [&str; 5] = ["spawn", "origin", "client", "store", "load"];

/// How much is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Amount {
    /// Enough to see that it works.
    Quick,
    /// Enough to quote.
    Full,
}

/// How the measured programs are kept from waiting for others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Priority {
    Real,
    Nice,
    Ordinary,
}

impl Priority {
    /// The best that is allowed, at most what is asked for.
    fn best(asked: Self) -> Self {
        if asked == Self::Ordinary {
            return Self::Ordinary;
        }
        let works = |words: &[&str]| {
            words.split_first().is_some_and(|(program, rest)| {
                let mut command = Command::new(program);
                command.args(rest).arg("true").stderr(Stdio::null());
                command.status().is_ok_and(|status| status.success())
            })
        };
        [Self::Real, Self::Nice]
            .into_iter()
            .find(|priority| works(priority.words()))
            .unwrap_or(Self::Ordinary)
    }

    fn words(self) -> &'static [&'static str] {
        match self {
            Self::Real => &["chrt", "-f", "10"],
            Self::Nice => &["nice", "-n", "-20"],
            Self::Ordinary => &[],
        }
    }

    /// For the head of the table.
    pub(crate) fn describe(self) -> &'static str {
        match self {
            Self::Real => "everything measured runs with SCHED_FIFO 10",
            Self::Nice => "everything measured runs with nice -20",
            Self::Ordinary => "ordinary priority: other load is in the figures",
        }
    }
}

/// Where a command may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cores {
    /// Anywhere.
    All,
    /// All parts of it on one core, so that none waits for another to wake up.
    One,
}

/// What `spawn` measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Until {
    /// From the start until the command is reaped.
    Reaped,
    /// From the start until the time the command printed.
    Marked,
}

/// How often commands take turns: so many times, or until the time is over.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rounds {
    pub(crate) count: u32,
    pub(crate) seconds: u32,
}

/// Time and processor time of one run, in microseconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cost {
    pub(crate) wall: f64,
    pub(crate) cpu: f64,
}

/// See the head of this file.
#[derive(Debug)]
pub(crate) struct Lab {
    /// Working directory of everything measured.
    pub(crate) directory: PathBuf,
    /// How much to measure.
    pub(crate) amount: Amount,
    /// How commands are preferred.
    pub(crate) priority: Priority,
    /// A musl build of the launcher, when there is one.
    pub(crate) musl: Option<PathBuf>,
    scratch: PathBuf,
    outgate: PathBuf,
    core: Option<String>,
    is_given: bool,
}

impl Lab {
    /// Makes the directory and builds the C programs.
    pub(crate) fn prepare(amount: Amount, asked: Priority) -> Outcome<Self> {
        let scratch =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("bench-{}", std::process::id()));
        for name in ["work", "home", "state"] {
            fs::create_dir_all(scratch.join(name))?;
        }
        let given = std::env::var_os("OUTGATE_BIN_DIR");
        let outgate = given.as_ref().map_or_else(
            || PathBuf::from(env!("CARGO_BIN_EXE_outgate")),
            |directory| Path::new(directory).join("outgate"),
        );
        let lab = Self {
            directory: scratch.join("work"),
            scratch,
            amount,
            priority: Priority::best(asked),
            musl: std::env::var_os("OUTGATE_MUSL_DIR")
                .map(|directory| Path::new(&directory).join("outgate")),
            outgate: outgate
                .canonicalize()
                .map_err(|error| format!("{}: {error}", outgate.display()))?,
            core: last_core(),
            is_given: given.is_some(),
        };
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("bench/workloads");
        for program in PROGRAMS {
            let source = sources.join(program).with_extension("c");
            let mut compiler = Command::new("cc");
            compiler
                .args(["-O2", "-o"])
                .arg(lab.directory.join(program))
                .arg(source);
            run(&mut compiler)?;
        }
        // This program speaks TLS, under the names of what it does then.
        for name in [secure::CLIENT, secure::ORIGIN] {
            fs::copy(std::env::current_exe()?, lab.directory.join(name))?;
        }
        Ok(lab)
    }

    /// The home directory of everything measured, outside the working directory.
    pub(crate) fn home(&self) -> PathBuf {
        self.scratch.join("home")
    }

    /// `full` or `quick`, whichever is asked for.
    pub(crate) fn count(&self, quick: u32, full: u32) -> u32 {
        match self.amount {
            Amount::Quick => quick,
            Amount::Full => full,
        }
    }

    /// The same for commands in turns. The time holds where the machine is slow.
    pub(crate) fn rounds(&self, quick: u32, full: u32) -> Rounds {
        Rounds {
            count: self.count(quick, full),
            seconds: self.count(1, 15),
        }
    }

    /// A program of `workloads` with arguments.
    pub(crate) fn workload(&self, words: &[&str]) -> Vec<OsString> {
        let mut words = words.iter();
        let program = words
            .next()
            .map(|name| self.directory.join(name).into_os_string());
        program.into_iter().chain(words.map(Into::into)).collect()
    }

    /// `command` inside outgate, with options for it.
    pub(crate) fn inside(&self, options: &[&str], command: &[OsString]) -> Vec<OsString> {
        let mut words = vec![
            self.outgate.clone().into_os_string(),
            "run".into(),
            "--no-summary".into(),
        ];
        words.extend(options.iter().map(Into::into));
        words.push("--".into());
        words.extend_from_slice(command);
        words
    }

    /// The launcher alone, saying its version.
    pub(crate) fn version(&self) -> Vec<OsString> {
        vec![self.outgate.clone().into_os_string(), "--version".into()]
    }

    /// A command in the bench's directory and environment, at its priority, with
    /// a time limit. Its standard output goes to a file, as it mostly does.
    pub(crate) fn command(&self, words: &[OsString], cores: Cores) -> Command {
        let mut command = Command::new("timeout");
        command.args(["--foreground", "-k", "2", COMMAND_SECONDS_MAX]);
        command.args(self.priority.words());
        if let (Cores::One, Some(core)) = (cores, &self.core) {
            command.args(["taskset", "-c", core]);
        }
        command.args(words);
        self.surround(&mut command);
        command
    }

    /// A command that serves the others, without a time limit: its owner ends it.
    pub(crate) fn unlimited(&self, words: &[OsString]) -> Command {
        let mut words = self
            .priority
            .words()
            .iter()
            .map(Into::into)
            .chain(words.iter().cloned());
        let mut command = Command::new(words.next().unwrap_or_default());
        command.args(words);
        self.surround(&mut command);
        command
    }

    fn surround(&self, command: &mut Command) {
        command
            .current_dir(&self.directory)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.home())
            .env("XDG_STATE_HOME", self.scratch.join("state"))
            .env("LC_ALL", "C")
            .stdin(Stdio::null());
    }

    /// Runs a command; what it printed.
    pub(crate) fn output(&self, words: &[OsString], cores: Cores) -> Outcome<Printed> {
        let (output, errors) = (self.directory.join("output"), self.directory.join("errors"));
        let mut command = self.command(words, cores);
        // Files, so that nobody has to read while it runs.
        command
            .stdout(fs::File::create(&output)?)
            .stderr(fs::File::create(&errors)?);
        let status = command.status()?;
        let printed = Printed {
            output: String::from_utf8_lossy(&fs::read(&output)?).into_owned(),
            errors: String::from_utf8_lossy(&fs::read(&errors)?).into_owned(),
        };
        if status.success() {
            Ok(printed)
        } else {
            Err(format!(
                "{status}: {}\n{}{}",
                join(words),
                printed.output,
                printed.errors
            )
            .into())
        }
    }

    /// Prints of a command, as numbers: nanoseconds become microseconds.
    pub(crate) fn samples(&self, words: &[OsString], cores: Cores) -> Outcome<Vec<Vec<f64>>> {
        numbers(&self.output(words, cores)?.output, 1000.0)
    }

    /// Runs commands in turns; the costs of each.
    pub(crate) fn in_turns(
        &self,
        rounds: Rounds,
        until: Until,
        cores: Cores,
        commands: &[Vec<OsString>],
    ) -> Outcome<Vec<Vec<Cost>>> {
        let mut words = self.workload(&["spawn"]);
        words.push(rounds.count.to_string().into());
        words.push(rounds.seconds.to_string().into());
        words.push(match until {
            Until::Reaped => "wall".into(),
            Until::Marked => "mark".into(),
        });
        words.push("spawned".into());
        for (index, command) in commands.iter().enumerate() {
            // Once before: caches are warm, and its complaint can be read.
            self.output(command, cores)?;
            if index > 0 {
                words.push("::".into());
            }
            let (program, arguments) = command.split_first().ok_or("no command")?;
            words.push(find(program)?);
            words.extend_from_slice(arguments);
        }
        let lines = numbers(&self.output(&words, cores)?.output, 1.0)?;
        let mut costs = vec![Vec::new(); commands.len()];
        for line in lines {
            for (command, pair) in costs.iter_mut().zip(line.chunks(2)) {
                if let [wall, cpu] = pair {
                    command.push(Cost {
                        wall: wall / 1000.0,
                        cpu: *cpu,
                    });
                }
            }
        }
        Ok(costs)
    }

    /// How commands are bound to cores, for the head of the table.
    pub(crate) fn pinning(&self) -> String {
        self.core.as_ref().map_or_else(
            || "nothing is bound to a core".to_owned(),
            |core| format!("rows of connections on core {core} only, both sides"),
        )
    }

    /// Which programs are measured.
    pub(crate) fn origin_of_programs(&self) -> String {
        if self.is_given {
            format!("programs of {}", self.outgate.display())
        } else if cfg!(debug_assertions) {
            "programs built for debugging: figures mean nothing".to_owned()
        } else {
            "programs built by cargo bench (release settings)".to_owned()
        }
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        // What cannot be removed is in the target directory and does no harm.
        drop(fs::remove_dir_all(&self.scratch));
    }
}

/// What a command printed.
#[derive(Debug)]
pub(crate) struct Printed {
    pub(crate) output: String,
    pub(crate) errors: String,
}

/// A running origin; ends when dropped.
#[derive(Debug)]
pub(crate) struct Origin {
    /// Its port on 127.0.0.1.
    pub(crate) port: String,
    input: Option<ChildStdin>,
    child: Child,
}

impl Origin {
    /// Starts `origin echo`, `origin http`, `store`, or `store-tls`.
    pub(crate) fn start(lab: &Lab, kind: &str, cores: Cores) -> Outcome<Self> {
        let words = match kind {
            "store" => lab.workload(&["store"]),
            secure::ORIGIN => lab.workload(&[secure::ORIGIN, ROOTS]),
            kind => lab.workload(&["origin", kind]),
        };
        // It serves a whole part, and ends with its standard input.
        let mut command = lab.unlimited(&words);
        if let (Cores::One, Some(core)) = (cores, &lab.core) {
            let mut bound = vec!["taskset".into(), "-c".into(), core.into()];
            bound.extend_from_slice(&words);
            command = lab.unlimited(&bound);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn()?;
        let input = child.stdin.take();
        let output = child.stdout.take().ok_or("no output of the origin")?;
        let mut port = String::new();
        BufReader::new(output).read_line(&mut port)?;
        Ok(Self {
            port: port.trim().to_owned(),
            input,
            child,
        })
    }

    /// A rule for requests to it.
    pub(crate) fn http_rule(&self) -> String {
        format!("GET http://127.0.0.1:{}/**", self.port)
    }

    /// A rule for connections to it.
    pub(crate) fn tcp_rule(&self) -> String {
        format!("tcp://127.0.0.1:{}", self.port)
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        drop(self.input.take());
        // It ends with its input, and the time limit ends it if it does not.
        drop(self.child.wait());
    }
}

/// Runs a command of the preparation.
pub(crate) fn run(command: &mut Command) -> Outcome<()> {
    let output = command
        .output()
        .map_err(|error| format!("{}: {error}", command.get_program().display()))?;
    if output.status.success() {
        return Ok(());
    }
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(format!("{:?}: {}\n{words}", command, output.status).into())
}

/// The file a name on the search path stands for.
pub(crate) fn find(program: &OsString) -> Outcome<OsString> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .map(|directory| directory.join(program))
        .find(|file| file.is_file())
        .map(PathBuf::into_os_string)
        .ok_or_else(|| format!("{} is not found", program.display()).into())
}

fn last_core() -> Option<String> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let list = status
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    list.trim().rsplit([',', '-']).next().map(str::to_owned)
}

fn numbers(text: &str, divisor: f64) -> Outcome<Vec<Vec<f64>>> {
    text.lines()
        .map(|line| {
            line.split_whitespace()
                .map(|word| {
                    Ok(word
                        .parse::<f64>()
                        .map_err(|_| format!("not a number: {line}"))?
                        / divisor)
                })
                .collect()
        })
        .collect()
}

fn join(words: &[OsString]) -> String {
    words
        .iter()
        .map(|word| word.to_string_lossy())
        .collect::<Vec<_>>()
        .join(" ")
}
