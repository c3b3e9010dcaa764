#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lightcone_gateway::fuzzing::fuzz_frames(data));
