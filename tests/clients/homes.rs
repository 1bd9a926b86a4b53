//! The first use of a package manager: in a home directory where nothing is yet and in one
//! that is used, with the registry that the user configured, below the root of a project,
//! and without a single rule.

use std::fs;
use std::time::Duration;

use outgate_harness::{Sandbox, lab_tests};

use crate::packages::publish;
use crate::scenario::RUN_SECONDS_MAX;
use crate::stage::{MARK, Stage, spelt};

/// How long a manager that may go nowhere tries, at most, on a machine that does other things
/// too: alone it is told within a second or two, and it tried for more than a minute.
const TOLD_SECONDS_MAX: u64 = 20;

/// A manager: where a user keeps what it fetched, the rule for it, and its use.
const USES: [(&str, &str, &str); 5] = [
    (
        ".npm/_cacache",
        "GET http://npm.example",
        "echo '{}' > package.json; npm install --no-audit --no-fund --no-update-notifier --registry=http://npm.example/ demo-pkg && node -e 'require(\"demo-pkg\")'",
    ),
    (
        ".cache/pip",
        "GET http://pypi.example",
        "python3 -m pip install --quiet --no-input --index-url http://pypi.example/simple --trusted-host pypi.example --target here demo-pkg && PYTHONPATH=here python3 -m demo_pkg",
    ),
    (
        ".cache/uv",
        "GET,HEAD http://pypi.example",
        "uv venv --quiet --python /usr/bin/python3 here && uv pip install --quiet --index-url http://pypi.example/simple --python here/bin/python demo-pkg && here/bin/python -m demo_pkg",
    ),
    (
        ".cargo/registry",
        "GET http://crates.example",
        r#"mkdir -p src .cargo; touch src/lib.rs
printf '[registries.demo]\nindex = "sparse+http://crates.example/index/"\n' > .cargo/config.toml
printf '[package]\nname = "here"\nversion = "0.1.0"\nedition = "2021"\n[dependencies]\ndemo-crate = { version = "1", registry = "demo" }\n' > Cargo.toml
cargo fetch && cat $CARGO_HOME/registry/src/*/demo-crate-1.0.0/src/lib.rs"#,
    ),
    (
        "go/pkg/mod",
        "GET http://goproxy.example",
        "mkdir here; cd here; export GOPROXY=http://goproxy.example GOSUMDB=off; go mod init here.example/here; go get example.org/demo && cat $(go list -m -f '{{.Dir}}' example.org/demo)/demo.go && go build example.org/demo",
    ),
];

/// A manager whose own file names the registry: its preset, that file, and its use.
const CONFIGURED: [(&str, &str, &str, &str, &str); 2] = [
    (
        "npm",
        ".npmrc",
        "registry=http://npm.example/\n",
        "npm.example",
        "echo '{}' > package.json; npm install --no-audit --no-fund --no-update-notifier demo-pkg && node -e 'require(\"demo-pkg\")'",
    ),
    (
        "pip",
        ".config/pip/pip.conf",
        "[global]\nindex-url = http://pypi.example/simple\n",
        "pypi.example",
        "python3 -m pip install --quiet --no-input --trusted-host pypi.example --target here demo-pkg && PYTHONPATH=here python3 -m demo_pkg",
    ),
];

/// What each manager asks where nothing is allowed.
const DENIED: [(&str, &str); 7] = [
    (
        "npm",
        "echo '{}' > package.json; npm install --no-update-notifier --registry=https://npm.example/ demo-pkg",
    ),
    (
        "pnpm",
        "echo '{}' > package.json; pnpm add --store-dir store --config.update-notifier=false --registry=https://npm.example/ demo-pkg",
    ),
    (
        "pip",
        "python3 -m pip install --quiet --no-input --no-cache-dir --index-url https://pypi.example/simple --target here demo-pkg",
    ),
    (
        "uv",
        "uv pip install --no-cache --no-config --python /usr/bin/python3 --index-url https://pypi.example/simple --target here demo-pkg",
    ),
    (
        "cargo",
        "export CARGO_HOME=$PWD/cargo; cargo search --index sparse+https://crates.example/index/ demo-crate",
    ),
    (
        "aws",
        "export AWS_ACCESS_KEY_ID=AKIDEXAMPLE AWS_SECRET_ACCESS_KEY=of-nobody AWS_DEFAULT_REGION=eu-central-1; aws --endpoint-url https://objects.example s3 ls",
    ),
    (
        "apt",
        "/usr/lib/apt/apt-helper -o APT::Sandbox::User=root download-file https://apt.example/x x",
    ),
];

/// Runs a script in the working directory, at home where the stage has it.
fn run(stage: &Stage<'_>, sandbox: Sandbox<'_>, script: &str) -> outgate_harness::Outcome {
    stage.empty_work();
    let sandbox = sandbox
        .within(stage.work())
        .limit(Duration::from_secs(RUN_SECONDS_MAX));
    sandbox.run(&["bash", "-c", &spelt(script)].map(str::to_owned))
}

/// With the Python packages of `tools/install`.
fn with_tools<'lab>(stage: &Stage<'lab>, preset: &str) -> Sandbox<'lab> {
    let sandbox = stage.with_preset(preset);
    sandbox.environment("PYTHONPATH", "/run/clients/tools/python")
}

carried_tests! {
    fn every_manager_has_room_in_a_home_where_nothing_is(lab) {
        let Some(stage) = Stage::with_tools(lab, &["node", "go", "gem"]) else { return };
        publish(&stage);
        for (cache, rule, script) in USES {
            stage.empty_home();
            let sandbox = || with_tools(&stage, "dev-tools").allow(&spelt(rule));
            let outcome = run(&stage, sandbox(), script);
            assert_eq!(outcome.code, Some(0), "{script}: {outcome}");
            assert!(outcome.stdout.contains(MARK), "{script}: {outcome}");
            assert!(!outcome.stderr.contains("outgate: denied"), "{script}: {outcome}");
            // Beside a cache of the user's own, which nobody touches.
            stage.empty_home();
            let own = stage.home().join(cache);
            crate::presets::keep(&stage, &own.join("kept"), "by the user");
            let outcome = run(&stage, sandbox(), script);
            assert_eq!(outcome.code, Some(0), "{script}: {outcome}");
            assert!(outcome.stdout.contains(MARK), "{script}: {outcome}");
            assert_eq!(fs::read_dir(&own).expect("the user's cache").count(), 1, "{script}: {outcome}");
        }
    }

    fn a_manager_asks_the_registry_that_its_preset_allows(lab) {
        let Some(mut stage) = Stage::with_tools(lab, &["node", "gem"]) else { return };
        publish(&stage);
        for (preset, file, text, host, script) in CONFIGURED {
            stage.empty_home();
            crate::presets::keep(&stage, &stage.home().join(file), &spelt(text));
            stage.seen();
            let sandbox = with_tools(&stage, "dev-tools").option("-P", preset);
            let outcome = run(&stage, sandbox, script);
            let seen = stage.seen();
            assert_eq!(outcome.code, Some(0), "{preset}: {outcome}");
            assert!(outcome.stdout.contains(MARK), "{preset}: {outcome}");
            assert!(!outcome.stderr.contains("outgate: denied"), "{preset}: {outcome}");
            let asked = |request: &String| request.starts_with(&format!("{host} "));
            assert!(!seen.requests.is_empty() && seen.requests.iter().all(asked), "{preset}: {seen:?}");
        }
    }
}

lab_tests! {
    fn a_member_of_a_workspace_finds_its_project_above(lab) {
        let Some(stage) = Stage::with_tools(lab, &[]) else { return };
        for is_used in [false, true] {
            stage.empty_home();
            stage.empty_work();
            let root = stage.work().join("root");
            let keep = |file: &str, text: &str| crate::presets::keep_at(&stage, &root.join(file), text);
            if is_used {
                crate::presets::keep(&stage, &stage.home().join(".gitconfig"), "[user]\n\tname = Ada\n");
            }
            keep("Cargo.toml", "[workspace]\nmembers = [\"member\"]\nresolver = \"2\"\n");
            keep("Cargo.lock", "# This file is automatically @generated by Cargo.\n# It is not intended for manual editing.\nversion = 4\n\n[[package]]\nname = \"member\"\nversion = \"0.1.0\"\n");
            keep("member/Cargo.toml", "[package]\nname = \"member\"\nversion = \"0.1.0\"\nedition = \"2021\"\n");
            keep("member/src/main.rs", "fn main() { println!(\"from-a-member\") }\n");
            keep("pyproject.toml", "[project]\nname = \"root\"\nversion = \"1\"\nrequires-python = \">=3.9\"\n[tool.uv.workspace]\nmembers = [\"member\"]\n");
            keep("uv.lock", "version = 1\nrequires-python = \">=3.9\"\n[manifest]\nmembers = [\"member\", \"root\"]\n[[package]]\nname = \"member\"\nversion = \"1\"\nsource = { virtual = \"member\" }\n[[package]]\nname = \"root\"\nversion = \"1\"\nsource = { virtual = \".\" }\n");
            keep("member/pyproject.toml", "[project]\nname = \"member\"\nversion = \"1\"\nrequires-python = \">=3.9\"\n");
            let mut git = std::process::Command::new("git");
            let made = git.args(["init", "-q"]).arg(&root).status();
            assert!(made.is_ok_and(|status| status.success()), "git");
            keep("README", "a project\n");
            for (script, shown) in [
                // What is built lies with the member: above it all is read-only.
                ("cargo run -q --offline --target-dir target", "from-a-member"),
                ("cargo metadata --offline --no-deps --format-version 1", "\"workspace_root\""),
                ("UV_PROJECT_ENVIRONMENT=$PWD/here uv run --quiet --offline --frozen --python /usr/bin/python3 python3 -c 'import sys; print(sys.prefix)'", "member/here"),
            ] {
                let sandbox = stage.with_preset("dev-tools").within(root.join("member"));
                let outcome = sandbox
                    .limit(Duration::from_secs(RUN_SECONDS_MAX))
                    .run(&["bash", "-c", script].map(str::to_owned));
                assert_eq!(outcome.code, Some(0), "{script}: {outcome}");
                assert!(outcome.stdout.contains(shown), "{script}: {outcome}");
            }
        }
    }

    fn a_manager_that_may_go_nowhere_gives_up_at_once(lab) {
        let Some(mut stage) = Stage::with_tools(lab, &["node"]) else { return };
        for (name, script) in DENIED {
            stage.empty_home();
            stage.seen();
            let outcome = run(&stage, with_tools(&stage, "dev-tools"), script);
            assert_ne!(outcome.code, Some(0), "{name}: {outcome}");
            assert!(outcome.stderr.contains("to allow: -a"), "{name}: {outcome}");
            let limit = Duration::from_secs(TOLD_SECONDS_MAX);
            eprintln!("{name}: {:?}", outcome.elapsed);
            assert!(outcome.elapsed < limit, "{name}: {outcome}");
            assert_eq!(stage.seen(), crate::stage::Seen::default(), "{name}: {outcome}");
        }
    }
}
