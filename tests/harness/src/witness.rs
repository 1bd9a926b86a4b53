//! A witness listens where nothing may arrive and records what does: TCP and
//! UDP on every address of the laboratory, Unix sockets by path and by abstract
//! name. A connection without a byte counts as well.

use std::io::{Read, Write};
use std::net::{Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{SocketAddr as UnixAddr, UnixDatagram, UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use nix::sys::socket::{Backlog, listen};

/// First bytes of what the harness itself sends, to know that all that came
/// before was recorded.
const MARK: &[u8] = b"outgate-witness-mark";

/// Most bytes recorded of one connection.
const SIGHTING_BYTES_MAX: usize = 4096;

/// Something that arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sighting {
    /// `tcp`, `udp`, `unix`, `unix-datagram` or `abstract`.
    pub via: &'static str,
    /// The address it was sent to, as the witness sees it.
    pub to: String,
    /// Its first bytes.
    pub bytes: Vec<u8>,
}

type Record = Arc<Mutex<Vec<Arc<Mutex<Sighting>>>>>;

fn note(record: &Record, via: &'static str, to: String) -> Arc<Mutex<Sighting>> {
    let sighting = Arc::new(Mutex::new(Sighting {
        via,
        to,
        bytes: Vec::new(),
    }));
    let kept = Arc::clone(&sighting);
    record
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .push(kept);
    sighting
}

fn extend(sighting: &Mutex<Sighting>, bytes: &[u8]) {
    let mut sighting = sighting.lock().unwrap_or_else(PoisonError::into_inner);
    let room = SIGHTING_BYTES_MAX.saturating_sub(sighting.bytes.len());
    sighting.bytes.extend(bytes.iter().take(room));
}

/// Gives a listener the longest queue there is: a full one makes clients try
/// again after a second, which would look like a stall of something else.
pub(crate) fn deepen(listener: &TcpListener) {
    listen(listener, Backlog::MAXALLOWABLE).expect("a longer queue");
}

/// Reads to the end in a thread of its own.
fn drain(mut from: impl Read + Send + 'static, sighting: Arc<Mutex<Sighting>>) {
    thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(count @ 1..) = from.read(&mut buffer) {
            extend(&sighting, buffer.get(..count).unwrap_or_default());
        }
    });
}

/// The listeners and what they saw. Everything ends with the test's process.
#[derive(Debug)]
pub struct Witness {
    port: u16,
    folder: PathBuf,
    record: Record,
}

impl Witness {
    /// Listens on a free port, and below `folder` on `stream.sock` and
    /// `datagram.sock`, which every account may use.
    ///
    /// # Panics
    /// When it cannot listen.
    pub fn start(folder: &Path) -> Self {
        Self::start_on(folder, 0)
    }

    /// The same with a port.
    ///
    /// # Panics
    /// When it cannot listen.
    pub fn start_on(folder: &Path, port: u16) -> Self {
        let record = Record::default();
        let any = SocketAddr::from((Ipv6Addr::UNSPECIFIED, port));
        let tcp = TcpListener::bind(any).expect("a TCP port");
        deepen(&tcp);
        let port = tcp.local_addr().expect("an address").port();
        let udp = UdpSocket::bind((Ipv6Addr::UNSPECIFIED, port)).expect("the UDP port");
        let folder = folder.join(format!("witness-{port}"));
        std::fs::create_dir_all(&folder).expect("a folder");
        let stream = UnixListener::bind(folder.join("stream.sock")).expect("a path");
        let datagram = UnixDatagram::bind(folder.join("datagram.sock")).expect("a path");
        for name in ["stream.sock", "datagram.sock", ""] {
            let mode = std::fs::Permissions::from_mode(0o777);
            std::fs::set_permissions(folder.join(name), mode).expect("a mode");
        }
        let name = format!("outgate-witness-{port}");
        let hidden = UnixAddr::from_abstract_name(name).expect("a name");
        let hidden = UnixListener::bind_addr(&hidden).expect("an abstract name");
        let witness = Self {
            port,
            folder,
            record,
        };
        witness.watch_tcp(tcp);
        witness.watch_udp(udp);
        witness.watch_unix("unix", stream);
        witness.watch_unix("abstract", hidden);
        witness.watch_datagram(datagram);
        witness
    }

