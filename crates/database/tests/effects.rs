//! No effect leaves the database before what it rests on is durable: the requests of procedures wait for the disk, as answers and
//! messages do (03 §13).

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use crate::common::publishing::stop;
use crate::common::tables::{create_tables, table_options};
use crate::common::{caller, OWNER, STRANGER};
use lightcone_database::{
    AllowList, CallArgs, CallError, Commons, DatabaseHandle, JsonRows, Machine, Outbound,
    OutboundOptions,
};
use lightcone_storage::sim::{HookedStorage, Hooks};
use serde_json::{json, Value};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// Long enough for a request that nothing holds back.
const A_WHILE: Duration = Duration::from_millis(300);

#[derive(Clone, Copy, Default, PartialEq)]
enum Syncs {
    #[default]
    Go,
    Wait,
    Fail,
}

/// A disk whose syncs wait or fail when a test says so.
#[derive(Default)]
struct Held {
    syncs: Mutex<Syncs>,
    changed: Condvar,
}

impl Held {
    fn set(&self, syncs: Syncs) {
        *self.syncs.lock().expect("no panic") = syncs;
        self.changed.notify_all();
    }
}

impl Hooks for Held {
    fn before_sync(&self, path: &Path) -> io::Result<()> {
        if !path.to_string_lossy().contains("/log/") {
            return Ok(());
        }
        let syncs = self.syncs.lock().expect("no panic");
        let waited = self
            .changed
            .wait_while(syncs, |syncs| *syncs == Syncs::Wait);
        match *waited.expect("no panic") {
            Syncs::Fail => Err(io::Error::other("the disk is broken")),
            _ => Ok(()),
        }
    }
}

impl Drop for World {
    /// Lets go of what is held when a test fails.
    fn drop(&mut self) {
        self.disk.set(Syncs::Go);
    }
}

/// Answers every request at once, and counts them.
async fn counting_server() -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = asked.clone();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut buffer = [0; 4096];
            let _ = stream.read(&mut buffer).await;
            counted.fetch_add(1, Ordering::SeqCst);
            let text = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nhi";
            let _ = stream.write_all(text).await;
        }
    });
    (format!("http://127.0.0.1:{port}/"), asked)
}

struct World {
    database: DatabaseHandle,
    disk: Arc<Held>,
    url: String,
    asked: Arc<AtomicUsize>,
    _directory: tempfile::TempDir,
}

impl World {
    /// With calls that are suspended while they wait, or block their threads.
    async fn new(suspends: bool) -> World {
        let directory = tempfile::tempdir().expect("a directory");
        let disk = Arc::new(Held::default());
        let mut options = table_options(&directory.path().join("db"));
        options.storage = Arc::new(HookedStorage::new(options.storage, disk.clone()));
        let outbound = Outbound::new(OutboundOptions {
            allow: AllowList::parse(["127.0.0.1"]).expect("a list"),
            ..OutboundOptions::current()
        });
        let outbound = Some(Arc::new(outbound.expect("a client")));
        options.commons = Commons::with_outbound(Machine::current(), 1 << 30, 2, outbound);
        let program = json!({
            "tables": { "t": [["id", "U32"]] },
            "uniqueKeys": { "t": "id" },
            "procedures": true,
            "suspends": suspends,
        });
        let (url, asked) = counting_server().await;
        World {
            database: create_tables(options, &program).await,
            disk,
            url,
            asked,
            _directory: directory,
        }
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }

    /// Inserts a row if there is one, then makes a request.
    fn fetch(&self, id: Option<u32>, time_us: Option<i64>) -> JoinHandle<Result<(), CallError>> {
        let ids: Vec<[u32; 1]> = id.into_iter().map(|id| [id]).collect();
        let what = json!({
            "first": { "t": { "inserts": ids } },
            "us": 0,
            "fetch": self.url,
            "fetch_us": time_us,
            "then": {},
        });
        self.call("later", what)
    }

    fn call(&self, function: &'static str, what: Value) -> JoinHandle<Result<(), CallError>> {
        let database = self.database.clone();
        let args = CallArgs::Json(json!([what.to_string()]).to_string());
        tokio::spawn(async move {
            let called = database.call(caller(STRANGER), function, args);
            called.await.map(drop)
        })
    }

