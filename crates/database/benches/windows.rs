//! What an update of a row costs the writer when a client is subscribed to the first rows of an order.
//!
//! `cargo bench -p lightcone-database --bench windows`. The difference to the same updates without a subscriber is what the
//! window costs. Half of the lines with a window are measured before it is there, so that the order of the runs shows as noise.

#[path = "../tests/common/mod.rs"]
mod common;

use common::tables::{create_tables, table_options};
use common::{requests, Client, OWNER};
use lightcone_types::{Encode, Identity};
use lightcone_wire::{ClientMessage, ServerMessage};
use serde_json::{json, Value};

const ROWS: u32 = 1_000_000;
const ROWS_PER_LOAD: u32 = 5_000;
const UPDATES: u32 = 20_000;
const UPDATES_PER_BATCH: u32 = 100;
const ROUNDS: u32 = 5;
const OWNERS: u32 = 10_000;

fn identity_of(number: u32) -> Identity {
    let mut bytes = [1; 32];
    bytes[..4].copy_from_slice(&number.to_le_bytes());
    Identity::from_le_bytes(bytes)
}

/// CPU time of the writer's thread, in microseconds.
fn writer_us() -> f64 {
    let tasks = std::fs::read_dir("/proc/self/task").expect("Linux");
    let of_writer = tasks.flatten().filter(|task| {
        let name = std::fs::read_to_string(task.path().join("comm")).unwrap_or_default();
        name.trim() == "writer"
    });
    let nanos = of_writer.map(|task| {
        let stat = std::fs::read_to_string(task.path().join("schedstat")).unwrap_or_default();
        let nanos = stat.split(' ').next().and_then(|n| n.parse::<f64>().ok());
        nanos.unwrap_or(0.0)
    });
    nanos.sum::<f64>() / 1000.0
}

fn row(id: u32, score: u32, text: &str) -> Value {
    let owner = identity_of(id % OWNERS).to_hex().to_string();
    json!([id, score, owner, text])
}

async fn calls(client: &mut Client, changes: &[Value]) {
    let args = changes.iter().map(|changes| {
        let mut args = Vec::new();
        changes.to_string().encode(&mut args);
        args
    });
    let args: Vec<Vec<u8>> = args.collect();
    let call = |args| ClientMessage::CallReducer {
        request_id: 1,
        reducer: "change",
        args,
    };
    let calls: Vec<_> = args.iter().map(|args| call(args)).collect();
    client.send(&calls).await;
    for _ in changes {
        while !matches!(client.next().await, ServerMessage::ReducerResult { .. }) {}
    }
}

/// The rows as they are, by id: the text of each, and its score.
struct Table {
    scores: Vec<u32>,
    versions: Vec<u32>,
}

impl Table {
    fn row(&self, id: u32) -> Value {
        let place = id as usize;
        let text = self.versions[place].to_string();
        row(id, self.scores[place], &text)
    }

    /// An update that changes the text of a row, and its score if it is to be another.
    fn update(&mut self, id: u32, score: u32) -> Value {
        let before = self.row(id);
        self.scores[id as usize] = score;
        self.versions[id as usize] += 1;
        json!({ "t": { "deletes": [before], "inserts": [self.row(id)] } })
    }
}

