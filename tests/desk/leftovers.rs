//! What a command writes that somebody outside runs later: each kind of it is told, by
//! whatever way it came to be; ordinary work is not; and it can be put back.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use outgate_harness::audit::{of_kind, records, text};
use outgate_harness::servers::is_there;
use outgate_harness::{Identity, Lab, Outcome, Sandbox, lab_tests};

use crate::{WHO, bare, home, project, write};

/// A run with more options.
pub(crate) fn run(
    lab: &Lab,
    identity: Identity,
    place: &Path,
    (options, script): (&[&str], &str),
) -> Outcome {
    let sandbox = Sandbox::plain(lab, identity).within(place.to_owned());
    let sandbox = options
        .iter()
        .fold(sandbox, |sandbox, option| sandbox.flag(option));
    sandbox.run(&["sh", "-ec", script].map(str::to_owned))
}

/// The newest file of runs with this ending.
fn newest(lab: &Lab, identity: Identity, ending: &str) -> Option<PathBuf> {
    let runs = lab.folder("state", identity).join("outgate/runs");
    let paths = fs::read_dir(runs).ok()?.flatten().map(|entry| entry.path());
    paths
        .filter(|path| path.extension().is_some_and(|end| end == ending))
        .max()
}

/// Kind and path of each leftover in the newest record, which is taken away.
pub(crate) fn recorded(lab: &Lab, identity: Identity) -> Vec<(String, String)> {
    let Some(path) = newest(lab, identity, "jsonl") else {
        return Vec::new();
    };
    let records = records(&path);
    fs::remove_file(path).expect("the record goes");
    let left = of_kind(&records, "leftover").into_iter();
    left.map(|record| {
        (
            text(record, "reason").to_owned(),
            text(record, "target").to_owned(),
        )
    })
    .collect()
}

/// `outgate leftovers` with these words.
fn leftovers(lab: &Lab, identity: Identity, words: &[&str]) -> Output {
    let mut all = identity.prefix();
    let outgate = lab.tools.programs.join("outgate");
    all.push(outgate.to_string_lossy().into_owned());
    all.push("leftovers".to_owned());
    all.extend(words.iter().map(|word| (*word).to_owned()));
    let (program, arguments) = all.split_first().expect("a program");
    let mut command = Command::new(program);
    let command = command.args(arguments).env_clear();
    let command = command
        .env("PATH", "/usr/bin:/bin")
        .env("HOME", home(lab, identity));
    let command = command.env("XDG_STATE_HOME", lab.folder("state", identity));
    command.output().expect("outgate")
}

fn said(output: &Output) -> String {
    let both = [&output.stdout, &output.stderr];
    both.map(|bytes| String::from_utf8_lossy(bytes).into_owned())
        .concat()
}

/// A repository with one commit.
pub(crate) fn repository(lab: &Lab, identity: Identity, name: &str) -> PathBuf {
    let place = project(lab, identity, name);
    bare(
        lab,
        identity,
        &place,
        &format!("{WHO} && git init -q . && git add . && git commit -qm a"),
    );
    place
}

/// One command and what of it is told: the kind and the path.
type Row = (&'static str, &'static [(&'static str, &'static str)]);

