//! The sections of a page, one function each: what happened when, what went
//! where, what was denied, found, and not looked into. Each has an end, and says
//! so where it is empty.

use super::charts;
use super::denied::Denied;
use super::found::{Counted, Finding, Unseen, Why};
use super::html::{Html, counted};
use super::model::{Model, Peer};
use super::page::{lasted, moment, more};
use crate::audit::lines::size;
use outgate_record::{Alarm, Outcome, short};

/// Rows of one table.
const ROWS_MAX: usize = 40;
/// Options in the block that can be copied.
const FLAGS_MAX: usize = 40;

/// Planted credentials that left their place: before everything else.
pub(super) fn alarms(html: &mut Html, model: &Model) {
    let all = model.found.alarms_in_all;
    html.raw("<section class=\"card alarms\" aria-label=\"Alarms\">\n<h2>");
    html.text(&counted(all, "alarm", "alarms")).raw("</h2>\n<p>A planted credential has no use but to be found by whoever looks where there is nothing to look for. What sent it had read it first.</p>\n<ul>\n");
    for record in model.found.alarms.iter().take(ROWS_MAX) {
        html.element("<li><time>", &moment(record.at()), "</time> ");
        html.element("<strong>", &record.subject(), "</strong> by <code>");
        html.element("", record.executable(), "</code>");
        if let Some(pid) = record.pid {
            html.raw(" (process ").number(pid.into()).raw(")");
        }
        if !record.parents.is_empty() {
            html.element(
                "<br><small>started by ",
                &record.parents.join(", by "),
                "</small>",
            );
        }
        html.element("<br><small>", record.detail(), "</small></li>\n");
    }
    html.raw("</ul>\n");
    more(html, all, ROWS_MAX, "alarm", "alarms");
    html.raw("</section>\n");
}

pub(super) fn timeline(html: &mut Html, model: &Model) {
    html.raw("<section id=\"timeline\" class=\"card\">\n<h2>Timeline</h2>\n");
    let Some(bars) = model.timeline.bars() else {
        html.raw("<p class=\"empty\">Nothing was decided.</p>\n</section>\n");
        return;
    };
    html.raw("<ul class=\"legend\"><li class=\"allowed\">allowed</li><li class=\"denied\">denied</li><li class=\"finding\">finding</li>");
    if model.found.alarms_in_all > 0 {
        html.raw("<li class=\"alarm\">alarm</li>");
    }
    html.raw("</ul>\n");
    charts::timeline(html, &bars, moment);
    let columns = u64::try_from(bars.slices.len()).unwrap_or(0).max(24);
    let end = bars.from.saturating_add(columns.saturating_mul(bars.width));
    let time = |at: u64| moment(at).split(' ').nth(1).unwrap_or_default().to_owned();
    html.raw("<p class=\"scale\"><span>");
    let long = end.saturating_sub(bars.from) > 86_400_000;
    let shown = |at: u64| if long { moment(at) } else { time(at) };
    html.text(&shown(bars.from)).raw("</span><span>one bar: ");
    html.text(&lasted(bars.width))
        .raw("</span><span>")
        .text(&shown(end))
        .raw("</span></p>\n</section>\n");
}

