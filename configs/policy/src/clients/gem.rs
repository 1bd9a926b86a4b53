//! Sources of gems: mirrors in Bundler's configuration, `:sources:` of RubyGems', and the
//! variables that stand for them.

use super::{Configuration, NamedRegistry, Variable, directory, unquoted};

/// How the key of a mirror begins, in a file and as a variable.
pub(super) const MIRROR: &str = "BUNDLE_MIRROR__";
/// How that of the time until the source itself is asked ends.
const TIMEOUT: &str = "__FALLBACK_TIMEOUT/";

/// The files of the machine and of the user.
pub(super) fn files(home: &str, variable: Variable<'_>) -> Vec<String> {
    let base = if home.is_empty() { "." } else { home };
    let config = directory(variable, "XDG_CONFIG_HOME", home, ".config");
    let own = match (variable("BUNDLE_USER_CONFIG"), variable("BUNDLE_USER_HOME")) {
        (Some(file), _) => file,
        (None, Some(folder)) => format!("{folder}/config"),
        (None, None) => format!("{base}/.bundle/config"),
    };
    vec![
        "/etc/gemrc".to_owned(),
        format!("{config}/gem/gemrc"),
        format!("{base}/.gemrc"),
        own,
    ]
}

/// Whether a key names a mirror.
fn is_mirror(key: &str) -> bool {
    key.strip_prefix(MIRROR).is_some_and(|of| !of.is_empty()) && !key.ends_with(TIMEOUT)
}

/// What a file names.
pub(super) fn read(file: &Configuration) -> Vec<NamedRegistry> {
    let mut found = Vec::new();
    let mut is_list = false;
    for (index, line) in file.text.lines().enumerate() {
        let place = format!("{}:{}", file.place, index + 1);
        let text = line.trim();
        if is_list && let Some(item) = text.strip_prefix("- ") {
            let value = unquoted(item.trim()).to_owned();
            found.push(NamedRegistry {
                place,
                key: "sources".to_owned(),
                value,
            });
            continue;
        }
        // Bundler writes its keys as they are, the colons of a URL in them.
        let (key, value) = match text.strip_suffix(':') {
            Some(key) => (key, ""),
            None => text.split_once(": ").unwrap_or((text, "")),
        };
        let key = unquoted(key.trim());
        is_list = matches!(key, ":sources" | "sources");
        let value = unquoted(value.trim());
        if is_mirror(key) && !value.is_empty() {
            found.push(NamedRegistry {
                place,
                key: key.to_owned(),
                value: value.to_owned(),
            });
        }
    }
    found
}

/// What a variable names.
pub(super) fn variable(name: &str, value: &str) -> Vec<String> {
    let value = value.trim();
    (is_mirror(name) && !value.is_empty())
        .then(|| value.to_owned())
        .into_iter()
        .collect()
}

#[cfg(test)]
mod tests {
    use crate::clients::Client;
    use crate::clients::tests::taken;

    #[test]
    fn mirrors_and_sources_are_taken_from_where_users_write_them() {
        for (file, text, variables, expected) in [
            (
                "~/.bundle/config",
                "---\nBUNDLE_MIRROR__HTTPS://GEMS__TEST/: \"https://m.test/gems\"\nBUNDLE_MIRROR__HTTPS://GEMS__TEST/__FALLBACK_TIMEOUT/: \"true\"\nBUNDLE_M__TEST: \"me:secret\"\n",
                &[][..],
                "GET,HEAD https://m.test (~/.bundle/config:2)",
            ),
            (
                "~/.gemrc",
                "---\n:sources:\n- https://me:pw@g.test/\n- http://127.0.0.1:81\n:update_sources: true\n- https://no.test",
                &[],
                "GET,HEAD https://g.test (~/.gemrc:3), GET,HEAD http://127.0.0.1:81 (~/.gemrc:4)",
            ),
            (
                "~/.bundle/config",
                "BUNDLE_JOBS: \"4\"",
                &[("BUNDLE_MIRROR__ALL", "https://a.test")],
                "GET,HEAD https://a.test ($BUNDLE_MIRROR__ALL)",
            ),
            (
                "~/.bundle/config",
                "BUNDLE_MIRROR__: x",
                &[],
                "error: the user's configuration of bundler names no registry",
            ),
            (
                "~/.bundle/config",
                "BUNDLE_MIRROR__ALL: \"m.test\"",
                &[],
                "error: ~/.bundle/config:1: `BUNDLE_MIRROR__ALL` is no http or https URL of a registry",
            ),
        ] {
            assert_eq!(
                taken(Client::Gem, (file, text), variables),
                expected,
                "{text}"
            );
        }
    }
}
