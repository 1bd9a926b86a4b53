//! Work trees: below the root of a repository, linked ones, submodules; and what a
//! hostile command could plant there for the next run.

use std::fs;
use std::os::unix::fs::symlink;

use outgate_harness::{Identity, Sandbox, lab_tests};

use crate::{WHO, bare, home, prints, project, run, write};

/// Puts something into a work tree.
type Plant<'p> = &'p dyn Fn(&std::path::Path);

lab_tests! {
    fn below_the_root_a_project_is_read_and_its_directory_written(lab) {
        for identity in Identity::all() {
            let root = project(lab, identity, "p");
            bare(lab, identity, &root, &format!("{WHO} && git init -q . && git add . && git commit -q -m first"));
            write(&root.join("node_modules/dep/index.js"), "module.exports = 'dep'\n", identity);
            write(&root.join(".env"), "TOKEN=ROOT-SECRET\n", identity);
            write(&root.join("a/.env.local"), "TOKEN=MIDDLE-SECRET\n", identity);
            write(&root.join("a/server.key"), "KEY-SECRET\n", identity);
            write(&root.join(".env.example"), "TOKEN=\n", identity);
            let sub = root.join("a/b");
            write(&sub.join("index.js"), "console.log(require('dep'))\n", identity);
            write(&sub.join(".env"), "OWN=1\n", identity);
            assert_eq!(prints(lab, identity, &sub, "git log --format=%s && node index.js"), "first\ndep\n");
            assert_eq!(prints(lab, identity, &sub, "git diff --stat && git ls-files --full-name ../.."), "README\n");
            assert_eq!(prints(lab, identity, &sub, "cat ../../README ../../.env.example .env && touch made"),
                       "a project\nTOKEN=\nOWN=1\n");
            for script in [
                "echo x >../../README",
                "echo x >../made",
                "touch ../../.git/hooks/pre-commit",
                "git commit --allow-empty -m x",
                "cat ../../.env",
                "cat ../.env.local",
                "cat ../server.key",
                "cat ../../../p/.env",
                "ln ../../.env here && cat here",
                "cp ../../.git/config ../../.git/config2",
            ] {
                let outcome = run(lab, identity, &sub, script);
                assert_ne!(outcome.code, Some(0), "{script}\n{outcome}");
                assert!(!outcome.stdout.contains("SECRET"), "{script}\n{outcome}");
            }
            assert_eq!(fs::read_to_string(root.join("README")).expect("a file"), "a project\n");
            // Who names all of it gets all of it.
            let sandbox = Sandbox::plain(lab, identity).within(sub.clone());
            let sandbox = sandbox.option("-w", "../..");
            let script = "git commit -q --allow-empty -m second && cat ../../.env";
            let outcome = sandbox.run(&["sh", "-c", script].map(str::to_owned));
            assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(0), "TOKEN=ROOT-SECRET\n"), "{outcome}");
        }
    }

    fn a_linked_work_tree_is_a_repository_like_any(lab) {
        for identity in Identity::all() {
            let main = project(lab, identity, "main");
            bare(lab, identity, &main, &format!("{WHO} && git init -q -b trunk . && git add . && git commit -q -m first && git worktree add -q ../wt -b side && git clone -q --bare . ../bare.git && git -C ../bare.git worktree add -q ../of-bare trunk"));
            let home = home(lab, identity);
            for name in ["wt", "of-bare"] {
                let tree = home.join(name);
                let script = "git status --short && echo 1 >f && git add f && git commit -q -m second && \
                              echo 2 >f && git stash -q && git stash pop -q && git commit -q -am third && \
                              git rebase -q --onto HEAD~2 HEAD~1 2>/dev/null || git rebase --abort; \
                              git log -1 --format=%an && git branch other && git branch -D other && git gc -q";
                let stdout = prints(lab, identity, &tree, script);
                assert!(stdout.contains("Ada"), "{name}: {stdout}");
                // Below it, reading is what there is.
                write(&tree.join("deep/file"), "", identity);
                let deep = tree.join("deep");
                prints(lab, identity, &deep, "git log --oneline");
                let outcome = run(lab, identity, &deep, "git commit --allow-empty -m x");
                assert_ne!(outcome.code, Some(0), "{name}\n{outcome}");
            }
            // The main work tree beside it stays closed, but for its repository.
            let wt = home.join("wt");
            let outcome = run(lab, identity, &wt, "cat ../main/README || touch ../main/x");
            assert_ne!(outcome.code, Some(0), "{outcome}");
        }
    }

    /// Who runs in both writes in both, so that each names the other: it is told when it is
    /// written, and at the start of every run that is given it.
    fn no_two_repositories_are_joined_without_a_word(lab) {
        for identity in Identity::all() {
            let [one, two] = ["one", "two"].map(|name| project(lab, identity, name));
            for tree in [&one, &two] {
                bare(lab, identity, tree, &format!("{WHO} && git init -q . && git add . && git commit -q -m first"));
            }
            let (from, to) = (one.join(".git"), two.join(".git"));
            let script = format!(
                "mkdir -p .git/worktrees/x && cd .git/worktrees/x && echo ../.. >commondir && echo {} >gitdir && cp ../../HEAD .",
                to.display()
            );
            let outcome = run(lab, identity, &one, &script);
            assert_eq!(outcome.code, Some(0), "{outcome}");
            assert!(outcome.stderr.contains(".git/worktrees/x/gitdir"), "{outcome}");
            let script = format!("mv .git was && echo 'gitdir: {}/worktrees/x' >.git", from.display());
            let outcome = run(lab, identity, &two, &script);
            assert!(!outcome.stderr.contains("the repository of this work tree"), "{outcome}");
            for _ in 0..2 {
                let outcome = run(lab, identity, &two, "true");
                let line = format!("outgate: the repository of this work tree is {}: it is granted for writing, too", from.display());
                assert!(outcome.stderr.contains(&line), "{outcome}");
            }
            // A work tree that git makes within the grants is told by nobody.
            let outcome = run(lab, identity, &one, "rm -r .git/worktrees/x; git worktree add -q inner");
            assert_eq!(outcome.code, Some(0), "{outcome}");
            assert!(!outcome.stderr.contains("gitdir"), "{outcome}");
        }
    }

    fn a_submodule_commits(lab) {
        for identity in Identity::all() {
            let part = project(lab, identity, "part");
            bare(lab, identity, &part, &format!("{WHO} && git init -q . && git add . && git commit -q -m first"));
            let whole = project(lab, identity, "whole");
            bare(lab, identity, &whole, "git init -q . && git -c protocol.file.allow=always submodule --quiet add ../part sub && git commit -q -m all");
            let sub = whole.join("sub");
            let script = "git commit -q --allow-empty -m inner && git log -1 --format=%s";
            assert_eq!(prints(lab, identity, &sub, script), "inner\n");
            assert_eq!(prints(lab, identity, &whole, "git -C sub commit -q --allow-empty -m outer && git status --short"), " M sub\n?? README\n");
        }
    }

    fn nothing_planted_in_a_work_tree_opens_another_repository(lab) {
        for identity in Identity::all() {
            let home = home(lab, identity);
            let victim = project(lab, identity, "victim");
            bare(lab, identity, &victim, &format!("{WHO} && git init -q . && echo VICTIM-SECRET >f && git add . && git commit -q -m first && git worktree add -q ../real"));
            let trusted = victim.join(".git");
            let shown = trusted.display();
            let read = format!("cat {shown}/HEAD {shown}/config; git log; git cat-file -p HEAD:f; touch {shown}/planted; cat ~/.ssh/id");
            write(&home.join(".ssh/id"), "KEY-SECRET\n", identity);
            let plants: [(&str, Plant<'_>); 9] = [
                ("a link to it", &|at| symlink(&trusted, at.join(".git")).expect("a link")),
                ("a file that names it", &|at| write(&at.join(".git"), &format!("gitdir: {shown}\n"), identity)),
                ("one of its work trees", &|at| write(&at.join(".git"), &format!("gitdir: {shown}/worktrees/real\n"), identity)),
                ("a directory with its commondir", &|at| {
                    write(&at.join(".git"), "gitdir: fake/worktrees/x\n", identity);
                    write(&at.join("fake/worktrees/x/commondir"), &format!("{shown}\n"), identity);
                    write(&at.join("fake/worktrees/x/gitdir"), &format!("{}/.git\n", at.display()), identity);
                    write(&at.join("fake/worktrees/x/HEAD"), "ref: refs/heads/master\n", identity);
                }),
                ("a link in the way", &|at| {
                    write(&at.join(".git"), "gitdir: fake/worktrees/real\n", identity);
                    symlink(&trusted, at.join("fake")).expect("a link");
                }),
                ("a link for its common directory", &|at| {
                    write(&at.join(".git"), "gitdir: fake/worktrees/x\n", identity);
                    write(&at.join("fake/worktrees/x/commondir"), "../..\n", identity);
                    write(&at.join("fake/worktrees/x/gitdir"), &format!("{}/.git\n", at.display()), identity);
                    write(&at.join("fake/HEAD"), "ref: refs/heads/master\n", identity);
                    symlink(trusted.join("objects"), at.join("fake/objects")).expect("a link");
                }),
                ("a submodule's settings", &|at| {
                    write(&at.join(".git"), "gitdir: fake\n", identity);
                    write(&at.join("fake/config"), &format!("[core]\n\tworktree = {}\n[include]\n\tpath = ~/.ssh/id\n", at.display()), identity);
                    symlink(trusted.join("objects"), at.join("fake/objects")).expect("a link");
                    symlink(home.join(".ssh/id"), at.join("fake/HEAD")).expect("a link");
                }),
                ("the home directory", &|at| write(&at.join(".git"), &format!("gitdir: {}\n", home.display()), identity)),
                ("keys", &|at| write(&at.join(".git"), &format!("gitdir: {}\n", home.join(".ssh").display()), identity)),
            ];
            for (number, (what, plant)) in plants.into_iter().enumerate() {
                let at = project(lab, identity, &format!("hostile-{number}"));
                plant(&at);
                for directory in [at.clone(), at.join("deep")] {
                    write(&directory.join("here"), "", identity);
                    let outcome = run(lab, identity, &directory, &read);
                    assert!(!outcome.stdout.contains("SECRET"), "{what}\n{outcome}");
                    assert!(!outcome.stdout.contains("repositoryformatversion"), "{what}\n{outcome}");
                    assert!(!trusted.join("planted").exists(), "{what}\n{outcome}");
                }
            }
        }
    }

    fn a_repository_around_the_home_opens_nothing(lab) {
        for identity in Identity::all() {
            let home = home(lab, identity);
            bare(lab, identity, &home, &format!("{WHO} && git init -q ."));
            write(&home.join(".ssh/id"), "KEY-SECRET\n", identity);
            write(&home.join("notes"), "NOTES-SECRET\n", identity);
            let work = project(lab, identity, "p");
            let outcome = run(lab, identity, &work, "cat ~/.ssh/id ~/notes; ls ~");
            assert_ne!(outcome.code, Some(0), "{outcome}");
            assert!(!outcome.stdout.contains("SECRET"), "{outcome}");
            assert!(!outcome.stdout.contains("notes"), "{outcome}");
        }
    }

    fn a_strangers_repository_above_opens_nothing(lab) {
        if !Identity::all().contains(&Identity::Nobody) {
            return;
        }
        // Whoever may write a directory above could make one.
        let shared = lab.folder("shared", Identity::Own);
        write(&shared.join("others"), "OTHERS-SECRET\n", Identity::Own);
        bare(lab, Identity::Own, &shared, "git init -q .");
        let work = shared.join("mine");
        write(&work.join("x"), "", Identity::Nobody);
        let outcome = run(lab, Identity::Nobody, &work, "cat ../others");
        assert_ne!(outcome.code, Some(0), "{outcome}");
    }
}
