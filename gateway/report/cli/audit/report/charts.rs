//! Drawings of a page, as inline SVG that needs no script: a bar, what happened
//! when, and what went from whom to whom. Each says in words what it shows.

use super::html::{Html, counted};
use super::model::{Model, Sum};
use super::timeline::{BARS_MAX, Bars};
use crate::audit::lines::size;

/// Programs and hosts that are drawn; the others are drawn as one.
const PROGRAMS_MAX: usize = 7;
const HOSTS_MAX: usize = 10;
/// Pixels of a row, as the texts beside the streams have it too, and of the timeline above and below its axis.
const ROW: u64 = 40;
const ABOVE: u64 = 84;
const BELOW: u64 = 44;

/// A share of a whole as a bar; nothing of nothing.
pub(super) fn bar(html: &mut Html, part: u64, whole: u64) {
    if part == 0 || whole == 0 {
        return;
    }
    html.raw("<svg class=\"bar\" width=\"100%\" height=\"6\" aria-hidden=\"true\"><rect class=\"track\" width=\"100%\" height=\"6\" rx=\"3\"/>");
    let share = u128::from(part) * 10_000 / u128::from(whole);
    let share = u64::try_from(share).unwrap_or(10_000).clamp(100, 10_000);
    html.raw("<rect class=\"fill\" height=\"6\" rx=\"3\" width=\"");
    html.hundredths(share).raw("%\"/>");
    html.raw("</svg>");
}

/// What happened when: allowed above the axis, denied below, findings on it.
pub(super) fn timeline(html: &mut Html, bars: &Bars, clock: impl Fn(u64) -> String) {
    let most =
        |of: fn(&super::timeline::Slice) -> u64| bars.slices.iter().map(of).max().unwrap_or(0);
    let (allowed, denied) = (most(|bar| bar.allowed), most(|bar| bar.denied));
    // One scale for both, in hundredths of a pixel for one.
    let room = |pixels: u64, most: u64| (pixels - 6) * 100 / most.max(1);
    let unit = room(ABOVE, allowed).min(room(BELOW, denied)).max(1);
    let columns = u64::try_from(bars.slices.len()).unwrap_or(BARS_MAX).max(24);
    let height = |count: u64, pixels: u64| match count {
        0 => 0,
        // What happened is seen, however little.
        count => (count.saturating_mul(unit)).clamp(250, (pixels - 4) * 100),
    };
    html.raw("<svg class=\"timeline\" role=\"img\" width=\"100%\" height=\"")
        .number(ABOVE + BELOW);
    html.raw("\"").attribute(
        "aria-label",
        &format!("Decisions over time, at most {allowed} allowed and {denied} denied in one bar"),
    );
    html.raw("><svg width=\"100%\" height=\"")
        .number(ABOVE + BELOW);
    html.raw("\" preserveAspectRatio=\"none\" viewBox=\"0 0 ")
        .number(columns)
        .raw(" ");
    html.number(ABOVE + BELOW).raw("\">");
    for (place, bar) in (0_u64..).zip(&bars.slices) {
        if bar.allowed == 0 && bar.denied == 0 {
            continue;
        }
        let (up, down) = (height(bar.allowed, ABOVE), height(bar.denied, BELOW));
        let at = bars.from.saturating_add(place.saturating_mul(bars.width));
        html.raw("<g><title>");
        html.text(&format!(
            "{}: {} allowed, {} denied",
            clock(at),
            bar.allowed,
            bar.denied
        ));
        html.raw("</title>");
        for (class, top, height) in [
            ("<rect class=\"allowed\" x=\"", ABOVE * 100 - up, up),
            ("<rect class=\"denied\" x=\"", ABOVE * 100, down),
        ] {
            html.raw(class)
                .hundredths(place * 100 + 12)
                .raw("\" width=\"0.76\" y=\"");
            html.hundredths(top)
                .raw("\" height=\"")
                .hundredths(height)
                .raw("\"/>");
        }
        html.raw("</g>");
    }
    html.raw("</svg><line class=\"axis\" x1=\"0\" x2=\"100%\" y1=\"")
        .number(ABOVE);
    html.raw("\" y2=\"").number(ABOVE).raw("\"/>");
    for (place, bar) in (0_u64..).zip(&bars.slices) {
        let class = match (bar.alarms, bar.findings) {
            (0, 0) => continue,
            (0, _) => "<circle class=\"finding\" r=\"4.5\" cy=\"",
            _ => "<circle class=\"alarm\" r=\"6\" cy=\"",
        };
        html.raw(class).number(ABOVE).raw("\" cx=\"");
        html.hundredths((place * 100 + 50) * 100 / columns)
            .raw("%\"/>");
    }
    html.raw("</svg>");
}

