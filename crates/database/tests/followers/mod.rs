//! A database that follows another one: two processes and a socket between them. The other one, which has the leader, is this program
//! again. `docs/design/commits.md` says what a follower can rely on.

mod leader;

use std::path::Path;
use std::process::Stdio;

use lightcone_backup::{Decoder, Frame, Item, Place};
use lightcone_database::{CallArgs, ChangesError, DatabaseHandle, Error, Follower};
use lightcone_log::{Epoch, LogError};
use lightcone_wire::{RowList, ServerMessage, TableUpdateRows};
use serde_json::{json, Value};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};

use crate::common::publishing::stop;
use crate::common::requests::{one_off, subscribe};
use crate::common::tables::{sql, table_options};
use crate::common::{caller, Client, OWNER};
use leader::{load, DIRECTORY, GENERATION};

/// Queries of all kinds that are kept up to date.
const LIVE: [&str; 8] = [
    "SELECT * FROM account",
    "SELECT * FROM tag",
    "SELECT * FROM note",
    "SELECT * FROM counted",
    "SELECT * FROM said",
    "SELECT account.* FROM account JOIN tag ON account.id = tag.id",
    "SELECT * FROM account ORDER BY balance DESC, id LIMIT 5",
    "SELECT * FROM rich",
];

async fn answers(database: &DatabaseHandle) -> Vec<Vec<String>> {
    let mut answers = Vec::new();
    let counts = "SELECT COUNT(*) AS n FROM note";
    // Events are nowhere.
    let stored = LIVE.into_iter().filter(|text| !text.ends_with("said"));
    for text in stored.chain([counts]) {
        let rows = sql(database, OWNER, text).await.expect("rows").0;
        let rows = rows.as_array().expect("rows");
        // A follower may have them at other places.
        let mut rows: Vec<String> = rows.iter().map(Value::to_string).collect();
        rows.sort_unstable();
        answers.push(rows);
    }
    answers
}

/// A client that subscribes to all of them, and notes what it is told.
struct Observer(Client);

impl Observer {
    async fn connect(database: &DatabaseHandle, id: u128) -> Observer {
        let mut client = Client::connect(database, OWNER, id).await;
        for (set, text) in (0..).zip(LIVE) {
            client.send(&[subscribe(set, vec![text])]).await;
            let message = client.next().await;
            let is_applied = matches!(message, ServerMessage::SubscribeApplied { .. });
            assert!(is_applied, "{text}: {message:?}");
        }
        Observer(client)
    }

    /// The changes of each transaction since the last time. Rows of a table have no order in it.
    async fn take(&mut self) -> Vec<String> {
        let settle = one_off(77, "SELECT * FROM st_var");
        self.0.send(&[settle]).await;
        let mut told = Vec::new();
        loop {
            match self.0.next().await {
                ServerMessage::OneOffQueryResult { .. } => return told,
                ServerMessage::TransactionUpdate { query_sets } => {
                    let mut changes = Vec::new();
                    for set in query_sets {
                        for table in set.tables {
                            for rows in &table.rows {
                                let set = (set.query_set_id, &table.table_name);
                                changes.push(format!("{set:?} {}", changed(rows)));
                            }
                        }
                    }
                    changes.sort_unstable();
                    told.push(changes.join("; "));
                }
                message => panic!("{message:?}"),
            }
        }
    }
}

fn changed(rows: &TableUpdateRows) -> String {
    let sorted = |rows: &RowList| {
        let mut rows: Vec<&[u8]> = rows.iter().collect();
        rows.sort_unstable();
        format!("{rows:?}")
    };
    match rows {
        TableUpdateRows::Persistent { inserts, deletes } => {
            format!("-{} +{}", sorted(deletes), sorted(inserts))
        }
        TableUpdateRows::Event { events } => format!("!{}", sorted(events)),
    }
}

/// The process that has the leader.
struct Leader {
    child: Child,
    port: u16,
}

/// What the leader has when nothing happens there.
struct Looked {
    offset: u64,
    answers: Value,
    /// What its own observer was told since the last look.
    told: Vec<String>,
}

impl Leader {
    async fn start(directory: &Path, generation: u32) -> Leader {
        let mut child = Command::new(std::env::current_exe().expect("a test"))
            .args(["followers::leader::leader", "--exact", "--nocapture"])
            .env(DIRECTORY, directory)
            .env(GENERATION, generation.to_string())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("it starts");
        let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let port = loop {
            let line = lines.next_line().await.expect("text");
            let line = line.expect("it says where it listens");
            if let Some(port) = line.strip_prefix("listens at ") {
                break port.parse().expect("a port");
            }
        };
        Leader { child, port }
    }

    async fn kill(mut self) {
        self.child.kill().await.expect("it runs");
    }

