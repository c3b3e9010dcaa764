//! Group commit.

use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::{at, open, read_all, segments, EPOCH};
use lightcone_log::{
    CommitEvent, Epoch, Followed, Frame, FrameRef, LocalLog, Log, LogError, LogFeed, LogOffset,
    LogOptions, LogWriter, LogWriterOptions, MemoryLog, ProposeError, Tail,
};
use lightcone_storage::sim::{Faults, SimStorage};

/// A log whose syncs wait for a permit, so that a test decides what gathers meanwhile.
struct Gated {
    inner: MemoryLog,
    permits: mpsc::Receiver<()>,
    frames: Arc<Mutex<Vec<(u64, u32, usize)>>>,
}

impl Log for Gated {
    fn append(&mut self, epoch: Epoch, frame: Frame<'_>) -> Result<(), LogError> {
        self.frames.lock().unwrap().push((
            frame.first_offset.get(),
            frame.count,
            frame.payload.concat().len(),
        ));
        self.inner.append(epoch, frame)
    }
    fn sync(&mut self) -> Result<(), LogError> {
        let _ = self.permits.recv();
        self.inner.sync()
    }
    fn feed(&self) -> LogFeed {
        self.inner.feed()
    }
    fn raise_epoch(&mut self, epoch: Epoch) -> Result<Tail, LogError> {
        self.inner.raise_epoch(epoch)
    }
    fn truncate_from(&mut self, offset: LogOffset) -> Result<Tail, LogError> {
        self.inner.truncate_from(offset)
    }
    fn trim(&mut self, before_offset: LogOffset) -> Result<u64, LogError> {
        self.inner.trim(before_offset)
    }
    fn tail(&self) -> Tail {
        self.inner.tail()
    }
    fn close(&mut self) -> Result<(), LogError> {
        Ok(())
    }
}

fn events() -> (
    mpsc::Receiver<CommitEvent>,
    Box<dyn FnMut(CommitEvent) + Send>,
) {
    let (sender, receiver) = mpsc::channel();
    (receiver, Box::new(move |event| drop(sender.send(event))))
}

