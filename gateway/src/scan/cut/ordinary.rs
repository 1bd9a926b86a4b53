//! What ordinary requests say to one host, many of them: never a credential in pieces.

use std::hash::{BuildHasher, RandomState};

use outgate_dlp::KnownNature;

use super::{CutDice, fresh, knowing, refused, requests, set};

/// Requests of one ordinary run of the test of ordinary values, and of a long one.
const ORDINARY: usize = 2_000;
const ORDINARY_LONG: usize = 20_000;

/// A value as ordinary requests have them, in no way a piece of a credential.
fn ordinary(dice: &mut CutDice) -> String {
    const PROSE: [&str; 6] = [
        "Tokens begin with ghp_ or glpat-, see GitHub2 and the 3rd note in v17.2",
        "The function parse_header in src/lib.rs fails on empty input, IPv6 and HTTP/2 too.",
        "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0",
        "git/2.39.2 npm/10.8.2 node/v20.16.0 linux x64 workspaces/false",
        "text/html,application/xhtml+xml;q=0.9,image/avif,*/*;q=0.8",
        "AKIA, sk-ant-api03- and xoxb- are prefixes of keys; none of them is here",
    ];
    let mut hex = |length: usize| -> String {
        let digit = |_| char::from(dice.pick(b"0123456789abcdef"));
        (0..length).map(digit).collect()
    };
    let (long, uuid) = (hex(64), [8, 4, 4, 4, 12].map(&mut hex).join("-"));
    match dice.roll(9) {
        0 => uuid,
        1 => long[..40].to_owned(),
        2 => format!("sha256:{long}"),
        3 => format!("{}.{}.{}", dice.roll(30), dice.roll(30), dice.roll(99)),
        4 => format!(
            "2026-11-{:02}T{:02}:14:55.031Z",
            1 + dice.roll(28),
            dice.roll(24)
        ),
        5 => dice.pick(&PROSE).to_owned(),
        6 => {
            let length = 4 + dice.roll(60);
            format!("{}=", dice.text(length))
        }
        7 => format!(
            "sid={}; theme=dark; _ga=GA1.2.{}",
            dice.text(22),
            dice.roll(1 << 30)
        ),
        _ => format!(
            "{} {} in {}",
            dice.pick(&PROSE),
            dice.text(8),
            dice.pick(&PROSE)
        ),
    }
}

/// What clients say in a day to one host, whatever it is: nothing of it is a credential.
#[test]
fn ordinary_values_make_no_credential_together() {
    let seed = set("OUTGATE_CUT_SEED").unwrap_or_else(|| RandomState::new().hash_one(1));
    let mut dice = CutDice(seed);
    let held = knowing("correct-Horse7battery-Staple91", KnownNature::Sent);
    let scan = fresh(&held.rules);
    let is_long = set("OUTGATE_CUT_DRAWS").is_some();
    let count = if is_long { ORDINARY_LONG } else { ORDINARY };
    let refused = (0..count).find_map(|number| {
        let asked = requests::ordinary(number, || ordinary(&mut dice));
        refused(&scan, &asked).map(|found| format!("{found:?}\n{asked:?}"))
    });
    assert_eq!(refused, None, "seed {seed}");
}
