//! Masks values in what origins send back, in every form that is recognised:
//! each by as many bytes of its placeholder, so that lengths stay true. In content
//! that is coded nothing can be masked: there a value ends it. Streams; knows
//! nothing of what it masks.

use std::sync::{Arc, OnceLock};

use bytes::{Bytes, BytesMut};
use http::header::{HeaderMap, HeaderValue};
use http::response;
use hyper::ext::ReasonPhrase;

use super::search::TextSearch;
use crate::body::Stopped;
use crate::caller::Caller;
use crate::filter::{ContentFilter, FieldFilter, StreamEnd};
use crate::seek::{CodedSeek, SoughtTexts};
use crate::target::Target;

/// The values of a session, and what stands for each.
#[derive(Debug)]
pub(crate) struct Mask {
    search: TextSearch,
    instead: Vec<zeroize::Zeroizing<Vec<u8>>>,
    /// Made at the first response that is coded.
    texts: OnceLock<Option<SoughtTexts>>,
}

impl Mask {
    /// Of pairs of equal length: a value in one form, and what stands for it.
    pub(super) fn new(pairs: Vec<(Vec<u8>, Vec<u8>)>) -> Result<Self, String> {
        let (values, instead): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
        Ok(Self {
            search: TextSearch::new(values)?,
            instead: instead.into_iter().map(zeroize::Zeroizing::new).collect(),
            texts: OnceLock::new(),
        })
    }

    /// Masks in place up to where it is certain; how far that is.
    fn apply(&self, bytes: &mut [u8], last: StreamEnd) -> usize {
        let mut at = 0;
        loop {
            let sure = match last {
                StreamEnd::Yes => bytes.len(),
                StreamEnd::No => self.search.undecided(bytes, at),
            };
            match self.search.find(bytes, at) {
                Some(hit) if hit.range.start < sure => {
                    let instead = self.instead.get(hit.index).map(|own| own.as_slice());
                    let slot = bytes.get_mut(hit.range.clone()).unwrap_or_default();
                    slot.copy_from_slice(instead.unwrap_or_default());
                    at = hit.range.end;
                }
                _ => return sure.max(at),
            }
        }
    }

    /// The values as they are looked for in what is coded.
    fn texts(&self) -> Option<&SoughtTexts> {
        let make = || SoughtTexts::new(self.search.needles(), crate::random::key().ok()?);
        self.texts.get_or_init(make).as_ref()
    }

    /// Whether a text holds a value.
    pub(crate) fn sees(&self, bytes: &[u8]) -> bool {
        self.search.find(bytes, 0).is_some()
    }

    /// Masks the values of a head, and drops its reason phrase where that holds one.
    pub(super) fn head(&self, head: &mut response::Parts) {
        self.fields(&mut head.headers);
        if let Some(phrase) = head.extensions.get::<ReasonPhrase>()
            && self.sees(phrase.as_bytes())
        {
            head.extensions.remove::<ReasonPhrase>();
        }
    }
}

impl FieldFilter for Mask {
    fn fields(&self, fields: &mut HeaderMap) {
        for value in fields.values_mut() {
            if !self.sees(value.as_bytes()) {
                continue;
            }
            let mut bytes = value.as_bytes().to_vec();
            self.apply(&mut bytes, StreamEnd::Yes);
            let masked = HeaderValue::from_bytes(&bytes);
            *value = masked.unwrap_or_else(|_| HeaderValue::from_static("-"));
        }
    }
}

/// Content that is being masked.
#[derive(Debug)]
pub(crate) struct Masked {
    mask: Arc<Mask>,
    carry: BytesMut,
    sieve: Option<Sieve>,
}

/// Lets coded content go on as far as it holds no value.
#[derive(Debug)]
struct Sieve {
    seek: CodedSeek,
    /// Bytes that went on.
    passed: u64,
    caller: Arc<Caller>,
    target: Target,
}

impl Masked {
    pub(crate) fn new(mask: Arc<Mask>) -> Self {
        Self {
            mask,
            carry: BytesMut::new(),
            sieve: None,
        }
    }

    /// Content that is coded, as its fields say, in the response to a request;
    /// `None` where nobody can look for values in it.
    pub(crate) fn coded(
        mask: Arc<Mask>,
        fields: &HeaderMap,
        (caller, target): (&Arc<Caller>, &Target),
    ) -> Option<Self> {
        mask.texts()?;
        let seek = CodedSeek::new(|| mask.texts(), fields);
        let sieve = seek.map(|seek| Sieve {
            seek,
            passed: 0,
            caller: Arc::clone(caller),
            target: target.clone(),
        });
        // What stands in another coding stands there as it is.
        Some(Self {
            sieve,
            ..Self::new(mask)
        })
    }

