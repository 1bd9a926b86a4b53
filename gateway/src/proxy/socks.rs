//! SOCKS version 5 towards the explicit proxy (RFC 1928, RFC 1929): one command, one
//! destination, by a name that is looked up here alone or by an address. Decides nothing.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use outgate_policy::Host;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::tokens::{Credentials, TokenRegistry};
use super::{Explains, ProxyAsk, destination};
use crate::linger::close_lingering;
use crate::session::Session;

/// Version of the protocol, and of the exchange of user and password in it.
const VERSION: u8 = 5;
const PASSWORD_VERSION: u8 = 1;
/// Methods by which a client may say who it is (RFC 1928 3).
const BY_PASSWORD: u8 = 2;
const NO_METHOD: u8 = 0xff;
/// The command that is served.
const CONNECT: u8 = 1;

/// Answers to a command (RFC 1928 6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SocksReply {
    Succeeded = 0,
    Failure = 1,
    NotAllowed = 2,
    NoCommand = 7,
    NoAddressType = 8,
}

impl SocksReply {
    fn code(self) -> u8 {
        match self {
            Self::Succeeded => 0,
            Self::Failure => 1,
            Self::NotAllowed => 2,
            Self::NoCommand => 7,
            Self::NoAddressType => 8,
        }
    }

    /// Its bytes; the address that a proxy connects from is nobody's business.
    fn bytes(self) -> [u8; 10] {
        [VERSION, self.code(), 0, 1, 0, 0, 0, 0, 0, 0]
    }
}

/// What a command names.
struct SocksTarget {
    host: Host,
    port: u16,
    /// A name as it was spelt.
    said: String,
}

/// Serves a connection until it is handed on or answered.
pub(super) async fn serve(
    mut stream: TcpStream,
    from: SocketAddr,
    tokens: &TokenRegistry,
) -> io::Result<()> {
    let [_, count] = taken(&mut stream).await?;
    let methods = counted(&mut stream, count).await?;
    if !methods.contains(&BY_PASSWORD) {
        close_lingering(stream, &[VERSION, NO_METHOD]).await;
        return Ok(());
    }
    stream.write_all(&[VERSION, BY_PASSWORD]).await?;
    let Some(session) = identified(&mut stream, tokens).await? else {
        close_lingering(stream, &[PASSWORD_VERSION, 1]).await;
        return Ok(());
    };
    stream.write_all(&[PASSWORD_VERSION, 0]).await?;
    let asked = asked(&mut stream).await?;
    match asked.and_then(|target| decided(session, target, from)) {
        Ok(ask) => {
            stream.write_all(&SocksReply::Succeeded.bytes()).await?;
            ask.tunnel(stream);
        }
        Err(reply) => close_lingering(stream, &reply.bytes()).await,
    }
    Ok(())
}

/// Says no in the version before, which has no credentials.
pub(super) async fn refuse_version_4(stream: TcpStream) -> io::Result<()> {
    const REJECTED: [u8; 8] = [0, 91, 0, 0, 0, 0, 0, 0];
    close_lingering(stream, &REJECTED).await;
    Ok(())
}

/// The sandbox of who shows a name and a token (RFC 1929 2).
async fn identified(
    stream: &mut TcpStream,
    tokens: &TokenRegistry,
) -> io::Result<Option<Arc<Session>>> {
    let [version, count] = taken(stream).await?;
    if version != PASSWORD_VERSION {
        return Ok(None);
    }
    let name = counted(stream, count).await?;
    let [count] = taken(stream).await?;
    let token = zeroize::Zeroizing::new(counted(stream, count).await?);
    let shown = Credentials::named(&name, &token);
    Ok(shown.and_then(|shown| tokens.session(&shown)))
}

/// What is asked for, or the answer to what is not served.
async fn asked(stream: &mut TcpStream) -> io::Result<Result<SocksTarget, SocksReply>> {
    let [version, command, _, kind] = taken(stream).await?;
    let mut said = String::new();
    let host = match kind {
        1 => {
            let octets: [u8; 4] = taken(stream).await?;
            Some(Host::Address(Ipv4Addr::from(octets).into()))
        }
        3 => {
            let [count] = taken(stream).await?;
            let text = counted(stream, count).await?;
            said = String::from_utf8_lossy(&text).into_owned();
            named(&text)
        }
        4 => {
            let octets: [u8; 16] = taken(stream).await?;
            Some(Host::Address(
                IpAddr::V6(Ipv6Addr::from(octets)).to_canonical(),
            ))
        }
        _ => return Ok(Err(SocksReply::NoAddressType)),
    };
    let port = u16::from_be_bytes(taken(stream).await?);
    Ok(match (version, command, host, port) {
        (VERSION, CONNECT, Some(host), 1..) => Ok(SocksTarget { host, port, said }),
        (VERSION, CONNECT, ..) => Err(SocksReply::Failure),
        (VERSION, ..) => Err(SocksReply::NoCommand),
        _ => Err(SocksReply::Failure),
    })
}

/// A host that is spelt out: a name, or an address in its one spelling.
fn named(text: &[u8]) -> Option<Host> {
    let text = str::from_utf8(text).ok().filter(|text| text.is_ascii())?;
    match text.parse::<Ipv6Addr>() {
        Ok(_) => Host::parse(&format!("[{text}]")).ok(),
        Err(_) => Host::parse(text).ok(),
    }
}

fn decided(
    session: Arc<Session>,
    target: SocksTarget,
    from: SocketAddr,
) -> Result<ProxyAsk, SocksReply> {
    let to = destination(&session, target.host, target.port);
    let ask = ProxyAsk::new(session, to, &target.said).ok_or(SocksReply::Failure)?;
    let how = format!("SOCKS5 from {}", from.ip().to_canonical());
    let decided = ask.decide(&how, Explains::Inside);
    decided.map(|()| ask).map_err(|_| SocksReply::NotAllowed)
}

/// The next bytes, as many as these.
async fn taken<const N: usize>(stream: &mut TcpStream) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    stream.read_exact(&mut bytes).await?;
    Ok(bytes)
}

/// As many of the next bytes as were announced.
async fn counted(stream: &mut TcpStream, count: u8) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; usize::from(count)];
    stream.read_exact(&mut bytes).await?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_that_is_spelt_out_has_one_reading_or_none() {
        for (text, host) in [
            ("a.test", Some("a.test")),
            ("A.test.", Some("a.test")),
            ("192.0.2.1", Some("192.0.2.1")),
            ("2001:db8::1", Some("[2001:db8::1]")),
            ("::ffff:127.0.0.1", None),
            ("fe80::1%lo", None),
            ("127.1", None),
            ("2130706433", None),
            ("0x7f.0.0.1", None),
            ("a.test:80", None),
            ("a.test\0.b.test", None),
            ("a b", None),
            ("", None),
        ] {
            let found = named(text.as_bytes()).map(|host| host.to_string());
            assert_eq!(found.as_deref(), host, "{text:?}");
        }
    }
}
