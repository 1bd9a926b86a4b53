//! Servers the command runs for itself: made on loopback alone, whatever other
//! threads do to the socket meanwhile, and never taken for a stranger's.

use std::io::Read;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use nix::sys::socket::{
    AddressFamily, Backlog, SockFlag, SockType, SockaddrStorage, bind, listen, setsockopt, socket,
    sockopt,
};
use std::os::fd::AsRawFd;

use outgate_harness::attack::check;
use outgate_harness::{Identity, Lab, lab_tests, race_time};

use crate::REFUSED;

lab_tests! {
    fn a_listener_whose_address_is_taken_away_listens_nowhere(lab) {
        let time = race_time().as_millis().to_string();
        // On its way to a connection, which another thread dissolves; and a
        // listener that another thread closes and binds to every address.
        for way in ["sent", "again"] {
            let bare = lab.bare(Identity::Own, &["listen-race", "2000", way]);
            assert!(bare.number("everywhere=") > 0, "bare it listens everywhere: {bare}");
            for identity in Identity::all() {
                let outcome = lab.sandbox(identity).probe(&["listen-race", &time, way]);
                assert_eq!(outcome.number("everywhere="), 0, "{identity:?} {way} {outcome}");
                let (tries, under_way) = (outcome.number("tries="), outcome.number("under-way="));
                assert!(tries > 20 && under_way > tries / 2, "the race was run: {outcome}");
            }
        }
    }

    fn listening_twice_is_no_fault(lab) {
        for identity in Identity::all() {
            let script = "import socket; s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen(1); s.listen(9); \
                          c = socket.create_connection(s.getsockname()); a, _ = s.accept(); a.send(b'served'); print(c.recv(9))";
            let command = ["python3".to_owned(), "-c".to_owned(), script.to_owned()];
            let outcome = lab.sandbox(identity).run(&command);
            assert_eq!(outcome.stdout, "b'served'\n", "{identity:?} {outcome}");
        }
    }

    fn a_refused_listen_changes_nothing(lab) {
        for identity in Identity::all() {
            let script = "import socket; s = socket.socket()\n\
                          s.bind(('93.184.216.34', 0)); at = s.getsockname()\n\
                          try: s.listen(1)\n\
                          except OSError as e: print(e.errno, s.getsockname() == at)\n\
                          s = socket.socket(); s.listen(1); print(s.getsockname()[0])";
            let command = ["python3".to_owned(), "-c".to_owned(), script.to_owned()];
            let outcome = lab.sandbox(identity).run(&command);
            assert_eq!(outcome.stdout, "13 True\n127.0.0.1\n", "{identity:?} {outcome}");
        }
    }

    fn a_path_with_dots_is_resolved_while_files_are_renamed(lab) {
        // openat2(2) gives up on `..` whenever anything on the machine is renamed.
        let script = "import collections, os, socket, sys, threading\n\
                      os.mkdir('sub'); path = os.getcwd() + '/sub/../sub/../own'\n\
                      server = socket.socket(socket.AF_UNIX); server.bind('own'); server.listen(64)\n\
                      def serve():\n    \
                      while True: server.accept()[0].close()\n\
                      threading.Thread(target=serve, daemon=True).start()\n\
                      renamer = os.fork()\n\
                      if not renamer:\n    \
                      open('one', 'w')\n    \
                      while True: os.rename('one', 'sub/two'); os.rename('sub/two', 'one')\n\
                      seen = collections.Counter()\n\
                      for _ in range(1000):\n    \
                      with socket.socket(socket.AF_UNIX) as client: seen[client.connect_ex(path)] += 1\n\
                      os.kill(renamer, 9); print(dict(seen))";
        let command = ["python3".to_owned(), "-c".to_owned(), script.to_owned()];
        for identity in Identity::all() {
            let outcome = lab.sandbox(identity).run(&command);
            assert_eq!(outcome.stdout, "{0: 1000}\n", "{identity:?} {outcome}");
        }
    }

    fn an_own_ipv6_listener_does_not_vouch_for_a_strangers_ipv4_port(lab) {
        beside(lab, "[::]", &["127.0.0.1", "[::ffff:127.0.0.1]"], "0");
        beside(lab, "[::1]", &["127.0.0.1", "[::ffff:127.0.0.1]"], "0");
    }

    fn no_server_stands_at_the_other_address_of_a_name_that_a_stranger_serves(lab) {
        // Who looks `localhost` up tries one after the other, and takes who answers first.
        for identity in Identity::all() {
            for (theirs, ours) in [
                ("127.0.0.1", "::1"), ("0.0.0.0", "::1"), ("::1", "127.0.0.1"), ("::1", "0.0.0.0"), ("::1", ""),
            ] {
                let stranger = TcpListener::bind((theirs, 0)).expect("a port");
                let port = stranger.local_addr().expect("an address").port().to_string();
                let command = ["python3", "-c", BESIDE, ours, &port].map(str::to_owned);
                let outcome = lab.sandbox(identity).run(&command);
                assert_eq!(outcome.stdout, "98\nboth 0 0\n", "{identity:?} {theirs} {ours} {outcome}");
                drop(stranger);
                let outcome = lab.sandbox(identity).run(&command);
                assert_eq!(outcome.stdout, "0\nboth 0 0\n", "{identity:?} {theirs} {ours} {outcome}");
            }
        }
    }

    fn an_own_listener_everywhere_does_not_vouch_for_a_stranger_bound_more_closely(lab) {
        // Only by sharing the port could both be there.
        beside(lab, "0.0.0.0", &["127.0.0.1"], "EADDRINUSE");
    }
}

