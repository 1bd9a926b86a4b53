//! What all sessions of a gateway need for TLS, read before the process
//! confines itself: whom it trusts, as whom it presents itself, and the user's
//! own authority, if runs are not to have one each.

use std::path::PathBuf;
use std::sync::Arc;

use outgate_ca::{Authority, AuthorityFiles, Leaves};

use super::identities::Identities;
use super::roots::Roots;
use crate::ServeError;
use crate::config::TlsFiles;

/// See the head of this file.
#[derive(Debug, Default)]
pub(crate) struct TlsKeys {
    roots: Arc<Roots>,
    identities: Arc<Identities>,
    own: Option<Arc<Leaves>>,
}

impl TlsKeys {
    /// Reads the files.
    ///
    /// # Errors
    /// [`ServeError::UpstreamCa`], [`ServeError::Authority`],
    /// [`ServeError::Identity`]: one of them cannot be used.
    pub(crate) fn read(files: &TlsFiles) -> Result<Self, ServeError> {
        let roots = Roots::locate(&files.upstream_ca).map_err(upstream)?;
        let identities = Identities::read(&files.clients).map_err(ServeError::Identity)?;
        let own = match &files.authority {
            None => None,
            Some(directory) => {
                let authority = outgate_ca::open(&AuthorityFiles::of(directory))?;
                Some(Arc::new(Leaves::new(authority)))
            }
        };
        Ok(Self {
            roots: Arc::new(roots),
            identities: Arc::new(identities),
            own,
        })
    }

    /// Whom it trusts to vouch for origins.
    pub(crate) fn roots(&self) -> &Arc<Roots> {
        &self.roots
    }

    /// As whom it presents itself.
    pub(crate) fn identities(&self) -> &Arc<Identities> {
        &self.identities
    }

    /// The leaves of a session: of the user's own authority, or of one that is
    /// made for it.
    ///
    /// # Errors
    /// In words: none can be made.
    pub(crate) fn leaves(&self, sandbox: &str) -> Result<Arc<Leaves>, String> {
        if let Some(own) = &self.own {
            return Ok(Arc::clone(own));
        }
        let authority = Authority::for_run(sandbox).map_err(|error| error.to_string())?;
        Ok(Arc::new(Leaves::new(authority)))
    }
}

fn upstream((path, fault): (PathBuf, String)) -> ServeError {
    let path = path.display().to_string();
    ServeError::UpstreamCa { path, fault }
}
