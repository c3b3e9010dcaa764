//! Procedures beside the writer: they sleep, make requests and compute without holding up other calls, see and make transactions in
//! order with reducers, and end alone, whatever they do (03 §3.4, §10, §13, 05 §6.4).

mod common;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use common::other_machine::OtherMachine;
use common::{bundle, caller, module, options, Client, OWNER, STRANGER};
use lightcone_accounts::Counted;
use lightcone_database::{
    AllowList, CallArgs, CallError, Commons, DatabaseHandle, DatabaseOptions, HostKind, JsonRows,
    Machine, Outbound, OutboundOptions, ShutdownReason,
};
use lightcone_host_js::JsEngineOptions;
use lightcone_types::Encode;
use lightcone_wire::{ClientMessage, ProcedureStatus, ServerMessage};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

/// With requests to this machine, if `allow` says so.
fn beside_options(directory: &Path, allow: &[&str]) -> DatabaseOptions {
    let mut options = options(directory);
    let engine = lightcone_host_js::engine(JsEngineOptions::default());
    options.engines.js = Some(engine.expect("the engine starts"));
    let outbound = Outbound::new(OutboundOptions {
        allow: AllowList::parse(allow.iter().copied()).expect("a list"),
        ..OutboundOptions::current()
    });
    let outbound = Some(Arc::new(outbound.expect("a client")));
    options.commons = Commons::with_outbound(Machine::current(), 1 << 30, 2, outbound);
    options
}

async fn create(options: DatabaseOptions, kind: HostKind) -> DatabaseHandle {
    let program = match kind {
        HostKind::Wasm => module("procedures"),
        HostKind::Js => bundle("procedures").into_bytes().into(),
    };
    let created =
        tokio::task::spawn_blocking(move || DatabaseHandle::create(options, program, kind));
    let created = created.await.expect("no panic");
    created.unwrap_or_else(|error| panic!("{error}"))
}

/// A call over HTTP: what it returned, or the error.
async fn http(
    database: &DatabaseHandle,
    function: &str,
    args: String,
) -> Result<String, CallError> {
    let outcome = database.call(caller(OWNER), function, CallArgs::Json(args));
    let returned = outcome.await?.returned_json;
    Ok(returned.map(Counted::into_inner).unwrap_or_default())
}

/// Read without a procedure.
async fn counter_or_none(database: &DatabaseHandle, id: u32) -> Option<u64> {
    let query = format!("SELECT value FROM counters WHERE id = {id}");
    let rows = database.sql(caller(OWNER), query, true, JsonRows::default());
    let rows: Vec<(u64,)> =
        serde_json::from_str(&rows.await.expect("rows").text()).expect("rows of one number");
    rows.first().map(|(value,)| *value)
}

async fn counter(database: &DatabaseHandle, id: u32) -> u64 {
    counter_or_none(database, id).await.unwrap_or_default()
}

/// Answers every request after this time, and says how many there were.
async fn slow_server(delay: Duration) -> (u16, Arc<std::sync::atomic::AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let asked = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counted = asked.clone();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            counted.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            tokio::spawn(async move {
                let mut buffer = [0; 4096];
                let _ = stream.read(&mut buffer).await;
                tokio::time::sleep(delay).await;
                let text =
                    b"HTTP/1.1 203 Hm\r\ncontent-length: 5\r\nconnection: close\r\n\r\nhello";
                let _ = stream.write_all(text).await;
            });
        }
    });
    (port, asked)
}

