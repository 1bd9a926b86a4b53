//! Targets and forms that servers and frameworks read otherwise than they are
//! written: a rule is about every reading, so nothing arrives that somebody would
//! take for what is denied, or for what no rule allows.

use std::fs;

use outgate_harness::origin::Origin;
use outgate_harness::{Identity, Lab, Outcome, lab_tests};

/// A request for this target, with these fields and content.
fn request(method: &str, target: &str, fields: &str, content: &str) -> String {
    let length = content.len();
    format!(
        "{method} {target} HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n{fields}Content-Length: {length}\r\n\r\n{content}"
    )
}

fn get(target: &str) -> String {
    request("GET", target, "", "")
}

/// What a sandbox is told.
type Rules<'r> = &'r [(&'r str, &'r str)];

/// Sends each request on a connection of its own; the lines of those that arrived.
fn sent(
    lab: &Lab,
    origin: &Origin,
    rules: Rules<'_>,
    requests: &[String],
) -> (Vec<String>, Outcome) {
    let before = origin.arrivals().len();
    let script = format!(
        "for r; do {} fetch 127.0.0.1 8080 \"$r\"; done; true",
        lab.tool("probe")
    );
    let mut command = ["sh", "-c", &script, "sh"].map(str::to_owned).to_vec();
    let folder = lab.folder("work", Identity::Own);
    for (number, request) in requests.iter().enumerate() {
        let file = folder.join(format!("request-{number}"));
        fs::write(&file, request).expect("a file");
        command.push(format!("@{}", file.display()));
    }
    let sandbox = lab.sandbox(Identity::Own);
    let sandbox = rules.iter().fold(sandbox, |sandbox, (option, rule)| {
        sandbox.option(option, rule)
    });
    let outcome = sandbox.run(&command);
    let arrivals = origin.arrivals();
    let arrived = arrivals.iter().skip(before);
    (arrived.map(|one| one.line().to_owned()).collect(), outcome)
}

/// Asserts that of these targets the first ones arrive, and no other.
fn only(lab: &Lab, origin: &Origin, rules: Rules<'_>, good: &[&str], bad: &[&str]) {
    let requests: Vec<String> = good.iter().chain(bad).map(|target| get(target)).collect();
    let (arrived, outcome) = sent(lab, origin, rules, &requests);
    let wanted = good.iter().map(|target| format!("GET {target} HTTP/1.1"));
    let wanted: Vec<String> = wanted.collect();
    assert_eq!(arrived, wanted, "{rules:?}: {outcome}");
}

const ANY: (&str, &str) = ("-a", "http://127.0.0.1:8080");
const FORM: &str = "Content-Type: application/x-www-form-urlencoded\r\n";
const PARTS: &str = "Content-Type: multipart/form-data; boundary=b\r\n";

const JSON: &str = "Content-Type: application/json\r\n";
const MIXED: &str = "Content-Type: multipart/mixed; boundary=b\r\n";

/// A batch of one request.
fn batch(line: &str) -> String {
    format!("--b\r\nContent-Type: application/http\r\n\r\n{line}\r\n\r\n--b--\r\n")
}

/// A form of one part.
fn part(name: &str, value: &str) -> String {
    format!("--b\r\nContent-Disposition: form-data; name={name}\r\n\r\n{value}\r\n--b--\r\n")
}

