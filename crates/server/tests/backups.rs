//! Backups over HTTP (06 §5.13b, 5.13c): what is refused leaves nothing behind. What they are good for: `crates/cli/tests/backup.rs`.

use crate::common::publishing::{by, call, created};
use crate::common::{answer, config, TestServer, User};
use lightcone_backup::{Decoder, Frame, Head, Item, Place, FORMAT};
use lightcone_log::{Epoch, LogOffset};

async fn fixture() -> (TestServer, User) {
    let server = TestServer::start_with(config("")).await;
    let user = server.user().await;
    created(&server, &user, "a", "module").await;
    (server, user)
}

async fn restore(
    server: &TestServer,
    user: &User,
    name: &str,
    body: impl Into<reqwest::Body>,
) -> (u16, String) {
    let request = server.request("POST", &format!("/v1/database/{name}/restore"));
    answer(request.bearer_auth(&user.token).body(body)).await
}

/// The whole answer, and its items.
async fn backup(server: &TestServer, user: &User, query: &str) -> (Vec<u8>, Vec<Item>) {
    let request = server.request("POST", &format!("/v1/database/a/backup{query}"));
    let response = request.bearer_auth(&user.token).send().await;
    let response = response.expect("an answer");
    assert_eq!(response.status(), 200, "{query}");
    let bytes = response.bytes().await.expect("a body").to_vec();
    let items = Decoder::all(&bytes).expect("items");
    (bytes, items)
}

