//! An origin inside TLS and one without: they record every byte of every
//! request, and answer by its path.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use outgate_ca::{Authority, LeafSubject};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::stage::{TOKEN, base64};

/// Where all names lead.
pub(crate) const ADDRESS: &str = "93.184.216.34";

/// Most bytes kept of one connection.
const BYTES_MAX: usize = 4 << 20;

/// The origins. They end with the laboratory.
#[derive(Debug, Clone)]
pub(crate) struct Origins {
    requests: Arc<Mutex<Vec<String>>>,
    leaves: Arc<Leaves>,
}

#[derive(Debug)]
struct Leaves(Authority);

impl ResolvesServerCert for Leaves {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let name = hello.server_name()?.to_owned();
        self.0.issue(&LeafSubject::Name(name)).ok().map(Arc::new)
    }
}

impl Origins {
    /// Listens on 443 and 8443 with TLS, and on 80 without.
    pub(crate) fn start() -> Self {
        let authority = Authority::for_run("origins").expect("an authority");
        let origins = Self {
            requests: Arc::default(),
            leaves: Arc::new(Leaves(authority)),
        };
        let config = origins.config(b"http/1.1");
        for port in [443, 8443] {
            let (own, config) = (origins.clone(), Arc::clone(&config));
            listen(port, move |stream| {
                let connection = ServerConnection::new(Arc::clone(&config)).expect("a server");
                own.serve(StreamOwned::new(connection, stream));
            });
        }
        let own = origins.clone();
        listen(80, move |stream| own.serve(stream));
        origins
    }

    /// TLS with one protocol inside.
    pub(crate) fn config(&self, protocol: &[u8]) -> Arc<ServerConfig> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions of TLS")
            .with_no_client_auth()
            .with_cert_resolver(Arc::clone(&self.leaves) as Arc<dyn ResolvesServerCert>);
        config.alpn_protocols = vec![protocol.to_vec()];
        Arc::new(config)
    }

    /// What its certificates are verified with, in PEM.
    pub(crate) fn pem(&self) -> &str {
        self.leaves.0.pem()
    }

    /// The requests that arrived since this was asked last.
    pub(crate) fn seen(&self) -> Vec<String> {
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *requests)
    }

    /// A request arrived.
    pub(crate) fn note(&self, request: String) {
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        requests.push(request);
    }

    fn serve(&self, mut stream: impl Read + Write) {
        while let Some(request) = read(&mut stream) {
            let path = request.split(' ').nth(1).unwrap_or_default().to_owned();
            self.note(request.clone());
            if path.starts_with("/ws") {
                return converse(&mut stream, &request);
            }
            for piece in answer(&path, &request) {
                let sent = stream.write_all(&piece).and_then(|()| stream.flush());
                if sent.is_err() {
                    return;
                }
            }
        }
    }
}

/// A WebSocket that says the credentials of its request, a byte at a time, and
/// then reads what comes.
fn converse(stream: &mut (impl Read + Write), request: &str) {
    let said = field(request, "authorization").unwrap_or("none");
    let accept = accept(field(request, "sec-websocket-key").unwrap_or_default());
    let extended = extended(request.split(' ').nth(1).unwrap_or_default());
    let extended = extended.map_or(String::new(), |name| {
        format!("Sec-WebSocket-Extensions: {name}\r\n")
    });
    let head = format!(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\
         Sec-WebSocket-Accept: {accept}\r\n{extended}X-Echo: {said}\r\n\r\n"
    );
    let frame = message(said);
    if stream.write_all(head.as_bytes()).is_err() {
        return;
    }
    for byte in frame {
        if stream
            .write_all(&[byte])
            .and_then(|()| stream.flush())
            .is_err()
        {
            return;
        }
    }
    let mut sip = [0; 1024];
    while let Ok(1..) = stream.read(&mut sip) {}
}

/// The answer to the key of a WebSocket (RFC 6455 1.3).
fn accept(key: &str) -> String {
    let text = format!("{key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11");
    let hash = ring::digest::digest(&ring::digest::SHA1_FOR_LEGACY_USE_ONLY, text.as_bytes());
    base64(hash.as_ref())
}

/// The extension that the origin agrees to at this path, though nobody asked.
pub(crate) fn extended(path: &str) -> Option<&'static str> {
    (path == "/ws-extended").then_some("permessage-deflate")
}

/// One message of a WebSocket.
pub(crate) fn message(text: &str) -> Vec<u8> {
    let length = u8::try_from(text.len()).unwrap_or(125).min(125);
    [&[0x81, length], text.as_bytes()].concat()
}

