//! What clients and callers of a database see when its disk or one of its threads fails.

use crate::common;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use lightcone_database::{
    disk, CallArgs, CallError, Caller, Commons, ConnectError, ConnectRequest, Connection,
    DatabaseHandle, DatabaseOptions, HostKind, JsonRows, Limits, Machine, Outgoing, Protocol,
    Rights, ShutdownReason,
};
use lightcone_storage::sim::{HookedStorage, Hooks};
use lightcone_storage::{DiskReserve, OpenMode};
use lightcone_types::bsatn::Encode as _;
use lightcone_types::{ConnectionId, Identity};
use lightcone_wire::{ClientMessage, ServerMessage};

const ENOSPC: i32 = 28;
const EIO: i32 = 5;

/// What is wrong with the disk at present.
#[derive(Default)]
struct Faults {
    /// Writes to the log fail with this number.
    log_write: AtomicI32,
    /// Syncs of the log wait.
    log_sync_waits: AtomicBool,
    /// Syncs of the log panic.
    log_sync_panics: AtomicBool,
    /// Files of snapshots cannot be made without a panic.
    snapshot_panics: AtomicBool,
    snapshots_panicked: AtomicI32,
    /// A thread that makes a file of a snapshot waits.
    snapshot_waits: AtomicBool,
    /// How many have begun to wait.
    snapshots_waiting: AtomicI32,
    /// The first file of a snapshot makes this directory.
    snapshot_makes: OnceLock<PathBuf>,
}

impl Hooks for Faults {
    fn before_open(&self, path: &Path, mode: OpenMode) -> io::Result<()> {
        if !is_in(path, "snapshots") || mode != OpenMode::CreateNew {
            return Ok(());
        }
        if self.snapshot_waits.load(Ordering::SeqCst) {
            self.snapshots_waiting.fetch_add(1, Ordering::SeqCst);
        }
        while self.snapshot_waits.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(2));
        }
        if self.snapshot_panics.load(Ordering::SeqCst) {
            self.snapshots_panicked.fetch_add(1, Ordering::SeqCst);
            panic!("the snapshot panicked on purpose");
        }
        if let Some(made) = self.snapshot_makes.get() {
            let _ = std::fs::create_dir(made);
        }
        Ok(())
    }

    fn before_write(&self, path: &Path) -> io::Result<()> {
        match self.log_write.load(Ordering::SeqCst) {
            number if number != 0 && is_in(path, "log") => {
                Err(io::Error::from_raw_os_error(number))
            }
            _ => Ok(()),
        }
    }

    fn before_sync(&self, path: &Path) -> io::Result<()> {
        while is_in(path, "log") && self.log_sync_waits.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(2));
        }
        if is_in(path, "log") && self.log_sync_panics.load(Ordering::SeqCst) {
            panic!("the sync panicked on purpose");
        }
        Ok(())
    }
}

fn is_in(path: &Path, directory: &str) -> bool {
    path.parent()
        .is_some_and(|parent| parent.ends_with(directory))
}

const OWNER: Identity = Identity::from_le_bytes([7; 32]);

fn faulty(directory: &Path) -> (DatabaseOptions, Arc<Faults>) {
    let faults = Arc::new(Faults::default());
    let options = DatabaseOptions {
        directory: directory.to_owned(),
        identity: Identity::from_le_bytes([1; 32]),
        owner: OWNER,
        in_memory: false,
        limits: Limits::default(),
        engines: common::fake::engines(),
        commons: Commons::new(Machine::current(), 1 << 30, 2),
        storage: Arc::new(HookedStorage::new(disk(), faults.clone())),
        loads: Arc::default(),
        disk: Arc::default(),
        test_clock: None,
    };
    (options, faults)
}

fn caller() -> Caller {
    Caller {
        identity: OWNER,
        rights: Rights::default(),
        jwt_payload: "{}".into(),
    }
}

async fn create(options: DatabaseOptions) -> DatabaseHandle {
    let program = b"module".to_vec();
    let created = tokio::task::spawn_blocking(move || {
        DatabaseHandle::create(options, program, HostKind::Wasm)
    });
    created.await.expect("no panic").expect("it is created")
}

async fn open(options: DatabaseOptions) -> DatabaseHandle {
    let opened = tokio::task::spawn_blocking(move || DatabaseHandle::open(options));
    opened.await.expect("no panic").expect("it opens")
}

