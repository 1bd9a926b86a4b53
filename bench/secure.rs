//! A client and an origin that speak TLS: this program again, under other
//! names. The client does as `workloads/load.c` does, with the same words in the
//! same places; the origin answers as `workloads/store.c`. Time is taken here,
//! judged elsewhere.

use std::error::Error;
use std::fs;
use std::io::{BufRead, Read, Write};
use std::net::{IpAddr, Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::time::{ClockId, clock_gettime};
use outgate_ca::{Authority, LeafSubject, Leaves};
use rustls::pki_types::ServerName;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, ClientConnection, ServerConfig};
use rustls::{ServerConnection, StreamOwned};

use crate::Outcome;

mod roots;

use roots::{trusted, trusting};

/// The name of the client's program: its time and memory count for nobody.
pub(crate) const CLIENT: &str = "load-tls";

/// The name of the origin's.
pub(crate) const ORIGIN: &str = "store-tls";

/// Hosts that nobody met before: `127.0.1.1` and so on.
pub(crate) const STRANGERS: u8 = 200;

/// Longest life of the client.
const PATIENCE: Duration = Duration::from_secs(100);

/// Bytes read or written at once.
const BLOCK_BYTES: usize = 256 * 1024;

/// Requests before time is taken, where one is small.
const WARM: usize = 25;

/// Bytes in no order (xorshift64), as those of an archive, an image or a pack.
fn disorder() -> Vec<u8> {
    let mut state: u64 = 88_172_645_463_325_252;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[4]
    };
    (0..BLOCK_BYTES).map(|_| next()).collect()
}

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// Does what the program's name says, if it is one of these.
pub(crate) fn errand(arguments: &[String]) -> Option<Outcome<()>> {
    let (program, rest) = arguments.split_first()?;
    let name = Path::new(program).file_name()?.to_str()?;
    match name {
        CLIENT => Some(client(rest)),
        ORIGIN => Some(origin(rest)),
        _ => None,
    }
}

/// What a host is called: some peers make no certificate for an address that a
/// strict client takes.
fn called(host: Ipv4Addr) -> String {
    if host == Ipv4Addr::LOCALHOST {
        return "localhost".to_owned();
    }
    host.to_string()
}

/// Whom a connection is for, and through whom.
#[derive(Debug)]
struct Client {
    port: u16,
    /// A forward proxy, or 0.
    proxy: u16,
    config: Arc<ClientConfig>,
    request: String,
    /// Bytes of content to be sent with each request.
    content: u64,
    block: Vec<u8>,
}

/// One connection and the request that is under way on it.
#[derive(Debug)]
struct Stream {
    host: Ipv4Addr,
    tls: StreamOwned<ClientConnection, TcpStream>,
    begun: Instant,
    head: Vec<u8>,
    /// Bytes of the response that did not come yet, once its head is there.
    left: Option<u64>,
}

/// Nanoseconds of each request.
type Samples = Vec<u64>;

