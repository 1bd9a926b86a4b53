//! The loop that serves held calls: one thread, one poll, no call that waits but where the
//! command has the kernel wait. The end of the run is another thread's (`lifetime.rs`).
//!
//! Owns everything in flight. What a call means is in the
//! modules below; who is allowed is the gateway's to say.

mod bind;
mod change;
mod connect;
mod datagram;
mod decider;
mod hear;
mod late;
mod leave;
mod left;
mod listen;
mod lookup;
mod namespace;
mod open;
mod outside;
mod question;
mod ready;
mod schedule;
mod settle;
mod thread;
mod unix;
mod wait;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::PollFlags;
use outgate_handoff::{Decision, ToGateway};
use outgate_policy::ListenGrant;
use outgate_sys::alarm::CallAlarm;
use outgate_sys::seccomp::NotificationListener;

use crate::attributes::AttributeCalls;
use crate::call_socket::LastThread;
use crate::denials::DenialsFile;
use crate::filter::{Arch, HeldCalls as Numbers, attribute, is_namespace, scheduling};
use crate::gateway_link::GatewayLink;
use crate::lifetime::between::{SupervisorEnd, SupervisorMessage};
use crate::lookups::Lookups;
use crate::notification::Notification;
use crate::opened::OpenedFiles;
use crate::options::Summary;
use crate::own::OwnListeners;
use crate::redirect::Redirect;
use crate::ruleset::Reach;
use crate::sealed::SealedNetwork;
use crate::trust::Late;
use crate::trust::splice::Stores;
use crate::voice::Voice;

pub(crate) use change::ChangeSetting;
use change::Changes;
pub(crate) use decider::DeciderSetting;
pub use leave::Leaving;
pub use open::Substitutes;
use question::People;
pub(crate) use thread::{Aside, Prepared};
pub use unix::OutsideSockets;
use wait::{Arriving, Connecting, GatewayAnswer, HeldRoom, Knocking};

/// Verdicts remembered at most.
const VERDICTS_MAX: usize = 4096;
/// How often calls in flight are checked for signals and deadlines.
const TICK: Duration = Duration::from_millis(20);
/// How often it is tried whether a shared gateway is back.
const AGAIN_TICK: Duration = Duration::from_millis(250);
/// How long the gateway may take to answer. Longer than a name's resolution.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(15);

/// Everything a supervisor needs.
#[derive(Debug)]
pub(crate) struct SupervisorSetting {
    /// Where held calls arrive.
    pub listener: Arc<NotificationListener>,
    /// Process id of the guardian, the root of the command's tree.
    pub guardian: i32,
    /// What the thread that serves the end of the run says, and is told.
    pub lifetime: SupervisorEnd,
    /// The gateway: idle, or running already where the command could replace it.
    pub link: GatewayLink,
    /// Numbers of the held calls.
    pub numbers: Numbers,
    /// Whether the gateway starts beside the command.
    pub eager: Eager,
    /// Whether the summary is said at the end.
    pub summary: Summary,
    /// What is given in the place of files that the command opens.
    pub substitutes: Substitutes,
    /// Bundles of certificates that get their content when somebody opens one.
    pub late: Option<Late>,
    /// Where the command reads what was denied.
    pub denials: Option<DenialsFile>,
    /// Whether a rule grants a Unix socket outside.
    pub outside: OutsideSockets,
    /// Where the command may listen beside loopback.
    pub listen: Vec<ListenGrant>,
    /// What the command may reach.
    pub reach: Reach,
    /// What is looked for at the end.
    pub leaving: Option<Leaving>,
    /// The policy, and who may change it.
    pub changes: ChangeSetting,
    /// What the policy says of sandboxes that programs would make of their own.
    pub own_sandboxes: Vec<String>,
    /// A program of the user's that answers what no rule decides.
    pub decider: Option<DeciderSetting>,
}

/// When the gateway starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Eager {
    /// With the command.
    Yes,
    /// At the first question.
    No,
}

