//! Each format with a sample as its program writes it, and broken ones.

mod signs;

use super::{Format, Inventory, environment, read};
use crate::detector::Registry;
use crate::validate::base64;

fn values(inventory: &Inventory) -> Vec<(String, Vec<&str>)> {
    let text = |holding: &super::Holding| {
        let value = String::from_utf8_lossy(holding.value.expose()).into_owned();
        let hosts = &holding.hosts;
        (value, hosts.len())
    };
    inventory
        .values
        .iter()
        .map(|holding| {
            (
                text(holding).0,
                holding.hosts.iter().map(String::as_str).collect(),
            )
        })
        .collect()
}

#[track_caller]
fn check(format: Format, text: &str, expected: &[(&str, &[&str])]) {
    let inventory = read(format, "file", text.as_bytes());
    let found = values(&inventory);
    let expected: Vec<(String, Vec<&str>)> = expected
        .iter()
        .map(|(value, hosts)| ((*value).to_owned(), hosts.to_vec()))
        .collect();
    assert_eq!(found, expected);
    assert!(
        inventory
            .values
            .iter()
            .all(|holding| holding.label.starts_with("file"))
    );
}

#[test]
fn netrc_binds_a_password_to_its_machine() {
    check(
        Format::Netrc,
        "# comment\nmachine api.example.org\n  login bob\n  password kV8pq2Lm\nmachine b.example.org login password password zz99\ndefault login x password anon-9\n",
        &[
            ("kV8pq2Lm", &["api.example.org"]),
            ("zz99", &["b.example.org"]),
            ("anon-9", &[]),
        ],
    );
}

#[test]
fn npmrc_binds_a_token_to_its_registry() {
    let text = "registry=https://Packages.Example.org/npm/\n@acme:registry=https://acme.example.net:8443/\n//packages.example.org/npm/:_authToken=kV8pq2LmzzR41x\n//acme.example.net:8443/:_password=cGFzcy13b3JkLTk=\n//x.example/:_authToken=${NPM_TOKEN}\n_auth=Ym9iOmtWOHBxMkxt\n; comment\nalways-auth=true\n";
    check(
        Format::Npmrc,
        text,
        &[
            ("kV8pq2LmzzR41x", &["packages.example.org"]),
            ("cGFzcy13b3JkLTk=", &["acme.example.net"]),
            ("pass-word-9", &["acme.example.net"]),
            ("Ym9iOmtWOHBxMkxt", &["packages.example.org"]),
            ("kV8pq2Lm", &["packages.example.org"]),
        ],
    );
    let found = read(Format::Npmrc, "file", text.as_bytes()).registries;
    assert_eq!(
        found,
        [
            (Registry::Npm, "packages.example.org".to_owned()),
            (Registry::Npm, "acme.example.net".to_owned()),
            (Registry::Npm, "x.example".to_owned()),
        ]
    );
}

#[test]
fn git_credentials_are_urls() {
    check(
        Format::GitCredentials,
        "https://bob:p%40ss%2Fword9@git.example.org\nhttps://git.example.org\nnonsense\n",
        &[("p@ss/word9", &["git.example.org"])],
    );
}

#[test]
fn hosts_files_bind_a_token_to_the_host_above_it() {
    check(
        Format::Hosts,
        "github.com:\n    users:\n        bob:\n            oauth_token: gho_kV8pq2Lm\n    git_protocol: https\n    oauth_token: gho_kV8pq2Lm\n    user: bob\ngit.example.org:\n    oauth_token: \"tok-99-zz\"\n",
        &[
            (
                "gho_kV8pq2Lm",
                &[
                    "github.com",
                    "*.github.com",
                    "*.githubcopilot.com",
                    "ghcr.io",
                    "*.pkg.github.com",
                    "github.com",
                    "*.github.com",
                    "*.githubcopilot.com",
                    "ghcr.io",
                    "*.pkg.github.com",
                ],
            ),
            ("tok-99-zz", &["git.example.org", "*.git.example.org"]),
        ],
    );
    check(
        Format::Hosts,
        "hosts:\n    gitlab.com:\n        token: glpat-kV8pq2Lm # new\n        api_host: gitlab.com\n",
        &[("glpat-kV8pq2Lm # new", &["gitlab.com", "*.gitlab.com"])],
    );
}

