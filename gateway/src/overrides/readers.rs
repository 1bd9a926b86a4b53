//! What looks into content on its way, by how its fields say that it is written. Knows no
//! rules; changes nothing.

use http::Method;
use http::header::{HeaderMap, HeaderName, HeaderValue};

use super::asks::{Asks, InnerContent, InnerDepth, InnerHead, Judge, Refused, Sent};
use super::batches::{Batches, NotJson, takes_batches};
use super::coding::{Coding, Ended, Fault, Undo};
use super::heads::PartHeads;
use super::keys::KeyFinder;
use super::lists::{PairLists, PartLists};
use super::media::{self, MediaReading, Untyped};
use super::members::{Manner, MemberFinder};
use super::requests::{Announced, RequestFinder};

/// What rules tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OverrideLooks {
    /// Methods, and all that may change them.
    Methods,
    /// Paths and queries alone.
    Paths,
}

/// Bytes of a line that may be the border of parts, at most.
const BORDER_BYTES_MAX: usize = 210;

/// How content is written.
#[derive(Debug)]
pub(super) struct MediaKind {
    ways: Vec<MediaReading>,
    boundary: Option<Vec<u8>>,
    manner: Manner,
    unsaid: Manner,
    place: NotJson,
    coding: Coding,
    looks: OverrideLooks,
    depth: InnerDepth,
}

impl MediaKind {
    /// What these fields say of content for this target, a path with a query.
    pub(super) fn of(
        fields: &HeaderMap,
        to: &str,
        untyped: Untyped,
        (looks, depth): (OverrideLooks, InnerDepth),
    ) -> Self {
        let path = to.split('?').next().unwrap_or_default();
        let place = if takes_batches(path) {
            NotJson::Batch
        } else {
            NotJson::Elsewhere
        };
        Self {
            ways: media::of(fields, untyped),
            boundary: media::boundary(fields),
            manner: media::manner(fields),
            unsaid: media::unsaid(fields),
            place,
            coding: Coding::of(fields),
            looks,
            depth,
        }
    }

    /// Content of which nobody says what it is.
    fn unknown(ways: Vec<MediaReading>, boundary: Option<Vec<u8>>, depth: InnerDepth) -> Self {
        let looks = if ways.is_empty() {
            OverrideLooks::Paths
        } else {
            OverrideLooks::Methods
        };
        Self {
            ways,
            boundary,
            manner: Manner::Unsaid,
            unsaid: Manner::Unsaid,
            place: NotJson::Unsaid,
            coding: Coding::Plain,
            looks,
            depth,
        }
    }

    /// Whether it is a form in which a method may stand.
    pub(super) fn is_form(&self) -> bool {
        self.looks == OverrideLooks::Methods && media::is_form(&self.ways)
    }
}

/// All that looks into it.
#[derive(Debug)]
pub(super) struct Readers {
    plain: Vec<Any>,
    undone: Vec<Undone>,
    damaged: Damaged,
}

/// What a coding is undone to, as some programs do.
#[derive(Debug)]
struct Undone {
    /// `None` once nothing comes out.
    undo: Option<Undo>,
    readers: Vec<Any>,
}

/// What content is whose coding nobody can undo.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Damaged {
    Unread,
    /// Nothing that anybody acts on.
    Nothing,
}

/// One of them.
#[derive(Debug)]
enum Any {
    Batches(Batches<InnerReaders>),
    Heads(PartHeads),
    Keys(KeyFinder),
    Members(MemberFinder),
    PairLists(PairLists<InnerReaders>),
    PartLists(PartLists<InnerReaders>),
    Requests(RequestFinder<InnerReaders>),
}

impl Readers {
    pub(super) fn new(kind: &MediaKind, sent: Sent) -> Self {
        let undone: Vec<Undone> = kind
            .coding
            .undone()
            .into_iter()
            .map(|undo| Undone {
                undo: Some(undo),
                readers: said(kind, sent),
            })
            .collect();
        // Some do not undo a coding.
        let plain = if undone.is_empty() {
            said(kind, sent)
        } else {
            unsaid(kind)
        };
        let matters = kind.looks == OverrideLooks::Methods || kind.place == NotJson::Batch;
        let damaged = if kind.ways.contains(&MediaReading::Members) && matters {
            Damaged::Unread
        } else {
            Damaged::Nothing
        };
        Self {
            plain,
            undone,
            damaged,
        }
    }

    pub(super) fn read(&mut self, bytes: &[u8], judge: Judge<'_>) -> Result<(), Refused> {
        read_by(&mut self.plain, bytes, judge)?;
        if self.undone.is_empty() {
            return Ok(());
        }
        let mut faults = 0;
        for undone in &mut self.undone {
            match undone.read(bytes, judge)? {
                Some(Fault::TooLarge) => judge(Asks::Unread("content in a coding without end"))?,
                Some(Fault::Damaged) => faults += 1,
                None => {}
            }
        }
        let is_over = self.undone.iter().all(|undone| undone.undo.is_none());
        if faults > 0 && is_over && self.damaged == Damaged::Unread {
            return judge(Asks::Unread("a coding that cannot be undone"));
        }
        Ok(())
    }

