//! Rules, destinations and streams for the tests of this folder.

use std::sync::Arc;

use outgate_dlp::{
    Anchor, Description, Detector, DetectorMode, Detectors, Finding, Place, Ruleset,
    ScanDestination, ScanPolicy, ScanSettings, Stop, Stream, UnscannableAction, Unscanned, sample,
};

/// A host that issued nothing.
pub(crate) const ELSEWHERE: ScanDestination<'static> = ScanDestination {
    host: "elsewhere.test",
    port: 443,
};

/// The shipped rules under a policy.
pub(crate) fn rules(policy: ScanPolicy, unscannable: UnscannableAction) -> Arc<Ruleset> {
    let detectors = Detectors::shipped();
    let settings = ScanSettings {
        policy,
        unscannable,
        ..ScanSettings::default()
    };
    Arc::new(Ruleset::new(&detectors, &settings).expect("the shipped detectors"))
}

/// The shipped rules, and those without literals as well.
pub(crate) fn all_rules() -> Arc<Ruleset> {
    let detectors = Detectors::shipped();
    let scans = detectors.iter().filter(|one| one.anchor == Anchor::Scan);
    let settings = ScanSettings {
        modes: scans
            .map(|one| (one.id.to_string(), DetectorMode::Block))
            .collect(),
        policy: ScanPolicy::Strict,
        ..ScanSettings::default()
    };
    Arc::new(Ruleset::new(&detectors, &settings).expect("the shipped detectors"))
}

/// The shipped rules: everything that is found does not leave.
pub(crate) fn strict() -> Arc<Ruleset> {
    rules(ScanPolicy::Strict, UnscannableAction::Refuse)
}

/// A sample of a detector.
pub(crate) fn sample_of(id: &str, seed: u64) -> Vec<u8> {
    let detectors = Detectors::shipped();
    let detector: &Detector = detectors
        .iter()
        .find(|one| one.id == id)
        .expect("a detector");
    sample(&detector.samples[0], seed)
}

/// A stream of content towards a host that issued nothing.
pub(crate) fn stream(rules: &Arc<Ruleset>, codings: Option<&str>) -> Stream {
    rules.stream(
        &ELSEWHERE,
        &Description {
            place: Place::Content,
            media_type: None,
            content_codings: codings.map(str::as_bytes),
            length: None,
        },
    )
}

/// What became of some content.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) stop: Option<Stop>,
    pub(crate) released: u64,
    pub(crate) warnings: Vec<Finding>,
    pub(crate) unscanned: Option<Unscanned>,
}

impl Outcome {
    /// What stopped it.
    pub(crate) fn found(&self) -> Option<&Finding> {
        match &self.stop {
            Some(Stop::Found(finding)) => Some(finding),
            _ => None,
        }
    }
}

/// Sends content in pieces of the given lengths, over and over.
pub(crate) fn send(
    rules: &Arc<Ruleset>,
    codings: Option<&str>,
    content: &[u8],
    lengths: &[usize],
) -> Outcome {
    let mut stream = stream(rules, codings);
    let mut released = 0;
    let mut rest = content;
    let mut turns = lengths.iter().copied().cycle();
    let stop = loop {
        let length = turns
            .next()
            .unwrap_or(content.len())
            .clamp(1, rest.len().max(1));
        let (now, later) = rest.split_at(length.min(rest.len()));
        let result = if now.is_empty() {
            stream.finish()
        } else {
            stream.push(now)
        };
        match result {
            Ok(upto) => {
                assert!(upto >= released, "nothing is taken back");
                released = upto;
            }
            Err(stop) => break Some(stop),
        }
        if now.is_empty() {
            break None;
        }
        rest = later;
    };
    if let Some(stop) = &stop {
        assert_eq!(stream.push(b"more").as_ref(), Err(stop), "a stop is final");
        assert_eq!(stream.finish().as_ref(), Err(stop), "a stop is final");
    } else {
        let all = u64::try_from(content.len()).expect("a length");
        assert_eq!(released, all, "what is not stopped leaves");
    }
    Outcome {
        stop,
        released,
        warnings: stream.warnings(),
        unscanned: stream.unscanned(),
    }
}

/// Numbers that look random and are the same every time.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn roll(&mut self, below: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).expect("31 bits") % below
    }

    pub(crate) fn lengths(&mut self, most: usize) -> Vec<usize> {
        (0..64).map(|_| 1 + self.roll(most)).collect()
    }

    /// A byte below a limit.
    pub(crate) fn byte(&mut self, below: usize) -> u8 {
        u8::try_from(self.roll(below)).expect("a byte")
    }

    /// So many bytes of any value.
    pub(crate) fn bytes(&mut self, length: usize) -> Vec<u8> {
        (0..length).map(|_| self.byte(256)).collect()
    }

    /// Words, about so many bytes.
    pub(crate) fn words(&mut self, bytes: usize) -> Vec<u8> {
        const WORDS: [&str; 12] = [
            "the", "request", "of", "a", "client", "is", "answered", "by", "one", "server", "in",
            "time,",
        ];
        let mut text = Vec::new();
        while text.len() < bytes {
            text.extend_from_slice(WORDS[self.roll(WORDS.len())].as_bytes());
            text.push(b' ');
        }
        text
    }
}
