//! A fuzzer in front of one target: the one that has the name of the program.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| outgate_gateway::fuzz::run(
    env!("CARGO_BIN_NAME"),
    bytes
));
