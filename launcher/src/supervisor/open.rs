//! Substitution at open. Where datagram sockets cannot exist, programs that read
//! resolv.conf(5) and hosts(5) themselves find the stub and the synthetic address
//! addresses there; where the user asks for it, bundles of certificates at known
//! places hold the run's authority, and so do databases of NSS; where somebody asks
//! which files were opened in vain, the paths are noted. A terminal that the caller made is opened for it.
//! Every other open is performed by the kernel, where Landlock judges it.

use std::os::fd::{AsFd, AsRawFd as _};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, OFlag};
use outgate_sys::seccomp::OnExec;

use super::Supervisor;
use crate::notification::Notification;
use crate::opened::OpenedFiles;
use crate::terminal;
use crate::trust::splice::{PATH_BYTES, Stores, sealed};

/// Bytes of a path that can be one of the two files about names.
const NAME_FILE_BYTES: usize = 32;
/// What programs that speak DNS over TCP find.
const RESOLV_CONF: &str = "nameserver 127.0.0.1\noptions use-vc\n";
/// How long the synthetic addresses may take to arrive.
const HOSTS_TIMEOUT: Duration = Duration::from_secs(2);

/// What is given in the place of files that the command opens.
#[derive(Debug, Default)]
pub struct Substitutes {
    /// The operator's own hosts(5), where the files about names are substituted.
    pub hosts: Option<String>,
    /// Bundles of certificates, where those are.
    pub stores: Option<Stores>,
    /// What notes the files that are opened, where somebody wants to know.
    pub opened: Option<OpenedFiles>,
}

/// The substituted hosts file.
#[derive(Debug)]
pub(super) struct SubstitutedHosts {
    operator: Option<String>,
    synthetic_addresses: Option<String>,
}

impl SubstitutedHosts {
    /// Starts from the operator's own hosts file; without one, none of the
    /// files about names is substituted.
    pub(super) fn new(operator: Option<String>) -> Self {
        Self {
            operator,
            synthetic_addresses: None,
        }
    }
}

/// An open of the hosts file that waits for its content.
#[derive(Debug)]
pub(super) struct HostsOpening {
    notification: Notification,
    on_exec: OnExec,
    until: Option<Instant>,
}

impl Supervisor<'_> {
    pub(super) fn on_open(&mut self, notification: Notification) {
        let number = notification.held().number;
        let (directory, path, flags) = if Some(number) == self.numbers.open {
            (
                AT_FDCWD.as_raw_fd(),
                notification.word(0),
                notification.int(1),
            )
        } else {
            (
                notification.int(0),
                notification.word(1),
                notification.int(2),
            )
        };
        let flags = OFlag::from_bits_retain(flags);
        let on_exec = if flags.contains(OFlag::O_CLOEXEC) {
            OnExec::Close
        } else {
            OnExec::Keep
        };
        let mut bytes = [0_u8; PATH_BYTES];
        let wanted = match (&self.stores, &self.opened) {
            (None, None) => bytes.split_at_mut(NAME_FILE_BYTES).0,
            (Some(_), _) | (_, Some(_)) => &mut bytes[..],
        };
        let thread = notification.held().thread;
        let count = outgate_sys::memory::copy(thread, path, wanted).unwrap_or(0);
        let bytes = bytes.get(..count).unwrap_or_default();
        let end = bytes.iter().position(|byte| *byte == 0);
        let Some(path) = end.and_then(|end| bytes.get(..end)) else {
            return notification.pass();
        };
        if let Some(opened) = &mut self.opened {
            opened.note(thread, directory, path, flags);
        }
        if terminal::number(path).is_some() {
            return self.attributes.perform(notification);
        }
        let names = self.hosts.operator.is_some();
        match path {
            b"/etc/resolv.conf" if names => give(notification, RESOLV_CONF, on_exec),
            b"/etc/hosts" if names => self.open_hosts(notification, on_exec),
            _ => match self
                .stores
                .as_ref()
                .and_then(|stores| stores.at(path, flags))
            {
                Some(Ok(store)) => notification.give(store.as_fd(), on_exec),
                Some(Err(_)) => notification.fail(Errno::EMFILE),
                None => notification.pass(),
            },
        }
    }

    fn open_hosts(&mut self, notification: Notification, on_exec: OnExec) {
        self.link.start();
        let known = self.hosts.synthetic_addresses.is_some() || self.link.gone().is_some();
        let opening = HostsOpening {
            notification,
            on_exec,
            until: Instant::now().checked_add(HOSTS_TIMEOUT),
        };
        self.opening.push(opening);
        if known {
            self.pass_opening();
        }
    }

    /// The synthetic addresses arrived.
    pub(super) fn hosts_known(&mut self, lines: &str) {
        self.hosts.synthetic_addresses = Some(lines.to_owned());
        self.pass_opening();
    }

    /// Answers every waiting open with what is known.
    pub(super) fn pass_opening(&mut self) {
        if self.opening.is_empty() {
            return;
        }
        let synthetic_addresses = self
            .hosts
            .synthetic_addresses
            .as_deref()
            .unwrap_or_default();
        let operator = self.hosts.operator.as_deref().unwrap_or_default();
        let text = format!("{operator}\n{synthetic_addresses}");
        for opening in self.opening.drain(..) {
            give(opening.notification, &text, opening.on_exec);
        }
    }

    pub(super) fn tick_opening(&mut self, now: Instant) {
        let late = |opening: &HostsOpening| opening.until.is_some_and(|until| now >= until);
        if self.opening.iter().any(late) {
            self.pass_opening();
        }
    }
}

/// Answers an open with a sealed file of this content.
fn give(notification: Notification, text: &str, on_exec: OnExec) {
    match sealed(text.as_bytes()) {
        Ok(file) => notification.give(file.as_fd(), on_exec),
        Err(_) => notification.fail(Errno::EMFILE),
    }
}
