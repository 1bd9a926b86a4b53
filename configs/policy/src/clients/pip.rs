//! Indexes of pip and uv: `pip.conf`, `uv.toml`, and the variables that stand
//! for their keys.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{Configuration, NamedRegistry, Variable, directory, settings};
use crate::clients::cargo::{line_of, parse};

/// The files of the user and of the machine. Those of a virtual environment
/// mostly lie in a project.
pub(super) fn files(home: &str, variable: Variable<'_>) -> Vec<String> {
    let config = directory(variable, "XDG_CONFIG_HOME", home, ".config");
    let mut files = vec![
        "/etc/pip.conf".to_owned(),
        "/etc/xdg/pip/pip.conf".to_owned(),
        "/etc/uv/uv.toml".to_owned(),
        format!("{config}/pip/pip.conf"),
        format!("{config}/uv/uv.toml"),
    ];
    if !home.is_empty() {
        files.push(format!("{home}/.pip/pip.conf"));
    }
    files.extend(variable("PIP_CONFIG_FILE"));
    files.extend(variable("UV_CONFIG_FILE"));
    files
}

/// What a file names.
pub(super) fn read(file: &Configuration) -> Vec<NamedRegistry> {
    let (_, ending) = file.place.rsplit_once('.').unwrap_or_default();
    if ending == "toml" {
        return read_uv(file);
    }
    let found = settings(&file.text);
    let found = found.iter().filter(|setting| is_index(setting.key));
    found
        .flat_map(|setting| {
            setting.value.split_whitespace().map(|value| NamedRegistry {
                place: format!("{}:{}", file.place, setting.line),
                key: setting.key.to_owned(),
                value: value.to_owned(),
            })
        })
        .collect()
}

fn is_index(key: &str) -> bool {
    let key = key.replace('_', "-").to_ascii_lowercase();
    matches!(key.as_str(), "index-url" | "extra-index-url" | "find-links")
}

/// `index-url`, `extra-index-url` and `[[index]] url`, at the top or below `[pip]`.
fn read_uv(file: &Configuration) -> Vec<NamedRegistry> {
    let Some(table) = parse(&file.text) else {
        return vec![NamedRegistry {
            place: file.place.clone(),
            key: "uv.toml".to_owned(),
            value: String::new(),
        }];
    };
    let mut found = Vec::new();
    collect(file, table.get_ref(), &mut found);
    if let Some(DeValue::Table(pip)) = table.get_ref().get("pip").map(Spanned::get_ref) {
        collect(file, pip, &mut found);
    }
    found
}

fn collect(file: &Configuration, table: &DeTable<'_>, found: &mut Vec<NamedRegistry>) {
    for (key, item) in table {
        let name = key.get_ref();
        let values: Vec<&Spanned<DeValue<'_>>> = match item.get_ref() {
            DeValue::String(_) if is_index(name) => vec![item],
            DeValue::Array(list) if is_index(name) => list.iter().collect(),
            DeValue::Array(list) if name == "index" => {
                let url =
                    |item: &'_ Spanned<DeValue<'_>>| matches!(item.get_ref(), DeValue::Table(_));
                list.iter().filter(|item| url(item)).collect()
            }
            _ => continue,
        };
        for item in values {
            let url = match item.get_ref() {
                DeValue::String(url) => Some(url.to_string()),
                DeValue::Table(table) => table
                    .get("url")
                    .and_then(|url| url.get_ref().as_str())
                    .map(str::to_owned),
                _ => None,
            };
            found.push(NamedRegistry {
                place: format!("{}:{}", file.place, line_of(&file.text, item.span().start)),
                key: name.to_string(),
                value: url.unwrap_or_default(),
            });
        }
    }
}

