//! The record of decisions: complete, in order, without secrets, and a
//! condition for every effect.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use outgate_harness::audit::{of_kind, records, text};
use outgate_harness::origin::Origin;
use outgate_harness::{Identity, Witness, lab_tests};
use outgate_record::{ChainFault, Chains};

/// A disk of 32 KiB that everybody may write.
fn small_disk(at: &Path) {
    fs::create_dir_all(at).expect("a folder");
    let mount = ["-t", "tmpfs", "-o", "size=32k,mode=1777", "none"];
    let status = Command::new("mount").args(mount).arg(at).status();
    assert!(status.expect("mount(8)").success(), "a small disk");
}

/// Writes a file until nothing fits any more.
fn fill(path: &Path) {
    let mut file = File::create(path).expect("a file");
    while file.write(&[0; 512]).is_ok_and(|count| count > 0) {}
}

/// Follows a record: the number of its records, of those that were lost by their
/// own word, and of lines that are none.
fn followed(path: &Path) -> (u64, u64, usize) {
    let bytes = fs::read(path).expect("a record");
    let lines = bytes
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty());
    let mut chains = Chains::default();
    let mut pieces = 0;
    for line in lines {
        let fault = chains.follow(line).err();
        pieces += usize::from(fault.is_some());
        let sound = matches!(fault, None | Some(ChainFault::NoRecord));
        assert!(sound, "{fault:?}");
    }
    let links: Vec<_> = chains.links().collect();
    let [(_, link)] = links.as_slice() else {
        return (0, 0, pieces);
    };
    (link.records, link.lost, pieces)
}

