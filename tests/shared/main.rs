//! One gateway for many runs, attacked from both sides: what a run may do
//! there, who else can make trouble, what its death leaves; and how runs are
//! found, asked and ended.

#![expect(
    clippy::panic,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a step that cannot be made is a failed test"
)]

mod admin;
mod asks;
mod containers;
mod crowds;
mod death;
mod deciders;
mod ends;
mod gate;
mod grants;
mod hostile;
mod live;
mod monitor;
mod opened;
mod own_origin;
mod page;
mod policies;
mod proxied;
mod proxied_attacks;
mod proxied_spellings;
mod registry;
mod revise;
mod screens;
mod service;
mod tokens;
mod undecided;
mod ways;
