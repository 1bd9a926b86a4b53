//! Datagram sockets that were bound inside a sandbox's sealed network. The
//! reply leaves from the very address that was asked, since clients compare
//! (ip(7) `IP_PKTINFO`, ipv6(7) `IPV6_RECVPKTINFO`).

use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::socket::{
    ControlMessage, ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, sendmsg, setsockopt,
    sockopt,
};
use outgate_dlp::span;
use tokio::io::Interest;
use tokio::net::UdpSocket;

use super::message::{self, Transport};
use crate::limits;
use crate::session::Session;

/// Faults in a row after which a socket counts as broken.
const FAULTS_MAX: u32 = 64;

/// One socket that reports the address each datagram came to.
#[derive(Debug)]
pub(super) struct Datagrams {
    socket: UdpSocket,
}

/// A question and the way back.
struct DnsQuestion {
    bytes: usize,
    from: SockaddrStorage,
    asked: Option<AskedAddress>,
}

/// The local address that was asked.
#[derive(Clone, Copy)]
enum AskedAddress {
    V4(libc::in_pktinfo),
    V6(libc::in6_pktinfo),
}

impl Datagrams {
    pub(super) fn new(socket: OwnedFd) -> io::Result<Self> {
        // Each option belongs to one family; a dual-stack socket takes both.
        let v4 = setsockopt(&socket, sockopt::Ipv4PacketInfo, &true);
        let v6 = setsockopt(&socket, sockopt::Ipv6RecvPacketInfo, &true);
        v4.or(v6)?;
        let socket = std::net::UdpSocket::from(socket);
        socket.set_nonblocking(true)?;
        Ok(Self {
            socket: UdpSocket::from_std(socket)?,
        })
    }

    pub(super) async fn serve(&self, session: &Session) {
        let mut buffer = vec![0; limits::DNS_QUESTION_BYTES_MAX];
        let mut faults = 0;
        while faults < FAULTS_MAX {
            let received = self.socket.async_io(Interest::READABLE, || {
                Ok(receive(self.socket.as_fd(), &mut buffer)?)
            });
            // Errors of a datagram socket are those of single datagrams.
            let Ok(question) = received.await else {
                faults += 1;
                continue;
            };
            faults = 0;
            let bytes = span::upto(&buffer, question.bytes);
            if let Some(reply) = message::reply(session, None, bytes, Transport::Datagram) {
                // A reply that finds no room is lost, as on any network.
                send(self.socket.as_fd(), &question, &reply).ok();
            }
        }
    }
}

fn receive(socket: BorrowedFd<'_>, buffer: &mut [u8]) -> Result<DnsQuestion, Errno> {
    let mut space = nix::cmsg_space!(libc::in_pktinfo, libc::in6_pktinfo);
    let mut parts = [IoSliceMut::new(buffer)];
    let message = recvmsg::<SockaddrStorage>(
        socket.as_raw_fd(),
        &mut parts,
        Some(&mut space),
        MsgFlags::MSG_DONTWAIT,
    )?;
    let mut asked = None;
    for part in message.cmsgs()? {
        match part {
            ControlMessageOwned::Ipv4PacketInfo(info) => asked = Some(AskedAddress::V4(info)),
            ControlMessageOwned::Ipv6PacketInfo(info) => asked = Some(AskedAddress::V6(info)),
            _ => {}
        }
    }
    Ok(DnsQuestion {
        bytes: message.bytes,
        from: message.address.ok_or(Errno::EINVAL)?,
        asked,
    })
}

fn send(socket: BorrowedFd<'_>, question: &DnsQuestion, reply: &[u8]) -> Result<(), Errno> {
    let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
    let parts = [IoSlice::new(reply)];
    let to = Some(&question.from);
    let socket = socket.as_raw_fd();
    match question.asked {
        None => sendmsg(socket, &parts, &[], flags, to)?,
        Some(AskedAddress::V4(mut info)) => {
            // The source of the reply is the specific local address.
            info.ipi_spec_dst = info.ipi_addr;
            info.ipi_ifindex = 0;
            let control = [ControlMessage::Ipv4PacketInfo(&info)];
            sendmsg(socket, &parts, &control, flags, to)?
        }
        Some(AskedAddress::V6(info)) => {
            let control = [ControlMessage::Ipv6PacketInfo(&info)];
            sendmsg(socket, &parts, &control, flags, to)?
        }
    };
    Ok(())
}
