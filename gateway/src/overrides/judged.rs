//! What stands in queries, fields and content, judged as the request it asks for.

use std::cell::OnceCell;

use http::header::{HeaderMap, HeaderName, HeaderValue};
use outgate_policy::{ByMethod, DenialReason, Scheme, Standing, Verdict};

use super::addresses::{cleaned, inner, is_for_batches, other, whole};
use super::asks::{Asks, InnerDepth, InnerPlace, KEY, Refused, is_known, is_method};
use super::readers::InnerReaders;
use super::{asks_for_method, lists, second, shown};
use crate::caller::Caller;
use crate::decide;
use crate::destination::peer;
use crate::target::Target;
use crate::uri_authority::named_authority;

/// Directories below which an address in a batch may be, at most: the nearest, and the root.
const DIRECTORIES_MAX: usize = 8;

/// What something asks for that is not allowed.
pub(super) enum AskedOverride {
    For {
        by: String,
        what: String,
        /// Why not.
        why: &'static str,
    },
    /// Nobody can tell.
    Unread(&'static str),
    /// A field of a request within, and what is wrong with it.
    Field(String),
}

impl AskedOverride {
    /// The same for people, where it stands in the query or the content.
    pub(super) fn told(&self, place: &str) -> String {
        match self {
            Self::For { by, what, why } => format!("{by} in the {place} asks for {what}, {why}"),
            Self::Unread(what) => format!(
                "{what} in the {place} cannot be read and could ask for what the rules do not allow"
            ),
            Self::Field(what) => format!("of a request in the {place} {what}"),
        }
    }
}

/// Whether the rules allow what is asked for as well.
pub(super) fn judge(caller: &Caller, target: &Target, asks: Asks<'_>) -> Result<(), AskedOverride> {
    judge_at((caller, InnerDepth::default()), target, asks)
}

/// Who asks, and around how many queries with requests what is asked for stands.
type Asking<'c> = (&'c Caller, InnerDepth);

fn judge_at(asking: Asking<'_>, target: &Target, asks: Asks<'_>) -> Result<(), AskedOverride> {
    let (caller, _) = asking;
    match asks {
        Asks::Method { key, value } => by_method(caller, target, key, value),
        Asks::Tunnelled { key, value } => {
            let value = value.trim();
            if is_known(value) || caller.rules().names_method(value) {
                by_method(caller, target, key, value)
            } else {
                Ok(())
            }
        }
        Asks::Named { key, value } if caller.rules().names_method(value.trim()) => {
            by_method(caller, target, key, value)
        }
        Asks::UnreadMethod(what) if tells_methods_apart(caller, target) => {
            Err(AskedOverride::Unread(what))
        }
        Asks::Request { method, target: of } => {
            let to = inner(target, method, of).ok_or_else(nowhere)?;
            // Some take the path of any URL for one of their own, and some go there.
            if let Some((scheme, authority, _)) = second::absolute(of) {
                elsewhere(caller, (target, &to), (Some(scheme), authority))?;
            }
            request(asking, target, &to)
        }
        Asks::Item { method, target: of } if item_method(caller, method).is_some() => {
            item(asking, target, (method, of), Given::Said)
        }
        // A word of the server's own, which may be for any method.
        Asks::Item { target: of, .. } if is_for_batches(target) => fetched(asking, target, of),
        Asks::Fetched { target: of } => fetched(asking, target, of),
        Asks::Within {
            by,
            method,
            target: of,
            asks,
        } => {
            let places = places(caller, target, (by, method, of));
            let mut places = places.iter();
            places.try_for_each(|to| judge_at(asking, to, *asks))
        }
        Asks::Field {
            method,
            target: of,
            name,
            value,
        } => {
            let to = inner(target, method, of).ok_or_else(nowhere)?;
            if name.eq_ignore_ascii_case("host") {
                return elsewhere(caller, (target, &to), (None, value));
            }
            field(caller, &to, name, value)
        }
        Asks::Named { .. } | Asks::UnreadMethod(_) | Asks::Item { .. } => Ok(()),
        Asks::Unread(what) => {
            if tells_methods_apart(caller, target) || looks_at_paths(caller, target) {
                Err(AskedOverride::Unread(what))
            } else {
                Ok(())
            }
        }
    }
}

