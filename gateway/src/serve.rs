//! The life of one control connection: policy in, questions answered, flows
//! and stub sockets taken over, summary out. A frame that breaks the contract
//! ends the session and with it every connection. Knows no network protocol.

use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex};

use outgate_handoff::{
    Begin, Hello, POLICY_BYTES_MAX, PROTOCOL, Question, SOURCE_CHUNK_BYTES_MAX, ToGateway,
    ToLauncher,
};
use outgate_policy::{Context, HostName, Proxies, UPSTREAM_PROXY, compile};
use tokio::time::timeout;

use crate::audit::{Audit, AuditTarget, Event, Kind, Outcome};
use crate::broker::{Keeper, Renewal, Secrets, Vault};
use crate::config::TlsFiles;
use crate::control::{Control, ControlError};
use crate::known::Possessions;
use crate::resolve::System;
use crate::rules::Rules;
use crate::scan::Scans;
use crate::session::{Parts, Session};
use crate::text::shortened;
use crate::tls::{Keys, Tls};
use crate::{ServeError, accept, ask, limits, memory, stub};

mod opening;

use opening::expect_descriptors;
pub(crate) use opening::{Opening, Texts};

/// Version of this build; the launcher's must be the same.
pub(crate) const BUILD: &str = env!("CARGO_PKG_VERSION");

/// What all sessions of a gateway have in common.
#[derive(Debug)]
pub struct Gateway {
    pub(crate) audit: AuditTarget,
    pub(crate) system: Arc<System>,
    pub(crate) keys: Arc<Keys>,
    pub(crate) proxies: Arc<Proxies>,
    pub(crate) possessions: Arc<Possessions>,
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
            keys: Arc::new(Keys::read(tls)?),
            proxies: Arc::new(proxies),
            possessions: Arc::default(),
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
    pub(crate) fn knowing(mut self, possessions: Possessions) -> Self {
        self.possessions = Arc::new(possessions);
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
        let control = Arc::new(Control::new(socket)?);
        let mut buffer = Vec::new();
        let opening = timeout(limits::HANDSHAKE_TIME, self.open(&control, &mut buffer));
        let Ok(opened) = opening.await else {
            return Err(ControlError::Order {
                what: "no policy in time",
            });
        };
        let Some(session) = opened? else {
            return Ok(());
        };
        self.expect_origins(&session);
        memory::begun(session.tasks());
        let result = run(&session, &control, &mut buffer).await;
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
        control: &Arc<Control>,
        buffer: &mut Vec<u8>,
    ) -> Result<Option<Arc<Session>>, ControlError> {
        let Some(opening) = greet(control, buffer, POLICY_BYTES_MAX).await? else {
            return Ok(None);
        };
        let made = self.session(&opening, control);
        answer_opening(control, made).await
    }

    fn session(&self, opening: &Opening, control: &Arc<Control>) -> Result<Session, String> {
        let hello = &opening.hello;
        same_build(hello)?;
        let context = context(&opening.begin);
        let policy = compile(&opening.sources, &context).map_err(|errors| errors.to_string())?;
        let audit = Audit::new(&self.audit, &hello.sandbox, hello.pid)
            .map_err(|error| format!("audit file: {error}"))?
            .kept_by(policy.settings());
        let rules = Rules::private(policy);
        let tls = opener(&rules, &hello.sandbox, &self.keys)?;
        let secrets = Secrets::new(rules.own(), &self.vault)?.map(Arc::new);
        let possessions = Arc::clone(&self.possessions);
        let scans = Arc::new(Scans::of(&rules, secrets.as_deref(), &possessions)?);
        let session = Session::new(Parts {
            sandbox: hello.sandbox.clone(),
            rules,
            audit,
            control: Arc::clone(control),
            system: Arc::clone(&self.system),
            proxies: Arc::clone(&self.proxies),
            tls,
            secrets,
            scans,
            possessions,
            tenant: None,
        });
        let event = Event::new(Kind::Start, Outcome::Note, "")
            .detail(&opening.begin.command)
            .scan(session.scans().weighs());
        session.recorder().begin(&event)?;
        self.possessions
            .warnings()
            .for_each(|line| session.recorder().say(&line));
        self.renew(&session).map_err(|error| error.to_string())?;
        Ok(session)
    }
}

/// Receives an opening whose policy has at most `bytes_max` bytes.
pub(crate) async fn greet(
    control: &Control,
    buffer: &mut Vec<u8>,
    bytes_max: usize,
) -> Result<Option<Opening>, ControlError> {
    Opening::receive(control, buffer, bytes_max).await
}

/// What opens TLS in a session.
pub(crate) fn opener(
    rules: &Rules,
    sandbox: &str,
    keys: &Keys,
) -> Result<Option<Arc<Tls>>, String> {
    if !rules.opens_tls() {
        return Ok(None);
    }
    let leaves = keys.leaves(sandbox)?;
    Ok(Some(Arc::new(Tls::new(leaves, keys))))
}

