//! What must hold for every detector, shipped or written by a user: a bounded
//! pattern, a literal to look for, and a sensible combination of the rest.
//!
//! Pure, and built into the build script as well. Knows the syntax of patterns,
//! not how they are matched.

use regex_syntax::ParserBuilder;
use regex_syntax::hir::Hir;

use crate::destination::{self, IssuerPattern};
use crate::detector::{Anchor, Detector, Failure, Scope, Tenants, Text, Tier, Validator};
use crate::detector_place::{Opened, PathRoute, ShownPlace, letters};
use crate::limits::{LITERAL_BYTES_MAX, LITERAL_BYTES_MIN, MATCH_BYTES_MAX};

/// Shortest match worth a finding, in bytes.
const MATCH_BYTES_MIN: usize = 6;

/// What a pattern means, over bytes.
///
/// # Errors
/// What is wrong with it, and where.
pub(crate) fn parse(pattern: &str) -> Result<Hir, String> {
    let mut parser = ParserBuilder::new()
        .unicode(false)
        .utf8(false)
        .nest_limit(32)
        .build();
    parser.parse(pattern).map_err(|error| {
        let (offset, what) = match &error {
            regex_syntax::Error::Parse(error) => {
                (error.span().start.offset, error.kind().to_string())
            }
            regex_syntax::Error::Translate(error) => {
                (error.span().start.offset, error.kind().to_string())
            }
            other => (0, one_line(&other.to_string())),
        };
        format!("the pattern is not one, at byte {offset}: {what}")
    })
}

/// The lengths of the shortest and the longest match of a pattern, in bytes.
///
/// # Errors
/// What is wrong with the pattern.
pub(crate) fn lengths(pattern: &str) -> Result<(usize, usize), String> {
    let shape = parse(pattern)?;
    let properties = shape.properties();
    let min = properties.minimum_len().unwrap_or_default();
    let max = properties
        .maximum_len()
        .ok_or("the pattern has no longest match; bound every `*` and `+`")?;
    if min < MATCH_BYTES_MIN || max > MATCH_BYTES_MAX {
        return Err(format!(
            "matches have {min} to {max} bytes; {MATCH_BYTES_MIN} to {MATCH_BYTES_MAX} are allowed"
        ));
    }
    if properties.explicit_captures_len() > 1 {
        return Err("the pattern has more than one group that captures".to_owned());
    }
    Ok((min, max))
}

/// The last line of a message in many: the one that says what.
fn one_line(message: &str) -> String {
    let line = message.lines().last().unwrap_or(message);
    line.trim_start_matches("error: ").to_owned()
}

/// What does not go together in a detector.
pub(crate) fn faults(detector: &Detector) -> Vec<String> {
    let mut faults = Vec::new();
    let mut claim = |holds: bool, message: &str| {
        if !holds {
            faults.push(message.to_owned());
        }
    };
    claim(
        is_id(&detector.id),
        "an id has lower-case letters, digits and single hyphens, 48 at most",
    );
    claim(
        is_sentence(&detector.cost),
        "`cost` is one sentence: a capital letter first, a full stop last",
    );
    claim(
        detector.reference.starts_with("https://"),
        "`reference` is an https URL",
    );
    let scans = detector.anchor == Anchor::Scan;
    claim(
        scans == detector.literals.is_empty(),
        "every anchor but `scan` needs literals, and `scan` has none",
    );
    let fits = |literal: &Text| (LITERAL_BYTES_MIN..=LITERAL_BYTES_MAX).contains(&literal.len());
    claim(
        detector.literals.iter().all(fits),
        "a literal has 3 to 64 bytes",
    );
    let computes = !matches!(detector.validator, Validator::None | Validator::Entropy);
    let clears = detector.failure == Failure::Clear;
    claim(
        !clears || computes,
        "`failure = \"clear\"` needs a validator that computes",
    );
    claim(
        !clears || detector.tier != Tier::Strong,
        "what is strong is lowered, never cleared",
    );
    claim(
        !scans || clears,
        "without literals only a validator tells: `failure = \"clear\"`",
    );
    claim(
        detector.validator != Validator::Entropy || detector.min_entropy > 0.0,
        "`validator = \"entropy\"` needs `min_entropy`",
    );
    claim(
        !detector.samples.is_empty(),
        "`samples` needs one sample or more",
    );
    claim(
        detector.near_misses.len() >= 2,
        "`near_misses` needs two or more",
    );
    host_faults(detector, claim);
    faults
}

