//! The process that has the leader: it makes load, and says what it has, over a socket.

use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

use lightcone_backup::Item;
use lightcone_database::{CallArgs, DatabaseHandle};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::{json, Value};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Mutex;

use super::{answers, Observer};
use crate::common::publishing::publish;
use crate::common::tables::{create_tables, table_options};
use crate::common::{caller, open, OWNER};

pub const DIRECTORY: &str = "LIGHTCONE_TEST_LEADER";
/// Each process has other keys.
pub const GENERATION: &str = "LIGHTCONE_TEST_GENERATION";
/// Callers at a time.
const CALLERS: u32 = 4;

struct Process {
    database: DatabaseHandle,
    observer: Mutex<Observer>,
    generation: u32,
    /// How often there was load.
    loads: Mutex<u32>,
}

fn program(version: u32) -> Value {
    let mut program = json!({
        "tables": {
            "account": [["id", "U32"], ["owner", "U32"], ["balance", "U32"]],
            "tag": [["id", "U32"], ["text", "String"]],
            "note": [["account", "U32"], ["text", "String"]],
            "counted": [["id", "U64"], ["text", "String"]],
            "said": [["text", "String"]],
        },
        "uniqueKeys": { "account": "id", "tag": "id", "counted": "id" },
        "indexes": { "account": [["owner"], ["balance"]], "note": [["account"]] },
        "autoInc": { "counted": "id" },
        "events": ["said"],
        "views": { "rich": {
            "query": "SELECT * FROM account WHERE balance >= 500",
            "table": "account",
            "anonymous": true,
        } },
    });
    if version > 1 {
        program["tables"]["added"] = json!([["id", "U32"]]);
    }
    program
}

/// It does nothing unless it was started as that process.
#[tokio::test(flavor = "multi_thread")]
async fn leader() {
    let Some(directory) = std::env::var_os(DIRECTORY) else {
        return;
    };
    let options = table_options(Path::new(&directory));
    let database = match options.directory.join("log").exists() {
        true => open(options).await,
        false => create_tables(options, &program(1)).await,
    };
    let generation = std::env::var(GENERATION).expect("a number");
    let process = Arc::new(Process {
        observer: Mutex::new(Observer::connect(&database, 1).await),
        database,
        generation: generation.parse().expect("a number"),
        loads: Mutex::new(0),
    });
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    println!("\nlistens at {port}");
    std::io::stdout().flush().expect("the other process reads");
    loop {
        let (stream, _) = listener.accept().await.expect("a connection");
        let process = process.clone();
        tokio::spawn(async move { process.serve(stream).await });
    }
}

impl Process {
    async fn serve(&self, mut stream: TcpStream) {
        let mut line = String::new();
        let read = BufReader::new(&mut stream).read_line(&mut line).await;
        read.expect("a line");
        let answer = match line.trim().split_once(' ') {
            Some(("frames", from)) => return self.send_frames(from, stream).await,
            Some(("load", calls)) => {
                let mut loads = self.loads.lock().await;
                *loads += 1;
                let keys = self.generation * 100 + *loads;
                load(&self.database, keys, calls.parse().expect("a number")).await;
                b"done".to_vec()
            }
            _ if line.trim() == "publish" => {
                let published = publish(&self.database, &program(2), false).await;
                published.expect("a plan");
                b"done".to_vec()
            }
            _ => {
                let told = self.observer.lock().await.take().await;
                let looked = json!({
                    "offset": self.database.stats().durable_offset,
                    "answers": answers(&self.database).await,
                    "told": told,
                });
                looked.to_string().into_bytes()
            }
        };
        stream.write_all(&answer).await.expect("it is read");
    }

    /// Until the connection ends.
    async fn send_frames(&self, from: &str, mut stream: TcpStream) {
        let from = from.parse().expect("a place");
        let mut frames = self.database.frames(from).await.expect("it goes on there");
        let leader = frames.leader().get();
        let mut sent = stream.write_all(&leader.to_le_bytes()).await;
        while sent.is_ok() {
            match frames.next().expect("frames") {
                Some(frame) => sent = stream.write_all(&Item::Frame(frame).to_vec()).await,
                None => frames.ready().await.expect("the database runs"),
            }
        }
    }
}

/// So many calls by several callers, each with its own keys, which no other number has.
pub async fn load(database: &DatabaseHandle, number: u32, calls: usize) {
    let callers = (0..CALLERS).map(|nth| {
        let database = database.clone();
        let keys = (number * CALLERS + nth) * 10_000;
        tokio::spawn(async move {
            let mut made = Made::new(keys);
            for _ in 0..calls / CALLERS as usize {
                let changes = made.next().to_string();
                let args = CallArgs::Json(json!([changes]).to_string());
                let called = database.call(caller(OWNER), "change", args).await;
                called.expect("the keys are free");
            }
        })
    });
    for caller in callers.collect::<Vec<_>>() {
        caller.await.expect("no panic");
    }
}

/// The rows of one caller.
struct Made {
    rng: StdRng,
    keys: u32,
    /// How many accounts there were, and those that there are.
    count: u32,
    accounts: Vec<[u32; 3]>,
    tags: Vec<u32>,
    notes: Vec<(u32, String)>,
}

impl Made {
    fn new(keys: u32) -> Made {
        Made {
            rng: StdRng::seed_from_u64(keys.into()),
            keys,
            count: 0,
            accounts: Vec::new(),
            tags: Vec::new(),
            notes: Vec::new(),
        }
    }

    fn text(&mut self) -> String {
        "x".repeat(self.rng.random_range(1..60))
    }

    /// The next transaction, which changes something in any case.
    fn next(&mut self) -> Value {
        let text = self.text();
        let mut changes = json!({ "counted": { "inserts": [[0, text]] } });
        match self.rng.random_range(0..6) {
            0..=1 => {
                let id = self.keys + self.count;
                self.count += 1;
                let account = [id, self.keys, self.rng.random_range(0..1000)];
                self.accounts.push(account);
                changes["account"] = json!({ "inserts": [account] });
                if self.rng.random() {
                    changes["tag"] = json!({ "inserts": [[id, text]] });
                    self.tags.push(id);
                }
            }
            2 => {
                // Several at a time, some of which pass their places on.
                let mut replaced = Vec::new();
                for account in self.accounts.iter_mut().rev().take(3) {
                    account[2] = self.rng.random_range(0..1000);
                    replaced.push(*account);
                }
                changes["account"] = json!({ "replaced": replaced });
            }
            3 if !self.accounts.is_empty() => {
                let at = self.rng.random_range(0..self.accounts.len());
                let account = self.accounts.swap_remove(at);
                changes["account"] = json!({ "deletes": [account] });
            }
            4 => {
                let note = (self.keys, format!("{text}{}", self.notes.len()));
                changes["note"] = json!({ "inserts": [note] });
                self.notes.push(note);
                changes["said"] = json!({ "inserts": [[text]] });
            }
            _ => {
                // Rows without a key, and one that has to move when it grows.
                let went = self.notes.pop();
                changes["note"] = json!({ "deletes": Vec::from_iter(went) });
                if let Some(tag) = self.tags.pop() {
                    changes["tag"] = json!({ "replaced": [[tag, text.repeat(3)]] });
                    self.tags.insert(0, tag);
                }
            }
        }
        changes
    }
}