    fn watch_tcp(&self, listener: TcpListener) {
        let record = Arc::clone(&self.record);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let to = stream.local_addr().map(|to| to.to_string());
                let sighting = note(&record, "tcp", to.unwrap_or_default());
                drain(stream, sighting);
            }
        });
    }

    fn watch_udp(&self, socket: UdpSocket) {
        let (record, port) = (Arc::clone(&self.record), self.port);
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok((count, from)) = socket.recv_from(&mut buffer) {
                let sighting = note(&record, "udp", format!(":{port} from {from}"));
                extend(&sighting, buffer.get(..count).unwrap_or_default());
            }
        });
    }

    fn watch_unix(&self, via: &'static str, listener: UnixListener) {
        let record = Arc::clone(&self.record);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let sighting = note(&record, via, format!("{:?}", stream.local_addr()));
                drain(stream, sighting);
            }
        });
    }

    fn watch_datagram(&self, socket: UnixDatagram) {
        let record = Arc::clone(&self.record);
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(count) = socket.recv(&mut buffer) {
                let sighting = note(&record, "unix-datagram", String::new());
                extend(&sighting, buffer.get(..count).unwrap_or_default());
            }
        });
    }

    /// The TCP and UDP port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// A target for a probe: `host` with the witness's port.
    pub fn at(&self, host: &str) -> String {
        format!("{host}:{}", self.port)
    }

    /// Its address on the IPv4 loopback.
    pub fn address(&self) -> String {
        self.at("127.0.0.1")
    }

    /// The path of its stream socket.
    pub fn path(&self) -> String {
        self.folder
            .join("stream.sock")
            .to_string_lossy()
            .into_owned()
    }

    /// The path of its datagram socket.
    pub fn datagram_path(&self) -> String {
        self.folder
            .join("datagram.sock")
            .to_string_lossy()
            .into_owned()
    }

    /// The abstract name of its stream socket.
    pub fn abstract_name(&self) -> String {
        format!("outgate-witness-{}", self.port)
    }

    /// Puts a mark behind all that arrived and waits until it was recorded.
    #[expect(
        clippy::disallowed_methods,
        reason = "the witness's own mark, sent to itself"
    )]
    fn settle(&self) {
        let before = self.marks();
        let mut tcp = TcpStream::connect(("127.0.0.1", self.port)).expect("itself");
        tcp.write_all(MARK).expect("itself");
        let udp = UdpSocket::bind("127.0.0.1:0").expect("a port");
        udp.send_to(MARK, ("127.0.0.1", self.port)).expect("itself");
        let mut unix = UnixStream::connect(self.path()).expect("itself");
        unix.write_all(MARK).expect("itself");
        let name = UnixAddr::from_abstract_name(self.abstract_name()).expect("a name");
        let mut hidden = UnixStream::connect_addr(&name).expect("itself");
        hidden.write_all(MARK).expect("itself");
        let datagram = UnixDatagram::unbound().expect("a socket");
        datagram
            .send_to(MARK, self.datagram_path())
            .expect("itself");
        let all = crate::eventually(Duration::from_secs(10), || self.marks() >= before + 5);
        assert!(all, "the witness fell asleep: {} marks", self.marks());
    }

    fn everything(&self) -> Vec<Sighting> {
        let record = self.record.lock().unwrap_or_else(PoisonError::into_inner);
        record
            .iter()
            .map(|sighting| {
                sighting
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .clone()
            })
            .collect()
    }

    fn marks(&self) -> usize {
        self.everything()
            .iter()
            .filter(|sighting| sighting.bytes.starts_with(MARK))
            .count()
    }

    /// All that arrived until now.
    pub fn sightings(&self) -> Vec<Sighting> {
        self.settle();
        let mut all = self.everything();
        all.retain(|sighting| !sighting.bytes.starts_with(MARK));
        all
    }

    /// Forgets what arrived until now.
    pub fn forget(&self) {
        self.settle();
        self.record
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
    }

    /// Waits until something arrived that starts with a leak's bytes.
    ///
    /// # Panics
    /// When nothing comes: then the attack itself is broken, and a test that
    /// uses it proves nothing.
    pub fn assert_leaked(&self, what: &str) {
        let leaked = crate::eventually(Duration::from_secs(5), || {
            self.everything()
                .iter()
                .any(|sighting| sighting.bytes.starts_with(b"LEAK"))
        });
        assert!(leaked, "{what}: run bare it must leak, and it did not");
        self.forget();
    }

    /// Asserts that nothing arrived: no byte and no connection.
    ///
    /// # Panics
    /// When something did, naming it.
    pub fn assert_untouched(&self, what: &str) {
        let seen = self.sightings();
        assert!(seen.is_empty(), "{what} reached the witness: {seen:?}");
    }
}
