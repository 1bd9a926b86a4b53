//! Values with signs in them, and what is plain.

use super::*;

#[test]
#[expect(clippy::too_many_lines, reason = "one table")]
fn a_secret_is_one_whatever_signs_are_in_it() {
    const VALUE: &str = "kVpq2LmzR41xQw7Tz9uYb3nB5tW9rLx2Kd7QvZ";
    let (first, second) = VALUE.split_at(17);
    for (name, text, expected) in [
        (
            "AWS_SECRET_ACCESS_KEY",
            format!("/{VALUE}"),
            format!("/{VALUE}"),
        ),
        (
            "AWS_SECRET_ACCESS_KEY",
            format!("/etc/{VALUE}"),
            format!("/etc/{VALUE}"),
        ),
        (
            "MY_SECRET",
            format!("/{first}/{second}"),
            format!("/{first}/{second}"),
        ),
        ("MY_SECRET", format!(".{VALUE}"), format!(".{VALUE}")),
        ("MY_SECRET", format!("~{VALUE}"), format!("~{VALUE}")),
        (
            "MY_SECRET",
            format!("{first} {second}"),
            format!("{first} {second}"),
        ),
        (
            "MY_SECRET",
            format!("{first}://{second}"),
            format!("{first}://{second}"),
        ),
        (
            "MY_SECRET",
            format!("{first}...{second}"),
            format!("{first}...{second}"),
        ),
        ("MY_SECRET", format!("${VALUE}"), format!("${VALUE}")),
        (
            "MY_SECRET",
            format!("{first}{{{second}}}"),
            format!("{first}{{{second}}}"),
        ),
        ("MY_AUTH", format!("Bearer {VALUE}"), VALUE.to_owned()),
        ("DB_PASS", VALUE.to_owned(), VALUE.to_owned()),
        ("ACME_JWT", VALUE.to_owned(), VALUE.to_owned()),
        ("CARD_PIN", VALUE.to_owned(), VALUE.to_owned()),
        ("HASH_SALT", VALUE.to_owned(), VALUE.to_owned()),
        ("SESSION_COOKIE", VALUE.to_owned(), VALUE.to_owned()),
        (
            "DB",
            format!("Server=db;User Id=sa;Password={VALUE};Encrypt=true"),
            VALUE.to_owned(),
        ),
        (
            "STORE",
            format!("AccountName=a;AccountKey={VALUE}==;Suffix=x"),
            format!("{VALUE}=="),
        ),
        (
            "DSN",
            format!("host=db user=app password='{VALUE}'"),
            VALUE.to_owned(),
        ),
        (
            "JDBC",
            format!("jdbc:x://db.example/a?user=b&password={VALUE}"),
            VALUE.to_owned(),
        ),
        (
            "HOOK",
            format!("https://hook.example/a?token={VALUE}"),
            VALUE.to_owned(),
        ),
        (
            "OTEL_EXPORTER_OTLP_HEADERS",
            format!("x-team=a,api-key={VALUE}"),
            VALUE.to_owned(),
        ),
        (
            "CURL_OPTIONS",
            format!("-sS -H 'Authorization: Bearer {VALUE}'"),
            VALUE.to_owned(),
        ),
        (
            "HEADERS",
            format!("Accept: a/b\nX-Api-Key: {VALUE}\nX-Other: c"),
            VALUE.to_owned(),
        ),
        (
            "SETTINGS",
            format!("{{\"db\": [{{\"user\": \"a\", \"password\": \"{VALUE}\"}}]}}"),
            VALUE.to_owned(),
        ),
        (
            "ACCOUNT",
            format!("{{\"clientSecret\":\"{VALUE}\"}}"),
            VALUE.to_owned(),
        ),
        (
            "REGISTRIES",
            format!("{{\"auths\":{{\"r.example.org\":{{\"identitytoken\":\"{VALUE}\"}}}}}}"),
            VALUE.to_owned(),
        ),
    ] {
        let found = environment(std::iter::once((name, text.as_str()))).values;
        let is_there =
            |holding: &crate::inventory::Holding| holding.value.expose() == expected.as_bytes();
        assert!(found.iter().any(is_there), "{name}={text}");
        assert!(
            crate::inventory::credential(name, &text).is_some(),
            "{name}={text}"
        );
    }
}

