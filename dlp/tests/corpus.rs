//! Real files in which nobody hid a credential: what is found in them is wrong.
//!
//! Reads what most machines have: the sources of Python, certificates, the
//! documentation of packages. What is missing is said and left out.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use outgate_dlp::{
    Description, Destination, Detectors, Place, Policy, Ruleset, Settings, Unscannable,
};

/// Bytes that are read at most.
const BYTES_MAX: usize = 24 << 20;

/// Findings that are allowed in so many bytes: examples of documentation.
const FINDINGS_MAX: usize = 5;

const PLACES: [&str; 5] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/usr/lib/python3",
    "/usr/lib/python3.11",
    "/usr/lib/python3.12",
    "/usr/share/perl",
];

fn collect(path: &Path, files: &mut Vec<PathBuf>) {
    let Ok(about) = fs::symlink_metadata(path) else {
        return;
    };
    if about.is_dir() {
        let mut entries: Vec<PathBuf> = fs::read_dir(path)
            .into_iter()
            .flatten()
            .filter_map(|entry| Some(entry.ok()?.path()))
            .collect();
        entries.sort();
        for entry in entries {
            collect(&entry, files);
        }
    } else if about.is_file() {
        files.push(path.to_owned());
    }
}

#[test]
fn ordinary_files_hold_nothing_or_examples() {
    let settings = Settings {
        policy: Policy::Monitor,
        unscannable: Unscannable::Record,
        ..Settings::default()
    };
    let rules = Arc::new(Ruleset::new(&Detectors::shipped(), &settings).expect("a ruleset"));
    let mut files = Vec::new();
    for place in PLACES {
        if Path::new(place).exists() {
            collect(Path::new(place), &mut files);
        } else {
            eprintln!("skipped: no {place} on this machine");
        }
    }
    let mut read = 0;
    let mut found = Vec::new();
    for file in files {
        let Ok(bytes) = fs::read(&file) else {
            continue;
        };
        read += bytes.len();
        if read > BYTES_MAX {
            break;
        }
        let destination = Destination {
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
        let pushed = stream.push(&bytes);
        assert!(pushed.is_ok(), "{}: only recorded", file.display());
        assert!(stream.finish().is_ok(), "{}: only recorded", file.display());
        for finding in stream.warnings() {
            found.push(format!("{}@{}: {finding}", file.display(), finding.offset));
        }
    }
    let all = found.join("\n");
    assert!(
        found.len() <= FINDINGS_MAX,
        "{} findings in {read} bytes:\n{all}",
        found.len()
    );
    eprintln!("{} findings in {read} bytes\n{all}", found.len());
}
