//! What the tests share: the engine of this build, a console that remembers, bundles, and modules written by hand.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, OnceLock};

use lightcone_engine::{CommitOutput, Datastore};
use lightcone_host::{
    ConsoleRecord, ConsoleSink, HandlerResponse, HostConfig, HostEnv, HostError, HostLimits,
    LoadedModule, ModuleEngine, ModuleInstance, OpenTransaction, ProcedureCall, ProcedureOutcome,
    ProcedureResult, ReducerCall, ReducerOutcome, FATAL_ERROR_TEXT,
};
use lightcone_host_js::JsEngineOptions;
use lightcone_schema::ModuleDef;
use lightcone_types::{ConnectionId, Identity, Timestamp};

#[path = "../../../host/tests/common/transactions.rs"]
mod transactions;

use transactions::Committing;

/// The sender and the connection of every call.
pub const SENDER: u64 = 0x1234;
pub const CONNECTION: u128 = 7;
/// The identity of the database (§13.2).
pub const DATABASE: u64 = 0xc200;

pub fn engine() -> &'static Arc<dyn ModuleEngine> {
    static ENGINE: OnceLock<Arc<dyn ModuleEngine>> = OnceLock::new();
    ENGINE.get_or_init(|| {
        lightcone_host_js::engine(JsEngineOptions::default())
            .unwrap_or_else(|error| panic!("{error}"))
    })
}

/// A bundle that `scripts/js-modules.sh` makes of a module and the published package.
pub fn bundle(name: &str) -> Vec<u8> {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let directory = BUILT.get_or_init(|| {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let status = Command::new(root.join("scripts/js-modules.sh"))
            .status()
            .expect("scripts/js-modules.sh runs");
        assert!(status.success(), "scripts/js-modules.sh: {status}");
        match std::env::var_os("LIGHTCONE_JS_DIR") {
            Some(directory) => PathBuf::from(directory),
            None => PathBuf::from(std::env::var_os("HOME").expect("HOME is set"))
                .join(".cache/lightcone/js"),
        }
    });
    let path = directory.join(format!("{name}.js"));
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// What the console cannot stand.
pub const PANICS: &str = "the console panics";

/// Remembers every record as its line in the module log, without the time.
#[derive(Default)]
pub struct Recorder(Mutex<Vec<String>>);

impl ConsoleSink for Recorder {
    fn log(&self, mut record: ConsoleRecord<'_>) {
        assert_ne!(record.message, PANICS, "a bug of the host");
        record.ts = Timestamp(0);
        let mut line = Vec::new();
        record.write_json_line(&mut line);
        let line = String::from_utf8(line).expect("lines are text");
        self.0
            .lock()
            .unwrap()
            .push(line.trim_end().replace("\"ts\":0,", ""));
    }
}

impl Recorder {
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }

    /// The levels and messages of the records.
    pub fn messages(&self) -> Vec<String> {
        self.take()
            .iter()
            .map(|line| {
                let level = line.split('"').nth(3).unwrap();
                let message = line.split_once("\"message\":\"").unwrap().1;
                let end = message.find("\",\"trace\"").unwrap_or(message.len() - 2);
                format!("{level}: {}", message[..end].replace("\\\"", "\""))
            })
            .collect()
    }
}

/// Limits that a test can wait for.
pub fn small_limits() -> HostLimits {
    HostLimits {
        call_ms_max: 300,
        load_ms_max: 10_000,
        memory_bytes_max: 64 << 20,
        ..HostLimits::default()
    }
}

/// A module written by hand around the body of its reducer hook, whose parameters are `id, sender, connection, timestamp,
/// args`. `sys`, `sys21` and `sys22` are the namespaces of the host functions, `log(...)` writes an Info record.
pub fn script(definitions: &str, body: &str) -> String {
    format!(
        "import * as sys from 'spacetime:sys@2.0'; import * as sys21 from 'spacetime:sys@2.1'; import * as sys22 from 'spacetime:sys@2.2';\n\
         const log = (...values) => sys.console_log(2, values.map(String).join(' '));\n\
         class SenderError extends Error {{}}\n\
         class HostCallError extends Error {{ constructor(code, message) {{ super(message); this.code = code; }} }}\n\
         const attempt = (f) => {{ try {{ return String(f()); }} catch (e) {{\n\
           return e instanceof HostCallError ? `errno ${{e.code}} ${{e.message}}` : String(e); }} }};\n\
         {definitions}\n\
         const none = () => {{}};\n\
         const hooks = {{\n\
           __describe_module__: () => new Uint8Array(0),\n\
           __get_error_constructor__: (code) => class extends HostCallError {{ constructor(m) {{ super(code, m); }} }},\n\
           __sender_error_class__: SenderError,\n\
           __call_reducer__(id, sender, connection, timestamp, args) {{ {body} }},\n\
           __call_view__: none, __call_view_anon__: none, __call_procedure__: none,\n\
         }};\n\
         export default {{ [sys.moduleHooks]() {{ return hooks; }} }};\n"
    )
}

