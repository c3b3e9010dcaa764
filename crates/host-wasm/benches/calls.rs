//! What a reducer call, a host call and a transfer cost inside one process, without network and log.
//!
//! `cargo bench -p lightcone-host-wasm`; the modules are built if `LIGHTCONE_MODULES_DIR` does not hold them.

use std::sync::Arc;

use criterion::{criterion_group, criterion_main, Criterion, Throughput};
use lightcone_engine::{CommitOutput, Datastore};
use lightcone_host::{
    HostConfig, HostEnv, HostLimits, LoadedModule, ModuleEngine, ModuleInstance, NullConsole,
    OpenTransaction, ReducerCall, ReducerOutcome,
};
use lightcone_host_wasm::{WasmEngine, WasmEngineOptions};
use lightcone_schema::ModuleDef;
use lightcone_types::{ConnectionId, Identity, Timestamp};

#[path = "../tests/common/modules.rs"]
mod modules;

const ACCOUNTS: u32 = 100_000;

struct Module {
    loaded: Box<dyn LoadedModule>,
    instance: Box<dyn ModuleInstance>,
    datastore: Datastore,
    name: Arc<str>,
}

impl Module {
    fn load(engine: &WasmEngine, program: &[u8]) -> Module {
        let config = HostConfig::new(Identity::ZERO, Arc::new(NullConsole), HostLimits::default());
        let loaded = engine.load(program, &config).expect("the module loads");
        let instance = loaded
            .instantiate(HostEnv::new(config))
            .expect("an instance");
        let mut datastore = Datastore::new();
        datastore.begin();
        Module {
            loaded,
            instance,
            datastore,
            name: "bench".into(),
        }
    }

    fn call(&mut self, id: u32, args: &[u8]) {
        let call = ReducerCall {
            id,
            name: &self.name,
            sender: Identity::ZERO,
            connection_id: ConnectionId(1),
            timestamp: Timestamp(1),
            args,
        };
        let transaction = OpenTransaction::of(&mut self.datastore);
        let outcome = self.instance.call_reducer(transaction, &call);
        assert_eq!(outcome, ReducerOutcome::Ok);
    }
}

/// A reducer that makes `id` host calls.
fn host_calls(import: &str, call: &str) -> Vec<u8> {
    let text = format!(
        r#"(module
            {import}
            (memory (export "memory") 1)
            (func (export "__describe_module__") (param i32))
            (func (export "__call_reducer__") (param $id i32)
                (param i64 i64 i64 i64 i64 i64 i64) (param $args i32) (param $sink i32) (result i32)
                (loop $again
                    (if (local.get $id) (then
                        {call}
                        (local.set $id (i32.sub (local.get $id) (i32.const 1)))
                        (br $again))))
                (i32.const 0)))"#
    );
    wat::parse_str(text).expect("valid text format")
}

fn calls(criterion: &mut Criterion) {
    let engine = WasmEngine::new(WasmEngineOptions::default()).expect("the engine");
    let identity = r#"(import "spacetime_10.0" "identity" (func $identity (param i32)))"#;
    let mut group = criterion.benchmark_group("calls");

    let mut module = Module::load(
        &engine,
        &host_calls(identity, "(call $identity (i32.const 64))"),
    );
    group.bench_function("empty reducer", |bencher| {
        bencher.iter(|| module.call(0, &[]))
    });
    group.bench_function("empty reducer, 16 bytes of arguments", |bencher| {
        bencher.iter(|| module.call(0, &[7; 16]))
    });
    group.throughput(Throughput::Elements(1000));
    group.bench_function("1000 x identity", |bencher| {
        bencher.iter(|| module.call(1000, &[]))
    });

    let remaining = r#"(import "spacetime_10.1" "bytes_source_remaining_length" (func $remaining (param i32 i32) (result i32)))"#;
    let call = "(drop (call $remaining (local.get $args) (i32.const 64)))";
    let mut module = Module::load(&engine, &host_calls(remaining, call));
    group.bench_function("1000 x bytes_source_remaining_length", |bencher| {
        bencher.iter(|| module.call(1000, &[7; 16]))
    });
    group.finish();
}

fn transfers(criterion: &mut Criterion) {
    let engine = WasmEngine::new(WasmEngineOptions::default()).expect("the engine");
    let mut module = Module::load(&engine, &modules::program("transfer"));
    let def =
        ModuleDef::from_bsatn(module.loaded.describe()).unwrap_or_else(|errors| panic!("{errors}"));
    let reducer = |name| def.reducer(name).expect("the module has it").0 as u32;
    let (seed, transfer) = (reducer("seed"), reducer("transfer"));
    let mut output = CommitOutput::default();
    module.datastore = modules::database(&def);
    module.datastore.begin();
    module.call(
        seed,
        &[&ACCOUNTS.to_le_bytes()[..], &1_000_000_000i64.to_le_bytes()].concat(),
    );
    module
        .datastore
        .commit(&mut output)
        .expect("the record fits");

    let mut group = criterion.benchmark_group("transfer");
    // A linear congruential walk over the accounts: neither sequential nor the same few.
    let mut state = 1u32;
    let mut next = move || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) % ACCOUNTS
    };
    let mut transfer_args = move || {
        let (from, to) = (next(), next());
        let to = if from == to { (to + 1) % ACCOUNTS } else { to };
        let mut args = [0; 16];
        args[..4].copy_from_slice(&from.to_le_bytes());
        args[4..8].copy_from_slice(&to.to_le_bytes());
        args[8..].copy_from_slice(&1i64.to_le_bytes());
        args
    };
    group.bench_function("through the module, committed", |bencher| {
        bencher.iter(|| {
            let args = transfer_args();
            module.datastore.begin();
            module.call(transfer, &args);
            output.clear();
            module
                .datastore
                .commit(&mut output)
                .expect("the record fits");
        })
    });

    let mut datastore = module.datastore;
    let accounts = datastore.table_id_from_name("accounts").expect("the table");
    let schema = datastore.schema(accounts).expect("the table").clone();
    let by_id = schema
        .indexes
        .iter()
        .find(|index| index.unique)
        .expect("the primary key")
        .id;
    let mut rows = lightcone_engine::RowBuffer::default();
    let mut generated = Vec::new();
    group.bench_function("through the engine alone, committed", |bencher| {
        bencher.iter(|| {
            let args = transfer_args();
            datastore.begin();
            let mut row = |id: &[u8]| {
                rows.clear();
                datastore
                    .index_scan_point(by_id, id, &mut rows)
                    .expect("a scan");
                <[u8; 12]>::try_from(&rows.bytes[..]).expect("one row")
            };
            let (mut from, mut to) = (row(&args[..4]), row(&args[4..8]));
            for (row, change) in [(&mut from, -1), (&mut to, 1)] {
                let balance = i64::from_le_bytes(row[4..].try_into().expect("8 bytes")) + change;
                row[4..].copy_from_slice(&balance.to_le_bytes());
                datastore
                    .update(accounts, by_id, &row[..], &mut generated)
                    .expect("an update");
            }
            output.clear();
            datastore.commit(&mut output).expect("the record fits");
        })
    });
    group.finish();
}

criterion_group!(benches, calls, transfers);
criterion_main!(benches);
