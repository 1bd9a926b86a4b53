//! Which settings of git a command may know. People and tools write credentials under any
//! name, so what is kept is listed, and everything else is kept only where its value could
//! be none.

use super::syntax::ConfigEntry;

/// Whether a setting of this name with this value holds a credential, by what the scan
/// takes for one.
pub type Suspect<'s> = &'s dyn Fn(&str, &str) -> bool;

/// Shortest name of a user in a URL that is taken for a token, in bytes.
const TOKEN_BYTES_MIN: usize = 12;

/// Longest word that is read whatever letters and digits it mixes, in bytes: `%C`, `HEAD1`.
const READABLE_BYTES_MAX: usize = 6;

/// Longest group of switches of one letter each, in bytes: `-FRX`.
const SWITCHES_BYTES_MAX: usize = 5;

/// Sections of git's own whose settings say how it works: switches, numbers, names of ways.
#[rustfmt::skip]
const SECTIONS: [&str; 37] = [
    "add", "advice", "am", "apply", "blame", "branch", "checkout", "clean", "clone",
    "color", "column", "commit", "core", "diff", "extensions", "feature", "fetch",
    "format", "gc", "gpg", "grep", "help", "index", "init",
    "interactive", "log", "mailmap", "maintenance", "merge", "pack", "pull", "push", "rebase",
    "rerere", "safe", "status", "tag",
];

/// Settings that may say anything, and are kept as they are: who writes commits, where files
/// of settings lie, what a line of a log looks like.
#[rustfmt::skip]
const TEXTS: [&str; 22] = [
    "user.name", "user.email", "author.name", "author.email", "committer.name", "committer.email",
    "include.path", "includeif.path", "format.pretty", "log.format", "log.date", "core.excludesfile",
    "core.attributesfile", "commit.template", "core.commentchar", "core.commentstring",
    "user.signingkey", "user.useconfigonly", "diff.xfuncname", "diff.funcname", "diff.wordregex",
    "safe.directory",
];

/// Keys that are commands, whose words may hold anything, start servers, or name
/// directories of programs, with a subsection or without.
#[rustfmt::skip]
const COMMANDS: [&str; 15] = [
    "core.sshcommand", "core.gitproxy", "core.askpass", "core.fsmonitor", "core.hookspath",
    "init.templatedir", "diff.external", "diff.command", "diff.textconv", "merge.driver",
    "gpg.program", "gpg.defaultkeycommand", "core.alternaterefscommand", "fetch.bundleuri",
    "format.headers",
];

/// Commands of which programs and plain switches are kept.
const VIEWERS: [&str; 3] = ["core.editor", "core.pager", "interactive.difffilter"];

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

/// Words of a shell that stand before a command.
const BEFORE: [&str; 9] = [
    "if", "then", "elif", "else", "while", "until", "do", "!", "time",
];

/// What is done with a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SettingJudgement {
    /// The command may know it.
    Plain,
    /// Nobody knows what it is; it is left out.
    Unknown,
    /// It holds a credential or may hold one; it is left out, and that is said.
    Secret,
}

/// What is done with a setting of the user's.
pub(super) fn judge(entry: &ConfigEntry, suspect: Suspect<'_>) -> SettingJudgement {
    let value = entry.value.as_deref().unwrap_or_default();
    let name = entry.name();
    let has_userinfo =
        holds_userinfo(value) || entry.subsection.as_deref().is_some_and(holds_userinfo);
    let is_text = TEXTS.contains(&name.as_str());
    // Who somebody is may look like anything; a name that a scan knows is one all the same.
    let key = if is_text { "" } else { entry.key.as_str() };
    if has_userinfo || suspect(key, value) {
        return SettingJudgement::Secret;
    }
    match entry.section.as_str() {
        "alias" => script(value),
        "credential" if entry.key == "helper" => helper(value),
        "http" if CONNECTIONS.contains(&name.as_str()) && is_alone(entry) => {
            SettingJudgement::Plain
        }
        "url" if is_alone(entry) => SettingJudgement::Plain,
        "filter" if is_filter(value) => SettingJudgement::Plain,
        _ if COMMANDS.contains(&name.as_str()) => SettingJudgement::Unknown,
        _ if VIEWERS.contains(&name.as_str()) => viewer(value),
        _ if is_text => SettingJudgement::Plain,
        _ if may_hold(&entry.key) => SettingJudgement::Secret,
        own if SECTIONS.contains(&own) && value.split_whitespace().all(is_plain_word) => {
            SettingJudgement::Plain
        }
        _ if is_word(value) && is_alone(entry) => SettingJudgement::Plain,
        _ => SettingJudgement::Unknown,
    }
}

/// Whether a subsection is a plain name, host or URL.
fn is_alone(entry: &ConfigEntry) -> bool {
    let is_plain = |name: &String| !name.contains(['?', '=', '&', ';']);
    entry.subsection.as_ref().is_none_or(is_plain)
}

