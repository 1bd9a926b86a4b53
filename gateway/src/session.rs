//! One sandbox as the gateway knows it: policy, names, records, open flows.
//! Nothing is shared between sessions except the machine's own name files.
//! Knows no protocol of the network.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};

use outgate_handoff::{AskTimes, ShareLimit};
use outgate_policy::{Host, HostName, Inspect, Proxies};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::timeout;

use crate::audit::{Audit, Event, Kind, Outcome};
use crate::broker::SessionSecrets;
use crate::budget::{Budgets, UsedGrants};
use crate::confine;
use crate::control::ControlSocket;
use crate::destination::{Destination, Party};
use crate::in_force::{CurrentPolicy, Scanned};
use crate::known::{Canaries, CredentialInventory};
use crate::limits;
use crate::names::{self, NameTable};
use crate::origin::{self, OriginPool};
use crate::recorder::{Governs, Recorder};
use crate::resolve::System;
use crate::rules::SessionPolicies;
use crate::scan::{SandboxScan, Scans};
use crate::tasks::{Tasks, UnderWay};
use crate::tenant::{PeerStanding, SharedSlot, Tenant, Turn};
use crate::tls::Tls;

mod post;
mod proposals;
mod questions;
mod unopened;
mod words;

use post::Post;
use proposals::Proposals;
pub(crate) use proposals::{EnteredProposal, Proposal, ProposalStage};
pub(crate) use questions::Asked;
use questions::Questions;
use unopened::Unopened;

/// What a session is made of.
#[derive(Debug)]
pub(crate) struct SessionParts {
    pub(crate) sandbox: String,
    pub(crate) rules: SessionPolicies,
    pub(crate) audit: Audit,
    pub(crate) control: Arc<ControlSocket>,
    pub(crate) system: Arc<System>,
    pub(crate) proxies: Arc<Proxies>,
    /// What opens TLS; nothing where the policy never opens it.
    pub(crate) tls: Option<Arc<Tls>>,
    /// What stays outside; nothing where the policy has no secrets.
    pub(crate) secrets: Option<Arc<SessionSecrets>>,
    /// What looks for credentials; nothing where the policy turns it off.
    pub(crate) scans: Arc<Scans>,
    /// What is known of the user's secrets.
    pub(crate) inventory: Arc<CredentialInventory>,
    pub(crate) tenant: Option<Tenant>,
    /// What is finished before the gateway ends.
    pub(crate) under_way: Arc<UnderWay>,
    /// How long a person is asked about what no rule decides.
    pub(crate) ask: AskTimes,
}

/// One sandbox. Lives as long as its control connection.
#[derive(Debug)]
pub(crate) struct Session {
    current: Arc<CurrentPolicy>,
    recorder: Arc<Recorder>,
    system: Arc<System>,
    origins: Arc<OriginPool>,
    secrets: Option<Arc<SessionSecrets>>,
    inventory: Arc<CredentialInventory>,
    names: Mutex<NameTable>,
    budgets: Arc<Budgets>,
    used_grants: Arc<UsedGrants>,
    open_questions: Questions,
    proposals: Proposals,
    post: Post,
    unopened: Mutex<Unopened>,
    flows: Arc<Semaphore>,
    flows_max: usize,
    questions: Arc<Semaphore>,
    tenant: Option<Tenant>,
    tasks: Arc<Tasks>,
    ending: watch::Sender<SessionStage>,
}

/// A place among the connections served at once, given back when dropped.
#[derive(Debug)]
pub(crate) struct FlowSlot {
    _own: OwnedSemaphorePermit,
    _shared: Option<SharedSlot>,
}

/// How far a sandbox is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SessionStage {
    Running,
    Ending,
}