/// How many calls were held, by kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// `connect(2)`.
    pub connects: u64,
    /// `bind(2)`.
    pub binds: u64,
    /// `listen(2)`.
    pub listens: u64,
    /// `shutdown(2)` of more than sending.
    pub shutdowns: u64,
    /// `socket(2)` and `socketpair(2)` for datagrams.
    pub sockets: u64,
    /// `open(2)` and its kin.
    pub opens: u64,
    /// `chmod(2)`, `chown(2)`, `utimensat(2)`, `setxattr(2)`, `readlink(2)` and their kin.
    pub attributes: u64,
    /// `setpriority(2)`, `sched_setaffinity(2)` and their kin, about others.
    pub scheduling: u64,
    /// Anything else.
    pub others: u64,
}

impl Counters {
    /// All of them.
    fn total(self) -> u64 {
        let kinds = [self.connects, self.binds, self.listens, self.shutdowns];
        let rest = [
            self.sockets,
            self.opens,
            self.attributes,
            self.scheduling,
            self.others,
        ];
        let all = kinds.into_iter().chain(rest);
        all.fold(0, u64::saturating_add)
    }
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunOutcome {
    /// The exit status to give, as a shell shows it.
    pub status: u8,
    /// What was held.
    pub counters: Counters,
    /// What was said of denials.
    pub farewell: Farewell,
}

/// Whether a run ended with words about denials.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Farewell {
    /// Something was said.
    Said,
    /// Nothing was there to say.
    #[default]
    Nothing,
}

/// What comes of serving a command's calls.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ServedCalls {
    pub(crate) counters: Counters,
    pub(crate) farewell: Farewell,
    /// The status to give in place of the command's own.
    pub(crate) status: Option<u8>,
}

struct TimedDecision {
    decision: Decision,
    until: Instant,
}

/// The supervisor of one sandbox.
struct Supervisor<'a> {
    listener: Arc<NotificationListener>,
    numbers: Numbers,
    filter: FilterInUse,
    /// Process id of the guardian.
    root: u32,
    lifetime: SupervisorEnd,
    /// How the run ended, once no process of it is left.
    over: Option<u8>,
    link: GatewayLink,
    redirect: Redirect,
    own: OwnListeners,
    sealed: SealedNetwork<datagram::Asker>,
    /// Datagram sockets that were connected to where no way leads.
    unrouted: u64,
    /// The sealed namespace's port-53 sockets, for a gateway that comes back.
    stubs: Vec<OwnedFd>,
    verdicts: HashMap<(SocketAddr, String), TimedDecision>,
    last_thread: LastThread,
    generation: u64,
    asked: HashMap<u64, GatewayAnswer>,
    next_question: u64,
    arriving: Vec<Arriving>,
    connecting: Vec<Connecting>,
    knocking: Vec<Knocking>,
    settling: Vec<settle::Settling>,
    lookups: Lookups,
    looking: HashMap<u64, lookup::Looking>,
    opening: Vec<open::HostsOpening>,
    hosts: open::SubstitutedHosts,
    stores: Option<Stores>,
    opened: Option<OpenedFiles>,
    late: late::PendingCall,
    denials: Option<DenialsFile>,
    outside: OutsideSockets,
    listen: Vec<ListenGrant>,
    attributes: AttributeCalls,
    said: SaidOnce,
    summary: Option<String>,
    /// Where the record of the run is.
    record: Option<String>,
    leaving: Option<Leaving>,
    changes: Changes,
    own_sandboxes: Vec<String>,
    people: People,
    say_summary: Summary,
    next_tick: Instant,
    room: HeldRoom,
    counters: Counters,
    voice: &'a mut dyn Voice,
    /// Last, so that sockets of the command are closed before it.
    alarm: CallAlarm,
}

/// Whether any task still runs under the filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FilterInUse {
    Used,
    Unused,
}

