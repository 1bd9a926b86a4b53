//! Requests within requests, and what these ask for in turn: in their fields, their content
//! and their queries. Each is judged as if it were sent by itself, however deep it stands.

use outgate_harness::Lab;
use outgate_harness::lab_tests;
use outgate_harness::origin::Origin;

use crate::readings::{ANY, Rules, request, sent};

const FORM: &str = "Content-Type: application/x-www-form-urlencoded\r\n";
const JSON: &str = "Content-Type: application/json\r\n";
const MIXED: &str = "Content-Type: multipart/mixed; boundary=b\r\n";
const PARTS: &str = "Content-Type: multipart/form-data; boundary=b\r\n";

/// Rules that tell methods apart.
const METHODS: (&str, &str) = ("-a", "POST,PUT http://127.0.0.1:8080/public/**");

/// Rules that look at paths alone.
const PATHS: [(&str, &str); 2] = [ANY, ("-d", "* */admin/**")];

fn post(target: &str, fields: &str, content: &str) -> String {
    request("POST", target, fields, content)
}

/// A batch of these requests.
fn batch(requests: &[&str]) -> String {
    let parts = requests
        .iter()
        .map(|one| format!("--b\r\nContent-Type: application/http\r\n\r\n{one}\r\n"));
    format!("{}--b--\r\n", parts.collect::<String>())
}

/// A request of a batch, with content.
fn inner(target: &str, fields: &str, content: &str) -> String {
    let length = content.len();
    format!("POST {target} HTTP/1.1\r\n{fields}Content-Length: {length}\r\n\r\n{content}")
}

/// A batch of one such request.
fn one(target: &str, fields: &str, content: &str) -> String {
    post(
        "/public/batch",
        MIXED,
        &batch(&[&inner(target, fields, content)]),
    )
}

/// A list of one request in JSON, with these members beside its method.
fn item(members: &str) -> String {
    format!("{{\"requests\":[{{\"method\":\"POST\",{members}}}]}}")
}

/// A form of one part.
fn part(head: &str, value: &str) -> String {
    format!("--b\r\nContent-Disposition: form-data; {head}\r\n\r\n{value}\r\n--b--\r\n")
}

/// Text as a form holds it.
fn coded(text: &str) -> String {
    let coded = text.bytes().map(|byte| format!("%{byte:02x}"));
    coded.collect()
}

/// A text as JSON holds it.
fn quoted(text: &str) -> String {
    let text = text.replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{}\"", text.replace("\r\n", "\\r\\n"))
}

/// Asserts that the first arrive, and no other.
fn only(lab: &Lab, origin: &Origin, rules: Rules<'_>, (good, bad): (&[String], &[String])) {
    let requests: Vec<String> = good.iter().chain(bad).cloned().collect();
    let (arrived, outcome) = sent(lab, origin, rules, &requests);
    let wanted: Vec<&str> = good
        .iter()
        .map(|one| one.lines().next().expect("a line"))
        .collect();
    assert_eq!(arrived, wanted, "{rules:?}: {outcome}");
}

