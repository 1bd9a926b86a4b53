//! Parts of requests in which nothing was found on their way to a host: most
//! fields of a client are the same in every request, and the same rules find
//! the same in them. Keeps keyed hashes, and no part.

use std::collections::HashSet;
use std::hash::{BuildHasher, Hash, Hasher, RandomState};

use http::request;
use outgate_dlp::{MessagePart, Place, ScanDestination};

use crate::limits;
use crate::target::{Target, TargetVisibility};

/// The parts of one sandbox; forgotten all at once when there are too many.
#[derive(Debug, Default)]
pub(super) struct Clean {
    /// Random for each sandbox: nobody can make a part that hashes like another.
    state: RandomState,
    parts: HashSet<u64>,
    /// Targets among them that hold what may go there: they are not shown.
    hidden: HashSet<u64>,
    /// Names and sentences that hold no value.
    texts: HashSet<u64>,
}

impl Clean {
    /// The parts that were not seen on the way to this host.
    pub(super) fn unseen<'a>(
        &self,
        to: &ScanDestination<'_>,
        parts: &[MessagePart<'a>],
    ) -> Vec<MessagePart<'a>> {
        let is_new = |part: &&MessagePart<'_>| !self.parts.contains(&self.key(to, part));
        parts.iter().filter(is_new).cloned().collect()
    }

    /// Was all of this head seen on the way to this host? The head of a client
    /// that asks again is found at once.
    pub(super) fn knows(&self, head: u64) -> bool {
        self.parts.contains(&head)
    }

    /// Whether these texts were added, one after the other.
    pub(super) fn knows_texts<'a>(&self, texts: impl Iterator<Item = &'a str>) -> bool {
        self.texts.contains(&self.texts_key(texts))
    }

    /// They hold no value.
    pub(super) fn add_texts<'a>(&mut self, texts: impl Iterator<Item = &'a str>) {
        if self.texts.len() >= limits::SCAN_CLEAN_MAX {
            self.texts.clear();
        }
        let key = self.texts_key(texts);
        self.texts.insert(key);
    }

    fn texts_key<'a>(&self, texts: impl Iterator<Item = &'a str>) -> u64 {
        let mut state = self.state.build_hasher();
        texts.for_each(|text| text.hash(&mut state));
        state.finish()
    }

    /// What stands for a whole head.
    pub(super) fn whole(
        &self,
        to: &ScanDestination<'_>,
        head: &request::Parts,
        target: &Target,
    ) -> u64 {
        let mut state = self.state.build_hasher();
        // No part begins like this.
        (to.host, to.port, "whole").hash(&mut state);
        head.method.as_str().hash(&mut state);
        target.resource.as_str().hash(&mut state);
        state.write_usize(head.headers.len());
        for (name, value) in &head.headers {
            name.as_str().hash(&mut state);
            value.as_bytes().hash(&mut state);
        }
        state.finish()
    }

    /// How much of a target may be shown in which nothing was found. Asked while
    /// it is known, since both are forgotten together.
    pub(super) fn shown(&self, to: &ScanDestination<'_>, target: &Target) -> TargetVisibility {
        // Mostly there are none.
        let is_hidden = !self.hidden.is_empty() && self.hidden.contains(&self.place(to, target));
        if is_hidden {
            TargetVisibility::Origin
        } else {
            TargetVisibility::Path
        }
    }

    /// Nothing was found in this head, of which these parts are new.
    pub(super) fn add(
        &mut self,
        (to, target): (&ScanDestination<'_>, &Target),
        (parts, head): (&[MessagePart<'_>], u64),
        shown: TargetVisibility,
    ) {
        self.add_parts(to, parts);
        self.parts.insert(head);
        if shown == TargetVisibility::Origin {
            let place = self.place(to, target);
            self.hidden.insert(place);
        }
    }

    fn add_parts(&mut self, to: &ScanDestination<'_>, parts: &[MessagePart<'_>]) {
        self.make_room();
        let keys: Vec<u64> = parts.iter().map(|part| self.key(to, part)).collect();
        self.parts.extend(keys);
    }

    fn make_room(&mut self) {
        if self.parts.len() > limits::SCAN_CLEAN_MAX {
            self.parts.clear();
            self.hidden.clear();
        }
    }

    fn place(&self, to: &ScanDestination<'_>, target: &Target) -> u64 {
        let bytes = target.resource.as_str().as_bytes();
        let place = Place::Target;
        self.key(to, &MessagePart { place, bytes })
    }

    fn key(&self, to: &ScanDestination<'_>, part: &MessagePart<'_>) -> u64 {
        self.state
            .hash_one((to.host, to.port, &part.place, part.bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_part_counts_for_its_host_and_place_alone() {
        let part = |place: Place, bytes: &'static str| MessagePart {
            place,
            bytes: bytes.as_bytes(),
        };
        let to = |host| ScanDestination { host, port: 443 };
        let field = Place::Field("a".to_owned());
        let mut clean = Clean::default();
        clean.add_parts(&to("a.test"), &[part(field.clone(), "x")]);
        let unseen = |host, place, bytes| clean.unseen(&to(host), &[part(place, bytes)]).len();
        assert_eq!(unseen("a.test", field.clone(), "x"), 0);
        assert_eq!(unseen("a.test", field.clone(), "y"), 1);
        assert_eq!(unseen("b.test", field, "x"), 1);
        assert_eq!(unseen("a.test", Place::Target, "x"), 1);
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let mut clean = Clean::default();
        let to = ScanDestination {
            host: "a.test",
            port: 443,
        };
        for number in 0..3 * limits::SCAN_CLEAN_MAX {
            let bytes = number.to_string();
            let part = MessagePart {
                place: Place::Target,
                bytes: bytes.as_bytes(),
            };
            clean.add_parts(&to, &[part]);
        }
        assert!(clean.parts.len() <= limits::SCAN_CLEAN_MAX + 1);
    }
}
