//! Servers of the command's own that end while it connects to them: their ports and
//! names go to a stranger who waits for just that, and the stranger is never reached.

use std::time::Duration;

use outgate_harness::{Identity, Lab, lab_tests, race_time};

/// A stranger who takes what becomes free, of the same user and outside.
fn beside(
    lab: &Lab,
    identity: Identity,
    (kind, time): (&str, Duration),
    command: impl FnOnce(&str, &str) -> String,
) {
    let file = lab.folder("work", identity).join("freed");
    let file = file.to_string_lossy().into_owned();
    let time = time.as_millis();
    let long = (time + 1500).to_string();
    let stranger = lab.probe(&["wants", &file, &long, kind]);
    let stranger = lab.start_bare(identity, &stranger);
    stranger.wait_for("wants\n");
    let what = command(&file, &time.to_string());
    let stranger = stranger.finish();
    std::fs::remove_file(&file).ok();
    assert_eq!(
        stranger.number("came="),
        0,
        "{identity:?} {what} {stranger}"
    );
}

/// Shows that the stranger is reached where nobody judges.
fn reaches_bare(lab: &Lab, probe: &[&str], kind: &str) {
    let file = lab.folder("work", Identity::Own).join("freed");
    let file = file.to_string_lossy().into_owned();
    let stranger = lab.start_bare(Identity::Own, &lab.probe(&["wants", &file, "8000", kind]));
    stranger.wait_for("wants\n");
    let mut words = vec![probe[0], file.as_str()];
    words.extend(&probe[1..]);
    let bare = lab.bare(Identity::Own, &words);
    let stranger = stranger.finish();
    std::fs::remove_file(&file).ok();
    assert!(
        stranger.number("came=") > 0,
        "bare it is reached: {bare} {stranger}"
    );
}

lab_tests! {
    fn a_server_that_ends_meanwhile_is_not_replaced_by_a_stranger(lab) {
        for (way, kind) in [("close", "tcp"), ("shutdown", "tcp"), ("unix", "unix")] {
            reaches_bare(lab, &["freed", "4000", way], kind);
            for identity in Identity::all() {
                beside(lab, identity, (kind, race_time()), |file, time| {
                    let outcome = lab.sandbox(identity).probe(&["freed", file, time, way]);
                    assert!(outcome.number("tries=") > 10, "the race was run: {identity:?} {way} {outcome}");
                    assert!(outcome.number("made=") > outcome.number("tries="), "its own server answers: {identity:?} {way} {outcome}");
                    format!("{way} {outcome}")
                });
            }
        }
    }

    fn a_connection_that_a_full_server_left_waiting_is_not_a_strangers(lab) {
        for way in ["close", "shutdown", "disconnect", "unreadable"] {
            reaches_bare(lab, &["late", way], "tcp");
            for identity in Identity::all() {
                beside(lab, identity, ("tcp", Duration::from_secs(4)), |file, _| {
                    let outcome = lab.sandbox(identity).probe(&["late", file, way]);
                    assert!(outcome.number("under-way=") > 2, "{identity:?} {way} {outcome}");
                    format!("{way} {outcome}")
                });
            }
        }
    }

    fn an_own_server_is_reached_wherever_its_socket_went(lab) {
        for identity in Identity::all() {
            let command = ["python3".to_owned(), "-c".to_owned(), MOVED.to_owned()];
            let outcome = lab.sandbox(identity).run(&command);
            let expected = "tcp moved 0\ntcp child 0\ntcp closed 111\ntcp sent 0\n\
                            name moved 0\nname child 0\nname closed 111\nname sent 0\n";
            assert_eq!(outcome.stdout, expected, "{identity:?} {outcome}");
        }
    }

    fn a_port_is_shared_with_nobody(lab) {
        let script = "import socket; s = socket.socket()\n\
                      s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)\n\
                      print(s.getsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT))";
        for identity in Identity::all() {
            let command = ["python3".to_owned(), "-c".to_owned(), script.to_owned()];
            let outcome = lab.sandbox(identity).run(&command);
            assert_eq!(outcome.stdout, "0\n", "{identity:?} {outcome}");
        }
    }

    fn what_is_shut_down_ends_as_ever(lab) {
        for identity in Identity::all() {
            let command = ["python3".to_owned(), "-c".to_owned(), SHUT.to_owned()];
            let outcome = lab.sandbox(identity).run(&command);
            assert_eq!(outcome.stdout, "pair b''\ntcp b''\naccept 22\nagain 107\nfile 88\nnone 9\n", "{identity:?} {outcome}");
        }
    }
}

/// Listeners under another number, in a child, in nobody's hands, and in those of a
/// process that was sent one.
const MOVED: &str = "
import os, socket
def reach(family, where):
    with socket.socket(family) as client:
        client.settimeout(5)
        return client.connect_ex(where)
for kind, family, at in [('tcp', socket.AF_INET, ('127.0.0.1', 0)), ('name', socket.AF_UNIX, '\\0own-%d' % os.getpid())]:
    server = socket.socket(family); server.bind(at); server.listen(16)
    where = server.getsockname()
    os.dup2(server.fileno(), 77); server.close()
    print(kind, 'moved', reach(family, where), flush=True)
    one, two = socket.socketpair()
    if os.fork() == 0:
        two.recv(1); os._exit(0)
    os.close(77)
    print(kind, 'child', reach(family, where), flush=True)
    one.send(b'x'); os.wait()
    print(kind, 'closed', reach(family, where), flush=True)
    if os.fork() == 0:
        server = socket.socket(family); server.bind(at); server.listen(16)
        socket.send_fds(two, [repr(server.getsockname()).encode()], [server.fileno()]); os._exit(0)
    where, kept, _, _ = socket.recv_fds(one, 99, 1); os.wait(); where = eval(where)
    print(kind, 'sent', reach(family, where), flush=True)
";

/// What shutdown(2) does to sockets of every kind, and says of what is none.
const SHUT: &str = "
import errno, os, socket
one, two = socket.socketpair(); one.shutdown(socket.SHUT_RDWR); print('pair', two.recv(1))
server = socket.socket(); server.bind(('127.0.0.1', 0)); server.listen(4)
client = socket.create_connection(server.getsockname()); there, _ = server.accept()
there.shutdown(socket.SHUT_RDWR); print('tcp', client.recv(1))
server.shutdown(socket.SHUT_RDWR)
def failed(name, call):
    try: call()
    except OSError as error: print(name, error.errno)
failed('accept', server.accept)
failed('again', lambda: server.shutdown(socket.SHUT_RDWR))
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
for name, number in (('file', os.open('/dev/null', 0)), ('none', 999)):
    libc.shutdown(number, 2); print(name, ctypes.get_errno())
";
