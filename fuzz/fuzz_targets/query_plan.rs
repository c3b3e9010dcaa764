#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lightcone_fuzz::query::fuzz_plan(data));
