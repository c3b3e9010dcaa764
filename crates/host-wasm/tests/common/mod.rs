//! What the tests share: an engine, a console that remembers, and modules written by hand.

#![allow(dead_code)]

use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock};

use lightcone_engine::Datastore;
use lightcone_host::{
    ConsoleRecord, ConsoleSink, HandlerResponse, HostConfig, HostEnv, HostError, HostLimits,
    LoadedModule, ModuleEngine, ModuleInstance, OpenTransaction, ProcedureCall, ProcedureOutcome,
    ProcedureResult, ReducerCall, ReducerOutcome,
};
use lightcone_host_wasm::{CodeCacheOptions, WasmEngine, WasmEngineOptions, CODE_CACHE_BYTES_MAX};
use lightcone_types::{ConnectionId, Identity, Timestamp};

#[path = "../../../host/tests/common/transactions.rs"]
mod transactions;

use transactions::Committing;

/// The example values of spec 03 §16.2.
pub const IDENTITY_HEX: &str = "0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20";
pub const CONNECTION_HEX: &str = "0102030405060708090a0b0c0d0e0f10";

pub fn engine() -> &'static WasmEngine {
    static ENGINE: OnceLock<WasmEngine> = OnceLock::new();
    ENGINE.get_or_init(|| {
        // Compiling is the slowest part of these tests, as the compiler itself is hardly optimised in them.
        cached_engine(Path::new(env!("CARGO_TARGET_TMPDIR")), CODE_CACHE_BYTES_MAX)
    })
}

/// An engine that keeps compiled code in this directory.
pub fn cached_engine(directory: &Path, bytes_max: u64) -> WasmEngine {
    let code_cache = CodeCacheOptions {
        directory: directory.join("code-cache"),
        key_file: directory.join("code-cache.key"),
        bytes_max,
    };
    WasmEngine::new(WasmEngineOptions {
        code_cache: Some(code_cache),
        ..WasmEngineOptions::default()
    })
    .expect("the engine")
}

/// Remembers every record as its line in the module log, without the time.
#[derive(Default)]
pub struct Recorder(Mutex<Vec<String>>);

impl ConsoleSink for Recorder {
    fn log(&self, mut record: ConsoleRecord<'_>) {
        record.ts = Timestamp(0);
        let mut line = Vec::new();
        record.write_json_line(&mut line);
        self.0.lock().unwrap().push(
            String::from_utf8(line)
                .unwrap()
                .trim_end()
                .replace("\"ts\":0,", ""),
        );
    }
}

impl Recorder {
    pub fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

/// Limits that a test can wait for.
pub fn small_limits() -> HostLimits {
    HostLimits {
        call_ms_max: 100,
        load_ms_max: 100,
        memory_bytes_max: 4 << 20,
        ..HostLimits::default()
    }
}

pub fn config(limits: HostLimits, console: Arc<Recorder>) -> HostConfig {
    HostConfig::new(Identity::from_hex(IDENTITY_HEX).unwrap(), console, limits)
}

pub fn load(program: &[u8]) -> Result<Box<dyn LoadedModule>, HostError> {
    engine().load(program, &config(small_limits(), Arc::default()))
}

/// The text of the error that a program in the text format is refused with.
pub fn refusal(text: &str) -> String {
    let program = wat::parse_str(text).expect("valid text format");
    load(&program)
        .err()
        .expect("the program should be refused")
        .to_string()
}

/// A program with these imports, definitions and body of `__call_reducer__`, whose locals are `$id`, `$args` and `$sink`.
pub fn reducer(definitions: &str, body: &str) -> String {
    // Imports must come first.
    format!(
        r#"(module
            {definitions}
            (memory (export "memory") 1)
            (func (export "__describe_module__") (param i32))
            (func (export "__call_reducer__") (param $id i32)
                (param $s0 i64) (param $s1 i64) (param $s2 i64) (param $s3 i64) (param $c0 i64) (param $c1 i64)
                (param $time i64) (param $args i32) (param $sink i32) (result i32)
                {body}))"#
    )
}

/// An instance with what it needs to be called.
pub struct Running {
    pub module: Box<dyn LoadedModule>,
    pub instance: Box<dyn ModuleInstance>,
    pub console: Arc<Recorder>,
    pub datastore: Datastore,
    pub limits: HostLimits,
}

