//! What a reducer call, a host call and a transfer cost inside one process, without network and log file.
//!
//! Times are CPU times of the calling thread, so that they hold on a busy machine as well; the engine's own threads (compiler,
//! garbage collector) are not in them.
//!
//! `cargo bench -p lightcone-host-js --features v8` (or `quickjs`); `scripts/js-modules.sh` makes the bundle.

use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use criterion::{criterion_group, criterion_main, Bencher, Criterion, Throughput};
use lightcone_engine::{CommitOutput, Datastore};
use lightcone_host::{
    HostConfig, HostEnv, HostLimits, LoadedModule, ModuleInstance, NullConsole, OpenTransaction,
    ReducerCall, ReducerOutcome,
};
use lightcone_host_js::JsEngineOptions;
use lightcone_schema::ModuleDef;
use lightcone_types::{ConnectionId, Identity, Timestamp};

const ACCOUNTS: u32 = 100_000;

struct Module {
    loaded: Box<dyn LoadedModule>,
    instance: Box<dyn ModuleInstance>,
    datastore: Datastore,
    name: Arc<str>,
    timestamp: i64,
}

impl Module {
    fn load(program: &[u8]) -> Module {
        let config = HostConfig::new(
            Identity::ZERO,
            Arc::new(NullConsole),
            HostLimits {
                call_ms_max: 60_000,
                ..HostLimits::default()
            },
        );
        let engine = lightcone_host_js::engine(JsEngineOptions::default()).expect("the engine");
        let loaded = engine.load(program, &config).expect("the module loads");
        let mut instance = loaded
            .instantiate(HostEnv::new(config))
            .expect("an instance");
        instance.prepare();
        let mut datastore = Datastore::new();
        datastore.begin();
        Module {
            loaded,
            instance,
            datastore,
            name: "bench".into(),
            timestamp: 1_700_000_000_000_000,
        }
    }

    fn call(&mut self, id: u32, args: &[u8]) {
        self.timestamp += 1;
        let call = ReducerCall {
            id,
            name: &self.name,
            sender: Identity::from_le_bytes([7; 32]),
            connection_id: ConnectionId(0x1234_5678_9abc_def0_1234_5678_9abc_def0),
            timestamp: Timestamp(self.timestamp),
            args,
        };
        let transaction = OpenTransaction::of(&mut self.datastore);
        let outcome = self.instance.call_reducer(transaction, &call);
        assert_eq!(outcome, ReducerOutcome::Ok);
    }
}

/// A reducer that makes `id` host calls.
fn host_calls(call: &str) -> Vec<u8> {
    format!(
        "import * as sys from 'spacetime:sys@2.0';
         const none = () => {{}};
         const hooks = {{
           __describe_module__: () => new Uint8Array(0), __get_error_constructor__: () => Error, __sender_error_class__: Error,
           __call_reducer__(id) {{ for (let i = 0; i < id; i++) {{ {call} }} }},
           __call_view__: none, __call_view_anon__: none, __call_procedure__: none,
         }};
         export default {{ [sys.moduleHooks]: () => hooks }};"
    )
    .into_bytes()
}

/// Measures the CPU time of this thread.
fn cpu(bencher: &mut Bencher<'_>, mut body: impl FnMut()) {
    let now = || {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
    };
    bencher.iter_custom(|count| {
        let start = now();
        (0..count).for_each(|_| body());
        now() - start
    })
}

fn calls(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("calls");
    let mut module = Module::load(&host_calls("sys.identity();"));
    group.bench_function("empty reducer", |bencher| {
        cpu(bencher, || module.call(0, &[]))
    });
    group.bench_function("empty reducer, 16 bytes of arguments", |bencher| {
        cpu(bencher, || module.call(0, &[7; 16]))
    });
    group.throughput(Throughput::Elements(1000));
    group.bench_function("1000 x identity", |bencher| {
        cpu(bencher, || module.call(1000, &[]))
    });
    group.finish();
}

fn bundle(name: &str) -> Option<Vec<u8>> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let status = Command::new(root.join("scripts/js-modules.sh"))
        .status()
        .expect("scripts/js-modules.sh runs");
    assert!(status.success(), "scripts/js-modules.sh: {status}");
    let directory = match std::env::var_os("LIGHTCONE_JS_DIR") {
        Some(directory) => PathBuf::from(directory),
        None => PathBuf::from(std::env::var_os("HOME")?).join(".cache/lightcone/js"),
    };
    std::fs::read(directory.join(format!("{name}.js"))).ok()
}

fn transfers(criterion: &mut Criterion) {
    // The second one is there if the SDK of this repository was bundled with its transfer module.
    for name in ["transfer", "transfer-lightcone"] {
        if let Some(program) = bundle(name) {
            transfer(criterion, name, &program);
        }
    }
}

fn transfer(criterion: &mut Criterion, name: &str, program: &[u8]) {
    let mut module = Module::load(program);
    let def =
        ModuleDef::from_bsatn(module.loaded.describe()).unwrap_or_else(|errors| panic!("{errors}"));
    let reducer = |name| def.reducer(name).expect("the module has it").0 as u32;
    let (seed, transfer) = (reducer("seed"), reducer("transfer"));
    let mut output = CommitOutput::default();
    let mut datastore = Datastore::new();
    datastore.begin();
    datastore.bootstrap();
    datastore.create_tables(&def).expect("valid tables");
    module.datastore = datastore;
    let seed_args = [&ACCOUNTS.to_le_bytes()[..], &1_000_000_000i64.to_le_bytes()].concat();
    module.call(seed, &seed_args);
    let commit = |module: &mut Module, output: &mut CommitOutput| {
        output.clear();
        module.datastore.commit(output).expect("the record fits");
    };
    commit(&mut module, &mut output);

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
    let mut group = criterion.benchmark_group(name);
    group.bench_function("through the module, committed", |bencher| {
        cpu(bencher, || {
            let args = transfer_args();
            module.datastore.begin();
            module.call(transfer, &args);
            commit(&mut module, &mut output);
        })
    });
    group.finish();
}

criterion_group!(benches, calls, transfers);
criterion_main!(benches);
