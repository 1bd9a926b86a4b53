//! A tiny HTTPS origin on a loopback port that remembers what it was asked. Its
//! certificate is vouched for by an authority of its own.

use std::io::{self, BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use outgate_ca::{Authority, LeafSubject};
use rustls::server::ServerConfig;
use rustls::{ServerConnection, StreamOwned};

/// Lines of a request head that are read, at most.
const HEAD_LINES_MAX: usize = 100;

/// A server that answers every request with the same text.
pub(crate) struct Origin {
    address: SocketAddr,
    authority: String,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Origin {
    /// Listens and serves until the program ends.
    pub(crate) fn start(host: &str, text: &'static str) -> io::Result<Self> {
        let authority = Authority::for_run("demo").map_err(io::Error::other)?;
        let config = Arc::new(config(&authority, host)?);
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let address = listener.local_addr()?;
        let seen = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&seen);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // A client that goes away early is its own affair.
                serve(stream, &config, text, &log).ok();
            }
        });
        Ok(Self {
            address,
            authority: authority.pem().to_owned(),
            seen,
        })
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// The certificate of whom it is vouched for by, in PEM.
    pub(crate) fn authority(&self) -> &str {
        &self.authority
    }

    /// Method and path of every request so far.
    pub(crate) fn seen(&self) -> Vec<String> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.clone()
    }
}

/// The name and its certificate.
fn config(authority: &Authority, host: &str) -> io::Result<ServerConfig> {
    let name = LeafSubject::Name(host.to_owned());
    let leaf = authority.issue(&name).map_err(io::Error::other)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider);
    let builder = builder
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?;
    let resolver = Arc::new(rustls::sign::SingleCertAndKey::from(leaf));
    Ok(builder.with_no_client_auth().with_cert_resolver(resolver))
}

fn serve(
    stream: TcpStream,
    config: &Arc<ServerConfig>,
    text: &str,
    log: &Mutex<Vec<String>>,
) -> io::Result<()> {
    let connection = ServerConnection::new(Arc::clone(config)).map_err(io::Error::other)?;
    let mut stream = StreamOwned::new(connection, stream);
    let mut lines = BufReader::new(&mut stream).lines();
    let first = lines.next().transpose()?.unwrap_or_default();
    if first.is_empty() {
        // Somebody came to see who answers here.
        return Ok(());
    }
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
    write!(
        stream,
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n{text}\n"
    )?;
    stream.conn.send_close_notify();
    stream.flush()
}
