//! What links say and which extended attributes files have: read where the command
//! may read, and nowhere else, whatever call asks and however the file is named.

use std::collections::BTreeMap;
use std::os::unix::fs::{lchown, symlink};
use std::path::Path;
use std::time::{Duration, Instant};

use outgate_harness::{Identity, Lab, Outcome, Sandbox, lab_tests};

/// Every call by every name, and what each answered.
const EVERY_WAY: &str = include_str!("links.py");

/// What a hidden link says, which leads nowhere, and the name of what another one
/// leads to.
const SECRET: &str = "1577-secret-cookie-9384571029384";
const HIDDEN_NAME: &str = "a-name-nobody-told";

/// What is answered of what the command may not know. `ELOOP`: no link of another
/// process stands in the middle of a path.
const NOT_YOURS: &[&str] = &["EACCES", "ENOTSUP", "ELOOP", "ENOSYS"];

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

fn shell(script: &str) -> Vec<String> {
    ["sh", "-c", script].map(str::to_owned).into()
}

/// Links and files with attributes, all of which `identity` owns.
fn victims(place: &Path, identity: Identity) {
    std::fs::remove_dir_all(place).ok();
    std::fs::create_dir_all(place.join("folder")).expect("a folder");
    std::fs::write(place.join("file"), "private").expect("a file");
    std::fs::write(place.join(HIDDEN_NAME), "private").expect("a file");
    symlink(SECRET, place.join("cookie")).expect("a link");
    symlink(HIDDEN_NAME, place.join("pointer")).expect("a link");
    for name in ["file", "folder", "cookie", "pointer", HIDDEN_NAME, "."] {
        let id = Some(identity.uid());
        lchown(place.join(name), id, id).expect("an owner");
    }
    let note = "import os, sys\nfor name in ('file', 'folder'): os.setxattr(os.path.join(sys.argv[1], name), 'user.note', b'1577-secret-note')";
    let done = std::process::Command::new("/usr/bin/python3")
        .args(["-c", note])
        .arg(place)
        .status();
    assert!(
        done.expect("python").success(),
        "attributes of {}",
        place.display()
    );
}

/// The name of each report and what it says.
fn reports(outcome: &Outcome) -> BTreeMap<&str, &str> {
    let lines = outcome.stdout.lines();
    lines.filter_map(|line| line.split_once('=')).collect()
}

/// A run without options: the working directory and the system, nothing else.
fn plain(lab: &Lab, identity: Identity) -> Sandbox<'_> {
    Sandbox::plain(lab, identity)
}

