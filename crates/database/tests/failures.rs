//! What clients and callers of a database see when its disk or one of its threads fails.

mod common;

use std::any::Any;
use std::io::{self, IoSlice};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::Arc;
use std::time::Duration;

use common::{caller, create, open, options, Client, OWNER, STRANGER};
use lightcone_database::{
    disk, CallArgs, CallError, DatabaseHandle, DatabaseOptions, Outgoing, ShutdownReason, Storage,
};
use lightcone_storage::{File, OpenMode};
use lightcone_wire::{ClientMessage, ServerMessage};

const ENOSPC: i32 = 28;
const EIO: i32 = 5;

/// What is wrong with the disk at present.
#[derive(Default)]
struct Faults {
    /// Writes to the log fail with this number.
    log_write: AtomicI32,
    /// Syncs of the log panic.
    log_sync_panics: AtomicBool,
    /// Files of snapshots cannot be made without a panic.
    snapshot_panics: AtomicBool,
    /// Whoever makes a file of a snapshot waits.
    snapshot_waits: AtomicBool,
}

struct FaultyDisk(Arc<dyn Storage>, Arc<Faults>);

struct FaultyFile {
    file: Box<dyn File>,
    faults: Arc<Faults>,
    is_log: bool,
}

impl Storage for FaultyDisk {
    fn create_directory(&self, directory: &Path) -> io::Result<()> {
        self.0.create_directory(directory)
    }
    fn list(&self, directory: &Path) -> io::Result<Vec<String>> {
        self.0.list(directory)
    }
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Box<dyn File>> {
        let is_in = |name| path.parent().is_some_and(|parent| parent.ends_with(name));
        if is_in("snapshots") && mode == OpenMode::CreateNew {
            while self.1.snapshot_waits.load(Ordering::SeqCst) {
                std::thread::sleep(Duration::from_millis(2));
            }
            if self.1.snapshot_panics.load(Ordering::SeqCst) {
                panic!("the snapshot panicked on purpose");
            }
        }
        Ok(Box::new(FaultyFile {
            file: self.0.open(path, mode)?,
            faults: self.1.clone(),
            is_log: is_in("log"),
        }))
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.0.rename(from, to)
    }
    fn remove(&self, path: &Path) -> io::Result<()> {
        self.0.remove(path)
    }
    fn sync_directory(&self, directory: &Path) -> io::Result<()> {
        self.0.sync_directory(directory)
    }
    fn lock(&self, path: &Path) -> io::Result<Box<dyn Any + Send + Sync>> {
        self.0.lock(path)
    }
    fn run_in_background(&self, name: &str, task: Box<dyn FnOnce() + Send>) -> io::Result<()> {
        self.0.run_in_background(name, task)
    }
    fn random_u64(&self) -> u64 {
        self.0.random_u64()
    }
}