/// What was said once and need not be said again.
#[derive(Default)]
struct SaidOnce {
    gateway: Once,
    gone: u32,
    sealed: Once,
    replaced: Once,
    privileged: Once,
    namespace: Once,
}

/// Whether something happened already.
#[derive(Debug, Default, PartialEq, Eq)]
enum Once {
    #[default]
    No,
    Yes,
}

/// Supervises until no process of the sandbox is left. `alarm` is what ends a call of ours
/// that the command has made wait ([`crate::limits::WAIT_MAX`]), and of this thread.
fn supervise(setting: SupervisorSetting, alarm: CallAlarm, voice: &mut dyn Voice) -> ServedCalls {
    let listener = setting.listener;
    // An older kernel wakes us more slowly and nothing else.
    drop(listener.wake_in_step());
    let room = wait::make_room();
    let mut supervisor = Supervisor {
        listener,
        numbers: setting.numbers,
        filter: FilterInUse::Used,
        root: u32::try_from(setting.guardian).unwrap_or(0),
        lifetime: setting.lifetime,
        over: None,
        link: setting.link,
        redirect: Redirect::default(),
        own: OwnListeners::new(room.servers),
        sealed: SealedNetwork::Idle,
        unrouted: 0,
        stubs: Vec::new(),
        verdicts: HashMap::new(),
        last_thread: LastThread::default(),
        generation: 0,
        asked: HashMap::new(),
        next_question: 1,
        arriving: Vec::new(),
        connecting: Vec::new(),
        knocking: Vec::new(),
        settling: Vec::new(),
        lookups: Lookups::default(),
        looking: HashMap::new(),
        opening: Vec::new(),
        hosts: open::SubstitutedHosts::new(setting.substitutes.hosts),
        stores: setting.substitutes.stores,
        opened: setting.substitutes.opened,
        late: late::PendingCall::new(setting.late, setting.eager),
        denials: setting.denials,
        outside: setting.outside,
        listen: setting.listen,
        attributes: AttributeCalls::new(setting.reach, setting.guardian),
        said: SaidOnce::default(),
        summary: None,
        record: None,
        leaving: setting.leaving,
        changes: Changes::new(setting.changes),
        own_sandboxes: setting.own_sandboxes,
        people: People::default(),
        say_summary: setting.summary,
        next_tick: Instant::now(),
        room,
        counters: Counters::default(),
        voice,
        alarm,
    };
    supervisor.start_decider(setting.decider);
    while supervisor.over.is_none() {
        supervisor.turn();
    }
    supervisor.finish()
}

