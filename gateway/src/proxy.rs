//! The explicit proxy: TCP connections of clients that no launcher holds, in containers,
//! virtual machines and on other hosts. Who asks is what credentials say; what for becomes
//! one destination and one flow like any other. Decides nothing itself, and hears nobody for
//! long who has not said who it is.

use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use outgate_handoff::ProcessFacts;
use outgate_policy::{Host, HostName};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout_at};

use crate::accept;
use crate::ask::{self, ConnectionCourse};
use crate::audit::{Event, Kind, Outcome};
use crate::caller::Caller;
use crate::destination::{Destination, Party};
use crate::http1::RequestsCarried;
use crate::limits;
use crate::refusal::Refusal;
use crate::session::{FlowSlot, Session};
use crate::stub;

mod head;
mod http;
mod lobby;
mod socks;
mod tokens;

use lobby::{Lobby, LobbyPlace};
pub(crate) use tokens::{TokenInForce, TokenRegistry};

/// The first byte of a SOCKS connection, by version (RFC 1928 3).
const SOCKS5: u8 = 5;
/// The same of the version before, which knows no credentials.
const SOCKS4: u8 = 4;

/// Time for a client to say who it is and what it wants: the other side of the world needs a
/// second.
const GREETING_TIME: Duration = Duration::from_secs(10);

/// A listener, and who may come in by it.
pub(crate) struct ExplicitProxy {
    listener: TcpListener,
    tokens: Arc<TokenRegistry>,
    lobby: Arc<Lobby>,
}

impl ExplicitProxy {
    /// Takes over a socket that listens already.
    ///
    /// # Errors
    /// It cannot be driven.
    pub(crate) fn new(listener: OwnedFd, tokens: &Arc<TokenRegistry>) -> io::Result<Self> {
        let listener = std::net::TcpListener::from(listener);
        listener.set_nonblocking(true)?;
        Ok(Self {
            listener: TcpListener::from_std(listener)?,
            tokens: Arc::clone(tokens),
            lobby: Arc::new(Lobby::new(limits::PROXY_GREETINGS_MAX)),
        })
    }

    /// Serves until `stopped` changes or is gone.
    pub(crate) async fn serve(self, mut stopped: watch::Receiver<()>) {
        let mut greetings = JoinSet::new();
        loop {
            tokio::select! {
                accepted = self.listener.accept() => match accepted {
                    Ok((stream, from)) => {
                        // Where it is full, who has been silent the longest makes room.
                        let place = self.lobby.enter(from.ip());
                        let tokens = Arc::clone(&self.tokens);
                        greetings.spawn(async move { greet(stream, from, &tokens, place).await });
                    }
                    // Descriptors or memory are short: those who hold them let go.
                    Err(_) => sleep(limits::ACCEPT_PAUSE).await,
                },
                Some(_) = greetings.join_next() => {}
                _ = stopped.changed() => return,
            }
        }
    }
}

/// Hears who asks for what, within a time, and hands the connection on or answers it.
async fn greet(stream: TcpStream, from: SocketAddr, tokens: &TokenRegistry, mut place: LobbyPlace) {
    stream.set_nodelay(true).ok();
    let deadline = Instant::now() + GREETING_TIME;
    let heard = async {
        let mut first = [0];
        if stream.peek(&mut first).await? == 0 {
            return io::Result::Ok(());
        }
        match first {
            [SOCKS5] => Box::pin(socks::serve(stream, from, tokens)).await,
            [SOCKS4] => socks::refuse_version_4(stream).await,
            _ => Box::pin(http::serve(stream, from, tokens)).await,
        }
    };
    // A client that is gone, or was too slow, has nobody to be told.
    tokio::select! {
        _ = timeout_at(deadline, heard) => {}
        () = place.taken() => {}
    }
}

/// What a client asks for, and who it is: whatever it was asked with.
struct ProxyAsk {
    session: Arc<Session>,
    caller: Caller,
    slot: FlowSlot,
    /// The name that it was asked for by, as the client spelt it.
    spelt: Option<(HostName, String)>,
}

/// Why nothing comes of what was asked for.
enum ProxyRefusal {
    /// There are as many connections as may be.
    Full,
    /// It is denied.
    Denied(Refusal),
}

