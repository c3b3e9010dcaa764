#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| lightcone_server::fuzzing::fuzz_mcp(text));
