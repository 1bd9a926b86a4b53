//! Where a shared gateway listens: for launchers, for clients of the explicit proxy, and for
//! who asks how it is.

use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use crate::listener::{Audience, ListenError, NamedListener};
use crate::proxied::ProxiedSandboxes;
use crate::voice::Voice;

/// Where the socket comes from.
#[derive(Debug)]
pub enum SocketPlace {
    /// Made at this absolute path.
    Path(PathBuf, Audience),
    /// Inherited from whoever started us.
    Inherited(OwnedFd),
}

/// Where the gateway says how it is.
#[derive(Debug)]
pub enum AdminPlace {
    /// Nowhere.
    None,
    /// On a Unix socket at this absolute path.
    Path(PathBuf),
    /// On a Unix socket inherited from whoever started us.
    Inherited(OwnedFd),
}

impl AdminPlace {
    pub(super) fn listener(self) -> Result<Option<NamedListener>, ListenError> {
        Ok(match self {
            Self::None => None,
            Self::Path(path) => Some(NamedListener::make_admin(&path)?),
            Self::Inherited(socket) => Some(NamedListener::inherited(socket)),
        })
    }
}

/// What is listened at, made before the gateway confines itself.
pub(super) struct Doors<'a> {
    /// For launchers, and how people name it.
    pub(super) runs: Option<(NamedListener, String)>,
    /// For who asks how it is.
    pub(super) admin: Option<NamedListener>,
    /// For their browser.
    pub(super) page: Option<TcpListener>,
    pub(super) proxied: Option<ProxiedSandboxes<'a>>,
}

impl Doors<'_> {
    /// Says where it listens, and under what.
    pub(super) fn announce(&self, voice: &mut dyn Voice, under: &str) {
        let page = self.page.as_ref().and_then(|page| page.local_addr().ok());
        if let Some(address) = page {
            voice.say(&format!(
                "outgate: the live page is at {address}; `outgate gateway page` lets a browser in"
            ));
        }
        let shown = self.shown();
        voice.say(&format!(
            "outgate: the gateway listens at {shown} ({under})"
        ));
    }

    fn shown(&self) -> String {
        let runs = self.runs.as_ref().map(|(_, shown)| shown.clone());
        let proxied = self.proxied.as_ref().map(|proxied| {
            let address = proxied.address().map(|address| address.to_string());
            let address = address.unwrap_or_default();
            format!("{address} as a proxy for {} tokens", proxied.count())
        });
        let all: Vec<String> = runs.into_iter().chain(proxied).collect();
        all.join(" and ")
    }
}

/// The socket for launchers.
pub(super) fn named(place: SocketPlace) -> Result<(NamedListener, String), ListenError> {
    Ok(match place {
        SocketPlace::Path(path, audience) => (
            NamedListener::make(&path, audience)?,
            path.display().to_string(),
        ),
        SocketPlace::Inherited(socket) => (
            NamedListener::inherited(socket),
            "the inherited socket".to_owned(),
        ),
    })
}
