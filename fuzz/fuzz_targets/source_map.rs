#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lightcone_host_js::fuzzing::fuzz_source_map(data));
