#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lightcone_fuzz::module_def::fuzz_module_def(data));
