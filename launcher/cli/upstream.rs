//! `--upstream-proxy` and the customary variables, checked before anything is
//! started: a wrong option is an error, a variable that cannot be used a warning.

use outgate_policy::{Proxies, Proxy, UPSTREAM_PROXY};

use crate::report;

/// Whose network a run uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Network {
    /// That of a gateway started from here.
    Own,
    /// That of a shared gateway, which has its own environment.
    Elsewhere,
}

/// Checks what the command line or the environment names.
///
/// # Errors
/// A sentence: the command line or outgate's own variable names no proxy. It
/// never shows the URL, which may hold a password.
pub(crate) fn check(option: Option<&str>, network: Network) -> Result<(), String> {
    if let Some(url) = option {
        return match Proxy::parse(url) {
            _ if url == "none" => Ok(()),
            Ok(_) => Ok(()),
            Err(error) => Err(format!("--upstream-proxy: {error}")),
        };
    }
    if network == Network::Elsewhere {
        return Ok(());
    }
    let (_, unusable) = Proxies::of_environment(|name| std::env::var(name).ok());
    for one in unusable {
        if one.variable == UPSTREAM_PROXY {
            return Err(format!("{UPSTREAM_PROXY}: {}", one.error));
        }
        report::warning(&format!(
            "{} is not used as upstream proxy: {}",
            one.variable, one.error
        ));
    }
    Ok(())
}
