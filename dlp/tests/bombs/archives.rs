//! Archives that want to be read again and again.

use crate::Attack;
use crate::pack::{deflated, directory, entry, quoted, stored};

/// As many entries as the directory of an archive can name.
const ENTRIES: usize = 65_535;

pub(crate) fn all() -> Vec<Attack> {
    type Pack = fn(&[u8]) -> Vec<u8>;
    let zeros = vec![0; 100 << 20];
    let (small, large, larger) = ([0; 64], vec![0; 1 << 20], vec![0; 16 << 20]);
    let nested = |pack: Pack| (0..40).fold(large.clone(), |all, _| pack(&all));
    let tree = |pack: Pack, seed: &[u8], levels: usize| {
        (0..levels).fold(seed.to_vec(), |all, _| pack(&all).repeat(8))
    };
    let overlapping: Vec<Vec<u8>> = (0..20_000)
        .rev()
        .map(|rest| entry(0, rest * 31, b""))
        .collect();
    [
        ("zip, deflated", deflated(&zeros)),
        ("zip, stored", stored(&larger)),
        ("zip in zip, stored", nested(stored)),
        ("zip in zip, deflated", nested(deflated)),
        ("zips in zips, stored", tree(stored, &small, 5)),
        ("zips in zips, deflated", tree(deflated, &large, 6)),
        ("zip of many entries", deflated(&large).repeat(2000)),
        ("zip of 65,535 entries", deflated(b"a").repeat(ENTRIES)),
        ("zip of many empty entries", stored(b"").repeat(30_000)),
        ("zip of entries over each other", overlapping.concat()),
        ("zip of one entry, 65,535 times", directory(&large)),
        (
            "zip of entries without a length",
            entry(0, 0, b"").repeat(30_000),
        ),
        ("zip of one stream for all", quoted(20_000, &large)),
        ("zip of one stream for a few", quoted(7, &zeros)),
    ]
    .map(|(name, content)| Attack::bare(name, content))
    .into()
}
