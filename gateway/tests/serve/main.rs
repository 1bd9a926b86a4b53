//! The gateway as its launcher and the command see it: frames and connections
//! in, bytes at recording origins out.

mod control;
mod dns;
mod harness;
mod http;
mod raw;
mod streams;
mod tls;
