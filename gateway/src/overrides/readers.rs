//! What looks into content on its way, by how its fields say that it is written. Knows no
//! rules; changes nothing.

use http::header::HeaderMap;
use outgate_policy::RequestTarget;

use super::asks::{Judge, Refused, Sent};
use super::batches::{Batches, Where};
use super::heads::Heads;
use super::keys::{Reader, Written};
use super::media::{self, Untyped, Way};
use super::members::{Manner, Members, Whose};
use super::requests::{Announced, Requests};

/// What rules tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Looks {
    /// Methods, and all that may change them.
    Methods,
    /// Paths and queries alone.
    Paths,
}

/// How content is written.
#[derive(Debug)]
pub(super) struct Kind {
    ways: Vec<Way>,
    boundary: Option<Vec<u8>>,
    manner: Manner,
    whose: Whose,
    looks: Looks,
}

impl Kind {
    /// What these fields say of content for this target; `None` where nobody looks into it.
    pub(super) fn of(
        fields: &HeaderMap,
        to: &RequestTarget,
        untyped: Untyped,
        looks: Looks,
    ) -> Option<Self> {
        let ways = media::of(fields, untyped);
        let path = to.as_str().split('?').next().unwrap_or_default();
        let whose = if path.to_ascii_lowercase().contains("batch") {
            Whose::Every
        } else {
            Whose::Outermost
        };
        (!ways.is_empty()).then(|| Self {
            ways,
            boundary: media::boundary(fields),
            manner: media::manner(fields),
            whose,
            looks,
        })
    }

    /// Whether it is a form in which a method may stand.
    pub(super) fn is_form(&self) -> bool {
        self.looks == Looks::Methods && media::is_form(&self.ways)
    }
}

/// All that looks into it.
#[derive(Debug)]
pub(super) struct Readers(Vec<Any>);

/// One of them.
#[derive(Debug)]
enum Any {
    Batches(Batches),
    Heads(Heads),
    Keys(Reader),
    Members(Members),
    Requests(Requests),
}

impl Readers {
    pub(super) fn new(kind: &Kind, sent: Sent) -> Self {
        let announced = if kind.ways.contains(&Way::Parts) {
            Announced::NotYet
        } else {
            Announced::Already
        };
        let place = match kind.whose {
            Whose::Every => Where::Batch,
            Whose::Outermost => Where::Elsewhere,
        };
        let mut readers = Vec::new();
        for way in &kind.ways {
            match way {
                Way::Members if kind.manner != Manner::Framed => {
                    readers.push(Any::Batches(Batches::new(place)));
                }
                Way::Requests => readers.push(Any::Requests(Requests::new(announced))),
                Way::Pairs | Way::Parts | Way::Members => {}
            }
            if kind.looks == Looks::Paths {
                continue;
            }
            match way {
                Way::Pairs => readers.push(Any::Keys(Reader::new(Written::Pairs, sent))),
                Way::Parts => {
                    readers.push(Any::Keys(Reader::new(Written::Parts, sent)));
                    readers.push(Any::Heads(Heads::new(kind.boundary.as_deref())));
                }
                Way::Members => {
                    readers.push(Any::Members(Members::new(kind.whose, kind.manner)));
                }
                Way::Requests => {}
            }
        }
        Self(readers)
    }

    pub(super) fn read(&mut self, bytes: &[u8], judge: Judge<'_>) -> Result<(), Refused> {
        let mut readers = self.0.iter_mut();
        readers.try_for_each(|reader| match reader {
            Any::Batches(reader) => reader.read(bytes, judge),
            Any::Heads(reader) => reader.read(bytes, judge),
            Any::Keys(reader) => reader.read(bytes, judge),
            Any::Members(reader) => reader.read(bytes, judge),
            Any::Requests(reader) => reader.read(bytes, judge),
        })
    }

    pub(super) fn finish(&mut self, judge: Judge<'_>) -> Result<(), Refused> {
        let mut readers = self.0.iter_mut();
        readers.try_for_each(|reader| match reader {
            Any::Heads(reader) => reader.finish(judge),
            Any::Keys(reader) => reader.finish(judge),
            Any::Batches(_) | Any::Members(_) => Ok(()),
            Any::Requests(reader) => reader.finish(judge),
        })
    }
}
