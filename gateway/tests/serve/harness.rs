//! Plays the launcher over a socket pair, and origins that record every byte.
//! Everything is on 127.0.0.1; names lead there by pins.

use std::io::{IoSlice, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use nix::sys::socket::{
    AddressFamily, ControlMessage, MsgFlags, Shutdown, SockFlag, SockType, recv, sendmsg,
    setsockopt, shutdown, socketpair, sockopt,
};
use nix::sys::time::TimeVal;
use outgate_gateway::config::TlsFiles;
use outgate_gateway::{AuditTarget, Gateway};
use outgate_handoff::{
    Answer, Ask, BeginFrame, CallQuestion, Decision, FRAME_BYTES_MAX, FlowFrame, HelloFrame,
    PROTOCOL, ProcessFacts, SourceFrame, ToGateway, ToLauncher,
};
use outgate_policy::SourceKind;

pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// A gateway on its own thread and the socket to it.
pub(crate) struct Launcher {
    pub(crate) socket: OwnedFd,
    thread: Option<JoinHandle<Result<(), String>>>,
    next: u64,
    pub(crate) notices: Vec<String>,
    /// What clients must trust, in PEM.
    pub(crate) authority: String,
    audit: PathBuf,
}

/// A gateway that nobody greeted yet.
pub(crate) fn bare() -> Launcher {
    bare_trusting(&[])
}

/// The same, with files of certificates that origins may be verified with.
fn bare_trusting(files: &[PathBuf]) -> Launcher {
    static COUNT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let files = files.to_vec();
    let count = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let name = format!("outgate-serve-{}-{count}.jsonl", std::process::id());
    let audit = std::env::temp_dir().join(name);
    std::fs::remove_file(&audit).ok();
    let flags = SockFlag::SOCK_CLOEXEC;
    let (ours, theirs) = socketpair(AddressFamily::Unix, SockType::SeqPacket, None, flags).unwrap();
    let patience = TimeVal::new(i64::try_from(PATIENCE.as_secs()).unwrap(), 0);
    setsockopt(&ours, sockopt::ReceiveTimeout, &patience).unwrap();
    let target = AuditTarget::file(audit.clone()).unwrap();
    let thread = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let tls = TlsFiles {
            upstream_ca: files,
            ..TlsFiles::default()
        };
        let gateway = Gateway::new(target, &tls).unwrap();
        let served = runtime.block_on(gateway.serve(theirs));
        served.map_err(|error| error.to_string())
    });
    Launcher {
        socket: ours,
        thread: Some(thread),
        next: 1,
        notices: Vec::new(),
        authority: String::new(),
        audit,
    }
}

/// A running session with these rules and pins.
pub(crate) fn start(rules: &[(SourceKind, &str)]) -> Launcher {
    start_trusting(rules, &[])
}

/// The same, with files of certificates that origins may be verified with.
pub(crate) fn start_trusting(rules: &[(SourceKind, &str)], files: &[PathBuf]) -> Launcher {
    let mut launcher = bare_trusting(files);
    launcher.open(rules);
    match launcher.receive() {
        Some(ToLauncher::Ready { authority, .. }) => {
            launcher.authority = authority;
            launcher
        }
        other => panic!("not ready: {other:?}"),
    }
}

pub(crate) fn hello() -> ToGateway {
    ToGateway::Hello(HelloFrame {
        protocol: PROTOCOL,
        build: env!("CARGO_PKG_VERSION").to_owned(),
        sandbox: "test".to_owned(),
        pid: std::process::id(),
    })
}

pub(crate) fn begin() -> ToGateway {
    ToGateway::Begin(BeginFrame {
        home: "/home/u".to_owned(),
        working_directory: "/w".to_owned(),
        private_directory: String::new(),
        command: "test".to_owned(),
        ask_seconds: 0,
    })
}

pub(crate) fn process() -> ProcessFacts {
    ProcessFacts {
        pid: 4242,
        executable: "/usr/bin/client".to_owned(),
        parents: Vec::new(),
    }
}

impl Launcher {
    pub(crate) fn open(&mut self, rules: &[(SourceKind, &str)]) {
        self.send(&hello(), &[]);
        for (index, (kind, text)) in rules.iter().enumerate() {
            let source = SourceFrame {
                index: u32::try_from(index).unwrap(),
                kind: *kind,
                place: "-a".to_owned(),
                chunk: text.as_bytes().to_vec(),
            };
            self.send(&ToGateway::Source(source), &[]);
        }
        self.send(&begin(), &[]);
    }

