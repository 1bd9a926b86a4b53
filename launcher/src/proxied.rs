//! The sandboxes of the explicit proxy, as the front of a shared gateway keeps them: for every
//! token that is good, a session below the gateway's policy, opened as a launcher opens its
//! own, and closed when the token is revoked. Hears nobody from the network.

use std::collections::BTreeMap;
use std::io::{self, IoSlice};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use nix::poll::PollTimeout;
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};
use nix::sys::socket::{ControlMessage, MsgFlags, send, sendmsg};
use outgate_handoff::{BeginFrame, ToGateway, ToLauncher, TokenFrame};
use outgate_policy::Source;

use crate::coprocess::{pair, receive};
use crate::opening::session_frames;
use crate::tokens::{StoredToken, TokenDirectory};
use crate::voice::Voice;

/// Reads the policy of a token.
pub type ReadToken<'a> = Box<dyn FnMut(&StoredToken) -> Result<Vec<Source>, String> + 'a>;

/// The explicit proxy: where it listens, and for whom.
pub struct ProxyOptions<'a> {
    /// Its socket, which listens.
    pub listener: TcpListener,
    /// Its tokens.
    pub tokens: TokenDirectory,
    /// Reads their policies.
    pub read: ReadToken<'a>,
}

impl std::fmt::Debug for ProxyOptions<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProxyOptions").finish_non_exhaustive()
    }
}

/// A token as it was when its session was opened, and the socket to that; none where the
/// gateway does not serve it, until it is another.
struct ProxiedSandbox {
    token: StoredToken,
    sources: Result<Vec<Source>, String>,
    socket: Option<OwnedFd>,
    /// Why it is not served, as its user was told last.
    told: Option<String>,
}

impl ProxiedSandbox {
    /// Whether the gateway may take it, and has not.
    fn is_left_out(&self) -> bool {
        self.socket.is_none() && self.sources.is_ok()
    }

    /// Says why it is not served, once.
    fn is_not_served(&mut self, why: &str, voice: &mut dyn Voice) {
        if self.told.as_deref() != Some(why) {
            voice.say(&format!(
                "outgate: token `{}` is not served: {why}",
                self.token.name
            ));
            self.told = Some(why.to_owned());
        }
    }
}

/// Those left out that are tried again at once, at most: room for one is rarely room for many.
const TRIED_MAX: usize = 8;

/// See the head of this file.
pub(crate) struct ProxiedSandboxes<'a> {
    options: ProxyOptions<'a>,
    watch: Inotify,
    /// The directory that is watched, by device and inode.
    watched: (u64, u64),
    begin: BeginFrame,
    sandboxes: BTreeMap<String, ProxiedSandbox>,
}

/// Why the tokens are to be looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    /// Their directory changed.
    Tokens,
    /// Their policies may have, too.
    Policies,
}

impl<'a> ProxiedSandboxes<'a> {
    /// Watches the directory from here on.
    pub(crate) fn new(options: ProxyOptions<'a>, begin: BeginFrame) -> io::Result<Self> {
        let (watch, watched) = watch(&options.tokens)?;
        Ok(Self {
            options,
            watch,
            watched,
            begin,
            sandboxes: BTreeMap::new(),
        })
    }

    /// The socket that listens, for the gateway.
    pub(crate) fn listener(&self) -> BorrowedFd<'_> {
        self.options.listener.as_fd()
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> io::Result<SocketAddr> {
        self.options.listener.local_addr()
    }

    /// How many have a session.
    pub(crate) fn count(&self) -> usize {
        let open = self.sandboxes.values();
        open.filter(|sandbox| sandbox.socket.is_some()).count()
    }

