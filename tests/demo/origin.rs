//! A tiny HTTP/1.1 origin on a loopback port that remembers what it was asked.

use std::io::{self, BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// Lines of a request head that are read, at most.
const HEAD_LINES_MAX: usize = 100;

/// A server that answers every request with the same text.
pub(crate) struct Origin {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Origin {
    /// Listens and serves until the program ends.
    pub(crate) fn start(text: &'static str) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let address = listener.local_addr()?;
        let seen = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&seen);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // A client that goes away early is its own affair.
                serve(&stream, text, &log).ok();
            }
        });
        Ok(Self { address, seen })
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Method and path of every request so far.
    pub(crate) fn seen(&self) -> Vec<String> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.clone()
    }
}

fn serve(stream: &TcpStream, text: &str, log: &Mutex<Vec<String>>) -> io::Result<()> {
    let mut lines = BufReader::new(stream).lines();
    let first = lines.next().transpose()?.unwrap_or_default();
    let asked: Vec<&str> = first.split(' ').take(2).collect();
    log.lock()
        .unwrap_or_else(PoisonError::into_inner)
        .push(asked.join(" "));
    for line in lines.take(HEAD_LINES_MAX) {
        if line?.is_empty() {
            break;
        }
    }
    let length = text.len() + 1;
    let mut stream = stream;
    write!(
        stream,
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n{text}\n"
    )
}
