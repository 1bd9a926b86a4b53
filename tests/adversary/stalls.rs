//! A connection that cannot finish must not delay anybody else's: full
//! backlogs, black holes, full Unix sockets, floods.

use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::process::Command;
use std::time::Duration;

use nix::sys::socket::{
    AddressFamily, Backlog, SockFlag, SockType, SockaddrIn, UnixAddr, bind, getsockname, listen,
    socket,
};
use outgate_harness::attack::{Expected, check, is_refused, leaks_bare};
use outgate_harness::{Identity, Lab, Witness, lab_tests};

/// Longest time another process's connect may take: ten times the promise of
/// 50 ms, because machines that test are busy.
const OTHERS_US_MAX: i64 = 500_000;

/// Sends descriptors of sockets whose close(2) waits for 20 s each to whoever relays, so that
/// theirs are the last, and asks then how long another connection takes, in milliseconds.
const SENDS_ALONG: &str = "\
import array,fcntl,os,socket,struct,sys,termios,threading,time
l=socket.socket(); l.bind(('127.0.0.1',0)); l.listen(200)
def unread(c):
    room=array.array('i',[0]); fcntl.ioctl(c.fileno(),termios.TIOCOUTQ,room); return room[0]
def waits(seconds):
    a=socket.socket(); a.setsockopt(socket.SOL_SOCKET,socket.SO_SNDBUF,4096)
    a.connect(l.getsockname()); a.setblocking(False)
    full=0
    # Until some of it stays unsent.
    while full<40:
        try: a.send(b'x'*65536); full=0
        except BlockingIOError: full=full+1 if unread(a)>0 else 0; time.sleep(.005)
    a.setsockopt(socket.SOL_SOCKET,socket.SO_LINGER,struct.pack('ii',1,seconds))
    return a
def took(call):
    began=time.monotonic(); call(); return time.monotonic()-began
bare=waits(1); print('bare close %.1f'%took(bare.close),flush=True)
def connect():
    c=socket.socket(socket.AF_UNIX); c.settimeout(60); c.connect(sys.argv[1]); return c
def echo():
    c=connect(); c.sendall(b'ping'); assert c.recv(100)==b'ping'; c.close()
echo()
def drain(c):
    try:
        while c.recv(65536): pass
    except OSError: pass
full=[]
for _ in range(3):
    c=connect(); c.setblocking(False); stuck=0
    while stuck<4:
        try: c.send(b'y'*4096)
        except BlockingIOError: break
        time.sleep(.002); stuck=stuck+1 if unread(c)>16000 else 0
    c.settimeout(5); full.append(c)
    if os.fork()==0:
        fds=[waits(20) for _ in range(3)]
        try: socket.send_fds(c,[b'along'],[f.fileno() for f in fds])
        except PermissionError: print('refused',flush=True)
        except TimeoutError: print('full',flush=True)
        # One that ends waits for no socket.
        os.kill(os.getpid(),9)
    os.wait()
for c in full: c.settimeout(60); threading.Thread(target=drain,args=(c,),daemon=True).start()
time.sleep(.1)
print('others=%d'%(1000*took(echo)),flush=True)
os._exit(0)
";

