//! The detector file (TOML): texts in, [`Detector`]s out, every fault at once
//! with its line.
//!
//! One of the few places where a format is read. The build script runs it on the
//! shipped files, the program on a user's own; what passes here is complete:
//! the pattern parses, is bounded, and holds one of its literals in every match.

use std::borrow::Cow;
use std::fmt;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::detector::{
    Anchor, Boundary, Detector, Failure, Registry, Scope, Tenants, Text, Texts, Tier, Validator,
};
use crate::detector_shape;

/// Largest detector file, in bytes.
const FILE_BYTES_MAX: usize = 256 << 10;
/// Most detectors of one file.
const DETECTORS_MAX: usize = 512;
/// Most faults that are told of one file.
const FAULTS_MAX: usize = 32;
/// Most elements of a list.
const LIST_MAX: usize = 64;
/// Longest text of a detector, in bytes.
const TEXT_BYTES_MAX: usize = 2048;

/// A fault of a detector file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileFault {
    /// Line, from 1.
    pub line: usize,
    /// What is wrong.
    pub message: String,
}

impl fmt::Display for FileFault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "line {}: {}", self.line, self.message)
    }
}

impl std::error::Error for FileFault {}

/// Reads a detector file.
///
/// # Errors
/// Every fault, in the order of the file; the author's of the file.
pub fn parse(text: &str) -> Result<Vec<Detector>, Vec<FileFault>> {
    let mut faults = DetectorFaults {
        text,
        found: Vec::new(),
    };
    let detectors = document(text, &mut faults);
    if faults.found.is_empty() {
        return Ok(detectors);
    }
    faults.found.sort_by_key(|fault| fault.line);
    faults.found.truncate(FAULTS_MAX);
    Err(faults.found)
}

/// What went wrong so far.
struct DetectorFaults<'a> {
    text: &'a str,
    found: Vec<FileFault>,
}

impl DetectorFaults<'_> {
    fn add(&mut self, offset: usize, message: String) {
        let before = self.text.get(..offset).unwrap_or_default();
        let breaks = before.matches('\n').count();
        self.found.push(FileFault {
            line: breaks.saturating_add(1),
            message,
        });
    }
}

fn document(text: &str, faults: &mut DetectorFaults<'_>) -> Vec<Detector> {
    if text.len() > FILE_BYTES_MAX {
        faults.add(
            0,
            format!("{} bytes; at most {FILE_BYTES_MAX} are read", text.len()),
        );
        return Vec::new();
    }
    let table = match DeTable::parse(text) {
        Ok(table) => table,
        Err(error) => {
            let offset = error.span().map_or(0, |span| span.start);
            faults.add(offset, error.message().to_owned());
            return Vec::new();
        }
    };
    let mut detectors = Vec::new();
    for (key, value) in table.get_ref() {
        match (key.get_ref().as_ref(), value.get_ref()) {
            ("detector", DeValue::Array(entries)) if entries.len() <= DETECTORS_MAX => {
                for entry in entries {
                    detectors.extend(DetectorTable::read(entry, faults));
                }
            }
            ("detector", DeValue::Array(entries)) => {
                let message = format!("{} detectors; at most {DETECTORS_MAX}", entries.len());
                faults.add(value.span().start, message);
            }
            (other, _) => {
                let message = format!("`{other}` is unknown; a file holds `[[detector]]` tables");
                faults.add(key.span().start, message);
            }
        }
    }
    unique(&detectors, faults);
    detectors
}

fn unique(detectors: &[Detector], faults: &mut DetectorFaults<'_>) {
    let mut seen = std::collections::BTreeSet::new();
    for detector in detectors {
        if !seen.insert(&detector.id) {
            faults.add(0, format!("`{}` is described twice", detector.id));
        }
    }
}

/// One `[[detector]]` table while it is read.
struct DetectorTable<'t, 'f, 'a> {
    table: &'t DeTable<'t>,
    offset: usize,
    faults: &'f mut DetectorFaults<'a>,
    broken: bool,
}

/// Every key of a detector.
const KEYS: [&str; 28] = [
    "id",
    "name",
    "cost",
    "reference",
    "confirmed",
    "tier",
    "literals",
    "anchor",
    "pattern",
    "boundary",
    "validator",
    "failure",
    "min_entropy",
    "scope",
    "registry",
    "issuers",
    "tenant_hosts",
    "except",
    "routed",
    "harmless",
    "tenants",
    "forms",
    "documents",
    "places",
    "secret",
    "unplaced",
    "samples",
    "near_misses",
];

