//! The table of agents, where it is asked for: how long each takes for the same work beside
//! outgate and inside, from an empty home directory. Asserts that the work was done both ways;
//! says times and judges none.

use outgate_harness::Outcome;
use outgate_harness::table::add_row;

use crate::agents::{Agent, RAN, WORK, ask, key};
use crate::stage::{BUNDLE, Home, Stage};

/// Names the file to which each agent's test adds a row.
const TABLE: &str = "OUTGATE_AGENTS_TABLE";

/// How often each is started in both ways, one after the other.
const ROUNDS: usize = 5;

/// Adds the row of an agent to the table.
pub(crate) fn add(stage: &Stage<'_>, agent: &Agent) {
    let Some(file) = std::env::var_os(TABLE) else {
        return;
    };
    let ways: [fn(&Stage<'_>, &Agent) -> Outcome; 2] =
        [beside, |stage, agent| ask(stage, agent, WORK)];
    let mut times = ways.map(|_| Vec::new());
    for _ in 0..ROUNDS {
        for (way, times) in ways.iter().zip(&mut times) {
            stage.begin(Home::Empty, &[]);
            let outcome = way(stage, agent);
            assert!(outcome.stdout.contains(RAN), "{}: {outcome}", agent.preset);
            assert_eq!(stage.commits(), ["by-the-agent", "first"], "{outcome}");
            times.push(outcome.elapsed);
        }
    }
    add_row(&file, agent.preset, times);
    stage.seen();
}

/// Starts it as its user does without outgate, on a machine that trusts the origins.
fn beside(stage: &Stage<'_>, agent: &Agent) -> Outcome {
    let key = key(agent.key.1);
    let own = [
        (agent.key.0, key.as_str()),
        ("NODE_EXTRA_CA_CERTS", BUNDLE),
        ("SSL_CERT_FILE", BUNDLE),
    ];
    let variables: Vec<_> = own
        .into_iter()
        .chain(agent.variables.iter().copied())
        .collect();
    let mut line = stage.environment(&variables);
    line.extend(agent.command.iter().map(|&word| word.to_owned()));
    line.push(WORK.to_owned());
    stage.lab.start_bare(stage.identity, &line).finish()
}