fn listen(port: u16, serve: impl Fn(TcpStream) + Send + Sync + 'static) {
    let address: SocketAddr = format!("{ADDRESS}:{port}").parse().expect("an address");
    let listener = TcpListener::bind(address).expect("a port");
    let serve = Arc::new(serve);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let serve = Arc::clone(&serve);
            stream.set_nodelay(true).ok();
            thread::spawn(move || serve(stream));
        }
    });
}

/// One request, whole; what is not UTF-8 is replaced.
fn read(stream: &mut impl Read) -> Option<String> {
    let mut bytes = Vec::new();
    let mut one = [0];
    while !bytes.ends_with(b"\r\n\r\n") {
        let count = stream.read(&mut one).ok()?;
        if count == 0 || bytes.len() > BYTES_MAX {
            return None;
        }
        bytes.extend(one);
    }
    let head = String::from_utf8_lossy(&bytes).to_ascii_lowercase();
    if let Some(length) = field(&head, "content-length") {
        let mut content = vec![0; length.parse().ok()?];
        stream.read_exact(&mut content).ok()?;
        bytes.extend(content);
    } else if field(&head, "transfer-encoding").is_some() {
        let start = bytes.len();
        while !(bytes.ends_with(b"0\r\n\r\n") && bytes.len() > start) {
            stream.read_exact(&mut one).ok()?;
            bytes.extend(one);
        }
    }
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// The value of a field in a head.
pub(crate) fn field<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let head = head.split("\r\n\r\n").next().unwrap_or_default();
    head.split("\r\n").skip(1).find_map(|line| {
        let (own, value) = line.split_once(':')?;
        own.eq_ignore_ascii_case(name).then(|| value.trim())
    })
}

/// The answer to a path, in the pieces in which it is sent.
fn answer(path: &str, request: &str) -> Vec<Vec<u8>> {
    let path = path.split('?').next().unwrap_or_default();
    let whole = |text: String| vec![text.into_bytes()];
    if path.starts_with("/echo") {
        // What came is said in a field, in the content byte by byte, and in a
        // trailer.
        let said = field(request, "authorization").unwrap_or("none");
        let mut pieces = whole(format!(
            "HTTP/1.1 200 {said}\r\nX-Echo: {said}\r\nTransfer-Encoding: chunked\r\n\
             Trailer: X-Late\r\n\r\n"
        ));
        let chunk = |part: &[u8]| {
            let mut piece = format!("{:x}\r\n", part.len()).into_bytes();
            piece.extend_from_slice(part);
            piece.extend_from_slice(b"\r\n");
            piece
        };
        pieces.extend(request.as_bytes().chunks(5).map(chunk));
        pieces.push(format!("0\r\nX-Late: {said}\r\n\r\n").into_bytes());
        return pieces;
    }
    if path.starts_with("/sized") {
        let length = request.len();
        let mut pieces = whole(format!(
            "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n"
        ));
        pieces.extend(request.as_bytes().chunks(11).map(<[u8]>::to_vec));
        return pieces;
    }
    // What somebody told the origin.
    let said = if path.ends_with("/own") {
        TOKEN
    } else {
        "nothing"
    };
    let said = format!("{0}{said}{0}", " some text around it. ".repeat(500));
    if path.starts_with("/plain") {
        let length = said.len();
        let mut pieces = whole(format!(
            "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n"
        ));
        pieces.extend(said.as_bytes().chunks(11).map(<[u8]>::to_vec));
        return pieces;
    }
    if path.starts_with("/gzip") {
        let content = gzip(said.as_bytes());
        let length = content.len();
        let mut pieces = whole(format!(
            "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {length}\r\n\r\n"
        ));
        pieces.extend(content.chunks(11).map(<[u8]>::to_vec));
        return pieces;
    }
    if path.starts_with("/coded") {
        let text = "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 5\r\n\r\nabcde";
        return whole(text.to_owned());
    }
    if path.starts_with("/elsewhere") {
        let text =
            "HTTP/1.1 302 Found\r\nLocation: https://other.test/echo\r\nContent-Length: 0\r\n\r\n";
        return whole(text.to_owned());
    }
    if path.starts_with("/unauthorized") && !request.contains("second-value-of-the-secret") {
        let text = "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n";
        return whole(text.to_owned());
    }
    whole("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok".to_owned())
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    use std::io::Write;
    use std::process::{Command, Stdio};
    let mut command = Command::new("gzip");
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().expect("gzip");
    let mut input = child.stdin.take().expect("its input");
    input.write_all(bytes).expect("its input");
    drop(input);
    child.wait_with_output().expect("gzip").stdout
}
