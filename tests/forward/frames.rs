//! Just enough of HTTP/2 to ask: frames and literal fields (RFC 9113 4, 6.2,
//! RFC 7541 6.2.3), right or wrong as the case wants it.

/// What a client begins with: the preface and its settings.
pub(crate) fn beginning() -> Vec<u8> {
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    bytes.extend(frame(4, 0, 0, &[]));
    bytes
}

/// A frame.
pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len())
        .expect("a short text")
        .to_be_bytes();
    let mut bytes = length[1..].to_vec();
    bytes.extend([kind, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

/// A whole request on its own stream; `fields` with the pseudo-fields in front.
pub(crate) fn request<'a>(
    stream: u32,
    fields: impl Iterator<Item = (&'a str, Vec<u8>)>,
) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in fields {
        block.push(0x10);
        for text in [name.as_bytes(), &value] {
            let length = u8::try_from(text.len()).expect("a short text");
            assert!(length < 127, "a text of one length byte");
            block.push(length);
            block.extend(text);
        }
    }
    // END_STREAM and END_HEADERS.
    frame(1, 5, stream, &block)
}

/// The kinds of the frames in `bytes`, with their streams and payloads.
pub(crate) fn read(mut bytes: &[u8]) -> Vec<(u8, u32, Vec<u8>)> {
    let mut frames = Vec::new();
    while let Some((head, rest)) = bytes.split_first_chunk::<9>() {
        let length = usize::from(head[0]) << 16 | usize::from(head[1]) << 8 | usize::from(head[2]);
        let stream = u32::from_be_bytes([head[5] & 0x7f, head[6], head[7], head[8]]);
        let Some((payload, rest)) = rest.split_at_checked(length) else {
            break;
        };
        frames.push((head[3], stream, payload.to_vec()));
        bytes = rest;
    }
    frames
}
