//! The environment of the command: a map in, a map out. Convenience, never
//! enforcement: what is set here only makes programs take the ways that exist.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

use outgate_policy::Environment;

/// Variables that point at a proxy: there is none, and programs that find one
/// would not resolve names or would talk to it instead of the destination.
const PROXY_VARIABLES: [&str; 10] = [
    "http_proxy",
    "https_proxy",
    "ftp_proxy",
    "all_proxy",
    "no_proxy",
    "ws_proxy",
    "wss_proxy",
    "rsync_proxy",
    "socks_proxy",
    // With it go credentials that are the gateway's alone.
    outgate_policy::UPSTREAM_PROXY,
];

/// Makes the C library, c-ares and what builds on them ask DNS over TCP
/// (resolv.conf(5)).
const RESOLVER_OPTION: &str = "use-vc";

/// Variables as the command gets them.
pub type Variables = BTreeMap<OsString, OsString>;

/// Builds the command's environment from the caller's, the policy, and what the
/// command line sets, which is the last word.
pub fn build(
    caller: Variables,
    policy: &Environment,
    set: &Variables,
    private_directory: &OsStr,
) -> Variables {
    let mut variables = caller;
    if let Some(pass) = &policy.pass {
        variables.retain(|name, _| pass.iter().any(|allowed| name == allowed.as_str()));
    }
    variables.retain(|name, _| !is_proxy(name));
    for (name, value) in &policy.set {
        variables.insert(name.into(), value.into());
    }
    variables.extend(set.clone());
    let options = variables.entry("RES_OPTIONS".into()).or_default();
    let known = options
        .to_string_lossy()
        .split_whitespace()
        .any(|option| option == RESOLVER_OPTION);
    if !known {
        if !options.is_empty() {
            options.push(" ");
        }
        options.push(RESOLVER_OPTION);
    }
    if !private_directory.is_empty() {
        for name in ["TMPDIR", "TMP", "TEMP"] {
            variables.insert(name.into(), private_directory.to_owned());
        }
        if variables.contains_key(OsStr::new("XDG_RUNTIME_DIR")) {
            variables.insert("XDG_RUNTIME_DIR".into(), private_directory.to_owned());
        }
    }
    variables
}

fn is_proxy(name: &OsStr) -> bool {
    PROXY_VARIABLES
        .iter()
        .any(|proxy| name.eq_ignore_ascii_case(proxy))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(rows: &[(&str, &str)]) -> Variables {
        rows.iter()
            .map(|(n, v)| ((*n).into(), (*v).into()))
            .collect()
    }

    #[test]
    fn proxies_go_and_the_resolver_option_is_appended() {
        let caller = variables(&[
            ("HTTPS_PROXY", "http://192.0.2.1:3128"),
            ("OUTGATE_UPSTREAM_PROXY", "http://me:pw@192.0.2.1:3128"),
            ("no_proxy", "*"),
            ("RES_OPTIONS", "timeout:1"),
            ("HOME", "/home/u"),
            ("TMPDIR", "/var/tmp"),
        ]);
        let nothing = Variables::new();
        let built = build(
            caller,
            &Environment::default(),
            &nothing,
            OsStr::new("/tmp/p"),
        );
        let expected = variables(&[
            ("HOME", "/home/u"),
            ("RES_OPTIONS", "timeout:1 use-vc"),
            ("TMPDIR", "/tmp/p"),
            ("TMP", "/tmp/p"),
            ("TEMP", "/tmp/p"),
        ]);
        assert_eq!(built, expected);
        let again = build(
            built.clone(),
            &Environment::default(),
            &nothing,
            OsStr::new("/tmp/p"),
        );
        assert_eq!(again, built);
    }

    #[test]
    fn only_what_is_passed_is_inherited_and_what_is_set_is_there() {
        let policy = Environment {
            pass: Some(vec!["HOME".to_owned()]),
            set: [("CI".to_owned(), "1".to_owned())].into(),
        };
        let caller = variables(&[("HOME", "/h"), ("SECRET", "x")]);
        let set = variables(&[("SET", "2"), ("https_proxy", "http://192.0.2.1")]);
        let built = build(caller, &policy, &set, OsStr::new(""));
        let expected = variables(&[
            ("HOME", "/h"),
            ("CI", "1"),
            ("SET", "2"),
            ("https_proxy", "http://192.0.2.1"),
            ("RES_OPTIONS", "use-vc"),
        ]);
        assert_eq!(built, expected);
    }
}
