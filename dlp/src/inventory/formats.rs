//! Files of lines: netrc, npmrc, stored credentials of git, pypirc, pip.conf,
//! the credentials file of AWS, and plain lists.

use super::lines::settings;
use super::{HeldValues, host_of, password_of};
use crate::detector::Registry;
use crate::secret::SecretBytes;
use crate::validate::base64;

/// netrc(5): words `machine NAME`, `login NAME`, `password WORD`.
pub(super) fn netrc(text: &str, into: &mut HeldValues<'_>) {
    let mut words = text.split_ascii_whitespace();
    let mut machine = "";
    while let Some(word) = words.next() {
        match word {
            "machine" => machine = words.next().unwrap_or_default(),
            "default" => machine = "",
            "password" => {
                if let Some(password) = words.next() {
                    into.add(super::lines::unquoted(password), &[machine]);
                }
            }
            "login" | "account" => drop(words.next()),
            _ => {}
        }
    }
}

/// `//host/path/:_authToken=…`, `_password` in base 64, `_auth` for all.
pub(super) fn npmrc(text: &str, into: &mut HeldValues<'_>) {
    let mut main = "";
    for setting in settings(text, &['=']) {
        if setting.key == "registry" || setting.key.ends_with(":registry") {
            into.registry(Registry::Npm, setting.value);
            if setting.key == "registry" {
                main = setting.value;
            }
        }
    }
    for setting in settings(text, &['=']) {
        let (place, name) = setting.key.rsplit_once(':').unwrap_or((main, setting.key));
        match name {
            "_authToken" => into.add(setting.value, &[place]),
            "_auth" => pair(setting.value, place, into),
            "_password" => {
                into.add(setting.value, &[place]);
                if let Some(password) = base64::decode(setting.value.as_bytes()) {
                    into.bytes(password, &[place]);
                }
            }
            _ => continue,
        }
        into.registry(Registry::Npm, place);
    }
}

/// Base 64 of `name:password`: the whole, and the password.
pub(super) fn pair(text: &str, host: &str, into: &mut HeldValues<'_>) {
    into.add(text, &[host]);
    let bytes = SecretBytes::new(base64::decode(text.as_bytes()).unwrap_or_default());
    let bytes = bytes.expose();
    let colon = bytes.iter().position(|byte| *byte == b':');
    let password = colon.and_then(|colon| bytes.get(colon.saturating_add(1)..));
    if let Some(password) = password {
        into.bytes(password.to_vec(), &[host]);
    }
}

/// A URL with a password on each line.
pub(super) fn git_credentials(text: &str, into: &mut HeldValues<'_>) {
    for line in text.lines().map(str::trim) {
        if let Some(password) = password_of(line) {
            into.bytes(password, &[line]);
        }
    }
}

/// Sections with `repository`, `username` and `password`.
pub(super) fn pypirc(text: &str, into: &mut HeldValues<'_>) {
    let all = || settings(text, &['=', ':']);
    for setting in all().filter(|setting| setting.key == "password") {
        let same = |other: &super::lines::LineSetting<'_>| {
            other.section == setting.section && other.key == "repository"
        };
        let repository = all()
            .find(same)
            .map(|other| other.value)
            .unwrap_or_default();
        into.add(setting.value, &[repository]);
    }
    for setting in all().filter(|setting| setting.key == "repository") {
        into.registry(Registry::Pypi, setting.value);
    }
}

/// `index-url` and its kin, with passwords in them.
pub(super) fn pip_conf(text: &str, into: &mut HeldValues<'_>) {
    let mut is_index = false;
    for line in text.lines() {
        let mut value = line.trim();
        if let Some((key, rest)) = line
            .split_once('=')
            .filter(|_| !line.starts_with([' ', '\t']))
        {
            is_index = key.trim().ends_with("index-url") || key.trim() == "find-links";
            value = rest.trim();
        }
        // Further indexes follow on lines of their own.
        if is_index && value.contains("://") {
            into.registry(Registry::Pypi, value);
            if let Some(password) = password_of(value) {
                into.bytes(password, &[value]);
            }
        }
    }
}

/// Secret keys, which are never sent, and session tokens, which are.
pub(super) fn aws(text: &str, into: &mut HeldValues<'_>) {
    const HOSTS: [&str; 3] = ["*.amazonaws.com", "*.amazonaws.com.cn", "*.api.aws"];
    for setting in settings(text, &['=']) {
        match setting.key.to_ascii_lowercase().as_str() {
            "aws_secret_access_key" => into.kept(setting.value.as_bytes()),
            "aws_session_token" | "aws_security_token" => into.add(setting.value, &HOSTS),
            _ => {}
        }
    }
}

/// A value on each line; hosts behind ` -> `.
pub(super) fn list(text: &str, into: &mut HeldValues<'_>) {
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (value, hosts) = line.rsplit_once(" -> ").unwrap_or((line, ""));
        let hosts: Vec<&str> = hosts
            .split([' ', ','])
            .filter(|host| host_of(host).is_some())
            .collect();
        let label = format!("{}:{}", into.label, number.saturating_add(1));
        into.labelled(label, value.trim().as_bytes().to_vec(), &hosts);
    }
}
