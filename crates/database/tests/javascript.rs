//! A database that runs a JavaScript module: create, calls, faults, hot swap, reopen. The module is a bundle with the
//! published package (`scripts/js-modules.sh`).

use std::path::Path;
use std::sync::Arc;

use crate::common::{bundle, caller, open, options, Client, OWNER, STRANGER};
use lightcone_database::{
    CallArgs, CallError, DatabaseHandle, DatabaseOptions, HostKind, JsonRows, ShutdownReason,
    UpdateOutcome,
};
use lightcone_host_js::JsEngineOptions;
use lightcone_types::Encode;
use lightcone_wire::{ClientMessage, ReducerOutcome, ServerMessage};

fn js_options(directory: &Path) -> DatabaseOptions {
    let mut options = options(directory);
    let engine = lightcone_host_js::engine(JsEngineOptions::default());
    options.engines.js = Some(engine.expect("the engine starts"));
    options.limits.host.call_ms_max = 300;
    options
}

async fn create(options: DatabaseOptions, program: String) -> DatabaseHandle {
    let program: Arc<[u8]> = program.into_bytes().into();
    let created =
        tokio::task::spawn_blocking(move || DatabaseHandle::create(options, program, HostKind::Js));
    created
        .await
        .expect("no panic")
        .unwrap_or_else(|error| panic!("{error}"))
}

async fn call(database: &DatabaseHandle, function: &str, args: &str) -> Result<(), CallError> {
    let args = CallArgs::Json(args.to_owned());
    let outcome = database.call(caller(OWNER), function, args).await;
    outcome.map(drop)
}

async fn rows(database: &DatabaseHandle, sql: &str) -> String {
    let rows = database
        .sql(caller(OWNER), sql.to_owned(), true, JsonRows::default())
        .await;
    rows.expect("rows").text()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_javascript_module_from_publish_to_reopen() {
    let directory = tempfile::tempdir().expect("a directory");
    let database = create(js_options(directory.path()), bundle("coverage")).await;
    let init = rows(&database, "SELECT text FROM events WHERE text = 'init'").await;
    assert!(init.contains("init"), "{init}");

    for reducer in [
        "store_values",
        "indexes",
        "iterators",
        "sequences",
        "host_errors",
        "context",
    ] {
        call(&database, reducer, "[]")
            .await
            .unwrap_or_else(|error| panic!("{reducer}: {error:?}"));
    }
    match call(&database, "user_error", "[\"refused\"]").await {
        Err(CallError::UserError { message, .. }) => assert_eq!(message, "refused"),
        other => panic!("{other:?}"),
    }
    assert!(matches!(
        call(&database, "crash", "[]").await,
        Err(CallError::Fatal { .. })
    ));
    assert!(matches!(
        call(&database, "recurse_forever", "[]").await,
        Err(CallError::Fatal { .. })
    ));
    assert!(matches!(
        call(&database, "loop_forever", "[]").await,
        Err(CallError::TimedOut { .. })
    ));
    call(&database, "still_works", "[]")
        .await
        .expect("the next call works");

    database.shutdown(ShutdownReason::ServerStop).await;
    let database = open(js_options(directory.path())).await;
    call(&database, "still_works", "[]")
        .await
        .expect("after it was opened again");
    database.shutdown(ShutdownReason::ServerStop).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_is_swapped_under_a_client() {
    let directory = tempfile::tempdir().expect("a directory");
    let program = bundle("transfer");
    let database = create(js_options(directory.path()), program.clone()).await;
    call(&database, "seed", "[10, 1000]").await.expect("seeded");
    let mut client = Client::connect(&database, STRANGER, 5).await;

    let transfer = |from: u32, to: u32, amount: i64| {
        let mut args = from.to_vec();
        to.encode(&mut args);
        amount.encode(&mut args);
        args
    };
    for (turn, text) in ["insufficient balance", "not enough money"]
        .into_iter()
        .enumerate()
    {
        if turn == 1 {
            let swapped: Arc<[u8]> = program
                .replace("insufficient balance", text)
                .into_bytes()
                .into();
            let outcome = database.update(swapped, HostKind::Js).await;
            assert_eq!(outcome.expect("swapped"), UpdateOutcome::Updated);
        }
        for (args, wanted) in [
            (transfer(1, 2, 10), None),
            (transfer(1, 2, 5000), Some(text)),
        ] {
            client
                .send(&[ClientMessage::CallReducer {
                    request_id: 1,
                    reducer: "transfer",
                    args: &args,
                }])
                .await;
            match (client.next().await, wanted) {
                (ServerMessage::ReducerResult { result, .. }, wanted) => match (result, wanted) {
                    (ReducerOutcome::Ok { .. } | ReducerOutcome::OkEmpty, None) => {}
                    (ReducerOutcome::Err(message), Some(wanted)) => {
                        let message = String::from_utf8_lossy(&message).into_owned();
                        assert!(message.ends_with(wanted), "{message}");
                    }
                    (other, wanted) => panic!("{other:?}, wanted {wanted:?}"),
                },
                (other, _) => panic!("{other:?}"),
            }
        }
    }
    let balance = rows(&database, "SELECT balance FROM accounts WHERE id = 2").await;
    assert!(balance.contains("1020"), "{balance}");
    database.shutdown(ShutdownReason::ServerStop).await;
}
