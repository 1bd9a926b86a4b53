//! However content is cut, the scan says the same.

use proptest::prelude::*;

use outgate_dlp::{Policy, Unscannable};

use crate::encode::CODINGS;
use crate::stage::{Dice, rules, sample_of, send};

/// Text with some samples in some codings.
fn content(seed: u64) -> Vec<u8> {
    let mut dice = Dice(seed);
    let mut content = Vec::new();
    for _ in 0..4 {
        let length = dice.roll(12_000);
        content.extend(dice.words(length));
        let ids = [
            "github-token",
            "jwt",
            "stripe-key",
            "gcp-api-key",
            "basic-auth",
        ];
        let secret = sample_of(ids[dice.roll(ids.len())], seed);
        let (_, encode) = CODINGS[dice.roll(CODINGS.len())];
        content.extend(encode(&secret));
        content.push(b'\n');
    }
    content
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn splits_change_nothing(seed in 0_u64..1_000_000, lengths in proptest::collection::vec(1_usize..3000, 1..20)) {
        let content = content(seed);
        for policy in [Policy::Tiered, Policy::Monitor] {
            let rules = rules(policy, Unscannable::Record);
            let whole = send(&rules, None, &content, &[content.len()]);
            let cut = send(&rules, None, &content, &lengths);
            prop_assert_eq!(&whole.stop, &cut.stop);
            prop_assert_eq!(&whole.warnings, &cut.warnings);
            prop_assert_eq!(&whole.unscanned, &cut.unscanned);
        }
    }
}

#[test]
fn one_byte_at_a_time_is_the_same() {
    let rules = rules(Policy::Monitor, Unscannable::Record);
    for seed in 0..4 {
        let content = content(seed);
        let whole = send(&rules, None, &content, &[content.len()]);
        let cut = send(&rules, None, &content, &[1]);
        assert_eq!(whole.warnings, cut.warnings);
        assert!(!whole.warnings.is_empty());
    }
}
