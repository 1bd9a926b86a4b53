//! `outgate check --clients`: every known client that is installed here, tried in
//! a run against an origin of our own: does it trust the run's authority, and
//! by what? Each is tried with the one variable that it is known to read, then
//! with all of them, then with bundles given at open; or, where it reads none,
//! with the shipped policy that is for it.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read, Take};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitCode, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use outgate_launcher::run::gateway_program;
use outgate_launcher::trust;
use outgate_policy::legible;

use crate::report;

mod known;

use known::{By, CLIENTS, Client, Proof, Request};

/// Longest time of one attempt.
const ATTEMPT_TIME: Duration = Duration::from_secs(20);
/// How long it takes at most until what was asked shows.
const SHOWN_TIME: Duration = Duration::from_millis(500);
/// Longest time for the origin to be there.
const START_TIME: Duration = Duration::from_secs(10);
/// Bytes kept of what a client says.
const SAID_BYTES_MAX: u64 = 64 * 1024;
/// Names that are asked: `CLIENT.outgate.test`.
const DOMAIN: &str = "outgate.test";
/// A client does not trust a run.
const UNTRUSTED: u8 = 1;
/// Nothing can be tried.
const FAILED: u8 = 125;

/// Tries them all and prints a table, row by row.
pub(crate) fn check() -> ExitCode {
    let trial = match Trial::start() {
        Ok(trial) => trial,
        Err(message) => {
            report::wrong(&message);
            return ExitCode::from(FAILED);
        }
    };
    let mut status = ExitCode::SUCCESS;
    let mut absent = Vec::new();
    report::line(&row("client", "version", "trusts a run by"));
    for client in CLIENTS {
        let Some(program) = find(client.program) else {
            absent.push(client.name);
            continue;
        };
        if !client.needs.is_empty() && !said(&program, client.needs).0 {
            absent.push(client.name);
            continue;
        }
        let version = version(&said(&program, client.version).1);
        let found = trial.attempt_all(client, &program);
        if let Found::Not(_) = found {
            status = ExitCode::from(UNTRUSTED);
        }
        report::line(&row(client.name, &version, &found.words(client)));
    }
    if !absent.is_empty() {
        report::line(&format!("\nnot here: {}", absent.join(", ")));
    }
    status
}

fn row(client: &str, version: &str, by: &str) -> String {
    format!("{client:<18} {version:<12} {by}")
}

/// What makes a client trust.
enum Found {
    /// What it is known to trust by, alone.
    Known,
    /// Some of the variables.
    Variables,
    /// A bundle at a known place, given at open.
    Splice,
    /// Nothing; what was said about it.
    Not(String),
}

impl Found {
    fn words(&self, client: &Client) -> String {
        match self {
            Self::Known => match client.by {
                By::Variable(name) => name.to_owned(),
                By::Preset(name) => format!("-P {name}"),
            },
            Self::Variables => "the variables of a run, together".to_owned(),
            Self::Splice => "--trust splice".to_owned(),
            Self::Not(why) => format!("nothing: {why}"),
        }
    }
}

/// The origin, and the hosts it was asked as.
struct Trial {
    origin: Child,
    /// It ends when this does.
    _stdin: Option<ChildStdin>,
    asked: Receiver<String>,
    port: u16,
    directory: Folder,
}

/// A directory that is removed with what is in it.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        // What cannot be removed lies among the temporary files.
        drop(std::fs::remove_dir_all(&self.0));
    }
}

impl Drop for Trial {
    fn drop(&mut self) {
        drop(self.origin.kill());
        drop(self.origin.wait());
    }
}

impl Trial {
    fn start() -> Result<Self, String> {
        let program = gateway_program();
        let failed = |error: std::io::Error| format!("{}: {error}", program.display());
        let mut origin = Command::new(&program)
            .args(["trial", env!("CARGO_PKG_VERSION")])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(failed)?;
        let (send, lines) = channel();
        let said = origin.stdout.take();
        thread::spawn(move || {
            let lines = said
                .map(BufReader::new)
                .into_iter()
                .flat_map(BufRead::lines);
            // Nobody listens any more: the table is complete.
            lines
                .map_while(Result::ok)
                .all(|line| send.send(line).is_ok())
        });
        let directory = folder().map_err(|error| format!("a directory for the trial: {error}"))?;
        let mut trial = Self {
            _stdin: origin.stdin.take(),
            origin,
            asked: lines,
            port: 0,
            directory,
        };
        let next = || trial.asked.recv_timeout(START_TIME);
        let silent = |_: RecvTimeoutError| "outgate-gateway does not start a trial".to_owned();
        let port = next().map_err(silent)?;
        let mut authority = String::new();
        loop {
            let line = next().map_err(silent)?;
            if line.is_empty() {
                break;
            }
            authority.push_str(&line);
            authority.push('\n');
        }
        trial.port = port.parse().map_err(|_| format!("no port: {port}"))?;
        let written = std::fs::write(trial.authority(), authority);
        written.map_err(|error| format!("{}: {error}", trial.authority().display()))?;
        Ok(trial)
    }

