//! The same load bare, through outgate, and through the peers that are
//! installed: rates, latency, processor time and memory of each, in turns
//! within one invocation. What each row must hold is written beside it.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;
use std::time::Duration;

use serde_json::json;

use crate::Outcome;
use crate::comparison::{Comparison, Line};
use crate::lab::{Amount, Cores, Lab, Origin};
use crate::peers::{Contender, Usage, mebibytes};
use crate::report::{Report, Verdict};
use crate::statistics::spread;

/// How long a gateway gets to notice that connections closed, or to let go of what
/// its start took.
const SETTLE: Duration = Duration::from_secs(3);

/// What a row asks of outgate's figures.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Demand {
    /// Processor time of each unit, in microseconds, at most.
    Cpu(f64),
    /// Median latency over bare, in microseconds, at most.
    Latency(f64),
    /// Median latency over bare, in microseconds, at most, and not more than
    /// this peer's.
    LatencyBelow(f64, &'static str),
    /// 99th percentile, in microseconds, at most.
    Tail(f64),
    /// Rates of peers, and how many times them outgate's must be.
    Rates(&'static [(&'static str, f64)]),
    /// Share of the rate of another, at least.
    Share(f64, &'static str),
    /// Growth of resident memory, in KiB, at most.
    Growth(f64),
    /// Resident KiB when idle, for each connection, and after they closed as a
    /// multiple of idle, at most.
    Memory(f64, f64, f64),
    /// Nothing: the row explains another.
    Nothing,
}

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    Request,
    Megabyte,
}

/// One scenario.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scenario {
    pub(crate) what: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) connections: u32,
    pub(crate) count: u32,
    pub(crate) bytes: u64,
    pub(crate) unit: Unit,
    pub(crate) demand: Demand,
}

/// Who asks whom: the client's program, the origin, and who may stand between.
#[derive(Debug)]
pub(crate) struct Field {
    pub(crate) client: &'static str,
    pub(crate) origin: Origin,
    pub(crate) contenders: Vec<Contender>,
}

pub(crate) const MEBIBYTE: u64 = 1 << 20;

const RATES: Demand = Demand::Rates(&[("sandlock", 1.0), ("squid", 3.0), ("mitmdump", 50.0)]);

#[rustfmt::skip]
const SCENARIOS: [Scenario; 15] = [
    Scenario { what: "GET 1 KiB, 1 kept connection", kind: "get", connections: 1, count: 10_000, bytes: 1024, unit: Unit::Request, demand: Demand::Latency(80.0) },
    Scenario { what: "GET 1 KiB, 16 kept connections", kind: "get", connections: 16, count: 30_000, bytes: 1024, unit: Unit::Request, demand: RATES },
    Scenario { what: "GET 1 KiB, 50 kept connections", kind: "get", connections: 50, count: 30_000, bytes: 1024, unit: Unit::Request, demand: Demand::Cpu(20.0) },
    Scenario { what: "GET 1 KiB, 64 kept connections", kind: "get", connections: 64, count: 30_000, bytes: 1024, unit: Unit::Request, demand: RATES },
    Scenario { what: "GET 1 KiB, new connection each", kind: "fresh", connections: 1, count: 2_000, bytes: 1024, unit: Unit::Request, demand: Demand::LatencyBelow(250.0, "sandlock") },
    Scenario { what: "GET 1 KiB, 200 a second", kind: "paced", connections: 1, count: 400, bytes: 1024, unit: Unit::Request, demand: Demand::Nothing },
    Scenario { what: "GET 64 KiB, 8 connections", kind: "get", connections: 8, count: 4_000, bytes: 65_536, unit: Unit::Megabyte, demand: Demand::Tail(5000.0) },
    Scenario { what: "POST 64 KiB, 8 connections", kind: "post", connections: 8, count: 4_000, bytes: 65_536, unit: Unit::Megabyte, demand: Demand::Tail(5000.0) },
    Scenario { what: "GET 1 MiB, 1 connection", kind: "get", connections: 1, count: 400, bytes: MEBIBYTE, unit: Unit::Megabyte, demand: Demand::Tail(5000.0) },
    Scenario { what: "POST 1 MiB, 1 connection", kind: "post", connections: 1, count: 400, bytes: MEBIBYTE, unit: Unit::Megabyte, demand: Demand::Tail(5000.0) },
    Scenario { what: "GET 100 MiB", kind: "get", connections: 1, count: 4, bytes: 100 * MEBIBYTE, unit: Unit::Megabyte, demand: Demand::Cpu(320.0) },
    Scenario { what: "POST 100 MiB", kind: "post", connections: 1, count: 4, bytes: 100 * MEBIBYTE, unit: Unit::Megabyte, demand: Demand::Cpu(320.0) },
    Scenario { what: "GET 1 GiB", kind: "get", connections: 1, count: 1, bytes: 1024 * MEBIBYTE, unit: Unit::Megabyte, demand: Demand::Growth(32.0 * 1024.0) },
    Scenario { what: "POST 1 GiB", kind: "post", connections: 1, count: 1, bytes: 1024 * MEBIBYTE, unit: Unit::Megabyte, demand: Demand::Growth(32.0 * 1024.0) },
    Scenario { what: "first server-sent event", kind: "event", connections: 1, count: 50, bytes: 0, unit: Unit::Request, demand: Demand::Tail(100_000.0) },
];

