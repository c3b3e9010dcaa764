#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lightcone_backup::fuzzing::fuzz_backup_items(data));
