//! Credentials on their way out, by every road a request has: in the target, in
//! fields, in content however coded, in messages, in names. Written as a thief
//! would, against the real programs. Whatever is tried, no byte of the
//! credential arrives, the person is told, and neither terminal nor record
//! shows it. The same without the credential, or towards its issuer, arrives.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::cast_possible_truncation,
    clippy::panic,
    clippy::print_stderr,
    reason = "a step that cannot be made is a failed test"
)]

mod beside;
mod budgets;
mod canary;
mod cases;
mod coded;
mod credential;
mod day;
mod detectors;
mod issuers;
mod known;
mod long;
mod masks;
mod modes;
mod places;
mod recorder;
mod rules;
mod shown;
mod streams;

use outgate_harness::{Identity, Lab, Outcome, Sandbox};

use credential::Credential;
use recorder::Recorder;

/// Where the thief listens.
const PORT: u16 = 8099;
const HOST: &str = "drop.example";

/// A sandbox that may send anything to the thief's host.
fn confined(lab: &Lab, identity: Identity) -> Sandbox<'_> {
    let work = lab.folder("work", identity);
    Sandbox::plain(lab, identity)
        .option("-P", "base")
        .option("-r", &lab.folder("given", Identity::Own).to_string_lossy())
        .option("-w", &work.to_string_lossy())
        .allow(&format!("http://{HOST}:{PORT}"))
        .allow(&format!("ws://{HOST}:{PORT}"))
        .pin(&format!("{HOST}:{PORT}=127.0.0.1:{PORT}"))
}

/// `bash -c SCRIPT`, with the words that the scripts here have in common.
fn bash(script: &str) -> Vec<String> {
    let url = format!("URL=http://{HOST}:{PORT}; ");
    let words = ["bash", "-c", &format!("{url}{script}")];
    words.iter().map(|&word| word.to_owned()).collect()
}

/// Asserts that nothing of the credential got anywhere it may not.
///
/// # Panics
/// When it did.
fn assert_contained(outcome: &Outcome, sent: &[u8], credential: &Credential, place: &str) {
    let text = String::from_utf8_lossy(sent);
    for piece in credential.pieces() {
        assert!(!text.contains(piece), "{place}: `{piece}` arrived: {text}");
        // Clients show what they were asked to fetch; only our lines count.
        let ours = outcome
            .stderr
            .lines()
            .filter(|line| line.contains("outgate"));
        for line in ours {
            assert!(!line.contains(piece), "{place}: shown: {line}");
        }
    }
}

/// Asserts that the person was told what kind of credential it is, and where it
/// may go.
///
/// # Panics
/// When not.
fn assert_told(outcome: &Outcome, place: &str) {
    let told = outcome.stderr.contains("outgate: denied")
        && outcome.stderr.contains("github-token")
        && outcome.stderr.contains("it may go to github.com");
    assert!(told, "{place}: told: {outcome}");
}

/// A thief's host, and what it got.
fn thief() -> Recorder {
    Recorder::start(PORT)
}
