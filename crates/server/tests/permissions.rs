//! Who may do what with a database: every route and every way in, by everybody.

mod common;

use std::net::SocketAddr;
use std::time::Duration;

use common::postgres::{code, connect as connect_postgres};
use common::{answer, config, json, TestServer, User};
use futures_util::{SinkExt as _, StreamExt as _};
use lightcone_server::permissions::{allows, Action, Needs, Standing, ROUTES};
use lightcone_types::bsatn::Encode as _;
use lightcone_wire::{payload, ClientMessage, Protocol, ReducerOutcome, ServerMessage};
use reqwest::RequestBuilder;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

const MODULE: &str = "module secret";
/// Another program with the same tables.
const OTHER: &str = "module secret other";

struct Person {
    /// None: he sends no token.
    user: Option<User>,
    standing: Standing,
    name: &'static str,
}

struct World {
    server: TestServer,
    postgres: SocketAddr,
    founder: User,
    reader: User,
    publisher: User,
    owner: User,
    stranger: User,
}

impl World {
    async fn new() -> World {
        let directory = tempfile::tempdir().expect("temporary directory");
        let server = TestServer::start_as(directory, config(""), |options| {
            options.postgres_addr = Some("127.0.0.1:0".parse().expect("an address"));
        })
        .await;
        let handle = server.handle.as_ref().expect("it runs");
        World {
            postgres: handle.postgres_addr().expect("it is on"),
            founder: server.user().await,
            reader: server.user().await,
            publisher: server.user().await,
            owner: server.user().await,
            stranger: server.user().await,
            server,
        }
    }

    /// A database of the founder, in which the others have their roles.
    async fn database(&self, name: &str) {
        let request = self.server.request("PUT", &format!("/v1/database/{name}"));
        let published = answer(request.bearer_auth(&self.founder.token).body(MODULE)).await;
        assert_eq!(published.0, 200, "{}", published.1);
        for (user, role) in [
            (&self.reader, "reader"),
            (&self.publisher, "publisher"),
            (&self.owner, "owner"),
        ] {
            let set = self.set_role(&self.founder, name, user, role).await;
            assert_eq!(set, (200, String::new()), "{role}");
        }
    }

    async fn set_role(&self, by: &User, name: &str, whom: &User, role: &str) -> (u16, String) {
        let path = format!("/v1/database/{name}/collaborators/{}", whom.identity);
        let request = self.server.request("PUT", &path).bearer_auth(&by.token);
        answer(request.body(format!("{{\"role\":\"{role}\"}}"))).await
    }

    async fn remove(&self, by: &User, name: &str, whom: &User) -> (u16, String) {
        let path = format!("/v1/database/{name}/collaborators/{}", whom.identity);
        answer(self.server.request("DELETE", &path).bearer_auth(&by.token)).await
    }

    fn people(&self) -> Vec<Person> {
        let person = |name, user: &User, standing| Person {
            user: Some(User {
                identity: user.identity.clone(),
                token: user.token.clone(),
            }),
            standing,
            name,
        };
        vec![
            Person {
                user: None,
                standing: Standing::Anyone,
                name: "without a token",
            },
            person("stranger", &self.stranger, Standing::Anyone),
            person("reader", &self.reader, Standing::Reader),
            person("publisher", &self.publisher, Standing::Publisher),
            person("owner", &self.owner, Standing::Owner),
            person("founder", &self.founder, Standing::Founder),
        ]
    }

    /// The request of a route, with what it needs so that nothing but its caller can be refused.
    fn request(&self, method: &str, route: &str, name: &str, number: usize) -> RequestBuilder {
        let nobody = lightcone_types::Identity::from_claims("localhost", "nobody").to_hex();
        let path = route
            .replace("{database}", name)
            .replace("{function}", "add")
            .replace("{identity}", &nobody)
            .replace("{*path}", "ab/c")
            .replace("/schema", "/schema?version=9");
        let method = if method == "*" { "GET" } else { method };
        let request = self.server.request(method, &path);
        let is = |suffix: &str| route.ends_with(suffix);
        match (method, route) {
            ("PUT", "/v1/database/{database}") => request.body(OTHER),
            ("POST", _) if is("/pre_publish") => request.body(OTHER),
            ("PUT", _) if is("/reset") => request.body(OTHER),
            ("POST", _) if is("/names") => request.body(format!("more-{number}")),
            ("PUT", _) if is("/names") => request
                .header("content-type", "application/json")
                .body(format!("[\"other-{number}\"]")),
            ("POST", _) if is("/call/{function}") => request
                .header("content-type", "application/json")
                .body("[1, \"x\"]"),
            ("POST", _) if is("/sql") => request.body("SELECT * FROM person"),
            ("PUT", _) if is("/collaborators/{identity}") => request.body("{\"role\":\"reader\"}"),
            _ => request,
        }
    }
}

