//! What a detector file says of places and forms, and what is wrong with it.

use outgate_dlp::parse_detectors;

#[test]
#[expect(clippy::too_many_lines, reason = "one table")]
fn a_detector_file_says_what_is_wrong_with_forms() {
    let file = |keys: &str| {
        format!(
            "[[detector]]\nid = \"acme-key\"\nname = \"ACME key\"\ncost = \"Opens every door.\"\n\
             reference = \"https://acme.example/keys\"\ntier = \"strong\"\nliterals = [\"acme_\"]\n\
             pattern = '''acme_[0-9a-f]{{24}}'''\nsamples = [\"acme_{{hex:24}}\"]\n\
             near_misses = [\"acme_{{hex:23}}\", \"acme_ alone\"]\n{keys}\n"
        )
    };
    let issuers = "scope = \"issuers\"\nissuers = [\"*.acme.example\"]";
    for form in [
        "x.acme.example/token",
        "*.acme.example/",
        "x.*.acme.example/a/b.c",
    ] {
        let keys = format!("{issuers}\ntenants = \"many\"\nforms = [\"{form}\"]");
        let read = parse_detectors(&file(&keys)).expect(form);
        assert_eq!(read[0].forms.as_ref(), [form]);
    }
    for (keys, says) in [
        (
            format!("{issuers}\ntenants = \"some\""),
            "line 13: `tenants` is one of one, many, not `some`",
        ),
        (
            format!("{issuers}\nforms = [\"x.acme.example/\"]"),
            "`forms` and `documents` need",
        ),
        (
            format!("{issuers}\ntenants = \"many\"\nforms = [\"acme.example/\"]"),
            "a form or document is a host of",
        ),
        (
            format!("{issuers}\ntenants = \"many\"\nforms = [\"x.acme.example\"]"),
            "a form or document is a host of",
        ),
        (
            format!("{issuers}\ntenants = \"many\"\nforms = [\"x.acme.example/?a b\"]"),
            "a form or document is a host of",
        ),
        (
            format!("{issuers}\ntenants = \"many\"\nforms = [\"evil.test/\"]"),
            "a form or document is a host of",
        ),
        (
            format!("{issuers}\ntenants = \"many\"\nforms = \"x\""),
            "`forms` must be a list",
        ),
        (
            "scope = \"never\"\ntenants = \"many\"".to_owned(),
            "this may go to none",
        ),
        (
            "scope = \"never\"\nplaces = [\"x-key\"]".to_owned(),
            "`places` are said of hosts",
        ),
        (format!("{issuers}\nplaces = [\"X-Key\"]"), "a place is"),
        (
            format!("{issuers}\nplaces = [\"evil.test/a?key\"]"),
            "a place is",
        ),
        (
            format!("{issuers}\nplaces = [\"x-key\"]\nunplaced = \"It signs.\""),
            "`unplaced` says why",
        ),
        (
            format!("{issuers}\nunplaced = \"it signs\""),
            "one sentence",
        ),
        (
            format!("{issuers}\ntenant_hosts = [\"*.acme.test\"]"),
            "`tenant_hosts` need `places`",
        ),
        (
            "scope = \"user\"\nexcept = [\"x.acme.example\"]".to_owned(),
            "`except` is said of",
        ),
    ] {
        let faults = parse_detectors(&file(&keys)).expect_err(says);
        let told: Vec<String> = faults.iter().map(ToString::to_string).collect();
        assert!(told.iter().any(|one| one.contains(says)), "{told:#?}");
    }
}
