//! What is recorded, as it is recorded, for who watches a shared gateway: the last events in
//! a ring with numbers, and what each sandbox did in numbers. Who reads too slowly finds older
//! numbers gone, and says so; who writes never waits for anybody.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use outgate_handoff::Parent;
use outgate_record::{Alarm, Outcome, Record};
use serde_json::{Value, json};

use super::RecordOwner;
use crate::text::shortened;

/// Events that are kept: some screens, or half a second of a busy gateway.
const EVENTS_MAX: usize = 512;
/// Bytes of all of them together.
const EVENTS_BYTES_MAX: usize = 512 * 1024;
/// Bytes of one of their texts.
const TEXT_BYTES_MAX: usize = 512;
/// How long events are kept for who asks now and then, after each time.
const POLLED_TIME: Duration = Duration::from_secs(5);
/// Findings of one sandbox that are kept.
const FOUND_MAX: usize = 8;

/// The last events of all sandboxes, kept while somebody watches.
#[derive(Debug, Default)]
pub(crate) struct LiveFeed {
    watchers: AtomicUsize,
    polled: AtomicBool,
    ring: Mutex<EventRing>,
}

#[derive(Debug, Default)]
struct EventRing {
    /// The number of the next one.
    next: u64,
    bytes: usize,
    /// When somebody asked last.
    polled: Option<Instant>,
    /// Each as JSON, the newest last.
    events: VecDeque<Arc<str>>,
}

/// Events from some number on.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct LiveEvents {
    pub(crate) events: Vec<Arc<str>>,
    /// The number of the next one.
    pub(crate) next: u64,
    /// How many were gone before they were asked for.
    pub(crate) dropped: u64,
}

impl LiveEvents {
    /// As a JSON object.
    pub(crate) fn json(&self) -> String {
        let (events, next, dropped) = (self.events.join(","), self.next, self.dropped);
        format!("{{\"next\":{next},\"dropped\":{dropped},\"events\":[{events}]}}")
    }
}

/// Somebody who watches, for as long as this lives.
#[derive(Debug)]
pub(crate) struct LiveWatcher(Arc<LiveFeed>);

impl Drop for LiveWatcher {
    fn drop(&mut self) {
        self.0.watchers.fetch_sub(1, Ordering::Relaxed);
    }
}

impl LiveFeed {
    /// Has events be kept.
    pub(crate) fn watch(self: &Arc<Self>) -> LiveWatcher {
        self.watchers.fetch_add(1, Ordering::Relaxed);
        LiveWatcher(Arc::clone(self))
    }

    /// The same for a while, for who asks again soon.
    pub(crate) fn poll(&self) {
        if let Ok(mut ring) = self.ring.lock() {
            ring.polled = Some(Instant::now());
            self.polled.store(true, Ordering::Relaxed);
        }
    }

    /// The number of the next event.
    pub(crate) fn next(&self) -> u64 {
        self.ring.lock().map_or(0, |ring| ring.next)
    }

    /// Those from this number on.
    pub(crate) fn since(&self, from: u64) -> LiveEvents {
        let Ok(ring) = self.ring.lock() else {
            return LiveEvents {
                events: Vec::new(),
                next: from,
                dropped: 0,
            };
        };
        let kept = u64::try_from(ring.events.len()).unwrap_or(u64::MAX);
        let first = ring.next.saturating_sub(kept);
        let skipped = usize::try_from(from.saturating_sub(first)).unwrap_or(usize::MAX);
        LiveEvents {
            events: ring.events.iter().skip(skipped).cloned().collect(),
            next: ring.next,
            dropped: first.saturating_sub(from),
        }
    }

    /// Keeps one where somebody watches.
    pub(super) fn add(
        &self,
        owner: Option<RecordOwner>,
        sandbox: &str,
        record: &Record<'_, Parent>,
    ) {
        let is_watched = self.watchers.load(Ordering::Relaxed) > 0;
        if !is_watched && !self.polled.load(Ordering::Relaxed) {
            return;
        }
        let Ok(mut ring) = self.ring.lock() else {
            return;
        };
        let is_polled = ring.polled.is_some_and(|at| at.elapsed() < POLLED_TIME);
        if !is_watched && !is_polled {
            self.polled.store(false, Ordering::Relaxed);
            return;
        }
        let event: Arc<str> = event(ring.next, owner, sandbox, record).to_string().into();
        ring.next = ring.next.saturating_add(1);
        ring.bytes = ring.bytes.saturating_add(event.len());
        ring.events.push_back(event);
        while ring.events.len() > EVENTS_MAX || ring.bytes > EVENTS_BYTES_MAX {
            let Some(oldest) = ring.events.pop_front() else {
                break;
            };
            ring.bytes = ring.bytes.saturating_sub(oldest.len());
        }
    }
}

