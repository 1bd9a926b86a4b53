//! Whether the names that a program looks up by itself are asked for over
//! datagram sockets, or read from files that are substituted.

use crate::filter::Opens;
use crate::options::FileReport;
use crate::probe;
use crate::trust::TrustMeans;

/// How programs with a resolver of their own learn synthetic addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Names {
    /// They ask over datagram sockets, which can be made.
    Asked,
    /// They cannot ask: the files that they read are substituted.
    Substituted,
}

impl Names {
    /// On this machine.
    pub(super) fn here() -> Self {
        match probe::sealed_network() {
            Ok(()) => Self::Asked,
            Err(_) => Self::Substituted,
        }
    }

    /// Whether opens are held: for names, for certificates where those are given that
    /// way, or to say which files were opened in vain.
    pub(super) fn opens(self, trust: Option<TrustMeans>, files: FileReport) -> Opens {
        if files == FileReport::Say {
            return Opens::Trap;
        }
        match (self, trust) {
            (Self::Substituted, _) | (Self::Asked, Some(TrustMeans::Nss | TrustMeans::Splice)) => {
                Opens::Trap
            }
            (Self::Asked, None | Some(TrustMeans::Variables)) => Opens::Pass,
        }
    }

    /// The operator's hosts(5), where it is substituted.
    pub(super) fn hosts(self) -> Option<String> {
        let read = || std::fs::read_to_string("/etc/hosts").unwrap_or_default();
        (self == Self::Substituted).then(read)
    }
}