    /// All that there may be news from.
    pub(crate) fn sources(&self) -> Vec<BorrowedFd<'_>> {
        let sockets = self.sandboxes.values();
        let sockets = sockets.filter_map(|sandbox| sandbox.socket.as_ref());
        [self.watch.as_fd()]
            .into_iter()
            .chain(sockets.map(AsFd::as_fd))
            .collect()
    }

    /// Hears the news.
    pub(crate) fn hear(&mut self, front: BorrowedFd<'_>, voice: &mut dyn Voice) {
        for (name, sandbox) in &mut self.sandboxes {
            let Some(socket) = &sandbox.socket else {
                continue;
            };
            match heard(socket, name, voice) {
                Heard::Nothing => {}
                Heard::End => sandbox.socket = None,
                Heard::Refused(why) => {
                    sandbox.socket = None;
                    sandbox.is_not_served(&why, voice);
                }
            }
        }
        let is_anybody_left_out = self.sandboxes.values().any(ProxiedSandbox::is_left_out);
        // Also one that another took the place of, as a backup that is restored does.
        if self.watch.read_events().is_ok() || !self.is_watched() || is_anybody_left_out {
            self.look(Look::Tokens, front, voice);
        }
    }

    /// Opens what is new, and closes what is gone, over or another.
    pub(crate) fn look(&mut self, look: Look, front: BorrowedFd<'_>, voice: &mut dyn Voice) {
        // Watched before it is read, so that nothing changes unheard in between.
        if !self.is_watched() {
            match watch(&self.options.tokens) {
                Ok((watch, watched)) => (self.watch, self.watched) = (watch, watched),
                Err(error) => {
                    voice.say(&format!(
                        "outgate: the tokens: {error}; no token is good now"
                    ));
                    return self.sandboxes.clear();
                }
            }
        }
        let good = match self.options.tokens.list() {
            Ok(tokens) => tokens
                .into_iter()
                .filter(|token| !token.is_over())
                .collect(),
            Err(error) => {
                // Nobody can say which of them were revoked.
                voice.say(&format!(
                    "outgate: the tokens: {error}; no token is good now"
                ));
                Vec::new()
            }
        };
        self.sandboxes.retain(|name, sandbox| {
            good.iter()
                .any(|token| token.name == *name && *token == sandbox.token)
        });
        let mut tried = 0_usize;
        for token in good {
            let known = self.sandboxes.get(&token.name);
            // One that the gateway had no room for may have it now.
            if known.is_some_and(ProxiedSandbox::is_left_out) {
                tried = tried.saturating_add(1);
                if tried > TRIED_MAX {
                    continue;
                }
            } else if known.is_some() && look == Look::Tokens {
                continue;
            }
            let sources = (self.options.read)(&token);
            if known.is_some_and(|known| known.sources == sources && !known.is_left_out()) {
                continue;
            }
            // One of before ends first: a token has one session.
            let told = self.sandboxes.remove(&token.name).and_then(|old| old.told);
            let opened = match &sources {
                Ok(sources) => self
                    .open(&token, sources, front)
                    .map_err(|error| error.to_string()),
                Err(fault) => Err(fault.clone()),
            };
            let mut sandbox = ProxiedSandbox {
                token,
                sources,
                socket: None,
                told,
            };
            match opened {
                Ok(socket) => sandbox.socket = Some(socket),
                Err(fault) => sandbox.is_not_served(&fault, voice),
            }
            self.sandboxes.insert(sandbox.token.name.clone(), sandbox);
        }
    }

    /// Whether the directory of that name is the one that is watched.
    fn is_watched(&self) -> bool {
        self.options.tokens.inode() == Some(self.watched)
    }

    /// Opens the session of a token.
    fn open(
        &self,
        token: &StoredToken,
        sources: &[Source],
        front: BorrowedFd<'_>,
    ) -> io::Result<OwnedFd> {
        let (ours, theirs) = pair()?;
        let left = token.left();
        let frame = ToGateway::Token(TokenFrame {
            name: token.name.clone(),
            digest: token.digest,
            left_ms: left.map(|left| u64::try_from(left.as_millis()).unwrap_or(u64::MAX - 1)),
        });
        let frame = frame.encode().map_err(io::Error::other)?;
        sendmsg::<()>(
            front.as_raw_fd(),
            &[IoSlice::new(&frame)],
            &[ControlMessage::ScmRights(&[theirs.as_raw_fd()])],
            MsgFlags::MSG_NOSIGNAL,
            None,
        )?;
        drop(theirs);
        for frame in session_frames(&token.name, sources, &self.begin)? {
            // The gateway reads while we send: this waits for room.
            if let Err(errno) = send(ours.as_raw_fd(), &frame, MsgFlags::MSG_NOSIGNAL) {
                // Who refuses closes what it has not read; its reason lies there.
                return Err(match receive(&ours, PollTimeout::ZERO) {
                    Some(ToLauncher::Refused { message }) => io::Error::other(message),
                    _ => errno.into(),
                });
            }
        }
        Ok(ours)
    }
}

/// Watches the directory, which is made where there is none; which one it is.
fn watch(tokens: &TokenDirectory) -> io::Result<(Inotify, (u64, u64))> {
    tokens.make()?;
    let watch = Inotify::init(InitFlags::IN_CLOEXEC | InitFlags::IN_NONBLOCK)?;
    let news = AddWatchFlags::IN_MOVED_TO
        | AddWatchFlags::IN_MOVED_FROM
        | AddWatchFlags::IN_DELETE
        | AddWatchFlags::IN_CLOSE_WRITE
        | AddWatchFlags::IN_ATTRIB
        | AddWatchFlags::IN_DELETE_SELF
        | AddWatchFlags::IN_MOVE_SELF;
    let before = tokens.inode();
    watch.add_watch(tokens.path(), news)?;
    match tokens.inode() {
        Some(watched) if before == Some(watched) => Ok((watch, watched)),
        _ => Err(io::Error::other("their directory changes all the time")),
    }
}

/// Whether a session goes on.
enum Heard {
    Nothing,
    End,
    /// It does not, and why.
    Refused(String),
}

/// Says what the gateway says of a session.
fn heard(socket: &OwnedFd, name: &str, voice: &mut dyn Voice) -> Heard {
    let mut polled = [nix::poll::PollFd::new(
        socket.as_fd(),
        nix::poll::PollFlags::POLLIN,
    )];
    if nix::poll::poll(&mut polled, PollTimeout::ZERO) != Ok(1) {
        return Heard::Nothing;
    }
    match receive(socket, PollTimeout::ZERO) {
        Some(ToLauncher::Notice { line }) => {
            let line = line.strip_prefix("outgate: ").unwrap_or(&line);
            voice.say(&format!("outgate: {name}: {line}"));
            Heard::Nothing
        }
        Some(ToLauncher::Refused { message }) => Heard::Refused(message),
        Some(_) => Heard::Nothing,
        None => Heard::End,
    }
}
