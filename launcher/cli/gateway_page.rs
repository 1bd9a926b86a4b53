//! `outgate gateway page`: asks a gateway, on its admin socket, for an address that lets one
//! browser see its live page; and where that page is served.

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueHint};
use outgate_launcher::share::AdminPlace;
use outgate_policy::printable;

use crate::gateway_status::{asked, beside, unasked};
use crate::report;

const EXAMPLES: &str = "\
Examples:
  outgate gateway --listen /run/user/1000/gate -p site.toml --admin-listen 127.0.0.1:7070
  outgate gateway page /run/user/1000/gate
  xdg-open \"$(outgate gateway page /run/user/1000/gate)\"
  ssh -L 7070:127.0.0.1:7070 HOST      then the address opens in a browser on this side too

The address is good for two minutes and for one browser, which stays let in for twelve hours
or until the gateway ends. Exit status: 0 it is printed, 1 there is none.";

/// Print an address that lets one browser see a gateway's live page, once and soon
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct PageOptions {
    /// The socket of the gateway, as in `outgate run --gateway`
    #[arg(value_name = "SOCKET", value_hint = ValueHint::FilePath, required_unless_present = "admin")]
    socket: Option<PathBuf>,
    /// Its admin socket, where that lies elsewhere
    #[arg(long, value_name = "SOCKET", value_hint = ValueHint::FilePath)]
    admin: Option<PathBuf>,
}

/// Asks and prints.
pub(crate) fn page(options: &PageOptions) -> ExitCode {
    let socket = options.socket.as_deref().map(beside);
    let Some(path) = options.admin.clone().or(socket) else {
        return report::wrong("name the socket of the gateway");
    };
    match asked(&path, "POST /page") {
        Ok(address) => {
            report::line(&printable(address.trim_end()));
            ExitCode::SUCCESS
        }
        Err(error) => unasked(&path, &error),
    }
}

/// Where the page is to be served, bound before the gateway confines itself.
///
/// # Errors
/// A sentence: others could reach it, or nobody could be let in.
pub(crate) fn listener(
    address: Option<SocketAddr>,
    admin: &AdminPlace,
) -> Result<Option<TcpListener>, String> {
    let Some(address) = address else {
        return Ok(None);
    };
    if !address.ip().is_loopback() {
        return Err(format!(
            "`--admin-listen {address}` is no loopback address: the live page is for this machine; \
             `ssh -L` brings it to another"
        ));
    }
    if matches!(admin, AdminPlace::None) {
        return Err(
            "--admin-listen goes with an admin socket, on which `outgate gateway page` lets \
             browsers in: give --admin SOCKET"
                .to_owned(),
        );
    }
    let listener = TcpListener::bind(address);
    let listener = listener.map_err(|error| format!("`--admin-listen {address}`: {error}"))?;
    Ok(Some(listener))
}
