//! Requests over HTTP come and go as connections, whether or not they reach the module (06 §5.11, §5.14).

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::common::publishing::{stop, Noted};
use crate::common::requests::until;
use crate::common::tables::{create_tables, sql, table_options};
use crate::common::{caller, create, open, options, Client, OWNER, STRANGER};
use lightcone_database::{
    CallArgs, CallError, Changes, ConnectError, ConnectRequest, Connection, DatabaseHandle,
    HostKind, JsonRows, Rights, ShutdownReason, SqlError,
};
use lightcone_types::{ConnectionId, Due, Identity};
use lightcone_wire::Protocol;

async fn call(database: &DatabaseHandle, function: &str, args: &str) -> Result<(), CallError> {
    let args = CallArgs::Json(args.to_owned());
    let outcome = database.call(caller(STRANGER), function, args).await?;
    assert!(outcome.energy_used > 0, "a call is never free of cost");
    Ok(())
}

/// The lifecycle events of `STRANGER` so far.
async fn events(database: &DatabaseHandle) -> Vec<String> {
    let query = "SELECT event, identity FROM lifecycle".to_owned();
    let rows = database
        .sql(caller(OWNER), query, true, JsonRows::default())
        .await;
    let rows: Vec<(String, serde_json::Value)> =
        serde_json::from_str(&rows.expect("rows").text()).expect("rows are JSON");
    let hex = STRANGER.to_hex();
    // Numbers are written without leading zeros.
    let stranger = hex.trim_start_matches('0');
    let of_stranger = rows
        .into_iter()
        .filter(|(_, identity)| identity.to_string().contains(stranger));
    of_stranger.map(|(event, _)| event).collect()
}

/// A connection of a session.
async fn connect(
    database: &DatabaseHandle,
    identity: Identity,
    ids: (u128, u128),
) -> Result<Connection, ConnectError> {
    connect_for(database, identity, ids, Duration::ZERO, "{}").await
}

