#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lightcone_engine::fuzzing::fuzz_manifest(data));