#[test]
fn cargo_says_tokens_in_one_file_and_hosts_in_the_other() {
    check(
        Format::CargoCredentials,
        "[registry]\ntoken = \"cio-kV8pq2Lm\"\n[registries.acme]\ntoken = \"Bearer zz99\"\n",
        &[("Bearer zz99", &[]), ("cio-kV8pq2Lm", &[])],
    );
    let text = "[registries.acme]\nindex = \"sparse+https://index.example.org/cargo/\"\n[source.mirror]\nregistry = \"https://bob:kV8pq2Lm@mirror.example.org/\"\n[build]\njobs = 2\n";
    let found = read(Format::CargoConfig, "file", text.as_bytes());
    let hosts: Vec<&str> = found
        .registries
        .iter()
        .map(|(_, host)| host.as_str())
        .collect();
    assert_eq!(hosts, ["index.example.org", "mirror.example.org"]);
    assert_eq!(
        values(&found),
        [("kV8pq2Lm".to_owned(), vec!["mirror.example.org"])]
    );
}

#[test]
fn python_says_both_in_one() {
    check(
        Format::Pypirc,
        "[distutils]\nindex-servers =\n    acme\n[acme]\nrepository = https://up.example.org/legacy/\nusername = __token__\npassword = pypi-kV8pq2Lm\n[other]\npassword: zz99zz\n",
        &[("pypi-kV8pq2Lm", &["up.example.org"]), ("zz99zz", &[])],
    );
    let text = "[global]\nindex-url = https://bob:kV8pq2Lm@index.example.org/simple\nextra-index-url =\n    https://more.example.org/simple\n    https://third.example.org/simple\ntimeout = 3\n";
    let found = read(Format::PipConf, "file", text.as_bytes());
    let hosts: Vec<&str> = found
        .registries
        .iter()
        .map(|(_, host)| host.as_str())
        .collect();
    assert_eq!(
        hosts,
        ["index.example.org", "more.example.org", "third.example.org"]
    );
    assert_eq!(
        values(&found),
        [("kV8pq2Lm".to_owned(), vec!["index.example.org"])]
    );
}

#[test]
fn docker_holds_pairs_and_tokens() {
    check(
        Format::Docker,
        r#"{"auths":{"images.example.org:5000":{"auth":"Ym9iOmtWOHBxMkxt"},"https://b.example.org/v1/":{"identitytoken":"tok-99-zz"}},"credsStore":"x"}"#,
        &[
            ("tok-99-zz", &["b.example.org"]),
            ("Ym9iOmtWOHBxMkxt", &["images.example.org"]),
            ("kV8pq2Lm", &["images.example.org"]),
        ],
    );
}

#[test]
fn clouds_hold_keys_that_are_never_sent_and_tokens_that_are() {
    check(
        Format::Aws,
        "[default]\naws_access_key_id = AKIAXXXXXXXXXXXXXXXX\naws_secret_access_key = kV8pq2LmzzR41xQw7\naws_session_token=IQoJb3Jp\n",
        &[
            ("kV8pq2LmzzR41xQw7", &[]),
            (
                "IQoJb3Jp",
                &["*.amazonaws.com", "*.amazonaws.com.cn", "*.api.aws"],
            ),
        ],
    );
    check(
        Format::Google,
        r#"{"client_id":"1.apps","client_secret":"d-9zz","refresh_token":"1//0kV8pq","type":"authorized_user"}"#,
        &[
            (
                "1//0kV8pq",
                &["oauth2.googleapis.com", "accounts.google.com"],
            ),
            ("d-9zz", &["oauth2.googleapis.com", "accounts.google.com"]),
        ],
    );
    check(
        Format::Azure,
        r#"{"AccessToken":{"x":{"secret":"eyJ0kV8","target":"https://management.azure.com/.default offline"}},"RefreshToken":{"y":{"secret":"0.AXzz"}}}"#,
        &[
            (
                "eyJ0kV8",
                &[
                    "login.microsoftonline.com",
                    "login.microsoftonline.us",
                    "login.windows.net",
                    "management.azure.com",
                ],
            ),
            (
                "0.AXzz",
                &[
                    "login.microsoftonline.com",
                    "login.microsoftonline.us",
                    "login.windows.net",
                ],
            ),
        ],
    );
}

