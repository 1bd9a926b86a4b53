//! A scenario: one use of one client, made twice. Where the rules allow it, it
//! must do what it does bare, and the origins must have seen exactly that. Where
//! they do not, it must be told, soon, and the origins must have seen nothing:
//! no request, no connection, no question for a name.

use std::fmt;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use outgate_harness::{Outcome, Sandbox};

use crate::stage::{MARK, Seen, Stage, is_opened, spelt};
use crate::table;

/// Longest time until a client that may not go somewhere has given up, on a
/// machine that does other things too. How much longer than an allowed answer
/// it really takes is measured by `denials`.
const DENIED_SECONDS_MAX: u64 = 25;

/// Longest time of a run.
pub(crate) const RUN_SECONDS_MAX: u64 = 60;

/// Scenarios of clients that no variable and no file of settings makes trust the
/// authority of a run, but only what they find in the place of their bundle.
const UNTRUSTING: [&str; 2] = ["aria2 in pieces", "pycurl"];

/// One use of one client.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scenario<'a> {
    /// What it is, in failures.
    pub name: &'a str,
    /// The rules under which it works.
    pub allow: &'a [&'a str],
    /// What `bash` runs.
    pub script: &'a str,
    /// What stands in its standard output when it worked, and not otherwise.
    pub shows: &'a str,
    /// The requests the origins see when it worked. An entry that ends with `*`
    /// stands for one or more.
    pub requests: &'a [&'a str],
    /// What the client itself says when it was denied; empty: it says nothing
    /// of its own that is worth a promise.
    pub told: &'a str,
    /// The host of the denial, as outgate's line names it.
    pub host: &'a str,
}

impl Scenario<'_> {
    /// A plain one: a GET of a page of `site.example`.
    pub(crate) const PLAIN: Scenario<'static> = Scenario {
        name: "",
        allow: &["GET http://site.example/hello"],
        script: "",
        shows: MARK,
        requests: &["site.example GET /hello"],
        told: "403",
        host: "site.example",
    };

    /// Makes it allowed and denied.
    ///
    /// # Panics
    /// When either does not end as it must.
    pub(crate) fn check(&self, stage: &mut Stage<'_>) {
        self.check_allowed(stage);
        self.check_denied(stage, &["http://nothing.example"]);
        table::add(stage, self);
    }

    /// Makes it where it may be made.
    pub(crate) fn check_allowed(&self, stage: &mut Stage<'_>) {
        let run = self.run(stage, self.allow);
        let seen = stage.seen();
        let place = format!("{}, allowed: {run}\n{seen:?}", self.name);
        assert_eq!(run.outcome.code, Some(0), "{place}");
        assert!(!run.outcome.held, "{place}");
        assert!(run.outcome.stdout.contains(self.shows), "{place}");
        assert_eq!(run.outcome.stderr, "", "no complaint: {place}");
        let requests: Vec<String> = self.requests.iter().map(|one| spelt(one)).collect();
        let requests: Vec<&str> = requests.iter().map(String::as_str).collect();
        assert_requests(&seen, &requests, &place);
        let asked = |name: &String| self.allow.iter().any(|rule| rule.contains(name.as_str()));
        assert!(seen.asked.iter().all(asked), "names asked: {place}");
    }

    /// Makes it with `rules`, which do not allow it.
    pub(crate) fn check_denied(&self, stage: &mut Stage<'_>, rules: &[&str]) {
        let run = self.run(stage, rules);
        let place = format!("{}, denied: {run}", self.name);
        assert_denied(stage, &run, self.host, &place);
        assert!(!run.outcome.stdout.contains(self.shows), "{place}");
        assert!(run.words().contains(&spelt(self.told)), "told: {place}");
    }

    /// Makes it where it may be made, with a client that does not trust the
    /// authority of the run: nothing arrives, and the person learns why.
    fn check_untrusting(&self, stage: &mut Stage<'_>) {
        let run = self.run(stage, self.allow);
        let place = format!("{}, untrusting: {run}", self.name);
        assert_ne!(run.outcome.code, Some(0), "{place}");
        assert!(!run.outcome.stdout.contains(self.shows), "{place}");
        assert!(
            run.outcome.stderr.contains("tls://"),
            "the way out: {place}"
        );
        assert_eq!(stage.seen().requests, [""; 0], "{place}");
        let spliced = stage.allowing(self.allow).option("--trust", "splice");
        let run = Run::make(stage, spliced, self.script);
        let place = format!("{}, spliced: {run}", self.name);
        assert_eq!(run.outcome.code, Some(0), "{place}");
        assert!(run.outcome.stdout.contains(self.shows), "{place}");
        assert_requests(&stage.seen(), self.requests, &place);
    }

    fn run(&self, stage: &Stage<'_>, rules: &[&str]) -> Run {
        Run::make(stage, stage.allowing(rules), self.script)
    }
}

