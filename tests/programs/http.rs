//! One program after the other over plain HTTP: what a rule allows arrives
//! exactly once, with a name from DNS and with a pin; what no rule allows is
//! answered with 403 or refused, soon, and nobody outside learns of it.

use std::time::Duration;

use outgate_harness::{Identity, Lab, Outcome, lab_tests};

use crate::clients::Client;
use crate::servers::{ADDRESS, MARK, Seen, Servers};
use crate::{bash, confined, words};

/// Longest time until a program that may not go somewhere has given up. The
/// slowest start, Java's on a loaded machine, is most of it.
pub(crate) const DENIED_SECONDS_MAX: u64 = 25;

/// Asserts that a program was stopped, and soon.
///
/// # Panics
/// When it reached the origin or took long.
pub(crate) fn assert_stopped(outcome: &Outcome, place: &str) {
    assert!(outcome.code.is_some(), "{place}: it ended: {outcome}");
    let limit = Duration::from_secs(DENIED_SECONDS_MAX);
    assert!(outcome.elapsed < limit, "{place}: soon: {outcome}");
    assert!(!outcome.stdout.contains(MARK), "{place}: {outcome}");
}

/// Asserts that it was told about a 403, and the person about the denial.
pub(crate) fn assert_told(outcome: &Outcome, host: &str, place: &str) {
    assert_stopped(outcome, place);
    let all = format!("{}{}", outcome.stdout, outcome.stderr);
    assert!(all.contains("403"), "{place}: told why: {outcome}");
    let said = outcome.stderr.lines();
    let said = said
        .filter(|line| line.starts_with("outgate"))
        .any(|line| line.contains("denied") && line.contains(host));
    assert!(said, "{place}: the person is told: {outcome}");
}

fn fetches(lab: &Lab, client: Client) {
    let Some(mut servers) = Servers::start(lab) else {
        return;
    };
    if !client.is_ready(lab) {
        return;
    }
    for identity in Identity::all() {
        allowed(lab, client, identity, &mut servers);
        denied(lab, client, identity, &mut servers);
    }
}

fn allowed(lab: &Lab, client: Client, identity: Identity, servers: &mut Servers) {
    let place = format!("{client:?} {identity:?}");
    let resolved = servers.names(confined(lab, identity));
    let sandbox = resolved.allow("GET http://site.example/hello");
    let outcome = sandbox.run(&client.command(lab, "http://site.example/hello", None));
    assert_eq!(outcome.code, Some(0), "{place} by DNS: {outcome}");
    assert!(outcome.stdout.contains(MARK), "{place} by DNS: {outcome}");
    let seen = servers.seen();
    assert_eq!(seen.requests, ["site.example GET /hello"], "{place}");
    assert!(!seen.asked.is_empty(), "{place}: dnsmasq was asked");
    assert!(
        seen.asked.iter().all(|name| name == "site.example"),
        "{place}: {seen:?}"
    );

    let pinned = servers.names(confined(lab, identity));
    let sandbox = pinned
        .pin(&format!("pinned.example={ADDRESS}"))
        .allow("GET http://pinned.example:8080/hello");
    let outcome = sandbox.run(&client.command(lab, "http://pinned.example:8080/hello", None));
    assert_eq!(outcome.code, Some(0), "{place} by pin: {outcome}");
    assert!(outcome.stdout.contains(MARK), "{place} by pin: {outcome}");
    let seen = servers.seen();
    assert_eq!(seen.requests, ["pinned.example:8080 GET /hello"], "{place}");
    assert_eq!(seen.asked, Vec::<String>::new(), "{place}: nobody asks");
}

fn denied(lab: &Lab, client: Client, identity: Identity, servers: &mut Servers) {
    let rules = |servers: &Servers| {
        servers
            .names(confined(lab, identity))
            .allow("GET http://site.example/hello")
    };
    // Another host, another path of the host: both can be told.
    for (url, host) in [
        ("http://denied.example/hello", "denied.example"),
        ("http://site.example/other", "site.example"),
    ] {
        let place = format!("{client:?} {identity:?} {url}");
        let outcome = rules(servers).run(&client.command(lab, url, None));
        assert_told(&outcome, host, &place);
        assert_untouched(servers, &place);
    }
    // Ports where nobody waits for HTTP are refused.
    for url in [
        "http://denied.example:9999/hello",
        "http://site.example:9999/hello",
    ] {
        let place = format!("{client:?} {identity:?} {url}");
        let outcome = rules(servers).run(&client.command(lab, url, None));
        assert_stopped(&outcome, &place);
        assert_ne!(outcome.code, Some(0), "{place}: {outcome}");
        assert_untouched(servers, &place);
    }
}

