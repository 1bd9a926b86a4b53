//! A started program with a hard deadline, its output as it comes, and what the
//! probes reported in it.

use std::fmt;
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;

/// Longest wait for one line of output.
const LINE_SECONDS_MAX: u64 = 20;

/// Longest wait for the end of output after the end of the program.
const DRAIN_SECONDS_MAX: u64 = 5;

/// Most bytes kept of one stream.
const OUTPUT_BYTES_MAX: usize = 16 << 20;

#[derive(Debug, Default)]
struct Text {
    bytes: Vec<u8>,
    ended: bool,
}

/// One output stream, filled by a thread.
#[derive(Debug, Default)]
struct Stream {
    text: Mutex<Text>,
    changed: Condvar,
}

impl Stream {
    fn collect(mut from: impl Read + Send + 'static) -> Arc<Self> {
        let stream = Arc::new(Self::default());
        let filled = Arc::clone(&stream);
        thread::spawn(move || {
            let mut buffer = [0; 8192];
            while let Ok(count @ 1..) = from.read(&mut buffer) {
                let mut text = filled.text.lock().unwrap_or_else(PoisonError::into_inner);
                if text.bytes.len() < OUTPUT_BYTES_MAX {
                    text.bytes.extend(buffer.iter().take(count));
                }
                filled.changed.notify_all();
            }
            let mut text = filled.text.lock().unwrap_or_else(PoisonError::into_inner);
            text.ended = true;
            filled.changed.notify_all();
        });
        stream
    }

    fn so_far(&self) -> String {
        let text = self.text.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&text.bytes).into_owned()
    }

    /// Waits until `enough` holds; false when `limit` passed before.
    fn wait(&self, limit: Duration, enough: impl Fn(&Text) -> bool) -> bool {
        let text = self.text.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self
            .changed
            .wait_timeout_while(text, limit, |text| !enough(text));
        waited.is_ok_and(|(_, timeout)| !timeout.timed_out())
    }
}

/// A program that runs.
#[derive(Debug)]
pub struct Running {
    pid: i32,
    stdin: Option<ChildStdin>,
    stdout: Arc<Stream>,
    stderr: Arc<Stream>,
    status: Receiver<std::io::Result<ExitStatus>>,
    started: Instant,
    limit: Duration,
}

impl Running {
    /// Starts `command`; `limit` is the longest time [`Running::finish`] waits.
    ///
    /// # Panics
    /// When it cannot be started.
    pub fn start(command: &mut Command, limit: Duration) -> Self {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let started = Instant::now();
        let mut child = command
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?} cannot be started: {error}"));
        let pid = i32::try_from(child.id()).expect("a process id");
        let (stdin, stdout, stderr) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take());
        Self {
            pid,
            stdin,
            stdout: Stream::collect(stdout.expect("a pipe")),
            stderr: Stream::collect(stderr.expect("a pipe")),
            status: reaper(child),
            started,
            limit,
        }
    }

    /// The process id.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Writes to its standard input.
    ///
    /// # Panics
    /// When it has none any more.
    pub fn say(&mut self, text: &str) {
        let stdin = self.stdin.as_mut().expect("standard input is a pipe");
        stdin
            .write_all(text.as_bytes())
            .expect("it reads its input");
    }

    /// Ends its standard input.
    pub fn end_input(&mut self) {
        self.stdin = None;
    }

    /// Waits for `needle` in its standard output; the output so far.
    ///
    /// # Panics
    /// When it does not come in time, with everything that was said.
    pub fn wait_for(&self, needle: &str) -> String {
        self.wait_for_count(needle, 1)
    }

    /// Waits until `needle` stands `count` times in its standard output.
    ///
    /// # Panics
    /// When it does not come in time, with everything that was said.
    pub fn wait_for_count(&self, needle: &str, count: usize) -> String {
        let limit = Duration::from_secs(LINE_SECONDS_MAX);
        let seen =
            |text: &Text| String::from_utf8_lossy(&text.bytes).matches(needle).count() >= count;
        let found = self.stdout.wait(limit, |text| text.ended || seen(text));
        let (out, err) = (self.stdout.so_far(), self.stderr.so_far());
        let here = out.matches(needle).count() >= count;
        assert!(
            found && here,
            "no `{needle}` × {count} in time\n{out}\n{err}"
        );
        out
    }

    /// What it wrote to standard output so far.
    pub fn output(&self) -> String {
        self.stdout.so_far()
    }

    /// What it wrote to standard error so far.
    pub fn errors(&self) -> String {
        self.stderr.so_far()
    }

    /// Sends it a signal.
    ///
    /// # Panics
    /// When it is gone.
    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.pid), signal).expect("it is still there");
    }

    /// Its child whose command name is `name`, once there is one.
    pub fn child(&self, name: &str) -> Option<i32> {
        crate::leftovers::processes()
            .into_iter()
            .find(|process| process.parent == self.pid && process.name == name)
            .map(|process| process.pid)
    }

    /// The gateway it started, waiting until there is one.
    ///
    /// # Panics
    /// When none comes.
    pub fn gateway(&self) -> i32 {
        let mut found = None;
        // Command names are cut to 15 bytes (proc_pid_comm(5)): all of it here.
        crate::eventually(Duration::from_secs(5), || {
            found = self.child("outgate-gateway");
            found.is_some()
        });
        found.unwrap_or_else(|| panic!("no gateway is a child of {}: {}", self.pid, self.errors()))
    }

    /// Waits for its end, kills it when that takes too long, and collects all.
    pub fn finish(mut self) -> Outcome {
        self.stdin = None;
        let left = self.limit.saturating_sub(self.started.elapsed());
        let mut status = self.status.recv_timeout(left).ok();
        let late = status.is_none();
        if late {
            killpg(Pid::from_raw(self.pid), Signal::SIGKILL).ok();
            kill(Pid::from_raw(self.pid), Signal::SIGKILL).ok();
            status = self.status.recv_timeout(Duration::from_secs(5)).ok();
        }
        let elapsed = self.started.elapsed();
        let drain = Duration::from_secs(DRAIN_SECONDS_MAX);
        let ended = self.stdout.wait(drain, |text| text.ended)
            && self.stderr.wait(drain, |text| text.ended);
        let status = status.and_then(Result::ok);
        Outcome {
            code: status.and_then(|status| status.code()),
            signal: status.and_then(|status| status.signal()).filter(|_| !late),
            held: !ended,
            stdout: self.stdout.so_far(),
            stderr: self.stderr.so_far(),
            elapsed,
        }
    }
}