fn by_method(
    caller: &Caller,
    target: &Target,
    key: &str,
    value: &str,
) -> Result<(), AskedOverride> {
    let by = if key == KEY {
        format!("`{key}`")
    } else {
        key.to_owned()
    };
    let checked = by_rules(caller, target, |rules| {
        outgate_policy::check_method(value, target.method.as_str(), rules)
    });
    checked.map_err(|what| AskedOverride::For {
        by,
        what: what.to_string(),
        why: what.why(),
    })
}

/// Asks what the rules say of the methods of a request.
fn by_rules<T>(caller: &Caller, target: &Target, ask: impl FnOnce(ByMethod<'_>) -> T) -> T {
    let rules = caller.rules();
    let judged = |to: &Target| decide::judged(&rules, caller.process(), to);
    let own = OnceCell::new();
    let says = |method: &str| {
        let asked = decide::by_method(&rules, caller.process(), target, method);
        Standing::of(own.get_or_init(|| judged(target)), &asked)
    };
    ask(ByMethod {
        says: &says,
        named: &|| rules.named_methods().collect(),
    })
}

/// A method for people: what is none may be a value of the user's.
fn told(caller: &Caller, method: &str) -> String {
    if is_known(method) || caller.rules().names_method(method) {
        method.to_owned()
    } else {
        "another method".to_owned()
    }
}

/// Whether a request that stands within another one is allowed by itself, and inspected no
/// more closely than that one.
fn request(asking: Asking<'_>, target: &Target, to: &Target) -> Result<(), AskedOverride> {
    let (caller, _) = asking;
    let rules = caller.rules();
    let judged = |to: &Target| decide::carried(&rules, caller.process(), (target, to));
    let standing = Standing::of(&judged(target), &judged(to));
    if standing != Standing::Allowed {
        return Err(not_so(caller, to, standing));
    }
    query_at(asking, to)
}

/// Whether a request within another one is allowed to the host that it names.
fn elsewhere(
    caller: &Caller,
    (target, to): (&Target, &Target),
    (scheme, authority): (Option<Scheme>, &str),
) -> Result<(), AskedOverride> {
    let (host, port) = named_authority(authority).ok_or_else(nowhere)?;
    let is_own = caller.destination().matching(&host).is_some()
        && port.is_none_or(|port| port == target.port);
    if is_own {
        return Ok(());
    }
    let scheme = scheme.unwrap_or(target.scheme);
    let to = Target {
        host,
        port: port.unwrap_or(scheme.default_port()),
        scheme,
        ..to.clone()
    };
    let rules = caller.rules();
    let judged = |to: &Target| decide::carried(&rules, caller.process(), (target, to));
    match Standing::of(&judged(target), &judged(&to)) {
        Standing::Allowed => Ok(()),
        standing => Err(not_so(caller, &to, standing)),
    }
}

/// What a request within another one asks for.
fn not_so(caller: &Caller, to: &Target, standing: Standing) -> AskedOverride {
    let method = told(caller, to.method.as_str());
    AskedOverride::For {
        by: "a request".to_owned(),
        what: format!("{method} {}", to.origin()),
        why: standing.why(),
    }
}

/// Whether the rules allow what the query of a request asks for.
pub(super) fn query(caller: &Caller, target: &Target) -> Result<(), AskedOverride> {
    query_at((caller, InnerDepth::default()), target)
}

fn query_at((caller, depth): Asking<'_>, target: &Target) -> Result<(), AskedOverride> {
    let checked = by_rules(caller, target, |rules| {
        outgate_policy::check_query(&target.resource, target.method.as_str(), rules)
    });
    checked.map_err(|asked| AskedOverride::For {
        by: asked.by.to_owned(),
        what: asked.what.to_string(),
        why: asked.what.why(),
    })?;
    let mut found = None;
    let below = depth.below().unwrap_or(depth);
    let mut judge = |asks: Asks<'_>| {
        judge_at((caller, below), target, asks).map_err(|asked| {
            found.get_or_insert(asked);
            Refused
        })
    };
    let read = lists::in_query::<InnerReaders>(&target.resource, depth, &mut judge);
    match (read, found) {
        (Err(Refused), Some(asked)) => Err(asked),
        _ => Ok(()),
    }
}