/// What went from whom to whom, as a drawing and as tables.
pub(super) fn went(html: &mut Html, model: &Model) {
    html.raw("<section id=\"went\" class=\"card\">\n<h2>Where data went</h2>\n");
    if model.hosts.is_empty() {
        html.raw("<p class=\"empty\">No program asked for any host.</p>\n</section>\n");
        return;
    }
    if !model.pairs.is_empty() {
        charts::streams(html, model);
        html.raw("<p class=\"note\">A stream is as wide as its bytes have digits; a broken one was denied.</p>\n");
    }
    let hosts = model.hosts.by(|host| host.sum.weight());
    peers(html, "Host", "Asked by", &hosts, |name| name);
    more(
        html,
        unsigned(model.hosts.len()).saturating_add(model.hosts.left_out),
        ROWS_MAX,
        "host",
        "hosts",
    );
    let programs = model.programs.by(|program| program.sum.weight());
    if !programs.is_empty() {
        html.raw("<h3>By program</h3>\n");
        peers(html, "Program", "Hosts", &programs, short);
        more(
            html,
            unsigned(model.programs.len()).saturating_add(model.programs.left_out),
            ROWS_MAX,
            "program",
            "programs",
        );
    }
    budgets(html, model);
    html.raw("<p class=\"note\">Of HTTP the content is counted, of everything else every byte. What goes straight to its destination (<code>tcp://</code>) is not counted.</p>\n</section>\n");
}

/// Budgets that are nearly spent.
fn budgets(html: &mut Html, model: &Model) {
    if model.budgets.is_empty() {
        return;
    }
    html.raw("<h3>Budgets nearly spent</h3>\n<ul class=\"denials\">\n");
    for (at, target, detail) in &model.budgets {
        html.element("<li><p class=\"what\"><strong>", target, "</strong></p>");
        html.element("<p class=\"why\">", detail, "</p>");
        html.element(
            "<p class=\"who\"><time>",
            &moment(*at),
            "</time></p></li>\n",
        );
    }
    html.raw("</ul>\n");
}

fn peers(
    html: &mut Html,
    head: &'static str,
    others: &'static str,
    peers: &[(&String, &Peer)],
    shown: impl Fn(&str) -> &str,
) {
    let most = peers.iter().map(|(_, peer)| peer.sum.up).max().unwrap_or(0);
    html.raw("<table>\n<thead><tr><th scope=\"col\">").raw(head);
    html.raw("</th><th scope=\"col\" class=\"n\">Sent</th><th scope=\"col\" class=\"n\">Received</th><th scope=\"col\" class=\"n\">Allowed</th><th scope=\"col\" class=\"n\">Denied</th><th scope=\"col\">");
    html.raw(others).raw("</th></tr></thead>\n<tbody>\n");
    for (name, peer) in peers.iter().take(ROWS_MAX) {
        html.raw("<tr><th scope=\"row\"")
            .attribute("title", name)
            .raw(">");
        html.element("<code>", shown(name), "</code>");
        if peer.sum.passed > 0 {
            html.raw(" <span class=\"badge passed\">monitored ")
                .count(peer.sum.passed)
                .raw("</span>");
        }
        charts::bar(html, peer.sum.up, most);
        html.raw("</th>");
        amount(
            html,
            "<td class=\"n\" data-head=\"Sent\">",
            &size(peer.sum.up),
            peer.sum.up,
        );
        amount(
            html,
            "<td class=\"n\" data-head=\"Received\">",
            &size(peer.sum.down),
            peer.sum.down,
        );
        amount(
            html,
            "<td class=\"n\" data-head=\"Allowed\">",
            &peer.sum.allowed.to_string(),
            peer.sum.allowed,
        );
        let denied = if peer.sum.denied > 0 {
            "<td class=\"n deny\" data-head=\"Denied\">"
        } else {
            "<td class=\"n\" data-head=\"Denied\">"
        };
        amount(html, denied, &peer.sum.denied.to_string(), peer.sum.denied);
        html.raw("<td class=\"names\" data-head=\"")
            .raw(others)
            .raw("\">");
        names(html, peer.others.iter());
        html.raw("</td></tr>\n");
    }
    html.raw("</tbody>\n</table>\n");
}

fn amount(html: &mut Html, open: &'static str, text: &str, number: u64) {
    html.raw(open);
    if number == 0 {
        html.raw("<span class=\"zero\">").text(text).raw("</span>");
    } else {
        html.text(text);
    }
    html.raw("</td>");
}

