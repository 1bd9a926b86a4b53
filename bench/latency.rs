//! Connections to origins on 127.0.0.1: connecting, exchanging, processor time
//! and memory. The client times its own calls; blocks of both sides take turns.

use std::ffi::OsString;
use std::fs;
use std::net::TcpListener;
use std::sync::mpsc;
use std::time::Duration;

use crate::Outcome;
use crate::lab::{Cores, Cost, Lab, Origin, Until};
use crate::load;
use crate::report::{Report, Sides, Target, Verdict};
use crate::statistics::spread;

/// Longest time until the held client has its response.
const HOLD_SECONDS_MAX: u64 = 20;

/// Most memory of an idle gateway.
const GATEWAY_KIBIBYTES_MAX: u64 = 10_000_000 / 1024;

const CONNECTIONS: &str = "50";

/// Rows of this part.
pub(crate) fn measure(lab: &Lab, report: &mut Report) -> Outcome<()> {
    let http = Origin::start(lab, "http", Cores::One)?;
    let echo = Origin::start(lab, "echo", Cores::One)?;
    fresh(lab, report, &http)?;
    let blocks = lab.count(2, 10);
    let exchanges = lab.count(4000, 20_000).to_string();
    let bare = lab.workload(&["client", "echo", &echo.port, &exchanges]);
    let inside = lab.inside(&["-a", &echo.tcp_rule()], &bare);
    let sides = take_turns(lab, blocks, &bare, &inside)?;
    report.times(
        "256 B there and back, tcp:// rule",
        first(&sides)?,
        Target::Percent(3.0),
    );
    let requests = lab.count(1000, 10_000).to_string();
    let bare = lab.workload(&["client", "keep", &http.port, &requests]);
    let inside = lab.inside(&["-a", &http.http_rule()], &bare);
    let sides = take_turns(lab, blocks, &bare, &inside)?;
    report.times(
        "GET 1 KiB, kept connection, HTTP rule",
        first(&sides)?,
        Target::Added(60.0),
    );
    processor(lab, report, &http)?;
    memory(lab, report, &http)
}

/// Connects alone, and whole requests on new connections.
fn fresh(lab: &Lab, report: &mut Report, http: &Origin) -> Outcome<()> {
    let blocks = lab.count(2, 10);
    let count = lab.count(200, 2000).to_string();
    let bare = lab.workload(&["client", "fresh", &http.port, &count]);
    let rules = [
        (
            http.tcp_rule(),
            "connect(), tcp:// rule",
            "GET 1 KiB, new connection, tcp:// rule",
            Target::None,
        ),
        (
            http.http_rule(),
            "connect(), HTTP rule",
            "GET 1 KiB, new connection, HTTP rule",
            Target::None,
        ),
    ];
    for (rule, connect, whole, target) in rules {
        let sides = take_turns(lab, blocks, &bare, &lab.inside(&["-a", &rule], &bare))?;
        let [connects, wholes] = sides.as_slice() else {
            return Err("the client did not print two columns".into());
        };
        report.times(connect, connects, Target::Added(60.0));
        report.times(whole, wholes, target);
    }
    Ok(())
}

/// Blocks of both sides in turns: for each column the client prints.
fn take_turns(
    lab: &Lab,
    blocks: u32,
    bare: &[OsString],
    inside: &[OsString],
) -> Outcome<Vec<Sides>> {
    let mut sides: Vec<Sides> = Vec::new();
    for block in 0..blocks {
        let (without, within) = if block % 2 == 0 {
            let without = lab.samples(bare, Cores::One)?;
            (without, lab.samples(inside, Cores::One)?)
        } else {
            let within = lab.samples(inside, Cores::One)?;
            (lab.samples(bare, Cores::One)?, within)
        };
        let (without, within) = (columns(&without), columns(&within));
        sides.resize_with(without.len(), Sides::default);
        for (side, (without, within)) in sides.iter_mut().zip(without.into_iter().zip(within)) {
            side.add_blocks(without, within);
        }
    }
    Ok(sides)
}

fn columns(lines: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let count = lines.first().map_or(0, Vec::len);
    (0..count)
        .map(|column| {
            lines
                .iter()
                .filter_map(|line| line.get(column).copied())
                .collect()
        })
        .collect()
}

fn first(sides: &[Sides]) -> Outcome<&Sides> {
    sides
        .first()
        .ok_or_else(|| "the client printed nothing".into())
}

