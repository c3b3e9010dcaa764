//! A database from its creation over several lives, each of which ends well or badly.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use lightcone_database::{
    Commons, DatabaseHandle, DatabaseOptions, Engines, HostKind, JsonRows, Limits, Rights,
    ShutdownReason,
};
use lightcone_engine::Datastore;
use lightcone_host::ModuleEngine;
use lightcone_log::{LocalLog, LogOptions};
use lightcone_snapshot::SnapshotStore;
use lightcone_storage::sim::{Faults, SimStorage};
use lightcone_types::Identity;
use serde_json::{json, Value};

use super::clients::{clients, Client, Context, Kind, WRITERS};
use super::common::{caller, OWNER};
use super::guest::{Shape, SimEngine, ACCOUNTS, BALANCE, ROOMS};
use super::ledger::{Ledger, Tables, JOBS_LATER};
use super::shrink::keep_history;
use super::watchers::{watch, READER};
use super::world::{poll, splitmix, Simulated};

/// No directory: module logs, which are written by a thread of the process, are lost.
const DIRECTORY: &str = "/dev/null/simulated";
const DATABASE: Identity = Identity::from_le_bytes([1; 32]);
const TABLES: [&str; 12] = [
    "accounts", "cells", "items", "jobs", "lists", "notes", "reads", "receipts", "rooms",
    "secrets", "ticked", "tickets",
];
/// What clients ask for and have not taken.
const CLIENT_BYTES_MAX: usize = 64 << 20;
/// One of the workers may be slow during a life.
const SLOW: [Option<&str>; 5] = [
    None,
    Some("log"),
    Some("log"),
    Some("fan-out"),
    Some("writer"),
];
/// A round may be as large beyond the limit of the queue.
const ROUND_BYTES_MAX: usize = 4 << 20;

/// What is simulated. It is written as `SEED/KINDS/LIVES/STEPS`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Case {
    pub seed: u64,
    /// A bit for each [`Kind`].
    pub kinds: u32,
    pub lives: usize,
    /// Of one life, at most.
    pub steps: usize,
}

impl Case {
    /// Most seeds have some kinds only: what is rare among many is common among few.
    pub fn of_seed(seed: u64) -> Case {
        let mut random = !seed;
        let mut draw = |bound: u64| splitmix(&mut random) % bound;
        let drawn = (0..Kind::Hurry as u32).map(|bit| u32::from(draw(5) < 3) << bit);
        let others = drawn.sum::<u32>();
        Case {
            seed,
            lives: 1 + draw(4) as usize,
            steps: [1_000, 3_000, 6_000][draw(3) as usize],
            // Drawn last, so that all else of a seed is as it was before there was this kind.
            kinds: others | u32::from(draw(5) < 3) << Kind::Hurry as u32,
        }
    }

    fn has(&self, kind: Kind) -> bool {
        self.kinds & 1 << kind as u32 != 0
    }
}

impl fmt::Display for Case {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Case {
            seed,
            kinds,
            lives,
            steps,
        } = self;
        write!(formatter, "{seed}/{kinds:x}/{lives}/{steps}")
    }
}

impl FromStr for Case {
    type Err = String;

    fn from_str(text: &str) -> Result<Case, String> {
        let parts: Vec<&str> = text.split('/').collect();
        let [seed, kinds, lives, steps] = parts[..] else {
            return Err(format!("{text} is no SEED/KINDS/LIVES/STEPS"));
        };
        let wrong = |error: std::num::ParseIntError| error.to_string();
        Ok(Case {
            seed: seed.parse().map_err(wrong)?,
            kinds: u32::from_str_radix(kinds, 16).map_err(wrong)?,
            lives: lives.parse().map_err(wrong)?,
            steps: steps.parse().map_err(wrong)?,
        })
    }
}

/// What a simulation has come to.
#[derive(Clone, Copy, Debug)]
pub struct Lasted {
    /// Of all that was drawn, and all bytes of the disk.
    pub trace: u64,
    pub steps: u64,
    pub time: Duration,
}

/// Ends those who ran, also after a panic.
struct End<'w>(&'w Simulated);

impl Drop for End<'_> {
    fn drop(&mut self) {
        keep_history(self.0.history());
        self.0.kill();
    }
}

