//! What a service manager is told of a service (sd_notify(3)): that it is ready, reloads,
//! stops, and still serves. Where nobody asked to be told, nothing is said.

use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

/// Of the time within which the manager wants to hear, the part after which it hears.
const WATCHDOG_PARTS: u32 = 3;

/// The manager of this service, if there is one.
#[derive(Debug, Default)]
pub struct ServiceManager {
    to: Option<(UnixDatagram, SocketAddr)>,
    watchdog: Option<Duration>,
}

impl ServiceManager {
    /// The one that listens at `socket` (`$NOTIFY_SOCKET`): a path, or a name behind `@`;
    /// `watchdog` is within what time it wants to hear that the service serves
    /// (`$WATCHDOG_USEC`).
    ///
    /// # Errors
    /// It is no address, or there is no socket to send from.
    pub fn at(socket: &OsStr, watchdog: Option<Duration>) -> io::Result<Self> {
        let address = match socket.as_bytes().split_first() {
            None => return Err(io::ErrorKind::InvalidInput.into()),
            Some((b'@', name)) => SocketAddr::from_abstract_name(name)?,
            _ => SocketAddr::from_pathname(socket)?,
        };
        let from = UnixDatagram::unbound()?;
        // A manager that does not read must not stop the service.
        from.set_nonblocking(true)?;
        Ok(Self {
            to: Some((from, address)),
            watchdog,
        })
    }

    /// How often it is told that the service serves.
    pub fn pulse(&self) -> Option<Duration> {
        self.watchdog.map(|time| time / WATCHDOG_PARTS)
    }

    /// The service serves; a word for people.
    pub fn ready(&self, status: &str) {
        self.tell(&format!("READY=1\nSTATUS={}", one_line(status)));
    }

    /// It reads its configuration again; [`Self::ready`] follows.
    pub fn reloading(&self) {
        let now = clock_gettime(ClockId::CLOCK_MONOTONIC).map(Duration::from);
        let micros = now.map_or(0, |now| now.as_micros());
        self.tell(&format!("RELOADING=1\nMONOTONIC_USEC={micros}"));
    }

    /// It ends.
    pub fn stopping(&self) {
        self.tell("STOPPING=1\nSTATUS=finishing what runs");
    }

    /// It serves: whoever does the work has just said so.
    pub fn alive(&self) {
        self.tell("WATCHDOG=1");
    }

    fn tell(&self, state: &str) {
        if let Some((from, address)) = &self.to {
            // Nobody is left to be told that nobody can be told.
            drop(from.send_to_addr(state.as_bytes(), address));
        }
    }
}

/// A text that cannot begin another variable.
fn one_line(text: &str) -> String {
    text.replace(char::is_control, " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(manager: &UnixDatagram) -> String {
        let mut bytes = [0; 512];
        let count = manager.recv(&mut bytes).unwrap();
        String::from_utf8_lossy(bytes.get(..count).unwrap_or_default()).into_owned()
    }

    #[test]
    fn a_manager_hears_what_it_is_told_by_path_and_by_name() {
        let directory = std::env::temp_dir().join(format!("outgate-notify-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let path = directory.join("notify");
        drop(std::fs::remove_file(&path));
        let name = format!("outgate-test-{}", std::process::id());
        let by_name = SocketAddr::from_abstract_name(&name).unwrap();
        let managers = [
            (
                UnixDatagram::bind(&path).unwrap(),
                path.clone().into_os_string(),
            ),
            (
                UnixDatagram::bind_addr(&by_name).unwrap(),
                format!("@{name}").into(),
            ),
        ];
        for (manager, place) in managers {
            let own = ServiceManager::at(&place, Some(Duration::from_secs(3))).unwrap();
            own.ready("all\nWATCHDOG=trigger");
            assert_eq!(heard(&manager), "READY=1\nSTATUS=all WATCHDOG=trigger");
            own.alive();
            assert_eq!(heard(&manager), "WATCHDOG=1");
            own.reloading();
            assert!(heard(&manager).starts_with("RELOADING=1\nMONOTONIC_USEC="));
            own.stopping();
            assert!(heard(&manager).starts_with("STOPPING=1"));
            assert_eq!(own.pulse(), Some(Duration::from_secs(1)));
        }
        std::fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn without_a_manager_nothing_is_said() {
        let nobody = ServiceManager::default();
        nobody.ready("x");
        assert_eq!(nobody.pulse(), None);
        assert!(ServiceManager::at(OsStr::new(""), None).is_err());
    }
}
