//! What a command leaves behind by ways that lead elsewhere: settings that include others,
//! hooks that settings outside name, pointers between repositories, links through links, modules
//! that Python starts with. Each is told, and its neighbour is not.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use outgate_harness::servers::is_there;
use outgate_harness::{Identity, Lab, lab_tests};

use crate::leftovers::{recorded, repository, run};
use crate::{bare, home};

/// What was there before, where the run begins, its command, and what of it is told.
struct Row {
    before: &'static str,
    within: &'static str,
    script: &'static str,
    told: &'static [(&'static str, &'static str)],
}

const fn row(
    before: &'static str,
    script: &'static str,
    told: &'static [(&'static str, &'static str)],
) -> Row {
    Row {
        before,
        within: "",
        script,
        told,
    }
}

/// Pointers, settings and hooks of git.
#[rustfmt::skip]
const GIT: &[Row] = &[
    row("", "mkdir c; mv .git/objects .git/refs c/; cp .git/config c/; git config -f c/config core.fsmonitor ./x; echo ../c > .git/commondir",
        &[("git-config", "c/config"), ("git-directory", ".git/commondir")]),
    row("", "mkdir -p .git/lfs/c; cp -r .git/objects .git/refs .git/HEAD .git/config .git/lfs/c/; git config -f .git/lfs/c/config core.pager x; \
         echo lfs/c > .git/commondir", &[("git-config", ".git/lfs/c/config"), ("git-directory", ".git/commondir")]),
    // What an earlier run wrote where no repository was yet.
    row("mkdir -p s/hooks && git config -f s/config core.fsmonitor ./x && printf x > s/hooks/a && chmod +x s/hooks/a", "mkdir s/objects s/refs; echo 'ref: refs/heads/a' > s/HEAD",
        &[("git-config", "s/config"), ("git-hook", "s/hooks/a")]),
    row("mkdir -p target/s/objects target/s/refs/heads && git config -f target/s/config alias.l '!x'", "echo 'ref: refs/heads/a' > target/s/HEAD; echo > target/HEAD",
        &[("git-config", "target/s/config")]),
    // A repository that was there all along, and that nobody went into.
    row("git init -q f && git -C f config core.fsmonitor ./x", "mkdir d; echo 'gitdir: ../f/.git' > d/.git", &[("git-directory", "d/.git")]),
    row("git config include.path ../shared && git config -f shared core.abbrev 12", "git config -f shared core.fsmonitor ./x", &[("git-config", "shared")]),
    row("git config include.path ../shared && git config -f shared core.abbrev 12", "git config -f shared core.abbrev 11; echo > other", &[]),
    row("git config includeIf.gitdir:x.path ../one && git config -f one include.path two && git config -f two core.abbrev 9",
        "git config -f two core.editor x", &[("git-config", "two")]),
    row("ln -s more shared && git config include.path ../shared && git config -f more core.abbrev 12", "git config -f more core.editor x", &[("git-config", "more")]),
    row("git config --global include.path '~/PLACE/mine' && git config -f mine core.abbrev 12", "git config -f mine core.editor x; git config -f yours core.editor x",
        &[("git-config", "mine")]),
    row("mkdir hk && printf x > hk/pre-commit && chmod +x hk/pre-commit && git config core.hooksPath '~/PLACE/hk'", "echo y >> hk/pre-commit",
        &[("git-hook", "hk/pre-commit")]),
    row("mkdir hk && printf x > hk/pre-commit && chmod +x hk/pre-commit && git config --global core.hooksPath hk", "echo y >> hk/pre-commit",
        &[("git-hook", "hk/pre-commit")]),
    row("git config --global --unset core.hooksPath; mkdir hk && printf x > hk/pre-commit && chmod +x hk/pre-commit", "echo y >> hk/pre-commit", &[]),
    row("mkdir hk && printf x > hk/a && git config core.hooksPath hk && git add . && git commit -qm b && git worktree add -q wt/x",
        "printf y > wt/x/hk/a; chmod +x wt/x/hk/a", &[("git-hook", "wt/x/hk/a")]),
    Row { within: "sub", ..row("mkdir -p sub/hk && printf x > sub/hk/a && chmod +x sub/hk/a && git config core.hooksPath sub/hk", "echo y >> hk/a", &[("git-hook", "sub/hk/a")]) },
    row("mkdir s && printf x > s/one && chmod +x s/one && ln -s one s/two && ln -s ../../s/two .git/hooks/a", "echo y >> s/one", &[("git-hook", "s/one")]),
    row("mkdir s && printf x > s/one && chmod +x s/one && ln -s s t && ln -s ../../t/one .git/hooks/a", "echo y >> s/one", &[("git-hook", "s/one")]),
    row("mkdir s && printf x > s/one && chmod +x s/one && ln -s one s/two && ln -s ../../s/two .git/hooks/a",
        "ln -sfn ../README s/two", &[("git-hook", "s/two")]),
    row("git config --global filter.mine.clean cat", "echo '*.a filter=mine' > .gitattributes", &[("git-attributes", ".gitattributes")]),
    row("git config --global --unset filter.mine.clean; true", "echo '*.a filter=mine' > .gitattributes", &[]),
    row("mkdir s && echo x > s/clean.py && git config filter.x.clean 'python3 s/clean.py %f'", "echo y > s/clean.py; echo y > s/other.py", &[("git-program", "s/clean.py")]),
    row("git config core.attributesFile .attrs && git config filter.x.clean cat && echo > .attrs", "echo '*.a filter=x' > .attrs; echo '*.a filter=x' > .other",
        &[("git-attributes", ".attrs")]),
    row("", "git config alias.l '--exec-path=.x y'", &[("git-config", ".git/config")]),
    row("", "git config alias.l 'difftool -y -x id'", &[("git-config", ".git/config")]),
    row("", "git config gc.recentObjectsHook x", &[("git-config", ".git/config")]),
    row("", "git config svn.authorsprog x", &[("git-config", ".git/config")]),
    row("", "git config core.worktree /", &[("git-config", ".git/config")]),
    row("", "git config alias.st 'status -sb'; git config pull.rebase true; git config core.autocrlf input; git config rerere.enabled 1", &[]),
];

