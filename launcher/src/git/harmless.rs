//! Which settings of git a command may know. People and tools write credentials under any
//! name, so what is kept is listed, and everything else is kept only where its value could
//! be none.

use super::syntax::Entry;

/// Whether a setting of this name with this value holds a credential, by what the scan
/// takes for one.
pub type Suspect<'s> = &'s dyn Fn(&str, &str) -> bool;

/// Shortest name of a user in a URL that is taken for a token, in bytes.
const TOKEN_BYTES_MIN: usize = 20;

/// Sections of git's own whose settings say how it works.
#[rustfmt::skip]
const SECTIONS: [&str; 42] = [
    "add", "advice", "am", "apply", "author", "blame", "branch", "checkout", "clean", "clone",
    "color", "column", "commit", "committer", "core", "diff", "extensions", "feature", "fetch",
    "format", "gc", "gpg", "grep", "help", "include", "includeif", "index", "init",
    "interactive", "log", "mailmap", "maintenance", "merge", "pack", "pull", "push", "rebase",
    "rerere", "safe", "status", "tag", "user",
];

/// Keys in them that are commands, whose words may hold anything, start servers, or name
/// directories of programs.
const COMMANDS: [&str; 9] = [
    "core.sshcommand",
    "core.gitproxy",
    "core.askpass",
    "core.fsmonitor",
    "core.hookspath",
    "init.templatedir",
    "diff.external",
    "gpg.program",
    "core.alternaterefscommand",
];

/// Settings about connections that hold no credential.
const CONNECTIONS: [&str; 8] = [
    "http.sslverify",
    "http.sslbackend",
    "http.version",
    "http.postbuffer",
    "http.lowspeedlimit",
    "http.lowspeedtime",
    "http.maxrequests",
    "http.followredirects",
];

/// Programs that keep credentials outside, by the names people give git.
const HELPERS: [&str; 8] = [
    "cache",
    "manager",
    "manager-core",
    "libsecret",
    "osxkeychain",
    "oauth",
    "gh auth git-credential",
    "glab auth git-credential",
];

/// Words of a script that may handle credentials, in small letters.
#[rustfmt::skip]
const WORDS: [&str; 14] = [
    "curl", "wget", "http", "token", "pass", "secret", "auth", "bearer", "pat=", "key=", " -u",
    "login", "pwd", "cred",
];

/// What is done with a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Judgement {
    /// The command may know it.
    Plain,
    /// Nobody knows what it is; it is left out.
    Unknown,
    /// It holds a credential or may hold one; it is left out, and that is said.
    Secret,
}

/// What is done with a setting of the user's.
pub(super) fn judge(entry: &Entry, suspect: Suspect<'_>) -> Judgement {
    let value = entry.value.as_deref().unwrap_or_default();
    let name = entry.name();
    let has_userinfo =
        holds_userinfo(value) || entry.subsection.as_deref().is_some_and(holds_userinfo);
    let is_suspect = entry.section != "user" && suspect(&entry.key, value);
    if has_userinfo || is_suspect {
        return Judgement::Secret;
    }
    match entry.section.as_str() {
        "alias" => script(value),
        "credential" if entry.key == "helper" => helper(value),
        "http" if CONNECTIONS.contains(&name.as_str()) && is_alone(entry) => Judgement::Plain,
        "url" if is_alone(entry) => Judgement::Plain,
        "filter" if is_filter(value) => Judgement::Plain,
        _ if COMMANDS.contains(&name.as_str()) => Judgement::Unknown,
        own if SECTIONS.contains(&own) => Judgement::Plain,
        _ if is_word(value) && is_alone(entry) => Judgement::Plain,
        _ if may_hold(&entry.key) => Judgement::Secret,
        _ => Judgement::Unknown,
    }
}

/// Whether a subsection is a plain name, host or URL.
fn is_alone(entry: &Entry) -> bool {
    let is_plain = |name: &String| !name.contains(['?', '=', '&', ';']);
    entry.subsection.as_ref().is_none_or(is_plain)
}

/// An alias: words of git, or a script.
fn script(value: &str) -> Judgement {
    let small = value.to_ascii_lowercase();
    if value.starts_with('!') && WORDS.iter().any(|word| small.contains(word)) {
        Judgement::Secret
    } else {
        Judgement::Plain
    }
}

fn helper(value: &str) -> Judgement {
    let bare = value.strip_prefix('!').unwrap_or(value);
    // The program may be named by its path; its words may hold no slash.
    let bare = bare.rsplit('/').next().unwrap_or(bare);
    if bare.is_empty() || HELPERS.contains(&bare) {
        Judgement::Plain
    } else {
        Judgement::Secret
    }
}

/// What git runs on the content of files, as git-lfs writes it.
fn is_filter(value: &str) -> bool {
    value.starts_with("git-lfs ") || is_word(value)
}

/// A value that is no credential: a switch, a short number, a path.
fn is_word(value: &str) -> bool {
    #[rustfmt::skip]
    let switches = [
        "", "true", "false", "yes", "no", "on", "off", "auto", "always", "never",
    ];
    let is_number = value.len() <= 6 && value.bytes().all(|byte| byte.is_ascii_digit());
    let is_path = value.starts_with("~/") || value.starts_with('/');
    switches.contains(&value.to_ascii_lowercase().as_str()) || is_number || is_path
}

/// Whether a key is called like a credential.
fn may_hold(key: &str) -> bool {
    let named = [
        "token", "secret", "pass", "pwd", "auth", "key", "header", "cookie", "proxy",
    ];
    named.iter().any(|word| key.contains(word))
}

/// Whether there is a name and a password before an `@`, with a scheme or without, or a
/// token in the place of a user.
fn holds_userinfo(text: &str) -> bool {
    text.split([' ', '"', '\'', '\t']).any(|word| {
        let (scheme, rest) = word.split_once("://").unwrap_or(("", word));
        let authority = rest.split(['/', '?', '#']).next().unwrap_or(rest);
        let Some((user, _)) = authority.rsplit_once('@') else {
            return rest.contains("://") && holds_userinfo(rest);
        };
        let has_password = user.split_once(':').is_some_and(|(_, own)| !own.is_empty());
        let is_web = scheme.ends_with("http") || scheme.ends_with("https");
        has_password || (is_web && user.len() >= TOKEN_BYTES_MIN)
    })
}
