//! `outgate run --ask` and `outgate approve`: a request that no rule decides waits for a
//! person, goes on by their word, and holds nobody else; no command answers for one.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use outgate_harness::origin::Origin;
use outgate_harness::{Identity, Lab, Running, Sandbox, lab_tests};

use crate::gate::{Gate, Plan, python, shell};

/// `outgate approve` of the tests' account, with these words.
pub(crate) fn approve(lab: &Lab, words: &[&str]) -> Running {
    let mut command = Command::new(lab.tools.programs.join("outgate"));
    command
        .arg("approve")
        .args(words)
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("HOME", lab.folder("home", Identity::Own))
        .current_dir(lab.folder("elsewhere", Identity::Own))
        .stdin(Stdio::piped());
    Running::start(&mut command, Duration::from_mins(1))
}

fn asking<'lab>(lab: &'lab Lab, ask: &'static str) -> Sandbox<'lab> {
    lab.sandbox(Identity::Own)
        .flag(ask)
        .option("--name", "agent")
        .allow("http://a.example:8080")
        .deny("http://b.example:8080/denied")
        .pin("a.example=192.0.2.1")
        .pin("b.example=192.0.2.2")
        .with_input()
}

/// Asks for each URL it reads, beside one another, and says the status, or the words.
const ASKER: &str = "echo here; while read how url; do { curl -sS -m 30 $how -w \" $url %{http_code}.\\n\" \"$url\" 2>&1; } & done; wait; echo over";

const A: &str = "http://a.example:8080/x";
const B: &str = "http://b.example:8080/x";

