//! What a person sees of a denial, client by client: in the client's own words
//! and on outgate's line, and how soon. The table in `gateway/README.md` is what
//! this test saw; `OUTGATE_BLESS=1` writes it anew.

use std::fmt::Write as _;
use std::fs;
use std::time::Duration;

use outgate_harness::lab_tests;

use crate::scenario::{Run, assert_denied};
use crate::stage::{Stage, is_opened};
use crate::{languages, packages, stores, streams, versions};

/// Longest time that a denial may take more than an allowed answer.
const WAIT_MAX: Duration = Duration::from_secs(3);

/// Tries of which the fastest counts: the machine does other things too.
const TRIES_MAX: u32 = 3;

/// Most requests a client makes of one denied use.
const REQUESTS_MAX: usize = 12;

/// The document, and the lines between which a table stands.
const DOCUMENT: &str = "gateway/README.md";
const BEGIN: &str = "<!-- made by a test: WHICH -->\n";
const END: &str = "<!-- end -->\n";

/// The first lines of a table.
const HEAD: &str =
    "| client | what reaches who reads only it | its own words |\n| --- | --- | --- |\n";

/// A client, and a use of it that needs one host.
struct Client {
    name: &'static str,
    script: String,
    host: &'static str,
    /// The rule under which it works; empty: it is only tried denied.
    rule: &'static str,
}

fn client(name: &'static str, script: &str, host: &'static str, rule: &'static str) -> Client {
    let script = script
        .replace("PIP", packages::PIP)
        .replace("KEYS", stores::KEYS);
    Client {
        name,
        script,
        host,
        rule,
    }
}

/// A client that fetches a page.
fn page(name: &'static str, script: &str) -> Client {
    client(name, script, "site.example", "GET,HEAD http://site.example")
}

/// Programs and libraries that fetch a page.
fn fetchers() -> Vec<Client> {
    vec![
        page("curl", "curl -sS http://site.example/hello"),
        page("curl -f", "curl -sS -f http://site.example/hello"),
        client(
            "curl over HTTP/2",
            "curl -sS --http2-prior-knowledge http://site.example/hello",
            "site.example",
            "",
        ),
        page("wget", "wget -O - http://site.example/hello"),
        client(
            "git clone",
            "git clone http://live.example/git/project.git here",
            "live.example",
            "* http://live.example",
        ),
        page(
            "urllib",
            "python3 -c 'import urllib.request; print(urllib.request.urlopen(\"http://site.example/hello\").read())'",
        ),
        page(
            "requests",
            "python3 -c 'import requests; r = requests.get(\"http://site.example/hello\"); r.raise_for_status(); print(r.text)'",
        ),
        page(
            "httpx",
            "python3 -c 'import httpx; r = httpx.get(\"http://site.example/hello\"); r.raise_for_status(); print(r.text)'",
        ),
        page(
            "aiohttp",
            "python3 -c 'import aiohttp, asyncio\nasync def main():\n    async with aiohttp.request(\"GET\", \"http://site.example/hello\", raise_for_status=True) as r: print(await r.text())\nasyncio.run(main())'",
        ),
        page("java (URL)", languages::JAVA),
        page("java (HttpClient)", languages::JAVA_CLIENT),
        page(
            "LWP of Perl",
            "perl -MLWP::Simple -e 'getprint(\"http://site.example/hello\")'",
        ),
        client(
            "gRPC of Python",
            &streams::CALLS.replace("TARGET", "rpc.example:80"),
            "rpc.example",
            "",
        ),
        page("net/http of Go", "go-client get http://site.example/hello"),
        client(
            "gRPC of Go",
            &streams::CALL_IN_GO.replace("rpc.example:50051", "'rpc.example:80'"),
            "rpc.example",
            "",
        ),
    ]
}

/// The same in node.
fn fetchers_in_node() -> Vec<Client> {
    vec![
        page(
            "fetch of node",
            "node -e 'fetch(\"http://site.example/hello\").then(async (r) => console.log(r.status, await r.text()))'",
        ),
        page(
            "axios",
            "node -e 'require(\"axios\").get(\"http://site.example/hello\").then((r) => console.log(r.data), (e) => console.log(String(e)))'",
        ),
        page(
            "fetch of deno",
            "DENO_DIR=$HOME/deno DENO_NO_UPDATE_CHECK=1 deno eval --quiet 'const r = await fetch(\"http://site.example/hello\"); console.log(r.status, await r.text())'",
        ),
        client(
            "gRPC of node",
            &streams::CALL_IN_NODE.replace("rpc.example:50051", "rpc.example:80"),
            "rpc.example",
            "",
        ),
        client(
            "a WebSocket of node",
            "node -e 'new (require(\"ws\"))(\"ws://live.example/socket\").on(\"error\", (e) => console.error(e.message)).on(\"open\", process.exit)'",
            "live.example",
            "ws://live.example",
        ),
    ]
}