fn reaper(mut child: Child) -> Receiver<std::io::Result<ExitStatus>> {
    let (send, receive) = channel();
    thread::spawn(move || send.send(child.wait()));
    receive
}

/// What a run came to.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// Exit status, if it exited. Neither this nor a signal: it was late, and
    /// was killed by the test.
    pub code: Option<i32>,
    /// The signal that ended it, if one did.
    pub signal: Option<i32>,
    /// Somebody still held its output after its end.
    pub held: bool,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
    /// From start to end.
    pub elapsed: Duration,
}

/// One line of a probe: what the kernel answered to one attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// The attempt.
    pub name: String,
    /// `0`, or the name of the errno.
    pub errno: String,
    /// Bytes the kernel took.
    pub sent: u64,
}

impl Outcome {
    /// Every report, in order.
    pub fn reports(&self) -> Vec<Report> {
        self.stdout.lines().filter_map(report).collect()
    }

    /// The errno of the attempt `name`.
    ///
    /// # Panics
    /// When the probe did not report it.
    pub fn errno(&self, name: &str) -> String {
        let found = self
            .reports()
            .into_iter()
            .find(|report| report.name == name);
        found.map_or_else(
            || panic!("no result `{name}`: {self}"),
            |report| report.errno,
        )
    }

    /// The number after `key` on the first line that has it.
    ///
    /// # Panics
    /// When there is none.
    pub fn number(&self, key: &str) -> i64 {
        let digits = self.stdout.split_once(key).map(|(_, rest)| {
            let is_number = |c: char| !(c.is_ascii_digit() || c == '-');
            rest.split(is_number).next().unwrap_or_default().to_owned()
        });
        digits
            .and_then(|digits| digits.parse().ok())
            .unwrap_or_else(|| panic!("no number after `{key}`: {self}"))
    }
}

fn report(line: &str) -> Option<Report> {
    let mut words = line.strip_prefix("result ")?.split(' ');
    let name = words.next()?.to_owned();
    let errno = words.next()?.strip_prefix("errno=")?.split('(').next()?;
    let sent = words.next()?.strip_prefix("sent=")?.parse().ok()?;
    Some(Report {
        name,
        errno: errno.to_owned(),
        sent,
    })
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "code {:?} signal {:?} output held {} after {:?}",
            self.code, self.signal, self.held, self.elapsed
        )?;
        write!(
            f,
            "--- stdout\n{}--- stderr\n{}---",
            self.stdout, self.stderr
        )
    }
}