#[test]
fn an_ordinary_environment_holds_no_secret() {
    for (name, value) in [
        ("PATH", "/usr/local/bin:/usr/bin:/home/bob/.cargo/bin"),
        ("HOME", "/home/bob"),
        ("LANG", "en_US.UTF-8"),
        ("LS_COLORS", "rs=0:di=01;34:ln=01;36:mh=00:pi=40;33"),
        ("PS1", r"\[\e[32m\]\u@\h:\w\$ "),
        ("LESSOPEN", "| /usr/bin/lesspipe %s"),
        (
            "DBUS_SESSION_BUS_ADDRESS",
            "unix:path=/run/user/1000/bus,guid=3f9a2b10c4d5e6f7",
        ),
        ("XDG_SESSION_ID", "c2"),
        (
            "JAVA_OPTS",
            "-Xmx2g -Dfile.encoding=UTF-8 -Djavax.net.ssl.keyStore=/etc/ssl/a7.jks",
        ),
        ("SSH_ASKPASS", "/usr/libexec/openssh/ssh-askpass"),
        ("SUDO_ASKPASS", "/usr/bin/ksshaskpass"),
        ("SSL_KEY", "/etc/ssl/private/site-3f9a2b10c4d5.pem"),
        ("TLS_KEY", "./certs/kV8pq2LmzR41.key"),
        ("MAC_KEY", "/Users/bob/Library/key-7f3a9b2c1d"),
        ("NIX_KEY", "/nix/store/3h4k5l6m7n8p9q0r1s2t-keys/etc/key"),
        (
            "DEPLOY_KEY",
            "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKk8Vq2LmzR41xQw7Tz9uYb3 bob@host",
        ),
        (
            "AUTH_URL",
            "https://login.example/72f988bf-86f1-41af-91ab-2d7cd011db47/oauth2",
        ),
        (
            "TOKEN_URL",
            "https://auth.example/realms/prod-7/token?grant=client_credentials",
        ),
        ("AUTH_ARGS", "--config /etc/auth/x86_64.conf --level 3"),
        ("DB_PASSWORD", "${DB_PASSWORD_2}"),
        ("PASSWORD_PROMPT", "Enter the password of %s: "),
        ("GPIO_PIN", "17"),
        ("DB_PASS", "changeme"),
        ("COOKIE", "yes"),
        (
            "DATABASE",
            "Server=db.example;Database=app;User Id=sa;Password=changeme;Encrypt=true",
        ),
        (
            "OTEL_RESOURCE_ATTRIBUTES",
            "service.name=api,service.instance.id=A1b2C3d4-E5f6",
        ),
        (
            "SETTINGS",
            "{\"key\": \"name\", \"secret\": null, \"id\": \"A1b2C3d4E5f6G7h8\"}",
        ),
        ("ACCEPT", "Accept: application/vnd.github.v3+json"),
        ("TERM_SESSION", "A1B2C3D4-E5F6-7A8B-9C0D-E1F2A3B4C5D6"),
    ] {
        assert_eq!(
            crate::inventory::credential(name, value),
            None,
            "{name}={value}"
        );
    }
}

#[test]
fn broken_files_end_nothing() {
    let noise = crate::detector_sample::SampleDice::new(1).bytes(4000);
    let deep = "[".repeat(100_000);
    let long = format!("machine a.example password {}", "x".repeat(3_000_000));
    let texts: [&[u8]; 6] = [
        &noise,
        deep.as_bytes(),
        long.as_bytes(),
        b"",
        b"\xff\xfe",
        b"-----BEGIN PRIVATE KEY-----",
    ];
    for format in [
        Format::Netrc,
        Format::Npmrc,
        Format::GitCredentials,
        Format::Hosts,
        Format::CargoCredentials,
        Format::CargoConfig,
        Format::Pypirc,
        Format::PipConf,
        Format::Docker,
        Format::Aws,
        Format::Google,
        Format::Azure,
        Format::Kubeconfig,
        Format::PrivateKey,
        Format::Dotenv,
        Format::List,
    ] {
        for text in texts {
            let inventory = read(format, "file", text);
            assert!(inventory.values.len() <= 256, "{format:?}");
        }
    }
}

#[test]
fn what_is_not_read_is_said() {
    let left_out = |text: &[u8]| read(Format::List, "file", text).left_out;
    let values = |count: usize| -> String {
        let line = |number: usize| format!("value-{number}-of-many\n");
        (0..count).map(line).collect()
    };
    assert_eq!(left_out(values(256).as_bytes()), None);
    let twice = [values(256), values(256)].concat();
    assert_eq!(left_out(twice.as_bytes()), None, "no value more");
    assert_eq!(
        left_out(values(257).as_bytes()).as_deref(),
        Some("only its first 256 values are read")
    );
    assert_eq!(
        left_out(b"first-value\nwor\xe4d-77\n").as_deref(),
        Some("line 2 is not UTF-8, so it is not read")
    );
    let long = format!("kV8pq2Lm-zz-41\n{}", "x".repeat(1 << 20));
    let inventory = read(Format::List, "file", long.as_bytes());
    assert_eq!(inventory.values.len(), 1, "no piece of a value");
    assert_eq!(
        inventory.left_out.as_deref(),
        Some("only its first 1048576 bytes are read")
    );
}

#[test]
fn nothing_read_is_shown() {
    let inventory = read(Format::List, "file", b"kV8pq2Lm-zz-41");
    assert!(!format!("{inventory:?}").contains("kV8"));
    assert!(!format!("{:?}", inventory.values).contains("kV8"));
}
