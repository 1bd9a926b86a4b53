//! Which settings of git execute a program, or have it read settings elsewhere (git-config(1)),
//! and which attributes hand files to one (gitattributes(5)). Pure.

use super::Drivers;
use crate::git::syntax::{Entry, parse};

/// Settings by section and key, whatever the subsection; `*` is any key.
#[rustfmt::skip]
const EXECUTING: &[&str] = &[
    "core.hookspath", "core.sshcommand", "core.pager", "core.editor", "core.askpass",
    "core.gitproxy", "core.alternaterefscommand", "core.attributesfile", "sequence.editor",
    "interactive.difffilter", "pager.*", "filter.clean", "filter.smudge", "filter.process",
    "diff.external", "diff.command", "diff.textconv", "merge.driver", "mergetool.cmd",
    "mergetool.path", "difftool.cmd", "difftool.path", "include.path", "includeif.path",
    "url.insteadof", "url.pushinsteadof", "credential.helper", "gpg.program",
    "gpg.defaultkeycommand", "remote.uploadpack", "remote.receivepack", "remote.vcs",
    "remote.proxy", "http.proxy", "uploadpack.packobjectshook", "web.browser", "browser.cmd",
    "browser.path", "man.cmd", "man.path", "help.browser", "sendemail.smtpserver",
    "sendemail.sendmailcmd", "sendemail.tocmd", "sendemail.cccmd", "sendemail.headercmd",
    "instaweb.httpd", "instaweb.browser", "imap.tunnel", "guitool.cmd",
    "trailer.command", "trailer.cmd", "tar.command", "protocol.allow", "init.templatedir",
    "hook.command", "customtransfer.path", "lfs.path", "lfs.clean", "lfs.smudge",
    "gui.editor", "receive.procreceiverefs",
    "submodule.update",
    "bisect.run", "annex.*",
];

/// Those that only execute with a value of some form.
fn executes(entry: &Entry) -> bool {
    let value = entry.value.as_deref().unwrap_or_default();
    let name = entry.name();
    match name.as_str() {
        // A switch turns on git's own.
        "core.fsmonitor" => !is_switch(value),
        "submodule.update" => value.starts_with('!'),
        _ if entry.section == "alias" => value.starts_with('!'),
        "remote.url" | "remote.pushurl" => is_helper(value) || value.starts_with('-'),
        // A switch of the pager names none.
        _ if entry.section == "pager" => !is_switch(value),
        "diff.external" if entry.subsection.is_some() => false,
        _ => {
            let any = format!("{}.*", entry.section);
            EXECUTING.contains(&name.as_str()) || EXECUTING.contains(&any.as_str())
        }
    }
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

/// Settings that execute, each as a line; nothing where git could not read the text, either.
pub(super) fn executing(text: &str) -> Option<Vec<String>> {
    let entries = parse(text).ok()?;
    Some(
        entries
            .iter()
            .filter(|entry| executes(entry))
            .map(line)
            .collect(),
    )
}

fn line(entry: &Entry) -> String {
    let subsection = entry.subsection.as_deref();
    let between = subsection
        .map(|name| format!(".{name}"))
        .unwrap_or_default();
    let value = entry.value.as_deref().unwrap_or_default();
    format!("{}{between}.{} = {value}", entry.section, entry.key)
}

/// Drivers that a text defines: `filter.x`, `diff.x`, `merge.x`.
pub(in crate::leftovers) fn drivers(text: &str) -> Vec<String> {
    let defines = |entry: &Entry| {
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

/// The directories of hooks that a text names, as they are written.
pub(in crate::leftovers) fn hooks_paths(text: &str) -> Vec<String> {
    let entries = parse(text).unwrap_or_default();
    let named = entries
        .into_iter()
        .filter(|entry| entry.subsection.is_none() && entry.name() == "core.hookspath");
    named.filter_map(|entry| entry.value).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_execute_are_told_from_those_beside_them() {
        for (text, count) in [
            ("[core]\nfsmonitor = true\n", 0),
            ("[core]\nfsmonitor = /tmp/x\n", 1),
            ("[core]\nHooksPath = x\n", 1),
            ("[core]\nworktree = ../x\nbare = false\n", 0),
            ("[alias]\nst = status\n", 0),
            ("[alias]\nst = !sh\n", 1),
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
        ] {
            assert_eq!(executing(text).unwrap().len(), count, "{text}");
        }
        assert_eq!(executing("[core\n"), None);
    }
}
