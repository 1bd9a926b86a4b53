//! The socket of a shared gateway, from inside: made whole and in one step, or
//! inherited; a live one is never replaced, a stale one is; removed at the end.

use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, Backlog, SockFlag, SockType, UnixAddr, bind, connect, getsockname, listen,
    socket,
};
use nix::sys::stat::{Mode, umask};

/// Connections that may wait to be accepted; the kernel's own limit may be
/// lower (net.core.somaxconn).
const BACKLOG: i32 = 1024;

/// The same for the admin socket: who comes beyond that is refused by the kernel.
const ADMIN_BACKLOG: i32 = 16;

/// Mode of the admin socket: its owner's alone, and the sticky bit, which means nothing else
/// for a socket and by which a gateway refuses to connect a command to it.
const ADMIN_MODE: u32 = 0o1600;

/// What a socket is for.
#[derive(Debug, Clone, Copy)]
enum SocketUse {
    /// Launchers, by messages.
    Runs(Audience),
    /// Questions of who runs the gateway, by HTTP.
    Admin,
}

/// Who may connect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Audience {
    /// The account that runs the gateway, and root.
    Owner,
    /// Members of this group too.
    Group(u32),
    /// Every account of the machine.
    Everybody,
}

/// Why there is no socket.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ListenError {
    /// Somebody listens there already.
    #[error("a gateway listens at `{path}` already")]
    Live {
        /// Where.
        path: String,
    },
    /// There is something else of that name.
    #[error("`{path}` exists and is no socket")]
    Other {
        /// Where.
        path: String,
    },
    /// Others could put a socket of their own there.
    #[error("`{directory}` can be written by others, who could replace the socket")]
    Open {
        /// Its directory.
        directory: String,
    },
    /// A step failed.
    #[error("{what} `{path}`")]
    Step {
        /// What was done.
        what: &'static str,
        /// To what.
        path: String,
        /// Why it failed.
        #[source]
        source: io::Error,
    },
}

/// A listening socket, and its name while that is ours to remove.
#[derive(Debug)]
pub struct NamedListener {
    socket: OwnedFd,
    name: Option<SocketName>,
}

#[derive(Debug)]
struct SocketName {
    path: PathBuf,
    device: u64,
    inode: u64,
}

impl NamedListener {
    /// One that was made by whoever started us (systemd.socket(5)).
    pub fn inherited(socket: OwnedFd) -> Self {
        Self { socket, name: None }
    }

    /// Makes one for launchers at `path`, an absolute path.
    ///
    /// # Errors
    /// [`ListenError`].
    pub fn make(path: &Path, audience: Audience) -> Result<Self, ListenError> {
        Self::made(path, SocketUse::Runs(audience))
    }

    /// Makes one at `path` where the gateway says how it is, to its own account alone.
    ///
    /// # Errors
    /// [`ListenError`].
    pub fn make_admin(path: &Path) -> Result<Self, ListenError> {
        Self::made(path, SocketUse::Admin)
    }

    fn made(path: &Path, used: SocketUse) -> Result<Self, ListenError> {
        let shown = path.display().to_string();
        let step = |what| {
            let path = shown.clone();
            move |source| ListenError::Step { what, path, source }
        };
        let directory = path.parent().unwrap_or_else(|| Path::new("/"));
        refuse_open(directory)?;
        // Under a name of its own until it listens and has its mode, so that
        // nobody finds it half made.
        let aside = |word: &str| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            directory.join(format!(".{name}.{word}{}", std::process::id()))
        };
        let draft = aside("new");
        drop(fs::remove_file(&draft));
        let socket = bound(&draft, used).map_err(step("making the socket"))?;
        let made = prepare(&socket, &draft, used)
            .map_err(step("opening the socket to its users"))
            .and_then(|()| place(&draft, path, &aside("old")));
        drop(fs::remove_file(&draft));
        made?;
        let metadata = fs::symlink_metadata(path).map_err(step("finding the socket"))?;
        let name = SocketName {
            path: path.to_owned(),
            device: metadata.dev(),
            inode: metadata.ino(),
        };
        Ok(Self {
            socket,
            name: Some(name),
        })
    }
}

impl AsFd for NamedListener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for NamedListener {
    fn drop(&mut self) {
        let Some(name) = self.name.take() else {
            return;
        };
        let ours = fs::symlink_metadata(&name.path)
            .is_ok_and(|metadata| metadata.dev() == name.device && metadata.ino() == name.inode);
        if ours {
            drop(fs::remove_file(&name.path));
        }
    }
}

/// Takes the listening socket this process inherited under `number`.
///
/// # Errors
/// A sentence: there is none of the right kind.
pub fn take_inherited(number: i32) -> Result<OwnedFd, String> {
    const SOCK_SEQPACKET: i32 = 5;
    inherited_of_kind(number, SOCK_SEQPACKET)?.ok_or_else(|| {
        format!(
            "descriptor {number} is no listening SOCK_SEQPACKET Unix socket (systemd: \
             ListenSequentialPacket=)"
        )
    })
}

/// Takes the listening admin socket this process inherited under `number`, and marks its
/// file as far as that is ours.
///
/// # Errors
/// A sentence: there is none of the right kind.
pub fn take_inherited_admin(number: i32) -> Result<OwnedFd, String> {
    const SOCK_STREAM: i32 = 1;
    let socket = inherited_of_kind(number, SOCK_STREAM)?.ok_or_else(|| {
        format!("descriptor {number} is no listening Unix socket (systemd: ListenStream=)")
    })?;
    let address: Result<UnixAddr, _> = getsockname(socket.as_raw_fd());
    if let Some(path) = address.ok().and_then(|own| own.path().map(Path::to_owned)) {
        drop(fs::set_permissions(
            path,
            fs::Permissions::from_mode(ADMIN_MODE),
        ));
    }
    Ok(socket)
}

