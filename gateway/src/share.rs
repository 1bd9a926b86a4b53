//! A gateway for many runs: sockets accepted from a listener that was made
//! before, each a session of its own below one ceiling. Who connects is what
//! the kernel says of the socket's other end. Decides nothing itself.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use outgate_handoff::{LINE_BYTES_MAX, POLICY_BYTES_MAX, ShareLimit, ToLauncher, TokenFrame};
use outgate_policy::{Context, Proxies, Source};
use rustix::net::sockopt;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::audit::{Audit, AuditError, Event, Kind, Outcome, RecordOwner};
use crate::config::ShareLimits;
use crate::confine;
use crate::control::{self, ControlError, ControlSocket};
use crate::known::CredentialInventory;
use crate::limits;
use crate::proxy::{ExplicitProxy, TokenRegistry};
use crate::resolve::System;
use crate::rules::{Ceiling, SessionPolicies};
use crate::scan::{self, Scans};
use crate::serve::{
    self, Gateway, SessionHearing, SessionOpening, TextsInForce, TimedTexts, context, greet,
};
use crate::session::{Session, SessionParts};
use crate::tasks::UnderWay;
use crate::tenant::{Capacity, Full, GatewayTenants, Tenant};
use crate::text::shortened;
use crate::tls::TlsKeys;

mod admin;
mod at_work;
mod following;
mod overview;
mod page;
mod refused;
mod run_policy;
mod serving;
mod tokens;

pub(crate) use admin::OwnProcess;
use at_work::{SessionAtWork, SessionsAtWork};
use following::Following;
use page::{LivePage, PageListener};
use refused::RefusedSandboxes;
use run_policy::{RunPolicy, no_secrets};
use serving::{LastWord, Serving};

/// News of the policy of the gateway itself.
type Ceilings = watch::Receiver<Arc<Ceiling>>;

/// What all sessions of a shared gateway have in common.
#[derive(Debug)]
struct SharedGateway {
    ceiling: watch::Sender<Arc<Ceiling>>,
    generation: AtomicU64,
    context: Context,
    uid: u32,
    audit: Audit,
    system: Arc<System>,
    keys: Arc<TlsKeys>,
    proxies: Arc<Proxies>,
    inventory: Arc<CredentialInventory>,
    tenants: GatewayTenants,
    tokens: Arc<TokenRegistry>,
    started: Instant,
    /// Whether it finishes what runs and takes nothing new.
    ending: watch::Sender<bool>,
    under_way: Arc<UnderWay>,
    refused: RefusedSandboxes,
    process: OwnProcess,
    at_work: Arc<SessionsAtWork>,
    page: Option<Arc<LivePage>>,
}

/// The descriptors of a shared gateway, and what was opened before it was confined.
#[derive(Debug)]
pub(crate) struct ShareFront {
    /// Brings the gateway's policy, as a launcher brings a run's.
    pub(crate) control: OwnedFd,
    pub(crate) listeners: Listeners,
    pub(crate) process: OwnProcess,
    pub(crate) limits: ShareLimits,
}

/// Sockets that listen.
#[derive(Debug)]
pub(crate) struct Listeners {
    /// For launchers.
    pub(crate) runs: Option<OwnedFd>,
    /// For clients of the explicit proxy.
    pub(crate) proxy: Option<OwnedFd>,
    /// For who runs it and asks how it is.
    pub(crate) admin: Option<OwnedFd>,
    /// For their browser.
    pub(crate) page: Option<OwnedFd>,
}

