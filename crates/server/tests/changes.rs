//! Streams of the changes of a database (06 §5.13a).

use std::path::Path;
use std::time::Duration;

use crate::common::publishing::{by, call, created, publish};
use crate::common::{answer, config, header, json, TestServer, User};
use base64::engine::general_purpose::STANDARD as BASE64;
use base64::Engine as _;
use futures_util::{SinkExt as _, StreamExt as _};
use reqwest::Response;
use serde_json::{json, Value};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::{Error as WsError, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

/// One event, with its id and kind.
#[derive(Clone, Debug, PartialEq)]
struct Event {
    id: String,
    kind: String,
    data: Value,
}

/// A stream that is read event by event.
struct Stream {
    response: Response,
    text: String,
}

impl Stream {
    async fn open(server: &TestServer, user: &User, query: &str, last_id: Option<&str>) -> Stream {
        let path = format!("/v1/database/a/changes{query}");
        let mut request = server.request("GET", &path).bearer_auth(&user.token);
        if let Some(id) = last_id {
            request = request.header("last-event-id", id);
        }
        let response = request.send().await.expect("response");
        assert_eq!(response.status(), 200, "{query}");
        assert_eq!(header(&response, "content-type"), Some("text/event-stream"));
        let text = String::new();
        Stream { response, text }
    }

    /// The text up to the next empty line; None at the end.
    async fn block(&mut self) -> Option<String> {
        loop {
            if let Some((block, rest)) = self.text.split_once("\n\n") {
                let block = block.to_owned();
                self.text = rest.to_owned();
                return Some(block);
            }
            let chunk = timeout(Duration::from_secs(30), self.response.chunk()).await;
            let chunk = chunk.expect("in time").expect("a chunk");
            self.text += std::str::from_utf8(&chunk?).expect("UTF-8");
        }
    }

    async fn next(&mut self) -> Option<Event> {
        let block = self.block().await?;
        let field = |name: &str| {
            let mut lines = block.lines();
            let found = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
            found.unwrap_or_default().to_owned()
        };
        Some(Event {
            id: field("id"),
            kind: field("event"),
            data: json(&field("data")),
        })
    }

    async fn rest(mut self) -> Vec<Event> {
        let mut events = Vec::new();
        while let Some(event) = self.next().await {
            events.push(event);
        }
        events
    }
}

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

async fn websocket(server: &TestServer, user: &User, query: &str) -> Result<Socket, WsError> {
    let url = format!("ws://{}/v1/database/a/changes{query}", server.address);
    let mut request = url.into_client_request().expect("request");
    let token = format!("Bearer {}", user.token).parse().expect("header");
    request.headers_mut().insert("authorization", token);
    let connected = tokio_tungstenite::connect_async(request).await;
    connected.map(|(socket, _)| socket)
}

/// What is told next, or the code of the Close.
async fn told(socket: &mut Socket) -> Result<Value, u16> {
    loop {
        let next = timeout(Duration::from_secs(30), socket.next()).await;
        match next
            .expect("in time")
            .expect("a message")
            .expect("no error")
        {
            Message::Text(text) => return Ok(json(&text)),
            Message::Ping(_) => {}
            Message::Pong(payload) => return Ok(json!({ "pong": payload.to_vec() })),
            Message::Close(close) => return Err(close.expect("a code").code.into()),
            message => panic!("{message:?}"),
        }
    }
}

/// The status and body of an answer that is no WebSocket.
fn refusal(answer: Result<Socket, WsError>) -> (u16, String) {
    match answer.map(drop) {
        Err(WsError::Http(response)) => {
            let body = response.body().clone().unwrap_or_default();
            let body = String::from_utf8(body).expect("text");
            (response.status().as_u16(), body)
        }
        other => panic!("{other:?}"),
    }
}

struct Fixture {
    server: TestServer,
    user: User,
}

impl Fixture {
    async fn start(program: &'static str, settings: &str) -> Fixture {
        let server = TestServer::start_with(config(settings)).await;
        let user = server.user().await;
        created(&server, &user, "a", program).await;
        Fixture { server, user }
    }

    async fn sql(&self, text: impl Into<String>) {
        let request = self.server.request("POST", "/v1/database/a/sql");
        let (status, body) = answer(request.bearer_auth(&self.user.token).body(text.into())).await;
        assert_eq!(status, 200, "{body}");
    }

    async fn add(&self, table: &str, id: u32, name: &str) {
        self.sql(format!(
            "INSERT INTO {table} (id, name) VALUES ({id}, '{name}')"
        ))
        .await;
    }

    /// SQL takes no such name.
    async fn add_large(&self, id: u32, name: &str) -> (u16, String) {
        let call = self.server.request("POST", "/v1/database/a/call/add");
        let call = call.bearer_auth(&self.user.token);
        let call = call.header("content-type", "application/json");
        answer(call.body(format!("[{id},\"{name}\"]"))).await
    }

    async fn open(&self, query: &str) -> Stream {
        Stream::open(&self.server, &self.user, query, None).await
    }

    /// The first event, and all behind it that there are now.
    async fn all(&self, query: &str) -> (Event, Vec<Event>) {
        let separator = if query.is_empty() { "?" } else { "&" };
        let stream = self.open(&format!("{query}{separator}follow=false")).await;
        let mut events = stream.rest().await;
        let first = events.remove(0);
        assert_eq!(first.kind, "begin");
        (first, events)
    }

    async fn refused(&self, query: &str) -> (u16, String) {
        let separator = if query.is_empty() { "?" } else { "&" };
        let path = format!("/v1/database/a/changes{query}{separator}follow=false");
        by(&self.server, &self.user, "GET", &path).await
    }

    async fn restart(self, settings: &str) -> Fixture {
        let dir = self.server.stop().await;
        Fixture {
            server: TestServer::start_in(dir, config(settings)).await,
            user: self.user,
        }
    }
}

fn changes(event: &Event) -> &Value {
    &event.data["changes"]
}

fn columns(names: &[(&str, &str)]) -> Value {
    let element = |(name, ty): &(&str, &str)| {
        let ty = json!({ *ty: [] });
        json!({ "name": { "some": name }, "algebraic_type": ty })
    };
    json!({ "elements": names.iter().map(element).collect::<Vec<_>>() })
}

const PERSON: [(&str, &str); 2] = [("id", "U32"), ("name", "String")];

#[tokio::test(flavor = "multi_thread")]
async fn changes_are_told_as_they_are_made() {
    let fixture = Fixture::start("module secret", "").await;
    fixture.add("person", 1, "before").await;
    let mut stream = fixture.open("").await;
    let begin = stream.next().await.expect("the first event");
    let table = |name| json!({ "table": name, "schema": columns(&PERSON), "primary_key": "id" });
    let tables = json!([table("person"), table("secret")]);
    assert_eq!(
        (begin.kind.as_str(), &begin.data["tables"]),
        ("begin", &tables)
    );
    assert_eq!(begin.data["id"], begin.id);

    let called = call(
        &fixture.server,
        &fixture.user,
        "/v1/database/a/call/add",
        r#"[2,"é\n"]"#,
    );
    assert_eq!(called.await.0, 200);
    fixture.add("secret", 7, "x").await;
    fixture
        .sql("UPDATE person SET name = 'y' WHERE id = 1")
        .await;
    fixture.sql("DELETE FROM person WHERE id = 2").await;
    let expected = [
        json!([{ "table": "person", "insert": [{ "id": 2, "name": "é\n" }] }]),
        json!([{ "table": "secret", "insert": [{ "id": 7, "name": "x" }] }]),
        json!([{ "table": "person", "key": ["id"], "put": [{ "id": 1, "name": "y" }] }]),
        json!([{ "table": "person", "key": ["id"], "delete": [{ "id": 2 }] }]),
    ];
    let (mut offset, mut told) = (0, Vec::new());
    for expected in &expected {
        let event = stream.next().await.expect("an event");
        assert_eq!((event.kind.as_str(), changes(&event)), ("", expected));
        let next = event.data["offset"].as_u64().expect("a number");
        assert!(next > offset && event.data["committed_micros"].as_i64() > Some(0));
        assert_eq!(event.data["id"], event.id);
        // The id is where to go on.
        assert!(
            event.id.starts_with(&format!("{}-", next + 1)),
            "{}",
            event.id
        );
        offset = next;
        told.push(event);
    }
    // The past says the same, and so does what is behind any of its ids.
    let (_, all) = fixture.all("?from=0").await;
    assert_eq!(all[all.len() - 4..], told);
    for (place, event) in told.iter().enumerate() {
        let (begin, rest) = fixture.all(&format!("?from={}", event.id)).await;
        assert_eq!(begin.id, event.id);
        assert_eq!(rest, told[place + 1..]);
    }
    let (_, rest) = fixture
        .all(&format!("?from={offset}&tables=person,secret"))
        .await;
    assert_eq!(rest, told[3..]);
    let (begin, rest) = fixture.all("?from=0&tables=secret").await;
    assert_eq!(begin.data["tables"], json!([]), "it was made later");
    assert_eq!(rest[1..], told[1..2]);
    for (query, code) in [("?tables=nope", "[LC0515]"), ("?from=999", "[LC0508]")] {
        let (status, body) = fixture.refused(query).await;
        assert!(status == 400 && body.contains(code), "{status} {body}");
    }
    assert_eq!(fixture.refused("?from=x").await.0, 400);
    assert_eq!(fixture.refused("?follow=x").await.0, 400);

    // The end has a reason.
    assert_eq!(
        by(&fixture.server, &fixture.user, "DELETE", "/v1/database/a")
            .await
            .0,
        200
    );
    let end = stream.next().await.expect("the last event");
    assert_eq!(
        (end.kind.as_str(), &end.data["code"]),
        ("end", &json!("LC0516"))
    );
    assert!(stream.next().await.is_none());
    fixture.server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn strangers_are_refused_also_later() {
    let fixture = Fixture::start("module", "").await;
    let other = fixture.server.user().await;
    let path = "/v1/database/a/changes";
    let (status, body) = by(&fixture.server, &other, "GET", path).await;
    assert!(
        status == 403 && body.ends_with("follow changes"),
        "{status} {body}"
    );
    assert_eq!(fixture.server.ask("GET", path).await.0, 403);
    let role = |method: &'static str| {
        let path = format!("/v1/database/a/collaborators/{}", other.identity);
        let request = fixture.server.request(method, &path);
        answer(
            request
                .bearer_auth(&fixture.user.token)
                .body(r#"{"role":"owner"}"#),
        )
    };
    assert_eq!(role("PUT").await.0, 200);
    let mut stream = Stream::open(&fixture.server, &other, "", None).await;
    assert_eq!(stream.next().await.expect("an event").kind, "begin");
    assert_eq!(role("DELETE").await.0, 200);
    let end = stream.next().await.expect("an event");
    assert_eq!(
        (end.kind.as_str(), &end.data["code"]),
        ("end", &Value::Null)
    );
}

const SMALL: &str = "[commitlog]\nmax-segment-size = 16384\npreallocate-segments = false\n\
                     [limits]\nsnapshot-log-bytes = 8192\nsnapshots-kept = 100\n";

/// Copies what a process that is killed would leave.
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a directory");
    for entry in std::fs::read_dir(from).expect("a directory") {
        let entry = entry.expect("an entry");
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        match from.is_dir() {
            true => copy(&from, &to),
            false => drop(std::fs::copy(&from, &to).expect("copied")),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_go_on_after_a_restart_and_after_a_crash() {
    let fixture = Fixture::start("module", "").await;
    let mut stream = fixture.open("?tables=person").await;
    let begin = stream.next().await.expect("an event");
    for id in 0..10 {
        fixture.add("person", id, "first").await;
    }
    let mut told = Vec::new();
    for _ in 0..4 {
        told.push(stream.next().await.expect("an event"));
    }
    let last = told[3].id.clone();
    // A server that is killed now leaves this.
    let killed = tempfile::tempdir().expect("a directory");
    copy(fixture.server.dir.path(), killed.path());
    let fixture = fixture.restart(SMALL).await;
    let before = stream.rest().await;
    let (end, before) = before.split_last().expect("an event");
    let code = json!("LC0510");
    assert_eq!((end.kind.as_str(), &end.data["code"]), ("end", &code));
    let rest = Stream::open(&fixture.server, &fixture.user, "?follow=false", Some(&last)).await;
    let rest = rest.rest().await;
    assert_eq!((rest[0].kind.as_str(), &rest[0].id), ("begin", &last));
    assert_eq!(rest[1..], *before);
    assert_eq!(rest.len(), 7);
    told.extend(rest.into_iter().skip(1));
    // Snapshots are made, and the schema is found in them.
    for id in 10..40 {
        fixture.add("person", id, &"later".repeat(100)).await;
    }
    let query = format!("?from={}&tables=person", told[9].id);
    let (_, rest) = fixture.all(&query).await;
    told.extend(rest);
    let ids = told
        .iter()
        .map(|event| changes(event)[0]["insert"][0]["id"].as_u64());
    assert!(ids.eq((0..40).map(Some)), "{told:?}");

    let killed = TestServer::start_in(killed, config("")).await;
    let killed = Fixture {
        server: killed,
        user: User {
            identity: fixture.user.identity.clone(),
            token: fixture.user.token.clone(),
        },
    };
    let (_, rest) = killed.all(&format!("?from={last}&tables=person")).await;
    assert_eq!(rest, told[4..10]);
    // What comes there now is another history from here on.
    killed.add("person", 77, "other").await;
    // Also when it has become longer.
    let (status, body) = killed.refused(&format!("?from={}", told[12].id)).await;
    assert!(
        status == 410 && body.contains("[LC0512]"),
        "{status} {body}"
    );
    for id in 100..120 {
        killed.add("person", id, "other").await;
    }
    let (status, body) = killed.refused(&format!("?from={}", told[12].id)).await;
    assert!(
        status == 410 && body.contains("[LC0512]"),
        "{status} {body}"
    );
    let (_, all) = killed
        .all(&format!("?from={}&tables=person", begin.id))
        .await;
    assert_eq!(all.len(), 31);
    // Many at a time, so that frames have several transactions.
    let many = (200..260).map(|id| killed.add("person", id, "many"));
    futures_util::future::join_all(many).await;
    let (_, all) = killed
        .all(&format!("?from={}&tables=person", begin.id))
        .await;
    assert_eq!(all.len(), 91);
    for (place, event) in all.iter().enumerate().skip(31) {
        let (_, rest) = killed
            .all(&format!("?from={}&tables=person", event.id))
            .await;
        assert_eq!(rest, all[place + 1..]);
    }

    // Cleared data is another history too.
    let path = "/v1/database/a?clear=true";
    assert_eq!(
        publish(&killed.server, &killed.user, path, "module")
            .await
            .0,
        200
    );
    let (status, body) = killed.refused(&format!("?from={last}")).await;
    assert!(
        status == 410 && body.contains("[LC0512]"),
        "{status} {body}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn each_row_has_the_schema_of_its_time() {
    let fixture = Fixture::start("module", SMALL).await;
    let mut stream = fixture.open("").await;
    let begin = stream.next().await.expect("an event");
    fixture.add("person", 1, "old").await;
    let update = |program: &'static str| {
        let (server, user) = (&fixture.server, &fixture.user);
        async move {
            let plan = answer(
                server
                    .request("POST", "/v1/database/a/pre_publish")
                    .bearer_auth(&user.token)
                    .body(program),
            );
            let plan = json(&plan.await.1);
            let token = plan["AutoMigrate"]["token"].as_str().expect("a token");
            let path = format!("/v1/database/a?policy=BreakClients&token={token}");
            assert_eq!(publish(server, user, &path, program).await.0, 200);
        }
    };
    update("module level changed").await;
    fixture
        .sql("INSERT INTO person (id, name, level) VALUES (2, 'new', 9)")
        .await;
    fixture.add("extra", 5, "e").await;
    // A publish that changes no table is no change.
    update("module level changed again").await;
    fixture.sql("DELETE FROM extra WHERE id = 5").await;
    update("module level").await;
    let three = [PERSON[0], PERSON[1], ("level", "U16")];
    let table = |name: &str, schema: Value, rows: &str| json!({ "table": name, "schema": schema, "primary_key": "id", "rows": rows });
    let mut longer = table("person", columns(&three), "kept");
    longer["added"] = json!({ "level": 7 });
    let expected = [
        vec![json!({ "table": "person", "insert": [{ "id": 1, "name": "old" }] })],
        vec![table("extra", columns(&PERSON), "none"), longer],
        vec![json!({ "table": "person", "insert": [{ "id": 2, "name": "new", "level": 9 }] })],
        vec![json!({ "table": "extra", "insert": [{ "id": 5, "name": "e" }] })],
        vec![json!({ "table": "extra", "key": ["id"], "delete": [{ "id": 5 }] })],
        vec![json!({ "table": "extra", "schema": null })],
    ];
    let mut told = Vec::new();
    for expected in &expected {
        let event = stream.next().await.expect("an event");
        let mut found = changes(&event).as_array().expect("a list").clone();
        // The plan has an order of its own.
        found.sort_by_key(|change| change["table"].to_string());
        assert_eq!(found, *expected);
        told.push(event);
    }
    drop(stream);
    // From each place on, also behind snapshots, with the tables as they were there.
    for number in 0..3 {
        for (place, from) in [&begin].into_iter().chain(&told).enumerate() {
            let (begin, rest) = fixture.all(&format!("?from={}", from.id)).await;
            assert_eq!(rest[..told.len() - place], told[place..], "{number}");
            let tables = begin.data["tables"].as_array().expect("a list");
            let names: Vec<_> = tables.iter().map(|table| &table["table"]).collect();
            assert_eq!(names.len(), if (2..=5).contains(&place) { 2 } else { 1 });
        }
        if number < 2 {
            for id in 0..3 {
                let row = 100 + number * 10 + id;
                let name = "x".repeat(2000);
                let values = format!("({row}, '{name}', 0)");
                fixture
                    .sql(format!(
                        "INSERT INTO person (id, name, level) VALUES {values}"
                    ))
                    .await;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_too_slow_is_told_so() {
    let settings = "[commitlog]\nmax-segment-size = 1048576\npreallocate-segments = false\n\
                    [limits]\nsnapshot-log-bytes = 2097152\nchange-streams-max = 1\n";
    let fixture = Fixture::start("module", settings).await;
    let mut slow = fixture.open("?from=0").await;
    assert_eq!(slow.next().await.expect("an event").kind, "begin");
    let (status, body) = fixture.refused("").await;
    assert!(
        status == 503 && body.contains("[LC0514]"),
        "{status} {body}"
    );
    let (status, _) = refusal(websocket(&fixture.server, &fixture.user, "").await);
    assert_eq!(status, 503, "a WebSocket is one more stream");
    // More than sockets and pinned segments take.
    let name = "x".repeat(500_000);
    for id in 0..120 {
        let called = fixture.add_large(id, &name).await;
        assert_eq!(called.0, 200, "{}", called.1);
    }
    let events = slow.rest().await;
    let (end, told) = events.split_last().expect("events");
    assert_eq!(
        (end.kind.as_str(), &end.data["code"]),
        ("end", &json!("LC0511")),
        "{}",
        told.len()
    );
    let told = told
        .iter()
        .filter(|event| changes(event)[0]["insert"].is_array());
    let ids: Vec<_> = told
        .map(|event| changes(event)[0]["insert"][0]["id"].as_u64())
        .collect();
    assert!(
        ids.len() < 120 && ids.iter().copied().eq((0..ids.len() as u64).map(Some)),
        "{ids:?}"
    );
    // The place of the stream is free again, and what was trimmed is not there for any client.
    let (status, body) = fixture.refused("?from=1").await;
    assert!(
        status == 410 && body.contains("[LC0511]"),
        "{status} {body}"
    );
    let (_, rest) = fixture.all("").await;
    assert!(rest.is_empty(), "{rest:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn of_what_a_client_may_not_hold_only_the_tables_are_told() {
    let settings = "[limits]\nclient-bytes-max = 3000000\n";
    let fixture = Fixture::start("module", settings).await;
    fixture.add("person", 1, "small").await;
    let called = fixture.add_large(2, &"x".repeat(1_800_000)).await;
    assert_eq!(called.0, 200, "{}", called.1);
    fixture.add("person", 3, "small").await;
    let (_, told) = fixture.all("?from=1&tables=person").await;
    let told: Vec<Value> = told.iter().map(|event| changes(event).clone()).collect();
    let insert =
        |id: u32| json!([{ "table": "person", "insert": [{ "id": id, "name": "small" }] }]);
    let unknown = json!([{ "table": "person", "schema": columns(&PERSON), "primary_key": "id", "rows": "unknown" }]);
    assert_eq!(told, [insert(1), unknown, insert(3)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_hears_nothing_goes_on_all_the_same() {
    let fixture = Fixture::start("module secret", "").await;
    let mut stream = fixture.open("?tables=secret").await;
    let begin = stream.next().await.expect("an event");
    fixture.add("person", 1, "x").await;
    let heartbeat = stream.block().await.expect("a heartbeat");
    let lines: Vec<_> = heartbeat.lines().collect();
    assert!(lines[0].starts_with(':') && lines.len() == 2, "{heartbeat}");
    let id = lines[1].strip_prefix("id: ").expect("an id");
    assert_ne!(id, begin.id);
    let (_, rest) = fixture.all(&format!("?from={id}")).await;
    assert!(rest.is_empty(), "{rest:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_log_there_are_no_changes() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = TestServer::start_as(directory, config(""), |options| {
        options.node.in_memory = true
    });
    let server = server.await;
    let user = server.user().await;
    created(&server, &user, "a", "module").await;
    let (status, body) = by(&server, &user, "GET", "/v1/database/a/changes").await;
    assert!(
        status == 410 && body.contains("[LC0511]"),
        "{status} {body}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_websocket_has_the_same_as_messages() {
    let fixture = Fixture::start("module secret", "").await;
    let (server, user) = (&fixture.server, &fixture.user);
    fixture.add("person", 1, "before").await;
    let mut socket = websocket(server, user, "").await.expect("it opens");
    let begin = told(&mut socket).await.expect("a message");
    let tables = begin["tables"].as_array().expect("a list");
    assert_eq!(tables.len(), 2);
    fixture.add("person", 2, "é").await;
    fixture.add("secret", 7, "x").await;
    fixture
        .sql("UPDATE person SET name = 'y' WHERE id = 1")
        .await;
    fixture.sql("DELETE FROM person WHERE id = 2").await;
    // Larger than a fragment.
    let large = "x".repeat(200_000);
    assert_eq!(fixture.add_large(3, &large).await.0, 200);
    let mut messages = Vec::new();
    for _ in 0..5 {
        messages.push(told(&mut socket).await.expect("a message"));
    }
    let begin = begin["id"].as_str().expect("an id");
    let (_, events) = fixture.all(&format!("?from={begin}")).await;
    let events: Vec<Value> = events.into_iter().map(|event| event.data).collect();
    assert_eq!(messages, events);
    // It goes on behind any of them, and ends if it is not to follow.
    let id = messages[2]["id"].as_str().expect("an id");
    let query = format!("?from={id}&follow=false");
    let mut rest = websocket(server, user, &query).await.expect("it opens");
    assert_eq!(told(&mut rest).await.expect("a message")["id"], id);
    for expected in &messages[3..] {
        assert_eq!(told(&mut rest).await.as_ref(), Ok(expected));
    }
    assert_eq!(told(&mut rest).await, Err(1000));

    let query = format!("?from={begin}&rows=bsatn&follow=false&tables=person");
    let mut rest = websocket(server, user, &query).await.expect("it opens");
    told(&mut rest).await.expect("a message");
    let rows = |number: u32, name: &str| {
        let name_bytes = (name.len() as u32).to_le_bytes();
        let row = [&number.to_le_bytes(), &name_bytes[..], name.as_bytes()].concat();
        BASE64.encode([&1_u32.to_le_bytes()[..], &row].concat())
    };
    let key = BASE64.encode([1, 0, 0, 0, 2, 0, 0, 0]);
    let expected = [
        json!([{ "table": "person", "insert": rows(2, "é") }]),
        json!([{ "table": "person", "key": ["id"], "put": rows(1, "y") }]),
        json!([{ "table": "person", "key": ["id"], "delete": key }]),
        json!([{ "table": "person", "insert": rows(3, &large) }]),
    ];
    for expected in expected {
        assert_eq!(
            told(&mut rest).await.expect("a message")["changes"],
            expected
        );
    }
    assert_eq!(told(&mut rest).await, Err(1000));

    // Who may not, and who loses the right.
    let other = server.user().await;
    assert_eq!(refusal(websocket(server, &other, "").await).0, 403);
    let (status, body) = refusal(websocket(server, user, "?from=999").await);
    assert!(
        status == 400 && body.contains("[LC0508]"),
        "{status} {body}"
    );
    assert_eq!(refusal(websocket(server, user, "?rows=x").await).0, 400);
    let path = format!("/v1/database/a/collaborators/{}", other.identity);
    let role = server.request("PUT", &path).bearer_auth(&user.token);
    assert_eq!(answer(role.body(r#"{"role":"owner"}"#)).await.0, 200);
    let mut followed = websocket(server, &other, "").await.expect("it opens");
    told(&mut followed).await.expect("a message");
    assert_eq!(by(server, user, "DELETE", &path).await.0, 200);
    let end = told(&mut followed).await.expect("a message");
    assert!(end["reason"].is_string() && end["code"].is_null(), "{end}");
    assert_eq!(told(&mut followed).await, Err(1000));

    // A client is answered, and has nothing to say.
    socket
        .send(Message::Ping(vec![1, 2].into()))
        .await
        .expect("sent");
    assert_eq!(told(&mut socket).await, Ok(json!({ "pong": [1, 2] })));
    let mut talks = websocket(server, user, "").await.expect("it opens");
    told(&mut talks).await.expect("a message");
    talks.send(Message::text("hello")).await.expect("sent");
    assert_eq!(told(&mut talks).await, Err(1003));
    assert_eq!(by(server, user, "DELETE", "/v1/database/a").await.0, 200);
    let end = told(&mut socket).await.expect("a message");
    assert_eq!(end["code"], "LC0516");
    assert_eq!(told(&mut socket).await, Err(1000));
    fixture.server.stop().await;
}
