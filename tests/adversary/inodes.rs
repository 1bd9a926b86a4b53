//! Unix servers of the command's own on every kind of file system: known by the
//! inode they are bound to, all of it, and nobody else's taken for one of them.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use outgate_harness::lab::is_mapped;
use outgate_harness::{Identity, Lab, lab_tests};

lab_tests! {
    fn an_outsider_whose_inode_number_ends_alike_is_never_reached(lab) {
        // Numbers of inodes are as long as the file system is large.
        let Some(disk) = disk(lab, "xfs", "9T") else { return };
        for identity in Identity::all() {
            let (theirs, ours) = twins(&disk, identity);
            let victim = Victim::at(&theirs.join("victim"));
            let number = fs::metadata(&victim.path).expect("the victim").ino().to_string();
            assert!(number.parse::<u64>().is_ok_and(|number| number > 0));
            let command = python(ALIKE, &[&victim.path, &ours, Path::new(&number)]);
            let ours = ours.to_string_lossy().into_owned();
            let outcome = lab.sandbox(identity).option("-w", &ours).run(&command);
            assert_eq!(outcome.stdout, "before 111\nalike\nafter 111\nown 0\n", "{identity:?} {outcome}");
            victim.assert_untouched(&format!("{identity:?} {outcome}"));
        }
    }

    fn own_unix_servers_are_known_on_every_file_system(lab) {
        for (name, folder) in file_systems(lab) {
            for identity in Identity::all() {
                let ours = folder.join(format!("ours-{}", identity.uid()));
                open_to_all(&ours);
                let command = python(SERVERS, &[&ours]);
                let ours = ours.to_string_lossy().into_owned();
                let outcome = lab.sandbox(identity).option("-w", &ours).run(&command);
                let expected = "plain b'served'\nbacklog b'served'\nagain b'served'\nrenamed b'served'\n\
                                linked b'served'\nrelative b'served'\nsibling b'served'\nchild b'served'\n\
                                nobody came\nclosed 111\n";
                assert_eq!(outcome.stdout, expected, "{name} {identity:?} {outcome}");
                assert!(!outcome.stderr.contains("outgate: denied"), "{name} {identity:?} {outcome}");
            }
        }
    }

    fn a_path_that_an_outsider_makes_anew_is_the_outsiders(lab) {
        for (name, folder) in file_systems(lab) {
            for identity in Identity::all() {
                let ours = folder.join(format!("anew-{}", identity.uid()));
                open_to_all(&ours);
                let server = ours.join("server");
                let command = python(ANEW, &[&server]);
                let ours = ours.to_string_lossy().into_owned();
                let mut run = lab.sandbox(identity).option("-w", &ours).with_input().start(&command);
                run.wait_for("listens");
                fs::remove_file(&server).expect("the command's own server");
                let victim = Victim::at(&server);
                run.say("go\n");
                let outcome = run.finish();
                assert_eq!(outcome.stdout, "listens 0\nanew 111\n", "{name} {identity:?} {outcome}");
                victim.assert_untouched(&format!("{name} {identity:?} {outcome}"));
            }
        }
    }

    fn a_proof_is_never_an_outsiders_connection(lab) {
        // A listener of the command's whose name leads to somebody who listens
        // already: to find that out, nobody is knocked at.
        let folder = lab.directory.join("names");
        open_to_all(&folder);
        let victim = Victim::at(&folder.join("victim"));
        for identity in Identity::all() {
            let ours = lab.folder("work", identity);
            let command = python(NAMED, &[&victim.path, &ours]);
            let outcome = lab.sandbox(identity).run(&command);
            assert_eq!(outcome.stdout, "listens\n111\n111\n", "{identity:?} {outcome}");
            victim.assert_untouched(&format!("{identity:?} {outcome}"));
        }
    }

    fn a_server_that_others_accept_at_meanwhile_stays_the_commands_own(lab) {
        for identity in Identity::all() {
            let ours = lab.folder("work", identity);
            let outcome = lab.sandbox(identity).run(&python(CROWD, &[&ours]));
            assert_eq!(outcome.stdout, "{b'served': 400}\n", "{identity:?} {outcome}");
        }
    }

    fn an_own_abstract_name_is_believed_only_while_it_is_ours(lab) {
        for identity in Identity::all() {
            let outcome = lab.sandbox(identity).run(&python(ABSTRACT, &[]));
            let lines: Vec<_> = outcome.stdout.lines().collect();
            assert_eq!(lines.last(), Some(&"closed 111"), "{identity:?} {outcome}");
        }
    }
}

