//! The licences of everything we build from, against the list in deny.toml.

use crate::crates::{list, metadata, text};
use crate::files::{self, assert_none};

/// The texts between the brackets of `allow = [ … ]` in a section.
fn allowed() -> Vec<String> {
    let document = files::text("deny.toml");
    let (_, section) = document.split_once("[licenses]").unwrap_or_default();
    let (_, rest) = section.split_once("allow = [").unwrap_or_default();
    let (inside, _) = rest.split_once(']').unwrap_or_default();
    inside
        .split(',')
        .map(|text| text.trim().trim_matches('"').to_owned())
        .filter(|text| !text.is_empty())
        .collect()
}

/// Whether an SPDX expression can be met with what is allowed. `OR` binds
/// weaker than `AND`, `WITH` belongs to its licence; `/` is an old `OR`.
fn is_met(expression: &str, allowed: &[String]) -> bool {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ");
    let spaced = spaced.replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = words.as_slice();
    let met = any(&mut rest, allowed);
    met && rest.is_empty()
}

fn any(rest: &mut &[&str], allowed: &[String]) -> bool {
    let mut met = all(rest, allowed);
    while take(rest, "OR") {
        met |= all(rest, allowed);
    }
    met
}

fn all(rest: &mut &[&str], allowed: &[String]) -> bool {
    let mut met = one(rest, allowed);
    while take(rest, "AND") {
        met &= one(rest, allowed);
    }
    met
}

fn one(rest: &mut &[&str], allowed: &[String]) -> bool {
    if take(rest, "(") {
        let met = any(rest, allowed);
        return take(rest, ")") && met;
    }
    let Some((first, after)) = rest.split_first() else {
        return false;
    };
    *rest = after;
    let mut name = (*first).to_owned();
    if take(rest, "WITH")
        && let Some((exception, after)) = rest.split_first()
    {
        *rest = after;
        name = format!("{name} WITH {exception}");
    }
    allowed.contains(&name)
}

fn take(rest: &mut &[&str], word: &str) -> bool {
    match rest.split_first() {
        Some((first, after)) if *first == word => {
            *rest = after;
            true
        }
        _ => false,
    }
}

#[test]
fn expressions_are_read_as_spdx_says() {
    let allowed = ["MIT", "ISC"].map(str::to_owned);
    for met in [
        "MIT",
        "GPL-3.0-only OR MIT",
        "Apache-2.0/MIT",
        "(Zlib OR MIT) AND ISC",
        "Zlib AND Zlib OR MIT",
    ] {
        assert!(is_met(met, &allowed), "{met}");
    }
    for unmet in [
        "",
        "Zlib",
        "MIT AND Zlib",
        "MIT WITH exception",
        "(MIT OR Zlib) AND Zlib",
        "(MIT",
        "MIT ISC",
    ] {
        assert!(!is_met(unmet, &allowed), "{unmet}");
    }
}

#[test]
fn every_licence_is_on_the_list() {
    let allowed = allowed();
    assert!(!allowed.is_empty(), "deny.toml has a list");
    let metadata = metadata();
    let faults: Vec<String> = list(&metadata["packages"])
        .filter(|package| !is_met(text(&package["license"]), &allowed))
        .map(|package| format!("{}: {}", text(&package["name"]), text(&package["license"])))
        .collect();
    assert_none("licences that are not on the list of deny.toml", &faults);
}
