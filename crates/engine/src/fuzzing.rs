//! Entry points for the fuzz targets in `fuzz/`.

use lightcone_log::LogOffset;

use crate::datastore::Datastore;
use crate::error::RecoveryError;
use crate::follow::{Catalog, Change};
use crate::record::{Record, Records};
use crate::recovery::Replayer;
use crate::system::system_tables;

/// Log payloads: decoding records and their rows ends, and applying never panics.
pub fn fuzz_log_payload(data: &[u8]) {
    let mut transactions = 0;
    let schemas = system_tables();
    let mut catalog = Catalog::default();
    for record in Records::new(data) {
        if let Ok(record) = &record {
            let _ = catalog.follow(LogOffset::FIRST, record, |_, change| {
                if let Change::Rows(schema, group) = change {
                    group.entries(schema).last();
                }
                Ok::<_, RecoveryError>(())
            });
        }
        match record {
            Ok(Record::Transaction(groups) | Record::Transaction1(groups)) => {
                transactions += 1;
                for group in &groups {
                    let schema = schemas.iter().find(|schema| schema.id == group.table);
                    // An error ends them.
                    schema.map(|schema| group.entries(schema).last());
                }
            }
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
