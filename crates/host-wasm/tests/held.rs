//! What an instance holds outside of its memory counts as well, also while it sleeps, and so do the mappings that it takes.

mod common;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use common::*;
use lightcone_host::{
    Account, Ask, HostEnv, HostLimits, HostTrap, InstanceAccounts, Kind, LoadedModule,
    OpenTransaction, ProcedureCall, ProcedureOutcome, ProcedureResult, ReducerCall,
    SuspendableInstance, Suspended, Transactions, Waiting,
};
use lightcone_types::{ConnectionId, Identity, Timestamp};
use tokio::sync::oneshot;

/// Each procedure takes as much as it can of one kind, and sleeps: a sink, timers, the function table. The last one only sleeps.
const HOLDERS: &str = r#"(module
    (import "spacetime_10.0" "bytes_sink_write" (func $write (param i32 i32 i32) (result i32)))
    (import "spacetime_10.0" "console_timer_start" (func $timer (param i32 i32) (result i32)))
    (import "spacetime_10.3" "procedure_sleep_until" (func $sleep (param i64) (result i64)))
    (memory (export "memory") 2)
    (table $table 1 funcref)
    (elem declare func $nothing)
    (func $nothing)
    (data (i32.const 24) "\00\00\01\00")
    (func (export "__describe_module__") (param i32))
    (func (export "__call_reducer__") (param i32 i64 i64 i64 i64 i64 i64 i64 i32 i32) (result i32) (i32.const 0))
    (func (export "__call_procedure__") (param $id i32) (param i64 i64 i64 i64 i64 i64 i64) (param $args i32) (param $sink i32)
        (result i32) (local $i i32)
        (if (i32.eq (local.get $id) (i32.const 0)) (then (loop $again
            (local.set $i (i32.add (local.get $i) (i32.const 1)))
            (br_if $again (i32.eqz (call $write (local.get $sink) (i32.const 65536) (i32.const 24)))))))
        (if (i32.eq (local.get $id) (i32.const 1)) (then (loop $again
            (drop (call $timer (i32.const 65536) (i32.const 65536)))
            (local.set $i (i32.add (local.get $i) (i32.const 1)))
            (br_if $again (i32.lt_u (local.get $i) (i32.const 1024))))))
        (if (i32.eq (local.get $id) (i32.const 2)) (then
            (if (i32.eq (i32.const -1) (table.grow $table (ref.func $nothing) (i32.const 1000000))) (then unreachable))))
        (drop (call $sleep (i64.const 9000000000000000000)))
        (i32.const 0)))"#;

/// Transactions that never come, and sleeps that never end.
struct Asleep(Vec<oneshot::Sender<()>>);

impl Transactions for Asleep {
    fn ask(&mut self, _: Ask) -> Option<Waiting> {
        let (never, waiting) = oneshot::channel();
        self.0.push(never);
        Some(waiting)
    }

    fn begin(&mut self) -> Result<OpenTransaction<'_>, HostTrap> {
        Err(HostTrap::Stopping)
    }

    fn commit(&mut self) -> Result<(), HostTrap> {
        Ok(())
    }

    fn rollback(&mut self) {}

    fn now(&self) -> Timestamp {
        Timestamp(0)
    }

    fn committed_bytes(&self) -> usize {
        0
    }
}

const MEMORY: usize = 2 << 16;

/// Instances that have an account together.
struct Held {
    account: Arc<Account>,
    module: Box<dyn LoadedModule>,
}

/// One that sleeps for ever.
struct Sleeper(Box<dyn SuspendableInstance>);

impl Held {
    fn new(bytes_max: usize) -> Held {
        let program = wat::parse_str(HOLDERS).expect("valid text format");
        Held {
            account: Account::root(Kind::Procedures, bytes_max),
            module: load(&program).unwrap_or_else(|error| panic!("{error}")),
        }
    }

    /// An instance that can be suspended, or why there is none.
    fn instance(&self) -> Result<Sleeper, String> {
        let limits = HostLimits {
            call_ms_max: 10_000,
            load_ms_max: 10_000,
            ..small_limits()
        };
        let mut config = config(limits, Arc::default());
        config.accounts = InstanceAccounts::of(self.account.clone());
        let made = self.module.instantiate_suspendable(HostEnv::new(config));
        match ready(&mut made.expect("they can be suspended")) {
            Some(made) => made.map(Sleeper).map_err(|error| error.to_string()),
            None => panic!("nothing in the load phase waits"),
        }
    }

