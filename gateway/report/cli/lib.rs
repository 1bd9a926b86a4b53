//! The program `outgate-report`, which `outgate audit` and `outgate scan` become: reads
//! records and files that anybody may have written, and prints what a person or another
//! program asked for.
//!
//! Not linked into the gateway, which holds keys, and made of nothing that speaks to a
//! network. Its options are public, for the help and the completions of `outgate`, and so
//! is how records are read.

#![forbid(unsafe_code)]

mod audit;
pub mod records;
mod sarif;
mod scan;

pub use audit::arguments::Audit;
pub use audit::audit;
pub use scan::arguments::Scan;
pub use scan::scan;

/// Whether whoever starts this program is of the same build: options are read by both.
fn same_build(build: Option<&str>) -> Result<(), String> {
    let own = env!("CARGO_PKG_VERSION");
    match build {
        Some(build) if build != own => Err(format!(
            "outgate {build} started outgate-report {own}; install both together"
        )),
        Some(_) | None => Ok(()),
    }
}
