//! A content coding (RFC 9110 8.4.1) undone by itself, for whoever reads what an origin would
//! read: nothing is scanned here, and nothing is guessed.

use crate::span;
use std::fmt;

use miniz_oxide::DataFormat;

use super::brotli::Brotli;
use super::inflate::{Gzip, Inflate};
use super::unpack::{Unpack, UnpackFault, UnpackProgress, Unpacked};
use super::zstd::Zstd;

/// A coding, undone as its bytes come. Keeps a window, bounded as the scan's own.
pub struct Uncoded(Decoder);

enum Decoder {
    /// Frames, one behind the other.
    Zstd(Box<Zstd>),
    /// One stream.
    Brotli(Box<Brotli>),
    /// Members, one behind the other.
    Gzip(Box<Gzip>),
    /// One stream.
    Inflate(Box<Inflate>),
    /// Its end was there.
    Over,
}

/// Why nothing more comes out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UncodedFault {
    /// The bytes make no sense, ask for more memory than the limit, or hold what some skip:
    /// the client's.
    Damaged,
    /// Whoever takes what comes out wants no more.
    Stopped,
}

impl fmt::Debug for Uncoded {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // What it holds may be a credential.
        formatter.debug_struct("Uncoded").finish_non_exhaustive()
    }
}

impl Uncoded {
    /// Zstandard (RFC 8878): frames, each read as the next bytes of the content. A frame to
    /// be skipped is a fault, since not everybody skips it.
    pub fn zstd() -> Self {
        Self(Decoder::Zstd(Box::new(Zstd::new())))
    }

    /// Brotli (RFC 7932).
    pub fn brotli() -> Self {
        Self(Decoder::Brotli(Box::new(Brotli::new())))
    }

    /// gzip (RFC 1952): members, one behind the other (2.2). No checksum is compared, here
    /// as in deflate.
    pub fn gzip() -> Self {
        Self(Decoder::Gzip(Box::new(Gzip::new())))
    }

    /// What HTTP calls deflate: a stream of zlib (RFC 1950).
    pub fn zlib() -> Self {
        Self(Decoder::Inflate(Box::new(Inflate::new(DataFormat::Zlib))))
    }

    /// The same without the format of zlib around it (RFC 1951), as some take it.
    pub fn bare_deflate() -> Self {
        Self(Decoder::Inflate(Box::new(Inflate::new(DataFormat::Raw))))
    }

    /// Undoes the next bytes; `on` takes what comes out, and says whether it wants more.
    /// What comes out may lie a window behind what went in.
    ///
    /// # Errors
    /// See [`UncodedFault`]. Nothing comes out afterwards.
    pub fn push(
        &mut self,
        input: &[u8],
        on: &mut dyn FnMut(&[u8]) -> bool,
    ) -> Result<(), UncodedFault> {
        let mut rest = input;
        while !rest.is_empty() {
            let UnpackProgress { used, is_done } = self.step(rest, on)?;
            if used == 0 && !is_done {
                return Err(UncodedFault::Damaged);
            }
            rest = span::from(rest, used);
        }
        Ok(())
    }

    /// Nothing will come: what waited comes out.
    pub fn finish(&mut self, on: &mut dyn FnMut(&[u8]) -> bool) {
        let mut sink = |made: Unpacked<'_>| taken(&made, on);
        match &mut self.0 {
            Decoder::Zstd(zstd) => zstd.finish(&mut sink),
            Decoder::Brotli(brotli) => brotli.finish(&mut sink),
            // What came out of them never waits.
            Decoder::Gzip(_) | Decoder::Inflate(_) | Decoder::Over => {}
        }
    }

    fn step(
        &mut self,
        input: &[u8],
        on: &mut dyn FnMut(&[u8]) -> bool,
    ) -> Result<UnpackProgress, UncodedFault> {
        let mut sink = |made: Unpacked<'_>| taken(&made, on);
        match &mut self.0 {
            Decoder::Zstd(zstd) => {
                let progress = zstd.push(input, &mut sink)?;
                if zstd.is_skipped() {
                    return Err(UncodedFault::Damaged);
                }
                if progress.is_done {
                    zstd.reset();
                }
                Ok(progress)
            }
            Decoder::Brotli(brotli) => {
                let progress = brotli.push(input, &mut sink)?;
                if progress.is_done {
                    self.0 = Decoder::Over;
                }
                Ok(progress)
            }
            Decoder::Gzip(gzip) => {
                let progress = gzip.push(input, &mut sink)?;
                if progress.is_done {
                    gzip.reset();
                }
                Ok(progress)
            }
            Decoder::Inflate(inflate) => {
                let progress = inflate.push(input, &mut sink)?;
                if progress.is_done {
                    self.0 = Decoder::Over;
                }
                Ok(progress)
            }
            Decoder::Over => Err(UncodedFault::Damaged),
        }
    }
}

fn taken(made: &Unpacked<'_>, on: &mut dyn FnMut(&[u8]) -> bool) -> bool {
    match made {
        Unpacked::Bytes(bytes) => on(bytes),
        Unpacked::Border => true,
    }
}

