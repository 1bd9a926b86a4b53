//! The life of one control connection: policy in, questions answered, flows
//! and stub sockets taken over, summary out. A frame that breaks the contract
//! ends the session and with it every connection. Knows no network protocol.

use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex};

use outgate_handoff::{
    BeginFrame, HelloFrame, POLICY_BYTES_MAX, PROTOCOL, SOURCE_CHUNK_BYTES_MAX, ToLauncher,
};
use outgate_policy::{Context, Proxies, UPSTREAM_PROXY, compile};
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::audit::{Audit, AuditTarget, Event, Kind, Outcome};
use crate::broker::{Keeper, Renewal, SessionSecrets, Vault};
use crate::config::TlsFiles;
use crate::control::{ControlError, ControlSocket};
use crate::known::CredentialInventory;
use crate::resolve::System;
use crate::rules::SessionPolicies;
use crate::scan::Scans;
use crate::session::{Session, SessionParts};
use crate::text::shortened;
use crate::tls::{Tls, TlsKeys};
use crate::{ServeError, limits, memory};

mod change;
mod hearing;
mod opening;
mod timed;

pub(crate) use change::{PolicyChange, TextsInForce};
pub(crate) use hearing::SessionHearing;
pub(crate) use opening::{PolicyTexts, SessionOpening};
pub(crate) use timed::TimedTexts;

/// Version of this build; the launcher's must be the same.
pub(crate) const BUILD: &str = env!("CARGO_PKG_VERSION");

/// What all sessions of a gateway have in common.
#[derive(Debug)]
pub struct Gateway {
    pub(crate) audit: AuditTarget,
    pub(crate) system: Arc<System>,
    pub(crate) keys: Arc<TlsKeys>,
    pub(crate) proxies: Arc<Proxies>,
    pub(crate) inventory: Arc<CredentialInventory>,
    vault: Vault,
    keeper: Mutex<Option<Keeper>>,
}

impl Gateway {
    /// Reads what the machine says about names, the environment about proxies,
    /// and the files about TLS. To be done before the process confines itself,
    /// and not again.
    ///
    /// # Errors
    /// [`ServeError::UpstreamCa`], [`ServeError::Authority`],
    /// [`ServeError::Identity`]: a file that the operator named cannot be used.
    /// [`ServeError::UpstreamProxy`]: neither can the proxy it names.
    pub fn new(audit: AuditTarget, tls: &TlsFiles) -> Result<Self, ServeError> {
        let variable = |name: &str| std::env::var(name).ok();
        let (proxies, unusable) = Proxies::of_environment(variable);
        // The launcher says which of the customary ones cannot be used.
        if let Some(fault) = unusable
            .into_iter()
            .find(|one| one.variable == UPSTREAM_PROXY)
        {
            let fault = fault.error.to_string();
            return Err(ServeError::UpstreamProxy { fault });
        }
        Ok(Self {
            audit,
            system: Arc::new(System::read()),
            keys: Arc::new(TlsKeys::read(tls)?),
            proxies: Arc::new(proxies),
            inventory: Arc::default(),
            vault: Vault::default(),
            keeper: Mutex::default(),
        })
    }

    /// The same with secrets that the policies of its runs may name.
    #[must_use]
    pub(crate) fn with(mut self, vault: Vault, keeper: Option<Keeper>) -> Self {
        self.vault = vault;
        self.keeper = Mutex::new(keeper);
        self
    }

    /// The same with what its user holds.
    #[must_use]
    pub(crate) fn knowing(mut self, inventory: CredentialInventory) -> Self {
        self.inventory = Arc::new(inventory);
        self
    }

    /// Follows the keeper of the secrets of a session.
    fn renew(&self, session: &Session) -> std::io::Result<()> {
        let keeper = self.keeper.lock().ok().and_then(|mut slot| slot.take());
        if let (Some(keeper), Some(secrets)) = (keeper, session.secrets()) {
            let renewal = Renewal::new(keeper, self.vault.named())?;
            let secrets = Arc::clone(secrets);
            session
                .tasks()
                .spawn(async move { secrets.follow(renewal).await });
        }
        Ok(())
    }

    /// Serves one launcher until its sandbox is empty or it is gone.
    ///
    /// # Errors
    /// The launcher broke the contract, or the socket failed. Every connection
    /// of the sandbox is closed then, too.
    pub async fn serve(&self, socket: OwnedFd) -> Result<(), ControlError> {
        let control = Arc::new(ControlSocket::new(socket)?);
        let mut buffer = Vec::new();
        let opening = timeout(limits::HANDSHAKE_TIME, self.open(&control, &mut buffer));
        let Ok(opened) = opening.await else {
            return Err(ControlError::Order {
                what: "no policy in time",
            });
        };
        let Some((session, (texts, context))) = opened? else {
            return Ok(());
        };
        self.expect_origins(&session);
        memory::begun(session.tasks());
        let (changes, changed) = mpsc::channel(limits::CHANGES_MAX);
        let following = change::follow(Arc::clone(&session), (texts, context), changed);
        session.tasks().spawn(following);
        let hearing = SessionHearing::new(&control, changes, POLICY_BYTES_MAX);
        let result = hearing.run(&session, &mut buffer).await;
        session.close().await;
        match result {
            // A launcher that is gone ends its session, however that shows.
            Err(ControlError::Io(error)) if is_end(&error) => Ok(()),
            result => result,
        }
    }

    /// Reads the roots that vouch for origins beside everything else, where a rule is about
    /// requests inside TLS: the first of them would wait for that.
    fn expect_origins(&self, session: &Session) {
        if session.tls().is_some() && session.rules().own().has_https_rules() {
            let roots = Arc::clone(self.keys.roots());
            drop(tokio::task::spawn_blocking(move || drop(roots.store())));
        }
    }

