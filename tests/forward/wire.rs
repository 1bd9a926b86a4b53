//! A connection as its bytes travel, to the gateway or at an origin: as they
//! are, or inside TLS. Judges nothing.

use std::io::{self, Error, Read, Write};
use std::net::{IpAddr, Shutdown, TcpStream, ToSocketAddrs};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use outgate_ca::{Authority, LeafSubject, Leaves};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig};
use rustls::{ServerConnection, StreamOwned};

use crate::case::HelloPace;

/// Pause between pieces of a ClientHello, so that each is read alone.
const PIECE_PAUSE: Duration = Duration::from_millis(3);

/// The connection.
#[derive(Debug)]
pub(crate) enum Wire {
    Plain(TcpStream),
    Client(Box<StreamOwned<ClientConnection, Pieces>>),
    Server(Box<StreamOwned<ServerConnection, TcpStream>>),
}

impl Wire {
    /// The connection below.
    pub(crate) fn tcp(&self) -> &TcpStream {
        match self {
            Self::Plain(stream) => stream,
            Self::Client(stream) => &stream.sock.stream,
            Self::Server(stream) => &stream.sock,
        }
    }

    /// Waits for what TLS agrees on.
    pub(crate) fn agree(&mut self) -> io::Result<Option<String>> {
        let name = |name: Option<&[u8]>| name.map(|name| String::from_utf8_lossy(name).into());
        match self {
            Self::Plain(_) => Ok(None),
            Self::Client(stream) => {
                while stream.conn.is_handshaking() {
                    stream.conn.complete_io(&mut stream.sock)?;
                }
                Ok(name(stream.conn.alpn_protocol()))
            }
            Self::Server(stream) => {
                while stream.conn.is_handshaking() {
                    stream.conn.complete_io(&mut stream.sock)?;
                }
                Ok(name(stream.conn.alpn_protocol()))
            }
        }
    }

    /// Sends the ClientHello of TLS alone.
    pub(crate) fn greet(&mut self) {
        if let Self::Client(stream) = self {
            while stream.conn.wants_write() {
                stream
                    .conn
                    .write_tls(&mut stream.sock)
                    .expect("it is taken");
            }
        }
    }

    /// Ends its own side, in TLS with a word about it.
    pub(crate) fn finish(&mut self) {
        match self {
            Self::Plain(_) => {}
            Self::Client(stream) => {
                stream.conn.send_close_notify();
                stream.conn.write_tls(&mut stream.sock).ok();
            }
            Self::Server(stream) => {
                stream.conn.send_close_notify();
                stream.conn.write_tls(&mut stream.sock).ok();
            }
        }
        self.tcp().shutdown(Shutdown::Write).ok();
    }
}

impl Read for Wire {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.read(buffer),
            Self::Client(stream) => stream.read(buffer),
            Self::Server(stream) => stream.read(buffer),
        }
    }
}

impl Write for Wire {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.write(bytes),
            Self::Client(stream) => stream.write(bytes),
            Self::Server(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(stream) => stream.flush(),
            Self::Client(stream) => stream.flush(),
            Self::Server(stream) => stream.flush(),
        }
    }
}

/// A connection whose first write comes in pieces.
#[derive(Debug)]
pub(crate) struct Pieces {
    stream: TcpStream,
    hello: HelloPace,
}

impl Read for Pieces {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stream.read(buffer)
    }
}

impl Write for Pieces {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match std::mem::replace(&mut self.hello, HelloPace::AtOnce) {
            HelloPace::AtOnce => return self.stream.write(bytes),
            HelloPace::Cut(count) => {
                let (first, rest) = bytes.split_at(count.min(bytes.len()));
                self.stream.write_all(first)?;
                thread::park_timeout(PIECE_PAUSE);
                self.stream.write_all(rest)?;
            }
            HelloPace::Singly => {
                for byte in bytes {
                    self.stream.write_all(&[*byte])?;
                    thread::yield_now();
                }
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// Whom a client in the sandbox trusts: what the sandbox tells it to.
fn roots() -> Arc<RootCertStore> {
    static ROOTS: OnceLock<Arc<RootCertStore>> = OnceLock::new();
    let roots = ROOTS.get_or_init(|| {
        let file = std::env::var_os("SSL_CERT_FILE").expect("a bundle for the sandbox");
        let all = CertificateDer::pem_file_iter(file).expect("the bundle");
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(all.flatten());
        Arc::new(roots)
    });
    Arc::clone(roots)
}

/// Begins TLS as a client that knows `versions` of HTTP and wants `host`; what
/// can be no name stands for the address it led to.
pub(crate) fn client(
    stream: TcpStream,
    host: &str,
    versions: &[String],
    hello: HelloPace,
) -> Result<Wire, String> {
    let mut config = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .expect("versions of TLS")
        .with_root_certificates(roots())
        .with_no_client_auth();
    config.alpn_protocols = versions.iter().map(|name| name.clone().into()).collect();
    // Where the connection itself leads says nothing: it may be led elsewhere.
    let led_to = || {
        let mut all = (host, 0).to_socket_addrs().ok()?;
        all.next().map(|address| ServerName::from(address.ip()))
    };
    let name = ServerName::try_from(host.to_owned()).ok().or_else(led_to);
    let name = name.ok_or("no name and no address")?;
    let connection = ClientConnection::new(Arc::new(config), name).expect("a configuration");
    let stream = Pieces { stream, hello };
    let stream = StreamOwned::new(connection, stream);
    Ok(Wire::Client(Box::new(stream)))
}

/// The authority of the origins, and its leaves.
#[derive(Debug)]
pub(crate) struct Issuer(Leaves);

impl Issuer {
    pub(crate) fn new() -> Self {
        Self(Leaves::new(
            Authority::for_run("origins").expect("an authority"),
        ))
    }

    /// What verifies the origins.
    pub(crate) fn pem(&self) -> &str {
        self.0.authority().pem()
    }
}

/// The certificate for whatever name, or for the address itself.
#[derive(Debug)]
struct Whoever(Arc<Issuer>, IpAddr);

impl ResolvesServerCert for Whoever {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let subject = match hello.server_name() {
            Some(name) => LeafSubject::Name(name.to_owned()),
            None => LeafSubject::Address(self.1),
        };
        (self.0).0.get(&subject).ok()
    }
}

/// Begins TLS as the origin at `address`, which knows `versions` of HTTP.
pub(crate) fn server(
    stream: TcpStream,
    issuer: &Arc<Issuer>,
    address: IpAddr,
    versions: &[&str],
) -> Wire {
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .expect("versions of TLS")
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(Whoever(Arc::clone(issuer), address)));
    config.alpn_protocols = versions.iter().map(|name| (*name).into()).collect();
    let connection = ServerConnection::new(Arc::new(config)).expect("a configuration");
    Wire::Server(Box::new(StreamOwned::new(connection, stream)))
}

/// Why a connection did not go on, as a word: what TLS said, or the kernel.
pub(crate) fn why(error: &Error) -> String {
    let cause: Option<&rustls::Error> = error.get_ref().and_then(|inner| inner.downcast_ref());
    match cause {
        Some(rustls::Error::AlertReceived(alert)) => format!("alert {alert:?}"),
        Some(cause) => format!("TLS: {cause}"),
        // No word about the end: it may have been cut off.
        None if error.kind() == io::ErrorKind::UnexpectedEof => "torn".to_owned(),
        None => "reset".to_owned(),
    }
}
