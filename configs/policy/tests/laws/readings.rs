//! Laws of the second readings: what a server may take a target for is denied
//! where the first reading is, and allows nothing more.

use outgate_policy::{Host, RequestTarget, Scheme, SourceKind};
use proptest::prelude::*;

use crate::{Event, is_allowed, policy, source};

/// Whether a policy of these rules allows a plain request.
fn allows(allow: &str, deny: &[&str], target: &str) -> Option<bool> {
    let target = RequestTarget::parse(target).ok()?;
    let mut sources = vec![source(SourceKind::Allow, allow)];
    sources.extend(deny.iter().map(|text| source(SourceKind::Deny, text)));
    let host = Host::parse("a.test").expect("a name");
    let event = Event::Request(host, 443, Scheme::Https, "GET".to_owned(), target);
    Some(is_allowed(&policy(&sources), &event, ""))
}

proptest! {
    /// Whoever serves a path serves it behind any authority, too.
    #[test]
    fn a_denied_path_is_denied_behind_any_authority(
        slashes in "(/|%2f|%5c|%252F){2,3}",
        authority in "([a-z]{1,3}@)?([a-z.]{1,4}|\\[::1\\]|[0-9.]{3})(:[0-9]{0,3})?",
        rest in "(/|//|/x/\\.\\./|/\\./|/;/)",
        end in "(|/|/k|;x|%20|%3fx|%23|\\?q=1)",
    ) {
        let spelled = slashes.strip_prefix('/').unwrap_or(&slashes);
        let target = format!("/{spelled}{authority}{rest}admin{end}");
        if let Some(allowed) = allows("a.test", &["a.test/admin/**"], &target) {
            let begins = target.starts_with("//") || !slashes.starts_with('/') || spelled.len() > 1;
            prop_assert!(!begins || !allowed, "{target}");
        }
    }

    /// The authority that some drop is no part of what a rule allows.
    #[test]
    fn an_authority_allows_nothing(
        authority in "(pub|x)(:80)?",
        path in "(/(admin|x|\\.\\.)){0,3}",
    ) {
        let target = format!("//{authority}{path}");
        let sent = RequestTarget::parse(&target).map(|target| target.path().to_owned());
        if sent.is_ok_and(|path| path.starts_with("//")) {
            prop_assert!(allows("a.test/pub/**", &[], &target) != Some(true), "{target}");
        }
    }

    /// Whatever a server drops from a path changes nothing for a rule that denies it.
    #[test]
    fn what_is_dropped_hides_no_denied_path(
        pieces in proptest::collection::vec("(%FF|%fe|%F8|%E2%80%8B|%EF%BB%BF|%C2%AD|%C2%85|%25FF){0,2}", 12),
        end in "(|/|\\.a\\.b|;x|%3Fx|\\.\\.x)",
    ) {
        let letters = "/admin/keys".chars();
        let mut spelled = String::new();
        for (letter, piece) in letters.zip(&pieces) {
            spelled.push(letter);
            spelled.push_str(piece);
        }
        spelled.push_str(&end);
        let verdict = allows("a.test", &["a.test/admin/keys/**"], &spelled);
        prop_assert!(verdict != Some(true), "{spelled}");
    }

    /// Nothing that is dropped makes dots that lead out of what a rule allows.
    #[test]
    fn what_is_dropped_leads_out_of_nothing_allowed(
        inner in "(|x/|x%2F)",
        pieces in proptest::collection::vec("(%FF|%C3|%E2%80%8B|%EF%BB%BF|%C2%AD|%C2%85|%25FF){0,2}", 3),
        up in 2..4_usize,
    ) {
        let [a, b, c] = [0, 1, 2].map(|at| pieces.get(at).map_or("", String::as_str));
        // What has dots alone is resolved before anything is dropped.
        let dots = format!("{a}.%FF{b}.{c}/").repeat(up);
        let target = format!("/pub/{inner}{dots}admin");
        prop_assert!(allows("a.test/pub/**", &[], &target) != Some(true), "{target}");
    }

    /// A name of any endings is one without them to a rule that denies.
    #[test]
    fn no_ending_hides_a_denied_name(
        ending in "[a-z.]{0,5}",
        rest in "(|/|/keys|/x\\.y/z)",
    ) {
        let target = format!("/admin.{ending}{rest}");
        if let Some(allowed) = allows("a.test", &["a.test/admin/**"], &target) {
            prop_assert!(!allowed, "{target}");
        }
    }

    /// Blanks, marks and brackets around a key change nothing for a rule that
    /// denies, and a second spelling of it is refused by a rule that allows.
    #[test]
    fn a_key_is_known_in_every_spelling(
        before in "(\\+|%20|%09|%EF%BB%BF|!|%C2%A0){0,3}",
        joint in "(_|\\.|\\+|%20|\\[|%5B|%2E)",
        after in "(|\\[\\]|\\[x\\]|%5B0%5D|%20|\\+|\\[=\\])",
        value in "(admin|%61dmin|ADMIN|adm%2569n|user,admin|admin%20)",
        separator in "(&|;|&&|\\?|&amp;)",
    ) {
        let key = format!("{before}user{joint}id{after}={value}");
        let denied = format!("/?x=1{separator}{key}");
        prop_assert_eq!(allows("a.test", &["a.test?user_id=admin*"], &denied), Some(false), "{}", &denied);
        let repeated = format!("/?user_id=user{separator}{key}");
        prop_assert_eq!(allows("a.test/?user_id=user", &[], &repeated), Some(false), "{}", &repeated);
    }
}