lab_tests! {
    fn what_hidden_links_say_and_hidden_files_are_marked_with_is_told_by_no_call_and_no_name(lab) {
        for identity in Identity::all() {
            let (place, work) = (lab.folder("victims", identity), lab.folder("work", identity));
            victims(&place, identity);
            let attack = python(EVERY_WAY, &[&place, &work]);
            let bare = lab.start_bare(identity, &attack).finish();
            let tried = reports(&bare);
            assert!(tried.len() > 200, "{bare}");
            // A place has no attributes but by its link, which has none itself.
            let of_a_place = |name: &str, said: &str| {
                name.contains(" place") && ["EBADF", "ENODATA", "read "].contains(&said)
            };
            for (name, said) in &tried {
                let works = said.starts_with("read") || name.starts_with("newer");
                assert!(works || of_a_place(name, said), "bare {name} works: {bare}");
            }
            assert!(bare.stdout.matches(SECRET).count() > 30, "{bare}");
            assert!(bare.stdout.matches(HIDDEN_NAME).count() > 30, "{bare}");
            assert!(bare.stdout.matches("1577-secret-note").count() > 30, "{bare}");
            for without in ["", "nogetfd"] {
                let sandbox = plain(lab, identity);
                let tool = lab.tool(without);
                let sandbox = if without.is_empty() { sandbox } else { sandbox.wrap(&[&tool]) };
                let outcome = sandbox.run(&attack);
                let told = reports(&outcome);
                // What cannot be opened is asked for nothing.
                assert_eq!(told.len(), tried.len() - 1, "{identity:?} {outcome}");
                for (name, said) in told {
                    assert!(of_a_place(name, said) || NOT_YOURS.contains(&said), "{identity:?}: {name} answered {said}\n{outcome}");
                }
                for secret in [SECRET, HIDDEN_NAME, "1577-secret-note"] {
                    assert!(!outcome.stdout.contains(secret), "{identity:?} {outcome}");
                }
            }
        }
    }

    fn links_and_attributes_where_the_command_may_read_are_told_as_ever(lab) {
        for identity in Identity::all() {
            let work = lab.folder("work", identity);
            let place = work.join("ours");
            victims(&place, identity);
            let attack = python(EVERY_WAY, &[&place, &work]);
            let bare = lab.start_bare(identity, &attack).finish();
            for sandbox in [plain(lab, identity), lab.sandbox(identity)] {
                let outcome = sandbox.run(&attack);
                let expected = reports(&bare);
                for (name, said) in reports(&outcome) {
                    let (_, way) = name.split_once(':').expect("a way");
                    let ok = match expected.get(name) {
                        _ if name.starts_with("newer") => said == "ENOSYS",
                        _ if way.contains("without access") => said == "EACCES",
                        // By way of another process, for all that anybody sees.
                        _ if way.contains("root by number") => said == "ELOOP",
                        bare => bare == Some(&said),
                    };
                    assert!(ok, "{identity:?}: {name} answered {said}, bare {:?}\n{outcome}", expected.get(name));
                }
                assert!(outcome.stdout.matches(SECRET).count() > 30, "{identity:?} {outcome}");
                assert!(outcome.stdout.matches("1577-secret-note").count() > 30, "{identity:?} {outcome}");
            }
        }
    }

    fn hidden_links_on_the_way_to_a_grant_are_told_and_their_neighbours_are_not(lab) {
        for identity in Identity::all() {
            let work = lab.folder("work", identity);
            let place = lab.folder("ways", identity);
            let above = work.parent().expect("a directory above");
            for (name, target) in [("to-work", &*work), ("above", above), ("beside", &*lab.folder("victims", identity)), ("nowhere", Path::new(SECRET))] {
                std::fs::remove_file(place.join(name)).ok();
                symlink(target, place.join(name)).expect("a link");
            }
            let outcome = plain(lab, identity).run(&python(WAYS, &[&place, &work]));
            let expected = format!(
                "to-work {}\nabove {}\nbeside EACCES\nnowhere EACCES\nreal {}\nreal {}\n",
                work.display(), above.display(), work.display(), work.join("file").display(),
            );
            assert_eq!(outcome.stdout, expected, "{identity:?} {outcome}");
        }
    }

    fn a_denied_path_within_a_grant_keeps_what_its_links_say(lab) {
        for identity in Identity::all() {
            let work = lab.folder("work", identity);
            victims(&work.join("denied"), identity);
            victims(&work.join("beside"), identity);
            let policy = lab.folder("policy", identity).join("deny.toml");
            let text = format!("[filesystem]\ndeny = [\"{}\"]\n", work.join("denied").display());
            std::fs::write(&policy, text).expect("a policy");
            let sandbox = lab.sandbox(identity).option("-p", &policy.to_string_lossy());
            let outcome = sandbox.run(&python(DENIED, &[&work]));
            assert_eq!(outcome.stdout, "denied EACCES EACCES ENOTSUP ENOTSUP EACCES\nbeside told told told told told\n", "{identity:?} {outcome}");
            for name in ["denied", "beside"] {
                std::fs::remove_dir_all(work.join(name)).expect("no folder");
            }
        }
    }

    fn a_way_that_is_swapped_tells_no_hidden_link(lab) {
        for identity in Identity::all() {
            let (place, work) = (lab.folder("victims", identity), lab.folder("work", identity));
            victims(&place, identity);
            let milliseconds = outgate_harness::race_time().as_millis().to_string();
            let outcome = plain(lab, identity).run(&python(SWAPPED, &[&place, &work, Path::new(&milliseconds)]));
            let (told, refused) = (outcome.number("told="), outcome.number("refused="));
            assert!(told > 100 && refused > 100, "{identity:?} {outcome}");
            assert_eq!(outcome.number("leaked="), 0, "{identity:?} {outcome}");
        }
    }

    fn links_of_processes_outside_say_nothing_and_those_of_the_run_what_they_should(lab) {
        for identity in Identity::all() {
            let hidden = lab.folder("victims", identity).join(HIDDEN_NAME);
            std::fs::create_dir_all(&hidden).expect("a folder");
            let script = format!("cd {} && exec 3< . && echo ready $$ && exec sleep 60", hidden.display());
            let outside = lab.start_bare(identity, &shell(&script));
            let line = outside.wait_for("ready ");
            let number = line.lines().find_map(|line| line.strip_prefix("ready ")).expect("a number");
            let outcome = plain(lab, identity).run(&python(PROCESSES, &[Path::new(number.trim())]));
            assert!(!outcome.stdout.contains(HIDDEN_NAME), "{identity:?} {outcome}");
            assert!(!outcome.stdout.contains("outgate"), "{identity:?} {outcome}");
            assert!(outcome.stdout.ends_with("all done\n"), "{identity:?} {outcome}");
            outside.signal(nix::sys::signal::Signal::SIGKILL);
            outside.finish();
        }
    }

    fn a_file_system_that_does_not_answer_holds_up_nobody_else_for_ever(lab) {
        for identity in Identity::all() {
            let (place, work) = (lab.folder("hanging", identity), lab.folder("work", identity));
            let mounted = lab.start_bare(Identity::Own, &python(HANGING, &[&place]));
            if !outgate_harness::eventually(Duration::from_secs(5), || mounted.output().contains("mounted")) {
                let outcome = mounted.finish();
                return outgate_harness::skip_here(&format!("no FUSE here: {outcome}"));
            }
            let began = Instant::now();
            let run = plain(lab, identity).limit(Duration::from_secs(50)).run(&python(BESIDE, &[&place, &work]));
            mounted.signal(nix::sys::signal::Signal::SIGKILL);
            mounted.finish();
            assert!(run.stdout.starts_with("waited 12\n"), "{identity:?} {run}");
            // First all threads wait there, and then those that ask others are refused.
            assert!(run.stdout.ends_with("in time\n"), "{identity:?} {run}");
            assert!(began.elapsed() < Duration::from_secs(45), "{identity:?} {run}");
        }
    }

    fn programs_that_follow_links_work_in_an_ordinary_run(lab) {
        let run = shell(PROGRAMS);
        for identity in Identity::all() {
            let bare = lab.start_bare(identity, &run).finish();
            let outcome = plain(lab, identity).run(&run);
            assert!(bare.stdout.ends_with("all done\n"), "{bare}");
            assert_eq!(outcome.stdout, bare.stdout, "{identity:?} {outcome}");
        }
    }

    fn a_directory_that_the_command_may_not_search_tells_not_even_root_what_is_in_it(lab) {
        for identity in Identity::all() {
            let work = lab.folder("work", identity);
            let closed = work.join("closed");
            victims(&closed, identity);
            lchown(&closed, Some(54_321), Some(54_321)).expect("another owner");
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
            std::fs::set_permissions(&closed, mode).expect("closed");
            for name in ["file", "folder", "cookie", "nothing"] {
                // The kernel knows it from memory.
                drop(closed.join(name).symlink_metadata());
            }
            let outcome = plain(lab, identity).run(&python(CLOSED, &[&closed]));
            std::fs::remove_dir_all(&closed).expect("no folder");
            let expected = "file EACCES\nfolder EACCES\ncookie EACCES\nnothing EACCES\nfile/x EACCES\n".repeat(2);
            assert_eq!(outcome.stdout, format!("{expected}. EINVAL\n"), "{identity:?} {outcome}");
        }
    }

    fn a_read_link_answers_as_the_kernel_does(lab) {
        for identity in Identity::all() {
            let work = lab.folder("work", identity);
            let bare = lab.start_bare(identity, &python(ANSWERS, &[&work])).finish();
            let outcome = plain(lab, identity).run(&python(ANSWERS, &[&work]));
            assert!(bare.stdout.ends_with("all done\n"), "{bare}");
            assert_eq!(outcome.stdout, bare.stdout, "{identity:?} {outcome}");
        }
    }
}