lab_tests! {
    fn row_52_a_bound_device_does_not_stall(lab) {
        let witness = Witness::start(&lab.directory);
        let probe = ["device", &witness.address(), "lo"];
        leaks_bare(lab, &witness, &probe);
        let expected: [Expected<'_>; 2] = [("bindtodevice", &["EPERM"]), ("bindtoifindex", &["EPERM"])];
        is_refused(lab, &witness, &probe, &expected);
    }

    fn row_53_a_full_unix_backlog_delays_nobody(lab) {
        let path = lab.directory.join("full.sock");
        let (kind, flags) = (SockType::Stream, SockFlag::SOCK_CLOEXEC);
        let full = socket(AddressFamily::Unix, kind, flags, None).expect("a socket");
        bind(full.as_raw_fd(), &UnixAddr::new(&path).expect("a path")).expect("bind");
        listen(&full, Backlog::new(0).expect("a backlog")).expect("listen");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o777)).expect("a mode");
        let rule = format!("unix://{}", path.display());
        others_go_on(lab, &rule, &format!("unix:{}", path.display()));
    }

    fn what_is_sent_along_and_waits_to_be_closed_delays_nobody(lab) {
        let path = lab.directory.join("echo.sock");
        let listener = UnixListener::bind(&path).expect("a path");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o777)).expect("a mode");
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                std::thread::spawn(move || {
                    let mut other = stream.try_clone().expect("a copy");
                    std::io::copy(&mut stream, &mut other).ok();
                });
            }
        });
        let rule = format!("unix://{}", path.display());
        for identity in Identity::all() {
            let words = ["/usr/bin/python3", "-c", SENDS_ALONG, &path.to_string_lossy()];
            let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
            let outcome = lab.sandbox(identity).allow(&rule).run(&words);
            assert!(outcome.stdout.contains("bare close 1."), "{identity:?} {outcome}");
            let taken = outcome.number("others=");
            assert!((0..500).contains(&taken), "{identity:?} {outcome}");
        }
    }

    fn sandlock_n18_a_full_tcp_backlog_delays_nobody(lab) {
        let (_full, to) = full_backlog();
        others_go_on(lab, &format!("tcp://{to}"), &to);
    }

    fn a_crowd_that_waits_leaves_room_for_others(lab) {
        // More waiting calls than descriptors a process usually may have.
        let fast = Witness::start(&lab.directory);
        let (_full, slow) = full_backlog();
        for identity in Identity::all() {
            let sandbox = lab.sandbox(identity).allow(&format!("tcp://{slow}")).allow(&format!("tcp://{}", fast.address()));
            let outcome = sandbox.wrap(&["sh", "-c", "ulimit -Sn 256 && exec \"$@\"", "sh"])
                .probe(&["crowd", &slow, &fast.address(), "600"]);
            assert_eq!(outcome.number("crowd made="), 600, "{identity:?} {outcome}");
            check(&outcome, &[("beside", &["0"]), ("datagram", &["0"])], &format!("{identity:?}"));
            fast.assert_leaked("beside a crowd");
        }
    }

    fn a_black_hole_delays_nobody(lab) {
        if black_hole(Ipv4Addr::new(203, 0, 113, 0)) {
            others_go_on(lab, "tcp://203.0.113.7:5432", "203.0.113.7:5432");
        }
    }

    fn a_black_hole_behind_the_gateway_delays_nobody(lab) {
        if black_hole(Ipv4Addr::new(203, 0, 113, 0)) {
            others_go_on(lab, "http://203.0.113.7:8080", "203.0.113.7:8080");
        }
    }

    fn row_58_a_flood_is_fair_and_bounded(lab) {
        let origin = outgate_harness::origin::Origin::start(0);
        let to = format!("127.0.0.1:{}", origin.port());
        for identity in Identity::all() {
            let time = if outgate_harness::is_quick() { "1000" } else { "4000" };
            let run = lab.sandbox(identity).allow(&format!("tcp://{to}")).start_probe(&["flood", &to, "100", time]);
            let launcher = run.pid();
            run.wait_for("latency ");
            let peak = peak_kib(launcher);
            let outcome = run.finish();
            assert_eq!(outcome.number("answer="), 0, "{identity:?} {outcome}");
            assert!(outcome.number("max_us=") < 2_000_000, "{identity:?} {outcome}");
            assert!(peak < 64 << 10, "{identity:?}: the launcher grew to {peak} KiB");
        }
    }
}

/// A listener with room for one connection, and its address.
fn full_backlog() -> (OwnedFd, String) {
    let (kind, flags) = (SockType::Stream, SockFlag::SOCK_CLOEXEC);
    let full = socket(AddressFamily::Inet, kind, flags, None).expect("a socket");
    bind(full.as_raw_fd(), &SockaddrIn::new(127, 0, 0, 1, 0)).expect("bind");
    listen(&full, Backlog::new(0).expect("a backlog")).expect("listen");
    let at: SockaddrIn = getsockname(full.as_raw_fd()).expect("an address");
    (full, format!("127.0.0.1:{}", at.port()))
}

/// The most memory a process ever had resident, in KiB.
fn peak_kib(pid: i32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().strip_suffix(" kB")?.parse().ok())
        .unwrap_or(u64::MAX)
}

/// Routes a /24 to where packets vanish without an answer.
fn black_hole(network: Ipv4Addr) -> bool {
    let script = format!(
        "ip link add hole type veth peer name bottom && ip link set hole up && ip link set bottom up && \
         ip addr add 192.0.2.1/32 dev hole && \
         ip route add unicast {network}/24 dev hole src 192.0.2.1 table local && \
         ip neigh add 203.0.113.7 lladdr 02:00:00:00:00:07 dev hole"
    );
    let made = Command::new("sh")
        .args(["-c", &script])
        .output()
        .expect("sh");
    if !made.status.success() {
        outgate_harness::skip(&format!(
            "no black hole: {}",
            String::from_utf8_lossy(&made.stderr)
        ));
    }
    made.status.success()
}

/// One process blocks on `slow`, which `rule` allows, while another connects to
/// an allowed and to a denied place.
fn others_go_on(lab: &Lab, rule: &str, slow: &str) {
    let origin = outgate_harness::origin::Origin::start(0);
    let denied = Witness::start(&lab.directory);
    let fast = format!("127.0.0.1:{}", origin.port());
    for identity in Identity::all() {
        for (to, errno) in [(fast.clone(), 0), (denied.address(), 111)] {
            let sandbox = lab
                .sandbox(identity)
                .allow(rule)
                .allow(&format!("tcp://{fast}"));
            let outcome = sandbox
                .limit(Duration::from_secs(30))
                .probe(&["stall", slow, &to, "200"]);
            assert!(outcome.code.is_some(), "it ends: {outcome}");
            assert_eq!(outcome.number("answer="), errno, "{identity:?} {outcome}");
            assert!(
                outcome.number("max_us=") < OTHERS_US_MAX,
                "{identity:?} {to} {outcome}"
            );
        }
    }
    denied.assert_untouched("beside a stalled connection");
}
