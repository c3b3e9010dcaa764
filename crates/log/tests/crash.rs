//! Power failures at random moments: what was synced is there, and nothing is there that was not written.

use crate::common::{at, open, payload, read_all, read_on, DIRECTORY, EPOCH};
use lightcone_log::{Epoch, Frame, LocalLog, Log, LogError, LogOffset, LogOptions, LogReader};
use lightcone_storage::sim::{Faults, SimStorage};
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Step {
    Append {
        bytes: usize,
        count: u32,
    },
    Sync,
    Seal,
    Close,
    Trim {
        back: u64,
    },
    /// Before the frame that is so many before the last one.
    Truncate {
        back: usize,
    },
    /// The process dies and starts again; the operating system lives.
    Restart,
    Crash {
        seed: u64,
    },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..3000usize, 1..5u32).prop_map(|(bytes, count)| Step::Append { bytes, count }),
        4 => Just(Step::Sync),
        1 => Just(Step::Seal),
        1 => Just(Step::Close),
        1 => (0..40u64).prop_map(|back| Step::Trim { back }),
        1 => (0..12usize).prop_map(|back| Step::Truncate { back }),
        1 => Just(Step::Restart),
        3 => any::<u64>().prop_map(|seed| Step::Crash { seed }),
    ]
}

fn options(preallocate: bool) -> LogOptions {
    LogOptions {
        segment_bytes: 12_000,
        preallocate,
        ..LogOptions::default()
    }
}

/// The frames that should be in the log.
type Model = Vec<(LogOffset, u32, Vec<u8>)>;

fn end_of(frame: &(LogOffset, u32, Vec<u8>)) -> LogOffset {
    frame.0 + u64::from(frame.1)
}

/// All that is durable can be read, and nothing else.
fn check(log: &LocalLog, model: &Model) {
    let tail = log.tail();
    let is_there = |frame: &&(LogOffset, u32, Vec<u8>)| {
        end_of(frame) > tail.oldest_offset && end_of(frame) <= tail.durable_offset
    };
    let expected: Vec<_> = model.iter().filter(is_there).cloned().collect();
    assert_eq!(read_all(log), expected);
}