pub fn options(
    world: &Simulated,
    storage: &SimStorage,
    limits: &Limits,
    engine: Arc<dyn ModuleEngine>,
) -> DatabaseOptions {
    DatabaseOptions {
        directory: Path::new(DIRECTORY).to_owned(),
        identity: DATABASE,
        owner: OWNER,
        in_memory: false,
        limits: limits.clone(),
        engines: Engines {
            wasm: engine,
            js: None,
        },
        commons: Commons::new(Arc::new(world.clone()), 1 << 30, 1),
        storage: Arc::new(storage.clone()),
        loads: Arc::default(),
        disk: Arc::default(),
        test_clock: None,
    }
}

/// The rows of all tables, durable.
fn tables(world: &Simulated, database: &DatabaseHandle) -> Tables {
    let rows = |table: &str| -> Vec<Vec<Value>> {
        let query = format!("SELECT * FROM {table}");
        let asked = database.sql(caller(OWNER), query, true, JsonRows::default());
        let found = world.until("rows of a table", asked);
        let found = found.unwrap_or_else(|error| panic!("{table}: {error:?}"));
        let mut rows: Vec<Vec<Value>> = serde_json::from_str(&found.text()).expect("rows");
        rows.sort_by_key(|row| row[0].as_u64());
        rows
    };
    // Who asks is one, for as long as that takes.
    assert!(rows("st_client").len() <= 1, "clients are left");
    let mut tables = Tables(TABLES.map(|table| (table, rows(table))).into());
    tables.0.insert(JOBS_LATER, rows("jobs"));
    tables
}

/// The first rows.
fn fill(world: &Simulated, database: &DatabaseHandle) {
    let cells: Vec<Value> = (0..2 * WRITERS).map(|cell| json!([cell, 0])).collect();
    let accounts = (0..ACCOUNTS).map(|id| json!([id, id % ROOMS, BALANCE]));
    let rooms: Vec<Value> = (0..ROOMS).map(|id| json!([id, id != 1])).collect();
    let rows = json!({
        "cells": { "inserts": cells },
        "accounts": { "inserts": accounts.collect::<Vec<_>>() },
        "rooms": { "inserts": rooms },
    });
    let args = lightcone_database::CallArgs::Json(json!([rows.to_string()]).to_string());
    let filled = world.until(
        "the first call",
        database.call(caller(OWNER), "change", args),
    );
    filled.expect("the keys are free");
}

/// A life of a database.
struct Life<'c> {
    case: &'c Case,
    context: Context,
    storage: &'c SimStorage,
    options: &'c DatabaseOptions,
}

