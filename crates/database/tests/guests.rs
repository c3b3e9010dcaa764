//! Instances after traps: the next one is there already, or is made beside the writer. Answers do not wait for it.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::common::requests::until;
use crate::common::{caller, create, options, OWNER};
use lightcone_database::{CallArgs, CallError, DatabaseHandle, ShutdownReason};
use lightcone_host::{
    HostEnv, HostError, InstanceOptions, LoadedModule, ModuleEngine, ModuleInstance,
    OpenTransaction, ProcedureCall, ProcedureOutcome, ReducerCall, ReducerOutcome, Transactions,
};

/// So long it takes to make an instance.
const LOAD: Duration = Duration::from_millis(300);
/// The first argument of calls that trap.
const TRAPS: u8 = 99;

/// The threads that instances were made on.
type Made = Arc<Mutex<Vec<String>>>;

/// An engine whose instances take their time, and trap when they are told to.
struct Slow<T: ?Sized>(Made, bool, Box<T>);

impl ModuleEngine for Slow<dyn ModuleEngine> {
    fn name(&self) -> &'static str {
        self.2.name()
    }

    fn load(
        &self,
        program: &[u8],
        options: &InstanceOptions,
    ) -> Result<Box<dyn LoadedModule>, HostError> {
        let loaded: Box<dyn LoadedModule> = self.2.load(program, options)?;
        Ok(Box::new(Slow(self.0.clone(), false, loaded)))
    }
}

impl LoadedModule for Slow<dyn LoadedModule> {
    fn describe(&self) -> &[u8] {
        self.2.describe()
    }

    fn instantiate(&self, env: HostEnv) -> Result<Box<dyn ModuleInstance>, HostError> {
        std::thread::sleep(LOAD);
        let made = self.2.instantiate(env)?;
        let thread = std::thread::current();
        let name = thread.name().unwrap_or_default().to_owned();
        self.0.lock().expect("no panic").push(name);
        Ok(Box::new(Slow(self.0.clone(), false, made)))
    }
}

impl ModuleInstance for Slow<dyn ModuleInstance> {
    fn call_reducer(
        &mut self,
        transaction: OpenTransaction<'_>,
        call: &ReducerCall<'_>,
    ) -> ReducerOutcome {
        self.1 |= call.args.first() == Some(&TRAPS);
        match self.1 {
            true => ReducerOutcome::Fatal {
                message: "a trap".to_owned(),
            },
            false => self.2.call_reducer(transaction, call),
        }
    }

    fn call_procedure(
        &mut self,
        transactions: &mut dyn Transactions,
        call: &ProcedureCall<'_>,
    ) -> ProcedureOutcome {
        self.2.call_procedure(transactions, call)
    }

    fn is_poisoned(&self) -> bool {
        self.1
    }
}

async fn bump(database: &DatabaseHandle, id: u8) -> Result<(), CallError> {
    let args = CallArgs::Json(format!("[{id}]"));
    let called = database.call(caller(OWNER), "bump", args).await;
    called.map(drop)
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_trap_a_spare_instance_is_there() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut options = options(directory.path());
    let made = Made::default();
    let engine = lightcone_host_wasm::WasmEngine::new(Default::default()).expect("starts");
    options.engines.wasm = Arc::new(Slow::<dyn ModuleEngine>(
        made.clone(),
        false,
        Box::new(engine),
    ));
    let database = create(options, "procedures").await;
    bump(&database, 1).await.expect("bumped");
    let count = || made.lock().expect("no panic").len();
    let on_writer = || {
        let made = made.lock().expect("no panic");
        made.iter().filter(|name| *name == "writer").count()
    };
    // Most modules never trap, so there is no spare one before.
    let before = count();
    assert_eq!(on_writer(), 0);
    for trap in 0..3 {
        let begun = Instant::now();
        let trapped = bump(&database, TRAPS).await;
        assert!(
            matches!(trapped, Err(CallError::Fatal { .. })),
            "{trapped:?}"
        );
        if trap == 0 {
            assert_eq!(count(), before, "the answer has waited for an instance");
        }
        bump(&database, 1).await.expect("bumped");
        let waited = begun.elapsed() >= LOAD;
        assert_eq!(
            waited,
            trap == 0,
            "after trap {trap}: {:?}",
            begun.elapsed()
        );
        until("another one is made", || count() == before + 2 + trap).await;
    }
    assert_eq!(on_writer(), 0);
    database.shutdown(ShutdownReason::ServerStop).await;
}
