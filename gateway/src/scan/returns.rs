//! Canaries in what origins send back: who has one got it on a way that nobody
//! saw. Looks at bytes as they pass, through the coding that a response names,
//! and holds none of them back; keeps only the end of a piece, where one may
//! begin. Decides nothing.

use std::sync::Arc;

use http::HeaderMap;

use crate::audit::{Event, Kind, Outcome};
use crate::caller::Caller;
use crate::known::Canaries;
use crate::seek::{Seek, Sought};

/// Looks at one response.
#[derive(Debug)]
pub(crate) struct Returns {
    sought: Arc<Sought>,
    caller: Arc<Caller>,
    origin: String,
    /// The end of what passed.
    tail: Vec<u8>,
    /// What looks through the coding of content.
    seek: Option<Box<Seek>>,
    told: Told,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Told {
    Yes,
    No,
}

impl Returns {
    /// What looks at a response of this origin; nothing without canaries.
    pub(crate) fn of(
        canaries: Option<&Canaries>,
        caller: &Arc<Caller>,
        origin: String,
    ) -> Option<Self> {
        Some(Self {
            sought: Arc::clone(&canaries?.sought),
            caller: Arc::clone(caller),
            origin,
            tail: Vec::new(),
            seek: None,
            told: Told::No,
        })
    }

    /// Looks at the fields of a head, which say how its content is coded.
    pub(crate) fn head(&mut self, fields: &HeaderMap) {
        self.fields(fields);
        self.seek = self.sought.seek(fields).map(Box::new);
    }

    /// Looks at fields.
    pub(crate) fn fields(&mut self, fields: &HeaderMap) {
        if fields
            .values()
            .any(|value| self.sought.stands_in(value.as_bytes()))
        {
            self.tell("a field");
        }
    }

    /// Looks at the next piece of content.
    pub(crate) fn content(&mut self, piece: &[u8]) {
        if self.told == Told::Yes {
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
        if std::mem::replace(&mut self.told, Told::Yes) == Told::Yes {
            return;
        }
        let detail = format!(
            "{place} of a response holds a canary of this run: whoever sent it has got it on a way \
             that nobody saw"
        );
        let event = Event::new(Kind::Canary, Outcome::Note, &self.origin)
            .process(self.caller.process())
            .reason("canary", &detail);
        let recorder = self.caller.recorder();
        recorder.record(&event).ok();
        recorder.alarm(&self.origin, &detail);
    }
}

impl Drop for Returns {
    /// The end of content: what was not certain before is now.
    fn drop(&mut self) {
        if self.told == Told::No
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
        let sought = Sought::new(vec![value.to_vec(), b"other".to_vec()]);
        assert_eq!(sought.longest(), 40);
        assert!(sought.stands_in(&[b"x", &value[..], b"y"].concat()));
        assert!(!sought.stands_in(&value[..39]));
        assert!(!Sought::default().stands_in(value));
    }
}