    pub(super) fn finish(&mut self, judge: Judge<'_>) -> Result<(), Refused> {
        for undone in &mut self.undone {
            undone.finish(judge)?;
        }
        let undone = self.undone.iter_mut();
        let undone = undone.flat_map(|undone| &mut undone.readers);
        let mut readers = self.plain.iter_mut().chain(undone);
        readers.try_for_each(|reader| match reader {
            Any::Heads(reader) => reader.finish(judge),
            Any::Keys(reader) => reader.finish(judge),
            Any::Batches(_) | Any::Members(_) | Any::PairLists(_) | Any::PartLists(_) => Ok(()),
            Any::Requests(reader) => reader.finish(judge),
        })
    }
}

impl Undone {
    /// Nothing will come: what waited for it is read.
    fn finish(&mut self, judge: Judge<'_>) -> Result<(), Refused> {
        let Some(mut undo) = self.undo.take() else {
            return Ok(());
        };
        let readers = &mut self.readers;
        match undo.finish(&mut |made| read_by(readers, made, judge)) {
            Ok(()) => Ok(()),
            Err(Ended::Said(refused)) => Err(refused),
            Err(Ended::Fault(_)) => judge(Asks::Unread("content in a coding without end")),
        }
    }

    /// Why nothing more comes out.
    fn read(&mut self, bytes: &[u8], judge: Judge<'_>) -> Result<Option<Fault>, Refused> {
        let Some(undo) = &mut self.undo else {
            return Ok(None);
        };
        let readers = &mut self.readers;
        match undo.read(bytes, &mut |made| read_by(readers, made, judge)) {
            Ok(()) => {
                // What nobody reads on is not worth undoing.
                if self.readers.iter().all(Any::is_over) {
                    self.undo = None;
                }
                Ok(None)
            }
            Err(Ended::Said(refused)) => Err(refused),
            Err(Ended::Fault(fault)) => {
                self.undo = None;
                let is_over = self.readers.iter().all(Any::is_over);
                let matters = fault == Fault::Damaged || !is_over;
                Ok(Some(fault).filter(|_| matters))
            }
        }
    }
}

impl Any {
    /// Whether what comes cannot matter.
    fn is_over(&self) -> bool {
        match self {
            Self::Batches(reader) => reader.is_over(),
            Self::Members(reader) => reader.is_over(),
            Self::Heads(_)
            | Self::Keys(_)
            | Self::PairLists(_)
            | Self::PartLists(_)
            | Self::Requests(_) => false,
        }
    }
}

fn read_by(readers: &mut [Any], bytes: &[u8], judge: Judge<'_>) -> Result<(), Refused> {
    let mut readers = readers.iter_mut();
    readers.try_for_each(|reader| match reader {
        Any::Batches(reader) => reader.read(bytes, judge),
        Any::Heads(reader) => reader.read(bytes, judge),
        Any::Keys(reader) => reader.read(bytes, judge),
        Any::Members(reader) => reader.read(bytes, judge),
        Any::PairLists(reader) => reader.read(bytes, judge),
        Any::PartLists(reader) => reader.read(bytes, judge),
        Any::Requests(reader) => reader.read(bytes, judge),
    })
}

/// What reads content as its fields say, and as what they do not say.
fn said(kind: &MediaKind, sent: Sent) -> Vec<Any> {
    let announced = if kind.ways.contains(&MediaReading::Parts) {
        Announced::NotYet
    } else {
        Announced::Already
    };
    let mut readers = Vec::new();
    for way in &kind.ways {
        match way {
            MediaReading::Members if kind.manner != Manner::Framed => {
                readers.push(Any::Batches(Batches::new(kind.place, kind.depth)));
            }
            MediaReading::Requests => {
                let boundary = kind.boundary.as_deref();
                let finder = RequestFinder::new(announced, boundary, (sent, kind.depth));
                readers.push(Any::Requests(finder));
            }
            MediaReading::Pairs => readers.push(Any::PairLists(PairLists::new(kind.depth))),
            MediaReading::Parts => readers.push(Any::PartLists(PartLists::new(kind.depth))),
            MediaReading::Members => {}
        }
        if kind.looks == OverrideLooks::Paths {
            continue;
        }
        match way {
            MediaReading::Pairs => readers.push(Any::Keys(KeyFinder::new(sent))),
            MediaReading::Parts => {
                readers.push(Any::Heads(PartHeads::new(kind.boundary.as_deref(), sent)));
            }
            MediaReading::Members => readers.push(Any::Members(MemberFinder::new(kind.manner))),
            MediaReading::Requests => {}
        }
    }
    if !kind.ways.contains(&MediaReading::Members) {
        readers.extend(unsaid(kind));
    }
    readers
}