impl Session {
    pub(crate) fn new(parts: SessionParts) -> Self {
        let flows_max = match &parts.tenant {
            None => confine::flows_possible(),
            Some(tenant) => tenant.flows_max(),
        };
        let names_max = match &parts.tenant {
            None => limits::NAMES_MAX,
            Some(_) => limits::SHARED_NAMES_MAX,
        };
        let idle_max = match &parts.tenant {
            None => limits::ORIGIN_IDLE_MAX,
            Some(tenant) => tenant.capacity().idle_origins,
        };
        let generation = parts.tenant.as_ref().map_or(1, Tenant::generation);
        let scanned = (parts.rules, parts.scans);
        let in_force = (scanned, generation);
        let current = CurrentPolicy::new(&parts.system, in_force, parts.under_way);
        let current = Arc::new(current);
        let flows = Arc::new(Semaphore::new(flows_max));
        let control = Arc::clone(&parts.control);
        let open_questions = Questions::new(parts.ask, flows_max, control);
        let governs: Arc<dyn Governs> = Arc::clone(&current) as _;
        let crowd = (Arc::clone(&flows), flows_max);
        let recorder = Arc::new(Recorder::new(governs, parts.audit, parts.control, crowd));
        let tasks = Arc::new(Tasks::default());
        let origins = OriginPool::new(origin::OriginParts {
            policy: Arc::<CurrentPolicy>::clone(&current),
            recorder: Arc::clone(&recorder),
            proxies: parts.proxies,
            tls: parts.tls,
            tasks: Arc::clone(&tasks),
            idle_max,
        });
        Self {
            current,
            recorder,
            system: parts.system,
            origins: Arc::new(origins),
            secrets: parts.secrets,
            inventory: parts.inventory,
            names: Mutex::new(NameTable::new(&parts.sandbox, names_max)),
            budgets: Arc::default(),
            used_grants: Arc::default(),
            open_questions,
            proposals: Proposals::default(),
            post: Post::default(),
            unopened: Mutex::default(),
            flows,
            flows_max,
            questions: Arc::new(Semaphore::new(limits::QUESTIONS_MAX)),
            tenant: parts.tenant,
            tasks,
            ending: watch::Sender::new(SessionStage::Running),
        }
    }

    /// The rules in force: to be asked anew for every decision.
    pub(crate) fn rules(&self) -> Arc<SessionPolicies> {
        self.recorder.rules()
    }

    /// Other rules with the scan that they ask for; what the one in force
    /// counted counts on.
    ///
    /// # Errors
    /// A sentence for the user: there is no such scan, so that nothing may pass
    /// under these rules.
    pub(crate) fn scanned(&self, rules: SessionPolicies) -> Result<Scanned, String> {
        let scans = Scans::of(&rules, self.secrets().map(Arc::as_ref), &self.inventory)?;
        Ok((rules, Arc::new(scans.after(&self.scans()))))
    }

    /// Rules under which nothing passes, and so nothing else has to be scanned.
    pub(crate) fn shut(&self) -> Scanned {
        (SessionPolicies::none(), self.scans())
    }

    /// Puts other rules in force, under the next generation, and tells the
    /// launcher. What runs goes on; what is kept for later use is dropped. `detail` is what
    /// happened, for the record.
    pub(crate) fn revise(&self, scanned: Scanned, detail: &str) {
        let generation = self.current.replace(&self.system, scanned);
        self.origins.clear();
        let event = Event::new(Kind::Policy, Outcome::Note, "").detail(detail);
        self.recorder.record(&event).ok();
        self.post.generation(generation);
    }

    /// Lets what runs go on and nothing new begin: the gateway ends.
    pub(crate) fn wind_down(&self) {
        self.current.wind_down();
        self.revise(
            (SessionPolicies::ending(), self.scans()),
            "the gateway is ending",
        );
    }

    /// What the launcher is to hear of its policy.
    pub(crate) fn post(&self) -> &Post {
        &self.post
    }

    /// The policy, which may be replaced.
    pub(crate) fn current(&self) -> &CurrentPolicy {
        &self.current
    }

    /// What its decisions are written down and told by.
    pub(crate) fn recorder(&self) -> &Arc<Recorder> {
        &self.recorder
    }

