//! Work without network: a compiler, a version control system, interpreters.
//! Inputs are generated in the bench's directory.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::process::{Command, Stdio};

use crate::Outcome;
use crate::lab::{Cores, Lab, Rounds, Until, find, run};
use crate::report::{Report, Sides, Target};
use crate::statistics::estimate;

const FUNCTIONS: u32 = 90;
const FILES: u32 = 1500;
const COMMITS: u32 = 300;

/// Most that outgate may add beside the cost of the start, in percent.
const PERCENT_MAX: f64 = 2.0;

/// One command and what it needs to be allowed.
struct Work {
    what: &'static str,
    words: Vec<OsString>,
    options: Vec<String>,
    /// What it is compared with, where that is not the same command.
    bare: Option<Vec<OsString>>,
    rounds: [u32; 2],
}

/// Rows of this part.
pub(crate) fn measure(lab: &Lab, report: &mut Report) -> Outcome<()> {
    let start = start(lab)?;
    report.note(format!(
        "start: {start:.0} us more for /bin/true, measured now"
    ));
    fs::write(lab.directory.join("work.c"), source())?;
    let mut works = vec![plain(
        "cc -O1 -c, generated C file",
        &["cc", "-O1", "-c", "work.c"],
        [3, 40],
    )];
    if find(&"git".into()).is_ok() {
        repository(lab)?;
        works.push(plain(
            "git status, 1,500 files",
            &["git", "-C", "repository", "status", "--porcelain"],
            [5, 150],
        ));
        works.push(plain(
            "git log --stat, 300 commits",
            &["git", "-C", "repository", "log", "--stat"],
            [5, 100],
        ));
    } else {
        report.note("git is not installed: no rows");
    }
    match python() {
        Some((program, prefix)) => works.push(Work {
            what: "python3 -c 'import asyncio, ssl, json'",
            words: vec![program, "-c".into(), "import asyncio, ssl, json".into()],
            options: ["-P", "base", "-r", &prefix].map(str::to_owned).to_vec(),
            bare: None,
            rounds: [3, 60],
        }),
        None => report.note("python3 is not installed: no row"),
    }
    if find(&"node".into()).is_ok() {
        works.push(plain("node -e 1", &["node", "-e", "1"], [3, 60]));
        works.push(with_root(lab)?);
    } else {
        report.note("node is not installed: no row");
    }
    for Work {
        what,
        words,
        options,
        bare,
        rounds: [quick, full],
    } in works
    {
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        let inside = lab.inside(&options, &words);
        let commands = [bare.unwrap_or(words), inside];
        let sides = runs(lab, lab.rounds(quick, full), &commands)?;
        report.times(what, &sides, Target::PercentAndStart(PERCENT_MAX, start));
    }
    Ok(())
}

/// What outgate adds to a command that does nothing, in microseconds.
fn start(lab: &Lab) -> Outcome<f64> {
    let bare = vec!["/bin/true".into()];
    let commands = [bare.clone(), lab.inside(&[], &bare)];
    let sides = runs(lab, lab.rounds(60, 300), &commands)?;
    Ok(estimate(&sides.added).median)
}

/// Runs a command bare and inside, in turns.
fn runs(lab: &Lab, rounds: Rounds, commands: &[Vec<OsString>]) -> Outcome<Sides> {
    let costs = lab.in_turns(rounds, Until::Reaped, Cores::All, commands)?;
    let mut sides = costs
        .into_iter()
        .map(|costs| costs.iter().map(|cost| cost.wall).collect());
    Ok(Sides::pairs(
        sides.next().unwrap_or_default(),
        sides.next().unwrap_or_default(),
    ))
}

fn plain(what: &'static str, words: &[&str], rounds: [u32; 2]) -> Work {
    Work {
        what,
        words: words.iter().map(Into::into).collect(),
        options: Vec::new(),
        bare: None,
        rounds,
    }
}

/// Node beside itself with a root that its user adds, which it reads before anything else and
/// takes longer for than for all the rest: what is left is what outgate adds to that.
fn with_root(lab: &Lab) -> Outcome<Work> {
    let file = lab.directory.join("root.pem");
    fs::write(&file, outgate_ca::Authority::for_run("bench")?.pem())?;
    let variable = format!("NODE_EXTRA_CA_CERTS={}", file.display());
    let bare = ["env", &variable, "node", "-e", "1"].map(Into::into);
    let node = plain(
        "  beside one with a root of its user's",
        &["node", "-e", "1"],
        [3, 60],
    );
    Ok(Work {
        bare: Some(bare.to_vec()),
        ..node
    })
}

/// A C file that keeps an optimiser busy.
fn source() -> String {
    let mut text = String::from("#include <stdio.h>\n#include <string.h>\n");
    for index in 0..FUNCTIONS {
        let seed = index.wrapping_mul(2_654_435_761);
        // Writing to a string never fails.
        let _ = write!(
            text,
            "unsigned mix{index}(const unsigned char *bytes, unsigned count) {{\n\
             \x20   unsigned sum = {seed}u;\n\
             \x20   for (unsigned i = 0; i < count; i++) {{\n\
             \x20       sum = (sum << 5) ^ (sum >> 27) ^ bytes[i];\n\
             \x20       switch (sum % 7) {{ case {}: sum *= 31; break; case {}: sum -= i; break; default: sum ^= i * {index}u; }}\n\
             \x20   }}\n    return sum;\n}}\n",
            index % 3,
            index % 3 + 3,
        );
    }
    text
}

/// A repository of many small files and commits, through `git fast-import`.
fn repository(lab: &Lab) -> Outcome<()> {
    let (directory, home) = (&lab.directory, lab.home());
    let git = |words: &[&str]| {
        let mut command = Command::new("git");
        command
            .args(["-C", "repository"])
            .args(words)
            .current_dir(directory)
            .env("HOME", &home);
        command
    };
    fs::create_dir_all(directory.join("repository"))?;
    fs::write(directory.join("import"), stream())?;
    run(&mut git(&["init", "-q", "-b", "main"]))?;
    let input = Stdio::from(fs::File::open(directory.join("import"))?);
    run(git(&["fast-import", "--quiet"]).stdin(input))?;
    run(&mut git(&["reset", "-q", "--hard"]))
}

fn stream() -> String {
    let mut text = String::new();
    let per_commit = FILES / COMMITS;
    for commit in 0..COMMITS {
        // Writing to a string never fails.
        let _ = write!(
            text,
            "commit refs/heads/main\ncommitter A <a@example.org> {} +0000\ndata 7\nchange\n\n",
            1_700_000_000_u32.saturating_add(commit)
        );
        for file in 0..per_commit {
            let number = commit.saturating_mul(per_commit).saturating_add(file);
            let content = format!("line {number}\n").repeat(20);
            let folder = number % 40;
            let _ = write!(
                text,
                "M 644 inline d{folder}/f{number}.txt\ndata {}\n{content}\n",
                content.len()
            );
        }
    }
    text
}

/// The interpreter itself, not a shell script that looks for it, and where its
/// library is.
fn python() -> Option<(OsString, String)> {
    let script = "import sys; print(sys.executable); print(sys.base_prefix)";
    let output = Command::new("python3").args(["-c", script]).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let mut lines = text.lines();
    Some((lines.next()?.into(), lines.next()?.to_owned()))
}
