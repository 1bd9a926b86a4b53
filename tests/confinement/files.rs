//! Files: what is granted is there, what is not is not.

use outgate_harness::leftovers::Before;
use outgate_harness::{Identity, Lab, Sandbox, lab_tests};

use crate::{shell, words};

lab_tests! {
    fn a_working_directory_around_the_home_is_refused_unless_it_is_named(lab) {
        for identity in Identity::all() {
            let work = Sandbox::plain(lab, identity).work();
            let (home, link) = (work.join("users/me"), work.join("a link"));
            std::fs::create_dir_all(&home).expect("a directory");
            drop(std::os::unix::fs::symlink(&work, &link));
            let read = ["cat".to_owned(), "key".to_owned()];
            std::fs::write(work.join("key"), "the key\n").expect("a file");
            let of = |home: &std::path::Path| {
                let state = lab.folder("elsewhere", identity).display().to_string();
                Sandbox::plain(lab, identity)
                    .environment("HOME", &home.display().to_string())
                    .environment("XDG_STATE_HOME", &state)
            };
            for home in [&work, &home, &link, &link.join("users/me/"), &work.join("users/../")] {
                let outcome = of(home).run(&read);
                assert_eq!(outcome.code, Some(2), "{}: {outcome}", home.display());
                assert_eq!(outcome.stdout, "", "{outcome}");
                assert!(outcome.stderr.contains("is or holds the home directory"), "{outcome}");
                assert!(outcome.stderr.contains("hint: "), "{outcome}");
                let outcome = of(home).option("-P", "base").option("-w", ".").run(&read);
                assert_eq!(outcome.stdout, "the key\n", "{}: {outcome}", home.display());
            }
            let beside = lab.folder("beside", identity);
            assert_eq!(of(&beside).run(&read).stdout, "the key\n");
        }
    }

    fn a_working_directory_with_keys_or_programs_is_refused_unless_it_is_named(lab) {
        for identity in Identity::all() {
            let home = Sandbox::plain(lab, identity).work();
            for place in [".ssh/sub", ".config/gh", ".local/bin", "dots/aws", "project/.ssh"] {
                std::fs::create_dir_all(home.join(place)).expect("a directory");
                std::fs::write(home.join(place).join("key"), "the key\n").expect("a file");
            }
            std::fs::write(home.join(".ssh/key"), "the key\n").expect("a file");
            std::os::unix::fs::symlink("dots/aws", home.join(".aws")).expect("a link");
            std::os::unix::fs::symlink(".ssh", home.join("elsewhere")).expect("a link");
            let state = lab.folder("elsewhere", identity).display().to_string();
            let sandbox = || {
                Sandbox::plain(lab, identity)
                    .environment("HOME", &home.display().to_string())
                    .environment("XDG_STATE_HOME", &state)
            };
            let read = shell("cat key");
            for place in [".ssh", ".ssh/sub", ".config/gh", ".config", ".local", ".local/bin", ".aws", "dots/aws", "dots", "elsewhere"] {
                let directory = home.join(place);
                let outcome = sandbox().within(directory.clone()).run(&read);
                assert_eq!(outcome.code, Some(2), "{place}: {outcome}");
                assert_eq!(outcome.stdout, "", "{place}: {outcome}");
                assert!(outcome.stderr.contains("where credentials or what other programs run lies"), "{place}: {outcome}");
                let outcome = sandbox().within(directory.clone()).option("-P", "base").option("-w", ".").run(&shell("ls -d ."));
                assert_eq!(outcome.stdout, ".\n", "{place}: {outcome}");
            }
            let outcome = sandbox().within(home.join("project/.ssh")).run(&read);
            assert_eq!(outcome.stdout, "the key\n", "{outcome}");
        }
    }

    fn without_options_the_working_directory_is_writable_and_little_else(lab) {
        for identity in Identity::all() {
            let outside = lab.folder("outside", identity);
            std::fs::write(lab.folder("home", identity).join("secret"), "hidden").expect("a file");
            std::fs::remove_file("/tmp/outgate-test-file").ok();
            let script = format!(
                "echo a > here && cat here && echo tmp > \"$TMPDIR/t\" && cat \"$TMPDIR/t\"; \
                 echo x > {0}/there; cat ~/secret; ls ~ ; cat /etc/hostname >/dev/null; echo x > /tmp/outgate-test-file; \
                 ls /usr > /dev/null && echo end",
                outside.display()
            );
            let sandbox = Sandbox::plain(lab, identity);
            let outcome = sandbox.run(&shell(&script));
            assert!(outcome.stdout.starts_with("a\ntmp\n"), "{identity:?} {outcome}");
            assert!(!outcome.stdout.contains("hidden"), "{outcome}");
            assert!(!outside.join("there").exists(), "{outcome}");
            assert!(!std::path::Path::new("/tmp/outgate-test-file").exists(), "{outcome}");
            assert!(outcome.stdout.contains("end"), "{outcome}");
        }
    }

    fn a_readable_path_is_not_writable_and_its_neighbour_not_readable(lab) {
        for identity in Identity::all() {
            let (yes, no) = (lab.folder("yes", identity), lab.folder("no", identity));
            for folder in [&yes, &no] {
                std::fs::write(folder.join("file"), "content\n").expect("a file");
            }
            let script = format!("cat {0}/file; echo x > {0}/new; cat {1}/file; rm {0}/file; ls {0}", yes.display(), no.display());
            let sandbox = Sandbox::plain(lab, identity);
            let outcome = sandbox.option("-r", &yes.to_string_lossy()).option("-r", "/usr").option("-r", "/bin").option("-r", "/lib").option("-r", "/lib64").run(&shell(&script));
            assert_eq!(outcome.stdout, "content\nfile\n", "{identity:?} {outcome}");
        }
    }

    fn a_granted_path_that_is_not_there_is_named(lab) {
        for identity in Identity::all() {
            let outcome = lab.sandbox(identity).option("-r", "/no/such/path").run(&words(&["true"]));
            assert_eq!(outcome.code, Some(2), "{outcome}");
            assert!(outcome.stderr.contains("/no/such/path"), "{outcome}");
        }
    }

    fn a_run_leaves_no_file(lab) {
        for identity in Identity::all() {
            let folders = ["tmp", "run", "home"].map(|name| lab.folder(name, identity));
            let before = Before::new(folders.to_vec());
            let outcome = lab.sandbox(identity).run(&shell("mkdir -p $TMPDIR/a/b; echo x > $TMPDIR/a/b/c; chmod 0 $TMPDIR/a/b; true"));
            assert_eq!(outcome.code, Some(0), "{outcome}");
            before.assert_all_gone();
        }
    }

    fn a_denied_path_beats_a_grant_around_it(lab) {
        for identity in Identity::all() {
            let folder = lab.folder("around", identity);
            std::fs::create_dir_all(folder.join("inner")).expect("a folder");
            std::fs::write(folder.join("inner/secret"), "hidden").expect("a file");
            std::fs::write(folder.join("open"), "shown").expect("a file");
            let policy = lab.directory.join(format!("deny-{}.toml", identity.uid()));
            let text = format!("[filesystem]\nread = [\"/usr\", \"/bin\", \"/lib\", \"/lib64\", \"{0}\"]\ndeny = [\"{0}/inner\"]\n", folder.display());
            std::fs::write(&policy, text).expect("a file");
            let sandbox = Sandbox::plain(lab, identity).option("-p", &policy.to_string_lossy());
            let outcome = sandbox.run(&shell(&format!("cat {0}/open {0}/inner/secret", folder.display())));
            assert_eq!(outcome.stdout, "shown", "{identity:?} {outcome}");
        }
    }

    fn a_denied_path_is_hidden_by_every_name(lab) {
        for identity in Identity::all() {
            let folder = lab.folder("names", identity);
            std::fs::create_dir_all(folder.join("real/keys")).expect("a folder");
            std::fs::write(folder.join("real/keys/secret"), "hidden").expect("a file");
            std::fs::write(folder.join("real/open"), "shown").expect("a file");
            for link in ["link", "other"] {
                std::os::unix::fs::symlink("real", folder.join(link)).expect("a link");
            }
            std::os::unix::fs::symlink("real/keys", folder.join("keys")).expect("a link");
            // The denied path is a link, leads through one, or the grant does.
            for (granted, denied) in [("real", "keys"), ("real", "link/keys"), ("link", "real/keys"), ("other", "link/keys")] {
                let policy = lab.directory.join(format!("names-{}.toml", identity.uid()));
                let text = format!("[filesystem]\nread = [\"/usr\", \"/bin\", \"/lib\", \"/lib64\", \"{0}/{granted}\"]\ndeny = [\"{0}/{denied}\"]\n", folder.display());
                std::fs::write(&policy, text).expect("a file");
                let sandbox = Sandbox::plain(lab, identity).option("-p", &policy.to_string_lossy());
                let outcome = sandbox.run(&shell(&format!("cat {0}/real/open {0}/real/keys/secret", folder.display())));
                assert_eq!(outcome.stdout, "shown", "{identity:?} {granted} {denied} {outcome}");
            }
        }
    }

    fn what_is_made_later_where_a_denied_link_leads_stays_hidden(lab) {
        for identity in Identity::all() {
            let folder = lab.folder("later", identity);
            for inner in ["real/deep", "w"] {
                std::fs::create_dir_all(folder.join(inner)).expect("a folder");
            }
            for (target, link) in [
                ("real", "link"), ("link", "chain"), ("real/dangling", "dang"), ("dang", "dang2"),
                ("../real/deep/../up", "w/up"), ("../absent/../real/deep/key", "w/far"), ("real/deep", "into"), ("into", "twice"),
            ] {
                std::os::unix::fs::symlink(target, folder.join(link)).expect("a link");
            }
            for (denied, place) in [
                ("link/secret", "real/secret"), ("chain/secret", "real/secret"), ("dang", "real/dangling"),
                ("dang2", "real/dangling"), ("w/up", "real/up"), ("w/far", "real/deep/key"),
                ("link/deep/not/yet", "real/deep/not/yet"),
                ("into/../above", "real/above"), ("twice/../../higher", "higher"), ("absent/../beside", "beside"),
            ] {
                for right in ["read", "write"] {
                    made_later(lab, identity, &folder, (denied, place, right));
                }
            }
        }
    }

    fn a_record_that_the_command_may_write_is_refused(lab) {
        for identity in Identity::all() {
            let work = lab.folder("record", identity);
            let record = work.join("run.jsonl");
            let elsewhere = lab.folder("elsewhere", identity).join("run.jsonl");
            let run = |audit: &std::path::Path| {
                lab.sandbox(identity)
                    .option("-w", &work.to_string_lossy())
                    .option("--audit", &audit.to_string_lossy())
                    .run(&words(&["true"]))
            };
            let outcome = run(&record);
            assert_eq!(outcome.code, Some(2), "{identity:?} {outcome}");
            assert!(outcome.stderr.contains("run.jsonl"), "{outcome}");
            assert!(!record.exists(), "{outcome}");
            // A pipe the command may replace with a link, and what two names lead to.
            let pipe = work.join("pipe");
            nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
            let outcome = run(&pipe);
            assert_eq!(outcome.code, Some(2), "{identity:?} {outcome}");
            let around = work.join(format!("../elsewhere-{}/run.jsonl", identity.uid()));
            for allowed in [&elsewhere, &around, std::path::Path::new("/dev/full")] {
                let outcome = run(allowed);
                assert_eq!(outcome.code, Some(0), "{identity:?} {} {outcome}", allowed.display());
            }
            let outcome = run(&work.join(format!("../record-{}/run.jsonl", identity.uid())));
            assert_eq!(outcome.code, Some(2), "{identity:?} {outcome}");
        }
    }

    fn standard_output_is_the_commands_own_and_takes_no_record(lab) {
        for identity in Identity::all() {
            for name in ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"] {
                let outcome = lab.sandbox(identity).option("--audit", name).run(&words(&["true"]));
                assert_eq!(outcome.code, Some(2), "{identity:?} {name} {outcome}");
            }
            let outcome = lab.sandbox(identity).option("--audit", "/dev/stderr").run(&shell("echo fine"));
            assert_eq!(outcome.stdout, "fine\n", "{identity:?} {outcome}");
        }
    }

    fn with_dev_tools_nothing_outside_runs_what_the_command_left(lab) {
        // Whatever programs outside build, start or source from the home directory is as it
        // was: the caches of a run are its own, and later runs'.
        const KEPT: [&str; 22] = [
            ".bashrc", ".cache/p10k-instant-prompt-me.zsh", ".cache/pip/http-v2/a", ".cache/uv/archive-v0/a/m.py",
            ".cache/go-build/a", ".cache/nvim/luac/a", ".cache/puppeteer/chrome", ".cache/ms-playwright/chrome",
            ".cargo/registry/src/a/build.rs", ".cargo/git/checkouts/a/build.rs", ".cargo/bin/tool", ".rustup/bin/rustc",
            "go/pkg/mod/a/a.go", ".npm/_npx/a/index.js", ".npm/_cacache/index", ".bun/install/cache/a.js",
            ".yarn/berry/cache/a.zip", ".m2/repository/a.jar", ".gradle/caches/a.jar", ".gradle/wrapper/a.jar",
            ".nuget/packages/a.dll", ".bundle/cache/a.rb",
        ];
        for identity in Identity::all() {
            let home = lab.folder("tools-home", identity);
            let outside = |command: &str| {
                let mut words = identity.prefix();
                words.extend(["env".to_owned(), format!("HOME={}", home.display())]);
                words.extend(shell(command));
                lab.start_bare(Identity::Own, &words).finish()
            };
            for file in KEPT {
                let made = outside(&format!("mkdir -p \"$(dirname ~/{file})\" && echo kept > ~/{file}"));
                assert_eq!(made.code, Some(0), "{made}");
            }
            let sandbox = || {
                Sandbox::plain(lab, identity)
                    .option("-P", "dev-tools")
                    .environment("HOME", &home.display().to_string())
            };
            let attack = "cd ~ && for f in $(find . -type f) .cache/new/x .cargo/registry/src/new .npm/_npx/new .m2/new; do \
                 mkdir -p $(dirname $f); echo changed > $f; mv $f $f.moved; rm -f $f; ln -s /etc/passwd $f; done 2>/dev/null; \
                 mv ~/.cache ~/.cache-moved; rm -rf ~/.cache/outgate; ln -s ~/.cargo ~/.cache/outgate; true";
            let outcome = sandbox().run(&shell(attack));
            assert_eq!(outcome.code, Some(0), "{outcome}");
            let found = outside("cd ~ && find . ! -type d ! -path './.cache/outgate/*' | sort").stdout;
            let mut expected: Vec<String> = KEPT.iter().map(|file| format!("./{file}")).collect();
            expected.sort();
            assert_eq!(found.lines().collect::<Vec<_>>(), expected, "{identity:?} {outcome}");
            for file in KEPT {
                assert_eq!(std::fs::read_to_string(home.join(file)).expect(file), "kept\n", "{identity:?}");
            }
            // And a run has every cache, which the next one finds.
            let variables = "$XDG_CACHE_HOME $CARGO_HOME $GOMODCACHE $npm_config_cache $YARN_GLOBAL_FOLDER $BUN_INSTALL_CACHE_DIR \
                 $PUPPETEER_CACHE_DIR $GRADLE_USER_HOME ${MAVEN_ARGS#*=} $NUGET_PACKAGES $BUNDLE_USER_CACHE";
            let write = format!("set -e; for d in {variables}; do mkdir -p $d; echo it > $d/mine; done; echo $#");
            let outcome = sandbox().run(&shell(&write));
            assert_eq!(outcome.code, Some(0), "{identity:?} {outcome}");
            let outcome = sandbox().run(&shell(&format!("for d in {variables}; do cat $d/mine; done")));
            assert_eq!(outcome.stdout, "it\n".repeat(11), "{identity:?} {outcome}");
        }
    }

    fn no_file_of_a_cache_is_a_projects_too(lab) {
        // A link or a rename from the runs' cache into a project: what a later run writes into the
        // cache would be run outside with it.
        const ATTACK: &str = "import ctypes, os, shutil\n\
            c = os.environ['XDG_CACHE_HOME'] + '/tool/'\n\
            os.makedirs(c + 'deep/er', exist_ok=True); os.makedirs('p/q', exist_ok=True)\n\
            L = ctypes.CDLL(None, use_errno=True)\n\
            X = os.uname().machine == 'x86_64'\n\
            def call(number, a, b, flags):\n\
            \x20   if L.syscall(number, -100, a.encode(), -100, b.encode(), flags): raise OSError(ctypes.get_errno(), a)\n\
            def noreplace(a, b): call(316 if X else 276, a, b, 1)\n\
            def opened(a, b):\n\
            \x20   f = os.open(a, os.O_PATH)\n\
            \x20   call(265 if X else 37, f'/proc/self/fd/{f}', b, 0x400)\n\
            def unnamed(a, b):\n\
            \x20   f = os.open(os.path.dirname(a), os.O_TMPFILE | os.O_RDWR)\n\
            \x20   call(265 if X else 37, f'/proc/self/fd/{f}', b, 0x400)\n\
            def there(a, b):\n\
            \x20   open(b, 'w').close(); call(316 if X else 276, b, a, 2)\n\
            def whole(a, b): os.rename(os.path.dirname(a), b)\n\
            n = 0\n\
            for way in (os.link, os.rename, noreplace, opened, unnamed, there, whole):\n\
            \x20   name = way.__name__\n\
            \x20   for place in (c, c + 'deep/er/'):\n\
            \x20       n += 1; a = place + f'{name}{n}'; os.makedirs(place, exist_ok=True); open(a, 'w').write('it')\n\
            \x20       try: way(a, f'p/q/{n}'); print(name, 'came', n)\n\
            \x20       except OSError as e: print(name, e.errno)\n\
            open(c + 'f', 'w').write('it'); os.link(c + 'f', c + 'deep/f'); os.rename(c + 'deep/f', c + 'g')\n\
            shutil.move(c + 'g', f'moved{os.getpid()}'); open('own', 'w').close(); os.rename('own', c + 'own'); print('end')\n";
        for identity in Identity::all() {
            let home = lab.folder("linked-home", identity);
            let sandbox = |options: &[(&str, &str)]| {
                let sandbox = Sandbox::plain(lab, identity).within(lab.folder("linked", identity));
                let sandbox = sandbox.environment("HOME", &home.display().to_string());
                options.iter().fold(sandbox, |sandbox, (name, value)| sandbox.option(name, value))
            };
            let attack = ["python3", "-c", ATTACK].map(str::to_owned);
            // Where the user grants the cache to this run, what it may is what was said.
            let bare = sandbox(&[("-P", "dev-tools"), ("-w", "~/.cache/outgate")]).run(&attack);
            assert_eq!(bare.stdout.matches("came").count(), 14, "{bare}");
            std::fs::remove_dir_all(lab.folder("linked", identity).join("p")).expect("a directory");
            let outcome = sandbox(&[("-P", "dev-tools")]).run(&attack);
            assert!(outcome.stdout.ends_with("end\n"), "{outcome}");
            assert_eq!(outcome.stdout.matches(" 18\n").count(), 14, "EXDEV each time: {outcome}");
        }
    }

    fn memory_that_other_programs_share_is_closed(lab) {
        let shared = format!("/dev/shm/outgate-test-{}", std::process::id());
        std::fs::write(&shared, "shared").expect("a file in shared memory");
        for identity in Identity::all() {
            let script = format!("cat {shared}; echo x > {shared}; echo end");
            let outcome = Sandbox::plain(lab, identity).run(&shell(&script));
            assert_eq!(outcome.stdout, "end\n", "{identity:?} {outcome}");
        }
        std::fs::remove_file(&shared).ok();
    }
}