async fn connect(database: &DatabaseHandle, id: u128, confirmed: bool) -> Connection {
    let request = ConnectRequest {
        identity: OWNER,
        rights: Rights::default(),
        connection_id: ConnectionId(id),
        session_id: None,
        session_grace: Duration::ZERO,
        jwt_payload: "{}".into(),
        confirmed,
        protocol: Protocol::V2,
        token: "token".into(),
    };
    let mut connection = database.connect(request).await.expect("accepted");
    let first = next(&mut connection).await;
    assert!(matches!(first, ServerMessage::InitialConnection { .. }));
    connection
}

async fn next(connection: &mut Connection) -> ServerMessage {
    let next = tokio::time::timeout(Duration::from_secs(60), connection.outgoing.recv());
    match next.await.expect("in time") {
        Some(Outgoing::Messages(batch)) => {
            let decoded = lightcone_wire::payload::decode_messages(
                Protocol::V2,
                &batch.bytes[..batch.ends[0]],
            );
            decoded.expect("a message").remove(0)
        }
        other => panic!("{other:?}"),
    }
}

async fn add(database: &DatabaseHandle, id: u32) -> Result<(), CallError> {
    let args = CallArgs::Json(format!("[{id}, \"a name\"]"));
    let called = database.call(caller(), "add", args);
    let outcome = tokio::time::timeout(Duration::from_secs(60), called).await;
    outcome.expect("no caller waits for ever").map(drop)
}

/// The ids of all rows, by a confirmed read.
async fn people(database: &DatabaseHandle) -> String {
    let text = "SELECT id FROM person".to_owned();
    let answered = database.sql(caller(), text, true, JsonRows::default());
    let outcome = tokio::time::timeout(Duration::from_secs(60), answered).await;
    match outcome.expect("no caller waits for ever") {
        Ok(outcome) => outcome.text(),
        Err(error) => panic!("{error:?}"),
    }
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
    snapshot_files(directory, ".manifest")
}

