//! Publishes and openings that never end, or whose clients have gone, hold up no other caller.

use std::time::{Duration, Instant};

use crate::common::fake::SLOW_LOAD;
use crate::common::{answer, config, header, json, TestServer, User};
use lightcone_types::Hash;

/// Far more than anything here takes that does not wait for a module that hangs, and less than such a module gets.
const SOON: Duration = Duration::from_secs(15);

async fn soon<T>(what: &str, work: impl std::future::Future<Output = T>) -> T {
    let done = tokio::time::timeout(SOON, work).await;
    done.unwrap_or_else(|_| panic!("{what} waits for a publish that hangs"))
}

async fn publish(server: &TestServer, user: &User, name: &str, program: &str) -> (u16, String) {
    let path = format!("/v1/database/{name}");
    let request = server.request("PUT", &path).bearer_auth(&user.token);
    soon(name, answer(request.body(program.to_owned()))).await
}

async fn call(server: &TestServer, user: &User, name: &str) -> u16 {
    let path = format!("/v1/database/{name}/call/add");
    let request = server
        .request("POST", &path)
        .bearer_auth(&user.token)
        .header("content-type", "application/json")
        .body(format!("[{}, \"x\"]", name.len()));
    soon(name, answer(request)).await.0
}

/// A publish that hangs, in the background.
fn hang(
    server: &TestServer,
    user: &User,
    number: usize,
) -> tokio::task::JoinHandle<reqwest::Result<reqwest::Response>> {
    let path = format!("/v1/database/hangs-{number}");
    let request = server.request("PUT", &path).bearer_auth(&user.token);
    tokio::spawn(request.body(format!("module hang {number}")).send())
}

/// A publisher goes back to a program by publishing it again.
#[tokio::test(flavor = "multi_thread")]
async fn earlier_programs_are_kept() {
    let server = TestServer::start().await;
    let user = server.user().await;
    let get = async |user: &User, path: &str| {
        let path = format!("/v1/database/d/programs{path}");
        answer(server.request("GET", &path).bearer_auth(&user.token)).await
    };
    let hash = |text: &str| Hash::keccak256(text.as_bytes()).to_hex();
    let listed = async || {
        let (status, body) = get(&user, "").await;
        assert_eq!(status, 200, "{body}");
        let programs = json(&body)["programs"].as_array().expect("a list").clone();
        let hashes = programs
            .iter()
            .map(|one| one["program"].as_str().map(str::to_owned));
        hashes.collect::<Option<Vec<_>>>().expect("texts")
    };
    let (first, second) = ("module", "module other");
    assert_eq!(publish(&server, &user, "d", first).await.0, 200);
    assert!(listed().await.is_empty());
    assert_eq!(publish(&server, &user, "d", second).await.0, 200);
    assert_eq!(publish(&server, &user, "d", second).await.0, 200);
    assert_eq!(listed().await, [hash(first)]);
    for program in [first, second] {
        let (status, body) = get(&user, &format!("/{}", hash(program))).await;
        assert_eq!((status, body.as_str()), (200, program));
    }
    assert_eq!(publish(&server, &user, "d", first).await.0, 200);
    assert_eq!(listed().await, [hash(second), hash(first)]);
    let unknown = get(&user, &format!("/{}", hash("nothing"))).await;
    assert!(
        unknown.0 == 404 && unknown.1.contains("[LC0162]"),
        "{unknown:?}"
    );
    assert_eq!(get(&user, "/..%2fcontrol").await.0, 400);
    let stranger = server.user().await;
    assert_eq!(get(&stranger, "").await.0, 403);
    assert_eq!(get(&stranger, &format!("/{}", hash(first))).await.0, 403);
}