/// Denies a path, has somebody outside make what it leads to while a command runs that may
/// read or write all around, and has the command try every name.
#[expect(
    clippy::expect_used,
    reason = "a test's files are there or the test fails"
)]
fn made_later(
    lab: &Lab,
    identity: Identity,
    folder: &std::path::Path,
    (denied, place, right): (&str, &str, &str),
) {
    use std::os::unix::fs::PermissionsExt as _;
    let place = folder.join(place);
    let policy = lab.directory.join(format!("later-{}.toml", identity.uid()));
    let folder = folder.display();
    let grant = match right {
        "read" => format!(", \"{folder}\"]\n"),
        _ => format!("]\nwrite = [\"{folder}\"]\n"),
    };
    let text = format!(
        "[filesystem]\nread = [\"/usr\", \"/bin\", \"/lib\", \"/lib64\"{grant}deny = [\"{folder}/{denied}\"]\n"
    );
    std::fs::write(&policy, text).expect("a file");
    let names = [place.display().to_string(), format!("{folder}/{denied}")];
    let tries = names.map(|name| format!("cat {name}; echo taken > {name}"));
    let mut running = Sandbox::plain(lab, identity)
        .option("-p", &policy.to_string_lossy())
        .with_input()
        .start(&shell(&format!(
            "echo began; read -r go; {}; echo done",
            tries.join("; ")
        )));
    running.wait_for("began");
    let around = place.parent().expect("a folder");
    let was_there = around.exists();
    std::fs::create_dir_all(around).expect("a folder");
    std::fs::write(&place, "hidden").expect("a file");
    let open = std::fs::Permissions::from_mode(0o666);
    std::fs::set_permissions(&place, open).expect("a mode");
    running.say("go\n");
    let outcome = running.finish();
    let case = format!("{identity:?} {denied} {right} {outcome}");
    assert!(outcome.stdout.ends_with("done\n"), "{case}");
    assert!(!outcome.stdout.contains("hidden"), "{case}");
    let kept = std::fs::read_to_string(&place).expect("the file");
    assert_eq!(kept, "hidden", "{case}");
    std::fs::remove_file(&place).expect("it goes");
    if !was_there {
        std::fs::remove_dir(around).expect("it goes");
    }
}
