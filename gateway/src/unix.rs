//! A connection to a Unix socket outside the sandbox, by the inode that was
//! judged. Bytes are relayed and nothing else: no descriptor and no credential
//! of the command ever crosses.

use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::time::Instant;

use nix::sys::stat::{Mode, fstat};
use outgate_handoff::ProcessFacts;
use outgate_policy::Permit;
use tokio::net::UnixStream;
use tokio::time::timeout;

use outgate_record::Reason;

use crate::ask::{self, held};
use crate::audit::{Event, Kind, Outcome};
use crate::body::Traffic;
use crate::limits;
use crate::refusal::Refusal;
use crate::session::Session;
use crate::tunnel;

/// The two descriptors of such a connection.
#[derive(Debug)]
pub(crate) struct UnixDescriptors {
    /// The accepted side of the command's connection.
    pub(crate) client: OwnedFd,
    /// The target's inode, opened as a path only.
    pub(crate) target: OwnedFd,
}

/// Connects and relays until either side ends.
pub(crate) async fn serve(
    session: &Arc<Session>,
    process: &ProcessFacts,
    path: &[u8],
    sockets: UnixDescriptors,
) {
    let name = String::from_utf8_lossy(path).into_owned();
    let started = Instant::now();
    let traffic = Traffic::default();
    // Asked again: the connection counts, not the question before it.
    let outcome = match admitted(session, process, path).await {
        Ok(permit) => match connect(sockets, (&name, permit)).await {
            Ok((client, target)) => {
                let still = || ask::admit_unix(session, process, path).map(drop);
                tokio::select! {
                    () = tunnel::relay(client, target, &traffic, session.ended()) => Ok(()),
                    refusal = session.current().revoked(still) => Err(refusal),
                }
            }
            Err(error) => {
                let subject = format!("unix://{name}");
                Err(Refusal::own(
                    Reason::Origin,
                    &subject,
                    &format!("connecting: {error}"),
                ))
            }
        },
        Err(refusal) => Err(refusal),
    };
    if let Err(refusal) = outcome {
        session
            .recorder()
            .refused(Kind::Unix, process, &name, &refusal);
        session.recorder().tell_of(&process.executable, &refusal);
        return;
    }
    let millis = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    let (up, down) = (traffic.up.into_inner(), traffic.down.into_inner());
    let event = Event::new(Kind::Flow, Outcome::Note, &name)
        .process(process)
        .traffic(up, down, millis);
    session.recorder().record(&event).ok();
}

/// Whether it may be, after a person was asked where no rule says: its caller waited for no
/// call, and nothing of it is read before.
async fn admitted(
    session: &Arc<Session>,
    process: &ProcessFacts,
    path: &[u8],
) -> Result<Permit, Refusal> {
    let refusal = match ask::admit_unix(session, process, path) {
        Ok(permit) => return Ok(permit),
        Err(refusal) => refusal,
    };
    let Some(question) = held::question_about(session, process, &refusal) else {
        return Err(refusal);
    };
    let asked = held::briefly(session, question).await;
    let admitted = ask::admit_unix(session, process, path);
    admitted.map_err(|refusal| refusal.asked(asked.words()))
}

/// Whether it is where a gateway says how it is. The front marks the inode by the sticky
/// bit, which means nothing else for a socket, whatever its name and whatever leads there;
/// changing it takes a grant to write there (chmod(2) is held).
fn is_admin(target: &OwnedFd) -> bool {
    // What cannot be looked at is not reached.
    fstat(target).map_or(true, |found| found.st_mode & Mode::S_ISVTX.bits() != 0)
}

/// Spends the permit on this one connection.
async fn connect(
    sockets: UnixDescriptors,
    (path, permit): (&str, Permit),
) -> std::io::Result<(UnixStream, UnixStream)> {
    if !permit.is_for_socket(path) {
        return Err(std::io::Error::other("what was allowed is something else"));
    }
    if is_admin(&sockets.target) {
        return Err(std::io::Error::other(
            "it is the admin socket of a gateway, out of reach of every command",
        ));
    }
    let client = std::os::unix::net::UnixStream::from(sockets.client);
    client.set_nonblocking(true)?;
    let client = UnixStream::from_std(client)?;
    // The path leads to the inode behind the descriptor, wherever its name
    // points by now (proc(5)).
    let path = format!("/proc/self/fd/{}", sockets.target.as_raw_fd());
    let target = timeout(limits::DIAL_TIME, UnixStream::connect(path)).await??;
    Ok((client, target))
}
