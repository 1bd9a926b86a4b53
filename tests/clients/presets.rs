//! Shipped policies of tools: each with its real program, from an empty home directory
//! and from an ordinary one. The registry is the one that the user configured; the token
//! beside it stays outside; what the user keeps is as it was.

use std::fs;
use std::path::Path;
use std::time::Duration;

use outgate_harness::Sandbox;

use crate::scenario::RUN_SECONDS_MAX;
use crate::stage::{MARK, Stage, is_opened, spelt};

/// What no command of a run may see.
const TOKEN: &str = "a-token-of-the-users-own-38c1";

/// What is there to find of it: in the environment, and where the user keeps it.
const SEARCH: &str = "env | grep -c TOKEN; cat \"$KEPT\" 2>/dev/null | grep -c TOKEN; true";

/// One tool.
#[derive(Debug)]
struct Tool {
    preset: &'static str,
    /// Where the user configures it, below the home directory, and how.
    file: &'static str,
    text: &'static str,
    /// A variable that configures it where there is no file.
    variable: (&'static str, &'static str),
    /// What it does, without an option about registries.
    script: &'static str,
    /// Who is asked.
    host: &'static str,
    /// A cache of the user's own, which stays as it is.
    cache: &'static str,
    /// What allows it where nothing but its command line names whom it asks.
    rule: Option<&'static str>,
}

const UV: Tool = Tool {
    preset: "uv",
    file: ".config/uv/uv.toml",
    text: "[[index]]\nurl = \"http://me:TOKEN@pypi.example/simple\"\ndefault = true\n",
    variable: ("PIP_INDEX_URL", "http://pypi.example/simple"),
    script: "uv venv --quiet --python /usr/bin/python3 here && uv pip install --quiet --python here/bin/python demo-pkg && here/bin/python -m demo_pkg",
    host: "pypi.example",
    cache: ".cache/uv",
    rule: None,
};

const PNPM: Tool = Tool {
    preset: "pnpm",
    file: ".npmrc",
    text: "registry=http://npm.example/\n//npm.example/:_authToken=TOKEN\n",
    variable: ("npm_config_registry", "http://npm.example/"),
    script: "echo '{}' > package.json; pnpm add --silent demo-pkg && node -e 'require(\"demo-pkg\")'",
    host: "npm.example",
    cache: ".local/share/pnpm/store",
    rule: None,
};

const YARN: Tool = Tool {
    preset: "yarn",
    script: "echo '{}' > package.json; yarn add --silent --non-interactive --no-lockfile demo-pkg && node -e 'require(\"demo-pkg\")'",
    cache: ".cache/yarn",
    ..PNPM
};

const BUN: Tool = Tool {
    preset: "bun",
    file: ".bunfig.toml",
    text: "[install]\nregistry = { url = \"http://npm.example/\", token = \"TOKEN\" }\n",
    script: "echo '{}' > package.json; bun add --silent demo-pkg && node -e 'require(\"demo-pkg\")'",
    cache: ".bun/install/cache",
    ..PNPM
};

const DENO: Tool = Tool {
    preset: "deno",
    script: "deno eval 'import \"npm:demo-pkg@1.0.0\"'",
    cache: ".cache/deno",
    ..PNPM
};

const GO: Tool = Tool {
    preset: "go",
    file: ".config/go/env",
    text: "GOPROXY=http://me:TOKEN@goproxy.example\nGOSUMDB=off\n",
    variable: ("GOPROXY", "http://goproxy.example"),
    script: "mkdir here; cd here; go mod init here.example/here && GONOSUMDB=* go get example.org/demo && cat $(go list -m -f '{{.Dir}}' example.org/demo)/demo.go",
    host: "goproxy.example",
    cache: "go/pkg/mod",
    rule: None,
};

const GEM: Tool = Tool {
    preset: "bundler",
    file: ".gemrc",
    text: "---\n:sources:\n- http://me:TOKEN@gems.example/\n",
    variable: ("BUNDLE_MIRROR__ALL", "http://gems.example/"),
    script: "gem install --no-document $([ \"$GEMRC\" ] || echo --clear-sources --source http://gems.example) demo-gem && ruby -r demo -e 1",
    host: "gems.example",
    cache: ".gem/specs",
    rule: None,
};

const BUNDLER: Tool = Tool {
    file: ".bundle/config",
    text: "---\nBUNDLE_MIRROR__HTTP://SOURCE__EXAMPLE/: \"http://me:TOKEN@gems.example/\"\n",
    script: "printf 'source \"http://source.example\"\\ngem \"demo-gem\"\\n' > Gemfile; bundle install --quiet && bundle exec ruby -e 'require \"demo\"'",
    cache: ".bundle/cache",
    ..GEM
};

