//! What live queries cost a server: its processor time for each call, first without subscribers, then with subscribers on sockets
//! of their own. Drives `modules/live-rs` or `modules/live-ts`; `scripts/live-queries.sh` starts a server and runs all cases.

mod drive;
mod fanout;
mod first_rows;
mod rounds;
mod subscribers;

use std::error::Error;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::{Parser, ValueEnum};
use lightcone_loadgen::client::{Client, Endpoint};
use lightcone_loadgen::process::Usage;
use lightcone_types::Encode;
use lightcone_wire::{ClientMessage, Protocol, ServerMessage};

use crate::drive::{Call, Drive};
use crate::fanout::Fanout;
use crate::subscribers::Subscribers;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Members of each room of the case `join`.
const ROOM_MEMBERS: u32 = 10;
const TEXT: &str = "a message of a common length";

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Case {
    /// Subscribers to a join on the rooms that they are in; a call is a message to a room of ten.
    Join,
    /// The same through a view that returns the join.
    JoinView,
    /// The same with a subquery in place of the join.
    Exists,
    /// Subscribers to a view of their own notes, found by the module; a call changes a note of one of them.
    View,
    /// The same, found by the database.
    QueryView,
    /// Subscribers to the hundred highest scores; a call changes another score.
    WindowOutside,
    /// The same; a call changes one of the hundred.
    WindowInside,
    /// Subscribers to joins that no call concerns; they stay until standard input ends.
    Hold,
    /// One subscriber to all scores, while others call.
    FirstRows,
    /// Clients that look at all scores again and again.
    Scans,
    /// Subscribers in groups of ten, one of which each message goes to.
    Fanout,
}

#[derive(Parser)]
struct Options {
    /// Server, e.g. ws://127.0.0.1:3000.
    #[arg(long)]
    url: String,
    #[arg(long)]
    database: String,
    /// Process id of the server.
    #[arg(long)]
    server_pid: u32,
    #[arg(long, value_enum)]
    case: Case,
    #[arg(long, default_value_t = 10_000)]
    subscribers: u32,
    /// Calls that are measured.
    #[arg(long, default_value_t = 100_000)]
    calls: u32,
    /// Calls under way at a time.
    #[arg(long, default_value_t = 256)]
    in_flight: u32,
    /// How long `scans` scans.
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// Rows of the table of scores.
    #[arg(long, default_value_t = 1_000_000)]
    scores: u32,
    #[command(flatten)]
    fanout: Fanout,
}

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("Error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<()> {
    let endpoint = Endpoint::new(&options.url, &options.database, Protocol::V3, true, None)?;
    if options.case == Case::FirstRows {
        add_scores(&endpoint, options.scores)?;
        return first_rows::measure(&endpoint, &options.url, options.server_pid);
    }
    if options.case == Case::Fanout {
        let (pid, subscribers) = (options.server_pid, options.subscribers);
        return fanout::measure(&endpoint, pid, subscribers, &options.fanout);
    }
    if options.case == Case::Scans {
        return scan(&endpoint, Duration::from_secs(options.seconds));
    }
    if matches!(options.case, Case::WindowInside | Case::WindowOutside) {
        add_scores(&endpoint, options.scores)?;
    }
    let mut drive = Drive::new(&endpoint, options.server_pid, options.in_flight)?;
    let mut subscribers = Subscribers::open(&endpoint, options.subscribers)?;
    prepare(&mut drive, &subscribers, options)?;
    let call = |number: u32| call_of(options, &subscribers.identities, number);
    let without = drive.measure(options.calls, call)?;
    let name = options.case.to_possible_value();
    let name = name.expect("none is skipped");
    let name = name.get_name();
    let before = Usage::of(options.server_pid)?;
    let started = Instant::now();
    let first_rows = subscribers.subscribe(|_| query_of(options.case).to_owned())?;
    let took = started.elapsed();
    let cpu = Usage::of(options.server_pid)?
        .cpu
        .saturating_sub(before.cpu);
    println!(
        "{name}: {} subscribed one after the other in {took:.2?}, with {first_rows} first rows; the server's processors {cpu:.2?}",
        options.subscribers
    );
    if options.case == Case::Hold {
        return hold();
    }
    let received = subscribers.receive();
    let identities = &received.identities;
    let with = drive.measure(options.calls, |number| {
        call_of(options, identities, options.calls + number)
    })?;
    let rows = received.rows_after_silence();
    let recipients = f64::from(rows) / f64::from(options.calls);
    println!(
        "{name}: {:.2} us of the server's processors a call without subscribers, {:.2} us with {} subscribers, each call {recipients:.2} rows: {:.2} us more; {:.0} calls/s, then {:.0}",
        without.cpu_us,
        with.cpu_us,
        options.subscribers,
        with.cpu_us - without.cpu_us,
        without.calls_per_second,
        with.calls_per_second,
    );
    Ok(())
}

