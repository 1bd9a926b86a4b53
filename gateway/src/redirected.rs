//! Connections that the kernel leads here (TPROXY, nft(8)): what a client that knows of no
//! proxy connected to is the address of our end. Whatever comes is of the one run that is
//! served here; who may come is for whoever made the rules of the kernel. Decides nothing.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use outgate_handoff::ProcessFacts;
use tokio::net::TcpListener;
use tokio::time::sleep;

use crate::accept;
use crate::caller::Caller;
use crate::limits;
use crate::session::Session;

/// Takes over a socket that listens already, and serves as long as the session runs.
///
/// # Errors
/// It cannot be driven.
pub(crate) fn begin(session: &Arc<Session>, listener: OwnedFd) -> io::Result<()> {
    let listener = std::net::TcpListener::from(listener);
    listener.set_nonblocking(true)?;
    let listener = TcpListener::from_std(listener)?;
    let serving = serve(Arc::clone(session), listener);
    session.tasks().spawn(serving);
    Ok(())
}

async fn serve(session: Arc<Session>, listener: TcpListener) {
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // Descriptors or memory are short: those who hold them let go.
            sleep(limits::ACCEPT_PAUSE).await;
            continue;
        };
        let Ok(address) = stream.local_addr() else {
            continue;
        };
        stream.set_nodelay(true).ok();
        let to = session.destination(address);
        // Nothing is known of who connected.
        let caller = Caller::new(session.recorder(), ProcessFacts::default(), to);
        accept::connection(&session, caller, stream);
    }
}