pub fn config(limits: HostLimits, console: Arc<Recorder>) -> HostConfig {
    HostConfig::new(identity(DATABASE), console, limits)
}

/// The text of the error that a program is refused with.
pub fn refusal(program: &str) -> String {
    let config = config(small_limits(), Arc::default());
    match engine().load(program.as_bytes(), &config) {
        Ok(_) => panic!("the program should be refused"),
        Err(error) => error.to_string(),
    }
}

/// An instance with what it needs to be called.
pub struct Running {
    pub module: Box<dyn LoadedModule>,
    pub instance: Box<dyn ModuleInstance>,
    pub console: Arc<Recorder>,
    pub datastore: Datastore,
    pub def: Option<ModuleDef>,
    pub limits: HostLimits,
}

impl Running {
    /// A module written by hand, in a database with the tables of `person`.
    pub fn script(body: &str) -> Running {
        Running::script_with("", body, small_limits())
    }

    pub fn script_with(definitions: &str, body: &str, limits: HostLimits) -> Running {
        Running::loaded(&script(definitions, body), limits)
    }

    /// A module around the body of its procedure hook.
    pub fn procedure(body: &str, limits: HostLimits) -> Running {
        let hook =
            format!("__call_procedure__(id, sender, connection, timestamp, args) {{ {body} }}");
        let program = script("", "").replace("__call_procedure__: none", &hook);
        Running::loaded(&program, limits)
    }

    /// A module around the body of its hook for HTTP handlers.
    pub fn http_handler(body: &str, limits: HostLimits) -> Running {
        let hook = format!(
            "__call_procedure__: none, __call_http_handler__(id, timestamp, request, body, sender, jwt) {{ {body} }}"
        );
        let program = script("", "").replace("__call_procedure__: none", &hook);
        Running::loaded(&program, limits)
    }

    /// A module whose procedures are called in a buffer (docs/js-abi.md) where they fit, and otherwise the standard way.
    pub fn direct_procedure(direct: &str, standard: &str, limits: HostLimits) -> Running {
        let hooks = format!(
            "__call_procedure__(id, sender, connection, timestamp, args) {{ {standard} }},\n\
             __lightcone_call_procedure__(id, length) {{ {direct} }}"
        );
        let kept = "const kept = new Uint8Array(8192).map((_, index) => index + 1);";
        let program = script(kept, "").replace("__call_procedure__: none", &hooks);
        Running::loaded(&program, limits)
    }

    /// A whole program, in a database with the tables of `person`.
    pub fn loaded(program: &str, limits: HostLimits) -> Running {
        static PERSON: OnceLock<Vec<u8>> = OnceLock::new();
        let description = PERSON.get_or_init(|| {
            let config = config(HostLimits::default(), Arc::default());
            let module = engine().load(&bundle("person"), &config);
            module
                .unwrap_or_else(|error| panic!("{error}"))
                .describe()
                .to_vec()
        });
        let mut running =
            Running::load(program.as_bytes(), limits).unwrap_or_else(|error| panic!("{error}"));
        running.create_tables(description);
        running
    }

    /// A module with its own tables.
    pub fn bundle(name: &str) -> Running {
        let mut running = Running::load(&bundle(name), HostLimits::default())
            .unwrap_or_else(|error| panic!("{error}"));
        let description = running.module.describe().to_vec();
        running.create_tables(&description);
        running
    }

    pub fn load(program: &[u8], limits: HostLimits) -> Result<Running, HostError> {
        let console = Arc::<Recorder>::default();
        let config = config(limits.clone(), console.clone());
        let module = engine().load(program, &config)?;
        let instance = module.instantiate(HostEnv::new(config))?;
        Ok(Running {
            module,
            instance,
            console,
            datastore: Datastore::new(),
            def: None,
            limits,
        })
    }

