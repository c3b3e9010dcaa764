//! PostgreSQL's protocol as a driver speaks it, and as bytes by hand (06 §6, 08 §19).

use std::time::Duration;

use crate::common::postgres::{
    answers, by_hand, code, connect, ended, named, send, start, start_with,
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_postgres::types::Type;
use tokio_postgres::SimpleQueryMessage;

#[tokio::test(flavor = "multi_thread")]
async fn logging_in() {
    let (server, address, user) = start().await;
    named(&server, &user, "bank").await;
    assert!(connect(address, "bank", &user.token).await.is_ok());
    let refused = connect(address, "bank", "nonsense")
        .await
        .expect_err("no token");
    assert_eq!(code(&refused), "28P01");
    let text = refused.as_db_error().expect("an answer").message();
    assert_eq!(text, "Invalid token: InvalidToken");
    let unknown = connect(address, "nowhere", &user.token)
        .await
        .expect_err("no database");
    assert_eq!(code(&unknown), "3D000");
    let text = unknown.as_db_error().expect("an answer").message();
    assert_eq!(text, "database \"nowhere\" does not exist");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn simple_queries() {
    let (server, address, user) = start().await;
    named(&server, &user, "bank").await;
    let client = connect(address, "bank", &user.token).await.expect("let in");
    let changed = client
        .simple_query("INSERT INTO person VALUES (1, 'Ann'), (2, 'Bob')")
        .await;
    assert!(changed.is_ok(), "{changed:?}");
    let rows = client
        .simple_query("SELECT * FROM person WHERE id = 2")
        .await
        .expect("rows");
    let [SimpleQueryMessage::RowDescription(columns), SimpleQueryMessage::Row(row), SimpleQueryMessage::CommandComplete(1)] =
        &rows[..]
    else {
        panic!("{rows:?}");
    };
    assert_eq!(columns.len(), 2);
    assert_eq!((row.get("id"), row.get("name")), (Some("2"), Some("Bob")));
    let empty = client.simple_query(" ; ").await.expect("nothing");
    assert!(empty.is_empty() || matches!(empty[..], [SimpleQueryMessage::CommandComplete(0)]));
    for (text, state) in [
        ("SELECT * FROM nothing", "42P01"),
        ("SELECT x FROM person", "42703"),
        ("SELEC", "42601"),
        ("INSERT INTO person VALUES (1, 'x')", "23505"),
        ("SELECT id FROM person; SELECT id FROM person", "42601"),
        ("COPY person FROM STDIN", "0A000"),
        ("SELECT * FROM pg_catalog.pg_proc", "0A000"),
        ("SELECT * FROM pg_nothing", "42P01"),
    ] {
        let error = client.simple_query(text).await.expect_err(text);
        assert_eq!(code(&error), state, "{text}: {error:?}");
    }
    let error = client
        .simple_query("SELECT * FROM nothing")
        .await
        .expect_err("no table");
    let message = error.as_db_error().expect("an answer").message();
    assert_eq!(
        message,
        "(Sql) no such table: `nothing`. If the table exists, it may be marked private."
    );
    // A stranger is no owner.
    let stranger = server.user().await;
    let other = connect(address, "bank", &stranger.token)
        .await
        .expect("let in");
    let error = other
        .simple_query("DELETE FROM person")
        .await
        .expect_err("no owner");
    assert_eq!(code(&error), "42501");
    let error = other
        .simple_query("SELECT * FROM secret")
        .await
        .expect_err("private");
    assert_eq!(code(&error), "42P01");
    assert!(client.simple_query("SELECT * FROM secret").await.is_ok());
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn prepared_statements() {
    let (server, address, user) = start().await;
    named(&server, &user, "bank").await;
    let client = connect(address, "bank", &user.token).await.expect("let in");
    let insert = client
        .prepare("INSERT INTO person VALUES ($1, $2)")
        .await
        .expect("prepared");
    assert_eq!(insert.params(), [Type::INT8, Type::TEXT]);
    assert!(insert.columns().is_empty());
    for id in 0..10_i64 {
        let name = format!("O'Neil {id}; DROP TABLE person; --");
        assert_eq!(
            client
                .execute(&insert, &[&id, &name])
                .await
                .expect("inserted"),
            1
        );
    }
    let select = client
        .prepare("SELECT id, name FROM person WHERE id = $1 OR name = $2")
        .await
        .expect("prepared");
    let types: Vec<_> = select
        .columns()
        .iter()
        .map(|column| column.type_().clone())
        .collect();
    assert_eq!(types, [Type::INT8, Type::VARCHAR]);
    let rows = client
        .query(&select, &[&3_i64, &"O'Neil 7; DROP TABLE person; --"])
        .await
        .expect("rows");
    let mut found: Vec<(i64, String)> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
    found.sort();
    assert_eq!(found[0], (3, "O'Neil 3; DROP TABLE person; --".to_owned()));
    assert_eq!(found.len(), 2);
    assert_eq!(
        client
            .execute("UPDATE person SET name = $1 WHERE id > $2", &[&"x", &4_i64])
            .await
            .expect("updated"),
        5
    );
    assert_eq!(
        client
            .execute("DELETE FROM person WHERE name = $1", &[&"x"])
            .await
            .expect("deleted"),
        5
    );
    let error = client
        .query("SELECT * FROM person WHERE id = $1", &[&-1_i64])
        .await
        .expect_err("no U32");
    assert_eq!(code(&error), "22P02");
    let error = client
        .query("SELECT * FROM person WHERE name = $1", &[&None::<String>])
        .await
        .expect_err("NULL");
    assert_eq!(code(&error), "22004");
    let error = client
        .prepare("SELECT * FROM person WHERE y = $1")
        .await
        .expect_err("no column");
    assert_eq!(code(&error), "42703");
    // Row by row, and the session goes on after errors.
    let count = client
        .query_one("SELECT COUNT(*) AS n FROM person", &[])
        .await;
    let count = count.expect("a row");
    assert!(count.try_get::<_, i64>("n").is_ok(), "{count:?}");
    for _ in 0..300 {
        let limited = client
            .query("SELECT id FROM person LIMIT $1", &[&2_i64])
            .await
            .expect("rows");
        assert_eq!(limited.len(), 2);
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_are_fetched_in_parts() {
    let (server, address, user) = start().await;
    named(&server, &user, "bank").await;
    let mut client = connect(address, "bank", &user.token).await.expect("let in");
    for start in (0..1000).step_by(500) {
        let rows: Vec<_> = (start..start + 500)
            .map(|id| format!("({id}, 'n')"))
            .collect();
        client
            .simple_query(&format!("INSERT INTO person VALUES {}", rows.join(",")))
            .await
            .expect("inserted");
    }
    let transaction = client.transaction().await.expect("a block");
    let portal = transaction
        .bind("SELECT id FROM person", &[])
        .await
        .expect("bound");
    let mut seen = 0;
    for expected in [300, 300, 300, 100] {
        let rows = transaction.query_portal(&portal, 300).await.expect("rows");
        assert_eq!(rows.len(), expected);
        seen += rows.len();
    }
    assert_eq!(seen, 1000);
    transaction.commit().await.expect("ended");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn transaction_blocks_are_kept_or_not() {
    let (server, address, user) = start().await;
    named(&server, &user, "bank").await;
    let mut client = connect(address, "bank", &user.token).await.expect("let in");
    let transaction = client.transaction().await.expect("a block");
    assert!(transaction.query("SELECT * FROM person", &[]).await.is_ok());
    let inserted = transaction
        .execute("INSERT INTO person VALUES (1, 'x')", &[])
        .await;
    assert_eq!(inserted.expect("inserted"), 1);
    let seen = transaction.query("SELECT * FROM person", &[]).await;
    assert_eq!(seen.expect("rows").len(), 1);
    let error = transaction
        .query("SELECT * FROM nothing", &[])
        .await
        .expect_err("refused");
    assert_eq!(code(&error), "42P01");
    let error = transaction
        .query("SELECT * FROM person", &[])
        .await
        .expect_err("aborted");
    assert_eq!(code(&error), "25P02");
    transaction.rollback().await.expect("ended");
    assert!(client
        .query("SELECT * FROM person", &[])
        .await
        .expect("rows")
        .is_empty());
    assert_eq!(
        client
            .execute("INSERT INTO person VALUES (1, 'x')", &[])
            .await
            .expect("outside"),
        1
    );
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_drivers_ask_first() {
    let (server, address, user) = start().await;
    named(&server, &user, "bank").await;
    let client = connect(address, "bank", &user.token).await.expect("let in");
    for text in [
        "SET extra_float_digits = 3",
        "SET application_name = 'tests'",
        "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY",
        "SHOW TRANSACTION ISOLATION LEVEL",
        "SELECT 1",
        "SELECT current_schema(), current_database()",
        "DISCARD ALL",
    ] {
        let done = client.simple_query(text).await;
        assert!(done.is_ok(), "{text}: {done:?}");
    }
    let version: String = client
        .query_one("SELECT version()", &[])
        .await
        .expect("a row")
        .get(0);
    assert!(
        version.starts_with("PostgreSQL 15.0 (spacetime"),
        "{version}"
    );
    let tables = client
        .query("SELECT table_name FROM information_schema.tables WHERE table_schema = $1 AND table_type IN ('BASE TABLE', 'VIEW') ORDER BY table_name", &[&"public"])
        .await
        .expect("tables");
    let names: Vec<String> = tables.iter().map(|row| row.get(0)).collect();
    assert_eq!(names, ["person", "secret", "typed"]);
    let columns = client
        .query("SELECT column_name, data_type, ordinal_position FROM information_schema.columns WHERE table_name = 'person'", &[])
        .await
        .expect("columns");
    let found: Vec<(String, String, i32)> = columns
        .iter()
        .map(|row| (row.get(0), row.get(1), row.get(2)))
        .collect();
    assert_eq!(
        found,
        [
            ("id".to_owned(), "bigint".to_owned(), 1),
            ("name".to_owned(), "character varying".to_owned(), 2),
        ]
    );
    // Others see what they may read.
    let stranger = server.user().await;
    let other = connect(address, "bank", &stranger.token)
        .await
        .expect("let in");
    let rows = other
        .query("SELECT tablename FROM pg_tables", &[])
        .await
        .expect("tables");
    assert_eq!(rows.len(), 2);
    assert_eq!(
        client
            .simple_query("SET row_limit = 0")
            .await
            .map(|_| ())
            .map_err(|e| e.to_string()),
        Ok(())
    );
    assert!(
        other.simple_query("SELECT * FROM person").await.is_ok(),
        "it is empty"
    );
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn strangers_are_held_to_bounds() {
    let (server, address, user) =
        start_with("[limits]\npostgres-login-time-max = \"300ms\"\nbody-timeout = \"300ms\"").await;
    named(&server, &user, "bank").await;
    // Says nothing; says too much; says no password; wants encryption for ever.
    let mut silent = TcpStream::connect(address).await.expect("connected");
    assert!(ended(&mut silent).await.is_empty());
    let mut long = TcpStream::connect(address).await.expect("connected");
    long.write_all(&u32::MAX.to_be_bytes()).await.expect("sent");
    assert!(ended(&mut long).await.is_empty());
    let mut startup = 196_608_u32.to_be_bytes().to_vec();
    startup.extend(b"user\0u\0database\0bank\0\0");
    let mut waiting = TcpStream::connect(address).await.expect("connected");
    send(&mut waiting, None, &startup).await;
    assert_eq!(ended(&mut waiting).await, b"R\0\0\0\x08\0\0\0\x03");
    let mut encrypting = TcpStream::connect(address).await.expect("connected");
    for _ in 0..3 {
        send(&mut encrypting, None, &80_877_103_u32.to_be_bytes()).await;
    }
    assert_eq!(ended(&mut encrypting).await, b"NN");
    let mut nameless = TcpStream::connect(address).await.expect("connected");
    send(&mut nameless, None, b"\0\x03\0\0user\0u\0\0").await;
    let answer = String::from_utf8_lossy(&ended(&mut nameless).await).into_owned();
    assert!(answer.contains("Database name is required"), "{answer}");
    // A message that begins and does not end, one that is too long, one that is not known.
    for message in [
        &b"Q\0\0\0\x10SELECT"[..],
        b"Q\x7f\xff\xff\xff",
        b"y\0\0\0\x04",
        b"B\0\0\0\x05\0",
    ] {
        let mut stream = TcpStream::connect(address).await.expect("connected");
        send(&mut stream, None, &startup).await;
        send(
            &mut stream,
            Some(b'p'),
            format!("{}\0", user.token).as_bytes(),
        )
        .await;
        stream.write_all(message).await.expect("sent");
        let answer = ended(&mut stream).await;
        assert!(answer.starts_with(b"R\0\0\0\x08\0\0\0\x03R"), "{answer:?}");
    }
    let good = connect(address, "bank", &user.token)
        .await
        .expect("others go on");
    assert!(good.simple_query("SELECT 1").await.is_ok());
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn long_statements_are_refused_before_they_are_read() {
    let (server, address, user) = start().await;
    named(&server, &user, "bank").await;
    let client = connect(address, "bank", &user.token).await.expect("let in");
    let qualified = format!("SELECT {}version()", "pg_catalog.".repeat(150_000));
    let cases = format!("SELECT {}x FROM pg_class", "case ".repeat(300_000));
    let open = format!("SELECT * FROM pg_class WHERE {}", "in (".repeat(400_000));
    for text in [&qualified, &cases, &open] {
        let error = client.simple_query(text).await.expect_err("too long");
        assert_eq!(code(&error), "54000", "{error:?}");
        let error = client.prepare(text).await.expect_err("too long");
        assert_eq!(code(&error), "54000", "{error:?}");
    }
    // As long as may be.
    for (text, state) in [
        (format!("SELECT {}", "pg_catalog.".repeat(4_500)), "0A000"),
        (
            format!("SELECT * FROM pg_class WHERE {}", "in (".repeat(12_000)),
            "54000",
        ),
        (
            format!(
                "SELECT * FROM pg_class WHERE {} IN (1{})",
                "a".repeat(20_000),
                ",1".repeat(10_000)
            ),
            "54000",
        ),
        (
            "SELECT * FROM pg_class WHERE é IN (1) IN (2)".to_owned(),
            "42703",
        ),
        (format!("SELECT 1{}", ",1".repeat(20_000)), "54000"),
    ] {
        let error = client.simple_query(&text).await.expect_err("refused");
        assert_eq!(code(&error), state, "{error:?}");
    }
    // A value in many places.
    let many = vec!["name = $1"; 1_000].join(" OR ");
    let many = format!("SELECT * FROM person WHERE {many}");
    let many = client.prepare(&many).await.expect("prepared");
    assert!(client.query(&many, &[&"x"]).await.is_ok());
    for length in [40_000, 60_000] {
        let error = client.query(&many, &[&"x".repeat(length)]).await;
        assert_eq!(code(&error.expect_err("too long")), "54000");
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_are_sent_without_synchronising() {
    let (server, address, user) = start().await;
    named(&server, &user, "bank").await;
    let mut stream = by_hand(address, &user.token).await;
    send(&mut stream, Some(b'P'), b"\0SELECT 1\0\0\0").await;
    for _ in 0..10_000 {
        send(&mut stream, Some(b'D'), b"S\0").await;
    }
    let mut first = vec![0; 100_000];
    let read = tokio::time::timeout(Duration::from_secs(20), stream.read_exact(&mut first));
    assert!(read.await.expect("answers come").is_ok());
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_portal_runs_its_statement_once() {
    let (server, address, user) = start().await;
    named(&server, &user, "bank").await;
    let mut stream = by_hand(address, &user.token).await;
    let bound = b"\0\0\0\0\0\0\0\0";
    let execute = b"\0\0\0\0\0";
    send(
        &mut stream,
        Some(b'P'),
        b"\0INSERT INTO person VALUES (1, 'a')\0\0\0",
    )
    .await;
    send(&mut stream, Some(b'B'), bound).await;
    send(&mut stream, Some(b'E'), execute).await;
    send(&mut stream, Some(b'E'), execute).await;
    send(&mut stream, Some(b'S'), b"").await;
    let found = answers(&mut stream).await;
    let kinds: Vec<_> = found.iter().map(|(kind, _)| char::from(*kind)).collect();
    assert_eq!(kinds, ['1', '2', 'C', 'E'], "{found:?}");
    assert!(found[3].1.contains("C55000"), "{found:?}");
    send(&mut stream, Some(b'P'), b"\0SELECT id FROM person\0\0\0").await;
    send(&mut stream, Some(b'B'), bound).await;
    send(&mut stream, Some(b'E'), execute).await;
    send(&mut stream, Some(b'E'), execute).await;
    send(&mut stream, Some(b'S'), b"").await;
    let found = answers(&mut stream).await;
    let kinds: Vec<_> = found.iter().map(|(kind, _)| char::from(*kind)).collect();
    assert_eq!(kinds, ['1', '2', 'D', 'C', 'C'], "{found:?}");
    assert_eq!(found[4].1, "SELECT 0\0");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn views_are_given_arguments() {
    let (server, address, user) = start().await;
    let published = server
        .request("PUT", "/v1/database/people")
        .bearer_auth(&user.token)
        .body("module named");
    let published = published.send().await.expect("a response");
    assert!(published.status().is_success(), "{}", published.status());
    let client = connect(address, "people", &user.token)
        .await
        .expect("let in");
    let changed = "INSERT INTO person VALUES (1, 'Ann'), (2, 'O''Neil'), (3, 'Ann')";
    client.simple_query(changed).await.expect("inserted");
    let rows = client.query("SELECT * FROM named('Ann')", &[]).await;
    let mut ids: Vec<i64> = rows.expect("rows").iter().map(|row| row.get(0)).collect();
    ids.sort();
    assert_eq!(ids, [1, 3]);
    let prepared = client
        .prepare("SELECT n.* FROM public.named($1) AS n")
        .await;
    let prepared = prepared.expect("prepared");
    assert_eq!(prepared.params(), [Type::TEXT]);
    for (name, expected) in [("O'Neil", vec![2]), ("Zoe", vec![])] {
        let rows = client.query(&prepared, &[&name]).await.expect("rows");
        let ids: Vec<i64> = rows.iter().map(|row| row.get(0)).collect();
        assert_eq!(ids, expected, "{name}");
    }
    for (text, expected) in [
        (
            "SELECT * FROM named",
            "View `named` takes 1 argument(s), but 0 were given",
        ),
        (
            "SELECT id FROM named('Ann')",
            "View `named` takes arguments, so it can only be queried as `SELECT * FROM named(...)`",
        ),
        (
            "SELECT * FROM person('Ann')",
            "`person` is a table, not a view; it does not take arguments",
        ),
    ] {
        let refused = client.query(text, &[]).await.expect_err(text);
        let refused = refused.as_db_error().expect("an answer").message();
        assert!(refused.contains(expected), "{text}: {refused}");
    }
    server.stop().await;
}
