//! The registries of a client's configuration as variables: for a command that cannot
//! read the files, since those hold tokens. No value that is handed over holds one.

use super::{Client, Configuration, Named, npm, pip};

impl Client {
    /// Variables that name what these files name, where the caller has none of the name.
    /// Of cargo there are none: commands read its configuration themselves.
    pub fn handed(
        self,
        files: &[Configuration],
        variables: &[(String, String)],
    ) -> Vec<(String, String)> {
        let found: Vec<Named> = match self {
            Self::Npm => files
                .iter()
                .flat_map(|file| npm::read(file, variables))
                .collect(),
            Self::Pip => files.iter().flat_map(pip::read).collect(),
            Self::Cargo => Vec::new(),
        };
        let mut handed = Handed::default();
        for named in &found {
            let Some(url) = without_credentials(&named.value) else {
                continue;
            };
            match self {
                Self::Npm => handed.npm(named, url),
                Self::Pip => handed.pip(named, &url),
                Self::Cargo => {}
            }
        }
        handed.complete();
        let is_set = |name: &str| {
            let mut all = variables.iter();
            all.any(|(own, _)| own.eq_ignore_ascii_case(name))
        };
        handed.0.retain(|(name, _)| !is_set(name));
        handed.0
    }
}

/// Variables in the making: of a name the last value holds, as of a client's files.
#[derive(Default)]
struct Handed(Vec<(String, String)>);

impl Handed {
    fn value(&self, name: &str) -> Option<String> {
        super::value(&self.0, name).map(str::to_owned)
    }

    fn set(&mut self, name: &str, value: String) {
        self.0.retain(|(own, _)| own != name);
        self.0.push((name.to_owned(), value));
    }

    fn add(&mut self, name: &str, value: &str) {
        let known = self.value(name).map(|known| format!("{known} {value}"));
        self.set(name, known.unwrap_or_else(|| value.to_owned()));
    }

    fn npm(&mut self, named: &Named, url: String) {
        match named.key.as_str() {
            "npmRegistryServer" => self.set("YARN_NPM_REGISTRY_SERVER", url),
            "registry" => self.set("npm_config_registry", url),
            scope => self.set(&format!("npm_config_{scope}"), url),
        }
    }

    fn pip(&mut self, named: &Named, url: &str) {
        let is_uv = named.place.contains("uv.toml");
        let key = named.key.replace('_', "-").to_ascii_lowercase();
        match (key.as_str(), is_uv) {
            ("index-url", true) => self.set("UV_DEFAULT_INDEX", url.to_owned()),
            ("index" | "extra-index-url", true) => self.add("UV_INDEX", url),
            ("find-links", true) => self.add("UV_FIND_LINKS", url),
            ("index-url", false) => self.set("PIP_INDEX_URL", url.to_owned()),
            ("extra-index-url", false) => self.add("PIP_EXTRA_INDEX_URL", url),
            ("find-links", false) => self.add("PIP_FIND_LINKS", url),
            _ => {}
        }
    }

    /// Clients of the same packages that have no configuration of their own follow the
    /// other's: that is the host that is allowed.
    fn complete(&mut self) {
        const FOLLOW: [(&str, &str); 4] = [
            ("npm_config_registry", "YARN_NPM_REGISTRY_SERVER"),
            ("YARN_NPM_REGISTRY_SERVER", "npm_config_registry"),
            ("PIP_INDEX_URL", "UV_DEFAULT_INDEX"),
            ("UV_DEFAULT_INDEX", "PIP_INDEX_URL"),
        ];
        for (from, to) in FOLLOW {
            if let (Some(value), None) = (self.value(from), self.value(to)) {
                self.set(to, value);
            }
        }
    }
}

/// An http or https URL without the credentials in it; `None` for anything else.
fn without_credentials(url: &str) -> Option<String> {
    let (scheme, rest) = url.trim().split_once("://")?;
    let is_web = scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https");
    // Tokens stand in queries too; an index has none.
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    let end = rest.find('/').unwrap_or(rest.len());
    let (authority, path) = rest.split_at_checked(end)?;
    let (_, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    let is_plain = !host.is_empty() && !path.contains(['@', '$']) && !host.contains('$');
    let is_text = !rest.chars().any(|c| c.is_control() || c.is_whitespace());
    (is_web && is_plain && is_text).then(|| format!("{scheme}://{host}{path}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registries_are_handed_over_as_variables_without_a_credential() {
        let npm = Client::Npm;
        let pip = Client::Pip;
        for (client, file, text, expected) in [
            (
                npm,
                "~/.npmrc",
                "registry=https://me:SECRET@r.test/npm/\n@acme:registry=https://a.test\n//r.test/npm/:_authToken=SECRET",
                "npm_config_registry=https://r.test/npm/ npm_config_@acme:registry=https://a.test \
                 YARN_NPM_REGISTRY_SERVER=https://r.test/npm/",
            ),
            (
                npm,
                "~/.yarnrc.yml",
                "npmRegistryServer: \"https://y.test\"\nnpmAuthToken: SECRET",
                "YARN_NPM_REGISTRY_SERVER=https://y.test npm_config_registry=https://y.test",
            ),
            (
                pip,
                "~/.config/pip/pip.conf",
                "[global]\nindex-url = https://me:SECRET@i.test/simple?token=SECRET\nextra-index-url =\n  https://a.test/s\n  https://SECRET@b.test/s",
                "PIP_INDEX_URL=https://i.test/simple PIP_EXTRA_INDEX_URL=https://a.test/s https://b.test/s \
                 UV_DEFAULT_INDEX=https://i.test/simple",
            ),
            (
                pip,
                "~/.config/uv/uv.toml",
                "[[index]]\nurl = \"https://SECRET:x@u.test/simple\"\n",
                "UV_INDEX=https://u.test/simple",
            ),
            (pip, "/etc/pip.conf", "index-url = file:///srv", ""),
            (npm, "~/.npmrc", "registry=https://r.test/SECRET@x/", ""),
            (npm, "~/.npmrc", "registry=https://r.test/$SECRET/", ""),
            (
                Client::Cargo,
                "~/.cargo/config.toml",
                "[registries.x]\nindex = \"https://SECRET@c.test\"",
                "",
            ),
        ] {
            let files = [Configuration {
                place: file.to_owned(),
                text: text.to_owned(),
            }];
            let handed = client.handed(&files, &[]);
            let pairs: Vec<String> = handed
                .iter()
                .map(|(name, value)| format!("{name}={value}"))
                .collect();
            assert_eq!(pairs.join(" "), expected, "{file}: {text}");
            assert!(!pairs.concat().contains("SECRET"));
            // What the caller sets holds.
            let own: Vec<(String, String)> = handed
                .iter()
                .map(|(name, _)| (name.to_ascii_uppercase(), "own".to_owned()))
                .collect();
            assert_eq!(client.handed(&files, &own), [], "{file}");
        }
    }
}