    /// Receives and compiles the policy. `None` if there is nothing to serve.
    async fn open(
        &self,
        control: &Arc<ControlSocket>,
        buffer: &mut Vec<u8>,
    ) -> Result<Option<(Arc<Session>, (TimedTexts, Context))>, ControlError> {
        let Some(opening) = greet(control, buffer, POLICY_BYTES_MAX).await? else {
            return Ok(None);
        };
        let made = self.session(&opening, control);
        let session = answer_opening(control, made).await?;
        let context = context(&opening.begin);
        Ok(session.map(|session| (session, (opening.texts, context))))
    }

    fn session(
        &self,
        opening: &SessionOpening,
        control: &Arc<ControlSocket>,
    ) -> Result<Session, String> {
        let hello = &opening.hello;
        same_build(hello)?;
        let context = context(&opening.begin);
        let policy =
            compile(&opening.texts.sources, &context).map_err(|errors| errors.to_string())?;
        let audit = Audit::new(&self.audit, &hello.sandbox, hello.pid)
            .map_err(|error| format!("audit file: {error}"))?
            .kept_by(policy.settings());
        let rules = SessionPolicies::private(policy);
        let tls = opener(&rules, &hello.sandbox, &self.keys)?;
        let secrets = SessionSecrets::new(rules.own(), &self.vault)?.map(Arc::new);
        let inventory = Arc::clone(&self.inventory);
        let scans = Arc::new(Scans::of(&rules, secrets.as_deref(), &inventory)?);
        let session = Session::new(SessionParts {
            sandbox: hello.sandbox.clone(),
            rules,
            audit,
            control: Arc::clone(control),
            system: Arc::clone(&self.system),
            proxies: Arc::clone(&self.proxies),
            tls,
            secrets,
            scans,
            inventory,
            tenant: None,
            under_way: Arc::default(),
            ask_seconds: opening.begin.ask_seconds,
        });
        let event = Event::new(Kind::Start, Outcome::Note, "")
            .detail(&opening.begin.command)
            .scan(session.scans().inspecting())
            .mode(session.rules().enforcement());
        session.recorder().begin(&event)?;
        self.inventory
            .warnings()
            .for_each(|line| session.recorder().say(&line));
        self.renew(&session).map_err(|error| error.to_string())?;
        Ok(session)
    }
}

/// Receives an opening whose policy has at most `bytes_max` bytes.
pub(crate) async fn greet(
    control: &ControlSocket,
    buffer: &mut Vec<u8>,
    bytes_max: usize,
) -> Result<Option<SessionOpening>, ControlError> {
    SessionOpening::receive(control, buffer, bytes_max).await
}

/// What opens TLS in a session.
pub(crate) fn opener(
    rules: &SessionPolicies,
    sandbox: &str,
    keys: &TlsKeys,
) -> Result<Option<Arc<Tls>>, String> {
    if !rules.opens_tls() {
        return Ok(None);
    }
    let leaves = keys.leaves(sandbox)?;
    Ok(Some(Arc::new(Tls::new(leaves, keys))))
}

/// Answers an opening: the session runs, or a sentence why not.
pub(crate) async fn answer_opening(
    control: &ControlSocket,
    made: Result<Session, String>,
) -> Result<Option<Arc<Session>>, ControlError> {
    let made = match made {
        Ok(made) => made,
        Err(message) => {
            let message = shortened(&message, outgate_handoff::LINE_BYTES_MAX);
            control.send(&ToLauncher::Refused { message }).await?;
            return Ok(None);
        }
    };
    if let Some(lines) = made.secrets().map(|secrets| secrets.variables()) {
        control.send(&ToLauncher::Variables { lines }).await?;
    }
    let ready = ToLauncher::Ready {
        generation: made.generation(),
        build: BUILD.to_owned(),
        audit: made.recorder().audit_path(),
        hosts: host_lines(&made),
        authority: made
            .tls()
            .map(|tls| tls.pem().to_owned())
            .unwrap_or_default(),
    };
    control.send(&ready).await?;
    Ok(Some(Arc::new(made)))
}

/// Nothing is negotiated: both programs come from one build.
pub(crate) fn same_build(hello: &HelloFrame) -> Result<(), String> {
    if hello.protocol == PROTOCOL && hello.build == BUILD {
        return Ok(());
    }
    Err(format!(
        "launcher {} (protocol {}) and gateway {BUILD} (protocol {PROTOCOL}) are different \
         builds; install both from one release",
        hello.build, hello.protocol
    ))
}

/// The directories that a run's policy may name.
pub(crate) fn context(begin: &BeginFrame) -> Context {
    Context {
        home: begin.home.clone(),
        working_directory: begin.working_directory.clone(),
        private_directory: begin.private_directory.clone(),
        ..Context::default()
    }
}

fn is_end(error: &std::io::Error) -> bool {
    matches!(
        error.kind(),
        std::io::ErrorKind::BrokenPipe | std::io::ErrorKind::ConnectionReset
    )
}

/// Lines for a substituted hosts(5): the synthetic address of each name that a rule or
/// a pin names in full.
fn host_lines(session: &Session) -> String {
    let rules_in_force = session.rules();
    let policy = rules_in_force.own();
    let mut lines = String::new();
    for name in policy.named() {
        let Some(address) = session.synthetic_address(name) else {
            break;
        };
        let line = format!("{address} {name}\n");
        if lines.contains(&line) {
            continue;
        }
        if lines.len() + line.len() > SOURCE_CHUNK_BYTES_MAX {
            break;
        }
        lines.push_str(&line);
    }
    lines
}
