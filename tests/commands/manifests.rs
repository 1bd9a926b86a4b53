//! `outgate up` and `outgate trust`: a project's manifest grants nothing that its user has not
//! read and accepted, whoever writes it, whatever lies in its place, and whenever it changes.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use outgate_harness::{Identity, Lab, lab_tests};

use crate::Said;

/// Longest time of one call, whatever lies there.
const CALL_SECONDS_MAX: u64 = 20;

/// A home with a project in it.
pub(crate) struct Project<'l> {
    lab: &'l Lab,
    identity: Identity,
    home: PathBuf,
    pub(crate) directory: PathBuf,
    state: PathBuf,
}

impl<'l> Project<'l> {
    pub(crate) fn new(lab: &'l Lab, identity: Identity, name: &str) -> Self {
        let home = lab.folder(name, identity);
        let project = Self {
            lab,
            identity,
            directory: home.join("src/p"),
            state: lab.folder(&format!("{name}-state"), identity),
            home,
        };
        project.folder("src/p/deep");
        project.folder("out");
        project
    }

    /// Makes directories of the account's below the home.
    pub(crate) fn folder(&self, path: &str) {
        let mut at = self.home.clone();
        for part in Path::new(path) {
            at.push(part);
            fs::create_dir_all(&at).expect("a directory");
            fs::set_permissions(&at, fs::Permissions::from_mode(0o755)).expect("a mode");
            self.own(&at);
        }
    }

    fn own(&self, path: &Path) {
        if self.identity == Identity::Nobody {
            let id = Some(self.identity.uid());
            std::os::unix::fs::lchown(path, id, id).expect("chown");
        }
    }

    /// Writes a file of the account's into the project.
    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.directory.join(name);
        fs::write(&path, text).expect("a file");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("a mode");
        self.own(&path);
        path
    }

    pub(crate) fn call(&self, words: &[&str]) -> Said {
        self.call_in(&self.directory, words)
    }

    pub(crate) fn call_in(&self, directory: &Path, words: &[&str]) -> Said {
        let mut all = self.identity.prefix();
        all.push(self.outgate());
        all.extend(words.iter().map(|word| (*word).to_owned()));
        self.started(directory, &all)
    }

    fn outgate(&self) -> String {
        self.lab
            .tools
            .programs
            .join("outgate")
            .display()
            .to_string()
    }

    fn started(&self, directory: &Path, all: &[String]) -> Said {
        let begun = Instant::now();
        let (program, arguments) = all.split_first().expect("a program");
        let output = Command::new(program)
            .args(arguments)
            .current_dir(directory)
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", &self.home)
            .env("XDG_STATE_HOME", &self.state)
            .stdin(Stdio::null())
            .output()
            .expect("outgate starts");
        let said = Said {
            status: output.status.code().expect("an exit status"),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        };
        let limit = Duration::from_secs(CALL_SECONDS_MAX);
        assert!(begun.elapsed() < limit, "{all:?} took too long: {said:?}");
        said
    }

    /// Accepts what stands there.
    #[track_caller]
    fn accept(&self) {
        let said = self.call(&["trust", "--yes"]);
        assert_eq!(said.status, 0, "{said:?}");
    }
}

/// A manifest whose command writes where nobody has granted it.
const GRANTING: &str = "[run.t]\ncommand = [\"sh\", \"-c\", \"echo it >> ~/out/marker\"]\n\
                        [run.t.filesystem]\nwrite = [\"~/out\"]\n";

/// One whose command writes what the manifest extends.
const WRITING: &str = r#"[run.t]
command = ["sh", "-c", 'echo it >> ~/out/marker; printf "allow = [\"*\"]\n" > ci/more.toml']
[run.t.filesystem]
write = ["~/out"]
"#;

/// What lays something in the place of a file.
type Lay<'l> = &'l dyn Fn(&Path);