/// Reads links of a hidden folder that lead to the grant, above it and elsewhere.
const WAYS: &str = "
import errno, os, sys
place, work = sys.argv[1:]
open(os.path.join(work, 'file'), 'w').close()
for name in ('to-work', 'above', 'beside', 'nowhere'):
    try: print(name, os.readlink(os.path.join(place, name)))
    except OSError as error: print(name, errno.errorcode[error.errno])
print('real', os.path.realpath(os.path.join(place, 'to-work')))
print('real', os.path.realpath(os.path.join(place, 'above', os.path.basename(work), 'file')))
";

/// Reads what is denied, and the same beside it.
const DENIED: &str = "
import errno, os, sys
os.chdir(sys.argv[1])
def told(read):
    try: return 'told' if read() else 'nothing'
    except OSError as error: return errno.errorcode[error.errno]
for name in ('denied', 'beside'):
    place = os.open(name, os.O_PATH)
    target = os.open('pointer', os.O_PATH, dir_fd=place)
    print(name, told(lambda: os.readlink(f'{name}/cookie')), told(lambda: os.readlink('pointer', dir_fd=place)),
          told(lambda: os.getxattr(f'{name}/file', 'user.note')), told(lambda: os.listxattr(f'{name}/folder')),
          told(lambda: os.readlink(f'/proc/self/fd/{target}')))