fn by(request: RequestBuilder, person: &Person) -> RequestBuilder {
    match &person.user {
        Some(user) => request.bearer_auth(&user.token),
        None => request,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_route_asks_for_what_the_table_says() {
    let world = World::new().await;
    let mut asked = 0;
    for (method, route, needs) in ROUTES {
        let Needs::Action(action) = needs else {
            continue;
        };
        for person in world.people() {
            asked += 1;
            let name = format!("d{asked}");
            world.database(&name).await;
            let request = world.request(method, route, &name, asked);
            let (status, body) = answer(by(request, &person)).await;
            let is_refused = matches!(status, 401 | 403);
            let case = format!("{method} {route} by {}: {status} {body}", person.name);
            assert_eq!(is_refused, !allows(person.standing, *action), "{case}");
            // What is not refused is done, or asked for in another way.
            let is_nothing_to_end = status == 409 && route.ends_with("/migration");
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

/// Whoever loses rights loses the connections that have them, and nobody else loses any.
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
    // The next line of the log is not for him.
    let failing = world.server.request("POST", "/v1/database/d/call/fail");
    let failing = failing.header("content-type", "application/json");
    answer(failing.bearer_auth(&world.founder.token).body("[\"late\"]")).await;
    let rest = tokio::time::timeout(Duration::from_secs(20), logs.text());
    let rest = rest.await.expect("it ends").expect("text");
    assert!(!rest.contains("late"), "{rest}");

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

#[tokio::test(flavor = "multi_thread")]
async fn collaborators_are_kept_and_go_with_the_database() {
    let world = World::new().await;
    world.database("d").await;
    let list = |server: &TestServer, user: &User| {
        let request = server.request("GET", "/v1/database/d/collaborators");
        answer(request.bearer_auth(&user.token))
    };
    let (status, body) = list(&world.server, &world.reader).await;
    assert_eq!(status, 200, "{body}");
    let listed = json(&body);
    assert_eq!(listed["owner"], world.founder.identity);
    let mut roles: Vec<_> = listed["collaborators"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|one| one["role"].as_str().expect("a role").to_owned())
        .collect();
    roles.sort();
    assert_eq!(roles, ["owner", "publisher", "reader"]);

    // What means nothing, and what cannot be.
    for (body, part) in [
        ("", "EOF"),
        ("{}", "role"),
        ("{\"role\":\"king\"}", "none of these"),
        ("{\"role\":1}", "invalid type"),
    ] {
        let path = format!("/v1/database/d/collaborators/{}", world.stranger.identity);
        let request = world.server.request("PUT", &path).body(body);
        let (status, text) = answer(request.bearer_auth(&world.founder.token)).await;
        assert!(
            status == 400 && text.contains(part) && text.ends_with("[LC0142]"),
            "{body}: {status} {text}"
        );
    }
    for refused in [
        world
            .set_role(&world.owner, "d", &world.founder, "reader")
            .await,
        world.remove(&world.owner, "d", &world.founder).await,
    ] {
        assert_eq!(refused.0, 400, "{}", refused.1);
        assert!(refused.1.ends_with("[LC0142]"), "{}", refused.1);
    }
    // Everybody may give back his own role, and no other's.
    assert_eq!(
        world.remove(&world.reader, "d", &world.publisher).await.0,
        403
    );
    assert_eq!(world.remove(&world.reader, "d", &world.reader).await.0, 200);
    assert_eq!(list(&world.server, &world.reader).await.0, 403);
    // Another owner makes owners, and one who is none any more does not.
    let made = world
        .set_role(&world.owner, "d", &world.stranger, "owner")
        .await;
    assert_eq!(made.0, 200);
    assert_eq!(
        world.remove(&world.stranger, "d", &world.owner).await.0,
        200
    );
    let made = world
        .set_role(&world.owner, "d", &world.reader, "reader")
        .await;
    assert_eq!(made.0, 403);

    let World {
        server,
        founder,
        stranger,
        publisher,
        ..
    } = world;
    let server = TestServer::start_in(server.stop().await, config("")).await;
    let (status, body) = list(&server, &publisher).await;
    let count = json(&body)["collaborators"].as_array().map(Vec::len);
    assert_eq!((status, count), (200, Some(2)), "{body}");
    for (user, status) in [(&stranger, 403), (&founder, 200)] {
        let delete = server.request("DELETE", "/v1/database/d");
        let deleted = answer(delete.bearer_auth(&user.token)).await;
        assert_eq!(deleted.0, status, "{}", deleted.1);
    }
    let publish = server.request("PUT", "/v1/database/d").body(MODULE);
    let publish = answer(publish.bearer_auth(&founder.token)).await;
    assert_eq!(publish.0, 200, "{}", publish.1);
    let (_, body) = list(&server, &founder).await;
    assert_eq!(json(&body)["collaborators"], serde_json::json!([]));
    assert_eq!(list(&server, &publisher).await.0, 403);
}

/// An owner who is none by birth renames the database, and does not get at what else its owner has.
#[tokio::test(flavor = "multi_thread")]
async fn names_stay_with_the_one_who_has_them() {
    let world = World::new().await;
    world.database("d").await;
    world.database("bank").await;
    let replace = |user: &User, database: &str, names: &str| {
        let path = format!("/v1/database/{database}/names");
        let request = world.server.request("PUT", &path);
        let request = request.header("content-type", "application/json");
        answer(request.bearer_auth(&user.token).body(names.to_owned()))
    };
    let renamed = replace(&world.founder, "bank", "[\"vault\"]").await;
    assert_eq!(renamed.0, 200, "{}", renamed.1);
    // `bank` is free, and still the founder's.
    let (status, body) = replace(&world.owner, "d", "[\"bank\"]").await;
    assert!(
        status == 401 && body.contains("PermissionDenied"),
        "{status} {body}"
    );
    let add = world.server.request("POST", "/v1/database/d/names");
    let add = answer(add.bearer_auth(&world.owner.token).body("bank")).await;
    assert_eq!(add.0, 401, "{}", add.1);
    let renamed = replace(&world.owner, "d", "[\"fresh\"]").await;
    assert_eq!(renamed.0, 200, "{}", renamed.1);
    // It is the founder's now: he may take it along.
    let renamed = replace(&world.founder, "fresh", "[\"bank\", \"d\"]").await;
    assert_eq!(renamed.0, 200, "{}", renamed.1);
    let renamed = replace(&world.founder, "vault", "[\"fresh\"]").await;
    assert_eq!(renamed.0, 200, "{}", renamed.1);
}

/// Where there is neither a database nor a name, anybody may create one. So another owner brings about neither.
#[tokio::test(flavor = "multi_thread")]
async fn another_owner_does_not_get_the_database_for_himself() {
    let world = World::new().await;
    world.database("d").await;
    let identity = world.server.ask("GET", "/v1/database/d/identity").await.1;
    let ask = |method, path: String, user: &User, body: &'static str| {
        let request = world.server.request(method, &path);
        let request = request.header("content-type", "application/json");
        answer(request.bearer_auth(&user.token).body(body))
    };
    let database = format!("/v1/database/{identity}");
    let names = format!("{database}/names");
    let (status, body) = ask("PUT", names.clone(), &world.owner, "[]").await;
    assert!(
        status == 403 && body.contains("take all names away"),
        "{status} {body}"
    );
    let (status, body) = ask("PUT", names.clone(), &world.owner, "[\"other\"]").await;
    assert_eq!(status, 200, "{body}");
    let (status, body) = ask("DELETE", database.clone(), &world.owner, "").await;
    assert!(
        status == 403 && body.contains("delete database"),
        "{status} {body}"
    );
    // Also where the founder deletes it: the name is his, and leads there.
    let (status, body) = ask("DELETE", database.clone(), &world.founder, "").await;
    assert_eq!(status, 200, "{body}");
    let (status, body) = ask("PUT", database.clone(), &world.owner, MODULE).await;
    assert_eq!(status, 401, "{body}");
    let (status, body) = ask("PUT", database, &world.founder, MODULE).await;
    assert_eq!(status, 200, "{body}");
    let (status, body) = ask("PUT", names, &world.founder, "[]").await;
    assert_eq!(status, 200, "{body}");
}

/// A database without a name, of the founder; another one's may follow it under the same identity.
async fn nameless(world: &World, path: &str, user: &User) -> String {
    let method = if path.ends_with("/database") {
        "POST"
    } else {
        "PUT"
    };
    let request = world.server.request(method, path).body(MODULE);
    let (status, body) = answer(request.bearer_auth(&user.token)).await;
    assert_eq!(status, 200, "{body}");
    let identity = &json(&body)["Success"]["database_identity"];
    format!("/v1/database/{}", identity.as_str().expect("an identity"))
}

async fn delete(world: &World, path: &str, user: &User) {
    let request = world.server.request("DELETE", path);
    let (status, body) = answer(request.bearer_auth(&user.token)).await;
    assert_eq!(status, 200, "{body}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reset_does_not_give_a_database_another_owner() {
    let world = World::new().await;
    let path = nameless(&world, "/v1/database", &world.founder).await;
    let name = path.trim_start_matches("/v1/database/").to_owned();
    let given = world
        .set_role(&world.founder, &name, &world.owner, "owner")
        .await;
    assert_eq!(given.0, 200, "{}", given.1);
    let reset = world.server.request("PUT", &format!("{path}/reset"));
    let reset = reset.body("module slow-load");
    let reset = tokio::spawn(answer(reset.bearer_auth(&world.owner.token)));
    tokio::time::sleep(common::fake::SLOW_LOAD / 4).await;
    delete(&world, &path, &world.founder).await;
    nameless(&world, &path, &world.stranger).await;
    let given = world
        .set_role(&world.stranger, &name, &world.owner, "owner")
        .await;
    assert_eq!(given.0, 200, "{}", given.1);
    assert!(!reset.is_finished(), "slow enough");
    let (status, body) = reset.await.expect("no panic");
    assert!(
        status == 503 && body.contains("[LC0123]"),
        "{status} {body}"
    );
    let list = world
        .server
        .request("GET", &format!("{path}/collaborators"));
    let (status, body) = answer(list.bearer_auth(&world.stranger.token)).await;
    assert_eq!(status, 200, "{body}");
    assert_eq!(json(&body)["owner"], world.stranger.identity);
}

/// A request whose body's last byte has not come yet.
async fn unfinished(
    world: &World,
    (method, path): (&str, &str),
    user: &User,
    body: &str,
) -> TcpStream {
    let mut stream = TcpStream::connect(world.server.address)
        .await
        .expect("connected");
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
        user.token,
        body.len()
    );
    let bytes = [head.as_bytes(), &body.as_bytes()[..body.len() - 1]].concat();
    stream.write_all(&bytes).await.expect("written");
    // Until its handler waits for the rest.
    tokio::time::sleep(Duration::from_millis(300)).await;
    stream
}

async fn finish(mut stream: TcpStream, body: &str) -> String {
    let last = &body.as_bytes()[body.len() - 1..];
    stream.write_all(last).await.expect("written");
    let mut text = String::new();
    let read = tokio::time::timeout(Duration::from_secs(20), stream.read_to_string(&mut text));
    read.await.expect("in time").expect("an answer");
    text
}

/// What counts is who may do it when it is done, not when the request began.
#[tokio::test(flavor = "multi_thread")]
async fn a_slow_body_does_not_keep_rights() {
    let world = World::new().await;
    world.database("d").await;
    let plan = ("POST", "/v1/database/d/pre_publish");
    let stream = unfinished(&world, plan, &world.publisher, OTHER).await;
    let removed = world.remove(&world.founder, "d", &world.publisher).await;
    assert_eq!(removed.0, 200);
    let answered = finish(stream, OTHER).await;
    assert!(answered.starts_with("HTTP/1.1 403 "), "{answered}");

    let path = nameless(&world, "/v1/database", &world.founder).await;
    let name = path.trim_start_matches("/v1/database/").to_owned();
    let query = "SELECT * FROM secret";
    let sql = format!("{path}/sql");
    let role = "{\"role\":\"owner\"}";
    let to = format!("{path}/collaborators/{}", world.reader.identity);
    let reading = unfinished(&world, ("POST", &sql), &world.founder, query).await;
    let giving = unfinished(&world, ("PUT", &to), &world.founder, role).await;
    delete(&world, &path, &world.founder).await;
    nameless(&world, &path, &world.stranger).await;
    let answered = finish(reading, query).await;
    assert!(answered.starts_with("HTTP/1.1 400 "), "{answered}");
    let answered = finish(giving, role).await;
    assert!(answered.starts_with("HTTP/1.1 403 "), "{answered}");
    let reader = world.set_role(&world.reader, &name, &world.reader, "owner");
    assert_eq!(reader.await.0, 403);
}

/// Taking away what is not there is done, and is nobody's business but the asker's.
#[tokio::test(flavor = "multi_thread")]
async fn a_role_that_is_not_there_is_given_back() {
    let world = World::new().await;
    world.database("d").await;
    assert_eq!(
        world.remove(&world.stranger, "d", &world.stranger).await.0,
        200
    );
    assert_eq!(
        world.remove(&world.stranger, "d", &world.reader).await.0,
        403
    );
    for _ in 0..2 {
        assert_eq!(
            world.remove(&world.founder, "d", &world.reader).await.0,
            200
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_has_so_many_collaborators_and_no_more() {
    let world = World::new().await;
    world.database("d").await;
    let identity = |number: u32| {
        lightcone_types::Identity::from_claims("localhost", &number.to_string()).to_hex()
    };
    let user = |number| User {
        identity: identity(number),
        token: String::new(),
    };
    for number in 3..256 {
        let set = world
            .set_role(&world.founder, "d", &user(number), "reader")
            .await;
        assert_eq!(set.0, 200, "{number}: {}", set.1);
    }
    let (status, body) = world
        .set_role(&world.founder, "d", &user(1), "reader")
        .await;
    assert!(
        status == 400 && body.ends_with("[LC0141]"),
        "{status} {body}"
    );
    // Who has a role may get another one.
    let changed = world
        .set_role(&world.founder, "d", &user(9), "publisher")
        .await;
    assert_eq!(changed.0, 200);
}
