//! A detector of the user's own, from the few things that a policy says of one:
//! what it is called, its pattern, the literals in it and who issues it. Decides
//! how it is searched for, and says what is wrong with it in words for its author.

use std::borrow::Cow;

use regex_syntax::hir::literal::{ExtractKind, Extractor};
use regex_syntax::hir::{Hir, HirKind};

use crate::confirm;
use crate::detector::{Anchor, Boundary, Detector, Failure, Scope, Tenants, Text, Tier, Validator};
use crate::detector_shape::{is_id, is_issuer, lengths, parse};
use crate::limits::{INSIDE_BYTES_MAX, LITERAL_BYTES_MAX};

/// Shortest literal of a user's own detector, in bytes: shorter ones are in
/// every text, and each is a search of its own.
const LITERAL_BYTES_MIN: usize = 3;
/// Most literals that are taken from a pattern.
const LITERALS_MAX: usize = 64;

/// What a policy says of a detector of the user's own.
#[derive(Debug, Clone, Copy)]
pub struct OwnDetector<'a> {
    /// Its id.
    pub id: &'a str,
    /// What it finds, in words.
    pub name: &'a str,
    /// Texts of which one is in every match; none where the pattern begins with them.
    pub literals: &'a [String],
    /// The form, in the syntax of the `regex` crate over bytes, without Unicode.
    pub pattern: &'a str,
    /// Host patterns of those who issue it.
    pub issuers: &'a [String],
    /// Whose content these keep.
    pub tenants: Tenants,
}

impl Detector {
    /// A detector of the user's own: what it finds does not leave but to its
    /// issuers, and nothing has to stand around it.
    ///
    /// # Errors
    /// What is wrong with it, for its author.
    pub fn own(own: &OwnDetector<'_>) -> Result<Self, String> {
        if !is_id(own.id) {
            return Err("an id has lower-case letters, digits and single hyphens".to_owned());
        }
        let (min, max) = lengths(own.pattern)?;
        let (literals, anchor) = literals(own, &parse(own.pattern)?)?;
        if anchor == Anchor::Inside && max > INSIDE_BYTES_MAX {
            return Err(format!(
                "matches have up to {max} bytes; at most {INSIDE_BYTES_MAX} where the literal is \
                 not their beginning"
            ));
        }
        if let Some(issuer) = own.issuers.iter().find(|issuer| !is_issuer(issuer)) {
            return Err(format!(
                "the issuer `{issuer}` is no lower-case host; `*.example.org` is every host below"
            ));
        }
        if own.tenants == Tenants::Many && own.issuers.is_empty() {
            return Err("`tenants = \"many\"` is said of `issuers`, and there are none".to_owned());
        }
        if confirm::compile(own.pattern).is_none() {
            return Err(
                "the pattern takes too much memory; make its repetitions shorter".to_owned(),
            );
        }
        let text = |text: &str| -> Text { Cow::Owned(text.to_owned()) };
        Ok(Self {
            id: text(own.id),
            name: text(own.name),
            tier: Tier::Strong,
            cost: Cow::Borrowed("Is what its description says."),
            reference: Cow::Borrowed(""),
            confirmed: true,
            literals: literals.into_iter().map(Cow::Owned).collect(),
            anchor,
            pattern: text(own.pattern),
            max,
            min,
            boundary: Boundary::None,
            validator: Validator::None,
            failure: Failure::Lower,
            min_entropy: 0.0,
            scope: if own.issuers.is_empty() {
                Scope::User
            } else {
                Scope::Issuers
            },
            issuers: own.issuers.iter().map(|issuer| text(issuer)).collect(),
            tenant_hosts: Cow::Borrowed(&[]),
            except: Cow::Borrowed(&[]),
            routed: Cow::Borrowed(&[]),
            harmless: Cow::Borrowed(""),
            tenants: own.tenants,
            forms: Cow::Borrowed(&[]),
            documents: Cow::Borrowed(&[]),
            places: Cow::Borrowed(&[]),
            secret: Cow::Borrowed(""),
            unplaced: Cow::Borrowed(""),
            samples: Cow::Borrowed(&[]),
            near_misses: Cow::Borrowed(&[]),
        })
    }
}