/// Each kind, with a neighbour that is not told.
#[rustfmt::skip]
const KINDS: &[Row] = &[
    ("printf '#!/bin/sh\nx\n' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit; \
      echo x > .git/hooks/post-merge; cp -p .git/hooks/pre-commit .git/hooks/y.sample",
     &[("git-hook", ".git/hooks/pre-commit")]),
    ("git config core.fsmonitor ./x.sh", &[("git-config", ".git/config")]),
    ("git config core.fsmonitor true; git config user.name x; git remote add o https://h.test/x", &[]),
    ("git config alias.st '!sh x'", &[("git-config", ".git/config")]),
    ("git config include.path ../x", &[("git-config", ".git/config")]),
    ("git config extensions.worktreeConfig true; git config --worktree core.pager 'sh x'",
     &[("git-config", ".git/config.worktree")]),
    ("mkdir h; printf 'x' > h/pre-push; chmod +x h/pre-push; git config core.hooksPath h",
     &[("git-config", ".git/config"), ("git-hook", "h/pre-push")]),
    ("git config filter.x.smudge 'sh x'; echo '* filter=x' > .gitattributes",
     &[("git-config", ".git/config"), ("git-attributes", ".gitattributes")]),
    ("echo '* text filter=unknown diff=python' > .gitattributes", &[]),
    ("git init -q --bare a/b/bare; git -C a/b/bare config core.editor x",
     &[("git-config", "a/b/bare/config")]),
    ("mkdir -p n; cp -r .git n/.git; git -C n config core.sshCommand x", &[("git-config", "n/.git/config")]),
    ("mkdir -p .git/modules/s; cp -r .git/HEAD .git/objects .git/refs .git/modules/s/; \
      git config -f .git/modules/s/config core.gitProxy x", &[("git-config", ".git/modules/s/config")]),
    ("mkdir s; echo 'gitdir: /var/tmp/elsewhere' > s/.git", &[("git-directory", "s/.git")]),
    ("echo x > .envrc; echo x > .env", &[("direnv", ".envrc")]),
    ("echo 'allow = [\"*\"]' > outgate.lock; echo 'deny = []' > .outgate.toml; echo 'deny = []' > outgate.toml",
        &[("outgate-policy", ".outgate.toml"), ("outgate-policy", "outgate.lock"), ("outgate-policy", "outgate.toml")]),
    ("printf '[toolchain]\npath = \"./x\"\n' > rust-toolchain.toml", &[("toolchain", "rust-toolchain.toml")]),
    ("printf '[toolchain]\nchannel = \"1.90\"\n' > rust-toolchain.toml", &[]),
    ("mkdir -p .git/rebase-merge; echo 'exec ./x' > .git/rebase-merge/git-rebase-todo",
        &[("git-steps", ".git/rebase-merge/git-rebase-todo")]),
    ("mkdir -p .git/rebase-merge; echo 'pick 0123456 a' > .git/rebase-merge/git-rebase-todo", &[]),
    ("mkdir .vscode; echo '{\"tasks\":[{\"runOptions\":{\"runOn\":\"folderOpen\"}}]}' > .vscode/tasks.json",
     &[("vscode-tasks", ".vscode/tasks.json")]),
    ("mkdir .vscode; echo '{\"tasks\":[{\"label\":\"test\"}]}' > .vscode/tasks.json; \
      echo '{\"editor.tabSize\":2}' > .vscode/settings.json", &[]),
    ("mkdir .vscode; echo '{\"python.defaultInterpreterPath\":\"./x\"}' > .vscode/settings.json; \
      echo '{}' > .vscode/launch.json",
     &[("vscode-settings", ".vscode/settings.json"), ("vscode-launch", ".vscode/launch.json")]),
    ("mkdir -p .idea; echo '<x/>' > .idea/watcherTasks.xml; echo '<x/>' > .idea/misc.xml; echo x > .exrc; echo x > .dir-locals.el",
     &[("editor-project", ".idea/watcherTasks.xml"), ("editor-project", ".exrc"), ("editor-project", ".dir-locals.el")]),
    ("mkdir -p .devcontainer; echo '{}' > .devcontainer/devcontainer.json", &[("devcontainer", ".devcontainer/devcontainer.json")]),
    ("mkdir .claude; echo '{\"hooks\":{\"Stop\":[{\"hooks\":[{\"command\":\"x\"}]}]}}' > .claude/settings.json; \
      echo '{\"permissions\":{\"deny\":[\"Bash(ls)\"]}}' > .claude/settings.local.json; echo x > CLAUDE.md",
     &[("agent-settings", ".claude/settings.json")]),
    ("mkdir .claude; echo '{\"permissions\":{\"allow\":[\"Bash\"]}}' > .claude/settings.local.json; \
      mkdir .gemini; echo '{\"tools\":{\"allowed\":[\"x\"]}}' > .gemini/settings.json; echo '{\"permission\":\"allow\"}' > opencode.json; \
      mkdir .cursor; echo '{\"permissions\":{\"allow\":[\"Shell(*)\"]}}' > .cursor/cli.json",
     &[("agent-settings", ".claude/settings.local.json"), ("agent-settings", ".gemini/settings.json"),
       ("agent-settings", "opencode.json"), ("agent-settings", ".cursor/cli.json")]),
    ("mkdir -p .claude/commands .claude/skills/s .claude/agents .codex/rules; printf -- '---\\nallowed-tools: Bash\\n---\\n' > .claude/commands/a.md; \
      echo x > .claude/commands/b.md; printf -- '---\\nallowed-tools: Bash\\n---\\n' > .claude/skills/s/SKILL.md; \
      printf -- '---\\npermissionMode: x\\n---\\n' > .claude/agents/a.md; echo x > .claude/agents/b.md; echo x > .codex/rules/default.rules",
     &[("agent-allowance", ".claude/commands/a.md"), ("agent-allowance", ".claude/skills/s/SKILL.md"),
       ("agent-mode", ".claude/agents/a.md"), ("agent-permissions", ".codex/rules/default.rules")]),
    ("mkdir .hg; printf '[paths]\ndefault = x\n[hooks]\nupdate = x\n' > .hg/hgrc; mkdir -p a/.hg; printf '[paths]\ndefault = x\n' > a/.hg/hgrc",
     &[("hg-settings", ".hg/hgrc")]),
    ("mkdir -p .jj/repo a/.jj/repo; printf '[aliases]\nx = [\"util\", \"exec\"]\n' > .jj/repo/config.toml; \
      printf '[revset-aliases]\n\"trunk()\" = \"main\"\n[user]\nname = \"x\"\n' > a/.jj/repo/config.toml",
     &[("jj-settings", ".jj/repo/config.toml")]),
    ("mkdir .codex .cursor; printf '[mcp_servers.x]\ncommand = \"x\"\n' > .codex/config.toml; echo '{}' > .cursor/mcp.json; echo '{}' > .mcp.json",
     &[("codex-settings", ".codex/config.toml"), ("mcp", ".cursor/mcp.json"), ("mcp", ".mcp.json")]),
    ("mkdir .codex; printf '[projects.\"/w\"]\ntrust_level = \"x\"\n' > .codex/config.toml", &[]),
    ("echo '{\"scripts\":{\"test\":\"x\"},\"dependencies\":{\"prepare\":\"1\"}}' > package.json; echo 'x:' > Makefile", &[]),
    ("echo '{\"scripts\":{\"prepare\":\"x\"}}' > package.json", &[("package-scripts", "package.json")]),
    ("mkdir .cargo; printf '[build]\nrustc-wrapper = \"x\"\n' > .cargo/config.toml; echo x=y > .npmrc; echo x > build.rs; echo x > .pnpmfile.cjs",
     &[("package-settings", ".cargo/config.toml"), ("package-settings", ".npmrc"), ("build-script", "build.rs"), ("package-settings", ".pnpmfile.cjs")]),
    ("mkdir .husky; echo x > .husky/pre-commit; echo 'repos: []' > .pre-commit-config.yaml; echo x > lefthook.yml",
     &[("hook-manager", ".husky/pre-commit"), ("hook-manager", ".pre-commit-config.yaml"), ("hook-manager", "lefthook.yml")]),
    ("mkdir -p .github/workflows; echo x > .github/workflows/x.yml; echo x > .github/CODEOWNERS; echo x > .gitlab-ci.yml",
     &[("workflow", ".github/workflows/x.yml"), ("workflow", ".gitlab-ci.yml")]),
    ("mkdir -p .venv/lib/python3/site-packages; cd .venv/lib/python3/site-packages; echo 'import x' > a.pth; echo /x > b.pth; echo x > sitecustomize.py; echo x > c.py",
     &[("python-start", ".venv/lib/python3/site-packages/a.pth"), ("python-site", ".venv/lib/python3/site-packages/sitecustomize.py")]),
    ("ln -s ~/.ssh/authorized_keys notes.txt; ln -s /usr/bin/env tool; ln -s README r", &[("link", "notes.txt")]),
    ("mkdir vs; ln -s vs .vscode; echo '{\"tasks\":[{\"a\":\"folderOpen\"}]}' > vs/tasks.json",
     &[("link", ".vscode"), ("vscode-tasks", "vs/tasks.json")]),
    ("mkfifo .envrc", &[("direnv", ".envrc")]),
    ("printf 'x\n' > .bashrc; mkdir -p .config/fish .config/autostart; echo x > .config/fish/config.fish; echo x > .config/autostart/x.desktop; mkdir autostart; echo x > autostart/x.desktop",
     &[("shell-start", ".bashrc"), ("shell-start", ".config/fish/config.fish"), ("service", ".config/autostart/x.desktop")]),
];