impl Running {
    pub fn start(text: &str) -> Running {
        Running::start_with(text, small_limits())
    }

    pub fn start_with(text: &str, limits: HostLimits) -> Running {
        Running::start_binary(&wat::parse_str(text).expect("valid text format"), limits)
    }

    pub fn start_binary(program: &[u8], limits: HostLimits) -> Running {
        let console = Arc::<Recorder>::default();
        let config = config(limits.clone(), console.clone());
        let module = engine()
            .load(program, &config)
            .unwrap_or_else(|error| panic!("{error}"));
        let instance = module
            .instantiate(HostEnv::new(config))
            .unwrap_or_else(|error| panic!("{error}"));
        Running {
            module,
            instance,
            console,
            datastore: Datastore::new(),
            limits,
        }
    }

    pub fn replace(&mut self) {
        let env = HostEnv::new(config(self.limits.clone(), self.console.clone()));
        self.instance = self
            .module
            .instantiate(env)
            .unwrap_or_else(|error| panic!("{error}"));
    }

    pub fn call(&mut self, id: u32, args: &[u8]) -> ReducerOutcome {
        let call = ReducerCall {
            id,
            name: &"test_reducer".into(),
            sender: Identity::from_hex(IDENTITY_HEX).unwrap(),
            connection_id: ConnectionId::from_hex(CONNECTION_HEX).unwrap(),
            timestamp: Timestamp(1_700_000_000_000_000),
            args,
        };
        if !self.datastore.in_transaction() {
            self.datastore.begin();
        }
        let transaction = OpenTransaction::of(&mut self.datastore);
        self.instance.call_reducer(transaction, &call)
    }

    /// Calls procedure `id`. No transaction may be open.
    pub fn call_procedure(&mut self, id: u32, args: &[u8]) -> ProcedureOutcome<Vec<u8>> {
        let outcome = self.run_procedure((id, "test_procedure"), args, None);
        outcome.map(|result| match result {
            ProcedureResult::Value(value) => value.into_inner(),
            ProcedureResult::Response(_) => panic!("a procedure does not respond"),
        })
    }

    /// Asks HTTP handler `id`. No transaction may be open.
    pub fn ask(
        &mut self,
        id: u32,
        request: &[u8],
        body: &[u8],
    ) -> ProcedureOutcome<HandlerResponse> {
        let outcome = self.run_procedure((id, "test_handler"), request, Some(body));
        outcome.map(|result| match result {
            ProcedureResult::Response(response) => response,
            ProcedureResult::Value(_) => panic!("a handler responds"),
        })
    }

    fn run_procedure(
        &mut self,
        (id, name): (u32, &str),
        args: &[u8],
        body: Option<&[u8]>,
    ) -> ProcedureOutcome {
        let call = ReducerCall {
            id,
            name: &name.into(),
            sender: Identity::ZERO,
            connection_id: ConnectionId(0),
            timestamp: Timestamp(1_700_000_000_000_000),
            args,
        };
        let mut transactions = Committing::on(&mut self.datastore);
        let sender_jwt = body.map_or("", |_| r#"{"sub":"s"}"#);
        let call = ProcedureCall {
            call,
            body,
            sender_jwt,
        };
        self.instance.call_procedure(&mut transactions, &call)
    }

    /// The result of `__call_reducer__`, for bodies that return what they saw.
    pub fn code(&mut self, id: u32, args: &[u8]) -> i64 {
        match self.call(id, args) {
            ReducerOutcome::Ok => 0,
            ReducerOutcome::UserError(_) => 1,
            ReducerOutcome::Fatal { message } => message
                .strip_prefix("`__call_reducer__` returned the unknown code ")
                .and_then(|code| code.parse().ok())
                .unwrap_or_else(|| panic!("{message}")),
            ReducerOutcome::TimedOut { message } => panic!("{message}"),
        }
    }

    /// The message of a call that must end in a trap.
    pub fn trap(&mut self, id: u32) -> String {
        match self.call(id, &[]) {
            ReducerOutcome::Fatal { message } => {
                assert!(self.instance.is_poisoned(), "not poisoned after {message}");
                message
            }
            other => panic!("expected a trap, got {other:?}"),
        }
    }
}
