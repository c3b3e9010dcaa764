#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lightcone_host::fuzzing::fuzz_http(data));
