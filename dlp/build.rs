//! Reads `detectors/*.toml` when the crate is built and writes them as a table
//! of constants, so that a program that starts parses nothing; and places their
//! literals for the search, so that it weighs nothing either.
//!
//! A fault of a file stops the build with its place.

#![forbid(unsafe_code)]

#[path = "src/magic/beginnings.rs"]
mod beginnings;
#[path = "src/destination.rs"]
#[expect(
    dead_code,
    unreachable_pub,
    reason = "the crate uses what this script does not"
)]
mod destination;
#[path = "src/detector.rs"]
#[expect(
    dead_code,
    unreachable_pub,
    reason = "the crate uses what this script does not"
)]
mod detector;
#[path = "src/detector_file.rs"]
#[expect(unreachable_pub, reason = "the crate shows what this script does not")]
mod detector_file;
#[path = "src/detector_place.rs"]
#[expect(dead_code, reason = "the crate uses what this script does not")]
mod detector_place;
#[path = "src/detector_shape.rs"]
mod detector_shape;
#[path = "src/inventory/forms/written.rs"]
mod forms;
#[path = "src/groups.rs"]
mod groups;
#[path = "src/limits.rs"]
#[expect(
    dead_code,
    unreachable_pub,
    reason = "the crate uses what this script does not"
)]
mod limits;
#[path = "src/transforms.rs"]
#[expect(dead_code, reason = "the crate uses what this script does not")]
mod transforms;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use detector::{Detector, Scope, Texts};
use groups::{GROUPS, Groups, Placed, WINDOW_BYTES};

/// Where literals are placed, by `examples/place.rs`.
const PLACES: &str = "places.txt";