/// One end of the streams.
struct Node {
    name: String,
    said: String,
    /// Where its row begins, and where its next stream does, in pixels.
    top: u64,
    next: u64,
}

/// What went from which program to which host.
pub(super) fn streams(html: &mut Html, model: &Model) {
    let programs = kept(model, |(program, _)| program, PROGRAMS_MAX);
    let hosts = kept(model, |(_, host)| host, HOSTS_MAX);
    let named = |name: &str, kept: &[(String, Sum)], rest: &'static str| {
        let is_kept = kept.iter().any(|(own, _)| own == name);
        if is_kept {
            name.to_owned()
        } else {
            rest.to_owned()
        }
    };
    let mut pairs: Vec<((String, String), Sum)> = Vec::new();
    for ((program, host), sum) in model.pairs.iter() {
        let key = (
            named(program, &programs, OTHERS),
            named(host, &hosts, OTHERS),
        );
        match pairs.iter_mut().find(|(own, _)| *own == key) {
            Some((_, own)) => own.join(sum),
            None => pairs.push((key, *sum)),
        }
    }
    let mut left = nodes(&pairs, |(program, _)| program);
    for node in &mut left {
        // There is little room before the streams; how much of it is beside them.
        let end = node.said.find(", ").unwrap_or(node.said.len());
        node.said.truncate(end);
    }
    let mut right = nodes(&pairs, |(_, host)| host);
    let height = [&left, &right].map(|side| u64::try_from(side.len()).unwrap_or(0) * ROW);
    let height = height.into_iter().max().unwrap_or(0) + 4;
    for side in [&mut left, &mut right] {
        let own = u64::try_from(side.len()).unwrap_or(0).max(1);
        // The shorter side is spread over the height of the longer one.
        let pitch = (height - 4) / own;
        for (place, node) in (0_u64..).zip(side.iter_mut()) {
            node.top = place * pitch + (pitch - ROW) / 2;
            node.next = node.top + 6;
        }
    }
    html.raw("<svg class=\"streams\" role=\"img\" width=\"100%\" height=\"")
        .number(height)
        .raw("\"");
    let label = format!(
        "{} and {}, joined by what went between them",
        counted(count(left.len()), "program", "programs"),
        counted(count(right.len()), "host", "hosts")
    );
    html.attribute("aria-label", &label).raw(">");
    html.raw("<svg x=\"27%\" width=\"29%\" preserveAspectRatio=\"none\" viewBox=\"0 0 100 ");
    html.number(height)
        .raw("\" height=\"")
        .number(height)
        .raw("\">");
    for ((program, host), sum) in &pairs {
        let from = left.iter_mut().find(|node| node.name == *program);
        let to = right.iter_mut().find(|node| node.name == *host);
        if let (Some(from), Some(to)) = (from, to) {
            stream(html, (from, to), sum);
        }
    }
    html.raw("</svg>");
    side(html, &left, Side::Programs);
    side(html, &right, Side::Hosts);
    html.raw("</svg>");
}

/// What stands for all that is not drawn by itself.
const OTHERS: &str = "all others";

/// Which end of the streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Programs,
    Hosts,
}