    fn create_tables(&mut self, description: &[u8]) {
        let def = ModuleDef::from_bsatn(description).unwrap_or_else(|errors| panic!("{errors}"));
        let mut datastore = Datastore::new();
        datastore.begin();
        datastore.bootstrap();
        datastore.create_tables(&def).expect("valid tables");
        datastore
            .commit(&mut CommitOutput::default())
            .expect("the record fits");
        self.datastore = datastore;
        self.def = Some(def);
    }

    pub fn replace(&mut self) {
        let env = HostEnv::new(config(self.limits.clone(), self.console.clone()));
        self.instance = self
            .module
            .instantiate(env)
            .unwrap_or_else(|error| panic!("{error}"));
    }

    /// Calls a procedure; how many transactions it committed is in the second part.
    pub fn call_procedure(&mut self, args: &[u8]) -> (ProcedureOutcome<Vec<u8>>, usize) {
        let (outcome, committed) = self.run_procedure(args, None);
        let value = outcome.map(|result| match result {
            ProcedureResult::Value(value) => value.into_inner(),
            ProcedureResult::Response(_) => panic!("a procedure does not respond"),
        });
        (value, committed)
    }

    /// The same of an HTTP handler.
    pub fn call_http_handler(
        &mut self,
        request: &[u8],
        body: &[u8],
    ) -> (ProcedureOutcome<HandlerResponse>, usize) {
        let (outcome, committed) = self.run_procedure(request, Some(body));
        let response = outcome.map(|result| match result {
            ProcedureResult::Response(response) => response,
            ProcedureResult::Value(_) => panic!("a handler responds"),
        });
        (response, committed)
    }

    fn run_procedure(&mut self, args: &[u8], body: Option<&[u8]>) -> (ProcedureOutcome, usize) {
        let call = ReducerCall {
            id: 0,
            name: &"test_procedure".into(),
            sender: identity(SENDER),
            connection_id: ConnectionId(CONNECTION),
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
        let outcome = self.instance.call_procedure(&mut transactions, &call);
        let committed = transactions.committed;
        assert!(!self.datastore.in_transaction());
        (outcome, committed)
    }

    /// Calls a reducer in a transaction of its own, which is committed if it succeeds.
    pub fn call(&mut self, id: u32, args: &[u8]) -> ReducerOutcome {
        let call = ReducerCall {
            id,
            name: &"test_reducer".into(),
            sender: identity(SENDER),
            connection_id: ConnectionId(CONNECTION),
            timestamp: Timestamp(1_700_000_000_000_000),
            args,
        };
        self.datastore.begin();
        let transaction = OpenTransaction::of(&mut self.datastore);
        let outcome = self.instance.call_reducer(transaction, &call);
        match outcome {
            ReducerOutcome::Ok => {
                self.datastore
                    .commit(&mut CommitOutput::default())
                    .expect("the record fits");
            }
            _ => self.datastore.rollback(),
        }
        outcome
    }

    pub fn call_named(&mut self, name: &str, args: &[u8]) -> ReducerOutcome {
        let def = self.def.as_ref().expect("a bundle");
        let id = def
            .reducers
            .iter()
            .position(|reducer| reducer.name.as_str() == name)
            .unwrap_or_else(|| panic!("no reducer {name}"));
        self.call(id as u32, args)
    }

    /// Calls reducer 0, which must succeed, and gives what it logged.
    pub fn logs(&mut self) -> Vec<String> {
        let outcome = self.call(0, &[]);
        assert_eq!(outcome, ReducerOutcome::Ok, "{:?}", self.console.take());
        self.console
            .messages()
            .iter()
            .map(|line| line.trim_start_matches("Info: ").to_owned())
            .collect()
    }

    /// The message of a call that must end fatally.
    pub fn fatal(&mut self, id: u32) -> String {
        match self.call(id, &[]) {
            ReducerOutcome::Fatal { message } => {
                assert_ne!(message, FATAL_ERROR_TEXT);
                message
            }
            other => panic!("expected a fatal error, got {other:?}"),
        }
    }
}

pub fn identity(number: u64) -> Identity {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&number.to_le_bytes());
    Identity::from_le_bytes(bytes)
}
