//! A project's own policy file narrows and never widens; registries come from
//! the user's configuration, never from a project's.

use crate::{Desk, Said, outgate};

use std::fs;
use std::process::{Command, Stdio};

fn project(text: &str) -> Desk {
    Desk::new().also(".outgate.toml", text)
}

#[test]
fn a_projects_file_takes_away_by_itself() {
    let desk = project("deny = [\"* */admin/**\"]\n[limits]\nprocesses = 7\n");
    let said = desk.call(&["why", "-a", "http://a.example", "http://a.example/admin/x"]);
    assert_eq!(said.status, 1, "{}", said.stdout);
    assert!(
        said.stdout.contains(".outgate.toml:1:10"),
        "{}",
        said.stdout
    );
    let said = desk.call(&["why", "-a", "http://a.example", "http://a.example/x"]);
    assert_eq!(said.status, 0, "{}", said.stdout);
    let said = desk.call(&["policy", "show"]);
    assert!(said.stdout.contains("processes = 7"), "{}", said.stdout);
    assert!(said.stdout.contains("* */admin/**"), "{}", said.stdout);
    let said = desk.call(&[
        "why",
        "--no-project",
        "-a",
        "http://a.example",
        "http://a.example/admin/x",
    ]);
    assert_eq!(said.status, 0, "{}", said.stdout);
}

#[test]
fn a_hostile_projects_file_is_refused_whole() {
    for text in [
        "allow = [\"evil.example\"]",
        "extends = [\"github\"]",
        "[filesystem]\nwrite = [\"/\"]",
        "[[pin]]\nhost = \"a.example\"\naddress = \"192.0.2.66\"",
        "[environment]\nset = { LD_PRELOAD = \"/x\" }",
        "deny = [\"x.example\"",
    ] {
        let desk = project(text);
        let said = desk.call(&["run", "--", "true"]);
        assert_eq!(said.status, 2, "{text}: {}", said.stderr);
        assert!(
            said.stderr.contains(".outgate.toml:"),
            "{text}: {}",
            said.stderr
        );
        let way = said.stderr.contains("-p FILE") || text.ends_with("example\"");
        assert!(way, "{text}: {}", said.stderr);
    }
    // `only` allows nothing by itself.
    let desk = project("only = [\"evil.example\", \"10.0.0.1\"]");
    for url in [
        "http://evil.example/",
        "http://10.0.0.1/",
        "tcp://evil.example:22",
    ] {
        let said = desk.call(&["why", "-a", "http://a.example", url]);
        assert_eq!(said.status, 1, "{url}: {}", said.stdout);
    }
}

#[test]
fn a_link_or_a_pipe_in_its_place_is_refused() {
    let desk = Desk::new();
    let file = desk.directory.join(".outgate.toml");
    std::os::unix::fs::symlink("/etc/passwd", &file).expect("a link");
    let said = desk.call(&["run", "--", "true"]);
    assert_eq!(said.status, 2, "{}", said.stderr);
    assert!(
        said.stderr.contains("--no-project") && !said.stderr.contains("root:"),
        "{}",
        said.stderr
    );
    fs::remove_file(&file).expect("a link");
    nix::unistd::mkfifo(&file, nix::sys::stat::Mode::from_bits_truncate(0o600)).expect("a pipe");
    let said = desk.call(&["run", "--", "true"]);
    assert_eq!(said.status, 2, "{}", said.stderr);
}

/// Calls with a home of the test's own and these variables.
fn call(desk: &Desk, variables: &[(&str, &str)], words: &[&str]) -> Said {
    let home = desk.directory.join("home");
    fs::create_dir_all(home.join("work")).expect("a home");
    let output = Command::new(outgate())
        .args(words)
        .current_dir(home.join("work"))
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("HOME", &home)
        .env("XDG_STATE_HOME", desk.directory.join("state"))
        .envs(variables.iter().copied())
        .stdin(Stdio::null())
        .output()
        .expect("outgate starts");
    Said {
        status: output.status.code().expect("an exit status"),
        stdout: String::from_utf8(output.stdout).expect("text"),
        stderr: String::from_utf8(output.stderr).expect("text"),
    }
}

fn home(files: &[(&str, &str)]) -> Desk {
    let desk = Desk::new();
    for (name, text) in files {
        let path = desk.directory.join("home").join(name);
        fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
        fs::write(path, text).expect("a file");
    }
    desk
}

