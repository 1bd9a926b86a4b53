//! Content on its way through a scan: bytes go in, and the number of bytes
//! that may leave comes out.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::budget::wide;
use crate::charset;
use crate::coding::Coding;
use crate::decode::containers::Declared;
use crate::decode::layer::{Layer, LayerExtent};
use crate::destination::ScanDestination;
use crate::finding::{Finding, PairHalf, ScanReport, Stop, Unscanned};
use crate::limits;
use crate::place::{ContentSyntax, Description, Place, PlaceKind};
use crate::position::ContentPosition;
use crate::ruleset::Ruleset;
use crate::scan::{Scan, ScanState};
use crate::trail::Trail;

/// One stream under scan. What it has not released must not be sent.
pub struct Stream {
    rules: Arc<Ruleset>,
    host: String,
    place: Place,
    /// The path that a form or a document in JSON is for, and whether it is the latter; none
    /// where it is neither.
    form: Option<(String, bool)>,
    layer: Layer,
    state: ScanState,
    taken: u64,
    released: u64,
    stop: Option<Stop>,
}

impl fmt::Debug for Stream {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // What it holds may be a credential.
        formatter
            .debug_struct("Stream")
            .field("taken", &self.taken)
            .field("released", &self.released)
            .finish_non_exhaustive()
    }
}

impl Ruleset {
    /// Begins to watch a response from `origin`: for the values of
    /// [`Ruleset::with_watched`] alone, in all codings; none where there are none.
    pub fn watch(
        &self,
        origin: &ScanDestination<'_>,
        description: &Description<'_>,
    ) -> Option<Stream> {
        let watching = self.watching.as_ref()?;
        Some(watching.stream(origin, description))
    }

    /// Begins a stream.
    pub fn stream(
        self: &Arc<Self>,
        destination: &ScanDestination<'_>,
        description: &Description<'_>,
    ) -> Stream {
        Stream::new(self, destination, description)
    }
}

impl Stream {
    pub(crate) fn new(
        rules: &Arc<Ruleset>,
        destination: &ScanDestination<'_>,
        description: &Description<'_>,
    ) -> Self {
        let mut layer = Layer::new(Trail::default());
        let mut declared = codings(description.content_codings.unwrap_or_default());
        if declared.codings.is_empty() {
            layer.containers().expect(0);
        }
        let is_coded = !declared.codings.is_empty() || declared.has_more;
        let media_type = description.media_type.unwrap_or_default();
        declared.has_more |= !charset::is_scanned(media_type);
        layer.containers().declare(declared);
        let mut state = ScanState::default();
        if !is_coded {
            state.position = ContentPosition::of(media_type);
        }
        let is_form = !is_coded && is_of(media_type, FORM);
        let is_open = is_form || !is_coded && is_of(media_type, JSON);
        if is_form {
            let mut scan = Scan {
                rules,
                host: destination.host,
                kind: description.place.kind(),
                state: &mut state,
            };
            layer.join_form(&mut scan);
        }
        Self {
            rules: Arc::clone(rules),
            host: destination.host.to_owned(),
            place: description.place.clone(),
            form: (is_open && description.place == Place::Content)
                .then(|| (String::new(), !is_form)),
            layer,
            state,
            taken: 0,
            released: 0,
            stop: None,
        }
    }

    /// The same on its way to a path of the host: a form may show there what other
    /// content may not hold.
    #[must_use]
    pub fn for_path(mut self, path: &str) -> Self {
        self.form = self.form.map(|(_, is_json)| (path.to_owned(), is_json));
        self
    }

    /// The same, broken off where it costs more than `bound`, as [`Stream::cost`] counts: for
    /// whoever has no time for more, and begins anew elsewhere.
    #[must_use]
    pub fn within(mut self, bound: u64) -> Self {
        self.state.budget.bind(Some(bound));
        self
    }

    /// From here on it may cost what it takes.
    pub fn unbind(&mut self) {
        self.state.budget.bind(None);
    }

    /// The same, broken off as soon as `halt` is set, by another thread.
    #[must_use]
    pub fn halted_by(mut self, halt: Arc<AtomicBool>) -> Self {
        self.state.budget.halt_by(halt);
        self
    }

    /// Whether it was broken off: nothing it says is worth anything but what it found.
    pub fn is_broken_off(&self) -> bool {
        self.state.budget.is_broken_off()
    }

    /// What was made of the bytes that came in, in bytes: decoded and decompressed ones, and
    /// those for which other work stands.
    pub fn cost(&self) -> u64 {
        self.state.budget.cost()
    }

    /// Whether something was seen that may go there only because it stands in a form.
    pub fn has_granted(&self) -> bool {
        self.state.granted > 0
    }

    /// Takes the next bytes, and says how many bytes from the start of the
    /// stream may leave by now.
    ///
    /// # Errors
    /// When the stream must end here: nothing more may leave.
    pub fn push(&mut self, bytes: &[u8]) -> Result<u64, Stop> {
        if let Some(stop) = &self.stop {
            return Err(stop.clone());
        }
        self.taken = self.taken.saturating_add(wide(bytes.len()));
        self.state.budget.take(bytes.len());
        self.state.position.push(bytes);
        self.with(|layer, scan| layer.push(scan, bytes, None))
    }

    /// The border of a message, or a pause: everything may leave but what could
    /// still become a credential.
    ///
    /// # Errors
    /// When the stream must end here: nothing more may leave.
    pub fn end_of_message(&mut self) -> Result<u64, Stop> {
        self.with(|layer, scan| layer.work(scan, LayerExtent::Flush))
    }

