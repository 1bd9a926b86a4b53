//! The policy of a run as it changes while the run goes on: the texts it began with, or that
//! were read again, and the rules that were granted since, each with its end. Values only:
//! what a change would make of it is said here, and taken over once the gateway has it.

use std::time::{Duration, Instant};

use outgate_handoff::{GrantRequest, GrantUses, LISTEN_RULE};
use outgate_policy::{RuleRef, Source, SourceKind, printable};

use crate::limits::GRANTS_MAX;

/// What a rule for one request may be about: what is no request is not counted.
const REQUESTS: [&str; 4] = ["http", "https", "ws", "wss"];

/// A rule that was granted.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Grant {
    place: String,
    rule: String,
    uses: GrantUses,
    until: Option<Instant>,
}

/// The texts of a run.
#[derive(Debug, Clone, Default)]
pub(crate) struct RunTexts {
    base: Vec<Source>,
    grants: Vec<Grant>,
    /// How many were granted so far: no place is ever another's.
    numbered: u64,
}

impl RunTexts {
    pub(crate) fn new(base: Vec<Source>) -> Self {
        Self {
            base,
            ..Self::default()
        }
    }

    /// The texts that nothing was granted by.
    pub(crate) fn base(&self) -> &[Source] {
        &self.base
    }

    /// All texts, in merge order.
    pub(crate) fn all(&self) -> Vec<Source> {
        let grants = self.grants.iter().map(|own| {
            let (kind, text) = match own.rule.strip_prefix(LISTEN_RULE) {
                Some(address) => (SourceKind::Listen, address),
                None => (SourceKind::Allow, own.rule.as_str()),
            };
            Source {
                kind,
                place: own.place.clone(),
                text: text.to_owned(),
            }
        });
        self.base.iter().cloned().chain(grants).collect()
    }

    /// How many rules are granted.
    pub(crate) fn granted(&self) -> usize {
        self.grants.len()
    }

    /// With one more rule, and that in words. The same rule again begins anew.
    ///
    /// # Errors
    /// A sentence: it cannot be granted so.
    pub(crate) fn with(
        &self,
        request: &GrantRequest,
        now: Instant,
    ) -> Result<(Self, String), String> {
        if request.rule.trim().is_empty() {
            return Err("the rule is empty".to_owned());
        }
        if request.uses == GrantUses::Once && !is_about_requests(&request.rule) {
            return Err(format!(
                "`{}` cannot be for one request: --once takes rules about http, https, ws and wss",
                printable(&request.rule)
            ));
        }
        let mut next = self.clone();
        next.grants.retain(|own| own.rule != request.rule);
        if next.grants.len() >= GRANTS_MAX {
            return Err(format!(
                "{GRANTS_MAX} rules are granted already; `outgate revoke` takes some back"
            ));
        }
        next.numbered = next.numbered.saturating_add(1);
        let seconds = Duration::from_secs(request.seconds.into());
        let until = (request.seconds > 0).then(|| now.checked_add(seconds));
        let place = match request.uses {
            GrantUses::All => RuleRef::granted(next.numbered),
            GrantUses::Once => RuleRef::granted_once(next.numbered),
        };
        next.grants.push(Grant {
            place,
            rule: request.rule.clone(),
            uses: request.uses,
            until: until.flatten(),
        });
        let once = match request.uses {
            GrantUses::All => "",
            GrantUses::Once => " for one request",
        };
        let time = match request.seconds {
            0 => String::new(),
            seconds => format!(" for {}", spoken(seconds)),
        };
        let rule = printable(&request.rule);
        Ok((next, format!("granted `{rule}`{once}{time}")))
    }

    /// Without the rules granted by this text, or without any where it is empty.
    ///
    /// # Errors
    /// A sentence: there is none.
    pub(crate) fn without(&self, rule: &str) -> Result<(Self, String), String> {
        let mut next = self.clone();
        next.grants
            .retain(|own| !rule.is_empty() && own.rule != rule);
        let gone = self.grants.len().saturating_sub(next.grants.len());
        match (gone, rule) {
            (0, "") => Err("nothing is granted".to_owned()),
            (0, rule) => Err(format!(
                "`{}` was not granted to this run; `outgate policy show --of` shows what was",
                printable(rule)
            )),
            (gone, "") => Ok((next, format!("revoked all that was granted ({gone})"))),
            (_, rule) => Ok((next, format!("revoked `{}`", printable(rule)))),
        }
    }

    /// With other texts in the place of those the run began with.
    pub(crate) fn on(&self, base: Vec<Source>) -> Self {
        Self {
            base,
            ..self.clone()
        }
    }

    /// Without the rule of this place, which had its one request; nothing where it is gone.
    pub(crate) fn used(&self, place: &str) -> Option<(Self, String)> {
        let is_it = |own: &&Grant| own.place == place && own.uses == GrantUses::Once;
        let rule = self.grants.iter().find(is_it)?.rule.clone();
        let mut next = self.clone();
        next.grants.retain(|own| own.place != place);
        Some((
            next,
            format!("used up `{}`, granted for one request", printable(&rule)),
        ))
    }

    /// Without the rules whose time is over; nothing where there is none.
    pub(crate) fn expired(&self, now: Instant) -> Option<(Self, String)> {
        let mut next = self.clone();
        next.grants
            .retain(|own| own.until.is_none_or(|until| until > now));
        let gone = self.grants.iter().filter(|own| !next.grants.contains(own));
        let rules: Vec<&str> = gone.map(|own| own.rule.as_str()).collect();
        let line = match rules.as_slice() {
            [] => return None,
            [rule] => format!("the time of `{}` is over", printable(rule)),
            more => format!("the time of {} granted rules is over", more.len()),
        };
        Some((next, line))
    }