impl<'t> DetectorTable<'t, '_, '_> {
    fn read(item: &'t Spanned<DeValue<'t>>, faults: &mut DetectorFaults<'_>) -> Option<Detector> {
        let offset = item.span().start;
        let DeValue::Table(table) = item.get_ref() else {
            faults.add(offset, "a detector is a table".to_owned());
            return None;
        };
        let mut entry = DetectorTable {
            table,
            offset,
            faults,
            broken: false,
        };
        entry.keys();
        let detector = entry.detector();
        if entry.broken {
            return None;
        }
        for message in detector_shape::faults(&detector) {
            faults.add(offset, format!("`{}`: {message}", detector.id));
        }
        Some(detector)
    }

    fn keys(&mut self) {
        for (key, _) in self.table {
            let name: &str = key.get_ref();
            if !KEYS.contains(&name) {
                self.fault(
                    key.span().start,
                    format!("unknown key `{name}` in a detector"),
                );
            }
        }
    }

    fn fault(&mut self, offset: usize, message: String) {
        self.broken = true;
        self.faults.add(offset, message);
    }

    fn detector(&mut self) -> Detector {
        let pattern = self.text("pattern");
        let (min, max) = match detector_shape::lengths(&pattern) {
            Ok(lengths) => lengths,
            Err(message) => {
                self.fault(self.place("pattern"), message);
                (0, 0)
            }
        };
        Detector {
            id: self.text("id"),
            name: self.text("name"),
            cost: self.text("cost"),
            reference: self.text("reference"),
            confirmed: self.flag("confirmed"),
            tier: self.needed("tier", &TIERS, Tier::Context),
            literals: self.texts("literals"),
            anchor: self.word("anchor", &ANCHORS, Anchor::Start),
            pattern,
            min,
            max,
            boundary: self.word("boundary", &BOUNDARIES, Boundary::Word),
            validator: self.word("validator", &VALIDATORS, Validator::None),
            failure: self.word("failure", &FAILURES, Failure::Lower),
            min_entropy: self.bits("min_entropy"),
            scope: self.scope(),
            issuers: self.texts("issuers"),
            tenant_hosts: self.texts("tenant_hosts"),
            except: self.texts("except"),
            routed: self.texts("routed"),
            harmless: self.sentence("harmless"),
            tenants: self.word("tenants", &TENANTS, Tenants::One),
            forms: self.texts("forms"),
            documents: self.texts("documents"),
            places: self.texts("places"),
            secret: self.sentence("secret"),
            unplaced: self.sentence("unplaced"),
            samples: self.texts("samples"),
            near_misses: self.texts("near_misses"),
        }
    }

    fn item(&self, key: &str) -> Option<&'t Spanned<DeValue<'t>>> {
        self.table.get(key)
    }

    fn place(&self, key: &str) -> usize {
        self.item(key).map_or(self.offset, |item| item.span().start)
    }

    /// A text that has to be there.
    fn text(&mut self, key: &str) -> Text {
        let value = self.item(key).and_then(|item| item.get_ref().as_str());
        if let Some(text) = value
            && (1..=TEXT_BYTES_MAX).contains(&text.len())
        {
            return Cow::Owned(text.to_owned());
        }
        let message = format!("`{key}` must be there: a text of 1 to {TEXT_BYTES_MAX} bytes");
        self.fault(self.place(key), message);
        Cow::Borrowed("")
    }

    /// A text that may be there.
    fn sentence(&mut self, key: &str) -> Text {
        match self.item(key) {
            Some(_) => self.text(key),
            None => Cow::Borrowed(""),
        }
    }

