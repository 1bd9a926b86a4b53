//! One DNS question to one reply (RFC 1035, RFC 6761, RFC 8482). Bytes in,
//! bytes out; reads and fills the session's table of names.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use hickory_proto::op::{Edns, Message, MessageType, OpCode, Query, ResponseCode};
use hickory_proto::rr::rdata::{A, AAAA, PTR};
use hickory_proto::rr::{DNSClass, Name, RData, Record, RecordType};
use outgate_dlp::{Action, Finding};
use outgate_handoff::ProcessFacts;
use outgate_policy::{HostName, OWN_HOST};
use outgate_record::Reason;

use crate::audit::{Event, Kind, Outcome};
use crate::limits;
use crate::refusal::Refusal;
use crate::scan::{SandboxScan, ToldFinding};
use crate::session::{NameSeen, Session};

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
    if may_be_asked(session, process, (&name, &text)).is_err() {
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

/// Whether a question for a name may leave, spelt as `text`: its labels would leave with it.
/// Whoever has somebody look a name up asks this first, whichever way it was named by.
///
/// # Errors
/// It holds a credential, or there were too many like it; recorded and told by then.
pub(crate) fn may_be_asked(
    session: &Session,
    process: Option<&ProcessFacts>,
    (name, text): (&HostName, &str),
) -> Result<(), Refusal> {
    if let Some(misuse) = session.secrets().and_then(|own| own.in_name(name.as_str())) {
        let event = Event::new(Kind::Finding, Outcome::Deny, name.as_str());
        let event = event.reason(Reason::Secret, &misuse.because);
        session.recorder().record(&by(event, process)).ok();
        let refusal = Refusal::own(Reason::Secret, name.as_str(), &misuse.because);
        session.recorder().tell(&refusal);
        return Err(refusal);
    }
    match session.scan(session.rules().mode_of_name(name)) {
        Some(scan) => may_leave(session, process, &scan, (name, text)),
        None => Ok(()),
    }
}

/// Whether the scan lets a name go, spelt as `text`.
fn may_leave(
    session: &Session,
    process: Option<&ProcessFacts>,
    scan: &SandboxScan,
    (name, text): (&HostName, &str),
) -> Result<(), Refusal> {
    let rules = session.rules();
    let found = scan.name(&rules, name, text);
    let mut refused = None;
    for finding in &found {
        let refusal = found_in_name(session, process, finding);
        refused = refused.or(refusal);
    }
    if let Some(refusal) = refused {
        return Err(refusal);
    }
    let Err(because) = scan.labels(&rules, name) else {
        return Ok(());
    };
    let event = Event::new(Kind::Finding, Outcome::Deny, A_NAME).reason(Reason::Names, &because);
    session.recorder().record(&by(event, process)).ok();
    let refusal = Refusal::own(Reason::Names, A_NAME, &because);
    session.recorder().tell(&refusal);
    Err(refusal)
}

/// What stands in records for a name that may hold a credential.
const A_NAME: &str = "a name";

/// Records what was found in a name, and never the name; what refuses it, if something does.
fn found_in_name(
    session: &Session,
    process: Option<&ProcessFacts>,
    finding: &Finding,
) -> Option<Refusal> {
    let told = ToldFinding::of(finding, A_NAME, None);
    let outcome = match finding.action {
        Action::Block => Outcome::Deny,
        Action::Warn => Outcome::Note,
    };
    let event = told.event(Event::new(told.kind, outcome, A_NAME));
    session
        .recorder()
        .record(&by(event.finding(finding), process))
        .ok();
    if finding.action != Action::Block {
        return None;
    }
    session.recorder().tell(&told.refusal);
    Some(told.refusal)
}

fn by<'a>(event: Event<'a>, process: Option<&'a ProcessFacts>) -> Event<'a> {
    match process {
        Some(process) => event.process(process),
        None => event,
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
