//! What one client may ask for: memory, queries under way, registered queries, long payloads.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::common::requests::{
    error_of, one_off, rows_of, seed, start, subscribe, transfer, transfer_args, until, ALL,
};
use crate::common::{caller, Client, STRANGER};
use bytes::Bytes;
use lightcone_database::{
    CallArgs, Commons, JsonRows, Machine, Outgoing, ShutdownReason, SqlError, SubmitError,
};
use lightcone_types::Encode;
use lightcone_wire::{ClientMessage, ReducerOutcome, ServerMessage, TableUpdateRows};

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_does_not_fit_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let (database, commons) = start(&directory, |options| {
        options.limits.client_bytes_max = 1 << 20;
    })
    .await;
    seed(&database, 200_000).await;
    let mut client = Client::connect(&database, STRANGER, 1).await;
    client
        .send(&[one_off(1, ALL), subscribe(7, vec![ALL])])
        .await;
    for _ in 0..2 {
        let error = error_of(client.next().await);
        assert!(error.contains("[LC0706]"), "{error}");
    }
    // The set is not there, and the connection goes on.
    client
        .send(&[subscribe(7, vec!["SELECT * FROM accounts WHERE id = 3"])])
        .await;
    assert_eq!(rows_of(client.next().await), 1);
    match database
        .sql(caller(STRANGER), ALL.to_owned(), true, JsonRows::default())
        .await
    {
        Err(SqlError::Query(error)) => assert!(error.contains("[LC0706]"), "{error}"),
        other => panic!("{:?}", other.map(|outcome| outcome.text())),
    }
    let few = "SELECT * FROM accounts LIMIT 2".to_owned();
    let outcome = database
        .sql(caller(STRANGER), few, true, JsonRows::default())
        .await;
    assert!(outcome.is_ok_and(|outcome| outcome.text().contains("],[")));
    drop(client);
    until("all memory is given back", || commons.clients_bytes() == 0).await;
    database.shutdown(ShutdownReason::ServerStop).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_takes_nothing_is_read_no_further() {
    const ROWS: usize = 50_000;
    const ANSWER_BYTES: usize = ROWS * 12;
    const QUERIES: u32 = 300;
    let directory = tempfile::tempdir().unwrap();
    let (database, commons) = start(&directory, |_| {}).await;
    seed(&database, ROWS as u32).await;
    let mut greedy = Client::connect(&database, STRANGER, 1).await;
    let mut payload = Vec::new();
    for request_id in 0..QUERIES {
        one_off(request_id, ALL).encode(&mut payload);
    }
    let mut neighbour = Client::connect(&database, STRANGER, 2).await;
    {
        let sending = greedy.connection.sender.submit(Bytes::from(payload));
        tokio::pin!(sending);
        let waits = async {
            neighbour.send(&[subscribe(1, vec![ALL])]).await;
            assert_eq!(rows_of(neighbour.next().await), ROWS);
            until("some answers are there", || {
                commons.clients_bytes() > 4 * ANSWER_BYTES
            })
            .await;
            // All that would come has come by now.
            tokio::time::sleep(Duration::from_millis(300)).await;
        };
        tokio::select! {
            _ = &mut sending => panic!("all queries were taken while the client takes no answers"),
            () = waits => {}
        }
        assert!(
            commons.clients_bytes() < 10 * ANSWER_BYTES,
            "{} bytes wait",
            commons.clients_bytes()
        );
        // A client that takes answers gets all of them.
        let mut answers = 0;
        let mut sent = false;
        while answers < QUERIES {
            tokio::select! {
                result = &mut sending, if !sent => {
                    result.expect("well formed");
                    sent = true;
                }
                batch = greedy.connection.outgoing.recv() => match batch.expect("it lives") {
                    Outgoing::Messages(batch) => answers += batch.ends.len() as u32,
                    Outgoing::Close { reason, .. } => panic!("{reason}"),
                },
            }
        }
    }
    drop((greedy, neighbour));
    until("all memory is given back", || commons.clients_bytes() == 0).await;
    database.shutdown(ShutdownReason::ServerStop).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_memory_of_all_clients_is_bounded() {
    let directory = tempfile::tempdir().unwrap();
    let (database, commons) = start(&directory, |options| {
        options.commons = Commons::new(Machine::current(), 4 << 20, 2);
    })
    .await;
    seed(&database, 50_000).await;
    let mut clients = Vec::new();
    for id in 0..20 {
        let client = Client::connect(&database, STRANGER, 1 + id).await;
        client.send(&[one_off(1, ALL), one_off(2, ALL)]).await;
        clients.push(client);
    }
    let mut refused = 0;
    for client in &mut clients {
        for _ in 0..2 {
            assert!(commons.clients_bytes() <= 4 << 20);
            match client.connection.outgoing.recv().await {
                Some(Outgoing::Messages(batch)) if batch.bytes.len() < 1000 => refused += 1,
                Some(Outgoing::Messages(_)) => {}
                // It was the one with most.
                None => break,
                Some(Outgoing::Close { reason, .. }) => panic!("{reason}"),
            }
        }
    }
    assert!(refused > 0, "24 MB do not fit into 4");
    drop(clients);
    until("all memory is given back", || commons.clients_bytes() == 0).await;
    database.shutdown(ShutdownReason::ServerStop).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn registered_queries_are_bounded() {
    let directory = tempfile::tempdir().unwrap();
    let (database, _) = start(&directory, |options| {
        options.limits.queries_per_set_max = 2000;
        options.limits.queries_per_connection_max = 3000;
        options.limits.query_sets_max = 3;
    })
    .await;
    seed(&database, 1000).await;
    let mut client = Client::connect(&database, STRANGER, 1).await;
    // None of them matches anything, and none of them is the same.
    let texts: Vec<_> = (0..20_000)
        .map(|id| format!("SELECT * FROM accounts WHERE id = {}", 5000 + id))
        .collect();
    let texts: Vec<_> = texts.iter().map(String::as_str).collect();
    client
        .send(&[
            subscribe(1, texts.clone()),
            subscribe(2, texts[..2000].to_vec()),
            subscribe(3, texts[..1001].to_vec()),
            subscribe(4, texts[..1000].to_vec()),
        ])
        .await;
    let error = error_of(client.next().await);
    assert!(error.contains("at most 2000 queries [LC0703]"), "{error}");
    assert_eq!(rows_of(client.next().await), 0);
    let error = error_of(client.next().await);
    assert!(
        error.contains("at most 3000 queries") && error.contains("[LC0705]"),
        "{error}"
    );
    assert_eq!(rows_of(client.next().await), 0);
    // What is unsubscribed makes room.
    let unsubscribe = ClientMessage::Unsubscribe {
        request_id: 5,
        query_set_id: 2,
        send_dropped_rows: true,
    };
    client
        .send(&[unsubscribe, subscribe(3, texts[..1001].to_vec())])
        .await;
    let unsubscribed = client.next().await;
    assert!(
        matches!(
            unsubscribed,
            ServerMessage::UnsubscribeApplied {
                query_set_id: 2,
                ..
            }
        ),
        "{unsubscribed:?}"
    );
    assert_eq!(rows_of(client.next().await), 0);
    database.shutdown(ShutdownReason::ServerStop).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn registered_queries_take_memory() {
    let directory = tempfile::tempdir().unwrap();
    let (database, commons) = start(&directory, |options| {
        options.limits.client_bytes_max = 1 << 20;
    })
    .await;
    let mut client = Client::connect(&database, STRANGER, 1).await;
    let texts: Vec<_> = (0..4000)
        .map(|id| format!("SELECT * FROM accounts WHERE id = {id}"))
        .collect();
    let mut texts = texts.iter().map(String::as_str);
    let mut refused = 0;
    for set in 0..10 {
        let queries = texts.by_ref().take(300).collect();
        client.send(&[subscribe(set, queries)]).await;
        match client.next().await {
            ServerMessage::SubscribeApplied { .. } => assert_eq!(refused, 0),
            other => {
                let error = error_of(other);
                assert!(error.contains("[LC0706]"), "{error}");
                refused += 1;
            }
        }
    }
    assert!((6..10).contains(&refused), "{refused} of 10 sets refused");
    drop(client);
    until("all memory is given back", || commons.clients_bytes() == 0).await;
    database.shutdown(ShutdownReason::ServerStop).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_update_that_is_too_large_ends_the_connection() {
    let directory = tempfile::tempdir().unwrap();
    let (database, commons) = start(&directory, |options| {
        options.limits.client_bytes_max = 4 << 20;
    })
    .await;
    let mut modest = Client::connect(&database, STRANGER, 1).await;
    modest.send(&[subscribe(1, vec![ALL])]).await;
    assert_eq!(rows_of(modest.next().await), 0);
    // The same rows 300 times: as different queries, and as different sets.
    let texts: Vec<_> = (0..300)
        .map(|id| format!("SELECT * FROM accounts WHERE id <> {}", 1_000_000 + id))
        .collect();
    let mut queries = Client::connect(&database, STRANGER, 2).await;
    let texts = texts.iter().map(String::as_str).collect();
    queries.send(&[subscribe(1, texts)]).await;
    assert_eq!(rows_of(queries.next().await), 0);
    let mut sets = Client::connect(&database, STRANGER, 3).await;
    for set in 0..300 {
        sets.send(&[subscribe(set, vec![ALL])]).await;
        assert_eq!(rows_of(sets.next().await), 0);
    }
    seed(&database, 10_000).await;
    for client in [&mut queries, &mut sets] {
        match client.connection.outgoing.recv().await {
            Some(Outgoing::Close { code, reason }) => {
                assert_eq!(code, 1009);
                assert!(reason.contains("[LC0709]"), "{reason}");
            }
            Some(Outgoing::Messages(batch)) => panic!("{} bytes", batch.bytes.len()),
            None => panic!("no reason"),
        }
    }
    let ServerMessage::TransactionUpdate { query_sets } = modest.next().await else {
        panic!("an update")
    };
    let TableUpdateRows::Persistent { inserts, .. } = &query_sets[0].tables[0].rows[0] else {
        panic!("stored rows")
    };
    assert_eq!(inserts.len(), 10_000);
    drop((modest, queries, sets));
    until("all memory is given back", || commons.clients_bytes() == 0).await;
    database.shutdown(ShutdownReason::ServerStop).await;
}

/// Neither an answer nor an update is a larger message than messages may be, whatever else the client may have.
#[tokio::test(flavor = "multi_thread")]
async fn messages_to_clients_are_bounded() {
    let directory = tempfile::tempdir().unwrap();
    let (database, _) = start(&directory, |options| {
        options.limits.outgoing_message_bytes_max = Some(1_500_000);
    })
    .await;
    // The same rows 200 times.
    let texts: Vec<_> = (0..200)
        .map(|id| format!("SELECT * FROM accounts WHERE id <> {}", 1_000_000 + id))
        .collect();
    let all = || texts.iter().map(String::as_str).collect::<Vec<_>>();
    let mut modest = Client::connect(&database, STRANGER, 1).await;
    modest.send(&[subscribe(1, vec![ALL])]).await;
    assert_eq!(rows_of(modest.next().await), 0);
    let mut greedy = Client::connect(&database, STRANGER, 2).await;
    greedy.send(&[subscribe(1, all())]).await;
    assert_eq!(rows_of(greedy.next().await), 0);
    seed(&database, 1000).await;
    let update = modest.next().await;
    assert!(matches!(update, ServerMessage::TransactionUpdate { .. }));
    match greedy.connection.outgoing.recv().await {
        Some(Outgoing::Close { code, reason }) => {
            assert_eq!(code, 1009);
            assert!(
                reason.contains("outgoing-message-bytes-max") && reason.ends_with("[LC0709]"),
                "{reason}"
            );
        }
        Some(Outgoing::Messages(batch)) => panic!("{} bytes", batch.bytes.len()),
        None => panic!("no reason"),
    }
    modest.send(&[subscribe(2, all())]).await;
    let error = error_of(modest.next().await);
    assert!(
        error.contains("outgoing-message-bytes-max") && error.ends_with("[LC0706]"),
        "{error}"
    );
    modest.send(&[subscribe(2, all()[..50].to_vec())]).await;
    assert_eq!(rows_of(modest.next().await), 50_000);
    drop((modest, greedy));
    database.shutdown(ShutdownReason::ServerStop).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn long_payloads_are_taken_in_pieces() {
    let directory = tempfile::tempdir().unwrap();
    // Fewer places in the inbox than messages in a piece, and than calls over HTTP.
    let (database, _) = start(&directory, |options| {
        options.limits.inbox_messages_max = 3;
        options.limits.inbox_bytes_max = 8 << 10;
        // The answers are taken when all is sent.
        options.limits.reads_per_client_max = 20;
    })
    .await;
    seed(&database, 10).await;
    let mut client = Client::connect(&database, STRANGER, 1).await;
    let long = format!("SELECT * FROM accounts WHERE id = 1 {}", " ".repeat(5000));
    let args = transfer_args(1, 2);
    let mut payload = Vec::new();
    for request_id in 0..1000 {
        match request_id % 100 {
            50 => one_off(request_id, ALL).encode(&mut payload),
            // Compiled on another thread; what is behind it keeps its place.
            70 => one_off(request_id, &long).encode(&mut payload),
            _ => transfer(request_id, &args).encode(&mut payload),
        }
    }
    payload.push(99);
    let submitted = client.connection.sender.submit(Bytes::from(payload)).await;
    assert!(matches!(submitted, Err(SubmitError::Malformed(_))));
    for expected in 0..1000 {
        let request_id = match client.next().await {
            ServerMessage::ReducerResult {
                request_id, result, ..
            } => {
                assert_eq!(result, ReducerOutcome::OkEmpty);
                request_id
            }
            ServerMessage::OneOffQueryResult { request_id, result } => {
                let rows = result.expect("rows").tables[0].rows.len();
                assert_eq!(rows, if request_id % 100 == 50 { 10 } else { 1 });
                request_id
            }
            other => panic!("{other:?}"),
        };
        assert_eq!(request_id, expected, "answers come in order");
    }
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..50 {
        let database = database.clone();
        calls.spawn(async move {
            let args = CallArgs::Json("[2, 1, 1]".to_owned());
            database.call(caller(STRANGER), "transfer", args).await
        });
    }
    for call in calls.join_all().await {
        call.expect("transferred");
    }
    database.shutdown(ShutdownReason::ServerStop).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sets_come_and_go_in_any_order() {
    const CLIENTS: usize = 5;
    let directory = tempfile::tempdir().unwrap();
    let (database, _) = start(&directory, |_| {}).await;
    seed(&database, 10).await;
    // With a range, with a value, with a value and more, and all; many have the same.
    let texts = [
        ALL,
        "SELECT * FROM accounts WHERE id < 5",
        "SELECT * FROM accounts WHERE id = 1",
        "SELECT * FROM accounts WHERE id = 2",
        "SELECT * FROM accounts WHERE id = 2 AND balance <> 0",
        "SELECT * FROM accounts WHERE id = 2 AND balance <> 1",
        "SELECT * FROM accounts WHERE id = 9",
    ];
    let matching: BTreeSet<usize> = (0..6).collect();
    let mut clients = Vec::new();
    for id in 0..CLIENTS {
        clients.push(Client::connect(&database, STRANGER, 1 + id as u128).await);
    }
    let mut live = vec![std::collections::BTreeMap::<u32, BTreeSet<usize>>::new(); CLIENTS];
    let mut random = 12_345_u64;
    let mut next = |below: usize| {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (random >> 33) as usize % below
    };
    let args = transfer_args(1, 2);
    for round in 0..400 {
        let (who, set) = (next(CLIENTS), next(6) as u32);
        let client = &mut clients[who];
        if live[who].remove(&set).is_some() {
            let unsubscribe = ClientMessage::Unsubscribe {
                request_id: 0,
                query_set_id: set,
                send_dropped_rows: false,
            };
            client.send(&[unsubscribe]).await;
        } else {
            let queries: BTreeSet<_> = (0..1 + next(5)).map(|_| next(texts.len())).collect();
            client
                .send(&[subscribe(set, queries.iter().map(|&q| texts[q]).collect())])
                .await;
            live[who].insert(set, queries);
        }
        client.next().await;
        if round % 10 != 0 {
            continue;
        }
        let mut caller = Client::connect(&database, STRANGER, 1000 + round).await;
        caller.send(&[transfer(1, &args)]).await;
        caller.next().await;
        for (client, sets) in clients.iter_mut().zip(&live) {
            let expected: Vec<_> = sets
                .iter()
                .map(|(set, queries)| (*set, queries.intersection(&matching).count()))
                .filter(|(_, count)| *count > 0)
                .collect();
            if expected.is_empty() {
                continue;
            }
            let ServerMessage::TransactionUpdate { query_sets } = client.next().await else {
                panic!("an update")
            };
            let got: Vec<_> = query_sets
                .iter()
                .map(|set| (set.query_set_id, set.tables[0].rows.len()))
                .collect();
            assert_eq!(got, expected);
        }
    }
    database.shutdown(ShutdownReason::ServerStop).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_goes_holds_up_no_other() {
    let directory = tempfile::tempdir().unwrap();
    let (database, commons) = start(&directory, |_| {}).await;
    seed(&database, 100_000).await;
    for round in 0..10 {
        let client = Client::connect(&database, STRANGER, 1 + round).await;
        let mut payload = Vec::new();
        for request_id in 0..3000 {
            one_off(request_id, "SELECT * FROM accounts WHERE balance <> 7").encode(&mut payload);
        }
        // Given up in the middle of it.
        let submitted = client.connection.sender.submit(Bytes::from(payload));
        let gave_up = tokio::time::timeout(Duration::from_millis(20), submitted).await;
        assert!(
            gave_up.is_err(),
            "all queries were taken while the client takes no answers"
        );
        drop(client);
    }
    // 30,000 scans of 100,000 rows would take a minute or more.
    let mut next = Client::connect(&database, STRANGER, 1000).await;
    next.send(&[subscribe(
        1,
        vec!["SELECT * FROM accounts WHERE balance <> 8"],
    )])
    .await;
    assert_eq!(rows_of(next.next().await), 100_000);
    drop(next);
    until("all memory is given back", || commons.clients_bytes() == 0).await;
    database.shutdown(ShutdownReason::ServerStop).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_may_not_take_too_long() {
    let directory = tempfile::tempdir().unwrap();
    let (database, _) = start(&directory, |options| {
        options.limits.read_time_max = Duration::from_nanos(1);
    })
    .await;
    // More than a slice of scanning.
    seed(&database, 50_000).await;
    let mut client = Client::connect(&database, STRANGER, 1).await;
    let texts: Vec<_> = (0..1000)
        .map(|id| format!("SELECT * FROM accounts WHERE balance = {}", 5000 + id))
        .collect();
    client
        .send(&[subscribe(1, texts.iter().map(String::as_str).collect())])
        .await;
    let error = error_of(client.next().await);
    assert!(error.contains("[LC0708]"), "{error}");
    client
        .send(&[one_off(2, "SELECT * FROM accounts WHERE id = 2")])
        .await;
    assert_eq!(rows_of(client.next().await), 1);
    database.shutdown(ShutdownReason::ServerStop).await;
}
