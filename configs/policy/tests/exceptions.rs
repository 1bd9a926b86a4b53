//! `deny X except Y`: what is taken out of a rule that denies, by examples that people write.

#![expect(
    clippy::panic,
    clippy::expect_used,
    reason = "a test ends where something is not as it must be"
)]

use outgate_policy::{
    AddressSource, Context, Facts, Host, Peer, Policy, Process, RequestTarget, Route, Scheme,
    Source, SourceKind, Verdict, compile,
};

fn compiled(deny: &str) -> Result<Policy, String> {
    let source = |kind, text: &str| Source {
        kind,
        place: "-d".to_owned(),
        text: text.to_owned(),
    };
    let sources = [
        source(SourceKind::Allow, "*:*"),
        source(SourceKind::Allow, "tcp://*:*"),
        source(SourceKind::Deny, deny),
    ];
    compile(&sources, &Context::nowhere()).map_err(|errors| errors.to_string())
}

const PROCESS: Process<'static> = Process { executable: "" };

fn peer(host: &Host) -> Peer<'_> {
    match host {
        Host::Name(name) => Peer::Name(name),
        Host::Address(address) => Peer::Address(*address),
    }
}

/// `METHOD SCHEME://HOST:PORT/PATH`, or `tcp HOST:PORT`.
fn allows(policy: &Policy, text: &str) -> bool {
    let (method, url) = text.split_once(' ').expect("a method");
    let (scheme, rest) = url.split_once("://").unwrap_or(("tcp", url));
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let (host, port) = authority.rsplit_once(':').expect("a port");
    let host = Host::parse(host).expect("a host");
    let port = port.parse().expect("a port");
    if method == "tcp" {
        let facts = Facts::Connect {
            process: PROCESS,
            peer: peer(&host),
            port,
        };
        // By the gateway it may pass as a request, which is judged by itself.
        return matches!(policy.evaluate(&facts), Verdict::Allow(permit) if permit.route() == Route::Direct);
    }
    let target = RequestTarget::parse(&format!("/{path}")).expect("a target");
    let facts = Facts::Request {
        process: PROCESS,
        peer: peer(&host),
        port,
        scheme: match scheme {
            "http" => Scheme::Http,
            "https" => Scheme::Https,
            "wss" => Scheme::Wss,
            other => panic!("{other}"),
        },
        method,
        target: &target,
    };
    matches!(policy.evaluate(&facts), Verdict::Allow(_))
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table of cases")]
fn the_company_but_its_issues() {
    for (deny, request, allowed) in [
        (
            "**.corp.test except issues.corp.test",
            "GET https://issues.corp.test:443/x",
            true,
        ),
        (
            "**.corp.test except issues.corp.test",
            "POST http://issues.corp.test:8080/x",
            true,
        ),
        (
            "**.corp.test except issues.corp.test",
            "tcp issues.corp.test:22",
            true,
        ),
        (
            "**.corp.test except issues.corp.test",
            "GET https://wiki.corp.test:443/x",
            false,
        ),
        (
            "**.corp.test except issues.corp.test",
            "GET https://a.issues.corp.test:443/x",
            false,
        ),
        (
            "**.corp.test except issues.corp.test",
            "GET https://other.test:443/x",
            true,
        ),
        (
            "**.corp.test except https://issues.corp.test",
            "GET https://issues.corp.test:443/x",
            true,
        ),
        (
            "**.corp.test except https://issues.corp.test",
            "GET http://issues.corp.test:80/x",
            false,
        ),
        (
            "**.corp.test except https://issues.corp.test",
            "GET https://issues.corp.test:8443/x",
            false,
        ),
        (
            "**.corp.test except https://issues.corp.test",
            "tcp issues.corp.test:22",
            false,
        ),
        (
            "* */admin/** except GET */admin/health",
            "GET https://a.test:443/admin/health",
            true,
        ),
        (
            "* */admin/** except GET */admin/health",
            "POST https://a.test:443/admin/health",
            false,
        ),
        (
            "* */admin/** except GET */admin/health",
            "GET https://a.test:443/admin/health/../x",
            false,
        ),
        (
            "* */admin/** except GET */admin/health",
            "GET https://a.test:443/x/..%2Fadmin/health",
            false,
        ),
        (
            "* */admin/** except GET */admin/health",
            "GET https://a.test:443//x/admin/health",
            false,
        ),
        (
            "* */admin/** except GET */admin/health",
            "GET https://a.test:443/admin/health;/x",
            false,
        ),
        (
            "a.test except a.test/?role=user",
            "GET https://a.test:443/?role=user",
            true,
        ),
        (
            "a.test except a.test/?role=user",
            "GET https://a.test:443/?role=user&role=admin",
            false,
        ),
        (
            "a.test except a.test/?role=user",
            "GET https://a.test:443/",
            false,
        ),
        (
            "a.test except a.test/x except a.test/y",
            "GET https://a.test:443/y",
            true,
        ),
        (
            "a.test except a.test/x except a.test/y",
            "GET https://a.test:443/z",
            false,
        ),
        ("a.test except a.test/x", "tcp a.test:22", false),
        (
            "git.test except git:read git.test/o/r",
            "POST https://git.test:443/o/r/git-upload-pack",
            true,
        ),
        (
            "git.test except git:read git.test/o/r",
            "POST https://git.test:443/o/r/git-receive-pack",
            false,
        ),
        (
            "git:push git.test/o except git:push git.test/o/r",
            "POST https://git.test:443/o/r/git-receive-pack",
            true,
        ),
        (
            "git:push git.test/o except git:push git.test/o/r",
            "POST https://git.test:443/o/s/git-receive-pack",
            false,
        ),
        ("8.8.0.0/16 except 8.8.8.8", "tcp 8.8.8.8:53", true),
        ("8.8.0.0/16 except 8.8.8.8", "tcp 8.8.4.4:53", false),
    ] {
        let policy = compiled(deny).unwrap_or_else(|errors| panic!("{deny}: {errors}"));
        assert_eq!(allows(&policy, request), allowed, "{deny}: {request}");
    }
}

#[test]
fn a_name_leads_into_a_denied_range_where_an_exception_says_so() {
    for (deny, host, address, allowed) in [
        ("8.8.0.0/16", "dns.test", "8.8.8.8", false),
        ("8.8.0.0/16 except 8.8.8.8", "dns.test", "8.8.8.8", true),
        ("8.8.0.0/16 except 8.8.8.8", "dns.test", "8.8.4.4", false),
        ("8.8.0.0/16 except dns.test", "dns.test", "8.8.4.4", true),
        ("8.8.0.0/16 except dns.test", "other.test", "8.8.4.4", false),
        // Whatever is spoken there must be excepted, and no request is judged by an address.
        (
            "8.8.0.0/16 except https://8.8.8.8",
            "dns.test",
            "8.8.8.8",
            false,
        ),
        ("8.8.0.0/16 except 8.8.8.8/x", "dns.test", "8.8.8.8", false),
    ] {
        let policy = compiled(deny).unwrap_or_else(|errors| panic!("{deny}: {errors}"));
        let host = Host::parse(host).expect("a host");
        let facts = Facts::Dial {
            process: PROCESS,
            peer: peer(&host),
            port: 443,
            address: address.parse().expect("an address"),
            source: AddressSource::Resolved,
        };
        let found = matches!(policy.evaluate(&facts), Verdict::Allow(_));
        assert_eq!(found, allowed, "{deny}: {address}");
    }
}

#[test]
fn what_is_no_exception_is_refused() {
    for (deny, said) in [
        ("a.test except b.test", "nothing that the rule denies"),
        ("a.test except ", "empty"),
        ("a.test except a.test/x except", "holds a space"),
        ("a.test except unix:///run/x", "no socket as an exception"),
        ("unix:///run/* except a.test", "has no exceptions"),
        ("a.test except GET", "except"),
    ] {
        let error = compiled(deny).expect_err(deny);
        assert!(error.contains(said) || said == "except", "{deny}: {error}");
    }
    let source = |kind| Source {
        kind,
        place: "-a".to_owned(),
        text: "a.test except a.test/x".to_owned(),
    };
    let errors = compile(&[source(SourceKind::Allow)], &Context::nowhere()).expect_err("refused");
    assert!(
        errors.to_string().contains("only a rule that denies"),
        "{errors}"
    );
    let many = format!("a.test{}", " except a.test/x".repeat(1000));
    let error = compiled(&many).expect_err("too long");
    assert!(error.contains("more than 4096"), "{error}");
}
