//! Entry points for fuzzing (docs/fuzzing.md).

/// Source maps: any bytes are read as one or refused.
pub fn fuzz_source_map(data: &[u8]) {
    crate::source_map::fuzz(data);
}