/// Package managers that come with a language's own index, in Python and node.
fn managers() -> Vec<Client> {
    vec![
        client(
            "pip",
            "PIP --target here demo-pkg",
            "pypi.example",
            "GET http://pypi.example",
        ),
        client(
            "pip -vv",
            &packages::PIP.replace("--quiet", "-vv --target here demo-pkg"),
            "pypi.example",
            "GET http://pypi.example",
        ),
        client(
            "uv",
            "uv pip install --no-cache --no-config --python /usr/bin/python3 --index-url http://pypi.example/simple --target here demo-pkg",
            "pypi.example",
            "GET,HEAD http://pypi.example",
        ),
        client(
            "npm",
            "npm install --no-audit --no-fund --no-update-notifier --registry=http://npm.example/ demo-pkg",
            "npm.example",
            "GET http://npm.example",
        ),
        client(
            "pnpm",
            "pnpm add --store-dir store --config.update-notifier=false --registry=http://npm.example/ demo-pkg",
            "npm.example",
            "GET http://npm.example",
        ),
        client(
            "yarn add",
            "yarn add --silent --non-interactive --no-lockfile --cache-folder cache --registry=http://npm.example demo-pkg",
            "npm.example",
            "GET http://npm.example",
        ),
        client(
            "bun add",
            "bun add --registry=http://npm.example/ demo-pkg",
            "npm.example",
            "GET http://npm.example",
        ),
    ]
}

/// Other package managers, and clients of a store of objects.
fn more_managers() -> Vec<Client> {
    vec![
        client(
            "go get",
            packages::GO,
            "goproxy.example",
            "GET http://goproxy.example",
        ),
        client(
            "cargo",
            packages::CARGO,
            "crates.example",
            "GET http://crates.example",
        ),
        client(
            "aws s3 ls",
            "KEYS aws s3 ls s3://bucket",
            "objects.example",
            "GET http://objects.example",
        ),
        client(
            "aws s3 cp, first asks HEAD",
            "KEYS aws s3 cp s3://bucket/file back",
            "objects.example",
            "GET,HEAD http://objects.example",
        ),
        client(
            "gem",
            "gem install --install-dir here --no-document --clear-sources --source http://gems.example demo-gem",
            "gems.example",
            "GET,HEAD http://gems.example",
        ),
        client(
            "apt-get",
            packages::APT,
            "apt.example",
            "GET http://apt.example",
        ),
    ]
}

/// Programs that speak something else than HTTP.
fn others() -> Vec<Client> {
    vec![
        // Where nobody waits for HTTP, there is an error of the kernel to tell.
        client(
            "redis-cli",
            "redis-cli -h data.example ping",
            "data.example",
            "",
        ),
        client(
            "psql",
            "psql -X -h data.example -U tester postgres -c 'select 1'",
            "data.example",
            "",
        ),
        client(
            "ssh",
            "ssh -F /dev/null -o BatchMode=yes tester@data.example true",
            "data.example",
            "",
        ),
        client(
            "git over its own protocol",
            "git clone git://data.example/project.git here",
            "data.example",
            "",
        ),
    ]
}

/// How much of a denial reaches whoever reads only the client.
fn reach(words: &str) -> &'static str {
    if words.contains("outgate denied") {
        if words.contains("to allow it: -a '") {
            "the sentence and the flag"
        } else {
            "the sentence"
        }
    } else if words.contains("403") {
        "the status"
    } else if words.contains("refused") {
        "that the connection was refused"
    } else {
        "nothing"
    }
}

/// The line of the client that says most.
fn best_line(words: &str) -> &str {
    let lines: Vec<&str> = words
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    let saying = |what: &str| lines.iter().rev().find(|line| line.contains(what)).copied();
    saying("outgate denied")
        .or_else(|| saying("403"))
        .or_else(|| saying("refused"))
        .or(lines.last().copied())
        .unwrap_or_default()
}