/// A project whose parent is fetched. Maven has no variable that names a mirror.
const MAVEN: Tool = Tool {
    preset: "maven",
    file: ".m2/settings.xml",
    text: "<settings><mirrors><mirror><id>m</id><mirrorOf>*</mirrorOf><url>http://me:TOKEN@maven.example/</url></mirror></mirrors>\
        <servers><server><id>m</id><username>me</username><password>TOKEN</password></server></servers></settings>\n",
    variable: ("MAVEN_ARGS", "-Dunused=http://maven.example/"),
    script: "echo '<settings><mirrors><mirror><id>m</id><mirrorOf>*</mirrorOf><url>http://maven.example/</url></mirror></mirrors></settings>' > here.xml; \
        echo '<project><modelVersion>4.0.0</modelVersion><parent><groupId>org.example</groupId><artifactId>demo-parent</artifactId><version>1.0</version><relativePath/></parent><artifactId>here</artifactId><packaging>pom</packaging></project>' > pom.xml; \
        mvn -q -B $([ -e ~/.m2/settings.xml ] || echo -s here.xml) validate && cat $(find ~/.cache/outgate $TMPDIR -name demo-parent-1.0.pom)",
    host: "maven.example",
    cache: ".m2/repository",
    rule: Some("GET,HEAD http://maven.example"),
};

/// What Maven fetches.
const PARENT: &str = "<project><modelVersion>4.0.0</modelVersion><groupId>org.example</groupId><artifactId>demo-parent</artifactId>\
    <version>1.0</version><packaging>pom</packaging><description>from-the-real-origin</description></project>\n";

/// A project that names where it gets things from itself; nothing else of Gradle does.
const GRADLE: Tool = Tool {
    preset: "gradle",
    file: ".gradle/gradle.properties",
    text: "repositoryPassword=TOKEN\n",
    variable: ("GRADLE_OPTS", "-Dunused=http://maven.example/"),
    script: "echo 'repositories { maven { url \"http://maven.example/\" } }
        configurations { demo }
        dependencies { demo \"org.example:demo:1.0@txt\" }
        task show { doLast { println configurations.demo.singleFile.text } }' > build.gradle; gradle -q show",
    host: "maven.example",
    cache: ".gradle/caches",
    rule: None,
};

/// A run as a person makes it, with this policy and what the stage needs.
fn sandbox<'lab>(stage: &Stage<'lab>, preset: &str) -> Sandbox<'lab> {
    stage.with_preset(preset).within(stage.work())
}

/// Writes a file of the user's.
pub(crate) fn keep(stage: &Stage<'_>, path: &Path, text: &str) {
    write_below(stage, &stage.home(), path, text);
}

/// Writes a file of a project of the user's.
pub(crate) fn keep_at(stage: &Stage<'_>, path: &Path, text: &str) {
    write_below(stage, &stage.work(), path, text);
}

fn write_below(stage: &Stage<'_>, root: &Path, path: &Path, text: &str) {
    fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    fs::write(path, text).expect("a file");
    let owner = format!("{0}:{0}", stage.identity.uid());
    let mut chown = std::process::Command::new("chown");
    let done = chown.args(["-R", &owner]).arg(root).status();
    assert!(done.is_ok_and(|status| status.success()), "chown");
}

fn run(stage: &mut Stage<'_>, tool: &Tool, sandbox: Sandbox<'_>, place: &str) {
    stage.empty_work();
    let search = SEARCH.replace("TOKEN", TOKEN);
    let script = format!("set -e; ({}); set +e; {search}", spelt(tool.script));
    let limit = Duration::from_secs(RUN_SECONDS_MAX);
    let kept = stage.home().join(tool.file).display().to_string();
    let outcome = sandbox
        .environment("KEPT", &kept)
        .limit(limit)
        .run(&["bash", "-c", &script].map(str::to_owned));
    let seen = stage.seen();
    let place = format!("{}, {place}: {outcome}\n{seen:?}", tool.preset);
    assert_eq!(outcome.code, Some(0), "{place}");
    assert!(outcome.stdout.contains(MARK), "{place}");
    assert!(outcome.stdout.ends_with("0\n0\n"), "{place}");
    assert!(!outcome.stdout.contains(TOKEN), "{place}");
    assert!(!seen.requests.is_empty(), "{place}");
    let asked = |request: &String| request.starts_with(&format!("{} ", tool.host));
    assert!(seen.requests.iter().all(asked), "{place}");
    assert!(!outcome.stderr.contains("outgate: denied"), "{place}");
}

