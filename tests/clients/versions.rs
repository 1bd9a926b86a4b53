//! git over HTTP and its own protocol: what may be read can be cloned and
//! fetched, and not pushed to.

use std::path::Path;
use std::process::Command;

use outgate_harness::lab_tests;
use outgate_harness::servers::serve;

use crate::scenario::{Run, Scenario, assert_denied, assert_requests, check_all};
use crate::stage::{FILES, Stage, spelt};

/// Reads: the advertisement, and the service that sends objects.
const READ: [&str; 2] = [
    "GET http://live.example/git/project.git/info/refs?service=git-upload-pack",
    "POST http://live.example/git/project.git/git-upload-pack",
];

/// And the two that take objects.
const WRITE: [&str; 2] = [
    "GET http://live.example/git/project.git/info/refs?service=git-receive-pack",
    "POST http://live.example/git/project.git/git-receive-pack",
];

const ADVERTISED: &str = "live.example GET /git/project.git/info/refs?service=git-upload-pack";
const SENT: &str = "live.example POST /git/project.git/git-upload-*";

const OVER_HTTP: [Scenario<'_>; 3] = [
    Scenario {
        name: "git clone",
        allow: &READ,
        script: "git clone -q http://live.example/git/project.git here && cat here/file && git -C here fsck",
        shows: "first line",
        requests: &[ADVERTISED, SENT],
        told: "outgate denied GET http://live.example/git/project.git/info/refs",
        host: "live.example",
    },
    Scenario {
        name: "git clone of a part",
        allow: &READ,
        script: "git clone -q --depth 1 --filter=blob:none --no-checkout http://live.example/git/project.git here && git -C here log --oneline",
        shows: "second commit",
        requests: &[ADVERTISED, SENT],
        told: "403",
        host: "live.example",
    },
    Scenario {
        name: "git ls-remote",
        allow: &READ,
        script: "git ls-remote http://live.example/git/project.git",
        shows: "refs/heads/main",
        requests: &[ADVERTISED, SENT],
        told: "403",
        host: "live.example",
    },
];

/// Makes a bare repository that may be pushed to, with two commits.
pub(crate) fn publish(stage: &Stage<'_>) {
    let script = r"
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1
export GIT_AUTHOR_NAME=x GIT_AUTHOR_EMAIL=x@x.example GIT_COMMITTER_NAME=x GIT_COMMITTER_EMAIL=x@x.example
git init -q -b main seed && cd seed
echo 'first line' > file && git add file && git commit -q -m 'first commit'
seq 20000 > numbers && git add numbers && git commit -q -m 'second commit'
cd .. && git clone -q --bare seed project.git && rm -rf seed
git -C project.git config http.receivepack true
git -C project.git config uploadpack.allowFilter true
touch project.git/git-daemon-export-ok";
    let repositories = stage.repositories();
    let mut shell = Command::new("sh");
    let made = shell.args(["-e", "-c", script]).current_dir(&repositories);
    let made = made.output().expect("a shell");
    let said = String::from_utf8_lossy(&made.stderr);
    assert!(made.status.success(), "no repository: {said}");
}

/// The newest commit of the repository.
fn newest(repository: &Path) -> String {
    let mut git = Command::new("git");
    git.args(["-c", "safe.directory=*", "log", "--format=%s", "-1", "main"]);
    let shown = git.current_dir(repository).output().expect("git runs");
    String::from_utf8_lossy(&shown.stdout).trim().to_owned()
}

/// A commit that is pushed.
const PUSH: &str = "git clone -q http://live.example/git/project.git here && cd here && git config user.name x && git config user.email x@x.example && echo more > more && git add more && git commit -q -m 'third commit' && git push -q origin main && echo pushed";

carried_tests! {
    fn git_reads_over_http(lab) {
        let Some(mut stage) = Stage::start(lab, &[]) else { return };
        publish(&stage);
        check_all(&mut stage, &OVER_HTTP);
    }

    fn git_pushes_only_where_it_may_write(lab) {
        let Some(mut stage) = Stage::start(lab, &[]) else { return };
        publish(&stage);
        let repository = stage.repositories().join("project.git");
        let run = Run::make(&stage, stage.allowing(&READ), PUSH);
        assert!(!run.outcome.stdout.contains("pushed"), "{run}");
        assert_eq!(newest(&repository), "second commit", "{run}");
        let told = spelt("outgate denied GET http://live.example/git/project.git/info/refs: the allow rule ");
        assert!(run.errors.contains(&told), "{run}");
        assert_requests(&stage.seen(), &[ADVERTISED, SENT], &run.to_string());

        let writer = stage.allowing(&[&READ[..], &WRITE].concat());
        let run = Run::make(&stage, writer, PUSH);
        assert!(run.outcome.stdout.contains("pushed"), "{run}");
        assert_eq!(newest(&repository), "third commit", "{run}");
    }
}

lab_tests! {
    fn git_speaks_its_own_protocol_over_a_tcp_rule(lab) {
        let Some(mut stage) = Stage::start(lab, &[]) else { return };
        publish(&stage);
        let base = format!("--base-path={}", stage.repositories().display());
        let listen = format!("--listen={FILES}");
        let line = ["git", "daemon", "--verbose", "--reuseaddr", &listen, &base];
        serve(&line, &stage.repositories(), &[&format!("{FILES}:9418")]);
        let said = stage.repositories().join("git.out");
        let connections = || std::fs::read_to_string(&said).unwrap_or_default().matches("Connection from").count();
        let script = "git clone -q git://code.example/project.git here && cat here/file";
        let sandbox = stage.sandbox().allow("tcp://code.example:9418");
        let run = Run::make(&stage, sandbox, script);
        assert_eq!(run.outcome.stdout, "first line\n", "{run}");
        assert!(stage.seen().asked.iter().all(|name| name == "code.example"), "{run}");
        let before = connections();
        assert!(before > 0, "the daemon tells of connections");
        let run = Run::make(&stage, stage.sandbox().allow("tcp://code.example:9419"), script);
        assert_eq!(run.outcome.code, Some(128), "{run}");
        assert!(run.errors.contains("Connection refused"), "{run}");
        assert_denied(&mut stage, &run, "code.example", &run.to_string());
        assert_eq!(connections(), before, "{run}");
    }
}
