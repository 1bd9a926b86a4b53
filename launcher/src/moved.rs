//! What shipped policies show beside what their documents name: what variables have moved,
//! and the configuration of clients that holds nothing secret. Looks at what is there;
//! reads nothing.

use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path};

use nix::unistd::Uid;
use outgate_policy::SourceKind;

use crate::guarded::{Access, closed};
use crate::text::quoted;

/// Variables, and parts of what lies where they say.
pub(crate) type Places = &'static [(&'static str, &'static [&'static str])];
/// Shipped policies, and variables that move what they are about.
pub(crate) const MOVED: [(&str, SourceKind, Places); 4] = [
    ("dev-tools", SourceKind::Read, &TOOLCHAIN_VARIABLES),
    (
        "aws",
        SourceKind::Read,
        &[
            ("AWS_CONFIG_FILE", &[""]),
            ("AWS_SHARED_CREDENTIALS_FILE", &[""]),
            ("AWS_WEB_IDENTITY_TOKEN_FILE", &[""]),
        ],
    ),
    ("gcloud", SourceKind::Write, &[("CLOUDSDK_CONFIG", &[""])]),
    (
        "playwright",
        SourceKind::Read,
        &[("PLAYWRIGHT_BROWSERS_PATH", &[""])],
    ),
];
/// Variables that say where a toolchain of the user lies, and what of it commands read: what
/// lies beside it may be a token.
const TOOLCHAIN_VARIABLES: [(&str, &[&str]); 18] = [
    ("CARGO_HOME", &["bin", "env", "config.toml"]),
    ("RUSTUP_HOME", &[""]),
    ("GOROOT", &[""]),
    ("GOPATH", &["bin"]),
    ("NVM_DIR", &[""]),
    ("VOLTA_HOME", &[""]),
    ("PNPM_HOME", &[""]),
    ("BUN_INSTALL", &["bin"]),
    ("DENO_INSTALL", &["bin"]),
    ("PYENV_ROOT", &[""]),
    ("PIPX_HOME", &[""]),
    ("UV_PYTHON_INSTALL_DIR", &[""]),
    ("UV_TOOL_DIR", &[""]),
    ("RBENV_ROOT", &[""]),
    ("JAVA_HOME", &[""]),
    ("SDKMAN_DIR", &[""]),
    ("ASDF_DATA_DIR", &[""]),
    ("MISE_DATA_DIR", &[""]),
];

/// The shipped policy of pnpm.
const PNPM: &str = "pnpm";

/// Lets pnpm keep its locks, which from version 12 on lie in /tmp whatever `TMPDIR` says:
/// in a directory of this account's, if nobody else has taken its name.
pub(crate) fn locks(preset: &str) -> Option<String> {
    let user = Uid::effective().as_raw();
    let path = format!("/tmp/pnpm-store-operation-locks-{user}/");
    let is_ours = match std::fs::symlink_metadata(path.trim_end_matches('/')) {
        Ok(metadata) => metadata.is_dir() && metadata.uid() == user,
        Err(error) => error.kind() == ErrorKind::NotFound,
    };
    (preset == PNPM && is_ours).then(|| format!("[filesystem]\nwrite = [{}]\n", quoted(&path)))
}

/// Words beside which a token may stand in a client's configuration.
const WORDS_OF_SECRETS: [&str; 9] = [
    "auth",
    "token",
    "passw",
    "secret",
    "user",
    "credential",
    "key",
    "cert",
    "${",
];

/// Whether a client's configuration holds nothing that may be a credential, so that a
/// command may read it: some clients stop at a file that is there and closed.
pub(crate) fn is_plain(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    let has_userinfo = text.split("://").skip(1).any(|rest| {
        let end = rest.find(|c: char| c == '/' || c.is_whitespace());
        rest.get(..end.unwrap_or(rest.len()))
            .is_some_and(|authority| authority.contains('@'))
    });
    !has_userinfo && !WORDS_OF_SECRETS.iter().any(|word| text.contains(word))
}

/// What a variable has moved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Found {
    /// It lies there.
    At(String),
    /// There it is not shown: that is, lies in or holds this place, of secrets or programs.
    Closed(String, String),
}

/// Where things lie that variables have moved, as far as they are there: the variable and
/// the path. Never the home directory, nor what it lies in.
pub(crate) fn moved(
    home: &str,
    variables: &[(String, String)],
    (access, table): (Access, Places),
) -> Vec<(&'static str, Found)> {
    let mut out = Vec::new();
    for (name, parts) in table {
        let mut all = variables.iter();
        let Some((_, value)) = all.find(|(own, _)| own == *name) else {
            continue;
        };
        let root = Path::new(value);
        let is_plain = root
            .components()
            .all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
        let is_wide = Path::new(home).starts_with(root) || root.components().count() < 3;
        if !root.is_absolute() || !is_plain || is_wide {
            continue;
        }
        for part in *parts {
            let path = if part.is_empty() {
                root.to_owned()
            } else {
                root.join(part)
            };
            if !path.exists() {
                continue;
            }
            let shown = path.display().to_string();
            let found = match closed(&path, home, access, (name, variables)) {
                None => Found::At(shown),
                Some(place) => Found::Closed(shown, place.display().to_string()),
            };
            out.push((*name, found));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_with_anything_that_may_be_a_credential_is_not_shown() {
        for (text, plain) in [
            ("registry=https://r.test/\nfund=false\n", true),
            ("npmRegistryServer: \"https://r.test/a@b\"\n", true),
            ("registry=https://r.test/\n//r.test/:_authToken=x\n", false),
            ("registry=https://me@r.test/\n", false),
            (
                "registry=https://r.test/\n; https://me:pw@other.test",
                false,
            ),
            ("_PASSWORD=x", false),
            ("npmAuthIdent: x", false),
            ("registry=https://${HOST}/", false),
        ] {
            assert_eq!(is_plain(text), plain, "{text}");
        }
    }

    #[test]
    fn toolchains_are_shown_where_variables_have_moved_them_and_nothing_around_them() {
        let root = std::env::temp_dir().join(format!("outgate-moved-{}", std::process::id()));
        for part in ["cargo/bin", "rustup"] {
            std::fs::create_dir_all(root.join(part)).unwrap();
        }
        let below = |part: &str| root.join(part).display().to_string();
        let home = below("home");
        let shown = |name: &str, value: &str| -> Vec<String> {
            let variables = [(name.to_owned(), value.to_owned())];
            let all = moved(&home, &variables, (Access::Read, &TOOLCHAIN_VARIABLES));
            let path = |found| match found {
                Found::At(path) => path,
                Found::Closed(path, place) => panic!("{path}: {place}"),
            };
            all.into_iter().map(|(_, found)| path(found)).collect()
        };
        assert_eq!(shown("CARGO_HOME", &below("cargo")), [below("cargo/bin")]);
        assert_eq!(shown("RUSTUP_HOME", &below("rustup")), [below("rustup")]);
        for wide in [
            "/",
            "/usr",
            "relative",
            &below("rustup/../cargo"),
            &home,
            &below(""),
        ] {
            assert!(shown("RUSTUP_HOME", wide).is_empty(), "{wide}");
        }
        assert!(shown("OTHER", &below("rustup")).is_empty());
        std::fs::remove_dir_all(&root).unwrap();
    }
}