fn names<'a>(html: &mut Html, names: impl Iterator<Item = &'a String>) {
    /// What fits a cell of the table.
    const SHOWN_MAX: usize = 5;
    let names: Vec<&String> = names.collect();
    for name in names.iter().take(SHOWN_MAX) {
        html.element("<span class=\"chip\">", name, "</span> ");
    }
    let left = names.len().saturating_sub(SHOWN_MAX);
    if left > 0 {
        html.element(
            "<span class=\"zero\">and ",
            &left.to_string(),
            " more</span>",
        );
    }
}

/// What was denied, and what would allow it.
pub(super) fn denied(html: &mut Html, model: &Model) {
    html.raw("<section id=\"denied\" class=\"card\">\n<h2>Denied, and what would allow it</h2>\n");
    let denials = &model.denials;
    if denials.told.is_empty() {
        html.raw("<p class=\"empty\">Nothing was denied by a rule, or for want of one.</p>\n</section>\n");
        return;
    }
    html.raw("<ul class=\"denials\">\n");
    for (subject, one) in denials.told.by(|denied| denied.count).iter().take(ROWS_MAX) {
        denial(html, ("<li><p class=\"what\"><strong>", subject), one);
    }
    html.raw("</ul>\n");
    let all = unsigned(denials.told.len()).saturating_add(denials.told.left_out);
    more(html, all, ROWS_MAX, "denial", "denials");
    let flags = denials.flags();
    if flags.len() > 1 {
        html.raw("<h3>To allow all of this</h3>\n<pre class=\"flags\"><code>");
        for flag in flags.iter().take(FLAGS_MAX) {
            html.text(flag).raw("\n");
        }
        html.raw("</code></pre>\n");
        more(html, unsigned(flags.len()), FLAGS_MAX, "rule", "rules");
    }
    html.raw("</section>\n");
}

