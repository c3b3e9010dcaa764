#![no_main]

libfuzzer_sys::fuzz_target!(
    |data: &[u8]| lightcone_snapshot::fuzzing::fuzz_snapshot_manifest(data)
);
