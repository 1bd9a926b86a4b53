//! `base` stays whatever else is named, unless somebody takes it away.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use outgate_harness::{Identity, Sandbox, lab_tests};

use crate::{home, project, write};

/// What every first command needs: programs, a working directory, a private one.
const NEEDS: &str = "echo x >made && cat made && mktemp >/dev/null && ls /usr >/dev/null";

lab_tests! {
    fn naming_one_more_thing_takes_nothing_away(lab) {
        for identity in Identity::all() {
            let work = project(lab, identity, "p");
            let data = home(lab, identity).join("data");
            write(&data.join("in"), "data\n", identity);
            let policy = home(lab, identity).join("agent.toml");
            write(&policy, "allow = [\"http://a.example\"]\n", identity);
            let data = data.to_string_lossy().into_owned();
            let policy = policy.to_string_lossy().into_owned();
            let options: [&[&str]; 6] = [
                &["-r", &data],
                &["-w", &data],
                &["-P", "anthropic", "-r", &data],
                &["-P", "dev-tools", "-r", &data],
                &["-p", &policy, "-r", &data],
                &["-a", "http://a.example", "-r", &data],
            ];
            for options in options {
                let mut sandbox = Sandbox::plain(lab, identity).within(work.clone());
                for pair in options.chunks(2) {
                    let [name, value] = pair else { continue };
                    sandbox = sandbox.option(name, value);
                }
                let script = format!("{NEEDS} && cat {data}/in");
                let outcome = sandbox.run(&["sh", "-c", &script].map(str::to_owned));
                assert_eq!(outcome.code, Some(0), "{options:?}\n{outcome}");
                assert_eq!(outcome.stdout, "x\ndata\n", "{options:?}\n{outcome}");
            }
        }
    }

    fn who_begins_with_nothing_gets_nothing(lab) {
        for identity in Identity::all() {
            let work = project(lab, identity, "p");
            let policy = home(lab, identity).join("agent.toml");
            write(&policy, "extends = []\n[filesystem]\nread = [\"/usr\"]\n", identity);
            let policy = policy.to_string_lossy().into_owned();
            for (name, value) in [("-P", "none"), ("-p", policy.as_str())] {
                let sandbox = Sandbox::plain(lab, identity).within(work.clone());
                let sandbox = sandbox
                    .option(name, value)
                    .option("-r", "/usr")
                    .option("-r", "/lib64");
                // Reached by the way that /bin is a link to.
                let script = "echo x >made || cat README || cat /etc/passwd";
                let outcome = sandbox.run(&["/usr/bin/sh", "-c", script].map(str::to_owned));
                assert_ne!(outcome.code, Some(0), "{name}\n{outcome}");
                assert_eq!(outcome.stdout, "", "{name}\n{outcome}");
                assert!(!work.join("made").exists(), "{name}\n{outcome}");
            }
        }
    }

    fn memory_that_is_shared_by_name_is_nobodys_without_its_grant(lab) {
        for identity in Identity::all() {
            let work = project(lab, identity, "p");
            let theirs = format!("/dev/shm/outgate-desk-{}-{}", std::process::id(), identity.uid());
            write(Path::new(&theirs), "of-another-program\n", identity);
            let script = format!(
                "cat {theirs}; echo x >> {theirs}; rm {theirs}; ls /dev/shm; ln {theirs} here; true"
            );
            let run = |sandbox: Sandbox<'_>, script: &str| {
                let sandbox = sandbox.within(work.clone());
                sandbox.run(&["sh", "-c", script].map(str::to_owned))
            };
            let outcome = run(Sandbox::plain(lab, identity), &script);
            assert_eq!(outcome.stdout, "", "{outcome}");
            let kept = std::fs::read_to_string(&theirs);
            assert_eq!(kept.ok().as_deref(), Some("of-another-program\n"), "{outcome}");
            let pool = "python3 -c 'import multiprocessing as m; print(m.Pool(2).map(abs, [-7]))'";
            let outcome = run(Sandbox::plain(lab, identity).option("-w", "/dev/shm"), pool);
            assert_eq!(outcome.stdout, "[7]\n", "{outcome}");
            std::fs::remove_file(&theirs).expect("the file of another");
        }
    }

    fn a_shipped_policy_is_named_for_a_tool_and_taken_by_auto(lab) {
        for identity in Identity::all() {
            let work = project(lab, identity, "p");
            for (tool, preset) in [
                ("uvx", "uv"), ("poetry", "poetry"), ("pnpm", "pnpm"), ("yarn", "yarn"), ("bunx", "bun"),
                ("deno", "deno"), ("go", "go"), ("mvn", "maven"), ("gradlew", "gradle"), ("bundle", "bundler"),
                ("terraform", "terraform"), ("aws", "aws"), ("gcloud", "gcloud"), ("kubectl", "kubectl"),
                ("docker", "docker-cli"), ("playwright", "playwright"), ("google-chrome", "chromium"),
            ] {
                let program = work.join(tool);
                write(&program, "#!/bin/sh\necho started\n", identity);
                std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).expect("a mode");
                let command = [program.to_string_lossy().into_owned()];
                let run = |sandbox: Sandbox<'_>| sandbox.within(work.clone()).run(&command);
                let note = format!("outgate: note: there is a shipped policy for `{tool}`: `-P {preset}`");
                let cache = home(lab, identity).join(".cache/outgate");
                let named = run(Sandbox::plain(lab, identity));
                assert!(named.stderr.contains(&note) && named.stdout == "started\n", "{named}");
                assert!(!cache.exists(), "{tool}: {named}");
                let taken = run(Sandbox::plain(lab, identity).flag("--auto"));
                assert!(!taken.stderr.contains(&note) && taken.stdout == "started\n", "{taken}");
                assert!(cache.is_dir(), "{tool}: {taken}");
                std::fs::remove_dir_all(home(lab, identity).join(".cache")).expect("the caches");
            }
        }
    }
}
