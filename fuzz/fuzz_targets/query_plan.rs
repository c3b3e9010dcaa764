#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lightcone_query::fuzzing::fuzz_plan(data));
