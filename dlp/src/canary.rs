//! Canaries: credentials that were never issued, with right checksums, planted
//! where a thief looks. Who sends one has read what it had no reason to read.
//!
//! Pure: random bytes in, canaries out. Names and places differ from run to run,
//! so that no list of them helps. It must not know where the run's private view
//! lies or how its environment is made.

use crate::detector_sample::{SampleDice, roll_out};
use crate::known::KnownBuilder;
use crate::limits;
use crate::secret::SecretBytes;

/// Names of variables that could hold a token of the code host. No program that
/// we know reads one of them: what only a thief takes breaks nobody's work.
const CODE_NAMES: [&str; 10] = [
    "GITHUB_BACKUP_TOKEN",
    "GITHUB_DEPLOY_TOKEN",
    "GITHUB_RELEASE_TOKEN",
    "GITHUB_BOT_TOKEN",
    "GITHUB_MIRROR_PAT",
    "GH_BACKUP_PAT",
    "GH_BOT_TOKEN",
    "OLD_GITHUB_TOKEN",
    "CI_GITHUB_PAT",
    "SYNC_GITHUB_TOKEN",
];
/// Names of variables that could hold a token nobody can tell the issuer of.
const PLAIN_NAMES: [&str; 10] = [
    "BACKUP_API_TOKEN",
    "LEGACY_API_KEY",
    "STAGING_ADMIN_TOKEN",
    "OPS_API_KEY",
    "BILLING_SERVICE_TOKEN",
    "INTERNAL_SYNC_SECRET",
    "REPORTS_WEBHOOK_SECRET",
    "PARTNER_API_SECRET",
    "OLD_SESSION_SIGNING_KEY",
    "MIRROR_DEPLOY_KEY",
];
/// Files of a cloud's key pairs, below the run's private directory: copies that
/// no program reads.
const CLOUD_FILES: [&str; 5] = [
    ".aws/credentials.bak",
    ".aws/credentials.old",
    ".config/aws/credentials.save",
    ".config/deploy/aws.ini",
    "backup/aws-credentials.ini",
];
/// Files of registry tokens, below the run's private directory.
const PACKAGE_FILES: [&str; 3] = [".npmrc.old", ".npmrc.bak", ".config/npm/npmrc.save"];
/// Profiles of a file of key pairs.
const PROFILES: [&str; 6] = ["default", "prod", "production", "deploy", "ci", "backup"];

/// Where a canary goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Plant {
    /// A variable of the command's environment, with this name.
    Variable(String),
    /// A file of the run's private view, below its private directory.
    File(String),
}

/// One canary.
#[derive(Debug)]
pub struct Canary {
    /// What it looks like: the id of the detector that finds its kind.
    pub kind: &'static str,
    /// Where it goes.
    pub plant: Plant,
    /// What the variable or the file holds.
    pub content: SecretBytes,
    /// The values in it that nobody may send.
    pub values: Vec<SecretBytes>,
}

/// Makes the canaries of a run.
///
/// `random` is fresh for every run. `is_taken` says whether a variable or a file
/// is there already: what the user has is never hidden or replaced.
pub fn canaries(random: [u8; 32], is_taken: &dyn Fn(&Plant) -> bool) -> Vec<Canary> {
    let mut dice = SampleDice::keyed(random);
    let made = [
        code_token(&mut dice, is_taken),
        plain_token(&mut dice, is_taken),
        key_pair(&mut dice, is_taken),
        package_token(&mut dice, is_taken),
    ];
    made.into_iter().flatten().collect()
}

/// The canaries of a run that can be looked for: made anew from the next bytes where chance
/// made one that is too plain. The same bytes and answers give the same canaries, so that
/// who plants them and who looks for them need only agree on those.
pub fn planted(random: [u8; 32], is_taken: &dyn Fn(&Plant) -> bool) -> Vec<Canary> {
    let mut made = Vec::new();
    for try_number in 0..limits::CANARIES_TRIES {
        let mut bytes = random;
        let [first, ..] = &mut bytes;
        *first = first.wrapping_add(try_number);
        made = canaries(bytes, is_taken);
        let is_sound = |canary: &Canary| {
            let mut values = canary.values.iter();
            values.all(|value| KnownBuilder::check(value).is_ok())
        };
        if made.iter().all(is_sound) {
            break;
        }
    }
    made
}

/// One of some places that is free, beginning with a random one.
fn free(
    dice: &mut SampleDice,
    names: &[&str],
    plant: fn(String) -> Plant,
    is_taken: &dyn Fn(&Plant) -> bool,
) -> Option<Plant> {
    let first = dice.below(names.len());
    let mut turned = names.iter().cycle().skip(first).take(names.len());
    turned.find_map(|name| {
        let place = plant((*name).to_owned());
        (!is_taken(&place)).then_some(place)
    })
}

fn variable(kind: &'static str, plant: Plant, value: Vec<u8>) -> Canary {
    Canary {
        kind,
        plant,
        content: SecretBytes::new(value.clone()),
        values: vec![SecretBytes::new(value)],
    }
}