/// Whether an item of a list gives a method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Given {
    Said,
    /// It may be no request at all, and is refused only where a rule denies it.
    Nowhere,
}

/// A request of a batch in JSON. Its address is one below the batch's own place to some,
/// and below the root or a directory between to others: some reading of it is allowed, and
/// none is denied.
/// One of another host is about something else, as in hooks and crawls; but some servers of
/// batches take its path for one of their own, so that no rule denies it there, and some go
/// where it says, so that by rules that only allow what gives a method as well is allowed there.
fn item(
    asking: Asking<'_>,
    target: &Target,
    (method, of): (&str, &str),
    given: Given,
) -> Result<(), AskedOverride> {
    let (caller, _) = asking;
    let of = &*cleaned(of);
    let method = method.trim();
    let is_other = names_another(caller, of);
    if is_other && !is_for_batches(target) {
        return Ok(());
    }
    let readings = match readings(target, method, of) {
        Some(readings) => readings,
        None if is_other || given == Given::Nowhere => return Ok(()),
        None => return Err(nowhere()),
    };
    let rules = caller.rules();
    let judged = |to: &Target| decide::carried(&rules, caller.process(), (target, to));
    let verdicts: Vec<Verdict> = readings.iter().map(judged).collect();
    let is_denied = |verdict: &Verdict| matches!(verdict, Verdict::Deny(denial) if denial.reason() == DenialReason::DenyRule);
    let is_allowed = |verdict: &Verdict| matches!(verdict, Verdict::Allow(_));
    let [first, ..] = readings.as_slice() else {
        return Err(nowhere());
    };
    let is_said = given == Given::Said && !is_other;
    let lacks_rule = is_said && !verdicts.iter().any(is_allowed);
    if lacks_rule || verdicts.iter().any(is_denied) {
        return Err(not_so(caller, first, Standing::Denied));
    }
    if is_other {
        let needs_rule = given == Given::Said && !rules.denies();
        return match other(target, first, of) {
            Some(to) if needs_rule && !is_allowed(&judged(&to)) => {
                Err(not_so(caller, &to, Standing::Denied))
            }
            _ => Ok(()),
        };
    }
    let own = judged(target);
    let is_stricter = |verdict: &Verdict| Standing::of(&own, verdict) == Standing::Stricter;
    if verdicts.iter().any(is_stricter) {
        return Err(not_so(caller, first, Standing::Stricter));
    }
    let allowed = readings.iter().zip(&verdicts);
    let mut allowed = allowed.filter(|(_, verdict)| is_allowed(verdict));
    allowed.try_for_each(|(to, _)| query_at(asking, to))
}

/// An address in a batch without a method that is one: servers have one of their own for
/// it, GET or POST mostly.
fn fetched(asking: Asking<'_>, target: &Target, of: &str) -> Result<(), AskedOverride> {
    const USUAL: [&str; 5] = ["GET", "POST", "PUT", "PATCH", "DELETE"];
    let mut methods = USUAL.iter();
    methods.try_for_each(|method| item(asking, target, (method, of), Given::Nowhere))
}

/// The method of an item that is a request.
fn item_method<'m>(caller: &Caller, method: &'m str) -> Option<&'m str> {
    let method = method.trim();
    let is_one = is_known(method) || caller.rules().names_method(method);
    is_one.then_some(method)
}

/// Whether an item names another host than the one that gets it.
fn names_another(caller: &Caller, of: &str) -> bool {
    let named = whole(of).and_then(|(authority, _)| named_authority(authority));
    named.is_some_and(|(host, _)| caller.destination().matching(&host).is_none())
}

