//! Content and fields that ask for another method than their request, or for further
//! requests: whatever some program takes for that is judged as it, and what nobody can
//! read does not arrive where it could matter.

use std::fs;

use outgate_harness::lab_tests;
use outgate_harness::origin::Origin;

use crate::readings::{ANY, Rules, request, sent};

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
            post("/public/5f", "Content-Type: text/plain\r\nX-Hop: 1\r\nConnection: X-Hop\r\n", "_method=DELETE"),
            post("/public/5b", FORM, "payment_method=card&method=search&verb=run"),
            post("/public/5c", JSON, "{\"jsonrpc\":\"2.0\",\"method\":\"DELETE\"}"),
            post("/public/5d", "Content-Type: text/plain\r\n", "{\"_method\":\"PUT\",\"a\":{\"_method\":\"DELETE\"}}"),
            post("/public/5e", PARTS, &part("\"file\"; filename=\"a.jsonl\"", "{\"custom_id\":\"1\",\"method\":\"DELETE\",\"url\":\"/v1/x\",\"body\":{}}")),
            post("/public/batches", JSON, "{\"requests\":[{\"custom_id\":\"1\",\"params\":{\"tools\":[{\"properties\":{\"method\":{\"enum\":[\"DELETE\"]},\"url\":{}}}],\"input\":{\"method\":\"DELETE\",\"url\":\"/x\"}}}]}"),
            post("/public/rpc/batch", JSON, "[{\"jsonrpc\":\"2.0\",\"method\":\"x\",\"params\":{\"path\":\"/x\",\"method\":\"DELETE\"}}]"),
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
            post("/public/a", FORM, "_method=\r\nDELETE"),
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
            // A type that ends at this hop.
            post("/public/a", "Content-Type: text/plain\r\nConnection: content-type\r\n", "_method=DELETE"),
            post("/public/a", "Content-Type: text/plain\r\nConnection: keep-alive, Content-Type\r\n", "a=1&_method=DELETE"),
            post("/public/a", "Content-Type: application/x-www-form-urlencoded; charset=ibm037\r\n", "a=1"),
            post("/public/a", "Content-Type: application/x-www-form-urlencoded; charset=utf-16be\r\n", "a=1"),
            post("/public/a", "Content-Type: application/x-www-form-urlencoded\r\nContent-Encoding: gzip\r\n", "a=1"),
            post("/public/a", "Content-Encoding: gzip\r\n", "a=1"),
            post("/public/a", JSON, "{\"a\":[{}],\"_method\":\"DELETE\"}"),
            post("/public/a", "", "{\"_method\":\"DELETE\"}"),
            post("/public/a", "Content-Type: application/vnd.api+json\r\n", "{\"\\u005fMETHOD\":\"delete\"}"),
            post("/public/a", "Content-Type: application/json\r\nContent-Encoding: gzip\r\n", "no matter"),
            post("/public/a", "Content-Type: application/json\r\nContent-Encoding: br\r\n", "no matter"),
            post("/public/a", "Content-Type: application/json\r\nContent-Encoding: deflate\r\n", "{\"_method\":\"DELETE\"}"),
            post("/public/a", "Content-Type: text/plain\r\n", "{\"_method\":\"DELETE\"}"),
            post("/public/a", "Content-Type: application/octet-stream\r\n", " {\"_method\":\"DELETE\"}"),
            post("/public/a", JSON, "{\"compositeRequest\":[{\"method\":\"DELETE\",\"url\":\"/public/x\",\"referenceId\":\"r\"}]}"),
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
        const NAMED: &str = "Content-Disposition: form-data; name=";
        let origin = Origin::start(8080);
        let rules = [("-a", "POST,PUT http://127.0.0.1:8080/public/**")];
        let content = |head: &str| format!("--b\r\n{head}\r\n\r\nDELETE\r\n--b--\r\n");
        let post = |content: &str| request("POST", "/public/a", PARTS, content);
        let good = [
            // As curl, browsers, .NET, Go and Google's clients write parts.
            content(&format!("{NAMED}\"a b\"; filename=\"c.txt\"\r\nContent-Type: text/plain")),
            content(&format!("{NAMED}\"\u{e4}%22\"; filename=\"\u{fc} (1).txt\"")),
            content(&format!("{NAMED}a; filename=\"=?utf-8?B?w6RhLnR4dA==?=\"; filename*=utf-8''%C3%A4a.txt")),
            content(&format!("{NAMED}\"a\\\"b\"; filename=\"c\\\\d\\\"e\"")),
            // Names of files, whatever they hold, and names in a coding that are no key.
            content(&format!("{NAMED}\"file\"; filename=\"C:\\temp\\x.txt\"")),
            content(&format!("{NAMED}\"file\"; filename=\"page?id=?1.html\"")),
            content(&format!("{NAMED}\"file\"; filename=\"_method.py\"")),
            content(&format!("{NAMED}\"file\"; filename=\"http-method.txt\"")),
            content(&format!("{NAMED}file; filename=_method.py; filename*=utf-8''_method.py")),
            content(&format!("{NAMED}a b")),
            content(&format!("{NAMED}\"=?utf-8?B?w6Q=?=\"")),
            // As Google's client for Python and OData's write lines, whatever a file holds.
            "--b\nContent-Type: application/json\nMIME-Version: 1.0\n\n{\"name\": \"a\"}\n--b\nContent-Type: text/plain\nMIME-Version: 1.0\n\nThe fields content-disposition and content-id.\r\n\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nmethod=DELETE\n--b--".to_owned(),
            "--b\nContent-Type: multipart/mixed; boundary=c\n\n--c\nContent-Type: application/http\nContent-Transfer-Encoding: binary\nContent-ID: 1\n\nPOST /public/x HTTP/1.1\nContent-Type: application/json\n\n{}\n--c--\n--b--\n".to_owned(),
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
            // What stands in the name of a file for some.
            content("Content-Disposition: form-data; filename=\"a\\\"; name=_method; x=\"\""),
            content("Content-Disposition: form-data; name=\"a\"; filename=\"=?utf-8?Q?x=22;_name=3D_method?=\""),
            content(&format!("{NAMED}\"_met\\hod\"")),
            content(&format!("{NAMED}\"%5Fmethod\"")),
            content(&format!("{NAMED}\"=?utf-16?B?AF8AbQ==?=\"")),
            // A head that goes on for those who wait for CR LF twice.
            "--b\nContent-Type: text/plain\n\nContent-Disposition: form-data; name=\"_method\"\r\n\r\nDELETE\n--b--".to_owned(),
            "--b\nContent-Type: text/plain\n\nx\nContent-ID: _method\r\n\r\nDELETE\n--b--".to_owned(),
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

    fn the_requests_of_a_batch_are_judged_one_by_one(lab) {
        let origin = Origin::start(8080);
        let post = |target: &str, fields: &str, content: &str| request("POST", target, fields, content);
        let many = |first: &str| format!("--b\r\nContent-Type: application/http\r\n\r\n{first}\r\n\r\n--b\r\nContent-Type: application/http\r\n\r\nGET /x HTTP/1.1\r\n\r\n--b--\r\n");
        let items = |list: &str, method: &str, key: &str, target: &str| {
            format!("{{\"{list}\":[{{\"id\":\"1\",\"method\":\"{method}\",\"{key}\":\"{target}\"}}]}}")
        };
        let arrive = |rules: Rules<'_>, good: &[String], bad: &[String]| {
            let requests: Vec<String> = good.iter().chain(bad).cloned().collect();
            let (arrived, outcome) = sent(lab, &origin, rules, &requests);
            assert_eq!(arrived.len(), good.len(), "{rules:?} {arrived:?} {outcome}");
        };
        let padded = format!("--b\r\nContent-Type:{}application/http\r\n\r\nGET /admin/keys HTTP/1.1\r\n\r\n--b--\r\n", " ".repeat(4100));
        // Where rules look at paths alone.
        arrive(&[ANY, ("-d", "* */admin/**")], &[
            post("/batch", MIXED, &many("GET /y HTTP/1.1")),
            post("/$batch", JSON, &items("requests", "DELETE", "url", "/y")),
            post("/hooks", JSON, "{\"url\":\"/admin/keys\",\"method\":\"GET\"}"),
            post("/files", JSON, "{\"files\":[{\"path\":\"/admin/keys\",\"content\":\"x\"}],\"actions\":[{\"path\":\"/admin/keys\"}]}"),
            post("/y", "X-MS-Client-Request-Id: /admin/keys\r\nContent-Type: application/json; charset=utf-8\r\n", "{}"),
            post("/crawl", JSON, &items("requests", "GET", "url", "https://b.example/admin/keys")),
            post("/calls", JSON, &items("requests", "eth_call", "path", "/admin/keys")),
            post("/calls", JSON, "[{\"method\":\"GET\",\"url\":\"/admin/keys\"}] // not a batch"),
            post("/form", PARTS, &part("\"_method\"\r\n X: y", "DELETE")),
            // What is reported is not asked for.
            post("/v1/batch", JSON, "{\"batch\":[{\"event\":\"$pageview\",\"url\":\"/pricing\",\"properties\":{\"method\":\"GET\",\"path\":\"/admin/keys\"}}]}"),
            post("/v1/batches", JSON, "{\"requests\":[{\"custom_id\":\"1\",\"params\":{\"url\":\"/admin/keys\",\"method\":\"GET\"}}]}"),
        ], &[
            post("/batch", MIXED, &many("GET /admin/keys HTTP/1.1")),
            post("/batch", MIXED, &many("GET http://127.0.0.1:8080/admin/keys HTTP/1.1")),
            // A whole URL in the query of another, and one without a path.
            post("/batch", MIXED, &many("GET /admin/keys?to=http://127.0.0.1:8080/x HTTP/1.1")),
            post("/batch", MIXED, &many("GET admin/keys?to=http://b.example/ HTTP/1.1")),
            post("/batch", MIXED, &many("GET http://127.0.0.1:8080?/admin/keys HTTP/1.1")),
            post("/$batch", JSON, &items("requests", "GET", "url", "/admin/keys?to=http://b.example/x")),
            post("/$batch", JSON, &items("requests", "GET", "url", "admin/keys?to=http://127.0.0.1:8080/x")),
            post("/$batch", JSON, &items("requests", "GET", "url", "/admin/http://b.example/x")),
            // As `new URL(url, base)` has it.
            post("/$batch", JSON, &items("requests", "GET", "url", "http:/admin/keys")),
            post("/$batch", JSON, &items("requests", "GET", "url", "HTTP:admin/keys")),
            post("/$batch", JSON, &items("requests", "GET", "url", " \\u0009/ad\\tmin/keys")),
            post("/$batch", JSON, &items("requests", "GET", "url", "\\\\admin\\\\keys")),
            post("/$batch", JSON, "{\"requests\":[{\"url\":\"/ad\\nmin/keys\"}]}"),
            post("/batch", MIXED, &many("GET /admin/keys HTTP/1.1").replace("\r\n", "\n")),
            post("/batch", MIXED, &many("LINK /admin/keys")),
            post("/batch", MIXED, &padded),
            post("/batch", MIXED, &many("GET /y HTTP/1.1\r\nX-Original-URL: /admin/keys")),
            post("/batch", MIXED, &many("GET /y HTTP/1.1\r\nX-Forwarded-Prefix: /admin")),
            post("/batch", MIXED, &many("COPY /y HTTP/1.1\r\nDestination: /admin/keys")),
            post("/batch", &format!("{MIXED}Content-Encoding: gzip\r\n"), "no matter"),
            post("/$batch", JSON, &items("requests", "GET", "url", "/admin/keys")),
            post("/$batch", JSON, &items("requests", "GET", "url", "admin/keys")),
            post("/$batch", JSON, &items("requests", "GET", "url", "http:\\/\\/127.0.0.1:8080\\/admin\\/keys")),
            post("/admin/$batch", JSON, &items("requests", "GET", "url", "/keys")),
            post("/$batch", JSON, "[{\"method\":\"GET\",\"path\":\"/admin/keys\"}]"),
            post("/$batch", JSON, "{/*\"*/\"requests\":[{\"method\":\"GET\",\"path\":\"/admin/keys\"}]}"),
            post("/v1/all", JSON, &items("batch", "GET", "relative_url", "admin/keys")),
            post("/v1/all", JSON, &items("Operations", "GET", "uri", "/admin/keys")),
            // Addresses by other names, and without a method.
            post("/batch", JSON, &items("actions", "GET", "relative_path", "/admin/keys")),
            post("/batch", JSON, &items("requests", "GET", "href", "/admin/keys")),
            post("/batch", JSON, &items("requests", "GET", "endpoint", "/admin/keys")),
            post("/batch", JSON, &items("requests", "GET", "requestUri", "/admin/keys")),
            post("/batch", JSON, "{\"requests\":[{\"url\":\"/admin/keys\"}]}"),
            post("/batch", JSON, "[{\"relative_url\":\"admin/keys\"}]"),
            // As Asana, WordPress and Drupal take them.
            post("/api", JSON, "{\"data\":{\"actions\":[{\"relative_path\":\"/admin/keys\",\"method\":\"get\"}]}}"),
            post("/wp-json/batch/v1", JSON, "{\"requests\":[{\"path\":\"/admin/keys\",\"body\":{}}]}"),
            post("/subrequests", JSON, "[{\"requestId\":\"a\",\"uri\":\"/admin/keys\",\"action\":\"view\"}]"),
            post("/batch", JSON, &items("requests", "fetch", "url", "/admin/keys")),
            // What nobody here reads.
            post("/api", "Content-Type: application/json; charset=utf-7\r\n", "{\"requests\":[{\"+AG0-ethod\":\"GET\",\"url\":\"+AC8-admin/keys\"}]}"),
            post("/y", "X-MS-Original-URL: /admin/keys\r\n", ""),
            post("/y", "X-Accel-Mapping: /x=/admin\r\n", ""),
        ]);
        // Below a directory on the way to the batch.
        let composite = |url: &str| post("/data/v1/composite/batch", JSON, &items("batchRequests", "GET", "url", url));
        arrive(&[ANY, ("-d", "* */data/secret/**")], &[composite("v1/x")], &[composite("secret/x"), composite("/secret/x"), composite("v1/../secret/x")]);
        // Where they look at methods.
        arrive(&[("-a", "POST,PUT http://127.0.0.1:8080/public/**")], &[
            post("/public/batch", MIXED, &batch("PUT /public/x HTTP/1.1")),
            post("/public/batch", MIXED, &batch("POST /public/x HTTP/1.1\r\nX-Method: PUT")),
            post("/public/$batch", JSON, &items("requests", "PUT", "url", "/x")),
            post("/public/all", JSON, &items("requests", "PUT", "url", "/public/x?a=1")),
            // Telemetry, and a long token.
            post("/public/batch", JSON, "{\"batch\":[{\"type\":\"page\",\"url\":\"/pricing\",\"context\":{\"page\":{\"method\":\"DELETE\",\"path\":\"/x\"}}}]}"),
            post("/public/all", JSON, &items("requests", "PUT", "url", "/public/x").replace("\"id\"", &format!("\"headers\":{{\"Authorization\":\"Bearer {}\"}},\"id\"", "no-secret.".repeat(90)))),
        ], &[
            post("/public/batch", MIXED, &batch("POST /public/x HTTP/1.1\r\nX-HTTP-Method-Override: DELETE")),
            post("/public/batch", MIXED, &batch("POST /public/x HTTP/1.1\r\nX-Method: DELETE")),
            post("/public/batch", MIXED, &batch("POST /public/x?_method=DELETE HTTP/1.1")),
            post("/public/batch", MIXED, &batch("MERGE /public/y")),
            post("/public/batch", MIXED, &batch("UNHEARD /public/y")),
            post("/public/all", JSON, &items("requests", "DELETE", "url", "/public/x")),
            post("/public/all", JSON, &items("requests", "MERGE", "url", "/public/x")),
            post("/public/all", JSON, &items("requests", "PUT", "url", "/elsewhere/x")
                .replace("/elsewhere", "/../elsewhere")),
            post("/public/all", JSON, &items("requests", "POST", "url", "/x?_method=DELETE")),
            post("/public/all", JSON, "{\"requests\":[{\"method\":\"POST\",\"url\":\"/x\",\"headers\":{\"X-HTTP-Method\":\"DELETE\"}}]}"),
            post("/public/all", JSON, "{\"requests\":[{\"method\":\"POST\",\"url\":\"/x\",\"headers\":[\"X-HTTP-Method: DELETE\"]}]}"),
            post("/public/all", JSON, "{\"requests\":[{\"method\":\"POST\",\"url\":\"/x\",\"headers\":[{\"name\":\"X-HTTP-Method\",\"value\":\"DELETE\"}]}]}"),
            post("/public/all", JSON, "{\"requests\":[{\"method\":\"POST\",\"url\":\"/x\",\"body\":\"a=b c&_method=DELETE\"}]}"),
            post("/public/all", JSON, "{\"requests\":[{\"method\":\"POST\",\"url\":\"/x\",\"body\":{\"_method\":\"DELETE\"}}]}"),
        ]);
        // Where they look at neither.
        arrive(&[ANY], &[
            post("/batch", MIXED, &many("GET /admin/keys HTTP/1.1")),
            post("/$batch", JSON, "{/**/\"requests\":[]}"),
        ], &[]);
    }

    fn what_asks_for_another_request_avoids_no_stricter_word_and_no_budget(lab) {
        let origin = Origin::start(8080);
        let at = "http://127.0.0.1:8080";
        let post = |target: &str, fields: &str, content: &str| request("POST", target, fields, content);
        let item = |method: &str, target: &str| format!("{{\"requests\":[{{\"method\":\"{method}\",\"url\":\"{target}\"}}]}}");
        let good = [
            post("/a?_method=POST", "", ""),
            post("/a?_method=DELETE", FORM, "_method=DELETE"),
            post("/batch", JSON, &item("POST", "/x")),
            post("/batch", MIXED, &batch("DELETE /x HTTP/1.1")),
            // What counts already counts whatever it asks for.
            request("PUT", "/a?_method=POST", "", ""),
            post("/upload/a?_method=DELETE", "", ""),
        ];
        let bad = [
            post("/a?_method=PUT", "", ""),
            post("/a", FORM, "_method=PUT"),
            post("/a", PARTS, &part("\"_method\"", "PUT")),
            post("/a", JSON, "{\"_method\":\"PUT\"}"),
            post("/a", "X-Method: PUT\r\n", ""),
            post("/batch", JSON, &item("PUT", "/x")),
            post("/batch", JSON, &item("POST", "/upload/a")),
            post("/batch", JSON, &item("POST", "upload/a")),
            post("/batch", MIXED, &batch("PUT /x HTTP/1.1")),
            post("/batch", MIXED, &batch("POST /upload/a HTTP/1.1")),
            post("/batch", MIXED, &batch("POST /x HTTP/1.1\r\nX-Method: PUT")),
        ];
        let requests: Vec<String> = good.iter().chain(&bad).cloned().collect();
        for (lax, close) in [("inspect = \"off\"", "inspect = \"block\""), ("inspect = \"block\"", "budget = \"1K\"")] {
            let file = lab.directory.join("weighed.toml");
            let policy = format!(
                "allow = [\n  {{ rule = \"{at}\", {lax} }},\n  {{ rule = \"PUT {at}\", {close} }},\n  {{ rule = \"POST {at}/upload/**\", {close} }},\n]\n"
            );
            fs::write(&file, policy).expect("a policy");
            let rules = [("-p", &*file.to_string_lossy())];
            let (arrived, outcome) = sent(lab, &origin, &rules, &requests);
            let wanted: Vec<&str> = good.iter().map(|one| one.lines().next().expect("a line")).collect();
            assert_eq!(arrived, wanted, "{close} {outcome}");
            assert!(outcome.stdout.contains("inspect more strictly or count against another budget"), "{outcome}");
        }
    }

    fn any_method_that_is_known_or_named_is_one(lab) {
        let origin = Origin::start(8080);
        let post = |target: &str, fields: &str, content: &str| request("POST", target, fields, content);
        let arrive = |rules: Rules<'_>, good: &[String], bad: &[String]| {
            let requests: Vec<String> = good.iter().chain(bad).cloned().collect();
            let (arrived, outcome) = sent(lab, &origin, rules, &requests);
            assert_eq!(arrived.len(), good.len(), "{rules:?} {arrived:?} {outcome}");
        };
        arrive(&[("-a", "POST,MERGE http://127.0.0.1:8080/public/**")], &[
            post("/public/a?_method=MERGE", "", ""),
            post("/public/a", FORM, "x-http-method=merge"),
            // Words of another meaning.
            post("/public/a?method=search&verb=update", FORM, "method=search&payment_method=link&verb=report"),
            post("/public/a", "X-Search-Method: query\r\n", ""),
            post("/public/a", PARTS, &part("\"method\"", "search")),
        ], &[
            post("/public/a?_method=SEARCH", "", ""),
            post("/public/a?_method=VERSION-CONTROL", "", ""),
            post("/public/a?x-http-method=REPORT", "", ""),
            post("/public/a", FORM, "_http_method=QUERY"),
            post("/public/a", FORM, "x-http-method-override=baseline-control"),
            post("/public/a", PARTS, &part("\"X-HTTP-Method-Override\"", "UNLINK")),
            post("/public/a", JSON, "{\"X-HTTP-Method\":\"ACL\"}"),
            post("/public/a", "X-Method: TRACE\r\n", ""),
            post("/public/a", "X-HTTP-Verb: VERSION-CONTROL\r\n", ""),
        ]);
        // A method of nobody but the rules.
        arrive(&[ANY, ("-d", "REFUND http://127.0.0.1:8080/**")], &[
            post("/a?x-http-method=FETCH", "", ""),
            post("/a?_method=DELETE", "", ""),
        ], &[
            post("/a?_method=refund", "", ""),
            post("/a?x-http-method=REFUND", "", ""),
            post("/a", FORM, "http_method=refund"),
            post("/a", JSON, "{\"_httpMethod\":\"REFUND\"}"),
            post("/a", "X-Method: refund\r\n", ""),
            post("/a?method=refund", "", ""),
            post("/a", FORM, "verb=REFUND"),
            post("/a", PARTS, &part("\"method\"", "REFUND")),
        ]);
    }
}
