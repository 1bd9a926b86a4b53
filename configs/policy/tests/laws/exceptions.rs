//! Laws of what is taken out of a rule that denies.

use outgate_policy::{Scheme, Source, SourceKind, compile};
use proptest::prelude::*;

use super::{Event, context, event, executable, is_allowed, policy, rule, rules, source};

/// A rule that denies, and what may be excepted from it.
pub(crate) fn excepted() -> impl Strategy<Value = (String, String)> {
    (rule(), rule()).prop_filter("an exception from it", |(deny, except)| {
        compile(&[source_of(deny, except)], &context()).is_ok()
    })
}

pub(crate) fn source_of(deny: &str, except: &str) -> Source {
    source(SourceKind::Deny, &format!("{deny} except {except}"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn an_exception_takes_out_no_more_than_it_says(
        rules in rules(), (deny, except) in excepted(), event in event(), exe in executable()
    ) {
        let with = |more: &[Source]| {
            let all: Vec<Source> = rules.iter().chain(more).cloned().collect();
            is_allowed(&policy(&all), &event, exe)
        };
        let (whole, less) = (source(SourceKind::Deny, &deny), source_of(&deny, &except));
        let again = source(SourceKind::Deny, &except);
        if with(std::slice::from_ref(&whole)) {
            prop_assert!(with(std::slice::from_ref(&less)), "an exception denied");
        }
        if with(std::slice::from_ref(&less)) {
            prop_assert!(with(&[]), "a rule that denies allowed");
        }
        if with(&[less.clone(), again]) {
            prop_assert!(with(std::slice::from_ref(&whole)), "more was taken out than is denied again");
        }
        if let Event::Request(_, _, Scheme::Http | Scheme::Https, ..) = &event
            && except.contains("http")
            && with(&[less])
            && !with(&[whole])
        {
            let surely = is_allowed(&policy(&[source(SourceKind::Allow, &except)]), &event, exe);
            prop_assert!(surely, "what the exception is not surely about was taken out");
        }
    }
}
