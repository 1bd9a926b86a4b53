//! Who may depend on whom, asked of `cargo metadata`, without the network.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;

use crate::files::{self, assert_none};
use crate::lexer::code;

/// The edges between our crates, without those of tests. No other may exist.
const EDGES: [(&str, &[&str]); 12] = [
    (
        "outgate",
        &[
            "outgate-dlp",
            "outgate-gateway",
            "outgate-launcher",
            "outgate-policy",
            "outgate-record",
            "outgate-report",
        ],
    ),
    ("outgate-ca", &[]),
    ("outgate-dlp", &["outgate-lanes"]),
    (
        "outgate-gateway",
        &[
            "outgate-ca",
            "outgate-dlp",
            "outgate-handoff",
            "outgate-inventory",
            "outgate-policy",
            "outgate-record",
            "outgate-sys",
        ],
    ),
    ("outgate-handoff", &["outgate-policy"]),
    ("outgate-inventory", &["outgate-dlp"]),
    (
        "outgate-launcher",
        &["outgate-handoff", "outgate-policy", "outgate-sys"],
    ),
    ("outgate-lanes", &[]),
    ("outgate-policy", &[]),
    ("outgate-record", &["outgate-policy"]),
    (
        "outgate-report",
        &[
            "outgate-dlp",
            "outgate-inventory",
            "outgate-policy",
            "outgate-record",
        ],
    ),
    ("outgate-sys", &[]),
];

/// Crates that only tests may use.
const FOR_TESTS: [&str; 1] = ["outgate-harness"];

/// What the launcher must never contain: runtimes, HTTP, TLS, DNS.
const NOT_IN_LAUNCHER: [&str; 11] = [
    "tokio",
    "hyper",
    "http",
    "httparse",
    "h2",
    "rustls",
    "native-tls",
    "openssl",
    "hickory-proto",
    "hickory-resolver",
    "async-std",
];

/// What the policy crate must never contain beside that: the system.
const NOT_IN_POLICY: [&str; 4] = ["nix", "rustix", "landlock", "libc"];

/// What `cargo metadata` says, for this platform.
pub(crate) fn metadata() -> Value {
    let platform = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let output = Command::new(cargo)
        .current_dir(files::root())
        .args(["metadata", "--format-version", "1", "--offline", "--locked"])
        .args(["--filter-platform", &platform])
        .output()
        .expect("cargo");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cargo metadata: {errors}");
    serde_json::from_slice(&output.stdout).expect("what cargo wrote")
}

/// The members of an array.
pub(crate) fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// A text, or nothing.
pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Our own packages.
pub(crate) fn own(metadata: &Value) -> impl Iterator<Item = &Value> {
    list(&metadata["packages"]).filter(|package| package["source"].is_null())
}

fn is_for_use(dependency: &Value) -> bool {
    dependency["kind"].as_str() != Some("dev")
}

#[test]
fn our_crates_depend_on_each_other_only_as_drawn() {
    let metadata = metadata();
    let names: BTreeSet<&str> = own(&metadata)
        .map(|package| text(&package["name"]))
        .collect();
    let mut found = BTreeMap::new();
    for package in own(&metadata) {
        let edges: BTreeSet<&str> = list(&package["dependencies"])
            .filter(|dependency| is_for_use(dependency))
            .map(|dependency| text(&dependency["name"]))
            .filter(|name| names.contains(name))
            .collect();
        found.insert(text(&package["name"]), edges);
    }
    for name in FOR_TESTS {
        let edges = found.remove(name);
        assert_eq!(edges, Some(BTreeSet::new()), "{name} stands alone");
    }
    let drawn: BTreeMap<&str, BTreeSet<&str>> = EDGES
        .iter()
        .map(|(name, edges)| (*name, edges.iter().copied().collect()))
        .collect();
    assert_eq!(found, drawn);
}

