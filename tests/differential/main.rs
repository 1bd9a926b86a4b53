//! Whether the parsers and servers that exist read a target or a query as the
//! rules do.
//!
//! Targets and queries are made by a grammar of what parsers disagree about,
//! from a seed that is drawn anew and printed. Everything that a policy allows
//! is given to the parsers of seven languages and to real servers; none of them
//! may see what a deny rule names, nor anything but what an allow rule names.
//!
//! Contents of requests, which programs may take for those of another method, are made and
//! read so too, and go through the real gateway.
//!
//! `OUTGATE_DIFFERENTIAL_SEED` repeats a run, `OUTGATE_DIFFERENTIAL_COUNT` sets
//! how many targets and how many queries are made.

#![forbid(unsafe_code)]
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a step that cannot be made is a failed test"
)]
#![expect(
    clippy::disallowed_methods,
    reason = "servers of the test's own are asked on loopback"
)]
#![expect(
    clippy::print_stderr,
    reason = "the seed and what was asked are shown with --nocapture"
)]

mod grammar;
mod judge;
mod methods;
mod readers;
mod servers;

use std::collections::BTreeSet;

use grammar::Random;
use judge::Judge;

/// Targets, and queries, of one run if nothing else is said.
const COUNT: usize = 10_000;

/// Faults shown of one run.
const SHOWN: usize = 40;

fn variable(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().expect("the variable is a number"))
}

fn count() -> usize {
    variable("OUTGATE_DIFFERENTIAL_COUNT").map_or(COUNT, |count| {
        usize::try_from(count).expect("a count that fits")
    })
}

fn random() -> Random {
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .expect("a clock after 1970");
    let drawn = || now.as_secs() << 20 ^ u64::from(now.subsec_nanos());
    let seed = variable("OUTGATE_DIFFERENTIAL_SEED").unwrap_or_else(drawn);
    eprintln!("OUTGATE_DIFFERENTIAL_SEED={seed}");
    Random::new(seed)
}

fn assert_none(faults: &BTreeSet<String>) {
    let shown: Vec<&str> = faults.iter().take(SHOWN).map(String::as_str).collect();
    assert!(
        faults.is_empty(),
        "{} faults, such as\n{}",
        faults.len(),
        shown.join("\n")
    );
}

#[test]
fn no_parser_or_server_reads_a_path_that_the_rules_do_not() {
    let mut random = random();
    let denying = Judge::new(&["a.test"], &["a.test/admin/**"]);
    let allowing = Judge::new(&["a.test/pub/**"], &[]);
    let made: BTreeSet<String> = (0..count())
        .filter_map(|_| judge::sent(&grammar::target(&mut random)))
        .collect();
    let passed: Vec<String> = made
        .into_iter()
        .filter(|target| denying.allows(target) || allowing.allows(target))
        .collect();
    eprintln!(
        "{} targets were allowed by one of two policies",
        passed.len()
    );
    let mut faults = BTreeSet::new();
    let mut answers = readers::ask(readers::Kind::Path, &passed);
    answers.extend(servers::ask(&passed));
    for (target, found) in answers {
        for (reader, path) in found {
            for form in judge::forms(&path) {
                let first = judge::first_segment(&form);
                if first.eq_ignore_ascii_case(b"admin") && denying.allows(&target) {
                    faults.insert(format!(
                        "deny: {reader} serves {} for {target}",
                        form.escape_ascii()
                    ));
                }
                // A context of the whole server says nothing of what is served.
                let says = !(reader.ends_with(" context") && form == b"/");
                if says && first != b"pub" && allowing.allows(&target) {
                    faults.insert(format!(
                        "allow: {reader} serves {} for {target}",
                        form.escape_ascii()
                    ));
                }
            }
        }
    }
    assert_none(&faults);
}

#[test]
fn no_parser_reads_a_query_that_the_rules_do_not() {
    let mut random = random();
    let keys = ["role", "user_id"];
    let denying = keys.map(|key| Judge::new(&["a.test"], &[&format!("a.test?{key}=admin*")]));
    let allowing = keys.map(|key| Judge::new(&[&format!("a.test/?{key}=user")], &[]));
    let made: BTreeSet<String> = (0..count())
        .map(|_| grammar::query(&mut random))
        .filter(|query| {
            let target = format!("/?{query}");
            let judges = denying.iter().chain(&allowing);
            judge::sent(&target).is_some() && judges.into_iter().any(|one| one.allows(&target))
        })
        .collect();
    let passed: Vec<String> = made.into_iter().collect();
    eprintln!(
        "{} queries were allowed by one of four policies",
        passed.len()
    );
    let mut faults = BTreeSet::new();
    for (query, found) in readers::ask(readers::Kind::Query, &passed) {
        let target = format!("/?{query}");
        for (key, (denying, allowing)) in keys.iter().zip(denying.iter().zip(&allowing)) {
            faults.extend(read_otherwise(key, &target, &found, denying, allowing));
        }
    }
    assert_none(&faults);
}

