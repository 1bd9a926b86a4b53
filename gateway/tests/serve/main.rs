//! The gateway as its launcher and the command see it: frames and connections
//! in, bytes at recording origins out.

#[cfg(test)]
mod confined;
#[cfg(test)]
mod control;
#[cfg(test)]
mod dns;
#[cfg(test)]
mod h2c;
#[cfg(test)]
mod harness;
#[cfg(test)]
mod http;
#[cfg(test)]
mod messages;
#[cfg(test)]
mod opened;
#[cfg(test)]
mod raw;
#[cfg(test)]
mod resolve;
#[cfg(test)]
mod streams;
#[cfg(test)]
mod tls;
#[cfg(test)]
mod unopened;