    pub(crate) fn send(&self, frame: &ToGateway, descriptors: &[RawFd]) {
        self.send_bytes(&frame.encode().unwrap(), descriptors)
            .unwrap();
    }

    pub(crate) fn send_bytes(&self, bytes: &[u8], descriptors: &[RawFd]) -> nix::Result<usize> {
        let parts = [IoSlice::new(bytes)];
        let rights = [ControlMessage::ScmRights(descriptors)];
        let control = if descriptors.is_empty() {
            &[][..]
        } else {
            &rights[..]
        };
        sendmsg::<()>(
            self.socket.as_raw_fd(),
            &parts,
            control,
            MsgFlags::MSG_NOSIGNAL,
            None,
        )
    }

    /// The next frame that is no notice; `None` when the gateway closed.
    pub(crate) fn receive(&mut self) -> Option<ToLauncher> {
        let mut buffer = vec![0; FRAME_BYTES_MAX];
        loop {
            let count = recv(self.socket.as_raw_fd(), &mut buffer, MsgFlags::empty()).unwrap_or(0);
            if count == 0 {
                return None;
            }
            match ToLauncher::decode(&buffer[..count]).unwrap() {
                ToLauncher::Notice { line } => self.notices.push(line),
                frame => return Some(frame),
            }
        }
    }

    pub(crate) fn ask(&mut self, question: CallQuestion) -> Answer {
        let id = self.next;
        self.next += 1;
        let ask = Ask {
            question,
            process: process(),
            hold: outgate_handoff::HoldForm::Refuse,
        };
        self.send(&ToGateway::Ask(id, ask), &[]);
        match self.receive() {
            Some(ToLauncher::Answer(answered, answer)) => {
                assert_eq!(answered, id);
                answer
            }
            other => panic!("no answer: {other:?}"),
        }
    }

    pub(crate) fn decide(&mut self, destination: SocketAddr) -> Decision {
        self.ask(CallQuestion::Connect { destination }).decision
    }

    /// Hands over one side of a connection and returns the command's.
    #[expect(
        clippy::disallowed_methods,
        reason = "the command's side of a connection"
    )]
    pub(crate) fn flow(&self, destination: SocketAddr) -> TcpStream {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (accepted, _) = listener.accept().unwrap();
        let flow = FlowFrame {
            question: CallQuestion::Connect { destination },
            process: process(),
        };
        self.send(&ToGateway::Flow(flow), &[accepted.as_raw_fd()]);
        client.set_read_timeout(Some(PATIENCE)).unwrap();
        client.set_nodelay(true).unwrap();
        client
    }

    /// The address that stands for a name, asked for over the stub.
    pub(crate) fn address(&self, name: &str, port: u16) -> SocketAddr {
        let stub: SocketAddr = "192.0.2.53:53".parse().unwrap();
        let mut stream = self.flow(stub);
        let question = question(name, 1);
        stream.write_all(&framed(&question)).unwrap();
        let reply = read_framed(&mut stream);
        let octets: [u8; 4] = reply[reply.len() - 4..].try_into().unwrap();
        SocketAddr::new(Ipv4Addr::from(octets).into(), port)
    }

    /// A connection to a name.
    pub(crate) fn connect(&self, name: &str, port: u16) -> TcpStream {
        self.flow(self.address(name, port))
    }

    /// Ends the session and returns the summary.
    pub(crate) fn finish(&mut self) -> String {
        self.send(&ToGateway::Finish { status: 0 }, &[]);
        match self.receive() {
            Some(ToLauncher::Summary { lines }) => lines,
            other => panic!("no summary: {other:?}"),
        }
    }

    /// What the gateway's thread returned.
    pub(crate) fn result(&mut self) -> Result<(), String> {
        // A session that goes on ends well by this, and nobody waits for it without end.
        shutdown(self.socket.as_raw_fd(), Shutdown::Write).ok();
        self.thread.take().unwrap().join().unwrap()
    }

    /// The records so far.
    pub(crate) fn records(&self) -> Vec<serde_json::Value> {
        let text = std::fs::read_to_string(&self.audit).unwrap();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }
}

impl Drop for Launcher {
    fn drop(&mut self) {
        std::fs::remove_file(&self.audit).ok();
    }
}

