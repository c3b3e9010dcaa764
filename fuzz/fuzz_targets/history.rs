#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lightcone_database::fuzzing::fuzz_history(data));
