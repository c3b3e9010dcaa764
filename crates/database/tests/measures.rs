//! What a database counts of its own work, and the spans of calls over a connection.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::common;
use crate::common::publishing::stop;
use crate::common::requests::{
    error_of, one_off, rows_of, seed, subscribe, transfer, transfer_args,
};
use crate::common::tables::{create_tables, table_options};
use crate::common::{create, options, Client, OWNER, STRANGER};
use lightcone_database::{
    Commons, FunctionKind, Machine, QueryKind, Span, SpanName, TraceContext, Tracer,
};
use lightcone_types::Encode as _;
use lightcone_wire::ClientMessage;
use serde_json::{json, Value};

/// What a call has done is sent before one that takes long begins, and while many go on.
#[tokio::test(flavor = "multi_thread")]
async fn answers_do_not_wait_for_slow_calls_behind_them() {
    const SLOW: Duration = Duration::from_millis(700);
    let directory = tempfile::tempdir().expect("a directory");
    let program = json!({
        "tables": { "t": [["id", "U32"]], "s": [["id", "U64"], ["at", "ScheduleAt"]] },
        "uniqueKeys": { "t": "id", "s": "id" },
        "schedules": "s",
        "ticks": { "sleeps_ms": SLOW.as_millis() as u64 },
    });
    let database = create_tables(table_options(directory.path()), &program).await;
    let mut client = Client::connect(&database, OWNER, 1).await;
    let text = |changes: &Value| {
        let mut args = Vec::new();
        changes.to_string().encode(&mut args);
        args
    };
    let brief = text(&json!({ "t": { "replaced": [] } }));
    let slow = text(&json!({ "sleeps_ms": SLOW.as_millis() as u64 }));
    let mut row = 1_u64.to_vec();
    row.push(1);
    0_i64.encode(&mut row);
    let call = |reducer, args| ClientMessage::CallReducer {
        request_id: 1,
        reducer,
        args,
    };
    // Nothing is known of `tick` yet.
    client.send(&[call("tick", &row)]).await;
    client.next().await;
    let rounds = [
        [call("change", &brief), call("tick", &row)],
        [call("change", &slow), call("change", &slow)],
    ];
    for (calls, first_max) in rounds.iter().zip([SLOW / 2, SLOW + SLOW / 2]) {
        let sent = Instant::now();
        client.send(calls).await;
        client.next().await;
        assert!(sent.elapsed() < first_max, "{:?}", sent.elapsed());
        client.next().await;
    }
    stop(database).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_rows_and_queries_are_counted() {
    let directory = tempfile::tempdir().expect("a directory");
    let database = create(options(directory.path()), "transfer").await;
    seed(&database, 1000).await;
    let mut client = Client::connect(&database, STRANGER, 1).await;
    let (good, bad) = (transfer_args(1, 2), transfer_args(3, 3));
    // Many in one message, and one of them that the reducer refuses.
    let mut calls: Vec<_> = (0..50).map(|id| transfer(id, &good)).collect();
    calls.push(transfer(50, &bad));
    client.send(&calls).await;
    for _ in 0..51 {
        client.next().await;
    }
    client
        .send(&[subscribe(1, vec!["SELECT * FROM accounts"])])
        .await;
    client.next().await;
    client
        .send(&[one_off(1, "SELECT * FROM accounts WHERE id = 7")])
        .await;
    assert_eq!(rows_of(client.next().await), 1);
    client.send(&[one_off(2, "SELECT nonsense")]).await;
    error_of(client.next().await);

    let metrics = database.metrics();
    let of = |name: &str| {
        let mut functions = metrics.module.functions.iter();
        functions.find(|of| &*of.name == name).expect("a function")
    };
    let transfers = of("transfer");
    assert_eq!(transfers.kind, FunctionKind::Reducer);
    assert_eq!((transfers.calls(), transfers.recorded), (51, 50));
    assert_eq!((transfers.sender_errors, transfers.failed()), (1, 1));
    assert_eq!(of("seed").calls(), 1);
    let accounts = metrics
        .module
        .tables
        .iter()
        .find(|of| &*of.name == "accounts");
    let accounts = accounts.expect("the table");
    assert_eq!(accounts.rows, 1000);
    // A row that is replaced comes and goes.
    assert_eq!((accounts.inserted, accounts.deleted), (1100, 100));
    assert!(accounts.bytes >= 12 * 1000);
    assert_eq!(metrics.waits.count(), 52);
    let asked = |kind: QueryKind| metrics.queries[kind as usize].count();
    assert_eq!(asked(QueryKind::Subscribe), 1);
    assert_eq!(asked(QueryKind::OneOff), 2);
    assert_eq!(
        metrics.reads.count(),
        1,
        "a thousand rows are read beside the writer"
    );
    assert!(metrics.rounds.count() >= 4);
    // What the functions took is in the rounds.
    assert!(transfers.times.sum_ns + of("seed").times.sum_ns <= metrics.rounds.sum_ns);
    assert_eq!(metrics.inbox_messages, 0);
    let page_bytes = 64 << 10;
    assert!(metrics.wasm_memory_bytes >= page_bytes);
    assert_eq!(metrics.wasm_memory_bytes % page_bytes, 0);
    // Each transaction is of a reducer, or of none that is counted by name: the making of the database, the client's coming.
    let recorded: u64 = metrics.module.functions.iter().map(|of| of.recorded).sum();
    assert_eq!(recorded, 51);
    let all = database.stats().transactions;
    assert_eq!(metrics.other_transactions, all - recorded);
    assert!(metrics.other_transactions > 0);
}

/// Takes every trace, and keeps what it is told.
#[derive(Debug, Default)]
struct Keeper {
    ids: AtomicU64,
    spans: Mutex<Vec<Span>>,
}

impl Tracer for Keeper {
    fn begin(&self) -> Option<TraceContext> {
        let span_id = self.span_id();
        let trace_id = u128::from(span_id) << 64;
        Some(TraceContext { trace_id, span_id })
    }

    fn span_id(&self) -> u64 {
        self.ids.fetch_add(1, Relaxed) + 1
    }

    fn tell(&self, span: Span) {
        self.spans.lock().expect("not poisoned").push(span);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_call_of_a_message_is_traced() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut options = options(directory.path());
    options.commons = Commons::new(Machine::current(), 1 << 30, 2);
    let keeper = Arc::new(Keeper::default());
    options.commons.set_tracer(keeper.clone());
    let database = create(options, "transfer").await;
    seed(&database, 10).await;
    let mut client = Client::connect(&database, STRANGER, 1).await;
    let args = transfer_args(1, 2);
    client.send(&[transfer(1, &args), transfer(2, &args)]).await;
    client.next().await;
    client.next().await;
    let is_whole = |span: &Span| span.name == SpanName::WebSocketCall;
    common::requests::until("the call's span", || {
        keeper
            .spans
            .lock()
            .expect("not poisoned")
            .iter()
            .any(is_whole)
    })
    .await;
    let spans = keeper.spans.lock().expect("not poisoned").clone();
    let whole = spans
        .iter()
        .find(|span| is_whole(span))
        .expect("it was seen");
    assert_eq!(whole.parent, None);
    let names: Vec<_> = spans.iter().map(|span| &span.name).collect();
    let function = SpanName::Function {
        kind: FunctionKind::Reducer,
        name: "transfer".into(),
    };
    for name in [&SpanName::Wait, &function, &SpanName::Durable] {
        let found = names.iter().filter(|found| **found == name);
        assert_eq!(found.count(), 1, "{name:?} in {names:?}");
    }
    for span in &spans {
        assert_eq!(span.trace_id, whole.trace_id);
        assert!(
            span.started >= whole.started && span.ended <= whole.ended,
            "{spans:?}"
        );
        assert!(std::ptr::eq(span, whole) || span.parent == Some(whole.span_id));
    }
}
