//! The registries of a client's configuration as variables, or as files of the run's own:
//! for a command that cannot read the user's, since those hold tokens. Nothing that is
//! handed over holds one.

use super::{Client, Configuration, NamedRegistry, gem, go, maven, npm, pip};

/// What a command is given in the place of configuration that it cannot read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HandedConfiguration {
    /// Names and values.
    pub variables: Vec<(String, String)>,
    /// Files in the private directory of the run: their names there, and their texts.
    pub files: Vec<(String, String)>,
}

impl Client {
    /// What names for a command what these files name, where the caller has no variable for
    /// it. Of cargo and kubectl there is nothing: commands read their configuration themselves.
    pub fn handed(
        self,
        files: &[Configuration],
        variables: &[(String, String)],
    ) -> HandedConfiguration {
        let mut handed = match self {
            Self::Npm | Self::Pip => self.registries_of(files, variables),
            Self::Go => Making::go(files).variables(),
            Self::Gem => gems(files),
            Self::Maven => settings(files, variables),
            Self::Cargo | Self::Kubectl => HandedConfiguration::default(),
        };
        let is_set = |own: &str, name: &str| match name {
            // It holds more than the name of a registry, and is made of the caller's own.
            MAVEN_OPTIONS => false,
            // Deno knows it in capitals alone; others take either.
            NPM_IN_CAPITALS => own == name,
            _ => own.eq_ignore_ascii_case(name),
        };
        let is_new =
            |(name, _): &(String, String)| variables.iter().all(|(own, _)| !is_set(own, name));
        handed.variables.retain(is_new);
        handed
    }

    fn registries_of(
        self,
        files: &[Configuration],
        variables: &[(String, String)],
    ) -> HandedConfiguration {
        let found: Vec<NamedRegistry> = match self {
            Self::Npm => files
                .iter()
                .flat_map(|file| npm::read(file, variables))
                .collect(),
            _ => files.iter().flat_map(pip::read).collect(),
        };
        let mut making = Making::default();
        for named in &found {
            let Some(url) = without_credentials(&named.value) else {
                continue;
            };
            match self {
                Self::Npm => making.npm(named, url),
                _ => making.pip(named, &url),
            }
        }
        making.complete(variables);
        making.variables()
    }
}

/// The registry of npm as Deno knows it.
const NPM_IN_CAPITALS: &str = "NPM_CONFIG_REGISTRY";

/// The variable of Maven's virtual machine, whose options every version takes.
const MAVEN_OPTIONS: &str = "MAVEN_OPTS";

/// Mirrors of gems in files of the run's own.
fn gems(files: &[Configuration]) -> HandedConfiguration {
    let (mut mirrors, mut sources) = (Vec::new(), Vec::new());
    for named in files.iter().flat_map(gem::read) {
        let Some(url) = without_credentials(&named.value) else {
            continue;
        };
        if named.key.starts_with(gem::MIRROR) && !named.key.contains(['"', '@']) {
            mirrors.push(format!("{}: \"{url}\"\n", named.key));
        } else {
            sources.push(format!("- {url}\n"));
        }
    }
    let mut handed = HandedConfiguration::default();
    for (variable, name, begin, lines) in [
        ("BUNDLE_USER_CONFIG", "bundle-config", "---\n", mirrors),
        ("GEMRC", "gemrc", "---\n:sources:\n", sources),
    ] {
        if !lines.is_empty() {
            let place = format!("$TMPDIR/{name}");
            handed.variables.push((variable.to_owned(), place));
            handed
                .files
                .push((name.to_owned(), format!("{begin}{}", lines.concat())));
        }
    }
    handed
}

