//! `outgate ca`, and runs that are opened by an authority of the user's own: who
//! can have its key, whom it vouches for, and who trusts it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use outgate_harness::{Identity, Lab, Sandbox, lab_tests};

use crate::origin::{Demand, MARK, Origin};
use crate::{OPEN_FILES, confined, curl, outgate, outgate_with, shell, text, words};

/// An authority that may vouch for these names, in a directory of its own.
fn authority(lab: &Lab, name: &str, permitted: &[&str]) -> PathBuf {
    let directory = lab.folder("authorities", Identity::Own).join(name);
    let place = text(&directory);
    let mut line = vec!["ca", "create", "--name", name, &place];
    for domain in permitted {
        line.extend(["--permit", *domain]);
    }
    let made = outgate(lab, &line);
    assert_eq!(made.code, Some(0), "{made}");
    directory
}

/// A run with it that may ask two hosts.
fn with<'lab>(lab: &'lab Lab, directory: &std::path::Path, origin: &Origin) -> Sandbox<'lab> {
    confined(lab)
        .option("--ca", &text(directory))
        .option("--upstream-ca", &text(&origin.authority))
        .pin(&origin.pin("one.test"))
        .pin(&origin.pin("other.example"))
        .allow("GET https://one.test/**")
        .allow("GET https://other.example/**")
}

fn mode(path: &std::path::Path) -> u32 {
    fs::metadata(path).expect("a file").permissions().mode() & 0o777
}

