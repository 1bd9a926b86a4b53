//! Credentials cut into values: of one head, and of several messages.

use outgate_dlp::{Description, Joined, MessagePart, Piece, Place, Stop, Window};

use crate::stage::{ELSEWHERE, sample_of, strict};

fn of(bytes: &[u8]) -> Piece<'_> {
    Piece::of_content(bytes)
}

#[test]
fn values_of_a_query_are_read_together() {
    let token = String::from_utf8(sample_of("github-token", 1)).expect("text");
    let (one, two) = token.split_at(17);
    let target = format!("/search?a={one}&b={two}&c=3");
    let part = MessagePart {
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
        let parts = [("x-one", first), ("x-two", two)].map(|(name, bytes)| MessagePart {
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
    let parts = ["text/html", "en", "gzip", "ghp_", "only a word"].map(|value| MessagePart {
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
    assert_eq!(window.push(&[of(b"something"), of(one)]), []);
    assert_eq!(window.push(&[of(two)]), []);
    for _ in 0..3 {
        let found = window.push(&[of(three)]);
        assert_eq!(found[0].place, Place::Joined(Joined::Messages));
    }
    assert_eq!(window.push(&[of(b"another value")]), []);
}

/// Random words hold by chance what has four letters of its own; that a piece of a
/// credential stands at an end of a word is no chance.
#[test]
fn what_long_words_hold_by_chance_is_no_credential_in_pieces() {
    let rules = strict();
    let token = sample_of("azure-devops-pat", 6);
    let (one, two) = token.split_at(50);
    let glued = |before: &[u8], after: &[u8]| {
        let mut window = Window::new(&rules, &ELSEWHERE);
        window.push(&[of(&[before, one].concat())]);
        let found = window.push(&[of(&[two, after].concat())]);
        found.len()
    };
    for (before, after, expected) in [
        ("", "", 1),
        ("", "Hq7Tz", 1),
        ("Hq7Tz", "", 1),
        ("Hq7Tz:", "Hq7Tz", 1),
        ("Hq7Tz", ".Hq7Tz", 1),
        ("Hq7Tz", "Lw2Bv", 0),
    ] {
        let found = glued(before.as_bytes(), after.as_bytes());
        assert_eq!(found, expected, "{before} {after}");
    }
}

#[test]
fn a_window_forgets() {
    let rules = strict();
    let token = sample_of("github-token", 4);
    let mut window = Window::new(&rules, &ELSEWHERE);
    let (one, two) = token.split_at(12);
    assert_eq!(window.push(&[of(one)]), []);
    // Words push out no piece.
    for _ in 0..64 {
        assert_eq!(window.push(&[of(&[b' '; 100])]), []);
    }
    assert_eq!(window.look(&[of(two)]).len(), 1);
    for number in 0..64 {
        let other = format!("{number}a9Zq3LmT").repeat(10);
        assert_eq!(window.push(&[of(other.as_bytes())]), []);
    }
    assert_eq!(window.push(&[of(two)]), []);
}

#[test]
fn values_of_a_form_are_read_together() {
    let token = String::from_utf8(sample_of("github-token", 5)).expect("text");
    let (one, two) = token.split_at(12);
    let form = format!("first={one}&second={two}&third=something");
    for (media_type, is_found) in [
        ("application/x-www-form-urlencoded; charset=utf-8", true),
        ("text/plain", false),
    ] {
        let mut stream = strict().stream(
            &ELSEWHERE,
            &Description {
                place: Place::Content,
                media_type: Some(media_type.as_bytes()),
                content_codings: None,
                length: None,
            },
        );
        stream.push(form.as_bytes()).expect("no step yet");
        match stream.finish() {
            Err(Stop::Found(finding)) => assert_eq!(finding.to_string(), "joined>github-token"),
            other => assert!(!is_found, "{other:?}"),
        }
    }
}
