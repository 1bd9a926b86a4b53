//! Which records somebody asked for. Options in, a yes or no for each record
//! out; knows no file, and the time only as it is told.

use std::time::{Duration, SystemTime};

use outgate_record::{BlockHead, Outcome, timestamp};

use super::Record;
use super::arguments::{self, Filter};
use super::prefilter::{self, Prefilter, Term};

/// A question to every record.
#[derive(Debug, Default)]
pub(crate) struct Wanted {
    verdict: Option<arguments::Verdict>,
    hosts: Vec<Host>,
    programs: Vec<String>,
    kinds: Vec<String>,
    rule: Option<String>,
    name: Option<String>,
    since: Option<String>,
    until: Option<String>,
    /// The same, as far as bytes tell it.
    prefilter: Prefilter,
}

/// A host as it was asked for.
#[derive(Debug)]
enum Host {
    Itself(String),
    /// Every name below.
    Below(String),
    Every,
}

impl Host {
    fn parse(text: &str) -> Self {
        let text = text.trim_end_matches('.').to_ascii_lowercase();
        match text.strip_prefix("*.").or(text.strip_prefix("**.")) {
            _ if text == "*" => Self::Every,
            Some(rest) => Self::Below(format!(".{rest}")),
            None => Self::Itself(text.trim_matches(['[', ']']).to_owned()),
        }
    }

    fn covers(&self, host: &str) -> bool {
        match self {
            Self::Itself(own) => own == host,
            Self::Below(end) => host.ends_with(end.as_str()),
            Self::Every => !host.is_empty(),
        }
    }
}

impl Wanted {
    /// What the options ask for, at this time.
    pub(crate) fn of(filter: &Filter, now: SystemTime) -> Result<Self, String> {
        let time = |text: &Option<String>| text.as_deref().map(|text| point(text, now)).transpose();
        let mut own = Self {
            verdict: filter.verdict,
            hosts: filter.host.iter().map(|text| Host::parse(text)).collect(),
            programs: filter.program.clone(),
            kinds: filter.kind.clone(),
            rule: filter.rule.clone(),
            name: filter.name.clone(),
            since: time(&filter.since)?,
            until: time(&filter.until)?,
            prefilter: Prefilter::default(),
        };
        own.prefilter = own.prefiltered();
        Ok(own)
    }

    /// What a line must have.
    fn prefiltered(&self) -> Prefilter {
        let mut prefilter = Prefilter::default();
        // What is rarest, first.
        let every = self.hosts.iter().any(|host| matches!(host, Host::Every));
        let hosts = self.hosts.iter().filter_map(|host| match host {
            Host::Itself(name) => Some(Term::Host(name.clone())),
            Host::Below(end) => Some(Term::Below(end.strip_prefix('.')?.to_owned())),
            Host::Every => None,
        });
        if !every {
            prefilter.one_of(hosts.collect());
        }
        prefilter.one_of(self.name.iter().cloned().map(Term::Sandbox).collect());
        prefilter.one_of(self.rule.iter().cloned().map(Term::Rule).collect());
        prefilter.one_of(self.programs.iter().cloned().map(Term::Program).collect());
        prefilter.one_of(self.kinds.iter().cloned().map(Term::Kind).collect());
        let verdict = self.verdict.map(|verdict| match verdict {
            arguments::Verdict::Allow => Term::Verdict(Outcome::Allow.token()),
            arguments::Verdict::Deny => Term::Verdict(Outcome::Deny.token()),
            arguments::Verdict::Note => Term::Verdict(Outcome::Note.token()),
            arguments::Verdict::Monitor => Term::Monitored,
        });
        prefilter.one_of(verdict.into_iter().collect());
        prefilter
    }

    /// Whether a line has to be read.
    pub(crate) fn may_be(&self, line: &[u8]) -> bool {
        let is_asked = self.since.is_some() || self.until.is_some();
        let time = is_asked.then(|| prefilter::time(line)).flatten();
        time.is_none_or(|time| self.is_then(time)) && self.prefilter.may_be(line)
    }

    /// Whether a block of a compressed record has to be opened.
    pub(crate) fn may_be_in(&self, head: &BlockHead) -> bool {
        let (first, last) = head.times;
        let time = |millis: u64| {
            let since = Duration::from_millis(millis);
            SystemTime::UNIX_EPOCH.checked_add(since).map(timestamp)
        };
        let is_before = || {
            let since = self.since.as_deref();
            // A record without a time that can be read counts as of 1970, and has to be read.
            since.is_some_and(|since| first > 0 && time(last).is_some_and(|last| *last < *since))
        };
        let is_after = || {
            let until = self.until.as_deref();
            let is_after = |until: &str, first: &str| first > until && !first.starts_with(until);
            until.is_some_and(|until| time(first).is_some_and(|first| is_after(until, &first)))
        };
        !is_before() && !is_after() && self.prefilter.may_be_in(head)
    }

    /// Whether a time is among those asked for.
    fn is_then(&self, time: &str) -> bool {
        self.since.as_deref().is_none_or(|since| time >= since)
            // Up to a day is up to its end.
            && self.until.as_deref().is_none_or(|until| time <= until || time.starts_with(until))
    }

