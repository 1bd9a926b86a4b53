//! A WebSocket's messages (RFC 6455 5.2): a placeholder in one of the command's
//! ends it, since no secret goes there, and a value in one of the origin's is
//! masked. What passes keeps its length. Decides nothing else.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

use super::mask::{Last, Mask, Masked};
use super::{Misuse, Secrets, Why};
use crate::caller::Caller;
use crate::limits;
use crate::target::Target;

/// The frames of one direction, unmasked as they come.
#[derive(Debug, Default)]
struct Frames {
    head: Vec<u8>,
    key: [u8; 4],
    position: usize,
    left: u64,
}

impl Frames {
    /// The payload in these bytes.
    fn payload(&mut self, mut bytes: &[u8]) -> Vec<u8> {
        let mut payload = Vec::with_capacity(bytes.len());
        while let Some((first, rest)) = bytes.split_first() {
            if self.left == 0 {
                self.head.push(*first);
                self.begin();
                bytes = rest;
                continue;
            }
            let count = usize::try_from(self.left)
                .unwrap_or(usize::MAX)
                .min(bytes.len());
            let (own, rest) = bytes.split_at_checked(count).unwrap_or((bytes, &[]));
            for byte in own {
                let key = self.key.get(self.position % 4).copied().unwrap_or_default();
                payload.push(byte ^ key);
                self.position = self.position.wrapping_add(1);
            }
            self.left = self
                .left
                .saturating_sub(u64::try_from(count).unwrap_or(u64::MAX));
            bytes = rest;
        }
        payload
    }

    /// Begins a frame once its head is whole.
    fn begin(&mut self) {
        let [_, second, rest @ ..] = self.head.as_slice() else {
            return;
        };
        let extended = match second & 0x7f {
            126 => 2,
            127 => 8,
            _ => 0,
        };
        let is_masked = second & 0x80 != 0;
        let key = if is_masked { 4 } else { 0 };
        if rest.len() < extended + key {
            return;
        }
        let (length, key) = rest.split_at_checked(extended).unwrap_or((rest, &[]));
        let length = length
            .iter()
            .fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte));
        self.left = if extended == 0 {
            u64::from(second & 0x7f)
        } else {
            length
        };
        self.key = key.first_chunk().copied().unwrap_or_default();
        self.position = 0;
        self.head.clear();
    }
}

/// The command's side.
pub(crate) struct Watched<S> {
    stream: S,
    secrets: Arc<Secrets>,
    caller: Arc<Caller>,
    target: Target,
    frames: Frames,
    /// The end of what was looked through, where one may begin.
    tail: Vec<u8>,
}

impl<S> Watched<S> {
    pub(crate) fn new(
        stream: S,
        secrets: &Arc<Secrets>,
        caller: &Arc<Caller>,
        target: &Target,
    ) -> Self {
        Self {
            stream,
            secrets: Arc::clone(secrets),
            caller: Arc::clone(caller),
            target: target.clone(),
            frames: Frames::default(),
            tail: Vec::new(),
        }
    }

    fn look(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.tail.append(&mut self.frames.payload(bytes));
        if let Some(token) = self.secrets.token_in(&self.tail) {
            let misuse: Misuse = self.secrets.misplaced(token, "a message", Why::Encoded);
            let refusal = self.caller.misused(&self.target, &misuse.because);
            self.caller.tell(&refusal);
            return Err(io::ErrorKind::InvalidData.into());
        }
        let from = self.secrets.forms.undecided(&self.tail, 0);
        self.tail.drain(..from);
        Ok(())
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let own = self.get_mut();
        let before = buffer.filled().len();
        ready!(Pin::new(&mut own.stream).poll_read(context, buffer))?;
        let new = buffer.filled().get(before..).unwrap_or_default().to_vec();
        Poll::Ready(own.look(&new))
    }
}

/// The origin's side.
pub(crate) struct Veiled<S> {
    stream: S,
    masked: Masked,
    ready: Bytes,
    ended: bool,
    /// Until when what may be the beginning of a value waits for the rest.
    patience: Option<Pin<Box<Sleep>>>,
}