/// Links, and what other programs run.
#[rustfmt::skip]
const OTHERS: &[Row] = &[
    // Directories of agents and tools, as shipped policies grant them, and what they remember there.
    row("", "mkdir -p .claude/local .claude/plugins/cache/m/p/1/hooks .claude/projects/x .claude/todos .claude/shell-snapshots; echo x > .claude/local/claude; \
         echo {} > .claude/plugins/cache/m/p/1/hooks/hooks.json; echo x > .claude/projects/x/1.jsonl; echo [] > .claude/todos/1.json; echo x > .claude/history.jsonl",
        &[("agent-code", ".claude/local/claude"), ("agent-code", ".claude/plugins/cache/m/p/1/hooks/hooks.json")]),
    row("mkdir -p .claude/plugins && echo '{\"m\":{\"source\":{\"repo\":\"a/b\"},\"lastUpdated\":\"1\"}}' > .claude/plugins/known_marketplaces.json",
        "echo '{\"m\":{\"source\":{\"repo\":\"a/b\"},\"lastUpdated\":\"2\"}}' > .claude/plugins/known_marketplaces.json", &[]),
    row("", "mkdir -p .claude/plugins; echo '{\"m\":{\"source\":{\"repo\":\"e/vil\"}}}' > .claude/plugins/known_marketplaces.json", &[("agent-plugins", ".claude/plugins/known_marketplaces.json")]),
    row("", "mkdir -p .cursor/extensions/a.b-1/out .cursor/chats/x; echo x > .cursor/extensions/a.b-1/out/main.js; echo x > .cursor/chats/x/store.db",
        &[("agent-code", ".cursor/extensions/a.b-1/out/main.js")]),
    row("", "mkdir -p .codex/bin .codex/sessions/2026 .codex/log .copilot/pkg/u/1 .copilot/logs; echo x > .codex/bin/rg; echo x > .codex/sessions/2026/a.jsonl; \
         echo x > .codex/log/a.log; echo x > .copilot/pkg/u/1/index.js; echo x > .copilot/logs/a.log; echo x > .codex/history.jsonl",
        &[("agent-code", ".codex/bin/rg"), ("agent-code", ".copilot/pkg/u/1/index.js")]),
    row("", "mkdir -p .config/gcloud/configurations .config/gcloud/virtenv .config/gcloud/logs; echo x > .config/gcloud/configurations/config_default; \
         echo > .config/gcloud/virtenv/enabled; mkdir .config/gcloud/virtenv/bin; echo x > .config/gcloud/virtenv/bin/activate; echo x > .config/gcloud/logs/a.log; echo x > .config/gcloud/access_tokens.db",
        &[("cloud-settings", ".config/gcloud/configurations/config_default"), ("cloud-settings", ".config/gcloud/virtenv/bin/activate")]),
    row("", "mkdir -p c/cargo/registry/index/x c/gradle/init.d c/gradle/caches/1; echo x > c/cargo/config.toml; echo {} > c/cargo/registry/index/x/config.json; \
         echo x > c/gradle/init.d/a.gradle; echo x > c/gradle/gradle.properties; echo x > c/gradle/caches/1/a.bin",
        &[("package-settings", "c/cargo/config.toml"), ("package-settings", "c/gradle/gradle.properties"), ("package-settings", "c/gradle/init.d/a.gradle")]),
    row("", "mkdir -p s/t; ln -s ../../.. s/t/a; ln -s s/t/a/b n", &[("link", "n"), ("link", "s/t/a")]),
    // By its text it leads into the work tree, and by the links on its way out of the home.
    row("mkdir -p s/t/u && ln -s ../.. s/t/u/a", "ln -s s/t/u/a/../../../x/../etc n", &[("link", "n")]),
    row("", "ln -s /proc/self/root a; ln -s /proc/self/cwd/../b c; ln -s /proc/cpuinfo d", &[("link", "a"), ("link", "c")]),
    row("", "mkdir -p s/t; ln -s ../.. s/t/a; ln -s s/t/a/README n; ln -s n m; ln -s later l", &[]),
    row("mkdir -p old/in && ln -s ../../README old/in/n", "mv old/in in", &[("link", "in/n")]),
    row("mkdir -p .venv/lib/python3/site-packages", "printf '#\\rimport x\\n' > .venv/lib/python3/site-packages/a.pth",
        &[("python-start", ".venv/lib/python3/site-packages/a.pth")]),
    row("mkdir -p v/site-packages", "cd v/site-packages; echo 'import __editable___x; __editable___x.install()' > a.pth; echo x > __editable___x.py",
        &[("python-start", "v/site-packages/a.pth")]),
    row("mkdir -p v/site-packages && cd v/site-packages && echo x > m.py", "cd v/site-packages; echo m:go > a.start; echo y > m.py",
        &[("python-entry", "v/site-packages/a.start")]),
    row("mkdir -p v/site-packages", "cd v/site-packages; echo 'import _virtualenv' > _virtualenv.pth; echo x > _virtualenv.py",
        &[("python-module", "v/site-packages/_virtualenv.py")]),
    row("mkdir -p v/site-packages && cd v/site-packages && echo m:go > a.start && echo x > m.py", "echo y > v/site-packages/m.py",
        &[("python-module", "v/site-packages/m.py")]),
    row("mkdir -p v/site-packages/p && cd v/site-packages && echo 'import m; m.go(); import p' > a.pth && echo x > m.py && echo x > n.py && echo x > p/q.py && echo x > q.py",
        "cd v/site-packages; echo y > m.py; echo y > n.py; echo y > p/q.py; echo y > q.py; echo y > p.txt",
        &[("python-module", "v/site-packages/m.py"), ("python-module", "v/site-packages/p/q.py")]),
    row("", "mkdir .amp; echo '{\"amp.dangerouslyAllowAll\":true}' > .amp/settings.json", &[("agent-settings", ".amp/settings.json")]),
    row("", "mkdir .claude; echo '{\"awsCredentialExport\":\"./x\"}' > .claude/settings.json", &[("agent-settings", ".claude/settings.json")]),
    row("mkdir .claude; echo '{\"permissions\":{\"deny\":[\"Bash(rm *)\"]}}' > .claude/settings.json", "echo '{\"model\":\"x\"}' > .claude/settings.json", &[("agent-settings", ".claude/settings.json")]),
    row("", "echo '{\"provider\":{\"x\":{\"npm\":\"file:///x.js\"}}}' > opencode.json", &[("agent-settings", "opencode.json")]),
    row("", "mkdir .gemini; echo '{\"ui\":{\"theme\":\"x\"},\"security\":{\"auth\":{\"selectedType\":\"y\"}}}' > .gemini/settings.json", &[]),
    row("", "mkdir .codex; printf 'x = 1\\n  [mcp_servers.a]\\ncommand = \"x\"\\n' > .codex/config.toml", &[("codex-settings", ".codex/config.toml")]),
    row("", "mkdir -p .claude/commands/a/b; printf -- '---\\n\"allowed\\\\x2dtools\": Bash(*)\\n---\\n' > .claude/commands/a/b/c.md", &[("agent-allowance", ".claude/commands/a/b/c.md")]),
    row("", "mkdir -p .claude/agents; printf -- '---\\nname: a\\nhooks:\\n  Stop: x\\n---\\n' > .claude/agents/a.md", &[("agent-mode", ".claude/agents/a.md")]),
    row("", "mkdir -p .git/rebase-merge; printf 'pick 12 exec\\nx ./e\\n' > .git/rebase-merge/git-rebase-todo", &[("git-steps", ".git/rebase-merge/git-rebase-todo")]),
    row("", "mkdir .vscode; echo '{\"go.goroot\":\"./x\"}' > .vscode/settings.json", &[("vscode-settings", ".vscode/settings.json")]),
    row("", "mkdir .vscode; echo '{\"python.testing.pytestEnabled\":true}' > .vscode/settings.json", &[("vscode-settings", ".vscode/settings.json")]),
    row("", "mkdir .vscode; echo '{\"editor.rulers\":[80],\"files.exclude\":{\"a\":true},\"[go]\":{\"editor.tabSize\":2}}' > .vscode/settings.json", &[]),
    row("", "echo '{\"lint-staged\":{\"*\":\"x\"}}' > package.json", &[("package-scripts", "package.json")]),
    row("", "echo '{\"packageManager\":\"yarn@https://e.test/y.js\"}' > package.json", &[("package-scripts", "package.json")]),
    row("", "echo '{\"packageManager\":\"yarn@4.1.0\",\"name\":\"x\",\"jest\":{\"a\":1}}' > package.json", &[]),
    row("", "echo '{scripts:{postinstall:\"x\"}}' > package.json5; echo 'scripts:' > package.yaml",
        &[("package-document", "package.json5"), ("package-document", "package.yaml")]),
];