/// `load-tls PORT PROXY KIND CONNECTIONS COUNT BYTES [ROOTS]`; see `load.c`.
/// Kinds: `get`, `post`, `fresh`, `idle`; `never`: each connection to a host
/// that nobody met before; `first`: the first request of all; `once`: one request, after
/// which it prints the time as `client first` does.
fn client(words: &[String]) -> Outcome<()> {
    let [port, proxy, kind, connections, count, bytes, rest @ ..] = words else {
        return Err("load-tls PORT PROXY KIND CONNECTIONS COUNT BYTES [ROOTS]".into());
    };
    let (connections, count): (usize, usize) = (connections.parse()?, count.parse()?);
    let bytes: u64 = bytes.parse()?;
    let is_post = kind == "post";
    // The authority alone: a whole bundle takes longer to read than all else here.
    let alone = std::env::var("NODE_EXTRA_CA_CERTS").ok();
    let alone = alone.filter(|_| kind == "once");
    let roots = rest.first().map(String::as_str);
    let content = if is_post { bytes } else { 0 };
    let client = Client {
        port: port.parse()?,
        proxy: proxy.parse()?,
        config: match &alone {
            Some(file) => trusted(file)?,
            None => trusting(roots)?,
        },
        request: request(port, kind, bytes),
        content,
        block: disorder(),
    };
    let here = Ipv4Addr::LOCALHOST;
    if kind == "once" {
        client.once(here)?;
        let now = clock_gettime(ClockId::CLOCK_MONOTONIC)?;
        writeln!(std::io::stdout(), "{}", Duration::from(now).as_nanos())?;
        return Ok(());
    }
    let mut streams = Vec::new();
    if is_post || kind == "get" {
        for _ in 0..connections {
            streams.push(client.join(here)?);
        }
        let warm = if bytes > 4_000_000 { 0 } else { WARM };
        client.keep(&mut streams, warm + connections)?;
    } else if kind != "first" {
        for _ in 0..WARM {
            client.once(here)?;
        }
    }
    meet("ready")?;
    let begun = Instant::now();
    let mut samples = match kind.as_str() {
        "get" | "post" => client.keep(&mut streams, count)?,
        "idle" => {
            for _ in 0..connections {
                let mut stream = client.join(here)?;
                client.get(&mut stream)?;
                streams.push(stream);
            }
            vec![1]
        }
        "never" => {
            let hosts = (1..=STRANGERS).take(count);
            let times = hosts.map(|number| client.once(Ipv4Addr::new(127, 0, 1, number)));
            times.collect::<Outcome<Samples>>()?
        }
        _ => client.again(connections, count, here)?,
    };
    let total = begun.elapsed().as_nanos();
    samples.sort_unstable();
    let at = |share: usize| {
        samples
            .get((samples.len() - 1) * share / 100)
            .copied()
            .unwrap_or(0)
    };
    meet(&format!("{total} {} {} {}", at(50), at(99), at(100)))?;
    drop(streams);
    meet("closed")
}

/// The words of a request.
fn request(port: &str, kind: &str, bytes: u64) -> String {
    let (method, length, path) = if kind == "post" {
        ("POST", format!("Content-Length: {bytes}\r\n"), 2)
    } else {
        ("GET", String::new(), bytes)
    };
    format!(
        "{method} /bytes/{path} HTTP/1.1\r\nHost: HOST:{port}\r\nUser-Agent: client\r\nAccept: */*\r\n{length}\r\n"
    )
}

/// The other side looks at the gateway; goes on when it says so.
fn meet(line: &str) -> Outcome<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()?;
    let mut answer = String::new();
    if std::io::stdin().lock().read_line(&mut answer)? == 0 {
        return Err("standard input ended".into());
    }
    Ok(())
}

