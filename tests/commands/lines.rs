//! Messages arrive whole: each is one write(2), since launcher, gateway and command
//! share a standard error and would write into each other's lines.

use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};

use nix::sys::socket::{AddressFamily, SockFlag, SockType, socketpair};

use super::outgate;

/// What a program says on standard error, write by write: a sequenced-packet socket
/// keeps the bounds of each.
fn writes(mut command: Command) -> Vec<String> {
    let (ours, theirs): (OwnedFd, OwnedFd) = socketpair(
        AddressFamily::Unix,
        SockType::SeqPacket,
        None,
        SockFlag::SOCK_CLOEXEC,
    )
    .expect("two sockets");
    let status = command
        .env_clear()
        .env("HOME", "/home/me")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::from(theirs))
        .status();
    assert!(!status.expect("the program starts").success());
    // Its copy of the other end is closed, and so is the end of what arrives.
    drop(command);
    let mut ours = UnixStream::from(ours);
    let mut packets = Vec::new();
    loop {
        let mut packet = vec![0; 1 << 16];
        let count = ours.read(&mut packet).expect("a packet");
        if count == 0 {
            return packets;
        }
        packet.truncate(count);
        packets.push(String::from_utf8_lossy(&packet).into_owned());
    }
}

#[test]
fn each_message_is_one_write() {
    let launcher = outgate();
    let gateway = launcher.with_file_name("outgate-gateway");
    for (program, words, begin) in [
        (
            &launcher,
            &["run", "-a", "GET a b", "--", "true"][..],
            "outgate: ",
        ),
        (
            &launcher,
            &["run", "-p", "none.toml", "--", "true"],
            "outgate: ",
        ),
        (&gateway, &["--none"], "outgate-gateway: "),
    ] {
        let mut command = Command::new(program);
        command.args(words);
        let said = writes(command);
        let [message] = &said[..] else {
            panic!(
                "{program:?} {words:?} said it in {} parts: {said:?}",
                said.len()
            );
        };
        assert!(
            message.starts_with(begin),
            "{program:?} {words:?}: {message}"
        );
        assert!(message.ends_with('\n'), "{program:?} {words:?}: {message}");
    }
}
