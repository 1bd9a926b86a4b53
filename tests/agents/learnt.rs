//! From a denial to a policy, with an agent: with its files and without hosts it fails; it is
//! learnt from, the policy is read and edited, held against the old record, and then the agent
//! works with it, and reaches nothing beside it.

use std::fs;
use std::process::Command;

use outgate_harness::{Outcome, Sandbox, lab_tests};

use crate::agents::{CLAUDE, RAN, WORK, key};
use crate::stage::{Home, Stage};

/// The agent with the files it needs and no host.
fn alone<'lab>(stage: &Stage<'lab>) -> Sandbox<'lab> {
    let home = stage.home();
    let own = |name: &str| home.join(name).to_string_lossy().into_owned();
    stage
        .sandbox("dev-tools")
        .option("-r", "/opt/agents")
        .option("-w", &own(".claude"))
        .option("-w", &own(".claude.json"))
        .environment(CLAUDE.key.0, &key(CLAUDE.key.1))
}

fn work(stage: &Stage<'_>, sandbox: Sandbox<'_>) -> Outcome {
    let state = [
        (CLAUDE.state.0, CLAUDE.state.1.to_owned()),
        (".claude/kept", String::new()),
    ];
    stage.begin(Home::Ordinary, &state);
    let mut command: Vec<String> = CLAUDE.command.iter().map(|&word| word.to_owned()).collect();
    command.push(WORK.to_owned());
    sandbox.run(&command)
}

lab_tests! {
    fn an_agent_works_with_the_policy_that_it_taught(lab) {
        let Some(stage) = Stage::start(lab) else { return };
        let folder = lab.folder("records", stage.identity);
        let place = |name: &str| folder.join(name).to_string_lossy().into_owned();
        // It fails.
        let outcome = work(&stage, alone(&stage));
        eprintln!("--- it fails\n{outcome}");
        assert!(!outcome.stdout.contains(RAN), "{outcome}");
        assert!(stage.seen().is_empty(), "{outcome}");
        // It is learnt from, but for what nobody wants.
        let (record, policy) = (place("agent.jsonl"), place("agent.toml"));
        let sandbox = alone(&stage).subcommand("learn").deny("denied.example.test");
        let sandbox = sandbox.option("--audit", &record).option("-o", &policy);
        let outcome = work(&stage, sandbox);
        assert!(outcome.stdout.contains(RAN), "{outcome}");
        stage.seen();
        // It is read and edited: of all that it asked, its model.
        let learnt = fs::read_to_string(&policy).expect("a policy");
        eprintln!("--- learnt\n{outcome}\n{learnt}");
        let model: Vec<&str> = learnt
            .split("\n\n")
            .filter(|part| part.contains("rule = \"POST https://api.anthropic.com/v1/messages"))
            .collect();
        assert_eq!(model.len(), 1, "{learnt}");
        assert!(model[0].contains("a method that can upload"), "{learnt}");
        assert!(learnt.contains("denied.example.test/x: a rule denies it"), "{learnt}");
        assert!(!learnt.contains(&key(CLAUDE.key.1)), "{learnt}");
        fs::write(&policy, format!("{}\n", model[0])).expect("a policy");
        // What is not to have changed has not.
        let mut replay = Command::new(lab.tools.programs.join("outgate"));
        replay.args(["policy", "test", &policy, "--replay", &record]);
        replay.args(["--allow-changes", "GET *", "--allow-changes", "HEAD *"]);
        let said = replay.output().expect("outgate starts");
        let said = String::from_utf8_lossy(&said.stdout).into_owned();
        eprintln!("--- edited to\n{}\n--- replayed\n{said}", model[0]);
        assert!(!said.contains("POST https://api.anthropic.com/v1/messages"), "{said}");
        // It works with the policy, and reaches its model alone.
        let outcome = work(&stage, alone(&stage).option("-p", &policy));
        assert!(outcome.stdout.contains(RAN), "{outcome}");
        eprintln!("--- with the policy\n{outcome}");
        assert_eq!(stage.commits(), ["by-the-agent", "first"], "{outcome}");
        let seen = stage.seen();
        let is_model = |host: &str| host == "api.anthropic.com";
        assert!(!seen.is_empty() && seen.iter().all(|one| is_model(&one.host)), "{seen:?}");
        assert!(seen.iter().all(|one| one.path.starts_with("/v1/messages")), "{seen:?}");
    }
}