    /// What it says to a line; empty if it is gone.
    async fn say(port: u16, line: String) -> Vec<u8> {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await;
        let stream = stream.as_mut().expect("it listens");
        let mut answer = Vec::new();
        let said = stream.write_all(format!("{line}\n").as_bytes()).await;
        said.expect("it listens");
        // It may be killed.
        let _ = stream.read_to_end(&mut answer).await;
        answer
    }

    async fn load(&self, calls: usize) {
        let said = Leader::say(self.port, format!("load {calls}")).await;
        assert_eq!(said, b"done");
    }

    async fn look(&self) -> Looked {
        let said = Leader::say(self.port, "look".to_owned()).await;
        let said: Value = serde_json::from_slice(&said).expect("JSON");
        Looked {
            offset: said["offset"].as_u64().expect("a number"),
            answers: said["answers"].clone(),
            told: serde_json::from_value(said["told"].clone()).expect("texts"),
        }
    }
}

/// A connection on which the leader sends its frames.
struct Link {
    stream: TcpStream,
    decoder: Decoder,
    leader: Epoch,
}

impl Link {
    async fn open(leader: &Leader, from: Place) -> Link {
        let mut stream = TcpStream::connect(("127.0.0.1", leader.port)).await;
        let opened = stream.as_mut().expect("it listens");
        let asked = opened
            .write_all(format!("frames {from}\n").as_bytes())
            .await;
        asked.expect("it listens");
        let leader = Epoch::new(opened.read_u64_le().await.expect("its epoch"));
        Link {
            stream: stream.expect("it listens"),
            decoder: Decoder::default(),
            leader,
        }
    }

    /// None: the connection has ended, maybe in the middle of a frame.
    async fn next(&mut self) -> Option<Frame> {
        loop {
            match self.decoder.next().expect("items") {
                Some(Item::Frame(frame)) => return Some(frame),
                Some(item) => panic!("{item:?}"),
                None => {}
            }
            let mut bytes = [0; 1000];
            match self.stream.read(&mut bytes).await {
                Ok(0) | Err(_) => return None,
                Ok(count) => self.decoder.push(&bytes[..count]),
            }
        }
    }

    async fn take(&mut self, follower: &mut Follower, frames: usize) {
        for _ in 0..frames {
            let frame = self.next().await.expect("the leader lives");
            follower.take(self.leader, frame).await.expect("it follows");
        }
    }

    /// Takes what the leader had when it was looked at, and compares the answers there.
    async fn take_until(&mut self, follower: &mut Follower, looked: &Looked) {
        while follower.place().offset.get() < looked.offset {
            self.take(follower, 1).await;
        }
        assert_eq!(follower.place().offset.get(), looked.offset);
        assert_eq!(json!(answers(database(follower)).await), looked.answers);
    }
}