/// What a variable names.
pub(super) fn variable(name: &str, value: &str) -> Vec<String> {
    const KNOWN: [&str; 8] = [
        "PIP_INDEX_URL",
        "PIP_EXTRA_INDEX_URL",
        "PIP_FIND_LINKS",
        "UV_DEFAULT_INDEX",
        "UV_INDEX_URL",
        "UV_EXTRA_INDEX_URL",
        "UV_INDEX",
        "UV_FIND_LINKS",
    ];
    if !KNOWN.contains(&name) {
        return Vec::new();
    }
    // uv lets each have a name: `NAME=URL`.
    let url = |word: &str| match word.split_once('=') {
        Some((label, url)) if !label.contains(['/', ':']) => url.to_owned(),
        _ => word.to_owned(),
    };
    value
        .split([' ', '\t', '\n', ','])
        .filter(|word| !word.is_empty())
        .map(url)
        .collect()
}

#[cfg(test)]
mod tests {
    use crate::clients::Client;
    use crate::clients::tests::taken;

    #[test]
    fn indexes_are_taken_from_where_users_write_them() {
        for (file, text, variables, expected) in [
            (
                "/etc/pip.conf",
                "[global]\nindex-url = https://i.test/simple\n",
                &[][..],
                "GET,HEAD https://i.test (/etc/pip.conf:2)",
            ),
            (
                "~/.config/pip/pip.conf",
                "[install]\nextra_index_url =\n    https://a.test/simple\n    https://me:pw@b.test/simple\n[list]\nformat = columns",
                &[],
                "GET,HEAD https://a.test (~/.config/pip/pip.conf:3), GET,HEAD https://b.test (~/.config/pip/pip.conf:4)",
            ),
            (
                "/etc/pip.conf",
                "[global]\nfind-links = /srv/wheels\nindex-url = https://i.test",
                &[],
                "GET,HEAD https://i.test (/etc/pip.conf:3)",
            ),
            (
                "/etc/pip.conf",
                "",
                &[("PIP_INDEX_URL", "http://127.0.0.1:81/simple")],
                "GET,HEAD http://127.0.0.1:81 ($PIP_INDEX_URL)",
            ),
            (
                "/etc/pip.conf",
                "",
                &[("UV_INDEX", "corp=https://u.test/simple https://w.test/?a=b")],
                "GET,HEAD https://u.test ($UV_INDEX), GET,HEAD https://w.test ($UV_INDEX)",
            ),
            (
                "/etc/uv/uv.toml",
                "index-url = \"https://u.test\"\n[[index]]\nname = \"x\"\nurl = \"https://v.test/simple\"\n[pip]\nextra-index-url = [\"https://w.test\"]\n",
                &[],
                "GET,HEAD https://v.test (/etc/uv/uv.toml:2), GET,HEAD https://u.test (/etc/uv/uv.toml:1), GET,HEAD https://w.test (/etc/uv/uv.toml:6)",
            ),
            (
                "/etc/uv/uv.toml",
                "index-url = [",
                &[],
                "error: /etc/uv/uv.toml: `uv.toml` is no http or https URL of a registry",
            ),
            (
                "/etc/pip.conf",
                "[global]\nindex-url = index.test",
                &[],
                "error: /etc/pip.conf:2: `index-url` is no http or https URL of a registry",
            ),
            (
                "/etc/pip.conf",
                "[global]\ntimeout = 5",
                &[],
                "error: the user's configuration of pip or uv names no registry",
            ),
        ] {
            let got = taken(Client::Pip, (file, text), variables);
            let sorted = |text: &str| {
                let mut parts: Vec<String> = text.split(", ").map(str::to_owned).collect();
                parts.sort();
                parts
            };
            assert_eq!(sorted(&got), sorted(expected), "{text}");
        }
    }

    #[test]
    fn files_are_the_users_and_the_machines_never_a_projects() {
        let files = Client::Pip.files("/home/me", &|name| match name {
            "VIRTUAL_ENV" => Some("/home/me/project/.venv".to_owned()),
            "PIP_CONFIG_FILE" => Some("/c/pip.conf".to_owned()),
            _ => None,
        });
        assert!(files.contains(&"/c/pip.conf".to_owned()));
        assert!(
            files.iter().all(|file| !file.contains("project")),
            "{files:?}"
        );
    }
}
