//! Servers on Unix sockets that do more for their clients than answer: whoever reaches one is
//! not confined by what confines it otherwise. Data, by the ends of usual paths.

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

/// What the server of a socket does for whoever reaches it, if it is one of these.
pub(crate) fn does(path: &str) -> Option<&'static str> {
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
