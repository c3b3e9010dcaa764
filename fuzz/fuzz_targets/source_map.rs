#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lightcone_host_js::source_map::fuzz(data));
