//! `http://outgate.invalid/`, which only the gateway answers: a command reads there what it may
//! do, asks for what was denied to it in its own words, and answers nothing itself. Attacked as
//! a command would: wider rules, floods, forged words, answers, other runs, other connections.

use std::time::Duration;

use outgate_harness::origin::Origin;
use outgate_harness::{Identity, Lab, Running, Sandbox, audit, lab_tests};

use crate::asks::approve;
use crate::gate::{Gate, Plan, python, shell};

fn end(person: Running) {
    // With its run it is over.
    person.finish();
}

fn run_of(lab: &Lab) -> Sandbox<'_> {
    lab.sandbox(Identity::Own)
        .option("--name", "agent")
        .allow("GET,POST http://a.example:8080")
        .deny("http://b.example:8080/fenced")
        .pin("a.example=192.0.2.1")
        .pin("b.example=192.0.2.2")
        .with_input()
}

/// Runs each line that it reads as words of curl.
const ASKER: &str = "echo here; while read -r line; do eval \"curl -sS -m 40 $line\" 2>&1; echo; echo done; done; echo over";

/// Functions for programs that attack: `ask` sends a request and gives its status and content.
const PRELUDE: &str = r"
import http.client,json,socket,sys,time
def ask(method, path, content=None, fields={}, host='outgate.invalid', port=80):
    c=http.client.HTTPConnection(host, port, timeout=30)
    c.request(method, path, content, fields)
    r=c.getresponse(); text=r.read().decode()
    c.close(); return r.status, text, r.headers
def denied(url, method='GET'):
    host=url.split('/')[2]; name,_,port=host.partition(':')
    return ask(method, '/'+url.split('/',3)[3], None, {'Host':host}, name, int(port or 80))[0]
def propose(rule, why='to build'):
    return ask('POST','/proposals',json.dumps({'rule':rule,'why':why}))
def raw(data, host='outgate.invalid', port=80):
    s=socket.create_connection((host,port)); s.settimeout(20); s.sendall(data)
    out=b''
    try:
        while True:
            part=s.recv(65536)
            if not part: break
            out+=part
    except OSError: pass
    return out
";

fn attack(body: &str) -> Vec<String> {
    python(&format!("{PRELUDE}{body}"))
}

