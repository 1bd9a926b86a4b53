//! A certificate authority for one run or for one user, and the leaf
//! certificates it issues for the hosts that are opened.
//!
//! The key of an authority stays inside an [`Authority`]: it is never printed,
//! logged or handed out, except by [`create`] and [`establish`], which make a
//! user's own. Knows nothing of policies, connections or files' places.

#![forbid(unsafe_code)]

mod about;
mod authority;
mod cache;
mod files;
mod own;
mod scope;
mod subject;

pub use about::CertificateAbout;
pub use authority::{Authority, CaError};
pub use cache::Leaves;
pub use files::{read_key, read_public};
pub use own::{AuthorityFiles, AuthorityRequest, Created, create, describe, establish, open};
pub use scope::CertificateScope;
pub use subject::LeafSubject;
