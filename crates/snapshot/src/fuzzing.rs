//! Entry points for fuzz targets: any bytes must give a snapshot or an error.

use std::path::Path;
use std::sync::Arc;

use lightcone_storage::sim::SimStorage;
use lightcone_storage::LogOffset;

use crate::format::{manifest_name, pack_header, pack_name, Manifest};
use crate::SnapshotStore;

/// Takes `data` as a manifest, as it is and with a correct checksum, beside one pack.
///
/// # Panics
/// If a manifest does not survive its own encoding, or a damaged snapshot is found again.
pub fn fuzz_snapshot_manifest(data: &[u8]) {
    let mut mended = data.to_vec();
    let content = data.len().saturating_sub(32);
    let checksum = blake3::hash(&data[..content]);
    mended.truncate(content);
    mended.extend(checksum.as_bytes());
    for bytes in [data.to_vec(), mended] {
        let offset = match Manifest::decode(&bytes) {
            Ok(manifest) => {
                let again = manifest.encode();
                // Reserved bytes are the only ones that may differ.
                assert_eq!(again.len(), bytes.len());
                assert_eq!(Manifest::decode(&again).ok(), Some(manifest.clone()));
                manifest.offset
            }
            Err(_) => LogOffset::FIRST,
        };
        let directory = Path::new("snapshots");
        let storage = Arc::new(SimStorage::new(0));
        storage.put_file(&directory.join(manifest_name(offset)), bytes);
        let mut pack = pack_header(0).to_vec();
        pack.extend([7; 4096]);
        storage.put_file(&directory.join(pack_name(0)), pack);
        let mut store = SnapshotStore::open_on(storage, directory).expect("nothing fails here");
        if let Ok(Some(snapshot)) = store.latest() {
            if let Err(problem) = snapshot.verify() {
                store.set_aside(snapshot, problem);
                assert!(store.latest().expect("nothing fails here").is_none());
            }
        }
        let mut writer = match store.begin(LogOffset::new(offset.get().wrapping_add(1))) {
            Ok(writer) => writer,
            Err(error) => panic!("a new snapshot can always be begun: {error}"),
        };
        let hash = writer.put(b"object").expect("nothing fails here");
        writer.finish(b"").expect("nothing fails here");
        let _ = (store.prune(1), hash);
    }
}
