//! Tables that are asked for: how long a program takes for the same work beside outgate and
//! inside. Says times and judges none.

use std::ffi::OsStr;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::time::Duration;

/// Adds a row to the table in a file: the medians of the times beside and inside.
///
/// # Panics
/// When the file cannot be written.
pub fn add_row(file: &OsStr, name: &str, times: [Vec<Duration>; 2]) {
    let [beside, inside] = times.map(median);
    let mut table = OpenOptions::new()
        .create(true)
        .append(true)
        .open(file)
        .expect("a table");
    let row = format!(
        "| {name} | {:.3} s | {:.3} s | {:+.0} ms |\n",
        beside.as_secs_f64(),
        inside.as_secs_f64(),
        (inside.as_secs_f64() - beside.as_secs_f64()) * 1e3,
    );
    table.write_all(row.as_bytes()).expect("a row");
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times.get(times.len() / 2).copied().unwrap_or_default()
}
