//! The program of the user's that answers what no rule decides (`--ask-with`): started beside
//! the command and outside of its confinement, by `outgate approve`, which watches this run
//! as a person does and speaks to it in lines. Nothing here waits for it, but at the end.

use std::os::fd::AsFd;
use std::path::Path;
use std::process::Child;

use nix::poll::{PollFd, PollFlags, poll};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use super::question::WatcherKind;
use super::{Once, Supervisor};
use crate::coprocess::start_program;

/// Our own program, whatever its name leads to by now (proc(5)).
const OWN_PROGRAM: &str = "/proc/self/exe";
/// How long a program that answers may take to end with its run, in milliseconds.
const END_WAIT_MS: u16 = 300;

/// What answers in a person's place.
#[derive(Debug, Clone)]
pub(crate) struct DeciderSetting {
    /// For a shell.
    pub(crate) command: String,
    /// Name of the run.
    pub(crate) name: String,
}

/// What was started for that, the first of a group of processes of its own.
#[derive(Debug)]
pub(super) struct DeciderChild {
    child: Child,
    /// Whether it was said that it answers no longer.
    told: Once,
}

impl DeciderChild {
    /// Its process id, as long as it is its own.
    pub(super) fn id(&self) -> Option<u32> {
        (self.told == Once::No).then(|| self.child.id())
    }

    /// Kills it with all of its group, and does not wait for that; whether it was not yet.
    pub(super) fn hung_up(&mut self) -> bool {
        self.kill();
        drop(self.child.try_wait());
        std::mem::replace(&mut self.told, Once::Yes) == Once::No
    }

    /// Once it was waited for, its number is somebody else's.
    fn kill(&mut self) {
        if self.told == Once::No
            && let Ok(group) = i32::try_from(self.child.id())
        {
            let _ = killpg(Pid::from_raw(group), Signal::SIGKILL);
        }
    }

    /// Ends it with all of its group: who hung up gave it the word before.
    pub(super) fn end(mut self) {
        if self.told == Once::No
            && let Ok(process) = outgate_sys::pidfd::open(self.child.id())
        {
            let mut polled = [PollFd::new(process.as_fd(), PollFlags::POLLIN)];
            let _ = poll(&mut polled, END_WAIT_MS);
        }
        self.kill();
        drop(self.child.wait());
    }
}

impl Supervisor<'_> {
    /// Starts what answers, which watches from the beginning.
    pub(super) fn start_decider(&mut self, setting: Option<DeciderSetting>) {
        let Some(DeciderSetting { command, name }) = setting else {
            return;
        };
        let (with, named) = (format!("--with={command}"), format!("--run={name}"));
        let words = ["approve", &named, &with];
        match start_program(Path::new(OWN_PROGRAM), &words, &[], &[]) {
            Ok((socket, child)) => {
                self.people.begin(DeciderChild {
                    child,
                    told: Once::No,
                });
                self.watch(
                    socket,
                    nix::unistd::geteuid().as_raw(),
                    WatcherKind::Program,
                );
            }
            Err(error) => self.voice.say(&format!(
                "outgate: the program of --ask-with cannot be started: {error}"
            )),
        }
    }
}