/// Mirrors of Maven in settings of the run's own, in a home directory that is Maven's alone;
/// the repository stays the one that runs share.
fn settings(files: &[Configuration], variables: &[(String, String)]) -> HandedConfiguration {
    let mirrors = files.iter().filter_map(|file| maven::mirrors(&file.text));
    let mirrors = mirrors.flatten().filter_map(|mirror| {
        let url = without_credentials(&mirror.url)?;
        Some(maven::Mirror { url, ..mirror })
    });
    let text = maven::settings(&mirrors.collect::<Vec<_>>());
    // The caller's own options stay, behind the path of the first.
    let own = super::value(variables, MAVEN_OPTIONS).unwrap_or_default();
    let is_plain = !own.contains("-Duser.home") && !own.chars().any(char::is_control);
    let own = if is_plain && !own.contains('$') {
        own
    } else {
        ""
    };
    let options = format!("-Duser.home=$TMPDIR/maven {own}");
    HandedConfiguration {
        variables: vec![(MAVEN_OPTIONS.to_owned(), options.trim_end().to_owned())],
        files: vec![("maven/.m2/settings.xml".to_owned(), text)],
    }
}

/// Variables in the making: of a name the last value holds, as of a client's files.
#[derive(Default)]
struct Making(Vec<(String, String)>);

impl Making {
    fn variables(self) -> HandedConfiguration {
        HandedConfiguration {
            variables: self.0,
            files: Vec::new(),
        }
    }

    fn go(files: &[Configuration]) -> Self {
        let mut making = Self::default();
        for (name, value) in files
            .iter()
            .flat_map(|file| go::handed(file, without_credentials))
        {
            making.set(name, value);
        }
        making
    }

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

    fn npm(&mut self, named: &NamedRegistry, url: String) {
        match named.key.as_str() {
            "npmRegistryServer" => self.set("YARN_NPM_REGISTRY_SERVER", url),
            "registry" => self.set("npm_config_registry", url),
            scope => self.set(&format!("npm_config_{scope}"), url),
        }
    }

