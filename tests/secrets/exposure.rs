//! Where a value must not be found: the command's environment, memory and
//! files, other processes' as far as it can look, the record, messages; and who
//! else must not be able to have it inserted.

use outgate_harness::{Identity, lab_tests};

use crate::stage::{Stage, TOKEN, VALUE, assert_hidden, assert_nothing_below, bash};

/// Looks through everything a process can read of itself and of others.
const SEARCH: &str = r#"
env; set; export -p
for f in /proc/*/environ /proc/*/cmdline /proc/*/maps; do tr '\0' '\n' <"$f" 2>/dev/null; done
python3 - <<'END'
import os
for pid in os.listdir('/proc'):
    if not pid.isdigit():
        continue
    try:
        maps = open(f'/proc/{pid}/maps').readlines()
        memory = open(f'/proc/{pid}/mem', 'rb', 0)
    except OSError:
        continue
    for line in maps:
        span, rights = line.split()[:2]
        if 'r' not in rights or '[v' in line:
            continue
        start, end = (int(part, 16) for part in span.split('-'))
        try:
            memory.seek(start)
            data = memory.read(min(end - start, 1 << 24))
        except OSError:
            continue
        # Put together here, so that this program does not hold it.
        for value in (''.join(['s3cr3t', '/V4lue', '+of=the']), ''.join(['ghp_016C', '7869f1B2'])):
            if value.encode() in data and int(pid) != os.getpid():
                print('FO' + 'UND in', pid, line)
    memory.close()
print('searched')
END
cat "$TMPDIR"/* 2>/dev/null
"#;

lab_tests! {
    fn no_value_is_found_by_the_command(lab) {
        let stage = Stage::new(lab);
        let secrets = &["KEY=env:REAL@api.test", "TOKEN=env:REAL_TOKEN@api.test"];
        let script = format!(
            r#"curl -sS -H "Authorization: Bearer $KEY" https://api.test/echo; curl -sS -u "x:$TOKEN" https://api.test/echo; {SEARCH}"#
        );
        let sandbox = stage
            .sandbox(secrets)
            .environment("COPY", &format!("prefix-{VALUE}-suffix"))
            .environment("TOKEN", TOKEN);
        let outcome = sandbox.run(&bash(&script));
        assert!(outcome.stdout.contains("searched"), "{outcome}");
        assert!(!outcome.stdout.contains("FOUND"), "{outcome}");
        assert_hidden(&outcome.stdout, "what the command can read");
        assert_hidden(&outcome.stderr, "messages");
        assert!(outcome.stderr.contains("COPY is kept from the command"), "{outcome}");
        assert!(stage.seen().concat().contains(VALUE));
        assert_eq!(stage.findings(), []);
        for folder in ["home", "state", "tmp", "run", "work", "audit"] {
            assert_nothing_below(&lab.folder(folder, Identity::Own));
        }
    }

    fn the_file_of_a_secret_cannot_be_read(lab) {
        let stage = Stage::new(lab);
        let file = stage.lab.folder("work", Identity::Own).join("token.txt");
        std::fs::write(&file, TOKEN).expect("a file");
        let secret = format!("KEY=file:{}@api.test", file.display());
        let script = "cat token.txt; cat < token.txt; cp token.txt copy; ln token.txt link; cat link copy; echo done";
        let outcome = stage.run(&[&secret], script);
        assert!(outcome.stdout.contains("done"), "{outcome}");
        assert_hidden(&outcome.stdout, "the file");
    }

    fn placeholders_of_another_run_mean_nothing(lab) {
        let stage = Stage::new(lab);
        let secret = "KEY=env:REAL@api.test";
        let first = stage.run(&[secret], r#"printf %s "$KEY""#).stdout;
        assert!(first.len() >= 20, "{first}");
        let script = format!(
            r#"test "$KEY" != {first} && curl -sSk -H "Authorization: {first}" https://api.test/x"#
        );
        for secrets in [&[secret][..], &[]] {
            let script = if secrets.is_empty() { script.replace("test \"$KEY\" !=", ": ") } else { script.clone() };
            let outcome = stage.run(secrets, &script);
            assert_eq!(outcome.code, Some(0), "{outcome}");
            let seen = stage.seen().concat();
            assert!(seen.contains(&first), "{seen}");
            assert_hidden(&seen, "the origin");
        }
    }

    fn a_process_outside_has_nothing_inserted(lab) {
        let stage = Stage::new(lab);
        let script = r#"printf '%s\n' "$KEY"; read line; echo "$line""#;
        let mut running = stage.sandbox(&["KEY=env:REAL@api.test"]).with_input().start(&bash(script));
        let placeholder = running.wait_for("\n").trim().to_owned();
        // Every socket that anybody listens on gets the placeholder, in the form
        // the gateway would understand.
        let attack = format!(
            r#"for port in $(ss -Hltn | awk '{{print $4}}'); do curl -sk -m 2 -H 'Host: api.test' -H 'Authorization: {placeholder}' --resolve "api.test:${{port##*:}}:${{port%:*}}" "https://api.test:${{port##*:}}/x"; done; ss -Hlx | awk '{{print $5}}' | grep -i outgate; true"#
        );
        let outside = std::process::Command::new("bash").args(["-c", &attack]).output();
        let outside = outside.expect("bash runs");
        running.say("done\n");
        let outcome = running.finish();
        assert!(outcome.stdout.contains("done"), "{outcome}");
        assert_hidden(&String::from_utf8_lossy(&outside.stdout), "outside");
        for request in stage.seen() {
            assert_hidden(&request, "the origin");
        }
    }

    fn a_shared_gateway_takes_no_secrets_of_its_runs(lab) {
        let stage = Stage::new(lab);
        let socket = stage.lab.folder("run", Identity::Own).join("gate");
        let outgate = stage.lab.tools.programs.join("outgate");
        let mut gateway = std::process::Command::new(outgate)
            .args(["gateway", "-a", "https://api.test", "--listen"])
            .arg(&socket)
            .spawn()
            .expect("a gateway");
        let there = outgate_harness::eventually(std::time::Duration::from_secs(10), || socket.exists());
        let outcome = stage
            .lab
            .sandbox(Identity::Own)
            .environment("REAL", VALUE)
            .option("--gateway", &socket.to_string_lossy())
            .option("--secret", "KEY=env:REAL@api.test")
            .run(&bash("echo ran"));
        gateway.kill().ok();
        gateway.wait().ok();
        assert!(there, "the gateway listens");
        assert!(!outcome.stdout.contains("ran"), "{outcome}");
        assert!(outcome.stderr.contains("a shared gateway holds no secrets"), "{outcome}");
    }
}