#[test]
fn no_server_makes_a_query_of_a_path_that_the_rules_do_not() {
    let mut random = random();
    let denying = Judge::new(&["a.test"], &["a.test?role=admin*"]);
    let allowing = Judge::new(&["a.test/**?role=user"], &[]);
    // Each of them is two requests to one program.
    let made: BTreeSet<String> = (0..count().div_ceil(4))
        .filter_map(|_| judge::sent(&grammar::disguised(&mut random)))
        .collect();
    let passed: Vec<String> = made
        .into_iter()
        .filter(|target| denying.allows(target) || allowing.allows(target))
        .collect();
    eprintln!(
        "{} targets were allowed by one of two policies",
        passed.len()
    );
    let mut faults = BTreeSet::new();
    for (target, found) in servers::ask_queries(&passed) {
        faults.extend(read_otherwise("role", &target, &found, &denying, &allowing));
    }
    assert_none(&faults);
}

/// What a path to programs is made of.
const SEGMENTS: [&str; 12] = [
    "index.php",
    "INDEX.php",
    "index",
    "secret",
    "admin",
    "%61dmin",
    "page.php",
    "page",
    "pub",
    "x",
    "a.b",
    "",
];

/// Paths of up to three such segments.
fn paths_to_programs() -> Vec<String> {
    let mut paths = vec![String::new()];
    let mut longest = paths.clone();
    for _ in 0..3 {
        let longer = longest.iter().flat_map(|path| {
            let segments = SEGMENTS.iter();
            segments.map(move |segment| format!("{path}/{segment}"))
        });
        longest = longer.collect();
        paths.extend(longest.iter().cloned());
    }
    paths.retain(|path| judge::sent(path).as_deref() == Some(path));
    paths
}

#[test]
fn php_runs_no_program_that_the_rules_deny_for_a_path_that_they_allow() {
    // A rule that denies, the program it names, and what that is given.
    const DENIED: [(&str, &str, &str); 5] = [
        ("a.test/admin/**", "/admin/", ""),
        ("a.test/admin/**", "/index.php", "/admin"),
        ("a.test/secret/**", "/secret/", ""),
        ("a.test/secret/index.php/**", "/secret/index.php", ""),
        ("a.test/index.php/x/**", "/index.php", "/x"),
    ];
    let paths = paths_to_programs();
    let ran = servers::run_by_php(&paths);
    assert!(ran.len() > 100, "{} paths lead to programs", ran.len());
    let mut faults = BTreeSet::new();
    for (rule, program, given) in DENIED {
        let judge = Judge::new(&["a.test"], &[rule]);
        let begins = |text: &str, begin: &str| text.to_ascii_lowercase().starts_with(begin);
        for (path, own, rest) in &ran {
            if begins(own, program) && begins(rest, given) && judge.allows(path) {
                faults.insert(format!("{rule}: php runs {own} with {rest} for {path}"));
            }
        }
    }
    let only = Judge::new(&["a.test/index.php"], &[]);
    for (path, own, rest) in ran.iter().filter(|(path, ..)| only.allows(path)) {
        if own != "/index.php" || !rest.is_empty() {
            faults.insert(format!("allowed: php runs {own} with {rest} for {path}"));
        }
    }
    assert_none(&faults);
    // A rule about one file is not about all that leads there because nothing else does.
    let file = Judge::new(&["a.test"], &["a.test/secret/index.php"]);
    assert!(file.allows("/secret/x") && !file.allows("/secret/"));
}

/// The faults of two rules about a key: parsers that read in a target that is allowed what
/// one of them denies, or not what the other allows.
fn read_otherwise(
    key: &str,
    target: &str,
    found: &readers::Found<readers::Pair>,
    denying: &Judge,
    allowing: &Judge,
) -> Vec<String> {
    let mut faults = Vec::new();
    let own = found
        .iter()
        .filter(|(_, (name, _))| name.eq_ignore_ascii_case(key.as_bytes()));
    for (reader, (_, value)) in own {
        let is_denied = value.to_ascii_lowercase().starts_with(b"admin");
        let shown: String = target.chars().take(200).collect();
        let value_shown = value.escape_ascii();
        if is_denied && denying.allows(target) {
            faults.push(format!(
                "deny: {reader} reads {key}={value_shown} in {shown}"
            ));
        }
        if value != b"user" && allowing.allows(target) {
            faults.push(format!(
                "allow: {reader} reads {key}={value_shown} in {shown}"
            ));
        }
    }
    faults
}
