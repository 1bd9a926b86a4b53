//! What ships for containers, pods and jobs, so that nothing in them has a way out but the
//! gateway: the commands of each page, run in network namespaces, with somebody inside who
//! looks for another way; and each file as the programs and schemas that read it see it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use outgate_harness::tools::project;
use outgate_harness::{Identity, Lab, Outcome, Running, lab_tests, skip, skip_here};

use crate::gate::program;

/// Versions of Kubernetes whose schemas are asked: the oldest with sidecars, and a new one.
const KUBERNETES: [&str; 2] = ["1.29", "1.35"];
/// The schemas of everything else.
const SCHEMAS: [(&str, &str); 4] = [
    ("vendor.compose-spec", "docker/compose.yaml"),
    ("vendor.github-actions", "github-actions/start/action.yml"),
    ("vendor.github-actions", "github-actions/report/action.yml"),
    ("vendor.github-workflows", "github-actions/example.yml"),
];

/// What is installed by `tests/shared/tools/install`; a word where it is not.
fn tools() -> Option<PathBuf> {
    let set = std::env::var_os("OUTGATE_DEPLOY_TOOLS");
    let folder = set.map_or_else(
        || {
            let target = std::env::var_os("CARGO_TARGET_DIR");
            let target = target.map_or_else(|| project().join("target"), PathBuf::from);
            target.join("deploy-tools")
        },
        PathBuf::from,
    );
    let found = fs::canonicalize(folder).ok();
    let found = found.filter(|folder| folder.join("bin/docker-compose").exists());
    if found.is_none() {
        skip("no programs and schemas of tests/shared/tools/install");
    }
    found
}

/// A copy of `configs/NAME` in which what is fetched is asked for without TLS, and `docker` and
/// `kubectl` for its commands, which make containers of network namespaces.
struct Shop {
    folder: PathBuf,
    home: PathBuf,
    path: String,
    tools: PathBuf,
}

impl Shop {
    /// `None`, with a word why, where it cannot be made.
    fn open(lab: &Lab, name: &str) -> Option<Self> {
        let tools = tools()?;
        if outgate_harness::lab::is_mapped() {
            skip_here("no other users here");
            return None;
        }
        let folder = lab.folder(name, Identity::Own);
        copied(&project().join("configs").join(name), &folder);
        lab.folder("home", Identity::Own);
        let containers = lab.folder("containers", Identity::Own);
        copied(&project().join("tests/shared/containers"), &containers);
        let bin = lab.folder("bin", Identity::Own);
        for name in ["docker", "kubectl"] {
            let script = format!(
                "#!/bin/sh\nexec /usr/bin/python3 {}/{name}.py \"$@\"\n",
                containers.display()
            );
            executable(&bin.join(name), &script);
        }
        let programs = lab.tools.programs.display();
        let path = format!("{}:{programs}:/usr/sbin:/usr/bin:/sbin:/bin", bin.display());
        let home = lab.folder("kept", Identity::Own);
        Some(Self {
            folder,
            home,
            path,
            tools,
        })
    }

    /// A script, with these variables more.
    fn run(&self, script: &str, more: &[(&str, &Path)]) -> Outcome {
        let mut command = Command::new("bash");
        command
            .args(["-euxo", "pipefail", "-c", script])
            .env_clear()
            .env("PATH", &self.path)
            .env("HOME", self.home.with_file_name("home-0"))
            .env("CONTAINERS", &self.home)
            .env("PYTHONPATH", self.tools.join("python"))
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env("COMPOSE", self.tools.join("bin/docker-compose"))
            .envs(more.iter().copied())
            .current_dir(&self.folder)
            .stdin(Stdio::null());
        let outcome = Running::start(&mut command, Duration::from_mins(3)).finish();
        assert_eq!(outcome.code, Some(0), "{outcome}\n{}", self.logs());
        outcome
    }

    /// The commands of the page, in order.
    fn commands(&self) -> String {
        let page = fs::read_to_string(self.folder.join("README.md")).expect("a page");
        let blocks = page.split("```sh\n").skip(1);
        blocks
            .filter_map(|block| block.split("```").next())
            .collect()
    }

    /// What arrived outside, from `exec`: the words before a command in the agent.
    fn arrived(&self) -> String {
        fs::read_to_string(self.home.join("arrived")).unwrap_or_default()
    }

    /// Looks for other ways out from there; those that were found.
    fn ways_out(&self, exec: &str) -> String {
        let script = self.home.with_file_name("containers-0/escape.py");
        let script = format!("{exec} /usr/bin/python3 {}", script.display());
        self.run(&script, &[]).stdout
    }

    fn logs(&self) -> String {
        let logs = fs::read_dir(self.home.join("logs"));
        let logs = logs.into_iter().flatten().filter_map(Result::ok);
        logs.filter_map(|log| fs::read_to_string(log.path()).ok())
            .collect()
    }
}

