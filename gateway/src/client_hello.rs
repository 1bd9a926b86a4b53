//! The server name, the application protocols and the presence of Encrypted
//! Client Hello in a TLS ClientHello (RFC 8446 4.1.2, RFC 6066 3, RFC 7301,
//! RFC 9849). Bytes in, values out: decides nothing, allocates only what it
//! returns. Every length is checked against the bytes that are there.

/// Record type of handshake messages (RFC 8446 5.1).
const HANDSHAKE: u8 = 22;
const CLIENT_HELLO: u8 = 1;
/// Largest plaintext record (RFC 8446 5.1).
const RECORD_BYTES_MAX: usize = 1 << 14;
const SERVER_NAME: u16 = 0;
const ALPN: u16 = 16;
const ENCRYPTED_CLIENT_HELLO: u16 = 0xfe0d;
/// The withdrawn predecessor of Encrypted Client Hello.
const ENCRYPTED_SERVER_NAME: u16 = 0xffce;
/// Extensions of one message; clients send about twenty.
const EXTENSIONS_MAX: usize = 128;

/// Whether a ClientHello names its server in a form only the origin can read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encrypted {
    No,
    Yes,
}

/// What a ClientHello says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ClientHello {
    /// The server name as sent.
    pub(crate) server_name: Option<String>,
    /// The application protocols, in the client's order.
    pub(crate) protocols: Vec<Vec<u8>>,
    pub(crate) encrypted: Encrypted,
}

/// What the bytes so far are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum HelloSoFar {
    /// The beginning of a ClientHello.
    Incomplete,
    /// A whole one.
    Complete(ClientHello),
    /// Something else, and why.
    Invalid(&'static str),
}

/// Looks at the first bytes of a connection.
pub(crate) fn parse(bytes: &[u8]) -> HelloSoFar {
    match handshake(bytes) {
        Ok(None) => HelloSoFar::Incomplete,
        Ok(Some(body)) => match client_hello(&body) {
            Some(hello) => HelloSoFar::Complete(hello),
            None => HelloSoFar::Invalid("malformed ClientHello"),
        },
        Err(why) => HelloSoFar::Invalid(why),
    }
}

/// Joins the fragments of the first handshake message over its records.
fn handshake(bytes: &[u8]) -> Result<Option<Vec<u8>>, &'static str> {
    let mut rest = bytes;
    let mut message: Vec<u8> = Vec::new();
    loop {
        match rest.first() {
            None => return Ok(None),
            Some(&HANDSHAKE) => {}
            Some(_) => return Err("record is not a handshake"),
        }
        if rest.get(1).is_some_and(|major| *major != 3) {
            return Err("unknown record version");
        }
        let Some((head, body)) = rest.split_first_chunk::<5>() else {
            return Ok(None);
        };
        let length = usize::from(u16::from_be_bytes([head[3], head[4]]));
        if length == 0 || length > RECORD_BYTES_MAX {
            return Err("record length out of range");
        }
        let fragment = body.get(..length).unwrap_or(body);
        message.extend_from_slice(fragment);
        if message.first().is_some_and(|kind| *kind != CLIENT_HELLO) {
            return Err("handshake does not begin with a ClientHello");
        }
        if let Some((head, content)) = message.split_first_chunk::<4>() {
            let claimed = usize::try_from(u32::from_be_bytes([0, head[1], head[2], head[3]]))
                .unwrap_or(usize::MAX);
            if claimed > crate::limits::CLASSIFY_BYTES_MAX {
                return Err("ClientHello over the limit");
            }
            if content.len() > claimed {
                return Err("bytes follow the ClientHello in its record");
            }
            if content.len() == claimed && fragment.len() == length {
                return Ok(Some(content.to_vec()));
            }
        }
        match body.get(length..) {
            Some(next) => rest = next,
            None => return Ok(None),
        }
    }
}

/// Takes values from the front of a message.
struct HelloCursor<'a>(&'a [u8]);

impl<'a> HelloCursor<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(head)
    }

    fn u8(&mut self) -> Option<u8> {
        self.take(1)?.first().copied()
    }

    fn u16(&mut self) -> Option<u16> {
        Some(u16::from_be_bytes(*self.take(2)?.first_chunk()?))
    }

    /// A vector with a length of one byte.
    fn short(&mut self) -> Option<&'a [u8]> {
        let length = usize::from(self.u8()?);
        self.take(length)
    }

    /// A vector with a length of two bytes.
    fn long(&mut self) -> Option<&'a [u8]> {
        let length = usize::from(self.u16()?);
        self.take(length)
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

fn client_hello(body: &[u8]) -> Option<ClientHello> {
    let mut cursor = HelloCursor(body);
    cursor.take(2 + 32)?;
    let session = cursor.short()?;
    let suites = cursor.long()?;
    let compressions = cursor.short()?;
    if session.len() > 32 || suites.len() < 2 || suites.len() % 2 != 0 || compressions.is_empty() {
        return None;
    }
    let mut hello = ClientHello {
        server_name: None,
        protocols: Vec::new(),
        encrypted: Encrypted::No,
    };
    if cursor.is_empty() {
        return Some(hello);
    }
    let mut extensions = HelloCursor(cursor.long()?);
    if !cursor.is_empty() {
        return None;
    }
    let mut seen = Vec::new();
    while !extensions.is_empty() {
        let kind = extensions.u16()?;
        let content = extensions.long()?;
        if seen.contains(&kind) || seen.len() >= EXTENSIONS_MAX {
            return None;
        }
        seen.push(kind);
        match kind {
            SERVER_NAME => hello.server_name = Some(server_name(content)?),
            ALPN => hello.protocols = protocols(content)?,
            ENCRYPTED_CLIENT_HELLO | ENCRYPTED_SERVER_NAME => hello.encrypted = Encrypted::Yes,
            _ => {}
        }
    }
    Some(hello)
}