    /// Calls a procedure: `None` if it sleeps, with what was held then, or why it failed.
    fn call(&self, procedure: u32) -> (usize, Option<String>) {
        let mut instance = self.instance().unwrap_or_else(|error| panic!("{error}"));
        let call = ProcedureCall {
            call: ReducerCall {
                id: procedure,
                name: &"hold".into(),
                sender: Identity::ZERO,
                connection_id: ConnectionId(0),
                timestamp: Timestamp(0),
                args: &[],
            },
            body: None,
            sender_jwt: "",
        };
        let mut running = instance.0.call(Box::new(Asleep(Vec::new())), &call);
        let outcome = ready(&mut running);
        let held = self.account.used();
        match outcome {
            None => (held, None),
            Some(ProcedureOutcome::Failed { message }) => (held, Some(message)),
            Some(outcome) => panic!("{:?}", outcome.map(|_: ProcedureResult| ())),
        }
    }
}

#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// What comes of it, unless it waits for something. It may only have given others their turn.
fn ready<T>(future: &mut Suspended<'_, T>) -> Option<T> {
    let woken = Arc::<Woken>::default();
    let waker = Waker::from(woken.clone());
    loop {
        let polled = future.as_mut().poll(&mut Context::from_waker(&waker));
        match polled {
            Poll::Ready(value) => return Some(value),
            Poll::Pending if woken.0.swap(false, Ordering::Relaxed) => {}
            Poll::Pending => return None,
        }
    }
}

const SINK: u32 = 0;
const TIMERS: u32 = 1;
const TABLE: u32 = 2;
const NAP: u32 = 3;

#[test]
fn all_that_a_sleeping_call_holds_is_in_its_account() {
    let held = Held::new(usize::MAX);
    let (nap, _) = held.call(NAP);
    assert!(
        nap >= MEMORY + (512 << 10),
        "its memory and its stack: {nap}"
    );
    assert_eq!(held.account.used(), 0, "it is given back");
    for (procedure, bytes) in [(SINK, 64 << 20), (TIMERS, 64 << 20), (TABLE, 8_000_000)] {
        let (used, failure) = held.call(procedure);
        assert_eq!(failure, None);
        // An instance takes its part of what several have in steps.
        let rounded = used + (64 << 10);
        assert!(rounded >= nap + bytes, "procedure {procedure}: {used}");
        assert!(
            used <= nap + 2 * bytes + (1 << 20),
            "procedure {procedure}: {used}"
        );
        assert_eq!(held.account.used(), 0);
    }
}

#[test]
fn a_call_that_would_hold_more_than_there_is_ends() {
    const BYTES_MAX: usize = 4 << 20;
    let held = Held::new(BYTES_MAX);
    for procedure in [SINK, TIMERS, TABLE] {
        let (used, failure) = held.call(procedure);
        assert!(used <= BYTES_MAX, "{used}");
        let failure = failure.expect("there is not as much");
        // The module sees that a table cannot grow, and gives up.
        if procedure != TABLE {
            let limit = format!("procedure-memory-bytes-max = {BYTES_MAX} [LC0722]");
            assert!(failure.contains(&limit), "{failure}");
        }
        assert_eq!(held.account.used(), 0);
    }
    let (_, failure) = held.call(NAP);
    assert_eq!(failure, None, "others go on");
}

#[test]
fn there_are_no_more_instances_than_there_is_memory_for() {
    let held = Held::new(8 << 20);
    let mut instances = Vec::new();
    let refusal = loop {
        match held.instance() {
            Ok(instance) => instances.push(instance),
            Err(refusal) => break refusal,
        }
        assert!(instances.len() < 20);
    };
    assert!(refusal.contains("procedure-memory-bytes-max"), "{refusal}");
    assert!((8..=12).contains(&instances.len()), "{}", instances.len());
    drop(instances);
    assert_eq!(held.account.used(), 0);
}

/// What instances take of the mappings is at most what they are counted for (`MAPPINGS_PER_INSTANCE`, `MAPPINGS_PER_STACK`).
#[cfg(target_os = "linux")]
#[test]
fn instances_take_no_more_mappings_than_they_count() {
    const COUNTED: usize = 5 + 2;
    const INSTANCES: usize = 200;
    let mappings = || {
        let maps = std::fs::read_to_string("/proc/self/maps").expect("Linux has it");
        maps.lines().count()
    };
    let held = Held::new(usize::MAX);
    let mut instances = vec![held.instance().expect("room")];
    let before = mappings();
    instances.extend((0..INSTANCES).map(|_| held.instance().expect("room")));
    let name: Arc<str> = "hold".into();
    let call = ProcedureCall {
        call: ReducerCall {
            id: NAP,
            name: &name,
            sender: Identity::ZERO,
            connection_id: ConnectionId(0),
            timestamp: Timestamp(0),
            args: &[],
        },
        body: None,
        sender_jwt: "",
    };
    let sleeping: Vec<_> = instances
        .iter_mut()
        .map(|instance| {
            let mut running = instance.0.call(Box::new(Asleep(Vec::new())), &call);
            assert!(ready(&mut running).is_none(), "it sleeps");
            running
        })
        .collect();
    let taken = mappings() - before;
    eprintln!("{taken} mappings of {INSTANCES} instances");
    assert!(taken <= COUNTED * INSTANCES, "{taken}");
    drop(sleeping);
}