fn main() -> Result<(), String> {
    let root = PathBuf::from(variable("CARGO_MANIFEST_DIR")?);
    let folder = root.join("detectors");
    let mut columns = Columns::default();
    let mut owners = BTreeMap::new();
    let mut literals = BTreeMap::new();
    let mut detectors = Vec::new();
    let files = files(&folder)?;
    for path in &files {
        for detector in read(path)? {
            let name = path.display().to_string();
            if let Some(other) = owners.insert(detector.id.to_string(), name) {
                return Err(format!(
                    "{}: `{}` is in {other} too",
                    path.display(),
                    detector.id
                ));
            }
            columns.add(&detector).map_err(|error| error.to_string())?;
            for literal in detector.literals.iter() {
                for (form, _) in transforms::forms(&detector, literal.as_bytes()) {
                    literals.insert(form, None);
                }
            }
            detectors.push(detector);
        }
    }
    literals.extend(beginnings().map(|mark| (mark.to_vec(), None)));
    let folder = PathBuf::from(variable("OUT_DIR")?);
    let places = root.join(PLACES);
    let places =
        fs::read_to_string(&places).map_err(|error| format!("{}: {error}", places.display()))?;
    let placed = placed(literals, &places)?;
    let forms = forms::tables(&detectors)?;
    for (name, text) in [
        ("shipped.rs", columns.written()),
        ("placed.rs", placed),
        ("forms.rs", forms),
    ] {
        let output = folder.join(name);
        fs::write(&output, text).map_err(|error| format!("{}: {error}", output.display()))?;
    }
    let mut cargo = std::io::stdout();
    for watched in [
        "build.rs",
        PLACES,
        "detectors",
        "src/magic/beginnings.rs",
        "src/detector.rs",
        "src/detector_file.rs",
        "src/detector_place.rs",
        "src/destination.rs",
        "src/groups.rs",
        "src/inventory/forms/written.rs",
        "src/limits.rs",
        "src/transforms.rs",
        "src/detector_shape.rs",
    ] {
        writeln!(cargo, "cargo::rerun-if-changed={watched}").map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// What is looked for beside the literals of detectors.
fn beginnings() -> impl Iterator<Item = &'static [u8]> {
    use beginnings::{
        AGE, AGE_ESCAPED, BZIP2, GZIP, LZ4, LZ4_LEGACY, LZIP, LZMA, LZMA_SIZE, PACK, PGP,
        PGP_MARKER, PGP_TEXT, RAR, SEVEN_ZIP, TAR, XZ, ZIP, ZIP_CENTRAL, ZSTD,
    };
    let marks = [
        GZIP,
        ZSTD,
        ZIP,
        ZIP_CENTRAL,
        PACK,
        TAR,
        BZIP2,
        XZ,
        SEVEN_ZIP,
        LZ4,
        LZ4_LEGACY,
        RAR,
        PGP_TEXT,
        AGE,
        AGE_ESCAPED,
        LZMA_SIZE,
    ];
    marks
        .into_iter()
        .chain(PGP_MARKER)
        .chain(PGP)
        .chain(LZMA)
        .chain(LZIP)
}

/// Where each literal is placed, as a table in the order of literals: where the file
/// of places says, and those that it does not have beside them.
fn placed(mut literals: BTreeMap<Vec<u8>, Option<Placed>>, known: &str) -> Result<String, String> {
    let mut places = BTreeMap::new();
    for (number, line) in (1..).zip(known.lines()) {
        let fault = |what: &str| format!("{PLACES}:{number}: `{line}` {what}");
        let shape = || fault("is no place, group and literal in quotes");
        let (at, rest) = line.split_once(' ').ok_or_else(shape)?;
        let (group, literal) = rest.split_once(' ').ok_or_else(shape)?;
        let literal = literal
            .strip_prefix('\'')
            .and_then(|own| own.strip_suffix('\''));
        let literal = literal.ok_or_else(shape)?;
        let at = at.parse().map_err(|_| shape())?;
        let group = group.parse().map_err(|_| shape())?;
        let stale = || fault("does not fit its literal; take the line out");
        let is_twice = places
            .insert(literal, (Placed { at, group }, stale()))
            .is_some();
        if is_twice {
            return Err(fault("names a literal again"));
        }
    }
    for (literal, placed) in &mut literals {
        let own = places.get(literal.escape_ascii().to_string().as_str());
        if let Some((own, fault)) = own {
            if !fits(*own, literal) {
                return Err(fault.clone());
            }
            *placed = Some(*own);
        }
    }
    let mut groups = Groups::default();
    let there = literals.iter();
    groups.add(there.filter_map(|(literal, placed)| Some((literal.as_slice(), (*placed)?))));
    for (literal, placed) in &mut literals {
        *placed = placed.or_else(|| groups.place(literal));
    }
    let (mut text, mut rows) = (Vec::new(), Vec::new());
    for (literal, placed) in &literals {
        if let Some(Placed { at, group }) = placed {
            let begin = text.len();
            text.extend_from_slice(literal);
            let end = text.len();
            rows.push(format!(
                "(({begin}, {end}), Placed {{ at: {at}, group: {group} }}),\n"
            ));
        }
    }
    Ok(format!(
        "static PLACED_TEXT: [u8; {}] = *b\"{}\";\n\
         static PLACED: [((u32, u32), Placed); {}] = [\n{}];\n",
        text.len(),
        text.escape_ascii(),
        rows.len(),
        rows.concat()
    ))
}

fn fits(placed: Placed, literal: &[u8]) -> bool {
    placed.group < GROUPS && placed.at.saturating_add(WINDOW_BYTES) <= literal.len()
}

fn variable(name: &str) -> Result<String, String> {
    std::env::var(name).map_err(|error| format!("{name}: {error}"))
}

fn files(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.map_err(|error| error.to_string())?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "toml")
        {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

fn read(path: &Path) -> Result<Vec<Detector>, String> {
    let place = path.display();
    let text = fs::read_to_string(path).map_err(|error| format!("{place}: {error}"))?;
    detector_file::parse(&text).map_err(|faults| {
        let lines: Vec<String> = faults
            .iter()
            .map(|fault| format!("{place}: {fault}"))
            .collect();
        format!("\n{}", lines.join("\n"))
    })
}

/// The texts of detectors, and which are where, as columns of numbers: a table of references
/// is as many pointers that every start of a program has to relocate.
#[derive(Default)]
struct Columns {
    text: String,
    /// Texts of lists, one behind the other.
    listed: Vec<(usize, usize)>,
    rows: String,
    count: usize,
}

impl Columns {
    fn add(&mut self, detector: &Detector) -> std::fmt::Result {
        let scope = match detector.scope {
            Scope::Registry(registry) => format!("Registry(Registry::{registry:?})"),
            other => format!("{other:?}"),
        };
        let texts = [
            &detector.id,
            &detector.name,
            &detector.cost,
            &detector.reference,
            &detector.pattern,
            &detector.harmless,
            &detector.unplaced,
            &detector.secret,
        ];
        let lists = [
            &detector.literals,
            &detector.issuers,
            &detector.tenant_hosts,
            &detector.except,
            &detector.routed,
            &detector.forms,
            &detector.documents,
            &detector.places,
            &detector.samples,
            &detector.near_misses,
        ];
        let texts = texts.map(|text| self.text(text));
        let lists = lists.map(|list| self.list(list));
        self.count += 1;
        let table = &mut self.rows;
        writeln!(table, "DetectorRow {{ texts: {texts:?}, lists: {lists:?},")?;
        writeln!(table, "confirmed: {:?},", detector.confirmed)?;
        writeln!(table, "tier: Tier::{:?},", detector.tier)?;
        writeln!(table, "anchor: Anchor::{:?},", detector.anchor)?;
        writeln!(table, "min: {}, max: {},", detector.min, detector.max)?;
        writeln!(table, "boundary: Boundary::{:?},", detector.boundary)?;
        writeln!(table, "validator: Validator::{:?},", detector.validator)?;
        writeln!(table, "failure: Failure::{:?},", detector.failure)?;
        writeln!(table, "min_entropy: {:?},", detector.min_entropy)?;
        writeln!(table, "scope: Scope::{scope},")?;
        writeln!(table, "tenants: Tenants::{:?} }},", detector.tenants)
    }

    fn text(&mut self, text: &str) -> (usize, usize) {
        let at = self.text.len();
        self.text.push_str(text);
        (at, self.text.len())
    }

    fn list(&mut self, texts: &Texts) -> (usize, usize) {
        let at = self.listed.len();
        for text in texts.iter() {
            let place = self.text(text);
            self.listed.push(place);
        }
        (at, self.listed.len())
    }

    /// As Rust.
    fn written(self) -> String {
        format!(
            "static TEXT: &str = {:?};\n\
             static LISTED: [TextPlace; {}] = {:?};\n\
             static ROWS: [DetectorRow; {}] = [\n{}];\n",
            self.text,
            self.listed.len(),
            self.listed,
            self.count,
            self.rows
        )
    }
}
