//! The client inside the sandbox: this program again, with a plan of what to
//! say on which connection. It writes down what came back, and judges nothing.

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::case::{Case, Ending, Method, Step};
use crate::replies;

/// The variable that names the folder with the plan.
pub(crate) const PLAN: &str = "OUTGATE_FORWARD_PLAN";

/// The name of the test that is the client.
pub(crate) const TEST: &str = "client::client";

/// Connections at once.
const THREADS: usize = 6;

/// Longest time for one connection.
const CONNECTION_TIME: Duration = Duration::from_secs(15);

/// What came back on one connection.
#[derive(Debug, Clone)]
pub(crate) struct Heard {
    pub(crate) bytes: Vec<u8>,
    /// `eof`, `reset`, `open` or `late`, or why there was no connection.
    pub(crate) end: String,
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a string");
        text
    })
}

fn unhex(text: &str) -> Vec<u8> {
    let digits: Vec<u32> = text
        .chars()
        .map(|digit| digit.to_digit(16).expect("hexadecimal"))
        .collect();
    let byte = |pair: &[u32]| u8::try_from(pair[0] * 16 + pair[1]).expect("two digits");
    digits.chunks_exact(2).map(byte).collect()
}

/// The plan as text: what to do at each of the named hosts.
pub(crate) fn plan<'a>(cases: impl Iterator<Item = (&'a str, &'a Case)>) -> String {
    let cases: Vec<Value> = cases
        .map(|(host, case)| {
            let steps: Vec<Value> = case
                .steps
                .iter()
                .map(|step| match step {
                    Step::Send(bytes) => json!(["send", hex(bytes)]),
                    Step::SendSingly(bytes) => json!(["singly", hex(bytes)]),
                    Step::Streams(..) => panic!("streams become bytes with their names"),
                    Step::Await(count) => json!(["await", count]),
                    Step::Pause(millis) => json!(["pause", millis]),
                })
                .collect();
            let open = match case.ending {
                Ending::HalfClose => Value::Null,
                Ending::Open(millis) => json!(millis),
            };
            json!({ "host": host, "port": case.port, "steps": steps, "open": open,
                    "head": case.method == Method::Head })
        })
        .collect();
    Value::Array(cases).to_string()
}

/// Reads what the client wrote.
pub(crate) fn heard(text: &str) -> Vec<Heard> {
    let all: Vec<Value> = serde_json::from_str(text).expect("what the client wrote");
    all.iter()
        .map(|one| Heard {
            bytes: unhex(one["bytes"].as_str().expect("bytes")),
            end: one["end"].as_str().expect("an end").to_owned(),
        })
        .collect()
}

/// One connection and what was read from it.
struct Connection<'plan> {
    stream: TcpStream,
    bytes: Vec<u8>,
    end: Option<&'static str>,
    started: Instant,
    method: Method,
    plan: &'plan Value,
}

impl Connection<'_> {
    /// Reads once, for at most `limit`; whether anything came.
    fn read(&mut self, limit: Duration) -> bool {
        if self.end.is_some() {
            return false;
        }
        let limit = limit.max(Duration::from_millis(1));
        self.stream
            .set_read_timeout(Some(limit))
            .expect("a timeout");
        let mut buffer = [0; 16384];
        match self.stream.read(&mut buffer) {
            Ok(0) => self.end = Some("eof"),
            Ok(count) => {
                self.bytes.extend(&buffer[..count]);
                return true;
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(_) => self.end = Some("reset"),
        }
        false
    }

    fn left(&self) -> Duration {
        CONNECTION_TIME.saturating_sub(self.started.elapsed())
    }

    fn send(&mut self, bytes: &[u8]) {
        // A closed connection is not an error: the answer may be there.
        self.stream.write_all(bytes).ok();
    }

    fn step(&mut self, step: &Value) {
        let bytes = || unhex(step[1].as_str().expect("bytes"));
        let number = || step[1].as_u64().expect("a number");
        match step[0].as_str() {
            Some("send") => self.send(&bytes()),
            Some("singly") => {
                for byte in bytes() {
                    self.send(&[byte]);
                    thread::yield_now();
                }
            }
            Some("await") => {
                let count = usize::try_from(number()).expect("a small number");
                while replies::finals(&self.bytes, self.method) < count && !self.left().is_zero() {
                    let limit = self.left();
                    if !self.read(limit) && self.end.is_some() {
                        return;
                    }
                }
            }
            Some("pause") => {
                let until = Instant::now() + Duration::from_millis(number());
                while let Some(left) = until.checked_duration_since(Instant::now()) {
                    thread::park_timeout(left);
                }
            }
            _ => panic!("no step: {step}"),
        }
    }

    fn run(mut self) -> Value {
        self.stream.set_nodelay(true).expect("TCP_NODELAY");
        let plan = self.plan;
        for step in plan["steps"].as_array().expect("steps") {
            self.step(step);
        }
        if let Some(quiet) = plan["open"].as_u64() {
            while self.end.is_none() && self.read(Duration::from_millis(quiet)) {}
        } else {
            self.stream.shutdown(Shutdown::Write).ok();
            while self.end.is_none() && !self.left().is_zero() {
                let limit = self.left();
                self.read(limit);
            }
        }
        let late = if plan["open"].is_null() {
            "late"
        } else {
            "open"
        };
        json!({ "bytes": hex(&self.bytes), "end": self.end.unwrap_or(late) })
    }
}

fn speak(plan: &Value) -> Value {
    let host = plan["host"].as_str().expect("a host");
    let port = plan["port"].as_u64().and_then(|port| port.try_into().ok());
    #[expect(clippy::disallowed_methods, reason = "this is the client")]
    let stream = TcpStream::connect((host, port.expect("a port")));
    match stream {
        Ok(stream) => Connection {
            stream,
            bytes: Vec::new(),
            end: None,
            started: Instant::now(),
            method: if plan["head"] == true {
                Method::Head
            } else {
                Method::Other
            },
            plan,
        }
        .run(),
        Err(error) => json!({ "bytes": "", "end": error.to_string() }),
    }
}

#[test]
#[ignore = "the client inside the sandbox: the other tests run it there"]
fn client() {
    let folder = std::env::var(PLAN).expect("a plan");
    let text = fs::read_to_string(format!("{folder}/plan.json")).expect("the plan");
    let plan: Vec<Value> = serde_json::from_str(&text).expect("the plan");
    let next = Mutex::new(0);
    let results: Vec<Mutex<Value>> = plan.iter().map(|_| Mutex::default()).collect();
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                loop {
                    let mut guard = next.lock().expect("a number");
                    let at = *guard;
                    *guard += 1;
                    drop(guard);
                    let Some(case) = plan.get(at) else { return };
                    *results[at].lock().expect("a result") = speak(case);
                }
            });
        }
    });
    let all: Vec<Value> = results
        .into_iter()
        .map(|result| result.into_inner().expect("a result"))
        .collect();
    fs::write(
        format!("{folder}/heard.json"),
        Value::Array(all).to_string(),
    )
    .expect("the results");
}