lab_tests! {
    fn the_content_of_a_request_in_a_part_asks_for_nothing_that_the_rules_do_not_allow(lab) {
        let origin = Origin::start(8080);
        let member = "{\"a\":1,\"_method\":\"DELETE\"}";
        let fields = "--c\r\nContent-Disposition: form-data; name=\"_method\"\r\n\r\nDELETE\r\n--c--\r\n";
        let changes = |request: &str| format!(
            "--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n--c\r\nContent-Type: application/http\r\n\r\n{request}\r\n--c--\r\n--b--\r\n"
        );
        let form = |content: &str| one("/public/x", FORM, content);
        let good = [
            form("a=1&b=DELETE"),
            form("_method=PUT"),
            one("/public/x", JSON, "{\"a\":\"--c\",\n\"method\":\"DELETE\"}\n"),
            one("/public/x", "Content-Type: text/plain\r\n", "--\r\n-- a comment\r\n--cc\r\n_method=DELETE"),
            one("/public/x", JSON, ""),
            one("/public/x", "Content-Type: multipart/form-data; boundary=c\r\n", &fields.replace("DELETE", "PUT")),
            post("/public/batch", MIXED, &batch(&[&inner("/public/x", JSON, "{\"a\":[1]}"), "PUT /public/y HTTP/1.1\r\nIf-Match: *\r\n", &inner("z", FORM, "a=1")])),
            post("/public/batch", MIXED, &changes(&inner("/public/x", JSON, "{\"a\":1}"))),
            post("/public/batch", MIXED, &changes(&inner("/public/x", JSON, "{\"a\":1}")).replace("\r\n", "\n")),
        ];
        let bad = [
            form("_method=DELETE"),
            form("a=1&%5fmethod=delete"),
            form("a=1&X-HTTP-Method-Override=DELETE"),
            // What only some take for a border.
            form("a=1\r\n--x\r\n\r\n&_method=DELETE"),
            form("a=1\n--b\r\n\r\n&_method=DELETE"),
            form("a=1\r\n--bb\r\n\r\n&_method=DELETE"),
            // What only some take for another request.
            form("a=1\r\nPUT /public/y HTTP/1.1\r\n\r\n&_method=DELETE"),
            one("/public/x", "", "_method=DELETE"),
            one("/public/x", JSON, member),
            one("/public/x", "Content-Type: text/plain\r\n", member),
            one("/public/x", JSON, "{/*\"*/\"_method\":\"DELETE\"}"),
            one("/public/x", "Content-Type:\r\n application/x-www-form-urlencoded\r\n", "_method=DELETE"),
            one("/public/x", "Content-Type: application/x-www-form-urlencoded; charset=utf-16\r\n", "a=1"),
            one("/public/x", &format!("{FORM}Content-Encoding: gzip\r\n"), "a=1"),
            one("/public/x", "Content-Type: multipart/form-data; boundary=c\r\n", fields),
            one("/public/x", "X-HTTP-Method-Override:\r\n DELETE\r\n", ""),
            one("/public/x", "A: b\r\n \r\nX-HTTP-Method-Override: DELETE\r\n", ""),
            post("/public/batch", MIXED, &changes(&inner("/public/x", FORM, "_method=DELETE"))),
            post("/public/batch", MIXED, &changes(&inner("/public/x", FORM, "_method=DELETE")).replace("\r\n", "\n")),
            post("/public/all", "Content-Type: application/http\r\n", &inner("/public/x", FORM, "_method=DELETE")),
        ];
        only(lab, &origin, &[METHODS], (&good, &bad));
        // Where every method is allowed there, each may say what it likes.
        let (arrived, outcome) = sent(lab, &origin, &[("-a", "http://127.0.0.1:8080/public/**")], &[form("_method=DELETE")]);
        assert_eq!(arrived.len(), 1, "{outcome}");
    }

    fn a_batch_in_a_batch_is_judged_by_its_requests(lab) {
        let origin = Origin::start(8080);
        let mixed = "Content-Type: multipart/mixed; boundary=c\r\n";
        let nested = |line: &str| batch(&[&format!("{line}\r\n")]).replace("--b", "--c");
        let items = |method: &str, url: &str| format!("{{\"requests\":[{{\"id\":\"1\",\"method\":\"{method}\",\"url\":\"{url}\"}}]}}");
        let deep = (0..6).fold("PUT /public/x HTTP/1.1\r\n".to_owned(), |request, level| {
            let border = format!("--b{level}");
            let content = batch(&[&request]).replace("--b\r", &format!("{border}\r")).replace("--b--", &format!("{border}--"));
            inner("/public/batch", &format!("Content-Type: multipart/mixed; boundary=b{level}\r\n"), &content)
        });
        only(lab, &origin, &[METHODS], (&[
            one("/public/batch", mixed, &nested("PUT /public/x HTTP/1.1")),
            one("/public/batch", mixed, &batch(&[&inner("/public/x", JSON, "{}"), &inner("/public/x", JSON, "{}"), "PUT /public/x HTTP/1.1\r\n"]).replace("--b", "--c")),
            one("/public/$batch", JSON, &items("PUT", "/public/x")),
            post("/public/batch", JSON, &item(&format!("\"url\":\"/public/batch\",\"body\":{}", items("PUT", "/x")))),
            post("/public/batch", JSON, &item("\"url\":\"/public/x\",\"body\":{\"hooks\":[{\"url\":\"/y\",\"method\":\"DELETE\"}]}")),
        ], &[
            one("/public/batch", mixed, &nested("DELETE /public/x HTTP/1.1")),
            one("/public/batch", mixed, &nested("POST /public/x HTTP/1.1\r\nX-HTTP-Method: DELETE")),
            one("/public/$batch", JSON, &items("DELETE", "/public/x")),
            one("/public/$batch", JSON, "{/**/}"),
            post("/public/batch", JSON, &item(&format!("\"url\":\"/public/batch\",\"body\":{}", items("DELETE", "/x")))),
            post("/public/batch", JSON, &item(&format!("\"body\":{},\"url\":\"/public/batch\"", items("DELETE", "/x")))),
            post("/public/batch", JSON, &item(&format!("\"url\":\"/public/batch\",\"body\":{}", quoted(&items("DELETE", "/x"))))),
            post("/public/batch", JSON, &item("\"body\":[{\"method\":\"DELETE\",\"url\":\"/x\"}],\"url\":\"/public/batch\"")),
            post("/public/batch", MIXED, &batch(&[&deep])),
        ]));
        only(lab, &origin, &PATHS, (&[
            one("/batch", mixed, &nested("GET /x HTTP/1.1")),
        ], &[
            one("/batch", mixed, &nested("GET /admin/x HTTP/1.1")),
            one("/batch", JSON, &items("GET", "/admin/x")),
            one("/v1/all", JSON, &items("GET", "/admin/x")),
            post("/batch", JSON, &item(&format!("\"url\":\"/batch\",\"body\":{}", items("GET", "/admin/x")))),
        ]));
    }

    fn the_content_of_a_request_in_json_asks_for_nothing_that_the_rules_do_not_allow(lab) {
        let origin = Origin::start(8080);
        let long = "x".repeat(9000);
        let all = |members: &str| post("/public/all", JSON, &item(members));
        let at = |body: &str| all(&format!("\"url\":\"/public/x\",\"body\":{}", quoted(body)));
        let fields = "--c\r\nContent-Disposition: form-data; name=\"_method\"\r\n\r\nDELETE\r\n--c--\r\n";
        only(lab, &origin, &[METHODS], (&[
            at("message=hello&link=https%3A%2F%2Fa.example%2F%3Fmethod%3Dfast"),
            at(&format!("a={long}&_method=PUT")),
            at("{\"status\":\"subscribed\",\"method\":\"DELETE\"}"),
            at("aGVsbG8gd29ybGQ="),
            at("--\r\nA letter, whose _method is none.\r\n"),
            all("\"url\":\"/public/x\",\"body\":{\"a\":[{\"_method\":\"DELETE\"}]}"),
            all("\"id\":1"),
            all("\"params\":{\"body\":\"_method=DELETE\"}"),
            // Lists of what is no request, whatever it holds.
            post("/public/v1", JSON, "{\"input\":[{\"role\":\"user\",\"data\":\"_method=DELETE\"}]}"),
        ], &[
            at("_method=DELETE"),
            at(&format!("a={long}&_method=DELETE")),
            at(&format!("_method={long}")),
            at("{\"_method\":\"DELETE\"}"),
            at(&format!("{{\"a\":\"{long}\",\"_method\":\"DELETE\"}}")),
            at(fields),
            all("\"body\":\"a=1&\\u005fmethod=\\u0044ELETE\",\"url\":\"/public/x\""),
            all("\"body\":{\"_method\":\"DELETE\"},\"url\":\"/public/x\""),
            all("\"payload\":\"_method=DELETE\",\"url\":\"/public/x\""),
            all("\"headers\":[[\"X-HTTP-Method\",\"DELETE\"]],\"url\":\"/public/x\""),
            all("\"headers\":{\"X-HTTP-Method\":[\"DELETE\"]},\"url\":\"/public/x\""),
            // Without an address.
            all("\"body\":\"_method=DELETE\""),
            all(&format!("\"body\":\"a={long}&_method=DELETE\"")),
            all("\"body\":{\"_method\":\"DELETE\"}"),
            // Without a method.
            post("/public/batch", JSON, "[{\"relative_url\":\"public/x\",\"body\":\"_method=DELETE\"}]"),
        ]));
    }

    fn a_list_of_requests_in_a_value_is_judged_by_its_requests(lab) {
        let origin = Origin::start(8080);
        let list = |method: &str, url: &str| format!("[{{\"method\":\"{method}\",\"relative_url\":\"{url}\",\"body\":\"message=a b;c\"}}]");
        let query = |name: &str, list: &str| post(&format!("/public/v1?a=1&{name}={}", coded(list)), "", "");
        let form = |name: &str, list: &str| post("/public/v1", FORM, &format!("access_token=a&{name}={list}&include_headers=false"));
        let value = |head: &str, list: &str| post("/public/v1", PARTS, &part(head, list));
        let body = |by: &str| list("POST", "public/x").replace("message=a b", &format!("a=1&{by}"));
        let long = list("PUT", "public/x").replace("message", &"message".repeat(2000));
        let good = [
            query("batch", &list("PUT", "public/x")),
            form("batch", &coded(&long)),
            form("batch", &list("PUT", "public/x")),
            form("note", &list("DELETE", "public/x")),
            value("name=\"batch\"", &long),
            value("name=\"note\"", &list("DELETE", "public/x")),
            value("name=\"file\"; filename=\"batch.jsonl\"", "{\"custom_id\":\"1\",\"method\":\"DELETE\",\"url\":\"/v1/x\",\"body\":{}}"),
            form("batch", "none"),
        ];
        let bad = [
            query("batch", &list("DELETE", "public/x")),
            query("%20batch[]", &list("DELETE", "public/x")),
            query("batch", &body("_method=DELETE")),
            query("batch", &list("POST", &format!("public/x?batch={}", coded(&list("DELETE", "x"))))),
            form("batch", &coded(&list("DELETE", "public/x"))),
            form("+%62atch", &list("DELETE", "public/x")),
            form("a=1;requests", &list("DELETE", "public/x")),
            form("batch", &coded(&long.replace("PUT", "DELETE"))),
            form("batch", &coded(&body("_method=DELETE"))),
            value("name=\"batch\"", &list("DELETE", "public/x")),
            value("name=\"batch\"", &long.replace("PUT", "DELETE")),
            value("name=\"batch\"", &body("_method=DELETE")),
            post("/public/v1", JSON, &format!("{{\"batch\":{}}}", quoted(&list("DELETE", "public/x")))),
            one("/public/x", FORM, &format!("batch={}", coded(&list("DELETE", "public/x")))),
            one(&format!("/public/x?batch={}", coded(&list("DELETE", "public/x"))), "", ""),
        ];
        only(lab, &origin, &[METHODS], (&good, &bad));
        let to = |url: &str| list("GET", url);
        only(lab, &origin, &PATHS, (&[
            query("batch", &to("x")), form("batch", &coded(&to("x"))), value("name=\"batch\"", &to("x")),
        ], &[
            query("batch", &to("admin/x")), form("batch", &coded(&to("admin/x"))), value("name=\"batch\"", &to("admin/x")),
            query("batch", "[{\"relative_url\":\"admin/x\"}]"),
            value("name=\"=?utf-8?B?YmF0Y2g=?=\"", &to("admin/x")),
            value("name=\"batch\"\r\n \r\nX: y", &to("admin/x")),
            value(&format!("pad=\"{}\"; name=\"batch\"", "A".repeat(5000)), &to("admin/x")),
            value("name=\"a\"\r\n\r\nx--b\r\n--b\r\nContent-Disposition: form-data; name=\"batch\"", &to("admin/x")),
        ]));
    }

    fn a_request_in_a_batch_goes_to_no_other_host_that_the_rules_do_not_allow(lab) {
        let origin = Origin::start(8080);
        let at = |line: &str| post("/batch", MIXED, &batch(&[line]));
        let host = |host: &str| at(&format!("GET /x HTTP/1.1\r\nHost: {host}\r\n"));
        only(lab, &origin, &PATHS, (&[
            host("127.0.0.1:8080"), at("GET http://127.0.0.1:8080/x HTTP/1.1\r\n"),
        ], &[
            host("127.0.0.1:8081"), host("b.example"), host("127.0.0.1:8080, b.example"), host(""),
            at("GET http://b.example/x HTTP/1.1\r\n"), at("GET http://127.0.0.1:8081/x HTTP/1.1\r\n"),
            at("GET http://u@127.0.0.1:8080/x HTTP/1.1\r\n"), at("GET /x HTTP/1.1\r\nHOST:\r\n b.example\r\n"),
        ]));
    }

    /// Some servers take the path of any address for one of their own.
    fn a_request_in_a_list_avoids_no_deny_rule_by_the_name_of_another_host(lab) {
        let origin = Origin::start(8080);
        let list = |method: &str, url: &str| {
            let text = format!("{{\"requests\":[{{\"method\":\"{method}\",\"url\":\"{url}\"}}]}}");
            post("/batch", JSON, &text)
        };
        only(lab, &origin, &[ANY, ("-d", "* */admin/**"), ("-d", "DELETE 127.0.0.1")], (&[
            list("POST", "http://other.example/hooks/1"), list("GET", "https://other.example/x?y=z"),
        ], &[
            list("GET", "http://other.example/admin/keys"), list("DELETE", "http://other.example/x"),
            list("GET", "//other.example/a/../admin/x"), list("delete", "https://other.example:444/y"),
        ]));
    }

    /// Some servers go where an address says, and no rule denies what no rule names.
    fn a_request_in_a_list_goes_to_no_host_that_no_rule_allows(lab) {
        let origin = Origin::start(8080);
        let list = |path: &str, item: &str| post(path, JSON, &format!("{{\"requests\":[{item}]}}"));
        let item = |method: &str, key: &str, url: &str| {
            format!("{{\"method\":\"{method}\",\"{key}\":\"{url}\"}}")
        };
        let batch = |method: &str, key: &str, url: &str| list("/batch", &item(method, key, url));
        let rules = [("-a", "POST http://127.0.0.1:8080/batch"), ("-a", "POST http://127.0.0.1:8080/hooks"),
            ("-a", "GET https://good.example")];
        only(lab, &origin, &rules, (&[
            batch("GET", "url", "https://good.example/x"),
            list("/hooks", &item("GET", "url", "https://other.example/x")),
            list("/batch", "{\"url\":\"https://other.example/x\"}"),
            list("/batch", "{\"event\":\"a\",\"properties\":{\"method\":\"GET\",\"url\":\"https://other.example/x\"}}"),
        ], &[
            batch("GET", "url", "https://other.example/x"), batch("GET", "uri", "http://other.example/x"),
            batch("POST", "href", "https://good.example/x"), batch("DELETE", "url", "https://other.example:444/y"),
            batch("GET", "path", "//other.example/x"),
        ]));
    }
}
