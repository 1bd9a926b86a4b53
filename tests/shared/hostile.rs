//! Launchers that break the contract, and gateways that are none.

use std::io::IoSlice;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use nix::sys::socket::{
    AddressFamily, Backlog, ControlMessage, MsgFlags, SockFlag, SockType, UnixAddr, accept4, bind,
    connect, listen, recv, sendmsg, setsockopt, socket, sockopt,
};
use nix::sys::time::TimeVal;
use outgate_harness::origin::Origin;
use outgate_harness::{Identity, audit, eventually, lab_tests};

use crate::gate::{Gate, Plan, curl, python};

/// A connection to the socket of a gateway.
pub(crate) fn enter(path: &Path) -> nix::Result<OwnedFd> {
    let flags = SockFlag::SOCK_CLOEXEC;
    let socket = socket(AddressFamily::Unix, SockType::SeqPacket, flags, None)?;
    setsockopt(&socket, sockopt::ReceiveTimeout, &TimeVal::new(15, 0))?;
    connect(socket.as_raw_fd(), &UnixAddr::new(path)?)?;
    Ok(socket)
}

fn say(socket: &OwnedFd, bytes: &[u8], descriptors: &[RawFd]) {
    let rights = [ControlMessage::ScmRights(descriptors)];
    let control = if descriptors.is_empty() {
        &[][..]
    } else {
        &rights
    };
    let flags = MsgFlags::MSG_NOSIGNAL;
    sendmsg::<()>(
        socket.as_raw_fd(),
        &[IoSlice::new(bytes)],
        control,
        flags,
        None,
    )
    .ok();
}

/// What comes until the other side closes, which must be soon.
fn heard(socket: &OwnedFd) -> String {
    let mut all = Vec::new();
    let mut buffer = vec![0; 65536];
    loop {
        match recv(socket.as_raw_fd(), &mut buffer, MsgFlags::empty()) {
            Ok(0) | Err(nix::errno::Errno::ECONNRESET) => break,
            Ok(count) => all.extend_from_slice(&buffer[..count]),
            Err(error) => panic!("the gateway keeps the connection: {error}"),
        }
    }
    String::from_utf8_lossy(&all).into_owned()
}

fn length(bytes: &[u8]) -> [u8; 4] {
    u32::try_from(bytes.len())
        .expect("a short text")
        .to_le_bytes()
}

/// A frame: kind, length, id, body.
fn frame(kind: u16, body: &[u8]) -> Vec<u8> {
    let mut bytes = kind.to_le_bytes().to_vec();
    bytes.extend([0, 0]);
    bytes.extend(length(body));
    bytes.extend(0_u64.to_le_bytes());
    bytes.extend(body);
    bytes
}

fn text(text: &str) -> Vec<u8> {
    let mut bytes = length(text.as_bytes()).to_vec();
    bytes.extend(text.as_bytes());
    bytes
}

fn hello(protocol: u16, build: &str, pid: u32) -> Vec<u8> {
    let mut body = protocol.to_le_bytes().to_vec();
    body.extend(text(build));
    body.extend(text("liar"));
    body.extend(pid.to_le_bytes());
    frame(1, &body)
}

fn source(index: u32, chunk: usize) -> Vec<u8> {
    let mut body = index.to_le_bytes().to_vec();
    body.push(1);
    body.extend(text("p"));
    body.extend(text(&"#".repeat(chunk)));
    frame(2, &body)
}

fn begin() -> Vec<u8> {
    let texts = ["/home/liar", "/w", "", "liar"];
    let mut body: Vec<u8> = texts.iter().flat_map(|part| text(part)).collect();
    // Nobody is asked, and no question stays.
    body.extend([0_u32; 2].map(u32::to_le_bytes).concat());
    frame(3, &body)
}

/// The longest time of an account that is barred for its few first times, and some.
const BARRED_TIME: Duration = Duration::from_secs(40);

const BUILD: &str = env!("CARGO_PKG_VERSION");
/// The protocol's number, as its crate has it.
const PROTOCOL: u16 = 12;

