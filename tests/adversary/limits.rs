//! What the kernel counts for all processes of a user together: a command that uses
//! up what it may leaves enough for the user's other programs, and for its own run.

use outgate_harness::{Identity, lab_tests};

lab_tests! {
    fn timers_of_a_command_leave_some_for_others(lab) {
        for identity in Identity::all() {
            let run = lab.sandbox(identity).start(&python(&format!("{TIMERS}\nprint('all', made(1 << 20) > 100, flush=True); time.sleep(60)")));
            run.wait_for("all True");
            let other = lab.start_bare(identity, &python(&format!("{TIMERS}\nprint('made', made(100))"))).finish();
            run.signal(nix::sys::signal::Signal::SIGTERM);
            let outcome = run.finish();
            assert_eq!(other.stdout, "made 100\n", "{identity:?} {other} {outcome}");
        }
    }

    fn descriptors_on_their_way_end_no_gateway(lab) {
        let origin = outgate_harness::origin::Origin::start(0);
        let at = format!("127.0.0.1:{}", origin.port());
        for identity in Identity::all() {
            let script = DESCRIPTORS.replace("AT", &at);
            let outcome = lab.sandbox(identity).allow(&format!("http://{at}")).run(&python(&script));
            assert_eq!(outcome.stdout, "before 200\nfull 109 True\nafter 200\n", "{identity:?} {outcome}");
            assert!(!outcome.stderr.contains("the gateway is gone"), "{identity:?} {outcome}");
        }
    }
}

fn python(script: &str) -> Vec<String> {
    ["/usr/bin/python3", "-c", script]
        .map(str::to_owned)
        .to_vec()
}

/// Timers, as many as there may be.
const TIMERS: &str = "
import ctypes, time
libc = ctypes.CDLL(None)
def made(most):
    timer = ctypes.c_void_p()
    for count in range(most):
        if libc.timer_create(1, None, ctypes.byref(timer)): return count
    return most
";

/// Descriptors sent and never received, as many as there may be.
const DESCRIPTORS: &str = "
import http.client, os, resource, socket
def request(when):
    connection = http.client.HTTPConnection('AT', timeout=20)
    connection.request('GET', '/')
    print(when, connection.getresponse().status, flush=True)
request('before')
_, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
null, pairs, sent = os.open('/dev/null', 0), [], 0
try:
    while True:
        pairs.append(socket.socketpair()); pairs[-1][0].setblocking(False)
        try:
            while True: socket.send_fds(pairs[-1][0], [b'x'], [null] * 250); sent += 250
        except BlockingIOError: pass
except OSError as error: print('full', error.errno, sent > 1000, flush=True)
request('after')
";