/// The names of everything a package is built from, itself included.
fn closure(metadata: &Value, name: &str) -> BTreeSet<String> {
    let names: BTreeMap<&str, &str> = list(&metadata["packages"])
        .map(|package| (text(&package["id"]), text(&package["name"])))
        .collect();
    let nodes: BTreeMap<&str, &Value> = metadata
        .pointer("/resolve/nodes")
        .into_iter()
        .flat_map(list)
        .map(|node| (text(&node["id"]), node))
        .collect();
    let start = names.iter().find(|(_, own)| **own == name);
    let mut open: Vec<&str> = start.map(|(id, _)| *id).into_iter().collect();
    assert!(!open.is_empty(), "no package `{name}`");
    let mut seen = BTreeSet::new();
    while let Some(id) = open.pop() {
        if !seen.insert(id) {
            continue;
        }
        let node = nodes.get(id).copied().unwrap_or(&Value::Null);
        for edge in list(&node["deps"]) {
            if list(&edge["dep_kinds"]).any(is_for_use) {
                open.push(text(&edge["pkg"]));
            }
        }
    }
    seen.iter()
        .filter_map(|id| names.get(id).map(|name| (*name).to_owned()))
        .collect()
}

fn assert_free(package: &str, foreign: &[&str]) {
    let tree = closure(&metadata(), package);
    let found: Vec<String> = foreign
        .iter()
        .filter(|name| tree.contains(**name))
        .map(|name| (*name).to_owned())
        .collect();
    assert_none(&format!("{package} is built from"), &found);
}

#[test]
fn the_launcher_has_no_runtime_no_http_no_tls_and_no_dns() {
    assert_free("outgate-launcher", &NOT_IN_LAUNCHER);
    assert!(closure(&metadata(), "outgate-gateway").contains("tokio"));
}

#[test]
fn what_reads_records_has_no_runtime_no_http_no_tls_and_no_dns() {
    assert_free("outgate-report", &NOT_IN_LAUNCHER);
}

#[test]
fn no_program_names_the_library_of_another() {
    // All are of one package, whose libraries each of them could name.
    let foreign = [
        ("gateway/cli", &["outgate_report", "outgate_launcher"][..]),
        (
            "gateway/report/cli",
            &["outgate_gateway", "outgate_launcher"],
        ),
        ("launcher/cli", &["outgate_gateway"]),
    ];
    let mut faults = Vec::new();
    for (folder, libraries) in foreign {
        let own = |file: &files::File| file.is_below(folder) && !file.is_test();
        let sources: Vec<files::File> = files::sources().into_iter().filter(own).collect();
        assert!(sources.len() > 2, "{folder} has sources");
        for file in sources {
            let code = code(&file.text);
            let named = libraries.iter().filter(|library| code.contains(**library));
            faults.extend(named.map(|library| format!("{}: {library}", file.path)));
        }
    }
    assert_none("libraries of another program", &faults);
}

#[test]
fn the_policy_has_no_way_to_the_system() {
    assert_free("outgate-policy", &NOT_IN_LAUNCHER);
    assert_free("outgate-policy", &NOT_IN_POLICY);
}

#[test]
fn no_feature_changes_what_is_enforced() {
    let metadata = metadata();
    for package in own(&metadata) {
        let features = package["features"].as_object();
        let count = features.map_or(0, serde_json::Map::len);
        assert_eq!(count, 0, "{} has features", text(&package["name"]));
    }
}

#[test]
fn every_package_comes_from_the_one_registry() {
    let lock = files::text("Cargo.lock");
    let faults: Vec<String> = lock
        .lines()
        .filter_map(|line| line.strip_prefix("source = "))
        .filter(|source| {
            !source.starts_with("\"registry+") || !source.ends_with("/crates.io-index\"")
        })
        .map(str::to_owned)
        .collect();
    assert_none("packages from elsewhere", &faults);
    let packages = lock.matches("[[package]]").count();
    let sources = lock.matches("\nsource = ").count();
    let own = packages - sources;
    assert_eq!(
        own,
        EDGES.len() + FOR_TESTS.len(),
        "packages without a source"
    );
    assert_eq!(lock.matches("\nchecksum = ").count(), sources);
}