/// Listens at an address and a port, or everywhere; then at both addresses of a free port.
const BESIDE: &str = "
import socket, sys
def at(address, port):
    try:
        one = socket.socket(socket.AF_INET6 if ':' in address or not address else socket.AF_INET)
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if one.family == socket.AF_INET6: one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, int(bool(address)))
        one.bind((address or '::', port)); one.listen(4)
        return one, 0
    except OSError as error: return one, error.errno
print(at(sys.argv[1], int(sys.argv[2]))[1])
first, one = at('127.0.0.1', 0)
second, two = at('::1', first.getsockname()[1])
print('both', one, two)
";

/// The command listens at `own` on the port that a stranger of the same user
/// has at 127.0.0.1, as far as the kernel lets both; then it connects to the
/// stranger in every form.
fn beside(lab: &Lab, own: &str, forms: &[&str], bound: &str) {
    for identity in Identity::all() {
        let (port, seen) = stranger(identity);
        let place = format!("{own}:{port}");
        let mut probe = vec!["beside".to_owned(), place.clone()];
        probe.extend(forms.iter().map(|form| format!("{form}:{port}")));
        let words: Vec<&str> = probe.iter().map(String::as_str).collect();
        lab.bare(identity, &words);
        let reached = || seen.load(Ordering::SeqCst) >= forms.len();
        let limit = Duration::from_secs(10);
        let all = outgate_harness::eventually(limit, reached);
        assert!(all, "bare the stranger is reached");
        seen.store(0, Ordering::SeqCst);
        let outcome = lab
            .sandbox(identity)
            .option("--listen", &place)
            .probe(&words);
        let expected: Vec<_> = words.iter().skip(2).map(|&form| (form, REFUSED)).collect();
        check(&outcome, &expected, &format!("{identity:?} {own}"));
        assert_eq!(outcome.errno("bind"), bound, "{identity:?} {outcome}");
        assert_eq!(seen.load(Ordering::SeqCst), 0, "{identity:?} {outcome}");
    }
}

/// A server at 127.0.0.1 that shares its port, and how many connections it had.
fn stranger(identity: Identity) -> (u16, Arc<AtomicUsize>) {
    let made = socket(
        AddressFamily::Inet,
        SockType::Stream,
        SockFlag::SOCK_CLOEXEC,
        None,
    );
    let made = made.expect("a socket");
    setsockopt(&made, sockopt::ReuseAddr, &true).expect("SO_REUSEADDR");
    setsockopt(&made, sockopt::ReusePort, &true).expect("SO_REUSEPORT");
    // Only sockets of one user share a port.
    let user = nix::unistd::Uid::from_raw(identity.uid());
    nix::unistd::fchown(&made, Some(user), None).expect("the socket's owner");
    let at = std::net::SocketAddr::from(([127, 0, 0, 1], 0));
    bind(made.as_raw_fd(), &SockaddrStorage::from(at)).expect("bind");
    listen(&made, Backlog::MAXALLOWABLE).expect("listen");
    let listener = TcpListener::from(made);
    let port = listener.local_addr().expect("an address").port();
    let seen = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&seen);
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut bytes = Vec::new();
            stream.read_to_end(&mut bytes).ok();
            count.fetch_add(1, Ordering::SeqCst);
        }
    });
    (port, seen)
}
