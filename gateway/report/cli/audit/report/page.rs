//! The page around its sections: what it is about, in a sentence and in numbers,
//! whether the record can be believed, and what a browser may do with it: nothing.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use outgate_record::{RecordEnd, line_hash, timestamp};

use super::html::{Html, counted};
use super::left;
use super::model::Model;
use super::monitored;
use super::sections;
use crate::audit::lines::size;
use crate::audit::verify::{Chain, Judge};

/// How everything looks.
const STYLE: &str = include_str!("style.css");

/// What is known beside the records themselves.
pub(super) struct About<'a> {
    pub(super) files: Vec<String>,
    pub(super) goes_on: Goes,
    pub(super) judge: &'a Judge,
    pub(super) chains: &'a [Chain],
}

/// Whether somebody still writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Goes {
    On,
    Ended,
}

/// The whole document.
pub(super) fn page(model: &Model, about: &About<'_>) -> String {
    let mut html = Html::default();
    let name = name(model);
    html.raw("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'sha256-");
    html.text(&hash(STYLE))
        .raw("'; base-uri 'none'; form-action 'none'\">\n");
    html.raw("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"referrer\" content=\"no-referrer\">\n<meta name=\"robots\" content=\"noindex\">\n<title>");
    html.text(&name)
        .raw(" &middot; outgate report</title>\n<style>");
    html.raw(STYLE)
        .raw("</style>\n</head>\n<body>\n<div class=\"page\">\n");
    header(&mut html, model, about, &name);
    html.raw("<main>\n");
    if model.found.alarms_in_all > 0 {
        sections::alarms(&mut html, model);
    }
    monitored::banner(&mut html, model);
    tiles(&mut html, model);
    sections::timeline(&mut html, model);
    sections::went(&mut html, model);
    sections::denied(&mut html, model);
    monitored::passed(&mut html, model);
    sections::findings(&mut html, model);
    sections::unseen(&mut html, model);
    left::left(&mut html, model);
    sections::runs(&mut html, model);
    record(&mut html, model, about);
    html.raw("</main>\n</div>\n</body>\n</html>\n");
    html.into_text()
}

/// The hash by which a browser knows the style (CSP 3, 2.3.1).
fn hash(text: &str) -> String {
    let digits = line_hash(text.as_bytes());
    let digits = digits.as_bytes().chunks_exact(2);
    let byte = |pair: &[u8]| {
        let pair = std::str::from_utf8(pair).unwrap_or_default();
        u8::from_str_radix(pair, 16).unwrap_or_default()
    };
    STANDARD.encode(digits.map(byte).collect::<Vec<u8>>())
}

/// What the page is about: the command, or how many runs.
fn name(model: &Model) -> String {
    let runs: Vec<_> = model.runs.iter().map(|(_, run)| run).collect();
    match runs.as_slice() {
        [run] if !run.command.is_empty() => run.command.clone(),
        [_] => "one run".to_owned(),
        runs => format!("{} runs", runs.len()),
    }
}

fn header(html: &mut Html, model: &Model, about: &About<'_>, name: &str) {
    html.raw("<header>\n<p class=\"brand\"><svg width=\"22\" height=\"22\" viewBox=\"0 0 22 22\" aria-hidden=\"true\"><path class=\"gate\" d=\"M3 19V8a8 8 0 0 1 16 0v11\"/><path class=\"gate\" d=\"M8 12h11M15.5 8.5 19 12l-3.5 3.5\"/></svg>outgate report</p>\n");
    html.element("<h1>", name, "</h1>\n");
    html.raw("<p class=\"when\">")
        .text(&when(model))
        .raw("</p>\n<p class=\"pills\">");
    let faults = about.judge.faults_in_all;
    let open = about
        .chains
        .iter()
        .any(|chain| chain.end == RecordEnd::Open);
    if faults > 0 {
        html.raw("<a class=\"pill bad\" href=\"#record\">record altered: ");
        html.text(&counted(faults, "fault", "faults")).raw("</a>");
    } else {
        html.raw("<a class=\"pill good\" href=\"#record\">record sound</a>");
    }
    match (open, about.goes_on) {
        (true, Goes::On) => html.raw("<span class=\"pill\">still running</span>"),
        (true, Goes::Ended) => {
            html.raw("<a class=\"pill warn\" href=\"#record\">its end is missing</a>")
        }
        (false, _) => html,
    };
    if model.lost > 0 {
        html.raw("<a class=\"pill warn\" href=\"#record\">")
            .text(&counted(model.lost, "record", "records"));
        html.raw(" lost</a>");
    }
    html.raw("</p>\n<p class=\"lead\">")
        .text(&lead(model))
        .raw("</p>\n");
    html.raw("<nav aria-label=\"Sections\"><a href=\"#timeline\">Timeline</a><a href=\"#went\">Where data went</a><a href=\"#denied\">Denied</a><a href=\"#findings\">Findings</a><a href=\"#unseen\">Not looked into</a><a href=\"#record\">Record</a></nav>\n</header>\n");
}

