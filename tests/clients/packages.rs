//! Package managers against registries of plain files: a package arrives, by
//! exactly the requests each of them makes, or the manager says soon that it may
//! not have it.

use std::process::Command;

use crate::scenario::{Run, Scenario, check_all};
use crate::stage::{Stage, is_opened, spelt};

/// A package of Python, installed into a folder of its own, and run.
pub(crate) const PIP: &str = "python3 -m pip install --quiet --no-input --no-cache-dir --index-url http://pypi.example/simple --trusted-host pypi.example";

const PYTHON: [Scenario<'_>; 2] = [
    Scenario {
        name: "pip install",
        allow: &["GET http://pypi.example"],
        script: "PIP --target here demo-pkg && PYTHONPATH=here python3 -m demo_pkg",
        requests: &[
            "pypi.example GET /simple/demo-pkg/",
            "pypi.example GET /files/demo_pkg-1.0.0-py3-none-any.whl",
        ],
        told: "No matching distribution",
        host: "pypi.example",
        ..Scenario::PLAIN
    },
    Scenario {
        name: "uv pip install",
        allow: &["GET,HEAD http://pypi.example"],
        script: "uv pip install --quiet --no-cache --no-config --python /usr/bin/python3 --index-url http://pypi.example/simple --target here demo-pkg && PYTHONPATH=here python3 -m demo_pkg",
        requests: &["pypi.example GET /simple/demo-pkg/", "pypi.example *"],
        told: "403",
        host: "pypi.example",
        ..Scenario::PLAIN
    },
];

const NODE: [Scenario<'_>; 4] = [
    Scenario {
        name: "npm install",
        allow: &["GET http://npm.example"],
        script: "echo '{}' > package.json; npm install --no-audit --no-fund --no-update-notifier --registry=http://npm.example/ demo-pkg && node -e 'require(\"demo-pkg\")'",
        requests: &[
            "npm.example GET /demo-pkg",
            "npm.example GET /demo-pkg/-/demo-pkg-1.0.0.tgz",
        ],
        told: "403",
        host: "npm.example",
        ..Scenario::PLAIN
    },
    Scenario {
        name: "pnpm add",
        allow: &["GET http://npm.example"],
        script: "echo '{}' > package.json; pnpm add --store-dir store --config.update-notifier=false --registry=http://npm.example/ demo-pkg && node -e 'require(\"demo-pkg\")'",
        requests: &[
            "npm.example GET /demo-pkg",
            "npm.example GET /demo-pkg/-/demo-pkg-1.0.0.tgz",
        ],
        told: "403",
        host: "npm.example",
        ..Scenario::PLAIN
    },
    Scenario {
        name: "yarn add",
        allow: &["GET http://npm.example"],
        script: "echo '{}' > package.json; yarn add --silent --non-interactive --no-lockfile --cache-folder cache --registry=http://npm.example demo-pkg && node -e 'require(\"demo-pkg\")'",
        requests: &[
            "npm.example GET /demo-pkg",
            "npm.example GET /demo-pkg/-/demo-pkg-1.0.0.tgz",
        ],
        told: "outgate denied GET http://npm.example/demo-pkg: no rule allows it",
        host: "npm.example",
        ..Scenario::PLAIN
    },
    Scenario {
        name: "bun add",
        allow: &["GET http://npm.example"],
        script: "echo '{}' > package.json; bun add --registry=http://npm.example/ demo-pkg && node -e 'require(\"demo-pkg\")'",
        requests: &[
            "npm.example GET /demo-pkg",
            "npm.example GET /demo-pkg/-/demo-pkg-1.0.0.tgz",
        ],
        told: "403",
        host: "npm.example",
        ..Scenario::PLAIN
    },
];

