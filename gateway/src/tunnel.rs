//! Bytes both ways between two connections, unread, until both ends are done
//! or nothing moved for too long. Each direction ends by itself (half-close).
//! No policy, no parsing.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, split};
use tokio::sync::Notify;
use tokio::time::sleep;

use crate::content::Traffic;
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
    let delivered = Notify::new();
    let up = async {
        pump(client_read, origin_write, &traffic.up).await?;
        delivered.notify_one();
        io::Result::Ok(())
    };
    let both = async {
        tokio::try_join!(up, pump(origin_read, client_write, &traffic.down)).ok();
    };
    let abandoned = async {
        ended.await;
        delivered.notified().await;
    };
    tokio::select! {
        () = both => {}
        () = idle(traffic) => {}
        () = abandoned => {}
    }
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
        to.write_all(buffer.get(..count).unwrap_or_default())
            .await?;
        let count = u64::try_from(count).unwrap_or(u64::MAX);
        counter.fetch_add(count, Ordering::Relaxed);
    }
}

/// Returns once nothing moved in either direction for the idle time.
async fn idle(traffic: &Traffic) {
    let total = || {
        let up = traffic.up.load(Ordering::Relaxed);
        up.wrapping_add(traffic.down.load(Ordering::Relaxed))
    };
    loop {
        let before = total();
        sleep(limits::TUNNEL_IDLE).await;
        if total() == before {
            return;
        }
    }
}
