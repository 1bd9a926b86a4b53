//! An origin that records what reaches it, byte for byte and connection by
//! connection, inside TLS or without, and answers as each case wants. Which case a connection belongs
//! to is told by the address it was made to.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv6Addr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use crate::case::{Carrier, Method, Versions};
use crate::readers::{self, Progress};
use crate::wire::{self, Issuer, Wire};

/// Most bytes kept of one connection.
const CONNECTION_BYTES_MAX: usize = 4 << 20;

/// What every case is answered, unless it wants something else.
pub(crate) const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nyes";

/// What an origin answers to each whole request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    /// 200 and three bytes; for HEAD their length only.
    Ok,
    /// These bytes.
    Bytes(Vec<u8>),
    /// These bytes, and the end of the connection.
    Last(Vec<u8>),
    /// These bytes, and an end of which TLS is not told.
    Torn(Vec<u8>),
    /// These bytes as soon as the head is there.
    Early(Vec<u8>),
    /// Says 101 and sends back whatever comes.
    Echo(Vec<u8>),
}

impl Answer {
    pub(crate) fn bytes(text: &str) -> Self {
        Self::Bytes(text.as_bytes().to_vec())
    }

    pub(crate) fn last(text: &str) -> Self {
        Self::Last(text.as_bytes().to_vec())
    }
}

/// What the origin is at one address: its answer, and the versions of HTTP that
/// it knows inside TLS.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    pub(crate) answer: Answer,
    pub(crate) versions: Versions,
}

/// What arrived on one connection.
#[derive(Debug, Clone)]
pub(crate) struct Arrival {
    pub(crate) carrier: Carrier,
    /// What TLS agreed on.
    pub(crate) version: Option<String>,
    pub(crate) bytes: Vec<u8>,
}

type Record = Arc<Mutex<Arrival>>;
type Arrivals = Arc<Mutex<HashMap<IpAddr, Vec<Record>>>>;

/// The origin. It ends with the test's process.
#[derive(Debug, Clone)]
pub(crate) struct Origin {
    parts: Arc<Mutex<HashMap<IpAddr, Part>>>,
    arrivals: Arrivals,
    issuer: Arc<Issuer>,
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Origin {
    /// Listens on these ports of every address.
    pub(crate) fn start(ports: &[u16]) -> Self {
        let origin = Self {
            parts: Arc::default(),
            arrivals: Arc::default(),
            issuer: Arc::new(Issuer::new()),
        };
        for port in ports {
            let listener = TcpListener::bind((Ipv6Addr::UNSPECIFIED, *port)).expect("a TCP port");
            let origin = origin.clone();
            thread::spawn(move || {
                for stream in listener.incoming().flatten() {
                    let origin = origin.clone();
                    thread::spawn(move || origin.serve(stream));
                }
            });
        }
        origin
    }

    /// What verifies it, in PEM.
    pub(crate) fn authority(&self) -> &str {
        self.issuer.pem()
    }

    /// What it is at `address`.
    pub(crate) fn plays(&self, address: IpAddr, part: Part) {
        held(&self.parts).insert(address, part);
    }

    /// Every address that somebody connected to.
    pub(crate) fn reached(&self) -> Vec<IpAddr> {
        held(&self.arrivals).keys().copied().collect()
    }

    /// What arrived at `address`, per connection.
    pub(crate) fn arrivals(&self, address: IpAddr) -> Vec<Arrival> {
        let arrivals = held(&self.arrivals);
        let connections = arrivals.get(&address).into_iter().flatten();
        connections.map(|record| held(record).clone()).collect()
    }

    /// The connection as its bytes travel, which its first byte shows.
    fn accept(&self, stream: TcpStream, part: &Part, record: &Mutex<Arrival>) -> Option<Wire> {
        let mut first = [0];
        if stream.peek(&mut first).ok()? == 0 || first != [22] {
            return Some(Wire::Plain(stream));
        }
        held(record).carrier = Carrier::Tls;
        let address = stream.local_addr().ok()?.ip().to_canonical();
        let mut wire = wire::server(stream, &self.issuer, address, part.versions);
        held(record).version = wire.agree().ok()?;
        Some(wire)
    }

    fn serve(&self, stream: TcpStream) {
        let Ok(to) = stream.local_addr() else { return };
        let address = to.ip().to_canonical();
        let record: Record = Arc::new(Mutex::new(Arrival {
            carrier: Carrier::Plain,
            version: None,
            bytes: Vec::new(),
        }));
        let mut arrivals = held(&self.arrivals);
        let here = arrivals.entry(address).or_default();
        here.push(Arc::clone(&record));
        drop(arrivals);
        let part = held(&self.parts).get(&address).cloned();
        let part = part.unwrap_or(Part {
            answer: Answer::Ok,
            versions: &["http/1.1"],
        });
        if let Some(mut wire) = self.accept(stream, &part, &record) {
            converse(&mut wire, &part.answer, &record);
            if !matches!(part.answer, Answer::Torn(_)) {
                wire.finish();
            }
        }
    }
}

/// Records what comes and answers each whole request.
fn converse(stream: &mut Wire, answer: &Answer, record: &Mutex<Arrival>) {
    let (mut from, mut buffer, mut answered) = (0, [0; 16384], false);
    while let Ok(count @ 1..) = stream.read(&mut buffer) {
        let mut arrival = held(record);
        let bytes = &mut arrival.bytes;
        bytes.extend(&buffer[..count]);
        if bytes.len() > CONNECTION_BYTES_MAX {
            return;
        }
        loop {
            let rest = &bytes[from..];
            let method = if rest.starts_with(b"HEAD ") {
                Method::Head
            } else {
                Method::Other
            };
            let progress = readers::progress(rest);
            let early = matches!(answer, Answer::Early(_));
            if !answered && (early || progress.is_whole()) && progress != Progress::Nothing {
                answered = true;
                if !say(stream, answer, method) {
                    return;
                }
            }
            let Progress::Whole(length) = progress else {
                break;
            };
            from += length;
            answered = false;
            if matches!(answer, Answer::Echo(_)) {
                drop(arrival);
                return echo(stream, record);
            }
        }
    }
}

/// Answers once; whether the connection goes on.
fn say(stream: &mut Wire, answer: &Answer, method: Method) -> bool {
    let head = OK.trim_end_matches("yes");
    match answer {
        Answer::Ok if method == Method::Head => stream.write_all(head.as_bytes()).is_ok(),
        Answer::Ok => stream.write_all(OK.as_bytes()).is_ok(),
        Answer::Bytes(bytes) | Answer::Early(bytes) | Answer::Echo(bytes) => {
            stream.write_all(bytes).is_ok()
        }
        Answer::Last(bytes) => {
            stream.write_all(bytes).ok();
            // What still comes is recorded.
            stream.finish();
            true
        }
        Answer::Torn(bytes) => {
            stream.write_all(bytes).ok();
            false
        }
    }
}

fn echo(stream: &mut Wire, record: &Mutex<Arrival>) {
    let mut buffer = [0; 16384];
    while let Ok(count @ 1..) = stream.read(&mut buffer) {
        let bytes = &buffer[..count];
        held(record).bytes.extend(bytes);
        if stream.write_all(bytes).is_err() {
            return;
        }
    }
}
