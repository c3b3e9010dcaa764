#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| lightcone_gateway::fuzzing::fuzz_mcp(text));