fn inherited_of_kind(number: i32, wanted: i32) -> Result<Option<OwnedFd>, String> {
    let socket = outgate_sys::descriptor::inherited(number)
        .ok_or_else(|| format!("descriptor {number} is not open"))?;
    let listens = outgate_sys::socket::listens(socket.as_fd()).unwrap_or(false);
    let kind = outgate_sys::socket::kind(socket.as_fd()).ok();
    let family = outgate_sys::socket::family(socket.as_fd()).ok();
    let is_it = listens && kind == Some(wanted) && family == Some(AddressFamily::Unix as i32);
    Ok(is_it.then_some(socket))
}

/// Whether a socket could be made there; makes none.
///
/// # Errors
/// [`ListenError`], as [`NamedListener::make`] would say.
pub fn look(path: &Path) -> Result<(), ListenError> {
    refuse_open(path.parent().unwrap_or_else(|| Path::new("/")))?;
    match path.symlink_metadata() {
        Ok(_) => refuse_taken(path),
        Err(_) => Ok(()),
    }
}

/// Who may rename in the directory decides who answers at the path.
fn refuse_open(directory: &Path) -> Result<(), ListenError> {
    let shown = directory.display().to_string();
    let metadata = fs::metadata(directory).map_err(|source| ListenError::Step {
        what: "the directory",
        path: shown.clone(),
        source,
    })?;
    let own = nix::unistd::geteuid().as_raw();
    let trusted = metadata.uid() == own || metadata.uid() == 0;
    let writable = metadata.mode() & 0o022 != 0 && metadata.mode() & 0o1000 == 0;
    if trusted && !writable {
        Ok(())
    } else {
        Err(ListenError::Open { directory: shown })
    }
}

/// A bound socket that only its owner may use so far.
fn bound(draft: &Path, used: SocketUse) -> io::Result<OwnedFd> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let kind = match used {
        SocketUse::Runs(_) => SockType::SeqPacket,
        SocketUse::Admin => SockType::Stream,
    };
    let socket = socket(AddressFamily::Unix, kind, flags, None)?;
    let address = UnixAddr::new(draft)?;
    // The only moment at which this process makes a file; it has one thread.
    let before = umask(Mode::from_bits_truncate(0o177));
    let bound = bind(socket.as_raw_fd(), &address);
    umask(before);
    bound?;
    Ok(socket)
}

fn prepare(socket: &OwnedFd, draft: &Path, used: SocketUse) -> io::Result<()> {
    let mode = match used {
        SocketUse::Admin => ADMIN_MODE,
        SocketUse::Runs(Audience::Owner) => 0o600,
        SocketUse::Runs(Audience::Group(group)) => {
            chown(draft, None, Some(group))?;
            0o660
        }
        SocketUse::Runs(Audience::Everybody) => 0o666,
    };
    fs::set_permissions(draft, fs::Permissions::from_mode(mode))?;
    let backlog = match used {
        SocketUse::Runs(_) => BACKLOG,
        SocketUse::Admin => ADMIN_BACKLOG,
    };
    let backlog = Backlog::new(backlog).unwrap_or(Backlog::MAXCONN);
    Ok(listen(socket, backlog)?)
}

/// Gives the draft its name. Of two that do so at once one gets it.
fn place(draft: &Path, path: &Path, old: &Path) -> Result<(), ListenError> {
    let shown = || path.display().to_string();
    let step = |source| ListenError::Step {
        what: "naming the socket",
        path: shown(),
        source,
    };
    match fs::hard_link(draft, path) {
        Ok(()) => return Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(step(error)),
    }
    refuse_taken(path)?;
    // Taken aside and looked at again: somebody may have just put a live one
    // there, which then goes back.
    fs::rename(path, old).map_err(step)?;
    if let Err(error) = refuse_taken(old) {
        drop(fs::hard_link(old, path));
        drop(fs::remove_file(old));
        return Err(match error {
            ListenError::Live { .. } => ListenError::Live { path: shown() },
            ListenError::Other { .. } => ListenError::Other { path: shown() },
            other => other,
        });
    }
    drop(fs::remove_file(old));
    match fs::hard_link(draft, path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            Err(ListenError::Live { path: shown() })
        }
        linked => linked.map_err(step),
    }
}

/// Whether what is there is anything but a socket nobody listens at.
fn refuse_taken(path: &Path) -> Result<(), ListenError> {
    use std::os::unix::fs::FileTypeExt;
    let shown = path.display().to_string();
    let step = |what| {
        let path = shown.clone();
        move |source| ListenError::Step { what, path, source }
    };
    let metadata = fs::symlink_metadata(path).map_err(step("looking at"))?;
    if !metadata.file_type().is_socket() {
        return Err(ListenError::Other { path: shown });
    }
    match knock(path) {
        Err(Errno::ECONNREFUSED) => Ok(()),
        // A full backlog, a socket of another type, one we may not enter.
        Ok(()) | Err(_) => Err(ListenError::Live { path: shown }),
    }
}

fn knock(path: &Path) -> nix::Result<()> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let socket = socket(AddressFamily::Unix, SockType::SeqPacket, flags, None)?;
    connect(socket.as_raw_fd(), &UnixAddr::new(path)?)
}
