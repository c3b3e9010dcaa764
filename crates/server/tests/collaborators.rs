//! Roles: who gives and takes them, how long they last, and what stays with the founder of a database.

use std::time::Duration;

use crate::common;
use crate::common::world::{World, MODULE, OTHER};
use crate::common::{answer, config, json, TestServer, User};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

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
    // Each user may give back his own role, and no other's.
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

/// Each user is told of the databases that are his, and of those in which he has a role.
#[tokio::test(flavor = "multi_thread")]
async fn databases_are_listed_with_the_role_in_them() {
    let world = World::new().await;
    world.database("d").await;
    let identity = world.server.ask("GET", "/v1/database/d/identity").await.1;
    let list = |user: &User| {
        let path = format!("/v1/identity/{}/databases", user.identity);
        answer(world.server.request("GET", &path))
    };
    for (user, identities, role) in [
        (&world.founder, vec![&identity], None),
        (&world.reader, vec![], Some("reader")),
        (&world.publisher, vec![], Some("publisher")),
        (&world.owner, vec![], Some("owner")),
        (&world.stranger, vec![], None),
    ] {
        let (status, body) = list(user).await;
        let roles = role.map(|role| serde_json::json!({ "identity": identity, "role": role }));
        let roles: Vec<_> = roles.into_iter().collect();
        let expected = serde_json::json!({ "identities": identities, "roles": roles });
        assert_eq!((status, json(&body)), (200, expected));
    }
    assert_eq!(
        world.remove(&world.founder, "d", &world.reader).await.0,
        200
    );
    assert_eq!(
        json(&list(&world.reader).await.1)["roles"],
        serde_json::json!([])
    );
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

/// Another owner neither deletes a database nor takes all names away; and where it was, only its founder creates one.
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
    let (status, body) = ask("PUT", database.clone(), &world.founder, MODULE).await;
    assert_eq!(status, 200, "{body}");
    let (status, body) = ask("PUT", names, &world.founder, "[]").await;
    assert_eq!(status, 200, "{body}");
    // And where no name says so.
    let (status, body) = ask("DELETE", database.clone(), &world.founder, "").await;
    assert_eq!(status, 200, "{body}");
    for user in [&world.owner, &world.stranger] {
        let (status, body) = ask("PUT", database.clone(), user, MODULE).await;
        assert!(
            status == 403 && body.ends_with("[LC0145]"),
            "{status} {body}"
        );
    }
    let World {
        server,
        founder,
        stranger,
        ..
    } = world;
    let server = TestServer::start_in(server.stop().await, config("")).await;
    for (user, expected) in [(&stranger, 403), (&founder, 200)] {
        let request = server.request("PUT", &database).body(MODULE);
        let (status, body) = answer(request.bearer_auth(&user.token)).await;
        assert_eq!(status, expected, "{body}");
    }
}

/// A database without a name, new or again under its identity.
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
    assert!(!reset.is_finished(), "slow enough");
    // Where one account has one turn, this waits until the other module is loaded.
    nameless(&world, &path, &world.founder).await;
    let (status, body) = reset.await.expect("no panic");
    assert!(matches!(status, 403 | 404 | 503), "{status} {body}");
    let list = world
        .server
        .request("GET", &format!("{path}/collaborators"));
    let (status, body) = answer(list.bearer_auth(&world.founder.token)).await;
    assert_eq!(status, 200, "{body}");
    assert_eq!(json(&body)["collaborators"], serde_json::json!([]));
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
    let given = world
        .set_role(&world.founder, &name, &world.owner, "owner")
        .await;
    assert_eq!(given.0, 200, "{}", given.1);
    let reading = unfinished(&world, ("POST", &sql), &world.owner, query).await;
    let giving = unfinished(&world, ("PUT", &to), &world.owner, role).await;
    delete(&world, &path, &world.founder).await;
    // Roles have gone with it.
    nameless(&world, &path, &world.founder).await;
    let answered = finish(reading, query).await;
    assert!(answered.starts_with("HTTP/1.1 400 "), "{answered}");
    let answered = finish(giving, role).await;
    assert!(answered.starts_with("HTTP/1.1 403 "), "{answered}");
    let reader = world.set_role(&world.reader, &name, &world.reader, "owner");
    assert_eq!(reader.await.0, 403);
}

/// Taking away what is not there is done, and is the business of the caller alone.
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
