//! `base` stays whatever else is named, unless somebody takes it away.

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
}
