#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lightcone_fuzz::http::fuzz_http(data));
