//! Databases in a world of one thread, in which a seed says what comes next: a step of the writer, of fan-out or of the log, a call of a
//! client, an alarm, a sync that fails, a power failure. Nothing sleeps, and a seed that has failed fails again.
//!
//! `make simulate` goes on with other seeds for so many seconds.

mod common;

use std::collections::hash_map::DefaultHasher;
use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::hash::{Hash, Hasher};
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use bytes::Bytes;
use common::requests::subscribe;
use common::tables::TablesEngine;
use common::{caller, OWNER, STRANGER};
use lightcone_database::{
    Alarm, CallArgs, Commons, ConnectRequest, DatabaseHandle, DatabaseOptions, Engines,
    Environment, HostKind, JsonRows, Limits, Next, Outgoing, Protocol, Rights, ShutdownReason,
    Task, Work, Worker,
};
use lightcone_storage::sim::{Faults, SimStorage};
use lightcone_types::{ConnectionId, Encode as _, Identity, Timestamp};
use lightcone_wire::{ServerMessage, TableUpdateRows};
use serde_json::{json, Value};

/// The year 2000 in microseconds.
const BEGIN_US: i64 = 946_684_800_000_000;
/// No directory: module logs, which are written by a thread of the process, are lost.
const DIRECTORY: &str = "/dev/null/simulated";
/// Each writes two cells.
const WRITERS: usize = 3;
/// So many seeds are tried if nothing else is said.
const SEEDS: u64 = 12;

// ---- The world ------------------------------------------------------------------------------------------------------------------

#[derive(Default)]
struct World {
    random: u64,
    /// Readings of the clock, which take a microsecond each, and what passes between them.
    elapsed_us: u64,
    /// By which the time of day is set.
    set_us: i64,
    workers: Vec<(String, Box<dyn Worker>)>,
    jobs: Vec<Work>,
    tasks: Vec<Task>,
    /// By number.
    alarms: BTreeMap<u64, (u64, Work)>,
    alarms_so_far: u64,
    /// All that was drawn, and what came of it.
    trace: DefaultHasher,
}

impl World {
    /// splitmix64
    fn draw(&mut self, bound: usize) -> usize {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let drawn = ((z ^ (z >> 31)) % bound.max(1) as u64) as usize;
        (bound, drawn).hash(&mut self.trace);
        drawn
    }

    fn note(&mut self, what: impl Hash) {
        what.hash(&mut self.trace);
    }
}

#[derive(Clone)]
struct Simulated(Arc<Mutex<World>>, Instant);

impl fmt::Debug for Simulated {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a simulated world")
    }
}

impl Environment for Simulated {
    fn now(&self) -> Timestamp {
        let mut world = self.world();
        world.elapsed_us += 1;
        Timestamp(BEGIN_US + world.elapsed_us as i64 + world.set_us)
    }

    fn instant(&self) -> Instant {
        let mut world = self.world();
        world.elapsed_us += 1;
        self.1 + Duration::from_micros(world.elapsed_us)
    }

    fn random(&self) -> u128 {
        self.world().draw(usize::MAX) as u128
    }

    /// A module is loaded at once. Reads have no threads, and are done by who asks for them.
    fn spawn_thread(&self, name: &str, _: usize, work: Work) -> io::Result<()> {
        match name {
            "load" => work(),
            _ => return Err(io::ErrorKind::WouldBlock.into()),
        }
        Ok(())
    }

    fn spawn_worker(&self, name: &str, _: usize, worker: Box<dyn Worker>) -> io::Result<()> {
        self.world().workers.push((name.to_owned(), worker));
        Ok(())
    }

    fn spawn_blocking(&self, work: Work) {
        self.world().jobs.push(work);
    }

    fn spawn_task(&self, task: Task) {
        self.world().tasks.push(task);
    }

    fn alarm(&self, delay: Duration, work: Work) -> Alarm {
        let mut world = self.world();
        world.alarms_so_far += 1;
        let (number, due) = (
            world.alarms_so_far,
            world.elapsed_us + delay.as_micros() as u64,
        );
        world.alarms.insert(number, (due, work));
        let of = self.clone();
        Alarm::new(Box::new(move || {
            let cancelled = of.world().alarms.remove(&number);
            drop(cancelled);
        }))
    }
}

impl Simulated {
    fn new(seed: u64) -> Simulated {
        let world = World {
            random: seed,
            ..World::default()
        };
        Simulated(Arc::new(Mutex::new(world)), Instant::now())
    }