    fn pip(&mut self, named: &NamedRegistry, url: &str) {
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
    fn complete(&mut self, variables: &[(String, String)]) {
        const FOLLOW: [(&str, &str); 6] = [
            ("npm_config_registry", "YARN_NPM_REGISTRY_SERVER"),
            ("YARN_NPM_REGISTRY_SERVER", "npm_config_registry"),
            // As Deno and pnpm from 11 on know it.
            ("npm_config_registry", NPM_IN_CAPITALS),
            ("npm_config_registry", "PNPM_CONFIG_REGISTRY"),
            ("PIP_INDEX_URL", "UV_DEFAULT_INDEX"),
            ("UV_DEFAULT_INDEX", "PIP_INDEX_URL"),
        ];
        for (from, to) in FOLLOW {
            // What the caller sets holds against any file.
            let value = super::value(variables, from).and_then(without_credentials);
            let value = value.or_else(|| self.value(from));
            if let (Some(value), None) = (value, self.value(to)) {
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
                 YARN_NPM_REGISTRY_SERVER=https://r.test/npm/ NPM_CONFIG_REGISTRY=https://r.test/npm/ \
                 PNPM_CONFIG_REGISTRY=https://r.test/npm/",
            ),
            (
                npm,
                "~/.yarnrc.yml",
                "npmRegistryServer: \"https://y.test\"\nnpmAuthToken: SECRET",
                "YARN_NPM_REGISTRY_SERVER=https://y.test npm_config_registry=https://y.test \
                 NPM_CONFIG_REGISTRY=https://y.test PNPM_CONFIG_REGISTRY=https://y.test",
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
            let handed = client.handed(&files, &[]).variables;
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
            assert_eq!(client.handed(&files, &own).variables, [], "{file}");
        }
    }

    /// What is handed over of one file.
    fn handed(
        client: Client,
        file: &str,
        text: &str,
        variables: &[(&str, &str)],
    ) -> HandedConfiguration {
        let files = [Configuration {
            place: file.to_owned(),
            text: text.to_owned(),
        }];
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let variables: Vec<_> = variables.iter().map(own).collect();
        client.handed(&files, &variables)
    }

    #[test]
    fn what_the_caller_sets_for_one_client_leads_the_others_of_its_packages() {
        let of = |client, name, value| handed(client, "/none", "", &[(name, value)]).variables;
        let uv = of(
            Client::Pip,
            "PIP_INDEX_URL",
            "https://me:SECRET@i.test/simple",
        );
        assert_eq!(
            uv,
            [(
                "UV_DEFAULT_INDEX".to_owned(),
                "https://i.test/simple".to_owned()
            )]
        );
        let yarn = of(Client::Npm, "npm_config_registry", "https://r.test");
        let all = [
            "YARN_NPM_REGISTRY_SERVER",
            "NPM_CONFIG_REGISTRY",
            "PNPM_CONFIG_REGISTRY",
        ];
        assert_eq!(
            yarn,
            all.map(|name| (name.to_owned(), "https://r.test".to_owned()))
        );
    }

    #[test]
    fn proxies_of_go_are_handed_over_as_a_list_that_nothing_is_taken_out_of() {
        const FILE: &str = "~/.config/go/env";
        let text = "GOPROXY=https://me:SECRET@p.test/go|https://q.test,direct\nGOSUMDB=off\nGOPRIVATE=*.corp.test\nGOFLAGS=-x\n";
        let pairs = handed(Client::Go, FILE, text, &[("GOSUMDB", "mine")]).variables;
        let expected = [
            ("GOPROXY", "https://p.test/go|https://q.test,direct"),
            ("GOPRIVATE", "*.corp.test"),
        ];
        assert_eq!(
            pairs,
            expected.map(|(name, value)| (name.to_owned(), value.to_owned()))
        );
        let odd = handed(Client::Go, FILE, "GOPROXY=https://p.test,https://a b/", &[]);
        assert_eq!(odd, HandedConfiguration::default());
    }

    #[test]
    fn mirrors_of_gems_and_of_maven_are_handed_over_in_files_without_a_credential() {
        let text = "---\nBUNDLE_MIRROR__HTTPS://G__TEST/: \"https://me:SECRET@m.test/\"\nBUNDLE_G__TEST: \"me:SECRET\"\n";
        let gems = handed(Client::Gem, "~/.bundle/config", text, &[]);
        let config = "---\nBUNDLE_MIRROR__HTTPS://G__TEST/: \"https://m.test/\"\n".to_owned();
        assert_eq!(gems.files, [("bundle-config".to_owned(), config)]);
        let place = "$TMPDIR/bundle-config".to_owned();
        assert_eq!(gems.variables, [("BUNDLE_USER_CONFIG".to_owned(), place)]);
        let sources = handed(
            Client::Gem,
            "~/.gemrc",
            ":sources:\n- https://SECRET@g.test/\n",
            &[],
        );
        let gemrc = "---\n:sources:\n- https://g.test/\n".to_owned();
        assert_eq!(sources.files, [("gemrc".to_owned(), gemrc)]);

        let text = "<settings><mirror><id>x</id><mirrorOf>*</mirrorOf><url>https://me:SECRET@m.test/maven2</url></mirror><server><password>SECRET</password></server></settings>";
        for (own, options) in [
            (&[][..], "-Duser.home=$TMPDIR/maven"),
            (
                &[("MAVEN_OPTS", "-Xmx1g")],
                "-Duser.home=$TMPDIR/maven -Xmx1g",
            ),
            (&[("MAVEN_OPTS", "-Dx=$HOME")], "-Duser.home=$TMPDIR/maven"),
        ] {
            let maven = handed(Client::Maven, "~/.m2/settings.xml", text, own);
            let (name, settings) = maven.files.first().expect("a file");
            assert_eq!(name, "maven/.m2/settings.xml");
            assert!(
                settings.contains("<mirrorOf>*</mirrorOf><url>https://m.test/maven2</url>"),
                "{settings}"
            );
            assert!(!settings.contains("SECRET"), "{settings}");
            assert_eq!(
                maven.variables,
                [("MAVEN_OPTS".to_owned(), options.to_owned())]
            );
        }
    }
}
