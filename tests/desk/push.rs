//! `git push` as people do it: over ssh with an agent, over https with a token that a helper
//! or a secret holds, from the main work tree, a linked one, and one of a bare repository.
//! Real servers; each hint of a denial is followed as it is written.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use outgate_harness::servers::{is_there, serve};
use outgate_harness::{Identity, Lab, Outcome, Sandbox, lab_tests};

use crate::{WHO, bare, home, project, write};

/// The token that the server takes.
const TOKEN: &str = "tok-0123456789abcdef-for-the-repository";

/// A server of repositories over TLS: one path, one token, and a line for each request.
const SERVER: &str = r#"
import base64, http.server, os, ssl, subprocess, sys
root, certificate, token = sys.argv[1:4]
wanted = "Basic " + base64.b64encode(("me:" + token).encode()).decode()
class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_): pass
    def serve(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        has = self.headers.get("Authorization")
        with open(root + "/requests", "a") as log:
            log.write("%s %s %s\n" % (self.command, self.path, {None: "nothing", wanted: "token"}.get(has, "other")))
        if has != wanted:
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="git"')
            self.send_header("Content-Length", "0")
            return self.end_headers()
        path, _, query = self.path.partition("?")
        given = dict(os.environ, GIT_PROJECT_ROOT=root, GIT_HTTP_EXPORT_ALL="1", PATH_INFO=path, QUERY_STRING=query,
                     REQUEST_METHOD=self.command, REMOTE_USER="me", CONTENT_LENGTH=str(len(body)),
                     CONTENT_TYPE=self.headers.get("Content-Type", ""),
                     HTTP_CONTENT_ENCODING=self.headers.get("Content-Encoding", ""))
        out = subprocess.run(["git", "http-backend"], input=body, env=given, stdout=subprocess.PIPE).stdout
        head, _, content = out.partition(b"\r\n\r\n")
        fields = [line.split(": ", 1) for line in head.decode().split("\r\n")]
        status = [value for name, value in fields if name == "Status"]
        self.send_response(int(status[0].split()[0]) if status else 200)
        for name, value in fields:
            if name != "Status": self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
    do_GET = do_POST = serve
server = http.server.ThreadingHTTPServer(("127.0.0.1", 443), Handler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(certificate)
server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
"#;

/// A repository that everybody here may push to, with its URL's path.
fn served(lab: &Lab) -> PathBuf {
    let folder = lab.folder("served", Identity::Own);
    let script =
        "git init -q --bare -b trunk all.git && git -C all.git config http.receivepack true";
    bare(lab, Identity::Own, &folder, script);
    folder
}

/// Three work trees of an account's that push to a URL; each has something to push.
fn trees(lab: &Lab, identity: Identity, url: &str) -> Vec<PathBuf> {
    let main = project(lab, identity, "main");
    let id = identity.uid();
    let script = format!(
        "{WHO} && git init -q -b main-{id} . && git add . && git commit -q -m first && \
         git remote add origin {url} && git worktree add -q -b linked-{id} ../wt && \
         git clone -q --bare . ../bare.git && git -C ../bare.git remote set-url origin {url} && \
         git -C ../bare.git worktree add -q -b of-bare-{id} ../of-bare"
    );
    bare(lab, identity, &main, &script);
    let home = home(lab, identity);
    let all = vec![main, home.join("wt"), home.join("of-bare")];
    for tree in &all {
        bare(
            lab,
            identity,
            tree,
            "git commit -q --allow-empty -m \"$PWD\"",
        );
    }
    all
}

/// Whether the served repository has the work tree's commit.
fn arrived(lab: &Lab, served: &Path, tree: &Path, identity: Identity) -> bool {
    let head = bare(lab, identity, tree, "git rev-parse HEAD");
    let all = bare(
        lab,
        Identity::Own,
        &served.join("all.git"),
        "git for-each-ref",
    );
    all.contains(head.trim())
}

fn push(sandbox: Sandbox<'_>) -> Outcome {
    sandbox.run(&["git", "push", "-q", "origin", "HEAD"].map(str::to_owned))
}

/// The flags of the first denial that a run told, as a shell takes them apart.
#[track_caller]
fn flag(outcome: &Outcome) -> (String, String) {
    let mut lines = outcome.stderr.lines();
    let line = lines.find(|line| line.starts_with("outgate: denied "));
    let said = line.and_then(|line| line.split_once("to allow: "));
    assert!(said.is_some(), "{outcome}");
    let (_, said) = said.expect("a denial with its option");
    let (name, value) = said.split_once(' ').expect("an option and its value");
    (name.to_owned(), value.trim_matches('\'').to_owned())
}

/// Starts sshd on port 22 and an agent with a key of the account's, which it knows.
fn ssh(lab: &Lab, identity: Identity) -> String {
    let folder = lab.folder("sshd", Identity::Own);
    let home = home(lab, identity);
    let script = "test -f host || ssh-keygen -q -t ed25519 -N '' -f host; \
                  test -f user || ssh-keygen -q -t ed25519 -N '' -f user; chmod 644 user.pub";
    bare(lab, Identity::Own, &folder, script);
    let text = |name: &str| fs::read_to_string(folder.join(name)).expect("a key");
    write(&home.join(".ssh/id_ed25519"), &text("user"), identity);
    write(
        &home.join(".ssh/known_hosts"),
        &format!("git.example {}", text("host.pub")),
        identity,
    );
    let own = |name: &str, mode| {
        fs::set_permissions(home.join(name), fs::Permissions::from_mode(mode)).expect("a mode");
    };
    own(".ssh", 0o700);
    own(".ssh/id_ed25519", 0o600);
    let socket = lab
        .folder("agent", identity)
        .join("socket")
        .to_string_lossy()
        .into_owned();
    bare(
        lab,
        identity,
        &home,
        &format!(
            "ssh-agent -a {socket} >/dev/null 2>&1 && SSH_AUTH_SOCK={socket} ssh-add -q ~/.ssh/id_ed25519"
        ),
    );
    socket
}

/// ssh as it would be if the account's home directory were that of the laboratory: it asks
/// the table of accounts for it, not `HOME`.
fn client(lab: &Lab, identity: Identity) -> String {
    let keys = home(lab, identity).join(".ssh");
    let keys = keys.display();
    format!(
        "ssh -F /dev/null -o BatchMode=yes -o UserKnownHostsFile={keys}/known_hosts -o IdentityFile={keys}/id_ed25519"
    )
}

fn sshd(lab: &Lab) {
    let folder = lab.folder("sshd", Identity::Own);
    bare(
        lab,
        Identity::Own,
        &folder,
        "ssh-keygen -q -t ed25519 -N '' -f host; ssh-keygen -q -t ed25519 -N '' -f user",
    );
    fs::create_dir_all("/run/sshd").expect("its folder");
    let shown = folder.display();
    let text = format!(
        "HostKey {shown}/host\nListenAddress 127.0.0.1:22\nPidFile none\nUsePAM no\nStrictModes no\n\
                        PermitRootLogin yes\nAuthorizedKeysFile {shown}/user.pub\n"
    );
    fs::write(folder.join("config"), text).expect("settings");
    let config = folder.join("config").to_string_lossy().into_owned();
    serve(
        &["/usr/sbin/sshd", "-D", "-e", "-f", &config],
        &folder,
        &["127.0.0.1:22"],
    );
}

/// Serves the repositories over TLS; the file that its certificate is in.
fn over_tls(lab: &Lab, served: &Path) -> String {
    let make = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 3 -keyout key.pem -out cert.pem \
                -subj /CN=git.example -addext basicConstraints=critical,CA:FALSE -addext subjectAltName=DNS:git.example 2>/dev/null && cat cert.pem key.pem > both.pem && chmod 644 cert.pem";
    bare(lab, Identity::Own, served, make);
    fs::write(served.join("server.py"), SERVER).expect("a server");
    let path = |name: &str| served.join(name).to_string_lossy().into_owned();
    serve(
        &[
            "/usr/bin/python3",
            &path("server.py"),
            &served.to_string_lossy(),
            &path("both.pem"),
            TOKEN,
        ],
        served,
        &["127.0.0.1:443"],
    );
    path("cert.pem")
}

lab_tests! {
    fn over_ssh_with_an_agent_each_hint_leads_on(lab) {
        if !["ssh", "ssh-agent", "ssh-add", "ssh-keygen"].iter().all(|name| is_there(name)) || !Path::new("/usr/sbin/sshd").exists() {
            return;
        }
        if outgate_harness::lab::is_mapped() {
            return outgate_harness::skip_here("sshd must set groups, which a user namespace with one account forbids");
        }
        sshd(lab);
        let served = served(lab);
        for identity in Identity::all() {
            let socket = ssh(lab, identity);
            let client = client(lab, identity);
            let url = format!("root@git.example:{}/all.git", served.display());
            for tree in trees(lab, identity, &url) {
                let sandbox = || {
                    let sandbox = Sandbox::plain(lab, identity).within(tree.clone());
                    sandbox.pin("git.example=127.0.0.1:22").environment("SSH_AUTH_SOCK", &socket).environment("GIT_SSH_COMMAND", &client)
                };
                let outcome = push(sandbox());
                let (name, host) = flag(&outcome);
                assert_eq!((name.as_str(), host.as_str()), ("-a", "tcp://git.example:22"), "{outcome}");
                let outcome = push(sandbox().option(&name, &host));
                let (name, agent) = flag(&outcome);
                assert_eq!((name.as_str(), agent), ("-a", format!("unix://{socket}")), "{outcome}");
                assert!(!outcome.stderr.contains("Host key verification failed"), "{outcome}");
                assert!(!arrived(lab, &served, &tree, identity), "{outcome}");
                let outcome = push(sandbox().allow(&host).allow(&format!("unix://{socket}")));
                assert_eq!(outcome.code, Some(0), "{tree:?}: {outcome}");
                assert!(arrived(lab, &served, &tree, identity), "{tree:?}: {outcome}");
                // The key stays outside, and so does the say about hosts.
                for script in ["cat ~/.ssh/id_ed25519", "echo x >> ~/.ssh/known_hosts", "ls ~/.ssh"] {
                    let outcome = sandbox().run(&["sh", "-c", script].map(str::to_owned));
                    assert_ne!(outcome.code, Some(0), "{script}: {outcome}");
                    assert!(!outcome.stdout.contains("PRIVATE KEY"), "{outcome}");
                }
            }
        }
    }

    fn a_host_that_ssh_does_not_know_stays_unknown(lab) {
        if outgate_harness::lab::is_mapped() || !is_there("ssh-agent") || !Path::new("/usr/sbin/sshd").exists() {
            return outgate_harness::skip_here("sshd is not there, or must set groups");
        }
        sshd(lab);
        for identity in Identity::all() {
            let socket = ssh(lab, identity);
            let work = project(lab, identity, "p");
            let victim = home(lab, identity).join("secret");
            write(&victim, "git.example SECRET\n", identity);
            // A link in its place is no file of ssh's.
            let known = home(lab, identity).join(".ssh/known_hosts");
            fs::remove_file(&known).expect("a file");
            std::os::unix::fs::symlink(&victim, &known).expect("a link");
            let sandbox = Sandbox::plain(lab, identity).within(work).pin("git.example=127.0.0.1:22");
            let sandbox = sandbox.environment("GIT_SSH_COMMAND", &client(lab, identity));
            let sandbox = sandbox.environment("SSH_AUTH_SOCK", &socket).allow("tcp://git.example:22").allow(&format!("unix://{socket}"));
            let script = "cat ~/.ssh/known_hosts ~/secret; $GIT_SSH_COMMAND root@git.example echo got-in";
            let outcome = sandbox.run(&["sh", "-c", script].map(str::to_owned));
            assert!(!outcome.stdout.contains("SECRET") && !outcome.stdout.contains("got-in"), "{outcome}");
            assert!(outcome.stderr.contains("Host key verification failed"), "{outcome}");
        }
    }

    fn over_https_with_a_token_of_a_helper_and_one_that_stays_outside(lab) {
        if !["openssl", "python3"].iter().all(|name| is_there(name)) {
            return;
        }
        let served = served(lab);
        let certificate = over_tls(lab, &served);
        for identity in Identity::all() {
            let trees = trees(lab, identity, "https://git.example/all.git");
            let helper = "!f() { echo username=me; echo password=$GIT_TOKEN; }; f";
            for (number, tree) in trees.iter().enumerate() {
                bare(lab, identity, tree, &format!("git config credential.helper '{helper}'"));
                let sandbox = || {
                    let sandbox = Sandbox::plain(lab, identity).within(tree.clone()).pin("git.example=127.0.0.1:443");
                    sandbox.option("--upstream-ca", &certificate).environment("GIT_TOKEN", TOKEN)
                };
                // What is denied names the request, and that is not enough to push.
                let outcome = push(sandbox());
                assert_eq!(flag(&outcome), ("-a".to_owned(), "GET https://git.example/all.git/info/refs".to_owned()), "{outcome}");
                let rule = "GET,POST https://git.example/all.git/**";
                let allowed = if number == 0 {
                    // A token of one's own goes where its owner says.
                    sandbox().allow(rule).option("--pass-env", "GIT_TOKEN").option("--known", "GIT_TOKEN@git.example")
                } else {
                    sandbox().allow(rule).option("--secret", "GIT_TOKEN=env:GIT_TOKEN@git.example")
                };
                let outcome = push(allowed);
                assert_eq!(outcome.code, Some(0), "{tree:?}: {outcome}");
                assert!(arrived(lab, &served, tree, identity), "{tree:?}: {outcome}");
            }
            let requests = fs::read_to_string(served.join("requests")).expect("requests");
            assert!(requests.contains("POST /all.git/git-receive-pack token"), "{requests}");
            assert!(!requests.contains(" other"), "a placeholder left: {requests}");
            // The command never saw the one that stays outside.
            let sandbox = Sandbox::plain(lab, identity).within(trees[0].clone());
            let sandbox = sandbox.environment("GIT_TOKEN", TOKEN).option("--secret", "GIT_TOKEN=env:GIT_TOKEN@git.example");
            let outcome = sandbox.run(&["sh", "-c", "printenv GIT_TOKEN; env | grep -c tok-0123"].map(str::to_owned));
            assert!(!outcome.stdout.contains(TOKEN), "{outcome}");
        }
    }

    fn a_purpose_lets_git_fetch_or_push_and_nothing_beside(lab) {
        if !["openssl", "python3"].iter().all(|name| is_there(name)) {
            return;
        }
        let served = served(lab);
        let make = "for name in one two; do git clone -q --bare all.git org/$name.git; git -C org/$name.git config http.receivepack true; done";
        bare(lab, Identity::Own, &served, make);
        let certificate = over_tls(lab, &served);
        let heads = |name: &str| bare(lab, Identity::Own, &served.join(name), "git for-each-ref");
        for identity in Identity::all() {
            let tree = project(lab, identity, "purposes");
            let helper = "!f() { echo username=me; echo password=$GIT_TOKEN; }; f";
            let script = format!(
                "{WHO} && git init -q -b main-{} . && git config credential.helper '{helper}' && git add . && git commit -q -m first",
                identity.uid()
            );
            bare(lab, identity, &tree, &script);
            let git = |rules: &[&str], words: &str| {
                let mut sandbox = Sandbox::plain(lab, identity).within(tree.clone()).pin("git.example=127.0.0.1:443");
                for rule in rules {
                    sandbox = sandbox.allow(rule);
                }
                let sandbox = sandbox.option("--upstream-ca", &certificate).environment("GIT_TOKEN", TOKEN);
                let sandbox = sandbox.option("--secret", "GIT_TOKEN=env:GIT_TOKEN@git.example");
                let command: Vec<String> = words.split(' ').map(str::to_owned).collect();
                sandbox.run(&command)
            };
            let (one, two) = ("https://git.example/org/one.git", "https://git.example/org/two");
            let (read, push) = ("git:read git.example/org/one", "git:push git.example/org/one");
            let before = (heads("org/one.git"), heads("org/two.git"));
            for (rules, words, works) in [
                (vec![read], format!("git ls-remote {one}"), true),
                (vec![read], format!("git push -q {one} HEAD"), false),
                (vec![read], format!("git ls-remote {two}"), false),
                (vec![push], format!("git ls-remote {one}"), false),
                (vec![push], format!("git push -q {two} HEAD"), false),
            ] {
                let outcome = git(&rules, &words);
                assert_eq!(outcome.code == Some(0), works, "{rules:?} {words} {outcome}");
            }
            assert_eq!((heads("org/one.git"), heads("org/two.git")), before);
            let outcome = git(&[push], &format!("git push -q {one} HEAD"));
            assert_eq!(outcome.code, Some(0), "{outcome}");
            assert_ne!(heads("org/one.git"), before.0);
            let outcome = git(&[read], &format!("git fetch -q {one} main-{}", identity.uid()));
            assert_eq!(outcome.code, Some(0), "{outcome}");
            let outcome = git(&["git:push git.example/org"], &format!("git push -q {two} HEAD"));
            assert_eq!(outcome.code, Some(0), "{outcome}");
            assert_ne!(heads("org/two.git"), before.1);
        }
    }
}
