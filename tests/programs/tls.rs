//! Programs over TLS: unopened for a host without restrictions inside; opened,
//! with nothing set by hand, where requests are judged; and never unopened
//! because a client does not trust the run's authority.

use outgate_harness::{Identity, Lab, lab_tests};

use crate::clients::Client;
use crate::confined;
use crate::http::{assert_stopped, assert_told};
use crate::servers::{MARK, Servers};

fn fetches(lab: &Lab, client: Client) {
    let Some(mut servers) = Servers::start(lab) else {
        return;
    };
    if !client.is_ready(lab) {
        return;
    }
    let ca = servers.certificate();
    for identity in Identity::all() {
        let place = format!("{client:?} {identity:?}");
        for rule in ["https://secure.example", "tls://secure.example"] {
            let sandbox = servers.names(confined(lab, identity)).allow(rule);
            // The scan would look inside.
            let sandbox = sandbox.option("--inspect", "off");
            let line = client.command(lab, "https://secure.example/hello", Some(&ca));
            let outcome = sandbox.run(&line);
            assert_eq!(outcome.code, Some(0), "{place} {rule}: {outcome}");
            assert!(outcome.stdout.contains(MARK), "{place} {rule}: {outcome}");
            let seen = servers.seen();
            assert_eq!(seen.requests, ["secure.example GET /hello"], "{place}");
        }
        opened(lab, client, identity, &mut servers);
        // Another name, and the same name where TLS has to be opened, with a
        // client that trusts one authority only, which is not the run's.
        for (url, rule) in [
            ("https://denied.example/hello", "https://secure.example"),
            (
                "https://secure.example/hello",
                "GET https://secure.example/hello",
            ),
        ] {
            let sandbox = servers.names(confined(lab, identity)).allow(rule);
            let outcome = sandbox.run(&client.command(lab, url, Some(&ca)));
            let place = format!("{place} {url} with {rule}");
            assert_stopped(&outcome, &place);
            assert_ne!(outcome.code, Some(0), "{place}: {outcome}");
            assert!(
                outcome.stderr.contains("outgate"),
                "{place}: told: {outcome}"
            );
            let seen = servers.seen();
            assert_eq!(seen.requests, Vec::<String>::new(), "{place}");
            if url.contains("denied") {
                assert_eq!(seen.connections, 0, "{place}");
            }
        }
    }
}

/// Opened: what is allowed arrives, what is not is told inside TLS.
fn opened(lab: &Lab, client: Client, identity: Identity, servers: &mut Servers) {
    let sandbox = |servers: &Servers| {
        servers
            .names(confined(lab, identity))
            .allow("GET https://secure.example/hello")
            .option("--upstream-ca", &servers.certificate())
    };
    let place = format!("{client:?} {identity:?} opened");
    let line = client.command(lab, "https://secure.example/hello", None);
    let outcome = sandbox(servers).run(&line);
    assert_eq!(outcome.code, Some(0), "{place}: {outcome}");
    assert!(outcome.stdout.contains(MARK), "{place}: {outcome}");
    let seen = servers.seen();
    assert_eq!(seen.requests, ["secure.example GET /hello"], "{place}");
    for (url, host) in [
        ("https://secure.example/other", "secure.example"),
        ("https://denied.example/hello", "denied.example"),
    ] {
        let outcome = sandbox(servers).run(&client.command(lab, url, None));
        assert_told(&outcome, host, &format!("{place} {url}"));
        let seen = servers.seen();
        assert_eq!(seen.requests, Vec::<String>::new(), "{place} {url}");
    }
}

lab_tests! {
    fn curl_reaches_only_the_allowed_host_over_tls(lab) {
        fetches(lab, Client::Curl);
    }

    fn wget_reaches_only_the_allowed_host_over_tls(lab) {
        fetches(lab, Client::Wget);
    }

    fn python_reaches_only_the_allowed_host_over_tls(lab) {
        fetches(lab, Client::PythonUrllib);
    }

    fn node_reaches_only_the_allowed_host_over_tls(lab) {
        fetches(lab, Client::NodeFetch);
    }

    fn a_static_go_program_reaches_only_the_allowed_host_over_tls(lab) {
        fetches(lab, Client::Go);
    }
}