/// An alias: words of git, or a script, of which those of git's own commands are kept whose
/// words say nothing.
fn script(value: &str) -> SettingJudgement {
    let small = value.to_ascii_lowercase();
    let body = value.strip_prefix('!').map(str::trim_start);
    let is_gits = body.is_none_or(calls_git_alone);
    let is_named = body.is_some() && WORDS.iter().any(|word| small.contains(word));
    if is_named || !value.split(is_sign).all(is_readable) {
        SettingJudgement::Secret
    } else if is_gits {
        SettingJudgement::Plain
    } else {
        SettingJudgement::Unknown
    }
}

/// Whether a script calls git, maybe in a function, and nothing else: what other programs are
/// told may be a password however it looks.
fn calls_git_alone(body: &str) -> bool {
    let body = body.strip_prefix("f()").unwrap_or(body);
    let separators = [';', '|', '&', '{', '}', '(', ')', '`', '\n'];
    body.split(separators).all(|command| {
        let mut words = command.split_whitespace();
        let first = words.find(|word| !BEFORE.contains(word));
        match first {
            None | Some("git" | "shift" | "done" | "fi") => true,
            // The function, or a test, on what it is given.
            Some("f" | "[" | "test" | "exit" | "return") => words.all(is_given),
            Some(_) => false,
        }
    })
}

/// Whether a word of a script is a sign, a number, a switch of one letter, or stands for what
/// the script is given.
fn is_given(word: &str) -> bool {
    let bare = word.trim_matches(['"', '\'']);
    let is_number = bare.bytes().all(|byte| byte.is_ascii_digit());
    let is_switch = bare.len() == 2 && bare.starts_with('-');
    is_number || is_switch || bare.starts_with('$') || bare.chars().all(is_sign)
}

/// An editor or a pager with switches that have no value.
fn viewer(value: &str) -> SettingJudgement {
    let mut words = value.split_whitespace();
    let is_program = words
        .next()
        .is_none_or(|word| word.split('/').all(is_readable));
    let is_switch = |word: &str| match word.strip_prefix("--") {
        Some(name) => name
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte == b'-'),
        None => word.starts_with('-') && word.len() <= SWITCHES_BYTES_MAX,
    };
    if is_program && words.all(is_switch) {
        SettingJudgement::Plain
    } else {
        SettingJudgement::Unknown
    }
}

/// What separates the words of a script.
fn is_sign(letter: char) -> bool {
    !letter.is_alphanumeric()
}

/// Whether a word, without signs, is one that somebody would read, and no password: short, or
/// of letters in one case (but the first), or of digits.
fn is_readable(word: &str) -> bool {
    let rest = || word.chars().skip(1);
    word.len() <= READABLE_BYTES_MAX
        || word.chars().all(|letter| letter.is_ascii_digit())
        || rest().all(char::is_lowercase)
        || word.chars().all(char::is_uppercase)
}

/// Whether a word of a setting about git's own ways is one: of letters, digits and signs, in
/// pieces that are readable.
fn is_plain_word(word: &str) -> bool {
    is_word(word) || word.split(is_sign).all(is_readable)
}

fn helper(value: &str) -> SettingJudgement {
    let bare = value.strip_prefix('!').unwrap_or(value);
    // The program may be named by its path; its words may hold no slash.
    let bare = bare.rsplit('/').next().unwrap_or(bare);
    if bare.is_empty() || HELPERS.contains(&bare) {
        SettingJudgement::Plain
    } else {
        SettingJudgement::Secret
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_alias_is_kept_where_git_alone_is_called() {
        for (value, judged) in [
            ("log --graph", SettingJudgement::Plain),
            ("!git log -1 HEAD", SettingJudgement::Plain),
            (
                "!f() { git add . && git commit -m \"$1\"; }; f",
                SettingJudgement::Plain,
            ),
            (
                "!f() { if [ -n \"$1\" ]; then git switch \"$1\"; else git branch; fi; }; f \"$@\"",
                SettingJudgement::Plain,
            ),
            (
                "!f() { mysql -phunter prod; }; f",
                SettingJudgement::Unknown,
            ),
            (
                "!f() { git status; redis-cli -a hunter; }; f",
                SettingJudgement::Unknown,
            ),
            ("!git status; echo hunter", SettingJudgement::Unknown),
            ("!git log $(echo hunter)", SettingJudgement::Unknown),
            ("!f() { git status; }; f hunter", SettingJudgement::Unknown),
            (
                "!f() { word=hunter git push; }; f",
                SettingJudgement::Unknown,
            ),
            (
                "!f() { [ \"$1\" = hunter ] && git push; }; f",
                SettingJudgement::Unknown,
            ),
            (
                "!f() { echo password=hunter; }; f",
                SettingJudgement::Secret,
            ),
            ("!sh x", SettingJudgement::Unknown),
        ] {
            assert_eq!(script(value), judged, "{value}");
        }
    }
}