/// A session with nothing to say; what the gateway answered.
pub(crate) fn registered(socket: &OwnedFd) -> Vec<u8> {
    say(socket, &hello(PROTOCOL, BUILD, std::process::id()), &[]);
    say(socket, &begin(), &[]);
    let mut buffer = vec![0; 65536];
    let count = recv(socket.as_raw_fd(), &mut buffer, MsgFlags::empty()).unwrap_or(0);
    buffer.truncate(count);
    buffer
}

/// What is sent without end.
#[derive(Debug, Clone, Copy)]
enum Many {
    Changes,
    Text,
}

/// Enters a gateway and sends it sockets whose close(2) waits for 20 s each, so that its own
/// are the last of them.
const WAITS: &str = "\
import array,fcntl,os,socket,struct,sys,termios,time
l=socket.socket(); l.bind(('127.0.0.1',0)); l.listen(200)
def unread(c):
    room=array.array('i',[0]); fcntl.ioctl(c.fileno(),termios.TIOCOUTQ,room); return room[0]
def waits():
    a=socket.socket(); a.setsockopt(socket.SOL_SOCKET,socket.SO_SNDBUF,4096)
    a.connect(l.getsockname()); a.setblocking(False)
    full=0
    # Until some of it stays unsent.
    while full<40:
        try: a.send(b'x'*65536); full=0
        except BlockingIOError: full=full+1 if unread(a)>0 else 0; time.sleep(.005)
    a.setsockopt(socket.SOL_SOCKET,socket.SO_LINGER,struct.pack('ii',1,20))
    return a
if os.fork()==0:
    for _ in range(4):
        c=socket.socket(socket.AF_UNIX,socket.SOCK_SEQPACKET); c.settimeout(5); c.connect(sys.argv[1])
        fds=[waits() for _ in range(3)]
        socket.send_fds(c,[bytes.fromhex(sys.argv[2])],[f.fileno() for f in fds])
        print('sent',flush=True)
    # One that ends waits for no socket.
    os.kill(os.getpid(),9)
os.wait(); print('over',flush=True)
# Their peers are this one's.
sys.stdin.read()
";

