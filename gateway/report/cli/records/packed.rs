//! Compressed records: any gzip as a stream, and the blocks of our own one by one, with
//! what their heads say. Opens files for reading; knows nothing of what a line says.

use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use miniz_oxide::inflate::stream::{InflateState, inflate};
use miniz_oxide::{DataFormat, MZFlush, MZStatus};
use outgate_record::{BLOCK_HEAD_BYTES, BlockFault, BlockHead};

/// What stands behind the name of a record that is compressed.
const ENDING: &str = "gz";
/// Bytes of a name or comment in a header that are passed over.
const TEXT_BYTES_MAX: usize = 64 * 1024;

/// Whether a name says that the file is compressed.
pub(crate) fn is_packed(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == ENDING)
}

/// The name before it was compressed.
pub(crate) fn plain_name(path: &Path) -> PathBuf {
    if is_packed(path) {
        path.with_extension("")
    } else {
        path.to_owned()
    }
}

/// The name once it is.
pub(crate) fn packed_name(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(ENDING);
    name.into()
}

/// The content of a gzip file, of all its members (RFC 1952). Checksums are left to the
/// chain, which says more.
pub(crate) struct Gunzip<R> {
    from: BufReader<R>,
    state: Box<InflateState>,
    at: Place,
}

/// Where in a member.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Before,
    Inside,
    End,
}

fn wrong(what: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, what)
}

impl<R: Read> Gunzip<R> {
    pub(crate) fn new(from: R) -> Self {
        Self {
            from: BufReader::with_capacity(256 * 1024, from),
            state: InflateState::new_boxed(DataFormat::Raw),
            at: Place::Before,
        }
    }

    /// Reads the header of the next member.
    fn enter(&mut self) -> io::Result<()> {
        if self.from.fill_buf()?.is_empty() {
            self.at = Place::End;
            return Ok(());
        }
        let mut fixed = [0; 10];
        self.from.read_exact(&mut fixed)?;
        let [0x1f, 0x8b, 8, flags, ..] = fixed else {
            return Err(wrong("it is not compressed with gzip, or damaged"));
        };
        if flags & 4 != 0 {
            let mut length = [0; 2];
            self.from.read_exact(&mut length)?;
            let mut extra = vec![0; usize::from(u16::from_le_bytes(length))];
            self.from.read_exact(&mut extra)?;
        }
        // A name, and a comment.
        for _ in [8, 16].iter().filter(|bit| flags & **bit != 0) {
            self.skip_text()?;
        }
        if flags & 2 != 0 {
            self.from.read_exact(&mut [0; 2])?;
        }
        self.state.reset(DataFormat::Raw);
        self.at = Place::Inside;
        Ok(())
    }

    fn skip_text(&mut self) -> io::Result<()> {
        let mut byte = [1];
        for _ in 0..TEXT_BYTES_MAX {
            self.from.read_exact(&mut byte)?;
            if byte == [0] {
                return Ok(());
            }
        }
        Err(wrong("its header has no end"))
    }
}

impl<R: Read> Read for Gunzip<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.at {
                Place::End => return Ok(0),
                Place::Before => self.enter()?,
                Place::Inside => {
                    let input = self.from.fill_buf()?;
                    let is_end = input.is_empty();
                    let done = inflate(&mut self.state, input, buffer, MZFlush::None);
                    self.from.consume(done.bytes_consumed);
                    if done.status == Ok(MZStatus::StreamEnd) {
                        self.from.read_exact(&mut [0; 8])?;
                        self.at = Place::Before;
                    }
                    if done.bytes_written > 0 || buffer.is_empty() {
                        return Ok(done.bytes_written);
                    }
                    match done.status {
                        Ok(_) if !is_end || self.at == Place::Before => {}
                        Ok(_) => return Err(ErrorKind::UnexpectedEof.into()),
                        Err(_) if is_end => return Err(ErrorKind::UnexpectedEof.into()),
                        Err(_) => return Err(wrong("its compressed content is damaged")),
                    }
                }
            }
        }
    }
}

/// The blocks of a record that we compressed.
pub(crate) struct Blocks {
    pub(crate) file: File,
    offset: u64,
    length: u64,
}

