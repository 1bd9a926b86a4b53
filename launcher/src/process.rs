//! Who asks, as the kernel tells it (proc(5)): executable, ancestors, pending
//! signals, children. Reads only, except [`signal_tree`].

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use outgate_handoff::{PARENTS_MAX, PATH_BYTES_MAX, Parent, Process};

/// Processes of one tree looked at, at most.
const TREE_MAX: usize = 65536;

/// How much of a process's origin to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// The process alone.
    Itself,
    /// Its ancestors too.
    Ancestors,
}

/// Describes the process of a thread.
pub fn describe(thread: u32, depth: Depth) -> Process {
    Process {
        pid: thread,
        executable: executable(thread),
        parents: match depth {
            Depth::Itself => Vec::new(),
            Depth::Ancestors => ancestors(thread),
        },
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

fn ancestors(thread: u32) -> Vec<Parent> {
    let ourselves = std::process::id();
    let mut list = Vec::new();
    let mut pid = thread;
    while list.len() < PARENTS_MAX {
        let Some(parent) = parent(pid).filter(|parent| *parent > 1 && *parent != ourselves) else {
            break;
        };
        list.push(Parent {
            pid: parent,
            executable: executable(parent),
        });
        pid = parent;
    }
    // The guardian, our own process, is no ancestor anybody asks about.
    if list
        .last()
        .is_some_and(|last| parent(last.pid) == Some(ourselves))
    {
        list.pop();
    }
    list
}

/// Parent of a process: the field after the parenthesised name and the state
/// (proc_pid_stat(5)).
fn parent(pid: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_whitespace().nth(1)?.parse().ok()
}

/// Whether a handled signal waits for a thread: a call it blocks in should end.
pub fn interrupted(thread: u32) -> bool {
    let Ok(status) = std::fs::read_to_string(format!("/proc/{thread}/status")) else {
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

/// Process ids of a process's children.
pub fn children(pid: u32) -> Vec<u32> {
    let mut found = Vec::new();
    for thread in threads(pid) {
        let path = format!("/proc/{pid}/task/{thread}/children");
        let text = std::fs::read_to_string(path).unwrap_or_default();
        found.extend(
            text.split_whitespace()
                .filter_map(|pid| pid.parse::<u32>().ok()),
        );
    }
    found
}

fn threads(pid: u32) -> Vec<u32> {
    let entries = std::fs::read_dir(format!("/proc/{pid}/task"));
    entries.map_or_else(
        |_| Vec::new(),
        |entries| {
            entries
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