/// Copies a folder, and has what is fetched asked for without TLS.
fn copied(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder") {
        let entry = entry.expect("a file");
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copied(&entry.path(), &target);
            continue;
        }
        let text = fs::read_to_string(entry.path()).expect("a text");
        let text = text.replace("https://files.example.org", "http://files.example.org");
        fs::write(target, text).expect("a file");
    }
}

fn executable(path: &Path, script: &str) {
    use std::os::unix::fs::PermissionsExt as _;
    fs::write(path, script).expect("a file");
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("a mode");
}

/// The first command of a script that begins so, and all before it.
fn until(script: &str, begins: &str) -> (String, String) {
    let lines = script.lines().position(|line| line.starts_with(begins));
    let count = lines.expect("the command is on the page");
    let line = |lines: Vec<&str>| lines.join("\n");
    let all = script.lines();
    (
        line(all.clone().take(count).collect()),
        line(all.skip(count).collect()),
    )
}

/// What the world has seen where nothing but what was asked for arrived.
fn assert_nothing_else(shop: &Shop, count: usize) {
    let arrived = shop.arrived();
    assert!(!arrived.contains("stolen"), "{arrived}");
    let lines = arrived
        .lines()
        .filter(|line| line.starts_with("connection "));
    assert_eq!(lines.count(), count, "{arrived}");
    let names = arrived.lines().filter(|line| line.starts_with("name "));
    for name in names {
        assert!(name.contains("files.example.org"), "{arrived}");
    }
}

lab_tests! {
    fn an_agent_of_the_compose_file_has_no_way_out_but_the_gateway(lab) {
        let Some(shop) = Shop::open(lab, "docker") else {
            return;
        };
        // Its package is built by another test.
        let script = shop.commands().replace("sh ../debian/package.sh", "true");
        let (start, rest) = until(&script, "docker compose exec");
        let (used, again) = until(&rest, "docker compose run");
        shop.run(&start, &[]);
        let token = fs::read_to_string(shop.folder.join(".env")).expect("a token");
        assert!(token.starts_with("OUTGATE_TOKEN=ogt_"), "{token}");
        assert_eq!(shop.ways_out("docker compose exec agent"), "");
        assert_eq!(shop.arrived(), "");
        let outcome = shop.run(&used, &[]);
        for part in ["arrived\n", "allow http://files.example.org", "ready"] {
            assert!(outcome.stdout.contains(part), "{part}: {outcome}");
        }
        assert_nothing_else(&shop, 1);
        // Who is elsewhere gets out by the same ways.
        let out = shop.ways_out("docker compose exec gateway");
        assert!(out.contains("OUT tcp 80") && out.contains("OUT names"), "{out}");
        let before = shop.arrived();
        let script = "for words in http://stolen.example.net/ http://169.254.169.254/ http://172.31.79.1/ \
            '-x http://172.31.77.2:3128 http://files.example.org/'; do \
            docker compose exec agent curl -sS -o /dev/null -w '%{http_code}\n' $words; done";
        let outcome = shop.run(script, &[]);
        let denied = ["403", "407"].map(|code| outcome.stdout.lines().filter(|line| line == &code).count());
        assert_eq!(denied, [3, 1], "{outcome}");
        assert_eq!(shop.arrived(), before);
        let (anew, down) = until(&again, "docker compose down");
        shop.run(&anew, &[]);
        assert_ne!(fs::read_to_string(shop.folder.join(".env")).expect("a token"), token);
        let outcome = shop.run("docker compose exec agent curl -sS http://files.example.org/", &[]);
        assert_eq!(outcome.stdout, "arrived\n", "{outcome}");
        shop.run(&down, &[]);
    }

    fn a_pod_with_a_sidecar_has_no_way_out_but_the_gateway(lab) {
        let Some(shop) = Shop::open(lab, "kubernetes") else {
            return;
        };
        let (given, rest) = until(&shop.commands(), "kubectl apply -f sidecar.yaml");
        let (start, rest) = until(&rest, "kubectl exec");
        let (used, _) = until(&rest, "outgate ca create");
        shop.run(&format!("{given}\n{start}"), &[]);
        assert_eq!(shop.ways_out("kubectl exec agent -c agent --"), "");
        assert_eq!(shop.arrived(), "");
        let outcome = shop.run(&used, &[]);
        assert!(outcome.stdout.starts_with("arrived\n"), "{outcome}");
        assert_nothing_else(&shop, 1);
        let out = shop.ways_out("kubectl exec agent -c gateway --");
        assert!(out.contains("OUT tcp 80") && out.contains("OUT names\n"), "{out}");
        assert!(!out.contains("credentials of a cloud"), "{out}");
    }

    fn a_pod_reaches_the_gateway_of_its_node_and_nothing_else(lab) {
        let Some(shop) = Shop::open(lab, "kubernetes") else {
            return;
        };
        let commands = shop.commands();
        let (given, rest) = until(&commands, "kubectl apply -f sidecar.yaml");
        let (_, start) = until(&rest, "outgate ca create");
        shop.run(&format!("{given}\n{start}"), &[]);
        assert_eq!(shop.ways_out("kubectl exec agent --"), "");
        assert_eq!(shop.arrived(), "");
        let outcome = shop.run("kubectl exec agent -- curl -sS http://files.example.org/", &[]);
        assert_eq!(outcome.stdout, "arrived\n", "{outcome}");
        assert_nothing_else(&shop, 1);
        let out = shop.ways_out("kubectl exec ds/outgate --");
        assert!(out.contains("OUT tcp 80") && !out.contains("credentials of a cloud"), "{out}");
    }

    fn the_steps_for_github_start_a_gateway_and_leave_its_report(lab) {
        let Some(shop) = Shop::open(lab, "github-actions") else {
            return;
        };
        let origin = outgate_harness::origin::Origin::start(80);
        let policy = "allow = [\"http://files.example.org\"]\n[[pin]]\nhost = \"files.example.org\"\naddress = \"192.0.2.1\"\n";
        fs::write(shop.folder.join("site.toml"), policy).expect("a policy");
        let temporary = lab.folder("runner", Identity::Own);
        let output = temporary.join("output");
        let summary = temporary.join("summary");
        let variables = [
            ("RUNNER_TEMP", temporary.as_path()),
            ("GITHUB_OUTPUT", output.as_path()),
            ("GITHUB_STEP_SUMMARY", summary.as_path()),
            ("OUTGATE_POLICY", Path::new("site.toml")),
            ("OUTGATE_NETWORK", Path::new("")),
            ("OUTGATE_FAIL_ON", Path::new("finding")),
        ];
        let started = shop.run("bash start/start.sh", &variables);
        let outputs = fs::read_to_string(&output).expect("outputs");
        let token = outputs.split(":ogt_").nth(1).and_then(|rest| rest.split('@').next());
        let token = format!("ogt_{}", token.expect("a token"));
        assert!(started.stdout.contains(&format!("::add-mask::{token}")), "{started}");
        let script = format!(
            ". {}; curl -sS -x \"$proxy\" http://files.example.org/a; curl -sS -x \"$proxy\" \
             http://other.example.org/ -o /dev/null -w '%{{http_code}}\\n'; test -s \"$bundle\"; {} run \
             --gateway \"$gateway\" -- curl -sS http://files.example.org/b",
            output.display(),
            program(lab),
        );
        let used = shop.run(&script, &[]);
        assert!(used.stdout.contains("403\n"), "{used}");
        assert_eq!(origin.arrivals().len(), 2, "{used}");
        let again = shop.run("! bash start/start.sh", &variables);
        assert!(again.stdout.contains("started in this job already"), "{again}");
        shop.run("bash report/report.sh", &variables);
        let report = temporary.join("outgate/report");
        for (name, part) in [("report.html", "other.example.org"), ("record.jsonl", "other.example.org"), ("gateway.log", "listens at")] {
            let text = fs::read_to_string(report.join(name)).expect("a file of the report");
            assert!(text.contains(part) && !text.contains(&token), "{name}: {text}");
        }
        let summary = fs::read_to_string(&summary).expect("a summary");
        assert!(summary.contains("other.example.org"), "{summary}");
        let none = shop.run("rm -r \"$RUNNER_TEMP/outgate\"; ! bash report/report.sh", &variables);
        assert!(none.stdout.contains("no gateway was started"), "{none}");
    }
}

