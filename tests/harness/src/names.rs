//! A DNS server for one test: answers A questions with addresses in turn and
//! records every name it is asked for.

use std::net::{Ipv4Addr, Ipv6Addr, UdpSocket};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// The server. It ends with the test's process.
#[derive(Debug)]
pub struct Names {
    asked: Arc<Mutex<Vec<String>>>,
}

impl Names {
    /// Listens on UDP port 53 of every address. The n-th question for an A
    /// record is answered with the n-th address, the last one for ever after.
    ///
    /// # Panics
    /// When it cannot listen.
    pub fn start(addresses: Vec<Ipv4Addr>) -> Self {
        let socket = UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 53)).expect("port 53");
        let asked = Arc::new(Mutex::new(Vec::new()));
        let record = Arc::clone(&asked);
        thread::spawn(move || {
            let (mut buffer, mut turn) = ([0; 1500], 0_usize);
            while let Ok((count, from)) = socket.recv_from(&mut buffer) {
                let question = buffer.get(..count).unwrap_or_default();
                let Some((name, kind, end)) = parse(question) else {
                    continue;
                };
                record
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push(name);
                let address = (kind == 1)
                    .then(|| addresses.get(turn).or(addresses.last()))
                    .flatten();
                turn += usize::from(kind == 1);
                let reply = answer(question.get(..end).unwrap_or_default(), address);
                socket.send_to(&reply, from).ok();
            }
        });
        Self { asked }
    }

    /// Names asked for until now.
    pub fn asked(&self) -> Vec<String> {
        self.asked
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Forgets what was asked until now.
    pub fn forget(&self) {
        self.asked
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
    }
}

/// Name, type and end of the only question.
fn parse(message: &[u8]) -> Option<(String, u16, usize)> {
    let (mut at, mut labels) = (12, Vec::new());
    loop {
        let length = usize::from(*message.get(at)?);
        at += 1;
        if length == 0 {
            break;
        }
        labels.push(String::from_utf8_lossy(message.get(at..at + length)?).into_owned());
        at += length;
    }
    let kind = u16::from_be_bytes([*message.get(at)?, *message.get(at + 1)?]);
    Some((labels.join("."), kind, at + 4))
}

fn answer(question: &[u8], address: Option<&Ipv4Addr>) -> Vec<u8> {
    let mut reply: Vec<u8> = question.iter().take(2).copied().collect();
    // Response, recursion available; one question, at most one answer.
    reply.extend([0x81, 0x80, 0, 1, 0, u8::from(address.is_some()), 0, 0, 0, 0]);
    reply.extend(question.iter().skip(12));
    if let Some(address) = address {
        // The owner is the question's; type A, class IN, no lifetime.
        reply.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4]);
        reply.extend(address.octets());
    }
    reply
}
