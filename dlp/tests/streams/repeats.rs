//! Names that come again and again, which are looked at once: what comes between them
//! is looked at all the same.

use outgate_dlp::{ScanPolicy, UnscannableAction};

use crate::encode::plain_base64;
use crate::stage::{Dice, rules, sample_of, send, strict};

/// Names as sources have them, each of them many times.
fn names() -> Vec<Vec<u8>> {
    let all = [
        "getOwnPropertyDescriptors",
        "allowStaleOnFetchRejection",
        "eslint-disable-next-line",
    ];
    let mut names = Vec::new();
    for _ in 0..40 {
        names.extend(all.iter().map(|name| name.as_bytes().to_vec()));
    }
    names
}

/// A key in a run that is as short as those names.
fn coded(seed: u64) -> Vec<u8> {
    plain_base64(&sample_of("aws-access-key-id", seed))
}

#[test]
fn a_credential_among_names_does_not_leave() {
    let mut dice = Dice(5);
    for seed in 0..40 {
        let mut names = names();
        let place = dice.roll(names.len());
        names.insert(place, coded(seed));
        let from: usize = names.iter().take(place).map(|name| name.len() + 2).sum();
        let content = names.join(&b"; "[..]);
        for lengths in [vec![content.len()], vec![1], vec![7, 100, 3], vec![30]] {
            let outcome = send(&strict(), None, &content, &lengths);
            let found = outcome.found().expect("it was found");
            assert_eq!(found.detector, "aws-access-key-id");
            assert!(
                outcome.released <= u64::try_from(from).expect("a place"),
                "{lengths:?}"
            );
        }
    }
}

#[test]
fn one_that_came_before_hides_no_other() {
    let monitor = rules(ScanPolicy::Monitor, UnscannableAction::Record);
    for lengths in [vec![100_000], vec![1], vec![64, 5]] {
        let mut names = names();
        for (place, seed) in [(3, 1), (4, 1), (50, 2), (100, 3), (101, 2)] {
            names.insert(place, coded(seed));
        }
        let outcome = send(&monitor, None, &names.join(&b"; "[..]), &lengths);
        let keys = outcome.warnings.iter();
        let keys = keys.filter(|one| one.detector == "aws-access-key-id");
        assert_eq!(keys.count(), 3, "{lengths:?}");
    }
}
