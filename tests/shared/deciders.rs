//! `outgate run --ask-with`: a program of the user's answers what no rule decides, from
//! outside of the confinement; dead or silent it is a denial in words, and no command reaches
//! it, speaks for it or outlives it. Connections and calls that no rule decides are asked for
//! as requests are.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use outgate_harness::origin::Origin;
use outgate_harness::schema::Schema;
use outgate_harness::{Identity, Lab, Sandbox, eventually, lab_tests};

use crate::gate::{python, shell};

/// Asks for each URL it reads, one after the other, and says the status, or the words.
const ASKER: &str = "echo here; while read how url; do curl -sS -m 30 $how -w \" $url %{http_code}.\\n\" \"$url\" 2>&1; done; echo over";

/// Says what it was asked in a file, and answers by the end of what is asked.
const DECIDE: &str = "\
import json,os,sys
log=open(sys.argv[1],'a')
print(json.dumps({'pid':os.getpid(),'token':os.environ.get('USER_TOKEN'),'confined':os.environ.get('OUTGATE_DENIALS')}),file=log,flush=True)
for line in sys.stdin:
    asked=json.loads(line)
    end=asked['asks'].rsplit('/',1)[-1].rsplit(':',1)[-1]
    answer={'id':asked['id'],'answer':{'once':'once','run':'run','5433':'10m','5434':'run','s.sock':'run','8090':'run'}.get(end,'deny')}
    print(line.strip(),file=log,flush=True)
    print(json.dumps(answer),file=log,flush=True)
    print(json.dumps(answer),flush=True)
";

/// A decider of this account, and where it writes what it was asked.
fn decider(lab: &Lab, identity: Identity) -> (String, PathBuf) {
    let folder = lab.folder("decider", identity);
    let (program, log) = (folder.join("decide.py"), folder.join("asked.jsonl"));
    fs::write(&program, DECIDE).expect("a program");
    fs::write(&log, "").expect("a file");
    if identity == Identity::Nobody {
        let id = identity.uid();
        std::os::unix::fs::chown(&log, Some(id), Some(id)).expect("chown");
    }
    let command = format!("exec python3 {} {}", program.display(), log.display());
    (command, log)
}

fn asking<'lab>(lab: &'lab Lab, identity: Identity, with: &str) -> Sandbox<'lab> {
    lab.sandbox(identity)
        .option("--ask-with", with)
        .option("--name", "agent")
        .environment("USER_TOKEN", "of-the-user")
        .option("-d", "tcp://b.example:5435")
        .deny("http://b.example:8080/denied")
        .allow("http://a.example:8080")
        .pin("a.example=192.0.2.1")
        .pin("b.example=192.0.2.2")
        .with_input()
        .limit(Duration::from_mins(2))
}

fn lines(log: &Path) -> Vec<serde_json::Value> {
    let text = fs::read_to_string(log).expect("a log");
    text.lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect()
}

fn is_alive(pid: u64) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    !stat.is_empty() && !stat.contains(") Z ")
}

