//! Modes, owners, times and extended attributes: changed where the command may
//! write, and nowhere else, whatever call asks and however the file is named.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use outgate_harness::{Identity, Lab, Outcome, Sandbox, lab_tests};

/// Every call by every name, and what each answered.
const EVERY_WAY: &str = include_str!("attributes.py");

/// What a file answers that the command may not change. `ELOOP`: the supervisor
/// follows no link of /proc.
const NOT_YOURS: &[&str] = &["EACCES", "EPERM", "ELOOP"];

fn python(script: &str, arguments: &[&Path]) -> Vec<String> {
    let mut command = vec![
        "/usr/bin/python3".to_owned(),
        "-c".to_owned(),
        script.to_owned(),
    ];
    let words = arguments.iter().map(|path| path.to_string_lossy());
    command.extend(words.map(std::borrow::Cow::into_owned));
    command
}

/// A folder with a file and a folder in it, all of which `identity` owns.
fn victims(place: &Path, identity: Identity) {
    std::fs::create_dir_all(place.join("folder")).expect("a folder");
    std::fs::write(place.join("file"), "private").expect("a file");
    for path in [place, &place.join("file"), &place.join("folder")] {
        if identity == Identity::Nobody {
            let id = Some(identity.uid());
            std::os::unix::fs::chown(path, id, id).expect("an owner");
        }
        let mode = std::fs::Permissions::from_mode(0o700);
        std::fs::set_permissions(path, mode).expect("a mode");
    }
}

/// When the inodes changed last (inode(7)): any change of an attribute is seen.
fn changed(place: &Path) -> Vec<(i64, i64, u32)> {
    let stat = |name: &str| std::fs::metadata(place.join(name)).expect("a file");
    let seen = ["file", "folder", "."].map(stat);
    let facts = seen.iter();
    facts
        .map(|stat| (stat.ctime(), stat.ctime_nsec(), stat.mode()))
        .collect()
}

/// The name of each report and its errno.
fn reports(outcome: &Outcome) -> Vec<(&str, &str)> {
    let lines = outcome.stdout.lines();
    lines.filter_map(|line| line.rsplit_once('=')).collect()
}

/// Runs every way outside, which works, and then in a sandbox.
fn every_way(lab: &Lab, identity: Identity, place: &Path) -> Outcome {
    let work = lab.folder("work", identity);
    let attack = python(EVERY_WAY, &[place, &work]);
    victims(place, identity);
    let bare = lab.start_bare(identity, &attack).finish();
    let tried = reports(&bare);
    assert!(tried.len() > 280, "{bare}");
    for (name, errno) in &tried {
        let may_lack = name.starts_with("newer");
        assert!(*errno == "0" || may_lack, "bare {name} works: {bare}");
    }
    victims(place, identity);
    let before = changed(place);
    let outcome = lab.sandbox(identity).run(&attack);
    assert_eq!(
        reports(&outcome).len(),
        tried.len(),
        "{identity:?} {outcome}"
    );
    if !place.starts_with(&work) {
        assert_eq!(changed(place), before, "{identity:?} {outcome}");
    }
    outcome
}

lab_tests! {
    fn attributes_outside_write_grants_are_changed_by_no_call_and_no_name(lab) {
        for identity in Identity::all() {
            let outcome = every_way(lab, identity, &lab.folder("victims", identity));
            for (name, errno) in reports(&outcome) {
                let newer = name.starts_with("newer") && ["ENOSYS", "ENOTSUP", "ENOTTY"].contains(&errno);
                assert!(newer || NOT_YOURS.contains(&errno), "{identity:?}: {name} answered {errno}\n{outcome}");
            }
        }
    }

    fn attributes_where_the_command_may_write_are_changed_by_every_call(lab) {
        for identity in Identity::all() {
            let place = lab.folder("work", identity).join("ours");
            let outcome = every_way(lab, identity, &place);
            for (name, errno) in reports(&outcome) {
                let expected = match name.split_once(' ') {
                    Some(("newer", rest)) if rest.starts_with("flags") || rest.starts_with("attributes") => "ENOTSUP",
                    Some(("newer", _)) => "ENOSYS",
                    _ => "0",
                };
                let lacks = expected == "ENOTSUP" && errno == "ENOTTY";
                assert!(errno == expected || lacks, "{identity:?}: {name} answered {errno}\n{outcome}");
            }
            let file = std::fs::metadata(place.join("file")).expect("the file");
            assert_eq!((file.mtime(), file.mtime_nsec()), (3, 4), "{identity:?} {outcome}");
            assert_eq!(file.mode() & 0o7777, 0o755, "{identity:?} {outcome}");
        }
    }

    fn a_link_that_is_swapped_leads_no_change_outside(lab) {
        for identity in Identity::all() {
            let (place, work) = (lab.folder("victims", identity), lab.folder("work", identity));
            victims(&place, identity);
            let before = changed(&place);
            let outcome = lab.sandbox(identity).run(&python(SWAPPED, &[&place.join("file"), &work]));
            assert_eq!(changed(&place), before, "{identity:?} {outcome}");
            let (done, refused) = (outcome.number("done="), outcome.number("refused="));
            assert!(done > 100 && refused > 100, "{identity:?} {outcome}");
        }
    }

    fn a_denied_path_within_a_grant_keeps_its_attributes(lab) {
        for identity in Identity::all() {
            let work = lab.folder("work", identity);
            let denied = work.join("denied");
            victims(&denied, identity);
            victims(&work.join("beside"), identity);
            let policy = lab.folder("policy", identity).join("deny.toml");
            let text = format!("[filesystem]\ndeny = [\"{}\"]\n", denied.display());
            std::fs::write(&policy, text).expect("a policy");
            let before = changed(&denied);
            let sandbox = lab.sandbox(identity).option("-p", &policy.to_string_lossy());
            let outcome = sandbox.run(&python(DENIED, &[&denied, &work]));
            assert_eq!(changed(&denied), before, "{identity:?} {outcome}");
            assert_eq!(outcome.stdout, "refused 9\ndone 1\n", "{identity:?} {outcome}");
        }
    }

    fn a_set_group_id_directory_stays_one_and_no_program_becomes_one(lab) {
        for identity in Identity::all() {
            let outcome = lab.sandbox(identity).run(&["sh", "-c", GROUPS].map(str::to_owned));
            assert_eq!(outcome.stdout, "2750 shared\n2755 again\n755 plain\n", "{identity:?} {outcome}");
        }
    }

    fn programs_that_keep_modes_and_times_work_where_they_may_write(lab) {
        let run = ["sh", "-c", PROGRAMS].map(str::to_owned);
        for identity in Identity::all() {
            let bare = lab.start_bare(identity, &run).finish();
            let outcome = Sandbox::plain(lab, identity).run(&run);
            assert!(bare.stdout.ends_with("all done\n"), "{bare}");
            assert_eq!(outcome.stdout, bare.stdout, "{identity:?} {outcome}");
        }
    }
}