fn event(
    number: u64,
    owner: Option<RecordOwner>,
    sandbox: &str,
    record: &Record<'_, Parent>,
) -> Value {
    let cut = |text: &str| shortened(text, TEXT_BYTES_MAX);
    let text = |text: &Option<std::borrow::Cow<'_, str>>| text.as_deref().map(cut);
    json!({
        "n": number,
        "session": owner.map(|owner| owner.session),
        "sandbox": cut(sandbox),
        "kind": record.kind.as_str(),
        "verdict": record.verdict.token(),
        "monitor": record.monitor.is_some(),
        "alarm": record.alarm == Alarm::Raised,
        "target": cut(&record.target),
        "method": text(&record.method),
        "path": text(&record.path),
        "program": text(&record.executable),
        "reason": record.reason.as_ref().map(|reason| cut(reason.as_str())),
        "detail": text(&record.detail),
        "up": record.bytes_up,
        "down": record.bytes_down,
        "ms": record.duration_ms,
        "finding": record.finding.as_ref().map(|found| cut(&found.name)),
    })
}

/// What one sandbox did, in numbers, and what was found in what it sent last.
#[derive(Debug, Default)]
pub(crate) struct LiveCounts {
    allowed: AtomicU64,
    denied: AtomicU64,
    passed: AtomicU64,
    alarms: AtomicU64,
    findings: AtomicU64,
    up: AtomicU64,
    down: AtomicU64,
    found: Mutex<VecDeque<Value>>,
}

impl LiveCounts {
    pub(super) fn add(&self, record: &Record<'_, Parent>) {
        let one = |count: &AtomicU64| count.fetch_add(1, Ordering::Relaxed);
        match record.verdict {
            Outcome::Allow => one(&self.allowed),
            Outcome::Deny => one(&self.denied),
            Outcome::Note => 0,
        };
        if record.monitor.is_some() {
            one(&self.passed);
        }
        if record.alarm == Alarm::Raised {
            one(&self.alarms);
        }
        let bytes = [(&self.up, record.bytes_up), (&self.down, record.bytes_down)];
        for (count, bytes) in bytes {
            count.fetch_add(bytes.unwrap_or(0), Ordering::Relaxed);
        }
        let Some(found) = &record.finding else {
            return;
        };
        one(&self.findings);
        let cut = |text: &str| shortened(text, TEXT_BYTES_MAX);
        let shown = json!({
            "name": cut(&found.name), "place": cut(&found.place),
            "action": cut(&found.action), "target": cut(&record.target),
        });
        if let Ok(mut kept) = self.found.lock() {
            kept.push_front(shown);
            kept.truncate(FOUND_MAX);
        }
    }

    /// All of them.
    pub(crate) fn json(&self) -> Value {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let found = self.found.lock();
        let found: Vec<Value> =
            found.map_or_else(|_| Vec::new(), |own| own.iter().cloned().collect());
        json!({
            "allowed": of(&self.allowed), "denied": of(&self.denied),
            "passed": of(&self.passed), "alarms": of(&self.alarms),
            "findings": of(&self.findings), "up": of(&self.up), "down": of(&self.down),
            "found": found,
        })
    }
}

#[cfg(test)]
mod tests {
    use outgate_record::Kind;

    use super::*;
    use crate::audit::Event;

    fn add(feed: &LiveFeed, target: &str) {
        let event = Event::new(Kind::Request, Outcome::Deny, target);
        feed.add(None, "s", event.parts());
    }

    #[test]
    fn who_is_slow_is_told_how_much_is_gone_and_nothing_is_kept_for_nobody() {
        let feed = Arc::new(LiveFeed::default());
        add(&feed, "a.test");
        assert_eq!(feed.next(), 0, "nobody watches");
        let watcher = feed.watch();
        for _ in 0..EVENTS_MAX + 7 {
            add(&feed, "a.test");
        }
        let seen = feed.since(0);
        assert_eq!((seen.events.len(), seen.dropped), (EVENTS_MAX, 7));
        let again = feed.since(seen.next);
        assert_eq!((again.events.len(), again.dropped), (0, 0));
        add(&feed, "b.test");
        let one = feed.since(seen.next);
        assert_eq!((one.events.len(), one.dropped), (1, 0));
        assert!(one.events.iter().all(|event| event.contains("b.test")));
        drop(watcher);
        add(&feed, "a.test");
        assert_eq!(feed.next(), one.next);
        feed.poll();
        add(&feed, "a.test");
        assert_eq!(feed.since(one.next).events.len(), 1, "somebody asks");
    }

    #[test]
    fn long_texts_keep_within_the_bytes() {
        let feed = Arc::new(LiveFeed::default());
        let _watcher = feed.watch();
        let long = "\u{1}".repeat(100_000);
        for _ in 0..EVENTS_MAX {
            add(&feed, &long);
        }
        let bytes: usize = feed.since(0).events.iter().map(|event| event.len()).sum();
        assert!(
            (EVENTS_BYTES_MAX / 2..=EVENTS_BYTES_MAX).contains(&bytes),
            "{bytes}"
        );
    }
}
