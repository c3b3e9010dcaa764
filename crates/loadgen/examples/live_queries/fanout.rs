//! What a message costs a server that goes to ten of many subscribers: processor time of the server for each recipient, in all and by the
//! names of its threads. Drives `modules/fanout-rs`.

use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use lightcone_loadgen::client::Endpoint;
use lightcone_loadgen::process::Threads;
use lightcone_types::Encode;

use crate::drive::{Call, Drive};
use crate::subscribers::Subscribers;
use crate::Result;

/// Subscribers that a message goes to.
const RECIPIENTS: u32 = 10;
/// The side of a room's square on the map of rooms, which is so many rooms wide.
const SIDE: i32 = 100;
const ROOMS_WIDE: u32 = 32;

/// What each subscriber asks for: always what happens in its room.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Shape {
    /// Without subscribers: what a call costs by itself.
    Unsubscribed,
    /// `room = N`.
    Room,
    /// The same beside a condition that is the same for all.
    TwoConditions,
    /// `room = N OR room = M`.
    OneOfTwo,
    /// Between two numbers.
    Range,
    /// A square of the map.
    Square,
    /// `room = N` on an anonymous view.
    AnonymousView,
    /// A join with `:sender`.
    Join,
    /// A view of the caller's joined with a table.
    ViewJoin,
    /// All of a table that a row-level security rule joins with the caller's rooms.
    Rule,
    /// `room = N` of a table with a rule that lets all callers see some of it.
    RuleForAll,
}

#[derive(Args)]
pub struct Fanout {
    /// What subscribers of `fanout` ask for.
    #[arg(long, value_enum, default_value = "room")]
    shape: Shape,
    /// Messages of `fanout` that are measured.
    #[arg(long, default_value_t = 5000)]
    messages: u32,
    /// How many of them are under way at a time: with 1, each is answered before the next is sent.
    #[arg(long, value_delimiter = ',', default_value = "1,64")]
    under_way: Vec<u32>,
    /// Bytes of a message's text.
    #[arg(long, default_value_t = 28)]
    text_bytes: usize,
    /// Print a line of JSON for each number of messages under way.
    #[arg(long)]
    json: bool,
}

pub fn measure(
    endpoint: &Endpoint,
    server_pid: u32,
    subscribers_count: u32,
    options: &Fanout,
) -> Result<()> {
    let mut drive = Drive::new(endpoint, server_pid, 256)?;
    let mut subscribers = Subscribers::open(endpoint, subscribers_count)?;
    let identities = subscribers.identities.clone();
    if matches!(options.shape, Shape::Join | Shape::ViewJoin | Shape::Rule) {
        drive.call_each(subscribers_count, |number| {
            let mut args = Vec::new();
            (number / RECIPIENTS).encode(&mut args);
            identities[number as usize].encode(&mut args);
            Call {
                reducer: "enter",
                args,
            }
        })?;
    }
    if options.shape != Shape::Unsubscribed {
        subscribers.subscribe(|number| query_of(options.shape, number / RECIPIENTS))?;
    }
    let received = subscribers.receive();
    let name = options.shape.to_possible_value();
    let name = name.expect("none is skipped");
    let call = |number| call_of(options, subscribers_count, number);
    for &under_way in &options.under_way {
        let mut drive = Drive::new(endpoint, server_pid, under_way)?;
        drive.call_each(options.messages / 10, call)?;
        let rows = received.rows_after_silence();
        let (before, started) = (Threads::of(server_pid)?, Instant::now());
        drive.call_each(options.messages, call)?;
        let took = started.elapsed();
        let rows = received.rows_after_silence() - rows;
        let spent = Threads::of(server_pid)?.since(&before);
        let calls = f64::from(options.messages);
        let recipients = f64::from(rows) / calls;
        let in_all: f64 = spent.iter().map(|(_, cpu)| cpu.as_secs_f64() * 1e6).sum();
        if options.json {
            let report = serde_json::json!({
                "under_way": under_way,
                "recipients": recipients,
                "cpu_us_per_recipient": in_all / calls / recipients.max(1.0),
                "messages_per_second": calls / took.as_secs_f64(),
            });
            println!("{report}");
            continue;
        }
        let share = |cpu: Duration| cpu.as_secs_f64() * 1e6 / calls;
        let threads: Vec<String> = spent
            .iter()
            .filter(|(_, cpu)| share(*cpu) >= 0.1)
            .map(|(name, cpu)| format!("{name} {:.1}", share(*cpu)))
            .collect();
        println!(
            "{}: {subscribers_count} subscribers, {under_way} under way: {:.1} us a message with {recipients:.2} recipients, {:.2} us each ({})",
            name.get_name(),
            in_all / calls,
            in_all / calls / recipients.max(1.0),
            threads.join(", ")
        );
    }
    Ok(())
}

/// The corner of a room on the map.
fn corner(room: u32) -> (i32, i32) {
    let at = |place: u32| place as i32 * SIDE;
    (at(room % ROOMS_WIDE), at(room / ROOMS_WIDE))
}

fn query_of(shape: Shape, room: u32) -> String {
    let (x, y) = corner(room);
    let line = room as i32 * SIDE;
    match shape {
        Shape::Unsubscribed => String::new(),
        Shape::Room => format!("SELECT * FROM post WHERE room = {room}"),
        Shape::TwoConditions => {
            format!("SELECT * FROM post WHERE open = true AND room = {room}")
        }
        Shape::OneOfTwo => {
            let other = 1_000_000 + room;
            format!("SELECT * FROM post WHERE room = {room} OR room = {other}")
        }
        Shape::Range => {
            let end = line + SIDE;
            format!("SELECT * FROM post WHERE x >= {line} AND x < {end}")
        }
        Shape::Square => {
            let (right, top) = (x + SIDE, y + SIDE);
            format!("SELECT * FROM post WHERE x >= {x} AND x < {right} AND y >= {y} AND y < {top}")
        }
        Shape::AnonymousView => format!("SELECT * FROM open_posts WHERE room = {room}"),
        Shape::Join => {
            "SELECT p.* FROM post p JOIN membership m ON p.room = m.room WHERE m.member = :sender"
                .to_owned()
        }
        Shape::ViewJoin => "SELECT p.* FROM post p JOIN my_rooms m ON p.room = m.room".to_owned(),
        Shape::Rule => "SELECT * FROM whisper".to_owned(),
        Shape::RuleForAll => format!("SELECT * FROM letter WHERE room = {room}"),
    }
}

fn call_of(options: &Fanout, subscribers_count: u32, number: u32) -> Call {
    // Far apart, so that messages that follow each other concern others.
    let room = number.wrapping_mul(7919) % (subscribers_count / RECIPIENTS).max(1);
    let mut args = Vec::new();
    room.encode(&mut args);
    let reducer = match options.shape {
        Shape::Rule => "send_whisper",
        Shape::RuleForAll => "send_letter",
        _ => {
            let (x, y) = match options.shape {
                Shape::Range => (room as i32 * SIDE, 0),
                _ => corner(room),
            };
            (x + SIDE / 2).encode(&mut args);
            (y + SIDE / 2).encode(&mut args);
            "send_post"
        }
    };
    "x".repeat(options.text_bytes).encode(&mut args);
    Call { reducer, args }
}
