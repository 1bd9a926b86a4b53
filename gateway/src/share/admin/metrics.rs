//! The counters and gauges of a shared gateway in the text format of Prometheus. Every label
//! is a word of a closed set, so that no command and no user makes the page longer.

use std::fmt::Write;

use super::super::SharedGateway;
use super::process::OwnProcess;
use crate::tenant::Share;

/// A page of metrics.
#[derive(Debug, Default)]
struct MetricPage(String);

impl MetricPage {
    /// Begins a metric: `kind` is `counter` or `gauge`.
    fn begin(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a string does not fail.
        writeln!(self.0, "# HELP outgate_{name} {help}").ok();
        writeln!(self.0, "# TYPE outgate_{name} {kind}").ok();
    }

    /// One sample; `labels` is empty or in braces.
    fn sample(&mut self, name: &str, labels: &str, value: u64) {
        writeln!(self.0, "outgate_{name}{labels} {value}").ok();
    }

    fn counter(&mut self, name: &str, help: &str, value: u64) {
        self.begin(name, "counter", help);
        self.sample(name, "", value);
    }

    fn gauge(&mut self, name: &str, help: &str, value: u64) {
        self.begin(name, "gauge", help);
        self.sample(name, "", value);
    }

    fn share(&mut self, name: &str, help: &str, share: Share) {
        self.gauge(name, help, wide(share.used));
        let limit = format!("{name}_limit");
        self.gauge(&limit, "How many of them there may be.", wide(share.limit));
    }
}

fn wide(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

/// All of them.
pub(super) fn text(shared: &SharedGateway) -> String {
    let mut page = MetricPage::default();
    page.begin("build_info", "gauge", "The version that runs.");
    let version = format!("{{version=\"{}\"}}", env!("CARGO_PKG_VERSION"));
    page.sample("build_info", &version, 1);
    let uptime = shared.started.elapsed().as_secs();
    page.gauge("uptime_seconds", "Seconds since the start.", uptime);
    load(&mut page, shared);
    decisions(&mut page, shared);
    record(&mut page, shared);
    process(&mut page, shared);
    page.0
}

fn load(page: &mut MetricPage, shared: &SharedGateway) {
    let tenants = &shared.tenants;
    page.share(
        "sandboxes",
        "Sandboxes that are registered.",
        tenants.sessions(),
    );
    page.counter(
        "sandboxes_total",
        "Sandboxes that were ever taken.",
        tenants.taken(),
    );
    let users = wide(tenants.accounts().len());
    page.gauge("users", "Users with a sandbox.", users);
    let tokens = wide(tenants.tokens());
    page.gauge("tokens", "Tokens with a sandbox.", tokens);
    page.begin(
        "sandboxes_refused_total",
        "counter",
        "Sandboxes that were refused, by the limit.",
    );
    for (limit, count) in shared.refused.all() {
        let labels = format!("{{limit=\"{limit}\"}}");
        page.sample("sandboxes_refused_total", &labels, count);
    }
    page.share(
        "connections",
        "Connections that are served.",
        tenants.flows(),
    );
    let under_way = wide(shared.under_way.count());
    page.gauge(
        "under_way",
        "Requests and relayed connections that are under way.",
        under_way,
    );
    let (asked, failed) = shared.system.lookups();
    page.counter(
        "dns_lookups_total",
        "Names that the DNS was asked for.",
        asked,
    );
    page.counter(
        "dns_failures_total",
        "Of them those without an answer.",
        failed,
    );
    let generation = shared.generation();
    page.gauge(
        "policy_generation",
        "The number of the policy in force.",
        generation,
    );
}

fn decisions(page: &mut MetricPage, shared: &SharedGateway) {
    let counts = shared.audit.counts();
    page.begin(
        "events_total",
        "counter",
        "Recorded events, by what they are about and the verdict.",
    );
    for (kind, verdict, count) in counts.events() {
        let (kind, verdict) = (kind.token(), verdict.token());
        let labels = format!("{{kind=\"{kind}\",verdict=\"{verdict}\"}}");
        page.sample("events_total", &labels, count);
    }
    page.begin("denials_total", "counter", "Denials, by their reason.");
    for (reason, count) in counts.denials() {
        let labels = format!("{{reason=\"{}\"}}", reason.token());
        page.sample("denials_total", &labels, count);
    }
    let findings = counts.findings();
    page.begin(
        "findings_total",
        "counter",
        "Credentials on their way out, by what was done.",
    );
    page.sample("findings_total", "{action=\"block\"}", findings.blocked);
    page.sample("findings_total", "{action=\"warn\"}", findings.warned);
    let (up, down) = counts.bytes();
    page.begin(
        "bytes_total",
        "counter",
        "Bytes of connections that ended: up is from commands.",
    );
    page.sample("bytes_total", "{direction=\"up\"}", up);
    page.sample("bytes_total", "{direction=\"down\"}", down);
}

fn record(page: &mut MetricPage, shared: &SharedGateway) {
    let (written, failed) = shared.audit.counts().writes();
    page.counter("record_writes_total", "Records that were written.", written);
    page.counter(
        "record_failures_total",
        "Records that could not be written.",
        failed,
    );
    let state = shared.audit.state();
    page.counter(
        "record_lost_total",
        "Records that were dropped and counted.",
        state.lost,
    );
    let is_writable = u64::from(!state.is_failing);
    page.gauge(
        "record_writable",
        "1 while records can be written.",
        is_writable,
    );
    let is_ending = u64::from(*shared.ending.borrow());
    page.gauge("ending", "1 once it takes no new work.", is_ending);
}

fn process(page: &mut MetricPage, shared: &SharedGateway) {
    if let Some(count) = shared.process.open_files() {
        page.gauge("open_files", "Files that are open.", count);
    }
    let limit = OwnProcess::open_files_limit();
    page.gauge("open_files_limit", "How many may be.", limit);
    if let Some(bytes) = shared.process.resident_bytes() {
        page.gauge("resident_memory_bytes", "Memory of the process.", bytes);
    }
}
