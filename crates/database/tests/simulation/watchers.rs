//! Those who watch a simulated database. What they hold is whole after each message, comes in order, and is what a query gives at the
//! same place of the stream.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::pin::pin;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use lightcone_database::{ConnectRequest, Connection, Outgoing, Protocol, Rights};
use lightcone_types::{ConnectionId, Encode as _, Identity};
use lightcone_wire::{ClientMessage, ReducerOutcome, ServerMessage};
use serde_json::json;

use super::clients::Context;
use super::common::requests::{one_off, subscribe, unsubscribe};
use super::common::watcher::{bag_of, Bag, Held};
use super::guest::{ACCOUNTS, BALANCE, ROOMS};
use super::ledger::pairs;

/// A text, the table that its rows are of, and what gives the same rows from scratch, if that is something else.
type Asked = (&'static str, &'static str, Option<&'static str>);

/// Query sets, by their ids from 1 on.
const SETS: [&[Asked]; 13] = [
    &[
        ("SELECT * FROM cells", "cells", None),
        ("SELECT * FROM accounts", "accounts", None),
    ],
    &[("SELECT * FROM lists WHERE key = 1", "lists", None)],
    &[(
        "SELECT a.* FROM accounts a JOIN rooms r ON a.room = r.id WHERE r.open = TRUE",
        "accounts",
        None,
    )],
    &[(
        "SELECT * FROM accounts ORDER BY balance DESC LIMIT 3",
        "accounts",
        None,
    )],
    &[(
        "SELECT * FROM accounts WHERE room = 1 ORDER BY id LIMIT 2 OFFSET 1",
        "accounts",
        None,
    )],
    &[("SELECT * FROM totals", "totals", None)],
    &[(
        "SELECT * FROM richest",
        "richest",
        Some("SELECT * FROM accounts ORDER BY balance DESC LIMIT 3"),
    )],
    &[(
        "SELECT * FROM in_room(1)",
        "in_room",
        Some("SELECT * FROM accounts WHERE room = 1"),
    )],
    &[(
        "SELECT * FROM receipt_count",
        "receipt_count",
        Some("SELECT * FROM receipts"),
    )],
    &[("SELECT * FROM receipts", "receipts", None)],
    &[
        ("SELECT * FROM notes", "notes", None),
        ("SELECT * FROM items", "items", None),
    ],
    &[("SELECT * FROM secrets", "secrets", None)],
    &[(
        "SELECT * FROM tickets ORDER BY number LIMIT 3",
        "tickets",
        None,
    )],
];
const WHOLE: u32 = 1;
const TOTALS: u32 = 6;
/// A view that gives the number of rows of another query.
const COUNT: u32 = 9;
const RECEIPTS: u32 = 10;
/// For those only who may read all.
const SECRETS: u32 = 12;
/// Queries of a connection that ought to be over have ids from here on.
const TOO_LATE: u32 = 1_000;
/// The id of a query with a large answer.
const MUCH: u32 = 2_000;
/// Two answers are more than a client has free of charge: what stays counted of more than that is seen in the account of all.
const MUCH_TEXT: &str =
    "SELECT a.* FROM accounts a CROSS JOIN accounts b CROSS JOIN accounts c CROSS JOIN rooms r";
const MUCH_ROWS: u32 = ACCOUNTS * ACCOUNTS * ACCOUNTS * ROOMS;
/// Who may read all until he is told that he may not any more.
pub const READER: Identity = Identity::from_le_bytes([40; 32]);

fn identity(seat: u32) -> Identity {
    Identity::from_le_bytes([20 + seat as u8; 32])
}

/// Comes and goes.
pub async fn watch(context: Context, seat: u32, confirmed: bool, rights: Rights) {
    let mut times = 0;
    while context.goes_on() {
        times += 1;
        let request = ConnectRequest {
            identity: match rights {
                Rights::Public => identity(seat),
                _ => READER,
            },
            rights,
            connection_id: ConnectionId(u128::from(1_000 * seat + times)),
            session_id: None,
            session_grace: Duration::ZERO,
            jwt_payload: "{}".into(),
            confirmed,
            protocol: Protocol::V3,
            token: "token".into(),
        };
        if let Ok(connection) = context.database.connect(request).await {
            let mut watcher = Watcher {
                context: context.clone(),
                who: format!("watcher {seat}, {times}"),
                confirmed,
                has_rights: rights > Rights::Public,
                lowered: context.lowered.load(Ordering::Relaxed),
                connection,
                held: Held::default(),
                asked: BTreeSet::new(),
                answers: 0,
                cells: BTreeMap::new(),
            };
            watcher.stay().await;
        }
        context.rest().await;
    }
}

struct Watcher {
    context: Context,
    who: String,
    confirmed: bool,
    has_rights: bool,
    /// How often rights had been lowered when it came.
    lowered: usize,
    connection: Connection,
    held: Held,
    /// Query sets that it wants.
    asked: BTreeSet<u32>,
    /// Answers to queries that are to come.
    answers: usize,
    /// The latest value of each writer.
    cells: BTreeMap<u32, u64>,
}

/// The connection is over.
struct Ended;

impl Watcher {
    async fn stay(&mut self) {
        // Who has lost his connection comes back.
        let _ = self.watch().await;
        self.context.world.say(|| format!("{} leaves", self.who));
    }

    async fn watch(&mut self) -> Result<(), Ended> {
        let world = self.context.world.clone();
        for _ in 0..2 + world.draw(4) {
            self.change_a_set().await?;
        }
        for _ in 0..world.draw(40) {
            match world.draw(8) {
                0 => self.change_a_set().await?,
                1 => self.ask_all().await?,
                2 => self.call().await?,
                _ => {}
            }
            match self.next().await {
                Some(outgoing) => self.take(outgoing)?,
                None => break,
            }
        }
        if self.context.may_hurry && world.once_in(2) {
            return self.ask_for_much().await;
        }
        self.ask_all().await?;
        while self.answers > 0 {
            let outgoing = self.connection.outgoing.recv().await;
            self.take(outgoing)?;
        }
        Ok(())
    }

    /// None: all are to finish.
    async fn next(&mut self) -> Option<Option<Outgoing>> {
        let ends = self.context.ends.clone();
        let mut received = pin!(self.connection.outgoing.recv());
        std::future::poll_fn(|context| match received.as_mut().poll(context) {
            Poll::Ready(outgoing) => Poll::Ready(Some(outgoing)),
            Poll::Pending if ends.load(Ordering::Relaxed) => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        })
        .await
    }

    async fn send(&mut self, messages: &[ClientMessage<'_>]) -> Result<(), Ended> {
        let mut payload = Vec::new();
        for message in messages {
            message.encode(&mut payload);
        }
        // Who does not take his answers is kept waiting, as he may have so many queries under way.
        let mut taken = Vec::new();
        let submitted = {
            let mut submitting = pin!(self.connection.sender.submit(Bytes::from(payload)));
            loop {
                let mut received = pin!(self.connection.outgoing.recv());
                let first = std::future::poll_fn(|context| {
                    if let Poll::Ready(submitted) = submitting.as_mut().poll(context) {
                        return Poll::Ready(Ok(submitted));
                    }
                    received.as_mut().poll(context).map(Err)
                });
                match first.await {
                    Ok(submitted) => break submitted,
                    // What is taken is let go of here: until then it is under way.
                    Err(outgoing) => taken.extend(messages_of(outgoing)?),
                }
            }
        };
        taken.into_iter().for_each(|message| self.message(message));
        submitted.map_err(|_| Ended)
    }

    async fn change_a_set(&mut self) -> Result<(), Ended> {
        let set = 1 + self.context.world.draw(SETS.len()) as u32;
        if set == SECRETS && !self.has_rights {
            return Ok(());
        }
        if self.asked.remove(&set) {
            return self.send(&[unsubscribe(set)]).await;
        }
        self.asked.insert(set);
        let texts = SETS[set as usize - 1].iter().map(|(text, ..)| *text);
        self.send(&[subscribe(set, texts.collect())]).await
    }

    /// Asks for the rows of all sets, which are found from scratch.
    async fn ask_all(&mut self) -> Result<(), Ended> {
        let sets: Vec<u32> = self.asked.iter().copied().collect();
        let is_late =
            self.has_rights && self.context.lowered.load(Ordering::Relaxed) > self.lowered;
        let first = if is_late { TOO_LATE } else { 0 };
        for set in sets {
            let texts = SETS[set as usize - 1].iter().zip(first + 10 * set..);
            let asks = texts.map(|((text, _, asked), id)| one_off(id, asked.unwrap_or(text)));
            let asks: Vec<_> = asks.collect();
            self.send(&asks).await?;
            self.answers += asks.len();
        }
        Ok(())
    }

    /// Asks for more than it takes.
    async fn ask_for_much(&mut self) -> Result<(), Ended> {
        for _ in 0..2 + self.context.world.draw(4) {
            self.send(&[one_off(MUCH, MUCH_TEXT)]).await?;
        }
        self.context.rest().await;
        Ok(())
    }

    /// A call by the connection. Its update comes with its answer.
    async fn call(&mut self) -> Result<(), Ended> {
        let world = &self.context.world;
        let from = world.draw(ACCOUNTS as usize);
        let to = (from + 1) % ACCOUNTS as usize;
        let what = json!({ "ops": [["move", from, to, world.draw(40)]] });
        let mut args = Vec::new();
        what.to_string().encode(&mut args);
        let reducer = "change";
        let call = ClientMessage::CallReducer {
            request_id: 1,
            reducer,
            args: &args,
        };
        self.send(&[call]).await
    }

    fn take(&mut self, outgoing: Option<Outgoing>) -> Result<(), Ended> {
        let messages = messages_of(outgoing)?;
        messages
            .into_iter()
            .for_each(|message| self.message(message));
        Ok(())
    }

    fn message(&mut self, message: ServerMessage) {
        match message {
            ServerMessage::InitialConnection { .. } => return,
            ServerMessage::OneOffQueryResult {
                request_id: MUCH,
                result,
            } => {
                match result {
                    Ok(rows) => {
                        let rows = rows.tables.iter().map(|table| table.rows.iter().count());
                        assert_eq!(rows.sum::<usize>(), MUCH_ROWS as usize, "{}", self.who);
                    }
                    Err(error) => self.refused(MUCH, &error),
                }
                return;
            }
            ServerMessage::OneOffQueryResult { request_id, result } => {
                self.answers -= 1;
                assert!(
                    request_id < TOO_LATE,
                    "{}: it has lost its rights",
                    self.who
                );
                match result {
                    Ok(rows) => {
                        self.compare(request_id / 10, request_id as usize % 10, &bag_of(&rows));
                    }
                    Err(error) => self.refused(request_id / 10, &error),
                }
                return;
            }
            ServerMessage::ReducerResult {
                result: ReducerOutcome::Err(_) | ReducerOutcome::InternalError(_),
                ..
            } => return,
            message => self.held.take(message),
        }
        for (set, error) in self.held.take_errors() {
            self.asked.remove(&set);
            self.refused(set, &error);
        }
        self.check();
    }

    /// A query is refused only by a database that is at its end.
    fn refused(&self, set: u32, error: &str) {
        let world = &self.context.world;
        world.say(|| format!("{}: set {set}: {error}", self.who));
        let database = &self.context.database;
        let is_known = database.read_only().is_some() || !database.is_running();
        assert!(is_known, "{}: set {set}: {error}", self.who);
    }

    /// What it holds is what a query gives here.
    fn compare(&self, set: u32, nth: usize, rows: &Bag) {
        // After the log failed, tables are as they were, and connections are about to end.
        if !self.held.sets().contains(&set) || self.context.database.read_only().is_some() {
            return;
        }
        let (text, table, _) = SETS[set as usize - 1][nth];
        let held = self.held.rows(set, table);
        if set == COUNT {
            let held: Vec<u64> = held.keys().map(|row| large(row, 0)).collect();
            let found = rows.len() as u64;
            return assert_eq!(held, [found], "{}: {text}: held, and found", self.who);
        }
        assert_eq!(held, *rows, "{}: {text}: held, and found", self.who);
    }

    /// After each message all that was ever changed together has been changed together.
    fn check(&mut self) {
        let sets = self.held.sets();
        let mut ledger = self.context.ledger();
        if sets.contains(&WHOLE) {
            let cells = self.held.rows(WHOLE, "cells");
            let cells = cells.keys().map(|row| (small(row, 0), large(row, 4)));
            for (writer, value) in pairs(cells) {
                let latest = self.cells.entry(writer).or_default();
                assert!(value >= *latest, "writer {writer}: {value} after {latest}");
                *latest = value;
                if self.confirmed {
                    let register = ledger.cells.entry(writer).or_default();
                    register.seen = register.seen.max(value);
                }
            }
            let accounts = self.held.rows(WHOLE, "accounts");
            let balances = accounts.keys().map(|row| large(row, 8)).sum::<u64>();
            self.whole(balances);
        }
        if sets.contains(&TOTALS) {
            let totals = self.held.rows(TOTALS, "totals");
            self.whole(totals.keys().map(|row| large(row, 12)).sum());
            if sets.contains(&WHOLE) {
                let mut expected: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
                for row in self.held.rows(WHOLE, "accounts").keys() {
                    let (count, total) = expected.entry(small(row, 4)).or_default();
                    (*count, *total) = (*count + 1, *total + large(row, 8));
                }
                let held = totals.keys();
                let held = held.map(|row| (small(row, 0), (large(row, 4), large(row, 12))));
                assert_eq!(held.collect::<BTreeMap<_, _>>(), expected, "{}", self.who);
            }
        }
        if sets.contains(&RECEIPTS) {
            for row in self.held.rows(RECEIPTS, "receipts").keys() {
                let (owner, number) = (large(row, 0), large(row, 8));
                if self.confirmed {
                    let other = ledger.seen_receipts.insert(number, owner);
                    let same = other.is_none_or(|other| other == owner);
                    assert!(same, "ticket {number} is of {owner} and {other:?}");
                }
            }
        }
    }

    fn whole(&self, sum: u64) {
        let all = u64::from(ACCOUNTS) * BALANCE;
        assert_eq!(sum, all, "{}: a half of a transfer", self.who);
    }
}

fn messages_of(outgoing: Option<Outgoing>) -> Result<Vec<ServerMessage>, Ended> {
    let Some(Outgoing::Messages(batch)) = outgoing else {
        return Err(Ended);
    };
    let (mut start, mut messages) = (0, Vec::new());
    for &end in &batch.ends {
        let message = &batch.bytes[start..end];
        let decoded = lightcone_wire::payload::decode_messages(Protocol::V2, message);
        messages.extend(decoded.expect("messages of a server"));
        start = end;
    }
    Ok(messages)
}

fn small(row: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(row[at..at + 4].try_into().expect("a U32"))
}

fn large(row: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(row[at..at + 8].try_into().expect("a U64"))
}
