#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lightcone_server::fuzzing::fuzz_control_record(data));