lab_tests! {
    fn a_command_reads_what_it_may_do_and_what_was_denied_to_it(lab) {
        let _origin = Origin::start(8080);
        let policy = lab.folder("policy", Identity::Own).join("own.toml");
        std::fs::write(&policy, "denial_note = \"Ask #platform before adding hosts\"\n").expect("a policy");
        let mut run = run_of(lab).option("-p", &policy.to_string_lossy()).start(&shell(ASKER));
        run.wait_for("here");
        run.say("-D - http://b.example:8080/x?token=value\n");
        let said = run.wait_for_count("done", 1).to_lowercase();
        for part in ["http/1.1 403", "outgate-ask: http://outgate.invalid/\r\n", "ask #platform before adding hosts\n"] {
            assert!(said.contains(part), "{part}: {said}");
        }
        run.say("-H accept:application/json http://b.example:8080/fenced\n");
        let said = run.wait_for_count("done", 2);
        for part in ["\"ask\":\"http://outgate.invalid/\"", "\"note\":\"Ask #platform before adding hosts\""] {
            assert!(said.contains(part), "{part}: {said}");
        }
        run.say("http://outgate.invalid/\n");
        let said = run.wait_for_count("done", 3);
        for part in [
            "\n  allow GET,POST http://a.example:8080\n",
            "\n  deny  http://b.example:8080/fenced\n",
            "\n  GET http://b.example:8080/x: no rule allows it\n    Ask #platform before adding hosts\n    the user may allow it: -a 'GET http://b.example:8080/x'\n",
            "\n  GET http://b.example:8080/fenced: the deny rule",
            "Nobody is asked in this run",
        ] {
            assert!(said.contains(part), "{part}: {said}");
        }
        assert!(!said.contains("allow it: -a 'GET http://b.example:8080/fenced") && !said.contains("token=value"), "{said}");
        // Over TLS of the run's own authority, and as JSON.
        run.say("-H accept:application/json https://outgate.invalid/\n");
        let said = run.wait_for_count("done", 4);
        let line = said.lines().find(|line| line.contains("within_gateway_policy")).expect("JSON");
        let page: serde_json::Value = serde_json::from_str(line).expect("JSON");
        assert_eq!(page["denied"][1]["propose"], "GET http://b.example:8080/x", "{page}");
        assert_eq!(page["denied"][0]["propose"], serde_json::Value::Null, "{page}");
        assert_eq!(page["rules"][0]["rule"], "GET,POST http://a.example:8080", "{page}");
        run.say("-I http://outgate.invalid/; curl -sS -o /dev/null -w '%{http_code}' http://outgate.invalid/other; curl -sS http://outgate.invalid:8080/\n");
        let said = run.wait_for_count("done", 5);
        assert!(said.contains("HTTP/1.1 200") && said.contains("404") && said.contains("answered by outgate itself"), "{said}");
        run.end_input();
        let outcome = run.finish();
        assert!(outcome.stderr.contains("to allow: -a 'GET http://b.example:8080/x'; Ask #platform before adding hosts"), "{outcome}");
        // Also where nothing may leave.
        let bare = lab.sandbox(Identity::Own).run(&shell("curl -sS -m 20 http://outgate.invalid/"));
        assert!(bare.stdout.contains("nothing leaves: no rule allows a host"), "{bare}");
    }

    fn a_proposal_is_put_to_a_person_and_its_answer_is_waited_for(lab) {
        let origin = Origin::start(8080);
        let record = lab.folder("record", Identity::Own).join("own.jsonl");
        let mut run = run_of(lab)
            .flag("--ask")
            .option("--audit", &record.to_string_lossy())
            .start(&shell(ASKER));
        run.wait_for("here");
        for path in ["x", "y"] {
            run.say(&format!("http://b.example:8080/{path}\n"));
        }
        run.wait_for_count("done", 2);
        run.say("http://outgate.invalid/\n");
        run.wait_for("    propose  GET http://b.example:8080/y\n");
        run.wait_for_count("done", 3);
        let mut person = approve(lab, &["agent"]);
        person.wait_for("watching agent");
        run.say("-i -d 'rule=GET http://b.example:8080/x&why=so that it builds' http://outgate.invalid/proposals\n");
        let said = run.wait_for_count("done", 4);
        for part in ["HTTP/1.1 202", "location: /proposals/1\r\n", "pending: GET http://b.example:8080/x (nobody answered yet)"] {
            assert!(said.to_lowercase().contains(&part.to_lowercase()), "{part}: {said}");
        }
        let said = person.wait_for("1 deny");
        for part in [
            "1: agent proposes GET http://b.example:8080/x\n",
            "/curl (process ",
            "   its own words: \"so that it builds\"\n",
            "   narrow GET http://b.example:8080/x\n",
        ] {
            assert!(said.contains(part), "{part}: {said}");
        }
        assert!(!said.contains("host   "), "{said}");
        run.say("http://outgate.invalid/proposals/1?wait=30\n");
        person.say("1 run\n");
        let said = run.wait_for_count("done", 5);
        assert!(said.contains("allowed: GET http://b.example:8080/x (a person allowed it)"), "{said}");
        run.say("-o /dev/null -w '%{http_code}.' http://b.example:8080/x\n");
        let said = run.wait_for_count("done", 6);
        assert!(said.contains("200."), "{said}");
        assert!(origin.arrivals().iter().any(|one| one.line().contains("/x")));
        // What holds already is not asked again, and a no is one.
        run.say("-d 'rule=GET http://b.example:8080/x&why=again' http://outgate.invalid/proposals\n");
        let said = run.wait_for("allow it already");
        assert!(!said.contains("denied: "), "{said}");
        run.say("-H accept:application/json -d '{\"rule\":\"GET http://b.example:8080/y\",\"why\":\"to test\"}' http://outgate.invalid/proposals\n");
        person.wait_for("2: agent proposes GET http://b.example:8080/y");
        person.say("2 deny\n");
        run.say("-H accept:application/json http://outgate.invalid/proposals/2?wait=30\n");
        run.wait_for("\"state\":\"denied\"");
        run.say("-i -d 'rule=GET http://b.example:8080/y&why=please' http://outgate.invalid/proposals\n");
        let said = run.wait_for("denied: GET http://b.example:8080/y (asked, and the answer was no)");
        assert!(said.contains("HTTP/1.1 403"), "{said}");
        assert!(!person.output().contains("3: "), "{}", person.output());
        run.end_input();
        run.finish();
        end(person);
        let records = audit::records(&record);
        let proposals = audit::of_kind(&records, "proposal");
        let details: Vec<&str> = proposals.iter().map(|own| audit::text(own, "detail")).collect();
        assert_eq!(
            details,
            [
                "proposal 1: so that it builds",
                "proposal 1 allowed: a person allowed it",
                "proposal 2: to test",
                "proposal 2 denied: asked, and the answer was no",
            ],
        );
        assert_eq!(audit::text(proposals[0], "target"), "GET http://b.example:8080/x");
    }

    fn a_proposal_that_nobody_hears_is_refused_at_once_in_words(lab) {
        let _origin = Origin::start(8080);
        let body = "print(denied('http://b.example:8080/x'))\n\
            begun=time.time(); print(propose('GET http://b.example:8080/x')[:2]); print('quick', time.time()-begun<2)\n";
        let outcome = run_of(lab).run(&attack(body));
        assert!(outcome.stdout.contains("(403, 'Nobody is asked in this run") && outcome.stdout.contains("outgate run --ask"), "{outcome}");
        assert!(outcome.stdout.contains("quick True"), "{outcome}");
        let outcome = run_of(lab).flag("--ask").run(&attack(body));
        assert!(outcome.stdout.contains("(403, 'Nobody is there to answer"), "{outcome}");
        assert!(outcome.stdout.contains("quick True"), "{outcome}");
    }

    fn nothing_wider_than_what_was_denied_is_put_to_a_person(lab) {
        let _origin = Origin::start(8080);
        let body = r"
long='/'+'x/'*400
for url in ['http://b.example:8080/x','http://b.example:8080/fenced','http://b.example:8080'+long,
            'http://10.0.0.1:8080/','http://169.254.169.254:8080/latest','http://metadata.google.internal:8080/x']:
    denied(url)
denied('http://b.example:8080/odd','ODDLY_')
print('denied', flush=True); sys.stdin.readline()
rules=['*','http://*','GET http://*:8080/x','GET http://*.example:8080/x','http://b.example:8080','GET http://b.example:8080',
  '* http://b.example:8080/x','POST http://b.example:8080/x','GET,POST http://b.example:8080/x','GET http://b.example:8080/**',
  'GET http://b.example:8080/*','GET http://b.example:8080/x/**','GET https://b.example:8080/x','ws://b.example:8080/x',
  'tcp://b.example:8080','GET http://b.example:*/x','GET http://b.example/x','GET http://c.example:8080/x','GET b.example:8080/x',
  'GET http://a.example:8080/x\nGET http://c.example/','GET http://b.example:8080/fenced','GET http://b.example:8080'+long,
  'GET http://b.example:8080/x/x/**','GET http://10.0.0.1:8080/','GET http://169.254.169.254:8080/latest',
  'GET http://metadata.google.internal:8080/x','http://localhost:8080','unix:///run/x','GET http://outgate.invalid/',
  'http://b.example:8080/odd','git:push b.example/x/y','deny http://a.example','GET http://b.example:8080/x except x']
bad=[(rule,propose(rule)[0]) for rule in rules if propose(rule)[0] not in (403,400)]
print('bad',bad, flush=True)
print('good',propose('GET http://b.example:8080/x')[0], flush=True)
print('over', flush=True)
";
        let mut run = run_of(lab).flag("--ask").start(&attack(body));
        run.wait_for("denied");
        let person = approve(lab, &["agent"]);
        person.wait_for("watching agent");
        run.say("go\n");
        let said = run.wait_for("over");
        assert!(said.contains("bad []\n") && said.contains("good 202"), "{said}");
        run.end_input();
        run.finish();
        let asked = person.wait_for("1: agent proposes GET http://b.example:8080/x");
        assert!(!asked.contains("2: "), "{asked}");
        end(person);
    }

    fn a_command_answers_no_proposal_and_chooses_no_line_of_it(lab) {
        let _origin = Origin::start(8080);
        let body = r#"
for n in range(4): denied('http://b.example:8080/%d' % n)
print('denied', flush=True); sys.stdin.readline()
words=['ok"\n2: agent asks for GET http://c.example/\n   2 run','\x1b[2J\x1b]0;title\x07\u202egnp.exe\u2066','ok'+' '*200+'9: agent\r\n']
for n,why in enumerate(words): print(propose('GET http://b.example:8080/%d' % n, why)[0])
print('rule', propose('GET http://b.example:8080/3\x1b[2J')[0], propose('GET http://b.example:8080/3','x'*301)[0])
for method in ['POST','PUT','DELETE','PATCH','OPTIONS','ALLOW']:
    for path in ['/proposals/1','/proposals/1/answer','/','/proposals/1?answer=run']:
        status=ask(method,path,json.dumps({'answer':'run','rule':'GET http://b.example:8080/0','state':'allowed'}))[0]
        if status not in (403,404,405): print('took', method, path, status)
for fields in [{'X-HTTP-Method-Override':'PUT'},{'Origin':'http://b.example:8080'}]:
    print('fields', ask('POST','/proposals','GET http://b.example:8080/3\nx',fields)[0])
names=[line.split('@')[1].strip() for line in open('/proc/net/unix') if '@outgate-run-' in line]
for name in names:
    try:
        s=socket.socket(socket.AF_UNIX,socket.SOCK_SEQPACKET); s.connect('\0'+name); print('entered')
    except OSError: pass
print('state', json.loads(ask('GET','/proposals/1',None,{'Accept':'application/json'})[1])['state'])
print('blocked', denied('http://b.example:8080/fenced'), flush=True)
print('over', flush=True)
"#;
        let mut run = run_of(lab).flag("--ask").start(&attack(body));
        run.wait_for("denied");
        let person = approve(lab, &["agent"]);
        person.wait_for("watching agent");
        run.say("go\n");
        let said = run.wait_for("over");
        assert!(said.contains("rule 403 400\n") && said.contains("fields 403\nfields 403\n"), "{said}");
        assert!(said.contains("state pending") && said.contains("blocked 403"), "{said}");
        assert!(!said.contains("took") && !said.contains("entered"), "{said}");
        run.end_input();
        run.finish();
        let asked = person.output();
        assert_eq!(asked.matches(" proposes GET http://b.example:8080/").count(), 3, "{asked}");
        assert!(asked.chars().all(|sign| sign == '\n' || (' '..='~').contains(&sign)), "{asked}");
        for line in asked.lines().filter(|line| line.contains("asks for") || line.contains("9: agent") || line.contains("title")) {
            assert!(line.starts_with("   its own words: \"") && line.len() < 80, "{line}");
        }
        end(person);
    }

    fn a_flood_of_proposals_is_bounded_and_slows_nothing(lab) {
        let _origin = Origin::start(8080);
        let body = r"
import threading
for n in range(60): denied('http://b.example:8080/%d' % n)
print('denied', flush=True); sys.stdin.readline()
count={}
def flood():
    c=http.client.HTTPConnection('outgate.invalid', 80, timeout=30)
    for n in range(2500):
        c.request('POST','/proposals','GET http://b.example:8080/%d\nround %d' % (n%60,n))
        r=c.getresponse(); r.read(); count[r.status]=count.get(r.status,0)+1
all=[threading.Thread(target=flood) for _ in range(4)]
for one in all: one.start()
slowest=0
while any(one.is_alive() for one in all):
    begun=time.time(); status=denied('http://a.example:8080/x'); slowest=max(slowest,time.time()-begun)
    if status!=200: print('failed', status)
    time.sleep(0.05)
print('slow' if slowest>3 else 'swift', slowest, count, sum(count.values()), flush=True)
print('over', flush=True)
";
        let mut run = run_of(lab).flag("--ask").limit(Duration::from_mins(2)).start(&attack(body));
        run.wait_for("denied");
        let mut person = approve(lab, &["agent"]);
        person.wait_for("watching agent");
        run.say("go\n");
        // A request that is held beside them is seen and answered.
        let said = run.wait_for("over");
        assert!(said.contains("swift") && !said.contains("failed") && said.contains(" 10000\n"), "{said}");
        let asked = person.output();
        assert_eq!(asked.matches(" proposes ").count(), 8, "{asked}");
        person.say("1 deny\n");
        run.wait_for("over");
        run.end_input();
        run.finish();
        end(person);
    }

    fn a_run_of_a_shared_gateway_sees_no_other_runs_page(lab) {
        let _origin = Origin::start(8080);
        let gate = Gate::start(lab, Identity::Own, &Plan::new(&[
            "-a", "http://*:8080", "--resolve", "a.example=192.0.2.1", "--resolve", "b.example=192.0.2.2",
        ]));
        let mut first = gate.sandbox(lab, Identity::Own).flag("--ask").option("--name", "first")
            .allow("GET http://a.example:8080/of-first").with_input().start(&shell(ASKER));
        first.wait_for("here");
        first.say("http://b.example:8080/denied-to-first\n");
        first.wait_for("done");
        let person = approve(lab, &["first"]);
        person.wait_for("watching first");
        first.say("-d 'rule=GET http://b.example:8080/denied-to-first&why=of the first' http://outgate.invalid/proposals\n");
        person.wait_for("1: first proposes ");
        let body = r"
page=ask('GET','/')[1]; more=ask('GET','/',None,{'Accept':'application/json'})[1]
print('shared', 'shared gateway' in page, 'seen', '-first' in page or '-first' in more)
print('proposal', ask('GET','/proposals/1')[0], 'proposed', propose('GET http://b.example:8080/denied-to-first')[0], flush=True)
";
        for identity in [Identity::Own, Identity::Nobody] {
            let outcome = gate.sandbox(lab, identity).flag("--ask").option("--name", "second")
                .allow("GET http://a.example:8080/of-second").run(&attack(body));
            assert!(outcome.stdout.contains("shared True seen False\nproposal 404 proposed 403\n"), "{outcome}");
        }
        first.end_input();
        first.finish();
        end(person);
        gate.end();
    }

    fn only_a_connection_to_it_reaches_the_own_origin_and_nothing_of_it_is_dialled(lab) {
        let origin = Origin::start(8080);
        let http = Origin::start(80);
        let body = r"
def first(data, host='outgate.invalid', port=80): return raw(data,host,port).split(b'\r\n')[0].decode()
get=b' HTTP/1.1\r\nConnection: close\r\n'
print('other', first(b'GET /'+get+b'Host: outgate.invalid\r\n\r\n','a.example',8080))
print('absolute', first(b'GET http://outgate.invalid/'+get+b'Host: outgate.invalid\r\n\r\n','a.example',8080))
print('back', first(b'GET /'+get+b'Host: a.example:8080\r\n\r\n'))
print('two', first(b'GET /'+get+b'Host: outgate.invalid\r\nHost: a.example\r\n\r\n'))
print('port', first(b'GET /'+get+b'Host: outgate.invalid:8080\r\n\r\n'))
print('connect', first(b'CONNECT a.example:8080 HTTP/1.1\r\nHost: a.example:8080\r\n\r\n'))
print('upgrade', first(b'GET / HTTP/1.1\r\nHost: outgate.invalid\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n'))
print('big', first(b'POST /proposals'+get+b'Host: outgate.invalid\r\nContent-Length: 3000000\r\n\r\n'+b'x'*3000000))
print('endless', first(b'POST /proposals'+get+b'Host: outgate.invalid\r\nTransfer-Encoding: chunked\r\n\r\n'+b'1001\r\n'+b'x'*4097+b'\r\n'+b'1000\r\n'))
print('slow', first(b'POST /proposals'+get+b'Host: outgate.invalid\r\nContent-Length: 100\r\n\r\nGET'))
both=raw(b'POST /proposals HTTP/1.1\r\nHost: outgate.invalid\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET / HTTP/1.1\r\nHost: outgate.invalid\r\n\r\n')
print('smuggled', both.count(b'HTTP/1.1'), both.split(b'\r\n')[0].decode())
print('h2', raw(b'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')[:9]!=b'')
print('noise', raw(b'\x00\x01\x02 noise\r\n\r\n'))
for port in (8080, 8081, 22):
    try: print('at', port, first(b'GET /'+get+b'Host: outgate.invalid:%d\r\n\r\n' % port, port=port))
    except OSError as error: print('at', port, 'refused')
print('below', end=' ')
try: socket.getaddrinfo('x.outgate.invalid',80); print('found')
except OSError: print('none')
print('over', flush=True)
";
        let run = run_of(lab)
            .flag("--ask")
            .allow("http://outgate.invalid").allow("http://outgate.invalid:8080").allow("tcp://outgate.invalid:8081")
            .allow("http://*:*")
            .pin("outgate.invalid=192.0.2.1")
            .run(&attack(body));
        let said = &run.stdout;
        for part in ["other HTTP/1.1 403", "absolute HTTP/1.1 403", "back HTTP/1.1 403", "two HTTP/1.1 400", "port HTTP/1.1 403", "connect HTTP/1.1 403", "upgrade HTTP/1.1 403", "big HTTP/1.1 413", "endless HTTP/1.1 413", "slow HTTP/1.1 408", "smuggled 1 HTTP/1.1 400", "noise b''", "at 8080 HTTP/1.1 403", "at 22 refused", "below none", "over"] {
            assert!(said.contains(part), "{part}: {run}");
        }
        assert!(!said.contains("at 8081 HTTP/1.1 200"), "{run}");
        assert!(origin.arrivals().is_empty() && http.arrivals().is_empty(), "{run}");
    }
}
