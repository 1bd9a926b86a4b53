//! The gateway as its launcher and the command see it: frames and connections
//! in, bytes at recording origins out.

mod harness;
mod http;
