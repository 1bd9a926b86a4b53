//! Which settings of git are known to execute nothing (git-config(1)): all others are taken
//! for ones that run a program, or have git read settings elsewhere. And which attributes hand
//! files to a program (gitattributes(5)). Pure.

use std::path::{Path, PathBuf};

use super::{Drivers, Scene};
use crate::git::syntax::{ConfigEntry, parse};
use crate::leftovers::file::home_of;

/// Sections of which no key names a program, a strategy or a file of settings.
#[rustfmt::skip]
const SECTIONS: &[&str] = &[
    "add", "advice", "apply", "author", "blame", "branch", "checkout", "clean", "clone", "color",
    "column", "commit", "committer", "extensions", "feature", "grep", "i18n", "index", "log",
    "mailmap", "notes", "pack", "rebase", "rerere", "stash", "status", "tag", "user",
    "versionsort", "worktree", "sparse",
];

/// Settings of other sections, by section and key, whatever the subsection.
#[rustfmt::skip]
const HARMLESS: &[&str] = &[
    "core.abbrev", "core.autocrlf", "core.bare", "core.bigfilethreshold", "core.checkroundtripencoding",
    "core.checkstat", "core.commentchar", "core.commentstring", "core.commitgraph", "core.compression",
    "core.deltabasecachelimit", "core.eol", "core.excludesfile", "core.filemode", "core.fsync",
    "core.fsyncmethod", "core.hidedotfiles", "core.ignorecase", "core.ignorestat",
    "core.logallrefupdates", "core.longpaths", "core.loosecompression", "core.multipackindex",
    "core.packedgitlimit", "core.packedgitwindowsize", "core.precomposeunicode", "core.preloadindex",
    "core.protecthfs", "core.protectntfs", "core.quotepath", "core.repositoryformatversion",
    "core.restrictinheritedhandles", "core.safecrlf", "core.sharedrepository", "core.sparsecheckout",
    "core.sparsecheckoutcone", "core.splitindex", "core.symlinks", "core.trustctime",
    "core.untrackedcache", "core.warnambiguousrefs", "core.whitespace",
    "credential.usehttppath", "credential.username",
    "diff.algorithm", "diff.autorefreshindex", "diff.binary", "diff.cachetextconv", "diff.colormoved",
    "diff.colormovedws", "diff.context", "diff.funcname", "diff.ignoresubmodules",
    "diff.indentheuristic", "diff.interhunkcontext", "diff.mnemonicprefix", "diff.noprefix",
    "diff.relative", "diff.renamelimit", "diff.renames", "diff.statgraphwidth", "diff.submodule",
    "diff.suppressblankempty", "diff.wordregex", "diff.wserrorhighlight", "diff.xfuncname",
    "fetch.all", "fetch.fsckobjects", "fetch.negotiationalgorithm", "fetch.output", "fetch.parallel",
    "fetch.prune", "fetch.prunetags", "fetch.recursesubmodules", "fetch.showforcedupdates",
    "fetch.unpacklimit", "fetch.writecommitgraph", "filter.required",
    "format.coverletter", "format.numbered", "format.pretty", "format.signoff", "format.thread",
    "gc.aggressivedepth", "gc.aggressivewindow", "gc.auto", "gc.autodetach", "gc.autopacklimit",
    "gc.bigpackthreshold", "gc.cruftpacks", "gc.logexpiry", "gc.packrefs", "gc.pruneexpire",
    "gc.reflogexpire", "gc.reflogexpireunreachable", "gc.rerereresolved", "gc.rerereunresolved",
    "gc.worktreepruneexpire", "gc.writecommitgraph",
    "gpg.allowedsignersfile", "gpg.format", "gpg.mintrustlevel", "gpg.revocationfile",
    "gui.geometry", "gui.wmstate", "help.autocorrect",
    "http.lowspeedlimit", "http.lowspeedtime", "http.maxrequests", "http.postbuffer", "http.version",
    "init.defaultbranch", "init.defaultobjectformat", "init.defaultrefformat",
    "interactive.singlekey", "lfs.access", "lfs.batch", "lfs.concurrenttransfers",
    "lfs.fetchexclude", "lfs.fetchinclude", "lfs.locksverify", "lfs.repositoryformatversion",
    "lfs.skipdownloaderrors", "maintenance.auto", "maintenance.autodetach", "maintenance.enabled",
    "maintenance.schedule", "maintenance.strategy",
    "merge.autostash", "merge.branchdesc", "merge.conflictstyle", "merge.directoryrenames", "merge.ff",
    "merge.log", "merge.name", "merge.renamelimit", "merge.renames", "merge.stat", "merge.verbosity",
    "pull.autostash", "pull.ff", "pull.rebase",
    "push.autosetupremote", "push.default", "push.followtags", "push.gpgsign", "push.negotiate",
    "push.recursesubmodules", "push.useforceifincludes",
    "receive.autogc", "receive.denycurrentbranch", "receive.denydeletes",
    "receive.denynonfastforwards", "receive.fsckobjects", "receive.updateserverinfo",
    "remote.fetch", "remote.followremotehead", "remote.gh-resolved", "remote.mirror",
    "remote.partialclonefilter", "remote.promisor", "remote.prune", "remote.prunetags",
    "remote.push", "remote.pushdefault", "remote.pushurl", "remote.skipdefaultupdate",
    "remote.skipfetchall", "remote.tagopt", "remote.url",
    "submodule.active", "submodule.branch", "submodule.fetchjobs",
    "submodule.fetchrecursesubmodules", "submodule.ignore", "submodule.path", "submodule.propagatebranches",
    "submodule.recurse", "submodule.shallow", "submodule.url",
    "transfer.fsckobjects", "transfer.hiderefs", "transfer.unpacklimit",
];

