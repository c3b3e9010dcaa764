#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lightcone_control::check_record(data));
