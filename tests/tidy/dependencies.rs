//! Which packages are asked for: none that nothing names.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::crates::{list, metadata, own, text};
use crate::files::{self, File, assert_none};
use crate::lexer::code;

#[test]
fn every_dependency_is_named_in_the_sources_of_its_crate() {
    let metadata = metadata();
    let all = files::all();
    let folders = folders(&metadata, &all);
    let sources = || all.iter().filter(|file| file.has_ending("rs"));
    let mut faults = Vec::new();
    for package in own(&metadata) {
        let root = root(package);
        let named: BTreeSet<String> = sources()
            .filter(|file| crate_of(&folders, file) == Some(&root))
            .flat_map(|file| named(&file.text))
            .collect();
        for dependency in list(&package["dependencies"]) {
            let name = dependency["rename"].as_str();
            let name = name.unwrap_or(text(&dependency["name"]));
            if !named.contains(&name.replace('-', "_")) {
                faults.push(format!("{name} in {root}Cargo.toml"));
            }
        }
    }
    assert_none("dependencies that no source names", &faults);
}

#[test]
fn every_package_of_the_workspace_is_asked_for_by_a_crate() {
    let metadata = metadata();
    let asked: BTreeSet<&str> = own(&metadata)
        .flat_map(|package| list(&package["dependencies"]))
        .map(|dependency| text(&dependency["name"]))
        .collect();
    let manifest = files::text("Cargo.toml");
    let section = manifest.split("\n[workspace.dependencies]\n").nth(1);
    let section = section.and_then(|rest| rest.split("\n[").next());
    let lines = section.unwrap_or_default().lines();
    let names: Vec<&str> = lines
        .filter_map(|line| line.split_once(" = "))
        .map(|(name, _)| name)
        .collect();
    assert!(names.len() > 10, "the packages of the workspace are read");
    let faults: Vec<String> = names
        .iter()
        .filter(|name| !asked.contains(**name))
        .map(|name| (*name).to_owned())
        .collect();
    assert_none("packages of the workspace that no crate asks for", &faults);
}

#[test]
fn a_module_of_the_same_name_names_no_package() {
    let named = named(
        "mod base64;\n// clap::Parser\nuse ::bytes::Bytes;\nfn a() { let h2 = ring::digest; }",
    );
    assert_eq!(named, BTreeSet::from(["bytes", "ring"].map(str::to_owned)));
}

/// Where a package lies, with `/` at its end unless it is the root.
fn root(package: &Value) -> String {
    let path = below(text(&package["manifest_path"]));
    path.strip_suffix("Cargo.toml").unwrap_or(path).to_owned()
}

/// A path below the root of the project.
fn below(path: &str) -> &str {
    let rest = path.strip_prefix(files::root().to_str().expect("a root in UTF-8"));
    rest.and_then(|rest| rest.strip_prefix('/')).unwrap_or(path)
}

/// Folders with sources, each with the root of its package: those of manifests, and
/// those of programs, which lie where they like.
fn folders(metadata: &Value, all: &[File]) -> BTreeMap<String, String> {
    let manifests = all
        .iter()
        .filter_map(|file| file.path.strip_suffix("Cargo.toml"));
    let mut folders: BTreeMap<String, String> = manifests
        .map(|root| (root.to_owned(), root.to_owned()))
        .collect();
    for package in own(metadata) {
        for target in list(&package["targets"]) {
            let path = below(text(&target["src_path"]));
            let end = path.rfind('/').map_or(0, |at| at + 1);
            folders.insert(path.split_at(end).0.to_owned(), root(package));
        }
    }
    folders
}

/// The package that a source belongs to: that of the innermost folder.
fn crate_of<'a>(folders: &'a BTreeMap<String, String>, file: &File) -> Option<&'a str> {
    let around = folders
        .iter()
        .filter(|(folder, _)| file.path.starts_with(*folder));
    let innermost = around.max_by_key(|(folder, _)| folder.len());
    innermost.map(|(_, root)| root.as_str())
}

/// The words that begin paths, and those behind `use`.
fn named(source: &str) -> BTreeSet<String> {
    let code = code(source);
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut found = BTreeSet::new();
    let mut before = "";
    let mut rest = code.as_str();
    while let Some(begin) = rest.find(is_word) {
        let (between, behind) = rest.split_at(begin);
        let between = between.trim();
        let end = behind.find(|c| !is_word(c)).unwrap_or(behind.len());
        let (word, behind) = behind.split_at(end);
        let is_inside = between.ends_with("::") && before != "use";
        if !is_inside && (behind.starts_with("::") || before == "use") {
            found.insert(word.to_owned());
        }
        (before, rest) = (word, behind);
    }
    found
}