    fn authority(&self) -> PathBuf {
        self.directory.0.join("authority.pem")
    }

    fn attempt_all(&self, client: &Client, program: &Path) -> Found {
        let variable = match client.by {
            By::Variable(variable) => variable,
            // No variable helps: nothing else is left to try.
            By::Preset(name) => {
                let options = ["-P", name].map(OsString::from);
                let attempt = self.attempt(client, program, &options, Kept::All);
                return attempt.map_or_else(Found::Not, |()| Found::Known);
            }
        };
        let splice = [OsString::from("--trust"), OsString::from("splice")];
        let mut why = String::new();
        for (options, kept, found) in [
            (&[][..], Kept::One(variable), Found::Known),
            (&[], Kept::All, Found::Variables),
            (&splice, Kept::All, Found::Splice),
        ] {
            match self.attempt(client, program, options, kept) {
                Ok(()) => return found,
                Err(said) => why = said,
            }
        }
        Found::Not(why)
    }

    /// One run; in words why the origin was not asked, if it was not.
    fn attempt(
        &self,
        client: &Client,
        program: &Path,
        options: &[OsString],
        kept: Kept,
    ) -> Result<(), String> {
        while self.asked.try_recv().is_ok() {}
        let host = format!("{}.{DOMAIN}", client.host());
        let mut run = self.run(&host, options)?;
        if let Kept::One(variable) = kept {
            run.arg("env");
            // The user's own directory of certificates keeps curl from the file.
            for name in trust::names().chain(["SSL_CERT_DIR"]) {
                if name != variable {
                    run.args(["-u", name]);
                }
            }
        }
        let url = format!("https://{host}");
        match client.request {
            Request::Arguments(words) => {
                run.arg(program);
                run.args(words.iter().map(|word| word.replace("URL", &url)));
            }
            Request::Line(line) => {
                run.args(["sh", "-c", &line.replace("URL", &url)]);
            }
        }
        let ended = bounded(&mut run);
        if client.proof == Proof::Status {
            return match ended? {
                (Ended::Well, _) => Ok(()),
                (Ended::Badly, said) => Err(reason(&said)),
            };
        }
        // What asked does trust, also if it did not end in time.
        let end = Instant::now() + SHOWN_TIME;
        let left = || end.saturating_duration_since(Instant::now());
        while let Ok(asked) = self.asked.recv_timeout(left()) {
            if asked == host {
                return Ok(());
            }
        }
        Err(ended.map_or_else(|late| late, |(_, said)| reason(&said)))
    }

    /// `outgate run` with what a trial needs.
    fn run(&self, host: &str, options: &[OsString]) -> Result<Command, String> {
        let outgate = std::env::current_exe().map_err(|error| format!("outgate: {error}"))?;
        let work = self.directory.0.join("work");
        drop(std::fs::create_dir(&work));
        let mut run = Command::new(outgate);
        run.args(["run", "--no-summary", "-P", "dev-tools", "-w", "."])
            .arg("--audit")
            .arg(self.directory.0.join("record.jsonl"))
            .arg("--upstream-ca")
            .arg(self.authority())
            .args(["--resolve", &format!("{host}:443=127.0.0.1:{}", self.port)])
            .args(["-a", &format!("https://{host}/**")])
            .args(["--intercept", "always"])
            .args(options)
            .arg("--")
            .current_dir(&work);
        Ok(run)
    }
}