impl Life<'_> {
    /// Clients come, and something goes wrong. Gives those who are still there.
    fn live(&self) -> Vec<Client> {
        let (world, case) = (&self.context.world, self.case);
        let mut clients = clients(&self.context, |kind| case.has(kind));
        if case.has(Kind::Watchers) {
            for seat in 0..3 {
                let watcher = watch(self.context.clone(), seat, seat != 2, Rights::Public);
                clients.push(Box::pin(watcher));
            }
        }
        if case.has(Kind::Rights) {
            clients.push(Box::pin(watch(
                self.context.clone(),
                3,
                true,
                Rights::Reads,
            )));
        }
        let slow = SLOW[world.draw(SLOW.len())];
        world.world().slow = slow;
        for _ in 0..world.draw(case.steps) {
            if !self.context.database.is_running() {
                break;
            }
            match world.draw(1_000) {
                0 | 1 if case.has(Kind::Faults) => self.fail(),
                2 if case.has(Kind::Clock) => world.world().set_us -= 3_000_000,
                3 | 4 if case.has(Kind::Rights) => {
                    self.context.database.lower_rights(READER, Rights::Public);
                    self.context.lowered.fetch_add(1, Ordering::Relaxed);
                    world.say(|| "rights are lowered".to_owned());
                }
                5 => self.check_bounds(),
                // A server opens it anew.
                6..20 if self.context.database.read_only().is_some() => break,
                6..400 if !clients.is_empty() => {
                    let mut client = clients.remove(world.draw(clients.len()));
                    if poll(&mut client).is_none() {
                        clients.push(client);
                    }
                }
                _ => world.step(),
            }
        }
        self.storage.set_faults(Faults::default());
        world.world().slow = None;
        clients
    }

    /// Something about the disk goes wrong soon.
    fn fail(&self) {
        let (next, world) = (self.storage.counts(), &self.context.world);
        let mut faults = Faults::default();
        let soon = world.draw(3) as u64;
        match world.draw(5) {
            0 | 4 => faults.fail_sync = Some(next.syncs + soon),
            1 => faults.fail_writes_from = Some(next.writes + soon),
            2 => faults.tear_write = Some(next.writes + soon),
            _ => faults.fail_names_from = Some(next.names + soon),
        }
        world.say(|| format!("{faults:?}"));
        self.storage.set_faults(faults);
    }

    fn check_bounds(&self) {
        let (limits, metrics) = (&self.options.limits, self.context.database.metrics());
        let queue = metrics.log_queue_bytes as usize;
        let queue_max = limits.log_queue_bytes_max + ROUND_BYTES_MAX;
        assert!(queue <= queue_max, "{queue} bytes wait for the log");
        let messages = metrics.inbox_messages as usize;
        assert!(
            messages <= limits.inbox_messages_max,
            "{messages} messages wait"
        );
        let bytes = self.options.commons.clients_bytes();
        assert!(bytes <= CLIENT_BYTES_MAX, "{bytes} bytes wait for clients");
    }

    /// All clients finish what they are at, and go.
    fn settle(&self, mut clients: Vec<Client>) {
        self.context.ends.store(true, Ordering::Relaxed);
        let all = std::future::poll_fn(move |_| {
            clients.retain_mut(|client| poll(client).is_none());
            match clients.is_empty() {
                true => Poll::Ready(()),
                false => Poll::Pending,
            }
        });
        self.context.world.until("the clients finish", all);
    }

    /// The tables when all clients have gone, if they can still be trusted to stay.
    fn check_at_rest(&self) -> Option<Tables> {
        let (world, database) = (&self.context.world, &self.context.database);
        if !database.is_running() || database.read_only().is_some() {
            return None;
        }
        let tables = tables(world, database);
        self.context.ledger().check(&tables, true);
        let commons = &self.options.commons;
        let gone = std::future::poll_fn(|_| match commons.clients_bytes() {
            0 => Poll::Ready(()),
            _ => Poll::Pending,
        });
        world.until("what clients had is free", gone);
        Some(tables)
    }

    /// It ends, well or badly. Gives its tables at rest, if it came to that, and whether the power may have failed.
    fn end(&self, clients: Vec<Client>) -> (Option<Tables>, bool) {
        let (world, database) = (&self.context.world, &self.context.database);
        let stop = || {
            let stopped = database.clone().shutdown(ShutdownReason::ServerStop);
            world.until("the database stops", stopped);
        };
        let is_killed = self.case.has(Kind::Kills) && world.draw(3) != 0;
        let mut at_rest = None;
        if !is_killed || world.once_in(3) {
            self.settle(clients);
            at_rest = self.check_at_rest();
        } else if world.once_in(3) {
            // All who wait are answered, or hear that the database is gone.
            stop();
            self.settle(clients);
        }
        if !is_killed {
            stop();
        }
        if !database.is_running() {
            world.until("the database ends", database.ended());
        }
        world.say(|| format!("the end, killed: {is_killed}"));
        (at_rest, is_killed && world.once_in(2))
    }
}

/// What is there in a database that was opened again.
fn check_opened(
    world: &Simulated,
    database: &DatabaseHandle,
    ledger: &mut Ledger,
    at_rest: Option<Tables>,
) {
    let opened = tables(world, database);
    ledger.check(&opened, false);
    let shape = Shape::of(&database.program());
    let known = ledger.published..=ledger.publishing;
    assert!(
        known.contains(&shape.number),
        "{shape:?}, published {known:?}"
    );
    ledger.published = shape.number;
    // Planned calls run, and a backfill goes on.
    let moves = ["items", "jobs", "notes", "ticked"];
    for table in TABLES.into_iter().filter(|table| !moves.contains(table)) {
        if let Some(before) = &at_rest {
            assert_eq!(
                before.0[table], opened.0[table],
                "{table} at rest, and opened again"
            );
        }
    }
    let seen = (
        shape.number,
        opened.numbers("cells"),
        opened.numbers("jobs"),
    );
    world.world().note(seen);
}

/// From the oldest one on.
fn snapshots(storage: &SimStorage) -> Vec<PathBuf> {
    let mut files = storage.files();
    files.retain(|path| path.extension().is_some_and(|of| of == "manifest"));
    files.sort();
    files
}

/// The files of a disk but for the newest snapshots.
fn copied(storage: &SimStorage, without: usize) -> SimStorage {
    let (copy, snapshots) = (SimStorage::new(0), snapshots(storage));
    let left_out = &snapshots[snapshots.len() - without..];
    let mut files = storage.files();
    files.sort();
    for path in files.iter().filter(|path| !left_out.contains(path)) {
        copy.put_file(path, storage.file(path).expect("it is listed"));
    }
    copy
}

