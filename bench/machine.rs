//! What the figures depend on: kernel, processor, load, scheduling, build.
//! Reads /proc only.

use std::fs;

use serde_json::{Value, json};

use crate::lab::{Amount, Lab};

/// Facts that stand above the table.
#[derive(Debug)]
pub(crate) struct Machine {
    kernel: String,
    processor: String,
    cores: usize,
    load: String,
    scheduling: String,
    pinning: String,
    programs: String,
    amount: Amount,
}

impl Machine {
    /// Looks around.
    pub(crate) fn look(lab: &Lab) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            kernel: line("/proc/sys/kernel/osrelease"),
            processor: processor(),
            cores,
            load: load(),
            scheduling: lab.priority.describe().to_owned(),
            pinning: lab.pinning(),
            programs: lab.origin_of_programs(),
            amount: lab.amount,
        }
    }

    /// Lines for a person.
    pub(crate) fn text(&self) -> String {
        let Self {
            kernel,
            processor,
            cores,
            load,
            scheduling,
            pinning,
            programs,
            amount,
        } = self;
        let quick = match amount {
            Amount::Quick => "\n  quick run: few samples, not for quoting",
            Amount::Full => "",
        };
        format!(
            "outgate bench\n  Linux {kernel}, {processor}, {cores} cores, load {load}\n  \
             {scheduling}; {pinning}\n  {programs}{quick}\n"
        )
    }

    /// The same for a program.
    pub(crate) fn json(&self) -> Value {
        json!({
            "kernel": self.kernel, "processor": self.processor, "cores": self.cores,
            "load_before": self.load, "load_after": load(), "scheduling": self.scheduling,
            "pinning": self.pinning, "programs": self.programs,
            "quick": matches!(self.amount, Amount::Quick),
        })
    }
}

/// The three load averages.
pub(crate) fn load() -> String {
    let text = line("/proc/loadavg");
    text.split(' ').take(3).collect::<Vec<_>>().join(" ")
}

fn processor() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    text.lines()
        .find_map(|line| line.strip_prefix("model name"))
        .and_then(|rest| rest.split_once(':'))
        .map_or_else(
            || std::env::consts::ARCH.to_owned(),
            |(_, name)| name.trim().to_owned(),
        )
}

fn line(path: &str) -> String {
    fs::read_to_string(path)
        .unwrap_or_default()
        .trim()
        .to_owned()
}
