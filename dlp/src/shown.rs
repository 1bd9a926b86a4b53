//! Where clients show a credential in the head of a request: the fields, signatures, keys of
//! a query and segments of a path by which its issuer reads it. What stands there on its way
//! to the issuer is taken out of what is scanned; whatever else holds it is a leak, at the
//! issuer's own host too, whose names anybody may rent.

use std::ops::Range;

use crate::confirm::DetectorRule;
use crate::detector::{Anchor, Text, Tier, Validator};
use crate::detector_place::{ISSUER, Opened, PathRoute, ShownPlace, Signature};
use crate::finding::PairHalf;
use crate::place::{MessagePart, Place};
use crate::ruleset::Ruleset;
use crate::signed;
use crate::span;
use crate::validate::base64;

/// How much longer than others a credential of a form may be that another fits into.
const OPEN_BYTES_MIN: usize = 24;
/// Stands for what was taken out: in no credential.
const TAKEN: u8 = 1;
/// Begins a Basic credential (RFC 7617).
const BASIC: &str = "Basic ";
/// What stands as the password where the name of a Basic pair is the credential.
const NO_PASSWORDS: [&[u8]; 4] = [b"", b"x-oauth-basic", b"x", b"X"];

/// A place of a part where a credential may stand.
struct ShownSpot {
    /// What stands there.
    range: Range<usize>,
    /// What stands before it and names it, for forms that are one only with their name.
    label: Vec<u8>,
    /// Whether a name and a password stand there in base 64.
    is_pair: bool,
}

/// What is left of a head.
pub(crate) struct HeadRest {
    /// The bytes of each part without what is shown there as it should be.
    pub(crate) parts: Vec<Vec<u8>>,
    /// Whether one of the targets held such a value.
    pub(crate) in_target: bool,
    /// Whether an id was among it that is shown without the half that signs.
    pub(crate) half: PairHalf,
}

/// What is left of a head without what is shown there as it should be.
pub(crate) fn rest(rules: &Ruleset, host: &str, parts: &[MessagePart<'_>]) -> HeadRest {
    let mut rest: Vec<Vec<u8>> = parts.iter().map(|part| part.bytes.to_vec()).collect();
    let (mut in_target, mut half) = (false, PairHalf::None);
    for rule in rules.shown_at(host) {
        let places = rule.detector.places.iter();
        let is_routed = rule.is_routed(host);
        for Opened { shown, signature } in places.filter_map(|place| Opened::parse(place)) {
            if is_routed && !matches!(shown, ShownPlace::Key { route: Some(_), .. }) {
                continue;
            }
            for (part, own) in parts.iter().zip(&mut rest) {
                for spot in spots((rule, host), part, shown) {
                    let beside = Beside {
                        parts,
                        part,
                        signature,
                    };
                    let is_taken = take(rules, (rule, host), (&beside, &spot), own);
                    in_target = in_target || is_taken && part.place == Place::Target;
                    if is_taken && signature.is_some() {
                        half = PairHalf::Shown;
                    }
                }
            }
        }
    }
    HeadRest {
        parts: rest,
        in_target,
        half,
    }
}

/// What stands beside a place: in the part that has it, and in the others.
struct Beside<'a> {
    parts: &'a [MessagePart<'a>],
    part: &'a MessagePart<'a>,
    signature: Option<Signature<'a>>,
}

impl Beside<'_> {
    /// Whether what stands at `own` of the part is signed, if its place says so, and
    /// nowhere beside it stands what signs.
    fn is_signed(&self, rule: &DetectorRule, own: &Range<usize>) -> bool {
        let Some(signature) = self.signature else {
            return true;
        };
        let mut bytes = self.part.bytes.to_vec();
        bytes.get_mut(own.clone()).unwrap_or_default().fill(TAKEN);
        let is_target = self.part.place == Place::Target;
        let targets = self.parts.iter().filter(|part| part.place == Place::Target);
        let target = targets.map(|part| part.bytes).next().unwrap_or_default();
        let pairs = unescaped_pairs(if is_target { &bytes } else { target });
        let is_signed = if is_target {
            signed::is_signed_query(signature, &pairs)
        } else {
            signed::is_signed_field(signature, span::from(&bytes, own.end))
        };
        let secret = &rule.detector.secret;
        let in_field = !is_target && signed::holds(secret, &bytes);
        let is_other = |part: &&MessagePart<'_>| {
            matches!(part.place, Place::Field(_)) && !std::ptr::eq(*part, self.part)
        };
        let mut others = self.parts.iter().filter(is_other);
        let path = target.split(|byte| *byte == b'?').next();
        // Whose slashes are between its segments, and of no secret.
        let is_in_url = |field: &[u8]| {
            let is_url = memchr::memmem::find(field, b"://").is_some();
            let mut parts = field.split(|byte| b"/?&=#".contains(byte));
            is_url && parts.any(|part| signed::holds(secret, &signed::unescaped(part)))
        };
        let mut segments = path.unwrap_or_default().split(|byte| *byte == b'/');
        is_signed
            && !in_field
            && !others.any(|part| signed::holds(secret, part.bytes) || is_in_url(part.bytes))
            && !segments.any(|segment| signed::holds(secret, &signed::unescaped(segment)))
            && !pairs
                .iter()
                .any(|(key, value)| signed::holds(secret, key) || signed::holds(secret, value))
    }
}