/// The cargo project that depends on the package.
pub(crate) const CARGO: &str = r#"mkdir -p src .cargo; touch src/lib.rs
echo '[registries.demo]
index = "sparse+http://crates.example/index/"' > .cargo/config.toml
echo '[package]
name = "here"
version = "0.1.0"
edition = "2021"
[dependencies]
demo-crate = { version = "1", registry = "demo" }' > Cargo.toml
cargo fetch && cat .cargo/registry/src/*/demo-crate-1.0.0/src/lib.rs"#;

/// A Go module that gets the package.
pub(crate) const GO: &str = r"export GOPATH=$HOME/go GOCACHE=$HOME/cache GOPROXY=http://goproxy.example GOSUMDB=off GOFLAGS=-modcacherw
mkdir here; cd here; go mod init here.example/here && go get example.org/demo && cat $GOPATH/pkg/mod/example.org/demo@v1.0.0/demo.go";

/// apt with all its folders here, as it works without rights.
pub(crate) const APT: &str = r#"mkdir -p state/lists/partial cache/archives/partial etc; touch state/status
echo 'deb [trusted=yes] http://apt.example/dists flat/' > etc/sources.list
echo "Dir::State \"$PWD/state\"; Dir::State::status \"$PWD/state/status\"; Dir::Cache \"$PWD/cache\"; Dir::Etc \"$PWD/etc\"; Dir::Log \"$PWD\"; APT::Sandbox::User \"\"; Acquire::Languages \"none\"; APT::Architecture \"amd64\";" > apt.conf
apt-get -c $PWD/apt.conf update && apt-cache -c $PWD/apt.conf show demo-deb"#;

const OTHERS: [Scenario<'_>; 4] = [
    Scenario {
        name: "cargo fetch",
        allow: &["GET http://crates.example"],
        script: CARGO,
        requests: &[
            "crates.example GET /index/config.json",
            "crates.example GET /index/de/mo/demo-crate",
            "crates.example GET /dl/demo-crate/1.0.0/download",
        ],
        told: "outgate denied GET http://crates.example/index/config.json",
        host: "crates.example",
        ..Scenario::PLAIN
    },
    Scenario {
        name: "go get",
        allow: &["GET http://goproxy.example"],
        script: GO,
        requests: &[
            "goproxy.example GET /example.org/demo/@v/list",
            "goproxy.example GET /example.org/*",
        ],
        told: "403",
        host: "goproxy.example",
        ..Scenario::PLAIN
    },
    Scenario {
        name: "gem install",
        allow: &["GET,HEAD http://gems.example"],
        script: "gem install --install-dir here --no-document --clear-sources --source http://gems.example demo-gem && ruby -I here/gems/demo-gem-1.0.0 -r demo -e 1",
        requests: &["gems.example *"],
        told: "403",
        host: "gems.example",
        ..Scenario::PLAIN
    },
    Scenario {
        name: "apt-get update",
        allow: &["GET http://apt.example"],
        script: APT,
        requests: &["apt.example GET /dists/flat/*"],
        told: "403  outgate denied GET http://apt.example/dists/flat/",
        host: "apt.example",
        ..Scenario::PLAIN
    },
];

/// Fills the folders of the registries.
pub(crate) fn publish(stage: &Stage<'_>) {
    let made = Command::new("python3")
        .arg("-c")
        .arg(include_str!("origins/registries.py"))
        .arg(stage.host(""))
        .arg(if is_opened() { "https" } else { "http" })
        .output()
        .expect("python3 runs");
    let said = String::from_utf8_lossy(&made.stderr);
    assert!(made.status.success(), "no registries: {said}");
}

carried_tests! {
    fn packages_of_python_arrive(lab) {
        let Some(mut stage) = Stage::with_tools(lab, &["gem", "dpkg-deb"]) else { return };
        publish(&stage);
        let scripts: Vec<String> = PYTHON.iter().map(|one| one.script.replace("PIP", PIP)).collect();
        let all: Vec<Scenario<'_>> = PYTHON.iter().zip(&scripts).map(|(one, script)| Scenario { script, ..*one }).collect();
        check_all(&mut stage, &all);
        // The index alone is no package.
        let sandbox = stage.allowing(&["GET http://pypi.example/simple/**"]);
        let run = Run::make(&stage, sandbox, all[0].script);
        assert_eq!(run.outcome.code, Some(1), "{run}");
        assert!(run.words().contains("403"), "{run}");
        let about = spelt("GET http://pypi.example/files/demo_pkg-1.0.0-py3-none-any.whl");
        assert_eq!(run.lines_about(&about).len(), 1, "{run}");
        assert_eq!(stage.seen().requests, ["pypi.example GET /simple/demo-pkg/"], "{run}");
    }

    fn packages_of_node_arrive(lab) {
        let Some(mut stage) = Stage::with_tools(lab, &["gem", "dpkg-deb", "node"]) else { return };
        publish(&stage);
        check_all(&mut stage, &NODE);
    }

    fn packages_of_other_managers_arrive(lab) {
        let Some(mut stage) = Stage::start(lab, &["gem", "dpkg-deb", "go", "apt-get"]) else { return };
        publish(&stage);
        check_all(&mut stage, &OTHERS);
    }
}
