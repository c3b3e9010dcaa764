//! Who may do what with a database: every route and every way in, by each kind of caller. Roles themselves: `collaborators.rs`.

use std::time::Duration;

use crate::common::postgres::{code, connect as connect_postgres};
use crate::common::world::{by, World, OTHER};
use crate::common::{answer, json, User};
use futures_util::{SinkExt as _, StreamExt as _};
use lightcone_gateway::{Route, ROUTES};
use lightcone_node::permissions::{allows, Action};
use lightcone_types::bsatn::Encode as _;
use lightcone_wire::{payload, ClientMessage, Protocol, ReducerOutcome, ServerMessage};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

#[tokio::test(flavor = "multi_thread")]
async fn every_route_asks_for_what_the_table_says() {
    let world = World::new().await;
    let mut asked = 0;
    for row in ROUTES {
        let Route { method, path, .. } = row;
        let Some(action) = row.action else {
            continue;
        };
        for person in world.people() {
            asked += 1;
            let name = format!("d{asked}");
            world.database(&name).await;
            let request = world.request(method, path, &name, asked);
            let (status, body) = answer(by(request, &person)).await;
            let is_refused = matches!(status, 401 | 403);
            let case = format!("{method} {path} by {}: {status} {body}", person.name);
            assert_eq!(is_refused, !allows(person.standing, action), "{case}");
            // What is not refused is done, or asked for in another way.
            let is_nothing_to_end = status == 409 && path.ends_with("/migration")
                || body.ends_with("[LC0160]") && path.ends_with("/advance");
            assert!(
                is_refused || is_nothing_to_end || matches!(status, 200 | 426),
                "{case}"
            );
            if is_refused {
                // Nothing has happened.
                let path = format!("/v1/database/{name}/collaborators");
                let request = world.server.request("GET", &path);
                let (status, body) = answer(request.bearer_auth(&world.founder.token)).await;
                assert_eq!(status, 200, "{case}");
                let count = json(&body)["collaborators"].as_array().map(Vec::len);
                assert_eq!(count, Some(3), "{case}");
            }
        }
    }
    assert!(asked > 100);
}

