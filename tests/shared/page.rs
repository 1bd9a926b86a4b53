//! What the documents say about a shared gateway, done: the commands of the page, and the
//! units for systemd.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use outgate_harness::origin::Origin;
use outgate_harness::{Identity, Running, lab_tests};

const PAGE: &str = include_str!("../../docs/SHARED-GATEWAY.md");
const SERVICE: &str = include_str!("../../configs/systemd/outgate-gateway.service");
const SOCKET: &str = include_str!("../../configs/systemd/outgate-gateway.socket");

/// How much `systemd-analyze security` may find open, in tenths: it calls that "OK".
const EXPOSURE_MAX: &str = "20";

/// The commands of the page, in order.
fn commands() -> String {
    let blocks = PAGE.split("```sh\n").skip(1);
    blocks
        .filter_map(|block| block.split("```").next())
        .collect()
}

lab_tests! {
    fn the_page_about_a_shared_gateway_says_what_works(lab) {
        let origin = Origin::start(8080);
        let folder = lab.folder("page", Identity::Own);
        // The lab has no host of that name, and no certificate for it.
        let script = commands()
            .replace("https://files.example.org", "http://a.example:8080")
            .replace("-p site.toml", "-p site.toml --resolve a.example=192.0.2.1");
        let programs = lab.tools.programs.to_string_lossy().into_owned();
        let mut command = Command::new("bash");
        command
            .args(["-euxc", &script])
            .env_clear()
            .env("PATH", format!("{programs}:/usr/sbin:/usr/bin:/sbin:/bin"))
            .env("HOME", lab.folder("home", Identity::Own))
            .env("XDG_RUNTIME_DIR", lab.folder("runtime", Identity::Own))
            .current_dir(&folder)
            .stdin(Stdio::null());
        let outcome = Running::start(&mut command, Duration::from_mins(2)).finish();
        assert_eq!(outcome.code, Some(0), "{outcome}");
        assert_eq!(origin.arrivals().len(), 1, "{outcome}");
        for part in [
            "ready for", "\"option\":\"--sandboxes\"", "outgate_sandboxes 0", "ready\n", "outgate top: ready",
            ".localhost:7070/enter?code=",
        ] {
            assert!(outcome.stdout.contains(part), "{part}: {outcome}");
        }
        assert!(outcome.stderr.contains("allows more: allow `https://more.example.org"), "{outcome}");
    }

    fn the_units_for_systemd_are_sound_and_hold_the_gateway(lab) {
        let folder = lab.folder("units", Identity::Own);
        let program = lab.tools.programs.join("outgate").to_string_lossy().into_owned();
        let service = SERVICE.replace("/usr/bin/outgate ", &format!("{program} "));
        assert!(service.contains(&program), "the unit names the program elsewhere");
        // What the gateway confines itself by is in no older group of systemd's.
        for call in ["landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self", "seccomp"] {
            let lines = SERVICE.lines().filter(|line| line.starts_with("SystemCallFilter="));
            assert!(lines.into_iter().any(|line| line.contains(call)), "{call}");
        }
        let place = |name: &str, text: &str| {
            let path = folder.join(name);
            std::fs::write(&path, text).expect("a file");
            path.to_string_lossy().into_owned()
        };
        let service = place("outgate-gateway.service", &service);
        let socket = place("outgate-gateway.socket", SOCKET);
        if !Path::new("/usr/bin/systemd-analyze").exists() {
            return outgate_harness::skip("no systemd-analyze");
        }
        let verify = ["systemd-analyze", "verify", "--man=no", &service, &socket];
        let outcome = lab.start_bare(Identity::Own, &verify.map(str::to_owned)).finish();
        assert_eq!((outcome.code, outcome.stderr.trim()), (Some(0), ""), "{outcome}");
        let threshold = format!("--threshold={EXPOSURE_MAX}");
        let judge = ["systemd-analyze", "security", "--offline=yes", "--no-pager", &threshold, &service];
        let outcome = lab.start_bare(Identity::Own, &judge.map(str::to_owned)).finish();
        assert_eq!(outcome.code, Some(0), "{outcome}");
    }
}