#[test]
fn the_files_for_containers_pods_and_jobs_are_what_their_schemas_say() {
    let Some(tools) = tools() else {
        return;
    };
    let configs = project().join("configs");
    let asked = |name: &str, words: &[&str], file: &Path| {
        let mut command = Command::new("/usr/bin/python3");
        command
            .arg(tools.join("python/bin").join(name))
            .args(words)
            .arg(file)
            .env("PYTHONPATH", tools.join("python"));
        let output = command.output().expect("python3");
        let said = [output.stdout, output.stderr].concat();
        (
            output.status.success(),
            String::from_utf8_lossy(&said).into_owned(),
        )
    };
    for version in KUBERNETES {
        for name in ["kubernetes/sidecar.yaml", "kubernetes/node.yaml"] {
            let words = ["--strict", "-k", version];
            let (is_sound, said) = asked("kubernetes-validate", &words, &configs.join(name));
            assert!(is_sound, "{name} {version}: {said}");
        }
    }
    for (schema, name) in SCHEMAS {
        let words = ["--builtin-schema", schema];
        let (is_sound, said) = asked("check-jsonschema", &words, &configs.join(name));
        assert!(is_sound, "{name}: {said}");
    }
    // A field that is not one is found.
    let folder = std::env::temp_dir().join(format!("outgate-schemas-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder");
    let wrong = folder.join("wrong.yaml");
    let text = fs::read_to_string(configs.join("kubernetes/node.yaml")).expect("a file");
    fs::write(&wrong, text.replace("podSelector", "podselector")).expect("a file");
    let (is_sound, said) = asked("kubernetes-validate", &["--strict", "-k", "1.35"], &wrong);
    assert!(!is_sound, "{said}");
    fs::remove_dir_all(&folder).ok();
}