    /// What ends with it at the latest.
    pub(crate) fn tasks(&self) -> &Tasks {
        &self.tasks
    }

    pub(crate) fn control(&self) -> &Arc<ControlSocket> {
        self.recorder.control()
    }

    /// Whether the gateway has rights that the launcher's account may lack.
    pub(crate) fn standing(&self) -> PeerStanding {
        self.tenant
            .as_ref()
            .map_or(PeerStanding::Same, Tenant::standing)
    }

    /// What opens TLS, where the rules in force let it.
    pub(crate) fn tls(&self) -> Option<&Arc<Tls>> {
        self.origins.tls()
    }

    pub(crate) fn secrets(&self) -> Option<&Arc<SessionSecrets>> {
        self.secrets.as_ref()
    }

    /// What looks for credentials, as the rules in force have it.
    pub(crate) fn scans(&self) -> Arc<Scans> {
        Arc::clone(&self.current.now().scans)
    }

    /// The one of them that inspects by this mode; nothing where nothing is to be
    /// scanned.
    pub(crate) fn scan(&self, mode: Inspect) -> Option<Arc<SandboxScan>> {
        self.scans().by(mode).cloned()
    }

    pub(crate) fn generation(&self) -> u64 {
        self.recorder.generation()
    }

    pub(crate) fn origins(&self) -> &Arc<OriginPool> {
        &self.origins
    }

    /// The address that stands for a name; `None` when there are too many.
    pub(crate) fn synthetic_address(&self, name: &HostName) -> Option<Ipv4Addr> {
        self.names.lock().ok()?.assign(name)
    }

    /// The same for a name that the command asks for, and whether it asked
    /// before.
    pub(crate) fn asked(&self, name: &HostName) -> (Option<Ipv4Addr>, NameSeen) {
        let Ok(mut names) = self.names.lock() else {
            return (None, NameSeen::Before);
        };
        match names.assign(name) {
            Some(address) if names.is_news(address) => (Some(address), NameSeen::First),
            assigned => (assigned, NameSeen::Before),
        }
    }

    /// The name an address stands for.
    pub(crate) fn name_of(&self, address: Ipv4Addr) -> Option<HostName> {
        self.names.lock().ok()?.name(address).cloned()
    }

    /// Whom a connection to this address is meant to reach.
    pub(crate) fn destination(&self, address: SocketAddr) -> Destination {
        let ip = address.ip().to_canonical();
        let party = match ip {
            _ if names::is_synthetic(ip) => match ip {
                IpAddr::V4(v4) => self.name_of(v4).map_or(Party::Unassigned(ip), Party::Name),
                IpAddr::V6(_) => Party::Unassigned(ip),
            },
            _ => match self.system.hosts().names(ip) {
                [] => Party::Address(ip),
                listed => Party::Listed(ip, listed.to_vec()),
            },
        };
        Destination {
            party,
            port: address.port(),
            address: SocketAddr::new(ip, address.port()),
        }
    }

    /// The false credentials of this run.
    pub(crate) fn canaries(&self) -> Option<&Canaries> {
        self.inventory.canaries.as_ref()
    }

    /// What may still leave where rules say how much.
    pub(crate) fn budgets(&self) -> &Arc<Budgets> {
        &self.budgets
    }

    /// Rules that were granted for one request, and had it.
    pub(crate) fn used_grants(&self) -> &Arc<UsedGrants> {
        &self.used_grants
    }

    /// What a person is asked.
    pub(crate) fn open_questions(&self) -> &Questions {
        &self.open_questions
    }

    /// What the command proposed.
    pub(crate) fn proposals(&self) -> &Proposals {
        &self.proposals
    }

    /// Counts TLS that goes to a host with nobody looking into it.
    pub(crate) fn passed_unopened(&self, host: &Host) {
        let Ok(mut unopened) = self.unopened.lock() else {
            return;
        };
        unopened.add(host);
    }

