//! The client inside the sandbox: this program again, with a plan of what to
//! say on which connection. It writes down what came back, and judges nothing.

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::case::{Carrier, Case, Ending, HelloPace, Method, Step};
use crate::replies;
use crate::wire::{self, Wire};

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
    /// `eof`, `reset`, `open` or `late`, `torn` where TLS was not told of the
    /// end, its last word, or why there was no connection.
    pub(crate) end: String,
    /// The version of HTTP that TLS agreed on.
    pub(crate) version: Option<String>,
}

impl Heard {
    /// Whether the connection ended in order, or stayed open as it should.
    pub(crate) fn is_ended(&self) -> bool {
        matches!(self.end.as_str(), "eof" | "open")
    }
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
pub(crate) fn plan<'a>(
    cases: impl Iterator<Item = (&'a str, &'a Case)>,
    carrier: Carrier,
) -> String {
    let cases: Vec<Value> = cases
        .map(|(host, case)| {
            let steps: Vec<Value> = case
                .steps
                .iter()
                .map(|step| match step {
                    Step::Send(bytes) => json!(["send", hex(bytes)]),
                    Step::SendSingly(bytes) => json!(["singly", hex(bytes)]),
                    Step::Below(bytes) => json!(["below", hex(bytes)]),
                    Step::Streams(..) => panic!("streams become bytes with their names"),
                    Step::Await(count) => json!(["await", count]),
                    Step::Pause(millis) => json!(["pause", millis]),
                })
                .collect();
            let open = match case.ending {
                Ending::HalfClose => Value::Null,
                Ending::Open(millis) => json!(millis),
            };
            let tls = carrier == Carrier::Tls && !case.bare;
            let cut = match case.hello {
                HelloPace::AtOnce => Value::Null,
                HelloPace::Cut(count) => json!(count),
                HelloPace::Singly => json!("singly"),
            };
            json!({ "host": host, "port": case.port, "steps": steps, "open": open,
                    "tls": tls, "offers": case.offers(), "cut": cut,
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
            version: one["version"].as_str().map(str::to_owned),
        })
        .collect()
}

/// One connection and what was read from it.
struct Connection<'plan> {
    wire: Wire,
    bytes: Vec<u8>,
    end: Option<String>,
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
        let tcp = self.wire.tcp();
        tcp.set_read_timeout(Some(limit)).expect("a timeout");
        let mut buffer = [0; 16384];
        match self.wire.read(&mut buffer) {
            Ok(0) => self.end = Some("eof".to_owned()),
            Ok(count) => {
                self.bytes.extend(&buffer[..count]);
                return true;
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(error) => self.end = Some(wire::why(&error)),
        }
        false
    }

    fn left(&self) -> Duration {
        CONNECTION_TIME.saturating_sub(self.started.elapsed())
    }

    fn send(&mut self, bytes: &[u8]) {
        // A closed connection is not an error: the answer may be there.
        self.wire.write_all(bytes).ok();
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
            Some("below") => {
                self.wire.tcp().write_all(&bytes()).ok();
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
        let tcp = self.wire.tcp();
        tcp.set_nodelay(true).expect("TCP_NODELAY");
        tcp.set_read_timeout(Some(CONNECTION_TIME))
            .expect("a timeout");
        let plan = self.plan;
        let version = self.wire.agree().unwrap_or_default();
        for step in plan["steps"].as_array().expect("steps") {
            self.step(step);
        }
        if let Some(quiet) = plan["open"].as_u64() {
            while self.end.is_none() && self.read(Duration::from_millis(quiet)) {}
        } else {
            self.wire.finish();
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
        let end = self.end.unwrap_or_else(|| late.to_owned());
        json!({ "bytes": hex(&self.bytes), "end": end, "version": version })
    }
}

fn speak(plan: &Value) -> Value {
    let host = plan["host"].as_str().expect("a host");
    let port = plan["port"].as_u64().and_then(|port| port.try_into().ok());
    #[expect(clippy::disallowed_methods, reason = "this is the client")]
    let stream = TcpStream::connect((host, port.expect("a port")));
    let wire = stream
        .map_err(|error| error.to_string())
        .and_then(|stream| begin(plan, stream));
    match wire {
        Ok(wire) => Connection {
            wire,
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
        Err(error) => json!({ "bytes": "", "end": error }),
    }
}

/// The connection as the plan wants its bytes to travel.
fn begin(plan: &Value, stream: TcpStream) -> Result<Wire, String> {
    if plan["tls"] != true {
        return Ok(Wire::Plain(stream));
    }
    let hello = match &plan["cut"] {
        Value::String(_) => HelloPace::Singly,
        Value::Number(count) => {
            let count = count.as_u64().and_then(|count| count.try_into().ok());
            HelloPace::Cut(count.expect("a small number"))
        }
        _ => HelloPace::AtOnce,
    };
    let offers = plan["offers"].as_array().expect("versions").iter();
    let offers = offers.filter_map(Value::as_str).map(str::to_owned);
    let versions: Vec<String> = offers.collect();
    let host = plan["host"].as_str().expect("a host");
    wire::client(stream, host, &versions, hello)
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
