//! Registries of npm, pnpm, yarn, bun and deno: `.npmrc`, `.yarnrc`, `.yarnrc.yml`,
//! `.bunfig.toml`, and the variables that stand for their keys.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::cargo::{line_of, parse};
use super::{Configuration, NamedRegistry, Variable, directory, settings, unquoted, value};

/// The files of the user and of the machine.
pub(super) fn files(home: &str, variable: Variable<'_>) -> Vec<String> {
    // Without a home there is nothing to read: no absolute path begins so.
    let base = if home.is_empty() { "." } else { home };
    let own = |name: &str| format!("{base}/{name}");
    let configured = |name: &str| {
        let names = [name.to_owned(), name.to_ascii_uppercase()];
        names.iter().find_map(|name| variable(name))
    };
    let user = configured("npm_config_userconfig").unwrap_or_else(|| own(".npmrc"));
    let global = configured("npm_config_globalconfig");
    let pnpm = directory(variable, "XDG_CONFIG_HOME", home, ".config");
    let mut files = vec![
        "/usr/share/nodejs/npm/npmrc".to_owned(),
        "/usr/lib/node_modules/npm/npmrc".to_owned(),
        "/usr/local/lib/node_modules/npm/npmrc".to_owned(),
    ];
    match global {
        Some(global) => files.push(global),
        None => files
            .extend(["/etc/npmrc", "/usr/etc/npmrc", "/usr/local/etc/npmrc"].map(str::to_owned)),
    }
    files.extend([format!("{pnpm}/pnpm/rc"), user]);
    files.extend([own(".yarnrc"), own(".yarnrc.yml")]);
    // With the variable, bun looks there and nowhere else.
    files.push(match variable("XDG_CONFIG_HOME") {
        Some(config) => format!("{config}/.bunfig.toml"),
        None => own(".bunfig.toml"),
    });
    files
}

/// What a file names.
pub(super) fn read(file: &Configuration, variables: &[(String, String)]) -> Vec<NamedRegistry> {
    if file.place.ends_with(".bunfig.toml") {
        return read_bun(file);
    }
    if file.place.ends_with(".yarnrc.yml") {
        return words(file, ':', |key| key == "npmRegistryServer");
    }
    if file.place.ends_with(".yarnrc") {
        return words(file, ' ', is_registry);
    }
    let found = settings(&file.text);
    let found = found.iter().filter(|setting| is_registry(setting.key));
    found
        .map(|setting| NamedRegistry {
            place: format!("{}:{}", file.place, setting.line),
            key: setting.key.to_owned(),
            value: expanded(unquoted(setting.value), variables),
        })
        .collect()
}

/// `[install] registry`, and `[install.scopes]`: a URL, or a table that has one.
fn read_bun(file: &Configuration) -> Vec<NamedRegistry> {
    let Some(table) = parse(&file.text) else {
        return vec![NamedRegistry {
            place: file.place.clone(),
            key: "bunfig.toml".to_owned(),
            value: String::new(),
        }];
    };
    let Some(install) = below(table.get_ref(), "install") else {
        return Vec::new();
    };
    let named = |key: String, item: &Spanned<DeValue<'_>>| {
        let url = match item.get_ref() {
            DeValue::Table(table) => table.get("url").and_then(|url| url.get_ref().as_str()),
            other => other.as_str(),
        };
        NamedRegistry {
            place: format!("{}:{}", file.place, line_of(&file.text, item.span().start)),
            key,
            value: url.unwrap_or_default().to_owned(),
        }
    };
    let registry = install.get("registry");
    let mut found: Vec<NamedRegistry> = registry
        .map(|item| named("registry".to_owned(), item))
        .into_iter()
        .collect();
    for (scope, item) in below(install, "scopes").into_iter().flatten() {
        let scope = scope.get_ref().trim_start_matches('@');
        found.push(named(format!("@{scope}:registry"), item));
    }
    found
}

/// A table in a table.
fn below<'t, 'v>(table: &'t DeTable<'v>, key: &str) -> Option<&'t DeTable<'v>> {
    match table.get(key)?.get_ref() {
        DeValue::Table(table) => Some(table),
        _ => None,
    }
}

/// `registry`, or that of a scope.
fn is_registry(key: &str) -> bool {
    let key = unquoted(key);
    key == "registry" || key.starts_with('@') && key.ends_with(":registry")
}

/// Lines of a key and a value with something between them.
fn words(file: &Configuration, between: char, is_key: fn(&str) -> bool) -> Vec<NamedRegistry> {
    let lines = file.text.lines().enumerate();
    lines
        .filter_map(|(index, line)| {
            let (key, value) = line.trim().split_once(between)?;
            let key = unquoted(key.trim());
            is_key(key).then(|| NamedRegistry {
                place: format!("{}:{}", file.place, index + 1),
                key: key.to_owned(),
                value: unquoted(value.trim()).to_owned(),
            })
        })
        .collect()
}