/// What git-lfs sets up for itself everywhere.
const LFS: [(&str, &str); 3] = [
    ("filter.clean", "git-lfs clean -- %f"),
    ("filter.smudge", "git-lfs smudge -- %f"),
    ("filter.process", "git-lfs filter-process"),
];

/// Commands that an alias may stand for, with options that have no argument which is run.
#[rustfmt::skip]
const COMMANDS: &[&str] = &[
    "add", "blame", "branch", "checkout", "cherry-pick", "commit", "describe", "diff", "fetch",
    "log", "merge", "pull", "push", "reflog", "remote", "reset", "restore", "rev-parse", "shortlog",
    "show", "stash", "status", "switch", "tag",
];

/// Options of theirs that execute nothing and write no file, without their values.
#[rustfmt::skip]
const OPTIONS: &[&str] = &[
    "--abbrev-commit", "--all", "--amend", "--branch", "--cached", "--color", "--date",
    "--date-order", "--decorate", "--first-parent", "--follow", "--force-with-lease", "--format",
    "--graph", "--hard", "--ignore-all-space", "--max-count", "--merges", "--name-only",
    "--name-status", "--no-edit", "--no-ff", "--no-merges", "--oneline", "--patch", "--porcelain",
    "--pretty", "--prune", "--rebase", "--set-upstream", "--short", "--show-current", "--soft",
    "--sort", "--staged", "--stat", "--tags", "--topo-order", "--verbose", "--word-diff",
    "-a", "-am", "-b", "-m", "-u", "-v", "-vv", "-p",
];

/// Whether git runs nothing for a setting that it would not run without it.
fn is_harmless(entry: &ConfigEntry, scene: &Scene<'_>) -> bool {
    let value = entry.value.as_deref().unwrap_or_default();
    let name = entry.name();
    match name.as_str() {
        // A switch turns on git's own.
        "core.fsmonitor" => is_switch(value),
        // Where attributes and hooks are looked for: those below the grants are looked at.
        "core.worktree" => (scene.inside)(scene.directory, Path::new(value)).is_some(),
        // Options, of which one names a strategy.
        "branch.mergeoptions" => false,
        "submodule.update" => ["checkout", "rebase", "merge", "none"].contains(&value),
        _ if entry.section == "alias" => is_plain_alias(value),
        // A switch of the pager names none.
        _ if entry.section == "pager" => is_switch(value),
        _ if LFS.contains(&(name.as_str(), value)) => entry.subsection.as_deref() == Some("lfs"),
        _ => {
            let is_known =
                SECTIONS.contains(&entry.section.as_str()) || HARMLESS.contains(&name.as_str());
            is_known && !is_helper(value) && !value.starts_with('-')
        }
    }
}

