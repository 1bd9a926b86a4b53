//! The user's settings of git inside a run: all of them but those that hold
//! credentials or ask for keys.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use outgate_harness::{Identity, Lab, lab_tests};

use crate::{WHO, bare, home, prints, project, run, write};

/// Settings as people have them, with what must stay outside.
const SETTINGS: &str = r#"
[user]
	name = Ada
	email = ada@b.test
	signingkey = ABCDEF12
[core]
	excludesFile = ~/lists/ignored
[init]
	defaultBranch = trunk
[commit]
	gpgsign = true
	template = ~/lists/message
[alias]
	hist = "log --format='%an %s'"
[credential]
	helper = store --file ~/.secret-store
	helper = "!f() { echo password=PLAIN-SECRET; }; f"
[http "https://git.corp.test/"]
	extraHeader = Authorization: Basic c2VjcmV0OnNlY3JldA==
[url "https://ada:URL-SECRET@git.corp.test/"]
	insteadOf = corp:
[url "https://git.other.test/"]
	insteadOf = other:
[sendemail]
	smtpPass = MAIL-SECRET
[github]
	token = HUB-SECRET
[include]
	path = lists/more.gitconfig
[includeIf "gitdir:~/p/"]
	path = lists/here.gitconfig
[includeIf "gitdir:~/elsewhere/"]
	path = lists/elsewhere.gitconfig
"#;

/// Credentials as people write them where nobody asks for them.
const ODD: &str = r#"
[user]
	name = Ada
	email = ada@b.test
	token = ghs_SECRETcee167a5a36dedd4bea2543dfg
	password = SECRETpw
[diff "openssl"]
	textconv = "openssl enc -d -aes-256-cbc -k SECRETr4qey7i90ertqr -in"
	command = "mysqldiff -pSECRETxyzzy"
	algorithm = histogram
[merge "m"]
	driver = "merge.sh --vault SECRETdor3x %A %O %B"
	conflictstyle = zdiff3
[gpg "ssh"]
	defaultkeycommand = "op-read --session SECRET2LqPz7Tn8RwYcM"
[gpg]
	program = gpg-SECRET
[format]
	headers = "X-Gate: SECRET"
[fetch]
	bundleuri = "https://h.example/b?sig=SECRET"
	prune = true
[branch "main"]
	remote = "https://SECRET45fceea167a5a3@github.com/x/y"
	merge = refs/heads/main
[http]
	proxy = corpuser:SECRET@proxy.corp:8080
[http "https://git.corp/?private_token=SECRET-1234567890"]
	sslVerify = true
[core]
	sshCommand = sshpass -p SECRET ssh
	gitproxy = "prox.sh --pw SECRET"
[jira]
	pass = SECRET
	pwd = SECRET
	auth = user:SECRET
	key = SECRET
	plain = SECRET
[alias]
	up = "!curl -u user:SECRET https://x"
	c = "!GITLAB_PAT=SECRET glab"
	db = "!mysql -pSECRETaliaspw prod"
	red = "!redis-cli -a SECRETsPw99 flushall"
	new = "!git push https://x -o SECRETsPw99"
	fn = "!f() { mysql -psecretsmall prod; }; f"
	mix = "!f() { git status; redis-cli -a secretsmall; }; f"
	also = "!git status; echo secretsmall"
	st = status --short
	lg = log --graph --pretty=format:'%C(auto)%h %s'
	last = "!git log -1 HEAD"
[core]
	editor = "code --wait"
	pager = "delta --login SECRET"
[interactive]
	diffFilter = "delta --color-only --pw=SECRET"
[credential "https://git.corp"]
	helper = "!f() { echo username=u; echo \"pass\"\"word=SECRET\"; }; f"
	helper = "!printf 'username=u\\npassword%sSECRET\\n' ="
	helper = !/usr/bin/gh auth git-credential
[url "https://u:SECRET@git.corp/"]
	insteadOf = corp:
[url "ssh://u@h/"]
	insteadOf = https://x:SECRET@y/
[remote "o"]
	url = corpuser:SECRET@git.corp:/x
[lfs]
	url = "https://u:SECRET@lfs"
	args = --pat SECRET
[ghq]
	root = ~/src
"#;

