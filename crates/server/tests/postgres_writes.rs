//! Writes as drivers and ORMs write them: the same statements answer as those of PostgreSQL do (08 §19).

use std::net::SocketAddr;

use crate::common::postgres::{code, connect, send, start};
use crate::common::{TestServer, User};
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;
use tokio_postgres::Client;

/// What PostgreSQL 15 answers, in extended queries: rows in the order of their texts, then the tag or the SQLSTATE.
const STATEMENTS: &str = include_str!("postgres_writes.sql");

/// The tables of the statements in PostgreSQL.
const TABLES: &str = "CREATE TABLE item (id bigserial PRIMARY KEY, code varchar NOT NULL UNIQUE, note varchar, amount int NOT NULL DEFAULT 7, paid bool NOT NULL); CREATE TABLE spare (id bigint PRIMARY KEY, name varchar NOT NULL)";

async fn bank() -> (TestServer, SocketAddr, User) {
    let (server, address, user) = start().await;
    let published = server
        .request("PUT", "/v1/database/bank")
        .bearer_auth(&user.token)
        .body("module items table:spare");
    let response = published.send().await.expect("a response");
    assert!(response.status().is_success(), "{}", response.status());
    (server, address, user)
}

/// A session, ready for messages. PostgreSQL asks for no password where it trusts.
async fn session(address: &str, user: &str, database: &str, password: &str) -> TcpStream {
    let mut startup = 196_608_u32.to_be_bytes().to_vec();
    startup.extend(format!("user\0{user}\0database\0{database}\0\0").as_bytes());
    let mut stream = TcpStream::connect(address).await.expect("connected");
    send(&mut stream, None, &startup).await;
    loop {
        match message(&mut stream).await {
            (b'R', body) if body == [0, 0, 0, 3] => {
                send(&mut stream, Some(b'p'), format!("{password}\0").as_bytes()).await;
            }
            (b'E', body) => panic!("{}", String::from_utf8_lossy(&body)),
            (b'Z', _) => return stream,
            _ => {}
        }
    }
}

async fn message(stream: &mut TcpStream) -> (u8, Vec<u8>) {
    let kind = stream.read_u8().await.expect("a message");
    let length = stream.read_u32().await.expect("a length");
    let mut body = vec![0; length as usize - 4];
    stream.read_exact(&mut body).await.expect("a body");
    (kind, body)
}

/// The values of a row, with `|` between them.
fn row(mut body: &[u8]) -> String {
    let mut take = |count: usize| {
        let (taken, rest) = body.split_at(count);
        body = rest;
        taken.to_vec()
    };
    let count = u16::from_be_bytes(take(2).try_into().expect("two bytes"));
    let mut value = || match i32::from_be_bytes(take(4).try_into().expect("four bytes")) {
        -1 => "NULL".to_owned(),
        length => String::from_utf8(take(length as usize)).expect("UTF-8"),
    };
    (0..count).map(|_| value()).collect::<Vec<_>>().join("|")
}

/// What a statement answers, and the text of its error.
async fn ask(stream: &mut TcpStream, statement: &str) -> (String, String) {
    send(
        stream,
        Some(b'P'),
        format!("\0{statement}\0\0\0").as_bytes(),
    )
    .await;
    send(stream, Some(b'B'), &[0; 8]).await;
    send(stream, Some(b'E'), &[0; 5]).await;
    send(stream, Some(b'S'), &[]).await;
    let (mut rows, mut end, mut text) = (Vec::new(), String::new(), String::new());
    loop {
        let (kind, body) = message(stream).await;
        match kind {
            b'D' => rows.push(row(&body)),
            b'C' => end = String::from_utf8_lossy(&body[..body.len() - 1]).into_owned(),
            b'E' => {
                text = String::from_utf8_lossy(&body).into_owned();
                let state = text.split('\0').find_map(|field| field.strip_prefix('C'));
                end = state.expect("a state").to_owned();
            }
            b'Z' => {
                rows.sort();
                rows.push(end);
                return (rows.join(" / "), text);
            }
            _ => {}
        }
    }
}

