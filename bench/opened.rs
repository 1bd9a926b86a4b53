//! The same load inside TLS, bare, through outgate, and through the peers that
//! open TLS: each has an authority of its own that the client trusts, verifies
//! the origin, and sees every request. What each row must hold is beside it. Then
//! uploads with the scan and without it, by turns.

use crate::Outcome;
use crate::lab::{Cores, Lab, Origin};
use crate::load::{Demand, Field, MEBIBYTE, Scenario, Unit};
use crate::peers::{Contender, UNSCANNED};
use crate::report::Report;
use crate::secure;

#[rustfmt::skip]
const SCENARIOS: [Scenario; 10] = [
    Scenario { what: "GET 1 KiB, 1 kept connection", kind: "get", connections: 1, count: 10_000, bytes: 1024, unit: Unit::Request, demand: Demand::Latency(60.0) },
    Scenario { what: "GET 1 KiB, 50 kept connections", kind: "get", connections: 50, count: 30_000, bytes: 1024, unit: Unit::Request, demand: Demand::Cpu(22.0) },
    Scenario { what: "GET 1 KiB, new connection each", kind: "fresh", connections: 1, count: 2_000, bytes: 1024, unit: Unit::Request, demand: Demand::Cpu(250.0) },
    Scenario { what: "GET 1 KiB, new connections, 8 at once", kind: "fresh", connections: 8, count: 4_000, bytes: 1024, unit: Unit::Request, demand: Demand::Nothing },
    Scenario { what: "GET 1 KiB, hosts never met", kind: "never", connections: 1, count: 200, bytes: 1024, unit: Unit::Request, demand: Demand::Latency(350.0) },
    Scenario { what: "GET 1 KiB, the first of all", kind: "first", connections: 1, count: 1, bytes: 1024, unit: Unit::Request, demand: Demand::Nothing },
    Scenario { what: "POST 1 MiB, 1 connection", kind: "post", connections: 1, count: 100, bytes: MEBIBYTE, unit: Unit::Megabyte, demand: Demand::Tail(5000.0) },
    Scenario { what: "GET 100 MiB", kind: "get", connections: 1, count: 4, bytes: 100 * MEBIBYTE, unit: Unit::Megabyte, demand: Demand::Cpu(750.0) },
    Scenario { what: "POST 100 MiB", kind: "post", connections: 1, count: 4, bytes: 100 * MEBIBYTE, unit: Unit::Megabyte, demand: Demand::Cpu(750.0) },
    Scenario { what: "1,000 idle connections", kind: "idle", connections: 1000, count: 0, bytes: 1024, unit: Unit::Request, demand: Demand::Memory(10.0 * 1024.0, 35.0, 1.5) },
];

/// Uploads of bytes in no order, as those of an archive or an image are.
#[rustfmt::skip]
const SCANNED: [Scenario; 2] = [
    Scenario { what: "POST 1 MiB, scan on and off", kind: "post", connections: 1, count: 200, bytes: MEBIBYTE, unit: Unit::Megabyte, demand: Demand::Share(0.7, UNSCANNED) },
    Scenario { what: "POST 100 MiB, scan on and off", kind: "post", connections: 1, count: 4, bytes: 100 * MEBIBYTE, unit: Unit::Megabyte, demand: Demand::Share(0.7, UNSCANNED) },
];

/// Rows of this part.
pub(crate) fn measure(lab: &Lab, report: &mut Report) -> Outcome<()> {
    let origin = Origin::start(lab, secure::ORIGIN, Cores::All)?;
    let (contenders, missing) = Contender::opening(lab, &origin.port)?;
    let field = Field {
        client: secure::CLIENT,
        origin,
        contenders,
    };
    field.measure(lab, report, SCENARIOS.iter(), &missing)?;
    let field = Field {
        contenders: Contender::scanning(lab, &field.origin.port),
        ..field
    };
    field.measure(lab, report, SCANNED.iter(), &[])
}