/// Exactly one name, of the only type there is (RFC 6066 3).
fn server_name(content: &[u8]) -> Option<String> {
    let mut outer = HelloCursor(content);
    let mut list = HelloCursor(outer.long()?);
    let kind = list.u8()?;
    let name = list.long()?;
    if kind != 0 || name.is_empty() || !list.is_empty() || !outer.is_empty() || !name.is_ascii() {
        return None;
    }
    String::from_utf8(name.to_vec()).ok()
}

fn protocols(content: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut outer = HelloCursor(content);
    let mut list = HelloCursor(outer.long()?);
    if !outer.is_empty() || list.is_empty() {
        return None;
    }
    let mut protocols = Vec::new();
    while !list.is_empty() {
        let protocol = list.short()?;
        if protocol.is_empty() {
            return None;
        }
        protocols.push(protocol.to_vec());
    }
    Some(protocols)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    fn vector16(content: &[u8]) -> Vec<u8> {
        let mut out = u16::try_from(content.len()).unwrap().to_be_bytes().to_vec();
        out.extend_from_slice(content);
        out
    }

    pub(crate) fn extension(kind: u16, content: &[u8]) -> Vec<u8> {
        let mut out = kind.to_be_bytes().to_vec();
        out.extend(vector16(content));
        out
    }

    pub(crate) fn sni(name: &str) -> Vec<u8> {
        let mut entry = vec![0];
        entry.extend(vector16(name.as_bytes()));
        extension(SERVER_NAME, &vector16(&entry))
    }

    /// A ClientHello in records of at most `record` bytes.
    pub(crate) fn hello(extensions: &[u8], record: usize) -> Vec<u8> {
        let mut body = vec![3, 3];
        body.extend([7; 32]);
        body.push(0);
        body.extend(vector16(&[0x13, 1]));
        body.extend([1, 0]);
        body.extend(vector16(extensions));
        let mut message = vec![1];
        message.extend(&u32::try_from(body.len()).unwrap().to_be_bytes()[1..]);
        message.extend(body);
        let mut out = Vec::new();
        for piece in message.chunks(record) {
            out.extend([22, 3, 1]);
            out.extend(vector16(piece));
        }
        out
    }

    #[test]
    fn name_and_protocols_are_read_whole_and_in_pieces() {
        let mut extensions = sni("a.example.org");
        extensions.extend(extension(
            ALPN,
            &[
                0, 12, 2, b'h', b'2', 8, b'h', b't', b't', b'p', b'/', b'1', b'.', b'1',
            ],
        ));
        for record in [1, 2, 5, 100, 16384] {
            let bytes = hello(&extensions, record);
            for cut in 0..bytes.len() {
                assert_eq!(
                    parse(&bytes[..cut]),
                    HelloSoFar::Incomplete,
                    "{record} {cut}"
                );
            }
            let HelloSoFar::Complete(found) = parse(&bytes) else {
                panic!("{:?}", parse(&bytes))
            };
            assert_eq!(found.server_name.as_deref(), Some("a.example.org"));
            assert_eq!(found.protocols, [b"h2".to_vec(), b"http/1.1".to_vec()]);
            assert_eq!(found.encrypted, Encrypted::No);
        }
    }

    #[test]
    fn malformed_messages_are_refused() {
        let two = [sni("a.example.org"), sni("b.example.org")].concat();
        let two_names = extension(SERVER_NAME, &vector16(&[0, 0, 1, b'a', 0, 0, 1, b'b']));
        let cases: Vec<Vec<u8>> = vec![
            hello(&two, 16384),
            hello(&two_names, 16384),
            hello(&extension(SERVER_NAME, &[]), 16384),
            hello(&extension(SERVER_NAME, &vector16(&[1, 0, 1, b'a'])), 16384),
            hello(&[0, 0, 0], 16384),
            vec![22, 2, 0, 0, 1, 1],
            vec![22, 3, 1, 0, 0],
            vec![22, 3, 1, 0x40, 1, 1],
            vec![22, 3, 1, 0, 4, 2, 0, 0, 0],
            vec![22, 3, 1, 0, 5, 1, 0, 0, 0, 9],
            vec![22, 3, 1, 0, 4, 1, 9, 9, 9],
            vec![23, 3, 3, 0, 1, 0],
        ];
        for case in cases {
            assert!(
                matches!(parse(&case), HelloSoFar::Invalid(_)),
                "{case:02x?}"
            );
        }
    }

    #[test]
    fn encrypted_names_are_seen_and_no_name_is_no_name() {
        let HelloSoFar::Complete(found) = parse(&hello(&extension(0xfe0d, &[0]), 16384)) else {
            panic!()
        };
        assert_eq!((found.server_name, found.encrypted), (None, Encrypted::Yes));
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_answered(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..400)) {
            drop(parse(&bytes));
            let mut prefixed = vec![22, 3, 1, 0, 200, 1, 0, 0, 196];
            prefixed.extend(&bytes);
            drop(parse(&prefixed));
        }
    }
}