#[tokio::test(flavor = "multi_thread")]
async fn publishes_that_hang_hold_up_no_other() {
    let text = "[limits]\npublishes-waiting-per-owner-max = 5";
    let server = TestServer::start_with(config(text)).await;
    let alice = server.user().await;
    for number in 0..8 {
        let (status, body) = publish(&server, &alice, &format!("victim-{number}"), "module").await;
        assert_eq!(status, 200, "{body}");
    }
    // Closed, so that each has to open again.
    let server = TestServer::start_in(server.stop().await, config(text)).await;

    let mallory = server.user().await;
    let mut hanging: Vec<_> = (0..40)
        .map(|number| hang(&server, &mallory, number))
        .collect();
    // Those beyond the queue are refused at once, and told when to come again.
    let mut refused = 0;
    let started = Instant::now();
    while refused < 25 && started.elapsed() < SOON {
        tokio::time::sleep(Duration::from_millis(20)).await;
        for at in (0..hanging.len()).rev() {
            if hanging[at].is_finished() {
                let response = hanging.swap_remove(at).await.expect("no panic");
                let response = response.expect("an answer");
                assert_eq!(response.status(), 503);
                assert!(header(&response, "retry-after").is_some());
                let text = response.text().await.expect("text");
                assert!(text.contains("LC0123"), "{text}");
                refused += 1;
            }
        }
    }
    assert!(refused >= 25, "{refused} of 40 were refused");
    assert!(!hanging.is_empty());

    // All others go on: databases open, modules are published and replaced, databases are deleted.
    for number in 0..7 {
        assert_eq!(
            call(&server, &alice, &format!("victim-{number}")).await,
            200
        );
    }
    assert_eq!(publish(&server, &alice, "new", "module new").await.0, 200);
    assert_eq!(publish(&server, &alice, "new", "module other").await.0, 200);

    // With all turns taken publishing waits, and nothing else does.
    let trudy = server.user().await;
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    for number in 0..processors.max(2) {
        hanging.push(hang(&server, &trudy, 100 + number));
    }
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(call(&server, &alice, "victim-7").await, 200);
    for name in ["victim-1", "victim-2"] {
        let path = format!("/v1/database/{name}");
        let request = server.request("DELETE", &path).bearer_auth(&alice.token);
        let (status, body) = soon(name, answer(request)).await;
        assert_eq!(status, 200, "{body}");
    }
    soon("stopping", server.stop()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_nearly_full_disk_takes_no_publishes_and_goes_on_with_calls() {
    let server = TestServer::start().await;
    let alice = server.user().await;
    assert_eq!(publish(&server, &alice, "db", "module").await.0, 200);
    let full = config("[limits]\ndisk-reserve-bytes = 9000000000000000");
    let server = TestServer::start_in(server.stop().await, full).await;
    let (status, text) = publish(&server, &alice, "more", "module more").await;
    assert_eq!(status, 503, "{text}");
    assert!(text.contains("LC0125"), "{text}");
    let known = server.ask("GET", "/v1/database/more/identity").await;
    assert_eq!(known.0, 404, "a refused publish takes no name");
    assert_eq!(call(&server, &alice, "db").await, 200);
    let path = "/v1/database/db";
    let request = server.request("DELETE", path).bearer_auth(&alice.token);
    assert_eq!(answer(request).await.0, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_publish_needs_room_for_what_it_writes() {
    let text =
        "[limits]\ndisk-reserve-bytes = 0\n[commitlog]\nmax-segment-size = 1152921504606846976";
    let server = TestServer::start_with(config(text)).await;
    let alice = server.user().await;
    let (status, body) = publish(&server, &alice, "db", "module").await;
    assert_eq!(status, 503, "{body}");
    assert!(body.contains("LC0125"), "{body}");
    let text = format!("{text}\npreallocate-segments = false");
    let server = TestServer::start_in(server.stop().await, config(&text)).await;
    let (status, body) = publish(&server, &alice, "db", "module").await;
    assert_eq!(status, 200, "{body}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_opens_though_the_client_that_asked_for_it_has_gone() {
    let server = TestServer::start().await;
    let alice = server.user().await;
    let (status, body) = publish(&server, &alice, "db", "module slow-load").await;
    assert_eq!(status, 200, "{body}");
    let server = TestServer::start_in(server.stop().await, config("")).await;
    let path = "/v1/database/db/schema?version=10";
    let request = server.request("GET", path).timeout(SLOW_LOAD / 4);
    assert!(request.send().await.expect_err("not yet open").is_timeout());
    // Not sooner than the opening that no caller waits for any more has ended.
    tokio::time::sleep(SLOW_LOAD * 2).await;
    assert_eq!(call(&server, &alice, "db").await, 200);
    soon("stopping", server.stop()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_planned_publish_keeps_its_turn_when_its_client_has_gone() {
    let server = TestServer::start().await;
    let alice = server.user().await;
    let mallory = server.user().await;
    for (user, name) in [(&alice, "good"), (&mallory, "bad")] {
        assert_eq!(publish(&server, user, name, "module").await.0, 200);
    }
    let plan = |user: &User, name: &str, program: String| {
        let path = format!("/v1/database/{name}/pre_publish");
        let request = server.request("POST", &path).bearer_auth(&user.token);
        tokio::spawn(request.body(program).send())
    };
    // As many as one owner may have turns.
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let turns = processors.max(2) - 1;
    let hanging: Vec<_> = (0..turns)
        .map(|number| plan(&mallory, "bad", format!("module hang {number}")))
        .collect();
    // Until one more has to wait.
    soon("the last turn", async {
        loop {
            let probe = plan(&mallory, "bad", "module probe".to_owned());
            tokio::time::sleep(Duration::from_millis(500)).await;
            probe.abort();
            if probe.await.is_err() {
                return;
            }
        }
    })
    .await;
    for gone in hanging {
        gone.abort();
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    let waiting = plan(&mallory, "bad", "module more".to_owned());
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(!waiting.is_finished(), "their turns were given back");
    let planned = soon(
        "another owner",
        plan(&alice, "good", "module new".to_owned()),
    );
    let planned = planned.await.expect("no panic").expect("an answer");
    assert_eq!(planned.status(), 200);
    soon("stopping", server.stop()).await;
}