    /// Whether a record is one of them.
    pub(crate) fn takes(&self, record: &Record) -> bool {
        let host = record.host();
        let (path, program) = (record.executable(), record.program());
        let is_program = |wanted: &String| wanted == path || wanted == program;
        let is_rule = |wanted: &String| {
            record.rule.as_ref().is_some_and(|rule| {
                rule.text.contains(wanted.as_str()) || rule.place.contains(wanted.as_str())
            })
        };
        let is_verdict = |verdict: arguments::Verdict| match verdict {
            arguments::Verdict::Allow => record.verdict == Outcome::Allow,
            arguments::Verdict::Deny => record.verdict == Outcome::Deny,
            arguments::Verdict::Note => record.verdict == Outcome::Note,
            arguments::Verdict::Monitor => record.is_monitored(),
        };
        self.verdict.is_none_or(is_verdict)
            && (self.hosts.is_empty() || self.hosts.iter().any(|wanted| wanted.covers(host)))
            && (self.programs.is_empty() || self.programs.iter().any(is_program))
            && (self.kinds.is_empty() || self.kinds.iter().any(|kind| kind == record.kind.as_str()))
            && self.rule.as_ref().is_none_or(is_rule)
            && self
                .name
                .as_ref()
                .is_none_or(|name| *name == record.sandbox)
            && self.is_then(&record.time)
    }
}

/// A time as it compares with those of records: written out, or so long ago.
fn point(text: &str, now: SystemTime) -> Result<String, String> {
    const FORM: &[u8] = b"0000-00-00T00:00:00.000Z";
    let wrong = || {
        format!("`{text}` is no time: write 2026-11-21, 2026-11-21T12:00 (UTC), or 10m, 2h, 7d ago")
    };
    if let Some(ago) = ago(text) {
        let then = now.checked_sub(ago).unwrap_or(SystemTime::UNIX_EPOCH);
        return Ok(timestamp(then));
    }
    let text = text.trim_end_matches('Z');
    let fits = |(byte, form): (u8, &u8)| match form {
        b'0' => byte.is_ascii_digit(),
        form => byte == *form,
    };
    let is_time = text.len() >= 4 && text.len() < FORM.len() && text.bytes().zip(FORM).all(fits);
    is_time.then(|| text.to_owned()).ok_or_else(wrong)
}

fn ago(text: &str) -> Option<Duration> {
    let unit = text.chars().next_back()?;
    let seconds = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3600,
        'd' => 86_400,
        _ => return None,
    };
    let number: u64 = text.strip_suffix(unit)?.parse().ok()?;
    Some(Duration::from_secs(number.checked_mul(seconds)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(line: &str) -> Record {
        Record::parse(line.as_bytes()).unwrap()
    }

    fn filter() -> Filter {
        Filter {
            verdict: None,
            host: Vec::new(),
            program: Vec::new(),
            kind: Vec::new(),
            rule: None,
            name: None,
            since: None,
            until: None,
            json: false,
        }
    }

    const REQUEST: &str = r#"{"run":"r","sandbox":"s","time":"2026-11-21T12:30:00.000Z","kind":"request","verdict":"deny","target":"https://a.b.test:8443","executable":"/usr/bin/curl","rule":{"id":3,"text":"* a.b.test/admin/**","place":"agent.toml:7"}}"#;

    #[test]
    fn each_question_has_a_yes_and_a_no_beside_it() {
        let takes = |change: &dyn Fn(&mut Filter)| {
            let mut filter = filter();
            change(&mut filter);
            let wanted = Wanted::of(&filter, SystemTime::UNIX_EPOCH).unwrap();
            wanted.takes(&record(REQUEST))
        };
        let texts = |text: &str| vec![text.to_owned()];
        let text = |text: &str| Some(text.to_owned());
        assert!(takes(&|_| {}));
        for (host, expected) in [
            ("a.b.test", true),
            ("A.B.Test.", true),
            ("b.test", false),
            ("*.b.test", true),
            ("*.test", true),
            ("*.a.b.test", false),
            ("*", true),
        ] {
            assert_eq!(takes(&|f| f.host = texts(host)), expected, "{host}");
        }
        for (program, expected) in [("curl", true), ("/usr/bin/curl", true), ("url", false)] {
            assert_eq!(
                takes(&|f| f.program = texts(program)),
                expected,
                "{program}"
            );
        }
        for (rule, expected) in [("admin", true), ("agent.toml", true), ("x.toml", false)] {
            assert_eq!(takes(&|f| f.rule = text(rule)), expected, "{rule}");
        }
        for (since, until, expected) in [
            ("2026-11-21", "2026-11-21", true),
            ("2026-11-21T12:30", "2026-11-21T12:30", true),
            ("2026-11-21T12:30:00.001Z", "2027", false),
            ("2026", "2026-11-21T12:29", false),
            ("2026-11-21T12:30:00.000", "2026-11-21T12:30:00.000Z", true),
        ] {
            let both = |f: &mut Filter| {
                f.since = text(since);
                f.until = text(until);
            };
            assert_eq!(takes(&both), expected, "{since} {until}");
        }
        assert!(takes(&|f| f.verdict = Some(arguments::Verdict::Deny)));
        assert!(!takes(&|f| f.verdict = Some(arguments::Verdict::Allow)));
        assert!(!takes(&|f| f.kind = texts("connect")));
        assert!(!takes(&|f| f.name = text("t")));
    }

    #[test]
    fn times_ago_are_from_now_and_what_is_no_time_is_refused() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_hours(25);
        for (text, time) in [
            ("0s", "1970-01-02T01:00:00.000Z"),
            ("30m", "1970-01-02T00:30:00.000Z"),
            ("1d", "1970-01-01T01:00:00.000Z"),
            ("9d", "1970-01-01T00:00:00.000Z"),
        ] {
            assert_eq!(point(text, now), Ok(time.to_owned()));
        }
        for text in ["", "1", "x", "1y", "-1h", "2026/11/21", "20-11-21", "12:30"] {
            assert!(point(text, now).is_err(), "{text}");
        }
    }
}
