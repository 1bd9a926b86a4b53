//! Reading and writing the fields of a frame. Knows lengths and limits, not
//! meanings. Every read is bounded by the bytes that are there.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Why bytes are not a frame. The peer that sent them is at fault, and the
/// session ends.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum FrameError {
    /// The frame ends inside the named field.
    Short {
        /// The field that was being read.
        field: &'static str,
    },
    /// Bytes follow the last field.
    Trailing {
        /// How many.
        bytes: usize,
    },
    /// The header's length is not the body's.
    Length {
        /// What the header says, in bytes.
        claimed: usize,
        /// What is there, in bytes.
        actual: usize,
    },
    /// No frame of this kind exists in this direction.
    Kind {
        /// The kind's number.
        kind: u16,
    },
    /// A field holds more than its limit.
    Limit {
        /// The field.
        field: &'static str,
        /// Its limit, in the field's unit.
        max: usize,
        /// What was claimed or given.
        actual: usize,
    },
    /// A field holds a value that has no meaning.
    Value {
        /// The field.
        field: &'static str,
    },
}

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Short { field } => write!(f, "frame ends inside field `{field}`"),
            Self::Trailing { bytes } => write!(f, "{bytes} bytes follow the frame's last field"),
            Self::Length { claimed, actual } => {
                write!(f, "frame claims {claimed} bytes and has {actual}")
            }
            Self::Kind { kind } => write!(f, "no frame of kind {kind} in this direction"),
            Self::Limit { field, max, actual } => {
                write!(f, "field `{field}` holds {actual}, its limit is {max}")
            }
            Self::Value { field } => write!(f, "field `{field}` holds no valid value"),
        }
    }
}

impl std::error::Error for FrameError {}

/// Appends fields to a frame.
pub(crate) struct FrameWriter {
    bytes: Vec<u8>,
    error: Option<FrameError>,
}

impl FrameWriter {
    pub(crate) fn new(kind: u16, id: u64) -> Self {
        let mut bytes = Vec::with_capacity(256);
        bytes.extend_from_slice(&kind.to_le_bytes());
        bytes.extend_from_slice(&[0; 6]);
        bytes.extend_from_slice(&id.to_le_bytes());
        Self { bytes, error: None }
    }

    pub(crate) fn u8(&mut self, value: u8) {
        self.bytes.push(value);
    }

    pub(crate) fn u16(&mut self, value: u16) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    pub(crate) fn u32(&mut self, value: u32) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    pub(crate) fn u64(&mut self, value: u64) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    pub(crate) fn bytes(&mut self, field: &'static str, value: &[u8], max: usize) {
        match u32::try_from(value.len()) {
            Ok(length) if value.len() <= max => {
                self.u32(length);
                self.bytes.extend_from_slice(value);
            }
            _ => {
                self.error.get_or_insert(FrameError::Limit {
                    field,
                    max,
                    actual: value.len(),
                });
            }
        }
    }

    pub(crate) fn address(&mut self, address: SocketAddr) {
        match address.ip() {
            IpAddr::V4(ip) => {
                self.u8(4);
                self.bytes.extend_from_slice(&ip.octets());
            }
            IpAddr::V6(ip) => {
                self.u8(6);
                self.bytes.extend_from_slice(&ip.octets());
            }
        }
        self.u16(address.port());
    }

    /// The finished frame, or the first field that broke its limit.
    pub(crate) fn finish(mut self) -> Result<Vec<u8>, FrameError> {
        if let Some(error) = self.error {
            return Err(error);
        }
        let over = FrameError::Limit {
            field: "frame",
            max: crate::FRAME_BYTES_MAX,
            actual: self.bytes.len(),
        };
        if self.bytes.len() > crate::FRAME_BYTES_MAX {
            return Err(over);
        }
        let body = self.bytes.len().saturating_sub(crate::HEADER_BYTES);
        let length = u32::try_from(body).map_err(|_| over)?;
        if let Some(slot) = self.bytes.get_mut(4..8) {
            slot.copy_from_slice(&length.to_le_bytes());
        }
        Ok(self.bytes)
    }
}

/// Takes fields from a frame.
pub(crate) struct FrameReader<'a> {
    rest: &'a [u8],
}

impl<'a> FrameReader<'a> {
    /// Checks the header and returns the kind, the id and the body.
    pub(crate) fn open(frame: &'a [u8]) -> Result<(u16, u64, Self), FrameError> {
        if frame.len() > crate::FRAME_BYTES_MAX {
            return Err(FrameError::Limit {
                field: "frame",
                max: crate::FRAME_BYTES_MAX,
                actual: frame.len(),
            });
        }
        let mut reader = Self { rest: frame };
        let kind = reader.u16("kind")?;
        if reader.u16("reserved")? != 0 {
            return Err(FrameError::Value { field: "reserved" });
        }
        let claimed = reader.u32("length")?;
        let id = reader.u64("id")?;
        let actual = reader.rest.len();
        if usize::try_from(claimed) != Ok(actual) {
            return Err(FrameError::Length {
                claimed: usize::try_from(claimed).unwrap_or(usize::MAX),
                actual,
            });
        }
        Ok((kind, id, reader))
    }

    fn take(&mut self, field: &'static str, count: usize) -> Result<&'a [u8], FrameError> {
        let (head, rest) = self
            .rest
            .split_at_checked(count)
            .ok_or(FrameError::Short { field })?;
        self.rest = rest;
        Ok(head)
    }

    fn array<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], FrameError> {
        let head = self.take(field, N)?;
        head.try_into().map_err(|_| FrameError::Short { field })
    }

    pub(crate) fn u8(&mut self, field: &'static str) -> Result<u8, FrameError> {
        Ok(u8::from_le_bytes(self.array(field)?))
    }

    pub(crate) fn u16(&mut self, field: &'static str) -> Result<u16, FrameError> {
        Ok(u16::from_le_bytes(self.array(field)?))
    }

    pub(crate) fn u32(&mut self, field: &'static str) -> Result<u32, FrameError> {
        Ok(u32::from_le_bytes(self.array(field)?))
    }

    pub(crate) fn u64(&mut self, field: &'static str) -> Result<u64, FrameError> {
        Ok(u64::from_le_bytes(self.array(field)?))
    }

    pub(crate) fn bytes(
        &mut self,
        field: &'static str,
        max: usize,
    ) -> Result<&'a [u8], FrameError> {
        let claimed = usize::try_from(self.u32(field)?).unwrap_or(usize::MAX);
        if claimed > max {
            return Err(FrameError::Limit {
                field,
                max,
                actual: claimed,
            });
        }
        self.take(field, claimed)
    }

    pub(crate) fn text(&mut self, field: &'static str, max: usize) -> Result<String, FrameError> {
        let bytes = self.bytes(field, max)?;
        std::str::from_utf8(bytes)
            .map(str::to_owned)
            .map_err(|_| FrameError::Value { field })
    }

    pub(crate) fn address(&mut self, field: &'static str) -> Result<SocketAddr, FrameError> {
        let ip = match self.u8(field)? {
            4 => IpAddr::V4(Ipv4Addr::from(self.array::<4>(field)?)),
            6 => IpAddr::V6(Ipv6Addr::from(self.array::<16>(field)?)),
            _ => return Err(FrameError::Value { field }),
        };
        Ok(SocketAddr::new(ip, self.u16(field)?))
    }

    pub(crate) fn end(self) -> Result<(), FrameError> {
        if self.rest.is_empty() {
            Ok(())
        } else {
            Err(FrameError::Trailing {
                bytes: self.rest.len(),
            })
        }
    }
}