impl File for FaultyFile {
    fn length(&self) -> io::Result<u64> {
        self.file.length()
    }
    fn read_at(&self, buffer: &mut [u8], position: u64) -> io::Result<usize> {
        self.file.read_at(buffer, position)
    }
    fn write_vectored_at(&self, parts: &[IoSlice<'_>], position: u64) -> io::Result<usize> {
        match self.faults.log_write.load(Ordering::SeqCst) {
            number if number != 0 && self.is_log => Err(io::Error::from_raw_os_error(number)),
            _ => self.file.write_vectored_at(parts, position),
        }
    }
    fn set_length(&self, length: u64) -> io::Result<()> {
        self.file.set_length(length)
    }
    fn sync_data(&self) -> io::Result<()> {
        if self.is_log && self.faults.log_sync_panics.load(Ordering::SeqCst) {
            panic!("the sync panicked on purpose");
        }
        self.file.sync_data()
    }
}

fn faulty(directory: &Path) -> (DatabaseOptions, Arc<Faults>) {
    let faults = Arc::new(Faults::default());
    let mut options = options(directory);
    options.storage = Arc::new(FaultyDisk(disk(), faults.clone()));
    (options, faults)
}

async fn call(database: &DatabaseHandle, function: &str, args: &str) -> Result<(), CallError> {
    let args = CallArgs::Json(args.to_owned());
    let called = database.call(caller(OWNER), function, args);
    let outcome = tokio::time::timeout(Duration::from_secs(60), called).await;
    outcome.expect("nobody waits for ever").map(drop)
}

async fn balance(database: &DatabaseHandle, account: u32) -> String {
    let text = format!("SELECT balance FROM accounts WHERE id = {account}");
    let answered = database.sql(caller(STRANGER), text, true);
    let outcome = tokio::time::timeout(Duration::from_secs(60), answered).await;
    let outcome = outcome.expect("nobody waits for ever");
    outcome
        .unwrap_or_else(|error| panic!("{error:?}"))
        .rows_json
}

/// Waits for something that other threads do.
async fn until(what: &str, is_so: impl Fn() -> bool) {
    for _ in 0..30_000 {
        if is_so() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    panic!("never: {what}");
}

fn manifests(directory: &Path) -> usize {
    let names = disk()
        .list(&directory.join("snapshots"))
        .unwrap_or_default();
    names
        .iter()
        .filter(|name| name.ends_with(".manifest"))
        .count()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_of_the_log_is_heard_by_all_who_wait() {
    let directory = tempfile::tempdir().unwrap();
    let (options, faults) = faulty(directory.path());
    let database = create(options.clone(), "transfer").await;
    call(&database, "seed", "[10, 1000]").await.expect("seeded");
    faults.log_sync_panics.store(true, Ordering::SeqCst);
    call(&database, "transfer", "[1, 2, 5]")
        .await
        .expect_err("it is not durable");
    until("the database has stopped", || !database.is_running()).await;
    drop(database);
    // Whoever comes next opens it, as after any other failure of a thread.
    faults.log_sync_panics.store(false, Ordering::SeqCst);
    let database = open(options).await;
    call(&database, "transfer", "[1, 2, 5]")
        .await
        .expect("works");
    database.shutdown(ShutdownReason::ServerStop).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_leaves_the_durable_state_to_read_and_passes() {
    let directory = tempfile::tempdir().unwrap();
    let (options, faults) = faulty(directory.path());
    let database = create(options.clone(), "transfer").await;
    call(&database, "seed", "[10, 1000]").await.expect("seeded");
    call(&database, "transfer", "[1, 2, 5]")
        .await
        .expect("works");
    let mut unconfirmed = Client::connect_with(&database, STRANGER, 7, false).await;
    let mut confirmed = Client::connect(&database, STRANGER, 8).await;

    faults.log_write.store(ENOSPC, Ordering::SeqCst);
    let refused = call(&database, "transfer", "[1, 2, 100]").await;
    assert!(
        matches!(&refused, Err(CallError::Database(text)) if text.contains("LC0502")),
        "{refused:?}"
    );
    // The failed transfer is not seen, also by those who read what is confirmed only.
    assert_eq!(balance(&database, 1).await, "[[995]]");
    confirmed
        .send(&[ClientMessage::Subscribe {
            request_id: 1,
            query_set_id: 1,
            query_strings: vec!["SELECT * FROM accounts WHERE id = 1"],
        }])
        .await;
    let ServerMessage::SubscribeApplied { rows, .. } = confirmed.next().await else {
        panic!("applied")
    };
    assert_eq!(rows.tables[0].rows.len(), 1);
    let closed = unconfirmed.connection.outgoing.recv().await;
    assert!(
        matches!(&closed, Some(Outgoing::Close { code: 1001, reason }) if reason.contains("read-only")),
        "{closed:?}"
    );
    let refused = call(&database, "transfer", "[1, 2, 100]").await;
    assert!(refused.is_err());
    assert!(database.read_only().expect("it is").contains("LC0537"));
    assert!(database.may_work_again());
    assert!(database.try_disk().is_err(), "the disk is still full");

    faults.log_write.store(0, Ordering::SeqCst);
    database.try_disk().expect("the disk takes data");
    database.shutdown(ShutdownReason::Reopen).await;
    let database = open(options).await;
    assert_eq!(balance(&database, 1).await, "[[995]]");
    call(&database, "transfer", "[1, 2, 100]")
        .await
        .expect("works");
    assert_eq!(balance(&database, 1).await, "[[895]]");
    database.shutdown(ShutdownReason::ServerStop).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_input_output_error_does_not_pass() {
    let directory = tempfile::tempdir().unwrap();
    let (options, faults) = faulty(directory.path());
    let database = create(options, "transfer").await;
    call(&database, "seed", "[10, 1000]").await.expect("seeded");
    faults.log_write.store(EIO, Ordering::SeqCst);
    assert!(call(&database, "transfer", "[1, 2, 100]").await.is_err());
    faults.log_write.store(0, Ordering::SeqCst);
    assert!(!database.may_work_again());
    assert!(call(&database, "transfer", "[1, 2, 100]").await.is_err());
    assert_eq!(balance(&database, 1).await, "[[1000]]");
    database.shutdown(ShutdownReason::ServerStop).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_snapshot_that_panicked_others_are_written() {
    let directory = tempfile::tempdir().unwrap();
    let (mut options, faults) = faulty(directory.path());
    options.limits.snapshot_log_bytes = 1;
    faults.snapshot_panics.store(true, Ordering::SeqCst);
    let database = create(options, "transfer").await;
    call(&database, "seed", "[10, 1000]").await.expect("seeded");
    call(&database, "transfer", "[1, 2, 5]")
        .await
        .expect("works");
    assert_eq!(manifests(directory.path()), 0);
    faults.snapshot_panics.store(false, Ordering::SeqCst);
    for _ in 0..3000 {
        call(&database, "transfer", "[1, 2, 1]")
            .await
            .expect("works");
        if manifests(directory.path()) > 0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(manifests(directory.path()) > 0, "no snapshot is written");
    database.shutdown(ShutdownReason::ServerStop).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_gives_up_a_running_snapshot() {
    let directory = tempfile::tempdir().unwrap();
    let (mut options, faults) = faulty(directory.path());
    options.limits.snapshot_log_bytes = 1;
    faults.snapshot_waits.store(true, Ordering::SeqCst);
    let database = create(options, "transfer").await;
    call(&database, "seed", "[1000, 1000]")
        .await
        .expect("seeded");
    let stopped = database.clone();
    let stop = tokio::spawn(async move { stopped.shutdown(ShutdownReason::ServerStop).await });
    until("the database stops", || !database.is_running()).await;
    faults.snapshot_waits.store(false, Ordering::SeqCst);
    let ended = tokio::time::timeout(Duration::from_secs(60), stop).await;
    ended.expect("the stop ends").expect("no panic");
    assert_eq!(manifests(directory.path()), 0, "it was written to its end");
}