/// All snapshots, with the log behind each, lead to the same tables.
fn check_replays(storage: &SimStorage, limits: &Limits) {
    let directory = Path::new(DIRECTORY);
    let recovered = |without: usize| {
        let storage = Arc::new(copied(storage, without));
        let options = LogOptions {
            database: DATABASE.to_le_bytes(),
            segment_bytes: limits.log_segment_bytes,
            preallocate: false,
            ..LogOptions::default()
        };
        let opened = LocalLog::open_on(storage.clone(), &directory.join("log"), options);
        let (log, _) = opened.map_err(|error| error.to_string())?;
        let snapshots = SnapshotStore::open_on(storage, &directory.join("snapshots"));
        let mut snapshots = snapshots.map_err(|error| error.to_string())?;
        let recovered = Datastore::recover(directory, &mut snapshots, &log);
        let (mut datastore, report) = recovered.map_err(|error| error.to_string())?;
        let hashes = datastore.snapshot().hashes();
        Ok::<_, String>((report.next_offset, hashes))
    };
    let all = recovered(0).expect("it opens");
    for without in 1..=snapshots(storage).len().min(2) {
        // The log goes back to the oldest snapshot that is kept.
        if let Ok(older) = recovered(without) {
            assert_eq!(older, all, "from an older snapshot");
        }
    }
}

/// # Panics
/// If something is not as it should be.
pub fn simulate(case: &Case, is_told: bool) -> Lasted {
    let world = Simulated::new(case.seed, is_told);
    let _end = End(&world);
    let mut storage = SimStorage::new(case.seed);
    let limits = Limits {
        log_queue_bytes_max: [1_000, 64 << 20][world.draw(2)],
        log_segment_bytes: [500, 8_192][world.draw(2)],
        log_preallocate: false,
        snapshot_log_bytes: [2_000, 64 << 20][world.draw(2)],
        // One row at a time, with calls in between, or all at once.
        backfill_batch_time: Duration::from_micros([1, 1_000][world.draw(2)]),
        backfill_share_percent: 1,
        ..Limits::default()
    };
    let shape = Shape {
        has_procedures: case.has(Kind::Procedures),
        ..Shape::default()
    };
    let program = shape.program().to_string().into_bytes();
    let engine: Arc<dyn ModuleEngine> = Arc::new(SimEngine(world.clone()));
    let mut of_life = options(&world, &storage, &limits, engine.clone());
    let made = DatabaseHandle::create(of_life.clone(), program, HostKind::Wasm);
    let mut database = made.expect("the tables are valid");
    fill(&world, &database);
    let known: Arc<Mutex<Ledger>> = Arc::default();
    for nth in 0..case.lives {
        world.say(|| format!("life {nth}"));
        let life = Life {
            case,
            context: Context {
                database,
                world: world.clone(),
                known: known.clone(),
                ends: Arc::new(AtomicBool::new(false)),
                lowered: Arc::new(AtomicUsize::new(0)),
                may_panic: case.has(Kind::Panics),
                has_procedures: case.has(Kind::Procedures),
                may_hurry: case.has(Kind::Hurry),
            },
            storage: &storage,
            options: &of_life,
        };
        let clients = life.live();
        let may_end = case.has(Kind::Faults) || case.has(Kind::Panics);
        assert!(may_end || life.context.database.is_running(), "it runs");
        let (at_rest, power_fails) = life.end(clients);
        drop(life);
        world.kill();
        if power_fails {
            world.say(|| "a power failure".to_owned());
            storage = storage.crash(world.draw(usize::MAX) as u64);
        } else if world.once_in(2) {
            world.say(|| "clean pages leave the cache".to_owned());
            storage.evict(world.draw(usize::MAX) as u64);
        }
        check_replays(&storage, &limits);
        of_life = options(&world, &storage, &limits, engine.clone());
        database = DatabaseHandle::open(of_life.clone()).expect("it opens");
        let mut ledger = known.lock().expect("no panic while it was held");
        check_opened(&world, &database, &mut ledger, at_rest);
    }
    drop(database);
    world.kill();
    let (steps, time) = world.lasted();
    let mut files = storage.files();
    files.sort();
    let mut world = world.world();
    for path in files {
        world.note((storage.file(&path), path));
    }
    Lasted {
        trace: world.trace(),
        steps,
        time,
    }
}
