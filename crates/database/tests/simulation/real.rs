//! A module of the published library, in WebAssembly, in the same world. Its reducers run on the writer's step. They are ended by a clock of
//! the machine if they take a second, which none of these does; so the same seed does the same.

use std::sync::Arc;

use lightcone_database::{CallArgs, DatabaseHandle, HostKind, JsonRows, Limits, ShutdownReason};
use lightcone_host::ModuleEngine;
use lightcone_host_wasm::{CodeCacheOptions, WasmEngine, WasmEngineOptions, CODE_CACHE_BYTES_MAX};
use lightcone_storage::sim::SimStorage;
use serde_json::json;

use super::clients::Client;
use super::common::{caller, module, OWNER};
use super::life::options;
use super::world::{poll, Simulated};

const SEEDS: u64 = 2;
const LIVES: usize = 3;
const STEPS: usize = 600;
const CLIENTS: u32 = 3;
const BALANCE: i64 = 1_000;

/// What each client has moved to its second account: tried, and acknowledged.
type Moved = Arc<std::sync::Mutex<[(i64, i64); CLIENTS as usize]>>;

async fn transfer(database: DatabaseHandle, moved: Moved, client: u32) {
    while database.is_running() {
        moved
            .lock()
            .expect("whole")
            .get_mut(client as usize)
            .expect("a client")
            .0 += 1;
        let args = CallArgs::Json(json!([2 * client, 2 * client + 1, 1]).to_string());
        let called = database.call(caller(OWNER), "transfer", args).await;
        if called.is_ok() {
            let known = &mut moved.lock().expect("whole")[client as usize];
            known.1 = known.0;
        }
    }
}

fn check(world: &Simulated, database: &DatabaseHandle, moved: &Moved) {
    let query = "SELECT * FROM accounts".to_owned();
    let asked = database.sql(caller(OWNER), query, true, JsonRows::default());
    let found = world.until("rows", asked).expect("rows").text();
    let mut rows: Vec<(u32, i64)> = serde_json::from_str(&found).expect("numbers");
    rows.sort_unstable();
    world.world().note(&rows);
    let mut moved = moved.lock().expect("whole");
    for (pair, known) in rows.chunks(2).zip(moved.iter_mut()) {
        let there = pair[1].1 - BALANCE;
        assert_eq!(pair[0].1, BALANCE - there, "{rows:?}");
        assert!((known.1..=known.0).contains(&there), "{there}: {known:?}");
        *known = (there, there);
    }
}

fn simulate(seed: u64, engine: &Arc<dyn ModuleEngine>) -> u64 {
    let world = Simulated::new(seed, false);
    let mut storage = SimStorage::new(seed);
    let limits = Limits {
        log_segment_bytes: 4_096,
        log_preallocate: false,
        snapshot_log_bytes: 2_000,
        ..Limits::default()
    };
    let of_life = |storage: &SimStorage| options(&world, storage, &limits, engine.clone());
    let made = DatabaseHandle::create(of_life(&storage), module("transfer"), HostKind::Wasm);
    let mut database = made.expect("the module is valid");
    let args = CallArgs::Json(json!([2 * CLIENTS, BALANCE]).to_string());
    let seeded = world.until("seeded", database.call(caller(OWNER), "seed", args));
    seeded.expect("seeded");
    let moved = Moved::default();
    for _ in 0..LIVES {
        let clients = (0..CLIENTS).map(|client| transfer(database.clone(), moved.clone(), client));
        let mut clients: Vec<Client> = clients
            .map(|client| -> Client { Box::pin(client) })
            .collect();
        for _ in 0..world.draw(STEPS) {
            match world.once_in(2) {
                true => drop(poll(&mut clients[world.draw(CLIENTS as usize)])),
                false => world.step(),
            }
        }
        if world.once_in(2) {
            let stopped = database.clone().shutdown(ShutdownReason::ServerStop);
            world.until("the database stops", stopped);
        }
        drop((clients, database));
        world.kill();
        storage = storage.crash(world.draw(usize::MAX) as u64);
        database = DatabaseHandle::open(of_life(&storage)).expect("it opens");
        check(&world, &database, &moved);
    }
    drop(database);
    world.kill();
    let trace = world.world().trace();
    trace
}

/// An engine that keeps what it has compiled for as long as the directory is there.
pub fn engine() -> (Arc<dyn ModuleEngine>, tempfile::TempDir) {
    let cache = tempfile::tempdir().expect("a directory");
    let engine_options = WasmEngineOptions {
        code_cache: Some(CodeCacheOptions {
            directory: cache.path().join("code"),
            key_file: cache.path().join("key"),
            bytes_max: CODE_CACHE_BYTES_MAX,
        }),
        ..WasmEngineOptions::default()
    };
    let engine = WasmEngine::new(engine_options).expect("the engine starts");
    (Arc::new(engine), cache)
}

#[test]
fn a_module_in_webassembly_keeps_what_was_acknowledged() {
    let (engine, _cache) = engine();
    for seed in 0..SEEDS {
        assert_eq!(simulate(seed, &engine), simulate(seed, &engine), "{seed}");
    }
}