/// A reader that goes on from where another was when its log was closed.
fn read_again(log: &LocalLog, from: LogOffset) -> LogReader {
    let from = from.max(log.tail().oldest_offset);
    log.feed().read(from).expect("it is in the log")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn synced_frames_survive(steps in prop::collection::vec(step(), 1..60), preallocate: bool, short_writes: bool, seed: u64) {
        let mut storage = SimStorage::new(seed);
        storage.set_faults(Faults { short_writes, ..Faults::default() });
        let mut epoch = Epoch::new(1);
        let mut log = open(&storage, options(preallocate), epoch).0;
        let mut model: Model = Vec::new();
        let mut follower = read_again(&log, at(0));
        for (number, step) in steps.into_iter().enumerate() {
            let tail = log.tail();
            match step {
                Step::Append { bytes, count } => {
                    let first_offset = tail.next_offset;
                    // What comes in the place of a frame that was cut is another one.
                    let payload = payload(at(first_offset.get() + number as u64 * 1000), bytes);
                    let parts: Vec<&[u8]> = payload.chunks(700).collect();
                    log.append(epoch, Frame { first_offset, count, payload: &parts }).unwrap();
                    model.push((first_offset, count, payload));
                }
                Step::Sync => {
                    log.sync().unwrap();
                    prop_assert_eq!(log.tail().durable_offset, tail.next_offset);
                }
                Step::Seal => {
                    epoch = Epoch::new(epoch.get() + 1);
                    prop_assert_eq!(log.raise_epoch(epoch).unwrap().epoch, epoch);
                }
                Step::Close => log.close().unwrap(),
                Step::Trim { back } => {
                    let before = at(tail.durable_offset.get().saturating_sub(back));
                    log.trim(before).unwrap();
                    prop_assert!(log.tail().oldest_offset <= before.max(tail.oldest_offset));
                }
                Step::Truncate { back } => {
                    let kept = model.len().saturating_sub(back);
                    let to = model.get(kept).map_or(tail.next_offset, |frame| frame.0);
                    let to = to.max(tail.oldest_offset);
                    let truncated = log.truncate_from(to).unwrap();
                    prop_assert_eq!((truncated.next_offset, truncated.epoch), (to, epoch));
                    prop_assert_eq!(truncated.durable_offset, to);
                    model.retain(|frame| end_of(frame) <= to);
                    if follower.offset() > to {
                        let told = follower.next();
                        prop_assert!(matches!(told, Err(LogError::CutAway { .. })), "{:?}", told);
                        follower = read_again(&log, to);
                    }
                }
                Step::Restart => {
                    drop(log);
                    log = open(&storage, options(preallocate), epoch).0;
                    follower = read_again(&log, follower.offset());
                    prop_assert_eq!(log.tail().durable_offset, tail.next_offset);
                }
                Step::Crash { seed } => {
                    storage = storage.crash(seed);
                    storage.set_faults(Faults { short_writes, ..Faults::default() });
                    let (reopened, recovery) = open(&storage, options(preallocate), epoch);
                    log = reopened;
                    let next = recovery.tail.next_offset;
                    prop_assert!(next >= tail.durable_offset, "lost synced transactions: {} < {}", next, tail.durable_offset);
                    model.retain(|frame| end_of(frame) <= next);
                    let model_next = model.last().map_or(at(0), end_of);
                    prop_assert!(next == model_next, "a frame is half there");
                    prop_assert_eq!(recovery.tail.epoch, epoch);
                    follower = read_again(&log, follower.offset());
                }
            }
            check(&log, &model);
            // It reads on in one go, through trims, cuts and new segments.
            let from = follower.offset();
            let durable = log.tail().durable_offset;
            let is_new = |frame: &&(LogOffset, u32, Vec<u8>)| end_of(frame) > from && end_of(frame) <= durable;
            let expected: Vec<_> = model.iter().filter(is_new).cloned().collect();
            prop_assert_eq!(read_on(&mut follower), expected);
        }
    }

    #[test]
    fn any_failure_poisons_and_loses_nothing_acknowledged(
        sizes in prop::collection::vec(0..2500usize, 1..25),
        kind in 0..4u8,
        nth in 0..60u64,
        preallocate: bool,
        seed: u64,
    ) {
        let storage = SimStorage::new(seed);
        let mut log = open(&storage, options(preallocate), EPOCH).0;
        let done = storage.counts();
        storage.set_faults(match kind {
            0 => Faults { fail_writes_from: Some(done.writes + nth), ..Faults::default() },
            1 => Faults { tear_write: Some(done.writes + nth), ..Faults::default() },
            2 => Faults { fail_sync: Some(done.syncs + nth), ..Faults::default() },
            _ => Faults { fail_names_from: Some(done.names + nth % 4), ..Faults::default() },
        });
        let mut acknowledged = at(0);
        let mut written = at(0);
        let mut failed = false;
        for (number, bytes) in sizes.iter().enumerate() {
            let first_offset = at(number as u64);
            let frame = payload(first_offset, *bytes);
            let appended = log.append(EPOCH, Frame { first_offset, count: 1, payload: &[&frame] });
            if !failed {
                written = first_offset + 1;
            }
            match appended.and_then(|()| log.sync()) {
                Ok(()) => {
                    prop_assert!(!failed, "a poisoned log took a frame");
                    acknowledged = first_offset + 1;
                }
                Err(LogError::Poisoned { cause }) => {
                    prop_assert!(cause.to_string().contains("injected"), "{}", cause);
                    failed = true;
                }
                Err(error) => prop_assert!(false, "not poisoned but {}", error),
            }
        }
        if failed {
            prop_assert!(matches!(log.sync(), Err(LogError::Poisoned { .. })), "sync is refused");
            prop_assert!(matches!(log.raise_epoch(Epoch::new(9)), Err(LogError::Poisoned { .. })), "a new epoch is refused");
        }
        let storage = storage.crash(seed ^ 1);
        let (log, recovery) = open(&storage, options(preallocate), EPOCH);
        prop_assert!((acknowledged..=written).contains(&recovery.tail.next_offset));
        for (number, (first, count, bytes)) in read_all(&log).into_iter().enumerate() {
            prop_assert_eq!((first, count), (at(number as u64), 1));
            prop_assert_eq!(bytes, payload(first, sizes[number]));
        }
    }
}

/// A crash while the torn tail is being cut must not turn the rest into damage.
#[test]
fn crash_while_cutting_the_tail() {
    for seed in 0..200 {
        let storage = SimStorage::new(seed);
        let mut log = open(&storage, options(true), EPOCH).0;
        for first_offset in (0..6).map(at) {
            let frame = payload(first_offset, 900);
            log.append(
                EPOCH,
                Frame {
                    first_offset,
                    count: 1,
                    payload: &[&frame],
                },
            )
            .unwrap();
            if first_offset == at(2) {
                log.sync().unwrap();
            }
        }
        let mut storage = storage.crash(seed);
        for again in 0..4 {
            // Fails at one of the syncs of the opening, or not at all.
            storage.set_faults(Faults {
                fail_sync: Some(again),
                ..Faults::default()
            });
            let _ = LocalLog::open_on(
                std::sync::Arc::new(storage.clone()),
                DIRECTORY.as_ref(),
                options(true),
            );
            storage = storage.crash(seed * 10 + again);
        }
        let (log, recovery) = open(&storage, options(true), EPOCH);
        assert!(
            (at(3)..=at(6)).contains(&recovery.tail.next_offset),
            "seed {seed}"
        );
        assert_eq!(at(read_all(&log).len() as u64), recovery.tail.next_offset);
    }
}