    /// Without the rules for one request: nobody knows any more whether they had it.
    pub(crate) fn forget_once(&mut self) {
        self.grants.retain(|own| own.uses == GrantUses::All);
    }

    /// The rules that end by their time: their places, and when.
    pub(crate) fn ends(&self) -> Vec<(String, Instant)> {
        let ends = |own: &Grant| Some((own.place.clone(), own.until?));
        self.grants.iter().filter_map(ends).collect()
    }

    /// When the next rule ends.
    pub(crate) fn next_end(&self) -> Option<Instant> {
        self.grants.iter().filter_map(|own| own.until).min()
    }
}

/// Whether a rule's text is about requests: it names no scheme, or one of theirs.
fn is_about_requests(rule: &str) -> bool {
    if rule.starts_with(LISTEN_RULE) {
        return false;
    }
    let target = rule.split_whitespace().next_back().unwrap_or_default();
    match target.split_once("://") {
        None => true,
        Some((scheme, _)) => REQUESTS.contains(&scheme.to_ascii_lowercase().as_str()),
    }
}

/// A time in its largest unit that is whole.
fn spoken(seconds: u32) -> String {
    match seconds {
        _ if seconds.is_multiple_of(3600) => format!("{}h", seconds / 3600),
        _ if seconds.is_multiple_of(60) => format!("{}m", seconds / 60),
        _ => format!("{seconds}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(rule: &str, seconds: u32, uses: GrantUses) -> GrantRequest {
        GrantRequest {
            rule: rule.to_owned(),
            seconds,
            uses,
        }
    }

    fn rules(texts: &RunTexts) -> Vec<String> {
        texts.all().into_iter().map(|source| source.text).collect()
    }

    fn base() -> RunTexts {
        RunTexts::new(vec![Source {
            kind: SourceKind::Allow,
            place: "-a".to_owned(),
            text: "base.test".to_owned(),
        }])
    }

    #[test]
    fn grants_come_and_go_by_their_text_their_time_and_their_use() {
        let now = Instant::now();
        let grant = |texts: &RunTexts, rule, seconds, uses| {
            texts.with(&request(rule, seconds, uses), now).unwrap()
        };
        let (texts, line) = grant(&base(), "a.test", 600, GrantUses::All);
        assert_eq!(line, "granted `a.test` for 10m");
        let (texts, line) = grant(&texts, "GET b.test", 0, GrantUses::Once);
        assert_eq!(line, "granted `GET b.test` for one request");
        assert_eq!(rules(&texts), ["base.test", "a.test", "GET b.test"]);
        // The same again begins anew, under another place.
        let (again, _) = grant(&texts, "GET b.test", 0, GrantUses::Once);
        assert_eq!(rules(&again).len(), 3);
        let places = |texts: &RunTexts| texts.all().pop().unwrap().place;
        assert_ne!(places(&again), places(&texts));
        assert!(again.used(&places(&texts)).is_none());
        let (used, _) = again.used(&places(&again)).unwrap();
        assert_eq!(rules(&used), ["base.test", "a.test"]);
        assert!(used.used("-a").is_none());
        let later = now + Duration::from_mins(10);
        assert!(texts.expired(now).is_none());
        assert_eq!(texts.next_end(), Some(later));
        let (over, line) = texts.expired(later).unwrap();
        assert_eq!(line, "the time of `a.test` is over");
        assert_eq!(rules(&over), ["base.test", "GET b.test"]);
        assert!(texts.without("c.test").is_err());
        assert!(texts.without("base.test").is_err());
        let (none, _) = texts.without("").unwrap();
        assert_eq!(rules(&none), ["base.test"]);
        assert!(none.without("").is_err());
        let mut texts = texts;
        texts.forget_once();
        assert_eq!(rules(&texts), ["base.test", "a.test"]);
    }

    #[test]
    fn there_are_only_so_many_and_only_requests_for_once() {
        let now = Instant::now();
        let mut texts = base();
        for number in 0..GRANTS_MAX {
            let rule = format!("h{number}.test");
            texts = texts
                .with(&request(&rule, 0, GrantUses::All), now)
                .unwrap()
                .0;
        }
        let more = texts.with(&request("more.test", 0, GrantUses::All), now);
        assert!(more.unwrap_err().contains("64"));
        assert!(
            texts
                .with(&request("h3.test", 5, GrantUses::All), now)
                .is_ok()
        );
        for rule in [
            "tcp://a.test:1",
            "tls://a.test",
            "TCP://a.test:1",
            "unix:///x",
            "udp://a.test:1",
        ] {
            assert!(
                base()
                    .with(&request(rule, 0, GrantUses::Once), now)
                    .is_err(),
                "{rule}"
            );
            assert!(
                base().with(&request(rule, 0, GrantUses::All), now).is_ok(),
                "{rule}"
            );
        }
        for rule in ["a.test", "GET https://a.test/x", "wss://a.test"] {
            assert!(
                base().with(&request(rule, 0, GrantUses::Once), now).is_ok(),
                "{rule}"
            );
        }
        assert!(base().with(&request(" ", 0, GrantUses::All), now).is_err());
    }
}
