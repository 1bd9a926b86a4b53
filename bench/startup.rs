//! What it costs to start: a command without network, and a command with
//! network rules until its first response and until everything has ended.

use std::ffi::OsString;

use crate::Outcome;
use crate::lab::{Cores, Lab, Origin, ROOTS, Rounds, Until};
use crate::report::{Report, Sides, Target};
use crate::{peers, secure};

/// A row: what it is called, its command, and what it must not exceed.
type Compared<'a> = (&'a str, Vec<OsString>, Target);

/// Rows of this part.
pub(crate) fn measure(lab: &Lab, report: &mut Report) -> Outcome<()> {
    without_network(lab, report)?;
    with_network(lab, report)?;
    inside_tls(lab, report)
}

/// Until the first response inside TLS: bare with one handshake, inside with two, and with an
/// authority made for the run.
fn inside_tls(lab: &Lab, report: &mut Report) -> Outcome<()> {
    let origin = Origin::start(lab, secure::ORIGIN, Cores::All)?;
    let client = [
        secure::CLIENT,
        &origin.port,
        "0",
        "once",
        "1",
        "1",
        "64",
        ROOTS,
    ];
    let bare = lab.workload(&client);
    let rule = format!("GET https://127.0.0.0/8:{}/**", origin.port);
    let roots = lab.directory.join(ROOTS).display().to_string();
    let https = lab.inside(&["-a", &rule, "--upstream-ca", &roots], &bare);
    let rows = vec![("first response, HTTPS rule", https, Target::Added(4500.0))];
    let rounds = lab.rounds(60, 500);
    compare(lab, report, (rounds, Until::Marked), bare, rows)
}

fn without_network(lab: &Lab, report: &mut Report) -> Outcome<()> {
    let bare = vec!["/bin/true".into()];
    let inside = lab.inside(&[], &bare);
    let mut rows: Vec<Compared<'_>> = vec![
        (
            "outgate run -- /bin/true",
            inside.clone(),
            Target::Added(1000.0),
        ),
        (
            "  the program alone: outgate --version",
            lab.version(),
            Target::None,
        ),
    ];
    if let Some(musl) = &lab.musl {
        let mut words = inside;
        if let Some(program) = words.first_mut() {
            *program = musl.clone().into_os_string();
        }
        rows.push((
            "outgate run -- /bin/true, musl build",
            words,
            Target::Added(450.0),
        ));
    } else {
        report.note(
            "no row for a musl build (target <= +450 us): OUTGATE_MUSL_DIR is not set, and \
             building one needs Rust's standard library for musl",
        );
    }
    // The nearest peers, with the system readable and no network.
    if let Some(bwrap) = peers::find("bwrap") {
        let options = "--ro-bind / / --dev /dev --proc /proc --unshare-net --die-with-parent --";
        let words = options.split(' ').map(Into::into);
        let words = [bwrap.into()].into_iter().chain(words);
        rows.push((
            "  bwrap, network namespace",
            words.chain(bare.clone()).collect(),
            Target::None,
        ));
    }
    if let Some(sandlock) = peers::find("sandlock") {
        let words = "run -r / --".split(' ').map(Into::into);
        let words = [sandlock.into()].into_iter().chain(words);
        rows.push((
            "  sandlock run",
            words.chain(bare.clone()).collect(),
            Target::None,
        ));
    }
    let rounds = lab.rounds(200, 1500);
    compare(lab, report, (rounds, Until::Reaped), bare, rows)
}

fn with_network(lab: &Lab, report: &mut Report) -> Outcome<()> {
    let origin = Origin::start(lab, "http", Cores::All)?;
    let bare = lab.workload(&["client", "first", &origin.port]);
    let http = lab.inside(&["-a", &origin.http_rule()], &bare);
    let tcp = lab.inside(&["-a", &origin.tcp_rule()], &bare);
    let mut rows = vec![
        (
            "first response, HTTP rule",
            http.clone(),
            Target::Added(4000.0),
        ),
        ("first response, tcp:// rule", tcp, Target::None),
    ];
    if let Some(sandlock) = peers::find("sandlock") {
        let words = peers::sandlock(&sandlock, &origin.port, &bare);
        rows.push(("  sandlock, HTTP rules", words, Target::None));
    }
    let rounds = lab.rounds(60, 500);
    compare(lab, report, (rounds, Until::Marked), bare.clone(), rows)?;
    let rows = vec![("one GET, to the end of the run", http, Target::None)];
    let rounds = lab.rounds(30, 200);
    compare(lab, report, (rounds, Until::Reaped), bare, rows)
}

/// Runs the bare command and those of the rows in turns, and adds the rows.
fn compare(
    lab: &Lab,
    report: &mut Report,
    (rounds, until): (Rounds, Until),
    bare: Vec<OsString>,
    rows: Vec<Compared<'_>>,
) -> Outcome<()> {
    let mut commands = vec![bare];
    commands.extend(rows.iter().map(|(_, words, _)| words.clone()));
    let costs = lab.in_turns(rounds, until, Cores::All, &commands)?;
    let mut walls = costs
        .iter()
        .map(|costs| costs.iter().map(|cost| cost.wall).collect());
    let bare: Vec<f64> = walls.next().unwrap_or_default();
    for ((what, _, target), inside) in rows.into_iter().zip(walls) {
        report.times(what, &Sides::pairs(bare.clone(), inside), target);
    }
    Ok(())
}
