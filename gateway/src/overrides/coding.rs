//! Content codings (RFC 9110 8.4.1) in front of what looks into content: servers undo gzip,
//! deflate, Brotli and Zstandard by themselves, and act on what comes out. What undoes them is
//! the scan's own; here it is told which it is, and its output is bounded.

use http::header::{CONTENT_ENCODING, HeaderMap};
use outgate_dlp::{Uncoded, UncodedFault};

use super::folded;

/// Bytes that may come out, at most.
const OUTPUT_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// What the fields say of the coding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Coding {
    /// None that changes anything.
    Plain,
    Gzip,
    /// As zlib to most, bare to some.
    Deflate,
    Brotli,
    Zstd,
    /// One that is not read, several, or one that only some find.
    Other,
}

impl Coding {
    /// The coding of the content of a request with these fields.
    pub(super) fn of(fields: &HeaderMap) -> Self {
        let mut found = Self::Plain;
        for (name, value) in fields {
            if folded(name.as_str()) != CONTENT_ENCODING.as_str() {
                continue;
            }
            for word in value.as_bytes().split(|byte| *byte == b',') {
                let word = word.trim_ascii().to_ascii_lowercase();
                let coding = match word.as_slice() {
                    // S3's frames are read as they stand.
                    b"" | b"identity" | b"aws-chunked" => continue,
                    b"gzip" | b"x-gzip" => Self::Gzip,
                    b"deflate" => Self::Deflate,
                    b"br" => Self::Brotli,
                    b"zstd" => Self::Zstd,
                    _ => Self::Other,
                };
                let is_found = found == Self::Plain && *name == CONTENT_ENCODING;
                found = if is_found { coding } else { Self::Other };
            }
        }
        found
    }

    /// All that undo it, each as some programs do.
    pub(super) fn undone(self) -> Vec<Undo> {
        match self {
            Self::Plain | Self::Other => Vec::new(),
            Self::Gzip => vec![Undo::by(Uncoded::gzip())],
            Self::Deflate => [Uncoded::zlib(), Uncoded::bare_deflate()]
                .map(Undo::by)
                .into(),
            Self::Brotli => vec![Undo::by(Uncoded::brotli())],
            Self::Zstd => vec![Undo::by(Uncoded::zstd())],
        }
    }
}

/// Nothing more comes out that can be read: it is damaged, or there is too much of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    Damaged,
    TooLarge,
}

/// Why it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended<E> {
    Fault(Fault),
    /// Whoever took what came out said so.
    Said(E),
}

/// Undoes one coding.
#[derive(Debug)]
pub(super) struct Undo {
    uncoded: Uncoded,
    /// Bytes that came out.
    made: u64,
}

impl Undo {
    fn by(uncoded: Uncoded) -> Self {
        Self { uncoded, made: 0 }
    }

    /// Undoes the next bytes; `on` takes what comes out.
    ///
    /// # Errors
    /// They cannot be undone, more came out than is looked at, or `on` said that it ends.
    pub(super) fn read<E>(
        &mut self,
        bytes: &[u8],
        on: &mut dyn FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), Ended<E>> {
        let Self { uncoded, made } = self;
        let mut ended = None;
        let pushed = uncoded.push(bytes, &mut |bytes| taken(bytes, made, &mut ended, on));
        match (ended, pushed) {
            (Some(ended), _) => Err(ended),
            (None, Ok(())) => Ok(()),
            (None, Err(UncodedFault::Damaged | UncodedFault::Stopped)) => {
                Err(Ended::Fault(Fault::Damaged))
            }
        }
    }

    /// Nothing will come: what waited for it comes out.
    ///
    /// # Errors
    /// As of reading.
    pub(super) fn finish<E>(
        &mut self,
        on: &mut dyn FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), Ended<E>> {
        let Self { uncoded, made } = self;
        let mut ended = None;
        uncoded.finish(&mut |bytes| taken(bytes, made, &mut ended, on));
        ended.map_or(Ok(()), Err)
    }
}

