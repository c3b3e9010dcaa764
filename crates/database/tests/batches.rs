//! Several query sets in one request (05 §7.9): one answer, in the order of the request, and no update before it.

use crate::common::requests::{
    error_of, rows_of, seed, start, subscribe, transfer, transfer_args, unsubscribe, ALL,
};
use crate::common::{Client, STRANGER};
use bytes::Bytes;
use lightcone_database::{ShutdownReason, SubmitError};
use lightcone_types::Encode;
use lightcone_wire::{
    ClientMessage, QueryRows, ReducerOutcome, ServerMessage, SubscribeSet, TableUpdateRows,
};

fn batch<'a>(request_id: u32, sets: &[(u32, &[&'a str])]) -> ClientMessage<'a> {
    let sets = sets.iter().map(|(query_set_id, texts)| SubscribeSet {
        query_set_id: *query_set_id,
        query_strings: Vec::from(*texts),
    });
    ClientMessage::SubscribeBatch {
        request_id,
        sets: sets.collect(),
    }
}

/// The results of an answer: query set ids, with rows or texts.
fn results_of(message: ServerMessage, request: u32) -> Vec<(u32, Result<QueryRows, String>)> {
    let ServerMessage::SubscribeBatchApplied {
        request_id,
        results,
    } = message
    else {
        panic!("no answer to a batch: {message:?}");
    };
    assert_eq!(request_id, request);
    let results = results.into_iter();
    results.map(|set| (set.query_set_id, set.outcome)).collect()
}

/// The same with the number of rows.
fn counts_of(message: ServerMessage, request: u32) -> Vec<(u32, Result<usize, String>)> {
    let count = |rows: QueryRows| rows.tables.iter().map(|table| table.rows.len()).sum();
    let results = results_of(message, request).into_iter();
    let counts = results.map(|(id, outcome)| (id, outcome.map(count)));
    counts.collect()
}

fn sets_of_update(message: ServerMessage) -> Vec<u32> {
    let ServerMessage::TransactionUpdate { query_sets } = message else {
        panic!("no update: {message:?}");
    };
    let mut ids: Vec<_> = query_sets.iter().map(|set| set.query_set_id).collect();
    ids.sort_unstable();
    ids
}

