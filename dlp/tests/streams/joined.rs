//! Credentials cut into values: of one head, and of several messages.

use outgate_dlp::{Joined, Part, Place, Window};

use crate::stage::{ELSEWHERE, sample_of, strict};

#[test]
fn values_of_a_query_are_read_together() {
    let token = String::from_utf8(sample_of("github-token", 1)).expect("text");
    let (one, two) = token.split_at(17);
    let target = format!("/search?a={one}&b={two}&c=3");
    let part = Part {
        place: Place::Target,
        bytes: target.as_bytes(),
    };
    let report = strict().head(&ELSEWHERE, &[part]);
    let finding = report.block().expect("a finding");
    assert_eq!(finding.place, Place::Joined(Joined::Query));
}

#[test]
fn values_of_fields_are_read_together() {
    let token = sample_of("github-token", 2);
    let (one, two) = token.split_at(9);
    let spaced = [one, b"\", "].concat();
    for first in [one, spaced.as_slice()] {
        let parts = [("x-one", first), ("x-two", two)].map(|(name, bytes)| Part {
            place: Place::Field(name.to_owned()),
            bytes,
        });
        let report = strict().head(&ELSEWHERE, &parts);
        let finding = report.block().expect("a finding");
        assert_eq!(finding.place, Place::Joined(Joined::Fields));
    }
}

#[test]
fn values_that_make_nothing_are_silent() {
    let parts = ["text/html", "en", "gzip", "ghp_", "only a word"].map(|value| Part {
        place: Place::Field("x".to_owned()),
        bytes: value.as_bytes(),
    });
    assert_eq!(strict().head(&ELSEWHERE, &parts).findings, []);
}

#[test]
fn messages_are_read_together_as_often_as_they_are_tried() {
    let rules = strict();
    let token = sample_of("github-token", 3);
    let mut window = Window::new(&rules, &ELSEWHERE);
    let (one, rest) = token.split_at(12);
    let (two, three) = rest.split_at(12);
    assert_eq!(window.push(&[b"something", one]), []);
    assert_eq!(window.push(&[two]), []);
    for _ in 0..3 {
        let found = window.push(&[three]);
        assert_eq!(found[0].place, Place::Joined(Joined::Messages));
    }
    assert_eq!(window.push(&[b"another value"]), []);
}

#[test]
fn a_window_forgets() {
    let rules = strict();
    let token = sample_of("github-token", 4);
    let mut window = Window::new(&rules, &ELSEWHERE);
    let (one, two) = token.split_at(12);
    assert_eq!(window.push(&[one]), []);
    for _ in 0..64 {
        assert_eq!(window.push(&[&[b' '; 100]]), []);
    }
    assert_eq!(window.push(&[two]), []);
}
