//! Sessions of PostgreSQL's protocol that end, that are cancelled, and that take much: COPY, long answers, expired tokens.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::common;
use crate::common::postgres::{
    answers, by_hand, code, connect, named, psql, send, start, start_with,
};
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_postgres::{Client, NoTls};

/// So many rows with the same long name: joined with themselves, they are many megabytes.
const ROWS: usize = 300;

async fn fill(client: &Client) {
    let name = "n".repeat(100);
    let rows: Vec<_> = (0..ROWS).map(|id| format!("({id}, '{name}')")).collect();
    let text = format!("INSERT INTO person VALUES {}", rows.join(","));
    client.simple_query(&text).await.expect("inserted");
}

const LONG: &str = "SELECT a.id, a.name FROM person a JOIN person b ON a.name = b.name";

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_is_lines() {
    let (server, address, user) = start().await;
    named(&server, &user, "bank").await;
    let client = connect(address, "bank", &user.token).await.expect("let in");
    client
        .simple_query("INSERT INTO person VALUES (1, 'a,b'), (2, 'c\td')")
        .await
        .expect("inserted");
    let mut stream = by_hand(address, &user.token).await;
    for (text, lines) in [
        (
            "COPY (SELECT * FROM person WHERE id = 1) TO STDOUT",
            "1\ta,b\n",
        ),
        (
            "COPY person TO STDOUT WITH (FORMAT csv, HEADER)",
            "id,name\n1,\"a,b\"\n2,c\td\n",
        ),
        ("COPY person (name) TO STDOUT", "a,b\nc\\td\n"),
        (
            "COPY (SELECT relname FROM pg_class WHERE relkind = 'r' ORDER BY 1) TO STDOUT CSV",
            "person\nsecret\ntyped\n",
        ),
    ] {
        send(&mut stream, Some(b'Q'), format!("{text}\0").as_bytes()).await;
        let found = answers(&mut stream).await;
        let kinds: Vec<char> = found.iter().map(|(kind, _)| char::from(*kind)).collect();
        assert!(
            kinds.starts_with(&['H']) && kinds.ends_with(&['c', 'C']),
            "{found:?}"
        );
        let copied: String = found
            .iter()
            .filter(|(kind, _)| *kind == b'd')
            .map(|(_, line)| line.as_str())
            .collect();
        assert_eq!(copied, lines, "{text}");
        let rows = lines.lines().count() - usize::from(text.contains("HEADER"));
        assert_eq!(found.last().expect("a tag").1, format!("COPY {rows}\0"));
    }
    for (text, state) in [
        ("COPY person FROM STDIN", "0A000"),
        ("COPY (DELETE FROM person) TO STDOUT", "0A000"),
        ("COPY (SELECT * FROM nothing) TO STDOUT", "42P01"),
        ("COPY secrets TO STDOUT", "42P01"),
    ] {
        let error = client.simple_query(text).await.expect_err(text);
        assert_eq!(code(&error), state, "{text}");
    }
    // A stranger copies what he may read.
    let stranger = server.user().await;
    let other = connect(address, "bank", &stranger.token)
        .await
        .expect("let in");
    let error = other.simple_query("COPY secret TO STDOUT").await;
    assert_eq!(code(&error.expect_err("private")), "42P01");
    let copy = "\\copy (SELECT name FROM person WHERE id = 1) TO STDOUT CSV";
    if let Some((out, err)) = psql(address, &user.token, &[copy]).await {
        assert_eq!(out, "\"a,b\"\n", "{err}");
    }
    server.stop().await;
}

