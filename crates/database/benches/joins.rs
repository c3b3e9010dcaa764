//! What a message costs that a join brings to ten of many subscribers: CPU of writer, log and fan-out, without sockets.
//!
//! `cargo bench -p lightcone-database --bench joins`. Clients are connections of this process that read nothing; the difference
//! to a message without a recipient is what the join and the delivery cost.

#[path = "../tests/common/mod.rs"]
mod common;

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::DirEntry;
use std::time::Duration;

use common::tables::{create_tables, table_options};
use common::{requests, Client, OWNER};
use lightcone_types::{Encode, Identity};
use lightcone_wire::{ClientMessage, ServerMessage};
use serde_json::{json, Value};

const ROOMS: u32 = 1000;
const MEMBERS_OF_ROOM: u32 = 10;
const MESSAGES: u32 = 4000;
const QUERY: &str = "SELECT m.* FROM m JOIN x ON m.room = x.room WHERE x.member = :sender";
/// The same through a view that each has for itself.
const VIEW: &str = "SELECT * FROM mine";

fn identity_of(number: u32) -> Identity {
    let mut bytes = [1; 32];
    bytes[..4].copy_from_slice(&number.to_le_bytes());
    Identity::from_le_bytes(bytes)
}

/// CPU time of each thread of this process.
struct Cpu(HashMap<OsString, u64>);

impl Cpu {
    fn now() -> Cpu {
        let tasks = std::fs::read_dir("/proc/self/task").expect("Linux");
        let nanos = |task: DirEntry| {
            let stat = std::fs::read_to_string(task.path().join("schedstat")).ok()?;
            Some((task.file_name(), stat.split(' ').next()?.parse().ok()?))
        };
        Cpu(tasks.flatten().filter_map(nanos).collect())
    }

    /// Microseconds since then, but for threads that have ended.
    fn elapsed_us(&self) -> f64 {
        let Cpu(now) = Cpu::now();
        let since = now
            .iter()
            .map(|(thread, nanos)| nanos - self.0.get(thread).unwrap_or(&0));
        since.sum::<u64>() as f64 / 1e3
    }
}

async fn change(client: &mut Client, changes: &Value) {
    let mut args = Vec::new();
    changes.to_string().encode(&mut args);
    let reducer = "change";
    let message = ClientMessage::CallReducer {
        request_id: 1,
        reducer,
        args: &args,
    };
    client.send(&[message]).await;
    while !matches!(client.next().await, ServerMessage::ReducerResult { .. }) {}
}

/// CPU per message, in microseconds.
async fn messages(writer: &mut Client, first_id: u32) -> f64 {
    let before = Cpu::now();
    for chunk in 0..MESSAGES / 100 {
        let message = |n: u32| {
            let id = first_id + chunk * 100 + n;
            let changes = json!({ "m": { "inserts": [[id, id % ROOMS, "what is said"]] } });
            let mut args = Vec::new();
            changes.to_string().encode(&mut args);
            args
        };
        let args: Vec<Vec<u8>> = (0..100).map(message).collect();
        let calls: Vec<_> = args
            .iter()
            .map(|args| ClientMessage::CallReducer {
                request_id: 1,
                reducer: "change",
                args,
            })
            .collect();
        writer.send(&calls).await;
        for _ in 0..100 {
            assert!(matches!(
                writer.next().await,
                ServerMessage::ReducerResult { .. }
            ));
        }
    }
    tokio::time::sleep(Duration::from_millis(50)).await;
    before.elapsed_us() / f64::from(MESSAGES)
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let program = json!({
        "tables": {
            "m": [["id", "U32"], ["room", "U32"], ["text", "String"]],
            "x": [["id", "U32"], ["room", "U32"], ["member", "Identity"]],
        },
        "uniqueKeys": { "m": "id", "x": "id" },
        "indexes": { "m": [["room"]], "x": [["room"], ["member"]] },
        "views": { "mine": { "table": "m", "query": QUERY.replace(":sender", "{sender}") } },
    });
    let directory = tempfile::tempdir().expect("a directory");
    let mut options = table_options(directory.path());
    options.in_memory = true;
    let database = create_tables(options, &program).await;
    let mut writer = Client::connect(&database, OWNER, 1).await;
    let member = |id: u32| {
        json!([
            id,
            id / MEMBERS_OF_ROOM,
            identity_of(id).to_hex().to_string()
        ])
    };
    let members: Vec<Value> = (0..ROOMS * MEMBERS_OF_ROOM).map(member).collect();
    change(&mut writer, &json!({ "x": { "inserts": members } })).await;
    println!(
        "| query | subscribers | CPU per message, us | beyond 0 subscribers, us | per recipient, us |"
    );
    println!("|---|---|---|---|---|");
    messages(&mut writer, 1_000_000).await;
    let unsubscribed = messages(&mut writer, 2_000_000).await;
    println!("| | 0 | {unsubscribed:.1} | | |");
    let mut clients = Vec::new();
    for (round, query, wanted) in [
        (3, QUERY, 100),
        (4, QUERY, 1000),
        (5, QUERY, 10_000),
        (6, VIEW, 1000),
        (7, VIEW, 10_000),
    ] {
        if query == VIEW && wanted == 1000 {
            clients.clear();
        }
        // Whole rooms, so that each message has either ten recipients or none.
        while clients.len() < wanted {
            let number = clients.len() as u32;
            let id = u128::from(round * 100_000 + number);
            let mut client = Client::connect(&database, identity_of(number), id).await;
            client.send(&[requests::subscribe(1, vec![query])]).await;
            assert!(matches!(
                client.next().await,
                ServerMessage::SubscribeApplied { .. }
            ));
            clients.push(client);
        }
        let cost = messages(&mut writer, round * 1_000_000).await;
        // So many rooms have subscribers.
        let recipients = wanted as f64 / f64::from(ROOMS);
        let beyond = cost - unsubscribed;
        println!(
            "| `{query}` | {wanted} | {cost:.1} | {beyond:.1} | {:.2} |",
            beyond / recipients
        );
    }
}
