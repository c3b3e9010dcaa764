//! Entry points for fuzz targets: any bytes must give frames or an error.

use std::path::Path;
use std::sync::Arc;

use lightcone_storage::sim::SimStorage;
use lightcone_storage::LogOffset;

use crate::format::segment_name;
use crate::{repair_on, Epoch, Frame, LocalLog, Log, LogError, LogOptions};

/// Above every epoch that a fuzzer writes.
const EPOCH: Epoch = Epoch::new(u64::MAX);

/// Takes `data` as the only segment of a log: opens, reads, repairs it, opens again and appends.
///
/// # Panics
/// If damage remains after a repair, or the log takes nothing after it.
pub fn fuzz_segment(data: &[u8]) {
    let directory = Path::new("log");
    let storage = Arc::new(SimStorage::new(data.len() as u64));
    storage.put_file(
        &directory.join(segment_name(LogOffset::FIRST)),
        data.to_vec(),
    );
    let options = LogOptions {
        segment_bytes: 1 << 16,
        ..LogOptions::default()
    };
    let open = || LocalLog::open_on(storage.clone(), directory, options.clone(), EPOCH);
    if let Ok((log, _)) = open() {
        read_all(&log).expect("a log that opens with one segment can be read");
    }
    if repair_on(storage.clone(), directory, &options).is_err() {
        return;
    }
    match open() {
        Ok((mut log, recovery)) => {
            assert_eq!(recovery.torn_bytes_cut, 0, "the repair leaves no torn tail");
            let before = read_all(&log).expect("a repaired log can be read");
            let frame = Frame {
                first_offset: recovery.tail.next_offset,
                count: 1,
                payload: &[b"after"],
            };
            if log.append(EPOCH, frame).is_ok() {
                log.sync().expect("nothing fails here");
                assert_eq!(read_all(&log).expect("and read again"), before + 1);
            }
        }
        Err(error) => panic!("a repaired log opens: {error}"),
    }
}

fn read_all(log: &LocalLog) -> Result<u64, LogError> {
    let mut frames = 0;
    let mut reader = log.read(log.tail().oldest_offset)?;
    while reader.next()?.is_some() {
        frames += 1;
    }
    Ok(frames)
}