fn replicas(server: &TestServer) -> usize {
    let replicas = server.dir.path().join("data/replicas");
    std::fs::read_dir(replicas).expect("replicas").count()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_refused_leaves_nothing_behind() {
    let (server, user) = fixture().await;
    let (bytes, items) = backup(&server, &user, "").await;
    assert!(matches!(items.first(), Some(Item::Head(_))));
    assert!(matches!(items.last(), Some(Item::End(_))));
    let before = replicas(&server);
    let cut = bytes[..bytes.len() - 1].to_vec();
    let mut changed = bytes.clone();
    let middle = changed.len() / 2;
    changed[middle] ^= 1;
    let longer = [bytes.clone(), vec![0]].concat();
    for body in [
        Vec::new(),
        b"garbage".to_vec(),
        vec![0xff; 100],
        cut,
        changed,
        longer,
    ] {
        let (status, text) = restore(&server, &user, "b", body).await;
        assert_eq!(status, 400, "{text}");
        assert!(text.contains("[LC0550]"), "{text}");
        assert_eq!(replicas(&server), before, "{text}");
        assert_eq!(server.ask("GET", "/v1/database/b/identity").await.0, 404);
    }
    // Frames that fit each other, and say nothing that a database could have.
    let payload = b"nonsense".to_vec();
    let (from, epoch) = (Place::default(), Epoch::FIRST);
    let hash = from
        .hash
        .after(epoch, from.offset, 1, &[payload.as_slice()]);
    let frame = Frame {
        first_offset: LogOffset::FIRST,
        count: 1,
        epoch,
        hash,
        payload,
    };
    let head = Head {
        format: FORMAT,
        database: "00".repeat(32),
        time: 0,
        from,
        end: 1,
        begins_because: None,
    };
    let end = from.behind(&frame).expect("it follows");
    let forged = [Item::Head(head), Item::Frame(frame), Item::End(end)];
    let forged: Vec<u8> = forged.iter().flat_map(Item::to_vec).collect();
    let (status, text) = restore(&server, &user, "b", forged).await;
    assert!(
        status == 400 && text.contains("[LC0530]"),
        "{status} {text}"
    );

    let (status, text) = restore(&server, &user, "a", bytes.clone()).await;
    assert!(
        status == 409 && text.contains("[LC0556]"),
        "{status} {text}"
    );
    let identity = server.ask("GET", "/v1/database/a/identity").await.1;
    let (status, text) = restore(&server, &user, identity.trim(), bytes.clone()).await;
    assert!(
        status == 400 && text.contains("[LC0556]"),
        "{status} {text}"
    );
    assert_eq!(replicas(&server), before);
    let (status, text) = restore(&server, &user, "b", bytes).await;
    assert_eq!(status, 200, "{text}");
    assert!(text.contains("\"op\":\"restored\""), "{text}");
    let (status, text) = call(&server, &user, "/v1/database/b/call/add", "[1,\"x\"]").await;
    assert_eq!(status, 200, "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn places_are_compared() {
    let (server, user) = fixture().await;
    let (_, items) = backup(&server, &user, "").await;
    let Some(Item::End(end)) = items.last() else {
        panic!("{items:?}");
    };
    let (_, items) = backup(&server, &user, &format!("?from={end}")).await;
    assert_eq!(items.len(), 2, "nothing is new: {items:?}");
    let begins = |items: &[Item]| match &items[0] {
        Item::Head(head) => head.begins_because.clone(),
        _ => panic!("{items:?}"),
    };
    assert_eq!(begins(&items), None);
    let other = format!("{}-{}", end.offset, "0".repeat(32));
    let (_, items) = backup(&server, &user, &format!("?from={other}")).await;
    assert!(begins(&items).is_some_and(|why| why.contains("other transactions")));
    let path = "/v1/database/a/backup?from=nowhere";
    assert_eq!(by(&server, &user, "POST", path).await.0, 400);
    let request = server.request("POST", "/v1/database/a/backup");
    let odd = request.bearer_auth(&user.token).body("no hash");
    assert_eq!(answer(odd).await.0, 400);
    // What the server is told of a backup that is complete.
    let path = |end: &str| format!("/v1/database/a/backup?end={end}");
    for (end, status) in [(&other, 410), (&"nowhere".to_owned(), 400)] {
        assert_eq!(by(&server, &user, "PUT", &path(end)).await.0, status);
    }
    let unsaid = by(&server, &user, "PUT", "/v1/database/a/backup").await;
    assert_eq!(unsaid.0, 400);
    let stranger = server.user().await;
    let end = end.to_string();
    let refused = by(&server, &stranger, "PUT", &path(&end)).await.0;
    assert!(matches!(refused, 401 | 403), "{refused}");
    assert_eq!(by(&server, &user, "PUT", &path(&end)).await.0, 200);
    let numbers = by(&server, &user, "GET", "/v1/database/a/metrics").await.1;
    let offset = end.split('-').next().expect("an offset");
    let told = format!("\"backed_up_offset\":{offset}");
    assert!(numbers.contains(&told), "{numbers}");
}

#[tokio::test(flavor = "multi_thread")]
async fn memory_has_no_backups() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = TestServer::start_as(directory, config(""), |options| {
        options.node.in_memory = true;
    });
    let server = server.await;
    let user = server.user().await;
    created(&server, &user, "a", "module").await;
    let (status, text) = by(&server, &user, "POST", "/v1/database/a/backup").await;
    assert!(
        status == 400 && text.contains("[LC0554]"),
        "{status} {text}"
    );
    let (status, text) = restore(&server, &user, "b", "").await;
    assert!(
        status == 400 && text.contains("[LC0554]"),
        "{status} {text}"
    );
}

/// Its name leads to the identity of a deleted database, which is its owner's.
#[tokio::test(flavor = "multi_thread")]
async fn a_name_of_another_user_is_refused_before_the_body_is_read() {
    let (server, user) = fixture().await;
    let (bytes, _) = backup(&server, &user, "").await;
    let (status, text) = by(&server, &user, "DELETE", "/v1/database/a").await;
    assert_eq!(status, 200, "{text}");
    let before = replicas(&server);
    let thief = server.user().await;
    // Before anything of it is looked at.
    for body in [b"garbage".to_vec(), bytes.clone()] {
        let (status, text) = restore(&server, &thief, "a", body).await;
        assert!(
            status == 401 && text.contains("PermissionDenied"),
            "{status} {text}"
        );
        assert_eq!(replicas(&server), before);
    }
    let (status, text) = restore(&server, &user, "a", bytes).await;
    assert_eq!(status, 200, "{text}");
    server.stop().await;
}