#[test]
fn a_kubeconfig_binds_users_to_its_servers() {
    check(
        Format::Kubeconfig,
        "apiVersion: v1\nclusters:\n- cluster:\n    certificate-authority-data: LS0t\n    server: https://k8s.example.org:6443\n  name: a\nusers:\n- name: bob\n  user:\n    token: kV8pq2LmzzR41x\n- name: eve\n  user:\n    client-key-data: a2V5LWtleS1rZXk=\n",
        &[
            ("kV8pq2LmzzR41x", &["k8s.example.org"]),
            ("a2V5LWtleS1rZXk=", &[]),
        ],
    );
}

/// A string of the format of OpenSSH.
fn string(bytes: &[u8]) -> Vec<u8> {
    let length = u32::try_from(bytes.len()).expect("short");
    [&length.to_be_bytes()[..], bytes].concat()
}

fn pem(label: &str, bytes: &[u8]) -> String {
    let text = String::from_utf8(base64::encode(bytes, base64::STANDARD)).expect("text");
    let lines: Vec<&str> = text
        .as_bytes()
        .chunks(70)
        .map(|line| std::str::from_utf8(line).expect("text"))
        .collect();
    format!(
        "-----BEGIN {label}-----\n{}\n-----END {label}-----\n",
        lines.join("\n")
    )
}

#[test]
fn of_a_key_only_the_private_part_is_a_secret() {
    let public = [b'P'; 32];
    let seed: Vec<u8> = crate::detector_sample::SampleDice::new(3).bytes(32);
    let private = [
        &[1, 2, 3, 4, 1, 2, 3, 4][..],
        &string(b"ssh-ed25519"),
        &string(&public),
        &string(&[&seed[..], &public].concat()),
        &string(b"bob@example"),
        &[1, 2, 3],
    ]
    .concat();
    let blob = [string(b"ssh-ed25519"), string(&public)].concat();
    let key = [
        &b"openssh-key-v1\0"[..],
        &string(b"none"),
        &string(b"none"),
        &string(b""),
        &1u32.to_be_bytes(),
        &string(&blob),
        &string(&private),
    ]
    .concat();
    let found = read(
        Format::PrivateKey,
        "file",
        pem("OPENSSH PRIVATE KEY", &key).as_bytes(),
    );
    assert_eq!(found.values.len(), 2, "its base 64 and its bytes");
    let bytes = found.values[1].value.expose();
    assert_eq!(bytes, seed, "the public half is not");
    let text = String::from_utf8_lossy(found.values[0].value.expose()).into_owned();
    let whole = String::from_utf8(base64::encode(&key, base64::STANDARD)).expect("text");
    assert!(whole.contains(&text) && text.len() > 40, "{text}");
    let none = read(
        Format::PrivateKey,
        "file",
        pem("PUBLIC KEY", &key).as_bytes(),
    );
    assert!(none.values.is_empty());
}