lab_tests! {
    fn an_unread_manifest_narrows_and_grants_nothing(lab) {
        for identity in Identity::all() {
            let own = Project::new(lab, identity, "unread");
            own.write("secret.txt", "the secret\n");
            own.write("outgate.toml",
                "[filesystem]\ndeny = [\"./secret.txt\"]\n\
                 [run.t]\ncommand = [\"sh\", \"-c\", \"pwd; cat secret.txt; echo ran $*\", \"sh\"]\n");
            // Found upward, run where it lies, with arguments from here.
            let said = own.call_in(&own.directory.join("deep"), &["up", "t", "--", "x", "-y"]);
            assert_eq!(said.status, 0, "{said:?}");
            let place = own.directory.canonicalize().expect("a place");
            assert_eq!(said.stdout, format!("{}\nran x -y\n", place.display()), "{said:?}");
            assert!(said.stderr.contains("secret.txt") && said.stderr.contains("`t` of "), "{said:?}");
            own.write("more.toml", "allow = [\"evil.example\"]\n");
            let marker = own.home.join("out/marker");
            for grant in [
                "allow = [\"evil.example\"]\n", "extends = [\"dev-tools\"]\n", "extends = []\n",
                "extends = [\"./more.toml\"]\n", "listen = [\"8000\"]\n", "strict = false\n",
                "environment = { set = { PATH = \"/x\" } }\n", "filesystem = { write = [\"~/out\"] }\n",
                "pin = [{ host = \"a.example\", address = \"192.0.2.1\" }]\n", "inspect = { mode = \"off\" }\n",
                "secret = [{ name = \"A\", from = \"cmd:touch out/marker\", hosts = [\"a.example\"] }]\n",
                "audit = { file = \"/dev/null\" }\n", "tls = { intercept = \"never\" }\n",
            ] {
                let command = "command = [\"sh\", \"-c\", \"echo it >> ~/out/marker; echo ran\"]\n";
                // Said for all commands, and for this one.
                for text in [format!("{grant}[run.t]\n{command}"), format!("[run.t]\n{command}{grant}")] {
                    own.write("outgate.toml", &text);
                    let said = own.call(&["up"]);
                    assert_eq!(said.status, 2, "{text}: {said:?}");
                    assert!(said.stderr.contains("`outgate trust`"), "{text}: {said:?}");
                    assert!(!said.stdout.contains("ran") && !marker.exists(), "{text}: {said:?}");
                }
            }
        }
    }

    fn what_was_accepted_is_what_runs_and_a_change_asks_again(lab) {
        for identity in Identity::all() {
            let own = Project::new(lab, identity, "accepted");
            let marker = own.home.join("out/marker");
            own.folder("src/p/ci");
            own.write("ci/more.toml", "allow = [\"http://a.example\"]\n");
            let text = format!("extends = [\"./ci/more.toml\"]\n{GRANTING}");
            own.write("outgate.toml", &text);
            // Nobody can be asked, so nothing is accepted.
            let said = own.call(&["trust"]);
            assert_eq!(said.status, 2, "{said:?}");
            for shown in ["~/out", "http://a.example", "ci/more.toml:1:11", "t: sh -c", "1 rule that allows, 1 path to write"] {
                let shown = shown.replace('~', &own.home.display().to_string());
                assert!(said.stdout.contains(&shown), "{shown}: {said:?}");
            }
            assert_eq!(own.call(&["up"]).status, 2);
            own.accept();
            let said = own.call(&["up"]);
            assert_eq!((said.status, marker.exists()), (0, true), "{said:?}");
            // Its command writes the project, and what it writes there is not accepted.
            let changed = text.replace(GRANTING, WRITING);
            own.write("outgate.toml", &changed);
            own.accept();
            let said = own.call(&["up"]);
            assert_eq!(said.status, 0, "{said:?}");
            let written = fs::read_to_string(own.directory.join("ci/more.toml")).expect("a file");
            assert_eq!(written, "allow = [\"*\"]\n");
            let said = own.call(&["up"]);
            assert_eq!(said.status, 2, "{said:?}");
            assert!(said.stderr.contains("not as you accepted it"), "{said:?}");
            let said = own.call(&["trust"]);
            for shown in ["since you accepted it", "may now, and might not before", "--- ci/more.toml",
                "-allow = [\"http://a.example\"]", "+allow = [\"*\"]"] {
                assert!(said.stdout.contains(shown), "{shown}: {said:?}");
            }
            assert!(own.call(&["trust", "--list"]).stdout.contains("changed since"));
            // A change asks again, also one that grants nothing.
            own.write("outgate.toml", "[run.t]\ncommand = [\"true\"]\n");
            assert_eq!(own.call(&["up"]).status, 2);
            own.write("outgate.toml", &changed);
            // As it was, it is accepted still; taken back, it is not.
            own.write("ci/more.toml", "allow = [\"http://a.example\"]\n");
            assert!(own.call(&["trust", "--list"]).stdout.contains("as accepted"));
            assert_eq!(own.call(&["up"]).status, 0);
            own.write("ci/more.toml", "allow = [\"http://a.example\"]\n");
            assert_eq!(own.call(&["trust", "--revoke"]).status, 0);
            assert_eq!(own.call(&["trust", "--revoke"]).status, 1);
            assert_eq!(own.call(&["up"]).status, 2);
            // What is kept is for its user alone.
            own.accept();
            let kept = own.state.join("outgate/accepted");
            let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o7777;
            assert_eq!(mode(&kept), 0o700);
            for entry in fs::read_dir(&kept).expect("entries").flatten() {
                assert_eq!(mode(&entry.path()), 0o600);
            }
            // A directory that others may write says nothing.
            fs::set_permissions(&kept, fs::Permissions::from_mode(0o777)).expect("a mode");
            let said = own.call(&["up"]);
            assert_eq!(said.status, 2, "{said:?}");
            assert!(said.stderr.contains("not yours alone"), "{said:?}");
        }
    }

    fn whatever_lies_in_the_place_of_a_manifest_is_told_and_never_waited_for(lab) {
        let fifo = |path: &Path| {
            let mode = nix::sys::stat::Mode::from_bits_truncate(0o600);
            nix::unistd::mkfifo(path, mode).expect("a pipe");
        };
        let large = format!("{}[run.t]\ncommand = [\"true\"]\n", "# x\n".repeat(70_000));
        let odd: [(&str, Lay<'_>); 8] = [
            ("is a link", &|path| symlink("real.toml", path).expect("a link")),
            ("is a link", &|path| symlink("/dev/zero", path).expect("a link")),
            ("no regular file", &fifo),
            ("no regular file", &|path| fs::create_dir(path).expect("a directory")),
            ("more than 262144 bytes", &|path| fs::write(path, &large).expect("a file")),
            ("written by others", &|path| {
                fs::write(path, "").expect("a file");
                fs::set_permissions(path, fs::Permissions::from_mode(0o664)).expect("a mode");
            }),
            ("written by others", &|path| {
                fs::write(path, "").expect("a file");
                fs::set_permissions(path, fs::Permissions::from_mode(0o602)).expect("a mode");
            }),
            ("invalid", &|path| fs::write(path, b"\xff\xfe").expect("a file")),
        ];
        for identity in Identity::all() {
            let own = Project::new(lab, identity, "odd");
            own.write("real.toml", GRANTING);
            let path = own.directory.join("outgate.toml");
            // As the manifest itself, and as what it extends.
            for (told, lay) in &odd {
                for name in ["outgate.toml", "beside.toml"] {
                    let place = own.directory.join(name);
                    if name == "beside.toml" {
                        own.write("outgate.toml", &format!("extends = [\"./beside.toml\"]\n{GRANTING}"));
                    }
                    lay(&place);
                    own.own(&place);
                    for words in [&["up"][..], &["trust", "--yes"], &["trust", "--revoke"], &["trust", "--list"]] {
                        let said = own.call(words);
                        if words.len() == 1 || words.contains(&"--yes") {
                            assert_eq!(said.status, 2, "{told} {name} {words:?}: {said:?}");
                            assert!(said.stderr.contains(told), "{told} {name} {words:?}: {said:?}");
                        }
                    }
                    fs::remove_file(&place).or_else(|_| fs::remove_dir(&place)).expect("removed");
                    fs::remove_file(&path).ok();
                }
            }
            if identity == Identity::Own && Identity::all().len() > 1 {
                own.write("outgate.toml", GRANTING);
                chown(&path, Some(1234), Some(1234)).expect("chown");
                let said = own.call(&["trust", "--yes"]);
                assert_eq!(said.status, 2, "{said:?}");
                assert!(said.stderr.contains("belongs to another user"), "{said:?}");
            }
        }
    }

    fn files_elsewhere_and_names_that_pass_for_others_are_refused(lab) {
        for identity in Identity::all() {
            let own = Project::new(lab, identity, "elsewhere");
            fs::write(own.home.join("up.toml"), "allow = [\"*\"]\n").expect("a file");
            own.write("preset `dev-tools`.toml", "[filesystem]\nwrite = [\"~/.ssh\"]\n");
            let link = own.directory.join("link");
            symlink("..", &link).expect("a link");
            let absolute = own.home.join("up.toml").display().to_string();
            for name in [
                "../../up.toml", "./deep/../../../up.toml", &absolute, "~/up.toml", "./preset `dev-tools`.toml",
                "./link/p/real.toml", "./a\\nb.toml", ".", "./", "link/../real.toml",
            ] {
                own.write("outgate.toml", &format!("extends = [\"{name}\"]\n{GRANTING}"));
                let said = own.call(&["trust", "--yes"]);
                assert_eq!(said.status, 2, "{name}: {said:?}");
                assert_eq!(own.call(&["up"]).status, 2, "{name}");
            }
            // What extends itself comes to an end.
            own.write("a.toml", "extends = [\"./b.toml\", \"./a.toml\"]\n");
            own.write("b.toml", "extends = [\"./a.toml\"]\n");
            own.write("outgate.toml", &format!("extends = [\"./a.toml\"]\n{GRANTING}"));
            own.accept();
            assert_eq!(own.call(&["up"]).status, 0);
            // Nothing that a terminal obeys comes out of it.
            own.write("outgate.toml", "[run.t]\ncommand = [\"sh\", \"\\u001b[2J\\u009b\\u202e\"]\nabout = \"2J\\u202e\"\n\
                environment = { set = { A = \"\\u001b]0;x\\u0007\" } }\nallow = [\"a.example\"]\n");
            let said = own.call(&["trust"]);
            let text = format!("{}{}", said.stdout, said.stderr);
            assert!(said.stdout.contains("a.example"), "{said:?}");
            assert!(text.chars().all(|sign| sign == '\n' || (' '..='~').contains(&sign)), "{said:?}");
        }
    }

    fn a_manifest_is_looked_for_no_further_than_ones_own_directories(lab) {
        for identity in Identity::all() {
            let own = Project::new(lab, identity, "search");
            own.write("outgate.toml", "[run.t]\ncommand = [\"echo\", \"found\"]\n");
            own.folder("src/p/deep/er/and/deeper");
            let deep = own.directory.join("deep/er/and/deeper");
            assert_eq!(own.call_in(&deep, &["up"]).stdout, "found\n");
            let between = own.directory.join("deep/er");
            fs::set_permissions(&between, fs::Permissions::from_mode(0o1777)).expect("a mode");
            let said = own.call_in(&deep, &["up"]);
            assert_eq!(said.status, 2, "{said:?}");
            assert!(said.stderr.contains("where anybody may write"), "{said:?}");
            fs::set_permissions(&between, fs::Permissions::from_mode(0o755)).expect("a mode");
            if Identity::all().len() > 1 {
                chown(&between, Some(1234), Some(1234)).expect("chown");
                let said = own.call_in(&deep, &["up"]);
                assert_eq!(said.status, 2, "{said:?}");
                assert!(said.stderr.contains("another user's"), "{said:?}");
            }
            fs::remove_file(own.directory.join("outgate.toml")).expect("removed");
            let said = own.call(&["up", "t"]);
            assert_eq!(said.status, 2, "{said:?}");
            assert!(said.stderr.contains("there is no `outgate.toml`"), "{said:?}");
        }
    }

    fn no_command_reaches_what_was_accepted(lab) {
        for identity in Identity::all() {
            let mut own = Project::new(lab, identity, "within");
            own.state = own.home.join(".local/state");
            let audit = lab.folder("within-record", identity).join("record.jsonl");
            let audit = audit.display().to_string();
            let home = own.home.display().to_string();
            own.write("outgate.toml", GRANTING);
            // With nothing accepted yet, and with something.
            for _ in 0..2 {
                let granted = ["run", "--audit", &audit, "-w", &home, "--", "true"];
                let said = own.call(&granted);
                assert_eq!(said.status, 2, "{said:?}");
                assert!(said.stderr.contains("what you accepted of manifests"), "{said:?}");
                own.accept();
            }
            let kept = own.state.join("outgate/accepted");
            let script = format!("ls {0}; cat {0}/*; echo x > {0}/x; mv {0} {0}.old; rm -r {0}", kept.display());
            let said = own.call(&["run", "--audit", &audit, "-r", &home, "--", "sh", "-c", &script]);
            assert!(!said.stdout.contains("outgate accepted"), "{said:?}");
            assert!(own.call(&["trust", "--list"]).stdout.contains("as accepted"));
            // Nor by outgate itself.
            assert_eq!(own.call(&["trust", "--revoke"]).status, 0);
            let outgate = own.outgate();
            let programs = own.lab.tools.programs.display().to_string();
            for script in [
                format!("{outgate} trust --yes"),
                format!("unset OUTGATE_DENIALS; {outgate} trust --yes"),
                format!("{outgate} up"),
            ] {
                let said = own.call(&["run", "--audit", &audit, "-r", &programs, "--", "sh", "-c", &script]);
                assert_ne!(said.status, 0, "{script}: {said:?}");
                let listed = own.call(&["trust", "--list"]);
                assert_eq!((listed.status, listed.stdout.as_str()), (0, ""), "{script}: {said:?}");
            }
            assert!(!own.home.join("out/marker").exists());
        }
    }

    fn a_manifest_that_is_swapped_while_it_is_read_grants_nothing(lab) {
        for identity in Identity::all() {
            let own = Project::new(lab, identity, "swapped");
            let calm = own.write("calm.toml", "[run.t]\ncommand = [\"true\"]\nallow = [\"a.example\"]\n");
            own.write("evil.toml", GRANTING);
            fs::copy(&calm, own.directory.join("outgate.toml")).expect("a copy");
            own.own(&own.directory.join("outgate.toml"));
            own.accept();
            let script = "while :; do for f in evil calm; do cp -p $f.toml x.toml; mv x.toml outgate.toml; done; done";
            let mut all = own.identity.prefix();
            all.extend(["sh", "-c", script].map(str::to_owned));
            let (program, arguments) = all.split_first().expect("a program");
            let mut swapping = Command::new(program)
                .args(arguments)
                .current_dir(&own.directory)
                .spawn()
                .expect("a shell");
            let mut refused = 0;
            for _ in 0..40 {
                let said = own.call(&["up"]);
                let is_refused = said.status == 2;
                assert!(is_refused || said.status == 0, "{said:?}");
                refused += i32::from(is_refused);
            }
            swapping.kill().expect("ended");
            swapping.wait().expect("ended");
            assert!(!own.home.join("out/marker").exists(), "{refused} were refused");
        }
    }

    fn every_grant_of_a_manifest_is_shown_before_it_is_accepted(lab) {
        for identity in Identity::all() {
            let own = Project::new(lab, identity, "words");
            let home = own.home.display().to_string();
            for (text, shown) in [
                ("allow = [\"GET http://a.example/x\"]", "GET http://a.example/x"),
                ("only = [\"http://a.example/x\"]", "http://a.example/x"),
                ("filesystem = { read = [\"~/out\"] }", "/out"),
                ("filesystem = { write = [\"~/out\"] }", "/out"),
                ("filesystem = { new = { \"~/out/n\" = \"text\" } }", "/out/n"),
                ("filesystem = { new = { \"~/out/n\" = \"text\" } }", "made when it is missing"),
                ("filesystem = { write = [\"~/out\"], moved = { ODD_PLACE = \"~/out\" } }", "~/out to where $ODD_PLACE says"),
                ("pin = [{ host = \"a.example\", address = \"192.0.2.9\" }]", "192.0.2.9"),
                ("secret = [{ name = \"KEY\", from = \"cmd:rm -rf x\", hosts = [\"a.example\"] }]", "rm -rf x"),
                ("secret = [{ name = \"KEY\", from = \"file:~/key\", hosts = [\"a.example\"] }]", "key"),
                ("secret = [{ name = \"KEY\", from = \"file:~/key\", hosts = [\"a.example\"], in = [\"query\", \"content\"] }]", "also in content, query"),
                ("listen = [\"0.0.0.0:8080\"]", "0.0.0.0:8080"),
                ("dns = { servers = [\"192.0.2.53\"] }", "192.0.2.53"),
                ("dns = { pin = \"ttl\" }", "ttl"),
                ("tls = { intercept = \"never\" }", "never"),
                ("tls = { client = [{ host = \"a.example\", certificate = \"c.pem\" }] }", "c.pem"),
                ("tls = { authority = \"~/ca\" }", "/ca"),
                ("inspect = { mode = \"off\" }", "off"),
                ("inspect = { unscannable = \"record\" }", "record"),
                ("inspect = { known = \"off\" }", "known"),
                ("inspect = { canaries = \"off\" }", "canaries"),
                ("inspect = { known_file = \"~/list\" }", "/list"),
                ("inspect = { value = [{ name = \"TOKEN\", hosts = [\"b.example\"] }] }", "b.example"),
                ("inspect = { allow = [{ detector = \"github-token\", host = \"b.example\" }] }", "b.example"),
                ("inspect = { scope = [{ detector = \"github-token\", hosts = [\"b.example\"] }] }", "b.example"),
                ("inspect = { detector = [{ id = \"github-token\", mode = \"off\" }] }", "github-token"),
                ("environment = { set = { LD_PRELOAD = \"/x.so\" } }", "/x.so"),
                ("environment = { pass = [\"TOKEN\"] }", "TOKEN"),
                ("limits = { processes = 9999 }", "9999"),
                ("audit = { file = \"/dev/null\" }", "/dev/null"),
                ("audit = { full = \"drop\" }", "drop"),
                ("arguments = [{ program = \"sh\", first = [\"--odd\"] }]", "--odd"),
                ("allow = [{ rule = \"http://a.example\", inspect = \"off\" }]", "inspect = off"),
                ("extends = [\"github\"]", "github.com"),
            ] {
                own.write("outgate.toml", &format!("[run.t]\ncommand = [\"true\"]\n{text}\n"));
                let said = own.call(&["trust"]);
                // Keys and certificates that are named must be there for a run, not to be read.
                let told = said.stdout.replace(&home, "~");
                assert!(told.contains(shown), "{text}: {said:?}");
                assert!(said.stderr.contains("no terminal"), "{text}: {said:?}");
            }
        }
    }

    fn a_person_is_asked_on_a_terminal_and_only_yes_accepts(lab) {
        let script = "import os, pty, sys\n\
            pid, fd = pty.fork()\n\
            if pid == 0: os.execvp(sys.argv[2], sys.argv[2:])\n\
            out = b''\n\
            while b'Type `yes`' not in out: out += os.read(fd, 65536)\n\
            os.write(fd, sys.argv[1].encode() + b'\\n')\n\
            try:\n\
            \x20while True: out += os.read(fd, 65536)\n\
            except OSError: pass\n\
            sys.stdout.write(out.decode(errors='replace'))\n\
            sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))\n";
        for identity in Identity::all() {
            let own = Project::new(lab, identity, "asked");
            own.write("outgate.toml", GRANTING);
            for (answer, status) in [("", 1), ("y", 1), ("no", 1), ("yes please", 1), ("yes", 0)] {
                let mut all = own.identity.prefix();
                let outgate = own.outgate();
                all.extend(["python3", "-c", script, answer, &outgate, "trust"].map(str::to_owned));
                let said = own.started(&own.directory, &all);
                assert_eq!(said.status, status, "{answer}: {said:?}");
                assert!(said.stdout.contains("in short: 1 path to write"), "{said:?}");
                assert_eq!(own.call(&["up"]).status, status * 2, "{answer}");
            }
        }
    }
}
