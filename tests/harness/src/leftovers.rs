//! What is still there after a run: processes, listening sockets, mounts and
//! files. In a laboratory the tables in /proc show nothing but the test's own,
//! so "nothing left" can be asked exactly.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Longest time for everything to be gone after the launcher is.
const GONE_SECONDS_MAX: u64 = 5;

/// A process as /proc shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Process id.
    pub pid: i32,
    /// Id of its parent.
    pub parent: i32,
    /// Command name.
    pub name: String,
    /// State letter.
    pub state: char,
}

fn process(pid: i32) -> Option<Process> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (head, tail) = stat.rsplit_once(')')?;
    let (_, name) = head.split_once('(')?;
    let mut fields = tail.split_whitespace();
    let state = fields.next()?.chars().next()?;
    let parent = fields.next()?.parse().ok()?;
    Some(Process {
        pid,
        parent,
        name: name.to_owned(),
        state,
    })
}

/// Every process that is not dead already.
pub fn processes() -> Vec<Process> {
    let mut all = all();
    all.retain(|process| process.state != 'Z' && process.state != 'X');
    all
}

/// Every process that is dead, and that nobody waited for.
pub fn dead() -> Vec<Process> {
    let mut all = all();
    all.retain(|process| process.state == 'Z');
    all
}

fn all() -> Vec<Process> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter_map(process)
        .collect()
}

/// Sockets that exist: protocol and local address, or path.
fn sockets() -> Vec<String> {
    let mut all = Vec::new();
    for table in ["tcp", "tcp6", "udp", "udp6"] {
        let text = fs::read_to_string(format!("/proc/net/{table}")).unwrap_or_default();
        for line in text.lines().skip(1) {
            let mut fields = line.split_whitespace().skip(1);
            let (local, _, state) = (fields.next(), fields.next(), fields.next());
            // 06 is TIME_WAIT, which is no socket any more; closing ones go alone.
            if matches!(state, Some("0A" | "07" | "01")) {
                all.push(format!("{table} {}", local.unwrap_or_default()));
            }
        }
    }
    let text = fs::read_to_string("/proc/net/unix").unwrap_or_default();
    for line in text.lines().skip(1) {
        if let Some(path) = line.split_whitespace().nth(7) {
            all.push(format!("unix {path}"));
        }
    }
    all.sort();
    all
}

fn files(under: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(under).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() && !path.is_symlink() {
            files(&path, found);
        }
        found.push(path);
    }
}

/// What was there before a run.
#[derive(Debug)]
pub struct Before {
    processes: Vec<i32>,
    sockets: Vec<String>,
    mounts: String,
    folders: Vec<PathBuf>,
    files: Vec<PathBuf>,
}

impl Before {
    /// Notes what is there. `folders` must hold no new file afterwards.
    pub fn new(folders: Vec<PathBuf>) -> Self {
        let mut found = Vec::new();
        for folder in &folders {
            files(folder, &mut found);
        }
        Self {
            processes: processes().iter().map(|process| process.pid).collect(),
            sockets: sockets(),
            mounts: fs::read_to_string("/proc/self/mountinfo").unwrap_or_default(),
            folders,
            files: found,
        }
    }

    fn new_processes(&self) -> Vec<Process> {
        let mut new = processes();
        new.retain(|process| !self.processes.contains(&process.pid));
        new
    }

    fn new_sockets(&self) -> Vec<String> {
        let mut known = self.sockets.clone();
        let mut new = sockets();
        new.retain(|socket| match known.iter().position(|old| old == socket) {
            Some(at) => {
                known.swap_remove(at);
                false
            }
            None => true,
        });
        new
    }

    fn new_files(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        for folder in &self.folders {
            files(folder, &mut found);
        }
        found.retain(|path| !self.files.contains(path));
        found
    }

    /// Asserts that everything which came since is gone, soon.
    ///
    /// # Panics
    /// When something stays, naming it.
    pub fn assert_all_gone(&self) {
        self.assert_gone_but_files();
        assert_eq!(self.new_files(), Vec::<PathBuf>::new(), "files left behind");
    }

    /// The same without files, which nobody can remove after SIGKILL.
    ///
    /// # Panics
    /// When something stays, naming it.
    pub fn assert_gone_but_files(&self) {
        let gone = crate::eventually(Duration::from_secs(GONE_SECONDS_MAX), || {
            self.new_processes().is_empty() && self.new_sockets().is_empty()
        });
        let (processes, sockets) = (self.new_processes(), self.new_sockets());
        assert!(gone, "left behind: {processes:?} {sockets:?}");
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        assert_eq!(mounts, self.mounts, "mounts left behind");
    }
}