/// Ways to write a hook so that it looks old, or as if nobody wrote it. `old` holds what was
/// there before the run.
#[rustfmt::skip]
const WAYS: &[(&str, &str)] = &[
    ("times set back", "cp old/hook .git/hooks/pre-commit; touch -d 2001-01-01 .git/hooks/pre-commit .git/hooks .git ."),
    ("times kept", "cp -p old/hook .git/hooks/pre-commit"),
    ("a name more", "ln old/hook .git/hooks/pre-commit"),
    ("moved file", "mv old/hook .git/hooks/pre-commit"),
    ("made executable", "chmod +x .git/hooks/commit-msg"),
    ("moved directory of hooks", "mv .git/hooks was; mv old/hooks .git/hooks"),
    ("moved repository", "mv .git was; mv old/git .git"),
    ("moved with what is around", "mv old/around new"),
    ("moved deep, in a place nobody noted", "mv old/around d/1/2/3/4/5/6/7/8/9/new"),
    ("link for the repository", "mv .git was; ln -s old/git .git"),
    ("link for the hooks", "mv .git/hooks was; ln -s ../old/hooks .git/hooks"),
    ("link for a hook", "ln -s ../../old/hook .git/hooks/pre-commit"),
    ("pointer to a repository", "mv .git was; cp -r old/git moved; echo 'gitdir: moved' > .git"),
    ("exchanged", "mv .git/hooks/commit-msg tmp; mv old/hook .git/hooks/commit-msg"),
    ("after many files", "mkdir many; seq 1 3000 | sed 's|^|many/|' | xargs touch; cp old/hook .git/hooks/pre-commit"),
];

