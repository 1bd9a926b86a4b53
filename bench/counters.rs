//! How many calls the kernel holds for the launcher: the connects, and none of
//! the sends, receives and opens.

use crate::Outcome;
use crate::lab::{Cores, Lab, Origin};
use crate::report::{Report, Verdict};

const CALLS: &str = "10000";

const KINDS: [(&str, &str); 4] = [
    ("send", "10,000 send + 10,000 recv"),
    ("message", "10,000 sendmsg + 10,000 recvmsg"),
    ("write", "10,000 write + 10,000 read"),
    ("open", "10,000 open + 10,000 close"),
];

/// Rows of this part.
pub(crate) fn measure(lab: &Lab, report: &mut Report) -> Outcome<()> {
    let origin = Origin::start(lab, "echo", Cores::One)?;
    let rule = origin.tcp_rule();
    for (kind, what) in KINDS {
        let bare = lab.workload(&["client", kind, &origin.port, CALLS]);
        let printed = lab.output(&lab.inside(&["--counters", "-a", &rule], &bare), Cores::One)?;
        let held = held(&printed.errors)?;
        let verdict = if held.iter().all(|(name, count)| match name.as_str() {
            "connect" => *count == 1,
            _ => *count == 0,
        }) {
            Verdict::Met
        } else {
            Verdict::Missed
        };
        let words: Vec<String> = held
            .iter()
            .map(|(name, count)| format!("{name} {count}"))
            .collect();
        report.facts(
            &format!("one connect, then {what}"),
            [String::new(), words.join(", ")],
            "connect 1, rest 0",
            verdict,
        );
    }
    Ok(())
}

/// Reads `held calls: connect 1, listen 0, ...`.
fn held(errors: &str) -> Outcome<Vec<(String, u64)>> {
    let (_, list) = errors
        .lines()
        .find_map(|line| line.split_once("held calls: "))
        .ok_or_else(|| format!("no counters in: {errors}"))?;
    list.split(", ")
        .map(|item| {
            let (name, count) = item
                .split_once(' ')
                .ok_or_else(|| format!("no count in `{item}`"))?;
            Ok((name.to_owned(), count.trim().parse()?))
        })
        .collect()
}
