//! Unix sockets by path in every disguise, by abstract name, spoofed listeners,
//! and descriptors that travel.

use std::io::{IoSlice, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use nix::sys::socket::{ControlMessage, MsgFlags, sendmsg};
use outgate_harness::attack::{check, is_refused, leaks_bare, leaks_only_bare};
use outgate_harness::{Identity, Witness, lab_tests, race_time};

/// What a path answers that is not granted: like nothing there, or refused.
const NO_SUCH_PEER: &[&str] = &["ECONNREFUSED", "EACCES", "EPERM", "ENOENT", "ELOOP"];

lab_tests! {
    fn row_21_unix_paths_in_every_spelling_are_refused(lab) {
        let witness = Witness::start(&lab.directory);
        for identity in Identity::all() {
            let scratch = lab.folder("work", identity).to_string_lossy().into_owned();
            let outsider = lab.start_bare(identity, &lab.probe(&["victim"]));
            outsider.wait_for("ready");
            let pid = outsider.pid().to_string();
            let probe = ["unix-paths", &witness.path(), &scratch, &pid];
            lab.bare(identity, &probe);
            witness.assert_leaked("unix paths");
            let outcome = lab.sandbox(identity).probe(&probe);
            witness.assert_untouched("a Unix path");
            assert!(outcome.reports().len() >= 8, "{outcome}");
            for report in outcome.reports() {
                assert!(NO_SUCH_PEER.contains(&report.errno.as_str()), "{identity:?}: {report:?}");
            }
        }
    }

    fn row_21_a_renamed_path_never_reaches_an_outsider(lab) {
        let witness = Witness::start(&lab.directory);
        let time = race_time().as_millis().to_string();
        let scratch = lab.folder("work", Identity::Own).to_string_lossy().into_owned();
        leaks_bare(lab, &witness, &["unix-race", &witness.path(), &scratch, "1500"]);
        for identity in Identity::all() {
            let scratch = lab.folder("work", identity).to_string_lossy().into_owned();
            let outcome = lab.sandbox(identity).probe(&["unix-race", &witness.path(), &scratch, &time]);
            witness.assert_untouched("a path renamed while it is judged");
            assert!(outcome.number("tries=") > 100, "{outcome}");
        }
    }

    fn row_22_sockets_of_the_system_are_refused(lab) {
        // /run is the laboratory's own, so the real ones are not touched.
        let uid = nix::unistd::geteuid();
        let paths = [
            "/run/docker.sock".to_owned(), "/run/dbus/system_bus_socket".to_owned(),
            format!("/run/user/{uid}/bus"), format!("/run/user/{uid}/ssh-agent.socket"),
            "/run/systemd/resolve/io.systemd.Resolve".to_owned(), "/run/nscd/socket".to_owned(),
            "/run/tmux/default".to_owned(), "/run/systemd/private".to_owned(),
        ];
        let mut listeners = Vec::new();
        for path in &paths {
            let folder = std::path::Path::new(path).parent().expect("a folder");
            std::fs::create_dir_all(folder).expect("a folder");
            listeners.push(UnixListener::bind(path).expect("a path"));
            let everybody = std::fs::Permissions::from_mode(0o777);
            std::fs::set_permissions(path, everybody).expect("a mode");
        }
        let seen = count_all(listeners);
        let targets: Vec<String> = paths.iter().map(|path| format!("unix:{path}")).collect();
        let mut probe = vec!["unix-to"];
        probe.extend(targets.iter().map(String::as_str));
        lab.bare(Identity::Own, &probe);
        assert_eq!(counted(&seen, &paths), paths.len(), "bare, each is reached");
        for identity in Identity::all() {
            // Changing the account asks the name service of the system, outside.
            lab.start_bare(identity, &["true".to_owned()]).finish();
            let outside = counted(&seen, &paths);
            let outcome = lab.sandbox(identity).probe(&probe);
            assert_eq!(counted(&seen, &paths), outside, "{identity:?} {outcome}");
            for report in outcome.reports().iter().filter(|report| report.name != "seqpacket") {
                assert!(NO_SUCH_PEER.contains(&report.errno.as_str()), "{identity:?}: {report:?}");
            }
        }
    }

    fn a_socket_that_a_server_left_behind_is_refused_without_a_word(lab) {
        let witness = Witness::start(&lab.directory);
        for identity in Identity::all() {
            let left = lab.folder("work", identity).join("left.sock");
            std::fs::remove_file(&left).ok();
            drop(UnixListener::bind(&left).expect("a path"));
            std::fs::set_permissions(&left, std::fs::Permissions::from_mode(0o777)).expect("a mode");
            let (left, alive) = (format!("unix:{}", left.display()), format!("unix:{}", witness.path()));
            // The warning about the sandbox's own grants aside.
            let denials = |outcome: &outgate_harness::Outcome| outcome.stderr.matches("outgate: denied").count();
            let outcome = lab.sandbox(identity).probe(&["unix-to", &left]);
            check(&outcome, &[(&left, &["ECONNREFUSED"])], &format!("{identity:?}"));
            assert_eq!(denials(&outcome), 0, "{identity:?} {outcome}");
            // The near twin: somebody listens there.
            let outcome = lab.sandbox(identity).probe(&["unix-to", &alive]);
            check(&outcome, &[(&alive, &["ECONNREFUSED"])], &format!("{identity:?}"));
            assert!(denials(&outcome) > 0, "{identity:?} {outcome}");
            witness.assert_untouched("a denied path");
        }
    }

    fn row_23_abstract_names_are_refused(lab) {
        let witness = Witness::start(&lab.directory);
        let to = format!("abstract:{}", witness.abstract_name());
        let errnos = &["ECONNREFUSED", "EPERM"][..];
        leaks_only_bare(lab, &witness, &["unix-to", &to], &[(&to, errnos)]);
    }

    fn row_24_an_own_listener_does_not_vouch_for_its_path(lab) {
        let witness = Witness::start(&lab.directory);
        for identity in Identity::all() {
            let scratch = lab.folder("work", identity).to_string_lossy().into_owned();
            let probe = ["spoof", &witness.path(), &scratch];
            lab.bare(identity, &probe);
            witness.assert_leaked("a swapped path");
            let outcome = lab.sandbox(identity).probe(&probe);
            witness.assert_untouched("a path swapped under a listener");
            let expected = [("spoof-before-listen", NO_SUCH_PEER), ("spoof-after-listen", NO_SUCH_PEER)];
            check(&outcome, &expected, &format!("{identity:?}"));
        }
    }

    fn row_45_an_allowed_peer_cannot_pass_a_descriptor(lab) {
        let witness = Witness::start(&lab.directory);
        let path = lab.directory.join("giver.sock");
        let to = format!("unix:{}", path.display());
        give_descriptors(&path, &witness);
        leaks_bare(lab, &witness, &["receive", &to]);
        for identity in Identity::all() {
            let rule = format!("unix://{}", path.display());
            let outcome = lab.sandbox(identity).allow(&rule).probe(&["receive", &to]);
            let bytes: usize = witness.sightings().iter().map(|seen| seen.bytes.len()).sum();
            assert_eq!(bytes, 0, "the gift was used: {outcome}");
            witness.forget();
            assert_eq!(outcome.errno("receive-connect"), "0", "{identity:?} {outcome}");
            assert_eq!(outcome.number("received descriptors="), 0, "{identity:?} {outcome}");
        }
    }

    fn sandlock_n14_a_granted_path_is_reached_and_its_neighbour_is_not(lab) {
        let (granted, other) = (Witness::start(&lab.directory), Witness::start(&lab.directory));
        for identity in Identity::all() {
            let rule = format!("unix://{}", granted.path());
            let (yes, no) = (format!("unix:{}", granted.path()), format!("unix:{}", other.path()));
            let outcome = lab.sandbox(identity).allow(&rule).probe(&["unix-to", &yes, &no]);
            other.assert_untouched("the neighbour");
            assert_eq!(outcome.errno(&yes), "0", "{identity:?} {outcome}");
            check(&outcome, &[(&no, NO_SUCH_PEER)], "the neighbour");
            granted.assert_leaked("a granted path");
        }
    }

    fn sandlock_n17c_a_unix_socket_is_made_only_where_one_may_write(lab) {
        let outside = lab.directory.join("inode.sock");
        let to = format!("unix:{}", outside.display());
        for identity in Identity::all() {
            let outcome = lab.sandbox(identity).allow("tcp://127.0.0.1:9").probe(&["unix-bind", &to]);
            assert!(!outside.exists(), "{identity:?} {outcome}");
            assert_ne!(outcome.errno(&to), "0", "{identity:?}");
        }
        is_refused(lab, &Witness::start(&lab.directory), &["unix-bind", &to], &[]);
    }
}

/// Counts connections on each listener, and ends them.
fn count_all(listeners: Vec<UnixListener>) -> Arc<AtomicUsize> {
    let count = Arc::new(AtomicUsize::new(0));
    for listener in listeners {
        let count = Arc::clone(&count);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                count.fetch_add(1, Ordering::SeqCst);
                drop(stream);
            }
        });
    }
    count
}

/// Connections since the last call. One of our own behind them, which is ended
/// after it was counted, proves that all before it were counted.
fn counted(count: &AtomicUsize, paths: &[String]) -> usize {
    for path in paths {
        let mut own = UnixStream::connect(path).expect("the listener");
        own.read_to_end(&mut Vec::new()).expect("its end");
    }
    count.swap(0, Ordering::SeqCst) - paths.len()
}

/// A peer that answers with a TCP socket connected to the witness.
fn give_descriptors(path: &std::path::Path, witness: &Witness) {
    let listener = UnixListener::bind(path).expect("a path");
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o777)).expect("a mode");
    let address = witness.address();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut ready = [0; 6];
            stream.read_exact(&mut ready).ok();
            #[expect(clippy::disallowed_methods, reason = "the gift of a hostile peer")]
            let gift = std::net::TcpStream::connect(&address).expect("the witness");
            let descriptors = [gift.as_raw_fd()];
            let rights = [ControlMessage::ScmRights(&descriptors)];
            let text = [IoSlice::new(b"take this\n")];
            sendmsg::<()>(stream.as_raw_fd(), &text, &rights, MsgFlags::empty(), None).ok();
        }
    });
}
