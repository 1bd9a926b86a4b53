//! Connections, Unix sockets and ports to listen on that no rule decides: asked for as requests
//! are, held no longer than clients wait, and never at the cost of anybody else.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixListener;
use std::process::{Command, Stdio};
use std::time::Duration;

use outgate_harness::origin::Origin;
use outgate_harness::{Identity, Lab, Running, Sandbox, lab_tests};

use crate::gate::python;

/// `outgate approve agent`, of the tests' account.
fn approve(lab: &Lab) -> Running {
    let mut command = Command::new(lab.tools.programs.join("outgate"));
    command
        .args(["approve", "agent", "--plain"])
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("HOME", lab.folder("home", Identity::Own))
        .current_dir(lab.folder("elsewhere", Identity::Own))
        .stdin(Stdio::piped());
    Running::start(&mut command, Duration::from_mins(2))
}

fn asking<'lab>(lab: &'lab Lab, ask: &'static str) -> Sandbox<'lab> {
    lab.sandbox(Identity::Own)
        .flag(ask)
        .option("--name", "agent")
        .deny("tcp://b.example:5435")
        .allow("http://a.example:8080")
        .pin("a.example=192.0.2.1")
        .pin("b.example=192.0.2.2")
        .pin("c.example=192.0.2.3")
        .with_input()
        .limit(Duration::from_mins(2))
}

/// Says how each thing it reads went, and after how many seconds.
const TRIES: &str = "\
import errno,os,socket,select,sys,threading,time
def ask(host,port): return ('GET /x HTTP/1.1\\r\\nHost: %s:%s\\r\\nConnection: close\\r\\n\\r\\n'%(host,port)).encode()
def blocking(host,port):
    s=socket.socket(); s.connect((host,int(port))); s.sendall(ask(host,port)); return s.recv(12).decode() or 'closed'
def later(host,port):
    ip=socket.gethostbyname(host); s=socket.socket(); s.setblocking(False); t=time.time()
    n=s.connect_ex((ip,int(port))); took=time.time()-t
    if n not in (0,errno.EINPROGRESS): return 'at once '+errno.errorcode[n]
    assert took<2, took
    select.select([],[s],[],20); n=s.getsockopt(socket.SOL_SOCKET,socket.SO_ERROR)
    if n: return errno.errorcode[n]
    s.sendall(ask(host,port)); select.select([s],[],[],20); return s.recv(12).decode() or 'closed'
def unix(path,_):
    s=socket.socket(socket.AF_UNIX); s.connect(path); s.sendall(b'hello'); return s.recv(12).decode() or 'closed'
def listen(host,port):
    s=socket.socket(); s.bind((host,int(port))); s.listen(1); return 'listens'
def go(word,what,a,b):
    t=time.time()
    try: said=globals()[what](a,b)
    except OSError as e: said=errno.errorcode.get(e.errno,str(e))
    t=time.time()-t
    print(word,said,'soon' if t<2 else 'in time' if t<9.9 else 'too late',flush=True)
print('here',flush=True)
for line in sys.stdin: threading.Thread(target=go,args=line.split()).start()
";