/// Whether an alias stands for a command of git's with nothing that is run.
fn is_plain_alias(value: &str) -> bool {
    let mut words = value.split_ascii_whitespace();
    let command = words.next().unwrap_or_default();
    let is_status = command == "status";
    let is_word = |word: &str| {
        let option = word.split('=').next().unwrap_or(word);
        let is_count = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
        match option.strip_prefix('-') {
            // To others this names a strategy, which is a program.
            Some("s" | "sb") => is_status,
            Some(rest) => OPTIONS.contains(&option) || is_count(rest),
            None => !word.contains("::"),
        }
    };
    // git takes quotes and backslashes away before it looks at words.
    let is_quoted = value.contains(['\'', '"', '\\']);
    COMMANDS.contains(&command) && !is_quoted && words.all(is_word)
}

/// Whether a URL names the program that transports it (gitremote-helpers(7)): `ext::sh -c x`.
fn is_helper(url: &str) -> bool {
    let is_name = |name: &str| {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"+-._".contains(&byte);
        !name.is_empty() && name.bytes().all(is_plain)
    };
    url.split_once("::").is_some_and(|(name, _)| is_name(name))
}

fn is_switch(value: &str) -> bool {
    let small = value.to_ascii_lowercase();
    ["", "true", "false", "yes", "no", "on", "off", "0", "1"].contains(&small.as_str())
}

/// Settings that may execute, each as a line; nothing where git could not read the text,
/// either.
pub(super) fn executing(text: &str, scene: &Scene<'_>) -> Option<Vec<String>> {
    let entries = parse(text).ok()?;
    Some(
        entries
            .iter()
            .filter(|entry| !is_harmless(entry, scene))
            .map(line)
            .collect(),
    )
}

fn line(entry: &ConfigEntry) -> String {
    let subsection = entry.subsection.as_deref();
    let between = subsection
        .map(|name| format!(".{name}"))
        .unwrap_or_default();
    let value = entry.value.as_deref().unwrap_or_default();
    format!("{}{between}.{} = {value}", entry.section, entry.key)
}

/// Drivers that a text defines: `filter.x`, `diff.x`, `merge.x`.
pub(in crate::leftovers) fn drivers(text: &str) -> Vec<String> {
    let defines = |entry: &ConfigEntry| {
        let keys = [
            "clean", "smudge", "process", "command", "textconv", "driver",
        ];
        let sections = ["filter", "diff", "merge"];
        let subsection = entry.subsection.as_deref()?;
        let is_driver =
            sections.contains(&entry.section.as_str()) && keys.contains(&entry.key.as_str());
        // What git-lfs sets up for itself everywhere.
        let is_lfs = subsection == "lfs"
            && entry
                .value
                .as_deref()
                .is_some_and(|value| value.starts_with("git-lfs "));
        (is_driver && !is_lfs).then(|| format!("{}.{subsection}", entry.section))
    };
    parse(text)
        .unwrap_or_default()
        .iter()
        .filter_map(defines)
        .collect()
}

/// The directory that a `.git` file or a `commondir` names (gitrepository-layout(5)).
pub(in crate::leftovers) fn pointed(text: &str) -> &str {
    let named = text.strip_prefix("gitdir: ").unwrap_or(text);
    named.trim_end_matches(['\n', '\r'])
}

/// The directories of hooks that a text names, as they are written.
pub(in crate::leftovers) fn hooks_paths(text: &str) -> Vec<String> {
    let is_it =
        |entry: &ConfigEntry| entry.subsection.is_none() && entry.name() == "core.hookspath";
    values(text, is_it)
}

/// The files of further settings that a text names, on whatever condition.
pub(in crate::leftovers) fn includes(text: &str) -> Vec<String> {
    values(text, |entry| {
        entry.name() == "include.path" || entry.name() == "includeif.path"
    })
}

