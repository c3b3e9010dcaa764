//! The published crate `spacetimedb-sdk` 2.14.0 against a running server: identity, calls, subscriptions.

mod common;

use common::{Cause, Happened, Server};
use lightcone_rust_client_test::module_bindings::*;
use spacetimedb_sdk::{Compression, DbContext, Identity, Table};

const OK: Happened = Happened::Result(Ok(Ok(())));

#[test]
fn identity_and_token() {
    let server = Server::start();
    let first = server.connect(None);
    assert_ne!(first.identity, Identity::ZERO);
    assert_eq!(first.connection.identity(), first.identity);
    assert!(first.connection.try_connection_id().is_some());
    assert!(first.connection.is_active());
    assert!(
        first.token.split('.').count() == 3,
        "a token has three parts: {}",
        first.token
    );
    first.disconnect();

    let again = server.connect(Some(&first.token));
    assert_eq!(again.identity, first.identity);
    assert_eq!(again.token, first.token, "the token is the same again");
    again.disconnect();

    let other = server.connect(None);
    assert_ne!(other.identity, first.identity);
    other.disconnect();
}

#[test]
fn calls() {
    let server = Server::start();
    let client = server.connect(None);
    client.call_seed(3, 100);
    assert_eq!(client.call_transfer(0, 1, 30), Ok(Ok(())));
    for (from, to, amount, error) in [
        (1, 1, 1, "same_account"),
        (0, 1, 0, "non_positive_amount"),
        (0, 9, 1, "account_missing"),
        (0, 1, 71, "insufficient_funds"),
    ] {
        assert_eq!(
            client.call_transfer(from, to, amount),
            Ok(Err(error.to_owned()))
        );
    }
    let missing = client.call_missing().expect_err("there is no such reducer");
    assert!(missing.contains("no such reducer"), "{missing}");
    // The connection has not suffered, and answers come in the order of the calls.
    for amount in [70, 1, 30] {
        client.start_transfer(0, 1, amount);
    }
    let short = Happened::Result(Ok(Err("insufficient_funds".to_owned())));
    assert_eq!(
        [client.next(), client.next(), client.next()],
        [OK, short.clone(), short]
    );

    client.subscribe("all", &["SELECT * FROM accounts"]);
    assert_eq!(client.next(), Happened::Applied("all"));
    assert_eq!(
        client.cached(),
        [(0, 0), (1, 200), (2, 100)],
        "what failed changed nothing"
    );
    assert!(
        server
            .cli(&[
                "sql",
                "--server",
                &server.url,
                "transfers",
                "SELECT * FROM accounts WHERE id = 1"
            ])
            .contains("200")
    );
    client.disconnect();
}

#[test]
fn whole_table() {
    let server = Server::start();
    let client = server.connect(None);
    client.call_seed(3, 100);
    client.watch_rows();
    let all = client.subscribe("all", &["SELECT * FROM accounts"]);
    let initial = client.until(&Happened::Applied("all"));
    let rows = |make: fn(Cause, u32, i64) -> Happened, cause, balance| {
        (0..3)
            .map(move |id| make(cause, id, balance))
            .collect::<Vec<_>>()
    };
    // `on_applied` may come before or after the row callbacks.
    let initial = if initial.is_empty() {
        client.take(3)
    } else {
        initial
    };
    assert_eq!(initial, rows(Happened::Insert, Cause::Subscribed, 100));
    assert!(all.is_active());
    assert_eq!(client.cached(), [(0, 100), (1, 100), (2, 100)]);

    // A call of one's own: its rows and its answer come together.
    client.start_transfer(0, 1, 30);
    assert_eq!(
        client.take(3),
        [
            OK,
            Happened::Update(Cause::Own, 0, 100, 70),
            Happened::Update(Cause::Own, 1, 100, 130)
        ]
    );
    assert_eq!(client.cached_balance(1), Some(130));

    // Another client's.
    let other = server.connect(None);
    assert_eq!(other.call_transfer(1, 2, 5), Ok(Ok(())));
    assert_eq!(
        client.take(2),
        [
            Happened::Update(Cause::Other, 1, 130, 125),
            Happened::Update(Cause::Other, 2, 100, 105)
        ]
    );
    assert_eq!(other.cached(), [], "nothing without a subscription");

    // Fewer rows: two are changed, one goes.
    other.call_seed(2, 1);
    assert_eq!(
        client.take(3),
        [
            Happened::Delete(Cause::Other, 2, 105),
            Happened::Update(Cause::Other, 0, 70, 1),
            Happened::Update(Cause::Other, 1, 125, 1)
        ]
    );
    // More rows: two stay as they are, and cause no callback.
    other.call_seed(4, 1);
    assert_eq!(
        client.take(2),
        [
            Happened::Insert(Cause::Other, 2, 1),
            Happened::Insert(Cause::Other, 3, 1)
        ]
    );
    assert_eq!(client.cached(), [(0, 1), (1, 1), (2, 1), (3, 1)]);

    all.unsubscribe();
    let gone = client.until(&Happened::Ended("all"));
    let gone = if gone.is_empty() {
        client.take(4)
    } else {
        gone
    };
    assert_eq!(
        gone,
        (0..4)
            .map(|id| Happened::Delete(Cause::Unsubscribed, id, 1))
            .collect::<Vec<_>>()
    );
    assert!(all.is_ended());
    assert_eq!(client.cached(), []);
    assert_eq!(other.call_transfer(0, 1, 1), Ok(Ok(())));
    client.expect_nothing_more();
    client.disconnect();
    other.disconnect();
}