/// The same on every machine: no time, no folder, no synthetic address.
fn normalised(line: &str, folder: &str) -> String {
    let line = line.replace(folder, "~");
    let words: Vec<String> = line
        .split(' ')
        .map(|word| {
            let core = word.trim_matches(|c: char| !c.is_ascii_alphanumeric());
            if core.starts_with("198.18.") || core.starts_with("198.19.") {
                word.replace(core, "SYNTHETIC")
            } else if word.len() >= 8
                && word
                    .chars()
                    .all(|c| c.is_ascii_digit() || "-:.".contains(c))
            {
                "TIME".to_owned()
            } else {
                word.to_owned()
            }
        })
        .collect();
    words.join(" ").replace("TIME TIME", "TIME")
}

/// Runs it denied; the run and how long it waited because of that.
fn denied(stage: &mut Stage<'_>, client: &Client) -> (Run, Duration) {
    let allowed = if client.rule.is_empty() {
        Duration::ZERO
    } else {
        let run = Run::make(stage, stage.allowing(&[client.rule]), &client.script);
        assert_eq!(run.outcome.code, Some(0), "{}, allowed: {run}", client.name);
        assert_eq!(run.outcome.stderr, "", "{}, allowed: {run}", client.name);
        run.outcome.elapsed
    };
    stage.seen();
    // Without any rule about TLS nobody is told inside it.
    let rules: &[&str] = if is_opened() {
        &["http://nothing.example"]
    } else {
        &[]
    };
    let run = Run::make(stage, stage.allowing(rules), &client.script);
    let waited = run.outcome.elapsed.saturating_sub(allowed);
    (run, waited)
}

/// The row of one client, after all that must hold for it did.
fn row(stage: &mut Stage<'_>, client: &Client) -> String {
    let mut tries = (0..TRIES_MAX).map(|_| {
        let (run, waited) = denied(stage, client);
        let place = format!("{}: {run}", client.name);
        assert_denied(stage, &run, client.host, &place);
        let lines = run.lines_about(client.host).len();
        assert!(lines <= REQUESTS_MAX, "it asks for ever: {place}");
        (run, waited)
    });
    let soon = tries.find(|(_, waited)| *waited < WAIT_MAX);
    let (run, waited) =
        soon.unwrap_or_else(|| panic!("{} waits for {WAIT_MAX:?} and more", client.name));
    eprintln!(
        "{}: {:?}, {waited:?} of it for the denial",
        client.name, run.outcome.elapsed
    );
    let words = run.words();
    let folder = stage.work();
    let line = normalised(best_line(&words), &folder.to_string_lossy());
    let line = line.replace('|', "\\|");
    format!("| {} | {} | `{line}` |\n", client.name, reach(&words))
}

/// Makes the table of `clients` and compares it with the document, or writes it
/// there.
fn table(stage: &mut Stage<'_>, which: &str, clients: &[Client]) {
    let mut table = HEAD.to_owned();
    for client in clients {
        table.push_str(&row(stage, client));
    }
    let which = if is_opened() {
        format!("{which} over TLS")
    } else {
        which.to_owned()
    };
    let begin = BEGIN.replace("WHICH", &which);
    let file = outgate_harness::tools::project().join(DOCUMENT);
    // Two tests may write it at the same time.
    let held = fs::File::open(&file).expect("the document");
    held.lock().expect("the document for this test alone");
    let text = fs::read_to_string(&file).expect("the document");
    let (before, rest) = text.split_once(&begin).expect("where the table begins");
    let (there, after) = rest.split_once(END).expect("where the table ends");
    if std::env::var("OUTGATE_BLESS").is_ok_and(|value| value == "1") {
        let new = format!("{before}{begin}{table}{END}{after}");
        fs::write(&file, new).expect("the document");
        return;
    }
    for (ours, theirs) in table.lines().zip(there.lines()) {
        assert_eq!(ours, theirs, "{DOCUMENT}; OUTGATE_BLESS=1 writes it anew");
    }
    assert_eq!(table, there, "{DOCUMENT}; OUTGATE_BLESS=1 writes it anew");
}

carried_tests! {
    fn a_denial_reaches_the_person_through_every_fetcher(lab) {
        let programs = ["wget", "node", "java", "perl", "redis-cli", "psql", "ssh"];
        let Some(mut stage) = Stage::with_tools(lab, &programs) else { return };
        versions::publish(&stage);
        let more = if is_opened() { Vec::new() } else { others() };
        let all: Vec<Client> = [fetchers(), fetchers_in_node(), more].into_iter().flatten().collect();
        table(&mut stage, "fetchers", &all);
    }

    fn a_denial_reaches_the_person_through_every_manager(lab) {
        let programs = ["node", "gem", "dpkg-deb", "go", "apt-get"];
        let Some(mut stage) = Stage::with_tools(lab, &programs) else { return };
        packages::publish(&stage);
        stores::objects(&stage);
        let all: Vec<Client> = [managers(), more_managers()].into_iter().flatten().collect();
        table(&mut stage, "managers", &all);
    }
}