/// Lets the clock of inodes go on, so that what was there before is older than the run, also
/// where a machine has too much to do to note it.
fn pass_a_tick() {
    std::thread::park_timeout(Duration::from_millis(20));
}

fn check(lab: &Lab, rows: &[Row], name: &str) {
    let identity = *Identity::all().last().expect("an account");
    for (number, row) in rows.iter().enumerate() {
        let name = format!("{name}{number}");
        let place = repository(lab, identity, &name);
        bare(lab, identity, &place, &row.before.replace("PLACE", &name));
        let within = place.join(row.within);
        pass_a_tick();
        let outcome = run(lab, identity, &within, (&[], row.script));
        assert_eq!(outcome.code, Some(0), "{}\n{outcome}", row.script);
        let mut left = recorded(lab, identity);
        left.sort();
        let told = row.told.iter();
        let mut told: Vec<(String, String)> = told
            .map(|(kind, path)| ((*kind).to_owned(), place.join(path).display().to_string()))
            .collect();
        told.sort();
        assert_eq!(left, told, "{}: {}\n{outcome}", row.before, row.script);
        // What stays as it is is told once.
        pass_a_tick();
        let again = run(
            lab,
            identity,
            &within,
            (&["--leftovers=fail"], "touch again"),
        );
        assert_eq!(
            again.code,
            Some(0),
            "{}: {}\n{again}",
            row.before,
            row.script
        );
    }
}

