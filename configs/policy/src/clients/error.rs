//! Why the configuration of a client names no registry that can be allowed, and how to
//! repair that.

use super::{Client, REGISTRIES_MAX};

/// Why registries cannot be taken from a configuration. Never shows a value,
/// which may hold a password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClientError {
    /// Nothing names one.
    Unconfigured(Client),
    /// A value is no URL of a registry.
    Value {
        /// Whose configuration it is.
        client: Client,
        /// Where it stands.
        place: String,
        /// What it should name.
        key: String,
    },
    /// More than are taken.
    Many(Client),
}

impl std::fmt::Display for ClientError {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unconfigured(client) => write!(
                out,
                "the user's configuration of {} names no {}",
                client.title(),
                client.thing()
            ),
            Self::Value { client, place, key } => {
                let thing = client.thing();
                write!(out, "{place}: `{key}` is no http or https URL of a {thing}")
            }
            Self::Many(client) => write!(
                out,
                "the user's configuration of {} names more than {REGISTRIES_MAX} of them",
                client.title()
            ),
        }
    }
}

impl std::error::Error for ClientError {}

impl ClientError {
    /// How to repair it.
    pub fn hint(&self) -> String {
        match self {
            Self::Unconfigured(client) => format!(
                "name your {}: {}, or allow it with `-a '{}'`",
                client.thing(),
                client.example(),
                client.allowed()
            ),
            Self::Value { .. } | Self::Many(_) => {
                "correct it, or leave the preset out and allow the registry with \
                 `-a 'GET,HEAD https://HOST'`"
                    .to_owned()
            }
        }
    }
}