    fn world(&self) -> MutexGuard<'_, World> {
        self.0.lock().expect("no panic while it was held")
    }

    fn draw(&self, bound: usize) -> usize {
        self.world().draw(bound)
    }

    /// Something that is there to be done is done, or time passes.
    fn step(&self) {
        let mut world = self.world();
        let counts = [
            world.workers.len(),
            world.jobs.len(),
            world.tasks.len(),
            usize::from(!world.alarms.is_empty()),
        ];
        let mut drawn = world.draw(counts.iter().sum());
        let mut is_of = |count: usize| match drawn < count {
            true => true,
            false => {
                drawn -= count;
                false
            }
        };
        if is_of(counts[0]) {
            let (name, mut worker) = world.workers.remove(drawn);
            drop(world);
            let next = worker.step();
            let mut world = self.world();
            if next != Next::Ended {
                let place = drawn.min(world.workers.len());
                world.workers.insert(place, (name, worker));
            }
        } else if is_of(counts[1]) {
            let job = world.jobs.remove(drawn);
            drop(world);
            job();
        } else if is_of(counts[2]) {
            let mut task = world.tasks.remove(drawn);
            drop(world);
            if poll(&mut task).is_none() {
                self.world().tasks.push(task);
            }
        } else if let Some((&number, &(due, _))) =
            world.alarms.iter().min_by_key(|(_, (due, _))| *due)
        {
            world.elapsed_us = world.elapsed_us.max(due);
            let alarm = world.alarms.remove(&number);
            drop(world);
            if let Some((_, ring)) = alarm {
                ring();
            }
        }
    }

    /// Goes on until something is known.
    fn until<T>(&self, future: impl Future<Output = T>) -> T {
        let mut future = Box::pin(future);
        for _ in 0..1_000_000 {
            if let Some(known) = poll(&mut future) {
                return known;
            }
            self.step();
        }
        panic!("it is never known");
    }

    /// Nothing is left of those who ran, as if the process had been killed.
    fn kill(&self) {
        let mut world = self.world();
        let (mut workers, jobs) = (
            std::mem::take(&mut world.workers),
            std::mem::take(&mut world.jobs),
        );
        let (tasks, alarms) = (
            std::mem::take(&mut world.tasks),
            std::mem::take(&mut world.alarms),
        );
        drop(world);
        // Who drops a log waits for the end of its worker.
        workers.sort_by_key(|(name, _)| name != "log");
        for worker in workers {
            drop(worker);
        }
        drop((jobs, tasks, alarms));
    }
}

fn poll<F: Future + ?Sized + Unpin>(future: &mut F) -> Option<F::Output> {
    let mut context = Context::from_waker(Waker::noop());
    match Pin::new(future).poll(&mut context) {
        std::task::Poll::Ready(known) => Some(known),
        std::task::Poll::Pending => None,
    }
}

// ---- What happens in it -----------------------------------------------------------------------------------------------------------

/// What clients know of a database.
#[derive(Default)]
struct Ledger {
    /// By writer: what it has written into its cells at last, or has tried to.
    tried: [u64; WRITERS],
    /// It was told that it is there.
    acknowledged: [u64; WRITERS],
    /// The watcher was told.
    seen: [u64; WRITERS],
    planned: u64,
    /// Planned calls that were acknowledged.
    plans: Vec<u64>,
}

type Known = Arc<Mutex<Ledger>>;
type Client = Pin<Box<dyn Future<Output = ()>>>;

fn ledger(known: &Known) -> MutexGuard<'_, Ledger> {
    known.lock().expect("no panic while it was held")
}

fn both(writer: usize, value: u64) -> Value {
    json!([[2 * writer, value], [2 * writer + 1, value]])
}

async fn call(database: &DatabaseHandle, function: &str, what: Value) -> bool {
    let args = CallArgs::Json(json!([what.to_string()]).to_string());
    let called = database.call(caller(OWNER), function, args).await;
    called.is_ok()
}

/// Writes the next number into its two cells, again and again.
async fn write(database: DatabaseHandle, known: Known, writer: usize, by_procedure: bool) {
    while database.is_running() {
        let value = {
            let mut ledger = ledger(&known);
            ledger.tried[writer] += 2;
            ledger.tried[writer]
        };
        let cells = |value| json!({ "cells": { "replaced": both(writer, value) } });
        let is_there = match by_procedure && value.is_multiple_of(8) {
            true => {
                let later = json!({ "first": cells(value - 1), "us": 1_000, "then": cells(value) });
                call(&database, "later", later).await
            }
            false => call(&database, "change", cells(value)).await,
        };
        if is_there {
            ledger(&known).acknowledged[writer] = value;
        }
    }
}

/// Plans calls, each of which notes its id.
async fn plan(database: DatabaseHandle, world: Simulated, known: Known) {
    while database.is_running() {
        let id = {
            let mut ledger = ledger(&known);
            ledger.planned += 1;
            ledger.planned
        };
        let at = world.now().0 + world.draw(5_000) as i64;
        let job = json!({ "jobs": { "inserts": [[id, at]] } });
        if call(&database, "change", job).await {
            ledger(&known).plans.push(id);
        }
    }
}

