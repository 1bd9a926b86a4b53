//! Ordinary content in which nobody hid a credential: what is found in it is wrong,
//! or an example that its writers put there. Sources and bundles of packages, lock
//! files, packs, images, certificates, texts in two languages, calls and telemetry.
//!
//! Reads packages that `tests/corpora/install` fetched by version and sum, and the crates of
//! the lock file, so that it says the same everywhere. Every kind has to have its bytes, and
//! each finding has to be known: somebody looked at it. Where the packages were not fetched, a
//! kind without its bytes is said and left out.

#![expect(clippy::expect_used, reason = "what is missing is a failed test")]
#![expect(clippy::print_stderr, reason = "says how much of each kind there was")]

mod gather;
mod kinds;
mod made;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use outgate_dlp::{
    Description, Detectors, Place, Ruleset, ScanDestination, ScanPolicy, ScanSettings,
    UnscannableAction,
};

use gather::Content;
use kinds::{ALL, Kind};

/// Bytes of all kinds, at least.
const BYTES_MIN: u64 = 64 << 20;

/// Findings of all kinds, at most.
const FINDINGS_MAX: usize = 12;

/// Content is as long as requests are, at most: what is longer is left out.
const CONTENT_BYTES_MAX: u64 = 8 << 20;

#[test]
fn the_kinds_are_enough_and_their_findings_few() {
    let bytes: u64 = ALL.iter().map(|kind| kind.needs).sum();
    assert!(bytes >= BYTES_MIN, "{bytes} bytes are asked for");
    let known = ALL.iter().flat_map(|kind| kind.known);
    let findings: usize = known.clone().map(|known| known.most).sum();
    assert!(findings <= FINDINGS_MAX, "{findings} findings are allowed");
    for known in known {
        assert!(known.most > 0 && !known.why.is_empty(), "{known:?}");
    }
}

/// One test for each kind, so that they are made side by side and each is named.
macro_rules! tests {
    ($($name:ident: $kind:ident,)*) => {$(
        #[test]
        fn $name() {
            check(&kinds::$kind);
        }
    )*};
}

tests! {
    sources_of_javascript_hold_nothing: JAVASCRIPT,
    bundles_hold_nothing: BUNDLES,
    sources_of_python_hold_nothing: PYTHON,
    sources_of_go_hold_nothing: GO,
    sources_of_rust_hold_nothing: RUST,
    descriptions_of_interfaces_hold_nothing: INTERFACES,
    lock_files_hold_nothing: LOCKS,
    packs_hold_nothing: PACKS,
    images_hold_nothing: IMAGES,
    certificates_hold_nothing: CERTIFICATES,
    english_texts_hold_nothing: ENGLISH,
    chinese_texts_hold_nothing: CHINESE,
    calls_hold_nothing: CALLS,
    telemetry_holds_nothing: TELEMETRY,
}

/// What was found where.
struct Found {
    place: String,
    detector: String,
    line: String,
}

fn check(kind: &Kind) {
    let contents = (kind.gather)();
    let (bytes, found) = scan(&contents);
    eprintln!("{}: {bytes} bytes, {} findings", kind.name, found.len());
    if bytes < kind.needs {
        let (name, needs) = (kind.name, kind.needs);
        outgate_harness::skip(&format!("{name}: {bytes} bytes of {needs}"));
        return;
    }
    let mut left: Vec<usize> = kind.known.iter().map(|known| known.most).collect();
    let mut unknown = Vec::new();
    for found in &found {
        let place = kind.known.iter().position(|known| {
            found.detector == known.detector && found.place.ends_with(known.file)
        });
        match place.and_then(|place| left.get_mut(place)) {
            Some(left) if *left > 0 => *left -= 1,
            _ => unknown.push(found.line.clone()),
        }
    }
    assert!(
        unknown.is_empty(),
        "{}: nobody looked at {} of {} findings in {bytes} bytes:\n{}",
        kind.name,
        unknown.len(),
        found.len(),
        unknown.join("\n")
    );
}

/// Scans all of it on its way to nobody it is for; its bytes, and the findings in
/// order.
fn scan(contents: &[Content]) -> (u64, Vec<Found>) {
    let settings = ScanSettings {
        policy: ScanPolicy::Monitor,
        unscannable: UnscannableAction::Record,
        ..ScanSettings::default()
    };
    let rules = Arc::new(Ruleset::new(&Detectors::shipped(), &settings).expect("a ruleset"));
    let (next, all) = (AtomicUsize::new(0), Mutex::new((0, Vec::new())));
    let work = || {
        while let Some(content) = contents.get(next.fetch_add(1, Ordering::Relaxed)) {
            let Some(bytes) = content.read(CONTENT_BYTES_MAX) else {
                continue;
            };
            let found = look(&rules, &content.name(), &bytes);
            let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
            all.0 += bytes.len() as u64;
            all.1.extend(found);
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(work);
        }
    });
    let (bytes, mut found) = all.into_inner().unwrap_or_else(PoisonError::into_inner);
    found.sort_by(|one: &Found, other| one.line.cmp(&other.line));
    (bytes, found)
}

fn look(rules: &Arc<Ruleset>, name: &str, bytes: &[u8]) -> Vec<Found> {
    let destination = ScanDestination {
        host: "elsewhere.test",
        port: 443,
    };
    let description = Description {
        place: Place::Content,
        media_type: None,
        content_codings: None,
        length: None,
    };
    let mut stream = rules.stream(&destination, &description);
    stream.push(bytes).expect("it is only recorded");
    stream.finish().expect("it is only recorded");
    let findings = stream.warnings().into_iter();
    findings
        .map(|finding| Found {
            place: name.to_owned(),
            detector: finding.detector.to_string(),
            line: format!("{name}@{}: {finding}", finding.offset),
        })
        .collect()
}
