//! A gateway for many runs: sockets accepted from a listener that was made
//! before, each a session of its own below one ceiling. Who connects is what
//! the kernel says of the socket's other end. Decides nothing itself.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use outgate_handoff::{LINE_BYTES_MAX, POLICY_BYTES_MAX, ToGateway, ToLauncher};
use outgate_policy::Context;
use rustix::net::sockopt;
use tokio::net::UnixListener;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::audit::{Audit, Event, Kind, Outcome, Owner};
use crate::confine;
use crate::control::{self, Control, ControlError};
use crate::limits;
use crate::resolve::System;
use crate::rules::{Ceiling, Rules};
use crate::serve::{self, Gateway, Opening, context, greet};
use crate::session::{Parts, Session, shortened};
use crate::tenant::{Capacity, Tenant, Tenants};
use crate::tls::Keys;

/// What all sessions of a shared gateway have in common.
#[derive(Debug)]
struct Shared {
    ceiling: Arc<Ceiling>,
    audit: Audit,
    system: Arc<System>,
    keys: Arc<Keys>,
    tenants: Tenants,
}

/// Serves everybody who connects to `listener` until `front` says so or is
/// gone. `front` brings the gateway's policy as a launcher brings a run's.
///
/// # Errors
/// The front broke the contract, or a socket failed.
pub(crate) async fn share(
    gateway: &Gateway,
    front: OwnedFd,
    listener: OwnedFd,
) -> Result<(), ControlError> {
    let control = Control::new(front)?;
    let mut buffer = Vec::new();
    let Some(opening) = greet(&control, &mut buffer, POLICY_BYTES_MAX).await? else {
        return Ok(());
    };
    let shared = match Shared::new(&opening, gateway) {
        Ok(shared) => Arc::new(shared),
        Err(message) => {
            let message = shortened(&message, LINE_BYTES_MAX);
            return control.send(&ToLauncher::Refused { message }).await;
        }
    };
    // Accepting is the same for every Unix socket that connects.
    let listener = std::os::unix::net::UnixListener::from(listener);
    listener.set_nonblocking(true)?;
    let listener = UnixListener::from_std(listener)?;
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
    let mut sessions = JoinSet::new();
    let told = loop {
        tokio::select! {
            accepted = accept(&listener) => match accepted {
                Ok(socket) => shared.take(socket, &stopped, &mut sessions),
                // Descriptors or memory are short: those who hold them let go.
                Err(_) => sleep(limits::ACCEPT_PAUSE).await,
            },
            frame = control.receive(&mut buffer) => break frame,
            Some(_) = sessions.join_next() => {}
        }
    };
    drop((listener, stop));
    let ended = async { while sessions.join_next().await.is_some() {} };
    timeout(limits::CLOSE_TIME, ended).await.ok();
    let event = Event::new(Kind::Finish, Outcome::Note, "").detail("shared gateway");
    shared.audit.write(1, &event).ok();
    if let Ok(Some(received)) = told
        && let ToGateway::Finish { .. } = received.frame
    {
        let lines = String::new();
        control.send(&ToLauncher::Summary { lines }).await?;
    }
    Ok(())
}

/// The next connection.
async fn accept(listener: &UnixListener) -> io::Result<OwnedFd> {
    let (socket, _) = listener.accept().await?;
    Ok(socket.into_std()?.into())
}