/// Serves everybody who connects until the front says so or is gone.
///
/// # Errors
/// The front broke the contract, or a socket failed.
pub(crate) async fn share(gateway: &Gateway, front: ShareFront) -> Result<(), ControlError> {
    let control = ControlSocket::new(front.control)?;
    let mut buffer = Vec::new();
    let Some(opening) = greet(&control, &mut buffer, POLICY_BYTES_MAX).await? else {
        return Ok(());
    };
    let ending_time = front.limits.of(ShareLimit::DrainSeconds);
    let page = front.listeners.page.map(PageListener::of).transpose()?;
    let shown = page.as_ref().map(PageListener::page);
    let made = SharedGateway::new(&opening, gateway, (&front.limits, front.process), shown);
    let shared = match made {
        Ok(shared) => Arc::new(shared),
        Err(message) => {
            let message = shortened(&message, LINE_BYTES_MAX);
            return control.send(&ToLauncher::Refused { message }).await;
        }
    };
    // Accepting is the same for every Unix socket that connects.
    let listener = front.listeners.runs.map(admin::listener).transpose()?;
    let proxy = front.listeners.proxy;
    let proxy = proxy.map(|socket| ExplicitProxy::new(socket, &shared.tokens));
    let proxy = proxy.transpose()?;
    if let Some(admin) = front.listeners.admin {
        tokio::spawn(admin::serve(Arc::clone(&shared), admin::listener(admin)?));
    }
    if let Some(page) = page {
        tokio::spawn(page.serve(Arc::clone(&shared)));
    }
    let path = shared.audit.path().map(|path| path.to_string_lossy());
    let ready = ToLauncher::Ready {
        generation: 1,
        build: serve::BUILD.to_owned(),
        audit: path.map(std::borrow::Cow::into_owned).unwrap_or_default(),
        hosts: String::new(),
        authority: String::new(),
    };
    control.send(&ready).await?;
    let (stop, stopped) = watch::channel(());
    let mut serving = Serving {
        shared: Arc::clone(&shared),
        control,
        sessions: JoinSet::new(),
        stopped,
        ending_time: ending_time.map_or(limits::ENDING_TIME, seconds),
    };
    if let Some(proxy) = proxy {
        let stopped = serving.stopped.clone();
        serving.sessions.spawn(proxy.serve(stopped));
    }
    let heard = serving.serve(listener.as_ref(), &mut buffer).await;
    let Serving {
        control,
        mut sessions,
        ..
    } = serving;
    drop((listener, stop));
    let ended = async { while sessions.join_next().await.is_some() {} };
    timeout(limits::CLOSE_TIME, ended).await.ok();
    let event = Event::new(Kind::Finish, Outcome::Note, "").detail("shared gateway");
    shared.record(&event).ok();
    if heard? == LastWord::Finish {
        let lines = String::new();
        control.send(&ToLauncher::Summary { lines }).await?;
    }
    Ok(())
}

/// Ends a session whose launcher is still there.
async fn end(session: &Session, why: &str) {
    session.close().await;
    let event = Event::new(Kind::Finish, Outcome::Note, "").detail(why);
    session.recorder().record(&event).ok();
}

fn seconds(count: usize) -> Duration {
    Duration::from_secs(u64::try_from(count).unwrap_or(u64::MAX))
}

/// The policy of the gateway from its texts. Its scan is judged with it: under
/// one that cannot be made, nothing that runs could be looked into.
fn ceiling(sources: Vec<Source>, context: &Context, uid: u32) -> Result<Ceiling, String> {
    let ceiling = Ceiling::new(sources, context, uid).map_err(|errors| errors.to_string())?;
    scan::judge(&ceiling.alone())?;
    Ok(ceiling)
}

/// The answer to policy text with faults.
fn kept(error: &dyn std::fmt::Display) -> ToLauncher {
    let message = shortened(&error.to_string(), LINE_BYTES_MAX);
    ToLauncher::Kept { message }
}

impl SharedGateway {
    fn new(
        opening: &SessionOpening,
        gateway: &Gateway,
        (limits, process): (&ShareLimits, OwnProcess),
        page: Option<Arc<LivePage>>,
    ) -> Result<Self, String> {
        serve::same_build(&opening.hello)?;
        let uid = nix::unistd::geteuid().as_raw();
        let (sources, context) = (opening.texts.sources.clone(), context(&opening.begin));
        let port = page.as_ref().map(|page| page.port());
        let ceiling = ceiling(sources, &context, uid)?.closing(port);
        let unrecorded = |error: &dyn std::fmt::Display| format!("audit file: {error}");
        let audit = Audit::shared(&gateway.audit, uid)
            .map_err(|error| unrecorded(&error))?
            .kept_by(ceiling.settings());
        let event = Event::new(Kind::Start, Outcome::Note, "").detail("shared gateway");
        let written = audit.write(1, &event);
        written.map_err(|error| format!("{error} to {}", audit.fault()))?;
        let tenants = GatewayTenants::new(uid, Capacity::chosen(confine::open_files(), limits)?);
        Ok(Self {
            ceiling: watch::Sender::new(Arc::new(ceiling)),
            generation: AtomicU64::new(1),
            context,
            uid,
            audit,
            system: Arc::clone(&gateway.system),
            keys: Arc::clone(&gateway.keys),
            proxies: Arc::clone(&gateway.proxies),
            inventory: Arc::clone(&gateway.inventory),
            tenants,
            tokens: Arc::default(),
            started: Instant::now(),
            ending: watch::Sender::new(false),
            under_way: Arc::default(),
            refused: RefusedSandboxes::default(),
            process,
            at_work: Arc::default(),
            page,
        })
    }