pub(super) fn denial(html: &mut Html, (open, subject): (&'static str, &str), one: &Denied) {
    html.element(open, subject, "</strong>");
    if one.count > 1 {
        html.raw(" <span class=\"times\">")
            .count(one.count)
            .raw("&times;</span>");
    }
    html.element("</p>\n<p class=\"why\">", &one.because, "");
    if let Some((text, place)) = &one.rule {
        html.element(": <code>", text, "</code> ")
            .element("<small>", place, "</small>");
    }
    html.raw("</p>\n<p class=\"who\">");
    names(html, one.programs.iter());
    if one.last > 0 {
        html.element("<time>", &moment(one.last), "</time>");
    }
    html.raw("</p>");
    match &one.flag {
        Some(flag) => html.element("<p class=\"fix\">to allow <code>", flag, "</code></p>"),
        None => html,
    };
    html.raw("</li>\n");
}

/// Credentials on their way out.
pub(super) fn findings(html: &mut Html, model: &Model) {
    html.raw("<section id=\"findings\" class=\"card\">\n<h2>Findings</h2>\n");
    let found = &model.found.findings;
    let blind = model.found.blind_runs;
    if blind > 0 {
        html.element(
            "<p class=\"note warn\">",
            &counted(blind, "run was", "runs were"),
            " without a scan (<code>inspect.mode = \"off\"</code>): nobody looked for credentials in what it sent.</p>\n",
        );
    }
    if found.is_empty() && blind > 0 {
        html.raw("</section>\n");
        return;
    }
    if found.is_empty() {
        html.raw("<p class=\"empty\">No credential was found in what left.</p>\n</section>\n");
        return;
    }
    html.raw("<ul class=\"finds\">\n");
    let weight = |finding: &Finding| {
        (
            finding.alarm == Alarm::Raised,
            finding.verdict != Outcome::Deny,
            finding.count,
        )
    };
    for ((subject, _), finding) in found.by(weight).iter().take(ROWS_MAX) {
        self::finding(html, subject, finding);
    }
    html.raw("</ul>\n");
    more(
        html,
        unsigned(found.len()).saturating_add(found.left_out),
        ROWS_MAX,
        "finding",
        "findings",
    );
    html.raw("<p class=\"note\">Findings with the same mark are the same value. No value is kept anywhere.</p>\n</section>\n");
}

fn finding(html: &mut Html, subject: &str, finding: &Finding) {
    let found = &finding.found;
    html.raw(match (finding.alarm, finding.verdict) {
        (Alarm::Raised, _) => "<li class=\"alarm\"><p class=\"what\"><span class=\"badge alarm\">alarm</span> <strong>",
        (Alarm::None, Outcome::Deny) => "<li><p class=\"what\"><span class=\"badge held\">held back</span> <strong>",
        (Alarm::None, Outcome::Allow | Outcome::Note) => "<li><p class=\"what\"><span class=\"badge passed\">passed</span> <strong>",
    });
    html.text(&found.name).raw("</strong>");
    if finding.count > 1 {
        html.raw(" <span class=\"times\">")
            .count(finding.count)
            .raw("&times;</span>");
    }
    html.raw("</p>\n<p class=\"chain\">");
    for coding in found.chain.iter() {
        html.element(
            "<span class=\"link\">",
            coding,
            "</span><span class=\"to\">&rsaquo;</span>",
        );
    }
    html.element(
        "<span class=\"link end\">",
        &found.detector,
        "</span></p>\n",
    );
    html.element("<p class=\"why\">", subject, "");
    if !found.place.is_empty() {
        html.element(", in the ", &found.place, "");
        match &found.inside {
            Some(inside) => html
                .element(" at <code>", inside, "</code> (byte ")
                .number(found.offset)
                .raw(")"),
            None => html.raw(" at byte ").number(found.offset),
        };
    }
    html.raw("</p>\n");
    if found.place.is_empty() {
        html.element("<p class=\"why\">", &finding.because, "</p>\n");
    } else if found.issuers.is_empty() {
        html.raw("<p class=\"why\">It may go nowhere.</p>\n");
    } else {
        html.element(
            "<p class=\"why\">It may go to ",
            &found.issuers.join(", "),
            ".</p>\n",
        );
    }
    html.raw("<p class=\"who\">");
    names(html, finding.programs.iter());
    if finding.last > 0 {
        html.element("<time>", &moment(finding.last), "</time>");
    }
    if !found.mark.is_empty() {
        html.element(" <small>mark ", &found.mark, "</small>");
    }
    html.raw("</p>");
    if let Some(flag) = &finding.flag {
        html.element("<p class=\"fix\">to allow <code>", flag, "</code></p>");
    }
    html.raw("</li>\n");
}

/// What nobody looked into.
pub(super) fn unseen(html: &mut Html, model: &Model) {
    html.raw("<section id=\"unseen\" class=\"card\">\n<h2>Not looked into</h2>\n");
    let unseen = &model.found.unseen;
    if unseen.is_empty() {
        html.raw("<p class=\"empty\">Nothing left in a form that cannot be looked into.</p>\n</section>\n");
        return;
    }
    html.raw("<p class=\"note\">This went where rules allow it, and nobody could say what it was.</p>\n<table>\n<thead><tr><th scope=\"col\">Destination</th><th scope=\"col\">Why</th><th scope=\"col\" class=\"n\">Times</th><th scope=\"col\" class=\"n\">Sent</th><th scope=\"col\" class=\"n\">Received</th><th scope=\"col\">Allowed by</th></tr></thead>\n<tbody>\n");
    let rows = unseen.by(|one| (one.up, one.count));
    let most = rows.iter().map(|(_, one)| one.up).max().unwrap_or(0);
    for ((why, target), one) in rows.iter().take(ROWS_MAX) {
        html.element("<tr><th scope=\"row\"><code>", target, "</code>");
        charts::bar(html, one.up, most);
        html.element("</th><td data-head=\"Why\">", words(*why), "</td>");
        html.raw("<td class=\"n\" data-head=\"Times\">")
            .count(one.count)
            .raw("</td>");
        bytes(html, *why, one);
        html.raw("<td data-head=\"Allowed by\">");
        if let Some((text, place)) = &one.rule {
            html.element("<code>", text, "</code> ")
                .element("<small>", place, "</small>");
        }
        html.raw("</td></tr>\n");
    }
    html.raw("</tbody>\n</table>\n");
    more(
        html,
        unsigned(unseen.len()).saturating_add(unseen.left_out),
        ROWS_MAX,
        "destination",
        "destinations",
    );
    html.raw("</section>\n");
}

fn bytes(html: &mut Html, why: Why, one: &Unseen) {
    html.raw("<td class=\"n\" data-head=\"Sent\">");
    match one.counted {
        Counted::Yes => html.text(&size(one.up)),
        Counted::No => html.raw("<span class=\"zero\">not counted</span>"),
    };
    html.raw("</td><td class=\"n\" data-head=\"Received\">");
    match (one.counted, why) {
        (Counted::Yes, Why::Unopened | Why::Unix | Why::Direct) => html.text(&size(one.down)),
        (Counted::Yes, Why::Unscannable) | (Counted::No, _) => {
            html.raw("<span class=\"zero\">&ndash;</span>")
        }
    };
    html.raw("</td>");
}

fn words(why: Why) -> &'static str {
    match why {
        Why::Unopened => "TLS that was not opened",
        Why::Direct => "straight to its destination",
        Why::Unix => "a Unix socket",
        Why::Unscannable => "content that cannot be scanned",
    }
}

