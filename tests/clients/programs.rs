//! Shipped policies of programs that are no package managers of a language, each with its real
//! program and one thing that it does: Poetry, Playwright, the command line of AWS; Terraform
//! and Google Cloud's where the machine has them, for no registry carries these.

use std::path::Path;
use std::time::Duration;

use outgate_harness::{Outcome, Sandbox, lab_tests};

use crate::packages::publish;
use crate::presets::keep;
use crate::scenario::RUN_SECONDS_MAX;
use crate::stage::{FILES, MARK, Stage, spelt};

/// Runs a script in an empty working directory.
fn run(stage: &Stage<'_>, sandbox: Sandbox<'_>, script: &str) -> Outcome {
    stage.empty_work();
    let sandbox = sandbox.within(stage.work());
    let limit = Duration::from_secs(RUN_SECONDS_MAX);
    let command = ["bash", "-c", &spelt(script)].map(str::to_owned);
    sandbox.limit(limit).run(&command)
}

/// From an empty home directory and one where the program was used.
fn homes(stage: &Stage<'_>, used: &str, check: impl Fn(&str)) {
    for place in ["an empty home", "at home"] {
        stage.empty_home();
        if place == "at home" {
            keep(stage, &stage.home().join(used), "# kept-by-the-user\n");
        }
        check(place);
        let kept = std::fs::read_to_string(stage.home().join(used));
        let is_kept = kept.is_ok_and(|text| text == "# kept-by-the-user\n");
        assert_eq!(is_kept, place == "at home", "{used}");
    }
}

/// A project of Poetry's that depends on the package.
const POETRY: &str = r#"mkdir here; touch here/__init__.py
printf '[project]\nname = "here"\nversion = "1"\nrequires-python = ">=3.9"\ndependencies = ["demo-pkg"]\n[tool.poetry]\npackage-mode = false\n[[tool.poetry.source]]\nname = "own"\nurl = "http://pypi.example/simple"\n' > pyproject.toml
export PYTHONPATH=/run/clients/tools/poetry
python3 -m poetry --no-interaction --quiet install && python3 -m poetry --no-interaction run env -u PYTHONPATH python -m demo_pkg"#;

/// A page in a browser that the distribution has, and what stands in it.
const PLAYWRIGHT: &str = r#"cat > open.js <<'E'
const { chromium } = require('playwright-core');
(async () => {
  const browser = await chromium.launch({
    executablePath: '/usr/bin/chromium',
    args: ['--no-sandbox', '--disable-gpu', "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE *.example"],
  });
  const page = await browser.newPage();
  await page.goto('http://site.example/page.html');
  console.log(await page.textContent('body'));
  await browser.close();
})().catch((error) => { console.error(error); process.exit(1); });
E
node open.js"#;