lab_tests! {
    fn what_a_full_disk_cannot_record_does_not_happen(lab) {
        let origin = Origin::start(8080);
        let disk = lab.directory.join("small");
        small_disk(&disk);
        for (round, identity) in Identity::all().into_iter().enumerate() {
            let file = disk.join(format!("audit-{round}.jsonl"));
            let before = origin.arrivals().len();
            let request = "GET /ok HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n";
            let mut words = vec!["fetch", "127.0.0.1", "8080"];
            words.extend([request; 250]);
            let sandbox = lab.sandbox(identity).option("--audit", &file.to_string_lossy());
            let outcome = sandbox.allow("GET http://127.0.0.1:8080/ok").probe(&words);
            let arrived = origin.arrivals().len() - before;
            let (recorded, lost, pieces) = followed(&file);
            assert!(arrived > 5 && arrived < 140, "{arrived} requests arrived: {outcome}");
            let whole = fs::read_to_string(&file).expect("a record");
            let allowed = whole.split_inclusive('\n').filter(|line| line.ends_with('\n'))
                .filter(|line| line.contains(r#""kind":"request","verdict":"allow""#)).count();
            assert_eq!(arrived, allowed, "none without its record: {recorded} {outcome}");
            assert_eq!(lost, 0, "{whole}");
            assert!(pieces <= 1, "{whole}");
            assert!(outcome.stderr.contains("the audit record cannot be written, so nothing is let out"), "{outcome}");
            fs::remove_file(&file).expect("the record");
        }
    }

    fn where_the_policy_says_so_a_full_disk_loses_records_and_counts_them(lab) {
        let origin = Origin::start(8080);
        let disk = lab.directory.join("small");
        small_disk(&disk);
        let policy = lab.directory.join("drop.toml");
        fs::write(&policy, "[audit]\nfull = \"drop\"\n").expect("a policy");
        for (round, identity) in Identity::all().into_iter().enumerate() {
            let before = origin.arrivals().len();
            let file = disk.join(format!("audit-{round}.jsonl"));
            let given = disk.join(format!("given-{round}"));
            fs::create_dir(&given).expect("a folder");
            let user = nix::unistd::Uid::from_raw(identity.uid());
            nix::unistd::chown(&given, Some(user), None).expect("an owner");
            let filler = given.join("filler");
            fill(&filler);
            nix::unistd::chown(&filler, Some(user), None).expect("an owner");
            let request = "GET /ok HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n";
            let fetch = format!("{} fetch 127.0.0.1 8080 \"$0\"", lab.tool("probe"));
            let script = format!("{fetch}; {fetch}; rm {}; {fetch}", filler.display());
            let command = ["sh", "-c", &script, request].map(str::to_owned);
            let outcome = lab.sandbox(identity)
                .option("-p", &policy.to_string_lossy())
                .option("-w", &given.to_string_lossy())
                .option("--audit", &file.to_string_lossy())
                .allow("GET http://127.0.0.1:8080/ok")
                .run(&command);
            let arrived = origin.arrivals().len() - before;
            assert_eq!(arrived, 3, "{outcome}");
            let (records, lost, pieces) = followed(&file);
            let text = fs::read_to_string(&file).expect("a record");
            assert!(lost > 3 && records > 1, "{lost} lost, {records} there: {text}");
            assert_eq!(pieces, 0, "{text}");
            assert!(outcome.stderr.contains(&format!("{lost} records could not be written")), "{outcome}");
        }
    }

    fn every_decision_is_recorded_with_who_asked(lab) {
        let origin = Origin::start(8080);
        let denied = Witness::start(&lab.directory);
        for identity in Identity::all() {
            let file = lab.folder("audit", identity).join("audit.jsonl");
            let sandbox = || lab.sandbox(identity).option("--audit", &file.to_string_lossy()).allow("GET http://127.0.0.1:8080/ok");
            let request = |path: &str| format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n");
            let (yes, no) = (request("/ok?token=visible"), request("/no?token=visible"));
            let outcome = sandbox().probe(&["fetch", "127.0.0.1", "8080", &yes, &no]);
            let all = records(&file);
            let requests = of_kind(&all, "request");
            let verdicts: Vec<&str> = requests.iter().map(|record| text(record, "verdict")).collect();
            assert_eq!(verdicts, ["allow", "deny"], "{identity:?} {all:?} {outcome}");
            for record in &requests {
                assert_eq!(text(record, "executable"), lab.tool("probe"), "a kernel fact: {record}");
                assert!(!text(record, "path").contains("visible"), "{record}");
            }
            assert_eq!(text(requests[1], "reason"), "no-rule");
            // In order, each naming the one before.
            for (at, pair) in all.windows(2).enumerate() {
                assert_eq!(pair[1]["seq"], at + 2, "{pair:?}");
                assert_eq!(text(&pair[1], "prev").len(), 64, "{pair:?}");
                assert_ne!(text(&pair[1], "prev"), text(&pair[0], "prev"), "{pair:?}");
            }
            fs::remove_file(&file).ok();
            let outcome = sandbox().probe(&["connect", &denied.address()]);
            let all = records(&file);
            let connects = of_kind(&all, "connect");
            assert!(connects.iter().any(|record| text(record, "verdict") == "deny"), "{all:?} {outcome}");
            fs::remove_file(&file).ok();
        }
        assert_eq!(origin.arrivals().len(), Identity::all().len());
    }

    fn a_record_that_finds_no_room_is_said_before_anything_runs(lab) {
        let origin = Origin::start(8080);
        let disk = lab.directory.join("small");
        small_disk(&disk);
        for identity in Identity::all() {
            let user = nix::unistd::Uid::from_raw(identity.uid());
            let full = disk.join(format!("full-{}.jsonl", identity.uid()));
            File::create(&full).expect("a file");
            nix::unistd::chown(&full, Some(user), None).expect("an owner");
            let filler = disk.join("filler");
            fill(&filler);
            let pipe = lab.folder("audit", identity).join("pipe");
            fs::remove_file(&pipe).ok();
            nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
            nix::unistd::chown(&pipe, Some(user), None).expect("an owner");
            let limited = lab.folder("audit", identity).join("limited.jsonl");
            let (nobody, missing) = (lab.directory.join("closed"), lab.directory.join("none"));
            fs::create_dir_all(&nobody).expect("a folder");
            let [full, pipe, limited] = [&full, &pipe, &limited].map(|path| path.to_string_lossy());
            let [closed, missing] = [&nobody, &missing].map(|path| path.join("a.jsonl"));
            let mut rows = vec![
                ("/dev/full", "No space left on device", "true"),
                (&*full, "No space left on device", "true"),
                (&*limited, "File too large", "ulimit -f 0"),
                (&*pipe, "No such device or address", "true"),
                (missing.to_str().expect("a path"), "No such file or directory", "true"),
            ];
            if identity.uid() != 0 {
                rows.push((closed.to_str().expect("a path"), "Permission denied", "true"));
            }
            for (audit, reason, first) in rows {
                let script = format!("{first}; exec \"$@\"");
                let outcome = lab.sandbox(identity)
                    .option("--audit", audit)
                    .allow("GET http://127.0.0.1:8080/ok")
                    .wrap(&["bash", "-c", &script, "bash"])
                    .run(&["echo".to_owned(), "it runs".to_owned()]);
                let place = format!("{identity:?} {audit}: {outcome}");
                assert_eq!(outcome.code, Some(125), "{place}");
                assert_eq!(outcome.stdout, "", "{place}");
                let ours = outcome.stderr.lines().filter(|line| {
                    line.starts_with("outgate: ") && !line.starts_with("outgate: warning: ")
                });
                let ours: Vec<&str> = ours.collect();
                assert_eq!(ours.len(), 1, "{place}");
                for said in [audit, reason] {
                    assert!(ours[0].contains(said), "`{said}`: {place}");
                }
                assert_eq!(outcome.stderr.matches("--audit FILE").count(), 1, "{place}");
            }
            fs::remove_file(&filler).expect("the filler");
        }
        assert_eq!(origin.arrivals(), []);
    }

    fn a_record_that_ends_in_the_middle_is_said_once(lab) {
        let origin = Origin::start(8080);
        for identity in Identity::all() {
            let folder = lab.folder("audit", identity);
            let (pipe, limited) = (folder.join("pipe"), folder.join("limited.jsonl"));
            for path in [&pipe, &limited] {
                fs::remove_file(path).ok();
            }
            nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
            let user = nix::unistd::Uid::from_raw(identity.uid());
            nix::unistd::chown(&pipe, Some(user), None).expect("an owner");
            // Open on both sides before anybody writes, and no more once it has read enough. Until
            // the reader is gone, a pipe holds another 64 KiB (pipe(7)): some 130 records.
            let ready = folder.join("ready");
            fs::remove_file(&ready).ok();
            let reader = format!(
                "(exec 9<>{}; touch {ready}; head -c 9000 <&9 >/dev/null) & \
                 until [ -e {ready} ]; do sleep 0.01; done;",
                pipe.display(),
                ready = ready.display(),
            );
            for (audit, first) in [(&pipe, reader.as_str()), (&limited, "ulimit -f 8;")] {
                let before = origin.arrivals().len();
                let request = "GET /ok HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n";
                let mut words = vec!["fetch", "127.0.0.1", "8080"];
                words.extend([request; 250]);
                let script = format!("{first} exec \"$@\"");
                let outcome = lab.sandbox(identity)
                    .option("--audit", &audit.to_string_lossy())
                    .allow("GET http://127.0.0.1:8080/ok")
                    .wrap(&["bash", "-c", &script, "bash"])
                    .probe(&words);
                let arrived = origin.arrivals().len() - before;
                let place = format!("{identity:?} {}: {outcome}", audit.display());
                assert!(arrived > 2 && arrived < 240, "{arrived} arrived: {place}");
                let lines = outcome.stderr.lines();
                let ours = lines.filter(|line| line.contains("the audit record cannot be written"));
                let ours: Vec<&str> = ours.collect();
                assert_eq!(ours.len(), 1, "{place}");
                assert!(ours[0].contains(&*audit.to_string_lossy()), "{place}");
            }
        }
    }

    fn without_a_record_there_is_no_effect(lab) {
        let origin = Origin::start(8080);
        for identity in Identity::all() {
            let sandbox = lab.sandbox(identity).option("--audit", "/dev/full").allow("GET http://127.0.0.1:8080/ok");
            let text = "GET /ok HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n";
            let outcome = sandbox.probe(&["fetch", "127.0.0.1", "8080", text]);
            assert_eq!(origin.arrivals(), [], "{identity:?} {outcome}");
        }
    }

    fn a_record_that_the_command_could_alter_is_refused_in_every_spelling(lab) {
        for identity in Identity::all() {
            let work = lab.folder("work", identity);
            let given = lab.folder("given", identity);
            let link = |name: &str, to: &Path| {
                let path = given.join(name);
                fs::remove_file(&path).ok();
                symlink(to, &path).expect("a link");
                path.to_string_lossy().into_owned()
            };
            fs::write(work.join("there.jsonl"), "").expect("a file");
            let user = nix::unistd::Uid::from_raw(identity.uid());
            nix::unistd::chown(&work.join("there.jsonl"), Some(user), None).expect("an owner");
            let inner = work.join("out");
            fs::remove_file(&inner).ok();
            symlink(&given, &inner).expect("a link");
            let name = format!("{}", work.file_name().expect("a name").display());
            let shared = format!("/dev/shm/outgate-record-{}.jsonl", std::process::id());
            for audit in [
                "run.jsonl", "./a/../run.jsonl", &format!("../{name}/run.jsonl"), &work.join("run.jsonl").to_string_lossy(),
                "/proc/self/cwd/run.jsonl", &format!("/proc/self/root{}/run.jsonl", work.display()), &work.to_string_lossy(),
                "out/run.jsonl", &link("file", &work.join("there.jsonl")), &link("dangling", &work.join("new.jsonl")),
                &format!("{}/run.jsonl", link("folder", &work)), "/proc/self/fd/3", "/dev/fd/3", &shared,
            ] {
                let sandbox = lab.sandbox(identity).option("-P", "dev-tools").option("--audit", audit);
                let script = "exec 3>>there.jsonl; exec \"$@\"";
                let outcome = sandbox.wrap(&["sh", "-c", script, "sh"]).run(&["true".to_owned()]);
                assert_eq!(outcome.code, Some(2), "{identity:?} {audit} {outcome}");
                assert!(outcome.stderr.contains("record"), "{audit} {outcome}");
            }
            let left: Vec<_> = fs::read_dir(&work).expect("a folder").flatten().map(|entry| entry.file_name()).collect();
            assert_eq!(left.len(), 2, "{identity:?}: {left:?}");
            assert_eq!(fs::read(work.join("there.jsonl")).expect("a file"), b"");
            assert!(!Path::new(&shared).exists());
            fs::remove_file(work.join("there.jsonl")).ok();
            fs::remove_file(&inner).ok();
        }
    }

    fn a_record_that_has_another_name_is_refused(lab) {
        for identity in Identity::all() {
            let (work, given) = (lab.folder("work", identity), lab.folder("given", identity));
            let (record, name) = (given.join("names.jsonl"), work.join("notes"));
            for path in [&record, &name] {
                fs::remove_file(path).ok();
            }
            fs::write(&record, "").expect("a file");
            let user = nix::unistd::Uid::from_raw(identity.uid());
            nix::unistd::chown(&record, Some(user), None).expect("an owner");
            fs::hard_link(&record, &name).expect("a hard link");
            let run = |audit: &Path| {
                let sandbox = lab.sandbox(identity).option("--audit", &audit.to_string_lossy());
                sandbox.run(&["sh", "-c", "echo altered > notes"].map(str::to_owned))
            };
            let link = given.join("way");
            fs::remove_file(&link).ok();
            symlink(&record, &link).expect("a link");
            for audit in [&record, &link] {
                let outcome = run(audit);
                assert_eq!(outcome.code, Some(2), "{identity:?} {outcome}");
                assert!(outcome.stderr.contains("2 names") && outcome.stderr.contains("hint: "), "{outcome}");
                assert_eq!(fs::read(&record).expect("a file"), b"", "{identity:?} {outcome}");
            }
            // With one name it is a record as any other.
            fs::remove_file(&name).expect("removed");
            let outcome = run(&record);
            assert_eq!(outcome.code, Some(0), "{identity:?} {outcome}");
            assert!(!fs::read_to_string(&record).expect("a file").contains("altered"));
            fs::remove_file(&name).ok();
        }
    }

    fn a_record_stays_where_it_was_when_the_run_began(lab) {
        // The way there leads through a link that the command may turn.
        let denied = Witness::start(&lab.directory);
        for identity in Identity::all() {
            let (work, given) = (lab.folder("work", identity), lab.folder("given", identity));
            let (first, second) = (lab.folder("first", identity), lab.folder("second", identity));
            let hop = given.join("hop");
            for path in [&hop, &work.join("turn")] {
                fs::remove_file(path).ok();
            }
            symlink(&first, work.join("turn")).expect("a link");
            symlink(work.join("turn"), &hop).expect("a link");
            let script = format!("ln -sfn {} turn && {} connect {}", second.display(), lab.tool("probe"), denied.address());
            let sandbox = lab.sandbox(identity).option("--audit", &hop.join("run.jsonl").to_string_lossy());
            let outcome = sandbox.run(&["sh".into(), "-c".into(), script]);
            let found = |folder: &Path| folder.join("run.jsonl").exists();
            assert!(!found(&second), "{identity:?}: the command chose the file {outcome}");
            assert!(found(&first) || outcome.code == Some(2), "{identity:?} {outcome}");
            fs::remove_file(work.join("turn")).ok();
        }
        denied.assert_untouched("a turned link");
    }
}
