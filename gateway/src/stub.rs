//! The DNS server of a sandbox, over connections and datagrams. It gives every
//! well-formed name a synthetic address and sends no question to anybody: what
//! a name really stands for is asked only when somebody allowed connects.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use outgate_handoff::ProcessFacts;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::control::ControlError;
use crate::limits;
use crate::session::Session;

mod datagram;
mod leaving;
mod message;

pub(crate) use leaving::may_leave;
use message::Transport;

/// Serves a datagram socket bound inside the sandbox until the session ends.
pub(crate) fn accept(session: &Arc<Session>, socket: OwnedFd) -> Result<(), ControlError> {
    let socket = datagram::Datagrams::new(socket)?;
    let owner = Arc::clone(session);
    session.tasks().spawn(async move {
        socket.serve(&owner).await;
    });
    Ok(())
}

/// Serves one connection (RFC 7766): questions one after the other, each with
/// two bytes of length before it.
pub(crate) async fn connection(session: &Session, process: &ProcessFacts, mut stream: TcpStream) {
    let mut question = Vec::new();
    loop {
        let Ok(Ok(length)) = timeout(limits::DNS_IDLE, stream.read_u16()).await else {
            return;
        };
        let length = usize::from(length);
        if length == 0 || length > limits::DNS_QUESTION_BYTES_MAX {
            return;
        }
        question.resize(length, 0);
        let Ok(Ok(_)) = timeout(limits::DNS_IDLE, stream.read_exact(&mut question)).await else {
            return;
        };
        let Some(reply) = message::reply(session, Some(process), &question, Transport::Stream)
        else {
            return;
        };
        let Ok(length) = u16::try_from(reply.len()) else {
            return;
        };
        let mut framed = length.to_be_bytes().to_vec();
        framed.extend_from_slice(&reply);
        let Ok(Ok(())) = timeout(limits::DNS_IDLE, stream.write_all(&framed)).await else {
            return;
        };
    }
}
