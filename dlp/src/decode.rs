//! What is coded in what, as a tree: layers, each with the runs, escapes, dumps and
//! containers in it, which make further layers. The parts of it know each other, since any
//! coding may stand in any other; what a scan is for stands above.

pub(crate) mod classes;
pub(crate) mod containers;
pub(crate) mod dumps;
pub(crate) mod filters;
pub(crate) mod layer;
pub(crate) mod runs;

pub use containers::{Uncoded, UncodedFault};