lab_tests! {
    fn an_authority_is_made_once_and_shown(lab) {
        let directory = authority(lab, "Ann's agents", &["one.test", "10.2.0.0/16"]);
        let place = text(&directory);
        assert_eq!(mode(&directory), 0o700);
        assert_eq!(mode(&directory.join("authority.key")), 0o600);
        let key = fs::read(directory.join("authority.key")).expect("a key");
        let again = outgate(lab, &["ca", "create", &place]);
        assert_eq!(again.code, Some(2), "{again}");
        assert!(again.stderr.contains("is there already, and is not overwritten"), "{again}");
        assert_eq!(fs::read(directory.join("authority.key")).expect("a key"), key);
        let shown = outgate(lab, &["ca", "show", &place]);
        assert_eq!(shown.code, Some(0), "{shown}");
        for part in ["Ann's agents", "one.test, 10.2.0.0/16, and nothing else", "for you alone"] {
            assert!(shown.stdout.contains(part), "{part}: {shown}");
        }
        let json = outgate(lab, &["ca", "show", "--json", &place]);
        let json: serde_json::Value = serde_json::from_str(&json.stdout).expect("JSON");
        assert_eq!(json["permitted"], serde_json::json!(["one.test", "10.2.0.0/16"]));
        assert_eq!(json["usable"], true);
        let all = [&shown.stdout, &again.stderr].map(String::as_str).concat();
        assert!(!all.contains("PRIVATE"), "{all}");
        // Without a directory, where settings are kept; whom it is for is asked.
        let made = outgate(lab, &["ca", "create"]);
        assert_eq!(made.code, Some(0), "{made}");
        assert!(made.stderr.contains("`--permit DOMAIN` limits it"), "{made}");
        let home = lab.folder("home", Identity::Own);
        assert!(home.join(".config/outgate/ca/authority.key").exists());
        for (line, code, part) in [
            (&["ca", "show", "/nowhere"][..], 2, "/nowhere/authority.pem: No such file"),
            (&["ca", "create", "--permit", "a..b", "x"], 2, "neither a domain nor"),
            (&["ca", "create", "--days", "4000", "x"], 2, "4000 is not in 1..=3650"),
            (&["ca", "create", "--name", "", "x"], 2, "a name has 1 to 64"),
            (&["ca", "bundle", "/nowhere"], 125, "/nowhere/authority.pem: No such file"),
            (&["ca"], 2, "Usage: outgate ca"),
        ] {
            let refused = outgate(lab, line);
            assert_eq!(refused.code, Some(code), "{refused}");
            assert!(refused.stderr.contains(part), "{part}: {refused}");
        }
        assert!(!lab.folder("work", Identity::Own).join("x/authority.key").exists());
    }

    fn a_run_is_opened_by_the_users_own_authority(lab) {
        let directory = authority(lab, "own", &["one.test"]);
        let origin = Origin::start(lab, &["one.test", "other.example"], Demand::Nothing);
        let certificate = text(&directory.join("authority.pem"));
        let fetched = with(lab, &directory, &origin).run(&curl("https://one.test/a"));
        assert_eq!(fetched.stdout, format!("{MARK}\n200"), "{fetched}");
        // By nothing else: the certificate alone is enough.
        let copy = lab.folder("given", Identity::Own).join("authority.pem");
        fs::copy(certificate, &copy).expect("a copy");
        let line = words(&["curl", "-sS", "--cacert", &text(&copy), "https://one.test/a"]);
        let fetched = with(lab, &directory, &origin).option("-r", &text(&copy)).run(&line);
        assert_eq!(fetched.stdout, MARK, "{fetched}");
        assert_eq!(origin.visits().len(), 2);
        // Whom it may not vouch for is told so, and never passes unopened.
        let fetched = with(lab, &directory, &origin).run(&curl("https://other.example/a"));
        assert_ne!(fetched.code, Some(0), "{fetched}");
        let part = "the authority may vouch for one.test only, and not for `other.example`";
        assert!(fetched.stderr.contains(part), "{fetched}");
        assert_eq!(origin.visits(), []);
        // A document says the same as the option.
        let policy = lab.directory.join("own.toml");
        let document = format!("[tls]\nauthority = \"{}\"\n", directory.display());
        fs::write(&policy, document).expect("a policy");
        let fetched = confined(lab)
            .option("-p", &text(&policy))
            .option("--upstream-ca", &text(&origin.authority))
            .pin(&origin.pin("one.test"))
            .allow("GET https://one.test/**")
            .run(&words(&["curl", "-sS", "https://one.test/a"]));
        assert_eq!(fetched.stdout, MARK, "{fetched}");
    }

    fn no_command_gets_the_key_of_an_authority(lab) {
        let directory = authority(lab, "own", &[]);
        let origin = Origin::start(lab, &["one.test"], Demand::Nothing);
        let place = text(&directory);
        let around = text(&lab.folder("authorities", Identity::Own));
        let beside = lab.folder("authorities", Identity::Own).join("beside");
        fs::write(&beside, "beside\n").expect("a file");
        let alias = lab.folder("given", Identity::Own).join("alias");
        std::os::unix::fs::symlink(&directory, &alias).expect("a link");
        // Everything that is readable, and every way to it that a name makes.
        let script = format!(
            "cat {around}/beside; cat {place}/authority.key; cat {alias}/authority.key; \
             cat /proc/self/root{place}/authority.key; cd {around}; cat own/authority.key; \
             ln -s {place} /tmp/x 2>/dev/null; cat \"$TMPDIR\"/../*/authority.key; \
             {OPEN_FILES}; \
             cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null | grep -a 'PRIVATE[ ]KEY'; \
             grep -rla 'PRIVATE[ ]KEY' \"$TMPDIR\" 2>/dev/null; true",
            alias = text(&alias),
        );
        for grants in [&["-r", &around][..], &["-r", "/"]] {
            let tried = with(lab, &directory, &origin)
                .option(grants[0], grants[1])
                .run(&shell(&script));
            assert_eq!(tried.code, Some(0), "{tried}");
            assert_eq!(tried.stdout, "beside\n", "{tried}");
            let denied = tried.stderr.matches("Permission denied").count();
            assert!(denied >= 4, "{tried}");
        }
        // What cannot be kept apart from it starts nothing.
        let key = text(&directory.join("authority.key"));
        for (option, path) in [
            ("-r", &place),
            ("-r", &key),
            ("-r", &text(&alias)),
            ("-w", &place),
            ("-w", &around),
            ("-w", &key),
        ] {
            let refused = with(lab, &directory, &origin)
                .option(option, path)
                .run(&shell("echo started"));
            assert_eq!(refused.code, Some(2), "{option} {path}: {refused}");
            assert_eq!(refused.stdout, "", "{refused}");
            assert!(refused.stderr.contains("lies where the command may"), "{refused}");
        }
        // The same file system once more, by another name.
        let second = lab.folder("second", Identity::Own);
        let bound = std::process::Command::new("mount")
            .args(["--bind", &around, &text(&second)])
            .status();
        assert!(bound.is_ok_and(|status| status.success()));
        let refused = with(lab, &directory, &origin)
            .option("-r", &text(&second))
            .run(&shell("echo started"));
        assert_eq!(refused.code, Some(2), "{refused}");
        assert!(refused.stderr.contains("lies where the command may read"), "{refused}");
    }

    /// A run that does not name it would hand it to the next one.
    fn no_command_gets_the_key_of_the_users_own_authority(lab) {
        let home = lab.folder("home", Identity::Own);
        let elsewhere = lab.folder("given", Identity::Own).join("settings");
        for (config, variables) in [
            (home.join(".config"), &[][..]),
            (elsewhere.clone(), &[("XDG_CONFIG_HOME", elsewhere.to_str().expect("UTF-8"))]),
        ] {
            let made = outgate_with(lab, &["ca", "create", "--name", "own"], variables);
            assert_eq!(made.code, Some(0), "{made}");
            let directory = config.join("outgate/ca");
            let (place, around) = (text(&directory), text(config.parent().expect("a folder")));
            fs::write(config.join("beside"), "beside\n").expect("a file");
            let link = |folder: &str| {
                let alias = lab.folder(folder, Identity::Own).join("alias");
                fs::remove_file(&alias).ok();
                std::os::unix::fs::symlink(&directory, &alias).expect("a link");
                text(&alias)
            };
            // In the working directory a command may have laid it.
            let (planted, alias) = (link("work"), link("links"));
            let run = || {
                let variables = variables.iter();
                variables.fold(confined(lab), |run, (name, value)| run.environment(name, value))
            };
            let script = format!(
                "grep -c CERTIFICATE {place}/authority.pem; cat {place}/authority.key; \
                 cat {alias}/authority.key; cat /proc/self/root{place}/authority.key; \
                 (cd {place} && cat authority.key); ln {place}/authority.key k; \
                 mv {place}/authority.key k; cp {place}/authority.key k; cat k; {OPEN_FILES}; true"
            );
            for (option, path) in [("-r", around.as_str()), ("-r", "/"), ("-r", &place), ("-r", &alias)] {
                for flags in [&[][..], &["--clean-env"]] {
                    let run = flags.iter().fold(run(), |run, flag| run.flag(flag));
                    let tried = run.option(option, path).run(&shell(&script));
                    assert_eq!(tried.code, Some(0), "{path}: {tried}");
                    assert_eq!(tried.stdout, "2\n", "{path}: {tried}");
                    let denied = tried.stderr.matches("denied").count();
                    assert!(denied >= 5, "{path}: {tried}");
                }
            }
            let refused = run().option("-r", &planted).run(&shell("echo started"));
            assert_eq!((refused.code, refused.stdout.as_str()), (Some(2), ""), "{refused}");
            let near = run().option("-r", &around).run(&words(&["cat", &text(&config.join("beside"))]));
            assert_eq!(near.stdout, "beside\n", "{near}");
            // What cannot be kept apart from it starts nothing.
            let key = text(&directory.join("authority.key"));
            for (option, path) in [("-r", &key), ("-w", &key), ("-w", &place), ("-w", &around)] {
                let refused = run().option(option, path).run(&shell("echo started"));
                assert_eq!(refused.code, Some(2), "{option} {path}: {refused}");
                assert_eq!(refused.stdout, "", "{refused}");
                let part = "outgate ca: your authority's key";
                assert!(refused.stderr.contains(part), "{refused}");
                assert!(refused.stderr.contains("lies where the command may"), "{refused}");
            }
            let second = lab.folder("second", Identity::Own);
            let bound = std::process::Command::new("mount")
                .args(["--bind", &around, &text(&second)])
                .status();
            assert!(bound.is_ok_and(|status| status.success()));
            let refused = run().option("-r", &text(&second)).run(&shell("echo started"));
            assert_eq!(refused.code, Some(2), "{refused}");
            assert!(refused.stderr.contains("lies where the command may read"), "{refused}");
            // Who denies it may write around it, and the files of settings as well.
            let policy = lab.directory.join("deny.toml");
            let document = format!(
                "[filesystem]\nread = [\"/usr\", \"/bin\", \"/lib\", \"/lib64\", \"/etc\"]\nwrite = [\"{around}\"]\ndeny = [\"{place}\"]\n"
            );
            fs::write(&policy, document).expect("a policy");
            let near = run()
                .option("-p", &text(&policy))
                .run(&shell(&format!("cat {}/beside; cat {key}", text(&config))));
            assert_eq!(near.stdout, "beside\n", "{near}");
        }
    }

    fn a_key_that_others_can_have_starts_nothing(lab) {
        let directory = authority(lab, "own", &[]);
        let key = directory.join("authority.key");
        let origin = Origin::start(lab, &["one.test"], Demand::Nothing);
        let refused = |part: &str| {
            let refused = with(lab, &directory, &origin).run(&shell("echo started"));
            assert_eq!(refused.code, Some(125), "{refused}");
            assert_eq!(refused.stdout, "", "{refused}");
            assert!(refused.stderr.contains(part), "{part}: {refused}");
            let shown = outgate(lab, &["ca", "show", &text(&directory)]);
            assert_eq!(shown.code, Some(1), "{shown}");
            assert!(shown.stdout.contains(part), "{part}: {shown}");
        };
        for mode in [0o640, 0o604, 0o660] {
            fs::set_permissions(&key, fs::Permissions::from_mode(mode)).expect("a mode");
            refused("others may use this key");
        }
        fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).expect("a mode");
        fs::hard_link(&key, lab.folder("work", Identity::Own).join("k")).expect("a link");
        refused("a second name elsewhere");
        fs::remove_file(&key).expect("a key");
        let text = "No such file";
        refused(text);
        // The key of another authority.
        let other = authority(lab, "other", &[]);
        fs::copy(other.join("authority.key"), &key).expect("a copy");
        refused("is the certificate of another key");
    }

    fn a_shared_gateway_has_its_operators_authority(lab) {
        let directory = authority(lab, "own", &[]);
        let origin = Origin::start(lab, &["one.test"], Demand::Nothing);
        let socket = text(&lab.folder("gate", Identity::Own).join("gate"));
        let mut gateway = std::process::Command::new(lab.tools.programs.join("outgate"));
        gateway
            .args(["gateway", "--listen", &socket, "--ca", &text(&directory)])
            .args(["--upstream-ca", &text(&origin.authority)])
            .args(["-a", "GET https://one.test/**", "--resolve", &origin.pin("one.test")])
            .env("HOME", lab.folder("home", Identity::Own))
            .stdin(std::process::Stdio::null());
        let limit = std::time::Duration::from_mins(1);
        let gateway = outgate_harness::Running::start(&mut gateway, limit);
        let there = outgate_harness::eventually(limit, || std::path::Path::new(&socket).exists());
        assert!(there, "{}", gateway.errors());
        let copy = lab.folder("given", Identity::Own).join("authority.pem");
        fs::copy(directory.join("authority.pem"), &copy).expect("a copy");
        let line = words(&["curl", "-sS", "--cacert", &text(&copy), "https://one.test/a"]);
        let shared = || confined(lab).option("--gateway", &socket).option("-r", &text(&copy));
        let fetched = shared().run(&line);
        assert_eq!(fetched.stdout, MARK, "{fetched} {}", gateway.errors());
        // Its runs bring none.
        let refused = shared().option("--ca", &text(&directory)).run(&line);
        assert_eq!(refused.code, Some(2), "{refused}");
        assert!(refused.stderr.contains("its operator names the authority"), "{refused}");
        gateway.signal(nix::sys::signal::Signal::SIGTERM);
        gateway.finish();
    }

    fn other_programs_are_told_what_to_trust(lab) {
        let directory = authority(lab, "own", &["one.test"]);
        let place = text(&directory);
        let certificate = fs::read_to_string(directory.join("authority.pem")).expect("it");
        let bundle = outgate(lab, &["ca", "bundle", &place]);
        assert!(bundle.stdout.ends_with(&certificate), "{bundle}");
        let count = |text: &str| text.matches("-----BEGIN CERTIFICATE-----").count();
        let system = fs::read_to_string("/etc/ssl/certs/ca-certificates.crt").unwrap_or_default();
        assert_eq!(count(&bundle.stdout), count(&system) + 1);
        let file = lab.directory.join("bundle.pem");
        for _ in 0..2 {
            let written = outgate(lab, &["ca", "bundle", "-o", &text(&file), &place]);
            assert_eq!((written.code, written.stdout.as_str()), (Some(0), ""), "{written}");
            assert_eq!(fs::read_to_string(&file).expect("a bundle"), bundle.stdout);
        }
        // A shell takes it as it is; called again, it says the same.
        let own = lab.directory.join("own roots.pem");
        fs::write(&own, certificate.replace("own", "")).expect("a file");
        let own = text(&own);
        let variables = [("CURL_CA_BUNDLE", own.as_str()), ("PHP_INI_SCAN_DIR", ":/etc/php.d")];
        let first = outgate_with(lab, &["ca", "env", &place], &variables);
        assert_eq!(first.code, Some(0), "{first}");
        let script = format!("{}\nprintf '%s' \"$SSL_CERT_FILE\"", first.stdout);
        let shell = std::process::Command::new("sh").args(["-c", &script]).output();
        let shell = shell.expect("a shell");
        assert!(shell.status.success(), "{shell:?}");
        let bundle_file = String::from_utf8(shell.stdout).expect("a path");
        let text = fs::read_to_string(bundle_file).expect("a bundle");
        assert!(text.ends_with(&certificate));
        let json = outgate_with(lab, &["ca", "env", "--json", &place], &variables);
        let json: serde_json::Value = serde_json::from_str(&json.stdout).expect("JSON");
        let set: Vec<(String, String)> = json
            .as_object()
            .expect("an object")
            .iter()
            .map(|(name, value)| (name.clone(), value.as_str().expect("a text").to_owned()))
            .collect();
        assert!(set.len() > 15, "{set:?}");
        let set: Vec<(&str, &str)> = set.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
        let again = outgate_with(lab, &["ca", "env", &place], &set);
        let own_text = fs::read_to_string(own).expect("a file");
        let bundled = json["CURL_CA_BUNDLE"].as_str().expect("a path");
        // What the user had named is known no more, and nothing was doubled.
        assert_ne!(fs::read_to_string(bundled).expect("a bundle"), own_text);
        let lines = |said: &str| said.lines().count();
        assert_eq!(lines(&again.stdout), lines(&first.stdout), "{again}");
        let bundled = fs::read_to_string(json["SSL_CERT_FILE"].as_str().expect("a path"));
        assert_eq!(count(&bundled.expect("a bundle")), count(&system) + 1);
    }
}
