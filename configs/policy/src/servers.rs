//! Servers on Unix sockets that do more for their clients than answer: whoever reaches one is
//! not confined by what confines it otherwise. Data, by the ends of usual paths.

use crate::error::PolicyError;
use crate::host::shown;
use crate::location::At;

const STARTS: &str = "has programs run outside the sandbox, as root where its server is root's";
const SPEAKS: &str = "can have services of your session start programs outside the sandbox";
const TYPES: &str = "can read and write what is typed in other windows";

/// Ends of paths, whole segments, and what their servers do. `*` stands for any rest of a name.
const SERVERS: [(&str, &str); 16] = [
    ("docker.sock", STARTS),
    ("podman.sock", STARTS),
    ("containerd.sock", STARTS),
    ("crio.sock", STARTS),
    ("buildkitd.sock", STARTS),
    ("libvirt-sock", STARTS),
    ("lxd/unix.socket", STARTS),
    ("incus/unix.socket", STARTS),
    ("systemd/private", STARTS),
    ("tmux-*/*", STARTS),
    ("screen/*/*", STARTS),
    ("dbus/system_bus_socket", SPEAKS),
    ("bus", SPEAKS),
    (".X11-unix/*", TYPES),
    ("wayland-*", TYPES),
    ("kitty-*", STARTS),
];

/// Sockets of the system's daemons that start programs as root for whoever asks.
const ROOTS: [&str; 9] = [
    "docker.sock",
    "containerd/containerd.sock",
    "podman/podman.sock",
    "crio/crio.sock",
    "libvirt/libvirt-sock",
    "lxd.socket",
    "lxd/unix.socket",
    "incus/unix.socket",
    "systemd/private",
];

/// What deserves a second look in a pattern of sockets that is allowed.
pub(crate) fn doubts(at: At<'_>, path: &str) -> Vec<PolicyError> {
    let mut out = Vec::new();
    if let Some(below) = path.strip_prefix("/var/run/") {
        let warning = format!("`{path}` may never match: `/var/run` is a link to `/run`");
        let hint = format!("sockets are judged by where they are: `unix:///run/{below}`");
        out.push(at.error(0, warning, Some(hint)));
    }
    if leads_to_root(path) {
        let warning = format!("whoever may speak to `{path}` can be root on this machine");
        let hint =
            "its daemon starts programs as root, with all files: take one that runs as the user";
        out.push(at.error(0, warning, Some(hint.to_owned())));
    } else if let Some(does) = does(path) {
        let message = format!("who reaches `{}` {does}", shown(path));
        let hint = "allow it only to a command that you would run without outgate";
        out.push(at.error(0, message, Some(hint.to_owned())));
    }
    out
}

/// Whether a pattern of sockets covers one of these.
fn leads_to_root(path: &str) -> bool {
    let below = path
        .strip_prefix("/var/run/")
        .or_else(|| path.strip_prefix("/run/"));
    let below = below.or_else(|| path.strip_prefix("/var/lib/"));
    below.is_some_and(|below| ROOTS.contains(&below) || below.contains("**") || below == "*")
}

/// What the server of a socket does for whoever reaches it, if it is one of these.
fn does(path: &str) -> Option<&'static str> {
    let found = SERVERS.iter().find(|(end, _)| is_end(path, end));
    found.map(|(_, does)| *does)
}

/// Whether the last segments of a path are these.
fn is_end(path: &str, end: &str) -> bool {
    let mut segments = path.rsplit('/');
    end.rsplit('/').all(|wanted| {
        let segment = segments.next().unwrap_or_default();
        match wanted.strip_suffix('*') {
            Some(beginning) => segment.len() > beginning.len() && segment.starts_with(beginning),
            None => segment == wanted,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_that_start_programs_are_known_by_their_paths() {
        for (path, is_known) in [
            ("/var/run/docker.sock", true),
            ("/run/user/1000/podman/podman.sock", true),
            ("/run/user/1000/bus", true),
            ("/run/dbus/system_bus_socket", true),
            ("/tmp/tmux-1000/default", true),
            ("/tmp/.X11-unix/X0", true),
            ("/run/user/1000/wayland-0", true),
            ("/run/user/1000/wayland-", false),
            ("/run/user/1000/gnupg/S.gpg-agent", false),
            ("/tmp/ssh-XXXXab12/agent.4711", false),
            ("/srv/omnibus", false),
            ("/srv/tmux/default", false),
        ] {
            assert_eq!(does(path).is_some(), is_known, "{path}");
        }
    }
}