fn settle(lab: &Lab, identity: Identity) {
    let home = home(lab, identity);
    write(&home.join(".gitconfig"), SETTINGS, identity);
    write(&home.join("lists/ignored"), "*.ignored\n", identity);
    write(&home.join("lists/message"), "", identity);
    let more = "[color]\n\tui = never\n[gitlab]\n\tpassword = INCLUDED-SECRET\n";
    write(&home.join("lists/more.gitconfig"), more, identity);
    write(
        &home.join("lists/here.gitconfig"),
        "[desk]\n\there = yes\n",
        identity,
    );
    write(
        &home.join("lists/elsewhere.gitconfig"),
        "[desk]\n\telsewhere = yes\n",
        identity,
    );
    let shared = "[desk]\n\tshared = yes\n[user]\n\tname = Overridden\n";
    write(&home.join(".config/git/config"), shared, identity);
    write(&home.join(".config/git/ignore"), "*.never\n", identity);
}

lab_tests! {
    fn the_users_settings_hold_without_their_credentials(lab) {
        for identity in Identity::all() {
            settle(lab, identity);
            let work = project(lab, identity, "p");
            bare(lab, identity, &work, "git init -q .");
            let script = "git add README && git commit -q -m first && git hist && \
                          git config --get desk.here && git config --get desk.shared && \
                          git config --get color.ui && ! git config --get desk.elsewhere && \
                          git config --get url.https://git.other.test/.insteadof && \
                          touch a.ignored && git status --short && git config --list";
            let outcome = run(lab, identity, &work, script);
            assert_eq!(outcome.code, Some(0), "{outcome}");
            let first: Vec<&str> = outcome.stdout.lines().take(5).collect();
            assert_eq!(first, ["Ada first", "yes", "yes", "never", "other:"], "{outcome}");
            assert!(!outcome.stdout.contains("a.ignored"), "{outcome}");
            assert!(!outcome.stdout.contains("SECRET"), "{outcome}");
            assert!(!outcome.stdout.contains("c2VjcmV0"), "{outcome}");
            for name in ["http.extraheader", "credential.helper", "commit.gpgsign", "github.token"] {
                assert!(outcome.stderr.contains(name), "{name}\n{outcome}");
            }
            // None of it can be had by another way.
            let all = "cat ~/.gitconfig ~/.config/git/config ~/lists/more.gitconfig; grep -rs SECRET $TMPDIR";
            let outcome = run(lab, identity, &work, all);
            assert!(!outcome.stdout.contains("SECRET"), "{outcome}");
            // The user's own file is as it was.
            let script = "git config --global user.name Mallory && git config user.name";
            assert_eq!(prints(lab, identity, &work, script), "Mallory\n");
            let own = fs::read_to_string(home(lab, identity).join(".gitconfig")).expect("a file");
            assert_eq!(own, SETTINGS);
        }
    }

    fn no_credential_is_kept_whatever_it_is_called(lab) {
        for identity in Identity::all() {
            write(&home(lab, identity).join(".gitconfig"), ODD, identity);
            let work = project(lab, identity, "p");
            let script = "git init -q . && git st && git config --list --show-origin && cat $TMPDIR/git/*";
            let outcome = run(lab, identity, &work, script);
            assert_eq!(outcome.code, Some(0), "{outcome}");
            let said = format!("{}{}", outcome.stdout, outcome.stderr);
            assert!(!["SECRET", "secretsmall"].iter().any(|secret| said.contains(secret)), "{outcome}");
            for said in ["user.token", "user.password"] {
                assert!(outcome.stderr.contains(said), "{said}\n{outcome}");
            }
            for kept in [
                "user.name=Ada", "alias.st=status", "gh auth git-credential", "ghq.root=~/src", "diff.openssl.algorithm=histogram",
                "merge.m.conflictstyle=zdiff3", "fetch.prune=true", "branch.main.merge=refs/heads/main", "alias.lg=log --graph",
                "alias.last=!git log -1 HEAD", "core.editor=code --wait",
            ] {
                assert!(outcome.stdout.contains(kept), "{kept}\n{outcome}");
            }
        }
    }

    /// Settings that lie where an earlier run could write, behind a link as people keep them.
    fn planted_settings_open_nothing(lab) {
        for identity in Identity::all() {
            let home = home(lab, identity);
            let dotfiles = home.join("dotfiles");
            write(&dotfiles.join("gitconfig"), "[user]\n\tname = Ada\n", identity);
            std::os::unix::fs::symlink("dotfiles/gitconfig", home.join(".gitconfig")).expect("a link");
            write(&home.join(".netrc"), "machine x login y password NETRC-SECRET\n", identity);
            write(&home.join("Documents/tax.txt"), "TAX-SECRET\n", identity);
            write(&home.join(".config/gh/hosts.yml"), "oauth_token: GH-SECRET\n", identity);
            write(&home.join(".config/wg/wg0.conf"), "[Interface]\nPrivateKey = WG-SECRET\nAddress = WG-SECRET\n", identity);
            write(&home.join(".config/app/attributes.conf"), "PRIVATE KEY APP-SECRET\n", identity);
            let plant = "printf '[core]\n hooksPath = ~/Documents\n excludesFile = ~/.netrc\n attributesFile = ~/.config/app/attributes.conf\n[init]\n templateDir = ~/.config/gh\n[commit]\n template = ~/.config/gh/hosts.yml\n[include]\n path = ~/.config/wg/wg0.conf\n' >>gitconfig";
            let outcome = run(lab, identity, &dotfiles, plant);
            assert_eq!(outcome.code, Some(0), "{outcome}");
            let work = project(lab, identity, "p");
            let script = "git config user.name; cat ~/.netrc ~/Documents/tax.txt ~/.config/gh/hosts.yml ~/.config/app/attributes.conf; cat $TMPDIR/git/*; git config --list";
            let outcome = run(lab, identity, &work, script);
            assert!(outcome.stdout.starts_with("Ada\n"), "{outcome}");
            assert!(!outcome.stdout.contains("SECRET"), "{outcome}");
        }
    }

    fn git_never_fails_for_settings_that_cannot_be_read(lab) {
        for identity in Identity::all() {
            let home = home(lab, identity);
            let work = project(lab, identity, "p");
            bare(lab, identity, &work, "git init -q . && git -c user.name=A -c user.email=a@b commit -q --allow-empty -m x");
            let file = home.join(".gitconfig");
            let long = "[a]\n".repeat(100_000);
            for text in ["[broken", "[user]\n\tname = \"x\n", long.as_str()] {
                write(&file, text, identity);
                prints(lab, identity, &work, "git log --oneline");
            }
            write(&file, "[user]\nname = x\n", identity);
            fs::set_permissions(&file, fs::Permissions::from_mode(0o000)).expect("mode");
            prints(lab, identity, &work, "git log --oneline");
            fs::remove_file(&file).expect("removed");
            std::os::unix::fs::symlink("nowhere", &file).expect("a link");
            prints(lab, identity, &work, "git log --oneline");
            fs::remove_file(&file).expect("removed");
            nix::unistd::mkfifo(&file, nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
            prints(lab, identity, &work, "git log --oneline");
            fs::remove_file(&file).expect("removed");
            // Files that include one another end somewhere.
            write(&file, "[include]\n\tpath = .gitconfig\n[user]\n\tname = Loop\n", identity);
            let outcome = run(lab, identity, &work, "git log --oneline");
            assert!(outcome.stderr.len() < 4096, "{outcome}");
        }
    }

    fn a_home_without_settings_is_as_good(lab) {
        for identity in Identity::all() {
            let work = project(lab, identity, "p");
            let script = "git init -q . && git add . && \
                          git -c user.name=A -c user.email=a@b commit -q -m x && git log --format=%an";
            assert_eq!(prints(lab, identity, &work, script), "A\n");
            bare(lab, identity, &work, WHO);
            let script = "git commit -q --allow-empty -m y && git log -1 --format=%an";
            assert_eq!(prints(lab, identity, &work, script), "Ada\n");
        }
    }

    fn variables_that_name_a_file_are_believed(lab) {
        for identity in Identity::all() {
            let work = project(lab, identity, "p");
            bare(lab, identity, &work, &format!("git init -q . && {WHO}"));
            let other = home(lab, identity).join("other");
            write(&other, "[user]\n\tname = Other\n\temail = o@b\n[x]\ntoken = T-SECRET-1\n", identity);
            let sandbox = outgate_harness::Sandbox::plain(lab, identity).within(work.clone());
            let sandbox = sandbox.environment("GIT_CONFIG_GLOBAL", &other.to_string_lossy());
            let outcome = sandbox.run(&["git", "config", "--list"].map(str::to_owned));
            assert!(outcome.stdout.contains("user.name=Other"), "{outcome}");
            assert!(!outcome.stdout.contains("SECRET"), "{outcome}");
            let sandbox = outgate_harness::Sandbox::plain(lab, identity).within(work.clone());
            let sandbox = sandbox.option("--env", "GIT_CONFIG_GLOBAL=/dev/null");
            let outcome = sandbox.run(&["git", "config", "--list"].map(str::to_owned));
            assert!(!outcome.stdout.contains("user.name"), "{outcome}");
        }
    }
}