async fn answers_as_expected(stream: &mut TcpStream) {
    let mut wrong = Vec::new();
    for case in STATEMENTS.trim_end().split(";\n\n") {
        let (expected, statement) = case.split_once('\n').expect("an answer and a statement");
        let expected = expected.trim_start_matches("-- ");
        let statement = statement.trim_end_matches([';', '\n']);
        let (found, text) = ask(stream, statement).await;
        if found != expected {
            wrong.push(format!("{statement}\n  {expected}\n  {found} {text}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn statements_answer_as_those_of_postgresql() {
    let (server, address, user) = bank().await;
    let mut stream = session(&address.to_string(), "me", "bank", &user.token).await;
    answers_as_expected(&mut stream).await;
    server.stop().await;
}

/// The oracle: a server of PostgreSQL that trusts the user `postgres` and has an empty database of that name, by its address.
#[tokio::test(flavor = "multi_thread")]
async fn postgresql_answers_as_the_file_says() {
    let Ok(address) = std::env::var("LIGHTCONE_TEST_POSTGRES") else {
        eprintln!("SKIPPED: LIGHTCONE_TEST_POSTGRES says no address of a PostgreSQL");
        return;
    };
    let mut stream = session(&address, "postgres", "postgres", "").await;
    for table in TABLES.split("; ") {
        let (tag, text) = ask(&mut stream, table).await;
        assert_eq!(tag, "CREATE TABLE", "{text}");
    }
    answers_as_expected(&mut stream).await;
    let (tag, text) = ask(&mut stream, "DROP TABLE item, spare").await;
    assert_eq!(tag, "DROP TABLE", "{text}");
}

async fn codes(client: &Client) -> Vec<String> {
    let rows = client.query("SELECT code FROM item ORDER BY code", &[]);
    let rows = rows.await.expect("rows");
    rows.iter().map(|row| row.get(0)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn drivers_send_values_and_nulls() {
    let (server, address, user) = bank().await;
    let client = connect(address, "bank", &user.token).await.expect("let in");
    let insert = client
        .prepare("INSERT INTO item (code, note, amount, paid) VALUES ($1, $2, $3 + 1, $4) RETURNING amount, note || '' AS note, paid")
        .await
        .expect("prepared");
    let of = |note: Option<&'static str>, code: &'static str| {
        let (client, insert) = (&client, &insert);
        async move {
            let row = client
                .query_one(insert, &[&code, &note, &5_i32, &true])
                .await
                .expect("a row");
            assert_eq!(row.get::<_, i32>(0), 6);
            assert!(row.get::<_, bool>(2));
            row.get::<_, Option<String>>(1)
        }
    };
    assert_eq!(of(Some("it's; --"), "a").await.as_deref(), Some("it's; --"));
    assert_eq!(of(None, "b").await, None);
    let none = None::<String>;
    let error = client
        .execute("UPDATE item SET code = $1 WHERE code = $2", &[&none, &"a"])
        .await
        .expect_err("it may not be NULL");
    assert_eq!(code(&error), "23502");
    let updated = client
        .execute(
            "UPDATE item SET note = $1, amount = amount * $2 WHERE code IN ($3, $4)",
            &[&none, &2_i32, &"a", &"b"],
        )
        .await;
    assert_eq!(updated.expect("updated"), 2);
    let upsert = "INSERT INTO item (code, paid) VALUES ($1, FALSE) ON CONFLICT (code) DO UPDATE SET amount = item.amount + $2 RETURNING amount";
    let row = client.query_one(upsert, &[&"a", &30_i32]).await;
    assert_eq!(row.expect("a row").get::<_, i32>(0), 42);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn numbers_of_a_sequence_stay_those_that_were_answered() {
    let (server, address, user) = bank().await;
    let mut client = connect(address, "bank", &user.token).await.expect("let in");
    let other = connect(address, "bank", &user.token).await.expect("let in");
    let insert = "INSERT INTO item (code, paid) VALUES ($1, TRUE) RETURNING CAST(id AS bigint)";
    let block = client.transaction().await.expect("a block");
    let mut ids = Vec::new();
    for (nth, code) in ["a", "b", "c"].iter().enumerate() {
        let row = block.query_one(insert, &[code]).await.expect("a row");
        ids.push(row.get::<_, i64>(0));
        // Another takes numbers meanwhile, and rows of the block are not seen.
        let own = format!("other {nth}");
        let row = other.query_one(insert, &[&own]).await.expect("a row");
        ids.push(row.get::<_, i64>(0));
        assert_eq!(codes(&other).await.len(), nth + 1);
    }
    block.commit().await.expect("kept");
    let mut different = ids.clone();
    different.sort_unstable();
    different.dedup();
    assert_eq!(different.len(), 6);
    for (code, id) in [("a", ids[0]), ("b", ids[2]), ("c", ids[4])] {
        let query = "SELECT CAST(id AS bigint) FROM item WHERE code = $1";
        let row = other.query_one(query, &[&code]).await.expect("a row");
        assert_eq!(row.get::<_, i64>(0), id, "{code}");
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_block_that_rests_on_what_others_changed_is_not_kept() {
    let (server, address, user) = bank().await;
    let mut client = connect(address, "bank", &user.token).await.expect("let in");
    let other = connect(address, "bank", &user.token).await.expect("let in");
    let insert = "INSERT INTO item (code, paid) VALUES ('a', TRUE)";
    other.execute(insert, &[]).await.expect("inserted");
    let block = client.transaction().await.expect("a block");
    let add = "UPDATE item SET amount = amount + 1 WHERE code = 'a' RETURNING amount";
    assert_eq!(
        block
            .query_one(add, &[])
            .await
            .expect("a row")
            .get::<_, i32>(0),
        8
    );
    other.query_one(add, &[]).await.expect("a row");
    let error = block.commit().await.expect_err("it answered otherwise");
    assert_eq!(code(&error), "40001");
    // The session goes on, and what others change beside it is no hindrance.
    let block = client.transaction().await.expect("a block");
    assert_eq!(
        block
            .query_one(add, &[])
            .await
            .expect("a row")
            .get::<_, i32>(0),
        9
    );
    other
        .execute("INSERT INTO item (code, paid) VALUES ('b', TRUE)", &[])
        .await
        .expect("inserted");
    block.commit().await.expect("kept");
    // A key that another takes first is told at the end.
    let block = client.transaction().await.expect("a block");
    let insert = "INSERT INTO spare VALUES (1, 'x')";
    assert_eq!(block.execute(insert, &[]).await.expect("one"), 1);
    other
        .execute("INSERT INTO spare VALUES (1, 'y')", &[])
        .await
        .expect("inserted");
    let error = block.commit().await.expect_err("the key is taken");
    assert_eq!(code(&error), "23505");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_block_comes_in_one_message() {
    let (server, address, user) = bank().await;
    let client = connect(address, "bank", &user.token).await.expect("let in");
    let block =
        "BEGIN; INSERT INTO spare VALUES (1, 'a;b'); UPDATE spare SET name = name || ';'; COMMIT;";
    client.batch_execute(block).await.expect("kept");
    let row = client.query_one("SELECT name FROM spare", &[]).await;
    assert_eq!(row.expect("a row").get::<_, String>(0), "a;b;");
    let error = client
        .batch_execute("BEGIN; DELETE FROM spare; SELECT nothing FROM spare; COMMIT")
        .await
        .expect_err("no column");
    assert_eq!(code(&error), "42703");
    let error = client.batch_execute("SELECT 1").await.expect_err("aborted");
    assert_eq!(code(&error), "25P02");
    client.batch_execute("COMMIT").await.expect("ended");
    let count = client.query("SELECT name FROM spare", &[]).await;
    assert_eq!(count.expect("rows").len(), 1);
    server.stop().await;
}

async fn rows(client: &Client) -> usize {
    let rows = client.query("SELECT id FROM spare", &[]).await;
    rows.expect("rows").len()
}

/// What stands behind or before a semicolon is neither lost nor kept too early.
#[tokio::test(flavor = "multi_thread")]
async fn semicolons_end_no_block() {
    let (_server, address, user) = bank().await;
    let client = connect(address, "bank", &user.token).await.expect("let in");
    client.batch_execute("BEGIN").await.expect("begun");
    let early = client.batch_execute("; INSERT INTO spare VALUES (1, 'x')");
    let _ = early.await;
    client.batch_execute("ROLLBACK").await.expect("ended");
    assert_eq!(rows(&client).await, 0);

    let both = "COMMIT; INSERT INTO spare VALUES (1, 'x')";
    client.batch_execute("BEGIN").await.expect("begun");
    client.batch_execute(both).await.expect("both");
    assert_eq!(rows(&client).await, 1);
    let prepared = client.prepare(both).await.expect_err("two statements");
    assert_eq!(code(&prepared), "42601");

    client
        .batch_execute("BEGIN READ ONLY")
        .await
        .expect("begun");
    let written = client.batch_execute("DELETE FROM spare").await;
    assert_eq!(code(&written.expect_err("refused")), "25006");
    client.batch_execute("ROLLBACK").await.expect("ended");
    client.batch_execute("BEGIN").await.expect("begun");
    let chained = client.batch_execute("COMMIT AND CHAIN").await;
    assert_eq!(code(&chained.expect_err("refused")), "0A000");
    client.batch_execute("ROLLBACK").await.expect("ended");
    assert_eq!(rows(&client).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn blocks_have_bounds_and_rights() {
    let (server, address, user) = bank().await;
    let mut client = connect(address, "bank", &user.token).await.expect("let in");
    let block = client.transaction().await.expect("a block");
    for nth in 0..256 {
        let insert = format!("INSERT INTO spare VALUES ({nth}, 'x')");
        assert_eq!(block.execute(&insert, &[]).await.expect("inserted"), 1);
    }
    let error = block
        .execute("INSERT INTO spare VALUES (256, 'x')", &[])
        .await
        .expect_err("too many");
    assert_eq!(code(&error), "54000");
    block.rollback().await.expect("ended");
    let block = client.transaction().await.expect("a block");
    let long = "x".repeat(45_000);
    let mut refused = None;
    for nth in 0..30 {
        let insert = format!("INSERT INTO spare VALUES ({nth}, '{long}')");
        if let Err(error) = block.execute(&insert, &[]).await {
            refused = Some((nth, code(&error).to_owned()));
            break;
        }
    }
    assert_eq!(refused, Some((23, "54000".to_owned())));
    block.rollback().await.expect("ended");

    let stranger = server.user().await;
    let other = connect(address, "bank", &stranger.token)
        .await
        .expect("let in");
    for text in [
        "INSERT INTO spare VALUES (1, 'x') RETURNING id",
        "UPDATE spare SET name = name || 'x'",
        "DELETE FROM spare WHERE id = 1 RETURNING *",
        "INSERT INTO spare VALUES (1, 'x') ON CONFLICT DO NOTHING",
    ] {
        let error = other.query(text, &[]).await.expect_err("no rights");
        assert_eq!(code(&error), "42501", "{text}");
    }
    let error = client
        .query(
            "INSERT INTO st_table (table_id) VALUES (1) RETURNING *",
            &[],
        )
        .await
        .expect_err("a system table");
    assert_eq!(code(&error), "42809");
    server.stop().await;
}
