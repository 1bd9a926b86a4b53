//! Who asks, as the kernel tells it (proc(5)): executable, ancestors, pending
//! signals, children. Reads only, except [`signal_tree`].

use std::io::Read as _;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use outgate_handoff::{PARENTS_MAX, PATH_BYTES_MAX, Parent, ProcessFacts};

/// Processes of one tree looked at, at most.
const TREE_MAX: usize = 65536;

/// Threads of a process whose children are looked for, at most, where the nearest
/// processes are wanted soon.
const THREADS_MAX: usize = 16;

/// Generations looked at, at most: who is deeper within a tree counts as outside.
const GENERATIONS_MAX: usize = 1024;
/// How often a way up is begun anew.
const WALKS_MAX: usize = 3;

/// Bytes that hold the process id, name, state and parent of any process
/// (proc_pid_stat(5)): two numbers, a letter, and a name of 64 bytes at most.
const STAT_BYTES: usize = 256;
/// Bytes that hold the signals of nearly any process (proc_pid_status(5)).
const STATUS_BYTES: usize = 4096;
/// What follows the signals there.
const AFTER_SIGNALS: &str = "\nCapInh:";

/// Describes the process of a thread, without its ancestors.
pub fn describe(thread: u32) -> ProcessFacts {
    ProcessFacts {
        pid: thread,
        executable: executable(thread),
        parents: Vec::new(),
    }
}

/// Path of a process's executable; empty when it cannot be read.
pub fn executable(pid: u32) -> String {
    let link = std::fs::read_link(format!("/proc/{pid}/exe"));
    let text = link.map(|path| path.to_string_lossy().into_owned());
    text.ok()
        .filter(|text| text.len() <= PATH_BYTES_MAX)
        .unwrap_or_default()
}

/// Ancestors of the process whose parent is `parent`, nearest first, up to but
/// without the `root` of the tree.
pub fn ancestors(parent: Option<u32>, root: u32) -> Vec<Parent> {
    let mut list = Vec::new();
    let mut next = parent;
    while let Some(pid) = next.filter(|pid| *pid > 1 && *pid != root) {
        if list.len() == PARENTS_MAX {
            break;
        }
        list.push(Parent {
            pid,
            executable: executable(pid),
        });
        next = self::parent(pid);
    }
    list
}

/// Parent of a process: the field after the parenthesised name and the state
/// (proc_pid_stat(5)).
pub fn parent(pid: u32) -> Option<u32> {
    let stat = start_of::<STAT_BYTES>(&format!("/proc/{pid}/stat"))?;
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_whitespace().nth(1)?.parse().ok()
}

/// Whether a process or thread descends from the process `root`, and is not it.
pub fn is_below(pid: u32, root: u32) -> bool {
    (0..WALKS_MAX).any(|_| walk(pid, root) == Some(true))
}

/// Whether the way up from `pid` comes by `root`; `None` when it was lost, because
/// somebody on it ended and his children have another parent now.
fn walk(pid: u32, root: u32) -> Option<bool> {
    let mut next = pid;
    for _ in 0..GENERATIONS_MAX {
        if next <= 1 || next == root {
            return Some(next == root && pid != root);
        }
        next = parent(next)?;
    }
    Some(false)
}

/// What one read of a file gives, at most `BYTES` of it.
fn start_of<const BYTES: usize>(path: &str) -> Option<String> {
    let mut bytes = [0_u8; BYTES];
    let count = std::fs::File::open(path).ok()?.read(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(bytes.get(..count)?).into_owned())
}

/// Whether a process was stopped by a signal and did not go on (proc_pid_stat(5), state T).
pub fn stands_still(pid: i32) -> bool {
    let stat = start_of::<STATUS_BYTES>(&format!("/proc/{pid}/stat")).unwrap_or_default();
    let behind = stat.rsplit_once(')').map_or("", |(_, behind)| behind);
    behind.trim_start().starts_with('T')
}