/// Makes servers until one has the low 32 bits of the victim's number, then
/// connects to the victim.
const ALIKE: &str = "
import os, socket, sys
victim, ours, number = sys.argv[1], sys.argv[2], int(sys.argv[3])
def to(path):
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(5)
        result = client.connect_ex(path)
        if result == 0: client.send(b'LEAK')
        return result
print('before', to(victim))
kept = []
for turn in range(4096):
    server, path = socket.socket(socket.AF_UNIX), f'{ours}/{turn}'
    server.bind(path); kept.append(server)
    if os.stat(path).st_ino % 2**32 == number % 2**32:
        server.listen(4); print('alike'); break
print('after', to(victim))
print('own', to(path))
";

/// Servers in every shape; each is reached by its own command.
const SERVERS: &str = "
import os, socket, sys
os.chdir(sys.argv[1])
def made(path, backlog=4):
    server = socket.socket(socket.AF_UNIX); server.bind(path); server.listen(backlog); return server
def ask(server, path):
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(5)
        try: client.connect(path)
        except OSError as error: return error.errno
        there, _ = server.accept(); there.send(b'served'); there.close()
        return client.recv(9)
here = os.getcwd()
print('plain', ask(made(here + '/plain'), here + '/plain'))
print('backlog', ask(made(here + '/none', 0), here + '/none'))
again = made(here + '/again'); again.listen(7); print('again', ask(again, here + '/again'))
moved = made(here + '/before'); os.rename('before', 'after'); print('renamed', ask(moved, here + '/after'))
os.link('after', 'second'); print('linked', ask(moved, here + '/second'))
print('relative', ask(made('relative'), './relative'))
one, two = socket.socketpair()
if os.fork() == 0:
    _, (number,), _, _ = socket.recv_fds(two, 9, 1)
    server = socket.socket(fileno=number); server.listen(4); two.send(b'x'); two.recv(1)
    os._exit(0)
sibling = socket.socket(socket.AF_UNIX); sibling.bind(here + '/sibling')
socket.send_fds(one, [b'x'], [sibling.fileno()]); one.recv(1)
print('sibling', ask(sibling, here + '/sibling')); one.send(b'x'); os.wait()
child = made(here + '/child')
sys.stdout.flush()
if os.fork() == 0:
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(here + '/child'); print('child', client.recv(9), flush=True)
    os._exit(0)
there, _ = child.accept(); there.send(b'served'); there.close(); os.wait()
child.setblocking(False)
try: child.accept(); print('somebody came')
except BlockingIOError: print('nobody came')
child.close()
with socket.socket(socket.AF_UNIX) as client: print('closed', client.connect_ex(here + '/child'))
";

/// A server of the command's own, and its path once an outsider has it.
const ANEW: &str = "
import socket, sys
server = socket.socket(socket.AF_UNIX); server.bind(sys.argv[1]); server.listen(4)
def to(path):
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(5)
        result = client.connect_ex(path)
        if result == 0: client.send(b'LEAK')
        return result
print('listens', to(sys.argv[1]), flush=True)
sys.stdin.readline()
print('anew', to(sys.argv[1]))
";

/// A listener whose name leads to an outsider before it listens.
const NAMED: &str = "
import os, socket, sys
victim, own = sys.argv[1], sys.argv[2] + '/own'
server = socket.socket(socket.AF_UNIX); server.bind(own); os.unlink(own); os.symlink(victim, own)
server.listen(4); print('listens')
for path in own, victim:
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(5)
        print(client.connect_ex(path))
os.unlink(own)
";

/// Threads that accept all the while, servers that listen twice, many clients.
const CROWD: &str = "
import collections, os, socket, sys, threading
seen = collections.Counter()
def serve(server):
    while True:
        try: there, _ = server.accept()
        except OSError: continue
        try: there.send(b'served'); there.close()
        except OSError: pass
for turn in range(20):
    path = f'{sys.argv[1]}/crowd-{turn}'
    server = socket.socket(socket.AF_UNIX); server.bind(path)
    for _ in range(2): threading.Thread(target=serve, args=(server,), daemon=True).start()
    server.listen(4)
    for round in range(20):
        server.listen(round)
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(path); seen[client.recv(9)] += 1
    os.unlink(path)
print(dict(seen)); sys.stdout.flush(); os._exit(0)
";

/// An abstract name while a server has it, and afterwards. Where the kernel keeps
/// abstract names inside, a command's own may be refused too.
const ABSTRACT: &str = "
import socket
name = '\\0outgate-own-name'
server = socket.socket(socket.AF_UNIX); server.bind(name); server.listen(4)
with socket.socket(socket.AF_UNIX) as client: print('own', client.connect_ex(name))
server.close()
with socket.socket(socket.AF_UNIX) as client: print('closed', client.connect_ex(name))
";