/// A script that ran confined. Clients write their errors in pieces, between
/// which outgate's lines may come, so each of the two has its own place here.
#[derive(Debug)]
pub(crate) struct Run {
    /// Its standard output, outgate's standard error, and how it ended.
    pub outcome: Outcome,
    /// What it wrote to standard error.
    pub errors: String,
}

impl Run {
    /// Runs `bash -c SCRIPT` at home in an empty working directory.
    pub(crate) fn make(stage: &Stage<'_>, sandbox: Sandbox<'_>, script: &str) -> Self {
        stage.empty_work();
        let script = format!("export HOME=$PWD; exec 2> errors; {}", spelt(script));
        let line = ["bash", "-c", &script].map(str::to_owned);
        let limit = Duration::from_secs(RUN_SECONDS_MAX);
        let outcome = sandbox.limit(limit).run(&line);
        let errors = fs::read(stage.work().join("errors")).unwrap_or_default();
        Self {
            outcome,
            errors: String::from_utf8_lossy(&errors).into_owned(),
        }
    }

    /// Everything the client said itself.
    pub(crate) fn words(&self) -> String {
        format!("{}{}", self.outcome.stdout, self.errors)
    }

    /// The lines with which outgate names `host`.
    pub(crate) fn lines_about(&self, host: &str) -> Vec<&str> {
        let lines = self.outcome.stderr.lines();
        let lines = lines.filter(|line| line.starts_with("outgate: denied "));
        lines.filter(|line| line.contains(host)).collect()
    }
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n--- its errors\n{}---", self.outcome, self.errors)
    }
}

/// Makes all of them and tells of every one that failed, not of the first.
///
/// # Panics
/// When one failed.
pub(crate) fn check_all(stage: &mut Stage<'_>, scenarios: &[Scenario<'_>]) {
    let mut failed = Vec::new();
    for scenario in scenarios {
        let untrusting = is_opened() && UNTRUSTING.contains(&scenario.name);
        let check = AssertUnwindSafe(|| {
            if untrusting {
                scenario.check_untrusting(stage);
            } else {
                scenario.check(stage);
            }
        });
        if catch_unwind(check).is_err() {
            failed.push(scenario.name);
            stage.seen();
        }
    }
    assert!(failed.is_empty(), "failed: {failed:?}");
}

/// Asserts that a run ended soon, that outgate named `host`, and that nobody
/// outside learned of it.
///
/// # Panics
/// When something is different.
pub(crate) fn assert_denied(stage: &mut Stage<'_>, run: &Run, host: &str, place: &str) {
    assert!(run.outcome.code.is_some(), "it ended: {place}");
    let limit = Duration::from_secs(DENIED_SECONDS_MAX);
    assert!(run.outcome.elapsed < limit, "soon: {place}");
    assert!(
        !run.lines_about(host).is_empty(),
        "the person is told: {place}"
    );
    assert_eq!(stage.seen(), Seen::default(), "nothing arrives: {place}");
}

/// Asserts that exactly these requests arrived.
pub(crate) fn assert_requests(seen: &Seen, expected: &[&str], place: &str) {
    let matches = |entry: &str, request: &str| match entry.strip_suffix('*') {
        Some(beginning) => request.starts_with(beginning),
        None => entry == request,
    };
    for request in &seen.requests {
        let wanted = expected.iter().any(|entry| matches(entry, request));
        assert!(wanted, "`{request}` was not expected: {place}");
    }
    for entry in expected {
        let count =
            |all: &mut dyn Iterator<Item = &str>| all.filter(|one| matches(entry, one)).count();
        let arrived = count(&mut seen.requests.iter().map(String::as_str));
        assert!(arrived > 0, "`{entry}` did not arrive: {place}");
        if !entry.ends_with('*') {
            let wanted = expected.iter().filter(|one| one == &entry).count();
            assert_eq!(arrived, wanted, "`{entry}`: {place}");
        }
    }
}
