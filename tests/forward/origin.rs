//! An origin that records what reaches it, byte for byte and connection by
//! connection, and answers as each case wants. Which case a connection belongs
//! to is told by the address it was made to.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv6Addr, Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use crate::case::Method;
use crate::readers::{self, Progress};

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

type Arrivals = Arc<Mutex<HashMap<IpAddr, Vec<Arc<Mutex<Vec<u8>>>>>>>;

/// The origin. It ends with the test's process.
#[derive(Debug, Clone, Default)]
pub(crate) struct Origin {
    answers: Arc<Mutex<HashMap<IpAddr, Answer>>>,
    arrivals: Arrivals,
}

impl Origin {
    /// Listens on these ports of every address.
    pub(crate) fn start(ports: &[u16]) -> Self {
        let origin = Self::default();
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

    /// What connections to `address` are answered.
    pub(crate) fn answers(&self, address: IpAddr, answer: Answer) {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        answers.insert(address, answer);
    }

    /// Every address that somebody connected to.
    pub(crate) fn reached(&self) -> Vec<IpAddr> {
        let arrivals = self.arrivals.lock().unwrap_or_else(PoisonError::into_inner);
        arrivals.keys().copied().collect()
    }

    /// What arrived at `address`, per connection.
    pub(crate) fn arrivals(&self, address: IpAddr) -> Vec<Vec<u8>> {
        let arrivals = self.arrivals.lock().unwrap_or_else(PoisonError::into_inner);
        let connections = arrivals.get(&address);
        connections
            .into_iter()
            .flatten()
            .map(|bytes| bytes.lock().unwrap_or_else(PoisonError::into_inner).clone())
            .collect()
    }

    fn serve(&self, mut stream: TcpStream) {
        let Ok(to) = stream.local_addr() else { return };
        let address = to.ip().to_canonical();
        let record: Arc<Mutex<Vec<u8>>> = Arc::default();
        self.arrivals
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .entry(address)
            .or_default()
            .push(Arc::clone(&record));
        let answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let answer = answers.get(&address).cloned().unwrap_or(Answer::Ok);
        drop(answers);
        let (mut from, mut buffer, mut answered) = (0, [0; 16384], false);
        while let Ok(count @ 1..) = stream.read(&mut buffer) {
            let mut bytes = record.lock().unwrap_or_else(PoisonError::into_inner);
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
                    if !say(&mut stream, &answer, method) {
                        return;
                    }
                }
                let Progress::Whole(length) = progress else {
                    break;
                };
                from += length;
                answered = false;
                if matches!(answer, Answer::Echo(_)) {
                    drop(bytes);
                    return echo(stream, &record);
                }
            }
        }
    }
}

/// Answers once; whether the connection goes on.
fn say(stream: &mut TcpStream, answer: &Answer, method: Method) -> bool {
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
            stream.shutdown(Shutdown::Write).ok();
            true
        }
    }
}

fn echo(mut stream: TcpStream, record: &Mutex<Vec<u8>>) {
    let mut buffer = [0; 16384];
    while let Ok(count @ 1..) = stream.read(&mut buffer) {
        let bytes = &buffer[..count];
        record
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .extend(bytes);
        if stream.write_all(bytes).is_err() {
            return;
        }
    }
}
