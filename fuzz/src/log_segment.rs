//! Segments of a log: any bytes must give frames or an error.

use std::path::Path;
use std::sync::Arc;

use lightcone_log::{
    repair_on, Epoch, Frame, LocalLog, Log, LogError, LogHash, LogOffset, LogOptions,
};
use lightcone_storage::sim::SimStorage;

/// Above every epoch that a fuzzer writes.
const EPOCH: Epoch = Epoch::new(u64::MAX);

/// Takes `data` as the only segment of a log: opens, reads, repairs it, opens again, appends, and cuts it.
///
/// # Panics
/// If damage remains after a repair, or the log takes nothing after it, or a cut leaves something else than what was before it.
pub fn fuzz_segment(data: &[u8]) {
    let directory = Path::new("log");
    let storage = Arc::new(SimStorage::new(data.len() as u64));
    let first = format!("{:020}.segment", LogOffset::FIRST);
    storage.put_file(&directory.join(first), data.to_vec());
    let options = LogOptions {
        segment_bytes: 1 << 16,
        ..LogOptions::default()
    };
    let open = || LocalLog::open_on(storage.clone(), directory, options.clone());
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
                let after = read_all(&log).expect("and read again");
                assert_eq!(after[..before.len()], before);
                assert_eq!(after.len(), before.len() + 1);
                cut(log, &after);
                let (reopened, _) = open().expect("a log that was cut opens");
                assert_eq!(reopened.tail().epoch, EPOCH);
            }
        }
        Err(error) => panic!("a repaired log opens: {error}"),
    }
}

/// Where a frame ends, and the hash there.
type FrameEnd = (LogOffset, LogHash);

fn read_all(log: &LocalLog) -> Result<Vec<FrameEnd>, LogError> {
    let mut ends = Vec::new();
    let mut reader = log.feed().read(log.tail().oldest_offset)?;
    while let Some(frame) = reader.next()? {
        let end = frame.first_offset + u64::from(frame.count);
        ends.push((end, frame.hash));
    }
    Ok(ends)
}

/// Cuts a log in the middle.
fn cut(mut log: LocalLog, ends: &[FrameEnd]) {
    let (kept, gone) = ends.split_at(ends.len() / 2);
    let mut reader = log.feed().read(log.tail().oldest_offset);
    let reader = reader.as_mut().expect("it can be read");
    while reader.next().expect("it can be read").is_some() {}
    let at = kept
        .last()
        .map_or(log.tail().oldest_offset, |(end, _)| *end);
    let tail = log.truncate_from(at).expect("a frame begins there");
    assert_eq!((tail.next_offset, tail.epoch), (at, EPOCH));
    assert_eq!(read_all(&log).expect("it can be read"), kept);
    let read_on = reader.next().map(|frame| frame.is_some());
    let is_told = matches!(read_on, Err(LogError::CutAway { .. }));
    assert_eq!(is_told, !gone.is_empty(), "a reader hears of a cut");
}