/// A cloud's program: what it is, its policy, what its user keeps, whom it asks, what it does,
/// and what that shows.
type Cloud = [&'static str; 6];

const CLOUDS: [Cloud; 3] = [
    [
        "python3",
        "aws",
        ".aws/config",
        "mine.s3.eu-central-1.amazonaws.com",
        "export PYTHONPATH=/run/clients/tools/python; aws --region eu-central-1 --no-sign-request s3api get-object --bucket mine --key file out && cat out",
        MARK,
    ],
    [
        "gcloud",
        "gcloud",
        ".config/gcloud/kept",
        "cloudresourcemanager.googleapis.com",
        "echo of-nobody > token; gcloud --access-token-file=token projects list --format='value(projectId)'",
        MARK,
    ],
    [
        "terraform",
        "terraform",
        ".terraformrc",
        "registry.terraform.io",
        "printf 'terraform {\\n  required_providers {\\n    null = {\\n      source = \"hashicorp/null\"\\n    }\\n  }\\n}\\n' > main.tf; terraform init -no-color 2>&1 | tr '\\n' ' '",
        "was not found in any of the search locations",
    ],
];

carried_tests! {
    fn poetry_installs_from_the_source_of_a_project(lab) {
        let Some(stage) = Stage::with_tools(lab, &["gem"]) else { return };
        publish(&stage);
        homes(&stage, ".config/pypoetry/config.toml", |place| {
            let sandbox = stage.with_preset("poetry").allow(&spelt("GET,HEAD http://pypi.example"));
            let outcome = run(&stage, sandbox, POETRY);
            assert_eq!(outcome.code, Some(0), "{place}: {outcome}");
            assert!(outcome.stdout.contains(MARK), "{place}: {outcome}");
            assert!(!outcome.stderr.contains("outgate: denied"), "{place}: {outcome}");
            let outcome = run(&stage, stage.with_preset("poetry"), POETRY);
            assert_ne!(outcome.code, Some(0), "{place}: {outcome}");
            assert!(outcome.stderr.contains("to allow: -a"), "{place}: {outcome}");
        });
    }

    fn playwright_opens_a_page_in_the_browser_of_the_distribution(lab) {
        let Some(stage) = Stage::with_tools(lab, &["node", "chromium"]) else { return };
        stage.publish("site.example", "page.html", format!("<body>{MARK}</body>"));
        homes(&stage, ".cache/ms-playwright/kept", |place| {
            let sandbox = || {
                let modules = "/run/clients/tools/node/node_modules";
                let sandbox = stage.with_preset("playwright").option("-P", "chromium");
                sandbox.environment("NODE_PATH", modules)
            };
            let outcome = run(&stage, sandbox().allow(&spelt("GET http://site.example")), PLAYWRIGHT);
            assert!(outcome.stdout.contains(MARK), "{place}: {outcome}");
            let outcome = run(&stage, sandbox(), PLAYWRIGHT);
            assert!(!outcome.stdout.contains(MARK), "{place}: {outcome}");
            assert!(outcome.stderr.contains("outgate: denied"), "{place}: {outcome}");
        });
    }
}

lab_tests! {
    fn clouds_are_asked_where_their_policies_say_and_nowhere_else(lab) {
        crate::stage::open_tls();
        let Some(mut stage) = Stage::with_tools(lab, &[]) else { return };
        let projects = format!("{{\"projects\": [{{\"projectId\": \"{MARK}\", \"lifecycleState\": \"ACTIVE\"}}]}}");
        stage.publish("mine.s3.eu-central-1.amazonaws.com", "file", MARK);
        stage.publish("cloudresourcemanager.googleapis.com", "v1/projects", projects);
        let services = "{\"providers.v1\": \"/v1/providers/\", \"modules.v1\": \"/v1/modules/\"}";
        stage.publish("registry.terraform.io", ".well-known/terraform.json", services);
        stage.publish("registry.terraform.io", "v1/providers/hashicorp/null/versions", "{\"versions\": []}");
        for [program, preset, used, host, script, shown] in CLOUDS {
            // No registry carries some of these, so that none is asked for.
            let places = ["/usr/bin", "/usr/local/bin"].map(|folder| Path::new(folder).join(program));
            if !places.iter().any(|place| place.exists()) {
                eprintln!("not tried: no {program}");
                continue;
            }
            for is_used in [false, true] {
                stage.empty_home();
                if is_used {
                    keep(&stage, &stage.home().join(used), "");
                }
                stage.seen();
                let sandbox = stage.with_preset(preset).pin(&format!("{host}={FILES}:443"));
                let outcome = run(&stage, sandbox, script);
                let seen = stage.seen();
                assert!(outcome.stdout.contains(shown), "{program}: {outcome}\n{seen:?}");
                let asked = |request: &String| request.starts_with(&format!("{host} "));
                assert!(!seen.requests.is_empty() && seen.requests.iter().all(asked), "{program}: {seen:?}");
                // Google's looks whether it runs at Google's own; that it may not know.
                let denied = outcome.stderr.lines().filter(|line| line.starts_with("outgate: denied "));
                let mut others = denied.filter(|line| !line.contains(" http://metadata.google.internal/"));
                assert_eq!(others.next(), None, "{program}: {outcome}");
            }
        }
    }
}
