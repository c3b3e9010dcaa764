#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lightcone_types::fuzzing::fuzz_json(data));
