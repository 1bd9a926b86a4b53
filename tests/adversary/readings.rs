//! Targets and forms that servers and frameworks read otherwise than they are
//! written: a rule is about every reading, so nothing arrives that somebody would
//! take for what is denied, or for what no rule allows.

use std::fs;

use outgate_harness::origin::Origin;
use outgate_harness::{Identity, Lab, Outcome, lab_tests};

/// A request for this target, with these fields and content.
pub(crate) fn request(method: &str, target: &str, fields: &str, content: &str) -> String {
    let length = content.len();
    format!(
        "{method} {target} HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n{fields}Content-Length: {length}\r\n\r\n{content}"
    )
}

fn get(target: &str) -> String {
    request("GET", target, "", "")
}

/// What a sandbox is told.
pub(crate) type Rules<'r> = &'r [(&'r str, &'r str)];

/// Sends each request on a connection of its own; the lines of those that arrived.
pub(crate) fn sent(
    lab: &Lab,
    origin: &Origin,
    rules: Rules<'_>,
    requests: &[impl AsRef<[u8]>],
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

pub(crate) const ANY: (&str, &str) = ("-a", "http://127.0.0.1:8080");

lab_tests! {
    fn what_a_server_takes_for_a_denied_path_does_not_arrive(lab) {
        let origin = Origin::start(8080);
        only(lab, &origin, &[ANY, ("-d", "* */admin/**")], &[
            "/", "/x/y", "/administer", "//x/y", "/?a=/admin/keys", "/?/public/keys", "/x/?/admin/keys",
        ], &[
            // A path in the query, as CodeIgniter and its like take it.
            "/?/admin/keys", "/index.php?/admin/keys", "/?/Admin/keys&a=1", "/?/admin/keys?a=1", "/?//admin/keys", "/?/x/../%61dmin/keys",
            "/admin/keys", "//admin/keys", "//x/admin/keys", "///x/admin/keys", "//x:80/admin/keys", "//u@x/admin/keys",
            "/%2fx/admin/keys", "/x/../admin/keys", "/ADMIN/keys", "/admin;a=b/keys", "/a%64min/keys", "/x/%2e%2e/admin/keys",
            "/app.wsgi/admin/keys", "/cgi-bin/app/admin/keys", "/admin.x/keys", "/admin+/keys", "/admin::$DATA/keys", "/ADMIN%2F../",
            "/%FFadmin/keys", "/adm%E2%80%8Bin/keys", "/adm%EF%B8%8Fin/keys", "/%20admin/keys", "/x/..//+admin/keys", "/pub/.%FF./admin/keys", "/admin.a.b/keys", "/admin..x", "/admin%25FF/keys",
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

    fn what_a_server_takes_for_a_part_of_the_query_does_not_arrive(lab) {
        let origin = Origin::start(8080);
        // nginx hands a decoded path on as text, Apache puts a part of it into a query, programs
        // in Java divide a query that is decoded already.
        let denied = [ANY, ("-d", "http://127.0.0.1:8080?admin=*")];
        only(lab, &origin, &denied, &["/x%3Fa=1", "/x?a=1%26b=2", "/x?to=http%3A%2F%2Fx%3Fa%3D1", "/admin=1"], &[
            "/x%3Fadmin=1", "/x%253Fadmin=1", "/u/x%26admin=1", "/u/x&admin=1", "/u/x%26admin=1/y", "/u/x;ADMIN=1",
            "/x?a=1%26admin=1", "/x?admin%3D1", "/x?a=1%2526admin=1", "/x?a=1%3B%61dmin=1", "/x%3Fa=1%26admin?b=2",
        ]);
        let allowed = [("-a", "http://127.0.0.1:8080/**?role=user")];
        only(lab, &origin, &allowed, &["/x?role=user&to=http%3A%2F%2Fx%3Fa%3D1%26b%3D2", "/x&y?role=user"], &[
            "/x?role=user&a=1%26role=admin", "/x%3Frole=admin%26a?role=user", "/x&role=admin?role=user", "/x%3Frole=user",
        ]);
        let (post, methods) = (|target: &str| request("POST", target, "", ""), [("-a", "POST http://127.0.0.1:8080")]);
        let requests = ["/x%3F_method=DELETE", "/x?a=1%26_method=DELETE", "/x&_method=DELETE/y", "/x%253F%2526_method%253DDELETE"].map(post);
        let (arrived, outcome) = sent(lab, &origin, &methods, &requests);
        assert_eq!(arrived, Vec::<String>::new(), "{outcome}");
        assert!(outcome.stderr.contains("`_method` in the query asks for DELETE"), "{outcome}");
        let (arrived, outcome) = sent(lab, &origin, &methods, &["/x%3F_method=POST", "/x?a=1%26method=fast"].map(post));
        assert_eq!(arrived.len(), 2, "{outcome}");
    }

    fn a_denied_file_is_not_fetched_without_its_name(lab) {
        let origin = Origin::start(8080);
        let denied = [ANY, ("-d", "http://127.0.0.1:8080/secret/index.html"), ("-d", "http://127.0.0.1:8080/key.html"), ("-d", "GET http://127.0.0.1:8080/admin/**")];
        only(lab, &origin, &denied, &["/secret/x", "/keys", "/"], &[
            "/secret/", "/secret", "/SECRET/;x", "/secret%2F", "/secret/index", "/key", "/key/", "/%6bey",
        ]);
        let requests = [request("HEAD", "/admin/keys", "", ""), request("HEAD", "/secret/", "", "")];
        let (arrived, outcome) = sent(lab, &origin, &denied, &requests);
        assert_eq!(arrived, Vec::<String>::new(), "{outcome}");
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
        // What is taken away on the way.
        arrive(&[ANY, ("-d", "DELETE */admin/**")], &[("MOVE", "Destination: /b"), ("COPY", "Destination: /admin/b\r\nOverwrite: F")], &[
            ("COPY", "Destination: /admin/b"), ("COPY", "Destination: /admin/b\r\nOverwrite: T"), ("COPY", "Destination: /admin/b\r\nOverwrite: F\r\nOverwrite: T"), ("COPY", "Destination: /admin/b\r\nOverwrite: F\r\nConnection: overwrite"), ("PUT", "X-Ms-Rename-Source: /admin/b"),
        ]);
        arrive(&[ANY, ("-d", "DELETE */pub/**")], &[("COPY", "Destination: /b")], &[("MOVE", "Destination: /b")]);
        // Where every path is as good as another, a field says nothing new.
        arrive(&[ANY], &[("COPY", "Destination: /admin/b"), ("GET", "X-Matched-Path: /admin"), ("COPY", "Destination: ../b")], &[]);
    }

    fn a_second_target_avoids_no_stricter_word_and_no_budget(lab) {
        let origin = Origin::start(8080);
        let at = "http://127.0.0.1:8080";
        let with = |method: &str, target: &str, field: &str| request(method, target, &format!("{field}\r\n"), "");
        let good = [
            with("COPY", "/a", "Destination: /b"),
            with("PUT", "/a", "x-amz-copy-source: /bucket/b"),
            // What is weighed as closely already.
            with("COPY", "/upload/a", "Destination: /upload/b"),
            with("GET", "/private/a", "X-Copy-From: /private/b"),
        ];
        let bad = [
            with("COPY", "/a", "Destination: /upload/b"),
            with("MOVE", "/a", "Destination: http://127.0.0.1:8080/UPLOAD/b"),
            with("PUT", "/a", "X-Ms-Rename-Source: /upload/b"),
            with("PUT", "/a", "x-amz-copy-source: /private/b"),
            with("PUT", "/a", "x-amz-copy-source: bucket/private/b"),
            with("PUT", "/a", "X-Copy-From: private/b"),
        ];
        let requests: Vec<String> = good.iter().chain(&bad).cloned().collect();
        for (lax, close) in [("inspect = \"off\"", "inspect = \"block\""), ("inspect = \"block\"", "budget = \"1K\"")] {
            let file = lab.directory.join("weighed.toml");
            let policy = format!(
                "allow = [\n  {{ rule = \"{at}\", {lax} }},\n  {{ rule = \"{at}/upload/**\", {close} }},\n  {{ rule = \"GET {at}/private/**\", {close} }},\n]\n"
            );
            fs::write(&file, policy).expect("a policy");
            let rules = [("-p", &*file.to_string_lossy())];
            let (arrived, outcome) = sent(lab, &origin, &rules, &requests);
            let wanted: Vec<&str> = good.iter().map(|one| one.lines().next().expect("a line")).collect();
            assert_eq!(arrived, wanted, "{close} {outcome}");
            assert!(outcome.stderr.contains("names a second target, which the rules inspect more strictly"), "{outcome}");
        }
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