/// A DNS question (RFC 1035 4.1).
pub(crate) fn question(name: &str, kind: u16) -> Vec<u8> {
    let mut bytes = vec![0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    for label in name.split('.').filter(|label| !label.is_empty()) {
        bytes.push(u8::try_from(label.len()).unwrap());
        bytes.extend_from_slice(label.as_bytes());
    }
    bytes.push(0);
    bytes.extend_from_slice(&kind.to_be_bytes());
    bytes.extend_from_slice(&[0, 1]);
    bytes
}

pub(crate) fn framed(message: &[u8]) -> Vec<u8> {
    let mut bytes = u16::try_from(message.len()).unwrap().to_be_bytes().to_vec();
    bytes.extend_from_slice(message);
    bytes
}

pub(crate) fn read_framed(stream: &mut TcpStream) -> Vec<u8> {
    let mut length = [0; 2];
    stream.read_exact(&mut length).unwrap();
    let mut reply = vec![0; usize::from(u16::from_be_bytes(length))];
    stream.read_exact(&mut reply).unwrap();
    reply
}

/// An origin that records what it gets and answers by a function.
pub(crate) struct Origin {
    pub(crate) address: SocketAddr,
    pub(crate) seen: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl Origin {
    /// Serves each connection with `serve`, which records what it likes.
    pub(crate) fn start(
        serve: impl Fn(TcpStream, &dyn Fn(Vec<u8>)) + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let seen: Arc<Mutex<Vec<Vec<u8>>>> = Arc::default();
        let serve = Arc::new(serve);
        let record = Arc::clone(&seen);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (serve, record) = (Arc::clone(&serve), Arc::clone(&record));
                std::thread::spawn(move || {
                    let stream = stream.unwrap();
                    stream.set_read_timeout(Some(PATIENCE)).unwrap();
                    serve(stream, &|bytes| record.lock().unwrap().push(bytes));
                });
            }
        });
        Self { address, seen }
    }

    /// An HTTP origin: each request head is recorded and answered with these
    /// bytes; content by `Content-Length` is read and recorded with the head.
    pub(crate) fn http(answer: &'static str) -> Self {
        Self::start(move |mut stream, record| {
            while let Some(request) = read_message(&mut stream) {
                record(request);
                if stream.write_all(answer.as_bytes()).is_err() {
                    return;
                }
            }
        })
    }

    pub(crate) fn requests(&self) -> Vec<String> {
        let seen = self.seen.lock().unwrap();
        seen.iter()
            .map(|bytes| String::from_utf8_lossy(bytes).into_owned())
            .collect()
    }

    pub(crate) fn pin(&self, name: &str, port: u16) -> String {
        format!("{name}:{port}={}", self.address)
    }
}

/// One message: head and, by `Content-Length`, content. `None` at the end.
pub(crate) fn read_message(stream: &mut impl Read) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut one = [0];
    while !bytes.ends_with(b"\r\n\r\n") {
        match stream.read(&mut one) {
            Ok(1) => bytes.push(one[0]),
            _ => return None,
        }
    }
    let head = String::from_utf8_lossy(&bytes).to_ascii_lowercase();
    if let Some(length) = field(&head, "content-length") {
        let mut content = vec![0; length.parse().ok()?];
        stream.read_exact(&mut content).ok()?;
        bytes.extend(content);
    } else if field(&head, "transfer-encoding").is_some() {
        let head = bytes.len();
        let is_last = |bytes: &[u8]| {
            let content = &bytes[head..];
            let last = content.starts_with(b"0\r\n")
                || content.windows(5).any(|five| five == b"\r\n0\r\n");
            last && content.ends_with(b"\r\n\r\n")
        };
        while !is_last(&bytes) {
            stream.read_exact(&mut one).ok()?;
            bytes.push(one[0]);
        }
    }
    Some(bytes)
}

/// The value of a field of a head.
pub(crate) fn field<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.split("\r\n").find_map(|line| {
        let (own, value) = line.split_once(':')?;
        own.eq_ignore_ascii_case(name).then(|| value.trim())
    })
}

/// Sends a request and reads one response.
pub(crate) fn exchange(stream: &mut (impl Read + Write), request: &str) -> String {
    stream.write_all(request.as_bytes()).unwrap();
    response(stream)
}

pub(crate) fn response(stream: &mut impl Read) -> String {
    let bytes = read_message(stream).expect("no response");
    String::from_utf8(bytes).unwrap()
}

/// Everything until the end of the connection.
pub(crate) fn rest(stream: &mut TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).ok();
    bytes
}