/// Sees what others have written when it cannot be lost any more.
async fn watch(database: DatabaseHandle, known: Known) {
    let request = ConnectRequest {
        identity: STRANGER,
        rights: Rights::default(),
        connection_id: ConnectionId(77),
        session_id: None,
        session_grace: Duration::ZERO,
        jwt_payload: "{}".into(),
        confirmed: true,
        protocol: Protocol::V3,
        token: "token".into(),
    };
    let Ok(mut connection) = database.connect(request).await else {
        return;
    };
    let mut payload = Vec::new();
    subscribe(1, vec!["SELECT * FROM cells"]).encode(&mut payload);
    if connection
        .sender
        .submit(Bytes::from(payload))
        .await
        .is_err()
    {
        return;
    }
    while let Some(Outgoing::Messages(batch)) = connection.outgoing.recv().await {
        let mut start = 0;
        for &end in &batch.ends {
            let message = &batch.bytes[start..end];
            let decoded = lightcone_wire::payload::decode_messages(Protocol::V2, message);
            for message in decoded.expect("messages of a server") {
                see(&mut ledger(&known), message);
            }
            start = end;
        }
    }
}

fn see(ledger: &mut Ledger, message: ServerMessage) {
    let mut rows: Vec<Vec<u8>> = Vec::new();
    match message {
        ServerMessage::SubscribeApplied { rows: found, .. } => {
            let tables = found.tables.iter();
            rows.extend(tables.flat_map(|table| table.rows.iter().map(<[u8]>::to_vec)));
        }
        ServerMessage::TransactionUpdate { query_sets } => {
            let tables = query_sets.into_iter().flat_map(|set| set.tables);
            for update in tables.flat_map(|table| table.rows) {
                if let TableUpdateRows::Persistent { inserts, .. } = update {
                    rows.extend(inserts.iter().map(<[u8]>::to_vec));
                }
            }
        }
        _ => return,
    }
    let cells = rows.iter().map(|row| {
        let id = u32::from_le_bytes(row[..4].try_into().expect("a U32"));
        let value = u64::from_le_bytes(row[4..].try_into().expect("a U64"));
        (id, value)
    });
    for (writer, value) in pairs(cells) {
        let seen = &mut ledger.seen[writer];
        assert!(value >= *seen, "writer {writer}: {value} after {seen}");
        *seen = value;
    }
}

/// What is in both cells of each writer that is among these.
fn pairs(cells: impl Iterator<Item = (u32, u64)>) -> Vec<(usize, u64)> {
    let cells: BTreeMap<u32, u64> = cells.collect();
    let writers = (0..WRITERS).filter_map(|writer| {
        let cell = |place| cells.get(&(2 * writer as u32 + place));
        assert_eq!(cell(0), cell(1), "a half of a transaction: {cells:?}");
        cell(0).map(|value| (writer, *value))
    });
    writers.collect()
}

fn program(has_procedures: bool) -> Value {
    let mut program = json!({
        "tables": {
            "cells": [["id", "U32"], ["value", "U64"]],
            "jobs": [["id", "U64"], ["at", "ScheduleAt"]],
            "ticked": [["id", "U64"]],
        },
        "uniqueKeys": { "cells": "id", "jobs": "id" },
        "schedules": "jobs",
    });
    if has_procedures {
        program["procedures"] = json!(true);
        program["suspends"] = json!(true);
    }
    program
}

fn options(world: &Simulated, storage: &SimStorage, limits: &Limits) -> DatabaseOptions {
    DatabaseOptions {
        directory: Path::new(DIRECTORY).to_owned(),
        identity: Identity::from_le_bytes([1; 32]),
        owner: OWNER,
        in_memory: false,
        limits: limits.clone(),
        engines: Engines {
            wasm: Arc::new(TablesEngine),
            js: None,
        },
        commons: Commons::new(Arc::new(world.clone()), 1 << 30, 1),
        storage: Arc::new(storage.clone()),
        loads: Arc::default(),
        disk: Arc::default(),
    }
}

fn rows(world: &Simulated, database: &DatabaseHandle, query: &str) -> Vec<Vec<u64>> {
    let encoder = JsonRows::default();
    let asked = database.sql(caller(OWNER), query.to_owned(), true, encoder);
    let found = world.until(asked).expect("a table of the module");
    serde_json::from_str(&found.text()).expect("rows of numbers")
}

