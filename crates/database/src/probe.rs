//! Whether a disk that refused something takes it now.

use std::io;
use std::path::Path;

use lightcone_storage::{write_zeros, FilePosition, OpenMode, Storage};

/// Files that are held open at once: more than opening a database, going on with its log and a snapshot need.
const FILES: usize = 8;
/// Bytes of the first file, more than a new segment of the log begins with.
const BYTES: u64 = 4 << 20;

/// Writes some files and removes them.
pub(crate) fn try_disk(storage: &dyn Storage, directory: &Path) -> io::Result<()> {
    let paths: Vec<_> = (0..FILES)
        .map(|number| directory.join(format!("probe-{number}.tmp")))
        .collect();
    let tried = (|| {
        let mut files = Vec::with_capacity(FILES);
        for path in &paths {
            let _ = storage.remove(path);
            files.push(storage.open(path, OpenMode::CreateNew)?);
        }
        write_zeros(&*files[0], FilePosition::START, FilePosition::new(BYTES))?;
        files[0].sync_data()
    })();
    for path in &paths {
        let _ = storage.remove(path);
    }
    tried
}
