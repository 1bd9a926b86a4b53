//! A policy in the making: every source adds to it, every fault is kept.
//!
//! Merging happens here: lists unite, denials always survive, of scalars the
//! last wins. Knows values and places, not the syntax of documents.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use crate::author::{Access, Author};
use crate::error::{PolicyError, PolicyErrors};
use crate::expand::{PathFault, expand, expand_value, walked};
use crate::grant::{ListenGrant, MadeContent, MadePath, PathGrant};
use crate::host::shown;
use crate::limits::{CLIENTS_MAX, ERRORS_MAX, SOURCE_BYTES_MAX};
use crate::location::{At, Location};
use crate::net::Net;
use crate::pin_text::{parse_pin_address, parse_pin_host};
use crate::policy::{Policy, pinned};
use crate::preset::Shipped;
use crate::preset_paths::ShippedPath;
use crate::rule_host::{parse_address, parse_listen_ports};
use crate::settings::{ClientCertificate, Intercept};
use crate::source::Context;

mod moved;
mod rules;
pub(crate) mod secret;

use moved::Move;
pub(crate) use rules::{LockState, RuleExtras};

/// The policy so far, and the faults so far.
pub(crate) struct Draft<'c> {
    pub(crate) context: &'c Context,
    pub(crate) policy: Policy,
    /// Places of the document that is read, and where they lie.
    pub(crate) moves: Vec<Move>,
    pub(crate) lock: LockState,
    errors: Vec<PolicyError>,
    /// What is wrong with the first certificate for a host, if TLS is never
    /// opened.
    unpresented: Option<PolicyError>,
}

impl<'c> Draft<'c> {
    pub(crate) fn new(context: &'c Context) -> Self {
        Self {
            context,
            policy: Policy::default(),
            moves: Vec::new(),
            lock: LockState::Open,
            errors: Vec::new(),
            unpresented: None,
        }
    }

    /// The policy, if there was no fault.
    pub(crate) fn finish(mut self) -> Result<Policy, PolicyErrors> {
        secret::check(&mut self);
        if self.policy.settings.intercept == Intercept::Never {
            self.errors.extend(self.unpresented.take());
        }
        self.policy.settings.let_go();
        if self.errors.is_empty() {
            return Ok(self.policy);
        }
        self.errors.truncate(ERRORS_MAX);
        Err(PolicyErrors(self.errors))
    }

    pub(crate) fn fault(&mut self, error: PolicyError) {
        self.errors.push(error);
    }

    /// Keeps the place of a value for which nothing else does.
    pub(crate) fn note(&mut self, name: &str, at: At<'_>) {
        let name = name.trim_start_matches('.').to_owned();
        self.policy.places.insert(name, at.place());
    }

