//! The origin of `outgate check --clients`: TLS on a loopback port, with an
//! authority of its own and a certificate for whatever name it is called by.
//! Says who asked, one host a line. For trials on this machine alone; serves
//! nobody's requests but the checked clients'.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use outgate_ca::{Authority, LeafSubject, Leaves};
use rustls::server::{ClientHello, NoServerSessionStorage, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::limits;

/// What it answers everything with.
const ANSWER: &str = "{}\n";

/// Names it has certificates for: `CLIENT.outgate.test`.
const DOMAIN: &str = ".outgate.test";

/// Serves until standard input ends, or `said` cannot be written to: first its
/// port, then its authority in PEM and an empty line, then the host of each
/// request.
///
/// # Errors
/// It cannot listen, or make its authority.
pub fn trial(mut said: impl Write + Send + 'static) -> io::Result<()> {
    let authority = Authority::for_run("trial").map_err(io::Error::other)?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let port = listener.local_addr()?.port();
    writeln!(said, "{port}\n{}", authority.pem().trim_end())?;
    writeln!(said)?;
    said.flush()?;
    let config = config(authority).map_err(io::Error::other)?;
    let said = Arc::new(Mutex::new(said));
    thread::spawn(move || {
        let places = Arc::new(());
        for stream in listener.incoming().flatten() {
            if Arc::strong_count(&places) > limits::TRIAL_CONNECTIONS_MAX {
                continue;
            }
            let (config, said) = (Arc::clone(&config), Arc::clone(&said));
            let place = Arc::clone(&places);
            thread::spawn(move || {
                serve(stream, config, &said).ok();
                drop(place);
            });
        }
    });
    // Whoever started this holds the other end.
    io::copy(&mut io::stdin(), &mut io::sink()).map(drop)
}

fn config(authority: Authority) -> Result<Arc<ServerConfig>, rustls::Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(NameCertificate(Leaves::new(authority))));
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// A certificate for the name a client says.
#[derive(Debug)]
struct NameCertificate(Leaves);

impl ResolvesServerCert for NameCertificate {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let name = hello.server_name().filter(|name| name.ends_with(DOMAIN))?;
        self.0.get(&LeafSubject::Name(name.to_owned())).ok()
    }
}

/// Answers the one request of a connection.
fn serve(stream: TcpStream, config: Arc<ServerConfig>, said: &Mutex<impl Write>) -> io::Result<()> {
    stream.set_read_timeout(Some(limits::TRIAL_TIME))?;
    stream.set_write_timeout(Some(limits::TRIAL_TIME))?;
    let connection = ServerConnection::new(config).map_err(io::Error::other)?;
    let mut stream = StreamOwned::new(connection, stream);
    let Some(head) = head(&mut stream)? else {
        return Ok(());
    };
    let name = stream.conn.server_name().unwrap_or_default().to_owned();
    {
        let mut said = said.lock().unwrap_or_else(PoisonError::into_inner);
        writeln!(said, "{name}")?;
        said.flush()?;
    }
    let body = if head.starts_with("HEAD ") {
        ""
    } else {
        ANSWER
    };
    let length = ANSWER.len();
    let answer = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n{body}"
    );
    stream.write_all(answer.as_bytes())?;
    stream.conn.send_close_notify();
    stream.flush()
}

/// The head of the next request; `None` at the end, and for what is too long.
fn head(stream: &mut impl Read) -> io::Result<Option<String>> {
    let (mut bytes, mut one) = (Vec::new(), [0]);
    while bytes.len() < limits::HEAD_BYTES_MAX {
        if stream.read(&mut one)? == 0 {
            return Ok(None);
        }
        bytes.extend(one);
        if bytes.ends_with(b"\r\n\r\n") {
            return Ok(Some(String::from_utf8_lossy(&bytes).into_owned()));
        }
    }
    Ok(None)
}