/// The same; for `grace` the module does not hear that it was lost.
async fn connect_for(
    database: &DatabaseHandle,
    identity: Identity,
    (connection_id, session_id): (u128, u128),
    session_grace: Duration,
    jwt_payload: &str,
) -> Result<Connection, ConnectError> {
    let request = ConnectRequest {
        identity,
        rights: Rights::default(),
        connection_id: ConnectionId(connection_id),
        session_id: Some(session_id),
        session_grace,
        jwt_payload: jwt_payload.into(),
        confirmed: true,
        protocol: Protocol::V3,
        token: "token".into(),
    };
    database.connect(request).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_has_one_live_connection() {
    let directory = tempfile::tempdir().unwrap();
    let database = create(options(directory.path()), "coverage").await;
    let mut first = connect(&database, STRANGER, (1, 7))
        .await
        .expect("the first");
    // It is a session of its identity, and of no other.
    let other = connect(&database, Identity::ZERO, (2, 7)).await;
    let other = other.expect("another client");
    let refused = connect(&database, STRANGER, (3, 7)).await.err();
    assert!(
        matches!(&refused, Some(ConnectError::SessionInUse(text)) if text.contains("[LC0342]")),
        "{refused:?}"
    );
    // The one that was live is ended, with all that belongs to it, and the session is free.
    assert_eq!(events(&database).await, ["connected", "disconnected"]);
    while first.outgoing.recv().await.is_some() {}
    let third = connect(&database, STRANGER, (4, 7)).await;
    let third = third.expect("the session is free");
    let fourth = connect(&database, STRANGER, (5, 8)).await;
    let fourth = fourth.expect("another session");
    drop(first);
    let all = ["connected", "disconnected", "connected", "connected"];
    assert_eq!(events(&database).await, all);
    // Who leaves by himself leaves nothing behind.
    drop(third);
    for _ in 0..3000 {
        if events(&database).await.len() == 5 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    connect(&database, STRANGER, (6, 7))
        .await
        .expect("the session is free");
    drop((other, fourth));
    database.shutdown(ShutdownReason::ServerStop).await;
}

/// Connection ids and claims of `STRANGER`'s connections, as the module can see them. Who asks has one, too.
async fn clients(database: &DatabaseHandle) -> (String, String) {
    let rows = |query: &'static str| async move {
        let rows = database.sql(caller(OWNER), query.to_owned(), true, JsonRows::default());
        let rows = rows.await.expect("rows").text();
        serde_json::from_str::<Vec<[serde_json::Value; 2]>>(&rows).expect("rows are JSON")
    };
    let hex = STRANGER.to_hex();
    let stranger = hex.trim_start_matches('0');
    let mut clients = rows("SELECT identity, connection_id FROM st_client").await;
    clients.retain(|[identity, _]| identity.to_string().contains(stranger));
    let ids: Vec<_> = clients.iter().map(|[_, id]| id).collect();
    let query = "SELECT connection_id, jwt_payload FROM st_connection_credentials";
    let claims = rows(query).await.into_iter();
    let claims = claims.filter(|[id, _]| ids.contains(&id));
    let claims: Vec<_> = claims
        .map(|[_, claims]| claims.as_str().expect("a text").to_owned())
        .collect();
    (format!("{ids:?}"), claims.join(" "))
}

async fn until_events(database: &DatabaseHandle, expected: &[&str]) {
    for _ in 0..3000 {
        if events(database).await == expected {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{:?}, and not {expected:?}", events(database).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_is_lost_may_come_back() {
    const LONG: Duration = Duration::from_secs(600);
    let directory = tempfile::tempdir().unwrap();
    let database = create(options(directory.path()), "coverage").await;
    let connect = |id, session, grace, claims| {
        let database = database.clone();
        async move { connect_for(&database, STRANGER, (id, session), grace, claims).await }
    };
    let first = connect(1, 7, LONG, "{\"a\":1}").await.expect("the first");
    let of_first = clients(&database).await;
    assert_eq!(of_first.1, "{\"a\":1}");
    drop(first);
    assert_eq!(clients(&database).await, of_first, "its rows stay");
    // It is back with its connection id and the claims of its new token; a live one gives way at once.
    let mut second = connect(2, 7, LONG, "{\"a\":2}").await.expect("it is back");
    let of_second = clients(&database).await;
    assert_eq!(of_second.0, of_first.0);
    assert_eq!(of_second.1, "{\"a\":2}");
    let third = connect(3, 7, LONG, "{\"a\":2}").await.expect("it is back");
    while second.outgoing.recv().await.is_some() {}
    drop(second);
    assert_eq!(clients(&database).await, of_second);
    assert_eq!(events(&database).await, ["connected"]);
    // Who says that he leaves has left.
    third.sender.leave();
    drop(third);
    until_events(&database, &["connected", "disconnected"]).await;
    assert_eq!(clients(&database).await.0, "[]");

    // So has who does not come back in time, and who comes as one that the module hears of.
    let short = Duration::from_millis(50);
    drop(connect(4, 7, short, "{}").await.expect("another"));
    let twice = ["connected", "disconnected", "connected", "disconnected"];
    until_events(&database, &twice).await;
    drop(connect(5, 7, LONG, "{}").await.expect("another"));
    let other = connect(6, 7, Duration::ZERO, "{}").await.expect("anew");
    let mut all = [&twice[..], &twice[..2], &twice[..1]].concat();
    assert_eq!(events(&database).await, all);
    drop(other);
    all.push("disconnected");
    until_events(&database, &all).await;

    // Of one identity only so many are waited for.
    for number in 0..65 {
        drop(
            connect(100 + number, 100 + number, LONG, "{}")
                .await
                .expect("one of many"),
        );
    }
    all.extend(["connected"; 65]);
    all.push("disconnected");
    until_events(&database, &all).await;
    // A restart is the end for all of them.
    database.shutdown(ShutdownReason::ServerStop).await;
    let database = open(options(directory.path())).await;
    assert_eq!(clients(&database).await.0, "[]");
    all.extend(["disconnected"; 64]);
    assert_eq!(events(&database).await, all);
    database.shutdown(ShutdownReason::ServerStop).await;
}

async fn sql_error(database: &DatabaseHandle, query: &str) -> SqlError {
    let result = database
        .sql(
            caller(STRANGER),
            query.to_owned(),
            true,
            JsonRows::default(),
        )
        .await;
    result.map(|_| ()).expect_err("the query is refused")
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_do_not_reach_the_module_come_and_go() {
    let directory = tempfile::tempdir().unwrap();
    let database = create(options(directory.path()), "coverage").await;

    assert!(matches!(
        call(&database, "no_such_function", "[]").await,
        Err(CallError::NoSuchFunction)
    ));
    assert_eq!(events(&database).await, ["connected", "disconnected"]);
    assert!(matches!(
        call(&database, "ban", "[]").await,
        Err(CallError::InvalidArguments(_))
    ));
    assert!(matches!(
        sql_error(&database, "SELECT * FROM nowhere").await,
        SqlError::Query(_)
    ));
    assert_eq!(events(&database).await.len(), 6);

    call(
        &database,
        "ban",
        &format!("[[\"0x{}\"]]", STRANGER.to_hex()),
    )
    .await
    .expect("banned");
    assert_eq!(events(&database).await.len(), 8);
    // The module's refusal comes before everything that is wrong with the request.
    assert!(matches!(
        call(&database, "no_such_function", "[]").await,
        Err(CallError::ConnectRejected(text)) if text == "you are banned"
    ));
    assert!(matches!(
        sql_error(&database, "SELECT * FROM nowhere").await,
        SqlError::ConnectRejected(text) if text == "you are banned"
    ));
    assert_eq!(events(&database).await.len(), 8);
    database.shutdown(ShutdownReason::ServerStop).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_that_are_not_followed_end_where_they_were_opened() {
    fn told(changes: &mut Changes) -> String {
        let mut told = Vec::new();
        loop {
            let (text, is_all) = changes.read().expect("changes");
            told.extend_from_slice(text.as_ref());
            if is_all {
                return String::from_utf8(told).expect("UTF-8");
            }
        }
    }
    let directory = tempfile::tempdir().unwrap();
    let database = create(options(directory.path()), "coverage").await;
    let open = || database.changes("0".parse().ok(), Vec::new(), false);
    let mut before = open().await.expect("a stream");
    let _ = call(&database, "no_such_function", "[]").await;
    // It is durable.
    assert_eq!(events(&database).await.len(), 2);
    let before = told(&mut before);
    let after = told(&mut open().await.expect("a stream"));
    assert!(
        after.starts_with(&before) && after.len() > before.len(),
        "{before} {after}"
    );
    database.shutdown(ShutdownReason::ServerStop).await;
}

/// Copies what a killed process would leave.
fn copy(source: &Path, target: &Path) {
    std::fs::create_dir_all(target).expect("a directory");
    for entry in std::fs::read_dir(source).expect("a directory") {
        let entry = entry.expect("an entry");
        let (from, to) = (entry.path(), target.join(entry.file_name()));
        match entry.file_type().expect("a type").is_dir() {
            true => copy(&from, &to),
            false => drop(std::fs::copy(&from, &to).expect("copied")),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_that_a_crash_left_are_gone_before_any_request() {
    let directory = tempfile::tempdir().unwrap();
    let (whole, left) = (
        directory.path().join("whole"),
        directory.path().join("left"),
    );
    let database = create(options(&whole), "coverage").await;
    let _client = Client::connect(&database, STRANGER, 1).await;
    assert_eq!(events(&database).await, ["connected"]);
    copy(&whole, &left);
    let reopened = open(options(&left)).await;
    until("the disconnect is in the log", || {
        reopened.stats().transactions == 1
    })
    .await;
    assert_eq!(events(&reopened).await, ["connected", "disconnected"]);
    reopened.shutdown(ShutdownReason::ServerStop).await;
    database.shutdown(ShutdownReason::ServerStop).await;
}

/// Where the module cannot tell, a caller comes and goes in the transaction of the call.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_over_http_is_one_transaction() {
    let directory = tempfile::tempdir().unwrap();
    let database = create(options(directory.path()), "procedures").await;
    let transactions = || database.stats().transactions;
    let before = transactions();
    for function in ["bump", "bump", "bump"] {
        let args = CallArgs::Json("[1]".to_owned());
        let called = database.call(caller(STRANGER), function, args).await;
        called.expect("bumped");
    }
    assert_eq!(transactions() - before, 3);
    for (function, args) in [
        ("bump_later_and_fail", "[2]"),
        ("bump", "[]"),
        ("none", "[]"),
    ] {
        let args = CallArgs::Json(args.to_owned());
        let called = database.call(caller(STRANGER), function, args).await;
        called.expect_err("it fails");
    }
    // The call that the failed reducer has asked for.
    until("it ran", || transactions() - before == 4).await;
    let rows = database.sql(
        caller(OWNER),
        "SELECT * FROM st_client".to_owned(),
        true,
        JsonRows::default(),
    );
    let rows: Vec<serde_json::Value> =
        serde_json::from_str(&rows.await.expect("rows").text()).expect("rows are JSON");
    assert_eq!(rows.len(), 1, "only the caller: {rows:?}");
    database.shutdown(ShutdownReason::ServerStop).await;
}

/// A caller who may only read has changed nothing, also not by being refused.
#[tokio::test(flavor = "multi_thread")]
async fn a_statement_that_may_not_write_runs_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let database = create(options(directory.path()), "coverage").await;
    let mut who = caller(STRANGER);
    who.rights = Rights::All;
    let text = "DELETE FROM lifecycle".to_owned();
    let refused = database
        .sql_of_assistant(who, text, (true, true), JsonRows::default())
        .await;
    assert!(matches!(refused.map(|_| ()), Err(SqlError::Writes)));
    assert!(events(&database).await.is_empty());
}

/// Also if it is not shut down: it gives its lock back.
#[tokio::test(flavor = "multi_thread")]
async fn a_database_stops_when_its_last_handle_goes() {
    let directory = tempfile::tempdir().unwrap();
    let database = create(options(directory.path()), "coverage").await;
    let other = database.clone();
    drop(database);
    call(&other, "no_such_function", "[]").await.unwrap_err();
    drop(other);
    let begun = std::time::Instant::now();
    let database = loop {
        let options = options(directory.path());
        let opened = tokio::task::spawn_blocking(move || DatabaseHandle::open(options)).await;
        match opened.expect("no panic") {
            Ok(database) => break database,
            Err(error) => assert!(begun.elapsed().as_secs() < 30, "{error}"),
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    };
    assert_eq!(events(&database).await, ["connected", "disconnected"]);
    database.shutdown(ShutdownReason::ServerStop).await;
}

/// The module has a disconnect reducer, which is to run for clients that an end or a crash has left.
#[tokio::test(flavor = "multi_thread")]
async fn a_database_whose_clients_are_still_there_is_to_be_opened() {
    let directory = tempfile::tempdir().expect("a directory");
    let (options_of, noted) = (options(directory.path()), Arc::new(Noted::default()));
    options_of.commons.set_due_notes(noted.clone());
    let database = create(options_of, "coverage").await;
    assert!(noted.is_noted() && database.acts_by_itself());
    assert!(database.is_unused());
    let client = Client::connect(&database, STRANGER, 1).await;
    assert!(database.has_users() && !database.is_unused());
    let due = database.shutdown(ShutdownReason::ServerStop).await;
    assert_eq!(due, Some(Due::Open));
    drop(client);
    let database = open(options(directory.path())).await;
    assert_eq!(events(&database).await, ["connected", "disconnected"]);
    let second = database.clone();
    assert!(!database.is_unused(), "each request has a handle");
    drop(second);
    let reader = database.logs().subscribe();
    assert!(!database.is_unused());
    drop(reader);
    let changes = database
        .changes(None, Vec::new(), true)
        .await
        .expect("a stream");
    assert!(!database.is_unused());
    drop(changes);
    assert!(database.is_unused());
    assert_eq!(database.due().await, Some(Due::Never));
    let due = database.shutdown(ShutdownReason::Idle).await;
    assert_eq!(due, Some(Due::Never));
}

#[tokio::test]
async fn a_database_is_not_created_over_the_log_of_another_one() {
    let root = tempfile::tempdir().expect("a directory");
    let program = serde_json::json!({ "tables": { "t": [["id", "U32"]] } });
    let options = table_options(root.path());
    let database = create_tables(options.clone(), &program).await;
    let inserted = sql(&database, OWNER, "INSERT INTO t (id) VALUES (7)").await;
    inserted.expect("a row");
    stop(database).await;
    let (over, program) = (options.clone(), program.to_string().into_bytes());
    let create = move || DatabaseHandle::create(over, program, HostKind::Wasm).is_err();
    let is_refused = tokio::task::spawn_blocking(create).await;
    assert!(is_refused.expect("no panic"));
    let database = open(options).await;
    let rows = sql(&database, OWNER, "SELECT id FROM t").await;
    assert_eq!(rows.expect("rows").0, serde_json::json!([[7]]));
    stop(database).await;
}
