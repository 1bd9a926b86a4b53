//! Terminals of other programs of the same user: a run makes and opens its own, and no
//! way leads to another's.

use std::collections::BTreeMap;

use outgate_harness::{Identity, Lab, Outcome, Running, Sandbox, lab_tests, race_time};

/// Every way, and the program that it is tried on.
const EVERY_WAY: &str = include_str!("terminals.py");

/// Ways that lead to what is the caller's own.
const OWN: [&str; 2] = ["own-by-name", "own-by-request"];

/// What is answered of a terminal of somebody else's, and of what is none.
const NOT_YOURS: [&str; 4] = ["EACCES", "EBADF", "ENOTTY", "EINVAL"];

fn python(arguments: &[&str]) -> Vec<String> {
    let words = ["/usr/bin/python3", "-c", EVERY_WAY];
    words
        .iter()
        .chain(arguments)
        .map(|word| (*word).to_owned())
        .collect()
}

fn reports(outcome: &Outcome) -> BTreeMap<&str, &str> {
    let lines = outcome.stdout.lines();
    lines.filter_map(|line| line.split_once('=')).collect()
}

/// A program outside that has a terminal, and the terminal's name.
fn victim(lab: &Lab, identity: Identity) -> (Running, String) {
    let victim = lab.start_bare(identity, &python(&["victim"]));
    let said = victim.wait_for("\n");
    let name = said
        .trim()
        .strip_prefix("ready ")
        .expect("a name")
        .to_owned();
    (victim, name)
}

lab_tests! {
    fn no_way_leads_to_the_terminal_of_a_program_outside(lab) {
        let seconds = race_time().as_secs_f64().to_string();
        for identity in Identity::all() {
            let (stranger, name) = victim(lab, identity);
            let attack = python(&["attack", &name, &seconds]);
            let bare = lab.start_bare(identity, &attack).finish();
            let bare = reports(&bare);
            let reached = stranger.finish();
            assert!(reached.stdout.contains("written-by-a-stranger"), "{bare:?} {reached}");
            assert!(bare.get("by-name-talk") == Some(&"opened") && bare.get("swapped") == Some(&"reached"), "{bare:?}");

            let (stranger, name) = victim(lab, identity);
            let attack = python(&["attack", &name, &seconds]);
            let outcome = Sandbox::plain(lab, identity).run(&attack);
            let inside = reports(&outcome);
            let untouched = stranger.finish();
            assert!(untouched.stdout.contains("untouched"), "{identity:?} {outcome} {untouched}");
            assert_eq!(inside.len(), bare.len(), "{identity:?} {outcome}");
            for (way, said) in inside {
                let expected = if OWN.contains(&way) { &["opened"][..] } else { &NOT_YOURS };
                assert!(expected.contains(&said), "{identity:?} {way}: {outcome}");
            }
        }
    }
}