lab_tests! {
    fn what_a_server_takes_for_a_denied_path_does_not_arrive(lab) {
        let origin = Origin::start(8080);
        only(lab, &origin, &[ANY, ("-d", "* */admin/**")], &[
            "/", "/x/y", "/administer", "//x/y",
        ], &[
            "/admin/keys", "//admin/keys", "//x/admin/keys", "///x/admin/keys", "//x:80/admin/keys", "//u@x/admin/keys",
            "/%2fx/admin/keys", "/x/../admin/keys", "/ADMIN/keys", "/admin;a=b/keys", "/a%64min/keys", "/x/%2e%2e/admin/keys",
            "/app.wsgi/admin/keys", "/cgi-bin/app/admin/keys", "/admin.x/keys", "/admin+/keys", "/admin::$DATA/keys", "/ADMIN%2F../",
            "/%FFadmin/keys", "/adm%E2%80%8Bin/keys", "/pub/.%FF./admin/keys", "/admin.a.b/keys", "/admin..x", "/admin%25FF/keys",
            "/index.php/admin/keys", "/x/index.php;y/admin/keys", "/index.php%2fadmin/keys", "/(S(x))/admin/keys",
        ]);
        only(lab, &origin, &[ANY, ("-d", "* */admin"), ("-d", "* */run.php")], &[
            "/admin/keys", "/administer.json", "/run/x", "/.admin",
        ], &[
            "/admin.json", "/Admin.xml", "/index.php/admin.json", "/(S(x))/admin/", "/admin.json;a=b", "/run.php/x",
        ]);
        only(lab, &origin, &[("-a", "http://127.0.0.1:8080/public/**")], &["/public/a"], &[
            "/public/.%FF./a", "/public/x%2F.%E2%80%8B./.%C3./a", "/public/%25FF../a",
            "//x/public/a", "//public/a", "/public/../a", "/x/public/a", "/public%2f..%2fa", "/PUBLIC/a",
        ]);
    }

    fn what_a_program_takes_for_a_denied_key_does_not_arrive(lab) {
        let origin = Origin::start(8080);
        only(lab, &origin, &[ANY, ("-d", "http://127.0.0.1:8080?admin=*"), ("-d", "http://127.0.0.1:8080?user_id=*")], &[
            "/x", "/x?administer=1", "/x?a=admin", "/x?userid=1", "/x?b[admin]=1",
        ], &[
            // PHP.
            "/x?admin=1", "/x?+admin=1", "/x?%20admin=1", "/x?user.id=1", "/x?user+id=1", "/x?user[id=1", "/x?user%5Bid=1",
            // qs and Rack.
            "/x?[admin]=1", "/x?admin[]=1", "/x?admin[x]=1", "/x?%61dmin=1", "/x?a=1&[admin]=1", "/x?a=1;admin=1",
            // Whoever folds case.
            "/x?ADMIN=1", "/x?User_Id=1",
        ]);
        only(lab, &origin, &[("-a", "http://127.0.0.1:8080/x?role=user")], &[
            "/x?role=user", "/x?role=user&a=b",
        ], &[
            "/x", "/x?role=admin", "/x?role=user&role=admin", "/x?role=user&+role=admin", "/x?role=user&[role]=admin",
            "/x?role=user&role[]=admin", "/x?role=user&Role=admin", "/x?role=user;role=admin", "/x?role=user,admin",
            "/x?role=user&%72ole=admin", "/x?role%00=user", "/x?+role=user",
        ]);
    }

    fn a_form_asks_for_no_method_that_the_rules_do_not_allow(lab) {
        let origin = Origin::start(8080);
        let rules = [("-a", "POST,PUT http://127.0.0.1:8080/public/**")];
        let post = |target: &str, fields: &str, content: &str| request("POST", target, fields, content);
        let filler = "x".repeat(400_000);
        let good = [
            post("/public/1", FORM, "a=1&b=_method"),
            post("/public/2", FORM, "_method=put&a=1"),
            post("/public/3", FORM, "_method=&a=1"),
            post("/public/4?_method=PUT", FORM, "a=1"),
            post("/public/5", JSON, "{\"_method\":\"PUT\",\"method\":\"DELETE\",\"text\":\"_method=DELETE\"}"),
            post("/public/5a", "Content-Type: text/plain\r\n", "_method=DELETE"),
            post("/public/5b", FORM, "payment_method=card&method=search&verb=run"),
            post("/public/5c", JSON, "{\"jsonrpc\":\"2.0\",\"method\":\"DELETE\"}"),
            post("/public/5d", "Content-Type: application/json\r\nContent-Encoding: gzip\r\n", "no matter"),
            post("/public/batch", MIXED, &batch("PUT /public/x HTTP/1.1")),
            post("/public/6", PARTS, &part("\"a\"", "_method=DELETE")),
            post("/public/7", PARTS, &part("\"_method\"", "PUT")),
            post("/public/7a", PARTS, &part("\"a\"; filename*0=b", "1")),
            post("/public/7b", "X-Method: PUT\r\nX-Payment-Method: card\r\n", ""),
            post("/public/7c", JSON, "{\"_method\":[\"PUT\"],\"a\":[\"DELETE\"]}"),
            post("/public/7d", "Access-Control-Request-Method: DELETE\r\n", ""),
            request("PUT", "/public/7e", "", "_method=DELETE"),
            request("PUT", "/public/7f", "Content-Encoding: gzip\r\n", "no matter"),
            post("/public/8", FORM, &format!("a={filler}")),
            post("/public/9", PARTS, &part("\"a\"", &filler)),
        ];
        let bad = [
            post("/public/a?_method=DELETE", FORM, "a=1"),
            post("/public/a?%5fMethod=delete", FORM, "a=1"),
            post("/public/a?[_method]=delete", FORM, "a=1"),
            post("/public/a?.method=delete", FORM, "a=1"),
            post("/public/a?_method=PUT&_method=DELETE", FORM, "a=1"),
            post("/public/a", FORM, "_method=DELETE"),
            post("/public/a", FORM, "a=1&_method=delete&b=2"),
            post("/public/a", FORM, "a=1;_method=delete"),
            post("/public/a", FORM, "%5F%6dethod=delete"),
            post("/public/a", FORM, "_method[]=delete"),
            post("/public/a", FORM, "+_method=delete"),
            post("/public/a", PARTS, &part("\"_method\"", "DELETE")),
            post("/public/a", PARTS, &part("_method", "delete")),
            post("/public/a", PARTS, &part("\"a\"; name=\"_method\"", "delete")),
            // Whatever the content is said to be.
            post("/public/a", "", "_method=DELETE"),
            post("/public/a", "Content-Type:\r\n", "_method=DELETE"),
            post("/public/a", "Content-Type: ;x\r\n", "a=1&_method=DELETE"),
            post("/public/a", "Content-Type: text/plain\r\nContent_Type: application/x-www-form-urlencoded\r\n", "_method=DELETE"),
            post("/public/a", "Content-Type: text/plain, application/x-www-form-urlencoded\r\n", "_method=DELETE"),
            post("/public/a", "Content-Type: application/x-www-form-urlencoded; charset=ibm037\r\n", "a=1"),
            post("/public/a", "Content-Type: application/x-www-form-urlencoded; charset=utf-16be\r\n", "a=1"),
            post("/public/a", "Content-Type: application/x-www-form-urlencoded\r\nContent-Encoding: gzip\r\n", "a=1"),
            post("/public/a", "Content-Encoding: gzip\r\n", "a=1"),
            post("/public/a", JSON, "{\"a\":[{}],\"_method\":\"DELETE\"}"),
            post("/public/a", "", "{\"_method\":\"DELETE\"}"),
            post("/public/a", "Content-Type: application/vnd.api+json\r\n", "{\"\\u005fMETHOD\":\"delete\"}"),
            // Whatever the key is called.
            post("/public/a?x-http-method-override=DELETE", FORM, "a=1"),
            post("/public/a?X-HTTP-Method=DELETE", "", ""),
            post("/public/a?x-tunneled-method=DELETE", "", ""),
            post("/public/a?_HttpMethod=PATCH", "", ""),
            post("/public/a?method=delete", "", ""),
            post("/public/a?verb=DELETE", "", ""),
            post("/public/a", FORM, "X-HTTP-Method-Override=DELETE"),
            post("/public/a", FORM, "a=1&method=DELETE"),
            post("/public/a", PARTS, &part("\"x-http-method-override\"", "DELETE")),
            // Without a boundary that all find, parts are a form of pairs to Rack.
            post("/public/a", "Content-Type: multipart/form-data\r\n", "_method=DELETE"),
            post("/public/a", "Content-Type: multipart/form-data; boundary*=B\r\n", "a=1&_method=DELETE"),
            post("/public/a", "Content-Type: multipart/form-data; boundary=B; boundary=C\r\n", "_method=DELETE"),
            // Names that some put together, lines that end for some, values in a coding.
            post("/public/a", PARTS, &part("a; name*0=\"_met\"; name*1=\"hod\"", "DELETE")),
            post("/public/a", PARTS, &part("a; name*=utf-8''_method", "DELETE")),
            post("/public/a", PARTS, &part("a; name*=utf-16''x", "DELETE")),
            post("/public/a", PARTS, &part("\"_method\"", "DELETE").replace("\r\n", "\r")),
            post("/public/a", PARTS, &part("\"verb\"\r\nContent-Transfer-Encoding: base64", "REVMRVRF")),
            post("/public/a", JSON, "{\"_method\":[\"DELETE\"]}"),
            post("/public/a", JSON, "{\"_method\":{\"0\":\"DELETE\"}}"),
            // Fields of whatever name.
            post("/public/a", "X-Method: DELETE\r\n", ""),
            post("/public/a", "Method-Override: delete\r\n", ""),
            post("/public/a", "X-REST-Method: PATCH\r\n", ""),
            post("/public/a", "X_HTTP_Verb: DELETE\r\n", ""),
            post("/public/a", "Verb-Override: PUT, DELETE\r\n", ""),
            // Another sign in the place of the hyphen.
            post("/public/a", "X-HTTP-Method.Override: DELETE\r\n", ""),
            post("/public/a", "X~Original~URL: /elsewhere\r\n", ""),
            post("/public/a", "X-Method: a-DELETE\r\n", ""),
            // Content of every request that may change something.
            request("PUT", "/public/a", FORM, "_method=DELETE"),
            // A value behind an empty line.
            post("/public/a", PARTS, &part("\"_method\"", "\r\nDELETE")),
            // Requests within requests.
            post("/public/batch", MIXED, &batch("DELETE /public/x HTTP/1.1")),
            post("/public/batch", MIXED, &batch("PUT /elsewhere HTTP/1.1")),
            post("/public/batch", MIXED, &batch("delete x")),
            post("/public/batch", "Content-Type: application/http\r\n", "DELETE /public/x HTTP/1.1\r\n\r\n"),
            post("/public/$batch", JSON, "{\"requests\":[{\"id\":\"1\",\"method\":\"DELETE\",\"url\":\"/a\"}]}"),
            post("/public/a", &format!("{FORM}X: y\r\n"), &format!("a={}&_method=delete", "x".repeat(9000))),
        ];
        let requests: Vec<String> = good.iter().chain(&bad).cloned().collect();
        let (arrived, outcome) = sent(lab, &origin, &rules, &requests);
        let wanted: Vec<&str> = good.iter().map(|one| one.lines().next().expect("a line")).collect();
        assert_eq!(arrived, wanted, "{outcome}");
        assert!(outcome.stderr.contains("`_method` in the query asks for DELETE"), "{outcome}");
        assert!(outcome.stdout.contains("`_method` in the form asks for DELETE"), "{outcome}");

        // Behind what can be read whole: it never arrives whole.
        let late = post("/public/late", FORM, &format!("a={filler}&_method=delete"));
        let chunk = "_method=DELETE";
        let chunked = format!(
            "POST /public/chunked HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n{FORM}Transfer-Encoding: chunked\r\n\r\n{:x}\r\n{chunk}\r\n0\r\n\r\n",
            chunk.len()
        );
        let before = origin.arrivals().len();
        let (_, outcome) = sent(lab, &origin, &rules, &[late, chunked]);
        for arrival in origin.arrivals().iter().skip(before) {
            assert!(!arrival.bytes.contains("_method"), "{outcome}");
        }

        // Where every method is allowed, it means nothing new.
        let (arrived, outcome) = sent(lab, &origin, &[ANY], &[post("/public/a", FORM, "_method=DELETE")]);
        assert_eq!(arrived.len(), 1, "{outcome}");
    }

    fn no_part_has_a_name_that_only_some_read(lab) {
        let origin = Origin::start(8080);
        let rules = [("-a", "POST,PUT http://127.0.0.1:8080/public/**")];
        let content = |head: &str| format!("--b\r\n{head}\r\n\r\nDELETE\r\n--b--\r\n");
        let post = |content: &str| request("POST", "/public/a", PARTS, content);
        const NAMED: &str = "Content-Disposition: form-data; name=";
        let good = [
            // As curl, browsers, .NET, Go and Google's clients write parts.
            content(&format!("{NAMED}\"a b\"; filename=\"c.txt\"\r\nContent-Type: text/plain")),
            content(&format!("{NAMED}\"\u{e4}%22\"; filename=\"\u{fc} (1).txt\"")),
            content(&format!("{NAMED}a; filename=\"=?utf-8?B?w6RhLnR4dA==?=\"; filename*=utf-8''%C3%A4a.txt")),
            content(&format!("{NAMED}\"a\\\"b\"; filename=\"c\\\\d\\\"e\"")),
            "--b\nContent-Type: application/json\nMIME-Version: 1.0\n\n{}\n--b\nContent-Type: text/plain\nMIME-Version: 1.0\n\nx\r\n\r\n\n--b--".to_owned(),
            String::new(),
        ];
        let pad = "A".repeat(4100);
        let bad = [
            // Lines that some pass over, or take for the end of the head.
            content(&format!("{NAMED}\"_method\"\r\n \r\nPOST")),
            content(&format!("{NAMED}\"_method\"\r\n\t\r\nPOST")),
            content(&format!("{NAMED}\"_method\"\r\n\u{b}\r\nPOST")),
            content(&format!("{NAMED}\"_method\"\r\n\u{c}\r\nPOST")),
            content(&format!("{NAMED}\"_method\"\r\nX: a\n\nPOST")),
            content("Content-Disposition: form-data;\r\nname=\"_method\""),
            content(&format!("{NAMED}\"_met\r\nhod\"")),
            // Lines without end.
            content(&format!("Content-Disposition: form-data; pad=\"{pad}\"; name=\"_method\"")),
            content(&format!("Content-Disposition: form-data;{}name=\"_method\"", " ".repeat(4100))),
            // Words in a coding (RFC 2047).
            content(&format!("{NAMED}\"=?UTF-8?B?X21ldGhvZA==?=\"")),
            content(&format!("{NAMED}\"=?UTF-8?Q?=5Fmet?= =?UTF-8?Q?hod?=\"")),
            // Names of fields that some find within a line.
            content(&format!("X-{NAMED}\"_method\"")),
            content(&format!("x {NAMED}\"_method\"")),
            content(&format!(": {NAMED}\"_method\"")),
            content("X-Content-ID: _method"),
            // Before the first boundary, within a line, and where only some see the end of a head.
            format!(": {NAMED}\"_method\"\r\n\r\nDELETE\r\n--b--\r\n"),
            content(&format!("{NAMED}\"a\"\r\n\r\nx--b\r\nx {NAMED}\"_method\"")),
            content(&format!("{NAMED}\"a\"\r\n\r\nx\r\n--b\nX: y\n\n: {NAMED}\"_method\"")),
        ];
        let requests: Vec<String> = good.iter().chain(&bad).map(|content| post(content)).collect();
        let (arrived, outcome) = sent(lab, &origin, &rules, &requests);
        assert_eq!(arrived.len(), good.len(), "{arrived:?} {outcome}");
        assert!(outcome.stdout.contains("in the form cannot be read"), "{outcome}");
        // Where every method is allowed, each may say what it likes.
        let requests: Vec<String> = bad.iter().map(|content| post(content)).collect();
        let (arrived, outcome) = sent(lab, &origin, &[ANY], &requests);
        assert_eq!(arrived.len(), bad.len(), "{arrived:?} {outcome}");
    }

    fn no_json_hides_a_member_from_the_rules(lab) {
        let origin = Origin::start(8080);
        let rules = [("-a", "POST,PUT http://127.0.0.1:8080/public/**")];
        let post = |target: &str, kind: &str, content: &str| request("POST", target, &format!("Content-Type: {kind}\r\n"), content);
        let frame = |content: &str| {
            let length = u32::try_from(content.len()).expect("a length").to_be_bytes();
            format!("\0{}{content}", length.map(char::from).iter().collect::<String>())
        };
        let good = [
            post("/public/1", "application/json", ""),
            post("/public/2", "application/json", "{\"a\":[1,-2.5e3,true,null,\"\\u00e4\\/\"],\"b\":{}}\n"),
            post("/public/3", "application/json", "{\"a\":NaN,\"b\":[Infinity,-Infinity]}"),
            post("/public/4", "application/x-ndjson", "{\"a\":1}\n{\"a\":2}\n"),
            post("/public/5", "application/json-seq", "\u{1e}{\"a\":1}\n\u{1e}{\"a\":2}\n"),
            post("/public/6", "application/connect+json", &frame("{\"a\":1}")),
            post("/public/7", "application/grpc-web+json", &frame(&format!("{{\"a\":\"{}\"}}", "x".repeat(100)))),
            post("/public/8", "application/vnd.api+json; charset=utf-8", "\u{feff}{\"a\":1}"),
            // Of no type: a script.
            request("POST", "/public/9", "", "#!/bin/sh\n[ -e x ] && exit"),
        ];
        let documents = [
            "{/*\"*/\"_method\":\"DELETE\"}", "{//\"\n\"_method\":\"DELETE\"}", "{#\"\n\"_method\":\"DELETE\"}",
            "{\"\\_method\":\"DELETE\"}", "{\"\\x5fmethod\":\"DELETE\"}", "{'_method':'DELETE'}", "{_method:'DELETE'}",
            "{\"_method\":'DELETE'}", "{\"_method\":DELETE}", "{\"a\":\"b\" \"_method\":\"DELETE\"}",
            "{\"a\"=\"b\";\"_method\"=\"DELETE\"}", "{\"a\":'\"',\"_method\":\"DELETE\"}",
        ];
        let mut bad: Vec<String> = documents.iter().map(|document| post("/public/a", "application/json", document)).collect();
        for kind in ["application/vnd.api+json", "application/json5", "text/x-json", "application/connect+json"] {
            bad.extend(documents.iter().map(|document| post("/public/a", kind, document)));
        }
        bad.push(post("/public/$batch", "application/json", "{\"requests\":[{/*\"*/\"method\":\"DELETE\"}]}"));
        let requests: Vec<String> = good.iter().chain(&bad).cloned().collect();
        let (arrived, outcome) = sent(lab, &origin, &rules, &requests);
        let wanted: Vec<&str> = good.iter().map(|one| one.lines().next().expect("a line")).collect();
        assert_eq!(arrived, wanted, "{outcome}");
        assert!(outcome.stdout.contains("no JSON in the content cannot be read"), "{outcome}");
        let (arrived, outcome) = sent(lab, &origin, &[ANY], &bad);
        assert_eq!(arrived.len(), bad.len(), "{outcome}");
    }

    fn a_stricter_word_is_for_every_reading_of_its_path(lab) {
        let origin = Origin::start(8080);
        let file = lab.directory.join("stricter.toml");
        let policy = "allow = [\n  { rule = \"http://127.0.0.1:8080\", inspect = \"off\" },\n  { rule = \"http://127.0.0.1:8080/upload/**\", inspect = \"block\" },\n]\n";
        fs::write(&file, policy).expect("a policy");
        let rules = [("-p", &*file.to_string_lossy())];
        // The example of its documentation, and of nobody's account.
        let content = ["-----BEGIN RSA ", "PRIVATE KEY-----\nMIIEpAIBAAKCAQEA7bq9QkVv3mYc1Jt0Xf2p8Wn5uR4sLd6Zh\n-----END RSA PRIVATE KEY-----\n"].concat();
        let post = |target: &str| request("POST", target, "", &content);
        let (arrived, outcome) = sent(lab, &origin, &rules, &[post("/elsewhere")]);
        assert_eq!(arrived.len(), 1, "nobody looks: {outcome}");
        let targets = ["/upload/a", "/UPLOAD/a", "//upload/a", "//x/upload/a", "/x/../upload/a", "/%75pload/a"];
        let requests: Vec<String> = targets.iter().map(|target| post(target)).collect();
        let (arrived, outcome) = sent(lab, &origin, &rules, &requests);
        assert_eq!(arrived, Vec::<String>::new(), "{outcome}");
    }

    fn a_budget_counts_every_reading_of_its_path_and_query(lab) {
        let origin = Origin::start(8080);
        let file = lab.directory.join("counted.toml");
        let policy = "allow = [\n  \"http://127.0.0.1:8080\",\n  { rule = \"POST http://127.0.0.1:8080/upload/**\", budget = \"1K\" },\n  { rule = \"http://127.0.0.1:8080?bulk=*\", budget = \"1K\" },\n]\n[inspect]\nmode = \"off\"\n";
        fs::write(&file, policy).expect("a policy");
        let rules = [("-p", &*file.to_string_lossy())];
        let content = "a".repeat(5000);
        let post = |target: &str| request("POST", target, "", &content);
        let (arrived, outcome) = sent(lab, &origin, &rules, &[post("/elsewhere"), post("/x?bulky=1"), post("/uploads/a")]);
        assert_eq!(arrived.len(), 3, "nothing is counted: {outcome}");
        let targets = [
            "/upload/a", "/UPLOAD/a", "//upload/a", "/upload;x/a", "//x/upload/a", "/upload%2fa", "/%75pload/a", "/x/..%2fupload/a",
            "/x?bulk=1", "/x?BULK=1", "/x?bulk[]=1", "/x?+bulk=1", "/x?a=1;bulk=1",
        ];
        let requests: Vec<String> = targets.iter().map(|target| post(target)).collect();
        let (arrived, outcome) = sent(lab, &origin, &rules, &requests);
        assert_eq!(arrived, Vec::<String>::new(), "{outcome}");
    }

    fn no_field_takes_a_request_to_a_second_target_that_is_not_allowed(lab) {
        let origin = Origin::start(8080);
        let with = |method: &str, field: &str| request(method, "/pub/a", &format!("{field}\r\n"), "");
        let arrive = |rules: Rules<'_>, good: &[(&str, &str)], bad: &[(&str, &str)]| {
            for (cases, count) in [(good, good.len()), (bad, 0)] {
                let requests: Vec<String> = cases.iter().map(|(method, field)| with(method, field)).collect();
                let (arrived, outcome) = sent(lab, &origin, rules, &requests);
                assert_eq!(arrived.len(), count, "{rules:?} {cases:?}: {arrived:?} {outcome}");
            }
        };
        let denied = [ANY, ("-d", "* */admin/**")];
        arrive(&denied, &[
            ("COPY", "Destination: /pub/b"), ("MOVE", "Destination: http://127.0.0.1:8080/pub/b"),
            ("PUT", "x-amz-copy-source: /bucket/b"), ("PUT", "X-Amz-Copy-Source-Range: bytes=0-9"),
            ("GET", "X-Forwarded-Proto: https"), ("GET", "X-Forwarded-Port: 443"), ("GET", "X-Forwarded-For: 192.0.2.1"),
            ("GET", "Referer: http://127.0.0.1:8080/admin/x"), ("GET", "HX-Current-URL: http://127.0.0.1:8080/admin/x"),
            ("POST", "X-Hook-Url: https://b.example/done"), ("GET", "X-Request-Path: none"),
        ], &[
            ("COPY", "Destination: /admin/b"), ("MOVE", "Destination: http://127.0.0.1:8080/admin/b"),
            ("MOVE", "destination: HTTP://127.0.0.1:8080/pub/../ADMIN/b"), ("COPY", "Destination: /%61dmin/b"),
            ("COPY", "Destination: //127.0.0.1:8080/admin/b"), ("COPY", "Destination: ../admin/b"),
            ("COPY", "Destination: http://b.example/pub/b"), ("COPY", "Destination: http://127.0.0.1:8081/pub/b"),
            ("COPY", "Destination: http://u@127.0.0.1:8080/pub/b"), ("COPY", "Destination: /pub/\u{e4}"),
            ("PUT", "x-amz-copy-source: /admin/b"), ("PUT", "x-amz-copy-source: admin/b"), ("PUT", "x-amz-copy-source: bucket/admin/b"),
            ("PUT", "x-ms-copy-source: http://127.0.0.1:8080/admin/b"), ("PUT", "X-Copy-From: /admin/b"),
            ("GET", "X-Forwarded-Proto: http://127.0.0.1/admin/x?"), ("GET", "Forwarded: proto=\"http://a/admin/x?\""),
            ("GET", "SCRIPT_NAME: /pub"), ("GET", "X-Script-Name: /pub"), ("GET", "X-Matched-Path: /admin/x"),
            ("GET", "X-Invoke-Path: /admin/x"), ("GET", "X-Envoy-Original-Path: /admin/x"), ("GET", "X-Forwarded-Prefix: /admin"),
            ("GET", "SCRIPT_NAME: pub"), ("GET", "X-Forwarded-Prefix: pub"), ("GET", "X_Forwarded_Path: admin"), ("GET", "PATH_INFO: admin"),
            ("GET", "X-Original-Pathname: /admin"), ("GET", "X_Request_Uri: /admin/x"), ("GET", "X-Forwarded-Port: 80/admin"),
        ]);
        let public = [("-a", "http://127.0.0.1:8080/pub/**")];
        arrive(&public, &[("COPY", "Destination: /pub/b")], &[
            ("COPY", "Destination: /b"), ("COPY", "Destination: http://127.0.0.1:8080/b"), ("PUT", "x-amz-copy-source: /b/c"),
        ]);
        // What only another method may do there.
        arrive(&[ANY, ("-d", "PUT */admin/**")], &[("PUT", "x-amz-copy-source: /admin/b")], &[("COPY", "Destination: /admin/b")]);
        // Where every path is as good as another, a field says nothing new.
        arrive(&[ANY], &[("COPY", "Destination: /admin/b"), ("GET", "X-Matched-Path: /admin"), ("COPY", "Destination: ../b")], &[]);
    }

    fn no_character_set_hides_a_key_from_the_rules(lab) {
        let origin = Origin::start(8080);
        let kind = |kind: &str| format!("Content-Type: {kind}\r\n");
        let target = "/x?%2BAGEAZABtAGkAbg-=1";
        let rules = [ANY, ("-d", "http://127.0.0.1:8080?admin=*")];
        let good = [
            request("GET", target, "", ""),
            request("POST", target, &kind("application/json; charset=utf-8"), ""),
            request("POST", target, &kind("text/plain; charset=ISO-8859-1"), ""),
            request("POST", "/x", &kind("text/plain; charset=utf-7"), ""),
        ];
        let (arrived, outcome) = sent(lab, &origin, &rules, &good);
        assert_eq!(arrived.len(), good.len(), "{arrived:?} {outcome}");
        let sets = ["utf-7", "\"UTF-7\"", "utf-16", "utf-32be", "ibm037", "unicode_escape", "utf-8; charset=utf-7", "hz"];
        let bad: Vec<String> = sets.iter().map(|set| request("POST", target, &kind(&format!("text/plain; charset={set}")), "")).collect();
        let (arrived, outcome) = sent(lab, &origin, &rules, &bad);
        assert_eq!(arrived, Vec::<String>::new(), "{outcome}");
        let allowing = [("-a", "http://127.0.0.1:8080/x?role=user")];
        let hidden = request("POST", "/x?role=user", &kind("text/plain; charset=utf-7"), "");
        let (arrived, outcome) = sent(lab, &origin, &allowing, &[hidden]);
        assert_eq!(arrived, Vec::<String>::new(), "{outcome}");
    }

    fn what_any_change_of_case_makes_a_denied_path_does_not_arrive(lab) {
        let origin = Origin::start(8080);
        only(lab, &origin, &[ANY, ("-d", "* */secret/**"), ("-d", "* */admin/**"), ("-d", "http://127.0.0.1:8080?sign=*")], &["/x"], &[
            "/%C5%BFecret/x", "/adm%C4%B1n/x", "/adm%C4%B0n/x", "/SECRET/x", "/x?%C5%BFign=1", "/x?s%C4%B1gn=1",
        ]);
    }
}
