//! Requests with two readings: one row per case, each alone, byte by byte, and
//! at every place of a kept connection, waiting or in one go.

use crate::case::{Case, OPEN, Step, Want};
use crate::rows::{self, After, Row};
use crate::suite::hold;

const GOOD: &str = "GET /public/a HTTP/1.1\r\nHost: <host>\r\n\r\n";

fn send(text: &str) -> Step {
    Step::Send(text.as_bytes().to_vec())
}

/// What a row must come to with requests before and behind it.
fn among(row: &Row, before: usize, behind: usize) -> Want {
    let passes = match row.after {
        After::Closes => 0,
        After::Stays => behind,
    };
    let mut statuses = vec![200; before];
    statuses.push(row.status);
    statuses.extend(vec![200; passes]);
    Want::replies(before + passes, &statuses)
}

fn alone(row: &Row) -> Case {
    Case::new(row.name, row.text, among(row, 0, 0))
}

/// The second and third request, each answered before the next is sent.
fn later(row: &Row) -> Vec<Case> {
    let waits = |count: usize| {
        let steps = (1..=count).flat_map(|at| [send(GOOD), Step::Await(at)]);
        let steps: Vec<Step> = steps.chain([send(row.text)]).collect();
        let name = format!("{} (as request {})", row.name, count + 1);
        Case::new(&name, "", among(row, count, 0)).steps(&steps)
    };
    let behind = [send(row.text), Step::Await(1), send(GOOD)];
    let name = format!("{} (and a good one behind)", row.name);
    vec![
        waits(1),
        waits(2),
        Case::new(&name, "", among(row, 0, 1)).steps(&behind),
    ]
}

/// In one go with others.
fn pipelined(row: &Row) -> Vec<Case> {
    let between = format!("{GOOD}{}{GOOD}", row.text);
    let first = format!("{}{GOOD}", row.text);
    vec![
        Case::new(
            &format!("{} (in one go, between)", row.name),
            between,
            among(row, 1, 1),
        ),
        Case::new(
            &format!("{} (in one go, first)", row.name),
            first,
            among(row, 0, 1),
        ),
    ]
}

carried_tests! {
    fn plain_requests_arrive_as_they_were_judged(lab) {
        hold(lab, vec![
            Case::new("GET", GOOD, Want::sent(1)),
            Case::new("the scheme's own port", GOOD, Want::sent(1)).port(80),
            Case::new("POST", "POST /public/a HTTP/1.1\r\nHost: <host>\r\nContent-Length: 5\r\n\r\nhello", Want::sent(1)),
            Case::new("chunks", "POST /public/a HTTP/1.1\r\nHost: <host>\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", Want::sent(1)),
            Case::new("OPTIONS *", "OPTIONS * HTTP/1.1\r\nHost: <host>\r\n\r\n", Want::sent(1)).zone(OPEN),
            Case::new("two", format!("{GOOD}{GOOD}"), Want::sent(2)),
        ]);
    }

    fn requests_with_two_readings_are_refused(lab) {
        hold(lab, rows::all().iter().map(alone).collect());
    }

    fn they_are_refused_later_on_a_connection_too(lab) {
        hold(lab, rows::all().iter().flat_map(later).collect());
    }

    fn they_are_refused_in_one_go_with_good_ones(lab) {
        hold(lab, rows::all().iter().flat_map(pipelined).collect());
    }
}
