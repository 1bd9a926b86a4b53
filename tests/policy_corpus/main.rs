//! The decision corpus: policies and what they decide, row by row.
//!
//! Every row that allows is followed at once by its near twin that is denied,
//! so that no rule can widen unseen. The format is described in
//! `tests/policy_corpus/README.md`; rows are data, this file only runs them.

#![expect(
    clippy::panic,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test ends where something is not as it must be"
)]

use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use outgate_policy::{
    AddressSource, Context, Facts, Host, Peer, Policy, Process, RequestTarget, Route, Scheme,
    Source, SourceKind, Verdict, compile,
};

/// Greatest number of single-character changes between a row and its twin.
const TWIN_CHANGES_MAX: usize = 24;

/// One row: what is asked, who asks, what is expected.
struct Row {
    place: String,
    allowed: bool,
    fact: String,
    executable: String,
    expected: String,
}

/// One policy and its rows.
struct Case {
    place: String,
    document: String,
    rows: Vec<Row>,
}

fn corpus_files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/policy_corpus");
    let mut files: Vec<PathBuf> = fs::read_dir(folder)
        .expect("the corpus folder is there")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "txt"))
        .collect();
    files.sort();
    files
}

fn read_cases(path: &Path) -> Vec<Case> {
    let text = fs::read_to_string(path).expect("a corpus file is readable");
    let name = path.file_name().expect("a name").to_string_lossy();
    let mut cases: Vec<Case> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let place = format!("{name}:{}", index + 1);
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        if line.starts_with("== ") {
            cases.push(Case {
                place,
                document: String::new(),
                rows: Vec::new(),
            });
            continue;
        }
        let case = cases
            .last_mut()
            .unwrap_or_else(|| panic!("{place}: a row before the first `== NAME`"));
        if let Some(line) = line.strip_prefix('|') {
            assert!(
                case.rows.is_empty(),
                "{place}: the policy comes before its rows"
            );
            case.document.push_str(line.trim_start());
            case.document.push('\n');
        } else {
            case.rows.push(read_row(place, line));
        }
    }
    cases
}

fn read_row(place: String, line: &str) -> Row {
    let (verdict, rest) = line
        .split_once(' ')
        .unwrap_or_else(|| panic!("{place}: no verdict in `{line}`"));
    let (fact, expected) = rest
        .rsplit_once(" => ")
        .unwrap_or_else(|| panic!("{place}: no ` => ` in `{line}`"));
    let (fact, executable) = fact.split_once(" by ").unwrap_or((fact, "/usr/bin/curl"));
    let allowed = match verdict {
        "allow" => true,
        "deny" => false,
        other => panic!("{place}: `{other}` is neither allow nor deny"),
    };
    Row {
        place,
        allowed,
        fact: fact.trim().to_owned(),
        executable: executable.trim().trim_matches('-').to_owned(),
        expected: expected.trim().to_owned(),
    }
}

fn compiled(case: &Case) -> Policy {
    let source = Source {
        kind: SourceKind::Document,
        place: case.place.clone(),
        text: case.document.clone(),
    };
    let context = Context {
        home: "/home/me".to_owned(),
        working_directory: "/work".to_owned(),
        private_directory: "/tmp/private".to_owned(),
        ..Context::default()
    };
    compile(&[source], &context).unwrap_or_else(|errors| panic!("{errors}"))
}

/// What a row leads to: whether it is allowed, and the route or the reason.
fn decide(policy: &Policy, row: &Row) -> (bool, String) {
    let process = Process {
        executable: &row.executable,
    };
    let words: Vec<&str> = row.fact.split(' ').collect();
    match words.as_slice() {
        ["unix", path] => judge(policy, &Facts::Unix { process, path }),
        ["listen", address] => {
            let address: SocketAddr = address.parse().expect("a socket address");
            judge(policy, &Facts::Listen { process, address })
        }
        ["connect", destination] => with_peer(row, destination, |peer, port| {
            judge(
                policy,
                &Facts::Connect {
                    process,
                    peer,
                    port,
                },
            )
        }),
        ["tunnel", destination] => with_peer(row, destination, |peer, port| {
            judge(
                policy,
                &Facts::Tunnel {
                    process,
                    peer,
                    port,
                },
            )
        }),
        ["dial", destination, "at", address, source] => {
            with_peer(row, destination, |peer, port| {
                let address: IpAddr = address.parse().expect("an address");
                let source = match *source {
                    "resolved" => AddressSource::Resolved,
                    "pinned" => AddressSource::Pinned,
                    other => panic!("{}: unknown source `{other}`", row.place),
                };
                let facts = Facts::Dial {
                    process,
                    peer,
                    port,
                    address,
                    source,
                };
                judge(policy, &facts)
            })
        }
        [method, url] => request(policy, row, method, url),
        _ => panic!("{}: unknown fact `{}`", row.place, row.fact),
    }
}