lab_tests! {
    fn a_wrong_descriptor_ends_its_session_and_bars_nobody_for_long(lab) {
        let _origin = Origin::start(8080);
        let gate = Gate::start(lab, Identity::Own, &Plan::new(&[
            "-a", "http://a.example:8080", "--resolve", "a.example=192.0.2.1",
        ]));
        // What no launcher sends: a file, a directory, a pipe, and several at once.
        let file = std::fs::File::open("/proc/self/exe").expect("a file");
        let folder = std::fs::File::open("/").expect("a directory");
        let (pipe, _other) = nix::unistd::pipe().expect("a pipe");
        let numbers = [file.as_raw_fd(), folder.as_raw_fd(), pipe.as_raw_fd()];
        for descriptors in [&numbers[..1], &numbers[1..2], &numbers[2..], &numbers[..]] {
            let socket = enter(&gate.socket).expect("a gateway");
            say(&socket, &hello(PROTOCOL, BUILD, 1), descriptors);
            // Closed without a word, or refused with one while the account is barred.
            let words = heard(&socket);
            assert!(words.is_empty() || words.contains("neither a socket nor a path"), "{words}");
        }
        // The same account is served again, soon.
        let mut last = None;
        let served = eventually(BARRED_TIME, || {
            let outcome = gate.sandbox(lab, Identity::Own).run(&curl("http://a.example:8080/", 20));
            let served = outcome.code == Some(0);
            last = Some(outcome);
            served
        });
        assert!(served, "{}", last.expect("a run"));
    }

    fn a_descriptor_that_waits_to_be_closed_delays_nobody(lab) {
        let _origin = Origin::start(8080);
        let gate = Gate::start(lab, Identity::Own, &Plan::new(&[
            "-a", "http://a.example:8080", "--resolve", "a.example=192.0.2.1",
        ]));
        let all = [gate.server(), gate.front()];
        let signal = |signal| for pid in all {
            nix::sys::signal::kill(pid, signal).expect("a gateway");
        };
        let hello: Vec<String> = hello(PROTOCOL, BUILD, 1).iter().map(|byte| format!("{byte:02x}")).collect();
        let hello = hello.concat();
        let socket = gate.socket.to_string_lossy().into_owned();
        // What is sent while the gateway stands still is its alone by the time it goes on.
        signal(nix::sys::signal::Signal::SIGSTOP);
        let words = ["/usr/bin/python3", "-c", WAITS, &socket, &hello];
        let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
        let sends = lab.start_bare(*Identity::all().last().expect("an account"), &words);
        sends.wait_for_count("sent\n", 4);
        sends.wait_for("over");
        signal(nix::sys::signal::Signal::SIGCONT);
        let outcome = gate.sandbox(lab, Identity::Own).run(&curl("http://a.example:8080/", 20));
        assert!(outcome.stdout.starts_with("200"), "{outcome}");
        assert!(outcome.elapsed < Duration::from_secs(6), "{outcome}");
        sends.finish();
    }

    fn what_breaks_the_contract_is_closed_and_harms_nobody(lab) {
        let _origin = Origin::start(8080);
        let gate = Gate::start(lab, Identity::Own, &Plan::new(&[
            "-a", "http://a.example:8080", "--resolve", "a.example=192.0.2.1",
        ]));
        let path = &gate.socket;
        for (bytes, descriptors) in [
            (b"garbage".to_vec(), 0),
            (vec![0xff; 60 * 1024], 0),
            (vec![0; 100 * 1024], 0),
            (hello(PROTOCOL, BUILD, 1), 1),
            (hello(PROTOCOL, BUILD, 1), 200),
            // Where records go, say only those who start a gateway.
            (frame(9, &[&[1], &text("/tmp/liar")[..]].concat()), 0),
            (begin(), 0),
            (frame(5, b""), 2),
            (frame(101, b""), 0),
        ] {
            let socket = enter(path).expect("a gateway");
            let numbers = vec![socket.as_raw_fd(); descriptors];
            say(&socket, &bytes, &numbers);
            assert_eq!(heard(&socket), "", "{} bytes, {descriptors} descriptors", bytes.len());
        }
        for (protocol, build) in [(PROTOCOL + 1, BUILD), (PROTOCOL, "0.0.0")] {
            let socket = enter(path).expect("a gateway");
            say(&socket, &hello(protocol, build, 1), &[]);
            say(&socket, &begin(), &[]);
            assert!(heard(&socket).contains("different builds"), "{protocol} {build}");
        }
        // Policy text beyond the limit of one sandbox.
        let socket = enter(path).expect("a gateway");
        say(&socket, &hello(PROTOCOL, BUILD, 1), &[]);
        for _ in 0..20 {
            say(&socket, &source(0, 40 * 1024), &[]);
        }
        assert_eq!(heard(&socket), "");
        // Opened in order, then more changes than can wait, and text beyond the limit.
        for many in [Many::Changes, Many::Text] {
            let socket = enter(path).expect("a gateway");
            say(&socket, &hello(PROTOCOL, BUILD, 1), &[]);
            say(&socket, &begin(), &[]);
            for number in 0..2000_u32 {
                match many {
                    Many::Changes => say(&socket, &frame(10, &length(b"")), &[]),
                    Many::Text => say(&socket, &source(number / 20, 40 * 1024), &[]),
                }
            }
            heard(&socket);
        }
        // Opened in order, then nonsense: the record says whose it was.
        let socket = enter(path).expect("a gateway");
        say(&socket, &hello(PROTOCOL, BUILD, 1), &[]);
        say(&socket, &begin(), &[]);
        say(&socket, b"nonsense", &[]);
        heard(&socket);
        let outcome = gate.sandbox(lab, Identity::Own).run(&curl("http://a.example:8080/", 20));
        assert!(outcome.stdout.starts_with("200"), "{outcome}");
        let records = gate.records();
        let liar: Vec<_> = records.iter().filter(|record| audit::text(record, "sandbox") == "liar").collect();
        let ended = liar.last().expect("a record");
        assert!(audit::text(ended, "detail").contains("invalid frame"), "{ended}");
        for end in ["more changes of the policy than the limit", "policy text over its limit"] {
            assert!(liar.iter().any(|record| audit::text(record, "detail").contains(end)), "{end}");
        }
        // The pid is the kernel's, not what was said.
        let own = format!("(launcher {})", std::process::id());
        assert!(audit::text(liar[0], "detail").contains(&own), "{}", liar[0]);
    }

    fn files_in_the_place_of_sockets_end_the_service_for_their_user_alone(lab) {
        let _origin = Origin::start(8080);
        let gate = Gate::start(lab, Identity::Own, &Plan::new(&[
            "-a", "http://a.example:8080", "--resolve", "a.example=192.0.2.1",
        ]));
        let line = curl("http://a.example:8080/", 20);
        let outcome = gate.sandbox(lab, Identity::Own).run(&line);
        assert!(outcome.stdout.starts_with("200"), "{outcome}");
        // A file whose closing may never end, for all the gateway knows.
        let file = std::fs::File::open("/dev/null").expect("a file");
        let socket = enter(&gate.socket).expect("a gateway");
        say(&socket, &hello(PROTOCOL, BUILD, 1), &[]);
        say(&socket, &begin(), &[file.as_raw_fd()]);
        assert_eq!(heard(&socket), "");
        let outcome = gate.sandbox(lab, Identity::Own).run(&line);
        assert_eq!(outcome.code, Some(125), "{outcome}");
        assert!(outcome.stderr.contains("no new sandbox of this user for"), "{outcome}");
        if Identity::all().len() > 1 {
            let outcome = gate.sandbox(lab, Identity::Nobody).run(&line);
            assert!(outcome.stdout.starts_with("200"), "{outcome}");
        }
    }

    fn idle_and_flooding_connections_leave_room_for_others(lab) {
        let _origin = Origin::start(8080);
        let gate = Gate::start(lab, Identity::Own, &Plan::new(&[
            "-a", "http://a.example:8080", "--resolve", "a.example=192.0.2.1",
        ]));
        let path = gate.socket.clone();
        // Silent ones hold places of this user only, and not for long.
        let silent: Vec<OwnedFd> = (0..600).filter_map(|_| enter(&path).ok()).collect();
        let other = *Identity::all().last().expect("an account");
        if other != Identity::Own {
            let outcome = gate.sandbox(lab, other).run(&curl("http://a.example:8080/", 20));
            assert!(outcome.stdout.starts_with("200"), "{outcome}");
        }
        drop(silent);
        let flood = std::thread::spawn(move || {
            for number in 0..3000 {
                if let Ok(socket) = enter(&path) {
                    say(&socket, &hello(PROTOCOL, BUILD, number), &[]);
                    say(&socket, &source(0, 100), &[]);
                }
            }
        });
        for _ in 0..5 {
            let outcome = gate.sandbox(lab, other).run(&curl("http://a.example:8080/", 20));
            assert!(outcome.stdout.starts_with("200"), "{outcome}");
            assert!(outcome.elapsed < Duration::from_secs(15), "{outcome}");
        }
        flood.join().expect("the flood ends");
        assert_eq!(gate.end().code, Some(0));
    }

    fn a_full_queue_is_waited_for(lab) {
        // Of one user no more are served.
        if Identity::all().len() < 2 {
            return outgate_harness::skip("one account");
        }
        let _origin = Origin::start(8080);
        let gate = Gate::start(lab, Identity::Own, &Plan::new(&[
            "-a", "http://a.example:8080", "--resolve", "a.example=192.0.2.1",
        ]));
        let all = [gate.server(), gate.front()];
        for pid in all {
            nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGSTOP).expect("a gateway");
        }
        // Nobody is let in, until the queue is full.
        let mut waiting = Vec::new();
        loop {
            let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
            let socket = socket(AddressFamily::Unix, SockType::SeqPacket, flags, None).expect("a socket");
            let path = UnixAddr::new(&gate.socket).expect("a path");
            match connect(socket.as_raw_fd(), &path) {
                Ok(()) => waiting.push(socket),
                Err(error) => break assert_eq!(error, nix::errno::Errno::EAGAIN),
            }
            assert!(waiting.len() < 100_000, "a queue without end");
        }
        let running = gate.sandbox(lab, Identity::Nobody).start(&curl("http://a.example:8080/", 20));
        // The launcher is there, and waits in connect(2).
        let waits = || {
            let stack = std::fs::read_to_string(format!("/proc/{}/wchan", running.pid()));
            stack.is_ok_and(|place| place.contains("unix_wait_for_peer"))
        };
        eventually(Duration::from_secs(2), waits);
        drop(waiting);
        for pid in all {
            nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGCONT).expect("a gateway");
        }
        let outcome = running.finish();
        assert!(outcome.stdout.starts_with("200"), "{outcome}");
    }

    fn a_gateway_that_is_none_learns_nothing(lab) {
        if Identity::all().len() < 2 {
            return outgate_harness::skip("one account");
        }
        let folder = lab.folder("fake", Identity::Nobody);
        let path = folder.join("gate");
        // Made by root's file, but another user listens: the file may lie.
        let fake = lab.start_bare(Identity::Nobody, &python(&format!(
            "import socket,os\ns=socket.socket(socket.AF_UNIX,socket.SOCK_SEQPACKET)\n\
             s.bind({path:?}); os.chmod({path:?},0o777); s.listen(9); print('listening',flush=True)\n\
             c,_=s.accept(); print('heard', len(c.recv(99999)), 'end', flush=True)"
        )));
        fake.wait_for("listening");
        nix::unistd::chown(&path, Some(0.into()), Some(0.into())).expect("chown");
        let outcome = lab
            .sandbox(Identity::Own)
            .option("--gateway", &path.to_string_lossy())
            .run(&["true".to_owned()]);
        assert_eq!(outcome.code, Some(125), "{outcome}");
        assert!(outcome.stderr.contains("user 65534 listens there"), "{outcome}");
        let said = fake.wait_for("end");
        assert!(said.contains("heard 0 end"), "{said}");
        fake.finish();
    }

    fn no_command_can_play_a_gateway(lab) {
        let gate = Gate::start(lab, Identity::Own, &Plan::new(&["-a", "http://a.example"]));
        for identity in Identity::all() {
            let play = python(
                "import socket\n\
                 for name in ('fake','\\0outgate-run-0-1-a'):\n\
                 \x20 s=socket.socket(socket.AF_UNIX,socket.SOCK_SEQPACKET)\n\
                 \x20 s.bind(name)\n\
                 \x20 try: s.listen(9); print('listens')\n\
                 \x20 except OSError as e: print('refused', e.errno)",
            );
            let outcome = gate.sandbox(lab, identity).run(&play);
            assert_eq!(outcome.stdout, "refused 13\nrefused 13\n", "{outcome}");
            // Nor speak with one.
            let enter = python(&format!(
                "import socket\ns=socket.socket(socket.AF_UNIX,socket.SOCK_SEQPACKET)\n\
                 try: s.connect({:?}); print('entered')\n\
                 except OSError as e: print('refused', e.errno)",
                gate.socket.display().to_string()
            ));
            let outcome = gate.sandbox(lab, identity).run(&enter);
            assert_eq!(outcome.stdout, "refused 111\n", "{outcome}");
        }
    }

    fn a_gateway_of_another_build_is_refused(lab) {
        let path = lab.folder("other", Identity::Own).join("gate");
        let listener = socket(AddressFamily::Unix, SockType::SeqPacket, SockFlag::SOCK_CLOEXEC, None).expect("a socket");
        bind(listener.as_raw_fd(), &UnixAddr::new(&path).expect("a path")).expect("bind");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o777)).expect("a mode");
        listen(&listener, Backlog::new(9).expect("a backlog")).expect("listen");
        let mut ready = 1_u64.to_le_bytes().to_vec();
        for part in ["0.0.0", "", "", ""] {
            ready.extend(text(part));
        }
        let answers = std::thread::spawn(move || {
            let accepted = accept4(listener.as_raw_fd(), SockFlag::SOCK_CLOEXEC).expect("a launcher");
            nix::sys::socket::send(accepted, &frame(101, &ready), MsgFlags::empty()).expect("a launcher");
            // Until the launcher hangs up.
            recv(accepted, &mut [0; 1], MsgFlags::empty()).ok();
            while recv(accepted, &mut [0; 1], MsgFlags::empty()).is_ok_and(|count| count > 0) {}
        });
        let outcome = lab
            .sandbox(Identity::Own)
            .option("--gateway", &path.to_string_lossy())
            .run(&["true".to_owned()]);
        assert_eq!(outcome.code, Some(125), "{outcome}");
        assert!(outcome.stderr.contains("different builds"), "{outcome}");
        answers.join().expect("it answered");
    }
}
