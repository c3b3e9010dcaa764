#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lightcone_fuzz::wire::fuzz_server_payload(data));