/// The process that a thread belongs to.
pub fn leader(thread: u32) -> Option<u32> {
    let status = start_of::<STATUS_BYTES>(&format!("/proc/{thread}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("Tgid:"))?;
    line.trim().parse().ok()
}

/// The accounts of a process: real, effective, saved, and for files.
pub fn accounts(pid: u32) -> Option<[u32; 4]> {
    let status = start_of::<STATUS_BYTES>(&format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    let numbers = line.split_ascii_whitespace().map(str::parse);
    let numbers: Vec<u32> = numbers.collect::<Result<_, _>>().ok()?;
    numbers.try_into().ok()
}

/// Whether a handled signal waits for a thread: a call it blocks in should end.
pub fn interrupted(thread: u32) -> bool {
    let Some(status) = status(thread) else {
        return false;
    };
    let mask = |name: &str| {
        status
            .lines()
            .find_map(|line| line.strip_prefix(name))
            .and_then(|value| u64::from_str_radix(value.trim(), 16).ok())
            .unwrap_or(0)
    };
    let pending = mask("SigPnd:") | mask("ShdPnd:");
    pending & !mask("SigBlk:") & mask("SigCgt:") != 0
}

/// The status of a thread, at least up to its signals. They come after its
/// groups, of which there can be many thousands.
fn status(thread: u32) -> Option<String> {
    let path = format!("/proc/{thread}/status");
    let start = start_of::<STATUS_BYTES>(&path)?;
    if start.contains(AFTER_SIGNALS) {
        return Some(start);
    }
    std::fs::read_to_string(path).ok()
}

/// Process ids below `root`, nearest first, without `root`.
pub fn descendants(root: u32) -> Vec<u32> {
    let mut found = Vec::new();
    let mut next = 0;
    let mut current = Some(root);
    while let Some(pid) = current {
        found.extend(children(pid));
        if found.len() > TREE_MAX {
            break;
        }
        current = found.get(next).copied();
        next = next.saturating_add(1);
    }
    found
}

/// Process ids below `root`, nearest first, without `root`: `count` at most, and
/// only the children of the first few threads of each.
pub fn nearest_descendants(root: u32, count: usize) -> Vec<u32> {
    let mut found = Vec::new();
    let mut next = 0;
    let mut current = Some(root);
    while let Some(pid) = current
        && found.len() < count
    {
        found.extend(children_of(pid, THREADS_MAX));
        current = found.get(next).copied();
        next = next.saturating_add(1);
    }
    found.truncate(count);
    found
}

/// Process ids of a process's children.
pub fn children(pid: u32) -> Vec<u32> {
    children_of(pid, usize::MAX)
}

/// Process ids of the children of a process's first threads.
fn children_of(pid: u32, threads_max: usize) -> Vec<u32> {
    let mut found = Vec::new();
    for thread in threads(pid, threads_max) {
        let path = format!("/proc/{pid}/task/{thread}/children");
        let text = std::fs::read_to_string(path).unwrap_or_default();
        found.extend(
            text.split_whitespace()
                .filter_map(|pid| pid.parse::<u32>().ok()),
        );
    }
    found
}

fn threads(pid: u32, count: usize) -> Vec<u32> {
    let entries = std::fs::read_dir(format!("/proc/{pid}/task"));
    entries.map_or_else(
        |_| Vec::new(),
        |entries| {
            entries
                .take(count)
                .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
                .collect()
        },
    )
}

/// Sends `signal` to every process below `root`.
pub fn signal_tree(root: u32, signal: Signal) {
    for pid in descendants(root) {
        if let Ok(pid) = i32::try_from(pid) {
            let _ = kill(Pid::from_raw(pid), signal);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_of_a_thread_holds_its_signals() {
        let status = status(std::process::id()).unwrap();
        for name in ["SigPnd:", "ShdPnd:", "SigBlk:", "SigCgt:"] {
            assert!(status.contains(name), "{name} in {status}");
        }
    }

    #[test]
    fn a_process_has_its_accounts() {
        let own = nix::unistd::geteuid().as_raw();
        assert_eq!(accounts(std::process::id()), Some([own; 4]));
        assert_eq!(accounts(0), None);
    }

    #[test]
    fn a_parent_is_read_past_any_name() {
        let parent = parent(std::process::id());
        assert_eq!(parent, Some(std::os::unix::process::parent_id()));
    }

    #[test]
    fn a_process_is_below_its_ancestors_and_nobody_else() {
        let own = std::process::id();
        let above = std::os::unix::process::parent_id();
        assert!(is_below(own, above));
        assert!(!is_below(own, own));
        assert!(!is_below(above, own));
        assert!(!is_below(1, own));
        assert!(!is_below(u32::MAX, own));
        let here = std::thread::scope(|scope| {
            let inside = || is_below(nix::unistd::gettid().as_raw().cast_unsigned(), above);
            scope.spawn(inside).join().unwrap()
        });
        assert!(here, "a thread is");
    }

    #[test]
    fn ancestors_end_before_the_root_of_the_tree() {
        let own = std::process::id();
        let above = std::os::unix::process::parent_id();
        assert_eq!(ancestors(Some(above), above), []);
        let found = ancestors(Some(own), above);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found.first().map(|parent| parent.pid), Some(own));
    }
}