/// A value with `${NAME}` replaced; one that is not set stays, and is no URL.
fn expanded(text: &str, variables: &[(String, String)]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once("${") {
        out.push_str(before);
        let Some((name, after)) = behind.split_once('}') else {
            out.push_str("${");
            rest = behind;
            continue;
        };
        match value(variables, name) {
            Some(value) => out.push_str(value),
            None => out.push_str("${}"),
        }
        rest = after;
    }
    out.push_str(rest);
    out
}

/// What a variable names.
pub(super) fn variable(name: &str, value: &str) -> Vec<String> {
    let name = name.to_ascii_lowercase();
    let own = name.strip_prefix("npm_config_").is_some_and(is_registry);
    let known = own || name == "yarn_npm_registry_server" || name == "yarn_registry";
    let value = value.trim();
    (known && !value.is_empty())
        .then(|| value.to_owned())
        .into_iter()
        .collect()
}

#[cfg(test)]
mod tests {
    use crate::clients::Client;
    use crate::clients::tests::taken;

    #[test]
    fn registries_and_those_of_scopes_are_taken_from_where_users_write_them() {
        for (file, text, variables, expected) in [
            (
                "~/.npmrc",
                "# x\nregistry = https://r.test/npm/\n",
                &[][..],
                "GET,HEAD https://r.test (~/.npmrc:2)",
            ),
            (
                "~/.npmrc",
                "@acme:registry=\"https://a.test\"\n//a.test/:_authToken=secret",
                &[],
                "GET,HEAD https://a.test (~/.npmrc:1)",
            ),
            (
                "~/.npmrc",
                "registry=https://${H}:81/",
                &[("H", "h.test")],
                "GET,HEAD https://h.test:81 (~/.npmrc:1)",
            ),
            (
                "~/.npmrc",
                "; registry=https://r.test",
                &[("npm_config_registry", "https://v.test")],
                "GET,HEAD https://v.test ($npm_config_registry)",
            ),
            (
                "~/.npmrc",
                "",
                &[("NPM_CONFIG_@acme:registry", "https://v.test")],
                "GET,HEAD https://v.test ($NPM_CONFIG_@acme:registry)",
            ),
            (
                "~/.yarnrc",
                "registry \"https://y.test\"",
                &[],
                "GET,HEAD https://y.test (~/.yarnrc:1)",
            ),
            (
                "~/.yarnrc.yml",
                "npmScopes:\n  acme:\n    npmRegistryServer: \"https://y.test\"\n",
                &[],
                "GET,HEAD https://y.test (~/.yarnrc.yml:3)",
            ),
            (
                "~/.npmrc",
                "registry=https://r.test\n@x:registry=https://r.test/x",
                &[],
                "GET,HEAD https://r.test (~/.npmrc:1)",
            ),
            (
                "~/.npmrc",
                "registry=https://${UNSET}/",
                &[],
                "error: ~/.npmrc:1: `registry` is no http or https URL of a registry",
            ),
            (
                "~/.npmrc",
                "prefix=/usr",
                &[],
                "error: the user's configuration of npm, yarn or pnpm names no registry",
            ),
        ] {
            assert_eq!(
                taken(Client::Npm, (file, text), variables),
                expected,
                "{text}"
            );
        }
    }

    #[test]
    fn registries_of_bun_are_taken_with_and_without_a_table() {
        for (file, text, variables, expected) in [
            (
                "~/.bunfig.toml",
                "[install]\nregistry = { url = \"https://b.test/\", token = \"secret\" }\n[install.scopes]\nacme = \"https://a.test\"\n",
                &[][..],
                "GET,HEAD https://b.test (~/.bunfig.toml:2), GET,HEAD https://a.test (~/.bunfig.toml:4)",
            ),
            (
                "~/.bunfig.toml",
                "[install",
                &[],
                "error: ~/.bunfig.toml: `bunfig.toml` is no http or https URL of a registry",
            ),
        ] {
            assert_eq!(
                taken(Client::Npm, (file, text), variables),
                expected,
                "{text}"
            );
        }
    }

    #[test]
    fn files_are_the_users_and_the_machines_never_a_projects() {
        let files = Client::Npm.files("/home/me", &|name| {
            (name == "NPM_CONFIG_USERCONFIG").then(|| "/c/npmrc".to_owned())
        });
        assert!(
            files.contains(&"/c/npmrc".to_owned())
                && files.contains(&"/home/me/.yarnrc".to_owned())
        );
        assert!(!files.contains(&"/home/me/.npmrc".to_owned()));
        let relative = Client::Npm.files("", &|_| Some("relative".to_owned()));
        assert!(
            relative.iter().all(|file| file.starts_with('/')),
            "{relative:?}"
        );
    }
}
