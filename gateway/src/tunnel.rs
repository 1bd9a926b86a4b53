//! Bytes both ways between two connections, unread, until both ends are done
//! or nothing moved for too long. Each direction ends by itself (half-close).
//! No policy, no parsing.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use nix::fcntl::{FcntlArg, OFlag, SpliceFFlags, fcntl, splice};
use outgate_dlp::span;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, Interest, split};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::time::sleep;

use crate::body::Traffic;
use crate::budget::Quota;
use crate::limits;

/// Relays until the end. Errors of either side end it: nobody is left to be
/// told.
///
/// `ended` completes when the command is gone: then what it sent is delivered
/// and nothing is waited for.
pub(crate) async fn relay<C, O>(
    client: C,
    origin: O,
    traffic: &Traffic,
    ended: impl Future<Output = ()>,
) where
    C: AsyncRead + AsyncWrite,
    O: AsyncRead + AsyncWrite,
{
    let (client_read, client_write) = split(client);
    let (origin_read, origin_write) = split(origin);
    let up = pump(client_read, origin_write, &traffic.up);
    let down = pump(origin_read, client_write, &traffic.down);
    supervise(up, down, traffic, ended).await;
}

/// The same between two TCP connections: large amounts are moved inside the
/// kernel. `read` is what was already read from the client.
pub(crate) async fn relay_tcp(
    sides: (TcpStream, TcpStream),
    read: &[u8],
    (traffic, quota): (&Traffic, Option<&Quota>),
    ended: impl Future<Output = ()>,
) {
    let (client, mut origin) = sides;
    if spend(quota, read.len()).is_err() || origin.write_all(read).await.is_err() {
        return;
    }
    add(&traffic.up, read.len());
    let up = move_tcp(&client, &origin, (&traffic.up, quota));
    let down = move_tcp(&origin, &client, (&traffic.down, None));
    supervise(up, down, traffic, ended).await;
}

async fn supervise(
    up: impl Future<Output = io::Result<()>>,
    down: impl Future<Output = io::Result<()>>,
    traffic: &Traffic,
    ended: impl Future<Output = ()>,
) {
    let delivered = Notify::new();
    let half_closed = AtomicBool::new(false);
    let up = async {
        up.await?;
        delivered.notify_one();
        half_closed.store(true, Ordering::Relaxed);
        io::Result::Ok(())
    };
    let both = async {
        tokio::try_join!(up, down).ok();
    };
    let abandoned = async {
        ended.await;
        delivered.notified().await;
    };
    tokio::select! {
        () = both => {}
        () = idle(traffic, &half_closed) => {}
        () = abandoned => {}
    }
}

fn add(counter: &AtomicU64, count: usize) {
    counter.fetch_add(u64::try_from(count).unwrap_or(u64::MAX), Ordering::Relaxed);
}

/// Spends what is about to leave, where a rule says how much may.
fn spend(quota: Option<&Quota>, count: usize) -> io::Result<()> {
    let spent = quota.map_or(Ok(()), |quota| quota.spend(count));
    spent.map_err(|spent| io::Error::new(io::ErrorKind::QuotaExceeded, spent))
}

async fn pump(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    counter: &AtomicU64,
) -> io::Result<()> {
    let mut buffer = vec![0; limits::TUNNEL_BUFFER_BYTES];
    loop {
        let count = from.read(&mut buffer).await?;
        if count == 0 {
            return to.shutdown().await;
        }
        to.write_all(span::upto(&buffer, count)).await?;
        add(counter, count);
    }
}

/// One direction between two TCP connections: by a buffer until it carried
/// much, then by a pipe.
async fn move_tcp(
    from: &TcpStream,
    to: &TcpStream,
    (counter, quota): (&AtomicU64, Option<&Quota>),
) -> io::Result<()> {
    let mut buffer = vec![0; limits::TUNNEL_BUFFER_BYTES];
    loop {
        let count = from
            .async_io(Interest::READABLE, || from.try_read(&mut buffer))
            .await?;
        if count == 0 {
            return end(to);
        }
        spend(quota, count)?;
        let mut rest = span::upto(&buffer, count);
        while !rest.is_empty() {
            let written = to
                .async_io(Interest::WRITABLE, || to.try_write(rest))
                .await?;
            rest = span::from(rest, written);
        }
        add(counter, count);
        if counter.load(Ordering::Relaxed) >= limits::SPLICE_AFTER_BYTES
            && let Ok(pipe) = pipe()
        {
            drop(buffer);
            return move_by_pipe((from, to), &pipe, (counter, quota)).await;
        }
    }
}

/// Says that nothing more will come, and keeps listening.
fn end(to: &TcpStream) -> io::Result<()> {
    rustix::net::shutdown(to, rustix::net::Shutdown::Write)?;
    Ok(())
}

struct Pipe {
    read: OwnedFd,
    write: OwnedFd,
}

fn pipe() -> nix::Result<Pipe> {
    let (read, write) = nix::unistd::pipe2(OFlag::O_CLOEXEC | OFlag::O_NONBLOCK)?;
    // A smaller pipe works too: users have a budget.
    let size = i32::try_from(limits::SPLICE_BYTES).unwrap_or(i32::MAX);
    fcntl(write.as_fd(), FcntlArg::F_SETPIPE_SZ(size)).ok();
    Ok(Pipe { read, write })
}

async fn move_by_pipe(
    (from, to): (&TcpStream, &TcpStream),
    pipe: &Pipe,
    (counter, quota): (&AtomicU64, Option<&Quota>),
) -> io::Result<()> {
    let flags = SpliceFFlags::SPLICE_F_MOVE | SpliceFFlags::SPLICE_F_NONBLOCK;
    loop {
        // The pipe is empty here, so "again" can only mean the connection.
        let mut held = from
            .async_io(Interest::READABLE, || {
                let bytes = limits::SPLICE_BYTES;
                Ok(splice(from, None, &pipe.write, None, bytes, flags)?)
            })
            .await?;
        if held == 0 {
            return end(to);
        }
        spend(quota, held)?;
        while held > 0 {
            let moved = to
                .async_io(Interest::WRITABLE, || {
                    Ok(splice(&pipe.read, None, to, None, held, flags)?)
                })
                .await?;
            held = held.saturating_sub(moved);
            add(counter, moved);
        }
    }
}

/// Returns once nothing moved in either direction for the idle time, which is
/// shorter once the client ended its side.
async fn idle(traffic: &Traffic, half_closed: &AtomicBool) {
    let mut quiet = Duration::ZERO;
    loop {
        let before = traffic.total();
        sleep(limits::HALF_CLOSED_TIME).await;
        if traffic.total() != before {
            quiet = Duration::ZERO;
            continue;
        }
        quiet += limits::HALF_CLOSED_TIME;
        if half_closed.load(Ordering::Relaxed) || quiet >= limits::TUNNEL_IDLE {
            return;
        }
    }
}