const IDLE: Scenario = Scenario {
    what: "1,000 idle connections",
    kind: "idle",
    connections: 1000,
    count: 0,
    bytes: 1024,
    unit: Unit::Request,
    demand: Demand::Memory(10.0 * 1024.0, 12.0, 1.5),
};

/// Figures of one run, in microseconds and KiB.
#[derive(Debug, Clone, Copy)]
struct Figures {
    rate: f64,
    median: f64,
    tail: f64,
    cpu: f64,
    /// Resident before, with the connections or bytes, and after they are gone.
    resident: [u64; 3],
}

/// Rows of this part.
pub(crate) fn measure(lab: &Lab, report: &mut Report) -> Outcome<()> {
    let origin = Origin::start(lab, "store", Cores::All)?;
    let (contenders, missing) = Contender::all(lab, &origin.port)?;
    let field = Field {
        client: "load",
        origin,
        contenders,
    };
    field.measure(lab, report, SCENARIOS.iter().chain([&IDLE]), &missing)
}

impl Field {
    /// The rows, and who is not there for them.
    pub(crate) fn measure<'rows>(
        &self,
        lab: &Lab,
        report: &mut Report,
        scenarios: impl Iterator<Item = &'rows Scenario>,
        missing: &[&str],
    ) -> Outcome<()> {
        if !missing.is_empty() {
            report.note(format!(
                "not installed, so not measured: {} (bench/install-peers installs them)",
                missing.join(", ")
            ));
        }
        for scenario in scenarios {
            let comparison = compare(lab, self, scenario)?;
            report.compare(&comparison);
        }
        Ok(())
    }
}

fn compare(lab: &Lab, field: &Field, scenario: &Scenario) -> Outcome<Comparison> {
    let contenders = field.contenders.as_slice();
    let mut samples: Vec<Vec<Figures>> = vec![Vec::new(); contenders.len()];
    let mut faults: Vec<Option<String>> = vec![None; contenders.len()];
    let is_large = scenario.bytes > 512 * MEBIBYTE || scenario.kind == "idle";
    let rounds = if is_large { 1 } else { lab.count(1, 5) };
    for _ in 0..rounds {
        for ((contender, samples), fault) in contenders.iter().zip(&mut samples).zip(&mut faults) {
            if fault.is_some() {
                continue;
            }
            match run(lab, field, contender, scenario) {
                Ok(figures) => samples.push(figures),
                Err(error) if contender.is_ours() => return Err(error),
                Err(error) => *fault = Some(error.to_string()),
            }
        }
    }
    let middles: Vec<Option<Figures>> = samples.iter().map(|samples| middle(samples)).collect();
    let mut comparison = Comparison::new(scenario.what, titles(scenario));
    for ((contender, middle), fault) in contenders.iter().zip(&middles).zip(faults) {
        let Some(figures) = middle else {
            comparison.fail(contender.name, fault.as_deref().unwrap_or("no figures"));
            continue;
        };
        let (target, verdict) = if contender.name == "outgate" {
            judge(scenario, figures, contenders, &middles)
        } else {
            (String::new(), Verdict::Open)
        };
        comparison.push(Line {
            name: contender.name,
            cells: cells(
                scenario,
                contender,
                figures,
                middles.first().copied().flatten(),
            ),
            target,
            verdict,
            json: json!({
                "rate": figures.rate, "p50_us": figures.median, "p99_us": figures.tail,
                "cpu_us": figures.cpu, "resident_kib": figures.resident,
            }),
        });
    }
    Ok(comparison)
}

