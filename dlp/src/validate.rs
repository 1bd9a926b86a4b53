//! Offline checks of what a pattern matched: checksums, structures, ranges.
//!
//! Each is a pure function of bytes with a bound on its work. A wrong checksum
//! makes a finding less severe and never clears it, except where the detector
//! says that its form means nothing without the check.

pub(crate) mod aws;
pub(crate) mod base58;
pub(crate) mod base64;
pub(crate) mod bech32;
pub(crate) mod bip39;
pub(crate) mod card;
pub(crate) mod crc;
mod discord;
pub(crate) mod entropy;
pub(crate) mod gitlab;
mod iban;
mod json;
pub(crate) mod jwt;
pub(crate) mod macaroon;
pub(crate) mod placeholder;
pub(crate) mod random;
mod userpass;

use crate::detector::{Detector, Failure, Scope, Tier, Validator};
use crate::finding::Checked;
use crate::shipped;

/// What is checked.
#[derive(Clone, Copy)]
pub(crate) struct Subject<'a> {
    /// The credential in it.
    pub(crate) secret: &'a [u8],
}

/// What a check says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CheckOutcome {
    /// How the checksum or the structure came out.
    Checked(Checked),
    /// It is a placeholder of documentation, or a form that means nothing
    /// without its check: no credential.
    Placeholder,
    /// The credential names where it belongs.
    Claims {
        /// How the structure came out.
        checked: Checked,
        /// The hosts, as host patterns.
        hosts: Vec<String>,
    },
}

impl Detector {
    /// Checks what was matched.
    pub(crate) fn check(&self, subject: &Subject<'_>) -> CheckOutcome {
        if self.is_label() && shipped::has_own_form(subject.secret) {
            return CheckOutcome::Placeholder;
        }
        let checked = check(self.validator, subject.secret);
        if checked == Checked::Failed && self.failure == Failure::Clear {
            return CheckOutcome::Placeholder;
        }
        if self.scope == Scope::Claims {
            let hosts = jwt::hosts(subject.secret);
            return CheckOutcome::Claims { checked, hosts };
        }
        CheckOutcome::Checked(checked)
    }
}

impl Detector {
    /// Whether it knows nothing but a label beside the credential.
    fn is_label(&self) -> bool {
        self.tier == Tier::Context && self.scope == Scope::User
    }
}

/// What a validator says about a credential.
fn check(validator: Validator, secret: &[u8]) -> Checked {
    let holds = match validator {
        Validator::None | Validator::Entropy | Validator::CrcTailHex => return Checked::None,
        Validator::GitlabRoutable => return gitlab::check(secret),
        Validator::Placeholder => {
            // What is no placeholder is not proven to be a credential.
            let known = placeholder::is(secret) || placeholder::is_words(secret);
            return if known {
                Checked::Failed
            } else {
                Checked::None
            };
        }
        Validator::Crc32Base62 => crc::is_base62_tail(secret),
        Validator::Bech32 => bech32::is(secret),
        Validator::Base58Check => base58::is_checked(secret),
        Validator::LuhnBin => card::is(secret),
        Validator::Mod97 => iban::is(secret),
        Validator::Bip39 => bip39::is(secret),
        Validator::Jwt => jwt::is(secret),
        Validator::AwsKeyId => aws::is(secret),
        Validator::MacaroonV2 => macaroon::is(secret),
        Validator::Base64Json => json::is(secret),
        Validator::Base64UserPass => userpass::is(secret),
        Validator::DiscordSnowflake => discord::is(secret),
        Validator::Random => random::is(secret) && !placeholder::is(secret),
    };
    if holds {
        Checked::Passed
    } else {
        Checked::Failed
    }
}
