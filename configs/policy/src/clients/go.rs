//! Module proxies of Go: `GOPROXY` and `GOSUMDB` of the variables, of the user's
//! `go env -w`, and of the toolchain's own `go.env`.

use super::{Configuration, NamedRegistry, Variable, directory, settings};

/// Settings that are no secret and say which modules are nobody else's.
const PLAIN: [&str; 4] = ["GOSUMDB", "GOPRIVATE", "GONOPROXY", "GONOSUMDB"];

/// The files of the toolchain and of the user.
pub(super) fn files(home: &str, variable: Variable<'_>) -> Vec<String> {
    let own = variable("GOENV").filter(|path| path.starts_with('/'));
    let own = own.unwrap_or_else(|| {
        let config = directory(variable, "XDG_CONFIG_HOME", home, ".config");
        format!("{config}/go/env")
    });
    let root = variable("GOROOT").map(|root| format!("{root}/go.env"));
    let known = ["/usr/lib/go/go.env", "/usr/local/go/go.env"].map(str::to_owned);
    // The user's own counts for more, as the last.
    root.into_iter().chain(known).chain([own]).collect()
}

/// What a file names.
pub(super) fn read(file: &Configuration) -> Vec<NamedRegistry> {
    let found = settings(&file.text);
    let named = found.iter().flat_map(|setting| {
        variable(setting.key, setting.value)
            .into_iter()
            .map(|value| NamedRegistry {
                place: format!("{}:{}", file.place, setting.line),
                key: setting.key.to_owned(),
                value,
            })
    });
    named.collect()
}

/// What a variable names: each proxy of a list, and where checksums are asked for.
pub(super) fn variable(name: &str, value: &str) -> Vec<String> {
    match name {
        "GOPROXY" => words(value)
            .filter(|(_, word)| !matches!(*word, "direct" | "off"))
            .map(|(_, word)| word.to_owned())
            .collect(),
        "GOSUMDB" => sums(value).into_iter().collect(),
        _ => Vec::new(),
    }
}

/// The proxies of a list, each with what stands before it.
fn words(value: &str) -> impl Iterator<Item = (&str, &str)> {
    let parts = value.split_inclusive([',', '|']);
    let mut before = "";
    parts
        .map(move |part| {
            let word = part.trim_end_matches([',', '|']);
            let own = before;
            before = part.get(word.len()..).unwrap_or_default();
            (own, word.trim())
        })
        .filter(|(_, word)| !word.is_empty())
}

/// Where a database of checksums is: behind its name, or by it.
fn sums(value: &str) -> Option<String> {
    let mut words = value.split_whitespace();
    let name = words.next().filter(|name| *name != "off")?;
    if let Some(url) = words.next() {
        return Some(url.to_owned());
    }
    let host = name.split('+').next().unwrap_or(name);
    Some(format!("https://{host}"))
}

/// What is handed over of a file: its list of proxies as far as `plain` finds each of them
/// plain, and what is no secret.
pub(super) fn handed(
    file: &Configuration,
    plain: fn(&str) -> Option<String>,
) -> Vec<(&'static str, String)> {
    let mut out = Vec::new();
    for setting in settings(&file.text) {
        if setting.key == "GOPROXY" {
            let list: Vec<(&str, Option<String>)> = words(setting.value)
                .map(|(before, word)| match word {
                    "direct" | "off" => (before, Some(word.to_owned())),
                    url => (before, plain(url)),
                })
                .collect();
            // One less would be another list.
            if !list.is_empty() && list.iter().all(|(_, word)| word.is_some()) {
                let text = list
                    .into_iter()
                    .map(|(before, word)| format!("{before}{}", word.unwrap_or_default()));
                out.push(("GOPROXY", text.collect()));
            }
        }
        if let Some(name) = PLAIN.into_iter().find(|name| *name == setting.key) {
            let is_plain = |c: char| c.is_ascii_graphic() && c != '@' || c == ' ';
            if setting.value.chars().all(is_plain) {
                out.push((name, setting.value.to_owned()));
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use crate::clients::Client;
    use crate::clients::tests::taken;

    #[test]
    fn proxies_are_taken_from_where_users_write_them() {
        const FILE: &str = "~/.config/go/env";
        for (text, variables, expected) in [
            (
                "GOPROXY=https://p.test/go,direct\nGOSUMDB=off\n",
                &[][..],
                "GET,HEAD https://p.test (~/.config/go/env:1)",
            ),
            (
                "GOPROXY=https://me:pw@p.test:8443|https://q.test,off",
                &[],
                "GET,HEAD https://p.test:8443 (~/.config/go/env:1), GET,HEAD https://q.test (~/.config/go/env:1)",
            ),
            (
                "GOFLAGS=-mod=mod",
                &[
                    ("GOPROXY", "http://127.0.0.1:3000"),
                    ("GOSUMDB", "sums.test+0f+key https://s.test/db"),
                ],
                "GET,HEAD http://127.0.0.1:3000 ($GOPROXY), GET,HEAD https://s.test ($GOSUMDB)",
            ),
            (
                "GOSUMDB=sums.test",
                &[],
                "GET,HEAD https://sums.test (~/.config/go/env:1)",
            ),
            (
                "GOPROXY=file:///srv/go,direct",
                &[],
                "error: the user's configuration of go names no registry",
            ),
            (
                "GOPROXY=direct",
                &[],
                "error: the user's configuration of go names no registry",
            ),
            (
                "GOPROXY=p.test",
                &[],
                "error: ~/.config/go/env:1: `GOPROXY` is no http or https URL of a registry",
            ),
        ] {
            assert_eq!(
                taken(Client::Go, (FILE, text), variables),
                expected,
                "{text}"
            );
        }
    }

    #[test]
    fn files_are_the_users_and_the_toolchains() {
        let files = Client::Go.files("/home/me", &|name| {
            (name == "GOENV").then(|| "off".to_owned())
        });
        assert!(
            files.contains(&"/home/me/.config/go/env".to_owned()),
            "{files:?}"
        );
        let files = Client::Go.files("/home/me", &|name| {
            (name == "GOENV").then(|| "/c/env".to_owned())
        });
        assert_eq!(files.last().map(String::as_str), Some("/c/env"));
    }
}
