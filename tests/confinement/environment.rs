//! The environment: what was asked for is there, and credentials are not.

use outgate_harness::{Identity, lab_tests};

use crate::{shell, words};

lab_tests! {
    fn the_environment_is_what_was_asked_for(lab) {
        for identity in Identity::all() {
            let sandbox = lab.sandbox(identity).option("--env", "ADDED=1").environment("KEPT", "2")
                .environment("http_proxy", "http://127.0.0.1:1").environment("HTTPS_PROXY", "http://127.0.0.1:1");
            let outcome = sandbox.allow("http://allowed.example").run(&words(&["env"]));
            let has = |line: &str| outcome.stdout.lines().any(|other| other == line);
            assert!(has("ADDED=1") && has("KEPT=2"), "{outcome}");
            assert!(!outcome.stdout.to_lowercase().contains("_proxy=http"), "{outcome}");
            assert!(outcome.stdout.lines().any(|line| line.starts_with("RES_OPTIONS=") && line.contains("use-vc")), "{outcome}");
        }
    }

    fn credentials_stay_outside_unless_they_are_needed_or_passed(lab) {
        let secret = "Kq7vT2mXz9LrB4nWcY8dHsP3";
        let names = ["ANTHROPIC_API_KEY", "AWS_SECRET_ACCESS_KEY", "DATABASE_PASSWORD", "MYCORP_TOKEN"];
        let listed = lab.directory.join("listed.toml");
        std::fs::write(&listed, "[environment]\npass = [\"PATH\", \"MYCORP_TOKEN\"]\n").expect("a file");
        let bound = lab.directory.join("bound.toml");
        let text = "allow = [\"https://api.mycorp.example\"]\n[[inspect.value]]\nname = \"MYCORP_TOKEN\"\nhosts = [\"api.mycorp.example\"]\n";
        std::fs::write(&bound, text).expect("a file");
        for identity in Identity::all() {
            let seen = |options: &[(&str, &str)]| {
                let mut sandbox = lab.sandbox(identity).environment("TOKEN_FILE", "/a/b").environment("API_KEY_ID", "AKq7vT2mXz9LrB4nWcY8dHsQ")
                    .environment("SSH_AUTH_SOCK", "/no/agent").environment("EDITOR_TOKEN", "short");
                for name in names {
                    sandbox = sandbox.environment(name, secret);
                }
                for (option, value) in options {
                    sandbox = sandbox.option(option, value);
                }
                let outcome = sandbox.run(&words(&["env"]));
                assert_eq!(outcome.code, Some(0), "{outcome}");
                assert!(!outcome.stderr.contains(secret), "{outcome}");
                let has = |name: &str| outcome.stdout.lines().any(|line| line.starts_with(&format!("{name}=")));
                for name in names {
                    let told = outcome.stderr.contains(name);
                    assert!(if options.is_empty() { told } else { !told || !has(name) }, "{name}: {outcome}");
                }
                let others = ["TOKEN_FILE", "API_KEY_ID", "SSH_AUTH_SOCK", "EDITOR_TOKEN"].map(has);
                (names.into_iter().filter(|name| has(name)).collect::<Vec<_>>(), others)
            };
            let kept = [true; 4];
            assert_eq!(seen(&[]), (vec![], kept), "{identity:?}");
            assert_eq!(seen(&[("-a", "https://api.anthropic.com")]), (vec![names[0]], kept));
            assert_eq!(seen(&[("-a", "GET https://**.anthropic.com/v1/**")]), (vec![names[0]], kept));
            assert_eq!(seen(&[("-d", "https://api.anthropic.com")]), (vec![], kept));
            assert_eq!(seen(&[("-a", "https://anthropic.com.example")]), (vec![], kept));
            assert_eq!(seen(&[("-a", "https://bucket.s3.amazonaws.com")]), (vec![names[1]], kept));
            assert_eq!(seen(&[("--pass-env", "MYCORP_TOKEN"), ("--pass-env", "DATABASE_PASSWORD")]), (names[2..].to_vec(), kept));
            assert_eq!(seen(&[("--pass-env", "*")]), (names.to_vec(), kept));
            assert_eq!(seen(&[("-p", &listed.to_string_lossy())]), (vec![names[3]], [false; 4]));
            assert_eq!(seen(&[("-p", &bound.to_string_lossy())]), (vec![names[3]], kept));
        }
    }

    fn a_credential_of_a_certain_form_stays_outside_whatever_it_is_called(lab) {
        let tail = "Kq7vT2mXz9LrB4nWcY8dHsP3gJ5fA6eQ1uZx0VtRkM7yNb2C";
        let of = |begin: &str, bytes: usize| format!("{begin}{}", tail.get(..bytes).unwrap_or_default());
        let rows = [
            ("MINE", of("ghp_", 36)),
            ("LINE", format!("curl -H 'x: {}' x", of("gho_", 36))),
            ("MODEL", of("sk-ant-api03-", 48)),
            ("CLOUD", "AKIAQ7M2ZXLRB4NWCY3D".to_owned()),
            ("SHORT", of("ghp_", 30)),
            ("WITHIN", format!("xghp_{}", tail.chars().rev().take(36).collect::<String>())),
            ("EMPTY", format!("ghp_{}", "x".repeat(36))),
        ];
        for identity in Identity::all() {
            let seen = |options: &[(&str, &str)]| {
                let sandbox = rows.iter().fold(lab.sandbox(identity), |sandbox, (name, value)| sandbox.environment(name, value));
                let sandbox = options.iter().fold(sandbox, |sandbox, (name, value)| sandbox.option(name, value));
                let outcome = sandbox.run(&words(&["env"]));
                assert_eq!(outcome.code, Some(0), "{outcome}");
                assert!(!outcome.stderr.contains(tail.get(..20).unwrap_or_default()), "{outcome}");
                let has = |name: &str| outcome.stdout.lines().any(|line| line.starts_with(&format!("{name}=")));
                let kept = rows.iter().map(|(name, _)| *name).filter(|name| has(name)).collect::<Vec<_>>();
                for (name, _) in &rows {
                    assert!(has(name) || outcome.stderr.contains(name), "{name}: {outcome}");
                }
                kept
            };
            let none = ["SHORT", "WITHIN", "EMPTY"];
            let with = |more: &[&'static str]| [more, &none].concat();
            assert_eq!(seen(&[]), none, "{identity:?}");
            assert_eq!(seen(&[("--pass-env", "LINE")]), with(&["LINE"]), "{identity:?}");
            assert_eq!(seen(&[("-a", "https://api.github.com")]), with(&["MINE", "LINE"]), "{identity:?}");
            assert_eq!(seen(&[("-a", "https://api.anthropic.com")]), with(&["MODEL"]), "{identity:?}");
            assert_eq!(seen(&[("-a", "https://s3.eu-central-1.amazonaws.com")]), with(&["CLOUD"]), "{identity:?}");
        }
    }

    fn a_credential_is_withheld_by_every_name_it_has(lab) {
        let secret = "Kq7vT2mXz9LrB4nWcY8dHsP3";
        for identity in Identity::all() {
            let seen = |options: &[(&str, &str)]| {
                let sandbox = lab.sandbox(identity).environment("GH_TOKEN", secret).environment("MINE", secret);
                let sandbox = sandbox.environment("LINE", &format!("with {secret} as it is"));
                let sandbox = sandbox.environment("NEAR", "Kq7vT2mXz9LrB4nWcY8dHsP4");
                let sandbox = options.iter().fold(sandbox, |sandbox, (name, value)| sandbox.option(name, value));
                let outcome = sandbox.run(&words(&["env"]));
                assert_eq!(outcome.code, Some(0), "{outcome}");
                assert!(!outcome.stderr.contains(secret), "{outcome}");
                let has = |name: &str| outcome.stdout.lines().any(|line| line.starts_with(&format!("{name}=")));
                ["GH_TOKEN", "MINE", "LINE", "NEAR"].map(has)
            };
            assert_eq!(seen(&[]), [false, false, false, true], "{identity:?}");
            assert_eq!(seen(&[("--pass-env", "LINE")]), [false, false, true, true], "{identity:?}");
            assert_eq!(seen(&[("-a", "https://api.github.com")]), [true; 4], "{identity:?}");
        }
    }

    fn what_the_command_line_sets_is_there_whatever_the_policy_passes(lab) {
        let policy = lab.directory.join("pass.toml");
        std::fs::write(&policy, "[environment]\npass = [\"PATH\"]\nset = { BOTH = \"policy\" }\n").expect("a file");
        for identity in Identity::all() {
            let sandbox = lab.sandbox(identity).option("-p", &policy.to_string_lossy()).environment("KEPT", "2")
                .option("--env", "ADDED=1").option("--env", "BOTH=line").option("--env", "http_proxy=http://192.0.2.1");
            let outcome = sandbox.run(&words(&["env"]));
            let has = |line: &str| outcome.stdout.lines().any(|other| other == line);
            assert!(has("ADDED=1") && has("BOTH=line") && has("http_proxy=http://192.0.2.1"), "{outcome}");
            assert!(!outcome.stdout.contains("KEPT"), "{outcome}");
        }
    }

    fn settings_of_git_among_variables_stay_whole_without_their_secrets(lab) {
        for identity in Identity::all() {
            let outcome = lab.sandbox(identity)
                .environment("GIT_CONFIG_COUNT", "3")
                .environment("GIT_CONFIG_KEY_0", "user.name")
                .environment("GIT_CONFIG_VALUE_0", "Ada")
                .environment("GIT_CONFIG_KEY_1", "http.extraHeader")
                .environment("GIT_CONFIG_VALUE_1", "Authorization: Bearer kV8pq2LmzR41xQw7Tz9uYb3Hn6")
                .environment("GIT_CONFIG_KEY_2", "safe.directory")
                .environment("GIT_CONFIG_VALUE_2", "*")
                .environment("SSHPASS", "kV8pq2LmzR41")
                .run(&shell("git config user.name; git config safe.directory; git config http.extraHeader; echo $SSHPASS"));
            assert_eq!(outcome.stdout, "Ada\n*\n\n", "{identity:?} {outcome}");
        }
    }
}
