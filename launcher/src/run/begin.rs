//! A run from the start of its command to its end: one thread serves the end, another the
//! held calls.

use std::sync::Arc;

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use outgate_handoff::status::PLACES_MAX;
use outgate_handoff::{NAME_BYTES_MAX, Status};
use outgate_policy::Policy;
use outgate_sys::seccomp::NotificationListener;
use outgate_sys::spawn::{Plan, SignalMask, Started};

use super::{RunError, RunOptions};
use crate::denials::DenialsFile;
use crate::filter::{Arch, held};
use crate::gateway_link::{GatewayLink, GatewayPlace, Opening};
use crate::lifetime::between::{SupervisorEnd, pair};
use crate::lifetime::{FORWARDED, Lifetime, ProcessTree};
use crate::options::Sealing;
use crate::presence::Presence;
use crate::private::PrivateDirectory;
use crate::ruleset::Reach;
use crate::run_error::start_error;
use crate::scarcity::Score;
use crate::supervisor::{
    ChangeSetting, DeciderSetting, Eager, Leaving, OutsideSockets, Prepared, RunOutcome,
    Substitutes, SupervisorSetting,
};
use crate::text::cut;
use crate::trust::Late;
use crate::voice::Voice;

/// What notes about such sandboxes have in common.
const OWN_SANDBOX: &str = "own sandbox";

/// A run whose command is to start.
pub(super) struct ReadyRun<'r> {
    pub(super) options: &'r RunOptions,
    pub(super) policy: &'r Policy,
    pub(super) link: GatewayLink,
    pub(super) reach: Reach,
    pub(super) substitutes: Substitutes,
    pub(super) late: Option<Late>,
    pub(super) denials: Option<DenialsFile>,
    pub(super) leaving: Option<Leaving>,
    pub(super) changes: ChangeSetting,
    pub(super) private: &'r PrivateDirectory,
    pub(super) score: Option<Score>,
}

impl ReadyRun<'_> {
    /// Starts the command and serves it until no process of it is left.
    ///
    /// # Errors
    /// It did not start; nothing is left running then.
    pub(super) fn serve<'scope>(
        mut self,
        plan: Plan,
        (signals, status): (SignalFd, Status),
        prepared: Prepared<'scope>,
        voice: &'scope mut dyn Voice,
    ) -> Result<RunOutcome, RunError> {
        let (for_lifetime, for_supervisor) = pair().map_err(thread_error)?;
        let decider = decider(self.options, &status.name);
        // A run that cannot be listed runs all the same.
        let presence = Presence::announce(status).ok();
        prepared.settle().map_err(thread_error)?;
        let raised = self.score.as_mut().map(Score::raise);
        let started = outgate_sys::spawn::start(plan);
        drop(raised);
        let started = started.map_err(|error| start_error(error, self.options))?;
        // Who waits for an order to end the command must not wait behind its crowd.
        outgate_sys::schedule::take_short_turns();
        let Started {
            listener,
            reports,
            guardian,
            command,
        } = started;
        let listener = Arc::new(NotificationListener::new(listener));
        let wall_time = self.policy.limits().wall_time;
        let tree = ProcessTree::new(reports, guardian, command, wall_time);
        let (calls, private) = (Arc::clone(&listener), self.private);
        let setting = self.setting((calls, guardian), for_supervisor, decider);
        let thread = prepared.begin(setting, voice);
        let mut lifetime = Lifetime::new(tree, listener, signals, presence, for_lifetime);
        let status = lifetime.serve();
        // While the supervisor looks at what the command left behind.
        private.clear();
        // Nobody of the command is left to have the supervisor wait. The guardian has mostly
        // ended by now.
        outgate_sys::process::end_guardian(guardian);
        let served = thread.join().unwrap_or_default();
        Ok(RunOutcome {
            status: served.status.unwrap_or(status),
            counters: served.counters,
            farewell: served.farewell,
        })
    }

    fn setting(
        self,
        (listener, guardian): (Arc<NotificationListener>, i32),
        lifetime: SupervisorEnd,
        decider: Option<DeciderSetting>,
    ) -> SupervisorSetting {
        let Self {
            options, policy, ..
        } = self;
        SupervisorSetting {
            listener,
            guardian,
            lifetime,
            link: self.link,
            numbers: held(Arch::native()),
            eager: if policy.reaches_out() {
                Eager::Yes
            } else {
                Eager::No
            },
            summary: options.summary,
            outside: if policy.allows_unix() {
                OutsideSockets::Granted
            } else {
                OutsideSockets::Closed
            },
            listen: policy.listen().to_vec(),
            substitutes: self.substitutes,
            late: self.late,
            denials: self.denials,
            leaving: self.leaving,
            changes: self.changes,
            decider,
            own_sandboxes: own_sandboxes(policy),
            reach: self.reach,
        }
    }
}

/// What answers in a person's place what no rule decides.
fn decider(options: &RunOptions, name: &str) -> Option<DeciderSetting> {
    let command = options.ask_with.clone()?;
    let name = name.to_owned();
    Some(DeciderSetting { command, name })
}

/// Notes of the policy about sandboxes that programs would make of their own.
fn own_sandboxes(policy: &Policy) -> Vec<String> {
    let notes = policy.notes().iter().map(|note| note.text.clone());
    notes.filter(|text| text.contains(OWN_SANDBOX)).collect()
}

/// The supervisor's thread cannot be had.
pub(super) fn thread_error(source: std::io::Error) -> RunError {
    RunError::Machine {
        what: "a thread for the command's calls",
        source,
    }
}

/// Blocks the signals that the launcher reads, in this thread and all that it starts, and
/// remembers what was blocked.
pub(super) fn signals() -> std::io::Result<(SignalFd, SignalMask)> {
    outgate_sys::process::hear_of_children()?;
    let before = outgate_sys::process::signal_mask()?;
    let mut set = SigSet::empty();
    let ours = [
        Signal::SIGTTIN,
        Signal::SIGTTOU,
        Signal::SIGCHLD,
        Signal::SIGIO,
        // A file that may not grow is an error of ours to tell, not our end.
        Signal::SIGXFSZ,
    ];
    for signal in FORWARDED.into_iter().chain(ours) {
        set.add(signal);
    }
    set.thread_block()?;
    let signals = SignalFd::with_flags(&set, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?;
    Ok((signals, before))
}

/// What the run says about itself to who asks.
pub(super) fn status(opening: &Opening, options: &RunOptions, policy: &Policy) -> Status {
    let mut places: Vec<String> = Vec::new();
    for source in &opening.sources {
        if !places.contains(&source.place) && places.len() < PLACES_MAX {
            places.push(cut(source.place.clone(), NAME_BYTES_MAX));
        }
    }
    let gateway = match &opening.whose {
        GatewayPlace::Private { .. } => String::new(),
        GatewayPlace::Shared(door) => door.path().display().to_string(),
    };
    let sealing = match options.sealing {
        Sealing::Sealed => "sealed",
        Sealing::Open => "",
    };
    Status {
        mode: policy.settings().enforcement.word().to_owned(),
        sealing: sealing.to_owned(),
        name: opening.sandbox.clone(),
        command: opening.begin.command.clone(),
        directory: opening.begin.working_directory.clone(),
        places,
        gateway,
        ..Status::default()
    }
}
