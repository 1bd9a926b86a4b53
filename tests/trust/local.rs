//! Servers of this machine, by the name that people call them: verified by it,
//! asked by it, and presented a certificate by it.

use outgate_harness::{Lab, Sandbox, lab_tests};

use crate::origin::{Demand, MARK, Origin};
use crate::presented::identity;
use crate::{confined, curl, text};

fn towards<'lab>(lab: &'lab Lab, origin: &Origin) -> Sandbox<'lab> {
    let port = origin.address.port();
    confined(lab)
        .option("--upstream-ca", &text(&origin.authority))
        .allow(&format!("GET https://localhost:{port}/**"))
}

lab_tests! {
    fn localhost_is_verified_as_it_is_called(lab) {
        let origin = Origin::start(lab, &["localhost"], Demand::Wish);
        let port = origin.address.port();
        let own = identity(lab, "own");
        let fetched = towards(lab, &origin).run(&curl(&format!("https://localhost:{port}/a")));
        assert_eq!(fetched.stdout, format!("{MARK}\n200"), "{fetched}");
        // By its number it is somebody that this certificate is not for.
        let fetched = towards(lab, &origin).run(&curl(&format!("https://127.0.0.1:{port}/a")));
        assert!(fetched.stdout.ends_with("502"), "{fetched}");
        assert!(fetched.stdout.contains("is for another name"), "{fetched}");
        let visits = origin.visits();
        assert!(visits.iter().all(|visit| visit.certificate.is_none()), "{visits:?}");
        assert!(visits.iter().any(|visit| visit.requests == ["GET /a HTTP/1.1"]), "{visits:?}");
        let called = visits.iter().filter(|visit| !visit.requests.is_empty());
        assert!(called.clone().all(|visit| visit.server_name.as_deref() == Some("localhost")));
        // A certificate for localhost is presented to it.
        let fetched = towards(lab, &origin)
            .option("--client-cert", &format!("localhost={}", text(&own.both)))
            .run(&curl(&format!("https://localhost:{port}/a")));
        assert_eq!(fetched.stdout, format!("{MARK}\n200"), "{fetched}");
        let visits = origin.visits();
        assert!(visits.iter().any(|visit| visit.certificate.as_ref() == Some(&own.der)));
        // Nobody else on this machine passes for it.
        let other = Origin::start(lab, &["other.test"], Demand::Nothing);
        let port = other.address.port();
        let fetched = towards(lab, &other).run(&curl(&format!("https://localhost:{port}/a")));
        assert!(fetched.stdout.ends_with("502"), "{fetched}");
        assert!(other.visits().iter().all(|visit| visit.requests.is_empty()));
    }
}