    fn texts(&mut self, key: &str) -> Texts {
        let Some(item) = self.item(key) else {
            return Cow::Borrowed(&[]);
        };
        let list = item.get_ref().as_array();
        let texts: Option<Vec<Text>> =
            list.filter(|list| list.len() <= LIST_MAX).and_then(|list| {
                let text = |item: &Spanned<DeValue<'_>>| {
                    let text = item.get_ref().as_str()?;
                    (!text.is_empty() && text.len() <= TEXT_BYTES_MAX)
                        .then(|| Cow::Owned(text.to_owned()))
                };
                list.iter().map(text).collect()
            });
        if texts.is_none() {
            let message = format!("`{key}` must be a list of at most {LIST_MAX} texts");
            self.fault(item.span().start, message);
        }
        Cow::Owned(texts.unwrap_or_default())
    }

    fn flag(&mut self, key: &str) -> bool {
        let Some(item) = self.item(key) else {
            return false;
        };
        let flag = item.get_ref().as_bool();
        if flag.is_none() {
            self.fault(item.span().start, format!("`{key}` must be true or false"));
        }
        flag.unwrap_or_default()
    }

    /// One word of a list; `other` where the key is absent.
    fn word<T: Copy>(&mut self, key: &str, words: &[(&str, T)], other: T) -> T {
        match self.item(key) {
            Some(_) => self.needed(key, words, other),
            None => other,
        }
    }

    /// One word of a list that has to be there; `other` beside a fault.
    fn needed<T: Copy>(&mut self, key: &str, words: &[(&str, T)], other: T) -> T {
        let given = self.item(key).and_then(|item| item.get_ref().as_str());
        let given = given.unwrap_or_default();
        if let Some((_, value)) = words.iter().find(|(word, _)| *word == given) {
            return *value;
        }
        let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        let message = format!("`{key}` is one of {}, not `{given}`", known.join(", "));
        self.fault(self.place(key), message);
        other
    }

    /// A number of bits a byte.
    fn bits(&mut self, key: &str) -> f32 {
        let Some(item) = self.item(key) else {
            return 0.0;
        };
        let number = match item.get_ref() {
            DeValue::Float(number) => number.as_str().parse::<f32>().ok(),
            DeValue::Integer(number) => number.as_str().parse::<f32>().ok(),
            _ => None,
        };
        let number = number.filter(|number| (0.0..=8.0).contains(number));
        if number.is_none() {
            let message = format!("`{key}` is a number of bits a byte, from 0 to 8");
            self.fault(item.span().start, message);
        }
        number.unwrap_or_default()
    }

    fn scope(&mut self) -> Scope {
        let scope = self.needed("scope", &SCOPES, Scope::Never);
        let named = self.item("registry").is_some();
        if let Scope::Registry(_) = scope {
            return Scope::Registry(self.needed("registry", &REGISTRIES, Registry::Npm));
        }
        if named {
            let message = "`registry` needs `scope = \"registry\"`".to_owned();
            self.fault(self.place("registry"), message);
        }
        scope
    }
}

const TIERS: [(&str, Tier); 3] = [
    ("strong", Tier::Strong),
    ("structured", Tier::Structured),
    ("context", Tier::Context),
];

const ANCHORS: [(&str, Anchor); 3] = [
    ("start", Anchor::Start),
    ("inside", Anchor::Inside),
    ("scan", Anchor::Scan),
];

const BOUNDARIES: [(&str, Boundary); 4] = [
    ("before", Boundary::Before),
    ("near", Boundary::Near),
    ("word", Boundary::Word),
    ("none", Boundary::None),
];

const FAILURES: [(&str, Failure); 2] = [("lower", Failure::Lower), ("clear", Failure::Clear)];

const TENANTS: [(&str, Tenants); 2] = [("one", Tenants::One), ("many", Tenants::Many)];

const SCOPES: [(&str, Scope); 5] = [
    ("issuers", Scope::Issuers),
    ("never", Scope::Never),
    ("user", Scope::User),
    ("claims", Scope::Claims),
    // Which one, the key `registry` says.
    ("registry", Scope::Registry(Registry::Npm)),
];

const REGISTRIES: [(&str, Registry); 3] = [
    ("npm", Registry::Npm),
    ("pypi", Registry::Pypi),
    ("cargo", Registry::Cargo),
];

/// What detector files call each validator.
const VALIDATORS: [(&str, Validator); 18] = [
    ("none", Validator::None),
    ("entropy", Validator::Entropy),
    ("placeholder", Validator::Placeholder),
    ("crc32-b62", Validator::Crc32Base62),
    ("crc-tail-hex", Validator::CrcTailHex),
    ("bech32", Validator::Bech32),
    ("base58check", Validator::Base58Check),
    ("luhn+bin", Validator::LuhnBin),
    ("mod97", Validator::Mod97),
    ("bip39", Validator::Bip39),
    ("jwt", Validator::Jwt),
    ("aws-akid", Validator::AwsKeyId),
    ("macaroon-v2", Validator::MacaroonV2),
    ("gitlab-routable", Validator::GitlabRoutable),
    ("b64-json", Validator::Base64Json),
    ("b64-userpass", Validator::Base64UserPass),
    ("discord-snowflake", Validator::DiscordSnowflake),
    ("random", Validator::Random),
];