/// Publishing with `clear` needs what `reset` needs.
#[tokio::test(flavor = "multi_thread")]
async fn clearing_is_no_update() {
    let world = World::new().await;
    for (number, person) in world.people().iter().enumerate() {
        let name = format!("c{number}");
        world.database(&name).await;
        let request = world
            .server
            .request("PUT", &format!("/v1/database/{name}?clear=true"));
        let (status, body) = answer(by(request.body(OTHER), person)).await;
        let expected = if allows(person.standing, Action::Reset) {
            200
        } else {
            403
        };
        assert_eq!(status, expected, "{}: {body}", person.name);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rights_inside_over_http() {
    let world = World::new().await;
    world.database("d").await;
    for person in world.people() {
        let sql = |text: &'static str| {
            let request = world.server.request("POST", "/v1/database/d/sql");
            answer(by(request.body(text), &person))
        };
        for (text, action) in [
            ("SELECT * FROM secret", Action::ReadAll),
            ("SHOW COLLABORATORS", Action::ListCollaborators),
            (
                "INSERT INTO secret (id, name) VALUES (1, 'x')",
                Action::Write,
            ),
            ("DELETE FROM secret WHERE id = 1", Action::Write),
            ("SET row_limit = 100", Action::Write),
            ("SELECT * FROM secret AS OF 1", Action::FollowChanges),
        ] {
            let (status, body) = sql(text).await;
            let expected = if allows(person.standing, action) {
                200
            } else {
                400
            };
            assert_eq!(status, expected, "{text} by {}: {body}", person.name);
        }
        let request = world.server.request("POST", "/v1/database/d/call/hidden");
        let request = request
            .header("content-type", "application/json")
            .body("[]");
        let (status, body) = answer(by(request, &person)).await;
        let expected = if allows(person.standing, Action::CallPrivate) {
            200
        } else {
            404
        };
        assert_eq!(status, expected, "hidden by {}: {body}", person.name);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rights_inside_over_postgres() {
    let world = World::new().await;
    world.database("d").await;
    for person in world.people() {
        let Some(user) = &person.user else {
            // There is no session without one.
            assert!(connect_postgres(world.postgres, "d", "").await.is_err());
            continue;
        };
        let client = connect_postgres(world.postgres, "d", &user.token).await;
        let client = client.expect("a session");
        for (text, action) in [
            ("SELECT * FROM secret", Action::ReadAll),
            ("SHOW COLLABORATORS", Action::ListCollaborators),
            (
                "INSERT INTO secret (id, name) VALUES (1, 'x')",
                Action::Write,
            ),
            ("DELETE FROM secret WHERE id = 1", Action::Write),
        ] {
            let allowed = allows(person.standing, action);
            let simple = client.simple_query(text).await;
            assert_eq!(
                simple.is_ok(),
                allowed,
                "{text} by {}: {simple:?}",
                person.name
            );
            // Prepared, which is another way through.
            let prepared = client.query(text, &[]).await;
            assert_eq!(
                prepared.is_ok(),
                allowed,
                "{text} by {}: {prepared:?}",
                person.name
            );
            if let Err(error) = prepared {
                assert!(["42501", "42P01"].contains(&code(&error)), "{error}");
            }
        }
        let past = "SELECT * FROM secret AS OF 1";
        let simple = client.simple_query(past).await;
        let allowed = allows(person.standing, Action::FollowChanges);
        assert_eq!(simple.is_ok(), allowed, "{}: {simple:?}", person.name);
        let prepared = client.query(past, &[]).await.expect_err("it is refused");
        let text = format!("{prepared:?}");
        assert!(text.contains("[LC0418]"), "{text}");
        // The catalogue shows what can be read.
        let listed = client
            .query("SELECT relname FROM pg_class WHERE relname = 'secret'", &[])
            .await
            .expect("the catalogue");
        let expected = usize::from(allows(person.standing, Action::ReadAll));
        assert_eq!(listed.len(), expected, "{}", person.name);
    }
}

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

async fn connect(world: &World, database: &str, user: Option<&User>) -> Socket {
    let address = world.server.address;
    let url = format!("ws://{address}/v1/database/{database}/subscribe?compression=None");
    let mut request = url.into_client_request().expect("request");
    let headers = request.headers_mut();
    headers.insert(
        "sec-websocket-protocol",
        "v2.bsatn.spacetimedb".parse().expect("header"),
    );
    if let Some(user) = user {
        let value = format!("Bearer {}", user.token);
        headers.insert("authorization", value.parse().expect("header"));
    }
    let connected = tokio_tungstenite::connect_async(request).await;
    let mut socket = connected.expect("connected").0;
    let first = next(&mut socket).await.expect("a message");
    assert!(matches!(first, ServerMessage::InitialConnection { .. }));
    socket
}

/// The next message; None when the connection has ended.
async fn next(socket: &mut Socket) -> Option<ServerMessage> {
    let message = async {
        loop {
            match socket.next().await {
                Some(Ok(Message::Binary(bytes))) => break Some(bytes),
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                _ => break None,
            }
        }
    };
    // Together: Pings come for ever.
    let bytes = tokio::time::timeout(Duration::from_secs(10), message);
    let bytes = bytes.await.expect("in time")?;
    let body = payload::decode_body(&bytes, 64 << 20).expect("payload");
    let messages = payload::decode_messages(Protocol::V2, &body).expect("messages");
    messages.into_iter().next()
}

async fn send(socket: &mut Socket, message: ClientMessage<'_>) {
    let mut bytes = Vec::new();
    message.encode(&mut bytes);
    let sent = socket.send(Message::Binary(bytes.into())).await;
    sent.expect("sent");
}

async fn subscribe(socket: &mut Socket, query: &str) -> ServerMessage {
    let message = ClientMessage::Subscribe {
        request_id: 1,
        query_set_id: 1,
        query_strings: vec![query],
    };
    send(socket, message).await;
    next(socket).await.expect("an answer")
}

#[tokio::test(flavor = "multi_thread")]
async fn rights_inside_over_websocket() {
    let world = World::new().await;
    world.database("d").await;
    for person in world.people() {
        let mut socket = connect(&world, "d", person.user.as_ref()).await;
        let answer = subscribe(&mut socket, "SELECT * FROM secret").await;
        let is_applied = matches!(answer, ServerMessage::SubscribeApplied { .. });
        let allowed = allows(person.standing, Action::ReadAll);
        assert_eq!(is_applied, allowed, "{}: {answer:?}", person.name);
        let call = ClientMessage::CallReducer {
            request_id: 2,
            reducer: "hidden",
            args: &[],
        };
        send(&mut socket, call).await;
        let answer = next(&mut socket).await.expect("an answer");
        let ServerMessage::ReducerResult { result, .. } = &answer else {
            panic!("{answer:?}");
        };
        let is_run = !matches!(result, ReducerOutcome::InternalError(_));
        let allowed = allows(person.standing, Action::CallPrivate);
        assert_eq!(is_run, allowed, "{}: {answer:?}", person.name);
    }
}

/// A user who loses rights loses the connections that have them, and no other loses any.
#[tokio::test(flavor = "multi_thread")]
async fn rights_end_when_they_are_taken() {
    let world = World::new().await;
    world.database("d").await;
    let mut reader = connect(&world, "d", Some(&world.reader)).await;
    let mut publisher = connect(&world, "d", Some(&world.publisher)).await;
    let applied = subscribe(&mut reader, "SELECT * FROM secret").await;
    assert!(matches!(applied, ServerMessage::SubscribeApplied { .. }));
    let applied = subscribe(&mut publisher, "SELECT * FROM secret").await;
    assert!(matches!(applied, ServerMessage::SubscribeApplied { .. }));
    let logs = world
        .server
        .request("GET", "/v1/database/d/logs?follow=true");
    let logs = logs.bearer_auth(&world.reader.token).send().await;
    let logs = logs.expect("a response");
    assert_eq!(logs.status(), 200);
    let session = connect_postgres(world.postgres, "d", &world.reader.token).await;
    let session = session.expect("a session");
    assert!(session.simple_query("SELECT * FROM secret").await.is_ok());

    // More rights than before end nothing.
    let raised = world
        .set_role(&world.owner, "d", &world.publisher, "owner")
        .await;
    assert_eq!(raised.0, 200);
    assert_eq!(
        world.remove(&world.founder, "d", &world.reader).await.0,
        200
    );
    assert!(next(&mut reader).await.is_none(), "the connection ends");
    let refused = session.simple_query("SELECT * FROM secret").await;
    assert_eq!(code(&refused.expect_err("refused")), "42P01");
    assert!(session.simple_query("SELECT * FROM person").await.is_ok());
    // The log ends, though nothing more is logged.
    let rest = tokio::time::timeout(Duration::from_secs(20), logs.text());
    rest.await.expect("it ends").expect("text");

    let mut again = connect(&world, "d", Some(&world.reader)).await;
    let answer = subscribe(&mut again, "SELECT * FROM secret").await;
    assert!(
        matches!(answer, ServerMessage::SubscriptionError { .. }),
        "{answer:?}"
    );
    let call = ClientMessage::CallReducer {
        request_id: 2,
        reducer: "hidden",
        args: &[],
    };
    send(&mut publisher, call).await;
    assert!(next(&mut publisher).await.is_some(), "it goes on");
}

/// The next line of a log that is followed is not for whom has lost the role a moment ago.
#[tokio::test(flavor = "multi_thread")]
async fn no_line_comes_behind_the_role() {
    let world = World::new().await;
    world.database("d").await;
    let logs = world
        .server
        .request("GET", "/v1/database/d/logs?follow=true");
    let logs = logs.bearer_auth(&world.reader.token).send().await;
    let logs = logs.expect("a response");
    assert_eq!(
        world.remove(&world.founder, "d", &world.reader).await.0,
        200
    );
    let failing = world.server.request("POST", "/v1/database/d/call/fail");
    let failing = failing.header("content-type", "application/json");
    answer(failing.bearer_auth(&world.founder.token).body("[\"late\"]")).await;
    let rest = tokio::time::timeout(Duration::from_secs(20), logs.text());
    let rest = rest.await.expect("it ends").expect("text");
    assert!(!rest.contains("late"), "{rest}");
}

/// Rows that a portal keeps are those of the role that they were read with.
#[tokio::test(flavor = "multi_thread")]
async fn the_rest_of_a_portal_goes_with_the_role() {
    let world = World::new().await;
    world.database("d").await;
    for id in 1..4 {
        let request = world.server.request("POST", "/v1/database/d/sql");
        let insert = format!("INSERT INTO secret (id, name) VALUES ({id}, 'x')");
        let (status, body) = answer(request.bearer_auth(&world.founder.token).body(insert)).await;
        assert_eq!(status, 200, "{body}");
    }
    let client = connect_postgres(world.postgres, "d", &world.reader.token).await;
    let mut client = client.expect("a session");
    let transaction = client.transaction().await.expect("begin");
    let secret = transaction.bind("SELECT * FROM secret", &[]).await;
    let secret = secret.expect("bound");
    let rows = transaction.query_portal(&secret, 1).await;
    assert_eq!(rows.expect("a row").len(), 1);
    let rows = transaction.query_portal(&secret, 1).await;
    assert_eq!(rows.expect("another row").len(), 1);
    assert_eq!(
        world.remove(&world.founder, "d", &world.reader).await.0,
        200
    );
    let refused = transaction.query_portal(&secret, 1).await;
    assert_eq!(code(&refused.expect_err("refused")), "42501");
}
