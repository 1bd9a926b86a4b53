//! Happy eyeballs (RFC 8305): connecting to the first of a host's vetted addresses that
//! answers, families in turn, each address with a head start before the
//! next. Knows no host and no policy.

use std::io;

use outgate_policy::Vetted;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::limits;
use crate::resolve::ResolvedPin;

/// Connects to the first of these that answers; the attempts that lost are
/// dropped. Bounded by its caller's patience and the number of addresses.
pub(super) async fn dial(vetted: Vec<Vetted>) -> io::Result<(TcpStream, ResolvedPin)> {
    let mut failure = io::Error::from(io::ErrorKind::AddrNotAvailable);
    let mut attempts = JoinSet::new();
    let mut turns = in_turn(vetted);
    if turns.len() <= 1 {
        return match turns.pop() {
            Some(only) => connect(only).await,
            None => Err(failure),
        };
    }
    for vetted in turns {
        attempts.spawn(connect(vetted));
        match timeout(limits::DIAL_STAGGER, attempts.join_next()).await {
            Ok(Some(Ok(Ok(stream)))) => return Ok(stream),
            Ok(Some(Ok(Err(error)))) => failure = error,
            Ok(Some(Err(_)) | None) | Err(_) => {}
        }
    }
    while let Some(attempt) = attempts.join_next().await {
        match attempt {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => failure = error,
            Err(_) => {}
        }
    }
    Err(failure)
}

/// Spends the evidence on one dial.
async fn connect(vetted: Vetted) -> io::Result<(TcpStream, ResolvedPin)> {
    let stream = TcpStream::connect(vetted.address()).await?;
    Ok((stream, ResolvedPin::of(&vetted)))
}

/// The families in turn, beginning with the first address's; the order within
/// each is kept (RFC 8305 4).
fn in_turn(vetted: Vec<Vetted>) -> Vec<Vetted> {
    let count = vetted.len();
    let first = vetted.first().is_some_and(|one| one.address().is_ipv6());
    let is_first = |one: &Vetted| one.address().is_ipv6() == first;
    let (ones, others): (Vec<_>, Vec<_>) = vetted.into_iter().partition(is_first);
    let (mut ones, mut others) = (ones.into_iter(), others.into_iter());
    let mut turns = Vec::with_capacity(count);
    while turns.len() < count {
        turns.extend(ones.next());
        turns.extend(others.next());
    }
    turns
}

#[cfg(test)]
mod tests {
    use std::net::{SocketAddr, TcpListener};
    use std::time::{Duration, Instant};

    use nix::sys::socket::{
        AddressFamily, Backlog, SockFlag, SockType, SockaddrIn, bind, getsockname, listen, socket,
    };

    use outgate_policy::Proxy;

    use super::*;

    /// Addresses that the operator names, each as a proxy.
    fn vetted(addresses: &[SocketAddr]) -> Vec<Vetted> {
        let vetted = |&address: &SocketAddr| {
            let proxy = Proxy::parse(&address.to_string()).expect("a proxy");
            proxy.vetted(address).expect("its own address")
        };
        addresses.iter().map(vetted).collect()
    }

    #[test]
    fn families_take_turns() {
        for (addresses, turns) in [
            (&[][..], &[][..]),
            (&["10.0.0.1:1"], &["10.0.0.1:1"]),
            (
                &["10.0.0.1:1", "10.0.0.2:1", "[::1]:1", "[::2]:1", "[::3]:1"],
                &["10.0.0.1:1", "[::1]:1", "10.0.0.2:1", "[::2]:1", "[::3]:1"],
            ),
            (
                &["[::1]:1", "[::2]:1", "10.0.0.1:1"],
                &["[::1]:1", "10.0.0.1:1", "[::2]:1"],
            ),
        ] {
            let parsed: Vec<SocketAddr> = addresses.iter().map(|a| a.parse().unwrap()).collect();
            let texts: Vec<String> = in_turn(vetted(&parsed))
                .iter()
                .map(|one| one.address().to_string())
                .collect();
            assert_eq!(texts, turns);
        }
    }

    fn run<T>(test: impl Future<Output = T>) -> T {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        runtime.enable_all().build().unwrap().block_on(test)
    }

    #[test]
    fn an_address_that_stays_silent_costs_a_head_start_only() {
        // A listener whose queue is full answers nobody.
        let flags = SockFlag::SOCK_CLOEXEC;
        let full = socket(AddressFamily::Inet, SockType::Stream, flags, None).unwrap();
        bind(
            std::os::fd::AsRawFd::as_raw_fd(&full),
            &SockaddrIn::new(127, 0, 0, 1, 0),
        )
        .unwrap();
        listen(&full, Backlog::new(0).unwrap()).unwrap();
        let silent: SockaddrIn = getsockname(std::os::fd::AsRawFd::as_raw_fd(&full)).unwrap();
        let silent = SocketAddr::from((silent.ip(), silent.port()));
        let alive = TcpListener::bind("127.0.0.1:0").unwrap();
        let alive = alive.local_addr().map(|address| (alive, address)).unwrap();
        run(async {
            let mut held = Vec::new();
            while let Ok(Ok(stream)) =
                timeout(Duration::from_millis(300), TcpStream::connect(silent)).await
            {
                held.push(stream);
            }
            let begun = Instant::now();
            let (stream, pin) = dial(vetted(&[silent, alive.1])).await.unwrap();
            assert_eq!(pin.address, alive.1);
            assert_eq!(stream.peer_addr().unwrap(), alive.1);
            let took = begun.elapsed();
            assert!(took >= limits::DIAL_STAGGER, "{took:?}");
            assert!(took < limits::DIAL_TIME, "{took:?}");
        });
    }

    #[test]
    fn the_last_failure_is_told_when_none_answers() {
        let refusing: SocketAddr = "127.0.0.1:1".parse().unwrap();
        let error = run(dial(vetted(&[refusing, refusing]))).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
        assert!(run(dial(Vec::new())).is_err());
    }
}