/// Writes over what a file holds without a change of its times: the page was mapped before.
const MAPPING: &str = "python3 -c 'import mmap\n\
    f = open(\".git/hooks/a\", \"r+b\")\nm = mmap.mmap(f.fileno(), 0)\nm[:]\nm[10:14] = b\"evil\"\nm.close()'";

/// A file system in memory at a place of an account.
fn in_memory(place: &Path, identity: Identity) {
    let options = format!("size=4m,mode=755,uid={0},gid={0}", identity.uid());
    let mount = Command::new("mount")
        .args(["-t", "tmpfs", "-o", &options, "none"])
        .arg(place)
        .status();
    assert!(mount.expect("mount(8)").success());
}

lab_tests! {
    fn what_git_is_led_to_is_told(lab) {
        check(lab, GIT, "g");
    }

    fn what_links_and_other_programs_are_led_to_is_told(lab) {
        check(lab, OTHERS, "l");
    }

    fn what_a_mapping_writes_in_memory_is_told(lab) {
        if !is_there("python3") {
            outgate_harness::skip("python3 is not there");
            return;
        }
        let identity = *Identity::all().last().expect("an account");
        let place: PathBuf = home(lab, identity).join("memory");
        bare(lab, identity, &home(lab, identity), "mkdir memory");
        in_memory(&place, identity);
        bare(lab, identity, &place,
            "git init -q . && printf '#!/bin/sh\nmine\n#####\n' > .git/hooks/a && chmod +x .git/hooks/a && \
             for i in $(seq 1 150); do mkdir -p w/$i; done");
        let hook = place.join(".git/hooks/a");
        let times = |path: &Path| {
            use std::os::unix::fs::MetadataExt as _;
            let found = std::fs::metadata(path).expect("a hook");
            (found.ctime(), found.ctime_nsec())
        };
        let before = times(&hook);
        let outcome = run(lab, identity, &place, (&["--leftovers=fail"], MAPPING));
        assert!(std::fs::read_to_string(&hook).expect("a hook").contains("evil"), "{outcome}");
        assert_eq!(times(&hook), before, "the times tell it");
        assert_eq!(outcome.code, Some(3), "{outcome}");
        let left = recorded(lab, identity);
        assert_eq!(left, [("git-hook".to_owned(), hook.display().to_string())], "{outcome}");
    }
}
