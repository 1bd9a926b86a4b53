//! A certificate authority for one run or for one user, and the leaf
//! certificates it issues for the hosts that are opened.
//!
//! The key of an authority stays inside an [`Authority`]: it is never printed,
//! logged or handed out, except by [`create`], which makes a user's own. Knows
//! nothing of policies, connections or files' places.

#![forbid(unsafe_code)]

mod authority;
mod cache;
mod own;

pub use authority::{Authority, CaError, Subject};
pub use cache::Leaves;
pub use own::{Created, Request, create, open};
