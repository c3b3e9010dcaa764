#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lightcone_log::fuzzing::fuzz_segment(data));
