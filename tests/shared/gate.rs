//! A shared gateway of one test, and runs that use it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use outgate_harness::{Identity, Lab, Outcome, Running, Sandbox, audit, eventually};
use serde_json::Value;

/// Longest life of a gateway in a test.
const GATEWAY_SECONDS_MAX: u64 = 200;
/// Longest wait for it to listen.
const READY: Duration = Duration::from_secs(20);

/// What starts a gateway: its options, and what stands before the program.
#[derive(Debug, Default, Clone)]
pub(crate) struct Plan {
    pub(crate) before: Vec<String>,
    pub(crate) options: Vec<String>,
}

impl Plan {
    /// A gateway for all users with these words as options.
    pub(crate) fn new(options: &[&str]) -> Self {
        let options = ["--all-users"].iter().chain(options);
        Self {
            before: Vec::new(),
            options: options.map(|&word| word.to_owned()).collect(),
        }
    }
}

/// A running gateway.
#[derive(Debug)]
pub(crate) struct Gate {
    running: Running,
    pub(crate) socket: PathBuf,
    pub(crate) record: PathBuf,
}

impl Gate {
    /// Starts one as `identity` and waits until it listens.
    pub(crate) fn start(lab: &Lab, identity: Identity, plan: &Plan) -> Self {
        let folder = lab.folder("gate", identity);
        let (socket, record) = (folder.join("gate"), folder.join("record.jsonl"));
        let running = gateway(lab, identity, &socket, &record, plan);
        let listens = eventually(READY, || running.errors().contains("listens at"));
        assert!(listens, "no gateway: {}", running.errors());
        Self {
            running,
            socket,
            record,
        }
    }

    /// A run of `identity` that uses it.
    pub(crate) fn sandbox<'lab>(&self, lab: &'lab Lab, identity: Identity) -> Sandbox<'lab> {
        lab.sandbox(identity)
            .option("--gateway", &self.socket.to_string_lossy())
    }

    /// Everything recorded so far.
    pub(crate) fn records(&self) -> Vec<Value> {
        audit::records_so_far(&self.record)
    }

    /// The process that serves.
    pub(crate) fn server(&self) -> Pid {
        Pid::from_raw(self.running.gateway())
    }

    /// The process that was started.
    pub(crate) fn front(&self) -> Pid {
        Pid::from_raw(self.running.pid())
    }

    /// What it said so far.
    pub(crate) fn errors(&self) -> String {
        self.running.errors()
    }

    /// Waits for it to end by itself.
    pub(crate) fn finish(self) -> Outcome {
        self.running.finish()
    }

    /// Ends it in order.
    pub(crate) fn end(self) -> Outcome {
        kill(self.front(), Signal::SIGTERM).expect("the gateway is there");
        self.running.finish()
    }
}

/// `outgate gateway` as a command, started.
pub(crate) fn gateway(
    lab: &Lab,
    identity: Identity,
    socket: &Path,
    record: &Path,
    plan: &Plan,
) -> Running {
    let mut words = identity.prefix();
    words.extend(plan.before.iter().cloned());
    words.push(program(lab));
    words.extend(["gateway", "--listen"].map(str::to_owned));
    words.push(socket.to_string_lossy().into_owned());
    words.push("--audit".to_owned());
    words.push(record.to_string_lossy().into_owned());
    words.extend(plan.options.iter().cloned());
    start(lab, identity, &words, GATEWAY_SECONDS_MAX)
}

/// `outgate` with these words, as `identity`, to its end.
pub(crate) fn outgate(lab: &Lab, identity: Identity, words: &[&str]) -> Outcome {
    let mut line = identity.prefix();
    line.push(program(lab));
    line.extend(words.iter().map(|&word| word.to_owned()));
    start(lab, identity, &line, 60).finish()
}

/// Where `outgate` lies.
pub(crate) fn program(lab: &Lab) -> String {
    let program = lab.tools.programs.join("outgate");
    program.to_string_lossy().into_owned()
}

/// A command started as one of the lab.
pub(crate) fn start(lab: &Lab, identity: Identity, words: &[String], seconds: u64) -> Running {
    use std::os::unix::process::CommandExt;
    let (program, arguments) = words.split_first().expect("a command");
    let mut command = Command::new(program);
    command
        .args(arguments)
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
        .env("HOME", lab.folder("home", identity))
        .env("XDG_STATE_HOME", lab.folder("state", identity))
        .current_dir(lab.folder("elsewhere", identity))
        .stdin(Stdio::null())
        .process_group(0);
    Running::start(&mut command, Duration::from_secs(seconds))
}

/// `curl` for a status code, within `seconds`.
pub(crate) fn curl(url: &str, seconds: u32) -> Vec<String> {
    let seconds = seconds.to_string();
    [
        "curl",
        "-sS",
        "-m",
        &seconds,
        "-o",
        "/dev/null",
        "-w",
        "%{http_code}\n",
        url,
    ]
    .map(str::to_owned)
    .to_vec()
}

/// A shell script as a command.
pub(crate) fn shell(script: &str) -> Vec<String> {
    ["sh", "-c", script].map(str::to_owned).to_vec()
}

/// A Python program as a command.
pub(crate) fn python(program: &str) -> Vec<String> {
    ["/usr/bin/python3", "-c", program]
        .map(str::to_owned)
        .to_vec()
}

/// The chain of a record: numbered without gap, each line naming another hash.
pub(crate) fn assert_chained(records: &[Value]) {
    let mut seen = std::collections::HashSet::new();
    for (position, record) in records.iter().enumerate() {
        assert_eq!(record["seq"], position as u64 + 1, "{record}");
        assert!(seen.insert(record["prev"].to_string()), "{record}");
        assert_eq!(record["run"], records[0]["run"], "{record}");
    }
}
