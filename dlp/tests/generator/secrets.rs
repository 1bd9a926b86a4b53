//! What is sent: a sample of every detector that refuses by itself, values that the user keeps,
//! and canaries.

use std::sync::Arc;

use outgate_dlp::{
    Action, Checked, Description, Detectors, KnownBuilder, KnownNature, KnownValue, Place, Ruleset,
    ScanSettings, SecretBytes, Stop, Tier, UnscannableAction, canaries, sample,
};

use crate::dice::Dice;
use crate::send::ELSEWHERE;

/// Longest sample that is drawn, in bytes: longer ones are keys in files, which `streams` has.
const BYTES_MAX: usize = 400;

/// Values and canaries of each run.
const KNOWN: usize = 24;

/// Samples of a detector that are tried until one is refused as it stands.
const TRIES: u64 = 4;

/// A secret, and what is known of it.
#[derive(Clone)]
pub(crate) struct Secret {
    /// The detector, or what kind of known value it is.
    pub(crate) name: String,
    pub(crate) bytes: Vec<u8>,
    /// A checksum holds, or somebody named the value.
    pub(crate) is_confirmed: bool,
    pub(crate) tier: Tier,
}

/// The secrets of one run, and the rules that know them.
pub(crate) struct Secrets {
    pub(crate) rules: Arc<Ruleset>,
    /// One list for each kind, so that each is drawn as often.
    pub(crate) kinds: Vec<Vec<Secret>>,
}

impl Secrets {
    pub(crate) fn new(dice: &mut Dice) -> Self {
        // As a policy has it that says nothing.
        let settings = ScanSettings {
            unscannable: UnscannableAction::RefuseBombs,
            ..ScanSettings::default()
        };
        let ruleset = || Ruleset::new(&Detectors::shipped(), &settings);
        let plain = Arc::new(ruleset().expect("the shipped detectors"));
        let mut tokens = Vec::new();
        let mut others = Vec::new();
        for (id, bytes, checked, tier) in samples(&plain, dice) {
            let is_confirmed = checked == Checked::Passed;
            let secret = Secret {
                name: id,
                bytes,
                is_confirmed,
                tier,
            };
            if is_confirmed {
                tokens.push(secret);
            } else {
                others.push(secret);
            }
        }
        let mut builder = KnownBuilder::new([7; 32]);
        let known = values(dice);
        let planted = planted(dice);
        let mut add = |values: Vec<Vec<u8>>, name: &str, nature: KnownNature| -> Vec<Secret> {
            let values = values.into_iter();
            let secret = values.map(|bytes| {
                let about = KnownValue {
                    label: "$SERVICE_TOKEN".to_owned(),
                    others: Vec::new(),
                    issuers: Vec::new(),
                    tier: Tier::Strong,
                    nature,
                };
                let added = builder.add(&SecretBytes::new(bytes.clone()), about);
                added.expect("a value that can be looked for");
                Secret {
                    name: name.to_owned(),
                    bytes,
                    is_confirmed: true,
                    tier: Tier::Strong,
                }
            });
            secret.collect()
        };
        let known = add(known, "known value", KnownNature::Sent);
        let planted = add(planted, "canary", KnownNature::Canary);
        let rules = ruleset().expect("the shipped detectors");
        let rules = Arc::new(rules.with_known(Arc::new(builder.build()), Vec::new()));
        Self {
            rules,
            kinds: vec![tokens, others, known, planted],
        }
    }
}

/// A sample of each detector that is refused as it stands.
fn samples(rules: &Arc<Ruleset>, dice: &mut Dice) -> Vec<(String, Vec<u8>, Checked, Tier)> {
    let mut all = Vec::new();
    let detectors = Detectors::shipped();
    for detector in detectors.iter() {
        for _ in 0..TRIES {
            let template = &detector.samples[dice.roll(detector.samples.len())];
            let bytes = sample(template, dice.next());
            if bytes.len() > BYTES_MAX {
                continue;
            }
            let mut stream = rules.stream(&ELSEWHERE, &description());
            let stop = stream.push(&bytes).and_then(|_| stream.finish());
            if let Err(Stop::Found(found)) = stop
                && found.action == Action::Block
                && found.detector == detector.id
            {
                all.push((detector.id.to_string(), bytes, found.checked, found.tier));
                break;
            }
        }
    }
    assert!(all.len() > 100, "{} detectors refuse samples", all.len());
    all
}

/// Content of which nothing is said.
pub(crate) fn description() -> Description<'static> {
    Description {
        place: Place::Content,
        media_type: None,
        content_codings: None,
        length: None,
    }
}

/// Values as variables of an environment hold them.
fn values(dice: &mut Dice) -> Vec<Vec<u8>> {
    let value = |number| {
        let mut value = dice.text(20 + number % 25);
        let sign = dice.pick(&["-", "_", "+", "/", "!", "k", "."]);
        value.replace_range(9..10, sign);
        value.into_bytes()
    };
    (0..KNOWN).map(value).collect()
}

/// The canaries of a few runs.
fn planted(dice: &mut Dice) -> Vec<Vec<u8>> {
    let mut values = Vec::new();
    while values.len() < KNOWN {
        let mut random = [0; 32];
        for byte in &mut random {
            *byte = u8::try_from(dice.roll(256)).expect("a byte");
        }
        let made = canaries(random, &|_| false);
        let all = made.iter().flat_map(|canary| &canary.values);
        let sound = all.filter(|value| KnownBuilder::check(value).is_ok());
        values.extend(sound.map(|value| value.expose().to_vec()));
    }
    values.retain(|value| value.len() <= BYTES_MAX);
    values.sort();
    values.dedup();
    values
}