/// What was acknowledged, or seen, is there; of all else there is a first part.
fn check(world: &Simulated, database: &DatabaseHandle, known: &Known) {
    let cells = rows(world, database, "SELECT id, value FROM cells");
    let mut ledger = ledger(known);
    for (writer, value) in pairs(cells.iter().map(|cell| (cell[0] as u32, cell[1]))) {
        let (acknowledged, seen) = (ledger.acknowledged[writer], ledger.seen[writer]);
        assert!(
            value >= acknowledged,
            "{value}, acknowledged {acknowledged}"
        );
        assert!(value >= seen, "{value}, seen {seen}");
        assert!(value <= ledger.tried[writer], "{value} was never written");
        world.world().note((writer, value));
        ledger.acknowledged[writer] = value;
    }
    let mut there = rows(world, database, "SELECT id FROM jobs");
    there.extend(rows(world, database, "SELECT id FROM ticked"));
    for id in &ledger.plans {
        assert!(there.contains(&vec![*id]), "the planned call {id} is lost");
    }
    world.world().note(there);
}

/// Clients come, and something goes wrong. Gives those who still wait.
fn live(
    world: &Simulated,
    database: &DatabaseHandle,
    known: &Known,
    storage: &SimStorage,
    has_procedures: bool,
) -> Vec<Client> {
    let mut clients: Vec<Client> = Vec::new();
    for writer in 0..WRITERS {
        let (database, known) = (database.clone(), known.clone());
        clients.push(Box::pin(write(database, known, writer, has_procedures)));
    }
    if !has_procedures {
        clients.push(Box::pin(plan(
            database.clone(),
            world.clone(),
            known.clone(),
        )));
    }
    clients.push(Box::pin(watch(database.clone(), known.clone())));
    for _ in 0..world.draw(4_000) {
        match world.draw(1_000) {
            0 => {
                let next = storage.counts();
                let mut faults = Faults::default();
                match world.draw(2) {
                    0 => faults.fail_sync = Some(next.syncs + world.draw(3) as u64),
                    _ => faults.fail_writes_from = Some(next.writes + world.draw(3) as u64),
                }
                storage.set_faults(faults);
            }
            1 => world.world().set_us -= 3_000_000,
            2..400 if !clients.is_empty() => {
                let mut client = clients.remove(world.draw(clients.len()));
                if poll(&mut client).is_none() {
                    clients.push(client);
                }
            }
            _ => world.step(),
        }
    }
    storage.set_faults(Faults::default());
    clients
}

/// Gives what the seed has led to: all that was drawn, and all bytes of the disk.
fn simulate(seed: u64) -> u64 {
    let world = Simulated::new(seed);
    let mut storage = SimStorage::new(seed);
    let limits = Limits {
        log_queue_bytes_max: [300, 64 << 20][world.draw(2)],
        log_segment_bytes: 8_192,
        log_preallocate: false,
        snapshot_log_bytes: [2_000, 64 << 20][world.draw(2)],
        ..Limits::default()
    };
    let has_procedures = world.draw(2) == 0;
    let bytes = program(has_procedures).to_string().into_bytes();
    let made = DatabaseHandle::create(options(&world, &storage, &limits), bytes, HostKind::Wasm);
    let mut database = made.expect("the tables are valid");
    let cells: Vec<Value> = (0..2 * WRITERS).map(|cell| json!([cell, 0])).collect();
    let cells = json!({ "cells": { "inserts": cells } });
    assert!(world.until(call(&database, "change", cells)));
    let known = Known::default();
    for _ in 0..=world.draw(4) {
        let clients = live(&world, &database, &known, &storage, has_procedures);
        if world.draw(3) == 0 {
            world.until(database.shutdown(ShutdownReason::ServerStop));
            // All who wait are answered, or hear that the database is gone.
            clients.into_iter().for_each(|client| world.until(client));
        } else {
            drop((database, clients));
        }
        world.kill();
        if world.draw(2) == 0 {
            let random = world.draw(usize::MAX) as u64;
            storage = storage.crash(random);
        }
        let opened = DatabaseHandle::open(options(&world, &storage, &limits));
        database = opened.expect("it opens");
        check(&world, &database, &known);
    }
    drop(database);
    world.kill();
    let mut world = world.world();
    let mut files = storage.files();
    files.sort();
    for path in files {
        world.note((storage.file(&path), path));
    }
    world.trace.finish()
}

/// Says which seed has failed.
struct Told(u64);

impl Drop for Told {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("make simulate SEED={} fails", self.0);
        }
    }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn what_was_acknowledged_is_there_and_a_seed_always_does_the_same() {
    let first = number("SIMULATE_SEED").unwrap_or(0);
    let seconds = number("SIMULATE_SECONDS");
    let begun = Instant::now();
    for seed in first.. {
        let told = Told(seed);
        assert_eq!(simulate(seed), simulate(seed), "the same seed");
        drop(told);
        let is_over = match seconds {
            Some(seconds) => begun.elapsed() >= Duration::from_secs(seconds),
            None => seed - first + 1 >= SEEDS,
        };
        if is_over {
            println!("seeds {first} to {seed} hold");
            return;
        }
    }
}
