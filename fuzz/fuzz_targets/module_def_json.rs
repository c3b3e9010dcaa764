#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lightcone_schema::fuzzing::fuzz_module_def_json(data));
