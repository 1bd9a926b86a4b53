//! Programs that speak something else than HTTP over `tcp://` rules:
//! redis-cli and ssh. Denied, they are refused at once.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::process::Command;

use outgate_harness::{Identity, Lab, Sandbox, lab_tests};

use crate::http::{assert_stopped, assert_untouched};
use crate::servers::{ADDRESS, Servers, is_there, serve};
use crate::{bash, confined, words};

/// Starts redis on every address of the laboratory.
fn redis(lab: &Lab) {
    let folder = lab.folder("redis", Identity::Own);
    let options = "--port 6379 --bind 0.0.0.0 --protected-mode no --appendonly no --save";
    let mut line = vec!["redis-server"];
    line.extend(options.split(' '));
    line.push("");
    serve(&line, &folder, &["127.0.0.1:6379"]);
}

/// Connections redis accepted, without the one that asks.
fn redis_connections() -> i64 {
    let asked = Command::new("redis-cli").args(["info", "stats"]).output();
    let text = asked.expect("redis answers").stdout;
    let text = String::from_utf8_lossy(&text);
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("total_connections_received:"));
    let count = line.and_then(|count| count.trim().parse().ok());
    count.expect("a count of connections")
}

/// Starts sshd on port 2222; the key that may log in, for each account.
fn ssh(lab: &Lab) -> String {
    let folder = lab.folder("ssh", Identity::Own);
    for key in ["host", "user"] {
        let made = Command::new("ssh-keygen")
            .args(["-q", "-t", "ed25519", "-N", "", "-f", key])
            .current_dir(&folder)
            .status();
        assert!(made.expect("ssh-keygen runs").success());
    }
    let configuration = format!(
        "Port 2222\nHostKey {0}/host\nAuthorizedKeysFile {0}/user.pub\nStrictModes no\n\
         PermitRootLogin yes\nUsePAM no\nPidFile none\nSubsystem sftp internal-sftp\n",
        folder.display()
    );
    fs::write(folder.join("sshd_config"), configuration).expect("a configuration");
    fs::create_dir_all("/run/sshd").expect("the folder sshd changes root to");
    let sshd = ["/usr/sbin/sshd", "-D", "-e", "-f", "sshd_config"];
    // sshd insists on absolute paths; its output is named after the last part.
    let config = folder.join("sshd_config").to_string_lossy().into_owned();
    let line = [
        "sh",
        "-c",
        "exec \"$@\"",
        "sshd",
        sshd[0],
        sshd[1],
        sshd[2],
        sshd[3],
        &config,
    ];
    serve(&line, &folder, &["127.0.0.1:2222"]);
    let key = fs::read(folder.join("user")).expect("a key");
    for identity in Identity::all() {
        let file = lab.folder("work", identity).join("key");
        fs::write(&file, &key).expect("a key");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("mode 0600");
        let id = identity.uid();
        chown(&file, Some(id), Some(id)).expect("chown");
    }
    "-F /dev/null -i key -o BatchMode=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile=known"
        .to_owned()
}

lab_tests! {
    fn redis_cli_works_over_a_tcp_rule(lab) {
        if !is_there("redis-server") || !is_there("redis-cli") {
            return;
        }
        let Some(mut servers) = Servers::start(lab) else { return };
        redis(lab);
        for identity in Identity::all() {
            let rules = |servers: &Servers| servers.names(confined(lab, identity)).allow("tcp://cache.example:6379");
            let cli = "redis-cli -h cache.example";
            let script = format!(
                "set -e; {cli} set key value; {cli} get key; seq 20000 | sed 's/.*/SET k& v&/' | {cli} --pipe | tail -1; {cli} dbsize; {cli} flushall"
            );
            let outcome = rules(&servers).run(&bash(&script));
            assert_eq!(outcome.code, Some(0), "{identity:?} {outcome}");
            assert!(outcome.stdout.starts_with("OK\nvalue\n"), "{outcome}");
            assert!(outcome.stdout.contains("errors: 0, replies: 20000\n20001\nOK\n"), "{outcome}");
            let seen = servers.seen();
            assert!(seen.asked.iter().all(|name| name == "cache.example") && !seen.asked.is_empty(), "{seen:?}");

            let pinned = servers.names(confined(lab, identity)).allow("tcp://pinned.example:6379").pin(&format!("pinned.example={ADDRESS}"));
            let outcome = pinned.run(&words(&["redis-cli", "-h", "pinned.example", "ping"]));
            assert_eq!(outcome.stdout, "PONG\n", "{identity:?} {outcome}");

            let before = redis_connections();
            for (host, port) in [("denied.example", "6379"), ("cache.example", "6380"), (ADDRESS, "6379")] {
                let outcome = rules(&servers).run(&words(&["redis-cli", "-h", host, "-p", port, "ping"]));
                assert_stopped(&outcome, host);
                assert_ne!(outcome.code, Some(0), "{identity:?} {host} {outcome}");
                assert!(outcome.stderr.contains("Connection refused"), "{identity:?} {host} {outcome}");
            }
            assert_eq!(redis_connections(), before + 1, "{identity:?}: only the question itself");
            assert_untouched(&mut servers, "redis-cli");
        }
    }

    fn ssh_scp_and_sftp_work_over_a_tcp_rule(lab) {
        if !is_there("sshd") || !is_there("ssh") {
            return;
        }
        if outgate_harness::lab::is_mapped() {
            return outgate_harness::skip_here("sshd must set groups, which a user namespace with one account forbids");
        }
        let Some(mut servers) = Servers::start(lab) else { return };
        let options = ssh(lab);
        for identity in Identity::all() {
            let rules = |servers: &Servers| -> Sandbox<'_> { servers.names(confined(lab, identity)).allow("tcp://shell.example:2222") };
            let line = format!("ssh {options} -p 2222 root@shell.example 'echo there; cat; exit 7' < key | cmp - <(echo there; cat key); echo ${{PIPESTATUS[*]}}");
            let outcome = rules(&servers).run(&bash(&line));
            assert_eq!(outcome.stdout, "7 0\n", "{identity:?} {outcome}");
            let line = format!("set -e; head -c 5000000 /dev/urandom > big; scp -q {options} -P 2222 big root@shell.example:{0}/arrived; scp -q {options} -P 2222 root@shell.example:{0}/arrived back; cmp big back; rm big back", lab.directory.display());
            let outcome = rules(&servers).run(&bash(&line));
            assert_eq!(outcome.code, Some(0), "{identity:?} {outcome}");
            let seen = servers.seen();
            assert!(seen.asked.iter().all(|name| name == "shell.example") && !seen.asked.is_empty(), "{seen:?}");
            for (host, port) in [("denied.example", "2222"), ("shell.example", "2223"), (ADDRESS, "2222")] {
                let outcome = rules(&servers).run(&bash(&format!("ssh {options} -p {port} root@{host} echo there")));
                assert_stopped(&outcome, host);
                assert_eq!(outcome.code, Some(255), "{identity:?} {host} {outcome}");
                assert!(outcome.stderr.contains("Connection refused"), "{identity:?} {host} {outcome}");
                assert!(!outcome.stdout.contains("there"), "{outcome}");
            }
            assert_untouched(&mut servers, "ssh");
        }
    }
}
