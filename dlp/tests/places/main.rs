//! Credentials towards their issuers: each goes where its clients show it and nowhere else,
//! and to no name that a stranger rents.

#![expect(
    clippy::expect_used,
    reason = "a step that cannot be made is a failed test"
)]

mod attacks;
mod beside;
mod clients;
mod files;
mod pairs;
mod redirects;
mod request;
mod table;
mod tokens;
