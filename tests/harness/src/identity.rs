//! Who runs a sandbox: root, a user without rights, or whoever runs the tests.

/// The unprivileged user of the tests; owns nothing on any system.
pub const NOBODY: u32 = 65534;

/// Set in a laboratory that is a user namespace with one account.
pub(crate) const MAPPED: &str = "OUTGATE_LAB_MAPPED";

/// Whether the laboratory is a user namespace with one account.
pub fn is_mapped() -> bool {
    std::env::var_os(MAPPED).is_some()
}

/// The account a run is made with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Identity {
    /// The account the tests run with, as it is.
    Own,
    /// User and group 65534, no supplementary groups. Needs root.
    Nobody,
}

impl Identity {
    /// Every account that can be tried here.
    pub fn all() -> Vec<Self> {
        // In a user namespace of our own only one account is mapped.
        if nix::unistd::geteuid().is_root() && !is_mapped() {
            vec![Self::Own, Self::Nobody]
        } else {
            vec![Self::Own]
        }
    }

    /// What stands before a command to run it with this account.
    pub fn prefix(self) -> Vec<String> {
        match self {
            Self::Own => Vec::new(),
            Self::Nobody => {
                let id = NOBODY.to_string();
                [
                    "setpriv",
                    "--reuid",
                    &id,
                    "--regid",
                    &id,
                    "--clear-groups",
                    "--",
                ]
                .map(str::to_owned)
                .to_vec()
            }
        }
    }

    /// The user id files must have for this account to own them.
    pub fn uid(self) -> u32 {
        match self {
            Self::Own => nix::unistd::geteuid().as_raw(),
            Self::Nobody => NOBODY,
        }
    }
}
