//! `outgate audit report` and `export`: what a page and an archive say, and that
//! nothing of a record can become a part of them.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::{Command, Stdio};

use crate::audit::{ALLOWED, CONNECT, DENIED, FINISH, FLOW, START, chained, record, text};
use crate::{Desk, outgate};

/// What a command could put into every text of a record, so that a page, a
/// terminal or a reader does what it wants.
const HOSTILE: &str = r#"\"'><script>document.title='owned'</script><img src=x onerror=alert(1)></style></title><svg onload=alert(2)><a href=\"javascript:x\">\u202e\u0007\u001b[2J&#60;&lt;"#;

fn hostile() -> String {
    let x = HOSTILE;
    let rule = format!(r#""rule":{{"id":1,"text":"{x}","place":"{x}"}}"#);
    let who = format!(r#""pid":1,"executable":"/{x}","parents":["{x}"]"#);
    let found = format!(
        r#""finding":{{"detector":"{x}","name":"{x}","place":"{x}","offset":1,"chain":["{x}"],"inside":"{x}","issuers":["{x}"],"mark":"{x}"}}"#
    );
    let members = [
        format!(r#""kind":"start","verdict":"note","target":"","detail":"{x}""#),
        format!(r#""kind":"{x}","verdict":"{x}","target":"{x}","detail":"{x}""#),
        format!(
            r#""kind":"request","verdict":"deny","target":"https://{x}","method":"{x}","path":"{x}","reason":"{x}","detail":"{x}","flag":"{x}",{rule},{who}"#
        ),
        format!(
            r#""kind":"request","verdict":"allow","target":"https://{x}","method":"GET","path":"{x}",{rule},{who}"#
        ),
        format!(
            r#""kind":"tunnel","verdict":"allow","target":"{x}","detail":"uninspected",{rule},{who}"#
        ),
        format!(
            r#""kind":"canary","verdict":"deny","alarm":true,"target":"{x}","detail":"{x}",{found},{who}"#
        ),
        format!(
            r#""kind":"finding","verdict":"note","target":"{x}","detail":"{x}",{found},{who},"unscanned":{{"bytes":7,"reason":"{x}"}}"#
        ),
        format!(
            r#""kind":"flow","verdict":"note","target":"{x}",{who},"bytes_up":18446744073709551615,"bytes_down":18446744073709551615,"duration_ms":18446744073709551615"#
        ),
        format!(r#""kind":"finish","verdict":"note","target":"","detail":"{x}""#),
    ];
    let members: Vec<&str> = members.iter().map(String::as_str).collect();
    text(&chained(x, &members))
}

const BUDGET: &str = r#""kind":"budget","verdict":"note","target":"http://a.test","reason":"budget","detail":"8 of 10 MB are spent""#;

/// Every name of a tag or an attribute that the program writes.
const KNOWN: &str = "a aria-hidden aria-label b body br circle class code cx cy d data-head dd div dl dt foreignObject g h1 h2 h3 head header height href html id li line main nav p path pre preserveAspectRatio r rect role rx scope section small \
    span strong stroke-width svg table tbody td text \
    text-anchor th thead time title tr transform ul viewBox width x x1 x2 y y1 y2";

/// Names of tags and attributes of a page, and the values of those that lead
/// somewhere.
fn markup(page: &str) -> (Vec<String>, Vec<String>) {
    let (_, body) = page.split_once("</style>").expect("a style");
    let mut names = Vec::new();
    let mut links = Vec::new();
    for tag in body.split('<').skip(1) {
        let (inside, _) = tag.split_once('>').expect("a tag that ends");
        let mut quoted = false;
        let mut outside = String::new();
        for character in inside.chars() {
            quoted ^= character == '"';
            if !quoted {
                outside.push(character);
            }
        }
        assert!(!quoted, "an attribute that does not end: {inside}");
        names.extend(
            outside
                .split([' ', '"', '/'])
                .map(|name| name.trim_end_matches('=').to_owned())
                .filter(|name| !name.is_empty()),
        );
        for name in ["href=\"", "src=\""] {
            links.extend(inside.split(name).skip(1).map(str::to_owned));
        }
    }
    (names, links)
}

#[test]
fn nothing_of_a_record_becomes_markup_of_its_report() {
    let desk = Desk::new();
    desk.write("record.jsonl", &hostile());
    let said = desk.call(&["audit", "report", "record.jsonl"]);
    assert_eq!((said.status, said.stderr.as_str()), (0, ""));
    let page = said.stdout;
    let (names, links) = markup(&page);
    let known: Vec<&str> = KNOWN.split_whitespace().collect();
    for name in &names {
        assert!(known.contains(&name.as_str()), "`{name}` in the markup");
    }
    assert!(names.len() > 300, "the page was read: {names:?}");
    for link in links {
        assert!(link.starts_with('#'), "a link to elsewhere: {link}");
    }
    assert!(
        page.contains("&lt;script&gt;document.title"),
        "it is shown as it is"
    );
    let hidden = |c: char| (c.is_control() && c != '\n') || ('\u{200b}'..='\u{202f}').contains(&c);
    assert_eq!(page.chars().find(|c| hidden(*c)), None);
    // A browser would not run or load it even if it were markup.
    let policy = "content=\"default-src 'none'; style-src 'sha256-";
    assert!(page.contains(policy), "the policy of the page");
    for other in ["tail", "query", "verify"] {
        let said = desk.call(&["audit", other, "record.jsonl"]);
        let plain = |c: char| c == '\n' || c == ' ' || c.is_ascii_graphic();
        assert!(said.stdout.chars().all(plain), "{other}: {:?}", said.stdout);
        assert!(!said.stdout.is_empty(), "{other}");
    }
    let said = desk.call(&["audit", "export", "--format", "ocsf", "record.jsonl"]);
    let events = said.stdout.lines().filter(|line| {
        serde_json::from_str::<serde_json::Value>(line).is_ok_and(|event| event.is_object())
    });
    assert_eq!(events.count(), 9, "{}", said.stdout);
}

#[test]
fn a_report_says_what_went_what_was_denied_and_what_was_found() {
    let found = r#""finding":{"detector":"github-token","name":"GitHub token","place":"content","offset":0,"chain":["base64","gzip"],"tier":"strong","checked":"passed","action":"block","issuers":["github.com"],"mark":"5eed"}"#;
    let finding = format!(
        r#""kind":"finding","verdict":"deny","target":"http://b.test","method":"POST","path":"/u","reason":"credential","detail":"why",{found},"pid":7,"executable":"/usr/bin/curl""#
    );
    let canary = format!(
        r#""kind":"canary","verdict":"deny","alarm":true,"target":"planted.c.test","reason":"canary","detail":"planted",{found},"pid":9,"executable":"/tmp/evil""#
    );
    let tunnel = r#""kind":"tunnel","verdict":"allow","target":"d.test:443","detail":"uninspected","rule":{"id":1,"text":"tls://d.test","place":"agent.toml:3"},"pid":7,"executable":"/usr/bin/curl""#;
    let passed = r#""kind":"flow","verdict":"note","target":"d.test:443","pid":7,"executable":"/usr/bin/curl","bytes_up":4321,"bytes_down":9,"duration_ms":7"#;
    let lines = chained(
        "r-1",
        &[
            START, CONNECT, ALLOWED, DENIED, FLOW, &finding, &canary, tunnel, BUDGET, passed,
            FINISH,
        ],
    );
    let desk = Desk::new();
    desk.write("record.jsonl", &text(&lines));
    let said = desk.call(&["audit", "report", "record.jsonl", "-o", "page.html"]);
    assert_eq!(
        (said.status, said.stdout.as_str()),
        (0, ""),
        "{}",
        said.stderr
    );
    let page = fs::read_to_string(desk.directory.join("page.html")).expect("a page");
    for part in [
        "<h1>agent</h1>",
        "record sound",
        // The two connections that ended, both ways together.
        "5.8 kB sent to 2 hosts, 29 B received. 3 attempts were denied.",
        "2 credentials were found on the way out, and held back.",
        "1 connection or message went where nobody could look inside.",
        "<strong>PUT http://a.test/x</strong>",
        "-a &#39;PUT http://a.test/x&#39;</code>",
        "<span class=\"link\">base64</span><span class=\"to\">&rsaquo;</span><span class=\"link\">gzip</span>",
        "It may go to github.com.",
        "<h2>1 alarm</h2>",
        "<strong>the name planted.c.test</strong> by <code>/tmp/evil</code>",
        "TLS that was not opened",
        "<strong>http://a.test</strong></p><p class=\"why\">8 of 10 MB are spent</p>",
        "4.3 kB",
        "<code>tls://d.test</code>",
    ] {
        assert!(page.contains(part), "{part}\n{page}");
    }
    let altered = text(&lines).replace("\"bytes_up\":1500", "\"bytes_up\":1");
    desk.write("altered.jsonl", &altered);
    let said = desk.call(&["audit", "report", "altered.jsonl"]);
    assert!(
        said.stdout.contains("record altered: 1 fault"),
        "{}",
        said.stdout
    );
}

#[test]
fn a_report_says_what_there_was_not() {
    let desk = Desk::new();
    let quiet = chained("r-1", &[START, FINISH]);
    desk.write("quiet.jsonl", &text(&quiet));
    let said = desk.call(&["audit", "report", "quiet.jsonl"]);
    for part in [
        "Nothing reached any host.",
        "No program asked for any host.",
        "Nothing was denied by a rule",
        "No credential was found in what left.",
        "Nothing left in a form that cannot be looked into.",
    ] {
        assert!(said.stdout.contains(part), "{part}\n{}", said.stdout);
    }
    let blind = START.replace("agent\"", "agent\",\"scan\":\"off\"");
    desk.write("blind.jsonl", &text(&chained("r-1", &[&blind, FINISH])));
    let said = desk.call(&["audit", "report", "blind.jsonl"]);
    for part in ["Nobody looked for credentials.", "1 run was without a scan"] {
        assert!(said.stdout.contains(part), "{part}\n{}", said.stdout);
    }
    desk.write("empty.jsonl", "");
    let said = desk.call(&["audit", "report", "empty.jsonl"]);
    assert_eq!((said.status, said.stdout.as_str()), (2, ""));
}

#[test]
fn a_report_of_a_large_record_stays_a_page() {
    let desk = Desk::new();
    let mut text = String::new();
    for number in 0..30_000 {
        let line = format!(
            "{{\"v\":1,\"seq\":{number},\"time\":\"2026-11-21T12:00:00.000Z\",\"run\":\"r\",\"sandbox\":\"s\",\"kind\":\"request\",\"verdict\":\"deny\",\"target\":\"https://h{number}.test\",\"method\":\"GET\",\"path\":\"/{number}\",\"executable\":\"/bin/p{number}\",\"pid\":{number},\"flag\":\"-a h{number}\"}}\n"
        );
        text.push_str(&line);
    }
    desk.write("record.jsonl", &text);
    let said = desk.call(&["audit", "report", "record.jsonl"]);
    assert_eq!(said.status, 0, "{}", said.stderr);
    assert!(said.stdout.len() < 200_000, "{} bytes", said.stdout.len());
    assert!(
        said.stdout.contains("29960 denials more"),
        "every one is counted"
    );
}

#[test]
fn an_archive_is_read_by_the_scan_and_holds_every_request() {
    let desk = Desk::new();
    desk.write("record.jsonl", &text(&record()));
    let said = desk.call(&[
        "audit",
        "export",
        "--format",
        "har",
        "record.jsonl",
        "-o",
        "a.har",
    ]);
    assert_eq!((said.status, said.stderr.as_str()), (0, ""));
    let said = desk.call(&["scan", "a.har"]);
    assert_eq!(said.status, 0, "{}{}", said.stdout, said.stderr);
    let text = fs::read_to_string(desk.directory.join("a.har")).expect("an archive");
    let archive: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let entries = archive["log"]["entries"].as_array().expect("entries");
    assert_eq!(entries.len(), 2);
    assert_eq!(entries[1]["response"]["status"], 403);
    assert_eq!(
        entries[1]["_outgate"]["to_allow"],
        "-a 'PUT http://a.test/x'"
    );
    // What is there stays until the new one is whole.
    let said = desk.call(&[
        "audit", "export", "--format", "har", "missing", "-o", "a.har",
    ]);
    assert_eq!(said.status, 2);
    assert_eq!(
        fs::read_to_string(desk.directory.join("a.har")).expect("it stayed"),
        text
    );
}

/// Runs a line of shell here, `$0` being the program; what it reads comes from
/// `input`, as long as it reads.
fn shell(desk: &Desk, line: &str, input: &[u8]) -> std::process::Output {
    let mut child = Command::new("/bin/sh")
        .args(["-c", line])
        .arg(outgate())
        .current_dir(&desk.directory)
        .env("XDG_STATE_HOME", desk.directory.join("state"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("a shell");
    let mut to = child.stdin.take().expect("a pipe");
    std::thread::scope(|scope| {
        // It may end before it read everything.
        scope.spawn(move || to.write_all(input).ok());
        child.wait_with_output().expect("it ends")
    })
}

#[test]
fn what_a_command_left_beside_a_page_is_not_written_through() {
    let desk = Desk::new();
    desk.write("record.jsonl", &text(&record()));
    desk.write("mine", "mine");
    symlink("mine", desk.directory.join("page.html")).expect("a link");
    // The program becomes another one, and keeps the number of this shell.
    for planted in ["", "-0", "-1"] {
        let line = format!(
            "ln -sf mine page.html.new-$${planted}; exec \"$0\" audit report record.jsonl -o page.html"
        );
        let said = shell(&desk, &line, b"");
        let told = String::from_utf8_lossy(&said.stderr).into_owned();
        assert_eq!(said.status.code(), Some(0), "{planted}: {told}");
        let mine = fs::read_to_string(desk.directory.join("mine")).expect("it is there");
        assert_eq!(mine, "mine", "{planted}");
        let page = desk.directory.join("page.html");
        let about = fs::symlink_metadata(&page).expect("a page");
        assert!(about.is_file(), "a link took its place: {about:?}");
        assert_eq!(about.permissions().mode() & 0o777, 0o600);
        let page = fs::read_to_string(page).expect("a page");
        assert!(page.contains("<h1>"), "{page}");
    }
    // A name that nobody may take is an error, and nothing is written.
    let line = "n=0; while [ $n -lt 64 ]; do ln -s mine made.html.new-$$-$n; n=$((n+1)); done; \
                exec \"$0\" audit report record.jsonl -o made.html";
    let said = shell(&desk, line, b"");
    assert_eq!(said.status.code(), Some(2));
    let mine = fs::read_to_string(desk.directory.join("mine")).expect("it is there");
    assert_eq!(mine, "mine");
}

#[test]
fn records_of_long_texts_cost_bounded_memory() {
    const LINES: usize = 200;
    let desk = Desk::new();
    let long = "x".repeat(900_000);
    let record: Vec<String> = (0..LINES)
        .map(|number| {
            format!(
                "{{\"run\":\"r\",\"kind\":\"request\",\"verdict\":\"deny\",\"target\":\"https://a.test\",\"method\":\"GET\",\"path\":\"/{number}{long}\"}}\n"
            )
        })
        .collect();
    let record = record.concat();
    for (words, left) in [
        ("report", None),
        ("export --format har", None),
        ("export --format ocsf", None),
        ("tail -n 200", None),
        (
            "tail -n 200 --json",
            Some("records before these are left out"),
        ),
        (
            "query -n 200 --json",
            Some("records before these are left out"),
        ),
    ] {
        // Kibibytes: less than the record, which has 180 MB.
        let line = format!("ulimit -d 131072 && exec \"$0\" audit {words} -");
        let said = shell(&desk, &line, record.as_bytes());
        let told = String::from_utf8_lossy(&said.stderr).into_owned();
        assert_eq!(said.status.code(), Some(0), "{words}: {told}");
        assert!(!said.stdout.is_empty(), "{words}");
        match left {
            Some(left) => assert!(told.contains(left), "{words}: {told}"),
            None => assert_eq!(told, "", "{words}"),
        }
    }
}