/// Which of the variables that make programs trust are left.
#[derive(Clone, Copy)]
enum Kept {
    One(&'static str),
    All,
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ended {
    Well,
    Badly,
}

/// Runs a command within its time: how it ended, and what it said on standard
/// error.
fn bounded(command: &mut Command) -> Result<(Ended, String), String> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| error.to_string())?;
    let (send, end) = channel();
    let said = child.stderr.take();
    thread::spawn(move || {
        let mut text = Vec::new();
        let mut said = said.map(|said| said.take(SAID_BYTES_MAX));
        // What was read before a failure counts as well; the rest is passed over.
        drop(said.as_mut().map(|said| said.read_to_end(&mut text)));
        let mut rest = said.map(Take::into_inner);
        drop(
            rest.as_mut()
                .map(|rest| std::io::copy(rest, &mut std::io::sink())),
        );
        // Nobody listens any more when this took too long.
        drop(send.send(String::from_utf8_lossy(&text).into_owned()));
    });
    // outgate itself holds it open to its end.
    let Ok(said) = end.recv_timeout(ATTEMPT_TIME) else {
        // Its guardian ends all that it started.
        drop(child.kill());
        drop(child.wait());
        return Err(format!("no end within {} s", ATTEMPT_TIME.as_secs()));
    };
    let ended = match child.wait() {
        Ok(status) if status.success() => Ended::Well,
        Ok(_) | Err(_) => Ended::Badly,
    };
    Ok((ended, said))
}

/// What a client, or outgate about it, said last.
fn reason(said: &str) -> String {
    /// What fits two lines.
    const CHARACTERS_MAX: usize = 160;
    let lines = || said.lines().map(str::trim).filter(|line| !line.is_empty());
    let ours = lines().find(|line| line.starts_with("outgate: denied") || line.contains("trust"));
    let line = ours
        .or_else(|| lines().next_back())
        .unwrap_or("it never asked");
    legible(line).chars().take(CHARACTERS_MAX).collect()
}

/// Where a program is, by PATH or by its own path.
fn find(program: &str) -> Option<PathBuf> {
    if program.starts_with('/') {
        return Some(PathBuf::from(program)).filter(|path| path.is_file());
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|folder| folder.join(program))
        .find(|path| path.is_file())
}

/// Whether a program ended well, and what it said, outside a run.
fn said(program: &Path, arguments: &[&str]) -> (bool, String) {
    let output = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .output();
    output.map_or((false, String::new()), |output| {
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&text).into_owned();
        (output.status.success(), text)
    })
}

/// The first thing that looks like a version.
fn version(text: &str) -> String {
    let words = text.split(|sign: char| !(sign.is_ascii_alphanumeric() || sign == '.'));
    let trimmed = words.map(|word| word.trim_start_matches(|sign: char| !sign.is_ascii_digit()));
    let is_version = |word: &&str| word.contains('.') && word.len() >= 3;
    let found = trimmed.into_iter().find(is_version).unwrap_or("?");
    found.trim_end_matches('.').chars().take(12).collect()
}

fn folder() -> std::io::Result<Folder> {
    use std::os::unix::fs::DirBuilderExt;
    for number in 0..64_u32 {
        let name = format!("outgate-check-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        match std::fs::DirBuilder::new().mode(0o700).create(&path) {
            Ok(()) => return Ok(Folder(path)),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(std::io::ErrorKind::AlreadyExists.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn versions_are_found_in_what_programs_say() {
        for (text, expected) in [
            ("curl 7.88.1 (x86_64-pc-linux-gnu) libcurl/7.88.1", "7.88.1"),
            ("v20.19.2\n", "20.19.2"),
            ("go version go1.19.8 linux/amd64", "1.19.8"),
            ("openjdk version \"17.0.16\" 2025-07-15", "17.0.16"),
            (
                "This is perl 5, version 36, subversion 0 (v5.36.0)",
                "5.36.0",
            ),
            ("nothing here", "?"),
        ] {
            assert_eq!(version(text), expected, "{text}");
        }
    }

    #[test]
    fn a_reason_is_one_printable_line() {
        let said = "outgate: denied TLS: x\nerror: \u{1b}[31mbad\n";
        assert_eq!(reason(said), "outgate: denied TLS: x");
        assert_eq!(reason("a\n\u{7}last\n\n"), "\u{fffd}last");
        assert_eq!(reason(""), "it never asked");
    }

    #[test]
    fn every_client_asks_a_host_of_its_own() {
        let hosts: HashSet<String> = CLIENTS.iter().map(Client::host).collect();
        assert_eq!(hosts.len(), CLIENTS.len());
        for client in CLIENTS {
            match client.by {
                By::Variable(variable) => {
                    assert!(
                        trust::names().any(|name| name == variable),
                        "{}",
                        client.name
                    );
                }
                By::Preset(name) => {
                    assert!(outgate_policy::preset(name).is_some(), "{}", client.name);
                }
            }
            let asks = match client.request {
                Request::Arguments(words) => words.concat(),
                Request::Line(line) => line.to_owned(),
            };
            assert!(asks.contains("URL"), "{}", client.name);
        }
    }
}