fn code_token(dice: &mut SampleDice, is_taken: &dyn Fn(&Plant) -> bool) -> Option<Canary> {
    let plant = free(dice, &CODE_NAMES, Plant::Variable, is_taken)?;
    Some(variable(
        "github-token",
        plant,
        roll_out("ghp_{b62:30}{crc62}", dice),
    ))
}

fn plain_token(dice: &mut SampleDice, is_taken: &dyn Fn(&Plant) -> bool) -> Option<Canary> {
    let plant = free(dice, &PLAIN_NAMES, Plant::Variable, is_taken)?;
    let template = ["{hex:40}", "{b62:32}", "{b64u:43}"]
        .get(dice.below(3))
        .copied()?;
    Some(variable(
        "secret-assignment",
        plant,
        roll_out(template, dice),
    ))
}

fn key_pair(dice: &mut SampleDice, is_taken: &dyn Fn(&Plant) -> bool) -> Option<Canary> {
    let plant = free(dice, &CLOUD_FILES, Plant::File, is_taken)?;
    let id = roll_out("AKIA{akid}", dice);
    let key = roll_out("{b64:40}", dice);
    let profile = PROFILES.get(dice.below(PROFILES.len())).copied()?;
    let content = [
        b"[",
        profile.as_bytes(),
        b"]\naws_access_key_id = ",
        &id[..],
        b"\naws_secret_access_key = ",
        &key[..],
        b"\n",
    ]
    .concat();
    Some(Canary {
        kind: "aws-access-key-id",
        plant,
        content: SecretBytes::new(content),
        values: vec![SecretBytes::new(id), SecretBytes::new(key)],
    })
}

fn package_token(dice: &mut SampleDice, is_taken: &dyn Fn(&Plant) -> bool) -> Option<Canary> {
    let plant = free(dice, &PACKAGE_FILES, Plant::File, is_taken)?;
    let token = roll_out("npm_{b62:30}{crc62}", dice);
    let host = roll_out("packages.{lower:6}.internal", dice);
    let content = [b"//", &host[..], b"/:_authToken=", &token[..], b"\n"].concat();
    Some(Canary {
        kind: "npm-token",
        plant,
        content: SecretBytes::new(content),
        values: vec![SecretBytes::new(token)],
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{Canary, Plant, canaries};
    use crate::detector::Tier;
    use crate::validate::{aws, crc};
    use crate::{KnownBuilder, KnownNature, KnownValue};

    fn free(_: &Plant) -> bool {
        false
    }

    #[test]
    fn canaries_stand_up_to_a_look() {
        for seed in 0..50 {
            for canary in canaries([seed; 32], &free) {
                let first = canary.values[0].expose();
                match canary.kind {
                    "github-token" | "npm-token" => assert!(crc::is_base62_tail(first)),
                    "aws-access-key-id" => assert!(aws::is(first)),
                    "secret-assignment" => assert!(first.len() >= 32),
                    other => unreachable!("{other}"),
                }
                for value in &canary.values {
                    let content = canary.content.expose();
                    let held = content
                        .windows(value.expose().len())
                        .any(|part| part == value.expose());
                    assert!(held, "{} in its place", canary.kind);
                }
            }
        }
    }

    #[test]
    fn every_run_has_its_own() {
        let all: Vec<Canary> = (0..40)
            .flat_map(|seed| canaries([seed; 32], &free))
            .collect();
        assert_eq!(all.len(), 160);
        let values: BTreeSet<&[u8]> = all.iter().map(|canary| canary.values[0].expose()).collect();
        assert_eq!(values.len(), 160);
        let places: BTreeSet<String> = all
            .iter()
            .map(|canary| format!("{:?}", canary.plant))
            .collect();
        assert!(places.len() > 20, "{places:?}");
        let again = canaries([3; 32], &free);
        assert_eq!(
            again[0].content.expose(),
            canaries([3; 32], &free)[0].content.expose()
        );
    }

    #[test]
    fn what_the_user_has_is_left_alone() {
        for seed in 0..50 {
            let is_taken = |plant: &Plant| match plant {
                Plant::Variable(name) => name != "GH_BOT_TOKEN",
                Plant::File(_) => true,
            };
            let made = canaries([seed; 32], &is_taken);
            assert_eq!(made.len(), 1);
            assert_eq!(made[0].plant, Plant::Variable("GH_BOT_TOKEN".to_owned()));
        }
        assert!(canaries([0; 32], &|_| true).is_empty());
    }

    #[test]
    fn canaries_can_be_known_values() {
        let mut builder = KnownBuilder::new([1; 32]);
        for canary in canaries([5; 32], &free) {
            for value in &canary.values {
                let about = KnownValue {
                    label: canary.kind.to_owned(),
                    others: Vec::new(),
                    issuers: Vec::new(),
                    tier: Tier::Strong,
                    nature: KnownNature::Canary,
                };
                assert_eq!(builder.add(value, about), Ok(()), "{}", canary.kind);
            }
        }
        assert_eq!(builder.build().len(), 5);
    }
}