/// Reducers go on, one after the other, while something else is under way.
async fn reducers_go_on(database: &DatabaseHandle, id: u32) {
    let started = Instant::now();
    for _ in 0..20 {
        http(database, "bump", format!("[{id}]"))
            .await
            .expect("bumped");
    }
    let elapsed = started.elapsed();
    assert!(elapsed < Duration::from_secs(5), "{elapsed:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn sleep_holds_up_no_other_call() {
    let directory = tempfile::tempdir().expect("a directory");
    let database = create(beside_options(directory.path(), &[]), HostKind::Wasm).await;
    let sleeper = database.clone();
    let started = Instant::now();
    let nap = tokio::spawn(async move { http(&sleeper, "nap", "[1, 800000]".into()).await });
    // What it committed before its sleep is seen at once.
    while counter(&database, 1).await == 0 {
        assert!(started.elapsed() < Duration::from_millis(700), "it is seen");
    }
    reducers_go_on(&database, 1).await;
    let seen = counter(&database, 1).await;
    let returned = nap.await.expect("no panic").expect("it wakes up");
    assert!(started.elapsed() >= Duration::from_millis(800));
    // The reducers were in between.
    assert_eq!(seen, 21);
    assert_eq!(returned, "22");
    database.shutdown(ShutdownReason::ServerStop).await;
}

/// Of those who count threads, and those who need one for each processor, one at a time.
static MANY_THREADS: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_sleepers_need_no_threads() {
    let _alone = MANY_THREADS.lock().await;
    let directory = tempfile::tempdir().expect("a directory");
    let database = create(beside_options(directory.path(), &[]), HostKind::Wasm).await;
    http(&database, "nap", "[1, 1]".into())
        .await
        .expect("a nap");
    let threads_before = threads();
    let mut client = Client::connect(&database, STRANGER, 5).await;
    let nap_us = 6_000_000_u64;
    let mut args = 1_u32.to_vec();
    nap_us.encode(&mut args);
    let started = Instant::now();
    for request_id in 0..1000 {
        client
            .send(&[ClientMessage::CallProcedure {
                request_id,
                procedure: "nap",
                args: &args,
            }])
            .await;
    }
    // All of them have committed once, and none a second time.
    while counter(&database, 1).await < 1002 {
        assert!(started.elapsed() < Duration::from_secs(60), "all sleep");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let (fell_asleep, threads_now) = (started.elapsed(), threads());
    eprintln!(
        "1,000 sleepers after {fell_asleep:?}, {threads_now} threads in place of {threads_before}"
    );
    assert!(
        threads_now < threads_before + 50,
        "{threads_before} to {threads_now}"
    );
    reducers_go_on(&database, 2).await;
    let mut answered = 0;
    while answered < 1000 {
        match client.next().await {
            ServerMessage::ProcedureResult { status, .. } => {
                assert!(matches!(status, ProcedureStatus::Returned(_)), "{status:?}");
                answered += 1;
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(counter(&database, 1).await, 2002);
    // Others, which would sleep for an hour, end with their database.
    let sleepers: Vec<_> = (0..1000)
        .map(|_| {
            let database = database.clone();
            tokio::spawn(async move { http(&database, "nap", "[1, 3600000000]".into()).await })
        })
        .collect();
    let started = Instant::now();
    while counter(&database, 1).await < 3002 {
        assert!(started.elapsed() < Duration::from_secs(60), "all sleep");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(threads() < threads_before + 50, "{}", threads());
    database.shutdown(ShutdownReason::ServerStop).await;
    for sleeper in sleepers {
        let ended = tokio::time::timeout(Duration::from_secs(30), sleeper).await;
        let ended = ended.expect("no call sleeps on").expect("no panic");
        assert!(ended.is_err(), "{ended:?}");
    }
    assert!(threads() < threads_before + 50, "{}", threads());
}

/// Threads of this process.
fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").map_or(0, Iterator::count)
}

async fn requests_go_out(kind: HostKind) {
    let directory = tempfile::tempdir().expect("a directory");
    let (port, asked) = slow_server(Duration::from_millis(300)).await;
    let database = create(beside_options(directory.path(), &["127.0.0.1"]), kind).await;
    let fetcher = database.clone();
    let url = format!("[1, \"http://127.0.0.1:{port}/x?secret=1\"]");
    let fetch = {
        let url = url.clone();
        tokio::spawn(async move { http(&fetcher, "fetch", url).await })
    };
    reducers_go_on(&database, 2).await;
    let answer = fetch.await.expect("no panic").expect("answered");
    assert_eq!(answer, "\"203 hello\"");
    assert_eq!(counter(&database, 1).await, 1);

    // Whatever is wrong with a request, the module hears of it and goes on.
    for (target, expected) in [
        (
            "http://127.0.0.1:9/x?secret=1",
            "error sending request for url (http://127.0.0.1:9/x)",
        ),
        (
            "http://10.0.0.1/",
            "refusing to connect to private or special-purpose addresses",
        ),
        (
            "http://[::1]/",
            "refusing to connect to private or special-purpose addresses",
        ),
    ] {
        let answer = http(&database, "fetch", format!("[1, \"{target}\"]")).await;
        let answer = answer.expect("it goes on");
        assert!(answer.contains(expected), "{answer}");
        assert!(!answer.contains("secret"), "{answer}");
    }
    assert_eq!(counter(&database, 1).await, 4);

    // Several at once.
    let asked_before = asked.load(std::sync::atomic::Ordering::Relaxed);
    let started = Instant::now();
    let fetches: Vec<_> = (0..6)
        .map(|_| {
            let (fetcher, url) = (database.clone(), url.clone());
            tokio::spawn(async move { http(&fetcher, "fetch", url).await })
        })
        .collect();
    for fetch in fetches {
        fetch.await.expect("no panic").expect("answered");
    }
    assert!(
        started.elapsed() < Duration::from_millis(1700),
        "{:?}",
        started.elapsed()
    );
    assert_eq!(
        asked.load(std::sync::atomic::Ordering::Relaxed) - asked_before,
        6
    );
    database.shutdown(ShutdownReason::ServerStop).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_of_rust_modules() {
    requests_go_out(HostKind::Wasm).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_of_typescript_modules() {
    requests_go_out(HostKind::Js).await;
}

/// Without a client nothing goes out.
#[tokio::test(flavor = "multi_thread")]
async fn requests_can_be_switched_off() {
    for kind in [HostKind::Wasm, HostKind::Js] {
        let directory = tempfile::tempdir().expect("a directory");
        let mut options = beside_options(directory.path(), &[]);
        options.commons = Commons::new(Machine::current(), 1 << 30, 2);
        let database = create(options, kind).await;
        let answer = http(&database, "fetch", "[1, \"http://127.0.0.1/\"]".into()).await;
        let answer = answer.expect("it goes on");
        assert!(
            answer.contains("module outbound HTTP requests are disabled"),
            "{answer}"
        );
        database.shutdown(ShutdownReason::ServerStop).await;
    }
}

async fn hostile_procedures_hurt_no_other_call(kind: HostKind) {
    let directory = tempfile::tempdir().expect("a directory");
    let mut options = beside_options(directory.path(), &[]);
    options.limits.host.call_ms_max = 1500;
    options.limits.host.procedure_transaction_ms_max = 200;
    let database = create(options, kind).await;

    // An endless loop has its own time, and others theirs.
    let loops: Vec<_> = (0..3)
        .map(|_| {
            let looping = database.clone();
            tokio::spawn(async move { http(&looping, "loop_for_ever", "[]".into()).await })
        })
        .collect();
    reducers_go_on(&database, 2).await;
    for looping in loops {
        let ended = looping.await.expect("no panic");
        assert!(
            matches!(ended, Err(CallError::TimedOut { .. })),
            "{ended:?}"
        );
    }

    // A transaction without an end is rolled back after its time.
    let started = Instant::now();
    let holding = database.clone();
    let hold = tokio::spawn(async move { http(&holding, "hold", "[1]".into()).await });
    tokio::time::sleep(Duration::from_millis(100)).await;
    http(&database, "bump", "[3]".into()).await.expect("bumped");
    assert!(
        started.elapsed() < Duration::from_millis(1400),
        "{:?}",
        started.elapsed()
    );
    match hold.await.expect("no panic") {
        Err(CallError::Database(text)) => {
            assert!(
                text.contains("procedure-transaction-ms-max = 200 [LC0735]"),
                "{text}"
            );
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(
        http(&database, "peek", "[1]".into()).await.expect("peeked"),
        "[1,[]]"
    );
    // The next call of the same function works, and ends in the same way.
    http(&database, "hold", "[1]".into())
        .await
        .expect_err("it holds");
    assert_eq!(counter(&database, 3).await, 1);
    database.shutdown(ShutdownReason::ServerStop).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_rust() {
    hostile_procedures_hurt_no_other_call(HostKind::Wasm).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_typescript() {
    hostile_procedures_hurt_no_other_call(HostKind::Js).await;
}

/// While others compute, a call may have no thread when its turn for the tables has come: the writer does not wait for it.
#[tokio::test(flavor = "multi_thread")]
async fn tables_wait_for_no_thread() {
    let (directory, of_others) = (tempfile::tempdir(), tempfile::tempdir());
    let (directory, of_others) = (directory.expect("one"), of_others.expect("another"));
    let options = beside_options(directory.path(), &[]);
    let mut others_options = beside_options(of_others.path(), &[]);
    // They share the threads for procedures. Each computes for a tick at a time, 10 ms, so it is 0.8 s until one's next turn.
    let threads = std::thread::available_parallelism().map_or(2, |count| count.get().max(2));
    let others_max = 80 * threads;
    others_options.limits.host.call_ms_max = 80;
    others_options.limits.wasm_procedures_running_max = others_max;
    others_options.commons = options.commons.clone();
    let database = create(options, HostKind::Wasm).await;
    let others = create(others_options, HostKind::Wasm).await;
    let run = |of: &DatabaseHandle, function: &'static str, args: &'static str| {
        let of = of.clone();
        tokio::spawn(async move { http(&of, function, args.to_owned()).await })
    };
    let looping: Vec<_> = (0..others_max)
        .map(|_| run(&others, "loop_for_ever", "[]"))
        .collect();
    tokio::time::sleep(Duration::from_millis(500)).await;
    let adding: Vec<_> = (0..4)
        .map(|_| run(&database, "add_twice", "[1, 1]"))
        .collect();
    let start = Instant::now();
    let mut longest = Duration::ZERO;
    while start.elapsed() < Duration::from_millis(2_500) {
        let before = Instant::now();
        http(&database, "bump", "[3]".into()).await.expect("bumped");
        longest = longest.max(before.elapsed());
    }
    assert!(longest < Duration::from_millis(400), "{longest:?}");
    for adding in adding {
        adding.await.expect("no panic").expect("it has its turns");
    }
    assert_eq!(counter(&database, 1).await, 8);
    for looping in looping {
        looping.await.expect("no panic").expect_err("a loop");
    }
    database.shutdown(ShutdownReason::ServerStop).await;
    others.shutdown(ShutdownReason::ServerStop).await;
}

/// A call begins on the writer if it can, and leaves it when it waits.
#[tokio::test(flavor = "multi_thread")]
async fn a_wait_on_the_writer_holds_up_no_other_call() {
    let directory = tempfile::tempdir().expect("a directory");
    let database = create(beside_options(directory.path(), &[]), HostKind::Wasm).await;
    for _ in 0..20 {
        http(&database, "nap", "[1, 0]".into())
            .await
            .expect("no nap");
    }
    assert_eq!(counter(&database, 1).await, 40);
    let sleeper = database.clone();
    let started = Instant::now();
    let nap = tokio::spawn(async move { http(&sleeper, "nap", "[1, 900000]".into()).await });
    while counter(&database, 1).await == 40 {
        assert!(started.elapsed() < Duration::from_millis(700), "it is seen");
    }
    reducers_go_on(&database, 1).await;
    // So does a second one.
    let sleeper = database.clone();
    let second = tokio::spawn(async move { http(&sleeper, "nap", "[2, 1000]".into()).await });
    assert_eq!(second.await.expect("no panic").expect("a nap"), "2");
    assert!(
        started.elapsed() < Duration::from_millis(900),
        "they slept at once"
    );
    assert_eq!(nap.await.expect("no panic").expect("it wakes up"), "62");
    // Everything goes on as before.
    reducers_go_on(&database, 1).await;
    assert_eq!(counter(&database, 1).await, 82);

    // The same while the database stops.
    for _ in 0..20 {
        http(&database, "add_twice", "[5, 1]".into())
            .await
            .expect("added");
    }
    let sleeper = database.clone();
    let nap = tokio::spawn(async move { http(&sleeper, "nap", "[1, 60000000]".into()).await });
    tokio::time::sleep(Duration::from_millis(200)).await;
    let started = Instant::now();
    database.shutdown(ShutdownReason::ServerStop).await;
    nap.await.expect("no panic").expect_err("it was ended");
    assert!(
        started.elapsed() < Duration::from_secs(5),
        "{:?}",
        started.elapsed()
    );
}

/// Who sleeps when the database stops is ended; so is who waits for a turn.
#[tokio::test(flavor = "multi_thread")]
async fn a_stop_ends_all_of_them() {
    for kind in [HostKind::Wasm, HostKind::Js] {
        let directory = tempfile::tempdir().expect("a directory");
        let (port, _) = slow_server(Duration::from_secs(60)).await;
        let mut options = beside_options(directory.path(), &["127.0.0.1"]);
        options.limits.js_procedure_threads_max = 2;
        let database = create(options, kind).await;
        let calls: Vec<_> = (0..5)
            .map(|_| {
                let caller = database.clone();
                let args = format!("[1, \"http://127.0.0.1:{port}/\"]");
                tokio::spawn(async move { http(&caller, "fetch", args).await })
            })
            .collect();
        tokio::time::sleep(Duration::from_millis(500)).await;
        let started = Instant::now();
        database.shutdown(ShutdownReason::ServerStop).await;
        for call in calls {
            call.await.expect("no panic").expect_err("it was ended");
        }
        assert!(
            started.elapsed() < Duration::from_secs(5),
            "{:?}",
            started.elapsed()
        );
    }
}

/// Three procedures that sleep for six seconds.
async fn three_naps(
    database: &DatabaseHandle,
) -> Vec<tokio::task::JoinHandle<Result<String, CallError>>> {
    http(database, "nap", "[1, 1]".into()).await.expect("a nap");
    let nap = |_| {
        let sleeper = database.clone();
        tokio::spawn(async move { http(&sleeper, "nap", "[1, 6000000]".into()).await })
    };
    (0..3).map(nap).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn there_are_only_so_many() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut options = beside_options(directory.path(), &[]);
    // One caller has no more than are left for others.
    options.limits.procedures_max = 5;
    let database = create(options, HostKind::Wasm).await;
    let naps = three_naps(&database).await;
    while counter(&database, 1).await < 5 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    match http(&database, "nap", "[1, 1]".into()).await {
        Err(CallError::Database(text)) => {
            assert!(
                text.ends_with("limits.procedures-max = 5 [LC0736]"),
                "{text}"
            );
        }
        other => panic!("{other:?}"),
    }
    // Whatever it is: it is not known before that it never waits.
    let refused = http(&database, "add_twice", "[2, 1]".into()).await;
    let text = format!("{refused:?}");
    assert!(text.contains("[LC0736]"), "{text}");
    for nap in naps {
        nap.await.expect("no panic").expect("it wakes up");
    }
    http(&database, "nap", "[1, 1]".into())
        .await
        .expect("there is room again");
    database.shutdown(ShutdownReason::ServerStop).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn immediate_calls_run_whatever_becomes_of_their_caller() {
    let directory = tempfile::tempdir().expect("a directory");
    let database = create(beside_options(directory.path(), &[]), HostKind::Wasm).await;
    http(&database, "bump_later_and_fail", "[4]".into())
        .await
        .expect_err("it fails");
    let started = Instant::now();
    while counter_or_none(&database, 4).await.is_none() {
        assert!(started.elapsed() < Duration::from_secs(10), "it was called");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(counter(&database, 4).await, 1);
    database.shutdown(ShutdownReason::ServerStop).await;
}

/// Who waits is in the inbox no longer: others come in.
#[tokio::test(flavor = "multi_thread")]
async fn what_waits_takes_no_place_of_the_inbox() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut options = beside_options(directory.path(), &[]);
    options.limits.inbox_messages_max = 2;
    let database = create(options, HostKind::Wasm).await;
    let naps = three_naps(&database).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    reducers_go_on(&database, 2).await;
    assert_eq!(counter(&database, 1).await, 5, "all sleep");
    for nap in naps {
        nap.await.expect("no panic").expect("it wakes up");
    }
    database.shutdown(ShutdownReason::ServerStop).await;
}

/// A procedure that begins on the writer and waits: what its caller asked for behind it stays before what it asks for later.
#[tokio::test(flavor = "multi_thread")]
async fn a_wait_on_the_writer_changes_no_order() {
    let directory = tempfile::tempdir().expect("a directory");
    let database = create(beside_options(directory.path(), &[]), HostKind::Wasm).await;
    for _ in 0..20 {
        http(&database, "nap", "[1, 0]".into())
            .await
            .expect("no nap");
    }
    let mut client = Client::connect(&database, STRANGER, 5).await;
    let mut args = 1_u32.to_vec();
    500_000_u64.encode(&mut args);
    let bumped = 2_u32.to_vec();
    let bump = |request_id| ClientMessage::CallReducer {
        request_id,
        reducer: "bump",
        args: &bumped,
    };
    let nap = ClientMessage::CallProcedure {
        request_id: 1,
        procedure: "nap",
        args: &args,
    };
    client.send(&[nap, bump(2), bump(3)]).await;
    client.send(&[bump(4)]).await;
    let mut order = Vec::new();
    while order.len() < 4 {
        match client.next().await {
            ServerMessage::ReducerResult { request_id, .. }
            | ServerMessage::ProcedureResult { request_id, .. } => order.push(request_id),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(order, [2, 3, 4, 1]);
    database.shutdown(ShutdownReason::ServerStop).await;
}

/// Arguments of calls that wait are bounded by their bytes.
#[tokio::test(flavor = "multi_thread")]
async fn arguments_of_what_waits_are_bounded() {
    let directory = tempfile::tempdir().expect("a directory");
    let (port, _) = slow_server(Duration::from_millis(1500)).await;
    let mut options = beside_options(directory.path(), &["127.0.0.1"]);
    options.limits.procedure_arguments_bytes_max = 10_000;
    let database = create(options, HostKind::Wasm).await;
    let url = format!("http://127.0.0.1:{port}/{}", "x".repeat(4000));
    let fetch = |id| {
        let (fetcher, args) = (database.clone(), format!("[{id}, \"{url}\"]"));
        tokio::spawn(async move { http(&fetcher, "fetch", args).await })
    };
    let first = fetch(1);
    tokio::time::sleep(Duration::from_millis(500)).await;
    match fetch(2).await.expect("no panic") {
        Err(CallError::Database(text)) => assert!(
            text.ends_with("limits.procedure-arguments-bytes-max = 10000 [LC0736]"),
            "{text}"
        ),
        other => panic!("{other:?}"),
    }
    // What is small finds a place.
    http(&database, "nap", "[1, 1]".into())
        .await
        .expect("a nap");
    first.await.expect("no panic").expect("answered");
    fetch(2)
        .await
        .expect("no panic")
        .expect("there is room again");
    database.shutdown(ShutdownReason::ServerStop).await;
}

/// The time of a procedure also ends one that began on the writer.
#[tokio::test(flavor = "multi_thread")]
async fn a_wait_on_the_writer_ends_in_time() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut options = beside_options(directory.path(), &[]);
    options.limits.host.procedure_seconds_max = 1;
    let database = create(options, HostKind::Wasm).await;
    for _ in 0..20 {
        http(&database, "nap", "[1, 0]".into())
            .await
            .expect("no nap");
    }
    match http(&database, "nap", "[1, 20000000]".into()).await {
        Err(CallError::Database(text)) => {
            assert!(
                text.contains("procedure-seconds-max = 1 [LC0735]"),
                "{text}"
            );
        }
        other => panic!("{other:?}"),
    }
    database.shutdown(ShutdownReason::ServerStop).await;
}

/// One caller does not get all threads of a JavaScript module.
#[tokio::test(flavor = "multi_thread")]
async fn threads_are_left_for_others() {
    let directory = tempfile::tempdir().expect("a directory");
    let (port, _) = slow_server(Duration::from_secs(2)).await;
    let mut options = beside_options(directory.path(), &["127.0.0.1"]);
    options.limits.js_procedure_threads_max = 2;
    let database = create(options, HostKind::Js).await;
    let args = format!("[1, \"http://127.0.0.1:{port}/\"]");
    let greedy: Vec<_> = (0..4)
        .map(|_| {
            let (fetcher, args) = (database.clone(), args.clone());
            tokio::spawn(async move { http(&fetcher, "fetch", args).await })
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(300)).await;
    let started = Instant::now();
    let other = database.call(caller(STRANGER), "fetch", CallArgs::Json(args));
    other.await.expect("answered");
    let elapsed = started.elapsed();
    assert!(elapsed < Duration::from_millis(3500), "{elapsed:?}");
    for call in greedy {
        call.await.expect("no panic").expect("its turn comes");
    }
    database.shutdown(ShutdownReason::ServerStop).await;
}

/// One that computes in a transaction holds up its own database only.
#[tokio::test(flavor = "multi_thread")]
async fn transactions_that_compute_keep_no_thread() {
    let _alone = MANY_THREADS.lock().await;
    let processors = std::thread::available_parallelism().map_or(2, |count| count.get().max(2));
    let mut directories = Vec::new();
    let mut databases = Vec::new();
    let commons = Commons::new(Machine::current(), 1 << 30, 2);
    for _ in 0..=processors {
        let directory = tempfile::tempdir().expect("a directory");
        let mut options = beside_options(directory.path(), &[]);
        options.commons = commons.clone();
        options.limits.host.procedure_transaction_ms_max = 4_000;
        databases.push(create(options, HostKind::Wasm).await);
        directories.push(directory);
    }
    let other = databases.pop().expect("one more than processors");
    http(&other, "nap", "[1, 1]".into()).await.expect("a nap");
    let holders = databases.iter().map(|database| {
        let holding = database.clone();
        tokio::spawn(async move { http(&holding, "hold", "[1]".into()).await })
    });
    let holders: Vec<_> = holders.collect();
    tokio::time::sleep(Duration::from_millis(500)).await;
    let started = Instant::now();
    http(&other, "nap", "[1, 1]".into()).await.expect("a nap");
    assert!(
        started.elapsed() < Duration::from_secs(2),
        "{:?}",
        started.elapsed()
    );
    assert!(
        holders.iter().all(|holder| !holder.is_finished()),
        "they compute still"
    );
    for holder in holders {
        let ended = holder.await.expect("no panic");
        assert!(ended.is_err(), "its time is over: {ended:?}");
    }
    for database in databases.into_iter().chain([other]) {
        database.shutdown(ShutdownReason::ServerStop).await;
    }
}

/// What a request has waited for others is not there for its answer any more.
#[tokio::test(flavor = "multi_thread")]
async fn waiting_for_other_requests_counts() {
    const TIMES: u32 = 13;
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    tokio::spawn(async move {
        for seconds in [2, 25] {
            let (mut stream, _) = listener.accept().await.expect("a request");
            tokio::spawn(async move {
                let _ = stream.read(&mut [0; 4096]).await;
                tokio::time::sleep(Duration::from_secs(seconds)).await;
                let answer = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
                let _ = stream.write_all(answer.as_bytes()).await;
            });
        }
    });
    let directory = tempfile::tempdir().expect("a directory");
    let mut options = beside_options(directory.path(), &["127.0.0.1"]);
    let outbound = Outbound::new(OutboundOptions {
        allow: AllowList::parse(["127.0.0.1"]).expect("a list"),
        ..OutboundOptions::current()
    });
    let outbound = Some(Arc::new(outbound.expect("a client")));
    options.commons = Commons::with_outbound(OtherMachine::hurried(TIMES), 1 << 30, 2, outbound);
    options.limits.http_requests_max = 1;
    let database = create(options, HostKind::Wasm).await;
    let fetch = |id: u32| {
        let fetcher = database.clone();
        let args = format!("[{id}, \"http://127.0.0.1:{port}/\"]");
        tokio::spawn(async move { http(&fetcher, "fetch", args).await })
    };
    let first = fetch(1);
    tokio::time::sleep(Duration::from_millis(300)).await;
    let started = Instant::now();
    let second = fetch(2);
    let answered = first.await.expect("no panic").expect("in time");
    assert!(answered.contains("200"), "{answered}");
    // It has waited for most of its half minute, and the rest is less than its answer takes.
    let answered = second.await.expect("no panic");
    let text = format!("{answered:?}");
    assert!(
        !text.contains("200"),
        "{text} after {:?}",
        started.elapsed()
    );
    database.shutdown(ShutdownReason::ServerStop).await;
}