";

/// Reads a link by ways that another thread turns from an own folder to the hidden
/// one and back: a link on the way, the link itself, the text of the path, a
/// descriptor by its number.
const SWAPPED: &str = "
import ctypes, os, sys, threading, time
hidden, work = os.fsencode(sys.argv[1]), os.fsencode(sys.argv[2])
end = time.monotonic() + int(sys.argv[3]) / 1000
LIBRARY = ctypes.CDLL(None, use_errno=True)
own = os.path.join(work, b'own'); os.makedirs(own, exist_ok=True)
for name in (b'cookie', b'pointer'):
    if not os.path.lexists(os.path.join(own, name)): os.symlink(b'harmless', os.path.join(own, name))
open(os.path.join(own, b'harmless'), 'w').close()
way, spare = os.path.join(work, b'way'), os.path.join(work, b'spare')
for name in (way, spare):
    if os.path.lexists(name): os.unlink(name)
os.symlink(own, way)
text = ctypes.create_string_buffer(os.path.join(own, b'cookie'), 4096)
kept, number = os.open(os.path.join(own, b'harmless'), os.O_RDONLY), os.dup(0)
os.dup2(kept, number)
name = b'/proc/self/fd/%d' % number
place = os.open(os.path.join(hidden, b'pointer'), os.O_PATH)
over = threading.Event()
def swap():
    while not over.is_set():
        for target, file in ((hidden, place), (own, kept)):
            os.symlink(target, spare); os.rename(spare, way)
            text.value = os.path.join(target, b'cookie')
            os.dup2(file, number)
thread = threading.Thread(target=swap); thread.start()
told = refused = leaked = 0
room = ctypes.create_string_buffer(4096)
sys.setswitchinterval(0.0001)
while time.monotonic() < end or told < 200 or refused < 200:
    for path in (os.path.join(way, b'cookie'), os.path.join(way, b'pointer'), text, name):
        count = LIBRARY.readlink(path, room, 4096)
        said = room.raw[:max(count, 0)]
        if count == -1: refused += 1
        elif said == b'harmless' or said.endswith(b'/own/harmless'): told += 1
        else: leaked += 1; print('leaked', said)