/// The work trees that a text names.
pub(in crate::leftovers) fn work_trees(text: &str) -> Vec<String> {
    values(text, |entry| entry.name() == "core.worktree")
}

/// The files of attributes that a text names.
pub(in crate::leftovers) fn attributes_files(text: &str) -> Vec<String> {
    values(text, |entry| entry.name() == "core.attributesfile")
}

/// Words of settings that execute which look like paths: files of the work tree among them are
/// what is executed.
pub(in crate::leftovers) fn programs(text: &str, scene: &Scene<'_>) -> Vec<String> {
    let is_path = |letter: char| letter.is_alphanumeric() || "._/~+@-".contains(letter);
    let is_followed = |entry: &ConfigEntry| {
        let sections = ["include", "includeif", "url", "credential"];
        let keys = ["core.hookspath", "core.attributesfile"];
        sections.contains(&entry.section.as_str()) || keys.contains(&entry.name().as_str())
    };
    let wanted = |entry: &ConfigEntry| !is_followed(entry) && !is_harmless(entry, scene);
    let values = values(text, wanted).into_iter();
    let words = values.flat_map(|value| {
        let words = value.split(|letter| !is_path(letter));
        words.map(str::to_owned).collect::<Vec<_>>()
    });
    // The shell looks for other words among programs.
    let mut words: Vec<String> = words.filter(|word| word.contains(['/', '.'])).collect();
    words.sort();
    words.dedup();
    words
}

fn values(text: &str, is_it: impl Fn(&ConfigEntry) -> bool) -> Vec<String> {
    let entries = parse(text).unwrap_or_default();
    let named = entries.into_iter().filter(is_it);
    named.filter_map(|entry| entry.value).collect()
}

/// A path as git reads it from settings ("pathname" in git-config(1)): with the home
/// directory, or another account's, in the place of `~`. Nothing where nobody knows it.
pub(in crate::leftovers) fn expanded(value: &str, home: Option<&Path>) -> Option<PathBuf> {
    let value = value.strip_prefix(":(optional)").unwrap_or(value);
    let Some(rest) = value.strip_prefix('~') else {
        return Some(PathBuf::from(value));
    };
    let (name, below) = rest.split_once('/').unwrap_or((rest, ""));
    let home = if name.is_empty() {
        home.map(Path::to_owned)
    } else {
        home_of(name)
    };
    Some(home?.join(below))
}

/// Lines of attributes that hand files to a driver that somebody defined.
pub(super) fn driven(text: &str, drivers: &Drivers) -> Vec<String> {
    let hands = |line: &&str| {
        let mut words = line.split_ascii_whitespace();
        words.any(|word| {
            word.split_once('=')
                .is_some_and(|(name, value)| drivers.contains(&format!("{name}.{value}")))
        })
    };
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.filter(hands).map(str::to_owned).collect()
}

/// First words of the steps of a rebase, a cherry-pick or a revert that run nothing
/// (git-rebase(1), "Interactive mode").
const STEPS: [&str; 24] = [
    "pick",
    "p",
    "reword",
    "r",
    "edit",
    "e",
    "squash",
    "s",
    "fixup",
    "f",
    "drop",
    "d",
    "label",
    "l",
    "reset",
    "t",
    "merge",
    "m",
    "update-ref",
    "u",
    "break",
    "b",
    "noop",
    "revert",
];