/// From when to when, in UTC.
fn when(model: &Model) -> String {
    let Some((first, last)) = model.span else {
        return "at an unknown time".to_owned();
    };
    let (from, to) = (moment(first), moment(last));
    let day = |text: &str| text.split(' ').next().unwrap_or_default().to_owned();
    let to = if day(&from) == day(&to) {
        to.split(' ').nth(1).unwrap_or_default().to_owned()
    } else {
        to
    };
    format!("{from} to {to} UTC, {}", lasted(last.saturating_sub(first)))
}

/// A time as people read it, to the second.
pub(super) fn moment(at: u64) -> String {
    let since = std::time::Duration::from_millis(at);
    let time = std::time::SystemTime::UNIX_EPOCH.checked_add(since);
    let text = timestamp(time.unwrap_or(std::time::SystemTime::UNIX_EPOCH));
    let text = text.replace('T', " ");
    text.split('.').next().unwrap_or_default().to_owned()
}

/// A length of time in its two greatest units.
pub(super) fn lasted(millis: u64) -> String {
    let seconds = millis / 1000;
    match (seconds / 86_400, seconds / 3600, seconds / 60) {
        (0, 0, 0) if millis < 10_000 => format!("{}.{} s", seconds, millis % 1000 / 100),
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, minutes) => format!("{minutes} min {} s", seconds % 60),
        (0, hours, minutes) => format!("{hours} h {} min", minutes % 60),
        (days, hours, _) => format!("{days} d {} h", hours % 24),
    }
}

/// The page in a sentence or two.
fn lead(model: &Model) -> String {
    let reached = model.hosts.iter().filter(|(_, host)| host.sum.allowed > 0);
    let reached = u64::try_from(reached.count()).unwrap_or(u64::MAX);
    let (unseen, _) = model.found.unseen_sum();
    let went = match reached {
        0 => "Nothing reached any host.".to_owned(),
        _ => format!(
            "{} sent to {}, {} received.",
            size(model.sum.up),
            counted(reached, "host", "hosts"),
            size(model.sum.down)
        ),
    };
    let denied = match model.sum.denied {
        0 => "Nothing was denied.".to_owned(),
        1 => "One attempt was denied.".to_owned(),
        denied => format!("{denied} attempts were denied."),
    };
    let found = &model.found;
    let found = match (found.held_back, found.findings_in_all) {
        (0, 0) if found.blind_runs > 0 => "Nobody looked for credentials.".to_owned(),
        (0, 0) => "No credential was found on its way out.".to_owned(),
        (0, passed) => format!("{} on the way out, and let pass.", credentials(passed)),
        (held, all) if held == all => {
            format!("{} on the way out, and held back.", credentials(held))
        }
        (held, all) => format!("{} on the way out; {held} held back.", credentials(all)),
    };
    let unseen = (unseen > 0).then(|| {
        let what = counted(unseen, "connection or message", "connections or messages");
        format!("{what} went where nobody could look inside.")
    });
    let sentences = [Some(went), Some(denied), Some(found), unseen];
    sentences
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join(" ")
}

fn credentials(number: u64) -> String {
    format!(
        "{} found",
        counted(number, "credential was", "credentials were")
    )
}