over.set(); thread.join()
print(f'told={told}'); print(f'refused={refused}'); print(f'leaked={leaked}')
";

/// Reads links of a process outside, of the launcher, of itself and of a child.
const PROCESSES: &str = "
import os, sys, subprocess, threading
outside = sys.argv[1]
def read(path):
    try: return os.readlink(path)
    except OSError as error: return error.strerror
own = os.getpid()
launcher = os.getppid()
for number in (outside, launcher, 1):
    for link in ('exe', 'cwd', 'root', 'fd/0', 'fd/3', 'ns/net', f'task/{number}/cwd', 'map_files/0-1'):
        said = read(f'/proc/{number}/{link}')
        assert said in ('Permission denied', 'No such file or directory'), (number, link, said)
executable = os.path.realpath(sys.executable)
assert read('/proc/self') == str(own), read('/proc/self')
assert read('/proc/thread-self') == f'{own}/task/{own}'
here = []
thread = threading.Thread(target=lambda: here.append((read('/proc/thread-self'), threading.get_native_id(), read('/proc/thread-self/exe'))))
thread.start(); thread.join()
assert here == [(f'{own}/task/{here[0][1]}', here[0][1], executable)], here
for itself in ('/proc/self', '/proc/thread-self', f'/proc/{own}', f'/proc/self/task/{own}', '/proc/./self', '//proc/self'):
    assert read(f'{itself}/exe') == executable, (itself, read(f'{itself}/exe'))
    assert read(f'{itself}/cwd') == os.getcwd(), itself
    assert read(f'{itself}/root') == '/', itself
os.symlink('/proc/self', 'itself')
assert read('itself/exe') == executable
os.unlink('itself')
os.chdir('/proc')
assert read('self/exe') == executable
file = os.open('/usr/bin/env', os.O_RDONLY)
assert read(f'/proc/self/fd/{file}') == os.path.realpath('/usr/bin/env')
assert read(f'/dev/fd/{file}') == os.path.realpath('/usr/bin/env')
reading, writing = os.pipe()
assert read(f'/proc/self/fd/{reading}').startswith('pipe:['), read(f'/proc/self/fd/{reading}')
assert read(f'/proc/self/fd/{os.open(\"/usr\", os.O_PATH)}') == '/usr'
assert read('/dev/stdin') == '/proc/self/fd/0' and read('/dev/fd') == '/proc/self/fd'
assert read('/proc/mounts') == 'self/mounts'
assert read('/proc/self/fd/999') == 'No such file or directory'
child = subprocess.Popen(['/usr/bin/env', 'sleep', '30'], cwd='/usr', stdin=subprocess.PIPE)
import time
while not read(f'/proc/{child.pid}/exe').endswith(('sleep', 'coreutils')): time.sleep(0.01)
assert read(f'/proc/{child.pid}/cwd') == '/usr'
assert read(f'/proc/{child.pid}/fd/0').startswith('pipe:[')
child.kill(); child.wait()
assert os.path.realpath('/proc/self/exe') == executable
assert os.path.realpath('/proc/self/cwd') == '/proc', os.path.realpath('/proc/self/cwd')
print('all done')
";

/// A file system of which nothing is ever answered.
const HANGING: &str = "
import ctypes, os, sys, time
device = os.open('/dev/fuse', os.O_RDWR)
LIBRARY = ctypes.CDLL(None, use_errno=True)
options = f'fd={device},rootmode=40000,user_id=0,group_id=0,allow_other'.encode()
if LIBRARY.mount(b'hanging', os.fsencode(sys.argv[1]), b'fuse', 0, options) != 0:
    print('refused', os.strerror(ctypes.get_errno()), flush=True); sys.exit(1)
print('mounted', flush=True)
time.sleep(120)
";

/// Asks for what lies in a closed directory, by absolute paths.
const CLOSED: &str = "
import errno, os, sys
closed, = sys.argv[1:]
def ask(name):
    try: print(name, 'said', os.readlink(os.path.join(closed, name)))
    except OSError as error: print(name, errno.errorcode[error.errno])