/// The steps that execute something, or that this does not know.
pub(super) fn executed_steps(text: &str) -> Vec<String> {
    let lines = text.lines().map(str::trim);
    let is_told = |line: &&str| {
        let word = line.split_whitespace().next().unwrap_or_default();
        !word.is_empty() && !word.starts_with('#') && !STEPS.contains(&word)
    };
    lines.filter(is_told).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Settings, and how many of them may execute.
    const ROWS: &[(&str, usize)] = &[
        (
            "[alias]\na = log \\\\-\\\\-output=x\nb = merge -s x\nc = status -s\nd = merge -sx\n",
            3,
        ),
        ("[branch \"b\"]\nmergeOptions = \"\\\"-s\\\" x\"\n", 1),
        ("[core]\nfsmonitor = true\n", 0),
        ("[core]\nfsmonitor = /tmp/x\n", 1),
        ("[core]\nHooksPath = x\n", 1),
        ("[core]\nworktree = ../x\nbare = false\n", 0),
        ("[core]\nworktree = ../../../x\n", 1),
        ("[core]\nunheardof = x\n[unheard]\nof = x\n", 2),
        (
            "[alias]\nst = status\nco = checkout -b\nl = log -10 --pretty=oneline\n",
            0,
        ),
        ("[alias]\nst = !sh\n", 1),
        (
            "[alias]\na = submodule foreach x\nb = --exec-path=x y\nc = -c core.pager=x log\n",
            3,
        ),
        (
            "[alias]\na = difftool -x y\nb = log --output=x\nc = fetch ext::sh\nd = rebase -x y\n",
            4,
        ),
        (
            "[gc]\nrecentObjectsHook = x\nauto = 0\n[svn]\nauthorsprog = x\n",
            2,
        ),
        (
            "[branch \"b\"]\nremote = ext::sh\nvscode-merge-base = o/m\n",
            1,
        ),
        (
            "[pull]\ntwohead = x\nrebase = true\n[merge]\ntool = ../x\n",
            2,
        ),
        (
            "[filter \"lfs\"]\nclean = git-lfs clean -- %f\nrequired = true\n",
            0,
        ),
        ("[filter \"lfs\"]\nclean = git-lfs clean; x\n", 1),
        ("[alias \"st\"]\ncommand = !sh\n", 1),
        (
            "[remote \"o\"]\nurl = https://h.test/x\nfetch = +refs/*:refs/*\n",
            0,
        ),
        ("[remote \"o\"]\nurl = ext::sh -c x\n", 1),
        ("[remote \"o\"]\nurl = ssh://git@[::1]/x\n", 0),
        ("[remote \"o\"]\nuploadpack = x\n", 1),
        ("[branch \"b\"]\nremote = o\nmerge = refs/heads/b\n", 0),
        ("[filter \"x\"]\nsmudge = x\nrequired = true\n", 1),
        ("[filter.x]\nclean = x\n", 1),
        ("[diff \"x\"]\ntextconv = x\nbinary = true\n", 1),
        ("[merge \"x\"]\nname = x\ndriver = x\n", 1),
        (
            "[include]\npath = x\n[includeIf \"gitdir:x\"]\npath = y\n",
            2,
        ),
        (
            "[url \"https://e.test/\"]\ninsteadOf = https://g.test/\n",
            1,
        ),
        ("[credential \"https://h.test\"]\nhelper = x\n", 1),
        ("[gpg \"ssh\"]\nprogram = x\nallowedSignersFile = y\n", 1),
        ("[pager]\nlog = false\n", 0),
        ("[pager]\nlog = sh\n", 1),
        ("[submodule \"a\"]\nactive = true\nurl = ../a\n", 0),
        ("[user]\nname = Ada\n[commit]\ngpgsign = true\n", 0),
    ];

    #[test]
    fn settings_that_execute_are_told_from_those_beside_them() {
        let drivers = Drivers::new();
        let scene = super::super::tests::scene(&drivers);
        for (text, count) in ROWS {
            assert_eq!(executing(text, &scene).unwrap().len(), *count, "{text}");
        }
        assert_eq!(executing("[core\n", &scene), None);
    }

    #[test]
    fn a_path_is_expanded_as_git_does_it() {
        let home = Path::new("/home/u");
        for (value, expected) in [
            ("a/b", Some("a/b")),
            ("/a", Some("/a")),
            ("~/a", Some("/home/u/a")),
            ("~", Some("/home/u/")),
            (":(optional)~/a", Some("/home/u/a")),
            ("~nobody-of-this-name/a", None),
        ] {
            let found = expanded(value, Some(home));
            assert_eq!(found, expected.map(PathBuf::from), "{value}");
        }
        let administrator = home_of("root").unwrap();
        assert_eq!(expanded("~root/a", None), Some(administrator.join("a")));
    }
}