/// What a request within another one may be to, whose content asks for something: it was
/// judged by itself already, and what of it is not allowed is not done.
fn places(
    caller: &Caller,
    target: &Target,
    (by, method, of): (InnerPlace, &str, &str),
) -> Vec<Target> {
    match by {
        InnerPlace::Part => inner(target, method, of).into_iter().collect(),
        InnerPlace::Item => {
            let of = &*cleaned(of);
            let Some(method) = item_method(caller, method) else {
                return Vec::new();
            };
            if names_another(caller, of) {
                return Vec::new();
            }
            if of.is_empty() {
                // Without an address, words of another meaning are no methods.
                let is_one = is_method(method) || caller.rules().names_method(method);
                let own = inner(target, method, of).filter(|_| is_one);
                return own.into_iter().collect();
            }
            let rules = caller.rules();
            let mut readings = readings(target, method, of).unwrap_or_default();
            readings.retain(|to| {
                let verdict = decide::carried(&rules, caller.process(), (target, to));
                matches!(verdict, Verdict::Allow(_))
            });
            readings
        }
    }
}

/// All that an address in a batch may be: below the batch's own place, the root, and each
/// directory between (Salesforce has `v1/x` of `/services/data/v1/composite/batch` below
/// `/services/data`).
fn readings(target: &Target, method: &str, of: &str) -> Option<Vec<Target>> {
    let mut found = vec![inner(target, method, of)?];
    if whole(of).is_some() {
        return Some(found);
    }
    let below = of.strip_prefix('/').unwrap_or(of);
    let path = target.resource.as_str();
    let path = path.split('?').next().unwrap_or_default();
    let slashes = path.match_indices('/').map(|(at, _)| at);
    for at in slashes.rev().take(DIRECTORIES_MAX).chain([0]) {
        let directory = path.get(..at).unwrap_or_default();
        let one = inner(target, method, &format!("{directory}/{below}"))?;
        let is_known = |known: &Target| known.resource.as_str() == one.resource.as_str();
        if !found.iter().any(is_known) {
            found.push(one);
        }
    }
    Some(found)
}

/// Whether a field of a request within may stand there.
fn field(caller: &Caller, to: &Target, name: &str, value: &str) -> Result<(), AskedOverride> {
    let name = HeaderName::try_from(name);
    let value = HeaderValue::try_from(value);
    let (Ok(name), Ok(value)) = (name, value) else {
        return Ok(());
    };
    let fields = HeaderMap::from_iter([(name, value)]);
    let checked = super::check(&fields, caller.destination());
    checked.map_err(|malformed| AskedOverride::Field(malformed.because))?;
    let fault = methods_fault(caller, to, &fields).or_else(|| second::fault(caller, to, &fields));
    fault.map_or(Ok(()), |because| Err(AskedOverride::Field(because)))
}

/// Why a field asks for another method: any whose name holds the word and whose value is
/// one, since each framework has a name of its own for it.
pub(super) fn methods_fault(
    caller: &Caller,
    target: &Target,
    fields: &HeaderMap,
) -> Option<String> {
    let asking = fields
        .iter()
        .filter(|(name, _)| asks_for_method(name.as_str()));
    for (name, value) in asking {
        let key = shown(name.as_str());
        // What is called by nothing but such words has no other meaning.
        let is_plain = super::is_plain(name.as_str());
        let text = String::from_utf8_lossy(value.as_bytes());
        let words = text.split(|sign: char| !sign.is_ascii_alphabetic());
        // Of `VERSION-CONTROL` and its like all is one word.
        let whole = text.split(|sign: char| !sign.is_ascii_alphabetic() && sign != '-');
        for value in words.chain(whole) {
            let key = key.as_str();
            let asks = if is_plain {
                Asks::Tunnelled { key, value }
            } else if is_method(value) {
                Asks::Method { key, value }
            } else {
                Asks::Named { key, value }
            };
            if let Err(AskedOverride::For { what, why, .. }) = judge(caller, target, asks) {
                return Some(format!("{key} asks for {what}, {why}"));
            }
        }
    }
    None
}

fn nowhere() -> AskedOverride {
    AskedOverride::For {
        by: "a request".to_owned(),
        what: "something that is no request to the same host".to_owned(),
        why: Standing::Denied.why(),
    }
}

/// Whether it matters by which method the request is made.
pub(super) fn tells_methods_apart(caller: &Caller, target: &Target) -> bool {
    by_rules(caller, target, |rules| rules.tells_apart())
}

/// Whether it matters where it goes.
pub(super) fn looks_at_paths(caller: &Caller, target: &Target) -> bool {
    caller.rules().looks_at_paths(peer(&target.host))
}
