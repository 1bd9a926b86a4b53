//! The file lists of the shipped policies and the variables they set, as data.
//!
//! Reading a document takes longer than everything else a run without network
//! compiles, and these never change between two builds. A test proves that
//! each table says what its document says, at the same places; when a document
//! was changed, its failure shows what to write here.

use crate::author::Access::{self, Read, Write};

/// One path of a shipped policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ShippedPath {
    pub(crate) access: Access,
    pub(crate) line: u32,
    pub(crate) column: u32,
    pub(crate) path: &'static str,
}

const fn path(access: Access, line: u32, column: u32, path: &'static str) -> ShippedPath {
    ShippedPath {
        access,
        line,
        column,
        path,
    }
}

/// One variable that a shipped policy sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ShippedVariable {
    pub(crate) line: u32,
    pub(crate) column: u32,
    pub(crate) name: &'static str,
    pub(crate) value: &'static str,
}

const fn variable(
    line: u32,
    column: u32,
    name: &'static str,
    value: &'static str,
) -> ShippedVariable {
    ShippedVariable {
        line,
        column,
        name,
        value,
    }
}

/// `base`.
#[rustfmt::skip]
pub(crate) const BASE: &[ShippedPath] = &[
    path(Read, 14, 4, "/usr"),
    path(Read, 14, 12, "/bin"),
    path(Read, 14, 20, "/sbin"),
    path(Read, 14, 29, "/lib"),
    path(Read, 14, 37, "/lib32"),
    path(Read, 14, 47, "/lib64"),
    path(Read, 14, 57, "/libx32"),
    path(Read, 14, 68, "/opt"),
    path(Read, 14, 76, "/snap"),
    path(Read, 15, 4, "/nix/store"),
    path(Read, 15, 18, "/nix/var/nix/profiles"),
    path(Read, 15, 43, "/gnu/store"),
    path(Read, 15, 57, "/run/current-system"),
    path(Read, 15, 80, "/home/linuxbrew/.linuxbrew"),
    path(Read, 17, 4, "/etc"),
    path(Read, 17, 12, "/run/systemd/resolve"),
    path(Read, 17, 36, "/run/resolvconf"),
    path(Read, 17, 55, "/run/NetworkManager/resolv.conf"),
    path(Read, 17, 90, "/mnt/wsl/resolv.conf"),
    path(Read, 18, 4, "/var/lib/ca-certificates"),
    path(Read, 18, 32, "/var/lib/alternatives"),
    path(Read, 18, 57, "/var/cache/fontconfig"),
    path(Read, 18, 82, "/var/cache/ldconfig"),
    path(Read, 20, 4, "/proc"),
    path(Read, 20, 13, "/sys"),
    path(Read, 22, 4, "/dev/fd"),
    path(Read, 22, 15, "/dev/stdin"),
    path(Read, 22, 29, "/dev/stdout"),
    path(Read, 22, 44, "/dev/stderr"),
    path(Write, 25, 4, "."),
    path(Write, 25, 9, "$TMPDIR"),
    path(Write, 26, 4, "/dev/null"),
    path(Write, 26, 17, "/dev/zero"),
    path(Write, 26, 30, "/dev/full"),
    path(Write, 26, 43, "/dev/random"),
    path(Write, 26, 58, "/dev/urandom"),
    path(Write, 27, 4, "/dev/tty"),
    path(Write, 27, 16, "/dev/ptmx"),
];

