//! Entry points for the fuzz targets in `fuzz/`.

use lightcone_log::LogOffset;

use crate::datastore::Datastore;
use crate::record::{Record, Records};
use crate::recovery::Replayer;

/// Log payloads: decoding ends, and applying never panics.
pub fn fuzz_log_payload(data: &[u8]) {
    let mut transactions = 0;
    for record in Records::new(data) {
        match record {
            Ok(Record::Transaction(_) | Record::Transaction1(_)) => transactions += 1,
            Ok(Record::Clock(_)) => {}
            Err(_) => return,
        }
    }
    let start = LogOffset::FIRST;
    let _ = Replayer::new(Datastore::new(), start).apply(start, transactions, data);
}

/// The engine's part of a snapshot manifest.
pub fn fuzz_manifest(data: &[u8]) {
    let _ = crate::snapshot::decode_manifest(data);
}
