//! Races: what a held call points at changes while it is judged. No attempt in
//! many thousands may leak.

use outgate_harness::attack::leaks_bare;
use outgate_harness::{Identity, Lab, Witness, lab_tests, race_time};

lab_tests! {
    fn row_38_an_address_that_flips_never_leaks(lab) {
        flip(lab, "0");
    }

    fn row_38_a_family_that_flips_never_leaks(lab) {
        flip(lab, "1");
    }

    fn row_39_a_descriptor_that_is_replaced_never_leaks(lab) {
        let (allowed, denied) = (Witness::start(&lab.directory), Witness::start(&lab.directory));
        let unix = format!("unix:{}", denied.path());
        let time = race_time().as_millis().to_string();
        leaks_bare(lab, &denied, &["swap", &allowed.address(), &denied.address(), &unix, "1500"]);
        for identity in Identity::all() {
            let rule = format!("tcp://{}", allowed.address());
            let probe = ["swap", &allowed.address(), &denied.address(), &unix, &time];
            let outcome = lab.sandbox(identity).allow(&rule).probe(&probe);
            denied.assert_untouched("a descriptor replaced while it is judged");
            assert!(outcome.number("tries=") > 500, "{identity:?} {outcome}");
        }
    }
}

fn flip(lab: &Lab, mode: &str) {
    let (allowed, denied) = (
        Witness::start(&lab.directory),
        Witness::start(&lab.directory),
    );
    let time = race_time().as_millis().to_string();
    let probe = ["flip", &allowed.address(), &denied.address(), &time, mode];
    leaks_bare(
        lab,
        &denied,
        &["flip", &allowed.address(), &denied.address(), "1500", mode],
    );
    for identity in Identity::all() {
        let rule = format!("tcp://{}", allowed.address());
        let outcome = lab.sandbox(identity).allow(&rule).probe(&probe);
        denied.assert_untouched("an address that flips while it is judged");
        assert!(outcome.number("tries=") > 500, "{identity:?} {outcome}");
        allowed.forget();
    }
}