/// Processor time of launcher and gateway for each request: what the whole run
/// inside used more than the whole run bare.
fn processor(lab: &Lab, report: &mut Report, http: &Origin) -> Outcome<()> {
    let count = lab.count(10_000, 60_000);
    let rounds = lab.rounds(1, 8);
    let bare = lab.workload(&[
        "client",
        "many",
        &http.port,
        &count.to_string(),
        CONNECTIONS,
    ]);
    let inside = lab.inside(&["-a", &http.http_rule()], &bare);
    let costs = lab.in_turns(rounds, Until::Reaped, Cores::One, &[bare, inside])?;
    let share = |value: fn(&Cost) -> f64| {
        let mut sides = costs.iter().map(|costs| {
            costs
                .iter()
                .map(|cost| value(cost) / f64::from(count))
                .collect()
        });
        Sides::pairs(
            sides.next().unwrap_or_default(),
            sides.next().unwrap_or_default(),
        )
    };
    let cpu = share(|cost| cost.cpu);
    report.times(
        "CPU per GET, 50 kept connections, HTTP rule",
        &cpu,
        Target::None,
    );
    let wall = share(|cost| cost.wall);
    let rate = |samples: &[f64]| format!("{:.0}/s", 1_000_000.0 / spread(samples).median);
    report.facts(
        "  requests, one core for client, gateway, origin",
        [rate(&wall.bare), rate(&wall.inside)],
        "",
        Verdict::Open,
    );
    Ok(())
}

/// Memory of an idle gateway and its launcher, one connection open.
fn memory(lab: &Lab, report: &mut Report, http: &Origin) -> Outcome<()> {
    let gate = TcpListener::bind("127.0.0.1:0")?;
    let port = gate.local_addr()?.port().to_string();
    let bare = lab.workload(&["client", "hold", &http.port, &port]);
    let door = format!("tcp://127.0.0.1:{port}");
    let words = lab.inside(&["-a", &http.http_rule(), "-a", &door], &bare);
    let output = fs::File::create(lab.directory.join("held"))?;
    let mut child = lab.command(&words, Cores::One).stdout(output).spawn()?;
    let (sender, receiver) = mpsc::channel();
    let waiting = std::thread::spawn(move || sender.send(gate.accept()));
    let held = receiver.recv_timeout(Duration::from_secs(HOLD_SECONDS_MAX));
    // What the start took is let go a little later.
    load::settle();
    let sizes = held
        .is_ok()
        .then(|| ["outgate-gateway", "outgate"].map(|name| resident(child.id(), name)));
    // Closing the gate lets the client end.
    drop(held);
    let status = child.wait()?;
    let Some([gateway, launcher]) = sizes else {
        return Err(format!("the held client got no response: {status}").into());
    };
    drop(waiting.join());
    let (gateway, launcher) = (gateway?, launcher?);
    let verdict = if gateway <= GATEWAY_KIBIBYTES_MAX {
        Verdict::Met
    } else {
        Verdict::Missed
    };
    let words = |kibibytes: u64| {
        format!(
            "{}.{} MB",
            kibibytes * 1024 / 1_000_000,
            kibibytes * 1024 / 100_000 % 10
        )
    };
    report.facts(
        "memory of the gateway, idle (RSS)",
        [String::new(), words(gateway)],
        "<= 10 MB",
        verdict,
    );
    report.facts(
        "memory of the launcher, idle (RSS)",
        [String::new(), words(launcher)],
        "",
        Verdict::Open,
    );
    Ok(())
}

/// Resident KiB of the largest process with this name among the descendants of
/// a process.
fn resident(ancestor: u32, name: &str) -> Outcome<u64> {
    let mut largest = None;
    for entry in fs::read_dir("/proc")?.flatten() {
        let Ok(pid) = entry.file_name().to_string_lossy().parse::<u32>() else {
            continue;
        };
        if field(pid, "Name:").as_deref() != Some(name) || !descends(pid, ancestor) {
            continue;
        }
        let size =
            field(pid, "VmRSS:").and_then(|text| text.split(' ').next()?.parse::<u64>().ok());
        largest = largest.max(size);
    }
    largest.ok_or_else(|| format!("no process `{name}`").into())
}

fn descends(mut pid: u32, ancestor: u32) -> bool {
    while pid > 1 {
        if pid == ancestor {
            return true;
        }
        pid = field(pid, "PPid:")
            .and_then(|text| text.parse().ok())
            .unwrap_or(0);
    }
    false
}

fn field(pid: u32, name: &str) -> Option<String> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status
        .lines()
        .find_map(|line| line.strip_prefix(name))
        .map(|text| text.trim().to_owned())
}
