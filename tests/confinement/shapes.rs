//! A confined command is answered like an unconfined one: the same errno for
//! the same mistake, the same outcome for the same wish.

use outgate_harness::attack::check;
use outgate_harness::{Identity, Report, Witness, lab_tests};

lab_tests! {
    fn row_54_mistakes_are_answered_as_the_kernel_does(lab) {
        let witness = Witness::start(&lab.directory);
        for host in ["127.0.0.1", "[::1]"] {
            let to = witness.at(host);
            for identity in Identity::all() {
                let bare = lab.bare(identity, &["shapes", &to]);
                let outcome = lab.sandbox(identity).allow(&format!("tcp://{to}")).probe(&["shapes", &to]);
                let (bare, inside) = (bare.reports(), outcome.reports());
                let differ: Vec<(&Report, &Report)> = bare.iter().zip(&inside).filter(|(one, other)| one != other).collect();
                assert!(differ.is_empty() && bare.len() == inside.len(), "{identity:?} {host} bare and inside: {differ:#?}");
            }
        }
    }

    fn row_54_mistakes_towards_a_denied_place_are_no_other(lab) {
        let witness = Witness::start(&lab.directory);
        for identity in Identity::all() {
            let to = witness.address();
            let bare = lab.bare(identity, &["shapes", &to]);
            witness.forget();
            let outcome = lab.sandbox(identity).probe(&["shapes", &to]);
            witness.assert_untouched("a mistaken connect");
            for (bare, inside) in bare.reports().iter().zip(outcome.reports()) {
                let same = bare.errno == inside.errno || (bare.errno == "0" && inside.errno == "ECONNREFUSED");
                assert!(same, "{identity:?} bare {bare:?} inside {inside:?}");
            }
        }
    }

    fn names_and_addresses_are_told_apart(lab) {
        // The neighbour of a denied address: the one that was allowed.
        let witness = Witness::start(&lab.directory);
        for identity in Identity::all() {
            let (yes, no) = (witness.at("93.184.216.34"), witness.at("93.184.216.35"));
            let outcome = lab.sandbox(identity).allow(&format!("tcp://{yes}")).probe(&["connect", &yes, &no]);
            check(&outcome, &[(&yes, &["0"]), (&no, &["ECONNREFUSED"])], &format!("{identity:?}"));
        }
        assert!(witness.sightings().iter().all(|seen| seen.to.contains("216.34")));
    }
}
