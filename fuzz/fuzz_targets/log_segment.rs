#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lightcone_fuzz::log_segment::fuzz_segment(data));
