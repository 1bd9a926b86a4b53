//! What rules deny, and runs that monitor let through all the same.

use super::html::{Html, counted};
use super::model::Model;
use super::page::more;
use super::sections::denial;

/// How a row begins.
const ROW: &str = "<li><p class=\"what\"><span class=\"badge passed\">monitored</span> <strong>";

/// Rows that are shown.
const ROWS_MAX: usize = 40;

/// Before everything else: these rules were not enforced.
pub(super) fn banner(html: &mut Html, model: &Model) {
    if model.unenforced_runs == 0 && model.denials.passed.is_empty() {
        return;
    }
    html.raw("<section class=\"card monitored\" aria-label=\"Monitor\">\n<h2>Rules were not enforced</h2>\n<p>");
    html.text(&counted(model.unenforced_runs, "run", "runs"));
    html.raw(
        " only monitored (<code>--monitor</code>) or learned. What rules deny was let through ",
    );
    html.text(&counted(model.sum.passed, "time", "times"));
    html.raw(" and is marked <span class=\"badge passed\">monitored</span>.</p>\n</section>\n");
}

/// Each of them, and what would allow it.
pub(super) fn passed(html: &mut Html, model: &Model) {
    let passed = &model.denials.passed;
    if passed.is_empty() {
        return;
    }
    html.raw("<section id=\"monitored\" class=\"card\">\n<h2>Let through in spite of the rules</h2>\n<ul class=\"denials\">\n");
    for (subject, one) in passed.by(|one| one.count).iter().take(ROWS_MAX) {
        denial(html, (ROW, subject), one);
    }
    html.raw("</ul>\n");
    let all = u64::try_from(passed.len()).unwrap_or(u64::MAX);
    let all = all.saturating_add(passed.left_out);
    more(html, all, ROWS_MAX, "entry", "entries");
    html.raw("</section>\n");
}
