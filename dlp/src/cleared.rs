//! Weaker forms towards stronger ones: what a label or a shared prefix makes suspicious is
//! no finding where a stronger form recognises all of it and lets it go where it goes.

use crate::detector::{Scope, Tier, Validator};
use crate::index::{LiteralMeaning, Transform};
use crate::known::KnownNature;
use crate::limits;
use crate::scan::{Scan, Spot};
use crate::span;
use crate::validate::base64;

/// What stands as the password where the name of a Basic pair is the credential.
const NO_PASSWORD: &[u8] = b"x-oauth-basic";

impl Scan<'_> {
    /// Whether what a weaker rule found is recognised as a whole, and may go where it is
    /// going: of Basic credentials (RFC 7617) the password is asked about.
    pub(crate) fn is_cleared(&mut self, rule: usize, secret: &[u8], spot: &Spot<'_>) -> bool {
        let Some(known) = self.rules.rule(rule) else {
            self.state.budget.lost().set();
            return false;
        };
        let detector = &known.detector;
        if detector.tier != Tier::Context || detector.scope != Scope::User {
            return false;
        }
        if detector.validator != Validator::Base64UserPass {
            return self.is_settled(secret, spot);
        }
        let pair = base64::decode(secret).unwrap_or_default();
        let Some(colon) = pair.iter().position(|byte| *byte == b':') else {
            return false;
        };
        let (name, password) = pair.split_at(colon);
        let password = span::from(password, 1);
        let shown = if password == NO_PASSWORD {
            name
        } else {
            password
        };
        self.is_held(shown, spot) || self.is_settled(shown, spot)
    }

    /// Whether a value is the user's own, and may go where it is going.
    fn is_held(&self, value: &[u8], spot: &Spot<'_>) -> bool {
        let kind = self.kind(spot.trail, spot.transform.coding(), spot.before);
        let own = self.rules.known().and_then(|known| known.identify(value));
        own.is_some_and(|own| {
            own.nature == KnownNature::Sent
                && self.rules.lets(own, self.host)
                && self.rules.takes(own, self.host, kind)
        })
    }

    /// Whether a stronger rule recognises all of a text, and lets it go where it is going.
    fn is_settled(&mut self, text: &[u8], spot: &Spot<'_>) -> bool {
        let rules = self.rules;
        let mut stronger: Vec<(usize, usize)> = Vec::new();
        let mut hit = |literal: usize, place: usize| {
            for hit in rules.hits(literal) {
                if let LiteralMeaning::Rule {
                    rule,
                    transform: Transform::None,
                } = *hit
                    && stronger.len() < limits::STRONGER_MAX
                {
                    stronger.push((rule, place));
                }
            }
        };
        rules.prefilter().scan_all(text, &mut hit);
        stronger.iter().any(|(rule, at)| {
            self.state.budget.work(limits::CONFIRM_BYTES_MIN)
                && self.settles(*rule, (text, *at), spot)
        })
    }

    fn settles(&mut self, rule: usize, (text, at): (&[u8], usize), spot: &Spot<'_>) -> bool {
        let rules = self.rules;
        let Some(known) = rules.rule(rule) else {
            self.state.budget.lost().set();
            return false;
        };
        let is_stronger = known.detector.tier > Tier::Context;
        is_stronger && known.is_whole(text, at) && self.lets(known, text, spot)
    }
}