/// What reads it as JSON whatever its fields say, as some do (Parse Server).
fn unsaid(kind: &MediaKind) -> Vec<Any> {
    let place = match kind.place {
        NotJson::Batch | NotJson::Unsaid => NotJson::Unsaid,
        NotJson::Elsewhere => NotJson::Elsewhere,
    };
    let mut readers = vec![Any::Batches(Batches::new(place, kind.depth))];
    if kind.looks == OverrideLooks::Methods {
        readers.push(Any::Members(MemberFinder::new(kind.unsaid)));
    }
    readers
}

/// What reads the content of a request within another one: by what its head says, or as a
/// text of which nobody says anything.
#[derive(Debug)]
pub(super) enum InnerReaders {
    Read(Box<Readers>, HiddenContent),
    /// The beginning of a text, which may be the border of its parts.
    Begins(Vec<u8>, InnerDepth),
}

/// Whether somebody could read content that is not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HiddenContent {
    No,
    /// It could ask for a method.
    Method(&'static str),
    /// It could hold requests.
    Requests(&'static str),
}

impl InnerContent for InnerReaders {
    fn of_request(head: &InnerHead, sent: Sent, depth: InnerDepth) -> Self {
        let fields = head.fields.iter().filter_map(|(name, value)| {
            let name = HeaderName::try_from(name.as_str()).ok()?;
            Some((name, HeaderValue::try_from(value.as_str()).ok()?))
        });
        let fields: HeaderMap = fields.collect();
        let untyped = untyped(&head.method);
        let looks = (OverrideLooks::Methods, depth);
        let kind = MediaKind::of(&fields, &head.target, untyped, looks);
        let hidden = match media::hides(&fields, untyped) {
            None => HiddenContent::No,
            Some(what) if media::holds_requests(&fields) => HiddenContent::Requests(what),
            Some(what) => HiddenContent::Method(what),
        };
        Self::Read(Box::new(Readers::new(&kind, sent)), hidden)
    }

    fn of_text(depth: InnerDepth) -> Self {
        Self::Begins(Vec::new(), depth)
    }

    fn of_list(depth: InnerDepth) -> Self {
        let kind = MediaKind::unknown(Vec::new(), None, depth);
        let readers = Readers::new(&kind, Sent::AtTheEnd);
        Self::Read(Box::new(readers), HiddenContent::No)
    }

    fn read(&mut self, bytes: &[u8], judge: Judge<'_>) -> Result<(), Refused> {
        match self {
            Self::Read(readers, hidden) => {
                if bytes.iter().any(|byte| !byte.is_ascii_whitespace()) {
                    match std::mem::replace(hidden, HiddenContent::No) {
                        HiddenContent::No => {}
                        HiddenContent::Method(what) => judge(Asks::UnreadMethod(what))?,
                        HiddenContent::Requests(what) => judge(Asks::Unread(what))?,
                    }
                }
                readers.read(bytes, judge)
            }
            Self::Begins(begin, _) => {
                begin.extend_from_slice(bytes);
                let may_be_border = b"--".starts_with(begin)
                    || (begin.starts_with(b"--")
                        && begin.len() < BORDER_BYTES_MAX
                        && !begin.contains(&b'\n'));
                if may_be_border {
                    Ok(())
                } else {
                    self.begun(judge)
                }
            }
        }
    }

    fn finish(&mut self, judge: Judge<'_>) -> Result<(), Refused> {
        self.begun(judge)?;
        match self {
            Self::Read(readers, _) => readers.finish(judge),
            Self::Begins(..) => Ok(()),
        }
    }
}

impl InnerReaders {
    /// It is known how a text begins.
    fn begun(&mut self, judge: Judge<'_>) -> Result<(), Refused> {
        let Self::Begins(begin, depth) = self else {
            return Ok(());
        };
        let (begin, depth) = (std::mem::take(begin), *depth);
        let line = begin
            .split(|byte| *byte == b'\n')
            .next()
            .unwrap_or_default();
        let boundary = line.trim_ascii_end().strip_prefix(b"--");
        let boundary = boundary.filter(|boundary| !boundary.is_empty());
        let mut ways = vec![MediaReading::Pairs];
        if boundary.is_some() {
            ways.extend([MediaReading::Parts, MediaReading::Requests]);
        }
        let kind = MediaKind::unknown(ways, boundary.map(<[u8]>::to_vec), depth);
        let mut readers = Readers::new(&kind, Sent::AtTheEnd);
        let read = readers.read(&begin, judge);
        *self = Self::Read(Box::new(readers), HiddenContent::No);
        read
    }
}

/// What content of no type may be: programs read a form in that of a POST, while that of
/// others is mostly a file.
pub(super) fn untyped(method: &str) -> Untyped {
    if method.eq_ignore_ascii_case(Method::POST.as_str()) {
        Untyped::Form
    } else {
        Untyped::Opaque
    }
}