    /// The next piece of what is not coded, as far as it is certain.
    pub(super) fn mask(&mut self, data: Bytes, last: StreamEnd) -> Bytes {
        if self.carry.is_empty() && !self.mask.sees(&data) {
            let end = match last {
                StreamEnd::Yes => data.len(),
                StreamEnd::No => self.mask.search.undecided(&data, 0),
            };
            let mut data = data;
            self.carry.extend_from_slice(&data.split_off(end));
            return data;
        }
        self.carry.extend_from_slice(&data);
        let end = self.mask.apply(&mut self.carry, last);
        self.carry.split_to(end).freeze()
    }
}

impl ContentFilter for Masked {
    fn pass(&mut self, data: Bytes, last: StreamEnd) -> Result<Bytes, Stopped> {
        if let Some(sieve) = &mut self.sieve {
            self.carry.extend_from_slice(&data);
            let count = sieve.cleared(&data, last)?;
            let count = count.min(self.carry.len());
            return Ok(self.carry.split_to(count).freeze());
        }
        Ok(self.mask(data, last))
    }

    fn trailers(&mut self, trailers: &mut HeaderMap) -> Result<(), Stopped> {
        self.mask.fields(trailers);
        Ok(())
    }

    fn waiting(&self) -> usize {
        self.carry.len()
    }
}

impl Sieve {
    /// How many bytes more may go on.
    ///
    /// # Errors
    /// They hold a value that cannot be masked.
    fn cleared(&mut self, data: &[u8], last: StreamEnd) -> Result<usize, Stopped> {
        let cleared = match (self.seek.clear(data), last) {
            (Ok(_), StreamEnd::Yes) => self.seek.clear_rest(),
            (cleared, _) => cleared,
        };
        let Ok(cleared) = cleared else {
            let because = "the response holds the value of a secret, in a coding in which it \
                           cannot be masked";
            let refusal = self.caller.misused(&self.target, because);
            self.caller.recorder().tell(&refusal);
            return Err(Stopped::refused(refusal));
        };
        let count = cleared.saturating_sub(self.passed);
        self.passed = self.passed.max(cleared);
        Ok(usize::try_from(count).unwrap_or(usize::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::broker::forms;

    const VALUE: &str = "s3cr3t/with \"all\" & 'that' + more";
    const PLACEHOLDER: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

    fn mask() -> Arc<Mask> {
        let pairs = forms::pairs(VALUE.as_bytes(), PLACEHOLDER.as_bytes());
        Arc::new(Mask::new(pairs).unwrap())
    }

    fn whole(text: &[u8]) -> Vec<u8> {
        Masked::new(mask())
            .mask(Bytes::copy_from_slice(text), StreamEnd::Yes)
            .to_vec()
    }

    #[test]
    fn every_form_is_masked_and_lengths_stay() {
        let value = VALUE.as_bytes();
        for form in forms::all(value) {
            let text = [b"before:".as_slice(), &form, b":after"].concat();
            let masked = whole(&text);
            assert_eq!(masked.len(), text.len());
            assert!(!masked.windows(form.len()).any(|part| part == form));
            assert!(masked.starts_with(b"before:") && masked.ends_with(b":after"));
        }
        let credentials = forms::base64(&[b"user:".as_slice(), value].concat());
        let masked = forms::from_base64(&whole(&credentials)).unwrap();
        let shown = String::from_utf8_lossy(&masked).into_owned();
        assert!(
            shown.starts_with("user:") && shown.contains("aaaaaaaa"),
            "{shown}"
        );
        assert!(!shown.contains("3cr3t"), "{shown}");
    }

    proptest::proptest! {
        #[test]
        fn pieces_are_masked_as_the_whole(
            picks in proptest::collection::vec(0_usize..6, 0..12),
            cuts in proptest::collection::vec(1_usize..50, 1..40),
        ) {
            let encoded = forms::base64(VALUE.as_bytes());
            let pieces: [&[u8]; 6] = [VALUE.as_bytes(), b"s3cr3t", &encoded, b"x", b"s", b"\n"];
            let text: Vec<u8> = picks.iter().flat_map(|pick| pieces[*pick].to_vec()).collect();
            let mut masked = Masked::new(mask());
            let (mut out, mut rest) = (Vec::new(), text.as_slice());
            for cut in cuts.into_iter().cycle() {
                let (piece, next) = rest.split_at(cut.min(rest.len()));
                rest = next;
                let last = if rest.is_empty() { StreamEnd::Yes } else { StreamEnd::No };
                out.extend_from_slice(&masked.mask(Bytes::copy_from_slice(piece), last));
                if rest.is_empty() {
                    break;
                }
            }
            proptest::prop_assert_eq!(masked.waiting(), 0);
            proptest::prop_assert_eq!(out, whole(&text));
        }
    }
}
