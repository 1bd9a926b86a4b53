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
}

/// See the head of this file.
pub(crate) struct ProxiedSandboxes<'a> {
    options: ProxyOptions<'a>,
    watch: Inotify,
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
        options.tokens.make()?;
        let watch = Inotify::init(InitFlags::IN_CLOEXEC | InitFlags::IN_NONBLOCK)?;
        let news = AddWatchFlags::IN_MOVED_TO
            | AddWatchFlags::IN_MOVED_FROM
            | AddWatchFlags::IN_DELETE
            | AddWatchFlags::IN_CLOSE_WRITE
            | AddWatchFlags::IN_ATTRIB;
        watch.add_watch(options.tokens.path(), news)?;
        Ok(Self {
            options,
            watch,
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
            }
        }
        if self.watch.read_events().is_ok() {
            self.look(Look::Tokens, front, voice);
        }
    }

    /// Opens what is new, and closes what is gone, over or another.
    pub(crate) fn look(&mut self, look: Look, front: BorrowedFd<'_>, voice: &mut dyn Voice) {
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
        for token in good {
            let known = self.sandboxes.get(&token.name);
            if known.is_some() && look == Look::Tokens {
                continue;
            }
            let sources = (self.options.read)(&token);
            if known.is_some_and(|known| known.sources == sources) {
                continue;
            }
            // One of before ends first: a token has one session.
            self.sandboxes.remove(&token.name);
            let opened = match &sources {
                Ok(sources) => self
                    .open(&token, sources, front)
                    .map_err(|error| error.to_string()),
                Err(fault) => Err(fault.clone()),
            };
            if let Err(fault) = &opened {
                voice.say(&format!(
                    "outgate: token `{}` is not served: {fault}",
                    token.name
                ));
            }
            let sandbox = ProxiedSandbox {
                token,
                sources,
                socket: opened.ok(),
            };
            self.sandboxes.insert(sandbox.token.name.clone(), sandbox);
        }
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
            send(ours.as_raw_fd(), &frame, MsgFlags::MSG_NOSIGNAL)?;
        }
        Ok(ours)
    }
}

/// Whether a session goes on.
enum Heard {
    Nothing,
    End,
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
        Some(ToLauncher::Refused { message }) => {
            voice.say(&format!("outgate: token `{name}` is not served: {message}"));
            Heard::End
        }
        Some(_) => Heard::Nothing,
        None => Heard::End,
    }
}