/// Places where git keeps what is no settings, and ways that lead there from elsewhere.
#[rustfmt::skip]
const DATA: &[(&str, &str)] = &[
    (".git/logs/w", "ln -s .git/logs/w sub"),
    (".git/refs/heads/w", "ln -s ../.git/refs a/data; ln -s a/data/heads sub"),
    (".git/objects/w", "ln -s ../.git a/g; ln -s a/g/objects/w sub"),
    (".git/lfs/w", "ln -s \"$PWD/.git/lfs\" sub"),
    (".git/logs/w", "ln -s logs .git/x; ln -s ../.git/x/../logs/w a/sub"),
    (".git/logs/w", "mkdir .git/logs/v; ln -s ../w .git/logs/v/l; ln -s .git/logs/v sub"),
    (".git/logs/w", "ln -s .git/logs/w .envrc"),
    (".git/logs/w", "i=0; ( while [ $i -lt 64 ]; do mkdir d; cd d; i=$((i+1)); done; ln -s \"$TOP/.git/logs/w\" sub )"),
    (".git/modules/s/objects/w", "cp -r .git/HEAD .git/refs .git/modules/s/; ln -s .git/modules/s/objects/w sub"),
    ("a/.git/logs/w", "ln -s a/.git/logs/w sub"),
    (".git/logs/w", "git worktree add -q tree; echo \"$PWD/.git/logs/w/.git\" > .git/worktrees/tree/gitdir"),
    (".git/logs/w", "git config core.worktree \"$PWD/.git/logs/w\""),
];

/// A package with a script that its manager runs by itself.
const PACKAGE: &str =
    r#"{"name":"dep","version":"1.0.0","bin":"x.js","scripts":{"postinstall":"true"}}"#;

const OLD: &str = "printf '#!/bin/sh\nevil\n' > old/hook && chmod +x old/hook && \
    mkdir old/hooks && cp -p old/hook old/hooks/pre-commit && git init -q g && mv g/.git old/git && rm -r g && \
    cp -p old/hook old/git/hooks/pre-commit && mkdir old/around && cp -pr old/git old/around/.git && \
    printf '#!/bin/sh\nmine\n' > .git/hooks/commit-msg && mkdir -p d/1/2/3/4/5/6/7/8/9 && \
    for i in $(seq 1 150); do mkdir -p w/$i; done";