/// One block, and where it lies.
pub(crate) struct Block {
    pub(crate) head: BlockHead,
    pub(crate) offset: u64,
}

impl Blocks {
    /// Nothing where it is another kind of file.
    pub(crate) fn open(path: &Path) -> Option<Self> {
        let file = File::open(path).ok()?;
        let about = file.metadata().ok()?;
        let length = about.len();
        let blocks = Self {
            file,
            offset: 0,
            length,
        };
        (about.is_file() && length > 0 && blocks.head().is_ok()).then_some(blocks)
    }

    fn head(&self) -> io::Result<BlockHead> {
        let mut head = [0; BLOCK_HEAD_BYTES];
        self.file.read_exact_at(&mut head, self.offset)?;
        BlockHead::parse(&head).map_err(io::Error::other)
    }

    /// The next one; nothing at the end.
    pub(crate) fn next(&mut self) -> io::Result<Option<Block>> {
        if self.offset >= self.length {
            return Ok(None);
        }
        let head = self.head()?;
        let offset = self.offset;
        self.offset = offset.saturating_add(u64::from(head.member_bytes));
        if self.offset > self.length {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        Ok(Some(Block { head, offset }))
    }
}

/// The lines of the block that lies there.
pub(crate) fn lines_at(file: &File, offset: u64, member_bytes: u32) -> io::Result<Vec<u8>> {
    let length = usize::try_from(member_bytes).map_err(io::Error::other)?;
    let mut member = vec![0; length];
    file.read_exact_at(&mut member, offset)?;
    let head = BlockHead::parse(&member).map_err(io::Error::other)?;
    head.unpack(&member).map_err(io::Error::other)
}

/// What is wrong with the blocks of a record that we compressed: with their lengths and
/// summaries, of which the chain knows nothing, and by which a search goes.
pub(crate) fn fault(path: &Path) -> Option<String> {
    let mut blocks = Blocks::open(path)?;
    let mut number = 0_u64;
    let faulty = |number: u64, what: &dyn std::fmt::Display| {
        Some(format!("{}: block {number}: {what}", path.display()))
    };
    loop {
        number = number.saturating_add(1);
        let block = match blocks.next() {
            Ok(Some(block)) => block,
            Ok(None) => return None,
            Err(error) => return faulty(number, &error),
        };
        match lines_at(&blocks.file, block.offset, block.head.member_bytes) {
            Ok(lines) if block.head.is_of(&lines) => {}
            Ok(_) => {
                let what = "its summary is not of its lines: a search may leave them out";
                return faulty(number, &what);
            }
            Err(_) => return faulty(number, &BlockFault::Damaged),
        }
    }
}

#[cfg(test)]
mod tests {
    use outgate_record::pack_block;

    use super::*;

    #[test]
    fn gzip_of_every_kind_is_read_and_what_is_damaged_is_an_error() {
        let block = pack_block(b"one\n").unwrap();
        let content = miniz_oxide::deflate::compress_to_vec(b"two\n", 6);
        let mut named = vec![0x1f, 0x8b, 8, 8 | 16 | 2, 0, 0, 0, 0, 0, 3];
        named.extend(b"name\0comment\0xx");
        named.extend(&content);
        named.extend([0; 8]);
        let both = [block.clone(), named.clone(), block.clone()].concat();
        let mut text = String::new();
        let mut reader = Gunzip::new(both.as_slice());
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "one\ntwo\none\n");
        let read = |bytes: &[u8]| Gunzip::new(bytes).read_to_end(&mut Vec::new());
        assert!(read(b"").is_ok());
        for cut in [1, 9, 40, block.len() - 9, block.len() - 1] {
            assert!(read(&block[..cut]).is_err(), "{cut}");
        }
        assert!(read(b"{\"v\":1}\n{\"v\":1}\n").is_err());
        let mut endless = vec![0x1f, 0x8b, 8, 8, 0, 0, 0, 0, 0, 3];
        endless.extend(vec![b'x'; 2 * TEXT_BYTES_MAX]);
        assert!(read(&endless).is_err());
    }
}