/// The median of each figure.
fn middle(samples: &[Figures]) -> Option<Figures> {
    let last = *samples.last()?;
    let of =
        |value: fn(&Figures) -> f64| spread(&samples.iter().map(value).collect::<Vec<_>>()).median;
    Some(Figures {
        rate: of(|figures| figures.rate),
        median: of(|figures| figures.median),
        tail: of(|figures| figures.tail),
        cpu: of(|figures| figures.cpu),
        resident: last.resident,
    })
}

/// One run of the client with a contender.
fn run(lab: &Lab, field: &Field, contender: &Contender, scenario: &Scenario) -> Outcome<Figures> {
    let share = if lab.amount == Amount::Quick { 10 } else { 1 };
    let count = (scenario.count / share / contender.slowness()).max(1);
    let numbers = [
        scenario.connections.to_string(),
        count.to_string(),
        scenario.bytes.to_string(),
    ];
    let [connections, requests, bytes] = &numbers;
    let port = &field.origin.port;
    let kind = scenario.kind;
    let client = lab.workload(&[field.client, port, "0", kind, connections, requests, bytes]);
    let words = contender.words(lab, port, &client);
    let (line, [before, with, after]) = watch(lab, contender, &words, kind)?;
    let numbers: Vec<f64> = line
        .split(' ')
        .filter_map(|word| word.parse().ok())
        .collect();
    let [total, median, tail, _] = numbers.as_slice() else {
        return Err(format!("not figures: `{line}`").into());
    };
    let done = f64::from(if kind == "idle" {
        scenario.connections
    } else {
        count
    });
    let units = match scenario.unit {
        Unit::Request => done,
        Unit::Megabyte => done * to_float(scenario.bytes) / 1e6,
    };
    Ok(Figures {
        rate: units * 1e9 / total,
        median: median / 1000.0,
        tail: tail / 1000.0,
        cpu: to_float(with.cpu_ns.saturating_sub(before.cpu_ns)) / 1000.0 / units,
        resident: [before.resident, with.resident, after.resident],
    })
}

/// Runs a client step by step, and looks at the contender between the steps:
/// before the work, after it, and after the connections are gone.
fn watch(
    lab: &Lab,
    contender: &Contender,
    words: &[OsString],
    kind: &str,
) -> Outcome<(String, [Usage; 3])> {
    let errors = lab.directory.join("load.errors");
    let mut child = lab
        .command(words, Cores::All)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(std::fs::File::create(&errors)?)
        .spawn()?;
    let mut input = child.stdin.take().ok_or("no standard input")?;
    let mut output = BufReader::new(child.stdout.take().ok_or("no standard output")?);
    let pid = child.id();
    let mut heard = || -> Outcome<String> {
        let mut line = String::new();
        output.read_line(&mut line)?;
        Ok(line.trim().to_owned())
    };
    let mut steps = || -> Outcome<(String, [Usage; 3])> {
        if heard()? != "ready" {
            return Err("it did not begin".into());
        }
        if kind == "idle" {
            settle();
        }
        let before = contender.usage(pid);
        input.write_all(b"\n")?;
        let line = heard()?;
        if kind == "idle" {
            settle();
        }
        let with = contender.usage(pid);
        input.write_all(b"\n")?;
        heard()?;
        if kind == "idle" {
            settle();
        }
        let after = contender.usage(pid);
        input.write_all(b"\n")?;
        Ok((line, [before, with, after]))
    };
    let outcome = steps();
    drop(input);
    if outcome.is_err() {
        drop(child.kill());
    }
    let status = child.wait()?;
    outcome.map_err(|error| {
        let complaint = std::fs::read_to_string(&errors).unwrap_or_default();
        format!("{error}: {status}: {}", complaint.trim()).into()
    })
}

/// Waits that long.
#[expect(
    clippy::disallowed_methods,
    reason = "nothing tells when somebody has let go of connections, or of what a start took"
)]
pub(crate) fn settle() {
    std::thread::sleep(SETTLE);
}