    /// The number of the policy in force.
    fn generation(&self) -> u64 {
        self.generation.load(Ordering::Relaxed)
    }

    /// How many rules it has.
    fn rules(&self) -> usize {
        self.ceiling.borrow().rules()
    }

    fn record(&self, event: &Event<'_>) -> Result<(), AuditError> {
        self.audit.write(self.generation(), event)
    }

    /// Puts another policy in force for every session, or says why the one that
    /// is in force stays.
    async fn revise(&self, sources: Vec<Source>) -> ToLauncher {
        let (context, uid) = (self.context.clone(), self.uid);
        let port = self.page.as_ref().map(|page| page.port());
        let compiling = move || ceiling(sources, &context, uid).map(|own| own.closing(port));
        let compiled = tokio::task::spawn_blocking(compiling).await;
        let ceiling = match compiled {
            Ok(Ok(ceiling)) => ceiling,
            Ok(Err(message)) => return kept(&message),
            Err(error) => return kept(&error),
        };
        let generation = self.generation.fetch_add(1, Ordering::Relaxed) + 1;
        let detail = format!("shared gateway: {} rules", ceiling.rules());
        let event = Event::new(Kind::Policy, Outcome::Note, "").detail(&detail);
        self.record(&event).ok();
        let settings = ceiling.settings();
        self.audit
            .keep(settings.audit_full, settings.audit_file_bytes);
        self.ceiling.send_replace(Arc::new(ceiling));
        ToLauncher::Generation { generation }
    }

    /// Starts a session for who connected, or says why not.
    fn take(
        self: &Arc<Self>,
        socket: OwnedFd,
        stopped: &watch::Receiver<()>,
        sessions: &mut JoinSet<()>,
    ) {
        let Ok(peer) = sockopt::socket_peercred(&socket) else {
            return;
        };
        let pid = u32::try_from(peer.pid.as_raw_nonzero().get()).unwrap_or(0);
        // A command that got itself relayed to this socket would look like us.
        if pid == std::process::id() {
            return;
        }
        let admitted = if *self.ending.borrow() {
            Err(Full::Ending)
        } else {
            self.tenants.admit(peer.uid.as_raw(), Instant::now())
        };
        match admitted {
            Ok(tenant) => {
                let shared = Arc::clone(self);
                let stopped = stopped.clone();
                sessions.spawn(async move {
                    let uid = tenant.uid();
                    let ended = shared.attend(socket, pid, (tenant, None), stopped).await;
                    // How it ends is in the record, and the launcher's to say.
                    if let Some(closing) = ended.err().and_then(|error| error.stranger()) {
                        shared.tenants.bar(uid, closing, Instant::now());
                    }
                });
            }
            Err(full) => {
                self.refused.add(&full);
                control::refuse(&socket, &full);
            }
        }
    }