/// The literals of a detector, and where they stand in its matches.
fn literals(own: &OwnDetector<'_>, shape: &Hir) -> Result<(Vec<String>, Anchor), String> {
    let first = beginnings(shape);
    if own.literals.is_empty() {
        return match first {
            Some(first) => Ok((first, Anchor::Start)),
            None => Err(format!(
                "no literal: the pattern begins with no fixed text of {LITERAL_BYTES_MIN} bytes or \
                 more, so name one that is in every match with `literals = [\"…\"]`"
            )),
        };
    }
    let fits =
        |literal: &&String| !(LITERAL_BYTES_MIN..=LITERAL_BYTES_MAX).contains(&literal.len());
    if let Some(literal) = own.literals.iter().find(fits) {
        return Err(format!(
            "the literal `{literal}` has {} bytes, not {LITERAL_BYTES_MIN} to {LITERAL_BYTES_MAX}",
            literal.len()
        ));
    }
    if let Some(literal) = own.literals.iter().find(|literal| !spells(shape, literal)) {
        return Err(format!(
            "the literal `{literal}` does not stand in the pattern"
        ));
    }
    let begins = |text: &String| own.literals.iter().any(|literal| text.starts_with(literal));
    let is_first = first.is_some_and(|first| first.iter().all(begins));
    let anchor = if is_first {
        Anchor::Start
    } else {
        Anchor::Inside
    };
    Ok((own.literals.to_vec(), anchor))
}

/// The fixed texts with which every match begins; nothing where some begin with
/// anything, or too many there are.
fn beginnings(shape: &Hir) -> Option<Vec<String>> {
    let mut extractor = Extractor::new();
    extractor
        .kind(ExtractKind::Prefix)
        .limit_class(4)
        .limit_literal_len(LITERAL_BYTES_MAX)
        .limit_total(LITERALS_MAX);
    let found = extractor.extract(shape);
    let found = found.literals()?;
    let text = |bytes: &[u8]| {
        let text = std::str::from_utf8(bytes).ok()?;
        (text.len() >= LITERAL_BYTES_MIN).then(|| text.to_owned())
    };
    let mut texts = found
        .iter()
        .map(|literal| text(literal.as_bytes()))
        .collect::<Option<Vec<String>>>()?;
    texts.sort_unstable();
    texts.dedup();
    (!texts.is_empty() && texts.len() <= LITERALS_MAX).then_some(texts)
}

/// Whether a text stands in the pattern in one piece. The parser bounds the depth.
fn spells(shape: &Hir, text: &str) -> bool {
    match shape.kind() {
        HirKind::Literal(literal) => {
            let mut windows = literal.0.windows(text.len());
            windows.any(|window| window == text.as_bytes())
        }
        HirKind::Repetition(repeated) => spells(&repeated.sub, text),
        HirKind::Capture(group) => spells(&group.sub, text),
        HirKind::Concat(list) | HirKind::Alternation(list) => {
            list.iter().any(|part| spells(part, text))
        }
        HirKind::Empty | HirKind::Class(_) | HirKind::Look(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(pattern: &str, literals: &[&str], issuers: &[&str]) -> Result<Detector, String> {
        let texts = |list: &[&str]| list.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
        Detector::own(&OwnDetector {
            id: "mycorp-token",
            name: "token of my corp",
            literals: &texts(literals),
            pattern,
            issuers: &texts(issuers),
            tenants: Tenants::One,
        })
    }

    #[test]
    fn literals_are_taken_from_the_pattern_or_checked_against_it() {
        let alone = own("mycorp_[0-9A-Za-z]{32}", &[], &[]).expect("a detector");
        assert_eq!((alone.anchor, alone.scope), (Anchor::Start, Scope::User));
        assert_eq!(alone.literals.as_ref(), ["mycorp_"]);
        let two = own("(?:dev|prod)_[0-9a-f]{16}", &[], &["*.corp.example"]).expect("a detector");
        assert_eq!(two.literals.as_ref(), ["dev_", "prod_"]);
        assert_eq!(two.scope, Scope::Issuers);
        let inside = own("[a-z]{4}-mycorp-[0-9]{8}", &["-mycorp-"], &[]).expect("a detector");
        assert_eq!(inside.anchor, Anchor::Inside);
        let first = own("mycorp_[0-9]{8}", &["mycorp_"], &[]).expect("a detector");
        assert_eq!(first.anchor, Anchor::Start);
    }

    #[test]
    fn what_is_no_detector_is_refused_with_the_reason() {
        for (pattern, literals, issuers, says) in [
            ("mycorp_([0-9]{8}", &[][..], &[][..], "byte 7"),
            ("mycorp_[0-9]+", &[], &[], "no longest match"),
            ("mycorp_[0-9]{8,17000}", &[], &[], "16384"),
            ("[0-9a-f]{40}", &[], &[], "no literal"),
            ("a[0-9]{40}", &[], &[], "no literal"),
            ("mycorp_[0-9]{8}", &["my"], &[], "2 bytes"),
            ("mycorp_[0-9]{8}", &["other_"], &[], "does not stand"),
            ("mycorp_[0-9]{8}", &[], &["*"], "issuer `*`"),
            ("mycorp_[0-9]{8}", &[], &["*.com"], "issuer `*.com`"),
            ("[a-z]{4000}mycorp_", &["mycorp_"], &[], "at most 2048"),
        ] {
            let told = own(pattern, literals, issuers).expect_err(pattern);
            assert!(told.contains(says), "{pattern}: {told}");
        }
    }
}
