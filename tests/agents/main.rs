//! Agents as people start them, real ones: `outgate run -P NAME -- AGENT` in a real
//! repository, from an empty home directory and an ordinary one, as the account
//! without rights where there are two. The models are played by `origins/models.py`,
//! under their real names; the agents are installed by `tools/install`.

#![expect(
    clippy::expect_used,
    reason = "a step that cannot be made is a failed test"
)]
#![expect(
    clippy::print_stderr,
    reason = "how long an agent took, and what its screen shows, is shown with --nocapture"
)]

mod agents;
mod learnt;
mod readme;
pub(crate) mod screens;
mod stage;
mod table;
