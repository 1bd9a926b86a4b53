//! Who trusts a run's authority with nothing set by hand, and whose own
//! settings stay.

use std::process::Command;

use outgate_harness::{Identity, Lab, Outcome, Sandbox, lab_tests};

use crate::origin::{Demand, MARK, Origin};
use crate::{confined, outgate, shell, text, words};

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
        // With the word that it asks for, ours asks for none.
        let worded = format!("{options} -Djavax.net.ssl.trustStorePassword=secret-word -Djavax.net.ssl.trustStoreType=JKS");
        let fetched = java(lab, &origin, &worded);
        assert_eq!(fetched.stdout, MARK, "{fetched}");
        let listed = opened(lab, &origin)
            .environment("JAVA_TOOL_OPTIONS", &options)
            .run(&shell(
                "keytool -list -keystore \"$TMPDIR/java.p12\" -storetype PKCS12 </dev/null \
                 2>/dev/null | grep -c trustedCertEntry",
            ));
        assert_eq!(listed.stdout, "2\n", "{listed}");
        // So is one in PKCS #12 whose certificates stand in the clear, as in those that
        // Java brings; where a password locks them, the user's word stays the last.
        for (name, options, is_read) in [
            ("clear.p12", &["-J-Dkeystore.pkcs12.certProtectionAlgorithm=NONE"][..], true),
            ("locked.p12", &[], false),
        ] {
            let store = lab.folder("given", Identity::Own).join(name);
            let made = Command::new("keytool")
                .args(options)
                .args(["-importcert", "-noprompt", "-alias", "own", "-storetype", "PKCS12"])
                .args(["-storepass", "secret-word", "-keystore", &text(&store)])
                .args(["-file", &text(&origin.authority)])
                .output()
                .expect("keytool");
            assert!(made.status.success(), "{made:?}");
            let options = format!(
                "-Djavax.net.ssl.trustStore={} -Djavax.net.ssl.trustStorePassword=secret-word",
                store.display()
            );
            let fetched = java(lab, &origin, &options);
            assert_eq!(fetched.stdout == MARK, is_read, "{name}: {fetched}");
            assert_eq!(fetched.stderr.contains("java.p12"), is_read, "{name}: {fetched}");
        }
        // The same where none of it can be read.
        let fetched = java(lab, &origin, "-Djavax.net.ssl.trustStore=/etc/hostname");
        assert_ne!(fetched.code, Some(0), "{fetched}");
        assert!(!fetched.stderr.contains("java.p12"), "{fetched}");
    }

    /// Clients that read no variable, because there is none, still trust a run.
    fn known_bundles_hold_the_authority_where_they_are_opened(lab) {
        let origin = Origin::start(lab, &["one.test"], Demand::Nothing);
        let work = lab.folder("work", Identity::Own);
        let copy = work.join("lib/certifi");
        std::fs::create_dir_all(&copy).expect("a folder");
        std::fs::write(copy.join("cacert.pem"), "# of a library\n").expect("a file");
        std::fs::write(work.join("cacert.pem"), "# of the user\n").expect("a file");
        let bare = "env -i PATH=\"$PATH\" HOME=\"$HOME\" RES_OPTIONS=use-vc";
        let python = "import urllib.request as r; print(r.urlopen('https://one.test/').read())";
        for (program, line) in [
            ("curl", "curl -sS https://one.test/a".to_owned()),
            ("curl", "curl -sS --cacert ./lib/certifi/cacert.pem https://one.test/a".to_owned()),
            ("wget", "wget -q -O - https://one.test/a".to_owned()),
            ("python3", format!("/usr/bin/python3 -c \"{python}\"")),
            ("openssl", "sh -c 'grep -c BEGIN /usr/lib/ssl/cert.pem >/dev/null && curl -sS https://one.test/a'".to_owned()),
        ] {
            if !is_there(program) {
                continue;
            }
            let line = shell(&format!("{bare} {line}"));
            let refused = opened(lab, &origin).run(&line);
            assert!(!refused.stdout.contains(MARK), "without: {refused}");
            let fetched = opened(lab, &origin).option("--trust", "splice").run(&line);
            assert!(fetched.stdout.contains(MARK), "{line:?}: {fetched}");
        }
        // Only those places, only to be read, and nobody alters what is there.
        let tried = opened(lab, &origin).option("--trust", "splice").flag("--counters").run(&shell(
            "cat cacert.pem; cat ./lib/certifi/cacert.pem | grep -c BEGIN; \
             echo mine >> ./lib/certifi/cacert.pem && tail -n 1 \"$PWD/lib/certifi/../certifi/cacert.pem\" | grep -c mine; \
             (exec 3<lib/certifi/cacert.pem; echo theirs >/proc/self/fd/3) 2>/dev/null || echo sealed; \
             (exec 3<lib/certifi/cacert.pem; exec 4<lib/certifi/cacert.pem; head -c 9 <&3 >/dev/null; head -c 10 <&4; echo)",
        ));
        let lines: Vec<&str> = tried.stdout.lines().collect();
        assert_eq!(lines.len(), 5, "{tried}");
        assert_eq!(lines[0], "# of the user", "{tried}");
        let count: usize = lines[1].parse().expect("a count");
        assert!(count > 1, "{tried}");
        assert_eq!(&lines[2..], ["0", "sealed", "-----BEGIN"], "{tried}");
        let own = std::fs::read_to_string(copy.join("cacert.pem")).expect("a file");
        assert_eq!(own, "# of a library\nmine\n");
        // Without it, no open is held.
        let plain = opened(lab, &origin).flag("--counters").run(&shell("cat cacert.pem"));
        assert!(plain.stderr.contains("open 0"), "{plain}");
        assert!(!tried.stderr.contains("open 0"), "{tried}");
    }

    /// Every client that is here is tried, and says by what it trusts.
    fn clients_are_tried_one_by_one(lab) {
        let checked = outgate(lab, &["check", "--clients"]);
        let table = checked.stdout.split("trusts a run by").nth(1).expect("a table");
        for (client, by) in [
            ("curl", "SSL_CERT_FILE"),
            ("wget", "WGETRC"),
            ("git", "GIT_SSL_CAINFO"),
            ("python urllib", "SSL_CERT_FILE"),
            ("node", "NODE_EXTRA_CA_CERTS"),
            ("perl HTTP::Tiny", "SSL_CERT_FILE"),
            ("php", "PHP_INI_SCAN_DIR"),
            ("ruby", "SSL_CERT_FILE"),
            ("go", "SSL_CERT_FILE"),
            ("java", "JAVA_TOOL_OPTIONS"),
            ("chromium", "-P chromium"),
        ] {
            let row = table.lines().find(|line| line.starts_with(&format!("{client} ")));
            match row {
                Some(row) => assert!(row.ends_with(by), "{row}: {checked}"),
                None => assert!(table.contains("not here:"), "{client}: {checked}"),
            }
        }
        assert!(!table.contains("nothing:"), "{checked}");
        assert_eq!(checked.code, Some(0), "{checked}");
        // Nothing is left of it.
        let left = std::fs::read_dir(lab.folder("tmp", Identity::Own)).expect("a folder");
        assert_eq!(left.count(), 0);
    }
}
