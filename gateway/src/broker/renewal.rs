//! New values for a session's secrets while it runs: what the keeper tells takes
//! the place of what was, and an origin that minds a value makes it be read
//! again. Knows nothing of how values are read.

use std::os::fd::AsFd;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use http::StatusCode;
use outgate_policy::NamedSecret;
use tokio::io::Interest;
use tokio::net::UnixDatagram;

use super::keeper::{self, Keeper};
use super::source;
use super::value::Material;
use super::{CurrentSecrets, SessionSecrets, mask_of};
use crate::destination::Endpoint;
use crate::limits;

/// A session's connection to the keeper.
#[derive(Debug)]
pub(crate) struct Renewal {
    /// Any Unix socket of messages is driven alike.
    socket: UnixDatagram,
    named: Vec<NamedSecret>,
    /// When each was asked for last.
    asked: Mutex<Vec<Option<Instant>>>,
}

impl Renewal {
    pub(crate) fn new(keeper: Keeper, named: Vec<NamedSecret>) -> std::io::Result<Self> {
        let socket = std::os::unix::net::UnixDatagram::from(keeper.into_socket());
        socket.set_nonblocking(true)?;
        let asked = Mutex::new(vec![None; named.len()]);
        Ok(Self {
            socket: UnixDatagram::from_std(socket)?,
            named,
            asked,
        })
    }

    /// Takes over what the keeper tells until it is gone.
    pub(crate) async fn follow(&self, secrets: &SessionSecrets) {
        loop {
            let message = self
                .socket
                .async_io(Interest::READABLE, || keeper::receive(self.socket.as_fd()));
            let Some(message) = message.await.ok().filter(|message| !message.is_empty()) else {
                return;
            };
            if let Some((number, material)) = keeper::decode(&message, &self.named)
                && let Some(named) = self.named.get(number)
            {
                secrets.renew(&named.name, material);
            }
        }
    }

    /// Has what is bound to a host read again where its origin minds it; not
    /// more often than a person could want, since the command can provoke it.
    pub(crate) fn minded(
        &self,
        secrets: &SessionSecrets,
        Endpoint { host, port }: Endpoint<'_>,
        status: StatusCode,
    ) {
        if status != StatusCode::UNAUTHORIZED && status != StatusCode::FORBIDDEN {
            return;
        }
        let Ok(mut asked) = self.asked.lock() else {
            return;
        };
        for (number, (named, last)) in self.named.iter().zip(asked.iter_mut()).enumerate() {
            let mut bound = secrets.bound.iter();
            let bound = bound.any(|own| own.name() == named.name && own.is_for(host, port));
            let due = last.is_none_or(|last| last.elapsed() >= limits::SECRET_AGAIN_TIME);
            if bound && due && source::may_change(named) {
                *last = Some(Instant::now());
                keeper::ask(self.socket.as_fd(), number);
            }
        }
    }
}

impl SessionSecrets {
    /// Puts a new value in the place of an old one, which stays masked.
    fn renew(&self, name: &str, material: Material) {
        let Some(index) = self.bound.iter().position(|own| own.name() == name) else {
            return;
        };
        let Ok(mut slot) = self.current.write() else {
            return;
        };
        let Some(old) = slot.materials.get(index) else {
            return;
        };
        if old.is(&material) {
            return;
        }
        let mut earlier = slot.earlier.clone();
        earlier.retain(|(own, _)| *own != index);
        earlier.push((index, old.clone()));
        let mut materials = slot.materials.clone();
        if let Some(own) = materials.get_mut(index) {
            *own = material;
        }
        if let Ok(mask) = mask_of(&self.tokens, &materials, &earlier) {
            *slot = Arc::new(CurrentSecrets {
                materials,
                earlier,
                mask: Arc::new(mask),
            });
        }
    }
}