fn database(follower: &Follower) -> &DatabaseHandle {
    follower.database().expect("it has begun")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_follows_another_one_over_a_socket() {
    let root = tempfile::tempdir().expect("a directory");
    let (path, copy) = (root.path().join("leader"), root.path().join("follower"));
    let leader = Leader::start(&path, 0).await;
    let mut follower = Follower::open(table_options(&copy)).await.expect("nothing");
    assert!(follower.database().is_none());
    let mut link = Link::open(&leader, follower.place()).await;
    link.take_until(&mut follower, &leader.look().await).await;
    let mut observer = Observer::connect(database(&follower), 1).await;

    // Under load, over connections that break.
    let port = leader.port;
    let loading = tokio::spawn(Leader::say(port, "load 400".to_owned()));
    let mut first = None;
    for _ in 0..3 {
        link.take(&mut follower, 5).await;
        let mut part = [0; 10];
        let cut = link
            .stream
            .read(&mut part)
            .await
            .expect("a part of a frame");
        assert!(cut > 0);
        link = Link::open(&leader, follower.place()).await;
        let frame = link.next().await.expect("the leader lives");
        let taken = follower.take(link.leader, frame.clone()).await;
        taken.expect("it goes on there");
        first.get_or_insert(frame);
    }
    assert_eq!(loading.await.expect("no panic"), b"done");
    let looked = leader.look().await;
    link.take_until(&mut follower, &looked).await;
    let told = observer.take().await;
    assert_eq!(told, looked.told);
    assert!(told.len() >= 300, "{}", told.len());

    // What does not follow is not taken, and nothing but frames changes anything.
    let place = follower.place();
    let first = first.expect("a frame");
    let (epoch, first_offset) = (Epoch::new(9), place.offset);
    let payload: &[&[u8]] = &[&first.payload];
    let hash = place.hash.after(epoch, first_offset, first.count, payload);
    let newer = Frame {
        first_offset,
        epoch,
        hash,
        ..first.clone()
    };
    for wrong in [first, newer] {
        let taken = follower.take(link.leader, wrong).await;
        assert!(
            matches!(taken, Err(Error::Log(LogError::BadFrame { .. }))),
            "{taken:?}"
        );
    }
    let args = CallArgs::Json(json!([json!({}).to_string()]).to_string());
    let called = database(&follower)
        .call(caller(OWNER), "change", args)
        .await;
    assert!(format!("{called:?}").contains("[LC0557]"), "{called:?}");
    assert_eq!(follower.place(), place);
    assert!(observer.take().await.is_empty());

    // It starts again, and goes on where it was.
    drop(observer);
    follower.close().await;
    let mut follower = Follower::open(table_options(&copy))
        .await
        .expect("it opens");
    assert_eq!(follower.place(), place);
    let mut observer = Observer::connect(database(&follower), 2).await;
    leader.load(40).await;
    let looked = leader.look().await;
    link.take_until(&mut follower, &looked).await;
    assert_eq!(observer.take().await, looked.told);

    // A program takes over, with another table.
    assert_eq!(Leader::say(port, "publish".to_owned()).await, b"done");
    link.take_until(&mut follower, &leader.look().await).await;
    let added = sql(database(&follower), OWNER, "SELECT * FROM added").await;
    assert_eq!(added.expect("it is there").0, json!([]));
    let mut observer = Observer::connect(database(&follower), 3).await;
    leader.load(40).await;
    let looked = leader.look().await;
    link.take_until(&mut follower, &looked).await;
    assert_eq!(observer.take().await, looked.told);

    // The leader is killed under load, and comes back with all that it had sent.
    let loading = tokio::spawn(Leader::say(port, "load 1000000".to_owned()));
    link.take(&mut follower, 10).await;
    leader.kill().await;
    while let Some(frame) = link.next().await {
        let taken = follower.take(link.leader, frame).await;
        taken.expect("it follows");
    }
    assert_eq!(loading.await.expect("no panic"), b"");
    let leader = Leader::start(&path, 1).await;
    let mut link = Link::open(&leader, follower.place()).await;
    link.take_until(&mut follower, &leader.look().await).await;
    drop(observer.take().await);
    leader.load(40).await;
    let looked = leader.look().await;
    link.take_until(&mut follower, &looked).await;
    assert_eq!(observer.take().await, looked.told);

    // It goes on alone for a while, and the follower takes over meanwhile: these transactions are refused.
    let place = follower.place();
    leader.load(10).await;
    let frame = link.next().await.expect("the leader lives");
    leader.kill().await;
    let fenced = follower.promote(Epoch::FIRST).await.map(drop);
    assert!(
        matches!(fenced, Err(Error::Log(LogError::Fenced { .. }))),
        "{fenced:?}"
    );
    let promoted = follower.promote(Epoch::new(2)).await.expect("a new epoch");
    assert_eq!(json!(answers(&promoted).await), looked.answers);
    load(&promoted, 1000, 40).await;
    let expected = answers(&promoted).await;

    // The old one becomes a follower: it is to take them back.
    let mut old = Follower::open(table_options(&path))
        .await
        .expect("it opens");
    let parted = promoted.frames(old.place()).await.map(drop);
    let cut_away = ChangesError::Log(LogError::CutAway {
        offset: old.place().offset,
    });
    assert_eq!(
        parted.expect_err("another history").to_string(),
        cut_away.to_string()
    );
    let wrong = Place {
        offset: place.offset,
        ..Place::default()
    };
    assert!(old.rewind(wrong).await.is_err());
    assert!(old.place().offset > place.offset, "nothing is taken back");
    old.rewind(place).await.expect("it was there");
    assert_eq!(json!(answers(database(&old)).await), looked.answers);
    let mut new = Follower::open(table_options(&root.path().join("new")))
        .await
        .expect("nothing");
    for follower in [&mut old, &mut new] {
        let mut frames = promoted.frames(follower.place()).await.expect("it goes on");
        while let Some(frame) = frames.next().expect("frames") {
            // The first ones are of an older epoch than that of who sends them.
            let taken = follower.take(frames.leader(), frame).await;
            taken.expect("it follows");
        }
        assert_eq!(answers(database(follower)).await, expected);
        let fenced = follower.take(link.leader, frame.clone()).await;
        assert!(
            matches!(fenced, Err(Error::Log(LogError::Fenced { .. }))),
            "{fenced:?}"
        );
    }
    let place = new.place();
    // What was promised and what was sent are still in order when the log is read again.
    new.close().await;
    let mut new = Follower::open(table_options(&root.path().join("new")))
        .await
        .expect("it opens");
    assert_eq!(new.place(), place);
    assert_eq!(answers(database(&new)).await, expected);
    new.close().await;
    old.close().await;
    stop(promoted).await;
}