#[test]
fn of_a_short_key_in_der_only_its_number_is_a_secret() {
    let number: Vec<u8> = crate::detector_sample::SampleDice::new(4).bytes(32);
    let before = [0x30, 0x77, 0x02, 0x01, 0x01, 0x04, 0x20];
    let public = [&[0xa1, 0x44, 0x03, 0x42, 0x00, 0x04][..], &[b'P'; 64]].concat();
    let key = [&before[..], &number, &public].concat();
    let found = read(
        Format::PrivateKey,
        "file",
        pem("EC PRIVATE KEY", &key).as_bytes(),
    );
    let values: Vec<&[u8]> = found
        .values
        .iter()
        .map(|held| held.value.expose())
        .collect();
    assert_eq!(values.len(), 2);
    assert_eq!(values[1], number);
    let text = String::from_utf8_lossy(values[0]).into_owned();
    let whole = String::from_utf8(base64::encode(&key, base64::STANDARD)).expect("text");
    assert!(
        whole.contains(&text) && !text.ends_with("UFBQUFBQ"),
        "{text}"
    );
    // Cut off in the middle of the number, or without one: nothing ends here.
    for cut in [0, 7, 20, 38] {
        read(
            Format::PrivateKey,
            "file",
            pem("EC PRIVATE KEY", &key[..cut]).as_bytes(),
        );
    }
}

#[test]
fn lists_may_name_hosts() {
    check(
        Format::List,
        "# mine\nkV8pq2Lm zz -> api.example.org *.example.net\n\nplain-value-9\n",
        &[
            ("kV8pq2Lm zz", &["api.example.org", "*.example.net"]),
            ("plain-value-9", &[]),
        ],
    );
}

#[test]
fn dotenv_is_read_as_shells_read_it() {
    check(
        Format::Dotenv,
        "# x\nexport API_TOKEN='kV8 pq2Lm#z'\nDB_PASSWORD=zz99zz # old\nDATABASE_URL=postgres://app:w0rd-77@db.example.org/x\nDEBUG=true\nTOKEN_FILE=/run/token\nEMPTY_TOKEN=\n",
        &[
            ("kV8 pq2Lm#z", &[]),
            ("zz99zz", &[]),
            ("w0rd-77", &["db.example.org"]),
        ],
    );
}

#[test]
fn variables_are_told_by_their_names() {
    let found = environment(
        [
            ("GITHUB_TOKEN", "ghp_kV8pq2Lm"),
            ("ACME_API_KEY", "zz99zz"),
            ("NPM_CONFIG__AUTH", "Ym9iOnh4"),
            ("dbPassword", "w0rd-77"),
            ("SSHPASS", "w0rd-78"),
            ("COMPASS", "w0rd-79"),
            ("GIT_CONFIG_KEY_0", "safe.directory"),
            (
                "GIT_CONFIG_KEY_1",
                "url.https://kV8pq2LmZt7w@git.example.org/.insteadOf",
            ),
            ("PWD", "/home/bob"),
            ("OLDPWD", "/home/bob"),
            ("SSH_AUTH_SOCK", "/run/agent"),
            ("AWS_ACCESS_KEY_ID", "AKIAXXXX"),
            ("XAUTHORITY", "/home/bob/.Xauthority"),
            ("KEYBOARD", "de"),
            ("PUBLIC_KEY", "ssh-rsa-AAAA"),
            ("TOKEN_PATH", "x/y"),
            ("PATIENT", "bob"),
            (
                "PIP_INDEX_URL",
                "https://bob:inde-x9@index.example.org/simple",
            ),
        ]
        .into_iter(),
    );
    let labels: Vec<&str> = found
        .values
        .iter()
        .map(|holding| holding.label.as_str())
        .collect();
    assert_eq!(
        labels,
        [
            "$GITHUB_TOKEN",
            "$ACME_API_KEY",
            "$NPM_CONFIG__AUTH",
            "$dbPassword",
            "$SSHPASS",
            "$GIT_CONFIG_KEY_1",
            "$PIP_INDEX_URL"
        ]
    );
    assert!(found.values[0].hosts.contains(&"*.github.com".to_owned()));
    assert_eq!(found.values[6].hosts, ["index.example.org"]);
}