fn durable(event: CommitEvent) -> u64 {
    match event {
        CommitEvent::Committed { next_offset } => next_offset.get(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_gathers_during_a_sync_goes_out_together() {
    let (permit, permits) = mpsc::channel();
    let frames = Arc::new(Mutex::new(Vec::new()));
    let log = Gated {
        inner: MemoryLog::new(),
        permits,
        frames: frames.clone(),
    };
    let (receiver, on_event) = events();
    let options = LogWriterOptions {
        frame_bytes_max: 100,
        ..LogWriterOptions::default()
    };
    let committer = LogWriter::spawn(Box::new(log), options, on_event);
    committer.propose(at(0), 1, vec![0; 10]).unwrap();
    while frames.lock().unwrap().is_empty() {
        std::thread::sleep(Duration::from_millis(1));
    }
    for offset in 1..=10 {
        committer.propose(at(offset), 1, vec![0; 30]).unwrap();
    }
    committer.propose(at(11), 5, vec![0; 1000]).unwrap();
    assert_eq!(committer.committed_offset(), at(0));
    assert_eq!(committer.stats().queue_bytes, 1310);
    permit.send(()).unwrap();
    assert_eq!(durable(receiver.recv().unwrap()), 1);
    permit.send(()).unwrap();
    assert_eq!(durable(receiver.recv().unwrap()), 16);
    committer.wait_committed(at(16)).unwrap();
    assert_eq!(
        *frames.lock().unwrap(),
        [
            (0, 1, 10),
            (1, 3, 90),
            (4, 3, 90),
            (7, 3, 90),
            (10, 1, 30),
            (11, 5, 1000)
        ]
    );
    permit.send(()).unwrap();
    let spare = committer.propose(at(16), 1, vec![0; 10]).unwrap().spare;
    assert!(spare.is_empty() && spare.capacity() > 0);
    assert_eq!(durable(receiver.recv().unwrap()), 17);
    assert_eq!(committer.shutdown().unwrap().tail().next_offset, at(17));
}

/// A few that gathered during a sync wait for others, so that those share the next sync.
#[test]
fn a_few_wait_for_more() {
    let (permit, permits) = mpsc::channel();
    let frames = Arc::new(Mutex::new(Vec::new()));
    let log = Gated {
        inner: MemoryLog::new(),
        permits,
        frames: frames.clone(),
    };
    let (receiver, on_event) = events();
    let options = LogWriterOptions {
        gather_us_max: 60_000_000,
        ..LogWriterOptions::default()
    };
    let committer = LogWriter::spawn(Box::new(log), options, on_event);
    committer.propose(at(0), 1, vec![0; 10]).unwrap();
    while frames.lock().unwrap().is_empty() {
        std::thread::sleep(Duration::from_millis(1));
    }
    committer.propose(at(1), 1, vec![0; 10]).unwrap();
    // The next sync waits as long as this one takes: long enough for a submission that comes late.
    std::thread::sleep(Duration::from_secs(1));
    permit.send(()).unwrap();
    assert_eq!(durable(receiver.recv().unwrap()), 1);
    std::thread::sleep(Duration::from_millis(100));
    committer.propose(at(2), 1, vec![0; 10]).unwrap();
    // One to spare: should this fail, the committer still ends.
    permit.send(()).unwrap();
    permit.send(()).unwrap();
    assert_eq!(durable(receiver.recv().unwrap()), 3);
    assert_eq!(*frames.lock().unwrap(), [(0, 1, 10), (1, 2, 20)]);
    assert!(committer.shutdown().is_ok());
}

#[test]
fn a_full_queue_blocks_the_submitter() {
    let (permit, permits) = mpsc::channel();
    let log = Gated {
        inner: MemoryLog::new(),
        permits,
        frames: Arc::default(),
    };
    let (_receiver, on_event) = events();
    let options = LogWriterOptions {
        queue_bytes_max: 100,
        ..LogWriterOptions::default()
    };
    let committer = Arc::new(LogWriter::spawn(Box::new(log), options, on_event));
    committer.propose(at(0), 1, vec![0; 70]).unwrap();
    let submitted = Arc::new(Mutex::new(false));
    let thread = std::thread::spawn({
        let (committer, submitted) = (committer.clone(), submitted.clone());
        move || {
            committer.wait_for_room(70);
            committer.propose(at(1), 1, vec![0; 70]).unwrap();
            *submitted.lock().unwrap() = true;
            // Larger than the whole queue: taken once it is alone.
            committer.wait_for_room(700);
            committer.propose(at(2), 1, vec![0; 700]).unwrap();
        }
    });
    std::thread::sleep(Duration::from_millis(50));
    assert!(!*submitted.lock().unwrap());
    for _ in 0..3 {
        permit.send(()).unwrap();
    }
    thread.join().unwrap();
    committer.wait_committed(at(3)).unwrap();
}

#[test]
fn mistakes_of_the_caller() {
    let (_receiver, on_event) = events();
    let committer = LogWriter::spawn(
        Box::new(MemoryLog::new()),
        LogWriterOptions::default(),
        on_event,
    );
    for (first_offset, count) in [(1, 1), (0, 0)] {
        assert!(matches!(
            committer.propose(at(first_offset), count, vec![]),
            Err(ProposeError::Unfit { expected, .. }) if expected == at(0)
        ));
    }
    committer.propose(at(0), 3, vec![]).unwrap();
    committer.wait_committed(at(3)).unwrap();
    assert_eq!(committer.committed_offset(), at(3));
}

#[test]
fn a_failed_sync_poisons_once_and_for_good() {
    let storage = SimStorage::new(4);
    let log = open(&storage, LogOptions::default(), EPOCH).0;
    storage.set_faults(Faults {
        fail_sync: Some(storage.counts().syncs + 2),
        ..Faults::default()
    });
    let (receiver, on_event) = events();
    let committer = LogWriter::spawn(Box::new(log), LogWriterOptions::default(), on_event);
    for offset in 0..2 {
        committer.propose(at(offset), 1, vec![1; 50]).unwrap();
        assert_eq!(durable(receiver.recv().unwrap()), offset + 1);
    }
    committer.propose(at(2), 1, vec![1; 50]).unwrap();
    let CommitEvent::Poisoned { error } = receiver.recv().unwrap() else {
        panic!("not poisoned")
    };
    assert!(
        error.to_string().contains("injected failure of a sync"),
        "{error}"
    );
    assert!(error.to_string().ends_with("[LC0502]"));
    assert!(matches!(
        committer.wait_committed(at(3)),
        Err(ProposeError::Poisoned(_))
    ));
    assert!(matches!(
        committer.propose(at(3), 1, vec![]),
        Err(ProposeError::Poisoned(_))
    ));
    assert!(matches!(
        committer.shutdown(),
        Err(ProposeError::Poisoned(_))
    ));
    assert!(receiver.recv().is_err(), "no further event");
    // The write that failed to sync is gone after a power failure, the others are not.
    let log = open(&storage.crash(1), LogOptions::default(), EPOCH).0;
    assert_eq!(read_all(&log).len(), 2);
}

#[test]
fn trims_and_ends_properly() {
    let storage = SimStorage::new(4);
    let options = LogOptions {
        segment_bytes: 5000,
        ..LogOptions::default()
    };
    let log = open(&storage, options.clone(), EPOCH).0;
    let (_receiver, on_event) = events();
    let committer = LogWriter::spawn(Box::new(log), LogWriterOptions::default(), on_event);
    for offset in 0..50 {
        committer.propose(at(offset), 1, vec![1; 200]).unwrap();
        committer.wait_committed(at(offset + 1)).unwrap();
    }
    let before = segments(&storage).len();
    committer.trim(at(40));
    let stats = committer.stats();
    assert_eq!(
        (
            stats.transactions,
            stats.log_bytes,
            stats.syncs,
            stats.queue_bytes
        ),
        (50, 50 * 252, 50, 0)
    );
    let log = committer.shutdown().unwrap();
    assert!(segments(&storage).len() < before / 2);
    assert!(log.tail().oldest_offset <= at(40));
    drop(log);
    let log = open(&storage.crash(1), options, EPOCH).0;
    assert_eq!(log.tail().next_offset, at(50));
}

#[test]
fn a_panicking_listener_hangs_no_waiter() {
    let committer = LogWriter::spawn(
        Box::new(MemoryLog::new()),
        LogWriterOptions::default(),
        Box::new(|_| panic!("on purpose")),
    );
    committer.propose(at(0), 1, vec![]).unwrap();
    assert!(committer.wait_committed(at(2)).is_err());
    assert!(committer.propose(at(1), 1, vec![]).is_err());
    assert!(committer.shutdown().is_err());
}

/// A log whose syncs panic.
struct Panicking(MemoryLog);

impl Log for Panicking {
    fn append(&mut self, epoch: Epoch, frame: Frame<'_>) -> Result<(), LogError> {
        self.0.append(epoch, frame)
    }
    fn sync(&mut self) -> Result<(), LogError> {
        panic!("the sync panicked on purpose")
    }
    fn feed(&self) -> LogFeed {
        self.0.feed()
    }
    fn raise_epoch(&mut self, epoch: Epoch) -> Result<Tail, LogError> {
        self.0.raise_epoch(epoch)
    }
    fn truncate_from(&mut self, offset: LogOffset) -> Result<Tail, LogError> {
        self.0.truncate_from(offset)
    }
    fn trim(&mut self, before_offset: LogOffset) -> Result<u64, LogError> {
        self.0.trim(before_offset)
    }
    fn tail(&self) -> Tail {
        self.0.tail()
    }
    fn close(&mut self) -> Result<(), LogError> {
        Ok(())
    }
}

#[test]
fn a_panicking_log_is_an_event_like_any_other_failure() {
    let (receiver, on_event) = events();
    let log = Box::new(Panicking(MemoryLog::new()));
    let committer = LogWriter::spawn(log, LogWriterOptions::default(), on_event);
    committer.propose(at(0), 1, vec![1; 50]).unwrap();
    let event = receiver.recv_timeout(Duration::from_secs(20));
    let Ok(CommitEvent::Poisoned { error }) = event else {
        panic!("the listener hears nothing: {event:?}");
    };
    assert!(error.to_string().contains("the sync panicked on purpose"));
    assert!(error.to_string().contains("[LC0538]"));
    assert!(committer.wait_committed(at(1)).is_err());
    assert!(committer.propose(at(1), 1, vec![]).is_err());
    assert!(committer.shutdown().is_err());
}

/// A log that forgets its last transaction.
struct Forgetful(MemoryLog);

impl Log for Forgetful {
    fn append(&mut self, epoch: Epoch, frame: Frame<'_>) -> Result<(), LogError> {
        self.0.append(epoch, frame)
    }
    fn sync(&mut self) -> Result<(), LogError> {
        self.0.sync()
    }
    fn feed(&self) -> LogFeed {
        self.0.feed()
    }
    fn raise_epoch(&mut self, epoch: Epoch) -> Result<Tail, LogError> {
        self.0.raise_epoch(epoch)
    }
    fn truncate_from(&mut self, offset: LogOffset) -> Result<Tail, LogError> {
        self.0.truncate_from(offset)
    }
    fn trim(&mut self, before_offset: LogOffset) -> Result<u64, LogError> {
        self.0.trim(before_offset)
    }
    fn tail(&self) -> Tail {
        let tail = self.0.tail();
        Tail {
            durable_offset: at(tail.durable_offset.get().saturating_sub(1)),
            ..tail
        }
    }
    fn close(&mut self) -> Result<(), LogError> {
        Ok(())
    }
}

#[test]
fn what_the_log_has_not_made_durable_is_not_reported() {
    let (receiver, on_event) = events();
    let log = Box::new(Forgetful(MemoryLog::new()));
    let committer = LogWriter::spawn(log, LogWriterOptions::default(), on_event);
    committer.propose(at(0), 2, vec![1; 50]).unwrap();
    let event = receiver.recv_timeout(Duration::from_secs(20));
    let Ok(CommitEvent::Poisoned { error }) = event else {
        panic!("the listener hears of something else: {event:?}");
    };
    assert!(error.is_bug(), "{error}");
    assert_eq!(committer.committed_offset(), at(0));
    assert!(committer.shutdown().is_err());
}

#[test]
fn a_failed_log_can_be_read_by_one() {
    let storage = SimStorage::new(4);
    let log = open(&storage, LogOptions::default(), EPOCH).0;
    let (receiver, on_event) = events();
    let committer = LogWriter::spawn(Box::new(log), LogWriterOptions::default(), on_event);
    committer.propose(at(0), 2, vec![1; 50]).unwrap();
    assert_eq!(durable(receiver.recv().unwrap()), 2);
    assert!(committer.failed_log().is_none(), "it works");
    storage.set_faults(Faults {
        fail_sync: Some(storage.counts().syncs),
        ..Faults::default()
    });
    committer.propose(at(2), 1, vec![2; 50]).unwrap();
    assert!(matches!(
        receiver.recv().unwrap(),
        CommitEvent::Poisoned { .. }
    ));
    let failed = committer.failed_log().expect("it failed");
    // What is durable, and no more.
    assert_eq!(read_all(&*failed), [(at(0), 2, vec![1; 50])]);
    assert!(committer.failed_log().is_none(), "one has it");
}

#[test]
fn only_what_is_given_back_passes() {
    let error = |raw| {
        let cause = LogError::Io {
            action: "write",
            path: "segment".into(),
            source: std::io::Error::from_raw_os_error(raw),
        };
        LogError::Poisoned {
            cause: Arc::new(cause),
        }
    };
    for errno in [rustix::io::Errno::MFILE, rustix::io::Errno::NFILE] {
        assert!(error(errno.raw_os_error()).is_passing());
    }
    for errno in [rustix::io::Errno::NOSPC, rustix::io::Errno::DQUOT] {
        assert!(error(errno.raw_os_error()).is_passing());
    }
    for errno in [rustix::io::Errno::IO, rustix::io::Errno::ROFS] {
        assert!(!error(errno.raw_os_error()).is_passing());
    }
    let fenced = LogError::Fenced {
        epoch: Epoch::new(1),
        current: Epoch::new(2),
    };
    assert!(!fenced.is_passing() && !fenced.is_bug());
}

#[test]
fn work_that_never_runs_is_an_end() {
    let (_, on_event) = events();
    let options = LogWriterOptions::default();
    let committer = LogWriter::start(Box::new(MemoryLog::new()), options, on_event, drop);
    assert!(matches!(
        committer.wait_committed(at(1)),
        Err(ProposeError::Closed)
    ));
    assert!(matches!(committer.shutdown(), Err(ProposeError::Closed)));
}

#[test]
fn a_dropped_committer_has_given_its_files_back() {
    let directory = tempfile::tempdir().expect("a directory");
    for _ in 0..300 {
        let (log, _) =
            LocalLog::open(directory.path(), LogOptions::default()).expect("its lock is free");
        let (_, on_event) = events();
        drop(LogWriter::spawn(
            Box::new(log),
            LogWriterOptions::default(),
            on_event,
        ));
    }
}

/// A log that others have too.
struct Shared(Arc<Mutex<LocalLog>>);

impl Log for Shared {
    fn append(&mut self, epoch: Epoch, frame: Frame<'_>) -> Result<(), LogError> {
        self.0.lock().unwrap().append(epoch, frame)
    }
    fn follow(&mut self, leader: Epoch, frame: FrameRef<'_>) -> Result<(), LogError> {
        self.0.lock().unwrap().follow(leader, frame)
    }
    fn sync(&mut self) -> Result<(), LogError> {
        self.0.lock().unwrap().sync()
    }
    fn feed(&self) -> LogFeed {
        self.0.lock().unwrap().feed()
    }
    fn raise_epoch(&mut self, epoch: Epoch) -> Result<Tail, LogError> {
        self.0.lock().unwrap().raise_epoch(epoch)
    }
    fn truncate_from(&mut self, offset: LogOffset) -> Result<Tail, LogError> {
        self.0.lock().unwrap().truncate_from(offset)
    }
    fn trim(&mut self, before_offset: LogOffset) -> Result<u64, LogError> {
        self.0.lock().unwrap().trim(before_offset)
    }
    fn tail(&self) -> Tail {
        self.0.lock().unwrap().tail()
    }
    fn close(&mut self) -> Result<(), LogError> {
        self.0.lock().unwrap().close()
    }
}

/// What it has proposed is refused, and nothing of it stays.
#[test]
fn a_writer_stops_when_a_newer_one_has_taken_over() {
    let storage = SimStorage::new(4);
    let log = open(&storage, LogOptions::default(), EPOCH).0;
    let log = Arc::new(Mutex::new(log));
    let (receiver, on_event) = events();
    let spawn = |on_event| {
        let log = Box::new(Shared(log.clone()));
        LogWriter::spawn(log, LogWriterOptions::default(), on_event)
    };
    let committer = spawn(on_event);
    committer.propose(at(0), 2, vec![1; 50]).unwrap();
    assert_eq!(durable(receiver.recv().unwrap()), 2);
    log.lock().unwrap().raise_epoch(Epoch::new(2)).unwrap();
    committer.propose(at(2), 1, vec![2; 50]).unwrap();
    let event = receiver.recv().unwrap();
    let CommitEvent::Poisoned { error } = event else {
        panic!("{event:?}");
    };
    assert!(matches!(error.root(), LogError::Fenced { .. }), "{error}");
    assert!(committer.wait_committed(at(3)).is_err());
    assert!(committer.propose(at(3), 1, vec![2; 50]).is_err());
    assert_eq!(committer.committed_offset(), at(2));
    drop(committer.failed_log().expect("it failed"));
    let (_receiver, on_event) = events();
    let newer = spawn(on_event);
    newer.propose(at(2), 1, vec![3; 50]).unwrap();
    newer.wait_committed(at(3)).unwrap();
    let frames = [(at(0), 2, vec![1; 50]), (at(2), 1, vec![3; 50])];
    assert_eq!(read_all(&*log.lock().unwrap()), frames);
}

/// Also those that wait for the disk together.
#[test]
fn frames_that_are_followed_stay_as_they_are() {
    let (one, other) = (SimStorage::new(4), SimStorage::new(5));
    let mut leader = open(&one, LogOptions::default(), EPOCH).0;
    for count in 1..40u32 {
        let first_offset = leader.tail().next_offset;
        let payload = vec![count as u8; 30];
        let frame = Frame {
            first_offset,
            count,
            payload: &[&payload],
        };
        leader.append(EPOCH, frame).unwrap();
    }
    leader.sync().unwrap();
    let log = open(&other, LogOptions::default(), EPOCH).0;
    let (_receiver, on_event) = events();
    let committer = LogWriter::spawn(Box::new(log), LogWriterOptions::default(), on_event);
    let mut reader = leader.feed().read(at(0)).unwrap();
    while let Some(frame) = reader.next().unwrap() {
        let followed = Followed {
            leader: EPOCH,
            epoch: frame.epoch,
            hash: frame.hash,
        };
        let payload = frame.payload.to_vec();
        let proposed = committer.follow(frame.first_offset, frame.count, payload, followed);
        proposed.unwrap();
    }
    let log = committer.shutdown().unwrap();
    assert_eq!(log.tail().hash, leader.tail().hash);
    assert_eq!(read_all(&*log), read_all(&leader));
}