/// Files of snapshots with such a text in their names.
fn snapshot_files(directory: &Path, text: &str) -> usize {
    let names = disk()
        .list(&directory.join("snapshots"))
        .unwrap_or_default();
    names.iter().filter(|name| name.contains(text)).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_of_the_log_is_heard_by_all_who_wait() {
    let directory = tempfile::tempdir().unwrap();
    let (options, faults) = faulty(directory.path());
    let database = create(options.clone()).await;
    add(&database, 1).await.expect("works");
    faults.log_sync_panics.store(true, Ordering::SeqCst);
    add(&database, 2).await.expect_err("it is not durable");
    until("the database has stopped", || !database.is_running()).await;
    database.ended().await;
    drop(database);
    // The next caller opens it, as after any other failure of a thread.
    faults.log_sync_panics.store(false, Ordering::SeqCst);
    let database = open(options).await;
    add(&database, 3).await.expect("works");
    assert!(people(&database).await.contains("[1]"));
    database.shutdown(ShutdownReason::ServerStop).await;
}

/// Sends a message of a client.
async fn send(connection: &Connection, message: ClientMessage<'_>) {
    let mut payload = Vec::new();
    message.encode(&mut payload);
    let sent = connection.sender.submit(Bytes::from(payload)).await;
    sent.expect("the connection lives");
}

/// The request ids of the next answers to calls.
async fn answered(connection: &mut Connection, count: usize) -> Vec<u32> {
    let mut ids = Vec::new();
    while ids.len() < count {
        let next = tokio::time::timeout(Duration::from_secs(60), connection.outgoing.recv());
        let Some(Outgoing::Messages(batch)) = next.await.expect("in time") else {
            panic!("the connection ended after {ids:?}");
        };
        let mut start = 0;
        for end in &batch.ends {
            let bytes = &batch.bytes[start..*end];
            let decoded = lightcone_wire::payload::decode_messages(Protocol::V2, bytes);
            match decoded.expect("a message").remove(0) {
                ServerMessage::ReducerResult { request_id, .. } => ids.push(request_id),
                other => panic!("{other:?}"),
            }
            start = *end;
        }
    }
    ids
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_wait_for_the_disk_and_keep_their_order() {
    let directory = tempfile::tempdir().unwrap();
    let (options, faults) = faulty(directory.path());
    let database = create(options).await;
    let mut patient = connect(&database, 7, true).await;
    let mut hasty = connect(&database, 8, false).await;
    // Rounds that change a row concern a client, and go by fan-out; those that do not are answered by the writer.
    let mut watching = connect(&database, 9, true).await;
    let subscribe = ClientMessage::Subscribe {
        request_id: 1,
        query_set_id: 1,
        query_strings: vec!["SELECT * FROM person"],
    };
    send(&watching, subscribe).await;
    let applied = next(&mut watching).await;
    assert!(matches!(applied, ServerMessage::SubscribeApplied { .. }));

    faults.log_sync_waits.store(true, Ordering::SeqCst);
    let calls = 1..=24_u32;
    for request_id in calls.clone() {
        let mut args = Vec::new();
        let reducer = match request_id % 3 {
            0 => {
                "no".encode(&mut args);
                "fail"
            }
            _ => {
                request_id.encode(&mut args);
                "a name".encode(&mut args);
                "add"
            }
        };
        let call = ClientMessage::CallReducer {
            request_id,
            reducer,
            args: &args,
        };
        send(&patient, call).await;
        // Some calls have a round of their own.
        if request_id % 4 == 0 {
            tokio::time::sleep(Duration::from_millis(3)).await;
        }
    }
    let mut args = Vec::new();
    "no".encode(&mut args);
    let call = ClientMessage::CallReducer {
        request_id: 1,
        reducer: "fail",
        args: &args,
    };
    send(&hasty, call).await;
    let wait = Duration::from_millis(200);
    let early = tokio::time::timeout(wait, patient.outgoing.recv()).await;
    assert!(early.is_err(), "nothing of it is durable: {early:?}");
    assert_eq!(answered(&mut hasty, 1).await, [1]);
    let early = tokio::time::timeout(wait, watching.outgoing.recv()).await;
    assert!(early.is_err(), "nothing of it is durable: {early:?}");
    faults.log_sync_waits.store(false, Ordering::SeqCst);
    let ids = answered(&mut patient, calls.clone().count()).await;
    assert_eq!(ids, calls.collect::<Vec<_>>());
    database.shutdown(ShutdownReason::ServerStop).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_leaves_the_durable_state_to_read_and_passes() {
    let directory = tempfile::tempdir().unwrap();
    let (options, faults) = faulty(directory.path());
    let database = create(options.clone()).await;
    add(&database, 1).await.expect("works");
    let mut unconfirmed = connect(&database, 7, false).await;
    let mut confirmed = connect(&database, 8, true).await;
    // So that the rows of the clients are durable.
    add(&database, 2).await.expect("works");

    faults.log_write.store(ENOSPC, Ordering::SeqCst);
    let refused = add(&database, 3).await;
    assert!(
        matches!(&refused, Err(CallError::Database(text)) if text.contains("LC0502")),
        "{refused:?}"
    );
    // What failed is not seen, also by those who read what is confirmed only.
    assert_eq!(people(&database).await, "[[1],[2]]");
    let subscribe = ClientMessage::Subscribe {
        request_id: 1,
        query_set_id: 1,
        query_strings: vec!["SELECT * FROM person"],
    };
    let mut payload = Vec::new();
    subscribe.encode(&mut payload);
    let sent = confirmed.sender.submit(Bytes::from(payload)).await;
    sent.expect("the connection lives");
    let ServerMessage::SubscribeApplied { rows, .. } = next(&mut confirmed).await else {
        panic!("applied")
    };
    assert_eq!(rows.tables[0].rows.len(), 2);
    let closed = unconfirmed.outgoing.recv().await;
    assert!(
        matches!(&closed, Some(Outgoing::Close { code: 1001, reason }) if reason.contains("read-only")),
        "{closed:?}"
    );
    add(&database, 4).await.expect_err("it is read-only");
    assert!(database.read_only().expect("it is").contains("LC0537"));
    assert!(database.may_work_again());
    assert!(database.try_disk().is_err(), "the disk is still full");

    faults.log_write.store(0, Ordering::SeqCst);
    database.try_disk().expect("the disk takes data");
    database.shutdown(ShutdownReason::Reopen).await;
    let database = open(options).await;
    assert_eq!(people(&database).await, "[[1],[2]]");
    add(&database, 5).await.expect("works");
    assert_eq!(people(&database).await, "[[1],[2],[5]]");
    database.shutdown(ShutdownReason::ServerStop).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_input_output_error_does_not_pass() {
    let directory = tempfile::tempdir().unwrap();
    let (options, faults) = faulty(directory.path());
    let database = create(options).await;
    add(&database, 1).await.expect("works");
    faults.log_write.store(EIO, Ordering::SeqCst);
    add(&database, 2).await.expect_err("it is not durable");
    faults.log_write.store(0, Ordering::SeqCst);
    assert!(!database.may_work_again());
    add(&database, 3).await.expect_err("it is read-only");
    let metrics = database.metrics();
    let mut functions = metrics.module.functions.iter();
    let of = functions.find(|of| &*of.name == "add").expect("a reducer");
    assert_eq!((of.calls(), of.refused), (2, 1));
    assert_eq!(people(&database).await, "[[1]]");
    database.shutdown(ShutdownReason::ServerStop).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_snapshot_that_panicked_others_are_written() {
    let directory = tempfile::tempdir().unwrap();
    let (mut options, faults) = faulty(directory.path());
    options.limits.snapshot_log_bytes = 1;
    faults.snapshot_panics.store(true, Ordering::SeqCst);
    let database = create(options).await;
    let mut id = 0;
    while faults.snapshots_panicked.load(Ordering::SeqCst) == 0 {
        id += 1;
        add(&database, id).await.expect("works");
        assert!(id < 3000, "no snapshot is begun");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(manifests(directory.path()), 0);
    faults.snapshot_panics.store(false, Ordering::SeqCst);
    for id in 3001..6000 {
        add(&database, id).await.expect("works");
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
    let database = create(options).await;
    let mut id = 0;
    while faults.snapshots_waiting.load(Ordering::SeqCst) == 0 {
        id += 1;
        add(&database, id).await.expect("works");
        assert!(id < 3000, "no snapshot is begun");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    add(&database, id + 1).await.expect("works");
    let stopped = database.clone();
    let stop = tokio::spawn(async move { stopped.shutdown(ShutdownReason::ServerStop).await });
    until("the database stops", || !database.is_running()).await;
    faults.snapshot_waits.store(false, Ordering::SeqCst);
    let ended = tokio::time::timeout(Duration::from_secs(60), stop).await;
    ended.expect("the stop ends").expect("no panic");
    // The one of the stop. With the other one there would be two, as it lacks the last transaction.
    assert_eq!(manifests(directory.path()), 1, "it was written to its end");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_snapshot_is_given_up_where_the_reserve_of_the_disk_begins() {
    let directory = tempfile::tempdir().unwrap();
    let (mut options, faults) = faulty(directory.path());
    options.limits.snapshot_log_bytes = 1;
    // The server cannot tell how full the disk is until this is there; then it has only its reserve left.
    let full = directory.path().join("full");
    options.disk = Arc::new(DiskReserve::new(full.clone(), Some(u64::MAX)));
    let _ = faults.snapshot_makes.set(full.clone());
    let database = create(options).await;
    for id in 0..3000 {
        add(&database, id).await.expect("works");
        if full.exists() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(full.exists(), "no snapshot is begun");
    until("the snapshot has ended", || {
        snapshot_files(directory.path(), ".pack") == 0 || manifests(directory.path()) > 0
    })
    .await;
    assert_eq!(manifests(directory.path()), 0, "it was written to its end");
    add(&database, 3001).await.expect("the log goes on");
    database.shutdown(ShutdownReason::ServerStop).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_id_is_one_connections() {
    let directory = tempfile::tempdir().unwrap();
    let (options, _) = faulty(directory.path());
    let database = create(options).await;
    let first = connect(&database, 5, true).await;
    let request = |identity| ConnectRequest {
        identity,
        rights: Rights::default(),
        connection_id: ConnectionId(5),
        session_id: None,
        session_grace: Duration::ZERO,
        jwt_payload: "{}".into(),
        confirmed: true,
        protocol: Protocol::V2,
        token: "token".into(),
    };
    let again = database.connect(request(OWNER)).await.err();
    assert!(
        matches!(&again, Some(ConnectError::InUse(text)) if text.contains("LC0327")),
        "{again:?}"
    );
    let other = database.connect(request(Identity::ZERO)).await.err();
    assert!(
        matches!(&other, Some(ConnectError::Rejected(_))),
        "{other:?}"
    );
    // The refused ones did not take the row of the first with them: the id is still in use.
    let again = database.connect(request(OWNER)).await.err();
    assert!(matches!(&again, Some(ConnectError::InUse(_))), "{again:?}");
    drop(first);
    connect(&database, 5, true).await;
    database.shutdown(ShutdownReason::ServerStop).await;
}