/// A tool from both kinds of a home directory, and where nothing is configured.
fn check(stage: &mut Stage<'_>, tool: &Tool) {
    let home = stage.home();
    stage.empty_home();
    let (name, value) = tool.variable;
    let empty = sandbox(stage, tool.preset).environment(name, &spelt(value));
    let empty = tool
        .rule
        .into_iter()
        .fold(empty, |empty, rule| empty.allow(&spelt(rule)));
    run(stage, tool, empty, "from an empty home directory");
    let own = home.join(".cache/outgate");
    assert!(own.is_dir(), "{}: its caches", tool.preset);

    stage.empty_home();
    let text = spelt(tool.text).replace("TOKEN", TOKEN);
    // As Bundler writes the URL of a source.
    let text = if is_opened() {
        text.replace("__HTTP:", "__HTTPS:")
    } else {
        text
    };
    keep(stage, &home.join(tool.file), &text);
    keep(stage, &home.join(tool.cache).join("kept"), "by the user");
    let ordinary = sandbox(stage, tool.preset);
    run(stage, tool, ordinary, "at home");
    let cache = fs::read_dir(home.join(tool.cache)).expect("the user's cache");
    assert_eq!(cache.count(), 1, "{}: only what was there", tool.preset);
    let kept = fs::read_to_string(home.join(tool.file)).expect("the configuration");
    assert_eq!(kept, text, "{}", tool.preset);

    stage.empty_home();
    let outcome = sandbox(stage, tool.preset).run(&["true".to_owned()]);
    assert_eq!(outcome.code, Some(0), "{}: {outcome}", tool.preset);
    let said = "names no registry, and none is allowed";
    assert!(outcome.stderr.contains(said), "{}: {outcome}", tool.preset);
    let named = sandbox(stage, tool.preset).allow("GET http://site.example");
    let outcome = named.run(&["true".to_owned()]);
    assert!(!outcome.stderr.contains(said), "{}: {outcome}", tool.preset);
}

/// Makes the registries.
fn registries(stage: &Stage<'_>) {
    crate::packages::publish(stage);
}

carried_tests! {
    fn tools_of_python_fetch_from_the_configured_index(lab) {
        let Some(mut stage) = Stage::with_tools(lab, &[]) else { return };
        registries(&stage);
        check(&mut stage, &UV);
    }

    fn tools_of_node_fetch_from_the_configured_registry(lab) {
        let Some(mut stage) = Stage::with_tools(lab, &["node"]) else { return };
        registries(&stage);
        for tool in [&PNPM, &YARN, &BUN, &DENO] {
            check(&mut stage, tool);
        }
    }

    fn maven_fetches_from_the_configured_mirror(lab) {
        let Some(mut stage) = Stage::with_tools(lab, &["java", "mvn"]) else { return };
        stage.publish("maven.example", "org/example/demo-parent/1.0/demo-parent-1.0.pom", PARENT);
        check(&mut stage, &MAVEN);
    }

    fn gradle_fetches_from_the_repository_of_its_project(lab) {
        let Some(mut stage) = Stage::with_tools(lab, &["java", "gradle"]) else { return };
        let pom = PARENT.replace("demo-parent", "demo").replace("<packaging>pom</packaging>", "");
        stage.publish("maven.example", "org/example/demo/1.0/demo-1.0.pom", &pom);
        stage.publish("maven.example", "org/example/demo/1.0/demo-1.0.txt", MARK);
        let home = stage.home();
        for place in ["from an empty home directory", "at home"] {
            stage.empty_home();
            let is_kept = place == "at home";
            if is_kept {
                let properties = GRADLE.text.replace("TOKEN", TOKEN);
                keep(&stage, &home.join(GRADLE.file), &properties);
                keep(&stage, &home.join(GRADLE.cache).join("kept"), "by the user");
            }
            let allowed = sandbox(&stage, GRADLE.preset).allow(&spelt("GET,HEAD http://maven.example"));
            run(&mut stage, &GRADLE, allowed, place);
            assert!(home.join(".cache/outgate").is_dir(), "{place}: its caches");
            let cache = fs::read_dir(home.join(GRADLE.cache)).map_or(0, Iterator::count);
            assert_eq!(cache, usize::from(is_kept), "{place}: only what was there");
        }
        stage.empty_work();
        let without = sandbox(&stage, GRADLE.preset).run(&["true".to_owned()]);
        assert!(without.stderr.contains("name the repositories of the project"), "{without}");
    }

    fn tools_of_go_and_ruby_fetch_from_the_configured_registry(lab) {
        let Some(mut stage) = Stage::with_tools(lab, &["go", "gem", "bundle"]) else { return };
        registries(&stage);
        check(&mut stage, &GO);
        check(&mut stage, &GEM);
        check(&mut stage, &BUNDLER);
    }
}
