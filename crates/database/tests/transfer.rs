//! The transfer module end to end, below the network: calls, subscriptions, durability.

use crate::common::{caller, create, open, options, Client, OWNER, STRANGER};
use lightcone_database::{CallArgs, CallError, DatabaseHandle, JsonRows, ShutdownReason};
use lightcone_types::Encode;
use lightcone_wire::{ClientMessage, ReducerOutcome, ServerMessage, TableUpdateRows};

fn transfer(from: u32, to: u32, amount: i64) -> Vec<u8> {
    let mut args = Vec::new();
    from.encode(&mut args);
    to.encode(&mut args);
    amount.encode(&mut args);
    args
}

fn call<'a>(request_id: u32, args: &'a [u8]) -> ClientMessage<'a> {
    ClientMessage::CallReducer {
        request_id,
        reducer: "transfer",
        args,
    }
}

async fn seed(database: &DatabaseHandle, accounts: u32) {
    let args = CallArgs::Json(format!("[{accounts}, 1000]"));
    database
        .call(caller(OWNER), "seed", args)
        .await
        .expect("seeded");
}

async fn rows(database: &DatabaseHandle, sql: &str) -> String {
    database
        .sql(caller(STRANGER), sql.to_owned(), true, JsonRows::default())
        .await
        .map(|outcome| outcome.text())
        .unwrap_or_else(|e| panic!("{e:?}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_subscriptions_and_restart() {
    let directory = tempfile::tempdir().unwrap();
    let database = create(options(directory.path()), "transfer").await;
    seed(&database, 1000).await;
    assert_eq!(
        rows(&database, "SELECT COUNT(*) AS n FROM accounts").await,
        "[[1000]]"
    );

    let mut watcher = Client::connect(&database, STRANGER, 1).await;
    let mut payer = Client::connect(&database, STRANGER, 2).await;
    let queries = vec![
        "SELECT * FROM accounts WHERE id = 1",
        "SELECT * FROM accounts",
    ];
    watcher
        .send(&[ClientMessage::Subscribe {
            request_id: 1,
            query_set_id: 5,
            query_strings: queries,
        }])
        .await;
    let ServerMessage::SubscribeApplied { rows: initial, .. } = watcher.next().await else {
        panic!("applied")
    };
    let counts: Vec<_> = initial
        .tables
        .iter()
        .map(|table| table.rows.len())
        .collect();
    assert_eq!(counts, [1, 1000]);

    payer
        .send(&[
            call(10, &transfer(1, 2, 3)),
            call(11, &transfer(1, 2, 5000)),
            call(12, &transfer(4, 5, 1)),
        ])
        .await;
    let mut outcomes = Vec::new();
    for _ in 0..3 {
        let ServerMessage::ReducerResult {
            request_id, result, ..
        } = payer.next().await
        else {
            panic!("a result")
        };
        outcomes.push((request_id, result));
    }
    assert_eq!(outcomes[0], (10, ReducerOutcome::OkEmpty));
    let refused = "insufficient_funds".to_vec();
    assert_eq!(outcomes[1], (11, ReducerOutcome::Err(refused)));
    assert_eq!(outcomes[2], (12, ReducerOutcome::OkEmpty));

    let ServerMessage::TransactionUpdate { query_sets } = watcher.next().await else {
        panic!("an update")
    };
    assert_eq!(query_sets.len(), 1);
    assert_eq!(query_sets[0].query_set_id, 5);
    let entries = &query_sets[0].tables[0].rows;
    let mut sizes: Vec<_> = entries
        .iter()
        .map(|entry| match entry {
            TableUpdateRows::Persistent { inserts, deletes } => (inserts.len(), deletes.len()),
            other => panic!("{other:?}"),
        })
        .collect();
    sizes.sort_unstable();
    assert_eq!(
        sizes,
        [(1, 1), (2, 2)],
        "each query sees its own copies of the changes"
    );

    drop((watcher, payer));
    database.shutdown(ShutdownReason::ServerStop).await;
    let database = open(options(directory.path())).await;
    assert_eq!(
        rows(&database, "SELECT * FROM accounts WHERE id = 1").await,
        "[[1,997]]"
    );
    assert_eq!(
        rows(&database, "SELECT balance FROM accounts WHERE id = 2").await,
        "[[1003]]"
    );
    let clients = rows(&database, "SELECT * FROM st_client").await;
    assert_eq!(
        clients.matches("\"0x9090").count(),
        1,
        "only the row of the request itself: {clients}"
    );
    database.shutdown(ShutdownReason::ServerStop).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_that_do_not_reach_the_module() {
    let directory = tempfile::tempdir().unwrap();
    let database = create(options(directory.path()), "transfer").await;
    let call = |name: &'static str, args: &str| {
        let args = CallArgs::Json(args.to_owned());
        let database = database.clone();
        async move { database.call(caller(STRANGER), name, args).await }
    };
    assert!(matches!(
        call("nosuch", "[]").await,
        Err(CallError::NoSuchFunction)
    ));
    assert!(matches!(
        call("transfer", "[1]").await,
        Err(CallError::InvalidArguments(_))
    ));
    let refused = call("transfer", "[1, 1, 1]").await;
    assert!(
        matches!(refused, Err(CallError::UserError { message, .. }) if message == "same_account")
    );

    let mut client = Client::connect(&database, STRANGER, 1).await;
    let short = ClientMessage::CallReducer {
        request_id: 1,
        reducer: "transfer",
        args: &[1],
    };
    let unknown = ClientMessage::CallReducer {
        request_id: 2,
        reducer: "nosuch",
        args: &[],
    };
    client.send(&[short, unknown]).await;
    for expected in [
        "invalid arguments for reducer transfer: data too short for u32: Expected 4, given 1",
        "no such reducer",
    ] {
        let ServerMessage::ReducerResult { result, .. } = client.next().await else {
            panic!("a result")
        };
        assert_eq!(result, ReducerOutcome::InternalError(expected.to_owned()));
    }
    database.shutdown(ShutdownReason::Deleted).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unsubscribe_one_off_and_errors() {
    let directory = tempfile::tempdir().unwrap();
    let database = create(options(directory.path()), "transfer").await;
    seed(&database, 2000).await;
    let mut client = Client::connect(&database, STRANGER, 1).await;
    let subscribe = |request_id, query_set_id, sql| ClientMessage::Subscribe {
        request_id,
        query_set_id,
        query_strings: vec![sql],
    };
    client
        .send(&[
            subscribe(1, 1, "SELECT * FROM accounts"),
            subscribe(2, 1, "SELECT * FROM accounts"),
            subscribe(3, 2, "SELECT * FROM nothing"),
            ClientMessage::OneOffQuery {
                request_id: 4,
                query_string: "SELECT * FROM accounts WHERE id < 5",
            },
            ClientMessage::Unsubscribe {
                request_id: 5,
                query_set_id: 1,
                send_dropped_rows: true,
            },
            ClientMessage::Unsubscribe {
                request_id: 6,
                query_set_id: 1,
                send_dropped_rows: true,
            },
        ])
        .await;
    let ServerMessage::SubscribeApplied { rows, .. } = client.next().await else {
        panic!("applied")
    };
    assert_eq!(rows.tables[0].rows.len(), 2000);
    let ServerMessage::SubscriptionError {
        request_id: Some(2),
        ..
    } = client.next().await
    else {
        panic!("twice the same id")
    };
    let ServerMessage::SubscriptionError {
        request_id: Some(3),
        error,
        ..
    } = client.next().await
    else {
        panic!("no such table")
    };
    assert!(
        error.starts_with("no such table: `nothing`")
            && error.ends_with(", executing: `SELECT * FROM nothing`"),
        "{error}"
    );
    let ServerMessage::OneOffQueryResult {
        result: Ok(rows), ..
    } = client.next().await
    else {
        panic!("rows")
    };
    assert_eq!(rows.tables[0].rows.len(), 5);
    let ServerMessage::UnsubscribeApplied {
        rows: Some(rows), ..
    } = client.next().await
    else {
        panic!("dropped rows")
    };
    assert_eq!(rows.tables[0].rows.len(), 2000);
    let ServerMessage::SubscriptionError {
        request_id: Some(6),
        ..
    } = client.next().await
    else {
        panic!("not found")
    };
    database.shutdown(ShutdownReason::Deleted).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn joins_are_answered_once() {
    let directory = tempfile::tempdir().unwrap();
    let database = create(options(directory.path()), "transfer").await;
    seed(&database, 2000).await;
    let mut client = Client::connect(&database, STRANGER, 1).await;
    let ask = |request_id, query_string| ClientMessage::OneOffQuery {
        request_id,
        query_string,
    };
    client
        .send(&[
            ask(1, "SELECT a.* FROM accounts a JOIN accounts b ON a.id = b.id WHERE b.id < 5"),
            ask(2, "SELECT a.* FROM accounts a JOIN accounts b ON a.balance = b.balance WHERE a.id = 7"),
            ask(3, "SELECT a.* FROM accounts a JOIN accounts b WHERE a.id < b.id AND b.id < a.id"),
        ])
        .await;
    for (request_id, rows) in [(1, 5), (2, 2000), (3, 0)] {
        let answer = client.next().await;
        let ServerMessage::OneOffQueryResult {
            request_id: answered,
            result: Ok(result),
        } = answer
        else {
            panic!("rows of {request_id}: {answer:?}")
        };
        assert_eq!(answered, request_id);
        assert_eq!(result.tables.len(), 1);
        assert_eq!(result.tables[0].rows.len(), rows);
    }
    let pairs = "SELECT COUNT(*) AS n FROM accounts a JOIN accounts b WHERE a.id < b.id";
    assert_eq!(rows(&database, pairs).await, "[[1999000]]");
    database.shutdown(ShutdownReason::Deleted).await;
}