    /// What nobody looked into, in words; nothing if there was none.
    pub(crate) fn unopened(&self) -> Option<String> {
        let unopened = self.unopened.lock().ok()?.words();
        let unscanned = self.scans().unscanned_bytes();
        let unscanned = (unscanned > 0)
            .then(|| format!("{unscanned} bytes left that could not be scanned for credentials"));
        match (unopened, unscanned) {
            (Some(unopened), Some(unscanned)) => Some(format!("{unopened}; {unscanned}")),
            (unopened, unscanned) => unopened.or(unscanned),
        }
    }

    /// A place among the connections served at once: of this sandbox, and in
    /// a shared gateway of its user and of all.
    ///
    /// # Errors
    /// The limit that leaves none.
    pub(crate) fn flow_slot(&self) -> Result<FlowSlot, ShareLimit> {
        let own = Arc::clone(&self.flows).try_acquire_owned();
        let own = own.map_err(|_| ShareLimit::ConnectionsPerSandbox)?;
        let shared = match &self.tenant {
            None => None,
            Some(tenant) => Some(tenant.flow_slot()?),
        };
        Ok(FlowSlot {
            _own: own,
            _shared: shared,
        })
    }

    /// Connections that are served, and how many may be.
    pub(crate) fn flows(&self) -> (usize, usize) {
        let free = self.flows.available_permits();
        (self.flows_max.saturating_sub(free), self.flows_max)
    }

    /// A place among the questions answered at once; waits for one.
    pub(crate) async fn question_slot(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.questions).acquire_owned().await.ok()
    }

    /// A place among the policies of one account that are compiled at once; waits for one.
    pub(crate) async fn compiling(&self) -> Option<OwnedSemaphorePermit> {
        match &self.tenant {
            None => None,
            Some(tenant) => tenant.opening().await,
        }
    }

    /// Stub sockets that it may have.
    pub(crate) fn stubs_max(&self) -> usize {
        let capacity = self.tenant.as_ref().map(Tenant::capacity);
        capacity.map_or(limits::STUBS_MAX, |own| own.stubs)
    }

    /// Which limit leaves no place for one more connection, in words.
    pub(crate) fn full(&self, limit: ShareLimit) -> String {
        let Some(capacity) = self.tenant.as_ref().map(Tenant::capacity) else {
            return format!("too many connections at once: {}", self.flows_max);
        };
        let (count, whose) = match limit {
            ShareLimit::ConnectionsPerSandbox => (capacity.flows_of_sandbox, "of one sandbox"),
            ShareLimit::ConnectionsPerUser => (capacity.flows_of_one, "of one user"),
            _ => (capacity.flows, "of all"),
        };
        let option = limit.option();
        format!(
            "too many connections at once: the gateway serves {count} {whose}; who runs it raises \
             that: `outgate gateway {option} N`"
        )
    }

    /// The turn to judge a request, where the judging of one account must not
    /// hold up others: policies can be made hard to judge.
    pub(crate) async fn turn(&self) -> Turn {
        match &self.tenant {
            None => Turn::free(),
            Some(tenant) => tenant.turn().await,
        }
    }

    /// Waits until what the command left behind is delivered, within a bound.
    pub(crate) async fn drain(&self) {
        self.ending.send_replace(SessionStage::Ending);
        let all = u32::try_from(self.flows_max).unwrap_or(u32::MAX);
        let done = self.flows.acquire_many(all);
        timeout(limits::FINISH_TIME, done).await.map(drop).ok();
    }

    /// Returns once the command has ended: nobody is left to read an answer.
    pub(crate) async fn ended(&self) {
        let mut stage = self.ending.subscribe();
        stage
            .wait_for(|stage| *stage == SessionStage::Ending)
            .await
            .map(drop)
            .ok();
    }

    /// Ends every task of the session: all its connections are closed, and
    /// their closing records written.
    pub(crate) async fn close(&self) {
        self.tasks.end().await;
        self.origins.clear();
    }
}

/// Whether a name was asked for before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NameSeen {
    Before,
    First,
}