/// Whether more may come out behind these bytes; why not.
fn taken<E>(
    bytes: &[u8],
    made: &mut u64,
    ended: &mut Option<Ended<E>>,
    on: &mut dyn FnMut(&[u8]) -> Result<(), E>,
) -> bool {
    *made = made.saturating_add(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
    *ended = match on(bytes) {
        Err(said) => Some(Ended::Said(said)),
        Ok(()) if *made > OUTPUT_BYTES_MAX => Some(Ended::Fault(Fault::TooLarge)),
        Ok(()) => None,
    };
    ended.is_none()
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::header::{HeaderName, HeaderValue};
    use miniz_oxide::deflate::{compress_to_vec, compress_to_vec_zlib};

    fn undone(coding: Coding, content: &[u8], size: usize) -> Vec<Result<Vec<u8>, Fault>> {
        let undo = coding.undone().into_iter().map(|mut undo| {
            let mut made = Vec::new();
            let mut on = |bytes: &[u8]| {
                made.extend_from_slice(bytes);
                Ok::<(), ()>(())
            };
            for piece in content.chunks(size) {
                match undo.read(piece, &mut on) {
                    Ok(()) => {}
                    Err(Ended::Fault(fault)) => return Err(fault),
                    Err(Ended::Said(())) => unreachable!("it takes all"),
                }
            }
            undo.finish(&mut on).expect("all of it is taken");
            Ok(made)
        });
        undo.collect()
    }

    fn gzip(flags: u8, extra: &[u8], text: &[u8]) -> Vec<u8> {
        let head = [0x1f, 0x8b, 8, flags, 0, 0, 0, 0, 0, 3];
        [&head[..], extra, &compress_to_vec(text, 6), &[0; 8]].concat()
    }

    #[test]
    fn what_servers_undo_is_undone() {
        let text = "{\"a\":\"b\"}".repeat(9000).into_bytes();
        for size in [1, 7, 4096] {
            let plain = gzip(0, b"", &text);
            assert_eq!(undone(Coding::Gzip, &plain, size), [Ok(text.clone())]);
            let named = gzip(0x1e, b"\x02\x00xxname\0comment\0hc", &text);
            assert_eq!(undone(Coding::Gzip, &named, size), [Ok(text.clone())]);
            let twice = [plain.clone(), plain.clone()].concat();
            let both = Ok([text.clone(), text.clone()].concat());
            assert_eq!(undone(Coding::Gzip, &twice, size), [both]);
            let zlib = compress_to_vec_zlib(&text, 6);
            assert_eq!(undone(Coding::Deflate, &zlib, size)[0], Ok(text.clone()));
            let bare = compress_to_vec(&text, 6);
            assert_eq!(undone(Coding::Deflate, &bare, size)[1], Ok(text.clone()));
            for damaged in [
                &b"no matter"[..],
                b"{\"a\":1}",
                &[&plain[..], b"x"].concat(),
            ] {
                let found = undone(Coding::Gzip, damaged, size);
                assert_eq!(found, [Err(Fault::Damaged)]);
            }
            let found = undone(Coding::Deflate, b"\xff\xff\xff\xff\xff", size);
            assert_eq!(found, [Err(Fault::Damaged), Err(Fault::Damaged)]);
        }
        let length = usize::try_from(OUTPUT_BYTES_MAX).unwrap() + 1;
        let bomb = gzip(0, b"", &vec![b' '; length]);
        assert_eq!(undone(Coding::Gzip, &bomb, 4096), [Err(Fault::TooLarge)]);
    }

    #[test]
    fn the_coding_is_one_that_every_program_finds() {
        for (given, wanted) in [
            (&[][..], Coding::Plain),
            (&[("content-encoding", "identity, ")], Coding::Plain),
            (&[("content-encoding", "aws-chunked")], Coding::Plain),
            (&[("content-encoding", " GZIP")], Coding::Gzip),
            (&[("content-encoding", "x-gzip")], Coding::Gzip),
            (&[("content-encoding", "deflate")], Coding::Deflate),
            (&[("content-encoding", "br")], Coding::Brotli),
            (&[("content-encoding", "Zstd")], Coding::Zstd),
            (&[("content-encoding", "compress")], Coding::Other),
            (&[("content-encoding", "gzip, gzip")], Coding::Other),
            (&[("content_encoding", "gzip")], Coding::Other),
            (
                &[("content-encoding", "gzip"), ("content-encoding", "br")],
                Coding::Other,
            ),
        ] {
            let fields: HeaderMap = given
                .iter()
                .map(|(name, value)| {
                    let name: &'static str = name;
                    let value: &'static str = value;
                    (
                        HeaderName::from_static(name),
                        HeaderValue::from_static(value),
                    )
                })
                .collect();
            assert_eq!(Coding::of(&fields), wanted, "{given:?}");
        }
    }
}