/// The keys of the query of a target with their values, without escapes.
fn unescaped_pairs(target: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let plain = |spot: ShownSpot| {
        let key = spot.label.strip_suffix(b"=").unwrap_or(&spot.label);
        let value = target.get(spot.range).unwrap_or_default();
        (signed::unescaped(key), signed::unescaped(value))
    };
    pairs(target).map(plain).collect()
}

/// Where in a part a place is.
fn spots(
    (rule, host): (&DetectorRule, &str),
    part: &MessagePart<'_>,
    shown: ShownPlace<'_>,
) -> Vec<ShownSpot> {
    match (&part.place, shown) {
        (Place::Field(own), ShownPlace::Field { name, prefix })
            if own.eq_ignore_ascii_case(name) =>
        {
            let mut spots = Vec::new();
            for element in elements(own, part.bytes) {
                let value = part.bytes.get(element.clone()).unwrap_or_default();
                let Some(behind) = behind(rule, value, prefix) else {
                    continue;
                };
                spots.push(ShownSpot {
                    range: element.start.saturating_add(behind)..element.end,
                    label: format!("{name}: {prefix}").into_bytes(),
                    is_pair: prefix.ends_with(BASIC),
                });
            }
            spots
        }
        (Place::Target, ShownPlace::Key { route, key }) if is_at(host, part.bytes, route) => {
            let is_key = |spot: &ShownSpot| {
                let name = spot.label.strip_suffix(b"=").unwrap_or_default();
                name.eq_ignore_ascii_case(key.as_bytes())
            };
            pairs(part.bytes).filter(is_key).collect()
        }
        (Place::Target, ShownPlace::Query) => {
            let end = part.bytes.len();
            let whole = |spot: ShownSpot| ShownSpot {
                range: spot.range.start.saturating_sub(spot.label.len())..end,
                label: Vec::new(),
                is_pair: false,
            };
            pairs(part.bytes).map(whole).collect()
        }
        (Place::Target, ShownPlace::Path { before }) => {
            segment(part.bytes, before).into_iter().collect()
        }
        _ => Vec::new(),
    }
}

/// The elements of a field: one, but where clients write a list of them.
fn elements(name: &str, value: &[u8]) -> Vec<Range<usize>> {
    let border = match name.to_ascii_lowercase().as_str() {
        "cookie" => b';',
        "sec-websocket-protocol" => b',',
        _ => return std::iter::once(0..value.len()).collect(),
    };
    let mut at = 0_usize;
    let mut elements = Vec::new();
    for element in value.split(|byte| *byte == border) {
        let blanks = element
            .len()
            .saturating_sub(element.trim_ascii_start().len());
        let end = at.saturating_add(element.len());
        elements.push(at.saturating_add(blanks)..end);
        at = end.saturating_add(1);
    }
    elements
}

/// How many bytes of a value a prefix stands for, of which `*` is any text up to what
/// follows it, and `{issuer}` a URL up to its query whose host is an issuer; nothing where
/// it begins with others.
fn behind(rule: &DetectorRule, value: &[u8], prefix: &str) -> Option<usize> {
    if let Some(rest) = prefix.strip_prefix(ISSUER) {
        let url = url_of_issuer(rule, value)?;
        let begins = value.get(url..)?.starts_with(rest.as_bytes());
        return begins.then(|| url.saturating_add(rest.len()));
    }
    let Some((first, second)) = prefix.split_once('*') else {
        let begins = value.get(..prefix.len())?;
        return begins
            .eq_ignore_ascii_case(prefix.as_bytes())
            .then_some(prefix.len());
    };
    let behind_first = behind(rule, value, first)?;
    let rest = value.get(behind_first..)?;
    let found = memchr::memmem::find(rest, second.as_bytes())?;
    Some(
        behind_first
            .saturating_add(found)
            .saturating_add(second.len()),
    )
}

/// How many bytes of a value a URL has before its query, if its host is an issuer of what
/// is shown behind it: whoever reads the URL sends it there (RFC 3986 3). No user, no port,
/// no escape and nothing that readers of URLs take apart differently is in it.
fn url_of_issuer(rule: &DetectorRule, value: &[u8]) -> Option<usize> {
    let end = value.iter().position(|byte| *byte == b'?')?;
    let url = std::str::from_utf8(value.get(..end)?).ok()?;
    let rest = url.strip_prefix("https://")?;
    let (host, path) = rest.split_once('/')?;
    let is_name = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_host = host
        .bytes()
        .all(|byte| is_name(byte) || b"-.".contains(&byte));
    let is_path = path
        .bytes()
        .all(|byte| byte.is_ascii_graphic() && !b"\\#@".contains(&byte));
    (is_host && is_path && rule.is_issuer(host)).then_some(end)
}