fn side(html: &mut Html, nodes: &[Node], side: Side) {
    for node in nodes {
        html.raw(match side {
            Side::Programs => {
                "<rect class=\"node\" x=\"27%\" width=\"3\" transform=\"translate(-3 0)\" y=\""
            }
            Side::Hosts => "<rect class=\"node\" x=\"56%\" width=\"3\" y=\"",
        });
        html.number(node.top + 3)
            .raw("\" height=\"")
            .number(ROW - 6)
            .raw("\"/>");
        // Text of a drawing cannot end in dots where there is no more room; that of a
        // page can.
        html.raw(match side {
            Side::Programs => {
                "<foreignObject class=\"before\" x=\"0\" width=\"27%\" height=\"40\" y=\""
            }
            Side::Hosts => "<foreignObject x=\"56%\" width=\"44%\" height=\"40\" y=\"",
        });
        html.number(node.top)
            .raw("\"><div class=\"name\"")
            .attribute("title", &node.name)
            .raw(">")
            .text(&node.name)
            .raw("</div><div class=\"said\">")
            .text(&node.said)
            .raw("</div></foreignObject>");
    }
}

/// One stream; its width grows with the logarithm of its bytes.
fn stream(html: &mut Html, (from, to): (&mut Node, &mut Node), sum: &Sum) {
    let bytes = sum.up.saturating_add(sum.down);
    let digits = u64::from(u64::BITS - bytes.leading_zeros());
    let went = sum.allowed > 0 || bytes > 0;
    let width = if went { 120 + digits * 40 } else { 150 };
    let (start, end) = (from.next * 100 + width / 2, to.next * 100 + width / 2);
    html.raw(if went {
        "<path class=\"went\" d=\"M0,"
    } else {
        "<path class=\"refused\" d=\"M0,"
    });
    html.hundredths(start)
        .raw(" C50,")
        .hundredths(start)
        .raw(" 50,")
        .hundredths(end);
    html.raw(" 100,")
        .hundredths(end)
        .raw("\" stroke-width=\"")
        .hundredths(width)
        .raw("\"><title>");
    let denied = match sum.denied {
        0 => String::new(),
        denied => format!(", {denied} denied"),
    };
    html.text(&format!(
        "{} to {}: sent {}, received {}, {} allowed{denied}",
        from.name,
        to.name,
        size(sum.up),
        size(sum.down),
        sum.allowed
    ));
    html.raw("</title></path>");
    // Streams of one node lie beside each other as far as its row goes.
    for node in [from, to] {
        node.next = (node.next + 2 + width / 250).min(node.top + ROW - 12);
    }
}

/// The ends that are drawn by themselves, by weight.
fn kept(
    model: &Model,
    end: impl Fn(&(String, String)) -> &String,
    max: usize,
) -> Vec<(String, Sum)> {
    let mut sums: Vec<(String, Sum)> = Vec::new();
    for (pair, sum) in model.pairs.iter() {
        let name = end(pair);
        match sums.iter_mut().find(|(own, _)| own == name) {
            Some((_, own)) => own.join(sum),
            None => sums.push((name.clone(), *sum)),
        }
    }
    sums.sort_by_key(|(_, sum)| std::cmp::Reverse(sum.weight()));
    sums.truncate(max);
    sums
}

fn nodes(
    pairs: &[((String, String), Sum)],
    end: impl Fn(&(String, String)) -> &String,
) -> Vec<Node> {
    let mut sums: Vec<(&String, Sum)> = Vec::new();
    for (pair, sum) in pairs {
        match sums.iter_mut().find(|(own, _)| *own == end(pair)) {
            Some((_, own)) => own.join(sum),
            None => sums.push((end(pair), *sum)),
        }
    }
    // What is drawn as one comes last.
    sums.sort_by_key(|(name, sum)| (*name == OTHERS, std::cmp::Reverse(sum.weight())));
    let node = |(name, sum): (&String, Sum)| Node {
        name: name.clone(),
        said: said(&sum),
        top: 0,
        next: 0,
    };
    sums.into_iter().map(node).collect()
}

fn said(sum: &Sum) -> String {
    let bytes = sum.up.saturating_add(sum.down);
    match (bytes, sum.denied) {
        (0, 0) => format!("{} allowed", sum.allowed),
        (0, denied) if sum.allowed == 0 => format!("{denied} denied"),
        (bytes, 0) => size(bytes),
        (bytes, denied) => format!("{}, {denied} denied", size(bytes)),
    }
}

fn count(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}