#[test]
fn conditions() {
    let server = Server::start();
    let client = server.connect(None);
    client.call_seed(10, 100);
    client.watch_rows();
    let one = client.subscribe("one", &["SELECT * FROM accounts WHERE id = 3"]);
    assert_eq!(
        client.take(2),
        [
            Happened::Applied("one"),
            Happened::Insert(Cause::Subscribed, 3, 100)
        ]
    );

    let other = server.connect(None);
    // Nothing of row 3: nothing comes.
    assert_eq!(other.call_transfer(1, 2, 1), Ok(Ok(())));
    client.expect_nothing_more();
    assert_eq!(other.call_transfer(1, 3, 1), Ok(Ok(())));
    assert_eq!(client.next(), Happened::Update(Cause::Other, 3, 100, 101));

    // A second query set that has row 3, too: the row is there already.
    let rich = client.subscribe(
        "rich",
        &[
            "SELECT * FROM accounts WHERE balance > 100",
            "SELECT * FROM accounts WHERE id = 7 AND balance = 100",
        ],
    );
    assert_eq!(
        client.take(3),
        [
            Happened::Applied("rich"),
            Happened::Insert(Cause::Subscribed, 2, 101),
            Happened::Insert(Cause::Subscribed, 7, 100)
        ]
    );
    assert_eq!(client.cached(), [(2, 101), (3, 101), (7, 100)]);

    // Rows come into a condition and fall out of it; row 7 changes from one query of the set to the other.
    assert_eq!(other.call_transfer(2, 7, 1), Ok(Ok(())));
    assert_eq!(
        client.take(2),
        [
            Happened::Delete(Cause::Other, 2, 101),
            Happened::Update(Cause::Other, 7, 100, 101)
        ]
    );

    // Row 3 stays as long as one query set has it.
    one.unsubscribe();
    assert_eq!(client.next(), Happened::Ended("one"));
    assert_eq!(client.cached(), [(3, 101), (7, 101)]);
    rich.unsubscribe();
    assert_eq!(
        client.take(3),
        [
            Happened::Delete(Cause::Unsubscribed, 3, 101),
            Happened::Delete(Cause::Unsubscribed, 7, 101),
            Happened::Ended("rich")
        ]
    );
    assert_eq!(client.cached(), []);
    client.expect_nothing_more();

    // A query that does not compile ends its own subscription and nothing else.
    let wrong = client.subscribe("wrong", &["SELECT * FROM nowhere"]);
    let error = client.next();
    assert!(
        matches!(&error, Happened::SubscriptionError(text) if text.contains("nowhere")),
        "{error:?}"
    );
    assert!(wrong.is_ended());
    client.expect_nothing_more();
    client.disconnect();
    other.disconnect();
}

#[test]
fn compressed() {
    let server = Server::start();
    let client = server.connect_with(None, Compression::Gzip);
    client.call_seed(5000, 7);
    // Large enough for the server to compress.
    client.subscribe("all", &["SELECT * FROM accounts"]);
    assert_eq!(client.next(), Happened::Applied("all"));
    assert_eq!(
        client.cached(),
        (0..5000).map(|id| (id, 7)).collect::<Vec<_>>()
    );
    client.disconnect();
}

#[test]
fn a_server_that_goes_away() {
    let server = Server::start();
    let client = server.connect(None);
    client.call_seed(1, 1);
    drop(server);
    assert!(matches!(client.next(), Happened::Disconnected(_)));
    assert!(!client.connection.is_active());
}

/// What applications write for all of their callbacks at once: a function that takes any context.
fn counted(ctx: &impl RemoteDbContext) -> (u64, Option<Identity>) {
    assert!(ctx.is_active());
    (ctx.db().accounts().count(), ctx.try_identity())
}

#[test]
fn functions_for_every_context() {
    let server = Server::start();
    let client = server.connect(None);
    client.call_seed(2, 10);
    let (sender, counts) = std::sync::mpsc::channel();
    let (applied, inserted, called) = (sender.clone(), sender.clone(), sender);
    client
        .connection
        .db
        .accounts()
        .on_insert(move |ctx: &EventContext, _| inserted.send(counted(ctx)).expect("heard"));
    client
        .connection
        .subscription_builder()
        .on_applied(move |ctx: &SubscriptionEventContext| {
            applied.send(counted(ctx)).expect("heard");
            ctx.reducers()
                .transfer_then(0, 1, 1, move |ctx: &ReducerEventContext, _| {
                    called.send(counted(ctx)).expect("heard")
                })
                .expect("sent");
        })
        .subscribe(["SELECT * FROM accounts"]);
    let everything = (2, Some(client.identity));
    for _ in 0..4 {
        let heard = counts
            .recv_timeout(common::PATIENCE)
            .expect("two rows, the subscription, the call");
        assert_eq!(heard, everything);
    }
    assert_eq!(counted(&client.connection), everything);
}
