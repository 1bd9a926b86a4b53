//! The file lists of the shipped policies, as data.
//!
//! Reading a document takes longer than everything else a run without network
//! compiles, and these never change between two builds. A test proves that
//! each table says what its document says, at the same places; when a document
//! was changed, its failure shows what to write here.

use crate::draft::Access::{self, Read, Write};

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

/// `base`.
#[rustfmt::skip]
pub(crate) const BASE: &[ShippedPath] = &[
    path(Read, 14, 4, "/bin"),
    path(Read, 14, 12, "/sbin"),
    path(Read, 14, 21, "/lib"),
    path(Read, 14, 29, "/lib32"),
    path(Read, 14, 39, "/lib64"),
    path(Read, 14, 49, "/libx32"),
    path(Read, 14, 60, "/usr"),
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
    path(Read, 14, 4, "~/.gitconfig"),
    path(Read, 14, 20, "~/.config/git/config"),
    path(Read, 14, 44, "~/.config/git/ignore"),
    path(Read, 14, 68, "~/.config/git/attributes"),
    path(Read, 15, 4, "~/.local/bin"),
    path(Read, 15, 20, "~/.local/lib"),
    path(Read, 15, 36, "~/.local/share/uv"),
    path(Read, 15, 57, "~/.local/share/pnpm"),
    path(Read, 15, 80, "~/.local/share/virtualenvs"),
    path(Read, 17, 4, "~/.cargo/bin"),
    path(Read, 17, 20, "~/.cargo/env"),
    path(Read, 17, 36, "~/.cargo/config.toml"),
    path(Read, 17, 60, "~/.rustup"),
    path(Read, 19, 4, "~/go/bin"),
    path(Read, 19, 16, "~/.local/go"),
    path(Read, 19, 31, "~/sdk"),
    path(Read, 21, 4, "~/.pyenv"),
    path(Read, 21, 16, "~/.local/pipx"),
    path(Read, 21, 33, "~/.local/share/pipx"),
    path(Read, 21, 56, "~/miniconda3"),
    path(Read, 21, 72, "~/.conda/envs"),
    path(Read, 23, 4, "~/.nvm"),
    path(Read, 23, 14, "~/.volta"),
    path(Read, 23, 26, "~/.fnm"),
    path(Read, 23, 36, "~/.local/share/fnm"),
    path(Read, 23, 58, "~/.bun/bin"),
    path(Read, 23, 72, "~/.deno/bin"),
    path(Read, 23, 87, "~/.yarn/bin"),
    path(Read, 25, 4, "~/.sdkman"),
    path(Read, 25, 17, "~/.jdks"),
    path(Read, 25, 28, "~/.rbenv"),
    path(Read, 25, 40, "~/.rvm"),
    path(Read, 25, 50, "~/.gem/ruby"),
    path(Read, 25, 65, "~/.dotnet"),
    path(Read, 25, 78, "~/.ghcup"),
    path(Read, 25, 90, "~/.opam"),
    path(Read, 26, 4, "~/.asdf"),
    path(Read, 26, 15, "~/.local/share/mise"),
    path(Read, 26, 38, "~/.nix-profile"),
    path(Read, 26, 56, "~/.local/state/nix/profiles"),
    path(Write, 31, 4, "/dev/pts"),
    path(Write, 31, 16, "/dev/shm"),
    path(Write, 32, 4, "~/.cache"),
    path(Write, 33, 4, "~/.cargo/registry"),
    path(Write, 33, 25, "~/.cargo/git"),
    path(Write, 34, 4, "~/go/pkg"),
    path(Write, 35, 4, "~/.npm"),
    path(Write, 35, 14, "~/.bun/install/cache"),
    path(Write, 35, 38, "~/.yarn/berry"),
    path(Write, 36, 4, "~/.m2/repository"),
    path(Write, 36, 24, "~/.gradle/caches"),
    path(Write, 36, 44, "~/.gradle/wrapper"),
    path(Write, 36, 65, "~/.gradle/daemon"),
    path(Write, 37, 4, "~/.nuget/packages"),
    path(Write, 37, 25, "~/.bundle/cache"),
];
