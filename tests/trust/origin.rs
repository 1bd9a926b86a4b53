//! A TLS origin that a test can ask who came: with which certificate, and for
//! what. It ends with the test's process.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use outgate_ca::{Authority, LeafSubject};
use outgate_harness::{Identity, Lab};
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::ResolvesServerCert;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::sign::CertifiedKey;
use rustls::{
    DigitallySignedStruct, DistinguishedName, Error, ServerConfig, ServerConnection,
    SignatureScheme, StreamOwned,
};

/// What an origin answers everything with.
pub(crate) const MARK: &str = "from-the-verified-origin";

/// Longest wait for a client, in seconds.
const PATIENCE_SECONDS: u64 = 20;

/// What it asks of clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Demand {
    /// Nothing.
    Nothing,
    /// A certificate, and nobody is turned away for having none.
    Wish,
    /// A certificate; nobody comes in without.
    Certificate,
}

/// One handshake that was made, and what came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Visit {
    /// What the client called it.
    pub server_name: Option<String>,
    /// The client's certificate, in DER.
    pub certificate: Option<Vec<u8>>,
    /// Request lines.
    pub requests: Vec<String>,
}

/// The origin, and the authority that vouches for it.
#[derive(Debug)]
pub(crate) struct Origin {
    pub(crate) address: SocketAddr,
    /// The file with its authority's certificate.
    pub(crate) authority: PathBuf,
    visits: Arc<Mutex<Vec<Visit>>>,
}

impl Origin {
    /// Listens on a loopback address as these names.
    pub(crate) fn start(lab: &Lab, names: &[&str], demand: Demand) -> Self {
        let authority = Authority::for_run("origins").expect("an authority");
        let folder = lab.folder("origins", Identity::Own);
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let file = folder.join(format!("{}.pem", address.port()));
        std::fs::write(&file, authority.pem()).expect("a file");
        let leaves = names.iter().map(|name| {
            let subject = LeafSubject::Name((*name).to_owned());
            let leaf = authority.issue(&subject).expect("a leaf");
            ((*name).to_owned(), Arc::new(leaf))
        });
        let leaves = Leaves(leaves.collect());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let algorithms = provider.signature_verification_algorithms;
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions");
        let config = match demand {
            Demand::Nothing => config.with_no_client_auth(),
            Demand::Wish | Demand::Certificate => {
                config.with_client_cert_verifier(Arc::new(Anybody(demand, algorithms)))
            }
        };
        let config = Arc::new(config.with_cert_resolver(Arc::new(leaves)));
        let visits: Arc<Mutex<Vec<Visit>>> = Arc::default();
        let seen = Arc::clone(&visits);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (config, seen) = (Arc::clone(&config), Arc::clone(&seen));
                thread::spawn(move || serve(stream, config, &seen));
            }
        });
        Self {
            address,
            authority: file,
            visits,
        }
    }

    /// `HOST:443=ADDRESS`.
    pub(crate) fn pin(&self, host: &str) -> String {
        format!("{host}:443={}", self.address)
    }

    /// Who came since this was asked last.
    pub(crate) fn visits(&self) -> Vec<Visit> {
        let mut visits = self.visits.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut visits)
    }
}

fn serve(stream: TcpStream, config: Arc<ServerConfig>, seen: &Mutex<Vec<Visit>>) {
    let limit = Some(Duration::from_secs(PATIENCE_SECONDS));
    stream.set_read_timeout(limit).expect("a limit");
    let connection = ServerConnection::new(config).expect("a connection");
    let mut stream = StreamOwned::new(connection, stream);
    if stream.conn.complete_io(&mut stream.sock).is_err() {
        return;
    }
    let certificate = stream.conn.peer_certificates().and_then(<[_]>::first);
    let visit = Visit {
        server_name: stream.conn.server_name().map(str::to_owned),
        certificate: certificate.map(|der| der.to_vec()),
        requests: Vec::new(),
    };
    let position = {
        let mut all = seen.lock().unwrap_or_else(PoisonError::into_inner);
        all.push(visit);
        all.len() - 1
    };
    let (mut bytes, mut one) = (Vec::new(), [0]);
    while let Ok(1) = stream.read(&mut one) {
        bytes.push(one[0]);
        if !bytes.ends_with(b"\r\n\r\n") {
            continue;
        }
        let head = String::from_utf8_lossy(&bytes).into_owned();
        let line = head.lines().next().unwrap_or_default().to_owned();
        bytes.clear();
        {
            let mut all = seen.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(visit) = all.get_mut(position) {
                visit.requests.push(line);
            }
        }
        let length = MARK.len();
        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{MARK}");
        if stream.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

/// A certificate for each name it is called by; for none, the first.
#[derive(Debug)]
struct Leaves(Vec<(String, Arc<CertifiedKey>)>);

impl ResolvesServerCert for Leaves {
    fn resolve(&self, hello: rustls::server::ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let called = hello.server_name();
        let own = self
            .0
            .iter()
            .find(|(name, _)| Some(name.as_str()) == called);
        own.or(self.0.first()).map(|(_, leaf)| Arc::clone(leaf))
    }
}

/// Takes any certificate whose key the client has.
#[derive(Debug)]
struct Anybody(Demand, WebPkiSupportedAlgorithms);

impl ClientCertVerifier for Anybody {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn client_auth_mandatory(&self) -> bool {
        self.0 == Demand::Certificate
    }

    fn verify_client_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.1)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.1)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.1.supported_schemes()
    }
}