fn tiles(html: &mut Html, model: &Model) {
    let (unseen, bytes) = model.found.unseen_sum();
    let found = &model.found;
    html.raw("<ul class=\"tiles\">\n");
    tile(
        html,
        "<li class=\"tile\"><b>",
        &size(model.sum.up),
        "sent",
        &format!("and {} received", size(model.sum.down)),
    );
    let allowed = counted(
        model.sum.connections,
        "connection ended",
        "connections ended",
    );
    tile(
        html,
        "<li class=\"tile\"><b>",
        &model.sum.allowed.to_string(),
        "allowed",
        &allowed,
    );
    let to_allow = counted(
        u64::try_from(found_flags(model)).unwrap_or(0),
        "rule would allow it",
        "rules would allow it",
    );
    tile(
        html,
        tone(model.sum.denied, "<li class=\"tile deny\"><b>"),
        &model.sum.denied.to_string(),
        "denied",
        &to_allow,
    );
    let held = format!("{} held back", found.held_back);
    tile(
        html,
        tone(found.findings_in_all, "<li class=\"tile find\"><b>"),
        &found.findings_in_all.to_string(),
        "findings",
        &held,
    );
    tile(
        html,
        tone(unseen, "<li class=\"tile veil\"><b>"),
        &unseen.to_string(),
        "not looked into",
        &format!("{} sent", size(bytes)),
    );
    tile(
        html,
        tone(found.alarms_in_all, "<li class=\"tile alarm\"><b>"),
        &found.alarms_in_all.to_string(),
        "alarms",
        "planted credentials that left their place",
    );
    html.raw("</ul>\n");
}

fn found_flags(model: &Model) -> usize {
    model.denials.flags().len()
}

fn tone(number: u64, loud: &'static str) -> &'static str {
    if number > 0 {
        loud
    } else {
        "<li class=\"tile\"><b>"
    }
}

fn tile(html: &mut Html, open: &'static str, number: &str, what: &str, beside: &str) {
    html.element(open, number, "</b><span>").text(what);
    html.element("</span><small>", beside, "</small></li>\n");
}

/// Whether the record can be believed, and how to check it again.
fn record(html: &mut Html, model: &Model, about: &About<'_>) {
    /// Faults and chains that are shown.
    const SHOWN_MAX: usize = 12;
    html.raw("<section id=\"record\" class=\"card\">\n<h2>Record</h2>\n");
    html.raw("<p class=\"note\">Every decision is written before it takes effect, and every line holds the hash of the one before it. ");
    html.text(&counted(model.records, "record", "records"))
        .raw(" in ");
    html.text(&counted(
        u64::try_from(about.files.len()).unwrap_or(0),
        "file",
        "files",
    ))
    .raw(".</p>\n");
    let judge = about.judge;
    if judge.faults_in_all > 0 {
        html.raw("<ul class=\"faults\">\n");
        for fault in judge.faults.iter().take(SHOWN_MAX) {
            let place = format!("{}:{}", fault.file.display(), fault.line);
            html.element("<li><code>", &place, "</code> ")
                .element("", &fault.what, "</li>\n");
        }
        html.raw("</ul>\n");
        more(html, judge.faults_in_all, SHOWN_MAX, "fault", "faults");
    }
    if model.lost > 0 {
        html.element(
            "<p class=\"note warn\">",
            &counted(model.lost, "record", "records"),
            " could not be written: the disk was full, or gone.</p>\n",
        );
    }
    html.raw("<dl class=\"heads\">\n");
    for chain in about.chains.iter().take(SHOWN_MAX) {
        html.element("<dt>", &chain.run, " ");
        html.element(
            "<span>",
            &counted(chain.records, "record", "records"),
            "</span></dt>\n",
        );
        html.element("<dd><code>", &chain.head, "</code></dd>\n");
    }
    html.raw("</dl>\n");
    more(
        html,
        u64::try_from(about.chains.len()).unwrap_or(0),
        SHOWN_MAX,
        "run",
        "runs",
    );
    html.raw("<p class=\"note\">To check it again: <code>outgate audit verify");
    for file in about.files.iter().take(SHOWN_MAX) {
        html.raw(" ").text(file);
    }
    html.raw("</code>, with <code>--head</code> and a hash from above to find out whether the record was made anew since.</p>\n</section>\n");
}

/// What is left out, if something is.
pub(super) fn more(html: &mut Html, all: u64, shown: usize, one: &str, many: &str) {
    let left = all.saturating_sub(u64::try_from(shown).unwrap_or(u64::MAX));
    if left > 0 {
        html.element(
            "<p class=\"more\">",
            &counted(left, one, many),
            " more; <code>outgate audit query</code> shows all</p>\n",
        );
    }
}
