//! Shipped policies of tools as their commands see them: what was configured is reached
//! and nothing else, what holds a secret stays closed, and what is handed over in its
//! place holds none. Whether or not the tools themselves are installed.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;
use std::path::Path;

use outgate_harness::origin::Origin;
use outgate_harness::{Identity, Lab, Outcome, Sandbox, lab_tests};

use crate::{bare, home, project, write};

/// A secret beside what is configured.
const SECRET: &str = "a-secret-of-the-users-own-7d20";

/// Runs a script with a shipped policy, in a project.
fn within(lab: &Lab, identity: Identity, preset: &str, script: &str) -> Outcome {
    let work = project(lab, identity, "p");
    let sandbox = Sandbox::plain(lab, identity).within(work);
    let sandbox = sandbox.option("-P", preset);
    sandbox.run(&["sh", "-c", script].map(str::to_owned))
}

/// Configures a tool, with `URL` and `SECRET` in the text.
fn configure(lab: &Lab, identity: Identity, file: &str, text: &str, url: &str) {
    let text = text.replace("URL", url).replace("SECRET", SECRET);
    write(&home(lab, identity).join(file), &text, identity);
}

lab_tests! {
    fn a_cluster_that_is_configured_is_reached_and_its_configuration_stays_as_it_is(lab) {
        let (cluster, other) = (Origin::start(0), Origin::start(0));
        for identity in Identity::all() {
            let url = format!("http://127.0.0.1:{}", cluster.port());
            let text = "clusters:\n- cluster:\n    server: URL\n  name: a\nusers:\n- user:\n    token: SECRET\n";
            configure(lab, identity, ".kube/config", text, &url);
            let script = format!(
                "curl -s -X DELETE {url}/api/v1/pods; curl -s http://127.0.0.1:{}/api; \
                 grep -c server ~/.kube/config; echo x >> ~/.kube/config; touch ~/.kube/more; \
                 mkdir -p $KUBECACHEDIR/x && echo kept",
                other.port()
            );
            let outcome = within(lab, identity, "kubectl", &script);
            assert!(outcome.stdout.ends_with("1\nkept\n"), "{outcome}");
            let kept = fs::read_to_string(home(lab, identity).join(".kube/config")).expect("a file");
            assert!(kept.ends_with("SECRET\n".replace("SECRET", SECRET).as_str()), "{kept}");
            assert!(!home(lab, identity).join(".kube/more").exists(), "{outcome}");
            let arrived = cluster.arrivals();
            assert!(arrived.iter().any(|one| one.line().starts_with("DELETE /api/v1/pods")), "{outcome}");
            assert_eq!(other.connections(), 0, "{outcome}");
        }
    }

    fn mirrors_are_handed_over_in_files_of_the_run_without_what_stands_beside_them(lab) {
        let mirror = Origin::start(0);
        for identity in Identity::all() {
            let host = format!("127.0.0.1:{}", mirror.port());
            let maven = "<settings><mirrors><mirror><id>m</id><mirrorOf>*</mirrorOf><url>http://me:SECRET@URL/maven2</url></mirror></mirrors><servers><server><password>SECRET</password></server></servers></settings>";
            let gems = "---\nBUNDLE_MIRROR__ALL: \"http://me:SECRET@URL/gems\"\nBUNDLE_GEMS__TEST: \"SECRET\"\n";
            configure(lab, identity, ".m2/settings.xml", maven, &host);
            configure(lab, identity, ".bundle/config", gems, &host);
            for (preset, given, closed, path) in [
                ("maven", "${MAVEN_OPTS#-Duser.home=}/.m2/settings.xml", ".m2/settings.xml", "maven2"),
                ("bundler", "$BUNDLE_USER_CONFIG", ".bundle/config", "gems"),
            ] {
                let script = format!(
                    "cat {given}; cat ~/{closed}; env; curl -s http://{host}/{path}/x; curl -s -d x http://{host}/{path}/y"
                );
                let outcome = within(lab, identity, preset, &script);
                assert!(outcome.stdout.contains(&format!("http://{host}/{path}")), "{outcome}");
                assert!(!outcome.stdout.contains(SECRET), "{outcome}");
                let arrived = mirror.arrivals();
                assert!(arrived.iter().any(|one| one.line().starts_with(&format!("GET /{path}/x"))), "{outcome}");
                assert!(arrived.iter().all(|one| !one.line().contains("/y")), "{outcome}");
            }
        }
    }

    fn the_daemon_of_docker_is_reached_with_its_policy_alone_and_that_is_warned_of(lab) {
        // /run is the laboratory's own.
        let socket = UnixListener::bind("/run/docker.sock").expect("a socket");
        let everybody = fs::Permissions::from_mode(0o777);
        fs::set_permissions("/run/docker.sock", everybody).expect("a mode");
        std::thread::spawn(move || {
            for mut stream in socket.incoming().flatten() {
                let mut request = [0; 4096];
                let asked = stream.read(&mut request);
                let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\nfrom-daemon";
                // A caller that is gone needs none.
                drop(asked.and_then(|_| stream.write_all(answer)));
            }
        });
        let ask = "curl -s --unix-socket /var/run/docker.sock http://docker/_ping; mkdir -p $DOCKER_CONFIG; cat ~/.docker/config.json";
        let warning = "`/run/docker.sock` can be root on this machine";
        for identity in Identity::all() {
            configure(lab, identity, ".docker/config.json", "{\"auths\": {\"r\": {\"auth\": \"SECRET\"}}}", "");
            let outcome = within(lab, identity, "docker-cli", ask);
            assert_eq!(outcome.stdout, "from-daemon", "{outcome}");
            assert_eq!(outcome.stderr.matches(warning).count(), 1, "{outcome}");
            assert!(home(lab, identity).join(".cache/outgate/docker").is_dir(), "{outcome}");
            let outcome = within(lab, identity, "dev-tools", ask);
            assert_eq!(outcome.stdout, "", "{outcome}");
        }
    }

    fn what_variables_have_moved_is_shown_and_nothing_beside_it(lab) {
        for identity in Identity::all() {
            let elsewhere = home(lab, identity).join("moved");
            write(&elsewhere.join("cargo/bin/tool"), "the tool\n", identity);
            write(&elsewhere.join("cargo/credentials.toml"), SECRET, identity);
            write(&elsewhere.join("aws.ini"), "[default]\n", identity);
            let place = |name: &str| elsewhere.join(name).to_string_lossy().into_owned();
            let run = |preset: &str, name: &str, value: &str, script: &str| {
                let sandbox = Sandbox::plain(lab, identity).within(project(lab, identity, "p"));
                let sandbox = sandbox.option("-P", preset).environment(name, value);
                sandbox.run(&["sh", "-c", script].map(str::to_owned))
            };
            let cargo = place("cargo");
            let script = format!("cat {cargo}/bin/tool; cat {cargo}/credentials.toml; echo x > {cargo}/bin/tool");
            let outcome = run("dev-tools", "CARGO_HOME", &cargo, &script);
            assert_eq!(outcome.stdout, "the tool\n", "{outcome}");
            let outcome = run("aws", "AWS_CONFIG_FILE", &place("aws.ini"), "cat $AWS_CONFIG_FILE; ls ~");
            assert_eq!(outcome.stdout, "[default]\n", "{outcome}");
            // Whoever names the home directory shows nothing of it.
            let whole = home(lab, identity).to_string_lossy().into_owned();
            let outcome = run("dev-tools", "RUSTUP_HOME", &whole, &format!("ls {whole}"));
            assert_eq!(outcome.stdout, "", "{outcome}");
        }
    }

    fn a_variable_moves_no_grant_to_secrets_or_to_what_other_programs_run(lab) {
        for identity in Identity::all() {
            let home = home(lab, identity);
            for file in [
                ".ssh/id_ed25519", ".gnupg/secret", ".aws/sso/key", ".config/gh/hosts.yml", ".config/unheard/of",
                ".local/share/keyrings/login", ".local/share/other/key", ".cargo/credentials.toml", ".mozilla/key4.db",
                "keys/secring", ".bashrc", "own/tool",
            ] {
                write(&home.join(file), SECRET, identity);
            }
            let place = |name: &str| home.join(name).to_string_lossy().into_owned();
            for link in ["jl", "own/keys"] {
                std::os::unix::fs::symlink(home.join(".ssh"), home.join(link)).expect("a link");
            }
            let run = |preset: &str, variable: &str, value: &str, script: &str| {
                let sandbox = Sandbox::plain(lab, identity).within(project(lab, identity, "p"));
                let sandbox = sandbox.option("-P", preset).environment(variable, value);
                let sandbox = sandbox.environment("GNUPGHOME", &place("keys"));
                sandbox.run(&["sh", "-c", script].map(str::to_owned))
            };
            for (preset, variable, value) in [
                ("dev-tools", "RUSTUP_HOME", ".ssh"), ("dev-tools", "RUSTUP_HOME", ".cargo"),
                ("dev-tools", "JAVA_HOME", "jl"), ("dev-tools", "JAVA_HOME", "jl/."), ("dev-tools", "UV_TOOL_DIR", "own/keys"),
                ("dev-tools", "MISE_DATA_DIR", ".gnupg"), ("dev-tools", "PIPX_HOME", ".local"),
                ("dev-tools", "PIPX_HOME", ".local/share"), ("dev-tools", "PNPM_HOME", ".local/share/other"),
                ("dev-tools", "NVM_DIR", ".config"), ("dev-tools", "NVM_DIR", ".config/unheard"),
                ("dev-tools", "GOROOT", ".mozilla"), ("dev-tools", "ASDF_DATA_DIR", "keys"),
                ("aws", "AWS_CONFIG_FILE", ".ssh/id_ed25519"), ("aws", "AWS_SHARED_CREDENTIALS_FILE", ".bashrc"),
                ("playwright", "PLAYWRIGHT_BROWSERS_PATH", ".ssh"), ("gcloud", "CLOUDSDK_CONFIG", ".ssh"),
                ("gcloud", "CLOUDSDK_CONFIG", ".config"), ("gcloud", "CLOUDSDK_CONFIG", "jl"), ("gcloud", "CLOUDSDK_CONFIG", ".aws"),
                ("gcloud", "CLOUDSDK_CONFIG", "bin"), ("gcloud", "CLOUDSDK_CONFIG", ".config/autostart"), ("gcloud", "CLOUDSDK_CONFIG", ".vim"),
                ("gcloud", "CLOUDSDK_CONFIG", ".config/nvim"),
            ] {
                let path = place(value);
                bare(lab, identity, &home, &format!("test -e '{path}' || mkdir -p '{path}'"));
                let script = format!("cat $(find -L {path} -type f); echo x > {path}/planted && echo wrote");
                let outcome = run(preset, variable, &path, &script);
                assert!(!outcome.stdout.contains(SECRET) && !outcome.stdout.contains("wrote"), "{variable}={value}: {outcome}");
                assert!(!Path::new(&path).join("planted").exists(), "{variable}={value}: {outcome}");
                let said = outcome.stderr.matches(&format!("the variable {variable} moves")).count();
                assert_eq!(said, 1, "{variable}={value}: {outcome}");
            }
            // Agents refuse such a variable.
            for value in [".config/nvim", ".vim", ".config/environment.d", ".config/outgate", ".local/state/outgate", ".gemini", "snap"] {
                bare(lab, identity, &home, &format!("mkdir -p {}", place(value)));
                let script = format!("echo x > {}/planted; echo ran", place(value));
                let outcome = run("claude-code", "CLAUDE_CONFIG_DIR", &place(value), &script);
                assert_eq!(outcome.stdout, "", "{value}: {outcome}");
            }
            // Near twins: a place of the tool's own.
            for (preset, variable, value, script) in [
                ("dev-tools", "RUSTUP_HOME", "own", "cat own/tool"), ("dev-tools", "NVM_DIR", ".config/nvm", "ls -d .config/nvm"),
                ("dev-tools", "JAVA_HOME", ".local/share/mise/installs/java/21", "ls -d .local/share/mise/installs/java/21"),
                ("gcloud", "CLOUDSDK_CONFIG", ".config/gcloud-work", "touch .config/gcloud-work/x && ls -d .config/gcloud-work"),
                ("aws", "AWS_CONFIG_FILE", ".aws/sso/key", "cat .aws/sso/key"),
                ("claude-code", "CLAUDE_CONFIG_DIR", ".claude-work", "touch .claude-work/x && ls -d .claude-work"),
                ("claude-code", "CLAUDE_CONFIG_DIR", ".config/claude", "touch .config/claude/x && ls -d .config/claude"),
            ] {
                let path = place(value);
                bare(lab, identity, &home, &format!("test -e '{path}' || mkdir -p '{path}'"));
                let outcome = run(preset, variable, &path, &format!("cd ~ && {script}"));
                assert!(!outcome.stdout.is_empty(), "{variable}={value}: {outcome}");
                assert!(!outcome.stderr.contains("moves what"), "{variable}={value}: {outcome}");
            }
        }
    }
}