    /// Waits until a transaction that is not durable is seen by who asked for that.
    async fn until_seen(&self, id: u32) {
        loop {
            let text = format!("SELECT id FROM t WHERE id = {id}");
            let rows = self
                .database
                .sql(caller(OWNER), text, false, JsonRows::default());
            if rows.await.expect("rows").text() != "[]" {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

async fn waits_for_what_it_has_committed(world: World) {
    world.disk.set(Syncs::Wait);
    let fetch = world.fetch(Some(1), None);
    world.until_seen(1).await;
    tokio::time::sleep(A_WHILE).await;
    assert_eq!(world.asked(), 0, "no server hears of what may be lost");
    world.disk.set(Syncs::Go);
    fetch.await.expect("no panic").expect("it is answered");
    assert_eq!(world.asked(), 1);
    stop(world.database.clone()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_waits_until_what_the_call_has_committed_is_durable() {
    waits_for_what_it_has_committed(World::new(false).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_of_a_call_that_began_on_the_writer_does_too() {
    let world = World::new(true).await;
    // It leaves an instance for the next one.
    let nothing = json!({ "first": {}, "us": 0, "then": {} });
    let called = world.call("later", nothing).await;
    called.expect("no panic").expect("it does nothing");
    waits_for_what_it_has_committed(world).await;
}

/// What others have written and the call has read may be lost as well.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_waits_until_what_the_call_has_read_is_durable() {
    for suspends in [false, true] {
        waits_for_what_it_has_read(World::new(suspends).await).await;
    }
}

async fn waits_for_what_it_has_read(world: World) {
    world.disk.set(Syncs::Wait);
    let other = world.call("change", json!({ "t": { "inserts": [[1]] } }));
    world.until_seen(1).await;
    let fetch = world.fetch(None, None);
    tokio::time::sleep(A_WHILE).await;
    assert_eq!(world.asked(), 0, "it has seen what may be lost");
    world.disk.set(Syncs::Go);
    other.await.expect("no panic").expect("it is durable");
    fetch.await.expect("no panic").expect("it is answered");
    assert_eq!(world.asked(), 1);
    stop(world.database.clone()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_is_never_sent_if_the_log_fails() {
    for suspends in [false, true] {
        is_never_sent_if_the_log_fails(World::new(suspends).await).await;
    }
}

async fn is_never_sent_if_the_log_fails(world: World) {
    world.disk.set(Syncs::Wait);
    let fetch = world.fetch(Some(1), None);
    world.until_seen(1).await;
    world.disk.set(Syncs::Fail);
    let failed = fetch
        .await
        .expect("no panic")
        .expect_err("nothing is durable");
    let text = format!("{failed:?}");
    assert!(text.contains("LC0537"), "{text}");
    let committed = "transaction committed, but durability could not be confirmed; ";
    assert!(text.contains(committed), "{text}");
    assert!(world.database.read_only().is_some());
    tokio::time::sleep(A_WHILE).await;
    assert_eq!(world.asked(), 0);
    stop(world.database.clone()).await;
}

/// The wait for the disk is part of the time that a request has.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_whose_time_is_over_before_it_may_leave_is_an_error_that_says_so() {
    let world = World::new(true).await;
    world.disk.set(Syncs::Wait);
    let fetch = world.fetch(Some(1), Some(200_000));
    world.until_seen(1).await;
    tokio::time::sleep(2 * A_WHILE).await;
    world.disk.set(Syncs::Go);
    let failed = fetch
        .await
        .expect("no panic")
        .expect_err("it came too late");
    let text = format!("{failed:?}");
    assert!(text.contains("was not durable in time"), "{text}");
    assert_eq!(world.asked(), 0);
    stop(world.database.clone()).await;
}

/// A call does not wait for the disk for ever, and a module that tries again after an error must not hear of one.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_ends_that_waits_too_long_for_the_disk() {
    let world = World::new(true).await;
    world.disk.set(Syncs::Wait);
    let fetch = world.fetch(Some(1), None);
    world.until_seen(1).await;
    tokio::time::sleep(Duration::from_millis(5_300)).await;
    world.disk.set(Syncs::Go);
    let failed = fetch.await.expect("no panic").expect_err("it has ended");
    let text = format!("{failed:?}");
    let late = "durability confirmation timed out; outcome unknown, ";
    assert!(text.contains(late), "{text}");
    assert_eq!(world.asked(), 0);
    stop(world.database.clone()).await;
}

/// The tables of a transaction that is given up are there for the next one, on the writer and beside it.
#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_that_is_given_up_leaves_nothing() {
    for suspends in [false, true] {
        let world = World::new(suspends).await;
        for id in [1, 3] {
            let row = |id: u32| json!({ "t": { "inserts": [[id]] } });
            let what =
                json!({ "gives_up": row(9), "first": row(id), "us": 0, "then": row(id + 1) });
            let called = world.call("later", what).await;
            called.expect("no panic").expect("it gives up and goes on");
        }
        let text = "SELECT id FROM t ORDER BY id".to_owned();
        let rows = world
            .database
            .sql(caller(OWNER), text, true, JsonRows::default());
        assert_eq!(rows.await.expect("rows").text(), "[[1],[2],[3],[4]]");
        stop(world.database.clone()).await;
    }
}