    /// Says that a source is longer than one may be; whether it is.
    pub(crate) fn is_too_long<'a>(&mut self, location: &'a Location<'a>) -> bool {
        let length = location.text().len();
        let too_long = length > SOURCE_BYTES_MAX;
        if too_long {
            self.fault(location.start().error(
                0,
                format!("the policy has {length} bytes, more than {SOURCE_BYTES_MAX}"),
                Some("split it, or use wildcards".to_owned()),
            ));
        }
        too_long
    }

    /// Number of faults so far.
    pub(crate) fn faults(&self) -> usize {
        self.errors.len()
    }

    /// Puts the faults from `first` on into the order of their places.
    pub(crate) fn order_faults(&mut self, first: usize) {
        if let Some(own) = self.errors.get_mut(first..) {
            own.sort_by_key(|error| (error.line, error.column));
        }
    }

    /// Drops the faults that stand on the line of an earlier one: of those from
    /// `first` on, the leading `causes` are kept and clear their lines.
    pub(crate) fn drop_consequences(&mut self, first: usize, causes: usize) {
        let lines: Vec<u32> = self
            .errors
            .iter()
            .skip(first)
            .take(causes)
            .map(|error| error.line)
            .collect();
        let mut index = 0;
        self.errors.retain(|error| {
            index += 1;
            index <= first + causes || !lines.contains(&error.line)
        });
    }

    /// Adds a path to a list of the file system; the same path is kept once.
    pub(crate) fn path(&mut self, at: At<'_>, access: Access, text: &str, author: Author) {
        let optional = author == Author::Preset;
        let written = text;
        let text = &*self.placed(written);
        let is_moved = text != written;
        let path = match expand(text, self.context) {
            Ok(path) => path,
            Err(PathFault::Unknown(_)) if optional => return,
            Err(PathFault::Unknown(name)) => {
                self.fault(unknown_directory(at, name));
                return;
            }
            Err(PathFault::Wrong(message, hint)) => {
                self.fault(at.error(0, message, Some(hint.to_owned())));
                return;
            }
        };
        self.warn_of_wide_path(at, access, &path);
        if is_moved {
            self.note_moved(at, written, &path);
        }
        self.make(access, text, &path);
        if access == Access::Deny
            && let Ok(Some(path)) = walked(text, self.context)
        {
            self.grant(at, access, path, author);
        }
        self.grant(at, access, path, author);
    }

    fn grant(&mut self, at: At<'_>, access: Access, path: String, author: Author) {
        let optional = author == Author::Preset;
        let list = self.list(access);
        if let Some(known) = list.iter_mut().find(|known| known.path == path) {
            // What the user names is the user's, also where we ship it.
            if !optional && std::mem::take(&mut known.optional) {
                known.place = at.place();
            }
            return;
        }
        list.push(PathGrant {
            path,
            place: at.place(),
            optional,
        });
    }

    /// Sets a variable of the command. A value that begins with `~/` or `$TMPDIR/`,
    /// or has one behind its first `=`, names a path there.
    pub(crate) fn variable(&mut self, at: At<'_>, (name, value): (&str, &str), author: Author) {
        let value = match expand_value(value, self.context) {
            Ok(value) => value,
            Err(PathFault::Unknown(_)) if author == Author::Preset => return,
            Err(PathFault::Unknown(name)) => {
                self.fault(unknown_directory(at, name));
                return;
            }
            Err(PathFault::Wrong(message, hint)) => {
                self.fault(at.error(0, message, Some(hint.to_owned())));
                return;
            }
        };
        self.note(&format!("environment.set.{name}"), at);
        self.policy.environment.set.insert(name.to_owned(), value);
    }

    /// Adds what a shipped policy about files says, which needs no reading.
    pub(crate) fn shipped(&mut self, place: &str, shipped: &Shipped) {
        for own in shipped.variables {
            let Ok(value) = expand_value(own.value, self.context) else {
                continue;
            };
            let at = Arc::from(format!("{place}:{}:{}", own.line, own.column));
            let key = format!("environment.set.{}", own.name);
            self.policy.places.insert(key, at);
            let set = &mut self.policy.environment.set;
            set.insert(own.name.to_owned(), value);
        }
        for own in shipped.paths.unwrap_or_default() {
            let Ok(path) = expand(own.path, self.context) else {
                continue;
            };
            if own.path == "." {
                self.warn_of_home_as_working_directory(place, own, &path);
            }
            self.make(own.access, own.path, &path);
            let list = self.list(own.access);
            if !list.iter().any(|known| known.path == path) {
                list.push(PathGrant {
                    path,
                    place: Arc::from(format!("{place}:{}:{}", own.line, own.column)),
                    optional: true,
                });
            }
        }
    }

    /// The working directory is writable by default, so it should not be the home.
    fn warn_of_home_as_working_directory(&mut self, place: &str, own: &ShippedPath, path: &str) {
        if !self.holds_home(path) {
            return;
        }
        self.policy.warnings.push(PolicyError {
            place: place.to_owned(),
            line: own.line,
            column: own.column,
            message: "the working directory holds the home directory, so the command may write all of it, with its credentials".to_owned(),
            hint: Some("start the command in a directory of its own".to_owned()),
        });
    }

    fn holds_home(&self, path: &str) -> bool {
        let home = self.context.home.trim_end_matches('/');
        let above = home
            .strip_prefix(path)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        !home.is_empty() && (above || path == "/")
    }

    /// Notes a directory that is made where it is absent.
    fn make(&mut self, access: Access, text: &str, path: &str) {
        if access == Access::Write && text.ends_with('/') {
            self.made(path, MadeContent::Directory);
        }
    }

    /// Adds a file that is made where it is absent, and may be written.
    pub(crate) fn new_file(&mut self, at: At<'_>, (path, text): (&str, &str), author: Author) {
        let faults = self.faults();
        self.path(at, Access::Write, path, author);
        if let Ok(path) = expand(&self.placed(path), self.context)
            && faults == self.faults()
        {
            self.made(&path, MadeContent::File(text.to_owned()));
        }
    }

    fn made(&mut self, path: &str, content: MadeContent) {
        let made = &mut self.policy.filesystem.made;
        if !made.iter().any(|known| known.path == path) {
            let path = path.to_owned();
            made.push(MadePath { path, content });
        }
    }

    fn list(&mut self, access: Access) -> &mut Vec<PathGrant> {
        let filesystem = &mut self.policy.filesystem;
        match access {
            Access::Read => &mut filesystem.read,
            Access::Write => &mut filesystem.write,
            Access::Deny => &mut filesystem.deny,
        }
    }

    fn warn_of_wide_path(&mut self, at: At<'_>, access: Access, path: &str) {
        if access == Access::Deny || !self.holds_home(path) {
            return;
        }
        let writes = access == Access::Write;
        let verb = if writes { "write" } else { "read" };
        self.policy.warnings.push(at.error(
            0,
            format!("the command may {verb} the whole home directory, with its credentials"),
            Some("name the directories it needs, or deny `~/.ssh` and the like".to_owned()),
        ));
    }

    /// Adds a certificate that is presented to a host; a later one for the
    /// same host replaces it.
    pub(crate) fn client(&mut self, at: At<'_>, client: ClientCertificate) {
        let message = format!(
            "the certificate for `{}` cannot be presented: `[tls] intercept = \"never\"` forbids \
             to open TLS",
            client.host
        );
        let hint = "take one of the two out of the policy".to_owned();
        let fault = at.error(0, message, Some(hint));
        self.unpresented.get_or_insert(fault);
        let clients = &mut self.policy.settings.clients;
        clients.retain(|known| known.host != client.host);
        if clients.len() < CLIENTS_MAX {
            clients.push(client);
            return;
        }
        let message = format!("the policy has certificates for more than {CLIENTS_MAX} hosts");
        let hint = "take some out of the policy".to_owned();
        self.fault(at.error(0, message, Some(hint)));
    }

    /// Adds a secret written as one text.
    pub(crate) fn secret(&mut self, at: At<'_>, text: &str) {
        secret::argument(self, at, text);
    }

    /// Adds a pin.
    pub(crate) fn pin(&mut self, host: (At<'_>, &str), address: (At<'_>, &str)) {
        let host = parse_pin_host(host.1).map_err(|(message, hint)| host.0.error(0, message, hint));
        let pin = parse_pin_address(address.1)
            .map_err(|(message, hint)| address.0.error(0, message, Some(hint)));
        match (host, pin) {
            (Ok((name, port)), Ok(pin)) => {
                self.note(&format!("pin.{}", pinned(&name, port)), address.0);
                self.policy.pins.add(name, port, pin);
            }
            (host, pin) => self.errors.extend(host.err().into_iter().chain(pin.err())),
        }
    }

    /// Adds a pin written as `HOST[:PORT]=ADDR[:PORT]`.
    pub(crate) fn pin_argument(&mut self, at: At<'_>, text: &str) {
        let Some((host, address)) = text.split_once('=') else {
            self.fault(at.error(
                0,
                format!("the pin `{}` has no `=`", shown(text)),
                Some("write `HOST=ADDRESS` or `HOST:PORT=ADDRESS:PORT`".to_owned()),
            ));
            return;
        };
        let behind = At {
            offset: at.offset + host.len() + 1,
            ..at
        };
        self.pin((at, host), (behind, address));
    }

    /// Adds `[ADDR:]PORTS` to listen on; without address, both loopback addresses.
    pub(crate) fn listen(&mut self, at: At<'_>, text: &str) {
        let split = text.rsplit_once(':');
        let (address, ports) = split.map_or((None, text), |(ip, ports)| (Some(ip), ports));
        let Some(ports) = parse_listen_ports(ports) else {
            self.fault(at.error(
                0,
                format!(
                    "`{}` does not end in a port from 1 to 65535, a range of ports, `0` or `*`",
                    shown(text)
                ),
                Some("write `3000`, `127.0.0.1:8000-8100`, `[::]:3000` or `0.0.0.0:*`".to_owned()),
            ));
            return;
        };
        let addresses = match address.map(|text| (text, parse_address(text))) {
            None | Some(("localhost", _)) => {
                vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()]
            }
            Some((_, Some(ip))) => vec![ip],
            Some((text, None)) => {
                self.fault(
                    at.error(
                        0,
                        format!("`{}` is not an address of this machine", shown(text)),
                        Some(
                            "write `127.0.0.1:3000`, or `0.0.0.0:3000` for every IPv4 address"
                                .to_owned(),
                        ),
                    ),
                );
                return;
            }
        };
        let place: Arc<str> = at.place();
        for address in addresses {
            self.policy.listen.push(ListenGrant {
                address,
                ports: ports.clone(),
                place: place.clone(),
            });
        }
    }

    /// Adds to the special-use ranges of a rule.
    pub(crate) fn check_special_range(&mut self, at: At<'_>, net: Net) -> Option<Net> {
        if net.is_special() {
            return Some(net);
        }
        self.fault(at.error(
            0,
            format!("`{net}` is not within the special-use addresses"),
            Some("public addresses of an allowed name need no grant; remove it".to_owned()),
        ));
        None
    }
}

fn unknown_directory(at: At<'_>, name: &str) -> PolicyError {
    at.error(
        0,
        format!("the {name} directory is unknown here"),
        Some("write the path itself".to_owned()),
    )
}
