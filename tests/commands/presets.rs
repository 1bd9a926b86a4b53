//! The shipped policies: what they allow, what they leave out, and that each says why.

use outgate_policy::{PresetKind, preset, preset_kind, preset_names};

use crate::Desk;

/// The rules of the shipped policies of a kind.
fn host_rules(kind: PresetKind) -> Vec<(&'static str, String)> {
    let mut rules = Vec::new();
    for name in preset_names() {
        if preset_kind(name) == Some(kind) {
            let text = preset(name).expect(name);
            let own = text.lines().filter_map(|line| {
                let rule = line.strip_prefix("rule = \"")?.strip_suffix('"')?;
                Some((*name, rule.to_owned()))
            });
            rules.extend(own);
        }
    }
    rules
}

#[test]
fn shipped_hosts_are_single_names_over_tls_and_each_says_why() {
    let rules = host_rules(PresetKind::Hosts);
    assert!(rules.len() > 20, "{rules:?}");
    for (name, rule) in rules {
        let host = rule.strip_prefix("https://").unwrap_or_default();
        let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || ".-".contains(c);
        assert!(
            host.contains('.') && host.chars().all(is_name),
            "{name}: {rule}"
        );
        let text = preset(name).expect(name);
        let noted = format!("[[allow]]\nrule = \"{rule}\"\nnote = \"");
        assert!(text.contains(&noted), "{name}: no note for {rule}");
        assert!(!text.contains("extends"), "{name} brings others along");
    }
}

#[test]
fn shipped_policies_of_agents_name_methods_and_paths_over_tls_and_each_says_why() {
    let rules = host_rules(PresetKind::Agent);
    assert!(rules.len() > 40, "{rules:?}");
    for (name, rule) in rules {
        let text = preset(name).expect(name);
        let noted = format!("[[allow]]\nrule = \"{rule}\"\nnote = \"");
        assert!(text.contains(&noted), "{name}: no note for {rule}");
        assert!(text.contains("extends = [\"dev-tools\"]"), "{name}");
        let (methods, target) = rule.split_once(' ').unwrap_or(("", &rule));
        let (scheme, rest) = target.split_once("://").expect("a scheme");
        let (host, path) = rest.split_once('/').expect("a path");
        // What reads and writes by any method is an account's to fill with files.
        let is_narrow = match scheme {
            "https" => methods
                .split(',')
                .all(|one| ["GET", "HEAD", "POST"].contains(&one)),
            "wss" => methods.is_empty() && !path.is_empty(),
            _ => false,
        };
        assert!(is_narrow, "{name}: {rule}");
        assert!(
            !host.strip_prefix("*.").unwrap_or(host).contains('*'),
            "{name}: {rule}"
        );
        assert!(!path.contains("files"), "{name}: {rule}");
    }
}

#[test]
fn shipped_policies_of_tools_ask_over_tls_and_each_says_why_and_what_is_left_out() {
    let rules = host_rules(PresetKind::Tool);
    assert!(rules.len() > 9, "{rules:?}");
    for (name, rule) in rules {
        let text = preset(name).expect(name);
        let noted = format!("[[allow]]\nrule = \"{rule}\"\nnote = \"");
        assert!(text.contains(&noted), "{name}: no note for {rule}");
        let (methods, target) = rule.split_once(' ').unwrap_or(("*", &rule));
        assert!(target.starts_with("https://"), "{name}: {rule}");
        // Whole clouds by any method, and nothing else.
        let is_cloud = ["aws", "gcloud"].contains(&name) && methods == "*";
        let is_named = methods
            .split(',')
            .all(|one| ["GET", "HEAD", "POST"].contains(&one));
        assert!(is_cloud || is_named, "{name}: {rule}");
    }
    for name in preset_names() {
        if preset_kind(name) == Some(PresetKind::Tool) {
            let text = preset(name).expect(name);
            assert!(text.contains("# Left out: "), "{name}");
            assert!(text.contains("extends = [\"dev-tools\"]"), "{name}");
        }
    }
}

#[test]
fn what_shipped_policies_expect_of_themselves_holds() {
    let desk = Desk::new();
    for name in preset_names() {
        if matches!(
            preset_kind(name),
            Some(PresetKind::Hosts | PresetKind::Agent | PresetKind::Tool)
        ) {
            let file = format!("{name}.toml");
            desk.write(&file, preset(name).expect(name));
            if preset(name).is_some_and(|text| text.contains("[[test]]")) {
                let said = desk.call(&["policy", "test", &file]);
                assert_eq!(said.status, 0, "{name}: {}{}", said.stdout, said.stderr);
            }
            let said = desk.call(&["policy", "check", &file]);
            let said = said.stdout;
            let is_root = *name == "docker-cli" && said.ends_with("1 warning\n");
            assert!(is_root || said.ends_with("no warnings\n"), "{name}: {said}");
        }
    }
}

#[test]
fn nothing_but_the_named_hosts_is_opened() {
    let desk = Desk::new();
    for (name, rule) in host_rules(PresetKind::Hosts) {
        let ask = |question: &str| desk.call(&["why", "-P", name, question]).status;
        let host = rule.strip_prefix("https://").expect("https");
        assert_eq!(ask(&format!("POST {rule}/x")), 0, "{name}: {rule}");
        for question in [
            format!("http://{host}/"),
            format!("https://x.{host}/"),
            format!("https://{host}:8443/"),
            format!("tcp://{host}:443"),
            format!("tcp://{host}:22"),
            format!("https://{host}.example.org/"),
        ] {
            assert_eq!(ask(&question), 1, "{name}: {question}");
        }
    }
}

#[test]
fn the_notes_of_a_policy_are_shown() {
    let desk = Desk::new();
    let note = "leave `sandbox.enabled` false in its settings";
    let shown = desk.call(&["policy", "show", "-P", "claude-code"]).stdout;
    let (_, notes) = shown.split_once("\nnotes\n").expect("a section");
    assert!(
        notes.contains(note) && notes.contains("preset `claude-code`:"),
        "{notes}"
    );
    let json = desk
        .call(&["policy", "show", "-P", "claude-code", "--json"])
        .stdout;
    let value: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let first = value["notes"][0]["text"].as_str().unwrap_or_default();
    assert!(first.contains(note), "{json}");
}

#[test]
fn a_socket_by_which_one_becomes_root_is_warned_of_wherever_it_is_allowed() {
    let desk = Desk::new();
    for (rule, warned) in [
        ("unix:///var/run/docker.sock", true),
        ("unix:///run/docker.sock", true),
        ("unix:///run/podman/podman.sock", true),
        ("unix:///run/containerd/containerd.sock", true),
        ("unix:///run/**", true),
        ("unix:///run/user/1000/docker.sock", false),
        ("unix:///run/user/1000/podman/podman.sock", false),
        ("unix:///tmp/ssh-agent/agent.1", false),
    ] {
        desk.write("a.toml", &format!("allow = [\"{rule}\"]\n"));
        let said = desk.call(&["policy", "check", "a.toml"]);
        let told = format!("{}{}", said.stdout, said.stderr);
        let is_elsewhere = rule.contains("/var/run");
        assert_eq!(
            told.contains("`unix:///run/docker.sock`"),
            is_elsewhere,
            "{told}"
        );
        assert_eq!(
            told.contains("can be root on this machine"),
            warned,
            "{rule}: {told}"
        );
    }
}
