//! What a run may do behind a shared gateway: what both policies allow.

use std::os::unix::fs::{FileTypeExt, PermissionsExt};

use outgate_harness::origin::Origin;
use outgate_harness::{Identity, audit, lab_tests};

use crate::gate::{Gate, Plan, curl, gateway, outgate, python};

lab_tests! {
    fn a_request_needs_the_leave_of_both(lab) {
        let origin = Origin::start(8080);
        let gate = Gate::start(lab, Identity::Own, &Plan::new(&[
            "-a", "GET http://a.example:8080",
            "-a", "http://b.example:8080",
            "--resolve", "a.example=192.0.2.1",
            "--resolve", "b.example=192.0.2.2",
            "--resolve", "c.example=192.0.2.3",
        ]));
        for identity in Identity::all() {
            for (rules, url, code, by) in [
                (&[][..], "http://a.example:8080/none", "200", ""),
                (&["-a", "http://a.example:8080"][..], "http://a.example:8080/both", "200", ""),
                (&["-a", "http://a.example:8080"], "http://b.example:8080/own", "403", "(no rule"),
                (&["-a", "http://c.example:8080"], "http://c.example:8080/above", "403", "the gateway's policy"),
                (&[], "http://c.example:8080/neither", "403", "the gateway's policy"),
                (&["-d", "* */deny"], "http://a.example:8080/deny", "403", "deny rule"),
                (&["-d", "* */deny"], "http://a.example:8080/rest", "200", ""),
            ] {
                let mut run = gate.sandbox(lab, identity);
                for pair in rules.chunks(2) {
                    run = run.option(pair[0], pair[1]);
                }
                let outcome = run.run(&curl(url, 20));
                assert!(outcome.stdout.starts_with(code), "{url}: {outcome}");
                assert!(outcome.stderr.contains(by), "{url}: {outcome}");
                if by == "the gateway's policy" {
                    assert!(outcome.stderr.contains("operator"), "{url}: {outcome}");
                }
            }
        }
        let mut lines: Vec<String> = origin.arrivals().iter().map(|arrival| arrival.line().to_owned()).collect();
        lines.sort();
        lines.dedup();
        let expected = ["/both", "/none", "/rest"].map(|path| format!("GET {path} HTTP/1.1"));
        assert_eq!(lines, expected);
        let outcome = gate.end();
        assert_eq!(outcome.code, Some(0), "{outcome}");
    }

    fn a_projects_file_narrows_what_a_gateway_allows(lab) {
        let origin = Origin::start(8080);
        let gate = Gate::start(lab, Identity::Own, &Plan::new(&[
            "-a", "http://a.example:8080", "--resolve", "a.example=192.0.2.1",
            "--resolve", "c.example=192.0.2.3",
        ]));
        let project = |text: &str| {
            let work = gate.sandbox(lab, Identity::Own).work();
            std::fs::write(work.join(".outgate.toml"), text).expect("a file");
        };
        project("deny = [\"* */x\"]\nonly = [\"http://c.example:8080\"]\n");
        // With rules of its own, and with the gateway's alone.
        for rules in [&["-a", "http://a.example:8080"][..], &[]] {
            for (url, code) in [
                ("http://a.example:8080/", "200"),
                ("http://a.example:8080/x", "403"),
                ("http://c.example:8080/", "403"),
            ] {
                let mut run = gate.sandbox(lab, Identity::Own);
                for pair in rules.chunks(2) {
                    run = run.option(pair[0], pair[1]);
                }
                let outcome = run.run(&curl(url, 20));
                assert!(outcome.stdout.starts_with(code), "{url} {rules:?}: {outcome}");
                assert_eq!(url.ends_with("/x"), outcome.stderr.contains(".outgate.toml:1:10"), "{outcome}");
            }
        }
        project("allow = [\"http://c.example:8080\"]\n");
        let outcome = gate.sandbox(lab, Identity::Own).run(&curl("http://c.example:8080/", 20));
        assert_eq!(outcome.code, Some(2), "{outcome}");
        assert!(outcome.stderr.contains("-p FILE"), "{outcome}");
        assert!(origin.arrivals().iter().all(|arrival| arrival.line() == "GET / HTTP/1.1"));
    }

    fn a_run_does_not_say_where_the_gateways_names_lead(lab) {
        let origin = Origin::start(8080);
        let gate = Gate::start(lab, Identity::Own, &Plan::new(&[
            "-a", "http://a.example:8080", "--resolve", "a.example=192.0.2.1",
        ]));
        let run = |pin: &str| {
            gate.sandbox(lab, Identity::Own)
                .pin(pin)
                .run(&curl("http://a.example:8080/", 20))
        };
        for pin in ["a.example=127.0.0.1", "a.example:8080=192.0.2.1:8080", "z.example=192.0.2.1"] {
            let outcome = run(pin);
            assert_eq!(outcome.code, Some(125), "{pin}: {outcome}");
            assert!(outcome.stderr.contains("--resolve"), "{pin}: {outcome}");
        }
        assert_eq!(origin.connections(), 0);
        let outcome = run("a.example=192.0.2.1");
        assert!(outcome.stdout.starts_with("200"), "{outcome}");
    }

    fn own_records_sockets_in_reach_and_absent_gateways_are_refused_in_words(lab) {
        let gate = Gate::start(lab, Identity::Own, &Plan::new(&["-a", "http://a.example"]));
        let truth = ["true".to_owned()];
        let outcome = gate.sandbox(lab, Identity::Own).option("--audit", "/tmp/x").run(&truth);
        assert_eq!(outcome.code, Some(2), "{outcome}");
        let folder = gate.socket.parent().expect("a folder").to_string_lossy().into_owned();
        let outcome = gate.sandbox(lab, Identity::Own).option("-w", &folder).run(&truth);
        assert_eq!(outcome.code, Some(2), "{outcome}");
        assert!(outcome.stderr.contains("may write"), "{outcome}");
        let outcome = lab.sandbox(Identity::Own).option("--gateway", "/nowhere/gate").run(&truth);
        assert_eq!(outcome.code, Some(125), "{outcome}");
        assert!(outcome.stderr.contains("outgate gateway --listen"), "{outcome}");
    }

    fn the_socket_is_made_whole_replaced_when_stale_and_removed(lab) {
        let gate = Gate::start(lab, Identity::Own, &Plan::default());
        let socket = gate.socket.clone();
        let metadata = std::fs::symlink_metadata(&socket).expect("a socket");
        assert!(metadata.file_type().is_socket());
        assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
        // A second one is refused, and the first goes on.
        let second = gateway(lab, Identity::Own, &socket, &gate.record, &Plan::default()).finish();
        assert_eq!(second.code, Some(125), "{second}");
        assert!(second.stderr.contains("listens at"), "{second}");
        let outcome = gate.sandbox(lab, Identity::Own).run(&["true".to_owned()]);
        assert_eq!(outcome.code, Some(0), "{outcome}");
        // Killed as a whole, it leaves its socket; the next one takes its place.
        let (front, server) = (gate.front(), gate.server());
        for pid in [front, server] {
            nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL).ok();
        }
        gate.finish();
        assert!(socket.exists());
        let gate = Gate::start(lab, Identity::Own, &Plan::default());
        let outcome = gate.sandbox(lab, Identity::Own).run(&["true".to_owned()]);
        assert_eq!(outcome.code, Some(0), "{outcome}");
        assert_eq!(gate.end().code, Some(0));
        let left = std::fs::read_dir(socket.parent().expect("a folder")).expect("a folder");
        let left: Vec<_> = left.flatten().map(|entry| entry.file_name()).collect();
        assert_eq!(left, ["record.jsonl"]);
        // What is no socket stays.
        std::fs::write(&socket, "mine").expect("a file");
        let outcome = gateway(lab, Identity::Own, &socket, &socket.with_extension("r"), &Plan::default()).finish();
        assert_eq!(outcome.code, Some(125), "{outcome}");
        assert_eq!(std::fs::read_to_string(&socket).expect("a file"), "mine");
        // A directory that others may write is no place for it.
        let open = lab.folder("open", Identity::Own);
        std::fs::set_permissions(&open, std::fs::Permissions::from_mode(0o777)).expect("a mode");
        let outcome = gateway(lab, Identity::Own, &open.join("gate"), &socket.with_extension("r"), &Plan::default()).finish();
        assert_eq!(outcome.code, Some(125), "{outcome}");
        assert!(outcome.stderr.contains("can be written by others"), "{outcome}");
    }

    fn only_who_is_meant_may_enter(lab) {
        if Identity::all().len() < 2 {
            return outgate_harness::skip("one account");
        }
        let gate = Gate::start(lab, Identity::Own, &Plan::default());
        let outcome = gate.sandbox(lab, Identity::Nobody).run(&["true".to_owned()]);
        assert_eq!(outcome.code, Some(125), "{outcome}");
        gate.end();
        let group = Plan { options: ["--group", "65534"].map(str::to_owned).to_vec(), ..Plan::default() };
        let gate = Gate::start(lab, Identity::Own, &group);
        let outcome = gate.sandbox(lab, Identity::Nobody).run(&["true".to_owned()]);
        assert_eq!(outcome.code, Some(0), "{outcome}");
        // The kernel says who came, whatever the name of the sandbox says.
        let outcome = gate.sandbox(lab, Identity::Nobody).option("--name", "root").run(&["true".to_owned()]);
        assert_eq!(outcome.code, Some(0), "{outcome}");
        let records = gate.records();
        let named = records.iter().find(|record| audit::text(record, "sandbox") == "root");
        assert_eq!(named.expect("a record")["uid"], 65534);
    }

    fn a_socket_of_another_users_gateway_needs_that_user_named(lab) {
        if Identity::all().len() < 2 {
            return outgate_harness::skip("one account");
        }
        let gate = Gate::start(lab, Identity::Nobody, &Plan::new(&[]));
        let truth = ["true".to_owned()];
        let outcome = gate.sandbox(lab, Identity::Own).run(&truth);
        assert_eq!(outcome.code, Some(125), "{outcome}");
        assert!(outcome.stderr.contains("--gateway-user 65534"), "{outcome}");
        for record in gate.records() {
            assert_eq!(record["session"], 0, "nothing may have been said: {record}");
        }
        let outcome = gate.sandbox(lab, Identity::Own).option("--gateway-user", "65534").run(&truth);
        assert_eq!(outcome.code, Some(0), "{outcome}");
        let outcome = gate.sandbox(lab, Identity::Own).option("--gateway-user", "4242").run(&truth);
        assert_eq!(outcome.code, Some(125), "{outcome}");
    }

    fn unix_sockets_are_not_opened_for_other_users(lab) {
        let folder = lab.folder("served", Identity::Own);
        let path = folder.join("socket");
        let listener = std::os::unix::net::UnixListener::bind(&path).expect("a socket");
        // Nobody may find it, but not connect to it.
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).expect("a mode");
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                use std::io::Write;
                (&stream).write_all(b"secret").ok();
            }
        });
        let rule = format!("unix://{}", path.display());
        let gate = Gate::start(lab, Identity::Own, &Plan::new(&["-a", &rule]));
        let client = python(&format!(
            "import socket\ns=socket.socket(socket.AF_UNIX)\ns.connect({:?})\nprint(s.recv(9))",
            path.display().to_string()
        ));
        for identity in Identity::all() {
            let outcome = gate.sandbox(lab, identity).allow(&rule).run(&client);
            let got = outcome.stdout.contains("secret");
            assert_eq!(got, identity == Identity::Own, "{identity:?}: {outcome}");
        }
    }

    fn systemds_socket_is_taken_and_left(lab) {
        let socket = lab.folder("gate", Identity::Own).join("gate");
        let record = socket.with_extension("jsonl");
        // What systemd does: a listener as descriptor 3, and two variables.
        let program = lab.tools.programs.join("outgate");
        let starter = format!(
            "import os,socket\n\
             s=socket.socket(socket.AF_UNIX,socket.SOCK_SEQPACKET)\n\
             s.bind({socket:?}); s.listen(9); os.dup2(s.fileno(),3); os.set_inheritable(3,True)\n\
             os.environ['LISTEN_FDS']='1'; os.environ['LISTEN_PID']=str(os.getpid())\n\
             os.execv({program:?},['outgate','gateway','-a','http://a.example','--audit',{record:?}])"
        );
        let running = lab.start_bare(Identity::Own, &python(&starter));
        let ready = outgate_harness::eventually(std::time::Duration::from_secs(20), || {
            running.errors().contains("inherited socket")
        });
        assert!(ready, "{}", running.errors());
        let outcome = lab
            .sandbox(Identity::Own)
            .option("--gateway", &socket.to_string_lossy())
            .run(&["true".to_owned()]);
        assert_eq!(outcome.code, Some(0), "{outcome}");
        running.signal(nix::sys::signal::Signal::SIGTERM);
        let outcome = running.finish();
        assert_eq!(outcome.code, Some(0), "{outcome}");
        assert!(socket.exists());
        let outcome = outgate(lab, Identity::Own, &["gateway"]);
        assert_eq!(outcome.code, Some(2), "{outcome}");
    }
}