for turn in range(2):
    for name in ('file', 'folder', 'cookie', 'nothing', 'file/x'): ask(name)
closed = os.path.dirname(closed)
ask('.')
";

/// Asks for links below it in twelve processes, and for others beside that.
const BESIDE: &str = "
import os, signal, sys, time
hanging, work = sys.argv[1:]
link = os.path.join(work, 'a-link')
if not os.path.lexists(link): os.symlink('said', link)
children = []
for one in range(12):
    child = os.fork()
    if child == 0:
        signal.alarm(30)
        try: os.readlink(os.path.join(hanging, 'x'))
        except OSError: pass
        os._exit(0)
    children.append(child)
print('waited', len(children), flush=True)
time.sleep(0.3)
answered = 0
for turn in range(3):
    began = time.monotonic()
    try: assert os.readlink(link) == 'said'
    except OSError as error: assert error.errno == 11, error
    assert time.monotonic() - began < 8, time.monotonic() - began
# Those that wait can be ended, and others are answered then.
for child in children: os.kill(child, signal.SIGKILL)
for child in children: os.waitpid(child, 0)
print('in time', flush=True)
";

/// What people run: with the tools that are there.
const PROGRAMS: &str = "
set -eu
have() { command -v \"$1\" >/dev/null; }
rm -rf links; mkdir links; cd links
mkdir -p from/deep; echo one > from/deep/one; ln -s deep/one from/link; ln -s ../../from from/deep/up; ln -s nowhere from/dangling
realpath from/link from/deep/up/link /bin/sh /etc/os-release; readlink -f from/deep/up/deep/up/link; readlink -e from/dangling || echo dangling
readlink -m /nothing/at/all; realpath -s from/link; readlink from/link from/dangling; pwd -P; (cd from/deep/up; pwd -P)
ls -l --time-style=+ from; ls -lZ from/link >/dev/null 2>&1 || true; ls -lL from >/dev/null 2>&1 || true
cp -a from copied; readlink copied/link copied/deep/up; cp -rL from/link followed; cat followed
tar -cf archive from; mkdir out; tar -xf archive -C out; readlink out/from/link; tar --xattrs -cf again from; tar --acls -tf again | sort
find from -type l -printf '%p %l\\n' | sort; find -L from/link; du -a from | wc -l
if have rsync; then rsync -a from/ synced/; readlink synced/link; rsync -aX from/ again-synced/; fi
if have git; then
    git init -q repository; cd repository; ln -s target link; echo 1 > file; git add .
    git -c user.name=a -c user.email=a@b commit -q -m one; git status --short; rm link; ln -s other link; git status --short; git diff | grep '^[+-][a-z]'
    git worktree add -q ../tree 2>/dev/null; cd ../tree; git rev-parse --show-toplevel; git status --short; readlink link; cd ..
fi
if have node; then
    node -e 'const fs = require(\"fs\"); console.log(fs.realpathSync(\"from/link\"), fs.realpathSync.native(\"from/deep/up/link\"), fs.readlinkSync(\"from/dangling\"))
try { fs.readlinkSync(\"from\") } catch (error) { console.log(error.code) }'
    mkdir -p modules/real modules/node_modules; echo 'module.exports = __filename' > modules/real/index.js; ln -s ../real modules/node_modules/named
    node -e 'console.log(require(\"./modules/node_modules/named\"))'
fi
/usr/bin/python3 -c 'import os, pathlib, shutil, tempfile
print(os.path.realpath(\"from/deep/up/link\"), pathlib.Path(\"from/link\").resolve(), os.path.realpath(\"from/dangling\"))
shutil.copytree(\"from\", \"tree-copy\", symlinks=True); print(os.readlink(\"tree-copy/link\")); print(os.listxattr(\"from\"))
print(os.path.realpath(\"/proc/self/exe\") == os.path.realpath(os.sys.executable))'
cd ..; rm -rf links
echo all done
";

/// Errors, sizes and texts of all lengths, as the kernel answers them.
const ANSWERS: &str = include_str!("answers.py");