lab_tests! {
    fn a_request_waits_for_a_person_and_goes_on_by_their_word(lab) {
        let origin = Origin::start(8080);
        let mut run = asking(lab, "--ask").start(&shell(ASKER));
        run.wait_for("here");
        let file = lab.folder("policy", Identity::Own).join("kept.toml");
        let mut person = approve(lab, &["agent", "--always", &file.to_string_lossy()]);
        person.wait_for("watching agent");
        // Content that is not sent before, and once after.
        run.say(&format!("-dvalue {B}\n"));
        let said = person.wait_for("1 deny");
        for part in ["1: agent asks for POST http://b.example:8080/x\n", "/curl (process ", "below  ", "narrow POST http://b.example:8080/x\n", "host   http://b.example:8080\n"] {
            assert!(said.contains(part), "{part}: {said}");
        }
        assert!(origin.arrivals().is_empty());
        // Nobody else waits.
        run.say(&format!("-s {A}\n"));
        run.wait_for(&format!("{A} 200."));
        person.say("nonsense\n7 run\n1 once\n");
        run.wait_for(&format!("{B} 200."));
        person.wait_for("1: granted `POST http://b.example:8080/x` for one request (asked, user ");
        let posts = || origin.arrivals().into_iter().filter(|one| one.bytes.ends_with("value")).count();
        assert_eq!(posts(), 1);
        // It was for that one: the next is asked for again, and of twenty once.
        for _ in 0..20 {
            run.say(&format!("-s {B}\n"));
        }
        person.wait_for("2: agent asks for GET http://b.example:8080/x\n");
        person.say("2 always\n");
        run.wait_for_count(&format!("{B} 200."), 21);
        assert!(!person.output().contains("3: "), "{}", person.output());
        let kept = std::fs::read_to_string(&file).expect("a policy");
        assert_eq!(kept, "[[allow]]\nrule = \"GET http://b.example:8080/x\"\n");
        // By the rule for the host.
        run.say("-s http://b.example:8080/other\n");
        person.wait_for("3: agent asks");
        person.say("3 host 10m\n");
        run.wait_for("/other 200.");
        run.say("-dmore http://b.example:8080/third\n");
        run.wait_for("/third 200.");
        // What is inside TLS is asked for as a request, too.
        run.say("-k https://b.example:8443/inside\n");
        person.wait_for("4: agent asks for GET https://b.example:8443/inside\n");
        person.say("4 deny\n");
        run.wait_for("/inside 403.");
        run.end_input();
        let outcome = run.finish();
        assert!(outcome.stderr.contains("GET https://b.example:8443/inside was denied (asked, user "), "{outcome}");
        assert!(outcome.stderr.contains("granted `http://b.example:8080` for 10m (asked, user "), "{outcome}");
        person.finish();
    }

    fn without_an_answer_a_request_is_denied_in_words(lab) {
        let _origin = Origin::start(8080);
        let mut run = asking(lab, "--ask=2s").start(&shell(ASKER));
        run.wait_for("here");
        // Nobody there: at once.
        let before = Instant::now();
        run.say(&format!("-s {B}\n"));
        let said = run.wait_for(&format!("{B} 403."));
        assert!(said.contains("nobody is there to ask (`outgate approve` answers)"), "{said}");
        assert!(before.elapsed() < Duration::from_secs(2));
        // Somebody there who says nothing.
        let mut person = approve(lab, &["agent"]);
        person.wait_for("watching agent");
        run.say(&format!("-s {B}\n"));
        person.wait_for("asks for GET http://b.example:8080/x");
        let said = run.wait_for("no answer yet; try again");
        assert!(said.contains("no rule allows it; asked, no answer yet; try again"), "{said}");
        person.wait_for("1: nobody waits for it any more");
        person.say("1 run\n");
        person.wait_for("1: no such question waits");
        // One who says no, and is not asked again.
        run.say("-s http://b.example:8080/y\n");
        let said = person.wait_for("b.example:8080/y\n");
        let number = said.lines().find_map(|line| line.split_once(": agent asks for GET http://b.example:8080/y")).expect("a question").0.to_owned();
        person.say(&format!("{number} deny\n"));
        run.wait_for("/y 403.");
        run.say("-s http://b.example:8080/y\n");
        let said = run.wait_for_count("/y 403.", 2);
        assert_eq!(said.matches("asked, and the answer was no").count(), 2, "{said}");
        // What a rule denies, and what is inside, is never asked.
        for url in ["http://b.example:8080/denied", "http://169.254.169.254/", "http://10.0.0.1:8080/"] {
            run.say(&format!("-s {url}\n"));
            run.wait_for(&format!("{url} 403."));
        }
        let asked = person.output();
        assert!(!asked.contains("denied\n   by") && !asked.contains("169.254") && !asked.contains("10.0.0.1"), "{asked}");
        // Who answers and hangs up leaves nobody.
        person.signal(nix::sys::signal::Signal::SIGKILL);
        person.finish();
        run.say("-s http://b.example:8080/z\n");
        let said = run.wait_for("/z 403.");
        assert_eq!(said.matches("nobody is there to ask").count(), 2, "{said}");
        run.end_input();
        run.finish();
    }

    fn a_question_outlasts_who_waited_in_vain_and_its_answer_is_for_who_tries_again(lab) {
        let origin = Origin::start(8080);
        let mut run = asking(lab, "--ask").start(&shell(ASKER));
        run.wait_for("here");
        let mut person = approve(lab, &["agent"]);
        person.wait_for("watching agent");
        let begun = Instant::now();
        run.say(&format!("-s {B}\n"));
        person.wait_for("1: agent asks for GET http://b.example:8080/x\n");
        run.say("-s http://b.example:8080/y\n");
        person.wait_for("2: agent asks for GET http://b.example:8080/y\n");
        // One that gives up before leaves its question open as well.
        run.say("-m10 http://b.example:8080/gone\n");
        run.wait_for("/gone 000.");
        // Denied before cargo gives up, the hastiest client that is known.
        run.wait_for_count("asked, no answer yet; try again", 2);
        let took = begun.elapsed();
        assert!((Duration::from_secs(24)..Duration::from_secs(30)).contains(&took), "{took:?}");
        assert!(origin.arrivals().is_empty());
        // Who tries again waits for the same question.
        run.say(&format!("-s {B}\n"));
        // Nobody waits for the other one, which is answered all the same.
        person.say("2 once\n");
        person.wait_for("2: granted `GET http://b.example:8080/y` for one request");
        run.say("-s http://b.example:8080/y\n");
        run.wait_for("/y 200.");
        person.say("1 run\n");
        run.wait_for(&format!("{B} 200."));
        let asked = person.output();
        assert!(asked.contains("3: agent asks") && !asked.contains("4: "), "{asked}");
        assert!(!asked.contains("nobody waits"), "{asked}");
        run.end_input();
        run.finish();
        person.finish();
    }

    fn a_flood_of_questions_hides_and_stops_nothing(lab) {
        let _origin = Origin::start(8080);
        let flood = "import socket,sys,threading\n\
             def ask(path, host):\n\
             \x20 s=socket.create_connection((host,8080)); s.settimeout(30)\n\
             \x20 s.sendall(b'GET '+path+b' HTTP/1.1\\r\\nHost: '+host.encode()+b':8080\\r\\nConnection: close\\r\\n\\r\\n')\n\
             \x20 try: return s.recv(1000)\n\
             \x20 except OSError: return b'none'\n\
             print('here', flush=True); sys.stdin.readline()\n\
             all=[threading.Thread(target=ask,args=(b'/%d:%%20agent' % n,'b.example')) for n in range(600)]\n\
             for one in all: one.start()\n\
             import time; time.sleep(1)\n\
             print('allowed', ask(b'/x','a.example')[9:12], flush=True)\n\
             print('other', ask(b'/x','c.example')[9:12], flush=True)\n\
             for one in all: one.join()\n\
             print('over', flush=True)\n";
        let mut run = asking(lab, "--ask=4s").pin("c.example=192.0.2.3").start(&python(flood));
        run.wait_for("here");
        let mut person = approve(lab, &["agent"]);
        person.wait_for("watching agent");
        // Who does not read for a while misses nothing.
        person.signal(nix::sys::signal::Signal::SIGSTOP);
        run.say("go\n");
        run.wait_for("allowed b'200'");
        person.signal(nix::sys::signal::Signal::SIGCONT);
        // Another host's question is seen and answered all the same.
        let said = person.wait_for("http://c.example:8080/x\n");
        let number = said.lines().find_map(|line| line.split_once(": agent asks for GET http://c.example:8080/x")).expect("a question").0.to_owned();
        person.say(&format!("{number} once\n"));
        run.wait_for("other b'200'");
        let asked = person.output();
        assert_eq!(asked.matches("asks for GET http://b.example:8080/").count(), 8, "{asked}");
        assert!(asked.chars().all(|sign| sign == '\n' || (' '..='~').contains(&sign)), "{asked}");
        assert!(!asked.lines().any(|line| line.starts_with("9: agent\n")), "{asked}");
        run.finish();
        person.finish();
    }

    fn no_command_answers_or_hears_a_question(lab) {
        let _origin = Origin::start(8080);
        let program = lab.tools.programs.join("outgate");
        let attack = python(&format!(
            "import socket,struct,subprocess,threading\n\
             for words in (['approve'],['approve','agent'],['approve','agent','--with','echo {{\"id\":1,\"answer\":\"run\"}}; sleep 5']):\n\
             \x20 p=subprocess.Popen([{program:?}]+words,stdin=subprocess.PIPE,stdout=subprocess.PIPE,stderr=subprocess.STDOUT)\n\
             \x20 try: out,_=p.communicate(b'1 run\\n1 once\\n',timeout=3)\n\
             \x20 except subprocess.TimeoutExpired: p.kill(); out,_=p.communicate()\n\
             \x20 print('said', out)\n\
             names=[line.split('@')[1].strip() for line in open('/proc/net/unix') if '@outgate-run-' in line]\n\
             for name in names:\n\
             \x20 try:\n\
             \x20  s=socket.socket(socket.AF_UNIX,socket.SOCK_SEQPACKET); s.connect('\\0'+name); print('entered')\n\
             \x20 except OSError: pass\n\
             print(subprocess.run(['curl','-s','-m','20','http://b.example:8080/x'],capture_output=True).stdout)\n\
             print('over', flush=True)\n"
        ));
        let run = asking(lab, "--ask=2s").start(&attack);
        let said = run.wait_for("over");
        assert!(!said.contains("entered") && !said.contains("asks for"), "{said}");
        assert!(said.contains("nobody is there to ask"), "{said}");
        run.finish();
    }

    fn a_program_answers_and_only_what_is_asked(lab) {
        let _origin = Origin::start(8080);
        let mut run = asking(lab, "--ask=5s").start(&shell(ASKER));
        run.wait_for("here");
        let decide = lab.folder("policy", Identity::Own).join("decide.py");
        std::fs::write(&decide, "import json,sys\n\
            for line in sys.stdin:\n\
            \x20 asked=json.loads(line)\n\
            \x20 assert set(asked)=={'id','run','asks','narrow','host','program','pid','parents'}, asked\n\
            \x20 print('no answer'); print(json.dumps({'id':asked['id']+1,'answer':'run'}))\n\
            \x20 if asked['asks'].endswith('/x'): print(json.dumps({'id':asked['id'],'answer':'once'}))\n\
            \x20 else: print(json.dumps({'id':asked['id'],'answer':'deny'}))\n\
            \x20 sys.stdout.flush()\n").expect("a program");
        let person = approve(lab, &["agent", "--with", &format!("exec python3 {}", decide.display())]);
        person.wait_for("watching agent");
        run.say(&format!("-s {B}\n"));
        run.wait_for(&format!("{B} 200."));
        run.say("-s http://b.example:8080/y\n");
        let said = run.wait_for("/y 403.");
        assert!(said.contains("the answer was no"), "{said}");
        run.end_input();
        run.finish();
        // With its run, it is over.
        person.finish();
    }

    fn rules_are_kept_in_no_file_that_a_link_leads_to(lab) {
        let folder = lab.folder("policy", Identity::Own);
        let (target, link, second) = (folder.join("target"), folder.join("link"), folder.join("second"));
        std::fs::write(&target, "kept\n").expect("a file");
        std::os::unix::fs::symlink(&target, &link).expect("a link");
        std::fs::hard_link(&target, &second).expect("a name");
        for path in [&link, &second] {
            let mut person = approve(lab, &["--always", &path.to_string_lossy()]);
            person.end_input();
            let errors = person.finish().stderr;
            assert!(errors.contains("it is a link, no file, or one with further names"), "{errors}");
        }
        assert_eq!(std::fs::read_to_string(&target).expect("a file"), "kept\n");
    }

    fn what_one_says_is_told_to_all_who_watch(lab) {
        let _origin = Origin::start(8080);
        let mut run = asking(lab, "--ask=20s").start(&shell(ASKER));
        run.wait_for("here");
        let mut first = approve(lab, &["agent", "--plain"]);
        first.wait_for("watching agent");
        // Of all runs, and told all the same why an answer is none.
        let mut second = approve(lab, &["--plain"]);
        second.wait_for("watching agent");
        run.say(&format!("-s {B}\n"));
        first.wait_for("1 deny");
        second.wait_for("1 deny");
        first.say("1 deny\n");
        second.wait_for("1: denied");
        run.wait_for(&format!("{B} 403."));
        run.say("-s http://b.example:8080/y\n");
        second.wait_for("2 deny");
        second.say("2 deny\n");
        first.wait_for("2: denied");
        run.wait_for("/y 403.");
        run.end_input();
        run.finish();
    }

    fn a_shared_gateway_asks_for_what_it_allows_and_no_more(lab) {
        let _origin = Origin::start(8080);
        let gate = Gate::start(lab, Identity::Own, &Plan::new(&[
            "-a", "http://a.example:8080", "-a", "http://b.example:8080/x",
            "--resolve", "a.example=192.0.2.1", "--resolve", "b.example=192.0.2.2",
        ]));
        let mut run = gate
            .sandbox(lab, Identity::Own)
            .flag("--ask=5s")
            .option("--name", "agent")
            .allow(A)
            .with_input()
            .start(&shell(ASKER));
        run.wait_for("here");
        let mut person = approve(lab, &["agent"]);
        person.wait_for("watching agent");
        run.say("-s http://b.example:8080/y\n");
        let said = run.wait_for("/y 403.");
        assert!(said.contains("the gateway's policy") && !said.contains("asked"), "{said}");
        run.say(&format!("-s {B}\n"));
        person.wait_for("1: agent asks for GET http://b.example:8080/x");
        person.say("1 host run\n");
        person.wait_for("not taken: ");
        person.say("1 run\n");
        run.wait_for(&format!("{B} 200."));
        run.end_input();
        run.finish();
        person.finish();
    }
}
