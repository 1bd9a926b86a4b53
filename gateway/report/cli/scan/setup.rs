//! Detectors and rules of a scan from its options.

use std::fs::File;
use std::io::Read;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

use outgate_dlp::{
    Anchor, Detector, DetectorMode, Detectors, Issuer, IssuerPattern, KnownBuilder, Ruleset,
    ScanPolicy, ScanSettings, Scope, UnscannableAction, parse_detectors,
};
use outgate_inventory::{Gathered, SecretPlaces, gather};

use super::arguments::Scan;

/// Largest file of detectors or of a baseline, in bytes.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// The shipped detectors and those of the options.
pub(crate) fn detectors(options: &Scan) -> Result<Detectors, String> {
    let mut detectors = Detectors::shipped();
    for path in &options.detectors {
        let text = small(path)?;
        let place = path.display();
        let more = parse_detectors(&text).map_err(|faults| {
            let lines: Vec<String> = faults
                .iter()
                .map(|fault| format!("{place}:{}: {}", fault.line, fault.message))
                .collect();
            lines.join("\noutgate: ")
        })?;
        detectors
            .add(more)
            .map_err(|error| format!("{place}: {error}"))?;
    }
    Ok(detectors)
}

/// The rules: everything is reported, nothing ends the scan.
pub(crate) fn ruleset(
    detectors: &Detectors,
    options: &Scan,
    key: [u8; 32],
) -> Result<Arc<Ruleset>, String> {
    let mut modes = Vec::new();
    for (ids, mode) in [
        (&options.enable, DetectorMode::Warn),
        (&options.disable, DetectorMode::Off),
    ] {
        for id in ids {
            if detectors.find(id).is_none() {
                return Err(format!(
                    "no detector `{id}`; `outgate scan --list` shows all"
                ));
            }
            modes.push((id.clone(), mode));
        }
    }
    let gathered = own(options);
    let settings = ScanSettings {
        modes,
        registries: registries(detectors, &gathered),
        // Who names a host knows whose it is.
        named: host(options).into_iter().collect(),
        policy: ScanPolicy::Monitor,
        unscannable: UnscannableAction::Record,
        key,
        ..ScanSettings::default()
    };
    let rules = Ruleset::new(detectors, &settings).map_err(|error| error.to_string())?;
    let mut known = KnownBuilder::new(key);
    gathered.hold(&mut known, detectors)?;
    Ok(Arc::new(
        rules.with_known(Arc::new(known.build()), Vec::new()),
    ))
}

/// The user's own secrets, where they are asked for.
fn own(options: &Scan) -> Gathered {
    let list = options.secrets_file.clone();
    if !options.own {
        let places = SecretPlaces {
            list,
            ..SecretPlaces::default()
        };
        return gather(&places, std::iter::empty());
    }
    let places = SecretPlaces {
        home: std::env::home_dir().filter(|home| home.is_absolute()),
        directory: std::env::current_dir().ok(),
        list,
    };
    gather(&places, std::env::vars_os())
}

/// Where tokens of registries may go: to the hosts that the user's files name.
fn registries(detectors: &Detectors, gathered: &Gathered) -> Vec<Issuer> {
    let mut issuers = Vec::new();
    for (registry, host) in gathered.registries() {
        let of_it = |detector: &&Detector| detector.scope == Scope::Registry(registry);
        for detector in detectors.iter().filter(of_it) {
            issuers.push(Issuer {
                detector: detector.id.to_string(),
                host: host.clone(),
            });
        }
    }
    issuers
}

/// The host of `--to` in its canonical form; nothing where there is none.
pub(crate) fn host(options: &Scan) -> Result<String, String> {
    let Some(host) = &options.to else {
        return Ok(String::new());
    };
    let name = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
    let is_address = name.parse::<IpAddr>().is_ok();
    if is_address || (IssuerPattern::parse(&name).is_ok() && !name.contains(['*', ':'])) {
        return Ok(name);
    }
    let shown: String = host.escape_debug().take(80).collect();
    Err(format!(
        "`--to {shown}` is not a host; write `api.example.org`"
    ))
}

/// Whether a detector runs without being asked for.
pub(crate) fn is_on(detector: &Detector) -> bool {
    detector.anchor != Anchor::Scan
}

/// A small text file, whole.
pub(crate) fn small(path: &Path) -> Result<String, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", path.display());
    let mut text = String::new();
    let file = File::open(path).map_err(failed)?;
    let read = file
        .take(FILE_BYTES_MAX + 1)
        .read_to_string(&mut text)
        .map_err(failed)?;
    if u64::try_from(read).unwrap_or(u64::MAX) > FILE_BYTES_MAX {
        return Err(format!(
            "{}: larger than {FILE_BYTES_MAX} bytes",
            path.display()
        ));
    }
    Ok(text)
}