/// Whether a target is for a route; none is every one.
fn is_at(host: &str, target: &[u8], route: Option<PathRoute<'_>>) -> bool {
    let path = target
        .split(|byte| *byte == b'?')
        .next()
        .unwrap_or_default();
    route.is_none_or(|route| std::str::from_utf8(path).is_ok_and(|path| route.covers(host, path)))
}

/// The values of the query of a target, each with its key and `=` for a label.
fn pairs(target: &[u8]) -> impl Iterator<Item = ShownSpot> {
    let query = target.iter().position(|byte| *byte == b'?');
    let mut at = query.map_or(target.len(), |mark| mark.saturating_add(1));
    let pairs = span::from(target, at);
    pairs.split(|byte| *byte == b'&').map(move |pair| {
        let start = at;
        let end = start.saturating_add(pair.len());
        at = end.saturating_add(1);
        let equals = pair.iter().position(|byte| *byte == b'=');
        let (label, _) = pair.split_at(equals.map_or(0, |equals| equals.saturating_add(1)));
        ShownSpot {
            range: start.saturating_add(label.len())..end,
            label: label.to_vec(),
            is_pair: false,
        }
    })
}

/// What stands in a path behind its beginning, up to the end of the segment.
fn segment(target: &[u8], before: &str) -> Option<ShownSpot> {
    let rest = target.strip_prefix(before.as_bytes())?;
    let end = rest.iter().position(|byte| matches!(byte, b'/' | b'?'));
    let end = end.unwrap_or(rest.len()).saturating_add(before.len());
    Some(ShownSpot {
        range: before.len()..end,
        label: Vec::new(),
        is_pair: false,
    })
}

/// Takes the credential out of a place, if one stands there that may.
fn take(
    rules: &Ruleset,
    (rule, host): (&DetectorRule, &str),
    (beside, spot): (&Beside<'_>, &ShownSpot),
    rest: &mut [u8],
) -> bool {
    let bytes = beside.part.bytes;
    let value = bytes.get(spot.range.clone()).unwrap_or_default();
    let rest = rest.get_mut(spot.range.clone()).unwrap_or_default();
    if spot.is_pair {
        let pair = base64::decode(value.trim_ascii_end()).unwrap_or_default();
        let Some(open) = opened(rules, (rule, host), pair) else {
            return false;
        };
        // In its place stands the pair as it is, to be looked through: it is shorter.
        rest.fill(TAKEN);
        for (own, byte) in rest.iter_mut().zip(open) {
            *own = byte;
        }
        return true;
    }
    let length = rule
        .first(value)
        .or_else(|| rule.labelled(&spot.label, value));
    let secret = length.and_then(|length| value.get(..length));
    let Some(secret) = secret.filter(|secret| is_free(rules, host, secret)) else {
        return false;
    };
    let start = spot.range.start;
    if !beside.is_signed(rule, &(start..start.saturating_add(secret.len()))) {
        return false;
    }
    take_out(rule, rest.get_mut(..secret.len()).unwrap_or_default());
    true
}

/// Takes a credential out. Of one whose length is its sender's to choose, as a JWT's, nothing
/// but its form: what it holds may be another's, and at hosts with tenants, and wherever
/// a rule spells a host out for tokens, strangers read it.
fn take_out(rule: &DetectorRule, secret: &mut [u8]) {
    let detector = &rule.detector;
    let is_open = detector.max.saturating_sub(detector.min) > OPEN_BYTES_MIN;
    let is_labelled = detector.tier == Tier::Context || detector.anchor != Anchor::Start;
    if !is_open || is_labelled {
        secret.fill(TAKEN);
        return;
    }
    // Without its beginning it is no value of the label before it, nor of this form.
    let begins = |literal: &&Text| secret.starts_with(literal.as_bytes());
    let literals = detector.literals.iter().filter(begins);
    let begin = literals.map(|literal| literal.len()).max().unwrap_or(1);
    secret.get_mut(..begin).unwrap_or_default().fill(TAKEN);
    if detector.validator == Validator::Jwt {
        for byte in secret.iter_mut().filter(|byte| **byte == b'.') {
            *byte = TAKEN;
        }
    }
}

/// A pair without the credential that is all of its password, or, where there is no password,
/// all of its name.
fn opened(
    rules: &Ruleset,
    (rule, host): (&DetectorRule, &str),
    mut pair: Vec<u8>,
) -> Option<Vec<u8>> {
    let colon = pair.iter().position(|byte| *byte == b':')?;
    let (name, password) = pair.split_at_mut(colon);
    let password = password.get_mut(1..)?;
    let is_one = |text: &[u8]| rule.first(text) == Some(text.len()) && is_free(rules, host, text);
    if is_one(password) {
        take_out(rule, password);
    } else if NO_PASSWORDS.contains(&&*password) && is_one(name) {
        take_out(rule, name);
    } else {
        return None;
    }
    Some(pair)
}

/// Whether no value that is bound elsewhere stands there, nor a canary.
fn is_free(rules: &Ruleset, host: &str, secret: &[u8]) -> bool {
    let own = rules.known().and_then(|known| known.identify(secret));
    own.is_none_or(|own| rules.lets(own, host))
}