lab_tests! {
    fn a_denial_has_the_forms_that_tools_read(lab) {
        let Some(mut stage) = Stage::start(lab, &[]) else { return };
        let script = r"cat > ask.py <<'E'
import http.client, sys
host, method, path, *fields = sys.argv[1:]
connection = http.client.HTTPConnection(host, timeout=20)
connection.request(method, path, headers=dict(field.split('=', 1) for field in fields))
response = connection.getresponse()
print(response.status, response.reason)
for name, value in response.getheaders():
    print(f'{name}: {value}')
print('---')
print(response.read().decode())
E
";
        let ask = |stage: &Stage<'_>, arguments: &str| {
            let sandbox = stage.allowing(&["GET http://site.example/hello"]).deny("* http://site.example/secret");
            Run::make(stage, sandbox, &format!("{script}python3 ask.py {arguments}"))
        };
        let advice = "outgate denied GET http://denied.example/x: no rule allows it; to allow it: -a 'GET http://denied.example/x'";
        let sentence = "outgate denied GET http://denied.example/x: no rule allows it";
        let status = "proxy-status: outgate; error=http_request_denied; details=\"no rule allows it\"\n";
        let body = format!("---\n{sentence}\nto allow it: -a 'GET http://denied.example/x'\n");
        let json = format!("---\n{{\"ask\":\"http://outgate.invalid/\",\"detail\":\"{advice}\",\"error\":\"{sentence}\"");
        for (fields, kind, content) in [
            ("", "content-type: text/plain; charset=us-ascii\n", body.as_str()),
            ("accept='*/*'", "content-type: text/plain; charset=us-ascii\n", &body),
            ("accept='text/html, application/json'", "content-type: text/plain; charset=us-ascii\n", &body),
            ("accept=application/json", "content-type: application/json\n", &json),
            ("accept='application/vnd.x+json; q=1, */*'", "content-type: application/json\n", &json),
        ] {
            let run = ask(&stage, &format!("denied.example GET /x {fields}"));
            let place = format!("{fields}: {run}");
            let said = &run.outcome.stdout;
            assert!(said.starts_with(&format!("403 {advice}\n")), "{place}");
            for part in ["outgate-denied: no-rule; rule=-\n", "outgate-ask: http://outgate.invalid/\n", "cache-control: no-store\n", status, kind, content] {
                assert!(said.contains(part), "{part}: {place}");
            }
            assert_denied(&mut stage, &run, "denied.example", &place);
        }
        let run = ask(&stage, "site.example HEAD /secret");
        let said = &run.outcome.stdout;
        assert!(said.starts_with("403 outgate denied HEAD http://site.example/secret: "), "{run}");
        assert!(said.contains("outgate-denied: deny-rule; rule=") && !said.contains("rule=-"), "{run}");
        assert!(said.ends_with("---\n\n"), "HEAD has no content: {run}");
        assert!(!said.contains("to allow it"), "a deny rule is not lifted by another: {run}");
        assert_denied(&mut stage, &run, "site.example", "HEAD");
        // What is too long for a reason phrase is not cut within the flag.
        let long = "x".repeat(300);
        let run = ask(&stage, &format!("denied.example GET /{long}"));
        let first = run.outcome.stdout.lines().next().unwrap_or_default();
        assert!(first.starts_with("403 outgate denied GET http://denied.example/x"), "{run}");
        assert!(!first.contains("-a '"), "{run}");
        assert!(run.outcome.stdout.contains("to allow it: -a 'GET http://denied.example'"), "{run}");
    }

    fn a_denied_target_is_told_once(lab) {
        let Some(mut stage) = Stage::start(lab, &[]) else { return };
        let mut script = String::new();
        for number in 0..12 {
            let path = if number % 3 == 0 { "other" } else { "same" };
            writeln!(script, "curl -s -o /dev/null http://denied.example/{path}").expect("a line");
            writeln!(script, "curl -s telnet://denied.example:25 < /dev/null").expect("a line");
        }
        let run = Run::make(&stage, stage.sandbox(), &script);
        assert_eq!(run.lines_about("denied.example/same").len(), 1, "{run}");
        assert_eq!(run.lines_about("denied.example/other").len(), 1, "{run}");
        assert_eq!(run.lines_about("denied.example:25").len(), 1, "{run}");
        assert!(run.outcome.stderr.contains("outgate: 24 denials"), "all are counted: {run}");
        assert_denied(&mut stage, &run, "denied.example", &run.to_string());
    }
}
