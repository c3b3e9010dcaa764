//! What queries may cost: the writer, a changed row, the memory of what is registered, and the time to compile them.

use std::time::{Duration, Instant};

use crate::common::requests::{
    error_of, one_off, rows_of, seed, start, subscribe, transfer, transfer_args, unsubscribe,
    until, ALL,
};
use crate::common::{caller, Client, STRANGER};
use bytes::Bytes;
use lightcone_database::{JsonRows, Outgoing, ShutdownReason};
use lightcone_types::Encode;
use lightcone_wire::{ClientMessage, ServerMessage};

/// As many conditions as fit a text of about so many bytes. `n` makes it another query.
fn long_query(n: usize, bytes: usize) -> String {
    let conditions = " OR id = 7".repeat(bytes / 10);
    format!("SELECT * FROM accounts WHERE id = {n}{conditions}")
}

#[tokio::test(flavor = "multi_thread")]
async fn queries_are_bounded_by_what_they_cost_a_changed_row() {
    let directory = tempfile::tempdir().unwrap();
    let (database, _) = start(&directory, |options| {
        options.limits.query_steps_per_connection_max = 100;
        options.limits.query_steps_per_table_max = 150;
    })
    .await;
    seed(&database, 10).await;
    let texts: Vec<_> = (0..30)
        .map(|id| format!("SELECT * FROM accounts WHERE id <> {}", 100 + id))
        .collect();
    let text = |n: usize| vec![texts[n].as_str()];
    let long = long_query(1, 1000);
    let mut first = Client::connect(&database, STRANGER, 1).await;
    // 9 steps each.
    let eleven = texts[..11].iter().map(String::as_str).collect::<Vec<_>>();
    first
        .send(&[
            subscribe(1, eleven.clone()),
            subscribe(2, text(11)),
            subscribe(3, vec![&long]),
            subscribe(4, vec!["SELECT * FROM accounts WHERE id = 5"]),
        ])
        .await;
    assert_eq!(rows_of(first.next().await), 110);
    for _ in 0..2 {
        let error = error_of(first.next().await);
        assert!(error.contains("[LC0710]"), "{error}");
    }
    assert_eq!(rows_of(first.next().await), 1, "found by its value");
    let mut second = Client::connect(&database, STRANGER, 2).await;
    second
        .send(&[
            subscribe(1, texts[11..16].iter().map(String::as_str).collect()),
            subscribe(2, text(16)),
            // What one client has already costs no more.
            subscribe(3, text(0)),
        ])
        .await;
    assert_eq!(rows_of(second.next().await), 50);
    let error = error_of(second.next().await);
    assert!(error.contains("[LC0711]"), "{error}");
    assert_eq!(rows_of(second.next().await), 10);
    // What goes makes room, also with its connection.
    let ten = eleven[..10].to_vec();
    first.send(&[unsubscribe(1), subscribe(5, ten)]).await;
    first.next().await;
    assert_eq!(rows_of(first.next().await), 100);
    drop(first);
    let mut third = Client::connect(&database, STRANGER, 3).await;
    let others: Vec<_> = texts[17..27].iter().map(String::as_str).collect();
    let mut rows = 0;
    for _ in 0..500 {
        third.send(&[subscribe(1, others.clone())]).await;
        match third.next().await {
            applied @ ServerMessage::SubscribeApplied { .. } => {
                rows = rows_of(applied);
                break;
            }
            // The first one's disconnect is on its way.
            refused => assert!(error_of(refused).contains("[LC0711]")),
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(rows, 100);
    database.shutdown(ShutdownReason::ServerStop).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_failure_takes_nothing_but_its_own_set() {
    let directory = tempfile::tempdir().unwrap();
    let (database, _) = start(&directory, |options| {
        options.limits.client_bytes_max = 1 << 20;
    })
    .await;
    seed(&database, 200_000).await;
    let mut client = Client::connect(&database, STRANGER, 1).await;
    // The first one's rows do not fit, which is found out when its id is another's.
    client
        .send(&[
            subscribe(1, vec![ALL]),
            unsubscribe(1),
            subscribe(1, vec!["SELECT * FROM accounts WHERE id = 3"]),
        ])
        .await;
    let error = error_of(client.next().await);
    assert!(error.contains("[LC0706]"), "{error}");
    let unsubscribed = client.next().await;
    assert!(
        matches!(unsubscribed, ServerMessage::UnsubscribeApplied { .. }),
        "{unsubscribed:?}"
    );
    assert_eq!(rows_of(client.next().await), 1);
    let mut caller = Client::connect(&database, STRANGER, 2).await;
    caller.send(&[transfer(1, &transfer_args(3, 4))]).await;
    caller.next().await;
    let update = client.next().await;
    assert!(
        matches!(update, ServerMessage::TransactionUpdate { .. }),
        "{update:?}"
    );
    database.shutdown(ShutdownReason::ServerStop).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_of_an_index_are_under_way_until_they_are_taken() {
    under_way_until_taken("SELECT * FROM accounts WHERE id = 3").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_are_under_way_until_they_are_taken() {
    under_way_until_taken("SELECT * FROM nothing").await;
}

async fn under_way_until_taken(text: &str) {
    const QUERIES: u32 = 100;
    let directory = tempfile::tempdir().unwrap();
    let (database, _) = start(&directory, |_| {}).await;
    seed(&database, 1000).await;
    let mut client = Client::connect(&database, STRANGER, 1).await;
    let mut payload = Vec::new();
    for request_id in 0..QUERIES {
        one_off(request_id, text).encode(&mut payload);
    }
    let (sender, outgoing) = (&client.connection.sender, &mut client.connection.outgoing);
    let sending = sender.submit(Bytes::from(payload));
    tokio::pin!(sending);
    let waited = tokio::time::timeout(Duration::from_millis(500), &mut sending).await;
    assert!(
        waited.is_err(),
        "all queries were taken while the client takes no answers"
    );
    let (mut answers, mut sent) = (0, false);
    while answers < QUERIES || !sent {
        tokio::select! {
            result = &mut sending, if !sent => {
                result.expect("well formed");
                sent = true;
            }
            batch = outgoing.recv() => match batch.expect("it lives") {
                Outgoing::Messages(batch) => answers += batch.ends.len() as u32,
                Outgoing::Close { reason, .. } => panic!("{reason}"),
            },
        }
    }
    assert_eq!(answers, QUERIES);
    database.shutdown(ShutdownReason::ServerStop).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_index_answers_waits_for_no_scan() {
    let directory = tempfile::tempdir().unwrap();
    let (database, _) = start(&directory, |options| {
        options.limits.reads_per_database_max = 1;
    })
    .await;
    seed(&database, 200_000).await;
    let point = "SELECT * FROM accounts WHERE id = 3";
    let scan = "SELECT * FROM accounts WHERE balance = 1";
    // Takes minutes.
    let mut busy = Client::connect(&database, STRANGER, 1).await;
    busy.send(&[one_off(1, &long_query(300_000, 45_000))]).await;
    let mut client = Client::connect(&database, STRANGER, 2).await;
    let padded = format!("{point}{}", " ".repeat(5000));
    let quick = async {
        client
            .send(&[
                subscribe(1, vec![point]),
                one_off(2, &padded),
                subscribe(3, vec![point]),
            ])
            .await;
        for _ in 0..3 {
            assert_eq!(rows_of(client.next().await), 1);
        }
        let rows = database
            .sql(
                caller(STRANGER),
                point.to_owned(),
                true,
                JsonRows::default(),
            )
            .await;
        assert!(rows.is_ok_and(|rows| rows.text().contains("[3,")));
    };
    tokio::select! {
        () = quick => {}
        other = busy.next() => panic!("it should have taken longer: {other:?}"),
    }
    // Scans do wait, and nothing that is behind them overtakes them.
    let dropped_rows = ClientMessage::Unsubscribe {
        request_id: 4,
        query_set_id: 4,
        send_dropped_rows: true,
    };
    let args = transfer_args(1, 2);
    let messages = [
        one_off(3, scan),
        transfer(5, &args),
        subscribe(4, vec![scan]),
        dropped_rows,
        transfer(6, &args),
    ];
    let gone = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        drop(busy);
        Instant::now()
    };
    let sent = async {
        client.send(&messages).await;
        Instant::now()
    };
    let over_http = database.sql(caller(STRANGER), scan.to_owned(), true, JsonRows::default());
    let (gone, sent, rows) = tokio::join!(gone, sent, over_http);
    assert!(sent > gone, "there is one permit");
    assert!(rows.is_ok_and(|rows| rows.text() == "[]"));
    assert_eq!(rows_of(client.next().await), 0);
    let transferred = client.next().await;
    assert!(
        matches!(transferred, ServerMessage::ReducerResult { .. }),
        "{transferred:?}"
    );
    assert_eq!(rows_of(client.next().await), 0);
    let unsubscribed = client.next().await;
    assert!(
        matches!(unsubscribed, ServerMessage::UnsubscribeApplied { .. }),
        "{unsubscribed:?}"
    );
    let transferred = client.next().await;
    assert!(
        matches!(transferred, ServerMessage::ReducerResult { .. }),
        "{transferred:?}"
    );
    database.shutdown(ShutdownReason::ServerStop).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_of_the_writer_that_does_not_fit_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let (database, _) = start(&directory, |options| {
        options.limits.client_bytes_max = 4 << 10;
    })
    .await;
    seed(&database, 250).await;
    let mut client = Client::connect(&database, STRANGER, 1).await;
    client
        .send(&[
            subscribe(1, vec![ALL]),
            subscribe(1, vec!["SELECT * FROM accounts WHERE id = 3"]),
        ])
        .await;
    let error = error_of(client.next().await);
    assert!(error.contains("[LC0706]"), "{error}");
    // The set is not there, and the connection goes on.
    assert_eq!(rows_of(client.next().await), 1);
    client.send(&[one_off(2, ALL)]).await;
    let error = error_of(client.next().await);
    assert!(error.contains("[LC0706]"), "{error}");
    database.shutdown(ShutdownReason::ServerStop).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn registered_queries_count_what_was_made_of_them() {
    let directory = tempfile::tempdir().unwrap();
    let (database, commons) = start(&directory, |options| {
        options.limits.client_bytes_max = 2 << 20;
        options.limits.query_steps_per_connection_max = 1 << 20;
    })
    .await;
    let mut client = Client::connect(&database, STRANGER, 1).await;
    let texts: Vec<_> = (0..4).map(|n| long_query(n, 45_000)).collect();
    for (set, text) in texts.iter().enumerate() {
        client.send(&[subscribe(set as u32, vec![text])]).await;
    }
    let mut refused = 0;
    for _ in 0..4 {
        match client.next().await {
            ServerMessage::SubscribeApplied { .. } => {}
            other => {
                let error = error_of(other);
                assert!(error.contains("[LC0706]"), "{error}");
                refused += 1;
            }
        }
    }
    assert!((1..4).contains(&refused), "{refused} of 4 sets refused");
    drop(client);
    until("all memory is given back", || commons.clients_bytes() == 0).await;
    database.shutdown(ShutdownReason::ServerStop).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn compiling_a_set_is_bounded() {
    let directory = tempfile::tempdir().unwrap();
    let (database, _) = start(&directory, |options| {
        options.limits.queries_per_set_max = 2000;
    })
    .await;
    let mut client = Client::connect(&database, STRANGER, 1).await;
    // Texts that repeat are one query, but not without end.
    client
        .send(&[subscribe(1, vec![ALL; 8001]), subscribe(2, vec![ALL; 60])])
        .await;
    let error = error_of(client.next().await);
    assert!(error.contains("at most 2000 queries [LC0703]"), "{error}");
    assert_eq!(rows_of(client.next().await), 0);
    database.shutdown(ShutdownReason::ServerStop).await;

    let directory = tempfile::tempdir().unwrap();
    let (database, _) = start(&directory, |options| {
        options.limits.queries_per_set_max = 2000;
        options.limits.read_time_max = Duration::from_millis(100);
    })
    .await;
    let mut client = Client::connect(&database, STRANGER, 1).await;
    let texts: Vec<_> = (0..2000).map(|n| long_query(n, 5000)).collect();
    client
        .send(&[subscribe(3, texts.iter().map(String::as_str).collect())])
        .await;
    let error = error_of(client.next().await);
    assert!(
        error.contains("compiling") && error.contains("[LC0708]"),
        "{error}"
    );
    database.shutdown(ShutdownReason::ServerStop).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_few_connections_keep_no_other_from_a_table() {
    let directory = tempfile::tempdir().unwrap();
    let (database, _) = start(&directory, |options| {
        // One query of 9 steps is modest, and ten are all that a table takes.
        options.limits.query_steps_per_connection_max = 64 * 9;
        options.limits.query_steps_per_table_max = 90;
    })
    .await;
    seed(&database, 10).await;
    let texts: Vec<_> = (0..13)
        .map(|id| format!("SELECT * FROM accounts WHERE id <> {}", 100 + id))
        .collect();
    let text = |n: usize| vec![texts[n].as_str()];
    let mut greedy = Client::connect(&database, STRANGER, 1).await;
    let ten = texts[..10].iter().map(String::as_str).collect();
    greedy
        .send(&[subscribe(1, ten), subscribe(2, text(10))])
        .await;
    assert_eq!(rows_of(greedy.next().await), 100);
    let error = error_of(greedy.next().await);
    assert!(error.contains("[LC0711]"), "{error}");
    let mut modest = Client::connect(&database, STRANGER, 2).await;
    modest
        .send(&[subscribe(1, text(11)), subscribe(2, text(12))])
        .await;
    assert_eq!(rows_of(modest.next().await), 10);
    let error = error_of(modest.next().await);
    assert!(error.contains("[LC0711]"), "{error}");
    database.shutdown(ShutdownReason::ServerStop).await;
}