    /// The end.
    ///
    /// # Errors
    /// When the stream must end here: nothing more may leave.
    pub fn finish(&mut self) -> Result<u64, Stop> {
        self.with(|layer, scan| layer.work(scan, LayerExtent::End))?;
        Ok(self.release(u64::MAX))
    }

    fn with(&mut self, act: impl FnOnce(&mut Layer, &mut Scan<'_>)) -> Result<u64, Stop> {
        if let Some(stop) = &self.stop {
            return Err(stop.clone());
        }
        let mut scan = Scan {
            rules: &self.rules,
            host: &self.host,
            kind: match &self.form {
                Some((path, is_json)) => PlaceKind::Form(ContentSyntax {
                    path,
                    is_json: *is_json,
                    before: &[],
                }),
                None => self.place.kind(),
            },
            state: &mut self.state,
        };
        act(&mut self.layer, &mut scan);
        if let Some(mut finding) = self.state.block.take() {
            finding.place = self.place.clone();
            return self.end(Stop::Found(Box::new(finding)));
        }
        let refuses = |unscanned: &Unscanned| self.rules.unscannable().refuses(unscanned.reason);
        if let Some(unscanned) = self.state.unscanned().filter(refuses) {
            return self.end(Stop::Unscannable(unscanned));
        }
        Ok(self.release(self.layer.stepped()))
    }

    fn end(&mut self, stop: Stop) -> Result<u64, Stop> {
        self.stop = Some(stop.clone());
        Err(stop)
    }

    /// Nothing is ever taken back: what was released is gone.
    fn release(&mut self, upto: u64) -> u64 {
        self.released = self.released.max(upto.min(self.taken));
        self.released
    }

    /// What was found and left, since the last call.
    pub fn warnings(&mut self) -> Vec<Finding> {
        let mut warnings = std::mem::take(&mut self.state.warnings);
        for finding in &mut warnings {
            finding.place = self.place.clone();
        }
        warnings
    }

    /// All that was found and left since the last call, what ended it, and what was not
    /// looked into: of content that is over.
    pub fn report(&mut self, end: Option<Stop>) -> ScanReport {
        let mut findings = self.warnings();
        if let Some(Stop::Found(finding)) = end {
            findings.push(*finding);
        }
        ScanReport {
            holds: !findings.is_empty(),
            half: PairHalf::None,
            findings,
            unscanned: self.unscanned(),
        }
    }

    /// The texts that codings in it stand for, as far as they are short: their values are as
    /// much its sender's to choose as those of plain content.
    pub fn made(&self) -> impl Iterator<Item = &[u8]> {
        self.state.made.texts()
    }

    /// What was not looked into.
    pub fn unscanned(&self) -> Option<Unscanned> {
        self.state.unscanned()
    }
}

/// A form with names and values.
const FORM: &[u8] = b"application/x-www-form-urlencoded";
/// A document.
const JSON: &[u8] = b"application/json";

/// Whether content says to be of a media type.
fn is_of(media_type: &[u8], essence: &[u8]) -> bool {
    let own = media_type
        .split(|byte| *byte == b';')
        .next()
        .unwrap_or_default();
    own.trim_ascii().eq_ignore_ascii_case(essence)
}

/// The codings a `Content-Encoding` names, the one that was applied last first,
/// up to the first that nobody here reads (RFC 9110 8.4).
fn codings(value: &[u8]) -> Declared {
    let mut codings = Vec::new();
    let names = value.split(|byte| *byte == b',');
    for name in names.rev().map(<[u8]>::trim_ascii) {
        codings.push(match name.to_ascii_lowercase().as_slice() {
            b"" | b"identity" => continue,
            b"gzip" | b"x-gzip" => Coding::Gzip,
            b"deflate" => Coding::Deflate,
            b"br" => Coding::Brotli,
            b"zstd" => Coding::Zstd,
            _ => {
                return Declared {
                    codings,
                    has_more: true,
                };
            }
        });
        if codings.len() >= limits::CODINGS_MAX {
            return Declared {
                codings,
                has_more: true,
            };
        }
    }
    Declared {
        codings,
        has_more: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::detector_set::Detectors;
    use crate::finding::UnscannedReason;
    use crate::settings::{ScanSettings, UnscannableAction};

    fn lost(action: UnscannableAction) -> (Result<u64, Stop>, Result<u64, Stop>) {
        let settings = ScanSettings {
            unscannable: action,
            ..ScanSettings::default()
        };
        let rules = Arc::new(Ruleset::new(&Detectors::shipped(), &settings).unwrap());
        let to = ScanDestination {
            host: "a.test",
            port: 443,
        };
        let description = Description {
            place: Place::Content,
            media_type: None,
            content_codings: None,
            length: None,
        };
        let mut stream = rules.stream(&to, &description);
        assert!(stream.push(b"what came before").is_ok());
        stream.state.budget.lost().pretend();
        (stream.push(b" and behind"), stream.finish())
    }

    #[test]
    fn what_a_scan_lost_its_place_in_is_unscannable_and_not_clean() {
        for action in [UnscannableAction::Refuse, UnscannableAction::RefuseBombs] {
            let (pushed, finished) = lost(action);
            for end in [pushed, finished] {
                let Err(Stop::Unscannable(unscanned)) = end else {
                    panic!("{action:?}: {end:?}");
                };
                assert_eq!(unscanned.reason, UnscannedReason::Misplaced);
            }
        }
        // Where all goes on that cannot be scanned, the record says so; until the end nothing
        // goes that was not looked at.
        let (pushed, finished) = lost(UnscannableAction::Record);
        assert_eq!((pushed, finished), (Ok(0), Ok(27)));
    }
}