/// Changes a file through a link that another thread turns from an own file to
/// the victim and back, and through a path that it rewrites.
const SWAPPED: &str = "
import ctypes, os, sys, threading
victim, work = os.fsencode(sys.argv[1]), os.fsencode(sys.argv[2])
LIBRARY = ctypes.CDLL(None, use_errno=True)
own = os.path.join(work, b'own'); open(own, 'w').close()
link, spare = os.path.join(work, b'link'), os.path.join(work, b'spare')
if os.path.lexists(link): os.unlink(link)
os.symlink(own, link)
path = ctypes.create_string_buffer(own, 4096)
over = threading.Event()
def swap():
    while not over.is_set():
        for target in (victim, own):
            os.symlink(target, spare); os.rename(spare, link)
            path.value = target
thread = threading.Thread(target=swap); thread.start()
done = refused = 0
for turn in range(100000):
    for name in (link, path):
        for result in (LIBRARY.chmod(name, 0o666), LIBRARY.utimensat(-100, name, None, 0),
                       LIBRARY.setxattr(name, b'user.x', b'1', 1, 0)):
            if result == 0: done += 1
            else: refused += 1
    if done > 2000 and refused > 2000: break
over.set(); thread.join()
print(f'done={done}'); print(f'refused={refused}')
";

/// Changes what is denied, by several names, and what lies beside it.
const DENIED: &str = "
import os, sys
denied, work = sys.argv[1:]
os.chdir(work)
place = os.open(denied, os.O_PATH)
refused = done = 0
for change in (
    lambda: os.chmod(denied, 0), lambda: os.chmod('denied/file', 0o666), lambda: os.chmod('file', 0o666, dir_fd=place),
    lambda: os.utime('denied/file'), lambda: os.utime('./denied/folder/../file', (1, 2)),
    lambda: os.chown('denied/folder', -1, os.getgid()), lambda: os.setxattr('denied/file', 'user.x', b'1'),
    lambda: os.removexattr('denied/file', 'user.x'), lambda: os.chmod(f'/proc/self/fd/{place}', 0),
    lambda: os.chmod('beside/file', 0o755),
):
    try: change(); done += 1
    except OSError: refused += 1
print('refused', refused); print('done', done)
";

/// Directories that hand their group on, and a program that must not.
const GROUPS: &str = "
rm -rf shared again plain; mkdir shared; chmod 2770 shared; chmod 750 shared
cp -rp shared again; chmod 2755 again
cp /bin/true plain; chmod 755 plain; chmod g+s plain 2>/dev/null; chmod 2711 plain 2>/dev/null
stat -c '%a %n' shared again plain
";

/// What people run: in the working directory and in TMPDIR, with the tools that
/// are there.
const PROGRAMS: &str = "
set -eu
: \"${TMPDIR:=$(mktemp -d)}\"
have() { command -v \"$1\" >/dev/null; }
for place in . \"$TMPDIR\"; do
    cd \"$place\"; rm -rf attributes; mkdir attributes; cd attributes
    mkdir from; echo one > from/one; ln -s one from/link; chmod 640 from/one; touch -d 2001-02-03 from/one
    touch -h -d 2001-02-03 from/link
    cp -p from/one kept; cp -a from copied; tar -cf archive from; mkdir out; tar -xpf archive -C out
    install -m 750 from/one installed; install -p -m 640 from/one same
    if have rsync; then rsync -a from/ synced/; stat -c '%a %Y' synced/one; fi
    if have git; then
        git init -q repository; cd repository; cp ../from/one .; chmod 755 one; git add one
        git -c user.name=a -c user.email=a@b commit -q -m one; git config core.fileMode; cd ..
    fi
    if have setfattr; then setfattr -n user.note -v 1 kept; cp --preserve=xattr kept noted; setfattr -x user.note kept; fi
    /usr/bin/python3 -c 'import os, shutil
shutil.copy2(\"kept\", \"again\"); os.utime(\"again\", ns=(5, 6)); os.chmod(\"again\", 0o600)
shutil.copytree(\"from\", \"tree\", symlinks=True); os.chown(\"again\", -1, -1)
with open(\"again\") as f: os.utime(f.fileno()); os.fchmod(f.fileno(), 0o644)'
    stat -c '%a %Y %n' kept copied/one copied/link out/from/one out/from/link same tree/one tree/link
    stat -c '%a %n' installed again
done
echo all done
";