impl Shared {
    fn new(opening: &Opening, gateway: &Gateway) -> Result<Self, String> {
        serve::same_build(&opening.hello)?;
        let uid = nix::unistd::geteuid().as_raw();
        let sources = opening.sources.clone();
        let ceiling = Ceiling::new(sources, &context(&opening.begin), uid)
            .map_err(|errors| errors.to_string())?;
        let unrecorded = |error: &dyn std::fmt::Display| format!("audit file: {error}");
        let audit = Audit::shared(&gateway.audit, uid).map_err(|error| unrecorded(&error))?;
        let event = Event::new(Kind::Start, Outcome::Note, "").detail("shared gateway");
        audit.write(1, &event).map_err(|error| unrecorded(&error))?;
        Ok(Self {
            ceiling: Arc::new(ceiling),
            audit,
            system: Arc::clone(&gateway.system),
            keys: Arc::clone(&gateway.keys),
            tenants: Tenants::new(uid, Capacity::of(confine::open_files())),
        })
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
        match self.tenants.admit(peer.uid.as_raw()) {
            Ok(tenant) => {
                let shared = Arc::clone(self);
                let stopped = stopped.clone();
                sessions.spawn(async move {
                    let uid = tenant.uid();
                    let ended = shared.attend(socket, pid, tenant, stopped).await;
                    // How it ends is in the record, and the launcher's to say.
                    if ended.is_err_and(|error| error.is_stranger()) {
                        shared.tenants.bar(uid);
                    }
                });
            }
            Err(full) => control::refuse(&socket, &full),
        }
    }

    async fn attend(
        &self,
        socket: OwnedFd,
        pid: u32,
        tenant: Tenant,
        mut stopped: watch::Receiver<()>,
    ) -> Result<(), ControlError> {
        let control = Arc::new(Control::new(socket)?);
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
        let Some(session) = opened? else {
            return Ok(());
        };
        let result = tokio::select! {
            result = serve::run(&session, &control, &mut buffer) => result,
            _ = stopped.changed() => {
                session.close().await;
                let event = Event::new(Kind::Finish, Outcome::Note, "").detail("gateway ended");
                session.record(&event).ok();
                return Ok(());
            }
        };
        session.close().await;
        if let Err(error) = &result {
            let detail = crate::chain(error);
            let event = Event::new(Kind::Finish, Outcome::Note, "").detail(&detail);
            session.record(&event).ok();
        }
        result
    }

    async fn open(
        &self,
        control: &Arc<Control>,
        buffer: &mut Vec<u8>,
        pid: u32,
        tenant: Tenant,
    ) -> Result<Option<Arc<Session>>, ControlError> {
        // Policy text is held and compiled for a few of one account at once.
        let Some(place) = tenant.opening().await else {
            return Ok(None);
        };
        let bytes_max = limits::SHARED_POLICY_BYTES_MAX;
        let Some(opening) = greet(control, buffer, bytes_max).await? else {
            return Ok(None);
        };
        let made = match self.rules(&opening, tenant.uid()).await {
            Ok(rules) => self.session(&opening, rules, Arc::clone(control), tenant),
            Err(message) => Err(message),
        };
        drop(place);
        let made = made.and_then(|session| {
            let detail = format!("{} (launcher {pid})", opening.begin.command);
            let event = Event::new(Kind::Start, Outcome::Note, "").detail(&detail);
            session.record(&event).map_err(|error| error.to_string())?;
            Ok(session)
        });
        serve::answer_opening(control, made).await
    }

    /// Compiles a run's policy beside the others' traffic.
    async fn rules(&self, opening: &Opening, uid: u32) -> Result<Rules, String> {
        serve::same_build(&opening.hello)?;
        let ceiling = Arc::clone(&self.ceiling);
        let (sources, context): (_, Context) = (opening.sources.clone(), context(&opening.begin));
        let compiled =
            tokio::task::spawn_blocking(move || Rules::below(&ceiling, sources, &context, uid));
        compiled.await.map_err(|error| error.to_string())?
    }

    fn session(
        &self,
        opening: &Opening,
        rules: Rules,
        control: Arc<Control>,
        tenant: Tenant,
    ) -> Result<Session, String> {
        let tls = serve::opener(&rules, &opening.hello.sandbox, &self.keys)?;
        let owner = Owner {
            session: tenant.session(),
            uid: tenant.uid(),
        };
        Ok(Session::new(Parts {
            sandbox: opening.hello.sandbox.clone(),
            rules,
            audit: self.audit.of(&opening.hello.sandbox, owner),
            control,
            system: Arc::clone(&self.system),
            tls,
            tenant: Some(tenant),
        }))
    }
}