/// CPU of the writer per update, in microseconds. `next` gives the row to be updated and its new score.
async fn updates(
    client: &mut Client,
    table: &mut Table,
    mut next: impl FnMut(u32, &Table) -> (u32, u32),
) -> f64 {
    let before = writer_us();
    for batch in 0..UPDATES / UPDATES_PER_BATCH {
        let numbers = 0..UPDATES_PER_BATCH;
        let changes: Vec<Value> = numbers
            .map(|number| {
                let (id, score) = next(batch * UPDATES_PER_BATCH + number, table);
                table.update(id, score)
            })
            .collect();
        calls(client, &changes).await;
    }
    (writer_us() - before) / f64::from(UPDATES)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Ids rise with scores: the first 100 of the order are the last ids.
async fn load(client: &mut Client) -> Table {
    let table = Table {
        scores: (0..ROWS).map(|id| id * 10).collect(),
        versions: vec![0; ROWS as usize],
    };
    for first in (0..ROWS).step_by(ROWS_PER_LOAD as usize) {
        let rows: Vec<Value> = (first..first + ROWS_PER_LOAD)
            .map(|id| table.row(id))
            .collect();
        calls(client, &[json!({ "t": { "inserts": rows } })]).await;
    }
    table
}

/// Updates behind the window, in it without another place, from one place in it to another, and into it and out of it in turns.
async fn all_kinds(client: &mut Client, table: &mut Table) -> [f64; 4] {
    let inside = |n: u32| ROWS - 1 - n % 100;
    let outside = updates(client, table, |n, table| {
        let id = n.wrapping_mul(7919) % (ROWS / 2);
        (id, table.scores[id as usize])
    });
    let outside = outside.await;
    let same = updates(client, table, |n, table| {
        (inside(n), table.scores[inside(n) as usize])
    });
    let same = same.await;
    let moved = updates(client, table, |n, _| {
        (inside(n), (ROWS - 1 - (n * 37) % 100) * 10 + 1 + n % 9)
    });
    let moved = moved.await;
    let in_and_out = updates(client, table, |n, _| {
        let id = n / 2 % 1000;
        let score = if n % 2 == 0 { ROWS * 10 } else { id * 10 };
        (id, score)
    });
    let in_and_out = in_and_out.await;
    // As it was.
    for id in ROWS - 100..ROWS {
        let back = table.update(id, id * 10);
        calls(client, &[back]).await;
    }
    [outside, same, moved, in_and_out]
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let program = json!({
        "tables": { "t": [["id", "U32"], ["score", "U32"], ["owner", "Identity"], ["text", "String"]] },
        "uniqueKeys": { "t": "id" },
        "indexes": { "t": [["score"], ["owner", "score"]] },
    });
    let directory = tempfile::tempdir().expect("a directory");
    let mut options = table_options(directory.path());
    options.in_memory = true;
    // The subscriber reads when a round is over.
    options.limits.outgoing_queue_length = 1_000_000;
    let database = create_tables(options, &program).await;
    let mut client = Client::connect(&database, OWNER, 1).await;
    let mut table = load(&mut client).await;
    all_kinds(&mut client, &mut table).await;
    let top = "SELECT * FROM t ORDER BY score DESC LIMIT 100";
    let mut subscriber = Client::connect(&database, identity_of(1), 2).await;
    let (mut without, mut with) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        without.push(all_kinds(&mut client, &mut table).await);
        subscriber.send(&[requests::subscribe(1, vec![top])]).await;
        while !matches!(
            subscriber.next().await,
            ServerMessage::SubscribeApplied { .. }
        ) {}
        with.push(all_kinds(&mut client, &mut table).await);
        let end = ClientMessage::Unsubscribe {
            request_id: 2,
            query_set_id: 1,
            send_dropped_rows: false,
        };
        subscriber.send(&[end]).await;
        while !matches!(
            subscriber.next().await,
            ServerMessage::UnsubscribeApplied { .. }
        ) {}
    }
    println!("| update | no window, us | one window, us | difference, us |");
    println!("|---|---|---|---|");
    let kinds = [
        "behind the window",
        "in it",
        "to another place in it",
        "in and out",
    ];
    for (kind, name) in kinds.iter().enumerate() {
        let of = |runs: &[[f64; 4]]| median(runs.iter().map(|run| run[kind]).collect());
        let (without, with) = (of(&without), of(&with));
        println!(
            "| {name} | {without:.1} | {with:.1} | {:.1} |",
            with - without
        );
    }
    let text = "SELECT * FROM t WHERE owner = :sender ORDER BY score DESC LIMIT 10";
    let mut clients = Vec::new();
    let before = writer_us();
    for number in 0..OWNERS {
        let id = 10 + u128::from(number);
        let mut client = Client::connect(&database, identity_of(number), id).await;
        client.send(&[requests::subscribe(1, vec![text])]).await;
        assert!(matches!(
            client.next().await,
            ServerMessage::SubscribeApplied { .. }
        ));
        clients.push(client);
    }
    let subscribing = (writer_us() - before) / f64::from(OWNERS);
    let own = all_kinds(&mut client, &mut table).await;
    println!("{OWNERS} clients with the first 10 rows of their own each: {subscribing:.1} us to connect and subscribe; updates as above: {own:.1?} us");
}
