//! One DNS question to one reply (RFC 1035, RFC 6761, RFC 8482). Bytes in,
//! bytes out; reads and fills the session's table of names.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use hickory_proto::op::{Edns, Message, MessageType, OpCode, Query, ResponseCode};
use hickory_proto::rr::rdata::{A, AAAA, PTR};
use hickory_proto::rr::{DNSClass, Name, RData, Record, RecordType};
use outgate_handoff::ProcessFacts;
use outgate_policy::{HostName, OWN_HOST};

use crate::audit::{Event, Kind, Outcome};
use crate::limits;
use crate::session::{NameSeen, Session};
use crate::stub::leaving;

/// Bytes of a DNS header.
const HEADER_BYTES: usize = 12;

/// How a question came, which limits the reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Transport {
    Datagram,
    Stream,
}

/// The reply to a question, or `None` where silence is right: to what is no
/// question at all.
pub(crate) fn reply(
    session: &Session,
    process: Option<&ProcessFacts>,
    question: &[u8],
    transport: Transport,
) -> Option<Vec<u8>> {
    let header = question.get(..HEADER_BYTES)?;
    let id = u16::from_be_bytes([*header.first()?, *header.get(1)?]);
    // A response is never answered: two stubs would talk for ever.
    if header.get(2)? & 0x80 != 0 {
        return None;
    }
    let Ok(asked) = Message::from_vec(question) else {
        return encode(&Message::error_msg(
            id,
            OpCode::Query,
            ResponseCode::FormErr,
        ));
    };
    let mut answer = Message::new(id, MessageType::Response, asked.metadata.op_code);
    answer.metadata.recursion_desired = asked.metadata.recursion_desired;
    answer.metadata.recursion_available = true;
    let mut room = limits::DNS_DATAGRAM_BYTES;
    if let Some(edns) = &asked.edns {
        room = usize::from(edns.max_payload()).max(room);
        let mut own = Edns::new();
        own.set_max_payload(1232).set_version(0);
        answer.set_edns(own);
    }
    match asked.queries.as_slice() {
        [query] if asked.metadata.op_code == OpCode::Query => {
            answer.add_query(query.clone());
            let (code, record) = lookup(session, process, query);
            answer.metadata.response_code = code;
            if let Some(data) = record {
                let name = query.name().clone();
                answer.add_answer(Record::from_rdata(name, limits::DNS_TTL_SECONDS, data));
            }
        }
        _ if asked.metadata.op_code != OpCode::Query => {
            answer.metadata.response_code = ResponseCode::NotImp;
        }
        _ => answer.metadata.response_code = ResponseCode::FormErr,
    }
    let bytes = encode(&answer)?;
    match transport {
        Transport::Datagram if bytes.len() > room => encode(&answer.truncate()),
        Transport::Datagram | Transport::Stream => Some(bytes),
    }
}

fn encode(message: &Message) -> Option<Vec<u8>> {
    message.to_vec().ok()
}

fn lookup(
    session: &Session,
    process: Option<&ProcessFacts>,
    query: &Query,
) -> (ResponseCode, Option<RData>) {
    const EMPTY: (ResponseCode, Option<RData>) = (ResponseCode::NoError, None);
    if query.query_class() != DNSClass::IN {
        return (ResponseCode::Refused, None);
    }
    let text = query.name().to_ascii();
    if let Some(address) = reverse(query.name()) {
        return pointer(session, query, address);
    }
    let Ok(name) = HostName::parse(&text) else {
        return (ResponseCode::NXDomain, None);
    };
    if name.as_str() == "localhost" || name.as_str().ends_with(".localhost") {
        return match query.query_type() {
            RecordType::A => found(RData::A(A(Ipv4Addr::LOCALHOST))),
            RecordType::AAAA => found(RData::AAAA(AAAA(Ipv6Addr::LOCALHOST))),
            _ => EMPTY,
        };
    }
    if name.as_str() == OWN_HOST {
        // Answered here whatever is asked for there: nothing of it leaves.
        return match (query.query_type(), session.synthetic_address(&name)) {
            (RecordType::A | RecordType::ANY, Some(address)) => found(RData::A(A(address))),
            (RecordType::A | RecordType::ANY, None) => (ResponseCode::Refused, None),
            _ => EMPTY,
        };
    }
    // Names below `arpa` that are no address, and onion names, are nobody's.
    if [".arpa", ".onion", ".invalid"]
        .iter()
        .any(|suffix| name.as_str().ends_with(suffix))
    {
        return (ResponseCode::NXDomain, None);
    }
    if leaving::may_leave(session, process, (&name, &text)).is_err() {
        return (ResponseCode::NXDomain, None);
    }
    let (address, seen) = session.asked(&name);
    if seen == NameSeen::First {
        let event = Event::new(Kind::Dns, Outcome::Note, name.as_str());
        let event = match process {
            Some(process) => event.process(process),
            None => event,
        };
        if session.recorder().record(&event).is_err() {
            return (ResponseCode::Refused, None);
        }
    }
    match (query.query_type(), address) {
        (_, None) => (ResponseCode::Refused, None),
        (RecordType::A | RecordType::ANY, Some(address)) => found(RData::A(A(address))),
        (_, Some(_)) => EMPTY,
    }
}

fn found(data: RData) -> (ResponseCode, Option<RData>) {
    (ResponseCode::NoError, Some(data))
}

/// The address a reverse name spells, if it spells one.
fn reverse(name: &Name) -> Option<IpAddr> {
    let text = name.to_ascii();
    let is_reverse = text.ends_with(".in-addr.arpa.") || text.ends_with(".ip6.arpa.");
    if !is_reverse {
        return None;
    }
    let net = name.parse_arpa_name().ok()?;
    (net.prefix_len() == net.max_prefix_len()).then(|| net.addr())
}

fn pointer(session: &Session, query: &Query, address: IpAddr) -> (ResponseCode, Option<RData>) {
    let name = match address {
        _ if address.is_loopback() => HostName::parse("localhost").ok(),
        IpAddr::V4(address) => session.name_of(address),
        IpAddr::V6(_) => None,
    };
    let Some(name) = name else {
        return (ResponseCode::NXDomain, None);
    };
    match Name::from_ascii(format!("{name}.")) {
        Ok(target) if matches!(query.query_type(), RecordType::PTR | RecordType::ANY) => {
            found(RData::PTR(PTR(target)))
        }
        Ok(_) => (ResponseCode::NoError, None),
        Err(_) => (ResponseCode::ServFail, None),
    }
}