/// Asserts that neither a connection nor a question for a denied name came.
///
/// # Panics
/// When one did.
pub(crate) fn assert_untouched(servers: &mut Servers, place: &str) {
    let seen = servers.seen();
    let asked = |name: &String| name.to_lowercase().contains("denied");
    assert!(!seen.asked.iter().any(asked), "{place}: {seen:?}");
    let none = Seen {
        asked: seen.asked.clone(),
        ..Seen::default()
    };
    assert_eq!(seen, none, "{place}");
}

lab_tests! {
    fn curl_fetches_what_is_allowed(lab) {
        fetches(lab, Client::Curl);
    }

    fn wget_fetches_what_is_allowed(lab) {
        fetches(lab, Client::Wget);
    }

    fn python_urllib_fetches_what_is_allowed(lab) {
        fetches(lab, Client::PythonUrllib);
    }

    fn python_asyncio_fetches_what_is_allowed(lab) {
        fetches(lab, Client::PythonAsyncio);
    }

    fn node_fetch_fetches_what_is_allowed(lab) {
        fetches(lab, Client::NodeFetch);
    }

    fn a_static_go_program_fetches_what_is_allowed(lab) {
        fetches(lab, Client::Go);
    }

    fn a_static_musl_program_fetches_what_is_allowed(lab) {
        fetches(lab, Client::Musl);
    }

    fn java_httpclient_fetches_what_is_allowed(lab) {
        fetches(lab, Client::Java);
    }

    fn a_program_that_closes_its_half_gets_the_answer(lab) {
        let Some(mut servers) = Servers::start(lab) else { return };
        if !crate::servers::is_there("socat") {
            return;
        }
        for identity in Identity::all() {
            let script = "printf 'GET /hello HTTP/1.1\\r\\nHost: site.example\\r\\nConnection: close\\r\\n\\r\\n' | socat -t 20 - TCP:site.example:80";
            let sandbox = servers.names(confined(lab, identity)).allow("GET http://site.example/hello");
            let outcome = sandbox.run(&bash(script));
            assert!(outcome.stdout.contains(MARK), "{identity:?} {outcome}");
            assert_eq!(servers.seen().requests, ["site.example GET /hello"]);
        }
    }

    fn bash_without_any_client_is_held_too(lab) {
        let Some(mut servers) = Servers::start(lab) else { return };
        for identity in Identity::all() {
            let script = |host: &str| bash(&format!("exec 5<>/dev/tcp/{host}/80; printf 'GET /hello HTTP/1.1\\r\\nHost: {host}\\r\\nConnection: close\\r\\n\\r\\n' >&5; cat <&5"));
            let rules = |servers: &Servers| servers.names(confined(lab, identity)).allow("GET http://site.example/hello");
            let outcome = rules(&servers).run(&script("site.example"));
            assert!(outcome.stdout.contains(MARK), "{identity:?} {outcome}");
            assert_eq!(servers.seen().requests, ["site.example GET /hello"]);
            let outcome = rules(&servers).run(&script("denied.example"));
            assert_told(&outcome, "denied.example", "bash");
            assert_untouched(&mut servers, "bash");
        }
    }

    fn a_session_keeps_its_connection_and_every_request_is_judged(lab) {
        let Some(mut servers) = Servers::start(lab) else { return };
        for identity in Identity::all() {
            let sandbox = servers.names(confined(lab, identity)).allow("GET http://site.example/a/*");
            let url = |path: &str| format!("http://site.example{path}");
            let outcome = sandbox.run(&words(&["curl", "-sS", "-w", " %{http_code} %{num_connects}\n", &url("/a/1"), &url("/b/1"), &url("/a/2")]));
            assert_eq!(servers.seen().requests, ["site.example GET /a/1", "site.example GET /a/2"], "{outcome}");
            let codes: Vec<&str> = outcome.stdout.lines().filter(|line| line.contains(" 200 ") || line.contains(" 403 ")).collect();
            assert_eq!(codes.len(), 3, "{outcome}");
        }
    }

    fn a_name_is_looked_up_by_every_tool_and_no_question_leaves(lab) {
        let Some(mut servers) = Servers::start(lab) else { return };
        for identity in Identity::all() {
            let sandbox = servers.names(confined(lab, identity)).allow("http://site.example");
            let outcome = sandbox.run(&bash("getent ahosts denied.example; getent hosts site.example; python3 -c 'import socket; print(socket.gethostbyname(\"denied.example\"))'"));
            assert_eq!(outcome.code, Some(0), "{outcome}");
            assert!(outcome.stdout.contains("198.1"), "a synthetic address: {outcome}");
            assert!(!outcome.stdout.contains(ADDRESS), "{outcome}");
            let seen = servers.seen();
            assert_eq!(seen, Seen::default(), "resolved only when connected: {outcome}");
        }
    }
}