/// `dev-tools`.
#[rustfmt::skip]
pub(crate) const DEV_TOOLS: &[ShippedPath] = &[
    path(Read, 13, 4, "~/.ssh/known_hosts"),
    path(Read, 13, 26, "~/.ssh/known_hosts2"),
    path(Read, 14, 4, "~/.local/bin"),
    path(Read, 14, 20, "~/.local/lib"),
    path(Read, 14, 36, "~/.local/share/uv"),
    path(Read, 14, 57, "~/.local/share/pnpm"),
    path(Read, 14, 80, "~/.local/share/virtualenvs"),
    path(Read, 16, 4, "~/.cargo/bin"),
    path(Read, 16, 20, "~/.cargo/env"),
    path(Read, 16, 36, "~/.cargo/config.toml"),
    path(Read, 16, 60, "~/.rustup"),
    path(Read, 18, 4, "~/go/bin"),
    path(Read, 18, 16, "~/.local/go"),
    path(Read, 18, 31, "~/sdk"),
    path(Read, 20, 4, "~/.pyenv"),
    path(Read, 20, 16, "~/.local/pipx"),
    path(Read, 20, 33, "~/.local/share/pipx"),
    path(Read, 20, 56, "~/miniconda3"),
    path(Read, 20, 72, "~/.conda/envs"),
    path(Read, 22, 4, "~/.nvm"),
    path(Read, 22, 14, "~/.volta"),
    path(Read, 22, 26, "~/.fnm"),
    path(Read, 22, 36, "~/.local/share/fnm"),
    path(Read, 22, 58, "~/.bun/bin"),
    path(Read, 22, 72, "~/.deno/bin"),
    path(Read, 22, 87, "~/.yarn/bin"),
    path(Read, 24, 4, "~/.sdkman"),
    path(Read, 24, 17, "~/.jdks"),
    path(Read, 24, 28, "~/.rbenv"),
    path(Read, 24, 40, "~/.rvm"),
    path(Read, 24, 50, "~/.gem/ruby"),
    path(Read, 24, 65, "~/.dotnet"),
    path(Read, 24, 78, "~/.ghcup"),
    path(Read, 24, 90, "~/.opam"),
    path(Read, 25, 4, "~/.asdf"),
    path(Read, 25, 15, "~/.local/share/mise"),
    path(Read, 25, 38, "~/.nix-profile"),
    path(Read, 25, 56, "~/.local/state/nix/profiles"),
    path(Write, 30, 4, "/dev/pts"),
    path(Write, 30, 16, "/dev/shm"),
    path(Write, 32, 4, "~/.cache/outgate/"),
];

/// Variables that `dev-tools` sets.
#[rustfmt::skip]
pub(crate) const DEV_TOOLS_VARIABLES: &[ShippedVariable] = &[
    variable(38, 19, "XDG_CACHE_HOME", "~/.cache/outgate"),
    variable(39, 15, "CARGO_HOME", "~/.cache/outgate/cargo"),
    variable(40, 15, "GOMODCACHE", "~/.cache/outgate/go-mod"),
    variable(41, 21, "npm_config_cache", "~/.cache/outgate/npm"),
    variable(42, 23, "YARN_GLOBAL_FOLDER", "~/.cache/outgate/yarn"),
    variable(43, 26, "BUN_INSTALL_CACHE_DIR", "~/.cache/outgate/bun"),
    variable(44, 24, "PUPPETEER_CACHE_DIR", "~/.cache/outgate/puppeteer"),
    variable(45, 21, "GRADLE_USER_HOME", "~/.cache/outgate/gradle"),
    variable(47, 16, "GRADLE_OPTS", "-Dorg.gradle.daemon=false"),
    variable(48, 15, "MAVEN_ARGS", "-Dmaven.repo.local=~/.cache/outgate/maven"),
    variable(49, 19, "NUGET_PACKAGES", "~/.cache/outgate/nuget"),
    variable(50, 22, "BUNDLE_USER_CACHE", "~/.cache/outgate/bundle"),
    variable(52, 17, "UV_LINK_MODE", "copy"),
    variable(53, 37, "npm_config_package_import_method", "copy"),
    variable(54, 38, "pnpm_config_package_import_method", "copy"),
    variable(56, 43, "npm_config_enable_global_virtual_store", "false"),
    variable(57, 44, "pnpm_config_enable_global_virtual_store", "false"),
    variable(58, 29, "YARN_ENABLE_GLOBAL_CACHE", "false"),
];