fn titles(scenario: &Scenario) -> [&'static str; 5] {
    if scenario.kind == "idle" {
        return ["idle", "with them", "for each", "after", ""];
    }
    match scenario.unit {
        Unit::Request => ["requests/s", "p50 us", "p99 us", "CPU us each", "memory"],
        Unit::Megabyte => ["MB/s", "p50 us", "p99 us", "CPU us/MB", "memory"],
    }
}

fn cells(
    scenario: &Scenario,
    contender: &Contender,
    figures: &Figures,
    bare: Option<Figures>,
) -> [String; 5] {
    let is_bare = contender.name == "bare";
    let [before, with, after] = figures.resident;
    if scenario.kind == "idle" {
        if is_bare {
            return Default::default();
        }
        let each = each_connection(scenario, figures);
        return [
            mebibytes(before),
            mebibytes(with),
            format!("{each:.1} KiB"),
            mebibytes(after),
            String::new(),
        ];
    }
    let share = bare.map_or(0.0, |bare| figures.rate / bare.rate);
    let rate = if is_bare {
        format!("{:.0}", figures.rate)
    } else {
        format!("{:.0} (x{share:.2})", figures.rate)
    };
    [
        rate,
        format!("{:.0}", figures.median),
        format!("{:.0}", figures.tail),
        if is_bare {
            String::new()
        } else {
            format!("{:.1}", figures.cpu)
        },
        if is_bare {
            String::new()
        } else {
            mebibytes(with)
        },
    ]
}

fn each_connection(scenario: &Scenario, figures: &Figures) -> f64 {
    let [before, with, _] = figures.resident;
    to_float(with.saturating_sub(before)) / f64::from(scenario.connections)
}

fn judge(
    scenario: &Scenario,
    figures: &Figures,
    contenders: &[Contender],
    middles: &[Option<Figures>],
) -> (String, Verdict) {
    let of = |name: &str| {
        let mut pairs = contenders.iter().zip(middles);
        pairs
            .find(|(contender, _)| contender.name == name)
            .and_then(|(_, figures)| *figures)
    };
    let met = |holds: bool| if holds { Verdict::Met } else { Verdict::Missed };
    let added = figures.median - of("bare").map_or(0.0, |bare| bare.median);
    match scenario.demand {
        Demand::Nothing => (String::new(), Verdict::Open),
        Demand::Cpu(limit) => (format!("CPU <= {limit}"), met(figures.cpu <= limit)),
        Demand::Tail(limit) => (format!("p99 <= {limit}"), met(figures.tail <= limit)),
        Demand::Latency(limit) => (format!("p50 <= bare +{limit}"), met(added <= limit)),
        Demand::LatencyBelow(limit, peer) => {
            let peer_figures = of(peer);
            let below = peer_figures.is_none_or(|peer| figures.median <= peer.median);
            (
                format!("p50 <= bare +{limit}, {peer}"),
                met(added <= limit && below),
            )
        }
        Demand::Rates(rates) => {
            let known = rates
                .iter()
                .filter_map(|(name, times)| Some((name, times, of(name)?)));
            let (mut words, mut holds) = (Vec::new(), true);
            for (name, times, peer) in known {
                words.push(format!("{times} x {name}"));
                holds &= figures.rate >= times * peer.rate;
            }
            if words.is_empty() {
                return (String::new(), Verdict::Open);
            }
            (format!(">= {}", words.join(", ")), met(holds))
        }
        Demand::Share(least, other) => {
            let Some(other_figures) = of(other) else {
                return (String::new(), Verdict::Open);
            };
            let share = figures.rate / other_figures.rate;
            let (is, least_percent) = (share * 100.0, least * 100.0);
            let words = format!("{is:.0} % of {other}, >= {least_percent:.0} %");
            (words, met(share >= least))
        }
        Demand::Growth(limit) => {
            let [before, with, _] = figures.resident;
            let growth = to_float(with.saturating_sub(before));
            (
                format!("memory <= +{:.0} MiB", limit / 1024.0),
                met(growth <= limit),
            )
        }
        Demand::Memory(idle, each, back) => {
            let [before, _, after] = figures.resident;
            let holds = to_float(before) <= idle
                && each_connection(scenario, figures) <= each
                && to_float(after) <= back * to_float(before);
            let words = format!("<= {:.0} MiB, {each} KiB, x{back}", idle / 1024.0);
            (words, met(holds))
        }
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "figures of a table, far below 2^53"
)]
fn to_float(number: u64) -> f64 {
    number as f64
}