impl Client {
    /// A connection to a host, with TLS agreed on.
    #[expect(clippy::disallowed_methods, reason = "this is the client")]
    fn join(&self, host: Ipv4Addr) -> Outcome<Stream> {
        let mut stream = match self.proxy {
            0 => TcpStream::connect((host, self.port))?,
            proxy => TcpStream::connect((Ipv4Addr::LOCALHOST, proxy))?,
        };
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        if self.proxy != 0 {
            let (name, port) = (called(host), self.port);
            write!(
                stream,
                "CONNECT {name}:{port} HTTP/1.1\r\nHost: {name}:{port}\r\n\r\n"
            )?;
            let mut answer = Vec::new();
            while !answer.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                stream.read_exact(&mut byte)?;
                answer.extend(byte);
            }
            let answer = String::from_utf8_lossy(&answer).into_owned();
            if !answer.contains(" 200") {
                return Err(format!("CONNECT: {answer}").into());
            }
        }
        let name = ServerName::try_from(called(host))?;
        let connection = ClientConnection::new(Arc::clone(&self.config), name)?;
        Ok(Stream {
            host,
            tls: StreamOwned::new(connection, stream),
            begun: Instant::now(),
            head: Vec::new(),
            left: None,
        })
    }

    fn ask(&self, stream: &mut Stream) -> Outcome<()> {
        stream.begun = Instant::now();
        stream.head.clear();
        stream.left = None;
        let request = self.request.replace("HOST", &called(stream.host));
        stream.tls.write_all(request.as_bytes())?;
        let mut left = self.content;
        while left > 0 {
            let size = usize::try_from(left)
                .unwrap_or(BLOCK_BYTES)
                .min(BLOCK_BYTES);
            stream
                .tls
                .write_all(self.block.get(..size).unwrap_or_default())?;
            left -= u64::try_from(size)?;
        }
        stream.tls.flush()?;
        Ok(())
    }

    /// One request, until its response is whole.
    fn get(&self, stream: &mut Stream) -> Outcome<()> {
        self.ask(stream)?;
        let mut block = vec![0; BLOCK_BYTES];
        while stream.hear(&mut block)?.is_none() {}
        Ok(())
    }

    /// Nanoseconds of one request on a connection of its own.
    fn once(&self, host: Ipv4Addr) -> Outcome<u64> {
        let begun = Instant::now();
        let mut stream = self.join(host)?;
        self.get(&mut stream)?;
        Ok(u64::try_from(begun.elapsed().as_nanos())?)
    }

    /// So many requests on connections of their own, some at once.
    fn again(&self, at_once: usize, count: usize, host: Ipv4Addr) -> Outcome<Samples> {
        let each = count / at_once.max(1);
        let work = || {
            let times = (0..each).map(|_| self.once(host));
            times
                .collect::<Outcome<Samples>>()
                .map_err(|error| error.to_string())
        };
        std::thread::scope(|scope| {
            let begun: Vec<_> = (0..at_once).map(|_| scope.spawn(work)).collect();
            let mut all = Samples::new();
            for thread in begun {
                all.extend(
                    thread
                        .join()
                        .map_err(|_| "a thread of the client panicked")??,
                );
            }
            Ok(all)
        })
    }

    /// So many requests, always one under way on each connection.
    fn keep(&self, streams: &mut [Stream], count: usize) -> Outcome<Samples> {
        let mut samples = Vec::with_capacity(count);
        let mut asked = 0;
        let mut block = vec![0; BLOCK_BYTES];
        for stream in streams.iter_mut().take(count) {
            self.ask(stream)?;
            asked += 1;
        }
        while samples.len() < count {
            let mut ready: Vec<bool> = vec![true; streams.len()];
            if streams.len() > 1 {
                let mut polls: Vec<PollFd<'_>> = streams
                    .iter()
                    .map(|stream| PollFd::new(stream.tls.sock.as_fd(), PollFlags::POLLIN))
                    .collect();
                poll(&mut polls, PollTimeout::NONE)?;
                ready = polls
                    .iter()
                    .map(|poll| poll.any().unwrap_or(true))
                    .collect();
            }
            for (stream, _) in streams.iter_mut().zip(ready).filter(|(_, ready)| *ready) {
                let Some(time) = stream.hear(&mut block)? else {
                    continue;
                };
                samples.push(time);
                if asked < count {
                    asked += 1;
                    self.ask(stream)?;
                }
            }
        }
        Ok(samples)
    }
}

impl Stream {
    /// Reads what is there, and waits if nothing is; the time it took since the
    /// request, when the response is whole.
    fn hear(&mut self, block: &mut [u8]) -> Outcome<Option<u64>> {
        loop {
            let count = self.tls.read(block)?;
            if count == 0 {
                return Err("the connection was closed before a response".into());
            }
            let fresh = block.get(..count).unwrap_or_default();
            if let Some(left) = &mut self.left {
                *left = left.saturating_sub(u64::try_from(count)?);
            } else {
                self.head.extend_from_slice(fresh);
                self.left = rest(&self.head)?;
            }
            if self.left == Some(0) {
                return Ok(Some(u64::try_from(self.begun.elapsed().as_nanos())?));
            }
            // TLS may hold what the socket shows no more.
            if self.tls.conn.wants_read() {
                return Ok(None);
            }
        }
    }
}

