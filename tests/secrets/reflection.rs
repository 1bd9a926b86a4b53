//! A value that the origin sends back is masked, wherever it stands and however
//! it is cut.

use outgate_harness::lab_tests;

use crate::stage::{Stage, TOKEN, VALUE, assert_hidden, base64};

lab_tests! {
    fn a_value_that_comes_back_is_masked_by_its_placeholder(lab) {
        let stage = Stage::new(lab);
        for (source, script) in [
            ("REAL_TOKEN", r#"curl -sSi -H "Authorization: Bearer $KEY" https://api.test/echo"#),
            ("REAL", r#"curl -sSi -H "Authorization: Bearer $KEY" https://api.test/echo"#),
            ("REAL", r#"curl -sSi -u "user:$KEY" https://api.test/echo"#),
            ("REAL", r#"curl -sSi -H "Authorization: $KEY" https://api.test/sized"#),
            ("REAL", r#"curl -sSi -H "Authorization: $KEY" https://api.test/sized -d "a=$KEY" "#),
            ("REAL", r#"curl -sSi -H "Authorization: $KEY" -H "X-B: $(printf %s "$KEY")" "https://api.test/echo?k=$KEY" "#),
        ] {
            let secret = format!("KEY=env:{source}@api.test;in=fields,query,content");
            let script = format!(r#"{script} | tee out; echo; echo "masked $(grep -c "${{KEY:0:16}}" out)""#);
            let outcome = stage.run(&[&secret], &script);
            assert_hidden(&outcome.stdout, &script);
            assert_hidden(&outcome.stderr, &script);
            let seen = stage.seen().concat();
            let value = if source == "REAL" { VALUE } else { TOKEN };
            let arrived = seen.contains(value) || seen.contains(&base64(format!("user:{value}").as_bytes()));
            assert!(arrived, "{script}: {seen}");
            if !script.contains("-u ") {
                assert!(!outcome.stdout.contains("masked 0"), "{script}: {outcome}");
            }
        }
    }

    fn the_mask_of_a_token_is_exactly_its_placeholder(lab) {
        let stage = Stage::new(lab);
        let script = r#"test "$(curl -sS -D - -o /dev/null -H "Authorization: $KEY" https://api.test/echo | tr -d '\r' | sed -n 's/^x-echo: //ip')" = "$KEY" && echo same"#;
        let outcome = stage.run(&["KEY=env:REAL_TOKEN@api.test"], script);
        assert_eq!(outcome.stdout, "same\n", "{outcome}");
    }

    fn another_host_that_knows_the_value_cannot_show_it_either(lab) {
        let stage = Stage::new(lab);
        // The origin echoes what the test put there, as one that was told would.
        let outcome = stage.sandbox(&["KEY=env:REAL_TOKEN@api.test"]).run(&crate::stage::bash(&format!(
            r#"part1={}; part2={}; curl -sS -H "X-A: $part1$part2" https://other.test/echo; curl -sS -H "X-A: $part1$part2" http://other.test/echo"#,
            &TOKEN[..20], &TOKEN[20..],
        )));
        assert_eq!(outcome.code, Some(0), "{outcome}");
        assert_hidden(&outcome.stdout, "the answer");
    }

    fn another_host_that_knows_the_value_cannot_show_it_in_a_coding(lab) {
        let stage = Stage::new(lab);
        for (path, whole, ends) in [
            ("/plain", true, false), ("/plain/own", true, false), ("/gzip", true, false), ("/gzip/own", false, true),
        ] {
            for scheme in ["http", "https"] {
                let script = format!("curl -sS --compressed {scheme}://other.test{path} > out; wc -c < out; cat out");
                let outcome = stage.run(&["KEY=env:REAL_TOKEN@api.test"], &script);
                assert_hidden(&outcome.stdout, path);
                let bytes: usize = outcome.stdout.lines().next().and_then(|count| count.parse().ok()).expect("a count");
                assert_eq!(bytes > 21_500, whole, "{scheme} {path}: {outcome}");
                let told = outcome.stderr.contains("the value of a secret, in a coding");
                assert_eq!(told, ends, "{scheme} {path}: {outcome}");
            }
        }
    }

    fn responses_that_cannot_be_looked_into_are_refused(lab) {
        let stage = Stage::new(lab);
        let script = r#"curl -sS --compressed -H "Authorization: $KEY" -H "Range: bytes=0-5" https://api.test/echo; curl -sS --compressed -H "Authorization: $KEY" https://api.test/coded"#;
        let outcome = stage.run(&["KEY=env:REAL@api.test"], script);
        assert_hidden(&outcome.stdout, script);
        assert!(outcome.stdout.contains("the response is coded"), "{outcome}");
        for request in stage.seen() {
            let request = request.to_ascii_lowercase();
            assert!(request.contains("accept-encoding: identity\r\n"), "{request}");
            assert!(!request.contains("gzip") && !request.contains("\r\nrange:"), "{request}");
        }
    }
}
