//! Canaries in what origins send back: who has one got it on a way that nobody
//! saw. Looks at bytes as they pass, through the coding that a response names,
//! and holds none of them back; keeps only the end of a piece, where one may
//! begin. Decides nothing.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, response};
use outgate_record::Reason;

use crate::audit::{Event, Kind, Outcome};
use crate::body::Stopped;
use crate::caller::Caller;
use crate::filter::{ContentFilter, Filter, RequestContext, ResponseContentKind, StreamEnd};
use crate::known::Canaries;
use crate::refusal::Refusal;
use crate::seek::{CodedSeek, SoughtCanaries};

/// What looks at the responses to requests; nothing without canaries.
pub(crate) fn canaries(canaries: Option<&Canaries>) -> Option<Box<dyn Filter>> {
    Some(Box::new(CanaryFilter(Arc::clone(&canaries?.sought))))
}

#[derive(Debug)]
struct CanaryFilter(Arc<SoughtCanaries>);

impl Filter for CanaryFilter {
    fn returned(
        &mut self,
        request: &RequestContext,
        head: &mut response::Parts,
        _: ResponseContentKind,
    ) -> Result<Option<Box<dyn ContentFilter>>, Refusal> {
        let mut returns = Returns::new(&self.0, request);
        returns.head(&head.headers);
        Ok(Some(Box::new(returns)))
    }
}

/// Looks at one response.
#[derive(Debug)]
struct Returns {
    sought: Arc<SoughtCanaries>,
    caller: Arc<Caller>,
    origin: String,
    /// The end of what passed.
    tail: Vec<u8>,
    /// What looks through the coding of content.
    seek: Option<Box<CodedSeek>>,
    told: AlarmTold,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AlarmTold {
    Yes,
    No,
}

impl Returns {
    fn new(sought: &Arc<SoughtCanaries>, request: &RequestContext) -> Self {
        Self {
            sought: Arc::clone(sought),
            caller: Arc::clone(&request.caller),
            origin: request.target.origin(),
            tail: Vec::new(),
            seek: None,
            told: AlarmTold::No,
        }
    }

    /// Looks at the fields of a head, which say how its content is coded.
    fn head(&mut self, fields: &HeaderMap) {
        self.fields(fields);
        self.seek = self.sought.seek(fields).map(Box::new);
    }

    /// Looks at fields.
    fn fields(&mut self, fields: &HeaderMap) {
        if fields
            .values()
            .any(|value| self.sought.stands_in(value.as_bytes()))
        {
            self.tell("a field");
        }
    }

    /// Looks at the next piece of content.
    fn content(&mut self, piece: &[u8]) {
        if self.told == AlarmTold::Yes {
            return;
        }
        if let Some(seek) = &mut self.seek
            && seek.pass(piece).is_some()
        {
            return self.tell("the coded content");
        }
        let reach = self.sought.longest().saturating_sub(1);
        // Where two pieces meet, and the piece itself.
        let head = piece.get(..piece.len().min(reach)).unwrap_or_default();
        self.tail.extend_from_slice(head);
        if self.sought.stands_in(&self.tail) || self.sought.stands_in(piece) {
            return self.tell("the content");
        }
        if piece.len() >= reach {
            self.tail.clear();
            let rest = piece.len().saturating_sub(reach);
            self.tail
                .extend_from_slice(piece.get(rest..).unwrap_or_default());
        } else {
            let rest = self.tail.len().saturating_sub(reach);
            self.tail.drain(..rest);
        }
    }

    fn tell(&mut self, place: &str) {
        if std::mem::replace(&mut self.told, AlarmTold::Yes) == AlarmTold::Yes {
            return;
        }
        let detail = format!(
            "{place} of a response holds a canary of this run: whoever sent it has got it on a way \
             that nobody saw"
        );
        let event = Event::new(Kind::Canary, Outcome::Note, &self.origin)
            .process(self.caller.process())
            .reason(Reason::Canary, &detail);
        let recorder = self.caller.recorder();
        recorder.record(&event).ok();
        recorder.alarm(&self.origin, &detail);
    }
}

impl ContentFilter for Returns {
    fn pass(&mut self, data: Bytes, _: StreamEnd) -> Result<Bytes, Stopped> {
        if !data.is_empty() {
            self.content(&data);
        }
        Ok(data)
    }

    fn trailers(&mut self, trailers: &mut HeaderMap) -> Result<(), Stopped> {
        self.fields(trailers);
        Ok(())
    }
}

impl Drop for Returns {
    /// The end of content: what was not certain before is now.
    fn drop(&mut self) {
        if self.told == AlarmTold::No
            && let Some(mut seek) = self.seek.take()
            && seek.finish().is_some()
        {
            self.tell("the coded content");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_seen_wherever_pieces_meet() {
        let value = b"ghp_0123456789abcdefghijklmnopqrstuvwxyz";
        let sought = SoughtCanaries::new(vec![value.to_vec(), b"other".to_vec()]);
        assert_eq!(sought.longest(), 40);
        assert!(sought.stands_in(&[b"x", &value[..], b"y"].concat()));
        assert!(!sought.stands_in(&value[..39]));
        assert!(!SoughtCanaries::default().stands_in(value));
    }
}