#[test]
fn registries_are_those_of_the_users_configuration_with_their_places() {
    let desk = home(&[
        (
            ".npmrc",
            "registry=https://user:secret@npm.example/r/\n@acme:registry=https://acme.example:8443\n",
        ),
        (
            ".cargo/config.toml",
            "[source.mirror]\nregistry = \"sparse+https://crates.example/i/\"\n",
        ),
        (
            ".config/pip/pip.conf",
            "[global]\nindex-url = https://pip.example/simple\n",
        ),
    ]);
    for (preset, rules) in [
        (
            "npm",
            &[
                ("GET,HEAD https://npm.example", "~/.npmrc:1"),
                ("GET,HEAD https://acme.example:8443", "~/.npmrc:2"),
            ][..],
        ),
        (
            "cargo",
            &[("GET,HEAD https://crates.example", "~/.cargo/config.toml:2")],
        ),
        (
            "pip",
            &[("GET,HEAD https://pip.example", "~/.config/pip/pip.conf:2")],
        ),
    ] {
        let said = call(&desk, &[], &["policy", "show", "-P", preset]);
        assert_eq!(said.status, 0, "{preset}: {}", said.stderr);
        for (rule, place) in rules {
            let line = said
                .stdout
                .lines()
                .find(|line| line.contains(rule))
                .unwrap_or_default();
            assert!(
                line.ends_with(&format!("preset `{preset}`: {place}")),
                "{preset}: {}",
                said.stdout
            );
        }
        assert!(!said.stdout.contains("secret"), "{}", said.stdout);
    }
    // What they are for, and nothing else.
    for (method, url, status) in [
        ("GET", "https://npm.example/r/left-pad", 0),
        ("PUT", "https://npm.example/r/left-pad", 1),
        ("GET", "https://other.example/", 1),
    ] {
        let said = call(&desk, &[], &["why", "-P", "npm", "-X", method, url]);
        assert_eq!(said.status, status, "{method} {url}: {}", said.stdout);
    }
    let variables = [("PIP_INDEX_URL", "http://127.0.0.1:8099/simple")];
    let said = call(&desk, &variables, &["policy", "show", "-P", "pip"]);
    assert!(
        said.stdout.contains("preset `pip`: $PIP_INDEX_URL"),
        "{}",
        said.stdout
    );
}

#[test]
fn a_projects_configuration_of_a_client_grants_nothing() {
    let desk = home(&[
        ("work/.npmrc", "registry=https://evil.example/"),
        (
            "work/.cargo/config.toml",
            "[registries.x]\nindex = \"sparse+https://evil.example/\"",
        ),
        (
            "work/pip.conf",
            "[global]\nindex-url = https://evil.example/",
        ),
        ("work/uv.toml", "index-url = \"https://evil.example/\""),
    ]);
    for preset in ["npm", "cargo"] {
        let said = call(&desk, &[], &["why", "-P", preset, "https://evil.example/x"]);
        // The machine may have a configuration of its own; this is none.
        assert_ne!(said.status, 0, "{preset}: {}{}", said.stdout, said.stderr);
        assert!(!said.stderr.contains("evil"), "{preset}: {}", said.stderr);
    }
}

#[test]
fn without_a_registry_the_user_is_asked_to_name_one() {
    let desk = home(&[("work/x", "")]);
    let said = call(&desk, &[], &["run", "-P", "cargo", "--", "true"]);
    assert_eq!(said.status, 2, "{}", said.stderr);
    for words in [
        "preset `cargo`",
        "names no registry",
        "name your registry: ",
        "~/.cargo/config.toml",
        "-a 'GET,HEAD",
    ] {
        assert!(said.stderr.contains(words), "{words}: {}", said.stderr);
    }
    let desk = home(&[(
        ".cargo/config.toml",
        "[registries.x]\nindex = \"secret-without-scheme\"",
    )]);
    let said = call(&desk, &[], &["run", "-P", "cargo", "--", "true"]);
    assert_eq!(said.status, 2, "{}", said.stderr);
    assert!(
        said.stderr.contains("~/.cargo/config.toml:2") && !said.stderr.contains("secret"),
        "{}",
        said.stderr
    );
}

#[test]
fn a_command_that_may_write_the_configuration_is_not_run_by_it() {
    let desk = home(&[(
        ".cargo/config.toml",
        "[registries.x]\nindex = \"sparse+https://c.example/\"",
    )]);
    let home = desk.directory.join("home");
    let said = call(
        &desk,
        &[],
        &[
            "run",
            "-P",
            "cargo",
            "-P",
            "base",
            "-w",
            &home.to_string_lossy(),
            "--",
            "true",
        ],
    );
    assert_eq!(said.status, 2, "{}", said.stderr);
    assert!(
        said.stderr.contains("may write") && said.stderr.contains(".cargo/config"),
        "{}",
        said.stderr
    );
    let said = call(&desk, &[], &["run", "-P", "cargo", "--", "true"]);
    assert_eq!(said.status, 0, "{}", said.stderr);
    // Nor by one that it may make.
    let variables = [("CARGO_REGISTRIES_X_INDEX", "sparse+https://c.example/")];
    fs::remove_file(home.join(".cargo/config.toml")).expect("a file");
    let cargo = home.join(".cargo");
    let words = [
        "run",
        "-P",
        "cargo",
        "-P",
        "base",
        "-w",
        &cargo.to_string_lossy(),
        "--",
        "true",
    ];
    let said = call(&desk, &variables, &words);
    assert_eq!(said.status, 2, "{}", said.stderr);
    assert!(said.stderr.contains("may write"), "{}", said.stderr);
}
