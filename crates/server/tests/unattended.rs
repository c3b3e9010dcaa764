//! What the server does with databases that no client asks for: at its start, and after a failure.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::common::fake::HELD;
use crate::common::publishing::call;
use crate::common::{answer, config, TestServer, User};
use lightcone_control::ControlDb;
use lightcone_types::{Due, Identity};

async fn publish(server: &TestServer, user: &User, name: &str, program: &'static str) -> String {
    let request = server.request("PUT", &format!("/v1/database/{name}"));
    let (status, body) = answer(request.bearer_auth(&user.token).body(program)).await;
    assert_eq!(status, 200, "{body}");
    let path = format!("/v1/database/{name}/identity");
    server.ask("GET", &path).await.1
}

/// Whether a database is open, without asking it for anything.
async fn is_open(server: &TestServer, identity: &str) -> bool {
    server.ask("GET", "/v1/metrics").await.1.contains(identity)
}

async fn until_open(server: &TestServer, identity: &str) {
    for _ in 0..3000 {
        if is_open(server, identity).await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{identity} is not opened");
}

fn replicas(data: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(data.join("replicas")).expect("directory");
    let mut names: Vec<_> = entries
        .map(|entry| {
            entry
                .expect("entry")
                .file_name()
                .into_string()
                .expect("name")
        })
        .collect();
    names.sort();
    names
}

#[tokio::test(flavor = "multi_thread")]
async fn databases_with_schedules_are_opened_at_the_start() {
    let server = TestServer::start().await;
    let user = server.user().await;
    let planned = publish(&server, &user, "planned", "module timer").await;
    let quiet = publish(&server, &user, "quiet", "module").await;
    let dir = server.stop().await;
    let control = ControlDb::open(&dir.path().join("data/control-db")).expect("it opens");
    let due = |identity: &str| control.due(&Identity::from_hex(identity).expect("an identity"));
    assert_eq!(due(&planned), Due::Open, "a call is planned in the first");
    assert_eq!(due(&quiet), Due::Never, "the second cannot plan any");
    drop(control);
    let server = TestServer::start_in(dir, config("")).await;
    until_open(&server, &planned).await;
    // Both would have been opened by now, as the older one comes first.
    assert!(!is_open(&server, &quiet).await);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn databases_that_open_slowly_do_not_hold_up_others() {
    let server = TestServer::start().await;
    let user = server.user().await;
    let mut slow = Vec::new();
    for (name, program) in [
        ("slow1", "module timer held-load 1"),
        ("slow2", "module timer held-load 2"),
    ] {
        slow.push(publish(&server, &user, name, program).await);
    }
    let quick = publish(&server, &user, "quick", "module timer").await;
    let dir = server.stop().await;
    // As many as are opened at once; they are older, and come first.
    HELD.store(true, Ordering::SeqCst);
    let limits = config("[limits]\nload-ms-max = 300000\n");
    let server = TestServer::start_in(dir, limits).await;
    until_open(&server, &quick).await;
    for identity in &slow {
        assert!(!is_open(&server, identity).await);
    }
    HELD.store(false, Ordering::SeqCst);
    for identity in &slow {
        until_open(&server, identity).await;
    }
    server.stop().await;
}

/// A counter of the server.
async fn counted(server: &TestServer, name: &str) -> u64 {
    let text = server.ask("GET", "/v1/metrics").await.1;
    let values = text.lines().filter_map(|line| line.strip_prefix(name));
    let mut values = values.filter_map(|value| value.trim().parse().ok());
    values.next().expect("it is there")
}

/// Waits until all was read once more from its begin, and so many files are damaged.
async fn until_damaged_are(server: &TestServer, damaged: u64) {
    let passes = counted(server, "lightcone_scrub_passes_total ").await;
    for _ in 0..3000 {
        let more = counted(server, "lightcone_scrub_passes_total ").await - passes;
        let found = counted(server, "lightcone_scrub_damaged ").await;
        if more > 1 && found == damaged {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("there are not {damaged} damaged files");
}

/// Turns a bit of a file, or turns it back.
fn turn(path: &Path, byte: usize) {
    let mut bytes = std::fs::read(path).expect("it is there");
    bytes[byte] ^= 4;
    std::fs::write(path, bytes).expect("it is written");
}

/// The newest file of a directory with this ending.
fn newest(directory: &Path, ending: &str) -> PathBuf {
    let entries = std::fs::read_dir(directory).expect("a directory");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let of = paths.filter(|path| path.to_string_lossy().ends_with(ending));
    of.max().expect("there is one")
}

/// Where the first object of the newest snapshot is: its pack, and a byte of it (docs/on-disk-formats.md).
fn first_object(snapshots: &Path) -> (PathBuf, usize) {
    let manifest = std::fs::read(newest(snapshots, ".manifest")).expect("it is there");
    let word = |at: usize| u64::from_le_bytes(manifest[at..at + 8].try_into().expect("8 bytes"));
    let entry = 48 + 16 * word(24) as usize;
    let pack = manifest[entry + 32] as usize;
    let number = word(48 + 16 * pack);
    let byte = word(entry + 40) as usize + 100;
    (snapshots.join(format!("{number:020}.pack")), byte)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_rots_is_found_before_a_start_needs_it() {
    let scrubbed = "[commitlog]\npreallocate-segments = false\n\
                    [limits]\nscrub-every = \"20ms\"\nscrub-bytes-per-second = 1000000000\n";
    let many_snapshots = config(&format!("{scrubbed}snapshot-log-bytes = 1\n"));
    let server = TestServer::start_with(many_snapshots).await;
    let user = server.user().await;
    let identity = publish(&server, &user, "a", "module").await;
    let add = "/v1/database/a/call/add";
    for args in [r#"[1,"x"]"#, r#"[2,"y"]"#, r#"[3,"z"]"#] {
        assert_eq!(call(&server, &user, add, args).await.0, 200);
    }
    until_damaged_are(&server, 0).await;
    // At the stop, too, a snapshot is written. Nothing opens the database after it.
    let server = TestServer::start_in(server.stop().await, config(scrubbed)).await;
    let data = server.dir.path().join("data");
    let (log, snapshots) = (
        data.join("replicas/1/log"),
        data.join("replicas/1/snapshots"),
    );
    until_damaged_are(&server, 0).await;
    for (path, byte) in [
        (newest(&log, ".segment"), 4_200),
        (newest(&snapshots, ".manifest"), 100),
        (newest(&data.join("control-db/copy-2"), ".segment"), 4_200),
        first_object(&snapshots),
    ] {
        turn(&path, byte);
        until_damaged_are(&server, 1).await;
        let health = server.ask("GET", "/v1/health").await.1;
        assert!(health.contains(r#""damaged":1"#), "{health}");
        let from_elsewhere = server.request("GET", "/v1/health");
        let from_elsewhere = from_elsewhere.header("x-forwarded-for", "1.1.1.1");
        assert!(!answer(from_elsewhere).await.1.contains("damaged"));
        assert!(!is_open(&server, &identity).await);
        turn(&path, byte);
        until_damaged_are(&server, 0).await;
        assert!(!server.ask("GET", "/v1/health").await.1.contains("damaged"));
    }
    // What an open database has in memory replaces it.
    let rows = "/v1/database/a/sql";
    let query = || answer(server.request("POST", rows).body("SELECT id FROM person"));
    assert!(query().await.1.contains("[[1],[2],[3]]"));
    until_open(&server, &identity).await;
    let (damaged, byte) = first_object(&snapshots);
    turn(&damaged, byte);
    for _ in 0..3000 {
        if !damaged.exists() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(!damaged.exists(), "a new snapshot is written");
    until_damaged_are(&server, 0).await;
    let server = TestServer::start_in(server.stop().await, config("")).await;
    let query = server.request("POST", rows).body("SELECT id FROM person");
    assert!(answer(query).await.1.contains("[[1],[2],[3]]"));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_killed_publish_left_is_removed_at_the_start() {
    let server = TestServer::start().await;
    let user = server.user().await;
    for name in ["first", "second", "third"] {
        publish(&server, &user, name, "module").await;
    }
    let delete = server.request("DELETE", "/v1/database/second");
    assert_eq!(answer(delete.bearer_auth(&user.token)).await.0, 200);
    let data = server.dir.path().join("data");
    assert_eq!(replicas(&data), ["1", "3"]);
    let dir = server.stop().await;
    // As a delete leaves it that was killed when the control database had forgotten the replica.
    std::fs::create_dir_all(data.join("replicas/2/log")).expect("directory");
    std::fs::write(data.join("replicas/2/log/segment"), "left").expect("file");
    let server = TestServer::start_in(dir, config("")).await;
    for _ in 0..3000 {
        if replicas(&data) == ["1", "3"] {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(replicas(&data), ["1", "3"]);
    let (status, _) = server.ask("GET", "/v1/database/third").await;
    assert_eq!(status, 200);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_says_nothing_does_not_hold_up_a_stop() {
    let server = TestServer::start().await;
    let silent = tokio::net::TcpStream::connect(server.address).await;
    let silent = silent.expect("a connection");
    // Answered, so the silent one has been accepted as well.
    server.user().await;
    let dir = server.stop().await;
    // Otherwise the first server still has the directory.
    let server = TestServer::start_in(dir, config("")).await;
    drop(silent);
    server.stop().await;
}