lab_tests! {
    fn a_connection_that_no_rule_decides_waits_for_a_person(lab) {
        let origins: Vec<Origin> = [8080, 5432, 5433, 5434].into_iter().map(Origin::start).collect();
        let mut run = asking(lab, "--ask=40s").start(&python(TRIES));
        run.wait_for("here");
        // Nobody there: at once, whether its caller waits or not.
        run.say("1 blocking b.example 5432\n2 later b.example 5432\n");
        run.wait_for("1 ECONNREFUSED soon");
        run.wait_for("2 at once ECONNREFUSED soon");
        let mut person = approve(lab);
        person.wait_for("watching agent");
        run.say("3 blocking b.example 5432\n4 later b.example 5433\n");
        let said = person.wait_for("connection to b.example:5432\n");
        assert!(said.contains("narrow tcp://b.example:5432") || !said.contains("narrow"), "{said}");
        let said = person.wait_for("narrow tcp://b.example:5433");
        assert!(!said.contains("host  "), "{said}");
        assert_eq!(origins.iter().map(Origin::connections).sum::<usize>(), 0);
        // Nobody else waits.
        run.say("5 blocking a.example 8080\n");
        run.wait_for("5 HTTP/1.1 200 soon");
        let number = |person: &Running, words: &str| {
            let said = person.output();
            let found = said.lines().find_map(|line| line.split_once(": agent asks for ").filter(|(_, asks)| *asks == words));
            found.unwrap_or_else(|| panic!("no {words}: {said}")).0.to_owned()
        };
        let (first, second) = (number(&person, "connection to b.example:5432"), number(&person, "connection to b.example:5433"));
        // A connection is no request: it cannot be let through once.
        person.say(&format!("{first} once\n"));
        person.wait_for("cannot be for one request");
        person.say(&format!("{first} run\n{second} 10m\n"));
        run.wait_for("3 HTTP/1.1 200");
        run.wait_for("4 HTTP/1.1 200");
        // Without an answer: denied before clients give up, and the question stays for who tries again.
        run.say("6 blocking b.example 5434\n7 later b.example 5434\n");
        run.wait_for("6 ECONNREFUSED in time");
        run.wait_for("7 closed in time");
        assert!(run.errors().contains("no rule allows it; asked, no answer yet; try again"), "{}", run.errors());
        let third = number(&person, "connection to b.example:5434");
        person.say(&format!("{third} run\n"));
        person.wait_for("granted `tcp://b.example:5434`");
        run.say("8 blocking b.example 5434\n9 later b.example 5434\n");
        run.wait_for("8 HTTP/1.1 200 soon");
        run.wait_for("9 HTTP/1.1 200 soon");
        // One no is enough.
        run.say("10 blocking b.example 5436\n");
        person.wait_for("connection to b.example:5436\n");
        let fourth = number(&person, "connection to b.example:5436");
        person.say(&format!("{fourth} deny\n"));
        run.wait_for("10 ECONNREFUSED");
        run.say("11 blocking b.example 5436\n12 later b.example 5436\n");
        run.wait_for("11 ECONNREFUSED soon");
        run.wait_for("12 at once ECONNREFUSED soon");
        // What is denied, inside, or this machine is never asked for.
        for (index, to) in ["b.example 5435", "10.0.0.1 5432", "169.254.169.254 5432", "127.0.0.1 5439", "100.64.0.1 22"].iter().enumerate() {
            run.say(&format!("n{index} blocking {to}\nm{index} later {to}\n"));
            run.wait_for(&format!("n{index} ECONNREFUSED soon"));
            run.wait_for(&format!("m{index} at once ECONNREFUSED soon"));
        }
        let asked = person.output();
        for never in ["5435", "10.0.0.1", "169.254", "127.0.0.1", "100.64"] {
            assert!(!asked.contains(never), "{never}: {asked}");
        }
        run.end_input();
        run.finish();
        person.finish();
    }

    fn a_unix_socket_and_a_port_that_no_rule_decides_wait_for_a_person(lab) {
        let path = lab.folder("sockets", Identity::Own).join("s.sock");
        let listener = UnixListener::bind(&path).expect("a socket");
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.expect("a connection");
                let mut bytes = [0; 5];
                stream.read_exact(&mut bytes).expect("a word");
                stream.write_all(&bytes).expect("an answer");
            }
        });
        let mut run = asking(lab, "--ask=40s").start(&python(TRIES));
        run.wait_for("here");
        let mut person = approve(lab);
        person.wait_for("watching agent");
        run.say(&format!("1 unix {} -\n", path.display()));
        let said = person.wait_for("1: agent asks for connection to unix://");
        assert!(!said.contains("host  "), "{said}");
        person.say("1 run\n");
        run.wait_for("1 hello");
        run.say("2 listen 192.0.2.2 8090\n");
        person.wait_for("narrow listen 192.0.2.2:8090\n");
        person.say("2 run\n");
        let said = run.wait_for("2 ");
        assert!(said.contains("2 listens"), "{said} {}", run.errors());
        person.wait_for("granted `listen 192.0.2.2:8090`");
        run.say("3 listen 192.0.2.2 8091\n");
        person.wait_for("narrow listen 192.0.2.2:8091\n");
        person.say("3 deny\n");
        run.wait_for("3 EACCES");
        run.end_input();
        run.finish();
        person.finish();
    }

    fn ten_thousand_calls_are_few_questions_and_slow_nobody(lab) {
        let _origin = Origin::start(8080);
        let flood = "\
import errno,os,socket,sys,threading,time
print('here',flush=True); sys.stdin.readline()
ip={h:socket.gethostbyname(h+'.example') for h in 'abc'}
count=[0]
def same(host,port):
    end=time.time()+4
    while time.time()<end:
        s=socket.socket(); s.setblocking(False); s.connect_ex((ip[host],port)); count[0]+=1; s.close()
def many():
    end=time.time()+4; n=0
    while time.time()<end:
        n+=1; s=socket.socket(); s.setblocking(False); s.connect_ex((ip['b'],10000+n%20000)); count[0]+=1; s.close()
def held():
    s=socket.socket()
    try: s.connect((ip['b'],5432))
    except OSError: pass
all=[threading.Thread(target=same,args=('b',5432)) for n in range(4)]+[threading.Thread(target=many) for n in range(4)]+[threading.Thread(target=held) for n in range(300)]
for one in all: one.start()
time.sleep(1)
for n in range(5):
    t=time.time(); s=socket.create_connection(('a.example',8080)); s.settimeout(10)
    s.sendall(b'GET /x HTTP/1.1\\r\\nHost: a.example:8080\\r\\nConnection: close\\r\\n\\r\\n'); said=s.recv(12)
    print('allowed',said,'soon' if time.time()-t<2 else 'late %f'%(time.time()-t),flush=True)
s=socket.socket(); t=time.time()
try: s.connect((ip['c'],5432)); print('other made',flush=True)
except OSError as e: print('other',errno.errorcode[e.errno],flush=True)
for one in all: one.join()
print('count',count[0],flush=True); print('over',flush=True)
";
        let _other = Origin::start(5432);
        let mut run = asking(lab, "--ask=20s").start(&python(flood));
        run.wait_for("here");
        let mut person = approve(lab);
        person.wait_for("watching agent");
        run.say("go\n");
        run.wait_for_count("allowed b'HTTP/1.1 200' soon", 5);
        let said = person.wait_for("connection to c.example:5432\n");
        let number = said.lines().find_map(|line| line.split_once(": agent asks for connection to c.example:5432")).expect("a question").0.to_owned();
        person.say(&format!("{number} run\n"));
        run.wait_for("other made");
        let said = run.wait_for("over");
        let count: usize = said.split("count ").nth(1).and_then(|rest| rest.lines().next()).and_then(|text| text.parse().ok()).expect("a count");
        assert!(count > 2000, "{count}");
        let asked = person.output();
        let of_b = asked.matches("asks for connection to b.example:").count();
        // Those that nobody waits for any more leave room for others of the same host.
        assert!((1..=40).contains(&of_b), "{of_b}: {asked}");
        run.end_input();
        let outcome = run.finish();
        assert_eq!(outcome.code, Some(0), "{outcome}");
        person.finish();
        fs::metadata("/proc/self").expect("this machine lives");
    }
}