/// Reads messages until one of a kind, which comes back with the number of those before it.
async fn until(stream: &mut TcpStream, wanted: u8) -> (usize, Vec<u8>) {
    let read = async {
        let mut count = 0;
        loop {
            let kind = stream.read_u8().await.expect("a message");
            let length = stream.read_u32().await.expect("a length");
            let mut body = vec![0; length as usize - 4];
            stream.read_exact(&mut body).await.expect("a body");
            if kind == wanted {
                return (count, body);
            }
            assert_ne!(kind, b'Z', "it is ready without what is waited for");
            count += 1;
        }
    };
    let read = tokio::time::timeout(Duration::from_secs(30), read);
    read.await.expect("the server answers")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_is_cancelled_by_its_own_client_only() {
    let (server, address, user) = start().await;
    named(&server, &user, "bank").await;
    let client = connect(address, "bank", &user.token).await.expect("let in");
    fill(&client).await;
    let mut startup = 196_608_u32.to_be_bytes().to_vec();
    startup.extend(b"user\0u\0database\0bank\0\0");
    let mut stream = TcpStream::connect(address).await.expect("connected");
    send(&mut stream, None, &startup).await;
    send(
        &mut stream,
        Some(b'p'),
        format!("{}\0", user.token).as_bytes(),
    )
    .await;
    let (_, key) = until(&mut stream, b'K').await;
    assert!(key.len() == 8 && key.iter().any(|byte| *byte != 0));
    until(&mut stream, b'Z').await;
    // The client asks, and takes nothing: the server is in the middle of its answer.
    send(&mut stream, Some(b'Q'), format!("{LONG}\0").as_bytes()).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    let cancel = |key: Vec<u8>| async move {
        let mut stream = TcpStream::connect(address).await.expect("connected");
        let mut body = 80_877_102_u32.to_be_bytes().to_vec();
        body.extend(key);
        send(&mut stream, None, &body).await;
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        assert!(answer.is_empty(), "no client is told");
    };
    let mut wrong = key.clone();
    wrong[7] ^= 1;
    cancel(wrong).await;
    cancel(key.clone()).await;
    let (rows, error) = until(&mut stream, b'E').await;
    let error = String::from_utf8_lossy(&error).into_owned();
    assert!(error.contains("C57014") && rows < ROWS * ROWS, "{error}");
    until(&mut stream, b'Z').await;
    // What comes behind it is not cancelled.
    send(
        &mut stream,
        Some(b'Q'),
        b"SELECT id FROM person WHERE id = 7\0",
    )
    .await;
    let found = answers(&mut stream).await;
    assert_eq!(found.last().expect("a tag").1, "SELECT 1\0");
    // With the key of another, nothing is: all rows come.
    let mut wrong = key;
    wrong[0] ^= 1;
    send(&mut stream, Some(b'Q'), format!("{LONG}\0").as_bytes()).await;
    cancel(wrong).await;
    let (rows, _) = until(&mut stream, b'C').await;
    assert_eq!(rows, 1 + ROWS * ROWS);
    // The driver's way.
    assert!(client.cancel_token().cancel_query(NoTls).await.is_ok());
    assert!(client.simple_query("SELECT 1").await.is_ok());
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_ends_with_its_token() {
    let (server, address, user) = start().await;
    named(&server, &user, "bank").await;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("clock");
    let now = now.as_secs() as i64;
    // Tokens are good for a minute longer than they say.
    let claims = json!({
        "iss": "localhost", "sub": "anyone", "aud": ["spacetimedb"], "iat": now - 100, "exp": now - 60 + 4,
    });
    let pem = std::fs::read(server.key_directory().join("id_ecdsa")).expect("private key");
    let key = EncodingKey::from_ec_pem(&pem).expect("key");
    let token = jsonwebtoken::encode(&Header::new(Algorithm::ES256), &claims, &key);
    let token = token.expect("token");
    let client = connect(address, "bank", &token).await.expect("let in");
    let prepared = client
        .prepare("SELECT id FROM person")
        .await
        .expect("prepared");
    assert!(client.query(&prepared, &[]).await.is_ok());
    // One that will say nothing, and one in the middle of an answer.
    let mut silent = by_hand(address, &token).await;
    let mut reading = by_hand(address, &token).await;
    let statement = b"\0SELECT oid FROM pg_type\0\0\0";
    send(&mut reading, Some(b'P'), statement).await;
    send(&mut reading, Some(b'B'), b"\0\0\0\0\0\0\0\0").await;
    send(&mut reading, Some(b'E'), b"\0\0\0\0\x01").await;
    send(&mut reading, Some(b'H'), b"").await;
    until(&mut reading, b's').await;
    tokio::time::sleep(Duration::from_secs(6)).await;
    let error = client
        .query(&prepared, &[])
        .await
        .expect_err("it has ended");
    assert_eq!(code(&error), "28000", "{error:?}");
    let again = client.query(&prepared, &[]).await.expect_err("it is gone");
    assert!(again.is_closed(), "{again:?}");
    send(&mut silent, Some(b'Q'), b";\0").await;
    send(&mut reading, Some(b'E'), b"\0\0\0\0\x01").await;
    for stream in [&mut silent, &mut reading] {
        let (before, error) = until(stream, b'E').await;
        let error = String::from_utf8_lossy(&error).into_owned();
        assert!(before == 0 && error.contains("C28000"), "{error}");
        assert!(common::postgres::ended(stream).await.len() < 10);
    }
    server.stop().await;
}

/// A request to cancel means the statement that runs, and no later one; a call of a function is refused, and the session goes on.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_goes_on_after_what_it_was_refused() {
    let (server, address, user) = start().await;
    named(&server, &user, "bank").await;
    let mut startup = 196_608_u32.to_be_bytes().to_vec();
    startup.extend(b"user\0u\0database\0bank\0\0");
    let mut stream = TcpStream::connect(address).await.expect("connected");
    send(&mut stream, None, &startup).await;
    send(
        &mut stream,
        Some(b'p'),
        format!("{}\0", user.token).as_bytes(),
    )
    .await;
    let (_, key) = until(&mut stream, b'K').await;
    until(&mut stream, b'Z').await;
    let mut body = 80_877_102_u32.to_be_bytes().to_vec();
    body.extend(key);
    let mut cancel = TcpStream::connect(address).await.expect("connected");
    send(&mut cancel, None, &body).await;
    assert!(common::postgres::ended(&mut cancel).await.is_empty());
    for question in ["SELECT relname FROM pg_class", "SELECT id FROM person"] {
        let statement = format!("\0{question}\0\0\0");
        send(&mut stream, Some(b'P'), statement.as_bytes()).await;
        send(&mut stream, Some(b'S'), b"").await;
        let found = answers(&mut stream).await;
        assert_eq!(found, [(b'1', String::new())], "{question}");
    }
    send(&mut stream, Some(b'F'), &[0; 10]).await;
    let found = answers(&mut stream).await;
    assert!(
        matches!(&found[..], [(b'E', text)] if text.contains("C0A000")),
        "{found:?}"
    );
    send(&mut stream, Some(b'Q'), b"SELECT 1\0").await;
    let found = answers(&mut stream).await;
    assert_eq!(found.last().expect("a tag").1, "SELECT 1\0");
    server.stop().await;
}

/// What several portals of a session hold together is bounded, and others go on.
#[tokio::test(flavor = "multi_thread")]
async fn rows_that_no_client_fetches_are_bounded_by_session() {
    let (server, address, user) = start_with("[limits]\nclient-bytes-max = 16777216").await;
    named(&server, &user, "bank").await;
    let client = connect(address, "bank", &user.token).await.expect("let in");
    fill(&client).await;
    let mut stream = by_hand(address, &user.token).await;
    let mut held = 0;
    for portal in 0..8 {
        let name = format!("p{portal}");
        send(
            &mut stream,
            Some(b'P'),
            format!("\0{LONG}\0\0\0").as_bytes(),
        )
        .await;
        send(
            &mut stream,
            Some(b'B'),
            format!("{name}\0\0\0\0\0\0\0\0").as_bytes(),
        )
        .await;
        send(
            &mut stream,
            Some(b'E'),
            format!("{name}\0\0\0\0\x01").as_bytes(),
        )
        .await;
        send(&mut stream, Some(b'H'), b"").await;
        let mut kinds = Vec::new();
        // Parsed, bound, a row and that there are more; or an error.
        while !kinds.ends_with(b"s") && !kinds.ends_with(b"E") {
            let kind = stream.read_u8().await.expect("a message");
            let length = stream.read_u32().await.expect("a length");
            let mut body = vec![0; length as usize - 4];
            stream.read_exact(&mut body).await.expect("a body");
            if kind == b'E' {
                let text = String::from_utf8_lossy(&body).into_owned();
                assert!(text.contains("[LC0706]"), "{text}");
            }
            kinds.push(kind);
        }
        if kinds.ends_with(b"E") {
            break;
        }
        held += 1;
    }
    assert!(
        (1..8).contains(&held),
        "{held} answers of 11 MB are held in 16 MiB"
    );
    assert!(client.simple_query("SELECT * FROM person").await.is_ok());
    let _ = stream.shutdown().await;
    server.stop().await;
}

/// What a session has prepared, and a message that it has half sent, count as the client's like rows that it does not take.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_session_keeps_is_in_its_account() {
    let (server, address, user) = start_with("[limits]\nclient-bytes-max = 1048576").await;
    named(&server, &user, "bank").await;
    let mut stream = by_hand(address, &user.token).await;
    let long = "x".repeat(40_000);
    let mut prepared = 0;
    for number in 0..60 {
        let text = format!("s{number}\0SELECT * FROM person WHERE name = '{long}'\0\0\0");
        send(&mut stream, Some(b'P'), text.as_bytes()).await;
        send(&mut stream, Some(b'S'), b"").await;
        let found = answers(&mut stream).await;
        match found.first() {
            Some((b'1', _)) => prepared += 1,
            other => {
                let refused = format!("{other:?}");
                assert!(refused.contains("[LC0706]"), "{refused}");
                break;
            }
        }
    }
    assert!(
        (15..30).contains(&prepared),
        "{prepared} texts of 40 kB in 1 MiB"
    );
    // What is closed makes room.
    send(&mut stream, Some(b'Q'), b"DEALLOCATE ALL\0").await;
    answers(&mut stream).await;
    let text = format!("again\0SELECT * FROM person WHERE name = '{long}'\0\0\0");
    send(&mut stream, Some(b'P'), text.as_bytes()).await;
    send(&mut stream, Some(b'S'), b"").await;
    assert_eq!(
        answers(&mut stream).await.first().map(|found| found.0),
        Some(b'1')
    );
    // A message that is too long for what is left is passed over, and the session goes on.
    let body = vec![b'x'; 1_500_000];
    send(&mut stream, Some(b'P'), &body).await;
    send(&mut stream, Some(b'S'), b"").await;
    let refused = answers(&mut stream).await;
    assert!(
        matches!(&refused[..], [(b'E', text)] if text.contains("[LC0706]")),
        "{refused:?}"
    );
    send(&mut stream, Some(b'Q'), &[&body[..], &[0]].concat()).await;
    let refused = answers(&mut stream).await;
    assert!(
        matches!(&refused[..], [(b'E', text)] if text.contains("[LC0706]")),
        "{refused:?}"
    );
    send(&mut stream, Some(b'Q'), b"SELECT id FROM person\0").await;
    let found = answers(&mut stream).await;
    assert_eq!(found.last().expect("a tag").1, "SELECT 0\0");
    server.stop().await;
}
