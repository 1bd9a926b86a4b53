//! An HTTP/1.1 origin that records every request byte for byte and answers all
//! of them with 200. It reads no more of HTTP than where a request ends.

use std::io::{Read, Write};
use std::net::{Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// Most bytes kept of one connection.
const CONNECTION_BYTES_MAX: usize = 1 << 20;

/// A request that arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arrival {
    /// The address it was sent to.
    pub to: SocketAddr,
    /// All bytes: head and content.
    pub bytes: String,
}

impl Arrival {
    /// The request line.
    pub fn line(&self) -> &str {
        self.bytes.lines().next().unwrap_or_default()
    }

    /// The values of a field, in order; `name` in lower case.
    pub fn fields(&self, name: &str) -> Vec<&str> {
        let head = self.bytes.split("\r\n\r\n").next().unwrap_or_default();
        head.lines()
            .skip(1)
            .filter_map(|line| line.split_once(':'))
            .filter(|(key, _)| key.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.trim())
            .collect()
    }
}

/// The origin. It ends with the test's process.
#[derive(Debug)]
pub struct Origin {
    port: u16,
    arrivals: Arc<Mutex<Vec<Arrival>>>,
    connections: Arc<AtomicUsize>,
}

impl Origin {
    /// Listens on `port` (0: a free one) of every address.
    ///
    /// # Panics
    /// When it cannot listen.
    pub fn start(port: u16) -> Self {
        let listener = TcpListener::bind((Ipv6Addr::UNSPECIFIED, port)).expect("a TCP port");
        crate::witness::deepen(&listener);
        let origin = Self {
            port: listener.local_addr().expect("an address").port(),
            arrivals: Arc::default(),
            connections: Arc::default(),
        };
        let (arrivals, connections) = (
            Arc::clone(&origin.arrivals),
            Arc::clone(&origin.connections),
        );
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                connections.fetch_add(1, Ordering::SeqCst);
                let arrivals = Arc::clone(&arrivals);
                thread::spawn(move || serve(stream, &arrivals));
            }
        });
        origin
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Requests that arrived until now.
    pub fn arrivals(&self) -> Vec<Arrival> {
        self.arrivals
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Connections made until now.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

fn content_length(head: &str) -> usize {
    head.lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(key, _)| key.eq_ignore_ascii_case("content-length"))
        .and_then(|(_, value)| value.trim().parse().ok())
        .unwrap_or(0)
}

fn serve(mut stream: TcpStream, arrivals: &Mutex<Vec<Arrival>>) {
    let Ok(to) = stream.local_addr() else { return };
    let mut bytes = Vec::new();
    let mut buffer = [0; 8192];
    while let Ok(count @ 1..) = stream.read(&mut buffer) {
        bytes.extend(buffer.iter().take(count));
        if bytes.len() > CONNECTION_BYTES_MAX {
            return;
        }
        while let Some(end) = bytes.windows(4).position(|part| part == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(bytes.get(..end).unwrap_or_default()).into_owned();
            let all = end + 4 + content_length(&head);
            if bytes.len() < all {
                break;
            }
            let request: Vec<u8> = bytes.drain(..all).collect();
            let arrival = Arrival {
                to,
                bytes: String::from_utf8_lossy(&request).into_owned(),
            };
            arrivals
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(arrival);
            let answer = b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 10\r\n\r\nfrom-here\n";
            if stream.write_all(answer).is_err() {
                return;
            }
        }
    }
}
