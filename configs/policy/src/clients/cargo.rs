//! Registries of cargo: `[source]` and `[registries]` of its configuration, and
//! the variables that stand for them.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{Configuration, NamedRegistry, Variable, directory};

/// The files of the user. Those of the working directory are a project's.
pub(super) fn files(home: &str, variable: Variable<'_>) -> Vec<String> {
    let own = directory(variable, "CARGO_HOME", home, ".cargo");
    vec![format!("{own}/config"), format!("{own}/config.toml")]
}

/// A document, if it is one.
pub(super) fn parse(text: &str) -> Option<Spanned<DeTable<'_>>> {
    DeTable::parse(text).ok()
}

/// The line of an offset, from 1.
pub(super) fn line_of(text: &str, offset: usize) -> usize {
    let before = text.get(..offset).unwrap_or_default();
    before.matches('\n').count() + 1
}

/// What a file names.
pub(super) fn read(file: &Configuration) -> Vec<NamedRegistry> {
    let Some(table) = parse(&file.text) else {
        return vec![NamedRegistry {
            place: file.place.clone(),
            key: "config.toml".to_owned(),
            value: String::new(),
        }];
    };
    let mut found = Vec::new();
    for (section, keys) in [
        ("source", &["registry", "git"][..]),
        ("registries", &["index"]),
    ] {
        let Some(DeValue::Table(all)) = table.get_ref().get(section).map(Spanned::get_ref) else {
            continue;
        };
        for (name, one) in all {
            let DeValue::Table(one) = one.get_ref() else {
                continue;
            };
            for key in keys {
                let Some(item) = one.get(*key) else { continue };
                found.push(NamedRegistry {
                    place: format!("{}:{}", file.place, line_of(&file.text, item.span().start)),
                    key: format!("{section}.{}.{key}", name.get_ref()),
                    value: item.get_ref().as_str().unwrap_or_default().to_owned(),
                });
            }
        }
    }
    found
}

/// What a variable names.
pub(super) fn variable(name: &str, value: &str) -> Vec<String> {
    let named = name.strip_prefix("CARGO_REGISTRIES_");
    let named = named.and_then(|rest| rest.strip_suffix("_INDEX"));
    let is_index = named.is_some_and(|registry| !registry.is_empty());
    (is_index && !value.trim().is_empty())
        .then(|| value.trim().to_owned())
        .into_iter()
        .collect()
}

#[cfg(test)]
mod tests {
    use crate::clients::Client;
    use crate::clients::tests::taken;

    #[test]
    fn sources_and_registries_are_taken_from_where_users_write_them() {
        const FILE: &str = "~/.cargo/config.toml";
        for (text, variables, expected) in [
            (
                "[source.crates-io]\nreplace-with = \"mirror\"\n[source.mirror]\nregistry = \"sparse+https://m.test/index/\"\n",
                &[][..],
                "GET,HEAD https://m.test (~/.cargo/config.toml:4)",
            ),
            (
                "[registries.corp]\nindex = \"sparse+https://c.test:8443/i/\"\ntoken = \"secret\"",
                &[],
                "GET,HEAD https://c.test:8443 (~/.cargo/config.toml:2)",
            ),
            (
                "[registries]\ncorp = { index = \"https://c.test/i\" }",
                &[],
                "GET,HEAD https://c.test (~/.cargo/config.toml:2)",
            ),
            (
                "[source.v]\ndirectory = \"vendor\"",
                &[("CARGO_REGISTRIES_CORP_INDEX", "sparse+https://v.test/")],
                "GET,HEAD https://v.test ($CARGO_REGISTRIES_CORP_INDEX)",
            ),
            (
                "[source.v]\nlocal-registry = \"/srv\"",
                &[("CARGO_REGISTRIES__INDEX", "https://v.test/")],
                "error: the user's configuration of cargo names no registry",
            ),
            (
                "[registries.x]\nindex = \"ssh://git@x.test/i\"",
                &[],
                "error: ~/.cargo/config.toml:2: `registries.x.index` is no http or https URL of a registry",
            ),
            (
                "[registries.x]\nindex = 7",
                &[],
                "error: ~/.cargo/config.toml:2: `registries.x.index` is no http or https URL of a registry",
            ),
            (
                "[[[",
                &[],
                "error: ~/.cargo/config.toml: `config.toml` is no http or https URL of a registry",
            ),
        ] {
            assert_eq!(
                taken(Client::Cargo, (FILE, text), variables),
                expected,
                "{text}"
            );
        }
    }

    #[test]
    fn files_are_the_users_never_a_projects() {
        let files = Client::Cargo.files("/home/me", &|_| None);
        assert_eq!(
            files,
            ["/home/me/.cargo/config", "/home/me/.cargo/config.toml"]
        );
        assert!(Client::Cargo.files("", &|_| None).is_empty());
    }
}