/// The runs, where there are several.
pub(super) fn runs(html: &mut Html, model: &Model) {
    if model.runs.len() < 2 {
        return;
    }
    html.raw("<section class=\"card\">\n<h2>Runs</h2>\n<table>\n<thead><tr><th scope=\"col\">Run</th><th scope=\"col\">Began</th><th scope=\"col\" class=\"n\">Sent</th><th scope=\"col\" class=\"n\">Allowed</th><th scope=\"col\" class=\"n\">Denied</th><th scope=\"col\">End</th></tr></thead>\n<tbody>\n");
    for ((name, _, sandbox), run) in model.runs.by(|run| run.first).iter().take(ROWS_MAX) {
        let sandbox = if sandbox.is_empty() { name } else { sandbox };
        html.element(
            "<tr><th scope=\"row\"><code>",
            sandbox,
            "</code><br><small>",
        );
        html.element("", &run.command, "</small>");
        if !run.mode.is_empty() {
            html.element(" <span class=\"badge passed\">", &run.mode, "</span>");
        }
        html.raw("</th>");
        html.element(
            "<td data-head=\"Began\"><time>",
            &moment(run.first),
            "</time></td>",
        );
        amount(
            html,
            "<td class=\"n\" data-head=\"Sent\">",
            &size(run.sum.up),
            run.sum.up,
        );
        amount(
            html,
            "<td class=\"n\" data-head=\"Allowed\">",
            &run.sum.allowed.to_string(),
            run.sum.allowed,
        );
        amount(
            html,
            "<td class=\"n\" data-head=\"Denied\">",
            &run.sum.denied.to_string(),
            run.sum.denied,
        );
        html.raw("<td data-head=\"End\">");
        let lasted = lasted(run.last.saturating_sub(run.first));
        let end = if run.end.is_empty() {
            "no end in the record"
        } else {
            &run.end
        };
        html.text(end)
            .raw(", after ")
            .text(&lasted)
            .raw("</td></tr>\n");
    }
    html.raw("</tbody>\n</table>\n");
    more(
        html,
        unsigned(model.runs.len()).saturating_add(model.runs.left_out),
        ROWS_MAX,
        "run",
        "runs",
    );
    html.raw("</section>\n");
}

fn unsigned(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}
