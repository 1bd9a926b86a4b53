//! What a thief's server gets: every byte of every connection, as it came. It
//! answers what looks like the end of a request, and a WebSocket's beginning.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU16, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use outgate_harness::eventually;

/// The server. It ends with the test's process.
#[derive(Debug)]
pub(crate) struct Recorder {
    bytes: Arc<Mutex<Vec<u8>>>,
    /// Connections that are read.
    open: Arc<AtomicUsize>,
    port: u16,
    /// The peer's port of the connection that was accepted last.
    last: Arc<AtomicU16>,
}

impl Recorder {
    pub(crate) fn start(port: u16) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).expect("a port");
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let open = Arc::new(AtomicUsize::new(0));
        let last = Arc::new(AtomicU16::new(0));
        let (seen, count, newest) = (Arc::clone(&bytes), Arc::clone(&open), Arc::clone(&last));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (seen, count) = (Arc::clone(&seen), Arc::clone(&count));
                count.fetch_add(1, Ordering::SeqCst);
                let peer = stream.peer_addr().map_or(0, |peer| peer.port());
                newest.store(peer, Ordering::SeqCst);
                thread::spawn(move || {
                    serve(stream, &seen);
                    count.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        Self {
            bytes,
            open,
            port,
            last,
        }
    }

    /// The same once every connection was read to its end, behind a run that is over.
    ///
    /// # Panics
    /// When one goes on.
    #[expect(clippy::disallowed_methods, reason = "a test's own server")]
    pub(crate) fn take_all(&self) -> Vec<u8> {
        // What connected before this one is accepted before it.
        let mark = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).expect("a connection");
        let own = mark.local_addr().expect("an address").port();
        let is_accepted = || self.last.load(Ordering::SeqCst) == own;
        assert!(
            eventually(Duration::from_secs(10), is_accepted),
            "nobody accepts"
        );
        drop(mark);
        let is_over = || self.open.load(Ordering::SeqCst) == 0;
        assert!(
            eventually(Duration::from_secs(10), is_over),
            "a connection goes on"
        );
        self.take()
    }

    /// Everything that came since the last call.
    pub(crate) fn take(&self) -> Vec<u8> {
        std::mem::take(&mut *self.bytes.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The frames of a WebSocket as if their keys were zero, as tests write them: a gateway
/// masks them anew (RFC 6455 5.3).
#[derive(Default)]
struct Unmasked {
    head: Vec<u8>,
    key: [u8; 4],
    at: usize,
    left: u64,
}

impl Unmasked {
    fn of(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut plain = Vec::new();
        for byte in bytes {
            if self.left > 0 {
                plain.push(byte ^ self.key[self.at % 4]);
                (self.at, self.left) = (self.at + 1, self.left - 1);
                continue;
            }
            self.head.push(*byte);
            let wide = match self.head.get(1).map(|second| second & 0x7f) {
                Some(126) => 2,
                Some(127) => 8,
                _ => 0,
            };
            if self.head.len() < 6 + wide {
                continue;
            }
            let head = std::mem::take(&mut self.head);
            let length = &head[2..2 + wide];
            let length = length
                .iter()
                .fold(0, |sum, byte| sum << 8 | u64::from(*byte));
            self.left = if wide == 0 {
                u64::from(head[1] & 0x7f)
            } else {
                length
            };
            self.at = 0;
            self.key = head[2 + wide..].try_into().expect("four bytes");
            plain.extend_from_slice(&head[..2 + wide]);
            plain.extend_from_slice(&[0; 4]);
        }
        plain
    }
}

fn serve(mut stream: TcpStream, seen: &Mutex<Vec<u8>>) {
    let mut request = Vec::new();
    let mut buffer = vec![0; 65536];
    let mut switched = false;
    let mut frames = Unmasked::default();
    while let Ok(count @ 1..) = stream.read(&mut buffer) {
        let bytes = &buffer[..count];
        let unmasked = switched.then(|| frames.of(bytes));
        let bytes = unmasked.as_deref().unwrap_or(bytes);
        seen.lock()
            .unwrap_or_else(PoisonError::into_inner)
            .extend_from_slice(bytes);
        if switched {
            continue;
        }
        request.extend_from_slice(bytes);
        let Some(answer) = answer(&request) else {
            continue;
        };
        switched = answer.starts_with(b"HTTP/1.1 101");
        request.clear();
        if stream.write_all(answer).is_err() {
            return;
        }
    }
}

/// The answer to a request that is whole.
fn answer(request: &[u8]) -> Option<&'static [u8]> {
    let end = request.windows(4).position(|part| part == b"\r\n\r\n")? + 4;
    let head = String::from_utf8_lossy(&request[..end]).to_lowercase();
    let content = &request[end..];
    if head.contains("upgrade: websocket") {
        return Some(b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n");
    }
    let is_whole = if head.contains("transfer-encoding: chunked") {
        // Of long content only what came last can be the end.
        let last = &content[content.len().saturating_sub(128 * 1024)..];
        content.starts_with(b"0\r\n") || last.windows(5).any(|part| part == b"\r\n0\r\n")
    } else {
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "));
        content.len() >= length.map_or(0, |length| length.trim().parse().expect("a number"))
    };
    is_whole.then_some(b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\narrived\n")
}