    async fn attend(
        &self,
        socket: OwnedFd,
        pid: u32,
        (tenant, token): (Tenant, Option<TokenFrame>),
        mut stopped: watch::Receiver<()>,
    ) -> Result<(), ControlError> {
        let (number, uid) = (tenant.session(), tenant.uid());
        let control = Arc::new(ControlSocket::new(socket)?);
        let mut buffer = Vec::new();
        let opening = timeout(
            limits::HANDSHAKE_TIME,
            self.open(&control, &mut buffer, pid, tenant),
        );
        let Ok(opened) = opening.await else {
            return Err(ControlError::Order {
                what: "no policy in time",
            });
        };
        let Some((session, (run, texts), ceilings)) = opened? else {
            return Ok(());
        };
        let (changes, changed) = mpsc::channel(limits::CHANGES_MAX);
        let following = Following {
            session: Arc::clone(&session),
            run,
            texts: TextsInForce::new(texts),
            ceilings,
            changes: changed,
            ending: self.ending.subscribe(),
        };
        session.tasks().spawn(following.follow());
        let _at_work = self.at_work.enter(SessionAtWork {
            number,
            name: session.recorder().audit().sandbox().to_owned(),
            uid,
            pid,
            of_token: token.is_some(),
            since: Instant::now(),
            session: Arc::downgrade(&session),
        });
        let token = token.map(|token| self.tokens.enter(token, &session));
        let bytes_max = limits::SHARED_POLICY_BYTES_MAX;
        let hearing = SessionHearing::new(&control, changes, bytes_max);
        let result = tokio::select! {
            result = hearing.run(&session, &mut buffer) => result,
            () = tokens::over(token.as_ref()) => {
                end(&session, "token expired").await;
                return Ok(());
            }
            _ = stopped.changed() => {
                // What was finished just now is still on its way to the command.
                session.drain().await;
                end(&session, "gateway ended").await;
                return Ok(());
            }
        };
        drop(token);
        session.close().await;
        if let Err(error) = &result {
            let detail = crate::chain(error);
            let event = Event::new(Kind::Finish, Outcome::Note, "").detail(&detail);
            session.recorder().record(&event).ok();
        }
        result
    }

    async fn open(
        &self,
        control: &Arc<ControlSocket>,
        buffer: &mut Vec<u8>,
        pid: u32,
        tenant: Tenant,
    ) -> Result<Option<(Arc<Session>, (RunPolicy, TimedTexts), Ceilings)>, ControlError> {
        // Policy text is held and compiled for a few of one account at once.
        let Some(place) = tenant.opening().await else {
            return Ok(None);
        };
        let bytes_max = limits::SHARED_POLICY_BYTES_MAX;
        let Some(opening) = greet(control, buffer, bytes_max).await? else {
            return Ok(None);
        };
        let run = RunPolicy {
            sources: opening.texts.sources.clone(),
            context: context(&opening.begin),
            uid: tenant.uid(),
        };
        let mut ceilings = self.ceiling.subscribe();
        let ceiling = Arc::clone(&ceilings.borrow_and_update());
        let rules = match serve::same_build(&opening.hello) {
            Ok(()) => run.rules(&ceiling).await,
            Err(message) => Err(message),
        };
        let made =
            rules.and_then(|rules| self.session(&opening, rules, Arc::clone(control), tenant));
        drop(place);
        let made = made.and_then(|session| {
            let detail = format!("{} (launcher {pid})", opening.begin.command);
            let event = Event::new(Kind::Start, Outcome::Note, "")
                .detail(&detail)
                .scan(session.scans().inspecting())
                .mode(session.rules().enforcement());
            session.recorder().begin(&event)?;
            Ok(session)
        });
        let answered = serve::answer_opening(control, made).await?;
        Ok(answered.map(|session| (session, (run, opening.texts), ceilings)))
    }

    fn session(
        &self,
        opening: &SessionOpening,
        rules: SessionPolicies,
        control: Arc<ControlSocket>,
        tenant: Tenant,
    ) -> Result<Session, String> {
        no_secrets(&rules)?;
        let tls = serve::opener(&rules, &opening.hello.sandbox, &self.keys)?;
        let scans = Arc::new(Scans::of(&rules, None, &self.inventory)?);
        let owner = RecordOwner {
            session: tenant.session(),
            uid: tenant.uid(),
        };
        Ok(Session::new(SessionParts {
            sandbox: opening.hello.sandbox.clone(),
            rules,
            audit: self.audit.of(&opening.hello.sandbox, owner),
            control,
            system: Arc::clone(&self.system),
            proxies: Arc::clone(&self.proxies),
            tls,
            secrets: None,
            scans,
            inventory: Arc::clone(&self.inventory),
            tenant: Some(tenant),
            under_way: Arc::clone(&self.under_way),
            ask: opening.begin.ask,
        }))
    }
}