impl From<UnpackFault> for UncodedFault {
    fn from(fault: UnpackFault) -> Self {
        match fault {
            UnpackFault::Stopped => Self::Stopped,
            UnpackFault::Damaged | UnpackFault::Unknown | UnpackFault::Memory => Self::Damaged,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn undone(mut uncoded: Uncoded, content: &[u8], size: usize) -> Result<Vec<u8>, UncodedFault> {
        let mut made = Vec::new();
        for piece in content.chunks(size) {
            uncoded.push(piece, &mut |bytes| {
                made.extend_from_slice(bytes);
                true
            })?;
        }
        uncoded.finish(&mut |bytes| {
            made.extend_from_slice(bytes);
            true
        });
        Ok(made)
    }

    fn zstd(text: &[u8]) -> Vec<u8> {
        ruzstd::encoding::compress_to_vec(text, ruzstd::encoding::CompressionLevel::Fastest)
    }

    #[test]
    fn frames_of_zstandard_are_undone_one_behind_the_other() {
        let text = b"{\"a\":\"b\"}".repeat(40_000);
        let frame = zstd(&text);
        for size in [1, 7, 4096, frame.len()] {
            assert_eq!(undone(Uncoded::zstd(), &frame, size), Ok(text.clone()));
            let both = [frame.clone(), zstd(b"more")].concat();
            let wanted = [&text[..], b"more"].concat();
            assert_eq!(undone(Uncoded::zstd(), &both, size), Ok(wanted));
        }
        // What came of a frame without its end comes out as well.
        let cut = &frame[..frame.len() - 9];
        assert!(undone(Uncoded::zstd(), cut, 100).is_ok_and(|made| text.starts_with(&made)));
        let skipped = [b"\x50\x2a\x4d\x18\x04\0\0\0abcd", &frame[..]].concat();
        for damaged in [
            &skipped[..],
            b"{\"a\":1}",
            b"\x28\xb5\x2f\xfd\x03\0\0\0\0\0",
        ] {
            let found = undone(Uncoded::zstd(), damaged, 3);
            assert_eq!(found, Err(UncodedFault::Damaged));
        }
    }

    #[test]
    fn gzip_and_deflate_are_undone() {
        use miniz_oxide::deflate::{compress_to_vec, compress_to_vec_zlib};
        let text = b"{\"a\":\"b\"}".repeat(9000);
        let member = |flags: u8, extra: &[u8]| {
            let head = [0x1f, 0x8b, 8, flags, 0, 0, 0, 0, 0, 3];
            [&head[..], extra, &compress_to_vec(&text, 6), &[0; 8]].concat()
        };
        let plain = member(0, b"");
        let twice = [&text[..], &text].concat();
        for size in [1, 7, 4096] {
            let named = member(0x1e, b"\x02\x00xxname\0comment\0hc");
            for (content, wanted) in [
                (&plain, &text),
                (&named, &text),
                // Bits that mean nothing, which some read on behind.
                (&member(0x80, b""), &text),
                (&[&plain[..], &named].concat(), &twice),
            ] {
                assert_eq!(undone(Uncoded::gzip(), content, size), Ok(wanted.clone()));
            }
            let zlib = compress_to_vec_zlib(&text, 6);
            assert_eq!(undone(Uncoded::zlib(), &zlib, size), Ok(text.clone()));
            let bare = compress_to_vec(&text, 6);
            let found = undone(Uncoded::bare_deflate(), &bare, size);
            assert_eq!(found, Ok(text.clone()));
            for damaged in [
                &b"no matter"[..],
                b"{\"a\":1}",
                &[&plain[..], b"x"].concat(),
            ] {
                let found = undone(Uncoded::gzip(), damaged, size);
                assert_eq!(found, Err(UncodedFault::Damaged));
            }
            for uncoded in [Uncoded::zlib(), Uncoded::bare_deflate()] {
                let found = undone(uncoded, b"\xff\xff\xff\xff\xff", size);
                assert_eq!(found, Err(UncodedFault::Damaged));
            }
            let longer = [&zlib[..], b"x"].concat();
            let found = undone(Uncoded::zlib(), &longer, size);
            assert_eq!(found, Err(UncodedFault::Damaged));
        }
    }

    #[test]
    fn brotli_is_undone_to_its_end_and_nothing_follows() {
        // One block that is stored (RFC 7932 9.2), and an empty last one.
        let stored = [&[0x40, 0, 0x10][..], b"hello", &[0x03]].concat();
        let stored = &stored[..];
        for size in [1, 3, 99] {
            assert_eq!(
                undone(Uncoded::brotli(), stored, size),
                Ok(b"hello".to_vec())
            );
            let longer = [stored, b"x"].concat();
            let found = undone(Uncoded::brotli(), &longer, size);
            assert_eq!(found, Err(UncodedFault::Damaged));
        }
        assert!(undone(Uncoded::brotli(), b"\x11no", 9).is_err());
        let mut stopped = Uncoded::brotli();
        assert_eq!(
            stopped.push(stored, &mut |_| false),
            Err(UncodedFault::Stopped)
        );
    }
}
