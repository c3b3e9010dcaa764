//! Entry points for the fuzz targets in `fuzz/`.

use crate::datastore::Datastore;
use crate::record::Records;
use crate::recovery::Replayer;

/// Log payloads: decoding ends, and applying never panics.
pub fn fuzz_log_payload(data: &[u8]) {
    for record in Records::new(data) {
        if record.is_err() {
            return;
        }
    }
    let _ = Replayer::new(Datastore::new(), 0).apply(0, data);
}

/// The engine's part of a snapshot manifest.
pub fn fuzz_manifest(data: &[u8]) {
    let _ = crate::snapshot::decode_manifest(data);
}