/// Bytes that are still to come behind what is there, once the head is whole.
fn rest(bytes: &[u8]) -> Outcome<Option<u64>> {
    let Some(end) = bytes.windows(4).position(|part| part == b"\r\n\r\n") else {
        return Ok(None);
    };
    let head = String::from_utf8_lossy(bytes.get(..end).unwrap_or_default()).to_ascii_lowercase();
    if !head.starts_with("http/1.1 200") {
        return Err(format!("not 200: {head}").into());
    }
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length:"));
    let length: u64 = length.ok_or("no content-length")?.trim().parse()?;
    let there = u64::try_from(bytes.len() - end - 4)?;
    Ok(Some(length.saturating_sub(there)))
}

/// The leaf for the name that is asked for, or the address connected to.
#[derive(Debug)]
struct Here(Arc<Leaves>, IpAddr);

impl ResolvesServerCert for Here {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let named = hello.server_name().map(str::to_owned);
        let subject = named.map_or(LeafSubject::Address(self.1), LeafSubject::Name);
        self.0.get(&subject).ok()
    }
}

/// `store-tls ROOTS`: listens on 127.0.0.1 and on the strangers' addresses,
/// writes what verifies it to ROOTS, prints its port, and ends with its input.
fn origin(words: &[String]) -> Outcome<()> {
    let roots = words.first().ok_or("store-tls ROOTS")?;
    let leaves = Arc::new(Leaves::new(Authority::for_run("bench")?));
    fs::write(roots, leaves.authority().pem())?;
    let first = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let port = first.local_addr()?.port();
    let strangers =
        (1..=STRANGERS).map(|number| TcpListener::bind((Ipv4Addr::new(127, 0, 1, number), port)));
    let all: Vec<TcpListener> = std::iter::once(Ok(first))
        .chain(strangers)
        .collect::<Result<_, _>>()?;
    for listener in all {
        let address = listener.local_addr()?.ip();
        let mut config = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(Here(Arc::clone(&leaves), address)));
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let config = Arc::new(config);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let config = Arc::clone(&config);
                // A connection that ends is no fault of anybody.
                std::thread::spawn(move || serve(stream, config).ok());
            }
        });
    }
    let mut out = std::io::stdout().lock();
    writeln!(out, "{port}")?;
    out.flush()?;
    std::io::stdin().lock().read_line(&mut String::new())?;
    Ok(())
}

fn serve(stream: TcpStream, config: Arc<ServerConfig>) -> Result<(), Box<dyn Error>> {
    stream.set_nodelay(true)?;
    let mut tls = StreamOwned::new(ServerConnection::new(config)?, stream);
    let (mut bytes, mut block) = (Vec::new(), vec![b'x'; BLOCK_BYTES]);
    loop {
        let end = loop {
            if let Some(end) = bytes.windows(4).position(|part| part == b"\r\n\r\n") {
                break end + 4;
            }
            let count = tls.read(&mut block)?;
            if count == 0 {
                return Ok(());
            }
            bytes.extend_from_slice(block.get(..count).unwrap_or_default());
        };
        let rest = bytes.split_off(end);
        let head = String::from_utf8_lossy(&bytes).to_ascii_lowercase();
        let value = |text: Option<&str>| text.and_then(|text| text.trim().parse::<u64>().ok());
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length:"));
        let path = head
            .split("/bytes/")
            .nth(1)
            .and_then(|rest| rest.split(' ').next());
        let mut left = value(length)
            .unwrap_or(0)
            .saturating_sub(u64::try_from(rest.len())?);
        while left > 0 {
            let count = tls.read(&mut block)?;
            if count == 0 {
                return Ok(());
            }
            left = left.saturating_sub(u64::try_from(count)?);
        }
        bytes = if length.is_some() { Vec::new() } else { rest };
        let size = value(path).unwrap_or(0);
        write!(
            tls,
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {size}\r\n\r\n"
        )?;
        block.fill(b'x');
        let mut left = size;
        while left > 0 {
            let count = usize::try_from(left)
                .unwrap_or(BLOCK_BYTES)
                .min(BLOCK_BYTES);
            tls.write_all(block.get(..count).unwrap_or_default())?;
            left -= u64::try_from(count)?;
        }
        tls.flush()?;
    }
}