lab_tests! {
    fn a_program_of_the_user_answers_for_its_run_in_the_published_form(lab) {
        let origin = Origin::start(8080);
        for identity in Identity::all() {
            let (command, log) = decider(lab, identity);
            let mut run = asking(lab, identity, &command).start(&shell(ASKER));
            run.wait_for("here");
            run.say("-dvalue http://b.example:8080/once\n-s http://b.example:8080/once\n");
            run.wait_for_count("/once 200.", 2);
            run.say("-s http://b.example:8080/run\n-s http://b.example:8080/run\n-s http://b.example:8080/other\n");
            let said = run.wait_for("/other 403.");
            assert!(said.contains("no rule allows it; asked, and the answer was no"), "{said}");
            // What a rule denies, and what is inside, is never asked.
            run.say("-s http://b.example:8080/denied\n-s http://169.254.169.254/run\n-s http://10.0.0.1:8080/run\n");
            run.wait_for("10.0.0.1:8080/run 403.");
            run.end_input();
            let outcome = run.finish();
            assert!(outcome.stderr.contains("granted `POST http://b.example:8080/once` for one request (asked, --ask-with)"), "{outcome}");
            assert!(outcome.stderr.contains("/other was denied (asked, --ask-with)"), "{outcome}");
            let schema = Schema::new(&fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/configs/ask.schema.json")).expect("a schema"));
            let lines = lines(&log);
            let (first, rest) = lines.split_first().expect("a line");
            assert_eq!(first["token"], "of-the-user");
            assert!(first["confined"].is_null(), "{first}");
            let asked: Vec<_> = rest.iter().filter_map(|line| line["asks"].as_str()).collect();
            assert_eq!(asked, ["POST http://b.example:8080/once", "GET http://b.example:8080/once", "GET http://b.example:8080/run", "GET http://b.example:8080/other"]);
            for line in rest {
                assert_eq!(schema.faults(line), Vec::<String>::new(), "{line}");
            }
            // It ends with its run.
            let pid = first["pid"].as_u64().expect("a process");
            assert!(eventually(Duration::from_secs(5), || !is_alive(pid)), "{pid}");
        }
        assert!(!origin.arrivals().is_empty());
    }

    fn no_command_writes_the_program_that_answers(lab) {
        for identity in Identity::all() {
            let project = lab.folder("project of one", identity);
            let fifo = project.join("fifo");
            nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).expect("a fifo");
            fs::write(project.join("decide"), "#!/bin/sh\n").expect("a program");
            let place = project.display();
            for with in [
                "./decide".to_owned(),
                format!("exec \"{place}\"/decide"),
                format!("python3 '{place}/absent.py'"),
                // What a command of before may have left, to put a program in its place.
                format!("sh '{place}/fifo'"),
            ] {
                let run = lab.sandbox(identity).within(project.clone()).option("--ask-with", &with);
                let outcome = run.run(&["true".to_owned()]);
                assert_ne!(outcome.code, Some(0), "{with}: {outcome}");
                let said = "lies where the command may write";
                assert!(outcome.stderr.contains(said), "{with}: {outcome}");
            }
            // A program that takes what lies where it is started finds nothing of the command's.
            fs::write(project.join("json.py"), "open('taken','w')\n").expect("a module");
            let run = lab.sandbox(identity).within(project.clone());
            let run = run.option("--ask-with", "exec python3 -c 'import json'");
            let outcome = run.run(&["sleep", "2"].map(str::to_owned));
            assert_eq!(outcome.code, Some(0), "{outcome}");
            assert!(!project.join("taken").exists(), "{outcome}");
        }
    }

    fn a_program_that_is_dead_or_silent_is_a_denial_in_words(lab) {
        let _origin = Origin::start(8080);
        let url = "-s http://b.example:8080/run\n";
        // Ends at once, again and again.
        let mut run = asking(lab, Identity::Own, "exit 7").start(&shell(ASKER));
        run.wait_for("here");
        assert!(eventually(Duration::from_secs(20), || run.errors().contains("is not started any more: what no rule decides is denied")), "{}", run.errors());
        assert_eq!(run.errors().matches("ended (exit status: 7); started again (").count(), 3, "{}", run.errors());
        assert!(eventually(Duration::from_secs(20), || run.errors().contains("nobody answers for --ask-with any more")), "{}", run.errors());
        let before = Instant::now();
        run.say(url);
        let said = run.wait_for("/run 403.");
        assert!(said.contains("nobody is there to ask"), "{said}");
        assert!(before.elapsed() < Duration::from_secs(2));
        // Others go on.
        run.say("-s http://a.example:8080/x\n");
        run.wait_for("a.example:8080/x 200.");
        run.end_input();
        run.finish();
        // Neither reads nor says anything; says what is no answer, without end; answers others' questions.
        for silent in ["exec sleep 60", "yes", "yes '{\"id\":9,\"answer\":\"run\"}'", "yes '{\"id\":1,\"answer\":\"always\"}'", "tr '\\n' x < /dev/zero"] {
            let mut run = asking(lab, Identity::Own, silent).flag("--ask=2s").start(&shell(ASKER));
            run.wait_for("here");
            let before = Instant::now();
            run.say(&format!("{url}-s http://a.example:8080/x\n"));
            let said = run.wait_for("/run 403.");
            assert!(said.contains("asked, no answer yet; try again") || said.contains("nobody is there"), "{silent}: {said}");
            run.wait_for("a.example:8080/x 200.");
            assert!(before.elapsed() < Duration::from_secs(10), "{silent}: {:?}", before.elapsed());
            run.end_input();
            let outcome = run.finish();
            assert!(outcome.stderr.lines().count() < 60, "{silent}: {outcome}");
        }
    }

    fn no_command_reaches_the_program_that_answers(lab) {
        let _origin = Origin::start(8080);
        for identity in Identity::all() {
            let (command, log) = decider(lab, identity);
            let attack = "\
import ctypes,os,signal,subprocess,sys,threading
libc=ctypes.CDLL(None,use_errno=True)
print('here',flush=True); sys.stdin.readline()
own=os.getpid(); mine=set()
def line(pid):
    try: return open('/proc/%d/cmdline'%pid,'rb').read().split(b'\\0')
    except OSError: return []
found=[]
for pid in sorted(int(n) for n in os.listdir('/proc') if n.isdigit()):
    if pid==own: continue
    words=line(pid)
    # The launcher, and its guardian, have this text among their arguments.
    if words[1:2]==[b'run']: continue
    if any(b'decide.py' in w or b'--ask-with' in w or b'--handoff-fd' in w for w in words): found.append(pid)
print('found',len(found),flush=True)
won=[]
for pid in found:
    for n in (signal.SIGTERM,signal.SIGKILL,signal.SIGSTOP,signal.SIGHUP):
        try: os.kill(pid,n); won.append(('kill',pid))
        except OSError: pass
    for fd in range(12):
        for mode in (os.O_RDONLY,os.O_WRONLY,os.O_RDWR):
            try: os.open('/proc/%d/fd/%d'%(pid,fd),mode|os.O_NONBLOCK); won.append(('fd',pid,fd))
            except OSError: pass
        try: os.readlink('/proc/%d/fd/%d'%(pid,fd)); won.append(('link',pid,fd))
        except OSError: pass
    for name in ('mem','environ','maps'):
        try: open('/proc/%d/%s'%(pid,name),'rb').read(1); won.append((name,pid))
        except OSError: pass
    if libc.ptrace(16,pid,0,0)==0: won.append(('ptrace',pid))
    if libc.ptrace(0x4206,pid,0,0)==0: won.append(('seize',pid))
    try:
        p=os.pidfd_open(pid); n=libc.syscall(438,p,1,0)
        if n>=0: won.append(('getfd',pid))
    except OSError: pass
    if libc.setpriority(0,pid,19)==0: won.append(('nice',pid))
    try: os.sched_setaffinity(pid,{0}) ; won.append(('affinity',pid))
    except OSError: pass
try: os.killpg(0,0)
except OSError: pass
print('won',won,flush=True)
# Starved, and flooded with the same and with others.
def one(path): subprocess.run(['curl','-s','-m','20','-o','/dev/null','http://b.example:8080/'+path])
all=[threading.Thread(target=one,args=('other' if n%2 else 'x%d'%n,)) for n in range(60)]
for t in all: t.start()
for t in all: t.join()
r=subprocess.run(['curl','-s','-m','30','http://b.example:8080/other'],capture_output=True).stdout
print('other',b'denied' in r,flush=True)
r=subprocess.run(['curl','-s','-m','30','-w','%{http_code}','http://b.example:8080/run'],capture_output=True).stdout
print('run',r[-3:],flush=True)
print('over',flush=True)
";
            let mut run = asking(lab, identity, &command).start(&python(attack));
            run.wait_for("here");
            assert!(eventually(Duration::from_secs(20), || fs::read_to_string(&log).is_ok_and(|text| text.contains("pid"))));
            run.say("go\n");
            let said = run.wait_for("over");
            assert!(!said.contains("found 0\n"), "{said}");
            assert!(said.contains("won []\n"), "{said}");
            assert!(said.contains("other True\nrun b'200'\n"), "{said}");
            run.end_input();
            let outcome = run.finish();
            // It was started once, and lived as long as its run.
            let began = lines(&log).iter().filter(|line| line["token"].is_string()).count();
            assert_eq!(began, 1, "{outcome}");
            let pid = lines(&log)[0]["pid"].as_u64().expect("a process");
            assert!(eventually(Duration::from_secs(5), || !is_alive(pid)), "{pid}");
        }
    }
}
