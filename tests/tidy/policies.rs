//! The policies we ship.

use outgate_policy::{
    Context, PresetKind, Source, SourceKind, compile, extends, preset, preset_kind, preset_names,
};

use crate::files::{self, assert_none};

fn context() -> Context {
    Context {
        home: "/home/user".to_owned(),
        working_directory: "/home/user/project".to_owned(),
        private_directory: "/run/private".to_owned(),
        ..Context::default()
    }
}

fn document(name: &str) -> Source {
    Source {
        kind: SourceKind::Document,
        place: format!("preset `{name}`"),
        text: preset(name).unwrap_or_default().to_owned(),
    }
}

#[test]
fn every_shipped_policy_compiles_and_only_those_about_hosts_allow_the_network() {
    for name in preset_names() {
        let source = document(name);
        let mut sources: Vec<Source> = extends(&source)
            .expect("the names a preset extends")
            .unwrap_or_default()
            .iter()
            .map(|base| document(base))
            .collect();
        sources.push(source);
        let policy = compile(&sources, &context());
        let policy = policy.unwrap_or_else(|errors| panic_with(name, &errors.to_string()));
        let kind = preset_kind(name);
        let is_about_hosts = matches!(kind, Some(PresetKind::Hosts | PresetKind::Agent));
        if kind != Some(PresetKind::Tool) {
            assert_eq!(policy.has_network_rules(), is_about_hosts, "{name}");
        }
    }
}

fn panic_with(name: &str, errors: &str) -> outgate_policy::Policy {
    assert!(errors.is_empty(), "preset `{name}`: {errors}");
    unreachable!("a refusal without an error")
}

#[test]
fn every_shipped_policy_is_a_file_and_every_file_is_shipped() {
    let mut faults = Vec::new();
    let files: Vec<files::File> = files::all()
        .into_iter()
        .filter(|file| file.is_below("configs/presets"))
        .collect();
    for name in preset_names() {
        let path = format!("configs/presets/{name}.toml");
        let same = |file: &files::File| preset(name) == Some(file.text.as_str());
        if !files.iter().any(|file| file.path == path && same(file)) {
            faults.push(format!("{path} is not what `{name}` says"));
        }
    }
    if files.len() != preset_names().len() {
        faults.push(format!("{} files in configs/presets", files.len()));
    }
    assert_none("shipped policies and their files", &faults);
}