impl ProxyAsk {
    /// A place for a connection to this destination, which `said` names.
    fn new(session: Arc<Session>, destination: Destination, said: &str) -> Option<Self> {
        let slot = accept::slot(&session)?;
        let spelt = if let Party::Name(name) = &destination.party {
            Some((name.clone(), spelt(name, said)))
        } else {
            None
        };
        // Nothing is known of the process but that it has the credentials.
        let caller = Caller::new(session.recorder(), ProcessFacts::default(), destination);
        Some(Self {
            session,
            caller,
            slot,
            spelt,
        })
    }

    /// Decides whether there is to be a connection, as for a call that a launcher holds, and
    /// records it with `how` it was asked for.
    fn decide(&self, how: &str, explains: Explains) -> Result<(), Refusal> {
        let (process, to) = (self.caller.process(), self.caller.destination());
        let target = to.to_string();
        let event = Event::new(Kind::Connect, Outcome::Allow, &target).process(process);
        let course = ask::course(&self.session, process, to);
        if matches!(course, ConnectionCourse::Own | ConnectionCourse::Stub) {
            return Ok(());
        }
        // A name is data too, and a client that no stub answers asks for it here.
        if let Some((name, text)) = &self.spelt {
            let left = stub::may_leave(&self.session, Some(process), (name, text));
            left.map_err(|refusal| self.session.recorder().shown(&refusal))?;
        }
        let event = match &course {
            ConnectionCourse::Own | ConnectionCourse::Stub => return Ok(()),
            ConnectionCourse::Inspect(permit) => match permit.denied() {
                Some(_) => event.permit(permit).detail(&format!("gateway; {how}")),
                None => event.detail(&format!("gateway; {how}")),
            },
            ConnectionCourse::Direct(_, permit) => event.rule(permit.rule()).detail(how),
            ConnectionCourse::Explain(refusal) if explains == Explains::Inside => {
                self.caller.refused(Kind::Connect, &target, refusal);
                return Ok(());
            }
            ConnectionCourse::Explain(refusal) | ConnectionCourse::Deny(refusal) => {
                self.caller.refuse(Kind::Connect, refusal);
                return Err(self.session.recorder().shown(refusal));
            }
        };
        let recorded = self.session.recorder().record(&event);
        recorded.map_err(|_| Refusal::unrecorded(&target))
    }

    /// Serves what the client sends from here on.
    fn tunnel(self, stream: TcpStream) {
        accept::connected(&self.session, self.caller, stream, self.slot);
    }

    /// Serves the one request whose head was read.
    fn request(self, (head, carries): (Vec<u8>, RequestsCarried), stream: TcpStream) {
        let place = (self.slot, carries);
        accept::requested(&self.session, self.caller, (head, stream), place);
    }
}

/// Where a client hears why its destination is denied, if that can be said there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Explains {
    /// In the answer to what it asked for.
    Here,
    /// In what it speaks afterwards.
    Inside,
}

/// A name as it stands in a text that holds it in letters of any case: what is searched for
/// credentials is what was sent.
fn spelt(name: &HostName, said: &str) -> String {
    let lower = said.to_ascii_lowercase();
    let found = lower.find(name.as_str()).and_then(|start| {
        let end = start.checked_add(name.as_str().len())?;
        said.get(start..end)
    });
    found.unwrap_or(name.as_str()).to_owned()
}

/// One destination for a host that a client named. An address is what it is to a launcher;
/// a name stays one, which nobody has looked up.
fn destination(session: &Session, host: Host, port: u16) -> Destination {
    match host {
        Host::Address(address) => session.destination(SocketAddr::new(address, port)),
        // A spelling of the address (RFC 6761 6.3), which no client looks up here.
        Host::Name(name) if name.as_str() == "localhost" => {
            session.destination(SocketAddr::new(IpAddr::from([127, 0, 0, 1]), port))
        }
        Host::Name(name) => Destination {
            party: Party::Name(name),
            port,
            address: SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), port),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_searched_as_it_was_spelt() {
        let name = HostName::parse("ghp-x.a.test").unwrap();
        for (said, found) in [
            ("http://GHP-x.A.test/ghp-x.a.test", "GHP-x.A.test"),
            ("Ghp-X.a.test.:443", "Ghp-X.a.test"),
            ("elsewhere", "ghp-x.a.test"),
        ] {
            assert_eq!(spelt(&name, said), found);
        }
    }
}