/// Answers an opening: the session runs, or a sentence why not.
pub(crate) async fn answer_opening(
    control: &Control,
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
pub(crate) fn same_build(hello: &Hello) -> Result<(), String> {
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
pub(crate) fn context(begin: &Begin) -> Context {
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

/// Lines for a substituted hosts(5): the stand-in of each name that a rule or
/// a pin names in full.
fn host_lines(session: &Session) -> String {
    let rules_in_force = session.rules();
    let policy = rules_in_force.own();
    let rules = policy.rules().filter_map(|rule| named_host(&rule.text));
    let pins = policy.pinned().cloned();
    let mut lines = String::new();
    for name in rules.chain(pins) {
        let Some(address) = session.stand_in(&name) else {
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

/// The host of a rule's text, if it is one name in full.
fn named_host(text: &str) -> Option<HostName> {
    let target = text.rsplit(' ').next()?;
    let target = target.split_once("://").map_or(target, |(_, rest)| rest);
    let host = target.split(['/', ':', '?']).next()?;
    let name = HostName::parse(host).ok()?;
    (name.as_str() != "localhost").then_some(name)
}

/// Serves a session until its sandbox is empty or its launcher gone.
pub(crate) async fn run(
    session: &Arc<Session>,
    control: &Arc<Control>,
    buffer: &mut Vec<u8>,
) -> Result<(), ControlError> {
    let mut stubs = 0;
    let mut leftovers = 0;
    while let Some(received) = control.receive(buffer).await? {
        let expected = match &received.frame {
            ToGateway::Flow(flow) => match flow.question {
                Question::Connect { .. } | Question::Listen { .. } => 1,
                Question::Unix { .. } => 2,
            },
            ToGateway::Stub => 1,
            ToGateway::Hello(_)
            | ToGateway::Source(_)
            | ToGateway::Begin(_)
            | ToGateway::Ask(..)
            | ToGateway::Leftover { .. }
            | ToGateway::Finish { .. } => 0,
        };
        expect_descriptors(&received, expected)?;
        match received.frame {
            ToGateway::Ask(id, ask) => question(session, control, id, ask).await?,
            ToGateway::Flow(handed) => accept::accept(session, handed, received.descriptors)?,
            ToGateway::Stub => {
                stubs += 1;
                if stubs > limits::STUBS_MAX {
                    return Err(ControlError::Order {
                        what: "more stub sockets than the limit",
                    });
                }
                if let Some(socket) = received.descriptors.into_iter().next() {
                    stub::accept(session, socket)?;
                }
            }
            ToGateway::Leftover { kind, path, detail } => {
                leftovers += 1;
                leftover(session, leftovers, &path, (&kind, &detail))?;
            }
            ToGateway::Finish { status } => {
                session.drain().await;
                session.close().await;
                let mut detail = format!("status {status}");
                if let Some(unopened) = session.unopened() {
                    detail.push_str("; ");
                    detail.push_str(&unopened);
                }
                let event = Event::new(Kind::Finish, Outcome::Note, "").detail(&detail);
                session.recorder().record(&event).ok();
                let lines = session.summary();
                control.send(&ToLauncher::Summary { lines }).await?;
                // The launcher hangs up first, so that it never mistakes the
                // end for a failure.
                let hung_up = async { while let Ok(Some(_)) = control.receive(buffer).await {} };
                timeout(limits::LINGER_TIME, hung_up).await.ok();
                return Ok(());
            }
            ToGateway::Hello(_) | ToGateway::Source(_) | ToGateway::Begin(_) => {
                return Err(ControlError::Order {
                    what: "a second opening",
                });
            }
        }
    }
    session.close().await;
    let event = Event::new(Kind::Finish, Outcome::Note, "").detail("launcher gone");
    session.recorder().record(&event).ok();
    Ok(())
}

/// Records what the command left that runs by itself later.
fn leftover(
    session: &Session,
    count: usize,
    path: &str,
    (kind, detail): (&str, &str),
) -> Result<(), ControlError> {
    if count > limits::LEFTOVERS_MAX {
        return Err(ControlError::Order {
            what: "more leftovers than the limit",
        });
    }
    let event = Event::new(Kind::Leftover, Outcome::Note, path);
    session.recorder().record(&event.reason(kind, detail)).ok();
    Ok(())
}

/// Answers at once where no name has to be resolved; otherwise beside the
/// others, so that one slow name holds up nobody.
async fn question(
    session: &Arc<Session>,
    control: &Arc<Control>,
    id: u64,
    ask: outgate_handoff::Ask,
) -> Result<(), ControlError> {
    if !may_wait(session, &ask.question) {
        let answer = ask::answer(session, &ask).await;
        return control.send(&ToLauncher::Answer(id, answer)).await;
    }
    let Some(slot) = session.question_slot().await else {
        return Ok(());
    };
    let (task_session, control) = (Arc::clone(session), Arc::clone(control));
    session.tasks().spawn(async move {
        let answer = ask::answer(&task_session, &ask).await;
        control.send(&ToLauncher::Answer(id, answer)).await.ok();
        drop(slot);
    });
    Ok(())
}

/// Whether an answer may need the DNS: only names do.
fn may_wait(session: &Session, question: &Question) -> bool {
    match question {
        Question::Connect { destination } => {
            let destination = session.destination(*destination);
            matches!(destination.party, crate::destination::Party::Name(_))
        }
        Question::Unix { .. } | Question::Listen { .. } => false,
    }
}