lab_tests! {
    fn each_kind_of_what_runs_later_is_told_and_its_neighbour_is_not(lab) {
        let identity = *Identity::all().last().expect("an account");
        for (number, (script, expected)) in KINDS.iter().enumerate() {
            let place = repository(lab, identity, &format!("p{number}"));
            let started = Instant::now();
            let outcome = run(lab, identity, &place, (&[], script));
            assert_eq!(outcome.code, Some(0), "{script}\n{outcome}");
            assert!(started.elapsed() < Duration::from_secs(20), "{script}");
            let mut left = recorded(lab, identity);
            left.sort();
            let mut wanted: Vec<(String, String)> = expected
                .iter()
                .map(|(kind, path)| ((*kind).to_owned(), place.join(path).display().to_string()))
                .collect();
            wanted.sort();
            assert_eq!(left, wanted, "{script}\n{outcome}");
            let lines = outcome.stderr.lines().filter(|line| line.contains("leftover")).count();
            assert!(lines <= 5 && (lines == 0) == expected.is_empty(), "{outcome}");
        }
    }

    fn whatever_way_a_hook_came_it_is_told(lab) {
        let identity = *Identity::all().last().expect("an account");
        for (number, (way, script)) in WAYS.iter().enumerate() {
            let place = repository(lab, identity, &format!("w{number}"));
            bare(lab, identity, &place, &format!("mkdir old && {OLD}"));
            let outcome = run(lab, identity, &place, (&["--leftovers=fail"], script));
            assert_eq!(outcome.code, Some(3), "{way}\n{outcome}");
            assert!(!recorded(lab, identity).is_empty(), "{way}\n{outcome}");
            // The same run without the move is told nothing of.
            let outcome = run(lab, identity, &place, (&["--leftovers=fail"], "touch again"));
            assert_eq!(outcome.code, Some(0), "{way}\n{outcome}");
        }
    }

    fn what_leads_to_a_repositorys_data_is_followed(lab) {
        let identity = *Identity::all().last().expect("an account");
        for (number, (data, way)) in DATA.iter().enumerate() {
            for (name, old) in [("new", ""), ("old", way)] {
                let place = repository(lab, identity, &format!("d{name}{number}"));
                let prepared = format!("export TOP=$PWD; mkdir a; mkdir -p {data} stock; echo evil > stock/.envrc; {old}");
                bare(lab, identity, &place, &prepared);
                // What was in the place before is as good as written now.
                let script = format!("export TOP=$PWD; mkdir -p {data}; mv stock {data}/s; {}", if old.is_empty() { way } else { "" });
                let outcome = run(lab, identity, &place, (&["--leftovers=fail"], &script));
                let left = recorded(lab, identity);
                let told = place.join(data).join("s/.envrc").display().to_string();
                assert_eq!(outcome.code, Some(3), "{name} {way}\n{outcome}");
                assert!(left.iter().any(|(_, path)| *path == told), "{name} {way}\n{left:?}");
            }
        }
        // Work trees of old that share the data of another.
        let place = repository(lab, identity, "shares");
        let script = "mkdir -p t/.git; cp .git/HEAD t/.git/; for d in objects refs logs; do ln -s ../../.git/$d t/.git/$d; done; git -C t status";
        let outcome = run(lab, identity, &place, (&["--leftovers=fail"], script));
        assert_eq!(outcome.code, Some(0), "{outcome}\n{:?}", recorded(lab, identity));
    }

    fn rights_of_others_are_told_however_they_came(lab) {
        for identity in Identity::all() {
            let place = repository(lab, identity, "rights");
            bare(lab, identity, &place, "mkdir old here quiet; for f in old/a quiet/kept here/plain; do cp /bin/true $f; done; \
                chmod 4755 old/a quiet/kept");
            // By whatever way: a process outside does for this test what none inside can.
            let script = "mv old/a here/; cp here/plain here/by; cp here/plain here/group; cp here/plain here/able; \
                mkdir new; cp here/plain new/deep; touch ready; i=0; \
                while [ ! -e go ] && [ $i -lt 100 ]; do sleep 0.1; i=$((i+1)); done";
            let run = Sandbox::plain(lab, identity).within(place.clone()).start(&["sh", "-ec", script].map(str::to_owned));
            assert!(outgate_harness::eventually(Duration::from_secs(20), || place.join("ready").exists()), "{}", run.errors());
            let mode = |name: &str, mode| {
                fs::set_permissions(place.join(name), fs::Permissions::from_mode(mode)).expect("a mode");
            };
            mode("here/by", 0o4755);
            mode("here/group", 0o2755);
            mode("new/deep", 0o4711);
            let able = Command::new("setcap").arg("cap_net_raw+ep").arg(place.join("here/able")).status();
            let able = able.is_ok_and(|status| status.success());
            fs::write(place.join("go"), "").expect("a word");
            let outcome = run.finish();
            assert_eq!(outcome.code, Some(0), "{identity:?} {outcome}");
            let mut left = recorded(lab, identity);
            left.sort();
            let names = ["here/a", "here/able", "here/by", "here/group", "new/deep"];
            let expected: Vec<(String, String)> = names
                .into_iter()
                .filter(|name| able || *name != "here/able")
                .map(|name| ("set-id".to_owned(), place.join(name).display().to_string()))
                .collect();
            assert_eq!(left, expected, "{identity:?} {outcome}");
        }
    }

    fn what_cannot_be_looked_at_is_said(lab) {
        let identity = *Identity::all().last().expect("an account");
        for (number, script) in [
            "i=0; while [ $i -lt 70 ]; do mkdir d; cd d; i=$((i+1)); done",
            "mkdir closed; mkdir closed/x; chmod 0111 closed",
        ].iter().enumerate() {
            let place = repository(lab, identity, &format!("c{number}"));
            let quiet = run(lab, identity, &place, (&[], script));
            if identity == Identity::Own && quiet.stderr.is_empty() && number == 1 {
                // Root reads whatever is closed.
                continue;
            }
            assert!(quiet.stderr.contains("not all that was writable"), "{script}\n{quiet}");
            let outcome = run(lab, identity, &place, (&["--leftovers=fail"], "true"));
            assert_eq!(outcome.code, Some(3), "{script}\n{outcome}");
            bare(lab, identity, &place, "chmod -R u+rwx .");
        }
    }

    fn many_files_are_looked_through_in_time(lab) {
        let identity = *Identity::all().last().expect("an account");
        let place = repository(lab, identity, "many");
        bare(lab, identity, &place,
            "for d in $(seq 1 1000); do mkdir -p m/$d; (cd m/$d && seq 1 100 | xargs touch); done");
        let outcome = run(lab, identity, &place,
            (&["--leftovers=fail"], "mkdir -p m/777/x/.vscode; echo x > m/777/x/.envrc"));
        assert_eq!(outcome.code, Some(3), "{outcome}");
        let left = recorded(lab, identity);
        assert_eq!(left.len(), 1, "{left:?}");
        let outcome = run(lab, identity, &place, (&["--leftovers=fail"], "touch m/5/new"));
        assert_eq!(outcome.code, Some(0), "{outcome}");
    }

    fn names_and_contents_reach_no_terminal_as_they_are(lab) {
        let identity = *Identity::all().last().expect("an account");
        let place = repository(lab, identity, "names");
        let script = "mkdir -p .github/workflows; \
            printf 'on: push\n\\033[2Jx\\r\n' > \"$(printf '.github/workflows/a\\033[31m\nb.yml')\"; \
            printf '//r.test/:_authToken=OLD-SECRET-1\n' > .npmrc";
        let outcome = run(lab, identity, &place, (&[], script));
        assert_eq!(outcome.code, Some(0), "{outcome}");
        let shown = said(&leftovers(lab, identity, &[]));
        for text in [&outcome.stderr, &shown] {
            assert!(text.contains("\\u{1b}[31m\\nb.yml"), "{text}");
            assert!(!text.contains('\u{1b}') && !text.contains('\r'), "{text:?}");
        }
        assert!(shown.contains("+//r.test/:…") || shown.contains("+//r.test/:\\u{2026}"), "{shown}");
        assert!(!shown.contains("SECRET"), "{shown}");
    }

    fn ordinary_work_leaves_nothing_to_tell(lab) {
        let identity = *Identity::all().last().expect("an account");
        let mut rows = vec![
            "echo b > b; git add b; git commit -qm b; git checkout -qb x; git merge -q master 2>/dev/null || git merge -q main; \
             git tag v1; git gc -q; git remote add o https://h.test/x; git config branch.x.remote o; git config branch.x.merge refs/heads/x",
            "git init -q sub && cd sub && git config user.name a && git config user.email a@b.test && echo a > a && git add a && git commit -qm a && cd .. && \
             git clone -q sub copy && git worktree add -q tree && git -c protocol.file.allow=always submodule -q add ./copy module",
        ];
        if is_there("python3") {
            rows.push("python3 -m venv .venv 2>/dev/null || true; python3 -c 'import json'");
        }
        if is_there("npm") {
            let packed = home(lab, identity).join("packed");
            write(&packed.join("package.json"), PACKAGE, identity);
            write(&packed.join("x.js"), "#!/usr/bin/env node\n", identity);
            bare(lab, identity, &packed, "npm pack --silent --offline && cp *.tgz ../dep.tgz");
            rows.push("mv in/dep.tgz . && echo '{\"name\":\"p\",\"version\":\"1.0.0\",\"scripts\":{\"test\":\"x\"}}' > package.json && \
                export npm_config_update_notifier=false npm_config_cache=$TMPDIR/npm && npm install --offline --no-audit --no-fund ./dep.tgz && \
                npm ci --offline --no-audit && test -e node_modules/.bin/dep");
        }
        for (number, script) in rows.iter().enumerate() {
            let place = repository(lab, identity, &format!("o{number}"));
            bare(lab, identity, &place, "mkdir in && if test -e ../dep.tgz; then cp ../dep.tgz in; fi");
            let outcome = run(lab, identity, &place, (&["--leftovers=fail"], script));
            let left = recorded(lab, identity);
            assert_eq!(outcome.code, Some(0), "{script}\n{left:?}\n{outcome}");
            assert!(!outcome.stderr.contains("leftover"), "{script}\n{outcome}");
        }
    }

    fn a_build_leaves_nothing_to_tell(lab) {
        // The toolchain that built this test, which is often in a home directory.
        let tools = Path::new(env!("CARGO")).parent().expect("a directory");
        let above = tools.parent().expect("a toolchain").display().to_string();
        let place = repository(lab, Identity::Own, "build");
        write(&place.join("build.rs"), "fn main() {}\n", Identity::Own);
        let search = format!("{}:/usr/bin:/bin", tools.display());
        let sandbox = Sandbox::plain(lab, Identity::Own).within(place).environment("PATH", &search);
        let script = "mkdir src; echo 'fn main(){}' > src/main.rs; \
            printf '[package]\nname = \"p\"\nversion = \"0.1.0\"\nedition = \"2021\"\n' > Cargo.toml; \
            cargo build --offline -q && test -x target/debug/p && echo '// more' >> build.rs";
        let sandbox = sandbox.option("-r", &above).flag("--leftovers=fail");
        let outcome = sandbox.run(&["sh", "-ec", script].map(str::to_owned));
        assert_eq!(outcome.code, Some(0), "{outcome}");
        assert!(recorded(lab, Identity::Own).is_empty(), "{outcome}");
    }

    fn what_was_there_before_is_put_back_and_nothing_else(lab) {
        let identity = *Identity::all().last().expect("an account");
        let place = repository(lab, identity, "back");
        write(&place.join(".envrc"), "export A=1\n", identity);
        write(&place.join(".exrc"), "set nu\n", identity);
        write(&place.join(".vscode/launch.json"), "{}\n", identity);
        let outside = lab.folder("tmp", identity).join("outside");
        write(&outside.join("launch.json"), "{\"outside\":1}\n", identity);
        bare(lab, identity, &place, "chmod 640 .envrc");
        let config = fs::read(place.join(".git/config")).expect("settings");
        let script = "echo evil >> .envrc; chmod 755 .envrc; git config core.editor evil; \
            printf x > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit; echo evil >> .exrc; \
            echo evil > .vscode/launch.json";
        let outcome = run(lab, identity, &place, (&[], script));
        assert!(outcome.stderr.contains("outgate leftovers"), "{outcome}");
        let kept = newest(lab, identity, "leftovers").expect("what was kept");
        let mode = fs::metadata(&kept).expect("a file").permissions().mode();
        assert_eq!(mode & 0o7777, 0o600);
        let shown = said(&leftovers(lab, identity, &[]));
        assert!(shown.contains("\n+evil\n") && shown.contains("\n export A=1\n"), "{shown}");
        // One was changed since, and one lies where a link leads elsewhere by now.
        write(&place.join(".exrc"), "mine since\n", identity);
        fs::rename(place.join(".vscode"), place.join("was")).expect("renamed");
        std::os::unix::fs::symlink(&outside, place.join(".vscode")).expect("a link");
        let output = leftovers(lab, identity, &["--revert"]);
        let reverted = said(&output);
        assert_eq!(output.status.code(), Some(1), "{reverted}");
        let read = |path: &str| fs::read_to_string(place.join(path)).expect("a file");
        assert_eq!(read(".envrc"), "export A=1\n", "{reverted}");
        let mode = fs::metadata(place.join(".envrc")).expect("a file").permissions().mode();
        assert_eq!(mode & 0o7777, 0o640);
        assert_eq!(fs::read(place.join(".git/config")).expect("settings"), config, "{reverted}");
        assert!(!place.join(".git/hooks/pre-commit").exists(), "{reverted}");
        assert_eq!(read(".exrc"), "mine since\n", "{reverted}");
        let untouched = fs::read_to_string(outside.join("launch.json")).expect("a file");
        assert_eq!(untouched, "{\"outside\":1}\n");
        let backup = kept.with_extension("reverted");
        let saved: Vec<String> = fs::read_dir(backup).expect("what was replaced").flatten()
            .map(|entry| fs::read_to_string(entry.path()).expect("a file")).collect();
        assert!(saved.iter().any(|text| text == "export A=1\nevil\n"), "{saved:?}");
        // Once more: nothing is as the run left it.
        let again = leftovers(lab, identity, &["--revert"]);
        assert_eq!(again.status.code(), Some(1), "{}", said(&again));
        assert_eq!(read(".envrc"), "export A=1\n");
    }

    fn the_status_is_as_it_was_asked_for(lab) {
        let identity = *Identity::all().last().expect("an account");
        let place = repository(lab, identity, "status");
        for (options, script, code, told) in [
            (&["--leftovers=fail"][..], "echo 1 > .envrc", 3, true),
            (&["--leftovers=fail"], "echo 2 > .envrc; exit 7", 3, true),
            (&["--leftovers=fail"], "exit 7", 7, false),
            (&[], "echo 3 > .envrc; exit 7", 7, true),
            (&["--leftovers=off"], "echo 4 > .envrc", 0, false),
            (&["--no-summary"], "echo 5 > .envrc", 0, false),
        ] {
            let outcome = run(lab, identity, &place, (options, script));
            assert_eq!(outcome.code, Some(code), "{options:?} {script}\n{outcome}");
            assert_eq!(outcome.stderr.contains("leftover"), told, "{options:?} {script}\n{outcome}");
        }
    }

    fn a_program_on_the_path_is_told(lab) {
        let identity = *Identity::all().last().expect("an account");
        let place = repository(lab, identity, "path");
        let programs = place.join("bin");
        bare(lab, identity, &place, "mkdir bin other");
        let search = format!("/usr/bin:/bin:{}", programs.display());
        let sandbox = Sandbox::plain(lab, identity).within(place.clone()).environment("PATH", &search);
        let script = "echo x > bin/ls; chmod +x bin/ls; echo x > bin/notes; echo x > other/ls; chmod +x other/ls";
        let outcome = sandbox.run(&["sh", "-c", script].map(str::to_owned));
        let left = recorded(lab, identity);
        let expected = ("path-program".to_owned(), programs.join("ls").display().to_string());
        assert_eq!(left, [expected], "{outcome}");
    }
}