fn query_of(case: Case) -> &'static str {
    match case {
        Case::Join => "SELECT m.* FROM message m JOIN membership x ON m.room = x.room WHERE x.member = :sender",
        Case::JoinView => "SELECT * FROM my_messages",
        Case::Exists => "SELECT * FROM message m WHERE EXISTS (SELECT 1 FROM membership x WHERE x.room = m.room AND x.member = :sender)",
        Case::View => "SELECT * FROM my_notes",
        Case::QueryView => "SELECT * FROM my_notes_query",
        Case::WindowInside | Case::WindowOutside => "SELECT * FROM score ORDER BY score DESC LIMIT 100",
        Case::Hold => "SELECT n.* FROM note n JOIN message m ON n.id = m.room WHERE n.owner = :sender",
        Case::FirstRows => "SELECT * FROM score",
        Case::Fanout => unreachable!("its subscribers have queries of their own"),
        Case::Scans => "SELECT * FROM score WHERE name = 'missing'",
    }
}

fn call_of(options: &Options, identities: &[lightcone_types::Identity], number: u32) -> Call {
    let mut args = Vec::new();
    // Far apart, so that calls that follow each other concern others.
    let spread = number.wrapping_mul(7919);
    let reducer = match options.case {
        Case::Join | Case::JoinView | Case::Exists => {
            let rooms = (options.subscribers / ROOM_MEMBERS).max(1);
            (spread % rooms).encode(&mut args);
            TEXT.encode(&mut args);
            "say"
        }
        Case::View | Case::QueryView => {
            let owner = spread % options.subscribers;
            owner.encode(&mut args);
            identities[owner as usize].encode(&mut args);
            format!("{TEXT} {number}").encode(&mut args);
            "put_note"
        }
        Case::WindowOutside => {
            let id = spread % (options.scores / 2);
            args = call_args(&[id, number % (options.scores / 2)]);
            "set_score"
        }
        Case::WindowInside => {
            let id = options.scores - 1 - number % 100;
            args = call_args(&[id, options.scores + number]);
            "set_score"
        }
        Case::Hold | Case::FirstRows | Case::Scans | Case::Fanout => {
            args = call_args(&[0, 0]);
            "set_score"
        }
    };
    Call { reducer, args }
}

/// Numbers as the arguments of a reducer.
fn call_args(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|n| n.to_le_bytes()).collect()
}

/// What has to be in the tables before anything is measured.
fn prepare(drive: &mut Drive, subscribers: &Subscribers, options: &Options) -> Result<()> {
    match options.case {
        Case::Join | Case::JoinView | Case::Exists => {
            drive.call_each(options.subscribers, |number| {
                let mut args = Vec::new();
                (number / ROOM_MEMBERS).encode(&mut args);
                subscribers.identities[number as usize].encode(&mut args);
                Call {
                    reducer: "enter",
                    args,
                }
            })
        }
        Case::View | Case::QueryView => drive.call_each(options.subscribers, |number| {
            let mut args = Vec::new();
            number.encode(&mut args);
            subscribers.identities[number as usize].encode(&mut args);
            TEXT.encode(&mut args);
            Call {
                reducer: "put_note",
                args,
            }
        }),
        _ => Ok(()),
    }
}

/// Fills the table of scores.
fn add_scores(endpoint: &Endpoint, count: u32) -> Result<()> {
    const BATCH: u32 = 10_000;
    let mut client = Client::open(endpoint, 1 << 40)?;
    for first in (0..count).step_by(BATCH as usize) {
        let args = call_args(&[first, BATCH.min(count - first)]);
        let request_id = client.request_id();
        client.send(&[ClientMessage::CallReducer {
            request_id,
            reducer: "add_scores",
            args: &args,
        }])?;
        drive::expect_ok(client.receive()?)?;
    }
    client.close();
    Ok(())
}

/// Asks one question after the other, each of which looks at all scores.
fn scan(endpoint: &Endpoint, time: Duration) -> Result<()> {
    let mut client = Client::open(endpoint, 9)?;
    let started = Instant::now();
    let mut scans = 0;
    while started.elapsed() < time {
        client.send(&[ClientMessage::OneOffQuery {
            request_id: 1,
            query_string: query_of(Case::Scans),
        }])?;
        match client.receive()? {
            ServerMessage::OneOffQueryResult { result, .. } => drop(result?),
            other => return Err(format!("not an answer: {other:?}").into()),
        }
        scans += 1;
    }
    let each = started.elapsed() / scans;
    println!("scans: {scans} scans, each {each:?}");
    Ok(())
}

fn hold() -> Result<()> {
    println!("ready");
    std::io::copy(&mut std::io::stdin(), &mut std::io::sink())?;
    Ok(())
}