impl<S> Veiled<S> {
    pub(crate) fn new(stream: S, mask: Arc<Mask>) -> Self {
        Self {
            stream,
            masked: Masked::new(mask),
            ready: Bytes::new(),
            ended: false,
            patience: None,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Veiled<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let own = self.get_mut();
        loop {
            if own.ready.has_remaining() {
                let count = own.ready.len().min(buffer.remaining());
                buffer.put_slice(&own.ready.split_to(count));
                return Poll::Ready(Ok(()));
            }
            if own.ended {
                return Poll::Ready(Ok(()));
            }
            let mut space = BytesMut::zeroed(limits::TUNNEL_BUFFER_BYTES.min(buffer.remaining()));
            let mut piece = ReadBuf::new(&mut space);
            match Pin::new(&mut own.stream).poll_read(context, &mut piece) {
                Poll::Ready(read) => {
                    read?;
                    let count = piece.filled().len();
                    own.ended = count == 0;
                    space.truncate(count);
                    let last = if own.ended { Last::Yes } else { Last::No };
                    own.ready = own.masked.mask(space.freeze(), last);
                    own.patience = None;
                }
                Poll::Pending => {
                    if own.masked.waiting() == 0 {
                        return Poll::Pending;
                    }
                    let patience = own.patience.get_or_insert_with(|| {
                        Box::pin(sleep_until(Instant::now() + limits::SECRET_PATIENCE))
                    });
                    ready!(patience.as_mut().poll(context));
                    own.patience = None;
                    own.ready = own.masked.mask(Bytes::new(), Last::Yes);
                }
            }
        }
    }
}

macro_rules! writes_through {
    ($side:ident) => {
        impl<S: AsyncWrite + Unpin> AsyncWrite for $side<S> {
            fn poll_write(
                self: Pin<&mut Self>,
                context: &mut Context<'_>,
                bytes: &[u8],
            ) -> Poll<io::Result<usize>> {
                Pin::new(&mut self.get_mut().stream).poll_write(context, bytes)
            }

            fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
                Pin::new(&mut self.get_mut().stream).poll_flush(context)
            }

            fn poll_shutdown(
                self: Pin<&mut Self>,
                context: &mut Context<'_>,
            ) -> Poll<io::Result<()>> {
                Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
            }
        }
    };
}

writes_through!(Watched);
writes_through!(Veiled);

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(payload: &[u8], key: Option<[u8; 4]>) -> Vec<u8> {
        let mut bytes = vec![0x82];
        let mask = if key.is_some() { 0x80 } else { 0 };
        match payload.len() {
            length @ 0..126 => bytes.push(mask | u8::try_from(length).unwrap()),
            length @ 126..65536 => {
                bytes.push(mask + 126);
                bytes.extend(u16::try_from(length).unwrap().to_be_bytes());
            }
            length => {
                bytes.push(mask + 127);
                bytes.extend(u64::try_from(length).unwrap().to_be_bytes());
            }
        }
        bytes.extend(key.iter().flatten());
        let key = key.unwrap_or_default();
        bytes.extend(
            payload
                .iter()
                .zip(key.iter().cycle())
                .map(|(byte, key)| byte ^ key),
        );
        bytes
    }

    #[test]
    fn payloads_are_read_whatever_their_frames_are() {
        let payloads: Vec<Vec<u8>> = [0, 1, 125, 126, 1000, 65535, 65536, 70000]
            .into_iter()
            .map(|length| {
                (0..length)
                    .map(|at| u8::try_from(at % 251).unwrap())
                    .collect()
            })
            .collect();
        for key in [None, Some([1, 2, 3, 4])] {
            let bytes: Vec<u8> = payloads.iter().flat_map(|own| frame(own, key)).collect();
            for size in [1, 7, 4096, bytes.len()] {
                let mut frames = Frames::default();
                let found: Vec<u8> = bytes
                    .chunks(size)
                    .flat_map(|part| frames.payload(part))
                    .collect();
                assert!(found == payloads.concat(), "{key:?} {size}");
            }
        }
    }
}