/// What does not go together in what a detector says of hosts.
fn host_faults(detector: &Detector, mut claim: impl FnMut(bool, &str)) {
    let has_issuers = !detector.issuers.is_empty() || !detector.tenant_hosts.is_empty();
    match detector.scope {
        Scope::Issuers => claim(
            has_issuers,
            "`scope = \"issuers\"` needs `issuers` or `tenant_hosts`",
        ),
        Scope::Never | Scope::User => {
            claim(!has_issuers, "`issuers` need `scope = \"issuers\"`");
        }
        Scope::Claims | Scope::Registry(_) => {}
    }
    let mut hosts = detector.issuers.iter().chain(detector.tenant_hosts.iter());
    claim(
        hosts.all(|issuer| is_issuer(issuer)) && detector.except.iter().all(|own| is_issuer(own)),
        "an issuer is a lower-case host; `*` stands for whole labels left of two others",
    );
    let has_home = matches!(
        detector.scope,
        Scope::Issuers | Scope::Claims | Scope::Registry(_)
    );
    claim(
        detector.tenants == Tenants::One || has_home,
        "`tenants = \"many\"` is said of hosts that it may go to; this may go to none by itself",
    );
    claim(
        detector.tenant_hosts.is_empty() || detector.is_placed(),
        "`tenant_hosts` need `places`: whoever holds such a name reads the rest",
    );
    claim(
        detector.except.is_empty() || !detector.issuers.is_empty(),
        "`except` is said of `issuers`, and there are none",
    );
    let is_closed = detector.tenants == Tenants::Many || detector.is_placed();
    let mut forms = detector.forms.iter().chain(detector.documents.iter());
    claim(
        is_closed || forms.next().is_none(),
        "`forms` and `documents` need `places` or `tenants = \"many\"`; otherwise all content is \
         open to its issuers",
    );
    let mut forms = detector.forms.iter().chain(detector.documents.iter());
    claim(
        forms.all(|form| is_form(detector, form)),
        "a form or document is a host of the issuers and a path, and maybe a key: \
         `api.example.org/oauth/token?refresh_token`",
    );
    claim(
        has_home || !detector.is_placed(),
        "`places` are said of hosts that it may go to; this may go to none by itself",
    );
    claim(
        detector.places.is_empty() || detector.unplaced.is_empty(),
        "`unplaced` says why there are no `places`, and there are some",
    );
    place_faults(detector, &mut claim);
    for reason in [&detector.harmless, &detector.unplaced] {
        claim(
            reason.is_empty() || is_sentence(reason),
            "`harmless` and `unplaced` are one sentence: a capital letter first, a full stop last",
        );
    }
}

/// What does not go together in what it says of the places of a head.
fn place_faults(detector: &Detector, mut claim: impl FnMut(bool, &str)) {
    claim(
        detector
            .places
            .iter()
            .all(|place| is_place(detector, place)),
        "a place is a field, with what stands before the credential, a key of the query, or the \
         end of a path: `x-key`, `authorization: Bearer `, `?key`, `/bot*`, `api.example.org/a?key`; \
         and maybe a signature beside it: `?key + signature={sha256}`",
    );
    claim(
        detector.routed.iter().all(|own| is_covered(detector, own)),
        "`routed` are hosts of `issuers`",
    );
    let is_signed = |place: &Text| Opened::parse(place).is_some_and(|own| own.signature.is_some());
    let is_half = letters(&detector.secret).is_some() && detector.places.iter().all(is_signed);
    claim(
        detector.secret.is_empty() || is_half,
        "`secret` is a template of one half of a pair, such as `{b64:40}`, and in each of the \
         `places` a signature stands beside the other",
    );
}

/// Whether a text is a host pattern that spells out at least its last two labels.
pub(crate) fn is_issuer(text: &str) -> bool {
    let labels = || text.rsplit('.');
    let spelt = labels().take_while(|label| destination::is_spelt(label));
    let is_plain = labels().all(destination::is_spelt);
    IssuerPattern::parse(text).is_ok() && (is_plain || spelt.count() >= 2)
}

/// Whether a text names a place, and if a host, then one of the issuers.
fn is_place(detector: &Detector, text: &str) -> bool {
    match Opened::parse(text).map(|own| own.shown) {
        Some(ShownPlace::Key {
            route: Some(route), ..
        }) => is_known(detector, &route),
        Some(_) => true,
        None => false,
    }
}

/// Whether a text names paths of hosts that the issuers cover.
fn is_form(detector: &Detector, text: &str) -> bool {
    PathRoute::parse(text).is_some_and(|(route, _)| is_known(detector, &route))
}

fn is_known(detector: &Detector, route: &PathRoute<'_>) -> bool {
    is_covered(detector, route.host) && is_issuer(route.host)
}

/// Whether the issuers cover a host, or have the same pattern.
fn is_covered(detector: &Detector, host: &str) -> bool {
    let mut issuers = detector.issuers.iter().chain(detector.tenant_hosts.iter());
    issuers.any(|issuer| issuer == host || destination::covers(issuer, host))
}

pub(crate) fn is_id(text: &str) -> bool {
    let part = |part: &str| {
        !part.is_empty()
            && part
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    text.len() <= 48 && text.split('-').all(part)
}

fn is_sentence(text: &str) -> bool {
    let first = text.chars().next().is_some_and(char::is_uppercase);
    first && text.ends_with('.') && !text.contains('\n')
}