fn request(policy: &Policy, row: &Row, method: &str, url: &str) -> (bool, String) {
    let process = Process {
        executable: &row.executable,
    };
    let (scheme, rest) = url.split_once("://").expect("a URL");
    let scheme = match scheme {
        "http" => Scheme::Http,
        "https" => Scheme::Https,
        "ws" => Scheme::Ws,
        "wss" => Scheme::Wss,
        other => panic!("{}: unknown scheme `{other}`", row.place),
    };
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, target) = rest.split_at(end);
    let has_port = authority
        .rsplit_once(':')
        .is_some_and(|(_, port)| !port.ends_with(']'));
    let destination = if has_port {
        authority.to_owned()
    } else {
        format!("{authority}:{}", scheme.default_port())
    };
    let target = if target == "/<asterisk>" { "*" } else { target };
    let Ok(target) = RequestTarget::parse(target) else {
        return (false, "refused-target".to_owned());
    };
    with_peer(row, &destination, |peer, port| {
        let facts = Facts::Request {
            process,
            peer,
            port,
            scheme,
            method,
            target: &target,
        };
        judge(policy, &facts)
    })
}

fn with_peer(
    row: &Row,
    destination: &str,
    judge: impl FnOnce(Peer<'_>, u16) -> (bool, String),
) -> (bool, String) {
    let (host, port) = destination
        .rsplit_once(':')
        .unwrap_or_else(|| panic!("{}: no port in `{destination}`", row.place));
    let port: u16 = port.parse().expect("a port");
    match Host::parse(host) {
        Ok(Host::Name(name)) => judge(Peer::Name(&name), port),
        Ok(Host::Address(address)) => judge(Peer::Address(address), port),
        Err(_) => (false, "refused-host".to_owned()),
    }
}

fn judge(policy: &Policy, facts: &Facts<'_>) -> (bool, String) {
    match policy.evaluate(facts) {
        Verdict::Allow(permit) => {
            let route = match permit.route() {
                Route::Direct => "direct",
                Route::Gateway => "gateway",
                Route::Tunnel => "tunnel",
                Route::Forward => "forward",
            };
            (true, route.to_owned())
        }
        Verdict::Deny(denial) => (false, denial.reason().token().to_owned()),
    }
}

fn changes(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (index, a) in left.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = index + 1;
        for (column, b) in right.iter().enumerate() {
            let replaced = diagonal + usize::from(a != *b);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(row[column] + 1).min(diagonal + 1);
        }
    }
    row[right.len()]
}

#[test]
fn every_row_is_decided_as_written() {
    let mut faults = Vec::new();
    let mut count = 0;
    for case in corpus_files().iter().flat_map(|path| read_cases(path)) {
        let policy = compiled(&case);
        for row in &case.rows {
            count += 1;
            let (allowed, found) = decide(&policy, row);
            if allowed != row.allowed || found != row.expected {
                let verdict = if allowed { "allowed" } else { "denied" };
                faults.push(format!(
                    "{}: `{}` is {verdict} ({found}), expected {}",
                    row.place, row.fact, row.expected
                ));
            }
        }
    }
    assert!(
        faults.is_empty(),
        "{} of {count} rows:\n{}",
        faults.len(),
        faults.join("\n")
    );
    assert!(count >= 300, "the corpus has only {count} rows");
}

#[test]
fn every_row_that_allows_has_a_near_twin_that_is_denied() {
    let mut faults = Vec::new();
    for case in corpus_files().iter().flat_map(|path| read_cases(path)) {
        for (index, row) in case.rows.iter().enumerate().filter(|(_, row)| row.allowed) {
            let full = |row: &Row| format!("{} {}", row.fact, row.executable);
            match case.rows.get(index + 1) {
                Some(twin) if !twin.allowed => {
                    let changes = changes(&full(row), &full(twin));
                    if changes == 0 || changes > TWIN_CHANGES_MAX {
                        faults.push(format!("{}: {changes} changes to its twin", row.place));
                    }
                }
                _ => faults.push(format!("{}: no denied row follows", row.place)),
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