fn python(script: &str, arguments: &[&Path]) -> Vec<String> {
    let words = ["python3", "-c", script].map(str::to_owned);
    let arguments = arguments.iter().map(|path| path.to_string_lossy().into());
    words.into_iter().chain(arguments).collect()
}

/// A server outside that nobody may reach.
struct Victim {
    path: PathBuf,
    listener: UnixListener,
}

impl Victim {
    fn at(path: &Path) -> Self {
        let listener = UnixListener::bind(path).expect("a path");
        fs::set_permissions(path, fs::Permissions::from_mode(0o777)).expect("a mode");
        listener.set_nonblocking(true).expect("O_NONBLOCK");
        Self {
            path: path.to_owned(),
            listener,
        }
    }

    fn assert_untouched(&self, what: &str) {
        assert!(
            self.listener.accept().is_err(),
            "somebody reached it: {what}"
        );
    }
}

/// A folder for everybody.
fn open_to_all(path: &Path) {
    fs::create_dir_all(path).expect("a folder");
    fs::set_permissions(path, fs::Permissions::from_mode(0o777)).expect("a mode");
}

/// Runs a program of the system; whether it did what it should.
fn did(program: &str, arguments: &[&str]) -> bool {
    let output = Command::new(program).args(arguments).output();
    let done = output.as_ref().is_ok_and(|output| output.status.success());
    if !done {
        outgate_harness::skip(&format!("{program} {arguments:?}: {output:?}"));
    }
    done
}

/// A file system of a kind in a file without content of its own.
fn disk(lab: &Lab, kind: &str, size: &str) -> Option<PathBuf> {
    if is_mapped() {
        outgate_harness::skip_here("only root mounts a disk");
        return None;
    }
    let (image, at) = (
        lab.directory.join(format!("{kind}-{size}.img")),
        lab.directory.join(format!("{kind}-{size}")),
    );
    open_to_all(&at);
    let (image, place) = (image.to_string_lossy(), at.to_string_lossy());
    // A log as large as XFS likes for such a disk, 2 GiB, would be written in full.
    let options: &[&str] = match kind {
        "xfs" => &["-q", "-l", "size=64m", &image],
        "ext4" => &["-qF", &image],
        _ => &["-q", &image],
    };
    let made = did("truncate", &["-s", size, &image])
        && did(&format!("mkfs.{kind}"), options)
        && did("mount", &["-o", "loop", &image, &place]);
    open_to_all(&at);
    made.then_some(at)
}

/// A folder on each kind of file system that people work on.
fn file_systems(lab: &Lab) -> Vec<(&'static str, PathBuf)> {
    let disks = [("xfs", "9T"), ("btrfs", "512M"), ("ext4", "64M")];
    let mut all: Vec<_> = disks
        .into_iter()
        .filter_map(|(kind, size)| Some((kind, disk(lab, kind, size)?)))
        .collect();
    let memory = lab.directory.join("memory");
    open_to_all(&memory);
    let place = memory.to_string_lossy().into_owned();
    if did("mount", &["-t", "tmpfs", "-o", "mode=0777", "none", &place]) {
        all.push(("tmpfs", memory.clone()));
    }
    let (lower, upper, work) = (
        lab.directory.join("lower"),
        memory.join("upper"),
        memory.join("work"),
    );
    let merged = lab.directory.join("merged");
    for folder in [&lower, &upper, &work, &merged] {
        open_to_all(folder);
    }
    let layers = format!(
        "lowerdir={},upperdir={},workdir={}",
        lower.display(),
        upper.display(),
        work.display()
    );
    let place = merged.to_string_lossy().into_owned();
    if did("mount", &["-t", "overlay", "-o", &layers, "none", &place]) {
        all.push(("overlayfs", merged));
    }
    all
}

/// Two folders whose inodes, and those of the files in them, have numbers that
/// differ in their upper 32 bits alone: such a file system takes a part of itself
/// for each new folder, by turns.
fn twins(disk: &Path, identity: Identity) -> (PathBuf, PathBuf) {
    let place = |number: u64| number & u64::from(u32::MAX) & !0x3fff;
    let mut known: Vec<(u64, PathBuf)> = Vec::new();
    (0..256)
        .find_map(|turn| {
            let path = disk.join(format!("part-{}-{turn}", identity.uid()));
            open_to_all(&path);
            let number = fs::metadata(&path).expect("a folder").ino();
            let is_twin = |other: u64| other >> 32 != number >> 32 && place(other) == place(number);
            let twin = known.iter().find(|(other, _)| is_twin(*other)).cloned();
            known.push((number, path.clone()));
            twin.map(|(_, twin)| (twin, path))
        })
        .expect("two folders alike")
}
