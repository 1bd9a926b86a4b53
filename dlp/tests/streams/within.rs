//! Pieces of a credential within one value, with anything between them.

use outgate_dlp::{PieceSource, Window};

use crate::pieces::{Case, SOURCES, cases, cut, is_refused, piece};
use crate::stage::{Dice, ELSEWHERE};

/// What stands around and between pieces.
const AROUND: [(&str, &str, &str); 15] = [
    ("", "|", ""),
    ("", ", ", ""),
    ("", ";", ""),
    ("", " ", ""),
    ("", "\n", ""),
    ("begins with ", " and ends with ", ""),
    (
        "The First is ",
        ", then of course comes the other one: ",
        ".",
    ),
    ("<p>", "</p><p>", "</p>"),
    ("<a href=\"", "\" title=\"", "\">"),
    ("{\"a\":\"", "\",\"b\":\"", "\"}"),
    ("(", ") (", ")"),
    ("**", "** and **", "**"),
    ("It is ", ". Then comes ", "."),
    ("a=", "&b=", "&c=d"),
    ("as '", "' with Words and v12 or the 3rd: '", "'"),
];

/// Signs that credentials have as well.
const SIGNS: [&str; 5] = ["/", ".", "~", "+", "--"];

fn is_stopped(case: &Case, source: PieceSource, value: &str) -> bool {
    let mut window = Window::new(&case.rules, &ELSEWHERE);
    is_refused(&window.push(&[piece(source, "k", value.as_bytes())]))
}

fn joined(case: &Case, count: usize, (before, between, behind): (&str, &str, &str)) -> String {
    let parts = cut(&case.value, count).into_iter();
    let parts: Vec<String> = parts
        .map(|part| String::from_utf8(part.to_vec()).expect("text"))
        .collect();
    format!("{before}{}{behind}", parts.join(between))
}

#[test]
fn pieces_within_one_value_are_put_together() {
    for case in cases() {
        for source in SOURCES {
            for around in AROUND {
                for count in [2, 3] {
                    let value = joined(&case, count, around);
                    let is_stopped = is_stopped(&case, source, &value);
                    assert!(is_stopped, "{} {source:?} {value}", case.name);
                }
            }
        }
    }
}

#[test]
fn pieces_with_a_sign_between_that_they_could_have_are_put_together() {
    // The others have such signs of their own.
    for case in cases().into_iter().filter(|case| case.name == "token") {
        for sign in SIGNS {
            for (before, behind) in [("", ""), ("see ", " for it"), ("https://", "/x")] {
                let value = joined(&case, 2, (before, sign, behind));
                let is_stopped = is_stopped(&case, PieceSource::Content, &value);
                assert!(is_stopped, "{} {value}", case.name);
            }
        }
    }
}

#[test]
fn pieces_within_several_values_are_put_together() {
    for case in cases() {
        let mut dice = Dice(5);
        for _ in 0..60 {
            let parts = cut(&case.value, 3);
            let texts: Vec<&str> = parts
                .iter()
                .map(|part| std::str::from_utf8(part).expect("text"))
                .collect();
            let (before, between, behind) = AROUND[dice.roll(AROUND.len())];
            let [first, other] = [0, 1].map(|_| SOURCES[dice.roll(SOURCES.len())]);
            let one = format!("{before}{}{between}{}{behind}", texts[0], texts[1]);
            let two = format!("{before}{}{behind}", texts[2]);
            let mut window = Window::new(&case.rules, &ELSEWHERE);
            let mut is_stopped = false;
            for _ in 0..2 {
                is_stopped |= is_refused(&window.push(&[piece(first, "k", one.as_bytes())]));
            }
            is_stopped |= is_refused(&window.push(&[piece(other, "l", two.as_bytes())]));
            let name = case.name;
            assert!(is_stopped, "{name} {first:?} {one} {other:?} {two}");
        }
    }
}

/// Prose about forms is none: its beginning stands there, and words with digits behind.
#[test]
fn prose_about_credentials_is_none() {
    for case in cases() {
        for value in [
            "Tokens of GitLab begin with glpat- and then 20 letters such as aB3dE5gH7jK9mN1pQ3sT.",
            "Keys look like sk-ant-api03-... or AKIA...; see commit 3f2a9c81d4e5b607 in v17.2.1",
            "use glpat-abc123 in version17 with GitHub2 and node18-alpine3",
            "ghp_ and github_pat_ are prefixes: 3f2a9c81-4b2d-4f6a-9c1d-2e3f4a5b6c7d",
        ] {
            let mut window = Window::new(&case.rules, &ELSEWHERE);
            let found = window.push(&[piece(PieceSource::Content, "k", value.as_bytes())]);
            assert_eq!(found, [], "{value}");
        }
    }
}
