//! Who trusts a run's authority with nothing set by hand, and whose own
//! settings stay.

use std::process::Command;

use outgate_harness::{Identity, Lab, Outcome, Sandbox, lab_tests};

use crate::origin::{Demand, MARK, Origin};
use crate::{confined, shell, text, words};

/// Whether a program is there; says so otherwise.
fn is_there(program: &str) -> bool {
    outgate_harness::servers::is_there(program)
}

/// A run that opens TLS to one host.
fn opened<'lab>(lab: &'lab Lab, origin: &Origin) -> Sandbox<'lab> {
    confined(lab)
        .option("--upstream-ca", &text(&origin.authority))
        .pin(&origin.pin("one.test"))
        .allow("GET https://one.test/**")
}

/// A small program in Java that fetches one page.
const FETCH: &str = r"
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;

public class Fetch {
    public static void main(String[] words) throws Exception {
        var request = HttpRequest.newBuilder(URI.create(words[0])).build();
        var client = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
        var answer = client.send(request, HttpResponse.BodyHandlers.ofString());
        System.out.print(answer.body());
    }
}
";

/// Runs it, with these options of the user's own.
fn java(lab: &Lab, origin: &Origin, options: &str) -> Outcome {
    let folder = lab.folder("java", Identity::Own);
    std::fs::write(folder.join("Fetch.java"), FETCH).expect("a program");
    let line = words(&["java", "-cp", &text(&folder), "Fetch", "https://one.test/a"]);
    let built = folder.join("Fetch.class").exists()
        || Command::new("javac")
            .args(["-d", &text(&folder), &text(&folder.join("Fetch.java"))])
            .status()
            .is_ok_and(|status| status.success());
    assert!(built, "javac");
    let sandbox = opened(lab, origin).option("-r", &text(&folder));
    let sandbox = if options.is_empty() {
        sandbox
    } else {
        sandbox.environment("JAVA_TOOL_OPTIONS", options)
    };
    sandbox.run(&line)
}

lab_tests! {
    fn java_trusts_the_run_and_what_the_user_named(lab) {
        if !is_there("javac") || !is_there("keytool") {
            return;
        }
        let origin = Origin::start(lab, &["one.test"], Demand::Nothing);
        let fetched = java(lab, &origin, "");
        assert_eq!(fetched.stdout, MARK, "{fetched}");
        // The system's authorities are still there.
        let listed = opened(lab, &origin).run(&shell(
            "keytool -list -keystore \"$TMPDIR/java.p12\" -storetype PKCS12 </dev/null 2>/dev/null \
             | grep -c trustedCertEntry; grep -c BEGIN \"$SSL_CERT_FILE\"",
        ));
        let counts: Vec<&str> = listed.stdout.lines().collect();
        assert_eq!(counts.len(), 2, "{listed}");
        assert_eq!(counts[0], counts[1], "{listed}");
        assert_ne!(counts[0], "0", "{listed}");
        // A store of the user's own, in Java's own format, is part of ours.
        let store = lab.folder("given", Identity::Own).join("own.jks");
        let line = [
            "-importcert", "-noprompt", "-alias", "own", "-storetype", "JKS", "-storepass",
            "secret-word", "-keystore", &text(&store), "-file", &text(&origin.authority),
        ];
        let made = Command::new("keytool").args(line).output().expect("keytool");
        assert!(made.status.success(), "{made:?}");
        let options = format!("-Xmx256m -Djavax.net.ssl.trustStore={}", store.display());
        let fetched = java(lab, &origin, &options);
        assert_eq!(fetched.stdout, MARK, "{fetched}");
        let listed = opened(lab, &origin)
            .environment("JAVA_TOOL_OPTIONS", &options)
            .run(&shell(
                "keytool -list -keystore \"$TMPDIR/java.p12\" -storetype PKCS12 </dev/null \
                 2>/dev/null | grep -c trustedCertEntry",
            ));
        assert_eq!(listed.stdout, "2\n", "{listed}");
        // Where none of it can be read, the user's word stays the last.
        let fetched = java(lab, &origin, "-Djavax.net.ssl.trustStore=/etc/hostname");
        assert_ne!(fetched.code, Some(0), "{fetched}");
        assert!(!fetched.stderr.contains("java.p12"), "{fetched}");
    }
}