impl Supervisor<'_> {
    /// Waits for something to happen and serves it.
    ///
    /// RACE: whether a call on a socket waits is the command's to say, at any
    /// time: `O_NONBLOCK` belongs to the open socket that it shares with us, and
    /// so does `SO_LINGER`, which has even close(2) wait. Whatever waits all the
    /// same, the alarm ends; it rings while calls are served, and only then.
    fn turn(&mut self) {
        let waited = self.is_waiting();
        let ready = self.wait(self.timeout());
        if ready.is_something() {
            self.alarm.set();
        }
        if ready.calls.contains(PollFlags::POLLIN) {
            self.take_call();
        } else if ready.calls.contains(PollFlags::POLLHUP) {
            self.alarm.stop();
            self.filter = FilterInUse::Unused;
        } else if !ready.calls.is_empty() {
            // KERNEL: a poll that a signal interrupts while it waits for the listener's lock
            // says POLLERR: nothing is known, and it is asked again without the alarm.
            self.alarm.stop();
        }
        if !ready.gateway.is_empty() {
            self.link.flush();
            self.hear();
        }
        if !ready.private.is_empty() {
            self.accept_arrivals();
        }
        self.serve_connecting(&ready.connecting);
        if !ready.sealed.is_empty() {
            self.serve_sealed();
        }
        if !ready.lookups.is_empty() {
            self.serve_lookups();
        }
        if !ready.lifetime.is_empty() {
            match self.lifetime.receive() {
                SupervisorMessage::CertificatesWanted => self.certificates_wanted(),
                SupervisorMessage::Over(status) => self.over = Some(status),
                SupervisorMessage::Nothing => {}
            }
        }
        if self.lifetime.has_left() {
            self.tell_what_is_left();
        }
        self.begin_beside();
        if !ready.watchers.is_empty() || self.people.are_behind() {
            self.serve_watchers();
        }
        self.serve_changes();
        if self.link.may_come_back() {
            self.attach_again();
        }
        let helpers = [
            self.link.pid(),
            self.sealed.pid(),
            self.lookups.pid(),
            self.people.decider_pid(),
        ];
        self.lifetime.helpers(helpers.map(|pid| pid.unwrap_or(0)));
        self.lifetime.held(self.counters.total());
        if !waited {
            // What began to wait just now was not interrupted since.
            self.next_tick = Instant::now().checked_add(TICK).unwrap_or(self.next_tick);
        }
        self.tick();
    }

    /// Whether any call waits for something.
    fn is_waiting(&self) -> bool {
        !self.asked.is_empty()
            || !self.arriving.is_empty()
            || !self.connecting.is_empty()
            || !self.knocking.is_empty()
            || !self.settling.is_empty()
            || !self.looking.is_empty()
            || !self.opening.is_empty()
            || self.attributes.is_waiting()
            || self.late.is_wanted()
            || self.changes.is_waiting()
            || self.people.are_behind()
    }

    /// Takes one held call; the next is taken after everything else had its turn.
    fn take_call(&mut self) {
        // Without one the caller died between poll and receive.
        if let Ok(held) = self.listener.receive() {
            let notification = Notification::new(&self.listener, held);
            self.dispatch(notification);
        }
    }

    fn dispatch(&mut self, notification: Notification) {
        let number = notification.held().number;
        let numbers = self.numbers;
        if number == numbers.connect {
            self.counters.connects = self.counters.connects.saturating_add(1);
            self.on_connect(notification);
        } else if number == numbers.bind {
            self.counters.binds = self.counters.binds.saturating_add(1);
            self.on_bind(notification);
        } else if number == numbers.listen {
            self.counters.listens = self.counters.listens.saturating_add(1);
            self.on_listen(notification);
        } else if number == numbers.shutdown {
            self.counters.shutdowns = self.counters.shutdowns.saturating_add(1);
            self.on_shutdown(notification);
        } else if number == numbers.socket {
            self.counters.sockets = self.counters.sockets.saturating_add(1);
            self.on_socket(notification);
        } else if number == numbers.socketpair {
            self.counters.sockets = self.counters.sockets.saturating_add(1);
            self.attributes.perform(notification);
        } else if number == numbers.ioctl {
            self.counters.others = self.counters.others.saturating_add(1);
            self.attributes.perform(notification);
        } else if [numbers.open, Some(numbers.openat)].contains(&Some(number)) {
            self.counters.opens = self.counters.opens.saturating_add(1);
            self.on_open(notification);
        } else if attribute(Arch::native(), number).is_some() {
            self.counters.attributes = self.counters.attributes.saturating_add(1);
            self.attributes.perform(notification);
        } else if let Some(name) = scheduling(Arch::native(), number) {
            self.counters.scheduling = self.counters.scheduling.saturating_add(1);
            self.on_scheduling(notification, name);
        } else if is_namespace(Arch::native(), number) {
            self.counters.others = self.counters.others.saturating_add(1);
            self.on_namespace(&notification);
            notification.fail(Errno::EPERM);
        } else {
            self.counters.others = self.counters.others.saturating_add(1);
            notification.fail(Errno::ENOSYS);
        }
    }

    /// Sends a frame; when the gateway is gone, says so once.
    fn tell(&mut self, frame: &ToGateway, descriptors: Vec<OwnedFd>) {
        self.link.send(frame, descriptors);
        self.notice_gateway();
    }
}