#[tokio::test(flavor = "multi_thread")]
async fn one_answer_has_a_result_for_each_set_in_their_order() {
    let directory = tempfile::tempdir().unwrap();
    let (database, _) = start(&directory, |_| {}).await;
    seed(&database, 10).await;
    let mut client = Client::connect(&database, STRANGER, 1).await;
    let three = "SELECT * FROM accounts WHERE id = 3";
    let sets: &[(u32, &[&str])] = &[
        (9, &[three]),
        (2, &["SELECT * FROM nowhere"]),
        (7, &[ALL, three]),
        (9, &[ALL]),
        (4, &["SELECT * FROM accounts WHERE id = 3 OR id = 5"]),
        (5, &[]),
    ];
    client.send(&[batch(1, sets), batch(2, &[])]).await;
    let counts = counts_of(client.next().await, 1);
    let ids: Vec<_> = counts.iter().map(|(id, _)| *id).collect();
    assert_eq!(ids, [9, 2, 7, 9, 4, 5]);
    assert_eq!(counts[0].1, Ok(1));
    let refused = counts[1].1.as_ref().expect_err("there is no such table");
    assert!(refused.contains("executing: `SELECT * FROM nowhere`"));
    assert_eq!(counts[2].1, Ok(11));
    let twice = counts[3].1.as_ref().expect_err("its id is in use");
    assert!(twice.contains("already exists for client"), "{twice}");
    assert_eq!(counts[4].1, Ok(2));
    assert_eq!(counts[5].1, Ok(0));
    assert_eq!(counts_of(client.next().await, 2), []);
    // Those that were refused are not there, the others are.
    let mut caller = Client::connect(&database, STRANGER, 2).await;
    caller.send(&[transfer(1, &transfer_args(3, 1))]).await;
    caller.next().await;
    assert_eq!(sets_of_update(client.next().await), [4, 7, 9]);
    client
        .send(&[unsubscribe(9), unsubscribe(2), subscribe(9, vec![three])])
        .await;
    let ended = client.next().await;
    assert!(matches!(ended, ServerMessage::UnsubscribeApplied { .. }));
    assert!(error_of(client.next().await).contains("Subscription not found"));
    assert_eq!(rows_of(client.next().await), 1);
    database.shutdown(ShutdownReason::ServerStop).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_that_are_found_beside_the_writer_come_before_all_updates() {
    let directory = tempfile::tempdir().unwrap();
    let (database, _) = start(&directory, |_| {}).await;
    seed(&database, 100_000).await;
    let mut client = Client::connect(&database, STRANGER, 1).await;
    let mut caller = Client::connect(&database, STRANGER, 2).await;
    let few = "SELECT * FROM accounts WHERE id = 3";
    let calls: Vec<Vec<u8>> = (0..50).map(|_| transfer_args(3, 4)).collect();
    let calls: Vec<_> = calls.iter().map(|args| transfer(1, args)).collect();
    caller.send(&calls[..25]).await;
    client.send(&[batch(1, &[(1, &[ALL]), (2, &[few])])]).await;
    caller.send(&calls[25..]).await;
    let results = results_of(client.next().await, 1);
    let balance_of = |row: &[u8]| i64::from_le_bytes(row[4..12].try_into().expect("8 bytes"));
    let mut balances: Vec<i64> = results
        .iter()
        .map(|(_, rows)| {
            let rows = &rows.as_ref().expect("there are rows").tables[0].rows;
            let three = rows.iter().find(|row| row[..4] == 3_u32.to_le_bytes());
            balance_of(three.expect("the account is there"))
        })
        .collect();
    assert_eq!(balances[0], balances[1], "both are of one state");
    while balances[0] > 950 {
        let ServerMessage::TransactionUpdate { query_sets } = client.next().await else {
            panic!("no update");
        };
        assert_eq!(query_sets.len(), 2);
        for set in query_sets {
            let TableUpdateRows::Persistent { inserts, .. } = &set.tables[0].rows[0] else {
                panic!("no rows of a table");
            };
            let three = inserts.iter().find(|row| row[..4] == 3_u32.to_le_bytes());
            let balance = balance_of(three.expect("it has changed"));
            let of_set = &mut balances[set.query_set_id as usize - 1];
            assert_eq!(balance, *of_set - 1, "no transaction is missing");
            *of_set = balance;
        }
    }
    for _ in 0..50 {
        let ServerMessage::ReducerResult { result, .. } = caller.next().await else {
            panic!("no result");
        };
        assert_eq!(result, ReducerOutcome::OkEmpty);
    }
    database.shutdown(ShutdownReason::ServerStop).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_too_much_together_is_refused_as_a_whole() {
    let directory = tempfile::tempdir().unwrap();
    let (database, _) = start(&directory, |options| {
        options.limits.client_bytes_max = 1 << 20;
    })
    .await;
    seed(&database, 200_000).await;
    let mut client = Client::connect(&database, STRANGER, 1).await;
    let few = "SELECT * FROM accounts WHERE id = 3";
    let broken = "SELECT";
    client
        .send(&[
            batch(1, &[(1, &[few]), (2, &[ALL]), (3, &[broken])]),
            // It is known to be dropped when the next request is read, or the id is still in use.
            batch(2, &[(11, &[few]), (12, &[few])]),
        ])
        .await;
    let refused = counts_of(client.next().await, 1);
    let texts: Vec<_> = refused.iter().map(|(_, outcome)| outcome.clone()).collect();
    let text = texts[0].clone().expect_err("all are refused");
    assert!(text.contains("[LC0706]"), "{text}");
    assert_eq!(texts, vec![Err(text); 3], "the same text in all");
    let applied = counts_of(client.next().await, 2);
    assert_eq!(applied, [(11, Ok(1)), (12, Ok(1))]);
    let mut rows = 0;
    for _ in 0..500 {
        client.send(&[subscribe(1, vec![few])]).await;
        match client.next().await {
            applied @ ServerMessage::SubscribeApplied { .. } => {
                rows = rows_of(applied);
                break;
            }
            in_use => assert!(error_of(in_use).contains("already exists")),
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    assert_eq!(rows, 1, "the refused set is gone");
    database.shutdown(ShutdownReason::ServerStop).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn long_batches_are_compiled_set_by_set() {
    let directory = tempfile::tempdir().unwrap();
    let (database, _) = start(&directory, |options| {
        options.limits.queries_per_set_max = 2;
    })
    .await;
    seed(&database, 10).await;
    let mut client = Client::connect(&database, STRANGER, 1).await;
    let long = format!(
        "SELECT * FROM accounts WHERE id = 3{}",
        " OR id = 7".repeat(500)
    );
    let many = vec![ALL; 9];
    let sets: &[(u32, &[&str])] = &[
        (1, &[&long]),
        (2, &many),
        (3, &["SELECT * FROM nowhere"]),
        (4, &["SELECT * FROM accounts WHERE id = 5"]),
    ];
    client.send(&[batch(1, sets)]).await;
    let counts = counts_of(client.next().await, 1);
    assert_eq!(counts[0].1, Ok(2));
    let refused = counts[1].1.as_ref().expect_err("it has too many queries");
    assert!(refused.contains("[LC0703]"), "{refused}");
    assert!(counts[2].1.is_err());
    assert_eq!(counts[3].1, Ok(1));
    database.shutdown(ShutdownReason::ServerStop).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_has_no_more_sets_than_can_be_answered() {
    let directory = tempfile::tempdir().unwrap();
    let (database, _) = start(&directory, |options| {
        options.limits.query_sets_max = 2;
    })
    .await;
    seed(&database, 10).await;
    let mut client = Client::connect(&database, STRANGER, 1).await;
    let sets: Vec<(u32, &[&str])> = (0..9).map(|id| (id, &[ALL][..])).collect();
    client.send(&[batch(1, &sets[..8])]).await;
    let counts = counts_of(client.next().await, 1);
    assert_eq!(counts.len(), 8);
    for (id, outcome) in counts {
        match id < 2 {
            true => assert_eq!(outcome, Ok(10)),
            false => assert!(outcome.expect_err("too many").contains("[LC0704]")),
        }
    }
    let payload = Bytes::from(batch(2, &sets).to_vec());
    let refused = client.connection.sender.submit(payload).await;
    assert!(
        matches!(&refused, Err(SubmitError::Malformed(text)) if text.contains("[LC0704]")),
        "{refused:?}"
    );
    database.shutdown(ShutdownReason::ServerStop).await;
}
