//! What is idle gives memory back: instances rest, and threads of procedures end with their isolates.

mod common;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

use common::other_machine::OtherMachine;
use common::{bundle, caller, create, options, OWNER};
use lightcone_database::{
    AllowList, CallArgs, Commons, DatabaseHandle, HostKind, Machine, Outbound, OutboundOptions,
    ShutdownReason,
};
use lightcone_host::{
    HostEnv, HostError, InstanceOptions, LoadedModule, ModuleEngine, ModuleInstance,
    OpenTransaction, ProcedureCall, ProcedureOutcome, ReducerCall, ReducerOutcome, Transactions,
};
use lightcone_host_js::JsEngineOptions;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// An engine whose instances count how often they rest.
struct Counting<T: ?Sized>(Arc<AtomicUsize>, Box<T>);

impl ModuleEngine for Counting<dyn ModuleEngine> {
    fn name(&self) -> &'static str {
        self.1.name()
    }

    fn load(
        &self,
        program: &[u8],
        options: &InstanceOptions,
    ) -> Result<Box<dyn LoadedModule>, HostError> {
        let loaded: Box<dyn LoadedModule> = self.1.load(program, options)?;
        Ok(Box::new(Counting(self.0.clone(), loaded)))
    }
}

impl LoadedModule for Counting<dyn LoadedModule> {
    fn describe(&self) -> &[u8] {
        self.1.describe()
    }

    fn instantiate(&self, env: HostEnv) -> Result<Box<dyn ModuleInstance>, HostError> {
        Ok(Box::new(Counting(self.0.clone(), self.1.instantiate(env)?)))
    }
}

impl ModuleInstance for Counting<dyn ModuleInstance> {
    fn call_reducer(
        &mut self,
        transaction: OpenTransaction<'_>,
        call: &ReducerCall<'_>,
    ) -> ReducerOutcome {
        self.1.call_reducer(transaction, call)
    }

    fn call_procedure(
        &mut self,
        transactions: &mut dyn Transactions,
        call: &ProcedureCall<'_>,
    ) -> ProcedureOutcome {
        self.1.call_procedure(transactions, call)
    }

    fn rests(&self) -> bool {
        true
    }

    fn rest(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }

    fn is_poisoned(&self) -> bool {
        self.1.is_poisoned()
    }
}

async fn call(database: &DatabaseHandle, function: &str, args: &str) {
    let args = CallArgs::Json(args.to_owned());
    let called = database.call(caller(OWNER), function, args).await;
    called.unwrap_or_else(|error| panic!("{function}: {error:?}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_instance_rests_once_without_calls() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut options = options(directory.path());
    let rests = Arc::new(AtomicUsize::new(0));
    let engine = lightcone_host_wasm::WasmEngine::new(Default::default()).expect("starts");
    let engine: Box<dyn ModuleEngine> = Box::new(engine);
    options.engines.wasm = Arc::new(Counting(rests.clone(), engine));
    // Ten seconds are two and a half here: calls keep it busy also on a slow machine.
    options.commons = Commons::new(OtherMachine::hurried(4), 1 << 30, 2);
    let database = create(options, "transfer").await;
    call(&database, "seed", "[10, 1000]").await;
    let rested = async |times: usize| {
        let deadline = Instant::now() + Duration::from_secs(60);
        while rests.load(Ordering::SeqCst) < times {
            assert!(Instant::now() < deadline, "it did not rest");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        rests.load(Ordering::SeqCst)
    };
    assert_eq!(rested(1).await, 1);
    tokio::time::sleep(Duration::from_millis(5000)).await;
    assert_eq!(rested(1).await, 1, "there was nothing to rest from");
    let end = Instant::now() + Duration::from_millis(5000);
    while Instant::now() < end {
        call(&database, "transfer", "[1, 2, 1]").await;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(rested(1).await, 1, "it was busy");
    assert_eq!(rested(2).await, 2);
    database.shutdown(ShutdownReason::ServerStop).await;
}

/// Threads of procedures of this process.
#[cfg(target_os = "linux")]
fn procedure_threads() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").expect("Linux");
    let names = tasks.filter_map(|task| {
        let task = task.ok()?;
        std::fs::read_to_string(task.path().join("comm")).ok()
    });
    names.filter(|name| name.trim() == "procedure").count()
}

/// A few calls keep a few threads: those of a crowd that is gone end, and their isolates with them.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn threads_that_no_call_needs_end_while_others_are_used() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await;
    let listener = listener.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let _ = stream.read(&mut [0; 4096]).await;
                tokio::time::sleep(Duration::from_millis(200)).await;
                let answer = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
                let _ = stream.write_all(answer.as_bytes()).await;
            });
        }
    });
    let directory = tempfile::tempdir().expect("a directory");
    let mut options = options(directory.path());
    let engine = lightcone_host_js::engine(JsEngineOptions::default());
    options.engines.js = Some(engine.expect("the engine starts"));
    let outbound = Outbound::new(OutboundOptions {
        allow: AllowList::parse(["127.0.0.1"]).expect("a list"),
        ..OutboundOptions::current()
    });
    let outbound = Some(Arc::new(outbound.expect("a client")));
    options.commons = Commons::with_outbound(Machine::current(), 1 << 30, 2, outbound);
    let program: Arc<[u8]> = bundle("procedures").into_bytes().into();
    let create = move || DatabaseHandle::create(options, program, HostKind::Js);
    let created = tokio::task::spawn_blocking(create).await.expect("no panic");
    let database = created.unwrap_or_else(|error| panic!("{error}"));
    let args = format!("[1, \"http://127.0.0.1:{port}/\"]");
    call(&database, "fetch", &args).await;
    let crowd = (0..6).map(|_| {
        let (database, args) = (database.clone(), args.clone());
        tokio::spawn(async move { call(&database, "fetch", &args).await })
    });
    for one in crowd.collect::<Vec<_>>() {
        one.await.expect("answered");
    }
    let many = procedure_threads();
    assert!(many >= 4, "{many}");
    let end = Instant::now() + Duration::from_secs(13);
    while Instant::now() < end {
        call(&database, "fetch", &args).await;
    }
    let few = procedure_threads();
    assert!((1..=2).contains(&few), "{few} of {many} are left");
    database.shutdown(ShutdownReason::ServerStop).await;
}
