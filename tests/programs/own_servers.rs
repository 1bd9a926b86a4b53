//! Servers that a command runs for itself, as people start them: at every address, at a
//! fixed port or any. Clients in the sandbox reach them by each name of loopback, and
//! nobody is told anything. Whether anybody else reaches them is `tests/adversary`'s to ask.

use outgate_harness::{Identity, Lab, lab_tests};

use super::{bash, confined};
use crate::servers::is_there;

/// Starts `server` behind a shell, waits until it answers at 127.0.0.1, and fetches from
/// it by each name. What the command says of it: one line `NAME STATUS` for each.
fn fetched(lab: &Lab, identity: Identity, (server, port): (&str, u16)) -> String {
    let script = format!(
        "cd \"$TMPDIR\"; {server} >log 2>&1 & server=$!\n\
         for i in $(seq 100); do curl -s -o /dev/null http://127.0.0.1:{port}/ && break; sleep 0.1; done\n\
         for host in 127.0.0.1 localhost 0.0.0.0; do\n\
         echo $host $(curl -s -o /dev/null -w '%{{http_code}}' http://$host:{port}/)\n\
         done; kill $server; cat log >&2"
    );
    let outcome = confined(lab, identity).run(&bash(&script));
    // While it starts, nobody listens there: that alone is told.
    let told = outcome
        .stderr
        .lines()
        .filter(|line| line.contains("denied listening"));
    assert_eq!(told.count(), 0, "{identity:?} {server} {outcome}");
    outcome.stdout
}

lab_tests! {
    fn servers_at_every_address_serve_the_sandbox(lab) {
        let node = "node -e 'require(\"http\").createServer((q, r) => r.end()).listen(3000)'";
        let ruby = "ruby -rwebrick -e 'WEBrick::HTTPServer.new(Port: 3001, DocumentRoot: %q(.)).start'";
        for (program, server, port) in [
            ("python3", "python3 -m http.server 8000", 8000),
            ("node", node, 3000),
            ("ruby", ruby, 3001),
            ("php", "php -n -S 0.0.0.0:3002", 3002),
            ("busybox", "busybox httpd -f -p 3003", 3003),
        ] {
            if !is_there(program) {
                println!("skipped: no {program}");
                continue;
            }
            for identity in Identity::all() {
                let statuses = fetched(lab, identity, (server, port));
                let served: Vec<&str> = statuses.lines().filter_map(|line| line.split(' ').nth(1)).collect();
                // Some answer that there is no such file: they answer.
                let all = served.len() == 3 && served.iter().all(|status| ["200", "404", "403"].contains(status));
                assert!(all, "{identity:?} {server}: {statuses}");
            }
        }
    }

    fn a_database_for_the_tests_of_a_project_is_started_and_asked(lab) {
        if !is_there("redis-server") || !is_there("redis-cli") {
            println!("skipped: no redis-server");
            return;
        }
        let script = "cd \"$TMPDIR\"; redis-server --port 6379 --save '' >log 2>&1 & server=$!\n\
                      for i in $(seq 100); do redis-cli ping >/dev/null 2>&1 && break; sleep 0.1; done\n\
                      for host in 127.0.0.1 ::1 localhost; do redis-cli -h $host ping; done; kill $server";
        for identity in Identity::all() {
            let outcome = confined(lab, identity).run(&bash(script));
            assert_eq!(outcome.stdout, "PONG\nPONG\nPONG\n", "{identity:?} {outcome}");
        }
    }

    fn a_server_of_both_families_is_reached_by_both(lab) {
        // What Node and Java do by default, told by the same calls.
        let script = "import socket\n\
                      s = socket.socket(socket.AF_INET6); s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)\n\
                      s.bind(('::', 0)); s.listen(); port = s.getsockname()[1]; print(s.getsockname()[0])\n\
                      for family, host in ((2, '127.0.0.1'), (10, '::1'), (10, '::ffff:127.0.0.1'), (10, '::'), (2, '0.0.0.0')):\n    \
                      c = socket.socket(family); c.settimeout(5); c.connect((host, port)); a, _ = s.accept(); a.send(b'x'); print(host, c.recv(9))";
        for identity in Identity::all() {
            let command = ["python3", "-c", script].map(str::to_owned);
            let outcome = confined(lab, identity).run(&command);
            let expected = "::ffff:127.0.0.1\n127.0.0.1 b'x'\n::1 b'x'\n::ffff:127.0.0.1 b'x'\n:: b'x'\n0.0.0.0 b'x'\n";
            assert_eq!(outcome.stdout, expected, "{identity:?} {outcome}");
        }
    }

    fn a_relay_listens_at_a_path_and_at_a_port(lab) {
        if !is_there("socat") {
            println!("skipped: no socat");
            return;
        }
        let script = "cd \"$TMPDIR\"; socat UNIX-LISTEN:relay,fork EXEC:'echo by-path' & one=$!\n\
                      socat TCP-LISTEN:4100,fork,reuseaddr UNIX-CONNECT:relay & two=$!\n\
                      for i in $(seq 100); do socat -u TCP:127.0.0.1:4100 - 2>/dev/null | grep . && break; sleep 0.1; done\n\
                      kill $one $two";
        for identity in Identity::all() {
            let outcome = confined(lab, identity).run(&bash(script));
            assert_eq!(outcome.stdout, "by-path\n", "{identity:?} {outcome}");
        }
    }
}
